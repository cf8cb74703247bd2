/*
 * sql_drop.c - DROP TABLE in a transaction that has written rows, or that has to decide about some.
 *
 * SQLite forgets a table once xDestroy has returned: no xSync, xCommit or xRollback comes for it
 * any more. The rows that it wrote in the transaction, and the store's lock, would hang in the air.
 * So the table stays in memory until the transaction ends, and the eponymous table h5mem_dropped
 * takes its part: a DELETE from it, run within xDestroy, makes SQLite count it among the tables of
 * the transaction, and its methods call those of the tables that were dropped.
 *
 * The state row goes with the table, so the prepare frame says that a row that is gone is the "yes"
 * of this transaction (st_dropped). A ROLLBACK TO that undoes the DROP brings the row back; then
 * all is as if there had been none.
 *
 * COLUMNS  name, path: the tables that are dropped and whose transaction is open. Nobody can change
 *          a row; the DELETE of ours asks for none.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "sql.h"

typedef struct dropped_table {
    sqlite3_vtab base;
    sql_db *db;
} dropped_table;

typedef struct dropped_cursor {
    sqlite3_vtab_cursor base;
    const sql_table *at;
    sqlite3_int64 row;
} dropped_cursor;

/* ------------------------------------------------------------------------------- as a table */

static int x_connect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out,
                     char **err)
{
    (void)argc;
    (void)argv;
    (void)err;
    int rc = sqlite3_declare_vtab(db, "CREATE TABLE x(name TEXT, path TEXT)");
    if (rc != SQLITE_OK) {
        return rc;
    }
    dropped_table *t = sqlite3_malloc(sizeof *t);
    if (!t) {
        return SQLITE_NOMEM;
    }
    memset(t, 0, sizeof *t);
    t->db = aux;
    t->db->live++;
    sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS);
    *out = &t->base;
    return SQLITE_OK;
}

static int x_disconnect(sqlite3_vtab *v)
{
    sql_db *d = ((dropped_table *)v)->db;
    sqlite3_free(v);
    d->live--;
    sql_db_idle(d);
    return SQLITE_OK;
}

static int x_best_index(sqlite3_vtab *v, sqlite3_index_info *info)
{
    (void)v;
    info->estimatedCost = 1;
    info->estimatedRows = 1;
    return SQLITE_OK;
}

static int x_open(sqlite3_vtab *v, sqlite3_vtab_cursor **out)
{
    (void)v;
    dropped_cursor *c = sqlite3_malloc(sizeof *c);
    if (!c) {
        return SQLITE_NOMEM;
    }
    memset(c, 0, sizeof *c);
    *out = &c->base;
    return SQLITE_OK;
}

static int x_close(sqlite3_vtab_cursor *c)
{
    sqlite3_free(c);
    return SQLITE_OK;
}

static int x_filter(sqlite3_vtab_cursor *v, int idx_num, const char *idx_str, int argc,
                    sqlite3_value **argv)
{
    (void)idx_num;
    (void)idx_str;
    (void)argc;
    (void)argv;
    dropped_cursor *c = (dropped_cursor *)v;
    c->at = ((dropped_table *)v->pVtab)->db->dropped;
    c->row = 1;
    return SQLITE_OK;
}

static int x_next(sqlite3_vtab_cursor *v)
{
    dropped_cursor *c = (dropped_cursor *)v;
    c->at = c->at->next;
    c->row++;
    return SQLITE_OK;
}

static int x_eof(sqlite3_vtab_cursor *v)
{
    return !((dropped_cursor *)v)->at;
}

static int x_column(sqlite3_vtab_cursor *v, sqlite3_context *ctx, int i)
{
    const sql_table *t = ((dropped_cursor *)v)->at;
    sqlite3_result_text(ctx, i == 0 ? t->name : t->store->path, -1, SQLITE_TRANSIENT);
    return SQLITE_OK;
}

static int x_rowid(sqlite3_vtab_cursor *v, sqlite3_int64 *out)
{
    *out = ((dropped_cursor *)v)->row;
    return SQLITE_OK;
}

static int x_update(sqlite3_vtab *v, int argc, sqlite3_value **argv, sqlite3_int64 *rowid)
{
    (void)argc;
    (void)argv;
    (void)rowid;
    sqlite3_free(v->zErrMsg);
    v->zErrMsg = sqlite3_mprintf("h5mem: h5mem_dropped cannot be written");
    return SQLITE_READONLY;
}

/* ------------------------------------------------------------------------- in the transaction */

static int x_begin(sqlite3_vtab *v)
{
    ((dropped_table *)v)->db->joined = 1;
    return SQLITE_OK;
}

static int x_sync(sqlite3_vtab *v)
{
    int rc = SQLITE_OK;
    for (sql_table *t = ((dropped_table *)v)->db->dropped; t && rc == SQLITE_OK; t = t->next) {
        rc = sql_txn_sync(&t->base);
        if (rc != SQLITE_OK) {
            sqlite3_free(v->zErrMsg);
            v->zErrMsg = t->base.zErrMsg;
            t->base.zErrMsg = NULL;
        }
    }
    return rc;
}

static int end(sqlite3_vtab *v, int (*how)(sqlite3_vtab *))
{
    sql_db *d = ((dropped_table *)v)->db;
    d->joined = 0;
    while (d->dropped) {
        sql_table *t = d->dropped;
        d->dropped = t->next;
        how(&t->base);
        sql_table_free(t);
    }
    return SQLITE_OK;
}

static int x_commit(sqlite3_vtab *v)
{
    return end(v, sql_txn_commit);
}

static int x_rollback(sqlite3_vtab *v)
{
    return end(v, sql_txn_rollback);
}

static int each(sqlite3_vtab *v, int n, int (*what)(sqlite3_vtab *, int))
{
    int rc = SQLITE_OK;
    for (sql_table *t = ((dropped_table *)v)->db->dropped; t && rc == SQLITE_OK; t = t->next) {
        rc = what(&t->base, n);
    }
    return rc;
}

static int x_savepoint(sqlite3_vtab *v, int n)
{
    return each(v, n, sql_txn_savepoint);
}

static int x_release(sqlite3_vtab *v, int n)
{
    return each(v, n, sql_txn_release);
}

static int x_rollback_to(sqlite3_vtab *v, int n)
{
    return each(v, n, sql_txn_rollback_to);
}

const sqlite3_module sql_dropped_module = {
    .iVersion = 2,
    .xConnect = x_connect,
    .xBestIndex = x_best_index,
    .xDisconnect = x_disconnect,
    .xOpen = x_open,
    .xClose = x_close,
    .xFilter = x_filter,
    .xNext = x_next,
    .xEof = x_eof,
    .xColumn = x_column,
    .xRowid = x_rowid,
    .xUpdate = x_update,
    .xBegin = x_begin,
    .xSync = x_sync,
    .xCommit = x_commit,
    .xRollback = x_rollback,
    .xSavepoint = x_savepoint,
    .xRelease = x_release,
    .xRollbackTo = x_rollback_to,
};

/* ------------------------------------------------------------------------------------ joining */

int sql_drop_join(sql_table *t)
{
    sql_db *d = t->db;
    int rc = sqlite3_exec(d->db, "DELETE FROM h5mem_dropped WHERE 0", NULL, NULL, NULL);
    if (rc == SQLITE_OK && !d->joined) {
        rc = SQLITE_LOCKED; // somebody has a table of that name
    }
    if (rc != SQLITE_OK) {
        return sql_fail(t, rc,
                        "this transaction has written rows: COMMIT or ROLLBACK before DROP TABLE");
    }
    for (sql_table **at = &d->tables; *at; at = &(*at)->next) {
        if (*at == t) {
            *at = t->next;
            break;
        }
    }
    t->next = d->dropped;
    d->dropped = t;
    t->store->dropped = 1;
    t->store->unannounced = 0; // it is heard of through h5mem_dropped now
    return SQLITE_OK;
}
