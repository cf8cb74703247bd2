/*
 * sql_state.c - the shadow table `<table>_state`: one row that binds a table to its store and its
 * transactions to the store's.
 *
 * FORMAT   id INTEGER PRIMARY KEY  1
 *          uuid BLOB               16 random bytes, of this row; the store's prepare frames name it
 *          store BLOB              the store's uuid, 16 bytes
 *          txid BLOB               the last transaction of the store that went by this row: int64,
 *                                  big-endian, 8 bytes
 *          path TEXT               as given to CREATE; absolute where the database has no file
 *          columns TEXT            the user columns: "name" TYPE, "name" TYPE
 *          options TEXT            of the table, not of the store: readonly, threads=N, both or ''
 *
 * txid is a blob because incremental blob I/O writes it without a statement: changes(),
 * total_changes() and last_insert_rowid() stay what the caller's own statements made them, which an
 * UPDATE would not leave so.
 *
 * ERRORS   SQLITE_NOTFOUND when it is not there or is somebody else's; SQLite's own otherwise.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "sql.h"

static int run(sqlite3 *db, char *sql)
{
    int rc = sql ? sqlite3_exec(db, sql, NULL, NULL, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    return rc;
}

static int prepare(sqlite3 *db, sqlite3_stmt **out, char *sql)
{
    *out = NULL;
    int rc = sql ? sqlite3_prepare_v2(db, sql, -1, out, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    return rc;
}

int sql_state_create(sqlite3 *db, const char *schema, const char *table)
{
    return run(
        db, sqlite3_mprintf(
                "CREATE TABLE \"%w\".\"%w_state\"(id INTEGER PRIMARY KEY, uuid BLOB, store BLOB, "
                "txid BLOB, path TEXT, columns TEXT, options TEXT)",
                schema, table));
}

int sql_state_insert(sqlite3 *db, const char *schema, const char *table, const sql_state *s)
{
    static const uint8_t zero[8];
    sqlite3_stmt *stmt;
    sqlite3_int64 last = sqlite3_last_insert_rowid(db);
    int rc = prepare(
        db, &stmt,
        sqlite3_mprintf("INSERT INTO \"%w\".\"%w_state\" VALUES(1, ?1, ?2, ?3, ?4, ?5, ?6)", schema,
                        table));
    if (rc == SQLITE_OK) {
        sqlite3_bind_blob(stmt, 1, s->uuid, sizeof s->uuid, SQLITE_STATIC);
        sqlite3_bind_blob(stmt, 2, s->store, sizeof s->store, SQLITE_STATIC);
        sqlite3_bind_blob(stmt, 3, zero, sizeof zero, SQLITE_STATIC);
        sqlite3_bind_text(stmt, 4, s->path, -1, SQLITE_STATIC);
        sqlite3_bind_text(stmt, 5, s->columns, -1, SQLITE_STATIC);
        sqlite3_bind_text(stmt, 6, s->options, -1, SQLITE_STATIC);
        sqlite3_step(stmt);
        rc = sqlite3_finalize(stmt);
    }
    sqlite3_set_last_insert_rowid(db, last);
    return rc;
}

static int is_uuid(sqlite3_stmt *stmt, int col)
{
    return sqlite3_column_type(stmt, col) == SQLITE_BLOB && sqlite3_column_bytes(stmt, col) == 16;
}

static char *copy_text(sqlite3_stmt *stmt, int col)
{
    const char *s = (const char *)sqlite3_column_text(stmt, col);
    return sqlite3_mprintf("%s", s ? s : "");
}

int sql_state_read(sqlite3 *db, const char *schema, const char *table, sql_state *out)
{
    sqlite3_stmt *stmt;
    memset(out, 0, sizeof *out);
    int rc = prepare(
        db, &stmt,
        sqlite3_mprintf(
            "SELECT uuid, store, path, columns, options FROM \"%w\".\"%w_state\" WHERE id = 1",
            schema, table));
    if (rc != SQLITE_OK) {
        return rc == SQLITE_ERROR ? SQLITE_NOTFOUND
                                  : rc; // no such table, or another one of that name
    }
    int found = 0;
    if (sqlite3_step(stmt) == SQLITE_ROW && is_uuid(stmt, 0) && is_uuid(stmt, 1)) {
        found = 1;
        memcpy(out->uuid, sqlite3_column_blob(stmt, 0), 16);
        memcpy(out->store, sqlite3_column_blob(stmt, 1), 16);
        out->path = copy_text(stmt, 2);
        out->columns = copy_text(stmt, 3);
        out->options = copy_text(stmt, 4);
    }
    rc = sqlite3_finalize(stmt);
    if (rc == SQLITE_OK && found && !(out->path && out->columns && out->options)) {
        rc = SQLITE_NOMEM;
    }
    if (rc != SQLITE_OK || !found) {
        sql_state_free(out);
        return rc == SQLITE_OK ? SQLITE_NOTFOUND : rc;
    }
    return SQLITE_OK;
}

void sql_state_free(sql_state *s)
{
    sqlite3_free(s->path);
    sqlite3_free(s->columns);
    sqlite3_free(s->options);
    memset(s, 0, sizeof *s);
}

int sql_state_rename(sqlite3 *db, const char *schema, const char *from, const char *to)
{
    return run(db, sqlite3_mprintf("ALTER TABLE \"%w\".\"%w_state\" RENAME TO \"%w_state\"", schema,
                                   from, to));
}

int sql_state_drop(sqlite3 *db, const char *schema, const char *table)
{
    return run(db, sqlite3_mprintf("DROP TABLE IF EXISTS \"%w\".\"%w_state\"", schema, table));
}

/* ------------------------------------------------------------------------------------ searching */

// Is the row in this one table? SQLITE_ROW yes, SQLITE_DONE no; a table that is not ours is a no.
static int look_in(sqlite3 *db, const char *schema, const char *table, const uint8_t uuid[16],
                   int64_t *txid)
{
    sqlite3_stmt *stmt;
    int rc = prepare(db, &stmt,
                     sqlite3_mprintf("SELECT txid FROM \"%w\".\"%w\" WHERE id = 1 AND uuid = ?1",
                                     schema, table));
    if (rc != SQLITE_OK) {
        return rc == SQLITE_ERROR ? SQLITE_DONE : rc;
    }
    int found = 0;
    sqlite3_bind_blob(stmt, 1, uuid, 16, SQLITE_STATIC);
    if (sqlite3_step(stmt) == SQLITE_ROW && sqlite3_column_type(stmt, 0) == SQLITE_BLOB &&
        sqlite3_column_bytes(stmt, 0) == 8) {
        const uint8_t *b = sqlite3_column_blob(stmt, 0);
        uint64_t v = 0;
        for (int i = 0; i < 8; i++) {
            v = v << 8 | b[i];
        }
        *txid = (int64_t)v;
        found = 1;
    }
    rc = sqlite3_finalize(stmt);
    if (rc == SQLITE_ERROR) {
        return SQLITE_DONE; // a stranger's generated column can fail
    }
    return rc != SQLITE_OK ? rc : found ? SQLITE_ROW : SQLITE_DONE;
}

// Ordinary tables only (a virtual table of that name would run foreign code), in one attached
// database.
static int look_in_schema(sqlite3 *db, const char *schema, const uint8_t uuid[16], char **table,
                          int64_t *txid)
{
    sqlite3_stmt *stmt;
    int rc = prepare(
        db, &stmt,
        sqlite3_mprintf(
            "SELECT name FROM \"%w\".sqlite_schema WHERE type = 'table' AND rootpage > 0 "
            "AND name LIKE '%%\\_state' ESCAPE '\\'",
            schema));
    if (rc != SQLITE_OK) {
        return rc;
    }
    int found = SQLITE_DONE;
    while (found == SQLITE_DONE && sqlite3_step(stmt) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(stmt, 0);
        if (name) {
            found = look_in(db, schema, name, uuid, txid);
            if (found == SQLITE_ROW && table) {
                *table = sqlite3_mprintf("%s", name);
                found = *table ? SQLITE_ROW : SQLITE_NOMEM;
            }
        }
    }
    rc = sqlite3_finalize(stmt);
    return found == SQLITE_DONE && rc != SQLITE_OK ? rc : found;
}

int sql_state_find(sqlite3 *db, const uint8_t uuid[16], char **schema, char **table, int64_t *txid)
{
    *txid = 0;
    if (schema) {
        *schema = *table = NULL;
    }
    const char *name;
    for (int i = 0; (name = sqlite3_db_name(db, i)) != NULL; i++) {
        int rc = look_in_schema(db, name, uuid, table, txid);
        if (rc == SQLITE_ROW && schema) {
            *schema = sqlite3_mprintf("%s", name);
            return *schema ? SQLITE_OK : SQLITE_NOMEM;
        }
        if (rc != SQLITE_DONE) {
            return rc == SQLITE_ROW ? SQLITE_OK : rc;
        }
    }
    return SQLITE_NOTFOUND;
}

/* -------------------------------------------------------------------------------------- writing */

static int open_blob(sqlite3 *db, const char *schema, const char *name, const char *column,
                     int write, int bytes, sqlite3_blob **out)
{
    int rc = sqlite3_blob_open(db, schema, name, column, 1, write, out);
    if (rc == SQLITE_ERROR) {
        return SQLITE_NOTFOUND; // no such table, column or row, or the value is no blob
    }
    if (rc == SQLITE_OK && sqlite3_blob_bytes(*out) != bytes) {
        sqlite3_blob_close(*out);
        *out = NULL;
        return SQLITE_NOTFOUND;
    }
    return rc;
}

static void put_id(uint8_t bytes[8], int64_t txid)
{
    for (int i = 0; i < 8; i++) {
        bytes[i] = (uint8_t)((uint64_t)txid >> (56 - 8 * i));
    }
}

static int has_uuid(sqlite3 *db, const char *schema, const char *name, const uint8_t uuid[16])
{
    sqlite3_blob *blob;
    uint8_t there[16];
    int rc = open_blob(db, schema, name, "uuid", 0, 16, &blob);
    if (rc == SQLITE_OK) {
        rc = sqlite3_blob_read(blob, there, 16, 0);
        sqlite3_blob_close(blob);
    }
    return rc != SQLITE_OK || memcmp(there, uuid, 16) == 0 ? rc : SQLITE_NOTFOUND;
}

// To open a blob is to compile a statement: one, where the row is known by what it holds.
int sql_state_write(sqlite3 *db, const char *schema, const char *name, const uint8_t uuid[16],
                    int64_t *last, int64_t txid)
{
    sqlite3_blob *blob;
    uint8_t bytes[8], there[8];
    int rc = open_blob(db, schema, name, "txid", 1, 8, &blob);
    if (rc != SQLITE_OK) {
        return rc;
    }
    put_id(bytes, *last);
    rc = sqlite3_blob_read(blob, there, 8, 0);
    if (rc == SQLITE_OK && (!*last || memcmp(there, bytes, 8) != 0)) {
        rc = has_uuid(db, schema, name, uuid);
    }
    if (rc == SQLITE_OK) {
        put_id(bytes, txid);
        rc = sqlite3_blob_write(blob, bytes, 8, 0);
    }
    int closed = sqlite3_blob_close(blob);
    rc = rc == SQLITE_OK ? closed : rc;
    *last = rc == SQLITE_OK ? txid : 0;
    return rc;
}
