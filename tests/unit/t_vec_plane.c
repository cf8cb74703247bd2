/*
 * t_vec_plane.c - records of 8-bit codes: their bytes, their kernels, and that no bound is too high
 *
 * Runs once for every level. The kernels of all levels must give the same bits; the bounds must
 * hold for the distances of the level's own f32 kernels.
 *
 * SPDX-License-Identifier: MIT
 */
#include "t_guard.h"
#include "t_levels.h"
#include "t_rng.h"
#include "t_vectors.h"
#include "vec.h"
#include "vec_limits.h"
#include "vec_plane.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define DIM_MAX  1536
#define ROWS_MAX 70

static float get_f32(const uint8_t *p)
{
    uint32_t bits = (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
                    (uint32_t)p[3] << 24;
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

static size_t some_dim(t_rng *r)
{
    static const size_t usual[] = {384, 512, 768, 1000, 1536};

    return t_rng_below(r, 20) ? 1 + t_rng_below(r, 70) : usual[t_rng_below(r, 5)];
}

static void prepare(int metric, const float *query, size_t dim, vec_plane_query *q)
{
    void *scratch = malloc(vec_plane_scratch(dim));

    assert_non_null(scratch);
    vec_plane_prepare(metric, query, vec_norm_f32(query, dim), dim, scratch, q);
}

static void release(vec_plane_query *q)
{
    free(q->code);
}

/* --------------------------------------------------------------------------------------- bytes */

static void layout(void **state)
{
    (void)state;
    const float x[5] = {1, -0.5f, 0, 0.25f, -1};
    uint8_t r[32];

    assert_int_equal(vec_plane_stride(1), 32);
    assert_int_equal(vec_plane_stride(16), 32);
    assert_int_equal(vec_plane_stride(17), 48);
    assert_int_equal(vec_plane_stride(384), 400);
    memset(r, 0xee, sizeof r);
    vec_plane_encode(x, vec_norm_f32(x, 5), 5, r);
    static const uint8_t codes[16] = {255, 64,  128, 160, 1,   128, 128, 128,
                                      128, 128, 128, 128, 128, 128, 128, 128};
    assert_memory_equal(r + 16, codes, sizeof codes);
    double c2 = 127.0 * 127 * 2 + 64 * 64 + 32 * 32, dot = 127 * 2 + 32 + 8;
    double cosine = dot / sqrt(c2 * 2.3125);
    assert_true(get_f32(r) == vec_norm_f32(x, 5));
    assert_true(fabs(get_f32(r + 4) * sqrt(c2) - 1) < 1e-6);
    assert_true(fabs(get_f32(r + 8) - cosine) < 1e-7);
    assert_true(get_f32(r + 12) >= sqrt(1 - cosine * cosine));
    assert_true(get_f32(r + 12) <= sqrt(1 - cosine * cosine) + 1e-6);
}

static void rows_that_bound_nothing(void **state)
{
    (void)state;
    const float zero[3] = {0, -0.0f, 0}, odd[3] = {1, INFINITY, 2}, nan[3] = {1, NAN, 2};
    const float *const rows[4] = {NULL, zero, odd, nan};
    uint8_t r[32], codes[16];

    memset(codes, 128, sizeof codes);
    for (size_t i = 0; i < 4; i++) {
        float norm = rows[i] ? vec_norm_f32(rows[i], 3) : 1;
        memset(r, 0xee, sizeof r);
        vec_plane_encode(rows[i], norm, 3, r);
        assert_memory_equal(r + 16, codes, sizeof codes);
        assert_true(get_f32(r + 4) == 0 && get_f32(r + 8) == 1 && get_f32(r + 12) == 1);
        assert_true(rows[i] && !isnan(norm) ? get_f32(r) == norm : isnan(get_f32(r)));
    }
}

/* Neither the vector nor the record is touched beyond its end, and the record does not depend on
 * what was there. */
static void encode_keeps_within(void **state)
{
    (void)state;
    t_rng rng = t_rng_start(11);

    for (size_t dim = 1; dim <= 130; dim++) {
        t_guard x = t_guard_new(dim * sizeof(float));
        t_guard r = t_guard_new(vec_plane_stride(dim));
        uint8_t *again = malloc(r.n);

        assert_non_null(again);
        memset(again, 0xa5, r.n);
        t_vector(&rng, (int)(dim % T_KINDS), (float *)(void *)x.p, dim);
        float norm = vec_norm_f32((const float *)(const void *)x.p, dim);
        vec_plane_encode((const float *)(const void *)x.p, norm, dim, r.p);
        vec_plane_encode((const float *)(const void *)x.p, norm, dim, again);
        assert_memory_equal(r.p, again, r.n);
        free(again);
        t_guard_free(&x);
        t_guard_free(&r);
    }
}

/* ------------------------------------------------------------------------------------- kernels */

static int64_t dot(const vec_plane_query *q, const uint8_t *record)
{
    int64_t s = 0;

    for (size_t j = 0; j < q->dim; j++)
        s += ((int64_t)record[16 + j] - 128) * q->code[j];
    return s;
}

/* n records of any bytes at the end of a guarded buffer, in any order. */
static t_guard any_records(t_rng *rng, size_t dim, size_t n, const uint8_t **rows)
{
    size_t stride = vec_plane_stride(dim);
    t_guard g = t_guard_new(n * stride);

    t_rng_fill(rng, g.p, g.n);
    for (size_t i = 0; i < n; i++) {
        uint8_t *r = g.p + i * stride;
        if (t_rng_below(rng, 4))
            memset(r + 16 + dim, 128, stride - 16 - dim);
        if (t_rng_below(rng, 8) == 0)
            memset(r + 16, t_rng_below(rng, 2) ? 0 : 255, dim);
        rows[i] = r;
    }
    for (size_t i = n; i > 1; i--) {
        size_t j = t_rng_below(rng, i);
        const uint8_t *t = rows[i - 1];
        rows[i - 1] = rows[j];
        rows[j] = t;
    }
    return g;
}

static void check_dots(t_rng *rng, size_t dim, size_t n)
{
    const uint8_t *rows[ROWS_MAX];
    float *query = malloc(dim * sizeof *query);
    t_guard records = any_records(rng, dim, n, rows), out = t_guard_new(n * sizeof(int32_t));
    int32_t *got = (int32_t *)(void *)out.p;
    vec_plane_query q;

    assert_non_null(query);
    t_vector(rng, (int)t_rng_below(rng, T_KINDS), query, dim);
    prepare((int)t_rng_below(rng, 3), query, dim, &q);
    for (size_t k = 0; vec_plane_kern_name(k) != NULL; k++) {
        const vec_plane_kernels *kern = vec_plane_kern_level(vec_plane_kern_name(k));
        memset(got, 0x5a, out.n);
        kern->dots(&q, rows, n, got);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(got[i], dot(&q, rows[i]));
    }
    release(&q);
    free(query);
    t_guard_free(&records);
    t_guard_free(&out);
}

static void dots_are_exact(void **state)
{
    (void)state;
    t_rng rng = t_rng_start(12);

    for (size_t dim = 1; dim <= 200; dim++)
        check_dots(&rng, dim, t_rng_below(&rng, ROWS_MAX));
    for (size_t n = 0; n < ROWS_MAX; n++)
        check_dots(&rng, some_dim(&rng), n);
    check_dots(&rng, 4096, 5);
    check_dots(&rng, 16384, 5);
    check_dots(&rng, VEC_PLANE_DIM_MAX, 5);
}

/* Four queries at once, where a level has that. */
static void check_products(t_rng *rng, size_t dim, size_t n, int extreme)
{
    const uint8_t *rows[ROWS_MAX];
    size_t stride = (dim + VEC_PLANE_QUERY_PAD - 1) / VEC_PLANE_QUERY_PAD * VEC_PLANE_QUERY_PAD;
    size_t codes = vec_plane_stride(dim) - VEC_PLANE_CODES;
    t_guard records = any_records(rng, dim, n, rows), q = t_guard_new(4 * stride);
    t_guard out = t_guard_new(4 * n * sizeof(int32_t));
    int32_t *got = (int32_t *)(void *)out.p;

    memset(q.p, 0, q.n);
    for (size_t i = 0; i < 4; i++)
        for (size_t j = 0; j < dim; j++)
            ((int8_t *)q.p)[i * stride + j] = extreme ? -128
                                                      : (int8_t)((int)t_rng_below(rng, 256) - 128);
    for (size_t k = 0; vec_plane_kern_name(k) != NULL; k++) {
        const vec_plane_kernels *kern = vec_plane_kern_level(vec_plane_kern_name(k));

        if (!kern->products)
            continue;
        memset(got, 0x5a, out.n);
        kern->products((int8_t *)q.p, stride, codes, rows, n, got);
        for (size_t i = 0; i < 4 * n; i++) {
            int64_t want = 0;

            for (size_t j = 0; j < dim; j++)
                want += ((int64_t)rows[i % n][VEC_PLANE_CODES + j] - 128) *
                        ((int8_t *)q.p)[i / n * stride + j];
            assert_int_equal(got[i], want);
        }
    }
    t_guard_free(&records);
    t_guard_free(&q);
    t_guard_free(&out);
}

static void products_are_exact(void **state)
{
    (void)state;
    t_rng rng = t_rng_start(17);

    for (size_t dim = 1; dim <= 200; dim++)
        check_products(&rng, dim, 1 + t_rng_below(&rng, ROWS_MAX - 1), 0);
    for (size_t n = 1; n < ROWS_MAX; n++)
        check_products(&rng, some_dim(&rng), n, 0);
    check_products(&rng, VEC_PLANE_DIM_MAX, 5, 0);
    check_products(&rng, VEC_PLANE_DIM_MAX, 5, 1);
}

/* The largest sums there can be: every code and every component at its limit. */
static void dots_at_the_limit(void **state)
{
    (void)state;
    static const size_t dims[] = {1, 64, 2048, 2049, 16384, VEC_PLANE_DIM_MAX};

    for (size_t d = 0; d < sizeof dims / sizeof *dims; d++) {
        size_t dim = dims[d];
        float *query = malloc(dim * sizeof *query);
        uint8_t *record = malloc(vec_plane_stride(dim));
        const uint8_t *rows[5] = {record, record, record, record, record};
        int32_t got[5];
        vec_plane_query q;

        assert_true(query != NULL && record != NULL);
        for (size_t i = 0; i < dim; i++)
            query[i] = -2;
        prepare(VEC_COSINE, query, dim, &q);
        memset(record, 0, vec_plane_stride(dim));
        assert_true(dot(&q, record) > 0 && dot(&q, record) <= INT32_MAX);
        for (size_t k = 0; vec_plane_kern_name(k) != NULL; k++) {
            vec_plane_kern_level(vec_plane_kern_name(k))->dots(&q, rows, 5, got);
            for (size_t i = 0; i < 5; i++)
                assert_int_equal(got[i], dot(&q, record));
        }
        release(&q);
        free(query);
        free(record);
    }
}

static float odd_float(t_rng *rng)
{
    static const float odd[] = {0,   -0.0f,  1,     -1,       INFINITY, -INFINITY,
                                NAN, 1e-45f, 3e38f, 0x1p-60f, 0x1p60f,  0.9999f};
    uint32_t bits = (uint32_t)t_rng_next(rng);
    float x = odd[t_rng_below(rng, sizeof odd / sizeof *odd)];

    if (t_rng_below(rng, 2))
        memcpy(&x, &bits, sizeof x);
    return x;
}

/* Records of proper vectors; of every third one or more fields of the header are anything. */
static void fill_records(t_rng *rng, size_t dim, size_t n, uint8_t *records, const uint8_t **rows)
{
    size_t stride = vec_plane_stride(dim);
    float x[DIM_MAX];

    for (size_t i = 0; i < n; i++) {
        t_vector(rng, t_rng_below(rng, 2) ? T_NORMAL : (int)t_rng_below(rng, T_KINDS), x, dim);
        rows[i] = records + i * stride;
        vec_plane_encode(t_rng_below(rng, 9) ? x : NULL, vec_norm_f32(x, dim), dim,
                         records + i * stride);
        for (size_t f = 0; t_rng_below(rng, 3) == 0 && f < 4; f++) {
            float odd = odd_float(rng);
            memcpy(records + i * stride + 4 * f, &odd, sizeof odd);
        }
    }
}

static void check_lows(t_rng *rng, size_t dim, size_t n)
{
    const uint8_t *rows[ROWS_MAX];
    int32_t dots[ROWS_MAX];
    float want[ROWS_MAX], query[DIM_MAX];
    t_guard records = t_guard_new(n * vec_plane_stride(dim));
    t_guard out = t_guard_new(n * sizeof(float));
    const vec_plane_kernels *scalar = vec_plane_kern_level("scalar");
    vec_plane_query q;

    fill_records(rng, dim, n, records.p, rows);
    t_vector(rng, t_rng_below(rng, 2) ? T_NORMAL : (int)t_rng_below(rng, T_KINDS), query, dim);
    prepare((int)t_rng_below(rng, 3), query, dim, &q);
    scalar->dots(&q, rows, n, dots);
    float least = scalar->lows(&q, rows, dots, n, want), seen = INFINITY;
    for (size_t i = 0; i < n; i++) {
        assert_false(isnan(want[i]));
        assert_true(!isnan(get_f32(rows[i])) || want[i] == INFINITY);
        seen = want[i] < seen ? want[i] : seen;
    }
    assert_true(seen == least);
    for (size_t k = 0; vec_plane_kern_name(k) != NULL; k++) {
        const vec_plane_kernels *kern = vec_plane_kern_level(vec_plane_kern_name(k));
        memset(out.p, 0x5a, out.n);
        assert_true(kern->lows(&q, rows, dots, n, (float *)(void *)out.p) == least);
        if (n > 0)
            assert_memory_equal(out.p, want, out.n);
    }
    release(&q);
    t_guard_free(&records);
    t_guard_free(&out);
}

static void lows_have_the_same_bits(void **state)
{
    (void)state;
    t_rng rng = t_rng_start(13);

    for (size_t round = 0; round < 30; round++)
        for (size_t n = 0; n < ROWS_MAX; n++)
            check_lows(&rng, some_dim(&rng), n);
}

static void levels_are_named(void **state)
{
    (void)state;
    size_t n = 0;

    while (vec_plane_kern_name(n) != NULL)
        n++;
    assert_true(n >= 1);
    assert_string_equal(vec_plane_kern_name(0), "scalar");
    assert_string_equal(vec_plane_kern_name(n - 1), vec_plane_kern()->level);
    assert_null(vec_plane_kern_level("abacus"));
    char off[64];
    snprintf(off, sizeof off, ",%s,", getenv("VEC_DISABLE"));
    for (size_t i = 1; i < n; i++) {
        char name[32];
        snprintf(name, sizeof name, ",%s,", vec_plane_kern_name(i));
        assert_null(strstr(off, name));
    }
    printf("# plane kernels: %s, f32 kernels: %s\n", vec_plane_kern()->level, vec_kern()->level);
}

/* -------------------------------------------------------------------------------------- bounds */

static const char *const metric_name[] = {"cosine", "l2", "ip"};

/* The bound of x with the level in use. */
static float bound(const vec_plane_query *q, const float *x, float norm, size_t dim)
{
    static uint8_t record[VEC_PLANE_CODES + VEC_PLANE_DIM_MAX];
    const uint8_t *row = record;
    int32_t d;
    float low;

    vec_plane_encode(x, norm, dim, record);
    vec_plane_kern()->dots(q, &row, 1, &d);
    vec_plane_kern()->lows(q, &row, &d, 1, &low);
    return low;
}

static void holds(const vec_plane_query *q, const float *query, const float *x, size_t dim)
{
    float norm = vec_norm_f32(x, dim);
    float low = bound(q, x, norm, dim);
    double d = vec_distance(q->metric, query, q->norm, x, norm, dim);

    if (isnan(d) || (double)low <= d)
        return;
    print_error("%s, dim %zu: bound %.9g, distance %.17g, norms %g %g\n", metric_name[q->metric],
                dim, (double)low, d, (double)q->norm, (double)norm);
    for (size_t i = 0; i < dim && i < 8; i++)
        print_error("    %a %a\n", (double)query[i], (double)x[i]);
    fail();
}

/* Queries of one kind against rows of another and against rows like the query. */
static void bounds_hold(void **state)
{
    (void)state;
    t_rng rng = t_rng_start(14);
    float query[DIM_MAX], x[DIM_MAX];

    for (size_t round = 0; round < 12000 / T_SHARE; round++) {
        size_t dim = some_dim(&rng);
        int kind = (int)t_rng_below(&rng, T_KINDS);
        t_vector(&rng, kind, query, dim);
        for (int metric = 0; metric < 3; metric++) {
            vec_plane_query q;
            prepare(metric, query, dim, &q);
            for (size_t i = 0; i < 24; i++) {
                if (i % 2)
                    t_vector(&rng, i % 4 == 1 ? kind : (int)t_rng_below(&rng, T_KINDS), x, dim);
                else
                    t_vector_like(&rng, query, x, dim);
                holds(&q, query, x, dim);
            }
            release(&q);
        }
    }
}

/* The components of two vectors at which rounding to codes does the most harm: each just beside
 * the middle between two codes, all errors in the query's direction or against it. */
static void bounds_hold_at_the_worst(void **state)
{
    (void)state;
    t_rng rng = t_rng_start(15);
    float query[DIM_MAX], x[DIM_MAX];

    for (size_t round = 0; round < 3000 / T_SHARE; round++) {
        size_t dim = 2 + some_dim(&rng) % (DIM_MAX - 1);
        float scale = ldexpf(1, (int)t_rng_below(&rng, 40) - 20);
        for (size_t i = 0; i < dim; i++) {
            float side = t_rng_below(&rng, 2) ? 0.4999f : -0.4999f;
            query[i] = side + 0.01f * t_rng_normal(&rng);
            x[i] = scale * ((float)t_rng_below(&rng, 253) - 126 + (round % 2 ? side : -side));
        }
        x[0] = 127 * scale;
        for (int metric = 0; metric < 3; metric++) {
            vec_plane_query q;
            prepare(metric, query, dim, &q);
            holds(&q, query, x, dim);
            holds(&q, query, query, dim);
            release(&q);
        }
    }
}

static void bounds_hold_in_many_dimensions(void **state)
{
    (void)state;
    t_rng rng = t_rng_start(16);
    static const size_t dims[] = {4096, 16384, VEC_PLANE_DIM_MAX};
    static float query[VEC_PLANE_DIM_MAX], x[VEC_PLANE_DIM_MAX];

    for (size_t d = 0; d < 3; d++)
        for (int kind = 0; kind < T_KINDS; kind++)
            for (int metric = 0; metric < 3; metric++) {
                vec_plane_query q;
                t_vector(&rng, kind, query, dims[d]);
                prepare(metric, query, dims[d], &q);
                t_vector_like(&rng, query, x, dims[d]);
                holds(&q, query, x, dims[d]);
                t_vector(&rng, kind, x, dims[d]);
                holds(&q, query, x, dims[d]);
                holds(&q, query, query, dims[d]);
                release(&q);
            }
}

/* A bound that is always right may still be worth nothing. For usual vectors the gap between bound
 * and distance follows from 8 bits: sin of some 0.007, times the sine of the angle to the query. */
static void bounds_are_close(void **state)
{
    (void)state;
    t_rng rng = t_rng_start(17);
    float query[384], x[384];
    double worst = 0, mean = 0; // of the gap as a share of the sine, where that is not small

    for (size_t round = 0; round < 2000; round++) {
        vec_plane_query q;
        double share = 0.97 * t_rng_unit(&rng), sine, gap;
        t_vector(&rng, T_NORMAL, query, 384);
        t_vector(&rng, T_NORMAL, x, 384);
        for (size_t i = 0; i < 384; i++)
            x[i] = (float)(share * query[i] + (1 - share) * x[i]);
        float nq = vec_norm_f32(query, 384), nx = vec_norm_f32(x, 384);
        double d = vec_distance(VEC_COSINE, query, nq, x, nx, 384);
        prepare(VEC_COSINE, query, 384, &q);
        gap = d - (double)bound(&q, x, nx, 384);
        sine = sqrt(1 - (1 - d) * (1 - d));
        assert_true(gap < 0.016 * sine + 4e-4);
        worst = fmax(worst, sine > 0.1 ? gap / sine : 0);
        mean += gap / sine / 2000;
        release(&q);

        prepare(VEC_IP, query, 384, &q);
        gap = vec_distance(VEC_IP, query, nq, x, nx, 384) - (double)bound(&q, x, nx, 384);
        assert_true(gap < 0.016 * (double)nq * (double)nx);
        release(&q);
        prepare(VEC_L2, query, 384, &q);
        gap = vec_distance(VEC_L2, query, nq, x, nx, 384) - (double)bound(&q, x, nx, 384);
        assert_true(gap < 0.016 * (double)(nq + nx));
        release(&q);
    }
    printf("# report: gap between bound and distance, share of the sine: mean %.4f, worst %.4f\n",
           mean, worst);
    assert_true(mean < 0.01);
    assert_true(worst < 0.02);
}

static int run(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_are_named),
        cmocka_unit_test(layout),
        cmocka_unit_test(rows_that_bound_nothing),
        cmocka_unit_test(encode_keeps_within),
        cmocka_unit_test(dots_are_exact),
        cmocka_unit_test(products_are_exact),
        cmocka_unit_test(dots_at_the_limit),
        cmocka_unit_test(lows_have_the_same_bits),
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
