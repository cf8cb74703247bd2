/*
 * h5_value.c - values of single elements, as they are stored
 *
 * A number is taken as a string of bits, least significant first, from which fields are cut: that
 * serves every width, byte order and layout alike. Integers of the machine and IEEE floats, which
 * nearly all files hold, go a shorter way, those of 4 and 8 bytes in little-endian order the
 * shortest.
 *
 * TESTS    t_h5_value.c
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>

#include "h5_conv.h"
#include "h5_cur.h"

/* Byte i of an element, least significant first. */
static unsigned byte_of(const h5_type *t, const uint8_t *p, uint32_t i)
{
    if (t->vax)
        return p[(t->size - 2 - (i & ~1u)) + (i & 1)];
    return p[t->big_endian ? t->size - 1 - i : i];
}

/* n <= 64 bits from bit `at`, which lie inside the element. */
static uint64_t bits_of(const h5_type *t, const uint8_t *p, unsigned at, unsigned n)
{
    uint64_t v = 0;
    if (at == 0 && n >= 32 && !t->big_endian && !t->vax) {
        if (n == 32)
            return h5_get32(p);
        if (n == 64)
            return h5_get64(p);
    }
    for (unsigned i = 0; i < n;) {
        unsigned in = (at + i) % 8, take = 8 - in < n - i ? 8 - in : n - i;
        uint64_t part = byte_of(t, p, (at + i) / 8) >> in & ((1u << take) - 1);
        v |= part << i;
        i += take;
    }
    return v;
}

int h5_value_bits(const h5_type *t, const void *p, uint64_t *out)
{
    unsigned n = t->precision ? t->precision : 8 * t->size;
    *out = 0;
    if ((t->cls != H5_CLASS_INTEGER && t->cls != H5_CLASS_ENUM && t->cls != H5_CLASS_BITFIELD &&
         t->cls != H5_CLASS_TIME) ||
        n > 64)
        return 0;
    uint64_t v = bits_of(t, p, t->bit_offset, n);
    if (t->is_signed && n < 64 && v >> (n - 1))
        v |= UINT64_MAX << n;
    *out = v;
    return 1;
}

static double ieee_of(const h5_type *t, const uint8_t *p)
{
    uint64_t bits = bits_of(t, p, 0, 8 * t->size);
    if (t->size == 8) {
        double d;
        memcpy(&d, &bits, sizeof d);
        return d;
    }
    uint32_t half = (uint32_t)bits;
    float f;
    memcpy(&f, &half, sizeof f);
    return f;
}

/* The mantissa as an integer of `keep` bits, fewer than 64; what is cut off shows in the last bit,
** so that rounding to a double is right. */
static uint64_t mantissa_of(const h5_type *t, const uint8_t *p, unsigned *keep)
{
    unsigned n = t->mantissa_bits, cut = n > 63 ? n - 63 : 0;
    uint64_t m = bits_of(t, p, t->mantissa_at + cut, n - cut);
    for (unsigned i = 0; i < cut; i += 64)
        m |= bits_of(t, p, t->mantissa_at + i, cut - i < 64 ? cut - i : 64) != 0;
    *keep = n - cut;
    return m;
}

static double float_of(const h5_type *t, const uint8_t *p)
{
    uint64_t exponent = bits_of(t, p, t->exponent_at, t->exponent_bits);
    uint64_t top = (1ull << t->exponent_bits) - 1;
    int64_t wide = (int64_t)exponent - (int64_t)t->exponent_bias;
    unsigned keep;
    uint64_t m = mantissa_of(t, p, &keep);
    double v;
    // No double is that large or small; what matters is that it fits an int.
    int e = wide > 100000 ? 100000 : wide < -100000 ? -100000 : (int)wide;
    if (exponent == top && t->exponent_bits > 1 && !t->vax) {
        // Where the leading bit is stored, infinity has it set.
        uint64_t lead = t->norm < 2 ? 1ull << (keep - 1) : 0;
        v = (m & ~lead) == 0 ? INFINITY : NAN;
    } else if (t->norm < 2) {
        v = ldexp((double)m, e + 1 - (int)keep);
    } else if (exponent == 0) {
        v = t->vax ? 0 : ldexp((double)m, e + 1 - (int)keep);
    } else {
        v = ldexp((double)(m | 1ull << keep), e - (int)keep);
    }
    return bits_of(t, p, t->sign_at, 1) ? -v : v;
}

int h5_value_real(const h5_type *t, const void *p, double *out)
{
    uint64_t bits;
    *out = 0;
    if (t->cls == H5_CLASS_FLOAT) {
        static const h5_type half = {.cls = H5_CLASS_FLOAT,
                                     .size = 2,
                                     .norm = 2,
                                     .exponent_at = 10,
                                     .exponent_bits = 5,
                                     .mantissa_bits = 10,
                                     .exponent_bias = 15,
                                     .sign_at = 15};
        if (t->exponent_bits == 0 && t->size == 2) { // made by h5_type_number
            t = &half;
        }
        int ieee = t->exponent_bits == 0 || // made by h5_type_number
                   (!t->vax && t->norm == 2 &&
                    ((t->size == 8 && t->exponent_bits == 11 && t->mantissa_bits == 52 &&
                      t->exponent_bias == 1023 && t->exponent_at == 52 && t->mantissa_at == 0 &&
                      t->sign_at == 63) ||
                     (t->size == 4 && t->exponent_bits == 8 && t->mantissa_bits == 23 &&
                      t->exponent_bias == 127 && t->exponent_at == 23 && t->mantissa_at == 0 &&
                      t->sign_at == 31)));
        *out = ieee ? ieee_of(t, p) : float_of(t, p);
        return 1;
    }
    if (!h5_value_bits(t, p, &bits))
        return 0;
    int64_t i;
    memcpy(&i, &bits, sizeof i);
    *out = t->is_signed ? (double)i : (double)bits;
    return 1;
}

size_t h5_value_text(const h5_type *t, const void *p)
{
    const char *s = p, *end = memchr(s, 0, t->size);
    size_t n = end && t->str_pad == 0 ? (size_t)(end - s) : t->size;
    while (t->str_pad == 1 && n > 0 && s[n - 1] == 0)
        n--;
    while (t->str_pad == 2 && n > 0 && s[n - 1] == ' ')
        n--;
    return n;
}

const char *h5_value_enum(const h5_type *t, const void *p)
{
    for (uint32_t i = 0; t->cls == H5_CLASS_ENUM && i < t->nmember; i++)
        if (memcmp(t->member[i].value, p, t->size) == 0)
            return t->member[i].name;
    return NULL;
}
