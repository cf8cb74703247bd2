/*
 * sql_h5_objects.c - hdf5_objects(file): what is in an HDF5 file, a row an object or link.
 *
 * All rows are made when the query starts, in path order. An object that does not open is a row of
 * kind 'error' with the reason as its target: one bad object does not hide the others.
 *
 *   bytes   of all the values as they are stored without filters (elements x element size); what
 *           variable-length elements point to is not in it
 *   attrs   number of attributes
 *   target  of a soft link its path; of an external link file:path; of a hard-link the path under
 *           which the object is listed
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "sql_h5.h"

/* The text columns first. */
enum {
    COL_PATH,
    COL_KIND,
    COL_DTYPE,
    COL_SHAPE,
    COL_MAXSHAPE,
    COL_LAYOUT,
    COL_CHUNKS,
    COL_FILTERS,
    COL_BYTES,
    COL_ATTRS,
    COL_TARGET,
    COL_FILE,
    COL_N
};
static const char schema[] = "CREATE TABLE x(path TEXT, kind TEXT, dtype TEXT, shape TEXT, "
                             "maxshape TEXT, layout TEXT, chunks TEXT, filters TEXT, "
                             "bytes INTEGER, attrs INTEGER, target TEXT, file TEXT HIDDEN)";

typedef struct object_row {
    char *text[COL_N]; /* NULL: SQL's NULL; by sqlite3_malloc */
    int64_t bytes, attrs;
} object_row;

typedef struct objects_cursor {
    sqlite3_vtab_cursor base;
    sql_h5 h;
    object_row *rows;
    size_t n, room, at;
    int no_memory;
} objects_cursor;

/* ----------------------------------------------------------------------------------- one object */

static const char *kind_name(int kind)
{
    switch (kind) {
    case H5_KIND_GROUP:
        return "group";
    case H5_KIND_DATASET:
        return "dataset";
    case H5_KIND_TYPE:
        return "named-type";
    case H5_ITEM_SOFT:
        return "soft-link";
    case H5_ITEM_EXTERNAL:
        return "external-link";
    case H5_ITEM_USER:
        return "user-link";
    case H5_ITEM_SAME:
        return "hard-link";
    default:
        return "error";
    }
}

static void filter_names(sqlite3_str *s, const h5_pipeline *p)
{
    static const struct {
        int id;
        const char *name;
    } known[] = {{1, "deflate"},   {2, "shuffle"},     {3, "fletcher32"},     {4, "szip"},
                 {5, "nbit"},      {6, "scaleoffset"}, {307, "bzip2"},        {32000, "lzf"},
                 {32001, "blosc"}, {32004, "lz4"},     {32008, "bitshuffle"}, {32013, "zfp"},
                 {32015, "zstd"},  {32026, "blosc2"}};
    sqlite3_str_appendchar(s, 1, '[');
    for (int i = 0; i < p->n; i++) {
        const char *name = NULL;
        for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
            name = known[k].id == p->filter[i].id ? known[k].name : name;
        }
        sqlite3_str_appendall(s, i ? "," : "");
        if (name) {
            sqlite3_str_appendf(s, "\"%s\"", name);
        } else {
            sqlite3_str_appendf(s, "\"filter %d\"", p->filter[i].id);
        }
    }
    sqlite3_str_appendchar(s, 1, ']');
}

/* Makes one text cell; an empty one becomes NULL. */
static char *finish(objects_cursor *c, sqlite3_str *s)
{
    c->no_memory |= sqlite3_str_errcode(s) != SQLITE_OK;
    return sqlite3_str_finish(s);
}

static char *copy(objects_cursor *c, const char *text)
{
    sqlite3_str *s = sqlite3_str_new(NULL);
    sqlite3_str_appendall(s, text);
    return finish(c, s);
}

static char *sizes(objects_cursor *c, int rank, const uint64_t *of)
{
    sqlite3_str *s = sqlite3_str_new(NULL);
    sql_h5_sizes(s, rank, of);
    return finish(c, s);
}

static void add_dataset(objects_cursor *c, object_row *row, const h5_object *o)
{
    const h5_dataset_info *d = h5_object_dataset(o);
    uint64_t chunk[H5_RANK_MAX], bytes = d->type.size;
    if (d->space == H5_SPACE_NULL) {
        bytes = 0;
    } else {
        row->text[COL_SHAPE] = sizes(c, d->rank, d->dims);
        row->text[COL_MAXSHAPE] = sizes(c, d->rank, d->maxdims);
    }
    row->text[COL_LAYOUT] = copy(c, h5_layout_name(o));
    for (int i = 0; i < d->rank; i++) {
        chunk[i] = d->chunk[i];
        bytes = d->dims[i] && bytes > (uint64_t)INT64_MAX / d->dims[i] ? UINT64_MAX
                                                                       : bytes * d->dims[i];
    }
    row->bytes = bytes > INT64_MAX ? -1 : (int64_t)bytes;
    if (d->layout == H5_LAYOUT_CHUNKED) {
        sqlite3_str *s = sqlite3_str_new(NULL);
        row->text[COL_CHUNKS] = sizes(c, d->rank, chunk);
        filter_names(s, &d->pipeline);
        row->text[COL_FILTERS] = finish(c, s);
    }
}

static void add_object(objects_cursor *c, object_row *row, const h5_object *o)
{
    const h5_attr *attrs;
    const h5_type *type = h5_object_type(o);
    row->attrs = (int64_t)h5_object_attrs(o, &attrs);
    if (type) {
        sqlite3_str *s = sqlite3_str_new(NULL);
        c->no_memory |= sql_h5_dtype(s, type) != SQLITE_OK;
        row->text[COL_DTYPE] = finish(c, s);
    }
    if (h5_object_dataset(o)) {
        add_dataset(c, row, o);
    }
}

static char *target(objects_cursor *c, const h5_item *item)
{
    switch (item->kind) {
    case H5_ITEM_SAME:
        return copy(c, item->same_as);
    case H5_ITEM_ERROR:
        return copy(c, item->error->text);
    case H5_ITEM_SOFT:
        return copy(c, item->link->path);
    case H5_ITEM_EXTERNAL: {
        sqlite3_str *s = sqlite3_str_new(NULL);
        sqlite3_str_appendf(s, "%s:%s", item->link->file, item->link->path);
        return finish(c, s);
    }
    default:
        return NULL;
    }
}

static int add_item(void *ctx, const h5_item *item)
{
    objects_cursor *c = ctx;
    if (item->kind == H5_ITEM_ERROR && item->error->code == H5_NOMEM) {
        return SQLITE_NOMEM; // says nothing of the object
    }
    if (c->n == c->room) {
        size_t room = c->room ? 2 * c->room : 16;
        object_row *more = sqlite3_realloc64(c->rows, room * sizeof *more);
        if (!more) {
            return SQLITE_NOMEM;
        }
        c->rows = more;
        c->room = room;
    }
    object_row *row = &c->rows[c->n++];
    *row = (object_row){.bytes = -1, .attrs = -1};
    row->text[COL_PATH] = copy(c, item->path);
    row->text[COL_KIND] = copy(c, kind_name(item->kind));
    row->text[COL_TARGET] = target(c, item);
    if (item->object) {
        add_object(c, row, item->object);
    }
    return c->no_memory ? SQLITE_NOMEM : 0;
}

/* --------------------------------------------------------------------------------------- module */

static void forget_rows(objects_cursor *c)
{
    for (size_t i = 0; i < c->n; i++) {
        for (int k = 0; k < COL_N; k++) {
            sqlite3_free(c->rows[i].text[k]);
        }
    }
    sqlite3_free(c->rows);
    c->rows = NULL;
    c->n = c->room = c->at = 0;
    c->no_memory = 0;
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
    return sql_h5_tvf_plan(v, info, "hdf5_objects", COL_FILE, 1);
}

static int x_open(sqlite3_vtab *v, sqlite3_vtab_cursor **out)
{
    (void)v;
    objects_cursor *c = sqlite3_malloc(sizeof *c);
    if (!c) {
        return SQLITE_NOMEM;
    }
    *c = (objects_cursor){.h.who = "hdf5_objects"};
    *out = &c->base;
    return SQLITE_OK;
}

static int x_close(sqlite3_vtab_cursor *cur)
{
    objects_cursor *c = (objects_cursor *)cur;
    forget_rows(c);
    sql_h5_close(&c->h);
    sqlite3_free(c);
    return SQLITE_OK;
}

static int x_filter(sqlite3_vtab_cursor *cur, int idx_num, const char *idx_str, int argc,
                    sqlite3_value **argv)
{
    objects_cursor *c = (objects_cursor *)cur;
    const char *path;
    h5_error err;
    (void)idx_num;
    (void)idx_str;
    (void)argc;
    forget_rows(c);
    h5_error_clear(&err);
    int rc = sql_h5_text(&c->h, "file", argv[0], &path);
    if (rc == SQLITE_OK) {
        rc = sql_h5_open(&c->h, path);
    }
    if (rc == SQLITE_OK) {
        rc = h5_walk(c->h.file, add_item, c, &err);
        if (rc < 0) {
            rc = sql_h5_fail_core(&c->h, &err);
        }
    }
    if (rc != SQLITE_OK) {
        forget_rows(c);
    }
    return sql_h5_to_vtab(&c->h, rc, cur->pVtab);
}

static int x_next(sqlite3_vtab_cursor *cur)
{
    ((objects_cursor *)cur)->at++;
    return SQLITE_OK;
}

static int x_eof(sqlite3_vtab_cursor *cur)
{
    const objects_cursor *c = (const objects_cursor *)cur;
    return c->at >= c->n;
}

static int x_column(sqlite3_vtab_cursor *cur, sqlite3_context *ctx, int i)
{
    const objects_cursor *c = (const objects_cursor *)cur;
    const object_row *row = &c->rows[c->at];
    if (i == COL_BYTES || i == COL_ATTRS) {
        int64_t n = i == COL_BYTES ? row->bytes : row->attrs;
        if (n >= 0) {
            sqlite3_result_int64(ctx, n);
        }
    } else {
        const char *text = i == COL_FILE ? c->h.path : row->text[i];
        if (text) {
            sql_h5_result_name(ctx, text);
        }
    }
    return SQLITE_OK;
}

static int x_rowid(sqlite3_vtab_cursor *cur, sqlite3_int64 *out)
{
    *out = (sqlite3_int64)((objects_cursor *)cur)->at + 1;
    return SQLITE_OK;
}

const sqlite3_module sql_h5_objects_module = {
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
