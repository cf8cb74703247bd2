/*
 * vec_pq_kern_neon.c - the 4-bit kernel for 64-bit Arm: a table look-up takes sixteen bytes, one
 * pair at a time, and widening additions keep the sums in 16 bits for 256 pairs
 *
 * THREADS  no state
 *
 * SPDX-License-Identifier: MIT
 */
#include "vec_pq.h"

#if defined(__aarch64__)
#include <arm_neon.h>
#include <string.h>

#include "vec_kern.h"

#define STEPS_MAX 256

typedef struct sums {
    uint16x8_t lo, hi; // rows 0..7 and 8..15 of a half block
} sums;

VEC_INLINE sums add(sums s, uint8x16_t v)
{
    s.lo = vaddw_u8(s.lo, vget_low_u8(v));
    s.hi = vaddw_high_u8(s.hi, v);
    return s;
}

VEC_INLINE void put(uint16x8_t s, uint32_t *out)
{
    vst1q_u32(out, vaddw_u16(vld1q_u32(out), vget_low_u16(s)));
    vst1q_u32(out + 4, vaddw_high_u16(vld1q_u32(out + 4), s));
}

static void sums_neon(const uint8_t *table, size_t pairs, const uint8_t *block, uint32_t *out)
{
    memset(out, 0, VEC_PQ_BLOCK * sizeof *out);
    for (size_t p = 0; p < pairs;) {
        size_t end = pairs - p > STEPS_MAX ? p + STEPS_MAX : pairs;
        sums a = {vdupq_n_u16(0), vdupq_n_u16(0)}, b = a;

        for (; p < end; p++) {
            uint8x16_t t = vld1q_u8(table + 16 * p), c = vld1q_u8(block + 16 * p);

            a = add(a, vqtbl1q_u8(t, vandq_u8(c, vdupq_n_u8(15))));
            b = add(b, vqtbl1q_u8(t, vshrq_n_u8(c, 4)));
        }
        put(a.lo, out);
        put(a.hi, out + 8);
        put(b.lo, out + 16);
        put(b.hi, out + 24);
    }
}

void vec_pq_fill_neon(vec_pq_kernels *k)
{
    *k = (vec_pq_kernels){"neon", sums_neon};
}

#else
typedef int vec_pq_kern_neon_is_for_arm; // a translation unit may not be empty
#endif
