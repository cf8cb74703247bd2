/*
 * t_alloc.h - an allocator that counts, fails the k-th request, and knows what was not released.
 *
 * The three functions have the shape of the libraries' allocator hooks (h5_allocator,
 * vec_allocator), with a t_alloc as their context. A test repeats a call with fail_at 1, 2, 3, ...
 * until it succeeds without reaching the failure; `live` must be back at its start each time.
 *
 *     t_alloc a = {0};
 *     h5_allocator hook = {t_alloc_get, t_alloc_resize, t_alloc_release, &a};
 *     h5_set_allocator(&hook);
 *     for (a.fail_at = 1;; a.fail_at++) {
 *         a.count = 0;
 *         int rc = call();
 *         assert_int_equal(a.live, 0);
 *         if (a.count < a.fail_at) break;        // the failure was not reached: rc must be OK
 *         assert_int_equal(rc, H5_NOMEM);
 *     }
 *
 * THREADS   one thread at a time.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef T_ALLOC_H
#define T_ALLOC_H

#include <stddef.h>

typedef struct t_alloc {
    long fail_at; /* the request with this number (from 1) gets NULL; 0 = none */
    long count;   /* requests so far: get and resize */
    long live;    /* blocks handed out and not released */
} t_alloc;

void *t_alloc_get(void *ctx, size_t n);
void *t_alloc_resize(void *ctx, void *p, size_t n); /* p NULL: as get; on failure p stays valid */
void t_alloc_release(void *ctx, void *p);           /* p may be NULL */

#endif
