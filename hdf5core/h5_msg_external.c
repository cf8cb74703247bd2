/*
 * h5_msg_external.c - external data files message: contiguous data in other files
 *
 * FORMAT   HDF5 spec: IV.A.2.h "The Data Storage - External Data Files Message"
 *   1 | 3 reserved | slots allocated 2 | slots used 2 | local heap of the names 8 |
 *   a slot: name in the heap 8 | offset in the file 8 | bytes 8 (all ones: to its end)
 *
 * ERRORS   H5_FORMAT
 * TESTS    t_h5_msg.c, test_h5show.py
 *
 * SPDX-License-Identifier: MIT
 */
#include "h5_lheap.h"
#include "h5_msg.h"

int h5_msg_external_decode(h5_object *o, const h5_msg *m, h5_error *err)
{
    h5_cur c = h5_cur_on(m->body, m->size);
    h5_lheap heap;
    unsigned version = h5_cur_u8(&c);
    h5_cur_take(&c, 5);
    unsigned n = h5_cur_u16(&c);
    uint64_t names = h5_cur_addr(&c, o->f);
    if (c.bad || n > c.left / (3 * (size_t)h5_lengths(o->f)))
        return h5_msg_short(m, "external data files", err);
    if (version != 1 || n == 0)
        return h5_fail(err, H5_FORMAT, m->addr, "external data files message: version %u, %u files",
                       version, n);
    if (!o->f)
        return h5_fail(err, H5_MISUSE, m->addr, "external data files without a file");
    H5_TRY(h5_lheap_load(o->f, names, &o->arena, &heap, err));
    h5_external *list = h5_arena_alloc(&o->arena, n * sizeof *list);
    if (!list)
        return h5_fail_nomem(err, "external data files");
    for (unsigned i = 0; i < n; i++) {
        H5_TRY(h5_lheap_text(&heap, h5_cur_length(&c, o->f), &list[i].name, err));
        list[i].offset = h5_cur_length(&c, o->f);
        list[i].size = h5_cur_length(&c, o->f);
    }
    o->info->external = list;
    o->info->nexternal = n;
    return H5_OK;
}
