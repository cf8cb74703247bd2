/*
 * t_vec_run_merge.c - a merge is byte for byte the image that the live rows alone would give
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
#include "vec_run.h"

enum { RUNS_MAX = 20 };

typedef struct runs {
    vec_run *run[RUNS_MAX];
    uint8_t *bytes[RUNS_MAX];
    size_t n;
} runs;

/* The image of rows from..to-1; only live ones when asked. */
static uint8_t *image(const t_corpus *c, int from, int to, int live_only, size_t *n)
{
    uint8_t *bytes;
    vec_text *t;

    assert_int_equal(vec_text_new(&t), VEC_OK);
    for (int i = from; i < to; i++)
        if (!live_only || c->doc[i].live)
            assert_int_equal(t_corpus_add(c, i, 0, t), VEC_OK);
    assert_int_equal(vec_text_image(t, &bytes, n), VEC_OK);
    vec_text_free(t);
    return bytes;
}

/* Cuts the corpus into n runs at random places; some may be empty. */
static runs cut(const t_corpus *c, t_rng *r, size_t n)
{
    runs s = {.n = n};
    int at = 0;

    for (size_t i = 0; i < n; i++) {
        int to = i + 1 == n ? c->n : at + (int)t_rng_below(r, (uint64_t)(c->n - at) / 2 + 1);
        size_t size;

        s.bytes[i] = image(c, at, to, 0, &size);
        assert_int_equal(vec_run_open(s.bytes[i], size, &s.run[i]), VEC_OK);
        at = to;
    }
    return s;
}

static void runs_free(runs *s)
{
    for (size_t i = 0; i < s->n; i++) {
        vec_run_close(s->run[i]);
        vec_free(s->bytes[i]);
    }
}

static void equals_the_image_of_live_rows(void **state)
{
    t_rng r = t_rng_start(111);

    (void)state;
    for (int round = 0; round < 120; round++) {
        double dead = round % 4 == 3 ? 1.1 : t_rng_unit(&r) * (round % 4);
        t_corpus c = t_corpus_new(&r, (int)t_rng_below(&r, 400), 150, 1 + round % 3, dead);
        runs s = cut(&c, &r, 1 + t_rng_below(&r, RUNS_MAX));
        size_t n, want_n;
        uint8_t *want = image(&c, 0, c.n, 1, &want_n), *bytes;

        assert_int_equal(vec_run_merge(s.run, s.n, c.live, &bytes, &n), VEC_OK);
        assert_int_equal(n, want_n);
        assert_memory_equal(bytes, want, n);
        vec_free(bytes);
        vec_free(want);
        want = image(&c, 0, c.n, 0, &want_n);
        assert_int_equal(vec_run_merge(s.run, s.n, NULL, &bytes, &n), VEC_OK);
        assert_int_equal(n, want_n);
        assert_memory_equal(bytes, want, n);
        vec_free(bytes);
        vec_free(want);
        runs_free(&s);
        t_corpus_free(&c);
    }
}

static void no_runs_make_an_empty_image(void **state)
{
    t_corpus none = {0};
    size_t n, want_n;
    uint8_t *want = image(&none, 0, 0, 0, &want_n), *bytes;

    (void)state;
    assert_int_equal(vec_run_merge(NULL, 0, NULL, &bytes, &n), VEC_OK);
    assert_int_equal(n, want_n);
    assert_memory_equal(bytes, want, n);
    vec_free(bytes);
    vec_free(want);
}

static void order_is_required(void **state)
{
    t_rng r = t_rng_start(112);
    t_corpus c = t_corpus_new(&r, 90, 50, 1, 0);
    runs s = {.n = 3};
    uint8_t *bytes = s.bytes[0];
    vec_run *twice[2], *back[2];
    size_t n;

    (void)state;
    for (int i = 0; i < 3; i++) {
        s.bytes[i] = image(&c, 30 * i, 30 * i + 30, 0, &n);
        assert_int_equal(vec_run_open(s.bytes[i], n, &s.run[i]), VEC_OK);
    }
    twice[0] = twice[1] = s.run[1];
    back[0] = s.run[2];
    back[1] = s.run[1];
    assert_int_equal(vec_run_merge(twice, 2, NULL, &bytes, &n), VEC_MISUSE);
    assert_null(bytes);
    assert_int_equal(vec_run_merge(back, 2, NULL, &bytes, &n), VEC_MISUSE);
    assert_int_equal(n, 0);
    runs_free(&s);
    t_corpus_free(&c);
}

/* Two runs so far apart that one could not hold both. */
static void the_span_is_limited(void **state)
{
    static const uint64_t rows[] = {5, (uint64_t)5 + VEC_RUN_SPAN_MAX + 1};
    uint8_t *bytes[2], *merged;
    uint64_t *live = calloc(rows[1] / 64 + 1, sizeof *live); // half a gigabyte, hardly touched
    vec_run *run[2];
    size_t n;

    (void)state;
    assert_non_null(live);
    for (int i = 0; i < 2; i++) {
        vec_text *t;

        assert_int_equal(vec_text_new(&t), VEC_OK);
        assert_int_equal(vec_text_add(t, rows[i], (const uint8_t *)"\x02w", 2), VEC_OK);
        assert_int_equal(vec_text_image(t, &bytes[i], &n), VEC_OK);
        assert_int_equal(vec_run_open(bytes[i], n, &run[i]), VEC_OK);
        vec_text_free(t);
    }
    assert_int_equal(vec_run_merge(run, 2, NULL, &merged, &n), VEC_LIMIT);
    assert_null(merged);
    live[rows[1] / 64] |= (uint64_t)1 << rows[1] % 64; // only the second lives: it fits
    assert_int_equal(vec_run_merge(run, 2, live, &merged, &n), VEC_OK);
    vec_free(merged);
    for (int i = 0; i < 2; i++) {
        vec_run_close(run[i]);
        vec_free(bytes[i]);
    }
    free(live);
}

static void want_of_memory(void **state)
{
    t_rng r = t_rng_start(113);
    t_corpus c = t_corpus_new(&r, 200, 100, 2, 0.3);
    runs s = cut(&c, &r, 5);

    (void)state;
    for (long fail = 1;; fail++) {
        t_alloc a = {.fail_at = fail};
        vec_allocator hook = {t_alloc_get, t_alloc_resize, t_alloc_release, &a};
        uint8_t *bytes;
        size_t n;
        int rc;

        vec_set_allocator(&hook);
        rc = vec_run_merge(s.run, s.n, c.live, &bytes, &n);
        assert_int_equal(bytes != NULL, rc == VEC_OK);
        vec_free(bytes);
        vec_set_allocator(NULL);
        assert_int_equal(a.live, 0);
        if (a.count < fail) {
            assert_int_equal(rc, VEC_OK);
            break;
        }
        assert_int_equal(rc, VEC_NOMEM);
    }
    runs_free(&s);
    t_corpus_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_the_image_of_live_rows),
        cmocka_unit_test(no_runs_make_an_empty_image),
        cmocka_unit_test(order_is_required),
        cmocka_unit_test(the_span_is_limited),
        cmocka_unit_test(want_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
