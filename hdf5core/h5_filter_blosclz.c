/*
 * h5_filter_blosclz.c - BloscLZ, the default codec of Blosc
 *
 * FORMAT   FastLZ level 2 with other limits, as c-blosc's blosclz.c writes it
 *   0..31   literals: 1 + value bytes follow. The first byte of a stream is one of these; its upper
 *           three bits are a mark and mean nothing.
 *   else    match: upper three bits length - 2, lower five the upper bits of the distance - 1; a
 *           length field of 7 goes on in bytes that are added, up to the first below 255; then the
 *           lower byte of the distance - 1. A distance field of all ones is followed by two bytes,
 *           big-endian, to be added to 8191.
 *
 * ERRORS   H5_FORMAT
 * TESTS    t_h5_filter_decode.c, test_h5filter.py
 *
 * SPDX-License-Identifier: MIT
 */
#include "h5_cur.h"
#include "h5_filter_codec.h"

enum { DISTANCE_FAR = 8191 };

int h5_codec_blosclz(const uint8_t *in, size_t n, uint8_t *out, size_t cap, size_t *made,
                     h5_error *err)
{
    h5_cur c = h5_cur_on(in, n);
    size_t at = 0;
    for (unsigned mask = 31; c.left > 0; mask = 255) {
        unsigned head = h5_cur_u8(&c) & mask, more = 0;
        if (head < 32) {
            const uint8_t *from = h5_cur_take(&c, head + 1);
            if (c.bad || head + 1 > cap - at)
                return h5_fail(err, H5_FORMAT, H5_UNDEF, "blosclz: %u literals do not fit",
                               head + 1);
            memcpy(out + at, from, head + 1);
            at += head + 1;
            continue;
        }
        size_t length = (head >> 5) + 2;
        if (head >> 5 == 7) {
            do {
                more = h5_cur_u8(&c);
                length += more;
            } while (more == 255 && !c.bad);
        }
        size_t dist = (size_t)(head & 31) << 8 | h5_cur_u8(&c);
        if (dist == DISTANCE_FAR) {
            dist += (size_t)h5_cur_u8(&c) << 8;
            dist += h5_cur_u8(&c);
        }
        dist++;
        if (c.bad || dist > at || length > cap - at)
            return h5_fail(err, H5_FORMAT, H5_UNDEF, "blosclz: match of %zu bytes at distance %zu",
                           length, dist);
        h5_lz_copy(out + at, dist, length);
        at += length;
    }
    *made = at;
    return H5_OK;
}
