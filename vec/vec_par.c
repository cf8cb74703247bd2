/*
 * vec_par.c - threads for one job
 *
 * THREADS  no state; the caller sees to what the parts share
 *
 * SPDX-License-Identifier: MIT
 */
#include "vec_par.h"

#include <pthread.h>
#include <signal.h>

#include "vec_base.h"
#include "vec_limits.h"

#define STACK_BYTES ((size_t)256 << 10) // a scan needs a few kilobytes

typedef struct job {
    void (*fn)(void *part);
    void *part;
} job;

static void *work(void *arg)
{
    job *j = arg;

    j->fn(j->part);
    return NULL;
}

size_t vec_par_parts(int threads, size_t n, size_t least)
{
    size_t most = threads < VEC_THREADS_MAX ? (size_t)(threads > 1 ? threads : 1) : VEC_THREADS_MAX;

    most = most < n / least ? most : n / least;
    return most > 1 ? most : 1;
}

size_t vec_par_from(size_t n, size_t together, size_t i, size_t parts)
{
    size_t from = (n / together + 1) * i / parts * together;

    return i == parts || from > n ? n : from;
}

void vec_par_run(void (*fn)(void *part), void *parts, size_t size, size_t n)
{
    pthread_t thread[VEC_THREADS_MAX];
    job jobs[VEC_THREADS_MAX];
    sigset_t all, before;
    pthread_attr_t attr;
    size_t made = 1;

    if (n == 1 || pthread_attr_init(&attr) != 0) {
        for (size_t i = 0; i < n; i++)
            fn((char *)parts + i * size);
        return;
    }
    pthread_attr_setstacksize(&attr, STACK_BYTES); // or the usual size, if it is refused
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (; made < n; made++) {
        jobs[made] = (job){fn, (char *)parts + made * size};
        if (pthread_create(&thread[made], &attr, work, &jobs[made]) != 0)
            break;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    fn(parts);
    for (size_t i = made; i < n; i++)
        fn((char *)parts + i * size);
    for (size_t i = 1; i < made; i++)
        pthread_join(thread[i], NULL);
}
