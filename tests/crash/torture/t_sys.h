/*
 * t_sys.h - the system calls of a host and a store, watched: which one kills, fails, cuts power
 *
 * The program that links t_sys.c has its own pwrite, ftruncate, fsync, fdatasync, unlink, rename,
 * open, close and fcntl, which SQLite and the store then call. Calls on files under t_sys.root are
 * counted and each is given a phase (T_PREPARE ..), told from the file, the offset and what came
 * before.
 *
 *     t_sys_watch("/folder/");
 *     t_sys.kill_phase = T_FLIP; t_sys.kill_nth = 2; t_sys.moment = T_AFTER;
 *
 * KILL     the process dies by SIGKILL before, in or after the call. Syncs do nothing: what a dead
 *          process has written lies in the system's cache.
 * FAIL     call number fail_at fails with fail_errno (a write after a part of its bytes when
 *          fail_short is set); with fail_stays all later ones of its kind do too.
 * POWER    with t_power_on all is recorded (t_power.h), and at the chosen call the power goes.
 *
 * The mapped page of the log changes without a call: it is as of the call before or after.
 *
 * THREADS  one.
 * SPDX-License-Identifier: MIT
 */
#ifndef T_SYS_H
#define T_SYS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    T_OTHER,
    T_PREPARE, /* frames into the log, before the host commits */
    T_HOST,    /* the host's own files */
    T_COMMIT,  /* the log, after the host has committed */
    T_FLUSH,   /* what a flush appends to the .h5 */
    T_FLIP,    /* its 48 bytes */
    T_RESTART, /* the log begins anew */
    T_COMPACT, /* the new file of a compact */
    T_RENAME,  /* into its place */
    T_BACKUP,  /* a copy */
    T_PHASES
};
extern const char *const t_phase_name[T_PHASES];

enum { T_BEFORE, T_HALF, T_AFTER };

/* What a call does: a bit each, for fail_kinds. */
enum {
    T_WRITE = 1,
    T_TRUNCATE = 2,
    T_SYNC = 4,
    T_UNLINK = 8,
    T_RENAMES = 16,
    T_OPEN = 32,
    T_READ = 64,
    T_LOCK = 128,
    T_MAP = 256,
    T_OFD = 512, /* locks of the store; with all others they are T_LOCK too */
    T_CHANGES = T_WRITE | T_TRUNCATE | T_SYNC | T_UNLINK | T_RENAMES | T_OPEN
};

typedef struct t_sys_state {
    char root[200];    /* files under it are watched; empty: none */
    long calls;        /* that change a file, so far */
    int phase;         /* of the last one */
    int kill_phase;    /* T_PHASES: any */
    long kill_nth;     /* the how manieth call of that phase; 0: never */
    int moment;        /* T_BEFORE .. */
    uint32_t fraction; /* of a half write: n * fraction / 256 bytes */
    long fail_at;      /* the how manieth call of fail_kinds; 0: none */
    long fail_seen;    /* such calls so far */
    int fail_kinds, fail_errno, fail_short, fail_stays;
    int sync;          /* 1: syncs reach the disk */
    void (*die)(void); /* instead of SIGKILL */
    volatile int
        *phase_mark; /* gets each phase, and is read by who kills from outside; may be NULL */
} t_sys_state;
extern t_sys_state t_sys;

void t_sys_watch(const char *root);
/* A statement begins: what follows is no longer part of the flush or commit before. */
void t_sys_statement(void);
void t_sys_die(void);

/* For t_power.c: the real calls, and what is told of each change before it is made. */
ssize_t t_real_pread(int fd, void *p, size_t n, off_t at);
int t_real_open(const char *path, int flags, int mode);
int t_real_close(int fd);

#endif
