/*
 * sql_row.c - what INSERT and UPDATE give becomes what the store takes, column by column.
 *
 * By the column's affinity, as SQLite would: numeric text into a column of numbers, a number into a
 * column of text, a whole REAL into an INTEGER column. Beyond it: an embedding from a blob or a
 * JSON array, a time from ISO 8601. Anything else is an error that names column and value, where
 * SQLite would store it as it is: the store's columns have one type each.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <string.h>
#include <time.h>

#include "sql_ask.h"
#include "sql_value.h"
#include "vec.h"

static int refuse(sql_table *t, int col, sqlite3_value *v, const char *takes)
{
    char show[SQL_SHOW];
    return sql_fail(t, SQLITE_ERROR, "%s is %s; it takes %s", sql_column_name(t, col),
                    sql_show(v, show), takes);
}

// Nothing times zero is zero but what is finite. Eight sums, which make two registers' work.
static int all_finite(const float *x, size_t n)
{
    float s[8] = {0}, all = 0;
    size_t i = 0;
    for (; n - i >= 8; i += 8) {
        for (size_t j = 0; j < 8; j++) {
            s[j] += x[i + j] * 0.0f;
        }
    }
    for (; i < n; i++) {
        s[0] += x[i] * 0.0f;
    }
    for (size_t j = 0; j < 8; j++) {
        all += s[j];
    }
    return all == 0;
}

static int embedding(sql_table *t, sqlite3_value *v, st_value *out)
{
    size_t dim = (size_t)st_conn_info(t->store->conn)->dim, count = 0;
    char why[160];
    int type = sqlite3_value_type(v);
    if (type == SQLITE_BLOB) {
        size_t n = (size_t)sqlite3_value_bytes(v);
        if (n != dim * 4) {
            return sql_fail(t, SQLITE_ERROR, "embedding has %lld bytes, expected %lld (dim %lld)",
                            (long long)n, (long long)dim * 4, (long long)dim);
        }
        count = dim;
        const void *blob = sqlite3_value_blob(v);
        // What lies as floats do is taken from where it is.
        if (blob && (uintptr_t)blob % sizeof(float) == 0 && all_finite(blob, dim)) {
            out->type = ST_BLOB;
            out->p = blob;
            out->n = n;
            return SQLITE_OK;
        }
        sql_floats_load(blob, dim, t->vector);
    } else if (type == SQLITE_TEXT) {
        const char *s = (const char *)sqlite3_value_text(v);
        if (!s) {
            return SQLITE_NOMEM;
        }
        if (!sql_scan_vector(s, (size_t)sqlite3_value_bytes(v), t->vector, dim, &count, why,
                             sizeof why)) {
            char show[SQL_SHOW];
            return sql_fail(t, SQLITE_ERROR, "embedding %s %s", sql_show(v, show), why);
        }
    } else {
        return refuse(t, ST_COL_EMBEDDING, v,
                      "a blob of 4 bytes a dimension or a JSON array of numbers");
    }
    if (count != dim) {
        return sql_fail(t, SQLITE_ERROR, "dim is %lld, got an embedding of %lld", (long long)dim,
                        (long long)count);
    }
    for (size_t i = 0; i < dim; i++) {
        if (!isfinite(t->vector[i])) {
            return sql_fail(t, SQLITE_ERROR, "embedding is %s at [%lld]",
                            isnan(t->vector[i]) ? "NaN" : "infinite", (long long)i);
        }
    }
    out->type = ST_BLOB;
    out->p = t->vector;
    out->n = dim * 4;
    return SQLITE_OK;
}

static double now(void)
{
    struct timespec ts;
    timespec_get(&ts, TIME_UTC);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static int is_year(const char *s, int n)
{
    return n == 4 && s[0] >= '0' && s[0] <= '9' && s[1] >= '0' && s[1] <= '9' && s[2] >= '0' &&
           s[2] <= '9' && s[3] >= '0' && s[3] <= '9';
}

// Text that is a number is one, by REAL's affinity; '2026' could be meant either way.
static int instant(sql_table *t, int col, sqlite3_value *v, st_value *out)
{
    static const char takes[] = "Unix seconds or ISO 8601 text such as '2026-11-01T18:30:00Z'";
    out->type = ST_REAL;
    if (sqlite3_value_type(v) == SQLITE_TEXT) {
        const char *s = (const char *)sqlite3_value_text(v);
        int n = sqlite3_value_bytes(v);
        if (!s) {
            return SQLITE_NOMEM;
        }
        if (sql_scan_time(s, (size_t)n, &out->r)) {
            return SQLITE_OK;
        }
        if (is_year(s, n)) {
            return refuse(t, col, v, takes);
        }
    }
    int type = sqlite3_value_numeric_type(v);
    if (type != SQLITE_INTEGER && type != SQLITE_FLOAT) {
        return refuse(t, col, v, takes);
    }
    out->r = sqlite3_value_double(v);
    return SQLITE_OK;
}

static int number(sql_table *t, int col, sqlite3_value *v, st_value *out)
{
    int type = sqlite3_value_numeric_type(v);
    if (sql_column_type(t, col) == ST_REAL) {
        if (type != SQLITE_INTEGER && type != SQLITE_FLOAT) {
            return refuse(t, col, v, "a number");
        }
        out->type = ST_REAL;
        out->r = sqlite3_value_double(v);
        return SQLITE_OK;
    }
    out->type = ST_INT;
    if (type == SQLITE_INTEGER) {
        out->i = sqlite3_value_int64(v);
    } else if (type != SQLITE_FLOAT || !sql_whole(sqlite3_value_double(v), &out->i)) {
        return refuse(t, col, v, "a whole number");
    }
    return SQLITE_OK;
}

int sql_row_value(sql_table *t, int col, sqlite3_value *v, st_value *out)
{
    int type = sqlite3_value_type(v), want = sql_column_type(t, col);
    memset(out, 0, sizeof *out);
    if (type == SQLITE_NULL) {
        if (col == ST_COL_TIMESTAMP) {
            out->type = ST_REAL;
            out->r = now();
        }
        return SQLITE_OK;
    }
    if (col == ST_COL_EMBEDDING) {
        return embedding(t, v, out);
    }
    if (sql_column_is_time(col)) {
        return instant(t, col, v, out);
    }
    if (want == ST_INT || want == ST_REAL) {
        return number(t, col, v, out);
    }
    if (want == ST_TEXT && type == SQLITE_BLOB) {
        return refuse(t, col, v, "text");
    }
    if (want == ST_BLOB && type != SQLITE_BLOB) {
        return refuse(t, col, v, "a blob");
    }
    out->type = want;
    out->p = want == ST_TEXT ? (const void *)sqlite3_value_text(v) : sqlite3_value_blob(v);
    out->n = (size_t)sqlite3_value_bytes(v);
    return want == ST_TEXT && !out->p ? SQLITE_NOMEM : SQLITE_OK;
}

int sql_field_tokens(sql_table *t, const st_value text[VEC_FIELDS], sql_tokens *out)
{
    sql_tokenizer *tok;
    int some = 0;
    for (int f = 0; f < VEC_FIELDS; f++) {
        some |= text[f].type != ST_NULL;
    }
    int rc = some ? sql_table_tokenizer(t, &tok) : SQLITE_OK;
    if (rc == SQLITE_OK && some) {
        rc = sql_tokenize_row(tok, text, out);
        if (rc != SQLITE_OK) {
            sql_fail(t, rc, "the tokenizer failed on content, tags or session: %s",
                     sqlite3_errstr(rc));
        }
    }
    return rc;
}

int sql_row_tokens(sql_table *t, const st_value *values, sql_tokens *out)
{
    st_value text[VEC_FIELDS];
    for (int f = 0; f < VEC_FIELDS; f++) {
        text[f] = values[sql_field_columns[f]];
    }
    return sql_field_tokens(t, text, out);
}
