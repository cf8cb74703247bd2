/*
 * vec_probe.h - what tuning, tests and benchmarks may know of a search through lists
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef VEC_PROBE_H
#define VEC_PROBE_H

#include "vec.h"

/* Places of the blocks that were scanned so far. */
uint64_t vec_probe_scanned(const vec_probe *p);
/* Vectors that were read so far. */
uint64_t vec_probe_looked(const vec_probe *p);

#endif
