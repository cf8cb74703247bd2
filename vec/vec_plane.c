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
 *       angle(x, q) >= |angle(c, d) - angle(x, c)| - angle(q, d).
 *   P = cos angle(c, d) = c.d / (|c||d|) is an exact integer over two known lengths. With A and B
 *   the cosine and sine of angle(x, c), and T = angle(q, d), the cosine of angle(x, q) is at most
 *       U = A P + B sqrt(1 - P^2) + T,
 *   since cos(y - T) <= cos(y) + T. From U follow lower bounds on the distances:
 *       cosine  1 - U
 *       ip      -|x||q| U
 *       l2      sqrt((|x| - |q|)^2 + 2 |x||q| (1 - U)).
 *   A bound on the error of the product, by Cauchy and Schwarz, would be B in place of B times the
 *   root: much wider near the query, which is where it matters.
 *
 * ROUNDING  u = 2^-24 is the unit of f32; p, root and so on are what is computed in f32.
 *   p         conversion, two inverses, two products: |p - P| < 8 u.
 *   root      1 - P^2 is at most 1 - p^2 as computed + 19 u (16 from p, 2 from the two steps, 1
 *             from the next addition); VEC_PLANE_ROOT = 32 u is added. The root rounds by u.
 *   U         9 u from p and the stored cos, 7 u from products, root and sums.
 *   norms     a stored norm is within 2 u of the length, a product of two within 5 u.
 *   cosine    vec_distance sums n products in f32 in some order: the error is at most
 *             1.01 (n + 1) u |x||q| (the factor stands for the higher powers of u; n is at most
 *             VEC_PLANE_DIM_MAX). It divides by the norms (5 u) and goes on in double. Our
 *             subtraction rounds by 2 u.
 *   ip        the same sum; the norms: 5 u; our two products: 3 u.
 *             So slack = T + (48 + 1.01 (n + 1)) u serves both, and more than covers their 24 u.
 *   l2        U with slack T + 48 u. Next to s = |x|^2 + |q|^2, which bounds every term: norms 14 u
 *             (4 in the square of the difference, 10 in the product), our own steps 15 u; so
 *             VEC_PLANE_FLAT = 64 u times s is taken off. vec_distance sums n squares of rounded
 *             differences, none negative: relative error (n + 3) u before the root and half of it
 *             behind; shrink = 1 - (n + 16) u.
 *   RANGE     All this while nothing over- or underflows: |x| and |q| within 2^-60..2^60 (least and
 *             most). There vec_distance either sums in f32, where underflow takes away nothing that
 *             counts, or in double (vec_flat.c says when), with smaller errors. Outside, the bound
 *             is -infinity: such a row is always looked at. Zero vectors have known distances.
 *
 * MEASURES  cos and sin come from sums in double; the relative error of each is below n 2^-52, and
 *   since 1 - cos^2 cancels, (n + 8) 2^-50 is added to it before the root.
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
#include "vec_kern.h"
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

typedef vec_plane_sums sums;

#define LANES VEC_LANES

typedef struct lanes {
    double xx[LANES], xc[LANES], cc[LANES]; /* cc: whole numbers, exactly */
} lanes;

typedef struct angle {
    double cos, sin, inverse;
} angle;

/* Largest component by size; infinity when one is not finite. Sizes of floats are ordered as their
 * bits are. */
static float peak(const float *x, size_t dim)
{
    vec_i4 four = {0};
    uint32_t most = 0;
    size_t i = 0;
    float f;

    for (; dim - i >= 4; i += 4) {
        vec_i4 bits, more;

        memcpy(&bits, x + i, sizeof bits);
        bits &= 0x7fffffff;
        more = bits > four;
        four = (bits & more) | (four & ~more);
    }
    for (size_t j = 0; j < 4; j++)
        most = most > (uint32_t)four[j] ? most : (uint32_t)four[j];
    for (; i < dim; i++) {
        uint32_t bits;

        memcpy(&bits, x + i, sizeof bits);
        bits &= 0x7fffffffu;
        most = most > bits ? most : bits;
    }
    memcpy(&f, &most, sizeof f);
    return most < 0x7f800000u ? f : INFINITY;
}

double vec_plane_scale(const float *x, size_t dim, int most)
{
    float p = peak(x, dim);

    return p > 0 && p < INFINITY ? most / (double)p : 0;
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

/* Codes n <= LANES components; each lane has its own running sums, which would be long chains
 * otherwise. */
VEC_INLINE void encode_lanes(const float *x, size_t n, double scale, uint8_t *code, lanes *s)
{
    for (size_t j = 0; j < n; j++) {
        int32_t c = vec_plane_nearest((double)x[j] * scale);

        code[j] = (uint8_t)(c + 128);
        s->xx[j] += (double)x[j] * (double)x[j];
        s->xc[j] += (double)x[j] * (double)c;
        s->cc[j] += (double)c * (double)c;
    }
}

/* LANES components at a time, as encode_lanes does it; returns how many it has done. */
VEC_INLINE size_t encode_fours(const float *x, size_t dim, double scale, uint8_t *code, lanes *s)
{
    vec_d2 xx[2] = {{0}}, xc[2] = {{0}}, cc[2] = {{0}};
    size_t i = 0;

    for (; dim - i >= LANES; i += LANES) {
        for (size_t h = 0; h < 2; h++) {
            vec_f2 f;

            memcpy(&f, x + i + 2 * h, sizeof f);
            vec_d2 v = __builtin_convertvector(f, vec_d2);
            vec_d2 c = (v * scale + 0x1.8p52) - 0x1.8p52;
            code[i + 2 * h] = (uint8_t)((int32_t)c[0] + 128);
            code[i + 2 * h + 1] = (uint8_t)((int32_t)c[1] + 128);
            xx[h] += v * v;
            xc[h] += v * c;
            cc[h] += c * c;
        }
    }
    memcpy(s->xx, xx, sizeof xx);
    memcpy(s->xc, xc, sizeof xc);
    memcpy(s->cc, cc, sizeof cc);
    return i;
}

static void encode(const float *x, size_t dim, double scale, uint8_t *code, sums *out)
{
    lanes s;
    size_t i = encode_fours(x, dim, scale, code, &s);

    encode_lanes(x + i, dim - i, scale, code + i, &s);
    *out = (sums){(s.xx[0] + s.xx[2]) + (s.xx[1] + s.xx[3]),
                  (s.xc[0] + s.xc[2]) + (s.xc[1] + s.xc[3]),
                  (s.cc[0] + s.cc[1]) + (s.cc[2] + s.cc[3])};
}

void vec_plane_put_angle(const vec_plane_sums *s, size_t dim, uint8_t *record)
{
    angle a = measure(s, dim);

    put_f32(record + VEC_PLANE_INVERSE, (float)a.inverse);
    put_f32(record + VEC_PLANE_COS, (float)a.cos);
    put_f32(record + VEC_PLANE_SIN, up(a.sin));
}

void vec_plane_encode(const float *x, float norm, size_t dim, uint8_t *record)
{
    double scale = x ? vec_plane_scale(x, dim, CODE_MAX) : 0;
    sums s;

    memset(record + VEC_PLANE_CODES, 128, vec_plane_stride(dim) - VEC_PLANE_CODES);
    put_f32(record + VEC_PLANE_NORM, x ? norm : NAN);
    put_f32(record + VEC_PLANE_INVERSE, 0);
    put_f32(record + VEC_PLANE_COS, 1);
    put_f32(record + VEC_PLANE_SIN, 1);
    if (scale > 0) {
        encode(x, dim, scale, record + VEC_PLANE_CODES, &s);
        vec_plane_put_angle(&s, dim, record);
    }
}

int vec_plane_has_codes(const uint8_t *record)
{
    return vec_get32(record + VEC_PLANE_INVERSE) != 0;
}

int vec_plane_has_vector(const uint8_t *record)
{
    return (vec_get32(record + VEC_PLANE_NORM) & 0x7fffffffu) <= 0x7f800000u;
}

/* -------------------------------------------------------------------------------------- queries */

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

double vec_plane_turn(const vec_plane_sums *s, size_t dim, float *inverse)
{
    angle a = measure(s, dim);

    *inverse = (float)a.inverse;
    return asin(a.sin);
}

sums vec_plane_query_codes(const float *x, size_t dim, double scale, int16_t *code)
{
    double xx[LANES] = {0}, xc[LANES] = {0}, cc[LANES] = {0};

    for (size_t i = 0; i < dim; i += LANES) {
        size_t n = dim - i < LANES ? dim - i : LANES;

        for (size_t j = 0; j < n; j++) {
            double v = (double)x[i + j];
            int32_t c = vec_plane_nearest(v * scale);

            code[i + j] = (int16_t)c;
            xx[j] += v * v;
            xc[j] += v * c;
            cc[j] += (double)c * c;
        }
    }
    return (sums){(xx[0] + xx[2]) + (xx[1] + xx[3]), (xc[0] + xc[2]) + (xc[1] + xc[3]),
                  (cc[0] + cc[2]) + (cc[1] + cc[3])};
}

/* The codes; returns the angle between them and the query, 0 for a query without direction. */
static double query_codes(const float *x, size_t dim, vec_plane_query *q)
{
    float most = peak(x, dim);
    double scale = code_max(dim) / (double)most;
    sums s;

    if (most == 0 || most == INFINITY)
        return 0;
    s = vec_plane_query_codes(x, dim, scale, q->code);
    for (size_t i = 0; i < dim; i++) {
        int32_t c = q->code[i], hi = (c + 128 + 32768) / 256 - 128;

        q->hi[i] = (int8_t)hi;
        q->lo[i] = (int8_t)(c - 256 * hi);
        q->bias += 128 * (uint32_t)c;
    }
    return vec_plane_turn(&s, dim, &q->inverse);
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

void vec_plane_set(int metric, float norm, size_t dim, double turn, vec_plane_query *q)
{
    q->metric = metric;
    q->dim = dim;
    q->norm = norm;
    q->slack = up(turn + (48 + (metric == VEC_L2 ? 0 : 1.01 * (double)(dim + 1))) * UNIT);
    q->shrink = (float)(1 - ((double)dim + 16) * UNIT);
    set_range(q);
}

void vec_plane_prepare(int metric, const float *query, float norm, size_t dim, void *scratch,
                       vec_plane_query *q)
{
    size_t padded = round_up(dim, VEC_PLANE_QUERY_PAD);

    memset(scratch, 0, padded * 4);
    *q = (vec_plane_query){.codes = round_up(dim, VEC_PLANE_PAD)};
    q->code = scratch;
    q->hi = (int8_t *)(q->code + padded);
    q->lo = q->hi + padded;
    vec_plane_set(metric, norm, dim, query_codes(query, dim, q), q);
}
