/*
 * h5_msg_fill.c - fill value messages: what elements read as that were never written
 *
 * FORMAT   HDF5 spec: IV.A.2.e "The Data Storage - Fill Value (Old) Message" and IV.A.2.f "... Fill
 *          Value Message"
 *   old:       size 4 | value
 *   version 1: 1 | allocation time 1 | write time 1 | defined 1 | size 4 | value
 *   version 2: 2 | allocation time 1 | write time 1 | defined 1 | if defined: size 4 | value
 *   version 3: 3 | flags 1: bits 0-1 allocation, 2-3 write time, 4 undefined, 5 defined | if bit 5:
 *              size 4 | value
 *   A size of 0 means zeros. Written: version 3, incremental allocation (late where not chunked),
 *     write time "if set".
 *
 * ERRORS   H5_FORMAT
 * TESTS    t_h5_msg.c
 *
 * SPDX-License-Identifier: MIT
 */
#include "h5_msg.h"

enum {
    ALLOC_LATE = 2,
    ALLOC_INCREMENTAL = 3,
    NEVER = 1,
    WRITE_IF_SET = 2 << 2,
    UNDEFINED = 0x10,
    DEFINED = 0x20
};

static int take_value(h5_object *o, const h5_msg *m, h5_cur *c, h5_error *err)
{
    uint32_t size = h5_cur_u32(c);
    const uint8_t *value = h5_cur_take(c, size);
    if (c->bad)
        return h5_msg_short(m, "fill value", err);
    o->fill = size ? value : NULL;
    o->fill_bytes = size;
    o->info->fill_kind = size ? H5_FILL_USER
                              : H5_FILL_DEFAULT; // an old one of no size says as much
    o->info->fill_value = o->fill;
    return H5_OK;
}

int h5_msg_fill_old_decode(h5_object *o, const h5_msg *m, h5_error *err)
{
    h5_cur c = h5_cur_on(m->body, m->size);
    if (o->seen >> H5_MSG_FILL & 1)
        return H5_OK; // writers that keep both put the same value into the new one
    o->info->alloc_time = ALLOC_LATE;
    o->info->fill_time = 2;
    return take_value(o, m, &c, err);
}

int h5_msg_fill_decode(h5_object *o, const h5_msg *m, h5_error *err)
{
    h5_cur c = h5_cur_on(m->body, m->size);
    unsigned version = h5_cur_u8(&c), flags = h5_cur_u8(&c);
    int has_value, undefined;
    if (version == 3) {
        has_value = (flags & DEFINED) != 0;
        o->info->alloc_time = flags & 3;
        o->info->fill_time = flags >> 2 & 3;
        undefined = (flags & UNDEFINED) != 0;
    } else {
        o->info->alloc_time = (uint8_t)flags;
        o->info->fill_time = h5_cur_u8(&c);
        int defined = h5_cur_u8(&c) != 0;
        has_value = defined || version == 1;
        undefined = !defined;
    }
    if (c.bad)
        return h5_msg_short(m, "fill value", err);
    if (version < 1 || version > 3 ||
        (version == 3 && (flags & (UNDEFINED | DEFINED)) == (UNDEFINED | DEFINED)))
        return h5_fail(err, H5_FORMAT, m->addr, "fill value message: version %u, flags %02x",
                       version, flags);
    o->fill = NULL;
    o->fill_bytes = 0;
    o->info->fill_value = NULL;
    o->info->fill_kind = H5_FILL_DEFAULT;
    if (has_value)
        H5_TRY(take_value(o, m, &c, err));
    if (undefined)
        o->info->fill_kind = H5_FILL_UNDEFINED;
    o->no_fill = undefined && o->info->fill_time != NEVER;
    return H5_OK;
}

void h5_fill_encode(h5_buf *b, const h5_type *t, int chunked, const void *fill)
{
    h5_buf_u8(b, 3);
    h5_buf_u8(b, (chunked ? ALLOC_INCREMENTAL : ALLOC_LATE) | WRITE_IF_SET | (fill ? DEFINED : 0));
    if (!fill)
        return;
    h5_buf_u32(b, t->size);
    uint8_t *at = h5_buf_room(b, t->size);
    const uint8_t *from = fill;
    int reverse = t->big_endian && t->cls != H5_CLASS_STRING;
    for (uint32_t i = 0; at && i < t->size; i++)
        at[i] = from[reverse ? t->size - 1 - i : i];
}
