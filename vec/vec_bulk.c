/*
 * vec_bulk.c - a text image of many rows at once
 *
 * Nothing is searched here while it grows, so that no postings are kept: a row's occurrences are
 * written down as they come, as pairs of term and position. At the end the terms are sorted, and
 * one pass deals the occurrences out to their terms, in each of which they then stand by row and
 * position, as the writer of images (vec_run_build.c) wants them.
 *
 * The hash holds of a term its first 15 bytes and how many it has, as two numbers in its slot: for
 * nearly all terms they are the term, and to find one takes one line of the cache and two
 * comparisons. Longer ones are compared with their bytes as well. The same two numbers, read with
 * the first byte as the highest, are in the order of terms.
 *
 *   head   bytes 0 to 7, the first the lowest; 0 behind the end
 *   rest   bytes 8 to 14, and as the highest byte the term's length, 255 when above 15
 *
 * The hash is seeded by the builder's address: a text cannot be made to collide on purpose.
 *
 * ERRORS   VEC_NOMEM, VEC_FORMAT (no token stream), VEC_LIMIT, VEC_MISUSE (rows out of order)
 * THREADS  one thread at a time
 *
 * SPDX-License-Identifier: MIT
 */
#include "vec_run.h"

#define SHORT_MAX 15
#define LONG      255u /* length byte of longer terms */
#define FEW       32   /* terms that are sorted by insertion */

typedef struct slot {
    uint64_t head;
    uint64_t rest;
    uint32_t id;  // of the term, plus 1; 0 = free
    uint32_t n;   // occurrences
    uint32_t row; // of the last one, plus 1
    uint32_t pos;
} slot;

typedef struct name {
    size_t at; // in names
    uint32_t n;
} name;

typedef struct occurrence {
    uint32_t term;
    uint32_t pos;
} occurrence;

/* A term to be sorted: its 15 bytes and length with the first byte as the highest. */
typedef struct sorted {
    uint64_t head;
    uint64_t rest;
    const uint8_t *s;
    uint32_t n;
    uint32_t id;
    uint32_t count;
} sorted;

struct vec_bulk {
    uint64_t seed[2];
    slot *slots;
    uint32_t mask; // number of slots minus 1
    uint32_t nterm;
    int failed;
    vec_buf term;  // a name each
    vec_buf names; // bytes
    vec_buf occ;   // occurrences, by row
    vec_buf end;   // u32 a row: occurrences up to its end
    vec_buf off;   // u32 a row, little-endian: row number minus first
    vec_buf len;   // the same: positions in the first field
    vec_buf ext;   // the same: in the other fields
    uint64_t first;
    uint64_t last;
    uint32_t nrow;
};

int vec_bulk_new(vec_bulk **out)
{
    vec_bulk *b = vec_alloc_zero(1, sizeof *b);

    *out = b;
    if (!b)
        return VEC_NOMEM;
    b->seed[0] = (uint64_t)(uintptr_t)b * UINT64_C(0x9e3779b97f4a7c15);
    b->seed[1] = b->seed[0] ^ UINT64_C(0xc4ceb9fe1a85ec53);
    return VEC_OK;
}

void vec_bulk_free(vec_bulk *b)
{
    if (!b)
        return;
    vec_free(b->slots);
    vec_buf_free(&b->term);
    vec_buf_free(&b->names);
    vec_buf_free(&b->occ);
    vec_buf_free(&b->end);
    vec_buf_free(&b->off);
    vec_buf_free(&b->len);
    vec_buf_free(&b->ext);
    vec_free(b);
}

/* ---------------------------------------------------------------------------------------- terms */

/* A term as it is looked up. */
typedef struct key {
    uint64_t head;
    uint64_t rest;
    const uint8_t *s;
    uint32_t n;
} key;

static uint64_t mix(uint64_t x, uint64_t y)
{
    uint64_t h = (x ^ y) * UINT64_C(0xff51afd7ed558ccd);

    return h ^ h >> 32;
}

static uint32_t hash(const vec_bulk *b, const key *k)
{
    uint64_t h = mix(mix(b->seed[0], k->head) + b->seed[1], k->rest);
    uint32_t i = SHORT_MAX;

    if (k->n > SHORT_MAX) {
        for (; k->n - i >= 8; i += 8)
            h = mix(h, vec_get64(k->s + i));
        for (; i < k->n; i++)
            h = mix(h, k->s[i]);
    }
    h *= UINT64_C(0xc4ceb9fe1a85ec53);
    return (uint32_t)(h >> 32);
}

/* Up to eight bytes as a number, the first the lowest. */
static uint64_t bytes_of(const uint8_t *s, uint32_t n)
{
    uint8_t b[8] = {0};

    memcpy(b, s, n < 8 ? n : 8);
    return vec_get64(b);
}

/* Head and rest of n bytes at s, of which room may be read. */
static void key_of(key *k, const uint8_t *s, uint32_t n, size_t room)
{
    uint32_t in = n < SHORT_MAX ? n : SHORT_MAX;

    k->s = s;
    k->n = n;
    if (room >= 16) {
        uint64_t head = vec_get64(s), rest = vec_get64(s + 8);

        k->head = in >= 8 ? head : head & ((UINT64_C(1) << 8 * in) - 1);
        k->rest = in > 8 ? rest & ((UINT64_C(1) << 8 * (in - 8)) - 1) : 0;
    } else {
        k->head = bytes_of(s, in);
        k->rest = in > 8 ? bytes_of(s + 8, in - 8) : 0;
    }
    k->rest |= (uint64_t)(n > SHORT_MAX ? LONG : n) << 56;
}

static const name *name_of(const vec_bulk *b, uint32_t id)
{
    return (const name *)(const void *)b->term.p + id;
}

static int is_term(const vec_bulk *b, const slot *s, const key *k)
{
    const name *m;

    if (s->head != k->head || s->rest != k->rest)
        return 0;
    if (k->n <= SHORT_MAX)
        return 1;
    m = name_of(b, s->id - 1);
    return m->n == k->n && memcmp(b->names.p + m->at, k->s, k->n) == 0;
}

/* Four times the slots, at most half of them taken. */
static int grow(vec_bulk *b)
{
    uint32_t count = b->slots ? 4 * (b->mask + 1) : 4096;
    slot *slots;

    if (count == 0)
        return VEC_LIMIT;
    slots = vec_alloc_zero(count, sizeof *slots);
    if (!slots)
        return VEC_NOMEM;
    for (uint32_t i = 0; b->slots && i <= b->mask; i++) {
        const slot *s = &b->slots[i];
        uint32_t at;
        key k;

        if (!s->id)
            continue;
        k = (key){s->head, s->rest, b->names.p + name_of(b, s->id - 1)->at,
                  name_of(b, s->id - 1)->n};
        for (at = hash(b, &k); slots[at & (count - 1)].id;)
            at++;
        slots[at & (count - 1)] = *s;
    }
    vec_free(b->slots);
    b->slots = slots;
    b->mask = count - 1;
    return VEC_OK;
}

/* A term that is not there yet goes into a free slot. */
static int add_term(vec_bulk *b, const key *k, slot *s)
{
    name m = {b->names.n, k->n};
    int rc = vec_buf_add(&b->names, k->s, k->n);

    if (rc || (rc = vec_buf_add(&b->term, &m, sizeof m)))
        return rc;
    *s = (slot){.head = k->head, .rest = k->rest, .id = ++b->nterm};
    return VEC_OK;
}

/* ----------------------------------------------------------------------------------------- rows */

/* One occurrence; what shares a position with itself counts once. */
static int add_one(vec_bulk *b, const key *k, uint32_t pos)
{
    slot *s;
    int rc;

    if (!b->slots || b->nterm > b->mask >> 1)
        if ((rc = grow(b)))
            return rc;
    for (uint32_t i = hash(b, k);; i++) {
        s = &b->slots[i & b->mask];
        if (!s->id && (rc = add_term(b, k, s)))
            return rc;
        if (is_term(b, s, k))
            break;
    }
    if (s->row == b->nrow + 1 && s->pos == pos)
        return VEC_OK;
    if (b->occ.cap - b->occ.n < sizeof(occurrence) &&
        (rc = vec_buf_reserve(&b->occ, sizeof(occurrence))))
        return rc;
    *(occurrence *)(void *)(b->occ.p + b->occ.n) = (occurrence){s->id - 1, pos};
    b->occ.n += sizeof(occurrence);
    s->n++;
    s->row = b->nrow + 1;
    s->pos = pos;
    return VEC_OK;
}

/* The term of a token; copy has room for VEC_TERM_MAX. */
static void term_of(key *k, unsigned field, const vec_token *tok, size_t room, uint8_t *copy)
{
    const uint8_t *s = (const uint8_t *)tok->s;

    if (field == 0 && tok->n && s[0] >= VEC_FIELDS) {
        key_of(k, s, tok->n, room);
    } else {
        uint32_t n = vec_term_key(copy, field, tok->s, tok->n);

        key_of(k, copy, n, VEC_TERM_MAX);
    }
}

/* As vec_token_next; most tokens are short, with a head of one byte, and are taken here. */
static inline int next_token(const uint8_t *stream, size_t n, size_t *pos, vec_token *out)
{
    size_t at = *pos;

    if (at < n && stream[at] < 0x80 && stream[at] >> 1 < n - at) {
        *out = (vec_token){(const char *)stream + at + 1, stream[at] >> 1, stream[at] & 1};
        *pos = at + 1 + out->n;
        return 1;
    }
    return vec_token_next(stream, n, pos, out);
}

/* The terms of a stream; len[f] = positions of field f. */
static int add_stream(vec_bulk *b, const uint8_t *stream, size_t n, uint32_t len[VEC_FIELDS])
{
    uint8_t copy[VEC_TERM_MAX] = {0};
    unsigned field = 0;
    size_t pos = 0;
    vec_token tok;
    int rc, bad;
    key k;

    memset(len, 0, VEC_FIELDS * sizeof *len);
    while ((rc = next_token(stream, n, &pos, &tok)) == 1) {
        if (vec_token_is_break(&tok)) {
            if (++field == VEC_FIELDS)
                return VEC_FORMAT;
            continue;
        }
        len[field] += !tok.colocated || len[field] == 0;
        term_of(&k, field, &tok, n - pos + tok.n, copy);
        if ((bad = add_one(b, &k, len[field] - 1)))
            return bad;
    }
    return rc;
}

static int add_number(vec_buf *to, uint32_t v)
{
    uint8_t b[4];

    vec_put32(b, v);
    return vec_buf_add(to, b, sizeof b);
}

static int add_row(vec_bulk *b, uint64_t row, const uint8_t *stream, size_t n)
{
    uint32_t len[VEC_FIELDS], ext = 0, end;
    int rc;

    if (b->failed || (b->nrow && row <= b->last))
        return VEC_MISUSE;
    if (b->nrow == 0)
        b->first = row;
    if (n > VEC_STREAM_BYTES_MAX || row - b->first > VEC_RUN_SPAN_MAX)
        return VEC_LIMIT;
    if ((rc = add_stream(b, stream, n, len)))
        return rc;
    if (b->occ.n / sizeof(occurrence) > UINT32_MAX)
        return VEC_LIMIT;
    end = (uint32_t)(b->occ.n / sizeof(occurrence));
    for (unsigned f = 1; f < VEC_FIELDS; f++)
        ext += len[f];
    if ((rc = vec_buf_add(&b->end, &end, sizeof end)) ||
        (rc = add_number(&b->off, (uint32_t)(row - b->first))) ||
        (rc = add_number(&b->len, len[0])) || (rc = add_number(&b->ext, ext)))
        return rc;
    b->last = row;
    b->nrow++;
    return VEC_OK;
}

int vec_bulk_add(vec_bulk *b, uint64_t row, const uint8_t *stream, size_t n)
{
    int rc = add_row(b, row, stream, n);

    b->failed |= rc != VEC_OK;
    return rc;
}

/* ---------------------------------------------------------------------------------------- order */

static int before(const sorted *x, const sorted *y)
{
    if (x->head != y->head)
        return x->head < y->head;
    if (x->rest != y->rest)
        return x->rest < y->rest;
    return vec_term_cmp(x->s, x->n, y->s, y->n) < 0;
}

static int by_bytes(const void *a, const void *b)
{
    const sorted *x = a, *y = b;

    return vec_term_cmp(x->s, x->n, y->s, y->n);
}

static unsigned digit(const sorted *x, unsigned at)
{
    uint64_t v = at < 8 ? x->head : x->rest;

    return v >> (56 - 8 * (at & 7)) & 255;
}

static void insert_all(sorted *x, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        sorted one = x[i];
        size_t j = i;

        for (; j && before(&one, &x[j - 1]); j--)
            x[j] = x[j - 1];
        x[j] = one;
    }
}

/* By byte after byte, each part by the next one; with room for as many. */
static void sort_terms(sorted *x, sorted *room, size_t n, unsigned at)
{
    for (; n > FEW && at < 16; at++) {
        size_t start[257] = {0}, to[256];

        for (size_t i = 0; i < n; i++)
            start[digit(&x[i], at) + 1]++;
        if (start[digit(&x[0], at) + 1] == n)
            continue; // the same in all
        for (size_t d = 1; d <= 256; d++)
            start[d] += start[d - 1];
        memcpy(to, start, sizeof to);
        for (size_t i = 0; i < n; i++)
            room[to[digit(&x[i], at)]++] = x[i];
        memcpy(x, room, n * sizeof *x);
        for (size_t d = 0; d < 256; d++)
            sort_terms(x + start[d], room + start[d], start[d + 1] - start[d], at + 1);
        return;
    }
    if (n > FEW)
        qsort(x, n, sizeof *x, by_bytes); // long terms that begin alike
    else
        insert_all(x, n);
}

/* All terms in order; the caller frees. */
static sorted *terms_in_order(const vec_bulk *b)
{
    sorted *x = vec_alloc_array(b->nterm, 2 * sizeof *x);
    size_t n = 0;

    for (uint32_t i = 0; x && b->slots && i <= b->mask; i++) {
        const slot *s = &b->slots[i];
        const name *m;

        if (!s->id)
            continue;
        m = name_of(b, s->id - 1);
        x[n++] = (sorted){__builtin_bswap64(s->head),
                          __builtin_bswap64(s->rest & (UINT64_MAX >> 8)) | s->rest >> 56,
                          b->names.p + m->at,
                          m->n,
                          s->id - 1,
                          s->n};
    }
    if (x)
        sort_terms(x, x + n, n, 0);
    return x;
}

/* ---------------------------------------------------------------------------------------- image */

typedef struct dealt {
    uint32_t *row;  // ordinal of an occurrence
    uint32_t *pos;  // its position
    uint32_t *next; // by term: where its next occurrence goes
    vec_post *post; // of one term
} dealt;

/* Puts each term's occurrences together, in the order of terms. */
static void deal(const vec_bulk *b, const sorted *term, dealt *d)
{
    const occurrence *occ = (const void *)b->occ.p;
    const uint32_t *end = (const void *)b->end.p;
    uint32_t at = 0;

    for (uint32_t i = 0; i < b->nterm; i++) {
        d->next[term[i].id] = at;
        at += term[i].count;
    }
    at = 0;
    for (uint32_t row = 0; row < b->nrow; row++) {
        for (; at < end[row]; at++) {
            uint32_t to = d->next[occ[at].term]++;

            d->row[to] = row;
            d->pos[to] = occ[at].pos;
        }
    }
}

static int put_terms(const vec_bulk *b, const sorted *term, dealt *d, vec_runw *w)
{
    uint32_t at = 0;
    int rc = VEC_OK;

    deal(b, term, d);
    for (uint32_t i = 0; i < b->nterm && !rc; i++) {
        uint32_t end = at + term[i].count, df = 0;

        while (at < end) {
            vec_post *p = &d->post[df++];

            *p = (vec_post){d->row[at], 0, at};
            while (at < end && d->row[at] == p->ord)
                at++;
            p->tf = at - p->at;
        }
        rc = vec_runw_term(w, term[i].s, term[i].n, d->post, df, d->pos, b->len.p);
    }
    return rc;
}

int vec_bulk_image(const vec_bulk *b, uint8_t **bytes, size_t *n)
{
    size_t count = b->occ.n / sizeof(occurrence);
    sorted *term = b->failed ? NULL : terms_in_order(b);
    dealt d = {vec_alloc_array(count, sizeof *d.row), vec_alloc_array(count, sizeof *d.pos),
               vec_alloc_array(b->nterm, sizeof *d.next), vec_alloc_array(b->nrow, sizeof *d.post)};
    vec_runw w = {0};
    int rc = b->failed ? VEC_MISUSE : VEC_NOMEM;

    *bytes = NULL;
    *n = 0;
    if (term && d.row && d.pos && d.next && d.post)
        rc = put_terms(b, term, &d, &w);
    if (!rc)
        rc = vec_runw_image(&w, b->first, b->nrow, b->off.p, b->len.p, b->ext.p, bytes, n);
    vec_free(term);
    vec_free(d.row);
    vec_free(d.pos);
    vec_free(d.next);
    vec_free(d.post);
    vec_runw_free(&w);
    return rc;
}
