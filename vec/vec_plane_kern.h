/*
 * vec_plane_kern.h - how the tables of the plane kernels are put together
 *
 * As with the f32 kernels (vec_kern.h): one table a level, each a copy of the level below whose
 * file overwrites the cells it has something better for.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef VEC_PLANE_KERN_H
#define VEC_PLANE_KERN_H

#include "vec.h"
#include "vec_plane.h"

void vec_plane_fill_scalar(vec_plane_kernels *k);
#if defined(__x86_64__)
void vec_plane_fill_avx2(vec_plane_kernels *k);
void vec_plane_fill_avx512(vec_plane_kernels *k);
void vec_plane_fill_avx512vnni(vec_plane_kernels *k);
#elif defined(__aarch64__)
void vec_plane_fill_neon(vec_plane_kernels *k);
void vec_plane_fill_dotprod(vec_plane_kernels *k);
#endif

/* out[0..want-1] = the n rows, the last one repeated: so a pass that takes `want` rows at once can
 * take fewer. 0 < n <= want. */
static inline void vec_plane_fill_up(const uint8_t *const *rows, size_t n, const uint8_t **out,
                                     size_t want)
{
    for (size_t i = 0; i < want; i++)
        out[i] = rows[i < n ? i : n - 1];
}

#endif
