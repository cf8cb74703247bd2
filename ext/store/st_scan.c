/*
 * st_scan.c - rows without a search: by id, in order of time, or all that pass the filter.
 *
 * A window of time, and every order by time, goes through the sorted runs of /index/time as far as
 * it is read. What else is asked of its rows is looked at row by row, and once that has taken a
 * while, column-wise for all of them. A few rows named by id are looked up, not filtered.
 *
 * ERRORS   ST_NOMEM, and what reading a row gives
 *
 * SPDX-License-Identifier: MIT
 */
#include "st_search.h"

#include <math.h>

/* --------------------------------------------------------------------------------- by their ids */

static int by_id_term(const st_terms *t)
{
    for (size_t i = 0; i < t->n; i++) {
        if (t->term[i].col == ST_COL_ID && (t->term[i].op == ST_EQ || t->term[i].op == ST_IN)) {
            return (int)i;
        }
    }
    return -1;
}

static int add_row(st_cursor *c, int64_t id, st_error *err)
{
    uint64_t row;
    int rc = st_view_find(c->v, id, &row, err);
    if (rc == ST_NOTFOUND) {
        return ST_OK;
    }
    ST_TRY(rc);
    rc = st_filter_row(c->v, &c->terms, row, err);
    if (rc > 0) {
        c->list[c->nlist++] = row;
    }
    return rc < 0 ? rc : ST_OK;
}

/* The id that a constant names, as the integer column compares: 3 and 3.0 do, 3.5 names none. */
static int as_id(const st_value *v, int64_t *id)
{
    if (v->type == ST_INT) {
        *id = v->i;
        return 1;
    }
    if (v->type == ST_REAL && v->r >= -9223372036854775808.0 && v->r < 9223372036854775808.0 &&
        v->r == floor(v->r)) {
        *id = (int64_t)v->r;
        return 1;
    }
    return 0;
}

/* Rows named by id, in ascending order of id (an IN list is sorted). */
static int rows_by_id(st_cursor *c, const st_term *t, st_error *err)
{
    size_t n = t->op == ST_IN ? t->nlist : 1;
    int64_t id = 0, last = 0;
    int any = 0;
    c->list = h5_alloc_array(n + 1, sizeof *c->list);
    if (!c->list) {
        return st_nomem(err);
    }
    for (size_t i = 0; i < n; i++) {
        if (as_id(t->op == ST_IN ? &t->list[i] : &t->value, &id) && !(any && id == last)) {
            ST_TRY(add_row(c, id, err));
            any = 1;
            last = id;
        }
    }
    if (c->order == ST_ORDER_ID_DESC) {
        for (uint64_t i = 0; i < c->nlist / 2; i++) {
            uint64_t x = c->list[i];
            c->list[i] = c->list[c->nlist - 1 - i];
            c->list[c->nlist - 1 - i] = x;
        }
    }
    c->mode = ST_MODE_LIST;
    return ST_OK;
}

/* ------------------------------------------------------------------------- in the table's order */

int st_ids_ascend(const st_cursor *c)
{
    const st_frozen *f = c->v->f;
    const st_image *im = f->gen->image;
    const st_sortruns *r = &im->sorted[ST_SORT_ID];
    return f->nrow == f->nbase && (!r->n || (r->n == 1 && !r->run[0].sorted));
}

int st_scan_filtered(st_cursor *c, st_error *err)
{
    const st_frozen *f = c->v->f;
    uint64_t n = vec_bits_count(c->bits, f->nrow), i = 0;
    vec_hit *hits;
    if (c->order == ST_ORDER_BEST || (c->order == ST_ORDER_ID && st_ids_ascend(c))) {
        c->mode = ST_MODE_BITS;
        return ST_OK;
    }
    hits = vec_hits_alloc((size_t)n);
    if (!hits) {
        return st_nomem(err);
    }
    for (uint64_t row = st_bit_next(c->bits, f->nrow, 0); row < f->nrow;
         row = st_bit_next(c->bits, f->nrow, row + 1)) {
        int64_t id = st_frozen_id(c->v, row);
        double when = 0;
        if (c->order >= ST_ORDER_TIME) {
            int rc = st_row_time(c->v, row, &when, err);
            if (rc) {
                vec_free(hits);
                return rc;
            }
        }
        // With all keys alike, ids decide; their complement turns the order round.
        hits[i++] = (vec_hit){c->order == ST_ORDER_TIME_DESC ? -when : when,
                              c->order == ST_ORDER_ID_DESC ? ~id : id, row};
    }
    c->mode = ST_MODE_RANKED;
    return st_from_vec(err, vec_rank_new(hits, (size_t)n, &c->rank), "ordering rows");
}

/* -------------------------------------------------------------------------------- by their time */

enum {
    WINDOW_ROWS = 4096, // a longer one, not in order of time: filtering column-wise costs less
    LOOK_ROWS = 1024    // so many rows are looked at one by one
};

/* The range of time that the terms leave; what they say beyond it stays in c->terms. */
static int take_range(st_cursor *c, double *lo, double *hi)
{
    st_terms *t = &c->terms;
    size_t kept = 0;
    int some = 0;
    *lo = -INFINITY;
    *hi = INFINITY;
    for (size_t i = 0; i < t->n; i++) {
        double a, b;
        if (t->term[i].col == ST_COL_TIMESTAMP && st_time_range(&t->term[i], &a, &b)) {
            *lo = a > *lo ? a : *lo;
            *hi = b < *hi ? b : *hi;
            some = 1;
        } else {
            st_term x = t->term[kept];
            t->term[kept++] = t->term[i];
            t->term[i] = x; // taken terms to the end: they may be wanted after all
        }
    }
    c->nwindow = t->n - kept;
    t->n = kept;
    return some;
}

static int start_window(st_cursor *c, int *done, st_error *err)
{
    double lo, hi;
    int there = 0, by_time = c->order == ST_ORDER_TIME || c->order == ST_ORDER_TIME_DESC;
    int some = take_range(c, &lo, &hi);
    if (by_time || (some && c->order == ST_ORDER_BEST)) {
        ST_TRY(
            st_window_open(c->v, lo, hi, c->order == ST_ORDER_TIME_DESC, &c->window, &there, err));
    }
    if (!there || (!by_time && c->terms.n && c->window.count > WINDOW_ROWS)) {
        c->terms.n += c->nwindow;
        return ST_OK;
    }
    c->mode = ST_MODE_WINDOW;
    *done = 1;
    return ST_OK;
}

int st_scan_start(st_cursor *c, int *done, st_error *err)
{
    int by_id = by_id_term(&c->terms);
    if (by_id >= 0 && c->order != ST_ORDER_TIME && c->order != ST_ORDER_TIME_DESC) {
        *done = 1;
        return rows_by_id(c, &c->terms.term[by_id], err);
    }
    return start_window(c, done, err);
}

static int filter_all(st_cursor *c, st_error *err)
{
    const st_frozen *f = c->v->f;
    size_t bytes = st_bit_words(f->nrow) * sizeof *c->bits;
    c->bits = h5_malloc(bytes + 8);
    if (!c->bits) {
        return st_nomem(err);
    }
    memcpy(c->bits, f->live, bytes);
    for (size_t i = 0; i < c->terms.n; i++) {
        if (!st_is_result_col(c->terms.term[i].col)) {
            ST_TRY(st_filter_term(c->v, &c->terms.term[i], c->bits, err));
        }
    }
    return ST_OK;
}

int st_scan_step(st_cursor *c, st_error *err)
{
    for (;;) {
        int rc = st_window_next(c->v, &c->window, &c->row, err);
        if (rc <= 0 || !c->terms.n) {
            return rc;
        }
        if (!c->bits && ++c->looked > LOOK_ROWS) {
            ST_TRY(filter_all(c, err));
        }
        rc = c->bits ? (int)st_bit_get(c->bits, c->row)
                     : st_filter_row(c->v, &c->terms, c->row, err);
        if (rc) {
            return rc;
        }
    }
}
