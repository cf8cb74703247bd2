/*
 * bench_core.c - calls of libvec without SQL, on the rows that a statement of the script gives
 *
 *     scan:LEVEL   rows (id, embedding): every dot product with the row kernel of a level (scalar,
 *                  avx2, avx512, neon; "best"), norms computed once before, the ten best kept
 *     near         rows (id, embedding): the exact search over planes that a store does
 *     words        rows (id, text): the ten best by BM25; text and query are cut at spaces
 *     range        rows (id, time): which lie within two numbers, their ids in a list; answers how
 *                  many and the sum of the ids
 *
 *     window       rows (id, time) in order of time: where two numbers lie among them; answers as
 *                  range does, for ids that count up
 *
 * Each answers as the SQL statement beside it does, so that one is the other's check.
 *
 * OWNERSHIP  load makes a state, done frees it. THREADS one.
 * SPDX-License-Identifier: MIT
 */
#include "bench.h"
#include "vec.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { K = 10, BLOCK = 256 };

const bench_core *bench_core_find(const char *name)
{
    const bench_core *const tables[] = {bench_cores_vec, bench_cores_h5, bench_cores_mind};
    size_t n = strcspn(name, ":");
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
        for (const bench_core *c = tables[t]; c->name; c++) {
            if (strlen(c->name) == n && !strncmp(c->name, name, n)) {
                return c;
            }
        }
    }
    return NULL;
}

/* ---- vectors */

typedef struct vectors {
    float *x, *norm;
    int64_t *id;
    size_t n, cap, dim;
    const vec_kernels *kern;
    uint8_t *coarse, *fine; /* near: planes */
} vectors;

static void vectors_done(void *state)
{
    vectors *v = state;
    free(v->x);
    free(v->norm);
    free(v->id);
    free(v->coarse);
    free(v->fine);
    free(v);
}

static int add_vector(vectors *v, int64_t id, const float *x, size_t dim)
{
    if (v->n == v->cap) {
        size_t cap = v->cap ? 2 * v->cap : 1024;
        float *more = realloc(v->x, cap * dim * sizeof *more);
        v->x = more ? more : v->x;
        float *norm = realloc(v->norm, cap * sizeof *norm);
        v->norm = norm ? norm : v->norm;
        int64_t *ids = realloc(v->id, cap * sizeof *ids);
        v->id = ids ? ids : v->id;
        if (!more || !norm || !ids) {
            return -1;
        }
        v->cap = cap;
        v->dim = dim;
    }
    if (dim != v->dim) {
        return -1;
    }
    memcpy(v->x + v->n * dim, x, dim * sizeof *x);
    v->norm[v->n] = vec_norm_f32(x, dim);
    v->id[v->n++] = id;
    return 0;
}

static int vectors_load(sqlite3_stmt *rows, vectors **out)
{
    vectors *v = *out = calloc(1, sizeof *v);
    int rc = v ? 0 : -1, step = SQLITE_DONE;
    vec_init();
    while (rc == 0 && (step = sqlite3_step(rows)) == SQLITE_ROW) {
        const float *x = sqlite3_column_blob(rows, 1);
        size_t dim = (size_t)sqlite3_column_bytes(rows, 1) / sizeof *x;
        rc = x ? add_vector(v, sqlite3_column_int64(rows, 0), x, dim) : -1;
    }
    rc = rc == 0 && step == SQLITE_DONE && v->n ? 0 : -1;
    return rc;
}

static int scan_load(sqlite3_stmt *rows, const char *arg, void **out)
{
    vectors *v = NULL;
    vec_init();
    const vec_kernels *kern = strcmp(arg, "best") ? vec_kern_level(arg) : vec_kern();
    if (!kern) {
        return BENCH_ABSENT;
    }
    int rc = vectors_load(rows, &v);
    *out = v;
    if (v) {
        v->kern = kern;
    }
    return rc;
}

static int scan_run(void *state, const bench_value *values, bench_answer *out)
{
    const vectors *v = state;
    const float *q = values[0].vector;
    float dot[BLOCK], norm = vec_norm_f32(q, v->dim);
    vec_topk *top;
    int rc = vec_topk_new(K, &top);
    for (size_t at = 0; rc == VEC_OK && at < v->n; at += BLOCK) {
        size_t n = v->n - at < BLOCK ? v->n - at : BLOCK;
        v->kern->dot_rows_f32(q, v->x + at * v->dim, v->dim, n, dot);
        double bound = vec_topk_bound(top);
        for (size_t i = 0; i < n && rc == VEC_OK; i++) {
            double d = 1 - (double)dot[i] / ((double)norm * v->norm[at + i]);
            if (d <= bound) {
                vec_hit hit = {d, v->id[at + i], at + i};
                rc = vec_topk_push(top, &hit);
                bound = vec_topk_bound(top);
            }
        }
    }
    const vec_hit *hit;
    size_t n = rc == VEC_OK ? vec_topk_take(top, &hit) : 0;
    for (size_t i = 0; i < n; i++) {
        out->id[i] = hit[i].id;
        out->value[i] = hit[i].key;
    }
    out->n = (int)n;
    vec_topk_free(top);
    return rc == VEC_OK ? 0 : -1;
}

static int near_load(sqlite3_stmt *rows, const char *arg, void **out)
{
    vectors *v = NULL;
    (void)arg;
    int rc = vectors_load(rows, &v);
    *out = v;
    if (rc != 0) {
        return rc;
    }
    size_t half = vec_halves_stride(v->dim);
    uint8_t *record = malloc(vec_plane_stride(v->dim));
    v->coarse = malloc(v->n * half);
    v->fine = malloc(v->n * half);
    if (!record || !v->coarse || !v->fine) {
        free(record);
        return -1;
    }
    for (size_t i = 0; i < v->n; i++) {
        const float *x = v->x + i * v->dim;
        vec_plane_encode(x, v->norm[i], v->dim, record);
        vec_halves_split(x, v->dim, record, v->coarse + i * half, v->fine + i * half);
    }
    free(record);
    return 0;
}

static const float *fetch_row(void *ctx, uint64_t row, float *norm)
{
    const vectors *v = ctx;
    *norm = v->norm[row];
    return v->x + row * v->dim;
}

static int64_t id_of_row(void *ctx, uint64_t row)
{
    return ((const vectors *)ctx)->id[row];
}

static int near_run(void *state, const bench_value *values, bench_answer *out)
{
    vectors *v = state;
    vec_plane_extent planes = {v->coarse, v->fine, 0, v->n};
    vec_near_args a = {.metric = VEC_COSINE,
                       .query = values[0].vector,
                       .dim = v->dim,
                       .planes = &planes,
                       .nplane = 1,
                       .fetch = fetch_row,
                       .id = id_of_row,
                       .ctx = v,
                       .hint = K};
    vec_near *s;
    vec_hit hit;
    int rc = vec_near_new(&a, &s), more = rc == VEC_OK;
    out->n = 0;
    while (more && out->n < K && (rc = vec_near_next(s, &hit)) == 1) {
        out->id[out->n] = hit.id;
        out->value[out->n++] = hit.key;
    }
    vec_near_free(s);
    return rc < 0 ? -1 : 0;
}

/* ---- words */

typedef struct words {
    vec_text *text;
    uint8_t *image; /* of it, as a flushed store has one */
    size_t bytes;
    vec_run *run;
    int64_t *id;
    uint64_t *live;
    size_t n, cap;
    uint8_t stream[1 << 14];
} words;

static void words_done(void *state)
{
    words *w = state;
    vec_run_close(w->run);
    vec_free(w->image);
    vec_text_free(w->text);
    free(w->id);
    free(w->live);
    free(w);
}

static size_t tokens_of(words *w, const char *text)
{
    size_t at = 0;
    while (*(text += strspn(text, " "))) {
        size_t n = strcspn(text, " ");
        if (at + n + 5 > sizeof w->stream) {
            break;
        }
        at += vec_token_put(w->stream + at, text, (uint32_t)n, 0);
        text += n;
    }
    return at;
}

static int add_text(words *w, int64_t id, const char *text)
{
    if (w->n == w->cap) {
        size_t cap = w->cap ? 2 * w->cap : 1024;
        int64_t *ids = realloc(w->id, cap * sizeof *ids);
        if (!ids) {
            return -1;
        }
        w->id = ids;
        w->cap = cap;
    }
    int rc = vec_text_add(w->text, w->n, w->stream, tokens_of(w, text));
    w->id[w->n++] = id;
    return rc == VEC_OK ? 0 : -1;
}

static int words_load(sqlite3_stmt *rows, const char *arg, void **out)
{
    words *w = *out = calloc(1, sizeof *w);
    (void)arg;
    vec_init();
    int rc = w && vec_text_new(&w->text) == VEC_OK ? 0 : -1, step = SQLITE_DONE;
    while (rc == 0 && (step = sqlite3_step(rows)) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(rows, 1);
        rc = add_text(w, sqlite3_column_int64(rows, 0), text ? text : "");
    }
    if (rc != 0 || step != SQLITE_DONE || w->n == 0) {
        return -1;
    }
    w->live = calloc(w->n / 64 + 1, sizeof *w->live);
    for (size_t i = 0; w->live && i < w->n; i++) {
        w->live[i >> 6] |= (uint64_t)1 << (i & 63);
    }
    return w->live && vec_text_image(w->text, &w->image, &w->bytes) == VEC_OK &&
                   vec_run_open(w->image, w->bytes, &w->run) == VEC_OK
               ? 0
               : -1;
}

static int64_t id_of_text(void *ctx, uint64_t row)
{
    return ((const words *)ctx)->id[row];
}

static int words_run(void *state, const bench_value *values, bench_answer *out)
{
    words *w = state;
    vec_source source = {.run = w->run, .dense = 1};
    vec_bm25_args a = {.sources = &source,
                       .nsource = 1,
                       .query = w->stream,
                       .nquery = tokens_of(w, values[0].text),
                       .live = w->live,
                       .nrow = w->n,
                       .k1 = VEC_BM25_K1,
                       .b = VEC_BM25_B};
    vec_words *q;
    vec_hit *hits = NULL;
    size_t n = 0;
    int rc = vec_words_new(&a, &q);
    rc = rc == VEC_OK ? vec_words_top(q, K, id_of_text, w, &hits, &n) : rc;
    for (size_t i = 0; i < n; i++) {
        out->id[i] = hits[i].id;
        out->value[i] = -hits[i].key;
    }
    out->n = (int)n;
    vec_free(hits);
    vec_words_free(q);
    return rc == VEC_OK ? 0 : -1;
}

/* ---- times */

typedef struct times {
    double *at;
    int64_t *id, *found;
    uint64_t *bits;
    size_t n, cap;
} times;

static void times_done(void *state)
{
    times *t = state;
    free(t->at);
    free(t->id);
    free(t->found);
    free(t->bits);
    free(t);
}

static int times_load(sqlite3_stmt *rows, const char *arg, void **out)
{
    times *t = *out = calloc(1, sizeof *t);
    int rc = t ? 0 : -1, step = SQLITE_DONE;
    (void)arg;
    while (rc == 0 && (step = sqlite3_step(rows)) == SQLITE_ROW) {
        if (t->n == t->cap) {
            t->cap = t->cap ? 2 * t->cap : 1024;
            double *at = realloc(t->at, t->cap * sizeof *at);
            t->at = at ? at : t->at;
            int64_t *id = realloc(t->id, t->cap * sizeof *id);
            t->id = id ? id : t->id;
            rc = at && id ? 0 : -1;
        }
        if (rc == 0) {
            t->id[t->n] = sqlite3_column_int64(rows, 0);
            t->at[t->n++] = sqlite3_column_double(rows, 1);
        }
    }
    if (rc == 0) {
        t->found = malloc(t->n * sizeof *t->found + 1);
        t->bits = malloc((t->n / 64 + 1) * sizeof *t->bits);
    }
    return rc == 0 && step == SQLITE_DONE && t->found && t->bits ? 0 : -1;
}

static int times_run(void *state, const bench_value *values, bench_answer *out)
{
    times *t = state;
    size_t nword = t->n / 64 + 1, found = 0;
    memset(t->bits, 0xff, nword * sizeof *t->bits);
    t->bits[nword - 1] &= ((uint64_t)1 << (t->n & 63)) - 1;
    vec_keep_range_f64(t->bits, 0, t->at, t->n, (double)values[0].number, (double)values[1].number);
    for (size_t w = 0; w < nword; w++) {
        for (uint64_t left = t->bits[w]; left; left &= left - 1) {
            t->found[found++] = t->id[w * 64 + (size_t)__builtin_ctzll(left)];
        }
    }
    int64_t sum = 0;
    for (size_t i = 0; i < found; i++) {
        sum += t->found[i];
    }
    *out = (bench_answer){.n = 1, .id = {(int64_t)found}, .value = {(double)sum}};
    return 0;
}

static int window_run(void *state, const bench_value *values, bench_answer *out)
{
    const times *t = state;
    size_t from = vec_bound_f64(t->at, t->n, (double)values[0].number, 0);
    size_t to = vec_bound_f64(t->at, t->n, (double)values[1].number, 1);
    double sum = to > from ? (double)(t->id[from] + t->id[to - 1]) * (double)(to - from) / 2 : 0;
    *out = (bench_answer){.n = 1, .id = {to > from ? (int64_t)(to - from) : 0}, .value = {sum}};
    return 0;
}

const bench_core bench_cores_vec[] = {
    {"scan", scan_load, scan_run, vectors_done},    {"near", near_load, near_run, vectors_done},
    {"words", words_load, words_run, words_done},   {"range", times_load, times_run, times_done},
    {"window", times_load, window_run, times_done}, {NULL, NULL, NULL, NULL},
};
