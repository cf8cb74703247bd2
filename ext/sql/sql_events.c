/*
 * sql_events.c - what happened, as rows: h5mem_events(t [, after_seq]) and
 * h5mem_timeline(t, name [, 'session' or 'entity']).
 *
 * Eponymous, read-only tables; arguments are hidden columns. A cursor reads one view of the store,
 * which it keeps open.
 *
 * EVENTS    seq, time, kind, id, json: those with a greater number than after_seq, in the order
 *           they were written; those that h5mem_forget has silenced come last.
 * TIMELINE  at, what, id, text, in order of time. Of a session: its rows and those of its children
 *           and theirs, with the events of these rows and sessions. Of an entity: the rows whose
 *           content has the name as a phrase. what is memory for a row, and text its content; else
 *           the kind of the event, and text its json.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sql_ask.h"
#include "sql_json.h"

enum { ARGS_MAX = 3, ARG_TABLE = 0, ARG_AFTER = 1, ARG_NAME = 1, ARG_OF = 2 };

typedef struct function {
    const char *name, *schema, *takes;
    int columns, args, need;
} function;

static const function functions[] = {
    {"h5mem_events",
     "CREATE TABLE x(seq INTEGER, time REAL, kind TEXT, id INTEGER, json TEXT, \"table\" HIDDEN, "
     "after_seq HIDDEN)",
     "the name of a table", 5, 2, 1},
    {"h5mem_timeline",
     "CREATE TABLE x(at REAL, what TEXT, id INTEGER, text TEXT, \"table\" HIDDEN, name HIDDEN, "
     "\"of\" HIDDEN)",
     "the names of a table and of a session or an entity", 4, 3, 2},
};

typedef struct events_table {
    sqlite3_vtab base;
    sql_db *db;
    const function *what;
} events_table;

typedef struct item {
    double at;
    uint64_t row; /* of the rows, or of the events */
    int event;
    size_t order;
} item;

typedef struct events_cursor {
    sqlite3_vtab_cursor base;
    sqlite3_value *arg[ARGS_MAX];
    sql_store *store; /* kept while the view is open */
    st_view *view;
    uint64_t row; /* events: the one it is on */
    int eof;
    item *item; /* timeline */
    size_t n, room, at;
} events_cursor;

static int fail(events_cursor *c, int rc, const char *text)
{
    sqlite3_free(c->base.pVtab->zErrMsg);
    c->base.pVtab->zErrMsg = sqlite3_mprintf("h5mem: %s: %s",
                                             ((events_table *)c->base.pVtab)->what->name, text);
    return rc;
}

static int fail_st(events_cursor *c, const st_error *err)
{
    return fail(c, sql_code(err->code), err->text);
}

/* ------------------------------------------------------------------------------------- timeline */

static int add_item(events_cursor *c, double at, uint64_t row, int event)
{
    if (c->n == c->room) {
        size_t room = c->room * 2 + 64;
        item *more = sqlite3_realloc64(c->item, room * sizeof *more);
        if (!more) {
            return SQLITE_NOMEM;
        }
        c->item = more;
        c->room = room;
    }
    c->item[c->n] = (item){at, row, event, c->n};
    c->n++;
    return SQLITE_OK;
}

static int by_time(const void *a, const void *b)
{
    const item *x = a, *y = b;
    if (x->at < y->at || x->at > y->at) {
        return x->at < y->at ? -1 : 1;
    }
    return x->order < y->order ? -1 : x->order > y->order;
}

/* Names of sessions. The first one's text is the caller's. */
typedef struct names {
    st_value *v;
    size_t n, room;
} names;

static int add_name(names *s, const st_value *v, int copy)
{
    void *p = NULL;
    if (s->n == s->room) {
        size_t room = s->room * 2 + 16;
        st_value *more = sqlite3_realloc64(s->v, room * sizeof *more);
        if (!more) {
            return SQLITE_NOMEM;
        }
        s->v = more;
        s->room = room;
    }
    if (copy) {
        p = sqlite3_malloc64(v->n + 1);
        if (!p) {
            return SQLITE_NOMEM;
        }
        memcpy(p, v->p, v->n);
    }
    s->v[s->n] = *v;
    s->v[s->n++].p = copy ? p : v->p;
    return SQLITE_OK;
}

static void free_names(names *s)
{
    for (size_t i = 1; i < s->n; i++) {
        sqlite3_free((void *)(uintptr_t)s->v[i].p);
    }
    sqlite3_free(s->v);
}

static int has_name(const names *s, const void *p, size_t n)
{
    size_t i = 0;
    while (i < s->n && !(s->v[i].n == n && (!n || memcmp(s->v[i].p, p, n) == 0))) {
        i++;
    }
    return i < s->n;
}

/* Adds the children of those that are there. *more: some were found. */
static int add_children(events_cursor *c, names *s, int *more)
{
    st_error err = {0};
    uint64_t row = 0;
    int st;
    *more = 0;
    for (; (st = st_side_next(c->view, ST_SESSIONS, row, &row, &err)) == ST_OK; row++) {
        st_value id, parent;
        st = st_side_value(c->view, ST_SESSIONS, row, ST_SESSION_PARENT, &parent, &err);
        st = st == ST_OK ? st_side_value(c->view, ST_SESSIONS, row, ST_SESSION_ID, &id, &err) : st;
        if (st != ST_OK) {
            return fail_st(c, &err);
        }
        if (parent.type == ST_TEXT && has_name(s, parent.p, parent.n) && !has_name(s, id.p, id.n)) {
            int rc = add_name(s, &id, 1);
            if (rc != SQLITE_OK) {
                return rc;
            }
            *more = 1;
        }
    }
    return st == ST_NOTFOUND ? SQLITE_OK : fail_st(c, &err);
}

/* The ids of the rows that are in the timeline, ascending. */
typedef struct ids {
    int64_t *id;
    size_t n;
} ids;

static int by_number(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

static int list_ids(events_cursor *c, ids *out)
{
    st_error err = {0};
    out->id = sqlite3_malloc64((c->n + 1) * sizeof *out->id);
    if (!out->id) {
        return SQLITE_NOMEM;
    }
    for (out->n = 0; out->n < c->n; out->n++) {
        st_value v;
        if (st_view_value(c->view, c->item[out->n].row, ST_COL_ID, &v, &err) != ST_OK) {
            return fail_st(c, &err);
        }
        out->id[out->n] = v.i;
    }
    qsort(out->id, out->n, sizeof *out->id, by_number);
    return SQLITE_OK;
}

/* Does the object have a member session that is one of the names? 1, 0, -1 without memory. */
static int about_session(const st_value *json, const names *s)
{
    sql_json j;
    sql_json_value v;
    const char *name;
    size_t n;
    int found = 0;
    char *copy;
    if (json->type != ST_TEXT) {
        return 0;
    }
    copy = sqlite3_malloc64(json->n + 1);
    if (!copy) {
        return -1;
    }
    memcpy(copy, json->p, json->n);
    sql_json_begin(&j, copy, json->n);
    while (!found && sql_json_member(&j, &name, &n, &v) == 1) {
        found = v.kind == SQL_JSON_TEXT && n == 7 && memcmp(name, "session", 7) == 0 &&
                has_name(s, v.p, v.n);
    }
    sqlite3_free(copy);
    return found;
}

static int add_events(events_cursor *c, const names *s, const ids *rows)
{
    st_error err = {0};
    uint64_t row = 0;
    int st;
    for (; (st = st_side_next(c->view, ST_EVENTS, row, &row, &err)) == ST_OK; row++) {
        st_value id, json, time;
        int wanted, rc = SQLITE_OK;
        st = st_side_value(c->view, ST_EVENTS, row, ST_EVENT_ID, &id, &err);
        st = st == ST_OK ? st_side_value(c->view, ST_EVENTS, row, ST_EVENT_JSON, &json, &err) : st;
        st = st == ST_OK ? st_side_value(c->view, ST_EVENTS, row, ST_EVENT_TIME, &time, &err) : st;
        if (st != ST_OK) {
            return fail_st(c, &err);
        }
        wanted = (id.type == ST_INT &&
                  bsearch(&id.i, rows->id, rows->n, sizeof *rows->id, by_number) != NULL);
        wanted = wanted ? wanted : about_session(&json, s);
        if (wanted) {
            rc = wanted > 0 ? add_item(c, time.type ? time.r : 0, row, 1) : SQLITE_NOMEM;
        }
        if (rc != SQLITE_OK) {
            return rc;
        }
    }
    return st == ST_NOTFOUND ? SQLITE_OK : fail_st(c, &err);
}

static int add_rows(events_cursor *c, const st_query *q)
{
    st_error err = {0};
    st_cursor *cur;
    int got, rc = SQLITE_OK;
    if (st_search(c->view, q, &cur, &err) != ST_OK) {
        return fail_st(c, &err);
    }
    while (rc == SQLITE_OK && (got = st_cursor_next(cur, &err)) != 0) {
        st_value at;
        uint64_t row = st_cursor_row(cur);
        rc = got < 0 || st_view_value(c->view, row, ST_COL_TIMESTAMP, &at, &err) != ST_OK
                 ? fail_st(c, &err)
                 : add_item(c, at.r, row, 0);
    }
    st_cursor_close(cur);
    return rc;
}

static int of_session(events_cursor *c, const st_value *name)
{
    names s = {0};
    ids rows = {0};
    st_term term = {.col = ST_COL_SESSION, .op = ST_IN};
    st_query q = {.terms = &term, .nterm = 1, .k = -1, .every = 1, .order = ST_ORDER_TIME};
    int more = 1, rc = add_name(&s, name, 0);
    while (rc == SQLITE_OK && more) {
        rc = add_children(c, &s, &more);
    }
    term.list = s.v;
    term.nlist = s.n;
    rc = rc == SQLITE_OK ? add_rows(c, &q) : rc;
    rc = rc == SQLITE_OK ? list_ids(c, &rows) : rc;
    rc = rc == SQLITE_OK ? add_events(c, &s, &rows) : rc;
    sqlite3_free(rows.id);
    free_names(&s);
    return rc;
}

static int of_entity(events_cursor *c, sql_table *t, const st_value *name)
{
    sql_ask ask;
    sql_tokenizer *tok;
    st_query q = {.k = -1, .every = 1, .has_text = 1, .ask_filters = 1};
    int rc = sql_table_tokenizer(t, &tok);
    if (rc != SQLITE_OK) {
        return fail(c, rc, t->base.zErrMsg ? t->base.zErrMsg : "no tokenizer");
    }
    st_query_defaults(t->store->conn, &q);
    q.context = q.min_score = q.dedup = q.mmr = 0; // nothing may hide a row
    q.has_min_score = 0;
    memset(&ask, 0, sizeof ask);
    rc = sql_ask_must(&ask, tok, name->p, name->n);
    if (rc == SQLITE_OK && ask.words.n > 0) {
        rc = sql_ask_finish(&ask);
        q.ask = &ask.ask;
        rc = rc == SQLITE_OK ? add_rows(c, &q) : rc;
    }
    sql_ask_free(&ask);
    return rc;
}

static int fill_timeline(events_cursor *c, sql_table *t)
{
    char show[SQL_SHOW], text[160];
    sqlite3_value *of = c->arg[ARG_OF];
    const char *what = of ? (const char *)sqlite3_value_text(of) : "session";
    st_value name = {.type = ST_TEXT, .p = sqlite3_value_text(c->arg[ARG_NAME])};
    int rc;
    name.n = (size_t)sqlite3_value_bytes(c->arg[ARG_NAME]);
    if (!name.p || !what) {
        return SQLITE_NOMEM;
    }
    if (sqlite3_stricmp(what, "session") == 0) {
        rc = of_session(c, &name);
    } else if (sqlite3_stricmp(what, "entity") == 0) {
        rc = of_entity(c, t, &name);
    } else {
        sqlite3_snprintf(sizeof text, text, "it is of a 'session' or an 'entity', not %s",
                         sql_show(of, show));
        rc = fail(c, SQLITE_ERROR, text);
    }
    if (rc == SQLITE_OK && c->n) {
        qsort(c->item, c->n, sizeof *c->item, by_time);
    }
    return rc;
}

/* --------------------------------------------------------------------------------------- events */

/* On to the event at or behind from. */
static int seek(events_cursor *c, uint64_t from)
{
    st_error err = {0};
    int st = st_side_next(c->view, ST_EVENTS, from, &c->row, &err);
    c->eof = st == ST_NOTFOUND;
    return st == ST_OK || c->eof ? SQLITE_OK : fail_st(c, &err);
}

static int next_event(events_cursor *c, uint64_t from)
{
    sqlite3_value *after = c->arg[ARG_AFTER];
    int64_t least = after ? sqlite3_value_int64(after) : INT64_MIN;
    int rc;
    if (after && from == 0) {
        st_error err = {0};
        if (st_side_after(c->view, ST_EVENTS, least, &from, &err) != ST_OK) {
            return fail_st(c, &err);
        }
    }
    rc = seek(c, from);
    while (rc == SQLITE_OK && !c->eof) {
        st_error err = {0};
        st_value seq;
        if (st_side_value(c->view, ST_EVENTS, c->row, ST_EVENT_SEQ, &seq, &err) != ST_OK) {
            return fail_st(c, &err);
        }
        if (!after || seq.i > least) {
            break;
        }
        rc = seek(c, c->row + 1);
    }
    return rc;
}

/* ----------------------------------------------------------------------------------- the module */

static int is_events(const events_cursor *c)
{
    return ((events_table *)c->base.pVtab)->what == &functions[0];
}

static int x_connect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out,
                     char **err)
{
    const function *what = &functions[sqlite3_stricmp(argv[0], functions[0].name) != 0];
    (void)argc;
    (void)err;
    int rc = sqlite3_declare_vtab(db, what->schema);
    if (rc != SQLITE_OK) {
        return rc;
    }
    events_table *t = sqlite3_malloc(sizeof *t);
    if (!t) {
        return SQLITE_NOMEM;
    }
    memset(t, 0, sizeof *t);
    t->db = aux;
    t->db->live++;
    t->what = what;
    *out = &t->base;
    return SQLITE_OK;
}

static int x_disconnect(sqlite3_vtab *v)
{
    sql_db *d = ((events_table *)v)->db;
    sqlite3_free(v);
    d->live--;
    sql_db_idle(d);
    return SQLITE_OK;
}

static int x_best_index(sqlite3_vtab *v, sqlite3_index_info *info)
{
    const function *what = ((events_table *)v)->what;
    return sql_rows_best_index(info, what->columns, what->args, 1000);
}

static int x_open(sqlite3_vtab *v, sqlite3_vtab_cursor **out)
{
    (void)v;
    events_cursor *c = sqlite3_malloc(sizeof *c);
    if (!c) {
        return SQLITE_NOMEM;
    }
    memset(c, 0, sizeof *c);
    *out = &c->base;
    return SQLITE_OK;
}

static void clear(events_cursor *c)
{
    for (int i = 0; i < ARGS_MAX; i++) {
        sqlite3_value_free(c->arg[i]);
        c->arg[i] = NULL;
    }
    st_view_close(c->view);
    sql_store_detach(c->store);
    c->view = NULL;
    c->store = NULL;
    c->n = c->at = 0;
    c->eof = 1;
}

static int x_close(sqlite3_vtab_cursor *base)
{
    events_cursor *c = (events_cursor *)base;
    clear(c);
    sqlite3_free(c->item);
    sqlite3_free(c);
    return SQLITE_OK;
}

static int open_store(events_cursor *c, sql_table **out)
{
    sql_db *d = ((events_table *)c->base.pVtab)->db;
    const char *name = (const char *)sqlite3_value_text(c->arg[ARG_TABLE]);
    char *why = NULL;
    st_error err = {0};
    int rc = name ? sql_table_find(d, name, out, &why) : SQLITE_NOMEM;
    if (rc != SQLITE_OK) {
        sqlite3_free(c->base.pVtab->zErrMsg);
        c->base.pVtab->zErrMsg = why;
        return rc;
    }
    rc = sql_table_open(*out);
    if (rc != SQLITE_OK) {
        sqlite3_free(c->base.pVtab->zErrMsg);
        c->base.pVtab->zErrMsg = (*out)->base.zErrMsg;
        (*out)->base.zErrMsg = NULL;
        return rc;
    }
    c->store = (*out)->store;
    c->store->refs++;
    return st_view_open(c->store->conn, &c->view, &err) == ST_OK ? SQLITE_OK : fail_st(c, &err);
}

/* 1: one of the arguments is NULL, and there are no rows. */
static int take_args(events_cursor *c, int idx_num, sqlite3_value **argv, int *null)
{
    const function *what = ((events_table *)c->base.pVtab)->what;
    *null = 0;
    for (int arg = 0, k = 0; arg < what->args; arg++) {
        if (idx_num & 1 << arg) {
            *null |= sqlite3_value_type(argv[k]) == SQLITE_NULL;
            c->arg[arg] = sqlite3_value_dup(argv[k++]);
            if (!c->arg[arg]) {
                return SQLITE_NOMEM;
            }
        } else if (arg < what->need) {
            char text[120];
            sqlite3_snprintf(sizeof text, text, "it takes %s", what->takes);
            return fail(c, SQLITE_ERROR, text);
        }
    }
    return SQLITE_OK;
}

static int x_filter(sqlite3_vtab_cursor *base, int idx_num, const char *idx_str, int argc,
                    sqlite3_value **argv)
{
    events_cursor *c = (events_cursor *)base;
    sql_table *t = NULL;
    int null;
    (void)idx_str;
    (void)argc;
    clear(c);
    int rc = take_args(c, idx_num, argv, &null);
    if (rc != SQLITE_OK || null) {
        return rc;
    }
    rc = open_store(c, &t);
    if (rc == SQLITE_OK) {
        rc = is_events(c) ? next_event(c, 0) : fill_timeline(c, t);
    }
    return rc;
}

static int x_next(sqlite3_vtab_cursor *base)
{
    events_cursor *c = (events_cursor *)base;
    c->at++;
    return is_events(c) ? next_event(c, c->row + 1) : SQLITE_OK;
}

static int x_eof(sqlite3_vtab_cursor *base)
{
    events_cursor *c = (events_cursor *)base;
    return is_events(c) ? c->eof : c->at >= c->n;
}

static int timeline_column(events_cursor *c, sqlite3_context *ctx, int i)
{
    static const int rows[] = {ST_COL_TIMESTAMP, -1, ST_COL_ID, ST_COL_CONTENT};
    static const int events[] = {ST_EVENT_TIME, ST_EVENT_KIND, ST_EVENT_ID, ST_EVENT_JSON};
    const item *it = &c->item[c->at];
    st_error err = {0};
    st_value v;
    if (!it->event && rows[i] < 0) {
        sqlite3_result_text(ctx, "memory", -1, SQLITE_STATIC);
        return SQLITE_OK;
    }
    int st = it->event ? st_side_value(c->view, ST_EVENTS, it->row, events[i], &v, &err)
                       : st_view_value(c->view, it->row, rows[i], &v, &err);
    if (st != ST_OK) {
        return fail_st(c, &err);
    }
    sql_side_result(ctx, &v);
    return SQLITE_OK;
}

static int x_column(sqlite3_vtab_cursor *base, sqlite3_context *ctx, int i)
{
    events_cursor *c = (events_cursor *)base;
    const function *what = ((events_table *)base->pVtab)->what;
    st_error err = {0};
    st_value v;
    if (i >= what->columns) {
        if (c->arg[i - what->columns]) {
            sqlite3_result_value(ctx, c->arg[i - what->columns]);
        }
        return SQLITE_OK;
    }
    if (!is_events(c)) {
        return timeline_column(c, ctx, i);
    }
    if (st_side_value(c->view, ST_EVENTS, c->row, i, &v, &err) != ST_OK) {
        return fail_st(c, &err);
    }
    sql_side_result(ctx, &v);
    return SQLITE_OK;
}

static int x_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *out)
{
    events_cursor *c = (events_cursor *)base;
    *out = (sqlite3_int64)(is_events(c) ? c->row : c->at) + 1;
    return SQLITE_OK;
}

const sqlite3_module sql_events_module = {
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
