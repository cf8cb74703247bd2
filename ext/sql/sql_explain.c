/*
 * sql_explain.c - h5mem_explain(memory): how the score of the row at hand came about, as JSON.
 *
 *     {"score":0.31, "distance":0.62, "rank":-7.1,
 *      "shares":{"text":0.18, "date":0.05, "vector":0.02, "before":0.1, "after":0.03},
 *      "sum":0.33, "factors":{"asks":1, "speaker":2, "fusion":0.94, "recency":...}}
 *
 * Shares add up to sum (date is a share of text, within it); sum times the factors is the score, or
 * with mmr what likeness was taken from. What had no part is left out.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>

#include "sql.h"

static void number(sqlite3_str *s, int *n, const char *name, double v)
{
    if (!isnan(v)) {
        sqlite3_str_appendf(s, "%s\"%s\":%!.15g", (*n)++ ? "," : "", name, v);
    }
}

static char *as_json(const st_why *w)
{
    sqlite3_str *s = sqlite3_str_new(NULL);
    int n = 0, shares = 0, factors = 0;
    sqlite3_str_appendall(s, "{");
    number(s, &n, "score", w->score);
    number(s, &n, "distance", w->distance);
    number(s, &n, "rank", w->rank);
    sqlite3_str_appendf(s, "%s\"shares\":{", n++ ? "," : "");
    number(s, &shares, "text", w->text);
    number(s, &shares, "date", w->date);
    number(s, &shares, "vector", w->vector);
    number(s, &shares, "before", w->before);
    number(s, &shares, "after", w->after);
    sqlite3_str_appendall(s, "}");
    number(s, &n, "sum", w->sum);
    sqlite3_str_appendall(s, ",\"factors\":{");
    number(s, &factors, "asks", w->asks);
    number(s, &factors, "speaker", w->speaker);
    number(s, &factors, "fusion", w->fusion);
    number(s, &factors, "recency", w->recency);
    number(s, &factors, "importance", w->importance);
    number(s, &factors, "activation", w->activation);
    number(s, &factors, "graph", w->graph);
    sqlite3_str_appendall(s, "}");
    number(s, &n, "like", w->like);
    sqlite3_str_appendall(s, "}");
    return sqlite3_str_finish(s);
}

void sql_explain_row(sqlite3_context *ctx, const sql_current *row)
{
    st_why why;
    st_error err = {0};
    if (!row->rows) {
        return; // found by its id: nothing was scored
    }
    if (st_cursor_why(row->rows, &why, &err) != ST_OK) {
        sql_fail_fn(ctx, sql_code(err.code), row->table->name, row->table->store->path, "%s",
                    err.text);
        return;
    }
    if (isnan(why.score)) {
        return;
    }
    char *json = as_json(&why);
    if (!json) {
        sqlite3_result_error_nomem(ctx);
        return;
    }
    sqlite3_result_text(ctx, json, -1, sqlite3_free);
}
