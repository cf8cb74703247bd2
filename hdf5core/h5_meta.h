/*
 * h5_meta.h - blocks of a file that are kept in memory, so that many small reads of metadata become
 * few larger ones; for h5_file.c
 *
 * OWNERSHIP  an h5_meta owns its blocks until h5_meta_free; a zeroed one is empty and valid.
 * THREADS    several may read at once: one uses the blocks, the others read past them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef H5_META_H
#define H5_META_H

#include <stdatomic.h>

#include "h5_base.h"

typedef struct h5_meta_block {
    uint64_t at; /* offset in the io */
    size_t n, cap;
    uint8_t *p;
} h5_meta_block;

typedef struct h5_meta {
    atomic_flag busy;
    unsigned next; /* block that the next miss replaces */
    unsigned last; /* block used last */
    uint64_t end;  /* of the block read last */
    size_t ahead;  /* bytes that it had */
    h5_meta_block block[H5_META_BLOCKS];
} h5_meta;

/* Reads n bytes at offset off of io; bytes from end on are never read. */
int h5_meta_read(h5_meta *m, h5_io *io, uint64_t off, void *buf, size_t n, uint64_t end,
                 h5_error *err);
void h5_meta_free(h5_meta *m);

#endif
