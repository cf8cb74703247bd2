/*
 * st_search.c - running a query over a view: filter first, then rank, then hand out rows as they
 * are asked for.
 *
 * MODES     rows      no search part: st_scan.c
 *           near      vector part, best first: exact neighbours on demand (vec_near), over plane
 *                     records for the base and vectors for the rest
 *           probe     the same where lists pay: near neighbours at the recall asked for
 *           fused     both parts, best first: exact distances of all filtered rows, then fusion
 *                     that
 *                     learns positions only as far as it is read (vec_rrf)
 *           ranked    everything else: the complete list of hits, ordered as far as it is read;
 *                     of words alone at first only a page
 *
 * Terms on distance, rank and score are looked at as rows come out, so that they, k and the order
 * combine freely.
 *
 * SPDX-License-Identifier: MIT
 */
#include "st_search.h"

#include <math.h>
#include <stddef.h>

/* ------------------------------------------------------------------------------------ distances */

/* Where ids ascend with the rows, ties by row are ties by id. */
static int64_t row_as_id(void *ctx, uint64_t row)
{
    (void)ctx;
    return (int64_t)row;
}

enum { WIDE_ROWS = 64 };

int st_search_distances(st_cursor *c, const uint64_t *bits, st_error *err)
{
    const st_frozen *f = c->v->f;
    size_t dim = (size_t)f->gen->schema->dim, elem = f->gen->schema->phys[ST_PHYS_EMBEDDING].elem;
    float *wide = NULL; // vectors made floats
    int rc;
    c->dist = h5_alloc_array((size_t)f->nrow + 1, sizeof *c->dist);
    if (!c->dist) {
        return st_nomem(err);
    }
    st_fill_nan(c->dist, f->nrow);
    if (f->gen->schema->storage != VEC_F32) {
        wide = c->wide = c->wide ? c->wide : h5_alloc_array(WIDE_ROWS * dim, sizeof *wide);
        if (!wide) {
            return st_nomem(err);
        }
    }
    if (!c->exact) {
        ST_TRY(st_search_slots(c, err));
    }
    rc = vec_scan(c->metric, c->query, dim, c->exact, c->nexact, bits, c->dist, st_search_stop, c);
    // A chunk of vectors and one of norms end at different rows: go by the shorter run.
    for (uint64_t row = 0, run = 0; row < f->nbase && !rc; row += run) {
        const uint8_t *v, *norms;
        uint64_t nrun;
        ST_TRY(st_read_at(&c->v->reader, ST_PHYS_EMBEDDING, row, &v, &run, err));
        ST_TRY(st_read_at(&c->v->reader, ST_PHYS_NORM, row, &norms, &nrun, err));
        run = ST_MIN(run, nrun);
        vec_extent e = {(const float *)(const void *)v, (const float *)(const void *)norms, row,
                        run};
        if (wide) {
            run = e.n = ST_MIN(run, (uint64_t)WIDE_ROWS);
            for (uint64_t i = 0; i < run; i++) {
                vec_stored_decode(f->gen->schema->storage, v + i * elem, dim, wide + i * dim);
            }
            e.rows = wide;
        }
        rc = vec_scan(c->metric, c->query, dim, &e, 1, bits, c->dist, st_search_stop, c);
    }
    return st_from_vec(err, rc, "the vector search");
}

static int distance_hits(st_cursor *c, double sign, vec_hit **out, size_t *n, st_error *err)
{
    const st_frozen *f = c->v->f;
    vec_hit *hits = vec_hits_alloc((size_t)vec_bits_count(c->bits, f->nrow));
    size_t k = 0;
    if (!hits) {
        return st_nomem(err);
    }
    for (uint64_t row = st_bit_next(c->bits, f->nrow, 0); row < f->nrow;
         row = st_bit_next(c->bits, f->nrow, row + 1)) {
        if (!isnan(c->dist[row])) {
            hits[k++] = (vec_hit){sign * c->dist[row], st_frozen_id(c->v, row), row};
        }
    }
    *out = hits;
    *n = k;
    return ST_OK;
}

/* --------------------------------------------------------------------------------------- ranked */

/* Takes hits over. order WORST turns the keys round; ids stay ascending. */
static int start_ranked(st_cursor *c, vec_hit *hits, size_t n, st_error *err)
{
    for (size_t i = 0; c->order == ST_ORDER_WORST && i < n; i++) {
        hits[i].key = -hits[i].key;
    }
    c->mode = ST_MODE_RANKED;
    return st_from_vec(err, vec_rank_new(hits, n, &c->rank), "ranking");
}

static int dense_ranks(st_cursor *c, const vec_hit *hits, size_t n, st_error *err)
{
    uint64_t nrow = c->v->f->nrow;
    c->text_rank = h5_alloc_array((size_t)nrow + 1, sizeof *c->text_rank);
    if (!c->text_rank) {
        return st_nomem(err);
    }
    st_fill_nan(c->text_rank, nrow);
    for (size_t i = 0; i < n; i++) {
        c->text_rank[hits[i].row] = hits[i].key;
    }
    return ST_OK;
}

/* The best-first list, drained and turned round. */
static int worst_first(st_cursor *c, int (*next)(st_cursor *, vec_hit *, st_error *), st_error *err)
{
    vec_hit *hits = vec_hits_alloc((size_t)c->v->f->nrow);
    vec_hit h;
    size_t n = 0;
    int rc = 0;
    if (!hits) {
        return st_nomem(err);
    }
    while ((rc = next(c, &h, err)) > 0) {
        hits[n++] = h;
    }
    if (rc < 0) {
        vec_free(hits);
        return rc;
    }
    return start_ranked(c, hits, n, err);
}

static int next_fused(st_cursor *c, vec_hit *out, st_error *err)
{
    int rc = vec_rrf_next(c->rrf, out);
    return rc < 0 ? st_from_vec(err, rc, "fusion") : rc;
}

/* Rows come by the final score, which st_pick gives. */
static int start_picks(st_cursor *c, int kind, vec_hit *hits, size_t n, st_error *err)
{
    ST_TRY(st_blend_start(c, kind, hits, n, err));
    if (c->order != ST_ORDER_WORST) {
        return ST_OK;
    }
    ST_TRY(worst_first(c, st_pick_next, err));
    c->picks = 0;
    c->drained = 1;
    return ST_OK;
}

static int start_hybrid(st_cursor *c, const st_query *q, st_error *err)
{
    vec_hit *text = NULL;
    size_t n = 0;
    int rc = st_words_all(c, q, st_ids_ascend(c), &text, &n, err);
    rc = rc ? rc : dense_ranks(c, text, n, err);
    vec_free(text);
    ST_TRY(rc);
    c->hybrid = 1;
    if (c->blend.set.context > 0 || q->fusion == ST_FUSE_WEIGHTED) {
        return start_picks(c, ST_BLEND_WHOLE, NULL, 0, err);
    }
    ST_TRY(st_search_distances(c, c->bits, err));
    vec_rrf_args a = {.key = {c->dist, c->text_rank},
                      .weight = {q->vector_weight, q->text_weight},
                      .nrow = c->v->f->nrow,
                      .k = q->rrf_k,
                      .id = st_ids_ascend(c) ? row_as_id : st_search_id,
                      .ctx = c};
    c->mode = ST_MODE_FUSED;
    ST_TRY(st_from_vec(err, vec_rrf_new(&a, &c->rrf), "fusion"));
    if (c->picks) {
        return start_picks(c, ST_BLEND_BARE, NULL, 0, err);
    }
    return c->order == ST_ORDER_WORST ? worst_first(c, next_fused, err) : ST_OK;
}

/* Ranks the k best, or, for more than a page of them, all. */
static int rank_words(st_cursor *c, uint64_t k, st_error *err)
{
    vec_hit *hits;
    size_t n;
    ST_TRY(st_words_page(c, k, st_ids_ascend(c), &hits, &n, err));
    return start_ranked(c, hits, n, err);
}

static int start_text(st_cursor *c, const st_query *q, st_error *err)
{
    uint64_t k = q->hint ? q->hint : ST_WORDS_PAGE;
    vec_hit *hits = NULL;
    size_t n = 0, kept = 0;
    if (!c->blends && !c->picks) {
        return rank_words(c, q->k >= 0 && (uint64_t)q->k < k ? (uint64_t)q->k : k, err);
    }
    ST_TRY(st_words_all(c, q, st_ids_ascend(c), &hits, &n, err));
    int rc = dense_ranks(c, hits, n, err);
    if (rc) {
        vec_free(hits);
        return rc;
    }
    if (c->picks && c->blend.set.context > 0) {
        return start_picks(c, ST_BLEND_WORDS, hits, n, err);
    }
    for (size_t i = 0; i < n; i++) { // neighbours outside the filter have been looked at, too
        if (st_bit_get(c->bits, hits[i].row)) {
            hits[kept++] = hits[i];
        }
    }
    if (!c->picks) {
        return start_ranked(c, hits, kept, err);
    }
    c->mode = ST_MODE_RANKED;
    ST_TRY(st_from_vec(err, vec_rank_new(hits, kept, &c->rank), "ranking"));
    return start_picks(c, ST_BLEND_BARE, NULL, 0, err);
}

/* The reader wants more than the first rows of the ranking: more of it, from there on. */
static int go_on(st_cursor *c, st_error *err)
{
    size_t first = c->first;
    vec_rank_free(c->rank);
    c->rank = NULL;
    ST_TRY(rank_words(c, first < ST_WORDS_PAGE ? ST_WORDS_PAGES : 8 * (uint64_t)first, err));
    for (size_t i = 0; i < first; i++) {
        (void)vec_rank_next(c->rank);
    }
    return ST_OK;
}

static int start_far(st_cursor *c, st_error *err)
{
    vec_hit *hits = NULL;
    size_t n = 0;
    ST_TRY(st_search_distances(c, c->bits, err));
    ST_TRY(distance_hits(c, 1, &hits, &n, err));
    return start_ranked(c, hits, n, err);
}

static int start_vector(st_cursor *c, const st_query *q, st_error *err)
{
    if (c->picks && c->blend.set.context > 0) {
        return start_picks(c, ST_BLEND_WHOLE, NULL, 0, err);
    }
    if (c->order == ST_ORDER_WORST && !c->picks) {
        return start_far(c, err);
    }
    ST_TRY(st_search_near(c, q, err));
    return c->picks ? start_picks(c, ST_BLEND_BARE, NULL, 0, err) : ST_OK;
}

/* -------------------------------------------------------------------------------------- opening */

static int take_query(st_cursor *c, const st_query *q, st_error *err)
{
    size_t dim = (size_t)c->v->f->gen->schema->dim;
    c->metric = c->v->f->gen->schema->metric;
    c->threads = q->threads;
    c->order = q->order;
    c->k = q->k;
    c->hint = q->k >= 0 && (!q->hint || (uint64_t)q->k < q->hint) ? (uint64_t)q->k : q->hint;
    c->has_text = q->has_text;
    c->ask = q->ask;
    c->within = q->has_text ? q->within : NULL;
    c->within_ctx = q->within_ctx;
    c->ntokens = q->has_text ? q->ntokens : 0; // without a text part they mean nothing
    if (c->ntokens) {
        c->tokens = h5_malloc(q->ntokens);
        if (!c->tokens) {
            return st_nomem(err);
        }
        memcpy(c->tokens, q->tokens, q->ntokens);
    }
    c->by = q->by;
    c->pick.dedup = q->dedup;
    c->pick.mmr = q->mmr;
    c->pick.has_min = q->has_min_score;
    c->pick.min_score = q->min_score;
    if (q->vector || q->has_text) {
        int both = q->vector && q->has_text;
        ST_TRY(st_blend_open(c, q, err));
        c->blends = c->blend.set.context > 0 || q->recency > 0 || q->importance_weight > 0 ||
                    q->activation_weight > 0 || (both && q->fusion == ST_FUSE_WEIGHTED);
        c->picks = q->by == ST_BY_SCORE && (c->blends || q->dedup > 0 || q->mmr > 0);
    }
    ST_TRY(st_terms_copy(q->terms, q->nterm, &c->terms, err));
    if (q->vector) {
        c->query = h5_alloc_array(dim, sizeof *c->query);
        if (!c->query) {
            return st_nomem(err);
        }
        memcpy(c->query, q->vector, dim * sizeof *c->query);
        c->query_norm = vec_norm_f32(c->query, dim);
    }
    return ST_OK;
}

static int copy_bits(const uint64_t *bits, uint64_t nrow, uint64_t **out, st_error *err)
{
    size_t bytes = st_bit_words(nrow) * sizeof *bits;
    *out = h5_malloc(bytes + 8);
    if (!*out) {
        return st_nomem(err);
    }
    memcpy(*out, bits, bytes);
    return ST_OK;
}

static int filter(st_cursor *c, const st_query *q, st_error *err)
{
    const st_frozen *f = c->v->f;
    ST_TRY(copy_bits(f->live, f->nrow, &c->bits, err));
    if (!q->every && (q->vector || q->has_text || q->has_as_of)) {
        ST_TRY(st_filter_valid(c->v, q->has_as_of, q->as_of, c->bits, err));
    }
    if (c->blend.set.context > 0) {
        ST_TRY(copy_bits(c->bits, f->nrow, &c->blend.valid, err));
    }
    for (size_t i = 0; i < c->terms.n; i++) {
        if (!st_is_result_col(c->terms.term[i].col)) {
            ST_TRY(st_filter_term(c->v, &c->terms.term[i], c->bits, err));
        }
    }
    return ST_OK;
}

static int start(st_cursor *c, const st_query *q, st_error *err)
{
    int done = 0;
    if (!q->vector && !q->has_text && !q->has_as_of) {
        ST_TRY(st_scan_start(c, &done, err));
    }
    if (done) {
        return ST_OK;
    }
    ST_TRY(filter(c, q, err));
    if (q->vector && q->has_text) {
        return start_hybrid(c, q, err);
    }
    if (q->has_text) {
        return start_text(c, q, err);
    }
    return q->vector ? start_vector(c, q, err) : st_scan_filtered(c, err);
}

int st_search(st_view *v, const st_query *q, st_cursor **out, st_error *err)
{
    st_cursor *c = v->conn->rested ? v->conn->rested : h5_malloc(sizeof *c);
    int rc;
    *out = NULL;
    if (!c) {
        return st_nomem(err);
    }
    v->conn->rested = NULL;
    st_zero(c, offsetof(st_cursor, window));
    c->window.n = 0;
    c->v = v;
    c->distance = c->rank_value = c->score = NAN;
    rc = take_query(c, q, err);
    rc = rc ? rc : start(c, q, err);
    if (rc) {
        st_cursor_close(c);
        return rc;
    }
    *out = c;
    return ST_OK;
}

static void free_parts(st_cursor *c)
{
    vec_near_free(c->near);
    vec_probe_free(c->probe);
    vec_rank_free(c->rank);
    vec_rrf_free(c->rrf);
    st_blend_close(c);
    st_pick_close(c);
    h5_free(c->query);
    h5_free(c->tokens);
    h5_free(c->list);
    h5_free(c->plane);
    h5_free(c->unpacked);
    h5_free(c->exact);
    h5_free(c->dist);
    h5_free(c->wide);
    h5_free(c->text_rank);
    h5_free(c->weights);
}

void st_cursor_close(st_cursor *c)
{
    if (!c) {
        return;
    }
    if (c->mode != ST_MODE_WINDOW) { // which has none of these, and is over soon
        free_parts(c);
    }
    st_terms_free(&c->terms);
    if (c->bits) {
        h5_free(c->bits);
    }
    if (c->v->conn->rested) {
        h5_free(c);
    } else {
        c->v->conn->rested = c;
    }
}

/* -------------------------------------------------------------------------------------- reading */

double st_vector_score(int metric, double distance)
{
    return metric == VEC_IP ? -distance : 1 / (1 + distance);
}

static void take_hit(st_cursor *c, const vec_hit *h)
{
    double key = c->order == ST_ORDER_WORST && c->mode == ST_MODE_RANKED && !c->picks ? -h->key
                                                                                      : h->key;
    c->row = h->row;
    if (c->drained) {
        c->score = -key;
    } else if (c->hybrid) {
        c->distance = c->dist[h->row];
        c->rank_value = c->text_rank[h->row];
        c->score = -key;
    } else if (c->has_text) {
        c->rank_value = key;
        c->score = -key;
    } else if (c->query) {
        c->distance = key;
        c->score = st_vector_score(c->metric, key);
    }
}

int st_search_step(st_cursor *c, st_error *err)
{
    const vec_hit *h;
    vec_hit near;
    int rc;
    switch (c->mode) {
    case ST_MODE_LIST:
        if (c->pos >= c->nlist) {
            return 0;
        }
        c->row = c->list[c->pos++];
        return 1;
    case ST_MODE_BITS:
        c->row = st_bit_next(c->bits, c->v->f->nrow, c->pos);
        c->pos = c->row + 1;
        return c->row < c->v->f->nrow;
    case ST_MODE_WINDOW:
        return st_scan_step(c, err);
    case ST_MODE_NEAR:
    case ST_MODE_PROBE:
        rc = c->near ? vec_near_next(c->near, &near) : vec_probe_next(c->probe, &near);
        if (rc < 0) {
            return c->failed.code ? st_fail(err, c->failed.code, "%s", c->failed.text)
                                  : st_from_vec(err, rc, "the vector search");
        }
        if (rc) {
            take_hit(c, &near);
        }
        return rc;
    case ST_MODE_FUSED:
        rc = vec_rrf_next(c->rrf, &near);
        if (rc > 0) {
            take_hit(c, &near);
        }
        return rc < 0 ? st_from_vec(err, rc, "fusion") : rc;
    case ST_MODE_NONE:
        return 0;
    default:
        h = vec_rank_next(c->rank);
        if (!h && c->first) {
            ST_TRY(go_on(c, err));
            h = vec_rank_next(c->rank);
        }
        if (h) {
            take_hit(c, h);
        }
        return h != NULL;
    }
}

static void result_value(double v, st_value *out)
{
    memset(out, 0, sizeof *out);
    out->type = isnan(v) ? ST_NULL : ST_REAL;
    out->r = v;
}

/* 1: holds; 0: does not; -1: and nor will any later row. */
static int results_hold(const st_cursor *c)
{
    int best_first = c->order != ST_ORDER_WORST && c->by == ST_BY_SCORE && c->pick.mmr == 0;
    int searches = c->query || c->has_text;
    if (searches && c->pick.has_min && c->pick.mmr == 0 && !(c->score >= c->pick.min_score)) {
        return best_first ? -1 : 0;
    }
    for (size_t i = 0; i < c->terms.n; i++) {
        const st_term *t = &c->terms.term[i];
        st_value v;
        if (!st_is_result_col(t->col)) {
            continue;
        }
        result_value(t->col == ST_COL_DISTANCE ? c->distance
                     : t->col == ST_COL_RANK   ? c->rank_value
                                               : c->score,
                     &v);
        if (!st_term_holds(t, &v)) {
            int upper = t->op == ST_LT || t->op == ST_LE, lower = t->op == ST_GT || t->op == ST_GE;
            int nearest = c->mode == ST_MODE_NEAR && !c->picks && t->col == ST_COL_DISTANCE;
            return (nearest && upper) || (best_first && t->col == ST_COL_SCORE && lower) ? -1 : 0;
        }
    }
    return 1;
}

/* The next row with its results: 1, 0, or negative. */
static int next_row(st_cursor *c, st_error *err)
{
    vec_hit h;
    int rc = c->picks ? st_pick_next(c, &h, err) : st_search_step(c, err);
    if (rc <= 0) {
        return rc;
    }
    if (c->picks) {
        c->row = h.row;
        c->score = -h.key;
    } else if (c->blends && !c->drained) {
        ST_TRY(st_blend_score(c, c->row, c->score, &c->score, NULL, err));
    }
    if (c->picks || c->drained) {
        ST_TRY(st_blend_parts(c, c->row, &c->distance, &c->rank_value, err));
    }
    return 1;
}

int st_cursor_next(st_cursor *c, st_error *err)
{
    if (c->k >= 0 && c->given >= (uint64_t)c->k) {
        return 0;
    }
    if (c->mode == ST_MODE_WINDOW && !c->terms.n) {
        int rc = st_window_next(c->v, &c->window, &c->row, err);
        c->given += rc > 0;
        return rc;
    }
    for (;;) {
        int rc = next_row(c, err), holds;
        if (rc <= 0) {
            return rc;
        }
        holds = results_hold(c);
        if (holds < 0) {
            return 0;
        }
        if (holds && c->pick.dedup > 0 && c->by != ST_BY_SCORE) {
            holds = st_pick_fresh(c, c->row, err);
        }
        if (holds) {
            c->given += holds > 0;
            return holds;
        }
    }
}

double st_cursor_bm25(const st_cursor *c, const double *count, size_t n, double length)
{
    double sum = 0, k = c->k_base + c->k_len * length;
    for (size_t i = 0; i < n && i < c->nweight; i++) {
        sum += count[i] > 0 ? c->weights[i] * count[i] * (c->k1 + 1) / (count[i] + k) : 0;
    }
    return sum;
}

uint64_t st_cursor_row(const st_cursor *c)
{
    return c->row;
}

double st_cursor_distance(const st_cursor *c)
{
    return c->distance;
}

double st_cursor_rank(const st_cursor *c)
{
    return c->rank_value;
}

double st_cursor_score(const st_cursor *c)
{
    return c->score;
}
