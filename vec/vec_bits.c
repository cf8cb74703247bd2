/*
 * vec_bits.c - bitmaps: counting, and keeping what lies in a range
 *
 * Range filters build 64 answers in a word without a branch and clear with one AND, so that their
 * cost does not depend on how the values lie.
 *
 * THREADS  no state
 *
 * SPDX-License-Identifier: MIT
 */
#include "vec_bits.h"

#include "vec.h"

uint64_t vec_bits_count_range(const uint64_t *bits, uint64_t first, uint64_t n)
{
    uint64_t count = 0;

    while (n) {
        unsigned step = n < 64 ? (unsigned)n : 64;

        if ((first & 63) + step > 64)
            step = 64 - (unsigned)(first & 63);
        count += vec_bits_popcount(vec_bits_group(bits, first, step));
        first += step;
        n -= step;
    }
    return count;
}

uint64_t vec_bits_count(const uint64_t *bits, uint64_t nrow)
{
    return vec_bits_count_range(bits, 0, nrow);
}

/* How many of the n rows from first on share first's word. */
static unsigned in_word(uint64_t first, size_t n)
{
    unsigned room = 64 - (unsigned)(first & 63);

    return n < room ? (unsigned)n : room;
}

/* Clears the bits of rows first..first+n-1, all in one word, that are not set in keep's lowest n.
 * */
static void keep_group(uint64_t *bits, uint64_t first, unsigned n, uint64_t keep)
{
    bits[first >> 6] &= ~((~keep & vec_bits_low(n)) << (first & 63));
}

void vec_keep_range_f64(uint64_t *bits, uint64_t first, const double *x, size_t n, double lo,
                        double hi)
{
    while (n) {
        unsigned step = in_word(first, n);
        uint64_t keep = 0;

        for (unsigned i = 0; i < step; i++)
            keep |= (uint64_t)((x[i] >= lo) & (x[i] <= hi)) << i;
        keep_group(bits, first, step, keep);
        first += step;
        x += step;
        n -= step;
    }
}

void vec_keep_range_i64(uint64_t *bits, uint64_t first, const int64_t *x, size_t n, int64_t lo,
                        int64_t hi)
{
    while (n) {
        unsigned step = in_word(first, n);
        uint64_t keep = 0;

        for (unsigned i = 0; i < step; i++)
            keep |= (uint64_t)((x[i] >= lo) & (x[i] <= hi)) << i;
        keep_group(bits, first, step, keep);
        first += step;
        x += step;
        n -= step;
    }
}

/* Halves without a branch that could be guessed wrong. */
size_t vec_bound_f64(const double *x, size_t n, double v, int past)
{
    const double *at = x;

    if (!n)
        return 0;
    if (past) {
        for (; n > 1; n -= n / 2)
            at += at[n / 2 - 1] <= v ? n / 2 : 0;
        return (size_t)(at - x) + (*at <= v);
    }
    for (; n > 1; n -= n / 2)
        at += at[n / 2 - 1] < v ? n / 2 : 0;
    return (size_t)(at - x) + (*at < v);
}
