/*
 * st_turns.c - sessions and their turns in order.
 *
 * Sessions are numbered as they come, rows sorted by number with one counting pass; within one,
 * rows nearly always lie in order already, and only one that does not is sorted. A neighbour is
 * looked for in the image's order and in that of the rows outside the file, and the nearer one is
 * taken.
 *
 * ERRORS   ST_NOMEM and what reading gives
 * THREADS  an image's turns are made under its lock by one thread, and only read afterwards
 *
 * SPDX-License-Identifier: MIT
 */
#include "st_turns.h"

#include <stdlib.h>

/* ---------------------------------------------------------------------------------------- names */

static uint64_t hash(const uint8_t *p, size_t n)
{
    uint64_t h = 0xcbf29ce484222325u ^ n;
    for (size_t i = 0; i < n; i++) {
        h = (h ^ p[i]) * 0x100000001b3u;
    }
    return h ^ h >> 29;
}

static uint32_t find_name(const st_names *t, uint64_t key, const uint8_t *p, size_t n)
{
    uint64_t at;
    if (!st_map_get(&t->map, key, &at)) {
        return ST_TURN_NONE;
    }
    for (uint32_t i = (uint32_t)at; i != ST_TURN_NONE; i = t->chain[i]) {
        size_t from = i ? t->end[i - 1] : 0;
        if (t->end[i] - from == n && (!n || memcmp(t->bytes.p + from, p, n) == 0)) {
            return i;
        }
    }
    return ST_TURN_NONE;
}

static int add_name(st_names *t, uint64_t key, const uint8_t *p, size_t n, st_error *err)
{
    uint64_t at = ST_TURN_NONE;
    ST_TRY(st_grow(&t->end, &t->cap_end, (size_t)t->n + 1, sizeof *t->end, err));
    ST_TRY(st_grow(&t->chain, &t->cap_chain, (size_t)t->n + 1, sizeof *t->chain, err));
    ST_TRY(st_buf_add(&t->bytes, p, n, err));
    st_map_get(&t->map, key, &at);
    ST_TRY(st_map_set(&t->map, key, t->n, err));
    t->chain[t->n] = (uint32_t)at;
    t->end[t->n++] = t->bytes.n;
    return ST_OK;
}

void st_turns_free(st_turns *t)
{
    if (t) {
        h5_free(t->order);
        h5_free(t->place);
        h5_free(t->session);
        h5_free(t->size);
        h5_free(t->label);
        h5_free(t->first);
        h5_free(t->names.end);
        h5_free(t->names.chain);
        st_buf_free(&t->names.bytes);
        st_map_free(&t->names.map);
        h5_free(t);
    }
}

/* ------------------------------------------------------------------------------------- building */

/* Where rows come from. */
typedef struct source {
    st_reader *reader; /* the image's rows, or */
    st_slot *const *slot;
    const st_names *known; /* names with numbers of their own */
} source;

typedef struct turn_key {
    double when;
    int64_t id;
    uint32_t row;
} turn_key;

static int key_of(const source *s, uint32_t row, turn_key *out, st_error *err)
{
    const uint8_t *p;
    uint64_t run;
    out->row = row;
    if (!s->reader) {
        out->when = s->slot[row]->timestamp;
        out->id = s->slot[row]->id;
        return ST_OK;
    }
    ST_TRY(st_read_at(s->reader, ST_PHYS_TIMESTAMP, row, &p, &run, err));
    memcpy(&out->when, p, sizeof out->when);
    return st_read_id(s->reader, row, &out->id, err);
}

static int text_of(const source *s, int text, uint32_t row, const uint8_t **p, size_t *n,
                   st_error *err)
{
    if (s->reader) {
        return st_read_text(s->reader, text, row, p, n, err);
    }
    *p = s->slot[row]->text[text].p;
    *n = s->slot[row]->text[text].n;
    return ST_OK;
}

int st_text_asks(const void *text, size_t n)
{
    const uint8_t *p = text;
    while (n && (p[n - 1] == ' ' || (p[n - 1] >= '\t' && p[n - 1] <= '\r'))) {
        n--;
    }
    return (n >= 1 && p[n - 1] == '?') || (n >= 2 && memcmp(p + n - 2, "\xd8\x9f", 2) == 0) ||
           (n >= 3 && memcmp(p + n - 3, "\xef\xbc\x9f", 3) == 0);
}

static int is_letter(uint8_t b)
{
    return (b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z') || b >= 0x80;
}

enum { LABEL_SKIP = 4, LABEL_MAX = 64 }; // bytes: of brackets and stars before it; of the word

uint32_t st_text_label(const void *text, size_t n)
{
    const uint8_t *p = text;
    size_t from = 0, to;
    uint32_t h = 0x811c9dc5u;
    while (from < n && from < LABEL_SKIP && !is_letter(p[from])) {
        from++;
    }
    for (to = from; to < n && to - from <= LABEL_MAX && is_letter(p[to]); to++) {
        h = (h ^ (p[to] >= 'A' && p[to] <= 'Z' ? p[to] + 32u : p[to])) * 0x01000193u;
    }
    return to - from < 2 || to - from > LABEL_MAX ? 0 : h | 1;
}

static int number_session(st_turns *t, const source *s, uint32_t row, st_error *err)
{
    const uint8_t *p;
    size_t n;
    ST_TRY(text_of(s, ST_TEXT_SESSION, row, &p, &n, err));
    t->session[row] = ST_TURN_NONE;
    if (!p) {
        return ST_OK;
    }
    uint64_t key = hash(p, n);
    uint32_t base = s->known ? s->known->n : 0;
    uint32_t i = s->known ? find_name(s->known, key, p, n) : ST_TURN_NONE;
    if (i == ST_TURN_NONE) {
        i = find_name(&t->names, key, p, n);
        if (i == ST_TURN_NONE) {
            i = t->names.n;
            ST_TRY(add_name(&t->names, key, p, n, err));
        }
        i += base;
    }
    t->session[row] = i;
    t->n++;
    return ST_OK;
}

static int read_turns(st_turns *t, const source *s, st_error *err)
{
    for (uint32_t row = 0; row < t->nrow; row++) {
        const uint8_t *p;
        size_t n;
        ST_TRY(number_session(t, s, row, err));
        ST_TRY(text_of(s, ST_TEXT_CONTENT, row, &p, &n, err));
        // A row without a session is no turn, one without content says nothing of its length: both
        // count in full.
        int turn = p && t->session[row] != ST_TURN_NONE;
        size_t size = turn ? ST_MIN(n, (size_t)ST_TURN_SIZE_MAX) : ST_TURN_SIZE_MAX;
        t->size[row] = (uint16_t)(size | (turn && st_text_asks(p, n) ? ST_TURN_ASKS : 0));
        t->label[row] = turn ? st_text_label(p, n) : 0;
    }
    t->nsession = (s->known ? s->known->n : 0) + t->names.n;
    return ST_OK;
}

static int by_key(const void *a, const void *b)
{
    const turn_key *x = a, *y = b;
    if (x->when != y->when) {
        return x->when < y->when ? -1 : 1;
    }
    return (x->id > y->id) - (x->id < y->id);
}

/* Puts the rows of one session in order, which they mostly are. */
static int sort_session(st_turns *t, const source *s, uint32_t from, uint32_t to, st_error *err)
{
    turn_key last = {0}, k;
    int sorted = 1;
    for (uint32_t i = from; i < to && sorted; i++) {
        ST_TRY(key_of(s, t->order[i], &k, err));
        sorted = i == from || by_key(&last, &k) < 0;
        last = k;
    }
    if (sorted) {
        return ST_OK;
    }
    turn_key *keys = h5_alloc_array(to - from, sizeof *keys);
    int rc = keys ? ST_OK : st_nomem(err);
    for (uint32_t i = from; i < to && !rc; i++) {
        rc = key_of(s, t->order[i], &keys[i - from], err);
    }
    if (!rc) {
        qsort(keys, to - from, sizeof *keys, by_key);
        for (uint32_t i = from; i < to; i++) {
            t->order[i] = keys[i - from].row;
        }
    }
    h5_free(keys);
    return rc;
}

static int order_turns(st_turns *t, const source *s, st_error *err)
{
    t->order = h5_alloc_array((size_t)t->n + 1, sizeof *t->order);
    t->first = h5_calloc((size_t)t->nsession + 2, sizeof *t->first);
    if (!t->order || !t->first) {
        return st_nomem(err);
    }
    // first[s + 1] runs ahead to where the session's next row goes, and ends where it ends
    for (uint32_t row = 0; row < t->nrow; row++) {
        if (t->session[row] != ST_TURN_NONE) {
            t->first[t->session[row] + 1]++;
        }
    }
    for (uint32_t i = 0; i < t->nsession; i++) {
        t->first[i + 1] += t->first[i];
    }
    memmove(t->first + 1, t->first, (size_t)(t->nsession + 1) * sizeof *t->first);
    for (uint32_t row = 0; row < t->nrow; row++) {
        if (t->session[row] != ST_TURN_NONE) {
            t->order[t->first[t->session[row] + 1]++] = row;
        }
    }
    for (uint32_t i = 0; i < t->nsession; i++) {
        ST_TRY(sort_session(t, s, t->first[i], t->first[i + 1], err));
    }
    for (uint32_t row = 0; row < t->nrow; row++) {
        t->place[row] = ST_TURN_NONE;
    }
    for (uint32_t i = 0; i < t->n; i++) {
        t->place[t->order[i]] = i;
    }
    return ST_OK;
}

static int build(const source *s, uint64_t nrow, st_turns **out, st_error *err)
{
    st_turns *t = h5_calloc(1, sizeof *t);
    int rc = t ? ST_OK : st_nomem(err);
    *out = NULL;
    if (!rc && nrow >= ST_TURN_NONE) {
        rc = st_fail(err, ST_LIMIT, "%llu rows are too many to find their neighbours",
                     (unsigned long long)nrow);
    }
    if (!rc) {
        t->nrow = (uint32_t)nrow;
        t->place = h5_alloc_array((size_t)nrow + 1, sizeof *t->place);
        t->session = h5_alloc_array((size_t)nrow + 1, sizeof *t->session);
        t->size = h5_alloc_array((size_t)nrow + 1, sizeof *t->size);
        t->label = h5_alloc_array((size_t)nrow + 1, sizeof *t->label);
        rc = t->place && t->session && t->size && t->label ? read_turns(t, s, err) : st_nomem(err);
        rc = rc ? rc : order_turns(t, s, err);
    }
    if (rc) {
        st_turns_free(t);
        return rc;
    }
    *out = t;
    return ST_OK;
}

int st_turns_of_image(st_image *im, const st_turns **out, st_error *err)
{
    st_reader reader;
    int rc;
    pthread_mutex_lock(&im->lock);
    *out = im->turns;
    pthread_mutex_unlock(&im->lock);
    if (*out) {
        return ST_OK;
    }
    // Without the lock, which reading takes: two threads may do it at once, one result stays.
    st_turns *mine = NULL;
    ST_TRY(st_reader_open(&reader, im, err));
    rc = build(&(source){.reader = &reader}, im->nrow, &mine, err);
    st_reader_close(&reader);
    ST_TRY(rc);
    pthread_mutex_lock(&im->lock);
    if (im->turns) {
        st_turns_free(mine);
    } else {
        im->turns = mine;
    }
    *out = im->turns;
    pthread_mutex_unlock(&im->lock);
    return ST_OK;
}

int st_turns_of_frozen(st_view *v, const st_turns **out, st_error *err)
{
    st_frozen *f = v->f;
    const st_turns *base;
    if (!f->turns) {
        ST_TRY(st_turns_of_image(f->gen->image, &base, err));
        ST_TRY(build(&(source){.slot = f->slot, .known = &base->names}, f->nrow - f->nbase,
                     &f->turns, err));
    }
    *out = f->turns;
    return ST_OK;
}

/* --------------------------------------------------------------------------------------- around */

static int view_key(st_view *v, const st_turns *base, uint64_t row, turn_key *out, st_error *err)
{
    const st_frozen *f = v->f;
    if (row < base->nrow) {
        return key_of(&(source){.reader = &v->reader}, (uint32_t)row, out, err);
    }
    return key_of(&(source){.slot = f->slot}, (uint32_t)(row - base->nrow), out, err);
}

/* A place in one of the two orders, and what its rows add up to in the view. */
typedef struct lane {
    const st_turns *t;
    uint64_t offset;
    uint32_t lo, hi; /* the session's rows */
    uint32_t at;     /* the first not before the row that is asked about */
} lane;

static int enter(st_view *v, const st_turns *base, const turn_key *k, uint32_t session, lane *l,
                 st_error *err)
{
    l->lo = l->hi = l->at = 0;
    if (session >= l->t->nsession) {
        return ST_OK;
    }
    l->lo = l->t->first[session];
    l->hi = l->t->first[session + 1];
    for (uint32_t lo = l->lo, hi = l->hi; (l->at = lo) < hi;) {
        uint32_t mid = lo + (hi - lo) / 2;
        turn_key x;
        ST_TRY(view_key(v, base, l->offset + l->t->order[mid], &x, err));
        if (by_key(&x, k) < 0) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return ST_OK;
}

/* The nearest rows of the lane on one side, behind the row itself. */
static void step(const lane *l, const uint64_t *valid, uint64_t row, int back,
                 uint64_t out[ST_TURN_STEPS])
{
    int n = 0;
    for (uint32_t i = l->at; n < ST_TURN_STEPS && (back ? i > l->lo : i < l->hi);
         i += back ? UINT32_MAX : 1) {
        uint64_t r = l->offset + l->t->order[back ? i - 1 : i];
        if (r != row && st_bit_get(valid, r)) {
            out[n++] = r;
        }
    }
    while (n < ST_TURN_STEPS) {
        out[n++] = ST_TURN_NONE64;
    }
}

/* The nearest of those that two lanes have on one side. */
static int merge(st_view *v, const st_turns *base, const uint64_t *a, const uint64_t *b, int back,
                 uint64_t out[ST_TURN_STEPS], st_error *err)
{
    for (int n = 0, i = 0, k = 0; n < ST_TURN_STEPS; n++) {
        turn_key x, y;
        int second = a[i] == ST_TURN_NONE64;
        if (a[i] != ST_TURN_NONE64 && b[k] != ST_TURN_NONE64) {
            ST_TRY(view_key(v, base, a[i], &x, err));
            ST_TRY(view_key(v, base, b[k], &y, err));
            second = (by_key(&x, &y) < 0) == back;
        }
        out[n] = second ? b[k++] : a[i++];
    }
    return ST_OK;
}

int st_turns_around(st_view *v, const st_turns *base, const st_turns *rest, const uint64_t *valid,
                    uint64_t row, st_neighbours *out, st_error *err)
{
    lane one = {.t = base}, two = {.t = rest, .offset = base->nrow};
    int outside = row >= base->nrow;
    uint32_t i = (uint32_t)(row - (outside ? base->nrow : 0));
    uint32_t session = (outside ? rest : base)->session[i];
    uint64_t a[ST_TURN_STEPS], b[ST_TURN_STEPS];
    turn_key k = {0};
    for (int n = 0; n < ST_TURN_STEPS; n++) {
        out->before[n] = out->after[n] = ST_TURN_NONE64;
    }
    if (session == ST_TURN_NONE) {
        return ST_OK;
    }
    lane *own = outside ? &two : &one, *other = outside ? &one : &two;
    own->lo = own->t->first[session];
    own->hi = own->t->first[session + 1];
    own->at = own->t->place[i];
    if (session >= other->t->nsession || !other->t->nrow) {
        step(own, valid, row, 1, out->before);
        step(own, valid, row, 0, out->after);
        return ST_OK;
    }
    ST_TRY(view_key(v, base, row, &k, err));
    ST_TRY(enter(v, base, &k, session, other, err));
    step(own, valid, row, 1, a);
    step(other, valid, row, 1, b);
    ST_TRY(merge(v, base, a, b, 1, out->before, err));
    step(own, valid, row, 0, a);
    step(other, valid, row, 0, b);
    return merge(v, base, a, b, 0, out->after, err);
}

int st_turns_merge(st_view *v, const st_turns *base, uint32_t *row, size_t n, size_t m,
                   st_error *err)
{
    turn_key *k = h5_alloc_array(n + m, sizeof *k);
    int rc = k ? ST_OK : st_nomem(err);
    for (size_t i = 0; i < n + m && !rc; i++) {
        rc = view_key(v, base, row[i], &k[i], err);
        k[i].row = row[i];
    }
    for (size_t at = 0, i = 0, j = n; at < n + m && !rc; at++) {
        row[at] = j == n + m || (i < n && by_key(&k[i], &k[j]) < 0) ? k[i++].row : k[j++].row;
    }
    h5_free(k);
    return rc;
}
