/*
 * vec_near.h - what tests and benchmarks may know of a search through planes
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef VEC_NEAR_H
#define VEC_NEAR_H

#include "vec.h"

/* Stored vectors that were fetched so far. */
size_t vec_near_looked(const vec_near *s);

#endif
