/*
 * h5_symtab.c - old groups: symbol table message, version 1 B-tree of nodes, symbols
 *
 * FORMAT   HDF5 spec: IV.A.2.r "The Symbol Table Message", III.A.1 "Version 1 B-trees", III.B
 *          "Symbol Table Node"
 *   message: B-tree 8 | local heap 8
 *   B-tree:  "TREE" | type 0 | level 1 | children 2 | left 8 | right 8 | key 8, child 8 ... key 8
 *   node:    "SNOD" | version 1 | 1 | symbols 2 | symbols
 *   symbol:  name in the heap 8 | object header 8 | cache 4 | 4 | scratch 16. Cache 2 is a soft
 *     link;
 *            the scratch then starts with the place of its target in the heap.
 *   No nodes are read that together are longer than the file: a tree that meets itself uses that
 *     up.
 *
 * ERRORS   H5_FORMAT; H5_LIMIT H5_BTREE_DEPTH_MAX
 * TESTS    t_h5_symtab.c, test_h5show.py
 *
 * SPDX-License-Identifier: MIT
 */
#include <inttypes.h>

#include "h5_lheap.h"
#include "h5_msg.h"

enum { SYMBOLS_HEAD = 8, CACHED_SOFT = 2 };

/* Bytes of a symbol. */
static size_t symbol_bytes(const h5_file *f)
{
    return 24 + (size_t)f->lengths + f->offsets;
}

int h5_msg_symbols_decode(h5_object *o, const h5_msg *m, h5_error *err)
{
    h5_cur c = h5_cur_on(m->body, m->size);
    o->symbols = h5_cur_addr(&c, o->f);
    o->symbol_heap = h5_cur_addr(&c, o->f);
    return c.bad ? h5_msg_short(m, "symbol table", err) : H5_OK;
}

typedef struct walk {
    h5_object *o;
    h5_lheap heap;
    uint64_t left; /* bytes of nodes that may still be read */
} walk;

/* Reads n bytes of a node into fresh memory. */
static int load(walk *w, uint64_t addr, uint64_t n, uint8_t **out, h5_error *err)
{
    *out = NULL;
    if (n > w->left)
        return h5_fail(err, H5_FORMAT, addr, "symbol table: its nodes are longer than the file");
    w->left -= n;
    return h5_file_load(w->o->f, addr, n, "symbol table", out, err);
}

static int add_symbol(walk *w, h5_cur *c, h5_error *err)
{
    h5_link_info info = {0};
    const char *name;
    uint64_t at = h5_cur_length(c, w->o->f), addr = h5_cur_addr(c, w->o->f);
    uint32_t cache = h5_cur_u32(c);
    h5_cur_take(c, 4);
    const uint8_t *scratch = h5_cur_take(c, 16);
    H5_TRY(h5_lheap_text(&w->heap, at, &name, err));
    if (cache == CACHED_SOFT && scratch) {
        info.kind = H5_LINK_SOFT;
        H5_TRY(h5_lheap_text(&w->heap, h5_get32(scratch), &info.path, err));
        addr = H5_UNDEF;
    }
    return h5_object_add_link(w->o, name, addr, &info, err);
}

static int add_symbols(walk *w, uint64_t addr, h5_error *err)
{
    uint8_t head[SYMBOLS_HEAD], *p;
    H5_TRY(h5_file_read(w->o->f, addr, head, sizeof head, "symbol table node", err));
    h5_cur c = h5_cur_on(head, sizeof head);
    int sig = h5_cur_sig(&c, "SNOD");
    unsigned version = h5_cur_u8(&c);
    h5_cur_u8(&c);
    unsigned n = h5_cur_u16(&c);
    if (!sig || version != 1)
        return h5_fail(err, H5_FORMAT, addr, "symbol table node: no signature, or version %u",
                       version);
    H5_TRY(load(w, addr, SYMBOLS_HEAD + n * (uint64_t)symbol_bytes(w->o->f), &p, err));
    c = h5_cur_on(p + SYMBOLS_HEAD, n * symbol_bytes(w->o->f));
    int rc = H5_OK;
    for (unsigned i = 0; rc == H5_OK && i < n; i++)
        rc = add_symbol(w, &c, err);
    h5_free(p);
    return rc;
}

/* Every level is one below that above it, so the recursion ends. level -1: any. */
static int add_tree(walk *w, uint64_t addr, int level, h5_error *err)
{
    const h5_file *f = w->o->f;
    uint8_t head[8], *p;
    size_t begin = 8 + 2 * (size_t)f->offsets, step = (size_t)f->lengths + f->offsets;
    int rc = H5_OK;
    H5_TRY(h5_file_read(w->o->f, addr, head, sizeof head, "version 1 B-tree", err));
    h5_cur c = h5_cur_on(head, sizeof head);
    int sig = h5_cur_sig(&c, "TREE"), type = h5_cur_u8(&c), have = h5_cur_u8(&c);
    unsigned n = h5_cur_u16(&c);
    if (!sig || type != 0 || (level >= 0 && have != level))
        return h5_fail(err, H5_FORMAT, addr, "symbol table: node of type %d, level %d", type, have);
    if (have > H5_BTREE_DEPTH_MAX)
        return h5_fail(err, H5_LIMIT, addr, "symbol table: %d levels, H5_BTREE_DEPTH_MAX = %d",
                       have, H5_BTREE_DEPTH_MAX);
    H5_TRY(load(w, addr, begin + n * (uint64_t)step, &p, err));
    for (unsigned i = 0; rc == H5_OK && i < n; i++) {
        uint64_t child = h5_addr_at(p + begin + i * step + f->lengths, f);
        rc = have > 0 ? add_tree(w, child, have - 1, err) : add_symbols(w, child, err);
    }
    h5_free(p);
    return rc;
}

int h5_symtab_load(h5_object *o, h5_error *err)
{
    walk w = {.o = o, .left = o->f->most};
    H5_TRY(h5_lheap_load(o->f, o->symbol_heap, &o->arena, &w.heap, err));
    return add_tree(&w, o->symbols, -1, err);
}
