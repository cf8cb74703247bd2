/*
 * sql_forget.c - h5mem_forget(t, what, value), rows that are to leave no trace, and
 * h5mem_destroy(path), a whole store.
 *
 * What is forgotten is deleted in one nested statement of the caller's transaction: rows,
 * superseded ones too; evicted rows that could be restored; what events say of either, but for
 * their kind and time; the record of a session that is forgotten. Their bytes are in no file any
 * more once h5mem_compact has run: text, vector, codes and postings go with the rows that the new
 * file does not take over, and the log starts anew.
 *
 * 'match' takes the rows whose content has every word of the text, in any order; words in double
 * quotes must stand together. A text without a word is an error, not "all" and not "none": who says
 * "forget" should learn that nothing was.
 *
 * ERRORS   each names the table, the file and the value.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdlib.h>
#include <string.h>

#include "sql_doc.h"
#include "sql_json.h"

typedef struct numbers {
    int64_t *p; /* by sqlite3_malloc */
    size_t n, room;
} numbers;

typedef struct forget {
    sqlite3_value *value;
    int col;     /* ST_COL_ID, _SOURCE, _SESSION; -1: the words of content */
    sql_ask ask; /* those */
    sql_tokenizer *tok;
    numbers rows, evicted, events;
    size_t gone; /* rows and evicted rows */
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

static int all_words(sql_table *t, sqlite3_value *v, sql_tokenizer **out, sql_ask *a)
{
    char show[SQL_SHOW];
    sql_tokenizer *tok = NULL;
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
    *out = tok;
    return rc == SQLITE_OK ? sql_ask_finish(a) : rc;
}

/* ----------------------------------------------------------------------------------------- rows */

static int keep(numbers *l, int64_t x)
{
    if (l->n == l->room) {
        size_t room = l->room * 2 + 64;
        int64_t *more = sqlite3_realloc64(l->p, room * sizeof *more);
        if (!more) {
            return SQLITE_NOMEM;
        }
        l->p = more;
        l->room = room;
    }
    l->p[l->n++] = x;
    return SQLITE_OK;
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static int has(const numbers *l, int64_t x)
{
    return l->n && bsearch(&x, l->p, l->n, sizeof *l->p, by_number) != NULL;
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
            rc = keep(&f->rows, id.i);
        }
    }
    st_cursor_close(c);
    return rc;
}

/* The ids of the rows to forget. */
static int find_rows(forget *f, sql_table *t, st_view *v)
{
    st_query q = {.k = -1, .every = 1};
    st_term term = {.col = f->col, .op = ST_EQ};
    st_query_defaults(t->store->conn, &q);
    q.context = q.min_score = q.dedup = q.mmr = 0; // nothing may hide a row
    q.has_min_score = 0;
    if (f->col < 0) {
        int rc = all_words(t, f->value, &f->tok, &f->ask);
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
    return collect(f, t, v, &q);
}

/* ------------------------------------------------------------------------- beside the rows */

/* 1: this text has all the words; -1: out of memory. */
static int has_words(forget *f, const char *text, size_t n)
{
    sql_doc d = {.text = text, .n = n};
    int all = -1;
    uint8_t *seen = sqlite3_malloc64(f->ask.ask.nphrase + 1);
    if (seen && sql_doc_find(&d, f->tok, &f->ask, 0, 1) == SQLITE_OK) {
        memset(seen, 0, f->ask.ask.nphrase + 1);
        for (size_t i = 0; i < d.ninstance; i++) {
            seen[d.instances[i].phrase] = 1;
        }
        all = 1;
        for (size_t i = 0; i < f->ask.ask.nphrase; i++) {
            all &= seen[i];
        }
    }
    sql_doc_free(&d);
    sqlite3_free(seen);
    return all;
}

/* Is a column's value, of an evicted row or in an event, one that is to be forgotten? As above. */
static int is_meant(forget *f, int col, const char *text, size_t n)
{
    if (f->col < 0) {
        return col == ST_COL_CONTENT ? has_words(f, text, n) : 0;
    }
    return col == f->col && n == (size_t)sqlite3_value_bytes(f->value) &&
           memcmp(text, sqlite3_value_text(f->value), n) == 0;
}

static int find_evicted(forget *f, sql_table *t, st_view *v)
{
    int col = f->col < 0 ? ST_COL_CONTENT : f->col, st, meant = 0;
    st_error err = {0};
    uint64_t row = 0;
    while ((st = st_evicted_next(v, row, &row, &err)) == ST_OK) {
        st_value id, x = {0};
        st = st_view_value(v, row, ST_COL_ID, &id, &err);
        st = st == ST_OK && col != ST_COL_ID ? st_view_value(v, row, col, &x, &err) : st;
        if (st != ST_OK) {
            break;
        }
        meant = col == ST_COL_ID    ? id.i == sqlite3_value_int64(f->value)
                : x.type == ST_TEXT ? is_meant(f, col, x.p, x.n)
                                    : 0;
        if (meant < 0 || (meant && keep(&f->evicted, id.i) != SQLITE_OK)) {
            return SQLITE_NOMEM;
        }
        row++;
    }
    return st == ST_NOTFOUND ? SQLITE_OK : sql_fail_st(t, &err);
}

/* Does an event's JSON tell of what is to be forgotten? */
static int tells(forget *f, const st_value *json)
{
    sql_json j;
    sql_json_value x;
    const char *name;
    size_t n;
    int found = 0;
    char *copy = sqlite3_malloc64(json->n + 1);
    if (!copy) {
        return -1;
    }
    memcpy(copy, json->p, json->n);
    sql_json_begin(&j, copy, json->n);
    while (!found && sql_json_member(&j, &name, &n, &x) == 1) {
        int col = n == 7 && memcmp(name, "session", 7) == 0   ? ST_COL_SESSION
                  : n == 7 && memcmp(name, "content", 7) == 0 ? ST_COL_CONTENT
                  : n == 6 && memcmp(name, "source", 6) == 0  ? ST_COL_SOURCE
                                                              : -1;
        found = col >= 0 && x.kind == SQL_JSON_TEXT ? is_meant(f, col, x.p, x.n) : 0;
    }
    sqlite3_free(copy);
    return found;
}

/* Events of kinds that never repeat what a row says. */
static int is_plain_kind(const st_value *kind)
{
    static const char *const plain[] = {"record", "rate", "injection"};
    for (int i = 0; i < 3 && kind->type == ST_TEXT; i++) {
        if (kind->n == strlen(plain[i]) && memcmp(kind->p, plain[i], kind->n) == 0) {
            return 1;
        }
    }
    return 0;
}

static int find_events(forget *f, sql_table *t, st_view *v)
{
    st_error err = {0};
    uint64_t row = 0;
    int st;
    for (; (st = st_side_next(v, ST_EVENTS, row, &row, &err)) == ST_OK; row++) {
        static const int cols[] = {ST_EVENT_SEQ, ST_EVENT_KIND, ST_EVENT_ID, ST_EVENT_JSON};
        st_value x[4];
        for (int i = 0; i < 4 && st == ST_OK; i++) {
            st = st_side_value(v, ST_EVENTS, row, cols[i], &x[i], &err);
        }
        if (st != ST_OK) {
            break;
        }
        if (x[3].type != ST_TEXT || is_plain_kind(&x[1])) {
            continue;
        }
        int meant = x[2].type == ST_INT &&
                    (has(&f->rows, x[2].i) || has(&f->evicted, x[2].i) ||
                     (f->col == ST_COL_ID && x[2].i == sqlite3_value_int64(f->value)));
        meant = meant || f->col == ST_COL_ID ? meant : tells(f, &x[3]);
        if (meant < 0 || (meant && keep(&f->events, x[0].i) != SQLITE_OK)) {
            return SQLITE_NOMEM;
        }
    }
    return st == ST_NOTFOUND ? SQLITE_OK : sql_fail_st(t, &err);
}

/* What is to go, before anything does. */
static int find_all(forget *f, sql_table *t)
{
    st_error err = {0};
    st_view *v;
    if (st_view_open(t->store->conn, &v, &err) != ST_OK) {
        return sql_fail_st(t, &err);
    }
    int rc = f->col == ST_COL_ID ? keep(&f->rows, sqlite3_value_int64(f->value))
                                 : find_rows(f, t, v);
    rc = rc == SQLITE_OK ? find_evicted(f, t, v) : rc;
    if (f->rows.n) {
        qsort(f->rows.p, f->rows.n, sizeof *f->rows.p, by_number);
    }
    if (f->evicted.n) {
        qsort(f->evicted.p, f->evicted.n, sizeof *f->evicted.p, by_number);
    }
    rc = rc == SQLITE_OK ? find_events(f, t, v) : rc;
    st_view_close(v);
    return rc;
}

/* -------------------------------------------------------------------------------- forgetting */

static int drop_ids(sql_table *t, const numbers *l,
                    int (*drop)(st_conn *c, int64_t id, st_error *err), size_t *gone)
{
    for (size_t i = 0; i < l->n; i++) {
        st_error err = {0};
        int st = drop(t->store->conn, l->p[i], &err);
        if (st != ST_OK && st != ST_NOTFOUND) {
            return sql_fail_st(t, &err);
        }
        *gone += st == ST_OK;
    }
    return SQLITE_OK;
}

/* The event stays, with its time, kind and id, and says nothing more. */
static int silence(sql_table *t, st_view *v, int64_t seq)
{
    st_value key = {.type = ST_INT, .i = seq}, x[5];
    st_error err = {0};
    uint64_t row;
    int st = st_side_find(v, ST_EVENTS, &key, &row, &err);
    for (int i = 0; i < 5 && st == ST_OK; i++) {
        st = st_side_value(v, ST_EVENTS, row, i, &x[i], &err);
    }
    if (st == ST_OK) {
        x[ST_EVENT_JSON] = (st_value){0};
        st = st_side_set(t->store->conn, ST_EVENTS, &key, x, &err);
    }
    return st == ST_OK ? SQLITE_OK : sql_fail_st(t, &err);
}

static int silence_events(forget *f, sql_table *t)
{
    st_error err = {0};
    st_view *v;
    if (f->events.n == 0) {
        return SQLITE_OK;
    }
    if (st_view_open(t->store->conn, &v, &err) != ST_OK) {
        return sql_fail_st(t, &err);
    }
    int rc = SQLITE_OK;
    for (size_t i = 0; i < f->events.n && rc == SQLITE_OK; i++) {
        rc = silence(t, v, f->events.p[i]);
    }
    st_view_close(v);
    return rc;
}

static int drop_session(forget *f, sql_table *t)
{
    st_value key = {.type = ST_TEXT,
                    .p = sqlite3_value_text(f->value),
                    .n = (size_t)sqlite3_value_bytes(f->value)};
    st_error err = {0};
    int st = f->col == ST_COL_SESSION ? st_side_delete(t->store->conn, ST_SESSIONS, &key, &err)
                                      : ST_NOTFOUND;
    return st == ST_OK || st == ST_NOTFOUND ? SQLITE_OK : sql_fail_st(t, &err);
}

static int forget_inside(void *ctx, sql_table *t)
{
    forget *f = ctx;
    int rc = sql_txn_write(t);
    rc = rc == SQLITE_OK ? find_all(f, t) : rc;
    rc = rc == SQLITE_OK ? silence_events(f, t) : rc;
    rc = rc == SQLITE_OK ? drop_ids(t, &f->evicted, st_evicted_drop, &f->gone) : rc;
    rc = rc == SQLITE_OK ? drop_ids(t, &f->rows, st_delete, &f->gone) : rc;
    return rc == SQLITE_OK ? drop_session(f, t) : rc;
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
            sqlite3_result_int64(ctx, (sqlite3_int64)f.gone);
        } else {
            sql_fail_fn_db(ctx, t->db->db, rc);
        }
    }
    sql_ask_free(&f.ask);
    sqlite3_free(f.rows.p);
    sqlite3_free(f.evicted.p);
    sqlite3_free(f.events.p);
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
