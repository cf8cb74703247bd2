/*
 * sql_h5_table.c - CREATE VIRTUAL TABLE t USING hdf5('file', '/object'): a dataset as a table.
 *
 *   compound of up to one dimension   a column a field
 *   two dimensions                    a row a row, columns c0, c1, ...
 *   everything else                   column value; of three dimensions and more, JSON of the part
 *                                     under one index of the first
 *
 * The rowid is the index along the first dimension, from 0. A relative path is relative to the
 * folder of the schema's database file. The table is read-only and has SQLite's default risk level.
 *
 * FORMAT   shadow table t_columns(declaration TEXT): one row, the columns as CREATE found them, so
 *          that a database is opened, listed and dropped without the file. A query whose file has
 *          other columns by then fails.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "sql_h5.h"

enum { SHAPE_FIELDS, SHAPE_ROWS, SHAPE_VALUE };

typedef struct h5_table {
    sqlite3_vtab base;
    sqlite3 *db;
    char *schema, *name, *path, *object, *declaration;
} h5_table;

typedef struct table_cursor {
    sqlite3_vtab_cursor base;
    sql_h5 h;
    h5_object *object;
    sql_h5_scan scan;
} table_cursor;

/* -------------------------------------------------------------------------------------- columns */

static int shape_of(const h5_dataset_info *d)
{
    if (d->type.cls == H5_CLASS_COMPOUND && d->rank <= 1 && d->type.nmember > 0) {
        return SHAPE_FIELDS;
    }
    return d->type.cls != H5_CLASS_COMPOUND && d->rank == 2 ? SHAPE_ROWS : SHAPE_VALUE;
}

/* For comparisons; an unsigned integer of 8 bytes may be TEXT and has none. */
static const char *affinity(const h5_type *t)
{
    switch (t->cls) {
    case H5_CLASS_INTEGER:
        return t->size < 8 || (t->size == 8 && t->is_signed) ? " INTEGER" : "";
    case H5_CLASS_FLOAT:
        return " REAL";
    case H5_CLASS_STRING:
    case H5_CLASS_ENUM:
        return " TEXT";
    default:
        return t->cls == H5_CLASS_VLEN && t->is_text ? " TEXT" : "";
    }
}

/* A field's name; one that SQLite would take for an earlier one, or for none, gets its number. */
static void field_name(sqlite3_str *s, const h5_type *t, uint32_t at)
{
    const char *name = t->member[at].name;
    int clear = *name && sql_h5_is_utf8(name, strlen(name));
    for (uint32_t i = 0; i < at && clear; i++) {
        clear = sqlite3_stricmp(name, t->member[i].name) != 0;
    }
    if (clear) {
        sqlite3_str_appendf(s, "\"%w\"", name);
    } else {
        sqlite3_str_appendf(s, "\"field %u\"", at);
    }
}

/* "CREATE TABLE x(...)" for a dataset. *out by sqlite3_malloc. */
static int declare(sql_h5 *h, sqlite3 *db, const h5_object *o, char **out)
{
    const h5_dataset_info *d = h5_object_dataset(o);
    *out = NULL;
    if (!d) {
        return sql_h5_fail(h, SQLITE_ERROR, "it is no dataset");
    }
    int shape = shape_of(d);
    uint64_t n = shape == SHAPE_FIELDS ? d->type.nmember : shape == SHAPE_ROWS ? d->dims[1] : 1;
    uint64_t most = (uint64_t)sqlite3_limit(db, SQLITE_LIMIT_COLUMN, -1);
    if (n == 0 || n > most) {
        return sql_h5_fail(h, SQLITE_ERROR,
                           "%llu columns, a table may have 1 to %llu; use hdf5_values",
                           (unsigned long long)n, (unsigned long long)most);
    }
    sqlite3_str *s = sqlite3_str_new(NULL);
    sqlite3_str_appendall(s, "CREATE TABLE x(");
    for (uint32_t i = 0; i < (uint32_t)n; i++) {
        sqlite3_str_appendall(s, i ? ", " : "");
        if (shape == SHAPE_FIELDS) {
            field_name(s, &d->type, i);
            sqlite3_str_appendall(s, affinity(d->type.member[i].type));
        } else if (shape == SHAPE_ROWS) {
            sqlite3_str_appendf(s, "c%u%s", i, affinity(&d->type));
        } else {
            sqlite3_str_appendf(s, "value%s", d->rank <= 1 ? affinity(&d->type) : " TEXT");
        }
    }
    sqlite3_str_appendchar(s, 1, ')');
    *out = sqlite3_str_finish(s);
    return *out ? SQLITE_OK : SQLITE_NOMEM;
}

/* ---------------------------------------------------------------------------- the shadow table */

static int run(sqlite3 *db, char *sql)
{
    int rc = sql ? sqlite3_exec(db, sql, NULL, NULL, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    return rc;
}

static int save_columns(h5_table *t)
{
    sqlite3_int64 last = sqlite3_last_insert_rowid(t->db);
    int rc = run(t->db, sqlite3_mprintf("CREATE TABLE \"%w\".\"%w_columns\"(declaration TEXT)",
                                        t->schema, t->name));
    if (rc == SQLITE_OK) {
        rc = run(t->db, sqlite3_mprintf("INSERT INTO \"%w\".\"%w_columns\" VALUES(%Q)", t->schema,
                                        t->name, t->declaration));
        sqlite3_set_last_insert_rowid(t->db, last);
    }
    return rc;
}

/* Without a row the declaration stays NULL. */
static int load_columns(h5_table *t)
{
    sqlite3_stmt *stmt = NULL;
    char *sql = sqlite3_mprintf("SELECT declaration FROM \"%w\".\"%w_columns\"", t->schema,
                                t->name);
    int rc = sql ? sqlite3_prepare_v2(t->db, sql, -1, &stmt, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    if (rc == SQLITE_ERROR) {
        return SQLITE_OK; // no such table
    }
    if (rc == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(stmt, 0);
        t->declaration = text ? sqlite3_mprintf("%s", text) : NULL;
    }
    int end = sqlite3_finalize(stmt);
    return rc == SQLITE_OK ? end : rc;
}

/* ----------------------------------------------------------------------------------- the table */

static void free_table(h5_table *t)
{
    if (t) {
        sqlite3_free(t->schema);
        sqlite3_free(t->name);
        sqlite3_free(t->path);
        sqlite3_free(t->object);
        sqlite3_free(t->declaration);
        sqlite3_free(t);
    }
}

/* An argument of CREATE without its quotes; NULL when it has none or memory is out. */
static char *unquote(const char *text)
{
    char quote = *text;
    size_t n = strlen(text);
    if ((quote != '\'' && quote != '"') || n < 3 || text[n - 1] != quote) {
        return NULL;
    }
    char *out = sqlite3_mprintf("%.*s", (int)n - 2, text + 1);
    char *to = out;
    for (const char *from = out; from && *from; from++) {
        *to++ = *from;
        from += from[0] == quote && from[1] == quote;
    }
    if (to) {
        *to = 0;
    }
    return out;
}

static int new_table(sqlite3 *db, int argc, const char *const *argv, h5_table **out, char **err)
{
    int host_file;
    char *file = argc == 5 ? unquote(argv[3]) : NULL;
    char *object = argc == 5 ? unquote(argv[4]) : NULL;
    *out = NULL;
    if (!file || !object) {
        sqlite3_free(file);
        sqlite3_free(object);
        *err = sql_message(argv[2], NULL,
                           "USING hdf5 takes a file and a dataset in it, both in quotes: "
                           "hdf5('any.h5', '/table')");
        return SQLITE_ERROR;
    }
    h5_table *t = sqlite3_malloc(sizeof *t);
    int rc = t ? SQLITE_OK : SQLITE_NOMEM;
    if (t) {
        *t = (h5_table){.db = db, .object = object};
        object = NULL;
        t->schema = sqlite3_mprintf("%s", argv[1]);
        t->name = sqlite3_mprintf("%s", argv[2]);
        rc = sql_path_resolve(db, argv[1], file, &t->path, &host_file);
        rc = t->schema && t->name ? rc : SQLITE_NOMEM;
    }
    sqlite3_free(file);
    sqlite3_free(object);
    if (rc != SQLITE_OK) {
        free_table(t);
        return rc;
    }
    *out = t;
    return SQLITE_OK;
}

/* Opens file and dataset and finds the columns. Close h and *o in any case. */
static int look(h5_table *t, sql_h5 *h, h5_object **o, char **declaration)
{
    *o = NULL;
    *declaration = NULL;
    h->who = t->name;
    int rc = sql_h5_open(h, t->path);
    if (rc == SQLITE_OK) {
        rc = sql_h5_find(h, t->object, o);
    }
    return rc == SQLITE_OK ? declare(h, t->db, *o, declaration) : rc;
}

static int x_create(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out,
                    char **err)
{
    h5_table *t;
    sql_h5 h = {0};
    h5_object *o = NULL;
    (void)aux;
    int rc = new_table(db, argc, argv, &t, err);
    if (rc != SQLITE_OK) {
        return rc;
    }
    rc = look(t, &h, &o, &t->declaration);
    if (rc == SQLITE_OK) {
        rc = save_columns(t);
    }
    if (rc == SQLITE_OK) {
        rc = sqlite3_declare_vtab(db, t->declaration);
    }
    if (rc != SQLITE_OK) {
        *err = h.message ? sqlite3_mprintf("%s", h.message)
                         : sqlite3_mprintf("h5mem: %s: %s", t->name, sqlite3_errmsg(db));
    }
    h5_object_close(o);
    sql_h5_close(&h);
    if (rc != SQLITE_OK) {
        free_table(t);
        return rc;
    }
    *out = &t->base;
    return SQLITE_OK;
}

static int x_connect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out,
                     char **err)
{
    h5_table *t;
    (void)aux;
    int rc = new_table(db, argc, argv, &t, err);
    if (rc != SQLITE_OK) {
        return rc;
    }
    rc = load_columns(t);
    // Without its columns it still connects, so that it can be dropped; queries fail.
    if (rc == SQLITE_OK) {
        rc = sqlite3_declare_vtab(db, t->declaration ? t->declaration : "CREATE TABLE x(value)");
    }
    if (rc != SQLITE_OK) {
        *err = sqlite3_mprintf("h5mem: %s: %s", t->name, sqlite3_errmsg(db));
        free_table(t);
        return rc;
    }
    *out = &t->base;
    return SQLITE_OK;
}

static int x_disconnect(sqlite3_vtab *v)
{
    free_table((h5_table *)v);
    return SQLITE_OK;
}

static int x_destroy(sqlite3_vtab *v)
{
    h5_table *t = (h5_table *)v;
    int rc = run(t->db,
                 sqlite3_mprintf("DROP TABLE IF EXISTS \"%w\".\"%w_columns\"", t->schema, t->name));
    if (rc == SQLITE_OK) {
        free_table(t);
    }
    return rc;
}

static int x_rename(sqlite3_vtab *v, const char *name)
{
    h5_table *t = (h5_table *)v;
    char *copy = sqlite3_mprintf("%s", name);
    int rc = copy ? run(t->db, sqlite3_mprintf("ALTER TABLE \"%w\".\"%w_columns\" RENAME TO "
                                               "\"%w_columns\"",
                                               t->schema, t->name, name))
                  : SQLITE_NOMEM;
    if (rc == SQLITE_OK) {
        sqlite3_free(t->name);
        t->name = copy;
    } else {
        sqlite3_free(copy);
    }
    return rc;
}

static int x_shadow_name(const char *name)
{
    return sqlite3_stricmp(name, "columns") == 0;
}

/* ------------------------------------------------------------------------------------ queries */

static int dimension(int col)
{
    return col == -1 ? 0 : -1; // the rowid is the index of the first
}

static int x_best_index(sqlite3_vtab *v, sqlite3_index_info *info)
{
    (void)v;
    info->estimatedCost = 1e6;
    info->estimatedRows = 100000;
    return sql_h5_plan_indices(info, dimension, 1);
}

static int x_open(sqlite3_vtab *v, sqlite3_vtab_cursor **out)
{
    table_cursor *c = sqlite3_malloc(sizeof *c);
    if (!c) {
        return SQLITE_NOMEM;
    }
    *c = (table_cursor){.h.who = ((h5_table *)v)->name, .scan.done = 1};
    *out = &c->base;
    return SQLITE_OK;
}

static void forget_object(table_cursor *c)
{
    sql_h5_scan_close(&c->scan);
    h5_object_close(c->object);
    c->object = NULL;
}

static int x_close(sqlite3_vtab_cursor *cur)
{
    table_cursor *c = (table_cursor *)cur;
    forget_object(c);
    sql_h5_close(&c->h);
    sqlite3_free(c);
    return SQLITE_OK;
}

static int x_filter(sqlite3_vtab_cursor *cur, int idx_num, const char *idx_str, int argc,
                    sqlite3_value **argv)
{
    table_cursor *c = (table_cursor *)cur;
    h5_table *t = (h5_table *)cur->pVtab;
    char *declaration;
    sql_h5_box box;
    (void)idx_num;
    (void)argc;
    forget_object(c);
    int rc = look(t, &c->h, &c->object, &declaration);
    if (rc == SQLITE_OK && (!t->declaration || strcmp(declaration, t->declaration) != 0)) {
        rc = sql_h5_fail(&c->h, SQLITE_ERROR,
                         "its columns are not those that CREATE found; drop and create the table");
    }
    sqlite3_free(declaration);
    if (rc == SQLITE_OK) {
        const h5_dataset_info *d = h5_object_dataset(c->object);
        sql_h5_box_all(d, &box);
        // a scalar has one row, whose rowid is 0
        int some = d->rank == 0 || sql_h5_box_narrow(&box, d->rank, idx_str, argv);
        if (some) {
            rc = sql_h5_scan_open(&c->h, c->object, &box, d->rank > 0, &c->scan);
        }
    }
    return sql_h5_to_vtab(&c->h, rc, cur->pVtab);
}

static int x_next(sqlite3_vtab_cursor *cur)
{
    table_cursor *c = (table_cursor *)cur;
    return sql_h5_to_vtab(&c->h, sql_h5_scan_next(&c->h, &c->scan), cur->pVtab);
}

static int x_eof(sqlite3_vtab_cursor *cur)
{
    return ((table_cursor *)cur)->scan.done;
}

static int x_column(sqlite3_vtab_cursor *cur, sqlite3_context *ctx, int i)
{
    table_cursor *c = (table_cursor *)cur;
    const h5_dataset_info *d = c->scan.info;
    const uint8_t *p = c->scan.item;
    int rc;
    switch (shape_of(d)) {
    case SHAPE_FIELDS:
        rc = sql_h5_result(&c->h, d->type.member[i].type, p + d->type.member[i].offset, ctx);
        break;
    case SHAPE_ROWS:
        rc = sql_h5_result(&c->h, &d->type, p + (size_t)i * d->type.size, ctx);
        break;
    default:
        rc = d->rank <= 1 ? sql_h5_result(&c->h, &d->type, p, ctx)
                          : sql_h5_result_array(&c->h, &d->type, p, d->rank - 1, d->dims + 1, ctx);
    }
    if (rc != SQLITE_OK) {
        sql_h5_to_result(&c->h, rc, ctx);
    }
    return SQLITE_OK;
}

static int x_rowid(sqlite3_vtab_cursor *cur, sqlite3_int64 *out)
{
    const table_cursor *c = (const table_cursor *)cur;
    *out = c->scan.lead ? (sqlite3_int64)sql_h5_scan_index(&c->scan, 0) : 0;
    return SQLITE_OK;
}

const sqlite3_module sql_h5_table_module = {
    .iVersion = 3,
    .xCreate = x_create,
    .xConnect = x_connect,
    .xBestIndex = x_best_index,
    .xDisconnect = x_disconnect,
    .xDestroy = x_destroy,
    .xOpen = x_open,
    .xClose = x_close,
    .xFilter = x_filter,
    .xNext = x_next,
    .xEof = x_eof,
    .xColumn = x_column,
    .xRowid = x_rowid,
    .xRename = x_rename,
    .xShadowName = x_shadow_name,
};
