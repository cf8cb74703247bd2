/*
 * t_h5_keep.c - blocks by address: what was put in is found, nothing else is
 *
 * SPDX-License-Identifier: MIT
 */
#include "t_h5.h"
#include "t_rng.h"

#include "h5_keep.h"

static void found_again(void **state)
{
    (void)state;
    t_h5 t = {0};
    t_rng r = t_rng_start(71);
    h5_keep k = {0};
    enum { N = 2000 };
    static uint64_t addr[N];
    assert_null(h5_keep_find(&k, 7, 8));
    for (uint64_t i = 0; i < N; i++) {
        // Close together, as the blocks of a file are, and two lengths at some addresses.
        addr[i] = i % 5 == 4 ? addr[i - 1] : i * 64 + t_rng_below(&r, 64);
        uint8_t *p = h5_malloc(8);
        assert_non_null(p);
        memcpy(p, &i, 8);
        T_OK(&t, h5_keep_add(&k, addr[i], 8 + i % 5, p, &t.err));
    }
    assert_int_equal(k.n, N);
    assert_int_equal(k.bytes, 10 * N);
    for (uint64_t i = 0; i < N; i++) {
        const h5_kept *b = h5_keep_find(&k, addr[i], 8 + i % 5);
        assert_non_null(b);
        assert_memory_equal(b->p, &i, 8);
        assert_null(h5_keep_find(&k, addr[i], 20));
        assert_null(h5_keep_find(&k, addr[i] + (1u << 20), 8 + i % 5));
    }
    h5_keep_free(&k);
    assert_null(h5_keep_find(&k, addr[0], 8));
    assert_int_equal(k.bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(found_again)};
    return cmocka_run_group_tests_name("h5_keep", tests, NULL, NULL);
}
