/*
 * h5_cur.h - bounded little-endian reading with sticky failure, and a growing buffer for writing
 *
 * All bytes that come from a file are taken through h5_cur. A read beyond the end gives 0, sets
 * `bad` and stays there, so a decoder reads a whole structure and tests once. Nothing outside this
 * header moves a pointer through file bytes. h5_buf is its counterpart: bytes are appended
 * little-endian, a failed allocation sets `bad` and further appends do nothing.
 *
 * OWNERSHIP  h5_cur borrows its bytes; h5_buf owns them until h5_buf_free. A zeroed h5_buf is empty
 *            and valid.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef H5_CUR_H
#define H5_CUR_H

#include "h5_base.h"

static inline uint16_t h5_get16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t h5_get32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t h5_get64(const uint8_t *p)
{
    return (uint64_t)h5_get32(p) | (uint64_t)h5_get32(p + 4) << 32;
}

static inline void h5_set16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}

static inline void h5_set32(uint8_t *p, uint32_t v)
{
    h5_set16(p, (uint16_t)v);
    h5_set16(p + 2, (uint16_t)(v >> 16));
}

static inline void h5_set64(uint8_t *p, uint64_t v)
{
    h5_set32(p, (uint32_t)v);
    h5_set32(p + 4, (uint32_t)(v >> 32));
}

/* ------------------------------------------------------------------------------------- reading */

typedef struct h5_cur {
    const uint8_t *p;
    size_t left;
    int bad; /* a read went beyond the end */
} h5_cur;

static inline h5_cur h5_cur_on(const void *p, size_t n)
{
    h5_cur c = {p, n, 0};
    return c;
}

/* The next n bytes, or NULL (and bad) when fewer are left. n == 0 gives a pointer that must not be
** read. */
static inline const uint8_t *h5_cur_take(h5_cur *c, size_t n)
{
    if (c->bad || n > c->left) {
        c->bad = 1;
        c->left = 0;
        return NULL;
    }
    const uint8_t *p = c->p;
    c->p += n;
    c->left -= n;
    return p;
}

static inline uint8_t h5_cur_u8(h5_cur *c)
{
    const uint8_t *p = h5_cur_take(c, 1);
    return p ? *p : 0;
}

static inline uint16_t h5_cur_u16(h5_cur *c)
{
    const uint8_t *p = h5_cur_take(c, 2);
    return p ? h5_get16(p) : 0;
}

static inline uint32_t h5_cur_u32(h5_cur *c)
{
    const uint8_t *p = h5_cur_take(c, 4);
    return p ? h5_get32(p) : 0;
}

static inline uint64_t h5_cur_u64(h5_cur *c)
{
    const uint8_t *p = h5_cur_take(c, 8);
    return p ? h5_get64(p) : 0;
}

/* An unsigned number of `width` bytes, 1 to 8; any other width is bad. */
static inline uint64_t h5_cur_uint(h5_cur *c, unsigned width)
{
    if (width < 1 || width > 8)
        c->bad = 1;
    const uint8_t *p = h5_cur_take(c, width);
    uint64_t v = 0;
    for (unsigned i = width; p && i > 0; i--)
        v = v << 8 | p[i - 1];
    return v;
}

/* 1 when the next bytes are the four of sig, which are then taken. */
static inline int h5_cur_sig(h5_cur *c, const char *sig)
{
    const uint8_t *p = h5_cur_take(c, 4);
    return p && memcmp(p, sig, 4) == 0;
}

/* ------------------------------------------------------------------------------------- writing */

typedef struct h5_buf {
    uint8_t *p;
    size_t n, cap;
    int bad; /* an allocation failed */
} h5_buf;

static inline void h5_buf_free(h5_buf *b)
{
    h5_free(b->p);
    memset(b, 0, sizeof *b);
}

/* Room for n more bytes at the end, counted as used; NULL (and bad) without memory. */
static inline uint8_t *h5_buf_room(h5_buf *b, size_t n)
{
    if (b->bad || n > SIZE_MAX / 2 - b->n) {
        b->bad = 1;
        return NULL;
    }
    if (b->n + n > b->cap) {
        size_t cap = b->cap * 2 > b->n + n ? b->cap * 2 : b->n + n;
        cap = cap < 256 ? 256 : cap;
        uint8_t *p = h5_realloc(b->p, cap);
        if (!p) {
            b->bad = 1;
            return NULL;
        }
        b->p = p;
        b->cap = cap;
    }
    uint8_t *at = b->p + b->n;
    b->n += n;
    return at;
}

static inline void h5_buf_put(h5_buf *b, const void *p, size_t n)
{
    uint8_t *at = h5_buf_room(b, n);
    if (at && n)
        memcpy(at, p, n);
}

static inline void h5_buf_u8(h5_buf *b, unsigned v)
{
    uint8_t *at = h5_buf_room(b, 1);
    if (at)
        *at = (uint8_t)v;
}

static inline void h5_buf_u16(h5_buf *b, unsigned v)
{
    uint8_t *at = h5_buf_room(b, 2);
    if (at)
        h5_set16(at, (uint16_t)v);
}

static inline void h5_buf_u32(h5_buf *b, uint32_t v)
{
    uint8_t *at = h5_buf_room(b, 4);
    if (at)
        h5_set32(at, v);
}

static inline void h5_buf_u64(h5_buf *b, uint64_t v)
{
    uint8_t *at = h5_buf_room(b, 8);
    if (at)
        h5_set64(at, v);
}

/* The low `width` bytes of v, width 1 to 8. */
static inline void h5_buf_uint(h5_buf *b, uint64_t v, unsigned width)
{
    uint8_t *at = h5_buf_room(b, width);
    for (unsigned i = 0; at && i < width; i++)
        at[i] = (uint8_t)(v >> 8 * i);
}

#endif
