/*
 * h5_lheap.c - local heaps: the names of old groups and of external files
 *
 * FORMAT   HDF5 spec: III.D "Local Heaps"
 *   header: "HEAP" | version 0 | 3 reserved | bytes of data 8 | free list 8 | address of data 8
 *
 * ERRORS   H5_FORMAT
 * TESTS    t_h5_symtab.c, test_h5show.py
 *
 * SPDX-License-Identifier: MIT
 */
#include <inttypes.h>

#include "h5_lheap.h"

int h5_lheap_load(h5_file *f, uint64_t addr, h5_arena *arena, h5_lheap *out, h5_error *err)
{
    uint8_t head[32], *data;
    size_t bytes = 8 + 2 * (size_t)f->lengths + f->offsets;
    H5_TRY(h5_file_read(f, addr, head, bytes, "local heap", err));
    h5_cur c = h5_cur_on(head, bytes);
    int sig = h5_cur_sig(&c, "HEAP");
    unsigned version = h5_cur_u8(&c);
    h5_cur_take(&c, 3);
    out->addr = addr;
    out->n = h5_cur_length(&c, f);
    h5_cur_length(&c, f);
    uint64_t at = h5_cur_addr(&c, f);
    if (!sig || version != 0)
        return h5_fail(err, H5_FORMAT, addr, "local heap: no signature, or version %u", version);
    H5_TRY(h5_file_inside(f, at, out->n, "local heap", err));
    data = out->n <= SIZE_MAX / 2 ? h5_arena_alloc(arena, (size_t)out->n + 1) : NULL;
    if (!data)
        return h5_fail_nomem(err, "a local heap");
    out->data = data;
    return h5_file_read(f, at, data, (size_t)out->n, "local heap", err);
}

int h5_lheap_text(const h5_lheap *h, uint64_t at, const char **out, h5_error *err)
{
    *out = NULL;
    if (at >= h->n || !memchr(h->data + at, 0, (size_t)(h->n - at)))
        return h5_fail(err, H5_FORMAT, h->addr, "local heap: text at %" PRIu64 " of %" PRIu64, at,
                       h->n);
    *out = (const char *)h->data + at;
    return H5_OK;
}
