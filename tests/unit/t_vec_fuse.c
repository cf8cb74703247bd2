/*
 * t_vec_fuse.c - reciprocal-rank fusion against the sum written out
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

#include "t_alloc.h"
#include "t_rng.h"
#include "vec.h"

enum { LISTS = 4, ROWS = 200 };

/* A ranking of some of the rows below nrow, each once. */
static vec_list random_list(t_rng *r, uint64_t nrow)
{
    vec_hit *h = malloc((nrow + 1) * sizeof *h);
    vec_list l = {.hits = h, .weight = t_rng_unit(r) * 2};
    double share = t_rng_unit(r);

    for (uint64_t row = 0; row < nrow; row++)
        if (t_rng_unit(r) < share)
            h[l.n++] = (vec_hit){0, (int64_t)row * 5 - 7, row};
    for (size_t i = l.n; i-- > 1;) {
        size_t j = t_rng_below(r, i + 1);
        vec_hit x = h[i];

        h[i] = h[j];
        h[j] = x;
    }
    return l;
}

static void check(const vec_list *lists, size_t nlist, double k, uint64_t nrow)
{
    double want[ROWS] = {0};
    int there[ROWS] = {0};
    size_t n, count = 0;
    vec_hit *out;

    for (size_t l = 0; l < nlist; l++) {
        for (size_t i = 0; i < lists[l].n; i++) {
            uint64_t row = lists[l].hits[i].row;

            want[row] += lists[l].weight / (k + (double)(i + 1));
            count += !there[row];
            there[row] = 1;
        }
    }
    assert_int_equal(vec_fuse_rrf(lists, nlist, k, nrow, &out, &n), VEC_OK);
    assert_int_equal(n, count);
    for (size_t i = 0; i < n; i++) {
        assert_true(there[out[i].row]);
        there[out[i].row] = 0; // each once
        assert_true(out[i].key == -want[out[i].row]);
        assert_int_equal(out[i].id, (int64_t)out[i].row * 5 - 7);
    }
    vec_free(out);
}

static void equals_the_sum(void **state)
{
    t_rng r = t_rng_start(61);

    (void)state;
    for (int round = 0; round < 500; round++) {
        size_t nlist = t_rng_below(&r, LISTS + 1);
        uint64_t nrow = t_rng_below(&r, ROWS + 1);
        vec_list lists[LISTS];

        for (size_t l = 0; l < nlist; l++)
            lists[l] = random_list(&r, nrow);
        check(lists, nlist, round % 2 ? 60 : t_rng_unit(&r), nrow);
        for (size_t l = 0; l < nlist; l++)
            free((void *)lists[l].hits);
    }
}

static void rows_beyond_are_refused(void **state)
{
    vec_hit h[2] = {{0, 1, 4}, {0, 2, 5}};
    vec_list l = {h, 2, 1}, huge = {h, SIZE_MAX, 1};
    vec_hit *out = h;
    size_t n = 7;

    (void)state;
    assert_int_equal(vec_fuse_rrf(&l, 1, 60, 5, &out, &n), VEC_MISUSE);
    assert_null(out);
    assert_int_equal(n, 0);
    assert_int_equal(vec_fuse_rrf(&huge, 1, 60, 5, &out, &n), VEC_LIMIT);
    assert_int_equal(vec_fuse_rrf(&l, 1, 60, UINT64_MAX, &out, &n), VEC_NOMEM);
    assert_int_equal(vec_fuse_rrf(&l, 1, 60, 6, &out, &n), VEC_OK);
    assert_int_equal(n, 2);
    vec_free(out);
}

static void want_of_memory(void **state)
{
    vec_hit h[2] = {{0, 1, 4}, {0, 2, 5}};
    vec_list l = {h, 2, 1};

    (void)state;
    for (long fail = 1;; fail++) {
        t_alloc a = {.fail_at = fail};
        vec_allocator hook = {t_alloc_get, t_alloc_resize, t_alloc_release, &a};
        vec_hit *out;
        size_t n;
        int rc;

        vec_set_allocator(&hook);
        rc = vec_fuse_rrf(&l, 1, 60, 6, &out, &n);
        assert_int_equal(out != NULL, rc == VEC_OK);
        vec_free(out);
        vec_set_allocator(NULL);
        assert_int_equal(a.live, 0);
        if (a.count < fail) {
            assert_int_equal(rc, VEC_OK);
            break;
        }
        assert_int_equal(rc, VEC_NOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_the_sum),
        cmocka_unit_test(rows_beyond_are_refused),
        cmocka_unit_test(want_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
