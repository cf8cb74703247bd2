/*
 * h5_filter_scaleoffset.c - scale-offset: numbers less their minimum, in the bits that this needs
 *
 * FORMAT   HDF5 reference, H5Pset_scaleoffset; the order of the client data and the header of the
 *          chunk are those of HDF5's library
 *   client data: scale type: 0 D-scale float, 1 E-scale float, 2 integer | scale factor |
 *                elements | class: 0 integer, 1 float | size | 1 = signed | 0 little-endian, 1
 *                big-endian | 1 = there is a fill value | the fill value, low word first
 *   chunk: bits a number 4 | bytes of the minimum 1 | minimum, low byte first | zeros up to 21 |
 *          numbers as one string of bits, most significant first
 *     A number is added to the minimum, modulo its width; a float is first divided by
 *     10^factor, in its own precision, and the minimum is a float too. All bits set stand for
 *     the fill value, if there is one. As many bits as the type has: numbers as they are.
 *
 * ERRORS   H5_FORMAT; H5_UNSUPPORTED E-scale, which no libhdf5 writes
 * TESTS    t_h5_filter_decode.c, test_h5filter.py
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>

#include "h5_cur.h"
#include "h5_filter_codec.h"

enum { TYPE, FACTOR, COUNT, CLASS, SIZE, SIGN, ORDER, HAS_FILL, FILL, NVALUE = 10 };
enum { D_SCALE = 0, INTEGER = 2, HEADER = 21 };

typedef struct numbers {
    size_t count;
    unsigned size, bits;
    int big_endian, has_fill;
    int32_t factor;
    uint64_t fill, low; /* bits of the fill value and the minimum */
} numbers;

static void store(const numbers *s, uint8_t *out, uint64_t v)
{
    for (unsigned i = 0; i < s->size; i++)
        out[s->big_endian ? s->size - 1 - i : i] = (uint8_t)(v >> 8 * i);
}

static float real32(uint64_t bits)
{
    uint32_t b = (uint32_t)bits;
    float f;
    memcpy(&f, &b, sizeof f);
    return f;
}

static double real64(uint64_t bits)
{
    double f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* The bits of a float: the stored number, signed as libhdf5 takes it, scaled, plus the minimum. */
static uint64_t scaled(const numbers *s, uint64_t v)
{
    uint64_t out = 0;
    if (s->size == 4) {
        float f = (float)(int32_t)(uint32_t)v / powf(10.0f, (float)s->factor) + real32(s->low);
        uint32_t b;
        memcpy(&b, &f, sizeof b);
        out = b;
    } else {
        double f = (double)(int64_t)v / pow(10.0, (double)s->factor) + real64(s->low);
        memcpy(&out, &f, sizeof out);
    }
    return out;
}

static int read_header(const h5_filter *f, const uint8_t *in, size_t n, numbers *s, h5_error *err)
{
    const uint32_t *v = h5_filter_values(f);
    h5_cur c = h5_cur_on(in, n);
    int real = v[CLASS] == 1;
    *s = (numbers){.count = v[COUNT], .size = v[SIZE], .big_endian = v[ORDER] == 1};
    s->has_fill = v[HAS_FILL] == 1;
    s->factor = (int32_t)v[FACTOR];
    s->fill = v[FILL] | (uint64_t)v[FILL + 1] << 32;
    if (real && v[TYPE] == 1)
        return h5_fail(err, H5_UNSUPPORTED, H5_UNDEF, "scale-offset: E-scale");
    if ((real ? v[TYPE] != D_SCALE || (s->size != 4 && s->size != 8)
              : v[TYPE] != INTEGER || v[CLASS] != 0) ||
        (s->size != 1 && s->size != 2 && s->size != 4 && s->size != 8) || v[ORDER] > 1)
        return h5_fail(err, H5_FORMAT, H5_UNDEF,
                       "scale-offset: type %u, class %u, size %u, order %u", (unsigned)v[TYPE],
                       (unsigned)v[CLASS], s->size, (unsigned)v[ORDER]);
    s->bits = h5_cur_u32(&c);
    unsigned width = h5_cur_u8(&c);
    s->low = h5_cur_uint(&c, width < 8 ? width : 8);
    if (c.bad || n < HEADER || s->bits > s->size * 8)
        return h5_fail(err, H5_FORMAT, H5_UNDEF,
                       "scale-offset: header of %u bits, minimum of %u bytes in %zu stored",
                       s->bits, width, n);
    return H5_OK;
}

static int numbers_decode(const numbers *s, int real, const uint8_t *in, size_t n, uint8_t *out,
                          h5_error *err)
{
    h5_bits b = h5_bits_on(in, n);
    unsigned upper = s->bits > 32 ? s->bits - 32 : 0, lower = s->bits - upper;
    int raw = s->bits == s->size * 8;
    uint64_t all = raw ? 0 : ((uint64_t)1 << s->bits) - 1;
    if (s->bits > 0 && s->count > (uint64_t)n * 8 / s->bits)
        return h5_fail(err, H5_FORMAT, H5_UNDEF,
                       "scale-offset: %zu numbers of %u bits in %zu bytes", s->count, s->bits, n);
    if (raw) {
        // As they were in the memory of who wrote them: the order of the machine, not of the type.
        for (size_t i = 0; i < s->count; i++)
            for (unsigned k = 0; k < s->size; k++)
                out[i * s->size + (s->big_endian ? s->size - 1 - k : k)] = in[i * s->size + k];
        return H5_OK;
    }
    for (size_t i = 0; i < s->count; i++) {
        uint64_t v = (uint64_t)h5_bits_get(&b, upper) << lower % 64;
        v |= h5_bits_get(&b, lower);
        if (s->has_fill && v == all)
            v = s->fill;
        else
            v = real ? scaled(s, v) : v + s->low;
        store(s, out + i * s->size, v);
    }
    return b.bad ? h5_fail(err, H5_FORMAT, H5_UNDEF, "scale-offset: the numbers end early") : H5_OK;
}

static uint64_t scaleoffset_most(const h5_filter *f, uint64_t n)
{
    const uint32_t *v = h5_filter_values(f);
    (void)n; // equal numbers take no bits
    return (uint64_t)v[COUNT] * v[SIZE];
}

static int scaleoffset_decode(const h5_filter *f, const uint8_t *in, size_t n, uint8_t *out,
                              size_t cap, size_t *out_n, h5_error *err)
{
    numbers s;
    H5_TRY(read_header(f, in, n, &s, err));
    if (s.count > cap / s.size)
        return h5_fail(err, H5_FORMAT, H5_UNDEF, "scale-offset: %zu numbers for a chunk of %zu",
                       s.count, cap);
    H5_TRY(numbers_decode(&s, h5_filter_values(f)[CLASS] == 1, in + HEADER, n - HEADER, out, err));
    *out_n = s.count * s.size;
    return H5_OK;
}

const h5_filter_row h5_filter_scaleoffset = {
    .id = 6,
    .name = "scale-offset",
    .nvalue = NVALUE,
    .most = scaleoffset_most,
    .decode = scaleoffset_decode,
};
