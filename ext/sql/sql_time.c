/*
 * sql_time.c - common English time expressions to ranges of seconds: the parser of h5mem_time.
 *
 * The text becomes tokens, each with its class; a table of forms says which sequences of classes
 * mean something, and which function gives the range. What fits no form is not understood: there
 * is no guessing, and no skipping of words. All of it is UTC and proleptic Gregorian.
 *
 * WHAT WORDS MEAN
 *   a range        seconds [start, end): the end is the first second after it
 *   week           Monday to Sunday; the weekend is its Saturday and Sunday
 *   last, next     week, month, quarter, year, weekend: the calendar's one before or after this.
 *                  Others (Tuesday, May, summer, Christmas): the latest that is over, the first
 *                  that begins after today. `this` is the one of this week, or this year
 *   past, last N   up to now, of N times the unit: `past week`, `last 3 days`, `last hour`
 *   N ... ago      the day, N units back from today; the hour, minute or second for those units.
 *                  A day that the month lacks becomes the month's last
 *   without a year `in May`, `on Monday`, `on the 3rd`: the latest that has begun
 *   seasons        spring is March to May, and so on; winter 2023 begins in December 2023
 *   parts of a day morning 06-12, afternoon 12-18, evening 18-24, night 18 to 06 of the next day
 *   clock          `3pm`, `noon`: an hour; `15:30`: a minute; `15:30:20`: a second
 *   before, after  from year 1, or to year 9999; `since` is from its start to now
 *   A to B         from the start of A to the end of B, between clock times to the start of B. What
 *                  A lacks it takes from B, else B is the first from A on
 *
 * ERRORS   none but "not understood"
 * LIMITS   TEXT_MAX bytes, SQL_TIME_TOKENS tokens
 * TESTS    t_sql_time.c, test_time.py
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "sql_text.h"
#include "sql_time.h"

enum {
    TEXT_MAX = 256,
    PARTS_MAX = 12 /* elements of a form */
};

/* What a run of tokens has turned out to be. */
typedef struct cell {
    sql_range r;
    char known, found, loose;
} cell;

/* What is known while a part of the text is read. */
typedef struct scope {
    const sql_token *tok;
    int64_t now;
    int how; /* which of the things that recur is meant: find() */
    int64_t at;
    int loose;   /* set when one was chosen so */
    int nested;  /* within `A to B`, which does not nest */
    cell *cells; /* what is known of tokens lo..hi: cells[lo * SQL_TIME_TOKENS + hi - 1] */
} scope;

/* What one element of a form matched. */
typedef struct part {
    const sql_token *tok; /* NULL: an optional element that is not there */
    sql_range r;          /* E, and its tokens */
    size_t lo, hi;
    int kind;  /* L, M: the unit */
    int64_t v; /* L, M: the count */
} part;

typedef int (*form_fn)(scope *s, const part *p, sql_range *r);
/* The elements of a form: a class, a class with '?' for "or not", or one of
 *   d  a day's number, ordinal or not     y  a year: four digits
 *   N  any number                         X  between, from
 *   L  a thing that recurs                M  an amount of a unit
 *   E  an expression                                                         */
typedef struct form {
    const char *pattern;
    form_fn fn;
} form;

static int expression(scope *s, size_t lo, size_t hi, sql_range *r);
static int expression_at(const scope *s, size_t lo, size_t hi, int how, int64_t at, int *loose,
                         sql_range *r);

static int is_a(const sql_token *k, char c)
{
    switch (c) {
    case 'd':
        return (k->class == 'n' || k->class == 'o') && k->digits < 3 && k->v >= 1 && k->v <= 31;
    case 'o':
        return k->class == 'o' || k->is_ordinal;
    case 'y':
        return k->class == 'n' && k->digits == 4 && k->v > 0;
    case 'N':
        return k->class == 'n';
    case 'X':
        return k->class == 'B' || k->class == 'F';
    default:
        return k->class == c;
    }
}

static int is_unit(sql_range r, int unit)
{
    sql_range u = sql_unit_range(unit, sql_unit_index(unit, r.start));
    return u.start == r.start && u.end == r.end;
}

/* The names of things that recur, and amounts. Sub-forms have no expressions in them. */
static const struct {
    const char *pattern;
    int kind;
} things[] = {
    {"w", ON_WEEKDAY}, {"df?m", ON_DATE},  {"mt?d", ON_DATE}, {"m", IN_MONTH},   {"s", IN_SEASON},
    {"h", ON_DATE},    {"hu", ON_DATE},    {"hv", ON_DATE},   {"Wuv?", ON_DATE}, {"Wuu", ON_DATE},
    {"q", IN_QUARTER}, {"ou", IN_QUARTER}, {"o", ON_DAY},     {"u", WEEKEND},
};

/* Matches the tokens lo..hi, all of them, with a pattern without L, M and E. */
static int flat(const scope *s, const char *p, size_t lo, size_t hi, const sql_token **out)
{
    for (; *p; p++) {
        int fits = lo < hi && is_a(&s->tok[lo], *p), optional = p[1] == '?';
        if (!fits && !optional) {
            return 0;
        }
        *out++ = fits ? &s->tok[lo++] : NULL;
        p += optional;
    }
    return lo == hi;
}

static int read_thing(const scope *s, size_t lo, size_t hi, part *out)
{
    for (size_t i = 0; i < sizeof things / sizeof *things; i++) {
        const sql_token *k[4] = {NULL, NULL, NULL, NULL};
        const char *p = things[i].pattern;
        if (!flat(s, p, lo, hi, k)) {
            continue;
        }
        int64_t v = k[0]->v;
        int ok = 1;
        if (strcmp(p, "df?m") == 0) {
            v += k[2]->v * 32;
        } else if (strcmp(p, "mt?d") == 0) {
            v = v * 32 + k[2]->v;
        } else if (strcmp(p, "ou") == 0) { // the second quarter
            v = k[0]->is_ordinal ? 2 : v;
            ok = k[1]->v == QUARTER && v <= 4;
        } else if (*p == 'o') {
            ok = !k[0]->is_ordinal && v <= 31;
        } else if (*p == 'u') {
            ok = v == WEEKEND;
        } else if (*p == 'W') { // new year's eve
            ok = k[1]->v == YEAR && (!k[2] || k[2]->class == 'v' || k[2]->v == DAYS);
            v = k[2] && k[2]->class == 'v' ? 12 * 32 + 31 : 32 + 1;
        } else if (*p == 'h' && p[1]) { // christmas day, halloween has no eve
            ok = p[1] == 'v' ? v == 12 * 32 + 25 : k[1]->v == DAYS;
            v -= p[1] == 'v';
        }
        if (ok) {
            *out = (part){.tok = k[0], .kind = things[i].kind, .v = v};
            return 1;
        }
    }
    return 0;
}

static int read_amount(const scope *s, size_t lo, size_t hi, part *out)
{
    static const char *const patterns[] = {"Nu", "au", "a?Cf?u"};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        const sql_token *k[4];
        if (flat(s, patterns[i], lo, hi, k)) {
            const sql_token *unit = i == 2 ? k[3] : k[1];
            *out = (part){.tok = unit, .kind = (int)unit->v, .v = i == 2 ? 2 : k[0]->v};
            return unit->v != WEEKEND && out->v > 0;
        }
    }
    return 0;
}

/* One element that spans tokens lo..hi. */
static int read_part(scope *s, char c, size_t lo, size_t hi, part *out)
{
    if (c == 'L') {
        return read_thing(s, lo, hi, out);
    }
    if (c == 'M') {
        return read_amount(s, lo, hi, out);
    }
    *out = (part){.tok = &s->tok[lo], .lo = lo, .hi = hi};
    return expression(s, lo, hi, &out->r);
}

static int is_part(char c)
{
    return c == 'L' || c == 'M' || c == 'E';
}

/* Matches tokens lo..hi with the pattern p of a form, in every way until one gives a range. */
static int match(scope *s, const form *f, const char *p, size_t lo, size_t hi, part *parts, int n,
                 sql_range *r)
{
    if (!*p) {
        return lo == hi && f->fn(s, parts, r);
    }
    int optional = p[1] == '?';
    const char *rest = p + 1 + optional;
    if (is_part(*p)) {
        // what follows takes a token at least: no run contains itself
        for (size_t end = *rest ? lo + 1 : hi; lo < end && end + !!*rest <= hi; end++) {
            int loose = s->loose;
            int plain = *rest && rest[1] != '?' && !is_part(*rest);
            if (plain && !is_a(&s->tok[end], *rest)) {
                continue;
            }
            if (read_part(s, *p, lo, end, &parts[n]) &&
                match(s, f, rest, end, hi, parts, n + 1, r)) {
                return 1;
            }
            s->loose = loose;
        }
        return 0;
    }
    if (lo < hi && is_a(&s->tok[lo], *p)) {
        parts[n] = (part){.tok = &s->tok[lo], .v = s->tok[lo].v};
        if (match(s, f, rest, lo + 1, hi, parts, n + 1, r)) {
            return 1;
        }
    }
    parts[n] = (part){0};
    return optional && match(s, f, rest, lo, hi, parts, n + 1, r);
}

/* --------------------------------------------------------------------- what the forms stand for */

static int64_t today(const scope *s)
{
    return sql_floor_div(s->now, SQL_DAY) * SQL_DAY;
}

static int whole_days(sql_range r)
{
    return r.start == sql_floor_div(r.start, SQL_DAY) * SQL_DAY &&
           r.end == sql_floor_div(r.end, SQL_DAY) * SQL_DAY;
}

static int one_day(sql_range r)
{
    return whole_days(r) && r.end - r.start == SQL_DAY;
}

/* Hours, minutes and seconds as they are; the day for longer units. */
static sql_range around(int unit, int64_t t)
{
    int u = unit < DAYS ? unit : DAYS;
    return sql_unit_range(u, sql_unit_index(u, t));
}

static int on_day(scope *s, const part *p, sql_range *r)
{
    r->start = today(s) + p[0].v * SQL_DAY;
    r->end = r->start + SQL_DAY;
    return 1;
}

static int on_now(scope *s, const part *p, sql_range *r)
{
    (void)p;
    *r = (sql_range){s->now, s->now + 1};
    return 1;
}

static int on_tonight(scope *s, const part *p, sql_range *r)
{
    (void)p;
    *r = (sql_range){today(s) + SQL_DAY * 3 / 4, today(s) + SQL_DAY * 5 / 4};
    return 1;
}

static int on_absolute(scope *s, const part *p, sql_range *r)
{
    (void)s;
    *r = (sql_range){p[0].tok->v, p[0].tok->v + p[0].tok->w};
    return 1;
}

static int on_year(scope *s, const part *p, sql_range *r)
{
    (void)s;
    *r = sql_unit_range(YEAR, p[0].v);
    return 1;
}

static int span(scope *s, int unit, int64_t n, sql_range *r)
{
    int64_t t = sql_time_shift(s->now, unit, n);
    *r = n < 0 ? (sql_range){t, s->now} : (sql_range){s->now, t};
    return n != 0;
}

static int on_relative_unit(scope *s, const part *p, sql_range *r) // last week
{
    int unit = (int)p[1].v;
    if (unit == FORTNIGHT || (unit <= DAYS && p[0].v)) {
        return span(s, unit, p[0].v, r);
    }
    *r = sql_unit_range(unit, sql_unit_index(unit, s->now) + p[0].v);
    return 1;
}

static int on_past_unit(scope *s, const part *p, sql_range *r) // past week
{
    return p[1].v != WEEKEND && span(s, (int)p[1].v, -1, r);
}

static int on_last_amount(scope *s, const part *p, sql_range *r) // last 3 days
{
    return span(s, p[1].kind, p[0].v * p[1].v, r);
}

static int on_ago(scope *s, const part *p, sql_range *r)
{
    *r = around(p[0].kind, sql_time_shift(s->now, p[0].kind, -p[0].v));
    return 1;
}

static int on_in_amount(scope *s, const part *p, sql_range *r) // in 3 days
{
    *r = around(p[1].kind, sql_time_shift(s->now, p[1].kind, p[1].v));
    return p[0].v;
}

static int on_amount_from(scope *s, const part *p, sql_range *r) // 3 days from now
{
    (void)s;
    *r = around(p[0].kind, sql_time_shift(p[2].r.start, p[0].kind, p[0].v));
    return 1;
}

static int on_amount_beside(scope *s, const part *p, sql_range *r) // 3 days before Christmas
{
    (void)s;
    int64_t from = p[1].v < 0 ? p[2].r.start : p[2].r.end - 1;
    *r = around(p[0].kind, sql_time_shift(from, p[0].kind, p[0].v * p[1].v));
    return 1;
}

static int on_second_unit(scope *s, const part *p, sql_range *r) // the week before last
{
    int unit = (int)p[0].v;
    *r = sql_unit_range(unit == FORTNIGHT ? WEEK : unit, sql_unit_index(unit, s->now) + 2 * p[1].v);
    return p[1].v == p[2].v && unit > DAYS && unit != FORTNIGHT;
}

static int on_unit_beside(scope *s, const part *p, sql_range *r) // the month before May 2023
{
    (void)s;
    int unit = (int)p[0].v;
    if (unit < DAYS || unit == FORTNIGHT || unit == WEEKEND || !whole_days(p[2].r)) {
        return 0;
    }
    *r = sql_unit_range(unit,
                        sql_unit_index(unit, p[1].v < 0 ? p[2].r.start : p[2].r.end - 1) + p[1].v);
    return 1;
}

static int on_unit_of(scope *s, const part *p, sql_range *r) // the week of 8 May 2023
{
    (void)s;
    int unit = (int)p[0].v;
    if (unit < DAYS || unit == FORTNIGHT) {
        return 0;
    }
    *r = sql_unit_range(unit, sql_unit_index(unit, p[2].r.start));
    return p[1].tok ? p[2].r.end <= r->end : is_unit(p[2].r, unit);
}

static int on_thing(scope *s, const part *p, sql_range *r)
{
    s->loose = 1;
    return sql_occurrence_find(p[0].kind, (int)p[0].v, s->how, s->at, r);
}

static int on_relative_thing(scope *s, const part *p, sql_range *r) // last Tuesday
{
    int kind = p[1].kind, v = (int)p[1].v;
    if (p[0].v) {
        return p[0].v < 0 ? sql_occurrence_find(kind, v, OVER, today(s), r)
                          : sql_occurrence_find(kind, v, COMING, today(s) + SQL_DAY, r);
    }
    int64_t index = sql_unit_index(sql_recurs[kind].within, s->now);
    int last = sql_occurrence(kind, v, index - 1, r); // this winter, in January
    return (last && r->end > s->now) || sql_occurrence(kind, v, index, r);
}

static int within(const part *thing, sql_range outer, sql_range *r)
{
    int unit = sql_recurs[thing->kind].within;
    if (is_unit(outer, unit)) {
        return sql_occurrence(thing->kind, (int)thing->v, sql_unit_index(unit, outer.start), r);
    }
    *r = outer; // Monday, 8 May 2023: if it is one
    sql_range day;
    return thing->kind == ON_WEEKDAY && one_day(outer) &&
           sql_occurrence_find(ON_WEEKDAY, (int)thing->v, BEGUN, outer.start, &day) &&
           day.start == outer.start;
}

static int on_thing_in(scope *s, const part *p, sql_range *r) // May 2023
{
    (void)s;
    return within(&p[0], p[2].r, r);
}

static int on_in_thing(scope *s, const part *p, sql_range *r) // last week on Friday
{
    (void)s;
    return within(&p[3], p[0].r, r);
}

static int on_thing_beside(scope *s, const part *p, sql_range *r) // the Friday before 8 May 2023
{
    (void)s;
    int kind = p[0].kind, v = (int)p[0].v;
    if ((kind != ON_WEEKDAY && kind != WEEKEND) || !whole_days(p[2].r)) {
        return 0;
    }
    return p[1].v < 0 ? sql_occurrence_find(kind, v, OVER, p[2].r.start, r)
                      : sql_occurrence_find(kind, v, COMING, p[2].r.end, r);
}

/* Of the day that r is: a clock time, or a part. */
static int in_day(sql_range day, int64_t from, int64_t len, sql_range *r)
{
    *r = (sql_range){day.start + from, day.start + from + len};
    return one_day(day);
}

static int part_of(sql_range day, int64_t from, sql_range *r)
{
    return from ? in_day(day, from * 3600, SQL_DAY / 4, r)
                : in_day(day, SQL_DAY * 3 / 4, SQL_DAY / 2, r);
}

static int on_clock(scope *s, const part *p, sql_range *r)
{
    return in_day((sql_range){today(s), today(s) + SQL_DAY}, p[0].tok->v, p[0].tok->w, r);
}

static int on_clock_day(scope *s, const part *p, sql_range *r) // 3pm yesterday
{
    (void)s;
    return in_day(p[1].r, p[0].tok->v, p[0].tok->w, r);
}

static int on_day_clock(scope *s, const part *p, sql_range *r) // yesterday at 3pm
{
    (void)s;
    return in_day(p[0].r, p[3].tok->v, p[3].tok->w, r);
}

static int on_relative_part(scope *s, const part *p, sql_range *r) // this morning, last night
{
    sql_range day = {today(s) + p[0].v * SQL_DAY, today(s) + (p[0].v + 1) * SQL_DAY};
    return (p[0].v == 0 || (p[0].v < 0 && (p[1].v == 0 || p[1].v == 18))) &&
           part_of(day, p[1].v, r);
}

static int on_part_of(scope *s, const part *p, sql_range *r) // morning of 8 May
{
    (void)s;
    return part_of(p[2].r, p[0].v, r);
}

static int on_day_part(scope *s, const part *p, sql_range *r) // yesterday in the morning
{
    (void)s;
    return part_of(p[0].r, p[3].v, r);
}

static int on_side(scope *s, const part *p, sql_range *r) // before June
{
    (void)s;
    *r = p[0].v < 0 ? (sql_range){SQL_TIME_MIN, p[1].r.start}
                    : (sql_range){p[1].r.end, SQL_TIME_MAX};
    return 1;
}

static int on_since(scope *s, const part *p, sql_range *r)
{
    *r = (sql_range){p[1].r.start, s->now};
    return 1;
}

static int on_rest(scope *s, const part *p, sql_range *r) // earlier this week, later today
{
    *r = p[1].r;
    if (p[0].v < 0 && r->end > s->now) {
        r->end = s->now;
    } else if (p[0].v > 0 && r->start < s->now) {
        r->start = s->now;
    }
    return 1;
}

/* `between A and B`, `from A to B`, `A to B`; x NULL in the last. */
static int joined(const sql_token *x, const sql_token *by)
{
    return x && x->class == 'B' ? by->v == 0 : by->v == 1;
}

static int clocks(sql_range day, const part *a, const part *b, sql_range *r)
{
    *r = (sql_range){day.start + a->tok->v, day.start + b->tok->v};
    return one_day(day);
}

static int on_clocks(scope *s, const part *p, sql_range *r) // 3pm to 5pm
{
    return joined(p[0].tok, p[2].tok) &&
           clocks((sql_range){today(s), today(s) + SQL_DAY}, &p[1], &p[3], r);
}

static int on_clocks_day(scope *s, const part *p, sql_range *r)
{
    (void)s;
    return joined(p[0].tok, p[2].tok) && clocks(p[4].r, &p[1], &p[3], r);
}

static int on_day_clocks(scope *s, const part *p, sql_range *r)
{
    (void)s;
    return joined(p[1].tok, p[3].tok) && clocks(p[0].r, &p[2], &p[4], r);
}

/* Days a and b of a month, of a year if that is given. */
static int days_in(scope *s, const sql_token *m, const sql_token *a, const sql_token *b,
                   const sql_token *y, sql_range *r)
{
    sql_range last;
    int first = (int)(m->v * 32 + a->v), end = (int)(m->v * 32 + b->v);
    s->loose |= !y;
    if (!(y ? sql_occurrence(ON_DATE, first, y->v, r)
            : sql_occurrence_find(ON_DATE, first, s->how, s->at, r)) ||
        !sql_occurrence(ON_DATE, end, sql_unit_index(YEAR, r->start), &last)) {
        return 0;
    }
    r->end = last.end;
    return 1;
}

static int on_days_month(scope *s, const part *p, sql_range *r) // 3 to 10 May 2023
{
    return joined(p[0].tok, p[3].tok) && days_in(s, p[7].tok, p[2].tok, p[5].tok, p[8].tok, r);
}

static int on_month_days(scope *s, const part *p, sql_range *r) // May 3 to 10, 2023
{
    return joined(p[0].tok, p[4].tok) && days_in(s, p[1].tok, p[3].tok, p[6].tok, p[7].tok, r);
}

static int from_to(scope *s, const part *a, const part *b, sql_range *r)
{
    sql_range first, last;
    int loose, last_loose;
    if (s->nested || !expression_at(s, a->lo, a->hi, s->how, s->at, &loose, &first) ||
        !expression_at(s, b->lo, b->hi, s->how, s->at, &last_loose, &last)) {
        return 0;
    }
    int ok = 1;
    if (last_loose) {
        ok = expression_at(s, b->lo, b->hi, COMING, first.start, &loose, &last);
    } else if (loose) {
        ok = expression_at(s, a->lo, a->hi, BEGUN, last.start, &loose, &first);
    }
    *r = (sql_range){first.start, last.end};
    return ok;
}

static int on_between(scope *s, const part *p, sql_range *r)
{
    return joined(p[0].tok, p[2].tok) && from_to(s, &p[1], &p[3], r);
}

static int on_to(scope *s, const part *p, sql_range *r)
{
    return joined(NULL, p[1].tok) && from_to(s, &p[0], &p[2], r);
}

static const form forms[] = {
    {"D", on_day},
    {"z", on_now},
    {"T", on_tonight},
    {"R", on_absolute},
    {"y", on_year},
    {"ru", on_relative_unit},
    {"pu", on_past_unit},
    {"rM", on_last_amount},
    {"pM", on_last_amount},
    {"MA", on_ago},
    {"xM", on_in_amount},
    {"MFE", on_amount_from},
    {"MbE", on_amount_beside},
    {"ubr", on_second_unit},
    {"ubE", on_unit_beside},
    {"uf?E", on_unit_of},
    {"L", on_thing},
    {"rL", on_relative_thing},
    {"Lf?E", on_thing_in},
    {"LbE", on_thing_beside},
    {"c", on_clock},
    {"cE", on_clock_day},
    {"Ex?t?c", on_day_clock},
    {"rP", on_relative_part},
    {"Pf?E", on_part_of},
    {"Ex?t?P", on_day_part},
    {"Ex?t?L", on_in_thing},
    {"bE", on_side},
    {"SE", on_since},
    {"eE", on_rest},
    {"X?c&c", on_clocks},
    {"X?c&cE", on_clocks_day},
    {"EX?c&c", on_day_clocks},
    {"X?t?d&t?df?my?", on_days_month},
    {"X?mt?d&t?dy?", on_month_days},
    {"XE&E", on_between},
    {"E&E", on_to},
};

/* Whether the last token can be the pattern's last element, to save the search. */
static int ends_so(const form *f, const sql_token *last)
{
    char c = f->pattern[strlen(f->pattern) - 1];
    return c == '?' || is_part(c) || is_a(last, c);
}

/* The first form that fits. */
static int first_form(scope *s, size_t lo, size_t hi, sql_range *r)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        part parts[PARTS_MAX];
        s->loose = 0;
        if (ends_so(&forms[i], &s->tok[hi - 1]) &&
            match(s, &forms[i], forms[i].pattern, lo, hi, parts, 0, r) && r->start < r->end &&
            r->start >= SQL_TIME_MIN && r->end <= SQL_TIME_MAX) {
            return 1;
        }
    }
    s->loose = 0;
    // on the 3rd
    return (s->tok[lo].class == 'x' || s->tok[lo].class == 't') && expression(s, lo + 1, hi, r);
}

static int expression(scope *s, size_t lo, size_t hi, sql_range *r)
{
    int loose = s->loose;
    if (lo >= hi) {
        return 0;
    }
    cell *c = &s->cells[lo * SQL_TIME_TOKENS + hi - 1];
    if (!c->known) { // each run of tokens is read once
        c->found = (char)first_form(s, lo, hi, &c->r);
        c->loose = (char)s->loose;
        c->known = 1;
    }
    *r = c->r;
    s->loose = loose || (c->found && c->loose);
    return c->found;
}

/* A scope of its own, in which the things that recur are those around at. */
static int expression_at(const scope *s, size_t lo, size_t hi, int how, int64_t at, int *loose,
                         sql_range *r)
{
    cell cells[SQL_TIME_TOKENS * SQL_TIME_TOKENS];
    scope own = {.tok = s->tok, .now = s->now, .how = how, .at = at, .nested = 1, .cells = cells};
    memset(cells, 0, sizeof cells);
    int found = expression(&own, lo, hi, r);
    *loose = own.loose;
    return found;
}

int sql_time_range(const char *s, size_t n, int64_t now, int64_t *start, int64_t *end)
{
    sql_token tok[SQL_TIME_TOKENS];
    cell cells[SQL_TIME_TOKENS * SQL_TIME_TOKENS];
    size_t ntok;
    sql_range r;
    if (n > TEXT_MAX || now < SQL_TIME_MIN || now >= SQL_TIME_MAX ||
        !sql_time_tokens(s, n, tok, &ntok)) {
        return 0;
    }
    memset(cells, 0, sizeof cells);
    scope all = {.tok = tok, .now = now, .how = BEGUN, .at = now, .cells = cells};
    if (!expression(&all, 0, ntok, &r)) {
        return 0;
    }
    *start = r.start;
    *end = r.end;
    return 1;
}
