/*
 * vec_kern.c - assembles one table a level and chooses the one in use
 *
 * THREADS  vec_init may be called from several threads at once (a host may load the module in
 *          each): the first builds the tables, the others wait for it. Afterwards nothing changes.
 *
 * SPDX-License-Identifier: MIT
 */
#include "vec_kern.h"

#include <stdatomic.h>
#include <string.h>

#include "vec_cpu.h"
#include "vec_plane.h"
#include "vec_pq.h"

#define LEVELS_MAX 3

enum { UNTOUCHED, BUILDING, READY };

static vec_kernels levels[LEVELS_MAX];
static int nlevel;
static atomic_int state = UNTOUCHED;

static void add_level(void (*fill)(vec_kernels *))
{
    if (nlevel)
        levels[nlevel] = levels[nlevel - 1];
    fill(&levels[nlevel]);
    nlevel++;
}

static void build(void)
{
    unsigned have = vec_cpu_features();

    add_level(vec_kern_fill_scalar);
#if defined(__x86_64__)
    if (have & VEC_CPU_AVX2)
        add_level(vec_kern_fill_avx2);
    if (have & VEC_CPU_AVX512)
        add_level(vec_kern_fill_avx512);
#elif defined(__aarch64__)
    if (have & VEC_CPU_NEON)
        add_level(vec_kern_fill_neon);
#endif
    vec_plane_kern_init(have);
    vec_pq_kern_init(have);
}

void vec_init(void)
{
    int was = UNTOUCHED;

    if (atomic_compare_exchange_strong(&state, &was, BUILDING)) {
        build();
        atomic_store(&state, READY);
        return;
    }
    while (atomic_load(&state) != READY)
        ; // a few microseconds, once in the life of a process
}

const vec_kernels *vec_kern(void)
{
    return nlevel ? &levels[nlevel - 1] : NULL;
}

const vec_kernels *vec_kern_level(const char *name)
{
    for (int i = 0; i < nlevel; i++)
        if (strcmp(levels[i].level, name) == 0)
            return &levels[i];
    return NULL;
}
