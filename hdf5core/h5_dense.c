/*
 * h5_dense.c - links and attributes that stand in a heap with an index
 *
 * The index by name is walked from its first record to its last; each record names an object of the
 * heap, whose bytes are those of a link or attribute message. Objects that are longer together than
 * the file are not distinct.
 *
 * FORMAT   HDF5 spec: III.A.2 "Version 2 B-trees", records of type 5 and 8
 *   link:      hash 4 | heap id 7
 *   attribute: heap id 8 | message flags 1 | creation order 4 | hash 4. Flag bit 1: the id is one
 *     of
 *              the heap of shared messages.
 *
 * ERRORS   H5_FORMAT
 * TESTS    test_h5show.py
 *
 * SPDX-License-Identifier: MIT
 */
#include "h5_btree2.h"
#include "h5_fheap.h"
#include "h5_msg.h"

enum { LINK_TYPE = 5, LINK_BYTES = 11, LINK_ID = 7, ATTR_TYPE = 8, ATTR_BYTES = 17, ATTR_ID = 8 };

typedef struct load {
    h5_object *o;
    h5_fheap heap;
    h5_btree2 info;
    uint64_t left; /* bytes that may still be taken */
    int is_attr;
} load;

static int add(void *ctx, const uint8_t *record, h5_error *err)
{
    load *l = ctx;
    size_t bytes;
    h5_msg m = {.id = l->is_attr ? H5_MSG_ATTR : H5_MSG_LINK, .addr = l->heap.addr};
    if (l->info.type != (l->is_attr ? ATTR_TYPE : LINK_TYPE) ||
        l->info.record_bytes != (l->is_attr ? ATTR_BYTES : LINK_BYTES))
        return h5_fail(err, H5_FORMAT, l->info.addr, "dense storage: index of type %u, %u bytes",
                       l->info.type, l->info.record_bytes);
    if (l->is_attr && record[ATTR_ID] & H5_MSG_SHARED) {
        H5_TRY(h5_shared_in_heap(l->o, H5_MSG_ATTR, record, &m, err));
    } else {
        H5_TRY(h5_fheap_get(&l->heap, record + (l->is_attr ? 0 : 4), l->is_attr ? ATTR_ID : LINK_ID,
                            &l->o->arena, &m.body, &bytes, err));
        if (bytes > UINT32_MAX)
            return h5_fail(err, H5_FORMAT, l->heap.addr, "dense storage: message of %zu bytes",
                           bytes);
        m.size = (uint32_t)bytes;
    }
    if (m.size > l->left)
        return h5_fail(err, H5_FORMAT, l->heap.addr, "dense storage: longer than the file");
    l->left -= m.size;
    return l->is_attr ? h5_msg_attr_decode(l->o, &m, err) : h5_msg_link_decode(l->o, &m, err);
}

static int load_from(h5_object *o, const h5_dense *d, int is_attr, h5_error *err)
{
    load l = {.o = o, .left = o->f->most, .is_attr = is_attr};
    int rc = h5_fheap_open(&l.heap, o->f, d->heap, err);
    // A heap may hold more than the file where it is compressed.
    if (rc == H5_OK && l.heap.pipeline.n)
        l.left = H5_DECODE_BYTES_MAX + 16 * o->f->most;
    if (rc == H5_OK)
        rc = h5_btree2_open(&l.info, o->f, d->index, err);
    if (rc == H5_OK)
        rc = h5_btree2_each(&l.info, add, &l, err);
    h5_fheap_close(&l.heap);
    return rc;
}

int h5_dense_load(h5_object *o, h5_error *err)
{
    if (o->links.heap != H5_UNDEF)
        H5_TRY(load_from(o, &o->links, 0, err));
    if (o->attrs.heap != H5_UNDEF)
        H5_TRY(load_from(o, &o->attrs, 1, err));
    return H5_OK;
}
