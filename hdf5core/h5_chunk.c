/*
 * h5_chunk.c - the chunk table of a dataset, and parts of stored data into memory
 *
 * Raw data go from the file straight to where they are wanted as long as that takes few reads; a
 * box of many short runs is read as one span and copied, and so are small chunks that stand one
 * behind the other. From a file in memory they are copied at once. A filtered chunk is decoded as a
 * whole; before memory is taken for it, the stored size must be able to give that many bytes, so
 * that a few hostile bytes cannot ask for gigabytes.
 *
 * ERRORS   H5_FORMAT; H5_UNSUPPORTED filter or index; H5_LIMIT H5_DECODE_BYTES_MAX,
 *          H5_UNSTORED_CHUNKS_MAX
 * TESTS    t_h5_dataset.c
 *
 * SPDX-License-Identifier: MIT
 */
#include <inttypes.h>

#include "h5_chunk.h"
#include "h5_filter.h"

/* Up to this many runs are read one by one. A read from the page cache costs about as much as
** copying some KiB, and a span may be a whole chunk. */
/* LINE: bytes of a cache line. What is read lies in one as it does in the page cache, which makes
** the copy a tenth faster. */
enum { RUNS_DIRECT = 4, FILL_NEVER = 1, LINE = 64 };

int h5_dataset_chunks(h5_file *f, const h5_object *o, h5_chunk **out, size_t *n, h5_error *err)
{
    h5_cidx ix;
    h5_chunk *table = NULL;
    uint64_t at[H5_RANK_MAX] = {0}, total;
    *out = NULL;
    *n = 0;
    int rc = h5_cidx_open(&ix, f, o, err);
    if (rc != H5_OK)
        goto done;
    total = ix.grid.total;
    H5_TRY_DONE(h5_cidx_allow(&ix, total, err));
    table = h5_alloc_array((size_t)total, sizeof *table);
    if (!table) {
        rc = h5_fail_nomem(err, "a chunk table");
        goto done;
    }
    for (uint64_t i = 0; i < total; i++) {
        H5_TRY_DONE(h5_cidx_get(&ix, at, &table[i], err));
        for (int d = ix.grid.rank; d-- > 0; at[d] = 0)
            if (++at[d] < ix.grid.n[d])
                break;
    }
    *out = table;
    *n = (size_t)total;
    table = NULL;
done:
    h5_free(table);
    h5_cidx_close(&ix);
    return rc;
}

/* Makes r->stored hold n bytes; n was checked against the file. */
static int reserve(h5_reader *r, uint64_t n, h5_error *err)
{
    if (n <= r->stored_cap && r->stored)
        return H5_OK;
    h5_free(r->stored);
    r->stored_cap = 0;
    r->stored = n <= SIZE_MAX / 2 ? h5_malloc((size_t)n) : NULL;
    if (!r->stored)
        return h5_fail_nomem(err, "stored data");
    r->stored_cap = (size_t)n;
    return H5_OK;
}

int h5_read_span(h5_reader *r, uint64_t addr, uint64_t n, const char *what, const uint8_t **out,
                 h5_error *err)
{
    int constant;
    const uint8_t *base = h5_io_in_place(r->f->io, &constant);
    uint64_t from = r->f->base + addr;
    *out = NULL;
    H5_TRY(h5_file_inside(r->f, addr, n, what, err));
    if (base) {
        *out = base + from;
        return H5_OK;
    }
    H5_TRY(reserve(r, n + LINE, err));
    uint8_t *p = r->stored + (size_t)((from - (uintptr_t)r->stored) % LINE);
    H5_TRY(h5_file_read_data(r->f, addr, p, (size_t)n, what, err));
    *out = p;
    return H5_OK;
}

int h5_read_raw(h5_reader *r, uint64_t addr, h5_runs *runs, uint8_t *dst, const char *what,
                h5_error *err)
{
    size_t size = r->o->info->type.size;
    uint64_t s, d, last = runs->src;
    const uint8_t *p;
    if (runs->n <= RUNS_DIRECT) {
        while (h5_runs_next(runs, &s, &d))
            H5_TRY(h5_file_read_data(r->f, addr + s * size, dst + d * size,
                                     (size_t)runs->run * size, what, err));
        return H5_OK;
    }
    // Runs come in ascending order; the span reaches from the first to the end of the last.
    for (int i = 0; i < runs->rank; i++)
        last += (runs->count[i] - 1) * runs->src_step[i];
    uint64_t first = runs->src, span = (last - first + runs->run) * size;
    H5_TRY(h5_read_span(r, addr + first * size, span, what, &p, err));
    h5_runs_copy(runs, size, p, first, dst);
    return H5_OK;
}

int h5_read_chunk(h5_reader *r, const h5_chunk *c, h5_runs *runs, uint8_t *dst, h5_error *err)
{
    const h5_dataset_info *info = r->o->info;
    if (h5_pipeline_is_raw(&info->pipeline, c->mask))
        return h5_read_raw(r, c->addr, runs, dst, "chunk", err);
    H5_TRY(h5_pipeline_allow(&info->pipeline, c->mask, c->size, info->size, "chunk", c->addr, err));
    H5_TRY(h5_file_inside(r->f, c->addr, c->size, "chunk", err));
    H5_TRY(reserve(r, c->size, err));
    H5_TRY(h5_file_read_data(r->f, c->addr, r->stored, (size_t)c->size, "chunk", err));
    int rc;
    if (runs->n == 1 && runs->run * info->type.size == info->size) {
        // The whole chunk in one piece: decode it where it belongs.
        rc = h5_pipeline_decode(&info->pipeline, c->mask, r->stored, (size_t)c->size,
                                dst + runs->dst * info->type.size, (size_t)info->size, err);
    } else {
        if (!r->plain)
            r->plain = h5_malloc((size_t)info->size);
        if (!r->plain)
            return h5_fail_nomem(err, "a decoded chunk");
        rc = h5_pipeline_decode(&info->pipeline, c->mask, r->stored, (size_t)c->size, r->plain,
                                (size_t)info->size, err);
        if (rc == H5_OK)
            h5_runs_copy(runs, info->type.size, r->plain, 0, dst);
    }
    if (rc != H5_OK && err && err->offset == H5_UNDEF)
        err->offset = c->addr;
    return rc;
}

void h5_read_fill(const h5_object *o, h5_runs *runs, uint8_t *dst)
{
    size_t size = o->info->type.size, bytes = (size_t)runs->run * size;
    uint64_t s, d;
    while (h5_runs_next(runs, &s, &d)) {
        uint8_t *p = dst + d * size;
        // Where the writer asked that fill values never be written, there are none to be read.
        if (!o->fill || o->info->fill_time == FILL_NEVER) {
            memset(p, 0, bytes);
            continue;
        }
        memcpy(p, o->fill, size);
        // Doubling: what is filled already is the source of the next copy.
        for (size_t have = size; have < bytes;) {
            size_t more = have < bytes - have ? have : bytes - have;
            memcpy(p + have, p, more);
            have += more;
        }
    }
}

void h5_reader_free(h5_reader *r)
{
    h5_free(r->stored);
    h5_free(r->plain);
}
