/*
 * t_h5_select.c - runs of hyperslabs against copying element by element
 *
 * SPDX-License-Identifier: MIT
 */
#include "t_h5.h"
#include "t_rng.h"

#include "h5_select.h"

enum { MOST = 4096 };

static uint64_t product(int rank, const uint64_t *d)
{
    uint64_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= d[i];
    return n;
}

/* Number of the element at start + pos in an array of dims. */
static uint64_t number(int rank, const uint64_t *dims, const uint64_t *start, const uint64_t *pos)
{
    uint64_t n = 0;
    for (int i = 0; i < rank; i++)
        n = n * dims[i] + start[i] + pos[i];
    return n;
}

static void against_the_naive_copy(void **state)
{
    (void)state;
    t_rng r = t_rng_start(23);
    for (int round = 0; round < 3000; round++) {
        int rank = (int)t_rng_below(&r, 5);
        uint64_t count[5], src_dims[5], src_start[5], dst_dims[5], dst_start[5], pos[5], s, d;
        for (int i = 0; i < rank; i++) {
            count[i] = t_rng_below(&r, 6) ? 1 + t_rng_below(&r, 4) : 0;
            src_start[i] = t_rng_below(&r, 2) * t_rng_below(&r, 3);
            dst_start[i] = t_rng_below(&r, 2) * t_rng_below(&r, 3);
            src_dims[i] = src_start[i] + count[i] + t_rng_below(&r, 2) * t_rng_below(&r, 3);
            dst_dims[i] = dst_start[i] + count[i] + t_rng_below(&r, 2) * t_rng_below(&r, 3);
        }
        static int64_t want[MOST * 4], have[MOST * 4], from[MOST * 16];
        uint64_t n = product(rank, dst_dims), elements = product(rank, count), runs_seen = 0;
        if (n > MOST * 4)
            continue;
        for (uint64_t i = 0; i < n; i++)
            want[i] = have[i] = -1;
        for (uint64_t e = 0; e < elements; e++) {
            uint64_t left = e;
            for (int i = rank; i-- > 0; left /= count[i])
                pos[i] = left % count[i];
            want[number(rank, dst_dims, dst_start, pos)] = (int64_t)number(rank, src_dims,
                                                                           src_start, pos);
        }
        h5_runs runs;
        h5_runs_init(&runs, rank, count, src_dims, src_start, dst_dims, dst_start);
        uint64_t promised = runs.n, last = 0;
        while (h5_runs_next(&runs, &s, &d)) {
            assert_true(runs_seen == 0 || s > last); // ascending, as span reads need it
            last = s;
            runs_seen++;
            for (uint64_t i = 0; i < runs.run; i++)
                have[d + i] = (int64_t)(s + i);
        }
        assert_int_equal(runs_seen, promised);
        assert_memory_equal(have, want, n * sizeof *want);
        // The same in one call, from a source that begins with the first run.
        h5_runs_init(&runs, rank, count, src_dims, src_start, dst_dims, dst_start);
        uint64_t first = runs.src;
        for (uint64_t i = 0; i < sizeof from / sizeof *from; i++)
            from[i] = (int64_t)(first + i);
        for (uint64_t i = 0; i < n; i++)
            have[i] = -1;
        assert_true(product(rank, src_dims) - (elements ? first : 0) <= sizeof from / sizeof *from);
        h5_runs_copy(&runs, sizeof *have, (uint8_t *)from, first, (uint8_t *)have);
        assert_int_equal(runs.n, 0);
        assert_memory_equal(have, want, n * sizeof *want);
    }
}

/* What is contiguous on both sides is one run. */
static void longest_runs(void **state)
{
    (void)state;
    uint64_t dims[3] = {10, 4, 5}, zero[3] = {0}, two[3] = {2, 0, 0}, part[3] = {3, 4, 5},
             thin[3] = {3, 4, 2};
    h5_runs r;
    h5_runs_init(&r, 3, part, dims, two, part, zero);
    assert_int_equal(r.n, 1);
    assert_int_equal(r.run, 60);
    h5_runs_init(&r, 3, thin, dims, zero, thin, zero);
    assert_int_equal(r.n, 12);
    assert_int_equal(r.run, 2);
    h5_runs_init(&r, 0, NULL, NULL, NULL, NULL, NULL);
    assert_int_equal(r.n, 1);
    assert_int_equal(r.run, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(against_the_naive_copy),
                                       cmocka_unit_test(longest_runs)};
    return cmocka_run_group_tests_name("h5_select", tests, NULL, NULL);
}
