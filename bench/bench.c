/*
 * bench.c - runs benchmark scripts through SQL, in one process, and prints one line a row.
 *
 *     bench --module h5mem.so [--extension vec0=path] [--form short|normal|long] [--filter word]
 *           [--about word] script.sql ...
 *     bench --list all script.sql ...
 *
 * Each script gets a fresh temp folder as working folder, a host database `host.db` in it, and the
 * module loaded. A row of our own prints mean, rate, median, 95th percentile and how far its parts
 * lie apart; a row with a peer runs both sides in alternation, who is first changing each time, and
 * prints both medians and the ratio with its interval. Preparing statements and making values is
 * outside the clock; fetching every row of the answer is inside.
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

enum { MEDIANS = 128, CHECKED_RUNS = 5, SHORT_RUNS = 20, FACTS = 4096, STATEMENTS = 4 };
enum { MOST_RUNS = 20000 };
static const double LEAST_NS = 1e9;
enum { PRINTED = 1 }; // a row's verdict: its check failed, and its line says so

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
    bench_form form;
    bench_out out;
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
    return bench_register(r->db) == 0 ? bench_register_h5(r->db) : -1;
}

/* ---- statements */

static int bind(sqlite3_stmt *stmt, const bench_row *row, uint64_t run)
{
    int at = sqlite3_bind_parameter_index(stmt, ":run");
    if (at != 0) {
        sqlite3_bind_int64(stmt, at, (sqlite3_int64)run);
    }
    at = sqlite3_bind_parameter_index(stmt, ":runs");
    if (at != 0) {
        sqlite3_bind_int64(stmt, at, row->runs);
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

/* What one run executes: one statement, or a few of a transaction. */
typedef struct script_run {
    sqlite3_stmt *at[STATEMENTS];
    int n;
} script_run;

static void finalize_all(script_run *s)
{
    for (int i = 0; i < s->n; i++) {
        sqlite3_finalize(s->at[i]);
    }
    s->n = 0;
}

static int prepare_all(runner *r, const bench_row *row, const char *sql, script_run *out)
{
    out->n = 0;
    while (sql[strspn(sql, " \t\r\n")] != 0) {
        if (out->n == STATEMENTS || sqlite3_prepare_v3(r->db, sql, -1, SQLITE_PREPARE_PERSISTENT,
                                                       &out->at[out->n], &sql) != SQLITE_OK) {
            finalize_all(out);
            return failed(r, row, out->n == STATEMENTS ? "too many statements" : "prepare");
        }
        out->n += out->at[out->n] != NULL; // else a comment
    }
    return out->n ? 0 : failed(r, row, "no statement");
}

// all rows of a statement; SQLITE_DONE or the failure
static int step_all(sqlite3_stmt *stmt, bench_answer *out)
{
    int rc;
    out->n = 0;
    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        if (out->n < BENCH_ANSWER_ROWS) {
            out->id[out->n] = sqlite3_column_int64(stmt, 0);
            out->value[out->n++] = sqlite3_column_double(stmt, 1);
        }
    }
    sqlite3_reset(stmt);
    return rc;
}

// one run: nanoseconds until all rows of all statements are fetched, or -1; out is the last one's
static double run_once(runner *r, const bench_row *row, const script_run *s, uint64_t run,
                       bench_answer *out)
{
    int rc = SQLITE_DONE;
    for (int i = 0; i < s->n; i++) {
        if (bind(s->at[i], row, run) != 0) {
            return failed(r, row, "bind");
        }
    }
    uint64_t start = bench_now();
    for (int i = 0; i < row->times * s->n && rc == SQLITE_DONE; i++) {
        rc = step_all(s->at[i % s->n], out);
    }
    uint64_t end = bench_now();
    return rc == SQLITE_DONE ? (double)(end - start) / row->times : failed(r, row, "step");
}

/* ---- answers held against the truth */

typedef struct truth {
    double recall; /* mean share of the true ids that an answer has; < 0: not asked for */
    double worst;  /* most difference of column 2 */
} truth;

static double share_of(const bench_answer *a, const bench_answer *true_one)
{
    int common = 0;
    for (int i = 0; i < true_one->n; i++) {
        for (int j = 0; j < a->n; j++) {
            common += true_one->id[i] == a->id[j];
        }
    }
    return true_one->n ? (double)common / true_one->n : a->n == 0;
}

static double worst_of(const bench_answer *a, const bench_answer *b)
{
    double worst = a->n == b->n ? 0 : INFINITY;
    for (int i = 0; i < a->n && i < b->n; i++) {
        double d = fabs(a->value[i] - b->value[i]);
        worst = d > worst ? d : worst;
    }
    return worst;
}

// asks: gives the row's answer of a run, 0 or -1
static int hold_against(runner *r, const bench_row *row,
                        int (*ask)(void *ctx, uint64_t run, bench_answer *out), void *ctx,
                        truth *out)
{
    bench_answer a, b;
    double sum = 0;
    *out = (truth){.recall = -1};
    if (!row->truth) {
        return 0;
    }
    script_run s;
    int rc = prepare_all(r, row, row->truth, &s);
    int runs = row->truths < row->runs ? row->truths : row->runs;
    for (int run = 0; run < runs && rc == 0; run++) {
        rc = ask(ctx, (uint64_t)run, &a) == 0 && run_once(r, row, &s, (uint64_t)run, &b) >= 0 ? 0
                                                                                              : -1;
        sum += rc == 0 ? share_of(&a, &b) : 0;
        double worst = rc == 0 ? worst_of(&a, &b) : 0;
        out->worst = worst > out->worst ? worst : out->worst;
    }
    finalize_all(&s);
    out->recall = sum / runs;
    if (rc == 0 && (out->recall < row->recall || (row->same >= 0 && !(out->worst <= row->same)))) {
        fprintf(stderr, "%s: recall %.4f, at least %g is wanted; values differ by %g\n", row->name,
                out->recall, row->recall, out->worst);
        rc = -1;
    }
    return rc;
}

/* ---- rows of our own */

// A row that changes nothing runs for a second at least, to see more than one moment.
static int goes_on(const runner *r, const bench_row *row, int i, int reads_only, double spent)
{
    return i < row->runs ||
           (r->form != BENCH_SHORT && reads_only && spent < LEAST_NS && i < MOST_RUNS);
}

static int reads_only(const script_run *s)
{
    int only = 1;
    for (int i = 0; i < s->n; i++) {
        only &= sqlite3_stmt_readonly(s->at[i]);
    }
    return only;
}

static int run_timed(runner *r, const bench_row *row, bench_samples *times)
{
    bench_answer unused;
    script_run s = {.n = 0};
    int rc = 0, again = !row->each && !row->after && row->warm > 0;
    double spent = 0;
    for (int i = -row->warm; rc == 0 && goes_on(r, row, i, again, spent); i++) {
        uint64_t run = (uint64_t)(i + row->warm);
        rc = exec_section(r, row, row->each, run, 0);
        if (rc == 0 && s.n == 0) { // only now: `each` may make the table
            rc = prepare_all(r, row, row->timed, &s);
            again = again && reads_only(&s);
        }
        double ns = rc == 0 ? run_once(r, row, &s, run, &unused) : -1;
        if (ns < 0) {
            rc = -1;
        } else if (i >= 0) {
            rc = bench_add(times, ns);
            spent += ns * row->times;
        }
        if (rc == 0) {
            rc = exec_section(r, row, row->after, run, 0);
        }
    }
    finalize_all(&s);
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

/* A C call without SQL: its state from the rows of `load`, its runs with the row's values. */
typedef struct core_run {
    const bench_row *row;
    const bench_core *call;
    void *state;
} core_run;

static int ask_core(void *ctx, uint64_t run, bench_answer *out)
{
    core_run *c = ctx;
    bench_value v[BENCH_BINDS] = {{0}};
    int rc = 0;
    for (int i = 0; i < c->row->nbind && rc == 0; i++) {
        rc = bench_make(&c->row->bind[i], run, &v[i]);
    }
    rc = rc == 0 ? c->call->run(c->state, v, out) : -1;
    for (int i = 0; i < c->row->nbind; i++) {
        bench_value_free(&v[i]);
    }
    return rc;
}

static double time_core(core_run *c, uint64_t run)
{
    bench_answer unused;
    bench_value v[BENCH_BINDS] = {{0}};
    int rc = 0;
    for (int i = 0; i < c->row->nbind && rc == 0; i++) {
        rc = bench_make(&c->row->bind[i], run, &v[i]);
    }
    uint64_t start = bench_now();
    for (int i = 0; i < c->row->times && rc == 0; i++) {
        rc = c->call->run(c->state, v, &unused);
    }
    uint64_t end = bench_now();
    for (int i = 0; i < c->row->nbind; i++) {
        bench_value_free(&v[i]);
    }
    return rc == 0 ? (double)(end - start) / c->row->times : -1;
}

static int core_open(runner *r, core_run *c)
{
    c->call = bench_core_find(c->row->core);
    if (c->call == NULL) {
        fprintf(stderr, "%s: no C call %s\n", c->row->name, c->row->core);
        return -1;
    }
    const char *colon = strchr(c->row->core, ':');
    sqlite3_stmt *rows = c->row->load ? prepare(r, c->row, c->row->load) : NULL;
    int rc = c->row->load && !rows ? -1 : c->call->load(rows, colon ? colon + 1 : "", &c->state);
    sqlite3_finalize(rows);
    return rc;
}

static int run_core(runner *r, core_run *c, bench_samples *times)
{
    int rc = 0;
    double spent = 0;
    for (int i = -c->row->warm; rc == 0 && goes_on(r, c->row, i, 1, spent); i++) {
        double ns = time_core(c, (uint64_t)(i + c->row->warm));
        rc = ns < 0 ? -1 : i >= 0 ? bench_add(times, ns) : 0;
        spent += i >= 0 ? ns * c->row->times : 0;
    }
    return rc;
}

typedef struct statement_run {
    runner *r;
    const bench_row *row;
    script_run s;
} statement_run;

static int ask_statement(void *ctx, uint64_t run, bench_answer *out)
{
    statement_run *s = ctx;
    return run_once(s->r, s->row, &s->s, run, out) < 0 ? -1 : 0;
}

// what stands beside the time: the columns of one SELECT, as a JSON object
static int ask_facts(runner *r, const bench_row *row, char *out, size_t size)
{
    out[0] = 0;
    if (!row->facts) {
        return 0;
    }
    sqlite3_stmt *stmt = prepare(r, row, row->facts);
    int rc = stmt && bind(stmt, row, 0) == 0 && sqlite3_step(stmt) == SQLITE_ROW ? 0 : -1;
    size_t at = rc == 0 ? (size_t)snprintf(out, size, "{") : 0;
    for (int i = 0; rc == 0 && i < sqlite3_column_count(stmt) && at < size; i++) {
        const char *quote = sqlite3_column_type(stmt, i) == SQLITE_TEXT ? "\"" : "";
        const char *value = (const char *)sqlite3_column_text(stmt, i);
        at += (size_t)snprintf(out + at, size - at, "%s\"%s\":%s%s%s", i ? "," : "",
                               sqlite3_column_name(stmt, i), quote, value ? value : "null", quote);
    }
    if (rc == 0 && at + 2 < size) {
        snprintf(out + at, size - at, "}");
    } else {
        rc = failed(r, row, "facts");
    }
    sqlite3_finalize(stmt);
    return rc;
}

static int judge(runner *r, core_run *c, bench_result *res)
{
    truth t;
    statement_run s = {.r = r, .row = c->row};
    int rc = check(r, c->row);
    if (c->row->truth && !c->call) {
        rc |= prepare_all(r, c->row, c->row->timed, &s.s);
    }
    rc |= hold_against(r, c->row, c->call ? ask_core : ask_statement,
                       c->call ? (void *)c : (void *)&s, &t);
    finalize_all(&s.s);
    res->recall = t.recall;
    for (int i = 0; i < r->nmedians && c->row->versus[0]; i++) {
        if (!strcmp(r->medians[i].name, c->row->versus)) {
            res->factor = bench_quantile(res->times, 0.5) / r->medians[i].ns;
        }
    }
    return rc;
}

static int run_own(runner *r, const bench_row *row)
{
    bench_samples times = {0};
    core_run c = {.row = row};
    char facts[FACTS];
    int rc = row->mode == BENCH_CORE   ? core_open(r, &c)
             : row->mode == BENCH_OPEN ? run_open(r, row, &times)
                                       : run_timed(r, row, &times);
    if (rc == BENCH_ABSENT) {
        bench_out_none(&r->out, row, r->script->subsystem, "not on this machine");
        return 0;
    }
    rc = rc == 0 && c.call ? run_core(r, &c, &times) : rc;
    if (rc == 0) {
        median *m = &r->medians[r->nmedians < MEDIANS - 1 ? r->nmedians++ : MEDIANS - 1];
        snprintf(m->name, sizeof m->name, "%s", row->name);
        m->ns = bench_quantile(&times, 0.5);
        bench_result res = {.row = row,
                            .subsystem = r->script->subsystem,
                            .times = &times,
                            .factor = -1,
                            .facts = facts};
        rc = judge(r, &c, &res) | ask_facts(r, row, facts, sizeof facts);
        res.good = rc == 0;
        bench_out_row(&r->out, &res);
        rc = rc ? PRINTED : 0;
    }
    if (c.call && c.state) {
        c.call->done(c.state);
    }
    bench_samples_free(&times);
    return rc;
}

/* ---- rows with a peer */

static int compare(const bench_row *row, const bench_answer *a, const bench_answer *b,
                   bench_pair *p, uint64_t run)
{
    if (a->n != b->n || a->n == 0) {
        fprintf(stderr, "%s: run %d: ours gives %d rows, the peer %d\n", row->name, (int)run, a->n,
                b->n);
        return -1;
    }
    double worst = worst_of(a, b);
    p->worst = worst > p->worst ? worst : p->worst;
    p->common += share_of(b, a);
    if (row->same >= 0 && p->worst > row->same) {
        fprintf(stderr, "%s: run %d: values differ by %g, at most %g is allowed\n", row->name,
                (int)run, p->worst, row->same);
        return -1;
    }
    return 0;
}

static int run_pairs(runner *r, const bench_row *row, bench_pair *p)
{
    bench_answer a = {0}, b = {0};
    script_run ours = {.n = 0}, peer = {.n = 0};
    int rc = 0;
    for (int i = -row->warm; i < row->runs && rc == 0; i++) {
        uint64_t run = (uint64_t)(i + row->warm);
        double t_peer = 0, t_ours;
        rc = exec_section(r, row, row->each, run, 0);
        if (rc == 0 && ours.n == 0) { // only now: `each` may make the tables
            rc = prepare_all(r, row, row->timed, &ours) | prepare_all(r, row, row->peer, &peer);
        }
        if (rc == 0 && run % 2) {
            t_peer = run_once(r, row, &peer, run, &b);
        }
        t_ours = rc == 0 ? run_once(r, row, &ours, run, &a) : -1;
        if (rc == 0 && run % 2 == 0) {
            t_peer = run_once(r, row, &peer, run, &b);
        }
        rc = t_ours < 0 || t_peer < 0 ? -1 : 0;
        if (rc == 0 && i >= 0) {
            rc = compare(row, &a, &b, p, run);
            rc |= bench_add(&p->ours, t_ours) | bench_add(&p->theirs, t_peer);
            rc |= bench_add(&p->ratio, t_peer / t_ours);
        }
        rc = rc == 0 ? exec_section(r, row, row->after, run, 0) : rc;
    }
    finalize_all(&ours);
    finalize_all(&peer);
    return rc;
}

static int run_peer(runner *r, const bench_row *row)
{
    bench_pair p = {.name = row->name,
                    .subsystem = r->script->subsystem,
                    .peer = "peer",
                    .target = row->target};
    char facts[FACTS];
    int rc = run_pairs(r, row, &p);
    if (rc == 0) {
        p.common /= p.ours.n;
        rc = check(r, row);
        if (row->overlap >= 0 && p.common < row->overlap) {
            rc = -1;
        }
        rc |= ask_facts(r, row, facts, sizeof facts);
        p.facts = facts;
        p.worst = row->same >= 0 ? p.worst : -1;
        p.good = rc == 0;
        bench_out_pair(&r->out, &p);
        rc = rc ? PRINTED : 0;
    }
    bench_samples_free(&p.ours);
    bench_samples_free(&p.theirs);
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

// fewer runs in the short form
static void shorten(runner *r, bench_row *row)
{
    if (r->form == BENCH_SHORT) {
        row->runs = row->runs < SHORT_RUNS ? row->runs : SHORT_RUNS;
        row->warm = row->warm < 2 ? row->warm : 2;
        row->times = row->times < 100 ? row->times : 100;
    }
}

static int has_wanted(const runner *r, const bench_script *script)
{
    int any = 0;
    for (const bench_row *row = script->rows; row != NULL; row = row->next) {
        any |= row->from <= r->form && (r->filter == NULL || strstr(row->name, r->filter) != NULL);
    }
    return any;
}

static int run_rows(runner *r)
{
    int failures = 0;
    for (bench_row *row = r->script->rows; row != NULL; row = row->next) {
        if (row->from > r->form) {
            continue;
        }
        shorten(r, row);
        int wanted = r->filter == NULL || strstr(row->name, r->filter) != NULL;
        int rc = exec_section(r, row, row->setup, 0, 0); // later rows may need it
        if (rc == 0 && wanted) {
            rc = row->mode == BENCH_PEER ? run_peer(r, row) : run_own(r, row);
        }
        if (rc != 0) {
            if (rc != PRINTED) {
                bench_out_none(&r->out, row, r->script->subsystem, "FAILED");
            }
            failures++;
            if (r->db == NULL) {
                break;
            }
        }
    }
    return failures;
}

static int list_script(const char *path)
{
    static const char *const forms[] = {"short", "normal", "long"};
    bench_script script;
    int rc = bench_parse(path, &script);
    for (const bench_row *row = script.rows; rc == 0 && row != NULL; row = row->next) {
        printf("%s %s %s\n", row->name, script.subsystem, forms[row->from]);
    }
    bench_script_free(&script);
    return rc;
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
    if (!has_wanted(r, &script)) {
        bench_script_free(&script);
        return 0;
    }
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

static int usage(void)
{
    fprintf(stderr, "bench --module PATH [--extension NAME=PATH] ... [--form short|normal|long] "
                    "[--filter WORD] [--about WORD] script.sql\nbench --list all script.sql\n");
    return 2;
}

static int take_option(runner *r, const char *name, char *value)
{
    char *equals = strchr(value, '=');
    if (!strcmp(name, "--module")) {
        return realpath(value, r->module) ? 0 : -1;
    }
    if (!strcmp(name, "--filter")) {
        r->filter = value;
        return 0;
    }
    if (!strcmp(name, "--form")) {
        r->form = *value == 's' ? BENCH_SHORT : *value == 'l' ? BENCH_LONG : BENCH_NORMAL;
        return 0;
    }
    if (!strcmp(name, "--extension") && equals && r->nextension < EXTENSIONS &&
        realpath(equals + 1, r->extension[r->nextension])) {
        snprintf(r->extension_name[r->nextension++], sizeof r->extension_name[0], "%.*s",
                 (int)(equals - value), value);
        return 0;
    }
    return -1;
}

// sql/demo.h5 as seen from a script: bench/x.sql and bench/peers/x.sql
static void find_demo(const char *script)
{
    static const char *const up[] = {"../sql/demo.h5", "../../sql/demo.h5"};
    char path[PATH_MAX], real[PATH_MAX];
    const char *slash = strrchr(script, '/');
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%.*s%s", slash ? (int)(slash - script + 1) : 0, script, up[i]);
        if (realpath(path, real)) {
            bench_set_demo(real);
            return;
        }
    }
}

int main(int argc, char **argv)
{
    static runner r = {.form = BENCH_NORMAL};
    const char *about = "bench";
    int at = 1, failures = 0, list = 0;
    for (; at + 1 < argc && !strncmp(argv[at], "--", 2); at += 2) {
        if (!strcmp(argv[at], "--list")) {
            list = 1;
        } else if (!strcmp(argv[at], "--about")) {
            about = argv[at + 1];
        } else if (take_option(&r, argv[at], argv[at + 1]) != 0) {
            fprintf(stderr, "%s %s: unknown, or no such file\n", argv[at], argv[at + 1]);
            return usage();
        }
    }
    if ((!r.module[0] && !list) || at >= argc) {
        return usage();
    }
    find_demo(argv[at]);
    if (!list && bench_out_open(&r.out) != 0) {
        return 1;
    }
    if (!list) {
        bench_out_machine(&r.out, about);
    }
    for (; at < argc; at++) {
        failures += list ? list_script(argv[at]) != 0 : run_script(&r, argv[at]);
    }
    bench_out_close(&r.out);
    if (failures) {
        printf("%d failed\n", failures);
    }
    return failures ? 1 : 0;
}
