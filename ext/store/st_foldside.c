/*
 * st_foldside.c - a flush's share of the tables beside the rows: new versions are appended, ended
 * ones lose their live byte.
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

static int live_column(st_fold *f, int side, side_ctx *k, int anew, st_error *err)
{
    const st_side *s = &f->gen->side[side];
    st_colwrite a = {.nnew = k->n, .npiece = k->n, .piece = piece_live, .ctx = k};
    st_change *c = h5_calloc(s->nkill + 1, sizeof *c);
    int rc;
    if (!c) {
        return st_nomem(err);
    }
    for (size_t i = 0; i < s->nkill; i++) {
        c[i].row = s->kill[i].row;
        c[i].bytes[0] = ST_LIVE_DEAD;
    }
    qsort(c, s->nkill, sizeof *c, by_row);
    a.change = c;
    a.nchange = s->nkill;
    rc = st_fold_column(f, st_phys_side(f->gen->schema, side), &a, anew, err);
    h5_free(c);
    return rc;
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
static int columns(st_fold *f, int side, side_ctx *k, int anew, st_error *err)
{
    ST_TRY(live_column(f, side, k, anew, err));
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

static int fold_side(st_fold *f, int side, st_error *err)
{
    const st_side *s = &f->gen->side[side];
    const st_sideimg *old = &f->gen->image->side[side];
    st_root_side *out = &f->side[side];
    int anew = old->group == H5_UNDEF, rc;
    side_ctx k = {.n = 0};
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
    rc = old->n + k.n > UINT32_MAX
             ? st_fail(err, ST_LIMIT, "%s: too many records; compact the store",
                       st_side_defs[side].name)
             : columns(f, side, &k, anew, err);
    h5_free(k.rec);
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
