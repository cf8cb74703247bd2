/*
 * t_h5_ohdr.c - object headers: sizes at the borders of their width, continuation blocks, messages
 * nobody knows
 *
 * Headers that the writer of this library does not make are put together by hand.
 *
 * SPDX-License-Identifier: MIT
 */
#include "t_h5.h"
#include "t_io.h"

#include "h5_msg.h"
#include "h5_sum.h"

/* A header whose messages are exactly n bytes: one attribute-like message of a kind that means
** nothing. */
static void filler(h5_buf *b, size_t n)
{
    while (n > 0) {
        size_t body = n - 4 > 40000 ? 40000 : n - 4;
        size_t at = h5_ohdr_msg(b, 0x0D, 0);
        for (size_t i = 0; i < body; i++)
            h5_buf_u8(b, (unsigned)i);
        assert_int_equal(h5_ohdr_msg_end(b, at, NULL), H5_OK);
        n -= body + 4;
    }
}

static void border_sizes(void **state)
{
    (void)state;
    static const struct {
        size_t n;
        uint8_t flags;
    } cases[] = {{4, 0},    {254, 0},  {255, 0},   {256, 1},   {257, 1},   {2029, 1},  {2030, 1},
                 {2031, 1}, {2048, 1}, {65534, 1}, {65535, 1}, {65536, 2}, {65537, 2}, {200000, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        t_h5 t;
        h5_buf b = {0};
        uint64_t at;
        h5_ohdr oh;
        uint8_t head[6];
        t_h5_begin(&t);
        filler(&b, cases[i].n);
        assert_int_equal(b.n, cases[i].n);
        T_OK(&t, h5_ohdr_write(t.w, &b, &at, &t.err));
        t_h5_open(&t, at);
        T_OK(&t, t.io->read(t.io, at, head, sizeof head, &t.err));
        assert_memory_equal(head, "OHDR\2", 5);
        assert_int_equal(head[5], cases[i].flags);
        t_io *counted = t_io_new(t.io);
        t.f->io = &counted->io;
        T_OK(&t, h5_ohdr_read(t.f, at, &oh, &t.err));
        assert_true(counted->reads <= 2);
        size_t sum = 0;
        for (size_t k = 0; k < oh.nmsg; k++) {
            const h5_msg *m = &oh.msg[k];
            assert_int_equal(m->id, 0x0D);
            if (m->size > 0)
                assert_int_equal(m->body[m->size - 1], (uint8_t)(m->size - 1));
            sum += m->size + 4u;
        }
        assert_int_equal(sum, cases[i].n);
        h5_ohdr_free(&oh);
        h5_buf_free(&b);
        t.io = &counted->io;
        t_h5_end(&t);
    }
}

static void message_too_large(void **state)
{
    (void)state;
    t_h5 t = {0};
    h5_buf b = {0};
    size_t at = h5_ohdr_msg(&b, 0x0D, 0);
    assert_non_null(h5_buf_room(&b, 65535));
    T_OK(&t, h5_ohdr_msg_end(&b, at, &t.err));
    h5_buf_u8(&b, 0);
    T_FAILS(&t, H5_LIMIT, "H5_MESSAGE_BYTES_MAX", h5_ohdr_msg_end(&b, at, &t.err));
    h5_buf_free(&b);
}

/* The start of a header by hand: flags, and room for what they ask for. */
static void put_head(h5_buf *b, unsigned flags, size_t size)
{
    static const uint8_t extra[20] = {0};
    h5_buf_put(b, "OHDR\2", 5);
    h5_buf_u8(b, flags);
    h5_buf_put(b, extra, (flags & 0x20 ? 16u : 0) + (flags & 0x10 ? 4u : 0));
    h5_buf_uint(b, size, 1u << (flags & 3));
}

static void put_msg(h5_buf *b, unsigned id, unsigned flags, int order, const void *body, size_t n)
{
    h5_buf_u8(b, id);
    h5_buf_u16(b, (unsigned)n);
    h5_buf_u8(b, flags);
    if (order >= 0)
        h5_buf_u16(b, (unsigned)order);
    h5_buf_put(b, body, n);
}

/* Every combination of widths, times, phase change and creation order, with a gap at the end. */
static void all_flags(void **state)
{
    (void)state;
    for (unsigned flags = 0; flags < 64; flags++) {
        for (size_t gap = 0; gap < 4; gap++) {
            t_h5 t;
            h5_buf b = {0}, m = {0};
            h5_ohdr oh;
            t_h5_begin(&t);
            int order = flags & 4 ? 7 : -1;
            put_msg(&m, 0x0D, 0, order, "one", 3);
            put_msg(&m, H5_MSG_NIL, 0, order, "nothing", 7);
            put_msg(&m, 0x16, 1, order, "two..", 5);
            h5_buf_put(&m, "\0\0\0", gap);
            put_head(&b, flags, m.n);
            h5_buf_put(&b, m.p, m.n);
            h5_sum_put(&b, 0);
            uint64_t at = t_h5_bytes(&t, b.p, b.n);
            t_h5_open(&t, at);
            T_OK(&t, h5_ohdr_read(t.f, at, &oh, &t.err));
            assert_int_equal(oh.nmsg, 2);
            assert_memory_equal(oh.msg[0].body, "one", 3);
            assert_int_equal(oh.msg[1].id, 0x16);
            assert_int_equal(oh.msg[1].flags, 1);
            assert_memory_equal(oh.msg[1].body, "two..", 5);
            uint8_t there[5];
            T_OK(&t, t.io->read(t.io, oh.msg[1].addr, there, 5, &t.err));
            assert_memory_equal(there, "two..", 5);
            h5_ohdr_free(&oh);
            h5_buf_free(&b);
            h5_buf_free(&m);
            t_h5_end(&t);
        }
    }
}

/* A continuation block with n bytes of messages; gives its address. */
static uint64_t put_block(t_h5 *t, const h5_buf *m, uint64_t *bytes)
{
    h5_buf b = {0};
    h5_buf_put(&b, "OCHK", 4);
    h5_buf_put(&b, m->p, m->n);
    h5_sum_put(&b, 0);
    uint64_t at = t_h5_bytes(t, b.p, b.n);
    *bytes = b.n;
    h5_buf_free(&b);
    return at;
}

static void put_continuation(h5_buf *m, uint64_t addr, uint64_t bytes)
{
    uint8_t body[16];
    h5_set64(body, addr);
    h5_set64(body + 8, bytes);
    put_msg(m, H5_MSG_CONTINUATION, 0, -1, body, sizeof body);
}

/* A header over the messages in m, opened. */
static void open_header(t_h5 *t, const h5_buf *m)
{
    uint64_t at;
    T_OK(t, h5_ohdr_write(t->w, m, &at, &t->err));
    t_h5_open(t, at);
}

static void continued(void **state)
{
    (void)state;
    t_h5 t;
    h5_buf inner = {0}, middle = {0}, first = {0};
    uint64_t n;
    h5_ohdr oh;
    t_h5_begin(&t);
    put_msg(&inner, 0x0D, 0, -1, "c", 1);
    uint64_t at = put_block(&t, &inner, &n);
    put_msg(&middle, 0x0D, 0, -1, "b", 1);
    put_continuation(&middle, at, n);
    at = put_block(&t, &middle, &n);
    put_continuation(&first, at, n);
    put_msg(&first, 0x0D, 0, -1, "a", 1);
    open_header(&t, &first);
    T_OK(&t, h5_ohdr_read(t.f, h5_file_root(t.f), &oh, &t.err));
    assert_int_equal(oh.nmsg, 3);
    assert_int_equal(oh.ncontinued, 2);
    char text[4] = {(char)*oh.msg[0].body, (char)*oh.msg[1].body, (char)*oh.msg[2].body, 0};
    assert_string_equal(text, "abc");
    h5_ohdr_free(&oh);
    h5_buf_free(&inner);
    h5_buf_free(&middle);
    h5_buf_free(&first);
    t_h5_end(&t);
}

/* Blocks that lead back to themselves end by what a file of this size can hold. */
static void circle(void **state)
{
    (void)state;
    t_h5 t;
    h5_buf m = {0}, first = {0};
    uint64_t n;
    h5_ohdr oh;
    t_h5_begin(&t);
    uint64_t here = (h5_writer_eof(t.w) + 7) / 8 * 8;
    put_continuation(&m, here, 4 + 20 + 4);
    assert_true(put_block(&t, &m, &n) == here);
    put_continuation(&first, here, n);
    open_header(&t, &first);
    T_FAILS(&t, H5_FORMAT, "longer together than the file",
            h5_ohdr_read(t.f, h5_file_root(t.f), &oh, &t.err));
    h5_buf_free(&m);
    h5_buf_free(&first);
    t_h5_end(&t);
}

/* A long chain in a file that is large enough for it. */
static void too_many_blocks(void **state)
{
    (void)state;
    for (unsigned blocks = H5_OHDR_BLOCKS_MAX - 1; blocks <= H5_OHDR_BLOCKS_MAX; blocks++) {
        t_h5 t;
        h5_buf m = {0};
        uint64_t n = 0, at = 0;
        h5_ohdr oh;
        t_h5_begin(&t);
        for (unsigned i = 0; i < blocks; i++) {
            m.n = 0;
            if (i > 0)
                put_continuation(&m, at, n);
            at = put_block(&t, &m, &n);
        }
        m.n = 0;
        put_continuation(&m, at, n);
        open_header(&t, &m);
        if (blocks < H5_OHDR_BLOCKS_MAX) {
            T_OK(&t, h5_ohdr_read(t.f, h5_file_root(t.f), &oh, &t.err));
            h5_ohdr_free(&oh);
        } else {
            T_FAILS(&t, H5_LIMIT, "H5_OHDR_BLOCKS_MAX",
                    h5_ohdr_read(t.f, h5_file_root(t.f), &oh, &t.err));
        }
        h5_buf_free(&m);
        t_h5_end(&t);
    }
}

static void bad_continuations(void **state)
{
    (void)state;
    static const struct {
        uint64_t addr, bytes;
        const char *text;
    } cases[] = {
        {48, 7, "block of 7"},
        {48, 1 << 20, "longer together"},
        {H5_UNDEF, 20, "beyond the end"},
        {48, 20, "no signature"},
        {1 << 20, 20, "beyond the end"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        t_h5 t;
        h5_buf m = {0};
        h5_ohdr oh;
        uint8_t ground[64] = {0};
        t_h5_begin(&t);
        t_h5_bytes(&t, ground, sizeof ground);
        put_continuation(&m, cases[i].addr, cases[i].bytes);
        open_header(&t, &m);
        T_FAILS(&t, H5_FORMAT, cases[i].text, h5_ohdr_read(t.f, h5_file_root(t.f), &oh, &t.err));
        h5_buf_free(&m);
        t_h5_end(&t);
    }
}

/* Headers that are none. */
static void bad_headers(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
        int code;
        const char *text;
    } cases[] = {
        {"OHDX\2\0\0", 7, H5_FORMAT, "no signature"},
        {"\1\0\1\0", 4, H5_FORMAT, "no signature"},
        {"\1\0\0\0\1\0\0\0\10\0\0\0\0\0\0\0", 16, H5_FORMAT, "beyond the end"},
        {"\1\0\1\0\1\0\0\0\10\0\0\0\0\0\0\0\1\0\1\0\0\0\0\0", 24, H5_FORMAT, "run over the block"},
        {"OHDR\1\0\0", 7, H5_FORMAT, "version 1"},
        {"OHDR\2\100\0", 7, H5_FORMAT, "flags 40"},
        {"OHDR\2\0\377", 7, H5_FORMAT, "beyond the end"},
        {"OHDR\2\3\377\377\377\377\377\377\377\377", 14, H5_FORMAT, "size"},
        {"OHDR\2\3\0\0\0\0\0\0\0\20", 14, H5_FORMAT, "beyond the end"},
        {"OHDR\2\0", 6, H5_FORMAT, "cut off"},
        {"OHD", 3, H5_FORMAT, "beyond the end"},
        {"OHDR\2\0\4\15\0\0\0....", 15, H5_FORMAT, "checksum"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        t_h5 t;
        h5_ohdr oh;
        t_h5_begin(&t);
        uint64_t at = t_h5_bytes(&t, cases[i].bytes, cases[i].n);
        t_h5_open(&t, at);
        T_FAILS(&t, cases[i].code, cases[i].text, h5_ohdr_read(t.f, at, &oh, &t.err));
        assert_null(oh.msg);
        T_FAILS(&t, H5_FORMAT, "", h5_ohdr_read(t.f, H5_UNDEF, &oh, &t.err));
        t_h5_end(&t);
    }
}

/* A message that runs over its block, under a right checksum. */
static void message_over_the_end(void **state)
{
    (void)state;
    t_h5 t;
    h5_buf m = {0};
    h5_ohdr oh;
    t_h5_begin(&t);
    put_msg(&m, 0x0D, 0, -1, "abc", 3);
    m.p[1] = 4;
    open_header(&t, &m);
    T_FAILS(&t, H5_FORMAT, "run over the block", h5_ohdr_read(t.f, h5_file_root(t.f), &oh, &t.err));
    h5_buf_free(&m);
    t_h5_end(&t);
}

/* What an unknown message does to the object depends on its flags alone. */
static void unknown_messages(void **state)
{
    (void)state;
    for (unsigned flags = 0; flags < 256; flags++) {
        t_h5 t;
        h5_buf m = {0};
        h5_object *o;
        uint8_t info[18] = {0};
        memset(info + 2, 0xFF, 16);
        t_h5_begin(&t);
        put_msg(&m, H5_MSG_LINK_INFO, 0, -1, info, sizeof info);
        put_msg(&m, 0x77, flags, -1, "abc", 3);
        open_header(&t, &m);
        if (flags & H5_MSG_FAIL_IF_UNKNOWN) {
            T_FAILS(&t, H5_UNSUPPORTED, "message 77", h5_object_find(t.f, "/", &o, &t.err));
            assert_null(o);
        } else {
            T_OK(&t, h5_object_find(t.f, "/", &o, &t.err));
            assert_int_equal(h5_object_kind(o), H5_KIND_GROUP);
            h5_object_close(o);
        }
        h5_buf_free(&m);
        t_h5_end(&t);
    }
}

/* A superblock extension is read for messages that change how the file is to be read. */
static void extensions(void **state)
{
    (void)state;
    static const struct {
        unsigned id;
        int code;
        const char *text; /* NULL: harmless */
    } cases[] = {{0x13, H5_OK, NULL},
                 {0x17, H5_OK, NULL},
                 {0x16, H5_OK, NULL},
                 {0x14, H5_UNSUPPORTED, "multi-file driver"},
                 {0x18, H5_FORMAT, "cache image"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        t_h5 t;
        h5_buf m = {0};
        h5_file *f;
        uint64_t ext;
        uint8_t s[H5_SUPERBLOCK_BYTES];
        t_h5_begin(&t);
        put_msg(&m, cases[i].id, 0, -1, "abc", 3);
        T_OK(&t, h5_ohdr_write(t.w, &m, &ext, &t.err));
        t_h5_open(&t, t_h5_root(&t, "x", ext));
        T_OK(&t, t.io->read(t.io, 0, s, sizeof s, &t.err));
        h5_set64(s + 20, ext);
        h5_set32(s + 44, h5_lookup3(s, 44, 0));
        if (cases[i].text) {
            T_FAILS(&t, cases[i].code, cases[i].text, h5_file_open_at(t.io, s, &f, &t.err));
            assert_null(f);
        } else {
            T_OK(&t, h5_file_open_at(t.io, s, &f, &t.err));
            h5_file_close(f);
        }
        h5_buf_free(&m);
        t_h5_end(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(border_sizes),
        cmocka_unit_test(message_too_large),
        cmocka_unit_test(all_flags),
        cmocka_unit_test(continued),
        cmocka_unit_test(circle),
        cmocka_unit_test(too_many_blocks),
        cmocka_unit_test(bad_continuations),
        cmocka_unit_test(bad_headers),
        cmocka_unit_test(message_over_the_end),
        cmocka_unit_test(unknown_messages),
        cmocka_unit_test(extensions),
    };
    return cmocka_run_group_tests_name("h5_ohdr", tests, NULL, NULL);
}
