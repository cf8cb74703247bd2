/*
 * vec_base.c - the allocator hook and the growing buffer
 *
 * Everything vec allocates goes through the hook, so that a host can count it and a test can make
 * any allocation fail.
 *
 * THREADS  see vec_base.h
 *
 * SPDX-License-Identifier: MIT
 */
#define VEC_ALLOW_MALLOC
#include "vec_base.h"

static void *c_alloc(void *ctx, size_t n)
{
    (void)ctx;
    return malloc(n);
}

static void *c_resize(void *ctx, void *p, size_t n)
{
    (void)ctx;
    return realloc(p, n);
}

static void c_release(void *ctx, void *p)
{
    (void)ctx;
    free(p);
}

static const vec_allocator c_library = {c_alloc, c_resize, c_release, NULL};
static vec_allocator hook = {c_alloc, c_resize, c_release, NULL};

void vec_set_allocator(const vec_allocator *a)
{
    hook = a ? *a : c_library;
}

void *vec_alloc(size_t n)
{
    return hook.alloc(hook.ctx, n ? n : 1);
}

void *vec_alloc_array(size_t n, size_t size)
{
    if (size && n > SIZE_MAX / size)
        return NULL;
    return vec_alloc(n * size);
}

void *vec_alloc_zero(size_t n, size_t size)
{
    void *p = vec_alloc_array(n, size);

    if (p)
        memset(p, 0, n * size);
    return p;
}

void *vec_resize(void *p, size_t n)
{
    if (!p)
        return vec_alloc(n);
    return hook.resize(hook.ctx, p, n ? n : 1);
}

void vec_free(void *p)
{
    if (p)
        hook.release(hook.ctx, p);
}

int vec_buf_reserve(vec_buf *b, size_t extra)
{
    size_t want, cap;
    uint8_t *p;

    if (b->cap - b->n >= extra)
        return VEC_OK;
    if (extra > SIZE_MAX / 2 - b->n)
        return VEC_NOMEM;
    want = b->n + extra;
    cap = b->cap + b->cap / 2;
    if (cap < want)
        cap = want < 64 ? 64 : want;
    p = vec_resize(b->p, cap);
    if (!p)
        return VEC_NOMEM;
    b->p = p;
    b->cap = cap;
    return VEC_OK;
}

int vec_buf_add(vec_buf *b, const void *p, size_t n)
{
    int rc = vec_buf_reserve(b, n);

    if (rc)
        return rc;
    if (n)
        memcpy(b->p + b->n, p, n);
    b->n += n;
    return VEC_OK;
}

void vec_buf_free(vec_buf *b)
{
    vec_free(b->p);
    memset(b, 0, sizeof *b);
}
