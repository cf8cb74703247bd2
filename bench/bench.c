/*
 * bench.c - runs benchmark scripts through SQL, in one process, and prints one line a row.
 *
 *     bench --module h5mem.so [--extension vec0=path] [--filter word] script.sql ...
 *
 * Each script gets a fresh temp folder as working folder, a host database `host.db` in it, and the
 * module loaded. A row of our own prints mean, rate, median and 95th percentile; a row with a peer
 * runs both sides in alternation, who is first changing each time, and prints both medians and the
 * ratio with its spread. Preparing statements and making values is outside the clock; fetching
 * every row of the answer is inside.
 *
 * ERRORS    a failed statement or check is printed with its cause and the exit code is 1; the other
 *           rows still run.
 *
 * SPDX-License-Identifier: MIT
 */
#define _XOPEN_SOURCE 700 // nftw, mkdtemp, realpath
#include "bench.h"

#include <ftw.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ANSWER_ROWS = 64, MEDIANS = 64, CHECKED_RUNS = 5 };
enum { PRINTED = 1 }; // a row's verdict: its check failed, and its line says so

typedef struct answer {
    int n;
    sqlite3_int64 id[ANSWER_ROWS]; /* column 1 */
    double value[ANSWER_ROWS];     /* column 2 */
} answer;

typedef struct median {
    char name[64];
    double ns;
} median;

enum { EXTENSIONS = 4 };

typedef struct runner {
    sqlite3 *db;
    char module[PATH_MAX];
    char extension[EXTENSIONS][PATH_MAX]; /* of peers */
    char extension_name[EXTENSIONS][32];
    int nextension;
    const char *filter;
    const bench_script *script;
    median medians[MEDIANS]; /* of the rows so far */
    int nmedians;
} runner;

static int failed(runner *r, const bench_row *row, const char *what)
{
    fprintf(stderr, "%s: %s: %s\n", row->name, what,
            r->db ? sqlite3_errmsg(r->db) : "no connection");
    return -1;
}

/* ---- connections */

static int load(sqlite3 *db, const char *path)
{
    char *error = NULL;
    sqlite3_enable_load_extension(db, 1);
    int rc = sqlite3_load_extension(db, path, NULL, &error);
    sqlite3_enable_load_extension(db, 0);
    if (rc != SQLITE_OK) {
        fprintf(stderr, "%s: %s\n", path, error ? error : sqlite3_errmsg(db));
    }
    sqlite3_free(error);
    return rc == SQLITE_OK ? 0 : -1;
}

static int extension_of(const runner *r, const char *name)
{
    for (int i = 0; i < r->nextension; i++) {
        if (!strcmp(r->extension_name[i], name)) {
            return i;
        }
    }
    return -1;
}

// what a script needs and nobody has brought; NULL: all is there
static const char *missing(const runner *r, const bench_script *script)
{
    for (int i = 0; i < 2; i++) {
        const char *name = script->needs[i];
        if (name[0] && extension_of(r, name) < 0 &&
            (strcmp(name, "real") || !getenv("BENCH_REAL")) &&
            (strcmp(name, "data") || !bench_have_data())) {
            return name;
        }
    }
    return NULL;
}

static int open_host(runner *r)
{
    if (sqlite3_open("host.db", &r->db) != SQLITE_OK || load(r->db, r->module) != 0) {
        return -1;
    }
    for (int i = 0; i < 2; i++) {
        int e = extension_of(r, r->script->needs[i]);
        if (e >= 0 && load(r->db, r->extension[e]) != 0) {
            return -1;
        }
    }
    return bench_register(r->db);
}

/* ---- statements */

static int bind(sqlite3_stmt *stmt, const bench_row *row, uint64_t run)
{
    int at = sqlite3_bind_parameter_index(stmt, ":run");
    if (at != 0) {
        sqlite3_bind_int64(stmt, at, (sqlite3_int64)run);
    }
    return bench_bind_all(stmt, row, run);
}

// runs all statements of a section; with verdict, each that answers must answer 1
static int exec_section(runner *r, const bench_row *row, const char *sql, uint64_t run, int verdict)
{
    while (sql != NULL && sql[strspn(sql, " \t\r\n")] != 0) {
        sqlite3_stmt *stmt = NULL;
        if (sqlite3_prepare_v2(r->db, sql, -1, &stmt, &sql) != SQLITE_OK) {
            return failed(r, row, "prepare");
        }
        if (stmt == NULL) {
            continue; // a comment
        }
        int rc = bind(stmt, row, run) == 0 ? sqlite3_step(stmt) : SQLITE_ERROR;
        int good = !verdict || sqlite3_column_count(stmt) == 0;
        if (!good && rc == SQLITE_ROW) {
            good = sqlite3_column_int(stmt, 0) == 1;
            if (!good) {
                fprintf(stderr, "%s: check gives %s: %s\n", row->name, sqlite3_column_text(stmt, 0),
                        sqlite3_sql(stmt));
            }
        }
        while (rc == SQLITE_ROW) {
            rc = sqlite3_step(stmt);
        }
        if (rc != SQLITE_DONE) {
            failed(r, row, sqlite3_sql(stmt));
            good = 0;
        }
        sqlite3_finalize(stmt);
        if (!good) {
            return -1;
        }
    }
    return 0;
}

// the check, for the values of the first few runs
static int check(runner *r, const bench_row *row)
{
    int rc = 0;
    for (uint64_t run = 0; run < (row->nbind ? CHECKED_RUNS : 1) && rc == 0; run++) {
        rc = exec_section(r, row, row->check, run, 1);
    }
    return rc;
}

static sqlite3_stmt *prepare(runner *r, const bench_row *row, const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v3(r->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &stmt, NULL) != SQLITE_OK) {
        failed(r, row, "prepare");
    }
    return stmt;
}

// one run of a prepared statement: nanoseconds until all rows are fetched, or -1
static double run_once(runner *r, const bench_row *row, sqlite3_stmt *stmt, uint64_t run,
                       answer *out)
{
    if (bind(stmt, row, run) != 0) {
        return failed(r, row, "bind");
    }
    int rc;
    out->n = 0;
    uint64_t start = bench_now();
    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        if (out->n < ANSWER_ROWS) {
            out->id[out->n] = sqlite3_column_int64(stmt, 0);
            out->value[out->n++] = sqlite3_column_double(stmt, 1);
        }
    }
    uint64_t end = bench_now();
    sqlite3_reset(stmt);
    return rc == SQLITE_DONE ? (double)(end - start) : failed(r, row, "step");
}

/* ---- rows of our own */

static int run_timed(runner *r, const bench_row *row, bench_samples *times)
{
    answer unused;
    sqlite3_stmt *stmt = prepare(r, row, row->timed);
    int rc = stmt ? 0 : -1;
    for (int i = -row->warm; i < row->runs && rc == 0; i++) {
        uint64_t run = (uint64_t)(i + row->warm);
        rc = exec_section(r, row, row->each, run, 0);
        double ns = rc == 0 ? run_once(r, row, stmt, run, &unused) : -1;
        if (ns < 0) {
            rc = -1;
        } else if (i >= 0) {
            rc = bench_add(times, ns);
        }
        if (rc == 0) {
            rc = exec_section(r, row, row->after, run, 0);
        }
    }
    sqlite3_finalize(stmt);
    return rc;
}

// from sqlite3_open, loading the module included, to the first row; nothing else has the store open
static int run_open(runner *r, const bench_row *row, bench_samples *times)
{
    sqlite3_close(r->db);
    r->db = NULL;
    int rc = 0;
    for (int i = -row->warm; i < row->runs && rc == 0; i++) {
        sqlite3 *db = NULL;
        sqlite3_stmt *stmt = NULL;
        uint64_t start = bench_now();
        rc = sqlite3_open("host.db", &db) == SQLITE_OK ? load(db, r->module) : -1;
        if (rc == 0 &&
            (sqlite3_prepare_v2(db, row->timed, -1, &stmt, NULL) != SQLITE_OK ||
             bind(stmt, row, (uint64_t)(i + row->warm)) != 0 || sqlite3_step(stmt) != SQLITE_ROW)) {
            fprintf(stderr, "%s: no first row: %s\n", row->name, sqlite3_errmsg(db));
            rc = -1;
        }
        uint64_t end = bench_now();
        sqlite3_finalize(stmt);
        sqlite3_close(db);
        if (rc == 0 && i >= 0) {
            rc = bench_add(times, (double)(end - start));
        }
    }
    return open_host(r) == 0 ? rc : -1;
}

static void print_own(runner *r, const bench_row *row, const bench_samples *times, int good)
{
    double sum = 0;
    for (int i = 0; i < times->n; i++) {
        sum += times->at[i];
    }
    double mean = sum / times->n, p50 = bench_quantile(times, 0.5);
    double rate = row->per * 1e9 / mean;
    printf("%-28s %-6s %11.0f ns/op %10.4g %s/s  p50", row->name, r->script->subsystem, mean, rate,
           row->unit);
    bench_print_time(p50);
    printf("  p95");
    bench_print_time(bench_quantile(times, 0.95));
    printf("  check %s", row->check == NULL ? "none" : good ? "ok" : "FAILED");
    bench_print_target(p50 / 1e6, row->target, 0);
    for (int i = 0; i < r->nmedians && row->versus[0]; i++) {
        if (!strcmp(r->medians[i].name, row->versus)) {
            double factor = p50 / r->medians[i].ns;
            printf("  %.2f x %s, at most %g: %s", factor, row->versus, row->most,
                   factor <= row->most ? "met" : "MISSED");
        }
    }
    printf("\n");
    fflush(stdout);
}

static int run_own(runner *r, const bench_row *row)
{
    bench_samples times = {0};
    int rc = row->mode == BENCH_OPEN ? run_open(r, row, &times) : run_timed(r, row, &times);
    if (rc == 0) {
        median *m = &r->medians[r->nmedians < MEDIANS - 1 ? r->nmedians++ : MEDIANS - 1];
        snprintf(m->name, sizeof m->name, "%s", row->name);
        m->ns = bench_quantile(&times, 0.5);
        rc = check(r, row);
        print_own(r, row, &times, rc == 0);
        rc = rc ? PRINTED : 0;
    }
    bench_samples_free(&times);
    return rc;
}

/* ---- rows with a peer */

typedef struct pair {
    bench_samples ours, peer, ratio;
    double worst;  /* most difference of column 2 seen */
    double common; /* sum over the runs of the share of ids in common */
} pair;

static int compare(const bench_row *row, const answer *a, const answer *b, pair *p, uint64_t run)
{
    if (a->n != b->n || a->n == 0) {
        fprintf(stderr, "%s: run %d: ours gives %d rows, the peer %d\n", row->name, (int)run, a->n,
                b->n);
        return -1;
    }
    int common = 0;
    for (int i = 0; i < a->n; i++) {
        double d = fabs(a->value[i] - b->value[i]);
        p->worst = d > p->worst ? d : p->worst;
        for (int j = 0; j < b->n; j++) {
            common += a->id[i] == b->id[j];
        }
    }
    p->common += (double)common / a->n;
    if (row->same >= 0 && p->worst > row->same) {
        fprintf(stderr, "%s: run %d: values differ by %g, at most %g is allowed\n", row->name,
                (int)run, p->worst, row->same);
        return -1;
    }
    return 0;
}

static int run_pairs(runner *r, const bench_row *row, pair *p)
{
    answer a = {0}, b = {0};
    sqlite3_stmt *ours = prepare(r, row, row->timed), *peer = prepare(r, row, row->peer);
    int rc = ours && peer ? 0 : -1;
    for (int i = -row->warm; i < row->runs && rc == 0; i++) {
        uint64_t run = (uint64_t)(i + row->warm);
        double t_peer = 0, t_ours;
        if (run % 2) {
            t_peer = run_once(r, row, peer, run, &b);
        }
        t_ours = run_once(r, row, ours, run, &a);
        if (run % 2 == 0) {
            t_peer = run_once(r, row, peer, run, &b);
        }
        rc = t_ours < 0 || t_peer < 0 ? -1 : 0;
        if (rc == 0 && i >= 0) {
            rc = compare(row, &a, &b, p, run);
            rc |= bench_add(&p->ours, t_ours) | bench_add(&p->peer, t_peer);
            rc |= bench_add(&p->ratio, t_peer / t_ours);
        }
    }
    sqlite3_finalize(ours);
    sqlite3_finalize(peer);
    return rc;
}

static int run_peer(runner *r, const bench_row *row)
{
    pair p = {0};
    int rc = run_pairs(r, row, &p);
    if (rc == 0) {
        double common = p.common / p.ours.n, ratio = bench_quantile(&p.ratio, 0.5);
        rc = check(r, row);
        if (row->overlap >= 0 && common < row->overlap) {
            rc = -1;
        }
        printf("%-28s %-6s ours", row->name, r->script->subsystem);
        bench_print_time(bench_quantile(&p.ours, 0.5));
        printf("  peer");
        bench_print_time(bench_quantile(&p.peer, 0.5));
        printf("  %6.2fx (p10 %.2f, p90 %.2f of %d pairs)  ids in common %.1f %%", ratio,
               bench_quantile(&p.ratio, 0.1), bench_quantile(&p.ratio, 0.9), p.ratio.n,
               100 * common);
        if (row->same >= 0) {
            printf(", values within %.1g", p.worst);
        }
        printf("  check %s", rc == 0 ? "ok" : "FAILED");
        bench_print_target(ratio, row->target, 1);
        printf("\n");
        fflush(stdout);
        rc = rc ? PRINTED : 0;
    }
    bench_samples_free(&p.ours);
    bench_samples_free(&p.peer);
    bench_samples_free(&p.ratio);
    return rc;
}

/* ---- scripts */

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *where)
{
    (void)st;
    (void)flag;
    (void)where;
    return remove(path);
}

static int run_rows(runner *r)
{
    int failures = 0;
    for (const bench_row *row = r->script->rows; row != NULL; row = row->next) {
        int wanted = r->filter == NULL || strstr(row->name, r->filter) != NULL;
        int rc = exec_section(r, row, row->setup, 0, 0); // later rows may need it
        if (rc == 0 && wanted) {
            rc = row->mode == BENCH_PEER ? run_peer(r, row) : run_own(r, row);
        }
        if (rc != 0) {
            if (rc != PRINTED) {
                printf("%-28s %-6s FAILED\n", row->name, r->script->subsystem);
            }
            failures++;
            if (r->db == NULL) {
                break;
            }
        }
    }
    return failures;
}

static int run_script(runner *r, const char *path)
{
    char base[PATH_MAX], folder[] = "h5mem-bench-XXXXXX";
    bench_script script;
    if (bench_parse(path, &script) != 0) {
        bench_script_free(&script);
        return 1;
    }
    int failures = 0;
    const char *tmp = getenv("TMPDIR");
    const char *lacks = missing(r, &script);
    if (lacks) {
        printf("SKIP %s: needs %s\n", path, lacks);
    } else if (getcwd(base, sizeof base) == NULL || chdir(tmp ? tmp : "/tmp") != 0 ||
               mkdtemp(folder) == NULL || chdir(folder) != 0) {
        perror("temp folder");
        failures = 1;
    } else {
        r->script = &script;
        failures = open_host(r) == 0 ? run_rows(r) : 1;
        sqlite3_close(r->db);
        r->db = NULL;
        if (chdir("..") != 0 || nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS) != 0 ||
            chdir(base) != 0) {
            perror("temp folder");
            failures++;
        }
    }
    bench_script_free(&script);
    return failures;
}

static void print_machine(void)
{
    char line[256], *model = NULL;
    FILE *f = fopen("/proc/cpuinfo", "r");
    while (f != NULL && model == NULL && fgets(line, sizeof line, f) != NULL) {
        model = strncmp(line, "model name", 10) ? NULL : strchr(line, ':');
    }
    printf("%s, %ld cores, SQLite %s\n", model ? strtok(model + 2, "\n") : "unknown processor",
           sysconf(_SC_NPROCESSORS_ONLN), sqlite3_libversion());
    if (f != NULL) {
        fclose(f);
    }
}

static int usage(void)
{
    fprintf(stderr, "bench --module PATH [--extension NAME=PATH] ... [--filter WORD] script.sql\n");
    return 2;
}

int main(int argc, char **argv)
{
    static runner r;
    int at = 1;
    for (; at + 1 < argc && !strncmp(argv[at], "--", 2); at += 2) {
        char *value = argv[at + 1], *equals = strchr(value, '=');
        if (!strcmp(argv[at], "--module") && realpath(value, r.module)) {
            continue;
        }
        if (!strcmp(argv[at], "--filter")) {
            r.filter = value;
            continue;
        }
        if (!strcmp(argv[at], "--extension") && equals && r.nextension < EXTENSIONS &&
            realpath(equals + 1, r.extension[r.nextension])) {
            snprintf(r.extension_name[r.nextension++], sizeof r.extension_name[0], "%.*s",
                     (int)(equals - value), value);
            continue;
        }
        fprintf(stderr, "%s %s: unknown, or no such file\n", argv[at], value);
        return usage();
    }
    if (!r.module[0] || at >= argc) {
        return usage();
    }
    print_machine();
    int failures = 0;
    for (; at < argc; at++) {
        failures += run_script(&r, argv[at]);
    }
    if (failures) {
        printf("%d failed\n", failures);
    }
    return failures ? 1 : 0;
}
