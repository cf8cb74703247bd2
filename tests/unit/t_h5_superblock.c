/*
 * t_h5_superblock.c - the 48 bytes, and opening files by them
 *
 * SPDX-License-Identifier: MIT
 */
#include "t_h5.h"

#include "h5_cur.h"

/* Corrects the checksum after a change. */
static void sign(uint8_t s[H5_SUPERBLOCK_BYTES])
{
    h5_set32(s + 44, h5_lookup3(s, 44, 0));
}

static void pack_and_unpack(void **state)
{
    (void)state;
    t_h5 t = {0};
    uint8_t s[H5_SUPERBLOCK_BYTES];
    uint64_t root, eof;
    static const uint8_t head[12] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n', 2, 8, 8, 0};
    h5_superblock_pack(0x1122334455667788, 0x2122334455667788, s);
    assert_memory_equal(s, head, sizeof head);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(s[12 + i], 0);
        assert_int_equal(s[20 + i], 0xFF);
    }
    T_OK(&t, h5_superblock_unpack(s, &root, &eof, &t.err));
    assert_true(root == 0x1122334455667788 && eof == 0x2122334455667788);
    s[8] = 3;
    s[11] = 5; // the marks of a running writer
    sign(s);
    T_OK(&t, h5_superblock_unpack(s, &root, &eof, &t.err));
}

/* Each single changed bit is noticed. */
static void every_bit(void **state)
{
    (void)state;
    uint8_t s[H5_SUPERBLOCK_BYTES];
    uint64_t root, eof;
    h5_superblock_pack(48, 1000, s);
    for (int bit = 0; bit < H5_SUPERBLOCK_BYTES * 8; bit++) {
        s[bit / 8] ^= (uint8_t)(1 << bit % 8);
        int rc = h5_superblock_unpack(s, &root, &eof, NULL);
        assert_true(rc == H5_FORMAT || rc == H5_UNSUPPORTED);
        assert_true(root == 0 && eof == 0);
        s[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

static void refused(void **state)
{
    (void)state;
    static const struct {
        int at;
        uint8_t value;
        int code;
        const char *text;
    } cases[] = {
        {1, 'X', H5_FORMAT, "no HDF5 signature"},    {8, 0, H5_UNSUPPORTED, "version 0"},
        {8, 1, H5_UNSUPPORTED, "version 1"},         {8, 4, H5_UNSUPPORTED, "version 4"},
        {9, 5, H5_UNSUPPORTED, "offsets of 5"},      {10, 2, H5_UNSUPPORTED, "lengths of 2"},
        {13, 2, H5_UNSUPPORTED, "base address 512"}, {37, 0xFF, H5_FORMAT, "root at"},
    };
    t_h5 t = {0};
    uint64_t root, eof;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t s[H5_SUPERBLOCK_BYTES];
        h5_superblock_pack(48, 1000, s);
        s[cases[i].at] = cases[i].value;
        sign(s);
        T_FAILS(&t, cases[i].code, cases[i].text, h5_superblock_unpack(s, &root, &eof, &t.err));
    }
    uint8_t s[H5_SUPERBLOCK_BYTES];
    h5_superblock_pack(10, 47, s);
    T_FAILS(&t, H5_FORMAT, "end of file 47", h5_superblock_unpack(s, &root, &eof, &t.err));
}

static void opening(void **state)
{
    (void)state;
    t_h5 t;
    t_h5_begin(&t);
    uint64_t root;
    T_OK(&t, h5_write_group(t.w, NULL, 0, NULL, 0, &root, &t.err));
    t_h5_open(&t, root);
    assert_true(h5_file_root(t.f) == root);
    assert_true(h5_file_eof(t.f) == h5_writer_eof(t.w));
    // The same by bytes that the caller holds, while the file holds others.
    uint8_t s[H5_SUPERBLOCK_BYTES], junk[H5_SUPERBLOCK_BYTES] = {0};
    h5_file *f;
    h5_object *o;
    T_OK(&t, t.io->read(t.io, 0, s, sizeof s, &t.err));
    T_OK(&t, t.io->write(t.io, 0, junk, sizeof junk, &t.err));
    T_FAILS(&t, H5_FORMAT, "signature", h5_file_open(t.io, &f, &t.err));
    assert_null(f);
    T_OK(&t, h5_file_open_at(t.io, s, &f, &t.err));
    T_OK(&t, h5_object_find(f, "/", &o, &t.err));
    assert_int_equal(h5_object_kind(o), H5_KIND_GROUP);
    h5_object_close(o);
    h5_file_close(f);
    // Cut off by one byte it is not opened; one byte longer it is.
    uint64_t eof = h5_file_eof(t.f);
    T_OK(&t, t.io->write(t.io, 0, s, sizeof s, &t.err));
    T_OK(&t, t.io->truncate(t.io, eof - 1, &t.err));
    T_FAILS(&t, H5_FORMAT, "truncated file", h5_file_open(t.io, &f, &t.err));
    T_OK(&t, t.io->truncate(t.io, eof + 1, &t.err));
    T_OK(&t, h5_file_open(t.io, &f, &t.err));
    assert_true(h5_file_eof(f) == eof);
    h5_file_close(f);
    t_h5_end(&t);
}

static void too_short(void **state)
{
    (void)state;
    t_h5 t = {0};
    h5_file *f;
    h5_io *io;
    uint8_t s[H5_SUPERBLOCK_BYTES];
    h5_superblock_pack(48, 1000, s);
    T_OK(&t, h5_io_memory(s, 47, &io, &t.err));
    T_FAILS(&t, H5_FORMAT, "only 47 bytes", h5_file_open(io, &f, &t.err));
    io->close(io);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pack_and_unpack), cmocka_unit_test(every_bit), cmocka_unit_test(refused),
        cmocka_unit_test(opening),         cmocka_unit_test(too_short),
    };
    return cmocka_run_group_tests_name("h5_superblock", tests, NULL, NULL);
}
