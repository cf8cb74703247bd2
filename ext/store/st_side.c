/*
 * st_side.c - records of the tables beside the rows: their schemas, their bytes, their versions.
 *
 * SPDX-License-Identifier: MIT
 */
#include "st_gen.h"

#include <math.h>

/* ---------------------------------------------------------------------------------- the schemas */

const st_side_def st_side_defs[ST_SIDES] = {
    [ST_SESSIONS] = {"sessions",
                     6,
                     2,
                     4,
                     {{"id", ST_TEXT, 0},
                      {"parent", ST_TEXT, 1},
                      {"start", ST_REAL, 0},
                      {"end", ST_REAL, 1},
                      {"channel", ST_TEXT, 2},
                      {"summary", ST_TEXT, 3}}},
    [ST_EVENTS] = {"events",
                   5,
                   3,
                   2,
                   {{"seq", ST_INT, 0},
                    {"time", ST_REAL, 1},
                    {"kind", ST_TEXT, 0},
                    {"id", ST_INT, 2},
                    {"json", ST_TEXT, 1}}},
};

const char *st_alert_kind(const st_value *kind)
{
    static const char *const kinds[] = {"injection", "rate"};
    for (int i = 0; i < 2 && kind->type == ST_TEXT; i++) {
        if (strlen(kinds[i]) == kind->n && memcmp(kinds[i], kind->p, kind->n) == 0) {
            return kinds[i];
        }
    }
    return NULL;
}

const char *st_side_name(int side)
{
    return st_side_defs[side].name;
}

int st_side_columns(int side)
{
    return st_side_defs[side].ncol;
}

const char *st_side_column_name(int side, int col)
{
    return st_side_defs[side].col[col].name;
}

int st_side_column_type(int side, int col)
{
    return st_side_defs[side].col[col].type;
}

/* ----------------------------------------------------------------------------------------- keys */

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static uint64_t hash_text(const uint8_t *p, size_t n)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++) {
        h = (h ^ p[i]) * 0x100000001b3u;
    }
    return mix(h);
}

static void hash_key(int side, st_key *k)
{
    k->hash = st_side_text_key(side) ? hash_text(k->text.p, k->text.n) : mix((uint64_t)k->i);
}

int st_key_make(int side, const st_value *v, st_key *out, st_error *err)
{
    const st_side_def *d = &st_side_defs[side];
    memset(out, 0, sizeof *out);
    if (v->type != d->col[0].type || (v->type == ST_INT && v->i == ST_INT_NULL)) {
        return st_fail(err, ST_MISUSE, "%s: %s must be %s", d->name, d->col[0].name,
                       d->col[0].type == ST_TEXT ? "text" : "an integer");
    }
    out->i = v->i;
    out->text = (st_span){v->p, v->n};
    hash_key(side, out);
    return ST_OK;
}

st_key st_rec_key(const st_rec *r)
{
    st_key k = {.hash = r->hash};
    if (st_side_text_key(r->side)) {
        k.text = r->text[0];
    } else {
        k.i = r->num[0].i;
    }
    return k;
}

int st_key_same(int side, const st_key *a, const st_key *b)
{
    if (a->hash != b->hash) {
        return 0;
    }
    return st_side_text_key(side)
               ? a->text.n == b->text.n && (!a->text.n || !memcmp(a->text.p, b->text.p, a->text.n))
               : a->i == b->i;
}

/* -------------------------------------------------------------------------------------- records */

static st_rec *rec_alloc(int side, size_t bytes, uint8_t **tail)
{
    const st_side_def *d = &st_side_defs[side];
    size_t nums = (size_t)d->nnum * sizeof(st_num), spans = (size_t)d->ntext * sizeof(st_span);
    st_rec *r = h5_malloc(sizeof *r + nums + spans + bytes);
    if (!r) {
        return NULL;
    }
    memset(r, 0, sizeof *r + nums + spans);
    r->refs = 1;
    r->side = side;
    r->num = (st_num *)(r + 1);
    r->text = (st_span *)(void *)((uint8_t *)r->num + nums);
    *tail = (uint8_t *)r->text + spans;
    return r;
}

/* Texts end in a NUL more: st_schema.h, NULL. */
static void set_text(st_span *to, const void *p, size_t n, uint8_t **tail)
{
    to->p = *tail;
    to->n = n;
    if (n) {
        memcpy(*tail, p, n);
    }
    (*tail)[n] = 0;
    *tail += n + 1;
}

static void set_hash(st_rec *r)
{
    st_key k = st_rec_key(r);
    hash_key(r->side, &k);
    r->hash = k.hash;
}

static int check_value(const st_side_def *d, int col, const st_value *v, st_error *err)
{
    int want = d->col[col].type;
    if (v->type == ST_NULL) {
        return col ? ST_OK
                   : st_fail(err, ST_MISUSE, "%s: %s must not be NULL", d->name, d->col[0].name);
    }
    if (v->type != want && !(want == ST_REAL && v->type == ST_INT)) {
        return st_fail(err, ST_MISUSE, "%s: %s must be %s", d->name, d->col[col].name,
                       want == ST_TEXT  ? "text"
                       : want == ST_INT ? "an integer"
                                        : "a number");
    }
    if (v->type == ST_REAL && !isfinite(v->r)) {
        return st_fail(err, ST_MISUSE, "%s: %s is %g; it must be finite", d->name, d->col[col].name,
                       v->r);
    }
    if (v->type == ST_TEXT && v->n > ST_TEXT_BYTES_MAX) {
        return st_fail(err, ST_LIMIT, "%s: %s has %zu bytes; at most %zu", d->name,
                       d->col[col].name, v->n, ST_TEXT_BYTES_MAX);
    }
    return ST_OK;
}

int st_rec_make(int side, const st_value *v, st_rec **out, st_error *err)
{
    const st_side_def *d = &st_side_defs[side];
    size_t bytes = 0;
    uint8_t *tail;
    st_rec *r;
    *out = NULL;
    for (int c = 0; c < d->ncol; c++) {
        ST_TRY(check_value(d, c, &v[c], err));
        bytes += v[c].type == ST_TEXT ? v[c].n + 1 : 0;
    }
    r = rec_alloc(side, bytes, &tail);
    if (!r) {
        return st_nomem(err);
    }
    for (int c = 0; c < d->ncol; c++) {
        st_num *num = &r->num[d->col[c].at];
        if (d->col[c].type == ST_INT) {
            num->i = v[c].type ? v[c].i : ST_INT_NULL;
        } else if (d->col[c].type == ST_REAL) {
            num->r = v[c].type == ST_INT ? (double)v[c].i : v[c].type ? v[c].r : (double)NAN;
        } else if (v[c].type) {
            set_text(&r->text[d->col[c].at], v[c].p, v[c].n, &tail);
        }
    }
    set_hash(r);
    *out = r;
    return ST_OK;
}

int st_rec_end(int side, const st_key *key, st_rec **out, st_error *err)
{
    uint8_t *tail;
    st_rec *r = rec_alloc(side, key->text.n + 1, &tail);
    *out = r;
    if (!r) {
        return st_nomem(err);
    }
    if (st_side_text_key(side)) {
        set_text(&r->text[0], key->text.p, key->text.n, &tail);
    } else {
        r->num[0].i = key->i;
    }
    r->hash = key->hash;
    r->ended = 1;
    return ST_OK;
}

void st_rec_ref(st_rec *r)
{
    __atomic_add_fetch(&r->refs, 1, __ATOMIC_RELAXED);
}

void st_rec_unref(st_rec *r)
{
    if (r && !__atomic_sub_fetch(&r->refs, 1, __ATOMIC_ACQ_REL)) {
        h5_free(r);
    }
}

void st_rec_value(const st_rec *r, int col, st_value *out)
{
    const st_side_def *d = &st_side_defs[r->side];
    int at = d->col[col].at;
    memset(out, 0, sizeof *out);
    if (d->col[col].type == ST_TEXT) {
        out->type = r->text[at].p ? ST_TEXT : ST_NULL;
        out->p = r->text[at].p;
        out->n = r->text[at].n;
    } else {
        st_side_number(d->col[col].type, r->num[at], out);
    }
}

void st_side_number(int type, st_num num, st_value *out)
{
    int null = type == ST_INT ? num.i == ST_INT_NULL : isnan(num.r);
    memset(out, 0, sizeof *out);
    if (!null) {
        out->type = type;
        out->i = type == ST_INT ? num.i : 0;
        out->r = type == ST_INT ? 0 : num.r;
    }
}

/* ------------------------------------------------------------------------------------- payloads */

enum { PUT_HEAD = 6, DELETE_HEAD = 2 };

int st_rec_encode(const st_rec *r, st_buf *out, st_error *err)
{
    const st_side_def *d = &st_side_defs[r->side];
    uint8_t head[PUT_HEAD];
    st_put16(head, (uint16_t)r->side);
    st_put16(head + 2, (uint16_t)d->nnum);
    st_put16(head + 4, (uint16_t)d->ntext);
    if (r->ended) {
        ST_TRY(st_buf_add(out, head, DELETE_HEAD, err));
        return st_side_text_key(r->side) ? st_buf_add(out, r->text[0].p, r->text[0].n, err)
                                         : st_buf_add(out, &r->num[0].i, 8, err);
    }
    ST_TRY(st_buf_add(out, head, PUT_HEAD, err));
    ST_TRY(st_buf_add(out, r->num, (size_t)d->nnum * sizeof *r->num, err));
    for (int i = 0; i < d->ntext; i++) {
        uint8_t v[10];
        size_t n = st_varint_put(v, r->text[i].p ? (uint64_t)r->text[i].n + 1 : 0);
        ST_TRY(st_buf_add(out, v, n, err));
        ST_TRY(st_buf_add(out, r->text[i].p, r->text[i].n, err));
    }
    return ST_OK;
}

static int wrong_frame(int side, st_error *err)
{
    return st_fail(err, ST_CORRUPT, "a frame of the log does not fit the table %s",
                   st_side_defs[side].name);
}

/* Which table a payload is about. */
static int payload_side(const uint8_t *p, size_t n, int *side, st_error *err)
{
    if (n < 2) {
        return st_fail(err, ST_CORRUPT, "a frame of the log without its table");
    }
    *side = st_get16(p);
    return *side < ST_SIDES
               ? ST_OK
               : st_fail(err, ST_UNSUPPORTED,
                         "the log has a record of table %d, which this version does not know",
                         *side);
}

static int decode_end(int side, const uint8_t *p, size_t n, st_rec **out, st_error *err)
{
    st_key k = {0};
    if (st_side_text_key(side)) {
        k.text = (st_span){p, n};
    } else if (n == 8) {
        k.i = (int64_t)st_get64(p);
    } else {
        return wrong_frame(side, err);
    }
    hash_key(side, &k);
    return st_rec_end(side, &k, out, err);
}

/* Walks the texts; with r also takes them. */
static int walk_texts(int side, const uint8_t *p, size_t n, st_rec *r, uint8_t *tail, size_t *bytes)
{
    size_t pos = 0;
    for (int i = 0; i < st_side_defs[side].ntext; i++) {
        uint64_t len;
        if (!st_varint_get(p, n, &pos, &len) || (len && len - 1 > n - pos)) {
            return 0;
        }
        if (len && r) {
            set_text(&r->text[i], p + pos, (size_t)len - 1, &tail);
        }
        *bytes += (size_t)len;
        pos += len ? (size_t)len - 1 : 0;
    }
    return pos == n;
}

static int decode_put(int side, const uint8_t *p, size_t n, st_rec **out, st_error *err)
{
    const st_side_def *d = &st_side_defs[side];
    size_t nums = (size_t)d->nnum * sizeof(st_num), bytes = 0, unused = 0;
    uint8_t *tail;
    st_rec *r;
    if (n < PUT_HEAD + nums || st_get16(p + 2) != d->nnum || st_get16(p + 4) != d->ntext ||
        !walk_texts(side, p + PUT_HEAD + nums, n - PUT_HEAD - nums, NULL, NULL, &bytes)) {
        return wrong_frame(side, err);
    }
    r = rec_alloc(side, bytes, &tail);
    if (!r) {
        return st_nomem(err);
    }
    memcpy(r->num, p + PUT_HEAD, nums);
    walk_texts(side, p + PUT_HEAD + nums, n - PUT_HEAD - nums, r, tail, &unused);
    if (st_side_text_key(side) ? !r->text[0].p : r->num[0].i == ST_INT_NULL) {
        st_rec_unref(r);
        return wrong_frame(side, err);
    }
    set_hash(r);
    *out = r;
    return ST_OK;
}

int st_rec_decode(int deletes, const uint8_t *p, size_t n, st_rec **out, st_error *err)
{
    int side = 0;
    *out = NULL;
    ST_TRY(payload_side(p, n, &side, err));
    return deletes ? decode_end(side, p + DELETE_HEAD, n - DELETE_HEAD, out, err)
                   : decode_put(side, p, n, out, err);
}

/* ------------------------------------------------------------------------------------- versions */

void st_side_clear(st_side *s)
{
    for (size_t i = 0; i < s->n; i++) {
        st_rec_unref(s->rec[i]);
    }
    s->n = s->nrising = s->nkill = 0;
    s->next = 0;
    st_map_clear(&s->by_hash);
    st_map_clear(&s->killed);
}

void st_side_free(st_side *s)
{
    st_side_clear(s);
    h5_free(s->rec);
    h5_free(s->dead);
    h5_free(s->prev);
    h5_free(s->rising);
    h5_free(s->kill);
    st_map_free(&s->by_hash);
    st_map_free(&s->killed);
    memset(s, 0, sizeof *s);
}

int st_side_room(st_side *s, size_t n, st_error *err)
{
    ST_TRY(st_grow(&s->rec, &s->cap_rec, s->n + n, sizeof(st_rec *), err));
    ST_TRY(st_grow(&s->dead, &s->cap_dead, s->n + n, sizeof *s->dead, err));
    ST_TRY(st_grow(&s->prev, &s->cap_prev, s->n + n, sizeof *s->prev, err));
    ST_TRY(st_grow(&s->rising, &s->cap_rising, s->nrising + n, sizeof *s->rising, err));
    ST_TRY(st_grow(&s->kill, &s->cap_kill, s->nkill + n, sizeof *s->kill, err));
    ST_TRY(st_map_reserve(&s->killed, n, err));
    return st_map_reserve(&s->by_hash, n, err);
}

static int64_t rising_key(const st_side *s, size_t i)
{
    return s->rec[s->rising[i]]->num[0].i;
}

/* The first of the rising ones whose key is at least that one. */
static size_t rising_at(const st_side *s, int64_t key)
{
    size_t lo = 0, hi = s->nrising;
    if (!hi || rising_key(s, hi - 1) < key) {
        return hi;
    }
    // most often there are no gaps
    uint64_t guess = (uint64_t)key - (uint64_t)rising_key(s, 0);
    if (guess < hi && rising_key(s, guess) == key) {
        return guess;
    }
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (rising_key(s, mid) < key) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

size_t st_side_above(const st_side *s, int64_t key)
{
    size_t i = key == INT64_MAX ? s->nrising : rising_at(s, key + 1);
    return i < s->nrising ? s->rising[i] : s->n;
}

/* 1 + the newest version of a key, or 0. */
static uint64_t newest(const st_side *s, int side, int64_t key, uint64_t hash)
{
    uint64_t at = 0;
    size_t i;
    if (st_map_get(&s->by_hash, hash, &at) || st_side_text_key(side)) {
        return at;
    }
    i = rising_at(s, key);
    return i < s->nrising && rising_key(s, i) == key ? s->rising[i] + 1 : 0;
}

void st_side_push(st_side *s, st_rec *r)
{
    int64_t key = st_side_text_key(r->side) ? 0 : r->num[0].i;
    s->rec[s->n] = r;
    s->dead[s->n] = ST_SEQ_NEVER;
    if (!st_side_text_key(r->side) && (!s->nrising || rising_key(s, s->nrising - 1) < key)) {
        s->prev[s->n] = 0;
        s->rising[s->nrising++] = s->n;
    } else {
        s->prev[s->n] = newest(s, r->side, key, r->hash);
        st_map_set(&s->by_hash, r->hash, s->n + 1, NULL);
    }
    s->n++;
    if (!st_side_text_key(r->side) && !r->ended && key >= s->next) {
        s->next = key == INT64_MAX ? INT64_MAX : key + 1;
    }
}

void st_side_pop(st_side *s)
{
    st_rec *r = s->rec[--s->n];
    uint64_t before = s->prev[s->n];
    if (s->nrising && s->rising[s->nrising - 1] == s->n) {
        s->nrising--;
    } else {
        st_map_remove(&s->by_hash, r->hash);
        if (before && newest(s, r->side, r->num[0].i, r->hash) != before) {
            st_map_set(&s->by_hash, r->hash, before, NULL); // there is room: it was there
        }
    }
    st_rec_unref(r);
}

uint64_t st_side_version(const st_side *s, int side, const st_key *key, uint64_t seq)
{
    uint64_t at = newest(s, side, key->i, key->hash);
    for (; at; at = s->prev[at - 1]) {
        st_key k = st_rec_key(s->rec[at - 1]);
        if (s->rec[at - 1]->seq <= seq && st_key_same(side, &k, key)) {
            return at;
        }
    }
    return 0;
}
