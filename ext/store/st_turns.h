/*
 * st_turns.h - which rows are turns of one session, in the order they were said, and what can be
 * told of a turn without its words: how long it is, whether it asks, and which word it begins with,
 * which in a transcript is who speaks.
 *
 * Rows of a session follow one another by timestamp, then id. A row without a session has no
 * neighbours. An image's turns are made at the first search that looks at neighbours, and kept with
 * it; those of the rows outside the file belong to the snapshot. Dead rows are in both and are
 * stepped over.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ST_TURNS_H
#define ST_TURNS_H

#include "st_store.h"

#define ST_TURN_NONE UINT32_MAX

/* Distinct texts, numbered from 0. */
typedef struct st_names {
    st_buf bytes;
    size_t *end; /* of name i in bytes */
    size_t cap_end;
    uint32_t *chain; /* the name before with the same hash, or ST_TURN_NONE */
    size_t cap_chain;
    uint32_t n;
    st_map map; /* hash -> newest name with it */
} st_names;

/* Rows 0..nrow-1 of one place. */
typedef struct st_turns {
    uint32_t nrow, n;
    uint32_t *order;   /* n rows that have a session, by session, timestamp, id */
    uint32_t *place;   /* nrow: where a row stands in order, or ST_TURN_NONE */
    uint32_t *session; /* nrow: number of its session */
    uint16_t *size;    /* nrow: bytes of content, up to ST_TURN_SIZE_MAX; ST_TURN_ASKS added */
    uint32_t *label;   /* nrow: st_text_label of content, 0 for a row without a session */
    uint32_t *first;   /* by session: where its rows begin in order; one more at the end */
    uint32_t nsession;
    st_names names; /* sessions; of a snapshot: those that the image does not have, numbered from
                       image's nsession on */
} st_turns;

enum { ST_TURN_SIZE_MAX = 0x7fff, ST_TURN_ASKS = 0x8000 };

void st_turns_free(st_turns *t);

/* Of the image, made once; and of the rows behind it, made once a snapshot. */
int st_turns_of_image(st_image *im, const st_turns **out, st_error *err);
int st_turns_of_frozen(st_view *v, const st_turns **out, st_error *err);

/* The rows just before and after row (a row of the view) among those whose bit is set in valid,
 * the nearest first; ST_TURN_NONE64 where there is none. */
#define ST_TURN_NONE64 UINT64_MAX
enum { ST_TURN_STEPS = 2 };
typedef struct st_neighbours {
    uint64_t before[ST_TURN_STEPS], after[ST_TURN_STEPS];
} st_neighbours;
int st_turns_around(st_view *v, const st_turns *base, const st_turns *rest, const uint64_t *valid,
                    uint64_t row, st_neighbours *out, st_error *err);
/* Rows of one session as two runs, each in order: made one. */
int st_turns_merge(st_view *v, const st_turns *base, uint32_t *row, size_t n, size_t m,
                   st_error *err);
/* Size and asking mark of a row of the view. */
static inline uint16_t st_turn_size(const st_turns *base, const st_turns *rest, uint64_t row)
{
    return row < base->nrow ? base->size[row] : rest->size[row - base->nrow];
}
static inline uint32_t st_turn_label(const st_turns *base, const st_turns *rest, uint64_t row)
{
    return row < base->nrow ? base->label[row] : rest->label[row - base->nrow];
}

#endif
