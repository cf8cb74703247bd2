/*
 * vec_kern_avx2.c - kernels for AVX2 with FMA
 *
 * Four accumulators of eight lanes: product i goes to accumulator i / 8 % 4, lane i % 8, by one
 * fused multiply-add. Four chains hide the latency of the addition (four to five cycles, two a
 * cycle). The last, partial vector is read under a mask, which does not touch the masked addresses,
 * and goes to accumulator 3.
 *
 * The rows kernels take two rows a pass: eight accumulators and the query's four registers fit the
 * sixteen there are.
 *
 * THREADS  no state
 *
 * SPDX-License-Identifier: MIT
 */
#include "vec_kern.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#define AVX2 __attribute__((target("avx2,fma")))
#define F16C __attribute__((target("avx2,f16c")))

typedef struct acc {
    __m256 s0, s1, s2, s3;
} acc;

VEC_INLINE AVX2 acc zero(void)
{
    acc s = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps()};

    return s;
}

VEC_INLINE AVX2 __m256 step(int l2, __m256 s, __m256 a, __m256 b)
{
    __m256 d = l2 ? _mm256_sub_ps(a, b) : a;

    return _mm256_fmadd_ps(d, l2 ? d : b, s);
}

VEC_INLINE AVX2 __m256 step8(int l2, __m256 s, const float *a, const float *b)
{
    return step(l2, s, _mm256_loadu_ps(a), _mm256_loadu_ps(b));
}

VEC_INLINE AVX2 acc step32(int l2, acc s, const float *a, const float *b)
{
    s.s0 = step8(l2, s.s0, a, b);
    s.s1 = step8(l2, s.s1, a + 8, b + 8);
    s.s2 = step8(l2, s.s2, a + 16, b + 16);
    s.s3 = step8(l2, s.s3, a + 24, b + 24);
    return s;
}

/* The last n < 32 products. */
VEC_INLINE AVX2 acc tail(int l2, acc s, const float *a, const float *b, size_t n)
{
    static const int32_t ones[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
    size_t i = 0;

    if (n >= 8)
        s.s0 = step8(l2, s.s0, a, b), i = 8;
    if (n >= 16)
        s.s1 = step8(l2, s.s1, a + 8, b + 8), i = 16;
    if (n >= 24)
        s.s2 = step8(l2, s.s2, a + 16, b + 16), i = 24;
    if (i < n) {
        __m256i m = _mm256_loadu_si256((const __m256i *)(ones + 8 - (n - i)));

        s.s3 = step(l2, s.s3, _mm256_maskload_ps(a + i, m), _mm256_maskload_ps(b + i, m));
    }
    return s;
}

VEC_INLINE AVX2 float sum(acc s)
{
    __m256 v = _mm256_add_ps(_mm256_add_ps(s.s0, s.s2), _mm256_add_ps(s.s1, s.s3));
    __m128 h = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));

    h = _mm_add_ps(h, _mm_movehl_ps(h, h));
    return _mm_cvtss_f32(_mm_add_ss(h, _mm_movehdup_ps(h)));
}

VEC_INLINE AVX2 float pair(int l2, const float *a, const float *b, size_t n)
{
    acc s = zero();
    size_t i = 0;

    for (; n - i >= 32; i += 32)
        s = step32(l2, s, a + i, b + i);
    return sum(tail(l2, s, a + i, b + i, n - i));
}

VEC_INLINE AVX2 void rows2(int l2, const float *q, const float *r, size_t dim, float *out)
{
    const float *r1 = r + dim;
    acc s = zero(), t = zero();
    size_t i = 0;

    for (; dim - i >= 32; i += 32) {
        s = step32(l2, s, q + i, r + i);
        t = step32(l2, t, q + i, r1 + i);
    }
    out[0] = sum(tail(l2, s, q + i, r + i, dim - i));
    out[1] = sum(tail(l2, t, q + i, r1 + i, dim - i));
}

VEC_INLINE AVX2 void rows(int l2, const float *q, const float *r, size_t dim, size_t n, float *out)
{
    size_t i = 0;

    for (; n - i >= 2; i += 2)
        rows2(l2, q, r + i * dim, dim, out + i);
    if (i < n)
        out[i] = pair(l2, q, r + i * dim, dim);
}

static AVX2 float dot_f32_avx2(const float *a, const float *b, size_t n)
{
    return pair(0, a, b, n);
}

static AVX2 float l2sq_f32_avx2(const float *a, const float *b, size_t n)
{
    return pair(1, a, b, n);
}

static AVX2 void dot_rows_f32_avx2(const float *q, const float *r, size_t dim, size_t n, float *out)
{
    rows(0, q, r, dim, n, out);
}

static AVX2 void l2sq_rows_f32_avx2(const float *q, const float *r, size_t dim, size_t n,
                                    float *out)
{
    rows(1, q, r, dim, n, out);
}

static F16C void widen_f16_avx2(const uint8_t *in, size_t n, float *out)
{
    size_t i = 0;

    for (; n - i >= 8; i += 8)
        _mm256_storeu_ps(
            out + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(in + 2 * i))));
    if (i < n) {
        uint16_t last[8] = {0};
        float x[8];

        memcpy(last, in + 2 * i, 2 * (n - i));
        _mm256_storeu_ps(x, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(void *)last)));
        memcpy(out + i, x, (n - i) * sizeof *x);
    }
}

static AVX2 void widen_i8_avx2(const int8_t *in, float scale, size_t n, float *out)
{
    __m256 s = _mm256_set1_ps(scale);
    size_t i = 0;

    for (; n - i >= 8; i += 8) {
        __m256i c = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)(in + i)));

        _mm256_storeu_ps(out + i, _mm256_mul_ps(_mm256_cvtepi32_ps(c), s));
    }
    for (; i < n; i++)
        out[i] = (float)in[i] * scale;
}

void vec_kern_fill_avx2(vec_kernels *k)
{
    k->level = "avx2";
    k->dot_f32 = dot_f32_avx2;
    k->l2sq_f32 = l2sq_f32_avx2;
    k->dot_rows_f32 = dot_rows_f32_avx2;
    k->l2sq_rows_f32 = l2sq_rows_f32_avx2;
    k->widen_f16 = widen_f16_avx2;
    k->widen_i8 = widen_i8_avx2;
}

#else
typedef int vec_kern_avx2_is_for_x86; // a translation unit may not be empty
#endif
