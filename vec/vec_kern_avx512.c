/*
 * vec_kern_avx512.c - kernels for AVX-512 (F, BW, DQ, VL)
 *
 * Four accumulators of sixteen lanes: product i goes to accumulator i / 16 % 4, lane i % 16, by one
 * fused multiply-add. The last, partial vector is read under a mask, which does not touch the
 * masked addresses, and goes to accumulator 3.
 *
 * The rows kernels take four rows a pass: sixteen accumulators and the query's four registers of
 * thirty-two. They read memory as fast as a plain sum of its words does; asking for rows ahead of
 * time (prefetcht0, prefetcht1; 512 bytes to 16 KiB ahead) changed nothing, prefetchnta halved it.
 *
 * THREADS  no state
 *
 * SPDX-License-Identifier: MIT
 */
#include "vec_kern.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")))

typedef struct acc {
    __m512 s0, s1, s2, s3;
} acc;

VEC_INLINE AVX512 acc zero(void)
{
    acc s = {_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps()};

    return s;
}

VEC_INLINE AVX512 __m512 step(int l2, __m512 s, __m512 a, __m512 b)
{
    __m512 d = l2 ? _mm512_sub_ps(a, b) : a;

    return _mm512_fmadd_ps(d, l2 ? d : b, s);
}

VEC_INLINE AVX512 __m512 step16(int l2, __m512 s, const float *a, const float *b)
{
    return step(l2, s, _mm512_loadu_ps(a), _mm512_loadu_ps(b));
}

VEC_INLINE AVX512 acc step64(int l2, acc s, const float *a, const float *b)
{
    s.s0 = step16(l2, s.s0, a, b);
    s.s1 = step16(l2, s.s1, a + 16, b + 16);
    s.s2 = step16(l2, s.s2, a + 32, b + 32);
    s.s3 = step16(l2, s.s3, a + 48, b + 48);
    return s;
}

/* The last n < 64 products. */
VEC_INLINE AVX512 acc tail(int l2, acc s, const float *a, const float *b, size_t n)
{
    size_t i = 0;

    if (n >= 16)
        s.s0 = step16(l2, s.s0, a, b), i = 16;
    if (n >= 32)
        s.s1 = step16(l2, s.s1, a + 16, b + 16), i = 32;
    if (n >= 48)
        s.s2 = step16(l2, s.s2, a + 32, b + 32), i = 48;
    if (i < n) {
        __mmask16 m = (__mmask16)((1u << (n - i)) - 1);

        s.s3 = step(l2, s.s3, _mm512_maskz_loadu_ps(m, a + i), _mm512_maskz_loadu_ps(m, b + i));
    }
    return s;
}

VEC_INLINE AVX512 float sum(acc s)
{
    __m512 w = _mm512_add_ps(_mm512_add_ps(s.s0, s.s2), _mm512_add_ps(s.s1, s.s3));
    __m256 v = _mm256_add_ps(_mm512_castps512_ps256(w), _mm512_extractf32x8_ps(w, 1));
    __m128 h = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));

    h = _mm_add_ps(h, _mm_movehl_ps(h, h));
    return _mm_cvtss_f32(_mm_add_ss(h, _mm_movehdup_ps(h)));
}

VEC_INLINE AVX512 float pair(int l2, const float *a, const float *b, size_t n)
{
    acc s = zero();
    size_t i = 0;

    for (; n - i >= 64; i += 64)
        s = step64(l2, s, a + i, b + i);
    return sum(tail(l2, s, a + i, b + i, n - i));
}

VEC_INLINE AVX512 void rows4(int l2, const float *q, const float *r, size_t dim, float *out)
{
    const float *r1 = r + dim, *r2 = r1 + dim, *r3 = r2 + dim;
    acc s = zero(), t = zero(), u = zero(), v = zero();
    size_t i = 0;

    for (; dim - i >= 64; i += 64) {
        s = step64(l2, s, q + i, r + i);
        t = step64(l2, t, q + i, r1 + i);
        u = step64(l2, u, q + i, r2 + i);
        v = step64(l2, v, q + i, r3 + i);
    }
    out[0] = sum(tail(l2, s, q + i, r + i, dim - i));
    out[1] = sum(tail(l2, t, q + i, r1 + i, dim - i));
    out[2] = sum(tail(l2, u, q + i, r2 + i, dim - i));
    out[3] = sum(tail(l2, v, q + i, r3 + i, dim - i));
}

VEC_INLINE AVX512 void rows(int l2, const float *q, const float *r, size_t dim, size_t n,
                            float *out)
{
    size_t i = 0;

    for (; n - i >= 4; i += 4)
        rows4(l2, q, r + i * dim, dim, out + i);
    for (; i < n; i++)
        out[i] = pair(l2, q, r + i * dim, dim);
}

static AVX512 float dot_f32_avx512(const float *a, const float *b, size_t n)
{
    return pair(0, a, b, n);
}

static AVX512 float l2sq_f32_avx512(const float *a, const float *b, size_t n)
{
    return pair(1, a, b, n);
}

static AVX512 void dot_rows_f32_avx512(const float *q, const float *r, size_t dim, size_t n,
                                       float *out)
{
    rows(0, q, r, dim, n, out);
}

static AVX512 void l2sq_rows_f32_avx512(const float *q, const float *r, size_t dim, size_t n,
                                        float *out)
{
    rows(1, q, r, dim, n, out);
}

void vec_kern_fill_avx512(vec_kernels *k)
{
    k->level = "avx512";
    k->dot_f32 = dot_f32_avx512;
    k->l2sq_f32 = l2sq_f32_avx512;
    k->dot_rows_f32 = dot_rows_f32_avx512;
    k->l2sq_rows_f32 = l2sq_rows_f32_avx512;
}

#else
typedef int vec_kern_avx512_is_for_x86; // a translation unit may not be empty
#endif
