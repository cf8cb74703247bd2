/*
 * t_vec_bits.c - range filters and counting, bit by bit, at every offset
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

#include "t_guard.h"
#include "t_rng.h"
#include "vec.h"
#include "vec_bits.h"

enum { N = 300, WORDS = 8 };

static void groups_and_counts(void **state)
{
    t_rng r = t_rng_start(51);
    t_guard g = t_guard_new(WORDS * 8);
    uint64_t *bits = (uint64_t *)g.p;

    (void)state;
    for (int w = 0; w < WORDS; w++)
        bits[w] = t_rng_next(&r) & t_rng_next(&r);
    for (uint64_t first = 0; first < 64 * WORDS; first++) {
        uint64_t count = 0;

        for (unsigned n = 1; first + n <= 64 * WORDS; n++) {
            count += (uint64_t)vec_bits_get(bits, first + n - 1);
            assert_int_equal(vec_bits_count_range(bits, first, n), count);
            if (first == 0)
                assert_int_equal(vec_bits_count(bits, n), count);
            if (n > 64)
                continue;
            for (unsigned i = 0; i < n; i++)
                assert_int_equal(vec_bits_group(bits, first, n) >> i & 1,
                                 vec_bits_get(bits, first + i));
            assert_int_equal(n < 64 ? vec_bits_group(bits, first, n) >> n : 0, 0);
        }
    }
    assert_int_equal(vec_bits_count(bits, 0), 0);
    t_guard_free(&g);
}

static void numbers_in_range_stay(void **state)
{
    static const double odd[] = {NAN, INFINITY, -INFINITY, -0.0, 0.0, 1};
    t_rng r = t_rng_start(52);

    (void)state;
    for (int round = 0; round < 2000; round++) {
        uint64_t bits[WORDS], was[WORDS], first = t_rng_below(&r, 140);
        size_t n = t_rng_below(&r, N);
        t_guard gx = t_guard_new(n * sizeof(double)), gi = t_guard_new(n * sizeof(int64_t));
        double *x = (double *)gx.p, lo = (double)t_rng_below(&r, 9) - 4;
        double hi = t_rng_below(&r, 9) ? lo + (double)t_rng_below(&r, 5) : -INFINITY;
        int64_t *y = (int64_t *)gi.p;
        int whole = round % 2;

        for (size_t i = 0; i < n; i++) {
            x[i] = t_rng_below(&r, 4) ? (double)t_rng_below(&r, 12) - 6 : odd[t_rng_below(&r, 6)];
            y[i] = t_rng_below(&r, 9) ? (int64_t)t_rng_below(&r, 12) - 6
                                      : (t_rng_below(&r, 2) ? INT64_MIN : INT64_MAX);
        }
        for (int w = 0; w < WORDS; w++)
            was[w] = bits[w] = t_rng_below(&r, 2) ? UINT64_MAX : t_rng_next(&r);
        if (whole)
            vec_keep_range_i64(bits, first, y, n, (int64_t)lo, hi < lo ? INT64_MIN : (int64_t)hi);
        else
            vec_keep_range_f64(bits, first, x, n, lo, hi);
        for (uint64_t row = 0; row < 64 * WORDS; row++) {
            int want = vec_bits_get(was, row);

            if (row >= first && row < first + n && whole)
                want &= y[row - first] >= lo && y[row - first] <= hi;
            else if (row >= first && row < first + n)
                want &= x[row - first] >= lo && x[row - first] <= hi;
            assert_int_equal(vec_bits_get(bits, row), want);
        }
        t_guard_free(&gx);
        t_guard_free(&gi);
    }
}

static void ends_of_the_integers(void **state)
{
    int64_t y[3] = {INT64_MIN, 0, INT64_MAX};
    uint64_t all = 7, low = 7, none = 7;

    (void)state;
    vec_keep_range_i64(&all, 0, y, 3, INT64_MIN, INT64_MAX);
    vec_keep_range_i64(&low, 0, y, 3, INT64_MIN, INT64_MIN);
    vec_keep_range_i64(&none, 0, y, 3, INT64_MAX, INT64_MIN);
    assert_int_equal(all, 7);
    assert_int_equal(low, 1);
    assert_int_equal(none, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_and_counts),
        cmocka_unit_test(numbers_in_range_stay),
        cmocka_unit_test(ends_of_the_integers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
