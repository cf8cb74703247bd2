/*
 * t_h5_object.c - groups, paths, attributes and what must hold between the messages of a dataset
 *
 * SPDX-License-Identifier: MIT
 */
#include "t_h5.h"
#include "t_io.h"

#include <math.h>

#include "h5_msg.h"

static void wide_group(void **state)
{
    (void)state;
    enum { N = 2000 };
    t_h5 t;
    static char names[N][300];
    static h5_link links[N];
    const h5_link *have;
    h5_object *o;
    uint64_t at;
    t_h5_begin(&t);
    for (int i = 0; i < N; i++) {
        // Names of 1 to 290 bytes, some beyond one byte of length, some not ASCII.
        int n = snprintf(names[i], sizeof names[i], "%d%s", i, i % 3 ? "" : "\303\244");
        memset(names[i] + n, 'x', i % 291 > n ? (size_t)(i % 291 - n) : 0);
        links[i] = (h5_link){names[i], (uint64_t)i + 48};
    }
    T_OK(&t, h5_write_group(t.w, links, N, NULL, 0, &at, &t.err));
    t_h5_open(&t, at);
    T_OK(&t, h5_object_open(t.f, at, &o, &t.err));
    assert_int_equal(h5_object_kind(o), H5_KIND_GROUP);
    assert_null(h5_object_dataset(o));
    assert_int_equal(h5_object_links(o, &have), N);
    for (int i = 0; i < N; i++) {
        assert_string_equal(have[i].name, names[i]);
        assert_true(have[i].addr == (uint64_t)i + 48);
        assert_ptr_equal(h5_object_link(o, names[i]), &have[i]);
    }
    assert_null(h5_object_link(o, "none"));
    assert_null(h5_object_link(o, ""));
    h5_object_close(o);
    h5_object_close(NULL);
    t_h5_end(&t);
}

static void paths(void **state)
{
    (void)state;
    t_h5 t;
    h5_object *o;
    uint64_t a, b, c, d, dims = 3;
    t_h5_begin(&t);
    h5_dataset_spec spec = {.type = t_h5_type('u', 1), .rank = 1, .dims = &dims};
    spec.addr = t_h5_bytes(&t, "xyz", 3);
    T_OK(&t, h5_write_dataset(t.w, &spec, &d, &t.err));
    c = t_h5_root(&t, "data", d);
    b = t_h5_root(&t, "b", c);
    a = t_h5_root(&t, "a", b);
    t_h5_open(&t, a);
    static const char *const good[] = {"/a/b/data", "a/b/data", "//a///b/data", "/a/b/data/"};
    for (size_t i = 0; i < 4; i++) {
        T_OK(&t, h5_object_find(t.f, good[i], &o, &t.err));
        assert_int_equal(h5_object_kind(o), H5_KIND_DATASET);
        h5_object_close(o);
    }
    static const char *const roots[] = {"/", "", "//"};
    for (size_t i = 0; i < 3; i++) {
        T_OK(&t, h5_object_find(t.f, roots[i], &o, &t.err));
        assert_non_null(h5_object_link(o, "a"));
        h5_object_close(o);
    }
    T_FAILS(&t, H5_NOTFOUND, "/a/x: no such member", h5_object_find(t.f, "/a/x/data", &o, &t.err));
    assert_null(o);
    T_FAILS(&t, H5_NOTFOUND, "/a/b/dat: no such", h5_object_find(t.f, "/a/b/dat", &o, &t.err));
    T_FAILS(&t, H5_NOTFOUND, "/a/b/data2: no such", h5_object_find(t.f, "/a/b/data2", &o, &t.err));
    T_FAILS(&t, H5_NOTFOUND, "/a/b/data/x: no such",
            h5_object_find(t.f, "/a/b/data/x", &o, &t.err));
    t_h5_end(&t);
}

static void attribute_values(void **state)
{
    (void)state;
    t_h5 t;
    h5_object *o;
    const h5_attr *list;
    int64_t i;
    double f;
    char *s;
    uint64_t at;
    char name[400][16];
    h5_attr_spec spec[406] = {
        {.name = "min", .kind = 'i', .i = INT64_MIN},
        {.name = "one", .kind = 'i', .i = 1},
        {.name = "pi", .kind = 'f', .f = 3.141592653589793},
        {.name = "text", .kind = 's', .s = "gr\303\274n"},
        {.name = "empty", .kind = 's', .s = ""},
        {.name = "inf", .kind = 'f', .f = -HUGE_VAL},
    };
    for (int k = 0; k < 400; k++) {
        snprintf(name[k], sizeof name[k], "a%d", k);
        spec[6 + k] = (h5_attr_spec){.name = name[k], .kind = 'i', .i = k * 3 - 600};
    }
    t_h5_begin(&t);
    T_OK(&t, h5_write_group(t.w, NULL, 0, spec, 406, &at, &t.err));
    t_h5_open(&t, at);
    T_OK(&t, h5_object_open(t.f, at, &o, &t.err));
    assert_int_equal(h5_object_attrs(o, &list), 406);
    for (int k = 0; k < 406; k++)
        assert_string_equal(list[k].name, spec[k].name);
    for (int k = 6; k < 406; k++) {
        T_OK(&t, h5_attr_int(o, spec[k].name, &i, &t.err));
        assert_int_equal(i, spec[k].i);
    }
    T_OK(&t, h5_attr_int(o, "min", &i, &t.err));
    assert_true(i == INT64_MIN);
    T_OK(&t, h5_attr_real(o, "pi", &f, &t.err));
    assert_true(f == 3.141592653589793);
    T_OK(&t, h5_attr_real(o, "one", &f, &t.err));
    assert_true(f == 1);
    T_OK(&t, h5_attr_real(o, "inf", &f, &t.err));
    assert_true(f == -HUGE_VAL);
    T_OK(&t, h5_attr_text(o, "text", &s, &t.err));
    assert_string_equal(s, "gr\303\274n");
    h5_free(s);
    T_OK(&t, h5_attr_text(o, "empty", &s, &t.err));
    assert_string_equal(s, "");
    h5_free(s);
    T_FAILS(&t, H5_NOTFOUND, "attribute none", h5_attr_int(o, "none", &i, &t.err));
    T_FAILS(&t, H5_NOTFOUND, "attribute none", h5_attr_text(o, "none", &s, &t.err));
    assert_null(s);
    T_FAILS(&t, H5_FORMAT, "pi: not an integer", h5_attr_int(o, "pi", &i, &t.err));
    T_FAILS(&t, H5_FORMAT, "text: not an integer", h5_attr_int(o, "text", &i, &t.err));
    T_FAILS(&t, H5_FORMAT, "text: not a number", h5_attr_real(o, "text", &f, &t.err));
    T_FAILS(&t, H5_FORMAT, "one: not a string", h5_attr_text(o, "one", &s, &t.err));
    h5_object_close(o);
    t_h5_end(&t);
}

/* An object of one attribute message written out by hand. */
static h5_object *with_attribute(t_h5 *t, const h5_type *type, const void *value, size_t bytes,
                                 int rank, uint64_t dim)
{
    h5_buf b = {0};
    h5_object *o;
    uint64_t at;
    size_t m = h5_ohdr_msg(&b, H5_MSG_LINK_INFO, 0);
    t_h5_begin(t);
    h5_link_info_encode(&b);
    T_OK(t, h5_ohdr_msg_end(&b, m, &t->err));
    m = h5_ohdr_msg(&b, H5_MSG_ATTR, 0);
    h5_buf_put(&b, "\3\0\2\0", 4);
    h5_buf_u16(&b, (unsigned)h5_type_bytes(type));
    h5_buf_u16(&b, rank ? 12 : 4);
    h5_buf_put(&b, "\0a\0", 3);
    h5_type_encode(&b, type);
    h5_space_encode(&b, rank, &dim, NULL);
    h5_buf_put(&b, value, bytes);
    T_OK(t, h5_ohdr_msg_end(&b, m, &t->err));
    T_OK(t, h5_ohdr_write(t->w, &b, &at, &t->err));
    h5_buf_free(&b);
    t_h5_open(t, at);
    T_OK(t, h5_object_open(t->f, at, &o, &t->err));
    return o;
}

/* Widths, signs and byte orders that the writer does not make. */
static void foreign_numbers(void **state)
{
    (void)state;
    static const struct {
        h5_type type;
        const char *bytes;
        int64_t i;
        double f;
    } cases[] = {
        {{.cls = 0, .is_signed = 1, .size = 1}, "\376", -2, -2},
        {{.cls = 0, .size = 1}, "\376", 254, 254},
        {{.cls = 0, .is_signed = 1, .size = 2, .big_endian = 1}, "\377\0", -256, -256},
        {{.cls = 0, .size = 2, .big_endian = 1}, "\1\2", 258, 258},
        {{.cls = 0, .is_signed = 1, .size = 4}, "\0\0\0\200", INT32_MIN, INT32_MIN},
        {{.cls = 0, .size = 8, .big_endian = 1}, "\0\0\0\0\0\0\0\5", 5, 5},
        {{.cls = 1, .size = 4}, "\0\0\300\77", 0, 1.5},
        {{.cls = 1, .size = 4, .big_endian = 1}, "\77\300\0\0", 0, 1.5},
        {{.cls = 1, .size = 8, .big_endian = 1}, "\300\4\0\0\0\0\0\0", 0, -2.5},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        t_h5 t;
        int64_t i;
        double f;
        h5_object *o = with_attribute(&t, &cases[k].type, cases[k].bytes, cases[k].type.size,
                                      (int)(k % 2), 1);
        if (cases[k].type.cls == H5_CLASS_INTEGER) {
            T_OK(&t, h5_attr_int(o, "a", &i, &t.err));
            assert_true(i == cases[k].i);
        }
        T_OK(&t, h5_attr_real(o, "a", &f, &t.err));
        assert_true(f == cases[k].f);
        h5_object_close(o);
        t_h5_end(&t);
    }
}

static void foreign_attributes(void **state)
{
    (void)state;
    static const struct {
        uint8_t pad;
        const char *bytes;
        const char *want;
    } cases[] = {{0, "ab\0cd", "ab"},   {0, "abcde", "abcde"}, {1, "ab\0\0\0", "ab"},
                 {1, "abcde", "abcde"}, {2, "ab   ", "ab"},    {2, "     ", ""}};
    t_h5 t;
    int64_t i;
    char *s;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        h5_type type = {.cls = H5_CLASS_STRING, .size = 5, .str_pad = cases[k].pad};
        h5_object *o = with_attribute(&t, &type, cases[k].bytes, 5, 0, 0);
        T_OK(&t, h5_attr_text(o, "a", &s, &t.err));
        assert_string_equal(s, cases[k].want);
        h5_free(s);
        h5_object_close(o);
        t_h5_end(&t);
    }
    h5_type u64 = {.cls = 0, .size = 8};
    h5_object *o = with_attribute(&t, &u64, "\0\0\0\0\0\0\0\200", 8, 0, 0);
    T_FAILS(&t, H5_FORMAT, "9223372036854775808 does not fit", h5_attr_int(o, "a", &i, &t.err));
    h5_object_close(o);
    t_h5_end(&t);
    o = with_attribute(&t, &u64, "................", 16, 1, 2);
    T_FAILS(&t, H5_FORMAT, "not a single value", h5_attr_int(o, "a", &i, &t.err));
    h5_object_close(o);
    t_h5_end(&t);
}

/* The shape of an attribute that cannot be read hides neither the object nor the others. */
static void unreadable_attribute(void **state)
{
    (void)state;
    t_h5 t;
    int64_t i;
    h5_object *o;
    h5_buf b = {0};
    uint64_t at;
    h5_attr_spec fine = {.name = "fine", .kind = 'i', .i = 5};
    // A dataspace of version 1 with permuted dimensions.
    static const char permuted[] = "\3\0\2\0\10\0\20\0\0v\0\23\0\0\0\4\0\0\0"
                                   "\1\1\2\0\0\0\0\0\3\0\0\0\0\0\0\0";
    t_h5_begin(&t);
    size_t m = h5_ohdr_msg(&b, H5_MSG_LINK_INFO, 0);
    h5_link_info_encode(&b);
    T_OK(&t, h5_ohdr_msg_end(&b, m, &t.err));
    m = h5_ohdr_msg(&b, H5_MSG_ATTR, 0);
    h5_buf_put(&b, permuted, sizeof permuted - 1);
    T_OK(&t, h5_ohdr_msg_end(&b, m, &t.err));
    m = h5_ohdr_msg(&b, H5_MSG_ATTR, 0);
    h5_attr_encode(&b, &fine);
    T_OK(&t, h5_ohdr_msg_end(&b, m, &t.err));
    T_OK(&t, h5_ohdr_write(t.w, &b, &at, &t.err));
    t_h5_open(&t, at);
    T_OK(&t, h5_object_open(t.f, at, &o, &t.err));
    assert_int_equal(h5_object_attr(o, "v")->type.cls, H5_CLASS_OTHER);
    T_FAILS(&t, H5_UNSUPPORTED, "attribute v", h5_attr_int(o, "v", &i, &t.err));
    T_OK(&t, h5_attr_int(o, "fine", &i, &t.err));
    assert_int_equal(i, 5);
    h5_object_close(o);
    h5_buf_free(&b);
    t_h5_end(&t);
}

/* ---------------------------------------------- headers of datasets put together from messages */

typedef struct piece {
    unsigned id, flags;
    const char *p;
    size_t n;
} piece;

#define MSG(id, s)                                                                                 \
    {                                                                                              \
        id, 0, s, sizeof(s) - 1                                                                    \
    }
#define SPACE   MSG(H5_MSG_SPACE, "\2\1\0\1\4\0\0\0\0\0\0\0")
#define TYPE    MSG(H5_MSG_TYPE, "\20\10\0\0\4\0\0\0\0\0\40\0")
#define COMPACT MSG(H5_MSG_LAYOUT, "\3\0\20\0abcdefghijklmnop")
#define CHUNKED(rank, chunk, size)                                                                 \
    MSG(H5_MSG_LAYOUT, "\4\2\0" rank "\1" chunk size "\3\12\377\377\377\377\377\377\377\377")

static int open_pieces(t_h5 *t, const piece *p, size_t n, h5_object **o)
{
    h5_buf b = {0};
    uint64_t at;
    t_h5_begin(t);
    for (size_t i = 0; i < n && p[i].p; i++) {
        size_t m = h5_ohdr_msg(&b, (uint16_t)p[i].id, (uint8_t)p[i].flags);
        h5_buf_put(&b, p[i].p, p[i].n);
        T_OK(t, h5_ohdr_msg_end(&b, m, &t->err));
    }
    T_OK(t, h5_ohdr_write(t->w, &b, &at, &t->err));
    h5_buf_free(&b);
    t_h5_open(t, at);
    return h5_object_open(t->f, at, o, &t->err);
}

static void relations(void **state)
{
    (void)state;
    static const struct {
        int code;
        const char *text;
        piece p[6];
    } cases[] = {
        {H5_OK, "", {SPACE, TYPE, COMPACT}},
        {H5_OK, "", {COMPACT, TYPE, SPACE}},
        {H5_OK, "", {SPACE, TYPE, CHUNKED("\2", "\3", "\4")}},
        {H5_FORMAT, "no data layout", {SPACE, TYPE}},
        {H5_FORMAT, "neither a group nor", {SPACE, COMPACT}},
        {H5_OK, "", {TYPE}},
        {H5_FORMAT, "neither a group nor", {MSG(0x0D, "abc")}},
        {H5_FORMAT, "a second dataspace", {SPACE, TYPE, COMPACT, SPACE}},
        {H5_FORMAT, "a second datatype", {SPACE, TYPE, TYPE, COMPACT}},
        {H5_FORMAT, "a second data layout", {SPACE, TYPE, COMPACT, COMPACT}},
        {H5_FORMAT, "chunks of 2 dimensions", {SPACE, TYPE, CHUNKED("\3", "\3\3", "\4")}},
        {H5_FORMAT, "chunk elements of 8", {SPACE, TYPE, CHUNKED("\2", "\3", "\10")}},
        {H5_FORMAT,
         "8 bytes stored, 16 needed",
         {SPACE, TYPE, MSG(H5_MSG_LAYOUT, "\3\0\10\0abcdefgh")}},
        {H5_FORMAT,
         "8 bytes stored, 16 needed",
         {SPACE, TYPE, MSG(H5_MSG_LAYOUT, "\3\1\60\0\0\0\0\0\0\0\10\0\0\0\0\0\0\0")}},
        {H5_FORMAT,
         "beyond the end",
         {SPACE, TYPE, MSG(H5_MSG_LAYOUT, "\3\1\60\0\0\0\0\0\0\1\20\0\0\0\0\0\0\0")}},
        {H5_OK,
         "",
         {SPACE, TYPE, MSG(H5_MSG_LAYOUT, "\3\1\377\377\377\377\377\377\377\377\0\0\0\0\0\0\0\0")}},
        {H5_FORMAT,
         "fill value of 2 bytes",
         {SPACE, TYPE, COMPACT, MSG(H5_MSG_FILL, "\3\53\2\0\0\0ab")}},
        {H5_OK, "", {SPACE, TYPE, COMPACT, MSG(H5_MSG_FILL, "\3\53\4\0\0\0abcd")}},
        {H5_FORMAT, "beyond the end", {MSG(H5_MSG_SYMBOL_TABLE, "0123456789abcdef")}},
        {H5_FORMAT, "shared message", {SPACE, {H5_MSG_TYPE, H5_MSG_SHARED, "\2\2", 2}, COMPACT}},
        {H5_FORMAT,
         "beyond the end",
         {SPACE, {H5_MSG_TYPE, H5_MSG_SHARED, "\2\2........", 10}, COMPACT}},
        {H5_FORMAT,
         "has no table",
         {SPACE, {H5_MSG_TYPE, H5_MSG_SHARED, "\3\1........", 10}, COMPACT}},
        {H5_FORMAT, "external data files", {SPACE, TYPE, COMPACT, MSG(H5_MSG_EXTERNAL, "xyz")}},
        {H5_LIMIT,
         "H5_CHUNK_BYTES_MAX",
         {SPACE, TYPE, MSG(H5_MSG_LAYOUT, "\4\2\0\2\4\0\0\0\200\4\0\0\0\3\12\0\0\0\0\0\0\0\0")}},
        {H5_LIMIT,
         "64 bits count",
         {MSG(H5_MSG_SPACE, "\2\1\0\1\0\0\0\0\0\0\0\100"), TYPE, CHUNKED("\2", "\3", "\4")}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        t_h5 t;
        h5_object *o = NULL;
        if (cases[i].code == H5_OK)
            T_OK(&t, open_pieces(&t, cases[i].p, 6, &o));
        else
            T_FAILS(&t, cases[i].code, cases[i].text, open_pieces(&t, cases[i].p, 6, &o));
        assert_int_equal(o != NULL, cases[i].code == H5_OK);
        h5_object_close(o);
        t_h5_end(&t);
    }
}

/* A dataset whose index is damaged opens, and says why when it is read. */
static void unreadable_datasets(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        piece p[6];
    } cases[] = {
        {"version 1 B-tree",
         {SPACE, TYPE, MSG(H5_MSG_LAYOUT, "\3\2\2\60\0\0\0\0\0\0\0\3\0\0\0\4\0\0\0")}},
        {"extensible array",
         {SPACE, TYPE, MSG(H5_MSG_LAYOUT, "\4\2\0\2\1\3\4\4.....\60\0\0\0\0\0\0\0")}},
        {"version 2 B-tree",
         {SPACE, TYPE, MSG(H5_MSG_LAYOUT, "\4\2\0\2\1\3\4\5......\60\0\0\0\0\0\0\0")}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        t_h5 t;
        h5_object *o;
        h5_chunk *chunks;
        size_t n;
        uint64_t start = 0, count = 4;
        uint8_t buf[16];
        T_OK(&t, open_pieces(&t, cases[i].p, 6, &o));
        assert_int_equal(h5_object_kind(o), H5_KIND_DATASET);
        assert_string_equal(h5_index_name(o), cases[i].text);
        T_FAILS(&t, H5_FORMAT, cases[i].text,
                h5_dataset_read(t.f, o, &start, &count, buf, 16, &t.err));
        T_FAILS(&t, H5_FORMAT, cases[i].text, h5_dataset_chunks(t.f, o, &chunks, &n, &t.err));
        assert_null(chunks);
        h5_object_close(o);
        t_h5_end(&t);
    }
}

/* A file and 40 objects that lie one behind the other: a few blocks, not a read for each. */
static void few_reads(void **state)
{
    (void)state;
    t_h5 t;
    h5_link links[39];
    char names[39][16];
    h5_file *f;
    uint64_t root, dims = 10, max = 20;
    uint32_t chunk = 10;
    t_h5_begin(&t);
    for (int i = 0; i < 39; i++) {
        h5_dataset_spec d = {
            .type = t_h5_type('i', 8), .rank = 1, .dims = &dims, .maxdims = &max, .chunk = &chunk};
        d.addr = H5_UNDEF;
        T_OK(&t, h5_write_dataset(t.w, &d, &links[i].addr, &t.err));
        snprintf(names[i], sizeof names[i], "d%d", i);
        links[i].name = names[i];
    }
    T_OK(&t, h5_write_group(t.w, links, 39, NULL, 0, &root, &t.err));
    t_h5_open(&t, root);
    t_io *counted = t_io_new(t.io);
    T_OK(&t, h5_file_open(&counted->io, &f, &t.err));
    for (int i = -1; i < 39; i++) {
        h5_object *o;
        T_OK(&t, h5_object_open(f, i < 0 ? root : links[i].addr, &o, &t.err));
        h5_object_close(o);
    }
    assert_in_range(counted->reads, 1, 4);
    assert_true(counted->read_bytes <= 2 * h5_file_eof(f));
    h5_file_close(f);
    t.io = &counted->io;
    t_h5_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wide_group),         cmocka_unit_test(paths),
        cmocka_unit_test(attribute_values),   cmocka_unit_test(foreign_numbers),
        cmocka_unit_test(foreign_attributes), cmocka_unit_test(unreadable_attribute),
        cmocka_unit_test(relations),          cmocka_unit_test(unreadable_datasets),
        cmocka_unit_test(few_reads),
    };
    return cmocka_run_group_tests_name("h5_object", tests, NULL, NULL);
}
