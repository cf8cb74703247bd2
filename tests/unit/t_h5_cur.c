/*
 * t_h5_cur.c - the bounded cursor and the growing buffer
 *
 * SPDX-License-Identifier: MIT
 */
#include "t_h5.h"
#include "t_alloc.h"
#include "t_guard.h"

#include "h5_cur.h"

static const uint8_t bytes[8] = {0x01, 0x82, 0x03, 0x84, 0x05, 0x86, 0x07, 0x88};

static void little_endian(void **state)
{
    (void)state;
    h5_cur c = h5_cur_on(bytes, 8);
    assert_int_equal(h5_cur_u8(&c), 0x01);
    assert_int_equal(h5_cur_u16(&c), 0x0382);
    assert_int_equal(h5_cur_u32(&c), 0x07860584u);
    assert_int_equal(c.left, 1);
    assert_int_equal(c.bad, 0);
    c = h5_cur_on(bytes, 8);
    assert_true(h5_cur_u64(&c) == 0x8807860584038201u);
    assert_int_equal(c.left, 0);
    assert_int_equal(c.bad, 0);
}

static void any_width(void **state)
{
    (void)state;
    for (unsigned w = 1; w <= 8; w++) {
        uint64_t want = 0;
        for (unsigned i = 0; i < w; i++)
            want |= (uint64_t)bytes[i] << 8 * i;
        h5_cur c = h5_cur_on(bytes, w);
        assert_true(h5_cur_uint(&c, w) == want);
        assert_int_equal(c.bad, 0);
    }
    h5_cur zero = h5_cur_on(bytes, 8), nine = zero;
    assert_int_equal(h5_cur_uint(&zero, 0), 0);
    assert_int_equal(zero.bad, 1);
    assert_int_equal(h5_cur_uint(&nine, 9), 0);
    assert_int_equal(nine.bad, 1);
}

/* A read across the end gives 0, and so does each one after it, though bytes were left before. */
static void sticky(void **state)
{
    (void)state;
    for (size_t n = 0; n < 8; n++) {
        t_guard g = t_guard_copy(bytes, n);
        h5_cur c = h5_cur_on(g.p, n);
        assert_true(h5_cur_u64(&c) == 0);
        assert_int_equal(c.bad, 1);
        assert_int_equal(h5_cur_u8(&c), 0);
        assert_int_equal(h5_cur_u16(&c), 0);
        assert_int_equal(h5_cur_u32(&c), 0);
        assert_null(h5_cur_take(&c, 0));
        assert_int_equal(c.left, 0);
        t_guard_free(&g);
    }
    h5_cur c = h5_cur_on(bytes, 8);
    assert_null(h5_cur_take(&c, SIZE_MAX));
    assert_int_equal(c.bad, 1);
}

static void signatures(void **state)
{
    (void)state;
    h5_cur good = h5_cur_on("OHDR", 4), other = h5_cur_on("OHDX", 4), early = h5_cur_on("OHD", 3);
    assert_true(h5_cur_sig(&good, "OHDR"));
    assert_false(h5_cur_sig(&other, "OHDR"));
    assert_false(h5_cur_sig(&early, "OHDR"));
    assert_int_equal(other.bad, 0);
    assert_int_equal(early.bad, 1);
}

static void buffer_round_trip(void **state)
{
    (void)state;
    h5_buf b = {0};
    for (unsigned i = 0; i < 1000; i++) {
        h5_buf_u8(&b, i);
        h5_buf_u16(&b, i * 3);
        h5_buf_u32(&b, i * 5);
        h5_buf_u64(&b, (uint64_t)i << 40);
        h5_buf_uint(&b, i, 3);
        h5_buf_put(&b, bytes, i % 8);
    }
    assert_int_equal(b.bad, 0);
    h5_cur c = h5_cur_on(b.p, b.n);
    for (unsigned i = 0; i < 1000; i++) {
        assert_int_equal(h5_cur_u8(&c), (uint8_t)i);
        assert_int_equal(h5_cur_u16(&c), i * 3);
        assert_int_equal(h5_cur_u32(&c), i * 5);
        assert_true(h5_cur_u64(&c) == (uint64_t)i << 40);
        assert_int_equal(h5_cur_uint(&c, 3), i);
        assert_memory_equal(h5_cur_take(&c, i % 8), bytes, i % 8);
    }
    assert_int_equal(c.left, 0);
    assert_int_equal(c.bad, 0);
    h5_buf_free(&b);
    assert_null(b.p);
}

/* Without memory the buffer turns bad, keeps what it has and takes nothing more. */
static void buffer_without_memory(void **state)
{
    (void)state;
    t_alloc a = {.fail_at = 2};
    h5_allocator hook = {t_alloc_get, t_alloc_resize, t_alloc_release, &a};
    h5_set_allocator(&hook);
    h5_buf b = {0};
    h5_buf_u32(&b, 7);
    assert_int_equal(b.bad, 0);
    assert_null(h5_buf_room(&b, 100000));
    assert_int_equal(b.bad, 1);
    h5_buf_u32(&b, 8);
    assert_int_equal(b.n, 4);
    assert_int_equal(h5_get32(b.p), 7);
    h5_buf_free(&b);
    assert_int_equal(a.live, 0);
    h5_set_allocator(NULL);
}

static void checked_sizes(void **state)
{
    (void)state;
    uint64_t v = 1;
    assert_true(h5_add_fits(UINT64_MAX - 1, 1, &v) && v == UINT64_MAX);
    assert_false(h5_add_fits(UINT64_MAX, 1, &v));
    assert_true(v == UINT64_MAX);
    assert_true(h5_mul_fits(1ull << 32, (1ull << 32) - 1, &v));
    assert_false(h5_mul_fits(1ull << 32, 1ull << 32, &v));
    assert_true(h5_mul_fits(UINT64_MAX, 0, &v) && v == 0);
    assert_true(h5_div_up(UINT64_MAX, 2) == 1ull << 63);
    assert_true(h5_div_up(6, 3) == 2 && h5_div_up(7, 3) == 3 && h5_div_up(0, 3) == 0);
    assert_null(h5_alloc_array(SIZE_MAX, 2));
    assert_null(h5_calloc(SIZE_MAX / 2, 3));
}

static void arena(void **state)
{
    (void)state;
    t_alloc count = {0};
    h5_allocator hook = {t_alloc_get, t_alloc_resize, t_alloc_release, &count};
    h5_set_allocator(&hook);
    h5_arena a = {0};
    uint8_t *p[200];
    for (size_t i = 0; i < 200; i++) {
        p[i] = h5_arena_alloc(&a, i * 7);
        assert_non_null(p[i]);
        assert_int_equal((uintptr_t)p[i] % _Alignof(max_align_t), 0);
        memset(p[i], (int)i, i * 7);
    }
    for (size_t i = 0; i < 200; i++)
        for (size_t k = 0; k < i * 7; k++)
            assert_int_equal(p[i][k], (uint8_t)i);
    assert_null(h5_arena_alloc(&a, SIZE_MAX));
    assert_true(count.count < 200);
    h5_arena_free(&a);
    assert_int_equal(count.live, 0);
    h5_set_allocator(NULL);
}

/* The first failure wins, and no text breaks the line. */
static void error_record(void **state)
{
    (void)state;
    h5_error err;
    h5_error_clear(&err);
    assert_int_equal(err.code, H5_OK);
    assert_true(err.offset == H5_UNDEF);
    assert_int_equal(h5_fail(&err, H5_FORMAT, 77, "name %s", "a\nb"), H5_FORMAT);
    assert_int_equal(h5_fail(&err, H5_LIMIT, 78, "later"), H5_LIMIT);
    assert_int_equal(err.code, H5_FORMAT);
    assert_true(err.offset == 77);
    assert_string_equal(err.text, "name a?b");
    assert_int_equal(err.os_errno, 0);
    assert_int_equal(h5_fail(NULL, H5_IO, 0, "nobody listens"), H5_IO);
    for (int rc = H5_LIMIT - 1; rc <= 1; rc++)
        assert_true(strlen(h5_code_name(rc)) > 0);
    assert_string_equal(h5_code_name(H5_FORMAT), "file format");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(little_endian),
        cmocka_unit_test(any_width),
        cmocka_unit_test(sticky),
        cmocka_unit_test(signatures),
        cmocka_unit_test(buffer_round_trip),
        cmocka_unit_test(buffer_without_memory),
        cmocka_unit_test(checked_sizes),
        cmocka_unit_test(arena),
        cmocka_unit_test(error_record),
    };
    return cmocka_run_group_tests_name("h5_cur", tests, NULL, NULL);
}
