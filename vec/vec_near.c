/*
 * vec_near.c - exact nearest neighbours on demand, through planes
 *
 * One pass over the records gives every row a lower bound on its distance (vec_plane.c). From then
 * on rows are looked at in the order of their bounds: a row's stored vector is fetched and its
 * distance computed; and a row with a known distance is handed out as soon as that is smaller than
 * every bound that is left. So the order is that of the true distances, and how many vectors are
 * read depends on how far the caller asks, not on a k given beforehand.
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
 * THREADS     one thread at a time
 *
 * SPDX-License-Identifier: MIT
 */
#include <float.h>
#include <math.h>

#include "vec_base.h"
#include "vec_bits.h"
#include "vec_hit.h"
#include "vec_near.h"
#include "vec_plane.h"

#define GROUP_ROWS   64
#define STOP_BYTES   65536 // scanned between two questions whether to stop
#define STOP_FETCHES 256   // looked at between two questions
#define BULK_SHARE   8     // of all rows, one in so many; then all at once

typedef struct group {
    float least;   // of its rows that are left
    unsigned n;    // rows
    uint64_t row;  // number of the first
    size_t slot;   // its place in low
    size_t answer; // rows without a record: its place in keys; else NONE
} group;

#define NONE SIZE_MAX

struct vec_near {
    vec_near_args a;
    float norm;
    vec_plane_query q;
    void *scratch;
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

static void add_group(vec_near *s, float least, uint64_t row, unsigned n, size_t answer)
{
    if (least < INFINITY)
        s->groups[s->ngroup++] = (group){least, n, row, s->nslot, answer};
    s->nslot += n;
}

/* Bounds of the n rows whose records start at record, where mask says so. */
static float bound_rows(vec_near *s, const uint8_t *record, size_t stride, uint64_t mask,
                        unsigned n)
{
    const vec_plane_kernels *k = vec_plane_kern();
    float *low = s->low + s->nslot, picked[GROUP_ROWS], least;
    const uint8_t *rows[GROUP_ROWS];
    int32_t dots[GROUP_ROWS];
    size_t m = 0;

    if (mask == vec_bits_low(n)) {
        for (; m < n; m++)
            rows[m] = record + m * stride;
        k->dots(&s->q, rows, n, dots);
        return k->lows(&s->q, rows, dots, n, low);
    }
    for (uint64_t w = mask; w; w &= w - 1)
        rows[m++] = record + vec_bits_lowest(w) * stride;
    k->dots(&s->q, rows, m, dots);
    least = k->lows(&s->q, rows, dots, m, picked);
    for (unsigned i = 0; i < n; i++)
        low[i] = INFINITY;
    m = 0;
    for (uint64_t w = mask; w; w &= w - 1)
        low[vec_bits_lowest(w)] = picked[m++];
    return least;
}

/* No bounds: every row that has a vector will be looked at. */
static float leave_open(vec_near *s, const uint8_t *record, size_t stride, uint64_t mask,
                        unsigned n)
{
    float least = INFINITY, *low = s->low + s->nslot;

    for (unsigned i = 0; i < n; i++) {
        low[i] = INFINITY;
        if (mask >> i & 1 && vec_plane_has_vector(record + i * stride))
            least = low[i] = -INFINITY;
    }
    return least;
}

static int scan_planes(vec_near *s, int all)
{
    size_t stride = vec_plane_stride(s->a.dim);

    for (size_t e = 0; e < s->a.nplane; e++) {
        const vec_plane_extent *x = &s->a.planes[e];

        for (uint64_t i = 0; i < x->n; i += GROUP_ROWS) {
            unsigned n = x->n - i < GROUP_ROWS ? (unsigned)(x->n - i) : GROUP_ROWS;
            uint64_t row = x->first + i;
            uint64_t mask = s->a.filter ? vec_bits_group(s->a.filter, row, n) : vec_bits_low(n);

            if (mask) {
                const uint8_t *records = x->records + i * stride;
                float least = all ? leave_open(s, records, stride, mask, n)
                                  : bound_rows(s, records, stride, mask, n);

                s->rows += vec_bits_popcount(mask);
                add_group(s, least, row, n, NONE);
            }
            if (stopped(s, GROUP_ROWS + vec_bits_popcount(mask) * stride, STOP_BYTES))
                return VEC_ABORT;
        }
    }
    return VEC_OK;
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
            uint64_t row = x->first + i;
            uint64_t mask = s->a.filter ? vec_bits_group(s->a.filter, row, n) : vec_bits_low(n);
            float least = INFINITY, *low = s->low + s->nslot;
            double *keys = s->keys + s->nkey;
            int rc;

            if (mask) {
                rc = vec_scan(s->a.metric, s->a.query, s->a.dim, &part, 1, &mask, keys, NULL, NULL);
                if (rc < 0)
                    return rc;
                for (unsigned j = 0; j < n; j++) {
                    low[j] = mask >> j & 1 ? round_down(keys[j]) : INFINITY;
                    least = low[j] < least ? low[j] : least;
                }
                s->rows += vec_bits_popcount(mask);
                add_group(s, least, row, n, s->nkey);
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

/* Looks at the row with the least bound of all. */
static int look_at_least(vec_near *s)
{
    group *g = &s->groups[0];
    const float *low = s->low + g->slot;
    float least = INFINITY;
    unsigned at = 0;
    double key;
    uint64_t row;
    int rc;

    while (low[at] != g->least)
        at++;
    row = g->row + at;
    rc = look(s, g, at, &key);
    if (rc < 0)
        return rc;
    for (unsigned i = 0; i < g->n; i++)
        least = low[i] < least ? low[i] : least;
    g->least = least;
    if (least == INFINITY)
        *g = s->groups[--s->ngroup];
    if (s->ngroup)
        group_sink(s->groups, s->ngroup, 0);
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
    s->scratch = vec_alloc(vec_plane_scratch(s->a.nplane ? s->a.dim : 0));
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
    if (s->a.nplane && !all)
        vec_plane_prepare(s->a.metric, s->a.query, s->norm, s->a.dim, s->scratch, &s->q);
    rc = scan_planes(s, all);
    if (rc == VEC_OK)
        rc = scan_exact(s);
    if (rc < 0)
        return rc;
    s->cost = 0;
    if (all)
        return look_at_all(s);
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
    vec_free(s->low);
    vec_free(s->keys);
    vec_free(s->groups);
    vec_free(s->hits);
    vec_free(s);
}
