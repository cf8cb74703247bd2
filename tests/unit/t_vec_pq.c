/*
 * t_vec_pq.c - 4-bit codes: kernels against their definition, codes that are the nearest points,
 * estimates within their rounding; and centroids, which are trained by the same kind of rounds
 *
 * Runs once for every level.
 *
 * SPDX-License-Identifier: MIT
 */
#include "t_levels.h"
#include "t_rng.h"
#include "t_vectors.h"
#include "vec.h"
#include "vec_kmeans.h"
#include "vec_pq.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void *get(size_t n)
{
    void *p = malloc(n ? n : 1);

    assert_non_null(p);
    return p;
}

static void kernels_add_up_the_table(void **state)
{
    (void)state;
    t_rng r = t_rng_start(61);
    const vec_pq_kernels *levels[] = {vec_pq_kern_level("scalar"), vec_pq_kern()};

    for (size_t pairs = 4; pairs <= 2600; pairs += pairs < 64 ? 4 : 508) {
        // exact sizes on the heap: the sanitizers see a step too far
        uint8_t *table = get(16 * pairs), *block = get(16 * pairs);

        for (int round = 0; round < 4; round++) {
            t_rng_fill(&r, block, 16 * pairs);
            t_rng_fill(&r, table, 16 * pairs);
            if (round == 0) // the largest sums there can be
                memset(table, 255, 16 * pairs);
            for (size_t k = 0; k < 2; k++) {
                uint32_t out[VEC_PQ_BLOCK];

                levels[k]->sums(table, pairs, block, out);
                for (size_t j = 0; j < VEC_PQ_BLOCK; j++) {
                    uint32_t want = 0;

                    for (size_t p = 0; p < pairs; p++)
                        want += table[16 * p + (block[16 * p + j % 16] >> (j >= 16 ? 4 : 0) & 15)];
                    assert_int_equal(out[j], want);
                }
            }
        }
        free(table);
        free(block);
    }
}

static double distance2(const float *book, size_t pair, unsigned c, const float *x, size_t dim)
{
    double a = (double)book[32 * pair + c] - (double)x[2 * pair];
    double b = (double)book[32 * pair + 16 + c] -
               (2 * pair + 1 < dim ? (double)x[2 * pair + 1] : 0);

    return a * a + b * b;
}

static void codes_are_the_nearest_points(void **state)
{
    (void)state;
    t_rng r = t_rng_start(62);

    for (size_t dim = 1; dim <= 40; dim++) {
        size_t n = 1 + t_rng_below(&r, 200), pairs = vec_pq_pairs(dim);
        float *x = get(n * dim * sizeof *x), *book = get(vec_pq_book_floats(dim) * sizeof *book);
        uint8_t *codes = get(pairs), *block = get(vec_pq_block_bytes(dim));
        uint8_t *table = get(vec_pq_block_bytes(dim));

        for (size_t i = 0; i < n; i++)
            t_vector(&r, T_NORMAL, x + i * dim, dim);
        assert_int_equal(vec_pq_train(x, n, dim, 1, book), VEC_OK);
        memset(block, 0, vec_pq_block_bytes(dim));
        for (size_t i = 0; i < n && i < VEC_PQ_BLOCK; i++) {
            vec_pq_encode(book, dim, x + i * dim, codes);
            vec_pq_put(block, pairs, (unsigned)i, codes);
            for (size_t p = 0; 2 * p < dim; p++)
                for (unsigned c = 0; c < 16; c++)
                    assert_true(distance2(book, p, codes[p], x + i * dim, dim) <=
                                distance2(book, p, c, x + i * dim, dim) * 1.00001 + 1e-9);
        }
        for (size_t i = 0; i < n && i < VEC_PQ_BLOCK; i++) {
            const float *q = x + t_rng_below(&r, n) * dim;
            float offset, step, factor = t_rng_below(&r, 2) ? -2 : -1;
            uint32_t sums[VEC_PQ_BLOCK];
            double want = 0;

            vec_pq_table(book, dim, q, factor, table, &offset, &step);
            vec_pq_kern()->sums(table, pairs, block, sums);
            vec_pq_encode(book, dim, x + i * dim, codes);
            for (size_t p = 0; 2 * p < dim; p++) {
                want += (double)q[2 * p] * (double)book[32 * p + codes[p]];
                if (2 * p + 1 < dim)
                    want += (double)q[2 * p + 1] * (double)book[32 * p + 16 + codes[p]];
            }
            want *= (double)factor;
            assert_true(fabs((double)(offset + step * (float)sums[i]) - want) <=
                        0.51 * (double)step * (double)pairs + 1e-4);
        }
        free(x);
        free(book);
        free(codes);
        free(block);
        free(table);
    }
}

/* Mean squared distance to the nearest centroid. */
static double loss(const uint8_t *records, size_t k, const float *x, size_t n, size_t dim)
{
    vec_centroids c;
    float *y = get(dim * sizeof *y);
    double sum = 0;

    assert_int_equal(vec_centroids_open(records, k, dim, &c), VEC_OK);
    for (size_t i = 0; i < n; i++) {
        double least = INFINITY;

        for (size_t j = 0; j < k; j++) {
            double d = 0;

            vec_centroid_decode(&c, j, y);
            for (size_t e = 0; e < dim; e++)
                d += ((double)y[e] - (double)x[i * dim + e]) *
                     ((double)y[e] - (double)x[i * dim + e]);
            least = d < least ? d : least;
        }
        sum += least;
    }
    vec_centroids_close(&c);
    free(y);
    return sum / (double)n;
}

static void centroids_find_the_clusters(void **state)
{
    (void)state;
    t_rng r = t_rng_start(63);
    enum { DIM = 24, K = 12, N = 1200 };
    float *x = get(N * DIM * sizeof *x), centre[K][DIM];
    uint8_t *records = get(K * vec_plane_stride(DIM));

    for (size_t k = 0; k < K; k++)
        for (size_t j = 0; j < DIM; j++)
            centre[k][j] = t_rng_normal(&r);
    // sizes from 1 upwards: random seeds would miss the small ones
    for (size_t i = 0, k = 0; i < N; i++) {
        k = i < K ? i : K - 1 - (size_t)(sqrt(t_rng_unit(&r)) * K) % K;
        for (size_t j = 0; j < DIM; j++)
            x[i * DIM + j] = centre[k][j] + 0.02f * t_rng_normal(&r);
    }
    assert_int_equal(vec_kmeans(x, N, DIM, K, 1, NULL, NULL, records), VEC_OK);
    // within a cluster the loss is DIM * 0.0004, between two about 2 * DIM
    assert_true(loss(records, K, x, N, DIM) < 10 * DIM * 0.0004);
    free(x);
    free(records);
}

static void centroids_of_few_or_equal_vectors(void **state)
{
    (void)state;
    t_rng r = t_rng_start(64);
    enum { DIM = 9, K = 8 };
    uint8_t *records = get(K * vec_plane_stride(DIM));

    for (size_t n = 1; n <= 20; n++)
        for (int equal = 0; equal < 3; equal++) {
            float *x = get(n * DIM * sizeof *x);

            for (size_t i = 0; i < n; i++)
                if (i == 0 || equal == 0)
                    t_vector(&r, T_NORMAL, x + i * DIM, DIM);
                else
                    memcpy(x + i * DIM, x, DIM * sizeof *x);
            if (equal == 2)
                memset(x, 0, n * DIM * sizeof *x);
            assert_int_equal(vec_kmeans(x, n, DIM, K, 1, NULL, NULL, records), VEC_OK);
            if (n <= K || equal) // every vector can have a centroid of its own, but for 8 bits
                assert_true(loss(records, K, x, n, DIM) < 0.01);
            free(x);
        }
    free(records);
}

static int run(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_add_up_the_table),
        cmocka_unit_test(codes_are_the_nearest_points),
        cmocka_unit_test(centroids_find_the_clusters),
        cmocka_unit_test(centroids_of_few_or_equal_vectors),
    };

    vec_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return t_levels_run(t_levels_all, run);
}
