/*
 * h5_msg_link.c - link and link info messages: the members of a group that keeps them in its header
 *
 * FORMAT   HDF5 spec: IV.A.2.g "The Link Message", IV.A.2.c "The Link Info Message"
 *   link: 1 | flags 1 | type 1 (flag bit 3; 0 hard, 1 soft, 64 external) | creation order 8 (bit 2)
 *         | character set 1 (bit 4) | name length 1 << (bits 0-1) | name | hard: header address 8;
 *           soft and user: length 2 | value
 *   link info: 0 | flags 1 | largest creation order 8 (bit 0) | fractal heap 8 | name index 8 |
 *              order index 8 (bit 1)
 *         A defined heap address means that the links are in the heap, not in the header ("dense").
 *
 * ERRORS   H5_FORMAT; H5_UNSUPPORTED dense links
 * TESTS    t_h5_msg.c
 *
 * SPDX-License-Identifier: MIT
 */
#include "h5_msg.h"

enum { LINK_ORDER = 4, LINK_TYPE = 8, LINK_CHARSET = 16, HARD = 0, UTF8 = 1 };

int h5_msg_link_info_decode(h5_object *o, const h5_msg *m, h5_error *err)
{
    h5_cur c = h5_cur_on(m->body, m->size);
    unsigned version = h5_cur_u8(&c), flags = h5_cur_u8(&c);
    (void)o;
    if (flags & 1)
        h5_cur_take(&c, 8);
    uint64_t heap = h5_cur_u64(&c);
    if (c.bad)
        return h5_msg_short(m, "link info", err);
    if (version != 0 || flags > 3)
        return h5_fail(err, H5_FORMAT, m->addr, "link info message: version %u, flags %02x",
                       version, flags);
    if (heap != H5_UNDEF)
        return h5_fail(err, H5_UNSUPPORTED, m->addr, "dense links");
    return H5_OK;
}

static int keep_link(h5_object *o, const uint8_t *name, size_t n, uint64_t addr, h5_error *err)
{
    char *copy = h5_arena_alloc(&o->arena, n + 1);
    if (!copy || !h5_grow((void **)&o->link, &o->link_cap, o->nlink, sizeof *o->link))
        return h5_fail_nomem(err, "the links of a group");
    memcpy(copy, name, n);
    copy[n] = 0;
    o->link[o->nlink].name = copy;
    o->link[o->nlink].addr = addr;
    o->nlink++;
    return H5_OK;
}

int h5_msg_link_decode(h5_object *o, const h5_msg *m, h5_error *err)
{
    h5_cur c = h5_cur_on(m->body, m->size);
    unsigned version = h5_cur_u8(&c), flags = h5_cur_u8(&c);
    unsigned type = flags & LINK_TYPE ? h5_cur_u8(&c) : HARD;
    if (flags & LINK_ORDER)
        h5_cur_take(&c, 8);
    if (flags & LINK_CHARSET)
        h5_cur_take(&c, 1);
    uint64_t n = h5_cur_uint(&c, 1u << (flags & 3));
    const uint8_t *name = n <= c.left ? h5_cur_take(&c, (size_t)n) : NULL;
    uint64_t addr = type == HARD ? h5_cur_u64(&c) : H5_UNDEF;
    if (type != HARD)
        h5_cur_take(&c, h5_cur_u16(&c));
    if (c.bad || !name)
        return h5_msg_short(m, "link", err);
    if (version != 1 || flags > 31)
        return h5_fail(err, H5_FORMAT, m->addr, "link message: version %u, flags %02x", version,
                       flags);
    if (n == 0 || memchr(name, 0, (size_t)n))
        return h5_fail(err, H5_FORMAT, m->addr, "link message: the name is empty or holds a NUL");
    return keep_link(o, name, (size_t)n, addr, err);
}

void h5_link_encode(h5_buf *b, const h5_link *l)
{
    size_t n = strlen(l->name);
    unsigned wide = n > 255, utf8 = 0;
    for (size_t i = 0; i < n; i++)
        utf8 |= (unsigned char)l->name[i] >> 7;
    h5_buf_u8(b, 1);
    h5_buf_u8(b, wide | (utf8 ? LINK_CHARSET : 0));
    if (utf8)
        h5_buf_u8(b, UTF8);
    h5_buf_uint(b, n, wide ? 2 : 1);
    h5_buf_put(b, l->name, n);
    h5_buf_u64(b, l->addr);
}

void h5_link_info_encode(h5_buf *b)
{
    h5_buf_u16(b, 0);
    h5_buf_u64(b, H5_UNDEF);
    h5_buf_u64(b, H5_UNDEF);
}
