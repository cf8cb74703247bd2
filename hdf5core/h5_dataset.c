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
#include "h5_virtual.h"

static const uint64_t zeros[H5_RANK_MAX];

/* Checks the request; *empty when it asks for no element. */
static int check_request(const h5_object *o, const uint64_t *start, const uint64_t *count,
                         size_t bytes, int *empty, h5_error *err)
{
    const h5_dataset_info *d = &o->info;
    uint64_t want = d->type.size;
    *empty = 0;
    if (o->kind != H5_KIND_DATASET)
        return h5_fail(err, H5_MISUSE, o->oh.addr, "reading an object that is not a dataset");
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

static int read_chunked(h5_reader *r, const uint64_t *start, const uint64_t *count, uint8_t *buf,
                        h5_error *err)
{
    const h5_dataset_info *d = &r->o->info;
    uint64_t first[H5_RANK_MAX], last[H5_RANK_MAX], at[H5_RANK_MAX];
    h5_cidx ix;
    h5_chunk c;
    h5_runs runs;
    int rc = h5_cidx_open(&ix, r->f, r->o, err), i = 0;
    for (int k = 0; k < d->rank; k++) {
        at[k] = first[k] = start[k] / d->chunk[k];
        last[k] = (start[k] + count[k] - 1) / d->chunk[k];
    }
    while (rc == H5_OK && i >= 0) {
        rc = h5_cidx_get(&ix, at, &c, err);
        if (rc != H5_OK)
            break;
        chunk_runs(d, at, start, count, &runs);
        if (c.addr == H5_UNDEF)
            h5_read_fill(r->o, &runs, buf);
        else
            rc = h5_read_chunk(r, &c, &runs, buf, err);
        for (i = d->rank - 1; i >= 0; i--) {
            if (at[i]++ < last[i])
                break;
            at[i] = first[i];
        }
    }
    h5_cidx_close(&ix);
    return rc;
}

/* Contiguous and compact data, and chunked data of which nothing is stored: one box of the whole
** dataset. */
static int read_plain(h5_reader *r, const uint64_t *start, const uint64_t *count, uint8_t *buf,
                      h5_error *err)
{
    const h5_dataset_info *d = &r->o->info;
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
    h5_deep deep = {0, H5_VIRTUAL_WORK_MAX};
    (void)f;
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
    int rc;
    if (o->info.layout == H5_LAYOUT_VIRTUAL && deep->depth > H5_FILE_DEPTH_MAX)
        rc = h5_fail(err, H5_LIMIT, o->oh.addr,
                     "virtual datasets nested deeper than H5_FILE_DEPTH_MAX = %d",
                     H5_FILE_DEPTH_MAX);
    else if (o->info.layout == H5_LAYOUT_VIRTUAL)
        rc = h5_virtual_read(o, start, count, buf, deep, err);
    else if (o->info.nexternal > 0)
        rc = h5_read_external(&r, start, count, buf, err);
    else if (o->info.layout == H5_LAYOUT_CHUNKED && o->info.addr != H5_UNDEF)
        rc = read_chunked(&r, start, count, buf, err);
    else
        rc = read_plain(&r, start, count, buf, err);
    h5_reader_free(&r);
    return rc;
}

int h5_dataset_view(h5_file *f, const h5_object *o, const void **out, size_t *bytes, h5_error *err)
{
    const h5_dataset_info *d = &o->info;
    uint64_t n = d->type.size;
    int constant;
    const uint8_t *base = h5_io_in_place(f->io, &constant);
    *out = NULL;
    *bytes = 0;
    if (o->kind != H5_KIND_DATASET)
        return h5_fail(err, H5_MISUSE, o->oh.addr, "a view of an object that is not a dataset");
    if (o->refuse.code != H5_OK)
        return h5_fail_as(err, &o->refuse);
    // That all of it lies inside the file was checked when o was opened.
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
    h5_conv_native(&o->info.type, buf, bytes / o->info.type.size);
    return H5_OK;
}
