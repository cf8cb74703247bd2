/*
 * sql_num.c - decimal text to binary floats and back, without the locale.
 *
 * Idea: the first 19 digits times a power of ten in double arithmetic is within a few units in the
 * last place of a double, which settles a 32-bit float unless the value lies next to the middle of
 * two floats. Only then are the decimal and that middle compared exactly, as big integers. Digits
 * past the 120th can only matter by not being zero: a middle of two floats has at most 113
 * significant digits. A double is exact by one operation when it has few digits, and is else found
 * by the same comparison; a middle of two doubles may have more digits than are kept, so that a
 * text of more than 120 digits can end up at its neighbour.
 *
 * ERRORS   none; what is no number reads zero bytes.
 * THREADS  pure functions.
 * TESTS    tests/unit/t_sql_value.c
 *
 * SPDX-License-Identifier: MIT
 */
#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sql.h"
#include "sql_value.h"

enum { DIGITS = 120, LIMBS = 52 };

/* value = mant * 10^exp, near enough; exactly (digit[0..n) as an integer) * 10^scale. */
typedef struct decimal {
    uint64_t mant;
    int64_t exp, scale;
    int neg, n;
    char digit[DIGITS + 1];
} decimal;

static const double pow10_table[] = {
    1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22, 1e23, 1e24, 1e25, 1e26, 1e27, 1e28, 1e29, 1e30, 1e31,
    1e32, 1e33, 1e34, 1e35, 1e36, 1e37, 1e38, 1e39, 1e40, 1e41, 1e42, 1e43, 1e44, 1e45, 1e46, 1e47,
    1e48, 1e49, 1e50, 1e51, 1e52, 1e53, 1e54, 1e55, 1e56, 1e57, 1e58, 1e59, 1e60, 1e61, 1e62, 1e63,
    1e64, 1e65, 1e66, 1e67, 1e68, 1e69, 1e70, 1e71, 1e72, 1e73, 1e74, 1e75, 1e76, 1e77, 1e78, 1e79,
};
enum { POW10_MAX = sizeof pow10_table / sizeof *pow10_table - 1 };

static int is_digit(const char *s, size_t n, size_t i)
{
    return i < n && s[i] >= '0' && s[i] <= '9';
}

// One more digit of the integer that the number's digits make; the decimal point is the caller's
// business.
static void add_digit(decimal *d, char c, int *nmant, int *sticky)
{
    if (d->n == 0 && c == '0') {
        return; // leading zeros carry nothing
    }
    if (*nmant < 19) {
        d->mant = d->mant * 10 + (uint64_t)(c - '0');
        ++*nmant;
    } else {
        d->exp++;
    }
    if (d->n < DIGITS) {
        d->digit[d->n++] = c;
    } else {
        d->scale++;
        *sticky |= c != '0';
    }
}

/* Reads by JSON's grammar; returns the bytes used. */
static size_t scan(const char *s, size_t n, decimal *d)
{
    size_t i = 0;
    int nmant = 0, sticky = 0;
    int64_t point = 0, e = 0;
    memset(d, 0, sizeof *d);
    d->neg = n > 0 && s[0] == '-';
    i += (size_t)d->neg;
    if (!is_digit(s, n, i)) {
        return 0;
    }
    if (s[i] == '0' && is_digit(s, n, i + 1)) {
        return 0; // JSON has no leading zeros
    }
    for (; is_digit(s, n, i); i++) {
        add_digit(d, s[i], &nmant, &sticky);
    }
    if (i < n && s[i] == '.' && is_digit(s, n, i + 1)) {
        for (i++; is_digit(s, n, i); i++) {
            add_digit(d, s[i], &nmant, &sticky);
            point++;
        }
    }
    if (i < n && (s[i] == 'e' || s[i] == 'E')) {
        size_t j = i + 1;
        int minus = j < n && s[j] == '-';
        j += j < n && (s[j] == '-' || s[j] == '+');
        if (is_digit(s, n, j)) {
            for (; is_digit(s, n, j); j++) {
                e = e < INT64_MAX / 100 ? e * 10 + (s[j] - '0') : e;
            }
            e = minus ? -e : e;
            i = j;
        }
    }
    d->exp += e - point;
    d->scale += e - point;
    if (sticky) {
        d->digit[d->n++] = '1';
        d->scale--;
    }
    return i;
}

// Within a few units in the last place; 0 and infinity where it is sure to be beyond a 32-bit
// float.
static double approximate(const decimal *d)
{
    int64_t top = d->n + d->scale; // the value is below 10^top and not below 10^(top - 1)
    if (d->n == 0 || top < -50) {
        return 0;
    }
    if (top > 50) {
        return (double)INFINITY;
    }
    assert(d->exp <= POW10_MAX && d->exp >= -POW10_MAX);
    return d->exp >= 0 ? (double)d->mant * pow10_table[d->exp]
                       : (double)d->mant / pow10_table[-d->exp];
}

/* ----------------------------------------------------------------------------- exact comparison */

typedef struct big {
    uint32_t limb[LIMBS];
    int n;
} big;

static void big_mul_add(big *b, uint32_t factor, uint32_t add)
{
    uint64_t carry = add;
    for (int i = 0; i < b->n; i++) {
        carry += (uint64_t)b->limb[i] * factor;
        b->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry) {
        assert(b->n < LIMBS);
        b->limb[b->n++] = (uint32_t)carry;
    }
}

static void big_scale(big *b, int64_t tens, int twos)
{
    for (; tens >= 9; tens -= 9) {
        big_mul_add(b, 1000000000u, 0);
    }
    for (; tens > 0; tens--) {
        big_mul_add(b, 10, 0);
    }
    for (; twos >= 31; twos -= 31) {
        big_mul_add(b, 1u << 31, 0);
    }
    if (twos > 0) {
        big_mul_add(b, 1u << twos, 0);
    }
}

static int big_compare(const big *a, const big *b)
{
    if (a->n != b->n) {
        return a->n < b->n ? -1 : 1;
    }
    for (int i = a->n; i-- > 0;) {
        if (a->limb[i] != b->limb[i]) {
            return a->limb[i] < b->limb[i] ? -1 : 1;
        }
    }
    return 0;
}

// -1, 0, 1: the decimal against twice * 2^q.
static int against(const decimal *d, uint64_t twice, int q)
{
    big a = {{0}, 0}, b = {{(uint32_t)twice, (uint32_t)(twice >> 32)}, twice >> 32 ? 2 : 1};
    for (int i = 0; i < d->n; i++) {
        big_mul_add(&a, 10, (uint32_t)(d->digit[i] - '0'));
    }
    big_scale(&a, d->scale, -q);
    big_scale(&b, -d->scale, q);
    return big_compare(&a, &b);
}

// The decimal against the middle between the float with these bits and the next one up.
static int against_middle(const decimal *d, uint32_t bits)
{
    uint32_t m = bits & 0x7fffff;
    int q = (int)(bits >> 23);
    if (q == 0) {
        q = 1; // subnormal
    } else {
        m |= 0x800000;
    }
    return against(d, 2 * (uint64_t)m + 1, q - 151); // the middle is (2m + 1) * 2^(q - 151)
}

// The same between two doubles.
static int against_middle64(const decimal *d, uint64_t bits)
{
    uint64_t m = bits & 0xfffffffffffff;
    int q = (int)(bits >> 52);
    if (q == 0) {
        q = 1;
    } else {
        m |= 0x10000000000000;
    }
    return against(d, 2 * m + 1, q - 1076);
}

static float from_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static float nearest_f32(const decimal *d)
{
    double x = approximate(d);
    if (x == 0 || isinf(x)) {
        return (float)x;
    }
    uint64_t xb;
    memcpy(&xb, &x, sizeof xb);
    int64_t off = (int64_t)(xb & 0x1fffffff) -
                  0x10000000; // distance to the middle, in units of the double
    if (x >= 0x1p-126 && (off > 64 || off < -64)) {
        return (float)x;
    }
    float f = x >= 0x1.fffffep127 ? 0x1.fffffep127f : (float)x;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    bits -= bits > 0;
    for (int i = 0; i < 3 && bits < 0x7f800000; i++) {
        int c = against_middle(d, bits);
        if (c < 0 || (c == 0 && (bits & 1) == 0)) {
            break;
        }
        bits++;
    }
    return from_bits(bits);
}

static double nearest_f64(const decimal *d)
{
    int64_t top = d->n + d->scale;
    if (top < -326 || top > 310) {
        return top < 0 ? 0 : (double)INFINITY;
    }
    double x = (double)d->mant;
    int64_t e = d->exp;
    if (d->mant < (uint64_t)1 << 53 && d->n <= 19 && e >= -22 && e <= 22) {
        return e < 0 ? x / pow10_table[-e] : x * pow10_table[e];
    }
    for (; e > 0 && !isinf(x); e -= e < POW10_MAX ? e : POW10_MAX) {
        x *= pow10_table[e < POW10_MAX ? e : POW10_MAX];
    }
    for (; e < 0 && x > 0; e += -e < POW10_MAX ? -e : POW10_MAX) {
        x /= pow10_table[-e < POW10_MAX ? -e : POW10_MAX];
    }
    x = isinf(x) ? DBL_MAX : x;
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    for (int c; bits > 0; bits--) {
        c = against_middle64(d, bits - 1);
        if (c > 0 || (c == 0 && (bits & 1) == 0)) {
            break;
        }
    }
    for (int c; bits < (uint64_t)0x7ff << 52; bits++) {
        c = against_middle64(d, bits);
        if (c < 0 || (c == 0 && (bits & 1) == 0)) {
            break;
        }
    }
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* ------------------------------------------------------------------------------------- contract */

size_t sql_scan_f32(const char *s, size_t n, float *out)
{
    decimal d;
    size_t used = scan(s, n, &d);
    *out = 0;
    if (used) {
        float f = nearest_f32(&d);
        *out = d.neg ? -f : f;
    }
    return used;
}

size_t sql_scan_f64(const char *s, size_t n, double *out)
{
    decimal d;
    size_t used = scan(s, n, &d);
    *out = 0;
    if (used) {
        double x = d.n > 0 ? nearest_f64(&d) : 0;
        *out = d.neg ? -x : x;
    }
    return used;
}

int sql_print_f32(float x, char out[SQL_F32_TEXT])
{
    assert(isfinite(x));
    if (x == 0) {
        sqlite3_snprintf(SQL_F32_TEXT, out, signbit(x) ? "-0.0" : "0");
        return (int)strlen(out);
    }
    // Six digits are enough to find every decimal of up to six; below the normal range fewer can be
    // the shortest.
    for (int digits = fabsf(x) < 0x1p-126f ? 1 : 6; digits <= 9; digits++) {
        float back;
        sqlite3_snprintf(SQL_F32_TEXT, out, "%.*g", digits, (double)x);
        if (sql_scan_f32(out, strlen(out), &back) == strlen(out) && back == x) {
            break;
        }
    }
    return (int)strlen(out);
}

// The C library's digits are exact where those of older SQLites are not; its decimal point is the
// locale's, and may have several bytes. A whole number gets one, as SQLite shows a REAL.
static void plain_digits(const char *raw, char out[SQL_F64_TEXT])
{
    char *to = out;
    int point = 0;
    for (; *raw; raw++) {
        if (*raw == 'e' && !point) {
            *to++ = '.';
            *to++ = '0';
            point = 1;
        }
        if ((*raw >= '0' && *raw <= '9') || *raw == 'e' || *raw == '+' || *raw == '-') {
            *to++ = *raw;
        } else if (!point) {
            *to++ = '.';
            point = 1;
        }
    }
    if (!point) {
        *to++ = '.';
        *to++ = '0';
    }
    *to = 0;
}

int sql_print_f64(double x, char out[SQL_F64_TEXT])
{
    char raw[SQL_F64_TEXT - 2]; // 17 digits, two signs, a point of up to 4 bytes, an exponent
    double back = 0;
    assert(!isnan(x));
    if (isinf(x)) {
        sqlite3_snprintf(SQL_F64_TEXT, out, x > 0 ? "9e999" : "-9e999");
        return (int)strlen(out);
    }
    for (int digits = 15; digits <= 17 && (digits == 15 || back != x); digits++) {
        snprintf(raw, sizeof raw, "%.*g", digits, x);
        plain_digits(raw, out);
        sql_scan_f64(out, strlen(out), &back);
    }
    return (int)strlen(out);
}
