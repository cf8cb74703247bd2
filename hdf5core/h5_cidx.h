/*
 * h5_cidx.h - chunk indexes: from the number of a chunk to where it is stored
 *
 * Each kind of index is a row of the table in h5_cidx.c. An h5_cidx is one walk over one dataset's
 * index: it keeps the part of the index that was read last, so that neighbouring chunks cost no
 * further read.
 *
 * OWNERSHIP  an h5_cidx borrows file and object and owns its buffers until h5_cidx_close.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef H5_CIDX_H
#define H5_CIDX_H

#include "h5_object.h"

/* The grid of chunks of a dataset. */
typedef struct h5_grid {
    int rank;
    /* Chunks a dimension, of the current size. */
    uint64_t n[H5_RANK_MAX];
    /* Index slots from one chunk to the next in a dimension; the index covers the maximum size. */
    uint64_t step[H5_RANK_MAX];
    uint64_t total; /* product of n */
    uint64_t slots; /* chunks of the maximum size, one slot each; 0 when that is unlimited */
} h5_grid;

/* H5_LIMIT when the chunks cannot be counted in 64 bits. */
int h5_grid_of(const h5_dataset_info *d, h5_grid *out, h5_error *err);

typedef struct h5_cidx_row h5_cidx_row;

typedef struct h5_cidx {
    h5_file *f;
    const h5_object *o;
    h5_grid grid;
    const h5_cidx_row *row; /* NULL: nothing is stored, every chunk reads as the fill value */
    /* Fixed array. */
    uint64_t block,
        block_bytes; /* data block: address (H5_UNDEF = none), bytes up to its checksum */
    unsigned entry_bytes, page_bits;
    int filtered;
    uint8_t *bitmap; /* pages in use, NULL when not paged */
    uint8_t *page;   /* entries last read */
    uint64_t page_no;
} h5_cidx;

struct h5_cidx_row {
    uint8_t id;
    const char *name;
    /* Reads what is needed once. NULL: this index is not read yet. */
    int (*open)(h5_cidx *ix, h5_error *err);
    /* The chunk in one slot, unchecked. */
    int (*get)(h5_cidx *ix, uint64_t slot, h5_chunk *out, h5_error *err);
};

/* H5_UNSUPPORTED names the index; H5_MISUSE when the object is not a chunked dataset. Close it
** after a failure too. */
int h5_cidx_open(h5_cidx *ix, h5_file *f, const h5_object *o, h5_error *err);
/* The chunk in one slot. It lies inside the file; one without any filter applied is a whole chunk.
** */
int h5_cidx_get(h5_cidx *ix, uint64_t slot, h5_chunk *out, h5_error *err);
void h5_cidx_close(h5_cidx *ix);

#endif
