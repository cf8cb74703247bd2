/*
 * torture.c - a program: deaths, failures and power cuts at the calls of a host and its store
 *
 *     torture kill lives=20000 [seed=N] [only=wal] [alone=1] [drop=1] [dir=/tmp]   processes that
 *     die torture power lives=5000                                     disks that lose their power
 *     torture fault [only=EIO] [skip=lock] [lives=N]   calls and allocations
 *     that fail
 *
 * Prints what was done, as lines `report: ...`. Ends with 0, or with 1 and the first thing that was
 * wrong; the folder then stays.
 *
 * SPDX-License-Identifier: MIT
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "t_run.h"
#include "vec.h"

int sqlite3_h5mem_init(sqlite3 *db, char **err, const void *api);

void t_run_remove(const char *folder)
{
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    if (system(command) != 0) {
        fprintf(stderr, "cannot remove %s\n", folder);
        exit(2);
    }
}

void t_run_folder(t_run *run, long number, char *out)
{
    snprintf(out, 200, "%.150s%ld/", run->folder, number);
    if (mkdir(out, 0700) != 0) {
        fprintf(stderr, "cannot make %s: %s\n", out, strerror(errno));
        exit(2);
    }
}

int t_run_wait(int pid)
{
    int status;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

t_spec t_run_spec(t_run *run, int careful)
{
    static const char *const journal[] = {"wal", "wal", "delete", "truncate", "persist", NULL};
    static const char *const any[] = {", autoflush=4096",
                                      ", autoflush=16384, compression='zstd:1', autocompact=1",
                                      ", autoflush=65536, autocompact=1",
                                      ", autoflush=16384, compression='deflate:1', synchronous=off",
                                      ", autoflush=4096, synchronous=off, autocompact=1"};
    // Without syncs neither SQLite nor the store promises whole files.
    static const char *const loose[] = {
        ", autoflush=4096, synchronous=normal",
        ", autoflush=16384, compression='zstd:1', synchronous=normal",
        ", autoflush=65536, synchronous=normal", ", autoflush=16384, synchronous=full"};
    static const char *const full[] = {", autoflush=4096, synchronous=full, autocompact=1",
                                       ", autoflush=16384, compression='zstd:1', synchronous=full",
                                       ", autoflush=65536, synchronous=full"};
    static const char *const levels[] = {"OFF", "NORMAL", "FULL"};
    t_spec s;
    int safe = careful < 0 ? t_rng_below(&run->rng, 3) == 0 : careful;
    do {
        s.journal = journal[t_rng_below(&run->rng, careful < 0 ? 6 : 5)];
    } while (run->only && (!s.journal || strcmp(run->only, s.journal) != 0) &&
             (s.journal || strcmp(run->only, "memory") != 0));
    s.options = safe           ? full[t_rng_below(&run->rng, 3)]
                : careful == 0 ? loose[t_rng_below(&run->rng, 4)]
                               : any[t_rng_below(&run->rng, 5)];
    // A rollback journal that is deleted is gone for sure only with EXTRA.
    s.synchronous = careful == 1 ? s.journal && !strcmp(s.journal, "wal") ? "FULL" : "EXTRA"
                                 : levels[t_rng_below(&run->rng, 3)];
    if (careful == 0) {
        // With less SQLite does not promise a whole database: a journal that is used again may be a
        // mixture of two.
        s.synchronous = strcmp(s.journal, "wal") != 0 ? "FULL" : "NORMAL";
    }
    return s;
}

const char *t_run_spec_text(const t_spec *spec, char *out, size_t n)
{
    snprintf(out, n, "host %s %s, store%s", spec->journal ? spec->journal : "memory",
             spec->synchronous, spec->options);
    return out;
}

int main(int argc, char **argv)
{
    t_run run = {.lives = 0, .seed = 1};
    const char *dir = getenv("TMPDIR");
    int rc;
    for (int i = 2; i < argc; i++) {
        if (!strncmp(argv[i], "lives=", 6)) {
            run.lives = strtol(argv[i] + 6, NULL, 10);
        } else if (!strncmp(argv[i], "seed=", 5)) {
            run.seed = strtoull(argv[i] + 5, NULL, 10);
        } else if (!strncmp(argv[i], "only=", 5)) {
            run.only = argv[i] + 5;
        } else if (!strncmp(argv[i], "skip=", 5)) {
            run.skip = argv[i] + 5;
        } else if (!strncmp(argv[i], "drop=", 5)) {
            run.drop = argv[i][5] == '1';
        } else if (!strncmp(argv[i], "alone=", 6)) {
            run.alone = argv[i][6] == '1';
        } else if (!strncmp(argv[i], "dir=", 4)) {
            dir = argv[i] + 4;
        } else {
            fprintf(stderr, "what is %s?\n", argv[i]);
            return 2;
        }
    }
    snprintf(run.folder, sizeof run.folder, "%.150s/torture.XXXXXX", dir ? dir : "/tmp");
    if (argc < 2 || !mkdtemp(run.folder)) {
        fprintf(stderr, "torture kill|power|fault lives=N seed=N only=WORD dir=FOLDER\n");
        return 2;
    }
    strcat(run.folder, "/");
    run.rng.state = run.seed;
    run.shared = t_shared_new();
    vec_init();
    sqlite3_auto_extension((void (*)(void))sqlite3_h5mem_init);
    setvbuf(stdout, NULL, _IOLBF, 0);
    rc = !strcmp(argv[1], "kill")    ? t_kills(&run)
         : !strcmp(argv[1], "power") ? t_power_cuts(&run)
                                     : t_faults(&run);
    if (rc == 0) {
        t_run_remove(run.folder);
    } else {
        printf("seed=%llu, what was left is in %s\n", (unsigned long long)run.seed, run.folder);
    }
    return rc;
}
