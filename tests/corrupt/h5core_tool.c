/*
 * h5core_tool.c - hdf5core on a file cut off everywhere and changed everywhere
 *
 * The file is a small one of each structure this library writes. Cut off or changed under its
 * checksums it must be refused or read as written; changed with the checksums made right again it
 * may say other things, and must still not crash, nor ask for memory out of proportion. Run it
 * under the sanitizers.
 *
 * SPDX-License-Identifier: MIT
 */
#include "t_h5.h"
#include "t_alloc.h"
#include "t_h5_sample.h"

/* The largest request that any damage to the small file may cause: the chunk table that h5_limits.h
** allows. */
enum { REQUEST_MAX = 4 * 1024 * 1024 * 24 };

static uint8_t *good, *work;
static size_t good_n;

/* Structures with a checksum in their last four bytes. */
typedef struct range {
    size_t from, to;
} range;
static range ranges[64];
static size_t nrange;

static size_t largest;

static void *watch_alloc(void *ctx, size_t n)
{
    largest = n > largest ? n : largest;
    return t_alloc_get(ctx, n);
}

static void *watch_resize(void *ctx, void *p, size_t n)
{
    largest = n > largest ? n : largest;
    return t_alloc_resize(ctx, p, n);
}

/* Reads n bytes as a file; everything it took must be given back. */
static int read_bytes(const uint8_t *bytes, size_t n, t_sample *s, h5_error *err)
{
    t_alloc a = {0};
    h5_allocator h = {watch_alloc, watch_resize, t_alloc_release, &a};
    h5_io *io;
    h5_set_allocator(&h);
    h5_error_clear(err);
    largest = 0;
    assert_int_equal(h5_io_memory(bytes, n, &io, err), H5_OK);
    int rc = t_sample_read(io, s, err);
    io->close(io);
    h5_set_allocator(NULL);
    assert_int_equal(a.live, 0);
    assert_true(largest <= REQUEST_MAX);
    assert_int_equal(err->code, rc);
    return rc;
}

static void add_range(size_t from, size_t n)
{
    assert_true(nrange < 64 && from + n <= good_n);
    assert_int_equal(h5_lookup3(good + from, n - 4, 0),
                     good[from + n - 4] | good[from + n - 3] << 8 | good[from + n - 2] << 16 |
                         (uint32_t)good[from + n - 1] << 24);
    ranges[nrange++] = (range){from, from + n};
}

/* Finds the structures by their signatures; what has no size of its own ends where its checksum is
** right. */
static int make_file(void **state)
{
    (void)state;
    h5_io *io;
    h5_error err;
    uint64_t n;
    h5_error_clear(&err);
    if (h5_io_memory(NULL, 0, &io, &err) != H5_OK || t_sample_write(io, &err) != H5_OK)
        return -1;
    io->size(io, &n, &err);
    good_n = (size_t)n;
    good = malloc(good_n);
    work = malloc(good_n);
    io->read(io, 0, good, good_n, &err);
    io->close(io);
    add_range(0, H5_SUPERBLOCK_BYTES);
    for (size_t i = H5_SUPERBLOCK_BYTES; i + 8 < good_n; i++) {
        if (memcmp(good + i, "OHDR", 4) != 0 && memcmp(good + i, "FAHD", 4) != 0 &&
            memcmp(good + i, "FADB", 4) != 0)
            continue;
        for (size_t end = i + 12;; end++) {
            uint32_t sum = h5_lookup3(good + i, end - i, 0);
            uint8_t bytes[4] = {(uint8_t)sum, (uint8_t)(sum >> 8), (uint8_t)(sum >> 16),
                                (uint8_t)(sum >> 24)};
            if (end + 4 > good_n)
                return -1;
            if (memcmp(good + end, bytes, 4) == 0) {
                add_range(i, end + 4 - i);
                break;
            }
        }
    }
    return nrange == 1 + 7 + 3 * 2
               ? 0
               : -1; // superblock, seven headers, three arrays of header and block
}

static int drop_file(void **state)
{
    (void)state;
    free(good);
    free(work);
    return 0;
}

static void sign(uint8_t *file, const range *r)
{
    uint32_t sum = h5_lookup3(file + r->from, r->to - 4 - r->from, 0);
    for (int i = 0; i < 4; i++)
        file[r->to - 4 + (size_t)i] = (uint8_t)(sum >> 8 * i);
}

static void the_good_one(void **state)
{
    (void)state;
    t_sample s;
    h5_error err;
    assert_int_equal(read_bytes(good, good_n, &s, &err), H5_OK);
    assert_int_equal(s.read, 6);
    assert_int_equal(s.wrong, 0);
    assert_true(largest <= good_n * 4);
}

static void every_prefix(void **state)
{
    (void)state;
    t_sample s;
    h5_error err;
    for (size_t n = 0; n < good_n; n++) {
        assert_int_equal(read_bytes(good, n, &s, &err), H5_FORMAT);
        if (n < H5_SUPERBLOCK_BYTES)
            continue;
        // The same with a superblock that knows of it: what lies before the cut can still be read.
        memcpy(work, good, n);
        for (int i = 0; i < 8; i++)
            work[28 + i] = (uint8_t)((uint64_t)n >> 8 * i);
        sign(work, &ranges[0]);
        assert_int_equal(read_bytes(work, n, &s, &err), H5_FORMAT);
        assert_int_equal(s.wrong, 0);
    }
}

/* Under the old checksum every change is noticed. Chunks have none: their bytes are left alone. */
static void every_byte(void **state)
{
    (void)state;
    static const uint8_t masks[] = {0x01, 0x80, 0xFF};
    t_sample s;
    h5_error err;
    memcpy(work, good, good_n);
    for (size_t k = 0; k < nrange; k++) {
        for (size_t i = ranges[k].from; i < ranges[k].to; i++) {
            for (size_t m = 0; m < sizeof masks; m++) {
                work[i] ^= masks[m];
                int rc = read_bytes(work, good_n, &s, &err);
                assert_true(rc == H5_FORMAT || (rc == H5_UNSUPPORTED && i < 12));
                assert_int_equal(s.wrong, 0);
                assert_true(s.read < 6);
                work[i] = good[i];
            }
        }
    }
}

/* With a right checksum the decoders see the change. */
static void every_byte_signed(void **state)
{
    (void)state;
    static const uint8_t masks[] = {0x01, 0x02, 0x04, 0x10, 0x40, 0x80, 0xFF};
    long counts[8] = {0};
    t_sample s;
    h5_error err;
    memcpy(work, good, good_n);
    for (size_t k = 0; k < nrange; k++) {
        for (size_t i = ranges[k].from; i < ranges[k].to - 4; i++) {
            for (size_t m = 0; m < sizeof masks; m++) {
                work[i] ^= masks[m];
                sign(work, &ranges[k]);
                int rc = read_bytes(work, good_n, &s, &err);
                assert_true(rc <= H5_OK && rc >= H5_LIMIT && rc != H5_IO && rc != H5_MISUSE &&
                            rc != H5_NOMEM);
                counts[-rc]++;
                work[i] = good[i];
            }
            memcpy(work + ranges[k].to - 4, good + ranges[k].to - 4, 4);
        }
    }
    // Each kind of answer must have come, or the walk does not reach what it should.
    assert_true(counts[0] > 100 && counts[-H5_FORMAT] > 1000 && counts[-H5_UNSUPPORTED] > 10);
    assert_true(counts[-H5_NOTFOUND] > 10 && counts[-H5_LIMIT] > 0);
}

/* Every aligned eight bytes of each structure replaced by numbers that overflow something. */
static void every_number(void **state)
{
    (void)state;
    static const uint64_t numbers[] = {0,          1,          0x7FFFFFFF,         0xFFFFFFFF,
                                       1ull << 40, 1ull << 62, UINT64_MAX / 8 + 2, UINT64_MAX - 1,
                                       UINT64_MAX};
    t_sample s;
    h5_error err;
    memcpy(work, good, good_n);
    for (size_t k = 0; k < nrange; k++) {
        for (size_t i = ranges[k].from; i + 12 <= ranges[k].to; i++) {
            for (size_t v = 0; v < sizeof numbers / sizeof *numbers; v++) {
                for (int b = 0; b < 8; b++)
                    work[i + (size_t)b] = (uint8_t)(numbers[v] >> 8 * b);
                sign(work, &ranges[k]);
                read_bytes(work, good_n, &s, &err);
            }
            memcpy(work + i, good + i, 8);
        }
        memcpy(work + ranges[k].to - 4, good + ranges[k].to - 4, 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_good_one), cmocka_unit_test(every_prefix),
        cmocka_unit_test(every_byte),   cmocka_unit_test(every_byte_signed),
        cmocka_unit_test(every_number),
    };
    return cmocka_run_group_tests_name("h5core corruption", tests, make_file, drop_file);
}
