/*
 * st_whole.c - scores of all rows, most of them as bounds
 *
 * ORDER    Rows are laid out session by session with two empty places between sessions, so that a
 *          neighbour is the place beside it, and what neighbours add to all rows is one pass of
 *          five products that asks nothing.
 *
 * BOUNDS   The text part of every row is known. Of the vector part a lower and an upper bound come
 *          from the plane records (vec_bounds), less than a third of the bytes of the vectors. A
 *          row's position by vector is at least 1 + the rows whose lower bound is above its upper
 *          one. Part and position bound the score; rows become candidates in that order, and each
 *          candidate's part is made exact, from the vectors of the row and its neighbours.
 *
 * EXACT    For the position of an exact part, rows certain to be before it are counted by their
 *          lower bounds, and those in doubt are made exact, too. Only the first ST_COUNTED
 *          positions differ, so only rows that may be among them (close) are looked at: rows below
 *          the bound of the last one counted are the next position whatever they are.
 *          Bounds are widened by more than the steps that make them can be off.
 *
 * PUT OFF  A page's rows all reach the PAGE-th largest of what scores can be at least; what does
 *          not is sorted only when somebody reads on.
 *
 * ALL      Where everything will be read, or an eighth has been, or there are no plane records, all
 *          distances are made in one pass over the vectors; the scores are the same.
 *
 * ERRORS   ST_NOMEM, what reading gives, VEC_ABORT when the host says stop
 *
 * SPDX-License-Identifier: MIT
 */
#include "st_search.h"

#include <math.h>
#include <stdlib.h>

enum { VECTOR, TEXT, GAP = ST_TURN_STEPS, PAGE = 24, ALL_SHARE = 8, ROUND = 4096 };

#define WIDER 1.00001 // the float steps of a bound are off by less

/* ------------------------------------------------------------------------------------ the order */

static int lay_rest(st_cursor *c, st_whole *w, uint64_t nrow)
{
    const st_blend *b = &c->blend;
    int turns = b->set.context > 0;
    w->tail = w->n;
    for (uint64_t r = 0; r < nrow; r++) {
        int apart = !turns ||
                    (r < b->base->nrow ? b->base->session[r]
                                       : b->rest->session[r - b->base->nrow]) == ST_TURN_NONE;
        if (apart && st_bit_get(c->bits, r)) {
            w->row[w->n++] = (uint32_t)r;
        }
    }
    return ST_OK;
}

static void take_order(const st_turns *t, uint64_t offset, uint32_t session, const uint64_t *valid,
                       st_whole *w)
{
    for (uint32_t i = t->first[session]; i < t->first[session + 1]; i++) {
        uint64_t r = offset + t->order[i];
        w->row[w->n] = (uint32_t)r;
        w->n += (size_t)st_bit_get(valid, r);
    }
}

/* The rows of the session inside the file and outside, in their common order. */
static int lay_session(st_cursor *c, st_whole *w, uint32_t session, st_error *err)
{
    const st_blend *b = &c->blend;
    const st_turns *t[2] = {b->base, b->rest};
    uint64_t offset[2] = {0, b->base->nrow};
    size_t from = w->n;
    for (int l = 0; l < 2; l++) {
        size_t mid = w->n;
        if (session < t[l]->nsession) {
            take_order(t[l], offset[l], session, b->valid, w);
        }
        if (l && mid > from && w->n > mid) {
            ST_TRY(st_turns_merge(c->v, b->base, w->row + from, mid - from, w->n - mid, err));
        }
    }
    if (w->n > from) {
        for (int i = 0; i < GAP; i++) {
            w->row[w->n++] = ST_TURN_NONE;
        }
    }
    return ST_OK;
}

static int lay_out(st_cursor *c, st_whole *w, st_error *err)
{
    const st_blend *b = &c->blend;
    if (b->set.context > 0) {
        uint32_t n = ST_MAX(b->base->nsession, b->rest->nsession);
        for (int i = 0; i < GAP; i++) {
            w->row[w->n++] = ST_TURN_NONE;
        }
        for (uint32_t s = 0; s < n; s++) {
            ST_TRY(lay_session(c, w, s, err));
        }
    }
    return lay_rest(c, w, c->v->f->nrow);
}

/* ------------------------------------------------------------------------------------ the parts */

/* A row's vector counts where it or a neighbour is in the filter. */
static void mark_needed(st_whole *w)
{
    for (size_t j = 0; j < w->n; j++) {
        int near = w->is[j];
        if (!(near & ST_PLACE_IN) && j >= GAP && j + GAP < w->tail) {
            near |= w->is[j - 1] | w->is[j + 1] | w->is[j - 2] | w->is[j + 2];
        }
        if (near & ST_PLACE_IN && w->row[j] != ST_TURN_NONE) {
            st_bit_set(w->need, w->row[j]);
        }
    }
}

/* Marks, factors, text parts of the rows alone; which vectors are needed. */
static int mark(st_cursor *c, st_whole *w, st_error *err)
{
    const st_blend *b = &c->blend;
    int in;
    for (size_t j = 0; j < w->n; j++) {
        uint64_t r = w->row[j];
        w->is[j] = 0;
        w->bare[j] = 0;
        w->factor[j] = 1;
        if (r == ST_TURN_NONE) {
            continue;
        }
        w->place[r] = (uint32_t)j;
        w->is[j] = st_bit_get(c->bits, r) ? ST_PLACE_IN : 0;
        if (j < w->tail && (b->set.asks || b->set.named)) {
            w->factor[j] = (float)st_blend_turn_factor(b, r);
        }
        if (b->has[TEXT] && !isnan(c->text_rank[r])) {
            w->is[j] |= ST_PLACE_TEXT;
            ST_TRY(st_blend_own(c, TEXT, r, &w->bare[j], &in, NULL, err));
        }
        if (j % ROUND == 0 && st_search_stop(c)) {
            return st_from_vec(err, VEC_ABORT, "ranking");
        }
    }
    if (b->has[VECTOR]) {
        mark_needed(w);
    }
    return ST_OK;
}

#define AROUND(x, j, fade) ((x)[(j)-1] + (x)[(j) + 1] + (fade) * ((x)[(j)-2] + (x)[(j) + 2]))

static void add_text(const st_cursor *c, st_whole *w)
{
    const double *text = w->bare;
    double context = c->blend.set.context, fade = st_fades[1];
    for (size_t j = 0; j < GAP && j < w->tail; j++) {
        w->text[j] = 0;
    }
    for (size_t j = GAP; j + GAP < w->tail; j++) {
        w->text[j] = (text[j] + context * AROUND(text, j, fade)) * (double)w->factor[j];
    }
    for (size_t j = w->tail < GAP ? 0 : w->tail - GAP; j < w->tail; j++) {
        w->text[j] = 0;
    }
    memcpy(w->text + w->tail, text + w->tail, (w->n - w->tail) * sizeof *text);
}

static float at_least_0(double x)
{
    return x > 0 ? (float)x : 0;
}

/* Between what the own vector part of a place lies whose distance lies between near and far. */
static void own_bounds(const st_cursor *c, uint64_t row, float near, float far, float *low,
                       float *high)
{
    double w = st_blend_size_factor(&c->blend, row);
    if (c->metric == VEC_COSINE) { // what most ask for, in fewer steps
        float x = near > 0 ? 1 - near / 2 : 1, y = far < 2 ? 1 - far / 2 : 0;
        x *= x, x *= x, y *= y, y *= y;
        *high = x * x * (float)(w * WIDER);
        *low = y * y * (float)(w / WIDER);
        return;
    }
    if (c->metric == VEC_L2) {
        near = near > 0 ? near : 0;
    }
    *high = isinf(near) ? 1 : at_least_0(st_closeness(c->metric, (double)near) * w * WIDER);
    *low = isinf(far) ? 0 : at_least_0(st_closeness(c->metric, (double)far) * w / WIDER);
}

/* near and far by row, of the rows that are needed. */
static int distances(st_cursor *c, st_whole *w, float *near, float *far, st_error *err)
{
    const st_frozen *f = c->v->f;
    size_t dim = (size_t)f->gen->schema->dim;
    int rc = VEC_LIMIT;
    if (!w->exact) {
        ST_TRY(st_search_planes(c, err));
        rc = vec_bounds(c->metric, c->query, dim, c->plane, c->nplane, w->need, near, far,
                        st_search_stop, c);
    }
    if (rc == VEC_LIMIT) {
        w->exact = 1;
        ST_TRY(st_search_distances(c, w->need, err));
    } else {
        ST_TRY(st_from_vec(err, rc, "the vector search"));
    }
    for (uint64_t r = w->exact ? 0 : f->nbase; r < f->nrow; r++) {
        double d = NAN;
        if (st_bit_get(w->need, r)) {
            ST_TRY(st_blend_distance(c, r, &d, err));
        }
        near[r] = isnan(d) ? INFINITY : (float)d;
        far[r] = near[r];
        if (!isnan(d)) {
            near[r] = nextafterf(near[r], -INFINITY);
            far[r] = nextafterf(far[r], INFINITY);
        }
    }
    return ST_OK;
}

static int vector_parts(st_cursor *c, st_whole *w, st_error *err)
{
    float *low = w->bare_low, *high = w->bare_high;
    uint64_t nrow = c->v->f->nrow;
    float context = (float)c->blend.set.context, fade = (float)st_fades[1];
    float *near = h5_alloc_array((size_t)nrow * 2 + 1, sizeof *near), *far = near + nrow;
    int rc = near ? distances(c, w, near, far, err) : st_nomem(err);
    for (size_t j = 0; j < w->n && !rc; j++) {
        uint32_t r = w->row[j];
        low[j] = high[j] = 0;
        if (r != ST_TURN_NONE && st_bit_get(w->need, r) && !(near[r] == INFINITY)) {
            w->is[j] |= ST_PLACE_VECTOR;
            own_bounds(c, r, near[r], far[r], &low[j], &high[j]);
        }
    }
    h5_free(near);
    ST_TRY(rc);
    memcpy(w->low, low, w->n * sizeof *w->low);
    memcpy(w->high, high, w->n * sizeof *w->high);
    for (size_t j = GAP; j + GAP < w->tail; j++) {
        w->low[j] = (low[j] + context * AROUND(low, j, fade)) * w->factor[j] * (float)(1 / WIDER);
        w->high[j] = (high[j] + context * AROUND(high, j, fade)) * w->factor[j] * (float)WIDER;
    }
    return ST_OK;
}

/* Which places are given: those that have a part, or, where asked for, stand next to one. */
static void mark_given(const st_cursor *c, st_whole *w)
{
    int has = ST_PLACE_VECTOR | ST_PLACE_TEXT;
    for (size_t j = 0; j < w->n; j++) {
        int any = w->is[j] & has;
        if (!any && c->blend.set.neighbours_too && j >= GAP && j + GAP < w->tail) {
            any = (w->is[j - 1] | w->is[j + 1]) & has;
        }
        if (any && w->is[j] & ST_PLACE_IN) {
            w->is[j] |= ST_PLACE_GIVEN;
        }
    }
}

/* ------------------------------------------------------------------------------------- the tops */

/* Heap of the largest, the least on top. */
static void tops_take(double *h, size_t *n, size_t most, double x)
{
    size_t i = *n;
    if (i < most) {
        for (++*n; i && h[(i - 1) / 2] > x; i = (i - 1) / 2) {
            h[i] = h[(i - 1) / 2];
        }
        h[i] = x;
        return;
    }
    i = 0;
    for (size_t k; (k = 2 * i + 1) < most; i = k) {
        k += k + 1 < most && h[k + 1] < h[k];
        if (h[k] >= x) {
            break;
        }
        h[i] = h[k];
    }
    h[i] = x;
}

/* Most numbers are none of the largest. */
static inline void tops_add(double *h, size_t *n, size_t most, double x)
{
    if (*n < most || x > h[0]) {
        tops_take(h, n, most, x);
    }
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

static void find_tops(st_whole *w)
{
    st_tops *t = &w->text_tops, *v = &w->low_tops;
    for (size_t j = 0; j < w->n; j++) {
        if (w->is[j] & ST_PLACE_GIVEN) {
            if (w->text[j] > 0) {
                tops_add(t->most, &t->n, ST_COUNTED + 1, w->text[j]);
            }
            if (w->low[j] > 0) {
                tops_add(v->most, &v->n, ST_COUNTED + 1, (double)w->low[j]);
            }
        }
    }
    qsort(t->most, t->n, sizeof *t->most, by_size);
    qsort(v->most, v->n, sizeof *v->most, by_size);
}

/* 1 + how many of the tops are above x, as far as is counted; the last for nothing. */
static unsigned place_among(const st_tops *t, double x)
{
    size_t lo = 0, hi = t->n;
    if (!(x > 0) || (t->n == ST_COUNTED + 1 && x < t->most[ST_COUNTED])) {
        return ST_COUNTED + 1;
    }
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (t->most[mid] > x) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo < ST_COUNTED ? (unsigned)lo + 1 : ST_COUNTED + 1;
}

/* ------------------------------------------------------------------------------- exact, one row */

static int own_vector(st_cursor *c, st_whole *w, size_t j, double *out, st_error *err)
{
    int in;
    *out = 0;
    if (!(w->is[j] & ST_PLACE_VECTOR)) {
        return ST_OK;
    }
    if (isnan(w->own[j])) {
        ST_TRY(st_blend_own(c, VECTOR, w->row[j], &w->own[j], &in, NULL, err));
    }
    *out = w->own[j];
    return ST_OK;
}

static int exact_part(st_cursor *c, st_whole *w, size_t j, double *out, st_error *err)
{
    double x[2 * GAP + 1], *mid = x + GAP;
    *out = w->part[j];
    if (!isnan(*out)) {
        return ST_OK;
    }
    ST_TRY(own_vector(c, w, j, mid, err));
    *out = *mid;
    if (j < w->tail) {
        for (int k = 1; k <= GAP; k++) {
            ST_TRY(own_vector(c, w, j - (size_t)k, mid - k, err));
            ST_TRY(own_vector(c, w, j + (size_t)k, mid + k, err));
        }
        *out = (*mid + c->blend.set.context * AROUND(mid, 0, st_fades[1])) * (double)w->factor[j];
    }
    w->part[j] = *out;
    return ST_OK;
}

/* The position of an exact vector part. */
static int exact_position(st_cursor *c, st_whole *w, size_t j, double mine, unsigned *out,
                          st_error *err)
{
    const st_tops *t = &w->low_tops;
    unsigned before = 0;
    *out = ST_COUNTED + 1;
    if (!(mine > 0) || (t->n == ST_COUNTED + 1 && mine < t->most[ST_COUNTED])) {
        return ST_OK;
    }
    for (size_t i = 0; i < w->nclose && before < ST_COUNTED; i++) {
        size_t k = w->close[i];
        double other;
        if (k == j || (double)w->high[k] <= mine) {
            continue;
        }
        if (isnan(w->part[k]) && (double)w->low[k] > mine) {
            before++;
            continue;
        }
        ST_TRY(exact_part(c, w, k, &other, err));
        before += other > mine;
    }
    *out = before + 1;
    return ST_OK;
}

static double rank_share(const st_cursor *c, unsigned vector, unsigned text)
{
    const st_blend *b = &c->blend;
    double k = b->set.rrf_k;
    return st_blend_share(b, VECTOR) * (k + 1) / (k + vector) +
           st_blend_share(b, TEXT) * (k + 1) / (k + text);
}

int st_whole_score(st_cursor *c, uint64_t row, double *score, double *share, st_error *err)
{
    const st_blend *b = &c->blend;
    st_whole *w = b->whole;
    size_t j = w->place[row];
    double v = 0;
    unsigned at = ST_COUNTED + 1;
    if (b->has[VECTOR]) {
        ST_TRY(exact_part(c, w, j, &v, err));
    }
    *share = 1;
    *score = st_blend_share(b, VECTOR) * v + st_blend_share(b, TEXT) * w->text[j];
    if (st_blend_by_ranks(b)) {
        ST_TRY(exact_position(c, w, j, v, &at, err));
        *share = rank_share(c, at, place_among(&w->text_tops, w->text[j]));
    }
    *score *= *share;
    return ST_OK;
}

/* ----------------------------------------------------------------------------------- candidates */

/* What each score can be at most, and what a page's worth of them are at least. */
static void find_reach(const st_cursor *c, st_whole *w, size_t page)
{
    const st_blend *b = &c->blend;
    double sv = st_blend_share(b, VECTOR), st = st_blend_share(b, TEXT), least[PAGE];
    double keep = st_blend_least_factor(b), last = rank_share(c, ST_COUNTED + 1, ST_COUNTED + 1);
    size_t n = 0;
    int ranks = st_blend_by_ranks(b);
    for (size_t j = 0; j < w->n; j++) {
        double most = 1, low = 1;
        if (!(w->is[j] & ST_PLACE_GIVEN)) {
            continue;
        }
        if (ranks) {
            unsigned at = place_among(&w->text_tops, w->text[j]);
            unsigned first = place_among(&w->low_tops, (double)w->high[j]);
            most = first + at == 2 * (ST_COUNTED + 1) ? last : rank_share(c, first, at);
            low = at == ST_COUNTED + 1 ? last : rank_share(c, ST_COUNTED + 1, at);
        }
        w->reach[j] = (sv * (double)w->high[j] + st * w->text[j]) * most * WIDER;
        tops_add(least, &n, page, (sv * (double)w->low[j] + st * w->text[j]) * low * keep / WIDER);
    }
    w->put_off = n == page ? least[0] : 0;
}

/* Candidates from the places that reach what is put off so far (late: and those below). */
static int gather(st_cursor *c, st_whole *w, int late, st_error *err)
{
    vec_hit *hits;
    size_t n = 0;
    for (size_t j = 0; j < w->n; j++) {
        n += w->is[j] & ST_PLACE_GIVEN && (w->reach[j] < w->put_off) == late;
    }
    hits = vec_hits_alloc(n);
    if (!hits) {
        return st_nomem(err);
    }
    n = 0;
    for (size_t j = 0; j < w->n; j++) {
        if (w->is[j] & ST_PLACE_GIVEN && (w->reach[j] < w->put_off) == late) {
            hits[n++] = (vec_hit){-w->reach[j], (int64_t)j, w->row[j]};
        }
    }
    vec_rank_free(c->blend.source);
    c->blend.source = NULL;
    return st_from_vec(err, vec_rank_new(hits, n, &c->blend.source), "ranking");
}

int st_whole_more(st_cursor *c, st_error *err)
{
    c->blend.whole->late = 0;
    return gather(c, c->blend.whole, 1, err);
}

int st_whole_taken(st_cursor *c, st_error *err)
{
    st_whole *w = c->blend.whole;
    if (w->exact || !c->blend.has[VECTOR] || ++w->taken <= c->v->f->nrow / ALL_SHARE + PAGE) {
        return ST_OK;
    }
    w->exact = 1;
    return st_search_distances(c, w->need, err);
}

static int find_close(st_cursor *c, st_whole *w, st_error *err)
{
    const st_tops *t = &w->low_tops;
    double least = t->n == ST_COUNTED + 1 ? t->most[ST_COUNTED] : 0;
    size_t n = 0;
    if (!st_blend_by_ranks(&c->blend)) {
        return ST_OK;
    }
    w->close = h5_alloc_array(w->n + 1, sizeof *w->close);
    if (!w->close) {
        return st_nomem(err);
    }
    for (size_t j = 0; j < w->n; j++) {
        w->close[n] = (uint32_t)j;
        n += w->is[j] & ST_PLACE_GIVEN && w->high[j] > 0 && (double)w->high[j] >= least;
    }
    w->nclose = n;
    return ST_OK;
}

/* -------------------------------------------------------------------------------------- opening */

/* One allocation for all that is by place or by row. */
static int make_room(st_cursor *c, st_whole *w, st_error *err)
{
    size_t nrow = (size_t)c->v->f->nrow, n = nrow + GAP, words = st_bit_words(nrow) + 1;
    if (c->blend.set.context > 0) {
        n += GAP * (size_t)ST_MAX(c->blend.base->nsession, c->blend.rest->nsession);
    }
    if (n >= ST_TURN_NONE) {
        return st_fail(err, ST_LIMIT, "%zu rows are too many to be ranked together", n);
    }
    size_t doubles = 5 * n, fours = 6 * n + nrow + 1;
    char *p = h5_malloc(doubles * 8 + words * 8 + fours * 4 + n);
    if (!p) {
        return st_nomem(err);
    }
    w->room = p;
    w->text = (double *)(void *)p;
    w->own = w->text + n;
    w->part = w->own + n;
    w->reach = w->part + n;
    w->bare = w->reach + n;
    w->need = (uint64_t *)(void *)(w->bare + n);
    w->low = (float *)(void *)(w->need + words);
    w->high = w->low + n;
    w->factor = w->high + n;
    w->bare_low = w->factor + n;
    w->bare_high = w->bare_low + n;
    w->row = (uint32_t *)(void *)(w->bare_high + n);
    w->place = w->row + n;
    w->is = (uint8_t *)(w->place + nrow + 1);
    memset(w->need, 0, words * sizeof *w->need);
    st_fill_nan(w->own, n);
    st_fill_nan(w->part, n);
    return ST_OK;
}

int st_whole_open(st_cursor *c, st_error *err)
{
    st_blend *b = &c->blend;
    st_whole *w = b->whole = h5_calloc(1, sizeof *w);
    if (!w) {
        return st_nomem(err);
    }
    ST_TRY(make_room(c, w, err));
    ST_TRY(lay_out(c, w, err));
    ST_TRY(mark(c, w, err));
    add_text(c, w);
    w->exact = c->order == ST_ORDER_WORST || !c->picks ||
               c->hint > c->v->f->nrow / ALL_SHARE + PAGE;
    if (b->has[VECTOR]) {
        ST_TRY(vector_parts(c, w, err));
    } else {
        memset(w->low, 0, w->n * sizeof *w->low);
        memset(w->high, 0, w->n * sizeof *w->high);
    }
    mark_given(c, w);
    find_tops(w);
    ST_TRY(find_close(c, w, err));
    w->late = !w->exact && c->hint <= PAGE;
    find_reach(c, w, PAGE);
    w->put_off = w->late ? w->put_off : 0;
    return gather(c, w, 0, err);
}

void st_whole_free(st_whole *w)
{
    if (w) {
        h5_free(w->close);
        h5_free(w->room);
        h5_free(w);
    }
}
