/*
 * t_harness.c - the test helpers: the allocator fails when told, the guard kills, seeds repeat.
 *
 * SPDX-License-Identifier: MIT
 */
#include "t_alloc.h"
#include "t_guard.h"
#include "t_rng.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void alloc_fails_once(void **state)
{
    (void)state;
    t_alloc a = {.fail_at = 2};
    void *first = t_alloc_get(&a, 8);
    void *second = t_alloc_get(&a, 8);
    void *third = t_alloc_resize(&a, NULL, 8);
    assert_non_null(first);
    assert_null(second);
    assert_non_null(third);
    assert_int_equal(a.live, 2);
    a.fail_at = 4;
    assert_null(t_alloc_resize(&a, third, 1000));
    assert_int_equal(a.live, 2);
    t_alloc_release(&a, third);
    t_alloc_release(&a, first);
    t_alloc_release(&a, NULL);
    assert_int_equal(a.live, 0);
    assert_int_equal(a.count, 4);
}

// reads one byte at p[i] in a child; returns whether the child lived
static int can_read(const unsigned char *p, size_t i)
{
    pid_t child = fork();
    if (child == 0) {
        // cmocka would catch the signal and go on with its tests in the child
        signal(SIGSEGV, SIG_DFL);
        signal(SIGBUS, SIG_DFL);
        volatile unsigned char seen = p[i];
        (void)seen;
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void guard_ends_at_a_hole(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 7, 4096, 5000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        t_guard g = t_guard_new(sizes[i]);
        assert_true(can_read(g.p, sizes[i] - 1));
        assert_false(can_read(g.p, sizes[i]));
        t_guard_free(&g);
    }
    t_guard g = t_guard_copy("abc", 3);
    assert_memory_equal(g.p, "abc", 3);
    t_guard_free(&g);
    g = t_guard_new(0);
    assert_false(can_read(g.p, 0));
    t_guard_free(&g);
}

static void rng_repeats_and_spreads(void **state)
{
    (void)state;
    t_rng a = t_rng_start(7), b = a, other = {8};
    double sum = 0, squares = 0;
    for (int i = 0; i < 10000; i++) {
        uint64_t x = t_rng_next(&a);
        assert_true(x == t_rng_next(&b));
        assert_true(x != t_rng_next(&other));
        float normal = t_rng_normal(&a);
        assert_true(normal == t_rng_normal(&b));
        sum += normal;
        squares += normal * normal;
        assert_in_range(t_rng_below(&other, 10), 0, 9);
    }
    assert_true(sum / 10000 > -0.05 && sum / 10000 < 0.05);
    assert_true(squares / 10000 > 0.95 && squares / 10000 < 1.05);
    unsigned char bytes[3] = {0, 0, 0}, zero[3] = {0, 0, 0};
    t_rng_fill(&a, bytes, 2);
    assert_memory_not_equal(bytes, zero, 2);
    assert_int_equal(bytes[2], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alloc_fails_once),
        cmocka_unit_test(guard_ends_at_a_hole),
        cmocka_unit_test(rng_repeats_and_spreads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
