/*
 * vec_top.c - the k best rows of a text query, without looking at most of the others
 *
 * MaxScore (Turtle and Flood 1995) by windows with block maxima (Ding and Suel 2011; Mallia et al.
 * 2017). In each window of 4096 ordinals every leaf has a bound, the largest part that its blocks
 * there can add. Leaves are sorted by it. As long as the smallest together cannot reach what the
 * k-th best has, rows that hold only these need not be looked at: the other leaves are added up as
 * in the exhaustive search, and only rows whose sum could still reach the k-th best are looked up
 * in the rest, largest bound first. Where no leaf is needed the window is passed over.
 *
 * To have something to compare with from the start, the rows of the rarest leaf are scored before:
 * the k-th best of these is a first threshold.
 *
 * Sums are exact (vec_words.h), so that a row's score has the bits of the exhaustive search. Bounds
 * are rounded up by a hair, since theirs need not be. Where ids ascend with the rows, a tie with
 * the k-th best is lost; else it is looked at.
 *
 * ERRORS   VEC_NOMEM, VEC_FORMAT, VEC_ABORT
 * THREADS  one call, one thread
 * TESTS    t_vec_top.c
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>

#include "vec_window.h"

#define SEED_ROWS  512u /* of the rarest leaf at most */
#define LEAVES_MAX 128u /* more are added up without bounds */

typedef struct leaf {
    double weight;
    double bound;   // in the window at hand
    double all;     // for a list without block maxima: bound of all its postings
    uint32_t block; // the first whose last ordinal is not before the window
    int done;
    vec_cursor c;
} leaf;

typedef struct top {
    vec_words *w;
    vec_topk *best;
    double seed;   // at least k rows have this score
    int ascending; // whoever comes later loses a tie
    int64_t (*id)(void *ctx, uint64_t row);
    void *ctx;
    leaf *leaves;
    leaf **order;  // by bound, ascending
    double *below; // below[i]: sum of the bounds of order[0..i-1]
    uint32_t nleaf;
    double sum[VEC_WINDOW];
} top;

/* ------------------------------------------------------------------------------------ threshold */

/* What a row must reach; it may also equal it, unless *more. */
static double threshold(const top *t, int *more)
{
    double k = -vec_topk_bound(t->best); // -infinity while there are fewer than k

    *more = t->ascending && k >= t->seed;
    return k > t->seed ? k : t->seed;
}

static int fails(double score, double least, int more)
{
    return more ? score <= least : score < least;
}

/* --------------------------------------------------------------------------------------- bounds */

static double up(double x)
{
    return x * (1 + 1e-12);
}

static double block_bound(const vec_words *w, const leaf *l, uint32_t b)
{
    const uint8_t *m = vec_cursor_maxima(&l->c, b);
    double most = 0;

    for (uint32_t k = 0; k < VEC_MAXIMA && m[2 * k]; k++) {
        double x = m[2 * k] == 255 ? l->weight * (w->k1 + 1)
                                   : vec_words_part(w, l->weight, m[2 * k], m[2 * k + 1]);

        most = x > most ? x : most;
    }
    return most;
}

/* The largest part in the window w..end-1. */
static void bound_leaf(const vec_words *w, leaf *l, uint32_t from, uint32_t end)
{
    vec_cursor *c = &l->c;

    l->bound = 0;
    if (l->done)
        return;
    if (!c->skips) {
        l->bound = l->all;
        return;
    }
    while (l->block < c->nblock && vec_cursor_last(c, l->block) < from)
        l->block++;
    for (uint32_t b = l->block; b < c->nblock; b++) {
        double x;

        if (b > l->block && vec_cursor_last(c, b - 1) + 1 >= end)
            break;
        x = block_bound(w, l, b);
        l->bound = x > l->bound ? x : l->bound;
    }
    l->done = l->block == c->nblock;
}

/* Opens a leaf on its list in a source. A list of a single block is bounded by looking at it. */
static int open_leaf(const top *t, const vec_part *p, const vec_ref *ref, double weight, leaf *l)
{
    int rc = vec_cursor_open(&l->c, ref, p->nrow);

    l->weight = weight;
    l->block = 0;
    l->done = 0;
    l->all = weight * (t->w->k1 + 1);
    if (rc || l->c.nblock != 1)
        return rc;
    rc = vec_cursor_next(&l->c);
    l->all = 0;
    for (uint32_t i = 0; i < l->c.n; i++) {
        double x = vec_words_part(t->w, weight, vec_cursor_tf(&l->c, i),
                                  vec_part_len(p, l->c.ord[i]));

        l->all = x > l->all ? x : l->all;
    }
    return rc < 0 ? rc : VEC_OK;
}

/* Bounds and order for the window; the number of leaves that a row may do without. */
static uint32_t sort_leaves(top *t, uint32_t w, uint32_t end, double least, int more)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < t->nleaf; i++) {
        leaf *l = t->order[i];
        uint32_t at = i;

        bound_leaf(t->w, l, w, end);
        for (; at > 0 && t->order[at - 1]->bound > l->bound; at--)
            t->order[at] = t->order[at - 1];
        t->order[at] = l;
    }
    t->below[0] = 0;
    for (uint32_t i = 0; i < t->nleaf; i++)
        t->below[i + 1] = up(t->below[i] + t->order[i]->bound);
    while (n < t->nleaf && fails(t->below[n + 1], least, more))
        n++;
    return n;
}

/* ------------------------------------------------------------------------------------ one
 * window */

/* A row that may be one of the best: adds the leaves that were left out, and enters it. */
static int try_row(top *t, const vec_part *p, uint32_t ord, uint64_t row, uint32_t spare,
                   double score)
{
    uint32_t dl = vec_part_len(p, ord);
    vec_hit hit;

    for (uint32_t i = spare; i-- > 0;) {
        leaf *l = t->order[i];
        int more, rc;
        double least = threshold(t, &more);

        if (fails(score + t->below[i + 1], least, more))
            return VEC_OK;
        if (l->done)
            continue;
        rc = vec_cursor_seek(&l->c, ord);
        if (rc < 0)
            return rc;
        l->done = rc == 0;
        if (rc == 1 && l->c.ord[l->c.at] == ord)
            score += vec_words_part(t->w, l->weight, vec_cursor_tf(&l->c, l->c.at), dl);
    }
    hit = (vec_hit){-score, t->id ? t->id(t->ctx, row) : (int64_t)row, row};
    return vec_topk_push(t->best, &hit);
}

static int collect_group(top *t, const vec_part *p, uint32_t ord, unsigned n, uint32_t spare,
                         double *sum)
{
    int more, rc = VEC_OK;
    double least = threshold(t, &more), need = least - t->below[spare];
    uint64_t have;

    need -= 1e-12 * (need > 0 ? least : 0);
    if (need <= 0)
        need = t->w->step; // what the least part adds
    have = vec_window_have(sum, n, need);
    if (have && !p->rowoff)
        have &= vec_window_want(t->w, p, ord, n);
    for (; have && rc >= 0; have &= have - 1) {
        unsigned i = vec_bits_lowest(have);
        uint64_t row = p->first + ord + i;

        rc = p->rowoff ? vec_window_row(t->w, p, ord + i, &row) : 1;
        if (rc == 1)
            rc = try_row(t, p, ord + i, row, spare, sum[i]);
    }
    memset(sum, 0, n * sizeof *sum);
    return rc < 0 ? rc : VEC_OK;
}

static int search_window(top *t, const vec_part *p, uint32_t w, uint32_t end, uint32_t spare)
{
    uint64_t touched = 0;
    uint32_t next = UINT32_MAX;
    int rc = VEC_OK;

    for (uint32_t i = spare; i < t->nleaf; i++) {
        leaf *l = t->order[i];

        if (l->done || l->bound == 0)
            continue;
        rc = vec_window_leaf(t->w, p, &l->c, l->weight, w, end, t->sum, &touched, &next);
        if (rc < 0)
            return rc;
        l->done = rc == 0;
    }
    for (rc = VEC_OK; touched && !rc; touched &= touched - 1) {
        uint32_t at = 64 * vec_bits_lowest(touched), n = end - w - at;

        rc = collect_group(t, p, w + at, n < 64 ? n : 64, spare, t->sum + at);
    }
    return rc;
}

static int search_source(top *t, size_t source)
{
    const vec_part *p = &t->w->parts[source];

    t->nleaf = 0;
    for (uint32_t i = 0; i < t->w->ask.nphrase; i++) {
        const vec_ref *ref = vec_words_ref(t->w, source, i);
        int rc;

        if (!ref->df || !(t->w->weight[i] > 0))
            continue;
        rc = open_leaf(t, p, ref, t->w->weight[i], &t->leaves[t->nleaf]);
        if (rc)
            return rc;
        t->order[t->nleaf] = &t->leaves[t->nleaf];
        t->nleaf++;
    }
    for (uint32_t w = 0; t->nleaf && w < p->nrow;) {
        uint32_t end = p->nrow - w > VEC_WINDOW ? w + VEC_WINDOW : p->nrow, spare;
        int more, rc = VEC_OK;
        double least = threshold(t, &more);

        if (vec_words_stop(t->w))
            return VEC_ABORT;
        spare = sort_leaves(t, w, end, least, more);
        if (spare < t->nleaf && vec_window_wanted(t->w, p, w, end))
            rc = search_window(t, p, w, end, spare);
        if (rc)
            return rc;
        w = end;
    }
    return VEC_OK;
}

/* -------------------------------------------------------------------------------------- the
 * seed */

/* Wanted rows of a leaf, by source, at most SEED_ROWS. */
static int leaf_rows(const top *t, uint32_t l, uint64_t *rows, size_t *n)
{
    vec_cursor c;

    *n = 0;
    for (size_t s = 0; s < t->w->a.nsource; s++) {
        const vec_ref *ref = vec_words_ref(t->w, s, l);
        int rc = ref->df ? vec_cursor_open(&c, ref, t->w->parts[s].nrow) : VEC_OK;

        while (!rc && ref->df && *n < SEED_ROWS && (rc = vec_cursor_next(&c)) == 1) {
            rc = VEC_OK;
            for (uint32_t i = 0; i < c.n && *n < SEED_ROWS && rc >= 0; i++) {
                rc = vec_window_row(t->w, &t->w->parts[s], c.ord[i], &rows[*n]);
                *n += rc == 1;
            }
            rc = rc < 0 ? rc : VEC_OK;
        }
        if (rc)
            return rc;
    }
    return VEC_OK;
}

/* A threshold from the rows of the leaf that weighs most among those with k rows. */
static int make_seed(top *t, size_t k)
{
    const vec_words *w = t->w;
    uint64_t *rows = NULL;
    double *scores = NULL;
    uint32_t rare = UINT32_MAX;
    uint64_t postings = 0;
    size_t n = 0;
    int rc = VEC_OK;

    t->seed = -INFINITY;
    for (uint32_t i = 0; i < w->ask.nphrase; i++) {
        if (w->weight[i] > 0 && w->df[i] >= k &&
            (rare == UINT32_MAX || w->weight[i] > w->weight[rare]))
            rare = i;
        postings += w->weight[i] > 0 ? w->df[i] : 0;
    }
    if (rare == UINT32_MAX || k > SEED_ROWS || postings < 8 * SEED_ROWS)
        return VEC_OK;
    rows = vec_alloc_array(SEED_ROWS, sizeof *rows);
    scores = vec_alloc_array(SEED_ROWS, sizeof *scores);
    rc = rows && scores ? leaf_rows(t, rare, rows, &n) : VEC_NOMEM;
    if (!rc && n >= k) {
        vec_topk *best = NULL;

        rc = vec_words_score(w, rows, n, scores);
        rc = rc ? rc : vec_topk_new(k, &best);
        for (size_t i = 0; i < n && !rc; i++) {
            vec_hit h = {-scores[i], (int64_t)i, i};

            rc = vec_topk_push(best, &h);
        }
        t->seed = rc ? -INFINITY : -vec_topk_bound(best);
        vec_topk_free(best);
    }
    vec_free(rows);
    vec_free(scores);
    return rc;
}

/* ---------------------------------------------------------------------------------------
 * results */

static int take(top *t, vec_hit **out, size_t *n)
{
    const vec_hit *best;
    size_t count = vec_topk_take(t->best, &best);

    *out = vec_hits_alloc(count);
    if (!*out)
        return VEC_NOMEM;
    if (count)
        memcpy(*out, best, count * sizeof **out);
    *n = count;
    return VEC_OK;
}

/* Do rows come in ascending order, source by source? */
static int rows_ascend(const vec_words *w)
{
    uint64_t next = 0;

    for (size_t i = 0; i < w->a.nsource; i++) {
        const vec_part *p = &w->parts[i];

        if (p->nrow == 0)
            continue;
        if (p->first < next)
            return 0;
        next = p->first + p->span + 1;
    }
    return 1;
}

/* The best of all. */
static int exhaustive(top *t)
{
    vec_hit *all;
    size_t n;
    int rc = vec_words_all(t->w, &all, &n);

    for (size_t i = 0; i < n && !rc; i++) {
        all[i].id = t->id ? t->id(t->ctx, all[i].row) : (int64_t)all[i].row;
        rc = vec_topk_push(t->best, &all[i]);
    }
    vec_free(all);
    return rc;
}

/* Best first, each source in turn. */
static int search(top *t, size_t k)
{
    int rc;

    if (k == 0)
        return VEC_OK;
    if (t->w->ask.nphrase > LEAVES_MAX || k > t->w->nlive / 4)
        return exhaustive(t);
    rc = make_seed(t, k);
    for (size_t i = 0; i < t->w->a.nsource && !rc; i++)
        rc = search_source(t, i);
    return rc;
}

int vec_words_top(vec_words *w, size_t k, int64_t (*id)(void *ctx, uint64_t row), void *ctx,
                  vec_hit **out, size_t *n)
{
    size_t nleaf = w->ask.nphrase;
    top *t = vec_alloc_zero(1, sizeof *t);
    int rc = VEC_NOMEM;

    *out = NULL;
    *n = 0;
    if (!t)
        return VEC_NOMEM;
    t->w = w;
    t->id = id;
    t->ctx = ctx;
    t->ascending = id == NULL && rows_ascend(w);
    t->leaves = vec_alloc_array(nleaf, sizeof *t->leaves);
    t->order = vec_alloc_array(nleaf, sizeof *t->order);
    t->below = vec_alloc_array(nleaf + 1, sizeof *t->below);
    if (t->leaves && t->order && t->below)
        rc = vec_topk_new(k, &t->best);
    rc = rc ? rc : search(t, k);
    rc = rc ? rc : take(t, out, n);
    vec_topk_free(t->best);
    vec_free(t->leaves);
    vec_free(t->order);
    vec_free(t->below);
    vec_free(t);
    return rc;
}
