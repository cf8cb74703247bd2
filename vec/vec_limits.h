/*
 * vec_limits.h - every bound of vec that a caller, a text or a byte image can run into
 *
 * Exceeding one is VEC_LIMIT, except where the line says otherwise. VEC_TOKEN_MAX is in vec.h, for
 * producers need it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef VEC_LIMITS_H
#define VEC_LIMITS_H

/* Rows of one text index or run: they are numbered by 32-bit ordinals. */
#define VEC_RUN_ROWS_MAX     UINT32_MAX
/* Largest row number minus smallest in one text index or run: row numbers are kept as 32-bit
 * offsets to the first. */
#define VEC_RUN_SPAN_MAX     (UINT32_MAX - 1u)
/* Bytes of one run's image: its offsets have 32 bits. */
#define VEC_RUN_BYTES_MAX    UINT32_MAX
/* Bytes of one row's token stream; SQLite's own limit for a text is 1e9. Keeps lengths and counts
 * in 32 bits. */
#define VEC_STREAM_BYTES_MAX 0x7fffffffu
/* Postings a block: a power of two; 128 as in Lucene. A decoded block (1 KiB) stays in the
 * first-level cache. */
#define VEC_BLOCK_POSTINGS   128
/* Distinct terms of one query: each holds a cursor of about 1 KiB while a source is searched. */
#define VEC_QUERY_TERMS_MAX  65536

/* Dimensions of a search over planes: the product of 8-bit row codes and query codes must fit 32
 * bits, and query codes should not get shorter than the rows'. */
#define VEC_PLANE_DIM_MAX 65536

/* Threads of one search; more than so many read memory no faster. Larger numbers mean this. */
#define VEC_THREADS_MAX 64

#endif
