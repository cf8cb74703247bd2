/*
 * sql_txn.c - the store's part in SQLite's transactions.
 *
 * SQLite calls every virtual table of a transaction; several of ours can stand on one store, and
 * one table can have two instances (schema reload in mid-transaction). So the state is the
 * sql_store's, and each call does its work once and nothing the second time:
 *
 *   xBegin      notes that the table was announced, and whether the host may come to have nothing
 *               to commit (sql_spare.c); the store's transaction begins at the first change
 *   xSavepoint  before the first change only counted: all of those marks stand at the beginning
 *   xSync       phase one, then the transaction's id into the state row of the table that wrote
 *               first; it rides in SQLite's commit
 *   xCommit     phase two
 *   xRollback   all undone
 *
 * A table made by CREATE in this transaction is in it without xBegin, and SQLite does not tell it
 * of a ROLLBACK TO that undoes the CREATE. Its state row is then gone, which is how xSync and the
 * next CREATE see that its rows are to be forgotten.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>
#include <sys/stat.h>

#include "sql.h"

enum { MARKS_MAX = 1 << 20 };

/* ------------------------------------------------------------------------------------ beginning */

// The host file by device and inode; none for a database that has no file under that name. It is
// looked at once: what is open stays that file, whatever its name is given to.
static void identify(sql_table *t, st_identity *out)
{
    struct stat st;
    out->host = sqlite3_db_filename(t->db->db, t->schema);
    memcpy(out->uuid, t->uuid, 16);
    if (!t->host_known) {
        t->host_dev = t->host_ino = 0;
        if (out->host && *out->host && stat(out->host, &st) == 0) {
            t->host_dev = (uint64_t)st.st_dev;
            t->host_ino = (uint64_t)st.st_ino;
        }
        t->host_known = 1;
    }
    out->dev = t->host_dev;
    out->ino = t->host_ino;
}

// The timeout costs a statement to learn: only who has to wait asks for it.
static int begin(sql_table *t, st_error *err)
{
    st_identity who;
    identify(t, &who);
    int rc = st_begin(t->store->conn, 0, &who, err);
    if (rc == ST_BUSY) {
        int ms = sql_busy_timeout(t->db->db);
        if (ms > 0) {
            memset(err, 0, sizeof *err);
            rc = st_begin(t->store->conn, ms, &who, err);
        }
    }
    return rc;
}

int sql_txn_write(sql_table *t)
{
    int rc = sql_table_open(t);
    if (rc != SQLITE_OK) {
        return rc;
    }
    if (t->readonly) {
        return sql_fail(t, SQLITE_READONLY, "the table is readonly");
    }
    sql_store *s = t->store;
    s->prepared = 0;
    if (st_in_transaction(s->conn)) {
        return SQLITE_OK;
    }
    st_error err = {0};
    if (begin(t, &err) != ST_OK) {
        return sql_fail_st(t, &err);
    }
    memcpy(s->row, t->uuid, 16);
    s->unannounced = !t->announced;
    for (int i = 0; i < s->marks; i++) {
        if (st_savepoint(s->conn, i, &err) != ST_OK) {
            st_rollback(s->conn);
            return sql_fail_st(t, &err);
        }
    }
    return SQLITE_OK;
}

static void ended(sql_store *s)
{
    s->marks = s->prepared = s->unannounced = s->spared.possible = s->dropped = 0;
}

static sql_store *in_transaction(sqlite3_vtab *v)
{
    sql_store *s = ((sql_table *)v)->store;
    return s->conn && st_in_transaction(s->conn) ? s : NULL;
}

int sql_txn_begin(sqlite3_vtab *v)
{
    sql_table *t = (sql_table *)v;
    if (!in_transaction(v)) {
        t->store->marks = 0; // SQLite says next how many there are
    }
    t->announced = 1;
    sql_spare_begin(t);
    return SQLITE_OK;
}

// A table that was dropped in this transaction, or in one before, may have heard of savepoints and
// not of their end.
void sql_txn_created(sql_table *t)
{
    int heard = in_transaction(&t->base) != NULL;
    for (const sql_table *o = t->db->tables; o; o = o->next) {
        heard |= o->store == t->store && o->announced;
    }
    if (!heard) {
        t->store->marks = 0;
    }
}

int sql_txn_forget_lost(sql_store *s)
{
    int64_t txid;
    if (!s->conn || !st_in_transaction(s->conn) || !s->unannounced) {
        return SQLITE_OK;
    }
    int rc = sql_state_find(s->db->db, s->row, NULL, NULL, &txid);
    if (rc == SQLITE_NOTFOUND) {
        st_rollback(s->conn);
        ended(s);
        rc = SQLITE_OK;
    }
    return rc;
}

/* ----------------------------------------------------------------------------------- committing */

// The state row is usually that of a live table; after a rename that was rolled back it has to be
// looked for.
static int write_there(sql_table *t, const uint8_t owner[16], int64_t txid)
{
    sqlite3 *db = t->db->db;
    int rc = SQLITE_NOTFOUND;
    for (sql_table *o = t->db->tables; o && rc == SQLITE_NOTFOUND; o = o->next) {
        if (memcmp(o->uuid, owner, 16) == 0) {
            char *name = sqlite3_mprintf("%s_state", o->name);
            rc = name ? sql_state_write(db, o->schema, name, owner, &o->row_txid, txid)
                      : SQLITE_NOMEM;
            sqlite3_free(name);
        }
    }
    if (rc == SQLITE_NOTFOUND) {
        char *schema, *name;
        int64_t old, last = 0;
        rc = sql_state_find(db, owner, &schema, &name, &old);
        if (rc == SQLITE_OK) {
            rc = sql_state_write(db, schema, name, owner, &last, txid);
            sqlite3_free(schema);
            sqlite3_free(name);
        }
    }
    if (rc == SQLITE_NOTFOUND) {
        return sql_fail(t, SQLITE_CORRUPT_VTAB, "the state row of the transaction is gone");
    }
    return rc == SQLITE_OK
               ? rc
               : sql_fail(t, rc, "the state row cannot be written: %s", sqlite3_errmsg(db));
}

// query_only, switched on in mid-transaction, is not meant to keep what was written from being
// committed; a plain table's rows are.
static int write_row(sql_table *t, const uint8_t owner[16], int64_t txid)
{
    sqlite3 *db = t->db->db;
    int64_t query_only = 0;
    int rc = write_there(t, owner, txid);
    if ((rc & 0xff) == SQLITE_READONLY) {
        sql_query_int(db, "PRAGMA query_only", 0, &query_only);
    }
    if (query_only) {
        sqlite3_exec(db, "PRAGMA query_only = 0", NULL, NULL, NULL);
        rc = write_there(t, owner, txid);
        sqlite3_exec(db, "PRAGMA query_only = 1", NULL, NULL, NULL);
    }
    return rc;
}

int sql_txn_sync(sqlite3_vtab *v)
{
    sql_table *t = (sql_table *)v;
    sql_store *s = in_transaction(v);
    if (!s || s->prepared) {
        return SQLITE_OK;
    }
    int rc = sql_txn_forget_lost(s);
    if (rc != SQLITE_OK || !st_in_transaction(s->conn)) {
        return rc;
    }
    int64_t txid;
    uint8_t owner[16];
    st_error err = {0};
    if (s->dropped) {
        rc = sql_state_find(s->db->db, s->row, NULL, NULL, &txid);
        if (rc != SQLITE_OK && rc != SQLITE_NOTFOUND) {
            return sql_fail(t, rc, "the state row cannot be looked for: %s",
                            sqlite3_errmsg(s->db->db));
        }
        s->dropped = rc == SQLITE_NOTFOUND; // not so after a ROLLBACK TO
        st_dropped(s->conn, s->dropped);
    }
    if (st_prepare(s->conn, sql_spare(t), &txid, owner, &err) != ST_OK) {
        return sql_fail_st(t, &err);
    }
    rc = txid != 0 && !s->dropped ? write_row(t, owner, txid) : SQLITE_OK;
    s->prepared = rc == SQLITE_OK;
    return rc;
}

int sql_txn_commit(sqlite3_vtab *v)
{
    sql_store *s = in_transaction(v);
    ((sql_table *)v)->announced = 0;
    if (s) {
        st_commit(s->conn);
    }
    ended(((sql_table *)v)->store);
    return SQLITE_OK;
}

// A COMMIT can fail when the host's part of it is on the disk already (a lock that cannot be given
// back), and then SQLite rolls back the rest of it. Only a ROLLBACK statement, or the end of the
// connection, says that the transaction was still alive.
static int may_be_committed(sqlite3 *db)
{
    int running = 0;
    for (sqlite3_stmt *p = sqlite3_next_stmt(db, NULL); p; p = sqlite3_next_stmt(db, p)) {
        if (sqlite3_stmt_busy(p)) {
            const char *sql = sqlite3_sql(p);
            if (sql && sql_keyword(sql, "rollback")) {
                return 0;
            }
            running = 1;
        }
    }
    return running;
}

int sql_txn_rollback(sqlite3_vtab *v)
{
    sql_store *s = in_transaction(v);
    ((sql_table *)v)->announced = 0;
    if (s && s->prepared && may_be_committed(s->db->db)) {
        st_abandon(s->conn);
    } else if (s) {
        st_rollback(s->conn);
    }
    ended(((sql_table *)v)->store);
    return SQLITE_OK;
}

/* ------------------------------------------------------------------------------------- deciding */

// With the host's write lock held and the store's transaction begun: an empty transaction of both,
// which makes the host's "no" final.
static int commit_nothing(sql_table *t)
{
    sqlite3 *db = t->db->db;
    st_conn *conn = t->store->conn;
    int64_t txid;
    uint8_t owner[16];
    st_error err = {0};
    int rc = st_prepare(conn, 0, &txid, owner, &err) == ST_OK ? SQLITE_OK : sql_fail_st(t, &err);
    if (rc == SQLITE_OK && txid != 0) {
        rc = write_row(t, owner, txid);
    }
    if (rc == SQLITE_OK) {
        rc = sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
        if (rc != SQLITE_OK) {
            sql_fail(t, rc, "%s", sqlite3_errmsg(db));
        }
    }
    if (rc == SQLITE_OK) {
        st_commit(conn);
    } else {
        st_rollback(conn);
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    }
    return rc;
}

int sql_txn_decide(sql_table *t, int inside)
{
    sqlite3 *db = t->db->db;
    st_error err = {0};
    int rc = inside ? SQLITE_OK : sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    if (rc != SQLITE_OK) {
        return sql_fail(t, rc, "%s", sqlite3_errmsg(db));
    }
    if (begin(t, &err) != ST_OK) {
        rc = sql_fail_st(t, &err);
    } else if (!st_holds_doubt(t->store->conn)) {
        st_rollback(t->store->conn);
    } else if (!inside) {
        return commit_nothing(t);
    } else {
        st_rollback(t->store->conn);
        rc = sql_fail(t, SQLITE_BUSY,
                      "a transaction of a process that died stays in doubt until this database "
                      "commits something: write a row first, or call h5mem_flush as a function");
    }
    if (!inside) {
        sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    }
    return rc;
}

/* ----------------------------------------------------------------------------------- savepoints */

int sql_txn_savepoint(sqlite3_vtab *v, int n)
{
    sql_table *t = (sql_table *)v;
    sql_store *s = in_transaction(v);
    st_error err = {0};
    if (!s) {
        s = t->store;
        s->marks = n >= MARKS_MAX ? MARKS_MAX : n + 1 > s->marks ? n + 1 : s->marks;
        return SQLITE_OK;
    }
    s->prepared = 0;
    return st_savepoint(s->conn, n, &err) == ST_OK ? SQLITE_OK : sql_fail_st(t, &err);
}

int sql_txn_release(sqlite3_vtab *v, int n)
{
    sql_store *s = in_transaction(v);
    if (s) {
        s->prepared = 0;
        st_release(s->conn, n);
    } else {
        s = ((sql_table *)v)->store;
        s->marks = n < s->marks ? n : s->marks;
    }
    return SQLITE_OK;
}

int sql_txn_rollback_to(sqlite3_vtab *v, int n)
{
    sql_store *s = in_transaction(v);
    if (s) {
        s->prepared = 0;
        st_rollback_to(s->conn, n);
    } else {
        s = ((sql_table *)v)->store;
        s->marks = n + 1 < s->marks ? n + 1 : s->marks;
    }
    return SQLITE_OK;
}
