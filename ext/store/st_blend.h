/*
 * st_blend.h - the final score of a row: parts, their fusion, and the factors that move it.
 *
 * PARTS     text    t = ((r + d) / R)^2: r minus the rank, R three quarters of what a row of
 *                   middle length has with every word once, d the weight of the query's dates that
 *                   the row's day fulfils (R then holds the weight of all of them)
 *           vector  v = closeness^8, closeness (1 + cos) / 2 and its like for the other metrics
 *           Of a turn (a row with a session) both are times (s + 50) / (s + 150), s the bytes of
 *           content: a short turn says little
 * CONTEXT   own + w * (before + after), the parts of the rows next to it in the session, and a
 *           third of those of the rows behind these; halved for a turn that asks where the query
 *           asks, since a question seldom answers one; twice for a turn that begins
 *           with a word of the query ("Ann: ..." and what Ann did)
 * FUSION    weighted: mean of both, by weight. rrf: that mean times the reciprocal-rank sum over
 *           the two rankings (as a share of the most it can be): what both find goes ahead.
 *           Positions count up to 100; a row beyond, or not in a ranking, counts as the 101st
 * FACTORS   each 1 - w + w * x, w the setting (up to 1), x within 0..1: importance, activation,
 *           recency 2^(-age / half-life)
 *
 * Without context, and where no row has a session, the parts are bare: text alone scores -rank, a
 * vector alone as store.h says, rrf is the bare sum; weighted is the mean of t and v.
 *
 * Rows are scored as they are asked for. Candidates come by a key that bounds what they and
 * whatever comes later can reach; a row goes out once nothing that is still to come can pass it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ST_BLEND_H
#define ST_BLEND_H

#include "st_turns.h"
#include "st_whole.h"
#include "vec.h"

struct st_cursor;

#define ST_BLEND_ENOUGH 0.75 // of all words' weight: few answers have all words of the question

/* Settings of one query, from st_query. */
typedef struct st_factors {
    int fusion;
    double weight[2]; /* vector, text */
    double rrf_k, context;
    int neighbours_too, asks;
    uint64_t named; /* one bit a label, by its last six */
    uint32_t label[ST_LABELS_MAX];
    size_t nlabel;
    double (*dated)(void *ctx, double timestamp);
    void *dated_ctx;
    double dated_most;
    double recency, half_life, now, importance, activation, graph;
} st_factors;

typedef struct st_blend {
    st_factors set;
    int has[2];   /* which parts: vector, text */
    double ideal; /* R */
    const st_turns *base, *rest;
    uint64_t *valid;  /* rows that may be neighbours */
    st_whole *whole;  /* where every row has a score */
    vec_rank *source; /* candidates by bound; NULL: they come from the cursor's own ranking */
    vec_hit next;     /* the first not taken */
    int more;
    double bound;   /* what no row to come can pass */
    uint64_t *seen; /* rows that were scored */
    vec_heap ready;
} st_blend;

/* Takes the settings over. */
int st_blend_open(struct st_cursor *c, const st_query *q, st_error *err);
/* Makes ready for st_blend_next. WORDS takes hits over, also on failure: rows by rank, whose keys
** c->text_rank has, too. WHOLE: see st_whole.h. */
enum { ST_BLEND_BARE, ST_BLEND_WORDS, ST_BLEND_WHOLE };
int st_blend_start(struct st_cursor *c, int kind, vec_hit *hits, size_t n, st_error *err);
void st_blend_close(struct st_cursor *c);
/* The best row not yet given, key = minus its score: 1, 0 at the end, or negative. */
int st_blend_next(struct st_cursor *c, vec_hit *out, st_error *err);
/* A row's timestamp. */
int st_row_time(st_view *v, uint64_t row, double *out, st_error *err);
/* Are scores made here, rather than moved by factors only? */
int st_blend_makes(const struct st_cursor *c);
/* Distance and rank of any row of the view, NaN where it has none. */
int st_blend_parts(struct st_cursor *c, uint64_t row, double *distance, double *rank,
                   st_error *err);
/* The score of any row of the view; bare: that of the cursor's own ranking; why may be NULL. */
int st_blend_score(struct st_cursor *c, uint64_t row, double bare, double *score, st_why *why,
                   st_error *err);

/* What scores are made of; formulas above. */
extern const double st_fades[ST_TURN_STEPS]; /* of a neighbour, by how far away it is */
double st_closeness(int metric, double distance);
/* The distance of any row, NaN without a vector. */
int st_blend_distance(struct st_cursor *c, uint64_t row, double *out, st_error *err);
/* A row's own part (0: vector, 1: text), weighed by its length where neighbours count; *in: it has
** one. date: the share of it that the day adds, NULL allowed. */
int st_blend_own(struct st_cursor *c, int which, uint64_t row, double *out, int *in, double *date,
                 st_error *err);
double st_blend_size_factor(const st_blend *b, uint64_t row);
double st_blend_turn_factor(const st_blend *b, uint64_t row); /* asking and speaker */
double st_blend_share(const st_blend *b, int which);          /* of a part in the whole */
int st_blend_by_ranks(const st_blend *b);
double st_blend_least_factor(const st_blend *b); /* of the others: recency and so on */

#endif
