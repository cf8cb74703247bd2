/*
 * sql_dates.c - the dates that a question names: "in May 2023", "on 8 May", "on a Monday",
 * "2023-05-08".
 *
 * A date counts as a word that a row has when the day it was said fulfils it, so each part of it
 * weighs what a word that rare would: a month ln 12, a day of the month ln 30, a weekday ln 7. A
 * year weighs 1, since a memory spans few of them.
 *
 * "may" and "march" are months where something says so: a capital inside a sentence, a number or a
 * preposition beside it. Short forms need a number.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <string.h>

#include "sql.h"
#include "sql_text.h"
#include "sql_time.h"

enum { WORDS_MAX = 256, LONGEST = 12 }; /* a question; what follows is not looked at */
enum { UNIT_YEAR, UNIT_MONTH, UNIT_DAY, UNIT_WEEKDAY };

typedef struct word {
    char s[LONGEST];             /* lower case; "" for one that is longer */
    int capital, number, digits; /* number: -1 for none */
    char behind;                 /* the byte that follows */
} word;

static const char *const months[] = {"january",   "february", "march",    "april",
                                     "may",       "june",     "july",     "august",
                                     "september", "october",  "november", "december"};
static const char *const weekdays[] = {"monday", "tuesday",  "wednesday", "thursday",
                                       "friday", "saturday", "sunday"};
static const char *const leads[] = {"in", "of",    "last", "this", "next",  "during", "since",
                                    "by", "early", "late", "mid",  "until", "before", "after"};

/* Runs of letters, and runs of digits with the st, nd, rd, th of an ordinal. */
static int split(const char *s, size_t n, word *out)
{
    int count = 0;
    for (size_t i = 0; i < n && count < WORDS_MAX;) {
        size_t from = i;
        word *w = &out[count];
        *w = (word){.number = -1};
        if (sql_is_digit(s[i])) {
            int v = 0;
            for (; i < n && sql_is_digit(s[i]); i++) {
                v = i - from < 4 ? v * 10 + (s[i] - '0') : -1;
            }
            w->digits = (int)(i - from);
            w->number = w->digits <= 4 ? v : -1;
            if (n - i >= 2 && (memcmp(s + i, "st", 2) == 0 || memcmp(s + i, "nd", 2) == 0 ||
                               memcmp(s + i, "rd", 2) == 0 || memcmp(s + i, "th", 2) == 0)) {
                i += 2;
            }
        } else if (sql_is_letter(s[i])) {
            w->capital = s[i] >= 'A' && s[i] <= 'Z';
            while (i < n && sql_is_letter(s[i])) {
                i++;
            }
            for (size_t k = from; k < i && i - from < LONGEST; k++) {
                w->s[k - from] = (char)(s[k] >= 'A' && s[k] <= 'Z' ? s[k] + 32 : s[k]);
            }
        } else {
            i++;
            continue;
        }
        w->behind = i < n ? s[i] : 0;
        count++;
    }
    return count;
}

static int among(const char *s, const char *const *list, int n)
{
    for (int i = 0; i < n; i++) {
        if (strcmp(s, list[i]) == 0) {
            return i;
        }
    }
    return -1;
}

static void add(sql_dates *d, int unit, int value)
{
    for (int i = 0; i < d->n; i++) {
        if (d->of[i].unit == unit && d->of[i].value == value) {
            return;
        }
    }
    if (d->n < SQL_DATES_MAX) {
        d->of[d->n].unit = unit;
        d->of[d->n++].value = value;
    }
}

static int is_day(const word *w)
{
    return w->number >= 1 && w->number <= 31 && w->digits <= 2 && w->behind != ':';
}

static int is_year(const word *w)
{
    return w->digits == 4 && w->number >= 1900 && w->number < 2100;
}

/* The month, 1..12, that the word at i is; 0: none. */
static int month_at(const word *w, int n, int i)
{
    int m = among(w[i].s, months, 12);
    int beside = (i > 0 && w[i - 1].number >= 0) || (i + 1 < n && w[i + 1].number >= 0);
    size_t len = strlen(w[i].s);
    if (m == 2 || m == 4) {
        int led = i > 0 && among(w[i - 1].s, leads, sizeof leads / sizeof *leads) >= 0;
        return beside || led || (i > 0 && w[i].capital) ? m + 1 : 0;
    }
    if (m < 0 && beside && (len == 3 || strcmp(w[i].s, "sept") == 0)) {
        for (m = 11; m >= 0 && strncmp(w[i].s, months[m], 3) != 0;) {
            m--;
        }
    }
    return m + 1;
}

/* The day beside a month's name: 8 May, 8th of May, May 8. */
static void day_beside(const word *w, int n, int i, sql_dates *out)
{
    if (i > 0 && is_day(&w[i - 1])) {
        add(out, UNIT_DAY, w[i - 1].number);
    } else if (i > 1 && strcmp(w[i - 1].s, "of") == 0 && is_day(&w[i - 2])) {
        add(out, UNIT_DAY, w[i - 2].number);
    } else if (i + 1 < n && is_day(&w[i + 1])) {
        add(out, UNIT_DAY, w[i + 1].number);
    }
}

void sql_dates_read(const char *s, size_t n, sql_dates *out)
{
    word w[WORDS_MAX];
    int count = split(s, n, w);
    out->n = 0;
    for (int i = 0; i < SQL_DATES_DAYS; i++) {
        out->known[i].day = INT64_MIN; // no time's
    }
    for (int i = 0; i < count; i++) {
        int m = w[i].s[0] ? month_at(w, count, i) : 0, day;
        if (m) {
            add(out, UNIT_MONTH, m);
            day_beside(w, count, i, out);
        } else if (w[i].s[0]) {
            size_t len = strlen(w[i].s);
            if (len && w[i].s[len - 1] == 's') { // on Mondays
                w[i].s[len - 1] = 0;
            }
            day = among(w[i].s, weekdays, 7);
            if (day >= 0) {
                add(out, UNIT_WEEKDAY, day);
            }
        } else if (is_year(&w[i])) {
            add(out, UNIT_YEAR, w[i].number);
            if (w[i].behind == '-' && i + 1 < count && w[i + 1].digits == 2 &&
                w[i + 1].number >= 1 && w[i + 1].number <= 12) {
                add(out, UNIT_MONTH, w[i + 1].number);
                if (w[i + 1].behind == '-' && i + 2 < count && is_day(&w[i + 2])) {
                    add(out, UNIT_DAY, w[i + 2].number);
                }
            }
        }
    }
}

static double weight(int unit)
{
    switch (unit) {
    case UNIT_MONTH:
        return 2.4849066497880004; // ln 12
    case UNIT_DAY:
        return 3.4011973816621555; // ln 30
    case UNIT_WEEKDAY:
        return 1.9459101490553132; // ln 7
    default:
        return 1;
    }
}

double sql_dates_most(const sql_dates *d)
{
    double sum = 0;
    for (int i = 0; i < d->n; i++) {
        sum += weight(d->of[i].unit);
    }
    return sum;
}

static double weight_of_day(const sql_dates *d, int64_t days)
{
    double sum = 0;
    int64_t t = days * SQL_DAY, month = sql_unit_index(MONTH, t);
    int64_t first = sql_unit_range(MONTH, month).start / SQL_DAY;
    int64_t year = sql_unit_index(YEAR, t);
    int64_t is[] = {[UNIT_YEAR] = year,
                    [UNIT_MONTH] = month - sql_unit_index(MONTH, sql_unit_range(YEAR, year).start) +
                                   1,
                    [UNIT_DAY] = days - first + 1,
                    [UNIT_WEEKDAY] = days + 3 - 7 * sql_floor_div(days + 3, 7)};
    for (int i = 0; i < d->n; i++) {
        sum += is[d->of[i].unit] == d->of[i].value ? weight(d->of[i].unit) : 0;
    }
    return sum;
}

double sql_dates_weight(void *ctx, double timestamp)
{
    sql_dates *d = ctx;
    if (!(timestamp >= (double)SQL_TIME_MIN && timestamp < (double)SQL_TIME_MAX)) {
        return 0;
    }
    int64_t days = sql_floor_div((int64_t)floor(timestamp), SQL_DAY);
    size_t at = (size_t)(days & (SQL_DATES_DAYS - 1));
    if (d->known[at].day != days) {
        d->known[at].day = days;
        d->known[at].weight = weight_of_day(d, days);
    }
    return d->known[at].weight;
}
