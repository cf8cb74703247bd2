/*
 * st_window.c - see st_window.h.
 *
 * Where a run has its rows in order already, its bounds are looked for in the column itself: first
 * among the first rows of chunks, then inside one, whose values lie side by side.
 *
 * ERRORS   ST_NOMEM, and what reading a row gives
 *
 * SPDX-License-Identifier: MIT
 */
#include "st_window.h"

#include <math.h>

#include "vec.h"

/* ------------------------------------------------------------------------------ rows and places */

/* The order of the rows behind the base, made at the first look at a frozen set of rows. */
static int slot_key(void *ctx, uint64_t i, st_sortkey *out, st_error *err)
{
    const st_slot *s = ((st_slot **)ctx)[i];
    (void)err;
    *out = (st_sortkey){s->timestamp, s->id};
    return ST_OK;
}

static int sort_slots(st_frozen *f, st_error *err)
{
    if (!f->timed) {
        ST_TRY(st_sort_rows(slot_key, f->slot, f->nrow - f->nbase, &f->by_time, err));
        f->timed = 1;
    }
    return ST_OK;
}

static int row_at(st_view *v, const st_lane *l, uint64_t place, uint64_t *row, st_error *err)
{
    const st_frozen *f = v->f;
    if (l->run) {
        return st_sortrun_row(l->run, ST_SORT_TIME, place, row, err);
    }
    *row = f->nbase + (f->by_time ? st_get32(f->by_time + 4 * place) : place);
    return ST_OK;
}

static int time_at(st_view *v, const st_lane *l, uint64_t place, double *time, st_error *err)
{
    const st_frozen *f = v->f;
    uint64_t row;
    ST_TRY(row_at(v, l, place, &row, err));
    if (row >= f->nbase) {
        *time = f->slot[row - f->nbase]->timestamp;
        return ST_OK;
    }
    return st_read_time(&v->reader, row, time, err);
}

/* --------------------------------------------------------------------------------------- bounds */

/* The first place in [lo, hi) whose time is x or later, or, with past, later than x. */
static int bound(st_view *v, const st_lane *l, uint64_t lo, uint64_t hi, double x, int past,
                 uint64_t *out, st_error *err)
{
    while (lo < hi) {
        uint64_t mid = lo + (hi - lo) / 2;
        double t;
        ST_TRY(time_at(v, l, mid, &t, err));
        if (past ? t <= x : t < x) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    *out = lo;
    return ST_OK;
}

/* The same for a run that lies in the column as it is: [lo, hi) shrinks to one chunk. */
static int bound_in_column(st_view *v, const st_lane *l, uint64_t lo, uint64_t hi, double x,
                           int past, uint64_t *out, st_error *err)
{
    uint64_t first = l->run->first, run;
    uint64_t chunk = v->f->gen->image->col[ST_PHYS_TIMESTAMP].chunk_rows;
    const uint8_t *p;
    double t;
    if (lo < hi && hi - lo > 64) {
        uint64_t a = (first + lo) / chunk, b = (first + hi - 1) / chunk;
        while (a < b) { // by each chunk's first row, which is not lo
            uint64_t mid = a + (b - a + 1) / 2;
            ST_TRY(st_read_time(&v->reader, mid * chunk, &t, err));
            if (past ? t <= x : t < x) {
                a = mid;
                lo = mid * chunk - first;
            } else {
                b = mid - 1;
                hi = mid * chunk - first;
            }
        }
    }
    *out = lo;
    if (lo < hi) {
        ST_TRY(st_read_at(&v->reader, ST_PHYS_TIMESTAMP, first + lo, &p, &run, err));
        if (run < hi - lo) { // of chunks that are not what they were said to be
            return bound(v, l, lo, hi, x, past, out, err);
        }
        *out = lo + vec_bound_f64((const double *)(const void *)p, (size_t)(hi - lo), x, past);
    }
    return ST_OK;
}

/* Where the window ends, mostly in the chunk where it begins. */
static int find_end(st_view *v, const st_lane *l, double x, uint64_t *out, st_error *err)
{
    const uint8_t *p;
    uint64_t run;
    double last;
    if (l->run && !l->run->sorted && l->lo < l->hi) {
        ST_TRY(st_read_at(&v->reader, ST_PHYS_TIMESTAMP, l->run->first + l->lo, &p, &run, err));
        run = ST_MIN(run, l->hi - l->lo);
        memcpy(&last, p + 8 * (run - 1), sizeof last);
        if (last > x) {
            const double *at = (const double *)(const void *)p;
            size_t n = 1;
            while (n < run && at[n - 1] <= x) {
                n *= 2;
            }
            *out = l->lo + n / 2 + vec_bound_f64(at + n / 2, ST_MIN(n, run) - n / 2, x, 1);
            return ST_OK;
        }
    }
    return l->run && !l->run->sorted ? bound_in_column(v, l, l->lo, l->hi, x, 1, out, err)
                                     : bound(v, l, l->lo, l->hi, x, 1, out, err);
}

static int find_begin(st_view *v, const st_lane *l, double x, uint64_t *out, st_error *err)
{
    return l->run && !l->run->sorted ? bound_in_column(v, l, l->lo, l->hi, x, 0, out, err)
                                     : bound(v, l, l->lo, l->hi, x, 0, out, err);
}

static int add_lane(st_view *v, st_window *w, const st_sortrun *run, uint64_t count, double lo,
                    double hi, st_error *err)
{
    st_lane *l = &w->lane[w->n];
    uint64_t from = 0, to = count;
    l->run = run;
    l->lo = 0;
    l->hi = count;
    l->ready = 0;
    if (lo > -INFINITY) {
        ST_TRY(find_begin(v, l, lo, &from, err));
    }
    l->lo = from;
    if (hi < INFINITY) {
        ST_TRY(find_end(v, l, hi, &to, err));
    }
    l->hi = l->tie = to;
    if (from < to) {
        w->count += to - from;
        w->n++;
    }
    return ST_OK;
}

int st_window_open(st_view *v, double lo, double hi, int desc, st_window *out, int *there,
                   st_error *err)
{
    st_frozen *f = v->f;
    const st_sortruns *runs = &f->gen->image->sorted[ST_SORT_TIME];
    out->n = 0;
    out->count = 0;
    out->desc = desc;
    *there = (runs->n || !f->nbase) && runs->n < ST_LANES_MAX;
    if (!*there || lo > hi) {
        return ST_OK;
    }
    for (size_t i = 0; i < runs->n; i++) {
        ST_TRY(add_lane(v, out, &runs->run[i], runs->run[i].count, lo, hi, err));
    }
    if (f->nrow > f->nbase) {
        ST_TRY(sort_slots(f, err));
        ST_TRY(add_lane(v, out, NULL, f->nrow - f->nbase, lo, hi, err));
    }
    return ST_OK;
}

/* ---------------------------------------------------------------------------------------- going */

/* Descending: the places [tie, hi) of the latest time, by their ids. Mostly one. */
static int next_tie(st_view *v, st_lane *l, st_error *err)
{
    double last, t;
    uint64_t lo = l->lo, step = 1;
    ST_TRY(time_at(v, l, l->hi - 1, &last, err));
    l->tie = l->hi - 1;
    while (l->tie > lo) {
        uint64_t back = l->tie - lo < step ? lo : l->tie - step;
        ST_TRY(time_at(v, l, back, &t, err));
        if (t != last) {
            lo = back + 1;
            break;
        }
        l->tie = back;
        step *= 2;
    }
    if (l->tie > lo) {
        ST_TRY(bound(v, l, lo, l->tie, last, 0, &l->tie, err));
    }
    l->at = l->tie;
    return ST_OK;
}

/* The lane's next live row: l->ready says whether there is one. */
static int advance(st_view *v, st_lane *l, int desc, int keyed, st_error *err)
{
    const st_frozen *f = v->f;
    l->ready = 0;
    for (;;) {
        uint64_t place;
        if (!desc) {
            if (l->lo == l->hi) {
                return ST_OK;
            }
            place = l->lo++;
        } else {
            if (l->tie == l->hi) {
                if (l->lo == l->hi) {
                    return ST_OK;
                }
                ST_TRY(next_tie(v, l, err));
            }
            place = l->at++;
            if (l->at == l->hi) {
                l->hi = l->tie;
            }
        }
        ST_TRY(row_at(v, l, place, &l->row, err));
        if (st_bit_get(f->live, l->row)) {
            break;
        }
    }
    l->ready = 1;
    if (!keyed) {
        return ST_OK;
    }
    if (l->row >= f->nbase) {
        return slot_key(f->slot, l->row - f->nbase, &l->key, err);
    }
    return st_read_sortkey(&v->reader, ST_SORT_TIME, l->row, &l->key, err);
}

static int before(const st_lane *a, const st_lane *b, int desc)
{
    if (desc && a->key.time != b->key.time) {
        return a->key.time > b->key.time;
    }
    return st_sortkey_compare(&a->key, &b->key) < 0;
}

int st_window_next(st_view *v, st_window *w, uint64_t *row, st_error *err)
{
    st_lane *best = NULL;
    if (w->n == 1) {
        st_lane *l = &w->lane[0]; // one that was of several may have its row ready
        int rc = l->ready ? ST_OK : advance(v, l, w->desc, 0, err);
        *row = l->row;
        int ready = l->ready;
        l->ready = 0;
        return rc ? rc : ready;
    }
    for (size_t i = 0; i < w->n;) {
        st_lane *l = &w->lane[i];
        if (!l->ready) {
            ST_TRY(advance(v, l, w->desc, 1, err));
        }
        if (!l->ready) {
            *l = w->lane[--w->n]; // through; with one lane left its row may be ready
            continue;
        }
        best = !best || before(l, best, w->desc) ? l : best;
        i++;
    }
    if (best) {
        *row = best->row;
        best->ready = 0;
    }
    return best != NULL;
}
