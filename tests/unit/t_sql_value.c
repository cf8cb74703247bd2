/*
 * t_sql_value.c - numbers, vectors, times: exact values at the borders, then random ones.
 *
 * SPDX-License-Identifier: MIT
 */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sql_value.h"
#include "t_guard.h"
#include "t_rng.h"

static uint32_t bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static float from(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* Reads text that ends at an unmapped page. */
static size_t scan32(const char *s, float *out)
{
    t_guard g = t_guard_copy(s, strlen(s));
    size_t used = sql_scan_f32((const char *)g.p, strlen(s), out);
    t_guard_free(&g);
    return used;
}

static void assert_f32(const char *s, uint32_t want)
{
    float f;
    assert_int_equal(scan32(s, &f), strlen(s));
    if (bits(f) != want) {
        fail_msg("%s reads as %08x (%a), not %08x", s, bits(f), (double)f, want);
    }
}

/* ------------------------------------------------------------------------------------ numbers */

static void test_f32_exact(void **state)
{
    (void)state;
    assert_f32("0", 0);
    assert_f32("-0", 0x80000000);
    assert_f32("0.0e999999999999999999999", 0);
    assert_f32("1", 0x3f800000);
    assert_f32("-2.5", 0xc0200000);
    assert_f32("0.1", 0x3dcccccd);
    assert_f32("16777217", 0x4b800000); // a tie: to even, down
    assert_f32("16777219", 0x4b800002); // a tie: to even, up
    assert_f32("16777217.0000000000000000000000000000000000001", 0x4b800001);
    assert_f32("16777216.9999999999999999999999999999999999999", 0x4b800000);
    assert_f32("1.00000017881393432617187499", 0x3f800001); // just below the middle of two floats
    assert_f32("1.00000017881393432617187500", 0x3f800002); // the middle: to even
    assert_f32("1.00000017881393432617187501", 0x3f800002);
    assert_f32("3.4028234663852886e38", 0x7f7fffff);
    assert_f32("340282356779733661637539395458142568447", 0x7f7fffff); // below the middle to 2^128
    assert_f32("340282356779733661637539395458142568448", 0x7f800000);
    assert_f32("1e39", 0x7f800000);
    assert_f32("-1e39", 0xff800000);
    assert_f32("1e-45", 1);
    assert_f32("1.4012984643248171e-45", 1);
    assert_f32("7.006492321624085354618e-46", 0); // just below half of the smallest
    assert_f32("7.006492321624085354619e-46", 1);
    assert_f32("1e-46", 0);
    assert_f32("1e-999999999999999999999999", 0);
    assert_f32("1.1754943508222875e-38", 0x00800000);
    assert_f32("1.1754942106924411e-38", 0x007fffff);
    assert_f32("123456789012345678901234567890e-29", 0x3f9e0652);
}

static void test_f32_long(void **state)
{
    (void)state;
    // half of the smallest float, exactly and with its 150th digit changed: 2^-150
    char half[400];
    snprintf(half, sizeof half, "%.150f", 0x1p-150);
    assert_f32(half, 0);
    char more[600];
    snprintf(more, sizeof more, "%s%0120d1", half, 0);
    assert_f32(more, 1);
    half[strlen(half) - 1]++;
    assert_f32(half, 1);
    half[strlen(half) - 1] = (char)(half[strlen(half) - 1] - 2);
    assert_f32(half, 0);
    // a thousand leading and trailing zeros, undone by the exponent
    char zeros[2100];
    snprintf(zeros, sizeof zeros, "0.%01000d5e1001", 0);
    assert_f32(zeros, bits(5));
    snprintf(zeros, sizeof zeros, "5%01000de-1000", 0);
    assert_f32(zeros, bits(5));
}

static void test_f32_grammar(void **state)
{
    (void)state;
    static const char *const bad[] = {"",    "-",   "+1",        ".5", "-.5", "e5", "NaN",
                                      "nan", "inf", "-Infinity", "01", "00",  "x",  " 1"};
    static const struct {
        const char *s;
        size_t used;
    } part[] = {{"1.", 1},    {"1.e5", 1}, {"1e", 1},   {"1e+", 1},  {"1e-x", 1},
                {"1.5.5", 3}, {"1,5", 1},  {"0x10", 1}, {"-0.5]", 4}};
    float f;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(scan32(bad[i], &f), 0);
    }
    for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
        assert_int_equal(scan32(part[i].s, &f), part[i].used);
    }
}

/* The C library's strtof is the independent reference: the C locale is in force in this program. */
static void test_f32_random(void **state)
{
    (void)state;
    t_rng r = t_rng_start(1);
    for (int i = 0; i < 300000; i++) {
        char s[80];
        float x = from((uint32_t)t_rng_next(&r));
        if (!isfinite(x)) {
            continue;
        }
        double d = x;
        switch (t_rng_below(&r, 4)) {
        case 0: // a float's neighbourhood, in digits enough to tell
            snprintf(s, sizeof s, "%.*e", (int)t_rng_below(&r, 25), d);
            break;
        case 1: // the middle of two floats and next to it
            d = (d + (double)nextafterf(x, INFINITY)) / 2;
            snprintf(s, sizeof s, "%.*e", 20 + (int)t_rng_below(&r, 30), d);
            break;
        case 2:
            snprintf(s, sizeof s, "%lld.%llde%d", (long long)t_rng_below(&r, 100),
                     (long long)t_rng_below(&r, UINT64_MAX / 2), (int)t_rng_below(&r, 60) - 30);
            break;
        default:
            snprintf(s, sizeof s, "%.9g", t_rng_unit(&r) * 2 - 1);
        }
        float want = strtof(s, NULL), got;
        assert_int_equal(scan32(s, &got), strlen(s));
        if (bits(want) != bits(got)) {
            fail_msg("%s reads as %a, not %a", s, (double)got, (double)want);
        }
    }
}

/* Digits of a number from the first to the last that is not 0. */
static int significant(const char *s)
{
    int n = 0, last = 0;
    for (; *s && *s != 'e'; s++) {
        n += *s >= '0' && *s <= '9' && (n > 0 || *s != '0');
        last = *s >= '1' && *s <= '9' ? n : last;
    }
    return last;
}

static void test_print(void **state)
{
    (void)state;
    char s[SQL_F32_TEXT];
    static const struct {
        float x;
        const char *s;
    } known[] = {{0, "0"},        {1, "1"},          {0.1f, "0.1"},
                 {-2.5f, "-2.5"}, {1e-45f, "1e-45"}, {0.333333343f, "0.33333334"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        int n = sql_print_f32(known[i].x, s);
        assert_string_equal(s, known[i].s);
        assert_int_equal(n, strlen(s));
    }
    t_rng r = t_rng_start(2);
    for (int i = 0; i < 200000; i++) {
        float x = from((uint32_t)t_rng_next(&r)), back;
        if (isfinite(x)) {
            int n = sql_print_f32(x, s);
            assert_int_equal(scan32(s, &back), n);
            assert_int_equal(bits(back), bits(x));
            // no shorter %.*g does
            char c[40];
            int digits = 0;
            do {
                snprintf(c, sizeof c, "%.*g", ++digits, (double)x);
            } while (strtof(c, NULL) != x);
            if (significant(s) != significant(c)) {
                fail_msg("%a: %s, %s is shorter", (double)x, s, c);
            }
        }
    }
}

static void test_f64(void **state)
{
    (void)state;
    static const char *const exact[] = {
        "0", "60", "0.7", "-0.25", "1e22", "1.5e-21", "4194304", "123456789012345", "1e-5"};
    double d;
    for (size_t i = 0; i < sizeof exact / sizeof *exact; i++) {
        assert_int_equal(sql_scan_f64(exact[i], strlen(exact[i]), &d), strlen(exact[i]));
        assert_true(d == strtod(exact[i], NULL));
    }
    assert_int_equal(sql_scan_f64("1e400", 5, &d), 5);
    assert_true(isinf(d));
    assert_int_equal(sql_scan_f64("1e-400", 6, &d), 6);
    assert_true(d == 0);
    assert_int_equal(sql_scan_f64("1e-99999999999999999999", 23, &d), 23);
    assert_true(d == 0);
    assert_int_equal(sql_scan_f64("x", 1, &d), 0);
    t_rng r = t_rng_start(3);
    for (int i = 0; i < 100000; i++) {
        char s[64];
        snprintf(s, sizeof s, "%lld.%llde%d", (long long)t_rng_below(&r, 1000),
                 (long long)t_rng_below(&r, 1000000000), (int)t_rng_below(&r, 500) - 250);
        double want = strtod(s, NULL);
        assert_int_equal(sql_scan_f64(s, strlen(s), &d), strlen(s));
        assert_true(d == want);
    }
}

static void test_f64_round_trip(void **state)
{
    (void)state;
    static const double edge[] = {DBL_MAX,
                                  DBL_MIN,
                                  0x1p-1074,
                                  0x1.fffffffffffffp-1023,
                                  0x1p53,
                                  1e23,
                                  9007199254740993.0,
                                  1764547200.123456,
                                  0.1,
                                  5e-324,
                                  0.0};
    t_rng r = t_rng_start(4);
    for (int i = 0; i < 100000; i++) {
        uint64_t u = t_rng_next(&r);
        double x, back;
        char s[SQL_F64_TEXT];
        memcpy(&x, &u, sizeof x);
        if (i < (int)(sizeof edge / sizeof *edge)) {
            x = edge[i];
        } else if (!isfinite(x)) {
            continue;
        }
        int len = sql_print_f64(x, s);
        assert_int_equal(len, strlen(s));
        assert_int_equal(sql_scan_f64(s, strlen(s), &back), strlen(s));
        assert_memory_equal(&x, &back, sizeof x);
        assert_true(strtod(s, NULL) == x);
    }
    char s[SQL_F64_TEXT];
    double inf;
    sql_print_f64(-(double)INFINITY, s);
    assert_true(sql_scan_f64(s, strlen(s), &inf) == strlen(s) && isinf(inf) && inf < 0);
    sql_print_f64(-0.0, s);
    assert_string_equal(s, "-0.0");
    static const char *const middles[] = {"1.7976931348623158e308",
                                          "1.7976931348623159e308",
                                          "2.4703282292062327e-324",
                                          "2.4703282292062328e-324",
                                          "9007199254740993",
                                          "9007199254740992.999999999999",
                                          "17976931348623158079372897140530341507993413271003782693"
                                          "6173778980444968292764750946649017977587"
                                          "20716e207"};
    for (size_t i = 0; i < sizeof middles / sizeof *middles; i++) {
        double d;
        assert_int_equal(sql_scan_f64(middles[i], strlen(middles[i]), &d), strlen(middles[i]));
        assert_true(d == strtod(middles[i], NULL));
    }
}

static void test_whole(void **state)
{
    (void)state;
    int64_t v;
    assert_true(sql_whole(3, &v) && v == 3);
    assert_true(sql_whole(-0x1p63, &v) && v == INT64_MIN);
    assert_true(sql_whole(0x1.fffffffffffffp62, &v));
    assert_false(sql_whole(0x1p63, &v));
    assert_false(sql_whole(3.5, &v));
    assert_false(sql_whole((double)NAN, &v));
    assert_false(sql_whole((double)INFINITY, &v));
}

/* ------------------------------------------------------------------------------------ vectors */

static int scan_vector(const char *s, float *out, size_t room, size_t *count, char *why)
{
    t_guard g = t_guard_copy(s, strlen(s));
    int ok = sql_scan_vector((const char *)g.p, strlen(s), out, room, count, why, 160);
    t_guard_free(&g);
    return ok;
}

static void test_vector(void **state)
{
    (void)state;
    float x[4];
    char why[160];
    size_t n;
    assert_true(scan_vector("[1,2.5,-3e2]", x, 4, &n, why));
    assert_int_equal(n, 3);
    assert_true(x[0] == 1 && x[1] == 2.5f && x[2] == -300);
    assert_true(scan_vector(" [\n1 ,\t2\r] \n", x, 4, &n, why));
    assert_int_equal(n, 2);
    assert_true(scan_vector("[]", x, 4, &n, why));
    assert_int_equal(n, 0);
    assert_true(scan_vector("[ ]", x, 4, &n, why));
    assert_int_equal(n, 0);
    // more than there is room for: counted, not stored
    x[1] = 99;
    assert_true(scan_vector("[1,2,3,4,5]", x, 1, &n, why));
    assert_int_equal(n, 5);
    assert_true(x[0] == 1 && x[1] == 99);
}

static void test_vector_bad(void **state)
{
    (void)state;
    static const struct {
        const char *s, *why;
    } bad[] = {
        {"", "is no JSON array of numbers: byte 1"},
        {"hello", "is no JSON array of numbers: byte 1"},
        {"{\"a\":1}", "is no JSON array of numbers: byte 1"},
        {"[", "is no JSON array of numbers: byte 2"},
        {"[1", "is no JSON array of numbers: byte 3"},
        {"[1,", "is no JSON array of numbers: byte 4"},
        {"[1 2]", "is no JSON array of numbers: byte 4"},
        {"[1] x", "is no JSON array of numbers: byte 5"},
        {"[1,2]]", "is no JSON array of numbers: byte 6"},
        {"[1,]", "is no JSON array of numbers:  at [1]"},
        {"[,1]", "is no JSON array of numbers:  at [0]"},
        {"[1,NaN]", "is no JSON array of numbers: NaN at [1]"},
        {"[null]", "is no JSON array of numbers: null at [0]"},
        {"[1, \"a\", 2]", "is no JSON array of numbers: \"a\" at [1]"},
        {"[[1]]", "is no JSON array of numbers: [1 at [0]"},
        {"[1,2,1e39]", "holds 1e39 at [2], more than a 32-bit float can hold"},
        {"[-1e999]", "holds -1e999 at [0], more than a 32-bit float can hold"},
    };
    float x[4];
    char why[160];
    size_t n;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(scan_vector(bad[i].s, x, 4, &n, why));
        assert_string_equal(why, bad[i].why);
        assert_int_equal(n, 0);
    }
}

static void test_floats(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {0, 0, 0x80, 0x3f, 0, 0, 0x20, 0xc0};
    float x[2];
    uint8_t back[8];
    sql_floats_load(bytes, 2, x);
    assert_true(x[0] == 1 && x[1] == -2.5f);
    sql_floats_store(x, 2, back);
    assert_memory_equal(back, bytes, 8);
}

/* -------------------------------------------------------------------------------------- times */

static void assert_time(const char *s, double want)
{
    double t;
    t_guard g = t_guard_copy(s, strlen(s));
    int ok = sql_scan_time((const char *)g.p, strlen(s), &t);
    t_guard_free(&g);
    if (!ok || t != want) {
        fail_msg("%s: %s %.6f, expected %.6f", s, ok ? "reads as" : "refused", t, want);
    }
}

static void test_time(void **state)
{
    (void)state;
    assert_time("1970-01-01", 0);
    assert_time("1970-01-01T00:00:00Z", 0);
    assert_time("2026-11-01", 1793491200);
    assert_time("2026-11-01T18:30", 1793557800);
    assert_time("2026-11-01 18:30:15", 1793557815);
    assert_time("2026-11-01T18:30:15.25Z", 1793557815.25);
    assert_time("2026-11-01t18:30:15,5z", 1793557815.5);
    assert_time("2026-11-01T18:30:15+02:00", 1793550615);
    assert_time("2026-11-01T18:30:15-0530", 1793577615);
    assert_time("2026-11-01T18:30:15 +01", 1793554215);
    assert_time("  2026-11-01  ", 1793491200);
    assert_time("2000-02-29", 951782400);
    assert_time("1969-12-31T23:59:59.5", -0.5);
    assert_time("0000-01-01", -62167219200);
    assert_time("9999-12-31T23:59:59Z", 253402300799);
    assert_time("2026-11-01T18:30:15.000000000000000000000001", 1793557815);
}

static void test_time_bad(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "now",
        "2026",
        "2026-11",
        "2026-11-1",
        "2026-13-01",
        "2026-00-10",
        "2026-11-31",
        "2026-11-00",
        "2025-02-29",
        "1900-02-29",
        "20261101",
        "2026-11-01T",
        "2026-11-01T24:00",
        "2026-11-01T12:60",
        "2026-11-01T12",
        "2026-11-01T12:00:60",
        "2026-11-01T12:00:00.",
        "2026-11-01T12:00Q",
        "2026-11-01T12:00+",
        "2026-11-01T12:00+2",
        "2026-11-01T12:00+24:00",
        "2026-11-01T12:00+01:60",
        "2026-11-01Z",
        "2026-11-01x",
        "1793491200",
        "-2026-11-01",
        "2026/11/01",
        "01.11.2026",
        "2026-11-01T12:00ZZ",
        "2026-11-01T12:00+01:00:00",
        "2026-11-01T12:00+01:",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        double t;
        t_guard g = t_guard_copy(bad[i], strlen(bad[i]));
        if (sql_scan_time((const char *)g.p, strlen(bad[i]), &t)) {
            fail_msg("%s was taken for %f", bad[i], t);
        }
        t_guard_free(&g);
    }
}

/* Every day of eight centuries follows the one before by a day. */
static void test_time_days(void **state)
{
    (void)state;
    static const int length[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    double want = -11676096000; // 1600-01-01
    for (int y = 1600; y < 2400; y++) {
        for (int m = 1; m <= 12; m++) {
            int leap = m == 2 && y % 4 == 0 && (y % 100 != 0 || y % 400 == 0);
            for (int d = 1; d <= length[m - 1] + leap; d++, want += 86400) {
                char s[40];
                double t;
                snprintf(s, sizeof s, "%04d-%02d-%02d", y, m, d);
                assert_true(sql_scan_time(s, 10, &t));
                assert_true(t == want);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f32_exact),      cmocka_unit_test(test_f32_long),
        cmocka_unit_test(test_f32_grammar),    cmocka_unit_test(test_f32_random),
        cmocka_unit_test(test_print),          cmocka_unit_test(test_f64),
        cmocka_unit_test(test_f64_round_trip), cmocka_unit_test(test_whole),
        cmocka_unit_test(test_vector),         cmocka_unit_test(test_vector_bad),
        cmocka_unit_test(test_floats),         cmocka_unit_test(test_time),
        cmocka_unit_test(test_time_bad),       cmocka_unit_test(test_time_days),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
