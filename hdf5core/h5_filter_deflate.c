/*
 * h5_filter_deflate.c - deflate in a zlib stream; the only file that includes zlib.h
 *
 * One call inflates a whole chunk into a buffer that is already as large as it may be, so zlib
 * needs no window of its own. Bytes behind the end of the stream are ignored, as libhdf5 does. The
 * level, 0 to 9, comes as client data, 6 without any.
 *
 * ERRORS   H5_FORMAT broken stream or more output than the chunk holds; H5_NOMEM
 * TESTS    t_h5_filter.c
 *
 * SPDX-License-Identifier: MIT
 */
#include <limits.h>
#include <zlib.h>

#include "h5_filter_codec.h"

const char *h5_zlib_version(void)
{
    return zlibVersion();
}

static void *z_alloc(void *ctx, unsigned n, unsigned size)
{
    (void)ctx;
    return h5_alloc_array(n, size);
}

static void z_release(void *ctx, void *p)
{
    (void)ctx;
    h5_free(p);
}

/* compressBound of zlib, which takes and gives unsigned long: that has 32 bits on some systems. */
static size_t deflate_bound(size_t n)
{
    return n + (n >> 12) + (n >> 14) + (n >> 25) + 64;
}

static int deflate_encode(const h5_filter *f, const uint8_t *in, size_t n, uint8_t *out, size_t cap,
                          size_t *out_n, h5_error *err)
{
    uint32_t level = f->nvalue > 0 ? f->value[0] : 6;
    if (level > 9)
        return h5_fail(err, H5_MISUSE, H5_UNDEF, "deflate: level %u", (unsigned)level);
    if (n > UINT_MAX || cap > UINT_MAX)
        return h5_fail(err, H5_LIMIT, H5_UNDEF, "deflate: %zu bytes in one chunk", n);
    z_stream z = {.zalloc = z_alloc, .zfree = z_release};
    int zrc = deflateInit(&z, (int)level);
    if (zrc != Z_OK)
        return h5_fail_nomem(err, "deflate");
    z.next_in = (Bytef *)(uintptr_t)in;
    z.avail_in = (uInt)n;
    z.next_out = out;
    z.avail_out = (uInt)cap;
    zrc = deflate(&z, Z_FINISH);
    *out_n = cap - z.avail_out;
    deflateEnd(&z);
    if (zrc != Z_STREAM_END)
        return h5_fail(err, H5_LIMIT, H5_UNDEF, "deflate: %zu bytes do not fit into %zu", n, cap);
    return H5_OK;
}

int h5_codec_zlib(const uint8_t *in, size_t n, uint8_t *out, size_t cap, size_t *made,
                  h5_error *err)
{
    if (n > UINT_MAX || cap > UINT_MAX)
        return h5_fail(err, H5_LIMIT, H5_UNDEF, "deflate: %zu bytes for a chunk of %zu", n, cap);
    z_stream z = {.zalloc = z_alloc, .zfree = z_release};
    if (inflateInit(&z) != Z_OK)
        return h5_fail_nomem(err, "inflate");
    z.next_in = (Bytef *)(uintptr_t)in;
    z.avail_in = (uInt)n;
    z.next_out = out;
    z.avail_out = (uInt)cap;
    int zrc = inflate(&z, Z_FINISH);
    *made = cap - z.avail_out;
    const char *why = z.msg              ? z.msg
                      : z.avail_out == 0 ? "more bytes than the chunk holds"
                                         : "the stream ends early";
    int rc = H5_OK;
    if (zrc == Z_MEM_ERROR)
        rc = h5_fail_nomem(err, "inflate");
    else if (zrc != Z_STREAM_END)
        rc = h5_fail(err, H5_FORMAT, H5_UNDEF, "deflate: %s", why);
    inflateEnd(&z);
    return rc;
}

static int deflate_decode(const h5_filter *f, const uint8_t *in, size_t n, uint8_t *out, size_t cap,
                          size_t *out_n, h5_error *err)
{
    (void)f;
    return h5_codec_zlib(in, n, out, cap, out_n, err);
}

const h5_filter_row h5_filter_deflate = {
    .id = H5_FILTER_DEFLATE,
    .name = "deflate",
    .nvalue = 0,
    .expansion = 1040, // the format's own limit is 1032 : 1 (258 bytes a match of two bits)
    .shrinks = 1,
    .bound = deflate_bound,
    .encode = deflate_encode,
    .decode = deflate_decode,
};
