/*
 * t_vec_tok.c - token streams: what is put comes back, and nothing else is read
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

#include "t_guard.h"
#include "t_rng.h"
#include "vec.h"

static void what_is_put_comes_back(void **state)
{
    t_rng r = t_rng_start(71);
    char text[VEC_TOKEN_MAX + 100];
    uint8_t out[VEC_TOKEN_MAX + 200];

    (void)state;
    t_rng_fill(&r, text, sizeof text);
    for (uint32_t n = 0; n < sizeof text; n++) {
        for (int colocated = 0; colocated < 3; colocated++) {
            uint32_t kept = n < VEC_TOKEN_MAX ? n : VEC_TOKEN_MAX;
            size_t used, pos = 0;
            vec_token t;

            memset(out, 0xaa, sizeof out);
            used = vec_token_put(out, text, n, colocated);
            assert_in_range(used, kept + 1, kept + 5);
            assert_int_equal(out[used], 0xaa);
            assert_int_equal(vec_token_next(out, used, &pos, &t), 1);
            assert_int_equal(pos, used);
            assert_int_equal(t.n, kept);
            assert_int_equal(t.colocated, colocated != 0);
            assert_memory_equal(t.s, text, kept);
            assert_int_equal(vec_token_next(out, used, &pos, &t), 0);
            assert_int_equal(pos, used);
        }
    }
}

/* Many tokens in one stream, cut at every byte: whole tokens come, then end or error. */
static void every_prefix_of_a_stream(void **state)
{
    t_rng r = t_rng_start(72);
    uint8_t stream[8000];
    char text[400] = {0};
    size_t ends[60], n = 0;

    (void)state;
    for (int i = 0; i < 40; i++) {
        n += vec_token_put(stream + n, text, (uint32_t)t_rng_below(&r, i % 4 ? 20 : 300), i & 1);
        ends[i] = n;
    }
    for (size_t cut = 0; cut <= n; cut++) {
        t_guard g = t_guard_copy(stream, cut);
        size_t pos = 0, tokens = 0;
        vec_token t;
        int rc;

        while ((rc = vec_token_next(g.p, cut, &pos, &t)) == 1)
            assert_int_equal(pos, ends[tokens++]);
        assert_int_equal(rc, cut == (tokens ? ends[tokens - 1] : 0) ? 0 : VEC_FORMAT);
        assert_null(t.s);
        t_guard_free(&g);
    }
}

static void bad_heads(void **state)
{
    static const struct {
        uint8_t bytes[12];
        size_t n;
        int want;
    } cases[] = {
        {{0x00}, 1, 1},
        {{0x01}, 1, 1},
        {{0x02, 'a'}, 2, 1},
        {{0x80, 0x00}, 2, VEC_FORMAT},                         // not the shortest form
        {{0x82, 0x80, 0x00, 'a'}, 4, VEC_FORMAT},              // the same
        {{0x82, 0x10, 'a'}, 3, VEC_FORMAT},                    // 1025 bytes
        {{0x80, 0x80, 0x80, 0x80, 0x10, 0}, 6, VEC_FORMAT},    // 2^32
        {{0xff, 0xff, 0xff, 0xff, 0x0f, 0}, 6, VEC_FORMAT},    // 2^32 - 1
        {{0x80, 0x80, 0x80, 0x80, 0x80, 0x01}, 6, VEC_FORMAT}, // six bytes
        {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 8, VEC_FORMAT},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        t_guard g = t_guard_copy(cases[i].bytes, cases[i].n);
        size_t pos = 0;
        vec_token t;

        assert_int_equal(vec_token_next(g.p, cases[i].n, &pos, &t), cases[i].want);
        if (cases[i].want != 1)
            assert_int_equal(pos, 0);
        t_guard_free(&g);
    }
}

static void the_longest_and_one_more(void **state)
{
    uint8_t stream[VEC_TOKEN_MAX + 3] = {0};
    vec_token t;
    size_t pos = 0;

    (void)state;
    stream[0] = 0x80; // 1024 * 2
    stream[1] = 0x10;
    assert_int_equal(vec_token_next(stream, sizeof stream, &pos, &t), 1);
    assert_int_equal(t.n, VEC_TOKEN_MAX);
    stream[0] = 0x82; // 1025 * 2, and the bytes are there
    pos = 0;
    assert_int_equal(vec_token_next(stream, sizeof stream, &pos, &t), VEC_FORMAT);
}

static void any_bytes_end(void **state)
{
    t_rng r = t_rng_start(73);

    (void)state;
    for (int round = 0; round < 20000; round++) {
        size_t n = t_rng_below(&r, 60), pos = 0, last = 0;
        t_guard g = t_guard_new(n);
        vec_token t;
        int rc;

        t_rng_fill(&r, g.p, n);
        for (size_t i = 0; i < n; i++)
            g.p[i] &= t_rng_below(&r, 3) ? 0x0f : 0xff;
        while ((rc = vec_token_next(g.p, n, &pos, &t)) == 1) {
            assert_true(pos > last && pos <= n);
            assert_true((const uint8_t *)t.s >= g.p && (const uint8_t *)t.s + t.n == g.p + pos);
            last = pos;
        }
        assert_true(rc == VEC_FORMAT || (rc == 0 && pos == n));
        t_guard_free(&g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_put_comes_back),
        cmocka_unit_test(every_prefix_of_a_stream),
        cmocka_unit_test(bad_heads),
        cmocka_unit_test(the_longest_and_one_more),
        cmocka_unit_test(any_bytes_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
