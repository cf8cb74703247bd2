/*
 * fuzz_h5_filter.c - any bytes as a filter pipeline and a stored chunk: decoded, within bounds
 *
 * FORMAT   of an input, little-endian: decoded bytes 4 | CRC-32 of them, for test_h5filter.py 4 |
 *          mask 1 | filters 1 | per filter: id 2, number of values 2, values 4 each | stored bytes
 *
 * Whatever it says, the result must be a documented code, and no more bytes than the row of a
 * filter promises. The buffers have the exact size, so that the sanitizers see one byte too far.
 *
 *     clang -fsanitize=fuzzer,address,undefined -Ihdf5core tests/fuzz/fuzz_h5_filter.c \
 *         hdf5core/h5_filter*.c hdf5core/h5_base.c hdf5core/h5_err.c -lz -lzstd -lm -o fuzz && \
 *         ./fuzz tests/fuzz/corpus/fuzz_h5_filter
 *
 * Without libFuzzer it is linked with driver.c, which feeds it files.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz.h"
#include "h5_cur.h"
#include "h5_filter.h"

enum { OUT_MAX = 1 << 20, VALUES_MAX = 1 << 12 };

typedef struct input {
    h5_pipeline p;
    uint32_t *more[H5_FILTERS_MAX];
    uint32_t mask;
    size_t out_n;
} input;

static void read_filter(h5_cur *c, h5_filter *f, uint32_t **more)
{
    f->id = h5_cur_u16(c);
    f->nvalue = h5_cur_u16(c) % VALUES_MAX;
    uint32_t *value = f->value;
    if (f->nvalue > H5_FILTER_VALUES_MAX)
        f->more = value = *more = h5_calloc(f->nvalue, sizeof *value);
    for (uint32_t i = 0; value && i < f->nvalue; i++)
        value[i] = h5_cur_u32(c);
    if (!value)
        c->bad = 1;
}

/* Decodes the stored bytes into a buffer of the exact size; an undocumented code is a fault. */
static void decode(const input *in, const uint8_t *stored, size_t n)
{
    uint8_t *copy = h5_malloc(n), *out = h5_malloc(in->out_n);
    if (copy && out) {
        if (n)
            memcpy(copy, stored, n);
        int rc = h5_pipeline_decode(&in->p, in->mask, copy, n, out, in->out_n, NULL);
        if (rc > H5_OK || rc < H5_LIMIT)
            abort();
        // What decoded is not more than what hdf5core would have made room for.
        if (rc == H5_OK && in->out_n > h5_pipeline_expansion(&in->p, in->mask, n))
            abort();
    }
    h5_free(copy);
    h5_free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input in = {0};
    h5_cur c = h5_cur_on(data, size);
    in.out_n = h5_cur_u32(&c) % OUT_MAX;
    h5_cur_u32(&c);
    in.mask = h5_cur_u8(&c);
    in.p.n = h5_cur_u8(&c) % (H5_FILTERS_MAX + 1);
    for (int i = 0; i < in.p.n; i++)
        read_filter(&c, &in.p.filter[i], &in.more[i]);
    if (!c.bad)
        decode(&in, c.p, c.left);
    for (int i = 0; i < in.p.n; i++)
        h5_free(in.more[i]);
    return 0;
}
