/*
 * t_rng.h - seeded random numbers for property tests (splitmix64).
 *
 * The seed comes from the environment variable T_SEED if set, else from the test, so that a run
 * repeats. A test whose first act is t_rng_start shows it when it fails: the line `# seed N` goes
 * into the program's output, which the runner prints with a failure.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef T_RNG_H
#define T_RNG_H

#include <stdint.h>

typedef struct t_rng {
    uint64_t state;
} t_rng;

t_rng t_rng_start(uint64_t seed);               /* prints the seed in force */
uint64_t t_rng_next(t_rng *r);                  /* any 64 bits */
uint64_t t_rng_below(t_rng *r, uint64_t n);     /* 0 to n - 1; n > 0 */
double t_rng_unit(t_rng *r);                    /* 0 <= x < 1 */
float t_rng_normal(t_rng *r);                   /* mean 0, variance 1 */
void t_rng_fill(t_rng *r, void *p, uint64_t n); /* n random bytes */

#endif
