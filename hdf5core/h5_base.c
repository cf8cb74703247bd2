/*
 * h5_base.c - allocator hook, growing arrays, arena
 *
 * The hook is the only global state of hdf5core. It is meant to be set once, before threads start.
 *
 * SPDX-License-Identifier: MIT
 */
#define H5_BASE_C
#include "h5_base.h"

static void *libc_alloc(void *ctx, size_t n)
{
    (void)ctx;
    return malloc(n);
}

static void *libc_resize(void *ctx, void *p, size_t n)
{
    (void)ctx;
    return realloc(p, n);
}

static void libc_release(void *ctx, void *p)
{
    (void)ctx;
    free(p);
}

static const h5_allocator libc_allocator = {libc_alloc, libc_resize, libc_release, NULL};
static h5_allocator hook = {libc_alloc, libc_resize, libc_release, NULL};

void h5_set_allocator(const h5_allocator *a)
{
    hook = a ? *a : libc_allocator;
}

void *h5_malloc(size_t n)
{
    return hook.alloc(hook.ctx, n ? n : 1);
}

void *h5_alloc_array(size_t n, size_t size)
{
    if (size != 0 && n > SIZE_MAX / size)
        return NULL;
    return h5_malloc(n * size);
}

void *h5_calloc(size_t n, size_t size)
{
    void *p = h5_alloc_array(n, size);
    if (p)
        memset(p, 0, n * size);
    return p;
}

void *h5_realloc(void *p, size_t n)
{
    if (!p)
        return h5_malloc(n);
    return hook.resize(hook.ctx, p, n ? n : 1);
}

void h5_free(void *p)
{
    hook.release(hook.ctx, p);
}

int h5_fail_nomem(h5_error *err, const char *what)
{
    return h5_fail(err, H5_NOMEM, H5_UNDEF, "out of memory for %s", what);
}

enum { SMALL = 1000 };

int h5_grow(void **p, size_t *cap, size_t n, size_t size)
{
    if (n < *cap)
        return 1;
    size_t want = *cap * 2;
    if (*cap == 0) // some, but within what allocators hand out fastest
        want = size > SMALL / 2 ? 2 : size > SMALL / 16 ? SMALL / size : 16;
    if (want < *cap || want > SIZE_MAX / size)
        return 0;
    void *q = h5_realloc(*p, want * size);
    if (!q)
        return 0;
    *p = q;
    *cap = want;
    return 1;
}

struct h5_arena_block {
    struct h5_arena_block *next;
    size_t used, cap; /* of the bytes behind this struct */
    max_align_t bytes[];
};

enum { ARENA_BLOCK = 960 };

void *h5_arena_alloc(h5_arena *a, size_t n)
{
    const size_t step = sizeof(max_align_t);
    if (n > SIZE_MAX / 2)
        return NULL;
    n = (n + step - 1) / step * step;
    struct h5_arena_block *b = a->head;
    if (!b || b->cap - b->used < n) {
        size_t cap = n > ARENA_BLOCK ? n : ARENA_BLOCK;
        b = h5_malloc(sizeof *b + cap);
        if (!b)
            return NULL;
        b->next = a->head;
        b->used = 0;
        b->cap = cap;
        a->head = b;
    }
    void *p = (char *)b->bytes + b->used;
    b->used += n;
    return p;
}

void h5_arena_free(h5_arena *a)
{
    while (a->head) {
        struct h5_arena_block *next = a->head->next;
        h5_free(a->head);
        a->head = next;
    }
}
