/*
 * sql_alerts.c - SELECT seq, time, source, kind, id, detail FROM h5mem_alerts('memory'): those
 * events of a store that are a warning, kinds `injection` and `rate` (sql_guard.h).
 *
 * An eponymous table with the table's name as its hidden argument. It reads what a SELECT from the
 * table itself reads: also what this transaction has written. The newest come last. detail is the
 * event's JSON, source a member of it. xFilter copies all of them, so that no cursor of this table
 * holds on to the other one, which may be dropped meanwhile.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "sql.h"

enum { COL_SEQ, COL_TIME, COL_SOURCE, COL_KIND, COL_ID, COL_DETAIL, COL_TABLE };

typedef struct alerts_table {
    sqlite3_vtab base;
    sql_db *db;
} alerts_table;

typedef struct alert {
    int64_t seq, id;
    double time;
    int has_id;
    const char *kind; /* a constant */
    char *json;       /* NULL: none */
} alert;

typedef struct alerts_cursor {
    sqlite3_vtab_cursor base;
    sql_table *table; /* during xFilter */
    alert *rows;
    size_t n, room, at;
} alerts_cursor;

static int x_connect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out,
                     char **err)
{
    (void)argc;
    (void)argv;
    (void)err;
    int rc = sqlite3_declare_vtab(db,
                                  "CREATE TABLE x(seq INTEGER, time REAL, source TEXT, kind TEXT, "
                                  "id INTEGER, detail TEXT, of HIDDEN)");
    alerts_table *t = rc == SQLITE_OK ? sqlite3_malloc(sizeof *t) : NULL;
    if (!t) {
        return rc == SQLITE_OK ? SQLITE_NOMEM : rc;
    }
    memset(t, 0, sizeof *t);
    t->db = aux;
    *out = &t->base;
    return SQLITE_OK;
}

static int x_disconnect(sqlite3_vtab *v)
{
    sqlite3_free(v);
    return SQLITE_OK;
}

static int x_best_index(sqlite3_vtab *v, sqlite3_index_info *info)
{
    (void)v;
    for (int i = 0; i < info->nConstraint; i++) {
        if (info->aConstraint[i].iColumn == COL_TABLE &&
            info->aConstraint[i].op == SQLITE_INDEX_CONSTRAINT_EQ) {
            if (!info->aConstraint[i].usable) {
                return SQLITE_CONSTRAINT;
            }
            info->aConstraintUsage[i].argvIndex = 1;
            info->aConstraintUsage[i].omit = 1;
            info->idxNum = 1;
        }
    }
    info->orderByConsumed = info->nOrderBy == 1 && info->aOrderBy[0].iColumn == COL_SEQ &&
                            !info->aOrderBy[0].desc;
    info->estimatedCost = 1000;
    info->estimatedRows = 25;
    return SQLITE_OK;
}

static int x_open(sqlite3_vtab *v, sqlite3_vtab_cursor **out)
{
    (void)v;
    alerts_cursor *c = sqlite3_malloc(sizeof *c);
    if (!c) {
        return SQLITE_NOMEM;
    }
    memset(c, 0, sizeof *c);
    *out = &c->base;
    return SQLITE_OK;
}

static void clear(alerts_cursor *c)
{
    for (size_t i = 0; i < c->n; i++) {
        sqlite3_free(c->rows[i].json);
    }
    sqlite3_free(c->rows);
    c->rows = NULL;
    c->n = c->room = c->at = 0;
}

static int x_close(sqlite3_vtab_cursor *base)
{
    clear((alerts_cursor *)base);
    sqlite3_free(base);
    return SQLITE_OK;
}

static int fail(alerts_cursor *c, const st_error *err)
{
    sqlite3_free(c->base.pVtab->zErrMsg);
    c->base.pVtab->zErrMsg = sql_message(c->table->name, c->table->store->path, "%s", err->text);
    return sql_code(err->code);
}

static int keep(alerts_cursor *c, const char *kind, const st_value v[4])
{
    if (c->n == c->room) {
        size_t room = c->room * 2 + 16;
        alert *more = sqlite3_realloc64(c->rows, room * sizeof *more);
        if (!more) {
            return SQLITE_NOMEM;
        }
        c->rows = more;
        c->room = room;
    }
    alert *a = &c->rows[c->n];
    *a = (alert){v[0].i, v[2].i, v[1].r, v[2].type == ST_INT, kind, NULL};
    if (v[3].type == ST_TEXT) {
        a->json = sqlite3_malloc64(v[3].n + 1);
        if (!a->json) {
            return SQLITE_NOMEM;
        }
        memcpy(a->json, v[3].p, v[3].n);
        a->json[v[3].n] = 0;
    }
    c->n++;
    return SQLITE_OK;
}

static int read_all(alerts_cursor *c, st_view *view)
{
    static const int of[] = {ST_EVENT_SEQ, ST_EVENT_TIME, ST_EVENT_ID, ST_EVENT_JSON};
    st_error err = {0};
    uint64_t row = 0;
    int st, rc = SQLITE_OK;
    for (; rc == SQLITE_OK && (st = st_side_next(view, ST_EVENTS, row, &row, &err)) != ST_NOTFOUND;
         row++) {
        st_value v[4], kind;
        const char *name = NULL;
        st = st == ST_OK ? st_side_value(view, ST_EVENTS, row, ST_EVENT_KIND, &kind, &err) : st;
        name = st == ST_OK ? st_alert_kind(&kind) : NULL;
        for (int i = 0; i < 4 && st == ST_OK && name; i++) {
            st = st_side_value(view, ST_EVENTS, row, of[i], &v[i], &err);
        }
        rc = st != ST_OK ? fail(c, &err) : name ? keep(c, name, v) : SQLITE_OK;
    }
    return rc;
}

static int x_filter(sqlite3_vtab_cursor *base, int idx_num, const char *idx_str, int argc,
                    sqlite3_value **argv)
{
    alerts_cursor *c = (alerts_cursor *)base;
    sql_db *d = ((alerts_table *)base->pVtab)->db;
    char show[SQL_SHOW], *why = NULL;
    st_error err = {0};
    st_view *view;
    (void)idx_str;
    (void)argc;
    clear(c);
    if (!idx_num || sqlite3_value_type(argv[0]) != SQLITE_TEXT) {
        sqlite3_free(base->pVtab->zErrMsg);
        base->pVtab->zErrMsg = sqlite3_mprintf(
            "h5mem: h5mem_alerts' table is %s; it takes a table's name in quotes",
            idx_num ? sql_show(argv[0], show) : "not given");
        return SQLITE_ERROR;
    }
    int rc = sql_table_find(d, (const char *)sqlite3_value_text(argv[0]), &c->table, &why);
    if (why) {
        sqlite3_free(base->pVtab->zErrMsg);
        base->pVtab->zErrMsg = why;
    }
    if (rc != SQLITE_OK) {
        return rc;
    }
    rc = sql_table_open(c->table);
    if (rc != SQLITE_OK) {
        sqlite3_free(base->pVtab->zErrMsg);
        base->pVtab->zErrMsg = c->table->base.zErrMsg;
        c->table->base.zErrMsg = NULL;
        return rc;
    }
    if (st_view_open(c->table->store->conn, &view, &err) != ST_OK) {
        return fail(c, &err);
    }
    rc = read_all(c, view);
    st_view_close(view);
    return rc;
}

static int x_next(sqlite3_vtab_cursor *base)
{
    ((alerts_cursor *)base)->at++;
    return SQLITE_OK;
}

static int x_eof(sqlite3_vtab_cursor *base)
{
    return ((alerts_cursor *)base)->at >= ((alerts_cursor *)base)->n;
}

/* The member "source", with which sql_guard.c begins. */
static void result_source(sqlite3_context *ctx, const char *json)
{
    static const char head[] = "{\"source\":\"";
    size_t n = sizeof head - 1;
    if (json && strncmp(json, head, n) == 0) {
        sqlite3_result_text(ctx, json + n, (int)strcspn(json + n, "\""), SQLITE_TRANSIENT);
    }
}

static int x_column(sqlite3_vtab_cursor *base, sqlite3_context *ctx, int i)
{
    const alerts_cursor *c = (alerts_cursor *)base;
    const alert *a = &c->rows[c->at];
    if (i == COL_SEQ) {
        sqlite3_result_int64(ctx, a->seq);
    } else if (i == COL_TIME) {
        sqlite3_result_double(ctx, a->time);
    } else if (i == COL_SOURCE) {
        result_source(ctx, a->json);
    } else if (i == COL_KIND) {
        sqlite3_result_text(ctx, a->kind, -1, SQLITE_STATIC);
    } else if (i == COL_ID && a->has_id) {
        sqlite3_result_int64(ctx, a->id);
    } else if (i == COL_DETAIL && a->json) {
        sqlite3_result_text(ctx, a->json, -1, SQLITE_TRANSIENT);
    }
    return SQLITE_OK;
}

static int x_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *out)
{
    *out = (sqlite3_int64)((alerts_cursor *)base)->at + 1;
    return SQLITE_OK;
}

const sqlite3_module sql_alerts_module = {
    .xConnect = x_connect,
    .xDisconnect = x_disconnect,
    .xBestIndex = x_best_index,
    .xOpen = x_open,
    .xClose = x_close,
    .xFilter = x_filter,
    .xNext = x_next,
    .xEof = x_eof,
    .xColumn = x_column,
    .xRowid = x_rowid,
};
