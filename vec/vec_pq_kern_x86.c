/*
 * vec_pq_kern_x86.c - the 4-bit kernel for AVX2 and AVX-512
 *
 * A byte shuffle looks up sixteen entries in each 128-bit lane; a register holds as many pairs as
 * it has lanes. Entries are bytes and sums need more: the looked-up bytes are added as 16-bit
 * numbers twice, whole (low byte plus 256 times the high one) and shifted down (the high one
 * alone), and the first sum is freed of the second at the end. No sum of low bytes passes 16 bits
 * within 256 pairs a lane; longer rows are cut there.
 *
 * THREADS  no state
 *
 * SPDX-License-Identifier: MIT
 */
#include "vec_pq.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#include "vec_kern.h"

#define AVX2   __attribute__((target("avx2")))
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2")))

#define STEPS_MAX 256 // additions of a byte that 16 bits hold

/* out += the sums of one lane: whole and high hold 8 numbers each, of rows 2 i and 2 i + 1. */
VEC_INLINE AVX2 void add_lane(__m128i whole, __m128i high, uint32_t *out)
{
    __m128i low = _mm_sub_epi16(whole, _mm_slli_epi16(high, 8));
    __m128i a = _mm_unpacklo_epi16(low, high), b = _mm_unpackhi_epi16(low, high);
    __m256i *o = (__m256i *)(void *)out;

    _mm256_storeu_si256(o, _mm256_add_epi32(_mm256_loadu_si256(o), _mm256_cvtepu16_epi32(a)));
    _mm256_storeu_si256(o + 1,
                        _mm256_add_epi32(_mm256_loadu_si256(o + 1), _mm256_cvtepu16_epi32(b)));
}

typedef struct sums256 {
    __m256i whole, high;
} sums256;

VEC_INLINE AVX2 sums256 add256(sums256 s, __m256i table, __m256i code)
{
    __m256i v = _mm256_shuffle_epi8(table, code);

    s.whole = _mm256_add_epi16(s.whole, v);
    s.high = _mm256_add_epi16(s.high, _mm256_srli_epi16(v, 8));
    return s;
}

VEC_INLINE AVX2 void out256(sums256 s, uint32_t *out)
{
    add_lane(_mm256_castsi256_si128(s.whole), _mm256_castsi256_si128(s.high), out);
    add_lane(_mm256_extracti128_si256(s.whole, 1), _mm256_extracti128_si256(s.high, 1), out);
}

static AVX2 void sums_avx2(const uint8_t *table, size_t pairs, const uint8_t *block, uint32_t *out)
{
    const __m256i low = _mm256_set1_epi8(15);

    memset(out, 0, VEC_PQ_BLOCK * sizeof *out);
    for (size_t p = 0; p < pairs;) {
        size_t end = pairs - p > 2 * STEPS_MAX ? p + 2 * STEPS_MAX : pairs;
        sums256 a = {_mm256_setzero_si256(), _mm256_setzero_si256()}, b = a;

        for (; p < end; p += 2) {
            __m256i t = _mm256_loadu_si256((const __m256i *)(const void *)(table + 16 * p));
            __m256i c = _mm256_loadu_si256((const __m256i *)(const void *)(block + 16 * p));

            a = add256(a, t, _mm256_and_si256(c, low));
            b = add256(b, t, _mm256_and_si256(_mm256_srli_epi16(c, 4), low));
        }
        out256(a, out);
        out256(b, out + 16);
    }
}

typedef struct sums512 {
    __m512i whole, high;
} sums512;

VEC_INLINE AVX512 sums512 add512(sums512 s, __m512i table, __m512i code)
{
    __m512i v = _mm512_shuffle_epi8(table, code);

    s.whole = _mm512_add_epi16(s.whole, v);
    s.high = _mm512_add_epi16(s.high, _mm512_srli_epi16(v, 8));
    return s;
}

VEC_INLINE AVX512 void out512(sums512 s, uint32_t *out)
{
    add_lane(_mm512_castsi512_si128(s.whole), _mm512_castsi512_si128(s.high), out);
    add_lane(_mm512_extracti32x4_epi32(s.whole, 1), _mm512_extracti32x4_epi32(s.high, 1), out);
    add_lane(_mm512_extracti32x4_epi32(s.whole, 2), _mm512_extracti32x4_epi32(s.high, 2), out);
    add_lane(_mm512_extracti32x4_epi32(s.whole, 3), _mm512_extracti32x4_epi32(s.high, 3), out);
}

static AVX512 void sums_avx512(const uint8_t *table, size_t pairs, const uint8_t *block,
                               uint32_t *out)
{
    const __m512i low = _mm512_set1_epi8(15);

    memset(out, 0, VEC_PQ_BLOCK * sizeof *out);
    for (size_t p = 0; p < pairs;) {
        size_t end = pairs - p > 4 * STEPS_MAX ? p + 4 * STEPS_MAX : pairs;
        sums512 a = {_mm512_setzero_si512(), _mm512_setzero_si512()}, b = a;

        for (; p < end; p += 4) {
            __m512i t = _mm512_loadu_si512(table + 16 * p), c = _mm512_loadu_si512(block + 16 * p);

            a = add512(a, t, _mm512_and_si512(c, low));
            b = add512(b, t, _mm512_and_si512(_mm512_srli_epi16(c, 4), low));
        }
        out512(a, out);
        out512(b, out + 16);
    }
}

void vec_pq_fill_avx2(vec_pq_kernels *k)
{
    *k = (vec_pq_kernels){"avx2", sums_avx2};
}

void vec_pq_fill_avx512(vec_pq_kernels *k)
{
    *k = (vec_pq_kernels){"avx512", sums_avx512};
}

#else
typedef int vec_pq_kern_x86_is_for_x86; // a translation unit may not be empty
#endif
