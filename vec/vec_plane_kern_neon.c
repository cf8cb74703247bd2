/*
 * vec_plane_kern_neon.c - plane kernels for 64-bit Arm, with and without the dot product extension
 *
 * With dot products (Armv8.2, every Apple M and most servers) sixteen signed codes are multiplied
 * by sixteen signed bytes into four 32-bit lanes in one instruction; the query is two such bytes a
 * code, so there are two sums a row. Codes lose their bias by flipping the upper bit. Without them,
 * codes are widened to 16 bits and multiplied with the whole query.
 *
 * THREADS  no state
 *
 * SPDX-License-Identifier: MIT
 */
#include "vec_kern.h"
#include "vec_plane_kern.h"

#if defined(__aarch64__)
#include <arm_neon.h>
#include <math.h>
#include <string.h>

#if defined(__clang__)
#define DOTPROD __attribute__((target("dotprod")))
#else
#define DOTPROD __attribute__((target("arch=armv8.2-a+dotprod")))
#endif

static void dots_neon(const vec_plane_query *q, const uint8_t *const *rows, size_t n, int32_t *out)
{
    for (size_t i = 0; i < n; i++) {
        const uint8_t *code = rows[i] + VEC_PLANE_CODES;
        int32x4_t s = vdupq_n_s32(0), t = s;

        for (size_t j = 0; j < q->codes; j += 16) {
            int8x16_t x = vreinterpretq_s8_u8(veorq_u8(vld1q_u8(code + j), vdupq_n_u8(128)));
            int16x8_t a = vmovl_s8(vget_low_s8(x)), b = vmovl_high_s8(x);
            int16x8_t c = vld1q_s16(q->code + j), d = vld1q_s16(q->code + j + 8);

            s = vmlal_s16(s, vget_low_s16(a), vget_low_s16(c));
            t = vmlal_high_s16(t, a, c);
            s = vmlal_s16(s, vget_low_s16(b), vget_low_s16(d));
            t = vmlal_high_s16(t, b, d);
        }
        out[i] = vaddvq_s32(vaddq_s32(s, t));
    }
}

DOTPROD static void dots_dotprod(const vec_plane_query *q, const uint8_t *const *rows, size_t n,
                                 int32_t *out)
{
    for (size_t i = 0; i < n; i++) {
        const uint8_t *code = rows[i] + VEC_PLANE_CODES;
        int32x4_t hi = vdupq_n_s32(0), lo = hi;

        for (size_t j = 0; j < q->codes; j += 16) {
            int8x16_t x = vreinterpretq_s8_u8(veorq_u8(vld1q_u8(code + j), vdupq_n_u8(128)));

            hi = vdotq_s32(hi, x, vld1q_s8(q->hi + j));
            lo = vdotq_s32(lo, x, vld1q_s8(q->lo + j));
        }
        out[i] = vaddvq_s32(vaddq_s32(vshlq_n_s32(hi, 8), lo));
    }
}

#define NIBBLE_BYTES 64 // after so many, sums of 16 bits could overflow: 16 * 15 * 128 = 30720

/* Sums of 16 bits of up to NIBBLE_BYTES bytes of codes; each lane takes two products a step, and
 * the halves of a vector go to lanes of their own. */
VEC_INLINE int32x4_t nibble_sum(int32x4_t s, const uint8_t *code, const int8_t *a, const int8_t *b,
                                size_t n)
{
    int16x8_t t = vdupq_n_s16(0), u = t;

    for (size_t j = 0; j < n; j += 16) {
        uint8x16_t c = vld1q_u8(code + j);
        int8x16_t x = vreinterpretq_s8_u8(vandq_u8(c, vdupq_n_u8(15)));
        int8x16_t y = vreinterpretq_s8_u8(vshrq_n_u8(c, 4));
        int8x16_t qa = vld1q_s8(a + j), qb = vld1q_s8(b + j);

        t = vmlal_s8(t, vget_low_s8(x), vget_low_s8(qa));
        u = vmlal_high_s8(u, x, qa);
        t = vmlal_s8(t, vget_low_s8(y), vget_low_s8(qb));
        u = vmlal_high_s8(u, y, qb);
    }
    return vpadalq_s16(vpadalq_s16(s, t), u);
}

static void nibbles_neon(const int8_t *a, const int8_t *b, size_t bytes, const uint8_t *const *rows,
                         size_t n, int32_t *out)
{
    for (size_t i = 0; i < n; i++) {
        int32x4_t s = vdupq_n_s32(0);

        for (size_t j = 0; j < bytes; j += NIBBLE_BYTES)
            s = nibble_sum(s, rows[i] + VEC_PLANE_CODES + j, a + j, b + j,
                           bytes - j < NIBBLE_BYTES ? bytes - j : NIBBLE_BYTES);
        out[i] = vaddvq_s32(s);
    }
}

DOTPROD static void nibbles_dotprod(const int8_t *a, const int8_t *b, size_t bytes,
                                    const uint8_t *const *rows, size_t n, int32_t *out)
{
    for (size_t i = 0; i < n; i++) {
        const uint8_t *code = rows[i] + VEC_PLANE_CODES;
        int32x4_t s = vdupq_n_s32(0), t = s;

        for (size_t j = 0; j < bytes; j += 16) {
            uint8x16_t c = vld1q_u8(code + j);

            s = vdotq_s32(s, vreinterpretq_s8_u8(vandq_u8(c, vdupq_n_u8(15))), vld1q_s8(a + j));
            t = vdotq_s32(t, vreinterpretq_s8_u8(vshrq_n_u8(c, 4)), vld1q_s8(b + j));
        }
        out[i] = vaddvq_s32(vaddq_s32(s, t));
    }
}

typedef struct heads {
    float32x4_t norm, inverse, cos, sin;
} heads;

VEC_INLINE float32x4_t head(const uint8_t *row)
{
    return vreinterpretq_f32_u8(vld1q_u8(row));
}

VEC_INLINE heads heads4(const uint8_t *const r[4])
{
    float32x4_t a = head(r[0]), b = head(r[1]), c = head(r[2]), d = head(r[3]);
    float64x2_t ab = vreinterpretq_f64_f32(vzip1q_f32(a, b));
    float64x2_t cd = vreinterpretq_f64_f32(vzip1q_f32(c, d));
    float64x2_t ef = vreinterpretq_f64_f32(vzip2q_f32(a, b));
    float64x2_t gh = vreinterpretq_f64_f32(vzip2q_f32(c, d));
    heads h = {vreinterpretq_f32_f64(vzip1q_f64(ab, cd)), vreinterpretq_f32_f64(vzip2q_f64(ab, cd)),
               vreinterpretq_f32_f64(vzip1q_f64(ef, gh)),
               vreinterpretq_f32_f64(vzip2q_f64(ef, gh))};

    return h;
}

VEC_INLINE float32x4_t all(float x)
{
    return vdupq_n_f32(x);
}

/* The larger, b when a is not a number. */
VEC_INLINE float32x4_t larger(float32x4_t a, float32x4_t b)
{
    return vbslq_f32(vcgtq_f32(a, b), a, b);
}

/* An upper bound on the cosine of the angle between row and query. */
VEC_INLINE float32x4_t cosine4(const vec_plane_query *q, heads h, int32x4_t dots)
{
    float32x4_t p = vmulq_f32(vcvtq_f32_s32(dots), vmulq_f32(h.inverse, all(q->inverse)));
    float32x4_t root = larger(vsubq_f32(all(1), vmulq_f32(p, p)), all(0)), u;

    root = vsqrtq_f32(vaddq_f32(root, all(VEC_PLANE_ROOT)));
    u = vaddq_f32(vmulq_f32(h.cos, p), vmulq_f32(h.sin, root));
    return vaddq_f32(u, all(q->slack));
}

VEC_INLINE float32x4_t l2_4(const vec_plane_query *q, float32x4_t norm, float32x4_t u)
{
    float32x4_t d = vsubq_f32(norm, all(q->norm)), m = vmulq_f32(norm, all(q->norm));
    float32x4_t flat = vaddq_f32(vmulq_f32(norm, norm), all(q->norm * q->norm));

    m = vmulq_f32(vaddq_f32(m, m), vsubq_f32(all(1), u));
    d = vaddq_f32(vmulq_f32(d, d), m);
    d = vsubq_f32(d, vmulq_f32(all(VEC_PLANE_FLAT), flat));
    return vmulq_f32(vsqrtq_f32(larger(d, all(0))), all(q->shrink));
}

VEC_INLINE float32x4_t lows4(const vec_plane_query *q, const uint8_t *const r[4],
                             const int32_t dots[4])
{
    heads h = heads4(r);
    float32x4_t u = cosine4(q, h, vld1q_s32(dots)), d;
    uint32x4_t in = vandq_u32(vcgeq_f32(h.norm, all(q->least)), vcleq_f32(h.norm, all(q->most)));

    if (q->metric == VEC_L2)
        d = l2_4(q, h.norm, u);
    else if (q->metric == VEC_IP)
        d = vnegq_f32(vmulq_f32(vmulq_f32(h.norm, all(q->norm)), u));
    else
        d = vsubq_f32(all(1), u);
    d = vbslq_f32(in, larger(d, all(-INFINITY)), all(-INFINITY));
    d = vbslq_f32(vceqq_f32(h.norm, all(0)), all(q->at_zero), d);
    return vbslq_f32(vceqq_f32(h.norm, h.norm), d, all(INFINITY));
}

static float lows_neon(const vec_plane_query *q, const uint8_t *const *rows, const int32_t *dots,
                       size_t n, float *out)
{
    float32x4_t least = all(INFINITY);
    size_t i = 0;

    for (; n - i >= 4; i += 4) {
        float32x4_t d = lows4(q, rows + i, dots + i);

        least = vminq_f32(least, d);
        vst1q_f32(out + i, d);
    }
    if (i < n) {
        const uint8_t *r[4];
        int32_t s[4];
        float d[4];

        vec_plane_fill_up(rows + i, n - i, r, 4);
        for (size_t j = 0; j < 4; j++)
            s[j] = dots[i + j < n ? i + j : n - 1];
        vst1q_f32(d, lows4(q, r, s));
        least = vminq_f32(least, vld1q_f32(d));
        memcpy(out + i, d, (n - i) * sizeof *d);
    }
    return vminvq_f32(least);
}

void vec_plane_fill_neon(vec_plane_kernels *k)
{
    *k = (vec_plane_kernels){"neon", dots_neon, lows_neon, nibbles_neon, NULL};
}

void vec_plane_fill_dotprod(vec_plane_kernels *k)
{
    k->level = "dotprod";
    k->dots = dots_dotprod;
    k->nibbles = nibbles_dotprod;
}

#else
typedef int vec_plane_kern_neon_is_for_arm; // a translation unit may not be empty
#endif
