/*
 * vec_plane_kern_avx2.c - plane kernels for AVX2
 *
 * dots widens sixteen codes to 16 bits (they are unsigned, so that it costs one instruction), and
 * multiplies and adds in pairs into eight 32-bit lanes; four rows share a load of the query. The
 * bias of the codes is taken off at the end. Lanes may wrap on the way: the sum fits, and 32-bit
 * addition does not care.
 *
 * nibbles multiplies bytes by bytes and adds pairs in 16 bits; nibbles are small enough that eight
 * such sums fit, then they go on in 32.
 *
 * lows takes eight rows a pass. Their headers are transposed from rows of four fields to fields of
 * eight rows; the steps are then those of the scalar version, one instruction each.
 *
 * THREADS  no state
 *
 * SPDX-License-Identifier: MIT
 */
#include "vec_kern.h"
#include "vec_plane_kern.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <math.h>
#include <string.h>

#define AVX2 __attribute__((target("avx2")))

VEC_INLINE AVX2 __m256i step(__m256i s, const uint8_t *code, __m256i q)
{
    __m256i x = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(const void *)code));

    return _mm256_add_epi32(s, _mm256_madd_epi16(x, q));
}

/* Sums of the lanes of four vectors. */
VEC_INLINE AVX2 __m128i sums4(__m256i a, __m256i b, __m256i c, __m256i d)
{
    __m256i s = _mm256_hadd_epi32(_mm256_hadd_epi32(a, b), _mm256_hadd_epi32(c, d));

    return _mm_add_epi32(_mm256_castsi256_si128(s), _mm256_extracti128_si256(s, 1));
}

VEC_INLINE AVX2 __m128i dots4(const vec_plane_query *q, const uint8_t *const r[4])
{
    const uint8_t *r0 = r[0] + VEC_PLANE_CODES, *r1 = r[1] + VEC_PLANE_CODES;
    const uint8_t *r2 = r[2] + VEC_PLANE_CODES, *r3 = r[3] + VEC_PLANE_CODES;
    __m256i s0 = _mm256_setzero_si256(), s1 = s0, s2 = s0, s3 = s0;

    for (size_t j = 0; j < q->codes; j += 16) {
        __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)(q->code + j));

        s0 = step(s0, r0 + j, x);
        s1 = step(s1, r1 + j, x);
        s2 = step(s2, r2 + j, x);
        s3 = step(s3, r3 + j, x);
    }
    return _mm_sub_epi32(sums4(s0, s1, s2, s3), _mm_set1_epi32((int)q->bias));
}

static AVX2 void dots_avx2(const vec_plane_query *q, const uint8_t *const *rows, size_t n,
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

#define NIBBLE_BYTES 128 // after so many, sums of 16 bits could overflow: 8 * 2 * 15 * 128 = 30720

/* Adds the products of up to NIBBLE_BYTES bytes of codes to s. */
VEC_INLINE AVX2 __m256i nibble_sum(__m256i s, const uint8_t *code, const int8_t *a, const int8_t *b,
                                   size_t n)
{
    __m256i low = _mm256_set1_epi8(15), t = _mm256_setzero_si256();

    for (size_t j = 0; j < n; j += 32) {
        __m256i qa = _mm256_loadu_si256((const __m256i *)(const void *)(a + j));
        __m256i qb = _mm256_loadu_si256((const __m256i *)(const void *)(b + j));
        const __m128i *p = (const __m128i *)(const void *)(code + j);
        __m256i x = n - j >= 32 ? _mm256_loadu_si256((const __m256i *)(const void *)(code + j))
                                : _mm256_zextsi128_si256(_mm_loadu_si128(p));
        __m256i y = _mm256_and_si256(_mm256_srli_epi16(x, 4), low);

        t = _mm256_add_epi16(t, _mm256_maddubs_epi16(_mm256_and_si256(x, low), qa));
        t = _mm256_add_epi16(t, _mm256_maddubs_epi16(y, qb));
    }
    return _mm256_add_epi32(s, _mm256_madd_epi16(t, _mm256_set1_epi16(1)));
}

static AVX2 void nibbles_avx2(const int8_t *a, const int8_t *b, size_t bytes,
                              const uint8_t *const *rows, size_t n, int32_t *out)
{
    for (size_t i = 0; i < n; i += 4) {
        const uint8_t *r[4];
        __m256i s[4];
        int32_t sums[4];

        vec_plane_fill_up(rows + i, n - i < 4 ? n - i : 4, r, 4);
        for (size_t k = 0; k < 4; k++) {
            s[k] = _mm256_setzero_si256();
            for (size_t j = 0; j < bytes; j += NIBBLE_BYTES)
                s[k] = nibble_sum(s[k], r[k] + VEC_PLANE_CODES + j, a + j, b + j,
                                  bytes - j < NIBBLE_BYTES ? bytes - j : NIBBLE_BYTES);
        }
        _mm_storeu_si128((__m128i *)(void *)sums, sums4(s[0], s[1], s[2], s[3]));
        memcpy(out + i, sums, (n - i < 4 ? n - i : 4) * sizeof *sums);
    }
}

typedef struct heads {
    __m256 norm, inverse, cos, sin;
} heads;

VEC_INLINE AVX2 __m256 two(const uint8_t *a, const uint8_t *b)
{
    return _mm256_insertf128_ps(
        _mm256_castps128_ps256(_mm_loadu_ps((const float *)(const void *)a)),
        _mm_loadu_ps((const float *)(const void *)b), 1);
}

VEC_INLINE AVX2 heads heads8(const uint8_t *const r[8])
{
    __m256 a = two(r[0], r[4]), b = two(r[1], r[5]), c = two(r[2], r[6]), d = two(r[3], r[7]);
    __m256d ab = _mm256_castps_pd(_mm256_unpacklo_ps(a, b));
    __m256d cd = _mm256_castps_pd(_mm256_unpacklo_ps(c, d));
    __m256d ef = _mm256_castps_pd(_mm256_unpackhi_ps(a, b));
    __m256d gh = _mm256_castps_pd(_mm256_unpackhi_ps(c, d));
    heads h = {
        _mm256_castpd_ps(_mm256_unpacklo_pd(ab, cd)), _mm256_castpd_ps(_mm256_unpackhi_pd(ab, cd)),
        _mm256_castpd_ps(_mm256_unpacklo_pd(ef, gh)), _mm256_castpd_ps(_mm256_unpackhi_pd(ef, gh))};

    return h;
}

VEC_INLINE AVX2 __m256 all(float x)
{
    return _mm256_set1_ps(x);
}

/* An upper bound on the cosine of the angle between row and query. */
VEC_INLINE AVX2 __m256 cosine8(const vec_plane_query *q, heads h, __m256i dots)
{
    __m256 p = _mm256_mul_ps(_mm256_cvtepi32_ps(dots), _mm256_mul_ps(h.inverse, all(q->inverse)));
    __m256 root = _mm256_max_ps(_mm256_sub_ps(all(1), _mm256_mul_ps(p, p)), all(0));
    __m256 u;

    root = _mm256_sqrt_ps(_mm256_add_ps(root, all(VEC_PLANE_ROOT)));
    u = _mm256_add_ps(_mm256_mul_ps(h.cos, p), _mm256_mul_ps(h.sin, root));
    return _mm256_add_ps(u, all(q->slack));
}

VEC_INLINE AVX2 __m256 l2_8(const vec_plane_query *q, __m256 norm, __m256 u)
{
    __m256 d = _mm256_sub_ps(norm, all(q->norm)), m = _mm256_mul_ps(norm, all(q->norm));
    __m256 flat = _mm256_add_ps(_mm256_mul_ps(norm, norm), all(q->norm * q->norm));

    m = _mm256_mul_ps(_mm256_add_ps(m, m), _mm256_sub_ps(all(1), u));
    d = _mm256_add_ps(_mm256_mul_ps(d, d), m);
    d = _mm256_sub_ps(d, _mm256_mul_ps(all(VEC_PLANE_FLAT), flat));
    return _mm256_mul_ps(_mm256_sqrt_ps(_mm256_max_ps(d, all(0))), all(q->shrink));
}

VEC_INLINE AVX2 __m256 lows8(const vec_plane_query *q, int metric, const uint8_t *const r[8],
                             const int32_t dots[8])
{
    heads h = heads8(r);
    __m256 u = cosine8(q, h, _mm256_loadu_si256((const __m256i *)(const void *)dots)), d, in;

    if (metric == VEC_L2)
        d = l2_8(q, h.norm, u);
    else if (metric == VEC_IP)
        d = _mm256_xor_ps(_mm256_mul_ps(_mm256_mul_ps(h.norm, all(q->norm)), u), all(-0.0f));
    else
        d = _mm256_sub_ps(all(1), u);
    in = _mm256_and_ps(_mm256_cmp_ps(h.norm, all(q->least), _CMP_GE_OQ),
                       _mm256_cmp_ps(h.norm, all(q->most), _CMP_LE_OQ));
    d = _mm256_blendv_ps(all(-INFINITY), _mm256_max_ps(d, all(-INFINITY)), in);
    d = _mm256_blendv_ps(d, all(q->at_zero), _mm256_cmp_ps(h.norm, all(0), _CMP_EQ_OQ));
    return _mm256_blendv_ps(d, all(INFINITY), _mm256_cmp_ps(h.norm, h.norm, _CMP_UNORD_Q));
}

VEC_INLINE AVX2 float least8(__m256 x)
{
    __m128 m = _mm_min_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));

    m = _mm_min_ps(m, _mm_movehl_ps(m, m));
    return _mm_cvtss_f32(_mm_min_ss(m, _mm_movehdup_ps(m)));
}

VEC_INLINE AVX2 float lows(const vec_plane_query *q, int metric, const uint8_t *const *rows,
                           const int32_t *dots, size_t n, float *out)
{
    __m256 least = all(INFINITY);
    size_t i = 0;

    for (; n - i >= 8; i += 8) {
        __m256 d = lows8(q, metric, rows + i, dots + i);

        least = _mm256_min_ps(least, d);
        _mm256_storeu_ps(out + i, d);
    }
    if (i < n) {
        const uint8_t *r[8];
        int32_t s[8] = {0};
        float d[8];

        vec_plane_fill_up(rows + i, n - i, r, 8);
        memcpy(s, dots + i, (n - i) * sizeof *s);
        for (size_t j = n - i; j < 8; j++)
            s[j] = s[n - i - 1];
        _mm256_storeu_ps(d, lows8(q, metric, r, s));
        least = _mm256_min_ps(least, _mm256_loadu_ps(d));
        memcpy(out + i, d, (n - i) * sizeof *d);
    }
    return least8(least);
}

static AVX2 float lows_avx2(const vec_plane_query *q, const uint8_t *const *rows,
                            const int32_t *dots, size_t n, float *out)
{
    switch (q->metric) {
    case VEC_L2:
        return lows(q, VEC_L2, rows, dots, n, out);
    case VEC_IP:
        return lows(q, VEC_IP, rows, dots, n, out);
    default:
        return lows(q, VEC_COSINE, rows, dots, n, out);
    }
}

void vec_plane_fill_avx2(vec_plane_kernels *k)
{
    *k = (vec_plane_kernels){"avx2", dots_avx2, lows_avx2, nibbles_avx2, NULL};
}

#else
typedef int vec_plane_kern_avx2_is_for_x86; // a translation unit may not be empty
#endif
