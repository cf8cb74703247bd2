/*
 * t_h5_btree2.c - version 2 B-trees made by hand: every depth, every way to be wrong
 *
 * SPDX-License-Identifier: MIT
 */
#include "t_h5.h"

#include "h5_btree2.h"
#include "h5_sum.h"

enum { TYPE = 5, RECORD = 8, NODE = 64, LEAF_MOST = 6 };

typedef struct child {
    uint64_t addr, n, all; /* records in it, and with those under it */
} child;

/* A node of n records that count from `first`; depth 0: a leaf without children. */
static child node(t_h5 *t, unsigned depth, uint64_t first, unsigned n, const child *children)
{
    h5_buf b = {0};
    child out = {.n = n, .all = n};
    h5_buf_put(&b, depth ? "BTIN" : "BTLF", 4);
    h5_buf_u8(&b, 0);
    h5_buf_u8(&b, TYPE);
    for (unsigned i = 0; i < n; i++) {
        h5_buf_u64(&b, first);
        first += 1 + (depth ? children[i + 1].all : 0);
    }
    for (unsigned i = 0; depth && i <= n; i++) {
        h5_buf_u64(&b, children[i].addr);
        h5_buf_u8(&b, (unsigned)children[i].n);
        if (depth > 1)
            h5_buf_u8(&b, (unsigned)children[i].all);
        out.all += children[i].all;
    }
    h5_sum_put(&b, 0);
    out.addr = t_h5_bytes(t, b.p, b.n);
    h5_buf_free(&b);
    return out;
}

static uint64_t header(t_h5 *t, unsigned depth, const child *root)
{
    h5_buf b = {0};
    h5_buf_put(&b, "BTHD", 4);
    h5_buf_u8(&b, 0);
    h5_buf_u8(&b, TYPE);
    h5_buf_u32(&b, NODE);
    h5_buf_u16(&b, RECORD);
    h5_buf_u16(&b, depth);
    h5_buf_u16(&b, 0);
    h5_buf_u64(&b, root->addr);
    h5_buf_u16(&b, (unsigned)root->n);
    h5_buf_u64(&b, root->all);
    h5_sum_put(&b, 0);
    uint64_t at = t_h5_bytes(t, b.p, b.n);
    h5_buf_free(&b);
    return at;
}

/* A tree of a depth with as many records as it can hold; *at where its header is. */
static child full(t_h5 *t, unsigned depth, uint64_t first)
{
    child c[3];
    if (depth == 0)
        return node(t, 0, first, LEAF_MOST, NULL);
    uint64_t at = first;
    for (int i = 0; i < 3; i++) {
        c[i] = full(t, depth - 1, at);
        at += c[i].all + 1;
    }
    return node(t, depth, first + c[0].all, 2, c);
}

static int count(void *ctx, const uint8_t *record, h5_error *err)
{
    uint64_t *n = ctx;
    if (h5_get64(record) != *n)
        return h5_fail(err, H5_FORMAT, H5_UNDEF, "record %llu out of order",
                       (unsigned long long)*n);
    ++*n;
    return H5_OK;
}

/* Walks the tree at an address; *n counts the records that were met. */
static int walk(t_h5 *t, uint64_t at, uint64_t *n, h5_error *err)
{
    h5_btree2 tree;
    int rc = h5_btree2_open(&tree, t->f, at, err);
    if (rc == H5_OK) {
        assert_true(tree.type == TYPE && tree.record_bytes == RECORD && tree.addr == at);
        rc = h5_btree2_each(&tree, count, n, err);
    }
    h5_btree2_close(&tree);
    return rc;
}

static int compare(const void *ctx, const uint8_t *record)
{
    uint64_t want = *(const uint64_t *)ctx, have = h5_get64(record);
    return want < have ? -1 : want > have;
}

/* Each of n records is found, and no other. */
static void find_all(t_h5 *t, uint64_t at, uint64_t n)
{
    h5_btree2 tree;
    T_OK(t, h5_btree2_open(&tree, t->f, at, &t->err));
    for (uint64_t i = 0; i <= n; i++) {
        const uint8_t *record;
        T_OK(t, h5_btree2_find(&tree, compare, &i, &record, &t->err));
        assert_true(i < n ? record && h5_get64(record) == i : !record);
    }
    h5_btree2_close(&tree);
}

static void every_depth(void **state)
{
    (void)state;
    static const uint64_t most[] = {6, 20, 62, 188};
    for (unsigned depth = 0; depth < 4; depth++) {
        t_h5 t;
        uint64_t n = 0;
        t_h5_begin(&t);
        child root = full(&t, depth, 0);
        uint64_t at = header(&t, depth, &root);
        t_h5_open(&t, at);
        T_OK(&t, walk(&t, at, &n, &t.err));
        assert_int_equal(n, most[depth]);
        assert_int_equal(root.all, n);
        find_all(&t, at, n);
        t_h5_end(&t);
    }
}

static void nothing_in_it(void **state)
{
    (void)state;
    t_h5 t;
    uint64_t n = 0;
    t_h5_begin(&t);
    child none = {.addr = H5_UNDEF};
    uint64_t at = header(&t, 0, &none);
    t_h5_open(&t, at);
    T_OK(&t, walk(&t, at, &n, &t.err));
    assert_int_equal(n, 0);
    t_h5_end(&t);
}

/* Children that are nodes of another depth, too full, outside the file, or the node itself. */
static void bad_children(void **state)
{
    (void)state;
    static const char *const text[] = {"without signature", "7 records in a node", "beyond the end",
                                       "without signature"};
    for (int i = 0; i < 4; i++) {
        t_h5 t;
        uint64_t n = 0;
        t_h5_begin(&t);
        child leaf = node(&t, 0, 0, 6, NULL), twice[2] = {leaf, leaf};
        child inner = node(&t, 1, 6, 1, twice), bad = leaf;
        if (i == 0)
            bad.addr = inner.addr; // whose checksum does not end where that of a leaf does
        bad.n = i == 1 ? 7 : i == 0 ? 1 : bad.n;
        if (i == 2)
            bad.addr = 1u << 30;
        if (i == 3)
            bad = inner; // a node of depth 1 where a leaf should be
        child pair[2] = {leaf, bad};
        child root = node(&t, 1, 6, 1, pair);
        uint64_t at = header(&t, 1, &root);
        t_h5_open(&t, at);
        h5_error_clear(&t.err);
        assert_int_equal(walk(&t, at, &n, &t.err), H5_FORMAT);
        if (!strstr(t.err.text, text[i]) && !strstr(t.err.text, "checksum"))
            fail_msg("'%s' is not in '%s'", text[i], t.err.text);
        assert_int_equal(n, 7); // what stood before it was handed out
        t_h5_end(&t);
    }
}

/* The fields of the header, with its checksum made right. */
static void bad_headers(void **state)
{
    (void)state;
    static const struct {
        int at, width;
        uint32_t value;
        int code;
        const char *text;
    } cases[] = {
        {0, 1, 'X', H5_FORMAT, "no signature"},      {4, 1, 1, H5_FORMAT, "version 1"},
        {6, 4, 17, H5_FORMAT, "in nodes of 17"},     {10, 2, 0, H5_FORMAT, "records of 0"},
        {12, 2, 33, H5_LIMIT, "H5_BTREE_DEPTH_MAX"}, {24, 2, 7, H5_FORMAT, "7 records in a node"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        t_h5 t;
        uint64_t n = 0;
        uint8_t head[38];
        t_h5_begin(&t);
        child root = full(&t, 0, 0);
        uint64_t at = header(&t, 0, &root);
        t_h5_open(&t, at);
        T_OK(&t, t.io->read(t.io, at, head, sizeof head, &t.err));
        for (int k = 0; k < cases[i].width; k++)
            head[cases[i].at + k] = (uint8_t)(cases[i].value >> 8 * k);
        h5_set32(head + 34, h5_lookup3(head, 34, 0));
        T_OK(&t, t.io->write(t.io, at, head, sizeof head, &t.err));
        T_FAILS(&t, cases[i].code, cases[i].text, walk(&t, at, &n, &t.err));
        assert_int_equal(n, 0);
        t_h5_end(&t);
    }
}

/* One leaf named by every child uses up the bytes of the file. */
static void nodes_longer_than_the_file(void **state)
{
    (void)state;
    t_h5 t;
    uint64_t n = 0;
    t_h5_begin(&t);
    child c = node(&t, 0, 0, 6, NULL);
    for (unsigned depth = 1; depth < 12; depth++) {
        child same[3] = {c, c, c};
        c = node(&t, depth, 6, 2, same);
        c.all = 9; // a claim that nobody needs
    }
    uint64_t at = header(&t, 11, &c);
    t_h5_open(&t, at);
    h5_error_clear(&t.err);
    assert_int_equal(walk(&t, at, &n, &t.err), H5_FORMAT);
    t_h5_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_depth),
        cmocka_unit_test(nothing_in_it),
        cmocka_unit_test(bad_children),
        cmocka_unit_test(bad_headers),
        cmocka_unit_test(nodes_longer_than_the_file),
    };
    return cmocka_run_group_tests_name("h5_btree2", tests, NULL, NULL);
}
