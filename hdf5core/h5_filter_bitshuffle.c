/*
 * h5_filter_bitshuffle.c - bit transpose by blocks, plain or compressed (registered filter 32008)
 *
 * FORMAT   the README and header comments of bitshuffle (kiyo-masui/bitshuffle)
 *   client data: version 2 values | element size | elements a block, 0 = default | codec: 0 none,
 *                2 LZ4, 3 Zstandard | level
 *   plain:       transposed blocks
 *   compressed:  size 8 BE | bytes a block 4 BE | per block: stored size 4 BE, bytes | rest
 *     Blocks have a multiple of 8 elements; a last one has what is left of that. The rest, up to
 *     seven elements, stands as it is.
 *
 * ERRORS   H5_FORMAT; H5_UNSUPPORTED another codec; H5_NOMEM
 * TESTS    t_h5_filter_decode.c, test_h5filter.py
 *
 * SPDX-License-Identifier: MIT
 */
#include "h5_cur.h"
#include "h5_filter_codec.h"

enum { VALUE_SIZE = 2, VALUE_BLOCK = 3, VALUE_CODEC = 4 };
enum { TARGET_BYTES = 8192, BLOCK_MIN = 128 };

/* Transposes an 8 by 8 matrix of bits, a row a byte. */
static uint64_t transpose8(uint64_t x)
{
    uint64_t t = (x ^ x >> 7) & 0x00AA00AA00AA00AAu;
    x ^= t ^ t << 7;
    t = (x ^ x >> 14) & 0x0000CCCC0000CCCCu;
    x ^= t ^ t << 14;
    t = (x ^ x >> 28) & 0x00000000F0F0F0F0u;
    return x ^ t ^ t << 28;
}

void h5_bitunshuffle(const uint8_t *in, uint8_t *out, size_t count, size_t size)
{
    size_t row = count / 8;
    for (size_t b = 0; b < size && row > 0; b++) {
        const uint8_t *from = in + b * 8 * row;
        for (size_t g = 0; g < row; g++) {
            uint64_t x = 0;
            for (size_t j = 0; j < 8; j++)
                x |= (uint64_t)from[j * row + g] << 8 * j;
            x = transpose8(x);
            for (size_t k = 0; k < 8; k++)
                out[(g * 8 + k) * size + b] = (uint8_t)(x >> 8 * k);
        }
    }
}

/* Elements a block when neither client data nor header say. */
static size_t default_block(size_t size)
{
    size_t n = TARGET_BYTES / size / 8 * 8;
    return n > BLOCK_MIN ? n : BLOCK_MIN;
}

static int wrong(h5_error *err, const char *what)
{
    return h5_fail(err, H5_FORMAT, H5_UNDEF, "bitshuffle: %s", what);
}

/* Decodes all blocks of total elements, and the rest. codec NULL: the blocks are plain. */
static int blocks(h5_cur *c, h5_codec *codec, size_t total, size_t block, size_t size, uint8_t *out,
                  h5_error *err)
{
    int rc = H5_OK;
    uint8_t *plain = NULL;
    size_t most = (block < total ? block : total) * size;
    if (codec) {
        plain = h5_malloc(most);
        if (!plain)
            return h5_fail_nomem(err, "a bitshuffle block");
    }
    while (total >= 8) {
        size_t count = total < block ? total / 8 * 8 : block, want = count * size, made = want;
        size_t stored = want;
        if (codec) {
            stored = (size_t)h5_cur_u8(c) << 24;
            stored |= (size_t)h5_cur_u8(c) << 16;
            stored |= (size_t)h5_cur_u8(c) << 8;
            stored |= h5_cur_u8(c);
        }
        const uint8_t *p = h5_cur_take(c, stored);
        if (c->bad) {
            rc = wrong(err, "a block reaches beyond the end");
            goto done;
        }
        if (codec) {
            H5_TRY_DONE(codec(p, stored, plain, want, &made, err));
            p = plain;
        }
        if (made != want) {
            rc = wrong(err, "a block is too short");
            goto done;
        }
        h5_bitunshuffle(p, out, count, size);
        out += want;
        total -= count;
    }
    const uint8_t *rest = h5_cur_take(c, total * size);
    if (c->bad)
        rc = wrong(err, "the last elements are missing");
    else if (total)
        memcpy(out, rest, total * size);
done:
    h5_free(plain);
    return rc;
}

static int bitshuffle_decode(const h5_filter *f, const uint8_t *in, size_t n, uint8_t *out,
                             size_t cap, size_t *out_n, h5_error *err)
{
    h5_cur c = h5_cur_on(in, n);
    size_t size = f->value[VALUE_SIZE], block = f->nvalue > VALUE_BLOCK ? f->value[VALUE_BLOCK] : 0;
    uint32_t kind = f->nvalue > VALUE_CODEC ? f->value[VALUE_CODEC] : 0;
    h5_codec *codec = kind == 2 ? h5_codec_lz4 : kind == 3 ? h5_codec_zstd : NULL;
    uint64_t bytes = n;
    if (size == 0)
        return wrong(err, "elements of 0 bytes");
    if (kind != 0 && !codec)
        return h5_fail(err, H5_UNSUPPORTED, H5_UNDEF, "bitshuffle: codec %u", (unsigned)kind);
    if (codec) {
        uint64_t head = 0;
        bytes = 0;
        for (int i = 0; i < 8; i++)
            bytes = bytes << 8 | h5_cur_u8(&c);
        for (int i = 0; i < 4; i++)
            head = head << 8 | h5_cur_u8(&c);
        block = (size_t)head / size;
    }
    if (block == 0)
        block = default_block(size);
    if (c.bad || bytes > cap || bytes % size != 0 || block % 8 != 0)
        return h5_fail(err, H5_FORMAT, H5_UNDEF,
                       "bitshuffle: %zu stored bytes, blocks of %zu elements of %zu bytes", n,
                       block, size);
    H5_TRY(blocks(&c, codec, (size_t)bytes / size, block, size, out, err));
    *out_n = (size_t)bytes;
    return H5_OK;
}

const h5_filter_row h5_filter_bitshuffle = {
    .id = 32008,
    .name = "bitshuffle",
    .nvalue = 3,
    .expansion = 1u << 16, // that of zstd
    .decode = bitshuffle_decode,
};
