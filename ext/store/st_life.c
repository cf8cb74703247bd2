/*
 * st_life.c - what ageing needs of the rows: their small columns as arrays, and activation as it
 * has faded.
 *
 * ACTIVATION  is stored as it was at the row's own time: its last access or, before the first, when
 *             it happened. What is read is that, halved once in each activation_half_life from then
 *             to the last tick (option last_tick; 0: there was none). So a tick writes one option
 *             and no row, and every reader of one commit reads the same whatever its clock says.
 *             What is written is raised by as much as reading takes off, so that it reads as it was
 *             written until the next tick. FADE_MOST half-lives are the end: what is left then is
 *             under a trillionth of a millionth, and what is written still fits.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>

#include "st_store.h"

#define FADE_MOST      60.0
#define ACTIVATION_MAX 1e300 /* as st_schema.c checks it */

void st_conn_life(st_conn *c, st_life *out)
{
    st_options o;
    if (!c->txn.nconfig) {
        pthread_mutex_lock(&c->store->lock);
        *out = c->gen->options.life;
        pthread_mutex_unlock(&c->store->lock);
        return;
    }
    st_conn_options(c, &o);
    *out = o.life;
}

int st_get_life(st_conn *c, st_life *out, st_error *err)
{
    ST_TRY(st_snapshot_refresh(c, err));
    st_conn_life(c, out);
    return ST_OK;
}

int st_get_policy(st_conn *c, st_policy *out, st_error *err)
{
    st_options o;
    ST_TRY(st_snapshot_refresh(c, err));
    if (c->txn.nconfig) {
        st_conn_options(c, &o);
        *out = o.policy;
        return ST_OK;
    }
    pthread_mutex_lock(&c->store->lock);
    *out = c->gen->options.policy;
    pthread_mutex_unlock(&c->store->lock);
    return ST_OK;
}

/* ----------------------------------------------------------------------------------- activation */

static double halvings(const st_fade_rule *f, double last, double timestamp)
{
    double since = isfinite(last) ? last : timestamp;
    double n = f->tick != 0 && f->half_life > 0 ? (f->tick - since) / f->half_life : 0;
    return n > 0 ? ST_MIN(n, FADE_MOST) : 0;
}

double st_fade(const st_fade_rule *f, double raw, double last, double timestamp)
{
    double n = halvings(f, last, timestamp);
    return n > 0 ? raw * exp2(-n) : raw;
}

double st_unfade(const st_fade_rule *f, double seen, double last, double timestamp)
{
    double n = halvings(f, last, timestamp);
    return n > 0 ? ST_MIN(seen * exp2(n), ACTIVATION_MAX) : seen;
}

/* A small real of any row. */
static int real_of(st_view *v, uint64_t row, int small, double *out, st_error *err)
{
    const st_num *n = st_frozen_small(v->f, row);
    st_num one;
    if (n) {
        *out = n[small].r;
        return ST_OK;
    }
    ST_TRY(st_read_small(&v->reader, small, row, &one, err));
    *out = one.r;
    return ST_OK;
}

static int time_of(st_view *v, uint64_t row, double *out, st_error *err)
{
    const uint8_t *p;
    uint64_t run;
    if (row >= v->f->nbase) {
        *out = v->f->slot[row - v->f->nbase]->timestamp;
        return ST_OK;
    }
    ST_TRY(st_read_at(&v->reader, ST_PHYS_TIMESTAMP, row, &p, &run, err));
    memcpy(out, p, sizeof *out);
    return ST_OK;
}

int st_view_activation(st_view *v, uint64_t row, double *out, st_error *err)
{
    double last, timestamp;
    ST_TRY(real_of(v, row, ST_SMALL_ACTIVATION, out, err));
    if (v->f->fade.tick != 0) {
        ST_TRY(real_of(v, row, ST_SMALL_LAST_ACCESS, &last, err));
        ST_TRY(time_of(v, row, &timestamp, err));
        *out = st_fade(&v->f->fade, *out, last, timestamp);
    }
    return ST_OK;
}

/* ------------------------------------------------------------------------------ columns of rows */

/* One column, as numbers of its own width, into an array that the live rows number. */
typedef struct column {
    int small;   /* or -1: */
    int phys;    /* the physical column */
    size_t size; /* of an element out: 1, or 8 */
    uint8_t *out;
} column;

/* The base rows among the live ones. */
static int fill_base(st_view *v, const st_ages *a, const column *k, st_error *err)
{
    const uint8_t *p = NULL;
    uint64_t from = 0, run = 0;
    for (size_t i = 0; i < a->n && a->row[i] < v->f->nbase; i++) {
        uint64_t row = a->row[i];
        if (!p || row - from >= run) {
            ST_TRY(st_read_at(&v->reader, k->phys, row, &p, &run, err));
            from = row;
        }
        memcpy(k->out + i * k->size, p + (row - from) * k->size, k->size);
    }
    return ST_OK;
}

static void fill_one(const st_slot *t, const st_num *small, const column *k, size_t i)
{
    if (k->small < 0) {
        memcpy(k->out + i * k->size, k->phys == ST_PHYS_ID ? (const void *)&t->id : &t->timestamp,
               8);
    } else if (k->size == 1) {
        k->out[i] = (uint8_t)small[k->small].i;
    } else {
        memcpy(k->out + i * k->size, &small[k->small], 8);
    }
}

/* Slots, and base rows that were changed since. */
static void fill_rest(const st_view *v, const st_ages *a, size_t first, const column *k, size_t n)
{
    const st_frozen *f = v->f;
    for (size_t i = f->patched.n ? 0 : first; i < a->n; i++) {
        const st_num *small = st_frozen_small(f, a->row[i]);
        const st_slot *t = a->row[i] < f->nbase ? NULL : f->slot[a->row[i] - f->nbase];
        for (size_t c = 0; small && c < n; c++) {
            if (k[c].small >= 0 || t) {
                fill_one(t, small, &k[c], i);
            }
        }
    }
}

static int fill(st_view *v, st_ages *a, st_error *err)
{
    const st_schema *s = v->f->gen->schema;
    const column k[] = {
        {-1, ST_PHYS_ID, 8, (uint8_t *)a->id},
        {-1, ST_PHYS_TIMESTAMP, 8, (uint8_t *)a->timestamp},
        {ST_SMALL_TIER, st_phys_small(s, ST_SMALL_TIER), 1, a->tier},
        {ST_SMALL_PINNED, st_phys_small(s, ST_SMALL_PINNED), 1, a->pinned},
        {ST_SMALL_SOURCE, st_phys_small(s, ST_SMALL_SOURCE), 1, a->source},
        {ST_SMALL_IMPORTANCE, st_phys_small(s, ST_SMALL_IMPORTANCE), 8, (uint8_t *)a->importance},
        {ST_SMALL_ACCESS_COUNT, st_phys_small(s, ST_SMALL_ACCESS_COUNT), 8,
         (uint8_t *)a->access_count},
        {ST_SMALL_LAST_ACCESS, st_phys_small(s, ST_SMALL_LAST_ACCESS), 8,
         (uint8_t *)a->last_access},
        {ST_SMALL_VALID_TO, st_phys_small(s, ST_SMALL_VALID_TO), 8, (uint8_t *)a->valid_to},
    };
    size_t first = 0, n = sizeof k / sizeof *k;
    uint64_t row = st_bit_next(v->f->live, v->f->nrow, 0);
    for (size_t i = 0; i < a->n; i++) {
        a->row[i] = row;
        first += row < v->f->nbase;
        row = st_bit_next(v->f->live, v->f->nrow, row + 1);
    }
    for (size_t c = 0; c < n && first; c++) {
        ST_TRY(fill_base(v, a, &k[c], err));
    }
    fill_rest(v, a, first, k, n);
    for (size_t i = 0; i < a->n; i++) {
        a->superseded[i] = !isnan(a->valid_to[i]);
    }
    return ST_OK;
}

int st_ages_read(st_view *v, st_ages *out, st_error *err)
{
    size_t n = (size_t)v->f->nlive, words = 7, bytes = 4;
    memset(out, 0, sizeof *out);
    out->n = n;
    out->row = h5_alloc_array(n + 1, words * 8 + bytes);
    if (!out->row) {
        return st_nomem(err);
    }
    out->id = (int64_t *)(out->row + n);
    out->timestamp = (double *)(out->id + n);
    out->importance = out->timestamp + n;
    out->access_count = (int64_t *)(out->importance + n);
    out->last_access = (double *)(out->access_count + n);
    out->valid_to = out->last_access + n;
    out->tier = (uint8_t *)(out->valid_to + n);
    out->pinned = out->tier + n;
    out->source = out->pinned + n;
    out->superseded = out->source + n;
    return fill(v, out, err);
}

void st_ages_free(st_ages *a)
{
    h5_free(a->row);
    memset(a, 0, sizeof *a);
}
