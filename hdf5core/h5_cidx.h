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
    /* B-trees and extensible array: the chunks that are stored, in the order of their slots. */
    struct h5_cidx_entry *table;
    size_t ntable, table_cap;
    int sorted;
} h5_cidx;

typedef struct h5_cidx_entry {
    uint64_t slot;
    h5_chunk chunk;
} h5_cidx_entry;

/* Adds the chunk at a place in the grid to the table; one outside the current size is left out. */
int h5_cidx_add(h5_cidx *ix, const uint64_t *at, const h5_chunk *c, h5_error *err);

int h5_btree1_open(h5_cidx *ix, h5_error *err);
int h5_earray_open(h5_cidx *ix, h5_error *err);
int h5_chunk_btree2_open(h5_cidx *ix, h5_error *err);
/* Bytes of a stored chunk size in an index of filtered chunks. */
unsigned h5_cidx_size_width(const h5_object *o);

struct h5_cidx_row {
    uint8_t id;
    const char *name;
    /* Reads what is needed once. */
    int (*open)(h5_cidx *ix, h5_error *err);
    /* The chunk in one slot, unchecked. NULL: open has filled the table. */
    int (*get)(h5_cidx *ix, uint64_t slot, h5_chunk *out, h5_error *err);
};

/* H5_MISUSE when the object is not a chunked dataset. Close it after a failure too. */
int h5_cidx_open(h5_cidx *ix, h5_file *f, const h5_object *o, h5_error *err);
/* The chunk in one slot. It lies inside the file; one without any filter applied is a whole chunk.
** */
int h5_cidx_get(h5_cidx *ix, uint64_t slot, h5_chunk *out, h5_error *err);
void h5_cidx_close(h5_cidx *ix);

#endif
