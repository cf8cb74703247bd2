/*
 * sql_rate.c - what one row is worth: h5mem_importance(t, text, embedding, source), and what it
 * says again.
 *
 * Surprise is the distance to the nearest row of all tiers, in the log as in the file, superseded
 * ones too, since what was known once is no surprise. It is found as the store finds near vectors:
 * exactly, or, where the table has lists, as the option recall says. The same search finds the near
 * duplicate that consolidation may merge.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <string.h>

#include "sql_life.h"
#include "vec.h"

double sql_cosine_distance(const float *a, const float *b, size_t n)
{
    double ab = 0, aa = 0, bb = 0;
    for (size_t i = 0; i < n; i++) {
        ab += (double)a[i] * b[i];
        aa += (double)a[i] * a[i];
        bb += (double)b[i] * b[i];
    }
    return aa > 0 && bb > 0 ? 1 - ab / sqrt(aa) / sqrt(bb) : 1;
}

static int take(sql_table *t, st_view *v, st_cursor *c, const float *vector, sql_nearest *out,
                st_error *err)
{
    const st_info *info = st_conn_info(t->store->conn);
    st_value id, other;
    int st;
    out->found = 1;
    out->row = st_cursor_row(c);
    out->distance = st_cursor_distance(c);
    st = st_view_value(v, out->row, ST_COL_ID, &id, err);
    out->id = id.i;
    if (st == ST_OK && info->metric != VEC_COSINE) {
        st = st_view_value(v, out->row, ST_COL_EMBEDDING, &other, err);
        if (st == ST_OK) {
            out->distance = sql_cosine_distance(vector, other.p, (size_t)info->dim);
        }
    }
    return st;
}

int sql_rows_distance(sql_table *t, st_view *v, uint64_t a, uint64_t b, double *out)
{
    size_t dim = (size_t)st_conn_info(t->store->conn)->dim;
    st_error err = {0};
    st_value x, y;
    float *copy = sqlite3_malloc64(dim * sizeof *copy + 1);
    *out = 1;
    if (!copy) {
        return SQLITE_NOMEM;
    }
    int st = st_view_value(v, a, ST_COL_EMBEDDING, &x, &err);
    if (st == ST_OK && x.p) {
        memcpy(copy, x.p, dim * sizeof *copy); // the next look at the column takes its place
        st = st_view_value(v, b, ST_COL_EMBEDDING, &y, &err);
        if (st == ST_OK && y.p) {
            *out = sql_cosine_distance(copy, y.p, dim);
        }
    }
    sqlite3_free(copy);
    return st == ST_OK ? SQLITE_OK : sql_fail_st(t, &err);
}

int sql_nearest_row(sql_table *t, st_view *v, const float *vector, const int64_t *below,
                    sql_nearest *out)
{
    st_term term = {.col = ST_COL_ID, .op = ST_LT};
    st_query q = {.k = 1};
    st_error err = {0};
    st_cursor *c = NULL;
    memset(out, 0, sizeof *out);
    if (below) {
        term.value.type = ST_INT;
        term.value.i = *below;
        q.terms = &term;
        q.nterm = 1;
    }
    st_query_defaults(t->store->conn, &q);
    q.vector = vector;
    q.k = q.hint = 1;
    q.every = 1;
    q.context = q.recency = q.importance_weight = q.activation_weight = q.dedup = q.mmr = 0;
    q.has_min_score = q.has_as_of = q.expand = 0;
    int st = st_search(v, &q, &c, &err);
    int got = st == ST_OK ? st_cursor_next(c, &err) : st;
    st = got > 0 ? take(t, v, c, vector, out, &err) : got;
    st_cursor_close(c);
    return st == ST_OK ? SQLITE_OK : sql_fail_st(t, &err);
}

static double of_source(int source)
{
    return source == ST_SOURCE_USER || source == ST_SOURCE_CORRECTION ? 1
           : source == ST_SOURCE_RETRIEVAL                            ? -1
                                                                      : 0;
}

/* Small talk, by the gate; a row without a text is none. */
static int is_small_talk(const void *text, size_t n)
{
    int reason = text && n ? mind_gate(text, n, MIND_TO_SAVE) : MIND_EMPTY;
    return reason != MIND_EMPTY && !mind_gate_keeps(reason);
}

double sql_rate(const st_life *life, const void *text, size_t n, int source, double surprise)
{
    mind_weights w = {life->importance_base,       life->importance_surprise,
                      life->importance_facts,      life->importance_length,
                      life->importance_words,      life->importance_question,
                      life->importance_correction, life->importance_source};
    mind_signals s;
    if (is_small_talk(text, n)) {
        return 0; // however surprising: "lol" is unlike anything else
    }
    mind_read(text ? text : "", text ? n : 0, &s);
    s.correction = source == ST_SOURCE_CORRECTION;
    s.surprise = s.correction > 0 ? 1 : surprise; // it lies near what it corrects, and is news
    s.source = of_source(source);
    double x = round(mind_importance(&s, &w) * 1e4) / 1e4; // as much as it can mean
    return x == SQL_UNRATED ? SQL_UNRATED + 1e-4 : x;
}

/* -------------------------------------------------------------------------- h5mem_importance() */

static int read_source(sql_table *t, sqlite3_value *v, int *out)
{
    static const char *const known[] = {"user", "assistant", "system",
                                        "tool", "retrieval", "correction"};
    char show[SQL_SHOW];
    const char *s = (const char *)sqlite3_value_text(v);
    *out = ST_SOURCE_NONE;
    for (int i = 0; s && i < (int)(sizeof known / sizeof *known); i++) {
        if (strcmp(s, known[i]) == 0) {
            *out = i + 1;
        }
    }
    return *out || sqlite3_value_type(v) == SQLITE_NULL
               ? SQLITE_OK
               : sql_fail(t, SQLITE_ERROR,
                          "source is %s; known are user, assistant, system, tool, retrieval, "
                          "correction",
                          sql_show(v, show));
}

static int surprise_of(sql_table *t, sqlite3_value *embedding, double *out)
{
    float *vector = NULL;
    st_view *v;
    st_error err = {0};
    sql_nearest near;
    *out = NAN;
    if (sqlite3_value_type(embedding) == SQLITE_NULL) {
        return SQLITE_OK;
    }
    int rc = sql_query_vector(t, embedding, &vector);
    if (rc == SQLITE_OK && st_view_open(t->store->conn, &v, &err) != ST_OK) {
        rc = sql_fail_st(t, &err);
    } else if (rc == SQLITE_OK) {
        rc = sql_nearest_row(t, v, vector, NULL, &near);
        *out = rc == SQLITE_OK && near.found ? near.distance : 1;
        st_view_close(v);
    }
    sqlite3_free(vector);
    return rc;
}

void sql_importance_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    sql_table *t = sql_fn_table(ctx, argv[0]);
    const void *text = sqlite3_value_text(argv[1]);
    st_error err = {0};
    st_life life;
    double surprise;
    int source;
    (void)argc;
    if (!t) {
        return;
    }
    int rc = read_source(t, argv[3], &source);
    rc = rc == SQLITE_OK ? surprise_of(t, argv[2], &surprise) : rc;
    if (rc == SQLITE_OK && st_get_life(t->store->conn, &life, &err) != ST_OK) {
        rc = sql_fail_st(t, &err);
    }
    if (rc == SQLITE_OK) {
        sqlite3_result_double(
            ctx, sql_rate(&life, text, (size_t)sqlite3_value_bytes(argv[1]), source, surprise));
    } else {
        sql_fail_fn_table(ctx, t, rc);
    }
}
