/*
 * t_run.h - what the parts of the program torture share: its arguments, folders, fates of processes
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef T_RUN_H
#define T_RUN_H

#include "t_sys.h"
#include "t_world.h"

typedef struct t_run {
    long lives; /* how many; of `fault`: 0 all */
    uint64_t seed;
    int drop;         /* 1: now and then a transaction drops the table it has written to */
    int alone;        /* 1: nobody beside the one who dies */
    const char *skip; /* failures whose name has this word are left out; NULL */
    const char *only; /* a word that narrows: a journal mode, a kind of failure; NULL */
    char folder[200]; /* made, ends in '/'; removed at the end when all was well */
    t_rng rng;
    t_shared *shared;
} t_run;

/* The parts: 0, or 1 with the reason printed. */
int t_kills(t_run *run);
int t_power_cuts(t_run *run);
int t_faults(t_run *run);

/* A fresh folder in run's; out has room for 200. */
void t_run_folder(t_run *run, long number, char *out);
void t_run_remove(const char *folder);
/* A host and options of a store by chance. careful: 1 so that nothing may be lost with the power, 0
** so that it may, -1 anything. */
t_spec t_run_spec(t_run *run, int careful);
const char *t_run_spec_text(const t_spec *spec, char *out, size_t n);
/* Waits; the exit code, or minus the signal. */
int t_run_wait(int pid);

#endif
