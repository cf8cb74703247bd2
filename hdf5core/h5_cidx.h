/*
 * h5_cidx.h - chunk indexes: from the number of a chunk to where it is stored
 *
 * Each kind of index is a row of the table in h5_cidx.c. An h5_cidx is one walk over one dataset's
 * index: a look-up reads the parts of the index that lead to one chunk and keeps them, so that
 * neighbouring chunks cost no further read. Chunks are best asked for in the order of the grid, the
 * last dimension fastest: then no part is read twice.
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
    void *state; /* of the row: made by its open, freed by its close */
} h5_cidx;

int h5_btree1_open(h5_cidx *ix, h5_error *err);
int h5_btree1_get(h5_cidx *ix, const uint64_t *at, uint64_t slot, h5_chunk *out, h5_error *err);
void h5_btree1_close(h5_cidx *ix);
int h5_earray_open(h5_cidx *ix, h5_error *err);
int h5_earray_get(h5_cidx *ix, const uint64_t *at, uint64_t slot, h5_chunk *out, h5_error *err);
void h5_earray_close(h5_cidx *ix);
int h5_chunk_btree2_open(h5_cidx *ix, h5_error *err);
int h5_chunk_btree2_get(h5_cidx *ix, const uint64_t *at, uint64_t slot, h5_chunk *out,
                        h5_error *err);
void h5_chunk_btree2_close(h5_cidx *ix);
/* Bytes of tree nodes that one walk may read. In the order of the grid each node is read once, so
** that all are no longer than the file; twice that, and some, is for those who ask in another. A
** damaged tree whose pointers meet uses it up. */
uint64_t h5_cidx_budget(const h5_cidx *ix);
/* Bytes of a stored chunk size in an index of filtered chunks. */
unsigned h5_cidx_size_width(const h5_object *o);

struct h5_cidx_row {
    uint8_t id;
    const char *name;
    /* Reads what is needed once. */
    int (*open)(h5_cidx *ix, h5_error *err);
    /* The chunk at a place in the grid, unchecked; slot: the same as a number by grid.step. *out is
    ** left alone when none is stored. */
    int (*get)(h5_cidx *ix, const uint64_t *at, uint64_t slot, h5_chunk *out, h5_error *err);
    void (*close)(h5_cidx *ix); /* NULL: no state. Called after a failed open too */
};

/* H5_MISUSE when the object is not a chunked dataset. Close it after a failure too. */
int h5_cidx_open(h5_cidx *ix, h5_file *f, const h5_object *o, h5_error *err);
/* The chunk at a place in the grid, at[rank], inside the current size. It lies inside the file; one
** without any filter applied is a whole chunk. */
int h5_cidx_get(h5_cidx *ix, const uint64_t *at, h5_chunk *out, h5_error *err);
/* H5_LIMIT when n look-ups by one call are more than the size of the file and
** H5_UNSTORED_CHUNKS_MAX allow. */
int h5_cidx_allow(const h5_cidx *ix, uint64_t n, h5_error *err);
void h5_cidx_close(h5_cidx *ix);

#endif
