/*
 * t_cuts.c - the power goes at some call of a working process
 *
 * The process writes what the disk may then hold (t_power.h) into another folder, where the next
 * one opens it.
 *
 * CAREFUL  the store synced at each COMMIT, the host as well: what COMMIT has confirmed is there,
 *          in both files alike. One world goes on from cut to cut.
 * LOOSE    anything less: each file is at some committed transaction of its own, nothing is
 *          damaged, and work goes on. A fresh world each time.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "t_power.h"
#include "t_run.h"

enum { STEPS = 10, ROUND = 40, CUT = 9 };

typedef struct tally {
    long phase[T_PHASES];
    long open, took, apart, said, back;
} tally;

static char cut_folder[200];
static t_rng cut_rng;
static t_shared *shared;

static void cut(void)
{
    t_power_cut(cut_folder, &cut_rng);
    _exit(CUT);
}

static void plan(t_run *run)
{
    static const int weight[T_PHASES] = {10, 22, 22, 14, 14, 12, 10, 6, 6, 0};
    int luck = (int)t_rng_below(&run->rng, 116);
    t_sys.kill_phase = T_PHASES;
    for (int i = 0; i < T_PHASES && luck >= 0; i++) {
        luck -= weight[i];
        t_sys.kill_phase = i ? i : T_PHASES;
    }
    t_sys.kill_nth = 1 + (long)t_rng_below(&run->rng, t_sys.kill_phase == T_FLUSH ? 16 : 6);
    t_sys.moment = (int)t_rng_below(&run->rng, 3);
    t_sys.fraction = (uint32_t)t_rng_below(&run->rng, 256);
}

/* ------------------------------------------------------------------------- the one that works */

static void note_state(t_shared *s)
{
    char *rows = t_model_dump(&s->model[s->cur], 0), *notes = t_model_dump(&s->model[s->cur], 1);
    s->rows_was[0] = t_digest(rows);
    s->notes_was[0] = t_digest(notes);
    s->history = 1;
    sqlite3_free(rows);
    sqlite3_free(notes);
}

static void work(t_run *run, const t_spec *spec, const char *folder)
{
    t_world w;
    memset(&w, 0, sizeof w);
    w.rng.state = t_rng_next(&run->rng);
    w.drop = run->drop;
    cut_rng.state = t_rng_next(&run->rng);
    t_sys_watch(folder);
    t_sys.phase_mark = &run->shared->phase;
    t_sys.die = cut;
    plan(run);
    t_power_on(folder);
    t_world_open(&w, run->shared, spec, folder);
    t_world_check(&w);
    for (int i = 0; i < STEPS; i++) {
        t_world_step(&w);
    }
    t_sys.kill_phase = T_PHASES;
    t_sys.kill_nth = 1;
    for (int i = 0; i < STEPS; i++) {
        t_world_step(&w);
    }
    cut();
}

/* ---------------------------------------------------------------------------- the one that looks
** */

/* The last state with that digest, or -1; *first the first one. States are numbered from 0. */
static long state_of(const uint64_t *was, long n, uint64_t digest, long *first)
{
    long last = -1;
    *first = -1;
    for (long i = 0; i < n; i++) {
        if (was[i % T_HISTORY] == digest) {
            last = i;
            *first = *first < 0 ? i : *first;
        }
    }
    return last;
}

/* What h5mem_stats says is behind: 0 neither, 1 the host, 2 the store. */
static int said(t_world *w)
{
    const char *text;
    sqlite3_stmt *stmt;
    int what = 0;
    if (sqlite3_prepare_v2(w->db, "SELECT json_extract(h5mem_stats('memory'), '$.behind')", -1,
                           &stmt, NULL) == SQLITE_OK &&
        sqlite3_step(stmt) == SQLITE_ROW) {
        text = (const char *)sqlite3_column_text(stmt, 0);
        what = !text ? 0 : !strcmp(text, "host") ? 1 : 2;
    }
    sqlite3_finalize(stmt);
    return what;
}

/* Each file must be at some committed state. Gives that of the store; *first when it was there
** before, the first time. */
static long look_loosely(t_world *w, long *first)
{
    t_shared *s = w->shared;
    char *rows = t_world_dump(w, 0), *notes = t_world_dump(w, 1);
    long n = s->history, i, j, first_note;
    if (s->open) {
        char *a = t_model_dump(&s->model[!s->cur], 0), *b = t_model_dump(&s->model[!s->cur], 1);
        s->rows_was[n] = t_digest(a);
        s->notes_was[n++] = t_digest(b);
        sqlite3_free(a);
        sqlite3_free(b);
    }
    i = state_of(s->rows_was, n, t_digest(rows), first);
    j = state_of(s->notes_was, n, t_digest(notes), &first_note);
    if (i < 0 || j < 0) {
        t_world_fail(w, "the %s is at no committed state of %ld:\n%s", i < 0 ? "store" : "host", n,
                     i < 0 ? rows : notes);
    }
    s->took = i < first_note ? 2 : j < *first;
    s->ready = i < s->history - 1 || j < s->history - 1;
    sqlite3_free(rows);
    sqlite3_free(notes);
    return i;
}

/* A writer also looks behind what the log's header counts, and so may find a later state than the
** reader before it; never an earlier one. */
static void go_on_loosely(t_world *w)
{
    char *before, *after;
    long first, ignored;
    look_loosely(w, &first);
    w->shared->said = said(w);
    if (w->shared->took && w->shared->said == 3 - w->shared->took) {
        t_world_fail(w, "the %s is behind, h5mem_stats says the other one",
                     w->shared->took == 2 ? "store" : "host");
    }
    int apart = w->shared->took;
    t_world_run(w, "INSERT INTO memory(content) VALUES ('amber after')");
    t_world_run(w, "DELETE FROM memory WHERE content = 'amber after'");
    if (look_loosely(w, &ignored) < first) {
        t_world_fail(w, "a writer has found an earlier state than the reader before it");
    }
    w->shared->took = apart;
    before = t_world_dump(w, 0);
    t_world_run(w, "INSERT INTO memory(content) VALUES ('amber after')");
    t_world_run(w, "SELECT h5mem_flush('memory')");
    t_world_run(w, "DELETE FROM memory WHERE content = 'amber after'");
    after = t_world_dump(w, 0);
    if (strcmp(before, after) != 0) {
        t_world_fail(w, "work has changed\n%s\nto\n%s", before, after);
    }
    sqlite3_free(before);
    sqlite3_free(after);
}

static void look(t_run *run, const t_spec *spec, const char *folder, int careful)
{
    t_world w;
    memset(&w, 0, sizeof w);
    w.rng.state = t_rng_next(&run->rng);
    t_sys_watch("");
    t_world_open(&w, run->shared, spec, folder);
    if (careful) {
        t_world_check(&w);
        t_world_check_deeply(&w);
        t_world_transaction(&w);
        t_world_run(&w, "SELECT h5mem_flush('memory')");
        t_world_check(&w);
    } else {
        go_on_loosely(&w);
    }
    t_world_run(&w, "CREATE TEMP TABLE ok AS SELECT h5mem_verify('memory') AS verdict");
    t_world_run(&w, "SELECT CASE verdict WHEN 'ok' THEN 1 ELSE json(verdict) END FROM ok");
    t_world_close(&w);
    _exit(0);
}

/* ------------------------------------------------------------------------------------- one cut */

static int make(t_run *run, const t_spec *spec, const char *folder)
{
    int pid = fork();
    if (pid == 0) {
        t_world_make(run->shared, spec, folder);
        _exit(0);
    }
    return t_run_wait(pid);
}

static int one(t_run *run, const t_spec *spec, const char *folder, int careful, tally *t)
{
    t_shared *s = run->shared;
    int pid, end;
    uint64_t next = t_rng_next(&run->rng);
    s->phase = T_OTHER;
    s->took = s->ready = 0;
    note_state(s);
    pid = fork();
    if (pid == 0) {
        work(run, spec, folder);
    }
    end = t_run_wait(pid);
    if (end != CUT) {
        printf("the worker ended with %d: %s\n", end, s->message);
        return 1;
    }
    run->rng.state = next;
    // In its place: while the one that was lives elsewhere, this would be a copy of that host.
    t_run_remove(folder);
    if (rename(cut_folder, folder) != 0) {
        perror("torture");
        return 1;
    }
    t->phase[s->phase]++;
    t->open += s->open != 0;
    pid = fork();
    if (pid == 0) {
        look(run, spec, folder, careful);
    }
    end = t_run_wait(pid);
    if (end != 0) {
        printf("after a cut at %s, %d: %s\n", t_phase_name[s->phase], end, s->message);
        return 1;
    }
    t->took += careful && s->took;
    t->apart += !careful && s->took;
    t->said += !careful && s->took && s->said == s->took;
    t->back += !careful && s->ready;
    return 0;
}

static void print(const t_run *run, const tally *t, int careful)
{
    printf("report: %s: %ld cuts; %ld while COMMIT ran", careful ? "all synced" : "less synced",
           run->lives, t->open);
    if (careful) {
        printf(", %ld of these transactions were there; 0 lost, 0 differences\n", t->took);
    } else {
        printf("; %ld with something lost, host and store apart in %ld (h5mem_stats says which is "
               "behind in %ld), 0 damaged\n",
               t->back, t->apart, t->said);
    }
    printf("report: by the last call:");
    for (int i = 0; i < T_PHASES; i++) {
        printf(" %s %ld%s", t_phase_name[i], t->phase[i], i + 1 < T_PHASES ? "," : "\n");
    }
}

int t_power_cuts(t_run *run)
{
    for (int careful = 1; careful >= 0; careful--) {
        tally t = {.open = 0};
        char folder[200] = "", text[300];
        t_spec spec = {0};
        shared = run->shared;
        run->lives = run->lives ? run->lives : 200;
        for (long i = 0; i < run->lives; i++) {
            if (!careful || i % ROUND == 0) {
                if (*folder) {
                    t_run_remove(folder);
                }
                spec = t_run_spec(run, careful);
                t_run_folder(run, 4 * i + 2 * careful, folder);
                if (make(run, &spec, folder)) {
                    printf("making: %s\n", shared->message);
                    return 1;
                }
            }
            t_run_folder(run, 4 * i + 2 * careful + 1, cut_folder);
            if (one(run, &spec, folder, careful, &t)) {
                printf("cut %ld, %s, %s\n", i, t_run_spec_text(&spec, text, sizeof text), folder);
                return 1;
            }
        }
        t_run_remove(folder);
        print(run, &t, careful);
    }
    return 0;
}
