/*
 * vec_plane_kern.c - assembles one table of plane kernels a level and chooses the one in use
 *
 * THREADS  vec_init calls vec_plane_kern_init once; afterwards nothing changes
 *
 * SPDX-License-Identifier: MIT
 */
#include "vec_plane_kern.h"

#include <string.h>

#include "vec_cpu.h"

#define LEVELS_MAX 4

static vec_plane_kernels levels[LEVELS_MAX];
static size_t nlevel;

static void add_level(void (*fill)(vec_plane_kernels *))
{
    if (nlevel)
        levels[nlevel] = levels[nlevel - 1];
    fill(&levels[nlevel]);
    nlevel++;
}

void vec_plane_kern_init(unsigned features)
{
    add_level(vec_plane_fill_scalar);
#if defined(__x86_64__)
    if (features & VEC_CPU_AVX2)
        add_level(vec_plane_fill_avx2);
    if (features & VEC_CPU_AVX512)
        add_level(vec_plane_fill_avx512);
    if (features & VEC_CPU_VNNI)
        add_level(vec_plane_fill_avx512vnni);
#elif defined(__aarch64__)
    if (features & VEC_CPU_NEON)
        add_level(vec_plane_fill_neon);
    if (features & VEC_CPU_DOTPROD)
        add_level(vec_plane_fill_dotprod);
#else
    (void)features;
#endif
}

const vec_plane_kernels *vec_plane_kern(void)
{
    return nlevel ? &levels[nlevel - 1] : NULL;
}

const char *vec_plane_kern_name(size_t i)
{
    return i < nlevel ? levels[i].level : NULL;
}

const vec_plane_kernels *vec_plane_kern_level(const char *name)
{
    for (size_t i = 0; i < nlevel; i++)
        if (strcmp(levels[i].level, name) == 0)
            return &levels[i];
    return NULL;
}
