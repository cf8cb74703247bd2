/*
 * h5_msg_type.c - datatype message: every class, as a tree of h5_type
 *
 * FORMAT   HDF5 spec: IV.A.2.d "The Datatype Message", versions 1 to 5
 *   0  1  class (low four bits), version (high four)
 *   1  3  class bits
 *   4  4  size of an element
 *   8  .. properties
 *
 *   class           class bits                           properties
 *   integer         0 big-endian, 3 signed               bit offset 2 | precision 2
 *   bitfield        0 big-endian                         bit offset 2 | precision 2
 *   time            0 big-endian                         precision 2
 *   float           0 big-endian (with 6: VAX),          bit offset 2 | precision 2 | exponent
 *     place
 *                   4-5 normalisation, 8-15 sign         1, bits 1 | mantissa place 1, bits 1 |
 *                     bias 4
 *   string          0-3 padding, 4-7 character set
 *   opaque          0-7 bytes of the tag                 tag
 *   compound        0-15 number of members               members: name | place | type
 *   reference       0-3 kind
 *   enum            0-15 number of members               base type | names | values
 *   variable length 0-3 1 = string, 4-7 padding,         base type
 *                   8-11 character set
 *   array                                                rank 1 | sizes 4 each | base type
 *   complex                                              base type
 *   Names end with a NUL and fill up to 8 bytes before version 3. A member's place has 4 bytes
 *   before version 3 and as many as the compound's size needs since; version 1 has the sizes of an
 *   array there: rank 1 | 3 | permutation 4 | 4 | sizes 4 x 4. Arrays of version 2 have 3 reserved
 *   bytes after the rank and a permutation after the sizes.
 *   Only whole-width integers, IEEE single and double and fixed strings are written.
 *
 * OWNERSHIP  members, bases and sizes go to the arena; names, values and tags point into the
 * message.
 * ERRORS   H5_FORMAT; H5_LIMIT H5_TYPE_DEPTH_MAX
 * TESTS    t_h5_msg.c
 *
 * SPDX-License-Identifier: MIT
 */
#include "h5_msg.h"

static const char *const class_names[] = {"integer",  "float",           "time",     "string",
                                          "bitfield", "opaque",          "compound", "reference",
                                          "enum",     "variable-length", "array",    "complex"};

/* Where a type is taken from, and how deep it is nested. */
typedef struct source {
    const h5_file *f;
    h5_cur *c;
    uint64_t addr;
    h5_arena *arena;
    int depth;
} source;

static int parse(source *s, h5_type *t, h5_error *err);

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
               : t->cls == H5_CLASS_FLOAT ? n == 2 || n == 4 || n == 8
                                          : t->cls == H5_CLASS_STRING && n > 0 && t->str_pad <= 2;
    if (!good)
        return h5_fail(err, H5_MISUSE, H5_UNDEF, "datatype: class %u of %u bytes", t->cls,
                       (unsigned)n);
    return H5_OK;
}

static int cut_off(const source *s, h5_error *err)
{
    return h5_fail(err, H5_FORMAT, s->addr, "datatype: cut off");
}

/* Bits must lie inside the element. */
static int check_bits(const source *s, const h5_type *t, unsigned at, unsigned n, h5_error *err)
{
    if (s->c->bad)
        return cut_off(s, err);
    if (n == 0 || at + n > 8ull * t->size)
        return h5_fail(err, H5_FORMAT, s->addr, "datatype: %u bits from bit %u in %u bytes", n, at,
                       (unsigned)t->size);
    return H5_OK;
}

static int parse_bits(source *s, h5_type *t, h5_error *err)
{
    t->bit_offset = h5_cur_u16(s->c);
    t->precision = h5_cur_u16(s->c);
    return check_bits(s, t, t->bit_offset, t->precision, err);
}

static int parse_float(source *s, unsigned bits, h5_type *t, h5_error *err)
{
    H5_TRY(parse_bits(s, t, err));
    t->vax = (bits & 0x41) == 0x41;
    t->big_endian = bits & 1 && !t->vax;
    t->norm = bits >> 4 & 3;
    t->sign_at = bits >> 8 & 0xFF;
    t->exponent_at = h5_cur_u8(s->c);
    t->exponent_bits = h5_cur_u8(s->c);
    t->mantissa_at = h5_cur_u8(s->c);
    t->mantissa_bits = h5_cur_u8(s->c);
    t->exponent_bias = h5_cur_u32(s->c);
    if (t->norm > 2)
        return h5_fail(err, H5_FORMAT, s->addr, "datatype: normalisation %u", t->norm);
    H5_TRY(check_bits(s, t, t->sign_at, 1, err));
    H5_TRY(check_bits(s, t, t->exponent_at, t->exponent_bits, err));
    H5_TRY(check_bits(s, t, t->mantissa_at, t->mantissa_bits, err));
    if (t->exponent_bits > 32 || (t->vax && t->size % 2))
        return h5_fail(err, H5_FORMAT, s->addr, "datatype: exponent of %u bits in %u bytes",
                       t->exponent_bits, (unsigned)t->size);
    return H5_OK;
}

/* A name with its NUL, and what fills it up to 8 bytes before version 3. */
static int parse_name(source *s, unsigned version, const char **out, h5_error *err)
{
    const uint8_t *end = s->c->bad ? NULL : memchr(s->c->p, 0, s->c->left);
    if (!end)
        return cut_off(s, err);
    size_t n = (size_t)(end - s->c->p) + 1;
    *out = (const char *)s->c->p;
    h5_cur_take(s->c, version < 3 ? (n + 7) / 8 * 8 : n);
    return s->c->bad ? cut_off(s, err) : H5_OK;
}

static int parse_base(source *s, const h5_type **out, h5_error *err)
{
    h5_type *base = h5_arena_alloc(s->arena, sizeof *base);
    if (!base)
        return h5_fail_nomem(err, "a datatype");
    *out = base;
    return parse(s, base, err);
}

/* rank sizes of an array, whose base and element size are known to the caller. */
static int parse_sizes(source *s, unsigned rank, const uint32_t **out, h5_error *err)
{
    if (rank == 0 || rank > H5_RANK_MAX)
        return h5_fail(err, H5_FORMAT, s->addr, "datatype: array of rank %u", rank);
    uint32_t *dims = h5_arena_alloc(s->arena, rank * sizeof *dims);
    if (!dims)
        return h5_fail_nomem(err, "a datatype");
    for (unsigned i = 0; i < rank; i++)
        dims[i] = h5_cur_u32(s->c);
    *out = dims;
    return s->c->bad ? cut_off(s, err) : H5_OK;
}

/* The size of an array is that of its elements. */
static int check_array(const source *s, const h5_type *t, h5_error *err)
{
    uint64_t bytes = t->base->size;
    for (uint32_t i = 0; i < t->rank; i++)
        if (t->dims[i] == 0 || !h5_mul_fits(bytes, t->dims[i], &bytes))
            bytes = 0;
    if (bytes == 0 || bytes != t->size)
        return h5_fail(err, H5_FORMAT, s->addr,
                       "datatype: array of %u bytes, its elements need %llu", (unsigned)t->size,
                       (unsigned long long)bytes);
    return H5_OK;
}

static int parse_array(source *s, unsigned version, h5_type *t, h5_error *err)
{
    t->rank = h5_cur_u8(s->c);
    if (version < 3)
        h5_cur_take(s->c, 3);
    H5_TRY(parse_sizes(s, t->rank, &t->dims, err));
    if (version < 3)
        h5_cur_take(s->c, 4 * (size_t)t->rank);
    H5_TRY(parse_base(s, &t->base, err));
    return check_array(s, t, err);
}

/* A member's type in version 1: an array where it has sizes. */
static int parse_member_v1(source *s, h5_type *t, h5_error *err)
{
    unsigned rank = h5_cur_u8(s->c);
    h5_cur_take(s->c, 11);
    if (rank == 0) {
        h5_cur_take(s->c, 16);
        return parse(s, t, err);
    }
    uint64_t bytes;
    memset(t, 0, sizeof *t);
    t->cls = H5_CLASS_ARRAY;
    t->rank = rank;
    if (rank > 4)
        return h5_fail(err, H5_FORMAT, s->addr, "datatype: member of rank %u", rank);
    H5_TRY(parse_sizes(s, rank, &t->dims, err));
    h5_cur_take(s->c, 4 * (size_t)(4 - rank));
    H5_TRY(parse_base(s, &t->base, err));
    bytes = t->base->size;
    for (unsigned i = 0; i < rank && bytes <= UINT32_MAX; i++)
        bytes *= t->dims[i];
    t->size = bytes <= UINT32_MAX ? (uint32_t)bytes : 0;
    return check_array(s, t, err);
}

static unsigned bytes_for(uint32_t v)
{
    return v >> 24 ? 4 : v >> 16 ? 3 : v >> 8 ? 2 : 1;
}

static int parse_compound(source *s, unsigned version, unsigned n, h5_type *t, h5_error *err)
{
    // Each member takes 10 bytes and more, which bounds what n can ask for.
    h5_member *list = n <= s->c->left / 10 ? h5_arena_alloc(s->arena, n * sizeof *list) : NULL;
    if (n == 0 || n > s->c->left / 10)
        return h5_fail(err, H5_FORMAT, s->addr, "datatype: compound of %u members", n);
    if (!list)
        return h5_fail_nomem(err, "a datatype");
    memset(list, 0, n * sizeof *list);
    t->member = list;
    t->nmember = n;
    for (unsigned i = 0; i < n; i++) {
        h5_type *type = h5_arena_alloc(s->arena, sizeof *type);
        if (!type)
            return h5_fail_nomem(err, "a datatype");
        H5_TRY(parse_name(s, version, &list[i].name, err));
        list[i].offset = (uint32_t)h5_cur_uint(s->c, version < 3 ? 4 : bytes_for(t->size));
        list[i].type = type;
        H5_TRY(version == 1 ? parse_member_v1(s, type, err) : parse(s, type, err));
        if (type->size > t->size || list[i].offset > t->size - type->size)
            return h5_fail(err, H5_FORMAT, s->addr,
                           "datatype: member %u, %u bytes at %u, outside a compound of %u", i,
                           (unsigned)type->size, (unsigned)list[i].offset, (unsigned)t->size);
    }
    return H5_OK;
}

static int parse_enum(source *s, unsigned version, unsigned n, h5_type *t, h5_error *err)
{
    H5_TRY(parse_base(s, &t->base, err));
    if (t->base->size != t->size || t->base->cls != H5_CLASS_INTEGER)
        return h5_fail(err, H5_FORMAT, s->addr, "datatype: enum of %u bytes over class %u of %u",
                       (unsigned)t->size, t->base->cls, (unsigned)t->base->size);
    if (n > s->c->left)
        return cut_off(s, err);
    h5_member *list = h5_arena_alloc(s->arena, n * sizeof *list + 1);
    if (!list)
        return h5_fail_nomem(err, "a datatype");
    memset(list, 0, n * sizeof *list);
    t->member = list;
    t->nmember = n;
    for (unsigned i = 0; i < n; i++)
        H5_TRY(parse_name(s, version, &list[i].name, err));
    for (unsigned i = 0; i < n; i++)
        list[i].value = h5_cur_take(s->c, t->size);
    t->big_endian = t->base->big_endian;
    t->is_signed = t->base->is_signed;
    t->bit_offset = t->base->bit_offset;
    t->precision = t->base->precision;
    return s->c->bad ? cut_off(s, err) : H5_OK;
}

static int parse_opaque(source *s, unsigned n, h5_type *t, h5_error *err)
{
    const uint8_t *tag = h5_cur_take(s->c, n);
    char *copy = h5_arena_alloc(s->arena, n + 1);
    if (!tag)
        return cut_off(s, err);
    if (!copy)
        return h5_fail_nomem(err, "a datatype");
    memcpy(copy, tag, n);
    copy[n] = 0;
    t->tag = copy;
    return H5_OK;
}

static int parse_strings(const source *s, unsigned pad, unsigned charset, h5_type *t, h5_error *err)
{
    t->str_pad = (uint8_t)pad;
    t->utf8 = charset == 1;
    if (pad > 2)
        return h5_fail(err, H5_FORMAT, s->addr, "datatype: string padding %u", pad);
    return H5_OK;
}

/* Variable-length elements are a length, an address and an index. */
static int parse_vlen(source *s, unsigned bits, h5_type *t, h5_error *err)
{
    t->is_text = (bits & 15) == 1;
    if ((bits & 15) > 1 || t->size != 8 + h5_offsets(s->f))
        return h5_fail(err, H5_FORMAT, s->addr, "datatype: variable length of kind %u, %u bytes",
                       bits & 15, (unsigned)t->size);
    if (t->is_text)
        H5_TRY(parse_strings(s, bits >> 4 & 15, bits >> 8 & 15, t, err));
    return parse_base(s, &t->base, err);
}

/* Where addresses are narrower than 8 bytes, some libraries leave room for 8 all the same. */
static int parse_reference(const source *s, unsigned bits, h5_type *t, h5_error *err)
{
    t->ref = bits & 15;
    if (t->ref > H5_REF_NEW_ATTR ||
        (t->ref == H5_REF_OBJECT && t->size != 8 && t->size != h5_offsets(s->f)) ||
        (t->ref == H5_REF_REGION && t->size != 12 && t->size != 4 + h5_offsets(s->f)))
        return h5_fail(err, H5_FORMAT, s->addr, "datatype: reference of kind %u, %u bytes", t->ref,
                       (unsigned)t->size);
    return H5_OK;
}

static int parse_complex(source *s, h5_type *t, h5_error *err)
{
    H5_TRY(parse_base(s, &t->base, err));
    if (t->base->cls != H5_CLASS_FLOAT || t->base->size != t->size / 2 || t->size % 2)
        return h5_fail(err, H5_FORMAT, s->addr, "datatype: complex of %u bytes over class %u",
                       (unsigned)t->size, t->base->cls);
    return H5_OK;
}

static int parse_class(source *s, unsigned version, unsigned bits, h5_type *t, h5_error *err)
{
    switch (t->cls) {
    case H5_CLASS_INTEGER:
        t->big_endian = bits & 1;
        t->is_signed = bits >> 3 & 1;
        return parse_bits(s, t, err);
    case H5_CLASS_BITFIELD:
        t->big_endian = bits & 1;
        return parse_bits(s, t, err);
    case H5_CLASS_FLOAT:
        return parse_float(s, bits, t, err);
    case H5_CLASS_TIME:
        t->big_endian = bits & 1;
        t->precision = h5_cur_u16(s->c);
        return check_bits(s, t, 0, t->precision, err);
    case H5_CLASS_STRING:
        return parse_strings(s, bits & 15, bits >> 4 & 15, t, err);
    case H5_CLASS_OPAQUE:
        return parse_opaque(s, bits & 0xFF, t, err);
    case H5_CLASS_COMPOUND:
        return parse_compound(s, version, bits & 0xFFFF, t, err);
    case H5_CLASS_REFERENCE:
        return parse_reference(s, bits, t, err);
    case H5_CLASS_ENUM:
        return parse_enum(s, version, bits & 0xFFFF, t, err);
    case H5_CLASS_VLEN:
        return parse_vlen(s, bits, t, err);
    case H5_CLASS_ARRAY:
        return parse_array(s, version, t, err);
    default:
        return parse_complex(s, t, err);
    }
}

static int parse(source *s, h5_type *t, h5_error *err)
{
    memset(t, 0, sizeof *t);
    unsigned head = h5_cur_u8(s->c), bits = h5_cur_u8(s->c);
    bits |= (unsigned)h5_cur_u8(s->c) << 8;
    bits |= (unsigned)h5_cur_u8(s->c) << 16;
    t->cls = head & 15;
    t->size = h5_cur_u32(s->c);
    if (s->c->bad)
        return cut_off(s, err);
    if (head >> 4 < 1 || head >> 4 > 5 || t->cls >= sizeof class_names / sizeof *class_names)
        return h5_fail(err, H5_FORMAT, s->addr, "datatype: class %u version %u", t->cls, head >> 4);
    if (t->size == 0)
        return h5_fail(err, H5_FORMAT, s->addr, "datatype: %s of 0 bytes", class_names[t->cls]);
    if (s->depth >= H5_TYPE_DEPTH_MAX)
        return h5_fail(err, H5_LIMIT, s->addr,
                       "datatype: nested deeper than H5_TYPE_DEPTH_MAX = %d", H5_TYPE_DEPTH_MAX);
    s->depth++;
    H5_TRY(parse_class(s, head >> 4, bits, t, err));
    s->depth--;
    return H5_OK;
}

int h5_type_parse(const h5_file *f, h5_cur *c, uint64_t addr, h5_arena *arena, h5_type *out,
                  h5_error *err)
{
    source s = {f, c, addr, arena, 0};
    return parse(&s, out, err);
}

int h5_msg_type_decode(h5_object *o, const h5_msg *m, h5_error *err)
{
    h5_cur c = h5_cur_on(m->body, m->size);
    H5_TRY(h5_type_parse(o->f, &c, m->addr, &o->arena, &o->info->type, err));
    if (m->shared_from != 0) {
        o->info->type.committed = 1;
        o->info->type.committed_addr = m->shared_from;
    }
    return H5_OK;
}

size_t h5_type_bytes(const h5_type *t)
{
    return t->cls == H5_CLASS_STRING ? 8 : t->cls == H5_CLASS_INTEGER ? 12 : 20;
}

/* The properties of an IEEE float of this size. */
static void ieee(uint32_t size, uint8_t out[12])
{
    static const uint8_t f16[12] = {0, 0, 16, 0, 10, 5, 0, 10, 15, 0, 0, 0};
    static const uint8_t f32[12] = {0, 0, 32, 0, 23, 8, 0, 23, 127, 0, 0, 0};
    static const uint8_t f64[12] = {0, 0, 64, 0, 52, 11, 0, 52, 0xFF, 3, 0, 0};
    memcpy(out, size == 8 ? f64 : size == 4 ? f32 : f16, 12);
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
