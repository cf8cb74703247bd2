/*
 * t_h5_meta.c - blocks of metadata: the same bytes as without them, in fewer reads, also for
 * several threads
 *
 * SPDX-License-Identifier: MIT
 */
#include "t_h5.h"
#include "t_io.h"
#include "t_rng.h"

#include <pthread.h>

#include "h5_meta.h"

enum { BYTES = 1 << 20 };

static unsigned char content[BYTES];

static t_io *file_of_bytes(t_h5 *t)
{
    t_rng r = t_rng_start(41);
    t_rng_fill(&r, content, sizeof content);
    memset(t, 0, sizeof *t);
    T_OK(t, h5_io_memory(content, sizeof content, &t->io, &t->err));
    return t_io_new(t->io);
}

static h5_meta *new_meta(void)
{
    h5_meta *m = h5_calloc(1, sizeof *m);
    assert_non_null(m);
    atomic_flag_clear(&m->busy);
    return m;
}

static void free_meta(h5_meta *m)
{
    h5_meta_free(m);
    h5_free(m);
}

/* Anywhere, of any length, up to a file's end that is not a multiple of anything. */
static void any_reads(void **state)
{
    (void)state;
    t_h5 t;
    t_io *io = file_of_bytes(&t);
    h5_meta *m = new_meta();
    t_rng r = t_rng_start(42);
    const uint64_t end = BYTES - 77;
    unsigned char buf[40000];
    for (int i = 0; i < 20000; i++) {
        uint64_t off = t_rng_below(&r, i % 3 ? end : 50000);
        size_t n = (size_t)t_rng_below(&r, i % 50 ? 600 : sizeof buf);
        n = n < end - off ? n : (size_t)(end - off);
        T_OK(&t, h5_meta_read(m, &io->io, off, buf, n, end, &t.err));
        assert_memory_equal(buf, content + off, n);
    }
    assert_true(io->reads < 20000);
    free_meta(m);
    io->io.close(&io->io);
}

/* One small read behind the other: blocks grow, and each byte is read about once. */
static void one_after_the_other(void **state)
{
    (void)state;
    t_h5 t;
    t_io *io = file_of_bytes(&t);
    h5_meta *m = new_meta();
    unsigned char buf[100];
    for (uint64_t off = 0; off + sizeof buf <= BYTES; off += sizeof buf) {
        T_OK(&t, h5_meta_read(m, &io->io, off, buf, sizeof buf, BYTES, &t.err));
        assert_memory_equal(buf, content + off, sizeof buf);
    }
    assert_true(io->reads <= 2 * BYTES / H5_META_MOST);
    assert_true(io->read_bytes < 2 * BYTES);
    free_meta(m);
    io->io.close(&io->io);
}

/* Reads far from one another bring a page each, and two when they lie across its edge. */
static void far_apart(void **state)
{
    (void)state;
    t_h5 t;
    t_io *io = file_of_bytes(&t);
    h5_meta *m = new_meta();
    unsigned char buf[512];
    for (int i = 7; i > 0; i--) {
        T_OK(&t, h5_meta_read(m, &io->io, (uint64_t)i * 100000, buf, 512, BYTES, &t.err));
        assert_memory_equal(buf, content + i * 100000, 512);
    }
    assert_int_equal(io->reads, 7);
    assert_true(io->read_bytes <= 7 * 2 * H5_META_LEAST);
    // The end of the file is where reading ends.
    T_OK(&t, h5_meta_read(m, &io->io, BYTES - 5, buf, 5, BYTES, &t.err));
    assert_memory_equal(buf, content + BYTES - 5, 5);
    free_meta(m);
    io->io.close(&io->io);
}

/* A small file is one read. */
static void small_file(void **state)
{
    (void)state;
    t_h5 t;
    t_io *io = file_of_bytes(&t);
    h5_meta *m = new_meta();
    unsigned char buf[512];
    for (uint64_t off = H5_META_SMALL - sizeof buf; off > sizeof buf; off -= sizeof buf) {
        T_OK(&t, h5_meta_read(m, &io->io, off, buf, sizeof buf, H5_META_SMALL, &t.err));
        assert_memory_equal(buf, content + off, sizeof buf);
    }
    assert_int_equal(io->reads, 1);
    assert_int_equal(io->read_bytes, H5_META_SMALL);
    free_meta(m);
    io->io.close(&io->io);
}

/* What could not be read is not taken for read. */
static void failing(void **state)
{
    (void)state;
    t_h5 t;
    t_io *io = file_of_bytes(&t);
    h5_meta *m = new_meta();
    unsigned char buf[64];
    for (int mode = T_IO_FAIL; mode <= T_IO_SHORT; mode++) {
        io->mode = mode;
        io->fail_at = io->count + 1;
        uint64_t off = mode == T_IO_FAIL ? 70 : 300000;
        T_FAILS(&t, mode == T_IO_FAIL ? H5_IO : H5_FORMAT, "",
                h5_meta_read(m, &io->io, off, buf, sizeof buf, BYTES, &t.err));
        T_OK(&t, h5_meta_read(m, &io->io, off, buf, sizeof buf, BYTES, &t.err));
        assert_memory_equal(buf, content + off, sizeof buf);
    }
    // While another reads through the blocks they are left alone.
    assert_false(atomic_flag_test_and_set(&m->busy));
    long before = io->reads;
    T_OK(&t, h5_meta_read(m, &io->io, 70, buf, sizeof buf, BYTES, &t.err));
    assert_memory_equal(buf, content + 70, sizeof buf);
    assert_int_equal(io->reads, before + 1);
    atomic_flag_clear(&m->busy);
    free_meta(m);
    io->io.close(&io->io);
}

typedef struct reader {
    h5_meta *m;
    h5_io *io;
    uint64_t seed;
    int wrong;
} reader;

static void *read_many(void *arg)
{
    reader *r = arg;
    t_rng rng = {r->seed};
    unsigned char buf[256];
    for (int i = 0; i < 5000; i++) {
        uint64_t off = t_rng_below(&rng, BYTES - sizeof buf);
        int rc = h5_meta_read(r->m, r->io, off, buf, sizeof buf, BYTES, NULL);
        r->wrong += rc != H5_OK || memcmp(buf, content + off, sizeof buf) != 0;
    }
    return NULL;
}

static void several_threads(void **state)
{
    (void)state;
    t_h5 t;
    t_io *io = file_of_bytes(&t);
    h5_meta *m = new_meta();
    pthread_t thread[4];
    reader r[4];
    for (int i = 0; i < 4; i++) {
        r[i] = (reader){m, t.io, (uint64_t)i, 0};
        assert_int_equal(pthread_create(&thread[i], NULL, read_many, &r[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(thread[i], NULL);
        assert_int_equal(r[i].wrong, 0);
    }
    free_meta(m);
    io->io.close(&io->io);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_reads),       cmocka_unit_test(one_after_the_other),
        cmocka_unit_test(far_apart),       cmocka_unit_test(failing),
        cmocka_unit_test(several_threads), cmocka_unit_test(small_file),
    };
    return cmocka_run_group_tests_name("h5_meta", tests, NULL, NULL);
}
