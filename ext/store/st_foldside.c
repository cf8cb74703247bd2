/*
 * st_foldside.c - a flush's share of the tables beside the rows: new versions are appended, ended
 * ones lose their live byte.
 *
 * EVENTS    When an eighth more of them show than the option event_limit says, the oldest go, down
 *           to the limit: alerts last, and first those that have been written again since, which
 *           h5mem_forget has silenced and which would else pass for the newest. So a flush looks at
 *           old events once in an eighth of the limit. It is no part of any transaction; who reads
 *           an older state keeps what it has.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdlib.h>

#include "st_flush.h"

typedef struct side_ctx {
    st_rec **rec; /* to append */
    size_t n;
    int text, number; /* the column at hand */
    uint64_t offset;
    uint8_t scratch[8];
} side_ctx;

static int piece_live(void *ctx, uint64_t i, const uint8_t **p, uint64_t *n, st_error *err)
{
    static const uint8_t shows = ST_LIVE_SHOWS;
    (void)ctx;
    (void)i;
    (void)err;
    *p = &shows;
    *n = 1;
    return ST_OK;
}

static int piece_number(void *ctx, uint64_t i, const uint8_t **p, uint64_t *n, st_error *err)
{
    side_ctx *k = ctx;
    (void)err;
    *p = (const uint8_t *)&k->rec[i]->num[k->number];
    *n = 1;
    return ST_OK;
}

static int piece_data(void *ctx, uint64_t i, const uint8_t **p, uint64_t *n, st_error *err)
{
    side_ctx *k = ctx;
    (void)err;
    *p = k->rec[i]->text[k->text].p;
    *n = st_stored_bytes(&k->rec[i]->text[k->text]);
    return ST_OK;
}

static int piece_offset(void *ctx, uint64_t i, const uint8_t **p, uint64_t *n, st_error *err)
{
    side_ctx *k = ctx;
    (void)err;
    k->offset += st_stored_bytes(&k->rec[i]->text[k->text]);
    st_put64(k->scratch, k->offset);
    *p = k->scratch;
    *n = 1;
    return ST_OK;
}

static int by_row(const void *a, const void *b)
{
    const st_change *x = a, *y = b;
    return x->row < y->row ? -1 : x->row > y->row;
}

/* The rows of the file that a flush ends. */
typedef struct ended {
    st_change *c;
    size_t n;
} ended;

static int end_killed(const st_side *s, ended *e, size_t more, st_error *err)
{
    e->c = h5_calloc(s->nkill + more + 1, sizeof *e->c);
    if (!e->c) {
        return st_nomem(err);
    }
    for (; e->n < s->nkill; e->n++) {
        e->c[e->n].row = s->kill[e->n].row;
        e->c[e->n].bytes[0] = ST_LIVE_DEAD;
    }
    qsort(e->c, e->n, sizeof *e->c, by_row);
    return ST_OK;
}

static int live_column(st_fold *f, int side, side_ctx *k, const ended *e, int anew, st_error *err)
{
    st_colwrite a = {.nnew = k->n, .npiece = k->n, .piece = piece_live, .ctx = k};
    a.change = e->c;
    a.nchange = e->n;
    return st_fold_column(f, st_phys_side(f->gen->schema, side), &a, anew, err);
}

static int text_column(st_fold *f, int side, side_ctx *k, int anew, st_error *err)
{
    int data = st_phys_side_data(f->gen->schema, side, k->text);
    st_colwrite bytes = {.npiece = k->n, .piece = piece_data, .ctx = k};
    st_colwrite offsets = {.nnew = k->n, .npiece = k->n, .piece = piece_offset, .ctx = k};
    k->offset = f->gen->image->col[data].n;
    for (size_t i = 0; i < k->n; i++) {
        bytes.nnew += st_stored_bytes(&k->rec[i]->text[k->text]);
    }
    ST_TRY(st_fold_column(f, data, &bytes, anew, err));
    return st_fold_column(f, data + 1, &offsets, anew, err);
}

/* anew: the table gets its group with this root, so that all columns are written. */
static int columns(st_fold *f, int side, side_ctx *k, const ended *e, int anew, st_error *err)
{
    ST_TRY(live_column(f, side, k, e, anew, err));
    for (k->number = 0; k->number < st_side_defs[side].nnum; k->number++) {
        st_colwrite a = {.nnew = k->n, .npiece = k->n, .piece = piece_number, .ctx = k};
        ST_TRY(
            st_fold_column(f, st_phys_side_number(f->gen->schema, side, k->number), &a, anew, err));
    }
    for (k->text = 0; k->text < st_side_defs[side].ntext; k->text++) {
        ST_TRY(text_column(f, side, k, anew, err));
    }
    return ST_OK;
}

/* ------------------------------------------------------------------------------ events that go */

/* Which records of the file show after this flush, a byte each. */
static int showing(st_fold *f, int side, const ended *e, uint8_t *live, uint64_t *nlive,
                   st_error *err)
{
    uint64_t n = f->gen->image->side[side].n, run;
    *nlive = 0;
    for (uint64_t row = 0; row < n; row += run) {
        const uint8_t *p;
        ST_TRY(st_read_at(&f->reader, st_phys_side(f->gen->schema, side), row, &p, &run, err));
        for (uint64_t i = 0; i < run; i++) {
            live[row + i] = p[i] == ST_LIVE_SHOWS;
            *nlive += live[row + i];
        }
    }
    for (size_t i = 0; i < e->n; i++) {
        *nlive -= live[e->c[i].row];
        live[e->c[i].row] = 0;
    }
    return ST_OK;
}

/* Which events a pass takes, in the order of the records. */
enum { PASS_AGAIN, PASS_OLD, PASS_ALERTS, PASSES };

typedef struct pass {
    int what;
    uint64_t over; /* so many are too many */
    int64_t most;  /* the greatest number so far */
} pass;

static int looked_at(const pass *p)
{
    return p->what == PASS_AGAIN ? ST_EVENT_SEQ : ST_EVENT_KIND;
}

/* v: what looked_at says. */
static int goes(pass *p, const st_value *v)
{
    int yes = p->what == PASS_ALERTS || (p->what == PASS_OLD && !st_alert_kind(v));
    if (p->what == PASS_AGAIN) {
        yes = v->i < p->most;
        p->most = yes ? p->most : v->i;
    }
    return yes;
}

static int drop_from_file(st_fold *f, uint8_t *live, pass *p, ended *e, st_error *err)
{
    uint64_t n = f->gen->image->side[ST_EVENTS].n;
    for (uint64_t row = 0; row < n && p->over > 0; row++) {
        st_value v;
        if (!live[row]) {
            continue;
        }
        ST_TRY(st_read_side_value(&f->reader, ST_EVENTS, row, looked_at(p), &v, err));
        if (goes(p, &v)) {
            live[row] = 0;
            e->c[e->n].row = row;
            e->c[e->n++].bytes[0] = ST_LIVE_DEAD;
            p->over--;
        }
    }
    return ST_OK;
}

static void drop_new(side_ctx *k, pass *p)
{
    size_t kept = 0;
    for (size_t i = 0; i < k->n; i++) {
        st_value v;
        st_rec_value(k->rec[i], looked_at(p), &v);
        if (p->over > 0 && goes(p, &v)) {
            p->over--;
        } else {
            k->rec[kept++] = k->rec[i];
        }
    }
    k->n = kept;
}

static int drop_old(st_fold *f, side_ctx *k, ended *e, st_error *err)
{
    int64_t limit = f->gen->options.life.event_limit;
    uint64_t n = f->gen->image->side[ST_EVENTS].n, nlive = 0;
    pass p = {.most = INT64_MIN};
    uint8_t *live = h5_malloc((size_t)n + 1);
    int rc = live ? showing(f, ST_EVENTS, e, live, &nlive, err) : st_nomem(err);
    if (!rc && limit >= 0 && nlive + k->n > (uint64_t)limit + (uint64_t)limit / 8) {
        p.over = nlive + k->n - (uint64_t)limit;
    }
    for (; p.what < PASSES && p.over > 0 && !rc; p.what++) {
        rc = drop_from_file(f, live, &p, e, err);
        drop_new(k, &p);
    }
    qsort(e->c, e->n, sizeof *e->c, by_row);
    h5_free(live);
    return rc;
}

/* -------------------------------------------------------------------------------------- a table */

static int fold_side(st_fold *f, int side, st_error *err)
{
    const st_side *s = &f->gen->side[side];
    const st_sideimg *old = &f->gen->image->side[side];
    st_root_side *out = &f->side[side];
    int anew = old->group == H5_UNDEF, rc;
    side_ctx k = {.n = 0};
    ended e = {0};
    *out = (st_root_side){.there = !anew, .group = old->group, .next = s->next};
    if (!s->n && !s->nkill) {
        return ST_OK;
    }
    k.rec = h5_alloc_array(s->n + 1, sizeof(st_rec *));
    if (!k.rec) {
        return st_nomem(err);
    }
    for (size_t i = 0; i < s->n; i++) {
        if (s->dead[i] == ST_SEQ_NEVER) {
            k.rec[k.n++] = s->rec[i];
        }
    }
    rc = end_killed(s, &e, side == ST_EVENTS ? (size_t)old->n : 0, err);
    rc = rc || side != ST_EVENTS ? rc : drop_old(f, &k, &e, err);
    if (!rc && old->n + k.n > UINT32_MAX) {
        rc = st_fail(err, ST_LIMIT, "%s: too many records; compact the store",
                     st_side_defs[side].name);
    }
    rc = rc ? rc : columns(f, side, &k, &e, anew, err);
    h5_free(k.rec);
    h5_free(e.c);
    out->there = out->touched = 1;
    return rc;
}

int st_fold_sides(st_fold *f, st_error *err)
{
    for (int side = 0; side < ST_SIDES; side++) {
        ST_TRY(fold_side(f, side, err));
    }
    return ST_OK;
}
