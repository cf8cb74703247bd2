/*
 * st_near.c - the vector part of a query, best first: exactly over planes, or through lists where
 * these pay.
 *
 * The base is searched by its plane records, which lie in the mapping and are read in place; rows
 * of the log and of the own transaction by their vectors.
 *
 * SPDX-License-Identifier: MIT
 */
#include "st_lists.h"
#include "st_search.h"

#include <math.h>

#define UNPACKED_MAX ((uint64_t)1 << 30) /* bytes of planes that are held unpacked */

/* -------------------------------------------------------------------------------------- vectors */

static const float *fetch(void *ctx, uint64_t row, float *norm)
{
    st_cursor *c = ctx;
    const float *v = NULL;
    if (st_read_vector(&c->v->reader, row, &v, norm, &c->failed)) {
        return NULL;
    }
    if (!v) {
        st_fail(&c->failed, ST_CORRUPT, "row position %llu has a plane record and no vector",
                (unsigned long long)row);
    }
    return v;
}

static void soon(void *ctx, uint64_t row)
{
    const st_cursor *c = ctx;
    st_reader_soon(&c->v->reader, row);
}

int64_t st_search_id(void *ctx, uint64_t row)
{
    return st_frozen_id(((st_cursor *)ctx)->v, row);
}

int st_search_stop(void *ctx)
{
    const st_host *h = ((st_cursor *)ctx)->v->conn->host;
    return h && h->stop && h->stop(h->ctx);
}

/* Slots, each by itself. */
int st_search_slots(st_cursor *c, st_error *err)
{
    const st_frozen *f = c->v->f;
    size_t n = (size_t)(f->nrow - f->nbase);
    c->exact = h5_alloc_array(n + 1, sizeof *c->exact);
    if (!c->exact) {
        return st_nomem(err);
    }
    for (size_t i = 0; i < n; i++) {
        const st_slot *t = f->slot[i];
        c->exact[i] = (vec_extent){t->embedding, &t->norm, f->nbase + i, 1};
    }
    c->nexact = n;
    return ST_OK;
}

/* We store planes raw, so that they are searched in place. Another program may have packed them
 * (h5repack): a decoded chunk lives only until others push it out of the cache. */
static int planes_packed(const st_cursor *c)
{
    const st_colimg *col = c->v->f->gen->image->col;
    return col[ST_PHYS_COARSE].pipeline.n || col[ST_PHYS_FINE].pipeline.n;
}

/* Then the cursor has copies of its own. */
static int unpack_planes(st_cursor *c, st_error *err)
{
    const st_frozen *f = c->v->f;
    size_t stride = f->gen->schema->phys[ST_PHYS_COARSE].elem;
    if (f->nbase > UNPACKED_MAX / 2 / stride) {
        return st_fail(err, ST_UNSUPPORTED,
                       "%s was compressed by another program, and is too large to be unpacked",
                       f->gen->schema->phys[ST_PHYS_COARSE].path);
    }
    c->unpacked = h5_malloc((size_t)f->nbase * 2 * stride + 1);
    c->plane = h5_alloc_array(1, sizeof *c->plane);
    if (!c->unpacked || !c->plane) {
        return st_nomem(err);
    }
    for (int k = 0; k < 2; k++) {
        uint8_t *to = c->unpacked + (size_t)k * (size_t)f->nbase * stride;
        for (uint64_t row = 0, run = 0; row < f->nbase; row += run) {
            const uint8_t *p;
            ST_TRY(
                st_read_at(&c->v->reader, k ? ST_PHYS_FINE : ST_PHYS_COARSE, row, &p, &run, err));
            run = ST_MIN(run, f->nbase - row);
            memcpy(to + (size_t)row * stride, p, (size_t)run * stride);
        }
    }
    c->plane[c->nplane++] = (vec_plane_extent){c->unpacked, c->unpacked + (size_t)f->nbase * stride,
                                               0, f->nbase};
    return ST_OK;
}

int st_search_planes(st_cursor *c, st_error *err)
{
    const st_frozen *f = c->v->f;
    if (planes_packed(c)) {
        return c->nplane ? ST_OK : unpack_planes(c, err);
    }
    const st_colimg *col = &f->gen->image->col[ST_PHYS_COARSE];
    size_t room = (size_t)col->nchunk + (size_t)f->gen->image->col[ST_PHYS_FINE].nchunk + 1;
    c->plane = h5_alloc_array(room, sizeof *c->plane);
    if (!c->plane) {
        return st_nomem(err);
    }
    for (uint64_t row = 0, run = 0; row < f->nbase; row += run) {
        const uint8_t *coarse, *fine;
        uint64_t more;
        ST_TRY(st_read_at(&c->v->reader, ST_PHYS_COARSE, row, &coarse, &run, err));
        ST_TRY(st_read_at(&c->v->reader, ST_PHYS_FINE, row, &fine, &more, err));
        run = ST_MIN(run, more);
        if (c->nplane == room) {
            return st_fail(err, ST_CORRUPT, "%s and %s are cut at different rows",
                           f->gen->schema->phys[ST_PHYS_COARSE].path,
                           f->gen->schema->phys[ST_PHYS_FINE].path);
        }
        c->plane[c->nplane++] = (vec_plane_extent){coarse, fine, row, run};
    }
    return ST_OK;
}

static int new_near(st_cursor *c, const uint64_t *bits, uint64_t hint, vec_near **out,
                    st_error *err)
{
    vec_near_args a = {0};
    ST_TRY(st_search_planes(c, err));
    a.metric = c->metric;
    a.query = c->query;
    a.dim = (size_t)c->v->f->gen->schema->dim;
    a.planes = c->plane;
    a.nplane = c->nplane;
    a.exact = c->exact;
    a.nexact = c->nexact;
    a.filter = bits;
    a.fetch = fetch;
    a.soon = soon;
    a.id = st_search_id;
    a.stop = st_search_stop;
    a.ctx = c;
    a.hint = hint;
    a.threads = c->threads;
    return st_from_vec(err, vec_near_new(&a, out), "the vector search");
}

static uint64_t rows_wanted(const st_query *q)
{
    return q->k >= 0 && (!q->hint || (uint64_t)q->k < q->hint) ? (uint64_t)q->k : q->hint;
}

/* ---------------------------------------------------------------------------------------- lists */

static int halves(void *ctx, uint64_t row, const uint8_t **coarse, const uint8_t **fine)
{
    st_cursor *c = ctx;
    uint64_t run;
    if (row >= c->v->f->nbase) {
        st_fail(&c->failed, ST_CORRUPT, "the vector index names row position %llu of %llu",
                (unsigned long long)row, (unsigned long long)c->v->f->nbase);
    } else if (!st_read_at(&c->v->reader, ST_PHYS_COARSE, row, coarse, &run, &c->failed)) {
        st_read_at(&c->v->reader, ST_PHYS_FINE, row, fine, &run, &c->failed);
    }
    return c->failed.code;
}

static int rest(void *ctx, const uint64_t *bits, vec_near **out)
{
    return new_near(ctx, bits, 0, out, &((st_cursor *)ctx)->failed) ? VEC_ABORT : VEC_OK;
}

/* Rows below a distance are a range: all of them are wanted. */
static int is_range(const st_query *q)
{
    for (size_t i = 0; i < q->nterm; i++) {
        int op = q->terms[i].op;
        if (q->terms[i].col == ST_COL_DISTANCE && (op == ST_LT || op == ST_LE)) {
            return 1;
        }
    }
    return 0;
}

/* What the lists cost beside the exact search over the rows of the filter, in rows of the exact
 * search: a place in a list takes half of its time, a centroid three fifths, a row in a tail five
 * times as much, and each query some fifteen hundred. As measured (vec/README.md). */
static int lists_pay(const st_lists *l, uint64_t want, uint64_t kept, double share, double recall)
{
    uint64_t places;
    size_t probes = vec_probe_cost(l->ivf, want, share, recall, &places);
    if (probes >= l->info.lists / 3) {
        return 0; // vec_probe would leave it to the exact search after having looked at a third
    }
    return 0.5 * (double)places + 0.6 * (double)l->info.lists + 5 * (double)l->tail_rows + 1500 <
           (double)kept;
}

/* Through the lists, if there are some and they pay; else *done is 0. */
static int start_probe(st_cursor *c, const st_query *q, int *done, st_error *err)
{
    const st_frozen *f = c->v->f;
    const st_options *o = &f->gen->options;
    double recall = q->exact ? 1 : q->recall;
    const st_lists *l;
    uint64_t kept;
    vec_probe_args a = {0};
    *done = 0;
    if (!(recall < 1) || o->index == ST_INDEX_FLAT || is_range(q) || c->picks || !f->nbase) {
        return ST_OK;
    }
    ST_TRY(st_image_lists(f->gen->image, &l, err));
    kept = vec_bits_count(c->bits, f->nrow);
    if (l->state != ST_LISTS_GOOD || !kept || f->nrow > UINT32_MAX || planes_packed(c)) {
        return ST_OK;
    }
    a.share = ST_MIN((double)kept / (double)ST_MAX(f->nlive, (uint64_t)1), 1.0);
    a.want = rows_wanted(q);
    if (!q->nprobe && !lists_pay(l, a.want, kept, a.share, recall)) {
        return ST_OK;
    }
    a.index = l->ivf;
    a.tails = l->open;
    a.ntail = l->ntail;
    a.exact = c->exact;
    a.nexact = c->nexact;
    a.query = c->query;
    a.nrow = f->nrow;
    a.filter = c->bits;
    a.recall = recall;
    a.probes = (uint64_t)q->nprobe;
    a.fetch = fetch;
    a.halves = halves;
    a.id = st_search_id;
    a.stop = st_search_stop;
    a.rest = rest;
    a.ctx = c;
    c->mode = ST_MODE_PROBE;
    *done = 1;
    return st_from_vec(err, vec_probe_new(&a, &c->probe), "the vector search");
}

static int failed_or(st_cursor *c, int rc, st_error *err)
{
    return rc && c->failed.code ? st_fail(err, c->failed.code, "%s", c->failed.text) : rc;
}

int st_search_near(st_cursor *c, const st_query *q, st_error *err)
{
    int done;
    ST_TRY(st_search_slots(c, err));
    ST_TRY(failed_or(c, start_probe(c, q, &done, err), err));
    if (done) {
        return ST_OK;
    }
    c->mode = ST_MODE_NEAR;
    return failed_or(c, new_near(c, c->bits, rows_wanted(q), &c->near, err), err);
}
