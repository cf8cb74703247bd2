/*
 * vec_near_scan.c - the first pass of an exact search: a bound for every row
 *
 * Coarse records are read in groups of 64 rows, in the order of memory; where there are rows enough
 * the extents are dealt out to threads, each of which writes to a part of the arrays of its own.
 * Rows without a record get their distance, rounded down, as their bound.
 *
 * ERRORS   VEC_ABORT (stop said so), those of vec_scan
 * THREADS  vec_par.h
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>

#include "vec_base.h"
#include "vec_bits.h"
#include "vec_near_parts.h"
#include "vec_par.h"

int vec_near_stopped(vec_near *s, size_t cost, size_t limit)
{
    s->cost += cost;
    if (s->cost < limit)
        return 0;
    s->cost = 0;
    return s->a.stop && s->a.stop(s->a.ctx);
}

static void add_group(vec_near *s, const near_group *g)
{
    if (g->least < INFINITY)
        s->groups[s->ngroup++] = *g;
    s->nslot += g->n;
}

/* The coarse bounds of the rows of g, where mask says so. */
static float bound_rows(vec_near *s, const near_group *g, uint64_t mask)
{
    float *low = s->low + g->slot, picked[GROUP_ROWS], least;
    const uint8_t *rows[GROUP_ROWS];
    size_t m = 0;

    if (mask == vec_bits_low(g->n)) {
        for (; m < g->n; m++)
            rows[m] = g->half[0] + m * s->stride;
        return vec_halves_coarse(&s->q, rows, m, low);
    }
    for (uint64_t w = mask; m == 0 || w; w &= w - 1) // there is a bit
        rows[m++] = g->half[0] + vec_bits_lowest(w) * s->stride;
    least = vec_halves_coarse(&s->q, rows, m, picked);
    for (unsigned i = 0; i < g->n; i++)
        low[i] = INFINITY;
    m = 0;
    for (uint64_t w = mask; w; w &= w - 1)
        low[vec_bits_lowest(w)] = picked[m++];
    return least;
}

/* No bounds: every row that has a vector will be looked at. */
static float leave_open(vec_near *s, const near_group *g, uint64_t mask)
{
    float least = INFINITY, *low = s->low + g->slot;

    for (unsigned i = 0; i < g->n; i++) {
        low[i] = INFINITY;
        if (mask >> i & 1 && vec_plane_has_vector(g->half[0] + i * s->stride))
            least = low[i] = -INFINITY;
    }
    return least;
}

int vec_near_halted(near_slice *p, size_t cost, size_t limit)
{
    if (p->asks && vec_near_stopped(p->s, cost, limit))
        atomic_store_explicit(p->halt, 1, memory_order_relaxed);
    return atomic_load_explicit(p->halt, memory_order_relaxed);
}

static void scan_extent(near_slice *p, const vec_plane_extent *x)
{
    vec_near *s = p->s;

    for (uint64_t i = 0; i < x->n; i += GROUP_ROWS) {
        near_group g = {.n = x->n - i < GROUP_ROWS ? (unsigned)(x->n - i) : GROUP_ROWS,
                        .row = x->first + i,
                        .slot = p->slot,
                        .answer = NONE,
                        .fine = p->all ? INFINITY : -INFINITY,
                        .half = {x->coarse + i * s->stride, x->fine + i * s->stride}};
        uint64_t mask = s->a.filter ? vec_bits_group(s->a.filter, g.row, g.n) : vec_bits_low(g.n);

        p->slot += g.n;
        if (mask) {
            g.least = p->all ? leave_open(s, &g, mask) : bound_rows(s, &g, mask);
            p->rows += vec_bits_popcount(mask);
            if (g.least < INFINITY)
                s->groups[p->group + p->ngroup++] = g;
        }
        if (vec_near_halted(p, GROUP_ROWS + vec_bits_popcount(mask) * s->stride, STOP_BYTES))
            return;
    }
}

static void scan_part(void *arg)
{
    near_slice *p = arg;

    for (size_t e = p->first; e < p->last; e++) {
        scan_extent(p, &p->s->a.planes[e]);
        if (vec_near_halted(p, 0, STOP_BYTES))
            return;
    }
}

size_t vec_near_threads(const vec_near *s, uint64_t n, uint64_t least)
{
    uint64_t most = s->a.threads > 1 ? (uint64_t)s->a.threads : 1;

    most = most < VEC_THREADS_MAX ? most : VEC_THREADS_MAX;
    most = most < n / least ? most : n / least;
    return most > 1 ? (size_t)most : 1;
}

int vec_near_run(void (*fn)(void *), near_slice *parts, size_t n)
{
    atomic_int halt = 0;

    for (size_t i = 0; i < n; i++) {
        parts[i].halt = &halt;
        parts[i].asks = i == 0;
    }
    vec_par_run(fn, parts, sizeof *parts, n);
    return atomic_load(&halt) ? VEC_ABORT : VEC_OK;
}

int vec_near_scan_planes(vec_near *s, int all)
{
    near_slice parts[VEC_THREADS_MAX];
    uint64_t rows = 0, before = 0;
    size_t n, at = 0, e = 0;
    int rc;

    for (size_t i = 0; i < s->a.nplane; i++)
        rows += s->a.planes[i].n;
    n = vec_near_threads(s, rows, PART_ROWS);
    for (size_t i = 0; i < n; i++) {
        near_slice *p = &parts[i];

        *p = (near_slice){.s = s, .first = e, .slot = (size_t)before, .group = at, .all = all};
        while (e < s->a.nplane && (i + 1 == n || before < rows / n * (i + 1))) {
            before += s->a.planes[e].n;
            at += (size_t)(s->a.planes[e++].n / GROUP_ROWS + 1);
        }
        p->last = e;
    }
    rc = vec_near_run(scan_part, parts, n);
    for (size_t i = 0; i < n; i++) { // close the gaps
        if (s->ngroup != parts[i].group && parts[i].ngroup)
            memmove(s->groups + s->ngroup, s->groups + parts[i].group,
                    parts[i].ngroup * sizeof *s->groups);
        s->ngroup += parts[i].ngroup;
        s->rows += parts[i].rows;
    }
    s->nslot = (size_t)rows;
    return rc;
}

/* The largest float that is not above key; +infinity for no key. */
static float round_down(double key)
{
    float f = (float)key;

    if (isnan(key))
        return INFINITY;
    if ((double)f > key || f == INFINITY)
        f = nextafterf(f, -INFINITY);
    return f;
}

int vec_near_scan_exact(vec_near *s)
{
    for (size_t e = 0; e < s->a.nexact; e++) {
        const vec_extent *x = &s->a.exact[e];

        for (uint64_t i = 0; i < x->n; i += GROUP_ROWS) {
            unsigned n = x->n - i < GROUP_ROWS ? (unsigned)(x->n - i) : GROUP_ROWS;
            vec_extent part = {x->rows ? x->rows + i * s->a.dim : NULL,
                               x->norms ? x->norms + i : NULL, 0, n};
            near_group g = {.least = INFINITY,
                            .n = n,
                            .row = x->first + i,
                            .slot = s->nslot,
                            .answer = s->nkey,
                            .fine = INFINITY};
            uint64_t mask = s->a.filter ? vec_bits_group(s->a.filter, g.row, n) : vec_bits_low(n);
            float *low = s->low + s->nslot;
            double *keys = s->keys + s->nkey;
            int rc;

            if (mask) {
                rc = vec_scan(s->a.metric, s->a.query, s->a.dim, &part, 1, &mask, keys, NULL, NULL);
                if (rc < 0)
                    return rc;
                for (unsigned j = 0; j < n; j++) {
                    low[j] = mask >> j & 1 ? round_down(keys[j]) : INFINITY;
                    g.least = low[j] < g.least ? low[j] : g.least;
                }
                s->rows += vec_bits_popcount(mask);
                add_group(s, &g);
                s->nkey += n;
            }
            if (vec_near_stopped(s, GROUP_ROWS + vec_bits_popcount(mask) * s->a.dim * 4,
                                 STOP_BYTES))
                return VEC_ABORT;
        }
    }
    return VEC_OK;
}
