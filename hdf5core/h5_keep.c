/*
 * h5_keep.c - blocks of a file that were read and checked: a hash table by address and length
 *
 * Two structures of a damaged file may claim the same address with different lengths; they are two
 * blocks.
 *
 * TESTS    t_h5_keep.c
 *
 * SPDX-License-Identifier: MIT
 */
#include "h5_keep.h"

/* Where a block is or belongs. */
static h5_kept *place(const h5_keep *k, uint64_t addr, uint64_t bytes)
{
    size_t i = (size_t)((addr ^ bytes << 48) * 0x9E3779B97F4A7C15u >> 20);
    for (;; i++) {
        h5_kept *e = &k->table[i & (k->cap - 1)];
        if (!e->p || (e->addr == addr && e->bytes == bytes))
            return e;
    }
}

static int grow(h5_keep *k)
{
    h5_keep wider = *k;
    wider.cap = k->cap ? k->cap * 2 : 16;
    wider.table = h5_calloc(wider.cap, sizeof *wider.table);
    if (!wider.table)
        return 0;
    for (size_t i = 0; i < k->cap; i++)
        if (k->table[i].p)
            *place(&wider, k->table[i].addr, k->table[i].bytes) = k->table[i];
    h5_free(k->table);
    *k = wider;
    return 1;
}

const h5_kept *h5_keep_find(const h5_keep *k, uint64_t addr, uint64_t bytes)
{
    const h5_kept *e = k->n ? place(k, addr, bytes) : NULL;
    return e && e->p ? e : NULL;
}

int h5_keep_add(h5_keep *k, uint64_t addr, uint64_t bytes, uint8_t *p, h5_error *err)
{
    if (k->n * 2 >= k->cap && !grow(k)) {
        h5_free(p);
        return h5_fail_nomem(err, "blocks of a file");
    }
    *place(k, addr, bytes) = (h5_kept){addr, bytes, p};
    k->n++;
    k->bytes += bytes;
    return H5_OK;
}

void h5_keep_free(h5_keep *k)
{
    for (size_t i = 0; i < k->cap; i++)
        h5_free(k->table[i].p);
    h5_free(k->table);
    memset(k, 0, sizeof *k);
}
