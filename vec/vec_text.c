/*
 * vec_text.c - the inverted index in memory
 *
 * A hash of terms; each term owns a list of chunks of postings, the first for two, every next twice
 * as large up to 256, so that the many rare terms cost little and the few common ones are walked in
 * long strides. Terms and chunks live in an arena and go all at once.
 *
 * A row is added in three steps, so that a failure leaves it out: read the stream and count each
 * term, make room everywhere, enter. Terms that a failed row brought stay behind without postings;
 * they are neither found nor written.
 *
 * The hash is seeded by the index' address: a text cannot be made to collide on purpose.
 *
 * ERRORS   VEC_NOMEM, VEC_FORMAT (no token stream), VEC_LIMIT, VEC_MISUSE (rows out of order)
 * THREADS  one thread at a time while it grows, many while it is only read
 *
 * SPDX-License-Identifier: MIT
 */
#include "vec_run.h"

#define ARENA_BLOCK 65536
#define CHUNK_FIRST 2
#define CHUNK_MAX   256

typedef struct block {
    struct block *next;
    size_t used;
    size_t size;
    uint8_t bytes[];
} block;

typedef struct term {
    uint8_t *s;
    uint32_t n;
    uint32_t hash;
    uint32_t df;
    uint32_t tf;    // in the row being added
    uint32_t last;  // its last position there
    uint32_t at;    // where its next position goes
    uint64_t epoch; // the addition that these belong to
    vec_chunk *head;
    vec_chunk *tail;
} term;

struct vec_text {
    block *arena;
    uint64_t seed;
    uint64_t epoch;
    size_t memory;
    term *terms;
    uint32_t nterm;
    uint32_t term_cap;
    uint32_t *slots; // place in terms + 1; 0 = free
    uint32_t slot_mask;
    uint32_t *touched; // terms of the row being added
    uint32_t ntouched;
    uint32_t touched_cap;
    vec_buf order; // u32 pairs: term and position of each occurrence in the row being added
    vec_buf pos;   // u32: positions of all postings
    uint64_t first;
    uint64_t last;
    uint32_t nrow;
    uint32_t len_max;
    uint64_t len_total;
    uint32_t ext_max;
    uint64_t ext_total;
    vec_buf off; // u32 a row, little-endian: row number minus first
    vec_buf len; // u32 a row, little-endian: positions in the first field
    vec_buf ext; // the same of the other fields
};

int vec_text_new(vec_text **out)
{
    vec_text *t = vec_alloc_zero(1, sizeof *t);

    *out = t;
    if (!t)
        return VEC_NOMEM;
    t->seed = (uint64_t)(uintptr_t)t * UINT64_C(0x9e3779b97f4a7c15);
    t->memory = sizeof *t;
    return VEC_OK;
}

void vec_text_free(vec_text *t)
{
    if (!t)
        return;
    while (t->arena) {
        block *next = t->arena->next;

        vec_free(t->arena);
        t->arena = next;
    }
    vec_free(t->terms);
    vec_free(t->slots);
    vec_free(t->touched);
    vec_buf_free(&t->off);
    vec_buf_free(&t->len);
    vec_buf_free(&t->ext);
    vec_buf_free(&t->order);
    vec_buf_free(&t->pos);
    vec_free(t);
}

uint64_t vec_text_rows(const vec_text *t)
{
    return t->nrow;
}

uint64_t vec_text_bytes(const vec_text *t)
{
    return t->memory + t->term_cap * sizeof *t->terms + t->touched_cap * sizeof *t->touched +
           (t->slots ? ((uint64_t)t->slot_mask + 1) * sizeof *t->slots : 0) + t->off.cap +
           t->len.cap + t->ext.cap + t->order.cap + t->pos.cap;
}

/* n bytes, aligned to 8, for the life of the index. */
static void *arena_get(vec_text *t, size_t n)
{
    block *b = t->arena;
    void *p;

    n = (n + 7) & ~(size_t)7;
    if (!b || b->size - b->used < n) {
        size_t size = n > ARENA_BLOCK ? n : ARENA_BLOCK;

        b = vec_alloc(sizeof *b + size);
        if (!b)
            return NULL;
        *b = (block){t->arena, 0, size};
        t->arena = b;
        t->memory += sizeof *b + size;
    }
    p = b->bytes + b->used;
    b->used += n;
    return p;
}

/* ---------------------------------------------------------------------------------------- terms */

static uint32_t hash(uint64_t seed, const uint8_t *s, uint32_t n)
{
    uint64_t h = seed ^ n;

    for (; n >= 8; s += 8, n -= 8) {
        h = (h ^ vec_get64(s)) * UINT64_C(0xff51afd7ed558ccd);
        h ^= h >> 32;
    }
    for (; n; s++, n--)
        h = (h ^ *s) * UINT64_C(0xff51afd7ed558ccd);
    h ^= h >> 32;
    h *= UINT64_C(0xc4ceb9fe1a85ec53);
    return (uint32_t)(h >> 32);
}

/* The slot of a term, or the free one where it belongs. Needs a free slot. */
static uint32_t *find_slot(const vec_text *t, const uint8_t *s, uint32_t n, uint32_t h)
{
    for (uint32_t i = h;; i++) {
        uint32_t *slot = &t->slots[i & t->slot_mask];
        const term *m;

        if (!*slot)
            return slot;
        m = &t->terms[*slot - 1];
        if (m->hash == h && m->n == n && (n == 0 || memcmp(m->s, s, n) == 0))
            return slot;
    }
}

/* Twice the slots, at most half of them taken. */
static int grow_slots(vec_text *t)
{
    uint32_t count = t->slots ? 2 * (t->slot_mask + 1) : 1024, *old = t->slots, *slots;

    if (count == 0)
        return VEC_LIMIT;
    slots = vec_alloc_zero(count, sizeof *slots);
    if (!slots)
        return VEC_NOMEM;
    t->slots = slots;
    t->slot_mask = count - 1;
    for (uint32_t i = 0; i < t->nterm; i++) {
        uint32_t at = t->terms[i].hash;

        while (slots[at & t->slot_mask])
            at++;
        slots[at & t->slot_mask] = i + 1;
    }
    vec_free(old);
    return VEC_OK;
}

/* Makes room for one more element of an array that doubles. */
static int grow_array(void **p, uint32_t *cap, uint32_t n, size_t size)
{
    uint32_t want = *cap ? 2 * *cap : 64;
    void *q;

    if (n < *cap)
        return VEC_OK;
    if (want <= *cap)
        return VEC_LIMIT;
    if (want > SIZE_MAX / size)
        return VEC_NOMEM;
    q = vec_resize(*p, want * size);
    if (!q)
        return VEC_NOMEM;
    *p = q;
    *cap = want;
    return VEC_OK;
}

/* Finds a term or makes it; *out is its place. */
static int intern(vec_text *t, const uint8_t *s, uint32_t n, uint32_t *out)
{
    uint32_t h = hash(t->seed, s, n), *slot;
    void *terms = t->terms;
    term m = {.n = n, .hash = h};
    int rc;

    if (!t->slots || t->nterm >= (t->slot_mask >> 1)) {
        rc = grow_slots(t);
        if (rc)
            return rc;
    }
    slot = find_slot(t, s, n, h);
    if (*slot) {
        *out = *slot - 1;
        return VEC_OK;
    }
    rc = grow_array(&terms, &t->term_cap, t->nterm, sizeof *t->terms);
    t->terms = terms;
    if (rc)
        return rc;
    m.s = arena_get(t, n);
    if (!m.s)
        return VEC_NOMEM;
    if (n)
        memcpy(m.s, s, n);
    t->terms[t->nterm] = m;
    *out = t->nterm++;
    *slot = t->nterm;
    return VEC_OK;
}

/* ----------------------------------------------------------------------------------------- rows */

/* One occurrence of a term at a position of a field; terms of different fields are different. */
static int count_term(vec_text *t, const uint8_t *s, uint32_t n, uint32_t pos)
{
    void *touched = t->touched;
    uint32_t pair[2] = {0, pos};
    term *m;
    int rc;

    if ((rc = intern(t, s, n, &pair[0])))
        return rc;
    m = &t->terms[pair[0]];
    if (m->epoch == t->epoch && m->last == pos)
        return VEC_OK; // colocated with itself
    if ((rc = vec_buf_add(&t->order, pair, sizeof pair)))
        return rc;
    if (m->epoch != t->epoch) {
        rc = grow_array(&touched, &t->touched_cap, t->ntouched, sizeof *t->touched);
        t->touched = touched;
        if (rc)
            return rc;
        t->touched[t->ntouched++] = pair[0];
        m->epoch = t->epoch;
        m->tf = 0;
    }
    m->tf++;
    m->last = pos;
    return VEC_OK;
}

/* Counts the terms of a stream; len[f] = positions of field f. */
static int count_terms(vec_text *t, const uint8_t *stream, size_t n, uint32_t len[VEC_FIELDS])
{
    uint8_t key[VEC_TERM_MAX];
    unsigned field = 0;
    vec_token tok;
    size_t pos = 0;
    int rc, bad;

    memset(len, 0, VEC_FIELDS * sizeof *len);
    t->ntouched = 0;
    t->order.n = 0;
    t->epoch++;
    while ((rc = vec_token_next(stream, n, &pos, &tok)) == 1) {
        if (vec_token_is_break(&tok)) {
            if (++field == VEC_FIELDS)
                return VEC_FORMAT;
            continue;
        }
        len[field] += !tok.colocated || len[field] == 0;
        bad = count_term(t, key, vec_term_key(key, field, tok.s, tok.n), len[field] - 1);
        if (bad)
            return bad;
    }
    return rc;
}

/* Puts the counted positions behind those of the rows before; room for them was made. */
static void enter_positions(vec_text *t)
{
    uint32_t at = (uint32_t)(t->pos.n / 4);
    const uint32_t *order = (const uint32_t *)(const void *)t->order.p;
    uint32_t *pos = (uint32_t *)(void *)t->pos.p;

    for (uint32_t i = 0; i < t->ntouched; i++) {
        t->terms[t->touched[i]].at = at;
        at += t->terms[t->touched[i]].tf;
    }
    for (size_t i = 0; i < t->order.n / 8; i++)
        pos[t->terms[order[2 * i]].at++] = order[2 * i + 1];
    t->pos.n = 4 * (size_t)at;
}

/* Makes room for one more posting of a term. */
static int reserve(vec_text *t, term *m)
{
    uint32_t cap = CHUNK_FIRST;
    vec_chunk *c;

    if (m->tail && m->tail->n < m->tail->cap)
        return VEC_OK;
    if (m->tail)
        cap = m->tail->cap < CHUNK_MAX ? 2 * m->tail->cap : CHUNK_MAX;
    c = arena_get(t, sizeof *c + cap * sizeof *c->post);
    if (!c)
        return VEC_NOMEM;
    c->next = NULL;
    c->n = 0;
    c->cap = cap;
    if (m->tail)
        m->tail->next = c;
    else
        m->head = c;
    m->tail = c;
    return VEC_OK;
}

/* Room for everything that a counted row needs. */
static int reserve_row(vec_text *t)
{
    int rc;

    if (t->pos.n / 4 + t->order.n / 8 > UINT32_MAX)
        return VEC_LIMIT;
    if ((rc = vec_buf_reserve(&t->off, 4)) || (rc = vec_buf_reserve(&t->len, 4)) ||
        (rc = vec_buf_reserve(&t->ext, 4)) || (rc = vec_buf_reserve(&t->pos, t->order.n / 2)))
        return rc;
    for (uint32_t i = 0; i < t->ntouched; i++)
        if ((rc = reserve(t, &t->terms[t->touched[i]])))
            return rc;
    return VEC_OK;
}

int vec_text_add(vec_text *t, uint64_t row, const uint8_t *stream, size_t n)
{
    uint64_t first = t->nrow ? t->first : row;
    uint32_t len[VEC_FIELDS], ext = 0;
    int rc;

    if (t->nrow && row <= t->last)
        return VEC_MISUSE;
    if (n > VEC_STREAM_BYTES_MAX || row - first > VEC_RUN_SPAN_MAX)
        return VEC_LIMIT;
    if ((rc = count_terms(t, stream, n, len)) || (rc = reserve_row(t)))
        return rc;
    enter_positions(t);
    for (uint32_t i = 0; i < t->ntouched; i++) {
        term *m = &t->terms[t->touched[i]];

        m->tail->post[m->tail->n++] = (vec_post){t->nrow, m->tf, m->at - m->tf};
        m->df++;
    }
    for (unsigned f = 1; f < VEC_FIELDS; f++)
        ext += len[f];
    vec_put32(t->off.p + t->off.n, (uint32_t)(row - first));
    vec_put32(t->len.p + t->len.n, len[0]);
    vec_put32(t->ext.p + t->ext.n, ext);
    t->off.n += 4;
    t->len.n += 4;
    t->ext.n += 4;
    t->first = first;
    t->last = row;
    t->nrow++;
    t->len_total += len[0];
    t->len_max = t->len_max > len[0] ? t->len_max : len[0];
    t->ext_total += ext;
    t->ext_max = t->ext_max > ext ? t->ext_max : ext;
    return VEC_OK;
}

/* ------------------------------------------------------------------------------------ searching */

const vec_part *vec_text_part(const vec_text *t, vec_part *buf)
{
    uint64_t span = t->last - t->first;

    *buf = (vec_part){.first = t->first,
                      .nrow = t->nrow,
                      .span = (uint32_t)span,
                      .len = t->len.p,
                      .len_size = 4,
                      .len_max = t->len_max,
                      .len_total = t->len_total,
                      .ext = t->ext.p,
                      .ext_size = t->ext_max ? 4 : 0,
                      .ext_total = t->ext_total};
    if (t->nrow && span != t->nrow - 1)
        buf->rowoff = t->off.p;
    return buf;
}

static vec_ref ref_of(const vec_text *t, const term *m)
{
    return (vec_ref){.df = m->df, .chunk = m->head, .pos = (const void *)t->pos.p};
}

void vec_text_find(const vec_text *t, const uint8_t *s, uint32_t n, vec_ref *out)
{
    const uint32_t *slot;

    *out = (vec_ref){NULL, 0, 0, NULL, NULL};
    if (!t->slots)
        return;
    slot = find_slot(t, s, n, hash(t->seed, s, n));
    if (*slot && t->terms[*slot - 1].df)
        *out = ref_of(t, &t->terms[*slot - 1]);
}

int vec_text_prefix(const vec_text *t, const uint8_t *s, uint32_t n, vec_each_ref *fn, void *ctx)
{
    int rc = VEC_OK;

    for (uint32_t i = 0; i < t->nterm && !rc; i++) {
        const term *m = &t->terms[i];

        if (m->df && m->n >= n && memcmp(m->s, s, n) == 0) {
            vec_ref ref = ref_of(t, m);

            rc = fn(ctx, &ref);
        }
    }
    return rc;
}

/* ---------------------------------------------------------------------------------------- image */

static int by_bytes(const void *a, const void *b)
{
    const term *x = *(const term *const *)a, *y = *(const term *const *)b;

    return vec_term_cmp(x->s, x->n, y->s, y->n);
}

static int put_term(const vec_text *t, vec_runw *w, const term *m, vec_post *post)
{
    uint32_t n = 0;

    for (const vec_chunk *c = m->head; c; c = c->next) {
        memcpy(post + n, c->post, c->n * sizeof *post);
        n += c->n;
    }
    return vec_runw_term(w, m->s, m->n, post, n, (const void *)t->pos.p, t->len.p);
}

int vec_text_image(const vec_text *t, uint8_t **bytes, size_t *n)
{
    const term **order = vec_alloc_array(t->nterm, sizeof *order);
    vec_post *post = vec_alloc_array(t->nrow, sizeof *post);
    vec_runw w = {0};
    size_t count = 0;
    int rc = VEC_NOMEM;

    *bytes = NULL;
    *n = 0;
    if (!order || !post)
        goto done;
    for (uint32_t i = 0; i < t->nterm; i++)
        if (t->terms[i].df)
            order[count++] = &t->terms[i];
    qsort(order, count, sizeof *order, by_bytes);
    rc = VEC_OK;
    for (size_t i = 0; i < count && !rc; i++)
        rc = put_term(t, &w, order[i], post);
    if (!rc)
        rc = vec_runw_image(&w, t->first, t->nrow, t->off.p, t->len.p, t->ext.p, bytes, n);
done:
    vec_free(order);
    vec_free(post);
    vec_runw_free(&w);
    return rc;
}
