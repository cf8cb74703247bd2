/*
 * sql_tok.c - FTS5's tokenizers, the host's own included, as token streams. Without FTS5, the one
 * of sql_own.c.
 *
 * FTS5 hands out its API through `SELECT fts5(?1)` with a bound pointer. A tokenizer belongs to the
 * connection; what it gives for a text can differ between SQLite versions and between tokenizers
 * that happen to share a name. So each gets a fingerprint, a hash of what it makes of a fixed text
 * in several scripts; the store keeps the one it was written with, and rows and queries are refused
 * where it differs.
 *
 * OWNERSHIP  the connection's tokenizers live in sql_db until its last table goes (SQLite may free
 *            FTS5 after that)
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdarg.h>
#include <string.h>

#include "sql_cjk.h"
#include "sql_memo.h"
#include "sql_own.h"
#include "vec.h"

struct sql_tokenizer {
    sql_tokenizer *next;
    char *spec;
    char fingerprint[17];
    fts5_tokenizer calls;
    Fts5Tokenizer *made;
    int pairs;      /* it knows no words of scripts without spaces: see sql_cjk.c */
    sql_memo *memo; /* of FTS5's own in the default specification, NULL of others */
};

static int fail(char **err, const char *fmt, ...) SQL_PRINTF(2, 3);
static int fail(char **err, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    *err = sqlite3_vmprintf(fmt, ap);
    va_end(ap);
    return *err ? SQLITE_ERROR : SQLITE_NOMEM;
}

/* ----------------------------------------------------------------------------------------- FTS5 */

int sql_have_fts5(sql_db *d)
{
    sqlite3_stmt *stmt;
    fts5_api *api = NULL;
    if (!d->fts5 && sqlite3_prepare_v2(d->db, "SELECT fts5(?1)", -1, &stmt, NULL) == SQLITE_OK) {
        sqlite3_bind_pointer(stmt, 1, &api, "fts5_api_ptr", NULL);
        sqlite3_step(stmt);
        sqlite3_finalize(stmt);
        d->fts5 = api;
    }
    return d->fts5 != NULL;
}

/* --------------------------------------------------------------------------------------- tokens */

typedef struct each {
    sql_token_fn *fn;
    void *ctx;
    int pairs, as; /* Chinese, Japanese and Korean as pairs; SQL_CJK_ */
} each;

// One token of at most VEC_TOKEN_MAX bytes, longer ones cut between characters.
static int on_token(void *ctx, int flags, const char *token, int n, int start, int end)
{
    const each *e = ctx;
    size_t len = n > 0 ? (size_t)n : 0;
    if (len > VEC_TOKEN_MAX) {
        for (len = VEC_TOKEN_MAX; len > 0 && ((unsigned char)token[len] & 0xC0) == 0x80;) {
            len--;
        }
    }
    if (e->pairs && sql_cjk_any(token, len)) {
        return sql_cjk_split(token, len, e->as, (flags & FTS5_TOKEN_COLOCATED) != 0, start, end,
                             e->fn, e->ctx);
    }
    return len ? e->fn(e->ctx, token, len, (flags & FTS5_TOKEN_COLOCATED) != 0, start, end)
               : SQLITE_OK;
}

int sql_tokens_room(sql_tokens *t, size_t more)
{
    if (more > t->room - t->n) {
        size_t room = t->room * 2 + more + 512;
        uint8_t *bytes = sqlite3_realloc64(t->bytes, room);
        if (!bytes) {
            return SQLITE_NOMEM;
        }
        t->bytes = bytes;
        t->room = room;
    }
    return SQLITE_OK;
}

static int into_stream(void *ctx, const char *token, size_t len, int colocated, int start, int end)
{
    sql_tokens *t = ctx;
    (void)start;
    (void)end;
    int rc = sql_tokens_room(t, t->breaks + len + 16);
    if (rc != SQLITE_OK) {
        return rc;
    }
    for (; t->breaks > 0; t->breaks--) {
        t->n += vec_token_put(t->bytes + t->n, "", 0, 1);
    }
    t->n += vec_token_put(t->bytes + t->n, token, (uint32_t)len, t->count > 0 && colocated);
    t->count++;
    return SQLITE_OK;
}

int sql_tokenize_each(sql_tokenizer *tok, int what, const char *text, size_t n, sql_token_fn *fn,
                      void *ctx)
{
    static const int flags[] = {FTS5_TOKENIZE_DOCUMENT, FTS5_TOKENIZE_QUERY,
                                FTS5_TOKENIZE_QUERY | FTS5_TOKENIZE_PREFIX, FTS5_TOKENIZE_QUERY,
                                FTS5_TOKENIZE_QUERY | FTS5_TOKENIZE_PREFIX};
    int as = what == SQL_TOKENS_ROW                                          ? SQL_CJK_ROW
             : what == SQL_TOKENS_PHRASE || what == SQL_TOKENS_PHRASE_PREFIX ? SQL_CJK_PHRASE
                                                                             : SQL_CJK_WORDS;
    each e = {fn, ctx, tok->pairs, as};
    if (n > INT32_MAX) {
        return SQLITE_TOOBIG;
    }
    return tok->calls.xTokenize(tok->made, &e, flags[what], text, (int)n, on_token);
}

static int row_text(void *tok, const char *s, size_t n, sql_tokens *out)
{
    return sql_tokenize_each(tok, SQL_TOKENS_ROW, s, n, into_stream, out);
}

int sql_tokenize_row(sql_tokenizer *tok, const st_value text[VEC_FIELDS], sql_tokens *out)
{
    int rc = SQLITE_OK;
    out->n = out->breaks = 0;
    for (int f = 0; f < VEC_FIELDS && rc == SQLITE_OK; f++) {
        out->count = 0;
        if (text[f].type == ST_TEXT) {
            const char *s = text[f].n ? text[f].p : "";
            rc = tok->memo ? sql_memo_text(tok->memo, s, text[f].n, row_text, tok, out)
                           : row_text(tok, s, text[f].n, out);
        }
        out->breaks++; // written when a token follows
    }
    return rc;
}

void sql_tokens_free(sql_tokens *t)
{
    sqlite3_free(t->bytes);
    memset(t, 0, sizeof *t);
}

/* ---------------------------------------------------------------------------------- fingerprint */

/* Cases on which tokenizers differ: case, diacritics composed and not, stems, digits,
 * underscores, apostrophes, scripts without case or spaces, characters that Unicode versions
 * class differently. */
static const char probe[] =
    "The runners were RUNNING easily; happily relational conditional hopping 3.14 v2.0 42nd "
    "snake_case "
    "C++ can't e-mail user@host \xc3\x89"
    "cole na\xc3\xafve e\xcc\x81t\xc3\xa9 stra\xc3\x9f"
    "e \xc3\x85ngstr\xc3\xb6m "
    "\xc5\x81\xc3\xb3"
    "d\xc5\xba \xce\x9a\xce\xb1\xce\xbb\xce\xb7\xce\xbc\xce\xad\xcf\x81\xce\xb1 "
    "\xd0\x9c\xd0\xbe\xd1\x81\xd0\xba\xd0\xb2\xd0\xb0 \xd9\x85\xd8\xb1\xd8\xad\xd8\xa8\xd8\xa7 "
    "\xe0\xa4\xa8\xe0\xa4\xae\xe0\xa4\xb8\xe0\xa5\x8d\xe0\xa4\xa4\xe0\xa5\x87 "
    "\xe6\x9d\xb1\xe4\xba\xac\xe9\x83\xbd \xed\x95\x9c\xea\xb5\xad\xec\x96\xb4 "
    "\xe3\x82\xab\xe3\x82\xbf\xe3\x82\xab\xe3\x83\x8a \xf0\x9f\x99\x82 \xe2\x82\xac"
    "5 \xc2\xbd \xe2\x85\xa7";

static int make_fingerprint(sql_tokenizer *tok)
{
    sql_tokens t = {0};
    uint64_t h = 0xcbf29ce484222325u; // FNV-1a
    const st_value text[VEC_FIELDS] = {{.type = ST_TEXT, .p = probe, .n = sizeof probe - 1}};
    int rc = sql_tokenize_row(tok, text, &t);
    for (size_t i = 0; i < t.n; i++) {
        h = (h ^ t.bytes[i]) * 0x100000001b3u;
    }
    sqlite3_snprintf(sizeof tok->fingerprint, tok->fingerprint, "%016llx", (unsigned long long)h);
    sql_tokens_free(&t);
    return rc;
}

/* ----------------------------------------------------------------------------------- tokenizers */

enum { WORDS_MAX = 32 };

/* Splits a specification in place: words apart by white space, in quotes where they hold some (a
 * doubled quote is one). */
static int split(char *s, const char **word, int *n)
{
    *n = 0;
    for (;;) {
        while (*s == ' ' || *s == '\t' || *s == '\n' || *s == '\r') {
            s++;
        }
        if (!*s) {
            return 1;
        }
        if (*n == WORDS_MAX) {
            return 0;
        }
        char quote = *s == '\'' || *s == '"' ? *s++ : 0, *to = s;
        word[(*n)++] = s;
        while (*s && (quote ? *s != quote || s[1] == quote : !strchr(" \t\n\r", *s))) {
            s += quote && *s == quote;
            *to++ = *s++;
        }
        if (quote && !*s) {
            return 0;
        }
        s += *s != 0;
        *to = 0;
    }
}

/* Is it one of FTS5's own that take a run of letters as a word? Others may know better. */
static int takes_runs(const char *const *word, int n)
{
    static const char *const names[] = {"unicode61", "ascii"};
    int at = sqlite3_stricmp(word[0], "porter") == 0;
    if (at == n) {
        return 1; // porter alone: over unicode61
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (sqlite3_stricmp(word[at], names[i]) == 0) {
            return 1;
        }
    }
    return 0;
}

static int make(sql_db *d, sql_tokenizer *tok, char **err)
{
    const char *word[WORDS_MAX];
    int n;
    void *user = NULL;
    char *copy = sqlite3_mprintf("%s", tok->spec);
    int rc = copy ? SQLITE_OK : SQLITE_NOMEM;
    if (rc == SQLITE_OK && (!split(copy, word, &n) || n == 0)) {
        rc = fail(err, "tokenize is '%.80s', which cannot be read as words", tok->spec);
    }
    if (rc == SQLITE_OK && !sql_have_fts5(d)) {
        tok->pairs = 1;
        rc = sql_own_find(word, n, &tok->calls, &tok->made)
                 ? SQLITE_OK
                 : fail(
                       err,
                       "tokenize is '%.80s', and this SQLite has no FTS5; without it there is '%s'",
                       tok->spec, ST_DEFAULT_TOKENIZER);
        sqlite3_free(copy);
        return rc;
    }
    if (rc == SQLITE_OK &&
        d->fts5->xFindTokenizer(d->fts5, word[0], &user, &tok->calls) != SQLITE_OK) {
        rc = fail(err, "tokenize is '%.80s', but this SQLite has no tokenizer '%.40s'", tok->spec,
                  word[0]);
    }
    if (rc == SQLITE_OK) {
        tok->pairs = takes_runs(word, n);
        rc = tok->calls.xCreate(user, word + 1, n - 1, &tok->made);
        if (rc != SQLITE_OK && rc != SQLITE_NOMEM) {
            rc = fail(err, "tokenize is '%.80s', which the tokenizer '%.40s' refuses", tok->spec,
                      word[0]);
        }
    }
    sqlite3_free(copy);
    return rc;
}

/* Words of FTS5's own tokenizer of the default specification stand each for itself; a fingerprint
 * tells it from another one of that name. */
static int remember_words(sql_tokenizer *tok)
{
    if (strcmp(tok->spec, ST_DEFAULT_TOKENIZER) == 0 &&
        strcmp(tok->fingerprint, SQL_MEMO_FINGERPRINT) == 0) {
        tok->memo = sql_memo_new();
        return tok->memo ? SQLITE_OK : SQLITE_NOMEM;
    }
    return SQLITE_OK;
}

static void drop(sql_tokenizer *tok)
{
    sql_memo_free(tok->memo);
    if (tok->made) {
        tok->calls.xDelete(tok->made);
    }
    sqlite3_free(tok->spec);
    sqlite3_free(tok);
}

int sql_tokenizer_get(sql_db *d, const char *spec, sql_tokenizer **out, char **err)
{
    *out = NULL;
    for (sql_tokenizer *t = d->tokenizers; t; t = t->next) {
        if (strcmp(t->spec, spec) == 0) {
            *out = t;
            return SQLITE_OK;
        }
    }
    sql_tokenizer *tok = sqlite3_malloc(sizeof *tok);
    if (!tok) {
        return SQLITE_NOMEM;
    }
    memset(tok, 0, sizeof *tok);
    tok->spec = sqlite3_mprintf("%s", spec);
    int rc = tok->spec ? make(d, tok, err) : SQLITE_NOMEM;
    if (rc == SQLITE_OK) {
        rc = make_fingerprint(tok);
    }
    if (rc == SQLITE_OK) {
        rc = remember_words(tok);
    }
    if (rc != SQLITE_OK) {
        drop(tok);
        return rc;
    }
    tok->next = d->tokenizers;
    d->tokenizers = tok;
    *out = tok;
    return SQLITE_OK;
}

const char *sql_tokenizer_fingerprint(const sql_tokenizer *tok)
{
    return tok->fingerprint;
}

void sql_tokenizers_drop(sql_db *d)
{
    while (d->tokenizers) {
        sql_tokenizer *t = d->tokenizers;
        d->tokenizers = t->next;
        drop(t);
    }
    d->fts5 = NULL;
}

int sql_table_tokenizer(sql_table *t, sql_tokenizer **out)
{
    const st_info *info = st_conn_info(t->store->conn);
    char *err = NULL;
    int rc = sql_tokenizer_get(t->db, info->tokenizer, out, &err);
    if (rc != SQLITE_OK) {
        sql_fail(t, rc, "%s", err ? err : sqlite3_errstr(rc));
        sqlite3_free(err);
        return rc;
    }
    if (strcmp((*out)->fingerprint, info->fingerprint) != 0) {
        return sql_fail(t, SQLITE_ERROR,
                        "tokenizer '%s' gives fingerprint %s here, the store was written with %s: "
                        "text queries and new text are "
                        "refused, all else works",
                        info->tokenizer, (*out)->fingerprint, info->fingerprint);
    }
    return SQLITE_OK;
}
