/*
 * h5_keep.h - blocks of a file that were read and checked, found again by their address
 *
 * OWNERSHIP  an h5_keep owns its blocks until h5_keep_free; a zeroed one is empty and valid.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef H5_KEEP_H
#define H5_KEEP_H

#include "h5_base.h"

typedef struct h5_kept {
    uint64_t addr, bytes;
    uint8_t *p; /* NULL: a free place */
} h5_kept;

typedef struct h5_keep {
    h5_kept *table; /* cap a power of two, at most half full */
    size_t n, cap;
    uint64_t bytes; /* of all blocks */
} h5_keep;

/* The block of this address and length, NULL when there is none. */
const h5_kept *h5_keep_find(const h5_keep *k, uint64_t addr, uint64_t bytes);
/* Takes a block over that is not kept yet; frees it when there is no memory. */
int h5_keep_add(h5_keep *k, uint64_t addr, uint64_t bytes, uint8_t *p, h5_error *err);
void h5_keep_free(h5_keep *k);

#endif
