/*
 * t_vectors.c - the vectors of t_vectors.h
 *
 * SPDX-License-Identifier: MIT
 */
#include "t_vectors.h"

#include <float.h>
#include <math.h>
#include <string.h>

static float any_finite(t_rng *r)
{
    uint32_t bits;
    float x;

    do {
        bits = (uint32_t)t_rng_next(r);
        memcpy(&x, &bits, sizeof x);
    } while (!isfinite(x));
    return x;
}

static float component(t_rng *r, int kind, size_t i, size_t n)
{
    float x = t_rng_normal(r);

    switch (kind) {
    case T_FLAT:
        return 0.3f;
    case T_SIGNS:
        return t_rng_below(r, 2) ? 1 : -1;
    case T_SPARSE:
        return t_rng_below(r, 8) ? 0 : x;
    case T_STEEP:
        return ldexpf(x, -(int)(40 * i / n));
    case T_TINY:
        return ldexpf(x, -140);
    case T_SMALL:
        return ldexpf(x, -60 + (int)t_rng_below(r, 3));
    case T_LARGE:
        return ldexpf(x, 60 - (int)t_rng_below(r, 3));
    case T_HUGE:
        return ldexpf((float)(t_rng_unit(r) * 2 - 1), 128 - (int)t_rng_below(r, 4));
    case T_BITS:
        return any_finite(r);
    case T_ONE_HOT:
    case T_ZERO:
        return 0;
    default:
        return x;
    }
}

void t_vector(t_rng *r, int kind, float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = component(r, kind, i, n);
    if (n > 0 && kind == T_PEAK)
        x[t_rng_below(r, n)] *= 100;
    if (n > 0 && kind == T_GIANT)
        x[t_rng_below(r, n)] *= 1e6f;
    if (n > 0 && kind == T_ONE_HOT)
        x[t_rng_below(r, n)] = 1 + t_rng_normal(r);
}

void t_vector_like(t_rng *r, const float *x, float *y, size_t n)
{
    static const float factors[] = {1, 1, -1, 2, 0.3f, -1.7f, 1e-3f, 1e3f};
    float factor = factors[t_rng_below(r, 8)];
    float noise = t_rng_below(r, 2) ? ldexpf(1, -(int)t_rng_below(r, 24)) : 0;

    for (size_t i = 0; i < n; i++) {
        y[i] = x[i] * factor * (1 + noise * t_rng_normal(r));
        y[i] = fminf(fmaxf(y[i], -FLT_MAX), FLT_MAX);
    }
    if (n > 0 && t_rng_below(r, 4) == 0)
        y[t_rng_below(r, n)] = t_rng_normal(r);
}
