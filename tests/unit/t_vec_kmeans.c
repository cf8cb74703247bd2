/*
 * t_vec_kmeans.c - centroids: the nearest of a vector, alone and four at a time, and training
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

/* Squared distance between x and a decoded centroid. */
static double square(const vec_centroids *c, size_t i, const float *x, float *scratch)
{
    double sum = 0;

    vec_centroid_decode(c, i, scratch);
    for (size_t j = 0; j < c->dim; j++)
        sum += ((double)x[j] - (double)scratch[j]) * ((double)x[j] - (double)scratch[j]);
    return sum;
}

static void check_assign(t_rng *r, size_t dim, size_t k, size_t n)
{
    uint8_t *records = get(k * vec_plane_stride(dim));
    float *x = get(4 * dim * sizeof *x), *c = get(dim * sizeof *c), norm[4], score[4];
    uint32_t best[4];
    vec_centroids all;
    vec_centroid_query s;

    for (size_t i = 0; i < k; i++) {
        t_vector(r, T_NORMAL, c, dim);
        vec_plane_encode(c, vec_norm_f32(c, dim), dim, records + i * vec_plane_stride(dim));
    }
    assert_int_equal(vec_centroids_open(records, k, dim, &all), VEC_OK);
    assert_int_equal(vec_centroid_query_new(&all, &s), VEC_OK);
    for (size_t i = 0; i < n; i++) {
        t_vector(r, T_NORMAL, x + i * dim, dim);
        if (t_rng_below(r, 8) == 0)
            memset(x + i * dim, 0, dim * sizeof *x);
        norm[i] = vec_norm_f32(x + i * dim, dim);
    }
    vec_centroid_assign(&all, x, norm, n, &s, best, score);
    for (size_t i = 0; i < n; i++) {
        double least = INFINITY, mine, length = (double)norm[i];

        for (size_t j = 0; j < k; j++)
            least = fmin(least, square(&all, j, x + i * dim, c));
        assert_true(best[i] < k);
        mine = square(&all, best[i], x + i * dim, c);
        // a component is rounded by at most a 254th of the largest, and so is a product
        assert_true(mine - least <= 0.03 * (length * length + (double)all.square[best[i]]));
        assert_true(fabs((double)score[i] + length * length - mine) <=
                    0.03 * (length * length + (double)all.square[best[i]]) + 1e-6);
    }
    vec_centroid_query_free(&s);
    vec_centroids_close(&all);
    free(records);
    free(x);
    free(c);
}

static void the_nearest_are_found(void **state)
{
    (void)state;
    t_rng r = t_rng_start(91);

    for (size_t dim = 1; dim <= 140; dim++)
        check_assign(&r, dim, 1 + t_rng_below(&r, 40), 1 + t_rng_below(&r, 4));
    for (size_t k = 1; k < 12; k++)
        check_assign(&r, 384, k, 4);
}

/* As many clusters as centroids, far apart: each vector ends up beside its own. */
static void clusters_are_found(void **state)
{
    (void)state;
    enum { DIM = 24, CLUSTERS = 12, EACH = 60 };
    t_rng r = t_rng_start(92);
    float *centre = get(CLUSTERS * DIM * sizeof *centre),
          *x = get(CLUSTERS * EACH * DIM * sizeof *x);
    uint8_t *records = get(CLUSTERS * vec_plane_stride(DIM));
    float scratch[DIM];
    vec_centroids c;
    double sum = 0;

    for (size_t i = 0; i < CLUSTERS; i++)
        t_vector(&r, T_NORMAL, centre + i * DIM, DIM);
    for (size_t i = 0; i < CLUSTERS * EACH * DIM; i++)
        x[i] = centre[i / DIM % CLUSTERS * DIM + i % DIM] + 0.02f * t_rng_normal(&r);
    assert_int_equal(vec_kmeans(x, CLUSTERS * EACH, DIM, CLUSTERS, 1, NULL, NULL, records), VEC_OK);
    assert_int_equal(vec_centroids_open(records, CLUSTERS, DIM, &c), VEC_OK);
    for (size_t i = 0; i < CLUSTERS * EACH; i++) {
        double least = INFINITY;

        for (size_t k = 0; k < CLUSTERS; k++)
            least = fmin(least, square(&c, k, x + i * DIM, scratch));
        sum += least / (CLUSTERS * EACH);
    }
    assert_true(sum < 4 * DIM * 0.02 * 0.02); // the clusters' own spread is DIM times its square
    vec_centroids_close(&c);
    free(records);
    free(centre);
    free(x);
}

static int run(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nearest_are_found),
        cmocka_unit_test(clusters_are_found),
    };

    vec_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return t_levels_run(t_levels_all, run);
}
