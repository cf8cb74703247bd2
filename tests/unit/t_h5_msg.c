/*
 * t_h5_msg.c - message decoders on bytes written out by hand, all versions, all ways to be cut off
 *
 * SPDX-License-Identifier: MIT
 */
#include "t_h5.h"
#include "t_guard.h"

#include "h5_msg.h"

typedef int decoder(h5_object *o, const h5_msg *m, h5_error *err);

static h5_dataset_info info; /* of the object decoded last */

/* Decodes the n bytes at p, which end at an unmapped page, into o. */
static int decode(decoder *fn, h5_object *o, const char *p, size_t n, h5_error *err)
{
    t_guard g = t_guard_copy(p, n);
    h5_msg m = {.id = H5_MSG_SPACE, .size = (uint16_t)n, .body = g.p, .addr = 1000};
    memset(&info, 0, sizeof info);
    memset(o, 0, sizeof *o);
    o->info = &info;
    h5_error_clear(&o->refuse);
    int rc = fn(o, &m, err);
    t_guard_free(&g);
    return rc;
}

static void let_go(h5_object *o)
{
    h5_free(o->link);
    h5_free(o->link_info);
    h5_free(o->attr);
    h5_arena_free(&o->arena);
}

/* All of p decodes; every prefix but the whole is H5_FORMAT. */
static void whole_or_not(decoder *fn, h5_object *o, const char *p, size_t n)
{
    t_h5 t = {0};
    for (size_t k = 0; k < n; k++) {
        T_FAILS(&t, H5_FORMAT, "", decode(fn, o, p, k, &t.err));
        assert_true(t.err.offset == 1000);
        let_go(o);
    }
    T_OK(&t, decode(fn, o, p, n, &t.err));
}

#define BYTES(s) (s), sizeof(s) - 1

/* One case of a decoder that must fail. */
typedef struct wrong {
    const char *p;
    size_t n;
    int code;
    const char *text;
} wrong;

static void all_fail(decoder *fn, const wrong *cases, size_t n)
{
    t_h5 t = {0};
    for (size_t i = 0; i < n; i++) {
        h5_object o;
        T_FAILS(&t, cases[i].code, cases[i].text, decode(fn, &o, cases[i].p, cases[i].n, &t.err));
        let_go(&o);
    }
}

static void refused(decoder *fn, const char *p, size_t n, const char *text)
{
    t_h5 t = {0};
    h5_object o;
    T_OK(&t, decode(fn, &o, p, n, &t.err));
    assert_int_equal(o.refuse.code, H5_UNSUPPORTED);
    if (!strstr(o.refuse.text, text))
        fail_msg("'%s' is not in '%s'", text, o.refuse.text);
    let_go(&o);
}

static void dataspace(void **state)
{
    (void)state;
    h5_object o;
    whole_or_not(h5_msg_space_decode, &o,
                 BYTES("\2\2\1\1\3\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0"
                       "\5\0\0\0\0\0\0\0\377\377\377\377\377\377\377\377"));
    assert_int_equal(o.info->rank, 2);
    assert_true(o.info->dims[0] == 3 && o.info->dims[1] == 4);
    assert_true(o.info->maxdims[0] == 5 && o.info->maxdims[1] == UINT64_MAX);
    whole_or_not(h5_msg_space_decode, &o, BYTES("\2\1\0\1\3\0\0\0\0\0\0\0"));
    assert_true(o.info->dims[0] == 3 && o.info->maxdims[0] == 3);
    whole_or_not(h5_msg_space_decode, &o, BYTES("\2\0\0\0"));
    assert_int_equal(o.info->rank, 0);
    whole_or_not(h5_msg_space_decode, &o,
                 BYTES("\1\1\1\0\0\0\0\0\3\0\0\0\0\0\0\0\7\0\0\0\0\0\0\0"));
    assert_true(o.info->rank == 1 && o.info->dims[0] == 3 && o.info->maxdims[0] == 7);
    whole_or_not(h5_msg_space_decode, &o, BYTES("\1\0\0\0\0\0\0\0"));
    assert_int_equal(o.info->rank, 0);
    whole_or_not(h5_msg_space_decode, &o, BYTES("\2\0\0\2"));
    assert_true(o.info->rank == 0 && o.info->space == H5_SPACE_NULL);
    static const wrong cases[] = {
        {BYTES("\1\1\2\0\0\0\0\0\3\0\0\0\0\0\0\0"), H5_UNSUPPORTED, "permuted"},
        {BYTES("\3\0\0\0"), H5_FORMAT, "version 3"},
        {BYTES("\2\41\0\1"), H5_FORMAT, "rank 33"},
        {BYTES("\2\1\2\1"), H5_FORMAT, "flags 02"},
        {BYTES("\2\1\0\0"), H5_FORMAT, "type 0 of rank 1"},
        {BYTES("\2\0\0\1"), H5_FORMAT, "type 1 of rank 0"},
        {BYTES("\2\1\0\3"), H5_FORMAT, "type 3"},
        {BYTES("\2\1\1\1\3\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0"), H5_FORMAT, "above its maximum 2"},
        {BYTES("\2\2\0\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\1"), H5_LIMIT, "64 bits"},
    };
    all_fail(h5_msg_space_decode, cases, sizeof cases / sizeof *cases);
}

#define I4 "\20\10\0\0\4\0\0\0\0\0\40\0"

static void datatype(void **state)
{
    (void)state;
    h5_object o;
    whole_or_not(h5_msg_type_decode, &o, BYTES("\20\10\0\0\4\0\0\0\0\0\40\0"));
    assert_true(o.info->type.cls == H5_CLASS_INTEGER && o.info->type.is_signed &&
                o.info->type.size == 4);
    assert_int_equal(o.info->type.big_endian, 0);
    whole_or_not(h5_msg_type_decode, &o, BYTES("\60\1\0\0\2\0\0\0\0\0\20\0"));
    assert_true(!o.info->type.is_signed && o.info->type.big_endian && o.info->type.size == 2);
    whole_or_not(h5_msg_type_decode, &o,
                 BYTES("\21\40\37\0\4\0\0\0\0\0\40\0\27\10\0\27\177\0\0\0"));
    assert_true(o.info->type.cls == H5_CLASS_FLOAT && o.info->type.size == 4);
    whole_or_not(h5_msg_type_decode, &o,
                 BYTES("\21\41\77\0\10\0\0\0\0\0\100\0\64\13\0\64\377\3\0\0"));
    assert_true(o.info->type.size == 8 && o.info->type.big_endian);
    whole_or_not(h5_msg_type_decode, &o, BYTES("\23\22\0\0\7\0\0\0"));
    assert_true(o.info->type.cls == H5_CLASS_STRING && o.info->type.str_pad == 2 &&
                o.info->type.utf8);
    assert_int_equal(o.info->type.size, 7);
    static const wrong cases[] = {
        {BYTES("\14\0\0\0\4\0\0\0"), H5_FORMAT, "class 12"},
        {BYTES("\0\0\0\0\4\0\0\0"), H5_FORMAT, "version 0"},
        {BYTES("\140\0\0\0\4\0\0\0"), H5_FORMAT, "version 6"},
        {BYTES("\20\0\0\0\0\0\0\0"), H5_FORMAT, "of 0 bytes"},
        {BYTES("\23\3\0\0\4\0\0\0"), H5_FORMAT, "padding 3"},
        {BYTES("\20\10\0\0\4\0\0\0\4\0\40\0"), H5_FORMAT, "32 bits from bit 4"},
        {BYTES("\21\40\40\0\4\0\0\0\0\0\40\0\27\10\0\27\177\0\0\0"), H5_FORMAT,
         "1 bits from bit 32"},
        {BYTES("\26\2\0\0\4\0\0\0a\0"), H5_FORMAT, "compound of 2 members"},
        {BYTES("\66\1\0\0\4\0\0\0a\0\1" I4), H5_FORMAT, "outside a compound of 4"},
        {BYTES("\70\1\0\0\2\0\0\0" I4 "a\0\1\0"), H5_FORMAT, "enum of 2 bytes"},
        {BYTES("\31\2\0\0\20\0\0\0" I4), H5_FORMAT, "variable length of kind 2"},
        {BYTES("\31\0\0\0\10\0\0\0" I4), H5_FORMAT, "variable length of kind 0, 8"},
        {BYTES("\72\0\0\0\10\0\0\0\1\3\0\0\0" I4), H5_FORMAT, "its elements need 12"},
        {BYTES("\72\0\0\0\10\0\0\0\41"), H5_FORMAT, "array of rank 33"},
        {BYTES("\27\5\0\0\10\0\0\0"), H5_FORMAT, "reference of kind 5"},
        {BYTES("\133\0\0\0\10\0\0\0" I4), H5_FORMAT, "complex of 8 bytes over class 0"},
    };
    all_fail(h5_msg_type_decode, cases, sizeof cases / sizeof *cases);
}

/* Types that hold types. */
static void nested_types(void **state)
{
    (void)state;
    h5_object o;
    const h5_type *type = &info.type;
    // Two members: at 0 an enum, at 4 an array of two strings; names fill 8 bytes.
    whole_or_not(h5_msg_type_decode, &o,
                 BYTES("\26\2\0\0\12\0\0\0"
                       "e\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
                       "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
                       "\30\1\0\0\4\0\0\0" I4 "red\0\0\0\0\0\7\0\0\0"
                       "s\0\0\0\0\0\0\0\4\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0"
                       "\2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
                       "\23\0\0\0\3\0\0\0"));
    assert_true(type->cls == H5_CLASS_COMPOUND && type->nmember == 2);
    const h5_type *e = type->member[0].type, *s = type->member[1].type;
    assert_true(e->cls == H5_CLASS_ENUM && e->nmember == 1 && e->is_signed);
    assert_true(s->cls == H5_CLASS_ARRAY && s->rank == 1 && s->dims[0] == 2 && s->size == 6);
    assert_true(s->base->cls == H5_CLASS_STRING && type->member[1].offset == 4);
    let_go(&o);
    // Version 3: no filling, places of one byte.
    whole_or_not(h5_msg_type_decode, &o,
                 BYTES("\66\1\0\0\24\0\0\0v\0\4\71\1\1\0\20\0\0\0\23\0\0\0\1\0\0\0"));
    assert_true(type->member[0].offset == 4 && type->member[0].type->is_text &&
                type->member[0].type->utf8);
    let_go(&o);
    whole_or_not(h5_msg_type_decode, &o, BYTES("\25\10\0\0\2\0\0\0abcdefgh"));
    assert_true(type->cls == H5_CLASS_OPAQUE && strcmp(type->tag, "abcdefgh") == 0);
    let_go(&o);
    // One array inside another, forty times.
    h5_buf deep = {0};
    t_h5 t = {0};
    for (int i = 0; i < 40; i++)
        h5_buf_put(&deep, "\72\0\0\0\4\0\0\0\1\1\0\0\0", 13);
    h5_buf_put(&deep, I4, 12);
    T_FAILS(&t, H5_LIMIT, "H5_TYPE_DEPTH_MAX",
            decode(h5_msg_type_decode, &o, (const char *)deep.p, deep.n, &t.err));
    h5_buf_free(&deep);
    let_go(&o);
}

static void fill(void **state)
{
    (void)state;
    h5_object o;
    whole_or_not(h5_msg_fill_decode, &o, BYTES("\3\53\2\0\0\0ab"));
    assert_int_equal(o.fill_bytes, 2);
    whole_or_not(h5_msg_fill_decode, &o, BYTES("\3\13"));
    assert_null(o.fill);
    whole_or_not(h5_msg_fill_decode, &o, BYTES("\3\31"));
    whole_or_not(h5_msg_fill_decode, &o, BYTES("\2\2\0\1\2\0\0\0ab"));
    assert_int_equal(o.fill_bytes, 2);
    whole_or_not(h5_msg_fill_decode, &o, BYTES("\2\2\0\0"));
    assert_null(o.fill);
    whole_or_not(h5_msg_fill_decode, &o, BYTES("\1\2\0\0\0\0\0\0"));
    assert_null(o.fill);
    whole_or_not(h5_msg_fill_decode, &o, BYTES("\1\2\0\1\1\0\0\0x"));
    assert_int_equal(o.fill_bytes, 1);
    whole_or_not(h5_msg_fill_old_decode, &o, BYTES("\3\0\0\0abc"));
    assert_int_equal(o.fill_bytes, 3);
    static const wrong cases[] = {
        {BYTES("\4\0\0\0"), H5_FORMAT, "version 4"},
        {BYTES("\0\0\0\0"), H5_FORMAT, "version 0"},
        {BYTES("\3\60\0\0\0\0"), H5_FORMAT, "flags 30"},
        {BYTES("\3\50\377\377\377\377"), H5_FORMAT, "end too early"},
    };
    all_fail(h5_msg_fill_decode, cases, sizeof cases / sizeof *cases);
}

static void layout(void **state)
{
    (void)state;
    h5_object o;
    for (char v = 3; v <= 4; v++) {
        char compact[] = "\0\0\3\0abc", contiguous[] = "\0\1\100\0\0\0\0\0\0\0\7\0\0\0\0\0\0\0";
        compact[0] = contiguous[0] = v;
        whole_or_not(h5_msg_layout_decode, &o, compact, 7);
        assert_true(o.info->layout == H5_LAYOUT_COMPACT && o.layout.compact_bytes == 3);
        whole_or_not(h5_msg_layout_decode, &o, contiguous, 18);
        assert_true(o.info->layout == H5_LAYOUT_CONTIGUOUS && o.info->addr == 64 &&
                    o.info->size == 7);
    }
    whole_or_not(h5_msg_layout_decode, &o, BYTES("\3\2\2\100\0\0\0\0\0\0\0\5\0\0\0\10\0\0\0"));
    assert_true(o.layout.index == H5_INDEX_BTREE1 && o.info->addr == 64 && o.info->chunk[0] == 5);
    assert_int_equal(o.layout.element, 8);
    whole_or_not(h5_msg_layout_decode, &o, BYTES("\4\2\0\3\2\5\0\0\1\10\0\3\12\100\0\0\0\0\0\0\0"));
    assert_true(o.layout.index == H5_INDEX_FARRAY && o.layout.page_bits == 10 &&
                o.info->addr == 64);
    assert_true(o.info->chunk[0] == 5 && o.info->chunk[1] == 256 && o.layout.element == 8);
    whole_or_not(h5_msg_layout_decode, &o, BYTES("\4\2\1\2\1\5\10\2\100\0\0\0\0\0\0\0"));
    assert_true(o.layout.index == H5_INDEX_IMPLICIT && o.layout.raw_edges);
    whole_or_not(h5_msg_layout_decode, &o,
                 BYTES("\4\2\2\2\1\5\10\1\44\0\0\0\0\0\0\0\3\0\0\0\100\0\0\0\0\0\0\0"));
    assert_true(o.layout.index == H5_INDEX_SINGLE && o.layout.single_filtered);
    assert_true(o.layout.single.size == 36 && o.layout.single.mask == 3 && o.info->addr == 64);
    whole_or_not(h5_msg_layout_decode, &o, BYTES("\4\2\0\2\1\5\10\1\100\0\0\0\0\0\0\0"));
    assert_true(!o.layout.single_filtered && o.info->addr == 64);
    whole_or_not(h5_msg_layout_decode, &o, BYTES("\4\2\0\2\1\5\10\4\1\2\3\4\5\100\0\0\0\0\0\0\0"));
    assert_true(o.layout.index == H5_INDEX_EARRAY && o.info->addr == 64);
    whole_or_not(h5_msg_layout_decode, &o,
                 BYTES("\4\2\0\2\1\5\10\5\1\2\3\4\5\6\100\0\0\0\0\0\0\0"));
    assert_true(o.layout.index == H5_INDEX_BTREE2 && o.info->addr == 64);
    for (char v = 1; v <= 2; v++) {
        char old[] = "\0\1\1\0\0\0\0\0\100\0\0\0\0\0\0\0\5\0\0\0";
        old[0] = v;
        whole_or_not(h5_msg_layout_decode, &o, old, 20);
        assert_true(o.info->layout == H5_LAYOUT_CONTIGUOUS && o.info->addr == 64);
    }
    whole_or_not(h5_msg_layout_decode, &o,
                 BYTES("\1\2\2\0\0\0\0\0\100\0\0\0\0\0\0\0\5\0\0\0\10\0\0\0"));
    assert_true(o.layout.index == H5_INDEX_BTREE1 && o.info->chunk[0] == 5 && o.info->addr == 64);
    assert_int_equal(o.layout.element, 8);
    whole_or_not(h5_msg_layout_decode, &o, BYTES("\2\1\0\0\0\0\0\0\5\0\0\0\3\0\0\0abc"));
    assert_int_equal(o.layout.compact_bytes, 3);
    whole_or_not(h5_msg_layout_decode, &o, BYTES("\5\2\0\2\1\5\10\3\12\100\0\0\0\0\0\0\0"));
    assert_true(o.layout.wide_sizes && o.info->chunk[0] == 5);
    refused(h5_msg_layout_decode, BYTES("\5\2\0\2\5\0\0\0\0\1\10\0\0\0\0\3\12\0\0\0\0\0\0\0\0"),
            "more than 32 bits");
    whole_or_not(h5_msg_layout_decode, &o, BYTES("\4\3\100\0\0\0\0\0\0\0\2\0\0\0"));
    assert_true(o.info->layout == H5_LAYOUT_VIRTUAL && o.layout.heap == 64);
    assert_int_equal(o.layout.heap_index, 2);
    static const wrong cases[] = {
        {BYTES("\0\1\0\0"), H5_FORMAT, "version 0"},
        {BYTES("\6\1\0\0"), H5_FORMAT, "version 6"},
        {BYTES("\3\4\0\0"), H5_FORMAT, "class 4"},
        {BYTES("\4\2\4\2\1\5\10\3\12\0\0\0\0\0\0\0\0"), H5_FORMAT, "flags 04"},
        {BYTES("\4\2\0\1\1\5\3\12\0\0\0\0\0\0\0\0"), H5_FORMAT, "1 chunk dimensions"},
        {BYTES("\4\2\0\42\1\5\10\3\12\0\0\0\0\0\0\0\0"), H5_FORMAT, "34 chunk dimensions"},
        {BYTES("\4\2\0\2\1\0\10\3\12\0\0\0\0\0\0\0\0"), H5_FORMAT, "chunk size 0"},
        {BYTES("\4\2\0\2\0\5\10\3\12\0\0\0\0\0\0\0\0"), H5_FORMAT, "end too early"},
        {BYTES("\4\2\0\2\5\0\0\0\0\1\10\0\0\0\0\3\12\0\0\0\0\0\0\0\0"), H5_FORMAT,
         "chunk size 4294967296"},
        {BYTES("\4\2\0\2\1\5\10\6\12\0\0\0\0\0\0\0\0"), H5_FORMAT, "chunk index 6"},
        {BYTES("\4\2\0\2\1\5\10\0\12\0\0\0\0\0\0\0\0"), H5_FORMAT, "chunk index 0"},
    };
    all_fail(h5_msg_layout_decode, cases, sizeof cases / sizeof *cases);
}

static void filters(void **state)
{
    (void)state;
    h5_object o;
    whole_or_not(h5_msg_filters_decode, &o,
                 BYTES("\2\2\2\0\1\0\1\0\10\0\0\0\13\175\5\0\0\0\2\0zstd\0\3\0\0\0\7\0\0\0"));
    h5_pipeline *p = &o.info->pipeline;
    assert_int_equal(p->n, 2);
    assert_true(p->filter[0].id == 2 && p->filter[0].flags == 1 && p->filter[0].value[0] == 8);
    assert_true(p->filter[1].id == 32011 && p->filter[1].nvalue == 2 && p->filter[1].value[1] == 7);
    // Version 1: names padded to 8, an odd number of values padded.
    whole_or_not(
        h5_msg_filters_decode, &o,
        BYTES("\1\2\0\0\0\0\0\0\1\0\7\0\1\0\1\0deflate\0\6\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0"));
    assert_int_equal(p->n, 2);
    assert_true(p->filter[0].id == 1 && p->filter[0].nvalue == 1 && p->filter[0].value[0] == 6);
    assert_true(p->filter[1].id == 3 && p->filter[1].nvalue == 0);
    whole_or_not(h5_msg_filters_decode, &o, BYTES("\2\0"));
    assert_int_equal(p->n, 0);
    refused(h5_msg_filters_decode, BYTES("\2\11"), "more filters than H5_FILTERS_MAX");
    // More values than the filter itself holds.
    char many[8 + 4 * 33] = {2, 1, 6, 0, 0, 0, 33, 0};
    many[8] = 5;
    many[8 + 4 * 32] = 7;
    whole_or_not(h5_msg_filters_decode, &o, many, sizeof many);
    assert_int_equal(p->filter[0].nvalue, 33);
    assert_true(p->filter[0].more[0] == 5 && p->filter[0].more[32] == 7);
    let_go(&o);
    static const wrong cases[] = {
        {BYTES("\3\0"), H5_FORMAT, "version 3"},
        {BYTES("\2\1\1\0\0\0\377\377"), H5_FORMAT, "end too early"},
    };
    all_fail(h5_msg_filters_decode, cases, sizeof cases / sizeof *cases);
}

static void links(void **state)
{
    (void)state;
    h5_object o;
    whole_or_not(h5_msg_link_decode, &o, BYTES("\1\0\3abc\100\0\0\0\0\0\0\0"));
    assert_int_equal(o.nlink, 1);
    assert_string_equal(o.link[0].name, "abc");
    assert_int_equal(o.link[0].addr, 64);
    let_go(&o);
    // Everything that may be there: type, creation order, character set, a length of 8 bytes.
    whole_or_not(h5_msg_link_decode, &o,
                 BYTES("\1\37\0\7\0\0\0\0\0\0\0\1\2\0\0\0\0\0\0\0\303\244\100\0\0\0\0\0\0\0"));
    assert_string_equal(o.link[0].name, "\303\244");
    let_go(&o);
    whole_or_not(h5_msg_link_decode, &o, BYTES("\1\10\1\1s\4\0/a/b"));
    assert_true(o.link[0].addr == H5_UNDEF && o.link_info[0].kind == H5_LINK_SOFT);
    assert_string_equal(o.link_info[0].path, "/a/b");
    let_go(&o);
    whole_or_not(h5_msg_link_decode, &o, BYTES("\1\10\100\1x\6\0\0f\0/d\0"));
    assert_true(o.link[0].addr == H5_UNDEF && o.link_info[0].kind == H5_LINK_EXTERNAL);
    assert_string_equal(o.link_info[0].file, "f");
    assert_string_equal(o.link_info[0].path, "/d");
    let_go(&o);
    whole_or_not(h5_msg_link_decode, &o, BYTES("\1\14\101\7\0\0\0\0\0\0\0\1u\2\0ab"));
    assert_true(o.link_info[0].kind == 65 && o.link_info[0].order == 7);
    assert_true(o.link_info[0].bytes == 2 && o.link_info[0].has_order);
    let_go(&o);
    static const wrong cases[] = {
        {BYTES("\2\0\1a\100\0\0\0\0\0\0\0"), H5_FORMAT, "version 2"},
        {BYTES("\1\10\100\1x\0\0"), H5_FORMAT, "external link"},
        {BYTES("\1\10\100\1x\5\0\0f\0/d"), H5_FORMAT, "external link"},
        {BYTES("\1\40\1a\100\0\0\0\0\0\0\0"), H5_FORMAT, "flags 20"},
        {BYTES("\1\0\0\100\0\0\0\0\0\0\0"), H5_FORMAT, "empty"},
        {BYTES("\1\0\3a\0b\100\0\0\0\0\0\0\0"), H5_FORMAT, "NUL"},
        {BYTES("\1\3\377\377\377\377\377\377\377\377a\100\0\0\0\0\0\0\0"), H5_FORMAT,
         "end too early"},
    };
    all_fail(h5_msg_link_decode, cases, sizeof cases / sizeof *cases);
}

/* Link info and attribute info differ only in the width of the creation order. */
static void infos(void **state)
{
    (void)state;
    h5_object o;
    t_h5 t = {0};
    static const char undef[] = "\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377";
    char b[64] = {0, 0};
    memcpy(b + 2, undef, 16);
    T_OK(&t, decode(h5_msg_link_info_decode, &o, b, 18, &t.err));
    T_OK(&t, decode(h5_msg_attr_info_decode, &o, b, 18, &t.err));
    T_FAILS(&t, H5_FORMAT, "early", decode(h5_msg_link_info_decode, &o, b, 9, &t.err));
    T_FAILS(&t, H5_FORMAT, "early", decode(h5_msg_attr_info_decode, &o, b, 9, &t.err));
    b[2] = 0;
    T_OK(&t, decode(h5_msg_link_info_decode, &o, b, 18, &t.err));
    assert_true(o.links.heap == 0xFFFFFFFFFFFFFF00u && o.links.index == H5_UNDEF);
    T_OK(&t, decode(h5_msg_attr_info_decode, &o, b, 18, &t.err));
    assert_true(o.attrs.heap == 0xFFFFFFFFFFFFFF00u && o.attrs.index == H5_UNDEF);
    b[1] = 3;
    memcpy(b + 4, undef, 16);
    T_OK(&t, decode(h5_msg_attr_info_decode, &o, b, 28, &t.err));
    memset(b + 2, 0, 8);
    memcpy(b + 10, undef, 16);
    T_OK(&t, decode(h5_msg_link_info_decode, &o, b, 34, &t.err));
    b[1] = 4;
    T_FAILS(&t, H5_FORMAT, "flags 04", decode(h5_msg_link_info_decode, &o, b, 34, &t.err));
    T_FAILS(&t, H5_FORMAT, "flags 04", decode(h5_msg_attr_info_decode, &o, b, 34, &t.err));
    b[0] = 1;
    T_FAILS(&t, H5_FORMAT, "version 1", decode(h5_msg_attr_info_decode, &o, b, 34, &t.err));
}

static void attributes(void **state)
{
    (void)state;
    h5_object o;
    t_h5 t = {0};
    whole_or_not(h5_msg_attr_decode, &o, BYTES("\3\0\2\0\14\0\4\0\0a\0" I4 "\2\0\0\0\7\0\0\0"));
    assert_true(o.nattr == 1 && o.attr[0].type.size == 4 && o.attr[0].bytes == 4 &&
                o.attr[0].rank == 0);
    let_go(&o);
    whole_or_not(h5_msg_attr_decode, &o,
                 BYTES("\2\0\2\0\14\0\14\0a\0" I4 "\2\1\0\1\2\0\0\0\0\0\0\0abcdefgh"));
    assert_true(o.attr[0].rank == 1 && o.attr[0].dims[0] == 2 && o.attr[0].bytes == 8);
    let_go(&o);
    // Version 1 pads name, type and space to 8 bytes.
    whole_or_not(h5_msg_attr_decode, &o,
                 BYTES("\1\0\2\0\14\0\10\0a\0\0\0\0\0\0\0" I4 "\0\0\0\0\1\0\0\0\0\0\0\0wxyz"));
    assert_true(o.attr[0].bytes == 4 && o.attr[0].rank == 0);
    let_go(&o);
    T_OK(&t, decode(h5_msg_attr_decode, &o, BYTES("\3\0\2\0\14\0\4\0\0a\0" I4 "\2\0\0\2"), &t.err));
    assert_true(o.attr[0].space == H5_SPACE_NULL && o.attr[0].bytes == 0);
    let_go(&o);
    // What is not read is there by name: here a dataspace with permuted dimensions.
    T_OK(&t,
         decode(h5_msg_attr_decode, &o,
                BYTES("\3\0\2\0\14\0\20\0\0a\0" I4 "\1\1\2\0\0\0\0\0\3\0\0\0\0\0\0\0"), &t.err));
    assert_int_equal(o.nattr, 1);
    assert_true(o.attr[0].type.cls == H5_CLASS_OTHER && o.attr[0].bytes == 0 && !o.attr[0].data);
    let_go(&o);
    static const wrong cases[] = {
        {BYTES("\4\0\2\0\14\0\4\0a\0" I4 "\2\0\0\0\7\0\0\0"), H5_FORMAT, "version 4"},
        {BYTES("\3\4\2\0\14\0\4\0\0a\0" I4 "\2\0\0\0\7\0\0\0"), H5_FORMAT, "flags 04"},
        {BYTES("\3\0\2\0\14\0\4\0\0ab" I4 "\2\0\0\0\7\0\0\0"), H5_FORMAT, "not ended by its NUL"},
        {BYTES("\3\0\3\0\14\0\4\0\0a\0\0" I4 "\2\0\0\0\7\0\0\0"), H5_FORMAT,
         "not ended by its NUL"},
        {BYTES("\3\0\1\0\14\0\4\0\0\0" I4 "\2\0\0\0\7\0\0\0"), H5_FORMAT, "empty"},
        {BYTES("\3\0\2\0\14\0\14\0\0a\0" I4 "\2\1\0\1\377\377\377\377\377\377\377\377...."),
         H5_FORMAT, "early"},
        {BYTES("\3\0\2\0\3\0\4\0\0a\0\20\10\0\2\0\0\0\7\0\0\0"), H5_FORMAT, "datatype: cut off"},
        {BYTES("\3\0\2\0\14\0\2\0\0a\0" I4 "\2\0\7\0\0\0"), H5_FORMAT, "dataspace: cut off"},
    };
    all_fail(h5_msg_attr_decode, cases, sizeof cases / sizeof *cases);
}

/* What the encoders make, the decoders understand. */
static void encoded_types(void **state)
{
    (void)state;
    static const h5_type types[] = {
        {.cls = 0, .is_signed = 1, .size = 1},
        {.cls = 0, .size = 2},
        {.cls = 0, .size = 4, .big_endian = 1},
        {.cls = 0, .is_signed = 1, .size = 8},
        {.cls = 1, .size = 2},
        {.cls = 1, .size = 4},
        {.cls = 1, .size = 8, .big_endian = 1},
        {.cls = 3, .size = 5, .str_pad = 0},
        {.cls = 3, .size = 70000, .str_pad = 1, .utf8 = 1},
        {.cls = 3, .size = 1, .str_pad = 2},
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        h5_buf b = {0};
        h5_object o;
        h5_type_encode(&b, &types[i]);
        assert_int_equal(b.n, h5_type_bytes(&types[i]));
        whole_or_not(h5_msg_type_decode, &o, (const char *)b.p, b.n);
        assert_int_equal(o.refuse.code, H5_OK);
        assert_memory_equal(&o.info->type, &types[i], offsetof(h5_type, vax));
        h5_buf_free(&b);
    }
    h5_type t;
    assert_int_equal(h5_type_number('i', 3, &t), H5_MISUSE);
    assert_int_equal(h5_type_number('f', 3, &t), H5_MISUSE);
    assert_int_equal(h5_type_number('x', 4, &t), H5_MISUSE);
    assert_int_equal(t.size, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dataspace),     cmocka_unit_test(datatype), cmocka_unit_test(fill),
        cmocka_unit_test(layout),        cmocka_unit_test(filters),  cmocka_unit_test(links),
        cmocka_unit_test(nested_types),  cmocka_unit_test(infos),    cmocka_unit_test(attributes),
        cmocka_unit_test(encoded_types),
    };
    return cmocka_run_group_tests_name("h5_msg", tests, NULL, NULL);
}
