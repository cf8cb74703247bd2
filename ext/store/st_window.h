/*
 * st_window.h - rows in order of time, from the sorted runs of /index/time and the rows behind the
 * base.
 *
 * A window is a range of places in each run; the runs are merged as rows are asked for, so that the
 * first rows of a long window cost no more than those of a short one.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ST_WINDOW_H
#define ST_WINDOW_H

#include "st_store.h"

enum { ST_LANES_MAX = 8 }; /* runs beyond this many: no window; the rows are filtered and sorted */

typedef struct st_lane {
    const st_sortrun *run; /* NULL: the rows behind the base */
    uint64_t lo, hi;       /* places still to come */
    uint64_t tie;          /* descending: where rows of one time begin, whose last is hi - 1 */
    uint64_t at;           /* the place of the row to give */
    uint64_t row;          /* that row, */
    st_sortkey key;        /* and its key, */
    int ready;             /* if they are known */
} st_lane;

typedef struct st_window {
    st_lane lane[ST_LANES_MAX];
    size_t n;
    int desc;
    uint64_t count; /* rows in it at first, dead ones too */
} st_window;

/* The rows of a view with lo <= timestamp <= hi, in order of time and then id; desc: latest first,
** those of one time still by id. *there 0: the store has no index for that, or too many runs. */
int st_window_open(st_view *v, double lo, double hi, int desc, st_window *out, int *there,
                   st_error *err);
/* The next live row: 1, 0 at the end, or negative. */
int st_window_next(st_view *v, st_window *w, uint64_t *row, st_error *err);

#endif
