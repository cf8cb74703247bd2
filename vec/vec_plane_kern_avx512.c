/*
 * vec_plane_kern_avx512.c - the dots kernel for AVX-512, with and without VNNI
 *
 * VNNI multiplies 64 unsigned codes by 64 signed bytes and adds fours of them into sixteen 32-bit
 * lanes, in one instruction. The query needs two such bytes a code, so there are two sums a row. A
 * record of 384 codes is then read in twelve instructions, faster than memory brings it.
 *
 * Without VNNI (Skylake servers) the way is that of AVX2, twice as wide. lows is memory's shadow
 * already in the AVX2 version and stays that.
 *
 * THREADS  no state
 *
 * SPDX-License-Identifier: MIT
 */
#include "vec_kern.h"
#include "vec_plane_kern.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#define AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2")))
#define VNNI   __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2")))

/* Sums of the lanes of four vectors. */
VEC_INLINE AVX512 __m128i sums4(__m512i a, __m512i b, __m512i c, __m512i d)
{
    __m512i ab = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    __m512i cd = _mm512_add_epi32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
    __m512i s = _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
    __m256i h = _mm256_add_epi32(_mm512_castsi512_si256(s), _mm512_extracti64x4_epi64(s, 1));

    return _mm_add_epi32(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1));
}

VEC_INLINE AVX512 __m512i step32(__m512i s, __m256i code, const int16_t *q)
{
    return _mm512_add_epi32(s,
                            _mm512_madd_epi16(_mm512_cvtepu8_epi16(code), _mm512_loadu_si512(q)));
}

VEC_INLINE AVX512 __m256i codes32(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

/* The sixteen codes at the end of a record whose number is no multiple of 32. */
VEC_INLINE AVX512 __m256i codes16(const uint8_t *p)
{
    return _mm256_zextsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)p));
}

VEC_INLINE AVX512 __m128i dots4(const vec_plane_query *q, const uint8_t *const r[4])
{
    const uint8_t *r0 = r[0] + VEC_PLANE_CODES, *r1 = r[1] + VEC_PLANE_CODES;
    const uint8_t *r2 = r[2] + VEC_PLANE_CODES, *r3 = r[3] + VEC_PLANE_CODES;
    __m512i s0 = _mm512_setzero_si512(), s1 = s0, s2 = s0, s3 = s0;
    size_t j = 0;

    for (; q->codes - j >= 32; j += 32) {
        s0 = step32(s0, codes32(r0 + j), q->code + j);
        s1 = step32(s1, codes32(r1 + j), q->code + j);
        s2 = step32(s2, codes32(r2 + j), q->code + j);
        s3 = step32(s3, codes32(r3 + j), q->code + j);
    }
    if (j < q->codes) {
        s0 = step32(s0, codes16(r0 + j), q->code + j);
        s1 = step32(s1, codes16(r1 + j), q->code + j);
        s2 = step32(s2, codes16(r2 + j), q->code + j);
        s3 = step32(s3, codes16(r3 + j), q->code + j);
    }
    return _mm_sub_epi32(sums4(s0, s1, s2, s3), _mm_set1_epi32((int)q->bias));
}

/* The sums with the upper and the lower half of the query. */
typedef struct halves {
    __m512i hi, lo;
} halves;

VEC_INLINE VNNI halves step64(halves s, __m512i code, __m512i hi, __m512i lo)
{
    s.hi = _mm512_dpbusd_epi32(s.hi, code, hi);
    s.lo = _mm512_dpbusd_epi32(s.lo, code, lo);
    return s;
}

VEC_INLINE VNNI __m512i join(halves s)
{
    return _mm512_add_epi32(_mm512_slli_epi32(s.hi, 8), s.lo);
}

VEC_INLINE VNNI __m128i dots4_vnni(const vec_plane_query *q, const uint8_t *const r[4])
{
    const uint8_t *r0 = r[0] + VEC_PLANE_CODES, *r1 = r[1] + VEC_PLANE_CODES;
    const uint8_t *r2 = r[2] + VEC_PLANE_CODES, *r3 = r[3] + VEC_PLANE_CODES;
    halves s0 = {_mm512_setzero_si512(), _mm512_setzero_si512()}, s1 = s0, s2 = s0, s3 = s0;
    size_t j = 0;

    for (; q->codes - j >= 64; j += 64) {
        __m512i hi = _mm512_loadu_si512(q->hi + j), lo = _mm512_loadu_si512(q->lo + j);

        s0 = step64(s0, _mm512_loadu_si512(r0 + j), hi, lo);
        s1 = step64(s1, _mm512_loadu_si512(r1 + j), hi, lo);
        s2 = step64(s2, _mm512_loadu_si512(r2 + j), hi, lo);
        s3 = step64(s3, _mm512_loadu_si512(r3 + j), hi, lo);
    }
    if (j < q->codes) {
        __mmask64 m = ((__mmask64)1 << (q->codes - j)) - 1;
        __m512i hi = _mm512_loadu_si512(q->hi + j), lo = _mm512_loadu_si512(q->lo + j);

        s0 = step64(s0, _mm512_maskz_loadu_epi8(m, r0 + j), hi, lo);
        s1 = step64(s1, _mm512_maskz_loadu_epi8(m, r1 + j), hi, lo);
        s2 = step64(s2, _mm512_maskz_loadu_epi8(m, r2 + j), hi, lo);
        s3 = step64(s3, _mm512_maskz_loadu_epi8(m, r3 + j), hi, lo);
    }
    return _mm_sub_epi32(sums4(join(s0), join(s1), join(s2), join(s3)),
                         _mm_set1_epi32((int)q->bias));
}

static AVX512 void dots_avx512(const vec_plane_query *q, const uint8_t *const *rows, size_t n,
                               int32_t *out)
{
    size_t i = 0;

    for (; n - i >= 4; i += 4)
        _mm_storeu_si128((__m128i *)(void *)(out + i), dots4(q, rows + i));
    if (i < n) {
        const uint8_t *r[4];
        int32_t s[4];

        vec_plane_fill_up(rows + i, n - i, r, 4);
        _mm_storeu_si128((__m128i *)(void *)s, dots4(q, r));
        memcpy(out + i, s, (n - i) * sizeof *s);
    }
}

static VNNI void dots_avx512vnni(const vec_plane_query *q, const uint8_t *const *rows, size_t n,
                                 int32_t *out)
{
    size_t i = 0;

    for (; n - i >= 4; i += 4)
        _mm_storeu_si128((__m128i *)(void *)(out + i), dots4_vnni(q, rows + i));
    if (i < n) {
        const uint8_t *r[4];
        int32_t s[4];

        vec_plane_fill_up(rows + i, n - i, r, 4);
        _mm_storeu_si128((__m128i *)(void *)s, dots4_vnni(q, r));
        memcpy(out + i, s, (n - i) * sizeof *s);
    }
}

/* ---- four queries at once: each load serves four products */

typedef struct sums4x {
    __m512i a, b, c, d;
} sums4x;

VEC_INLINE VNNI sums4x products_step(sums4x s, const __m512i r[4], __m512i q)
{
    s.a = _mm512_dpbusd_epi32(s.a, r[0], q);
    s.b = _mm512_dpbusd_epi32(s.b, r[1], q);
    s.c = _mm512_dpbusd_epi32(s.c, r[2], q);
    s.d = _mm512_dpbusd_epi32(s.d, r[3], q);
    return s;
}

VEC_INLINE VNNI void products_store(sums4x s, int32_t bias, int32_t *out)
{
    _mm_storeu_si128((__m128i *)(void *)out,
                     _mm_sub_epi32(sums4(s.a, s.b, s.c, s.d), _mm_set1_epi32(bias)));
}

/* Sixteen sums, four apart from each other by n. */
VEC_INLINE VNNI void products4(const int8_t *q, size_t stride, size_t codes,
                               const uint8_t *const r[4], const int32_t bias[4], int32_t *out,
                               size_t n)
{
    const __m512i zero = _mm512_setzero_si512();
    sums4x s0 = {zero, zero, zero, zero}, s1 = s0, s2 = s0, s3 = s0;

    for (size_t j = 0; j < codes; j += 64) {
        __mmask64 m = codes - j < 64 ? ((__mmask64)1 << (codes - j)) - 1 : ~(__mmask64)0;
        const __m512i x[4] = {_mm512_maskz_loadu_epi8(m, r[0] + VEC_PLANE_CODES + j),
                              _mm512_maskz_loadu_epi8(m, r[1] + VEC_PLANE_CODES + j),
                              _mm512_maskz_loadu_epi8(m, r[2] + VEC_PLANE_CODES + j),
                              _mm512_maskz_loadu_epi8(m, r[3] + VEC_PLANE_CODES + j)};

        s0 = products_step(s0, x, _mm512_loadu_si512(q + j));
        s1 = products_step(s1, x, _mm512_loadu_si512(q + stride + j));
        s2 = products_step(s2, x, _mm512_loadu_si512(q + 2 * stride + j));
        s3 = products_step(s3, x, _mm512_loadu_si512(q + 3 * stride + j));
    }
    products_store(s0, bias[0], out);
    products_store(s1, bias[1], out + n);
    products_store(s2, bias[2], out + 2 * n);
    products_store(s3, bias[3], out + 3 * n);
}

static VNNI void products_avx512vnni(const int8_t *q, size_t stride, size_t codes,
                                     const uint8_t *const *rows, size_t n, int32_t *out)
{
    int32_t bias[VEC_PLANE_TOGETHER] = {0};
    size_t k = 0;

    for (size_t i = 0; i < VEC_PLANE_TOGETHER; i++)
        for (size_t j = 0; j < codes; j++)
            bias[i] += 128 * q[i * stride + j];
    for (; n - k >= 4; k += 4)
        products4(q, stride, codes, rows + k, bias, out + k, n);
    if (k < n) {
        const uint8_t *r[4];
        int32_t s[4 * VEC_PLANE_TOGETHER];

        vec_plane_fill_up(rows + k, n - k, r, 4);
        products4(q, stride, codes, r, bias, s, 4);
        for (size_t i = 0; i < VEC_PLANE_TOGETHER; i++)
            memcpy(out + i * n + k, s + 4 * i, (n - k) * sizeof *s);
    }
}

/* One accumulator a row; four rows share the loads of the query. */
VEC_INLINE VNNI __m512i nibble_step(__m512i s, __m512i x, __m512i a, __m512i b)
{
    __m512i low = _mm512_set1_epi8(15);

    __asm__("" : "+v"(x)); // one load: compilers would fold it into both uses, and rows lie askew
    s = _mm512_dpbusd_epi32(s, _mm512_and_si512(x, low), a);
    return _mm512_dpbusd_epi32(s, _mm512_and_si512(_mm512_srli_epi16(x, 4), low), b);
}

VEC_INLINE VNNI __m128i nibbles4(const int8_t *a, const int8_t *b, size_t bytes,
                                 const uint8_t *const r[4])
{
    const uint8_t *r0 = r[0] + VEC_PLANE_CODES, *r1 = r[1] + VEC_PLANE_CODES;
    const uint8_t *r2 = r[2] + VEC_PLANE_CODES, *r3 = r[3] + VEC_PLANE_CODES;
    __m512i s0 = _mm512_setzero_si512(), s1 = s0, s2 = s0, s3 = s0;
    size_t j = 0;

    for (; bytes - j >= 64; j += 64) {
        __m512i qa = _mm512_loadu_si512(a + j), qb = _mm512_loadu_si512(b + j);

        s0 = nibble_step(s0, _mm512_loadu_si512(r0 + j), qa, qb);
        s1 = nibble_step(s1, _mm512_loadu_si512(r1 + j), qa, qb);
        s2 = nibble_step(s2, _mm512_loadu_si512(r2 + j), qa, qb);
        s3 = nibble_step(s3, _mm512_loadu_si512(r3 + j), qa, qb);
    }
    if (j < bytes) {
        __mmask64 m = ((__mmask64)1 << (bytes - j)) - 1;
        __m512i qa = _mm512_loadu_si512(a + j), qb = _mm512_loadu_si512(b + j);

        s0 = nibble_step(s0, _mm512_maskz_loadu_epi8(m, r0 + j), qa, qb);
        s1 = nibble_step(s1, _mm512_maskz_loadu_epi8(m, r1 + j), qa, qb);
        s2 = nibble_step(s2, _mm512_maskz_loadu_epi8(m, r2 + j), qa, qb);
        s3 = nibble_step(s3, _mm512_maskz_loadu_epi8(m, r3 + j), qa, qb);
    }
    return sums4(s0, s1, s2, s3);
}

static VNNI void nibbles_avx512vnni(const int8_t *a, const int8_t *b, size_t bytes,
                                    const uint8_t *const *rows, size_t n, int32_t *out)
{
    size_t i = 0;

    for (; n - i >= 4; i += 4)
        _mm_storeu_si128((__m128i *)(void *)(out + i), nibbles4(a, b, bytes, rows + i));
    if (i < n) {
        const uint8_t *r[4];
        int32_t s[4];

        vec_plane_fill_up(rows + i, n - i, r, 4);
        _mm_storeu_si128((__m128i *)(void *)s, nibbles4(a, b, bytes, r));
        memcpy(out + i, s, (n - i) * sizeof *s);
    }
}

void vec_plane_fill_avx512(vec_plane_kernels *k)
{
    k->level = "avx512";
    k->dots = dots_avx512;
}

void vec_plane_fill_avx512vnni(vec_plane_kernels *k)
{
    k->level = "avx512vnni";
    k->products = products_avx512vnni;
    k->dots = dots_avx512vnni;
    k->nibbles = nibbles_avx512vnni;
}

#else
typedef int vec_plane_kern_avx512_is_for_x86; // a translation unit may not be empty
#endif
