/*
 * vec_plane.c - records of 8-bit codes, and why the bounds that follow from them are certain
 *
 * FORMAT    one record, little-endian, vec_plane_stride(dim) bytes
 *   offset  size  field     meaning
 *   0       4     norm      f32, vec_norm_f32 of the row; NaN: a row without a vector
 *   4       4     inverse   f32, 1 / |c|; 0 when c is zero
 *   8       4     cos       f32, cosine of the angle between row and c
 *   12      4     sin       f32, sine of that angle, rounded up
 *   16      dim   codes     u8, c + 128 with c = -127..127, nearest to 127 x / max |x|
 *   ...           padding   128 (c = 0) up to a multiple of 16 bytes
 * Codes are biased because the widest multiplication there is (VNNI) takes unsigned bytes on one
 * side. A row that is zero or not finite has c = 0, cos = 1, sin = 1, which bounds nothing.
 *
 * BOUND     Only angles are quantised. Let x be the row, q the query, c and d their codes. On the
 *   unit sphere the triangle inequality holds:
 *       angle(x, q) >= angle(c, d) - angle(x, c) - angle(q, d).
 *   With P = cos angle(c, d) = c.d / (|c||d|), an exact integer over two known lengths, and
 *   A = cos, B = sin of angle(x, c), the cosine of angle(x, q) is, while P < A, at most
 *       U = A P + B sqrt(1 - P^2) + T,      T = angle(q, d),
 *   since cos(y - T) <= cos(y) + T; and if P >= A, at most 1. (The bound is far closer than that of
 *   Cauchy and Schwarz where it matters: near the query the root is small.) From U follow
 *       cosine  1 - U
 *       ip      -|x||q| U
 *       l2      sqrt((|x| - |q|)^2 + 2 |x||q| (1 - U)).
 *
 * ROUNDING  u = 2^-24 is the unit of f32. What is computed is p, root and so on.
 *   p         conversion, two inverses and two products: |p - P| < 8 u.
 *   root      1 - P^2 <= (1 - p^2 as computed) + 2 |p| 8 u + 2 u, below + VEC_PLANE_ROOT = 32 u;
 *             the root itself rounds by u.
 *   P < A     follows from p + VEC_PLANE_NEAR < cos: 16 u cover p, the stored cos, and the sum.
 *   U         A P: 8 u from p, u from cos; products, root and sums: 8 u. 17 u in all.
 *   norms     each stored norm is within 2 u of the length; so |x||q| within 5 u.
 *   cosine    vec_distance sums n products in f32 in some order, error at most 1.01 (n + 1) u |x||q|
 *             (the factor takes care of the powers of u while n <= VEC_PLANE_DIM_MAX), divides by the norms (5 u) and subtracts in double; our subtraction rounds by 2 u.
 *             Where norms leave 2^-100..2^126 vec_distance sums in double, with less error.
 *   ip        the same sum; two products of ours: 3 u; the norms: 5 u. 
 *   So slack = T + (48 + 1.01 (n + 1)) u serves cosine and ip; l2 takes T + 48 u.
 *   l2        every term is at most s = |x|^2 + |q|^2. Norms: 2 |x||(|x| - |q|)| and so on, together
 *             16 u s; own rounding: 12 u s; VEC_PLANE_FLAT = 64 u. vec_distance sums n squares of
 *             rounded differences, none negative: relative error (n + 3) u, half of it behind the
 *             root; shrink = 1 - (n + 16) u.
 *   Underflow and overflow: the formula is used while |x| and |q| lie in a range where none of the
 *   above can leave f32 (least, most); outside the bound is -infinity, and the row is looked at.
 *   Zero vectors have known distances.
 *
 * MEASURES  cos and sin come from sums in double: relative error below n 2^-52 each, and since
 *   sin^2 = 1 - cos^2 cancels, (n + 8) 2^-50 is added to it before the root.
 *
 * OWNERSHIP nothing is allocated here
 * THREADS   no state
 * TESTS     t_vec_plane.c
 *
 * SPDX-License-Identifier: MIT
 */
#include "vec_plane.h"

#include <math.h>

#include "vec_base.h"
#include "vec_limits.h"

#define CODE_MAX 127
#define UNIT     0x1p-24

static size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

size_t vec_plane_stride(size_t dim)
{
    return VEC_PLANE_CODES + round_up(dim, VEC_PLANE_PAD);
}

/* Sums over a vector and its codes. */
typedef struct sums {
    double xx, xc, cc;
} sums;

typedef struct angle {
    double cos, sin, inverse;
} angle;

/* Largest component by size; infinity when one is not finite. */
static float peak(const float *x, size_t dim)
{
    float most = 0;

    for (size_t i = 0; i < dim; i++) {
        float a = fabsf(x[i]);

        most = a <= most ? most : a; // a NaN goes through
    }
    return isfinite(most) ? most : INFINITY;
}

/* The nearest integer; by truncation, which needs no library and is the same everywhere. */
static int32_t nearest(double x)
{
    return (int32_t)(x + (x < 0 ? -0.5 : 0.5));
}

/* The sine is rounded up by all that the sums may be off. */
static angle measure(const sums *s, size_t dim)
{
    double cos = s->xc / (sqrt(s->xx) * sqrt(s->cc));
    double sin = sqrt(fmax(1 - cos * cos, 0) + (double)(dim + 8) * 0x1p-50);

    return (angle){cos, fmin(sin, 1), 1 / sqrt(s->cc)};
}

static float up(double x)
{
    float f = (float)x;

    return (double)f < x ? nextafterf(f, INFINITY) : f;
}

static void put_f32(uint8_t *p, float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    vec_put32(p, bits);
}

/* Four running sums each: they are long chains otherwise. */
static void encode(const float *x, size_t dim, double scale, uint8_t *code, sums *out)
{
    double xx[4] = {0}, xc[4] = {0};
    int64_t cc = 0;

    for (size_t i = 0; i < dim; i++) {
        int32_t c = nearest((double)x[i] * scale);

        code[i] = (uint8_t)(c + 128);
        xx[i & 3] += (double)x[i] * (double)x[i];
        xc[i & 3] += (double)x[i] * (double)c;
        cc += c * c;
    }
    *out = (sums){(xx[0] + xx[2]) + (xx[1] + xx[3]), (xc[0] + xc[2]) + (xc[1] + xc[3]), (double)cc};
}

void vec_plane_encode(const float *x, float norm, size_t dim, uint8_t *record)
{
    float most = x ? peak(x, dim) : 0;
    angle a = {1, 1, 0};
    sums s;

    memset(record + VEC_PLANE_CODES, 128, vec_plane_stride(dim) - VEC_PLANE_CODES);
    if (most > 0 && most < INFINITY) {
        encode(x, dim, CODE_MAX / (double)most, record + VEC_PLANE_CODES, &s);
        a = measure(&s, dim);
    }
    put_f32(record + VEC_PLANE_NORM, x ? norm : NAN);
    put_f32(record + VEC_PLANE_INVERSE, (float)a.inverse);
    put_f32(record + VEC_PLANE_COS, (float)a.cos);
    put_f32(record + VEC_PLANE_SIN, up(a.sin));
}

/* --------------------------------------------------------------------------------------- queries */

size_t vec_plane_scratch(size_t dim)
{
    return dim <= VEC_PLANE_DIM_MAX ? round_up(dim, VEC_PLANE_QUERY_PAD) * 4 : 0;
}

/* Largest query code for which 128 * code * dim, the largest sum there can be, stays in 31 bits. */
static int32_t code_max(size_t dim)
{
    size_t fits = (((size_t)1 << 24) - 1) / round_up(dim, VEC_PLANE_PAD);

    return fits < VEC_PLANE_QUERY_MAX ? (int32_t)fits : VEC_PLANE_QUERY_MAX;
}

/* The codes; returns the angle between them and the query, 0 for a query without direction. */
static double query_codes(const float *x, size_t dim, vec_plane_query *q)
{
    float most = peak(x, dim);
    double scale = code_max(dim) / (double)most;
    sums s = {0, 0, 0};
    angle a;

    if (most == 0 || most == INFINITY)
        return 0;
    for (size_t i = 0; i < dim; i++) {
        int32_t c = nearest((double)x[i] * scale), hi = (c + 64 + 8192) / 128 - 64;

        q->code[i] = (int16_t)c;
        q->hi[i] = (int8_t)hi;
        q->lo[i] = (int8_t)(c - 128 * hi);
        q->bias += 128 * (uint32_t)c;
        s.xx += (double)x[i] * (double)x[i];
        s.xc += (double)x[i] * c;
        s.cc += (double)c * c;
    }
    a = measure(&s, dim);
    q->inverse = (float)a.inverse;
    return asin(a.sin);
}

/* Between which row norms every step of the formula, and of the f32 sums in vec_distance, stays
 * clear of overflow and underflow. */
static void set_range(vec_plane_query *q)
{
    double n = q->norm;

    q->least = 0x1p-60f;
    q->most = 0x1p60f;
    if (n != 0 && !(n >= 0x1p-60 && n <= 0x1p60))
        q->least = INFINITY;
    q->at_zero = 1;
    if (q->metric == VEC_IP)
        q->at_zero = 0;
    if (q->metric == VEC_L2)
        q->at_zero = q->least < INFINITY ? q->norm * q->shrink : -INFINITY;
}

void vec_plane_prepare(int metric, const float *query, float norm, size_t dim, void *scratch,
                       vec_plane_query *q)
{
    size_t padded = round_up(dim, VEC_PLANE_QUERY_PAD);
    double turn;

    memset(scratch, 0, padded * 4);
    *q = (vec_plane_query){.metric = metric, .dim = dim, .norm = norm};
    q->codes = round_up(dim, VEC_PLANE_PAD);
    q->code = scratch;
    q->hi = (int8_t *)(q->code + padded);
    q->lo = q->hi + padded;
    turn = query_codes(query, dim, q);
    q->slack = up(turn + (48 + (metric == VEC_L2 ? 0 : 1.01 * (double)(dim + 1))) * UNIT);
    q->scale = metric == VEC_IP ? norm : norm == 0 ? 0 : 1;
    q->shrink = (float)(1 - ((double)dim + 16) * UNIT);
    set_range(q);
}
