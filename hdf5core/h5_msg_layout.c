/*
 * h5_msg_layout.c - data layout message: where the values of a dataset are
 *
 * FORMAT   HDF5 spec: IV.A.2.i "The Data Layout Message", versions 1 to 5
 *   versions 1 and 2: version 1 | rank 1 (chunked: + 1) | class 1 | 5 reserved | address 8 unless
 *                     compact | sizes 4 each | compact: size 4 | data
 *   version 1 | class 1: 0 compact, 1 contiguous, 2 chunked, 3 virtual
 *   compact:    size 2 | data
 *   contiguous: address 8 | size 8
 *   virtual:    global heap collection 8 | object in it 4
 *   chunked, version 3: rank+1 1 | address of a version 1 B-tree 8 | chunk sizes 4 each, last the
 *                       element size
 *   chunked, version 4: flags 1 | rank+1 1 | width 1 | chunk sizes of that width, last the element
 *                       size | index type 1 |
 *     1 single chunk:     filtered (flag bit 1): size 8 | mask 4;  address of the chunk 8
 *     2 implicit:         address of the first chunk 8
 *     3 fixed array:      page bits 1 | address of its header 8
 *     4 extensible array: 5 bytes | address 8
 *     5 version 2 B-tree: 6 bytes | address 8
 *   Flag bit 0: chunks that are partly outside the dataset are not filtered.
 *   Version 5 (HDF5 2.0) is version 4 but for the indexes, where a stored size has 8 bytes.
 *   Written: version 4 with a fixed array for chunks; version 3 for contiguous, which every libhdf5
 *            reads.
 *
 * ERRORS   H5_FORMAT. Layouts that cannot be read are noted in the object (h5_object.refuse).
 * TESTS    t_h5_msg.c
 *
 * SPDX-License-Identifier: MIT
 */
#include <inttypes.h>

#include "h5_msg.h"

enum { FLAG_RAW_EDGES = 1, FLAG_SINGLE_FILTERED = 2 };

/* rank+1 chunk sizes of `width` bytes each; all but the last are dimensions of the chunk. */
static int parse_chunk_sizes(h5_object *o, const h5_msg *m, h5_cur *c, unsigned width,
                             h5_error *err)
{
    unsigned n = o->layout.dimensions;
    if (n < 2 || n > H5_RANK_MAX + 1)
        return h5_fail(err, H5_FORMAT, m->addr, "data layout message: %u chunk dimensions", n);
    for (unsigned i = 0; i < n; i++) {
        uint64_t v = h5_cur_uint(c, width);
        if (c->bad)
            return h5_msg_short(m, "data layout", err);
        if (v > UINT32_MAX && o->layout.wide_sizes)
            return h5_object_refuse(o, m->addr, "%s", "chunk dimension of more than 32 bits");
        if (v == 0 || v > UINT32_MAX)
            return h5_fail(err, H5_FORMAT, m->addr, "data layout message: chunk size %" PRIu64, v);
        if (i + 1 < n)
            o->info->chunk[i] = (uint32_t)v;
        else
            o->layout.element = v;
    }
    return H5_OK;
}

static int parse_chunked_v3(h5_object *o, const h5_msg *m, h5_cur *c, h5_error *err)
{
    o->layout.dimensions = h5_cur_u8(c);
    o->layout.index = H5_INDEX_BTREE1;
    o->info->addr = h5_cur_addr(c, o->f);
    return parse_chunk_sizes(o, m, c, 4, err);
}

static int parse_chunked_v4(h5_object *o, const h5_msg *m, h5_cur *c, h5_error *err)
{
    unsigned flags = h5_cur_u8(c);
    o->layout.dimensions = h5_cur_u8(c);
    unsigned width = h5_cur_u8(c);
    if (!c->bad && flags & ~(unsigned)(FLAG_RAW_EDGES | FLAG_SINGLE_FILTERED))
        return h5_fail(err, H5_FORMAT, m->addr, "data layout message: flags %02x", flags);
    o->layout.raw_edges = (flags & FLAG_RAW_EDGES) != 0;
    H5_TRY(parse_chunk_sizes(o, m, c, width, err));
    if (o->refuse.code != H5_OK)
        return H5_OK;
    o->layout.index = h5_cur_u8(c);
    switch (o->layout.index) {
    case H5_INDEX_SINGLE:
        if (flags & FLAG_SINGLE_FILTERED) {
            o->layout.single_filtered = 1;
            o->layout.single.size = h5_cur_length(c, o->f);
            o->layout.single.mask = h5_cur_u32(c);
        }
        break;
    case H5_INDEX_IMPLICIT:
        break;
    case H5_INDEX_FARRAY:
        o->layout.page_bits = h5_cur_u8(c);
        break;
    case H5_INDEX_EARRAY:
        h5_cur_take(c, 5);
        break;
    case H5_INDEX_BTREE2:
        h5_cur_take(c, 6);
        break;
    default:
        return h5_fail(err, H5_FORMAT, m->addr, "data layout message: chunk index %u",
                       o->layout.index);
    }
    o->info->addr = h5_cur_addr(c, o->f);
    return H5_OK;
}

/* Versions 1 and 2: rank first, here the message's second byte. A contiguous dataset has its sizes,
** which the dataspace has as well; how many bytes it has follows from them. */
static int parse_old(h5_object *o, const h5_msg *m, h5_cur *c, unsigned rank, h5_error *err)
{
    unsigned cls = h5_cur_u8(c);
    h5_cur_take(c, 5);
    if (!c->bad && cls > H5_LAYOUT_CHUNKED)
        return h5_fail(err, H5_FORMAT, m->addr, "data layout message: class %u", cls);
    o->info->layout = (int)cls;
    o->layout.dimensions = rank;
    if (cls != H5_LAYOUT_COMPACT)
        o->info->addr = h5_cur_addr(c, o->f);
    if (cls == H5_LAYOUT_CHUNKED) {
        o->layout.index = H5_INDEX_BTREE1;
        return parse_chunk_sizes(o, m, c, 4, err);
    }
    h5_cur_take(c, 4 * (size_t)rank);
    if (cls == H5_LAYOUT_COMPACT) {
        o->layout.compact_bytes = h5_cur_u32(c);
        o->layout.compact = h5_cur_take(c, o->layout.compact_bytes);
        o->info->size = o->layout.compact_bytes;
    }
    return c->bad ? h5_msg_short(m, "data layout", err) : H5_OK;
}

int h5_msg_layout_decode(h5_object *o, const h5_msg *m, h5_error *err)
{
    h5_cur c = h5_cur_on(m->body, m->size);
    unsigned version = h5_cur_u8(&c), cls = h5_cur_u8(&c);
    o->info->addr = H5_UNDEF;
    if (!c.bad && (version < 1 || version > 5))
        return h5_fail(err, H5_FORMAT, m->addr, "data layout message: version %u", version);
    o->layout.version = (uint8_t)version;
    if (version < 3)
        return parse_old(o, m, &c, cls, err);
    if (!c.bad && cls > H5_LAYOUT_VIRTUAL)
        return h5_fail(err, H5_FORMAT, m->addr, "data layout message: class %u", cls);
    o->info->layout = (int)cls;
    o->layout.wide_sizes = version == 5;
    if (cls == H5_LAYOUT_VIRTUAL) {
        o->layout.heap = h5_cur_addr(&c, o->f);
        o->layout.heap_index = h5_cur_u32(&c);
    } else if (cls == H5_LAYOUT_COMPACT) {
        o->layout.compact_bytes = h5_cur_u16(&c);
        o->layout.compact = h5_cur_take(&c, o->layout.compact_bytes);
        o->info->size = o->layout.compact_bytes;
    } else if (cls == H5_LAYOUT_CONTIGUOUS) {
        o->info->addr = h5_cur_addr(&c, o->f);
        o->info->size = h5_cur_length(&c, o->f);
    } else if (version == 3) {
        H5_TRY(parse_chunked_v3(o, m, &c, err));
    } else {
        H5_TRY(parse_chunked_v4(o, m, &c, err));
    }
    return c.bad ? h5_msg_short(m, "data layout", err) : H5_OK;
}

void h5_layout_encode_chunked(h5_buf *b, const h5_dataset_spec *d)
{
    uint32_t largest = d->type.size;
    unsigned width = 1;
    for (int i = 0; i < d->rank; i++)
        largest = d->chunk[i] > largest ? d->chunk[i] : largest;
    while (width < 4 && largest >> 8 * width)
        width++;
    h5_buf_u8(b, 4);
    h5_buf_u8(b, H5_LAYOUT_CHUNKED);
    h5_buf_u8(b, 0);
    h5_buf_u8(b, (unsigned)d->rank + 1);
    h5_buf_u8(b, width);
    for (int i = 0; i < d->rank; i++)
        h5_buf_uint(b, d->chunk[i], width);
    h5_buf_uint(b, d->type.size, width);
    h5_buf_u8(b, H5_INDEX_FARRAY);
    h5_buf_u8(b, H5_FARRAY_PAGE_BITS);
    h5_buf_u64(b, d->addr);
}

void h5_layout_encode_contiguous(h5_buf *b, uint64_t addr, uint64_t bytes)
{
    h5_buf_u8(b, 3);
    h5_buf_u8(b, H5_LAYOUT_CONTIGUOUS);
    h5_buf_u64(b, addr);
    h5_buf_u64(b, bytes);
}
