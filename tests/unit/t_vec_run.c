/*
 * t_vec_run.c - hostile images: whatever the bytes say, every call comes back with a known code,
 * reads nothing outside and gives rows that can be
 *
 * Each image is copied in front of an unmapped page. Every prefix of a good one, every byte of it
 * changed in several ways, and headers made up to overflow.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define VEC_ALLOW_MALLOC
#include "t_alloc.h"
#include "t_corpus.h"
#include "t_guard.h"
#include "vec_run.h"

enum { WORDS = 60 };

static int known(int rc)
{
    assert_true(rc == VEC_OK || rc == VEC_FORMAT || rc == VEC_LIMIT || rc == VEC_MISUSE);
    return rc;
}

/* Searches a run whose rows lie below 2^16; what comes out must be live rows with sane scores. */
static void search(const vec_run *run, int dense)
{
    enum { NROW = 1 << 16 };
    static uint64_t live[NROW / 64];
    int words[] = {0, 1, 2, 3, 5, 7, 20, 2, 59};
    vec_source src = {run, NULL, 0, dense};
    vec_bm25_args a = {&src, 1,           NULL,       0,    live, NULL,
                       NROW, VEC_BM25_K1, VEC_BM25_B, NULL, NULL, NULL};
    uint8_t *query = t_stream(words, NULL, 9, &a.nquery);
    vec_hit *hits;
    size_t n;

    memset(live, 0xdb, sizeof live);
    a.query = query;
    if (known(vec_bm25(&a, &hits, &n)) != VEC_OK)
        assert_null(hits);
    for (size_t i = 0; hits && i < n; i++) {
        assert_true(hits[i].key < 0 && hits[i].row < NROW);
        assert_true(live[hits[i].row / 64] >> hits[i].row % 64 & 1);
    }
    vec_free(hits);
    free(query);
}

/* Everything that can be done with an image; whether it opens, checks, and merges is up to it. */
static int use(const uint8_t *bytes, size_t n)
{
    t_guard g = t_guard_copy(bytes, n);
    vec_run *run, *pair[1];
    uint8_t *merged;
    size_t size;
    int rc = known(vec_run_open(g.p, n, &run)), good = 0;

    if (rc) {
        assert_null(run);
        t_guard_free(&g);
        return 0;
    }
    assert_true(vec_run_first(run) <= vec_run_last(run));
    good = known(vec_run_check(run)) == VEC_OK;
    search(run, 0);
    search(run, 1);
    pair[0] = run;
    rc = known(vec_run_merge(pair, 1, NULL, &merged, &size));
    if (good)
        assert_int_equal(rc, VEC_OK);
    if (rc == VEC_OK) {
        vec_run *again;

        assert_int_equal(vec_run_open(merged, size, &again), VEC_OK);
        // Lengths are not checked against counts while merging.
        assert_true(!good || vec_run_check(again) == VEC_OK);
        vec_run_close(again);
        vec_free(merged);
    }
    vec_run_close(run);
    t_guard_free(&g);
    return good;
}

/* A small image with everything in it: gaps or none, single blocks and several. */
static uint8_t *image(uint64_t seed, int rows, int gap, size_t *n)
{
    t_rng r = t_rng_start(seed);
    t_corpus c = t_corpus_new(&r, rows, WORDS, gap, 0);
    uint8_t *bytes;
    vec_text *t;

    assert_int_equal(vec_text_new(&t), VEC_OK);
    for (int i = 0; i < c.n; i++)
        assert_int_equal(t_corpus_add(&c, i, 0, t), VEC_OK);
    assert_int_equal(vec_text_image(t, &bytes, n), VEC_OK);
    vec_text_free(t);
    t_corpus_free(&c);
    return bytes;
}

static void every_prefix(void **state)
{
    (void)state;
    for (int gap = 1; gap <= 3; gap += 2) {
        size_t n;
        uint8_t *bytes = image(101, 40, gap, &n), *longer = malloc(n + 1);

        assert_true(use(bytes, n));
        for (size_t cut = 0; cut < n; cut++) {
            vec_run *run;
            t_guard g = t_guard_copy(bytes, cut);

            assert_int_equal(vec_run_open(g.p, cut, &run), VEC_FORMAT);
            assert_null(run);
            t_guard_free(&g);
        }
        memcpy(longer, bytes, n);
        longer[n] = 0;
        assert_false(use(longer, n + 1));
        free(longer);
        vec_free(bytes);
    }
}

static void flip_all(uint8_t *bytes, size_t n, t_rng *r)
{
    for (size_t i = 0; i < n; i++) {
        uint8_t was = bytes[i],
                values[6] = {
                    (uint8_t)~was, (uint8_t)(was ^ 1),    (uint8_t)(was + 1), (uint8_t)(was - 1),
                    0xff,          (uint8_t)t_rng_next(r)};

        for (int v = 0; v < 6; v++) {
            bytes[i] = values[v];
            use(bytes, n);
        }
        bytes[i] = was;
    }
}

static void every_byte_changed(void **state)
{
    t_rng r = t_rng_start(102);

    (void)state;
    for (int gap = 1; gap <= 3; gap += 2) {
        size_t n;
        uint8_t *bytes = image(103, 25, gap, &n);

        flip_all(bytes, n, &r);
        assert_true(use(bytes, n)); // all as it was
        vec_free(bytes);
    }
}

/* Several at once, in an image with lists of many blocks. */
static void many_bytes_changed(void **state)
{
    t_rng r = t_rng_start(104);

    (void)state;
    for (int gap = 1; gap <= 3; gap += 2) {
        size_t n;
        uint8_t *bytes = image(105, 700, gap, &n), *copy = malloc(n);

        assert_true(use(bytes, n));
        for (int round = 0; round < 1500; round++) {
            memcpy(copy, bytes, n);
            for (uint64_t k = 1 + t_rng_below(&r, 6); k > 0; k--)
                copy[t_rng_below(&r, round % 2 ? n : n / 8)] = (uint8_t)t_rng_next(&r);
            use(copy, n);
        }
        free(copy);
        vec_free(bytes);
    }
}

/* Every u32 of the header set to values that make sums and products overflow. */
static void headers_that_overflow(void **state)
{
    static const uint32_t values[] = {0,          1,          0x7fffffff, 0x80000000, 0xfffffffe,
                                      0xffffffff, 0x3fffffff, 0x40000000, 0x20000000, 65536};
    enum { COUNT = sizeof values / sizeof *values };
    size_t n;
    uint8_t *bytes = image(106, 20, 3, &n), *copy = malloc(n);

    (void)state;
    for (int a = 8; a < VEC_RUN_HEADER; a += 4) {
        for (int b = a; b < VEC_RUN_HEADER; b += 4) {
            for (int v = 0; v < COUNT * COUNT; v++) {
                memcpy(copy, bytes, n);
                vec_put32(copy + a, values[v % COUNT]);
                vec_put32(copy + b, values[v / COUNT]);
                use(copy, n);
            }
        }
    }
    free(copy);
    vec_free(bytes);
}

/* --------------------------------------------------------------------------------- lies by hand */

/* An image of given rows and terms, whatever they are; post may contradict itself. */
typedef struct lie {
    uint32_t nrow;
    uint32_t off[4];     // row numbers minus first of the first rows; the rest follow
    uint32_t span;       // written over the header when not 0
    const char *term[3]; // in this order
    uint8_t post[3][16]; // of each term
    size_t npost[3];
    int longer; // the last term ends so many bytes later
} lie;

static uint8_t *image_of(const lie *l, size_t *n)
{
    uint8_t *off = calloc(l->nrow, 4), *len = calloc(l->nrow, 4), *ext = calloc(l->nrow, 4), *bytes;
    vec_runw w = {0};

    for (uint32_t i = 0; i < l->nrow; i++) {
        vec_put32(off + 4 * i, i < 4 ? l->off[i] : l->off[3] + i - 3);
        vec_put32(len + 4 * i, 1);
    }
    for (int t = 0; t < 3 && l->term[t]; t++) {
        const vec_post one = {0, 1, 0};
        const uint32_t pos = 0;

        assert_int_equal(vec_runw_term(&w, (const uint8_t *)l->term[t],
                                       (uint32_t)strlen(l->term[t]), &one, 1, &pos, len),
                         VEC_OK);
        if (!l->npost[t])
            continue;
        w.posts.n = vec_get32(w.post_off.p + w.post_off.n - 4);
        assert_int_equal(vec_buf_add(&w.posts, l->post[t], l->npost[t]), VEC_OK);
    }
    for (int i = 0; i < l->longer; i++)
        assert_int_equal(vec_buf_add(&w.terms, "x", 1), VEC_OK);
    assert_int_equal(vec_runw_image(&w, 100, l->nrow, off, len, ext, &bytes, n), VEC_OK);
    if (l->span)
        vec_put32(bytes + 28, l->span);
    vec_runw_free(&w);
    free(off);
    free(len);
    free(ext);
    return bytes;
}

/* Checking and merging both say no; searching comes back. */
static void refused(const lie *l)
{
    size_t n, size;
    uint8_t *bytes = image_of(l, &n), *merged;
    t_guard g = t_guard_copy(bytes, n);
    vec_run *run;

    assert_int_equal(vec_run_open(g.p, n, &run), VEC_OK);
    assert_int_equal(vec_run_check(run), VEC_FORMAT);
    assert_int_equal(vec_run_merge(&run, 1, NULL, &merged, &size), VEC_FORMAT);
    assert_null(merged);
    search(run, 0);
    search(run, 1);
    vec_run_close(run);
    t_guard_free(&g);
    vec_free(bytes);
}

static void lies_are_found(void **state)
{
    static const lie lies[] = {
        {.nrow = 3, .off = {0, 1, 2}, .term = {"w1", "w0"}},      // terms descend
        {.nrow = 3, .off = {0, 1, 2}, .term = {"w0", "w0"}},      // a term comes twice
        {.nrow = 3, .off = {0, 7, 7}, .term = {"w0"}},            // a row comes twice
        {.nrow = 3, .off = {0, 7, 3}, .span = 7, .term = {"w0"}}, // rows descend
        {.nrow = 3, .off = {0, 7, 9}, .span = 8, .term = {"w0"}}, // a row beyond the last
        {.nrow = 3, .off = {0, 1, 2}, .term = {"w0"}, .post = {{0}}, .npost = {3}}, // df 0
        {.nrow = 3, .off = {0, 1, 2}, .term = {"w0"}, .post = {{4}}, .npost = {3}}, // df 4
        {.nrow = 3, .off = {0, 1, 2}, .term = {"w0"}, .post = {{0x81, 0}}, .npost = {4}},
        {.nrow = 3, .off = {0, 1, 2}, .term = {"w0"}, .post = {{1}}, .npost = {2}}, // no widths
        {.nrow = 3,
         .off = {0, 1, 2},
         .term = {"w0"},
         .post = {{1, 2, 0, 3}},
         .npost = {4}}, // row 3
        {.nrow = 3,
         .off = {0, 1, 2},
         .term = {"w0"},
         .post = {{1, 0, 0, 33}},
         .npost = {4}}, // positions of 33 bits
        {.nrow = 3, .off = {0, 1, 2}, .term = {"w0"}, .post = {{1, 0, 0}}, .npost = {3}}, // none
        {.nrow = 3,
         .off = {0, 1, 2},
         .term = {"w0"},
         .post = {{1, 0, 1, 1, 2, 0}}, // two occurrences at the positions 0 and 0
         .npost = {6}},
        {.nrow = 3, .off = {0, 1, 2}, .term = {"w0"}, .post = {{1, 33}}, .npost = {8}},
        {.nrow = 3, .off = {0, 1, 2}, .term = {"w0"}, .post = {{1, 0, 33}}, .npost = {8}},
        {.nrow = 3, .off = {0, 1, 2}, .term = {"w0"}, .longer = VEC_TERM_MAX - 1},
        // 5000 postings, whose forty skips would not fit
        {.nrow = 5000, .off = {0, 1, 2, 3}, .term = {"w0"}, .post = {{0x88, 0x27}}, .npost = {12}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++)
        refused(&lies[i]);
}

/* The offset tables and skips of an image with lists of several blocks: each pair of neighbours is
 * set to point far outside, out of order, and past the longest term. */
static void offsets_that_point_outside(void **state)
{
    static const uint32_t values[][2] = {{0x7ffffff0, 0x7ffffff8}, {0x40000, 0x40010}, {9, 8},
                                         {0, 0xffffffff},          {0, 2000},          {1, 0}};
    size_t n;
    uint8_t *bytes = image(108, 700, 1, &n), *copy = malloc(n);
    vec_run *run;

    (void)state;
    assert_int_equal(vec_run_open(bytes, n, &run), VEC_OK);
    for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
        for (uint32_t i = 0; i < 2 * run->nterm; i++) {
            memcpy(copy, bytes, n);
            vec_put32(copy + (run->term_off - bytes) + 4 * i, values[v][0]);
            vec_put32(copy + (run->term_off - bytes) + 4 * i + 4, values[v][1]);
            assert_false(use(copy, n));
        }
        for (uint32_t i = 0; i < run->nterm; i++) {
            vec_ref ref;
            vec_cursor c;

            assert_int_equal(vec_run_ref(run, i, &ref), VEC_OK);
            assert_int_equal(vec_cursor_open(&c, &ref, run->part.nrow), VEC_OK);
            for (uint32_t b = 0; c.skips && b + 1 < c.nblock; b++) {
                uint8_t *skip = copy + (c.skips - bytes) + VEC_SKIP_BYTES * b;

                for (uint32_t field = 4; field <= 8; field += 4) { // the block, its positions
                    memcpy(copy, bytes, n);
                    vec_put32(skip + field, values[v][0]);
                    vec_put32(skip + field + VEC_SKIP_BYTES, values[v][1]);
                    assert_false(use(copy, n));
                }
            }
        }
    }
    vec_run_close(run);
    free(copy);
    vec_free(bytes);
}

/* The second block of a list begins behind the image, and a search jumps right to it. */
static void blocks_that_lie_outside(void **state)
{
    const uint8_t w0[] = {'w', '0'};
    size_t n;
    uint8_t *bytes = image(109, 700, 1, &n);
    t_guard g = t_guard_copy(bytes, n);
    vec_run *run;
    vec_ref ref;
    vec_cursor c;

    (void)state;
    assert_int_equal(vec_run_open(g.p, n, &run), VEC_OK);
    assert_int_equal(vec_run_find(run, w0, 2, &ref), VEC_OK);
    assert_int_equal(vec_cursor_open(&c, &ref, run->part.nrow), VEC_OK);
    assert_true(c.nblock > 2);
    for (uint32_t past = 0; past < 2000; past += 50) {
        uint32_t from = (uint32_t)(g.p + n - c.blocks) + past;
        uint8_t *skip = g.p + (c.skips - g.p);

        vec_put32(skip, 0);
        vec_put32(skip + 4, from);
        vec_put32(skip + VEC_SKIP_BYTES + 4, from + 20);
        assert_int_equal(vec_cursor_open(&c, &ref, run->part.nrow), VEC_OK);
        assert_int_equal(vec_cursor_seek(&c, 1), VEC_FORMAT);
        assert_int_equal(c.n, 0);
    }
    vec_run_close(run);
    t_guard_free(&g);
    vec_free(bytes);
}

static void an_empty_image(void **state)
{
    uint8_t *bytes;
    vec_text *t;
    vec_run *run;
    size_t n;

    (void)state;
    assert_int_equal(vec_text_new(&t), VEC_OK);
    assert_int_equal(vec_text_image(t, &bytes, &n), VEC_OK);
    assert_int_equal(n, VEC_RUN_HEADER + 8 + VEC_RUN_TAIL);
    assert_true(use(bytes, n));
    assert_int_equal(vec_run_open(bytes, n, &run), VEC_OK);
    assert_int_equal(vec_run_rows(run), 0);
    assert_int_equal(vec_run_first(run), 0);
    assert_int_equal(vec_run_last(run), 0);
    vec_run_close(run);
    vec_run_close(NULL);
    vec_free(bytes);
    vec_text_free(t);
}

/* Rows long enough for lengths of two and four bytes. */
static void wide_lengths(void **state)
{
    static const size_t counts[] = {255, 256, 65535, 65536};
    static const unsigned sizes[] = {1, 2, 2, 4};

    (void)state;
    for (int i = 0; i < 4; i++) {
        uint8_t *stream = malloc(2 * counts[i]), *bytes;
        vec_text *t;
        vec_run *run;
        vec_ref ref;
        vec_cursor c;
        size_t n = 0;

        for (size_t k = 0; k < counts[i]; k++)
            n += vec_token_put(stream + n, "a", 1, 0);
        assert_int_equal(vec_text_new(&t), VEC_OK);
        assert_int_equal(vec_text_add(t, 9, stream, n), VEC_OK);
        assert_int_equal(vec_text_add(t, 10, NULL, 0), VEC_OK);
        assert_int_equal(vec_text_image(t, &bytes, &n), VEC_OK);
        assert_int_equal(vec_run_open(bytes, n, &run), VEC_OK);
        assert_int_equal(vec_run_check(run), VEC_OK);
        assert_int_equal(run->part.len_size, sizes[i]);
        assert_int_equal(vec_part_len(&run->part, 0), counts[i]);
        assert_int_equal(vec_part_len(&run->part, 1), 0);
        assert_int_equal(vec_run_find(run, (const uint8_t *)"a", 1, &ref), VEC_OK);
        assert_int_equal(vec_cursor_open(&c, &ref, 2), VEC_OK);
        assert_int_equal(vec_cursor_next(&c), 1);
        assert_int_equal(vec_cursor_tf(&c, 0), counts[i]);
        search(run, 0);
        vec_run_close(run);
        vec_free(bytes);
        vec_text_free(t);
        free(stream);
    }
}

static void want_of_memory(void **state)
{
    t_alloc a = {.fail_at = 1};
    vec_allocator hook = {t_alloc_get, t_alloc_resize, t_alloc_release, &a};
    size_t n;
    uint8_t *bytes = image(107, 5, 1, &n);
    vec_run *run;

    (void)state;
    vec_set_allocator(&hook);
    assert_int_equal(vec_run_open(bytes, n, &run), VEC_NOMEM);
    assert_null(run);
    vec_set_allocator(NULL);
    assert_int_equal(a.live, 0);
    vec_free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_prefix),
        cmocka_unit_test(every_byte_changed),
        cmocka_unit_test(many_bytes_changed),
        cmocka_unit_test(headers_that_overflow),
        cmocka_unit_test(lies_are_found),
        cmocka_unit_test(offsets_that_point_outside),
        cmocka_unit_test(blocks_that_lie_outside),
        cmocka_unit_test(an_empty_image),
        cmocka_unit_test(wide_lengths),
        cmocka_unit_test(want_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
