/*
 * t_sql_json.c - flat JSON objects: every form of a value, the borders of numbers, escapes, base64.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sql_json.h"
#include "t_guard.h"

/* The one member of {"a":VALUE}; text that ends at an unmapped page. */
static int read_one(const char *value, sql_json_value *v, t_guard *g, sql_json *j)
{
    char text[512];
    const char *name;
    size_t n;
    snprintf(text, sizeof text, "{\"a\":%s}", value);
    *g = t_guard_copy(text, strlen(text));
    sql_json_begin(j, (char *)g->p, strlen(text));
    int more = sql_json_member(j, &name, &n, v);
    if (more == 1) {
        assert_int_equal(n, 1);
        assert_memory_equal(name, "a", 1);
        sql_json_value none;
        more = sql_json_member(j, &name, &n, &none) == 0 ? 1 : -1;
    }
    return more;
}

static void is_text(const char *value, int kind, const char *want, size_t n)
{
    sql_json j;
    t_guard g;
    sql_json_value v;
    assert_int_equal(read_one(value, &v, &g, &j), 1);
    assert_int_equal(v.kind, kind);
    assert_int_equal(v.n, n);
    assert_memory_equal(v.p, want, n);
    t_guard_free(&g);
}

static void test_text(void **state)
{
    (void)state;
    is_text("\"\"", SQL_JSON_TEXT, "", 0);
    is_text("\"a\\u0000b\\n\\\"\\\\\\/\\b\\f\\r\\t\"", SQL_JSON_TEXT, "a\0b\n\"\\/\b\f\r\t", 11);
    is_text("\"\\u00e9\\u4E16\\ud83d\\uDE00\"", SQL_JSON_TEXT,
            "\xc3\xa9\xe4\xb8\x96\xf0\x9f\x98\x80", 9);
    is_text("\"\xff\xfe\"", SQL_JSON_TEXT, "\xff\xfe", 2);
    is_text("{\"base64\":\"\"}", SQL_JSON_BYTES, "", 0);
    is_text("{ \"base64\" : \"AAEC/w==\" }", SQL_JSON_BYTES, "\0\1\2\xff", 4);
    is_text("{\"base64\":\"AAEC/w\"}", SQL_JSON_BYTES, "\0\1\2\xff", 4);
    is_text("{\"base64\":\"YWJj\"}", SQL_JSON_BYTES, "abc", 3);
    is_text("{\"base64\":\"YWI=\"}", SQL_JSON_BYTES, "ab", 2);
    is_text("[1, 2 ]", SQL_JSON_ARRAY, "[1, 2 ]", 7);
}

static void test_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int kind;
        int64_t i;
        double r;
    } of[] = {{"0", SQL_JSON_INT, 0, 0},
              {"-0", SQL_JSON_INT, 0, 0},
              {"9223372036854775807", SQL_JSON_INT, INT64_MAX, 0},
              {"-9223372036854775808", SQL_JSON_INT, INT64_MIN, 0},
              {"9223372036854775808", SQL_JSON_REAL, 0, 0x1p63},
              {"-9223372036854775809", SQL_JSON_REAL, 0, -0x1p63},
              {"18446744073709551616", SQL_JSON_REAL, 0, 0x1p64},
              {"1.0", SQL_JSON_REAL, 0, 1},
              {"1e2", SQL_JSON_REAL, 0, 100},
              {"9e999", SQL_JSON_REAL, 0, (double)INFINITY},
              {"true", SQL_JSON_INT, 1, 0},
              {"false", SQL_JSON_INT, 0, 0},
              {"null", SQL_JSON_NULL, 0, 0}};
    for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
        sql_json j;
        t_guard g;
        sql_json_value v;
        assert_int_equal(read_one(of[k].text, &v, &g, &j), 1);
        assert_int_equal(v.kind, of[k].kind);
        assert_true(v.i == of[k].i);
        assert_true(of[k].kind != SQL_JSON_REAL || v.r == of[k].r);
        t_guard_free(&g);
    }
}

static void test_bad(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "nul",
                                      "tru",
                                      "-",
                                      "+1",
                                      "01",
                                      ".5",
                                      "\"",
                                      "\"\\",
                                      "\"\\u",
                                      "\"\\u12\"",
                                      "\"\\udc00\"",
                                      "\"\\ud800x",
                                      "\"\\ud800\\u0041\"",
                                      "\"\n\"",
                                      "[",
                                      "[\"a\"]",
                                      "[[1]]",
                                      "{",
                                      "{}",
                                      "{\"b\":1}",
                                      "{\"base64\"}",
                                      "{\"base64\":1}",
                                      "{\"base64\":\"A\"}",
                                      "{\"base64\":\"AB=\"}",
                                      "{\"base64\":\"A===\"}",
                                      "{\"base64\":\"AA AA\"}",
                                      "1 2",
                                      "1,",
                                      "1}"};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        sql_json j;
        t_guard g;
        sql_json_value v;
        if (read_one(bad[k], &v, &g, &j) != -1 || !*j.why) {
            fail_msg("%s", bad[k]);
        }
        t_guard_free(&g);
    }
}

static void test_utf8(void **state)
{
    (void)state;
    assert_true(sql_is_utf8("", 0) && sql_is_utf8("a\0b", 3) && sql_is_utf8("\xf4\x8f\xbf\xbf", 4));
    static const char *const bad[] = {"\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                                      "\x80",     "\xe4\xb8",     "\xf8\x88\x80\x80\x80"};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        assert_false(sql_is_utf8(bad[k], strlen(bad[k])));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_utf8),
    };
    return cmocka_run_group_tests_name("t_sql_json", tests, NULL, NULL);
}
