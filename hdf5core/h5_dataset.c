/*
 * h5_dataset.c - hyperslabs of a dataset into memory
 *
 * Compact, contiguous and chunked data are three sources of the same runs. Chunks are visited in
 * the order of the grid, only those that the hyperslab meets; the cost follows what is asked for,
 * not the size of the dataset.
 *
 * ERRORS   H5_MISUSE a hyperslab outside the dataset or a buffer of another size; else those of
 *          h5_chunk.c and h5_cidx.c
 * TESTS    t_h5_dataset.c
 *
 * SPDX-License-Identifier: MIT
 */
#include <inttypes.h>

#include "h5_chunk.h"
#include "h5_conv.h"
#include "h5_filter.h"
#include "h5_virtual.h"

/* Chunks of up to half of this are read several at once: a call costs as much as copying some KiB,
** and half of a cache of the second level stays free for what is copied. */
enum { BATCH_BYTES = 65536 };

static const uint64_t zeros[H5_RANK_MAX];

/* Checks the request; *empty when it asks for no element. */
static int check_request(const h5_object *o, const uint64_t *start, const uint64_t *count,
                         size_t bytes, int *empty, h5_error *err)
{
    const h5_dataset_info *d = o->info;
    *empty = 0;
    if (o->kind != H5_KIND_DATASET)
        return h5_fail(err, H5_MISUSE, o->oh.addr, "reading an object that is not a dataset");
    uint64_t want = d->type.size;
    if (o->refuse.code != H5_OK)
        return h5_fail_as(err, &o->refuse);
    for (int i = 0; i < d->rank; i++) {
        if (start[i] > d->dims[i] || count[i] > d->dims[i] - start[i])
            return h5_fail(err, H5_MISUSE, o->oh.addr,
                           "reading %" PRIu64 " from %" PRIu64 " in dimension %d of size %" PRIu64,
                           count[i], start[i], i, d->dims[i]);
        *empty |= count[i] == 0;
    }
    *empty |= d->space == H5_SPACE_NULL;
    for (int i = 0; i < d->rank && !*empty; i++)
        if (!h5_mul_fits(want, count[i], &want))
            return h5_fail(err, H5_MISUSE, o->oh.addr, "reading more bytes than 64 bits count");
    if (*empty)
        want = 0;
    if (want != bytes)
        return h5_fail(err, H5_MISUSE, o->oh.addr, "reading %" PRIu64 " bytes into a buffer of %zu",
                       want, bytes);
    return H5_OK;
}

/* The part of the hyperslab that lies in the chunk at grid position `at`, as runs from chunk to
** buffer. */
static void chunk_runs(const h5_dataset_info *d, const uint64_t *at, const uint64_t *start,
                       const uint64_t *count, h5_runs *out)
{
    uint64_t size[H5_RANK_MAX], from[H5_RANK_MAX], to[H5_RANK_MAX], n[H5_RANK_MAX];
    for (int i = 0; i < d->rank; i++) {
        uint64_t origin = at[i] * d->chunk[i], end = start[i] + count[i];
        uint64_t lo = origin > start[i] ? origin : start[i];
        size[i] = d->chunk[i];
        n[i] = end - lo < d->chunk[i] - (lo - origin) ? end - lo : d->chunk[i] - (lo - origin);
        from[i] = lo - origin;
        to[i] = lo - start[i];
    }
    h5_runs_init(out, d->rank, n, size, from, count, to);
}

/* Chunks behind one another in the grid and in the file, to be read at once. */
typedef struct batch {
    uint64_t at[H5_RANK_MAX]; /* of the first */
    uint64_t addr, n;
} batch;

/* A hyperslab on its way through the grid. */
typedef struct slab {
    const uint64_t *start, *count;
    uint64_t first[H5_RANK_MAX], last[H5_RANK_MAX]; /* chunks that it meets */
    uint8_t *buf;
    int filled;   /* what is not read yet holds the fill value */
    uint64_t row; /* elements of one place of the slowest dimension, where chunks and hyperslab hold
                  ** them all: what is behind one another in chunks then is so in buf. Else 0 */
} slab;

/* The next chunk of the hyperslab; 0 behind the last. */
static int step(const slab *s, int rank, uint64_t *at)
{
    for (int i = rank; i-- > 0;) {
        if (at[i]++ < s->last[i])
            return 1;
        at[i] = s->first[i];
    }
    return 0;
}

static uint64_t row_of(const h5_dataset_info *d, const uint64_t *count)
{
    uint64_t row = d->rank > 0;
    for (int i = 1; i < d->rank; i++) {
        if (d->chunk[i] != d->dims[i] || count[i] != d->dims[i])
            return 0;
        row *= d->chunk[i];
    }
    return row;
}

/* Whether a chunk may be read together with others: raw, and either straight into the buffer, or
** small and wanted by three quarters of each of its sides. */
static int may_join(const h5_dataset_info *d, const slab *s, const uint64_t *at, const h5_chunk *c)
{
    if (c->addr == H5_UNDEF || !h5_pipeline_is_raw(&d->pipeline, c->mask))
        return 0;
    if (s->row || d->size > BATCH_BYTES / 2)
        return s->row > 0;
    for (int i = 0; i < d->rank; i++) {
        uint64_t lo = at[i] * d->chunk[i], from = lo > s->start[i] ? lo : s->start[i];
        uint64_t most = s->start[i] + s->count[i] - from, wanted = d->chunk[i] - (from - lo);
        if ((wanted < most ? wanted : most) < d->chunk[i] - d->chunk[i] / 4)
            return 0;
    }
    return 1;
}

/* A batch of chunks of whole rows: one run. */
static int read_rows(h5_reader *r, const slab *s, const batch *b, h5_error *err)
{
    const h5_dataset_info *d = r->o->info;
    uint64_t lo = b->at[0] * d->chunk[0], from = lo > s->start[0] ? lo : s->start[0];
    uint64_t most = s->start[0] + s->count[0] - from, n = b->n * d->chunk[0] - (from - lo);
    uint64_t bytes = s->row * d->type.size;
    return h5_file_read_data(r->f, b->addr + (from - lo) * bytes,
                             s->buf + (from - s->start[0]) * bytes,
                             (size_t)((n < most ? n : most) * bytes), "chunk", err);
}

static int read_batch(h5_reader *r, const slab *s, batch *b, h5_error *err)
{
    const h5_dataset_info *d = r->o->info;
    const uint8_t *p;
    h5_runs runs;
    if (s->row && b->n > 0)
        H5_TRY(read_rows(r, s, b, err));
    else if (b->n > 0)
        H5_TRY(h5_read_span(r, b->addr, b->n * d->size, "chunk", &p, err));
    for (uint64_t i = 0; !s->row && i < b->n; i++, p += d->size) {
        chunk_runs(d, b->at, s->start, s->count, &runs);
        h5_runs_copy(&runs, d->type.size, p, 0, s->buf);
        step(s, d->rank, b->at);
    }
    b->n = 0;
    return H5_OK;
}

/* Puts the fill value wherever the chunk at `at` and those behind it go: into that one, then for
** each dimension j, the fastest first, where chunks go that differ from it in j at first. */
static void fill_rest(h5_reader *r, const slab *s, const uint64_t *at)
{
    const h5_dataset_info *d = r->o->info;
    uint64_t from[H5_RANK_MAX], n[H5_RANK_MAX];
    h5_runs runs;
    for (int i = 0; i < d->rank; i++) {
        uint64_t lo = at[i] * d->chunk[i], begin = lo > s->start[i] ? lo : s->start[i];
        uint64_t mine = d->chunk[i] - (begin - lo), most = s->start[i] + s->count[i] - begin;
        from[i] = begin - s->start[i];
        n[i] = mine < most ? mine : most;
    }
    h5_runs_init(&runs, d->rank, n, s->count, from, s->count, from);
    h5_read_fill(r->o, &runs, s->buf);
    for (int j = d->rank; j-- > 0;) {
        from[j] += n[j];
        n[j] = s->count[j] - from[j];
        h5_runs_init(&runs, d->rank, n, s->count, from, s->count, from);
        h5_read_fill(r->o, &runs, s->buf);
        from[j] = 0;
        n[j] = s->count[j];
    }
}

/* One chunk: joins the batch, or ends it and is read on its own. */
static int read_one(h5_reader *r, slab *s, batch *b, const uint64_t *at, const h5_chunk *c,
                    h5_error *err)
{
    const h5_dataset_info *d = r->o->info;
    h5_runs runs;
    int joins = may_join(d, s, at, c);
    if (joins && b->n > 0 && c->addr == b->addr + b->n * d->size &&
        (s->row || (b->n + 1) * d->size <= BATCH_BYTES)) {
        b->n++;
        return H5_OK;
    }
    H5_TRY(read_batch(r, s, b, err));
    if (joins) {
        memcpy(b->at, at, (size_t)d->rank * sizeof *at);
        b->addr = c->addr;
        b->n = 1;
        return H5_OK;
    }
    if (c->addr == H5_UNDEF) {
        // Once for all that are missing, of which there may be millions in a small file.
        if (!s->filled)
            fill_rest(r, s, at);
        s->filled = 1;
        return H5_OK;
    }
    chunk_runs(d, at, s->start, s->count, &runs);
    return h5_read_chunk(r, c, &runs, s->buf, err);
}

static int read_chunked(h5_reader *r, const uint64_t *start, const uint64_t *count, uint8_t *buf,
                        h5_error *err)
{
    const h5_dataset_info *d = r->o->info;
    uint64_t at[H5_RANK_MAX];
    slab s;
    batch b;
    h5_cidx ix;
    h5_chunk c;
    uint64_t n = 1; // chunks; the grid has been counted in 64 bits
    int rc = h5_cidx_open(&ix, r->f, r->o, err), more = 1;
    s.start = start;
    s.count = count;
    s.buf = buf;
    s.filled = 0;
    s.row = row_of(d, count);
    b.n = 0;
    for (int k = 0; k < d->rank; k++) {
        at[k] = s.first[k] = start[k] / d->chunk[k];
        s.last[k] = (start[k] + count[k] - 1) / d->chunk[k];
        n *= s.last[k] - s.first[k] + 1;
    }
    if (rc == H5_OK)
        rc = h5_cidx_allow(&ix, n, err);
    for (; rc == H5_OK && more; more = step(&s, d->rank, at)) {
        rc = h5_cidx_get(&ix, at, &c, err);
        if (rc == H5_OK)
            rc = read_one(r, &s, &b, at, &c, err);
    }
    if (rc == H5_OK)
        rc = read_batch(r, &s, &b, err);
    h5_cidx_close(&ix);
    return rc;
}

/* Contiguous and compact data, and chunked data of which nothing is stored: one box of the whole
** dataset. */
static int read_plain(h5_reader *r, const uint64_t *start, const uint64_t *count, uint8_t *buf,
                      h5_error *err)
{
    const h5_dataset_info *d = r->o->info;
    size_t size = d->type.size;
    h5_runs runs;
    uint64_t s, t;
    h5_runs_init(&runs, d->rank, count, d->dims, start, count, zeros);
    if (d->layout == H5_LAYOUT_COMPACT) {
        while (h5_runs_next(&runs, &s, &t))
            memcpy(buf + t * size, r->o->layout.compact + s * size, (size_t)runs.run * size);
        return H5_OK;
    }
    if (d->addr == H5_UNDEF) {
        h5_read_fill(r->o, &runs, buf);
        return H5_OK;
    }
    while (h5_runs_next(&runs, &s, &t))
        H5_TRY(h5_file_read_data(r->f, d->addr + s * size, buf + t * size, (size_t)runs.run * size,
                                 "contiguous data", err));
    return H5_OK;
}

int h5_dataset_read_stored(h5_file *f, const h5_object *o, const uint64_t *start,
                           const uint64_t *count, void *buf, size_t bytes, h5_error *err)
{
    h5_deep deep = {.left = H5_VIRTUAL_WORK_MAX};
    (void)f;
    return h5_dataset_read_deep(o, start, count, buf, bytes, &deep, err);
}

int h5_dataset_read_values(h5_heaps *h, const h5_object *o, const uint64_t *start,
                           const uint64_t *count, void *buf, size_t bytes, h5_error *err)
{
    h5_deep deep = {.left = H5_VIRTUAL_WORK_MAX, .heaps = h};
    h5_heaps_forget(h);
    return h5_dataset_read_deep(o, start, count, buf, bytes, &deep, err);
}

int h5_dataset_read_deep(const h5_object *o, const uint64_t *start, const uint64_t *count,
                         void *buf, size_t bytes, h5_deep *deep, h5_error *err)
{
    h5_reader r = {.f = o->f, .o = o};
    int empty;
    H5_TRY(check_request(o, start, count, bytes, &empty, err));
    if (empty)
        return H5_OK;
    int rc, layout = o->info->layout;
    if (o->no_fill && o->info->addr == H5_UNDEF && o->info->nexternal == 0 &&
        (layout == H5_LAYOUT_CONTIGUOUS || layout == H5_LAYOUT_CHUNKED))
        rc = h5_fail(err, H5_UNSUPPORTED, o->oh.addr,
                     "values that were never written, of a dataset without a fill value");
    else if (layout == H5_LAYOUT_VIRTUAL && deep->depth > H5_FILE_DEPTH_MAX)
        rc = h5_fail(err, H5_LIMIT, o->oh.addr,
                     "virtual datasets nested deeper than H5_FILE_DEPTH_MAX = %d",
                     H5_FILE_DEPTH_MAX);
    else if (layout == H5_LAYOUT_VIRTUAL)
        rc = h5_virtual_read(o, start, count, buf, deep, err);
    else if (o->info->nexternal > 0)
        rc = h5_read_external(&r, start, count, buf, err);
    else if (layout == H5_LAYOUT_CHUNKED && o->info->addr != H5_UNDEF)
        rc = read_chunked(&r, start, count, buf, err);
    else
        rc = read_plain(&r, start, count, buf, err);
    h5_reader_free(&r);
    return rc;
}

int h5_dataset_view(h5_file *f, const h5_object *o, const void **out, size_t *bytes, h5_error *err)
{
    const h5_dataset_info *d = o->info;
    int constant;
    const uint8_t *base = h5_io_in_place(f->io, &constant);
    *out = NULL;
    *bytes = 0;
    if (o->kind != H5_KIND_DATASET)
        return h5_fail(err, H5_MISUSE, o->oh.addr, "a view of an object that is not a dataset");
    if (o->refuse.code != H5_OK)
        return h5_fail_as(err, &o->refuse);
    // That all of it lies inside the file was checked when o was opened.
    uint64_t n = d->type.size;
    for (int i = 0; i < d->rank; i++)
        n *= d->dims[i];
    if (d->layout == H5_LAYOUT_COMPACT)
        *out = o->layout.compact;
    else if (d->layout == H5_LAYOUT_CONTIGUOUS && d->addr != H5_UNDEF && base)
        *out = base + f->base + d->addr;
    if (!*out || d->space == H5_SPACE_NULL || d->nexternal > 0) {
        *out = NULL;
        return h5_fail(err, H5_UNSUPPORTED, o->oh.addr, "a view of %s data%s", h5_layout_name(o),
                       base ? "" : ", which are not in memory");
    }
    *bytes = (size_t)n;
    return H5_OK;
}

int h5_dataset_read(h5_file *f, const h5_object *o, const uint64_t *start, const uint64_t *count,
                    void *buf, size_t bytes, h5_error *err)
{
    H5_TRY(h5_dataset_read_stored(f, o, start, count, buf, bytes, err));
    h5_conv_native(&o->info->type, buf, bytes / o->info->type.size);
    return H5_OK;
}
