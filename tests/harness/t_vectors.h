/*
 * t_vectors.h - vectors that arithmetic does not like, and some that it does
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef T_VECTORS_H
#define T_VECTORS_H

#include "t_rng.h"

#include <stddef.h>

enum {
    T_NORMAL,  /* independent normal components */
    T_FLAT,    /* all components alike */
    T_SIGNS,   /* 1 and -1 */
    T_SPARSE,  /* few components that are not zero */
    T_ONE_HOT, /* one */
    T_PEAK,    /* one a hundred times as large as the others */
    T_GIANT,   /* one a million times as large as the others */
    T_STEEP,   /* sizes fall from the first to the last over 2^40 */
    T_TINY,    /* subnormal numbers */
    T_SMALL,   /* near 2^-60, where products of two leave f32 */
    T_LARGE,   /* near 2^60 */
    T_HUGE,    /* near the largest float */
    T_BITS,    /* any finite bit pattern */
    T_ZERO,    /* all zero */
    T_KINDS
};

/* Fills x with n finite values of a kind. */
void t_vector(t_rng *r, int kind, float *x, size_t n);

/* Fills y with something near x in direction: x itself, turned round, scaled, a little off, or with
 * one component changed. Stays finite. */
void t_vector_like(t_rng *r, const float *x, float *y, size_t n);

#endif
