/*
 * h5_btree2.h - version 2 B-trees: all records of one, in order
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef H5_BTREE2_H
#define H5_BTREE2_H

#include "h5_file.h"

typedef struct h5_btree2 {
    uint64_t addr;
    unsigned type, record_bytes;
} h5_btree2;

/* Reads the header at addr, then calls each for every record; a result other than H5_OK ends the
** walk and is handed back. *info is filled before the first call. */
int h5_btree2_each(h5_file *f, uint64_t addr, h5_btree2 *info,
                   int (*each)(void *ctx, const uint8_t *record, h5_error *err), void *ctx,
                   h5_error *err);

#endif
