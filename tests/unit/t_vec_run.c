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
    vec_bm25_args a = {&src, 1, NULL, 0, live, NULL, NROW, VEC_BM25_K1, VEC_BM25_B, NULL, NULL};
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
        cmocka_unit_test(every_prefix),       cmocka_unit_test(every_byte_changed),
        cmocka_unit_test(many_bytes_changed), cmocka_unit_test(headers_that_overflow),
        cmocka_unit_test(an_empty_image),     cmocka_unit_test(wide_lengths),
        cmocka_unit_test(want_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
