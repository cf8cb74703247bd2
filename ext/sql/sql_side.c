/*
 * sql_side.c - tables beside the rows as virtual tables:
 * CREATE VIRTUAL TABLE memory_sessions USING h5mem_sessions(memory).
 *
 * Such a companion is an sql_table like the rows' own, bound at CREATE to the store by a state row
 * of its own (path, uuid), so that it outlives the other table and takes part in transactions by
 * the same methods (sql_txn.c). A TEXT key makes it a table WITHOUT ROWID.
 *
 * SESSIONS  id, parent, start, "end", channel, summary. start is now where it is not given; times
 *           are Unix seconds, or ISO 8601 text on the way in. A parent need not be there, but no
 *           chain of parents may come back to where it began. A session that comes appends the
 *           event session_start, one that gets its end session_end.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "sql.h"
#include "sql_value.h"

enum { ROW_MARK = 1 << 30, PLAN_KEY = 1 };

typedef struct side_cursor {
    sqlite3_vtab_cursor base;
    st_view *view;
    uint64_t row;
    int eof, one; /* one: found by its key */
} side_cursor;

static int side_of(const sql_table *t)
{
    return t->beside - 1;
}

/* ------------------------------------------------------------------------------------- CREATE */

static int which(const char *module)
{
    char name[64];
    for (int side = 0; side < ST_SIDES; side++) {
        sqlite3_snprintf(sizeof name, name, "h5mem_%s", st_side_name(side));
        if (sqlite3_stricmp(module, name) == 0) {
            return side;
        }
    }
    return 0;
}

static int declare(sql_table *t)
{
    int side = side_of(t), text = st_side_column_type(side, 0) == ST_TEXT;
    sqlite3_str *s = sqlite3_str_new(t->db->db);
    sqlite3_str_appendall(s, "CREATE TABLE x(");
    for (int c = 0; c < st_side_columns(side); c++) {
        sqlite3_str_appendf(s, "%s\"%w\" %s%s", c ? ", " : "", st_side_column_name(side, c),
                            sql_type_name(st_side_column_type(side, c)), c ? "" : " PRIMARY KEY");
    }
    sqlite3_str_appendf(s, ")%s", text ? " WITHOUT ROWID" : "");
    char *sql = sqlite3_str_finish(s);
    int rc = sql ? sqlite3_declare_vtab(t->db->db, sql) : SQLITE_NOMEM;
    sqlite3_free(sql);
    return rc;
}

/* The name in the parentheses, without its quotes; by sqlite3_malloc. */
static char *main_name(const char *arg)
{
    size_t n = strlen(arg);
    char q = arg[0];
    char *out, *to;
    if (n < 2 || (q != '"' && q != '\'' && q != '`' && q != '[') ||
        arg[n - 1] != (q == '[' ? ']' : q)) {
        return sqlite3_mprintf("%s", arg);
    }
    out = to = sqlite3_malloc64(n);
    for (size_t i = 1; out && i < n - 1; i++) {
        *to++ = arg[i];
        i += q != '[' && arg[i] == q; // a quote that stands twice
    }
    if (out) {
        *to = 0;
    }
    return out;
}

/* The table of the rows: of the companion's own database first. */
static int find_main(sql_table *t, const char *name, sql_table **out, char **why)
{
    char *here = sqlite3_mprintf("%s.%s", t->schema, name), *none = NULL;
    int rc = here ? sql_table_find(t->db, here, out, &none) : SQLITE_NOMEM;
    sqlite3_free(here);
    sqlite3_free(none);
    return rc == SQLITE_OK || rc == SQLITE_NOMEM ? rc : sql_table_find(t->db, name, out, why);
}

static int bind_to(sql_table *t, const sql_table *rows)
{
    sql_state state, theirs = {0};
    int same = sqlite3_stricmp(t->schema, rows->schema) == 0, rc = SQLITE_OK;
    if (same) {
        rc = sql_state_read(t->db->db, rows->schema, rows->name, &theirs);
    }
    sqlite3_randomness(16, t->uuid);
    memcpy(t->store_uuid, rows->store_uuid, 16);
    memcpy(state.uuid, t->uuid, 16);
    memcpy(state.store, rows->store_uuid, 16);
    t->readonly = rows->readonly;
    state.path = same ? theirs.path : rows->store->path;
    state.columns = "";
    state.options = t->readonly ? "readonly" : "";
    if (rc == SQLITE_OK) {
        rc = sql_state_create(t->db->db, t->schema, t->name);
    }
    if (rc == SQLITE_OK) {
        rc = sql_state_insert(t->db->db, t->schema, t->name, &state);
    }
    sql_state_free(&theirs);
    t->has_state = rc == SQLITE_OK;
    return rc;
}

static int create(sql_table *t, const char *arg, char **err)
{
    sql_table *rows = NULL;
    char *why = NULL, *name = main_name(arg);
    int rc = name ? find_main(t, name, &rows, &why) : SQLITE_NOMEM;
    sqlite3_free(name);
    if (rc != SQLITE_OK) {
        if (!why) {
            return sql_table_fail_new(t, NULL, rc, NULL, err);
        }
        *err = why;
        return rc;
    }
    rc = sql_table_open(rows);
    if (rc != SQLITE_OK) {
        *err = rows->base.zErrMsg;
        rows->base.zErrMsg = NULL;
        return rc;
    }
    t->store = sql_store_attach(t->db, rows->store->path);
    if (t->store) {
        sql_txn_created(t);
    }
    rc = t->store ? bind_to(t, rows) : SQLITE_NOMEM;
    return rc == SQLITE_OK ? rc : sql_table_fail_new(t, rows->store->path, rc, NULL, err);
}

/* -------------------------------------------------------------------------------------- connect */

/* From the state row alone. Without it nothing is to be opened, and the first use says so. */
static int connect(sql_table *t, char **err)
{
    sql_state state;
    char *path = NULL;
    int host_file, rc = sql_state_read(t->db->db, t->schema, t->name, &state);
    if (rc == SQLITE_OK) {
        t->has_state = 1;
        t->readonly = strncmp(state.options, "readonly", 8) == 0;
        memcpy(t->uuid, state.uuid, 16);
        memcpy(t->store_uuid, state.store, 16);
        rc = sql_path_resolve(t->db->db, t->schema, state.path, &path, &host_file);
    } else if (rc == SQLITE_NOTFOUND) {
        rc = SQLITE_OK;
    }
    if (rc == SQLITE_OK) {
        t->store = sql_store_attach(t->db, path ? path : "");
        rc = t->store ? SQLITE_OK : SQLITE_NOMEM;
    }
    sqlite3_free(path);
    sql_state_free(&state);
    return rc == SQLITE_OK ? rc : sql_table_fail_new(t, NULL, rc, NULL, err);
}

static int new_table(sqlite3 *db, void *aux, int argc, const char *const *argv, int creates,
                     sqlite3_vtab **out, char **err)
{
    sql_table *t = sql_table_new(aux, argv[1], argv[2]);
    int rc;
    if (!t) {
        return SQLITE_NOMEM;
    }
    t->beside = 1 + which(argv[0]);
    t->threads = 1;
    if (argc != 4) {
        rc = sql_table_fail_new(t, NULL, SQLITE_ERROR,
                                sqlite3_mprintf("%s takes the name of one h5mem table", argv[0]),
                                err);
    } else {
        rc = creates ? create(t, argv[3], err) : connect(t, err);
    }
    if (rc == SQLITE_OK) {
        rc = declare(t);
    }
    if (rc != SQLITE_OK) {
        sql_table_free(t);
        return rc;
    }
    sqlite3_vtab_config(db, SQLITE_VTAB_CONSTRAINT_SUPPORT, 1);
    *out = &t->base;
    return SQLITE_OK;
}

static int x_create(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out,
                    char **err)
{
    return new_table(db, aux, argc, argv, 1, out, err);
}

static int x_connect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out,
                     char **err)
{
    return new_table(db, aux, argc, argv, 0, out, err);
}

/* -------------------------------------------------------------------------------------- reading */

static int x_best_index(sqlite3_vtab *v, sqlite3_index_info *info)
{
    (void)v;
    info->estimatedCost = 1000;
    info->estimatedRows = 1000;
    for (int i = 0; i < info->nConstraint; i++) {
        if (info->aConstraint[i].usable && info->aConstraint[i].iColumn == 0 &&
            info->aConstraint[i].op == SQLITE_INDEX_CONSTRAINT_EQ &&
            strcmp(sqlite3_vtab_collation(info, i), "BINARY") == 0) {
            info->aConstraintUsage[i].argvIndex = 1;
            info->idxNum = PLAN_KEY;
            info->idxFlags = SQLITE_INDEX_SCAN_UNIQUE;
            info->estimatedCost = 1;
            info->estimatedRows = 1;
            break;
        }
    }
    return SQLITE_OK;
}

static int x_open(sqlite3_vtab *v, sqlite3_vtab_cursor **out)
{
    (void)v;
    side_cursor *c = sqlite3_malloc(sizeof *c);
    if (!c) {
        return SQLITE_NOMEM;
    }
    memset(c, 0, sizeof *c);
    *out = &c->base;
    return SQLITE_OK;
}

static int x_close(sqlite3_vtab_cursor *base)
{
    side_cursor *c = (side_cursor *)base;
    st_view_close(c->view);
    sqlite3_free(c);
    return SQLITE_OK;
}

/* On to the record at or behind from. */
static int seek(side_cursor *c, uint64_t from)
{
    sql_table *t = (sql_table *)c->base.pVtab;
    st_error err = {0};
    int st = st_side_next(c->view, side_of(t), from, &c->row, &err);
    c->eof = st == ST_NOTFOUND;
    return st == ST_OK || c->eof ? SQLITE_OK : sql_fail_st(t, &err);
}

static int x_filter(sqlite3_vtab_cursor *base, int idx_num, const char *idx_str, int argc,
                    sqlite3_value **argv)
{
    side_cursor *c = (side_cursor *)base;
    sql_table *t = (sql_table *)base->pVtab;
    st_error err = {0};
    st_value key = {0};
    int rc = sql_table_open(t), st;
    (void)idx_str;
    st_view_close(c->view);
    c->view = NULL;
    if (rc != SQLITE_OK) {
        return rc;
    }
    if (st_view_open(t->store->conn, &c->view, &err) != ST_OK) {
        return sql_fail_st(t, &err);
    }
    // What is no text is left to SQLite's own comparison, which may make it one.
    c->one = idx_num == PLAN_KEY && argc == 1 && sqlite3_value_type(argv[0]) == SQLITE_TEXT;
    if (!c->one) {
        return seek(c, 0);
    }
    key.type = ST_TEXT;
    key.p = sqlite3_value_text(argv[0]);
    key.n = (size_t)sqlite3_value_bytes(argv[0]);
    if (!key.p) {
        return SQLITE_NOMEM;
    }
    st = st_side_find(c->view, side_of(t), &key, &c->row, &err);
    c->eof = st == ST_NOTFOUND;
    return st == ST_OK || c->eof ? SQLITE_OK : sql_fail_st(t, &err);
}

static int x_next(sqlite3_vtab_cursor *base)
{
    side_cursor *c = (side_cursor *)base;
    c->eof |= c->one;
    return c->eof ? SQLITE_OK : seek(c, c->row + 1);
}

static int x_eof(sqlite3_vtab_cursor *c)
{
    return ((side_cursor *)c)->eof;
}

static int x_column(sqlite3_vtab_cursor *base, sqlite3_context *ctx, int i)
{
    side_cursor *c = (side_cursor *)base;
    sql_table *t = (sql_table *)base->pVtab;
    st_error err = {0};
    st_value v;
    if (st_side_value(c->view, side_of(t), c->row, i, &v, &err) != ST_OK) {
        return sql_fail_st(t, &err);
    }
    sql_side_result(ctx, &v);
    return SQLITE_OK;
}

void sql_side_result(sqlite3_context *ctx, const st_value *v)
{
    switch (v->type) {
    case ST_INT:
        sqlite3_result_int64(ctx, v->i);
        break;
    case ST_REAL:
        sqlite3_result_double(ctx, v->r);
        break;
    case ST_TEXT:
        sqlite3_result_text64(ctx, v->p, v->n, SQLITE_TRANSIENT, SQLITE_UTF8);
        break;
    default:
        break; // NULL
    }
}

static int x_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *out)
{
    *out = (sqlite3_int64)((side_cursor *)base)->row + 1; // not asked for WITHOUT ROWID
    return SQLITE_OK;
}

/* -------------------------------------------------------------------------------------- writing */

static int refuse(sql_table *t, int col, sqlite3_value *v, const char *takes)
{
    char show[SQL_SHOW];
    return sql_fail(t, SQLITE_ERROR, "%s is %s; it takes %s", st_side_column_name(side_of(t), col),
                    sql_show(v, show), takes);
}

static int take_time(sql_table *t, int col, sqlite3_value *v, st_value *out)
{
    if (sqlite3_value_type(v) == SQLITE_TEXT) {
        const char *s = (const char *)sqlite3_value_text(v);
        if (!s) {
            return SQLITE_NOMEM;
        }
        if (sql_scan_time(s, (size_t)sqlite3_value_bytes(v), &out->r)) {
            return SQLITE_OK;
        }
    }
    int type = sqlite3_value_numeric_type(v);
    out->r = sqlite3_value_double(v);
    return type == SQLITE_INTEGER || type == SQLITE_FLOAT
               ? SQLITE_OK
               : refuse(t, col, v, "Unix seconds or ISO 8601 text such as '2026-11-01T18:30:00Z'");
}

/* The real columns are times. */
static int take(sql_table *t, int col, sqlite3_value *v, st_value *out)
{
    int type = sqlite3_value_type(v), want = st_side_column_type(side_of(t), col);
    memset(out, 0, sizeof *out);
    if (type == SQLITE_NULL) {
        return SQLITE_OK;
    }
    out->type = want;
    if (want == ST_REAL) {
        return take_time(t, col, v, out);
    }
    if (type == SQLITE_BLOB) {
        return refuse(t, col, v, "text");
    }
    out->p = sqlite3_value_text(v);
    out->n = (size_t)sqlite3_value_bytes(v);
    return out->p ? SQLITE_OK : SQLITE_NOMEM;
}

/* No chain of parents may lead from a session back to it. */
static int check_parents(sql_table *t, const st_value *v)
{
    st_error err = {0};
    st_view *view;
    st_value at = v[ST_SESSION_PARENT];
    const st_value *id = &v[ST_SESSION_ID];
    uint64_t n = 0, row;
    int st, cycle = 0;
    if (at.type == ST_NULL) {
        return SQLITE_OK;
    }
    if (st_view_open(t->store->conn, &view, &err) != ST_OK) {
        return sql_fail_st(t, &err);
    }
    st = st_side_count(view, ST_SESSIONS, &n, &err);
    for (uint64_t step = 0; st == ST_OK && at.type == ST_TEXT && step <= n; step++) {
        cycle = at.n == id->n && memcmp(at.p, id->p, at.n) == 0;
        if (cycle) {
            break;
        }
        st = st_side_find(view, ST_SESSIONS, &at, &row, &err);
        st = st == ST_OK ? st_side_value(view, ST_SESSIONS, row, ST_SESSION_PARENT, &at, &err) : st;
    }
    st_view_close(view);
    if (cycle) {
        return sql_fail(t, SQLITE_CONSTRAINT,
                        "session '%.*s' cannot have the parent '%.*s', whose parents lead back to "
                        "it",
                        (int)(id->n < 100 ? id->n : 100), (const char *)id->p,
                        (int)(v[ST_SESSION_PARENT].n < 100 ? v[ST_SESSION_PARENT].n : 100),
                        (const char *)v[ST_SESSION_PARENT].p);
    }
    return st == ST_OK || st == ST_NOTFOUND ? SQLITE_OK : sql_fail_st(t, &err);
}

static int add_event(sql_table *t, double time, const char *kind, const st_value *v)
{
    static const int started[] = {ST_SESSION_PARENT, ST_SESSION_CHANNEL, -1};
    static const int ended[] = {ST_SESSION_START, ST_SESSION_SUMMARY, -1};
    const int *col = strcmp(kind, "session_start") == 0 ? started : ended;
    st_error err = {0};
    st_json json = {0};
    int st = st_json_add(&json, "session", &v[ST_SESSION_ID], &err);
    for (; st == ST_OK && *col >= 0; col++) {
        st = st_json_add(&json, st_side_column_name(ST_SESSIONS, *col), &v[*col], &err);
    }
    st = st == ST_OK ? st_json_event(t->store->conn, time, kind, NULL, &json, &err) : st;
    st_json_free(&json);
    return st == ST_OK ? SQLITE_OK : sql_fail_st(t, &err);
}

/* What was there: 1 with its end time, 0. */
static int old_end(sql_table *t, const st_value *key, int *has_end)
{
    st_error err = {0};
    st_view *view;
    st_value v = {0};
    uint64_t row;
    int st = st_view_open(t->store->conn, &view, &err);
    if (st != ST_OK) {
        return sql_fail_st(t, &err);
    }
    st = st_side_find(view, ST_SESSIONS, key, &row, &err);
    st = st == ST_OK ? st_side_value(view, ST_SESSIONS, row, ST_SESSION_END, &v, &err) : st;
    st_view_close(view);
    *has_end = st == ST_OK && v.type != ST_NULL;
    return st == ST_OK || st == ST_NOTFOUND ? SQLITE_OK : sql_fail_st(t, &err);
}

static int fail_store(sql_table *t, const st_error *err)
{
    if (err->code == ST_EXISTS && sqlite3_vtab_on_conflict(t->db->db) == SQLITE_IGNORE) {
        return SQLITE_CONSTRAINT; // SQLite skips the row
    }
    return sql_fail_st(t, err);
}

/* old: the key of the record that changes, NULL: a new one. */
static int write(sql_table *t, const st_value *old, const st_value *v)
{
    st_conn *conn = t->store->conn;
    st_error err = {0};
    int replace = sqlite3_vtab_on_conflict(t->db->db) == SQLITE_REPLACE;
    int side = side_of(t), ended = 0, rc = SQLITE_OK;
    const st_value *was = old ? old : &v[0];
    if (old || replace) {
        rc = old_end(t, was, &ended);
    }
    if (rc != SQLITE_OK) {
        return rc;
    }
    int st = old ? st_side_set(conn, side, old, v, &err) : st_side_put(conn, side, v, NULL, &err);
    if (st == ST_EXISTS && replace) {
        memset(&err, 0, sizeof err);
        if (old) {
            st = st_side_delete(conn, side, &v[0], &err);
            st = st == ST_OK ? st_side_set(conn, side, old, v, &err) : st;
        } else {
            st = st_side_set(conn, side, &v[0], v, &err);
        }
    }
    if (old && st == ST_NOTFOUND) {
        return SQLITE_OK; // an earlier step of this statement removed it
    }
    rc = st == ST_OK ? check_parents(t, v) : fail_store(t, &err);
    if (rc == SQLITE_OK && !old) {
        rc = add_event(t, v[ST_SESSION_START].r, "session_start", v);
    }
    if (rc == SQLITE_OK && v[ST_SESSION_END].type != ST_NULL && !ended) {
        rc = add_event(t, v[ST_SESSION_END].r, "session_end", v);
    }
    return rc;
}

/* All of a change or nothing. */
static int write_whole(sql_table *t, const st_value *old, const st_value *v)
{
    st_error err = {0};
    if (st_savepoint(t->store->conn, ROW_MARK, &err) != ST_OK) {
        return sql_fail_st(t, &err);
    }
    int rc = write(t, old, v);
    if (rc != SQLITE_OK) {
        st_rollback_to(t->store->conn, ROW_MARK);
    }
    st_release(t->store->conn, ROW_MARK);
    return rc;
}

static int x_update(sqlite3_vtab *base, int argc, sqlite3_value **argv, sqlite3_int64 *rowid)
{
    sql_table *t = (sql_table *)base;
    st_value v[ST_SIDE_COLS_MAX], old;
    int insert = argc > 1 && sqlite3_value_type(argv[0]) == SQLITE_NULL;
    int rc = sql_txn_write(t);
    if (insert) {
        *rowid = sqlite3_last_insert_rowid(t->db->db); // no row id of ours: the last one stays
    }
    if (rc == SQLITE_OK && !insert) {
        rc = take(t, 0, argv[0], &old);
    }
    if (rc == SQLITE_OK && argc == 1) {
        st_error err = {0};
        int st = st_side_delete(t->store->conn, side_of(t), &old, &err);
        return st == ST_OK || st == ST_NOTFOUND ? SQLITE_OK : sql_fail_st(t, &err);
    }
    for (int c = 0; c < st_side_columns(side_of(t)) && rc == SQLITE_OK; c++) {
        rc = take(t, c, argv[2 + c], &v[c]);
    }
    if (rc == SQLITE_OK && v[ST_SESSION_START].type == ST_NULL) {
        v[ST_SESSION_START].type = ST_REAL;
        v[ST_SESSION_START].r = sql_now();
    }
    return rc == SQLITE_OK ? write_whole(t, insert ? NULL : &old, v) : rc;
}

const sqlite3_module sql_side_module = {
    .iVersion = 3,
    .xCreate = x_create,
    .xConnect = x_connect,
    .xBestIndex = x_best_index,
    .xDisconnect = sql_table_disconnect,
    .xDestroy = sql_table_destroy,
    .xOpen = x_open,
    .xClose = x_close,
    .xFilter = x_filter,
    .xNext = x_next,
    .xEof = x_eof,
    .xColumn = x_column,
    .xRowid = x_rowid,
    .xUpdate = x_update,
    .xBegin = sql_txn_begin,
    .xSync = sql_txn_sync,
    .xCommit = sql_txn_commit,
    .xRollback = sql_txn_rollback,
    .xRename = sql_table_rename,
    .xSavepoint = sql_txn_savepoint,
    .xRelease = sql_txn_release,
    .xRollbackTo = sql_txn_rollback_to,
    .xShadowName = sql_table_shadow_name,
};
