/*
 * st_stats.c - numbers about a store, counted from what is there.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <stdio.h>

#include "st_lists.h"
#include "st_store.h"

/* Bytes of a fixed array index over n chunks: header 28, block 18, 8 or some 15 an entry. */
static uint64_t index_bytes(const st_colimg *c)
{
    return c->nchunk ? 46 + c->nchunk * (c->pipeline.n ? 15 : 8) : 0;
}

static uint64_t chunk_bytes(const st_colimg *c)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < c->nchunk; i++) {
        n += c->chunk[i].addr == H5_UNDEF ? 0 : c->chunk[i].size;
    }
    return n;
}

static int count_lists(st_image *im, st_stats *out, st_error *err)
{
    const st_lists *l;
    ST_TRY(st_image_lists(im, &l, err));
    out->index = l->state == ST_LISTS_GOOD   ? st_index_name(l->info.kind - VEC_IVF + ST_INDEX_IVF)
                 : l->state == ST_LISTS_NONE ? "flat"
                                             : "damaged";
    memcpy(out->index_fault, l->why, sizeof out->index_fault);
    out->index_bytes = l->size;
    for (size_t i = 0; i < l->ntail; i++) {
        out->index_bytes += l->tail[i].size;
    }
    if (l->state == ST_LISTS_GOOD) {
        out->lists = l->info.lists;
        out->probes = l->info.probes;
        out->listed = l->info.vectors;
        out->tailed = l->tail_rows;
        out->index_stale = st_lists_stale(
            l, l->tail_rows, st_lists_kind(im->options.index, l->info.vectors + l->tail_rows));
        out->index_queries = l->info.queries;
        out->index_recall = l->info.recall;
        out->index_looked = l->info.looked;
    }
    return ST_OK;
}

enum {
    HEADER_BYTES = 160,
    ROOT_BYTES = 4096
}; /* of a dataset; of groups and /meta together; as measured on our files */

/* The same of records that ended. */
static int take_off_records(st_image *im, const uint64_t *bytes, st_stats *out, st_error *err)
{
    st_reader r;
    int rc = st_reader_open(&r, im, err);
    for (int side = 0; side < ST_SIDES && !rc; side++) {
        uint64_t n = im->side[side].n, dead = 0, run;
        for (uint64_t row = 0; row < n && !rc; row += run) {
            const uint8_t *p = NULL;
            rc = st_read_at(&r, st_phys_side(im->schema, side), row, &p, &run, err);
            for (uint64_t i = 0; i < run && !rc; i++) {
                dead += p[i] != ST_LIVE_SHOWS;
            }
        }
        out->live_bytes -= n ? (uint64_t)((double)bytes[side] * (double)dead / (double)n) : 0;
    }
    st_reader_close(&r);
    return rc;
}

static int count_bytes(st_image *im, st_stats *out, st_error *err)
{
    uint64_t side[ST_SIDES] = {0};
    const st_textrun *runs;
    const uint64_t *live;
    uint64_t nlive;
    size_t nrun;
    ST_TRY(st_image_runs(im, &runs, &nrun, err));
    out->text_runs = nrun;
    for (size_t i = 0; i < nrun; i++) {
        out->text_index_bytes += runs[i].size;
    }
    for (int s = 0; s < ST_SORTS; s++) {
        const st_sortruns *r = &im->sorted[s];
        for (size_t i = 0; i < r->n; i++) {
            *(s == ST_SORT_ID ? &out->id_index_bytes
                              : &out->time_index_bytes) += r->run[i].sorted ? r->run[i].count * 4
                                                                            : 0;
        }
    }
    for (int p = 0; p < im->schema->nphys; p++) {
        if (im->col[p].header == H5_UNDEF) {
            continue; // of a table that is not there
        }
        uint64_t n = chunk_bytes(&im->col[p]);
        out->column_bytes += im->schema->phys[p].side < 0 ? n : 0;
        out->side_bytes += im->schema->phys[p].side < 0 ? 0 : n;
        if (im->schema->phys[p].side >= 0) {
            side[im->schema->phys[p].side] += n;
        }
        if (p == ST_PHYS_EMBEDDING || p == ST_PHYS_NORM || st_phys_is_plane(p)) {
            out->vector_bytes += n;
        }
        out->live_bytes += n + index_bytes(&im->col[p]) + HEADER_BYTES;
    }
    ST_TRY(count_lists(im, out, err));
    out->live_bytes += out->text_index_bytes + out->id_index_bytes + out->time_index_bytes +
                       out->index_bytes + ROOT_BYTES;
    // Rows that no longer show still lie in chunks that do: their share is dead, too.
    ST_TRY(st_image_live(im, &live, &nlive, err));
    if (im->nrow) {
        out->live_bytes -= (uint64_t)((double)out->column_bytes * (double)(im->nrow - nlive) /
                                      (double)im->nrow);
    }
    return take_off_records(im, side, out, err);
}

int st_dead_share(st_store *s, double *share, st_error *err)
{
    st_gen *g;
    st_stats n = {0};
    h5_error e = {0};
    int rc;
    *share = 0;
    ST_TRY(st_snapshot_latest(s, &g, err));
    rc = count_bytes(g->image, &n, err);
    if (!rc && s->file->io->size(s->file->io, &n.file_bytes, &e) != H5_OK) {
        rc = st_from_h5(err, &e, "the file");
    }
    if (!rc && n.live_bytes < n.file_bytes) {
        *share = 1 - (double)n.live_bytes / (double)n.file_bytes;
    }
    st_gen_unref(g);
    return rc;
}

static int count_rows(st_view *v, st_stats *out, st_error *err)
{
    const st_frozen *f = v->f;
    const uint64_t *evicted;
    for (uint64_t row = st_bit_next(f->live, f->nrow, 0); row < f->nrow;
         row = st_bit_next(f->live, f->nrow, row + 1)) {
        const st_num *small = st_frozen_small(f, row);
        st_num tier;
        float norm;
        if (small) {
            tier = small[ST_SMALL_TIER];
        } else {
            ST_TRY(st_read_small(&v->reader, ST_SMALL_TIER, row, &tier, err));
        }
        out->tier[tier.i >= 0 && tier.i < 3 ? tier.i : 0]++;
        if (row >= f->nbase) {
            norm = f->slot[row - f->nbase]->norm;
        } else {
            const uint8_t *p;
            uint64_t run;
            ST_TRY(st_read_at(&v->reader, ST_PHYS_NORM, row, &p, &run, err));
            memcpy(&norm, p, sizeof norm);
        }
        out->vectors += !isnan(norm);
    }
    ST_TRY(st_frozen_evicted(v, &evicted, err));
    for (size_t i = 0; i < st_bit_words(f->nrow); i++) {
        out->evicted += (uint64_t)__builtin_popcountll(evicted[i]);
    }
    out->rows = f->nlive;
    out->base_rows = f->nbase;
    out->log_rows = f->noverlay + f->nprivate;
    out->dead_rows = f->nbase;
    for (size_t i = 0; i < st_bit_words(f->nbase); i++) {
        uint64_t w = f->live[i];
        if (i == f->nbase / 64) {
            w &= ((uint64_t)1 << (f->nbase & 63)) - 1;
        }
        out->dead_rows -= (uint64_t)__builtin_popcountll(w);
    }
    return ST_OK;
}

static int count_files(st_conn *c, st_stats *out, st_error *err)
{
    st_store *s = c->store;
    st_log_header h;
    h5_error e = {0};
    if (s->file->io->size(s->file->io, &out->file_bytes, &e) != H5_OK) {
        return st_from_h5(err, &e, "the file");
    }
    out->generation = c->gen->generation;
    out->sequence = c->seq;
    if (s->page) {
        ST_TRY(st_header(s, &h, err));
        out->log_bytes = ST_MAX(h.committed_len, h.prepared_len);
        memcpy(out->log_owner, h.owner, sizeof out->log_owner);
        out->log_owner_seq = h.owner_seq;
        out->in_doubt = h.prepared_len > h.committed_len;
    }
    pthread_mutex_lock(&s->lock);
    out->flushes = s->flushes;
    out->touch_bytes = __atomic_load_n(&s->set_bytes, __ATOMIC_RELAXED);
    out->last_flush_bytes = s->last_flush_bytes;
    out->syncs = __atomic_load_n(&s->syncs, __ATOMIC_RELAXED);
    memcpy(out->flush_error, s->flush_error, sizeof out->flush_error);
    pthread_mutex_unlock(&s->lock);
    return ST_OK;
}

int st_conn_stats(st_conn *c, st_stats *out, st_error *err)
{
    st_view *v;
    int rc;
    memset(out, 0, sizeof *out);
    ST_TRY(st_view_open(c, &v, err));
    rc = count_rows(v, out, err);
    for (int side = 0; side < ST_SIDES && !rc; side++) {
        rc = st_side_count(v, side, &out->side[side], err);
    }
    rc = rc ? rc : count_bytes(c->gen->image, out, err);
    rc = rc ? rc : count_files(c, out, err);
    st_view_close(v);
    return rc;
}
