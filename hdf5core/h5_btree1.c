/*
 * h5_btree1.c - chunk indexes that are B-trees, of version 1 and of version 2
 *
 * FORMAT   HDF5 spec: III.A.1 "Version 1 B-trees", type 1
 *   node: "TREE" | type 1 | level 1 | children 2 | left 8 | right 8 | key, child 8, key, ... key
 *   key:  stored bytes 4 | filter mask 4 | place of the chunk 8 a dimension | 8 for the element
 *          III.A.2 "Version 2 B-trees", records of types 10 and 11
 *   10: chunk 8 | place in chunks 8 a dimension
 *   11: chunk 8 | stored bytes | filter mask 4 | place in chunks 8 a dimension
 *
 * ERRORS   H5_FORMAT; H5_LIMIT H5_BTREE_DEPTH_MAX
 * TESTS    test_h5show.py
 *
 * SPDX-License-Identifier: MIT
 */
#include <inttypes.h>

#include "h5_btree2.h"
#include "h5_cidx.h"

/* One leaf entry: its key at p, then its child. */
static int add_chunk(h5_cidx *ix, const uint8_t *p, size_t key, h5_error *err)
{
    uint64_t at[H5_RANK_MAX];
    h5_chunk chunk = {
        .addr = h5_addr_at(p + key, ix->f), .size = h5_get32(p), .mask = h5_get32(p + 4)};
    for (int i = 0; i < ix->grid.rank; i++) {
        uint64_t from = h5_get64(p + 8 + 8 * i);
        if (from % ix->o->info.chunk[i] != 0)
            return h5_fail(err, H5_FORMAT, chunk.addr,
                           "version 1 B-tree: chunk at %" PRIu64 " in dimension %d", from, i);
        at[i] = from / ix->o->info.chunk[i];
    }
    return h5_cidx_add(ix, at, &chunk, err);
}

/* left: bytes of nodes that may still be read. level -1: any. */
static int add_tree(h5_cidx *ix, uint64_t addr, int level, uint64_t *left, h5_error *err)
{
    uint8_t head[8], *p;
    size_t key = 8 + 8 * ((size_t)ix->grid.rank + 1), width = ix->f->offsets, begin = 8 + 2 * width;
    H5_TRY(h5_file_read(ix->f, addr, head, sizeof head, "version 1 B-tree", err));
    h5_cur c = h5_cur_on(head, sizeof head);
    int sig = h5_cur_sig(&c, "TREE"), type = h5_cur_u8(&c), have = h5_cur_u8(&c);
    uint64_t n = h5_cur_u16(&c), bytes = begin + n * (key + width);
    if (!sig || type != 1 || (level >= 0 && have != level))
        return h5_fail(err, H5_FORMAT, addr, "version 1 B-tree: node of type %d, level %d", type,
                       have);
    if (have > H5_BTREE_DEPTH_MAX)
        return h5_fail(err, H5_LIMIT, addr, "version 1 B-tree: %d levels, H5_BTREE_DEPTH_MAX = %d",
                       have, H5_BTREE_DEPTH_MAX);
    if (bytes > *left)
        return h5_fail(err, H5_FORMAT, addr,
                       "version 1 B-tree: its nodes are longer than the file");
    *left -= bytes;
    H5_TRY(h5_file_load(ix->f, addr, bytes, "version 1 B-tree", &p, err));
    int rc = H5_OK;
    for (uint64_t i = 0; rc == H5_OK && i < n; i++) {
        const uint8_t *at = p + begin + i * (key + width);
        rc = have > 0 ? add_tree(ix, h5_addr_at(at + key, ix->f), have - 1, left, err)
                      : add_chunk(ix, at, key, err);
    }
    h5_free(p);
    return rc;
}

int h5_btree1_open(h5_cidx *ix, h5_error *err)
{
    uint64_t left = ix->f->most;
    return add_tree(ix, ix->o->info.addr, -1, &left, err);
}

typedef struct records {
    h5_cidx *ix;
    h5_btree2 info;
} records;

static int add_record(void *ctx, const uint8_t *record, h5_error *err)
{
    records *r = ctx;
    const h5_cidx *ix = r->ix;
    unsigned width = h5_cidx_size_width(ix->o);
    int filtered = ix->o->info.pipeline.n > 0;
    size_t want = ix->f->offsets + (filtered ? width + 4 : 0) + 8 * (size_t)ix->grid.rank;
    uint64_t at[H5_RANK_MAX];
    h5_chunk c = {.size = ix->o->info.size};
    if (r->info.type != (filtered ? 11u : 10u) || r->info.record_bytes != want)
        return h5_fail(err, H5_FORMAT, r->info.addr,
                       "chunk index: version 2 B-tree of type %u, %u bytes", r->info.type,
                       r->info.record_bytes);
    h5_cur cur = h5_cur_on(record, want);
    c.addr = h5_cur_addr(&cur, ix->f);
    if (filtered) {
        c.size = h5_cur_uint(&cur, width);
        c.mask = h5_cur_u32(&cur);
    }
    for (int i = 0; i < ix->grid.rank; i++)
        at[i] = h5_cur_u64(&cur);
    return h5_cidx_add(r->ix, at, &c, err);
}

int h5_chunk_btree2_open(h5_cidx *ix, h5_error *err)
{
    records r = {.ix = ix};
    return h5_btree2_each(ix->f, ix->o->info.addr, &r.info, add_record, &r, err);
}
