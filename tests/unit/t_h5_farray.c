/*
 * t_h5_farray.c - fixed arrays of every shape: written, read back, and by hand where the writer
 * would not
 *
 * SPDX-License-Identifier: MIT
 */
#include "t_h5.h"
#include "t_io.h"

#include "h5_farray.h"
#include "h5_sum.h"

enum { CHUNK_ROWS = 4, CHUNK_BYTES = 32 };

/* Chunks that need no bytes of their own: they lie anywhere inside the file. */
static void fake_chunks(h5_chunk *c, uint64_t n, int filtered)
{
    for (uint64_t i = 0; i < n; i++) {
        c[i].addr = i % 7 == 3 ? H5_UNDEF : 48 + i % 500;
        c[i].size = c[i].addr == H5_UNDEF ? 0 : filtered ? 1 + i % 29 : CHUNK_BYTES;
        c[i].mask = c[i].addr != H5_UNDEF && filtered ? (uint32_t)(i % 3) : 0;
    }
}

/* A one-dimensional int64 dataset of n chunks with this index; gives the opened object. */
static h5_object *dataset_over(t_h5 *t, uint64_t n, int filtered, uint64_t index)
{
    h5_pipeline p = {.n = 2};
    p.filter[0] = (h5_filter){.id = H5_FILTER_SHUFFLE, .flags = 1, .nvalue = 1, .value = {8}};
    p.filter[1] = (h5_filter){.id = H5_FILTER_DEFLATE, .flags = 1, .nvalue = 1, .value = {6}};
    uint64_t dims = n * CHUNK_ROWS - 1, max = n * CHUNK_ROWS, at;
    uint32_t chunk = CHUNK_ROWS;
    h5_dataset_spec d = {
        .type = t_h5_type('i', 8), .rank = 1, .dims = &dims, .maxdims = &max, .chunk = &chunk};
    d.addr = index;
    d.pipeline = filtered ? &p : NULL;
    T_OK(t, h5_write_dataset(t->w, &d, &at, &t->err));
    t_h5_open(t, t_h5_root(t, "d", at));
    h5_object *o;
    T_OK(t, h5_object_find(t->f, "d", &o, &t->err));
    return o;
}

/* Some bytes to point at. */
static void begin(t_h5 *t)
{
    uint8_t ground[1024] = {0};
    t_h5_begin(t);
    t_h5_bytes(t, ground, sizeof ground);
}

static void compare(t_h5 *t, const h5_object *o, const h5_chunk *want, uint64_t n)
{
    h5_chunk *have;
    size_t count;
    T_OK(t, h5_dataset_chunks(t->f, o, &have, &count, &t->err));
    assert_int_equal(count, n);
    for (uint64_t i = 0; i < n; i++) {
        assert_true(have[i].addr == want[i].addr);
        assert_true(have[i].size == want[i].size);
        assert_int_equal(have[i].mask, want[i].mask);
    }
    h5_free(have);
}

static void round_trip(uint64_t n, int filtered, unsigned page_bits)
{
    t_h5 t;
    uint64_t at;
    h5_chunk *chunks = h5_malloc((size_t)n * sizeof *chunks);
    begin(&t);
    fake_chunks(chunks, n, filtered);
    T_OK(&t, h5_farray_write(t.w, chunks, n, filtered, CHUNK_BYTES, page_bits, &at, &t.err));
    assert_int_equal(at % 8, 0);
    h5_object *o = dataset_over(&t, n, filtered, at);
    compare(&t, o, chunks, n);
    // The same one by one, forwards and far apart.
    h5_cidx ix;
    h5_chunk c;
    T_OK(&t, h5_cidx_open(&ix, t.f, o, &t.err));
    for (uint64_t i = 0; i < n; i++) {
        uint64_t slot = i * 769 % n;
        T_OK(&t, h5_cidx_get(&ix, &slot, &c, &t.err));
        assert_true(c.addr == chunks[slot].addr && c.size == chunks[slot].size);
    }
    h5_cidx_close(&ix);
    h5_object_close(o);
    t_h5_end(&t);
    h5_free(chunks);
}

static void sizes(void **state)
{
    (void)state;
    static const uint64_t n[] = {1, 2, 1023, 1024, 1025, 2048, 2049, 5000};
    for (size_t i = 0; i < sizeof n / sizeof *n; i++)
        for (int filtered = 0; filtered < 2; filtered++)
            round_trip(n[i], filtered, H5_FARRAY_PAGE_BITS);
}

/* Small pages: bitmaps of more than one byte, short last pages. */
static void small_pages(void **state)
{
    (void)state;
    for (uint64_t n = 1; n <= 70; n++)
        for (int filtered = 0; filtered < 2; filtered++)
            round_trip(n, filtered, 2);
    round_trip(33, 0, 1);
    round_trip(5000, 0, 3);
}

/* The layout that the specification gives, byte by byte. */
static void bytes_of_a_small_array(void **state)
{
    (void)state;
    t_h5 t;
    uint64_t at;
    uint8_t b[28 + 14 + 3 * 14 + 4];
    h5_chunk c[3] = {{100, 9, 0}, {H5_UNDEF, 0, 0}, {200, 0x1FF, 3}};
    t_h5_begin(&t);
    T_OK(&t, h5_write_fixed_array(t.w, c, 3, 1, 256, &at, &t.err));
    T_OK(&t, h5_writer_flush(t.w, &t.err));
    assert_true(h5_writer_eof(t.w) ==
                at + sizeof b + 3); // sizes of 256-byte chunks take 3 bytes, not 2
    h5_writer_free(t.w);
    t.io->close(t.io);

    t_h5_begin(&t);
    T_OK(&t, h5_write_fixed_array(t.w, c, 3, 1, 255, &at, &t.err)); // 1 + (7 + 8) / 8 = 2
    T_OK(&t, h5_writer_flush(t.w, &t.err));
    assert_true(h5_writer_eof(t.w) == at + sizeof b);
    T_OK(&t, t.io->read(t.io, at, b, sizeof b, &t.err));
    assert_memory_equal(b, "FAHD\0\1\x0e\x0a", 8);
    assert_true(h5_get64(b + 8) == 3 && h5_get64(b + 16) == at + 28);
    assert_true(h5_get32(b + 24) == h5_lookup3(b, 24, 0));
    assert_memory_equal(b + 28, "FADB\0\1", 6);
    assert_true(h5_get64(b + 34) == at);
    assert_true(h5_get64(b + 42) == 100 && h5_get16(b + 50) == 9 && h5_get32(b + 52) == 0);
    assert_true(h5_get64(b + 56) == H5_UNDEF && h5_get16(b + 64) == 0);
    assert_true(h5_get64(b + 70) == 200 && h5_get16(b + 78) == 0x1FF && h5_get32(b + 80) == 3);
    assert_true(h5_get32(b + 84) == h5_lookup3(b + 28, 56, 0));
    t_h5_end(&t);
}

/* A page that the bitmap does not know reads as unwritten, whatever bytes are there; nor is it
** read. */
static void page_not_in_use(void **state)
{
    (void)state;
    t_h5 t;
    uint64_t at;
    h5_chunk chunks[12];
    begin(&t);
    fake_chunks(chunks, 12, 0);
    T_OK(&t, h5_farray_write(t.w, chunks, 12, 0, CHUNK_BYTES, 2, &at, &t.err));
    h5_object *o = dataset_over(&t, 12, 0, at);
    uint8_t block[14 + 1 + 4];
    T_OK(&t, t.io->read(t.io, at + 28, block, sizeof block, &t.err));
    assert_int_equal(block[14], 0xE0); // three pages, most significant bit first
    block[14] = 0xA0;
    h5_set32(block + 15, h5_lookup3(block, 15, 0));
    T_OK(&t, t.io->write(t.io, at + 28, block, sizeof block, &t.err));
    uint8_t junk[36] = {0};
    T_OK(&t, t.io->write(t.io, at + 28 + 19 + 36, junk, sizeof junk, &t.err));
    for (int i = 4; i < 8; i++)
        chunks[i] = (h5_chunk){H5_UNDEF, 0, 0};
    compare(&t, o, chunks, 12);
    h5_object_close(o);
    t_h5_end(&t);
}

/* A header without a block: nothing is written yet. */
static void no_block(void **state)
{
    (void)state;
    t_h5 t;
    h5_chunk want[2] = {{H5_UNDEF, 0, 0}, {H5_UNDEF, 0, 0}};
    h5_buf b = {0};
    begin(&t);
    h5_buf_put(&b, "FAHD\0\0\x08\x0a", 8);
    h5_buf_u64(&b, 2);
    h5_buf_u64(&b, H5_UNDEF);
    h5_sum_put(&b, 0);
    h5_object *o = dataset_over(&t, 2, 0, t_h5_bytes(&t, b.p, b.n));
    compare(&t, o, want, 2);
    h5_buf_free(&b);
    h5_object_close(o);
    t_h5_end(&t);
}

/* Each field of header and block changed under a right checksum is refused with its name. */
static void wrong_fields(void **state)
{
    (void)state;
    static const struct {
        int block, at;
        uint8_t value;
        const char *text;
    } cases[] = {
        {0, 0, 'X', "no signature"},  {0, 4, 1, "version 1"},          {0, 5, 1, "client 1"},
        {0, 6, 9, "entries of 9"},    {0, 7, 0, "0 page bits"},        {0, 7, 33, "33 page bits"},
        {0, 8, 3, "3 entries for 2"}, {0, 15, 1, "entries for 2"},     {0, 23, 1, "beyond the end"},
        {1, 0, 'X', "no signature"},  {1, 4, 1, "version 1"},          {1, 5, 1, "client 1"},
        {1, 6, 1, "header at"},       {1, 15, 0xF0, "beyond the end"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        t_h5 t;
        uint64_t at;
        h5_chunk chunks[2] = {{64, CHUNK_BYTES, 0}, {128, CHUNK_BYTES, 0}};
        uint8_t head[28], block[14 + 16 + 4];
        h5_chunk *have;
        size_t n;
        begin(&t);
        T_OK(&t, h5_write_fixed_array(t.w, chunks, 2, 0, CHUNK_BYTES, &at, &t.err));
        h5_object *o = dataset_over(&t, 2, 0, at);
        T_OK(&t, t.io->read(t.io, at, head, sizeof head, &t.err));
        T_OK(&t, t.io->read(t.io, at + 28, block, sizeof block, &t.err));
        (cases[i].block ? block : head)[cases[i].at] = cases[i].value;
        T_OK(&t, t.io->write(t.io, at, head, sizeof head, &t.err));
        T_OK(&t, t.io->write(t.io, at + 28, block, sizeof block, &t.err));
        T_FAILS(&t, H5_FORMAT, "", h5_dataset_chunks(t.f, o, &have, &n, &t.err));
        h5_set32(head + 24, h5_lookup3(head, 24, 0));
        h5_set32(block + 30, h5_lookup3(block, 30, 0));
        T_OK(&t, t.io->write(t.io, at, head, sizeof head, &t.err));
        T_OK(&t, t.io->write(t.io, at + 28, block, sizeof block, &t.err));
        T_FAILS(&t, H5_FORMAT, cases[i].text, h5_dataset_chunks(t.f, o, &have, &n, &t.err));
        assert_null(have);
        assert_int_equal(n, 0);
        h5_object_close(o);
        t_h5_end(&t);
    }
}

/* A damaged page is noticed when it is needed, and only then. */
static void damaged_page(void **state)
{
    (void)state;
    t_h5 t;
    uint64_t at;
    h5_chunk chunks[12], *have, c;
    size_t n;
    h5_cidx ix;
    begin(&t);
    fake_chunks(chunks, 12, 0);
    T_OK(&t, h5_farray_write(t.w, chunks, 12, 0, CHUNK_BYTES, 2, &at, &t.err));
    h5_object *o = dataset_over(&t, 12, 0, at);
    T_OK(&t, t.io->write(t.io, at + 28 + 19 + 36, "x", 1, &t.err));
    T_FAILS(&t, H5_FORMAT, "fixed array page: checksum",
            h5_dataset_chunks(t.f, o, &have, &n, &t.err));
    T_OK(&t, h5_cidx_open(&ix, t.f, o, &t.err));
    T_OK(&t, h5_cidx_get(&ix, (uint64_t[]){0}, &c, &t.err));
    T_FAILS(&t, H5_FORMAT, "checksum", h5_cidx_get(&ix, (uint64_t[]){4}, &c, &t.err));
    T_FAILS(&t, H5_FORMAT, "checksum", h5_cidx_get(&ix, (uint64_t[]){5}, &c, &t.err));
    T_OK(&t, h5_cidx_get(&ix, (uint64_t[]){8}, &c, &t.err));
    h5_cidx_close(&ix);
    h5_object_close(o);
    t_h5_end(&t);
}

/* A table of 2,400 chunks: at most header, bitmap and one read a page, nothing for each chunk. */
static void few_reads(void **state)
{
    (void)state;
    t_h5 t;
    uint64_t at;
    h5_chunk chunks[2400], *have;
    size_t n;
    begin(&t);
    fake_chunks(chunks, 2400, 0);
    T_OK(&t, h5_write_fixed_array(t.w, chunks, 2400, 0, CHUNK_BYTES, &at, &t.err));
    h5_object *o = dataset_over(&t, 2400, 0, at);
    t_io *counted = t_io_new(t.io);
    h5_file *f;
    T_OK(&t, h5_file_open(&counted->io, &f, &t.err));
    counted->reads = 0;
    T_OK(&t, h5_dataset_chunks(f, o, &have, &n, &t.err));
    assert_int_equal(n, 2400);
    assert_in_range(counted->reads, 1, 5);
    assert_true(counted->read_bytes < 2 * 2400 * 8);
    h5_free(have);
    h5_file_close(f);
    t.io = &counted->io;
    h5_object_close(o);
    t_h5_end(&t);
}

static void bad_arguments(void **state)
{
    (void)state;
    t_h5 t;
    uint64_t at, eof;
    h5_chunk c = {64, 100, 0};
    t_h5_begin(&t);
    eof = h5_writer_eof(t.w);
    T_FAILS(&t, H5_MISUSE, "0 chunks", h5_write_fixed_array(t.w, &c, 0, 0, 100, &at, &t.err));
    T_FAILS(&t, H5_MISUSE, "of 0 bytes", h5_write_fixed_array(t.w, &c, 1, 0, 0, &at, &t.err));
    T_FAILS(&t, H5_MISUSE, "of 100 bytes", h5_write_fixed_array(t.w, &c, 1, 0, 101, &at, &t.err));
    c.mask = 1;
    T_FAILS(&t, H5_MISUSE, "mask 1", h5_write_fixed_array(t.w, &c, 1, 0, 100, &at, &t.err));
    c.size = 0;
    T_FAILS(&t, H5_MISUSE, "of 0 bytes", h5_write_fixed_array(t.w, &c, 1, 1, 100, &at, &t.err));
    c.size = 1 << 16;
    T_FAILS(&t, H5_MISUSE, "of 65536 bytes", h5_write_fixed_array(t.w, &c, 1, 1, 100, &at, &t.err));
    assert_true(at == 0 && h5_writer_eof(t.w) == eof);
    t_h5_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes),
        cmocka_unit_test(small_pages),
        cmocka_unit_test(bytes_of_a_small_array),
        cmocka_unit_test(page_not_in_use),
        cmocka_unit_test(no_block),
        cmocka_unit_test(wrong_fields),
        cmocka_unit_test(damaged_page),
        cmocka_unit_test(few_reads),
        cmocka_unit_test(bad_arguments),
    };
    return cmocka_run_group_tests_name("h5_farray", tests, NULL, NULL);
}
