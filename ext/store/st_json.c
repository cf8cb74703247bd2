/*
 * st_json.c - the JSON of events: one flat object, written member by member.
 *
 * Bytes are taken as they are but for quotes, backslashes and control characters.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <stdio.h>

#include "st_store.h"

/* Has one of eight bytes that JSON does not take as they are? With the high bit of each that is
 * under ' ', a quote or a backslash; bytes above 127 may be said to be, and are looked at. */
static int any_special(const uint8_t *p)
{
    const uint64_t ones = 0x0101010101010101u;
    uint64_t w, quote, slash;
    memcpy(&w, p, sizeof w);
    quote = w ^ '"' * ones;
    slash = w ^ '\\' * ones;
    return ((w - ' ' * ones) | (quote - ones) | (slash - ones)) & 0x80 * ones ? 1 : 0;
}

/* Length of the run that JSON takes as it is. */
static size_t plain_run(const uint8_t *p, size_t n)
{
    size_t i = 0;
    while (i < n) {
        if (n - i >= 8 && !any_special(p + i)) {
            i += 8;
        } else if (p[i] >= ' ' && p[i] != '"' && p[i] != '\\') {
            i++;
        } else {
            break;
        }
    }
    return i;
}

static int add_text(st_buf *b, const void *text, size_t n, st_error *err)
{
    static const char hex[] = "0123456789abcdef";
    const uint8_t *p = text;
    ST_TRY(st_buf_room(b, n + 2, err));
    b->p[b->n++] = '"';
    while (n) {
        size_t run = plain_run(p, n);
        ST_TRY(st_buf_add(b, p, run, err));
        p += run;
        n -= run;
        if (n) {
            char esc[6] = {'\\', 'u', '0', '0', hex[*p >> 4], hex[*p & 15]};
            if (*p >= ' ') {
                esc[1] = (char)*p;
            }
            ST_TRY(st_buf_add(b, esc, *p < ' ' ? sizeof esc : 2, err));
            p++;
            n--;
        }
    }
    return st_buf_add(b, "\"", 1, err);
}

static int add(st_buf *b, const char *s, st_error *err)
{
    return st_buf_add(b, s, strlen(s), err);
}

/* The name of a member, and what comes before it. */
static int add_name(st_buf *b, const char *name, st_error *err)
{
    size_t n = strlen(name);
    ST_TRY(st_buf_room(b, n + 4, err));
    b->p[b->n] = b->n ? ',' : '{';
    b->p[++b->n] = '"';
    memcpy(b->p + ++b->n, name, n);
    b->n += n;
    b->p[b->n++] = '"';
    b->p[b->n++] = ':';
    return ST_OK;
}

enum { DECIMALS = 5 };

/* As st_print_real does. Many rows are described at once, and the C library's way of printing takes
 * longer than all the rest: numbers of few digits go without it. */
static void print_real(double v, char *out, size_t n)
{
    char digits[32];
    size_t k = sizeof digits;
    int decimals = DECIMALS;
    uint64_t x = fabs(v) < 9e9 ? (uint64_t)(fabs(v) * 1e5 + 0.5) : 0;
    if ((double)x / 1e5 != fabs(v) || (v != 0 && fabs(v) < 1e-4)) {
        st_print_real(v, out, n);
        return;
    }
    int negative = signbit(v) != 0;
    for (; decimals > 0 && x % 10 == 0; x /= 10) {
        decimals--;
    }
    for (int i = 0; i <= decimals || x; i++, x /= 10) {
        if (i == decimals && decimals > 0) {
            digits[--k] = '.';
        }
        digits[--k] = (char)('0' + x % 10);
    }
    if (negative) {
        digits[--k] = '-';
    }
    memcpy(out, digits + k, sizeof digits - k);
    out[sizeof digits - k] = 0;
}

int st_json_add(st_json *b, const char *name, const st_value *v, st_error *err)
{
    char number[40];
    ST_TRY(add_name(b, name, err));
    if (v->type == ST_TEXT) {
        return add_text(b, v->p, v->n, err);
    }
    if (v->type == ST_INT) {
        snprintf(number, sizeof number, "%lld", (long long)v->i);
        return add(b, number, err);
    }
    if (v->type != ST_REAL) {
        return add(b, "null", err);
    }
    print_real(v->r, number, sizeof number);
    return add(b, number, err);
}

void st_json_free(st_json *j)
{
    st_buf_free(j);
}
