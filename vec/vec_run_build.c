/*
 * vec_run_build.c - writing a text image, term by term
 *
 * Terms come in ascending order and go to growing buffers; the image is put together at the end,
 * when the sizes are known.
 *
 * FORMAT   in vec_run.h
 * ERRORS   VEC_NOMEM, VEC_LIMIT (more bytes than 32-bit offsets address)
 * THREADS  one thread at a time
 *
 * SPDX-License-Identifier: MIT
 */
#include <assert.h>

#include "vec_run.h"

static unsigned width(uint32_t v)
{
    return v ? 32 - (unsigned)__builtin_clz(v) : 0;
}

/* Packs numbers of a fixed width, lowest bit first. */
typedef struct packer {
    uint8_t *p;
    uint64_t held;
    unsigned bits;
} packer;

static void pack(packer *k, uint32_t v, unsigned bits)
{
    k->held |= (uint64_t)v << k->bits;
    k->bits += bits;
    if (k->bits >= 32) {
        vec_put32(k->p, (uint32_t)k->held);
        k->p += 4;
        k->held >>= 32;
        k->bits -= 32;
    }
}

static void pack_end(packer *k)
{
    for (; k->bits >= 8; k->bits -= 8, k->held >>= 8)
        *k->p++ = (uint8_t)k->held;
    if (k->bits)
        *k->p++ = (uint8_t)k->held;
    k->held = 0;
    k->bits = 0;
}

/* Most bytes a block can take: two widths and 128 numbers of 32 bits, twice. */
#define BLOCK_MAX (2 + 2 * 4 * VEC_BLOCK_POSTINGS)

/* Writes one block at p and returns its bytes; before = the ordinal before it plus 1. */
static size_t put_block(uint8_t *p, const vec_post *post, uint32_t n, uint32_t before)
{
    uint32_t deltas = 0, counts = 0, at = before;
    packer k = {p + 2, 0, 0};

    for (uint32_t i = 0; i < n; i++) {
        assert(post[i].ord >= at && post[i].tf >= 1);
        deltas |= post[i].ord - at;
        counts |= post[i].tf - 1;
        at = post[i].ord + 1;
    }
    p[0] = (uint8_t)width(deltas);
    p[1] = (uint8_t)width(counts);
    at = before;
    for (uint32_t i = 0; p[0] && i < n; i++) {
        pack(&k, post[i].ord - at, p[0]);
        at = post[i].ord + 1;
    }
    pack_end(&k);
    for (uint32_t i = 0; p[1] && i < n; i++)
        pack(&k, post[i].tf - 1, p[1]);
    pack_end(&k);
    return (size_t)(k.p - p);
}

/* ------------------------------------------------------------------------------------ positions */

/* Writes the positions of n postings; room for them was made. */
static size_t put_positions(uint8_t *p, const vec_post *post, uint32_t n, const uint32_t *pos,
                            unsigned bits)
{
    packer k = {p + 1, 0, 0};

    p[0] = (uint8_t)bits;
    for (uint32_t i = 0; bits && i < n; i++) {
        uint32_t before = 0;

        for (uint32_t j = 0; j < post[i].tf; j++) {
            pack(&k, pos[post[i].at + j] - before, bits);
            before = pos[post[i].at + j];
        }
    }
    pack_end(&k);
    return (size_t)(k.p - p);
}

static int add_positions(vec_buf *b, const vec_post *post, uint32_t n, const uint32_t *pos)
{
    uint32_t all = 0;
    uint64_t count = 0;
    unsigned bits;
    int rc;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t before = 0;

        for (uint32_t j = 0; j < post[i].tf; j++) {
            assert(j == 0 || pos[post[i].at + j] > before);
            all |= pos[post[i].at + j] - before;
            before = pos[post[i].at + j];
        }
        count += post[i].tf;
    }
    bits = width(all);
    if (count * bits / 8 > VEC_RUN_BYTES_MAX)
        return VEC_LIMIT;
    rc = vec_buf_reserve(b, (size_t)(count * bits / 8) + 2);
    if (!rc)
        b->n += put_positions(b->p + b->n, post, n, pos, bits);
    return rc;
}

/* --------------------------------------------------------------------------------------- maxima */

typedef struct pair {
    uint8_t tf;
    uint8_t len;
} pair;

/* The pairs that no other beats, most occurrences first; merged to the least loss where there are
 * too many. */
static void put_maxima(uint8_t *p, const vec_post *post, uint32_t n, const uint8_t *len)
{
    uint8_t least[256]; // length, by count
    pair all[VEC_BLOCK_POSTINGS];
    uint32_t kept = 0, most = 0;

    memset(least, 255, sizeof least);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t l = vec_get32(len + 4 * (size_t)post[i].ord);
        uint32_t tf = post[i].tf < 255 ? post[i].tf : 255;

        l = l < 255 ? l : 255;
        least[tf] = (uint8_t)(l < least[tf] ? l : least[tf]);
        most = most > tf ? most : tf;
    }
    for (uint32_t tf = most; tf > 0; tf--)
        if (kept == 0 || least[tf] < all[kept - 1].len)
            all[kept++] = (pair){(uint8_t)tf, least[tf]};
    while (kept > VEC_MAXIMA) {
        // Scores grow slowly with the count and quickly as rows get short: join the neighbours
        // whose lengths differ least.
        uint32_t at = 0;

        for (uint32_t i = 1; i + 1 < kept; i++)
            if (all[i].len - all[i + 1].len < all[at].len - all[at + 1].len)
                at = i;
        all[at].len = all[at + 1].len;
        memmove(all + at + 1, all + at + 2, (kept - at - 2) * sizeof *all);
        kept--;
    }
    memset(p, 0, 2 * VEC_MAXIMA);
    for (uint32_t i = 0; i < kept; i++) {
        p[2 * i] = all[i].tf;
        p[2 * i + 1] = all[i].len;
    }
}

/* --------------------------------------------------------------------------------------- images */

/* Blocks first, then their positions. */
static int put_postings(vec_buf *b, const vec_post *post, uint32_t df, const uint32_t *pos,
                        const uint8_t *len)
{
    uint32_t nblock = (df - 1) / VEC_BLOCK_POSTINGS + 1;
    size_t skips, start;
    int rc = vec_buf_reserve(b, VEC_VARINT_MAX + VEC_SKIP_BYTES * (size_t)nblock);

    if (rc)
        return rc;
    b->n += vec_put_varint(b->p + b->n, df);
    skips = b->n;
    if (nblock > 1)
        b->n += VEC_SKIP_BYTES * (size_t)nblock;
    start = b->n;
    for (uint32_t i = 0; i < 2 * nblock; i++) {
        uint32_t block = i % nblock, from = block * VEC_BLOCK_POSTINGS;
        uint32_t n = df - from < VEC_BLOCK_POSTINGS ? df - from : VEC_BLOCK_POSTINGS;
        uint8_t *skip;

        if (i == nblock)
            start = b->n;
        rc = i < nblock ? vec_buf_reserve(b, BLOCK_MAX) : add_positions(b, post + from, n, pos);
        if (rc)
            return rc;
        if (i < nblock)
            b->n += put_block(b->p + b->n, post + from, n, from ? post[from - 1].ord + 1 : 0);
        if (b->n > VEC_RUN_BYTES_MAX)
            return VEC_LIMIT;
        if (nblock == 1)
            continue;
        skip = b->p + skips + VEC_SKIP_BYTES * (size_t)block;
        vec_put32(skip + (i < nblock ? 4 : 8), (uint32_t)(b->n - start));
        if (i < nblock) {
            vec_put32(skip, post[from + n - 1].ord);
            put_maxima(skip + 12, post + from, n, len);
        }
    }
    return VEC_OK;
}

/* Appends where the next thing will start. */
static int put_offset(vec_buf *offsets, size_t at)
{
    uint8_t b[4];

    if (at > VEC_RUN_BYTES_MAX)
        return VEC_LIMIT;
    vec_put32(b, (uint32_t)at);
    return vec_buf_add(offsets, b, sizeof b);
}

int vec_runw_term(vec_runw *w, const uint8_t *s, uint32_t n, const vec_post *post, uint32_t df,
                  const uint32_t *pos, const uint8_t *len)
{
    int rc;

    assert(df >= 1 && n <= VEC_TERM_MAX);
    if ((rc = put_offset(&w->term_off, w->terms.n)) ||
        (rc = put_offset(&w->post_off, w->posts.n)) || (rc = vec_buf_add(&w->terms, s, n)) ||
        (rc = put_postings(&w->posts, post, df, pos, len)))
        return rc;
    w->nterm++;
    return VEC_OK;
}

static uint8_t *append(uint8_t *p, const vec_buf *b)
{
    if (b->n)
        memcpy(p, b->p, b->n);
    return p + b->n;
}

static uint8_t *put_lengths(uint8_t *p, const uint8_t *len, uint32_t nrow, unsigned size)
{
    for (uint32_t i = 0; i < nrow; i++) {
        memcpy(p, len + 4 * (size_t)i, size); // little-endian: the low bytes come first
        p += size;
    }
    return p;
}

/* Lengths of nrow rows: their sum, the largest, and the bytes that one needs. */
typedef struct lengths {
    uint64_t total;
    uint32_t max;
    unsigned size;
} lengths;

static lengths sum_lengths(const uint8_t *len, uint32_t nrow)
{
    lengths s = {0};

    for (uint32_t i = 0; i < nrow; i++) {
        uint32_t l = vec_get32(len + 4 * (size_t)i);

        s.total += l;
        s.max = s.max > l ? s.max : l;
    }
    s.size = s.max < 256 ? 1 : s.max < 65536 ? 2 : 4;
    return s;
}

static void put_header(uint8_t *p, const vec_runw *w, uint64_t first, uint32_t nrow, uint32_t span,
                       const lengths *len, const lengths *ext)
{
    memset(p, 0, VEC_RUN_HEADER);
    memcpy(p, VEC_RUN_MAGIC, 8);
    vec_put32(p + 8, VEC_RUN_VERSION);
    vec_put32(p + 12, len->size);
    vec_put64(p + 16, nrow ? first : 0);
    vec_put32(p + 24, nrow);
    vec_put32(p + 28, span);
    vec_put64(p + 32, len->total);
    vec_put32(p + 40, len->max);
    vec_put32(p + 44, w->nterm);
    vec_put32(p + 48, (uint32_t)w->terms.n);
    vec_put32(p + 52, (uint32_t)w->posts.n);
    vec_put32(p + 56, ext->size);
    vec_put32(p + 60, ext->max);
    vec_put64(p + 64, ext->total);
}

int vec_runw_image(vec_runw *w, uint64_t first, uint32_t nrow, const uint8_t *off,
                   const uint8_t *len, const uint8_t *ext, uint8_t **bytes, size_t *n)
{
    uint32_t span = nrow ? vec_get32(off + 4 * ((size_t)nrow - 1)) : 0;
    int gaps = nrow && span != nrow - 1, rc;
    lengths l = sum_lengths(len, nrow), e = sum_lengths(ext, nrow);
    uint64_t size;
    uint8_t *p;

    *bytes = NULL;
    *n = 0;
    if ((rc = put_offset(&w->term_off, w->terms.n)) || (rc = put_offset(&w->post_off, w->posts.n)))
        return rc;
    e.size = e.max ? e.size : 0;
    size = VEC_RUN_HEADER + (uint64_t)nrow * ((gaps ? 4 : 0) + l.size + e.size) + w->term_off.n +
           w->post_off.n + w->terms.n + w->posts.n + VEC_RUN_TAIL;
    if (size > VEC_RUN_BYTES_MAX)
        return VEC_LIMIT;
    p = *bytes = vec_alloc((size_t)size);
    if (!p)
        return VEC_NOMEM;
    *n = (size_t)size;
    put_header(p, w, first, nrow, span, &l, &e);
    p += VEC_RUN_HEADER;
    if (gaps) {
        memcpy(p, off, 4 * (size_t)nrow);
        p += 4 * (size_t)nrow;
    }
    p = put_lengths(p, len, nrow, l.size);
    p = put_lengths(p, ext, nrow, e.size);
    p = append(append(append(append(p, &w->term_off), &w->post_off), &w->terms), &w->posts);
    memset(p, 0, VEC_RUN_TAIL);
    assert(p + VEC_RUN_TAIL == *bytes + *n);
    return VEC_OK;
}

void vec_runw_free(vec_runw *w)
{
    vec_buf_free(&w->term_off);
    vec_buf_free(&w->post_off);
    vec_buf_free(&w->terms);
    vec_buf_free(&w->posts);
}
