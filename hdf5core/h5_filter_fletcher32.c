/*
 * h5_filter_fletcher32.c - HDF5's checksum filter: verified, then taken off
 *
 * FORMAT   HDF5 spec: IV.A.2.l, filter 3; the sums are those of HDF5's library, whose arithmetic no
 *          specification gives
 *   data | checksum 4, little-endian: sum of sums in the upper half, sum in the lower
 *     Both run over 16-bit words, first byte high, modulo 65535; a last odd byte is the high half
 *     of a word. A sum that is a multiple of 65535 and not 0 is stored as 65535. Libraries before
 *     1.6.3 on little-endian machines stored each half with its bytes exchanged: both are right.
 *
 * ERRORS   H5_FORMAT too short, or the checksum differs
 * TESTS    t_h5_filter_decode.c, test_h5filter.py
 *
 * SPDX-License-Identifier: MIT
 */
#include "h5_filter_codec.h"

enum { SUM_BYTES = 4, FOLD_EVERY = 1 << 16 };

/* A sum in 1..65535 stands for all sums that are equal to it modulo 65535; 0 only for itself. */
static uint64_t fold(uint64_t s)
{
    return s == 0 ? 0 : (s - 1) % 65535 + 1;
}

static uint32_t fletcher32(const uint8_t *p, size_t n)
{
    uint64_t low = 0, high = 0;
    while (n > 0) {
        size_t part = n < FOLD_EVERY ? n : FOLD_EVERY;
        for (size_t i = 0; i + 1 < part; i += 2) {
            low += (uint64_t)p[i] << 8 | p[i + 1];
            high += low;
        }
        if (part % 2) {
            low += (uint64_t)p[part - 1] << 8;
            high += low;
        }
        low = fold(low);
        high = fold(high);
        p += part;
        n -= part;
    }
    return (uint32_t)(high << 16 | low);
}

static int fletcher32_decode(const h5_filter *f, const uint8_t *in, size_t n, uint8_t *out,
                             size_t cap, size_t *out_n, h5_error *err)
{
    (void)f;
    if (n < SUM_BYTES)
        return h5_fail(err, H5_FORMAT, H5_UNDEF, "fletcher32: %zu bytes hold no checksum", n);
    n -= SUM_BYTES;
    if (n > cap)
        return h5_fail(err, H5_FORMAT, H5_UNDEF, "fletcher32: %zu bytes for a chunk of %zu", n,
                       cap);
    const uint8_t *s = in + n;
    uint32_t stored = (uint32_t)s[3] << 24 | (uint32_t)s[2] << 16 | (uint32_t)s[1] << 8 | s[0];
    uint32_t swapped = (stored & 0x00FF00FFu) << 8 | (stored >> 8 & 0x00FF00FFu);
    uint32_t sum = fletcher32(in, n);
    if (sum != stored && sum != swapped)
        return h5_fail(err, H5_FORMAT, H5_UNDEF, "fletcher32: checksum %08x, stored %08x",
                       (unsigned)sum, (unsigned)stored);
    if (n)
        memcpy(out, in, n);
    *out_n = n;
    return H5_OK;
}

const h5_filter_row h5_filter_fletcher32 = {
    .id = 3,
    .name = "fletcher32",
    .expansion = 1,
    .decode = fletcher32_decode,
};
