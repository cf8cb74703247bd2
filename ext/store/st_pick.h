/*
 * st_pick.h - which of the best rows are given: not too little, not the same again, not all alike.
 *
 * LIKENESS   of two rows, 0..1: the larger of cos^4 of their vectors and of the share of distinct
 *            words that both have. Words are runs of letters and digits, ASCII without case.
 * DEDUP      a row as like a given one as the setting, or more, is left out
 * MMR        maximal marginal relevance (Carbonell, Goldstein 1998): the next row is the one with
 *            the largest (1 - m) * score / best score - m * likeness to the rows given
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ST_PICK_H
#define ST_PICK_H

#include "st_base.h"
#include "vec.h"

struct st_cursor;

/* What of a row likeness is told by. */
typedef struct st_likeness {
    float *vector; /* NULL: none */
    float norm;
    uint64_t *words; /* hashes of distinct words, ascending */
    size_t nword;
} st_likeness;

typedef struct st_waiting {
    vec_hit hit;
    double like; /* to the rows given: the most */
    st_likeness of;
} st_waiting;

typedef struct st_pick {
    double dedup, mmr;
    int has_min;
    double min_score;
    st_likeness *given;
    size_t ngiven, cap_given;
    st_waiting *pool; /* mmr: rows that wait, in no order */
    size_t npool, cap_pool;
    double best, last; /* scores: of the first row, of the last that came into the pool */
    int started, end;
    double value, like; /* of the row handed out last, where mmr is on */
} st_pick;

void st_pick_close(struct st_cursor *c);
/* The next row: 1, 0, or negative. out->key is minus what the row is given by: its score, or with
 * mmr the value above. */
int st_pick_next(struct st_cursor *c, vec_hit *out, st_error *err);
/* 1: no row given before is so like this one, which is then given; 0: one is; or negative. */
int st_pick_fresh(struct st_cursor *c, uint64_t row, st_error *err);

#endif
