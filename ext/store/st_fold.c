/*
 * st_fold.c - what the overlay amounts to, column by column.
 *
 * SPDX-License-Identifier: MIT
 */
#include "st_flush.h"

#include <math.h>
#include <stdlib.h>

/* ----------------------------------------------------------------------------------- collecting */

static int by_row(const void *a, const void *b)
{
    const st_patched *x = a, *y = b;
    return x->row < y->row ? -1 : x->row > y->row;
}

static int by_ended(const void *a, const void *b)
{
    const st_ended *x = a, *y = b;
    return x->row < y->row ? -1 : x->row > y->row;
}

int st_fold_collect(st_fold *f, st_error *err)
{
    const uint64_t now = ST_SEQ_NEVER - 1;
    st_gen *g = f->gen;
    uint64_t when;
    f->row = h5_alloc_array(g->nslot + 1, sizeof *f->row);
    f->patched = h5_alloc_array(g->patched.n + 1, sizeof *f->patched);
    f->dead = h5_alloc_array(g->nkill + 1, sizeof *f->dead);
    if (!f->row || !f->patched || !f->dead) {
        return st_nomem(err);
    }
    for (size_t i = 0; i < g->nslot; i++) {
        int evicted = st_gen_evicted(g, ST_REF_OVERLAY | i, now);
        if (g->dead[i] == ST_SEQ_NEVER || evicted) {
            const st_num *small = st_gen_patch(g, ST_REF_OVERLAY | i, now);
            f->row[f->nrow++] = (st_newrow){g->slot[i], small ? small : g->slot[i]->small, evicted};
        }
    }
    for (size_t i = 0; i < g->nkill; i++) {
        f->dead[f->ndead++] = (st_ended){g->kill[i].row, st_gen_evicted(g, g->kill[i].row, now)
                                                             ? ST_LIVE_EVICTED
                                                             : ST_LIVE_DEAD};
    }
    for (size_t i = 0; i < g->patched.cap; i++) {
        const st_map_entry *e = &g->patched.slot[i];
        if (e->used == 1 && !(e->key & ST_REF_TAG) &&
            (!st_map_get(&g->killed, e->key, &when) || st_gen_evicted(g, e->key, now))) {
            f->patched[f->npatched++] = (st_patched){e->key, g->patch[e->value - 1].small};
        }
    }
    qsort(f->patched, f->npatched, sizeof *f->patched, by_row);
    qsort(f->dead, f->ndead, sizeof *f->dead, by_ended);
    return ST_OK;
}

/* --------------------------------------------------------------------------------------- pieces */

/* Numbers are gathered so many at a time. Each column is a walk over all rows, whose memory is far
** apart and, in a large flush, no longer in any cache: what comes next is asked for ahead. */
enum { GATHER = 256, AHEAD = 12 };

typedef struct piece_ctx piece_ctx;

/* Writes row i's value. */
typedef void one_fn(piece_ctx *c, uint64_t i, uint8_t *to);

struct piece_ctx {
    const st_fold *f;
    one_fn *one; /* of the gathered column, whose values have so many bytes: */
    size_t elem;
    int text;        /* DATA and OFFSETS */
    int small;       /* SMALL */
    uint64_t offset; /* OFFSETS: running */
    size_t dim;
    int storage;
    uint8_t *encoded; /* a vector as it is stored, where not as floats */
    uint8_t *scratch; /* one element, or what one is made of */
    uint8_t *fine;    /* of all rows, made with their coarse halves */
    uint8_t gathered[GATHER * 8];
};

uint64_t st_stored_bytes(const st_span *t)
{
    size_t i = 0;
    if (!t->p) {
        return 0;
    }
    while (i < t->n && !t->p[i]) {
        i++;
    }
    return t->n + (i == t->n);
}

static const st_slot *slot_ahead(const st_fold *f, uint64_t i, uint64_t by)
{
    return i + by < f->nrow ? f->row[i + by].slot : f->row[i].slot;
}

/* A piece of up to GATHER numbers. */
static int piece_gathered(void *ctx, uint64_t i, const uint8_t **p, uint64_t *n, st_error *err)
{
    piece_ctx *c = ctx;
    uint64_t first = i * GATHER, m = ST_MIN((uint64_t)GATHER, c->f->nrow - first);
    (void)err;
    for (uint64_t k = 0; k < m; k++) {
        c->one(c, first + k, c->gathered + k * c->elem);
    }
    *p = c->gathered;
    *n = m;
    return ST_OK;
}

static st_colwrite gathered(piece_ctx *c, one_fn *one, int col)
{
    uint64_t n = c->f->nrow;
    c->one = one;
    c->elem = c->f->gen->schema->phys[col].elem;
    return (st_colwrite){
        .nnew = n, .npiece = (n + GATHER - 1) / GATHER, .piece = piece_gathered, .ctx = c};
}

static void one_id(piece_ctx *c, uint64_t i, uint8_t *to)
{
    __builtin_prefetch(slot_ahead(c->f, i, AHEAD));
    memcpy(to, &c->f->row[i].slot->id, sizeof(int64_t));
}

static void one_norm(piece_ctx *c, uint64_t i, uint8_t *to)
{
    __builtin_prefetch(slot_ahead(c->f, i, AHEAD));
    memcpy(to, &c->f->row[i].slot->norm, sizeof(float));
}

static void one_timestamp(piece_ctx *c, uint64_t i, uint8_t *to)
{
    __builtin_prefetch(slot_ahead(c->f, i, AHEAD));
    memcpy(to, &c->f->row[i].slot->timestamp, sizeof(double));
}

static void one_live(piece_ctx *c, uint64_t i, uint8_t *to)
{
    *to = c->f->row[i].evicted ? ST_LIVE_EVICTED : ST_LIVE_SHOWS;
}

/* The text's first byte is looked at: st_stored_bytes. */
static void ask_for_text(const piece_ctx *c, uint64_t i)
{
    __builtin_prefetch(&slot_ahead(c->f, i, (uint64_t)2 * AHEAD)->text);
    __builtin_prefetch(&slot_ahead(c->f, i, AHEAD)->text[c->text]);
    __builtin_prefetch(slot_ahead(c->f, i, AHEAD / 2)->text[c->text].p);
}

static void one_offset(piece_ctx *c, uint64_t i, uint8_t *to)
{
    ask_for_text(c, i);
    c->offset += st_stored_bytes(&c->f->row[i].slot->text[c->text]);
    st_put64(to, c->offset);
}

static void one_small(piece_ctx *c, uint64_t i, uint8_t *to)
{
    uint64_t ahead = i + AHEAD < c->f->nrow ? i + AHEAD : i;
    __builtin_prefetch(&c->f->row[ahead].small[c->small]);
    st_small_pack(c->f->gen->schema, c->small, c->f->row[i].small[c->small], to);
}

static int piece_vector(void *ctx, uint64_t i, const uint8_t **p, uint64_t *n, st_error *err)
{
    piece_ctx *c = ctx;
    const st_slot *t = c->f->row[i].slot;
    (void)err;
    __builtin_prefetch(&slot_ahead(c->f, i, AHEAD)->embedding);
    if (t->embedding && c->storage != VEC_F32) {
        vec_stored_encode(c->storage, t->embedding, c->dim, c->encoded);
        *p = c->encoded;
    } else {
        *p = t->embedding ? (const uint8_t *)t->embedding : c->scratch; // zeros
    }
    *n = 1;
    return ST_OK;
}

/* The scratch takes the whole record and, behind it, its coarse half. The coarse column comes
** before the fine one. */
static int piece_coarse(void *ctx, uint64_t i, const uint8_t **p, uint64_t *n, st_error *err)
{
    piece_ctx *c = ctx;
    const st_slot *t = c->f->row[i].slot;
    uint8_t *coarse = c->scratch + vec_plane_stride(c->dim);
    (void)err;
    __builtin_prefetch(&slot_ahead(c->f, i, AHEAD)->embedding);
    vec_plane_encode(t->embedding, t->norm, c->dim, c->scratch);
    vec_halves_split(t->embedding, c->dim, c->scratch, coarse,
                     c->fine + (size_t)i * vec_halves_stride(c->dim));
    *p = coarse;
    *n = 1;
    return ST_OK;
}

static int piece_fine(void *ctx, uint64_t i, const uint8_t **p, uint64_t *n, st_error *err)
{
    piece_ctx *c = ctx;
    (void)err;
    *p = c->fine + (size_t)i * vec_halves_stride(c->dim);
    *n = 1;
    return ST_OK;
}

static int piece_data(void *ctx, uint64_t i, const uint8_t **p, uint64_t *n, st_error *err)
{
    piece_ctx *c = ctx;
    const st_span *t = &c->f->row[i].slot->text[c->text];
    (void)err;
    ask_for_text(c, i);
    *p = t->p;
    *n = st_stored_bytes(t);
    return ST_OK;
}

/* -------------------------------------------------------------------------------------- changes */

/* Base rows whose value of one small column is now another. */
static int small_changes(st_fold *f, int small, st_change **out, size_t *n, st_error *err)
{
    const st_schema *s = f->gen->schema;
    st_change *c = h5_alloc_array(f->npatched + 1, sizeof *c);
    *out = c;
    *n = 0;
    if (!c) {
        return st_nomem(err);
    }
    for (size_t i = 0; i < f->npatched; i++) {
        uint8_t old[8] = {0};
        st_num num;
        ST_TRY(st_read_small(&f->reader, small, f->patched[i].row, &num, err));
        st_small_pack(s, small, num, old);
        memset(c[*n].bytes, 0, sizeof c[*n].bytes);
        st_small_pack(s, small, f->patched[i].small[small], c[*n].bytes);
        if (memcmp(old, c[*n].bytes, sizeof old) != 0) {
            c[(*n)++].row = f->patched[i].row;
        }
    }
    return ST_OK;
}

static int live_changes(st_fold *f, st_change **out, size_t *n, st_error *err)
{
    st_change *c = h5_calloc(f->ndead + 1, sizeof *c);
    *out = c;
    *n = c ? f->ndead : 0;
    if (!c) {
        return st_nomem(err);
    }
    for (size_t i = 0; i < f->ndead; i++) {
        c[i].row = f->dead[i].row;
        c[i].bytes[0] = f->dead[i].live;
    }
    return ST_OK;
}

/* -------------------------------------------------------------------------------------- columns */

int st_fold_column(st_fold *f, int col, st_colwrite *a, int always, st_error *err)
{
    a->schema = f->gen->schema;
    a->reader = &f->reader;
    a->old = &f->gen->image->col[col];
    a->w = f->w;
    a->io = f->store->file->io;
    a->col = col;
    if (!a->nnew && !a->nchange && !always) {
        return ST_OK;
    }
    f->touched[col] = 1;
    h5_free(f->col[col].chunk);
    f->col[col].chunk = NULL;
    return st_col_write(a, &f->col[col], err);
}

static int fixed_columns(st_fold *f, piece_ctx *c, st_error *err)
{
    typedef int (*piece_fn)(void *, uint64_t, const uint8_t **, uint64_t *, st_error *);
    static one_fn *const one[ST_PHYS_TEXTS] = {[ST_PHYS_ID] = one_id,
                                               [ST_PHYS_NORM] = one_norm,
                                               [ST_PHYS_TIMESTAMP] = one_timestamp,
                                               [ST_PHYS_LIVE] = one_live};
    static const piece_fn fn[ST_PHYS_TEXTS] = {[ST_PHYS_EMBEDDING] = piece_vector,
                                               [ST_PHYS_COARSE] = piece_coarse,
                                               [ST_PHYS_FINE] = piece_fine};
    for (int col = 0; col < ST_PHYS_TEXTS; col++) {
        st_colwrite a = {.nnew = f->nrow, .npiece = f->nrow, .piece = fn[col], .ctx = c};
        st_change *change = NULL;
        int rc = ST_OK;
        if (one[col]) {
            a = gathered(c, one[col], col);
        }
        if (col == ST_PHYS_LIVE) {
            rc = live_changes(f, &change, &a.nchange, err);
            a.change = change;
        }
        memset(c->scratch, 0, f->gen->schema->phys[ST_PHYS_EMBEDDING].elem);
        rc = rc ? rc : st_fold_column(f, col, &a, 0, err);
        h5_free(change);
        ST_TRY(rc);
    }
    return ST_OK;
}

static int text_columns(st_fold *f, piece_ctx *c, st_error *err)
{
    for (int t = 0; t < f->gen->schema->ntext; t++) {
        st_colwrite data = {.npiece = f->nrow, .piece = piece_data, .ctx = c};
        st_colwrite offsets = gathered(c, one_offset, st_phys_offsets(t));
        c->text = t;
        c->offset = f->gen->image->col[st_phys_data(t)].n;
        for (size_t i = 0; i < f->nrow; i++) {
            ask_for_text(c, i);
            data.nnew += st_stored_bytes(&f->row[i].slot->text[t]);
        }
        ST_TRY(st_fold_column(f, st_phys_data(t), &data, 0, err));
        ST_TRY(st_fold_column(f, st_phys_offsets(t), &offsets, 0, err));
    }
    return ST_OK;
}

static int small_columns(st_fold *f, piece_ctx *c, st_error *err)
{
    for (int i = 0; i < f->gen->schema->nsmall; i++) {
        st_colwrite a = gathered(c, one_small, st_phys_small(f->gen->schema, i));
        st_change *change = NULL;
        int rc = small_changes(f, i, &change, &a.nchange, err);
        a.change = change;
        c->small = i;
        rc = rc ? rc : st_fold_column(f, st_phys_small(f->gen->schema, i), &a, 0, err);
        h5_free(change);
        ST_TRY(rc);
    }
    return ST_OK;
}

int st_fold_columns(st_fold *f, st_error *err)
{
    const st_schema *s = f->gen->schema;
    size_t half = vec_halves_stride((size_t)s->dim);
    size_t planes = vec_plane_stride((size_t)s->dim) + half;
    size_t vector = s->phys[ST_PHYS_EMBEDDING].elem;
    size_t scratch = ST_MAX(ST_MAX(vector, planes), (size_t)16);
    piece_ctx c = {.f = f,
                   .dim = (size_t)s->dim,
                   .storage = s->storage,
                   .scratch = h5_calloc(1, scratch + vector),
                   .fine = h5_alloc_array(f->nrow + 1, half)};
    c.encoded = c.scratch ? c.scratch + scratch : NULL;
    int rc = c.scratch && c.fine ? fixed_columns(f, &c, err) : st_nomem(err);
    h5_free(c.fine);
    rc = rc ? rc : text_columns(f, &c, err);
    rc = rc ? rc : small_columns(f, &c, err);
    h5_free(c.scratch);
    return rc;
}
