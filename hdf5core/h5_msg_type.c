/*
 * h5_msg_type.c - datatype message: integers, IEEE floats and fixed strings
 *
 * FORMAT   HDF5 spec: IV.A.2.d "The Datatype Message", versions 1 to 5 (they agree for these
 *          classes)
 *   0  1  class (low four bits), version (high four)
 *   1  3  class bits. Numbers: bit 0 big-endian. Integers: bit 3 signed. Floats: bits 4-5
 *      normalisation (2 = implied leading
 *         bit), byte 1 place of the sign. Strings: bits 0-3 padding, 4-7 character set (1 = UTF-8).
 *   4  4  size of an element
 *   8  .. integers: bit offset 2 | precision 2
 *         floats:   bit offset 2 | precision 2 | exponent place 1, bits 1 | mantissa place 1, bits
 *                 1 | exponent bias 4
 *   Only whole-width integers and IEEE single and double are read and written.
 *
 * ERRORS   H5_FORMAT; H5_UNSUPPORTED names the class
 * TESTS    t_h5_msg.c
 *
 * SPDX-License-Identifier: MIT
 */
#include "h5_msg.h"

static const char *const class_names[] = {"integer",  "float",           "time",     "string",
                                          "bitfield", "opaque",          "compound", "reference",
                                          "enum",     "variable-length", "array",    "complex"};

int h5_type_number(char kind, uint32_t size, h5_type *out)
{
    h5_type t = {0};
    memset(out, 0, sizeof *out);
    t.cls = kind == 'f' ? H5_CLASS_FLOAT : H5_CLASS_INTEGER;
    t.is_signed = kind == 'i';
    t.size = size;
    if ((kind != 'i' && kind != 'u' && kind != 'f') || h5_type_check(&t, NULL) != H5_OK)
        return H5_MISUSE;
    *out = t;
    return H5_OK;
}

int h5_type_check(const h5_type *t, h5_error *err)
{
    uint32_t n = t->size;
    int good = t->cls == H5_CLASS_INTEGER ? n == 1 || n == 2 || n == 4 || n == 8
               : t->cls == H5_CLASS_FLOAT ? n == 4 || n == 8
                                          : t->cls == H5_CLASS_STRING && n > 0 && t->str_pad <= 2;
    if (!good)
        return h5_fail(err, H5_MISUSE, H5_UNDEF, "datatype: class %u of %u bytes", t->cls,
                       (unsigned)n);
    return H5_OK;
}

/* The properties of an IEEE float of this size. */
static void ieee(uint32_t size, uint8_t out[12])
{
    static const uint8_t f32[12] = {0, 0, 32, 0, 23, 8, 0, 23, 127, 0, 0, 0};
    static const uint8_t f64[12] = {0, 0, 64, 0, 52, 11, 0, 52, 0xFF, 3, 0, 0};
    memcpy(out, size == 8 ? f64 : f32, 12);
}

static int parse_integer(h5_cur *c, uint64_t addr, unsigned bits, h5_type *t, h5_error *err)
{
    unsigned offset = h5_cur_u16(c), precision = h5_cur_u16(c);
    if (c->bad)
        return h5_fail(err, H5_FORMAT, addr, "datatype: cut off");
    t->big_endian = bits & 1;
    t->is_signed = bits >> 3 & 1;
    if (h5_type_check(t, NULL) != H5_OK || offset != 0 || precision != t->size * 8)
        return h5_fail(err, H5_UNSUPPORTED, addr, "integer of %u bits from bit %u in %u bytes",
                       precision, offset, (unsigned)t->size);
    return H5_OK;
}

static int parse_float(h5_cur *c, uint64_t addr, unsigned bits, h5_type *t, h5_error *err)
{
    uint8_t want[12];
    const uint8_t *have = h5_cur_take(c, sizeof want);
    if (!have)
        return h5_fail(err, H5_FORMAT, addr, "datatype: cut off");
    t->big_endian = bits & 1;
    ieee(t->size, want);
    // Bit 6 with bit 0 is the byte order of the VAX.
    if (h5_type_check(t, NULL) != H5_OK || bits & 0x40 || (bits >> 4 & 3) != 2 ||
        (bits >> 8 & 0xFF) != t->size * 8 - 1 || memcmp(have, want, sizeof want) != 0)
        return h5_fail(err, H5_UNSUPPORTED, addr,
                       "floating-point format of %u bytes other than IEEE 32 or 64",
                       (unsigned)t->size);
    return H5_OK;
}

int h5_type_parse(h5_cur *c, uint64_t addr, h5_type *out, h5_error *err)
{
    h5_type t = {0};
    unsigned head = h5_cur_u8(c), bits = h5_cur_u8(c);
    bits |= (unsigned)h5_cur_u8(c) << 8;
    bits |= (unsigned)h5_cur_u8(c) << 16;
    t.cls = head & 15;
    t.size = h5_cur_u32(c);
    *out = t;
    if (c->bad)
        return h5_fail(err, H5_FORMAT, addr, "datatype: cut off");
    if (head >> 4 < 1 || head >> 4 > 5 || t.cls >= sizeof class_names / sizeof *class_names)
        return h5_fail(err, H5_FORMAT, addr, "datatype: class %u version %u", t.cls, head >> 4);
    if (t.size == 0)
        return h5_fail(err, H5_FORMAT, addr, "datatype: %s of 0 bytes", class_names[t.cls]);
    switch (t.cls) {
    case H5_CLASS_INTEGER:
        H5_TRY(parse_integer(c, addr, bits, &t, err));
        break;
    case H5_CLASS_FLOAT:
        H5_TRY(parse_float(c, addr, bits, &t, err));
        break;
    case H5_CLASS_STRING:
        t.str_pad = bits & 15;
        t.utf8 = (bits >> 4 & 15) == 1;
        if (t.str_pad > 2)
            return h5_fail(err, H5_FORMAT, addr, "datatype: string padding %u", t.str_pad);
        break;
    default:
        return h5_fail(err, H5_UNSUPPORTED, addr, "%s datatype", class_names[t.cls]);
    }
    *out = t;
    return H5_OK;
}

int h5_msg_type_decode(h5_object *o, const h5_msg *m, h5_error *err)
{
    h5_cur c = h5_cur_on(m->body, m->size);
    h5_error local = {0};
    int rc = h5_type_parse(&c, m->addr, &o->info.type, &local);
    if (rc == H5_UNSUPPORTED)
        return h5_object_refuse(o, m->addr, "%s", local.text);
    return rc == H5_OK ? H5_OK : h5_fail(err, rc, local.offset, "%s", local.text);
}

size_t h5_type_bytes(const h5_type *t)
{
    return t->cls == H5_CLASS_STRING ? 8 : t->cls == H5_CLASS_INTEGER ? 12 : 20;
}

void h5_type_encode(h5_buf *b, const h5_type *t)
{
    h5_buf_u8(b, 0x10u | t->cls);
    if (t->cls == H5_CLASS_STRING) {
        h5_buf_u8(b, t->str_pad | (t->utf8 ? 0x10u : 0));
        h5_buf_u16(b, 0);
        h5_buf_u32(b, t->size);
        return;
    }
    if (t->cls == H5_CLASS_INTEGER) {
        h5_buf_u8(b, (t->big_endian ? 1u : 0) | (t->is_signed ? 8u : 0));
        h5_buf_u16(b, 0);
        h5_buf_u32(b, t->size);
        h5_buf_u16(b, 0);
        h5_buf_u16(b, t->size * 8);
        return;
    }
    uint8_t props[12];
    ieee(t->size, props);
    h5_buf_u8(b, 0x20u | (t->big_endian ? 1u : 0));
    h5_buf_u8(b, t->size * 8 - 1);
    h5_buf_u8(b, 0);
    h5_buf_u32(b, t->size);
    h5_buf_put(b, props, sizeof props);
}
