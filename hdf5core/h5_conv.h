/*
 * h5_conv.h - byte order of numbers, their values, and values of one type as those of another
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

/* 1 when values of both types have the same bytes and the same meaning. */
int h5_type_same(const h5_type *a, const h5_type *b);
/* 1 when values of the type hold places in the file: variable length, references. */
int h5_type_points(const h5_type *t);
/* n values of a type as values of another, both in their own byte order. H5_UNSUPPORTED when they
** are neither the same nor made of numbers, fixed strings, enums, compounds and arrays alike. */
int h5_retype(const h5_type *from, const void *in, const h5_type *to, void *out, uint64_t n,
              h5_error *err);

#endif
