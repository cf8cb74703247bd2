/*
 * sql_time_calendar.c - days, units and what recurs in them, for h5mem_time.
 *
 * A unit (week, month, ...) is known by its number since the epoch, so that the one before is one
 * less. What recurs in a unit (Tuesday, May) is known by the unit's number; a unit may lack it.
 *
 * TESTS    t_sql_time.c, test_time.py
 *
 * SPDX-License-Identifier: MIT
 */
#include "sql_time.h"

int64_t sql_floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

// The year is counted from March, so that the leap day is its last.
int64_t sql_day_of(int64_t y, int m, int d)
{
    int64_t from_march = (m + 9) % 12, year = y - (m < 3);
    int64_t leaps = sql_floor_div(year, 4) - sql_floor_div(year, 100) + sql_floor_div(year, 400);
    return year * 365 + leaps + (from_march * 153 + 2) / 5 + d - 1 - 719468;
}

int sql_month_days(int64_t y, int m)
{
    return (int)(sql_day_of(m == 12 ? y + 1 : y, m % 12 + 1, 1) - sql_day_of(y, m, 1));
}

static void civil(int64_t day, int64_t *y, int *m, int *d)
{
    // 400 years have 146097 days: the estimate is off by one year at most
    *y = sql_floor_div((day + 719468) * 400, 146097);
    *y += sql_day_of(*y + 1, 1, 1) <= day;
    *y -= sql_day_of(*y, 1, 1) > day;
    *m = 12;
    while (sql_day_of(*y, *m, 1) > day) {
        (*m)--;
    }
    *d = (int)(day - sql_day_of(*y, *m, 1)) + 1;
}

/* A thing that recurs: the unit it recurs in, and how long at most until it does again. */
const sql_recurrence sql_recurs[] = {
    [WEEKEND] = {WEEK, 1},  [ON_WEEKDAY] = {WEEK, 1}, [ON_DAY] = {MONTH, 2},
    [IN_MONTH] = {YEAR, 1}, [IN_QUARTER] = {YEAR, 1}, [IN_SEASON] = {YEAR, 1},
    [ON_DATE] = {YEAR, 8}, // 29 February around 1900
};

/* How many months or seconds a unit has. */
static const struct {
    int64_t seconds, months;
} size_of[] = {
    [SECOND] = {1, 0},    [MINUTE] = {60, 0},         [HOUR] = {3600, 0}, [DAYS] = {86400, 0},
    [WEEK] = {604800, 0}, [FORTNIGHT] = {1209600, 0}, [MONTH] = {0, 1},   [QUARTER] = {0, 3},
    [YEAR] = {0, 12},     [DECADE] = {0, 120},
};

static int64_t month_index(int64_t t)
{
    int64_t y;
    int m, d;
    civil(sql_floor_div(t, SQL_DAY), &y, &m, &d);
    return y * 12 + m - 1;
}

static int64_t month_start(int64_t index)
{
    int64_t y = sql_floor_div(index, 12);
    return sql_day_of(y, (int)(index - y * 12) + 1, 1) * SQL_DAY;
}

int64_t sql_unit_index(int unit, int64_t t)
{
    if (unit == WEEK || unit == WEEKEND) {
        return sql_floor_div(sql_floor_div(t, SQL_DAY) + 3, 7); // 1970-01-01 was a Thursday
    }
    return size_of[unit].months ? sql_floor_div(month_index(t), size_of[unit].months)
                                : sql_floor_div(t, size_of[unit].seconds);
}

sql_range sql_unit_range(int unit, int64_t index)
{
    int64_t months = size_of[unit].months, len = size_of[unit].seconds;
    if (unit == WEEK || unit == WEEKEND) {
        int64_t monday = (index * 7 - 3) * SQL_DAY;
        return (sql_range){unit == WEEK ? monday : monday + 5 * SQL_DAY, monday + 7 * SQL_DAY};
    }
    return months ? (sql_range){month_start(index * months), month_start((index + 1) * months)}
                  : (sql_range){index * len, (index + 1) * len};
}

int sql_occurrence(int kind, int v, int64_t index, sql_range *r)
{
    int64_t y = sql_floor_div(index, 12), at;
    switch (kind) {
    case WEEKEND:
        *r = sql_unit_range(WEEKEND, index);
        return 1;
    case ON_WEEKDAY:
        at = index * 7 - 3 + v;
        break;
    case ON_DAY:
        if (v < 1 || v > sql_month_days(y, (int)(index - y * 12) + 1)) {
            return 0;
        }
        at = sql_floor_div(month_start(index), SQL_DAY) + v - 1;
        break;
    case ON_DATE:
        if (v % 32 < 1 || v % 32 > sql_month_days(index, v / 32)) {
            return 0;
        }
        at = sql_day_of(index, v / 32, v % 32);
        break;
    case IN_MONTH:
        *r = sql_unit_range(MONTH, index * 12 + v - 1);
        return 1;
    case IN_QUARTER:
        *r = sql_unit_range(QUARTER, index * 4 + v - 1);
        return 1;
    default: // a season begins in its March, June, ...
        *r = (sql_range){month_start(index * 12 + v - 1), month_start(index * 12 + v + 2)};
        return 1;
    }
    *r = (sql_range){at * SQL_DAY, (at + 1) * SQL_DAY};
    return 1;
}

int sql_occurrence_find(int kind, int v, int how, int64_t at, sql_range *r)
{
    int step = how == COMING ? 1 : -1, gap = sql_recurs[kind].gap + 1;
    int64_t index = sql_unit_index(sql_recurs[kind].within, at) - step;
    for (int i = 0; i <= gap + 1; i++, index += step) {
        if (sql_occurrence(kind, v, index, r) && (how == BEGUN  ? r->start <= at
                                                  : how == OVER ? r->end <= at
                                                                : r->start >= at)) {
            return 1;
        }
    }
    return 0;
}

int64_t sql_time_shift(int64_t t, int unit, int64_t n)
{
    if (!size_of[unit].months) {
        return t + n * size_of[unit].seconds;
    }
    int64_t y, day = sql_floor_div(t, SQL_DAY), index = month_index(t) + n * size_of[unit].months;
    int m, d;
    civil(day, &y, &m, &d);
    y = sql_floor_div(index, 12);
    m = (int)(index - y * 12) + 1;
    d = d < sql_month_days(y, m) ? d : sql_month_days(y, m);
    return sql_day_of(y, m, d) * SQL_DAY + (t - day * SQL_DAY);
}
