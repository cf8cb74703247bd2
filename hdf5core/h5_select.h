/*
 * h5_select.h - hyperslab arithmetic: the contiguous runs that two boxes have in common
 *
 * A box of `count` elements lies at src_start in an array of src_dims and at dst_start in one of
 * dst_dims. It is cut into the longest runs that are contiguous in both. All numbers are elements;
 * the caller has checked that the boxes lie inside.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef H5_SELECT_H
#define H5_SELECT_H

#include "h5_base.h"

typedef struct h5_runs {
    uint64_t run; /* elements of each run; 0 when the box is empty */
    uint64_t n;   /* runs that are still to come */
    uint64_t src, dst;
    int rank; /* dimensions that are stepped through; the others are inside a run */
    uint64_t count[H5_RANK_MAX], pos[H5_RANK_MAX];
    uint64_t src_step[H5_RANK_MAX], dst_step[H5_RANK_MAX];
} h5_runs;

void h5_runs_init(h5_runs *r, int rank, const uint64_t *count, const uint64_t *src_dims,
                  const uint64_t *src_start, const uint64_t *dst_dims, const uint64_t *dst_start);

/* The next run; 0 when there is none. */
int h5_runs_next(h5_runs *r, uint64_t *src, uint64_t *dst);

/* Copies all runs that are still to come: elements of size bytes, src being element src_first. */
void h5_runs_copy(h5_runs *r, size_t size, const uint8_t *src, uint64_t src_first, uint8_t *dst);

#endif
