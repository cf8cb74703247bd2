/*
 * sql_h5_attributes.c - hdf5_attributes(file [, object]): the attributes of an object, "/" by
 * default.
 *
 * An attribute of several elements is a JSON array. One whose type or shape hdf5core does not read
 * is listed with NULL for dtype and value.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "sql_h5.h"

enum { COL_NAME, COL_DTYPE, COL_SHAPE, COL_VALUE, COL_FILE, COL_OBJECT };
static const char schema[] = "CREATE TABLE x(name TEXT, dtype TEXT, shape TEXT, value, "
                             "file TEXT HIDDEN, object TEXT HIDDEN)";

typedef struct attributes_cursor {
    sqlite3_vtab_cursor base;
    sql_h5 h;
    h5_object *object;
    const h5_attr *attrs;
    size_t n, at;
} attributes_cursor;

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
    return sql_h5_tvf_plan(v, info, "hdf5_attributes", COL_FILE, 2);
}

static int x_open(sqlite3_vtab *v, sqlite3_vtab_cursor **out)
{
    (void)v;
    attributes_cursor *c = sqlite3_malloc(sizeof *c);
    if (!c) {
        return SQLITE_NOMEM;
    }
    *c = (attributes_cursor){.h.who = "hdf5_attributes"};
    *out = &c->base;
    return SQLITE_OK;
}

static void forget_object(attributes_cursor *c)
{
    h5_object_close(c->object);
    c->object = NULL;
    c->n = c->at = 0;
}

static int x_close(sqlite3_vtab_cursor *cur)
{
    attributes_cursor *c = (attributes_cursor *)cur;
    forget_object(c);
    sql_h5_close(&c->h);
    sqlite3_free(c);
    return SQLITE_OK;
}

static int x_filter(sqlite3_vtab_cursor *cur, int idx_num, const char *idx_str, int argc,
                    sqlite3_value **argv)
{
    attributes_cursor *c = (attributes_cursor *)cur;
    const char *path, *object = "/";
    (void)idx_str;
    (void)argc;
    forget_object(c);
    int rc = sql_h5_text(&c->h, "file", argv[0], &path);
    if (rc == SQLITE_OK && (idx_num & 2)) {
        rc = sql_h5_text(&c->h, "object", argv[1], &object);
    }
    if (rc == SQLITE_OK) {
        rc = sql_h5_open(&c->h, path);
    }
    if (rc == SQLITE_OK) {
        rc = sql_h5_find(&c->h, object, &c->object);
    }
    if (rc == SQLITE_OK) {
        c->n = h5_object_attrs(c->object, &c->attrs);
    }
    return sql_h5_to_vtab(&c->h, rc, cur->pVtab);
}

static int x_next(sqlite3_vtab_cursor *cur)
{
    ((attributes_cursor *)cur)->at++;
    return SQLITE_OK;
}

static int x_eof(sqlite3_vtab_cursor *cur)
{
    const attributes_cursor *c = (const attributes_cursor *)cur;
    return c->at >= c->n;
}

static void result_str(sqlite3_context *ctx, sqlite3_str *s)
{
    char *text = sqlite3_str_finish(s);
    if (text) {
        sqlite3_result_text(ctx, text, -1, sqlite3_free);
    } else {
        sqlite3_result_error_nomem(ctx);
    }
}

static void result_value(attributes_cursor *c, const h5_attr *a, sqlite3_context *ctx)
{
    if (a->type.cls == H5_CLASS_OTHER || a->space == H5_SPACE_NULL || !a->data) {
        return;
    }
    int rc = a->rank == 0 ? sql_h5_result(&c->h, &a->type, a->data, ctx)
                          : sql_h5_result_array(&c->h, &a->type, a->data, a->rank, a->dims, ctx);
    if (rc != SQLITE_OK) {
        sql_h5_to_result(&c->h, rc, ctx);
    }
}

static int x_column(sqlite3_vtab_cursor *cur, sqlite3_context *ctx, int i)
{
    attributes_cursor *c = (attributes_cursor *)cur;
    const h5_attr *a = &c->attrs[c->at];
    sqlite3_str *s;
    switch (i) {
    case COL_NAME:
        sql_h5_result_name(ctx, a->name);
        break;
    case COL_DTYPE:
        if (a->type.cls != H5_CLASS_OTHER) {
            s = sqlite3_str_new(NULL);
            int rc = sql_h5_dtype(s, &a->type);
            result_str(ctx, s);
            if (rc != SQLITE_OK) {
                sqlite3_result_error_code(ctx, rc);
            }
        }
        break;
    case COL_SHAPE:
        if (a->type.cls != H5_CLASS_OTHER && a->space != H5_SPACE_NULL) {
            s = sqlite3_str_new(NULL);
            sql_h5_sizes(s, a->rank, a->dims);
            result_str(ctx, s);
        }
        break;
    case COL_VALUE:
        result_value(c, a, ctx);
        break;
    default:
        sqlite3_result_text(ctx, i == COL_FILE ? c->h.path : c->h.object, -1, SQLITE_TRANSIENT);
    }
    return SQLITE_OK;
}

static int x_rowid(sqlite3_vtab_cursor *cur, sqlite3_int64 *out)
{
    *out = (sqlite3_int64)((attributes_cursor *)cur)->at + 1;
    return SQLITE_OK;
}

const sqlite3_module sql_h5_attributes_module = {
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
