/*
 * vec_flat.c - distances, and the exact scan that every other search is measured by
 *
 * The scan hands whole stretches of selected rows to the rows kernel and turns its sums into
 * distances in double, with the same function that vec_distance uses, so that both give the same
 * bits. Where a filter leaves gaps, each stretch between two gaps is one call.
 *
 * RANGE    By Cauchy and Schwarz no partial sum of a dot product exceeds |a||b|, so f32 cannot
 *          overflow while |a||b| is below 2^126; and what underflow takes away is at most 2^-149 a
 *          product, nothing beside the rounding while |a||b| is above 2^-100. Outside, and for the
 *          metrics without norms where the sum itself is not finite or below 2^-100, the sum is
 *          taken again in double, where squares of floats always fit. That is rare and costs some
 *          hundred nanoseconds a row.
 *
 * ERRORS   VEC_MISUSE (unknown metric, no dimension, cosine without norms), VEC_ABORT
 * THREADS  no state
 *
 * SPDX-License-Identifier: MIT
 */
#include <float.h>
#include <math.h>

#include "vec_base.h"
#include "vec_bits.h"
#include "vec_kern.h"

#define BLOCK_ROWS 64    // rows a call of the kernel: their sums wait on the stack
#define STOP_BYTES 65536 // vectors between two questions whether to stop

#define SAFE_MIN 0x1p-100
#define SAFE_MAX 0x1p126

static double sum_dot(const float *a, const float *b, size_t dim)
{
    double s = 0;

    for (size_t i = 0; i < dim; i++)
        s += (double)a[i] * (double)b[i];
    return s;
}

static double sum_l2sq(const float *a, const float *b, size_t dim)
{
    double s = 0;

    for (size_t i = 0; i < dim; i++) {
        double d = (double)a[i] - (double)b[i];

        s += d * d;
    }
    return s;
}

/* Cosine distance where f32 does not do, zero vectors among them. */
static __attribute__((noinline)) double cosine_wide(const float *a, float norm_a, const float *b,
                                                    float norm_b, size_t dim)
{
    double d;

    if (isnan(norm_a) || isnan(norm_b))
        return NAN;
    if (norm_a == 0 || norm_b == 0)
        return 1;
    d = 1 - sum_dot(a, b, dim) / (sqrt(sum_dot(a, a, dim)) * sqrt(sum_dot(b, b, dim)));
    return d < 0 ? 0 : d > 2 ? 2 : d;
}

VEC_INLINE double cosine(float s, const float *a, float norm_a, const float *b, float norm_b,
                         size_t dim)
{
    double norms = (double)norm_a * (double)norm_b, d;

    // Below FLT_MIN a length is a float of few digits.
    if (!(norms >= SAFE_MIN && norms <= SAFE_MAX && norm_a >= FLT_MIN && norm_b >= FLT_MIN))
        return cosine_wide(a, norm_a, b, norm_b, dim);
    d = 1 - (double)s / norms;
    return d < 0 ? 0 : d > 2 ? 2 : d;
}

VEC_INLINE int in_range(float s)
{
    return fabsf(s) >= (float)SAFE_MIN && fabsf(s) <= (float)SAFE_MAX;
}

VEC_INLINE double l2(float s, const float *a, const float *b, size_t dim)
{
    return sqrt(in_range(s) ? (double)s : sum_l2sq(a, b, dim));
}

VEC_INLINE double ip(float s, const float *a, const float *b, size_t dim)
{
    return 0.0 - (in_range(s) ? (double)s : sum_dot(a, b, dim)); // never -0
}

double vec_distance(int metric, const float *a, float norm_a, const float *b, float norm_b,
                    size_t dim)
{
    const vec_kernels *k = vec_kern();

    switch (metric) {
    case VEC_COSINE:
        return cosine(k->dot_f32(a, b, dim), a, norm_a, b, norm_b, dim);
    case VEC_L2:
        return l2(k->l2sq_f32(a, b, dim), a, b, dim);
    case VEC_IP:
        return ip(k->dot_f32(a, b, dim), a, b, dim);
    default:
        return NAN;
    }
}

typedef struct scan {
    const vec_kernels *k;
    int metric;
    const float *q;
    float norm_q;
    size_t dim;
} scan;

/* Rows first..first+n-1 of the extent, all selected; n <= BLOCK_ROWS. */
static void scan_block(const scan *s, const vec_extent *e, uint64_t first, size_t n, double *out)
{
    const float *rows = e->rows + first * s->dim;
    const float *norms = e->norms ? e->norms + first : NULL;
    float sum[BLOCK_ROWS];

    (s->metric == VEC_L2 ? s->k->l2sq_rows_f32 : s->k->dot_rows_f32)(s->q, rows, s->dim, n, sum);
    switch (s->metric) {
    case VEC_COSINE:
        for (size_t i = 0; i < n; i++)
            out[i] = cosine(sum[i], s->q, s->norm_q, rows + i * s->dim, norms[i], s->dim);
        return;
    case VEC_L2:
        for (size_t i = 0; i < n; i++)
            out[i] = l2(sum[i], s->q, rows + i * s->dim, s->dim);
        break;
    default:
        for (size_t i = 0; i < n; i++)
            out[i] = ip(sum[i], s->q, rows + i * s->dim, s->dim);
    }
    if (norms)
        for (size_t i = 0; i < n; i++)
            if (isnan(norms[i]))
                out[i] = NAN;
}

/* The rows of one group of up to BLOCK_ROWS whose bits are set in mask. */
static void scan_group(const scan *s, const vec_extent *e, uint64_t first, uint64_t mask,
                       double *out)
{
    while (mask) {
        unsigned skip = vec_bits_lowest(mask);
        unsigned n = ~(mask >> skip) ? vec_bits_lowest(~(mask >> skip)) : 64;

        if (e->rows)
            scan_block(s, e, first + skip, n, out + skip);
        else
            for (unsigned i = 0; i < n; i++)
                out[skip + i] = NAN;
        mask = n == 64 ? 0 : mask & ~(vec_bits_low(n) << skip);
    }
}

int vec_scan(int metric, const float *query, size_t dim, const vec_extent *ext, size_t next,
             const uint64_t *filter, double *out, int (*stop)(void *), void *stop_ctx)
{
    scan s = {vec_kern(), metric, query, 0, dim};
    size_t scanned = 0;

    if ((metric != VEC_COSINE && metric != VEC_L2 && metric != VEC_IP) || dim == 0)
        return VEC_MISUSE;
    for (size_t i = 0; metric == VEC_COSINE && i < next; i++)
        if (ext[i].rows && !ext[i].norms)
            return VEC_MISUSE;
    s.norm_q = vec_norm_f32(query, dim);
    for (size_t e = 0; e < next; e++) {
        for (uint64_t i = 0; i < ext[e].n; i += BLOCK_ROWS) {
            unsigned n = ext[e].n - i < BLOCK_ROWS ? (unsigned)(ext[e].n - i) : BLOCK_ROWS;
            uint64_t row = ext[e].first + i;
            uint64_t mask = filter ? vec_bits_group(filter, row, n) : vec_bits_low(n);

            scan_group(&s, &ext[e], i, mask, out + row);
            scanned += vec_bits_popcount(mask) * dim * sizeof(float) + 64;
            if (scanned < STOP_BYTES)
                continue;
            scanned = 0;
            if (stop && stop(stop_ctx))
                return VEC_ABORT;
        }
    }
    return VEC_OK;
}
