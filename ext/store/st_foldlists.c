/*
 * st_foldlists.c - a flush's share of the index of lists: new rows to their lists, or all of them
 * to new ones.
 *
 * A flush notes its rows in a tail, eight bytes each; tails are merged like id runs. Training is
 * for a flush that may append as much: a small one may append ST_FLUSH_BYTES in all, one that
 * brings many rows half as much again as it has already written. Where training has to wait, the
 * lists there are go on to serve, and without any the search is exact.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>

#include "st_flush.h"
#include "st_lists.h"

#define ST_FLUSH_BYTES ((uint64_t)4 << 20)

typedef struct source {
    st_fold *f;
    st_error *err;
} source;

static const float *fetch(void *ctx, uint64_t row, float *norm)
{
    static const float none[1];
    source *s = ctx;
    uint64_t nbase = s->f->gen->image->nrow;
    const float *v = NULL;
    if (row >= nbase) {
        const st_slot *t = s->f->row[row - nbase].slot;
        *norm = t->norm;
        v = t->embedding;
    } else if (st_read_vector(&s->f->reader, row, &v, norm, s->err)) {
        return NULL;
    }
    return v ? v : none; // a row without vector has a norm of NaN
}

/* ------------------------------------------------------------------------------------- training */

static int train(st_fold *f, int kind, const uint64_t *live, st_error *err)
{
    st_error e = {0, ""};
    source s = {f, &e};
    uint8_t *bytes = NULL;
    size_t n = 0;
    vec_ivf_args a = {.kind = kind,
                      .metric = f->gen->schema->metric,
                      .dim = (size_t)f->gen->schema->dim,
                      .nrow = f->gen->image->nrow + f->nrow,
                      .live = live,
                      .fetch = fetch,
                      .ctx = &s,
                      .threads = __atomic_load_n(&f->store->threads, __ATOMIC_RELAXED)};
    int rc = vec_ivf_build(&a, &bytes, &n);
    if (rc) {
        return e.code ? st_fail(err, e.code, "%s", e.text)
                      : st_from_vec(err, rc, "training the vector index");
    }
    rc = n ? st_root_blob(f->w, bytes, n, 1, &f->lists, err) : ST_OK;
    vec_free(bytes);
    return rc;
}

/* May this flush append so many bytes more? */
static int fits(const st_fold *f, uint64_t bytes)
{
    uint64_t so_far = h5_writer_eof(f->w) - f->gen->image->eof;
    return f->optimize || so_far + bytes <= ST_FLUSH_BYTES || bytes <= so_far / 2;
}

/* ---------------------------------------------------------------------------------------- tails */

static int write_tail(st_fold *f, vec_pair *pairs, size_t n, uint64_t first, st_error *err)
{
    uint8_t *bytes = NULL;
    size_t size = 0;
    int rc = st_from_vec(err, vec_tail_image(pairs, n, &bytes, &size), "the vector index");
    f->tail[f->ntail].first = first;
    rc = rc ? rc : st_root_blob(f->w, bytes, size, 1, &f->tail[f->ntail].header, err);
    f->ntail += rc == ST_OK;
    vec_free(bytes);
    return rc;
}

/* The new rows' pairs behind those of the tails that are merged with them. */
static int new_pairs(st_fold *f, const st_lists *l, vec_pair *pairs, size_t *n, st_error *err)
{
    uint64_t nbase = f->gen->image->nrow;
    for (size_t i = 0; i < f->nrow; i++) {
        const st_slot *t = f->row[i].slot;
        if (!t->embedding || isnan(t->norm) || f->row[i].evicted) {
            continue;
        }
        pairs[*n].row = (uint32_t)(nbase + i);
        ST_TRY(st_from_vec(err, vec_ivf_assign(l->ivf, t->embedding, t->norm, &pairs[*n].list),
                           "the vector index"));
        ++*n;
    }
    return ST_OK;
}

/* How many of the last tails the new one takes in. */
static int count_merged(const st_fold *f, const st_lists *l, size_t *k, st_error *err)
{
    uint64_t *size = h5_alloc_array(l->ntail + 1, sizeof *size);
    if (!size) {
        return st_nomem(err);
    }
    for (size_t i = 0; i < l->ntail; i++) {
        size[i] = vec_tail_count(l->open[i]);
    }
    size[l->ntail] = f->nrow;
    *k = st_merge_count(size, l->ntail + 1, 8);
    *k -= *k > 0;
    h5_free(size);
    return ST_OK;
}

static int carry_on(st_fold *f, const st_lists *l, st_error *err)
{
    size_t merged = 0, n = 0;
    uint64_t room = f->nrow, first = f->gen->image->nrow;
    vec_pair *pairs;
    int rc = ST_OK;
    f->lists = l->header;
    f->tail = h5_alloc_array(l->ntail + 1, sizeof *f->tail);
    if (!f->tail) {
        return st_nomem(err);
    }
    if (f->nrow) {
        ST_TRY(count_merged(f, l, &merged, err));
    }
    for (size_t i = 0; i < l->ntail - merged; i++) {
        f->tail[f->ntail++] = (st_root_run){l->tail[i].first, l->tail[i].header};
    }
    if (!f->nrow) {
        return ST_OK;
    }
    for (size_t i = l->ntail - merged; i < l->ntail; i++) {
        room += vec_tail_count(l->open[i]);
    }
    pairs = h5_alloc_array((size_t)room + 1, sizeof *pairs);
    if (!pairs) {
        return st_nomem(err);
    }
    for (size_t i = l->ntail - merged; i < l->ntail; i++) {
        for (uint64_t j = 0; j < vec_tail_count(l->open[i]); j++) {
            pairs[n++] = vec_tail_pair(l->open[i], j);
        }
        first = ST_MIN(first, l->tail[i].first);
    }
    rc = new_pairs(f, l, pairs, &n, err);
    rc = rc || !n ? rc : write_tail(f, pairs, n, first, err);
    h5_free(pairs);
    return rc;
}

/* ------------------------------------------------------------------------------------- together */

static int count_vectors(st_fold *f, const uint64_t *live, uint64_t *n, st_error *err)
{
    ST_TRY(st_lists_vectors(&f->reader, live, n, err));
    for (size_t i = 0; i < f->nrow; i++) {
        *n += !isnan(f->row[i].slot->norm) && !f->row[i].evicted;
    }
    return ST_OK;
}

int st_fold_lists(st_fold *f, st_error *err)
{
    const st_lists *l;
    uint64_t *live = NULL, vectors = 0;
    int kind, rc;
    if (f->gen->options.index == ST_INDEX_FLAT) {
        return ST_OK;
    }
    ST_TRY(st_image_lists(f->gen->image, &l, err));
    if (l->state == ST_LISTS_NONE &&
        !st_lists_kind(f->gen->options.index, f->gen->image->nrow + f->nrow)) {
        return ST_OK;
    }
    ST_TRY(st_fold_live(f, &live, err));
    rc = count_vectors(f, live, &vectors, err);
    kind = st_lists_kind(f->gen->options.index, vectors);
    if (!rc && kind && (f->optimize || st_lists_stale(l, l->tail_rows + f->nrow, kind)) &&
        fits(f, st_lists_bytes(kind, (size_t)f->gen->schema->dim, vectors))) {
        rc = train(f, kind, live, err);
    } else if (!rc && l->state == ST_LISTS_GOOD) {
        rc = carry_on(f, l, err);
    }
    h5_free(live);
    return rc;
}
