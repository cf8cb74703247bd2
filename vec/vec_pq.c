/*
 * vec_pq.c - training a book of points, coding vectors with it, and a query's table
 *
 * TRAINING  Each pair's sixteen points come from k-means in the plane: seeds spread over the sample
 *           in order of the angle and length (quantiles of the first component, then of the
 *           second), a fixed number of rounds, and a point that nothing belongs to moves to the
 *           sample that is worst served. Two dimensions and two bits each: finer cuts of the same
 *           size (four components a code) served neighbours of sentence embeddings worse.
 *
 * OWNERSHIP training allocates scratch and frees it; the rest allocates nothing
 * ERRORS    VEC_NOMEM
 * THREADS   no state
 * TESTS     t_vec_pq.c
 *
 * SPDX-License-Identifier: MIT
 */
#include "vec_pq.h"

#include <math.h>

#include "vec_base.h"

#define ROUNDS 8

size_t vec_pq_pairs(size_t dim)
{
    size_t pairs = dim / 2 + dim % 2;

    return (pairs + VEC_PQ_STEP - 1) / VEC_PQ_STEP * VEC_PQ_STEP;
}

size_t vec_pq_block_bytes(size_t dim)
{
    return vec_pq_pairs(dim) * VEC_PQ_POINTS;
}

size_t vec_pq_book_floats(size_t dim)
{
    return vec_pq_pairs(dim) * 2 * VEC_PQ_POINTS;
}

/* The nearest point to (x, y); ties go to the first. */
static unsigned nearest(const float *book, float x, float y, float *dist)
{
    float d[VEC_PQ_POINTS];
    unsigned best = 0;

    for (int i = 0; i < VEC_PQ_POINTS; i++) {
        float a = book[i] - x, b = book[VEC_PQ_POINTS + i] - y;

        d[i] = a * a + b * b;
    }
    for (unsigned i = 1; i < VEC_PQ_POINTS; i++)
        best = d[i] < d[best] ? i : best;
    *dist = d[best];
    return best;
}

static float second(const float *x, size_t dim, size_t pair)
{
    return 2 * pair + 1 < dim ? x[2 * pair + 1] : 0;
}

/* Four by four points at the quartiles' middles of a normal distribution with the sample's mean and
 * spread. */
static void seed_pair(const float *x, size_t n, size_t dim, size_t pair, float *book)
{
    static const float at[4] = {-1.15f, -0.32f, 0.32f, 1.15f};
    double mx = 0, my = 0, xx = 0, yy = 0;

    for (size_t i = 0; i < n; i++) {
        double a = x[i * dim + 2 * pair], b = second(x + i * dim, dim, pair);

        mx += a;
        my += b;
        xx += a * a;
        yy += b * b;
    }
    mx /= (double)n;
    my /= (double)n;
    xx = sqrt(fmax(xx / (double)n - mx * mx, 0));
    yy = sqrt(fmax(yy / (double)n - my * my, 0));
    for (int i = 0; i < VEC_PQ_POINTS; i++) {
        book[i] = (float)(mx + xx * (double)at[i & 3]);
        book[VEC_PQ_POINTS + i] = (float)(my + yy * (double)at[i >> 2]);
    }
}

static void round_of_pair(const float *x, size_t n, size_t dim, size_t pair, float *book)
{
    double sx[VEC_PQ_POINTS] = {0}, sy[VEC_PQ_POINTS] = {0};
    size_t count[VEC_PQ_POINTS] = {0}, worst = 0;
    float most = -1;

    for (size_t i = 0; i < n; i++) {
        float a = x[i * dim + 2 * pair], b = second(x + i * dim, dim, pair), d;
        unsigned c = nearest(book, a, b, &d);

        sx[c] += (double)a;
        sy[c] += (double)b;
        count[c]++;
        if (d > most) {
            most = d;
            worst = i;
        }
    }
    for (int c = 0; c < VEC_PQ_POINTS; c++) {
        if (count[c]) {
            book[c] = (float)(sx[c] / (double)count[c]);
            book[VEC_PQ_POINTS + c] = (float)(sy[c] / (double)count[c]);
        } else {
            book[c] = x[worst * dim + 2 * pair];
            book[VEC_PQ_POINTS + c] = second(x + worst * dim, dim, pair);
        }
    }
}

int vec_pq_train(const float *x, size_t n, size_t dim, float *book)
{
    memset(book, 0, vec_pq_book_floats(dim) * sizeof *book);
    for (size_t pair = 0; 2 * pair < dim; pair++) {
        float *points = book + pair * 2 * VEC_PQ_POINTS;

        seed_pair(x, n, dim, pair, points);
        for (int i = 0; i < ROUNDS; i++)
            round_of_pair(x, n, dim, pair, points);
    }
    return VEC_OK;
}

void vec_pq_encode(const float *book, size_t dim, const float *x, uint8_t *codes)
{
    size_t pairs = vec_pq_pairs(dim);
    float d;

    for (size_t pair = 0; pair < pairs; pair++)
        codes[pair] = 2 * pair < dim ? (uint8_t)nearest(book + pair * 2 * VEC_PQ_POINTS,
                                                        x[2 * pair], second(x, dim, pair), &d)
                                     : 0;
}

void vec_pq_put(uint8_t *block, size_t pairs, unsigned place, const uint8_t *codes)
{
    unsigned shift = place >= 16 ? 4 : 0;

    for (size_t pair = 0; pair < pairs; pair++)
        block[pair * 16 + (place & 15)] |= (uint8_t)(codes[pair] << shift);
}

/* Products of one pair; returns their least. */
static float products(const float *book, float a, float b, float *v)
{
    float least;

    for (int i = 0; i < VEC_PQ_POINTS; i++)
        v[i] = book[i] * a + book[VEC_PQ_POINTS + i] * b;
    least = v[0];
    for (int i = 1; i < VEC_PQ_POINTS; i++)
        least = v[i] < least ? v[i] : least;
    return least;
}

void vec_pq_table(const float *book, size_t dim, const float *q, float factor, uint8_t *table,
                  float *offset, float *step)
{
    size_t pairs = vec_pq_pairs(dim);
    float v[VEC_PQ_POINTS], span = 0, sum = 0, scale;

    for (size_t p = 0; 2 * p < dim; p++) {
        float least = products(book + p * 32, factor * q[2 * p], factor * second(q, dim, p), v);

        for (int i = 0; i < VEC_PQ_POINTS; i++)
            span = v[i] - least > span ? v[i] - least : span;
        sum += least;
    }
    scale = span > 0 ? 255 / span : 0;
    memset(table, 0, pairs * 16);
    for (size_t p = 0; 2 * p < dim; p++) {
        float least = products(book + p * 32, factor * q[2 * p], factor * second(q, dim, p), v);

        for (int i = 0; i < VEC_PQ_POINTS; i++) {
            float e = (v[i] - least) * scale + 0.5f;

            table[p * 16 + (size_t)i] = e < 255.5f ? (uint8_t)e : 255;
        }
    }
    *offset = sum;
    *step = span / 255;
}
