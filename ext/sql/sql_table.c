/*
 * sql_table.c - the virtual table: CREATE, connect, open, rename, DROP.
 *
 * CREATE opens or makes the store and notes in `<table>_state` what binds the two. Connecting reads
 * CREATE's text and that row and nothing else, so that a missing or damaged store never stops a
 * listing, a RENAME or a DROP, and a stranger's database opens nothing. The first cursor or write
 * opens the store. DROP never touches it.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <string.h>

#include "sql.h"

const char *const sql_hidden_names[SQL_HID_N] = {
    NULL,
    "distance",
    "rank",
    "score",
    "k",
    "fusion",
    "vector_weight",
    "text_weight",
    "rrf_k",
    "recall",
    "nprobe",
    "exact",
    "context",
    "recency",
    "importance_weight",
    "activation_weight",
    "graph_weight",
    "min_score",
    "dedup",
    "mmr",
    "expand",
    "as_of",
    "syntax",
};

/* -------------------------------------------------------------------------------------- columns */

int sql_table_columns(const sql_table *t)
{
    return ST_COL_USER + (int)t->ncolumn;
}

const char *sql_column_name(const sql_table *t, int col)
{
    switch (col) {
    case ST_COL_DISTANCE:
        return "distance";
    case ST_COL_RANK:
        return "rank";
    case ST_COL_SCORE:
        return "score";
    default:
        return col < ST_COL_USER ? st_column_name(col) : t->columns[col - ST_COL_USER].name;
    }
}

int sql_column_type(const sql_table *t, int col)
{
    if (col >= ST_COL_DISTANCE) {
        return ST_REAL;
    }
    return col < ST_COL_USER ? st_column_type(col) : t->columns[col - ST_COL_USER].type;
}

int sql_column_split(const sql_table *t, int declared, int *col)
{
    int n = sql_table_columns(t);
    *col = declared < 0 ? ST_COL_ID : declared < n ? declared : declared - n;
    return declared >= n;
}

static int declare(sql_table *t)
{
    sqlite3_str *s = sqlite3_str_new(t->db->db);
    sqlite3_str_appendall(s, "CREATE TABLE x(");
    for (int i = 0; i < sql_table_columns(t); i++) {
        sqlite3_str_appendf(s, "\"%w\" %s%s, ", sql_column_name(t, i),
                            sql_type_name(sql_column_type(t, i)),
                            i == ST_COL_ID ? " PRIMARY KEY" : "");
    }
    sqlite3_str_appendf(s, "\"%w\" HIDDEN", t->name);
    for (int i = SQL_HID_DISTANCE; i < SQL_HID_N; i++) {
        sqlite3_str_appendf(s, ", %s%s HIDDEN", sql_hidden_names[i],
                            i <= SQL_HID_SCORE ? " REAL" : "");
    }
    sqlite3_str_appendall(s, ")");
    char *sql = sqlite3_str_finish(s);
    int rc = sql ? sqlite3_declare_vtab(t->db->db, sql) : SQLITE_NOMEM;
    sqlite3_free(sql);
    return rc;
}

// The table's own name is a column too, so it may not be that of another.
static const char *name_clash(const sql_table *t, const char *name)
{
    for (int i = 0; i < sql_table_columns(t); i++) {
        if (sqlite3_stricmp(name, sql_column_name(t, i)) == 0) {
            return sql_column_name(t, i);
        }
    }
    for (int i = SQL_HID_DISTANCE; i < SQL_HID_N; i++) {
        if (sqlite3_stricmp(name, sql_hidden_names[i]) == 0) {
            return sql_hidden_names[i];
        }
    }
    return NULL;
}

/* ------------------------------------------------------------------------------ making, freeing */

void sql_table_free(sql_table *t)
{
    sql_db *d = t->db;
    for (sql_table **at = &d->tables; *at; at = &(*at)->next) {
        if (*at == t) {
            *at = t->next;
            break;
        }
    }
    sql_store_detach(t->store);
    sqlite3_free(t->base.zErrMsg);
    sqlite3_free(t->schema);
    sqlite3_free(t->name);
    sqlite3_free(t->columns);
    sqlite3_free(t->access);
    sqlite3_free(t->values);
    sqlite3_free(t->changed);
    sqlite3_free(t->vector);
    sqlite3_free(t);
    d->live--;
    sql_db_idle(d);
}

sql_table *sql_table_new(sql_db *d, const char *schema, const char *name)
{
    sql_table *t = sqlite3_malloc(sizeof *t);
    if (!t) {
        return NULL;
    }
    memset(t, 0, sizeof *t);
    t->db = d;
    t->schema = sqlite3_mprintf("%s", schema);
    t->name = sqlite3_mprintf("%s", name);
    t->next = d->tables;
    d->tables = t;
    d->live++;
    if (!t->schema || !t->name) {
        sql_table_free(t);
        return NULL;
    }
    return t;
}

int sql_table_fail_new(sql_table *t, const char *path, int rc, char *text, char **err)
{
    if (rc == SQLITE_NOMEM) {
        sqlite3_free(text);
        return rc;
    }
    sqlite3_free(*err);
    *err = sql_message(t->name, path, "%s", text ? text : sqlite3_errmsg(t->db->db));
    sqlite3_free(text);
    return rc;
}

static int fail_new(sql_table *t, int rc, char *text, char **err)
{
    return sql_table_fail_new(t, t->store ? t->store->path : NULL, rc, text, err);
}

/* -------------------------------------------------------------------------------------- opening */

static int same_columns(const sql_table *t, const st_info *info)
{
    if (t->ncolumn != info->ncolumn) {
        return 0;
    }
    for (size_t i = 0; i < t->ncolumn; i++) {
        if (strcmp(t->columns[i].name, info->columns[i].name) != 0 ||
            t->columns[i].type != info->columns[i].type) {
            return 0;
        }
    }
    return 1;
}

// Hangs an opened store where it belongs: with the entry that has it open already under another
// path, if there is one.
static void adopt(sql_table *t, st_conn *conn, int readonly)
{
    for (sql_store *s = t->db->stores; s; s = s->next) {
        if (s != t->store && s->conn == conn) {
            sql_store_detach(t->store);
            t->store = s;
            s->refs++;
            break;
        }
    }
    sql_store *s = t->store;
    s->readonly = s->conn ? s->readonly && readonly : readonly;
    s->conn = conn;
    s->opens++;
}

int sql_table_open(sql_table *t)
{
    sql_store *s = t->store;
    if (!t->has_state) {
        return sql_fail(t, SQLITE_CORRUPT_VTAB,
                        "the row of table \"%s_state\" that belongs to it is gone", t->name);
    }
    // a store that was opened read-only for another table is opened again for one that may write
    if (!s->conn || (s->readonly && !t->readonly)) {
        st_error err = {0};
        st_conn *conn;
        if (st_open(s->path, t->readonly ? ST_OPEN_READONLY : 0, NULL, &t->db->host, &conn, &err) !=
            ST_OK) {
            int rc = err.code == ST_NOTFOUND ? SQLITE_CANTOPEN : sql_code(err.code);
            return sql_fail(t, rc, "%s", err.text);
        }
        adopt(t, conn, t->readonly);
    }
    if (!t->checked) {
        const st_info *info = st_conn_info(t->store->conn);
        if (memcmp(info->uuid, t->store_uuid, 16) != 0) {
            return sql_fail(
                t, SQLITE_ERROR,
                "another store than the one this table was created on; DROP and CREATE it again");
        }
        if (!t->beside && !same_columns(t, info)) {
            return sql_fail(t, SQLITE_CORRUPT_VTAB,
                            "the user columns are not those that the state row lists");
        }
        t->checked = 1;
    }
    return SQLITE_OK;
}

/* --------------------------------------------------------------------------------------- CREATE */

// A store that is there needs no tokenizer of this connection, unless CREATE names one; the store
// says so if it needs it.
static int open_for_create(sql_table *t, const sql_args *a, char **err)
{
    sql_tokenizer *tok = NULL;
    char *why = NULL;
    int rc = sql_tokenizer_get(t->db, a->tokenizer ? a->tokenizer : ST_DEFAULT_TOKENIZER, &tok,
                               &why);
    if (rc != SQLITE_OK && (a->tokenizer || rc == SQLITE_NOMEM)) {
        return fail_new(t, rc, why, err);
    }
    st_create create = {a->dim,
                        a->options,
                        a->noption,
                        a->columns,
                        a->ncolumn,
                        a->tokenizer,
                        tok ? sql_tokenizer_fingerprint(tok) : NULL};
    int flags = ST_OPEN_CREATE | (a->readonly ? ST_OPEN_READONLY : 0);
    st_error e = {0};
    st_conn *conn;
    if (st_open(t->store->path, flags, &create, &t->db->host, &conn, &e) != ST_OK) {
        rc = e.code == ST_NOTFOUND ? SQLITE_CANTOPEN : sql_code(e.code);
        char *text = sqlite3_mprintf("%s%s%s", e.text, why ? "; " : "", why ? why : "");
        sqlite3_free(why);
        return fail_new(t, rc, text, err);
    }
    sqlite3_free(why);
    adopt(t, conn, a->readonly);
    return SQLITE_OK;
}

// The state row, once the store says who it is and which user columns it has.
static int bind_store(sql_table *t, const sql_args *a, char *path)
{
    const st_info *info = st_conn_info(t->store->conn);
    sql_state state;
    sqlite3_randomness(16, t->uuid);
    memcpy(t->store_uuid, info->uuid, 16);
    memcpy(state.uuid, t->uuid, 16);
    memcpy(state.store, info->uuid, 16);
    t->readonly = a->readonly;
    t->threads = a->threads ? a->threads : 1;
    if (info->ncolumn > 0) {
        t->columns = sqlite3_malloc64(info->ncolumn * sizeof *t->columns);
        if (!t->columns) {
            return SQLITE_NOMEM;
        }
        memcpy(t->columns, info->columns, info->ncolumn * sizeof *t->columns);
        t->ncolumn = info->ncolumn;
    }
    state.path = path;
    char options[40];
    snprintf(options, sizeof options, "%s", a->readonly ? "readonly" : "");
    if (a->threads > 1) {
        snprintf(options, sizeof options, "%sthreads=%d", a->readonly ? "readonly " : "",
                 a->threads);
    }
    state.options = options;
    state.columns = sql_columns_text(t->columns, t->ncolumn);
    int rc = state.columns ? sql_state_insert(t->db->db, t->schema, t->name, &state) : SQLITE_NOMEM;
    sqlite3_free(state.columns);
    t->has_state = t->checked = rc == SQLITE_OK;
    return rc;
}

static int fail_clash(sql_table *t, const char *path, const char *column, char **err)
{
    char *text = sqlite3_mprintf("a table cannot have the name of its column \"%s\"", column);
    return sql_table_fail_new(t, path, SQLITE_ERROR, text, err);
}

// The state table first: when it cannot be made, no file is.
static int create(sql_table *t, const sql_args *a, char **err)
{
    sqlite3 *db = t->db->db;
    char *path;
    int host_file;
    if (name_clash(t, t->name)) {
        return fail_clash(t, a->path, name_clash(t, t->name), err);
    }
    int rc = sql_path_resolve(db, t->schema, a->path, &path, &host_file);
    if (rc == SQLITE_OK) {
        t->store = sql_store_attach(t->db, path);
        rc = t->store ? sql_state_create(db, t->schema, t->name) : SQLITE_NOMEM;
        if (rc != SQLITE_OK) {
            fail_new(t, rc, NULL, err);
        }
    }
    if (rc == SQLITE_OK) {
        rc = open_for_create(t, a, err);
    }
    if (rc == SQLITE_OK) {
        sql_txn_created(t);
        rc = sql_txn_forget_lost(t->store);
        if (rc == SQLITE_OK) {
            rc = bind_store(t, a, host_file ? a->path : path);
        }
        if (rc != SQLITE_OK) {
            fail_new(t, rc, NULL, err);
        } else if (name_clash(t, t->name)) { // a user column that only the store knew of
            rc = fail_clash(t, path, name_clash(t, t->name), err);
        }
    }
    sqlite3_free(path);
    return rc;
}

static int finish(sql_table *t, int rc, sqlite3_vtab **out, char **err)
{
    if (rc == SQLITE_OK) {
        rc = declare(t);
        if (rc != SQLITE_OK) {
            fail_new(t, rc, NULL, err);
        }
    }
    if (rc == SQLITE_OK) {
        sqlite3_vtab_config(t->db->db, SQLITE_VTAB_CONSTRAINT_SUPPORT, 1);
        *out = &t->base;
    } else {
        sql_table_free(t);
    }
    return rc;
}

static int x_create(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out,
                    char **err)
{
    (void)db;
    sql_table *t = sql_table_new(aux, argv[1], argv[2]);
    if (!t) {
        return SQLITE_NOMEM;
    }
    sql_args args;
    char *why = NULL;
    int rc = sql_args_parse(argc, argv, &args, &why);
    rc = rc == SQLITE_OK ? create(t, &args, err) : sql_table_fail_new(t, args.path, rc, why, err);
    sql_args_free(&args);
    return finish(t, rc, out, err);
}

/* -------------------------------------------------------------------------------------- connect */

// From CREATE's text, and from the state row where there is one: it knows columns that CREATE left
// out.
static int connect(sql_table *t, sql_args *a, char **err)
{
    sql_state state;
    int rc = sql_state_read(t->db->db, t->schema, t->name, &state);
    if (rc != SQLITE_OK && rc != SQLITE_NOTFOUND) {
        return fail_new(t, rc, NULL, err);
    }
    char *why = NULL, *path = NULL;
    int host_file;
    t->readonly = a->readonly;
    t->threads = 1;
    if (rc == SQLITE_OK) {
        t->has_state = 1;
        const char *threads = strstr(state.options, "threads=");
        t->readonly = strncmp(state.options, "readonly", 8) == 0;
        if (threads && sql_read_threads(threads + 8, &t->threads, &why) != SQLITE_OK) {
            sqlite3_free(why); // somebody has been at the state row: one thread does
            why = NULL;
        }
        memcpy(t->uuid, state.uuid, 16);
        memcpy(t->store_uuid, state.store, 16);
        rc = sql_columns_parse(t->name, state.columns, &t->columns, &t->ncolumn, &why);
    } else {
        t->columns = a->columns;
        t->ncolumn = a->ncolumn;
        a->columns = NULL;
        rc = SQLITE_OK;
    }
    if (rc == SQLITE_OK) {
        rc = sql_path_resolve(t->db->db, t->schema, t->has_state ? state.path : a->path, &path,
                              &host_file);
    }
    if (rc == SQLITE_OK) {
        t->store = sql_store_attach(t->db, path);
        rc = t->store ? SQLITE_OK : SQLITE_NOMEM;
    }
    sqlite3_free(path);
    sql_state_free(&state);
    return rc == SQLITE_OK ? rc : fail_new(t, rc, why, err);
}

static int x_connect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out,
                     char **err)
{
    (void)db;
    sql_table *t = sql_table_new(aux, argv[1], argv[2]);
    if (!t) {
        return SQLITE_NOMEM;
    }
    sql_args args;
    char *why = NULL;
    int rc = sql_args_parse(argc, argv, &args, &why);
    rc = rc == SQLITE_OK ? connect(t, &args, err) : sql_table_fail_new(t, args.path, rc, why, err);
    sql_args_free(&args);
    return finish(t, rc, out, err);
}

int sql_table_disconnect(sqlite3_vtab *v)
{
    sql_table_free((sql_table *)v);
    return SQLITE_OK;
}

/* --------------------------------------------------------------------------------- DROP, RENAME */

// The state row may be what a transaction in doubt waits for, and it goes away now. *joins: this
// transaction has to be committed to settle it, empty as it is. A store that cannot be opened is no
// hindrance; one that another writer holds is, or one whose disk fails.
static int settle(sql_table *t, int *joins)
{
    st_error err = {0};
    *joins = 0;
    if (!t->has_state || sql_table_open(t) != SQLITE_OK || t->readonly) {
        sqlite3_free(t->base.zErrMsg);
        t->base.zErrMsg = NULL;
        return SQLITE_OK;
    }
    int rc = st_settle(t->store->conn, sql_busy_timeout(t->db->db), t->uuid, joins, &err);
    return rc == ST_BUSY || rc == ST_IO ? sql_fail_st(t, &err) : SQLITE_OK;
}

int sql_table_destroy(sqlite3_vtab *v)
{
    sql_table *t = (sql_table *)v;
    sql_store *s = t->store;
    // What it wrote may have been undone since; it holds the store's lock all the same.
    int open = s->conn && st_in_transaction(s->conn) && memcmp(s->row, t->uuid, 16) == 0;
    int writing = open && st_has_changes(s->conn);
    if (writing && s->unannounced) {
        return sql_fail(t, SQLITE_LOCKED,
                        "this transaction has made the table and written rows: COMMIT or ROLLBACK "
                        "before DROP TABLE");
    }
    int joins = 0, rc = writing ? SQLITE_OK : settle(t, &joins);
    if (rc == SQLITE_OK && joins) {
        rc = sql_txn_write(t);
    }
    if (rc == SQLITE_OK) {
        rc = sql_state_drop(t->db->db, t->schema, t->name);
    }
    if (rc == SQLITE_OK && (open || joins)) {
        rc = sql_drop_join(t);
    } else if (rc == SQLITE_OK) {
        sql_table_free(t);
    }
    return rc;
}

int sql_table_rename(sqlite3_vtab *v, const char *name)
{
    sql_table *t = (sql_table *)v;
    if (!t->beside && name_clash(t, name)) {
        return sql_fail(t, SQLITE_ERROR, "a table cannot have the name of its column \"%s\"", name);
    }
    char *copy = sqlite3_mprintf("%s", name);
    int rc = copy ? sql_state_rename(t->db->db, t->schema, t->name, name) : SQLITE_NOMEM;
    if (rc != SQLITE_OK) {
        sqlite3_free(copy);
        return rc == SQLITE_NOMEM ? rc : sql_fail(t, rc, "%s", sqlite3_errmsg(t->db->db));
    }
    sqlite3_free(t->name);
    t->name = copy;
    t->row_txid = 0;
    return SQLITE_OK;
}

int sql_table_shadow_name(const char *suffix)
{
    return sqlite3_stricmp(suffix, "state") == 0;
}

static int x_find_function(sqlite3_vtab *v, int argc, const char *name,
                           void (**fn)(sqlite3_context *, int, sqlite3_value **), void **arg)
{
    *arg = v; // a statement that calls it keeps the table
    if (argc == 2 && sqlite3_stricmp(name, "h5mem_has_tag") == 0) {
        *fn = sql_has_tag_fn;
        return SQL_OP_TAG; // so that it comes as a constraint, too
    }
    *fn = argc == 2 && sqlite3_stricmp(name, "match") == 0 ? sql_match : sql_aux_find(name);
    return *fn != NULL;
}

/* -------------------------------------------------------------------------------------- look-up */

static sql_table *registered(sql_db *d, const char *schema, const char *name)
{
    for (sql_table *t = d->tables; t; t = t->next) {
        if (!t->beside && sqlite3_stricmp(t->schema, schema) == 0 &&
            sqlite3_stricmp(t->name, name) == 0) {
            return t;
        }
    }
    return NULL;
}

// Preparing a statement on a table connects it. *there: the schema has a table of that name; *out:
// it is ours.
static int connect_named(sql_db *d, const char *schema, const char *name, int *there,
                         sql_table **out)
{
    sqlite3_stmt *stmt = NULL;
    char *sql = sqlite3_mprintf("SELECT 1 FROM \"%w\".\"%w\" LIMIT 0", schema, name);
    int rc = sql ? sqlite3_prepare_v2(d->db, sql, -1, &stmt, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    sqlite3_finalize(stmt);
    *there = rc == SQLITE_OK;
    *out = *there ? registered(d, schema, name) : NULL;
    return rc == SQLITE_ERROR ? SQLITE_OK : rc; // no such table, or one that cannot be connected
}

// In SQLite's order: temp (its number 1), main (0), then the attached ones. A table of that name
// hides what comes after.
static int find_anywhere(sql_db *d, const char *name, sql_table **out)
{
    const char *schema;
    int rc = SQLITE_OK, there = 0;
    for (int i = 0; rc == SQLITE_OK && !there; i++) {
        schema = sqlite3_db_name(d->db, i < 2 ? 1 - i : i);
        if (!schema) {
            break;
        }
        rc = connect_named(d, schema, name, &there, out);
    }
    return rc;
}

int sql_table_find(sql_db *d, const char *name, sql_table **out, char **err)
{
    const char *dot = strchr(name, '.');
    *out = NULL;
    int there, rc = find_anywhere(d, name, out);
    if (rc == SQLITE_OK && !*out && dot) {
        char *schema = sqlite3_mprintf("%.*s", (int)(dot - name), name);
        rc = schema ? connect_named(d, schema, dot + 1, &there, out) : SQLITE_NOMEM;
        sqlite3_free(schema);
    }
    if (rc == SQLITE_OK && !*out) {
        *err = sql_message(NULL, NULL, "no h5mem table named '%.100s'", name);
        rc = *err ? SQLITE_ERROR : SQLITE_NOMEM;
    }
    return rc;
}

const sql_module sql_table_module = {
    .base =
        {
            .iVersion = 4,
            .xCreate = x_create,
            .xConnect = x_connect,
            .xBestIndex = sql_plan_best_index,
            .xDisconnect = sql_table_disconnect,
            .xDestroy = sql_table_destroy,
            .xOpen = sql_cursor_open,
            .xClose = sql_cursor_close,
            .xFilter = sql_cursor_filter,
            .xNext = sql_cursor_next,
            .xEof = sql_cursor_eof,
            .xColumn = sql_cursor_column,
            .xRowid = sql_cursor_rowid,
            .xUpdate = sql_update,
            .xBegin = sql_txn_begin,
            .xSync = sql_txn_sync,
            .xCommit = sql_txn_commit,
            .xRollback = sql_txn_rollback,
            .xFindFunction = x_find_function,
            .xRename = sql_table_rename,
            .xSavepoint = sql_txn_savepoint,
            .xRelease = sql_txn_release,
            .xRollbackTo = sql_txn_rollback_to,
            .xShadowName = sql_table_shadow_name,
        },
#if SQLITE_VERSION_NUMBER < 3044000
    .xIntegrity = sql_integrity,
#else
    .base.xIntegrity = sql_integrity,
#endif
};
