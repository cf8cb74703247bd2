/*
 * h5_filter_codec.h - what the filters share: codecs without framing, transposes, a bit reader
 *
 * A codec turns a run of bytes into a run of bytes; filters put their own framing around it. Blosc
 * and bitshuffle hold the same LZ4 blocks and Zstandard frames as the filters of these names.
 *
 * ERRORS   a codec gives H5_FORMAT for damage and for more than cap bytes of output; the transposes
 *          cannot fail; the bit reader is sticky: after a read beyond the end, bad stays set and
 *          every read gives 0
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef H5_FILTER_CODEC_H
#define H5_FILTER_CODEC_H

#include "h5_filter.h"

/* Decodes n bytes at in into at most cap at out; *made bytes were made. */
typedef int h5_codec(const uint8_t *in, size_t n, uint8_t *out, size_t cap, size_t *made,
                     h5_error *err);
h5_codec h5_codec_zlib, h5_codec_zstd, h5_codec_lz4, h5_codec_blosclz;

/* Undoes a byte transpose of count elements of size bytes: the first bytes of all, then the second
** bytes, ... in and out do not overlap. */
void h5_unshuffle(const uint8_t *in, uint8_t *out, size_t count, size_t size);

/* Undoes a bit transpose of count elements, a multiple of 8, of size bytes: row b * 8 + j has bit j
** of byte b of all elements, element 0 in the lowest bit of the row's first byte. in and out do not
** overlap. */
void h5_bitunshuffle(const uint8_t *in, uint8_t *out, size_t count, size_t size);

/* Appends len > 0 bytes that stand dist > 0 bytes before out, where they may overlap what is
** written. The caller has checked both ends. */
static inline void h5_lz_copy(uint8_t *out, size_t dist, size_t len)
{
    const uint8_t *from = out - dist;
    // What is written repeats with period dist, so each round may copy all that is there.
    while (len > dist) {
        memcpy(out, from, dist);
        out += dist;
        len -= dist;
        dist *= 2;
    }
    memcpy(out, from, len);
}

/* Bits of a byte string, most significant first. */
typedef struct h5_bits {
    const uint8_t *p, *end;
    uint64_t acc;  /* the next bits, left-aligned; zeros below */
    unsigned have; /* bits in acc */
    int bad;       /* a read went beyond the end */
} h5_bits;

static inline h5_bits h5_bits_on(const uint8_t *p, size_t n)
{
    return (h5_bits){.p = p, .end = p + n};
}

static inline void h5_bits_fill(h5_bits *b)
{
    while (b->have <= 56 && b->p < b->end) {
        b->acc |= (uint64_t)*b->p++ << (56 - b->have);
        b->have += 8;
    }
}

static inline uint64_t h5_bits_fail(h5_bits *b)
{
    b->bad = 1;
    b->p = b->end;
    b->have = 0;
    b->acc = 0;
    return 0;
}

/* The next k bits, 0 <= k <= 32, as a number. */
static inline uint32_t h5_bits_get(h5_bits *b, unsigned k)
{
    if (k == 0)
        return 0;
    if (b->have < k)
        h5_bits_fill(b);
    if (b->have < k)
        return (uint32_t)h5_bits_fail(b);
    uint32_t v = (uint32_t)(b->acc >> (64 - k));
    b->acc <<= k;
    b->have -= k;
    return v;
}

/* The number of 0 bits before the next 1 bit, which is taken too. */
static inline uint64_t h5_bits_unary(h5_bits *b)
{
    uint64_t zeros = 0;
    for (;;) {
        h5_bits_fill(b);
        if (b->have == 0)
            return h5_bits_fail(b);
        if (b->acc != 0)
            break;
        zeros += b->have;
        b->have = 0;
    }
    unsigned lead = (unsigned)__builtin_clzll(b->acc);
    b->acc = b->acc << lead << 1;
    b->have -= lead + 1;
    return zeros + lead;
}

#endif
