/*
 * bench_floor.c - a virtual table that does nothing but hand out rows: what SQLite itself costs
 * beside a table that answers the same query.
 *
 *     CREATE VIRTUAL TABLE f USING bench_floor;      columns id, timestamp
 *
 * Row i has id i and time i, for every i from 1 on. BETWEEN on timestamp is taken over; the rows
 * are counted up, not looked for.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "bench.h"

typedef struct cursor {
    sqlite3_vtab_cursor base;
    sqlite3_int64 at, last;
} cursor;

static int floor_connect(sqlite3 *db, void *aux, int argc, const char *const *argv,
                         sqlite3_vtab **out, char **err)
{
    (void)aux;
    (void)argc;
    (void)argv;
    (void)err;
    int rc = sqlite3_declare_vtab(db, "CREATE TABLE x(id INTEGER PRIMARY KEY, timestamp REAL)");
    *out = rc == SQLITE_OK ? sqlite3_malloc(sizeof **out) : NULL;
    if (*out) {
        memset(*out, 0, sizeof **out);
    }
    return *out || rc != SQLITE_OK ? rc : SQLITE_NOMEM;
}

static int floor_disconnect(sqlite3_vtab *v)
{
    sqlite3_free(v);
    return SQLITE_OK;
}

static int floor_best(sqlite3_vtab *v, sqlite3_index_info *info)
{
    int lower = -1, upper = -1;
    (void)v;
    for (int i = 0; i < info->nConstraint; i++) {
        const struct sqlite3_index_constraint *c = &info->aConstraint[i];
        if (c->usable && c->iColumn == 1) {
            lower = c->op == SQLITE_INDEX_CONSTRAINT_GE ? i : lower;
            upper = c->op == SQLITE_INDEX_CONSTRAINT_LE ? i : upper;
        }
    }
    if (lower < 0 || upper < 0) {
        return SQLITE_CONSTRAINT;
    }
    info->aConstraintUsage[lower].argvIndex = 1;
    info->aConstraintUsage[upper].argvIndex = 2;
    info->aConstraintUsage[lower].omit = info->aConstraintUsage[upper].omit = 1;
    info->estimatedCost = 10;
    return SQLITE_OK;
}

static int floor_open(sqlite3_vtab *v, sqlite3_vtab_cursor **out)
{
    (void)v;
    *out = sqlite3_malloc(sizeof(cursor));
    return *out ? SQLITE_OK : SQLITE_NOMEM;
}

static int floor_close(sqlite3_vtab_cursor *c)
{
    sqlite3_free(c);
    return SQLITE_OK;
}

static int floor_filter(sqlite3_vtab_cursor *base, int num, const char *str, int argc,
                        sqlite3_value **argv)
{
    cursor *c = (cursor *)base;
    (void)num;
    (void)str;
    (void)argc;
    c->at = sqlite3_value_int64(argv[0]);
    c->last = sqlite3_value_int64(argv[1]);
    return SQLITE_OK;
}

static int floor_next(sqlite3_vtab_cursor *c)
{
    ((cursor *)c)->at++;
    return SQLITE_OK;
}

static int floor_eof(sqlite3_vtab_cursor *c)
{
    return ((cursor *)c)->at > ((cursor *)c)->last;
}

static int floor_column(sqlite3_vtab_cursor *c, sqlite3_context *ctx, int i)
{
    (void)i;
    sqlite3_result_int64(ctx, ((cursor *)c)->at);
    return SQLITE_OK;
}

static int floor_rowid(sqlite3_vtab_cursor *c, sqlite3_int64 *out)
{
    *out = ((cursor *)c)->at;
    return SQLITE_OK;
}

static const sqlite3_module module = {.xCreate = floor_connect,
                                      .xConnect = floor_connect,
                                      .xBestIndex = floor_best,
                                      .xDisconnect = floor_disconnect,
                                      .xDestroy = floor_disconnect,
                                      .xOpen = floor_open,
                                      .xClose = floor_close,
                                      .xFilter = floor_filter,
                                      .xNext = floor_next,
                                      .xEof = floor_eof,
                                      .xColumn = floor_column,
                                      .xRowid = floor_rowid};

int bench_floor_register(sqlite3 *db)
{
    return sqlite3_create_module_v2(db, "bench_floor", &module, NULL, NULL) == SQLITE_OK ? 0 : -1;
}
