/*
 * t_faults.c - each call and each allocation of a scripted workload fails once
 *
 * A prepared folder is copied, and a process runs the same steps on it: transactions, single
 * statements, flush, compact, checkpoint, opening and closing. Its n-th call of a kind fails, or
 * all from the n-th on; n goes from 1 until nothing fails any more. What fails must be an error
 * with a text, host and store must be as the model says, a failure that has passed must have no
 * effect on later steps, and at the end, without failures, all indexes must be whole and more work
 * must succeed. No memory may stay behind.
 *
 * SPDX-License-Identifier: MIT
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "h5core.h"
#include "t_alloc.h"
#include "t_run.h"
#include "vec.h"

int sqlite3_h5mem_init(sqlite3 *db, char **err, const void *api);

typedef struct failure {
    const char *name;
    int kinds, error, is_short, stays;
    int harmless; /* 1: nothing may fail because of it */
} failure;

static const failure failures[] = {
    {"write: EIO", T_WRITE, EIO, 0, 0, 0},
    {"write: ENOSPC from then on", T_WRITE, ENOSPC, 0, 1, 0},
    {"write: half, then ENOSPC", T_WRITE, ENOSPC, 1, 1, 0},
    {"write: half", T_WRITE, EIO, 1, 0, 1},
    {"write: EINTR", T_WRITE, EINTR, 0, 0, 1},
    {"read: EIO", T_READ, EIO, 0, 0, 0},
    {"read: half", T_READ, EIO, 1, 0, 0},
    {"read: EINTR", T_READ, EINTR, 0, 0, 1},
    {"sync: EIO", T_SYNC, EIO, 0, 0, 0},
    {"sync: EINTR", T_SYNC, EINTR, 0, 0, 0},
    {"truncate: EIO", T_TRUNCATE, EIO, 0, 0, 0},
    {"truncate: EINTR", T_TRUNCATE, EINTR, 0, 0, 1},
    {"rename: EIO", T_RENAMES, EIO, 0, 0, 0},
    {"unlink: EIO", T_UNLINK, EIO, 0, 0, 0},
    {"open: EMFILE", T_OPEN, EMFILE, 0, 0, 0},
    {"open: EACCES from then on", T_OPEN, EACCES, 0, 1, 0},
    {"lock: ENOLCK", T_LOCK, ENOLCK, 0, 0, 0},
    {"lock: EINTR", T_LOCK, EINTR, 0, 0, 0},
    {"lock of the store: ENOLCK from then on", T_OFD, ENOLCK, 0, 1, 0},
    {"map: ENOMEM", T_MAP, ENOMEM, 0, 0, 0},
    {"all: EIO from then on", T_CHANGES | T_READ, EIO, 0, 1, 0},
    {"memory", 0, 0, 0, 0, 0},
};
enum { FAILURES = sizeof failures / sizeof *failures, STEPS = 9, PREPARING = 14 };

static t_alloc heap;

/* ------------------------------------------------------------------------------------- memory */

enum { HEAD = 16 };

static void *mem_malloc(int n)
{
    char *p = t_alloc_get(&heap, (size_t)n + HEAD);
    return p ? memcpy(p, &n, sizeof n), p + HEAD : NULL;
}

static void mem_free(void *p)
{
    t_alloc_release(&heap, p ? (char *)p - HEAD : NULL);
}

static void *mem_realloc(void *old, int n)
{
    char *p = t_alloc_resize(&heap, (char *)old - HEAD, (size_t)n + HEAD);
    return p ? memcpy(p, &n, sizeof n), p + HEAD : NULL;
}

static int mem_size(void *p)
{
    int n = 0;
    if (p) {
        memcpy(&n, (char *)p - HEAD, sizeof n);
    }
    return n;
}

static int mem_roundup(int n)
{
    return (n + 7) & ~7;
}

static int mem_init(void *ctx)
{
    (void)ctx;
    return SQLITE_OK;
}

static void mem_shutdown(void *ctx)
{
    (void)ctx;
}

static int take_memory(void)
{
    static const sqlite3_mem_methods methods = {mem_malloc,  mem_free, mem_realloc,  mem_size,
                                                mem_roundup, mem_init, mem_shutdown, NULL};
    static const h5_allocator h5 = {t_alloc_get, t_alloc_resize, t_alloc_release, &heap};
    static const vec_allocator vec = {t_alloc_get, t_alloc_resize, t_alloc_release, &heap};
    sqlite3_reset_auto_extension();
    sqlite3_shutdown();
    if (sqlite3_config(SQLITE_CONFIG_MALLOC, &methods) != SQLITE_OK) {
        return 1;
    }
    h5_set_allocator(&h5);
    vec_set_allocator(&vec);
    return sqlite3_auto_extension((void (*)(void))sqlite3_h5mem_init) != SQLITE_OK;
}

/* -------------------------------------------------------------------------------------- folders */

static void copy_file(const char *from, const char *to)
{
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    char bytes[65536];
    size_t n;
    if (!in || !out) {
        perror(from);
        _exit(2);
    }
    while ((n = fread(bytes, 1, sizeof bytes, in)) > 0) {
        if (fwrite(bytes, 1, n, out) != n) {
            perror(to);
            _exit(2);
        }
    }
    fclose(in);
    fclose(out);
}

/* to is made empty first. */
static void copy_folder(const char *from, const char *to)
{
    const char *const folders[] = {to, from};
    for (int k = 0; k < 2; k++) {
        DIR *d = opendir(folders[k]);
        struct dirent *e;
        while (d && (e = readdir(d)) != NULL) {
            char a[512], b[512];
            snprintf(a, sizeof a, "%s%s", folders[k], e->d_name);
            snprintf(b, sizeof b, "%s%s", to, e->d_name);
            if (*e->d_name != '.' && k == 0) {
                unlink(a);
            } else if (*e->d_name != '.') {
                copy_file(a, b);
            }
        }
        closedir(d);
    }
}

static void prepare(t_run *run, const t_spec *spec, const char *folder)
{
    t_world w;
    t_world_make(run->shared, spec, folder);
    memset(&w, 0, sizeof w);
    w.rng.state = 11;
    w.no_upkeep = 1;
    t_world_open(&w, run->shared, spec, folder);
    for (int i = 0; i < PREPARING; i++) {
        t_world_step(&w);
        if (i == PREPARING / 2) {
            t_world_run(&w, "SELECT h5mem_flush('memory')");
        }
    }
    _exit(0); // so that the log keeps its rows
}

/* ------------------------------------------------------------------------------------ one failure
** */

static void arm(const failure *f, long n)
{
    if (f->kinds) {
        t_sys.fail_kinds = f->kinds;
        t_sys.fail_errno = f->error;
        t_sys.fail_short = f->is_short;
        t_sys.fail_stays = f->stays;
        t_sys.fail_at = n;
    } else {
        heap.count = 0;
        heap.fail_at = n;
    }
}

static void disarm(void)
{
    t_sys.fail_at = 0;
    heap.fail_at = 0;
}

static long met(const failure *f)
{
    return f->kinds ? t_sys.fail_seen : heap.count;
}

/* 1 when the failure is over and must not be felt any more. A host that could not be opened for
** writing is open for reading only. */
static int passed(const failure *f, long n)
{
    return !f->stays && f->kinds != T_OPEN && met(f) >= n;
}

static void step(t_world *w, int i)
{
    if (i == 2) {
        t_world_run(w, "SELECT h5mem_flush('memory')");
    } else if (i == 6) {
        t_world_compact(w);
    } else if (i == 4) {
        t_world_run(w, "PRAGMA wal_checkpoint");
    } else if (i == 7) {
        sqlite3_close(w->db);
        w->db = NULL;
        if (t_world_open(w, w->shared, w->spec, w->folder)) {
            sqlite3_close(w->db);
            w->db = NULL;
        }
    } else {
        t_world_step(w);
    }
}

/* After a step: without failures host and store are what the model says. */
static void settle(t_world *w)
{
    t_sys_state keep = t_sys;
    t_alloc keep_heap = heap;
    disarm();
    w->may_fail = 0;
    if (!w->db) {
        t_world_open(w, w->shared, w->spec, w->folder);
    }
    t_world_check(w);
    w->may_fail = 1;
    t_sys.fail_at = keep.fail_at;
    t_sys.fail_seen = keep.fail_seen;
    heap.fail_at = keep_heap.fail_at;
    heap.count = keep_heap.count;
}

static void finish(t_world *w)
{
    disarm();
    w->may_fail = 0;
    sqlite3_close(w->db); // it may be open for reading only, if opening has failed
    t_world_open(w, w->shared, w->spec, w->folder);
    t_world_check_deeply(w);
    t_world_transaction(w);
    t_world_run(w, "SELECT h5mem_flush('memory')");
    t_world_check(w);
    t_world_close(w);
    t_world_open(w, w->shared, w->spec, w->folder);
    t_world_check(w);
    t_world_close(w);
    sqlite3_reset_auto_extension();
    sqlite3_shutdown();
    if (heap.live) {
        t_world_fail(w, "%ld allocations were never given back", heap.live);
    }
}

/* A process: exits with 0 when the failure was met, 1 when the steps ended before it. */
static void suffer(t_run *run, const t_spec *spec, const char *folder, const failure *f, long n)
{
    t_world w;
    int over;
    memset(&w, 0, sizeof w);
    w.rng.state = 12;
    w.may_fail = w.no_upkeep = 1;
    t_sys_watch(folder);
    if (take_memory()) {
        _exit(2);
    }
    arm(f, n);
    if (t_world_open(&w, run->shared, spec, folder)) {
        sqlite3_close(w.db);
        w.db = NULL;
        settle(&w);
    }
    for (int i = 0; i < STEPS; i++) {
        long before = run->shared->failures;
        over = passed(f, n);
        step(&w, i);
        if (over && run->shared->failures > before) {
            t_world_fail(&w, "felt in a later step: %s", w.error);
        }
        if (f->harmless && run->shared->failures > before) {
            t_world_fail(&w, "not retried: %s", w.error);
        }
        settle(&w);
    }
    over = met(f) >= n;
    finish(&w);
    exit(over ? 0 : 1);
}

/* How many n there are to try for a failure; all, or a share of them by chance. */
static int sweep(t_run *run, const t_spec *spec, const failure *f, const char *from, const char *to)
{
    t_shared *s = run->shared, *saved = malloc(sizeof *saved);
    long stride = 1, tried = 0, errors = 0, n = 1;
    char text[200];
    memcpy(saved, s, sizeof *s);
    if (run->lives) {
        stride = run->lives * (f->kinds ? 1 : 40);
        n += (long)t_rng_below(&run->rng, (uint64_t)stride);
    }
    for (;; n += stride > 1 ? 1 + (long)t_rng_below(&run->rng, (uint64_t)(2 * stride - 1)) : 1) {
        int end, pid;
        copy_folder(from, to);
        memcpy(s, saved, sizeof *s);
        s->failures = 0;
        pid = fork();
        if (pid == 0) {
            suffer(run, spec, to, f, n);
        }
        end = t_run_wait(pid);
        if (end == 1) {
            break;
        }
        if (end != 0) {
            printf("%s, number %ld, %s: ended with %d: %s\n", f->name, n,
                   t_run_spec_text(spec, text, sizeof text), end, s->message);
            free(saved);
            return 1;
        }
        tried++;
        errors += s->failures > 0;
    }
    printf("report: %s host, %s: %ld of %ld, %ld with an error\n",
           spec->journal ? spec->journal : "memory", f->name, tried, n - 1, errors);
    memcpy(s, saved, sizeof *s);
    free(saved);
    return 0;
}

int t_faults(t_run *run)
{
    static const t_spec specs[] = {
        {"wal", "FULL", ", autoflush=6000, synchronous=full"},
        {"delete", "FULL", ", autoflush=6000, compression='zstd:1', synchronous=full"},
    };
    char from[200], to[200];
    for (int k = 0; k < 2; k++) {
        int pid;
        t_run_folder(run, 2 * k, from);
        t_run_folder(run, 2 * k + 1, to);
        pid = fork();
        if (pid == 0) {
            prepare(run, &specs[k], from);
        }
        if (t_run_wait(pid) != 0) {
            printf("preparing: %s\n", run->shared->message);
            return 1;
        }
        for (int i = 0; i < FAILURES; i++) {
            if ((run->only && !strstr(failures[i].name, run->only)) ||
                (run->skip && strstr(failures[i].name, run->skip))) {
                continue;
            }
            if (sweep(run, &specs[k], &failures[i], from, to)) {
                return 1;
            }
        }
    }
    return 0;
}
