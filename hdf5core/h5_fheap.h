/*
 * h5_fheap.h - fractal heaps: links, attributes and shared messages of large numbers
 *
 * OWNERSHIP  an h5_fheap borrows the file and owns its buffers until h5_fheap_close, which is right
 *            after a failed open too.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef H5_FHEAP_H
#define H5_FHEAP_H

#include "h5_file.h"
#include "h5_keep.h"

typedef struct h5_fheap_block {
    uint64_t addr, bytes;
    uint8_t *p;
} h5_fheap_block;

typedef struct h5_fheap {
    h5_file *f;
    uint64_t addr;
    unsigned block_head; /* bytes of a block before its place in the space */
    unsigned id_bytes, offset_bytes, length_bytes; /* of an id, and of its fields */
    unsigned flags, width, rows;                   /* rows of the root; 0: it is a direct block */
    unsigned start_bits, direct_rows;
    uint64_t start, max_direct, root, huge_index;
    uint64_t root_bytes; /* filtered: stored bytes of a direct root block, and its mask */
    uint32_t root_mask;
    uint32_t max_managed;
    h5_pipeline pipeline;
    h5_keep blocks;                              /* direct blocks that were read */
    const h5_kept *direct;                       /* the one used last */
    h5_fheap_block indirect[H5_FHEAP_DEPTH_MAX]; /* read last, one a level */
} h5_fheap;

int h5_fheap_open(h5_fheap *h, h5_file *f, uint64_t addr, h5_error *err);
/* The object of an id of n bytes, copied into the arena. */
int h5_fheap_get(h5_fheap *h, const uint8_t *id, size_t n, h5_arena *arena, const uint8_t **out,
                 size_t *bytes, h5_error *err);
void h5_fheap_close(h5_fheap *h);

#endif
