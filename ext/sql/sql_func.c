/*
 * sql_func.c - the scalar functions: their table, and those that are short: version, flush, config.
 *
 * Functions with side effects, or that take a path, are DIRECTONLY: no view, trigger or
 * schema of a stranger's database can call them. Those that change rows or options run nested SQL
 * on the caller's connection, so that they join its transaction.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "sql.h"
#include "sql_value.h"

sql_table *sql_fn_table(sqlite3_context *ctx, sqlite3_value *name)
{
    sql_db *d = sqlite3_user_data(ctx);
    sql_table *t = NULL;
    char show[SQL_SHOW], *err = NULL;
    if (sqlite3_value_type(name) != SQLITE_TEXT || !sqlite3_value_text(name)) {
        sql_fail_fn(ctx, SQLITE_ERROR, NULL, NULL,
                    "the table is %s; it takes a table's name in quotes", sql_show(name, show));
        return NULL;
    }
    int rc = sql_table_find(d, (const char *)sqlite3_value_text(name), &t, &err);
    if (err) {
        sqlite3_result_error(ctx, err, -1);
        sqlite3_result_error_code(ctx, rc);
        sqlite3_free(err);
        return NULL;
    }
    if (rc != SQLITE_OK) {
        sql_fail_fn_db(ctx, d->db, rc);
        return NULL;
    }
    rc = sql_table_open(t);
    if (rc != SQLITE_OK) {
        sql_fail_fn_table(ctx, t, rc);
        return NULL;
    }
    return t;
}

static void version_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    (void)argv;
    sqlite3_result_text(ctx, H5MEM_VERSION, -1, SQLITE_STATIC);
}

static void maintain(sqlite3_context *ctx, sqlite3_value *name, sql_maintain_fn fn)
{
    uint64_t n = 0;
    sql_table *t = sql_fn_table(ctx, name);
    if (t) {
        int rc = sql_maintain(t, 0, fn, &n);
        if (rc == SQLITE_OK) {
            sqlite3_result_int64(ctx, (sqlite3_int64)n);
        } else {
            sql_fail_fn_table(ctx, t, rc);
        }
    }
}

static void flush_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    maintain(ctx, argv[0], st_flush);
}

static void compact_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    maintain(ctx, argv[0], st_compact);
}

// A relative path is relative to the working folder, as for h5mem_import.
static void backup_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    char show[SQL_SHOW];
    uint64_t bytes = 0;
    st_error err = {0};
    (void)argc;
    sql_table *t = sql_fn_table(ctx, argv[0]);
    if (!t) {
        return;
    }
    const char *path = sqlite3_value_type(argv[1]) == SQLITE_TEXT
                           ? (const char *)sqlite3_value_text(argv[1])
                           : NULL;
    if (!path || !*path || strlen(path) != (size_t)sqlite3_value_bytes(argv[1])) {
        sql_fail_fn(ctx, SQLITE_ERROR, t->name, t->store->path, "the backup's path is %s",
                    sql_show(argv[1], show));
    } else if (st_backup(t->store->conn, path, &bytes, &err) != ST_OK) {
        sql_fail_fn(ctx, sql_code(err.code), t->name, t->store->path, "%s", err.text);
    } else {
        sqlite3_result_int64(ctx, (sqlite3_int64)bytes);
    }
}

/* --------------------------------------------------------------------------------------- config */

// SELECT and not VALUES: for one row of VALUES SQLite sets no savepoint, and what a failing
// function had changed would stay in the transaction.
int sql_inside(sql_table *t, sql_inside_fn fn, void *ctx)
{
    sqlite3 *db = t->db->db;
    sqlite3_stmt *stmt;
    sql_call call = {fn, ctx};
    char *sql = sqlite3_mprintf("INSERT INTO \"%w\".\"%w\"(\"%w\") SELECT ?1", t->schema, t->name,
                                t->name);
    int rc = sql ? sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    if (rc == SQLITE_OK) {
        sqlite3_bind_pointer(stmt, 1, &call, SQL_INSIDE_TYPE, NULL);
        sqlite3_step(stmt);
        rc = sqlite3_finalize(stmt);
    }
    return rc;
}

int sql_inside_again(sql_table *t, sql_inside_fn fn, void *ctx)
{
    int rc = sql_inside(t, fn, ctx);
    if (rc != SQLITE_OK) {
        sqlite3_free(t->base.zErrMsg);
        t->base.zErrMsg = sqlite3_mprintf("%s", sqlite3_errmsg(t->db->db));
    }
    return rc;
}

typedef struct setting {
    const char *name, *value;
} setting;

static int set_option(void *ctx, sql_table *t)
{
    const setting *s = ctx;
    st_error err = {0};
    int rc = sql_txn_write(t);
    if (rc == SQLITE_OK && st_set_option(t->store->conn, s->name, s->value, &err) != ST_OK) {
        rc = sql_fail_st(t, &err);
    }
    return rc;
}

// readonly and threads are the table's: they are set for this connection and kept nowhere.
static int set(sql_table *t, const setting *s, char **why)
{
    char now[4096];
    st_error err = {0};
    if (strcmp(s->name, "threads") == 0) {
        return sql_read_threads(s->value, &t->threads, why);
    }
    if (strcmp(s->name, "readonly") == 0) {
        if (!sqlite3_get_autocommit(t->db->db)) {
            *why = sqlite3_mprintf("readonly cannot change within a transaction");
            return SQLITE_ERROR;
        }
        return sql_read_flag("readonly", s->value, &t->readonly, why);
    }
    int rc = sql_option_known(s->name, why);
    if (rc == SQLITE_OK && st_get_option(t->store->conn, s->name, now, sizeof now, &err) == ST_OK &&
        strcmp(now, s->value) == 0) {
        return SQLITE_OK; // as it is: also one that is fixed when the store is made
    }
    return rc == SQLITE_OK ? sql_inside(t, set_option, (void *)s) : rc;
}

static void get_option(sqlite3_context *ctx, sql_table *t, const char *name)
{
    char buf[4096];
    char *why = NULL;
    st_error err = {0};
    if (strcmp(name, "readonly") == 0) {
        sqlite3_result_text(ctx, t->readonly ? "on" : "off", -1, SQLITE_STATIC);
    } else if (strcmp(name, "threads") == 0) {
        sqlite3_result_int(ctx, t->threads);
    } else if (sql_option_known(name, &why) != SQLITE_OK) {
        sql_fail_fn(ctx, SQLITE_ERROR, t->name, t->store->path, "%s", why ? why : "");
        sqlite3_free(why);
    } else if (st_get_option(t->store->conn, name, buf, sizeof buf, &err) == ST_OK) {
        int type = st_option_type(name);
        double v = 0;
        if (type == ST_TEXT || sql_scan_f64(buf, strlen(buf), &v) != strlen(buf)) {
            sqlite3_result_text(ctx, buf, -1, SQLITE_TRANSIENT);
        } else if (type == ST_INT) {
            sqlite3_result_int64(ctx, (sqlite3_int64)v); // at most 10^15: exact
        } else {
            sqlite3_result_double(ctx, v);
        }
    } else {
        sql_fail_fn(ctx, sql_code(err.code), t->name, t->store->path, "%s", err.text);
    }
}

// Not an option that is kept: what keeps writers out, and the way on. how NULL: only asks.
static void resolve(sqlite3_context *ctx, sql_table *t, const char *how)
{
    st_error err = {0};
    const char *what = how;
    int rc = how ? st_resolve(t->store->conn, sql_busy_timeout(t->db->db), how, &err)
                 : st_unresolved(t->store->conn, &what, &err);
    if (rc == ST_OK) {
        sqlite3_result_text(ctx, what, -1, SQLITE_TRANSIENT);
    } else {
        sql_fail_fn(ctx, sql_code(err.code), t->name, t->store->path, "%s", err.text);
    }
}

static void config_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    char show[SQL_SHOW];
    sql_table *t = sql_fn_table(ctx, argv[0]);
    const char *name = (const char *)sqlite3_value_text(argv[1]);
    if (!t) {
        return;
    }
    if (!name) {
        sql_fail_fn(ctx, SQLITE_ERROR, t->name, t->store->path, "the option's name is %s",
                    sql_show(argv[1], show));
        return;
    }
    if (argc == 3) {
        int type = sqlite3_value_type(argv[2]);
        const char *value = type == SQLITE_BLOB ? NULL : (const char *)sqlite3_value_text(argv[2]);
        if (!value) {
            sql_fail_fn(ctx, SQLITE_ERROR, t->name, t->store->path, "%s cannot be %s", name,
                        sql_show(argv[2], show));
            return;
        }
        if (strcmp(name, "resolve") == 0) {
            resolve(ctx, t, value);
            return;
        }
        char *why = NULL;
        int rc = set(t, &(setting){name, value}, &why);
        if (why) {
            sql_fail_fn(ctx, rc, t->name, t->store->path, "%s", why);
            sqlite3_free(why);
            return;
        }
        if (rc != SQLITE_OK) {
            sql_fail_fn_db(ctx, t->db->db, rc);
            return;
        }
    }
    if (strcmp(name, "resolve") == 0) {
        resolve(ctx, t, NULL);
        return;
    }
    get_option(ctx, t, name);
}

/* --------------------------------------------------------------------------------- registration */

typedef struct function_row {
    const char *name;
    int argc, flags;
    void (*fn)(sqlite3_context *, int, sqlite3_value **);
} function_row;

enum {
    PURE = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS,
    DIRECT = SQLITE_UTF8 | SQLITE_DIRECTONLY, // changes something, or takes a path
    READS = SQLITE_UTF8                       // looks at a table, as a SELECT from it does
};

static const function_row functions[] = {
    {"h5mem_version", 0, PURE, version_fn},
    {"h5mem_vector", 1, PURE, sql_vector_fn},
    {"h5mem_vector_json", 1, PURE, sql_vector_json_fn},
    {"h5mem_distance", 2, PURE, sql_distance_fn},
    {"h5mem_distance", 3, PURE, sql_distance_fn},
    {"h5mem_has_tag", 2, PURE, sql_has_tag_fn},
    {"h5mem_gate", 1, PURE, sql_gate_fn},
    {"h5mem_gate", 2, PURE, sql_gate_fn},
    {"h5mem_scan", 1, PURE, sql_scan_fn},
    {"h5mem_gate_reason", 1, PURE, sql_gate_reason_fn},
    {"h5mem_gate_reason", 2, PURE, sql_gate_reason_fn},
    {"h5mem_flush", 1, DIRECT, flush_fn},
    {"h5mem_optimize", 1, DIRECT, sql_optimize_fn},
    {"h5mem_compact", 1, DIRECT, compact_fn},
    {"h5mem_backup", 2, DIRECT, backup_fn},
    {"h5mem_stats", 1, READS, sql_stats_fn},
    {"h5mem_verify", 1, READS, sql_verify_fn},
    {"h5mem_config", 2, READS, config_fn},
    {"h5mem_config", 3, DIRECT, config_fn},
    {"h5mem_export", 3, DIRECT, sql_export_fn},
    {"h5mem_consolidate", 1, DIRECT, sql_consolidate_fn},
    {"h5mem_consolidate", 2, DIRECT, sql_consolidate_fn},
    {"h5mem_consolidate", 3, DIRECT, sql_consolidate_fn},
    {"h5mem_tick", 1, DIRECT, sql_tick_fn},
    {"h5mem_tick", 2, DIRECT, sql_tick_fn},
    {"h5mem_touch", 2, DIRECT, sql_touch_fn},
    {"h5mem_touch", 3, DIRECT, sql_touch_fn},
    {"h5mem_importance", 4, READS, sql_importance_fn},
    {"h5mem_import", 3, DIRECT, sql_import_fn},
    {"h5mem_record", 7, DIRECT, sql_record_fn},
    {"h5mem_record", 8, DIRECT, sql_record_fn},
    {"h5mem_restore", 2, DIRECT, sql_restore_fn},
    {"h5mem_forget", 3, DIRECT, sql_forget_fn},
    {"h5mem_destroy", 1, DIRECT, sql_destroy_fn},
    {"hdf5_read", 2, DIRECT, sql_h5_read_fn},
    {"hdf5_read", 3, DIRECT, sql_h5_read_fn},
    {"hdf5_read", 4, DIRECT, sql_h5_read_fn},
};

int sql_functions_register(sql_db *d)
{
    int rc = SQLITE_OK;
    for (size_t i = 0; i < sizeof functions / sizeof *functions && rc == SQLITE_OK; i++) {
        const function_row *f = &functions[i];
        d->refs++; // given back by the destructor, also when registering fails
        rc = sqlite3_create_function_v2(d->db, f->name, f->argc, f->flags, d, f->fn, NULL, NULL,
                                        sql_db_unref);
    }
    return rc;
}
