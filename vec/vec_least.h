/*
 * vec_least.h - the place of the least of many floats, four lanes at a time
 *
 * One running least is a chain in which each comparison waits for the one before. Lanes do not, and
 * compilers make registers of them on every processor.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef VEC_LEAST_H
#define VEC_LEAST_H

#include <math.h>
#include <stdint.h>
#include <string.h>

typedef float vec_f4 __attribute__((vector_size(16)));
typedef int32_t vec_i4 __attribute__((vector_size(16)));

typedef struct vec_least {
    vec_f4 value;
    vec_i4 at, next; /* the places of value, and of the four that come next */
} vec_least;

static inline vec_f4 vec_f4_all(float x)
{
    return (vec_f4){x, x, x, x};
}

static inline vec_f4 vec_f4_load(const float *p)
{
    vec_f4 v;

    memcpy(&v, p, sizeof v);
    return v;
}

static inline vec_least vec_least_start(void)
{
    return (vec_least){vec_f4_all(INFINITY), {0, 0, 0, 0}, {0, 1, 2, 3}};
}

/* Takes the next four; no NaN. */
static inline void vec_least_take(vec_least *l, vec_f4 v)
{
    vec_i4 less = v < l->value;

    l->value = (vec_f4)((less & (vec_i4)v) | (~less & (vec_i4)l->value));
    l->at = (less & l->next) | (~less & l->at);
    l->next += 4;
}

/* The place of the least, and *value. The first of equals. */
static inline uint32_t vec_least_end(const vec_least *l, float *value)
{
    int best = 0;

    for (int k = 1; k < 4; k++)
        if (l->value[k] < l->value[best] ||
            (l->value[k] == l->value[best] && l->at[k] < l->at[best]))
            best = k;
    *value = l->value[best];
    return (uint32_t)l->at[best];
}

#endif
