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
    while (k->bits >= 8) {
        *k->p++ = (uint8_t)k->held;
        k->held >>= 8;
        k->bits -= 8;
    }
}

static void pack_end(packer *k)
{
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
    for (uint32_t i = 0; i < n; i++) {
        pack(&k, post[i].ord - at, p[0]);
        at = post[i].ord + 1;
    }
    pack_end(&k);
    for (uint32_t i = 0; i < n; i++)
        pack(&k, post[i].tf - 1, p[1]);
    pack_end(&k);
    return (size_t)(k.p - p);
}

static int put_postings(vec_buf *b, const vec_post *post, uint32_t df)
{
    uint32_t nblock = (df - 1) / VEC_BLOCK_POSTINGS + 1;
    size_t skips, start;
    int rc = vec_buf_reserve(b, VEC_VARINT_MAX + 8 * (size_t)nblock);

    if (rc)
        return rc;
    b->n += vec_put_varint(b->p + b->n, df);
    skips = b->n;
    if (nblock > 1)
        b->n += 8 * (size_t)nblock;
    start = b->n;
    for (uint32_t i = 0; i < nblock; i++) {
        uint32_t from = i * VEC_BLOCK_POSTINGS;
        uint32_t n = df - from < VEC_BLOCK_POSTINGS ? df - from : VEC_BLOCK_POSTINGS;

        rc = vec_buf_reserve(b, BLOCK_MAX);
        if (rc)
            return rc;
        b->n += put_block(b->p + b->n, post + from, n, from ? post[from - 1].ord + 1 : 0);
        if (b->n > VEC_RUN_BYTES_MAX)
            return VEC_LIMIT;
        if (nblock == 1)
            continue;
        vec_put32(b->p + skips + 8 * (size_t)i, post[from + n - 1].ord);
        vec_put32(b->p + skips + 8 * (size_t)i + 4, (uint32_t)(b->n - start));
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

int vec_runw_term(vec_runw *w, const uint8_t *s, uint32_t n, const vec_post *post, uint32_t df)
{
    int rc;

    assert(df >= 1 && n <= VEC_TOKEN_MAX);
    if ((rc = put_offset(&w->term_off, w->terms.n)) ||
        (rc = put_offset(&w->post_off, w->posts.n)) || (rc = vec_buf_add(&w->terms, s, n)) ||
        (rc = put_postings(&w->posts, post, df)))
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

int vec_runw_image(vec_runw *w, uint64_t first, uint32_t nrow, const uint8_t *off,
                   const uint8_t *len, uint8_t **bytes, size_t *n)
{
    uint32_t span = nrow ? vec_get32(off + 4 * ((size_t)nrow - 1)) : 0, max = 0;
    int gaps = nrow && span != nrow - 1, rc;
    uint64_t total = 0, size;
    unsigned len_size;
    uint8_t *p;

    *bytes = NULL;
    *n = 0;
    if ((rc = put_offset(&w->term_off, w->terms.n)) || (rc = put_offset(&w->post_off, w->posts.n)))
        return rc;
    for (uint32_t i = 0; i < nrow; i++) {
        uint32_t l = vec_get32(len + 4 * (size_t)i);

        total += l;
        max = max > l ? max : l;
    }
    len_size = max < 256 ? 1 : max < 65536 ? 2 : 4;
    size = VEC_RUN_HEADER + (uint64_t)nrow * ((gaps ? 4 : 0) + len_size) + w->term_off.n +
           w->post_off.n + w->terms.n + w->posts.n + VEC_RUN_TAIL;
    if (size > VEC_RUN_BYTES_MAX)
        return VEC_LIMIT;
    p = *bytes = vec_alloc((size_t)size);
    if (!p)
        return VEC_NOMEM;
    *n = (size_t)size;
    memset(p, 0, VEC_RUN_HEADER);
    memcpy(p, VEC_RUN_MAGIC, 8);
    vec_put32(p + 8, 1);
    vec_put32(p + 12, len_size);
    vec_put64(p + 16, nrow ? first : 0);
    vec_put32(p + 24, nrow);
    vec_put32(p + 28, span);
    vec_put64(p + 32, total);
    vec_put32(p + 40, max);
    vec_put32(p + 44, w->nterm);
    vec_put32(p + 48, (uint32_t)w->terms.n);
    vec_put32(p + 52, (uint32_t)w->posts.n);
    p += VEC_RUN_HEADER;
    if (gaps) {
        memcpy(p, off, 4 * (size_t)nrow);
        p += 4 * (size_t)nrow;
    }
    p = put_lengths(p, len, nrow, len_size);
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
