/*
 * vec_par.h - one job in several threads at once
 *
 * Threads are made for a job and end with it: nothing runs between jobs, so that a host may fork,
 * unload the library or count its threads as it likes. Making and ending one costs some 20
 * microseconds here; whoever calls sees to it that a part is worth that.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef VEC_PAR_H
#define VEC_PAR_H

#include <stddef.h>

/* Calls fn for each of n parts, which lie size bytes apart: the first one in the calling thread,
 * the others in threads of their own, which have ended when it returns and take no signals. A part
 * for which there is no thread to be had is done by the calling one. n <= VEC_THREADS_MAX. */
void vec_par_run(void (*fn)(void *part), void *parts, size_t size, size_t n);

/* How many parts of n things to make for so many threads, when each part is to have `least` of
 * them: 1..VEC_THREADS_MAX. */
size_t vec_par_parts(int threads, size_t n, size_t least);
/* Where part i of `parts` begins among n things that stay together in groups of `together`; part
 * `parts` begins at n. */
size_t vec_par_from(size_t n, size_t together, size_t i, size_t parts);

#endif
