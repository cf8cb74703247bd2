/*
 * sql_rows.c - the functions that give rows, h5mem_time(text [, now]) and
 * h5mem_expand(text [, table]); and h5mem_has_tag(tags, tag).
 *
 * The two change nothing, so one eponymous, read-only module serves them: the arguments are hidden
 * columns, xFilter makes all rows, the cursor hands them out. A missing or NULL argument gives no
 * row. They are INNOCUOUS: views and triggers may use them.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>
#include <time.h>

#include "sql.h"
#include "sql_text.h"
#include "sql_value.h"

typedef struct rows_cursor rows_cursor;
typedef struct function function;

/* One of the functions. */
struct function {
    const char *name, *schema;
    int columns, args; /* shown, hidden */
    int need;          /* arguments without which there is no row */
    int (*fill)(rows_cursor *c, sqlite3_value **arg);
    void (*column)(const rows_cursor *c, sqlite3_context *ctx, int i);
};

enum { ARGS_MAX = 2 };

typedef struct rows_table {
    sqlite3_vtab base;
    const function *what;
    sql_db *db;
} rows_table;

struct rows_cursor {
    sqlite3_vtab_cursor base;
    size_t n, at;
    int64_t start, end;      /* h5mem_time's row */
    sql_expansion *expanded; /* SQL_EXPAND_ROWS of them, n in use; NULL: not asked for yet */
    sqlite3_value *arg[ARGS_MAX];
};

/* ---------------------------------------------------------------------------------- h5mem_time */

static int64_t floor_of(double x)
{
    // whole, and out of range where the parser says so
    double far = 1e12;
    x = x < -far ? -far : x > far ? far : x;
    return (int64_t)x - (x < (double)(int64_t)x);
}

/* Sets *now; a message in the table where that is no time. */
static int time_now(rows_cursor *c, sqlite3_value *v, int64_t *now)
{
    char show[SQL_SHOW];
    double t;
    switch (v ? sqlite3_value_type(v) : SQLITE_NULL) {
    case SQLITE_INTEGER:
    case SQLITE_FLOAT:
        *now = floor_of(sqlite3_value_double(v));
        return SQLITE_OK;
    case SQLITE_TEXT: {
        const char *s = (const char *)sqlite3_value_text(v);
        if (!s) {
            return SQLITE_NOMEM;
        }
        if (sql_scan_time(s, (size_t)sqlite3_value_bytes(v), &t)) {
            *now = floor_of(t);
            return SQLITE_OK;
        }
        break;
    }
    case SQLITE_NULL: // no argument: one that is NULL has given no row already
        *now = (int64_t)time(NULL);
        return SQLITE_OK;
    default:
        break;
    }
    c->base.pVtab->zErrMsg = sqlite3_mprintf("h5mem: h5mem_time's now is %s; it takes Unix "
                                             "seconds or ISO 8601 text",
                                             sql_show(v, show));
    return SQLITE_ERROR;
}

static int time_fill(rows_cursor *c, sqlite3_value **arg)
{
    int64_t now;
    int rc = time_now(c, arg[1], &now);
    const char *s = (const char *)sqlite3_value_text(arg[0]);
    if (rc == SQLITE_OK && !s) {
        rc = SQLITE_NOMEM;
    }
    if (rc == SQLITE_OK) {
        size_t n = (size_t)sqlite3_value_bytes(arg[0]);
        c->n = sql_time_range(s, n, now, &c->start, &c->end) ? 1 : 0;
    }
    return rc;
}

static void time_column(const rows_cursor *c, sqlite3_context *ctx, int i)
{
    sqlite3_result_int64(ctx, i == 0 ? c->start : c->end);
}

/* -------------------------------------------------------------------------------- h5mem_expand */

// The table, where one is named, must be there; names of its entities will count once it has any.
static int expand_table(rows_cursor *c, sqlite3_value *v)
{
    char show[SQL_SHOW], *why = NULL;
    sql_table *t;
    sqlite3_vtab *base = c->base.pVtab;
    if (!v) {
        return SQLITE_OK;
    }
    int rc = SQLITE_ERROR;
    if (sqlite3_value_type(v) == SQLITE_TEXT) {
        rc = sql_table_find(((rows_table *)base)->db, (const char *)sqlite3_value_text(v), &t,
                            &why);
    } else {
        why = sqlite3_mprintf(
            "h5mem: h5mem_expand's table is %s; it takes a table's name in quotes",
            sql_show(v, show));
    }
    if (why) {
        sqlite3_free(base->zErrMsg);
        base->zErrMsg = why;
    }
    return rc;
}

static int expand_fill(rows_cursor *c, sqlite3_value **arg)
{
    int rc = expand_table(c, arg[1]);
    if (rc != SQLITE_OK) {
        return rc;
    }
    const char *s = (const char *)sqlite3_value_text(arg[0]);
    if (!c->expanded) {
        c->expanded = sqlite3_malloc(sizeof *c->expanded * SQL_EXPAND_ROWS);
    }
    if (!s || !c->expanded) {
        return SQLITE_NOMEM;
    }
    return sql_expand(s, (size_t)sqlite3_value_bytes(arg[0]), c->expanded, &c->n);
}

static void expand_column(const rows_cursor *c, sqlite3_context *ctx, int i)
{
    const sql_expansion *e = &c->expanded[c->at];
    if (i == 0) {
        sqlite3_result_text(ctx, e->text, (int)e->n, SQLITE_TRANSIENT);
    } else if (i == 1) {
        sqlite3_result_text(ctx, sql_expansion_kinds[e->kind].name, -1, SQLITE_STATIC);
    } else {
        sqlite3_result_double(ctx, sql_expansion_kinds[e->kind].weight);
    }
}

/* ----------------------------------------------------------------------------------- the module */

static const function functions[] = {
    {"h5mem_time", "CREATE TABLE x(start INTEGER, \"end\" INTEGER, expression HIDDEN, now HIDDEN)",
     2, 2, 1, time_fill, time_column},
    {"h5mem_expand", "CREATE TABLE x(text TEXT, kind TEXT, weight REAL, query HIDDEN, of HIDDEN)",
     3, 2, 1, expand_fill, expand_column},
};

static int x_connect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out,
                     char **err)
{
    const function *what = functions;
    (void)argc;
    (void)err;
    while (strcmp(what->name, argv[0]) != 0) {
        what++; // the module is registered under these names alone
    }
    int rc = sqlite3_declare_vtab(db, what->schema);
    if (rc != SQLITE_OK) {
        return rc;
    }
    rows_table *t = sqlite3_malloc(sizeof *t);
    if (!t) {
        return SQLITE_NOMEM;
    }
    memset(t, 0, sizeof *t);
    t->what = what;
    t->db = aux;
    sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS);
    *out = &t->base;
    return SQLITE_OK;
}

static int x_disconnect(sqlite3_vtab *v)
{
    sqlite3_free(v);
    return SQLITE_OK;
}

int sql_rows_best_index(sqlite3_index_info *info, int columns, int args, int rows)
{
    int at[SQL_ROWS_ARGS_MAX], n = 0;
    for (int arg = 0; arg < args; arg++) {
        at[arg] = -1;
    }
    for (int i = 0; i < info->nConstraint; i++) {
        int arg = info->aConstraint[i].iColumn - columns;
        if (arg < 0 || info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_EQ) {
            continue;
        }
        if (!info->aConstraint[i].usable) {
            return SQLITE_CONSTRAINT; // another order of the join has it
        }
        at[arg] = i;
    }
    info->idxNum = 0;
    for (int arg = 0; arg < args; arg++) {
        if (at[arg] >= 0) {
            info->idxNum |= 1 << arg;
            info->aConstraintUsage[at[arg]].argvIndex = ++n;
            info->aConstraintUsage[at[arg]].omit = 1;
        }
    }
    info->estimatedCost = 2.5 * rows;
    info->estimatedRows = rows;
    return SQLITE_OK;
}

static int x_best_index(sqlite3_vtab *v, sqlite3_index_info *info)
{
    const function *what = ((rows_table *)v)->what;
    return sql_rows_best_index(info, what->columns, what->args, 4);
}

static int x_open(sqlite3_vtab *v, sqlite3_vtab_cursor **out)
{
    (void)v;
    rows_cursor *c = sqlite3_malloc(sizeof *c);
    if (!c) {
        return SQLITE_NOMEM;
    }
    memset(c, 0, sizeof *c);
    *out = &c->base;
    return SQLITE_OK;
}

static void clear(rows_cursor *c)
{
    if (c->expanded) {
        sql_expand_free(c->expanded, c->n);
    }
    for (int i = 0; i < ARGS_MAX; i++) {
        sqlite3_value_free(c->arg[i]);
        c->arg[i] = NULL;
    }
    c->n = c->at = 0;
}

static int x_close(sqlite3_vtab_cursor *base)
{
    rows_cursor *c = (rows_cursor *)base;
    clear(c);
    sqlite3_free(c->expanded);
    sqlite3_free(c);
    return SQLITE_OK;
}

static int x_filter(sqlite3_vtab_cursor *base, int idx_num, const char *idx_str, int argc,
                    sqlite3_value **argv)
{
    rows_cursor *c = (rows_cursor *)base;
    const function *what = ((rows_table *)base->pVtab)->what;
    (void)idx_str;
    clear(c);
    for (int arg = 0, k = 0; arg < what->args && k < argc; arg++) {
        if (idx_num & 1 << arg) {
            if (sqlite3_value_type(argv[k]) == SQLITE_NULL) {
                return SQLITE_OK;
            }
            c->arg[arg] = sqlite3_value_dup(argv[k++]);
            if (!c->arg[arg]) {
                return SQLITE_NOMEM;
            }
        }
    }
    for (int arg = 0; arg < what->need; arg++) {
        if (!c->arg[arg] || sqlite3_value_type(c->arg[arg]) == SQLITE_BLOB) {
            return SQLITE_OK; // a blob is no text
        }
    }
    return what->fill(c, c->arg);
}

static int x_next(sqlite3_vtab_cursor *c)
{
    ((rows_cursor *)c)->at++;
    return SQLITE_OK;
}

static int x_eof(sqlite3_vtab_cursor *c)
{
    return ((rows_cursor *)c)->at >= ((rows_cursor *)c)->n;
}

static int x_column(sqlite3_vtab_cursor *base, sqlite3_context *ctx, int i)
{
    const rows_cursor *c = (const rows_cursor *)base;
    const function *what = ((rows_table *)base->pVtab)->what;
    if (i < what->columns) {
        what->column(c, ctx, i);
    } else if (c->arg[i - what->columns]) {
        sqlite3_result_value(ctx, c->arg[i - what->columns]);
    }
    return SQLITE_OK;
}

static int x_rowid(sqlite3_vtab_cursor *c, sqlite3_int64 *out)
{
    *out = (sqlite3_int64)((rows_cursor *)c)->at + 1;
    return SQLITE_OK;
}

static const sqlite3_module module = {
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

int sql_rows_register(sql_db *d)
{
    int rc = SQLITE_OK;
    for (size_t i = 0; i < sizeof functions / sizeof *functions && rc == SQLITE_OK; i++) {
        d->refs++;
        rc = sqlite3_create_module_v2(d->db, functions[i].name, &module, d, sql_db_unref);
    }
    return rc;
}

/* ------------------------------------------------------------------------------- h5mem_has_tag */

void sql_has_tag_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    const char *tags = (const char *)sqlite3_value_text(argv[0]);
    const char *tag = (const char *)sqlite3_value_text(argv[1]);
    size_t n = (size_t)sqlite3_value_bytes(argv[0]), want = (size_t)sqlite3_value_bytes(argv[1]);
    if ((!tags && sqlite3_value_type(argv[0]) != SQLITE_NULL) ||
        (!tag && sqlite3_value_type(argv[1]) != SQLITE_NULL)) {
        sqlite3_result_error_nomem(ctx);
        return;
    }
    int found = tags && tag && st_has_tag(tags, n, tag, want);
    sqlite3_result_int(ctx, found);
}
