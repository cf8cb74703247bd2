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

/* In plain arithmetic: the instruction is not there on every processor that we are compiled for,
 * and what compilers put in its place is a call. */
static inline unsigned vec_bits_popcount(uint64_t w)
{
    w -= w >> 1 & UINT64_C(0x5555555555555555);
    w = (w & UINT64_C(0x3333333333333333)) + (w >> 2 & UINT64_C(0x3333333333333333));
    w = (w + (w >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    return (unsigned)(w * UINT64_C(0x0101010101010101) >> 56);
}

/* Place of the lowest bit set; w is not 0. */
static inline unsigned vec_bits_lowest(uint64_t w)
{
    return (unsigned)__builtin_ctzll(w);
}

/* Bits set among first..first+n-1. */
uint64_t vec_bits_count_range(const uint64_t *bits, uint64_t first, uint64_t n);

#endif
