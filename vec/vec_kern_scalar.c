/*
 * vec_kern_scalar.c - the definition of every kernel, in plain C
 *
 * Eight lanes: product i goes to lane i % 8, then lanes are summed in a tree. Independent lanes let
 * a compiler use the four-wide registers every x86-64 and arm64 has, and bound the error better
 * than one running sum would.
 *
 * THREADS  no state
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <string.h>

#include "vec_kern.h"

#define LANES 8

VEC_INLINE float step(int l2, float s, float a, float b)
{
    float d = l2 ? a - b : a;

    return s + d * (l2 ? d : b);
}

VEC_INLINE float pair(int l2, const float *a, const float *b, size_t n)
{
    float s[LANES] = {0};
    size_t i = 0;

    for (; n - i >= LANES; i += LANES)
        for (size_t j = 0; j < LANES; j++)
            s[j] = step(l2, s[j], a[i + j], b[i + j]);
    for (size_t j = 0; i + j < n; j++)
        s[j] = step(l2, s[j], a[i + j], b[i + j]);
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

static float dot_f32_scalar(const float *a, const float *b, size_t n)
{
    return pair(0, a, b, n);
}

static float l2sq_f32_scalar(const float *a, const float *b, size_t n)
{
    return pair(1, a, b, n);
}

static void dot_rows_f32_scalar(const float *q, const float *rows, size_t dim, size_t n, float *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = pair(0, q, rows + i * dim, dim);
}

static void l2sq_rows_f32_scalar(const float *q, const float *rows, size_t dim, size_t n,
                                 float *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = pair(1, q, rows + i * dim, dim);
}

/* A half float's digits, shifted into place, make a float whose exponent is 112 too low: one exact
 * multiplication puts that right, for subnormal ones too. */
static void widen_f16_scalar(const uint8_t *in, size_t n, float *out)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t h = (uint32_t)in[2 * i] | (uint32_t)in[2 * i + 1] << 8, b = (h & 0x7fff) << 13;
        float x;

        memcpy(&x, &b, sizeof x);
        x *= 0x1p112f;
        memcpy(&b, &x, sizeof b);
        if ((h & 0x7c00) == 0x7c00)
            b = 0x7f800000 | (h & 0x3ff) << 13 | ((h & 0x3ff) != 0) << 22; // infinite or no number
        b |= (h & 0x8000) << 16;
        memcpy(out + i, &b, sizeof b);
    }
}

static void widen_i8_scalar(const int8_t *in, float scale, size_t n, float *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (float)in[i] * scale;
}

void vec_kern_fill_scalar(vec_kernels *k)
{
    k->level = "scalar";
    k->dot_f32 = dot_f32_scalar;
    k->l2sq_f32 = l2sq_f32_scalar;
    k->dot_rows_f32 = dot_rows_f32_scalar;
    k->l2sq_rows_f32 = l2sq_rows_f32_scalar;
    k->widen_f16 = widen_f16_scalar;
    k->widen_i8 = widen_i8_scalar;
}

int vec_all_finite_f32(const float *x, size_t n)
{
    uint32_t worst = 0;

    for (size_t i = 0; i < n; i++) {
        uint32_t bits;

        memcpy(&bits, x + i, sizeof bits);
        bits &= 0x7fffffffu;
        worst = worst > bits ? worst : bits;
    }
    return worst < 0x7f800000u;
}

/* In double no square of a float over- or underflows, and the result does not depend on the level:
 * norms are stored. */
float vec_norm_f32(const float *x, size_t n)
{
    double s[4] = {0};
    size_t i = 0;

    for (; n - i >= 4; i += 4)
        for (size_t j = 0; j < 4; j++)
            s[j] += (double)x[i + j] * (double)x[i + j];
    for (size_t j = 0; i + j < n; j++)
        s[j] += (double)x[i + j] * (double)x[i + j];
    return (float)sqrt((s[0] + s[2]) + (s[1] + s[3]));
}
