/*
 * sql_import.c - 'h5mem' out and in: the store as it is; all rows of another store (sql_door.h).
 *
 * Out: a new file that holds everything, without what waits in the log beside it, and is the same
 * store to a host (h5mem_backup).
 *
 * Rows go in as nested INSERTs: they are tokenised here, join the caller's transaction and come or
 * fail together. An id that is free in the table is kept. A row that the table has under its id
 * already (sql_door_known) is left alone. The others get fresh ids, after all kept
 * ids are in, so that a fresh id takes none of them; then superseded_by is set again where it named
 * a moved row. A superseded_by that names no row of the source becomes NULL: the id could be
 * another row's here.
 *
 * A relative path is relative to the working folder.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>
#include <unistd.h>

#include "sql_door.h"

typedef struct moved_id {
    int64_t from, to;
} moved_id;

typedef struct import {
    sql_table *t;
    sqlite3_context *ctx;
    sql_door *door;
    st_conn *source;
    st_view *view;
    int *map;    /* source column to target column, -1: not there */
    int ncolumn; /* of the source */
    sqlite3_stmt *put, *link;
    moved_id *moved; /* ascending by from */
    size_t nmoved, room;
    sqlite3_int64 rows;
} import;

static int fail_st(import *m, const st_error *err)
{
    sql_fail_fn(m->ctx, sql_code(err->code), m->t->name, st_conn_info(m->source)->path, "%s",
                err->text);
    return sql_code(err->code);
}

static int fail_db(import *m, int rc)
{
    sql_fail_fn_db(m->ctx, m->t->db->db, rc);
    return rc;
}

/* -------------------------------------------------------------------------------------- columns */

static const char *source_name(const import *m, int col)
{
    return col < ST_COL_USER ? st_column_name(col)
                             : st_conn_info(m->source)->columns[col - ST_COL_USER].name;
}

static int map_columns(import *m)
{
    const st_info *from = st_conn_info(m->source), *to = st_conn_info(m->t->store->conn);
    if (from->dim != to->dim) {
        sql_fail_fn(m->ctx, SQLITE_ERROR, m->t->name, m->t->store->path, "dim is %lld, %s has %lld",
                    (long long)to->dim, sql_base_name(from->path), (long long)from->dim);
        return SQLITE_ERROR;
    }
    m->ncolumn = st_conn_columns(m->source);
    m->map = sqlite3_malloc64((size_t)m->ncolumn * sizeof *m->map);
    if (!m->map) {
        return SQLITE_NOMEM;
    }
    for (int i = 0; i < m->ncolumn; i++) {
        m->map[i] = i < ST_COL_USER ? i : -1;
        for (int j = ST_COL_USER; j < sql_table_columns(m->t) && i >= ST_COL_USER; j++) {
            if (sqlite3_stricmp(source_name(m, i), sql_column_name(m->t, j)) == 0) {
                m->map[i] = j;
            }
        }
    }
    return SQLITE_OK;
}

// INSERT with one parameter a column of the table: ?1 is id.
static int prepare(import *m)
{
    sqlite3 *db = m->t->db->db;
    sqlite3_str *s = sqlite3_str_new(db);
    sqlite3_str_appendf(s, "INSERT INTO \"%w\".\"%w\"(", m->t->schema, m->t->name);
    int n = sql_table_columns(m->t);
    for (int i = 0; i < n; i++) {
        sqlite3_str_appendf(s, "%s\"%w\"", i ? ", " : "", sql_column_name(m->t, i));
    }
    for (int i = 0; i < n; i++) {
        sqlite3_str_appendf(s, "%s?%d", i ? ", " : ") VALUES(", i + 1);
    }
    sqlite3_str_appendall(s, ")");
    char *sql = sqlite3_str_finish(s);
    int rc = sql ? sqlite3_prepare_v2(db, sql, -1, &m->put, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    if (rc == SQLITE_OK) {
        sql = sqlite3_mprintf("UPDATE \"%w\".\"%w\" SET superseded_by = ?2 WHERE id = ?1",
                              m->t->schema, m->t->name);
        rc = sql ? sqlite3_prepare_v2(db, sql, -1, &m->link, NULL) : SQLITE_NOMEM;
        sqlite3_free(sql);
    }
    return rc == SQLITE_OK ? rc : fail_db(m, rc);
}

/* ----------------------------------------------------------------------------------------- rows */

static int source_value(import *m, uint64_t row, int col, st_value *out)
{
    st_error err = {0};
    return st_view_value(m->view, row, col, out, &err) == ST_OK ? SQLITE_OK : fail_st(m, &err);
}

// Is superseded_by the id of a row of the source?
static int names_a_row(import *m, st_value *v)
{
    uint64_t row;
    st_error err = {0};
    int st = v->type == ST_INT ? st_view_find(m->view, v->i, &row, &err) : ST_OK;
    if (st == ST_NOTFOUND) {
        memset(v, 0, sizeof *v);
    }
    return st == ST_OK || st == ST_NOTFOUND ? SQLITE_OK : fail_st(m, &err);
}

// *taken (NULL: any failure is one): 1 when the id is another row's.
static int copy_row(import *m, uint64_t row, int *taken)
{
    int rc = SQLITE_OK;
    sqlite3_clear_bindings(m->put);
    for (int i = taken ? ST_COL_ID : ST_COL_ID + 1; i < m->ncolumn && rc == SQLITE_OK; i++) {
        st_value v;
        rc = source_value(m, row, i, &v);
        if (rc == SQLITE_OK && i == ST_COL_SUPERSEDED_BY) {
            rc = names_a_row(m, &v);
        }
        if (rc == SQLITE_OK && m->map[i] < 0 && v.type != ST_NULL) {
            sql_fail_fn(m->ctx, SQLITE_ERROR, m->t->name, m->t->store->path,
                        "%s has a column \"%s\" with values, the table has none",
                        sql_base_name(st_conn_info(m->source)->path), source_name(m, i));
            return SQLITE_ERROR;
        }
        if (rc == SQLITE_OK && m->map[i] >= 0) {
            rc = sql_bind_value(m->put, m->map[i] + 1, &v);
        }
    }
    if (rc != SQLITE_OK) {
        return rc;
    }
    sqlite3_step(m->put);
    rc = sqlite3_reset(m->put);
    if (taken && (rc & 0xff) == SQLITE_CONSTRAINT) {
        *taken = 1;
        return SQLITE_OK;
    }
    m->rows += rc == SQLITE_OK;
    return rc == SQLITE_OK ? rc : fail_db(m, rc);
}

/* ------------------------------------------------------------------------------------------ ids */

static int add_moved(import *m, int64_t id)
{
    if (m->nmoved == m->room) {
        size_t room = m->room * 2 + 64;
        moved_id *more = sqlite3_realloc64(m->moved, room * sizeof *more);
        if (!more) {
            return SQLITE_NOMEM;
        }
        m->moved = more;
        m->room = room;
    }
    m->moved[m->nmoved].from = id;
    m->moved[m->nmoved++].to = 0;
    return SQLITE_OK;
}

static const moved_id *find_moved(const import *m, int64_t id)
{
    size_t lo = 0, hi = m->nmoved;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (m->moved[mid].from < id) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo < m->nmoved && m->moved[lo].from == id ? &m->moved[lo] : NULL;
}

/* --------------------------------------------------------------------------------------- passes */

static int scan_source(import *m, int (*each)(import *, uint64_t, int64_t))
{
    st_query q;
    st_cursor *c;
    st_error err = {0};
    memset(&q, 0, sizeof q);
    q.k = -1;
    q.order = ST_ORDER_ID;
    if (st_search(m->view, &q, &c, &err) != ST_OK) {
        return fail_st(m, &err);
    }
    int rc = SQLITE_OK, more;
    while (rc == SQLITE_OK && (more = st_cursor_next(c, &err)) != 0) {
        st_value id;
        rc = more < 0 ? fail_st(m, &err) : source_value(m, st_cursor_row(c), ST_COL_ID, &id);
        rc = rc == SQLITE_OK ? each(m, st_cursor_row(c), id.i) : rc;
    }
    st_cursor_close(c);
    return rc;
}

static int keep_or_note(import *m, uint64_t row, int64_t id)
{
    int taken = 0, known = 0;
    st_value v[ST_COL_USER];
    int rc = copy_row(m, row, &taken);
    for (int i = 0; i < ST_COL_USER && taken && rc == SQLITE_OK; i++) {
        rc = i == ST_COL_EMBEDDING ? SQLITE_OK : source_value(m, row, i, &v[i]);
    }
    rc = taken && rc == SQLITE_OK ? sql_door_known(m->door, id, v, &known) : rc;
    return taken && known < 2 && rc == SQLITE_OK ? add_moved(m, id) : rc;
}

static int put_moved(import *m)
{
    int rc = SQLITE_OK;
    for (size_t i = 0; i < m->nmoved && rc == SQLITE_OK; i++) {
        uint64_t row;
        st_error err = {0};
        rc = st_view_find(m->view, m->moved[i].from, &row, &err) == ST_OK ? copy_row(m, row, NULL)
                                                                          : fail_st(m, &err);
        m->moved[i].to = sqlite3_last_insert_rowid(m->t->db->db);
    }
    return rc;
}

static int relink(import *m, uint64_t row, int64_t id)
{
    st_value v;
    int rc = source_value(m, row, ST_COL_SUPERSEDED_BY, &v);
    const moved_id *to = rc == SQLITE_OK && v.type == ST_INT ? find_moved(m, v.i) : NULL;
    if (to) {
        const moved_id *self = find_moved(m, id);
        sqlite3_bind_int64(m->link, 1, self ? self->to : id);
        sqlite3_bind_int64(m->link, 2, to->to);
        sqlite3_step(m->link);
        rc = sqlite3_reset(m->link);
        rc = rc == SQLITE_OK ? rc : fail_db(m, rc);
    }
    return rc;
}

static int copy_all(import *m)
{
    int rc = scan_source(m, keep_or_note);
    if (rc == SQLITE_OK && m->nmoved > 0) {
        rc = put_moved(m);
        rc = rc == SQLITE_OK ? scan_source(m, relink) : rc;
    }
    return rc;
}

/* ------------------------------------------------------------------------------------- together */

static int open_source(import *m, sql_door *d, const char *given)
{
    char *path;
    int host_file;
    st_error err = {0};
    if (sql_path_resolve(m->t->db->db, NULL, given, &path, &host_file) != SQLITE_OK) {
        return SQLITE_NOMEM;
    }
    int rc = SQLITE_OK;
    int st = st_open(path, ST_OPEN_READONLY, NULL, &m->t->db->host, &m->source, &err);
    if (st != ST_OK) {
        m->source = NULL;
        rc = sql_door_fail(d, st == ST_NOTFOUND ? SQLITE_CANTOPEN : sql_code(st), "%s", err.text);
    } else if (m->source == m->t->store->conn) {
        rc = sql_door_fail(d, SQLITE_ERROR, "this is the table's own store");
    } else if (st_view_open(m->source, &m->view, &err) != ST_OK) {
        m->view = NULL;
        rc = sql_door_fail_st(d, &err);
    }
    sqlite3_free(path);
    return rc;
}

// A copy that was made and could not be finished.
static int drop_copy(sql_door *d, const char *path, const st_error *err)
{
    char *log = sqlite3_mprintf("%s-wal", path);
    if (log) {
        unlink(log);
    }
    sqlite3_free(log);
    unlink(path);
    return sql_door_fail_st(d, err);
}

int sql_export_store(sql_door *d, const char *path)
{
    uint64_t bytes, n;
    st_conn *copy;
    st_error err = {0};
    int timeout = sql_busy_timeout(d->t->db->db);
    if (sqlite3_errcode(d->t->db->db) == SQLITE_NOMEM) {
        return SQLITE_NOMEM; // the statement is lost; no file is left of it
    }
    if (st_backup(d->t->store->conn, path, &bytes, &err) != ST_OK) {
        return sql_door_fail_st(d, &err);
    }
    int st = st_open(path, 0, NULL, &d->t->db->host, &copy, &err);
    if (st == ST_OK) {
        st = st_flush(copy, timeout, &n, &err);
        st_view *view;
        if (st == ST_OK && (st = st_view_open(copy, &view, &err)) == ST_OK) {
            d->rows = (sqlite3_int64)st_view_count(view);
            st_view_close(view);
        }
        st_close(copy);
    }
    return st == ST_OK ? SQLITE_OK : drop_copy(d, path, &err);
}

int sql_import_store(sql_door *d, const char *path)
{
import m;
    memset(&m, 0, sizeof m);
    m.ctx = d->ctx;
    m.door = d;
    m.t = d->t;
    int rc = open_source(&m, d, path);
    rc = rc == SQLITE_OK ? map_columns(&m) : rc;
    rc = rc == SQLITE_OK ? prepare(&m) : rc;
    rc = rc == SQLITE_OK ? copy_all(&m) : rc;
    sqlite3_finalize(m.put);
    sqlite3_finalize(m.link);
    if (m.view) {
        st_view_close(m.view);
    }
    if (m.source) {
        st_close(m.source);
    }
    sqlite3_free(m.map);
    sqlite3_free(m.moved);
    d->rows = m.rows;
    return rc;
}
