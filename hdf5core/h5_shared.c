/*
 * h5_shared.c - messages that stand elsewhere: in another object header, or in the heap of messages
 * that many objects have in common
 *
 * FORMAT   HDF5 spec: IV.A.2 "Shared message", III.H "Shared Object Header Message Table"
 *   version 1: 1 | type 1 | 6 reserved | 8 unused | header 8
 *   version 2: 2 | type 1 | header 8
 *   version 3: 3 | type 1 | type 1: id in the heap 8; type 2: header 8
 *   table: "SMTB" | indexes | lookup3
 *   index: version 0 | type 1 | kinds of messages 2 (bit n: those of id n) | 3 numbers: least bytes
 *          4, list up to 2, tree from 2 | messages 2 | index 8 | heap 8
 *
 * ERRORS   H5_FORMAT
 * TESTS    test_h5show.py
 *
 * SPDX-License-Identifier: MIT
 */
#include <inttypes.h>

#include "h5_fheap.h"
#include "h5_msg.h"
#include "h5_sum.h"

enum { IN_HEAP = 1 };

/* The heap that holds the messages of an id. */
static int heap_of(h5_file *f, uint16_t id, uint64_t *heap, h5_error *err)
{
    uint8_t *p;
    size_t n = 4 + f->nsohm * (14 + 2 * (size_t)f->offsets) + 4;
    *heap = H5_UNDEF;
    if (f->sohm == H5_UNDEF)
        return h5_fail(err, H5_FORMAT, H5_UNDEF, "shared message: the file has no table of them");
    H5_TRY(h5_file_load(f, f->sohm, n, "shared message table", &p, err));
    int rc = h5_sum_check(p, n, "shared message table", f->sohm, err);
    h5_cur c = h5_cur_on(p, n - 4);
    if (rc == H5_OK && !h5_cur_sig(&c, "SMTB"))
        rc = h5_fail(err, H5_FORMAT, f->sohm, "shared message table: no signature");
    for (unsigned i = 0; rc == H5_OK && i < f->nsohm; i++) {
        h5_cur_take(&c, 2);
        unsigned kinds = h5_cur_u16(&c);
        h5_cur_take(&c, 10);
        h5_cur_addr(&c, f);
        uint64_t addr = h5_cur_addr(&c, f);
        // Old fill values are counted as new ones.
        if (kinds >> (id == H5_MSG_FILL_OLD ? H5_MSG_FILL : id) & 1)
            *heap = addr;
    }
    h5_free(p);
    if (rc == H5_OK && *heap == H5_UNDEF)
        rc = h5_fail(err, H5_FORMAT, f->sohm, "shared message table: no index for messages %02x",
                     id);
    return rc;
}

int h5_shared_in_heap(h5_object *o, uint16_t id, const uint8_t heap_id[8], h5_msg *out,
                      h5_error *err)
{
    uint64_t addr;
    size_t bytes;
    memset(out, 0, sizeof *out);
    if (!o->f)
        return h5_fail(err, H5_MISUSE, H5_UNDEF, "shared message without a file");
    H5_TRY(heap_of(o->f, id, &addr, err));
    h5_fheap heap;
    int rc = h5_fheap_open(&heap, o->f, addr, err);
    if (rc == H5_OK)
        rc = h5_fheap_get(&heap, heap_id, 8, &o->arena, &out->body, &bytes, err);
    h5_fheap_close(&heap);
    H5_TRY(rc);
    if (bytes > UINT32_MAX)
        return h5_fail(err, H5_FORMAT, addr, "shared message of %zu bytes", bytes);
    out->id = id;
    out->size = (uint32_t)bytes;
    out->addr = addr;
    return H5_OK;
}

/* The message of an id in the header at addr. */
static int in_header(h5_object *o, uint16_t id, uint64_t addr, h5_msg *out, h5_error *err)
{
    h5_ohdr oh;
    H5_TRY(h5_ohdr_read(o->f, addr, &oh, err));
    int rc = H5_OK;
    for (size_t i = 0; i < oh.nmsg && !out->body; i++) {
        // One that is shared itself would be the start of a chain; no library writes that.
        if (oh.msg[i].id != id || oh.msg[i].flags & H5_MSG_SHARED)
            continue;
        uint8_t *copy = h5_arena_alloc(&o->arena, oh.msg[i].size + 1);
        if (!copy) {
            rc = h5_fail_nomem(err, "a shared message");
            break;
        }
        memcpy(copy, oh.msg[i].body, oh.msg[i].size);
        *out = oh.msg[i];
        out->body = copy;
        out->shared_from = addr;
    }
    if (rc == H5_OK && !out->body)
        rc = h5_fail(err, H5_FORMAT, addr, "shared message: none of kind %02x in the header", id);
    h5_ohdr_free(&oh);
    return rc;
}

int h5_shared_find(h5_object *o, uint16_t id, const uint8_t *body, size_t n, uint64_t at,
                   h5_msg *out, h5_error *err)
{
    h5_cur c = h5_cur_on(body, n);
    unsigned version = h5_cur_u8(&c), type = h5_cur_u8(&c);
    memset(out, 0, sizeof *out);
    if (version == 1)
        h5_cur_take(&c, 6 + (size_t)h5_lengths(o->f));
    int in_heap = version == 3 && type == IN_HEAP;
    const uint8_t *where = h5_cur_take(&c, in_heap ? 8 : h5_offsets(o->f));
    if (!where || version < 1 || version > 3)
        return h5_fail(err, H5_FORMAT, at, "shared message: version %u, %zu bytes", version, n);
    if (!o->f)
        return h5_fail(err, H5_MISUSE, at, "shared message without a file");
    if (in_heap)
        return h5_shared_in_heap(o, id, where, out, err);
    return in_header(o, id, h5_addr_at(where, o->f), out, err);
}
