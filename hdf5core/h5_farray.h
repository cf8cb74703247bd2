/*
 * h5_farray.h - fixed array chunk index, for h5_cidx.c, h5_write.c and the tests
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef H5_FARRAY_H
#define H5_FARRAY_H

#include "h5_cidx.h"

int h5_farray_open(h5_cidx *ix, h5_error *err);
int h5_farray_get(h5_cidx *ix, const uint64_t *at, uint64_t slot, h5_chunk *out, h5_error *err);

/* h5_write_fixed_array with any number of page bits, 1 to H5_FARRAY_PAGE_BITS_MAX. */
int h5_farray_write(h5_writer *w, const h5_chunk *chunks, uint64_t n, int filtered,
                    uint64_t chunk_bytes, unsigned page_bits, uint64_t *at, h5_error *err);

#endif
