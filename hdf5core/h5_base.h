/*
 * h5_base.h - the ground of hdf5core: forwarding of failures, checked sizes, arena
 *
 * Allocation goes through h5_malloc and its kin of h5core.h and nothing else: the C library's names
 * are poisoned for every file that includes this header. The arena serves the many small, equally
 * long-lived pieces of an opened object.
 *
 * OWNERSHIP  h5_arena_free gives back all that an arena handed out; a zeroed h5_arena is empty and
 *            valid.
 * ERRORS     allocation gives NULL; the arithmetic gives 0 on overflow.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef H5_BASE_H
#define H5_BASE_H

#include <stdlib.h>
#include <string.h>

#include "h5core.h"
#include "h5_limits.h"

#ifndef H5_BASE_C
#pragma GCC poison malloc calloc realloc free strdup
#endif

/* Forwards a failure out of a function that owns nothing. */
#define H5_TRY(expr)                                                                               \
    do {                                                                                           \
        int h5_try_rc = (expr);                                                                    \
        if (h5_try_rc != H5_OK)                                                                    \
            return h5_try_rc;                                                                      \
    } while (0)

/* Goes to the exit label `done` of a function that has an int rc and owns something. */
#define H5_TRY_DONE(expr)                                                                          \
    do {                                                                                           \
        rc = (expr);                                                                               \
        if (rc != H5_OK)                                                                           \
            goto done;                                                                             \
    } while (0)

/* *out = a + b; 0 when that does not fit, *out is then unchanged. */
static inline int h5_add_fits(uint64_t a, uint64_t b, uint64_t *out)
{
    if (a > UINT64_MAX - b)
        return 0;
    *out = a + b;
    return 1;
}

/* *out = a * b; 0 when that does not fit, *out is then unchanged. */
static inline int h5_mul_fits(uint64_t a, uint64_t b, uint64_t *out)
{
    if (b != 0 && a > UINT64_MAX / b)
        return 0;
    *out = a * b;
    return 1;
}

/* The quotient rounded up; b > 0. */
static inline uint64_t h5_div_up(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

/* Fails with H5_NOMEM; what names the thing that found no room. */
int h5_fail_nomem(h5_error *err, const char *what);

/* Fills *err with a record made elsewhere, unless it holds one, and returns its code. */
int h5_fail_as(h5_error *err, const h5_error *from);

/* Makes room for one more element of `size` bytes in the array *p of *cap elements, of which n are
** in use. Doubles. 0 when there is no memory; *p is then unchanged. */
int h5_grow(void **p, size_t *cap, size_t n, size_t size);

typedef struct h5_arena {
    struct h5_arena_block *head;
} h5_arena;

/* n bytes, aligned for any type; NULL without memory. */
void *h5_arena_alloc(h5_arena *a, size_t n);
void h5_arena_free(h5_arena *a);

#endif
