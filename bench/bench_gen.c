/*
 * bench_gen.c - seeded data that resembles what agents store, and the SQL functions around it.
 *
 * VECTORS   Unit length. 200 clusters whose sizes follow Zipf's law, one direction common to all
 *           (embeddings of one model share a mean), and noise whose strength falls off over the
 *           dimensions, as the spectra of sentence embeddings do. Neighbours in a cluster are
 *           near, yet not alike.
 *           bench_noise: independent components between -1 and 1. bench_real: embeddings of real
 *           sentences (peers/real.py makes the file), stretched to any number: one of them, plus
 *           0.2 to 0.6 of the deviation of a second from the mean, plus 0.3 of that of a third,
 *           brought to unit length. Queries are embedded questions as they are.
 *           bench_demo: the same stretch of the embedded sentences of sql/demo.h5, which every
 *           checkout has; queries are made as rows are, from other numbers.
 *           bench_ramp: the followed system's footprint generator, whose rows repeat each other.
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
#include "h5core.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { CLUSTERS = 200, VOCABULARY = 20000, SENTENCE_MAX = 64, DIM_MAX = 8192, REAL_DIM = 384 };

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

// independent components between -1 and 1: no structure at all, the hard case
static void noise_vector(uint64_t index, int dim, float *out)
{
    for (int d = 0; d < dim; d++) {
        out[d] = (float)(2 * unit(mix(index) + (uint64_t)d) - 1);
    }
}

// a file of floats in the folder that BENCH_REAL names, read once; NULL with *n = 0 without
typedef struct floats {
    float *x;
    size_t n;
} floats;

static floats read_floats(const char *name)
{
    const char *folder = getenv("BENCH_REAL");
    char path[4096];
    struct stat st;
    floats f = {NULL, 0};
    snprintf(path, sizeof path, "%s/%s", folder ? folder : ".", name);
    FILE *file = fopen(path, "rb");
    if (file && fstat(fileno(file), &st) == 0 && (f.x = malloc((size_t)st.st_size + 1)) != NULL) {
        f.n = fread(f.x, sizeof *f.x, (size_t)st.st_size / sizeof *f.x, file);
    }
    if (file) {
        fclose(file);
    }
    return f;
}

static const float *mean_of(const floats *f, size_t rows, float *mean)
{
    for (size_t i = 0; i < rows; i++) {
        for (int d = 0; d < REAL_DIM; d++) {
            mean[d] += f->x[i * REAL_DIM + (size_t)d] / (float)rows;
        }
    }
    return mean;
}

static int stretched(const floats *f, const float *mean, uint64_t index, int dim, float *out)
{
    size_t rows = f->n / REAL_DIM;
    if (rows == 0 || dim != REAL_DIM) {
        return -1;
    }
    const float *a = f->x + mix(index ^ 11) % rows * REAL_DIM;
    const float *b = f->x + mix(index ^ 12) % rows * REAL_DIM;
    const float *c = f->x + mix(index ^ 13) % rows * REAL_DIM;
    float share = (float)(0.2 + 0.4 * unit(index ^ 14)), norm = 0;
    for (int d = 0; d < dim; d++) {
        out[d] = a[d] + share * (b[d] - mean[d]) + 0.3f * (c[d] - mean[d]);
        norm += out[d] * out[d];
    }
    for (int d = 0; d < dim; d++) {
        out[d] /= sqrtf(norm);
    }
    return 0;
}

static int real_vector(uint64_t index, int dim, float *out)
{
    static floats f;
    static float mean[REAL_DIM];
    if (!f.x) {
        f = read_floats("rows.f32");
        mean_of(&f, f.n / REAL_DIM, mean);
    }
    return stretched(&f, mean, index, dim, out);
}

static int real_query(uint64_t run, int dim, float *out)
{
    static floats f;
    if (!f.x) {
        f = read_floats("queries.f32");
    }
    size_t rows = f.n / REAL_DIM;
    if (rows == 0 || dim != REAL_DIM) {
        return -1;
    }
    memcpy(out, f.x + run % rows * REAL_DIM, REAL_DIM * sizeof *out);
    return 0;
}

/* ---- the embeddings of sql/demo.h5 */

static char demo_path[PATH_MAX];

void bench_set_demo(const char *path)
{
    snprintf(demo_path, sizeof demo_path, "%s", path);
}

// keeps the rows that have a vector
static int read_demo(h5_file *f, floats *out, h5_error *err)
{
    h5_object *o;
    int rc = h5_object_find(f, "/memory/embedding", &o, err);
    if (rc != H5_OK) {
        return rc;
    }
    const h5_dataset_info *d = h5_object_dataset(o);
    uint64_t start[2] = {0, 0}, count[2] = {d ? d->dims[0] : 0, REAL_DIM};
    size_t n = (size_t)(count[0] * REAL_DIM);
    float *x = malloc(n * sizeof *x + 1);
    rc = x && d && d->rank == 2 && d->dims[1] == REAL_DIM
             ? h5_dataset_read(f, o, start, count, x, n * sizeof *x, err)
             : -1;
    for (size_t i = 0; rc == 0 && i < n; i += REAL_DIM) {
        float square = 0;
        for (size_t k = 0; k < REAL_DIM; k++) {
            square += x[i + k] * x[i + k];
        }
        if (square > 0) {
            memmove(x + out->n, x + i, REAL_DIM * sizeof *x);
            out->n += REAL_DIM;
        }
    }
    out->x = x;
    h5_object_close(o);
    return rc;
}

static int demo_vector(uint64_t index, int dim, float *out)
{
    static floats f;
    static float mean[REAL_DIM];
    if (!f.x) {
        h5_error err;
        h5_file *file;
        h5_error_clear(&err);
        if (h5_file_open_path(demo_path, &file, &err) != H5_OK) {
            fprintf(stderr, "sql/demo.h5: %s\n", err.text);
            return -1;
        }
        if (read_demo(file, &f, &err) != H5_OK) {
            fprintf(stderr, "%s: %s\n", demo_path, err.text);
            f.n = 0;
        }
        h5_file_close(file);
        mean_of(&f, f.n / REAL_DIM, mean);
    }
    return stretched(&f, mean, index, dim, out);
}

// 1,000 different rows, each the one before shifted by 57 places
static void ramp_vector(uint64_t index, int dim, float *out)
{
    for (int d = 0; d < dim; d++) {
        out[d] = (float)((31 * index + 17 * (uint64_t)d) % 1000) / 1000 - 0.5f;
    }
}

static int make_vector(const char *kind, int query, uint64_t index, int dim, float *out)
{
    if (!strcmp(kind, "real")) {
        return query ? real_query(index, dim, out) : real_vector(index, dim, out);
    }
    index = query ? QUERIES + index : index;
    if (!strcmp(kind, "demo")) {
        return demo_vector(index, dim, out);
    }
    if (!strcmp(kind, "noise")) {
        noise_vector(index, dim, out);
    } else if (!strcmp(kind, "ramp")) {
        ramp_vector(index, dim, out);
    } else {
        bench_vector(index, dim, out);
    }
    return 0;
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

void bench_value_free(bench_value *v)
{
    sqlite3_free(v->vector);
    sqlite3_free(v->text);
    *v = (bench_value){0};
}

int bench_make(const bench_bind *b, uint64_t run, bench_value *out)
{
    *out = (bench_value){0};
    if (!strcmp(b->kind, "int")) {
        out->number = b->a + (long)(mix(run) % (uint64_t)(b->b - b->a + 1));
        return 0;
    }
    if (!strcmp(b->kind, "words") || !strcmp(b->kind, "fts5")) {
        out->text = bench_sentence(QUERIES + run, (int)b->a, 1, !strcmp(b->kind, "fts5"));
        return out->text ? 0 : -1;
    }
    out->dim = (int)b->a;
    out->vector = sqlite3_malloc64((sqlite3_uint64)b->a * sizeof *out->vector);
    if (out->vector == NULL || make_vector(b->kind, 1, run, out->dim, out->vector) != 0) {
        bench_value_free(out);
        return -1;
    }
    return 0;
}

int bench_bind_all(sqlite3_stmt *stmt, const bench_row *row, uint64_t run)
{
    int rc = SQLITE_OK;
    for (int i = 0; i < row->nbind && rc == SQLITE_OK; i++) {
        bench_value v;
        int at = sqlite3_bind_parameter_index(stmt, row->bind[i].name);
        if (at == 0) {
            continue; // a statement may use fewer of them
        }
        if (bench_make(&row->bind[i], run, &v) != 0) {
            return -1;
        }
        rc = v.vector ? sqlite3_bind_blob(stmt, at, v.vector, v.dim * (int)sizeof *v.vector,
                                          sqlite3_free)
             : v.text ? sqlite3_bind_text(stmt, at, v.text, -1, sqlite3_free)
                      : sqlite3_bind_int64(stmt, at, v.number);
    }
    return rc == SQLITE_OK ? 0 : -1;
}

/* ---- SQL functions */

static void fn_vec(sqlite3_context *ctx, int n, sqlite3_value **v)
{
    (void)n;
    int dim = sqlite3_value_int(v[1]);
    if (dim < 1 || dim > DIM_MAX) {
        sqlite3_result_error(ctx, "dimension out of range", -1);
        return;
    }
    float *out = sqlite3_malloc64((sqlite3_uint64)dim * sizeof *out);
    if (out == NULL) {
        sqlite3_result_error_nomem(ctx);
        return;
    }
    if (make_vector(sqlite3_user_data(ctx), 0, (uint64_t)sqlite3_value_int64(v[0]), dim, out) !=
        0) {
        sqlite3_free(out);
        sqlite3_result_error(
            ctx, "no such vectors: they have 384 dimensions; real: see peers/real.py", -1);
        return;
    }
    sqlite3_result_blob(ctx, out, dim * (int)sizeof *out, sqlite3_free);
}

static void fn_text(sqlite3_context *ctx, int n, sqlite3_value **v)
{
    uint64_t index = (uint64_t)sqlite3_value_int64(v[0]);
    int words = n == 2 ? sqlite3_value_int(v[1]) : 8 + (int)(mix(index ^ 5) % 33);
    sqlite3_result_text(ctx, bench_sentence(index, words, n == 2, 0), -1, sqlite3_free);
}

// exactly n bytes of text, words cut off at the end
static void fn_chars(sqlite3_context *ctx, int n, sqlite3_value **v)
{
    uint64_t index = (uint64_t)sqlite3_value_int64(v[0]);
    int want = sqlite3_value_int(v[1]), at = 0;
    char *out = want > 0 && want <= 1 << 20 ? sqlite3_malloc(want + 1) : NULL;
    (void)n;
    for (uint64_t part = 0; out && at < want; part++) {
        char *words = bench_sentence(index << 8 | part, SENTENCE_MAX, 0, 0);
        if (!words) {
            break;
        }
        at += snprintf(out + at, (size_t)(want - at) + 1, "%s ", words);
        at = at > want ? want : at;
        sqlite3_free(words);
    }
    if (at != want || !out) {
        sqlite3_free(out);
        sqlite3_result_error(ctx, "bench_chars(i, 1 to 1048576)", -1);
        return;
    }
    sqlite3_result_text(ctx, out, want, sqlite3_free);
}

// words of a vocabulary of so few that each stands in most texts: the followed system's texts
static void fn_few(sqlite3_context *ctx, int n, sqlite3_value **v)
{
    uint64_t index = (uint64_t)sqlite3_value_int64(v[0]);
    int words = sqlite3_value_int(v[1]), vocabulary = sqlite3_value_int(v[2]);
    char w[16];
    sqlite3_str *s = sqlite3_str_new(NULL);
    (void)n;
    for (int i = 0; i < words && vocabulary > 0; i++) {
        word(mix(index << 8 | (uint64_t)i) % (uint64_t)vocabulary, w);
        sqlite3_str_appendf(s, "%s%s", i ? " " : "", w);
    }
    sqlite3_result_text(ctx, sqlite3_str_finish(s), -1, sqlite3_free);
}

// a file goes, if it is there
static void fn_remove(sqlite3_context *ctx, int n, sqlite3_value **v)
{
    const char *path = (const char *)sqlite3_value_text(v[0]);
    (void)n;
    sqlite3_result_int(ctx, path && remove(path) == 0);
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

static char data_folder[PATH_MAX]; // rows run in another folder, so it is made absolute before

int bench_have_data(void)
{
    const char *folder = getenv("H5MEM_DATA");
    struct stat st;
    char path[PATH_MAX + 16];
    if (realpath(folder && *folder ? folder : "../shared/data", data_folder) == NULL) {
        return 0;
    }
    snprintf(path, sizeof path, "%s/locomo", data_folder);
    return stat(path, &st) == 0;
}

// a file of the data folder, as text
static void fn_data(sqlite3_context *ctx, int n, sqlite3_value **v)
{
    (void)n;
    const char *name = (const char *)sqlite3_value_text(v[0]);
    char *path = sqlite3_mprintf("%s/%s", data_folder, name ? name : ""), *text = NULL;
    FILE *f = path ? fopen(path, "rb") : NULL;
    long size = f && fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;
    if (size >= 0 && fseek(f, 0, SEEK_SET) == 0) {
        text = sqlite3_malloc64((sqlite3_uint64)size + 1);
    }
    if (text && fread(text, 1, (size_t)size, f) == (size_t)size) {
        sqlite3_result_text64(ctx, text, (sqlite3_uint64)size, sqlite3_free, SQLITE_UTF8);
    } else {
        sqlite3_free(text);
        sqlite3_result_error(ctx, "bench_data: the file cannot be read", -1);
    }
    if (f) {
        fclose(f);
    }
    sqlite3_free(path);
}

int bench_register(sqlite3 *db)
{
    static const struct {
        const char *name;
        int args;
        void (*call)(sqlite3_context *, int, sqlite3_value **);
        void *data;
    } functions[] = {
        {"bench_vec", 2, fn_vec, "vec"},
        {"bench_noise", 2, fn_vec, "noise"},
        {"bench_real", 2, fn_vec, "real"},
        {"bench_demo", 2, fn_vec, "demo"},
        {"bench_ramp", 2, fn_vec, "ramp"},
        {"bench_chars", 2, fn_chars, NULL},
        {"bench_few", 3, fn_few, NULL},
        {"bench_remove", 1, fn_remove, NULL},
        {"bench_text", 1, fn_text, NULL},
        {"bench_words", 2, fn_text, NULL},
        {"bench_ln", 1, fn_ln, NULL},
        {"bench_distance", 3, fn_distance, NULL},
        {"bench_file_bytes", 1, fn_file_bytes, NULL},
        {"bench_data", 1, fn_data, NULL},
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        int rc = sqlite3_create_function_v2(db, functions[i].name, functions[i].args, SQLITE_UTF8,
                                            functions[i].data, functions[i].call, NULL, NULL, NULL);
        if (rc != SQLITE_OK) {
            return -1;
        }
    }
    return bench_floor_register(db);
}
