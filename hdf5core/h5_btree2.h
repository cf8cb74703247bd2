/*
 * h5_btree2.h - version 2 B-trees: all records of one, in order, or the one that is looked for
 *
 * OWNERSHIP  an h5_btree2 borrows the file; look-ups make it own nodes until h5_btree2_close, which
 *            is right after a failed open too.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef H5_BTREE2_H
#define H5_BTREE2_H

#include "h5_file.h"

typedef struct h5_btree2_node {
    uint64_t addr, n; /* records */
    uint8_t *p;       /* NULL: none */
} h5_btree2_node;

typedef struct h5_btree2 {
    h5_file *f;
    uint64_t addr;
    unsigned type, record_bytes;
    uint32_t node_bytes;
    unsigned depth;                              /* of the root; 0: a leaf */
    uint64_t root, n;                            /* its address and records */
    unsigned width;                              /* of the records of a node */
    unsigned under[H5_BTREE_DEPTH_MAX + 1];      /* width of the records under a node of a depth */
    uint64_t most[H5_BTREE_DEPTH_MAX + 1];       /* records of a node of a depth */
    uint64_t left;                               /* bytes of nodes that may still be read */
    h5_btree2_node path[H5_BTREE_DEPTH_MAX + 1]; /* of the last look-up, by depth */
} h5_btree2;

/* Reads the header at addr. All nodes together may be no longer than the file. */
int h5_btree2_open(h5_btree2 *t, h5_file *f, uint64_t addr, h5_error *err);

/* Calls each for every record; a result other than H5_OK ends the walk and is handed back. */
typedef int h5_btree2_visit(void *ctx, const uint8_t *record, h5_error *err);
int h5_btree2_each(h5_btree2 *t, h5_btree2_visit *each, void *ctx, h5_error *err);

/* The record for which compare gives 0, NULL when there is none; valid until the next look-up.
** compare tells whether what is looked for comes before (below 0) or after a record. */
int h5_btree2_find(h5_btree2 *t, int (*compare)(const void *ctx, const uint8_t *record),
                   const void *ctx, const uint8_t **record, h5_error *err);
void h5_btree2_close(h5_btree2 *t);

#endif
