/*
 * h5_cidx.c - the table of chunk indexes, and the two that need no structure of their own
 *
 * A single chunk and an implicit index (all chunks one behind the other, unfiltered) follow from
 * the layout message. What every index gives is checked here once: the chunk lies inside the file.
 *
 * ERRORS   H5_FORMAT; H5_LIMIT H5_UNSTORED_CHUNKS_MAX
 * TESTS    t_h5_dataset.c, t_h5_farray.c
 *
 * SPDX-License-Identifier: MIT
 */
#include <assert.h>
#include <inttypes.h>

#include "h5_farray.h"
#include "h5_filter.h"

int h5_grid_of(const h5_dataset_info *d, h5_grid *out, h5_error *err)
{
    uint64_t total = 1, slots = 1;
    int bounded = 1;
    out->rank = d->rank;
    for (int i = d->rank; i-- > 0;) {
        uint64_t most = h5_div_up(d->maxdims[i], d->chunk[i]);
        out->n[i] = h5_div_up(d->dims[i], d->chunk[i]);
        out->step[i] = bounded ? slots : 0;
        // The slowest dimension may be unlimited without an effect on the steps.
        bounded &= d->maxdims[i] != UINT64_MAX && h5_mul_fits(slots, most, &slots);
    }
    for (int i = 0; i < d->rank; i++)
        if (out->n[i] == 0)
            total = 0;
    for (int i = 0; i < d->rank && total > 0; i++)
        if (!h5_mul_fits(total, out->n[i], &total))
            return h5_fail(err, H5_LIMIT, H5_UNDEF, "dataset: more chunks than 64 bits count");
    out->total = total;
    out->slots = bounded ? slots : 0;
    return H5_OK;
}

static int single_open(h5_cidx *ix, h5_error *err)
{
    if (ix->grid.slots != 1)
        return h5_fail(err, H5_FORMAT, ix->o->oh.addr, "single chunk index: %" PRIu64 " chunks",
                       ix->grid.slots);
    return H5_OK;
}

static int single_get(h5_cidx *ix, const uint64_t *at, uint64_t slot, h5_chunk *out, h5_error *err)
{
    (void)at;
    (void)slot;
    (void)err;
    *out = ix->o->layout.single;
    out->addr = ix->o->info->addr;
    if (!ix->o->layout.single_filtered)
        out->size = ix->o->info->size;
    return H5_OK;
}

static int implicit_open(h5_cidx *ix, h5_error *err)
{
    uint64_t bytes;
    if (ix->o->info->pipeline.n > 0)
        return h5_fail(err, H5_FORMAT, ix->o->oh.addr, "implicit index: filtered chunks");
    if (ix->grid.slots == 0 || !h5_mul_fits(ix->grid.slots, ix->o->info->size, &bytes))
        return h5_fail(err, H5_FORMAT, ix->o->oh.addr, "implicit index: unlimited chunks");
    return h5_file_inside(ix->f, ix->o->info->addr, bytes, "implicit index", err);
}

static int implicit_get(h5_cidx *ix, const uint64_t *at, uint64_t slot, h5_chunk *out,
                        h5_error *err)
{
    (void)at;
    (void)err;
    out->addr = ix->o->info->addr + slot * ix->o->info->size;
    out->size = ix->o->info->size;
    out->mask = 0;
    return H5_OK;
}

static const h5_cidx_row rows[] = {
    {H5_INDEX_SINGLE, "single chunk", single_open, single_get, NULL},
    {H5_INDEX_IMPLICIT, "implicit", implicit_open, implicit_get, NULL},
    {H5_INDEX_FARRAY, "fixed array", h5_farray_open, h5_farray_get, NULL},
    {H5_INDEX_EARRAY, "extensible array", h5_earray_open, h5_earray_get, h5_earray_close},
    {H5_INDEX_BTREE2, "version 2 B-tree", h5_chunk_btree2_open, h5_chunk_btree2_get,
     h5_chunk_btree2_close},
    {H5_INDEX_BTREE1, "version 1 B-tree", h5_btree1_open, h5_btree1_get, h5_btree1_close},
};

uint64_t h5_cidx_budget(const h5_cidx *ix)
{
    return ix->f->most < UINT64_MAX / 4 ? 2 * ix->f->most + (1u << 20) : ix->f->most;
}

unsigned h5_cidx_size_width(const h5_object *o)
{
    unsigned log2 = 0;
    while (o->info->size >> log2 > 1)
        log2++;
    unsigned width = 1 + (log2 + 8) / 8;
    return o->layout.wide_sizes ? o->f->lengths : width > 8 ? 8 : width;
}

int h5_cidx_open(h5_cidx *ix, h5_file *f, const h5_object *o, h5_error *err)
{
    memset(ix, 0, sizeof *ix);
    ix->f = f;
    ix->o = o;
    if (o->kind != H5_KIND_DATASET)
        return h5_fail(err, H5_MISUSE, o->oh.addr, "chunks of an object that is not a dataset");
    if (o->refuse.code != H5_OK)
        return h5_fail_as(err, &o->refuse);
    if (o->info->layout != H5_LAYOUT_CHUNKED)
        return h5_fail(err, H5_MISUSE, o->oh.addr, "chunks of a dataset that has none");
    H5_TRY(h5_grid_of(o->info, &ix->grid, err));
    if (o->info->addr == H5_UNDEF)
        return H5_OK;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].id == o->layout.index)
            ix->row = &rows[i];
    assert(ix->row); // the layout decoder lets no other id through
    return ix->grid.total > 0 ? ix->row->open(ix, err) : H5_OK;
}

int h5_cidx_allow(const h5_cidx *ix, uint64_t n, h5_error *err)
{
    // An index in the file has an entry for each chunk; only where there is none is the size a mere
    // claim.
    if (n > H5_UNSTORED_CHUNKS_MAX && n > ix->f->eof / 8)
        return h5_fail(err, H5_LIMIT, ix->o->oh.addr,
                       "dataset: %" PRIu64 " chunks at once, H5_UNSTORED_CHUNKS_MAX = %llu", n,
                       (unsigned long long)H5_UNSTORED_CHUNKS_MAX);
    return H5_OK;
}

/* A chunk that sticks out of the dataset, where the layout says that such chunks are stored raw. */
static int is_raw_edge(const h5_cidx *ix, const uint64_t *at)
{
    const h5_dataset_info *d = ix->o->info;
    for (int i = 0; i < d->rank && ix->o->layout.raw_edges; i++)
        if (d->dims[i] % d->chunk[i] != 0 && at[i] == d->dims[i] / d->chunk[i])
            return 1;
    return 0;
}

int h5_cidx_get(h5_cidx *ix, const uint64_t *at, h5_chunk *out, h5_error *err)
{
    const h5_dataset_info *d = ix->o->info;
    uint64_t slot = 0;
    memset(out, 0, sizeof *out);
    out->addr = H5_UNDEF;
    if (!ix->row)
        return H5_OK;
    h5_chunk c = *out;
    for (int i = 0; i < d->rank; i++)
        slot += at[i] * ix->grid.step[i];
    H5_TRY(ix->row->get(ix, at, slot, &c, err));
    if (c.addr == H5_UNDEF)
        return H5_OK;
    if (d->pipeline.n > 0 && is_raw_edge(ix, at)) {
        c.mask = (1u << d->pipeline.n) - 1;
        c.size = d->size;
    }
    if (h5_pipeline_is_raw(&d->pipeline, c.mask) && c.size != d->size)
        return h5_fail(err, H5_FORMAT, c.addr, "chunk of %" PRIu64 " bytes has %" PRIu64 " stored",
                       d->size, c.size);
    H5_TRY(h5_file_inside(ix->f, c.addr, c.size, "chunk", err));
    *out = c;
    return H5_OK;
}

void h5_cidx_close(h5_cidx *ix)
{
    h5_free(ix->bitmap);
    h5_free(ix->page);
    if (ix->row && ix->row->close)
        ix->row->close(ix);
    memset(ix, 0, sizeof *ix);
}
