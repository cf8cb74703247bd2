/*
 * t_kills.c - processes that die while they work, alone or beside others
 *
 * A life: a process opens what the one before has left, which must be one of the states that its
 * death allows, works, and is killed: at a chosen call of a chosen phase, or from outside after
 * some time. Before a third of the lives others open the same host; when the worker is dead they
 * read, settle by a ROLLBACK, flush or compact, in any order, and then die as well.
 *
 * SPDX-License-Identifier: MIT
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "t_run.h"

enum { ROUND = 40, PEERS = 3, STEPS = 12, OUTSIDE = T_PHASES + 1 };

typedef struct peer {
    int pid, fd;
} peer;

typedef struct tally {
    long phase[T_PHASES];
    long outside, between, rows, open, took, deep, peers, said, refused;
} tally;

typedef struct plan {
    int phase; /* OUTSIDE: by time */
    long nth;
    int moment;
    unsigned fraction;
    int wait_us;
    int deep;
    uint64_t seed;
} plan;

static const int weight[T_PHASES] = {4, 26, 22, 16, 12, 9, 9, 5, 4, 2};

static plan make_plan(t_run *run)
{
    t_rng *r = &run->rng;
    plan p = {.phase = OUTSIDE};
    int sum = 0, luck;
    for (int i = 0; i < T_PHASES; i++) {
        sum += weight[i];
    }
    luck = (int)t_rng_below(r, (uint64_t)sum * 5 / 4); // a fifth from outside
    for (int i = 0; i < T_PHASES && luck >= 0; i++) {
        luck -= weight[i];
        if (luck < 0) {
            p.phase = i;
        }
    }
    p.nth = 1 + (long)t_rng_below(r, p.phase == T_FLUSH || p.phase == T_HOST ? 16 : 4);
    p.moment = (int)t_rng_below(r, 3);
    p.fraction = (unsigned)t_rng_below(r, 256);
    p.wait_us = 300 + (int)t_rng_below(r, 8000);
    p.deep = t_rng_below(r, 6) == 0;
    p.seed = t_rng_next(r);
    return p;
}

static void live(t_run *run, const t_spec *spec, const char *folder, const plan *p)
{
    t_world w;
    memset(&w, 0, sizeof w);
    w.rng.state = p->seed;
    w.drop = run->drop;
    t_sys_watch(folder);
    t_sys.phase_mark = &run->shared->phase;
    if (p->phase != OUTSIDE) {
        t_sys.kill_phase = p->phase == T_OTHER ? T_PHASES : p->phase;
        t_sys.kill_nth = p->nth;
        t_sys.moment = p->moment;
        t_sys.fraction = p->fraction;
    }
    t_world_open(&w, run->shared, spec, folder);
    t_world_check(&w);
    if (p->deep) {
        t_world_check_deeply(&w);
    }
    run->shared->ready = 1;
    for (int i = 0; i < STEPS || p->phase == OUTSIDE; i++) {
        t_world_step(&w);
    }
    t_sys.kill_phase = T_PHASES; // the phase did not come so often: at the next call of any
    t_sys.kill_nth = 1;
    for (int i = 0; i < STEPS; i++) {
        t_world_step(&w);
    }
    t_sys_die();
}

/* ------------------------------------------------------------------------- those who live on */

static void run_peer(t_run *run, const t_spec *spec, const char *folder, int fd)
{
    static const char *const insert = "INSERT INTO memory(content) VALUES ('taken back')";
    t_world w;
    char what;
    memset(&w, 0, sizeof w);
    w.may_fail = 1;
    t_sys_watch("");
    if (t_world_open(&w, run->shared, spec, folder) || t_world_is_right(&w) < 0) {
        snprintf(run->shared->message, sizeof run->shared->message, "%s", w.error);
        _exit(3);
    }
    what = 'k';
    while (write(fd, &what, 1) == 1 && read(fd, &what, 1) == 1) {
        int rc = 0, right = 1;
        switch (what) {
        case 'r':
            rc = t_world_run(&w, "BEGIN") || t_world_run(&w, "%s", insert);
            sqlite3_exec(w.db, "ROLLBACK", NULL, NULL, NULL);
            break;
        case 'f':
            rc = t_world_run(&w, "SELECT h5mem_flush('memory')");
            break;
        case 'c':
            rc = t_world_compact(&w);
            break;
        default:
            right = t_world_is_right(&w);
        }
        what = right == 0 ? 'x' : rc || right < 0 ? 'e' : 'k';
    }
    _exit(0);
}

static peer start_peer(t_run *run, const t_spec *spec, const char *folder)
{
    int pair[2];
    char ready = 'x';
    peer p;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0 || (p.pid = fork()) < 0) {
        perror("torture");
        _exit(2);
    }
    if (p.pid == 0) {
        close(pair[0]);
        run_peer(run, spec, folder, pair[1]);
    }
    close(pair[1]);
    p.fd = pair[0];
    if (read(p.fd, &ready, 1) != 1) {
        ready = 'x';
    }
    if (ready != 'k') {
        p.fd = -1;
    }
    return p;
}

/* What they do after the death, and their own; 0, or 1 when one of them saw what must not be. */
static int end_peers(t_run *run, peer *p, int n, tally *t)
{
    int bad = 0;
    for (int i = (int)t_rng_below(&run->rng, 5); i-- > 0 && n;) {
        const peer *one = &p[t_rng_below(&run->rng, (uint64_t)n)];
        char what = "rfcsr"[t_rng_below(&run->rng, 5)];
        if (write(one->fd, &what, 1) != 1 || read(one->fd, &what, 1) != 1) {
            what = 'x';
        }
        t->said++;
        t->refused += what == 'e';
        bad |= what == 'x';
    }
    for (int i = 0; i < n; i++) {
        kill(p[i].pid, SIGKILL);
        t_run_wait(p[i].pid);
        close(p[i].fd);
    }
    return bad;
}

/* --------------------------------------------------------------------------------------- a life */

static int one_life(t_run *run, const t_spec *spec, const char *folder, tally *t)
{
    t_shared *s = run->shared;
    plan p = make_plan(run);
    peer peers[PEERS];
    int npeer = 0, pid, end, bad = 0;
    s->where = T_IDLE;
    s->phase = T_OTHER;
    s->ready = s->took = 0;
    // They are there before what the last death has left is settled, or after.
    for (int n = run->alone || t_rng_below(&run->rng, 3) ? 0
                                                         : 1 + (int)t_rng_below(&run->rng, PEERS);
         n-- > 0;) {
        peers[npeer] = start_peer(run, spec, folder);
        if (peers[npeer++].fd < 0) {
            return 1;
        }
    }
    pid = fork();
    if (pid == 0) {
        live(run, spec, folder, &p);
    }
    if (p.phase == OUTSIDE) {
        usleep((useconds_t)p.wait_us);
        kill(pid, SIGKILL);
    }
    end = t_run_wait(pid);
    bad = end_peers(run, peers, npeer, t);
    if (bad) {
        printf("seen by one who lives on:\n");
    }
    if (end != -SIGKILL && !s->message[0]) {
        snprintf(s->message, sizeof s->message, "ended with %d", end);
    }
    if (end != -SIGKILL || bad) {
        printf("%s kill %ld of %s: %s\n", p.phase == OUTSIDE ? "outside" : t_phase_name[p.phase],
               p.nth, ((const char *const[]){"before", "half", "after"})[p.moment], s->message);
        return 1;
    }
    t->phase[s->phase]++;
    t->outside += p.phase == OUTSIDE;
    t->between += s->where != T_IDLE;
    t->rows += s->where == T_ROWS_WRITTEN;
    t->open += s->open != 0;
    t->took += s->took;
    t->deep += p.deep;
    t->peers += npeer > 0;
    return 0;
}

static void print(const t_run *run, const tally *t)
{
    long n = run->lives;
    printf(
        "report: %ld kills, %ld from outside, %ld beside living processes (which did %ld things, "
        "%ld of them refused)\n",
        n, t->outside, t->peers, t->said, t->refused);
    printf(
        "report: %ld commits confirmed; %.0f percent of the kills between first write and end of "
        "COMMIT (%ld before COMMIT, %ld in it; %ld of these transactions were there)\n",
        run->shared->commits, 100.0 * (double)t->between / (double)n, t->rows, t->between - t->rows,
        t->took);
    printf("report: by the last call:");
    for (int i = 0; i < T_PHASES; i++) {
        printf(" %s %ld%s", t_phase_name[i], t->phase[i], i + 1 < T_PHASES ? "," : "\n");
    }
    printf(
        "report: 0 lost, 0 phantom, 0 disagreements; %ld looks at every index; %ld evictions, %ld "
        "rows back, %ld recorded\n",
        t->deep, run->shared->evicted, run->shared->back, run->shared->recorded);
}

int t_kills(t_run *run)
{
    tally t = {.outside = 0};
    char folder[200] = "", text[300];
    t_spec spec = {0};
    run->lives = run->lives ? run->lives : 400;
    for (long i = 0; i < run->lives; i++) {
        if (i % ROUND == 0) {
            if (i) {
                t_run_remove(folder);
            }
            t_run_folder(run, i / ROUND, folder);
            spec = t_run_spec(run, -1);
            int pid = fork();
            if (pid == 0) {
                t_world_make(run->shared, &spec, folder);
                _exit(0);
            }
            if (t_run_wait(pid) != 0) {
                printf("making: %s\n", run->shared->message);
                return 1;
            }
        }
        if (one_life(run, &spec, folder, &t)) {
            printf("life %ld, %s\n", i, t_run_spec_text(&spec, text, sizeof text));
            return 1;
        }
    }
    print(run, &t);
    if (run->lives >= 200 && t.between * 10 < run->lives * 3) {
        printf("fewer than 30 percent of the kills between first write and COMMIT\n");
        return 1;
    }
    return 0;
}
