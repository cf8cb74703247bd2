/*
 * t_h5_symtab.c - old groups made by hand: local heap, symbol table nodes, a tree of two levels
 *
 * SPDX-License-Identifier: MIT
 */
#include "t_h5.h"

#include "h5_lheap.h"
#include "h5_msg.h"

static const char names[] = "\0\0\0\0\0\0\0\0alpha\0beta\0gamma\0delta\0/alpha\0no end";
enum { ALPHA = 8, BETA = 14, GAMMA = 19, DELTA = 25, TARGET = 31, NO_END = 38 };

static uint64_t heap(t_h5 *t)
{
    h5_buf b = {0};
    uint64_t data = t_h5_bytes(t, names, sizeof names - 1);
    h5_buf_put(&b, "HEAP\0\0\0\0", 8);
    h5_buf_u64(&b, sizeof names - 1);
    h5_buf_u64(&b, H5_UNDEF);
    h5_buf_u64(&b, data);
    uint64_t at = t_h5_bytes(t, b.p, b.n);
    h5_buf_free(&b);
    return at;
}

typedef struct symbol {
    unsigned name;
    uint64_t addr;
    int soft;
} symbol;

static uint64_t node(t_h5 *t, const symbol *s, unsigned n)
{
    h5_buf b = {0};
    h5_buf_put(&b, "SNOD\1\0", 6);
    h5_buf_u16(&b, n);
    for (unsigned i = 0; i < n; i++) {
        h5_buf_u64(&b, s[i].name);
        h5_buf_u64(&b, s[i].addr);
        h5_buf_u32(&b, s[i].soft ? 2 : 0);
        h5_buf_u32(&b, 0);
        h5_buf_u64(&b, s[i].soft ? TARGET : 0);
        h5_buf_u64(&b, 0);
    }
    uint64_t at = t_h5_bytes(t, b.p, b.n);
    h5_buf_free(&b);
    return at;
}

static uint64_t tree(t_h5 *t, unsigned level, const uint64_t *child, unsigned n)
{
    h5_buf b = {0};
    h5_buf_put(&b, "TREE\0", 5);
    h5_buf_u8(&b, level);
    h5_buf_u16(&b, n);
    h5_buf_u64(&b, H5_UNDEF);
    h5_buf_u64(&b, H5_UNDEF);
    for (unsigned i = 0; i < n; i++) {
        h5_buf_u64(&b, 0);
        h5_buf_u64(&b, child[i]);
    }
    h5_buf_u64(&b, 0);
    uint64_t at = t_h5_bytes(t, b.p, b.n);
    h5_buf_free(&b);
    return at;
}

/* The header of a group with this tree and heap. */
static uint64_t group(t_h5 *t, uint64_t root, uint64_t names_at)
{
    h5_buf m = {0};
    uint64_t at;
    size_t from = h5_ohdr_msg(&m, H5_MSG_SYMBOL_TABLE, 0);
    h5_buf_u64(&m, root);
    h5_buf_u64(&m, names_at);
    T_OK(t, h5_ohdr_msg_end(&m, from, &t->err));
    T_OK(t, h5_ohdr_write(t->w, &m, &at, &t->err));
    h5_buf_free(&m);
    return at;
}

static void members(void **state)
{
    (void)state;
    t_h5 t;
    h5_object *o;
    const h5_link *l;
    t_h5_begin(&t);
    uint64_t empty = tree(&t, 0, NULL, 0), h = heap(&t), inner = group(&t, empty, h);
    const symbol one[] = {{ALPHA, inner, 0}, {BETA, H5_UNDEF, 1}}, two[] = {{GAMMA, inner, 0}},
                 three[] = {{DELTA, inner, 0}};
    uint64_t leaf[2] = {node(&t, one, 2), node(&t, two, 1)}, other = node(&t, three, 1);
    uint64_t level[2] = {tree(&t, 0, leaf, 2), tree(&t, 0, &other, 1)};
    uint64_t root = group(&t, tree(&t, 1, level, 2), h);
    t_h5_open(&t, root);
    T_OK(&t, h5_object_find(t.f, "/", &o, &t.err));
    assert_int_equal(h5_object_links(o, &l), 4);
    assert_string_equal(l[0].name, "alpha");
    assert_string_equal(l[1].name, "beta");
    assert_string_equal(l[2].name, "gamma");
    assert_string_equal(l[3].name, "delta");
    assert_true(l[0].addr == inner && l[1].addr == H5_UNDEF && l[3].addr == inner);
    assert_int_equal(h5_object_link_info(o, 1)->kind, H5_LINK_SOFT);
    assert_string_equal(h5_object_link_info(o, 1)->path, "/alpha");
    h5_object_close(o);
    T_OK(&t, h5_object_find(t.f, "/beta", &o, &t.err));
    assert_int_equal(h5_object_addr(o), inner);
    assert_int_equal(h5_object_links(o, &l), 0);
    h5_object_close(o);
    t_h5_end(&t);
}

/* Each way to be wrong is refused, with a text that says where. */
static void refused(void **state)
{
    (void)state;
    static const char *const text[] = {
        "text at 38",         // a name without its end
        "text at 400",        // outside the heap
        "no signature",       // the heap is something else
        "node of type",       // the tree is something else
        "symbol table node",  // a leaf is something else
        "of type 0, level 3", // a child of another level than the one below
        "longer than the file",
    };
    for (int i = 0; i < (int)(sizeof text / sizeof *text); i++) {
        t_h5 t;
        h5_object *o;
        t_h5_begin(&t);
        uint64_t h = heap(&t);
        symbol s = {i == 0 ? NO_END : i == 1 ? 400 : ALPHA, 48, 0};
        uint64_t leaf = node(&t, &s, 1), wrong = i == 4 ? h : leaf;
        uint64_t low = tree(&t, i == 5 ? 3 : 0, &wrong, 1), root = tree(&t, 1, &low, 1);
        for (int k = 2; i == 6 && k < 24; k++) { // each level names the one below twice
            const uint64_t twice[2] = {root, root};
            root = tree(&t, (unsigned)k, twice, 2);
        }
        uint64_t at = group(&t, i == 3 ? h : root, i == 2 ? leaf : h);
        t_h5_open(&t, at);
        T_FAILS(&t, H5_FORMAT, text[i], h5_object_find(t.f, "/", &o, &t.err));
        t_h5_end(&t);
    }
}

/* A tree of more levels than any file needs, and one that is its own child. */
static void too_deep(void **state)
{
    (void)state;
    t_h5 t;
    h5_object *o;
    t_h5_begin(&t);
    uint64_t h = heap(&t), child = 0, root = tree(&t, H5_BTREE_DEPTH_MAX + 1, &child, 1);
    uint64_t at = group(&t, root, h);
    t_h5_open(&t, at);
    T_FAILS(&t, H5_LIMIT, "H5_BTREE_DEPTH_MAX", h5_object_find(t.f, "/", &o, &t.err));
    t_h5_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members),
        cmocka_unit_test(refused),
        cmocka_unit_test(too_deep),
    };
    return cmocka_run_group_tests_name("h5_symtab", tests, NULL, NULL);
}
