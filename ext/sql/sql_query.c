/*
 * sql_query.c - what the values of a search mean: the query vector, the words and their syntax.
 *
 * What a text query means is in sql_plain.c and sql_fts5.c.
 *
 * ERRORS   each names the column or setting and the value.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <string.h>

#include "sql_ask.h"
#include "sql_text.h"
#include "sql_value.h"

int sql_query_vector(sql_table *t, sqlite3_value *v, float **out)
{
    const st_info *info = st_conn_info(t->store->conn);
    size_t dim = (size_t)info->dim, count = 0;
    char show[SQL_SHOW], why[160] = "";
    int type = sqlite3_value_type(v), rc = SQLITE_OK;
    *out = NULL;
    float *x = sqlite3_malloc64(dim * sizeof *x + 1);
    if (!x) {
        return SQLITE_NOMEM;
    }
    if (type == SQLITE_TEXT) {
        const char *s = (const char *)sqlite3_value_text(v);
        if (!s) {
            rc = SQLITE_NOMEM;
        } else if (!sql_scan_vector(s, (size_t)sqlite3_value_bytes(v), x, dim, &count, why,
                                    sizeof why)) {
            rc = sql_fail(t, SQLITE_ERROR, "the query vector %s %s", sql_show(v, show), why);
        }
    } else if (type == SQLITE_BLOB) {
        size_t n = (size_t)sqlite3_value_bytes(v);
        count = dim;
        if (n == dim * 4) {
            sql_floats_load(sqlite3_value_blob(v), dim, x);
        } else {
            rc = sql_fail(t, SQLITE_ERROR,
                          "the query vector has %lld bytes, expected %lld (dim %lld)", (long long)n,
                          (long long)dim * 4, (long long)dim);
        }
    } else {
        rc = sql_fail(
            t, SQLITE_ERROR,
            "the query vector is %s; it takes a blob of %lld bytes or a JSON array of %lld numbers",
            sql_show(v, show), (long long)dim * 4, (long long)dim);
    }
    if (rc == SQLITE_OK && count != dim) {
        rc = sql_fail(t, SQLITE_ERROR, "dim is %lld, got a query vector of %lld", (long long)dim,
                      (long long)count);
    }
    for (size_t i = 0; i < dim && rc == SQLITE_OK; i++) {
        if (!isfinite(x[i])) {
            rc = sql_fail(t, SQLITE_ERROR, "the query vector is %s at [%lld]",
                          isnan(x[i]) ? "NaN" : "infinite", (long long)i);
        }
    }
    if (rc != SQLITE_OK) {
        sqlite3_free(x);
        return rc;
    }
    *out = x;
    return SQLITE_OK;
}

static int in_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (unsigned char)c >= 0x80;
}

// What an expansion, which is the query with one place changed, has in that place: whole words.
static void changed_part(const char *s, size_t n, const sql_expansion *e, size_t *from, size_t *to)
{
    size_t a = 0, b = 0;
    while (a < n && a < e->n && s[a] == e->text[a]) {
        a++;
    }
    while (b < n - a && b < e->n - a && s[n - 1 - b] == e->text[e->n - 1 - b]) {
        b++;
    }
    *from = a;
    *to = e->n - b;
    while (*from > 0 && in_word(e->text[*from - 1])) {
        --*from;
    }
    while (*to < e->n && in_word(e->text[*to])) {
        ++*to;
    }
}

// The words that h5mem_expand puts in place of the query's, each as one more that may be there.
static int expand_words(sql_ask *a, sql_tokenizer *tok, const char *s, size_t n, unsigned fields)
{
    size_t count = 0;
    sql_expansion *e = sqlite3_malloc(sizeof *e * SQL_EXPAND_ROWS);
    int rc = e ? sql_expand(s, n, e, &count) : SQLITE_NOMEM;
    for (size_t i = 0; i < count && rc == SQLITE_OK; i++) {
        size_t from, to;
        changed_part(s, n, &e[i], &from, &to);
        if (!sql_is_stop_word(e[i].text + from, to - from)) {
            rc = sql_ask_text(a, tok, e[i].text + from, to - from, fields,
                              sql_expansion_kinds[e[i].kind].weight);
        }
    }
    sql_expand_free(e, count);
    sqlite3_free(e);
    return rc;
}

int sql_query_text(sql_table *t, sqlite3_value *v, unsigned fields, int fts5, int expand,
                   sql_ask *out)
{
    sql_tokenizer *tok;
    char *err = NULL;
    int type = sqlite3_value_type(v);
    char show[SQL_SHOW];
    if (type == SQLITE_BLOB) {
        return sql_fail(t, SQLITE_ERROR, "the text query is %s; it takes text", sql_show(v, show));
    }
    int rc = sql_table_tokenizer(t, &tok);
    if (rc != SQLITE_OK || type == SQLITE_NULL) {
        return rc;
    }
    const char *s = (const char *)sqlite3_value_text(v);
    size_t n = s ? (size_t)sqlite3_value_bytes(v) : 0;
    rc = !s     ? SQLITE_NOMEM
         : fts5 ? sql_ask_fts5(out, tok, s, n, fields, &err)
                : sql_ask_plain(out, tok, s, n, fields);
    if (rc == SQLITE_OK && expand && !fts5) {
        rc = expand_words(out, tok, s, n, fields);
    }
    if (err) {
        rc = sql_fail(t, SQLITE_ERROR, "%s in the query %s", err, sql_show(v, show));
        sqlite3_free(err);
    }
    return rc == SQLITE_OK ? sql_ask_finish(out) : rc;
}

/* ------------------------------------------------------------------------------------- settings */

int sql_setting_syntax(sql_table *t, sqlite3_value *v, int *syntax)
{
    char show[SQL_SHOW];
    const char *s = sqlite3_value_type(v) == SQLITE_TEXT ? (const char *)sqlite3_value_text(v)
                                                         : NULL;
    int fts = s && sqlite3_stricmp(s, "fts5") == 0;
    *syntax = fts ? ST_SYNTAX_FTS5 : ST_SYNTAX_PLAIN;
    if (!fts && !(s && sqlite3_stricmp(s, "plain") == 0)) {
        return sql_fail(t, SQLITE_ERROR, "syntax is %s; it takes 'plain' or 'fts5'",
                        sql_show(v, show));
    }
    return SQLITE_OK;
}
