/*
 * fuzz_h5_index.c - any bytes as a chunk index, of each kind, plain and filtered
 *
 * 16 bytes describe the dataset, the rest is the file:
 *   kind 1 | rank 1 | flags 1 (bit 0: filtered, 1: wide sizes, 2: raw edges, 4-5: width of
 *   addresses) | unlimited dimensions, a bit each 1 | index 4 | a dimension: size 2, chunk 1, over
 *   maximum 1
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "h5_cidx.h"
#include "h5_file.h"
#include "t_mend.h"

enum { HEAD = 16, RANK_MOST = 2, SLOTS_MOST = 5000 };

static void describe(const uint8_t *head, h5_object *o)
{
    static const uint8_t kinds[] = {H5_INDEX_SINGLE, H5_INDEX_IMPLICIT, H5_INDEX_FARRAY,
                                    H5_INDEX_EARRAY, H5_INDEX_BTREE2,   H5_INDEX_BTREE1};
    h5_dataset_info *d = o->info;
    h5_cur c = h5_cur_on(head, HEAD);
    o->kind = H5_KIND_DATASET;
    o->layout.index = kinds[h5_cur_u8(&c) % sizeof kinds];
    d->rank = 1 + h5_cur_u8(&c) % RANK_MOST;
    unsigned flags = h5_cur_u8(&c), open = h5_cur_u8(&c);
    d->addr = h5_cur_u32(&c);
    d->space = H5_SPACE_SIMPLE;
    d->layout = H5_LAYOUT_CHUNKED;
    d->size = d->type.size = 4;
    for (int i = 0; i < d->rank; i++) {
        d->dims[i] = h5_cur_u16(&c);
        d->chunk[i] = 1u + h5_cur_u8(&c);
        d->maxdims[i] = d->dims[i] + h5_cur_u8(&c);
        if (open >> i & 1)
            d->maxdims[i] = UINT64_MAX;
        d->size *= d->chunk[i];
    }
    o->layout.wide_sizes = flags >> 1 & 1;
    o->layout.raw_edges = flags >> 2 & 1;
    d->pipeline.n = flags & 1;
    d->pipeline.filter[0].id = H5_FILTER_DEFLATE;
    o->f->offsets = (const unsigned[]){8, 4, 2, 8}[flags >> 4 & 3];
    o->f->lengths = (const unsigned[]){8, 4, 2, 4}[flags >> 4 & 3];
}

static int read_index(void *ctx, const uint8_t *bytes, size_t n, h5_error *err)
{
    uint8_t superblock[H5_SUPERBLOCK_BYTES];
    h5_dataset_info info = {0};
    h5_object o = {.info = &info};
    h5_cidx ix;
    h5_io *io;
    int rc = h5_io_bytes(bytes, n, &io, err);
    if (rc != H5_OK)
        return rc;
    h5_superblock_pack(0, n, superblock);
    rc = h5_file_open_at(io, superblock, &o.f, err);
    if (rc == H5_OK) {
        describe(ctx, &o);
        rc = h5_cidx_open(&ix, o.f, &o, err);
        uint64_t at[H5_RANK_MAX] = {0};
        for (uint64_t i = 0; rc == H5_OK && i < ix.grid.total && i < SLOTS_MOST; i++) {
            h5_chunk c;
            rc = h5_cidx_get(&ix, at, &c, err);
            if (rc == H5_OK && c.addr != H5_UNDEF && (c.addr > n || c.size > n - c.addr))
                abort();
            for (int d = ix.grid.rank; d-- > 0; at[d] = 0)
                if (++at[d] < ix.grid.n[d])
                    break;
        }
        h5_cidx_close(&ix);
        h5_file_close(o.f);
    }
    io->close(io);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t head[HEAD];
    if (size < HEAD + H5_SUPERBLOCK_BYTES)
        return 0;
    memcpy(head, data, HEAD);
    t_mend_run(data + HEAD, size - HEAD, read_index, head);
    return 0;
}
