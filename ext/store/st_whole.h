/*
 * st_whole.h - scores that every row of a search has: a vector part with neighbours, with words or
 * without, or both parts by weight.
 *
 * Rows are given as candidates by what they can reach at most; the vector parts of most are known
 * between two bounds only, from the plane records, and become exact for those that may be given
 * or may stand before one that is.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ST_WHOLE_H
#define ST_WHOLE_H

#include "st_base.h"

struct st_cursor;
struct st_why;

enum { ST_COUNTED = 100 }; // positions of a ranking; what comes later, or is not in it, is the next

/* The most of a part, descending: one more than are counted. */
typedef struct st_tops {
    double most[ST_COUNTED + 1];
    size_t n;
} st_tops;

/* By place: rows of a session in order, two places without a row behind each, then, from tail on,
 * the rows that are no turns. */
typedef struct st_whole {
    size_t n, tail;
    uint32_t *row;      /* ST_TURN_NONE: no row */
    uint32_t *place;    /* by row of the view */
    uint8_t *is;        /* bits below */
    float *factor;      /* what kind of turn */
    float *low, *high;  /* of the vector part, neighbours and factor in it */
    double *text;       /* the text part likewise, 0 without */
    double *own, *part; /* of the vector part: exactly, NaN as long as not known */
    double *bare;       /* text part of the row alone, and bounds of its vector part */
    float *bare_low, *bare_high;
    double *reach; /* what the score can be at most */
    st_tops text_tops, low_tops;
    uint32_t *close; /* places that may be among the first ST_COUNTED by vector */
    size_t nclose;
    uint64_t *need; /* rows whose vectors count */
    double put_off; /* places that reach less are no candidates yet */
    int late;       /* there are such */
    uint64_t taken; /* candidates */
    int exact;      /* all distances have been made */
    void *room;     /* of all arrays */
} st_whole;

enum { ST_PLACE_IN = 1, ST_PLACE_VECTOR = 2, ST_PLACE_TEXT = 4, ST_PLACE_GIVEN = 8 };

/* From c->bits, c->text_rank, c->blend. c->blend.source is ready then. Free c->blend.whole also
 * after a failure. */
int st_whole_open(struct st_cursor *c, st_error *err);
void st_whole_free(st_whole *w);
/* The candidates that were put off: a new c->blend.source. */
int st_whole_more(struct st_cursor *c, st_error *err);
/* The score of a row before factors; share: of the ranks, 1 where they do not count. */
int st_whole_score(struct st_cursor *c, uint64_t row, double *score, double *share, st_error *err);
/* Counts a candidate as taken. Once many are, all distances are made at once. */
int st_whole_taken(struct st_cursor *c, st_error *err);

#endif
