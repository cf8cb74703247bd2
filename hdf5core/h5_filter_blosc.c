/*
 * h5_filter_blosc.c - Blosc 1 chunks (registered filter 32001)
 *
 * FORMAT   c-blosc's README_CHUNK_FORMAT; formats 1 and 2, which differ in nothing that is read
 *   chunk:  format 1 | codec format 1 | flags 1 | element size 1 | bytes 4 | bytes a block 4 |
 *           stored bytes 4 | start of each block, 4 each | blocks          (little-endian)
 *     flags: 1 bytes are shuffled, 2 the bytes stand as they are behind the 16 of the header, 4
 *     bits are shuffled, 16 blocks are not split; upper three bits the codec: 0 BloscLZ, 1 LZ4 and
 *     LZ4HC, 2 Snappy, 3 zlib, 4 Zstandard
 *   block:  per split: stored size 4, bytes
 *     A split stored in its own size is not compressed. A whole block of up to 16-byte elements, at
 *     least 128 of them, is split into as many parts as an element has bytes, unless flag 16 says
 *     otherwise; the flag came later than the rule, so both count. Shuffling is by block. Bits are
 *     shuffled only in a block with a multiple of 8 elements.
 *
 * ERRORS   H5_FORMAT; H5_UNSUPPORTED Snappy, and the later formats of Blosc 2; H5_NOMEM
 * TESTS    t_h5_filter_decode.c, test_h5filter.py
 *
 * SPDX-License-Identifier: MIT
 */
#include "h5_cur.h"
#include "h5_filter_codec.h"

enum { HEADER = 16, FORMAT_MAX = 2, SPLITS_MAX = 16, SPLIT_ELEMENTS = 128 };
enum { FLAG_SHUFFLE = 1, FLAG_PLAIN = 2, FLAG_BITS = 4, FLAG_WHOLE = 16 };

typedef struct chunk {
    const uint8_t *in;
    size_t n; /* stored bytes, header included */
    size_t bytes, block;
    size_t size; /* of an element */
    unsigned flags;
    h5_codec *codec;
    uint8_t *scratch; /* a block, where something is shuffled */
} chunk;

static int wrong(h5_error *err, const char *what)
{
    return h5_fail(err, H5_FORMAT, H5_UNDEF, "blosc: %s", what);
}

static int header(chunk *k, const uint8_t *in, size_t n, size_t cap, h5_error *err)
{
    static h5_codec *const codecs[] = {h5_codec_blosclz, h5_codec_lz4, NULL, h5_codec_zlib,
                                       h5_codec_zstd};
    h5_cur c = h5_cur_on(in, n);
    unsigned format = h5_cur_u8(&c);
    h5_cur_u8(&c);
    k->flags = h5_cur_u8(&c);
    k->size = h5_cur_u8(&c);
    k->bytes = h5_cur_u32(&c);
    k->block = h5_cur_u32(&c);
    k->in = in;
    k->n = h5_cur_u32(&c);
    if (c.bad)
        return wrong(err, "the header is cut off");
    if (format > FORMAT_MAX)
        return h5_fail(err, H5_UNSUPPORTED, H5_UNDEF, "blosc: chunk format %u", format);
    if (format == 0 || k->size == 0 || k->bytes > cap || k->n > n || k->n < HEADER)
        return h5_fail(err, H5_FORMAT, H5_UNDEF,
                       "blosc: format %u, elements of %zu bytes, %zu bytes in %zu stored", format,
                       k->size, k->bytes, k->n);
    unsigned id = k->flags >> 5;
    if (id < sizeof codecs / sizeof *codecs)
        k->codec = codecs[id];
    if (!k->codec && !(k->flags & FLAG_PLAIN) && k->bytes > 0)
        return h5_fail(err, H5_UNSUPPORTED, H5_UNDEF, "blosc: codec %u%s", id,
                       id == 2 ? " (snappy)" : "");
    return H5_OK;
}

/* Decodes the splits of a block of n bytes that starts at start. */
static int splits(const chunk *k, size_t start, size_t n, uint8_t *out, h5_error *err)
{
    size_t parts = 1;
    if (start > k->n)
        return wrong(err, "a block starts beyond the end");
    if (n == k->block && !(k->flags & FLAG_WHOLE) && k->size <= SPLITS_MAX &&
        n / k->size >= SPLIT_ELEMENTS)
        parts = k->size;
    h5_cur c = h5_cur_on(k->in + start, k->n - start);
    size_t want = n / parts;
    if (want * parts != n)
        return wrong(err, "a block cannot be split evenly");
    for (size_t i = 0; i < parts; i++) {
        size_t stored = h5_cur_u32(&c), made = want;
        const uint8_t *p = h5_cur_take(&c, stored);
        if (c.bad)
            return wrong(err, "a block reaches beyond the end");
        if (stored == want)
            memcpy(out, p, want);
        else
            H5_TRY(k->codec(p, stored, out, want, &made, err));
        if (made != want)
            return wrong(err, "a block is too short");
        out += want;
    }
    return H5_OK;
}

static int block(const chunk *k, size_t start, size_t n, uint8_t *out, h5_error *err)
{
    size_t count = n / k->size, whole = count * k->size;
    H5_TRY(splits(k, start, n, k->scratch ? k->scratch : out, err));
    if (!k->scratch)
        return H5_OK;
    if (k->flags & FLAG_SHUFFLE) {
        h5_unshuffle(k->scratch, out, count, k->size);
    } else if (count % 8 == 0) {
        h5_bitunshuffle(k->scratch, out, count, k->size);
    } else {
        whole = 0;
    }
    if (n > whole)
        memcpy(out + whole, k->scratch + whole, n - whole);
    return H5_OK;
}

static int blocks(chunk *k, uint8_t *out, h5_error *err)
{
    int rc = H5_OK;
    if (k->block == 0 || k->block > k->bytes)
        return wrong(err, "the size of a block");
    if ((k->flags & FLAG_SHUFFLE && k->size > 1) || k->flags & FLAG_BITS) {
        k->scratch = h5_malloc(k->block);
        if (!k->scratch)
            return h5_fail_nomem(err, "a blosc block");
    }
    h5_cur c = h5_cur_on(k->in + HEADER, k->n - HEADER);
    for (size_t at = 0; at < k->bytes; at += k->block) {
        size_t left = k->bytes - at, start = h5_cur_u32(&c);
        if (c.bad) {
            rc = wrong(err, "the list of blocks is cut off");
            goto done;
        }
        H5_TRY_DONE(block(k, start, left < k->block ? left : k->block, out + at, err));
    }
done:
    h5_free(k->scratch);
    return rc;
}

static int blosc_decode(const h5_filter *f, const uint8_t *in, size_t n, uint8_t *out, size_t cap,
                        size_t *out_n, h5_error *err)
{
    (void)f;
    chunk k = {0};
    H5_TRY(header(&k, in, n, cap, err));
    if (k.flags & FLAG_PLAIN) {
        if (k.n - HEADER < k.bytes)
            return wrong(err, "the bytes are cut off");
        if (k.bytes)
            memcpy(out, in + HEADER, k.bytes);
    } else if (k.bytes > 0) {
        H5_TRY(blocks(&k, out, err));
    }
    *out_n = k.bytes;
    return H5_OK;
}

const h5_filter_row h5_filter_blosc = {
    .id = 32001,
    .name = "blosc",
    .expansion = 1u << 16, // that of zstd
    .decode = blosc_decode,
};
