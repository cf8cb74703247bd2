/*
 * t_h5_io_bytes.c - files in memory and mapped files, read without a copy
 *
 * SPDX-License-Identifier: MIT
 */
#include "t_h5.h"
#include "t_h5_sample.h"

#include <unistd.h>

enum { ROWS = 40 };

/* A file of one dataset of 8-byte integers, contiguous or in chunks; its bytes. */
static uint8_t *make_file(int chunked, size_t *n)
{
    t_h5 t;
    uint64_t rows = ROWS, at;
    uint32_t chunk = ROWS;
    int64_t v[ROWS];
    h5_dataset_spec d = {.type = t_h5_type('i', 8), .rank = 1, .dims = &rows, .maxdims = &rows};
    for (int i = 0; i < ROWS; i++)
        v[i] = 1000 + i;
    t_h5_begin(&t);
    if (chunked) {
        d.chunk = &chunk;
        at = t_h5_chunked(&t, &d, v, 0);
    } else {
        d.maxdims = NULL;
        d.addr = t_h5_bytes(&t, v, sizeof v);
        T_OK(&t, h5_write_dataset(t.w, &d, &at, &t.err));
    }
    t_h5_open(&t, t_h5_root(&t, "x", at));
    *n = (size_t)h5_file_eof(t.f);
    uint8_t *bytes = malloc(*n);
    assert_non_null(bytes);
    T_OK(&t, t.io->read(t.io, 0, bytes, *n, &t.err));
    t_h5_end(&t);
    return bytes;
}

/* Every structure that a store writes reads the same from bytes in place. */
static void everything_in_place(void **state)
{
    (void)state;
    t_h5 t = {0};
    t_sample seen;
    h5_io *made, *io;
    uint64_t n;
    T_OK(&t, h5_io_memory(NULL, 0, &made, &t.err));
    T_OK(&t, t_sample_write(made, &t.err));
    T_OK(&t, made->size(made, &n, &t.err));
    uint8_t *bytes = malloc((size_t)n);
    T_OK(&t, made->read(made, 0, bytes, (size_t)n, &t.err));
    made->close(made);
    T_OK(&t, h5_io_bytes(bytes, (size_t)n, &io, &t.err));
    T_OK(&t, t_sample_read(io, &seen, &t.err));
    assert_int_equal(seen.wrong, 0);
    assert_int_equal(seen.read, 6);
    io->close(io);
    // Cut off anywhere it is an error, and nothing behind the end is touched.
    for (size_t cut = 0; cut < n; cut += 13) {
        uint8_t *part = malloc(cut ? cut : 1);
        assert_non_null(part);
        memcpy(part, bytes, cut);
        T_OK(&t, h5_io_bytes(part, cut, &io, &t.err));
        h5_error_clear(&t.err);
        assert_int_equal(t_sample_read(io, &seen, &t.err), H5_FORMAT);
        io->close(io);
        free(part);
    }
    free(bytes);
}

static void same_view(t_h5 *t, const uint8_t *base, size_t n)
{
    h5_object *o;
    const void *p;
    size_t bytes;
    T_OK(t, h5_file_open(t->io, &t->f, &t->err));
    T_OK(t, h5_object_find(t->f, "/x", &o, &t->err));
    T_OK(t, h5_dataset_view(t->f, o, &p, &bytes, &t->err));
    assert_int_equal(bytes, ROWS * 8);
    if (base) { // not a copy
        assert_true((const uint8_t *)p > base && (const uint8_t *)p + bytes <= base + n);
    }
    for (int i = 0; i < ROWS; i++)
        assert_int_equal(((const int64_t *)p)[i], 1000 + i);
    h5_object_close(o);
    h5_file_close(t->f);
    t->io->close(t->io);
}

static void views(void **state)
{
    (void)state;
    t_h5 t = {0};
    size_t n;
    uint8_t *bytes = make_file(0, &n);
    T_OK(&t, h5_io_bytes(bytes, n, &t.io, &t.err));
    same_view(&t, bytes, n);
    char path[] = "/tmp/t_h5_io_bytes.XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, bytes, n) == (ssize_t)n);
    close(fd);
    T_OK(&t, h5_io_mapped(path, &t.io, &t.err));
    same_view(&t, NULL, n);
    unlink(path);
    T_FAILS(&t, H5_IO, "No such file", h5_io_mapped(path, &t.io, &t.err));
    assert_null(t.io);
    free(bytes);
}

static void no_view(h5_io *io, const char *why)
{
    t_h5 t = {0};
    h5_object *o;
    const void *p = &t;
    size_t bytes = 1;
    T_OK(&t, h5_file_open(io, &t.f, &t.err));
    T_OK(&t, h5_object_find(t.f, "/x", &o, &t.err));
    T_FAILS(&t, H5_UNSUPPORTED, why, h5_dataset_view(t.f, o, &p, &bytes, &t.err));
    assert_null(p);
    assert_int_equal(bytes, 0);
    h5_object_close(o);
    T_OK(&t, h5_object_find(t.f, "/", &o, &t.err));
    T_FAILS(&t, H5_MISUSE, "not a dataset", h5_dataset_view(t.f, o, &p, &bytes, &t.err));
    h5_object_close(o);
    h5_file_close(t.f);
    io->close(io);
}

static void what_has_no_view(void **state)
{
    (void)state;
    t_h5 t = {0};
    size_t n;
    h5_io *io;
    uint8_t *bytes = make_file(0, &n);
    T_OK(&t, h5_io_memory(bytes, n, &io, &t.err)); // may grow and move
    no_view(io, "not in memory");
    free(bytes);
    bytes = make_file(1, &n);
    T_OK(&t, h5_io_bytes(bytes, n, &io, &t.err));
    no_view(io, "chunked");
    free(bytes);
}

static void only_read(void **state)
{
    (void)state;
    t_h5 t = {0};
    h5_io *io;
    const void *map;
    uint64_t size;
    char buf[8];
    T_OK(&t, h5_io_bytes("12345678", 8, &io, &t.err));
    T_OK(&t, io->size(io, &size, &t.err));
    assert_int_equal(size, 8);
    T_FAILS(&t, H5_MISUSE, "only read", io->write(io, 0, "x", 1, &t.err));
    T_FAILS(&t, H5_MISUSE, "only read", io->truncate(io, 3, &t.err));
    T_FAILS(&t, H5_MISUSE, "only read", io->sync(io, &t.err));
    T_FAILS(&t, H5_FORMAT, "the file ends", io->read(io, 4, buf, 5, &t.err));
    T_FAILS(&t, H5_FORMAT, "the file ends", io->read(io, UINT64_MAX, buf, 5, &t.err));
    T_OK(&t, io->read(io, 4, buf, 4, &t.err));
    assert_memory_equal(buf, "5678", 4);
    T_OK(&t, io->map(io, 0, 8, &map, &t.err));
    assert_memory_equal(map, "12345678", 8);
    io->unmap(io, map, 8);
    T_FAILS(&t, H5_MISUSE, "mapping", io->map(io, 0, 9, &map, &t.err));
    assert_null(map);
    io->close(io);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_in_place),
        cmocka_unit_test(views),
        cmocka_unit_test(what_has_no_view),
        cmocka_unit_test(only_read),
    };
    return cmocka_run_group_tests_name("h5_io_bytes", tests, NULL, NULL);
}
