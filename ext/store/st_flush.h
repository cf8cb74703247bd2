/*
 * st_flush.h - the inside of a flush, shared by st_flush.c and st_fold.c.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ST_FLUSH_H
#define ST_FLUSH_H

#include "st_colwrite.h"
#include "st_root.h"
#include "st_store.h"

/* Bytes a text takes in the file (st_schema.h, NULL): one more when all of them are NUL, which
** the slot or record has left room for. */
uint64_t st_stored_bytes(const st_span *t);

/* A row to append. */
typedef struct st_newrow {
    const st_slot *slot;
    const st_num *small;
    int evicted; /* it does not show */
} st_newrow;

/* A base row that ends, and what its byte in /memory/live becomes. */
typedef struct st_ended {
    uint64_t row;
    uint8_t live;
} st_ended;

/* A base row with new small values. */
typedef struct st_patched {
    uint64_t row;
    const st_num *small;
} st_patched;

typedef struct st_fold {
    st_store *store;
    st_gen *gen;
    st_reader reader; /* of the old image */
    h5_writer *w;
    st_newrow *row;
    size_t nrow;
    st_patched *patched; /* ascending */
    size_t npatched;
    st_ended *dead; /* ascending */
    size_t ndead;
    st_colimg *col; /* of the new root */
    uint8_t *touched;
    st_root_sortrun *sorted[ST_SORTS];
    size_t nsorted[ST_SORTS];
    st_root_run *run;
    size_t nrun;
    int optimize;   /* 1: indexes are made anew, whatever they cost */
    uint64_t lists; /* as in st_root */
    st_root_run *tail;
    size_t ntail;
    st_root_side side[ST_SIDES];
} st_fold;

/* What the overlay amounts to: rows to append, values to change, rows that end. */
int st_fold_collect(st_fold *f, st_error *err);
/* Writes all columns of the rows. */
int st_fold_columns(st_fold *f, st_error *err);
/* One column; always: also when there is nothing new. */
int st_fold_column(st_fold *f, int col, st_colwrite *a, int always, st_error *err);
/* st_foldside.c: the tables beside the rows. */
int st_fold_sides(st_fold *f, st_error *err);
/* st_foldindex.c: the runs of the id and time indexes, and of the text index. */
int st_fold_sorted(st_fold *f, st_error *err);
int st_fold_text(st_fold *f, st_error *err);
/* Live rows after this flush; the caller frees. */
int st_fold_live(st_fold *f, uint64_t **out, st_error *err);
/* How many of the last runs to merge: those no larger in class than the last, when they are eight
** and stay below the limit; else 0. */
size_t st_merge_count(const uint64_t *size, size_t n, uint64_t bytes_each);
/* st_foldlists.c: the index of lists. */
int st_fold_lists(st_fold *f, st_error *err);

#endif
