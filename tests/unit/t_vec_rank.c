/*
 * t_vec_rank.c - the lazy ranking hands out what sorting gives, however the input lies, and never
 * pays more than n log n for it
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

#define VEC_ALLOW_MALLOC
#include "t_alloc.h"
#include "t_rng.h"
#include "vec_hit.h"

static int watched_less(const vec_hit *a, const vec_hit *b);
static void watched_heapsort(vec_hit *h, size_t n);

// The file itself, with comparisons that can be counted and steered.
#define vec_hit_less     watched_less
#define vec_hit_heapsort watched_heapsort
#include "vec_rank.c"
#undef vec_hit_less
#undef vec_hit_heapsort

static long compared; // comparisons so far
static long spent;    // parts that were heapsorted
static double *keys;  // by row, while the adversary decides; else NULL
static double decided;
static uint64_t candidate;

#define UNDECIDED 1e9

static void settle(const vec_hit *a, const vec_hit *b)
{
    if (keys[a->row] == UNDECIDED && keys[b->row] == UNDECIDED)
        keys[a->row == candidate ? a->row : b->row] = decided++;
    if (keys[a->row] == UNDECIDED)
        candidate = a->row;
    else if (keys[b->row] == UNDECIDED)
        candidate = b->row;
}

static int watched_less(const vec_hit *a, const vec_hit *b)
{
    compared++;
    if (!keys)
        return vec_hit_less(a, b);
    settle(a, b);
    return keys[a->row] < keys[b->row];
}

/* Heapsort as the library's, but comparing as above. */
static void watched_sink(vec_hit *h, size_t n, size_t i)
{
    for (size_t c; (c = 2 * i + 1) < n; i = c) {
        c += c + 1 < n && watched_less(&h[c], &h[c + 1]);
        if (!watched_less(&h[i], &h[c]))
            return;
        vec_hit_swap(&h[i], &h[c]);
    }
}

static void watched_heapsort(vec_hit *h, size_t n)
{
    spent++;
    for (size_t i = n / 2; i-- > 0;)
        watched_sink(h, n, i);
    for (; n > 1; watched_sink(h, n, 0)) {
        n--;
        vec_hit_swap(&h[0], &h[n]);
    }
}

enum { SHAPES = 9 };

static int by_key_then_id(const void *a, const void *b)
{
    const vec_hit *x = a, *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static double shaped_key(t_rng *r, int shape, size_t i, size_t n)
{
    switch (shape) {
    case 0:
        return t_rng_unit(r);
    case 1:
        return (double)t_rng_below(r, 4);
    case 2:
        return 1;
    case 3:
        return (double)i;
    case 4:
        return -(double)i;
    case 5: // up and down
        return (double)(i < n / 2 ? i : n - i);
    case 6: // saw
        return (double)(i % 17);
    case 7: // even places ascend, odd ones descend
        return i % 2 ? -(double)i : (double)i;
    default:
        return t_rng_below(r, 3) ? INFINITY : -INFINITY;
    }
}

static vec_hit *shaped(t_rng *r, int shape, size_t n)
{
    vec_hit *h = vec_hits_alloc(n);

    assert_non_null(h);
    for (size_t i = 0; i < n; i++) {
        h[i].key = shaped_key(r, shape, i, n);
        h[i].id = (int64_t)(i * UINT64_C(0x9e3779b97f4a7c15)); // distinct and without order
        h[i].row = (uint64_t)h[i].id + 7;
    }
    return h;
}

static void check(vec_hit *h, size_t n, size_t take)
{
    vec_hit *want = malloc((n + 1) * sizeof *want);
    vec_rank *r;

    memcpy(want, h, n * sizeof *want);
    qsort(want, n, sizeof *want, by_key_then_id);
    assert_int_equal(vec_rank_new(h, n, &r), VEC_OK);
    for (size_t i = 0; i < take && i < n; i++) {
        const vec_hit *got = vec_rank_next(r);

        assert_non_null(got);
        assert_true(got->key == want[i].key);
        assert_int_equal(got->id, want[i].id);
        assert_int_equal(got->row, want[i].row);
    }
    if (take > n) {
        assert_null(vec_rank_next(r));
        assert_null(vec_rank_next(r));
    }
    vec_rank_free(r);
    free(want);
}

static void equals_sorting(void **state)
{
    t_rng r = t_rng_start(41);

    (void)state;
    for (int shape = 0; shape < SHAPES; shape++) {
        for (size_t n = 0; n < 70; n++)
            check(shaped(&r, shape, n), n, n + 1);
        for (size_t n = 100; n < 20000; n = n * 2 + t_rng_below(&r, 9)) {
            check(shaped(&r, shape, n), n, n + 1);
            check(shaped(&r, shape, n), n, 1 + t_rng_below(&r, n));
        }
    }
}

/* What was handed out stays where it is while the ranking goes on. */
static void hits_stay_valid(void **state)
{
    t_rng r = t_rng_start(42);
    const vec_hit *kept[3000];
    int64_t ids[3000];
    vec_rank *k;

    (void)state;
    assert_int_equal(vec_rank_new(shaped(&r, 1, 3000), 3000, &k), VEC_OK);
    for (int i = 0; i < 3000; i++) {
        kept[i] = vec_rank_next(k);
        ids[i] = kept[i]->id;
    }
    for (int i = 0; i < 3000; i++)
        assert_int_equal(kept[i]->id, ids[i]);
    vec_rank_free(k);
}

static void equal_hits_all_come(void **state)
{
    enum { N = 5000 };
    vec_hit *h = vec_hits_alloc(N);
    uint64_t sum = 0;
    vec_rank *r;

    (void)state;
    for (uint64_t i = 0; i < N; i++)
        h[i] = (vec_hit){3, 3, i};
    assert_int_equal(vec_rank_new(h, N, &r), VEC_OK);
    for (const vec_hit *x; (x = vec_rank_next(r)) != NULL;)
        sum += x->row;
    assert_int_equal(sum, (uint64_t)N * (N - 1) / 2);
    vec_rank_free(r);
}

/* ------------------------------------------------------------------------------------ adversary */

static double *killer; // what the adversary decided

static void adversary_start(size_t n)
{
    keys = malloc(n * sizeof *keys);
    for (size_t i = 0; i < n; i++)
        keys[i] = UNDECIDED;
    decided = 0;
}

static void adversary_end(size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (keys[i] == UNDECIDED)
            keys[i] = decided++;
    killer = keys;
    keys = NULL;
}

/* Hits with the killer's keys, or with none while it is being made. */
static vec_hit *adversary_hits(size_t n)
{
    vec_hit *h = vec_hits_alloc(n);

    for (size_t i = 0; i < n; i++)
        h[i] = (vec_hit){killer ? killer[i] : 0, (int64_t)i, i};
    return h;
}

static void run_all(vec_hit *h, size_t n)
{
    size_t count = 0;
    vec_rank *r;

    assert_int_equal(vec_rank_new(h, n, &r), VEC_OK);
    while (vec_rank_next(r))
        count++;
    assert_int_equal(count, n);
    vec_rank_free(r);
}

/*
 * McIlroy 1999, "A killer adversary for quicksort": the keys are not fixed before they are
 * compared. Undecided ones count as large; of two undecided ones compared, the likely pivot gets
 * the least key that is left, so that its part has nothing on one side. What it decided is then an
 * input that leads every choice of pivots by position into the worst case.
 */
static void the_worst_input_costs_n_log_n(void **state)
{
    enum { N = 20000 };
    double log2n = log2(N);
    vec_hit *h;

    (void)state;
    adversary_start(N);
    h = adversary_hits(N);
    run_all(h, N);
    assert_true(spent > 0); // the budget of some part ran out
    adversary_end(N);
    compared = 0;
    check(adversary_hits(N), N, N + 1);
    // Twice log n rounds before a part is heapsorted, which takes twice log n again.
    assert_true((double)compared < 5 * N * log2n);
    free(killer);
}

static void arguments_and_memory(void **state)
{
    vec_rank *k;

    (void)state;
    assert_null(vec_hits_alloc(SIZE_MAX));
    assert_null(vec_hits_alloc(SIZE_MAX / sizeof(vec_hit) + 1));
    vec_rank_free(NULL);
    for (long fail = 1; fail <= 3; fail++) {
        t_alloc a = {.fail_at = fail};
        vec_allocator hook = {t_alloc_get, t_alloc_resize, t_alloc_release, &a};
        vec_hit *h;
        int rc;

        vec_set_allocator(&hook);
        h = vec_hits_alloc(3);
        assert_int_equal(h == NULL, fail == 1);
        if (h) {
            memset(h, 0, 3 * sizeof *h);
            rc = vec_rank_new(h, 3, &k);
            assert_int_equal(rc, fail == 2 ? VEC_NOMEM : VEC_OK);
            assert_int_equal(k == NULL, fail == 2);
            vec_rank_free(k);
        }
        vec_set_allocator(NULL);
        assert_int_equal(a.live, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_sorting),       cmocka_unit_test(hits_stay_valid),
        cmocka_unit_test(equal_hits_all_come),  cmocka_unit_test(the_worst_input_costs_n_log_n),
        cmocka_unit_test(arguments_and_memory),
    };

    vec_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
