/*
 * t_sql_time.c - time expressions: a table against a fixed now, borders of the calendar, and word
 * salad.
 *
 * Ranges are written as civil times, which sql_scan_time reads (t_sql_value.c has it day by day).
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sql_text.h"
#include "sql_time.h"
#include "sql_value.h"
#include "t_guard.h"
#include "t_rng.h"

static int64_t at(const char *s)
{
    double t;
    if (strcmp(s, "10000-01-01") == 0) {
        return SQL_TIME_MAX;
    }
    assert_true(sql_scan_time(s, strlen(s), &t));
    return (int64_t)t;
}

/* Reads text that ends at an unmapped page. */
static int parse(const char *s, size_t n, int64_t now, int64_t *start, int64_t *end)
{
    t_guard g = t_guard_copy(s, n);
    int found = sql_time_range((const char *)g.p, n, now, start, end);
    t_guard_free(&g);
    return found;
}

typedef struct row {
    const char *text, *start, *end; /* end NULL: the day of start */
} row;

static void check(const char *now, const row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int64_t a, b, start = at(rows[i].start);
        int64_t end = rows[i].end ? at(rows[i].end) : start + SQL_DAY;
        if (!parse(rows[i].text, strlen(rows[i].text), at(now), &a, &b)) {
            fail_msg("%s: not understood", rows[i].text);
        }
        if (a != start || b != end) {
            fail_msg("%s: %lld to %lld, not %lld to %lld", rows[i].text, (long long)a, (long long)b,
                     (long long)start, (long long)end);
        }
    }
}

#define CHECK(now, rows) check(now, rows, sizeof(rows) / sizeof *(rows))

/* A Tuesday, the last day of a month. */
static const char now[] = "2026-03-31T14:45:30";

static void test_relative(void **state)
{
    (void)state;
    static const row rows[] = {
        {"today", "2026-03-31", NULL},
        {"TODAY", "2026-03-31", NULL},
        {"  today ", "2026-03-31", NULL},
        {"today?", "2026-03-31", NULL},
        {"yesterday", "2026-03-30", NULL},
        {"tomorrow", "2026-04-01", NULL},
        {"now", "2026-03-31T14:45:30", "2026-03-31T14:45:31"},
        {"tonight", "2026-03-31T18:00", "2026-04-01T06:00"},
        {"this week", "2026-03-30", "2026-04-06"},
        {"last week", "2026-03-23", "2026-03-30"},
        {"next week", "2026-04-06", "2026-04-13"},
        {"the previous week", "2026-03-23", "2026-03-30"},
        {"the coming week", "2026-04-06", "2026-04-13"},
        {"this month", "2026-03-01", "2026-04-01"},
        {"last month", "2026-02-01", "2026-03-01"},
        {"next month", "2026-04-01", "2026-05-01"},
        {"current month", "2026-03-01", "2026-04-01"},
        {"this year", "2026-01-01", "2027-01-01"},
        {"last year", "2025-01-01", "2026-01-01"},
        {"next year", "2027-01-01", "2028-01-01"},
        {"this quarter", "2026-01-01", "2026-04-01"},
        {"last quarter", "2025-10-01", "2026-01-01"},
        {"next quarter", "2026-04-01", "2026-07-01"},
        {"last decade", "2010-01-01", "2020-01-01"},
        {"this weekend", "2026-04-04", "2026-04-06"},
        {"last weekend", "2026-03-28", "2026-03-30"},
        {"next weekend", "2026-04-11", "2026-04-13"},
        {"over the weekend", "2026-03-28", "2026-03-30"},
        {"last Tuesday", "2026-03-24", NULL},
        {"next Tuesday", "2026-04-07", NULL},
        {"this Tuesday", "2026-03-31", NULL},
        {"on Tuesday", "2026-03-31", NULL},
        {"Wednesday", "2026-03-25", NULL},
        {"last Wednesday", "2026-03-25", NULL},
        {"next Wednesday", "2026-04-01", NULL},
        {"this Friday", "2026-04-03", NULL},
        {"last Monday", "2026-03-30", NULL},
        {"on Sun", "2026-03-29", NULL},
        {"Friday last week", "2026-03-27", NULL},
        {"Friday of next week", "2026-04-10", NULL},
        {"last week on Friday", "2026-03-27", NULL},
        {"last May", "2025-05-01", "2025-06-01"},
        {"last March", "2025-03-01", "2025-04-01"},
        {"this March", "2026-03-01", "2026-04-01"},
        {"next May", "2026-05-01", "2026-06-01"},
        {"May last year", "2025-05-01", "2025-06-01"},
        {"last year in May", "2025-05-01", "2025-06-01"},
        {"last summer", "2025-06-01", "2025-09-01"},
        {"last winter", "2025-12-01", "2026-03-01"},
        {"this winter", "2026-12-01", "2027-03-01"},
        {"next spring", "2027-03-01", "2027-06-01"},
        {"last Christmas", "2025-12-25", NULL},
        {"next Christmas", "2026-12-25", NULL},
        {"this Christmas", "2026-12-25", NULL},
        {"the day before yesterday", "2026-03-29", NULL},
        {"the day after tomorrow", "2026-04-02", NULL},
        {"the week before last", "2026-03-16", "2026-03-23"},
        {"the month before last", "2026-01-01", "2026-02-01"},
        {"the week after next", "2026-04-13", "2026-04-20"},
        {"earlier today", "2026-03-31", "2026-03-31T14:45:30"},
        {"later today", "2026-03-31T14:45:30", "2026-04-01"},
        {"earlier this week", "2026-03-30", "2026-03-31T14:45:30"},
    };
    CHECK(now, rows);
}

static void test_amounts(void **state)
{
    (void)state;
    static const row rows[] = {
        {"3 days ago", "2026-03-28", NULL},
        {"a day ago", "2026-03-30", NULL},
        {"two weeks ago", "2026-03-17", NULL},
        {"twenty days ago", "2026-03-11", NULL},
        {"a couple of weeks ago", "2026-03-17", NULL},
        {"a fortnight ago", "2026-03-17", NULL},
        {"a month ago", "2026-02-28", NULL},
        {"four months ago", "2025-11-30", NULL},
        {"one year ago", "2025-03-31", NULL},
        {"20 years ago", "2006-03-31", NULL},
        {"a decade ago", "2016-03-31", NULL},
        {"an hour ago", "2026-03-31T13:00", "2026-03-31T14:00"},
        {"15 hours ago", "2026-03-30T23:00", "2026-03-31"},
        {"5 minutes ago", "2026-03-31T14:40", "2026-03-31T14:41"},
        {"10 seconds ago", "2026-03-31T14:45:20", "2026-03-31T14:45:21"},
        {"1000 days ago", "2023-07-05", NULL},
        {"in 3 days", "2026-04-03", NULL},
        {"in two weeks", "2026-04-14", NULL},
        {"in a month", "2026-04-30", NULL},
        {"in an hour", "2026-03-31T15:00", "2026-03-31T16:00"},
        {"in 11 months", "2027-02-28", NULL},
        {"3 days from now", "2026-04-03", NULL},
        {"a week from tomorrow", "2026-04-08", NULL},
        {"the last 24 hours", "2026-03-30T14:45:30", "2026-03-31T14:45:30"},
        {"in the past 7 days", "2026-03-24T14:45:30", "2026-03-31T14:45:30"},
        {"the last two weeks", "2026-03-17T14:45:30", "2026-03-31T14:45:30"},
        {"over the past month", "2026-02-28T14:45:30", "2026-03-31T14:45:30"},
        {"past week", "2026-03-24T14:45:30", "2026-03-31T14:45:30"},
        {"last hour", "2026-03-31T13:45:30", "2026-03-31T14:45:30"},
        {"last 30 minutes", "2026-03-31T14:15:30", "2026-03-31T14:45:30"},
        {"last couple of days", "2026-03-29T14:45:30", "2026-03-31T14:45:30"},
        {"the past 13 months", "2025-02-28T14:45:30", "2026-03-31T14:45:30"},
        {"next 3 days", "2026-03-31T14:45:30", "2026-04-03T14:45:30"},
        {"two weeks before Christmas", "2025-12-11", NULL},
        {"two weeks before Christmas 2022", "2022-12-11", NULL},
        {"3 days after 8 May 2023", "2023-05-11", NULL},
        {"1 day after 28 February 2024", "2024-02-29", NULL},
        {"30 days before 1 March 2024", "2024-01-31", NULL},
        {"one month after 31 January 2023", "2023-02-28", NULL},
        {"a year before 29 February 2024", "2023-02-28", NULL},
        {"two hours after 3pm yesterday", "2026-03-30T17:00", "2026-03-30T18:00"},
        {"two days ago at noon", "2026-03-29T12:00", "2026-03-29T13:00"},
    };
    CHECK(now, rows);
}

static void test_dates(void **state)
{
    (void)state;
    static const row rows[] = {
        {"in May 2023", "2023-05-01", "2023-06-01"},
        {"May 2023", "2023-05-01", "2023-06-01"},
        {"May of 2023", "2023-05-01", "2023-06-01"},
        {"Sept. 2023", "2023-09-01", "2023-10-01"},
        {"in May", "2025-05-01", "2025-06-01"},
        {"in March", "2026-03-01", "2026-04-01"},
        {"8 May 2023", "2023-05-08", NULL},
        {"8th of May 2023", "2023-05-08", NULL},
        {"the 8th of May, 2023", "2023-05-08", NULL},
        {"May 8th, 2023", "2023-05-08", NULL},
        {"May 8 2023", "2023-05-08", NULL},
        {"May the 8th", "2025-05-08", NULL},
        {"on 8 May last year", "2025-05-08", NULL},
        {"on March 31", "2026-03-31", NULL},
        {"Monday, 8 May 2023", "2023-05-08", NULL},
        {"1 Jan. 0001", "0001-01-01", NULL},
        {"31 December 9999", "9999-12-31", "10000-01-01"},
        {"Feb 29 2024", "2024-02-29", NULL},
        {"29 February", "2024-02-29", NULL},
        {"29 February 2000", "2000-02-29", NULL},
        {"2023-05-08", "2023-05-08", NULL},
        {"2023/05/08", "2023-05-08", NULL},
        {"on 2023-05-08", "2023-05-08", NULL},
        {"2023-05", "2023-05-01", "2023-06-01"},
        {"2023-12", "2023-12-01", "2024-01-01"},
        {"2023", "2023-01-01", "2024-01-01"},
        {"in 2023", "2023-01-01", "2024-01-01"},
        {"the year 2023", "2023-01-01", "2024-01-01"},
        {"9999", "9999-01-01", "10000-01-01"},
        {"the 1990s", "1990-01-01", "2000-01-01"},
        {"on the 3rd", "2026-03-03", NULL},
        {"the 22nd", "2026-03-22", NULL},
        {"on the 31st", "2026-03-31", NULL},
        {"the 3rd of last month", "2026-02-03", NULL},
        {"next month on the 1st", "2026-04-01", NULL},
        {"Q2 2024", "2024-04-01", "2024-07-01"},
        {"q4", "2025-10-01", "2026-01-01"},
        {"2024 Q1", "2024-01-01", "2024-04-01"},
        {"the second quarter of 2023", "2023-04-01", "2023-07-01"},
        {"first quarter last year", "2025-01-01", "2025-04-01"},
        {"spring 2023", "2023-03-01", "2023-06-01"},
        {"summer of 2023", "2023-06-01", "2023-09-01"},
        {"fall 2023", "2023-09-01", "2023-12-01"},
        {"winter 2023", "2023-12-01", "2024-03-01"},
        {"Christmas", "2025-12-25", NULL},
        {"Christmas 2022", "2022-12-25", NULL},
        {"Christmas Eve 2022", "2022-12-24", NULL},
        {"New Year's Eve 2022", "2022-12-31", NULL},
        {"New Year's Day", "2026-01-01", NULL},
        {"New Year’s Day 2020", "2020-01-01", NULL},
        {"Halloween", "2025-10-31", NULL},
        {"Valentine's Day 2023", "2023-02-14", NULL},
        {"the week of 8 May 2023", "2023-05-08", "2023-05-15"},
        {"the week of 14 May 2023", "2023-05-08", "2023-05-15"},
        {"the weekend of 8 July 2023", "2023-07-08", "2023-07-10"},
        {"the month of May", "2025-05-01", "2025-06-01"},
        {"the month before May 2023", "2023-04-01", "2023-05-01"},
        {"the year before 2023", "2022-01-01", "2023-01-01"},
        {"the week before 9 June 2023", "2023-05-29", "2023-06-05"},
        {"the Friday before 15 July 2023", "2023-07-14", NULL},
        {"the Friday before 14 July 2023", "2023-07-07", NULL},
        {"the weekend before 15 July 2023", "2023-07-08", "2023-07-10"},
        {"the Sunday after 25 May 2023", "2023-05-28", NULL},
    };
    CHECK(now, rows);
}

static void test_clock(void **state)
{
    (void)state;
    static const row rows[] = {
        {"noon", "2026-03-31T12:00", "2026-03-31T13:00"},
        {"at 3pm", "2026-03-31T15:00", "2026-03-31T16:00"},
        {"12am", "2026-03-31", "2026-03-31T01:00"},
        {"12 PM", "2026-03-31T12:00", "2026-03-31T13:00"},
        {"midnight tomorrow", "2026-04-01", "2026-04-01T01:00"},
        {"at noon yesterday", "2026-03-30T12:00", "2026-03-30T13:00"},
        {"at 3pm yesterday", "2026-03-30T15:00", "2026-03-30T16:00"},
        {"yesterday at 3pm", "2026-03-30T15:00", "2026-03-30T16:00"},
        {"yesterday 15:30", "2026-03-30T15:30", "2026-03-30T15:31"},
        {"3:30 p.m. on 8 May 2023", "2023-05-08T15:30", "2023-05-08T15:31"},
        {"1:56 pm on 8 May, 2023", "2023-05-08T13:56", "2023-05-08T13:57"},
        {"on Tuesday at 10:30 am", "2026-03-31T10:30", "2026-03-31T10:31"},
        {"2023-05-08 15:30:20", "2023-05-08T15:30:20", "2023-05-08T15:30:21"},
        {"2023-05-08T15:30", "2023-05-08T15:30", "2023-05-08T15:31"},
        {"2023-05-08T15:30:20Z", "2023-05-08T15:30:20", "2023-05-08T15:30:21"},
        {"2023-05-08T15:30+02:00", "2023-05-08T13:30", "2023-05-08T13:31"},
        {"yesterday morning", "2026-03-30T06:00", "2026-03-30T12:00"},
        {"yesterday in the afternoon", "2026-03-30T12:00", "2026-03-30T18:00"},
        {"this evening", "2026-03-31T18:00", "2026-04-01"},
        {"last night", "2026-03-30T18:00", "2026-03-31T06:00"},
        {"tomorrow night", "2026-04-01T18:00", "2026-04-02T06:00"},
        {"on Monday morning", "2026-03-30T06:00", "2026-03-30T12:00"},
        {"last Tuesday evening", "2026-03-24T18:00", "2026-03-25"},
        {"the morning of 8 May 2023", "2023-05-08T06:00", "2023-05-08T12:00"},
        {"night of the 3rd", "2026-03-03T18:00", "2026-03-04T06:00"},
        {"between 3pm and 5pm", "2026-03-31T15:00", "2026-03-31T17:00"},
        {"from noon to 3:30pm yesterday", "2026-03-30T12:00", "2026-03-30T15:30"},
        {"8 May 2023 from 3pm to 5pm", "2023-05-08T15:00", "2023-05-08T17:00"},
    };
    CHECK(now, rows);
}

static void test_ranges(void **state)
{
    (void)state;
    static const row rows[] = {
        {"between 3 May and 10 May 2023", "2023-05-03", "2023-05-11"},
        {"from 3 May 2023 to 10 June", "2023-05-03", "2023-06-11"},
        {"from 3 to 10 May 2023", "2023-05-03", "2023-05-11"},
        {"3-10 May", "2025-05-03", "2025-05-11"},
        {"3–10 May 2023", "2023-05-03", "2023-05-11"},
        {"May 3-10, 2023", "2023-05-03", "2023-05-11"},
        {"between the 3rd and the 10th of May 2023", "2023-05-03", "2023-05-11"},
        {"from the 3rd to the 10th", "2026-03-03", "2026-03-11"},
        {"from Monday to Friday", "2026-03-30", "2026-04-04"},
        {"from December to February", "2025-12-01", "2026-03-01"},
        {"between December 2022 and February", "2022-12-01", "2023-03-01"},
        {"from December to February 2023", "2022-12-01", "2023-03-01"},
        {"May to July 2023", "2023-05-01", "2023-08-01"},
        {"between 2022 and 2023", "2022-01-01", "2024-01-01"},
        {"2022-2023", "2022-01-01", "2024-01-01"},
        {"from yesterday until tomorrow", "2026-03-30", "2026-04-02"},
        {"from 2023-05-08 to 2023-06-01", "2023-05-08", "2023-06-02"},
        {"since Monday", "2026-03-30", "2026-03-31T14:45:30"},
        {"since 2023", "2023-01-01", "2026-03-31T14:45:30"},
        {"since 3pm yesterday", "2026-03-30T15:00", "2026-03-31T14:45:30"},
        {"before June", "0001-01-01", "2025-06-01"},
        {"before 8 May 2023", "0001-01-01", "2023-05-08"},
        {"after 2022", "2023-01-01", "10000-01-01"},
        {"after 3pm yesterday", "2026-03-30T16:00", "10000-01-01"},
    };
    CHECK(now, rows);
}

/* From other days: Sunday, Monday, a leap day, the first hour of a year. */
static void test_borders(void **state)
{
    (void)state;
    static const row sunday[] = {
        {"this week", "2026-03-23", "2026-03-30"},    {"this weekend", "2026-03-28", "2026-03-30"},
        {"last weekend", "2026-03-21", "2026-03-23"}, {"Sunday", "2026-03-29", NULL},
        {"last Sunday", "2026-03-22", NULL},          {"next Sunday", "2026-04-05", NULL},
        {"this Monday", "2026-03-23", NULL},
    };
    static const row monday[] = {
        {"last week", "2026-03-23", "2026-03-30"},
        {"last Sunday", "2026-03-29", NULL},
        {"last weekend", "2026-03-28", "2026-03-30"},
        {"Monday", "2026-03-30", NULL},
    };
    static const row leap[] = {
        {"a year ago", "2023-02-28", NULL},         {"4 years ago", "2020-02-29", NULL},
        {"in one year", "2025-02-28", NULL},        {"29 February", "2024-02-29", NULL},
        {"last month", "2024-01-01", "2024-02-01"}, {"tomorrow", "2024-03-01", NULL},
    };
    static const row new_year[] = {
        {"yesterday", "2025-12-31", NULL},
        {"last month", "2025-12-01", "2026-01-01"},
        {"last quarter", "2025-10-01", "2026-01-01"},
        {"this winter", "2025-12-01", "2026-03-01"},
        {"winter", "2025-12-01", "2026-03-01"},
        {"2 hours ago", "2025-12-31T22:00", "2025-12-31T23:00"},
        {"this week", "2025-12-29", "2026-01-05"},
        {"on the 31st", "2025-12-31", NULL},
    };
    static const row old[] = {{"29 February", "1896-02-29", NULL}};
    CHECK("2026-03-29T23:59:59", sunday);
    CHECK("2026-03-30", monday);
    CHECK("2024-02-29T12:00", leap);
    CHECK("2026-01-01T00:30", new_year);
    CHECK("1904-02-28", old);
}

static const char *const bad[] = {
    "",
    " ",
    "the",
    "in",
    "ago",
    "yesterday yesterday",
    "what did I do yesterday",
    "recently",
    "a few days ago",
    "every day",
    "soon",
    "ever",
    "last",
    "last last week",
    "0 days ago",
    "last 0 days",
    "3.5 days ago",
    "9999999 days ago",
    "999999 decades ago",
    "twenty-one days ago",
    "30 February 2023",
    "29 February 2023",
    "31 April",
    "99 May 2023",
    "2023-13",
    "2023-00-01",
    "2023-02-30",
    "2023-5-8",
    "0000",
    "05/08/2023",
    "8-May-2023",
    "May-2023",
    "q5",
    "q0",
    "Q23",
    "1st2",
    "3th May",
    "11st May",
    "13pm",
    "0am",
    "24:00",
    "12:60",
    "3:5pm",
    "15",
    "second",
    "the second",
    "in the morning",
    "Tuesday, 8 May 2023",
    "since tomorrow",
    "after 9999",
    "before 0001",
    "from Monday to Friday to Sunday",
    "from 10 May 2023 to 3 May 2023",
    "between today to tomorrow",
    "from today and tomorrow",
    "8 May before noon",
    "next morning",
    "2 weekends ago",
    "the hour before noon",
    "May 2023 2023",
    "1999s",
    "Halloween eve",
    "yesterda",
    "yesterdays",
    "todayy",
    "to\xc3\xa9",
    "heute",
    "\xff",
    "today\n?!",
    "5pm5",
    "2023-05-08T25:00",
    "2023-05-08T12:00x",
    "first of second of third",
    "this day of week",
};

static void test_not_understood(void **state)
{
    (void)state;
    int64_t a, b;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (parse(bad[i], strlen(bad[i]), at(now), &a, &b)) {
            fail_msg("%s: %lld to %lld", bad[i], (long long)a, (long long)b);
        }
    }
    assert_false(parse("today\0", 6, at(now), &a, &b));
    assert_false(parse("today", 5, SQL_TIME_MAX, &a, &b));
    assert_false(parse("today", 5, SQL_TIME_MIN - 1, &a, &b));
    assert_false(parse("yesterday", 9, SQL_TIME_MIN, &a, &b));
    assert_false(parse("tomorrow", 8, SQL_TIME_MAX - 1, &a, &b));
    assert_false(parse("today", 5, INT64_MIN, &a, &b));
    assert_false(parse("today", 5, INT64_MAX, &a, &b));
    char longer[300];
    memset(longer, ' ', sizeof longer);
    memcpy(longer, "today", 5);
    assert_true(parse(longer, 256, at(now), &a, &b));
    assert_false(parse(longer, 257, at(now), &a, &b));
}

/* Any words and bytes end, and what they give is a range within the years. */
static void test_salad(void **state)
{
    (void)state;
    static const char *const words[] = {
        "yesterday", "last",  "next",   "this",      "past",   "week",   "day",        "month",
        "monday",    "may",   "spring", "christmas", "new",    "year",   "eve",        "two",
        "a",         "the",   "of",     "ago",       "before", "after",  "since",      "between",
        "from",      "and",   "to",     "in",        "on",     "at",     "earlier",    "later",
        "morning",   "night", "3",      "3rd",       "31",     "2023",   "2023-05-08", "2023-05",
        "3pm",       "15:30", "noon",   "q2",        "-",      "second", "now",        "999999",
        "9999",      "0001",  "couple", "1990s",     "'s",     ":",      "2023-",      "4p",
        "decades",   "xyzzy",
    };
    t_rng r = t_rng_start(7);
    int understood = 0;
    for (int i = 0; i < 60000; i++) {
        char s[600];
        size_t n = 0, count = 1 + t_rng_below(&r, i % 100 == 0 ? 40 : 7);
        for (size_t k = 0; k < count; k++) {
            size_t w = (size_t)t_rng_below(&r, sizeof words / sizeof *words);
            n += (size_t)snprintf(s + n, sizeof s - n, "%s ", words[w]);
        }
        if (i % 5 == 0) {
            s[t_rng_below(&r, n)] = (char)t_rng_next(&r);
        }
        int64_t a, b;
        if (parse(s, n, at(now), &a, &b)) {
            understood++;
            assert_true(SQL_TIME_MIN <= a && a < b && b <= SQL_TIME_MAX);
        }
    }
    assert_true(understood > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_relative),       cmocka_unit_test(test_amounts),
        cmocka_unit_test(test_dates),          cmocka_unit_test(test_clock),
        cmocka_unit_test(test_ranges),         cmocka_unit_test(test_borders),
        cmocka_unit_test(test_not_understood), cmocka_unit_test(test_salad),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
