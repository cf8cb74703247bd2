/*
 * sql_expand.c - other ways to say a query, for h5mem_expand.
 *
 * Each row is the query with one place changed: an acronym for its long form or back, a word for a
 * synonym, a time word for its like, a word for another of its forms. Places are whole words: no
 * letter, digit, underscore or byte of a non-ASCII character may touch them. At one place the
 * longest entry of a table wins (CI/CD before CI). Tables are ASCII and compared without case; all
 * other bytes pass through untouched, whatever they are. The query itself is never among the rows,
 * nor any row twice, case aside.
 *
 * OWNERSHIP  texts by sqlite3_malloc, freed by sql_expand_free
 * LIMITS     SQL_EXPAND_TEXT, SQL_EXPAND_ROWS
 * TESTS      test_expand.py
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "sql.h"
#include "sql_text.h"
#include "sql_words.h"

enum { MEMBERS_MAX = 6 };

/* Each member stands for the others. */
static const char *const synonyms[][MEMBERS_MAX] = {
    {"search", "find", "look for", "query", "retrieve"},
    {"create", "build", "make", "construct", "implement"},
    {"delete", "remove", "drop", "erase", "destroy"},
    {"update", "modify", "change", "edit", "alter"},
    {"fast", "quick", "rapid", "speedy", "performant"},
    {"error", "bug", "issue", "problem", "defect"},
    {"memory", "recall", "remember", "recollection"},
};

static const char *const acronyms[][2] = {
    {"API", "Application Programming Interface"},
    {"DB", "database"},
    {"ML", "Machine Learning"},
    {"AI", "Artificial Intelligence"},
    {"LLM", "Large Language Model"},
    {"PR", "Pull Request"},
    {"CI", "Continuous Integration"},
    {"CD", "Continuous Deployment"},
    {"CI/CD", "Continuous Integration / Continuous Deployment"},
    {"ORM", "Object Relational Mapper"},
    {"SDK", "Software Development Kit"},
    {"CLI", "Command Line Interface"},
    {"GUI", "Graphical User Interface"},
    {"HTTP", "Hypertext Transfer Protocol"},
    {"SQL", "Structured Query Language"},
    {"NoSQL", "Not only SQL"},
    {"OS", "Operating System"},
    {"CPU", "Central Processing Unit"},
    {"GPU", "Graphics Processing Unit"},
};

/* The first member stands for the others, not they for it. */
static const char *const times[][MEMBERS_MAX] = {
    {"yesterday", "today", "recent", "last few days"},
    {"today", "now", "current", "this moment"},
    {"last week", "this week", "recent", "recently"},
    {"this week", "recent", "last few days", "lately"},
    {"recently", "last few days", "this week", "today"},
    {"next month", "upcoming", "soon", "in the future"},
    {"last month", "recent", "last few weeks", "previously"},
};

typedef struct expander {
    const char *s;
    size_t n;
    sql_expansion *out;
    size_t count;
    int rc;
} expander;

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static int is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static int is_letter(char c)
{
    return lower(c) >= 'a' && lower(c) <= 'z';
}

static int in_word(char c)
{
    return is_letter(c) || (c >= '0' && c <= '9') || c == '_' || (unsigned char)c >= 0x80;
}

static int is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static int same(const char *a, size_t na, const char *b, size_t nb)
{
    for (size_t i = 0; na == nb && i < na; i++) {
        if (lower(a[i]) != lower(b[i])) {
            return 0;
        }
    }
    return na == nb;
}

/* How many bytes from `at` on, where a word begins, are this phrase; 0: they are not. A space in
 * it is any white space. */
static size_t phrase_at(const expander *e, size_t at, const char *phrase)
{
    size_t i = at;
    for (; *phrase; phrase++) {
        if (*phrase == ' ') {
            size_t from = i;
            while (i < e->n && is_space(e->s[i])) {
                i++;
            }
            if (i == from) {
                return 0;
            }
        } else if (i == e->n || lower(e->s[i++]) != lower(*phrase)) {
            return 0;
        }
    }
    return i < e->n && in_word(e->s[i]) ? 0 : i - at;
}

/* One row: the query with len bytes at `at` replaced, unless it is there already. */
static void emit(expander *e, int kind, size_t at, size_t len, const char *by)
{
    size_t k = strlen(by), n = e->n - len + k;
    if (e->rc != SQLITE_OK || e->count == SQL_EXPAND_ROWS) {
        return;
    }
    char *text = sqlite3_malloc64(n + 1);
    if (!text) {
        e->rc = SQLITE_NOMEM;
        return;
    }
    memcpy(text, e->s, at);
    memcpy(text + at, by, k);
    memcpy(text + at + k, e->s + at + len, e->n - at - len);
    text[n] = 0;
    int there = same(text, n, e->s, e->n);
    for (size_t i = 0; i < e->count && !there; i++) {
        there = same(text, n, e->out[i].text, e->out[i].n);
    }
    if (there) {
        sqlite3_free(text);
        return;
    }
    e->out[e->count++] = (sql_expansion){text, n, kind};
}

/* Rows of a table of phrases: `width` members a group, of which `starts` may be in the query. */
static size_t phrases(expander *e, int kind, size_t at, const char *const *table, size_t groups,
                      size_t width, size_t starts)
{
    const char *const *best = NULL;
    size_t which = 0, len = 0;
    for (size_t g = 0; g < groups; g++) {
        const char *const *group = table + g * width;
        for (size_t m = 0; m < starts && group[m]; m++) {
            size_t n = phrase_at(e, at, group[m]);
            if (n > len) {
                best = group;
                which = m;
                len = n;
            }
        }
    }
    for (size_t m = 0; best && m < width && best[m]; m++) {
        if (m != which) {
            emit(e, kind, at, len, best[m]);
        }
    }
    return len;
}

/* The rows of a word in its other forms; written as it is: word, Word or WORD. */
static size_t word_forms(expander *e, size_t at)
{
    char word[SQL_WORD_MAX];
    sql_word forms[SQL_WORD_FORMS];
    size_t n = 0, upper = 0;
    for (; at + n < e->n && in_word(e->s[at + n]); n++) {
        char c = e->s[at + n];
        if (n == sizeof word - 1 || !is_letter(c)) {
            return 0;
        }
        upper += (size_t)is_upper(c);
        word[n] = lower(c);
    }
    word[n] = 0;
    // a part of "don't" or "it's" is no word
    if (n < 2 || (at > 0 && e->s[at - 1] == '\'') || (at + n < e->n && e->s[at + n] == '\'')) {
        return 0;
    }
    size_t count = sql_word_forms(word, forms);
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; forms[i].s[k]; k++) {
            if (upper == n || (k == 0 && is_upper(e->s[at]))) {
                forms[i].s[k] = (char)(forms[i].s[k] - 'a' + 'A');
            }
        }
        emit(e, SQL_EXPAND_FORM, at, n, forms[i].s);
    }
    return n;
}

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* Rows of one kind that change the place `at`; its length, 0 when there are none. */
static size_t place(expander *e, int kind, size_t at)
{
    switch (kind) {
    case SQL_EXPAND_ACRONYM:
        return phrases(e, kind, at, acronyms[0], COUNT(acronyms), 2, 2);
    case SQL_EXPAND_SYNONYM:
        return phrases(e, kind, at, synonyms[0], COUNT(synonyms), MEMBERS_MAX, MEMBERS_MAX);
    case SQL_EXPAND_TIME:
        return phrases(e, kind, at, times[0], COUNT(times), MEMBERS_MAX, 1);
    default:
        return word_forms(e, at);
    }
}

const struct sql_expansion_kind sql_expansion_kinds[] = {
    [SQL_EXPAND_ACRONYM] = {"acronym", 0.8},
    [SQL_EXPAND_SYNONYM] = {"synonym", 0.7},
    [SQL_EXPAND_TIME] = {"temporal", 0.6},
    [SQL_EXPAND_FORM] = {"morphology", 0.5},
};

int sql_expand(const char *s, size_t n, sql_expansion out[SQL_EXPAND_ROWS], size_t *count)
{
    expander e = {.s = s, .n = n, .out = out, .rc = SQLITE_OK};
    for (int kind = SQL_EXPAND_ACRONYM; kind <= SQL_EXPAND_FORM && n <= SQL_EXPAND_TEXT; kind++) {
        for (size_t at = 0; at < n && e.rc == SQLITE_OK && e.count < SQL_EXPAND_ROWS;) {
            int begins = in_word(s[at]) && !(at && in_word(s[at - 1]));
            size_t len = begins ? place(&e, kind, at) : 0;
            at += len ? len : 1;
        }
    }
    *count = e.count;
    return e.rc;
}

void sql_expand_free(sql_expansion *e, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        sqlite3_free(e[i].text);
    }
}
