/*
 * vec_plane.h - what a prepared query is, and the two kernels that read records with it
 *
 * A record holds the direction of its row as 8-bit codes; the query is prepared once as codes of up
 * to 16 bits. The dots kernel gives the exact integer product of the two, the lows kernel turns it
 * into a lower bound on the distance that vec_distance will compute. Why the bound holds is proven
 * in vec_plane.c, where the record is laid out.
 *
 * Kernel contract as in vec.h: cannot fail, no allocation, any alignment, any n. On top of it, here
 * every level gives the same bits: dots is exact, lows rounds after each step and fuses none.
 *
 * THREADS  the tables are written once by vec_init, then constant; a prepared query is only read
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef VEC_PLANE_H
#define VEC_PLANE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Record: 16 bytes of header, then the codes. */
#define VEC_PLANE_NORM    0
#define VEC_PLANE_INVERSE 4
#define VEC_PLANE_COS     8
#define VEC_PLANE_SIN     12
#define VEC_PLANE_CODES   16

/* Codes are padded to a multiple of this in a record ... */
#define VEC_PLANE_PAD       16
/* ... and of this in a prepared query, so that the widest kernel reads it without a mask. */
#define VEC_PLANE_QUERY_PAD 64

/* Query codes have at most 16 bits with their sign, and fall into two signed bytes. So their error
 * is a two-hundredth of the row's. */
#define VEC_PLANE_QUERY_MAX 32639

/* Roundings that the lows kernel answers for; derived in vec_plane.c. */
#define VEC_PLANE_ROOT 0x1p-19f /* added below the root */
#define VEC_PLANE_FLAT 0x1p-18f /* L2, times the sum of the squared norms */

typedef struct vec_plane_query {
    int metric;
    size_t dim;
    size_t codes;    /* of a record: dim, padded */
    int16_t *code;   /* q, zero from dim to a multiple of VEC_PLANE_QUERY_PAD, as are hi and lo */
    int8_t *hi, *lo; /* the same in two halves: q = 256 * hi + lo */
    uint32_t bias;   /* 128 * sum of q, modulo 2^32 */
    float inverse;   /* 1 / |q|; 0 when q is zero */
    float slack;     /* added to the bound on the cosine */
    float norm;      /* of the query */
    float least;     /* the formula holds for row norms from least ... */
    float most;      /* ... to most; outside nothing is known */
    float at_zero;   /* the bound of a zero vector */
    float shrink;    /* L2: factor a little below 1 */
} vec_plane_query;

/* out[i] = sum of (code[j] - 128) * q[j] over all j, for the records at rows[0..n-1]. */
typedef void (*vec_plane_dots_fn)(const vec_plane_query *q, const uint8_t *const *rows, size_t n,
                                  int32_t *out);
/* out[i] = sum of (lower nibble of code byte j) * a[j] + (upper nibble) * b[j] for j < bytes, a
 * multiple of 16, of the records at rows[0..n-1]. a and b hold -128..127 and are 0 from bytes to a
 * multiple of VEC_PLANE_QUERY_PAD. */
typedef void (*vec_plane_nibbles_fn)(const int8_t *a, const int8_t *b, size_t bytes,
                                     const uint8_t *const *rows, size_t n, int32_t *out);
/* low[i] = a number that no distance of that row undercuts, +infinity for a row without a vector,
 * never NaN. Returns the least of them, +infinity for n = 0. */
typedef float (*vec_plane_lows_fn)(const vec_plane_query *q, const uint8_t *const *rows,
                                   const int32_t *dots, size_t n, float *low);

/* out[i * n + k] = sum of (code[j] - 128) * q[i * stride + j], for four queries of signed bytes and
 * the records at rows[0..n-1]. q is 0 from codes to a multiple of VEC_PLANE_QUERY_PAD, stride one.
 */
enum { VEC_PLANE_TOGETHER = 4 };
typedef void (*vec_plane_products_fn)(const int8_t *q, size_t stride, size_t codes,
                                      const uint8_t *const *rows, size_t n, int32_t *out);

typedef struct vec_plane_kernels {
    const char *level; /* "scalar", "avx2", "avx512", "avx512vnni", "neon", "dotprod" */
    vec_plane_dots_fn dots;
    vec_plane_lows_fn lows;
    vec_plane_nibbles_fn nibbles;   /* exact, as dots is */
    vec_plane_products_fn products; /* likewise; NULL where four dots are as fast */
} vec_plane_kernels;

/* Called by vec_init: builds one table a level. features: bits of vec_cpu.h. */
void vec_plane_kern_init(unsigned features);
const vec_plane_kernels *vec_plane_kern(void);                   /* the table in use */
const vec_plane_kernels *vec_plane_kern_level(const char *name); /* NULL: not here */
/* Names of the levels there are, for tests: 0 is the first; NULL past the last. */
const char *vec_plane_kern_name(size_t i);

int vec_plane_has_vector(const uint8_t *record);
/* Bytes of scratch that vec_plane_prepare needs; 0 when dim is beyond VEC_PLANE_DIM_MAX. */
size_t vec_plane_scratch(size_t dim);
/* Prepares a finite query. scratch must outlive q. */
void vec_plane_prepare(int metric, const float *query, float norm, size_t dim, void *scratch,
                       vec_plane_query *q);

/* ---- what vec_halves.c makes its records and queries with */

/* Sums over a vector x and its codes c. */
typedef struct vec_plane_sums {
    double xx, xc, cc;
} vec_plane_sums;

/* Four lanes of a sum as two of the compiler's vectors: what the same loop over lanes gives, to the
 * bit, since each lane does the same additions in the same order. */
typedef double vec_d2 __attribute__((vector_size(16)));
typedef float vec_f2 __attribute__((vector_size(8)));
typedef int32_t vec_i4 __attribute__((vector_size(16)));
#define VEC_LANES 4

/* What makes the largest component `most`; 0 when x is zero or not finite. */
double vec_plane_scale(const float *x, size_t dim, int most);
/* The nearest integer of a number below 2^31 in size, ties to even: added to 1.5 * 2^52, it is what
 * the lowest bits of the sum's fraction say. One addition, no library, the same everywhere. */
static inline int32_t vec_plane_nearest(double x)
{
    double sum = x + 0x1.8p52;
    uint64_t bits;

    memcpy(&bits, &sum, sizeof bits);
    return (int32_t)(uint32_t)bits;
}
/* Codes x times scale, rounded. */
vec_plane_sums vec_plane_query_codes(const float *x, size_t dim, double scale, int16_t *code);
/* Has the record codes, so that its angle says something? */
int vec_plane_has_codes(const uint8_t *record);
/* Puts inverse, cos and sin. */
void vec_plane_put_angle(const vec_plane_sums *s, size_t dim, uint8_t *record);
/* The angle between a query and its codes, and 1 / |c|. */
double vec_plane_turn(const vec_plane_sums *s, size_t dim, float *inverse);
/* All of a query but its codes and their inverse. */
void vec_plane_set(int metric, float norm, size_t dim, double turn, vec_plane_query *q);

#endif
