/*
 * vec_plane_kern_scalar.c - the definition of the plane kernels, in plain C
 *
 * The inner loop of dots has a fixed length, so that compilers turn it into the multiplication of
 * pairs (pmaddwd) that every x86-64 has.
 *
 * THREADS  no state
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>

#include "vec_base.h"
#include "vec_plane_kern.h"

static void dots_scalar(const vec_plane_query *q, const uint8_t *const *rows, size_t n,
                        int32_t *out)
{
    for (size_t i = 0; i < n; i++) {
        const uint8_t *code = rows[i] + VEC_PLANE_CODES;
        uint32_t s = 0;

        for (size_t j = 0; j < q->codes; j += VEC_PLANE_PAD) {
            int32_t t = 0;

            for (size_t k = 0; k < VEC_PLANE_PAD; k++)
                t += code[j + k] * q->code[j + k];
            s += (uint32_t)t; // may wrap; without the bias the sum fits
        }
        out[i] = (int32_t)(s - q->bias);
    }
}

static void nibbles_scalar(const int8_t *a, const int8_t *b, size_t bytes,
                           const uint8_t *const *rows, size_t n, int32_t *out)
{
    for (size_t i = 0; i < n; i++) {
        const uint8_t *code = rows[i] + VEC_PLANE_CODES;
        int32_t s = 0;

        for (size_t j = 0; j < bytes; j++)
            s += (code[j] & 15) * a[j] + (code[j] >> 4) * b[j];
        out[i] = s;
    }
}

static float get_f32(const uint8_t *p)
{
    uint32_t bits = vec_get32(p);
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The larger, b when a is not a number: what maxps does. */
static float larger(float a, float b)
{
    return a > b ? a : b;
}

static float low_l2(const vec_plane_query *q, float norm, float u)
{
    float d = norm - q->norm, m = norm * q->norm;
    float flat = VEC_PLANE_FLAT * (norm * norm + q->norm * q->norm);

    return sqrtf(larger((d * d + (m + m) * (1 - u)) - flat, 0)) * q->shrink;
}

static float low(const vec_plane_query *q, const uint8_t *row, int32_t dot)
{
    float norm = get_f32(row + VEC_PLANE_NORM), inverse = get_f32(row + VEC_PLANE_INVERSE);
    float cos = get_f32(row + VEC_PLANE_COS), sin = get_f32(row + VEC_PLANE_SIN);
    float p = (float)dot * (inverse * q->inverse);
    float root = sqrtf(larger(1 - p * p, 0) + VEC_PLANE_ROOT);
    float u = (cos * p + sin * root) + q->slack;
    float d;

    if (q->metric == VEC_L2)
        d = low_l2(q, norm, u);
    else if (q->metric == VEC_IP)
        d = -((norm * q->norm) * u);
    else
        d = 1 - u;
    d = norm >= q->least && norm <= q->most ? larger(d, -INFINITY) : -INFINITY;
    d = norm == 0 ? q->at_zero : d;
    return isnan(norm) ? INFINITY : d;
}

static float lows_scalar(const vec_plane_query *q, const uint8_t *const *rows, const int32_t *dots,
                         size_t n, float *out)
{
    float least = INFINITY;

    for (size_t i = 0; i < n; i++) {
        out[i] = low(q, rows[i], dots[i]);
        least = out[i] < least ? out[i] : least;
    }
    return least;
}

void vec_plane_fill_scalar(vec_plane_kernels *k)
{
    *k = (vec_plane_kernels){"scalar", dots_scalar, lows_scalar, nibbles_scalar, NULL};
}
