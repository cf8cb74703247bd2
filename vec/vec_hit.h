/*
 * vec_hit.h - the order of hits, and the two sorts that topk and rank share
 *
 * THREADS  no state
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef VEC_HIT_H
#define VEC_HIT_H

#include <stddef.h>

#include "vec.h"

static inline int vec_hit_less(const vec_hit *a, const vec_hit *b)
{
    return a->key < b->key || (a->key == b->key && a->id < b->id);
}

static inline void vec_hit_swap(vec_hit *a, vec_hit *b)
{
    vec_hit t = *a;

    *a = *b;
    *b = t;
}

/* Sinks h[i] in the max-heap h[0..n-1]. */
void vec_hit_sink(vec_hit *h, size_t n, size_t i);
/* Sorts ascending, in place, n log n at worst. */
void vec_hit_heapsort(vec_hit *h, size_t n);
/* The same for a handful. */
void vec_hit_insertsort(vec_hit *h, size_t n);

/* Room for all k hits, so that pushing allocates nothing more. VEC_OK or VEC_NOMEM. */
int vec_topk_reserve(vec_topk *t);

#endif
