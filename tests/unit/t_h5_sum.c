/*
 * t_h5_sum.c - lookup3 against the values that its author published, and against itself cut
 * anywhere
 *
 * SPDX-License-Identifier: MIT
 */
#include "t_h5.h"
#include "t_guard.h"

/* From the comments and driver5 of lookup3.c. */
static void published(void **state)
{
    (void)state;
    const char *text = "Four score and seven years ago";
    assert_int_equal(h5_lookup3("", 0, 0), 0xdeadbeef);
    assert_int_equal(h5_lookup3("", 0, 0xdeadbeef), 0xbd5b7dde);
    assert_int_equal(h5_lookup3(text, 30, 0), 0x17770551);
    assert_int_equal(h5_lookup3(text, 30, 1), 0xcd628161);
}

/* Neither the place of the bytes nor what follows them matters, and nothing beyond them is read. */
static void every_length(void **state)
{
    (void)state;
    uint8_t bytes[64], seen[64];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 37 + 11);
    for (size_t n = 0; n < sizeof bytes; n++) {
        uint32_t want = h5_lookup3(bytes, n, 0);
        t_guard g = t_guard_copy(bytes, n);
        assert_int_equal(h5_lookup3(g.p, n, 0), want);
        t_guard_free(&g);
        // One changed bit changes the sum.
        for (size_t i = 0; i < n; i++) {
            memcpy(seen, bytes, sizeof seen);
            seen[i] ^= 0x10;
            assert_int_not_equal(h5_lookup3(seen, n, 0), want);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(published), cmocka_unit_test(every_length)};
    return cmocka_run_group_tests_name("h5_sum", tests, NULL, NULL);
}
