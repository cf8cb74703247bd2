/*
 * vec_kern_neon.c - kernels for 64-bit Arm (Advanced SIMD)
 *
 * Four accumulators of four lanes: product i goes to accumulator i / 4 % 4, lane i % 4, by one
 * fused multiply-add. The last, partial vector is copied into zeros first, since nothing behind the
 * arrays may be read, and goes to accumulator 3.
 *
 * The rows kernels take four rows a pass: sixteen accumulators and the query's four registers of
 * thirty-two.
 *
 * THREADS  no state
 *
 * SPDX-License-Identifier: MIT
 */
#include "vec_kern.h"

#if defined(__aarch64__)
#include <arm_neon.h>
#include <string.h>

typedef struct acc {
    float32x4_t s0, s1, s2, s3;
} acc;

VEC_INLINE acc zero(void)
{
    acc s = {vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0)};

    return s;
}

VEC_INLINE float32x4_t step4(int l2, float32x4_t s, const float *a, const float *b)
{
    float32x4_t x = vld1q_f32(a), y = vld1q_f32(b);
    float32x4_t d = l2 ? vsubq_f32(x, y) : x;

    return vfmaq_f32(s, d, l2 ? d : y);
}

VEC_INLINE acc step16(int l2, acc s, const float *a, const float *b)
{
    s.s0 = step4(l2, s.s0, a, b);
    s.s1 = step4(l2, s.s1, a + 4, b + 4);
    s.s2 = step4(l2, s.s2, a + 8, b + 8);
    s.s3 = step4(l2, s.s3, a + 12, b + 12);
    return s;
}

/* The last n < 16 products. */
VEC_INLINE acc tail(int l2, acc s, const float *a, const float *b, size_t n)
{
    size_t i = 0;

    if (n >= 4)
        s.s0 = step4(l2, s.s0, a, b), i = 4;
    if (n >= 8)
        s.s1 = step4(l2, s.s1, a + 4, b + 4), i = 8;
    if (n >= 12)
        s.s2 = step4(l2, s.s2, a + 8, b + 8), i = 12;
    if (i < n) {
        float x[4] = {0}, y[4] = {0};

        memcpy(x, a + i, (n - i) * sizeof *x);
        memcpy(y, b + i, (n - i) * sizeof *y);
        s.s3 = step4(l2, s.s3, x, y);
    }
    return s;
}

VEC_INLINE float sum(acc s)
{
    float32x4_t v = vaddq_f32(vaddq_f32(s.s0, s.s2), vaddq_f32(s.s1, s.s3));
    float32x2_t h = vadd_f32(vget_low_f32(v), vget_high_f32(v));

    return vget_lane_f32(h, 0) + vget_lane_f32(h, 1);
}

VEC_INLINE float pair(int l2, const float *a, const float *b, size_t n)
{
    acc s = zero();
    size_t i = 0;

    for (; n - i >= 16; i += 16)
        s = step16(l2, s, a + i, b + i);
    return sum(tail(l2, s, a + i, b + i, n - i));
}

VEC_INLINE void rows4(int l2, const float *q, const float *r, size_t dim, float *out)
{
    const float *r1 = r + dim, *r2 = r1 + dim, *r3 = r2 + dim;
    acc s = zero(), t = zero(), u = zero(), v = zero();
    size_t i = 0;

    for (; dim - i >= 16; i += 16) {
        s = step16(l2, s, q + i, r + i);
        t = step16(l2, t, q + i, r1 + i);
        u = step16(l2, u, q + i, r2 + i);
        v = step16(l2, v, q + i, r3 + i);
    }
    out[0] = sum(tail(l2, s, q + i, r + i, dim - i));
    out[1] = sum(tail(l2, t, q + i, r1 + i, dim - i));
    out[2] = sum(tail(l2, u, q + i, r2 + i, dim - i));
    out[3] = sum(tail(l2, v, q + i, r3 + i, dim - i));
}

VEC_INLINE void rows(int l2, const float *q, const float *r, size_t dim, size_t n, float *out)
{
    size_t i = 0;

    for (; n - i >= 4; i += 4)
        rows4(l2, q, r + i * dim, dim, out + i);
    for (; i < n; i++)
        out[i] = pair(l2, q, r + i * dim, dim);
}

static float dot_f32_neon(const float *a, const float *b, size_t n)
{
    return pair(0, a, b, n);
}

static float l2sq_f32_neon(const float *a, const float *b, size_t n)
{
    return pair(1, a, b, n);
}

static void dot_rows_f32_neon(const float *q, const float *r, size_t dim, size_t n, float *out)
{
    rows(0, q, r, dim, n, out);
}

static void l2sq_rows_f32_neon(const float *q, const float *r, size_t dim, size_t n, float *out)
{
    rows(1, q, r, dim, n, out);
}

static void widen_f16_neon(const uint8_t *in, size_t n, float *out)
{
    for (size_t i = 0; i < n; i += 4) {
        size_t m = n - i < 4 ? n - i : 4;
        uint16_t h[4] = {0};
        float x[4];

        memcpy(h, in + 2 * i, 2 * m);
        vst1q_f32(x, vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(h))));
        memcpy(out + i, x, m * sizeof *x);
    }
}

static void widen_i8_neon(const int8_t *in, float scale, size_t n, float *out)
{
    size_t i = 0;

    for (; n - i >= 8; i += 8) {
        int16x8_t c = vmovl_s8(vld1_s8(in + i));

        vst1q_f32(out + i, vmulq_n_f32(vcvtq_f32_s32(vmovl_s16(vget_low_s16(c))), scale));
        vst1q_f32(out + i + 4, vmulq_n_f32(vcvtq_f32_s32(vmovl_high_s16(c)), scale));
    }
    for (; i < n; i++)
        out[i] = (float)in[i] * scale;
}

void vec_kern_fill_neon(vec_kernels *k)
{
    k->level = "neon";
    k->dot_f32 = dot_f32_neon;
    k->l2sq_f32 = l2sq_f32_neon;
    k->dot_rows_f32 = dot_rows_f32_neon;
    k->l2sq_rows_f32 = l2sq_rows_f32_neon;
    k->widen_f16 = widen_f16_neon;
    k->widen_i8 = widen_i8_neon;
}

#else
typedef int vec_kern_neon_is_for_arm; // a translation unit may not be empty
#endif
