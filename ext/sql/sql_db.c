/*
 * sql_db.c - what one host connection uses: its tables, its stores, and what a store may ask the
 * host.
 *
 * A sqlite3_vtab comes and goes with every schema reload, in mid-transaction too. What must survive
 * that (the open store, the host transaction's state on it) hangs here, keyed by the store's path,
 * for as long as any table is attached.
 *
 * OWNERSHIP  a sql_db is owned by the modules and functions registered with it and freed when the
 *            last of them goes
 * THREADS    the connection's
 *
 * SPDX-License-Identifier: MIT
 */
#include <assert.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "sql.h"

/* -------------------------------------------------------------------------------- small queries */

int sql_query_int(sqlite3 *db, const char *sql, int64_t fallback, int64_t *out)
{
    sqlite3_stmt *stmt;
    *out = fallback;
    int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
    if (rc != SQLITE_OK) {
        return rc;
    }
    if (sqlite3_step(stmt) == SQLITE_ROW) {
        *out = sqlite3_column_int64(stmt, 0);
    }
    return sqlite3_finalize(stmt);
}

int sql_busy_timeout(sqlite3 *db)
{
    int64_t ms;
    int rc = sql_query_int(db, "PRAGMA busy_timeout", 0, &ms);
    return rc != SQLITE_OK || ms < 0 ? 0 : ms > INT32_MAX ? INT32_MAX : (int)ms;
}

/* ----------------------------------------------------------------------- what the store may ask */

// Is any attached database in WAL mode? When it cannot be told, it may be.
static int any_wal(sqlite3 *db)
{
    const char *name;
    int wal = 0;
    for (int i = 0; (name = sqlite3_db_name(db, i)) != NULL && !wal; i++) {
        sqlite3_stmt *stmt = NULL;
        char *sql = sqlite3_mprintf("PRAGMA \"%w\".journal_mode", name);
        wal = !sql || sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK ||
              sqlite3_step(stmt) != SQLITE_ROW ||
              sqlite3_stricmp((const char *)sqlite3_column_text(stmt, 0), "wal") == 0;
        sqlite3_finalize(stmt);
        sqlite3_free(sql);
    }
    return wal;
}

static int verdict(void *ctx, const uint8_t uuid[16], int64_t *txid, int *firm, st_error *err)
{
    sql_db *d = ctx;
    int rc = sql_state_find(d->db, uuid, NULL, NULL, txid);
    if (firm && any_wal(d->db)) {
        *firm = 0;
    }
    if (rc == SQLITE_OK) {
        return ST_OK;
    }
    err->code = rc == SQLITE_NOTFOUND             ? ST_NOTFOUND
                : (rc & 0xff) == SQLITE_NOMEM     ? ST_NOMEM
                : (rc & 0xff) == SQLITE_BUSY      ? ST_BUSY
                : (rc & 0xff) == SQLITE_INTERRUPT ? ST_STOPPED
                                                  : ST_IO;
    sqlite3_snprintf(sizeof err->text, err->text, "the host database's state row: %s",
                     rc == SQLITE_NOTFOUND ? "not there" : sqlite3_errstr(rc));
    return err->code;
}

static int is_file(void *ctx, uint64_t dev, uint64_t ino)
{
    sql_db *d = ctx;
    const char *name;
    for (int i = 0; (name = sqlite3_db_name(d->db, i)) != NULL; i++) {
        const char *path = sqlite3_db_filename(d->db, name);
        struct stat st;
        if (path && *path && stat(path, &st) == 0 && (uint64_t)st.st_dev == dev &&
            (uint64_t)st.st_ino == ino) {
            return 1;
        }
    }
    return 0;
}

#if SQLITE_VERSION_NUMBER < 3041000 && !defined(SQLITE_CORE)
/* The table of calls only ever grows: this is the one that 3.41 put behind those of the header
 * we are compiled with. */
struct api_3041 {
    sqlite3_api_routines base;
    int (*is_interrupted)(sqlite3 *);
};
#define sqlite3_is_interrupted (((const struct api_3041 *)sqlite3_api)->is_interrupted)
#define KNOWS_INTERRUPTED      (sqlite3_libversion_number() >= 3041000)
#elif SQLITE_VERSION_NUMBER < 3041000
#define sqlite3_is_interrupted(db) 0
#define KNOWS_INTERRUPTED          0
#else
#define KNOWS_INTERRUPTED (sqlite3_libversion_number() >= 3041000)
#endif

static int64_t milliseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void sql_db_begin(sql_db *d)
{
    d->asked = 0;
}

static int stop(void *ctx)
{
    sql_db *d = ctx;
    if (KNOWS_INTERRUPTED) {
        return sqlite3_is_interrupted(d->db);
    }
    // Before 3.41 only a statement can tell: preparing or stepping one fails at once after
    // sqlite3_interrupt(). That takes some microseconds, so it is done about every millisecond.
    int64_t one, now = milliseconds();
    int first = !d->asked;
    if (now == d->asked) {
        return 0;
    }
    d->asked = now;
    if (first) {
        return 0; // the search has only begun
    }
    return sql_query_int(d->db, "SELECT 1", 0, &one) == SQLITE_INTERRUPT;
}

/* ----------------------------------------------------------------------------------------- life */

int sql_db_new(sqlite3 *db, sql_db **out)
{
    sql_db *d = sqlite3_malloc(sizeof *d);
    *out = d;
    if (!d) {
        return SQLITE_NOMEM;
    }
    memset(d, 0, sizeof *d);
    d->db = db;
    d->host.ctx = d;
    d->host.verdict = verdict;
    d->host.is_file = is_file;
    d->host.stop = stop;
    return SQLITE_OK;
}

void sql_db_unref(void *p)
{
    sql_db *d = p;
    if (--d->refs > 0) {
        return;
    }
    assert(!d->tables && !d->stores);
    sqlite3_free(d);
}

void sql_db_idle(sql_db *d)
{
    if (d->live == 0) {
        sql_tokenizers_drop(d);
        sql_spare_drop(d);
        sqlite3_free(d->rested);
        d->rested = NULL;
    }
}

/* --------------------------------------------------------------------------------------- stores */

sql_store *sql_store_attach(sql_db *d, const char *path)
{
    for (sql_store *s = d->stores; s; s = s->next) {
        if (strcmp(s->path, path) == 0) {
            s->refs++;
            return s;
        }
    }
    sql_store *s = sqlite3_malloc(sizeof *s);
    if (!s) {
        return NULL;
    }
    memset(s, 0, sizeof *s);
    s->path = sqlite3_mprintf("%s", path);
    if (!s->path) {
        sqlite3_free(s);
        return NULL;
    }
    s->db = d;
    s->refs = 1;
    s->next = d->stores;
    d->stores = s;
    return s;
}

void sql_store_detach(sql_store *s)
{
    if (!s || --s->refs > 0) {
        return;
    }
    for (; s->opens > 0; s->opens--) {
        st_close(s->conn);
    }
    sql_store **at = &s->db->stores;
    while (*at != s) {
        at = &(*at)->next;
    }
    *at = s->next;
    sqlite3_free(s->path);
    sqlite3_free(s);
}

/* ---------------------------------------------------------------------------------------- paths */

// The working folder, "/" at the end; NULL: too long or not there any more.
static char *working_folder(void)
{
    for (size_t n = 256; n <= 65536; n *= 4) {
        char *buf = sqlite3_malloc64(n);
        if (buf && getcwd(buf, n)) {
            char *out = sqlite3_mprintf("%s%s", buf, strcmp(buf, "/") == 0 ? "" : "/");
            sqlite3_free(buf);
            return out;
        }
        sqlite3_free(buf);
    }
    return NULL;
}

int sql_path_resolve(sqlite3 *db, const char *schema, const char *path, char **out, int *host_file)
{
    const char *host = schema ? sqlite3_db_filename(db, schema) : NULL;
    const char *slash = host ? strrchr(host, '/') : NULL;
    *host_file = host && *host;
    *out = NULL;
    if (path[0] == '/') {
        *out = sqlite3_mprintf("%s", path);
    } else if (*host_file && slash) {
        *out = sqlite3_mprintf("%.*s/%s", (int)(slash - host), host, path);
    } else {
        char *folder = working_folder();
        if (folder) {
            *out = sqlite3_mprintf("%s%s", folder, path);
        }
        sqlite3_free(folder);
    }
    return *out ? SQLITE_OK : SQLITE_NOMEM;
}
