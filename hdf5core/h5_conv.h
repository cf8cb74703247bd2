/*
 * h5_conv.h - byte order of numbers, and their values
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef H5_CONV_H
#define H5_CONV_H

#include "h5_cur.h"

/* Turns n elements of type t at p from the file's byte order into the machine's, in place. Strings
** stay as they are. */
void h5_conv_native(const h5_type *t, void *p, size_t n);

/* The bits of one number of type t, in the file's byte order at p; integers are extended to 64 bits
** by their sign. */
uint64_t h5_conv_bits(const h5_type *t, const uint8_t *p);

#endif
