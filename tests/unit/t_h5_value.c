/*
 * t_h5_value.c - values of single elements: numbers of odd layouts, strings, enums, variable length
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>

#include "t_h5.h"

static void integers(void **state)
{
    (void)state;
    uint64_t bits;
    h5_type t = {.cls = H5_CLASS_INTEGER, .size = 2, .precision = 16, .is_signed = 1};
    assert_int_equal(h5_value_bits(&t, "\376\377", &bits), 1);
    assert_int_equal((int64_t)bits, -2);
    t.big_endian = 1;
    h5_value_bits(&t, "\376\377", &bits);
    assert_int_equal((int64_t)bits, -257);
    // Five bits from bit three of three bytes: 10110 is -10.
    t = (h5_type){
        .cls = H5_CLASS_INTEGER, .size = 3, .precision = 5, .bit_offset = 6, .is_signed = 1};
    assert_int_equal(h5_value_bits(&t, "\200\5\0", &bits), 1);
    assert_int_equal((int64_t)bits, -10);
    t.is_signed = 0;
    h5_value_bits(&t, "\200\5\0", &bits);
    assert_int_equal(bits, 22);
    t = (h5_type){.cls = H5_CLASS_INTEGER, .size = 16, .precision = 128};
    assert_int_equal(h5_value_bits(&t, "0123456789abcdef", &bits), 0);
    t = (h5_type){.cls = H5_CLASS_OPAQUE, .size = 2};
    assert_int_equal(h5_value_bits(&t, "ab", &bits), 0);
}

static double real(const h5_type *t, const char *p)
{
    double out;
    assert_int_equal(h5_value_real(t, p, &out), 1);
    return out;
}

static void floats(void **state)
{
    (void)state;
    h5_type half = {.cls = H5_CLASS_FLOAT,
                    .size = 2,
                    .precision = 16,
                    .sign_at = 15,
                    .norm = 2,
                    .exponent_at = 10,
                    .exponent_bits = 5,
                    .mantissa_bits = 10,
                    .exponent_bias = 15};
    assert_true(real(&half, "\0\76") == 1.5 && real(&half, "\0\300") == -2);
    assert_true(real(&half, "\1\0") == ldexp(1, -24) && real(&half, "\377\173") == 65504);
    assert_true(isinf(real(&half, "\0\174")) && isnan(real(&half, "\1\174")));
    // x86: the leading bit is stored.
    h5_type ext = {.cls = H5_CLASS_FLOAT,
                   .size = 16,
                   .precision = 80,
                   .sign_at = 79,
                   .exponent_at = 64,
                   .exponent_bits = 15,
                   .mantissa_bits = 64,
                   .exponent_bias = 16383};
    assert_true(real(&ext, "\0\0\0\0\0\0\0\300\377\77\0\0\0\0\0") == 1.5);
    assert_true(isinf(real(&ext, "\0\0\0\0\0\0\0\200\377\377\0\0\0\0\0")));
    // Half way between two doubles, and the last bit of 112 decides.
    h5_type quad = {.cls = H5_CLASS_FLOAT,
                    .size = 16,
                    .precision = 128,
                    .sign_at = 127,
                    .norm = 2,
                    .exponent_at = 112,
                    .exponent_bits = 15,
                    .mantissa_bits = 112,
                    .exponent_bias = 16383};
    assert_true(real(&quad, "\0\0\0\0\0\0\0\10\0\0\0\0\0\0\377\77") == 1);
    assert_true(real(&quad, "\1\0\0\0\0\0\0\10\0\0\0\0\0\0\377\77") == 1 + ldexp(1, -52));
    // The VAX keeps the word with sign and exponent first.
    h5_type vax = {.cls = H5_CLASS_FLOAT,
                   .size = 4,
                   .precision = 32,
                   .sign_at = 31,
                   .norm = 2,
                   .vax = 1,
                   .exponent_at = 23,
                   .exponent_bits = 8,
                   .mantissa_bits = 23,
                   .exponent_bias = 129};
    assert_true(real(&vax, "\100\101\0\0") == 3 && real(&vax, "\0\0\0\0") == 0);
}

static void texts(void **state)
{
    (void)state;
    h5_type t = {.cls = H5_CLASS_STRING, .size = 5};
    assert_int_equal(h5_value_text(&t, "ab\0c\0"), 2);
    assert_int_equal(h5_value_text(&t, "abcde"), 5);
    t.str_pad = 1;
    assert_int_equal(h5_value_text(&t, "ab\0c\0"), 4);
    t.str_pad = 2;
    assert_int_equal(h5_value_text(&t, "ab c "), 4);
    h5_member names[2] = {{.name = "off", .value = (const uint8_t *)"\0"},
                          {.name = "on", .value = (const uint8_t *)"\1"}};
    h5_type e = {.cls = H5_CLASS_ENUM, .size = 1, .nmember = 2, .member = names};
    assert_string_equal(h5_value_enum(&e, "\1"), "on");
    assert_null(h5_value_enum(&e, "\2"));
}

/* A collection of two objects, and elements that name them rightly and wrongly. */
static void variable_length(void **state)
{
    (void)state;
    static const char heap[] = "GCOL\1\0\0\0\100\0\0\0\0\0\0\0"
                               "\1\0\1\0\0\0\0\0\5\0\0\0\0\0\0\0hello\0\0\0"
                               "\2\0\1\0\0\0\0\0\10\0\0\0\0\0\0\0\1\0\0\0\2\0\0";
    t_h5 t;
    h5_heaps *h;
    const uint8_t *p;
    uint64_t n;
    t_h5_begin(&t);
    uint64_t at = t_h5_bytes(&t, heap, 64);
    t_h5_open(&t, at);
    T_OK(&t, h5_heaps_open(t.f, &h, &t.err));
    h5_type four = t_h5_type('i', 4);
    h5_type text = {.cls = H5_CLASS_VLEN, .size = 16, .is_text = 1};
    h5_type list = {.cls = H5_CLASS_VLEN, .size = 16, .base = &four};
    char e[16] = {5, 0, 0, 0, (char)at, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0};
    assert_true(at < 128);
    T_OK(&t, h5_vlen(h, &text, e, &p, &n, &t.err));
    assert_true(n == 5 && memcmp(p, "hello", 5) == 0);
    e[0] = 2;
    e[12] = 2;
    T_OK(&t, h5_vlen(h, &list, e, &p, &n, &t.err));
    assert_true(n == 2 && p[4] == 2);
    e[0] = 3;
    T_FAILS(&t, H5_FORMAT, "3 elements in 8 bytes", h5_vlen(h, &list, e, &p, &n, &t.err));
    e[12] = 3;
    T_FAILS(&t, H5_FORMAT, "no object 3", h5_vlen(h, &list, e, &p, &n, &t.err));
    e[4]++;
    T_FAILS(&t, H5_FORMAT, "global heap", h5_vlen(h, &list, e, &p, &n, &t.err));
    e[0] = 0;
    T_OK(&t, h5_vlen(h, &list, e, &p, &n, &t.err));
    assert_true(n == 0 && !p);
    T_FAILS(&t, H5_MISUSE, "variable-length", h5_vlen(h, &four, e, &p, &n, &t.err));
    h5_heaps_close(h);
    t_h5_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers),
        cmocka_unit_test(floats),
        cmocka_unit_test(texts),
        cmocka_unit_test(variable_length),
    };
    return cmocka_run_group_tests_name("h5_value", tests, NULL, NULL);
}
