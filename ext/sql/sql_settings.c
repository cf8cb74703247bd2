/*
 * sql_settings.c - the settings of one query: hidden columns that take one value each, and else
 * are the store's option of the same name.
 *
 * One row a setting says what values it takes and where in st_query it goes. A setting reads as its
 * effective value: what the query gave, else the option.
 *
 * ERRORS   each names the setting and the value.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include "sql.h"
#include "sql_value.h"

enum { KIND_REAL, KIND_WHOLE, KIND_FLAG, KIND_FUSION, KIND_SYNTAX, KIND_AS_OF };

typedef struct setting {
    int hid, kind;
    size_t at; /* in st_query */
    double max;
} setting;

#define AT(field) offsetof(st_query, field)

static const setting settings[] = {
    {SQL_HID_FUSION, KIND_FUSION, AT(fusion), 0},
    {SQL_HID_VECTOR_WEIGHT, KIND_REAL, AT(vector_weight), INFINITY},
    {SQL_HID_TEXT_WEIGHT, KIND_REAL, AT(text_weight), INFINITY},
    {SQL_HID_RRF_K, KIND_REAL, AT(rrf_k), INFINITY},
    {SQL_HID_RECALL, KIND_REAL, AT(recall), 1},
    {SQL_HID_NPROBE, KIND_WHOLE, AT(nprobe), 0},
    {SQL_HID_EXACT, KIND_FLAG, AT(exact), 1},
    {SQL_HID_CONTEXT, KIND_REAL, AT(context), ST_CONTEXT_MAX},
    {SQL_HID_RECENCY, KIND_REAL, AT(recency), 1},
    {SQL_HID_IMPORTANCE_WEIGHT, KIND_REAL, AT(importance_weight), 1},
    {SQL_HID_ACTIVATION_WEIGHT, KIND_REAL, AT(activation_weight), 1},
    {SQL_HID_GRAPH_WEIGHT, KIND_REAL, AT(graph_weight), 1},
    {SQL_HID_MIN_SCORE, KIND_REAL, AT(min_score), INFINITY},
    {SQL_HID_DEDUP, KIND_REAL, AT(dedup), 1},
    {SQL_HID_MMR, KIND_REAL, AT(mmr), 1},
    {SQL_HID_EXPAND, KIND_FLAG, AT(expand), 1},
    {SQL_HID_AS_OF, KIND_AS_OF, AT(as_of), INFINITY},
    {SQL_HID_SYNTAX, KIND_SYNTAX, AT(syntax), 0},
};

static const setting *find(int hid)
{
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        if (settings[i].hid == hid) {
            return &settings[i];
        }
    }
    return NULL;
}

static int whole(sql_table *t, int hid, sqlite3_value *v, int64_t *out)
{
    char show[SQL_SHOW];
    int type = sqlite3_value_type(v);
    if (type == SQLITE_INTEGER) {
        *out = sqlite3_value_int64(v);
    } else if (type != SQLITE_FLOAT || !sql_whole(sqlite3_value_double(v), out)) {
        return sql_fail(t, SQLITE_ERROR, "%s is %s; it takes a whole number", sql_hidden_names[hid],
                        sql_show(v, show));
    }
    if (*out < 0) {
        return sql_fail(t, SQLITE_ERROR, "%s is %s; it cannot be negative", sql_hidden_names[hid],
                        sql_show(v, show));
    }
    return SQLITE_OK;
}

static int real(sql_table *t, int hid, double max, sqlite3_value *v, double *out)
{
    char show[SQL_SHOW];
    int type = sqlite3_value_type(v);
    *out = sqlite3_value_double(v);
    if ((type != SQLITE_INTEGER && type != SQLITE_FLOAT) || !isfinite(*out)) {
        return sql_fail(t, SQLITE_ERROR, "%s is %s; it takes a number", sql_hidden_names[hid],
                        sql_show(v, show));
    }
    if (hid != SQL_HID_AS_OF && hid != SQL_HID_MIN_SCORE && *out < 0) {
        return sql_fail(t, SQLITE_ERROR, "%s is %s; it cannot be negative", sql_hidden_names[hid],
                        sql_show(v, show));
    }
    if (hid == SQL_HID_RECALL && *out < 0.5) {
        return sql_fail(t, SQLITE_ERROR, "recall is %s; it is at least 0.5", sql_show(v, show));
    }
    if (*out > max) {
        return sql_fail(t, SQLITE_ERROR, "%s is %s; it is at most %g", sql_hidden_names[hid],
                        sql_show(v, show), max);
    }
    return SQLITE_OK;
}

static int fusion(sql_table *t, sqlite3_value *v, int *out)
{
    char show[SQL_SHOW];
    const char *s = sqlite3_value_type(v) == SQLITE_TEXT ? (const char *)sqlite3_value_text(v) : "";
    if (s && sqlite3_stricmp(s, "rrf") == 0) {
        *out = ST_FUSE_RRF;
    } else if (s && sqlite3_stricmp(s, "weighted") == 0) {
        *out = ST_FUSE_WEIGHTED;
    } else {
        return sql_fail(t, SQLITE_ERROR, "fusion is %s; known are 'rrf' and 'weighted'",
                        sql_show(v, show));
    }
    return SQLITE_OK;
}

int sql_setting_bind(sql_table *t, int hid, sqlite3_value *v, st_query *q)
{
    const setting *s = find(hid);
    double flag = 0;
    int rc;
    if (hid == SQL_HID_K) {
        return whole(t, hid, v, &q->k);
    }
    if (s->kind == KIND_SYNTAX) {
        return sql_setting_syntax(t, v, &q->syntax);
    }
    if (s->kind == KIND_AS_OF) {
        q->has_as_of = 1;
    }
    if (s->kind == KIND_WHOLE) {
        return whole(t, hid, v, (int64_t *)(void *)((char *)q + s->at));
    }
    if (s->kind == KIND_FUSION) {
        return fusion(t, v, &q->fusion);
    }
    if (s->kind == KIND_FLAG) {
        rc = real(t, hid, s->max, v, &flag);
        *(int *)(void *)((char *)q + s->at) = flag != 0;
        return rc;
    }
    return real(t, hid, s->max, v, (double *)(void *)((char *)q + s->at));
}

void sql_setting_result(sqlite3_context *ctx, sql_table *t, int hid)
{
    char buf[64];
    double x;
    st_error err = {0};
    const char *name = sql_hidden_names[hid];
    if (!find(hid)) {
        return; // k, which has no default
    }
    if (st_get_option(t->store->conn, name, buf, sizeof buf, &err) != ST_OK) {
        sql_fail_fn(ctx, sql_code(err.code), t->name, t->store->path, "%s", err.text);
        return;
    }
    size_t n = strlen(buf);
    if (st_option_type(name) == ST_TEXT) {
        sqlite3_result_text(ctx, buf, -1, SQLITE_TRANSIENT);
    } else if (n && sql_scan_f64(buf, n, &x) == n) {
        if (st_option_type(name) == ST_INT) {
            sqlite3_result_int64(ctx, (sqlite3_int64)x);
        } else {
            sqlite3_result_double(ctx, x);
        }
    }
}

double sql_now(void)
{
    struct timespec now;
    return timespec_get(&now, TIME_UTC) ? (double)now.tv_sec + (double)now.tv_nsec * 1e-9 : 0;
}
