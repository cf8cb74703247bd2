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
 * ERRORS   H5_FORMAT
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
    if (flags & 1)
        h5_cur_take(&c, 8);
    uint64_t heap = h5_cur_addr(&c, o->f);
    if (c.bad)
        return h5_msg_short(m, "link info", err);
    if (version != 0 || flags > 3)
        return h5_fail(err, H5_FORMAT, m->addr, "link info message: version %u, flags %02x",
                       version, flags);
    o->links.heap = heap;
    o->links.index = h5_cur_addr(&c, o->f);
    return c.bad ? h5_msg_short(m, "link info", err) : H5_OK;
}

/* A copy of n bytes with a NUL behind them. */
static char *copy_text(h5_object *o, const uint8_t *p, size_t n)
{
    char *copy = h5_arena_alloc(&o->arena, n + 1);
    if (copy && n)
        memcpy(copy, p, n);
    if (copy)
        copy[n] = 0;
    return copy;
}

int h5_object_add_link(h5_object *o, const char *name, uint64_t addr, const h5_link_info *info,
                       h5_error *err)
{
    if (!h5_grow((void **)&o->link, &o->link_cap, o->nlink, sizeof *o->link) ||
        !h5_grow((void **)&o->link_info, &o->info_cap, o->nlink, sizeof *o->link_info))
        return h5_fail_nomem(err, "the links of a group");
    o->link[o->nlink].name = name;
    o->link[o->nlink].addr = addr;
    o->link_info[o->nlink] = *info;
    o->nlink++;
    return H5_OK;
}

/* The value of an external link: 0, then the names of file and object, each with its NUL. */
static int external_value(h5_object *o, const h5_msg *m, h5_link_info *info, h5_error *err)
{
    const char *text = copy_text(o, info->value, info->bytes);
    size_t n = info->bytes, file;
    if (!text)
        return h5_fail_nomem(err, "the links of a group");
    file = n > 1 ? strnlen(text + 1, n - 1) : n;
    if (n < 3 || info->value[0] != 0 || file + 2 >= n || !memchr(text + file + 2, 0, n - file - 2))
        return h5_fail(err, H5_FORMAT, m->addr, "link message: value of an external link");
    info->file = text + 1;
    info->path = text + file + 2;
    return H5_OK;
}

static int target_of(h5_object *o, const h5_msg *m, h5_cur *c, h5_link_info *info, uint64_t *addr,
                     h5_error *err)
{
    *addr = H5_UNDEF;
    if (info->kind == H5_LINK_HARD) {
        *addr = h5_cur_addr(c, o->f);
        return c->bad ? h5_msg_short(m, "link", err) : H5_OK;
    }
    info->bytes = h5_cur_u16(c);
    info->value = h5_cur_take(c, info->bytes);
    if (c->bad)
        return h5_msg_short(m, "link", err);
    if (info->kind == H5_LINK_EXTERNAL)
        return external_value(o, m, info, err);
    if (info->kind != H5_LINK_SOFT)
        return H5_OK;
    info->path = copy_text(o, info->value, info->bytes);
    return info->path ? H5_OK : h5_fail_nomem(err, "the links of a group");
}

int h5_msg_link_decode(h5_object *o, const h5_msg *m, h5_error *err)
{
    h5_cur c = h5_cur_on(m->body, m->size);
    h5_link_info info = {0};
    uint64_t addr;
    unsigned version = h5_cur_u8(&c), flags = h5_cur_u8(&c);
    info.kind = flags & LINK_TYPE ? h5_cur_u8(&c) : HARD;
    info.has_order = (flags & LINK_ORDER) != 0;
    if (info.has_order)
        info.order = (int64_t)h5_cur_u64(&c);
    info.utf8 = flags & LINK_CHARSET ? h5_cur_u8(&c) == UTF8 : 0;
    uint64_t n = h5_cur_uint(&c, 1u << (flags & 3));
    const uint8_t *name = n <= c.left ? h5_cur_take(&c, (size_t)n) : NULL;
    if (c.bad || !name)
        return h5_msg_short(m, "link", err);
    if (version != 1 || flags > 31)
        return h5_fail(err, H5_FORMAT, m->addr, "link message: version %u, flags %02x", version,
                       flags);
    if (n == 0 || memchr(name, 0, (size_t)n))
        return h5_fail(err, H5_FORMAT, m->addr, "link message: the name is empty or holds a NUL");
    H5_TRY(target_of(o, m, &c, &info, &addr, err));
    const char *copy = copy_text(o, name, (size_t)n);
    if (!copy)
        return h5_fail_nomem(err, "the links of a group");
    return h5_object_add_link(o, copy, addr, &info, err);
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
