/*
 * st_blend.c - scores made of parts, neighbours, fusion and factors, best first on demand.
 *
 * Candidates come from one of three rankings:
 *
 *   bare    the cursor's own, where no neighbours count: a factor is at most 1, so what is to come
 *           reaches at most the bare score of the next
 *   words   text alone: rows by rank and date. With a row its neighbours are scored, so that of a
 *           row that is still to come neither it nor its neighbours have more of both than the
 *           next: it reaches at most (1 + 2w) times the part of the next
 *   whole   with a vector part every row has a score: see st_whole.c
 *
 * ERRORS   ST_NOMEM, and what reading a row gives
 *
 * SPDX-License-Identifier: MIT
 */
#include "st_search.h"

#include <math.h>
#include <stdlib.h>

enum { VECTOR, TEXT };

// A turn without a word counts a third, one of 150 bytes two thirds.
#define SHORT_ADD  50.0
#define SHORT_TURN 100.0
#define ASKS       0.5
#define SPEAKER    2.0
// The weight of a neighbour by how many turns away it is, beside that of the one next to a turn.
const double st_fades[ST_TURN_STEPS] = {1, 1.0 / 3};
#define FADES (1 + 1.0 / 3) // all of one side

/* ---------------------------------------------------------------------------------------- parts */

double st_closeness(int metric, double distance)
{
    double x;
    switch (metric) {
    case VEC_COSINE:
        x = 1 - distance / 2;
        break;
    case VEC_L2: // of unit vectors the same
        x = 1 / (1 + distance * distance / 4);
        break;
    default:
        x = 0.5 - distance / (1 + fabs(distance)) / 2;
    }
    x *= x;
    x *= x;
    return x * x;
}

int st_row_time(st_view *v, uint64_t row, double *out, st_error *err)
{
    const st_frozen *f = v->f;
    const uint8_t *p;
    uint64_t run;
    if (row >= f->nbase) {
        *out = f->slot[row - f->nbase]->timestamp;
        return ST_OK;
    }
    ST_TRY(st_read_at(&v->reader, ST_PHYS_TIMESTAMP, row, &p, &run, err));
    memcpy(out, p, sizeof *out);
    return ST_OK;
}

/* The distance of any row, NaN without a vector. */
int st_blend_distance(st_cursor *c, uint64_t row, double *out, st_error *err)
{
    const st_frozen *f = c->v->f;
    const float *x = NULL;
    float norm = NAN;
    *out = NAN;
    if (c->dist && !isnan(c->dist[row])) {
        *out = c->dist[row];
        return ST_OK;
    }
    if (row >= f->nbase) {
        x = f->slot[row - f->nbase]->embedding;
        norm = f->slot[row - f->nbase]->norm;
    } else {
        ST_TRY(st_read_vector(&c->v->reader, row, &x, &norm, err));
    }
    if (x) {
        size_t dim = (size_t)f->gen->schema->dim;
        *out = vec_distance(c->metric, c->query, c->query_norm, x, norm, dim);
    }
    return ST_OK;
}

double st_blend_size_factor(const st_blend *b, uint64_t row)
{
    double s = ST_TURN_SIZE_MAX;
    if (b->set.context > 0) {
        s = st_turn_size(b->base, b->rest, row) & ST_TURN_SIZE_MAX;
    }
    return s >= ST_TURN_SIZE_MAX ? 1 : (s + SHORT_ADD) / (s + SHORT_ADD + SHORT_TURN);
}

/* A row's own part, weighed by its length where neighbours count; *in: it has one. date: the share
** of it that the day adds, NULL allowed. */
int st_blend_own(st_cursor *c, int which, uint64_t row, double *out, int *in, double *date,
                 st_error *err)
{
    const st_blend *b = &c->blend;
    double d = NAN, at;
    *out = 0;
    if (which == VECTOR) {
        ST_TRY(st_blend_distance(c, row, &d, err));
        *in = !isnan(d);
        *out = *in ? st_closeness(c->metric, d) : 0;
    } else {
        d = c->text_rank ? -c->text_rank[row] : NAN;
        *in = !isnan(d);
        if (*in) {
            double more = 0;
            if (b->set.context > 0 && b->set.dated) {
                ST_TRY(st_row_time(c->v, row, &at, err));
                more = b->set.dated(b->set.dated_ctx, at);
            }
            double ideal = b->ideal + b->set.dated_most;
            *out = (d + more) / ideal;
            *out *= *out;
            if (date) {
                *date = *out - d / ideal * (d / ideal);
            }
        }
    }
    if (*in && b->set.context > 0) {
        double w = st_blend_size_factor(b, row);
        *out *= w;
        if (date) {
            *date *= w;
        }
    }
    return ST_OK;
}

double st_blend_share(const st_blend *b, int which)
{
    double all = b->has[VECTOR] * b->set.weight[VECTOR] + b->has[TEXT] * b->set.weight[TEXT];
    return all > 0 ? b->set.weight[which] / all : 0;
}

static double asks_factor(const st_blend *b, uint64_t row)
{
    int halve = b->set.context > 0 && b->set.asks &&
                st_turn_size(b->base, b->rest, row) & ST_TURN_ASKS;
    return halve ? ASKS : 1;
}

/* The turn of somebody whom the query names. */
static double speaker_factor(const st_blend *b, uint64_t row)
{
    uint32_t label = b->set.named ? st_turn_label(b->base, b->rest, row) : 0;
    if (!label || !(b->set.named >> (label & 63) & 1)) {
        return 1;
    }
    for (size_t i = 0; i < b->set.nlabel; i++) {
        if (b->set.label[i] == label) {
            return SPEAKER;
        }
    }
    return 1;
}

double st_blend_turn_factor(const st_blend *b, uint64_t row)
{
    return asks_factor(b, row) * speaker_factor(b, row);
}

static const st_neighbours nobody = {{ST_TURN_NONE64, ST_TURN_NONE64},
                                     {ST_TURN_NONE64, ST_TURN_NONE64}};

/* What the neighbours on one side add to a part. */
static int side_part(st_cursor *c, int which, const uint64_t near[ST_TURN_STEPS], double *out,
                     st_error *err)
{
    double one;
    int in;
    *out = 0;
    for (int n = 0; n < ST_TURN_STEPS && near[n] != ST_TURN_NONE64; n++) {
        ST_TRY(st_blend_own(c, which, near[n], &one, &in, NULL, err));
        *out += st_fades[n] * one;
    }
    return ST_OK;
}

/* The fused part of a row, neighbours and what kind of turn it is in it. */
static int blended(st_cursor *c, uint64_t row, double *out, st_why *why, st_error *err)
{
    const st_blend *b = &c->blend;
    st_neighbours near = nobody;
    double sum = 0, side[2] = {0, 0};
    int in;
    if (b->set.context > 0) {
        ST_TRY(st_turns_around(c->v, b->base, b->rest, b->valid, row, &near, err));
    }
    for (int i = VECTOR; i <= TEXT; i++) {
        double own = 0, next[2] = {0, 0}, date = 0, w = st_blend_share(b, i);
        if (!b->has[i]) {
            continue;
        }
        ST_TRY(st_blend_own(c, i, row, &own, &in, &date, err));
        ST_TRY(side_part(c, i, near.before, &next[0], err));
        ST_TRY(side_part(c, i, near.after, &next[1], err));
        sum += w * (own + b->set.context * (next[0] + next[1]));
        side[0] += w * b->set.context * next[0];
        side[1] += w * b->set.context * next[1];
        if (why) {
            *(i == VECTOR ? &why->vector : &why->text) = w * own;
            why->date = i == TEXT ? w * date : why->date;
        }
    }
    if (why) {
        why->before = b->set.context > 0 ? side[0] : NAN;
        why->after = b->set.context > 0 ? side[1] : NAN;
        why->sum = sum;
        why->asks = asks_factor(b, row);
        why->speaker = speaker_factor(b, row);
    }
    *out = sum * st_blend_turn_factor(b, row);
    return ST_OK;
}

/* -------------------------------------------------------------------------------------- factors */

static double mixed(double w, double x)
{
    return 1 - w + w * (x < 0 ? 0 : x > 1 ? 1 : x);
}

static int small_real(st_cursor *c, uint64_t row, int small, double *out, st_error *err)
{
    const st_num *n = st_frozen_small(c->v->f, row);
    st_num one;
    if (n) {
        *out = n[small].r;
        return ST_OK;
    }
    ST_TRY(st_read_small(&c->v->reader, small, row, &one, err));
    *out = one.r;
    return ST_OK;
}

static int factors(st_cursor *c, uint64_t row, double *out, st_why *why, st_error *err)
{
    const st_factors *s = &c->blend.set;
    double x, f = 1, one;
    if (s->recency > 0) {
        ST_TRY(st_row_time(c->v, row, &x, err));
        x = s->now > x ? s->now - x : 0;
        f *= one = mixed(s->recency, exp2(-x / s->half_life));
        if (why) {
            why->recency = one;
        }
    }
    if (s->importance > 0) {
        ST_TRY(small_real(c, row, ST_SMALL_IMPORTANCE, &x, err));
        f *= one = mixed(s->importance, x);
        if (why) {
            why->importance = one;
        }
    }
    if (s->activation > 0) {
        ST_TRY(st_view_activation(c->v, row, &x, err));
        f *= one = mixed(s->activation, x);
        if (why) {
            why->activation = one;
        }
    }
    if (s->graph > 0 && why) {
        why->graph = 1; // no entity is known that a row could be near to
    }
    *out = f;
    return ST_OK;
}

/* A negative score, which an inner product can be, is moved away from 0. */
static double times(double score, double factor)
{
    return score < 0 ? score * (2 - factor) : score * factor;
}

/* --------------------------------------------------------------------------------------- scores */

int st_blend_by_ranks(const st_blend *b)
{
    return b->set.fusion == ST_FUSE_RRF && b->has[VECTOR] && b->has[TEXT];
}

double st_blend_least_factor(const st_blend *b)
{
    return (1 - b->set.recency) * (1 - b->set.importance) * (1 - b->set.activation);
}

int st_blend_makes(const st_cursor *c)
{
    return c->blend.set.context > 0 || c->blend.whole;
}

int st_blend_score(st_cursor *c, uint64_t row, double bare, double *score, st_why *why,
                   st_error *err)
{
    const st_blend *b = &c->blend;
    double f, s = bare, share;
    if (st_blend_makes(c) && (why || !b->whole)) {
        ST_TRY(blended(c, row, &s, why, err));
    }
    if (b->whole) {
        ST_TRY(st_whole_score(c, row, &s, &share, err));
        if (why && st_blend_by_ranks(b)) {
            why->fusion = share;
        }
    }
    ST_TRY(factors(c, row, &f, why, err));
    *score = times(s, f);
    return ST_OK;
}

/* --------------------------------------------------------------------------------------- source */

/* The next candidate and the bound that it sets. */
static int advance(st_cursor *c, st_error *err)
{
    st_blend *b = &c->blend;
    if (b->source) {
        const vec_hit *h = vec_rank_next(b->source);
        if (!h && b->whole && b->whole->late) {
            ST_TRY(st_whole_more(c, err));
            h = vec_rank_next(b->source);
        }
        b->more = h != NULL;
        if (h) {
            b->next = *h;
        }
    } else {
        b->more = st_search_step(c, err);
        if (b->more > 0) {
            b->next = (vec_hit){-c->score, st_frozen_id(c->v, c->row), c->row};
        }
    }
    if (b->more > 0) {
        b->bound = -b->next.key;
        if (b->source && !b->whole) {
            double p = b->bound / (b->ideal + b->set.dated_most);
            b->bound = (1 + 2 * FADES * b->set.context) * p * p * (b->set.named ? SPEAKER : 1);
        }
    }
    return b->more < 0 ? b->more : ST_OK;
}

static int give(st_cursor *c, uint64_t row, double score, st_error *err)
{
    vec_hit h = {-score, st_frozen_id(c->v, row), row};
    return st_from_vec(err, vec_heap_push(&c->blend.ready, h), "ranking");
}

/* Has the turn just before or after a row words of the query? */
static int beside_words(st_cursor *c, uint64_t row, int *out, st_error *err)
{
    const st_blend *b = &c->blend;
    st_neighbours near;
    ST_TRY(st_turns_around(c->v, b->base, b->rest, b->valid, row, &near, err));
    *out = (near.before[0] != ST_TURN_NONE64 && !isnan(c->text_rank[near.before[0]])) ||
           (near.after[0] != ST_TURN_NONE64 && !isnan(c->text_rank[near.after[0]]));
    return ST_OK;
}

/* Scores a row that has not been yet, if it is one to return. */
static int take(st_cursor *c, uint64_t row, double bare, st_error *err)
{
    st_blend *b = &c->blend;
    double score;
    int returned = !b->source || !isnan(c->text_rank[row]);
    if (!st_bit_get(c->bits, row) || (b->seen && st_bit_get(b->seen, row))) {
        return ST_OK;
    }
    if (b->seen) {
        st_bit_set(b->seen, row);
    }
    if (!returned && b->set.neighbours_too) {
        ST_TRY(beside_words(c, row, &returned, err));
    }
    if (!returned) {
        return ST_OK;
    }
    ST_TRY(st_blend_score(c, row, bare, &score, NULL, err));
    return give(c, row, score, err);
}

static int take_words(st_cursor *c, uint64_t row, st_error *err)
{
    const st_blend *b = &c->blend;
    st_neighbours near;
    ST_TRY(take(c, row, 0, err));
    ST_TRY(st_turns_around(c->v, b->base, b->rest, b->valid, row, &near, err));
    for (int n = 0; n < ST_TURN_STEPS; n++) {
        if (near.before[n] != ST_TURN_NONE64) {
            ST_TRY(take(c, near.before[n], 0, err));
        }
        if (near.after[n] != ST_TURN_NONE64) {
            ST_TRY(take(c, near.after[n], 0, err));
        }
    }
    return ST_OK;
}

int st_blend_next(st_cursor *c, vec_hit *out, st_error *err)
{
    st_blend *b = &c->blend;
    // Ties go by id, so a row that could still come level has to be known first.
    while (b->more > 0 && !(b->ready.n && -b->ready.h[0].key > b->bound)) {
        vec_hit h = b->next;
        double score;
        int rc;
        if (b->whole) {
            rc = st_whole_taken(c, err);
            rc = rc ? rc : st_blend_score(c, h.row, 0, &score, NULL, err);
            rc = rc ? rc : give(c, h.row, score, err);
        } else {
            rc = b->source ? take_words(c, h.row, err) : take(c, h.row, -h.key, err);
        }
        ST_TRY(rc);
        ST_TRY(advance(c, err));
    }
    if (!b->ready.n) {
        return 0;
    }
    *out = vec_heap_pop(&b->ready);
    return 1;
}

/* -------------------------------------------------------------------------------------- opening */

/* What the dates of the question add to each hit, so that no row to come, nor a neighbour of it,
** has more words and dates than the next. */
static int add_dates(st_cursor *c, vec_hit *hits, size_t n, st_error *err)
{
    const st_factors *s = &c->blend.set;
    double at;
    for (size_t i = 0; i < n && s->dated_most > 0; i++) {
        ST_TRY(st_row_time(c->v, hits[i].row, &at, err));
        hits[i].key -= s->dated(s->dated_ctx, at);
    }
    return ST_OK;
}

/* Rows that have words, by rank and date. Takes hits over. */
static int open_words(st_cursor *c, vec_hit *hits, size_t n, st_error *err)
{
    st_blend *b = &c->blend;
    b->seen = h5_calloc(st_bit_words(c->v->f->nrow) + 1, sizeof *b->seen);
    int rc = b->seen ? add_dates(c, hits, n, err) : st_nomem(err);
    if (rc) {
        vec_free(hits);
        return rc;
    }
    return st_from_vec(err, vec_rank_new(hits, n, &b->source), "ranking");
}

/* Where no row has a session, nothing stands around a row. */
static int open_context(st_cursor *c, st_error *err)
{
    st_blend *b = &c->blend;
    ST_TRY(st_turns_of_image(c->v->f->gen->image, &b->base, err));
    ST_TRY(st_turns_of_frozen(c->v, &b->rest, err));
    if (!b->base->n && !b->rest->n) {
        b->set.context = b->set.dated_most = 0;
        b->set.named = 0;
        b->set.neighbours_too = 0;
    }
    return ST_OK;
}

int st_blend_open(st_cursor *c, const st_query *q, st_error *err)
{
    st_blend *b = &c->blend;
    b->set = (st_factors){.fusion = q->fusion,
                          .weight = {q->vector_weight, q->text_weight},
                          .rrf_k = q->rrf_k,
                          .context = q->context,
                          .neighbours_too = q->neighbours_too && q->context > 0,
                          .asks = q->asks,
                          .dated = q->dated,
                          .dated_ctx = q->dated_ctx,
                          .dated_most = q->context > 0 && q->dated ? q->dated_most : 0,
                          .recency = q->recency,
                          .half_life = q->half_life,
                          .now = q->now,
                          .importance = q->importance_weight,
                          .activation = q->activation_weight,
                          .graph = q->graph_weight};
    for (size_t i = 0; q->context > 0 && i < q->nlabel && i < ST_LABELS_MAX; i++) {
        b->set.label[b->set.nlabel++] = q->labels[i];
        b->set.named |= UINT64_C(1) << (q->labels[i] & 63);
    }
    b->has[VECTOR] = q->vector != NULL;
    b->has[TEXT] = q->has_text;
    if (b->has[VECTOR] != b->has[TEXT]) {
        b->set.weight[b->has[TEXT]] = 1; // the only one
    }
    return b->set.context > 0 ? open_context(c, err) : ST_OK;
}

int st_blend_start(st_cursor *c, int kind, vec_hit *hits, size_t n, st_error *err)
{
    if (kind == ST_BLEND_WORDS) {
        ST_TRY(open_words(c, hits, n, err));
    } else if (kind == ST_BLEND_WHOLE) {
        ST_TRY(st_whole_open(c, err));
    }
    return advance(c, err);
}

int st_blend_parts(st_cursor *c, uint64_t row, double *dist, double *rank, st_error *err)
{
    *rank = c->text_rank ? c->text_rank[row] : NAN;
    *dist = NAN;
    return c->query ? st_blend_distance(c, row, dist, err) : ST_OK;
}

void st_blend_close(st_cursor *c)
{
    st_blend *b = &c->blend;
    vec_rank_free(b->source);
    vec_heap_free(&b->ready);
    h5_free(b->valid);
    h5_free(b->seen);
    st_whole_free(b->whole);
}
