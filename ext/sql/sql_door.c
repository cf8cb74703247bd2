/*
 * sql_door.c - h5mem_export(t, path, format), h5mem_import(t, path, format): which format, and what
 * all of them do with rows.
 *
 * Exports show what is committed and refuse to run where this connection has written more.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "sql_door.h"

/* --------------------------------------------------------------------------------------- errors */

int sql_door_fail(sql_door *d, int rc, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *text = sqlite3_vmprintf(fmt, ap);
    va_end(ap);
    if (!text) {
        return SQLITE_NOMEM;
    }
    const char *file = d->file ? d->file : d->t->store->path;
    if (d->line > 0) {
        sql_fail_fn(d->ctx, rc, d->t->name, file, "%s %lld: %s", d->unit ? d->unit : "line",
                    (long long)d->line, text);
    } else {
        sql_fail_fn(d->ctx, rc, d->t->name, file, "%s", text);
    }
    sqlite3_free(text);
    return rc;
}

int sql_door_fail_st(sql_door *d, const st_error *e)
{
    return sql_door_fail(d, sql_code(e->code), "%s", e->text);
}

int sql_door_fail_h5(sql_door *d, const h5_error *e)
{
    int rc = e->code == H5_NOMEM         ? SQLITE_NOMEM
             : e->code == H5_IO          ? SQLITE_IOERR
             : e->code == H5_LIMIT       ? SQLITE_TOOBIG
             : e->code == H5_FORMAT      ? SQLITE_CORRUPT
             : e->code == H5_UNSUPPORTED ? SQLITE_ERROR
                                         : SQLITE_ERROR;
    return sql_door_fail(d, rc, "%s", e->text);
}

int sql_door_fail_open(sql_door *d, const char *path, const h5_error *e)
{
    size_t n = strlen(path);
    const char *why = strncmp(e->text, path, n) == 0 && e->text[n] == ':' ? e->text + n + 2
                                                                          : e->text;
    return sql_door_fail(d, e->code == H5_NOMEM ? SQLITE_NOMEM : SQLITE_CANTOPEN, "%s", why);
}

// What the table says begins with its own name and file, which are not said twice.
int sql_door_fail_db(sql_door *d, int rc)
{
    const char *text = sqlite3_errmsg(d->t->db->db);
    char *own = sql_message(d->t->name, d->t->store->path, "%s", "");
    if (!own) {
        return SQLITE_NOMEM;
    }
    size_t n = strlen(own);
    if (strncmp(text, own, n) == 0) {
        text += n;
    }
    sqlite3_free(own);
    return sql_door_fail(d, rc, "%s", text);
}

/* ----------------------------------------------------------------------------------------- rows */

void sql_door_clear(sql_door *d)
{
    memset(d->value, 0, (size_t)d->ncolumn * sizeof *d->value);
    memset(d->given, 0, (size_t)d->ncolumn);
}

void sql_door_set_text(sql_door *d, int col, const void *p, size_t n)
{
    d->value[col] = (st_value){.type = ST_TEXT, .p = p, .n = n};
    d->given[col] = 1;
}

void sql_door_set_null(sql_door *d, int col)
{
    memset(&d->value[col], 0, sizeof d->value[col]);
    d->given[col] = 1;
}

int sql_door_column(const sql_door *d, const char *name, size_t n)
{
    for (int i = 0; i < d->ncolumn; i++) {
        const char *s = sql_column_name(d->t, i);
        if (strlen(s) == n && sqlite3_strnicmp(s, name, (int)n) == 0) {
            return i;
        }
    }
    return -1;
}

int sql_bind_value(sqlite3_stmt *stmt, int at, const st_value *v)
{
    switch (v->type) {
    case ST_INT:
        return sqlite3_bind_int64(stmt, at, v->i);
    case ST_REAL:
        return sqlite3_bind_double(stmt, at, v->r);
    case ST_TEXT:
        return sqlite3_bind_text64(stmt, at, v->p ? v->p : "", v->n, SQLITE_STATIC, SQLITE_UTF8);
    case ST_BLOB:
        return sqlite3_bind_blob64(stmt, at, v->p ? v->p : "", v->n, SQLITE_STATIC);
    default:
        return sqlite3_bind_null(stmt, at);
    }
}

static int prepare(sql_door *d, char *sql, sqlite3_stmt **out)
{
    sqlite3_finalize(*out);
    *out = NULL;
    int rc = sql ? sqlite3_prepare_v2(d->t->db->db, sql, -1, out, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    return rc == SQLITE_OK || rc == SQLITE_NOMEM ? rc : sql_door_fail_db(d, rc);
}

// The statement for the columns that are given, the last one again where they are the same. id is
// the last parameter of an UPDATE.
static int statement(sql_door *d, sql_door_stmt *s, int update)
{
    size_t n = (size_t)d->ncolumn;
    if (s->stmt && memcmp(s->given, d->given, n) == 0) {
        return SQLITE_OK;
    }
    if (!s->given && !(s->given = sqlite3_malloc64(n))) {
        return SQLITE_NOMEM;
    }
    memcpy(s->given, d->given, n);
    sqlite3_str *sql = sqlite3_str_new(d->t->db->db);
    sqlite3_str_appendf(sql, update ? "UPDATE \"%w\".\"%w\" SET" : "INSERT INTO \"%w\".\"%w\"(",
                        d->t->schema, d->t->name);
    int k = 0;
    for (int i = update ? ST_COL_ID + 1 : ST_COL_ID; i < d->ncolumn; i++) {
        // an INSERT of no column is not SQL: id NULL says the same
        if (d->given[i] || (!update && i == ST_COL_ID)) {
            sqlite3_str_appendf(sql, update ? "%s \"%w\" = ?" : "%s \"%w\"", k++ ? "," : "",
                                sql_column_name(d->t, i));
        }
    }
    if (update) {
        sqlite3_str_appendf(sql, " WHERE id = ?");
    } else {
        sqlite3_str_appendall(sql, ") VALUES(?");
        for (int i = 1; i < k; i++) {
            sqlite3_str_appendall(sql, ", ?");
        }
        sqlite3_str_appendall(sql, ")");
    }
    return prepare(d, sqlite3_str_finish(sql), &s->stmt);
}

static int run(sql_door *d, sqlite3_stmt *stmt)
{
    sqlite3_step(stmt);
    int rc = sqlite3_reset(stmt);
    return rc == SQLITE_OK ? rc : sql_door_fail_db(d, rc);
}

int sql_door_there(sql_door *d, int64_t id, int *there)
{
    int rc = d->find ? SQLITE_OK
                     : prepare(d,
                               sqlite3_mprintf("SELECT 1 FROM \"%w\".\"%w\" WHERE id = ?",
                                               d->t->schema, d->t->name),
                               &d->find);
    *there = 0;
    if (rc == SQLITE_OK) {
        sqlite3_bind_int64(d->find, 1, id);
        *there = sqlite3_step(d->find) == SQLITE_ROW;
        rc = sqlite3_reset(d->find);
        rc = rc == SQLITE_OK ? rc : sql_door_fail_db(d, rc);
    }
    return rc;
}

int sql_door_known(sql_door *d, int64_t id, const st_value *v, int *known)
{
    static const int of[] = {ST_COL_CONTENT, ST_COL_TIMESTAMP, ST_COL_SESSION, ST_COL_CHANNEL,
                             ST_COL_SOURCE};
    int rc = d->known ? SQLITE_OK
                      : prepare(d,
                                sqlite3_mprintf("SELECT 1 + (content IS ?2) FROM \"%w\".\"%w\" "
                                                "WHERE id = ?1 AND +timestamp IS ?3 AND +session "
                                                "IS ?4 AND +channel IS ?5 AND +source IS ?6",
                                                d->t->schema, d->t->name),
                                &d->known);
    *known = 0;
    for (int i = 0; i < 5 && rc == SQLITE_OK; i++) {
        rc = sql_bind_value(d->known, i + 2, &v[of[i]]);
    }
    if (rc == SQLITE_OK) {
        sqlite3_bind_int64(d->known, 1, id);
        *known = sqlite3_step(d->known) == SQLITE_ROW ? sqlite3_column_int(d->known, 0) : 0;
        rc = sqlite3_reset(d->known);
        rc = rc == SQLITE_OK ? rc : sql_door_fail_db(d, rc);
    }
    return rc;
}

static int some_given(const sql_door *d)
{
    return memchr(d->given + 1, 1, (size_t)d->ncolumn - 1) != NULL;
}

int sql_door_put(sql_door *d, int64_t *id)
{
    int there = 0, at = 1;
    const st_value *key = &d->value[ST_COL_ID];
    int rc = key->type == ST_INT ? sql_door_there(d, key->i, &there) : SQLITE_OK;
    if (there && !some_given(d)) {
        d->rows++;
        return SQLITE_OK;
    }
    sql_door_stmt *s = there ? &d->update : &d->insert;
    rc = rc == SQLITE_OK ? statement(d, s, there) : rc;
    if (rc != SQLITE_OK) {
        return rc;
    }
    if (!there) {
        rc = sql_bind_value(s->stmt, at++, key);
    }
    for (int i = ST_COL_ID + 1; i < d->ncolumn && rc == SQLITE_OK; i++) {
        if (d->given[i]) {
            rc = sql_bind_value(s->stmt, at++, &d->value[i]);
        }
    }
    if (there && rc == SQLITE_OK) {
        rc = sql_bind_value(s->stmt, at, key);
    }
    rc = rc == SQLITE_OK ? run(d, s->stmt) : sql_door_fail_db(d, rc);
    d->rows += rc == SQLITE_OK;
    if (id) {
        *id = there ? key->i : sqlite3_last_insert_rowid(d->t->db->db);
    }
    return rc;
}

/* A row that sql_door_add has met: the id it had and has, and the one it named as superseded_by. */
typedef struct sql_door_place {
    int64_t from, to, by;
    int linked; /* by is there, and to be set */
} place;

static int note_place(sql_door *d, int64_t from, int64_t to, const st_value *by)
{
    if (d->nplace == d->place_room) {
        size_t room = d->place_room * 2 + 64;
        place *more = sqlite3_realloc64(d->place, room * sizeof *more);
        if (!more) {
            return SQLITE_NOMEM;
        }
        d->place = more;
        d->place_room = room;
    }
    int linked = by && by->type == ST_INT;
    d->place[d->nplace++] = (place){from, to, linked ? by->i : 0, linked};
    return SQLITE_OK;
}

int sql_door_add(sql_door *d, int changes)
{
    st_value from = d->value[ST_COL_ID], by = d->value[ST_COL_SUPERSEDED_BY];
    st_value text = d->value[ST_COL_CONTENT];
    int64_t id = from.i;
    int has_id = from.type == ST_INT, taken = 0, known = 0;
    int rc = has_id ? sql_door_there(d, id, &taken) : SQLITE_OK;
    rc = rc == SQLITE_OK && taken ? sql_door_known(d, id, d->value, &known) : rc;
    if (rc == SQLITE_OK && (known == 2 || (known && changes))) {
        sql_door_clear(d);
        d->value[ST_COL_ID] = from;
        d->value[ST_COL_CONTENT] = text;
        d->given[ST_COL_ID] = d->given[ST_COL_CONTENT] = 1;
        sql_door_set_null(d, ST_COL_EMBEDDING);
        rc = known == 2 ? SQLITE_OK : sql_door_put(d, NULL);
        return rc == SQLITE_OK ? note_place(d, id, id, NULL) : rc;
    }
    sql_door_set_null(d, ST_COL_SUPERSEDED_BY);
    if (taken) {
        sql_door_set_null(d, ST_COL_ID);
    }
    rc = rc == SQLITE_OK ? sql_door_put(d, &id) : rc;
    return rc == SQLITE_OK && has_id ? note_place(d, from.i, id, &by) : rc;
}

static int by_from(const void *a, const void *b)
{
    const place *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

int sql_door_link(sql_door *d)
{
    int rc = SQLITE_OK;
    if (d->nplace > 1) {
        qsort(d->place, d->nplace, sizeof *d->place, by_from);
    }
    for (size_t i = 0; i < d->nplace && rc == SQLITE_OK; i++) {
        place key = {d->place[i].by, 0, 0, 0};
        const place *to = d->place[i].linked
                              ? bsearch(&key, d->place, d->nplace, sizeof key, by_from)
                              : NULL;
        if (to) {
            sql_door_clear(d);
            d->value[ST_COL_ID] = (st_value){.type = ST_INT, .i = d->place[i].to};
            d->value[ST_COL_SUPERSEDED_BY] = (st_value){.type = ST_INT, .i = to->to};
            d->given[ST_COL_ID] = d->given[ST_COL_SUPERSEDED_BY] = 1;
            rc = sql_door_put(d, NULL);
            d->rows--;
        }
    }
    d->nplace = 0;
    return rc;
}

int sql_door_remove(sql_door *d, int64_t id)
{
    int rc = d->remove ? SQLITE_OK
                       : prepare(d,
                                 sqlite3_mprintf("DELETE FROM \"%w\".\"%w\" WHERE id = ?",
                                                 d->t->schema, d->t->name),
                                 &d->remove);
    if (rc == SQLITE_OK) {
        sqlite3_bind_int64(d->remove, 1, id);
        rc = run(d, d->remove);
    }
    return rc;
}

/* ----------------------------------------------------------------------------------------- walk */

int sql_door_look(sql_door *d)
{
    st_error err = {0};
    if (d->view || st_view_open(d->t->store->conn, &d->view, &err) == ST_OK) {
        return SQLITE_OK;
    }
    d->view = NULL;
    return sql_door_fail_st(d, &err);
}

int sql_door_value(sql_door *d, uint64_t row, int col, st_value *out)
{
    st_error err = {0};
    const st_host *host = &d->t->db->host;
    if (++d->looks % 1024 == 0 && host->stop && host->stop(host->ctx)) {
        return sql_door_fail(d, SQLITE_INTERRUPT, "interrupted");
    }
    return st_view_value(d->view, row, col, out, &err) == ST_OK ? SQLITE_OK
                                                                : sql_door_fail_st(d, &err);
}

int sql_door_scan(sql_door *d, sql_door_each *each, void *ctx)
{
    st_query q;
    st_cursor *c;
    st_error err = {0};
    st_value id;
    memset(&q, 0, sizeof q);
    q.k = -1;
    q.order = ST_ORDER_ID;
    if (st_search(d->view, &q, &c, &err) != ST_OK) {
        return sql_door_fail_st(d, &err);
    }
    int rc = SQLITE_OK, more;
    while (rc == SQLITE_OK && (more = st_cursor_next(c, &err)) != 0) {
        rc = more < 0 ? sql_door_fail_st(d, &err)
                      : sql_door_value(d, st_cursor_row(c), ST_COL_ID, &id);
        rc = rc == SQLITE_OK ? each(ctx, st_cursor_row(c), id.i) : rc;
    }
    st_cursor_close(c);
    return rc;
}

/* ------------------------------------------------------------------------------------- together */

typedef struct format {
    const char *name;      /* with a colon at its end: a table follows, and there is no path */
    sql_door_fn *out, *in; /* NULL: not that way */
} format;

static const format formats[] = {
    {"h5mem", sql_export_store, sql_import_store},  {"markdown", sql_md_export, sql_md_import},
    {"clawhdf5", sql_claw_export, sql_claw_import}, {"jsonl", sql_jsonl_export, sql_jsonl_import},
    {"sqlite-vec:", NULL, sql_vec0_import},         {"fts5:", NULL, sql_fts5_import},
};
enum { NFORMAT = sizeof formats / sizeof *formats };

static sql_door_fn *find_format(sql_door *d, sqlite3_value *v, int out)
{
    char show[SQL_SHOW], known[200] = "";
    const char *name = sqlite3_value_type(v) == SQLITE_TEXT ? (const char *)sqlite3_value_text(v)
                                                            : "";
    for (int i = 0; i < NFORMAT; i++) {
        sql_door_fn *fn = out ? formats[i].out : formats[i].in;
        size_t n = strlen(formats[i].name), k = strlen(known);
        int table = formats[i].name[n - 1] == ':';
        if (fn && name && strncmp(name, formats[i].name, n) == 0 && (table ? name[n] : !name[n])) {
            d->source = table ? name + n : NULL;
            return fn;
        }
        if (fn) {
            sqlite3_snprintf((int)(sizeof known - k), known + k, "%s'%s%s'", k ? ", " : "",
                             formats[i].name, table ? "TABLE" : "");
        }
    }
    sql_door_fail(d, SQLITE_ERROR, "the format is %s; known are %s", sql_show(v, show), known);
    return NULL;
}

// NULL after a failure; where a table is named, there is none.
static const char *find_path(sql_door *d, sqlite3_value *v)
{
    char show[SQL_SHOW];
    if (d->source) {
        if (sqlite3_value_type(v) == SQLITE_NULL) {
            return "";
        }
        sql_door_fail(d, SQLITE_ERROR, "the path is %s; a table of this connection has none, NULL",
                      sql_show(v, show));
        return NULL;
    }
    const char *path = sqlite3_value_type(v) == SQLITE_TEXT ? (const char *)sqlite3_value_text(v)
                                                            : NULL;
    if (path && *path && strlen(path) == (size_t)sqlite3_value_bytes(v)) {
        return path;
    }
    sql_door_fail(d, SQLITE_ERROR, "the path is %s", sql_show(v, show));
    return NULL;
}

static int begin(sql_door *d, int out)
{
    d->ncolumn = sql_table_columns(d->t);
    d->value = sqlite3_malloc64((size_t)d->ncolumn * sizeof *d->value);
    d->given = sqlite3_malloc64((size_t)d->ncolumn);
    if (!d->value || !d->given) {
        return SQLITE_NOMEM;
    }
    sql_door_clear(d);
    if (!out) {
        int rc = prepare(d, sqlite3_mprintf("ROLLBACK TO h5mem_import"), &d->back);
        rc = rc == SQLITE_OK ? prepare(d, sqlite3_mprintf("RELEASE h5mem_import"), &d->release)
                             : rc;
        if (rc == SQLITE_OK) {
            rc = sqlite3_exec(d->t->db->db, "SAVEPOINT h5mem_import", NULL, NULL, NULL);
            rc = rc == SQLITE_OK ? rc : sql_door_fail_db(d, rc);
        }
        return rc;
    }
    if (st_has_changes(d->t->store->conn)) {
        return sql_door_fail(d, SQLITE_LOCKED,
                             "this connection has uncommitted rows in the store; commit or roll "
                             "back first");
    }
    return sql_door_look(d);
}

static int end(sql_door *d, int out, int rc)
{
    if (d->view) {
        st_view_close(d->view);
    }
    sqlite3_finalize(d->find);
    sqlite3_finalize(d->known);
    sqlite3_finalize(d->remove);
    sqlite3_finalize(d->insert.stmt);
    sqlite3_finalize(d->update.stmt);
    sqlite3_free(d->insert.given);
    sqlite3_free(d->update.given);
    sqlite3_free(d->place);
    sqlite3_free(d->value);
    sqlite3_free(d->given);
    if (!out && rc == SQLITE_OK) {
        rc = run(d, d->release);
    }
    if (!out && rc != SQLITE_OK) {
        sqlite3_step(d->back);
        sqlite3_reset(d->back);
        sqlite3_step(d->release);
        sqlite3_reset(d->release);
    }
    sqlite3_finalize(d->back);
    sqlite3_finalize(d->release);
    return rc;
}

static void pass(sqlite3_context *ctx, sqlite3_value **argv, int out)
{
    sql_door d;
    memset(&d, 0, sizeof d);
    d.ctx = ctx;
    d.t = sql_fn_table(ctx, argv[0]);
    sql_door_fn *fn = d.t ? find_format(&d, argv[2], out) : NULL;
    const char *path = fn ? find_path(&d, argv[1]) : NULL;
    if (!path) {
        return;
    }
    int rc = begin(&d, out);
    if (rc == SQLITE_OK) {
        d.file = path;
        rc = end(&d, out, fn(&d, path));
    } else {
        sqlite3_finalize(d.back);
        sqlite3_finalize(d.release);
        sqlite3_free(d.value);
        sqlite3_free(d.given);
    }
    if (rc == SQLITE_OK) {
        sqlite3_result_int64(ctx, d.rows);
    } else if (rc == SQLITE_NOMEM) {
        sqlite3_result_error_nomem(ctx);
    } else {
        sqlite3_result_error_code(ctx, rc); // keeps the message
    }
}

void sql_export_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    pass(ctx, argv, 1);
}

void sql_import_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    pass(ctx, argv, 0);
}
