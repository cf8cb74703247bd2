/*
 * sql_fts5.c - FTS5's query language, as its documentation has it.
 *
 *     query   := query OR query | query AND query | query NOT query | list | ( query )
 *              | columns : ( query )                     NOT binds tightest, then AND, then OR
 *     list    := near list | near                        AND, binding tighter than all of these
 *     near    := [columns :] ( [^] phrase | NEAR ( phrase ... [, n] ) )
 *     phrase  := string [*] [+ phrase]
 *     columns := [-] name | [-] { name ... }
 *
 * A string is a bareword (letters, digits, _, anything beyond ASCII) or stands in quotes, doubled
 * inside. Operators go out in postfix order as they are read. A phrase without tokens is left out
 * of a list and of a NEAR; elsewhere it matches nothing. Phrases on the right of a NOT have no
 * part in the score.
 *
 * ERRORS   each says what is wrong with the query, in FTS5's words
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdarg.h>
#include <string.h>

#include "sql_ask.h"

enum { DEPTH_MAX = 256, NEAR_DEFAULT = 10 };

enum { T_END, T_OPEN, T_STRING, T_AND, T_OR, T_NOT, T_CHAR };

typedef struct token {
    int type;
    char c; /* T_CHAR: one of ( ) { } : , + * - ^ */
    const char *s;
    size_t n;
} token;

typedef struct parser {
    sql_ask *a;
    sql_tokenizer *tok;
    const char *s, *end;
    token at, next; /* the one at hand and the one behind it */
    char **err;
    int rc, depth;
    int only_ors; /* no operator but OR has come */
    size_t words; /* of the string being added */
} parser;

/* What a part of the query is: the rows of the phrases in it were pushed, or it was empty. */
typedef struct part {
    int empty;
} part;

static int fail(parser *p, const char *fmt, ...) SQL_PRINTF(2, 3);
static int fail(parser *p, const char *fmt, ...)
{
    va_list ap;
    if (p->rc == SQLITE_OK) {
        va_start(ap, fmt);
        *p->err = sqlite3_vmprintf(fmt, ap);
        va_end(ap);
        p->rc = *p->err ? SQLITE_ERROR : SQLITE_NOMEM;
    }
    return p->rc;
}

static int keep(parser *p, int rc)
{
    p->rc = p->rc == SQLITE_OK ? rc : p->rc;
    return p->rc;
}

/* --------------------------------------------------------------------------------------- tokens */

static int is_bare(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == 26 || (unsigned char)c >= 0x80;
}

static int is_word(const token *t, const char *word)
{
    return t->n == strlen(word) && memcmp(t->s, word, t->n) == 0;
}

static void syntax_error(parser *p, const token *t)
{
    fail(p, "fts5: syntax error near \"%.*s\"", t->type == T_END ? 0 : (int)t->n, t->s);
}

static void read_quoted(parser *p, token *t)
{
    const char *s = p->s + 1;
    while (s < p->end && (*s != '"' || (s + 1 < p->end && s[1] == '"'))) {
        s += *s == '"' ? 2 : 1;
    }
    if (s >= p->end) {
        t->type = T_OPEN;
        p->s = p->end;
        return;
    }
    t->type = T_STRING;
    t->s = p->s;
    t->n = (size_t)(s + 1 - p->s);
    p->s = s + 1;
}

static token read_token(parser *p)
{
    token t = {T_END, 0, p->end, 0};
    while (p->s < p->end && (*p->s == ' ' || *p->s == '\t' || *p->s == '\n' || *p->s == '\r')) {
        p->s++;
    }
    if (p->s == p->end || p->rc != SQLITE_OK) {
        return t;
    }
    t.s = p->s;
    t.n = 1;
    if (*p->s == '"') {
        read_quoted(p, &t);
    } else if (is_bare(*p->s)) {
        while (p->s < p->end && is_bare(*p->s)) {
            p->s++;
        }
        t.n = (size_t)(p->s - t.s);
        t.type = is_word(&t, "AND")   ? T_AND
                 : is_word(&t, "OR")  ? T_OR
                 : is_word(&t, "NOT") ? T_NOT
                                      : T_STRING;
    } else if (*p->s && strchr("(){}:,+*-^", *p->s)) {
        t.type = T_CHAR;
        t.c = *p->s++;
    } else {
        t.type = T_CHAR; // which nobody expects
        p->s++;
    }
    return t;
}

static void advance(parser *p)
{
    p->at = p->next;
    p->next = read_token(p);
    if (p->at.type == T_OPEN) {
        fail(p, "unterminated string");
    } else if (p->at.type == T_CHAR && !p->at.c) {
        syntax_error(p, &p->at);
    }
}

static int at_char(const parser *p, char c)
{
    return p->rc == SQLITE_OK && p->at.type == T_CHAR && p->at.c == c;
}

static void expect(parser *p, char c)
{
    if (at_char(p, c)) {
        advance(p);
    } else if (p->rc == SQLITE_OK) {
        syntax_error(p, &p->at);
    }
}

/* -------------------------------------------------------------------------------------- columns */

static int at_columns(const parser *p)
{
    return at_char(p, '-') || at_char(p, '{') ||
           (p->rc == SQLITE_OK && p->at.type == T_STRING && p->next.type == T_CHAR &&
            p->next.c == ':');
}

/* The text of a string token, its quotes off. By sqlite3_malloc. */
static char *unquoted(parser *p, const token *t, size_t *n)
{
    char *out = sqlite3_malloc64(t->n + 1);
    *n = 0;
    if (!out) {
        keep(p, SQLITE_NOMEM);
        return NULL;
    }
    if (t->s[0] != '"') {
        memcpy(out, t->s, t->n);
        *n = t->n;
    } else {
        for (size_t i = 1; i + 1 < t->n; i++) {
            out[(*n)++] = t->s[i];
            i += t->s[i] == '"';
        }
    }
    out[*n] = 0;
    return out;
}

static unsigned column_name(parser *p)
{
    unsigned field = 0;
    size_t n;
    if (p->at.type != T_STRING) {
        syntax_error(p, &p->at);
        return 0;
    }
    char *name = unquoted(p, &p->at, &n);
    for (unsigned f = 0; f < VEC_FIELDS && name; f++) {
        field |= sqlite3_stricmp(name, sql_field_names[f]) == 0 ? 1u << f : 0;
    }
    advance(p);
    if (name && !field) {
        fail(p, "no such column: %s; text is searched in content, tags and session", name);
    }
    sqlite3_free(name);
    return field;
}

/* `columns :`; returns those of within. */
static unsigned column_filter(parser *p, unsigned within)
{
    unsigned fields = 0, out = at_char(p, '-');
    if (out) {
        advance(p);
    }
    if (at_char(p, '{')) {
        advance(p);
        do {
            fields |= column_name(p);
        } while (p->rc == SQLITE_OK && !at_char(p, '}'));
        expect(p, '}');
    } else if (p->rc == SQLITE_OK) {
        fields = column_name(p);
    }
    expect(p, ':');
    return within & (out ? ~fields : fields);
}

/* -------------------------------------------------------------------------------------- phrases */

static int on_token(void *ctx, const char *s, size_t n, int colocated, int start, int end)
{
    parser *p = ctx;
    (void)start;
    (void)end;
    return sql_ask_word(p->a, s, n, 0, colocated && p->words++ > 0);
}

/* string [*] [+ string [*]]...; its words go to the list. */
static void read_phrase(parser *p)
{
    sql_ask *a = p->a;
    size_t first = a->words.n;
    for (;;) {
        size_t n;
        if (p->rc == SQLITE_OK && p->at.type != T_STRING) {
            syntax_error(p, &p->at);
        }
        if (p->rc != SQLITE_OK) {
            return;
        }
        int star = p->next.type == T_CHAR && p->next.c == '*';
        char *s = unquoted(p, &p->at, &n);
        p->words = 0;
        if (s) {
            keep(p, sql_tokenize_each(p->tok, star ? SQL_TOKENS_PHRASE_PREFIX : SQL_TOKENS_PHRASE,
                                      s, n, on_token, p));
        }
        sqlite3_free(s);
        if (a->words.n > first) { // as in FTS5 also where this string had no token
            ((vec_word *)a->words.p)[a->words.n - 1].prefix = star;
        }
        advance(p);
        if (star) {
            advance(p);
        }
        if (!at_char(p, '+')) {
            return;
        }
        advance(p);
    }
}

/* Adds the phrase that is at hand, unless it has no tokens. */
static int add_phrase(parser *p, unsigned fields, int initial)
{
    size_t first = p->a->words.n;
    read_phrase(p);
    if (p->rc != SQLITE_OK || p->a->words.n == first) {
        return 0;
    }
    keep(p, sql_ask_phrase(p->a, first, fields, initial, 1));
    return 1;
}

static int digits(const token *t, uint32_t *out)
{
    uint64_t v = 0;
    for (size_t i = 0; i < t->n; i++) {
        if (t->s[i] < '0' || t->s[i] > '9') {
            return 0;
        }
        v = v * 10 + (uint64_t)(t->s[i] - '0');
        v = v > INT32_MAX ? INT32_MAX : v;
    }
    *out = (uint32_t)v;
    return 1;
}

/* NEAR ( phrase ... [, n] ) */
static int near_group(parser *p, unsigned fields)
{
    sql_ask *a = p->a;
    size_t first = a->phrases.n;
    uint32_t near = NEAR_DEFAULT;
    token name = p->at;
    advance(p);
    advance(p);
    do {
        add_phrase(p, fields, 0);
    } while (p->rc == SQLITE_OK && !at_char(p, ',') && !at_char(p, ')'));
    if (at_char(p, ',')) {
        advance(p);
        if (p->at.type != T_STRING) {
            syntax_error(p, &p->at);
        } else if (!digits(&p->at, &near)) {
            fail(p, "expected integer, got \"%.*s\"", (int)p->at.n, p->at.s);
        }
        advance(p);
    }
    expect(p, ')');
    if (p->rc == SQLITE_OK && !is_word(&name, "NEAR")) {
        syntax_error(p, &name); // told last, as FTS5 does
    }
    vec_phrase *all = a->phrases.p;
    for (size_t i = first; i < a->phrases.n; i++) {
        all[i].group = i == first ? (uint32_t)(a->phrases.n - first) : 0;
        all[i].near = near;
    }
    return a->phrases.n > first;
}

/* [columns :] ( [^] phrase | NEAR group ): its rows are pushed, unless it is empty. */
static part read_near(parser *p, unsigned fields)
{
    size_t phrase = p->a->phrases.n;
    int any;
    if (at_columns(p)) {
        fields = column_filter(p, fields);
    }
    if (p->rc == SQLITE_OK && p->at.type == T_STRING && p->next.type == T_CHAR &&
        p->next.c == '(') {
        any = near_group(p, fields);
    } else {
        int initial = at_char(p, '^');
        if (initial) {
            advance(p);
        }
        any = add_phrase(p, fields, initial);
    }
    if (p->rc == SQLITE_OK && any) {
        keep(p, sql_ask_op(p->a, VEC_OP_PHRASE, phrase));
    }
    return (part){!any};
}

/* ------------------------------------------------------------------------------------ operators */

/* Something that matches nothing stands where a part was empty. */
static void fill(parser *p, part *x)
{
    if (p->rc == SQLITE_OK && x->empty) {
        keep(p, sql_ask_phrase(p->a, p->a->words.n, 0, 0, 0));
        keep(p, sql_ask_op(p->a, VEC_OP_PHRASE, p->a->phrases.n - 1));
        x->empty = 0;
    }
}

static void operate(parser *p, int op)
{
    p->only_ors &= op == VEC_OP_OR;
    keep(p, sql_ask_op(p->a, op, 0));
}

static part read_or(parser *p, unsigned fields);

static part read_list(parser *p, unsigned fields)
{
    part all = {1};
    do {
        part x = read_near(p, fields);
        if (!x.empty && !all.empty) {
            operate(p, VEC_OP_AND);
        }
        all.empty &= x.empty;
    } while (p->rc == SQLITE_OK && (p->at.type == T_STRING || at_char(p, '^') || at_columns(p)));
    return all;
}

/* A query in parentheses, with columns or without; or a list. */
static part read_primary(parser *p, unsigned fields)
{
    if (at_columns(p)) {
        // what follows the colon decides, and only the parser's state is to be kept
        parser before = *p;
        unsigned within = column_filter(p, fields);
        if (!at_char(p, '(')) {
            if (p->rc != SQLITE_OK) {
                return (part){1};
            }
            *p = before;
            return read_list(p, fields);
        }
        fields = within;
    }
    if (!at_char(p, '(')) {
        return read_list(p, fields);
    }
    if (++p->depth > DEPTH_MAX) {
        fail(p, "fts5 expression tree is too large (maximum depth %d)", DEPTH_MAX);
        return (part){1};
    }
    advance(p);
    part x = read_or(p, fields);
    expect(p, ')');
    p->depth--;
    return x;
}

static part read_not(parser *p, unsigned fields)
{
    part left = read_primary(p, fields);
    while (p->rc == SQLITE_OK && p->at.type == T_NOT) {
        fill(p, &left);
        advance(p);
        size_t from = p->a->phrases.n;
        part right = read_primary(p, fields);
        fill(p, &right);
        vec_phrase *all = p->a->phrases.p;
        for (size_t i = from; i < p->a->phrases.n; i++) {
            all[i].weight = 0;
        }
        operate(p, VEC_OP_NOT);
    }
    return left;
}

static part read_and(parser *p, unsigned fields)
{
    part left = read_not(p, fields);
    while (p->rc == SQLITE_OK && p->at.type == T_AND) {
        fill(p, &left);
        advance(p);
        part right = read_not(p, fields);
        fill(p, &right);
        operate(p, VEC_OP_AND);
    }
    return left;
}

static part read_or(parser *p, unsigned fields)
{
    part left = read_and(p, fields);
    while (p->rc == SQLITE_OK && p->at.type == T_OR) {
        fill(p, &left);
        advance(p);
        part right = read_and(p, fields);
        fill(p, &right);
        operate(p, VEC_OP_OR);
    }
    return left;
}

int sql_ask_fts5(sql_ask *a, sql_tokenizer *tok, const char *s, size_t n, unsigned fields,
                 char **err)
{
    parser p = {.a = a, .tok = tok, .s = s, .end = s + n, .err = err, .only_ors = 1};
    advance(&p);
    advance(&p);
    if (p.rc == SQLITE_OK && p.at.type == T_END) {
        return SQLITE_OK; // nothing asked for
    }
    (void)read_or(&p, fields);
    if (p.rc == SQLITE_OK && p.at.type != T_END) {
        syntax_error(&p, &p.at);
    }
    if (p.rc == SQLITE_OK && p.only_ors) {
        a->ops.n = 0; // every row that has one of the phrases
    }
    return p.rc;
}
