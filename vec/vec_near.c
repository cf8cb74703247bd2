/*
 * vec_near.c - exact nearest neighbours on demand, through planes
 *
 * One pass over the coarse records gives every row a lower bound on its distance (vec_near_scan.c).
 * The rows that seem nearest, as many as will be asked for, are looked at: a row's stored vector is
 * fetched and its distance computed. What could still be nearer than the farthest of them gets a
 * finer bound from both halves of its record, sixty-four rows at a time; the few whose finer bound
 * is no higher are the close rows, taken out of their groups. From then on rows are looked at in
 * the order of their bounds; and a row with a known distance is handed out as soon as that is
 * smaller than every bound that is left. So the order is that of the true distances, and how many
 * vectors are read depends on how far the caller asks, not on a k given beforehand: a wrong guess
 * costs time.
 *
 * Whoever asks for no more than was guessed gets it from the close rows. Past them the order of the
 * bounds is not sorted but taken from groups of 64 rows: a heap holds the groups by their least
 * bound, a step takes the least row of the least group. Building that costs a sixty-fourth of a
 * heap of rows, and a step some tens of nanoseconds.
 *
 * Records, vectors and ids of rows that will be read lie anywhere; all are asked for before the
 * first is read, since a miss takes longer than what is done with it.
 *
 * When more than an eighth of the rows had to be looked at, the bounds are no help (or the caller
 * wants it all): then every row that is left is computed in the order of the rows, which memory
 * likes, and vec_rank does the rest.
 *
 * INVARIANTS  low[i] is +infinity where nothing is left in the group: not selected, without vector,
 *             looked at, close. A group in the heap has at least one row left.
 * ERRORS      VEC_NOMEM, VEC_MISUSE, VEC_LIMIT (dimension), VEC_ABORT (stop or fetch said so)
 * THREADS     one thread at a time; the passes over records use several where that pays (vec_par.h)
 *
 * SPDX-License-Identifier: MIT
 */
#include <float.h>
#include <math.h>

#include "vec_base.h"
#include "vec_bits.h"
#include "vec_hit.h"
#include "vec_near_parts.h"

#define STOP_FETCHES 256 // looked at between two questions whether to stop
#define BULK_SHARE   8   // of all rows, one in so many; then all at once
#define LIKELY_ROWS  16  // looked at to begin with when nobody says how many are wanted
#define LIKELY_MAX   1024
#define DULL_FETCHES 16 // more than those, then preparing a sharper query pays
#define CLOSE_ROWS   64 // that a thread may find beyond two for each that is wanted
#define AHEAD        16 // vectors asked for before they are looked at

/* ------------------------------------------------------------------------------------ the heaps */

static void group_sink(near_group *g, size_t n, size_t i)
{
    near_group x = g[i];

    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        child += child + 1 < n && g[child + 1].least < g[child].least;
        if (x.least <= g[child].least)
            break;
        g[i] = g[child];
    }
    g[i] = x;
}

static int push(near_heap *p, vec_hit hit)
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
    for (; i > 0 && vec_hit_less(&hit, &p->h[(i - 1) / 2]); i = (i - 1) / 2)
        p->h[i] = p->h[(i - 1) / 2];
    p->h[i] = hit;
    p->n++;
    return VEC_OK;
}

static vec_hit pop(near_heap *p)
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

/* ------------------------------------------------------------------------------ looking at rows */

static void soon(const vec_near *s, uint64_t row)
{
    if (s->a.soon)
        s->a.soon(s->a.ctx, row);
}

/* Fetches a row's vector; a row that has one is known from then on. */
static int look(vec_near *s, uint64_t row, double *key)
{
    const float *x;
    float norm = 0;

    *key = NAN;
    s->looked++;
    if (vec_near_stopped(s, 1, STOP_FETCHES))
        return VEC_ABORT;
    x = s->a.fetch(s->a.ctx, row, &norm);
    if (!x)
        return VEC_ABORT;
    if (!isnan(norm))
        *key = vec_distance(s->a.metric, s->a.query, s->norm, x, norm, s->a.dim);
    return VEC_OK;
}

/* The same for row i of the group, which is then no longer left. */
static int look_in_group(vec_near *s, const near_group *g, unsigned i, double *key)
{
    s->low[g->slot + i] = INFINITY;
    if (g->answer == NONE)
        return look(s, g->row + i, key);
    *key = s->keys[g->answer + i];
    return VEC_OK;
}

static vec_hit make_hit(const vec_near *s, double key, uint64_t row)
{
    return (vec_hit){key, s->a.id(s->a.ctx, row), row};
}

static int known(vec_near *s, double key, uint64_t row)
{
    return isnan(key) ? VEC_OK : push(&s->hits, make_hit(s, key, row));
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

static float least_of(const vec_near *s, const near_group *g)
{
    return least(s->low + g->slot, g->n);
}

/* Which of the n <= 64 floats are at most `up`, bit by bit; +infinity is not. Without a branch that
 * nobody can predict, and the bits of eight at a time. */
static uint64_t at_most(const float *x, unsigned n, float up)
{
    uint64_t mask = 0;
    unsigned i = 0;

    up = up < FLT_MAX ? up : FLT_MAX;
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

static void settle_top(vec_near *s)
{
    if (s->groups[0].least == INFINITY)
        s->groups[0] = s->groups[--s->ngroup];
    if (s->ngroup)
        group_sink(s->groups, s->ngroup, 0);
}

/* Bounds all rows of the group on top by both halves of their records. */
static void refine_top(vec_near *s)
{
    near_group *g = &s->groups[0];
    float *low = s->low + g->slot, fine[GROUP_ROWS];
    const uint8_t *half[2][GROUP_ROWS];
    unsigned at[GROUP_ROWS], m = 0;

    for (uint64_t w = at_most(low, g->n, FLT_MAX); w; w &= w - 1) {
        at[m] = vec_bits_lowest(w);
        half[0][m] = g->half[0] + at[m] * s->stride;
        half[1][m] = g->half[1] + at[m] * s->stride;
        m++;
    }
    if (m)
        vec_halves_fine(&s->q, half[0], half[1], m, fine);
    for (unsigned i = 0; i < m; i++)
        low[at[i]] = fine[i] > low[at[i]] ? fine[i] : low[at[i]];
    g->fine = INFINITY;
    g->least = least_of(s, g);
    settle_top(s);
}

/* The sharpest bound there is. */
static int sharp_bound(vec_near *s, const uint8_t *coarse, const uint8_t *fine, float *bound)
{
    if (!s->sharp_scratch) {
        s->sharp_scratch = vec_alloc(vec_halves_sharp_scratch(s->a.dim));
        if (!s->sharp_scratch)
            return VEC_NOMEM;
        vec_halves_sharpen(s->a.metric, s->a.query, s->norm, s->a.dim, s->sharp_scratch, &s->sharp);
    }
    *bound = vec_halves_sharp_bound(&s->sharp, coarse, fine);
    return vec_near_stopped(s, 1, STOP_FETCHES) ? VEC_ABORT : VEC_OK;
}

/* For row i of the group on top. */
static int sharpen(vec_near *s, near_group *g, unsigned i)
{
    float *low = s->low + g->slot + i, bound = -INFINITY;
    int rc = sharp_bound(s, g->half[0] + i * s->stride, g->half[1] + i * s->stride, &bound);

    *low = bound > *low ? bound : *low;
    g->sharp |= (uint64_t)1 << i;
    g->least = least_of(s, g);
    settle_top(s);
    return rc;
}

/* Looks at the row of a group with the least bound, or makes the bounds of its group finer. */
static int look_at_least(vec_near *s)
{
    near_group *g = &s->groups[0];
    unsigned at;
    double key;
    uint64_t row;
    int rc;

    if (g->least > g->fine || g->fine == -INFINITY) {
        refine_top(s);
        return vec_near_stopped(s, 1, STOP_FETCHES) ? VEC_ABORT : VEC_OK;
    }
    at = vec_bits_lowest(at_most(s->low + g->slot, g->n, g->least));
    if (s->looked >= s->dull && g->half[0] && !(g->sharp >> at & 1))
        return sharpen(s, g, at);
    row = g->row + at;
    rc = look_in_group(s, g, at, &key);
    if (rc < 0)
        return rc;
    g->least = least_of(s, g);
    settle_top(s);
    return known(s, key, row);
}

/* The same for the close row with the least bound. */
static int look_at_close(vec_near *s)
{
    vec_hit h = pop(&s->queue);
    near_row *r = &s->close[h.id];
    double key;
    int rc;

    if (s->looked >= s->dull && !r->sharp) {
        float bound = -INFINITY;

        r->sharp = 1;
        rc = sharp_bound(s, r->half[0], r->half[1], &bound);
        h.key = (double)bound > h.key ? (double)bound : h.key;
        return rc < 0 ? rc : push(&s->queue, h);
    }
    rc = look(s, r->row, &key);
    return rc < 0 ? rc : known(s, key, r->row);
}

static int by_row(const void *a, const void *b)
{
    const near_group *x = a, *y = b;

    return x->row < y->row ? -1 : x->row > y->row;
}

/* Looks at every row that is left, and leaves what is to be handed out to a rank. */
static int look_at_all(vec_near *s)
{
    size_t n;
    vec_hit *hits;
    double key;
    int rc = VEC_OK;

    while (rc == VEC_OK && s->queue.n)
        rc = look_at_close(s);
    if (rc < 0)
        return rc;
    n = s->hits.n;
    for (size_t g = 0; g < s->ngroup; g++)
        n += s->groups[g].n;
    hits = vec_hits_alloc(n);
    if (!hits)
        return VEC_NOMEM;
    qsort(s->groups, s->ngroup, sizeof *s->groups, by_row);
    n = s->hits.n;
    if (n)
        memcpy(hits, s->hits.h, n * sizeof *hits);
    for (size_t g = 0; g < s->ngroup && rc == VEC_OK; g++) {
        const near_group *x = &s->groups[g];

        for (unsigned i = 0; i < x->n && rc == VEC_OK; i++) {
            if (s->low[x->slot + i] == INFINITY)
                continue;
            rc = look_in_group(s, x, i, &key);
            if (rc == VEC_OK && !isnan(key))
                hits[n++] = make_hit(s, key, x->row + i);
        }
    }
    if (rc < 0) {
        vec_free(hits);
        return rc;
    }
    s->ngroup = s->hits.n = 0;
    return vec_rank_new(hits, n, &s->rank);
}

/* -------------------------------------------------------------------------------- a first guess */

/* The rows that come out first are most likely those whose bounds are least. */
static int find_likely(vec_near *s, vec_topk *likely)
{
    float most = INFINITY;

    for (size_t g = 0; g < s->ngroup; g++) {
        const near_group *x = &s->groups[g];
        const float *low = s->low + x->slot;

        if (!(x->least < most))
            continue;
        for (uint64_t w = at_most(low, x->n, most); w; w &= w - 1) {
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
    return VEC_OK;
}

/* Looks at them. The last one that is asked for cannot be farther than the farthest of these, *up:
 * bounds above it need not be made finer. */
static int look_at_likely(vec_near *s, vec_topk *likely, double *up)
{
    const vec_hit *h;
    size_t n = vec_topk_take(likely, &h), ahead = 0;

    for (size_t k = 0; k < n; k++) {
        near_group *x = &s->groups[h[k].id];
        unsigned i = (unsigned)h[k].row;
        double key;
        int rc;

        for (; ahead < n && ahead < k + AHEAD; ahead++)
            soon(s, s->groups[h[ahead].id].row + h[ahead].row);
        rc = look_in_group(s, x, i, &key);
        x->least = least_of(s, x);
        if (rc == VEC_OK && !isnan(key))
            *up = key > *up ? key : *up;
        rc = rc < 0 ? rc : known(s, key, x->row + i);
        if (rc < 0)
            return rc;
    }
    return VEC_OK;
}

/* Up to sixty-four rows of any groups that are to get finer bounds. */
typedef struct batch {
    const uint8_t *half[2][GROUP_ROWS];
    near_group *group[GROUP_ROWS];
    unsigned at[GROUP_ROWS];
    size_t n;
} batch;

static void refine_batch(near_slice *p, batch *b)
{
    float fine[GROUP_ROWS];

    if (b->n)
        vec_halves_fine(&p->s->q, b->half[0], b->half[1], b->n, fine);
    for (size_t i = 0; i < b->n; i++) {
        near_group *g = b->group[i];
        float *low = p->s->low + g->slot + b->at[i], bound = fine[i] > *low ? fine[i] : *low;

        if (bound <= p->up && p->nclose < p->room) {
            p->close[p->nclose++] = (near_row){
                .row = g->row + b->at[i], .half = {b->half[0][i], b->half[1][i]}, .bound = bound};
            bound = INFINITY;
        }
        *low = bound;
        g->least = bound < g->least ? bound : g->least;
    }
    b->n = 0;
}

static void refine_part(void *arg)
{
    near_slice *p = arg;
    const vec_near *s = p->s;
    batch b = {.n = 0};

    for (size_t i = p->first; i < p->last; i++) {
        near_group *g = &s->groups[i];

        if (g->fine != -INFINITY || !(g->least <= p->up))
            continue;
        g->fine = p->up;
        g->least = nextafterf(p->up, INFINITY); // what is no higher will be close, or lower it
        for (uint64_t w = at_most(s->low + g->slot, g->n, p->up); w; w &= w - 1) {
            unsigned at = vec_bits_lowest(w);

            for (size_t k = 0; k < 2; k++) {
                b.half[k][b.n] = g->half[k] + at * s->stride;
                for (size_t j = 0; j < s->stride; j += 64)
                    vec_prefetch(b.half[k][b.n] + j);
            }
            b.group[b.n] = g;
            b.at[b.n++] = at;
            if (b.n == GROUP_ROWS)
                refine_batch(p, &b);
        }
        if (vec_near_halted(p, g->n, STOP_FETCHES * GROUP_ROWS))
            return;
    }
    refine_batch(p, &b);
}

/* The close rows of all parts, one behind the other and in a heap. */
static int queue_close(vec_near *s, const near_slice *parts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (parts[i].nclose && s->close + s->nclose != parts[i].close)
            memmove(s->close + s->nclose, parts[i].close, parts[i].nclose * sizeof *s->close);
        s->nclose += parts[i].nclose;
    }
    for (size_t i = 0; i < s->nclose; i++) {
        const near_row *r = &s->close[i];
        int rc = push(&s->queue, (vec_hit){(double)r->bound, (int64_t)i, r->row});

        if (rc < 0)
            return rc;
    }
    for (size_t i = 0; i < s->queue.n && i < AHEAD; i++)
        soon(s, s->queue.h[i].row);
    return VEC_OK;
}

/* Rows of a group without records whose distances are small enough. */
static int take_known(vec_near *s, near_group *g, float up)
{
    int rc = VEC_OK;

    for (uint64_t w = at_most(s->low + g->slot, g->n, up); w && rc == VEC_OK; w &= w - 1) {
        unsigned i = vec_bits_lowest(w);

        s->low[g->slot + i] = INFINITY;
        rc = known(s, s->keys[g->answer + i], g->row + i);
    }
    g->least = least_of(s, g);
    return rc;
}

/* Makes all bounds fine that may be needed, in the order of the rows. */
static int refine_all(vec_near *s, float up, size_t want)
{
    near_slice parts[VEC_THREADS_MAX];
    size_t likely = 0, room = 2 * want + CLOSE_ROWS, n;
    int rc;

    for (size_t i = 0; i < s->ngroup; i++)
        likely += s->groups[i].least <= up;
    n = vec_near_threads(s, likely, PART_ROWS / GROUP_ROWS);
    s->close = vec_alloc_array(n * room, sizeof *s->close);
    if (!s->close)
        return VEC_NOMEM;
    for (size_t i = 0; i < n; i++)
        parts[i] = (near_slice){.s = s,
                                .first = s->ngroup / n * i,
                                .last = i + 1 == n ? s->ngroup : s->ngroup / n * (i + 1),
                                .up = up,
                                .close = s->close + i * room,
                                .room = room};
    rc = vec_near_run(refine_part, parts, n);
    rc = rc ? rc : queue_close(s, parts, n);
    s->rest = INFINITY;
    for (size_t i = 0; i < s->ngroup && rc == VEC_OK; i++) {
        near_group *g = &s->groups[i];

        if (g->answer != NONE && g->least <= up)
            rc = take_known(s, g, up);
        s->rest = g->least < s->rest ? g->least : s->rest;
    }
    return rc;
}

/* The least float that is not below x. */
static float round_up(double x)
{
    float f = (float)x;

    return (double)f < x ? nextafterf(f, INFINITY) : f;
}

static int choose(vec_near *s)
{
    size_t want = s->a.hint ? (size_t)s->a.hint : LIKELY_ROWS;
    double up = -INFINITY;
    vec_topk *likely;
    int rc;

    want = want < LIKELY_MAX ? want : LIKELY_MAX;
    s->dull = want + DULL_FETCHES;
    rc = vec_topk_new(want, &likely);
    if (rc < 0)
        return rc;
    rc = find_likely(s, likely);
    rc = rc ? rc : look_at_likely(s, likely, &up);
    vec_topk_free(likely);
    return rc ? rc : refine_all(s, round_up(up), want);
}

/* Makes a heap of the groups that have rows left. */
static void heap_groups(vec_near *s)
{
    size_t left = 0;

    for (size_t i = 0; i < s->ngroup; i++) {
        near_group *g = &s->groups[i];

        if (g->half[0] && g->fine > -INFINITY) // rows may have been taken out
            g->least = least_of(s, g);
        if (g->least < INFINITY)
            s->groups[left++] = *g;
    }
    s->ngroup = left;
    for (size_t i = left / 2; i-- > 0;)
        group_sink(s->groups, left, i);
    s->heaped = 1;
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
    s->rest = -INFINITY;
    if (s->a.nplane && !all)
        vec_halves_prepare(s->a.metric, s->a.query, s->norm, s->a.dim, s->scratch, &s->q);
    rc = vec_near_scan_planes(s, all);
    if (rc == VEC_OK)
        rc = vec_near_scan_exact(s);
    if (rc < 0)
        return rc;
    s->cost = 0;
    if (all)
        return look_at_all(s);
    return s->a.nplane ? choose(s) : VEC_OK;
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

/* One step towards the next hit. */
static int step(vec_near *s, float rest)
{
    if (s->queue.n && s->queue.h[0].key <= (double)rest)
        return look_at_close(s);
    if (!s->heaped) {
        heap_groups(s);
        return VEC_OK;
    }
    return s->looked > s->rows / BULK_SHARE + GROUP_ROWS ? look_at_all(s) : look_at_least(s);
}

static int next(vec_near *s, vec_hit *out)
{
    while (!s->rank) {
        float rest = !s->heaped ? s->rest : s->ngroup ? s->groups[0].least : INFINITY;
        double bound = s->queue.n && s->queue.h[0].key < (double)rest ? s->queue.h[0].key
                                                                      : (double)rest;
        int rc;

        if (s->hits.n && s->hits.h[0].key < bound) {
            *out = pop(&s->hits);
            return 1;
        }
        if (bound == INFINITY)
            return 0;
        rc = step(s, rest);
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
    vec_free(s->close);
    vec_free(s->queue.h);
    vec_free(s->hits.h);
    vec_free(s);
}
