/*
 * h5_filter_zstd.c - Zstandard (registered filter 32015); the only file that includes zstd.h
 *
 * A chunk is one frame. The level comes as the first value of client data, 0 or none for zstd's
 * default. The library's own contexts do not go through the allocator hook: their custom-memory
 * interface is not part of its stable one.
 *
 * ERRORS   H5_FORMAT broken frame or more output than the chunk holds; H5_NOMEM; H5_MISUSE a level
 *          zstd has not
 * TESTS    t_h5_filter.c
 *
 * SPDX-License-Identifier: MIT
 */
#include <zstd.h>
#include <zstd_errors.h>

#include "h5_filter_codec.h"

const char *h5_zstd_version(void)
{
    return ZSTD_versionString();
}

static size_t zstd_bound(size_t n)
{
    return ZSTD_compressBound(n);
}

static int zstd_encode(const h5_filter *f, const uint8_t *in, size_t n, uint8_t *out, size_t cap,
                       size_t *out_n, h5_error *err)
{
    // Negative levels (faster, larger) are stored as their two's complement.
    int level = f->nvalue > 0 ? (int)f->value[0] : 0;
    if (level > ZSTD_maxCLevel() || level < ZSTD_minCLevel())
        return h5_fail(err, H5_MISUSE, H5_UNDEF, "zstd: level %d", level);
    size_t made = ZSTD_compress(out, cap, in, n, level);
    if (ZSTD_isError(made))
        return h5_fail_nomem(err, "zstd");
    *out_n = made;
    return H5_OK;
}

int h5_codec_zstd(const uint8_t *in, size_t n, uint8_t *out, size_t cap, size_t *made,
                  h5_error *err)
{
    size_t got = ZSTD_decompress(out, cap, in, n);
    if (ZSTD_isError(got)) {
        if (ZSTD_getErrorCode(got) == ZSTD_error_memory_allocation)
            return h5_fail_nomem(err, "zstd");
        return h5_fail(err, H5_FORMAT, H5_UNDEF, "zstd: %s", ZSTD_getErrorName(got));
    }
    *made = got;
    return H5_OK;
}

static int zstd_decode(const h5_filter *f, const uint8_t *in, size_t n, uint8_t *out, size_t cap,
                       size_t *out_n, h5_error *err)
{
    (void)f;
    return h5_codec_zstd(in, n, out, cap, out_n, err);
}

const h5_filter_row h5_filter_zstd = {
    .id = H5_FILTER_ZSTD,
    .name = "zstd",
    .nvalue = 0,
    .expansion = 1u << 16, // a block of 4 bytes can stand for 128 KiB of one byte
    .shrinks = 1,
    .bound = zstd_bound,
    .encode = zstd_encode,
    .decode = zstd_decode,
};
