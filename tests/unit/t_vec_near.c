/*
 * t_vec_near.c - the nearest rows on demand are those of sorting all distances, bit for bit
 *
 * Runs once for every level. Each case spreads rows over records and plain extents, with gaps in
 * their numbers and rows without a vector, and compares with vec_distance over all rows, sorted.
 *
 * SPDX-License-Identifier: MIT
 */
#include "t_alloc.h"
#include "t_levels.h"
#include "t_rng.h"
#include "t_vectors.h"
#include "vec.h"
#include "vec_limits.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define EXTENTS_MAX 512

/* Rows 0..n-1; those of a gap belong to no extent. */
typedef struct set {
    size_t dim, n;
    float *x, *norm; // norm NaN: no vector
    int64_t *id;
    uint8_t *kind; // GAP, PLANE, EXACT
    vec_plane_extent planes[EXTENTS_MAX];
    size_t nplane;
    vec_extent exact[EXTENTS_MAX];
    size_t nexact;
    uint64_t *filter; // NULL: all
    float *hand;      // what fetch hands out
    int damaged;      // records are not those of the rows
    long fetched, fetch_fails_at;
    long asked, stop_at;
} set;

enum { GAP, PLANE, EXACT };

static void *get(size_t n)
{
    void *p = malloc(n ? n : 1);

    assert_non_null(p);
    return p;
}

static int selected(const set *s, uint64_t row)
{
    return s->filter == NULL || (s->filter[row >> 6] >> (row & 63) & 1) != 0;
}

static const float *fetch(void *ctx, uint64_t row, float *norm)
{
    set *s = ctx;

    assert_true(row < s->n && s->kind[row] == PLANE && selected(s, row));
    assert_true(s->damaged || !isnan(s->norm[row]));
    if (++s->fetched == s->fetch_fails_at)
        return NULL;
    // a fresh block each time, so that the old one may not be used any more
    free(s->hand);
    s->hand = get(s->dim * sizeof(float));
    memcpy(s->hand, s->x + row * s->dim, s->dim * sizeof(float));
    *norm = s->norm[row];
    return s->hand;
}

/* Only rows that fetch may be called for. */
static void soon(void *ctx, uint64_t row)
{
    const set *s = ctx;

    assert_true(row < s->n && s->kind[row] != GAP && selected(s, row));
}

static int64_t id_of(void *ctx, uint64_t row)
{
    set *s = ctx;

    assert_true(row < s->n && s->kind[row] != GAP && selected(s, row));
    return s->id[row];
}

static int stop(void *ctx)
{
    set *s = ctx;

    return ++s->asked == s->stop_at;
}

/* -------------------------------------------------------------------------------------- making */

/* How the rows of a set relate to each other and to the query. */
enum { INDEPENDENT, CLUSTERS, TIGHT, COPIES, HOSTILE, SIGNS, SHELL, SHAPES };

static void make_vectors(t_rng *r, int shape, set *s, const float *query)
{
    float *centre = get(5 * s->dim * sizeof *centre);

    for (size_t c = 0; c < 5; c++)
        t_vector(r, T_NORMAL, centre + c * s->dim, s->dim);
    for (size_t i = 0; i < s->n; i++) {
        float *x = s->x + i * s->dim;
        const float *c = centre + t_rng_below(r, 5) * s->dim;

        t_vector(r,
                 shape == HOSTILE ? (int)t_rng_below(r, T_KINDS)
                 : shape == SIGNS ? T_SIGNS
                                  : T_NORMAL,
                 x, s->dim);
        for (size_t j = 0; j < s->dim; j++) {
            if (shape == CLUSTERS || shape == TIGHT)
                x[j] = c[j] + (shape == TIGHT ? 0.02f : 0.3f) * x[j];
            else if (shape == COPIES)
                x[j] = c[j];
            else if (shape == SHELL) // the query turned by almost the same angle
                x[j] = query[j] + 0.1f * (x[j] > 0 ? 1.0f : -1.0f);
        }
        s->norm[i] = t_rng_below(r, 16) ? vec_norm_f32(x, s->dim) : NAN;
    }
    free(centre);
}

static void add_planes(set *s, uint64_t first, size_t n)
{
    size_t stride = vec_halves_stride(s->dim);
    uint8_t *record = get(vec_plane_stride(s->dim));
    uint8_t *coarse = get(n * stride), *fine = get(n * stride);

    for (size_t i = 0; i < n; i++) {
        const float *x = isnan(s->norm[first + i]) ? NULL : s->x + (first + i) * s->dim;
        vec_plane_encode(x, s->norm[first + i], s->dim, record);
        vec_halves_split(x, s->dim, record, coarse + i * stride, fine + i * stride);
    }
    free(record);
    s->planes[s->nplane++] = (vec_plane_extent){coarse, fine, first, n};
}

static void add_exact(t_rng *r, int metric, set *s, uint64_t first, size_t n)
{
    float *rows = NULL, *norms = NULL;

    if (t_rng_below(r, 8) == 0) { // no vectors at all
        for (size_t i = 0; i < n; i++)
            s->norm[first + i] = NAN;
    } else {
        rows = get(n * s->dim * sizeof *rows);
        memcpy(rows, s->x + first * s->dim, n * s->dim * sizeof *rows);
        norms = get(n * sizeof *norms);
        memcpy(norms, s->norm + first, n * sizeof *norms);
    }
    if (rows != NULL && metric != VEC_COSINE && t_rng_below(r, 4) == 0) {
        free(norms); // may be left out; then every row has a vector
        norms = NULL;
        for (size_t i = 0; i < n; i++)
            s->norm[first + i] = vec_norm_f32(rows + i * s->dim, s->dim);
    }
    s->exact[s->nexact++] = (vec_extent){rows, norms, first, n};
}

/* Cuts the rows into extents and gaps. planes, in eighths: how much has records. */
static void make_extents(t_rng *r, int metric, set *s, unsigned planes)
{
    size_t longest = s->n / 200 + 150;

    for (uint64_t first = 0, n; first < s->n; first += n) {
        n = 1 + t_rng_below(r, t_rng_below(r, 3) ? longest : 5);
        n = n < s->n - first ? n : s->n - first;
        int kind = t_rng_below(r, 8) == 0 ? GAP : t_rng_below(r, 8) < planes ? PLANE : EXACT;
        memset(s->kind + first, kind, n);
        if (kind == PLANE)
            add_planes(s, first, n);
        else if (kind == EXACT)
            add_exact(r, metric, s, first, n);
    }
    if (s->nplane > 1) { // extents may come in any order
        vec_plane_extent t = s->planes[0];
        s->planes[0] = s->planes[s->nplane - 1];
        s->planes[s->nplane - 1] = t;
    }
}

static void make_filter(t_rng *r, set *s)
{
    size_t words = (s->n + 63) / 64;
    uint64_t choice = t_rng_below(r, 4);

    if (choice == 0)
        return;
    s->filter = get(words * sizeof *s->filter);
    for (size_t w = 0; w < words; w++) {
        uint64_t a = t_rng_next(r), b = t_rng_next(r), c = t_rng_next(r);
        s->filter[w] = choice == 1         ? a | b | c
                       : choice == 2       ? a & b & c
                       : t_rng_below(r, 3) ? 0
                                           : UINT64_MAX;
    }
    if (s->n % 64)
        s->filter[words - 1] &= ((uint64_t)1 << s->n % 64) - 1;
}

static set *make_set(t_rng *r, int metric, int shape, size_t dim, size_t n, unsigned planes,
                     const float *query)
{
    set *s = get(sizeof *s);

    *s = (set){.dim = dim, .n = n};
    s->x = get(n * dim * sizeof *s->x);
    s->norm = get(n * sizeof *s->norm);
    s->id = get(n * sizeof *s->id);
    s->kind = get(n);
    for (size_t i = 0; i < n; i++)
        s->id[i] = (int64_t)i * 3 - 100;
    for (size_t i = n; i > 1; i--) {
        size_t j = t_rng_below(r, i);
        int64_t t = s->id[i - 1];
        s->id[i - 1] = s->id[j];
        s->id[j] = t;
    }
    make_vectors(r, shape, s, query);
    make_extents(r, metric, s, planes);
    make_filter(r, s);
    return s;
}

static void free_set(set *s)
{
    for (size_t i = 0; i < s->nplane; i++)
        free((void *)(uintptr_t)s->planes[i].coarse), free((void *)(uintptr_t)s->planes[i].fine);
    for (size_t i = 0; i < s->nexact; i++) {
        free((void *)(uintptr_t)s->exact[i].rows);
        free((void *)(uintptr_t)s->exact[i].norms);
    }
    free(s->x);
    free(s->norm);
    free(s->id);
    free(s->kind);
    free(s->filter);
    free(s->hand);
    free(s);
}

static vec_near_args args(set *s, int metric, const float *query, uint64_t hint)
{
    return (vec_near_args){.metric = metric,
                           .query = query,
                           .dim = s->dim,
                           .planes = s->planes,
                           .nplane = s->nplane,
                           .exact = s->exact,
                           .nexact = s->nexact,
                           .filter = s->filter,
                           .fetch = fetch,
                           .soon = hint % 2 ? NULL : soon,
                           .id = id_of,
                           .stop = stop,
                           .ctx = s,
                           .hint = hint};
}

/* ----------------------------------------------------------------------------------- comparing */

static int by_key_then_id(const void *a, const void *b)
{
    const vec_hit *x = a, *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static vec_hit *brute_force(const set *s, int metric, const float *query, size_t *n)
{
    vec_hit *h = get(s->n * sizeof *h);
    float norm = vec_norm_f32(query, s->dim);

    *n = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (s->kind[i] == GAP || isnan(s->norm[i]) || !selected(s, i))
            continue;
        double d = vec_distance(metric, query, norm, s->x + i * s->dim, s->norm[i], s->dim);
        assert_false(isnan(d));
        h[(*n)++] = (vec_hit){d, s->id[i], i};
    }
    qsort(h, *n, sizeof *h, by_key_then_id);
    return h;
}

static void same_hit(const vec_hit *a, const vec_hit *b)
{
    assert_int_equal(a->row, b->row);
    assert_int_equal(a->id, b->id);
    assert_memory_equal(&a->key, &b->key, sizeof a->key);
}

/* Reads `length` hits, or all there are, and compares. */
static void check_sequence(set *s, int metric, const float *query, uint64_t hint,
                           const vec_hit *want, size_t n, size_t length)
{
    vec_near_args a = args(s, metric, query, hint);
    vec_near *near;
    vec_hit h;

    assert_int_equal(vec_near_new(&a, &near), VEC_OK);
    for (size_t i = 0; i < length && i < n; i++) {
        assert_int_equal(vec_near_next(near, &h), 1);
        same_hit(&h, &want[i]);
    }
    if (length >= n)
        for (int i = 0; i < 3; i++)
            assert_int_equal(vec_near_next(near, &h), 0);
    vec_near_free(near);
}

static void check_set(t_rng *r, int metric, int shape, size_t dim, size_t n, unsigned planes)
{
    float *query = get(dim * sizeof *query);
    size_t nwant;

    t_vector(r, shape == HOSTILE ? (int)t_rng_below(r, T_KINDS) : T_NORMAL, query, dim);
    set *s = make_set(r, metric, shape, dim, n, planes, query);
    if (t_rng_below(r, 3) == 0) // a row is the query
        memcpy(query, s->x + t_rng_below(r, n) * dim, dim * sizeof *query);
    vec_hit *want = brute_force(s, metric, query, &nwant);
    check_sequence(s, metric, query, t_rng_below(r, 2) ? 0 : 10, want, nwant, SIZE_MAX);
    check_sequence(s, metric, query, n, want, nwant, SIZE_MAX);
    for (size_t i = 0; i < 3; i++)
        check_sequence(s, metric, query, t_rng_below(r, 20), want, nwant, t_rng_below(r, 30));
    free(want);
    free_set(s);
    free(query);
}

/* ---------------------------------------------------------------------------------------- tests */

static void sequences_are_exact(void **state)
{
    (void)state;
    t_rng r = t_rng_start(21);

    for (size_t dim = 1; dim <= 70; dim++)
        for (int metric = 0; metric < 3; metric++)
            for (int shape = 0; shape < SHAPES; shape++)
                check_set(&r, metric, shape, dim, 1 + t_rng_below(&r, 400),
                          (unsigned)t_rng_below(&r, 9));
}

static void sequences_are_exact_in_usual_dimensions(void **state)
{
    (void)state;
    t_rng r = t_rng_start(22);
    static const size_t dims[] = {384, 768, 1536};

    for (size_t d = 0; d < 3; d++)
        for (int metric = 0; metric < 3; metric++)
            for (int shape = 0; shape < SHAPES; shape++)
                check_set(&r, metric, shape, dims[d], 100 + t_rng_below(&r, 200), 7);
}

static void sequences_are_exact_over_many_rows(void **state)
{
    (void)state;
    t_rng r = t_rng_start(23);

    for (int metric = 0; metric < 3; metric++)
        for (int shape = 0; shape < SHAPES; shape++)
            check_set(&r, metric, shape, 24, 5000 + t_rng_below(&r, 64), 7);
}

/* With threads: the same sequence, and it stops when told so. Rows enough for four of them. */
static void threads_change_nothing(void **state)
{
    (void)state;
    t_rng r = t_rng_start(30);
    enum { DIM = 8, ROWS = 70000, HITS = 300 };
    float query[DIM];

    for (int metric = 0; metric < 3; metric++) {
        vec_hit want[HITS], got;
        vec_near *near;

        t_vector(&r, T_NORMAL, query, DIM);
        set *s = make_set(&r, metric, INDEPENDENT, DIM, ROWS, 8, query);
        for (int threads = 0; threads <= 5; threads++) {
            vec_near_args a = args(s, metric, query, threads % 2 ? 10 : 0);
            a.threads = threads;
            s->asked = s->stop_at = 0;
            assert_int_equal(vec_near_new(&a, &near), VEC_OK);
            for (size_t i = 0; i < HITS; i++) {
                assert_int_equal(vec_near_next(near, &got), 1);
                if (threads == 0)
                    want[i] = got;
                else
                    assert_memory_equal(&got, &want[i], sizeof got);
            }
            vec_near_free(near);
            long asked = s->asked;
            assert_true(asked > 3);
            for (s->stop_at = 1; s->stop_at <= 3; s->stop_at++) {
                s->asked = 0;
                assert_int_equal(vec_near_new(&a, &near), VEC_ABORT);
                assert_null(near);
            }
            s->stop_at = 0;
        }
        free_set(s);
    }
}

static void nothing_to_find(void **state)
{
    (void)state;
    t_rng r = t_rng_start(24);
    float query[8];
    vec_near *near;
    vec_hit h;

    t_vector(&r, T_NORMAL, query, 8);
    set *s = make_set(&r, VEC_L2, INDEPENDENT, 8, 300, 4, query);
    free(s->filter);
    s->filter = calloc(5, sizeof *s->filter);
    assert_non_null(s->filter);
    for (size_t i = 0; i < 2; i++) {
        vec_near_args a = args(s, VEC_L2, query, i ? 0 : 1000);
        assert_int_equal(vec_near_new(&a, &near), VEC_OK);
        assert_int_equal(vec_near_next(near, &h), 0);
        vec_near_free(near);
        a.nplane = a.nexact = 0;
        assert_int_equal(vec_near_new(&a, &near), VEC_OK);
        assert_int_equal(vec_near_next(near, &h), 0);
        vec_near_free(near);
    }
    vec_near_free(NULL);
    free_set(s);
}

static void misuse(void **state)
{
    (void)state;
    t_rng r = t_rng_start(25);
    static float query[VEC_PLANE_DIM_MAX + 1] = {1};
    vec_near *near = (vec_near *)(void *)query;

    set *s = make_set(&r, VEC_L2, INDEPENDENT, 8, 2000, 4, query);
    assert_true(s->nplane > 0 && s->nexact > 0);
    const vec_near_args good = args(s, VEC_L2, query, 0);
    vec_near_args a = good;
    a.metric = 3;
    assert_int_equal(vec_near_new(&a, &near), VEC_MISUSE);
    assert_null(near);
    a = good, a.dim = 0;
    assert_int_equal(vec_near_new(&a, &near), VEC_MISUSE);
    a = good, a.query = NULL;
    assert_int_equal(vec_near_new(&a, &near), VEC_MISUSE);
    a = good, a.id = NULL;
    assert_int_equal(vec_near_new(&a, &near), VEC_MISUSE);
    a = good, a.fetch = NULL;
    assert_int_equal(vec_near_new(&a, &near), VEC_MISUSE);
    a = good, a.dim = VEC_PLANE_DIM_MAX + 1;
    assert_int_equal(vec_near_new(&a, &near), VEC_LIMIT);
    a = good, a.metric = VEC_COSINE, a.filter = NULL;
    vec_extent bare = {s->x, NULL, 0, 1};
    a.exact = &bare, a.nexact = 1;
    assert_int_equal(vec_near_new(&a, &near), VEC_MISUSE);
    assert_null(near);
    free_set(s);
}

/* Records of any bytes: rows may be missed or come too late, but none comes twice or with a wrong
 * distance, and there is an end. */
static void damaged_records(void **state)
{
    (void)state;
    t_rng r = t_rng_start(29);
    enum { DIM = 24, ROWS = 1000 };
    float query[DIM];

    for (int round = 0; round < 60; round++) {
        int metric = round % 3;
        uint8_t seen[ROWS] = {0};
        vec_near *near;
        vec_hit h;
        int rc;

        t_vector(&r, T_NORMAL, query, DIM);
        set *s = make_set(&r, metric, INDEPENDENT, DIM, ROWS, 7, query);
        s->damaged = 1;
        for (size_t e = 0; e < s->nplane; e++) {
            size_t stride = vec_halves_stride(DIM);
            uint8_t *half[2] = {(uint8_t *)(uintptr_t)s->planes[e].coarse,
                                (uint8_t *)(uintptr_t)s->planes[e].fine};
            for (uint64_t i = 0; i < 2 * s->planes[e].n; i++) // all of it, or only the header
                t_rng_fill(&r, half[i % 2] + i / 2 * stride, t_rng_below(&r, 2) ? stride : 16);
        }
        vec_near_args a = args(s, metric, query, t_rng_below(&r, 2) ? 10 : ROWS);
        assert_int_equal(vec_near_new(&a, &near), VEC_OK);
        while ((rc = vec_near_next(near, &h)) == 1) {
            double d = vec_distance(metric, query, vec_norm_f32(query, DIM), s->x + h.row * DIM,
                                    s->norm[h.row], DIM);
            assert_memory_equal(&h.key, &d, sizeof d);
            assert_int_equal(seen[h.row]++, 0);
        }
        assert_int_equal(rc, 0);
        vec_near_free(near);
        free_set(s);
    }
}

/* Runs a search to its end; returns how it ended, and that it stays so. */
static int run_through(const vec_near_args *a)
{
    vec_near *near;
    vec_hit h;
    int rc = vec_near_new(a, &near);

    if (rc < 0) {
        assert_null(near);
        return rc;
    }
    while ((rc = vec_near_next(near, &h)) == 1)
        ;
    assert_int_equal(vec_near_next(near, &h), rc);
    vec_near_free(near);
    return rc;
}

static void failing_fetches_and_stops(void **state)
{
    (void)state;
    t_rng r = t_rng_start(26);
    float query[96];

    t_vector(&r, T_NORMAL, query, 96);
    set *s = make_set(&r, VEC_COSINE, INDEPENDENT, 96, 4000, 5, query);
    free(s->filter);
    s->filter = NULL;
    for (uint64_t hint = 0; hint <= s->n; hint += s->n) {
        vec_near_args a = args(s, VEC_COSINE, query, hint);
        s->fetched = s->asked = s->fetch_fails_at = s->stop_at = 0;
        assert_int_equal(run_through(&a), 0);
        long fetched = s->fetched, asked = s->asked;
        // records of 112 bytes and vectors of 384, 64 KiB an asking, and one in 256 fetches
        assert_true(asked >= 10 && asked <= 60);
        for (long k = 1; k <= asked; k++) {
            s->asked = 0, s->stop_at = k;
            assert_int_equal(run_through(&a), VEC_ABORT);
        }
        s->stop_at = 0;
        for (long k = 1; k <= fetched; k += k < 20 ? 1 : 97) {
            s->fetched = 0, s->fetch_fails_at = k;
            assert_int_equal(run_through(&a), VEC_ABORT);
        }
        s->fetch_fails_at = 0;
        a.stop = NULL;
        assert_int_equal(run_through(&a), 0);
    }
    free_set(s);
}

static void failing_allocations(void **state)
{
    (void)state;
    t_rng r = t_rng_start(27);
    float query[16];
    t_alloc a = {0};
    const vec_allocator hook = {t_alloc_get, t_alloc_resize, t_alloc_release, &a};

    t_vector(&r, T_NORMAL, query, 16);
    set *s = make_set(&r, VEC_L2, INDEPENDENT, 16, 1000, 5, query);
    for (uint64_t hint = 0; hint <= s->n; hint += s->n) {
        vec_near_args x = args(s, VEC_L2, query, hint);
        int rc = VEC_NOMEM;
        long failures = 0;

        for (a.fail_at = 1;; a.fail_at++) {
            a.count = 0;
            vec_set_allocator(&hook);
            rc = run_through(&x);
            vec_set_allocator(NULL);
            assert_int_equal(a.live, 0);
            if (a.count < a.fail_at)
                break;
            assert_int_equal(rc, VEC_NOMEM);
            failures++;
        }
        assert_int_equal(rc, 0);
        assert_true(failures >= 6);
    }
    free_set(s);
}

/* The point of it all: of ten thousand vectors, a few are read for the first ten hits. */
static void few_vectors_are_read(void **state)
{
    (void)state;
    t_rng r = t_rng_start(28);
    static const char *const name[] = {"independent", "clusters"};
    enum { DIM = 384, ROWS = 10000, QUERIES = 5 };
    float query[DIM];

    for (int shape = INDEPENDENT; shape <= CLUSTERS; shape++) {
        t_vector(&r, T_NORMAL, query, DIM);
        set *s = make_set(&r, VEC_COSINE, shape, DIM, ROWS, 8, query);
        free(s->filter);
        s->filter = NULL;
        long most = 0;
        for (int i = 0; i < QUERIES; i++) {
            vec_near_args a = args(s, VEC_COSINE, query, 10);
            vec_near *near;
            vec_hit h;
            const float *near_to = s->x + t_rng_below(&r, ROWS) * DIM;
            for (size_t j = 0; j < DIM; j++)
                query[j] = (shape == CLUSTERS ? near_to[j] : 0) + 0.3f * t_rng_normal(&r);
            s->fetched = 0;
            assert_int_equal(vec_near_new(&a, &near), VEC_OK);
            assert_true(s->fetched <= 10);
            for (int k = 0; k < 10; k++)
                assert_int_equal(vec_near_next(near, &h), 1);
            vec_near_free(near);
            most = s->fetched > most ? s->fetched : most;
        }
        printf("# report: %s, %d rows: at most %ld vectors read for ten hits\n", name[shape], ROWS,
               most);
        assert_true(most >= 10 && most <= 200);
        free_set(s);
    }
}

static int run(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sequences_are_exact),
        cmocka_unit_test(sequences_are_exact_in_usual_dimensions),
        cmocka_unit_test(sequences_are_exact_over_many_rows),
        cmocka_unit_test(threads_change_nothing),
        cmocka_unit_test(nothing_to_find),
        cmocka_unit_test(misuse),
        cmocka_unit_test(damaged_records),
        cmocka_unit_test(failing_fetches_and_stops),
        cmocka_unit_test(failing_allocations),
        cmocka_unit_test(few_vectors_are_read),
    };

    vec_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return t_levels_run(t_levels_all, run);
}
