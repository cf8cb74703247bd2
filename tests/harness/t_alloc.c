/*
 * t_alloc.c - the failing, counting allocator of t_alloc.h over the C library's.
 *
 * SPDX-License-Identifier: MIT
 */
#include "t_alloc.h"

#include <stdlib.h>

void *t_alloc_get(void *ctx, size_t n)
{
    t_alloc *a = ctx;
    if (++a->count == a->fail_at) {
        return NULL;
    }
    void *p = malloc(n ? n : 1);
    if (p != NULL) {
        a->live++;
    }
    return p;
}

void *t_alloc_resize(void *ctx, void *p, size_t n)
{
    t_alloc *a = ctx;
    if (p == NULL) {
        return t_alloc_get(ctx, n);
    }
    if (++a->count == a->fail_at) {
        return NULL;
    }
    return realloc(p, n ? n : 1);
}

void t_alloc_release(void *ctx, void *p)
{
    t_alloc *a = ctx;
    if (p != NULL) {
        a->live--;
    }
    free(p);
}
