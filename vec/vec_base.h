/*
 * vec_base.h - the ground of vec: allocation, checked sizes, little-endian bytes, variable-length
 * numbers, a growing buffer
 *
 * OWNERSHIP  what vec_alloc, vec_resize and the buffer hand out is released with vec_free
 * ERRORS     allocation answers NULL, the buffer VEC_NOMEM
 * THREADS    the allocator is set before any thread starts; the rest has no state
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef VEC_BASE_H
#define VEC_BASE_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "vec.h"
#include "vec_limits.h"

/* n bytes, uninitialised. NULL on failure; n = 0 gives a pointer, too. */
void *vec_alloc(size_t n);
/* n * size bytes; NULL on failure and on overflow. */
void *vec_alloc_array(size_t n, size_t size);
/* The same, zeroed. */
void *vec_alloc_zero(size_t n, size_t size);
/* Like realloc; on failure p stays as it was. */
void *vec_resize(void *p, size_t n);

/* Nothing in vec calls the C library's allocation by itself: what it allocates must be countable
 * and able to fail. */
#if defined(__GNUC__) && !defined(VEC_ALLOW_MALLOC)
#pragma GCC poison malloc calloc realloc free
#endif

/* ---------------------------------------------------------------------------------------- bytes */

/* Any alignment. On a little-endian machine each is one load. */
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define VEC_GET(v, p) memcpy(&(v), p, sizeof(v))
#else
#define VEC_GET(v, p)                                                                              \
    for (size_t i_ = sizeof(v); i_-- > 0;)                                                         \
    (v) = (v) << 8 | (p)[i_]
#endif

static inline uint32_t vec_get16(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static inline uint32_t vec_get32(const uint8_t *p)
{
    uint32_t v = 0;

    VEC_GET(v, p);
    return v;
}

static inline uint64_t vec_get64(const uint8_t *p)
{
    uint64_t v = 0;

    VEC_GET(v, p);
    return v;
}

static inline void vec_put16(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}

static inline void vec_put32(uint8_t *p, uint32_t v)
{
    vec_put16(p, v);
    vec_put16(p + 2, v >> 16);
}

static inline void vec_put64(uint8_t *p, uint64_t v)
{
    vec_put32(p, (uint32_t)v);
    vec_put32(p + 4, (uint32_t)(v >> 32));
}

/* Unsigned LEB128 of a 32-bit number, shortest form only. */
#define VEC_VARINT_MAX 5

/* Reads one at p; returns its bytes (1..5), or 0 when it does not end before end, is too long or
 * not the shortest form. */
static inline size_t vec_get_varint(const uint8_t *p, const uint8_t *end, uint32_t *out)
{
    uint64_t v = 0;

    *out = 0;
    for (size_t i = 0; i < VEC_VARINT_MAX && p + i < end; i++) {
        v |= (uint64_t)(p[i] & 0x7f) << (7 * i);
        if (p[i] & 0x80)
            continue;
        if ((i > 0 && p[i] == 0) || v > UINT32_MAX)
            return 0;
        *out = (uint32_t)v;
        return i + 1;
    }
    return 0;
}

/* Writes one at p (room for VEC_VARINT_MAX bytes); returns its bytes. */
static inline size_t vec_put_varint(uint8_t *p, uint32_t v)
{
    size_t n = 0;

    while (v >= 0x80) {
        p[n++] = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    p[n++] = (uint8_t)v;
    return n;
}

/* --------------------------------------------------------------------------------------- buffer */

/* A growing array of bytes; all zero is an empty one. */
typedef struct vec_buf {
    uint8_t *p;
    size_t n;
    size_t cap;
} vec_buf;

/* Makes room for extra more bytes behind the n in use; VEC_OK or VEC_NOMEM, and then nothing
 * changed. */
int vec_buf_reserve(vec_buf *b, size_t extra);
/* Appends n bytes. */
int vec_buf_add(vec_buf *b, const void *p, size_t n);
void vec_buf_free(vec_buf *b);

/* Asks for the line of the cache that p lies in. */
static inline void vec_prefetch(const void *p)
{
    __builtin_prefetch(p);
}

#endif
