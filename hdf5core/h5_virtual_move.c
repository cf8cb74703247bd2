/*
 * h5_virtual_move.c - values of variable length that a virtual dataset takes from another file
 *
 * An element names a place in the global heaps of its own file. Here it is made to name one in the
 * heaps of the virtual dataset's file instead, whose objects are then the bytes that the other
 * file's heaps have read: they are not copied, but for sequences whose own elements must be changed
 * as well.
 *
 * FORMAT   element: length 4 | collection, the size of offsets | index 4
 * ERRORS   H5_UNSUPPORTED references, and no heaps; H5_LIMIT H5_VIRTUAL_WORK_MAX; those of heaps
 * TESTS    test_h5virtual.py
 *
 * SPDX-License-Identifier: MIT
 */
#include "h5_conv.h"
#include "h5_virtual.h"

static void put(uint8_t *p, uint64_t v, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        p[i] = (uint8_t)(v >> 8 * i);
}

static int move_sequence(h5_deep *deep, h5_heaps *from, const h5_type *t, uint8_t *p, h5_error *err)
{
    const uint8_t *data;
    uint64_t n, bytes, kept = h5_heaps_kept_addr(deep->heaps);
    unsigned width = t->size - 8;
    uint32_t index;
    h5_cur c = h5_cur_on(p + 4, width);
    if (h5_cur_uint(&c, width) == kept) // came from a file further away
        return H5_OK;
    H5_TRY(h5_vlen(from, t, p, &data, &n, err));
    if (n == 0) {
        memset(p, 0, t->size);
        return H5_OK;
    }
    // As many as the heap holds: h5_vlen has compared them.
    bytes = n * (t->is_text ? 1 : t->base->size);
    if (!t->is_text && h5_type_points(t->base)) {
        H5_TRY(h5_deep_spend(deep, n * H5_VIRTUAL_WORK_INNER, err));
        uint8_t *copy = h5_heaps_alloc(deep->heaps, (size_t)bytes);
        if (!copy)
            return h5_fail_nomem(err, "values of another file");
        memcpy(copy, data, (size_t)bytes);
        H5_TRY(h5_virtual_move(deep, from, t->base, copy, n, err));
        data = copy;
    }
    H5_TRY(h5_heaps_keep(deep->heaps, data, bytes, &index, err));
    put(p, n, 4);
    put(p + 4, kept, width);
    put(p + 4 + width, index, 4);
    return H5_OK;
}

/* One element. */
static int move_one(h5_deep *deep, h5_heaps *from, const h5_type *t, uint8_t *p, h5_error *err)
{
    switch (t->cls) {
    case H5_CLASS_VLEN:
        return move_sequence(deep, from, t, p, err);
    case H5_CLASS_REFERENCE:
        return h5_fail(err, H5_UNSUPPORTED, H5_UNDEF,
                       "virtual dataset of references into another file");
    case H5_CLASS_ARRAY:
        return h5_virtual_move(deep, from, t->base, p, t->size / t->base->size, err);
    default: // a compound
        for (uint32_t i = 0; i < t->nmember; i++)
            if (h5_type_points(t->member[i].type))
                H5_TRY(move_one(deep, from, t->member[i].type, p + t->member[i].offset, err));
        return H5_OK;
    }
}

int h5_virtual_move(h5_deep *deep, h5_heaps *from, const h5_type *t, uint8_t *p, uint64_t n,
                    h5_error *err)
{
    for (uint64_t i = 0; i < n; i++, p += t->size)
        H5_TRY(move_one(deep, from, t, p, err));
    return H5_OK;
}
