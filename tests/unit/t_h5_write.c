/*
 * t_h5_write.c - what the writing calls refuse, and that a refusal changes nothing
 *
 * That what they accept is right is shown by reading it back (t_h5_object.c, t_h5_dataset.c) and by
 * libhdf5 (tests/interop).
 *
 * SPDX-License-Identifier: MIT
 */
#include "t_h5.h"

#include "h5_limits.h"

static void datasets(void **state)
{
    (void)state;
    uint64_t dims[2] = {10, 3}, max[2] = {12, 3}, at;
    uint32_t chunk[2] = {4, 3};
    h5_pipeline deflate = {.n = 1, .filter = {{.id = 1, .nvalue = 1, .value = {6}}}};
    h5_pipeline blosc = {.n = 1, .filter = {{.id = 32001}}};
    h5_dataset_spec good = {.type = {.cls = 1, .size = 4}, .rank = 2, .dims = dims, .maxdims = max};
    good.chunk = chunk;
    good.addr = H5_UNDEF;
    t_h5 t;
    t_h5_begin(&t);
    T_OK(&t, h5_write_dataset(t.w, &good, &at, &t.err));
    uint64_t eof = h5_writer_eof(t.w);
#define REFUSED(code, text, change)                                                                \
    do {                                                                                           \
        uint64_t d0 = dims[0], m0 = max[0], m1 = max[1];                                           \
        uint32_t c0 = chunk[0];                                                                    \
        h5_dataset_spec d = good;                                                                  \
        change;                                                                                    \
        T_FAILS(&t, code, text, h5_write_dataset(t.w, &d, &at, &t.err));                           \
        assert_true(at == 0 && h5_writer_eof(t.w) == eof);                                         \
        dims[0] = d0, max[0] = m0, max[1] = m1, chunk[0] = c0;                                     \
    } while (0)
    REFUSED(H5_MISUSE, "class 1 of 3", d.type.size = 3);
    REFUSED(H5_MISUSE, "class 6", d.type.cls = 6);
    REFUSED(H5_MISUSE, "rank 0", d.rank = 0);
    REFUSED(H5_MISUSE, "rank 33", d.rank = 33);
    REFUSED(H5_MISUSE, "rank -1", d.rank = -1);
    REFUSED(H5_MISUSE, "rank 2", d.dims = NULL);
    REFUSED(H5_MISUSE, "rank 2", d.maxdims = NULL);
    REFUSED(H5_MISUSE, "maximum 8 in dimension 0", max[0] = 8);
    REFUSED(H5_MISUSE, "maximum 13", max[0] = 13);
    REFUSED(H5_MISUSE, "dimension 0", max[0] = UINT64_MAX);
    REFUSED(H5_MISUSE, "dimension 1", max[1] = 4);
    REFUSED(H5_MISUSE, "chunk size 0", chunk[0] = 0);
    REFUSED(H5_MISUSE, "chunk size 4294967292", chunk[0] = 0xFFFFFFFC);
    REFUSED(H5_MISUSE, "dimension 0", (dims[0] = 0, max[0] = 0));
    REFUSED(H5_MISUSE, "64 bits", dims[0] = UINT64_MAX / 2);
    REFUSED(H5_MISUSE, "1 filters", (d.chunk = NULL, d.pipeline = &deflate));
    REFUSED(H5_UNSUPPORTED, "blosc", d.pipeline = &blosc);
    t_h5_end(&t);
}

static void groups(void **state)
{
    (void)state;
    static const h5_link bad[] = {{"", 48}, {NULL, 48}, {"a/b", 48}, {"a", H5_UNDEF}};
    t_h5 t;
    uint64_t at;
    t_h5_begin(&t);
    uint64_t eof = h5_writer_eof(t.w);
    for (size_t i = 0; i < 4; i++) {
        h5_link two[2] = {{"fine", 48}, bad[i]};
        T_FAILS(&t, H5_MISUSE, "link 1", h5_write_group(t.w, two, 2, NULL, 0, &at, &t.err));
    }
    char *name = h5_malloc(70000);
    memset(name, 'n', 70000);
    name[69999] = 0;
    h5_link link = {name, 48};
    T_FAILS(&t, H5_LIMIT, "H5_MESSAGE_BYTES_MAX",
            h5_write_group(t.w, &link, 1, NULL, 0, &at, &t.err));
    name[65530] = 0; // the name alone would fit, the message does not
    T_FAILS(&t, H5_LIMIT, "H5_MESSAGE_BYTES_MAX",
            h5_write_group(t.w, &link, 1, NULL, 0, &at, &t.err));
    assert_true(h5_writer_eof(t.w) == eof);
    name[65535 - 12] = 0; // version, flags, two bytes of length, address
    T_OK(&t, h5_write_group(t.w, &link, 1, NULL, 0, &at, &t.err));
    t_h5_open(&t, at);
    h5_object *o;
    T_OK(&t, h5_object_open(t.f, at, &o, &t.err));
    assert_non_null(h5_object_link(o, name));
    h5_object_close(o);
    h5_free(name);
    t_h5_end(&t);
}

static void attributes(void **state)
{
    (void)state;
    static const h5_attr_spec bad[] = {{.name = "", .kind = 'i'},
                                       {.name = NULL, .kind = 'i'},
                                       {.name = "a", .kind = 's'},
                                       {.name = "a", .kind = 'x'}};
    t_h5 t;
    uint64_t at;
    t_h5_begin(&t);
    uint64_t eof = h5_writer_eof(t.w);
    for (size_t i = 0; i < 4; i++)
        T_FAILS(&t, H5_MISUSE, "attribute 0",
                h5_write_group(t.w, NULL, 0, &bad[i], 1, &at, &t.err));
    char *text = h5_malloc(70000);
    memset(text, 't', 70000);
    text[69999] = 0;
    h5_attr_spec a = {.name = "a", .kind = 's', .s = text};
    T_FAILS(&t, H5_LIMIT, "attribute a", h5_write_group(t.w, NULL, 0, &a, 1, &at, &t.err));
    text[65530] = 0;
    T_FAILS(&t, H5_LIMIT, "H5_MESSAGE_BYTES_MAX", h5_write_group(t.w, NULL, 0, &a, 1, &at, &t.err));
    assert_true(h5_writer_eof(t.w) == eof);
    text[65535 - 24] = 0; // 9 of the message, name, type and space 2 + 8 + 4, its own NUL
    T_OK(&t, h5_write_group(t.w, NULL, 0, &a, 1, &at, &t.err));
    t_h5_open(&t, at);
    h5_object *o;
    char *back;
    T_OK(&t, h5_object_open(t.f, at, &o, &t.err));
    T_OK(&t, h5_attr_text(o, "a", &back, &t.err));
    assert_string_equal(back, text);
    h5_free(back);
    h5_object_close(o);
    h5_free(text);
    t_h5_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(datasets), cmocka_unit_test(groups),
                                       cmocka_unit_test(attributes)};
    return cmocka_run_group_tests_name("h5_write", tests, NULL, NULL);
}
