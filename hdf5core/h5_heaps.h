/*
 * h5_heaps.h - global heaps: objects of collections, kept once they are read
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef H5_HEAPS_H
#define H5_HEAPS_H

#include "h5_file.h"

/* The object `index` of the collection at addr. It belongs to h. */
int h5_heaps_object(h5_heaps *h, uint64_t addr, uint32_t index, const uint8_t **out, uint64_t *n,
                    h5_error *err);

/* Values of other files, for h5_virtual_move.c. A heap keeps their bytes as objects of a collection
** that no file holds, at an address that no file has: the last one before the undefined one. */
uint64_t h5_heaps_kept_addr(const h5_heaps *h);
/* Drops what is kept. */
void h5_heaps_forget(h5_heaps *h);
/* Keeps n bytes at p, which stay valid as long as h, as object *index. */
int h5_heaps_keep(h5_heaps *h, const uint8_t *p, uint64_t n, uint32_t *index, h5_error *err);
/* n bytes of h that stay as long as what is kept; NULL without memory. */
uint8_t *h5_heaps_alloc(h5_heaps *h, size_t n);
/* Takes over what another file's heaps have read; their file may be closed then. */
void h5_heaps_adopt(h5_heaps *h, h5_heaps *from);
/* Heaps of another file, whose collections count against what h may adopt. */
int h5_heaps_open_for(h5_heaps *h, h5_file *f, h5_heaps **out, h5_error *err);

#endif
