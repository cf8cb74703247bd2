/*
 * vec_bits.h - bitmaps: one bit, a group of up to 64, counting
 *
 * THREADS  no state
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef VEC_BITS_H
#define VEC_BITS_H

#include <stdint.h>

static inline int vec_bits_get(const uint64_t *bits, uint64_t i)
{
    return (int)(bits[i >> 6] >> (i & 63) & 1);
}

/* The lowest n bits set; n <= 64. */
static inline uint64_t vec_bits_low(unsigned n)
{
    return n >= 64 ? UINT64_MAX : ((uint64_t)1 << n) - 1;
}

/* Bits i..i+n-1 as the lowest n of a word; 1 <= n <= 64. Reads no word that none of them is in. */
static inline uint64_t vec_bits_group(const uint64_t *bits, uint64_t i, unsigned n)
{
    unsigned shift = i & 63;
    uint64_t w = bits[i >> 6] >> shift;

    if (shift + n > 64)
        w |= bits[(i >> 6) + 1] << (64 - shift);
    return w & vec_bits_low(n);
}

static inline unsigned vec_bits_popcount(uint64_t w)
{
    return (unsigned)__builtin_popcountll(w);
}

/* Place of the lowest bit set; w is not 0. */
static inline unsigned vec_bits_lowest(uint64_t w)
{
    return (unsigned)__builtin_ctzll(w);
}

/* Bits set among first..first+n-1. */
uint64_t vec_bits_count_range(const uint64_t *bits, uint64_t first, uint64_t n);

#endif
