/*
 * h5_btree2.c - version 2 B-trees: all records of one, in order
 *
 * FORMAT   HDF5 spec: III.A.2 "Version 2 B-trees"
 *   header:   "BTHD" | version 0 | type 1 | node bytes 4 | record bytes 2 | depth 2 | split 1 |
 *             merge 1 | root 8 | records in the root 2 | records in all 8 | lookup3
 *   internal: "BTIN" | version 0 | type 1 | records | children: address 8, its records, and where
 *             they are internal nodes the records under them | lookup3
 *   leaf:     "BTLF" | version 0 | type 1 | records | lookup3
 *   The numbers of records take as many bytes as the most that can stand there needs: in a leaf for
 *   the first, under a node of that depth for the second.
 *
 * ERRORS   H5_FORMAT; H5_LIMIT H5_BTREE_DEPTH_MAX
 * TESTS    test_h5show.py
 *
 * SPDX-License-Identifier: MIT
 */
#include <inttypes.h>

#include "h5_btree2.h"
#include "h5_sum.h"

enum { NODE_HEAD = 6, NODE_FIXED = 10 };

typedef struct walk {
    h5_file *f;
    h5_btree2 *info;
    uint32_t node_bytes;
    unsigned width;                         /* of the records of a node */
    unsigned under[H5_BTREE_DEPTH_MAX + 1]; /* width of the records under a node of a depth */
    uint64_t most[H5_BTREE_DEPTH_MAX + 1];  /* records of a node of a depth */
    uint64_t left;                          /* bytes of nodes that may still be read */
    int (*each)(void *ctx, const uint8_t *record, h5_error *err);
    void *ctx;
} walk;

static unsigned width_of(uint64_t v)
{
    unsigned n = 1;
    while (n < 8 && v >> 8 * n)
        n++;
    return n;
}

/* What the widths in the nodes follow from. */
static int settle(walk *w, unsigned depth, h5_error *err)
{
    uint64_t size = w->info->record_bytes, all, offsets = w->f->offsets;
    if (size == 0 || w->node_bytes < NODE_FIXED + size)
        return h5_fail(err, H5_FORMAT, w->info->addr,
                       "version 2 B-tree: records of %" PRIu64 " bytes in nodes of %u", size,
                       (unsigned)w->node_bytes);
    all = w->most[0] = (w->node_bytes - NODE_FIXED) / size;
    w->width = width_of(w->most[0]);
    for (unsigned d = 1; d <= depth; d++) {
        uint64_t pointer = offsets + w->width + w->under[d - 1]; // under a leaf: 0 bytes
        if (w->node_bytes < NODE_FIXED + pointer)
            return h5_fail(err, H5_FORMAT, w->info->addr, "version 2 B-tree: nodes of %u bytes",
                           (unsigned)w->node_bytes);
        w->most[d] = (w->node_bytes - NODE_FIXED - pointer) / (size + pointer);
        if (!h5_mul_fits(all, w->most[d] + 1, &all) || !h5_add_fits(all, w->most[d], &all))
            all = UINT64_MAX;
        w->under[d] = width_of(all);
    }
    return H5_OK;
}

static int load(walk *w, uint64_t addr, unsigned depth, uint64_t n, uint8_t **out, h5_error *err)
{
    uint64_t pointer = depth ? w->f->offsets + w->width + w->under[depth - 1] : 0;
    *out = NULL;
    if (n > w->most[depth])
        return h5_fail(err, H5_FORMAT, addr, "version 2 B-tree: %" PRIu64 " records in a node", n);
    uint64_t bytes = NODE_FIXED + n * w->info->record_bytes + (depth ? (n + 1) * pointer : 0);
    if (bytes > w->left)
        return h5_fail(err, H5_FORMAT, addr,
                       "version 2 B-tree: its nodes are longer than the file");
    w->left -= bytes;
    H5_TRY(h5_file_load(w->f, addr, bytes, "version 2 B-tree", out, err));
    int rc = h5_sum_check(*out, (size_t)bytes, "version 2 B-tree", addr, err);
    if (rc == H5_OK && (memcmp(*out, depth ? "BTIN" : "BTLF", 4) != 0 || (*out)[4] != 0 ||
                        (*out)[5] != w->info->type))
        rc = h5_fail(err, H5_FORMAT, addr, "version 2 B-tree: node without signature");
    if (rc != H5_OK) {
        h5_free(*out);
        *out = NULL;
    }
    return rc;
}

static int walk_node(walk *w, uint64_t addr, unsigned depth, uint64_t n, h5_error *err)
{
    uint8_t *p;
    size_t size = w->info->record_bytes;
    H5_TRY(load(w, addr, depth, n, &p, err));
    int rc = H5_OK;
    size_t pointer = depth ? w->f->offsets + w->width + w->under[depth - 1] : 0;
    h5_cur c = h5_cur_on(p + NODE_HEAD + n * size, depth ? (size_t)(n + 1) * pointer : 0);
    for (uint64_t i = 0; rc == H5_OK && i <= n; i++) {
        if (depth) {
            uint64_t child = h5_cur_addr(&c, w->f), have = h5_cur_uint(&c, w->width);
            if (depth > 1)
                h5_cur_uint(&c, w->under[depth - 1]);
            rc = walk_node(w, child, depth - 1, have, err);
        }
        if (rc == H5_OK && i < n)
            rc = w->each(w->ctx, p + NODE_HEAD + i * size, err);
    }
    h5_free(p);
    return rc;
}

int h5_btree2_each(h5_file *f, uint64_t addr, h5_btree2 *info,
                   int (*each)(void *ctx, const uint8_t *record, h5_error *err), void *ctx,
                   h5_error *err)
{
    uint8_t head[38];
    size_t bytes = 22 + f->offsets + f->lengths;
    walk w = {.f = f, .info = info, .left = f->most, .each = each, .ctx = ctx};
    info->addr = addr;
    H5_TRY(h5_file_read(f, addr, head, bytes, "version 2 B-tree", err));
    h5_cur c = h5_cur_on(head, bytes);
    int sig = h5_cur_sig(&c, "BTHD");
    if (!sig)
        return h5_fail(err, H5_FORMAT, addr, "version 2 B-tree: no signature");
    H5_TRY(h5_sum_check(head, bytes, "version 2 B-tree", addr, err));
    unsigned version = h5_cur_u8(&c);
    info->type = h5_cur_u8(&c);
    w.node_bytes = h5_cur_u32(&c);
    info->record_bytes = h5_cur_u16(&c);
    unsigned depth = h5_cur_u16(&c);
    h5_cur_u16(&c);
    uint64_t root = h5_cur_addr(&c, f), n = h5_cur_u16(&c);
    if (version != 0)
        return h5_fail(err, H5_FORMAT, addr, "version 2 B-tree: version %u", version);
    if (depth > H5_BTREE_DEPTH_MAX)
        return h5_fail(err, H5_LIMIT, addr, "version 2 B-tree: depth %u, H5_BTREE_DEPTH_MAX = %d",
                       depth, H5_BTREE_DEPTH_MAX);
    H5_TRY(settle(&w, depth, err));
    return root == H5_UNDEF ? H5_OK : walk_node(&w, root, depth, n, err);
}
