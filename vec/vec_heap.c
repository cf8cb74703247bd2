/*
 * vec_heap.c - a heap of hits, the best on top
 *
 * ERRORS   VEC_NOMEM; the heap is then as it was
 * THREADS  one thread at a time
 *
 * SPDX-License-Identifier: MIT
 */
#include "vec_base.h"
#include "vec_hit.h"

int vec_heap_push(vec_heap *p, vec_hit h)
{
    size_t i = p->n;

    if (p->n == p->cap) {
        size_t cap = p->cap ? 2 * p->cap : 64;
        vec_hit *more = cap <= SIZE_MAX / sizeof *more ? vec_resize(p->h, cap * sizeof *more)
                                                       : NULL;

        if (!more)
            return VEC_NOMEM;
        p->h = more;
        p->cap = cap;
    }
    for (; i > 0 && vec_hit_less(&h, &p->h[(i - 1) / 2]); i = (i - 1) / 2)
        p->h[i] = p->h[(i - 1) / 2];
    p->h[i] = h;
    p->n++;
    return VEC_OK;
}

vec_hit vec_heap_pop(vec_heap *p)
{
    vec_hit top = p->h[0], x = p->h[--p->n];
    size_t i = 0;

    for (size_t child; (child = 2 * i + 1) < p->n; i = child) {
        child += child + 1 < p->n && vec_hit_less(&p->h[child + 1], &p->h[child]);
        if (!vec_hit_less(&p->h[child], &x))
            break;
        p->h[i] = p->h[child];
    }
    p->h[i] = x;
    return top;
}

void vec_heap_free(vec_heap *p)
{
    vec_free(p->h);
    *p = (vec_heap){0};
}
