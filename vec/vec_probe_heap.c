/*
 * vec_probe_heap.c - the heaps of a search through lists, and how they grow
 *
 * ERRORS    VEC_NOMEM
 * THREADS   no state
 *
 * SPDX-License-Identifier: MIT
 */
#include "vec_base.h"
#include "vec_hit.h"
#include "vec_probe_parts.h"

/* Room for one more of size bytes. */
int vec_probe_room(void **at, size_t n, size_t *cap, size_t more, size_t size)
{
    size_t want = *cap ? *cap : 64;
    void *q;

    while (want - n < more) {
        if (want > SIZE_MAX / 2 / size)
            return VEC_NOMEM;
        want *= 2;
    }
    if (want == *cap)
        return VEC_OK;
    q = vec_resize(*at, want * size);
    if (!q)
        return VEC_NOMEM;
    *at = q;
    *cap = want;
    return VEC_OK;
}

void vec_probe_sink_group(vec_probe_group *g, size_t n, size_t i)
{
    vec_probe_group x = g[i];

    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        child += child + 1 < n && g[child + 1].bound < g[child].bound;
        if (x.bound <= g[child].bound)
            break;
        g[i] = g[child];
    }
    g[i] = x;
}

void vec_probe_raise_group(vec_probe_group *g, size_t i)
{
    vec_probe_group x = g[i];

    for (; i > 0 && x.bound < g[(i - 1) / 2].bound; i = (i - 1) / 2)
        g[i] = g[(i - 1) / 2];
    g[i] = x;
}

int vec_probe_push_mid(vec_probe *p, double bound, uint64_t row)
{
    void *at = p->mid;
    size_t i = p->nmid;
    int rc = vec_probe_room(&at, i, &p->mid_cap, 1, sizeof *p->mid);

    p->mid = at;
    if (rc < 0)
        return rc;
    for (; i > 0 && bound < p->mid[(i - 1) / 2].bound; i = (i - 1) / 2)
        p->mid[i] = p->mid[(i - 1) / 2];
    p->mid[i] = (vec_probe_candidate){bound, row};
    p->nmid++;
    return VEC_OK;
}

uint64_t vec_probe_pop_mid(vec_probe *p)
{
    uint64_t row = p->mid[0].row;
    vec_probe_candidate x = p->mid[--p->nmid];
    size_t i = 0;

    for (size_t child; (child = 2 * i + 1) < p->nmid; i = child) {
        child += child + 1 < p->nmid && p->mid[child + 1].bound < p->mid[child].bound;
        if (x.bound <= p->mid[child].bound)
            break;
        p->mid[i] = p->mid[child];
    }
    p->mid[i] = x;
    return row;
}

int vec_probe_push_hit(vec_probe *p, double key, uint64_t row)
{
    vec_hit h = {key, p->a.id(p->a.ctx, row), row};
    void *at = p->hits;
    size_t i = p->nhit;
    int rc = vec_probe_room(&at, i, &p->hit_cap, 1, sizeof *p->hits);

    p->hits = at;
    if (rc < 0)
        return rc;
    for (; i > 0 && vec_hit_less(&h, &p->hits[(i - 1) / 2]); i = (i - 1) / 2)
        p->hits[i] = p->hits[(i - 1) / 2];
    p->hits[i] = h;
    p->nhit++;
    return VEC_OK;
}

vec_hit vec_probe_pop_hit(vec_probe *p)
{
    vec_hit top = p->hits[0], x = p->hits[--p->nhit];
    size_t i = 0;

    for (size_t child; (child = 2 * i + 1) < p->nhit; i = child) {
        child += child + 1 < p->nhit && vec_hit_less(&p->hits[child + 1], &p->hits[child]);
        if (!vec_hit_less(&p->hits[child], &x))
            break;
        p->hits[i] = p->hits[child];
    }
    p->hits[i] = x;
    return top;
}
