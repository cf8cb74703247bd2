/*
 * t_h5_earray.c - extensible arrays made by hand: index block, data blocks, super blocks, pages
 *
 * Small parameters reach every kind of block with 32 elements: 2 in the index block, data blocks of
 * 2 and 4 that it names, a super block with two of 4, one with two of 8 in pages of 4.
 *
 * SPDX-License-Identifier: MIT
 */
#include "t_h5.h"

#include "h5_cidx.h"
#include "h5_sum.h"

enum { FIRST = 2, LEAST = 2, BITS = 8, PAGE_BITS = 2, PAGE = 4, CHUNKS = 32, SUPERS = 6 };

typedef struct array {
    t_h5 t;
    int filtered;
    uint64_t head;
    uint64_t skip; /* bit per element that is not stored */
    int next;      /* number of the next element */
    int unpaged;   /* pages that are not in use, a bit each */
} array;

/* An element: chunks stand one behind the other from address 64, eight bytes each. */
static void element(array *a, h5_buf *b)
{
    int stored = !(a->skip >> a->next & 1);
    h5_buf_u64(b, stored ? 64 + 8u * (unsigned)a->next : H5_UNDEF);
    if (a->filtered) {
        h5_buf_u16(b, stored ? 8u : 0);
        h5_buf_u32(b, stored ? (unsigned)a->next & 1 : 0);
    }
    a->next++;
}

static void block_head(array *a, h5_buf *b, const char *sig)
{
    h5_buf_put(b, sig, 4);
    h5_buf_u8(b, 0);
    h5_buf_u8(b, (unsigned)a->filtered);
    h5_buf_u64(b, a->head);
}

static uint64_t done(array *a, h5_buf *b)
{
    uint64_t at = t_h5_bytes(&a->t, b->p, b->n);
    h5_buf_free(b);
    return at;
}

/* A data block of n elements, paged where n is more than a page. */
static uint64_t data_block(array *a, int n, int pages_missing)
{
    h5_buf b = {0};
    block_head(a, &b, "EADB");
    h5_buf_u8(&b, (unsigned)(a->next - FIRST));
    if (n <= PAGE) {
        for (int i = 0; i < n; i++)
            element(a, &b);
        h5_sum_put(&b, 0);
        return done(a, &b);
    }
    h5_sum_put(&b, 0);
    for (int p = 0; p < n / PAGE; p++) {
        size_t from = b.n;
        for (int i = 0; i < PAGE; i++)
            element(a, &b);
        if (pages_missing >> p & 1)
            memset(b.p + from, 0xEE, b.n - from);
        h5_sum_put(&b, from);
    }
    return done(a, &b);
}

static uint64_t super_block(array *a, int blocks, int n)
{
    uint64_t at[2];
    h5_buf b = {0};
    int first = a->next - FIRST;
    for (int i = 0; i < blocks; i++)
        at[i] = data_block(a, n, n > PAGE && i == 1 ? a->unpaged : 0);
    block_head(a, &b, "EASB");
    h5_buf_u8(&b, (unsigned)first);
    if (n > PAGE) { // bits of pages in use, most significant first, in a byte a block
        h5_buf_u8(&b, 0xF0 & ~(unsigned)(a->unpaged ? 0x10 : 0));
        h5_buf_u8(&b, 0);
    }
    for (int i = 0; i < blocks; i++)
        h5_buf_u64(&b, at[i]);
    h5_sum_put(&b, 0);
    return done(a, &b);
}

/* Makes header and blocks; the header comes first, since the blocks hold its address. */
static void make(array *a, int upto)
{
    h5_buf b = {0}, index = {0};
    uint8_t room[72] = {0}, chunks[8 * CHUNKS + 16] = {0};
    t_h5_begin(&a->t);
    t_h5_bytes(&a->t, chunks, sizeof chunks);
    a->head = t_h5_bytes(&a->t, room, sizeof room);
    block_head(a, &index, "EAIB");
    for (int i = 0; i < FIRST; i++)
        element(a, &index);
    h5_buf_u64(&index, upto > 2 ? data_block(a, 2, 0) : H5_UNDEF);
    h5_buf_u64(&index, upto > 4 ? data_block(a, 4, 0) : H5_UNDEF);
    for (int i = 0; i < SUPERS; i++)
        h5_buf_u64(&index, i == 0 && upto > 8    ? super_block(a, 2, 4)
                           : i == 1 && upto > 16 ? super_block(a, 2, 8)
                                                 : H5_UNDEF);
    h5_sum_put(&index, 0);
    uint64_t at = done(a, &index);
    h5_buf_put(&b, "EAHD", 4);
    h5_buf_u8(&b, 0);
    h5_buf_u8(&b, (unsigned)a->filtered);
    h5_buf_u8(&b, a->filtered ? 14 : 8);
    h5_buf_u8(&b, BITS);
    h5_buf_u8(&b, FIRST);
    h5_buf_u8(&b, LEAST);
    h5_buf_u8(&b, 2);
    h5_buf_u8(&b, PAGE_BITS);
    for (int i = 0; i < 6; i++)
        h5_buf_u64(&b, i == 4 ? (uint64_t)upto : 0);
    h5_buf_u64(&b, at);
    h5_sum_put(&b, 0);
    t_h5_open(&a->t, a->head);
    T_OK(&a->t, a->t.io->write(a->t.io, a->head, b.p, b.n, &a->t.err));
    h5_buf_free(&b);
    // What was read before the header was there must not count.
    h5_file_close(a->t.f);
    T_OK(&a->t, h5_file_open(a->t.io, &a->t.f, &a->t.err));
}

static h5_object dataset(const array *a, uint64_t rows)
{
    static h5_dataset_info info; // of the last one made
    h5_object o = {.kind = H5_KIND_DATASET, .f = a->t.f, .info = &info};
    h5_dataset_info *d = &info;
    memset(d, 0, sizeof *d);
    d->type = t_h5_type('u', 1);
    d->space = H5_SPACE_SIMPLE;
    d->rank = 1;
    d->dims[0] = rows * 8;
    d->maxdims[0] = UINT64_MAX;
    d->chunk[0] = 8;
    d->size = 8;
    d->addr = a->head;
    d->layout = H5_LAYOUT_CHUNKED;
    o.layout.index = H5_INDEX_EARRAY;
    d->pipeline.n = a->filtered;
    d->pipeline.filter[0].id = H5_FILTER_SHUFFLE;
    return o;
}

static void check(array *a, uint64_t rows, uint64_t stored)
{
    h5_object o = dataset(a, rows);
    h5_cidx ix;
    h5_chunk c;
    T_OK(&a->t, h5_cidx_open(&ix, a->t.f, &o, &a->t.err));
    for (uint64_t i = 0; i < rows; i++) {
        T_OK(&a->t, h5_cidx_get(&ix, &i, &c, &a->t.err));
        if (i >= stored || a->skip >> i & 1) {
            assert_int_equal(c.addr, H5_UNDEF);
            continue;
        }
        assert_int_equal(c.addr, 64 + 8 * i);
        assert_int_equal(c.size, 8);
        assert_int_equal(c.mask, a->filtered ? i & 1 : 0);
    }
    h5_cidx_close(&ix);
}

static void every_block(void **state)
{
    (void)state;
    static const int sizes[] = {2, 4, 8, 16, 32};
    for (int filtered = 0; filtered < 2; filtered++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            array a = {.filtered = filtered, .skip = 0x10410822};
            make(&a, sizes[i]);
            check(&a, 32, (uint64_t)sizes[i]);
            check(&a, 1, (uint64_t)sizes[i]); // the dataset has shrunk
            check(&a, 100, (uint64_t)sizes[i]);
            t_h5_end(&a.t);
        }
}

/* A page that is not in use holds anything, and is not looked at. */
static void unused_page(void **state)
{
    (void)state;
    array a = {.unpaged = 2};
    make(&a, 32);
    a.skip = 0xFull << 28;
    check(&a, 32, 32);
    t_h5_end(&a.t);
}

/* Every byte of the array changed: the checksum, or what the header's fields mean, gives an error.
** */
static void damaged(void **state)
{
    (void)state;
    array a = {0};
    make(&a, 32);
    uint64_t end = h5_writer_eof(a.t.w);
    int refused = 0;
    for (uint64_t at = a.head; at < end; at++) {
        uint8_t byte;
        h5_error none = {0};
        h5_cidx ix;
        T_OK(&a.t, a.t.io->read(a.t.io, at, &byte, 1, &a.t.err));
        byte ^= 0x40;
        T_OK(&a.t, a.t.io->write(a.t.io, at, &byte, 1, &a.t.err));
        h5_object o = dataset(&a, 32);
        int rc = h5_cidx_open(&ix, a.t.f, &o, &none);
        for (uint64_t i = 0; rc == H5_OK && i < 32; i++) {
            h5_chunk c;
            rc = h5_cidx_get(&ix, &i, &c, &none);
        }
        h5_cidx_close(&ix);
        assert_true(rc == H5_OK || rc == H5_FORMAT);
        refused += rc == H5_FORMAT;
        byte ^= 0x40;
        T_OK(&a.t, a.t.io->write(a.t.io, at, &byte, 1, &a.t.err));
    }
    assert_true(refused > (int)(end - a.head) - 64); // all but what fills up to eight bytes
    check(&a, 32, 32);
    t_h5_end(&a.t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_block),
        cmocka_unit_test(unused_page),
        cmocka_unit_test(damaged),
    };
    return cmocka_run_group_tests_name("h5_earray", tests, NULL, NULL);
}
