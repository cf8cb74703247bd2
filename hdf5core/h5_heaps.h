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

#endif
