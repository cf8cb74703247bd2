/*
 * sql_md.c - where a Markdown file's headings are, by CommonMark's rules for blocks.
 *
 * Line by line: fenced code (``` and ~~~, also in lists), raw HTML, block quotes, list items and
 * front matter hide what looks like a heading in them. A heading is `#` to `######`, or a paragraph
 * underlined with = or -. A heading inside a list item or a quote is none of the file's. Lines end
 * with LF, CRLF or CR. What a wrong guess could cost is a cut in another place, never a byte.
 *
 * TESTS    tests/sql/test_markdown.py, tests/fuzz/fuzz_doors.c
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "sql.h"
#include "sql_md.h"
#include "sql_text.h"
#include "sql_value.h"

typedef struct parser {
    const char *s;
    size_t n;
    int from; /* split at this level and below */
    sql_md_section *sections;
    size_t count, room;
    char fence; /* ` or ~ inside fenced code, else 0 */
    size_t fence_len;
    int fence_in_list;
    const char *html;   /* raw HTML ends with a line that has this; "" a blank line; NULL: none */
    int para;           /* a paragraph goes on, */
    size_t para_at;     /* from here */
    int lazy;           /* the next line would go on with a quote or a list item's paragraph */
    int in_list, blank; /* inside a list item; the line before was blank */
    size_t list_indent; /* where the item's text begins */
} parser;

/* One line without its end. */
typedef struct line {
    const char *s; /* behind the white space it begins with */
    size_t n, indent;
    size_t at, end; /* of the line, and behind its end, in the file */
} line;

/* ---------------------------------------------------------------------------------------- lines */

static int is_space(char c)
{
    return c == ' ' || c == '\t';
}

static line next_line(const char *s, size_t n, size_t at)
{
    line l = {s + at, 0, 0, at, at};
    size_t i = at;
    while (i < n && s[i] != '\n' && s[i] != '\r') {
        i++;
    }
    l.n = i - at;
    l.end = i < n ? i + 1 : i;
    if (i + 1 < n && s[i] == '\r' && s[i + 1] == '\n') {
        l.end++;
    }
    while (l.n > 0 && is_space(*l.s)) {
        l.indent = *l.s == '\t' ? (l.indent / 4 + 1) * 4 : l.indent + 1;
        l.s++;
        l.n--;
    }
    return l;
}

static size_t trimmed(const char *s, size_t n)
{
    while (n > 0 && is_space(s[n - 1])) {
        n--;
    }
    return n;
}

static size_t run_of(const char *s, size_t n, char c)
{
    size_t i = 0;
    while (i < n && s[i] == c) {
        i++;
    }
    return i;
}

static int line_is(const line *l, const char *text)
{
    size_t n = strlen(text);
    return l->indent == 0 && trimmed(l->s, l->n) == n && memcmp(l->s, text, n) == 0;
}

static size_t bom(const char *s, size_t n)
{
    return n >= 3 && memcmp(s, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
}

// Where the front matter ends; the place it would begin at when there is none.
static size_t front_end(const char *s, size_t n)
{
    size_t start = bom(s, n);
    line l = next_line(s, n, start);
    if (!line_is(&l, "---")) {
        return start;
    }
    while (l.end < n) {
        l = next_line(s, n, l.end);
        if (line_is(&l, "---") || line_is(&l, "...")) {
            return l.end;
        }
    }
    return start;
}

/* --------------------------------------------------------------------------------------- blocks */

// Three or more of -, _ or *, with white space between.
static int is_break(const line *l)
{
    size_t marks = 0;
    for (size_t i = 0; i < l->n; i++) {
        if (is_space(l->s[i])) {
            continue;
        }
        if (l->s[i] != l->s[0] || !strchr("-_*", l->s[i]) || !l->s[i]) {
            return 0;
        }
        marks++;
    }
    return marks >= 3;
}

// Begins fenced code at s.
static int opens_fence(parser *p, const char *s, size_t n)
{
    if (n < 3 || (*s != '`' && *s != '~')) {
        return 0;
    }
    size_t len = run_of(s, n, *s);
    if (len < 3 || (*s == '`' && memchr(s + len, '`', n - len))) {
        return 0;
    }
    p->fence = *s;
    p->fence_len = len;
    p->fence_in_list = p->in_list;
    p->para = 0;
    return 1;
}

// 1 while the line is inside.
static int in_fence(parser *p, const line *l)
{
    if (p->fence_in_list && l->n > 0 && l->indent < p->list_indent &&
        !(l->s[0] == p->fence && run_of(l->s, l->n, p->fence) >= p->fence_len)) {
        p->fence = 0; // the list item has ended, and all that is in it
        p->in_list = p->lazy = 0;
        return 0;
    }
    size_t len = run_of(l->s, l->n, p->fence);
    if (len >= p->fence_len && trimmed(l->s, l->n) == len && (p->fence_in_list || l->indent < 4)) {
        p->fence = 0;
    }
    return 1;
}

// The bytes of a list item's mark at s, 0 when there is none.
static size_t list_mark(const parser *p, const char *s, size_t n)
{
    size_t len = 0;
    int one = 0;
    if (n > 0 && strchr("-+*", s[0]) && s[0]) {
        len = 1;
        one = 1;
    } else {
        while (len < n && len < 9 && sql_is_digit(s[len])) {
            len++;
        }
        one = len == 1 && s[0] == '1';
        len = len > 0 && len < n && (s[len] == '.' || s[len] == ')') ? len + 1 : 0;
    }
    if (len == 0 || (len < n && !is_space(s[len]))) {
        return 0;
    }
    // only an item with text, numbered 1 if at all, ends a paragraph
    return p->para && (!one || trimmed(s, n) == len) ? 0 : len;
}

static int has(const char *s, size_t n, const char *what)
{
    size_t k = strlen(what);
    for (size_t i = 0; i + k <= n; i++) {
        if (sqlite3_strnicmp(s + i, what, (int)k) == 0) {
            return 1;
        }
    }
    return 0;
}

// What ends the raw HTML that begins at s; NULL: none begins.
static const char *opens_html(const char *s, size_t n)
{
    static const char *const pairs[][2] = {{"<!--", "-->"},
                                           {"<![CDATA[", "]]>"},
                                           {"<?", "?>"},
                                           {"<pre", "</pre>"},
                                           {"<script", "</script>"},
                                           {"<style", "</style>"},
                                           {"<textarea", "</textarea>"}};
    static const char blocks[] =
        " address article aside blockquote body center dd details dialog div dl dt fieldset "
        "figcaption figure footer form h1 h2 h3 h4 h5 h6 head header hr html iframe legend li link "
        "main menu nav ol optgroup option p param section summary table tbody td tfoot th thead "
        "title tr ul ";
    char name[16] = " ";
    size_t k = 1, i = 1;
    if (n < 2 || s[0] != '<') {
        return NULL;
    }
    for (size_t j = 0; j < sizeof pairs / sizeof *pairs; j++) {
        size_t len = strlen(pairs[j][0]);
        if (n >= len && sqlite3_strnicmp(s, pairs[j][0], (int)len) == 0 &&
            (j < 3 || n == len || s[len] == '>' || is_space(s[len]))) {
            return pairs[j][1];
        }
    }
    i += s[1] == '/';
    while (i < n && k < sizeof name - 2 && (sql_is_digit(s[i]) || (s[i] | 32) >= 'a') &&
           (s[i] | 32) <= 'z') {
        name[k++] = (char)(sql_is_digit(s[i]) ? s[i] : s[i] | 32);
        i++;
    }
    name[k++] = ' ';
    name[k] = 0;
    return k > 2 && (i == n || s[i] == '>' || s[i] == '/' || is_space(s[i])) && strstr(blocks, name)
               ? ""
               : NULL;
}

// [name]: where a link leads
static int is_definition(const line *l)
{
    const char *end = l->s[0] == '[' ? memchr(l->s, ']', l->n) : NULL;
    size_t at = end ? (size_t)(end - l->s) + 1 : 0;
    return at > 2 && at + 1 < l->n && l->s[at] == ':';
}

/* ------------------------------------------------------------------------------------- sections */

static int add(parser *p, size_t at, int level, size_t title, size_t ntitle)
{
    if (p->count == p->room) {
        size_t room = p->room * 2 + 16;
        sql_md_section *more = sqlite3_realloc64(p->sections, room * sizeof *more);
        if (!more) {
            return SQLITE_NOMEM;
        }
        p->sections = more;
        p->room = room;
    }
    p->sections[p->count++] = (sql_md_section){at, 0, level, title, ntitle};
    return SQLITE_OK;
}

static int heading(parser *p, size_t at, int level, const char *title, size_t n)
{
    p->para = p->lazy = p->in_list = 0;
    while (n > 0 && (is_space(*title) || *title == '\n' || *title == '\r')) {
        title++;
        n--;
    }
    while (n > 0 && (is_space(title[n - 1]) || title[n - 1] == '\n' || title[n - 1] == '\r')) {
        n--;
    }
    return level >= p->from ? add(p, at, level, (size_t)(title - p->s), n) : SQLITE_OK;
}

// 1: the line was one; negative: out of memory.
static int atx(parser *p, const line *l)
{
    size_t level = run_of(l->s, l->n, '#');
    if (level == 0 || level > 6 || (level < l->n && !is_space(l->s[level]))) {
        return 0;
    }
    const char *t = l->s + level;
    size_t n = trimmed(t, l->n - level), k = n;
    while (k > 0 && t[k - 1] == '#') {
        k--;
    }
    n = k == 0 || is_space(t[k - 1]) ? k : n;
    return heading(p, l->at, (int)level, t, n) == SQLITE_OK ? 1 : -1;
}

static int underline(parser *p, const line *l)
{
    size_t n = trimmed(l->s, l->n);
    if (!p->para || n == 0 || (l->s[0] != '=' && l->s[0] != '-') || run_of(l->s, n, l->s[0]) != n) {
        return 0;
    }
    return heading(p, p->para_at, l->s[0] == '=' ? 1 : 2, p->s + p->para_at, l->at - p->para_at) ==
                   SQLITE_OK
               ? 1
               : -1;
}

static void list_item(parser *p, const line *l, size_t mark)
{
    size_t indent = l->indent + mark + 1;
    if (!p->in_list || indent < p->list_indent) {
        p->list_indent = indent;
    }
    p->in_list = p->lazy = 1;
    p->para = 0;
    const char *s = l->s + mark;
    size_t n = l->n - mark;
    while (n > 0 && is_space(*s)) {
        s++;
        n--;
    }
    opens_fence(p, s, n);
}

// A line that is neither blank nor inside fenced code or raw HTML.
static int block(parser *p, const line *l)
{
    if (p->in_list && p->blank && l->indent < p->list_indent) {
        p->in_list = p->lazy = 0;
    }
    int nested = p->in_list && l->indent >= p->list_indent, code = l->indent >= 4;
    if (!nested && !code) {
        int done = atx(p, l);
        done = done ? done : underline(p, l);
        if (done) {
            return done;
        }
    }
    if (!code && is_break(l)) {
        p->para = p->lazy = 0;
        p->in_list = nested;
        return 1;
    }
    if (!code || nested) {
        int was = p->in_list;
        p->in_list = nested;
        if (opens_fence(p, l->s, l->n)) {
            return 1;
        }
        p->in_list = was;
        size_t mark = !code || p->in_list ? list_mark(p, l->s, l->n) : 0;
        if (mark) {
            list_item(p, l, mark);
            return 1;
        }
    }
    const char *html = code ? NULL : opens_html(l->s, l->n);
    if (html) {
        p->html = *html && has(l->s, l->n, html) ? NULL : html;
        p->para = 0;
    } else if (!code && l->s[0] == '>') {
        p->para = 0;
        p->lazy = 1;
    } else if (!p->para && !code && !p->lazy && !p->in_list && !is_definition(l)) {
        p->para = 1;
        p->para_at = l->at;
    }
    return 1;
}

static int one_line(parser *p, const line *l)
{
    int rc = 1;
    if (p->fence && in_fence(p, l)) {
        return 1;
    }
    int blank = trimmed(l->s, l->n) == 0;
    if (p->html) {
        if (*p->html ? has(l->s, l->n, p->html) : blank) {
            p->html = NULL;
        }
    } else if (blank) {
        p->para = p->lazy = 0;
    } else {
        rc = block(p, l);
    }
    p->blank = blank;
    return rc;
}

static int all_blank(const char *s, size_t n)
{
    for (size_t i = bom(s, n); i < n; i++) {
        if (!is_space(s[i]) && s[i] != '\n' && s[i] != '\r') {
            return 0;
        }
    }
    return 1;
}

// White space alone before the first heading belongs to it.
static int begin_first(parser *p)
{
    if (p->count > 0 && all_blank(p->s, p->sections[0].at)) {
        p->sections[0].at = 0;
        return SQLITE_OK;
    }
    int rc = add(p, 0, 0, 0, 0);
    if (rc == SQLITE_OK) {
        memmove(p->sections + 1, p->sections, (p->count - 1) * sizeof *p->sections);
        p->sections[0] = (sql_md_section){0, 0, 0, 0, 0};
    }
    return rc;
}

int sql_md_split(const char *s, size_t n, int from, sql_md_section **out, size_t *count)
{
    parser p;
    memset(&p, 0, sizeof p);
    p.s = s;
    p.n = n;
    p.from = from;
    int rc = SQLITE_OK;
    for (size_t at = front_end(s, n); at < n && rc == SQLITE_OK;) {
        line l = next_line(s, n, at);
        rc = one_line(&p, &l) < 0 ? SQLITE_NOMEM : SQLITE_OK;
        at = l.end;
    }
    rc = rc == SQLITE_OK && n > 0 ? begin_first(&p) : rc;
    if (rc != SQLITE_OK) {
        sqlite3_free(p.sections);
        p.sections = NULL;
        p.count = 0;
    }
    for (size_t i = 0; i < p.count; i++) {
        p.sections[i].n = (i + 1 < p.count ? p.sections[i + 1].at : n) - p.sections[i].at;
    }
    *out = p.sections;
    *count = p.count;
    return rc;
}

/* ---------------------------------------------------------------------------------------- dates */

int sql_md_front_date(const char *s, size_t n, double *out)
{
    size_t start = bom(s, n), end = front_end(s, n);
    for (size_t at = start; at < end;) {
        line l = next_line(s, n, at);
        at = l.end;
        if (l.indent == 0 && l.n > 5 && sqlite3_strnicmp(l.s, "date:", 5) == 0) {
            const char *v = l.s + 5;
            size_t k = trimmed(v, l.n - 5);
            while (k > 0 && is_space(*v)) {
                v++;
                k--;
            }
            if (k > 1 && (*v == '"' || *v == '\'') && v[k - 1] == *v) {
                v++;
                k -= 2;
            }
            return sql_scan_time(v, k, out);
        }
    }
    return 0;
}

int sql_md_path_date(const char *path, double *out)
{
    const char *name = strrchr(path, '/');
    name = name ? name + 1 : path;
    size_t n = strlen(name);
    for (size_t i = 0; i + 10 <= n; i++) {
        if ((i == 0 || !sql_is_digit(name[i - 1])) && !sql_is_digit(name[i + 10]) &&
            sql_scan_time(name + i, 10, out)) {
            return 1;
        }
    }
    return 0;
}

// One or two digits, below limit; moves on. -1 otherwise.
static int two_digits(const char *s, size_t n, size_t *i, int limit)
{
    int v = 0;
    size_t k = *i;
    while (k < n && k < *i + 2 && sql_is_digit(s[k])) {
        v = v * 10 + (s[k++] - '0');
    }
    int ok = k > *i && v < limit && !(k < n && sql_is_digit(s[k]));
    *i = k;
    return ok ? v : -1;
}

int sql_md_clock(const char *title, size_t n, double *out)
{
    size_t i = 0;
    int h = two_digits(title, n, &i, 24), m = -1, s = 0;
    if (h >= 0 && i < n && title[i] == ':') {
        i++;
        m = two_digits(title, n, &i, 60);
    }
    if (m >= 0 && i < n && title[i] == ':') {
        i++;
        s = two_digits(title, n, &i, 60);
    }
    if (m < 0 || s < 0) {
        return 0;
    }
    i += i < n && title[i] == ' ';
    if (n - i >= 2 && (title[i + 1] | 32) == 'm' && h >= 1 && h <= 12 &&
        (n - i == 2 || title[i + 2] == ' ')) {
        int pm = (title[i] | 32) == 'p';
        h = pm || (title[i] | 32) == 'a' ? h % 12 + 12 * pm : h;
    }
    *out = h * 3600 + m * 60 + s;
    return 1;
}

/* ------------------------------------------------------------------------------ paths and rows */

char *sql_md_path(const char *path)
{
    size_t n = strlen(path), k = 0;
    char *out = sqlite3_malloc64(n + 1);
    if (!out) {
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        int first = k == 0 || out[k - 1] == '/'; // a part begins
        if (first && path[i] == '/' && k > 0) {
            continue;
        }
        if (first && path[i] == '.' && (path[i + 1] == '/' || !path[i + 1]) && n > 1) {
            i += path[i + 1] == '/';
            for (; k == 0 && path[i + 1] == '/'; i++) {
            }
            continue;
        }
        out[k++] = path[i];
    }
    k -= k > 1 && out[k - 1] == '/';
    out[k] = 0;
    if (k == 0) {
        sqlite3_snprintf((int)(n + 1), out, ".");
    }
    return out;
}

static void put_title(sqlite3_str *s, const char *title, size_t n)
{
    if (n > SQL_MD_TITLE_MAX) {
        n = SQL_MD_TITLE_MAX;
        while (n > 0 && ((unsigned char)title[n] & 0xC0) == 0x80) {
            n--;
        }
    }
    for (size_t i = 0; i < n; i++) {
        sqlite3_str_appendchar(s, 1, (unsigned char)title[i] < 0x20 ? ' ' : title[i]);
    }
}

char *sql_md_channel(const char *path, const char *s, const sql_md_section *const chain[7])
{
    sqlite3_str *out = sqlite3_str_new(NULL);
    sqlite3_str_appendall(out, path);
    for (int level = 1; level <= 6; level++) {
        if (chain[level]) {
            sqlite3_str_appendall(out, "::");
            put_title(out, s + chain[level]->title, chain[level]->ntitle);
        }
    }
    return sqlite3_str_finish(out);
}

// The next tag from *i on, without white space around; 0 at the end.
static int next_tag(const char *tags, size_t n, size_t *i, size_t *at, size_t *len)
{
    if (*i > n) {
        return 0;
    }
    const char *comma = *i < n ? memchr(tags + *i, ',', n - *i) : NULL;
    size_t end = comma ? (size_t)(comma - tags) : n;
    *at = *i;
    *i = end + 1;
    while (*at < end && is_space(tags[*at])) {
        ++*at;
    }
    *len = trimmed(tags + *at, end - *at);
    return 1;
}

// N of section-N, -1.
static int64_t number_of(const char *s, size_t n)
{
    int64_t v = 0;
    if (n < 9 || n > 23 || memcmp(s, "section-", 8) != 0) {
        return -1;
    }
    for (size_t i = 8; i < n; i++) {
        if (!sql_is_digit(s[i])) {
            return -1;
        }
        v = v * 10 + (s[i] - '0');
    }
    return v;
}

int64_t sql_md_section_of(const char *tags, size_t n)
{
    size_t i = 0, at, len;
    int ours = 0;
    int64_t number = -1;
    while (next_tag(tags, n, &i, &at, &len)) {
        ours |= len == 8 && memcmp(tags + at, "markdown", 8) == 0;
        number = number < 0 ? number_of(tags + at, len) : number;
    }
    return ours ? number : -1;
}

char *sql_md_tags(const char *tags, size_t n, int64_t number)
{
    size_t i = 0, at, len;
    sqlite3_str *out = sqlite3_str_new(NULL);
    sqlite3_str_appendf(out, "markdown,section-%lld", (long long)number);
    while (next_tag(tags, n, &i, &at, &len)) {
        if (len > 0 && number_of(tags + at, len) < 0 &&
            !(len == 8 && memcmp(tags + at, "markdown", 8) == 0)) {
            sqlite3_str_appendchar(out, 1, ',');
            sqlite3_str_append(out, tags + at, (int)len);
        }
    }
    return sqlite3_str_finish(out);
}
