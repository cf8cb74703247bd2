/*
 * t_rng.c - the generator of t_rng.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "t_rng.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

t_rng t_rng_start(uint64_t seed)
{
    const char *given = getenv("T_SEED");
    if (given != NULL) {
        seed = strtoull(given, NULL, 10);
    }
    printf("# seed %" PRIu64 "\n", seed);
    return (t_rng){seed};
}

uint64_t t_rng_next(t_rng *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t t_rng_below(t_rng *r, uint64_t n)
{
    // the bias of the remainder is below 2^-32 for the sizes a test asks for
    return t_rng_next(r) % n;
}

double t_rng_unit(t_rng *r)
{
    return (double)(t_rng_next(r) >> 11) * 0x1p-53;
}

float t_rng_normal(t_rng *r)
{
    // the sum of twelve uniform numbers has variance 1; its cut tails do not matter to the tests
    double sum = -6;
    for (int i = 0; i < 12; i++) {
        sum += t_rng_unit(r);
    }
    return (float)sum;
}

void t_rng_fill(t_rng *r, void *p, uint64_t n)
{
    unsigned char *out = p;
    for (uint64_t i = 0; i < n; i++) {
        out[i] = (unsigned char)t_rng_next(r);
    }
}
