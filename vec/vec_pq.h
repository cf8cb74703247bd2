/*
 * vec_pq.h - product quantisation with 4-bit codes, and the kernel that adds up a query's table
 *
 * A vector is cut into pairs of components; each pair is replaced by the nearest of sixteen points
 * of its own, trained on a sample. A query is turned into a table of sixteen bytes a pair, so that
 * an estimate of its product with a vector is a sum of table entries, one a pair: sixteen of them
 * are looked up by one shuffle within registers.
 *
 * BOOK      per pair 32 floats: sixteen first components, then sixteen second ones. Pairs are
 *           padded with zero points to a multiple of VEC_PQ_STEP.
 * BLOCK     VEC_PQ_BLOCK rows. For each pair sixteen bytes: byte j holds the code of row j in its
 *           low half and that of row j + 16 in its high half. vec_pq_block_bytes in all.
 * TABLE     offset + step * (sum of entries) is the estimate; entries are rounded, so it is off by
 *           at most half a step a pair.
 *
 * Kernel contract as in vec.h; sums are exact, so every level gives the same bits.
 *
 * THREADS   the tables of kernels are written once by vec_init, then constant
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef VEC_PQ_H
#define VEC_PQ_H

#include <stddef.h>
#include <stdint.h>

#define VEC_PQ_POINTS 16
#define VEC_PQ_BLOCK  32
#define VEC_PQ_STEP   4 /* pairs that the widest kernel takes at once */

size_t vec_pq_pairs(size_t dim); /* padded */
size_t vec_pq_block_bytes(size_t dim);
size_t vec_pq_book_floats(size_t dim);

/* Trains a book on n vectors of dim components that lie one behind the other, in so many threads
 * (the same book for any). n may be anything above 0. VEC_OK or VEC_NOMEM. */
int vec_pq_train(const float *x, size_t n, size_t dim, int threads, float *book);
/* One code a pair, vec_pq_pairs bytes. */
void vec_pq_encode(const float *book, size_t dim, const float *x, uint8_t *codes);
/* Puts a row's codes at a place 0..31 of a block whose bits there are 0. */
void vec_pq_put(uint8_t *block, size_t pairs, unsigned place, const uint8_t *codes);

/* table has 16 bytes a pair. The estimate is of factor * (q . x). */
void vec_pq_table(const float *book, size_t dim, const float *q, float factor, uint8_t *table,
                  float *offset, float *step);

/* out[i] = sum over all pairs of table[16 * pair + code of row i], for the block's 32 rows. pairs
 * is a multiple of VEC_PQ_STEP. */
typedef void (*vec_pq_sums_fn)(const uint8_t *table, size_t pairs, const uint8_t *block,
                               uint32_t *out);
typedef struct vec_pq_kernels {
    const char *level; /* "scalar", "avx2", "avx512", "neon" */
    vec_pq_sums_fn sums;
} vec_pq_kernels;

void vec_pq_kern_init(unsigned features); /* called by vec_init; bits of vec_cpu.h */
const vec_pq_kernels *vec_pq_kern(void);
const vec_pq_kernels *vec_pq_kern_level(const char *name); /* NULL: not here */

#if defined(__x86_64__)
void vec_pq_fill_avx2(vec_pq_kernels *k);
void vec_pq_fill_avx512(vec_pq_kernels *k);
#elif defined(__aarch64__)
void vec_pq_fill_neon(vec_pq_kernels *k);
#endif

#endif
