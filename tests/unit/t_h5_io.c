/*
 * t_h5_io.c - files and memory behind h5_io: the same promises for both
 *
 * SPDX-License-Identifier: MIT
 */
#include "t_h5.h"
#include "t_io.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/t_h5_io.XXXXXX";

static const char *path_of(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path_of("a"));
    unlink(path_of("fifo"));
    return rmdir(folder);
}

/* What every io promises. */
static void promises(h5_io *io)
{
    t_h5 t = {0};
    uint8_t buf[64];
    uint64_t size;
    const void *map, *after;
    T_OK(&t, io->size(io, &size, &t.err));
    assert_int_equal(size, 0);
    T_FAILS(&t, H5_FORMAT, "the file ends", io->read(io, 0, buf, 1, &t.err));
    T_OK(&t, io->read(io, 0, buf, 0, &t.err));
    // A gap that a write leaves is zeros.
    T_OK(&t, io->write(io, 100, "abc", 3, &t.err));
    T_OK(&t, io->size(io, &size, &t.err));
    assert_int_equal(size, 103);
    T_OK(&t, io->read(io, 98, buf, 5, &t.err));
    assert_memory_equal(buf, "\0\0abc", 5);
    T_FAILS(&t, H5_FORMAT, "the file ends", io->read(io, 99, buf, 5, &t.err));
    // Cut off and made longer again, the bytes are gone.
    T_OK(&t, io->truncate(io, 101, &t.err));
    T_OK(&t, io->truncate(io, 103, &t.err));
    T_OK(&t, io->read(io, 100, buf, 3, &t.err));
    assert_memory_equal(buf, "a\0\0", 3);
    T_OK(&t, io->sync(io, &t.err));
    // A mapping sees later writes, also when the file has grown far beyond what it was.
    T_OK(&t, io->map(io, 0, 103, &map, &t.err));
    T_OK(&t, io->truncate(io, 1 << 20, &t.err));
    T_OK(&t, io->write(io, 101, "xy", 2, &t.err));
    assert_memory_equal((const char *)map + 100, "axy", 3);
    T_OK(&t, io->map(io, 65536, 1000, &after, &t.err));
    T_OK(&t, io->write(io, 65536 + 999, "z", 1, &t.err));
    assert_int_equal(((const uint8_t *)after)[999], 'z');
    io->unmap(io, map, 103);
    assert_int_equal(((const uint8_t *)after)[999], 'z');
    io->unmap(io, after, 1000);
    T_FAILS(&t, H5_MISUSE, "mapping", io->map(io, 4096, 1, &map, &t.err));
    T_FAILS(&t, H5_MISUSE, "mapping", io->map(io, 0, 0, &map, &t.err));
    T_FAILS(&t, H5_MISUSE, "mapping", io->map(io, 0, (1 << 20) + 1, &map, &t.err));
    T_FAILS(&t, H5_MISUSE, "mapping", io->map(io, 1 << 21, 1, &map, &t.err));
    assert_null(map);
    T_FAILS(&t, H5_FORMAT, "", io->read(io, UINT64_MAX - 1, buf, 4, &t.err));
    T_FAILS(&t, H5_MISUSE, "", io->write(io, UINT64_MAX - 1, buf, 4, &t.err));
}

static void in_memory(void **state)
{
    (void)state;
    t_h5 t = {0};
    h5_io *io;
    uint8_t buf[5];
    T_OK(&t, h5_io_memory(NULL, 0, &io, &t.err));
    promises(io);
    assert_int_equal(h5_io_fd(io), -1);
    io->close(io);
    T_OK(&t, h5_io_memory("hello", 5, &io, &t.err));
    T_OK(&t, io->read(io, 0, buf, 5, &t.err));
    assert_memory_equal(buf, "hello", 5);
    io->close(io);
}

static void in_a_file(void **state)
{
    (void)state;
    t_h5 t = {0};
    h5_io *io;
    T_OK(&t, h5_io_file(path_of("a"), H5_IO_WRITE | H5_IO_CREATE | H5_IO_EXCL, &io, &t.err));
    promises(io);
    assert_true(h5_io_fd(io) > 2);
    assert_true(fcntl(h5_io_fd(io), F_GETFD) & FD_CLOEXEC);
    io->close(io);
    T_FAILS(&t, H5_IO, path_of("a"),
            h5_io_file(path_of("a"), H5_IO_WRITE | H5_IO_CREATE | H5_IO_EXCL, &io, &t.err));
    assert_int_equal(t.err.os_errno, EEXIST);
    T_OK(&t, h5_io_file(path_of("a"), H5_IO_READ, &io, &t.err));
    T_FAILS(&t, H5_IO, "write", io->write(io, 0, "a", 1, &t.err));
    assert_int_equal(t.err.os_errno, EBADF);
    T_FAILS(&t, H5_IO, "size", io->truncate(io, 0, &t.err));
    io->close(io);
    unlink(path_of("a"));
}

static void counted(void **state)
{
    (void)state;
    t_h5 t = {0};
    h5_io *io;
    T_OK(&t, h5_io_memory(NULL, 0, &io, &t.err));
    t_io *wrapped = t_io_new(io);
    promises(&wrapped->io);
    assert_int_equal(wrapped->syncs, 1);
    wrapped->io.close(&wrapped->io);
}

static void what_is_no_file(void **state)
{
    (void)state;
    t_h5 t = {0};
    h5_io *io;
    T_FAILS(&t, H5_IO, "No such file", h5_io_file(path_of("none"), H5_IO_READ, &io, &t.err));
    assert_int_equal(t.err.os_errno, ENOENT);
    assert_null(io);
    T_FAILS(&t, H5_IO, "not a regular file", h5_io_file(folder, H5_IO_READ, &io, &t.err));
    assert_int_equal(t.err.os_errno, EISDIR);
    T_FAILS(&t, H5_IO, "not a regular file", h5_io_file("/dev/null", H5_IO_READ, &io, &t.err));
    // A FIFO that nobody writes: opening it must not wait.
    assert_int_equal(mkfifo(path_of("fifo"), 0600), 0);
    T_FAILS(&t, H5_IO, "not a regular file", h5_io_file(path_of("fifo"), H5_IO_READ, &io, &t.err));
    T_FAILS(&t, H5_IO, "not a regular file", h5_io_file(path_of("fifo"), H5_IO_WRITE, &io, &t.err));
    T_FAILS(&t, H5_MISUSE, "flags", h5_io_file(path_of("a"), H5_IO_CREATE, &io, &t.err));
    T_FAILS(&t, H5_MISUSE, "flags",
            h5_io_file(path_of("a"), H5_IO_WRITE | H5_IO_EXCL, &io, &t.err));
    T_FAILS(&t, H5_MISUSE, "flags", h5_io_file(NULL, H5_IO_READ, &io, &t.err));
}

/* The harness itself: what a failing, a shortened and a cut-off write leave behind. */
static void failing_io(void **state)
{
    (void)state;
    t_h5 t = {0};
    for (int mode = T_IO_FAIL; mode <= T_IO_CUT; mode++) {
        h5_io *io;
        uint8_t buf[4] = {0};
        T_OK(&t, h5_io_memory("....", 4, &io, &t.err));
        t_io *f = t_io_new(io);
        f->mode = mode;
        f->fail_at = 2;
        T_OK(&t, f->io.write(&f->io, 0, "A", 1, &t.err));
        T_FAILS(&t, H5_IO, "injected", f->io.write(&f->io, 0, "BCDE", 4, &t.err));
        assert_int_equal(t.err.os_errno, EIO);
        assert_int_equal(f->io.write(&f->io, 3, "F", 1, NULL), mode == T_IO_CUT ? H5_IO : H5_OK);
        T_OK(&t, io->read(io, 0, buf, 4, &t.err));
        assert_memory_equal(buf,
                            mode == T_IO_FAIL    ? "A..F"
                            : mode == T_IO_SHORT ? "BC.F"
                                                 : "BC..",
                            4);
        f->io.close(&f->io);
    }
}

/* What was synced survives a crash; what was not may be there or not. */
static void crashed_io(void **state)
{
    (void)state;
    t_h5 t = {0};
    h5_io *io;
    t_rng r = t_rng_start(5);
    int lost = 0, kept = 0;
    T_OK(&t, h5_io_memory(NULL, 0, &io, &t.err));
    t_io *f = t_io_new(io);
    T_OK(&t, f->io.write(&f->io, 0, "safe", 4, &t.err));
    T_OK(&t, f->io.sync(&f->io, &t.err));
    T_OK(&t, f->io.write(&f->io, 4, "risk", 4, &t.err));
    for (int i = 0; i < 50; i++) {
        size_t n;
        unsigned char *file = t_io_crash(f, &r, &n);
        assert_true(n >= 4 && memcmp(file, "safe", 4) == 0);
        lost += n == 4;
        kept += n == 8 && memcmp(file + 4, "risk", 4) == 0;
        free(file);
    }
    assert_true(lost > 0 && kept > 0);
    f->io.close(&f->io);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_memory),  cmocka_unit_test(in_a_file),
        cmocka_unit_test(counted),    cmocka_unit_test(what_is_no_file),
        cmocka_unit_test(failing_io), cmocka_unit_test(crashed_io),
    };
    return cmocka_run_group_tests_name("h5_io", tests, make_folder, remove_folder);
}
