/*
 * t_vec_kern.c - every kernel of every level of this machine keeps the contract of vec.h
 *
 * Each level is held against the same sum in double with its bound, against the scalar level with
 * the bound that vec.h states, and its rows kernel against its pair kernel bit for bit. Arrays lie
 * between two unmapped pages, first at the front one, then at the back one.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "t_rng.h"
#include "vec.h"
#include "vec_cpu.h"

static const char *const names[] = {"scalar", "avx2", "avx512", "neon"};
#define LEVELS (sizeof names / sizeof *names)

/* --------------------------------------------------------------------------------------- memory */

typedef struct cage {
    char *map;
    size_t size; // of the map, two unmapped pages included
    size_t page;
} cage;

static cage cage_new(size_t n)
{
    cage c = {.page = (size_t)sysconf(_SC_PAGESIZE)};

    c.size = (n + c.page - 1) / c.page * c.page + 2 * c.page;
    c.map = mmap(NULL, c.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(c.map != MAP_FAILED);
    assert_int_equal(mprotect(c.map, c.page, PROT_NONE), 0);
    assert_int_equal(mprotect(c.map + c.size - c.page, c.page, PROT_NONE), 0);
    return c;
}

/* n floats that begin right behind the front page, or end right before the back one. */
static float *cage_place(const cage *c, size_t n, int back)
{
    return (float *)(back ? c->map + c->size - c->page - n * sizeof(float) : c->map + c->page);
}

static void cage_free(cage *c)
{
    munmap(c->map, c->size);
}

/* ------------------------------------------------------------------------------------ reference */

typedef struct truth {
    double sum;
    double abs;
} truth;

static truth reference(int l2, const float *a, const float *b, size_t n)
{
    truth t = {0, 0};

    for (size_t i = 0; i < n; i++) {
        double d = (double)a[i] - (double)b[i], p = l2 ? d * d : (double)a[i] * (double)b[i];

        t.sum += p;
        t.abs += fabs(p);
    }
    return t;
}

static vec_pair_fn pair_of(const vec_kernels *k, int l2)
{
    return l2 ? k->l2sq_f32 : k->dot_f32;
}

static vec_rows_fn rows_of(const vec_kernels *k, int l2)
{
    return l2 ? k->l2sq_rows_f32 : k->dot_rows_f32;
}

static uint32_t bits(float x)
{
    uint32_t b;

    memcpy(&b, &x, sizeof b);
    return b;
}

/* Both ends of a NaN are the same NaN to us. */
static void assert_same(float a, float b)
{
    if (isnan(a) && isnan(b))
        return;
    assert_int_equal(bits(a), bits(b));
}

static void check_pair(const vec_kernels *k, const float *a, const float *b, size_t n)
{
    for (int l2 = 0; l2 < 2; l2++) {
        double got = pair_of(k, l2)(a, b, n);
        double def = pair_of(vec_kern_level("scalar"), l2)(a, b, n);
        truth t = reference(l2, a, b, n);
        double tiny = (double)n * 0x1p-149;

        // One rounding a product and one an addition, two more for the difference squared.
        assert_true(fabs(got - t.sum) <= ((double)n + 3) * 0x1p-24 * t.abs + tiny);
        assert_true(fabs(got - def) <= (double)n * 0x1p-23 * t.abs + tiny);
    }
}

/* ---------------------------------------------------------------------------------------- tests */

static void pairs_keep_the_bound(void **state)
{
    t_rng r = t_rng_start(11);
    cage ca = cage_new(1536 * sizeof(float)), cb = cage_new(1536 * sizeof(float));

    (void)state;
    for (size_t n = 0; n <= 1536; n = n == 400 ? 1536 : n + 1) {
        for (int back = 0; back < 2; back++) {
            float *a = cage_place(&ca, n, back), *b = cage_place(&cb, n, back);
            float scale = ldexpf(1, (int)t_rng_below(&r, 60) - 30);

            for (size_t i = 0; i < n; i++) {
                a[i] = t_rng_normal(&r) * scale;
                b[i] = t_rng_normal(&r);
            }
            for (size_t l = 0; l < LEVELS; l++)
                if (vec_kern_level(names[l]))
                    check_pair(vec_kern_level(names[l]), a, b, n);
        }
    }
    cage_free(&ca);
    cage_free(&cb);
}

/* n rows of dim floats at every float alignment within a cache line. */
static void check_rows(const vec_kernels *k, const float *q, const float *rows, size_t dim,
                       size_t n)
{
    float out[16], before = 42;

    for (int l2 = 0; l2 < 2; l2++) {
        for (size_t i = 0; i < 16; i++)
            out[i] = before;
        rows_of(k, l2)(q, rows, dim, n, out);
        for (size_t i = 0; i < n; i++)
            assert_same(out[i], pair_of(k, l2)(q, rows + i * dim, dim));
        for (size_t i = n; i < 16; i++)
            assert_int_equal(bits(out[i]), bits(before));
    }
}

static void rows_equal_pairs(void **state)
{
    t_rng r = t_rng_start(12);
    size_t most = 11 * 401 + 16;
    cage cq = cage_new(416 * sizeof(float)), cr = cage_new(most * sizeof(float));

    (void)state;
    for (size_t dim = 0; dim <= 400; dim++) {
        size_t n = t_rng_below(&r, 12), shift = t_rng_below(&r, 16);
        int back = (int)t_rng_below(&r, 2);
        float *q = cage_place(&cq, dim + shift, back) + (back ? 0 : shift);
        float *rows = cage_place(&cr, dim * n + shift, back) + (back ? shift : 0);

        for (size_t i = 0; i < dim; i++)
            q[i] = t_rng_normal(&r);
        for (size_t i = 0; i < n * dim; i++)
            rows[i] = t_rng_normal(&r);
        for (size_t l = 0; l < LEVELS; l++)
            if (vec_kern_level(names[l]))
                check_rows(vec_kern_level(names[l]), q, rows, dim, n);
    }
    cage_free(&cq);
    cage_free(&cr);
}

static void rows_equal_pairs_at_any_place(void **state)
{
    enum { DIM = 384, N = 15 };
    t_rng r = t_rng_start(13);
    float *mem = malloc((N + 1) * DIM * sizeof *mem + 128), q[DIM];

    (void)state;
    assert_non_null(mem);
    for (size_t i = 0; i < DIM; i++)
        q[i] = t_rng_normal(&r);
    for (size_t shift = 0; shift < 16; shift++) {
        for (size_t i = 0; i < N * DIM; i++)
            mem[shift + i] = t_rng_normal(&r);
        for (size_t n = 0; n <= N; n++)
            for (size_t l = 0; l < LEVELS; l++)
                if (vec_kern_level(names[l]))
                    check_rows(vec_kern_level(names[l]), q, mem + shift, DIM, n);
    }
    free(mem);
}

/* One odd value among ordinary ones, at every place: the result is what the plain sum says. */
static void odd_values_propagate(void **state)
{
    static const float odd[] = {NAN, INFINITY, -INFINITY, 0x1p-149f, -0x1p-140f, 0x1p127f};
    float a[131], b[131];

    (void)state;
    for (size_t n = 1; n <= 131; n += 13) {
        for (size_t at = 0; at < n; at++) {
            for (size_t o = 0; o < sizeof odd / sizeof *odd; o++) {
                for (size_t i = 0; i < n; i++) {
                    a[i] = 0;
                    b[i] = 1;
                }
                a[at] = odd[o];
                for (size_t l = 0; l < LEVELS; l++) {
                    const vec_kernels *k = vec_kern_level(names[l]);

                    if (!k)
                        continue;
                    assert_same(k->dot_f32(a, b, n), odd[o]);
                    b[at] = 0; // an infinite value times nothing is no number
                    assert_same(k->dot_f32(a, b, n), isfinite(odd[o]) ? 0 : NAN);
                    b[at] = 1;
                    assert_int_equal(isnan(k->l2sq_f32(a, b, n)), isnan(odd[o]));
                    assert_int_equal(isinf(k->l2sq_f32(a, b, n)),
                                     isinf(odd[o]) || odd[o] == 0x1p127f);
                    check_rows(k, b, a, n, 1);
                }
            }
        }
    }
}

static void zero_and_negative_zero(void **state)
{
    float a[70], b[70];

    (void)state;
    for (size_t n = 0; n <= 70; n++) {
        for (size_t i = 0; i < n; i++) {
            a[i] = -0.0f;
            b[i] = 0;
        }
        for (size_t l = 0; l < LEVELS; l++) {
            const vec_kernels *k = vec_kern_level(names[l]);

            if (!k)
                continue;
            assert_true(k->dot_f32(a, b, n) == 0);
            assert_true(k->l2sq_f32(a, b, n) == 0);
        }
    }
}

static void finite_is_seen(void **state)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    float x[67] = {0x1.fffffep127f, -0x1.fffffep127f, 0x1p-149f, -0.0f};

    (void)state;
    assert_true(vec_all_finite_f32(x, 0));
    assert_true(vec_all_finite_f32(x, 67));
    for (size_t i = 0; i < 67; i++) {
        for (size_t o = 0; o < 3; o++) {
            float was = x[i];

            x[i] = bad[o];
            assert_false(vec_all_finite_f32(x, 67));
            assert_int_equal(vec_all_finite_f32(x, i), 1);
            x[i] = was;
        }
    }
}

static void norms_neither_overflow_nor_vanish(void **state)
{
    static const float scales[] = {1, 0x1p100f, 0x1p-140f, 0x1p-149f, 0x1p115f};
    t_rng r = t_rng_start(14);
    float x[400];

    (void)state;
    for (size_t s = 0; s < sizeof scales / sizeof *scales; s++) {
        for (size_t n = 0; n <= 400; n += 1 + n / 7) {
            long double sum = 0;

            for (size_t i = 0; i < n; i++) {
                x[i] = rintf(t_rng_normal(&r) * 16) * scales[s];
                sum += (long double)x[i] * x[i];
            }
            assert_true(fabsl(vec_norm_f32(x, n) - sqrtl(sum)) <=
                        sqrtl(sum) * 0x1.0001p-24L + 0x1p-150L);
        }
    }
    for (size_t i = 0; i < 400; i++)
        x[i] = 0x1p127f;
    assert_true(isinf(vec_norm_f32(x, 400)));
    assert_false(isinf(vec_norm_f32(x, 3)));
    x[7] = NAN;
    assert_true(isnan(vec_norm_f32(x, 400)));
}

/* What the processor has, less what is switched off by name, is what the levels are. */
static void levels_follow_the_processor(void **state)
{
    unsigned have = vec_cpu_features();

    (void)state;
    assert_non_null(vec_kern_level("scalar"));
    assert_null(vec_kern_level("sse9"));
    assert_null(vec_kern_level(""));
    assert_int_equal(vec_kern_level("avx2") != NULL, (have & VEC_CPU_AVX2) != 0);
    assert_int_equal(vec_kern_level("avx512") != NULL, (have & VEC_CPU_AVX512) != 0);
    assert_int_equal(vec_kern_level("neon") != NULL, (have & VEC_CPU_NEON) != 0);
    for (size_t l = 0; l < LEVELS; l++)
        if (vec_kern_level(names[l]))
            assert_string_equal(vec_kern_level(names[l])->level, names[l]);
    vec_init();
    assert_ptr_equal(vec_kern(), vec_kern_level(vec_kern()->level));
}

static void levels_are_switched_off_by_name(void **state)
{
    const char *was = getenv("VEC_DISABLE");
    char *kept = was ? strdup(was) : NULL;
    unsigned have;

    (void)state;
    unsetenv("VEC_DISABLE");
    have = vec_cpu_features();
    setenv("VEC_DISABLE", "avx51,avx,vx2,,neo,avx2x", 1);
    assert_int_equal(vec_cpu_features(), have);
    setenv("VEC_DISABLE", "avx2", 1);
    assert_int_equal(vec_cpu_features(), have & ~(unsigned)VEC_CPU_AVX2);
    setenv("VEC_DISABLE", "neon,avx512,avx2", 1);
    assert_int_equal(vec_cpu_features(), 0);
    if (kept)
        setenv("VEC_DISABLE", kept, 1);
    else
        unsetenv("VEC_DISABLE");
    free(kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_keep_the_bound),
        cmocka_unit_test(rows_equal_pairs),
        cmocka_unit_test(rows_equal_pairs_at_any_place),
        cmocka_unit_test(odd_values_propagate),
        cmocka_unit_test(zero_and_negative_zero),
        cmocka_unit_test(finite_is_seen),
        cmocka_unit_test(norms_neither_overflow_nor_vanish),
        cmocka_unit_test(levels_follow_the_processor),
        cmocka_unit_test(levels_are_switched_off_by_name),
    };

    vec_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
