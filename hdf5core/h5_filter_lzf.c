/*
 * h5_filter_lzf.c - LZF (registered filter 32000, h5py's own)
 *
 * FORMAT   the stream of LibLZF 3, without a header; described in the comments of h5py's lzf folder
 *   0..31   literals: 1 + value bytes follow
 *   else    match: upper three bits length - 2, lower five the upper bits of the distance - 1; a
 *           length field of 7 is followed by a byte to be added; then the lower byte of the
 *           distance - 1
 *
 * ERRORS   H5_FORMAT
 * TESTS    t_h5_filter_decode.c, test_h5filter.py
 *
 * SPDX-License-Identifier: MIT
 */
#include "h5_cur.h"
#include "h5_filter_codec.h"

static int lzf_decode(const h5_filter *f, const uint8_t *in, size_t n, uint8_t *out, size_t cap,
                      size_t *out_n, h5_error *err)
{
    (void)f;
    h5_cur c = h5_cur_on(in, n);
    size_t at = 0;
    while (c.left > 0) {
        unsigned head = h5_cur_u8(&c);
        if (head < 32) {
            const uint8_t *from = h5_cur_take(&c, head + 1);
            if (c.bad || head + 1 > cap - at)
                return h5_fail(err, H5_FORMAT, H5_UNDEF, "lzf: %u literals do not fit", head + 1);
            memcpy(out + at, from, head + 1);
            at += head + 1;
            continue;
        }
        size_t length = (head >> 5) + 2;
        if (head >> 5 == 7)
            length += h5_cur_u8(&c);
        size_t dist = ((size_t)(head & 31) << 8 | h5_cur_u8(&c)) + 1;
        if (c.bad || dist > at || length > cap - at)
            return h5_fail(err, H5_FORMAT, H5_UNDEF, "lzf: match of %zu bytes at distance %zu",
                           length, dist);
        h5_lz_copy(out + at, dist, length);
        at += length;
    }
    *out_n = at;
    return H5_OK;
}

const h5_filter_row h5_filter_lzf = {
    .id = 32000,
    .name = "lzf",
    .expansion = 88, // 264 bytes of three
    .decode = lzf_decode,
};
