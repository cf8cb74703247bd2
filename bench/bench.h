/*
 * bench.h - what the files of the benchmark runner share: scripts, generated data, statistics.
 *
 * bench.c runs scripts, bench_script.c parses them, bench_gen.c makes seeded data and the SQL
 * functions that hand it out, bench_core*.c call the C libraries without SQL, bench_out.c prints
 * rows and writes them as JSON lines, bench_stat.c does the arithmetic of samples.
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
#include <stdio.h>

/* ---- statistics */

typedef struct bench_samples {
    double *at; /* one number a run, in the order of the runs */
    int n, cap;
} bench_samples;

int bench_add(bench_samples *s, double value);
double bench_quantile(const bench_samples *s, double q); /* 0 <= q <= 1; 0 for no samples */
void bench_samples_free(bench_samples *s);
/* The medians of n parts of the samples, in the order of the runs; gives n, or fewer samples. */
int bench_parts(const bench_samples *s, int n, double *out);
/* How far the medians of five parts lie apart, as a share of the median of all: what another run
 * may differ by. */
double bench_spread(const bench_samples *s);
/* The 95 % interval of the median, from the order of the samples alone. */
void bench_median_interval(const bench_samples *s, double *low, double *high);
uint64_t bench_now(void); /* nanoseconds of a clock that only goes forward */

void bench_print_time(double ns); /* 9 places and its unit */
/* Whether the target was met: a ratio of at least, or milliseconds of at most. 0: no target. */
void bench_print_target(double value, double target, int at_least);

/* ---- scripts: see README.md for the language */

enum { BENCH_BINDS = 8, BENCH_ANSWER_ROWS = 64 };

typedef enum bench_mode { BENCH_TIMED, BENCH_OPEN, BENCH_PEER, BENCH_CORE } bench_mode;
typedef enum bench_form { BENCH_SHORT, BENCH_NORMAL, BENCH_LONG } bench_form;

typedef struct bench_bind {
    char name[32]; /* with its colon */
    char kind[16]; /* vec, noise, real, demo, words, fts5, int */
    long a, b;     /* the kind's arguments */
} bench_bind;

typedef struct bench_row {
    char name[64];
    bench_mode mode;
    bench_form from; /* the shortest form of a run that has the row */
    int runs;
    int warm;          /* runs before those that count */
    int times;         /* calls a run, for what is too short for a clock */
    char versus[64];   /* an earlier row of the file, "" for none ... */
    double most;       /* ... and how many times its median this one's may be */
    double per;        /* units a run */
    char unit[32];     /* what the rate counts */
    double target;     /* peer: least ratio; else: most milliseconds; 0 = none */
    double same;       /* peer, truth: most difference of column 2; < 0 = not compared */
    double overlap;    /* peer: least mean share of ids in common; < 0 = not compared */
    char core[64];     /* the C call of a row without SQL */
    char answers[160]; /* which row of another benchmark it answers, and that one's figure */
    int truths;        /* runs whose answers are held against truth; 0 = none */
    double recall;     /* least mean share of the ids of truth that an answer holds */
    char *setup, *each, *timed, *peer, *after, *check; /* SQL, NULL where the row has none */
    char *truth, *load, *facts;
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

int bench_have_data(void);             /* the data folder that bench_data reads is there */
void bench_set_demo(const char *path); /* sql/demo.h5, for vectors of kind demo */
void bench_vector(uint64_t index, int dim, float *out); /* unit length, clustered */

/* n words (1 to 64) by Zipf's law, distinct on demand, joined by spaces, or quoted and joined by
** OR; the caller's (sqlite3_free), NULL for want of memory. */
char *bench_sentence(uint64_t index, int n, int distinct, int fts5);

/* The value of a bind in one run: floats, text or a number. */
typedef struct bench_value {
    float *vector; /* dim floats, or NULL */
    char *text;    /* or NULL */
    int dim;
    long number;
} bench_value;
int bench_make(const bench_bind *b, uint64_t run, bench_value *out);
void bench_value_free(bench_value *v);
/* Binds the values of one run. */
int bench_bind_all(sqlite3_stmt *stmt, const bench_row *row, uint64_t run);

/* bench_vec(i, dim) and its like, bench_text(i), bench_words(i, n), bench_ln(x),
** bench_distance(a, b, metric), bench_file_bytes(path): README.md has all. */
int bench_floor_register(sqlite3 *db); /* bench_floor.c; called by bench_register */
int bench_register(sqlite3 *db);
/* bench_h5(path): the file whose datasets the rows of plain HDF5 read. */
int bench_register_h5(sqlite3 *db);

/* ---- C calls without SQL */

/* What a run answers: its first rows. */
typedef struct bench_answer {
    int n;
    int64_t id[BENCH_ANSWER_ROWS];   /* column 1 */
    double value[BENCH_ANSWER_ROWS]; /* column 2 */
} bench_answer;

enum { BENCH_ABSENT = 1 }; /* this machine has nothing of the kind */

typedef struct bench_core {
    const char *name;
    /* Makes what runs need of the rows that a statement gives (NULL: none was given); arg is what
    ** follows the name after a colon, "" for nothing. 0, -1 or BENCH_ABSENT. */
    int (*load)(sqlite3_stmt *rows, const char *arg, void **out);
    int (*run)(void *state, const bench_value *values, bench_answer *out);
    void (*done)(void *state);
} bench_core;

/* The call of this name, up to a colon; NULL for none. */
const bench_core *bench_core_find(const char *name);
/* End with a NULL name. */
extern const bench_core bench_cores_vec[], bench_cores_h5[], bench_cores_mind[];

/* ---- output */

typedef struct bench_out {
    FILE *json; /* NULL: no file was asked for */
    int headed; /* the table's head is printed */
} bench_out;

/* One row of our own, measured. */
typedef struct bench_result {
    const bench_row *row;
    const char *subsystem;
    const bench_samples *times;
    int good;          /* its checks held */
    double recall;     /* < 0: not measured */
    double factor;     /* over the row of versus; < 0: none */
    const char *facts; /* a JSON object, "" for none */
} bench_result;

/* One row with a peer, measured. */
typedef struct bench_pair {
    const char *name, *subsystem, *peer;
    bench_samples ours, theirs, ratio;
    double worst;  /* most difference of column 2 seen; < 0: not compared */
    double common; /* share of ids in common; < 0: not compared */
    double target; /* least ratio, 0 = none */
    int good;
    const char *facts; /* a JSON object, NULL or "" for none */
    int apart; /* runs are no pairs: the ratio is that of the medians, of `ratio` nothing is used */
} bench_pair;

/* Opens the file that BENCH_OUT names, to append, if it does. */
int bench_out_open(bench_out *o);
void bench_out_machine(bench_out *o, const char *what); /* what: "bench", "bench-peers", form */
void bench_out_row(bench_out *o, const bench_result *r);
/* A row that has no figures, and why. */
void bench_out_none(bench_out *o, const bench_row *row, const char *subsystem, const char *why);
void bench_out_pair(bench_out *o, const bench_pair *p);
void bench_out_close(bench_out *o);

#endif
