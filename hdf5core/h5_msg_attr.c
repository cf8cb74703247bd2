/*
 * h5_msg_attr.c - attribute and attribute info messages
 *
 * FORMAT   HDF5 spec: IV.A.2.m "The Attribute Message", versions 1 to 3, IV.A.2.v "The Attribute
 *          Info Message"
 *   attribute:      version 1 | flags 1 | name size 2 | datatype size 2 | dataspace size 2 |
 *                   character set 1 (version 3 only) | name with NUL | datatype | dataspace |
 *                   values. Flags bit 0: the datatype is shared, bit 1: the dataspace is; version 1
 *                   has none and pads name, datatype and dataspace to 8 bytes each.
 *   attribute info: 0 | flags 1 | largest creation order 2 (bit 0) | fractal heap 8 |
 *                   name index 8 | order index 8 (bit 1). A defined heap address means that there
 *                   are attributes in the heap ("dense").
 *
 * An attribute that needs what is not read here is listed all the same, with class H5_CLASS_OTHER
 * and no data.
 *
 * ERRORS   H5_FORMAT
 * TESTS    t_h5_msg.c
 *
 * SPDX-License-Identifier: MIT
 */
#include "h5_msg.h"

enum { SHARED_TYPE = 1, SHARED_SPACE = 2, UTF8 = 1 };

int h5_msg_attr_info_decode(h5_object *o, const h5_msg *m, h5_error *err)
{
    h5_cur c = h5_cur_on(m->body, m->size);
    unsigned version = h5_cur_u8(&c), flags = h5_cur_u8(&c);
    if (flags & 1)
        h5_cur_take(&c, 2);
    uint64_t heap = h5_cur_addr(&c, o->f);
    if (c.bad)
        return h5_msg_short(m, "attribute info", err);
    if (version != 0 || flags > 3)
        return h5_fail(err, H5_FORMAT, m->addr, "attribute info message: version %u, flags %02x",
                       version, flags);
    o->attrs.heap = heap;
    o->attrs.index = h5_cur_addr(&c, o->f);
    return c.bad ? h5_msg_short(m, "attribute info", err) : H5_OK;
}

/* The parts of an attribute message, each checked to lie inside it. */
typedef struct parts {
    const uint8_t *name, *type, *space;
    size_t name_n, type_n, space_n;
    h5_cur rest; /* the values */
    unsigned shared;
} parts;

static int split(const h5_msg *m, parts *out, h5_error *err)
{
    h5_cur c = h5_cur_on(m->body, m->size);
    unsigned version = h5_cur_u8(&c), flags = h5_cur_u8(&c);
    size_t pad = version == 1 ? 8 : 1;
    out->name_n = h5_cur_u16(&c);
    out->type_n = h5_cur_u16(&c);
    out->space_n = h5_cur_u16(&c);
    if (version == 3)
        h5_cur_u8(&c);
    out->name = h5_cur_take(&c, (out->name_n + pad - 1) / pad * pad);
    out->type = h5_cur_take(&c, (out->type_n + pad - 1) / pad * pad);
    out->space = h5_cur_take(&c, (out->space_n + pad - 1) / pad * pad);
    out->rest = c;
    out->shared = version == 1 ? 0 : flags;
    if (c.bad)
        return h5_msg_short(m, "attribute", err);
    if (version < 1 || version > 3 || out->shared > 3)
        return h5_fail(err, H5_FORMAT, m->addr, "attribute message: version %u, flags %02x",
                       version, flags);
    if (out->name_n < 2 || memchr(out->name, 0, out->name_n) != out->name + out->name_n - 1)
        return h5_fail(err, H5_FORMAT, m->addr,
                       "attribute message: the name is empty or not ended by its NUL");
    return H5_OK;
}

/* The bytes of the type or the dataspace; those of a shared one are fetched. */
static int part_of(h5_object *o, const h5_msg *m, int shared, uint16_t id, const uint8_t *p,
                   size_t n, h5_msg *out, h5_error *err)
{
    memset(out, 0, sizeof *out);
    if (shared)
        return h5_shared_find(o, id, p, n, m->addr, out, err);
    out->body = p;
    out->size = (uint32_t)n;
    out->addr = m->addr;
    return H5_OK;
}

static int parse_value(h5_object *o, const h5_msg *m, parts *p, h5_attr *a, h5_error *err)
{
    uint64_t nelem, bytes;
    h5_msg type, space;
    H5_TRY(part_of(o, m, p->shared & SHARED_TYPE, H5_MSG_TYPE, p->type, p->type_n, &type, err));
    H5_TRY(
        part_of(o, m, p->shared & SHARED_SPACE, H5_MSG_SPACE, p->space, p->space_n, &space, err));
    h5_cur tc = h5_cur_on(type.body, type.size), sc = h5_cur_on(space.body, space.size);
    H5_TRY(h5_type_parse(o->f, &tc, m->addr, &o->arena, &a->type, err));
    a->type.committed = type.shared_from != 0;
    a->type.committed_addr = type.shared_from;
    H5_TRY(h5_space_parse(o->f, &sc, m->addr, &a->space, &a->rank, a->dims, NULL, &nelem, err));
    if (!h5_mul_fits(nelem, a->type.size, &bytes) || bytes > p->rest.left)
        return h5_msg_short(m, "attribute", err);
    a->bytes = (size_t)bytes;
    a->data = h5_cur_take(&p->rest, a->bytes);
    return H5_OK;
}

/* All of an attribute but its sizes, of which there are rank. */
static void clear(h5_attr *a)
{
    a->name = NULL;
    a->type = (h5_type){0};
    a->space = a->rank = 0;
    a->data = NULL;
    a->bytes = 0;
}

int h5_msg_attr_decode(h5_object *o, const h5_msg *m, h5_error *err)
{
    parts p;
    h5_error local;
    h5_error_clear(&local);
    H5_TRY(split(m, &p, err));
    if (!h5_grow((void **)&o->attr, &o->attr_cap, o->nattr, sizeof *o->attr))
        return h5_fail_nomem(err, "the attributes of an object");
    h5_attr *a = &o->attr[o->nattr];
    clear(a);
    int rc = parse_value(o, m, &p, a, &local);
    if (rc == H5_UNSUPPORTED) {
        clear(a);
        a->type.cls = H5_CLASS_OTHER;
    } else if (rc != H5_OK) {
        return h5_fail_as(err, &local);
    }
    a->name = (const char *)p.name;
    o->nattr++;
    return H5_OK;
}

void h5_attr_info_encode(h5_buf *b)
{
    h5_buf_u16(b, 0);
    h5_buf_u64(b, H5_UNDEF);
    h5_buf_u64(b, H5_UNDEF);
}

void h5_attr_encode(h5_buf *b, const h5_attr_spec *a)
{
    h5_type t = {.cls = H5_CLASS_INTEGER, .is_signed = 1, .size = 8};
    uint8_t number[8];
    const void *value = number;
    size_t name = strlen(a->name) + 1;
    if (a->kind == 's') {
        t = (h5_type){.cls = H5_CLASS_STRING, .utf8 = 1, .size = (uint32_t)strlen(a->s) + 1};
        value = a->s;
    } else if (a->kind == 'f') {
        uint64_t bits;
        memcpy(&bits, &a->f, sizeof bits);
        t = (h5_type){.cls = H5_CLASS_FLOAT, .size = 8};
        h5_set64(number, bits);
    } else {
        h5_set64(number, (uint64_t)a->i);
    }
    h5_buf_u8(b, 3);
    h5_buf_u8(b, 0);
    h5_buf_u16(b, (unsigned)name);
    h5_buf_u16(b, (unsigned)h5_type_bytes(&t));
    h5_buf_u16(b, 4);
    h5_buf_u8(b, UTF8);
    h5_buf_put(b, a->name, name);
    h5_type_encode(b, &t);
    h5_space_encode(b, 0, NULL, NULL);
    h5_buf_put(b, value, t.size);
}
