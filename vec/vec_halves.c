/*
 * vec_halves.c - the two halves of a plane: their bytes, the query that fits them, their bounds
 *
 * FORMAT    A coarse and a fine record, vec_halves_stride(dim) bytes each, little-endian:
 *   offset  size  field     coarse                          fine
 *   0       4     norm      f32, as in vec_plane.c          the same
 *   4       4     inverse   f32, 1 / |c4|; 0 without codes  1 / |c|, as in vec_plane.c
 *   8       4     cos       f32, cosine of row and c4       of row and c
 *   12      4     sin       f32, sine, rounded up           the same for c
 *   16      ...   nibbles   upper halves of the codes       lower halves
 * The code of vec_plane.c, c + 128, is 16 h + l. The codes of one dimension sit in nibbles: byte j
 * of the 16-byte unit u holds that of dimension 32 u + j in its lower nibble and that of
 * 32 u + 16 + j in its upper one, so that a mask and a shift give sixteen neighbours. Dimensions
 * from dim to the end of the last unit have c = 0; the query is 0 there.
 *
 * BOUND     The upper half alone stands for the integer c4 = 2 h - 15, the middle of its sixteen
 *   codes in units of eight. Its angle to the row is measured like that of c, so the proof of
 *   vec_plane.c holds for it word by word: nothing there depends on how the codes were found.
 *
 * QUERY     Has 8 bits in both steps. Its own error is a sixteenth of that of coarse codes, and as
 *   large as that of whole ones. Where many rows are nearly as near as the nearest, a third step
 *   with 16 bits (four products a row) spares some of them the reading of their vectors.
 *
 * PRODUCTS  The kernel gives S, the sum of nibble times query code, exactly. Then
 *       coarse  c4.d = 2 S(upper) - 15 sum(d),
 *       fine    c.d  = 16 S(upper) + S(lower) - 128 sum(d).
 *   With 127 * 127 * 65536 < 2^30 the results fit, also those with 16 bits (vec_plane.c); steps on
 *   the way may wrap.
 *
 * THREADS   no state
 * TESTS     t_vec_halves.c
 *
 * SPDX-License-Identifier: MIT
 */
#include "vec_halves.h"

#include <math.h>

#include "vec_base.h"
#include "vec_kern.h"
#include "vec_limits.h"

#define BATCH_ROWS 64
#define QUERY_MAX  127

static size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

size_t vec_halves_stride(size_t dim)
{
    return VEC_PLANE_CODES + round_up(dim, VEC_HALVES_PAD) / 2;
}

/* -------------------------------------------------------------------------------------- records */

/* Sums of row and coarse codes; lanes, since one running sum would be a long chain. */
#define LANES VEC_LANES

static vec_plane_sums coarse_sums(const float *x, const uint8_t *code, size_t dim)
{
    vec_d2 fours[3][2] = {{{0}}};
    double xx[LANES], xc[LANES], cc[LANES];
    size_t i = 0;

    for (; dim - i >= LANES; i += LANES) {
        for (size_t h = 0; h < 2; h++) {
            const uint8_t *at = code + i + 2 * h;
            vec_f2 f;

            memcpy(&f, x + i + 2 * h, sizeof f);
            vec_d2 v = __builtin_convertvector(f, vec_d2);
            vec_d2 c = {(double)(2 * (at[0] >> 4) - 15), (double)(2 * (at[1] >> 4) - 15)};
            fours[0][h] += v * v;
            fours[1][h] += v * c;
            fours[2][h] += c * c;
        }
    }
    memcpy(xx, fours[0], sizeof xx);
    memcpy(xc, fours[1], sizeof xc);
    memcpy(cc, fours[2], sizeof cc);
    for (size_t j = 0; i + j < dim; j++) {
        double c = 2 * (code[i + j] >> 4) - 15, v = (double)x[i + j];

        xx[j] += v * v;
        xc[j] += v * c;
        cc[j] += c * c;
    }
    return (vec_plane_sums){(xx[0] + xx[2]) + (xx[1] + xx[3]), (xc[0] + xc[2]) + (xc[1] + xc[3]),
                            (cc[0] + cc[2]) + (cc[1] + cc[3])};
}

/* Loops over whole registers' bytes. */
VEC_INLINE void split_unit(const uint8_t unit[VEC_HALVES_PAD], uint8_t *restrict coarse,
                           uint8_t *restrict fine)
{
    for (size_t j = 0; j < 16; j++)
        coarse[j] = (uint8_t)(unit[j] >> 4 | (unit[16 + j] & 0xf0));
    for (size_t j = 0; j < 16; j++)
        fine[j] = (uint8_t)((unit[j] & 15) | (unit[16 + j] & 15) << 4);
}

void vec_halves_split(const float *x, size_t dim, const uint8_t *record, uint8_t *coarse,
                      uint8_t *fine)
{
    size_t bytes = vec_halves_stride(dim) - VEC_PLANE_CODES, last = round_up(dim, VEC_PLANE_PAD);
    const uint8_t *code = record + VEC_PLANE_CODES;

    memcpy(coarse, record, VEC_PLANE_CODES);
    memcpy(fine, record, VEC_PLANE_CODES);
    if (x && vec_plane_has_codes(record)) {
        vec_plane_sums s = coarse_sums(x, code, dim);

        vec_plane_put_angle(&s, dim, coarse);
    }
    for (size_t i = 0; i < 2 * bytes; i += VEC_HALVES_PAD) {
        size_t at = VEC_PLANE_CODES + i / 2;
        uint8_t unit[VEC_HALVES_PAD];

        memset(unit, 128, sizeof unit);
        memcpy(unit, code + i, last - i < sizeof unit ? last - i : sizeof unit);
        split_unit(unit, coarse + at, fine + at);
    }
}

/* Eight codes of the lower unit and eight of the upper one; last: there is no upper one. */
static void join8(const uint8_t *coarse, const uint8_t *fine, uint8_t *code, int last)
{
    const uint64_t low = UINT64_C(0x0f0f0f0f0f0f0f0f);
    uint64_t c, f, x;

    memcpy(&c, coarse, sizeof c);
    memcpy(&f, fine, sizeof f);
    x = (c & low) << 4 | (f & low);
    memcpy(code, &x, sizeof x);
    if (!last) {
        x = (c & ~low) | (f >> 4 & low);
        memcpy(code + 16, &x, sizeof x);
    }
}

void vec_halves_join(const uint8_t *coarse, const uint8_t *fine, size_t dim, uint8_t *record)
{
    size_t codes = vec_plane_stride(dim) - VEC_PLANE_CODES;

    memcpy(record, fine, VEC_PLANE_CODES);
    coarse += VEC_PLANE_CODES;
    fine += VEC_PLANE_CODES;
    record += VEC_PLANE_CODES;
    for (size_t i = 0; i < codes; i += VEC_HALVES_PAD, coarse += 16, fine += 16) {
        join8(coarse, fine, record + i, i + 16 >= codes);
        join8(coarse + 8, fine + 8, record + i + 8, i + 16 >= codes);
    }
}

/* ------------------------------------------------------------------------------------ the query */

/* Query codes of either nibbles lie in one row of bytes each, padded so that the widest kernel
 * reads them without a mask. */
static size_t half_row(size_t dim)
{
    return round_up(round_up(dim, VEC_HALVES_PAD) / 2, VEC_PLANE_QUERY_PAD);
}

size_t vec_halves_scratch(size_t dim)
{
    return dim <= VEC_PLANE_DIM_MAX ? 6 * half_row(dim) : 0;
}

/* Deals the codes out to two rows of bytes, one for either nibble; wide is 0 behind dim. */
static uint32_t deal(const int16_t *wide, size_t dim, size_t row, int8_t *to)
{
    uint32_t sum = 0;

    for (size_t i = 0; i < dim; i += VEC_HALVES_PAD) {
        for (size_t j = 0; j < 16; j++) {
            to[i / 2 + j] = (int8_t)wide[i + j];
            to[row + i / 2 + j] = (int8_t)wide[i + 16 + j];
            sum += (uint32_t)wide[i + j] + (uint32_t)wide[i + 16 + j];
        }
    }
    return sum;
}

void vec_halves_prepare(int metric, const float *query, float norm, size_t dim, void *scratch,
                        vec_halves_query *q)
{
    size_t row = half_row(dim);
    int16_t *wide = scratch;
    int8_t *codes = (int8_t *)(wide + 2 * row);
    double scale = vec_plane_scale(query, dim, QUERY_MAX), turn = 0;
    float inverse = 0;

    memset(scratch, 0, vec_halves_scratch(dim));
    if (scale > 0) {
        vec_plane_sums s = vec_plane_query_codes(query, dim, scale, wide);

        turn = vec_plane_turn(&s, dim, &inverse);
    }
    *q = (vec_halves_query){.bytes = round_up(dim, VEC_HALVES_PAD) / 2,
                            .code = {codes, codes + row},
                            .sum = deal(wide, dim, row, codes)};
    vec_plane_set(metric, norm, dim, turn, &q->q);
    q->q.inverse = inverse;
}

/* --------------------------------------------------------------------------------------- bounds */

float vec_halves_coarse(const vec_halves_query *q, const uint8_t *const *coarse, size_t n,
                        float *low)
{
    const vec_plane_kernels *k = vec_plane_kern();
    int32_t upper[BATCH_ROWS];

    k->nibbles(q->code[0], q->code[1], q->bytes, coarse, n, upper);
    for (size_t i = 0; i < n; i++)
        upper[i] = (int32_t)(2 * (uint32_t)upper[i] - 15 * q->sum);
    return k->lows(&q->q, coarse, upper, n, low);
}

float vec_halves_fine(const vec_halves_query *q, const uint8_t *const *coarse,
                      const uint8_t *const *fine, size_t n, float *low)
{
    const vec_plane_kernels *k = vec_plane_kern();
    int32_t upper[BATCH_ROWS], lower[BATCH_ROWS];

    k->nibbles(q->code[0], q->code[1], q->bytes, coarse, n, upper);
    k->nibbles(q->code[0], q->code[1], q->bytes, fine, n, lower);
    for (size_t i = 0; i < n; i++)
        upper[i] = (int32_t)(16 * (uint32_t)upper[i] + (uint32_t)lower[i] - 128 * q->sum);
    return k->lows(&q->q, fine, upper, n, low);
}

/* ------------------------------------------------------------------------------- the third step */

size_t vec_halves_sharp_scratch(size_t dim)
{
    return dim <= VEC_PLANE_DIM_MAX ? vec_plane_scratch(dim) + 4 * half_row(dim) : 0;
}

static void deal_bytes(const int8_t *from, size_t dim, size_t row, int8_t *to, const int8_t *out[2])
{
    memset(to, 0, 2 * row);
    for (size_t i = 0; i < dim; i += VEC_HALVES_PAD) {
        memcpy(to + i / 2, from + i, 16);
        memcpy(to + row + i / 2, from + i + 16, 16);
    }
    out[0] = to;
    out[1] = to + row;
}

void vec_halves_sharpen(int metric, const float *query, float norm, size_t dim, void *scratch,
                        vec_halves_sharp *q)
{
    size_t row = half_row(dim);
    int8_t *rows = (int8_t *)scratch + vec_plane_scratch(dim);

    vec_plane_prepare(metric, query, norm, dim, scratch, &q->q);
    q->bytes = round_up(dim, VEC_HALVES_PAD) / 2;
    deal_bytes(q->q.hi, dim, row, rows, q->hi);
    deal_bytes(q->q.lo, dim, row, rows + 2 * row, q->lo);
}

float vec_halves_sharp_bound(const vec_halves_sharp *q, const uint8_t *coarse, const uint8_t *fine)
{
    const vec_plane_kernels *k = vec_plane_kern();
    const uint8_t *rows[2] = {coarse, fine};
    int32_t hi[2], lo[2], dot;
    float low;

    k->nibbles(q->hi[0], q->hi[1], q->bytes, rows, 2, hi);
    k->nibbles(q->lo[0], q->lo[1], q->bytes, rows, 2, lo);
    dot = (int32_t)(16 * (256 * (uint32_t)hi[0] + (uint32_t)lo[0]) +
                    (256 * (uint32_t)hi[1] + (uint32_t)lo[1]) - q->q.bias);
    return k->lows(&q->q, &fine, &dot, 1, &low);
}
