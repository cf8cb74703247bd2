/*
 * st_base.h - small things every file of ext/store uses: failures, byte order, growing buffers, an
 * id map, CRC32C.
 *
 * ERRORS   st_fail fills the caller's record (the first failure wins) and returns the code, so that
 *          a function can end with it.
 * THREADS  no shared state but the CRC table, made once.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ST_BASE_H
#define ST_BASE_H

#include <string.h>

#include "h5core.h"
#include "store.h"

#define ST_PRINTF(f, a) __attribute__((format(printf, f, a)))

int st_fail(st_error *err, int code, const char *fmt, ...) ST_PRINTF(3, 4);
int st_nomem(st_error *err);
/* Turns a failure of hdf5core into ours; what says what was being done, e.g. "the log". */
int st_from_h5(st_error *err, const h5_error *h, const char *what);
/* Turns a failure of vec (a VEC_ code) into ours. */
int st_from_vec(st_error *err, int code, const char *what);
/* Turns errno into ours; what names the file and the operation. */
int st_from_errno(st_error *err, int e, const char *what);

#define ST_TRY(expr)                                                                               \
    do {                                                                                           \
        int st_try_rc = (expr);                                                                    \
        if (st_try_rc != ST_OK) {                                                                  \
            return st_try_rc;                                                                      \
        }                                                                                          \
    } while (0)

#define ST_MIN(a, b) ((a) < (b) ? (a) : (b))
#define ST_MAX(a, b) ((a) > (b) ? (a) : (b))

/* Little-endian bytes. */
static inline void st_put16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}
static inline void st_put32(uint8_t *p, uint32_t v)
{
    st_put16(p, (uint16_t)v);
    st_put16(p + 2, (uint16_t)(v >> 16));
}
static inline void st_put64(uint8_t *p, uint64_t v)
{
    st_put32(p, (uint32_t)v);
    st_put32(p + 4, (uint32_t)(v >> 32));
}
static inline uint16_t st_get16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}
static inline uint32_t st_get32(const uint8_t *p)
{
    return (uint32_t)st_get16(p) | (uint32_t)st_get16(p + 2) << 16;
}
static inline uint64_t st_get64(const uint8_t *p)
{
    return (uint64_t)st_get32(p) | (uint64_t)st_get32(p + 4) << 32;
}

uint32_t st_crc32c(uint32_t crc, const void *p, size_t n);        /* crc 0 to start; chainable */
uint32_t st_crc32c_tables(uint32_t crc, const void *p, size_t n); /* the same on any processor */

/* A growing byte buffer. Zero-initialised is empty. After a failed append it is unchanged. */
typedef struct st_buf st_buf; /* store.h */
void st_buf_free(st_buf *b);
int st_buf_room(st_buf *b, size_t more, st_error *err); /* makes room for more bytes */
int st_buf_add(st_buf *b, const void *p, size_t n, st_error *err);
int st_buf_zeros(st_buf *b, size_t n, st_error *err);

/* Grows *array (elements of size bytes, *cap of them) so that it holds at least need. */
int st_grow(void *array, size_t *cap, size_t need, size_t size, st_error *err);

/* A map from 64-bit keys to 64-bit values (open addressing). Zero-initialised is empty. */
typedef struct st_map_entry {
    uint64_t key, value;
    uint8_t used; /* 0 never, 1 in use, 2 removed */
} st_map_entry;
typedef struct st_map {
    st_map_entry *slot;
    size_t cap;    /* a power of two, or 0 */
    size_t n;      /* in use */
    size_t filled; /* in use or removed */
} st_map;
void st_map_free(st_map *m);
void st_map_clear(st_map *m);
int st_map_set(st_map *m, uint64_t key, uint64_t value, st_error *err);
/* Makes room for n more keys: that many st_map_set then cannot fail, nor can setting a key that is
** there. */
int st_map_reserve(st_map *m, size_t n, st_error *err);
int st_map_get(const st_map *m, uint64_t key, uint64_t *value); /* 1 when there */
void st_map_remove(st_map *m, uint64_t key);

/* Bitmaps as vec.h has them. */
static inline size_t st_bit_words(uint64_t nrow)
{
    return (size_t)((nrow + 63) / 64);
}
static inline int st_bit_get(const uint64_t *w, uint64_t r)
{
    return (int)(w[r >> 6] >> (r & 63) & 1);
}
static inline void st_bit_set(uint64_t *w, uint64_t r)
{
    w[r >> 6] |= (uint64_t)1 << (r & 63);
}
static inline void st_bit_clear(uint64_t *w, uint64_t r)
{
    w[r >> 6] &= ~((uint64_t)1 << (r & 63));
}
/* The first set bit at or after from, or nrow. */
uint64_t st_bit_next(const uint64_t *w, uint64_t nrow, uint64_t from);

#endif
