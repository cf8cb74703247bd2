/*
 * h5_msg_filter.c - filter pipeline message
 *
 * FORMAT   HDF5 spec: IV.A.2.l "The Data Storage - Filter Pipeline Message", versions 1 and 2
 *   version 1: 1 | number of filters 1 | reserved 6 | filters
 *   version 2: 2 | number of filters 1 | filters
 *   filter: id 2 | name length 2 (version 2: only for id >= 256) | flags 2 | number of values 2 |
 *           name | values 4 each
 *     Version 1 pads the name to 8 bytes and an odd number of values with 4.
 *
 * ERRORS   H5_FORMAT, H5_NOMEM. More filters than h5_pipeline holds: noted in the object as
 *          unreadable.
 * TESTS    t_h5_msg.c
 *
 * SPDX-License-Identifier: MIT
 */
#include "h5_filter.h"
#include "h5_msg.h"

/* More client values than h5_filter holds go into the arena, all of them. */
static int parse_filter(h5_object *o, const h5_msg *m, h5_cur *c, unsigned version, h5_filter *f,
                        h5_error *err)
{
    f->id = h5_cur_u16(c);
    unsigned name = version == 1 || f->id >= 256 ? h5_cur_u16(c) : 0;
    f->flags = h5_cur_u16(c);
    f->nvalue = h5_cur_u16(c);
    if (version == 1)
        name = (name + 7) / 8 * 8;
    h5_cur_take(c, name);
    if (c->bad || c->left / 4 < f->nvalue)
        return h5_msg_short(m, "filter pipeline", err);
    uint32_t *value = f->value;
    if (f->nvalue > H5_FILTER_VALUES_MAX) {
        f->more = value = h5_arena_alloc(&o->arena, f->nvalue * sizeof *value);
        if (!value)
            return h5_fail_nomem(err, "client data of a filter");
    }
    for (uint32_t i = 0; i < f->nvalue; i++)
        value[i] = h5_cur_u32(c);
    if (version == 1 && f->nvalue % 2)
        h5_cur_take(c, 4);
    return c->bad ? h5_msg_short(m, "filter pipeline", err) : H5_OK;
}

int h5_msg_filters_decode(h5_object *o, const h5_msg *m, h5_error *err)
{
    h5_cur c = h5_cur_on(m->body, m->size);
    h5_pipeline *p = &o->info->pipeline;
    unsigned version = h5_cur_u8(&c), n = h5_cur_u8(&c);
    if (version == 1)
        h5_cur_take(&c, 6);
    if (c.bad)
        return h5_msg_short(m, "filter pipeline", err);
    if (version != 1 && version != 2)
        return h5_fail(err, H5_FORMAT, m->addr, "filter pipeline message: version %u", version);
    if (n > H5_FILTERS_MAX)
        return h5_object_refuse(o, m->addr, "%s", "more filters than H5_FILTERS_MAX");
    for (unsigned i = 0; i < n; i++)
        H5_TRY(parse_filter(o, m, &c, version, &p->filter[i], err));
    p->n = (int)n;
    return H5_OK;
}

void h5_filters_encode(h5_buf *b, const h5_pipeline *p)
{
    h5_buf_u8(b, 2);
    h5_buf_u8(b, (unsigned)p->n);
    for (int i = 0; i < p->n; i++) {
        const h5_filter *f = &p->filter[i];
        const h5_filter_row *row = h5_filter_find(f->id);
        size_t name = f->id >= 256 && row ? strlen(row->name) + 1 : 0;
        h5_buf_u16(b, f->id);
        if (f->id >= 256)
            h5_buf_u16(b, (unsigned)name);
        h5_buf_u16(b, f->flags);
        h5_buf_u16(b, f->nvalue);
        h5_buf_put(b, name ? row->name : "", name);
        for (uint32_t k = 0; k < f->nvalue; k++)
            h5_buf_u32(b, f->value[k]);
    }
}
