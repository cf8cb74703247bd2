/*
 * sql_info.c - h5mem_info(name, value): what this build and this host have. An eponymous, read-only
 * table.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "h5core.h"
#include "sql.h"
#include "vec.h"

typedef struct info_table {
    sqlite3_vtab base;
    sql_db *db;
} info_table;

typedef struct info_cursor {
    sqlite3_vtab_cursor base;
    int row;
} info_cursor;

enum {
    ROW_VERSION,
    ROW_SQLITE,
    ROW_SIMD,
    ROW_ZLIB,
    ROW_ZSTD,
    ROW_FTS5,
    ROW_VECTOR,
    ROW_TEXT,
    ROW_TIME,
    ROW_COLUMNS_MAX,
    ROW_TOKEN_MAX,
    ROW_N
};

static const char *const names[ROW_N] = {
    "version",          "sqlite",          "simd", "zlib", "zstd", "fts5", "vector", "text", "time",
    "user_columns_max", "token_bytes_max",
};

static void value_of(sql_db *d, sqlite3_context *ctx, int row)
{
    const char *text = "on";
    switch (row) {
    case ROW_VERSION:
        text = H5MEM_VERSION;
        break;
    case ROW_SQLITE:
        text = sqlite3_libversion();
        break;
    case ROW_SIMD:
        text = vec_kern()->level;
        break;
    case ROW_ZLIB:
        text = h5_zlib_version();
        break;
    case ROW_ZSTD:
        text = h5_zstd_version();
        break;
    case ROW_FTS5:
        text = sql_have_fts5(d) ? "on" : "off";
        break;
    case ROW_TEXT:
        text = sql_have_fts5(d) ? "on" : "on: by its own tokenizer, since this SQLite has no FTS5";
        break;
    case ROW_COLUMNS_MAX:
        sqlite3_result_int(ctx, ST_USER_COLUMNS_MAX);
        return;
    case ROW_TOKEN_MAX:
        sqlite3_result_int(ctx, VEC_TOKEN_MAX);
        return;
    default: // the parts that need nothing of the host
        break;
    }
    sqlite3_result_text(ctx, text, -1, SQLITE_TRANSIENT);
}

static int x_connect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out,
                     char **err)
{
    (void)argc;
    (void)argv;
    (void)err;
    int rc = sqlite3_declare_vtab(db, "CREATE TABLE x(name TEXT, value)");
    if (rc != SQLITE_OK) {
        return rc;
    }
    info_table *t = sqlite3_malloc(sizeof *t);
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
    sql_db *d = ((info_table *)v)->db;
    sqlite3_free(v);
    d->live--;
    sql_db_idle(d);
    return SQLITE_OK;
}

static int x_best_index(sqlite3_vtab *v, sqlite3_index_info *info)
{
    (void)v;
    info->estimatedCost = ROW_N;
    info->estimatedRows = ROW_N;
    return SQLITE_OK;
}

static int x_open(sqlite3_vtab *v, sqlite3_vtab_cursor **out)
{
    (void)v;
    info_cursor *c = sqlite3_malloc(sizeof *c);
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

static int x_filter(sqlite3_vtab_cursor *c, int idx_num, const char *idx_str, int argc,
                    sqlite3_value **argv)
{
    (void)idx_num;
    (void)idx_str;
    (void)argc;
    (void)argv;
    ((info_cursor *)c)->row = 0;
    return SQLITE_OK;
}

static int x_next(sqlite3_vtab_cursor *c)
{
    ((info_cursor *)c)->row++;
    return SQLITE_OK;
}

static int x_eof(sqlite3_vtab_cursor *c)
{
    return ((info_cursor *)c)->row >= ROW_N;
}

static int x_column(sqlite3_vtab_cursor *c, sqlite3_context *ctx, int i)
{
    int row = ((info_cursor *)c)->row;
    if (i == 0) {
        sqlite3_result_text(ctx, names[row], -1, SQLITE_STATIC);
    } else {
        value_of(((info_table *)c->pVtab)->db, ctx, row);
    }
    return SQLITE_OK;
}

static int x_rowid(sqlite3_vtab_cursor *c, sqlite3_int64 *out)
{
    *out = ((info_cursor *)c)->row + 1;
    return SQLITE_OK;
}

const sqlite3_module sql_info_module = {
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
};
