/*
 * st_words.c - the text part of a search: the view's runs and the rows outside the file as the
 * sources of one query.
 *
 * The overlay's index grows when another connection of this process replays the log, so the store's
 * lock is held from opening to closing where the view has overlay rows.
 *
 * SPDX-License-Identifier: MIT
 */
#include "st_search.h"

/* The tokens of n slots as an index of their own, for a view that is older than the index that
** grows with them. */
static int index_slots(st_slot *const *slot, uint64_t n, vec_text **out, st_error *err)
{
    int rc = vec_text_new(out);
    for (uint64_t i = 0; i < n && !rc; i++) {
        if (slot[i]->ntokens) {
            rc = vec_text_add(*out, i, slot[i]->tokens, slot[i]->ntokens);
        }
    }
    return st_from_vec(err, rc, "the text search");
}

/* Are all bits from first to last set? */
static int all_live(const uint64_t *live, uint64_t first, uint64_t last)
{
    uint64_t from = first >> 6, to = last >> 6;
    uint64_t head = UINT64_MAX << (first & 63), tail = UINT64_MAX >> (63 - (last & 63));
    if (from == to) {
        return (live[from] & head & tail) == (head & tail);
    }
    uint64_t all = (live[from] | ~head) & (live[to] | ~tail);
    for (uint64_t i = from + 1; i < to; i++) {
        all &= live[i];
    }
    return all == UINT64_MAX;
}

static size_t run_sources(const st_frozen *f, vec_source *src, const st_textrun *runs, size_t nrun)
{
    for (size_t i = 0; i < nrun; i++) {
        src[i] = (vec_source){.run = runs[i].run,
                              .dense = all_live(f->live, runs[i].first, runs[i].last)};
    }
    return nrun;
}

/* With the store's lock held where f has overlay rows. */
static int slot_sources(const st_cursor *c, st_words *w, size_t *n, st_error *err)
{
    const st_frozen *f = c->v->f;
    st_txn *t = &c->v->conn->txn;
    int rc = ST_OK;
    if (f->nprivate) {
        if (t->nslot != f->nprivate || f->version != t->version) {
            rc = index_slots(f->slot, f->nprivate, &w->mine, err);
        } else {
            rc = st_txn_index(t, err);
        }
        w->src[(*n)++] = (vec_source){.text = w->mine ? w->mine : t->text, .offset = f->nbase};
    }
    if (f->noverlay && !rc) {
        if (f->gen->nslot != f->noverlay) {
            rc = index_slots(f->slot + f->nprivate, f->noverlay, &w->overlay, err);
        } else {
            rc = st_gen_index(f->gen, err);
        }
        w->src[(*n)++] = (vec_source){.text = w->overlay ? w->overlay : f->gen->text,
                                      .offset = f->nbase + f->nprivate};
    }
    return rc;
}

/* For whoever weighs single rows later on. */
static int keep_formula(st_cursor *c, const vec_words *w, st_error *err)
{
    const double *weights;
    size_t n = vec_words_formula(w, &weights, &c->k1, &c->k_base, &c->k_len);
    if (!c->weights) {
        c->weights = h5_alloc_array(n + 1, sizeof *weights);
        if (!c->weights) {
            return st_nomem(err);
        }
        memcpy(c->weights, weights, n * sizeof *weights);
        c->nweight = n;
    }
    return ST_OK;
}

int st_words_open(st_cursor *c, st_words *w, st_error *err)
{
    const st_frozen *f = c->v->f;
    const st_textrun *runs;
    size_t n;
    memset(w, 0, sizeof *w);
    ST_TRY(st_image_runs(f->gen->image, &runs, &n, err));
    w->src = h5_calloc(n + 2, sizeof *w->src);
    if (!w->src) {
        return st_nomem(err);
    }
    run_sources(f, w->src, runs, n);
    if (f->noverlay) {
        w->held = &c->v->conn->store->lock;
        pthread_mutex_lock(w->held);
    }
    int rc = slot_sources(c, w, &n, err);
    vec_bm25_args a = {.sources = w->src,
                       .nsource = n,
                       .query = c->tokens,
                       .nquery = c->ntokens,
                       .ask = c->ask,
                       .live = f->live,
                       .filter = c->bits,
                       .nrow = f->nrow,
                       .k1 = VEC_BM25_K1,
                       .b = VEC_BM25_B,
                       .stop = st_search_stop,
                       .stop_ctx = c};
    rc = rc ? rc : st_from_vec(err, vec_words_new(&a, &w->words), "the text search");
    rc = rc ? rc : keep_formula(c, w->words, err);
    if (rc) {
        st_words_close(w);
    }
    return rc;
}

void st_words_close(st_words *w)
{
    vec_words_free(w->words);
    vec_text_free(w->mine);
    vec_text_free(w->overlay);
    if (w->held) {
        pthread_mutex_unlock(w->held);
    }
    h5_free(w->src);
    memset(w, 0, sizeof *w);
}

int st_words_hits(st_cursor *c, st_words *w, int by_row, vec_hit **out, size_t *n, st_error *err)
{
    int rc = st_from_vec(err, vec_words_all(w->words, out, n), "the text search");
    for (size_t i = 0; !rc && i < *n; i++) {
        uint64_t row = (*out)[i].row;
        (*out)[i].id = by_row ? (int64_t)row : st_frozen_id(c->v, row);
    }
    return rc;
}

/* What a row has of a time that is all that was asked for: as much as of all words. */
static double within_weight(const st_cursor *c)
{
    double sum = 0;
    for (size_t i = 0; i < c->nweight; i++) {
        sum += c->weights[i];
    }
    return sum > 0 ? sum : 1;
}

/* Adds that to the hits, and the rows of bits that have only that. */
static int add_within(st_cursor *c, const uint64_t *bits, int by_row, vec_hit **hits, size_t *n,
                      st_error *err)
{
    uint64_t nrow = c->v->f->nrow, *seen = h5_calloc(st_bit_words(nrow) + 1, sizeof *seen);
    vec_hit *all = vec_hits_alloc((size_t)nrow);
    double weight = within_weight(c), at = 0;
    size_t k = 0;
    int rc = seen && all ? ST_OK : st_nomem(err);
    for (size_t i = 0; i < *n && !rc; i++) {
        all[k] = (*hits)[i];
        st_bit_set(seen, all[k].row);
        rc = st_row_time(c->v, all[k].row, &at, err);
        all[k++].key -= !rc && c->within(c->within_ctx, at) ? weight : 0;
    }
    for (uint64_t r = st_bit_next(bits, nrow, 0); r < nrow && !rc;
         r = st_bit_next(bits, nrow, r + 1)) {
        rc = st_bit_get(seen, r) ? ST_OK : st_row_time(c->v, r, &at, err);
        if (!rc && !st_bit_get(seen, r) && c->within(c->within_ctx, at)) {
            all[k++] = (vec_hit){-weight, by_row ? (int64_t)r : st_frozen_id(c->v, r), r};
        }
    }
    h5_free(seen);
    if (rc) {
        vec_free(all);
        return rc;
    }
    vec_free(*hits);
    *hits = all;
    *n = k;
    return ST_OK;
}

static int64_t id_of(void *ctx, uint64_t row)
{
    return st_frozen_id(((st_cursor *)ctx)->v, row);
}

int st_words_page(st_cursor *c, uint64_t k, int by_row, vec_hit **out, size_t *n, st_error *err)
{
    st_words w;
    *out = NULL;
    *n = 0;
    ST_TRY(st_words_open(c, &w, err));
    int page = c->order == ST_ORDER_BEST && k <= ST_WORDS_PAGES && !c->within, rc;
    if (page) {
        rc = vec_words_top(w.words, (size_t)k, by_row ? NULL : id_of, c, out, n);
        rc = st_from_vec(err, rc, "the text search");
    } else {
        rc = st_words_hits(c, &w, by_row, out, n, err);
    }
    st_words_close(&w);
    if (!rc && c->within) {
        rc = add_within(c, c->bits, by_row, out, n, err);
    }
    c->first = !rc && page && *n == k ? *n : 0;
    return rc;
}

int st_words_all(st_cursor *c, const st_query *q, int by_row, vec_hit **out, size_t *n,
                 st_error *err)
{
    uint64_t *mine = c->bits;
    st_words w;
    // Neighbours outside the filter have words, too.
    c->bits = c->blend.valid ? c->blend.valid : mine;
    int rc = st_words_open(c, &w, err);
    c->bits = mine;
    ST_TRY(rc);
    const uint64_t *allow = q->ask_filters ? vec_words_allow(w.words) : NULL;
    rc = st_words_hits(c, &w, by_row, out, n, err);
    for (size_t i = 0; allow && i < st_bit_words(c->v->f->nrow); i++) {
        c->bits[i] &= allow[i];
    }
    st_words_close(&w);
    c->blend.ideal = 0;
    for (size_t i = 0; i < c->nweight; i++) {
        c->blend.ideal += c->weights[i];
    }
    if (!rc && c->within) {
        c->blend.ideal += within_weight(c);
        rc = add_within(c, c->blend.valid ? c->blend.valid : mine, by_row, out, n, err);
    }
    c->blend.ideal = c->blend.ideal > 0 ? c->blend.ideal * ST_BLEND_ENOUGH : 1;
    return rc;
}
