/*
 * sql_time_token.c - the words, numbers, dates and clock times of a time expression.
 *
 * Letters are ASCII, of either case. Commas, full stops and white space only part tokens; a word
 * that is not listed here, or any other character, makes the text one that is not understood. Only
 * a `?` or `!` at the very end is let pass.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "sql_time.h"
#include "sql_text.h"
#include "sql_value.h"

enum {
    WORD_MAX = 12,
    NUMBER_DIGITS = 6 /* keeps every sum far from 64 bits */
};

typedef struct word {
    const char *name;
    char class;
    int v;
} word;

// clang-format off
static const word words[] = {
    {"yesterday", 'D', -1}, {"today", 'D', 0}, {"tomorrow", 'D', 1}, {"now", 'z', 0},
    {"tonight", 'T', 0}, {"last", 'r', -1}, {"previous", 'r', -1}, {"this", 'r', 0},
    {"current", 'r', 0}, {"next", 'r', 1}, {"coming", 'r', 1}, {"past", 'p', -1},
    {"second", 'u', SECOND}, {"sec", 'u', SECOND}, {"minute", 'u', MINUTE}, {"min", 'u', MINUTE},
    {"hour", 'u', HOUR}, {"day", 'u', DAYS}, {"week", 'u', WEEK}, {"weekend", 'u', WEEKEND},
    {"fortnight", 'u', FORTNIGHT}, {"month", 'u', MONTH}, {"quarter", 'u', QUARTER},
    {"year", 'u', YEAR}, {"decade", 'u', DECADE}, {"monday", 'w', 0}, {"mon", 'w', 0},
    {"tuesday", 'w', 1}, {"tue", 'w', 1}, {"tues", 'w', 1}, {"wednesday", 'w', 2},
    {"wed", 'w', 2}, {"thursday", 'w', 3}, {"thu", 'w', 3}, {"thur", 'w', 3}, {"thurs", 'w', 3},
    {"friday", 'w', 4}, {"fri", 'w', 4}, {"saturday", 'w', 5}, {"sat", 'w', 5},
    {"sunday", 'w', 6}, {"sun", 'w', 6}, {"january", 'm', 1}, {"jan", 'm', 1},
    {"february", 'm', 2}, {"feb", 'm', 2}, {"march", 'm', 3}, {"mar", 'm', 3}, {"april", 'm', 4},
    {"apr", 'm', 4}, {"may", 'm', 5}, {"june", 'm', 6}, {"jun", 'm', 6}, {"july", 'm', 7},
    {"jul", 'm', 7}, {"august", 'm', 8}, {"aug", 'm', 8}, {"september", 'm', 9}, {"sept", 'm', 9},
    {"sep", 'm', 9}, {"october", 'm', 10}, {"oct", 'm', 10}, {"november", 'm', 11},
    {"nov", 'm', 11}, {"december", 'm', 12}, {"dec", 'm', 12}, {"spring", 's', 3},
    {"summer", 's', 6}, {"autumn", 's', 9}, {"fall", 's', 9}, {"winter", 's', 12},
    {"christmas", 'h', 12 * 32 + 25}, {"halloween", 'h', 10 * 32 + 31},
    {"valentine", 'h', 2 * 32 + 14}, {"new", 'W', 0}, {"eve", 'v', 0}, {"one", 'n', 1},
    {"two", 'n', 2}, {"three", 'n', 3}, {"four", 'n', 4}, {"five", 'n', 5}, {"six", 'n', 6},
    {"seven", 'n', 7}, {"eight", 'n', 8}, {"nine", 'n', 9}, {"ten", 'n', 10}, {"eleven", 'n', 11},
    {"twelve", 'n', 12}, {"thirteen", 'n', 13}, {"fourteen", 'n', 14}, {"fifteen", 'n', 15},
    {"sixteen", 'n', 16}, {"seventeen", 'n', 17}, {"eighteen", 'n', 18}, {"nineteen", 'n', 19},
    {"twenty", 'n', 20}, {"first", 'o', 1}, {"third", 'o', 3}, {"fourth", 'o', 4},
    {"fifth", 'o', 5}, {"sixth", 'o', 6}, {"seventh", 'o', 7}, {"eighth", 'o', 8},
    {"ninth", 'o', 9}, {"tenth", 'o', 10}, {"couple", 'C', 2}, {"a", 'a', 1}, {"an", 'a', 1},
    {"the", 't', 0}, {"of", 'f', 0}, {"ago", 'A', 0}, {"before", 'b', -1}, {"after", 'b', 1},
    {"since", 'S', 0}, {"between", 'B', 0}, {"from", 'F', 1}, {"and", '&', 0}, {"to", '&', 1},
    {"until", '&', 1}, {"till", '&', 1}, {"through", '&', 1}, {"in", 'x', 1}, {"on", 'x', 0},
    {"at", 'x', 0}, {"during", 'x', 0}, {"over", 'x', 0}, {"within", 'x', 0},
    {"earlier", 'e', -1}, {"later", 'e', 1}, {"morning", 'P', 6}, {"afternoon", 'P', 12},
    {"evening", 'P', 18}, {"night", 'P', 0},
};
// clang-format on

typedef struct text {
    const char *s;
    size_t n, at;
    sql_token *tok;
    size_t ntok;
} text;

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static int is_letter(char c)
{
    return lower(c) >= 'a' && lower(c) <= 'z';
}

/* The byte i places on; NUL at the end. */
static char peek(const text *t, size_t i)
{
    return t->at + i < t->n ? t->s[t->at + i] : 0;
}

static int add(text *t, sql_token k)
{
    if (t->ntok == SQL_TIME_TOKENS) {
        return 0;
    }
    t->tok[t->ntok++] = k;
    return 1;
}

/* Reads digits at place i; how many. */
static size_t digits(const text *t, size_t i, int64_t *v)
{
    size_t n = 0;
    for (*v = 0; n <= NUMBER_DIGITS && sql_is_digit(peek(t, i + n)); n++) {
        *v = *v * 10 + (peek(t, i + n) - '0');
    }
    return n;
}

/* The length of "am", "pm", "a.m." or "p.m." at place i, after spaces; 0 when there is none. */
static size_t am_pm(const text *t, size_t i, int *pm)
{
    size_t from = i;
    while (peek(t, i) == ' ') {
        i++;
    }
    char half = lower(peek(t, i));
    int dot = peek(t, i + 1) == '.';
    i += 1 + (size_t)dot;
    if ((half != 'a' && half != 'p') || lower(peek(t, i)) != 'm' || is_letter(peek(t, i + 1)) ||
        sql_is_digit(peek(t, i + 1))) {
        return 0;
    }
    *pm = half == 'p';
    return i + 1 + (dot && peek(t, i + 1) == '.') - from;
}

/* A clock time that begins with the hour h, n digits long: 1, 0 when it is none, -1 bad. */
static int read_clock(text *t, int64_t h, size_t n)
{
    int64_t part[2] = {0, 0}, len = 3600;
    int parts = 0, pm = 0;
    for (; parts < 2 && peek(t, n) == ':'; parts++, n += 3, len /= 60) {
        if (digits(t, n + 1, &part[parts]) != 2 || part[parts] > 59) {
            return -1;
        }
    }
    size_t half = am_pm(t, n, &pm);
    if (!half && !parts) {
        return 0;
    }
    if (half ? h < 1 || h > 12 : h > 23) {
        return -1;
    }
    h = half ? h % 12 + 12 * pm : h;
    t->at += n + half;
    return add(t, (sql_token){.class = 'c', .v = h * 3600 + part[0] * 60 + part[1], .w = len}) ? 1
                                                                                               : -1;
}

/* 2023-05, 2023-05-08, 2023-05-08T15:30...: 1, 0 when it is none, -1 bad. */
static int read_iso(text *t, int64_t y)
{
    int64_t m, d;
    char sep = peek(t, 4);
    sql_range r;
    if ((sep != '-' && sep != '/') || digits(t, 5, &m) != 2) {
        return 0;
    }
    if (m < 1 || m > 12) {
        return -1;
    }
    size_t n = 7;
    if (peek(t, 7) != sep) {
        r = sql_unit_range(MONTH, y * 12 + m - 1);
    } else if (digits(t, 8, &d) != 2 || d < 1 || d > sql_month_days(y, (int)m)) {
        return -1;
    } else if (lower(peek(t, 10)) == 't') {
        double at;
        for (n = 11; peek(t, n) && peek(t, n) != ' ' && peek(t, n) != ','; n++) {
        }
        if (!sql_scan_time(t->s + t->at, n, &at)) {
            return -1;
        }
        r.start = (int64_t)at - ((double)(int64_t)at > at);
        r.end = r.start + (peek(t, 16) == ':' ? 1 : 60);
    } else {
        n = 10;
        r.start = sql_day_of(y, (int)m, (int)d) * SQL_DAY;
        r.end = r.start + SQL_DAY;
    }
    if (sql_is_digit(peek(t, n)) || is_letter(peek(t, n))) {
        return -1;
    }
    t->at += n;
    return add(t, (sql_token){.class = 'R', .v = r.start, .w = r.end - r.start}) ? 1 : -1;
}

static int read_number(text *t)
{
    int64_t v;
    size_t n = digits(t, 0, &v);
    if (n > NUMBER_DIGITS) {
        return 0;
    }
    int rc = n == 4 ? read_iso(t, v) : n <= 2 ? read_clock(t, v, n) : 0;
    if (rc) {
        return rc > 0;
    }
    sql_token k = {.class = 'n', .digits = (char)n, .v = v};
    char a = lower(peek(t, n)), b = lower(peek(t, n + 1));
    if (is_letter(a) && !is_letter(b)) {
        if (a != 's' || n != 4 || v % 10) {
            return 0;
        }
        sql_range r = sql_unit_range(DECADE, v / 10);
        k = (sql_token){.class = 'R', .v = r.start, .w = r.end - r.start};
        n += 1;
    } else if (is_letter(a)) {
        char c[3] = {a, b, 0};
        const char *want = v / 10 % 10 == 1 ? "th"
                           : v % 10 == 1    ? "st"
                           : v % 10 == 2    ? "nd"
                           : v % 10 == 3    ? "rd"
                                            : "th";
        if (strcmp(c, want) != 0 || is_letter(peek(t, n + 2))) {
            return 0;
        }
        k.class = 'o';
        n += 2;
    }
    t->at += n;
    return !sql_is_digit(peek(t, 0)) && add(t, k);
}

static const word *look_up(const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strlen(words[i].name) == n && memcmp(words[i].name, name, n) == 0) {
            return &words[i];
        }
    }
    return NULL;
}

static int read_word(text *t)
{
    char buf[WORD_MAX];
    size_t n = 0;
    for (; is_letter(peek(t, n)); n++) {
        if (n == sizeof buf) {
            return 0;
        }
        buf[n] = lower(peek(t, n));
    }
    t->at += n;
    char c = peek(t, 0);
    if (n == 1 && *buf == 'q' && c >= '1' && c <= '4' && !sql_is_digit(peek(t, 1)) &&
        !is_letter(peek(t, 1))) {
        t->at++;
        return add(t, (sql_token){.class = 'q', .v = c - '0'});
    }
    if (sql_is_digit(c)) {
        return 0;
    }
    size_t mark = c == '\''                                                     ? 1
                  : t->n - t->at >= 3 && memcmp(t->s + t->at, "\u2019", 3) == 0 ? 3
                                                                                : 0;
    if (mark && lower(peek(t, mark)) == 's' && !is_letter(peek(t, mark + 1))) {
        t->at += mark + 1; // new year's
    }
    if ((n == 4 && memcmp(buf, "noon", 4) == 0) || (n == 8 && memcmp(buf, "midnight", 8) == 0)) {
        return add(t, (sql_token){.class = 'c', .v = n == 4 ? 12 * 3600 : 0, .w = 3600});
    }
    const word *w = look_up(buf, n);
    if (!w && buf[n - 1] == 's') {
        w = look_up(buf, n - 1);
        w = w && w->class == 'u' ? w : NULL;
    }
    return w && add(t, (sql_token){
                           .class = w->class, .v = w->v, .is_ordinal = w == look_up("second", 6)});
}

static int tokenize(text *t)
{
    while (t->at < t->n) {
        char c = peek(t, 0);
        int ok = 1;
        if (c == ' ' || c == ',' || c == '.' || (c >= '\t' && c <= '\r')) {
            t->at++;
        } else if (sql_is_digit(c)) {
            ok = read_number(t);
        } else if (is_letter(c)) {
            ok = read_word(t);
        } else if (c == '-') {
            ok = !(t->at && is_letter(t->s[t->at - 1]) && sql_is_digit(peek(t, 1))) &&
                 !(t->at && sql_is_digit(t->s[t->at - 1]) && is_letter(peek(t, 1))); // 8-May-2023
            t->at++;
            ok = ok && add(t, (sql_token){.class = '&', .v = 1});
        } else if (t->n - t->at >= 3 && memcmp(t->s + t->at, "\u2013", 3) == 0) {
            t->at += 3;
            ok = add(t, (sql_token){.class = '&', .v = 1});
        } else {
            return (c == '?' || c == '!') && t->at + 1 == t->n;
        }
        if (!ok) {
            return 0;
        }
    }
    return 1;
}

int sql_time_tokens(const char *s, size_t n, sql_token out[SQL_TIME_TOKENS], size_t *count)
{
    text t = {.s = s, .n = n, .tok = out};
    int ok = tokenize(&t);
    *count = t.ntok;
    return ok;
}
