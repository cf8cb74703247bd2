/*
 * bench.h - what the files of the benchmark runner share: scripts, generated data, statistics.
 *
 * bench.c runs scripts, bench_script.c parses them, bench_gen.c makes seeded data and the SQL
 * functions that hand it out, bench_stat.c does the arithmetic of samples.
 *
 * ERRORS    0 is success; a failure prints its cause where it is known and returns -1.
 * THREADS   one.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BENCH_H
#define BENCH_H

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

/* ---- statistics */

typedef struct bench_samples {
    double *at; /* one number a run, in the order of the runs */
    int n, cap;
} bench_samples;

int bench_add(bench_samples *s, double value);
double bench_quantile(const bench_samples *s, double q); /* 0 <= q <= 1; 0 for no samples */
void bench_samples_free(bench_samples *s);
uint64_t bench_now(void); /* nanoseconds of a clock that only goes forward */

void bench_print_time(double ns); /* 9 places and its unit */
/* Whether the target was met: a ratio of at least, or milliseconds of at most. 0: no target. */
void bench_print_target(double value, double target, int at_least);

/* ---- scripts: see README.md for the language */

enum { BENCH_BINDS = 8 };

typedef enum bench_mode { BENCH_TIMED, BENCH_OPEN, BENCH_PEER } bench_mode;

typedef struct bench_bind {
    char name[32]; /* with its colon */
    char kind[16]; /* vec, words, fts5, int */
    long a, b;     /* the kind's arguments */
} bench_bind;

typedef struct bench_row {
    char name[64];
    bench_mode mode;
    int runs;
    int warm;        /* runs before those that count */
    char versus[64]; /* an earlier row of the file, "" for none ... */
    double most;     /* ... and how many times its median this one's may be */
    double per;      /* units a run */
    char unit[32];   /* what the rate counts */
    double target;   /* peer: least ratio; else: most milliseconds; 0 = none */
    double same;     /* peer: most difference of column 2, row by row; < 0 = not compared */
    double overlap;  /* peer: least mean share of ids in common; < 0 = not compared */
    char *setup, *each, *timed, *peer, *after, *check; /* SQL, NULL where the row has none */
    bench_bind bind[BENCH_BINDS];
    int nbind;
    struct bench_row *next;
} bench_row;

typedef struct bench_script {
    char subsystem[32];
    char needs[2][32]; /* names of other extensions, "real" or "data"; "" where fewer are needed */
    bench_row *rows;
} bench_script;

int bench_parse(const char *path, bench_script *out);
void bench_script_free(bench_script *s);

/* ---- data: every value depends on its arguments alone */

int bench_have_data(void); /* the data folder that bench_data reads is there */
void bench_vector(uint64_t index, int dim, float *out); /* unit length, clustered */

/* n words (1 to 64) by Zipf's law, distinct on demand, joined by spaces, or quoted and joined by
** OR; the caller's (sqlite3_free), NULL for want of memory. */
char *bench_sentence(uint64_t index, int n, int distinct, int fts5);

/* Binds the values of one run. */
int bench_bind_all(sqlite3_stmt *stmt, const bench_row *row, uint64_t run);

/* bench_vec(i, dim), bench_text(i), bench_words(i, n), bench_ln(x), bench_distance(a, b, metric),
** bench_file_bytes(path). */
int bench_register(sqlite3 *db);

#endif
