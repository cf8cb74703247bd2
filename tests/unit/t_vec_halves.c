/*
 * t_vec_halves.c - planes in two halves: their bytes, their kernel, and that no bound is too high
 *
 * Runs once for every level. Products must be the same numbers at all levels; the bounds must hold
 * for the distances of the level's own f32 kernels.
 *
 * SPDX-License-Identifier: MIT
 */
#include "t_guard.h"
#include "t_levels.h"
#include "t_rng.h"
#include "t_vectors.h"
#include "vec.h"
#include "vec_halves.h"
#include "vec_limits.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define DIM_MAX  1536
#define ROWS_MAX 64

static size_t some_dim(t_rng *r)
{
    static const size_t usual[] = {384, 512, 768, 1000, 1536};

    return t_rng_below(r, 20) ? 1 + t_rng_below(r, 70) : usual[t_rng_below(r, 5)];
}

/* --------------------------------------------------------------------------------------- bytes */

static void layout(void **state)
{
    (void)state;
    float x[33] = {127, -127, 3, 0};
    uint8_t record[64], coarse[64], fine[64];

    assert_int_equal(vec_halves_stride(1), 32);
    assert_int_equal(vec_halves_stride(32), 32);
    assert_int_equal(vec_halves_stride(33), 48);
    assert_int_equal(vec_halves_stride(384), 208);
    x[16] = 20;
    x[32] = -16;
    vec_plane_encode(x, vec_norm_f32(x, 33), 33, record);
    vec_halves_split(x, 33, record, coarse, fine);
    assert_memory_equal(fine, record, 16);
    assert_memory_equal(coarse, record, 4);
    assert_int_equal(coarse[16], 0xf | 0x9 << 4); // 255 and 128 + 20 = 0x94
    assert_int_equal(fine[16], 0xf | 0x4 << 4);
    assert_int_equal(coarse[17], 0x0 | 0x8 << 4); // 1 and 128
    assert_int_equal(fine[17], 0x1);
    assert_int_equal(coarse[18], 0x8 | 0x8 << 4);
    assert_int_equal(fine[18], 0x3);
    assert_int_equal(coarse[32], 0x7 | 0x8 << 4); // the second unit: 128 - 16, and what pads
    assert_int_equal(fine[32], 0x0);
}

/* Splitting and joining gives the record back, and nothing outside is read or written. */
static void splits_and_joins(void **state)
{
    (void)state;
    t_rng rng = t_rng_start(41);

    for (size_t dim = 1; dim <= 300; dim++) {
        size_t stride = vec_halves_stride(dim), whole = vec_plane_stride(dim);
        t_guard x = t_guard_new(dim * sizeof(float)), record = t_guard_new(whole);
        t_guard coarse = t_guard_new(stride), fine = t_guard_new(stride), back = t_guard_new(whole);
        float *v = (float *)(void *)x.p;
        int none = t_rng_below(&rng, 16) == 0;

        t_vector(&rng, (int)t_rng_below(&rng, T_KINDS), v, dim);
        vec_plane_encode(none ? NULL : v, vec_norm_f32(v, dim), dim, record.p);
        vec_halves_split(none ? NULL : v, dim, record.p, coarse.p, fine.p);
        vec_halves_join(coarse.p, fine.p, dim, back.p);
        assert_memory_equal(back.p, record.p, whole);
        assert_int_equal(vec_plane_has_vector(coarse.p), !none);
        t_guard_free(&x), t_guard_free(&record);
        t_guard_free(&coarse), t_guard_free(&fine), t_guard_free(&back);
    }
}

/* ------------------------------------------------------------------------------------- products */

static int32_t product(const int8_t *a, const int8_t *b, size_t bytes, const uint8_t *row)
{
    int32_t s = 0;

    for (size_t j = 0; j < bytes; j++)
        s += (row[16 + j] & 15) * a[j] + (row[16 + j] >> 4) * b[j];
    return s;
}

static void check_nibbles(t_rng *rng, size_t bytes, size_t n, int extreme)
{
    size_t padded = (bytes + 63) / 64 * 64;
    t_guard a = t_guard_new(padded), b = t_guard_new(padded);
    t_guard records = t_guard_new(n * (16 + bytes)), out = t_guard_new(n * sizeof(int32_t));
    const uint8_t *rows[ROWS_MAX];
    int32_t *got = (int32_t *)(void *)out.p;

    memset(a.p, 0, padded), memset(b.p, 0, padded);
    t_rng_fill(rng, a.p, bytes), t_rng_fill(rng, b.p, bytes);
    t_rng_fill(rng, records.p, records.n);
    if (extreme) {
        memset(a.p, extreme > 0 ? 127 : 128, bytes), memset(b.p, extreme > 0 ? 127 : 128, bytes);
        memset(records.p, 255, records.n);
    }
    for (size_t i = 0; i < n; i++)
        rows[i] = records.p + t_rng_below(rng, n) * (16 + bytes);
    for (size_t k = 0; vec_plane_kern_name(k) != NULL; k++) {
        memset(got, 0x5a, out.n);
        vec_plane_kern_level(vec_plane_kern_name(k))
            ->nibbles((int8_t *)a.p, (int8_t *)b.p, bytes, rows, n, got);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(got[i], product((int8_t *)a.p, (int8_t *)b.p, bytes, rows[i]));
    }
    t_guard_free(&a), t_guard_free(&b), t_guard_free(&records), t_guard_free(&out);
}

static void products_are_exact(void **state)
{
    (void)state;
    t_rng rng = t_rng_start(42);

    for (size_t bytes = 16; bytes <= 512; bytes += 16)
        for (int extreme = -1; extreme <= 1; extreme++)
            check_nibbles(&rng, bytes, 1 + t_rng_below(&rng, ROWS_MAX), extreme);
    for (size_t n = 0; n <= ROWS_MAX; n++)
        check_nibbles(&rng, 192, n, 0);
    for (int extreme = -1; extreme <= 1; extreme++)
        check_nibbles(&rng, VEC_PLANE_DIM_MAX / 2, 3, extreme);
}

/* --------------------------------------------------------------------------------------- bounds */

static void prepare(int metric, const float *query, size_t dim, vec_halves_query *q)
{
    void *scratch = malloc(vec_halves_scratch(dim));

    assert_non_null(scratch);
    vec_halves_prepare(metric, query, vec_norm_f32(query, dim), dim, scratch, q);
}

static void release(vec_halves_query *q, size_t dim)
{
    // the scratch begins with the wide codes, in front of the rows of bytes
    size_t row = (((dim + 31) / 32 * 16) + 63) / 64 * 64;

    free((uint8_t *)(uintptr_t)q->code[0] - 4 * row);
}

typedef struct bounds {
    float coarse, fine, sharp;
} bounds;

static bounds bound(const vec_halves_query *q, const float *query, const float *x, float norm,
                    size_t dim)
{
    static uint8_t record[VEC_PLANE_CODES + VEC_PLANE_DIM_MAX];
    static uint8_t half[2][VEC_PLANE_CODES + VEC_PLANE_DIM_MAX / 2];
    const uint8_t *coarse = half[0], *fine = half[1];
    bounds b;

    vec_plane_encode(x, norm, dim, record);
    vec_halves_split(x, dim, record, half[0], half[1]);
    assert_true(vec_halves_coarse(q, &coarse, 1, &b.coarse) == b.coarse);
    assert_true(vec_halves_fine(q, &coarse, &fine, 1, &b.fine) == b.fine);
    void *scratch = malloc(vec_halves_sharp_scratch(dim));
    vec_halves_sharp s;
    assert_non_null(scratch);
    vec_halves_sharpen(q->q.metric, query, q->q.norm, dim, scratch, &s);
    b.sharp = vec_halves_sharp_bound(&s, coarse, fine);
    free(scratch);
    return b;
}

static void holds(const vec_halves_query *q, const float *query, const float *x, size_t dim)
{
    float norm = vec_norm_f32(x, dim);
    bounds b = bound(q, query, x, norm, dim);
    double d = vec_distance(q->q.metric, query, q->q.norm, x, norm, dim);

    if (isnan(d) || ((double)b.coarse <= d && (double)b.fine <= d && (double)b.sharp <= d))
        return;
    print_error("metric %d, dim %zu: bounds %.9g %.9g %.9g, distance %.17g, norms %g %g\n",
                q->q.metric, dim, (double)b.coarse, (double)b.fine, (double)b.sharp, d,
                (double)q->q.norm, (double)norm);
    fail();
}

static void bounds_hold(void **state)
{
    (void)state;
    t_rng rng = t_rng_start(43);
    float query[DIM_MAX], x[DIM_MAX];

    for (size_t round = 0; round < 6000 / T_SHARE; round++) {
        size_t dim = some_dim(&rng);
        int kind = (int)t_rng_below(&rng, T_KINDS);

        t_vector(&rng, kind, query, dim);
        for (int metric = 0; metric < 3; metric++) {
            vec_halves_query q;

            prepare(metric, query, dim, &q);
            for (size_t i = 0; i < 16; i++) {
                if (i % 2)
                    t_vector(&rng, i % 4 == 1 ? kind : (int)t_rng_below(&rng, T_KINDS), x, dim);
                else
                    t_vector_like(&rng, query, x, dim);
                holds(&q, query, x, dim);
            }
            release(&q, dim);
        }
    }
}

/* Each component just beside the border between two coarse codes, all errors in the query's
 * direction or against it. */
static void bounds_hold_at_the_worst(void **state)
{
    (void)state;
    t_rng rng = t_rng_start(44);
    float query[DIM_MAX], x[DIM_MAX];

    for (size_t round = 0; round < 3000 / T_SHARE; round++) {
        size_t dim = 2 + some_dim(&rng) % (DIM_MAX - 1);
        float scale = ldexpf(1, (int)t_rng_below(&rng, 40) - 20);

        for (size_t i = 0; i < dim; i++) {
            float side = t_rng_below(&rng, 2) ? 7.49f : -7.49f;

            query[i] = side + 0.1f * t_rng_normal(&rng);
            x[i] = scale *
                   (16 * ((float)t_rng_below(&rng, 15) - 7) + (round % 2 ? side : -side) - 0.5f);
        }
        x[0] = 127 * scale;
        for (int metric = 0; metric < 3; metric++) {
            vec_halves_query q;

            prepare(metric, query, dim, &q);
            holds(&q, query, x, dim);
            holds(&q, query, query, dim);
            release(&q, dim);
        }
    }
}

static void bounds_hold_in_many_dimensions(void **state)
{
    (void)state;
    t_rng rng = t_rng_start(45);
    static float query[VEC_PLANE_DIM_MAX], x[VEC_PLANE_DIM_MAX];
    static const size_t dims[] = {4096, 16384, VEC_PLANE_DIM_MAX};

    for (size_t d = 0; d < 3; d++)
        for (int kind = 0; kind < T_KINDS; kind++)
            for (int metric = 0; metric < 3; metric++) {
                vec_halves_query q;

                t_vector(&rng, kind, query, dims[d]);
                prepare(metric, query, dims[d], &q);
                t_vector_like(&rng, query, x, dims[d]);
                holds(&q, query, x, dims[d]);
                t_vector(&rng, kind, x, dims[d]);
                holds(&q, query, x, dims[d]);
                release(&q, dims[d]);
            }
}

/* A bound that is always right may still be worth nothing. */
static void bounds_are_close(void **state)
{
    (void)state;
    t_rng rng = t_rng_start(46);
    float query[384], x[384];
    double coarse = 0, fine = 0, sharp = 0;

    for (size_t round = 0; round < 1000; round++) {
        vec_halves_query q;
        double share = 0.9 * t_rng_unit(&rng), sine;

        t_vector(&rng, T_NORMAL, query, 384);
        t_vector(&rng, T_NORMAL, x, 384);
        for (size_t i = 0; i < 384; i++)
            x[i] = (float)(share * query[i] + (1 - share) * x[i]);
        float nq = vec_norm_f32(query, 384), nx = vec_norm_f32(x, 384);
        double d = vec_distance(VEC_COSINE, query, nq, x, nx, 384);
        prepare(VEC_COSINE, query, 384, &q);
        bounds b = bound(&q, query, x, nx, 384);
        sine = sqrt(1 - (1 - d) * (1 - d));
        assert_true(d - (double)b.coarse < 0.22 * sine + 0.02);
        assert_true(d - (double)b.fine < 0.016 * sine + 0.012);
        assert_true(d - (double)b.sharp < 0.016 * sine + 4e-4);
        sharp += (d - (double)b.sharp) / 1000;
        coarse += (d - (double)b.coarse) / 1000;
        fine += (d - (double)b.fine) / 1000;
        release(&q, 384);
    }
    printf("# report: mean gap between bound and cosine distance: coarse %.4f, fine %.4f, sharp "
           "%.4f\n",
           coarse, fine, sharp);
    assert_true(coarse < 0.12);
    assert_true(fine < 0.015);
    assert_true(sharp < 0.01);
}

static int run(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layout),
        cmocka_unit_test(splits_and_joins),
        cmocka_unit_test(products_are_exact),
        cmocka_unit_test(bounds_hold),
        cmocka_unit_test(bounds_hold_at_the_worst),
        cmocka_unit_test(bounds_hold_in_many_dimensions),
        cmocka_unit_test(bounds_are_close),
    };

    vec_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return t_levels_run(t_levels_all, run);
}
