/*
 * sql_restore.c - h5mem_restore(t, id): an evicted row comes back, 1; 0 when the id lives, was not
 * evicted, or has been compacted away.
 *
 * The row gets all its values again, and the words of its texts are made anew. Appends the event
 * restore.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "sql_ask.h"

typedef struct restore {
    int64_t id;
    int done;
} restore;

/* All values of the row, held by the view. */
static int read_row(sql_table *t, st_view *view, uint64_t row, st_value *out)
{
    st_error err = {0};
    for (int c = 0; c < sql_table_columns(t); c++) {
        if (st_view_value(view, row, c, &out[c], &err) != ST_OK) {
            return sql_fail_st(t, &err);
        }
    }
    return SQLITE_OK;
}

static int put_back(restore *r, sql_table *t, st_view *view, uint64_t row)
{
    st_value *v = sqlite3_malloc64((size_t)sql_table_columns(t) * sizeof *v);
    sql_tokens tokens = {0};
    st_error err = {0};
    int64_t id;
    int rc = v ? read_row(t, view, row, v) : SQLITE_NOMEM;
    rc = rc == SQLITE_OK ? sql_row_tokens(t, v, &tokens) : rc;
    if (rc == SQLITE_OK) {
        st_row put = {v, tokens.bytes, tokens.n};
        int st = st_event(t->store->conn, sql_now(), "restore", &r->id, NULL, &err);
        st = st == ST_OK ? st_put(t->store->conn, &put, &id, &err) : st;
        rc = st == ST_OK ? SQLITE_OK : sql_fail_st(t, &err);
    }
    sql_tokens_free(&tokens);
    sqlite3_free(v);
    r->done = rc == SQLITE_OK;
    return rc;
}

static int restore_inside(void *ctx, sql_table *t)
{
    restore *r = ctx;
    st_error err = {0};
    st_view *view;
    uint64_t row;
    int rc = sql_txn_write(t);
    if (rc != SQLITE_OK) {
        return rc;
    }
    if (st_view_open(t->store->conn, &view, &err) != ST_OK) {
        return sql_fail_st(t, &err);
    }
    int st = st_evicted_find(view, r->id, &row, &err);
    if (st == ST_OK) {
        rc = put_back(r, t, view, row);
    } else if (st != ST_NOTFOUND) {
        rc = sql_fail_st(t, &err);
    }
    st_view_close(view);
    return rc;
}

void sql_restore_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    sql_table *t = sql_fn_table(ctx, argv[0]);
    restore r = {0, 0};
    char show[SQL_SHOW];
    (void)argc;
    if (!t) {
        return;
    }
    if (sqlite3_value_numeric_type(argv[1]) != SQLITE_INTEGER) {
        sql_fail_fn(ctx, SQLITE_ERROR, t->name, t->store->path, "the id is %s; it is an integer",
                    sql_show(argv[1], show));
        return;
    }
    r.id = sqlite3_value_int64(argv[1]);
    int rc = sql_inside(t, restore_inside, &r);
    if (rc == SQLITE_OK) {
        sqlite3_result_int(ctx, r.done);
    } else {
        sql_fail_fn_db(ctx, t->db->db, rc);
    }
}
