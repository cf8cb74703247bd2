/*
 * t_vec_topk.c - the k best of all that was pushed, against sorting everything
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "t_alloc.h"
#include "t_rng.h"
#include "vec.h"

static int by_key_then_id(const void *a, const void *b)
{
    const vec_hit *x = a, *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

/* n hits whose keys take about `keys` values; ids are distinct and in random order. */
static vec_hit *random_hits(t_rng *r, size_t n, uint64_t keys)
{
    vec_hit *h = malloc((n + 1) * sizeof *h);

    for (size_t i = 0; i < n; i++) {
        size_t j = t_rng_below(r, i + 1);

        h[i].id = j == i ? (int64_t)i : h[j].id;
        h[j].id = (int64_t)i;
        h[i].key = 0;
    }
    for (size_t i = 0; i < n; i++) {
        h[i].key = (double)t_rng_below(r, keys) - (double)keys / 2;
        h[i].id -= (int64_t)n / 2;
        h[i].row = (uint64_t)h[i].id * 3;
    }
    return h;
}

static void check(vec_hit *h, size_t n, size_t k)
{
    const vec_hit *got;
    vec_topk *t;

    assert_int_equal(vec_topk_new(k, &t), VEC_OK);
    for (size_t i = 0; i < n; i++) {
        double bound = vec_topk_bound(t);

        if (k == 0)
            assert_true(bound == -INFINITY);
        else if (i < k)
            assert_true(bound == INFINITY);
        assert_int_equal(vec_topk_push(t, &h[i]), VEC_OK);
    }
    qsort(h, n, sizeof *h, by_key_then_id);
    if (k && n >= k)
        assert_true(vec_topk_bound(t) == h[k - 1].key);
    assert_int_equal(vec_topk_take(t, &got), n < k ? n : k);
    for (size_t i = 0; i < (n < k ? n : k); i++) {
        assert_true(got[i].key == h[i].key);
        assert_int_equal(got[i].id, h[i].id);
        assert_int_equal(got[i].row, h[i].row);
    }
    assert_int_equal(vec_topk_push(t, &(vec_hit){0, 0, 0}), VEC_MISUSE);
    assert_int_equal(vec_topk_take(t, &got), n < k ? n : k); // again: the same
    vec_topk_free(t);
}

static void equals_sorting(void **state)
{
    static const uint64_t keys[] = {1, 2, 30, UINT64_C(1) << 40};
    t_rng r = t_rng_start(31);

    (void)state;
    for (int round = 0; round < 600; round++) {
        size_t n = t_rng_below(&r, 400), k = t_rng_below(&r, t_rng_below(&r, 2) ? 12 : 500);
        vec_hit *h = random_hits(&r, n, keys[round % 4]);

        if (round % 5 == 0)
            qsort(h, n, sizeof *h, by_key_then_id);
        for (size_t i = 0; round % 10 == 0 && i < n / 2; i++) {
            vec_hit x = h[i];

            h[i] = h[n - 1 - i];
            h[n - 1 - i] = x;
        }
        check(h, n, k);
        free(h);
    }
}

static void infinite_keys_are_keys(void **state)
{
    vec_hit h[] = {{INFINITY, 4, 0}, {-INFINITY, 3, 0}, {INFINITY, 2, 0},
                   {1, 1, 0},        {-0.0, 9, 0},      {0.0, 8, 0}};

    (void)state;
    for (size_t k = 0; k <= 7; k++) {
        vec_hit copy[6];

        memcpy(copy, h, sizeof h);
        check(copy, 6, k);
    }
}

static void nan_is_refused(void **state)
{
    const vec_hit *got;
    vec_topk *t;

    (void)state;
    assert_int_equal(vec_topk_new(2, &t), VEC_OK);
    assert_int_equal(vec_topk_push(t, &(vec_hit){NAN, 0, 0}), VEC_MISUSE);
    assert_int_equal(vec_topk_take(t, &got), 0);
    vec_topk_free(t);
    vec_topk_free(NULL);
}

static void huge_k_costs_nothing(void **state)
{
    t_alloc a = {0};
    vec_allocator hook = {t_alloc_get, t_alloc_resize, t_alloc_release, &a};
    const vec_hit *got;
    vec_topk *t;

    (void)state;
    vec_set_allocator(&hook);
    assert_int_equal(vec_topk_new(SIZE_MAX, &t), VEC_OK);
    for (int i = 0; i < 100; i++)
        assert_int_equal(vec_topk_push(t, &(vec_hit){-i, i, 0}), VEC_OK);
    assert_in_range(a.count, 2, 6);
    assert_int_equal(vec_topk_take(t, &got), 100);
    assert_int_equal(got[0].id, 99);
    vec_topk_free(t);
    vec_set_allocator(NULL);
    assert_int_equal(a.live, 0);
}

static void want_of_memory_leaves_it_usable(void **state)
{
    (void)state;
    for (long fail = 1;; fail++) {
        t_alloc a = {.fail_at = fail};
        vec_allocator hook = {t_alloc_get, t_alloc_resize, t_alloc_release, &a};
        const vec_hit *got;
        size_t held = 0;
        vec_topk *t;
        int rc, bad = 0;

        vec_set_allocator(&hook);
        rc = vec_topk_new(50, &t);
        if (rc) {
            assert_int_equal(rc, VEC_NOMEM);
            assert_null(t);
            bad++;
        } else {
            for (int i = 0; i < 60; i++) {
                rc = vec_topk_push(t, &(vec_hit){i, i, 0});
                assert_true(rc == VEC_OK || rc == VEC_NOMEM);
                held += rc == VEC_OK;
                bad += rc != VEC_OK;
            }
            assert_int_equal(vec_topk_take(t, &got), held < 50 ? held : 50);
            vec_topk_free(t);
        }
        vec_set_allocator(NULL);
        assert_int_equal(a.live, 0);
        if (a.count < fail) {
            assert_int_equal(bad, 0);
            break;
        }
        assert_int_equal(bad, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_sorting),
        cmocka_unit_test(infinite_keys_are_keys),
        cmocka_unit_test(nan_is_refused),
        cmocka_unit_test(huge_k_costs_nothing),
        cmocka_unit_test(want_of_memory_leaves_it_usable),
    };

    vec_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
