/*
 * sql_cursor.c - a running query: xFilter reads the plan's arguments into a st_query, rows are made
 * on demand.
 *
 * A cursor keeps its view until the next xFilter has opened a new one, so that an inner loop of a
 * join stays on one snapshot. A setting that was given comes back from xColumn as it was, so that
 * SQLite's own check of a constraint past the sixteenth holds; others as the store's option.
 *
 * MATCH past the sixteenth constraint, and in an OR, is evaluated by SQLite as the function
 * match(query, column): ours says yes when the column's value carries a mark, which xColumn sets
 * where the table has answered that very MATCH.
 *
 * The table's own column stands for the row (sql_aux.c): when it is read the cursor draws a serial
 * number, and forgets it when it moves.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "sql_ask.h"
#include "sql_text.h"
#include "sql_value.h"

enum { MARK_EMBEDDING = 1, MARK_CONTENT = 2, MARK_TABLE = 4 };

#define DEDUP_ON 0.8 // what dedup = 1 stands for

struct sql_cursor {
    sqlite3_vtab_cursor base;
    st_view *view;
    st_cursor *rows; /* NULL: at most the one row found by its id */
    uint64_t row;
    int at_row;
    int marks;
    sqlite3_value *bound[SQL_HID_N]; /* settings and the text query, as given */
    int nbound;
    int has_text;
    int asks;         /* something has been put into ask */
    sql_ask ask;      /* the text part; read by rows as long as that is open */
    int own_patterns; /* the host has its own LIKE or GLOB; -1: not asked yet. While a statement
                       * runs it cannot make one */
    int track;        /* rows yet to come that count as accessed */
    uintptr_t serial; /* of the row it is on, once the table's own column was read; else 0 */
    sql_cursor *next; /* of the connection's */
    sql_dates dates;  /* that ask names, as long as rows is open; from here on nothing is zeroed */
    sql_when when;    /* likewise */
};

/* What xFilter puts together; freed by query_free. */
typedef struct query {
    st_query q;
    sql_terms terms;
    float *vector;
    int64_t limit, offset;
    sqlite3_value *text; /* the text query */
    unsigned fields;
    double context;                 /* where the query gives none */
    uint32_t labels[ST_LABELS_MAX]; /* not zeroed; the last */
} query;

static void query_free(query *w)
{
    sql_terms_free(&w->terms);
    sqlite3_free(w->vector);
}

static void drop_rows(sql_cursor *c)
{
    if (c->rows) {
        st_cursor_close(c->rows);
        c->rows = NULL;
    }
    for (int i = 0; i < SQL_HID_N && c->nbound; i++) {
        if (c->bound[i]) {
            sqlite3_value_free(c->bound[i]);
            c->bound[i] = NULL;
        }
    }
    c->nbound = 0;
    if (c->asks) {
        sql_ask_free(&c->ask);
        c->asks = 0;
    }
    c->at_row = c->marks = c->has_text = 0;
    c->serial = 0;
}

int sql_cursor_open(sqlite3_vtab *v, sqlite3_vtab_cursor **out)
{
    int rc = sql_table_open((sql_table *)v);
    if (rc != SQLITE_OK) {
        return rc;
    }
    sql_db *d = ((sql_table *)v)->db;
    sql_cursor *c = d->rested ? d->rested : sqlite3_malloc(sizeof *c);
    if (!c) {
        return SQLITE_NOMEM;
    }
    d->rested = NULL;
    st_zero(c, offsetof(sql_cursor, dates));
    c->own_patterns = -1;
    c->next = d->cursors;
    d->cursors = c;
    *out = &c->base;
    return SQLITE_OK;
}

int sql_cursor_close(sqlite3_vtab_cursor *base)
{
    sql_cursor *c = (sql_cursor *)base;
    sql_cursor **at = &((sql_table *)base->pVtab)->db->cursors;
    while (*at != c) {
        at = &(*at)->next;
    }
    *at = c->next;
    drop_rows(c);
    if (c->view) {
        st_view_close(c->view);
    }
    sql_db *d = ((sql_table *)base->pVtab)->db;
    if (d->rested) {
        sqlite3_free(c);
    } else {
        d->rested = c;
    }
    return SQLITE_OK;
}

/* ------------------------------------------------------------------------------------ arguments */

static int keep_bound(sql_cursor *c, int hid, sqlite3_value *v)
{
    c->bound[hid] = sqlite3_value_dup(v);
    c->nbound++;
    return c->bound[hid] ? SQLITE_OK : SQLITE_NOMEM;
}

static int read_arg(sql_table *t, sql_cursor *c, query *w, const sql_arg *a, sqlite3_value *v)
{
    int rc = SQLITE_OK;
    switch (a->kind) {
    case SQL_ARG_VECTOR:
        c->marks |= MARK_EMBEDDING;
        return sql_query_vector(t, v, &w->vector);
    case SQL_ARG_TEXT:
        c->marks |= a->col == SQL_HID_TABLE ? MARK_TABLE : MARK_CONTENT;
        w->q.has_text = 1;
        rc = a->col == SQL_HID_TABLE ? keep_bound(c, SQL_HID_TABLE, v) : SQLITE_OK;
        w->text = v;
        w->fields = a->col == SQL_HID_TABLE ? SQL_FIELDS_ALL : SQL_FIELD_CONTENT;
        return rc;
    case SQL_ARG_SETTING:
        rc = keep_bound(c, a->col, v);
        return rc == SQLITE_OK ? sql_setting_bind(t, a->col, v, &w->q) : rc;
    case SQL_ARG_LIMIT:
        w->limit = sqlite3_value_int64(v);
        return SQLITE_OK;
    case SQL_ARG_OFFSET:
        w->offset = sqlite3_value_int64(v);
        return SQLITE_OK;
    default:
        return sql_op_is_pattern(a->op)
                   ? sql_terms_add_pattern(t, &w->terms, a, v, &c->own_patterns)
                   : sql_terms_add(t, &w->terms, a, v);
    }
}

// Words that a turn may begin with, as names do; stop words say nothing of who spoke.
static void read_labels(const char *s, size_t n, query *w)
{
    w->q.labels = w->labels;
    for (size_t i = 0, from; i < n && w->q.nlabel < ST_LABELS_MAX; i++) {
        for (from = i; i < n && sql_is_letter(s[i]);) {
            i++;
        }
        uint32_t label = i > from && !sql_is_stop_word(s + from, i - from)
                             ? st_text_label(s + from, i - from)
                             : 0;
        if (label) {
            w->labels[w->q.nlabel++] = label;
        }
    }
}

// What the words of the query say beside what they mean.
static int read_question(sql_cursor *c, query *w, sqlite3_value *text)
{
    st_query *q = &w->q;
    const char *s = (const char *)sqlite3_value_text(text);
    if (!s) {
        return sqlite3_value_type(text) == SQLITE_NULL ? SQLITE_OK : SQLITE_NOMEM;
    }
    size_t n = (size_t)sqlite3_value_bytes(text);
    q->asks = st_text_asks(s, n);
    read_labels(s, n, w);
    sql_dates_read(s, n, &c->dates);
    if (c->dates.n) {
        q->dated = sql_dates_weight;
        q->dated_ctx = &c->dates;
        q->dated_most = sql_dates_most(&c->dates);
    }
    if (q->syntax == ST_SYNTAX_PLAIN && sql_when_read(s, n, &c->dates, &c->when)) {
        q->within = sql_when_within;
        q->within_ctx = &c->when;
    }
    return SQLITE_OK;
}

// What follows from the settings together.
static void settle(const sql_cursor *c, query *w)
{
    st_query *q = &w->q;
    if (!q->has_text) {
        w->context = 0; // the nearest vectors are what was asked for
    }
    if (!c->bound[SQL_HID_CONTEXT]) {
        q->context = w->context;
    }
    q->neighbours_too = q->context > w->context; // naming what is in force changes nothing
    q->has_min_score = q->min_score != 0;
    q->dedup = q->dedup >= 1 ? DEDUP_ON : q->dedup;
    q->now = q->recency > 0 ? sql_now() : 0;
}

static int read_query(sql_table *t, sql_cursor *c, query *w, const char *codes, int argc,
                      sqlite3_value **argv)
{
    sql_arg a;
    int rc = sql_terms_new((size_t)argc, &w->terms);
    for (int i = 0; i < argc && rc == SQLITE_OK && sql_plan_next_arg(&codes, &a); i++) {
        rc = read_arg(t, c, w, &a, argv[i]);
    }
    if (rc == SQLITE_OK && w->text) {
        c->asks = 1;
        int fts5 = w->q.syntax == ST_SYNTAX_FTS5;
        rc = sql_query_text(t, w->text, w->fields, fts5, w->q.expand, &c->ask);
    }
    if (rc != SQLITE_OK) {
        return rc;
    }
    w->q.terms = w->terms.term;
    w->q.nterm = w->terms.n;
    w->q.vector = w->vector;
    w->q.threads = t->threads;
    w->q.ask = w->text ? &c->ask.ask : NULL;
    w->q.ask_filters = c->ask.filters;
    if (w->limit >= 0 && w->offset >= 0 && w->limit <= INT32_MAX && w->offset <= INT32_MAX) {
        w->q.hint = (uint64_t)w->limit + (uint64_t)w->offset;
    }
    settle(c, w);
    return w->text ? read_question(c, w, w->text) : SQLITE_OK;
}

/* -------------------------------------------------------------------------------------- xFilter */

static int by_id(sql_table *t, sql_cursor *c, int64_t id)
{
    st_error err;
    st_error_none(&err);
    int rc = st_view_find(c->view, id, &c->row, &err);
    c->at_row = rc == ST_OK;
    return rc == ST_OK || rc == ST_NOTFOUND ? SQLITE_OK : sql_fail_st(t, &err);
}

static int search(sql_table *t, sql_cursor *c, query *w, int idx_num)
{
    st_error err;
    st_error_none(&err);
    w->q.order = idx_num >> SQL_PLAN_ORDER & 7;
    w->q.by = idx_num >> SQL_PLAN_BY;
    if (idx_num == SQL_PLAN_ID) {
        const st_term *id = &w->terms.term[0];
        if (w->terms.n > 0 && id->op == ST_EQ && id->value.type == ST_INT) {
            return by_id(t, c, id->value.i);
        }
        if (w->terms.n > 0 && id->op == ST_EQ && id->value.type == ST_REAL) {
            int64_t whole;
            return sql_whole(id->value.r, &whole) ? by_id(t, c, whole) : SQLITE_OK;
        }
        return SQLITE_OK; // NULL, or text that is no number: equal to no id
    }
    if (st_search(c->view, &w->q, &c->rows, &err) != ST_OK) {
        return sql_fail_st(t, &err);
    }
    return sql_cursor_next(&c->base);
}

int sql_cursor_filter(sqlite3_vtab_cursor *base, int idx_num, const char *idx_str, int argc,
                      sqlite3_value **argv)
{
    sql_cursor *c = (sql_cursor *)base;
    sql_table *t = (sql_table *)base->pVtab;
    st_view *view;
    st_error err;
    query w;
    st_error_none(&err);
    st_zero(&w, offsetof(query, labels));
    w.q.k = w.limit = -1;
    drop_rows(c);
    sql_db_begin(t->db);
    if (st_view_open(t->store->conn, &view, &err) != ST_OK) {
        return sql_fail_st(t, &err);
    }
    if (c->view) {
        st_view_close(c->view);
    }
    c->view = view;
    t->store->rows = st_view_count(view);
    if (idx_num & (SQL_PLAN_VECTOR | SQL_PLAN_TEXT)) {
        st_query_defaults(t->store->conn, &w.q);
        w.context = w.q.context;
    }
    c->track = 0;
    int rc = idx_num & (SQL_PLAN_VECTOR | SQL_PLAN_TEXT) ? sql_track_begin(t, &c->track)
                                                         : SQLITE_OK;
    rc = rc != SQLITE_OK ? rc : read_query(t, c, &w, sql_plan_args(idx_str), argc, argv);
    if (rc == SQLITE_OK) {
        rc = search(t, c, &w, idx_num);
        c->has_text = w.q.has_text;
    }
    query_free(&w);
    return rc;
}

static int track_row(sql_cursor *c)
{
    sqlite3_int64 id = 0;
    int rc = sql_cursor_rowid(&c->base, &id);
    c->track--;
    return rc == SQLITE_OK ? sql_track((sql_table *)c->base.pVtab, id) : rc;
}

int sql_cursor_next(sqlite3_vtab_cursor *base)
{
    sql_cursor *c = (sql_cursor *)base;
    st_error err;
    st_error_none(&err);
    c->at_row = 0;
    c->serial = 0;
    if (!c->rows) {
        return SQLITE_OK;
    }
    int rc = st_cursor_next(c->rows, &err);
    if (rc < 0) {
        return sql_fail_st((sql_table *)base->pVtab, &err);
    }
    if (rc > 0) {
        c->at_row = 1;
        c->row = st_cursor_row(c->rows);
        return c->track > 0 ? track_row(c) : SQLITE_OK;
    }
    return SQLITE_OK;
}

int sql_cursor_eof(sqlite3_vtab_cursor *base)
{
    return !((sql_cursor *)base)->at_row;
}

/* -------------------------------------------------------------------------------------- xColumn */

static void result_real(sqlite3_context *ctx, double x)
{
    if (!isnan(x)) {
        sqlite3_result_double(ctx, x);
    }
}

static void own_column(sql_cursor *c, sqlite3_context *ctx)
{
    sql_db *d = ((sql_table *)c->base.pVtab)->db;
    if (!c->serial) {
        d->serial += 1 + (d->serial == UINTPTR_MAX); // never 0
        c->serial = d->serial;
    }
    sql_aux_result(ctx, d, c->serial, c->bound[SQL_HID_TABLE]);
    if (c->marks & MARK_TABLE) {
        sqlite3_result_subtype(ctx, SQL_MATCHED);
    }
}

int sql_cursor_current(sql_db *d, uintptr_t serial, sql_current *out)
{
    const sql_cursor *c = d->cursors;
    while (c && !(serial && c->serial == serial && c->at_row)) {
        c = c->next;
    }
    if (c) {
        out->table = (sql_table *)c->base.pVtab;
        out->view = c->view;
        out->row = c->row;
        out->ask = c->has_text ? &c->ask : NULL;
        out->rows = c->rows;
        out->rank = c->rows ? st_cursor_rank(c->rows) : NAN;
    }
    return c != NULL;
}

static void hidden_column(sql_cursor *c, sqlite3_context *ctx, int hid)
{
    double (*const scores[])(const st_cursor *) = {st_cursor_distance, st_cursor_rank,
                                                   st_cursor_score};
    if (hid >= SQL_HID_DISTANCE && hid <= SQL_HID_SCORE) {
        if (c->rows) {
            result_real(ctx, scores[hid - SQL_HID_DISTANCE](c->rows));
        }
        return;
    }
    if (hid == SQL_HID_TABLE) {
        own_column(c, ctx);
    } else if (c->bound[hid]) {
        sqlite3_result_value(ctx, c->bound[hid]);
    } else if (hid == SQL_HID_CONTEXT && (c->marks & MARK_EMBEDDING) && !c->has_text) {
        sqlite3_result_double(ctx, 0);
    } else if (hid == SQL_HID_AS_OF && !(c->marks & MARK_EMBEDDING) && !c->has_text) {
        return; // a scan sees every row
    } else {
        sql_setting_result(ctx, (sql_table *)c->base.pVtab, hid);
    }
}

// The store keeps native order, SQL is little-endian.
static void result_embedding(sqlite3_context *ctx, const st_value *v)
{
    static const uint16_t one = 1;
    void *copy = NULL;
    if (*(const uint8_t *)&one == 1) {
        sqlite3_result_blob64(ctx, v->p, v->n, SQLITE_TRANSIENT);
    } else if ((copy = sqlite3_malloc64(v->n)) != NULL) {
        sql_floats_store(v->p, v->n / 4, copy);
        sqlite3_result_blob64(ctx, copy, v->n, sqlite3_free);
    } else {
        sqlite3_result_error_nomem(ctx);
    }
}

static int real_column(sql_cursor *c, sql_table *t, sqlite3_context *ctx, int col)
{
    st_value v;
    st_error err;
    st_error_none(&err);
    if (st_view_value(c->view, c->row, col, &v, &err) != ST_OK) {
        return sql_fail_st(t, &err);
    }
    switch (v.type) {
    case ST_INT:
        sqlite3_result_int64(ctx, v.i);
        break;
    case ST_REAL:
        sqlite3_result_double(ctx, v.r);
        break;
    case ST_TEXT:
        sqlite3_result_text64(ctx, v.p, v.n, SQLITE_TRANSIENT, SQLITE_UTF8);
        break;
    case ST_BLOB:
        if (col == ST_COL_EMBEDDING) {
            result_embedding(ctx, &v);
        } else {
            sqlite3_result_blob64(ctx, v.p, v.n, SQLITE_TRANSIENT);
        }
        break;
    default:
        break;
    }
    if ((col == ST_COL_EMBEDDING && (c->marks & MARK_EMBEDDING)) ||
        (col == ST_COL_CONTENT && (c->marks & MARK_CONTENT))) {
        sqlite3_result_subtype(ctx, SQL_MATCHED);
    }
    return SQLITE_OK;
}

int sql_cursor_column(sqlite3_vtab_cursor *base, sqlite3_context *ctx, int i)
{
    sql_table *t = (sql_table *)base->pVtab;
    int col;
    if (sqlite3_vtab_nochange(ctx)) {
        return SQLITE_OK; // an UPDATE that leaves this column alone
    }
    if (i == ST_COL_ID) {
        const sql_cursor *c = (sql_cursor *)base;
        sqlite3_result_int64(ctx, st_view_id(c->view, c->row));
        return SQLITE_OK;
    }
    if (sql_column_split(t, i, &col)) {
        hidden_column((sql_cursor *)base, ctx, col);
        return SQLITE_OK;
    }
    return real_column((sql_cursor *)base, t, ctx, col);
}

int sql_cursor_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *out)
{
    sql_cursor *c = (sql_cursor *)base;
    st_value v;
    st_error err;
    st_error_none(&err);
    if (st_view_value(c->view, c->row, ST_COL_ID, &v, &err) != ST_OK) {
        return sql_fail_st((sql_table *)base->pVtab, &err);
    }
    *out = v.i;
    return SQLITE_OK;
}

void sql_match(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    if (sqlite3_value_subtype(argv[1]) == SQL_MATCHED) {
        sqlite3_result_int(ctx, 1);
    } else if (sqlite3_value_type(argv[1]) != SQLITE_NULL || sql_aux_is_row(argv[1])) {
        const sql_table *t = sqlite3_user_data(ctx);
        sql_fail_fn(ctx, SQLITE_ERROR, t->name, t->store->path,
                    "MATCH must be a term of its own, joined by AND, in WHERE or in the ON of its "
                    "join; here SQLite could not hand "
                    "it to the table");
    }
}
