/*
 * sql_value.c - vectors written as JSON, times written as ISO 8601, floats as bytes.
 *
 * ERRORS   a reason in words; the caller knows which column or argument it was.
 * THREADS  pure functions.
 * TESTS    tests/unit/t_sql_value.c
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <string.h>

#include "sql.h"
#include "sql_value.h"

/* -------------------------------------------------------------------------------------- vectors */

static size_t skip_space(const char *s, size_t n, size_t i)
{
    while (i < n && (s[i] == ' ' || s[i] == '\t' || s[i] == '\n' || s[i] == '\r')) {
        i++;
    }
    return i;
}

static int no_array(char *why, size_t nwhy, size_t at)
{
    sqlite3_snprintf((int)nwhy, why, "is no JSON array of numbers: byte %lld", (long long)at + 1);
    return 0;
}

// The element that is no number, as far as a reader needs it: NaN, null, "a", ...
static int bad_element(const char *s, size_t n, size_t index, char *why, size_t nwhy)
{
    int len = 0;
    while (len < 20 && (size_t)len < n && !strchr(", \t\r\n]", s[len])) {
        len++;
    }
    sqlite3_snprintf((int)nwhy, why, "is no JSON array of numbers: %.*s at [%lld]", len, s,
                     (long long)index);
    return 0;
}

int sql_scan_vector(const char *s, size_t n, float *out, size_t room, size_t *count, char *why,
                    size_t nwhy)
{
    size_t i = skip_space(s, n, 0), k = 0;
    *count = 0;
    if (i == n || s[i] != '[') {
        return no_array(why, nwhy, i);
    }
    i = skip_space(s, n, i + 1);
    while (i < n && (s[i] != ']' || k > 0)) {
        float f;
        size_t used = sql_scan_f32(s + i, n - i, &f);
        if (used == 0) {
            return bad_element(s + i, n - i, k, why, nwhy);
        }
        if (isinf(f)) {
            sqlite3_snprintf((int)nwhy, why,
                             "holds %.*s at [%lld], more than a 32-bit float can hold",
                             used < 40 ? (int)used : 40, s + i, (long long)k);
            return 0;
        }
        if (k < room) {
            out[k] = f;
        }
        k++;
        i = skip_space(s, n, i + used);
        if (i == n || s[i] != ',') {
            break;
        }
        i = skip_space(s, n, i + 1);
    }
    if (i == n || s[i] != ']' || skip_space(s, n, i + 1) != n) {
        return no_array(why, nwhy, i == n || s[i] != ']' ? i : skip_space(s, n, i + 1));
    }
    *count = k;
    return 1;
}

void sql_floats_load(const void *bytes, size_t n, float *out)
{
    const unsigned char *b = bytes;
    for (size_t i = 0; i < n; i++, b += 4) {
        uint32_t u = (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 |
                     (uint32_t)b[3] << 24;
        memcpy(&out[i], &u, sizeof u);
    }
}

void sql_floats_store(const float *x, size_t n, void *bytes)
{
    unsigned char *b = bytes;
    for (size_t i = 0; i < n; i++, b += 4) {
        uint32_t u;
        memcpy(&u, &x[i], sizeof u);
        b[0] = (unsigned char)u;
        b[1] = (unsigned char)(u >> 8);
        b[2] = (unsigned char)(u >> 16);
        b[3] = (unsigned char)(u >> 24);
    }
}

int sql_whole(double x, int64_t *out)
{
    if (!(x >= -0x1p63 && x < 0x1p63) || x != floor(x)) {
        return 0;
    }
    *out = (int64_t)x;
    return 1;
}

/* ---------------------------------------------------------------------------------------- times */

typedef struct reader {
    const char *s;
    size_t n, i;
} reader;

// Exactly `digits` digits with a value of at most max; -1 otherwise.
static int read_number(reader *r, int digits, int max)
{
    int v = 0;
    for (int k = 0; k < digits; k++, r->i++) {
        if (r->i >= r->n || r->s[r->i] < '0' || r->s[r->i] > '9') {
            return -1;
        }
        v = v * 10 + (r->s[r->i] - '0');
    }
    return v <= max ? v : -1;
}

static int read_char(reader *r, char c)
{
    if (r->i < r->n && r->s[r->i] == c) {
        r->i++;
        return 1;
    }
    return 0;
}

// Days from 1970-01-01 in the proleptic Gregorian calendar; years are shifted to begin in March, so
// that the leap day is the last.
static int64_t days(int year, int month, int day)
{
    int64_t y = year - (month <= 2);
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t of_era = y - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static int read_date(reader *r, int64_t *out)
{
    static const int length[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int y = read_number(r, 4, 9999);
    if (y < 0 || !read_char(r, '-')) {
        return 0;
    }
    int m = read_number(r, 2, 12);
    if (m < 1 || !read_char(r, '-')) {
        return 0;
    }
    int leap = m == 2 && y % 4 == 0 && (y % 100 != 0 || y % 400 == 0);
    int d = read_number(r, 2, length[m - 1] + leap);
    if (d < 1) {
        return 0;
    }
    *out = days(y, m, d);
    return 1;
}

// HH:MM[:SS[.fraction]]; the fraction apart, so that whole seconds stay exact.
static int read_clock(reader *r, int64_t *seconds, double *fraction)
{
    int h = read_number(r, 2, 23);
    int m = h >= 0 && read_char(r, ':') ? read_number(r, 2, 59) : -1;
    int s = 0;
    if (m < 0) {
        return 0;
    }
    if (read_char(r, ':')) {
        s = read_number(r, 2, 59);
        if (s < 0) {
            return 0;
        }
        if (read_char(r, '.') || read_char(r, ',')) {
            size_t start = r->i;
            double unit = 1, digits = 0;
            for (; r->i < r->n && r->s[r->i] >= '0' && r->s[r->i] <= '9'; r->i++) {
                if (r->i - start < 15) {
                    digits = digits * 10 + (r->s[r->i] - '0');
                    unit *= 10;
                }
            }
            if (r->i == start) {
                return 0;
            }
            *fraction = digits / unit;
        }
    }
    *seconds = h * 3600 + m * 60 + s;
    return 1;
}

static int read_zone(reader *r, int64_t *seconds)
{
    if (read_char(r, 'Z') || read_char(r, 'z')) {
        return 1;
    }
    int minus = read_char(r, '-');
    if (!minus && !read_char(r, '+')) {
        return 0;
    }
    int h = read_number(r, 2, 23), m = 0;
    if (h >= 0 && (read_char(r, ':') || r->i < r->n)) {
        m = read_number(r, 2, 59);
    }
    *seconds = (minus ? -1 : 1) * (int64_t)(h * 3600 + m * 60);
    return h >= 0 && m >= 0;
}

int sql_scan_time(const char *s, size_t n, double *out)
{
    reader r = {s, n, 0};
    int64_t day, clock = 0, zone = 0;
    double fraction = 0;
    r.i = skip_space(s, n, 0);
    while (r.n > r.i && skip_space(s, r.n, r.n - 1) == r.n) {
        r.n--;
    }
    if (!read_date(&r, &day)) {
        return 0;
    }
    if (r.i < r.n) {
        if (!read_char(&r, 'T') && !read_char(&r, 't')) {
            size_t at = r.i;
            r.i = skip_space(s, r.n, r.i);
            if (r.i == at) {
                return 0;
            }
        }
        if (!read_clock(&r, &clock, &fraction)) {
            return 0;
        }
        r.i = skip_space(s, r.n, r.i);
        if (r.i < r.n && !read_zone(&r, &zone)) {
            return 0;
        }
    }
    *out = (double)(day * 86400 + clock - zone) + fraction;
    return r.i == r.n;
}
