/*
 * h5core_tool.c - hdf5core with every allocation and every I/O operation failing in turn
 *
 * Writing and reading a file are repeated with the k-th request failing, k = 1, 2, 3, ..., until
 * they succeed without reaching it. Each failure must come back with its own code and a text, leave
 * nothing allocated, and never a value that was not written. A file whose writing failed must be as
 * valid as before.
 *
 * SPDX-License-Identifier: MIT
 */
#include "t_h5.h"
#include "t_alloc.h"
#include "t_h5_sample.h"
#include "t_io.h"

/* Allocations of the library go through `a` until NULL is set. */
static void hook(t_alloc *a)
{
    h5_allocator h = {t_alloc_get, t_alloc_resize, t_alloc_release, a};
    h5_set_allocator(a ? &h : NULL);
}

/* A good file in memory; the caller closes it. */
static h5_io *good_file(void)
{
    h5_io *io;
    h5_error err;
    h5_error_clear(&err);
    assert_int_equal(h5_io_memory(NULL, 0, &io, &err), H5_OK);
    if (t_sample_write(io, &err) != H5_OK)
        fail_msg("%s", err.text);
    return io;
}

static void allocations_of_reading(void **state)
{
    (void)state;
    h5_io *io = good_file();
    t_alloc a = {0};
    t_sample s;
    hook(&a);
    for (a.fail_at = 1;; a.fail_at++) {
        h5_error err;
        h5_error_clear(&err);
        a.count = 0;
        int rc = t_sample_read(io, &s, &err);
        assert_int_equal(a.live, 0);
        assert_int_equal(s.wrong, 0);
        if (a.count < a.fail_at) {
            assert_int_equal(rc, H5_OK);
            assert_int_equal(s.read, 6);
            break;
        }
        assert_int_equal(rc, H5_NOMEM);
        assert_int_equal(err.code, H5_NOMEM);
        assert_true(strlen(err.text) > 0);
        assert_true(s.read < 6);
    }
    assert_true(a.fail_at > 50);
    hook(NULL);
    io->close(io);
}

static void allocations_of_writing(void **state)
{
    (void)state;
    t_alloc a = {0};
    hook(&a);
    long k = 0, reached = 1;
    while (reached) {
        h5_io *io = NULL;
        h5_error err;
        t_sample s;
        h5_error_clear(&err);
        a.count = 0;
        a.fail_at = ++k;
        int rc = h5_io_memory(NULL, 0, &io, &err);
        if (rc == H5_OK)
            rc = t_sample_write(io, &err);
        reached = a.count >= k;
        a.fail_at = 0;
        assert_int_equal(rc, reached ? H5_NOMEM : H5_OK);
        assert_int_equal(err.code, rc);
        if (!reached)
            assert_int_equal(t_sample_read(io, &s, &err), H5_OK);
        if (io)
            io->close(io);
        assert_int_equal(a.live, 0);
    }
    assert_true(k > 20);
    hook(NULL);
}

static void reads_that_fail(void **state)
{
    (void)state;
    t_io *io = t_io_new(good_file());
    for (io->mode = T_IO_FAIL; io->mode <= T_IO_CUT; io->mode++) {
        for (io->fail_at = 1;; io->fail_at++) {
            h5_error err;
            t_sample s;
            t_alloc a = {0};
            hook(&a);
            h5_error_clear(&err);
            io->count = io->dead = 0;
            int rc = t_sample_read(&io->io, &s, &err);
            assert_int_equal(a.live, 0);
            hook(NULL);
            assert_int_equal(s.wrong, 0);
            if (io->count < io->fail_at) {
                assert_int_equal(rc, H5_OK);
                break;
            }
            assert_int_equal(rc, io->mode == T_IO_SHORT ? H5_FORMAT : H5_IO);
            assert_string_equal(err.text, "injected failure");
        }
        assert_true(io->fail_at > 30);
    }
    io->io.close(&io->io);
}

/* Appends a second version and flips to it, as far as the io lets it. *flip: it came to the 48
** bytes. */
static int second_version(h5_io *io, int *flip, h5_error *err)
{
    uint8_t super[H5_SUPERBLOCK_BYTES];
    h5_file *f;
    h5_writer *w;
    uint64_t root = 0;
    *flip = 0;
    int rc = h5_file_open(io, &f, err);
    if (rc != H5_OK)
        return rc;
    rc = h5_writer_new(io, h5_file_eof(f), &w, err);
    h5_file_close(f);
    if (rc != H5_OK)
        return rc;
    rc = t_sample_write_all(w, &root, err);
    if (rc == H5_OK)
        rc = h5_writer_flush(w, err);
    if (rc == H5_OK)
        rc = io->sync(io, err);
    h5_superblock_pack(root, h5_writer_eof(w), super);
    h5_writer_free(w);
    if (rc != H5_OK)
        return rc;
    *flip = 1;
    rc = io->write(io, 0, super, sizeof super, err);
    return rc == H5_OK ? io->sync(io, err) : rc;
}

/* The sample must be readable, but for a superblock that was torn in mid-write. */
static void still_good(h5_io *io, int torn)
{
    h5_error err;
    t_sample s;
    h5_error_clear(&err);
    int rc = t_sample_read(io, &s, &err);
    if (torn && rc == H5_FORMAT && strstr(err.text, "superblock: checksum"))
        return;
    if (rc != H5_OK)
        fail_msg("%s", err.text);
    assert_int_equal(s.read, 6);
    assert_int_equal(s.wrong, 0);
}

/* Whatever fails, the first version or the second can be read, also from what a disk may hold after
** a power failure. */
static void writes_that_fail(void **state)
{
    (void)state;
    t_rng r = t_rng_start(99);
    for (int mode = T_IO_FAIL; mode <= T_IO_CUT; mode++) {
        long k = 0, reached = 1;
        while (reached) {
            h5_error err;
            int flip;
            h5_io *plain = good_file();
            t_io *io = t_io_new(plain);
            h5_error_clear(&err);
            io->mode = mode;
            io->fail_at = ++k + 1; // the first operation is the read of the old superblock
            int rc = second_version(&io->io, &flip, &err);
            reached = io->count >= io->fail_at;
            assert_int_equal(rc, reached ? H5_IO : H5_OK);
            assert_int_equal(err.code, rc);
            int torn = flip && mode != T_IO_FAIL && reached;
            still_good(plain, torn);
            for (int crash = 0; crash < 20; crash++) {
                size_t n;
                h5_io *after;
                unsigned char *bytes = t_io_crash(io, &r, &n);
                assert_int_equal(h5_io_memory(bytes, n, &after, &err), H5_OK);
                still_good(after, torn);
                after->close(after);
                free(bytes);
            }
            io->io.close(&io->io);
        }
        assert_int_equal(k, 5); // write, sync, write, sync, and the round in which nothing fails
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocations_of_reading), cmocka_unit_test(allocations_of_writing),
        cmocka_unit_test(reads_that_fail), cmocka_unit_test(writes_that_fail)};
    return cmocka_run_group_tests_name("h5core faults", tests, NULL, NULL);
}
