/*
 * sql_text.h - what English text means: ranges of time, other words for a query. No state, no
 * SQLite handle, nothing of the locale or of a time zone.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SQL_TEXT_H
#define SQL_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* A byte of a word: an ASCII letter, or part of any character beyond ASCII. */
static inline int sql_is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (unsigned char)c >= 0x80;
}

static inline int sql_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The seconds [start, end) that the whole text names, as Unix seconds UTC, seen from now. Returns
 * 1, or 0 when it is not understood, or reaches beyond the years 1 to 9999. The forms, and what
 * they mean, are in sql_time.c. */
int sql_time_range(const char *s, size_t n, int64_t now, int64_t *start, int64_t *end);

enum {
    SQL_EXPAND_ROWS = 64,  /* expansions that one query has at most */
    SQL_EXPAND_TEXT = 4096 /* bytes of a query; a longer one is a document, and has none */
};

/* How an expansion came about, best first. */
enum { SQL_EXPAND_ACRONYM, SQL_EXPAND_SYNONYM, SQL_EXPAND_TIME, SQL_EXPAND_FORM };
/* Name and weight of each. */
extern const struct sql_expansion_kind {
    const char *name;
    double weight;
} sql_expansion_kinds[];
typedef struct sql_expansion {
    char *text; /* the query with one place changed; by sqlite3_malloc */
    size_t n;
    int kind;
} sql_expansion;

/* Fills out, best kind first, then by the place in the query. An SQLite code; *count rows to be
 * freed by sql_expand_free also after a failure. */
int sql_expand(const char *s, size_t n, sql_expansion out[SQL_EXPAND_ROWS], size_t *count);
void sql_expand_free(sql_expansion *e, size_t count);

#endif
