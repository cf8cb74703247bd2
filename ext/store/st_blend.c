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
 *   whole   with a vector part every row has a score: parts of all rows are made first, and rows
 *           come by their fused part
 *
 * Positions for rrf are counted for a batch of candidates at a time, by one pass over the parts.
 *
 * ERRORS   ST_NOMEM, and what reading a row gives
 *
 * SPDX-License-Identifier: MIT
 */
#include "st_search.h"

#include <math.h>
#include <stdlib.h>

enum { VECTOR, TEXT, BATCH_FIRST = 64, BATCH_MOST = 4096, ROUND_ROWS = 4096 };
enum { COUNTED = 100 }; // positions of a ranking; what comes later, or is not in it, is the next

// A turn without a word counts a third, one of 150 bytes two thirds.
#define SHORT_ADD  50.0
#define SHORT_TURN 100.0
#define ASKS       0.5
#define SPEAKER    1.5
// The weight of a neighbour by how many turns away it is, beside that of the one next to a turn.
static const double fades[ST_TURN_STEPS] = {1, 1.0 / 3};
#define FADES (1 + 1.0 / 3) // all of one side

/* ---------------------------------------------------------------------------------------- parts */

static double closeness(int metric, double distance)
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
static int distance(st_cursor *c, uint64_t row, double *out, st_error *err)
{
    const st_frozen *f = c->v->f;
    const float *x = NULL;
    float norm = NAN;
    *out = NAN;
    if (c->dist && st_bit_get(c->bits, row)) {
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
        *out = vec_distance(c->metric, c->query, vec_norm_f32(c->query, dim), x, norm, dim);
    }
    return ST_OK;
}

/* A row's own part, weighed by its length where neighbours count; *in: it has one. date: the share
** of it that the day adds, NULL allowed. */
static int own_part(st_cursor *c, int which, uint64_t row, double *out, int *in, double *date,
                    st_error *err)
{
    const st_blend *b = &c->blend;
    double d = NAN, at;
    *out = 0;
    if (which == VECTOR) {
        ST_TRY(distance(c, row, &d, err));
        *in = !isnan(d);
        *out = *in ? closeness(c->metric, d) : 0;
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
        double s = st_turn_size(b->base, b->rest, row) & ST_TURN_SIZE_MAX;
        double w = s >= ST_TURN_SIZE_MAX ? 1 : (s + SHORT_ADD) / (s + SHORT_ADD + SHORT_TURN);
        *out *= w;
        if (date) {
            *date *= w;
        }
    }
    return ST_OK;
}

static double share_of(const st_blend *b, int which)
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

static double turn_factor(const st_blend *b, uint64_t row)
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
        ST_TRY(own_part(c, which, near[n], &one, &in, NULL, err));
        *out += fades[n] * one;
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
        double own = 0, next[2] = {0, 0}, date = 0, w = share_of(b, i);
        if (!b->has[i]) {
            continue;
        }
        ST_TRY(own_part(c, i, row, &own, &in, &date, err));
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
    *out = sum * turn_factor(b, row);
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

/* ------------------------------------------------------------------------------------ positions */

typedef struct counted {
    double key;
    uint32_t at; /* in the batch */
} counted;

static int by_counted(const void *a, const void *b)
{
    const counted *x = a, *y = b;
    return (x->key > y->key) - (x->key < y->key);
}

/* pos[i] = 1 + how many rows have more of a part than row[i]; 0 where it is not in that ranking. */
static int positions(const double *part, uint64_t nrow, const vec_hit *row, size_t n, uint64_t *pos,
                     st_error *err)
{
    counted *k = h5_alloc_array(n + 1, sizeof *k);
    uint64_t *over = h5_calloc(n + 2, sizeof *over);
    size_t m = 0;
    if (!k || !over) {
        h5_free(k);
        h5_free(over);
        return st_nomem(err);
    }
    for (size_t i = 0; i < n; i++) {
        pos[i] = 0;
        if (!isnan(part[row[i].row])) {
            k[m++] = (counted){part[row[i].row], (uint32_t)i};
        }
    }
    qsort(k, m, sizeof *k, by_counted);
    for (uint64_t r = 0; m && r < nrow; r++) {
        if (part[r] > k[0].key) { // false for NaN
            size_t lo = 0, hi = m;
            while (lo < hi) {
                size_t mid = lo + (hi - lo) / 2;
                if (k[mid].key < part[r]) {
                    lo = mid + 1;
                } else {
                    hi = mid;
                }
            }
            over[lo]++; // above the lo least keys
        }
    }
    uint64_t sum = 0;
    for (size_t i = m; i-- > 0;) {
        sum += over[i + 1];
        pos[k[i].at] = 1 + sum;
    }
    h5_free(k);
    h5_free(over);
    return ST_OK;
}

/* The reciprocal-rank sum of each row as a share of the most. */
static int rank_shares(st_cursor *c, const vec_hit *row, size_t n, double *out, st_error *err)
{
    const st_blend *b = &c->blend;
    uint64_t *pos = h5_alloc_array(n + 1, sizeof *pos);
    int rc = pos ? ST_OK : st_nomem(err);
    for (size_t i = 0; i < n; i++) {
        out[i] = 0;
    }
    for (int l = VECTOR; l <= TEXT && !rc; l++) {
        rc = positions(b->part[l], c->v->f->nrow, row, n, pos, err);
        for (size_t i = 0; i < n && !rc; i++) {
            out[i] += share_of(b, l) * (b->set.rrf_k + 1) /
                      (b->set.rrf_k + (double)(pos[i] && pos[i] <= COUNTED ? pos[i] : COUNTED + 1));
        }
    }
    h5_free(pos);
    return rc;
}

static int by_ranks(const st_blend *b)
{
    return b->set.fusion == ST_FUSE_RRF && b->has[VECTOR] && b->has[TEXT] && b->part[VECTOR];
}

int st_blend_makes(const st_cursor *c)
{
    return c->blend.set.context > 0 || c->blend.part[VECTOR];
}

int st_blend_score(st_cursor *c, uint64_t row, double bare, double *score, st_why *why,
                   st_error *err)
{
    const st_blend *b = &c->blend;
    double f, s = bare, share;
    if (st_blend_makes(c)) {
        ST_TRY(blended(c, row, &s, why, err));
        if (by_ranks(b)) {
            ST_TRY(rank_shares(c, &(vec_hit){0, 0, row}, 1, &share, err));
            s *= share;
            if (why) {
                why->fusion = share;
            }
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
        if (b->source && !b->part[VECTOR]) {
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

/* A batch of rows by their fused part. */
static int take_whole(st_cursor *c, st_error *err)
{
    st_blend *b = &c->blend;
    vec_hit *row = h5_alloc_array(b->batch, sizeof *row);
    double *share = h5_alloc_array(b->batch, sizeof *share), f;
    size_t n = 0;
    int rc = row && share ? ST_OK : st_nomem(err);
    while (!rc && n < b->batch && b->more > 0) {
        row[n++] = b->next;
        rc = advance(c, err);
    }
    if (!rc && by_ranks(b)) {
        rc = rank_shares(c, row, n, share, err);
    }
    for (size_t i = 0; i < n && !rc; i++) {
        rc = factors(c, row[i].row, &f, NULL, err);
        rc = rc ? rc
                : give(c, row[i].row, times(-row[i].key * (by_ranks(b) ? share[i] : 1), f), err);
    }
    b->batch = b->batch < BATCH_MOST ? 2 * b->batch : b->batch;
    h5_free(row);
    h5_free(share);
    return rc;
}

int st_blend_next(st_cursor *c, vec_hit *out, st_error *err)
{
    st_blend *b = &c->blend;
    // Ties go by id, so a row that could still come level has to be known first.
    while (b->more > 0 && !(b->ready.n && -b->ready.h[0].key > b->bound)) {
        vec_hit h = b->next;
        int rc;
        if (b->part[VECTOR]) {
            rc = take_whole(c, err);
        } else {
            rc = b->source ? take_words(c, h.row, err) : take(c, h.row, -h.key, err);
            rc = rc ? rc : advance(c, err);
        }
        ST_TRY(rc);
    }
    if (!b->ready.n) {
        return 0;
    }
    *out = vec_heap_pop(&b->ready);
    return 1;
}

/* -------------------------------------------------------------------------------------- opening */

/* Parts of all filtered rows, neighbours and asking in them, and the ranking by the mean of both.
** */
static int make_parts(st_cursor *c, int which, double *bare, st_error *err)
{
    st_blend *b = &c->blend;
    uint64_t nrow = c->v->f->nrow;
    int in;
    st_fill_nan(bare, nrow);
    for (uint64_t r = st_bit_next(c->bits, nrow, 0); r < nrow;
         r = st_bit_next(c->bits, nrow, r + 1)) {
        ST_TRY(own_part(c, which, r, &bare[r], &in, NULL, err));
        bare[r] = in ? bare[r] : NAN;
        if (r % ROUND_ROWS == 0 && st_search_stop(c)) {
            return st_from_vec(err, VEC_ABORT, "ranking");
        }
    }
    memcpy(b->part[which], bare, (size_t)nrow * sizeof *bare);
    return ST_OK;
}

static int at(st_cursor *c, int which, const double *bare, uint64_t row, double *out, st_error *err)
{
    int in;
    *out = 0;
    if (row == ST_TURN_NONE64) {
        return ST_OK;
    }
    if (st_bit_get(c->bits, row)) {
        *out = isnan(bare[row]) ? 0 : bare[row];
        return ST_OK;
    }
    return own_part(c, which, row, out, &in, NULL, err);
}

static int add_neighbours(st_cursor *c, int which, const double *bare, uint64_t row,
                          const st_neighbours *near, int *beside, st_error *err)
{
    st_blend *b = &c->blend;
    double before = 0, after = 0, one, own = isnan(bare[row]) ? 0 : bare[row], sum;
    for (int n = 0; n < ST_TURN_STEPS; n++) {
        ST_TRY(at(c, which, bare, near->before[n], &one, err));
        before += fades[n] * one;
        ST_TRY(at(c, which, bare, near->after[n], &one, err));
        after += fades[n] * one;
        *beside |= n == 0 && before + after > 0;
    }
    sum = (own + b->set.context * (before + after)) * turn_factor(b, row);
    if (!isnan(bare[row]) || sum > 0) {
        b->part[which][row] = sum;
    }
    return ST_OK;
}

static int rank_whole(st_cursor *c, double *bare[2], st_error *err)
{
    st_blend *b = &c->blend;
    uint64_t nrow = c->v->f->nrow, n = vec_bits_count(c->bits, nrow);
    vec_hit *hits = vec_hits_alloc((size_t)n);
    size_t k = 0;
    int rc = hits ? ST_OK : st_nomem(err);
    for (uint64_t r = st_bit_next(c->bits, nrow, 0); r < nrow && !rc;
         r = st_bit_next(c->bits, nrow, r + 1)) {
        st_neighbours near = nobody;
        int has = 0, beside = 0;
        double sum = 0;
        if (b->set.context > 0) {
            rc = st_turns_around(c->v, b->base, b->rest, b->valid, r, &near, err);
        }
        for (int i = VECTOR; i <= TEXT && !rc; i++) {
            if (b->has[i]) {
                rc = add_neighbours(c, i, bare[i], r, &near, &beside, err);
                has |= !isnan(bare[i][r]);
                sum += isnan(b->part[i][r]) ? 0 : share_of(b, i) * b->part[i][r];
            }
        }
        has |= b->set.neighbours_too && beside; // by what a turn beside it has
        if (has) {
            hits[k++] = (vec_hit){-sum, st_frozen_id(c->v, r), r};
        }
        for (int i = VECTOR; i <= TEXT && !has; i++) {
            if (b->has[i]) {
                b->part[i][r] = NAN; // not returned, so in no ranking
            }
        }
    }
    if (rc) {
        vec_free(hits);
        return rc;
    }
    return st_from_vec(err, vec_rank_new(hits, k, &b->source), "ranking");
}

static int open_whole(st_cursor *c, st_error *err)
{
    st_blend *b = &c->blend;
    size_t n = (size_t)c->v->f->nrow + 1;
    double *bare[2] = {NULL, NULL};
    int rc = ST_OK;
    for (int i = VECTOR; i <= TEXT && !rc; i++) {
        if (b->has[i]) {
            bare[i] = h5_alloc_array(n, sizeof *bare[i]);
            b->part[i] = h5_alloc_array(n, sizeof *b->part[i]);
            rc = bare[i] && b->part[i] ? make_parts(c, i, bare[i], err) : st_nomem(err);
        }
    }
    rc = rc ? rc : rank_whole(c, bare, err);
    h5_free(bare[VECTOR]);
    h5_free(bare[TEXT]);
    return rc;
}

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
    b->batch = BATCH_FIRST;
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
        ST_TRY(open_whole(c, err));
    }
    return advance(c, err);
}

int st_blend_parts(st_cursor *c, uint64_t row, double *dist, double *rank, st_error *err)
{
    *rank = c->text_rank ? c->text_rank[row] : NAN;
    *dist = NAN;
    return c->query ? distance(c, row, dist, err) : ST_OK;
}

void st_blend_close(st_cursor *c)
{
    st_blend *b = &c->blend;
    vec_rank_free(b->source);
    vec_heap_free(&b->ready);
    h5_free(b->valid);
    h5_free(b->seen);
    h5_free(b->part[VECTOR]);
    h5_free(b->part[TEXT]);
}
