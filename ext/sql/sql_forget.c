/*
 * sql_forget.c - h5mem_forget(t, what, value), rows that are to leave no trace, and
 * h5mem_destroy(path), a whole store.
 *
 * What is forgotten is deleted in one nested statement of the caller's transaction, superseded rows
 * too. Their bytes are in no file any more once h5mem_compact has run: text, vector, codes and
 * postings go with the rows that the new file does not take over, and the log starts anew.
 *
 * 'match' takes the rows whose content has every word of the text, in any order; words in double
 * quotes must stand together. A text without a word is an error, not "all" and not "none": who says
 * "forget" should learn that nothing was.
 *
 * ERRORS   each names the table, the file and the value.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "sql_ask.h"

typedef struct forget {
    sqlite3_value *value;
    int col;      /* ST_COL_ID, _SOURCE, _SESSION; -1: the words of content */
    sql_ask ask;  /* those */
    int64_t *ids; /* by sqlite3_malloc */
    size_t n, room;
} forget;

/* ---------------------------------------------------------------------------------------- words */

typedef struct piece {
    sql_ask *a;
    size_t words;
} piece;

static int on_word(void *ctx, const char *s, size_t n, int colocated, int start, int end)
{
    piece *p = ctx;
    (void)start;
    (void)end;
    return sql_ask_word(p->a, s, n, 0, colocated && p->words++ > 0);
}

int sql_ask_must(sql_ask *a, sql_tokenizer *tok, const char *s, size_t n)
{
    piece p = {a, 0};
    size_t first = a->words.n, phrase = a->phrases.n;
    int rc = sql_tokenize_each(tok, SQL_TOKENS_PHRASE, s, n, on_word, &p);
    if (rc == SQLITE_OK && a->words.n > first) {
        rc = sql_ask_phrase(a, first, SQL_FIELD_CONTENT, 0, 1);
        rc = rc == SQLITE_OK ? sql_ask_op(a, VEC_OP_PHRASE, phrase) : rc;
        rc = rc == SQLITE_OK && phrase > 0 ? sql_ask_op(a, VEC_OP_AND, 0) : rc;
    }
    return rc;
}

static int is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static int all_words(sql_table *t, sqlite3_value *v, sql_ask *a)
{
    char show[SQL_SHOW];
    sql_tokenizer *tok;
    const char *s = (const char *)sqlite3_value_text(v);
    int rc = s ? sql_table_tokenizer(t, &tok) : SQLITE_NOMEM;
    size_t n = s ? (size_t)sqlite3_value_bytes(v) : 0, i = 0;
    while (i < n && rc == SQLITE_OK) {
        size_t from = i;
        const char *quote = s[i] == '"' && i + 1 < n ? memchr(s + i + 1, '"', n - i - 1) : NULL;
        if (quote) {
            i = (size_t)(quote - s) + 1;
        } else {
            for (i++; i < n && !is_space(s[i]) && s[i] != '"'; i++) {
            }
        }
        rc = sql_ask_must(a, tok, s + from, i - from);
    }
    if (rc == SQLITE_OK && a->words.n >= SQL_ASK_WORDS_MAX) {
        rc = sql_fail(t, SQLITE_TOOBIG, "what to forget has more than %d words", SQL_ASK_WORDS_MAX);
    }
    if (rc == SQLITE_OK && a->words.n == 0) {
        rc = sql_fail(t, SQLITE_ERROR, "what to forget, %s, has no word", sql_show(v, show));
    }
    return rc == SQLITE_OK ? sql_ask_finish(a) : rc;
}

/* ----------------------------------------------------------------------------------------- rows */

static int keep_id(forget *f, int64_t id)
{
    if (f->n == f->room) {
        size_t room = f->room * 2 + 64;
        int64_t *more = sqlite3_realloc64(f->ids, room * sizeof *more);
        if (!more) {
            return SQLITE_NOMEM;
        }
        f->ids = more;
        f->room = room;
    }
    f->ids[f->n++] = id;
    return SQLITE_OK;
}

static int collect(forget *f, sql_table *t, st_view *v, const st_query *q)
{
    st_error err = {0};
    st_cursor *c;
    int got, rc = SQLITE_OK;
    if (st_search(v, q, &c, &err) != ST_OK) {
        return sql_fail_st(t, &err);
    }
    while (rc == SQLITE_OK && (got = st_cursor_next(c, &err)) != 0) {
        st_value id;
        if (got < 0 || st_view_value(v, st_cursor_row(c), ST_COL_ID, &id, &err) != ST_OK) {
            rc = sql_fail_st(t, &err);
        } else {
            rc = keep_id(f, id.i);
        }
    }
    st_cursor_close(c);
    return rc;
}

/* The ids of the rows to forget. */
static int find_rows(forget *f, sql_table *t)
{
    st_conn *conn = t->store->conn;
    st_error err = {0};
    st_view *v;
    st_query q = {.k = -1, .every = 1};
    st_term term = {.col = f->col, .op = ST_EQ};
    st_query_defaults(conn, &q);
    q.context = q.min_score = q.dedup = q.mmr = 0; // nothing may hide a row
    q.has_min_score = 0;
    if (f->col < 0) {
        int rc = all_words(t, f->value, &f->ask);
        if (rc != SQLITE_OK) {
            return rc;
        }
        q.has_text = q.ask_filters = 1;
        q.ask = &f->ask.ask;
    } else {
        term.value.type = ST_TEXT;
        term.value.p = sqlite3_value_text(f->value);
        term.value.n = (size_t)sqlite3_value_bytes(f->value);
        if (!term.value.p) {
            return SQLITE_NOMEM;
        }
        q.terms = &term;
        q.nterm = 1;
        q.order = ST_ORDER_ID;
    }
    if (st_view_open(conn, &v, &err) != ST_OK) {
        return sql_fail_st(t, &err);
    }
    int rc = collect(f, t, v, &q);
    st_view_close(v);
    return rc;
}

static int forget_inside(void *ctx, sql_table *t)
{
    forget *f = ctx;
    st_error err = {0};
    size_t gone = 0;
    int rc = sql_txn_write(t);
    if (rc == SQLITE_OK) {
        rc = f->col == ST_COL_ID ? keep_id(f, sqlite3_value_int64(f->value)) : find_rows(f, t);
    }
    for (size_t i = 0; i < f->n && rc == SQLITE_OK; i++) {
        int st = st_delete(t->store->conn, f->ids[i], &err);
        gone += st == ST_OK;
        rc = st == ST_OK || st == ST_NOTFOUND ? SQLITE_OK : sql_fail_st(t, &err);
    }
    f->n = gone;
    return rc;
}

static int forget_what(const char *what, int *col)
{
    static const struct {
        const char *name;
        int col;
    } kinds[] = {
        {"id", ST_COL_ID}, {"source", ST_COL_SOURCE}, {"session", ST_COL_SESSION}, {"match", -1}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (what && sqlite3_stricmp(what, kinds[i].name) == 0) {
            *col = kinds[i].col;
            return 1;
        }
    }
    return 0;
}

void sql_forget_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    char show[SQL_SHOW];
    forget f = {.value = argv[2]};
    sql_table *t = sql_fn_table(ctx, argv[0]);
    int type = sqlite3_value_type(argv[2]);
    (void)argc;
    if (!t) {
        return;
    }
    const char *what = sqlite3_value_type(argv[1]) == SQLITE_TEXT
                           ? (const char *)sqlite3_value_text(argv[1])
                           : NULL;
    if (!forget_what(what, &f.col)) {
        sql_fail_fn(ctx, SQLITE_ERROR, t->name, t->store->path,
                    "what to forget by is %s; known are 'id', 'source', 'session', 'match'",
                    sql_show(argv[1], show));
    } else if (f.col == ST_COL_ID ? type != SQLITE_INTEGER
                                  : type == SQLITE_NULL || type == SQLITE_BLOB) {
        sql_fail_fn(ctx, SQLITE_ERROR, t->name, t->store->path,
                    "the %s to forget is %s; it takes %s", f.col < 0 ? "text" : what,
                    sql_show(argv[2], show), f.col == ST_COL_ID ? "an integer" : "text");
    } else {
        int rc = sql_inside(t, forget_inside, &f);
        if (rc == SQLITE_OK) {
            sqlite3_result_int64(ctx, (sqlite3_int64)f.n);
        } else {
            sql_fail_fn_db(ctx, t->db->db, rc);
        }
    }
    sql_ask_free(&f.ask);
    sqlite3_free(f.ids);
}

/* -------------------------------------------------------------------------------------- destroy */

// A relative path is relative to the working folder, as for h5mem_import.
void sql_destroy_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    char show[SQL_SHOW];
    st_error err = {0};
    const char *path = sqlite3_value_type(argv[0]) == SQLITE_TEXT
                           ? (const char *)sqlite3_value_text(argv[0])
                           : NULL;
    (void)argc;
    if (!path || !*path || strlen(path) != (size_t)sqlite3_value_bytes(argv[0])) {
        sql_fail_fn(ctx, SQLITE_ERROR, NULL, NULL, "the store's path is %s",
                    sql_show(argv[0], show));
    } else if (st_destroy(path, &err) != ST_OK) {
        sql_fail_fn(ctx, sql_code(err.code), NULL, path, "%s%s", err.text,
                    err.code == ST_BUSY ? ": close it, or DROP its table, first" : "");
    } else {
        sqlite3_result_int(ctx, 1);
    }
}
