/*
 * h5_filter_shuffle.c - byte shuffle: first bytes of all elements, then second bytes, ...
 *
 * The element size is the one value of client data. Bytes behind the last whole element keep their
 * place, as in libhdf5.
 *
 * TESTS    t_h5_filter.c
 *
 * SPDX-License-Identifier: MIT
 */
#include "h5_filter_codec.h"

static size_t shuffle_bound(size_t n)
{
    return n;
}

static int shuffle_encode(const h5_filter *f, const uint8_t *in, size_t n, uint8_t *out, size_t cap,
                          size_t *out_n, h5_error *err)
{
    size_t size = f->value[0];
    if (size == 0 || n > cap)
        return h5_fail(err, H5_MISUSE, H5_UNDEF, "shuffle: elements of %zu bytes", size);
    size_t count = n / size, whole = count * size;
    for (size_t b = 0; b < size && count > 0; b++)
        for (size_t i = 0; i < count; i++)
            out[b * count + i] = in[i * size + b];
    if (n > whole)
        memcpy(out + whole, in + whole, n - whole);
    *out_n = n;
    return H5_OK;
}

/* The common widths have their own loops, which compilers turn into wide stores. */
void h5_unshuffle(const uint8_t *in, uint8_t *out, size_t count, size_t size)
{
    if (size == 4) {
        for (size_t i = 0; i < count; i++)
            for (size_t b = 0; b < 4; b++)
                out[i * 4 + b] = in[b * count + i];
    } else if (size == 8) {
        for (size_t i = 0; i < count; i++)
            for (size_t b = 0; b < 8; b++)
                out[i * 8 + b] = in[b * count + i];
    } else {
        for (size_t b = 0; b < size && count > 0; b++)
            for (size_t i = 0; i < count; i++)
                out[i * size + b] = in[b * count + i];
    }
}

static int shuffle_decode(const h5_filter *f, const uint8_t *in, size_t n, uint8_t *out, size_t cap,
                          size_t *out_n, h5_error *err)
{
    size_t size = f->value[0];
    if (size == 0)
        return h5_fail(err, H5_FORMAT, H5_UNDEF, "shuffle: elements of 0 bytes");
    if (n > cap)
        return h5_fail(err, H5_FORMAT, H5_UNDEF, "shuffle: %zu bytes for a chunk of %zu", n, cap);
    size_t count = n / size, whole = count * size;
    h5_unshuffle(in, out, count, size);
    if (n > whole)
        memcpy(out + whole, in + whole, n - whole);
    *out_n = n;
    return H5_OK;
}

const h5_filter_row h5_filter_shuffle = {
    .id = H5_FILTER_SHUFFLE,
    .name = "shuffle",
    .nvalue = 1,
    .expansion = 1,
    .shrinks = 0,
    .bound = shuffle_bound,
    .encode = shuffle_encode,
    .decode = shuffle_decode,
};
