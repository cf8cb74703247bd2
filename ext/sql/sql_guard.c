/*
 * sql_guard.c - rates of writing and orders in texts: what is looked at, refused, noted.
 *
 * A limit is reported when it is passed, and again at twice and four times the limit, so that a
 * flood of rows is none of events. More than four times the limit is not counted.
 *
 * SPDX-License-Identifier: MIT
 */
#include "sql_guard.h"

#include <string.h>

#include "sql_scan.h"

#define WINDOW  60.0 /* seconds */
#define COUNTED 4    /* times the limit */

const char *const sql_source_names[7] = {NULL,   "user",      "assistant", "system",
                                         "tool", "retrieval", "correction"};

int sql_source_of(const st_value *v)
{
    for (int i = 1; i < 7 && v->type == ST_TEXT; i++) {
        if (strlen(sql_source_names[i]) == v->n && memcmp(sql_source_names[i], v->p, v->n) == 0) {
            return i;
        }
    }
    return 0;
}

int sql_guard_look(sql_table *t, sql_guard *g)
{
    st_error err = {0};
    if (st_get_policy(t->store->conn, &g->policy, &err) != ST_OK) {
        return sql_fail_st(t, &err);
    }
    g->on = g->policy.scan;
    for (int i = 1; i < 7; i++) {
        g->on |= g->policy.rate[i] > 0;
    }
    g->source = 0;
    g->there = 0;
    return SQLITE_OK;
}

/* ----------------------------------------------------------------------------------------- rate */

/* Rows of a source in the minute that ends at a time, `most` at most. */
static int count_rows(sql_table *t, int source, double time, int64_t most, int64_t *out)
{
    const char *name = sql_source_names[source];
    st_term terms[] = {
        {.col = ST_COL_TIMESTAMP, .op = ST_GT, .value = {.type = ST_REAL, .r = time - WINDOW}},
        {.col = ST_COL_TIMESTAMP, .op = ST_LE, .value = {.type = ST_REAL, .r = time}},
        {.col = ST_COL_SOURCE,
         .op = ST_EQ,
         .value = {.type = ST_TEXT, .p = name, .n = strlen(name)}}};
    st_query q = {.terms = terms, .nterm = 3, .order = ST_ORDER_ID, .k = most};
    st_error err = {0};
    st_view *v;
    st_cursor *c;
    int got = 0;
    *out = 0;
    int st = st_view_open(t->store->conn, &v, &err);
    if (st != ST_OK) {
        return sql_fail_st(t, &err);
    }
    st = st_search(v, &q, &c, &err);
    if (st == ST_OK) {
        while ((got = st_cursor_next(c, &err)) > 0) {
            ++*out;
        }
        st_cursor_close(c);
    }
    st_view_close(v);
    return st == ST_OK && got >= 0 ? SQLITE_OK : sql_fail_st(t, &err);
}

int sql_guard_is_full(sql_table *t, const st_policy *p, int source, double time, int *full)
{
    int64_t there = 0;
    int rc = SQLITE_OK;
    if (p->rate[source] > 0) {
        rc = count_rows(t, source, time, p->rate[source], &there);
    }
    *full = p->rate[source] > 0 && there >= p->rate[source];
    return rc;
}

int sql_guard_admit(sql_table *t, sql_guard *g, const st_value *values)
{
    const st_value *when = &values[ST_COL_TIMESTAMP];
    double time = when->type == ST_REAL  ? when->r
                  : when->type == ST_INT ? (double)when->i
                                         : sql_now();
    g->source = sql_source_of(&values[ST_COL_SOURCE]);
    int64_t limit = g->policy.rate[g->source];
    if (g->source == 0 || limit <= 0) {
        return SQLITE_OK;
    }
    int rc = count_rows(t, g->source, time, COUNTED * limit + 1, &g->there);
    if (rc == SQLITE_OK && g->there >= limit && g->policy.rate_refuse) {
        t->store->refused++;
        t->store->refused_source = g->source;
        return sql_fail(t, SQLITE_ERROR,
                        "rate_%s is %lld rows a minute, and so many are there in the minute before "
                        "%.0f",
                        sql_source_names[g->source], (long long)limit, time);
    }
    return rc;
}

/* --------------------------------------------------------------------------------------- events */

static int put_event(sql_table *t, const char *kind, const int64_t *id, sqlite3_str *json)
{
    st_error err = {0};
    char *text = sqlite3_str_finish(json);
    int rc = text ? SQLITE_OK : SQLITE_NOMEM;
    if (text && st_event(t->store->conn, sql_now(), kind, id, text, &err) != ST_OK) {
        rc = sql_fail_st(t, &err);
    }
    sqlite3_free(text);
    return rc;
}

int sql_guard_note_refused(sql_table *t, const st_policy *p, int source, int64_t n)
{
    sqlite3_str *s = sqlite3_str_new(NULL);
    sqlite3_str_appendf(s, "{\"source\":\"%s\",\"limit\":%lld,\"refused\":%lld}",
                        sql_source_names[source], (long long)p->rate[source], (long long)n);
    return put_event(t, "rate", NULL, s);
}

static int note_rate(sql_table *t, const sql_guard *g, int64_t id)
{
    int64_t limit = g->policy.rate[g->source];
    sqlite3_str *s = sqlite3_str_new(NULL);
    sqlite3_str_appendf(s, "{\"source\":\"%s\",\"limit\":%lld,\"rows\":%lld}",
                        sql_source_names[g->source], (long long)limit, (long long)g->there + 1);
    return put_event(t, "rate", &id, s);
}

static int note_orders(sql_table *t, const sql_guard *g, int64_t id, const st_value *content)
{
    mind_finding found[SQL_SCAN_MAX];
    size_t n = mind_scan(content->p, content->n, found, SQL_SCAN_MAX);
    int worst = 0;
    for (size_t i = 0; i < n; i++) {
        worst = found[i].severity > worst ? found[i].severity : worst;
    }
    if (n == 0 || worst < MIND_MEDIUM) {
        return SQLITE_OK;
    }
    const char *source = sql_source_names[g->source];
    sqlite3_str *s = sqlite3_str_new(NULL);
    sqlite3_str_appendf(s,
                        "{\"source\":%s%s%s,\"severity\":\"%s\",\"findings\":", source ? "\"" : "",
                        source ? source : "null", source ? "\"" : "", mind_severity_name(worst));
    sql_scan_json(s, content->p, found, n);
    sqlite3_str_appendchar(s, 1, '}');
    return put_event(t, "injection", &id, s);
}

int sql_guard_note(sql_table *t, sql_guard *g, int64_t id, const st_value *content, int updated)
{
    int64_t limit = g->policy.rate[g->source];
    int rc = SQLITE_OK;
    if (t->store->refused && !updated) {
        rc = sql_guard_note_refused(t, &g->policy, t->store->refused_source, t->store->refused);
        t->store->refused = 0;
    }
    if (rc == SQLITE_OK && !updated && limit > 0 &&
        (g->there == limit || g->there == 2 * limit || g->there == COUNTED * limit)) {
        rc = note_rate(t, g, id);
    }
    return rc == SQLITE_OK && g->policy.scan && content->type == ST_TEXT
               ? note_orders(t, g, id, content)
               : rc;
}
