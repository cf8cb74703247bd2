/*
 * t_h5_dataset.c - reading hyperslabs against a plain array, chunks that are missing, raw, damaged
 * or absurd
 *
 * SPDX-License-Identifier: MIT
 */
#include "t_h5.h"
#include "t_io.h"
#include "t_rng.h"

#include "h5_filter.h"
#include "h5_msg.h"

enum { ELEMENTS = 20000 };

static h5_pipeline some_filters(t_rng *r, uint32_t size)
{
    static const uint16_t ids[] = {H5_FILTER_SHUFFLE, H5_FILTER_DEFLATE, H5_FILTER_ZSTD};
    h5_pipeline p = {0};
    unsigned bits = (unsigned)t_rng_below(r, 8);
    for (unsigned i = 0; i < 3; i++)
        if (bits >> i & 1)
            p.filter[p.n++] = (h5_filter){
                .id = ids[i], .flags = 1, .nvalue = 1, .value = {i ? 3 : size}};
    return p;
}

/* What element e of the dataset reads as: from data, or the fill value when its chunk was left out.
** */
static void expect(const h5_dataset_spec *d, const uint8_t *data, uint64_t e, uint64_t leave_out,
                   uint8_t *out)
{
    uint64_t slot = 0, left = e, pos[H5_RANK_MAX];
    for (int i = d->rank; i-- > 0; left /= d->dims[i])
        pos[i] = left % d->dims[i];
    for (int i = 0; d->chunk && i < d->rank; i++)
        slot = slot * ((d->maxdims[i] + d->chunk[i] - 1) / d->chunk[i]) + pos[i] / d->chunk[i];
    if (d->chunk && leave_out && slot % leave_out == leave_out - 1) {
        if (d->fill)
            memcpy(out, d->fill, d->type.size);
        else
            memset(out, 0, d->type.size);
        return;
    }
    // The machine's byte order is the little-endian one on every machine that runs this (checked in
    // main).
    for (uint32_t b = 0; b < d->type.size; b++)
        out[b] = data[e * d->type.size + (d->type.big_endian ? d->type.size - 1 - b : b)];
}

/* Random shapes, chunks, filters, byte orders and holes; random hyperslabs of each. */
static void against_a_plain_array(void **state)
{
    (void)state;
    t_rng r = t_rng_start(77);
    uint8_t *data = h5_malloc(ELEMENTS * 8), *have = h5_malloc(ELEMENTS * 8),
            *want = h5_malloc(ELEMENTS * 8);
    static const uint8_t fill[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    for (int round = 0; round < 250; round++) {
        t_h5 t;
        h5_object *o;
        uint64_t dims[4], max[4], n = 1, at,
                                  leave_out = t_rng_below(&r, 2) * (2 + t_rng_below(&r, 3));
        uint32_t chunk[4];
        h5_dataset_spec d = {.rank = 1 + (int)t_rng_below(&r, 4), .dims = dims};
        d.type = t_h5_type("iuf"[t_rng_below(&r, 3)], t_rng_below(&r, 2) ? 4 : 8);
        d.type.big_endian = (uint8_t)t_rng_below(&r, 2);
        h5_pipeline p = some_filters(&r, d.type.size);
        int contiguous = t_rng_below(&r, 8) == 0;
        for (int i = 0; i < d.rank; i++) {
            dims[i] = 1 + t_rng_below(&r, d.rank == 1 ? 2000 : d.rank == 2 ? 60 : 10);
            chunk[i] = (uint32_t)(1 + t_rng_below(&r, d.rank == 1 ? 300 : 12));
            max[i] = dims[i];
            n *= dims[i];
        }
        max[0] = (dims[0] + chunk[0] - 1) / chunk[0] * chunk[0] + chunk[0] * t_rng_below(&r, 4);
        t_rng_fill(&r, data, n * d.type.size);
        t_h5_begin(&t);
        if (contiguous) {
            d.addr = t_h5_bytes(&t, data, (size_t)n * d.type.size);
            T_OK(&t, h5_write_dataset(t.w, &d, &at, &t.err));
        } else {
            d.maxdims = max;
            d.chunk = chunk;
            d.pipeline = &p;
            d.fill = t_rng_below(&r, 2) ? fill : NULL;
            at = t_h5_chunked(&t, &d, data, leave_out);
        }
        t_h5_open(&t, t_h5_root(&t, "d", at));
        T_OK(&t, h5_object_find(t.f, "/d", &o, &t.err));
        for (int k = 0; k < 12; k++) {
            uint64_t start[4], count[4], bytes = d.type.size, elements = 1;
            for (int i = 0; i < d.rank; i++) {
                start[i] = k ? t_rng_below(&r, dims[i] + 1) : 0;
                count[i] = k ? t_rng_below(&r, dims[i] - start[i] + 1) : dims[i];
                elements *= count[i];
            }
            bytes *= elements;
            for (uint64_t e = 0; e < elements; e++) {
                uint64_t left = e, pos[4], from = 0;
                for (int i = d.rank; i-- > 0; left /= count[i])
                    pos[i] = start[i] + left % count[i];
                for (int i = 0; i < d.rank; i++)
                    from = from * dims[i] + pos[i];
                expect(&d, data, from, leave_out, want + e * d.type.size);
            }
            memset(have, 0xAB, (size_t)bytes);
            T_OK(&t, h5_dataset_read(t.f, o, start, count, have, (size_t)bytes, &t.err));
            assert_memory_equal(have, want, bytes);
        }
        h5_object_close(o);
        t_h5_end(&t);
    }
    h5_free(data);
    h5_free(have);
    h5_free(want);
}

/* A one-dimensional dataset of rows int64 over chunks of 100, values i * 3; opened. */
static h5_object *counting(t_h5 *t, uint64_t rows, h5_pipeline *p, uint64_t leave_out)
{
    uint64_t max = (rows + 99) / 100 * 100;
    uint32_t chunk = 100;
    int64_t *v = h5_malloc((size_t)rows * 8);
    h5_object *o;
    for (uint64_t i = 0; i < rows; i++)
        v[i] = (int64_t)i * 3;
    h5_dataset_spec d = {
        .type = t_h5_type('i', 8), .rank = 1, .dims = &rows, .maxdims = &max, .chunk = &chunk};
    d.pipeline = p;
    t_h5_begin(t);
    t_h5_open(t, t_h5_root(t, "d", t_h5_chunked(t, &d, v, leave_out)));
    T_OK(t, h5_object_find(t->f, "/d", &o, &t->err));
    h5_free(v);
    return o;
}

/* Reads touch what they need: one entry page, one chunk. */
static void only_what_is_needed(void **state)
{
    (void)state;
    t_h5 t;
    uint64_t start = 150000, count = 3;
    int64_t v[3];
    h5_object *o = counting(&t, 300000, NULL, 0);
    t_io *counted = t_io_new(t.io);
    t.f->io = &counted->io;
    T_OK(&t, h5_dataset_read(t.f, o, &start, &count, v, sizeof v, &t.err));
    assert_true(v[0] == 450000 && v[1] == 450003 && v[2] == 450006);
    assert_int_equal(counted->reads, 4); // array header, bitmap, one page, 24 bytes
    assert_true(counted->read_bytes < 9000);
    h5_object_close(o);
    t.io = &counted->io;
    t_h5_end(&t);
}

/* Chunks that stand one behind the other cost one read: all of them where they hold whole rows, as
** many as a buffer takes where they are tiles. */
static void neighbours(void **state)
{
    (void)state;
    enum { SIDE = 256, TILE = 32 };
    t_h5 t;
    h5_object *o;
    static uint16_t v[SIDE * SIDE], have[SIDE * SIDE];
    uint64_t dims[2] = {SIDE, SIDE}, start[2] = {0}, part[2] = {SIDE - 5, SIDE - 4};
    const uint32_t chunks[2][2] = {{TILE, TILE}, {TILE, SIDE}};
    for (int i = 0; i < SIDE * SIDE; i++)
        v[i] = (uint16_t)(i * 7);
    for (int k = 0; k < 2; k++) {
        h5_dataset_spec d = {.type = t_h5_type('u', 2), .rank = 2, .dims = dims, .maxdims = dims};
        d.chunk = chunks[k];
        t_h5_begin(&t);
        t_h5_open(&t, t_h5_root(&t, "d", t_h5_chunked(&t, &d, v, 0)));
        T_OK(&t, h5_object_find(t.f, "/d", &o, &t.err));
        t_io *counted = t_io_new(t.io);
        t.f->io = &counted->io;
        T_OK(&t, h5_dataset_read(t.f, o, start, dims, have, sizeof have, &t.err));
        assert_memory_equal(have, v, sizeof v);
        assert_int_equal(counted->reads, k ? 3 : 4); // header and entries; 2 of 64 KiB, or 1
        start[0] = 5;
        start[1] = 3;
        T_OK(&t, h5_dataset_read(t.f, o, start, part, have, part[0] * part[1] * 2, &t.err));
        for (uint64_t i = 0; i < part[0]; i++)
            assert_memory_equal(have + i * part[1], v + (i + 5) * SIDE + 3, part[1] * 2);
        start[0] = start[1] = 0;
        h5_object_close(o);
        t.io = &counted->io;
        t_h5_end(&t);
    }
}

static void nothing_stored(void **state)
{
    (void)state;
    t_h5 t;
    uint64_t dims[2] = {50, 3}, max[2] = {64, 3}, start[2] = {7, 1}, count[2] = {20, 2}, at;
    uint32_t chunk[2] = {16, 3};
    float fill = 2.5f, v[40];
    h5_object *o;
    h5_chunk *chunks;
    size_t n;
    h5_dataset_spec d = {
        .type = t_h5_type('f', 4), .rank = 2, .dims = dims, .maxdims = max, .chunk = chunk};
    d.addr = H5_UNDEF;
    for (int with_fill = 0; with_fill < 2; with_fill++) {
        d.fill = with_fill ? &fill : NULL;
        t_h5_begin(&t);
        T_OK(&t, h5_write_dataset(t.w, &d, &at, &t.err));
        t_h5_open(&t, t_h5_root(&t, "d", at));
        T_OK(&t, h5_object_find(t.f, "/d", &o, &t.err));
        T_OK(&t, h5_dataset_read(t.f, o, start, count, v, sizeof v, &t.err));
        for (int i = 0; i < 40; i++)
            assert_true(v[i] == (with_fill ? 2.5f : 0));
        T_OK(&t, h5_dataset_chunks(t.f, o, &chunks, &n, &t.err));
        assert_int_equal(n, 4);
        for (size_t i = 0; i < n; i++)
            assert_true(chunks[i].addr == H5_UNDEF && chunks[i].size == 0);
        h5_free(chunks);
        h5_object_close(o);
        t_h5_end(&t);
    }
}

/* The last chunk, partly filled, raw under its mask, as a store writes it. */
static void raw_last_chunk(void **state)
{
    (void)state;
    t_h5 t;
    h5_pipeline p = {.n = 2};
    p.filter[0] = (h5_filter){.id = H5_FILTER_SHUFFLE, .flags = 1, .nvalue = 1, .value = {8}};
    p.filter[1] = (h5_filter){.id = H5_FILTER_DEFLATE, .flags = 1, .nvalue = 1, .value = {6}};
    int64_t v[150], have[150];
    uint64_t rows = 150, max = 200, start = 0, at;
    uint32_t chunk = 100;
    h5_chunk chunks[2], *table;
    size_t n;
    void *enc;
    h5_object *o;
    for (int i = 0; i < 150; i++)
        v[i] = i * 7;
    t_h5_begin(&t);
    T_OK(&t, h5_pipeline_encode(&p, v, 800, &enc, &n, &chunks[0].mask, &t.err));
    chunks[0].addr = t_h5_bytes(&t, enc, n);
    chunks[0].size = n;
    h5_free(enc);
    uint8_t tail[800] = {0};
    memcpy(tail, v + 100, 400);
    chunks[1] = (h5_chunk){t_h5_bytes(&t, tail, 800), 800, 3};
    h5_dataset_spec d = {
        .type = t_h5_type('i', 8), .rank = 1, .dims = &rows, .maxdims = &max, .chunk = &chunk};
    d.pipeline = &p;
    T_OK(&t, h5_write_fixed_array(t.w, chunks, 2, 1, 800, &d.addr, &t.err));
    T_OK(&t, h5_write_dataset(t.w, &d, &at, &t.err));
    t_h5_open(&t, t_h5_root(&t, "d", at));
    T_OK(&t, h5_object_find(t.f, "/d", &o, &t.err));
    T_OK(&t, h5_dataset_read(t.f, o, &start, &rows, have, sizeof have, &t.err));
    assert_memory_equal(have, v, sizeof v);
    T_OK(&t, h5_dataset_chunks(t.f, o, &table, &n, &t.err));
    assert_true(n == 2 && table[1].mask == 3 && table[1].size == 800 && table[0].size < 800);
    h5_free(table);
    h5_object_close(o);
    t_h5_end(&t);
}

/* Damage to a chunk is seen where the filter has a check, and touches only reads of that chunk. */
static void damaged_chunk(void **state)
{
    (void)state;
    t_h5 t;
    h5_pipeline p = {.n = 1};
    p.filter[0] = (h5_filter){.id = H5_FILTER_DEFLATE, .flags = 1, .nvalue = 1, .value = {6}};
    h5_chunk *table;
    size_t n;
    int64_t v[100];
    uint64_t count = 100;
    h5_object *o = counting(&t, 1000, &p, 0);
    T_OK(&t, h5_dataset_chunks(t.f, o, &table, &n, &t.err));
    assert_int_equal(n, 10);
    T_OK(&t, t.io->write(t.io, table[3].addr + table[3].size / 2, "????", 4, &t.err));
    for (uint64_t i = 0; i < 10; i++) {
        uint64_t start = i * 100;
        if (i == 3) {
            T_FAILS(&t, H5_FORMAT, "deflate",
                    h5_dataset_read(t.f, o, &start, &count, v, sizeof v, &t.err));
            assert_true(t.err.offset == table[3].addr);
        } else {
            T_OK(&t, h5_dataset_read(t.f, o, &start, &count, v, sizeof v, &t.err));
            assert_int_equal(v[99], (start + 99) * 3);
        }
    }
    h5_free(table);
    h5_object_close(o);
    t_h5_end(&t);
}

/* Index entries that point nowhere or claim the impossible. */
static void absurd_entries(void **state)
{
    (void)state;
    static const struct {
        h5_chunk c;
        int code;
        const char *text;
    } cases[] = {
        {{1 << 20, 10, 0}, H5_FORMAT, "chunk: 10 bytes at 1048576"},
        {{UINT64_MAX - 1, 10, 0}, H5_FORMAT, "beyond the end"},
        {{48, 65000, 0}, H5_FORMAT, "beyond the end"},
        {{48, 1, 0}, H5_FORMAT, "cannot come from 1 stored"},
        {{48, 700, 1}, H5_FORMAT, "has 700 stored"},
        {{48, 700, 0}, H5_FORMAT, "deflate"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        t_h5 t;
        h5_pipeline p = {.n = 1};
        p.filter[0] = (h5_filter){.id = H5_FILTER_DEFLATE, .nvalue = 1, .value = {6}};
        uint8_t ground[1000] = {0};
        uint64_t rows = 1000, start = 0, at;
        uint32_t chunk = 1000;
        int64_t *v = h5_malloc(8000);
        h5_object *o;
        t_h5_begin(&t);
        t_h5_bytes(&t, ground, sizeof ground);
        h5_dataset_spec d = {
            .type = t_h5_type('i', 8), .rank = 1, .dims = &rows, .maxdims = &rows, .chunk = &chunk};
        d.pipeline = &p;
        T_OK(&t, h5_write_fixed_array(t.w, &cases[i].c, 1, 1, 8000, &d.addr, &t.err));
        T_OK(&t, h5_write_dataset(t.w, &d, &at, &t.err));
        t_h5_open(&t, t_h5_root(&t, "d", at));
        T_OK(&t, h5_object_find(t.f, "/d", &o, &t.err));
        T_FAILS(&t, cases[i].code, cases[i].text,
                h5_dataset_read(t.f, o, &start, &rows, v, 8000, &t.err));
        h5_free(v);
        h5_object_close(o);
        t_h5_end(&t);
    }
}

/* A header may claim any size; a table of chunks that nothing in the file backs has a limit, a read
** has not. */
static void claimed_sizes(void **state)
{
    (void)state;
    t_h5 t;
    uint64_t rows = 1ull << 40, max = 1ull << 40, start = (1ull << 40) - 2, count = 2, at;
    uint32_t chunk = 16;
    h5_object *o;
    h5_chunk *table;
    size_t n;
    uint8_t v[2] = {1, 1};
    h5_dataset_spec d = {
        .type = t_h5_type('u', 1), .rank = 1, .dims = &rows, .maxdims = &max, .chunk = &chunk};
    d.addr = H5_UNDEF;
    t_h5_begin(&t);
    T_OK(&t, h5_write_dataset(t.w, &d, &at, &t.err));
    t_h5_open(&t, t_h5_root(&t, "d", at));
    T_OK(&t, h5_object_find(t.f, "/d", &o, &t.err));
    T_FAILS(&t, H5_LIMIT, "H5_UNSTORED_CHUNKS_MAX", h5_dataset_chunks(t.f, o, &table, &n, &t.err));
    T_OK(&t, h5_dataset_read(t.f, o, &start, &count, v, 2, &t.err));
    assert_true(v[0] == 0 && v[1] == 0);
    h5_object_close(o);
    t_h5_end(&t);
}

/* A filtered chunk above what is decoded in memory. */
static void chunk_too_large(void **state)
{
    (void)state;
    t_h5 t;
    uint64_t rows = 1ull << 31, start = 0, count = 1, at;
    uint32_t chunk = 1u << 31;
    h5_object *o;
    uint8_t v;
    static const uint8_t stored[40000]; // which zstd could make 2 GiB of
    h5_chunk c = {48, sizeof stored, 0};
    h5_pipeline p = {.n = 1};
    p.filter[0] = (h5_filter){.id = H5_FILTER_ZSTD, .nvalue = 1, .value = {3}};
    h5_dataset_spec d = {
        .type = t_h5_type('u', 1), .rank = 1, .dims = &rows, .maxdims = &rows, .chunk = &chunk};
    d.pipeline = &p;
    t_h5_begin(&t);
    T_OK(&t, h5_writer_append(t.w, stored, sizeof stored, 1, &c.addr, &t.err));
    T_OK(&t, h5_write_fixed_array(t.w, &c, 1, 1, rows, &d.addr, &t.err));
    T_OK(&t, h5_write_dataset(t.w, &d, &at, &t.err));
    t_h5_open(&t, t_h5_root(&t, "d", at));
    T_OK(&t, h5_object_find(t.f, "/d", &o, &t.err));
    T_FAILS(&t, H5_LIMIT, "H5_DECODE_BYTES_MAX",
            h5_dataset_read(t.f, o, &start, &count, &v, 1, &t.err));
    h5_object_close(o);
    t_h5_end(&t);
}

static void bad_requests(void **state)
{
    (void)state;
    t_h5 t;
    h5_object *o = counting(&t, 100, NULL, 0), *root;
    h5_chunk *table;
    size_t n;
    int64_t v[101];
    uint64_t start = 0, count = 100, zero = 0, huge = UINT64_MAX;
    T_OK(&t, h5_object_find(t.f, "/", &root, &t.err));
    T_FAILS(&t, H5_MISUSE, "into a buffer of 799",
            h5_dataset_read(t.f, o, &start, &count, v, 799, &t.err));
    T_FAILS(&t, H5_MISUSE, "into a buffer of 808",
            h5_dataset_read(t.f, o, &start, &count, v, 808, &t.err));
    start = 1;
    T_FAILS(&t, H5_MISUSE, "reading 100 from 1",
            h5_dataset_read(t.f, o, &start, &count, v, 800, &t.err));
    T_FAILS(&t, H5_MISUSE, "reading", h5_dataset_read(t.f, o, &start, &huge, v, 800, &t.err));
    T_FAILS(&t, H5_MISUSE, "reading", h5_dataset_read(t.f, o, &huge, &count, v, 800, &t.err));
    start = 100;
    T_OK(&t, h5_dataset_read(t.f, o, &start, &zero, NULL, 0, &t.err));
    T_FAILS(&t, H5_MISUSE, "not a dataset",
            h5_dataset_read(t.f, root, &start, &count, v, 800, &t.err));
    T_FAILS(&t, H5_MISUSE, "not a dataset", h5_dataset_chunks(t.f, root, &table, &n, &t.err));
    h5_object_close(root);
    h5_object_close(o);
    t_h5_end(&t);
}

/* ------------------------------------------------- single and implicit indexes, written by hand */

/* The header of an int32 dataset of 6 in a maximum of 8, over chunks of 4, with this layout
** message. */
static h5_object *by_hand(t_h5 *t, const void *layout, size_t n, const h5_pipeline *p, unsigned max)
{
    h5_buf b = {0};
    h5_object *o;
    uint64_t at, dims = 6, maxdims = max;
    h5_type type = t_h5_type('i', 4);
    size_t m = h5_ohdr_msg(&b, H5_MSG_SPACE, 0);
    h5_space_encode(&b, 1, &dims, &maxdims);
    T_OK(t, h5_ohdr_msg_end(&b, m, &t->err));
    m = h5_ohdr_msg(&b, H5_MSG_TYPE, 0);
    h5_type_encode(&b, &type);
    T_OK(t, h5_ohdr_msg_end(&b, m, &t->err));
    m = h5_ohdr_msg(&b, H5_MSG_LAYOUT, 0);
    h5_buf_put(&b, layout, n);
    T_OK(t, h5_ohdr_msg_end(&b, m, &t->err));
    if (p) {
        m = h5_ohdr_msg(&b, H5_MSG_FILTERS, 0);
        h5_filters_encode(&b, p);
        T_OK(t, h5_ohdr_msg_end(&b, m, &t->err));
    }
    T_OK(t, h5_ohdr_write(t->w, &b, &at, &t->err));
    h5_buf_free(&b);
    t_h5_open(t, t_h5_root(t, "d", at));
    T_OK(t, h5_object_find(t->f, "/d", &o, &t->err));
    return o;
}

static const int32_t eight[8] = {10, 11, 12, 13, 14, 15, 16, 17};

static void implicit_index(void **state)
{
    (void)state;
    t_h5 t;
    int32_t v[6];
    uint64_t start = 0, count = 6;
    h5_chunk *table;
    size_t n;
    uint8_t layout[16] = {4, 2, 0, 2, 1, 4, 4, 2};
    t_h5_begin(&t);
    uint64_t at = t_h5_bytes(&t, eight, sizeof eight);
    h5_set64(layout + 8, at);
    h5_object *o = by_hand(&t, layout, 16, NULL, 8);
    T_OK(&t, h5_dataset_read(t.f, o, &start, &count, v, sizeof v, &t.err));
    assert_memory_equal(v, eight, sizeof v);
    T_OK(&t, h5_dataset_chunks(t.f, o, &table, &n, &t.err));
    assert_true(n == 2 && table[0].addr == at && table[1].addr == at + 16 && table[1].size == 16);
    h5_free(table);
    h5_object_close(o);
    t_h5_end(&t);
    // Chunks that do not fit into the file.
    t_h5_begin(&t);
    h5_set64(layout + 8, 300);
    o = by_hand(&t, layout, 16, NULL, 800);
    T_FAILS(&t, H5_FORMAT, "implicit index: 3200 bytes",
            h5_dataset_chunks(t.f, o, &table, &n, &t.err));
    h5_object_close(o);
    t_h5_end(&t);
}

static void single_chunk(void **state)
{
    (void)state;
    t_h5 t;
    int32_t v[6];
    uint64_t start = 0, count = 6;
    h5_chunk *table;
    size_t n;
    uint32_t mask;
    void *enc;
    h5_pipeline p = {.n = 1};
    p.filter[0] = (h5_filter){.id = H5_FILTER_DEFLATE, .nvalue = 1, .value = {9}};
    uint8_t layout[28] = {4, 2, 0, 2, 1, 8, 4, 1};
    t_h5_begin(&t);
    h5_set64(layout + 8, t_h5_bytes(&t, eight, sizeof eight));
    h5_object *o = by_hand(&t, layout, 16, NULL, 6);
    T_OK(&t, h5_dataset_read(t.f, o, &start, &count, v, sizeof v, &t.err));
    assert_memory_equal(v, eight, sizeof v);
    h5_object_close(o);
    t_h5_end(&t);
    // Filtered: size and mask stand in the message.
    t_h5_begin(&t);
    T_OK(&t, h5_pipeline_encode(&p, eight, sizeof eight, &enc, &n, &mask, &t.err));
    layout[2] = 2;
    h5_set64(layout + 8, n);
    h5_set64(layout + 20, t_h5_bytes(&t, enc, n));
    h5_free(enc);
    o = by_hand(&t, layout, 28, &p, 8);
    T_OK(&t, h5_dataset_read(t.f, o, &start, &count, v, sizeof v, &t.err));
    assert_memory_equal(v, eight, sizeof v);
    T_OK(&t, h5_dataset_chunks(t.f, o, &table, &n, &t.err));
    assert_int_equal(n, 1);
    h5_free(table);
    h5_object_close(o);
    t_h5_end(&t);
    // More than one chunk cannot have this index.
    t_h5_begin(&t);
    o = by_hand(&t, layout, 28, &p, 9);
    T_FAILS(&t, H5_FORMAT, "single chunk index: 2 chunks",
            h5_dataset_chunks(t.f, o, &table, &n, &t.err));
    h5_object_close(o);
    t_h5_end(&t);
}

/* Layout flag bit 0: the chunk that sticks out is raw, though the index does not say so. */
static void raw_edge(void **state)
{
    (void)state;
    t_h5 t;
    int32_t v[6];
    uint64_t start = 0, count = 6, at;
    void *enc;
    size_t n;
    h5_chunk c[2];
    h5_pipeline p = {.n = 1};
    p.filter[0] = (h5_filter){.id = H5_FILTER_DEFLATE, .nvalue = 1, .value = {9}};
    uint8_t layout[17] = {4, 2, 1, 2, 1, 4, 4, 3, 10};
    t_h5_begin(&t);
    T_OK(&t, h5_pipeline_encode(&p, eight, 16, &enc, &n, &c[0].mask, &t.err));
    c[0].addr = t_h5_bytes(&t, enc, n);
    c[0].size = n;
    h5_free(enc);
    c[1] = (h5_chunk){t_h5_bytes(&t, eight + 4, 16), 16, 0};
    T_OK(&t, h5_write_fixed_array(t.w, c, 2, 1, 16, &at, &t.err));
    h5_set64(layout + 9, at);
    h5_object *o = by_hand(&t, layout, 17, &p, 8);
    T_OK(&t, h5_dataset_read(t.f, o, &start, &count, v, sizeof v, &t.err));
    assert_memory_equal(v, eight, sizeof v);
    h5_object_close(o);
    t_h5_end(&t);
}

/* Scalars and strings. */
static void small_shapes(void **state)
{
    (void)state;
    t_h5 t;
    h5_object *o;
    uint64_t at, none = 0, dims[2] = {2, 0};
    double v = 0, pi = 3.25;
    char s[6];
    h5_dataset_spec d = {.type = t_h5_type('f', 8)};
    t_h5_begin(&t);
    d.addr = t_h5_bytes(&t, &pi, 8);
    T_OK(&t, h5_write_dataset(t.w, &d, &at, &t.err));
    t_h5_open(&t, t_h5_root(&t, "d", at));
    T_OK(&t, h5_object_find(t.f, "/d", &o, &t.err));
    T_OK(&t, h5_dataset_read(t.f, o, NULL, NULL, &v, 8, &t.err));
    assert_true(v == 3.25);
    h5_object_close(o);
    t_h5_end(&t);

    t_h5_begin(&t);
    d = (h5_dataset_spec){.type = {.cls = H5_CLASS_STRING, .size = 3}, .rank = 1, .dims = dims};
    d.addr = t_h5_bytes(&t, "abcxyz", 6);
    T_OK(&t, h5_write_dataset(t.w, &d, &at, &t.err));
    t_h5_open(&t, t_h5_root(&t, "d", at));
    T_OK(&t, h5_object_find(t.f, "/d", &o, &t.err));
    T_OK(&t, h5_dataset_read(t.f, o, &none, dims, s, 6, &t.err));
    assert_memory_equal(s, "abcxyz", 6);
    h5_object_close(o);
    t_h5_end(&t);

    t_h5_begin(&t);
    d = (h5_dataset_spec){.type = t_h5_type('i', 4), .rank = 2, .dims = dims, .addr = H5_UNDEF};
    T_OK(&t, h5_write_dataset(t.w, &d, &at, &t.err));
    t_h5_open(&t, t_h5_root(&t, "d", at));
    T_OK(&t, h5_object_find(t.f, "/d", &o, &t.err));
    uint64_t start[2] = {0, 0};
    T_OK(&t, h5_dataset_read(t.f, o, start, dims, NULL, 0, &t.err));
    h5_object_close(o);
    t_h5_end(&t);
}

static int little_endian_only(void **state)
{
    (void)state;
    const uint16_t one = 1;
    uint8_t first;
    memcpy(&first, &one, 1);
    return first == 1 ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(against_a_plain_array), cmocka_unit_test(only_what_is_needed),
        cmocka_unit_test(nothing_stored),        cmocka_unit_test(raw_last_chunk),
        cmocka_unit_test(damaged_chunk),         cmocka_unit_test(absurd_entries),
        cmocka_unit_test(claimed_sizes),         cmocka_unit_test(chunk_too_large),
        cmocka_unit_test(bad_requests),          cmocka_unit_test(implicit_index),
        cmocka_unit_test(single_chunk),          cmocka_unit_test(raw_edge),
        cmocka_unit_test(small_shapes),          cmocka_unit_test(neighbours),
    };
    return cmocka_run_group_tests_name("h5_dataset", tests, little_endian_only, NULL);
}
