/*
 * sql_plain.c - plain words as a query: any string is one.
 *
 * Words are OR-ed. At the beginning of a word (after white space, or of the text) `+` makes a must
 * and `-` a must not, where there is a positive term; a must or must not of several tokens is a
 * phrase. `"a phrase"` may stand alone or behind one of the two. `word*` takes what begins so. All
 * else is punctuation: a quote inside a word or without its partner, a star after a digit or before
 * a letter.
 *
 * The text between such operators goes to the tokenizer in one piece, as a row's text does.
 *
 * Stop words are left out where anything else is asked for: they cost most of the time of a
 * question and say little about what it is after.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "sql_ask.h"
#include "sql_text.h"

typedef struct plain {
    sql_ask *a;
    sql_tokenizer *tok;
    const char *s;
    size_t n;
    unsigned fields;
    int positive;  /* a term that is wanted has come */
    int substance; /* one that is no stop word */
    int stops;     /* round two: stop words count */
    int only_nots; /* round two: there is nothing but nots, which are then words */
    size_t nmust, nnot;
    int prefix_end; /* the token that ends here is a prefix; -1: none */
    size_t from;    /* where the piece at hand begins */
    size_t words;   /* found in it */
    vec_op not_op;
} plain;

static int is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static int is_inner(char c)
{
    return sql_is_letter(c) || (c >= '0' && c <= '9') || c == '_';
}

/* ----------------------------------------------------------------------------------------
 * pieces */

/* Is s[start, end) a whole word, and one that says nothing? */
static int is_stop(const plain *p, int start, int end)
{
    const char *s = p->s + p->from;
    size_t left = p->n - p->from;
    return start >= 0 && end > start && (size_t)end <= left &&
           !(p->from + (size_t)start > 0 && is_inner(s[start - 1])) &&
           !((size_t)end < left && is_inner(s[end])) &&
           sql_is_stop_word(s + start, (size_t)(end - start));
}

static int on_loose(void *ctx, const char *s, size_t n, int colocated, int start, int end)
{
    plain *p = ctx;
    int prefix = end == p->prefix_end;
    (void)colocated;
    p->positive = 1;
    if (!prefix && is_stop(p, start, end) && !p->stops) {
        return SQLITE_OK;
    }
    p->substance = 1;
    return sql_ask_loose(p->a, s, n, prefix, p->fields, 1);
}

static int add_loose(plain *p, size_t from, size_t to, int prefix)
{
    if (from == to) {
        return SQLITE_OK;
    }
    p->from = from;
    p->prefix_end = prefix ? (int)(to - from) : -1;
    return sql_tokenize_each(p->tok, prefix ? SQL_TOKENS_PREFIX : SQL_TOKENS_QUERY, p->s + from,
                             to - from, on_loose, p);
}

static int on_phrase(void *ctx, const char *s, size_t n, int colocated, int start, int end)
{
    plain *p = ctx;
    (void)start;
    return sql_ask_word(p->a, s, n, end == p->prefix_end, colocated && p->words++ > 0);
}

/* A phrase, wanted or not. sign: '+', '-', or 0. */
static int add_phrase(plain *p, char sign, size_t from, size_t to, int prefix)
{
    sql_ask *a = p->a;
    size_t first = a->words.n, phrase = a->phrases.n;
    if (sign == '-' && p->only_nots) {
        return add_loose(p, from, to, prefix);
    }
    p->words = 0;
    p->prefix_end = prefix ? (int)(to - from) : -1;
    int rc = sql_tokenize_each(p->tok, prefix ? SQL_TOKENS_PHRASE_PREFIX : SQL_TOKENS_PHRASE,
                               p->s + from, to - from, on_phrase, p);
    if (rc != SQLITE_OK || a->words.n == first) {
        return rc;
    }
    rc = sql_ask_phrase(a, first, p->fields, 0, sign != '-');
    p->positive |= sign != '-';
    p->substance |= sign != '-';
    if (rc == SQLITE_OK && sign) {
        // the first operator needs something to work on: all rows, for a not
        size_t *count = sign == '-' ? &p->nnot : &p->nmust;
        int more = p->nmust + p->nnot > 0;
        if (!more && sign == '-') {
            rc = sql_ask_op(a, VEC_OP_ALL, 0);
        }
        rc = rc == SQLITE_OK ? sql_ask_op(a, VEC_OP_PHRASE, phrase) : rc;
        if (rc == SQLITE_OK && (more || sign == '-')) {
            rc = sql_ask_op(a, sign == '-' ? VEC_OP_NOT : VEC_OP_AND, 0);
        }
        ++*count;
    }
    return rc;
}

/* ---------------------------------------------------------------------------------------- words */

/* Where the phrase that begins with the quote at i ends; 0: it does not. */
static size_t closing(const plain *p, size_t i)
{
    const char *end = i + 1 < p->n ? memchr(p->s + i + 1, '"', p->n - i - 1) : NULL;
    return end ? (size_t)(end - p->s) : 0;
}

/* Is there a prefix star at i? */
static int is_star(const plain *p, size_t i)
{
    return p->s[i] == '*' && i > 0 && sql_is_letter(p->s[i - 1]) &&
           (i + 1 == p->n || (!is_inner(p->s[i + 1]) && p->s[i + 1] != '*'));
}

/* A word with a sign at i: to white space, or a phrase in quotes. *next: behind it. */
static int signed_word(plain *p, size_t i, size_t *next)
{
    char sign = p->s[i++];
    size_t end = i;
    if (p->s[i] == '"') {
        end = closing(p, i);
        *next = end + 1;
        return add_phrase(p, sign, i + 1, end, 0);
    }
    while (end < p->n && !is_space(p->s[end]) && !is_star(p, end)) {
        end++;
    }
    int prefix = end < p->n && p->s[end] == '*';
    *next = end + (size_t)prefix;
    return add_phrase(p, sign, i, end, prefix);
}

static int has_sign(const plain *p, size_t i)
{
    return (p->s[i] == '+' || p->s[i] == '-') && (i == 0 || is_space(p->s[i - 1])) &&
           i + 1 < p->n && (is_inner(p->s[i + 1]) || (p->s[i + 1] == '"' && closing(p, i + 1)));
}

static int walk(plain *p)
{
    size_t plain_from = 0, word = 0, i = 0;
    int rc = SQLITE_OK;
    while (i < p->n && rc == SQLITE_OK) {
        size_t next = i + 1;
        if (has_sign(p, i)) {
            rc = add_loose(p, plain_from, i, 0);
            rc = rc == SQLITE_OK ? signed_word(p, i, &next) : rc;
            plain_from = word = next;
        } else if (p->s[i] == '"' && !(i > 0 && is_inner(p->s[i - 1])) && closing(p, i)) {
            rc = add_loose(p, plain_from, i, 0);
            next = closing(p, i) + 1;
            rc = rc == SQLITE_OK ? add_phrase(p, 0, i + 1, next - 1, 0) : rc;
            plain_from = word = next;
        } else if (is_star(p, i)) {
            rc = add_loose(p, plain_from, word, 0);
            rc = rc == SQLITE_OK ? add_loose(p, word, i, 1) : rc;
            plain_from = word = next;
        } else if (is_space(p->s[i])) {
            word = next;
        }
        i = next;
    }
    return rc == SQLITE_OK ? add_loose(p, plain_from, p->n, 0) : rc;
}

int sql_ask_plain(sql_ask *a, sql_tokenizer *tok, const char *s, size_t n, unsigned fields)
{
    plain p = {.a = a, .tok = tok, .s = s, .n = n, .fields = fields};
    int rc = walk(&p);
    if (rc == SQLITE_OK && !p.substance) {
        // nothing but stop words, or nothing but nots: then they are what is asked for
        sql_ask_free(a);
        p = (plain){.a = a, .tok = tok, .s = s, .n = n, .fields = fields};
        p.stops = 1;
        rc = walk(&p);
        if (rc == SQLITE_OK && !p.positive) {
            sql_ask_free(a);
            p = (plain){.a = a, .tok = tok, .s = s, .n = n, .fields = fields};
            p.stops = p.only_nots = 1;
            rc = walk(&p);
        }
    }
    a->filters = 1;
    return rc;
}
