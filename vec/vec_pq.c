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
 * THREADS   no state; training may use some of its own, each for pairs of its own
 * TESTS     t_vec_pq.c
 *
 * SPDX-License-Identifier: MIT
 */
#include "vec_pq.h"

#include <math.h>

#include "vec_base.h"
#include "vec_least.h"
#include "vec_limits.h"
#include "vec_par.h"

#define ROUNDS       8
#define PAIRS_LEAST  8   /* a thread's share, where ... */
#define SAMPLE_LEAST 512 /* ... there are so many vectors at least */

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
    vec_least l = vec_least_start();

    for (int i = 0; i < VEC_PQ_POINTS; i += 4) {
        vec_f4 a = vec_f4_load(book + i) - vec_f4_all(x);
        vec_f4 b = vec_f4_load(book + VEC_PQ_POINTS + i) - vec_f4_all(y);

        vec_least_take(&l, a * a + b * b);
    }
    return vec_least_end(&l, dist);
}

static float second(const float *x, size_t dim, size_t pair)
{
    return 2 * pair + 1 < dim ? x[2 * pair + 1] : 0;
}

/* Four by four points at the quartiles' middles of a normal distribution with the sample's mean and
 * spread. */
static void seed_pair(const float *x, const float *y, size_t n, float *book)
{
    static const float at[4] = {-1.15f, -0.32f, 0.32f, 1.15f};
    double mx = 0, my = 0, xx = 0, yy = 0;

    for (size_t i = 0; i < n; i++) {
        double a = x[i], b = y[i];

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

static void round_of_pair(const float *x, const float *y, size_t n, float *book)
{
    double sx[VEC_PQ_POINTS] = {0}, sy[VEC_PQ_POINTS] = {0};
    size_t count[VEC_PQ_POINTS] = {0}, worst = 0;
    float most = -1;

    for (size_t i = 0; i < n; i++) {
        float d;
        unsigned c = nearest(book, x[i], y[i], &d);

        sx[c] += (double)x[i];
        sy[c] += (double)y[i];
        count[c]++;
        if (d > most) {
            most = d;
            worst = i;
        }
    }
    for (int c = 0; c < VEC_PQ_POINTS; c++) {
        book[c] = count[c] ? (float)(sx[c] / (double)count[c]) : x[worst];
        book[VEC_PQ_POINTS + c] = count[c] ? (float)(sy[c] / (double)count[c]) : y[worst];
    }
}

/* The pairs from .. to of a sample. */
typedef struct columns {
    const float *x;
    size_t n, dim, from, to;
    float *column; /* 2 * n: scratch, one pair's components one behind the other */
    float *book;
} columns;

static void train_pairs(void *part)
{
    const columns *p = part;
    float *x = p->column, *y = p->column + p->n;

    for (size_t pair = p->from; pair < p->to; pair++) {
        float *points = p->book + pair * 2 * VEC_PQ_POINTS;

        for (size_t i = 0; i < p->n; i++) {
            x[i] = p->x[i * p->dim + 2 * pair];
            y[i] = second(p->x + i * p->dim, p->dim, pair);
        }
        seed_pair(x, y, p->n, points);
        for (int i = 0; i < ROUNDS; i++)
            round_of_pair(x, y, p->n, points);
    }
}

int vec_pq_train(const float *x, size_t n, size_t dim, int threads, float *book)
{
    columns part[VEC_THREADS_MAX];
    size_t all = (dim + 1) / 2, m = vec_par_parts(n < SAMPLE_LEAST ? 1 : threads, all, PAIRS_LEAST);
    float *column = n <= SIZE_MAX / 2 / m ? vec_alloc_array(2 * m * n, sizeof *column) : NULL;

    if (!column)
        return VEC_NOMEM;
    memset(book, 0, vec_pq_book_floats(dim) * sizeof *book);
    for (size_t i = 0; i < m; i++)
        part[i] = (columns){.x = x,
                            .n = n,
                            .dim = dim,
                            .from = vec_par_from(all, 1, i, m),
                            .to = vec_par_from(all, 1, i + 1, m),
                            .column = column + 2 * n * i,
                            .book = book};
    vec_par_run(train_pairs, part, sizeof *part, m);
    vec_free(column);
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
