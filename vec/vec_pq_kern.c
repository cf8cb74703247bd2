/*
 * vec_pq_kern.c - one table of the 4-bit kernel a level, its definition in plain C, and the choice
 *
 * THREADS  vec_init calls vec_pq_kern_init once; afterwards nothing changes
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "vec_cpu.h"
#include "vec_pq.h"

#define LEVELS_MAX 3

static vec_pq_kernels levels[LEVELS_MAX];
static size_t nlevel;

static void sums_scalar(const uint8_t *table, size_t pairs, const uint8_t *block, uint32_t *out)
{
    memset(out, 0, VEC_PQ_BLOCK * sizeof *out);
    for (size_t p = 0; p < pairs; p++) {
        const uint8_t *t = table + 16 * p, *c = block + 16 * p;

        for (int j = 0; j < 16; j++) {
            out[j] += t[c[j] & 15];
            out[j + 16] += t[c[j] >> 4];
        }
    }
}

static void fill_scalar(vec_pq_kernels *k)
{
    *k = (vec_pq_kernels){"scalar", sums_scalar};
}

static void add_level(void (*fill)(vec_pq_kernels *))
{
    if (nlevel)
        levels[nlevel] = levels[nlevel - 1];
    fill(&levels[nlevel]);
    nlevel++;
}

void vec_pq_kern_init(unsigned features)
{
    add_level(fill_scalar);
#if defined(__x86_64__)
    if (features & VEC_CPU_AVX2)
        add_level(vec_pq_fill_avx2);
    if (features & VEC_CPU_AVX512)
        add_level(vec_pq_fill_avx512);
#elif defined(__aarch64__)
    if (features & VEC_CPU_NEON)
        add_level(vec_pq_fill_neon);
#else
    (void)features;
#endif
}

const vec_pq_kernels *vec_pq_kern(void)
{
    return nlevel ? &levels[nlevel - 1] : NULL;
}

const vec_pq_kernels *vec_pq_kern_level(const char *name)
{
    for (size_t i = 0; i < nlevel; i++)
        if (strcmp(levels[i].level, name) == 0)
            return &levels[i];
    return NULL;
}
