/*
 * t_vec_flat.c - distances are right over the whole range of floats, and the scan gives the same
 * bits for every row that is asked for, and touches no other
 *
 * The tests run once for each level of this machine, in a process of its own.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "t_guard.h"
#include "t_rng.h"
#include "vec.h"

static const int metrics[] = {VEC_COSINE, VEC_L2, VEC_IP};

/* The distance in long double, and what rounding in f32 may change of it. */
static long double truth(int metric, const float *a, const float *b, size_t dim, long double *slack)
{
    long double dot = 0, abs = 0, aa = 0, bb = 0, l2 = 0;

    for (size_t i = 0; i < dim; i++) {
        long double d = (long double)a[i] - b[i];

        dot += (long double)a[i] * b[i];
        abs += fabsl((long double)a[i] * b[i]);
        aa += (long double)a[i] * a[i];
        bb += (long double)b[i] * b[i];
        l2 += d * d;
    }
    switch (metric) {
    case VEC_COSINE:
        if (aa == 0 || bb == 0) {
            *slack = 0;
            return 1;
        }
        *slack = ((long double)dim + 3) * 0x1p-24L * abs / sqrtl(aa * bb) + 0x1p-22L;
        return 1 - dot / sqrtl(aa * bb);
    case VEC_L2:
        *slack = ((long double)dim + 4) * 0x1p-24L * sqrtl(l2);
        return sqrtl(l2);
    default:
        *slack = ((long double)dim + 3) * 0x1p-24L * abs;
        return -dot;
    }
}

static void distances_hold_over_the_whole_range(void **state)
{
    static const float scales[] = {1,        0x1p-149f, 0x1p-120f, 0x1p-75f,
                                   0x1p-50f, 0x1p50f,   0x1p63f,   0x1p120f};
    const size_t count = sizeof scales / sizeof *scales;
    t_rng r = t_rng_start(21);
    float a[300], b[300];

    (void)state;
    for (size_t round = 0; round < 4000; round++) {
        size_t dim = 1 + t_rng_below(&r, 300);
        float sa = scales[t_rng_below(&r, count)], sb = scales[t_rng_below(&r, count)];

        for (size_t i = 0; i < dim; i++) {
            a[i] = rintf(t_rng_normal(&r) * 8) * sa;
            b[i] = t_rng_below(&r, 9) ? rintf(t_rng_normal(&r) * 8) * sb : a[i];
        }
        for (size_t m = 0; m < 3; m++) {
            long double slack, want = truth(metrics[m], a, b, dim, &slack);
            double got = vec_distance(metrics[m], a, vec_norm_f32(a, dim), b, vec_norm_f32(b, dim),
                                      dim);

            assert_true(isfinite(got));
            assert_true(fabsl(got - want) <= slack);
            assert_true(metrics[m] != VEC_COSINE || (got >= 0 && got <= 2));
        }
    }
}

/* Rounding must not carry the cosine of a vector with itself out of 0..2. */
static void cosine_stays_in_its_range(void **state)
{
    t_rng r = t_rng_start(23);
    int below = 0, above = 0;

    (void)state;
    for (int round = 0; round < 2000; round++) {
        size_t dim = 1 + t_rng_below(&r, 300);
        float a[300], b[300], norm;
        double raw;

        for (size_t i = 0; i < dim; i++) {
            a[i] = t_rng_normal(&r);
            b[i] = -a[i];
        }
        norm = vec_norm_f32(a, dim);
        raw = vec_kern()->dot_f32(a, a, dim) / ((double)norm * norm);
        below += raw > 1;
        above += vec_kern()->dot_f32(a, b, dim) / ((double)norm * norm) < -1;
        assert_true(vec_distance(VEC_COSINE, a, norm, a, norm, dim) >= 0);
        assert_true(vec_distance(VEC_COSINE, a, norm, b, norm, dim) <= 2);
    }
    assert_true(below > 0 && above > 0); // else nothing was asked
}

static void special_distances(void **state)
{
    float zero[5] = {0}, one[5] = {1}, huge[5], minus[5];

    (void)state;
    for (int i = 0; i < 5; i++) {
        huge[i] = 0x1.fffffep127f;
        minus[i] = -huge[i];
    }
    assert_true(vec_distance(VEC_COSINE, zero, 0, one, 1, 5) == 1);
    assert_true(vec_distance(VEC_COSINE, one, 1, zero, 0, 5) == 1);
    assert_true(vec_distance(VEC_COSINE, zero, 0, zero, 0, 5) == 1);
    assert_true(vec_distance(VEC_COSINE, one, 1, one, 1, 5) == 0);
    assert_true(isnan(vec_distance(VEC_COSINE, one, NAN, one, 1, 5)));
    assert_true(isnan(vec_distance(VEC_COSINE, one, 1, zero, NAN, 5)));
    assert_true(isnan(vec_distance(3, one, 1, one, 1, 5)));
    // The length of these is beyond float, so that the norm is infinite.
    assert_true(fabs(vec_distance(VEC_COSINE, huge, vec_norm_f32(huge, 5), minus, INFINITY, 5) -
                     2) < 1e-12);
    assert_true(fabs(vec_distance(VEC_COSINE, huge, INFINITY, huge, INFINITY, 5)) < 1e-12);
    assert_true(isfinite(vec_distance(VEC_L2, huge, 0, minus, 0, 5)));
    assert_true(vec_distance(VEC_L2, huge, 0, huge, 0, 5) == 0);
    assert_true(isfinite(vec_distance(VEC_IP, huge, 0, minus, 0, 5)));
}

/* ----------------------------------------------------------------------------------------- scan */

#define UNTOUCHED 12345.0

typedef struct scene {
    size_t dim;
    uint64_t nrow; // rows, those between extents included
    float *query;
    float *values;
    float *norms;
    vec_extent *ext;
    size_t next;
    uint64_t *filter;
} scene;

/* Extents of 0 to 150 rows with gaps between them; some without vectors, some rows without. */
static scene scene_new(t_rng *r, int with_norms)
{
    scene s = {.dim = 1 + t_rng_below(r, 40), .next = t_rng_below(r, 9)};
    size_t rows = 150 * s.next;

    s.query = calloc(s.dim, sizeof(float));
    s.values = calloc(rows * s.dim + 1, sizeof(float));
    s.norms = calloc(rows + 1, sizeof(float));
    s.ext = calloc(s.next + 1, sizeof *s.ext);
    for (size_t i = 0; i < s.dim; i++)
        s.query[i] = t_rng_normal(r);
    for (size_t i = 0; i < rows * s.dim; i++)
        s.values[i] = t_rng_normal(r);
    for (size_t i = 0; i < rows; i++)
        s.norms[i] = t_rng_below(r, 9) ? vec_norm_f32(s.values + i * s.dim, s.dim) : NAN;
    for (size_t e = 0; e < s.next; e++) {
        s.nrow += t_rng_below(r, 2) ? t_rng_below(r, 70) : 0;
        s.ext[e].first = s.nrow;
        s.ext[e].n = t_rng_below(r, 151);
        s.ext[e].rows = t_rng_below(r, 7) ? s.values + 150 * e * s.dim : NULL;
        s.ext[e].norms = with_norms && s.ext[e].rows ? s.norms + 150 * e : NULL;
        s.nrow += s.ext[e].n;
    }
    s.filter = calloc(s.nrow / 64 + 1, sizeof(uint64_t));
    return s;
}

static void scene_free(scene *s)
{
    free(s->query);
    free(s->values);
    free(s->norms);
    free(s->ext);
    free(s->filter);
}

/* Random bits, in long or short stretches. */
static void scene_filter(scene *s, t_rng *r)
{
    uint64_t stretch = 1 + t_rng_below(r, t_rng_below(r, 2) ? 200 : 3), left = 0;
    int on = 0;

    memset(s->filter, 0, (s->nrow / 64 + 1) * sizeof *s->filter);
    for (uint64_t i = 0; i < s->nrow; i++) {
        if (left-- == 0) {
            left = t_rng_below(r, stretch);
            on = t_rng_below(r, 2) != 0;
        }
        s->filter[i / 64] |= (uint64_t)on << (i % 64);
    }
}

static void check_scan(const scene *s, int metric, const uint64_t *filter)
{
    double *out = malloc((s->nrow + 1) * sizeof *out), *want = malloc((s->nrow + 1) * sizeof *out);
    float norm_q = vec_norm_f32(s->query, s->dim);

    for (uint64_t i = 0; i <= s->nrow; i++)
        out[i] = want[i] = UNTOUCHED;
    for (size_t e = 0; e < s->next; e++) {
        const vec_extent *x = &s->ext[e];

        for (uint64_t i = 0; i < x->n; i++) {
            uint64_t row = x->first + i;
            float norm = x->norms ? x->norms[i] : 0;

            if (filter && !(filter[row / 64] >> row % 64 & 1))
                continue;
            want[row] = NAN;
            if (x->rows && !isnan(norm))
                want[row] = vec_distance(metric, s->query, norm_q, x->rows + i * s->dim, norm,
                                         s->dim);
        }
    }
    assert_int_equal(vec_scan(metric, s->query, s->dim, s->ext, s->next, filter, out, NULL, NULL),
                     VEC_OK);
    for (uint64_t i = 0; i <= s->nrow; i++)
        assert_true(isnan(want[i]) ? isnan(out[i]) : memcmp(&out[i], &want[i], sizeof *out) == 0);
    free(out);
    free(want);
}

static void scan_equals_distance(void **state)
{
    t_rng r = t_rng_start(22);

    (void)state;
    for (int round = 0; round < 150; round++) {
        int metric = metrics[round % 3];
        scene s = scene_new(&r, metric == VEC_COSINE || t_rng_below(&r, 2));

        check_scan(&s, metric, NULL);
        for (int f = 0; f < 4; f++) {
            scene_filter(&s, &r);
            check_scan(&s, metric, s.filter);
        }
        scene_free(&s);
    }
}

/* Rows, norms, filter and result end where memory ends. */
static void scan_stays_inside(void **state)
{
    enum { DIM = 9 };
    float q[DIM] = {1, 2, 3};

    (void)state;
    for (size_t n = 1; n < 200; n += 7) {
        t_guard rows = t_guard_new(n * DIM * sizeof(float)), norms = t_guard_new(n * sizeof(float));
        t_guard bits = t_guard_new((n + 63) / 64 * 8), out = t_guard_new(n * sizeof(double));
        vec_extent e = {(float *)rows.p, (float *)norms.p, 0, n};

        memset(bits.p, 0xff, n / 8); // not every bit, when n is no multiple of 8
        for (size_t m = 0; m < 3; m++) {
            assert_int_equal(vec_scan(metrics[m], q, DIM, &e, 1, (uint64_t *)bits.p,
                                      (double *)out.p, NULL, NULL),
                             VEC_OK);
            assert_int_equal(vec_scan(metrics[m], q, DIM, &e, 1, NULL, (double *)out.p, NULL, NULL),
                             VEC_OK);
        }
        t_guard_free(&rows);
        t_guard_free(&norms);
        t_guard_free(&bits);
        t_guard_free(&out);
    }
}

static int stop_after(void *ctx)
{
    return --*(int *)ctx == 0;
}

static void scan_stops_when_asked(void **state)
{
    enum { DIM = 384, N = 1000 };
    float *rows = calloc(N * DIM, sizeof *rows), q[DIM] = {1};
    double *out = malloc(N * sizeof *out);
    vec_extent e = {rows, NULL, 0, N};
    int never = 0, soon = 3;

    (void)state;
    assert_int_equal(vec_scan(VEC_L2, q, DIM, &e, 1, NULL, out, stop_after, &never), VEC_OK);
    // N * DIM * 4 bytes are 23 times 64 KiB, and blocks are a little longer than that.
    assert_in_range(-never, 10, 24);
    for (int i = 0; i < N; i++)
        out[i] = UNTOUCHED;
    assert_int_equal(vec_scan(VEC_L2, q, DIM, &e, 1, NULL, out, stop_after, &soon), VEC_ABORT);
    assert_true(out[0] == 1);
    assert_true(out[N - 1] == UNTOUCHED);
    free(rows);
    free(out);
}

static void scan_refuses(void **state)
{
    float q[3] = {1}, rows[3] = {1};
    double out = UNTOUCHED;
    vec_extent e = {rows, NULL, 0, 1}, none = {NULL, NULL, 0, 1};

    (void)state;
    assert_int_equal(vec_scan(VEC_COSINE, q, 3, &e, 1, NULL, &out, NULL, NULL), VEC_MISUSE);
    assert_int_equal(vec_scan(3, q, 3, &e, 1, NULL, &out, NULL, NULL), VEC_MISUSE);
    assert_int_equal(vec_scan(-1, q, 3, &e, 1, NULL, &out, NULL, NULL), VEC_MISUSE);
    assert_int_equal(vec_scan(VEC_L2, q, 0, &e, 1, NULL, &out, NULL, NULL), VEC_MISUSE);
    assert_true(out == UNTOUCHED);
    assert_int_equal(vec_scan(VEC_COSINE, q, 3, &none, 1, NULL, &out, NULL, NULL), VEC_OK);
    assert_true(isnan(out));
}

static int run_level(const char *disable)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distances_hold_over_the_whole_range),
        cmocka_unit_test(cosine_stays_in_its_range),
        cmocka_unit_test(special_distances),
        cmocka_unit_test(scan_equals_distance),
        cmocka_unit_test(scan_stays_inside),
        cmocka_unit_test(scan_stops_when_asked),
        cmocka_unit_test(scan_refuses),
    };

    setenv("VEC_DISABLE", disable, 1);
    vec_init();
    printf("# level %s\n", vec_kern()->level);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    static const char *const disable[] = {"", "avx512", "avx512,avx2,neon"};
    int failed = 0;

    for (size_t i = 0; i < sizeof disable / sizeof *disable; i++) {
        pid_t child;
        int status;

        fflush(NULL);
        child = fork();
        if (child == 0)
            exit(run_level(disable[i]));
        if (child < 0 || waitpid(child, &status, 0) != child)
            return 99;
        failed += !WIFEXITED(status) || WEXITSTATUS(status);
    }
    return failed;
}
