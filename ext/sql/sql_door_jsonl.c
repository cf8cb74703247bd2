/*
 * sql_door_jsonl.c - 'jsonl': one JSON object a line, one line a row, by id.
 *
 *     {"id":7,"content":"...","embedding":[0.25,-1],"timestamp":1764547200.0,"session":null,...}
 *
 * Written are all columns, user columns too, under their names. Numbers have as few digits as give
 * the same number back, to the bit (in a vector, the same 32-bit float). An infinite REAL is
 * 9e999. A BLOB, and a TEXT that is no UTF-8, is {"base64": "..."}; a NUL in a text \u0000.
 *
 * Read: a line whose id is a row's changes the columns that it names, any other adds a row, whose
 * other columns take their defaults. Values are taken as INSERT takes them, so a time may be
 * ISO 8601; an embedding may be base64 of little-endian floats. White space lines and a byte order
 * mark are passed over. A name that the table has no column for is an error unless its value is
 * null, as is a name given twice.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <string.h>

#include "sql_json.h"
#include "sql_value.h"

/* --------------------------------------------------------------------------------------- export */

typedef struct writer {
    sql_door *d;
    sql_out out;
} writer;

static int put_vector(sql_out *o, const st_value *v)
{
    char text[SQL_F32_TEXT + 1];
    int rc = SQLITE_OK;
    for (size_t i = 0; i < v->n / sizeof(float) && rc == SQLITE_OK; i++) {
        float x;
        memcpy(&x, (const char *)v->p + i * sizeof x, sizeof x);
        text[0] = i ? ',' : '[';
        sql_print_f32(x, text + 1);
        rc = sql_out_text(o, text);
    }
    return rc == SQLITE_OK ? sql_out_text(o, "]") : rc;
}

int sql_json_put_column(sql_out *o, sql_door *d, int col, const st_value *v)
{
    char text[SQL_F64_TEXT];
    const char *name = sql_column_name(d->t, col);
    int rc = sql_json_put_text(o, name, strlen(name));
    rc = rc == SQLITE_OK ? sql_out_text(o, ":") : rc;
    if (rc != SQLITE_OK) {
        return rc;
    }
    switch (v->type) {
    case ST_INT:
        sqlite3_snprintf(sizeof text, text, "%lld", (long long)v->i);
        return sql_out_text(o, text);
    case ST_REAL:
        sql_print_f64(v->r, text);
        return sql_out_text(o, text);
    case ST_TEXT:
        return sql_json_put_text(o, v->p, v->n);
    case ST_BLOB:
        return col == ST_COL_EMBEDDING ? put_vector(o, v) : sql_json_put_bytes(o, v->p, v->n);
    default:
        return sql_out_text(o, "null");
    }
}

static int put_row(void *ctx, uint64_t row, int64_t id)
{
    writer *w = ctx;
    int rc = SQLITE_OK;
    (void)id;
    for (int i = 0; i < w->d->ncolumn && rc == SQLITE_OK; i++) {
        st_value v;
        rc = sql_door_value(w->d, row, i, &v);
        rc = rc == SQLITE_OK ? sql_out_text(&w->out, i ? "," : "{") : rc;
        rc = rc == SQLITE_OK ? sql_json_put_column(&w->out, w->d, i, &v) : rc;
    }
    w->d->rows++;
    return rc == SQLITE_OK ? sql_out_text(&w->out, "}\n") : rc;
}

int sql_jsonl_export(sql_door *d, const char *path)
{
    writer w = {.d = d};
    int rc = sql_out_open(d, path, 1, &w.out);
    if (rc == SQLITE_OK) {
        rc = sql_out_close(&w.out, sql_door_scan(d, put_row, &w));
    }
    return rc;
}

/* --------------------------------------------------------------------------------------- import */

static int take(sql_door *d, int col, const sql_json_value *v)
{
    st_value *out = &d->value[col];
    memset(out, 0, sizeof *out);
    d->given[col] = 1;
    switch (v->kind) {
    case SQL_JSON_INT:
        out->type = ST_INT;
        out->i = v->i;
        break;
    case SQL_JSON_REAL:
        out->type = ST_REAL;
        out->r = v->r;
        break;
    case SQL_JSON_ARRAY:
        if (col != ST_COL_EMBEDDING) {
            return sql_door_fail(d, SQLITE_ERROR, "%s is an array", sql_column_name(d->t, col));
        }
        /* fall through */
    case SQL_JSON_TEXT:
        out->type = ST_TEXT;
        break;
    case SQL_JSON_BYTES:
        out->type = sql_column_type(d->t, col) == ST_TEXT ? ST_TEXT : ST_BLOB;
        break;
    default:
        break;
    }
    out->p = v->p;
    out->n = v->n;
    if (col == ST_COL_ID && out->type == ST_REAL && sql_whole(out->r, &out->i)) {
        out->type = ST_INT;
    }
    if (col == ST_COL_ID && out->type != ST_INT && out->type != ST_NULL) {
        return sql_door_fail(d, SQLITE_ERROR, "id is no whole number");
    }
    return SQLITE_OK;
}

int sql_json_row(sql_door *d, char *s, size_t n)
{
    sql_json j;
    const char *name;
    size_t nname;
    sql_json_value v;
    int more, col = -1;
    sql_json_begin(&j, s, n);
    sql_door_clear(d);
    while ((more = sql_json_member(&j, &name, &nname, &v)) > 0) {
        const char *next = col + 1 < d->ncolumn ? sql_column_name(d->t, col + 1) : "";
        // mostly in the order of the columns
        col = strlen(next) == nname && memcmp(next, name, nname) == 0
                  ? col + 1
                  : sql_door_column(d, name, nname);
        int shown = nname < 60 ? (int)nname : 60;
        if (col < 0 && v.kind != SQL_JSON_NULL) {
            return sql_door_fail(d, SQLITE_ERROR, "the table has no column \"%.*s\"", shown, name);
        }
        if (col >= 0 && d->given[col]) {
            return sql_door_fail(d, SQLITE_ERROR, "%.*s is given twice", shown, name);
        }
        int rc = col >= 0 ? take(d, col, &v) : SQLITE_OK;
        if (rc != SQLITE_OK) {
            return rc;
        }
    }
    return more < 0 ? sql_door_fail(d, SQLITE_ERROR, "%s", j.why) : SQLITE_OK;
}

static int is_blank(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (s[i] != ' ' && s[i] != '\t' && s[i] != '\r') {
            return 0;
        }
    }
    return 1;
}

int sql_jsonl_import(sql_door *d, const char *path)
{
    sql_in in;
    char *s;
    size_t n;
    int rc = sql_in_open(d, path, &in);
    while (rc == SQLITE_OK && (rc = sql_in_line(&in, &s, &n)) == SQLITE_OK && s) {
        if (d->line == 1 && n >= 3 && memcmp(s, "\xEF\xBB\xBF", 3) == 0) {
            s += 3;
            n -= 3;
        }
        if (!is_blank(s, n)) {
            rc = sql_json_row(d, s, n);
            rc = rc == SQLITE_OK ? sql_door_put(d, NULL) : rc;
        }
    }
    sql_in_close(&in);
    return rc;
}
