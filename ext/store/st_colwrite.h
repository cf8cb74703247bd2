/*
 * st_colwrite.h - one physical column's share of a flush: changed values and new rows become
 * chunks.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ST_COLWRITE_H
#define ST_COLWRITE_H

#include "st_image.h"

/* A value of a row that is there already. */
typedef struct st_change {
    uint64_t row;
    uint8_t bytes[8];
} st_change;

typedef struct st_colwrite {
    const st_schema *schema;
    st_reader *reader;    /* of the old image */
    const st_colimg *old; /* the column there; or an empty one, whose rows are then all new */
    h5_writer *w;
    h5_io *io; /* for tails written in place */
    int col;
    const st_change *change; /* ascending by row; columns of at most 8 bytes a row */
    size_t nchange;
    uint64_t nnew;   /* elements to append, in all */
    uint64_t npiece; /* that come in so many pieces: */
    /* Piece i: *n elements at *p, good until the next call. */
    int (*piece)(void *ctx, uint64_t i, const uint8_t **p, uint64_t *n, st_error *err);
    void *ctx;
} st_colwrite;

/* Writes them; the old image's checksums must be open. *out: the new chunk table and checksums
 * (the caller's), rows, chunk_rows, pipeline; header is left for st_root. */
int st_col_write(const st_colwrite *a, st_colimg *out, st_error *err);

#endif
