/*
 * vec_stored.c - vectors kept in fewer bits: half-precision floats, bytes with a scale
 *
 * FORMAT    One row, little-endian:
 *     VEC_F32   dim f32
 *     VEC_F16   dim f16 (IEEE 754), nearest, ties to even
 *     VEC_I8    dim i8 c, -127..127, then one f32 s; the values are c * s
 *
 * What a row becomes when it is stored is again a vector of floats (vec_stored_round), and storing
 * that changes nothing any more: so it may pass through a log as floats and be encoded later.
 *   f16       each value is a half float already, and stays what it is.
 *   i8        s is max |x| / 127, rounded up to 16 binary digits. So c * s, of at most 23 digits,
 *             is exact, and the largest value is exactly 127 s: what is divided by something less
 *             than 2^-15 too large still rounds to 127. From it follows the same s, and from s the
 *             same codes. Where s would be subnormal it is the least power of two that will do: the
 *             largest code is then 64 to 127, and again the same s follows.
 *
 * RANGE     f16 ends at 65504: a larger value is refused. Values below 2^-25 become 0.
 * THREADS   no state
 * TESTS     t_vec_stored.c
 *
 * SPDX-License-Identifier: MIT
 */
#include <float.h>
#include <math.h>

#include "vec_base.h"
#include "vec_kern.h"

size_t vec_stored_bytes(int storage, size_t dim)
{
    return storage == VEC_F16 ? 2 * dim : storage == VEC_I8 ? dim + sizeof(float) : 4 * dim;
}

/* --------------------------------------------------------------------------------------- halves */

static uint32_t float_bits(float x)
{
    uint32_t b;

    memcpy(&b, &x, sizeof b);
    return b;
}

/* The nearest half float; infinity beyond 65504. */
static uint16_t half(float x)
{
    uint32_t b = float_bits(x), sign = b >> 16 & 0x8000, a = b & 0x7fffffff;

    if (a >= 0x47800000) // 2^16
        return (uint16_t)(sign | 0x7c00);
    if (a < 0x38800000) { // subnormal as a half: units of 2^-24, by an addition that rounds
        float f;

        memcpy(&f, &a, sizeof f);
        f += 0.5f;
        return (uint16_t)(sign | (float_bits(f) - 0x3f000000));
    }
    a += 0xfff + (a >> 13 & 1); // rounds at the 13th digit, and may carry into the exponent
    return (uint16_t)(sign | ((a - 0x38000000) >> 13));
}

static void put_half(uint8_t *p, uint16_t h)
{
    p[0] = (uint8_t)h;
    p[1] = (uint8_t)(h >> 8);
}

/* ---------------------------------------------------------------------------------------- bytes */

/* max |x| / 127 rounded up to 16 digits. */
static float scale_of(const float *x, size_t dim)
{
    float most = 0, s;
    uint32_t b;

    for (size_t i = 0; i < dim; i++)
        most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
    if (most < 127 * FLT_MIN) {
        for (s = most > 0 ? 0x1p-149f : 0; 127 * s < most; s *= 2)
            ;
        return s;
    }
    s = (float)((double)most / 127);
    if ((double)s * 127 < (double)most)
        s = nextafterf(s, INFINITY);
    b = (float_bits(s) + 0xff) & ~(uint32_t)0xff;
    memcpy(&s, &b, sizeof s);
    return s;
}

static int8_t code(float x, double per)
{
    return (int8_t)lrint((double)x * per);
}

/* -------------------------------------------------------------------------------- the interface */

void vec_stored_encode(int storage, const float *x, size_t dim, uint8_t *out)
{
    if (storage == VEC_F16) {
        for (size_t i = 0; i < dim; i++)
            put_half(out + 2 * i, half(x[i]));
    } else if (storage == VEC_I8) {
        float s = scale_of(x, dim);
        double per = s > 0 ? 1 / (double)s : 0;

        for (size_t i = 0; i < dim; i++)
            out[i] = (uint8_t)code(x[i], per);
        vec_put32(out + dim, float_bits(s));
    } else {
        for (size_t i = 0; i < dim; i++)
            vec_put32(out + 4 * i, float_bits(x[i]));
    }
}

void vec_stored_decode(int storage, const uint8_t *in, size_t dim, float *out)
{
    if (storage == VEC_F16) {
        vec_kern()->widen_f16(in, dim, out);
    } else if (storage == VEC_I8) {
        uint32_t b = vec_get32(in + dim);
        float s;

        memcpy(&s, &b, sizeof s);
        vec_kern()->widen_i8((const int8_t *)in, s, dim, out);
    } else {
        for (size_t i = 0; i < dim; i++) {
            uint32_t b = vec_get32(in + 4 * i);

            memcpy(out + i, &b, sizeof b);
        }
    }
}

int vec_stored_round(int storage, float *x, size_t dim)
{
    float s;
    double per;

    switch (storage) {
    case VEC_F32:
        return VEC_OK;
    case VEC_F16:
        for (size_t i = 0; i < dim; i++)
            if ((half(x[i]) & 0x7c00) == 0x7c00)
                return VEC_LIMIT;
        for (size_t i = 0; i < dim; i++) {
            uint8_t two[2];

            put_half(two, half(x[i]));
            vec_kern()->widen_f16(two, 1, x + i);
        }
        return VEC_OK;
    case VEC_I8:
        s = scale_of(x, dim);
        if (!((double)s * 127 <= (double)FLT_MAX))
            return VEC_LIMIT;
        per = s > 0 ? 1 / (double)s : 0;
        for (size_t i = 0; i < dim; i++)
            x[i] = (float)code(x[i], per) * s;
        return VEC_OK;
    default:
        return VEC_MISUSE;
    }
}
