/*
 * sql_life.c - h5mem_consolidate, h5mem_tick, h5mem_touch: the functions by which memories age.
 *
 * Times are Unix seconds or ISO 8601 text, and now where none is given. A clock that went back
 * takes nothing away and gives nothing: what lies in the future is as of now, last_tick and
 * last_access never go back.
 *
 *   h5mem_consolidate(t [, now [, 'dry']])   'dry' changes nothing and lists what would be done
 *   h5mem_tick(t [, now])                    activation fades to now; a pass when one is due
 *   h5mem_touch(t, id [, now])               one access
 *
 * With track_access on, the first SQL_TRACK_ROWS rows that a search hands out count as accessed. A
 * search writes nothing: the connection remembers them (up to TRACKED_MAX rows) and its next
 * INSERT, touch, tick or consolidation of the table writes them, as part of its transaction; what
 * then is rolled back, or never written because the connection closes, is not counted.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <string.h>

#include "sql_life.h"

/* The time that an argument gives. */
static int read_now(sql_table *t, int argc, sqlite3_value **argv, int at, double *out)
{
    char show[SQL_SHOW];
    st_value v;
    *out = sql_now();
    if (argc <= at || sqlite3_value_type(argv[at]) == SQLITE_NULL) {
        return SQLITE_OK;
    }
    int rc = sql_row_value(t, ST_COL_TIMESTAMP, argv[at], &v);
    if (rc == SQLITE_OK && !(fabs(v.r) <= 1e12)) {
        rc = sql_fail(t, SQLITE_ERROR, "now is %s; it takes a time within 10^12 seconds of 1970",
                      sql_show(argv[at], show));
    }
    *out = v.r;
    return rc;
}

static void result_str(sqlite3_context *ctx, sqlite3_str *s)
{
    char *json = sqlite3_str_finish(s);
    if (json) {
        sqlite3_result_text(ctx, json, -1, sqlite3_free);
    } else {
        sqlite3_result_error_nomem(ctx);
    }
}

/* The result of a failed call: of the table where it ran by itself, of the connection where it was
 * a nested statement. */
static void result_fault(sqlite3_context *ctx, sql_table *t, int rc, int nested)
{
    if (nested) {
        sql_fail_fn_db(ctx, t->db->db, rc);
    } else {
        sql_fail_fn_table(ctx, t, rc);
    }
}

/* --------------------------------------------------------------------------------- consolidate */

static int read_dry(sql_table *t, sqlite3_value *v, int *dry)
{
    char show[SQL_SHOW];
    const char *s = (const char *)sqlite3_value_text(v);
    *dry = s && sqlite3_stricmp(s, "dry") == 0;
    return *dry || sqlite3_value_type(v) == SQLITE_NULL
               ? SQLITE_OK
               : sql_fail(t, SQLITE_ERROR, "the third argument is %s; known is 'dry'",
                          sql_show(v, show));
}

void sql_consolidate_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    sql_pass p = {0};
    sql_table *t = sql_fn_table(ctx, argv[0]);
    if (!t) {
        return;
    }
    int rc = read_now(t, argc, argv, 1, &p.now);
    rc = rc == SQLITE_OK && argc > 2 ? read_dry(t, argv[2], &p.dry) : rc;
    if (rc != SQLITE_OK) {
        sql_fail_fn_table(ctx, t, rc);
        return;
    }
    p.list = p.dry ? sqlite3_str_new(t->db->db) : NULL;
    rc = p.dry ? sql_pass_run(&p, t) : sql_inside(t, sql_pass_run, &p);
    if (rc == SQLITE_OK) {
        sqlite3_str *out = sqlite3_str_new(t->db->db);
        sql_pass_json(&p, out);
        result_str(ctx, out);
    } else {
        result_fault(ctx, t, rc, !p.dry);
    }
    sqlite3_free(sqlite3_str_finish(p.list));
}

int sql_consolidate_command(sql_table *t)
{
    sql_pass p = {.now = sql_now()};
    return sql_inside_again(t, sql_pass_run, &p);
}

int sql_life_watch(sql_table *t, sql_watch *out)
{
    st_error err = {0};
    st_life life;
    if (st_get_life(t->store->conn, &life, &err) != ST_OK) {
        return sql_fail_st(t, &err);
    }
    *out = (sql_watch){life.consolidate_every, life.consolidated_id};
    return SQLITE_OK;
}

int sql_life_due(const sql_watch *w, int64_t id)
{
    return w->every > 0 && id > w->seen && (uint64_t)id - (uint64_t)w->seen >= (uint64_t)w->every;
}

int sql_life_inserted(sql_table *t, const sql_watch *w, int64_t id)
{
    return sql_life_due(w, id) ? sql_consolidate_command(t) : SQLITE_OK;
}

/* ---------------------------------------------------------------------------------------- touch */

typedef struct touch {
    int64_t id;
    double now;
    int found;
    double activation; /* afterwards */
} touch;

typedef struct touched {
    double activation, importance, last, timestamp;
    int64_t count;
} touched;

static int read_touched(sql_table *t, st_view *v, uint64_t row, touched *out)
{
    static const int cols[] = {ST_COL_ACTIVATION, ST_COL_IMPORTANCE, ST_COL_LAST_ACCESS,
                               ST_COL_TIMESTAMP, ST_COL_ACCESS_COUNT};
    st_value x[5];
    st_error err = {0};
    for (int i = 0; i < 5; i++) {
        if (st_view_value(v, row, cols[i], &x[i], &err) != ST_OK) {
            return sql_fail_st(t, &err);
        }
    }
    *out = (touched){x[0].r, x[1].r, x[2].type == ST_REAL ? x[2].r : NAN, x[3].r, x[4].i};
    return SQLITE_OK;
}

/* n accesses at `now`: what activation had is first let fade from where it was last known. */
static int access_row(sql_table *t, st_view *v, uint64_t row, const st_life *l, double now,
                      int64_t n, double *activation)
{
    static const int col[] = {ST_COL_ACTIVATION, ST_COL_IMPORTANCE, ST_COL_LAST_ACCESS,
                              ST_COL_ACCESS_COUNT};
    st_error err = {0};
    touched x = {0};
    int rc = read_touched(t, v, row, &x);
    if (rc != SQLITE_OK) {
        return rc;
    }
    double own = isfinite(x.last) ? x.last : x.timestamp;
    double known = l->last_tick != 0 ? fmax(l->last_tick, own) : own;
    double a = mind_decay(x.activation, now - known, l->activation_half_life);
    a = fmax(a, fmin(a + (double)n * l->activation_boost, l->activation_max));
    st_value value[] = {
        {.type = ST_REAL, .r = a},
        {.type = ST_REAL, .r = 1 - (1 - x.importance) * pow(1 - l->importance_access, (double)n)},
        {.type = ST_REAL, .r = isfinite(x.last) ? fmax(x.last, now) : now},
        {.type = ST_INT, .i = x.count <= INT64_MAX - n ? x.count + n : INT64_MAX}};
    *activation = a;
    return st_set(t->store->conn, v, row, col, value, 4, &err) == ST_OK ? SQLITE_OK
                                                                        : sql_fail_st(t, &err);
}

static int touch_inside(void *ctx, sql_table *t)
{
    touch *k = ctx;
    st_error err = {0};
    st_view *v;
    st_life life;
    uint64_t row;
    int rc = sql_txn_write(t);
    rc = rc == SQLITE_OK ? sql_track_write(t) : rc;
    if (rc != SQLITE_OK) {
        return rc;
    }
    if (st_view_open(t->store->conn, &v, &err) != ST_OK) {
        return sql_fail_st(t, &err);
    }
    int st = st_get_life(t->store->conn, &life, &err);
    st = st == ST_OK ? st_view_find(v, k->id, &row, &err) : st;
    k->found = st == ST_OK;
    rc = st == ST_OK         ? access_row(t, v, row, &life, k->now, 1, &k->activation)
         : st == ST_NOTFOUND ? SQLITE_OK
                             : sql_fail_st(t, &err);
    st_view_close(v);
    return rc;
}

void sql_touch_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    char show[SQL_SHOW];
    touch k = {0};
    sql_table *t = sql_fn_table(ctx, argv[0]);
    if (!t) {
        return;
    }
    if (sqlite3_value_type(argv[1]) != SQLITE_INTEGER) {
        sql_fail_fn(ctx, SQLITE_ERROR, t->name, t->store->path, "the id is %s; it takes an integer",
                    sql_show(argv[1], show));
        return;
    }
    k.id = sqlite3_value_int64(argv[1]);
    int rc = read_now(t, argc, argv, 2, &k.now);
    if (rc != SQLITE_OK) {
        sql_fail_fn_table(ctx, t, rc);
        return;
    }
    rc = sql_inside(t, touch_inside, &k);
    if (rc != SQLITE_OK) {
        sql_fail_fn_db(ctx, t->db->db, rc);
    } else if (k.found) {
        sqlite3_result_double(ctx, k.activation);
    }
}

/* ------------------------------------------------------------------------------- track_access */

enum { TRACKED_MAX = 4096 };

struct sql_access {
    int64_t id, count;
    double last;
};

int sql_track_begin(sql_table *t, int *rows)
{
    st_error err = {0};
    st_life life;
    *rows = 0;
    if (st_get_life(t->store->conn, &life, &err) != ST_OK) {
        return sql_fail_st(t, &err);
    }
    *rows = life.track_access && !t->readonly && !st_conn_info(t->store->conn)->readonly
                ? SQL_TRACK_ROWS
                : 0;
    return SQLITE_OK;
}

int sql_track(sql_table *t, int64_t id)
{
    size_t i = 0;
    while (i < t->naccess && t->access[i].id != id) {
        i++;
    }
    if (i == TRACKED_MAX) {
        return SQLITE_OK;
    }
    if (i == t->naccess && (i & (i - 1)) == 0) {
        sql_access *more = sqlite3_realloc64(t->access, (i ? 2 * i : 1) * sizeof *more);
        if (!more) {
            return SQLITE_NOMEM;
        }
        t->access = more;
    }
    if (i == t->naccess) {
        t->access[t->naccess++] = (sql_access){.id = id};
    }
    t->access[i].count++;
    t->access[i].last = sql_now();
    return SQLITE_OK;
}

int sql_track_write(sql_table *t)
{
    st_error err = {0};
    st_view *v;
    st_life life;
    double activation;
    int rc = SQLITE_OK;
    if (!t->naccess) {
        return SQLITE_OK;
    }
    if (st_get_life(t->store->conn, &life, &err) != ST_OK ||
        st_view_open(t->store->conn, &v, &err) != ST_OK) {
        return sql_fail_st(t, &err);
    }
    for (size_t i = 0; i < t->naccess && rc == SQLITE_OK; i++) {
        const sql_access *a = &t->access[i];
        uint64_t row;
        int st = st_view_find(v, a->id, &row, &err);
        if (st == ST_OK) {
            rc = access_row(t, v, row, &life, a->last, a->count, &activation);
        } else if (st != ST_NOTFOUND) {
            rc = sql_fail_st(t, &err);
        }
    }
    st_view_close(v);
    t->naccess = 0;
    return rc;
}

/* ----------------------------------------------------------------------------------------- tick */

typedef struct tick {
    double now, elapsed; /* seconds since the tick before; 0 for the first */
    sql_pass pass;
    int passed; /* a pass was due */
} tick;

static int tick_inside(void *ctx, sql_table *t)
{
    tick *k = ctx;
    st_error err = {0};
    st_life life;
    int rc = sql_txn_write(t);
    rc = rc == SQLITE_OK ? sql_track_write(t) : rc;
    if (rc == SQLITE_OK && st_get_life(t->store->conn, &life, &err) != ST_OK) {
        rc = sql_fail_st(t, &err);
    }
    if (rc == SQLITE_OK && (life.last_tick == 0 || k->now > life.last_tick)) {
        k->elapsed = life.last_tick != 0 ? k->now - life.last_tick : 0;
        rc = sql_set_real(t, "last_tick", k->now);
    }
    if (rc == SQLITE_OK && (life.last_consolidation == 0 ||
                            k->now - life.last_consolidation >= life.consolidate_after)) {
        k->pass.now = k->now;
        k->passed = 1;
        rc = sql_pass_run(&k->pass, t);
    }
    return rc;
}

int sql_tick_command(sql_table *t)
{
    tick k = {.now = sql_now()};
    return sql_inside_again(t, tick_inside, &k);
}

void sql_tick_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    tick k = {0};
    sql_table *t = sql_fn_table(ctx, argv[0]);
    if (!t) {
        return;
    }
    int rc = read_now(t, argc, argv, 1, &k.now);
    if (rc != SQLITE_OK) {
        sql_fail_fn_table(ctx, t, rc);
        return;
    }
    rc = sql_inside(t, tick_inside, &k);
    if (rc != SQLITE_OK) {
        sql_fail_fn_db(ctx, t->db->db, rc);
        return;
    }
    sqlite3_str *out = sqlite3_str_new(t->db->db);
    sqlite3_str_appendf(out, "{\"elapsed\":%!.15g,\"consolidated\":", k.elapsed);
    if (k.passed) {
        sql_pass_json(&k.pass, out);
    } else {
        sqlite3_str_appendall(out, "null");
    }
    sqlite3_str_appendchar(out, 1, '}');
    result_str(ctx, out);
}
