/*
 * t_vec_stored.c - half floats and bytes with a scale: nearest, stable, alike at every level
 *
 * SPDX-License-Identifier: MIT
 */
#include "t_guard.h"
#include "t_levels.h"
#include "t_rng.h"
#include "t_vectors.h"
#include "vec.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define DIM_MAX 400

/* The value of a half float, by its definition. */
static double half_value(unsigned h)
{
    int exponent = (int)(h >> 10 & 31);
    double digits = h & 0x3ff;
    double x = exponent ? ldexp(1024 + digits, exponent - 25) : ldexp(digits, -24);

    return h & 0x8000 ? -x : x;
}

static void every_half_float(void **state)
{
    (void)state;
    for (unsigned h = 0; h < 0x10000; h++) {
        uint8_t two[2] = {(uint8_t)h, (uint8_t)(h >> 8)}, back[2];
        float x;

        vec_kern()->widen_f16(two, 1, &x);
        if ((h & 0x7c00) == 0x7c00) {
            assert_true((h & 0x3ff) ? isnan(x) : isinf(x));
            continue;
        }
        assert_true((double)x == half_value(h));
        assert_int_equal(signbit(x) != 0, h >> 15);
        vec_stored_encode(VEC_F16, &x, 1, back);
        assert_memory_equal(back, two, 2);
        assert_int_equal(vec_stored_round(VEC_F16, &x, 1), VEC_OK);
        assert_true((double)x == half_value(h));
    }
}

/* Between two neighbours the nearer one, in the middle the even one. */
static void halves_are_nearest(void **state)
{
    (void)state;
    for (unsigned h = 0; h < 0x7bff; h++) {
        double a = half_value(h), b = half_value(h + 1);
        const double at[] = {a + (b - a) * 0.25, a + (b - a) * 0.5, a + (b - a) * 0.75};
        const unsigned want[] = {h, h + (h & 1), h + 1};

        for (int i = 0; i < 3; i++)
            for (int sign = 0; sign < 2; sign++) {
                float x = (float)(sign ? -at[i] : at[i]);
                uint8_t two[2];

                vec_stored_encode(VEC_F16, &x, 1, two);
                assert_int_equal(two[0] | two[1] << 8, want[i] | (unsigned)sign << 15);
            }
    }
    float most[] = {65504, 65519.996f, -65519.996f}, more[] = {65520, -65520, 3e38f};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(vec_stored_round(VEC_F16, most + i, 1), VEC_OK);
        assert_true(fabsf(most[i]) == 65504);
        assert_int_equal(vec_stored_round(VEC_F16, more + i, 1), VEC_LIMIT);
    }
}

/* Storing what was stored changes nothing; a byte's error is at most half a step. */
static void stored_is_stable(void **state)
{
    (void)state;
    t_rng rng = t_rng_start(51);

    for (int round = 0; round < 20000; round++) {
        size_t dim = 1 + t_rng_below(&rng, round % 100 ? 40 : DIM_MAX);
        int storage = (int)t_rng_below(&rng, 3);
        size_t bytes = vec_stored_bytes(storage, dim);
        t_guard out = t_guard_new(bytes), kept = t_guard_new(dim * sizeof(float));
        float given[DIM_MAX], back[DIM_MAX], *x = (float *)(void *)kept.p;
        double most = 0;

        t_vector(&rng, (int)t_rng_below(&rng, T_KINDS), given, dim);
        if (t_rng_below(&rng, 4) == 0) // the smallest there are
            for (size_t i = 0; i < dim; i++)
                given[i] = ldexpf((float)t_rng_below(&rng, 2000) - 1000, -149);
        for (size_t i = 0; i < dim; i++)
            most = fmax(most, fabs((double)given[i]));
        memcpy(x, given, dim * sizeof *x);
        if (vec_stored_round(storage, x, dim) == VEC_LIMIT) {
            assert_true(most >= (storage == VEC_F16 ? 65520 : 3.4e38));
        } else {
            vec_stored_encode(storage, x, dim, out.p);
            vec_stored_decode(storage, out.p, dim, back);
            assert_memory_equal(back, x, dim * sizeof *x);
            assert_int_equal(vec_stored_round(storage, back, dim), VEC_OK);
            assert_memory_equal(back, x, dim * sizeof *x);
            for (size_t i = 0; storage == VEC_I8 && i < dim; i++)
                assert_true(fabs((double)x[i] - (double)given[i]) <=
                            (most < 1e-35 ? most / 126 : most * 0.50002 / 127));
        }
        t_guard_free(&out), t_guard_free(&kept);
    }
}

static void levels_agree(void **state)
{
    (void)state;
    t_rng rng = t_rng_start(52);
    static const char *const names[] = {"scalar", "avx2", "avx512", "neon"};

    for (size_t n = 0; n < 70; n++) {
        t_guard in = t_guard_new(2 * n), out = t_guard_new(n * sizeof(float));
        float want[70],
            scale = ldexpf(1 + (float)t_rng_unit(&rng), (int)t_rng_below(&rng, 60) - 30);

        for (size_t k = 0; k < 4; k++) {
            const vec_kernels *kern = vec_kern_level(names[k]);

            if (!kern)
                continue;
            t_rng_fill(&rng, in.p, in.n);
            kern->widen_f16(in.p, n, (float *)(void *)out.p);
            vec_kern_level("scalar")->widen_f16(in.p, n, want);
            assert_memory_equal(out.p, want, n * sizeof *want);
            kern->widen_i8((const int8_t *)in.p + n, scale, n, (float *)(void *)out.p);
            vec_kern_level("scalar")->widen_i8((const int8_t *)in.p + n, scale, n, want);
            assert_memory_equal(out.p, want, n * sizeof *want);
        }
        t_guard_free(&in), t_guard_free(&out);
    }
}

static int run(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_half_float),
        cmocka_unit_test(halves_are_nearest),
        cmocka_unit_test(stored_is_stable),
        cmocka_unit_test(levels_agree),
    };

    vec_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return t_levels_run(t_levels_all, run);
}
