/*
 * t_guard.h - buffers that end at an unmapped page: one byte too far dies in any build.
 *
 * OWNERSHIP   t_guard_new hands over, t_guard_free takes back.
 * ERRORS      a request that cannot be met ends the test program.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef T_GUARD_H
#define T_GUARD_H

#include <stddef.h>

typedef struct t_guard {
    unsigned char *p; /* n bytes; p[n] is not mapped */
    size_t n;
    void *map; /* what t_guard_free unmaps */
    size_t map_n;
} t_guard;

/* n zeroed bytes that end at the unmapped page; n may be 0. */
t_guard t_guard_new(size_t n);

/* The same, filled with a copy of the n bytes at src. */
t_guard t_guard_copy(const void *src, size_t n);

void t_guard_free(t_guard *g);

#endif
