/*
 * vec_bounds.c - between what two numbers each row's distance lies, from its plane records alone
 *
 * The lower bound is that of vec_halves.c, by both halves: with u the bound on the cosine,
 *     u = A p + B root + slack,  root = sqrt(1 - p^2), as computed at most sqrt(1 + VEC_PLANE_ROOT)
 * where A and B are cosine and sine of the angle between row and codes. The cosine itself is at
 * least A p - B root - slack, by the same proof turned round (cos(y + T) >= cos(y) - T), as long as
 * the angles add up to less than a half turn. So it is at least u - 2 (B + slack) root', root' the
 * most that root can be; and that holds beyond the half turn, too: there p <= -A, so root is at
 * most B, and u - 2 (B + slack) <= -A^2 + B^2 - 2 B <= 2 B^2 - 2 B - 1 <= -1.
 *
 *     cosine  low = 1 - u                      high = low + 2 (B + slack) root'
 *     ip      low = -|x||q| u                  high = low + |x||q| times that
 *     l2      low = shrink sqrt(D - flat)      high = sqrt(low^2 / shrink^2 + 2 flat
 *                                                          + 2 |x||q| times that) / shrink
 *
 * since D, what the formula of vec_plane.c makes of u, is at most low^2 / shrink^2 + flat, flat
 * stands for both roundings, and vec_distance may be as much above as below. Our own steps are few;
 * WIDER answers for them. A distance of cosine is at most 2. Where the lower bound is none, the
 * upper one is none either: +infinity.
 *
 * THREADS   no state
 * TESTS     t_vec_bounds.c
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>

#include "vec_base.h"
#include "vec_bits.h"
#include "vec_halves.h"
#include "vec_limits.h"

#define GROUP_ROWS 64
#define STOP_BYTES 65536
#define WIDER      1.00002f

static float get_f32(const uint8_t *p)
{
    uint32_t bits = vec_get32(p);
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The most that a distance can be whose row has this fine record and this lower bound. */
static float high_of(const vec_plane_query *q, const uint8_t *fine, float low)
{
    float norm = get_f32(fine + VEC_PLANE_NORM), norms = norm * q->norm, flat;
    float miss = 2 * WIDER * (get_f32(fine + VEC_PLANE_SIN) + q->slack);

    if (!(norm >= q->least && norm <= q->most))
        return INFINITY;
    switch (q->metric) {
    case VEC_COSINE:
        return low + miss < 2 ? low + miss : 2;
    case VEC_IP:
        return low + norms * miss + norms * 0x1p-20f;
    default:
        flat = VEC_PLANE_FLAT * (norm * norm + q->norm * q->norm);
        low /= q->shrink;
        return sqrtf(low * low + 2 * flat + 2 * norms * miss) * WIDER / q->shrink;
    }
}

typedef struct bounds {
    vec_halves_query q;
    size_t stride;
    float *low, *high;
} bounds;

/* Rows i.. of the extent whose bits are set. */
static void bound_group(const bounds *b, const vec_plane_extent *x, uint64_t i, uint64_t mask)
{
    const uint8_t *coarse[GROUP_ROWS], *fine[GROUP_ROWS];
    uint64_t row[GROUP_ROWS];
    float low[GROUP_ROWS];
    size_t n = 0;

    for (; mask; mask &= mask - 1) {
        uint64_t at = i + vec_bits_lowest(mask);

        coarse[n] = x->coarse + at * b->stride;
        fine[n] = x->fine + at * b->stride;
        row[n++] = x->first + at;
    }
    vec_halves_fine(&b->q, coarse, fine, n, low);
    for (size_t k = 0; k < n; k++) {
        b->low[row[k]] = low[k];
        b->high[row[k]] = low[k] == INFINITY ? INFINITY : high_of(&b->q.q, fine[k], low[k]);
    }
}

int vec_bounds(int metric, const float *query, size_t dim, const vec_plane_extent *planes,
               size_t nplane, const uint64_t *filter, float *low, float *high, int (*stop)(void *),
               void *stop_ctx)
{
    bounds b = {.stride = vec_halves_stride(dim), .low = low, .high = high};
    size_t scanned = 0;
    int rc = VEC_OK;
    void *scratch;

    if ((metric != VEC_COSINE && metric != VEC_L2 && metric != VEC_IP) || dim == 0)
        return VEC_MISUSE;
    if (dim > VEC_PLANE_DIM_MAX)
        return VEC_LIMIT;
    scratch = vec_alloc(vec_halves_scratch(dim));
    if (!scratch)
        return VEC_NOMEM;
    vec_halves_prepare(metric, query, vec_norm_f32(query, dim), dim, scratch, &b.q);
    for (size_t e = 0; e < nplane && rc == VEC_OK; e++) {
        for (uint64_t i = 0; i < planes[e].n && rc == VEC_OK; i += GROUP_ROWS) {
            uint64_t left = planes[e].n - i;
            unsigned n = left < GROUP_ROWS ? (unsigned)left : GROUP_ROWS;
            uint64_t mask = filter ? vec_bits_group(filter, planes[e].first + i, n)
                                   : vec_bits_low(n);

            if (mask)
                bound_group(&b, &planes[e], i, mask);
            scanned += 2 * vec_bits_popcount(mask) * b.stride + GROUP_ROWS;
            if (scanned >= STOP_BYTES) {
                scanned = 0;
                rc = stop && stop(stop_ctx) ? VEC_ABORT : VEC_OK;
            }
        }
    }
    vec_free(scratch);
    return rc;
}
