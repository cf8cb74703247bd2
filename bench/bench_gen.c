/*
 * bench_gen.c - seeded data that resembles what agents store, and the SQL functions around it.
 *
 * VECTORS   Unit length. 200 clusters whose sizes follow Zipf's law, one direction common to all
 *           (embeddings of one model share a mean), and noise whose strength falls off over the
 *           dimensions, as the spectra of sentence embeddings do. Neighbours in a cluster are
 *           near, yet not alike.
 * TEXT      A vocabulary of 20,000 words built from syllables; a word's rank is drawn with
 *           probability ~ 1/rank, so that the commonest stand in most turns and most stand in
 *           few. A turn has 8 to 40 words.
 *
 * Every value is a function of its index: the same on each machine, in any order, on both sides of
 * a comparison.
 *
 * SPDX-License-Identifier: MIT
 */
#include "bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { CLUSTERS = 200, VOCABULARY = 20000, SENTENCE_MAX = 64, DIM_MAX = 8192 };

static const uint64_t QUERIES = (uint64_t)1 << 40; // indexes of queries start here, beyond all rows

static uint64_t mix(uint64_t z)
{
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static double unit(uint64_t z)
{
    return (double)(mix(z) >> 11) * 0x1p-53;
}

// near to normal: the sum of four 16-bit numbers, mean 0, variance 1
static float noise(uint64_t z)
{
    uint64_t r = mix(z);
    int sum = (int)(r & 0xffff) + (int)(r >> 16 & 0xffff) + (int)(r >> 32 & 0xffff) +
              (int)(r >> 48);
    return (float)(sum - 131070) * (1.7320508f / 65536);
}

static uint64_t zipf(uint64_t z, uint64_t n)
{
    uint64_t rank = (uint64_t)exp(unit(z) * log((double)n + 1)) - 1;
    return rank < n ? rank : n - 1;
}

void bench_vector(uint64_t index, int dim, float *out)
{
    uint64_t cluster = zipf(mix(index) ^ 1, CLUSTERS);
    double norm = 0;
    for (int d = 0; d < dim; d++) {
        uint64_t at = (uint64_t)d;
        float fall = 1 / sqrtf(1 + (float)(mix(at) % (uint64_t)dim) * (16.0f / (float)dim));
        out[d] = 0.3f * noise(at << 8 | 2) + fall * (0.8f * noise(mix(cluster << 16 | at) ^ 3) +
                                                     noise(mix(index << 14 | at) ^ 4));
        norm += (double)out[d] * out[d];
    }
    float scale = norm > 0 ? (float)(1 / sqrt(norm)) : 0;
    for (int d = 0; d < dim; d++) {
        out[d] *= scale;
    }
}

// the word of a rank: two to four syllables, short for common words
static int word(uint64_t rank, char *out)
{
    static const char consonants[] = "bdfgklmnprstvz", vowels[] = "aeiou";
    int n = 0;
    uint64_t left = rank + 70; // two syllables at least
    while (left > 0 && n < 12) {
        out[n++] = consonants[left % 14];
        left /= 14;
        out[n++] = vowels[left % 5];
        left /= 5;
    }
    out[n] = 0;
    return n;
}

char *bench_sentence(uint64_t index, int n, int distinct, int fts5)
{
    uint64_t ranks[SENTENCE_MAX];
    char w[16];
    sqlite3_str *s = sqlite3_str_new(NULL);
    n = n > SENTENCE_MAX ? SENTENCE_MAX : n;
    uint64_t draw = mix(index ^ 0x7465787400000000u);
    for (int i = 0; i < n; i++) {
        int seen;
        do {
            ranks[i] = zipf(draw++, VOCABULARY);
            seen = 0;
            for (int j = 0; distinct && j < i; j++) {
                seen |= ranks[j] == ranks[i];
            }
        } while (seen);
        word(ranks[i], w);
        sqlite3_str_appendf(s, fts5 ? "%s\"%s\"" : "%s%s", i == 0 ? "" : fts5 ? " OR " : " ", w);
    }
    return sqlite3_str_finish(s);
}

int bench_bind_all(sqlite3_stmt *stmt, const bench_row *row, uint64_t run)
{
    int rc = SQLITE_OK;
    for (int i = 0; i < row->nbind && rc == SQLITE_OK; i++) {
        const bench_bind *b = &row->bind[i];
        int at = sqlite3_bind_parameter_index(stmt, b->name);
        if (at == 0) {
            continue; // a statement may use fewer of them
        }
        if (!strcmp(b->kind, "vec")) {
            float *v = sqlite3_malloc64((sqlite3_uint64)b->a * sizeof *v);
            if (v == NULL) {
                return -1;
            }
            bench_vector(QUERIES + run, (int)b->a, v);
            rc = sqlite3_bind_blob(stmt, at, v, (int)(b->a * (long)sizeof *v), sqlite3_free);
        } else if (!strcmp(b->kind, "int")) {
            long span = b->b - b->a + 1;
            rc = sqlite3_bind_int64(stmt, at, b->a + (long)(mix(run) % (uint64_t)span));
        } else {
            char *text = bench_sentence(QUERIES + run, (int)b->a, 1, !strcmp(b->kind, "fts5"));
            rc = sqlite3_bind_text(stmt, at, text, -1, sqlite3_free);
        }
    }
    return rc == SQLITE_OK ? 0 : -1;
}

/* ---- SQL functions */

static void fn_vec(sqlite3_context *ctx, int n, sqlite3_value **v)
{
    (void)n;
    int dim = sqlite3_value_int(v[1]);
    if (dim < 1 || dim > DIM_MAX) {
        sqlite3_result_error(ctx, "bench_vec: dimension out of range", -1);
        return;
    }
    float *out = sqlite3_malloc64((sqlite3_uint64)dim * sizeof *out);
    if (out == NULL) {
        sqlite3_result_error_nomem(ctx);
        return;
    }
    bench_vector((uint64_t)sqlite3_value_int64(v[0]), dim, out);
    sqlite3_result_blob(ctx, out, dim * (int)sizeof *out, sqlite3_free);
}

static void fn_text(sqlite3_context *ctx, int n, sqlite3_value **v)
{
    uint64_t index = (uint64_t)sqlite3_value_int64(v[0]);
    int words = n == 2 ? sqlite3_value_int(v[1]) : 8 + (int)(mix(index ^ 5) % 33);
    sqlite3_result_text(ctx, bench_sentence(index, words, n == 2, 0), -1, sqlite3_free);
}

static void fn_ln(sqlite3_context *ctx, int n, sqlite3_value **v)
{
    (void)n;
    sqlite3_result_double(ctx, log(sqlite3_value_double(v[0])));
}

// the definition, in double: what both sides' answers are measured against
static void fn_distance(sqlite3_context *ctx, int n, sqlite3_value **v)
{
    (void)n;
    const float *a = sqlite3_value_blob(v[0]), *b = sqlite3_value_blob(v[1]);
    int bytes = sqlite3_value_bytes(v[0]);
    if (bytes != sqlite3_value_bytes(v[1]) || bytes % 4 != 0 || bytes == 0) {
        sqlite3_result_error(ctx, "bench_distance: two vectors of one length", -1);
        return;
    }
    double dot = 0, aa = 0, bb = 0, l2 = 0;
    for (int i = 0; i < bytes / 4; i++) {
        double x = a[i], y = b[i];
        dot += x * y;
        aa += x * x;
        bb += y * y;
        l2 += (x - y) * (x - y);
    }
    int cosine = !strcmp((const char *)sqlite3_value_text(v[2]), "cosine");
    sqlite3_result_double(ctx, cosine ? 1 - dot / sqrt(aa * bb) : sqrt(l2));
}

static void fn_file_bytes(sqlite3_context *ctx, int n, sqlite3_value **v)
{
    (void)n;
    struct stat st;
    const char *path = (const char *)sqlite3_value_text(v[0]);
    if (path == NULL || stat(path, &st) != 0) {
        sqlite3_result_error(ctx, "bench_file_bytes: no such file", -1);
        return;
    }
    sqlite3_result_int64(ctx, st.st_size);
}

int bench_register(sqlite3 *db)
{
    static const struct {
        const char *name;
        int args;
        void (*call)(sqlite3_context *, int, sqlite3_value **);
    } functions[] = {
        {"bench_vec", 2, fn_vec},           {"bench_text", 1, fn_text},
        {"bench_words", 2, fn_text},        {"bench_ln", 1, fn_ln},
        {"bench_distance", 3, fn_distance}, {"bench_file_bytes", 1, fn_file_bytes},
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        int rc = sqlite3_create_function_v2(db, functions[i].name, functions[i].args, SQLITE_UTF8,
                                            NULL, functions[i].call, NULL, NULL, NULL);
        if (rc != SQLITE_OK) {
            return -1;
        }
    }
    return 0;
}
