/*
 * sql_time.h - what the files of h5mem_time share: the calendar and the tokens.
 *
 * Times are Unix seconds UTC, days are counted from 1970-01-01, all proleptic Gregorian. Nothing
 * here fails but where it says so; years of up to six digits either way stay far from 64 bits.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SQL_TIME_H
#define SQL_TIME_H

#include <stddef.h>
#include <stdint.h>

#define SQL_DAY      ((int64_t)86400)
#define SQL_TIME_MIN (-(int64_t)62135596800) /* year 1 */
#define SQL_TIME_MAX ((int64_t)253402300800) /* the end of year 9999 */

typedef struct sql_range {
    int64_t start, end; /* seconds [start, end) */
} sql_range;

/* ---------------------------------------------------------------------- sql_time_calendar.c */

/* Units first: they count through time by an index. The others recur within a unit. */
enum kind {
    SECOND,
    MINUTE,
    HOUR,
    DAYS,
    WEEK,
    WEEKEND,
    MONTH,
    QUARTER,
    YEAR,
    DECADE,
    FORTNIGHT, /* only counted: a fortnight ago */
    ON_WEEKDAY,
    ON_DAY,   /* of a month */
    IN_MONTH, /* of a year */
    IN_QUARTER,
    IN_SEASON,
    ON_DATE /* month * 32 + day */
};

/* A thing that recurs: the unit it recurs in, and how many of them pass at most without it. */
typedef struct sql_recurrence {
    int within, gap;
} sql_recurrence;
extern const sql_recurrence sql_recurs[];

int64_t sql_floor_div(int64_t a, int64_t b); /* b > 0 */
int64_t sql_day_of(int64_t y, int m, int d);
int sql_month_days(int64_t y, int m);

/* The number of the unit that holds t; the unit with that number. */
int64_t sql_unit_index(int unit, int64_t t);
sql_range sql_unit_range(int unit, int64_t index);

/* The one of this kind in the unit with that index; 0 when that unit has none. */
int sql_occurrence(int kind, int v, int64_t index, sql_range *r);

/* The latest with start <= at; with end <= at; the first with start >= at. 0: there is none. */
enum find { BEGUN, OVER, COMING };
int sql_occurrence_find(int kind, int v, int how, int64_t at, sql_range *r);

/* t moved by n units, at the same time of day; a day that the month lacks becomes its last. */
int64_t sql_time_shift(int64_t t, int unit, int64_t n);

/* ------------------------------------------------------------------------- sql_time_token.c */

enum { SQL_TIME_TOKENS = 24 };

/* Classes; the forms of sql_time.c name them by these letters. */
typedef struct sql_token {
    char class;
    char is_ordinal; /* `second` is one, and a unit */
    char digits;     /* of a number */
    int64_t v, w;    /* the word's value; of R and c: start and length */
} sql_token;

/* The text's tokens; 0 when it holds a word that is not known, or too many. */
int sql_time_tokens(const char *s, size_t n, sql_token out[SQL_TIME_TOKENS], size_t *count);

#endif
