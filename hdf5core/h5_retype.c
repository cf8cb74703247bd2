/*
 * h5_retype.c - values of one type as values of another, both as they are stored
 *
 * What the source of a virtual dataset has need not be what the dataset promises. Numbers become
 * the nearest number of the other type as libhdf5 has it: an integer that does not fit becomes the
 * largest or smallest that does, a fraction is cut off, what is no number is 0. Fixed strings are
 * cut or filled up. Compounds and enums go by names, arrays of one shape by their elements.
 *
 * ERRORS   H5_UNSUPPORTED any other pair of types
 * TESTS    test_h5virtual.py
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>

#include "h5_conv.h"

static int same_members(const h5_type *a, const h5_type *b)
{
    if (a->nmember != b->nmember)
        return 0;
    for (uint32_t i = 0; i < a->nmember; i++) {
        const h5_member *x = &a->member[i], *y = &b->member[i];
        if (strcmp(x->name, y->name) != 0 || x->offset != y->offset ||
            (x->type && !h5_type_same(x->type, y->type)) ||
            (x->value && memcmp(x->value, y->value, a->size) != 0))
            return 0;
    }
    return 1;
}

int h5_type_same(const h5_type *a, const h5_type *b)
{
    if (a->cls != b->cls || a->size != b->size || a->is_signed != b->is_signed ||
        a->big_endian != b->big_endian || a->str_pad != b->str_pad || a->vax != b->vax ||
        a->is_text != b->is_text || a->ref != b->ref || a->bit_offset != b->bit_offset ||
        a->precision != b->precision || a->sign_at != b->sign_at ||
        a->exponent_at != b->exponent_at || a->exponent_bits != b->exponent_bits ||
        a->mantissa_at != b->mantissa_at || a->mantissa_bits != b->mantissa_bits ||
        a->norm != b->norm || a->exponent_bias != b->exponent_bias || a->rank != b->rank ||
        !a->base != !b->base)
        return 0;
    return (!a->base || h5_type_same(a->base, b->base)) && same_members(a, b);
}

int h5_type_points(const h5_type *t)
{
    if (t->cls == H5_CLASS_VLEN || t->cls == H5_CLASS_REFERENCE)
        return 1;
    for (uint32_t i = 0; t->cls == H5_CLASS_COMPOUND && i < t->nmember; i++)
        if (h5_type_points(t->member[i].type))
            return 1;
    return t->cls == H5_CLASS_ARRAY && h5_type_points(t->base);
}

static void put_bits(const h5_type *t, uint64_t v, uint8_t *out)
{
    for (uint32_t i = 0; i < t->size; i++)
        out[t->big_endian ? t->size - 1 - i : i] = (uint8_t)(v >> 8 * i);
}

/* The bits of a double as an IEEE half, rounded to the nearest and to even. */
static uint64_t half_of(double v)
{
    uint64_t sign = signbit(v) ? 0x8000 : 0;
    double a = fabs(v);
    if (isnan(v))
        return sign | 0x7E00;
    if (a >= 65520)
        return sign | 0x7C00;
    if (a < 0x1p-14)
        return sign | (uint64_t)nearbyint(a * 0x1p24);
    int e;
    double m = frexp(a, &e); // 0.5 <= m < 1
    // A mantissa that rounds up to the next power of two carries into the exponent by itself.
    return sign | (((uint64_t)(e + 13) << 10) + (uint64_t)nearbyint(m * 2048));
}

static void put_real(const h5_type *t, double v, uint8_t *out)
{
    uint64_t bits;
    if (t->size == 8) {
        memcpy(&bits, &v, sizeof bits);
    } else if (t->size == 4) {
        float f = (float)v;
        uint32_t narrow;
        memcpy(&narrow, &f, sizeof narrow);
        bits = narrow;
    } else {
        bits = half_of(v);
    }
    put_bits(t, bits, out);
}

/* An integer type of one to eight bytes, all of them in use. */
static int is_whole(const h5_type *t)
{
    return t->cls == H5_CLASS_INTEGER && t->size <= 8 && t->bit_offset == 0 &&
           t->precision == 8 * t->size;
}

static int is_ieee(const h5_type *t)
{
    return t->cls == H5_CLASS_FLOAT && !t->vax && t->norm == 2 && t->mantissa_at == 0 &&
           t->precision == 8 * t->size &&
           ((t->size == 2 && t->exponent_bits == 5 && t->exponent_bias == 15) ||
            (t->size == 4 && t->exponent_bits == 8 && t->exponent_bias == 127) ||
            (t->size == 8 && t->exponent_bits == 11 && t->exponent_bias == 1023));
}

static uint64_t most_of(const h5_type *t)
{
    return UINT64_MAX >> (64 - 8 * t->size + (t->is_signed != 0));
}

/* The bits of an integer as one of type t; `negative`: they stand for a number below zero. */
static uint64_t fit_bits(const h5_type *t, uint64_t v, int negative)
{
    uint64_t most = most_of(t);
    if (!negative)
        return v < most ? v : most;
    if (!t->is_signed)
        return 0;
    return v < ~most ? ~most : v;
}

static uint64_t fit_real(const h5_type *t, double v)
{
    if (isnan(v))
        return 0;
    v = trunc(v);
    if (v < 0)
        return !t->is_signed  ? 0
               : v <= -0x1p63 ? fit_bits(t, 1ull << 63, 1)
                              : fit_bits(t, (uint64_t)(int64_t)v, 1);
    return fit_bits(t, v >= 0x1p64 ? UINT64_MAX : (uint64_t)v, 0);
}

static void retype_number(const h5_type *from, const uint8_t *in, const h5_type *to, uint8_t *out)
{
    uint64_t bits;
    double real;
    if (to->cls == H5_CLASS_FLOAT) {
        h5_value_real(from, in, &real);
        put_real(to, real, out);
    } else if (from->cls == H5_CLASS_FLOAT) {
        h5_value_real(from, in, &real);
        put_bits(to, fit_real(to, real), out);
    } else {
        h5_value_bits(from, in, &bits);
        put_bits(to, fit_bits(to, bits, from->is_signed && bits >> 63), out);
    }
}

static void retype_text(const h5_type *from, const uint8_t *in, const h5_type *to, uint8_t *out)
{
    size_t n = h5_value_text(from, in), most = to->str_pad == 0 ? to->size - 1 : to->size;
    n = n < most ? n : most;
    memset(out, to->str_pad == 2 ? ' ' : 0, to->size);
    memcpy(out, in, n);
}

static int is_number(const h5_type *t)
{
    return t->cls == H5_CLASS_FLOAT ||
           ((t->cls == H5_CLASS_INTEGER || t->cls == H5_CLASS_ENUM) && t->size <= 8);
}

/* The value of the same name, all ones where there is none. */
static void retype_enum(const h5_type *from, const uint8_t *in, const h5_type *to, uint8_t *out)
{
    const char *name = h5_value_enum(from, in);
    memset(out, 0xFF, to->size);
    for (uint32_t i = 0; name && i < to->nmember; i++)
        if (strcmp(to->member[i].name, name) == 0)
            memcpy(out, to->member[i].value, to->size);
}

/* The fields of the same names; the others are 0. */
static int retype_compound(const h5_type *from, const uint8_t *in, const h5_type *to, uint8_t *out,
                           h5_error *err)
{
    memset(out, 0, to->size);
    for (uint32_t i = 0; i < to->nmember; i++) {
        const h5_member *want = &to->member[i];
        for (uint32_t j = 0; j < from->nmember; j++) {
            const h5_member *have = &from->member[j];
            if (strcmp(have->name, want->name) == 0)
                H5_TRY(h5_retype(have->type, in + have->offset, want->type, out + want->offset, 1,
                                 err));
        }
    }
    return H5_OK;
}

static int same_dims(const h5_type *a, const h5_type *b)
{
    return a->rank == b->rank && memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0;
}

int h5_retype(const h5_type *from, const void *in, const h5_type *to, void *out, uint64_t n,
              h5_error *err)
{
    const uint8_t *p = in;
    uint8_t *q = out;
    int number = is_number(from) && (is_whole(to) || is_ieee(to)), cls = from->cls;
    if (h5_type_same(from, to)) {
        memcpy(out, in, (size_t)(n * from->size));
        return H5_OK;
    }
    if (cls == H5_CLASS_ARRAY && to->cls == cls && same_dims(from, to))
        return h5_retype(from->base, in, to->base, out, n * (from->size / from->base->size), err);
    if (!number && (cls != to->cls ||
                    (cls != H5_CLASS_STRING && cls != H5_CLASS_ENUM && cls != H5_CLASS_COMPOUND)))
        return h5_fail(err, H5_UNSUPPORTED, H5_UNDEF,
                       "class %u of %u bytes as class %u of %u bytes", from->cls,
                       (unsigned)from->size, to->cls, (unsigned)to->size);
    for (uint64_t i = 0; i < n; i++, p += from->size, q += to->size) {
        if (number)
            retype_number(from, p, to, q);
        else if (cls == H5_CLASS_STRING)
            retype_text(from, p, to, q);
        else if (cls == H5_CLASS_ENUM)
            retype_enum(from, p, to, q);
        else
            H5_TRY(retype_compound(from, p, to, q, err));
    }
    return H5_OK;
}
