/*
 * vec_near.c - exact nearest neighbours on demand, through planes
 *
 * One pass over the coarse records gives every row a lower bound on its distance (vec_halves.c).
 * The rows that seem nearest, as many as will be asked for, are looked at: a row's stored vector is
 * fetched and its distance computed. What could still be nearer than the farthest of them gets a
 * finer bound from both halves of its record, in the order of the rows. From then on rows are
 * looked at in the order of their bounds; and a row with a known distance is handed out as soon as
 * that is smaller than every bound that is left. So the order is that of the true distances, and
 * how many vectors are read depends on how far the caller asks, not on a k given beforehand: a
 * wrong guess costs time, for the bounds of a group are made finer when its turn comes.
 *
 * The order of the bounds is not sorted but taken from groups of 64 rows: a heap holds the groups
 * by their least bound, a step takes the least row of the least group. Building that costs a
 * sixty-fourth of a heap of rows, and a step some tens of nanoseconds.
 *
 * Rows without a record get their distance in the first pass, and take part with it rounded down as
 * their bound.
 *
 * When more than an eighth of the rows had to be looked at, the bounds are no help (or the caller
 * wants it all): then every row that is left is computed in the order of the rows, which memory
 * likes, and vec_rank does the rest.
 *
 * INVARIANTS  low[i] is +infinity where nothing is left: not selected, without vector, looked at.
 *             A group in the heap has at least one row left.
 * ERRORS      VEC_NOMEM, VEC_MISUSE, VEC_LIMIT (dimension), VEC_ABORT (stop or fetch said so)
 * THREADS     one thread at a time; the passes over records use several where that pays (vec_par.h)
 *
 * SPDX-License-Identifier: MIT
 */
#include <float.h>
#include <math.h>
#include <stdatomic.h>

#include "vec_base.h"
#include "vec_bits.h"
#include "vec_halves.h"
#include "vec_hit.h"
#include "vec_limits.h"
#include "vec_near.h"
#include "vec_par.h"

#define GROUP_ROWS   64
#define STOP_BYTES   65536 // scanned between two questions whether to stop
#define STOP_FETCHES 256   // looked at between two questions
#define BULK_SHARE   8     // of all rows, one in so many; then all at once
#define PART_ROWS    16384 // a thread of its own pays for that many
#define LIKELY_ROWS  16    // looked at to begin with when nobody says how many are wanted
#define LIKELY_MAX   1024
#define DULL_FETCHES 16 // more than those, then preparing a sharper query pays

typedef struct group {
    float least;            // of its rows that are left
    unsigned n;             // rows
    uint64_t row;           // number of the first
    size_t slot;            // its place in low
    size_t answer;          // rows without a record: its place in keys; else NONE
    float fine;             // bounds up to here are those of both halves
    uint64_t sharp;         // rows whose bounds are those of a query of 16 bits
    const uint8_t *half[2]; // records of the first row; NULL without
} group;

#define NONE SIZE_MAX

struct vec_near {
    vec_near_args a;
    float norm;
    vec_halves_query q;
    vec_halves_sharp sharp;
    size_t stride;
    size_t dull; // fetches after which bounds are made sharp before a vector is fetched
    void *scratch, *sharp_scratch;
    float *low;
    double *keys;  // distances of the rows without a record
    group *groups; // heap, least first
    size_t ngroup;
    size_t nslot, nkey;
    size_t rows;   // selected, roughly: groups without a filter count in full
    vec_hit *hits; // heap of rows looked at and not handed out, nearest first
    size_t nhit, hit_cap;
    size_t looked;
    size_t cost;    // bytes or fetches since stop was asked
    vec_rank *rank; // once everything has been looked at
    int failed;     // what every further call answers
};

static int stopped(vec_near *s, size_t cost, size_t limit)
{
    s->cost += cost;
    if (s->cost < limit)
        return 0;
    s->cost = 0;
    return s->a.stop && s->a.stop(s->a.ctx);
}

/* ------------------------------------------------------------------------------------ the heaps */

static void group_sink(group *g, size_t n, size_t i)
{
    group x = g[i];

    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        child += child + 1 < n && g[child + 1].least < g[child].least;
        if (x.least <= g[child].least)
            break;
        g[i] = g[child];
    }
    g[i] = x;
}

static int hit_push(vec_near *s, vec_hit hit)
{
    size_t i = s->nhit;

    if (s->nhit == s->hit_cap) {
        size_t cap = s->hit_cap ? 2 * s->hit_cap : 64;
        vec_hit *more = cap <= SIZE_MAX / sizeof *more ? vec_resize(s->hits, cap * sizeof *more)
                                                       : NULL;

        if (!more)
            return VEC_NOMEM;
        s->hits = more;
        s->hit_cap = cap;
    }
    for (; i > 0 && vec_hit_less(&hit, &s->hits[(i - 1) / 2]); i = (i - 1) / 2)
        s->hits[i] = s->hits[(i - 1) / 2];
    s->hits[i] = hit;
    s->nhit++;
    return VEC_OK;
}

static vec_hit hit_pop(vec_near *s)
{
    vec_hit top = s->hits[0], x = s->hits[--s->nhit];
    size_t i = 0;

    for (size_t child; (child = 2 * i + 1) < s->nhit; i = child) {
        child += child + 1 < s->nhit && vec_hit_less(&s->hits[child + 1], &s->hits[child]);
        if (!vec_hit_less(&s->hits[child], &x))
            break;
        s->hits[i] = s->hits[child];
    }
    s->hits[i] = x;
    return top;
}

/* ------------------------------------------------------------------------------- the first pass */

static void add_group(vec_near *s, const group *g)
{
    if (g->least < INFINITY)
        s->groups[s->ngroup++] = *g;
    s->nslot += g->n;
}

/* The coarse bounds of the rows of g, where mask says so. */
static float bound_rows(vec_near *s, const group *g, uint64_t mask)
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
static float leave_open(vec_near *s, const group *g, uint64_t mask)
{
    float least = INFINITY, *low = s->low + g->slot;

    for (unsigned i = 0; i < g->n; i++) {
        low[i] = INFINITY;
        if (mask >> i & 1 && vec_plane_has_vector(g->half[0] + i * s->stride))
            least = low[i] = -INFINITY;
    }
    return least;
}

/* A part of the first pass: some extents, and where what it finds out has its place. */
typedef struct slice {
    vec_near *s;
    size_t first, last; // extents, or groups to refine
    size_t slot, group; // of its first row, in low and groups
    size_t ngroup, rows;
    int all, asks;    // asks: may call stop
    float up;         // bound of what is to be refined
    atomic_int *halt; // nonzero: everybody ends
} slice;

/* Nonzero: end. Only one slice asks, the others look at what it was told. */
static int halted(slice *p, size_t cost, size_t limit)
{
    if (p->asks && stopped(p->s, cost, limit))
        atomic_store_explicit(p->halt, 1, memory_order_relaxed);
    return atomic_load_explicit(p->halt, memory_order_relaxed);
}

static void scan_extent(slice *p, const vec_plane_extent *x)
{
    vec_near *s = p->s;

    for (uint64_t i = 0; i < x->n; i += GROUP_ROWS) {
        group g = {.n = x->n - i < GROUP_ROWS ? (unsigned)(x->n - i) : GROUP_ROWS,
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
        if (halted(p, GROUP_ROWS + vec_bits_popcount(mask) * s->stride, STOP_BYTES))
            return;
    }
}

static void scan_part(void *arg)
{
    slice *p = arg;

    for (size_t e = p->first; e < p->last; e++) {
        scan_extent(p, &p->s->a.planes[e]);
        if (halted(p, 0, STOP_BYTES))
            return;
    }
}

/* How many threads n things are worth, when each is to have `least` of them. */
static size_t threads_for(const vec_near *s, uint64_t n, uint64_t least)
{
    uint64_t most = s->a.threads > 1 ? (uint64_t)s->a.threads : 1;

    most = most < VEC_THREADS_MAX ? most : VEC_THREADS_MAX;
    most = most < n / least ? most : n / least;
    return most > 1 ? (size_t)most : 1;
}

/* Runs the parts and takes care that stop is asked by one of them only. */
static int run_parts(void (*fn)(void *), slice *parts, size_t n)
{
    atomic_int halt = 0;

    for (size_t i = 0; i < n; i++) {
        parts[i].halt = &halt;
        parts[i].asks = i == 0;
    }
    vec_par_run(fn, parts, sizeof *parts, n);
    return atomic_load(&halt) ? VEC_ABORT : VEC_OK;
}

static int scan_planes(vec_near *s, int all)
{
    slice parts[VEC_THREADS_MAX];
    uint64_t rows = 0, before = 0;
    size_t n, at = 0, e = 0;
    int rc;

    for (size_t i = 0; i < s->a.nplane; i++)
        rows += s->a.planes[i].n;
    n = threads_for(s, rows, PART_ROWS);
    for (size_t i = 0; i < n; i++) {
        slice *p = &parts[i];

        *p = (slice){.s = s, .first = e, .slot = (size_t)before, .group = at, .all = all};
        while (e < s->a.nplane && (i + 1 == n || before < rows / n * (i + 1))) {
            before += s->a.planes[e].n;
            at += (size_t)(s->a.planes[e++].n / GROUP_ROWS + 1);
        }
        p->last = e;
    }
    rc = run_parts(scan_part, parts, n);
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

static int scan_exact(vec_near *s)
{
    for (size_t e = 0; e < s->a.nexact; e++) {
        const vec_extent *x = &s->a.exact[e];

        for (uint64_t i = 0; i < x->n; i += GROUP_ROWS) {
            unsigned n = x->n - i < GROUP_ROWS ? (unsigned)(x->n - i) : GROUP_ROWS;
            vec_extent part = {x->rows ? x->rows + i * s->a.dim : NULL,
                               x->norms ? x->norms + i : NULL, 0, n};
            group g = {.least = INFINITY,
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
            if (stopped(s, GROUP_ROWS + vec_bits_popcount(mask) * s->a.dim * 4, STOP_BYTES))
                return VEC_ABORT;
        }
    }
    return VEC_OK;
}

/* ------------------------------------------------------------------------------ looking at rows */

/* The distance of row i of the group; NaN when it has no vector. */
static int look(vec_near *s, const group *g, unsigned i, double *key)
{
    const float *x;
    float norm = 0;

    s->low[g->slot + i] = INFINITY;
    *key = NAN;
    if (g->answer != NONE) {
        *key = s->keys[g->answer + i];
        return VEC_OK;
    }
    s->looked++;
    if (stopped(s, 1, STOP_FETCHES))
        return VEC_ABORT;
    x = s->a.fetch(s->a.ctx, g->row + i, &norm);
    if (!x)
        return VEC_ABORT;
    if (!isnan(norm))
        *key = vec_distance(s->a.metric, s->a.query, s->norm, x, norm, s->a.dim);
    return VEC_OK;
}

static vec_hit make_hit(const vec_near *s, double key, uint64_t row)
{
    return (vec_hit){key, s->a.id(s->a.ctx, row), row};
}

/* The least of n floats, none of them NaN. Four at a time: one chain would wait for itself. */
static float least(const float *x, unsigned n)
{
    float m[4] = {INFINITY, INFINITY, INFINITY, INFINITY};
    unsigned i = 0;

    for (; n - i >= 4; i += 4)
        for (unsigned k = 0; k < 4; k++)
            m[k] = x[i + k] < m[k] ? x[i + k] : m[k];
    for (; i < n; i++)
        m[0] = x[i] < m[0] ? x[i] : m[0];
    m[0] = m[1] < m[0] ? m[1] : m[0];
    m[2] = m[3] < m[2] ? m[3] : m[2];
    return m[2] < m[0] ? m[2] : m[0];
}

static float least_of(const vec_near *s, const group *g)
{
    return least(s->low + g->slot, g->n);
}

/* Which of the n <= 64 floats are at most `up`, bit by bit. Without a branch that nobody can
 * predict, and the bits of eight at a time. */
static uint64_t at_most(const float *x, unsigned n, float up)
{
    uint64_t mask = 0;
    unsigned i = 0;

    for (; n - i >= 8; i += 8) {
        unsigned a = (unsigned)(x[i] <= up) | (unsigned)(x[i + 1] <= up) << 1,
                 b = (unsigned)(x[i + 2] <= up) | (unsigned)(x[i + 3] <= up) << 1,
                 c = (unsigned)(x[i + 4] <= up) | (unsigned)(x[i + 5] <= up) << 1,
                 d = (unsigned)(x[i + 6] <= up) | (unsigned)(x[i + 7] <= up) << 1;

        mask |= (uint64_t)(a | b << 2 | c << 4 | d << 6) << i;
    }
    for (; i < n; i++)
        mask |= (uint64_t)(x[i] <= up) << i;
    return mask;
}

/* Bounds the rows of g whose bound is at most `up` by both halves of their records. */
static void refine(vec_near *s, group *g, float up)
{
    float *low = s->low + g->slot, fine[GROUP_ROWS];
    const uint8_t *half[2][GROUP_ROWS];
    unsigned at[GROUP_ROWS], m = 0;

    for (uint64_t w = at_most(low, g->n, up < FLT_MAX ? up : FLT_MAX); w; w &= w - 1) {
        at[m] = vec_bits_lowest(w);
        half[0][m] = g->half[0] + at[m] * s->stride;
        half[1][m] = g->half[1] + at[m] * s->stride;
        m++;
    }
    if (m)
        vec_halves_fine(&s->q, half[0], half[1], m, fine);
    for (unsigned i = 0; i < m; i++)
        low[at[i]] = fine[i] > low[at[i]] ? fine[i] : low[at[i]];
    g->fine = up;
    g->least = least_of(s, g);
}

static void settle_top(vec_near *s)
{
    if (s->groups[0].least == INFINITY)
        s->groups[0] = s->groups[--s->ngroup];
    if (s->ngroup)
        group_sink(s->groups, s->ngroup, 0);
}

/* The sharpest bound there is, for row i of the group on top. */
static int sharpen(vec_near *s, group *g, unsigned i)
{
    float *low = s->low + g->slot, bound;

    if (!s->sharp_scratch) {
        s->sharp_scratch = vec_alloc(vec_halves_sharp_scratch(s->a.dim));
        if (!s->sharp_scratch)
            return VEC_NOMEM;
        vec_halves_sharpen(s->a.metric, s->a.query, s->norm, s->a.dim, s->sharp_scratch, &s->sharp);
    }
    bound = vec_halves_sharp_bound(&s->sharp, g->half[0] + i * s->stride,
                                   g->half[1] + i * s->stride);
    low[i] = bound > low[i] ? bound : low[i];
    g->sharp |= (uint64_t)1 << i;
    g->least = least_of(s, g);
    settle_top(s);
    return stopped(s, 1, STOP_FETCHES) ? VEC_ABORT : VEC_OK;
}

/* Looks at the row with the least bound of all, or makes the bounds of its group finer. */
static int look_at_least(vec_near *s)
{
    group *g = &s->groups[0];
    const float *low = s->low + g->slot;
    unsigned at;
    double key;
    uint64_t row;
    int rc;

    if (g->least > g->fine || g->fine == -INFINITY) {
        refine(s, g, INFINITY);
        settle_top(s);
        return stopped(s, 1, STOP_FETCHES) ? VEC_ABORT : VEC_OK;
    }
    at = vec_bits_lowest(at_most(low, g->n, g->least));
    if (s->looked >= s->dull && g->half[0] && !(g->sharp >> at & 1))
        return sharpen(s, g, at);
    row = g->row + at;
    rc = look(s, g, at, &key);
    if (rc < 0)
        return rc;
    g->least = least_of(s, g);
    settle_top(s);
    return isnan(key) ? VEC_OK : hit_push(s, make_hit(s, key, row));
}

static int by_row(const void *a, const void *b)
{
    const group *x = a, *y = b;

    return x->row < y->row ? -1 : x->row > y->row;
}

/* Looks at every row that is left, and leaves what is to be handed out to a rank. */
static int look_at_all(vec_near *s)
{
    size_t n = s->nhit;
    vec_hit *hits;
    double key;
    int rc = VEC_OK;

    for (size_t g = 0; g < s->ngroup; g++)
        n += s->groups[g].n;
    hits = vec_hits_alloc(n);
    if (!hits)
        return VEC_NOMEM;
    qsort(s->groups, s->ngroup, sizeof *s->groups, by_row);
    n = s->nhit;
    if (n)
        memcpy(hits, s->hits, n * sizeof *hits);
    for (size_t g = 0; g < s->ngroup && rc == VEC_OK; g++) {
        const group *x = &s->groups[g];

        for (unsigned i = 0; i < x->n && rc == VEC_OK; i++) {
            if (s->low[x->slot + i] == INFINITY)
                continue;
            rc = look(s, x, i, &key);
            if (rc == VEC_OK && !isnan(key))
                hits[n++] = make_hit(s, key, x->row + i);
        }
    }
    if (rc < 0) {
        vec_free(hits);
        return rc;
    }
    s->ngroup = s->nhit = 0;
    return vec_rank_new(hits, n, &s->rank);
}

/* -------------------------------------------------------------------------------- a first guess */

/* The rows that come out first are most likely those whose bounds are least. As many of them are
 * looked at as will be asked for. The last one that is asked for cannot be farther than the
 * farthest of these, *up: bounds above it need not be made finer. */
static int look_at_likely(vec_near *s, vec_topk *likely, double *up)
{
    const vec_hit *h;
    float most = INFINITY;
    size_t n;

    for (size_t g = 0; g < s->ngroup; g++) {
        const group *x = &s->groups[g];
        const float *low = s->low + x->slot;

        if (!(x->least < most))
            continue;
        for (uint64_t w = at_most(low, x->n, most < FLT_MAX ? most : FLT_MAX); w; w &= w - 1) {
            unsigned i = vec_bits_lowest(w);
            vec_hit hit = {(double)low[i], (int64_t)g, i};
            int rc;

            if (!(low[i] < most))
                continue;
            rc = vec_topk_push(likely, &hit);
            if (rc < 0)
                return rc;
            most = (float)vec_topk_bound(likely);
        }
    }
    n = vec_topk_take(likely, &h);
    for (size_t k = 0; k < n; k++) {
        group *x = &s->groups[h[k].id];
        unsigned i = (unsigned)h[k].row;
        double key;
        int rc = look(s, x, i, &key);

        x->least = least_of(s, x);
        if (rc == VEC_OK && !isnan(key)) {
            *up = key > *up ? key : *up;
            rc = hit_push(s, make_hit(s, key, x->row + i));
        }
        if (rc < 0)
            return rc;
    }
    return VEC_OK;
}

static void refine_part(void *arg)
{
    slice *p = arg;

    for (size_t i = p->first; i < p->last; i++) {
        group *g = &p->s->groups[i];

        if (g->least <= p->up && g->fine == -INFINITY)
            refine(p->s, g, p->up);
        if (halted(p, g->n, STOP_FETCHES * GROUP_ROWS))
            return;
    }
}

static int refine_all(vec_near *s, float up)
{
    slice parts[VEC_THREADS_MAX];
    size_t likely = 0, n;

    for (size_t i = 0; i < s->ngroup; i++)
        likely += s->groups[i].least <= up;
    n = threads_for(s, likely, PART_ROWS / GROUP_ROWS);
    for (size_t i = 0; i < n; i++)
        parts[i] = (slice){.s = s,
                           .first = s->ngroup / n * i,
                           .last = i + 1 == n ? s->ngroup : s->ngroup / n * (i + 1),
                           .up = up};
    return run_parts(refine_part, parts, n);
}

/* Makes all bounds fine that may be needed, in the order of the rows. */
static int refine_likely(vec_near *s)
{
    size_t left = 0, want = s->a.hint ? (size_t)s->a.hint : LIKELY_ROWS;
    double up = -INFINITY;
    vec_topk *likely;
    int rc;

    want = want < LIKELY_MAX ? want : LIKELY_MAX;
    s->dull = want + DULL_FETCHES;
    rc = vec_topk_new(want, &likely);
    if (rc < 0)
        return rc;
    rc = look_at_likely(s, likely, &up);
    vec_topk_free(likely);
    rc = rc ? rc : refine_all(s, (float)up);
    for (size_t i = 0; rc == VEC_OK && i < s->ngroup; i++) {
        group *g = &s->groups[i];

        if (g->least < INFINITY)
            s->groups[left++] = *g;
    }
    s->ngroup = left;
    return rc;
}

/* -------------------------------------------------------------------------------- the interface */

static int check(const vec_near_args *a)
{
    if ((a->metric != VEC_COSINE && a->metric != VEC_L2 && a->metric != VEC_IP) || a->dim == 0 ||
        !a->query || !a->id || (a->nplane && !a->fetch))
        return VEC_MISUSE;
    return a->nplane && a->dim > VEC_PLANE_DIM_MAX ? VEC_LIMIT : VEC_OK;
}

/* Room for every row and group there can be; what stays unused is never touched. */
static int reserve(vec_near *s, uint64_t *rows)
{
    uint64_t exact = 0, plane = 0, groups = 0;

    for (size_t i = 0; i < s->a.nplane; i++) {
        plane += s->a.planes[i].n;
        groups += s->a.planes[i].n / GROUP_ROWS + 1;
    }
    for (size_t i = 0; i < s->a.nexact; i++) {
        exact += s->a.exact[i].n;
        groups += s->a.exact[i].n / GROUP_ROWS + 1;
    }
    *rows = plane + exact;
    if (*rows > SIZE_MAX)
        return VEC_NOMEM;
    s->low = vec_alloc_array((size_t)*rows, sizeof *s->low);
    s->keys = vec_alloc_array((size_t)exact, sizeof *s->keys);
    s->groups = vec_alloc_array((size_t)groups, sizeof *s->groups);
    s->scratch = vec_alloc(vec_halves_scratch(s->a.nplane ? s->a.dim : 0));
    return s->low && s->keys && s->groups && s->scratch ? VEC_OK : VEC_NOMEM;
}

static int begin(vec_near *s)
{
    uint64_t rows;
    int all, rc = reserve(s, &rows);

    if (rc < 0)
        return rc;
    all = s->a.hint > rows / BULK_SHARE;
    s->norm = vec_norm_f32(s->a.query, s->a.dim);
    s->stride = vec_halves_stride(s->a.dim);
    if (s->a.nplane && !all)
        vec_halves_prepare(s->a.metric, s->a.query, s->norm, s->a.dim, s->scratch, &s->q);
    rc = scan_planes(s, all);
    if (rc == VEC_OK)
        rc = scan_exact(s);
    if (rc < 0)
        return rc;
    s->cost = 0;
    if (all)
        return look_at_all(s);
    if (s->a.nplane) {
        rc = refine_likely(s);
        if (rc < 0)
            return rc;
    }
    for (size_t i = s->ngroup / 2; i-- > 0;)
        group_sink(s->groups, s->ngroup, i);
    return VEC_OK;
}

int vec_near_new(const vec_near_args *a, vec_near **out)
{
    vec_near *s;
    int rc = check(a);

    *out = NULL;
    if (rc < 0)
        return rc;
    s = vec_alloc_zero(1, sizeof *s);
    if (!s)
        return VEC_NOMEM;
    s->a = *a;
    rc = begin(s);
    if (rc < 0) {
        vec_near_free(s);
        return rc;
    }
    *out = s;
    return VEC_OK;
}

static int next(vec_near *s, vec_hit *out)
{
    while (!s->rank) {
        double bound = s->ngroup ? (double)s->groups[0].least : INFINITY;
        int rc;

        if (s->nhit && (s->ngroup == 0 || s->hits[0].key < bound)) {
            *out = hit_pop(s);
            return 1;
        }
        if (s->ngroup == 0)
            return 0;
        rc = s->looked > s->rows / BULK_SHARE + GROUP_ROWS ? look_at_all(s) : look_at_least(s);
        if (rc < 0)
            return rc;
    }
    {
        const vec_hit *h = vec_rank_next(s->rank);

        if (h)
            *out = *h;
        return h != NULL;
    }
}

int vec_near_next(vec_near *s, vec_hit *out)
{
    int rc = s->failed ? s->failed : next(s, out);

    if (rc < 0)
        s->failed = rc;
    return rc;
}

size_t vec_near_looked(const vec_near *s)
{
    return s->looked;
}

void vec_near_free(vec_near *s)
{
    if (!s)
        return;
    vec_rank_free(s->rank);
    vec_free(s->scratch);
    vec_free(s->sharp_scratch);
    vec_free(s->low);
    vec_free(s->keys);
    vec_free(s->groups);
    vec_free(s->hits);
    vec_free(s);
}
