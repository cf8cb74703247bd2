/*
 * t_vec_bounds.c - no distance lies outside its bounds, and the bounds are worth something
 *
 * Runs once for every level, against the distances of that level's own kernels.
 *
 * SPDX-License-Identifier: MIT
 */
#include "t_levels.h"
#include "t_rng.h"
#include "t_vectors.h"
#include "vec.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 150, DIM_MAX = 400 };

typedef struct rows {
    float x[ROWS][DIM_MAX];
    int none[ROWS];
    uint8_t *half[2];
    size_t dim;
} rows;

static void make(t_rng *rng, rows *r, const float *query)
{
    size_t stride = vec_halves_stride(r->dim);
    uint8_t *record = malloc(vec_plane_stride(r->dim));

    for (int h = 0; h < 2; h++)
        assert_non_null(r->half[h] = malloc(ROWS * stride));
    assert_non_null(record);
    for (size_t i = 0; i < ROWS; i++) {
        float *x = r->x[i];

        if (i % 3)
            t_vector(rng, (int)t_rng_below(rng, T_KINDS), x, r->dim);
        else
            t_vector_like(rng, query, x, r->dim);
        for (size_t k = 0; i % 9 == 3 && k < r->dim; k++)
            x[k] = -x[k]; // what lies opposite
        r->none[i] = t_rng_below(rng, 16) == 0;
        vec_plane_encode(r->none[i] ? NULL : x, vec_norm_f32(x, r->dim), r->dim, record);
        vec_halves_split(r->none[i] ? NULL : x, r->dim, record, r->half[0] + i * stride,
                         r->half[1] + i * stride);
    }
    free(record);
}

static void check(rows *r, int metric, const float *query, const uint64_t *filter)
{
    static const float untouched = -12345;
    size_t stride = vec_halves_stride(r->dim);
    vec_plane_extent part[2] = {{r->half[0], r->half[1], 0, 100},
                                {r->half[0] + 100 * stride, r->half[1] + 100 * stride, 100, 50}};
    float low[ROWS], high[ROWS], norm = vec_norm_f32(query, r->dim);

    for (size_t i = 0; i < ROWS; i++)
        low[i] = high[i] = untouched;
    assert_int_equal(vec_bounds(metric, query, r->dim, part, 2, filter, low, high, NULL, NULL),
                     VEC_OK);
    for (size_t i = 0; i < ROWS; i++) {
        double d = vec_distance(metric, query, norm, r->x[i], vec_norm_f32(r->x[i], r->dim),
                                r->dim);

        if (filter && !(filter[i / 64] >> (i % 64) & 1)) {
            assert_true(low[i] == untouched && high[i] == untouched);
        } else if (r->none[i]) {
            assert_true(low[i] == INFINITY);
        } else if (!isnan(d) && !((double)low[i] <= d && d <= (double)high[i])) {
            print_error("metric %d, dim %zu, row %zu: %.17g is not within %.9g and %.9g\n", metric,
                        r->dim, i, d, (double)low[i], (double)high[i]);
            fail();
        }
    }
}

static void bounds_hold(void **state)
{
    (void)state;
    t_rng rng = t_rng_start(141);
    static float query[DIM_MAX];
    static rows r;

    for (size_t round = 0; round < 400 / T_SHARE; round++) {
        uint64_t filter[ROWS / 64 + 1];

        r.dim = t_rng_below(&rng, 8) ? 1 + t_rng_below(&rng, 70) : DIM_MAX - t_rng_below(&rng, 40);
        t_vector(&rng, (int)t_rng_below(&rng, T_KINDS), query, r.dim);
        make(&rng, &r, query);
        t_rng_fill(&rng, (uint8_t *)filter, sizeof filter);
        for (int metric = 0; metric < 3; metric++)
            check(&r, metric, query, round % 2 ? filter : NULL);
        free(r.half[0]);
        free(r.half[1]);
    }
}

/* Bounds that are always right may still be worth nothing. */
static void bounds_are_close(void **state)
{
    (void)state;
    t_rng rng = t_rng_start(142);
    static float query[DIM_MAX];
    static rows r;
    static float low[ROWS], high[ROWS];
    double gap[3] = {0}, size[3] = {0};

    r.dim = 384;
    t_vector(&rng, T_NORMAL, query, r.dim);
    make(&rng, &r, query);
    for (size_t i = 0, stride = vec_halves_stride(r.dim); i < ROWS; i++) {
        uint8_t record[1024];

        t_vector(&rng, T_NORMAL, r.x[i], r.dim);
        vec_plane_encode(r.x[i], vec_norm_f32(r.x[i], r.dim), r.dim, record);
        vec_halves_split(r.x[i], r.dim, record, r.half[0] + i * stride, r.half[1] + i * stride);
    }
    for (int metric = 0; metric < 3; metric++) {
        vec_plane_extent all = {r.half[0], r.half[1], 0, ROWS};

        assert_int_equal(vec_bounds(metric, query, r.dim, &all, 1, NULL, low, high, NULL, NULL),
                         VEC_OK);
        for (size_t i = 0; i < ROWS; i++) {
            gap[metric] += (double)(high[i] - low[i]) / ROWS;
            size[metric] += (double)vec_norm_f32(r.x[i], r.dim) *
                            (double)vec_norm_f32(query, r.dim) / ROWS;
        }
    }
    printf("# report: mean gap between the bounds: cosine %.4f, l2 %.3f, ip %.4f of the lengths\n",
           gap[VEC_COSINE], gap[VEC_L2], gap[VEC_IP] / size[VEC_IP]);
    assert_true(gap[VEC_COSINE] < 0.04);
    assert_true(gap[VEC_L2] < 0.8);
    assert_true(gap[VEC_IP] < 0.04 * size[VEC_IP]);
    free(r.half[0]);
    free(r.half[1]);
}

static int halt(void *ctx)
{
    return ++*(int *)ctx > 0;
}

static void says_no(void **state)
{
    (void)state;
    t_rng rng = t_rng_start(143);
    static float query[DIM_MAX], low[ROWS * 4], high[ROWS * 4];
    static rows r;
    vec_plane_extent part[4];
    int asked = 0;

    r.dim = DIM_MAX;
    t_vector(&rng, T_NORMAL, query, r.dim);
    make(&rng, &r, query);
    for (uint64_t i = 0; i < 4; i++)
        part[i] = (vec_plane_extent){r.half[0], r.half[1], i * ROWS, ROWS};
    assert_int_equal(vec_bounds(VEC_COSINE, query, r.dim, part, 4, NULL, low, high, halt, &asked),
                     VEC_ABORT);
    assert_int_equal(asked, 1);
    assert_int_equal(vec_bounds(7, query, r.dim, part, 1, NULL, low, high, NULL, NULL), VEC_MISUSE);
    assert_int_equal(vec_bounds(VEC_L2, query, 0, part, 1, NULL, low, high, NULL, NULL),
                     VEC_MISUSE);
    assert_int_equal(vec_bounds(VEC_L2, query, 1 << 20, part, 1, NULL, low, high, NULL, NULL),
                     VEC_LIMIT);
    assert_int_equal(vec_bounds(VEC_L2, query, r.dim, NULL, 0, NULL, low, high, NULL, NULL),
                     VEC_OK);
    free(r.half[0]);
    free(r.half[1]);
}

static int run(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_hold),
        cmocka_unit_test(bounds_are_close),
        cmocka_unit_test(says_no),
    };

    vec_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return t_levels_run(t_levels_all, run);
}
