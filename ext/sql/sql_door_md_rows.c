/*
 * sql_door_md_rows.c - 'markdown' in: the daily logs that sql_door_md_out.c writes of rows that
 * came from no Markdown.
 *
 *     ## 14:30:00 s-17 (user)
 *     <!-- h5mem row 24 5d2c1f07 {"id":7,"timestamp":1764547200.0,"session":"s-17"} -->
 *
 *     Prefers the window seat.
 *
 * A row is known by its comment (sql_door_add). The numbers are the content's length in bytes and
 * its lookup3 hash: while both hold, nobody has changed it, and it may hold anything. Where
 * somebody has, it ends above the heading of the next row, without the empty lines there, and the
 * row takes it. NULL has "-" there.
 * Headings say nothing that the comment does not. Other text between rows, which would be lost, is
 * an error.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "sql_json.h"
#include "sql_md.h"

typedef struct log {
    sql_door *d;
    char *s;
    size_t n;
    size_t line_at; /* d->line is the line of this byte */
} log;

static const char row_mark[] = SQL_MD_ROW;
enum { MARK = sizeof row_mark - 1 };

static size_t line_end(const log *l, size_t at)
{
    const char *p = at < l->n ? memchr(l->s + at, '\n', l->n - at) : NULL;
    return p ? (size_t)(p - l->s) + 1 : l->n;
}

static int starts(const log *l, size_t at, const char *with)
{
    size_t k = strlen(with);
    return l->n - at >= k && memcmp(l->s + at, with, k) == 0;
}

// The first comment of a row that begins a line at or behind `at`, which begins one; n: none.
static size_t next_mark(const log *l, size_t at)
{
    while (at < l->n && !starts(l, at, row_mark)) {
        at = line_end(l, at);
    }
    return at;
}

static int is_blank(const log *l, size_t at, size_t end)
{
    while (at < end && (l->s[at] == '\n' || l->s[at] == '\r' || l->s[at] == ' ')) {
        at++;
    }
    return at == end;
}

// The first line from a to b that is no heading of a day or a row, and not empty; b: none.
static size_t other_text(const log *l, size_t a, size_t b)
{
    while (a < b) {
        size_t end = line_end(l, a);
        if (!starts(l, a, "# ") && !starts(l, a, "## ") && !starts(l, a, SQL_MD_MARK) &&
            !is_blank(l, a, end)) {
            return a;
        }
        a = end;
    }
    return b;
}

static void go_to_line(log *l, size_t at)
{
    for (; l->line_at < at; l->line_at++) {
        l->d->line += l->s[l->line_at] == '\n';
    }
}

// Where the content ends that begins at `at` and was changed: above the headings before `next`.
static size_t changed_end(const log *l, size_t at, size_t next)
{
    size_t end = at, first = next;
    for (size_t a = at; a < next; a = line_end(l, a)) {
        size_t b = line_end(l, a);
        int heading = starts(l, a, "# ") || starts(l, a, "## ");
        if (!heading && !is_blank(l, a, b)) {
            first = next;
        } else if (heading && first == next) {
            first = a; // the headings behind the last line of text
        }
    }
    for (size_t a = at; a < (next < l->n ? first : l->n); a++) {
        end = l->s[a] == '\n' || l->s[a] == '\r' ? end : a + 1;
    }
    return end;
}

/* What a comment says of the content. */
typedef struct content {
    size_t n;
    uint32_t hash;
    int null;
} content;

// Behind the mark at *at, up to the JSON, which *at is then. 0: it has not this form.
static int read_content(const log *l, size_t *at, content *out)
{
    static const char hex[] = "0123456789abcdef";
    size_t a = *at + MARK, from = a;
    const char *digit;
    memset(out, 0, sizeof *out);
    out->null = a < l->n && l->s[a] == '-';
    a += (size_t)out->null;
    while (!out->null && a < l->n && l->s[a] >= '0' && l->s[a] <= '9' && out->n <= l->n) {
        out->n = out->n * 10 + (size_t)(l->s[a++] - '0');
    }
    if (a == from || l->n - a < 12 || l->s[a++] != ' ') {
        return 0;
    }
    for (int i = 0; i < 8 && !out->null; i++) {
        digit = l->s[a] ? strchr(hex, l->s[a++]) : NULL;
        if (!digit) {
            return 0;
        }
        out->hash = out->hash << 4 | (uint32_t)(digit - hex);
    }
    a += !out->null && l->s[a] == ' ';
    *at = a;
    return l->s[a] == '{';
}

// The row whose comment begins at *at; *at: behind its content.
static int read_row(log *l, size_t *at)
{
    size_t json = *at, end = line_end(l, *at), close = end;
    content c;
    go_to_line(l, *at);
    while (close > json && (l->s[close - 1] == '\n' || l->s[close - 1] == '\r')) {
        close--;
    }
    if (!read_content(l, &json, &c) || close < json + 4 ||
        memcmp(l->s + close - 4, " -->", 4) != 0) {
        return sql_door_fail(l->d, SQLITE_ERROR,
                             "the comment of a row has not the form that "
                             "h5mem_export gives it");
    }
    int64_t line_no = l->d->line;
    go_to_line(l, end); // before the JSON is decoded where it stands
    l->d->line = line_no;
    int rc = sql_json_row(l->d, l->s + json, close - 4 - json);
    if (rc != SQLITE_OK) {
        return rc;
    }
    size_t body = end, blank = line_end(l, body);
    body = is_blank(l, body, blank) ? blank : body;
    int kept = !c.null && c.n <= l->n - body && h5_lookup3(l->s + body, c.n, 0) == c.hash;
    if (kept) { // and nothing was put below it
        size_t after = body + c.n, next = next_mark(l, line_end(l, after));
        kept = other_text(l, after, next) == next;
    }
    size_t stop = kept ? body + c.n : changed_end(l, body, next_mark(l, body));
    if (!c.null || stop > body) {
        sql_door_set_text(l->d, ST_COL_CONTENT, l->s + body, stop - body);
    } else {
        sql_door_set_null(l->d, ST_COL_CONTENT);
    }
    *at = stop > body && l->s[stop - 1] == '\n' ? stop : line_end(l, stop);
    rc = sql_door_add(l->d, 1);
    l->d->line += rc == SQLITE_OK; // the comment's line is behind
    return rc;
}

int sql_md_has_rows(const char *s, size_t n)
{
    const log l = {.s = (char *)s, .n = n};
    return starts(&l, 0, SQL_MD_MARK) && next_mark(&l, 0) < n;
}

int sql_md_rows(sql_door *d, char *s, size_t n, sqlite3_int64 *rows)
{
    log l = {.d = d, .s = s, .n = n};
    size_t at = 0;
    int rc = SQLITE_OK;
    d->line = 1;
    while (rc == SQLITE_OK) {
        size_t next = next_mark(&l, at), other = other_text(&l, at, next);
        if (other < next) {
            go_to_line(&l, other);
            rc = sql_door_fail(d, SQLITE_ERROR,
                               "a text that belongs to no row; a file of its own "
                               "keeps it");
        } else if (next == n) {
            break;
        } else {
            at = next;
            rc = read_row(&l, &at);
            *rows += rc == SQLITE_OK;
        }
    }
    d->line = rc == SQLITE_OK ? 0 : d->line;
    return rc;
}
