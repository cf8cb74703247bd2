/*
 * st_search.h - the inside of a running query.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ST_SEARCH_H
#define ST_SEARCH_H

#include "st_filter.h"
#include "vec.h"

enum { ST_MODE_BITS, ST_MODE_LIST, ST_MODE_NEAR, ST_MODE_FUSED, ST_MODE_RANKED };

struct st_cursor {
    st_view *v;
    int mode, order, metric, has_text, hybrid;
    int64_t k;      /* -1: no cap */
    uint64_t given; /* rows handed out */
    st_terms terms;
    float *query; /* own copy, or NULL */
    uint64_t *bits;
    uint64_t *list; /* LIST: rows */
    uint64_t nlist, pos;
    vec_plane_extent *plane;
    size_t nplane;
    vec_extent *exact;
    size_t nexact;
    vec_near *near;
    vec_rank *rank;
    vec_rrf *rrf;
    double *dist;      /* by row, NaN without; where all distances were needed */
    double *text_rank; /* by row, NaN without; hybrid */
    st_error failed;   /* what a callback ran into */
    uint64_t row;
    double distance, rank_value, score;
};

#endif
