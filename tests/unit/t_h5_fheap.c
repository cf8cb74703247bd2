/*
 * t_h5_fheap.c - fractal heaps made by hand: direct and indirect roots, tiny and huge objects
 *
 * Two blocks of 64 bytes a row, of 128 in the third, all direct; the fourth row has indirect blocks
 * of 256 bytes. The space is of 16 bits, ids of 4 bytes: kind 1, place 2, length 1.
 *
 * SPDX-License-Identifier: MIT
 */
#include "t_h5.h"

#include "h5_fheap.h"
#include "h5_sum.h"

enum { START = 64, WIDTH = 2, DIRECT_MOST = 128, ID = 4, HEAD = 15 }; // of a block, without its sum

typedef struct heap {
    t_h5 t;
    int sums; /* direct blocks have checksums */
    uint64_t head, root;
    unsigned rows;
    uint64_t huge; /* B-tree of huge objects */
} heap;

static void block_head(const heap *h, h5_buf *b, const char *sig, unsigned place)
{
    h5_buf_put(b, sig, 4);
    h5_buf_u8(b, 0);
    h5_buf_u64(b, h->head);
    h5_buf_u16(b, place);
}

/* A direct block in which every byte of the objects tells its place in the space. */
static uint64_t direct(heap *h, unsigned place, unsigned n)
{
    h5_buf b = {0};
    block_head(h, &b, "FHDB", place);
    if (h->sums)
        h5_buf_u32(&b, 0);
    while (b.n < n)
        h5_buf_u8(&b, (place + (unsigned)b.n) * 7u >> 2 & 0xFF);
    if (h->sums)
        h5_set32(b.p + HEAD, h5_lookup3(b.p, b.n, 0));
    uint64_t at = t_h5_bytes(&h->t, b.p, b.n);
    h5_buf_free(&b);
    return at;
}

static uint64_t indirect(heap *h, unsigned place, unsigned rows)
{
    uint64_t at[8];
    h5_buf b = {0};
    unsigned from = place;
    for (unsigned i = 0; i < rows * WIDTH; i++) {
        unsigned n = i / WIDTH < 2 ? START : START << (i / WIDTH - 1);
        at[i] = n <= DIRECT_MOST ? direct(h, from, n) : indirect(h, from, 2);
        from += n;
    }
    block_head(h, &b, "FHIB", place);
    for (unsigned i = 0; i < rows * WIDTH; i++)
        h5_buf_u64(&b, at[i]);
    h5_sum_put(&b, 0);
    uint64_t here = t_h5_bytes(&h->t, b.p, b.n);
    h5_buf_free(&b);
    return here;
}

/* Header, written where room was left for it. */
static void put_header(heap *h)
{
    h5_buf b = {0};
    h5_buf_put(&b, "FRHP", 4);
    h5_buf_u8(&b, 0);
    h5_buf_u16(&b, ID);
    h5_buf_u16(&b, 0);
    h5_buf_u8(&b, h->sums ? 2 : 0);
    h5_buf_u32(&b, 60);
    h5_buf_u64(&b, 0);
    h5_buf_u64(&b, h->huge);
    for (int i = 0; i < 10; i++)
        h5_buf_u64(&b, 0);
    h5_buf_u16(&b, WIDTH);
    h5_buf_u64(&b, START);
    h5_buf_u64(&b, DIRECT_MOST);
    h5_buf_u16(&b, 16);
    h5_buf_u16(&b, 1);
    h5_buf_u64(&b, h->root);
    h5_buf_u16(&b, h->rows);
    h5_sum_put(&b, 0);
    assert_int_equal(b.n, 146);
    T_OK(&h->t, h->t.io->write(h->t.io, h->head, b.p, b.n, &h->t.err));
    h5_buf_free(&b);
    h5_file_close(h->t.f);
    T_OK(&h->t, h5_file_open(h->t.io, &h->t.f, &h->t.err));
}

static void make(heap *h)
{
    uint8_t room[146] = {0};
    t_h5_begin(&h->t);
    h->head = t_h5_bytes(&h->t, room, sizeof room);
    h->root = h->rows ? indirect(h, 0, h->rows) : direct(h, 0, START);
    h->huge = H5_UNDEF;
    t_h5_open(&h->t, h->head);
    put_header(h);
}

/* The object of n bytes at a place. */
static int get(heap *h, unsigned at, unsigned n, h5_error *err)
{
    h5_fheap f;
    h5_arena arena = {0};
    const uint8_t id[ID] = {0, (uint8_t)at, (uint8_t)(at >> 8), (uint8_t)n}, *p;
    size_t bytes;
    int rc = h5_fheap_open(&f, h->t.f, h->head, err);
    if (rc == H5_OK)
        rc = h5_fheap_get(&f, id, ID, &arena, &p, &bytes, err);
    if (rc == H5_OK) {
        assert_int_equal(bytes, n);
        for (unsigned i = 0; i < n; i++)
            assert_int_equal(p[i], (at + i) * 7u >> 2 & 0xFF);
    }
    h5_arena_free(&arena);
    h5_fheap_close(&f);
    return rc;
}

static void every_place(void **state)
{
    (void)state;
    static const unsigned space[] = {64, 128, 256, 512, 1024}; // by rows
    for (int sums = 0; sums < 2; sums++)
        for (unsigned rows = 0; rows <= 4; rows++) {
            heap h = {.sums = sums, .rows = rows};
            make(&h);
            unsigned skip = HEAD + (sums ? 4 : 0), block = 0, n = START;
            for (unsigned at = 0; at < space[rows]; at++) {
                // Blocks of 128 bytes in the third row, of 64 elsewhere.
                block = at >= 256 && at < 512 ? at / 128 * 128 : at / 64 * 64;
                n = at >= 256 && at < 512 ? 128 : 64;
                if (at - block < skip || at - block > n - 5)
                    continue;
                T_OK(&h.t, get(&h, at, 5, &h.t.err));
            }
            T_FAILS(&h.t, H5_FORMAT, "object of 60 bytes", get(&h, 20, 60, &h.t.err));
            if (rows)
                T_FAILS(&h.t, H5_FORMAT, "no block for", get(&h, space[rows], 5, &h.t.err));
            t_h5_end(&h.t);
        }
}

/* One changed byte of any block with a checksum is noticed, wherever an object lies behind it. */
static void damaged(void **state)
{
    (void)state;
    heap h = {.sums = 1, .rows = 4};
    make(&h);
    uint64_t end = h5_writer_eof(h.t.w);
    for (uint64_t at = h.head; at < end; at += 3) {
        uint8_t byte;
        h5_error none = {0};
        T_OK(&h.t, h.t.io->read(h.t.io, at, &byte, 1, &h.t.err));
        byte ^= 1;
        T_OK(&h.t, h.t.io->write(h.t.io, at, &byte, 1, &h.t.err));
        for (unsigned place = 20; place < 1024; place += 64) {
            int rc = get(&h, place, 5, &none);
            assert_true(rc == H5_OK || rc == H5_FORMAT);
            h5_error_clear(&none);
        }
        byte ^= 1;
        T_OK(&h.t, h.t.io->write(h.t.io, at, &byte, 1, &h.t.err));
    }
    t_h5_end(&h.t);
}

static int fetch(heap *h, const uint8_t *id, h5_arena *arena, const uint8_t **p, size_t *n,
                 h5_error *err)
{
    h5_fheap f;
    int rc = h5_fheap_open(&f, h->t.f, h->head, err);
    if (rc == H5_OK)
        rc = h5_fheap_get(&f, id, ID, arena, p, n, err);
    h5_fheap_close(&f);
    return rc;
}

static void tiny_objects(void **state)
{
    (void)state;
    heap h = {0};
    h5_arena arena = {0};
    const uint8_t *p;
    size_t n;
    make(&h);
    T_OK(&h.t, fetch(&h,
                     (const uint8_t *)"\x22"
                                      "abc",
                     &arena, &p, &n, &h.t.err));
    assert_true(n == 3 && memcmp(p, "abc", 3) == 0);
    T_FAILS(&h.t, H5_FORMAT, "tiny object of 4",
            fetch(&h,
                  (const uint8_t *)"\x23"
                                   "abc",
                  &arena, &p, &n, &h.t.err));
    T_FAILS(&h.t, H5_FORMAT, "id of kind 30",
            fetch(&h,
                  (const uint8_t *)"\x30"
                                   "abc",
                  &arena, &p, &n, &h.t.err));
    h5_arena_free(&arena);
    t_h5_end(&h.t);
}

/* A huge object is found by its number in a B-tree of one leaf. */
static void huge_objects(void **state)
{
    (void)state;
    heap h = {0};
    h5_arena arena = {0};
    h5_buf leaf = {0}, tree = {0};
    uint8_t room[146] = {0}, data[200];
    const uint8_t *p;
    size_t n;
    memset(data, 0x5A, sizeof data);
    t_h5_begin(&h.t);
    h.head = t_h5_bytes(&h.t, room, sizeof room);
    h.root = H5_UNDEF;
    uint64_t at = t_h5_bytes(&h.t, data, sizeof data);
    h5_buf_put(&leaf, "BTLF\0\1", 6);
    for (unsigned i = 1; i <= 3; i++) { // the third lies beyond the end of the file
        h5_buf_u64(&leaf, at);
        h5_buf_u64(&leaf, i == 3 ? 1u << 20 : 100 * i);
        h5_buf_u64(&leaf, i);
    }
    h5_sum_put(&leaf, 0);
    uint64_t leaf_at = t_h5_bytes(&h.t, leaf.p, leaf.n);
    h5_buf_put(&tree, "BTHD\0\1", 6);
    h5_buf_u32(&tree, 512);
    h5_buf_u16(&tree, 24);
    h5_buf_u32(&tree, 0);
    h5_buf_u64(&tree, leaf_at);
    h5_buf_u16(&tree, 3);
    h5_buf_u64(&tree, 3);
    h5_sum_put(&tree, 0);
    uint64_t tree_at = t_h5_bytes(&h.t, tree.p, tree.n);
    t_h5_open(&h.t, h.head);
    h.huge = tree_at;
    put_header(&h);
    T_OK(&h.t, fetch(&h, (const uint8_t *)"\x10\2\0", &arena, &p, &n, &h.t.err));
    assert_true(n == 200 && memcmp(p, data, 200) == 0);
    T_OK(&h.t, fetch(&h, (const uint8_t *)"\x10\1\0", &arena, &p, &n, &h.t.err));
    assert_int_equal(n, 100);
    T_FAILS(&h.t, H5_FORMAT, "beyond the end",
            fetch(&h, (const uint8_t *)"\x10\3\0", &arena, &p, &n, &h.t.err));
    T_FAILS(&h.t, H5_FORMAT, "huge object 9",
            fetch(&h, (const uint8_t *)"\x10\x09\0", &arena, &p, &n, &h.t.err));
    h5_buf_free(&leaf);
    h5_buf_free(&tree);
    h5_arena_free(&arena);
    t_h5_end(&h.t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_place),
        cmocka_unit_test(damaged),
        cmocka_unit_test(tiny_objects),
        cmocka_unit_test(huge_objects),
    };
    return cmocka_run_group_tests_name("h5_fheap", tests, NULL, NULL);
}
