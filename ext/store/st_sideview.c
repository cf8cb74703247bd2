/*
 * st_sideview.c - the tables beside the rows as a view shows them.
 *
 * Records are numbered base first, then the log's, then the transaction's: in the order they were
 * written, but for those of the base that a later version has replaced.
 *
 * SPDX-License-Identifier: MIT
 */
#include "st_store.h"

struct st_sideview {
    uint64_t nbase, noverlay, nprivate, nrow;
    st_rec **rec;   /* noverlay + nprivate; the private ones are counted */
    uint64_t *live; /* bitmap of nrow */
    uint64_t nlive;
};

void st_sideview_free(st_sideview *s)
{
    for (uint64_t i = 0; s && i < s->nprivate; i++) {
        st_rec_unref(s->rec[s->noverlay + i]);
    }
    if (s) {
        h5_free(s->rec);
        h5_free(s->live);
        h5_free(s);
    }
}

static uint64_t row_of_ref(const st_sideview *s, uint64_t ref)
{
    return ref & ST_REF_OVERLAY ? s->nbase + ST_REF_INDEX(ref) : ref;
}

/* Records that the snapshot holds: they lie in order of sequence. */
static uint64_t recs_up_to(const st_side *s, uint64_t seq)
{
    size_t lo = 0, hi = s->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (s->rec[mid]->seq <= seq) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

static int mark_base(st_view *v, int side, st_sideview *s, st_error *err)
{
    const st_side *g = &v->f->gen->side[side];
    uint64_t row = 0, run = 0;
    for (; row < s->nbase; row += run) {
        const uint8_t *p;
        ST_TRY(st_read_at(&v->reader, st_phys_side(v->f->gen->schema, side), row, &p, &run, err));
        for (uint64_t i = 0; i < run; i++) {
            if (p[i] == ST_LIVE_SHOWS) {
                st_bit_set(s->live, row + i);
            }
        }
    }
    for (size_t i = 0; i < g->nkill; i++) {
        if (g->kill[i].seq <= v->f->seq) {
            st_bit_clear(s->live, g->kill[i].row);
        }
    }
    return ST_OK;
}

static void take_overlay(st_view *v, int side, st_sideview *s)
{
    const st_side *g = &v->f->gen->side[side];
    for (uint64_t i = 0; i < s->noverlay; i++) {
        s->rec[i] = g->rec[i];
        if (g->dead[i] > v->f->seq) {
            st_bit_set(s->live, s->nbase + i);
        }
    }
}

/* The transaction's records, each of which hides what its key had. */
static int take_private(st_view *v, int side, st_sideview *s, uint64_t n, st_error *err)
{
    const st_side *t = &v->conn->txn.side[side];
    for (uint64_t i = 0; i < n; i++) {
        st_key key = st_rec_key(t->rec[i]);
        uint64_t ref;
        int rc;
        s->rec[s->noverlay + i] = t->rec[i];
        st_rec_ref(t->rec[i]);
        s->nprivate++;
        if (st_side_version(t, side, &key, ST_SEQ_NEVER) != i + 1) {
            continue;
        }
        if (!t->rec[i]->ended) {
            st_bit_set(s->live, s->nbase + s->noverlay + i);
        }
        rc = st_gen_side_find(v->f->gen, &v->reader, side, &key, v->f->seq, &ref, err);
        if (rc < 0) {
            return rc;
        }
        if (rc) {
            st_bit_clear(s->live, row_of_ref(s, ref));
        }
    }
    return ST_OK;
}

/* With the store's lock held. */
static int make(st_view *v, int side, st_sideview *s, st_error *err)
{
    const st_gen *g = v->f->gen;
    uint64_t nprivate = v->conn->txn.active ? v->conn->txn.side[side].n : 0;
    s->nbase = g->image->side[side].n;
    s->noverlay = recs_up_to(&g->side[side], v->f->seq);
    s->nrow = s->nbase + s->noverlay + nprivate;
    s->rec = h5_alloc_array((size_t)(s->noverlay + nprivate) + 1, sizeof(st_rec *));
    s->live = h5_calloc(st_bit_words(s->nrow) + 1, sizeof *s->live);
    if (!s->rec || !s->live) {
        return st_nomem(err);
    }
    ST_TRY(mark_base(v, side, s, err));
    take_overlay(v, side, s);
    ST_TRY(take_private(v, side, s, nprivate, err));
    for (size_t i = 0; i < st_bit_words(s->nrow); i++) {
        s->nlive += (uint64_t)__builtin_popcountll(s->live[i]);
    }
    return ST_OK;
}

/* Made when the table is first asked for. */
static int side_of(st_view *v, int side, st_sideview **out, st_error *err)
{
    st_sideview *s = v->f->side[side];
    int rc;
    *out = s;
    if (s) {
        return ST_OK;
    }
    s = h5_calloc(1, sizeof *s);
    if (!s) {
        return st_nomem(err);
    }
    pthread_mutex_lock(&v->conn->store->lock);
    rc = make(v, side, s, err);
    pthread_mutex_unlock(&v->conn->store->lock);
    if (rc) {
        st_sideview_free(s);
        return rc;
    }
    *out = v->f->side[side] = s;
    return ST_OK;
}

int st_side_count(st_view *v, int side, uint64_t *n, st_error *err)
{
    st_sideview *s;
    ST_TRY(side_of(v, side, &s, err));
    *n = s->nlive;
    return ST_OK;
}

int st_side_next(st_view *v, int side, uint64_t from, uint64_t *row, st_error *err)
{
    st_sideview *s;
    ST_TRY(side_of(v, side, &s, err));
    *row = from < s->nrow ? st_bit_next(s->live, s->nrow, from) : s->nrow;
    return *row < s->nrow ? ST_OK : ST_NOTFOUND;
}

int st_side_value(st_view *v, int side, uint64_t row, int col, st_value *out, st_error *err)
{
    st_sideview *s;
    ST_TRY(side_of(v, side, &s, err));
    if (row < s->nbase) {
        return st_read_side_value(&v->reader, side, row, col, out, err);
    }
    st_rec_value(s->rec[row - s->nbase], col, out);
    return ST_OK;
}

/* The transaction's last word on a key, as this view has it: 1 + its number, or 0. */
static uint64_t private_version(const st_view *v, int side, const st_sideview *s, const st_key *key)
{
    const st_txn *t = &v->conn->txn;
    if (t->active && v->f->version == t->version) {
        return st_side_version(&t->side[side], side, key, ST_SEQ_NEVER);
    }
    for (uint64_t i = s->nprivate; i > 0; i--) {
        st_key k = st_rec_key(s->rec[s->noverlay + i - 1]);
        if (st_key_same(side, &k, key)) {
            return i;
        }
    }
    return 0;
}

int st_side_find(st_view *v, int side, const st_value *key, uint64_t *row, st_error *err)
{
    st_sideview *s;
    st_key k;
    uint64_t at, ref = 0;
    int rc;
    ST_TRY(side_of(v, side, &s, err));
    if (st_key_make(side, key, &k, NULL) != ST_OK) {
        return ST_NOTFOUND;
    }
    at = private_version(v, side, s, &k);
    if (at) {
        *row = s->nbase + s->noverlay + at - 1;
        return st_bit_get(s->live, *row) ? ST_OK : ST_NOTFOUND;
    }
    pthread_mutex_lock(&v->conn->store->lock);
    rc = st_gen_side_find(v->f->gen, &v->reader, side, &k, v->f->seq, &ref, err);
    pthread_mutex_unlock(&v->conn->store->lock);
    *row = row_of_ref(s, ref);
    return rc < 0 ? rc : rc && st_bit_get(s->live, *row) ? ST_OK : ST_NOTFOUND;
}

int st_side_after(st_view *v, int side, int64_t key, uint64_t *row, st_error *err)
{
    st_sideview *s;
    ST_TRY(side_of(v, side, &s, err));
    ST_TRY(st_image_side_after(&v->reader, side, key, row, err));
    if (*row == s->nbase) {
        pthread_mutex_lock(&v->conn->store->lock);
        *row += ST_MIN((uint64_t)st_side_above(&v->f->gen->side[side], key), s->noverlay);
        pthread_mutex_unlock(&v->conn->store->lock);
    }
    return ST_OK;
}
