/*
 * sql_when.c - does a question name a time and nothing else? "What happened on 3 May 2023?", "and
 * last week?"
 *
 * Then rows of that time are what was asked for, whatever their words. Each word has to be part of
 * the time, a stop word, or one that asks for anything at all (happened, talk about, events). A
 * date without such words as last, since, before means every day that fulfils it (sql_dates.c): all
 * that happened in any May. With them, or yesterday and the like, what h5mem_time makes of it by
 * the clock: the longest run of words that it understands, around all that are neither of the other
 * two. A word such as "first", "summer" or "morning" by itself is a word, as is a lone "december",
 * "2026" or "yesterday": there has to be something that asks ("in December"), or a number beside a
 * name ("December 2026"), or three numbers (2026-12-01).
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "sql.h"
#include "sql_ask.h"
#include "sql_text.h"

enum { WORDS_MAX = 32, LONGEST = 16, AROUND = 2 };

typedef struct word {
    const char *s;
    size_t n;
    char low[LONGEST]; /* "" for one that is longer */
} word;

static const char *const anything[] = {
    "anything",  "conversation", "conversations", "date",     "day",      "discuss", "discussed",
    "event",     "events",       "everything",    "go",       "going",    "happen",  "happened",
    "happening", "happens",      "list",          "memories", "messages", "mention", "mentioned",
    "news",      "occur",        "occurred",      "place",    "said",     "say",     "show",
    "something", "take",         "talk",          "talked",   "talking",  "tell",    "thing",
    "things",    "told",         "took",          "went"};
static const char *const relative[] = {"after", "ago",   "before", "between", "last",  "next",
                                       "past",  "since", "this",   "until",   "recent"};
static const char *const today[] = {"today", "tomorrow", "tonight", "yesterday"};
static const char *const unit[] = {"day",    "days",    "week",    "weeks",  "weekend",  "weekends",
                                   "month",  "months",  "year",    "years",  "hour",     "hours",
                                   "minute", "minutes", "quarter", "decade", "fortnight"};
static const char *const named[] = {
    "january",    "february",  "march",   "april",     "may",      "june",    "july",
    "august",     "september", "october", "november",  "december", "monday",  "tuesday",
    "wednesday",  "thursday",  "friday",  "saturday",  "sunday",   "mondays", "tuesdays",
    "wednesdays", "thursdays", "fridays", "saturdays", "sundays",  "jan",     "feb",
    "mar",        "apr",       "jun",     "jul",       "aug",      "sep",     "sept",
    "oct",        "nov",       "dec",     "st",        "nd",       "rd",      "th"};

static int among(const char *s, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(s, list[i]) == 0) {
            return 1;
        }
    }
    return 0;
}
#define AMONG(s, list) among(s, list, sizeof(list) / sizeof *(list))

/* Runs of letters and runs of digits; -1: too many, or an operator of the query language. */
static int split(const char *s, size_t n, word *out)
{
    int count = 0;
    for (size_t i = 0; i < n;) {
        size_t from = i;
        int digits = sql_is_digit(s[i]);
        if (s[i] == '"' || s[i] == '+' || s[i] == '*' ||
            (s[i] == '-' && (i == 0 || s[i - 1] == ' '))) {
            return -1;
        }
        while (i < n && (digits ? sql_is_digit(s[i]) : sql_is_letter(s[i]))) {
            i++;
        }
        if (i == from) {
            i++;
            continue;
        }
        if (count == WORDS_MAX) {
            return -1;
        }
        word *w = &out[count++];
        *w = (word){s + from, i - from, ""};
        for (size_t k = 0; i - from < LONGEST && k < i - from; k++) {
            w->low[k] = (char)(w->s[k] >= 'A' && w->s[k] <= 'Z' ? w->s[k] + 32 : w->s[k]);
        }
    }
    return count;
}

static int asks_anything(const word *w)
{
    return sql_is_stop_word(w->s, w->n) || AMONG(w->low, anything);
}

static int is_date(const word *w)
{
    return sql_is_digit(w->s[0]) || AMONG(w->low, named);
}

/* A range of time around words first..last, with up to AROUND words more on either side. */
static int find_range(const word *w, int count, int first, int last, sql_when *out)
{
    int64_t now = (int64_t)sql_now();
    for (int left = first < AROUND ? first : AROUND; left >= 0; left--) {
        int most = count - 1 - last < AROUND ? count - 1 - last : AROUND;
        for (int right = most; right >= 0; right--) {
            const word *a = &w[first - left], *b = &w[last + right];
            size_t n = (size_t)(b->s + b->n - a->s);
            if (sql_time_range(a->s, n, now, &out->start, &out->end)) {
                out->ranged = 1;
                return 1;
            }
        }
    }
    return 0;
}

int sql_when_read(const char *s, size_t n, sql_dates *dates, sql_when *out)
{
    word w[WORDS_MAX];
    int count = split(s, n, w), first = -1, last = -1, dated = dates->n > 0;
    int turned = 0, timed = 0, now = 0; // a word that turns a time, a time, one that is both
    int asks = 0, number = 0, name = 0;
    *out = (sql_when){.dates = dates};
    for (int i = 0; i < count; i++) {
        int date = is_date(&w[i]);
        turned |= AMONG(w[i].low, relative);
        timed |= date || AMONG(w[i].low, unit);
        now |= AMONG(w[i].low, today);
        number += sql_is_digit(w[i].s[0]);
        name |= AMONG(w[i].low, named);
        asks |= !date && (asks_anything(&w[i]) || AMONG(w[i].low, relative));
        if (date || !asks_anything(&w[i])) {
            first = first < 0 ? i : first;
            last = i;
            dated &= date;
        }
    }
    if (first < 0 || !(asks || (number && name) || number >= 3)) {
        return 0;
    }
    return (((turned && timed) || now) && find_range(w, count, first, last, out)) || dated;
}

int sql_when_within(void *ctx, double timestamp)
{
    const sql_when *w = ctx;
    if (w->ranged) {
        return timestamp >= (double)w->start && timestamp < (double)w->end;
    }
    return sql_dates_weight(w->dates, timestamp) >= sql_dates_most(w->dates) - 1e-9;
}
