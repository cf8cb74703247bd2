/*
 * st_why.c - how the score of the row that a cursor is on came about.
 *
 * Computed again for that row alone. In a bare fusion by ranks each part's share is its weight over
 * rrf_k plus its position, counted by one pass over the parts.
 *
 * SPDX-License-Identifier: MIT
 */
#include "st_search.h"

#include <math.h>

static const st_why nothing = {NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN,
                               NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};

/* The share of a part in a bare fusion by ranks; NaN: the row is not in its ranking. */
static double rank_share(st_cursor *c, const double *key, double weight)
{
    double mine = key[c->row];
    int64_t id = st_frozen_id(c->v, c->row);
    uint64_t before = 0;
    if (isnan(mine)) {
        return NAN;
    }
    for (uint64_t r = 0; r < c->v->f->nrow; r++) {
        before += key[r] < mine || (key[r] == mine && r != c->row && st_frozen_id(c->v, r) < id);
    }
    return weight / (c->blend.set.rrf_k + (double)before + 1);
}

static void bare_shares(st_cursor *c, st_why *out)
{
    const st_factors *set = &c->blend.set;
    if (c->hybrid) {
        out->vector = rank_share(c, c->dist, set->weight[0]);
        out->text = rank_share(c, c->text_rank, set->weight[1]);
        out->sum = (isnan(out->vector) ? 0 : out->vector) + (isnan(out->text) ? 0 : out->text);
    } else if (c->has_text) {
        out->sum = out->text = -c->rank_value;
    } else {
        out->sum = out->vector = st_vector_score(c->metric, c->distance);
    }
}

int st_cursor_why(st_cursor *c, st_why *out, st_error *err)
{
    double score;
    *out = nothing;
    if (!c->query && !c->has_text) {
        return ST_OK;
    }
    if (!st_blend_makes(c)) {
        bare_shares(c, out);
    }
    ST_TRY(st_blend_score(c, c->row, out->sum, &score, out, err));
    if (c->pick.mmr > 0 && c->picks) {
        out->like = c->pick.like;
    }
    out->distance = c->distance;
    out->rank = c->rank_value;
    out->score = c->score;
    return ST_OK;
}
