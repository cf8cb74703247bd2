/*
 * h5_btree2.c - version 2 B-trees: all records of one, in order, or the one that is looked for
 *
 * A look-up keeps the nodes on its path, one a depth, so that neighbours cost no further read.
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
 * TESTS    t_h5_btree2.c, t_h5_index.c, test_h5show.py
 *
 * SPDX-License-Identifier: MIT
 */
#include <inttypes.h>

#include "h5_btree2.h"
#include "h5_sum.h"

enum { NODE_HEAD = 6, NODE_FIXED = 10 };

static unsigned width_of(uint64_t v)
{
    unsigned n = 1;
    while (n < 8 && v >> 8 * n)
        n++;
    return n;
}

/* What the widths in the nodes follow from. */
static int settle(h5_btree2 *w, unsigned depth, h5_error *err)
{
    uint64_t size = w->record_bytes, all, offsets = w->f->offsets;
    if (size == 0 || w->node_bytes < NODE_FIXED + size)
        return h5_fail(err, H5_FORMAT, w->addr,
                       "version 2 B-tree: records of %" PRIu64 " bytes in nodes of %u", size,
                       (unsigned)w->node_bytes);
    all = w->most[0] = (w->node_bytes - NODE_FIXED) / size;
    w->width = width_of(w->most[0]);
    for (unsigned d = 1; d <= depth; d++) {
        uint64_t pointer = offsets + w->width + w->under[d - 1]; // under a leaf: 0 bytes
        if (w->node_bytes < NODE_FIXED + pointer)
            return h5_fail(err, H5_FORMAT, w->addr, "version 2 B-tree: nodes of %u bytes",
                           (unsigned)w->node_bytes);
        w->most[d] = (w->node_bytes - NODE_FIXED - pointer) / (size + pointer);
        if (!h5_mul_fits(all, w->most[d] + 1, &all) || !h5_add_fits(all, w->most[d], &all))
            all = UINT64_MAX;
        w->under[d] = width_of(all);
    }
    return H5_OK;
}

static int load(h5_btree2 *w, uint64_t addr, unsigned depth, uint64_t n, uint8_t **out,
                h5_error *err)
{
    uint64_t pointer = depth ? w->f->offsets + w->width + w->under[depth - 1] : 0;
    *out = NULL;
    if (n > w->most[depth])
        return h5_fail(err, H5_FORMAT, addr, "version 2 B-tree: %" PRIu64 " records in a node", n);
    uint64_t bytes = NODE_FIXED + n * w->record_bytes + (depth ? (n + 1) * pointer : 0);
    if (bytes > w->left)
        return h5_fail(err, H5_FORMAT, addr,
                       "version 2 B-tree: its nodes are longer than the file");
    w->left -= bytes;
    H5_TRY(h5_file_load(w->f, addr, bytes, "version 2 B-tree", out, err));
    int rc = h5_sum_check(*out, (size_t)bytes, "version 2 B-tree", addr, err);
    if (rc == H5_OK &&
        (memcmp(*out, depth ? "BTIN" : "BTLF", 4) != 0 || (*out)[4] != 0 || (*out)[5] != w->type))
        rc = h5_fail(err, H5_FORMAT, addr, "version 2 B-tree: node without signature");
    if (rc != H5_OK) {
        h5_free(*out);
        *out = NULL;
    }
    return rc;
}

/* Bytes of a pointer to a child. */
static size_t pointer_bytes(const h5_btree2 *w, unsigned depth)
{
    return depth ? w->f->offsets + w->width + w->under[depth - 1] : 0;
}

static void take_child(const h5_btree2 *w, h5_cur *c, unsigned depth, uint64_t *addr, uint64_t *n)
{
    *addr = h5_cur_addr(c, w->f);
    *n = h5_cur_uint(c, w->width);
    if (depth > 1)
        h5_cur_uint(c, w->under[depth - 1]);
}

static int each_of(h5_btree2 *w, uint64_t addr, unsigned depth, uint64_t n, h5_btree2_visit *each,
                   void *ctx, h5_error *err)
{
    uint8_t *p;
    size_t size = w->record_bytes;
    H5_TRY(load(w, addr, depth, n, &p, err));
    int rc = H5_OK;
    h5_cur c = h5_cur_on(p + NODE_HEAD + n * size, (size_t)(n + 1) * pointer_bytes(w, depth));
    for (uint64_t i = 0; rc == H5_OK && i <= n; i++) {
        if (depth) {
            uint64_t child, have;
            take_child(w, &c, depth, &child, &have);
            rc = each_of(w, child, depth - 1, have, each, ctx, err);
        }
        if (rc == H5_OK && i < n)
            rc = each(ctx, p + NODE_HEAD + i * size, err);
    }
    h5_free(p);
    return rc;
}

int h5_btree2_open(h5_btree2 *t, h5_file *f, uint64_t addr, h5_error *err)
{
    uint8_t head[38];
    size_t bytes = 22 + f->offsets + f->lengths;
    memset(t, 0, sizeof *t);
    t->f = f;
    t->left = f->most;
    t->addr = addr;
    H5_TRY(h5_file_read(f, addr, head, bytes, "version 2 B-tree", err));
    h5_cur c = h5_cur_on(head, bytes);
    int sig = h5_cur_sig(&c, "BTHD");
    if (!sig)
        return h5_fail(err, H5_FORMAT, addr, "version 2 B-tree: no signature");
    H5_TRY(h5_sum_check(head, bytes, "version 2 B-tree", addr, err));
    unsigned version = h5_cur_u8(&c);
    t->type = h5_cur_u8(&c);
    t->node_bytes = h5_cur_u32(&c);
    t->record_bytes = h5_cur_u16(&c);
    t->depth = h5_cur_u16(&c);
    h5_cur_u16(&c);
    t->root = h5_cur_addr(&c, f);
    t->n = h5_cur_u16(&c);
    if (version != 0)
        return h5_fail(err, H5_FORMAT, addr, "version 2 B-tree: version %u", version);
    if (t->depth > H5_BTREE_DEPTH_MAX)
        return h5_fail(err, H5_LIMIT, addr, "version 2 B-tree: depth %u, H5_BTREE_DEPTH_MAX = %d",
                       t->depth, H5_BTREE_DEPTH_MAX);
    return settle(t, t->depth, err);
}

int h5_btree2_each(h5_btree2 *t, h5_btree2_visit *each, void *ctx, h5_error *err)
{
    return t->root == H5_UNDEF ? H5_OK : each_of(t, t->root, t->depth, t->n, each, ctx, err);
}

/* Makes the node at addr the one of its depth. */
static int enter(h5_btree2 *t, uint64_t addr, unsigned depth, uint64_t n, const uint8_t **out,
                 h5_error *err)
{
    h5_btree2_node *b = &t->path[depth];
    if (!b->p || b->addr != addr || b->n != n) {
        h5_free(b->p);
        H5_TRY(load(t, addr, depth, n, &b->p, err)); // b->p is NULL after a failure
        b->addr = addr;
        b->n = n;
    }
    *out = b->p + NODE_HEAD;
    return H5_OK;
}

int h5_btree2_find(h5_btree2 *t, int (*compare)(const void *ctx, const uint8_t *record),
                   const void *ctx, const uint8_t **record, h5_error *err)
{
    uint64_t addr = t->root, n = t->n;
    size_t size = t->record_bytes;
    *record = NULL;
    for (unsigned depth = t->depth; addr != H5_UNDEF; depth--) {
        const uint8_t *p;
        H5_TRY(enter(t, addr, depth, n, &p, err));
        uint64_t lo = 0, hi = n; // the records before lo come before what is looked for
        while (lo < hi) {
            uint64_t mid = (lo + hi) / 2;
            int c = compare(ctx, p + mid * size);
            if (c == 0) {
                *record = p + mid * size;
                return H5_OK;
            }
            if (c > 0)
                lo = mid + 1;
            else
                hi = mid;
        }
        if (depth == 0)
            break;
        size_t pointer = pointer_bytes(t, depth);
        h5_cur c = h5_cur_on(p + n * size + lo * pointer, pointer);
        take_child(t, &c, depth, &addr, &n);
    }
    return H5_OK;
}

void h5_btree2_close(h5_btree2 *t)
{
    for (int i = 0; i <= H5_BTREE_DEPTH_MAX; i++)
        h5_free(t->path[i].p);
    memset(t, 0, sizeof *t);
}
