/*
 * t_levels.h - runs a test program's groups once for every instruction set that can be switched off
 *
 * The library chooses its kernels once in a process. So each level is a child process that sets
 * VEC_DISABLE before the library is first called.
 *
 * THREADS   one thread at a time.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef T_LEVELS_H
#define T_LEVELS_H

/* Under an emulator, long rounds of random tests are divided by this. */
#ifndef T_SHARE
#define T_SHARE 1
#endif

/* Calls run() in a child for each of the lists (of levels to leave out; NULL ends the array), and
 * returns the number of children that did not end with 0. */
int t_levels_run(const char *const *lists, int (*run)(void));

/* Lists that together reach every level of vec there is. */
extern const char *const t_levels_all[];

#endif
