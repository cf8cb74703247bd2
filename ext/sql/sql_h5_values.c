/*
 * sql_h5_values.c - hdf5_values(file, object [, start, count, stride]): a row an element.
 *
 * start, count and stride are JSON arrays with a number for each dimension (null: the default), or
 * one integer for a dataset of one dimension. i0, i1, ... are places in the dataset, not in the
 * selection; those past its rank are NULL. SQL wants the columns before it knows the dataset, so
 * i0 to i3 show in SELECT * and i4 to i31 are hidden.
 *
 * Comparisons of i0, ... with numbers narrow what is read.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "sql_h5.h"

enum { COL_VALUE = 4, COL_FILE, COL_OBJECT, COL_START, COL_COUNT, COL_STRIDE, COL_I4 };
enum { ARGS = 5 }; /* file, object, start, count, stride */
static const char schema[] =
    "CREATE TABLE x(i0 INTEGER, i1 INTEGER, i2 INTEGER, i3 INTEGER, value, file TEXT HIDDEN, "
    "object TEXT HIDDEN, start HIDDEN, count HIDDEN, stride HIDDEN, i4 HIDDEN, i5 HIDDEN, "
    "i6 HIDDEN, i7 HIDDEN, i8 HIDDEN, i9 HIDDEN, i10 HIDDEN, i11 HIDDEN, i12 HIDDEN, i13 HIDDEN, "
    "i14 HIDDEN, i15 HIDDEN, i16 HIDDEN, i17 HIDDEN, i18 HIDDEN, i19 HIDDEN, i20 HIDDEN, "
    "i21 HIDDEN, i22 HIDDEN, i23 HIDDEN, i24 HIDDEN, i25 HIDDEN, i26 HIDDEN, i27 HIDDEN, "
    "i28 HIDDEN, i29 HIDDEN, i30 HIDDEN, i31 HIDDEN)";

typedef struct values_cursor {
    sqlite3_vtab_cursor base;
    sql_h5 h;
    h5_object *object;
    sql_h5_scan scan;
    sqlite3_value *args[ARGS]; /* copies, NULL where not given */
    sqlite3_int64 row;
} values_cursor;

/* The dimension that a column is the index of, -1 for the others. */
static int dimension(int col)
{
    return col < 0 ? -1 : col < COL_VALUE ? col : col >= COL_I4 ? col - COL_I4 + 4 : -1;
}

static int x_connect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out,
                     char **err)
{
    (void)aux;
    (void)argc;
    (void)argv;
    (void)err;
    return sql_h5_tvf_connect(db, schema, out);
}

static int x_best_index(sqlite3_vtab *v, sqlite3_index_info *info)
{
    int next;
    int rc = sql_h5_tvf_args(v, info, "hdf5_values", COL_FILE, ARGS, &next);
    if (rc != SQLITE_OK) {
        return rc;
    }
    info->estimatedCost = 1e6;
    info->estimatedRows = 100000;
    return sql_h5_plan_indices(info, dimension, next);
}

static int x_open(sqlite3_vtab *v, sqlite3_vtab_cursor **out)
{
    (void)v;
    values_cursor *c = sqlite3_malloc(sizeof *c);
    if (!c) {
        return SQLITE_NOMEM;
    }
    *c = (values_cursor){.h.who = "hdf5_values", .scan.done = 1};
    *out = &c->base;
    return SQLITE_OK;
}

static void forget_object(values_cursor *c)
{
    sql_h5_scan_close(&c->scan);
    h5_object_close(c->object);
    c->object = NULL;
    for (int i = 0; i < ARGS; i++) {
        sqlite3_value_free(c->args[i]);
        c->args[i] = NULL;
    }
    c->row = 0;
}

static int x_close(sqlite3_vtab_cursor *cur)
{
    values_cursor *c = (values_cursor *)cur;
    forget_object(c);
    sql_h5_close(&c->h);
    sqlite3_free(c);
    return SQLITE_OK;
}

/* Keeps the arguments; the rest of argv goes with idx_str. */
static int take_args(values_cursor *c, int idx_num, sqlite3_value ***argv)
{
    for (int i = 0; i < ARGS; i++) {
        if (idx_num >> i & 1) {
            c->args[i] = sqlite3_value_dup(*(*argv)++);
            if (!c->args[i]) {
                return SQLITE_NOMEM;
            }
        }
    }
    return SQLITE_OK;
}

static int open_object(values_cursor *c)
{
    const char *path, *object;
    if (!c->args[1]) {
        return sql_h5_fail(&c->h, SQLITE_ERROR, "it takes the path of a dataset in the file");
    }
    int rc = sql_h5_text(&c->h, "file", c->args[0], &path);
    if (rc == SQLITE_OK) {
        rc = sql_h5_text(&c->h, "object", c->args[1], &object);
    }
    if (rc == SQLITE_OK) {
        rc = sql_h5_open(&c->h, path);
    }
    if (rc == SQLITE_OK) {
        rc = sql_h5_find(&c->h, object, &c->object);
    }
    if (rc == SQLITE_OK && !h5_object_dataset(c->object)) {
        rc = sql_h5_fail(&c->h, SQLITE_ERROR, "it is no dataset");
    }
    return rc;
}

static int x_filter(sqlite3_vtab_cursor *cur, int idx_num, const char *idx_str, int argc,
                    sqlite3_value **argv)
{
    values_cursor *c = (values_cursor *)cur;
    sql_h5_box box;
    (void)argc;
    forget_object(c);
    int rc = take_args(c, idx_num, &argv);
    if (rc == SQLITE_OK) {
        rc = open_object(c);
    }
    if (rc == SQLITE_OK) {
        const h5_dataset_info *d = h5_object_dataset(c->object);
        rc = sql_h5_box_parse(&c->h, d, c->args[2], c->args[3], c->args[4], &box);
        if (rc == SQLITE_OK) {
            int some = sql_h5_box_narrow(&box, d->rank, idx_str, argv);
            rc = some ? sql_h5_scan_open(&c->h, c->object, &box, d->rank, &c->scan) : SQLITE_OK;
        }
    }
    return sql_h5_to_vtab(&c->h, rc, cur->pVtab);
}

static int x_next(sqlite3_vtab_cursor *cur)
{
    values_cursor *c = (values_cursor *)cur;
    c->row++;
    return sql_h5_to_vtab(&c->h, sql_h5_scan_next(&c->h, &c->scan), cur->pVtab);
}

static int x_eof(sqlite3_vtab_cursor *cur)
{
    return ((values_cursor *)cur)->scan.done;
}

static int x_column(sqlite3_vtab_cursor *cur, sqlite3_context *ctx, int i)
{
    values_cursor *c = (values_cursor *)cur;
    int dim = dimension(i);
    if (i == COL_VALUE) {
        int rc = sql_h5_result(&c->h, &c->scan.info->type, c->scan.item, ctx);
        if (rc != SQLITE_OK) {
            sql_h5_to_result(&c->h, rc, ctx);
        }
    } else if (dim < 0) {
        if (c->args[i - COL_FILE]) {
            sqlite3_result_value(ctx, c->args[i - COL_FILE]);
        }
    } else if (dim < c->scan.lead) {
        sqlite3_result_int64(ctx, (sqlite3_int64)sql_h5_scan_index(&c->scan, dim));
    }
    return SQLITE_OK;
}

static int x_rowid(sqlite3_vtab_cursor *cur, sqlite3_int64 *out)
{
    *out = ((values_cursor *)cur)->row + 1;
    return SQLITE_OK;
}

const sqlite3_module sql_h5_values_module = {
    .xConnect = x_connect,
    .xBestIndex = x_best_index,
    .xDisconnect = sql_h5_tvf_disconnect,
    .xOpen = x_open,
    .xClose = x_close,
    .xFilter = x_filter,
    .xNext = x_next,
    .xEof = x_eof,
    .xColumn = x_column,
    .xRowid = x_rowid,
};
