/*
 * t_h5_index.c - chunk indexes with depth: look-ups against the list that they were made from, and
 * what one look-up reads
 *
 * Trees and arrays are made here by hand, from the specification's description: nodes so small that
 * some thousand chunks make several levels, super blocks and pages. Every seventh chunk is not
 * stored.
 *
 * SPDX-License-Identifier: MIT
 */
#include "t_h5.h"
#include "t_io.h"
#include "t_rng.h"

#include "h5_cidx.h"
#include "h5_msg.h"
#include "h5_sum.h"

enum { ROWS = 60, COLS = 70, SLOTS = ROWS * COLS, CHUNK = 2 };

typedef struct kind {
    const char *name;
    int unlimited; /* dimension, -1 none */
    void (*build)(t_h5 *t, const struct kind *k, uint64_t data, h5_buf *layout);
    int most_reads; /* of one look-up, the header of the index and blocks of metadata included */
} kind;

static int is_stored(uint64_t slot)
{
    return slot % 7 != 3;
}

static uint64_t put(t_h5 *t, h5_buf *b, int sum)
{
    if (sum)
        h5_sum_put(b, 0);
    assert_false(b->bad);
    uint64_t at = t_h5_bytes(t, b->p, b->n);
    h5_buf_free(b);
    return at;
}

/* ---- version 1 B-tree: FANOUT children a node */

enum { FANOUT = 6 };

typedef struct entry {
    uint64_t slot, child;
} entry;

static uint64_t tree1_level(t_h5 *t, entry *e, size_t n, int level)
{
    size_t nodes = (n + FANOUT - 1) / FANOUT;
    uint64_t at = 0;
    for (size_t i = 0; i < nodes; i++) {
        size_t first = i * FANOUT, here = n - first < FANOUT ? n - first : FANOUT;
        h5_buf b = {0};
        h5_buf_put(&b, "TREE", 4);
        h5_buf_u8(&b, 1);
        h5_buf_u8(&b, (unsigned)level);
        h5_buf_u16(&b, (unsigned)here);
        h5_buf_u64(&b, H5_UNDEF);
        h5_buf_u64(&b, H5_UNDEF);
        for (size_t k = first; k < first + here; k++) {
            h5_buf_u32(&b, CHUNK);
            h5_buf_u32(&b, 0);
            h5_buf_u64(&b, e[k].slot / COLS);
            h5_buf_u64(&b, e[k].slot % COLS * CHUNK);
            h5_buf_u64(&b, 0);
            h5_buf_u64(&b, e[k].child);
        }
        at = put(t, &b, 0);
        e[i] = (entry){e[first].slot, at};
    }
    return nodes == 1 ? at : tree1_level(t, e, nodes, level + 1);
}

static void build_tree1(t_h5 *t, const kind *k, uint64_t data, h5_buf *layout)
{
    static entry e[SLOTS];
    size_t n = 0;
    (void)k;
    for (uint64_t s = 0; s < SLOTS; s++)
        if (is_stored(s))
            e[n++] = (entry){s, data + s * CHUNK};
    h5_buf_u8(layout, 3);
    h5_buf_u8(layout, 2);
    h5_buf_u8(layout, 3);
    h5_buf_u64(layout, tree1_level(t, e, n, 0));
    h5_buf_u32(layout, 1);
    h5_buf_u32(layout, CHUNK);
    h5_buf_u32(layout, 1);
}

/* Start of a layout message of version 4. */
static void layout4(h5_buf *b, unsigned index)
{
    const uint8_t head[] = {4, 2, 0, 3, 1, 1, CHUNK, 1, (uint8_t)index};
    h5_buf_put(b, head, sizeof head);
}

/* ---- version 2 B-tree: nodes of NODE bytes */

enum { NODE = 256, RECORD = 24 };

typedef struct tree2 {
    t_h5 *t;
    uint64_t data, list[SLOTS];
    uint64_t most[5], all[5]; /* records of a node of a depth, and under it */
    unsigned under[5];        /* bytes of a number of records under it */
} tree2;

static void put_record(const tree2 *w, h5_buf *b, uint64_t i)
{
    h5_buf_u64(b, w->data + w->list[i] * CHUNK);
    h5_buf_u64(b, w->list[i] / COLS);
    h5_buf_u64(b, w->list[i] % COLS);
}

/* The node over records from .. to; *n its own. */
static uint64_t tree2_node(const tree2 *w, unsigned depth, uint64_t from, uint64_t to, uint64_t *n)
{
    uint64_t count = to - from, child[16], have[16], first[17];
    h5_buf b = {0};
    h5_buf_put(&b, depth ? "BTIN" : "BTLF", 4);
    h5_buf_u8(&b, 0);
    h5_buf_u8(&b, 10);
    *n = depth ? (count + 1 + w->all[depth - 1]) / (w->all[depth - 1] + 1) - 1 : count;
    assert_true(*n <= w->most[depth]);
    for (uint64_t i = 0; depth && i <= *n + 1; i++) // child i: first[i] .. first[i + 1] - 1
        first[i] = from + i * (count + 1) / (*n + 1);
    for (uint64_t i = 0; depth && i <= *n; i++)
        child[i] = tree2_node(w, depth - 1, first[i], first[i + 1] - 1, &have[i]);
    for (uint64_t i = 0; i < *n; i++)
        put_record(w, &b, depth ? first[i + 1] - 1 : from + i);
    for (uint64_t i = 0; depth && i <= *n; i++) {
        h5_buf_u64(&b, child[i]);
        h5_buf_u8(&b, (unsigned)have[i]);
        if (depth > 1)
            h5_buf_uint(&b, first[i + 1] - 1 - first[i], w->under[depth - 1]);
    }
    return put(w->t, &b, 1);
}

static void build_tree2(t_h5 *t, const kind *k, uint64_t data, h5_buf *layout)
{
    static tree2 w;
    uint64_t n = 0, own, depth = 0;
    h5_buf b = {0};
    (void)k;
    w = (tree2){.t = t, .data = data};
    for (uint64_t s = 0; s < SLOTS; s++)
        if (is_stored(s))
            w.list[n++] = s;
    w.all[0] = w.most[0] = (NODE - 10) / RECORD;
    while (w.all[depth] < n) {
        unsigned pointer = 9 + w.under[depth];
        depth++;
        w.most[depth] = (NODE - 10 - pointer) / (RECORD + pointer);
        w.all[depth] = w.all[depth - 1] * (w.most[depth] + 1) + w.most[depth];
        w.under[depth] = w.all[depth] < 256 ? 1 : 2;
    }
    assert_int_equal(depth, 3);
    uint64_t root = tree2_node(&w, (unsigned)depth, 0, n, &own);
    h5_buf_put(&b, "BTHD", 4);
    h5_buf_u8(&b, 0);
    h5_buf_u8(&b, 10);
    h5_buf_u32(&b, NODE);
    h5_buf_u16(&b, RECORD);
    h5_buf_u16(&b, (unsigned)depth);
    h5_buf_u16(&b, 100 | 40 << 8);
    h5_buf_u64(&b, root);
    h5_buf_u16(&b, (unsigned)own);
    h5_buf_u64(&b, n);
    layout4(layout, 5);
    h5_buf_u32(layout, NODE);
    h5_buf_u16(layout, 100 | 40 << 8);
    h5_buf_u64(layout, put(t, &b, 1));
}

/* ---- extensible array: 4 elements in the index block, data blocks of 16 and more, pages of 64 */

enum { FIRST = 4, LEAST = 16, POINTERS = 4, PAGE = 64, SUPERS = 29, DIRECT = 4 };

typedef struct earray {
    t_h5 *t;
    const kind *k;
    uint64_t header, data;
} earray;

/* The slot of element e. */
static uint64_t slot_of(const kind *k, uint64_t e)
{
    return k->unlimited == 0 ? e : e % ROWS * COLS + e / ROWS;
}

static void put_element(const earray *a, h5_buf *b, uint64_t e)
{
    uint64_t slot = slot_of(a->k, e);
    int there = e < SLOTS && is_stored(slot);
    h5_buf_u64(b, there ? a->data + slot * CHUNK : H5_UNDEF);
}

static void block_head(const earray *a, h5_buf *b, const char *sig)
{
    h5_buf_put(b, sig, 4);
    h5_buf_u16(b, 0);
    h5_buf_u64(b, a->header);
}

static uint64_t data_block(const earray *a, uint64_t from, uint64_t n)
{
    h5_buf b = {0};
    block_head(a, &b, "EADB");
    h5_buf_u32(&b, (uint32_t)from);
    if (n <= PAGE)
        for (uint64_t i = 0; i < n; i++)
            put_element(a, &b, from + i);
    h5_sum_put(&b, 0);
    for (uint64_t p = 0; n > PAGE && p < n; p += PAGE) {
        size_t start = b.n;
        for (uint64_t i = 0; i < PAGE; i++)
            put_element(a, &b, from + p + i);
        h5_sum_put(&b, start);
    }
    return put(a->t, &b, 0);
}

static uint64_t super_block(const earray *a, unsigned u, uint64_t from)
{
    uint64_t blocks = 1u << u / 2, n = LEAST << (u + 1) / 2, at[64];
    h5_buf b = {0};
    block_head(a, &b, "EASB");
    h5_buf_u32(&b, (uint32_t)from);
    for (uint64_t i = 0; i < blocks; i++) {
        at[i] = from + i * n < SLOTS ? data_block(a, from + i * n, n) : H5_UNDEF;
        for (uint64_t p = 0; n > PAGE && p < n / PAGE; p += 8) // the last pages are not in use
            h5_buf_u8(&b, from + i * n + n <= SLOTS ? 0xFF : 0xF0);
    }
    for (uint64_t i = 0; i < blocks; i++)
        h5_buf_u64(&b, at[i]);
    return put(a->t, &b, 1);
}

static void build_earray(t_h5 *t, const kind *k, uint64_t data, h5_buf *layout)
{
    const uint8_t numbers[] = {0, 0, 8, 32, FIRST, LEAST, POINTERS, 6};
    const uint8_t in_layout[] = {32, FIRST, POINTERS, LEAST, 6};
    h5_buf head = {0}, b = {0};
    earray a = {t, k, (h5_writer_eof(t->w) + 7) / 8 * 8, data};
    uint64_t e = FIRST, at[SUPERS + 8], n = 0;
    uint8_t zeros[72] = {0};
    assert_int_equal(t_h5_bytes(t, zeros, sizeof zeros), a.header);
    for (unsigned u = 0; u < DIRECT; u++)
        for (uint64_t i = 0; i < 1u << u / 2; i++, e += LEAST << (u + 1) / 2)
            at[n++] = data_block(&a, e, LEAST << (u + 1) / 2);
    for (unsigned u = DIRECT; u < SUPERS; u++) {
        at[n++] = e < SLOTS ? super_block(&a, u, e) : H5_UNDEF;
        e += (uint64_t)LEAST << u;
    }
    block_head(&a, &b, "EAIB");
    for (uint64_t i = 0; i < FIRST; i++)
        put_element(&a, &b, i);
    for (uint64_t i = 0; i < n; i++)
        h5_buf_u64(&b, at[i]);
    uint64_t index = put(t, &b, 1);
    h5_buf_put(&head, "EAHD", 4);
    h5_buf_put(&head, numbers, sizeof numbers);
    h5_buf_put(&head, zeros, 48);
    h5_buf_u64(&head, index);
    h5_sum_put(&head, 0);
    T_OK(t, h5_writer_flush(t->w, &t->err));
    T_OK(t, t->io->write(t->io, a.header, head.p, head.n, &t->err));
    h5_buf_free(&head);
    layout4(layout, 4);
    h5_buf_put(layout, in_layout, sizeof in_layout);
    h5_buf_u64(layout, a.header);
}

/* ---- tests */

/* Blocks of metadata have 4 KiB: a look-up in a tree of small nodes may find several in one. */
static const kind kinds[] = {
    {"version 1 B-tree", -1, build_tree1, 7},
    {"version 2 B-tree", -1, build_tree2, 7},
    {"extensible array", 0, build_earray, 6},
    {"extensible array", 1, build_earray, 6},
};

/* A dataset of ROWS x COLS * CHUNK bytes over an index; *index_bytes what the index takes. */
static h5_object *make(t_h5 *t, const kind *k, uint64_t *data, uint64_t *index_bytes)
{
    static uint8_t v[SLOTS * CHUNK];
    uint64_t dims[2] = {ROWS, COLS * CHUNK}, most[2] = {ROWS, COLS * CHUNK}, at;
    h5_buf layout = {0}, b = {0};
    h5_type type = t_h5_type('u', 1);
    h5_object *o;
    for (size_t i = 0; i < sizeof v; i++)
        v[i] = (uint8_t)(i % 251 + 1);
    t_h5_begin(t);
    *data = t_h5_bytes(t, v, sizeof v);
    *index_bytes = h5_writer_eof(t->w);
    k->build(t, k, *data, &layout);
    *index_bytes = h5_writer_eof(t->w) - *index_bytes;
    if (k->unlimited >= 0)
        most[k->unlimited] = UINT64_MAX;
    size_t m = h5_ohdr_msg(&b, H5_MSG_SPACE, 0);
    h5_space_encode(&b, 2, dims, most);
    T_OK(t, h5_ohdr_msg_end(&b, m, &t->err));
    m = h5_ohdr_msg(&b, H5_MSG_TYPE, 0);
    h5_type_encode(&b, &type);
    T_OK(t, h5_ohdr_msg_end(&b, m, &t->err));
    m = h5_ohdr_msg(&b, H5_MSG_LAYOUT, 0);
    h5_buf_put(&b, layout.p, layout.n);
    T_OK(t, h5_ohdr_msg_end(&b, m, &t->err));
    T_OK(t, h5_ohdr_write(t->w, &b, &at, &t->err));
    h5_buf_free(&b);
    h5_buf_free(&layout);
    t_h5_open(t, t_h5_root(t, "x", at));
    T_OK(t, h5_object_find(t->f, "/x", &o, &t->err));
    assert_string_equal(h5_index_name(o), k->name);
    return o;
}

static void check_get(t_h5 *t, h5_cidx *ix, uint64_t data, uint64_t slot)
{
    const uint64_t at[2] = {slot / COLS, slot % COLS};
    h5_chunk c;
    T_OK(t, h5_cidx_get(ix, at, &c, &t->err));
    if (c.addr != (is_stored(slot) ? data + slot * CHUNK : H5_UNDEF))
        fail_msg("%s: slot %d at %d", h5_index_name(ix->o), (int)slot, (int)c.addr);
}

static void against_the_list(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        t_h5 t;
        t_rng r = t_rng_start(61);
        uint64_t data, bytes, start[2] = {7, 31}, count[2] = {33, 50};
        uint8_t part[33 * 50];
        h5_chunk *table;
        size_t n;
        h5_cidx ix;
        h5_object *o = make(&t, &kinds[i], &data, &bytes);
        T_OK(&t, h5_cidx_open(&ix, t.f, o, &t.err));
        for (uint64_t s = 0; s < SLOTS; s++)
            check_get(&t, &ix, data, s);
        for (int k = 0; k < 300; k++)
            check_get(&t, &ix, data, t_rng_below(&r, SLOTS));
        h5_cidx_close(&ix);
        T_OK(&t, h5_dataset_chunks(t.f, o, &table, &n, &t.err));
        assert_int_equal(n, SLOTS);
        for (uint64_t s = 0; s < SLOTS; s++)
            assert_true(is_stored(s) ? table[s].addr == data + s * CHUNK && table[s].size == CHUNK
                                     : table[s].addr == H5_UNDEF);
        h5_free(table);
        T_OK(&t, h5_dataset_read(t.f, o, start, count, part, sizeof part, &t.err));
        for (uint64_t e = 0; e < sizeof part; e++) {
            uint64_t from = (start[0] + e / 50) * COLS * CHUNK + start[1] + e % 50;
            assert_int_equal(part[e], is_stored(from / CHUNK) ? from % 251 + 1 : 0);
        }
        h5_object_close(o);
        t_h5_end(&t);
    }
}

/* One element reads the path to its chunk; a pass over all chunks reads the index about once. */
static void what_is_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        t_h5 t;
        uint64_t data, index_bytes, start[2] = {41, 79}, one[2] = {1, 1};
        uint8_t v;
        h5_chunk *table;
        size_t n;
        h5_file *f;
        h5_object *o = make(&t, &kinds[i], &data, &index_bytes);
        h5_object_close(o);
        t_io *counted = t_io_new(t.io);
        T_OK(&t, h5_file_open(&counted->io, &f, &t.err));
        T_OK(&t, h5_object_find(f, "/x", &o, &t.err));
        counted->reads = 0;
        counted->read_bytes = 0;
        T_OK(&t, h5_dataset_read(f, o, start, one, &v, 1, &t.err));
        assert_int_equal(v, (start[0] * COLS * CHUNK + start[1]) % 251 + 1);
        assert_in_range(counted->reads, 1, kinds[i].most_reads);
        assert_true(counted->read_bytes <= (uint64_t)kinds[i].most_reads * 2 * H5_META_LEAST);
        counted->read_bytes = 0;
        T_OK(&t, h5_dataset_chunks(f, o, &table, &n, &t.err));
        h5_free(table);
        assert_true(counted->read_bytes <= 4 * index_bytes);
        h5_object_close(o);
        h5_file_close(f);
        t.io = &counted->io;
        t_h5_end(&t);
    }
}

/* A byte of the index changed, one after the other: an error or chunks inside the file. */
static void damaged(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        t_h5 t;
        uint64_t data, bytes;
        int errors = 0;
        h5_object *o = make(&t, &kinds[i], &data, &bytes);
        for (uint64_t at = data + SLOTS * CHUNK; at < data + SLOTS * CHUNK + bytes; at += 97) {
            uint8_t was, now;
            h5_chunk *table;
            size_t n;
            T_OK(&t, t.io->read(t.io, at, &was, 1, &t.err));
            now = was ^ 0x40;
            T_OK(&t, t.io->write(t.io, at, &now, 1, &t.err));
            int rc = h5_dataset_chunks(t.f, o, &table, &n, NULL);
            assert_true(rc == H5_OK || rc == H5_FORMAT || rc == H5_LIMIT);
            for (size_t k = 0; k < n; k++)
                assert_true(table[k].addr == H5_UNDEF ||
                            table[k].addr + table[k].size <= h5_file_eof(t.f));
            h5_free(table);
            errors += rc != H5_OK;
            T_OK(&t, t.io->write(t.io, at, &was, 1, &t.err));
        }
        assert_true(errors > 20);
        h5_object_close(o);
        t_h5_end(&t);
    }
}

/* Pointers of a version 1 B-tree that all lead to one node: no more is read than the limit says. */
static void nodes_that_meet(void **state)
{
    (void)state;
    t_h5 t;
    uint64_t data, bytes, child;
    h5_chunk *table;
    size_t n;
    uint8_t head[8];
    h5_object *o = make(&t, &kinds[0], &data, &bytes);
    uint64_t root = h5_object_dataset(o)->addr;
    T_OK(&t, t.io->read(t.io, root, head, 8, &t.err));
    T_OK(&t, t.io->read(t.io, root + 24 + 32, &child, 8, &t.err));
    for (int i = 1; i < head[6]; i++)
        T_OK(&t, t.io->write(t.io, root + 24 + 32 + 40 * (uint64_t)i, &child, 8, &t.err));
    T_OK(&t, h5_dataset_chunks(t.f, o, &table, &n, &t.err));
    assert_int_equal(table[SLOTS - 1].addr, H5_UNDEF); // its keys are not there
    h5_free(table);
    // A root that is its own child is of the wrong level.
    T_OK(&t, t.io->write(t.io, root + 24 + 32, &root, 8, &t.err));
    T_FAILS(&t, H5_FORMAT, "level", h5_dataset_chunks(t.f, o, &table, &n, &t.err));
    h5_object_close(o);
    t_h5_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(against_the_list),
        cmocka_unit_test(what_is_read),
        cmocka_unit_test(damaged),
        cmocka_unit_test(nodes_that_meet),
    };
    return cmocka_run_group_tests_name("h5_index", tests, NULL, NULL);
}
