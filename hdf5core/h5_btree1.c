/*
 * h5_btree1.c - chunk indexes that are B-trees, of version 1 and of version 2
 *
 * A look-up goes from the root to the leaf whose keys enclose the chunk and keeps the nodes of that
 * path, so that the next chunk in the order of the grid, which is the order of the keys, costs a
 * read only where it enters another node.
 *
 * FORMAT   HDF5 spec: III.A.1 "Version 1 B-trees", type 1
 *   node: "TREE" | type 1 | level 1 | children 2 | left 8 | right 8 | key, child 8, key, ... key
 *   key:  stored bytes 4 | filter mask 4 | place of the chunk 8 a dimension | 8 for the element
 *          III.A.2 "Version 2 B-trees", records of types 10 and 11
 *   10: chunk 8 | place in chunks 8 a dimension
 *   11: chunk 8 | stored bytes | filter mask 4 | place in chunks 8 a dimension
 *
 * ERRORS   H5_FORMAT; H5_LIMIT H5_BTREE_DEPTH_MAX
 * TESTS    t_h5_index.c, test_h5show.py
 *
 * SPDX-License-Identifier: MIT
 */
#include <inttypes.h>

#include "h5_btree2.h"
#include "h5_cidx.h"

/* ------------------------------------------------------------------------------------ version 1 */

typedef struct node {
    uint64_t addr;
    uint64_t n; /* children */
    uint8_t *p; /* keys and children; NULL: none */
} node;

typedef struct btree1 {
    size_t key, entry;                 /* bytes of a key, and of a key with its child */
    int height;                        /* level of the root */
    uint64_t left;                     /* bytes of nodes that may still be read */
    node path[H5_BTREE_DEPTH_MAX + 1]; /* by level */
} btree1;

/* Signature, type, level and number of children. level -1: any. */
static int read_head(h5_cidx *ix, uint64_t addr, int level, int *have, uint64_t *n, h5_error *err)
{
    uint8_t head[8];
    H5_TRY(h5_file_read(ix->f, addr, head, sizeof head, "version 1 B-tree", err));
    h5_cur c = h5_cur_on(head, sizeof head);
    int sig = h5_cur_sig(&c, "TREE"), type = h5_cur_u8(&c);
    *have = h5_cur_u8(&c);
    *n = h5_cur_u16(&c);
    if (!sig || type != 1 || (level >= 0 && *have != level))
        return h5_fail(err, H5_FORMAT, addr, "version 1 B-tree: node of type %d, level %d", type,
                       *have);
    if (*have > H5_BTREE_DEPTH_MAX)
        return h5_fail(err, H5_LIMIT, addr, "version 1 B-tree: %d levels, H5_BTREE_DEPTH_MAX = %d",
                       *have, H5_BTREE_DEPTH_MAX);
    return H5_OK;
}

/* Looking up relies on ascending keys; a node has no checksum that would tell. */
static int check_order(const h5_cidx *ix, const btree1 *t, const node *b, h5_error *err)
{
    for (uint64_t i = 1; i < b->n; i++) {
        const uint8_t *p = b->p + (i - 1) * t->entry + 8, *q = p + t->entry;
        int k = 0;
        while (k < ix->grid.rank && h5_get64(p + 8 * k) == h5_get64(q + 8 * k))
            k++;
        if (k == ix->grid.rank || h5_get64(p + 8 * k) > h5_get64(q + 8 * k))
            return h5_fail(err, H5_FORMAT, b->addr, "version 1 B-tree: key %d is not above %d",
                           (int)i, (int)i - 1);
    }
    return H5_OK;
}

/* Makes the node at addr the one of its level. */
static int load(h5_cidx *ix, btree1 *t, uint64_t addr, int level, const node **out, h5_error *err)
{
    node *b = &t->path[level];
    uint64_t n, begin = 8 + 2 * (uint64_t)ix->f->offsets;
    int have;
    *out = b;
    if (b->p && b->addr == addr)
        return H5_OK;
    h5_free(b->p);
    b->p = NULL;
    H5_TRY(read_head(ix, addr, level, &have, &n, err));
    uint64_t bytes = n * t->entry;
    if (bytes + begin > t->left)
        return h5_fail(err, H5_FORMAT, addr,
                       "version 1 B-tree: its nodes are longer than the file");
    t->left -= bytes + begin;
    H5_TRY(h5_file_load(ix->f, addr + begin, bytes, "version 1 B-tree", &b->p, err));
    b->addr = addr;
    b->n = n;
    int rc = check_order(ix, t, b, err);
    if (rc != H5_OK) {
        h5_free(b->p);
        b->p = NULL;
    }
    return rc;
}

/* Below 0, 0 or above: the chunk at this place comes before, is or comes after the one of the
** key. */
static int compare(const h5_cidx *ix, const uint64_t *at, const uint8_t *key)
{
    for (int i = 0; i < ix->grid.rank; i++) {
        uint64_t want = at[i] * ix->o->info->chunk[i], have = h5_get64(key + 8 + 8 * i);
        if (want != have)
            return want < have ? -1 : 1;
    }
    return 0;
}

int h5_btree1_open(h5_cidx *ix, h5_error *err)
{
    uint64_t n;
    btree1 *t = ix->state = h5_calloc(1, sizeof *t);
    if (!t)
        return h5_fail_nomem(err, "a chunk index");
    t->key = 8 + 8 * ((size_t)ix->grid.rank + 1);
    t->entry = t->key + ix->f->offsets;
    t->left = h5_cidx_budget(ix);
    return read_head(ix, ix->o->info->addr, -1, &t->height, &n, err);
}

int h5_btree1_get(h5_cidx *ix, const uint64_t *at, uint64_t slot, h5_chunk *out, h5_error *err)
{
    btree1 *t = ix->state;
    uint64_t addr = ix->o->info->addr;
    (void)slot;
    for (int level = t->height; level >= 0; level--) {
        const node *b;
        H5_TRY(load(ix, t, addr, level, &b, err));
        uint64_t lo = 0, hi = b->n; // the last key that is not above the place is before lo
        while (lo < hi) {
            uint64_t mid = (lo + hi) / 2;
            if (compare(ix, at, b->p + mid * t->entry) >= 0)
                lo = mid + 1;
            else
                hi = mid;
        }
        if (lo == 0)
            return H5_OK;
        const uint8_t *p = b->p + (lo - 1) * t->entry;
        addr = h5_addr_at(p + t->key, ix->f);
        if (level == 0 && compare(ix, at, p) == 0)
            *out = (h5_chunk){.addr = addr, .size = h5_get32(p), .mask = h5_get32(p + 4)};
    }
    return H5_OK;
}

void h5_btree1_close(h5_cidx *ix)
{
    btree1 *t = ix->state;
    for (int i = 0; t && i <= H5_BTREE_DEPTH_MAX; i++)
        h5_free(t->path[i].p);
    h5_free(t);
}

/* ------------------------------------------------------------------------------------ version 2 */

int h5_chunk_btree2_open(h5_cidx *ix, h5_error *err)
{
    int filtered = ix->o->info->pipeline.n > 0;
    size_t want = ix->f->offsets + (filtered ? h5_cidx_size_width(ix->o) + 4 : 0) +
                  8 * (size_t)ix->grid.rank;
    h5_btree2 *t = ix->state = h5_calloc(1, sizeof *t);
    if (!t)
        return h5_fail_nomem(err, "a chunk index");
    H5_TRY(h5_btree2_open(t, ix->f, ix->o->info->addr, err));
    t->left = h5_cidx_budget(ix);
    if (t->type != (filtered ? 11u : 10u) || t->record_bytes != want)
        return h5_fail(err, H5_FORMAT, t->addr,
                       "chunk index: version 2 B-tree of type %u, %u bytes", t->type,
                       t->record_bytes);
    return H5_OK;
}

typedef struct place {
    const uint64_t *at;
    int rank;
    size_t before; /* bytes of a record before the place */
} place;

static int compare_record(const void *ctx, const uint8_t *record)
{
    const place *w = ctx;
    for (int i = 0; i < w->rank; i++) {
        uint64_t have = h5_get64(record + w->before + 8 * i);
        if (w->at[i] != have)
            return w->at[i] < have ? -1 : 1;
    }
    return 0;
}

int h5_chunk_btree2_get(h5_cidx *ix, const uint64_t *at, uint64_t slot, h5_chunk *out,
                        h5_error *err)
{
    h5_btree2 *t = ix->state;
    place w = {at, ix->grid.rank, t->record_bytes - 8 * (size_t)ix->grid.rank};
    const uint8_t *record;
    (void)slot;
    H5_TRY(h5_btree2_find(t, compare_record, &w, &record, err));
    if (!record)
        return H5_OK;
    h5_cur c = h5_cur_on(record, t->record_bytes);
    out->addr = h5_cur_addr(&c, ix->f);
    out->size = ix->o->info->size;
    if (ix->o->info->pipeline.n > 0) {
        out->size = h5_cur_uint(&c, h5_cidx_size_width(ix->o));
        out->mask = h5_cur_u32(&c);
    }
    return H5_OK;
}

void h5_chunk_btree2_close(h5_cidx *ix)
{
    if (ix->state)
        h5_btree2_close(ix->state);
    h5_free(ix->state);
}
