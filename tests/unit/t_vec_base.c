/*
 * t_vec_base.c - sizes that overflow fail, the buffer grows and keeps, numbers read as written
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
#include "t_guard.h"
#include "t_rng.h"
#define VEC_ALLOW_MALLOC
#include "vec_base.h"

static void sizes_that_overflow_fail(void **state)
{
    void *p;

    (void)state;
    assert_null(vec_alloc_array(SIZE_MAX / 2, 3));
    assert_null(vec_alloc_array(3, SIZE_MAX / 2));
    assert_null(vec_alloc_zero(SIZE_MAX / 8 + 1, 8));
    p = vec_alloc(0);
    assert_non_null(p);
    vec_free(p);
    p = vec_alloc_array(0, 0);
    assert_non_null(p);
    p = vec_resize(p, 0);
    assert_non_null(p);
    vec_free(p);
    p = vec_resize(NULL, 3);
    assert_non_null(p);
    vec_free(p);
    vec_free(NULL);
}

static void buffer_grows_and_keeps(void **state)
{
    t_rng r = t_rng_start(81);
    vec_buf b = {0};
    uint8_t *model = vec_alloc(300000);
    size_t n = 0;

    (void)state;
    for (int i = 0; i < 500; i++) {
        uint8_t piece[500];
        size_t len = t_rng_below(&r, sizeof piece);

        t_rng_fill(&r, piece, len);
        memcpy(model + n, piece, len);
        n += len;
        assert_int_equal(vec_buf_add(&b, piece, len), VEC_OK);
        assert_int_equal(b.n, n);
    }
    assert_memory_equal(b.p, model, n);
    assert_int_equal(vec_buf_reserve(&b, SIZE_MAX - 10), VEC_NOMEM);
    assert_int_equal(vec_buf_reserve(&b, SIZE_MAX / 2), VEC_NOMEM);
    assert_memory_equal(b.p, model, n);
    vec_buf_free(&b);
    assert_null(b.p);
    vec_free(model);
}

static void buffer_stays_when_memory_ends(void **state)
{
    t_alloc a = {.fail_at = 2};
    vec_allocator hook = {t_alloc_get, t_alloc_resize, t_alloc_release, &a};
    vec_buf b = {0};

    (void)state;
    vec_set_allocator(&hook);
    assert_int_equal(vec_buf_add(&b, "abc", 3), VEC_OK);
    assert_int_equal(vec_buf_reserve(&b, 1000), VEC_NOMEM);
    assert_int_equal(b.n, 3);
    assert_memory_equal(b.p, "abc", 3);
    vec_buf_free(&b);
    vec_set_allocator(NULL);
    assert_int_equal(a.live, 0);
}

static void varints(void **state)
{
    (void)state;
    for (uint64_t v = 0; v <= UINT32_MAX; v += 1 + v / 3) {
        uint8_t bytes[VEC_VARINT_MAX];
        size_t n = vec_put_varint(bytes, (uint32_t)v);
        uint32_t got;

        for (size_t cut = 0; cut <= n; cut++) {
            t_guard g = t_guard_copy(bytes, cut);

            assert_int_equal(vec_get_varint(g.p, g.p + cut, &got), cut == n ? n : 0);
            assert_int_equal(got, cut == n ? v : 0);
            t_guard_free(&g);
        }
    }
}

static void little_endian_at_any_place(void **state)
{
    uint8_t b[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0xff}, c[16] = {0};

    (void)state;
    assert_int_equal(vec_get16(b + 1), 0x0201);
    assert_int_equal(vec_get32(b + 1), 0x04030201);
    assert_int_equal(vec_get64(b + 8), UINT64_C(0xff0e0d0c0b0a0908));
    vec_put16(c + 1, 0xf00201);
    assert_int_equal(c[3], 0);
    assert_memory_equal(c + 1, b + 1, 2);
    vec_put32(c + 3, vec_get32(b + 3));
    vec_put64(c + 7, vec_get64(b + 7));
    assert_memory_equal(c + 1, b + 1, 14);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_that_overflow_fail),      cmocka_unit_test(buffer_grows_and_keeps),
        cmocka_unit_test(buffer_stays_when_memory_ends), cmocka_unit_test(varints),
        cmocka_unit_test(little_endian_at_any_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
