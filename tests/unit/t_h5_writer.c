/*
 * t_h5_writer.c - appending: places, gaps, sizes around the buffer, and what a failed write leaves
 *
 * SPDX-License-Identifier: MIT
 */
#include "t_h5.h"
#include "t_io.h"
#include "t_rng.h"

#include "h5_limits.h"

/* Random appends against a flat array. */
static void against_a_flat_array(void **state)
{
    (void)state;
    enum { ROOM = 8 << 20 };
    t_rng r = t_rng_start(41);
    uint8_t *want = calloc(1, ROOM), *have = malloc(ROOM), *piece = malloc(1 << 20);
    for (int round = 0; round < 20; round++) {
        t_h5 t;
        t_h5_begin(&t);
        uint64_t eof = H5_SUPERBLOCK_BYTES, at, size;
        memset(want, 0, ROOM);
        for (int i = 0; i < 40; i++) {
            static const size_t most[] = {40, 5000, H5_WRITER_BUFFER / 2 + 2, H5_WRITER_BUFFER + 2,
                                          1 << 20};
            size_t n = (size_t)t_rng_below(&r, most[t_rng_below(&r, round < 10 ? 3 : 5)]);
            uint32_t align = 1u << t_rng_below(&r, 13);
            uint64_t here = (eof + align - 1) / align * align;
            if (here + n > ROOM)
                break;
            t_rng_fill(&r, piece, n);
            T_OK(&t, h5_writer_append(t.w, piece, n, align, &at, &t.err));
            assert_true(at == here);
            memcpy(want + here, piece, n);
            eof = here + n;
            assert_true(h5_writer_eof(t.w) == eof);
            if (t_rng_below(&r, 9) == 0)
                T_OK(&t, h5_writer_flush(t.w, &t.err));
        }
        T_OK(&t, h5_writer_flush(t.w, &t.err));
        T_OK(&t, t.io->size(t.io, &size, &t.err));
        assert_true(size == eof);
        T_OK(&t, t.io->read(t.io, 0, have, (size_t)size, &t.err));
        assert_memory_equal(have, want, size);
        t_h5_end(&t);
    }
    free(want);
    free(have);
    free(piece);
}

/* Every operation failing once: the same call again succeeds, and the file is the same. */
static void failed_writes(void **state)
{
    (void)state;
    static uint8_t big[H5_WRITER_BUFFER * 2], have[H5_WRITER_BUFFER * 5];
    memset(big, 7, sizeof big);
    for (int mode = T_IO_FAIL; mode <= T_IO_SHORT; mode++) {
        for (long k = 1;; k++) {
            h5_io *io;
            h5_writer *w;
            h5_error err;
            uint64_t at, failures = 0;
            h5_error_clear(&err);
            assert_int_equal(h5_io_memory(NULL, 0, &io, NULL), H5_OK);
            t_io *f = t_io_new(io);
            f->mode = mode;
            f->fail_at = k;
            assert_int_equal(h5_writer_new(&f->io, 48, &w, NULL), H5_OK);
            const size_t sizes[] = {100,
                                    H5_WRITER_BUFFER / 3,
                                    H5_WRITER_BUFFER / 3,
                                    H5_WRITER_BUFFER / 3,
                                    H5_WRITER_BUFFER,
                                    50};
            for (size_t i = 0; i < 6; i++) {
                uint64_t before = h5_writer_eof(w);
                int rc = h5_writer_append(w, big, sizes[i], 64, &at, &err);
                if (rc != H5_OK) {
                    failures++;
                    assert_int_equal(rc, H5_IO);
                    assert_true(h5_writer_eof(w) == before && at == 0);
                    i--;
                }
            }
            for (int rc = H5_IO; rc != H5_OK; failures += rc != H5_OK)
                rc = h5_writer_flush(w, NULL);
            uint64_t eof = h5_writer_eof(w), size;
            assert_int_equal(io->size(io, &size, NULL), H5_OK);
            assert_true(size == eof);
            assert_int_equal(io->read(io, 48, have, (size_t)eof - 48, NULL), H5_OK);
            uint64_t where = 64;
            for (size_t i = 0; i < 6; i++) {
                assert_memory_equal(have + where - 48, big, sizes[i]);
                where = (where + sizes[i] + 63) / 64 * 64;
            }
            long done = f->count;
            h5_writer_free(w);
            f->io.close(&f->io);
            if (done < k) {
                assert_int_equal(failures, 0);
                assert_true(k > 3);
                break;
            }
            assert_int_equal(failures, 1);
        }
    }
}

/* Small things leave in one write; nothing is written before the flush. */
static void one_write(void **state)
{
    (void)state;
    t_h5 t = {0};
    h5_io *io;
    h5_writer *w;
    uint64_t at;
    T_OK(&t, h5_io_memory(NULL, 0, &io, &t.err));
    t_io *counted = t_io_new(io);
    T_OK(&t, h5_writer_new(&counted->io, 48, &w, &t.err));
    for (int i = 0; i < 300; i++)
        T_OK(&t, h5_writer_append(w, "0123456789", 10, 8, &at, &t.err));
    assert_int_equal(counted->count, 0);
    T_OK(&t, h5_writer_flush(w, &t.err));
    assert_int_equal(counted->writes, 1);
    T_OK(&t, h5_writer_flush(w, &t.err));
    assert_int_equal(counted->writes, 1);
    h5_writer_free(w);
    counted->io.close(&counted->io);
}

/* A file that is longer than what was appended keeps its tail; one that is shorter grows. */
static void file_sizes(void **state)
{
    (void)state;
    t_h5 t = {0};
    h5_writer *w;
    uint64_t at, size;
    T_OK(&t, h5_io_memory(NULL, 0, &t.io, &t.err));
    T_OK(&t, h5_writer_new(t.io, 1000, &w, &t.err));
    T_OK(&t, h5_writer_flush(w, &t.err));
    T_OK(&t, t.io->size(t.io, &size, &t.err));
    assert_int_equal(size, 1000);
    h5_writer_free(w);
    T_OK(&t, h5_writer_new(t.io, 100, &w, &t.err));
    T_OK(&t, h5_writer_append(w, "abc", 3, 1, &at, &t.err));
    T_OK(&t, h5_writer_flush(w, &t.err));
    T_OK(&t, t.io->size(t.io, &size, &t.err));
    assert_int_equal(size, 1000);
    h5_writer_free(w);
    t.io->close(t.io);
}

static void bad_arguments(void **state)
{
    (void)state;
    t_h5 t;
    uint64_t at;
    h5_writer *w;
    t_h5_begin(&t);
    T_FAILS(&t, H5_MISUSE, "alignment 0", h5_writer_append(t.w, "a", 1, 0, &at, &t.err));
    T_FAILS(&t, H5_MISUSE, "alignment 3", h5_writer_append(t.w, "a", 1, 3, &at, &t.err));
    T_OK(&t, h5_writer_new(t.io, UINT64_MAX - 3, &w, &t.err));
    T_FAILS(&t, H5_MISUSE, "alignment", h5_writer_append(w, "a", 1, 8, &at, &t.err));
    T_FAILS(&t, H5_MISUSE, "appending", h5_writer_append(w, "a", 1, 1, &at, &t.err));
    h5_writer_free(w);
    t_h5_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(against_a_flat_array),
        cmocka_unit_test(failed_writes),
        cmocka_unit_test(one_write),
        cmocka_unit_test(file_sizes),
        cmocka_unit_test(bad_arguments),
    };
    return cmocka_run_group_tests_name("h5_writer", tests, NULL, NULL);
}
