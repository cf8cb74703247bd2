/*
 * sql_update.c - xUpdate: INSERT, UPDATE, DELETE, conflicts, and the command column.
 *
 * argv: [0] the old rowid or NULL, [1] the new one, [2 + i] the declared columns, hidden ones too.
 * id is the rowid: whichever of the two is given counts, both may be if they agree.
 *
 * A row that fails leaves the store as it was: each store call is atomic, and a REPLACE that takes
 * two of them stands between a mark of its own, numbered above any that SQLite uses.
 *
 * UPDATE hands over every column. One that the statement leaves alone is marked
 * (sqlite3_value_nochange), except in UPDATE ... FROM; there heavy columns are compared with what
 * the row holds, so that a change of metadata does not rewrite text and vector.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "sql_guard.h"
#include "sql_ask.h"

enum { ROW_MARK = 1 << 30 };

/* The row that one call writes. */
typedef struct work {
    sql_table *t;
    sqlite3_value **column; /* argv + 2 */
    int n;                  /* columns without the hidden ones */
    sql_tokens tokens;
    st_view *view; /* the old row, when it is needed */
    uint64_t row;
    int on_conflict;
    sql_guard guard;
} work;

static int scratch(sql_table *t)
{
    size_t n = (size_t)sql_table_columns(t), dim = (size_t)st_conn_info(t->store->conn)->dim;
    if (!t->values) {
        t->values = sqlite3_malloc64(n * sizeof *t->values);
    }
    if (!t->changed) {
        t->changed = sqlite3_malloc64(n);
    }
    if (!t->vector) {
        t->vector = sqlite3_malloc64(dim * sizeof *t->vector + 1);
    }
    return t->values && t->changed && t->vector ? SQLITE_OK : SQLITE_NOMEM;
}

static int fail_store(work *w, const st_error *err)
{
    if (err->code == ST_EXISTS && w->on_conflict == SQLITE_IGNORE) {
        return SQLITE_CONSTRAINT; // SQLite skips the row; a message would stay behind on the
                                  // connection
    }
    return sql_fail_st(w->t, err);
}

/* ------------------------------------------------------------------------------- hidden columns */

static int is_command(const work *w)
{
    sqlite3_value *v = w->column[w->n + SQL_HID_TABLE];
    return sqlite3_value_type(v) != SQLITE_NULL ||
           sqlite3_value_pointer(v, SQL_INSIDE_TYPE) != NULL;
}

// Nothing can be stored in a hidden column. UPDATE ... FROM marks no column and hands back what the
// query showed in these.
static int refuse_hidden(const work *w, int insert)
{
    int marked = insert;
    for (int i = 0; i < w->n && !marked; i++) {
        marked = sqlite3_value_nochange(w->column[i]);
    }
    for (int h = 0; h < SQL_HID_N && marked; h++) {
        sqlite3_value *v = w->column[w->n + h];
        if (!sqlite3_value_nochange(v) && sqlite3_value_type(v) != SQLITE_NULL) {
            return sql_fail(w->t, SQLITE_ERROR, "%s cannot be written",
                            h ? sql_hidden_names[h] : w->t->name);
        }
    }
    return SQLITE_OK;
}

/* --------------------------------------------------------------------------------------- INSERT */

// The id that argv and the id column give between them.
static int given_id(work *w, sqlite3_value *rowid, st_value *out)
{
    int rc = sql_row_value(w->t, ST_COL_ID, w->column[ST_COL_ID], out);
    if (rc == SQLITE_OK && sqlite3_value_type(rowid) != SQLITE_NULL) {
        sqlite3_int64 r = sqlite3_value_int64(rowid);
        if (out->type == ST_INT && out->i != r) {
            return sql_fail(w->t, SQLITE_ERROR,
                            "rowid is %lld and id is %lld; they are the same column", (long long)r,
                            (long long)out->i);
        }
        out->type = ST_INT;
        out->i = r;
    }
    return rc;
}

static int insert(work *w, sqlite3_value *rowid, sqlite3_int64 *out)
{
    sql_table *t = w->t;
    st_error err = {0};
    int64_t id = 0;
    int rc = given_id(w, rowid, &t->values[ST_COL_ID]);
    for (int i = ST_COL_ID + 1; i < w->n && rc == SQLITE_OK; i++) {
        rc = sql_row_value(t, i, w->column[i], &t->values[i]);
    }
    if (rc == SQLITE_OK) {
        rc = sql_row_tokens(t, t->values, &w->tokens);
    }
    if (rc == SQLITE_OK && w->guard.on) {
        rc = sql_guard_admit(t, &w->guard, t->values);
    }
    if (rc != SQLITE_OK) {
        return rc;
    }
    st_row row = {t->values, w->tokens.bytes, w->tokens.n};
    int st = st_put(t->store->conn, &row, &id, &err);
    if (st == ST_EXISTS && w->on_conflict == SQLITE_REPLACE) {
        memset(t->changed, 1, (size_t)w->n);
        t->changed[ST_COL_ID] = 0;
        id = t->values[ST_COL_ID].i;
        memset(&err, 0, sizeof err);
        st = st_update(t->store->conn, id, &row, t->changed, &err);
    }
    *out = id;
    rc = st == ST_OK ? SQLITE_OK : fail_store(w, &err);
    return rc == SQLITE_OK && w->guard.on
               ? sql_guard_note(t, &w->guard, id, &t->values[ST_COL_CONTENT], 0)
               : rc;
}

// The row, the alerts and the pass of consolidation that it may bring, all or none.
static int insert_and_age(work *w, sqlite3_value *rowid, sqlite3_int64 *out)
{
    st_conn *conn = w->t->store->conn;
    st_error err = {0};
    sql_watch watch;
    int rc = sql_track_write(w->t);
    rc = rc == SQLITE_OK ? sql_life_watch(w->t, &watch) : rc;
    rc = rc == SQLITE_OK ? sql_guard_look(w->t, &w->guard) : rc;
    if (rc != SQLITE_OK || (!watch.every && !w->guard.on)) {
        return rc == SQLITE_OK ? insert(w, rowid, out) : rc;
    }
    if (st_savepoint(conn, ROW_MARK, &err) != ST_OK) {
        return sql_fail_st(w->t, &err);
    }
    rc = insert(w, rowid, out);
    rc = rc == SQLITE_OK ? sql_life_inserted(w->t, &watch, *out) : rc;
    if (rc != SQLITE_OK) {
        st_rollback_to(conn, ROW_MARK);
    }
    st_release(conn, ROW_MARK);
    return rc;
}

/* --------------------------------------------------------------------------------------- UPDATE */

static int old_row(work *w, int64_t id)
{
    st_error err = {0};
    if (w->view) {
        return SQLITE_OK;
    }
    int st = st_view_open(w->t->store->conn, &w->view, &err);
    if (st == ST_OK) {
        st = st_view_find(w->view, id, &w->row, &err);
    }
    return st == ST_OK ? SQLITE_OK : st == ST_NOTFOUND ? SQLITE_NOTFOUND : sql_fail_st(w->t, &err);
}

static int old_value(work *w, int64_t id, int col, st_value *out)
{
    st_error err = {0};
    int rc = old_row(w, id);
    if (rc == SQLITE_OK && st_view_value(w->view, w->row, col, out, &err) != ST_OK) {
        rc = sql_fail_st(w->t, &err);
    }
    return rc;
}

static int same(const st_value *a, const st_value *b)
{
    if (a->type != b->type) {
        return 0;
    }
    switch (a->type) {
    case ST_NULL:
        return 1;
    case ST_INT:
        return a->i == b->i;
    case ST_REAL:
        return a->r == b->r;
    default:
        return a->n == b->n && (a->n == 0 || memcmp(a->p, b->p, a->n) == 0);
    }
}

// Which columns differ, and their new values. *heavy: a new row has to be written.
static int changes(work *w, int64_t id, int *any, int *heavy)
{
    sql_table *t = w->t;
    int rc = SQLITE_OK;
    *any = *heavy = 0;
    memset(t->changed, 0, (size_t)w->n);
    for (int i = ST_COL_ID + 1; i < w->n && rc == SQLITE_OK; i++) {
        if (sqlite3_value_nochange(w->column[i])) {
            continue;
        }
        rc = sql_row_value(t, i, w->column[i], &t->values[i]);
        t->changed[i] = 1;
        if (rc == SQLITE_OK && st_column_heavy(t->store->conn, i)) {
            st_value old;
            rc = old_value(w, id, i, &old);
            t->changed[i] = rc == SQLITE_OK && !same(&old, &t->values[i]);
            *heavy |= t->changed[i];
        }
        *any |= t->changed[i];
    }
    return rc;
}

// The new id: 1 when it differs, 0 when not, negative SQLite code on failure.
static int new_id(work *w, sqlite3_value *rowid, int64_t id, int *moved)
{
    sql_table *t = w->t;
    st_value *v = &t->values[ST_COL_ID];
    sqlite3_int64 r = sqlite3_value_int64(rowid);
    *moved = 0;
    v->type = ST_INT;
    v->i = id;
    if (!sqlite3_value_nochange(w->column[ST_COL_ID])) {
        int rc = sql_row_value(t, ST_COL_ID, w->column[ST_COL_ID], v);
        if (rc != SQLITE_OK) {
            return rc;
        }
        if (v->type == ST_NULL) {
            return sql_fail(t, SQLITE_ERROR, "id cannot be NULL");
        }
    }
    if (sqlite3_value_type(rowid) == SQLITE_INTEGER && r != id) {
        if (v->i != id && v->i != r) {
            return sql_fail(t, SQLITE_ERROR,
                            "rowid is %lld and id is %lld; they are the same column", (long long)r,
                            (long long)v->i);
        }
        v->i = r;
    }
    *moved = v->i != id;
    return SQLITE_OK;
}

// Two steps that stand or fall together: the row in the way goes, then the update.
static int replace_at(work *w, int64_t id, const st_row *row)
{
    sql_table *t = w->t;
    st_conn *conn = t->store->conn;
    st_error err = {0};
    int st = st_savepoint(conn, ROW_MARK, &err);
    if (st == ST_OK) {
        st = st_delete(conn, t->values[ST_COL_ID].i, &err);
        if (st == ST_OK) {
            st = st_update(conn, id, row, t->changed, &err);
        }
        if (st != ST_OK) {
            st_rollback_to(conn, ROW_MARK);
        }
        st_release(conn, ROW_MARK);
    }
    return st == ST_OK ? SQLITE_OK : fail_store(w, &err);
}

static int update(work *w, sqlite3_value *old_rowid, sqlite3_value *rowid)
{
    sql_table *t = w->t;
    int64_t id = sqlite3_value_int64(old_rowid);
    int any, heavy, moved = 0;
    int rc = changes(w, id, &any, &heavy);
    if (rc == SQLITE_OK) {
        rc = new_id(w, rowid, id, &moved);
    }
    heavy |= moved && st_column_heavy(t->store->conn, ST_COL_ID);
    t->changed[ST_COL_ID] = (uint8_t)moved;
    if (rc == SQLITE_OK && heavy) {
        st_value text[VEC_FIELDS];
        for (int f = 0; f < VEC_FIELDS && rc == SQLITE_OK; f++) {
            text[f] = t->values[sql_field_columns[f]];
            if (!t->changed[sql_field_columns[f]]) {
                rc = old_value(w, id, sql_field_columns[f], &text[f]);
            }
        }
        if (rc == SQLITE_OK) {
            rc = sql_field_tokens(w->t, text, &w->tokens);
        }
    }
    if (rc == SQLITE_NOTFOUND) {
        return SQLITE_OK; // an earlier step of this statement removed the row
    }
    if (rc != SQLITE_OK || (!any && !moved)) {
        return rc;
    }
    st_error err = {0};
    st_row row = {t->values, w->tokens.bytes, w->tokens.n};
    int st = st_update(t->store->conn, id, &row, t->changed, &err);
    if (st == ST_EXISTS && w->on_conflict == SQLITE_REPLACE) {
        return replace_at(w, id, &row);
    }
    return st == ST_OK || st == ST_NOTFOUND ? SQLITE_OK : fail_store(w, &err);
}

// The row, and what its new content is found to say, both or none.
static int update_and_note(work *w, sqlite3_value *old_rowid, sqlite3_value *rowid)
{
    sql_table *t = w->t;
    st_conn *conn = t->store->conn;
    st_error err = {0};
    st_value source;
    int rc = sqlite3_value_nochange(w->column[ST_COL_CONTENT]) ? SQLITE_OK
                                                               : sql_guard_look(t, &w->guard);
    if (rc != SQLITE_OK || !w->guard.policy.scan) {
        return rc == SQLITE_OK ? update(w, old_rowid, rowid) : rc;
    }
    if (st_savepoint(conn, ROW_MARK, &err) != ST_OK) {
        return sql_fail_st(t, &err);
    }
    rc = update(w, old_rowid, rowid);
    if (rc == SQLITE_OK && t->changed[ST_COL_CONTENT]) {
        int64_t id = t->values[ST_COL_ID].i;
        source = t->values[ST_COL_SOURCE];
        rc = t->changed[ST_COL_SOURCE]
                 ? SQLITE_OK
                 : old_value(w, sqlite3_value_int64(old_rowid), ST_COL_SOURCE, &source);
        w->guard.source = rc == SQLITE_OK ? sql_source_of(&source) : 0;
        rc = rc == SQLITE_OK ? sql_guard_note(t, &w->guard, id, &t->values[ST_COL_CONTENT], 1) : rc;
    }
    if (rc != SQLITE_OK) {
        st_rollback_to(conn, ROW_MARK);
    }
    st_release(conn, ROW_MARK);
    return rc;
}

static int remove_row(work *w, sqlite3_value *rowid)
{
    st_error err = {0};
    int st = st_delete(w->t->store->conn, sqlite3_value_int64(rowid), &err);
    return st == ST_OK || st == ST_NOTFOUND ? SQLITE_OK : fail_store(w, &err);
}

/* ------------------------------------------------------------------------------------- commands */

static int command(work *w)
{
    sql_table *t = w->t;
    sqlite3_value *v = w->column[w->n + SQL_HID_TABLE];
    const sql_call *call = sqlite3_value_pointer(v, SQL_INSIDE_TYPE);
    char show[SQL_SHOW];
    uint64_t n;
    for (int i = 0; i < w->n + SQL_HID_N; i++) {
        if (i != w->n + SQL_HID_TABLE && sqlite3_value_type(w->column[i]) != SQLITE_NULL) {
            return sql_fail(t, SQLITE_ERROR,
                            "a command stands alone, without values for other columns");
        }
    }
    if (call) {
        return call->fn(call->ctx, t);
    }
    const char *verb = sqlite3_value_type(v) == SQLITE_TEXT ? (const char *)sqlite3_value_text(v)
                                                            : "";
    if (sqlite3_stricmp(verb, "flush") == 0) {
        return sql_maintain(t, 1, st_flush, &n);
    }
    if (sqlite3_stricmp(verb, "optimize") == 0) {
        return sql_maintain(t, 1, st_optimize, &n);
    }
    if (sqlite3_stricmp(verb, "compact") == 0) {
        return sql_maintain(t, 1, st_compact, &n);
    }
    if (sqlite3_stricmp(verb, "verify") == 0) {
        return sql_verify_command(t);
    }
    if (sqlite3_stricmp(verb, "consolidate") == 0) {
        return sql_consolidate_command(t);
    }
    if (sqlite3_stricmp(verb, "tick") == 0) {
        return sql_tick_command(t);
    }
    return sql_fail(t, SQLITE_ERROR,
                    "unknown command %s; known are 'flush', 'optimize', 'compact', 'verify', "
                    "'consolidate', 'tick'",
                    sql_show(v, show));
}

int sql_maintain(sql_table *t, int inside, sql_maintain_fn fn, uint64_t *n)
{
    sqlite3 *db = t->db->db;
    st_error err = {0};
    int64_t query_only;
    int rc = sql_table_open(t);
    if (rc != SQLITE_OK) {
        return rc;
    }
    sql_query_int(db, "PRAGMA query_only", 0, &query_only);
    if (t->readonly || query_only || sqlite3_db_readonly(db, t->schema) == 1) {
        return sql_fail(t, SQLITE_READONLY, "%s is readonly",
                        t->readonly ? "the table" : "the connection");
    }
    st_set_threads(t->store->conn, t->threads);
    int st = fn(t->store->conn, sql_busy_timeout(db), n, &err);
    if (st == ST_DOUBT && (inside || sqlite3_get_autocommit(db))) {
        // This host's own last transaction: whoever holds the host's write lock may decide it.
        rc = sql_txn_decide(t, inside);
        if (rc != SQLITE_OK) {
            return rc;
        }
        memset(&err, 0, sizeof err);
        st = fn(t->store->conn, sql_busy_timeout(db), n, &err);
    }
    return st == ST_OK ? SQLITE_OK : sql_fail_st(t, &err);
}

int sql_update(sqlite3_vtab *v, int argc, sqlite3_value **argv, sqlite3_int64 *rowid)
{
    work w;
    memset(&w, 0, sizeof w);
    w.t = (sql_table *)v;
    w.column = argv + 2;
    w.n = sql_table_columns(w.t);
    w.on_conflict = sqlite3_vtab_on_conflict(w.t->db->db);
    int is_insert = argc > 1 && sqlite3_value_type(argv[0]) == SQLITE_NULL;
    if (is_insert && is_command(&w)) {
        *rowid = sqlite3_last_insert_rowid(w.t->db->db); // SQLite stores it back: unchanged
        return command(&w);
    }
    int rc = argc > 1 ? refuse_hidden(&w, is_insert) : SQLITE_OK;
    if (rc == SQLITE_OK) {
        rc = sql_txn_write(w.t);
    }
    if (rc == SQLITE_OK) {
        rc = scratch(w.t);
    }
    if (rc == SQLITE_OK) {
        rc = argc == 1   ? remove_row(&w, argv[0])
             : is_insert ? insert_and_age(&w, argv[1], rowid)
                         : update_and_note(&w, argv[0], argv[1]);
    }
    if (w.view) {
        st_view_close(w.view);
    }
    sql_tokens_free(&w.tokens);
    return rc;
}
