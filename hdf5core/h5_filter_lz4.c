/*
 * h5_filter_lz4.c - LZ4 blocks, and the framing of registered filter 32004 around them
 *
 * FORMAT   LZ4 block format description (lz4 project, doc/lz4_Block_format.md); framing: the
 *          registered filter's own description (nexusformat/HDF5-External-Filter-Plugins)
 *   block: sequences of
 *     token 1 | literal length bytes | literals | offset 2 LE | match length bytes
 *       token: literals in the upper four bits, match length - 4 in the lower; 15 goes on in bytes
 *       that are added, up to the first below 255. The last sequence ends behind its literals.
 *   chunk: size 8 BE | block size 4 BE | per block: stored size 4 BE, bytes
 *     A block that is stored in its own size is not compressed. Only the last is shorter.
 *
 * ERRORS   H5_FORMAT
 * TESTS    t_h5_filter_decode.c, test_h5filter.py
 *
 * SPDX-License-Identifier: MIT
 */
#include "h5_cur.h"
#include "h5_filter_codec.h"

enum { MATCH_MIN = 4, LENGTH_GOES_ON = 15 };

/* Takes the bytes that go on with a length. */
static size_t long_length(h5_cur *c, size_t length)
{
    unsigned more;
    if (length < LENGTH_GOES_ON)
        return length;
    do {
        more = h5_cur_u8(c);
        length += more;
    } while (more == 255 && !c->bad);
    return length;
}

int h5_codec_lz4(const uint8_t *in, size_t n, uint8_t *out, size_t cap, size_t *made, h5_error *err)
{
    h5_cur c = h5_cur_on(in, n);
    size_t at = 0;
    while (c.left > 0) {
        unsigned token = h5_cur_u8(&c);
        size_t literals = long_length(&c, token >> 4);
        const uint8_t *from = h5_cur_take(&c, literals);
        if (c.bad || literals > cap - at)
            return h5_fail(err, H5_FORMAT, H5_UNDEF, "lz4: %zu literals do not fit", literals);
        if (literals)
            memcpy(out + at, from, literals);
        at += literals;
        if (c.left == 0)
            break;
        size_t dist = h5_cur_u16(&c);
        size_t length = long_length(&c, token & 15) + MATCH_MIN;
        if (c.bad || dist == 0 || dist > at || length > cap - at)
            return h5_fail(err, H5_FORMAT, H5_UNDEF, "lz4: match of %zu bytes at distance %zu",
                           length, dist);
        h5_lz_copy(out + at, dist, length);
        at += length;
    }
    *made = at;
    return H5_OK;
}

static uint64_t big_endian(h5_cur *c, int bytes)
{
    uint64_t v = 0;
    while (bytes-- > 0)
        v = v << 8 | h5_cur_u8(c);
    return v;
}

static int lz4_decode(const h5_filter *f, const uint8_t *in, size_t n, uint8_t *out, size_t cap,
                      size_t *out_n, h5_error *err)
{
    (void)f;
    h5_cur c = h5_cur_on(in, n);
    uint64_t size = big_endian(&c, 8), block = big_endian(&c, 4);
    if (c.bad || size > cap || (block == 0 && size > 0))
        return h5_fail(err, H5_FORMAT, H5_UNDEF,
                       "lz4: header of %zu stored bytes for a chunk of %zu", n, cap);
    for (size_t at = 0; at < size;) {
        size_t want = size - at < block ? (size_t)(size - at) : (size_t)block, made = want;
        size_t stored = (size_t)big_endian(&c, 4);
        const uint8_t *p = h5_cur_take(&c, stored);
        if (c.bad)
            return h5_fail(err, H5_FORMAT, H5_UNDEF, "lz4: block of %zu bytes beyond the end",
                           stored);
        if (stored == want)
            memcpy(out + at, p, want);
        else
            H5_TRY(h5_codec_lz4(p, stored, out + at, want, &made, err));
        if (made != want)
            return h5_fail(err, H5_FORMAT, H5_UNDEF, "lz4: block of %zu bytes has %zu", want, made);
        at += want;
    }
    *out_n = (size_t)size;
    return H5_OK;
}

const h5_filter_row h5_filter_lz4 = {
    .id = 32004,
    .name = "lz4",
    .expansion = 256, // a length byte of 255
    .decode = lz4_decode,
};
