/*
 * h5_selection.h - dataspace selections as they are stored: which elements, and in which order
 *
 * A selection is a list of elements of a box, in C order of their places. A regular hyperslab is
 * kept as four numbers a dimension; a list of blocks is sorted into runs. Both answer the same two
 * questions: where is element n, and how many further ones stand right behind it.
 *
 * OWNERSHIP  an h5_selection owns its runs until h5_selection_free; a zeroed one is empty and
 * valid.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef H5_SELECTION_H
#define H5_SELECTION_H

#include "h5_cur.h"

enum { H5_SELECT_NONE = 0, H5_SELECT_POINTS = 1, H5_SELECT_SLAB = 2, H5_SELECT_ALL = 3 };

typedef struct h5_select_dim {
    uint64_t start, stride, count, block; /* count or block UINT64_MAX: unlimited */
    uint64_t n;                           /* elements along it, once it is settled */
} h5_select_dim;

/* Elements that stand one behind the other in the fastest dimension. */
typedef struct h5_select_run {
    uint64_t place; /* of the first, in C order of the array */
    uint64_t n;
    uint64_t before; /* elements of the selection before it */
} h5_select_run;

typedef struct h5_selection {
    int kind; /* H5_SELECT_ */
    int rank; /* of all but "none" and "all", which fit any array */
    h5_select_dim dim[H5_RANK_MAX];
    uint64_t nblock; /* a list of blocks, else 0: `blocks` holds first and last places */
    const uint8_t *blocks;
    unsigned width;             /* bytes of a number in blocks */
    int unlimited;              /* dimension without an end, -1 = none */
    uint64_t total;             /* elements, once it is settled */
    uint64_t dims[H5_RANK_MAX]; /* of the array, once it is settled */
    h5_select_run *run;         /* of a list of blocks */
    size_t nrun;
} h5_selection;

/* Decodes one serialized selection; blocks points into the bytes. addr is for texts. Points are
** H5_UNSUPPORTED. */
int h5_selection_parse(h5_cur *c, uint64_t addr, h5_selection *out, h5_error *err);

/* Elements of a regular hyperslab along one dimension at places below `extent`, were it to go on
** without an end; and the place right behind the n-th of them (0 for none, UINT64_MAX when 64 bits
** do not hold it). */
uint64_t h5_select_below(const h5_select_dim *d, uint64_t extent);
uint64_t h5_select_extent(const h5_select_dim *d, uint64_t n);

/* Cuts the unlimited dimension off after n elements. */
void h5_selection_cut(h5_selection *s, uint64_t n);

/* Applies the selection, which has no unlimited dimension any more, to an array: it must lie
** inside. Counts its elements. */
int h5_selection_settle(h5_selection *s, int rank, const uint64_t *dims, uint64_t addr,
                        h5_error *err);

/* Place of element n < total; gives how many elements from there on stand side by side in the
** fastest dimension (1 for rank 0). */
uint64_t h5_selection_at(const h5_selection *s, uint64_t n, uint64_t *place);

void h5_selection_free(h5_selection *s);

#endif
