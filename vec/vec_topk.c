/*
 * vec_topk.c - bounded top-k, and the sorts of vec_hit.h
 *
 * A max-heap of the k best so far, the worst of them on top, so that a hit that is no better costs
 * one comparison. The array doubles as hits come: k may be far larger than what there is.
 *
 * ERRORS   VEC_NOMEM, VEC_MISUSE (a push after take, a NaN key)
 * THREADS  one thread at a time
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>

#include "vec_base.h"
#include "vec_hit.h"

struct vec_topk {
    size_t k;
    size_t n;
    size_t cap;
    int taken;
    vec_hit *h; // a heap only once k hits are held
};

void vec_hit_sink(vec_hit *h, size_t n, size_t i)
{
    vec_hit x = h[i];

    for (;;) {
        size_t c = 2 * i + 1;

        if (c >= n)
            break;
        if (c + 1 < n && vec_hit_less(&h[c], &h[c + 1]))
            c++;
        if (!vec_hit_less(&x, &h[c]))
            break;
        h[i] = h[c];
        i = c;
    }
    h[i] = x;
}

static void heapify(vec_hit *h, size_t n)
{
    for (size_t i = n / 2; i-- > 0;)
        vec_hit_sink(h, n, i);
}

void vec_hit_heapsort(vec_hit *h, size_t n)
{
    heapify(h, n);
    while (n > 1) {
        n--;
        vec_hit_swap(&h[0], &h[n]);
        vec_hit_sink(h, n, 0);
    }
}

void vec_hit_insertsort(vec_hit *h, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        vec_hit x = h[i];
        size_t j = i;

        for (; j > 0 && vec_hit_less(&x, &h[j - 1]); j--)
            h[j] = h[j - 1];
        h[j] = x;
    }
}

int vec_topk_new(size_t k, vec_topk **out)
{
    vec_topk *t = vec_alloc_zero(1, sizeof *t);

    *out = t;
    if (!t)
        return VEC_NOMEM;
    t->k = k;
    return VEC_OK;
}

void vec_topk_free(vec_topk *t)
{
    if (!t)
        return;
    vec_free(t->h);
    vec_free(t);
}

static int grow(vec_topk *t)
{
    size_t cap = t->cap ? 2 * t->cap : 16;
    vec_hit *h;

    if (cap > t->k)
        cap = t->k;
    if (cap > SIZE_MAX / 2 / sizeof *h)
        return VEC_NOMEM;
    h = vec_resize(t->h, cap * sizeof *h);
    if (!h)
        return VEC_NOMEM;
    t->h = h;
    t->cap = cap;
    return VEC_OK;
}

int vec_topk_reserve(vec_topk *t)
{
    int rc = VEC_OK;

    while (rc == VEC_OK && t->cap < t->k)
        rc = grow(t);
    return rc;
}

int vec_topk_push(vec_topk *t, const vec_hit *h)
{
    if (t->taken || isnan(h->key))
        return VEC_MISUSE;
    if (t->n == t->k) {
        if (t->k && vec_hit_less(h, &t->h[0])) {
            t->h[0] = *h;
            vec_hit_sink(t->h, t->n, 0);
        }
        return VEC_OK;
    }
    if (t->n == t->cap) {
        int rc = grow(t);

        if (rc)
            return rc;
    }
    t->h[t->n++] = *h;
    if (t->n == t->k)
        heapify(t->h, t->n);
    return VEC_OK;
}

double vec_topk_bound(const vec_topk *t)
{
    if (t->k == 0)
        return -INFINITY;
    return t->n < t->k ? INFINITY : t->h[0].key;
}

size_t vec_topk_take(vec_topk *t, const vec_hit **out)
{
    if (!t->taken)
        vec_hit_heapsort(t->h, t->n);
    t->taken = 1;
    *out = t->h;
    return t->n;
}
