/*
 * t_vec_rrf.c - fusion on demand against fusion of complete rankings
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "vec.h"

enum { MOST = 700 };

static uint64_t state;

static uint64_t next(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

typedef struct data {
    double key[2][MOST];
    int64_t id[MOST];
} data;

static int64_t id_of(void *ctx, uint64_t row)
{
    return ((data *)ctx)->id[row];
}

static vec_rank *ranked(const data *d, int l, uint64_t n)
{
    vec_hit *hits = vec_hits_alloc((size_t)n);
    vec_rank *r;
    size_t k = 0;

    assert_non_null(hits);
    for (uint64_t i = 0; i < n; i++)
        if (!isnan(d->key[l][i]))
            hits[k++] = (vec_hit){d->key[l][i], d->id[i], i};
    assert_int_equal(vec_rank_new(hits, k, &r), VEC_OK);
    return r;
}

/* The complete rankings, fused and ranked. */
static size_t by_sorting(const data *d, uint64_t n, const double *weight, double k, vec_hit *out)
{
    static vec_hit sorted[2][MOST];
    vec_list lists[2];
    vec_hit *fused;
    size_t nfused, m = 0;
    vec_rank *r;
    const vec_hit *h;

    for (int l = 0; l < 2; l++) {
        size_t j = 0;

        r = ranked(d, l, n);
        while ((h = vec_rank_next(r)))
            sorted[l][j++] = *h;
        vec_rank_free(r);
        lists[l] = (vec_list){sorted[l], j, weight[l]};
    }
    assert_int_equal(vec_fuse_rrf(lists, 2, k, n, &fused, &nfused), VEC_OK);
    assert_int_equal(vec_rank_new(fused, nfused, &r), VEC_OK);
    while ((h = vec_rank_next(r)))
        out[m++] = *h;
    vec_rank_free(r);
    return m;
}

static void fill(data *d, uint64_t n, unsigned gaps0, unsigned gaps1, unsigned levels)
{
    for (uint64_t i = 0; i < n; i++) {
        d->id[i] = (int64_t)(next() % 3 ? i : n + i) * (next() % 2 ? 1 : -1) + 7;
        d->key[0][i] = next() % 100 < gaps0 ? NAN : (double)(next() % levels);
        d->key[1][i] = next() % 100 < gaps1 ? NAN : (double)(next() % levels) / 3 - 5;
    }
    // ids are unique: spread them by position
    for (uint64_t i = 0; i < n; i++)
        d->id[i] = d->id[i] * 1000 + (int64_t)i;
}

static void same_as_sorting(void **ctx)
{
    static data d;
    static vec_hit want[MOST];
    static const double weights[][2] = {{1, 1}, {0.7, 0.3}, {0, 1}, {1, 0}, {0, 0}, {5, 0.01}};
    static const double ks[] = {60, 0, 1, 1e6};

    (void)ctx;
    state = 88172645463325252u;
    for (int round = 0; round < 400; round++) {
        uint64_t n = next() % MOST;
        const double *w = weights[round % 6];
        vec_rrf_args a = {.key = {d.key[0], d.key[1]},
                          .weight = {w[0], w[1]},
                          .nrow = n,
                          .k = ks[round % 4],
                          .id = id_of,
                          .ctx = &d};
        vec_rrf *f;
        vec_hit h;
        size_t m, i = 0;

        fill(&d, n, (unsigned)(next() % 101), (unsigned)(next() % 101),
             round % 3 ? 1000000 : 5); // every third round full of ties
        m = by_sorting(&d, n, w, a.k, want);
        assert_int_equal(vec_rrf_new(&a, &f), VEC_OK);
        while (vec_rrf_next(f, &h) == 1) {
            assert_true(i < m);
            assert_int_equal(h.row, want[i].row);
            assert_int_equal(h.id, want[i].id);
            assert_memory_equal(&h.key, &want[i].key, sizeof h.key);
            i++;
        }
        assert_int_equal(i, m);
        assert_int_equal(vec_rrf_next(f, &h), 0);
        vec_rrf_free(f);
    }
}

static void refuses(void **ctx)
{
    double key[1] = {0};
    vec_rrf_args a = {.key = {key, key}, .weight = {1, 1}, .nrow = 1, .k = 60, .id = id_of};
    vec_rrf *f;

    (void)ctx;
    a.k = -1;
    assert_int_equal(vec_rrf_new(&a, &f), VEC_MISUSE);
    assert_null(f);
    a.k = 60;
    a.weight[1] = NAN;
    assert_int_equal(vec_rrf_new(&a, &f), VEC_MISUSE);
    a.weight[1] = 1;
    a.key[0] = NULL;
    assert_int_equal(vec_rrf_new(&a, &f), VEC_MISUSE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_as_sorting),
        cmocka_unit_test(refuses),
    };

    vec_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
