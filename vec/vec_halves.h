/*
 * vec_halves.h - a plane in two halves: four bits a dimension that are always read, four that
 * seldom are
 *
 * The 8-bit code of a record of vec_plane.c is cut into its upper and its lower half. The coarse
 * record holds the upper halves and what bounds the distance by them alone; the fine record holds
 * the lower halves and the rest of the original record. So the first pass over the rows reads half
 * as much as it would of whole records, and the few rows that it leaves are bounded once more, as
 * tightly as whole records would. The layout of both is in vec_halves.c.
 *
 * THREADS  no state; a prepared query is only read
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef VEC_HALVES_H
#define VEC_HALVES_H

#include "vec_plane.h"

/* Codes that two bytes at the same place of two neighbouring units stand for; a record is padded to
 * a multiple of it. */
#define VEC_HALVES_PAD 32

typedef struct vec_halves_query {
    vec_plane_query q;     /* what the lows kernel reads; no codes */
    size_t bytes;          /* of codes in a record */
    const int8_t *code[2]; /* of lower and of upper nibbles */
    uint32_t sum;          /* of all codes, modulo 2^32 */
} vec_halves_query;

/* The same with 16 bits a dimension, for the rows that 8 leave. */
typedef struct vec_halves_sharp {
    vec_plane_query q;
    size_t bytes;
    const int8_t *hi[2], *lo[2]; /* a code is 256 hi + lo */
} vec_halves_sharp;

/* Bytes of scratch that vec_halves_prepare needs; 0 when dim is beyond VEC_PLANE_DIM_MAX. */
size_t vec_halves_scratch(size_t dim);
/* Prepares a finite query. scratch must outlive q. */
void vec_halves_prepare(int metric, const float *query, float norm, size_t dim, void *scratch,
                        vec_halves_query *q);

/* Lower bounds on the distances of the n <= 64 rows with these coarse records, as the lows kernel
 * gives them; returns the least. */
float vec_halves_coarse(const vec_halves_query *q, const uint8_t *const *coarse, size_t n,
                        float *low);
/* The same, with both halves. */
float vec_halves_fine(const vec_halves_query *q, const uint8_t *const *coarse,
                      const uint8_t *const *fine, size_t n, float *low);

/* As vec_halves_scratch, vec_halves_prepare and vec_halves_fine, for one row at a time. */
size_t vec_halves_sharp_scratch(size_t dim);
void vec_halves_sharpen(int metric, const float *query, float norm, size_t dim, void *scratch,
                        vec_halves_sharp *q);
float vec_halves_sharp_bound(const vec_halves_sharp *q, const uint8_t *coarse, const uint8_t *fine);

#endif
