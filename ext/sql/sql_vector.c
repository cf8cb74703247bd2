/*
 * sql_vector.c - h5mem_vector(json), h5mem_vector_json(blob), h5mem_distance(a, b [, metric]).
 *
 * A vector is a blob of little-endian 32-bit floats or a JSON array of numbers. NULL in, NULL out.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <string.h>

#include "sql.h"
#include "sql_value.h"
#include "vec.h"

// One argument as floats (sqlite3_malloc); 0 after leaving an error in ctx.
static int read_vector(sqlite3_context *ctx, const char *fn, sqlite3_value *v, float **out,
                       size_t *n)
{
    char why[160], show[SQL_SHOW];
    int type = sqlite3_value_type(v);
    size_t bytes = (size_t)sqlite3_value_bytes(v);
    *out = NULL;
    *n = 0;
    if (type != SQLITE_TEXT && (type != SQLITE_BLOB || bytes % 4 != 0)) {
        sql_fail_fn(ctx, SQLITE_ERROR, NULL, NULL,
                    "%s: %s is no vector; it takes 4 bytes a dimension or a JSON array", fn,
                    sql_show(v, show));
        return 0;
    }
    // a JSON number takes two bytes, with its comma
    size_t room = type == SQLITE_BLOB ? bytes / 4 : bytes / 2 + 1;
    const char *s = type == SQLITE_BLOB ? sqlite3_value_blob(v)
                                        : (const char *)sqlite3_value_text(v);
    float *x = sqlite3_malloc64(room * sizeof *x + 1);
    if (!x || (!s && bytes > 0)) {
        sqlite3_free(x);
        sqlite3_result_error_nomem(ctx);
        return 0;
    }
    if (type == SQLITE_BLOB) {
        sql_floats_load(s, room, x);
        *n = room;
    } else if (!sql_scan_vector(s, bytes, x, room, n, why, sizeof why)) {
        sql_fail_fn(ctx, SQLITE_ERROR, NULL, NULL, "%s: %s %s", fn, sql_show(v, show), why);
        sqlite3_free(x);
        return 0;
    }
    *out = x;
    return 1;
}

void sql_vector_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    float *x;
    size_t n;
    (void)argc;
    if (sqlite3_value_type(argv[0]) == SQLITE_NULL ||
        !read_vector(ctx, "h5mem_vector", argv[0], &x, &n)) {
        return;
    }
    uint8_t *blob = sqlite3_malloc64(n * 4 + 1);
    if (blob) {
        sql_floats_store(x, n, blob);
        sqlite3_result_blob64(ctx, blob, n * 4, sqlite3_free);
    } else {
        sqlite3_result_error_nomem(ctx);
    }
    sqlite3_free(x);
}

void sql_vector_json_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    float *x;
    size_t n;
    char text[SQL_F32_TEXT];
    (void)argc;
    if (sqlite3_value_type(argv[0]) == SQLITE_NULL ||
        !read_vector(ctx, "h5mem_vector_json", argv[0], &x, &n)) {
        return;
    }
    sqlite3_str *s = sqlite3_str_new(NULL);
    sqlite3_str_appendchar(s, 1, '[');
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(x[i])) {
            sql_fail_fn(ctx, SQLITE_ERROR, NULL, NULL,
                        "h5mem_vector_json: %s at [%lld], which JSON cannot write",
                        isnan(x[i]) ? "NaN" : "infinite", (long long)i);
            sqlite3_free(sqlite3_str_finish(s));
            sqlite3_free(x);
            return;
        }
        sqlite3_str_append(s, ",", i > 0);
        sqlite3_str_append(s, text, sql_print_f32(x[i], text));
    }
    sqlite3_str_appendchar(s, 1, ']');
    char *out = sqlite3_str_finish(s);
    if (out) {
        sqlite3_result_text(ctx, out, -1, sqlite3_free);
    } else {
        sqlite3_result_error_nomem(ctx);
    }
    sqlite3_free(x);
}

static int metric_of(sqlite3_context *ctx, sqlite3_value *v, int *out)
{
    static const char *const known[] = {"cosine", "l2", "ip"};
    static const int metric[] = {VEC_COSINE, VEC_L2, VEC_IP};
    char show[SQL_SHOW];
    const char *s = (const char *)sqlite3_value_text(v);
    for (int i = 0; i < 3 && s; i++) {
        if (strcmp(s, known[i]) == 0) {
            *out = metric[i];
            return 1;
        }
    }
    sql_fail_fn(ctx, SQLITE_ERROR, NULL, NULL,
                "h5mem_distance: metric is %s; known are cosine, l2, ip", sql_show(v, show));
    return 0;
}

void sql_distance_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    float *a, *b;
    size_t na, nb;
    int metric = VEC_COSINE;
    for (int i = 0; i < argc; i++) {
        if (sqlite3_value_type(argv[i]) == SQLITE_NULL) {
            return;
        }
    }
    if ((argc == 3 && !metric_of(ctx, argv[2], &metric)) ||
        !read_vector(ctx, "h5mem_distance", argv[0], &a, &na)) {
        return;
    }
    if (read_vector(ctx, "h5mem_distance", argv[1], &b, &nb)) {
        if (na != nb) {
            sql_fail_fn(ctx, SQLITE_ERROR, NULL, NULL,
                        "h5mem_distance: the vectors have %lld and %lld dimensions", (long long)na,
                        (long long)nb);
        } else {
            // a NaN in a blob gives NULL, as SQLite makes of any NaN
            sqlite3_result_double(
                ctx, vec_distance(metric, a, vec_norm_f32(a, na), b, vec_norm_f32(b, nb), na));
        }
        sqlite3_free(b);
    }
    sqlite3_free(a);
}
