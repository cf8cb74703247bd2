/*
 * t_vec_ivf.c - near neighbours through lists, against sorting all distances
 *
 * What lists promise: the head of the ranking at a recall, every row once in the end, distances
 * exact to the last bit. Each kind and metric, with filters, rows in tails, rows outside the index;
 * damaged images; failures. Runs once for every level.
 *
 * SPDX-License-Identifier: MIT
 */
#include "t_alloc.h"
#include "t_levels.h"
#include "t_rng.h"
#include "t_vectors.h"
#include "vec.h"
#include "vec_ivf.h"
#include "vec_limits.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Rows 0..n-1: the first `indexed` were there when the index was built, then come tails, then
 * plain extents. */
typedef struct set {
    int metric;
    size_t dim, n, indexed, tailed;
    float *x, *norm; // norm NaN: no vector
    uint8_t *half[2];
    uint64_t *filter;
    uint8_t *image;
    size_t bytes;
    vec_ivf *index;
    uint8_t *tail_image[2];
    vec_tail *tail[2];
    size_t ntail;
    vec_extent exact;
    vec_plane_extent plane;
    long asked, stop_at, rests;
} set;

static void *get(size_t n)
{
    void *p = malloc(n ? n : 1);

    assert_non_null(p);
    return p;
}

static const float *fetch(void *ctx, uint64_t row, float *norm)
{
    set *s = ctx;

    assert_true(row < s->n);
    *norm = s->norm[row];
    return s->x + row * s->dim;
}

static int halves(void *ctx, uint64_t row, const uint8_t **coarse, const uint8_t **fine)
{
    set *s = ctx;

    assert_true(row < s->tailed);
    *coarse = s->half[0] + row * vec_halves_stride(s->dim);
    *fine = s->half[1] + row * vec_halves_stride(s->dim);
    return 0;
}

static int64_t id_of(void *ctx, uint64_t row)
{
    return 1000000 - (int64_t)row + 0 * ((set *)ctx)->metric;
}

static int stop(void *ctx)
{
    set *s = ctx;

    return ++s->asked == s->stop_at;
}

static int rest(void *ctx, const uint64_t *filter, vec_near **out)
{
    set *s = ctx;
    vec_near_args a = {.metric = s->metric,
                       .query = s->x + s->n * s->dim,
                       .dim = s->dim,
                       .planes = &s->plane,
                       .nplane = 1,
                       .exact = &s->exact,
                       .nexact = 1,
                       .filter = filter,
                       .fetch = fetch,
                       .id = id_of,
                       .ctx = s};

    s->rests++;
    return vec_near_new(&a, out);
}

enum { CLUSTERS, TIGHT, INDEPENDENT, EQUAL, ZEROS, HOSTILE, SHAPES };

static void make_vectors(t_rng *r, int shape, set *s)
{
    enum { NCENTRE = 20 };
    float *centre = get(NCENTRE * s->dim * sizeof *centre);

    for (size_t c = 0; c < NCENTRE; c++)
        t_vector(r, T_NORMAL, centre + c * s->dim, s->dim);
    for (size_t i = 0; i <= s->n; i++) { // the last is the query
        float *x = s->x + i * s->dim;
        const float *c = centre + t_rng_below(r, NCENTRE) * s->dim;

        t_vector(r, shape == HOSTILE ? (int)t_rng_below(r, T_KINDS) : T_NORMAL, x, s->dim);
        for (size_t j = 0; j < s->dim; j++)
            x[j] = shape == CLUSTERS ? c[j] + 0.3f * x[j]
                   : shape == TIGHT  ? c[j] + 0.2f * x[j]
                   : shape == EQUAL  ? centre[j]
                   : shape == ZEROS  ? 0
                                     : x[j];
        s->norm[i] = i == s->n || t_rng_below(r, 16) ? vec_norm_f32(x, s->dim) : NAN;
    }
    free(centre);
}

static void make_tails(set *s)
{
    size_t at = s->indexed, half = s->indexed + (s->tailed - s->indexed) / 2;

    for (int t = 0; t < 2; t++) {
        size_t end = t ? s->tailed : half, n = 0, bytes;
        vec_pair *pairs = get((end - at) * sizeof *pairs);

        for (; at < end; at++)
            if (!isnan(s->norm[at])) {
                pairs[n].row = (uint32_t)at;
                assert_int_equal(
                    vec_ivf_assign(s->index, s->x + at * s->dim, s->norm[at], &pairs[n++].list),
                    VEC_OK);
            }
        assert_int_equal(vec_tail_image(pairs, n, &s->tail_image[t], &bytes), VEC_OK);
        assert_int_equal(vec_tail_open(s->tail_image[t], bytes, &s->tail[t]), VEC_OK);
        assert_int_equal(vec_tail_check(s->tail[t], SIZE_MAX), VEC_OK);
        free(pairs);
    }
    s->ntail = 2;
}

static void build(set *s, int kind)
{
    vec_ivf_args a = {.kind = kind,
                      .metric = s->metric,
                      .dim = s->dim,
                      .nrow = s->indexed,
                      .fetch = fetch,
                      .ctx = s};

    assert_int_equal(vec_ivf_build(&a, &s->image, &s->bytes), VEC_OK);
    if (s->image) {
        assert_int_equal(vec_ivf_open(s->image, s->bytes, &s->index), VEC_OK);
        assert_int_equal(vec_ivf_check(s->index), VEC_OK);
    }
}

static set *make_set(t_rng *r, int kind, int metric, int shape, size_t dim, size_t n)
{
    set *s = get(sizeof *s);
    uint8_t *record = get(vec_plane_stride(dim));

    *s = (set){.metric = metric, .dim = dim, .n = n, .indexed = n * 8 / 10, .tailed = n * 95 / 100};
    s->x = get((n + 1) * dim * sizeof *s->x);
    s->norm = get((n + 1) * sizeof *s->norm);
    for (int k = 0; k < 2; k++)
        s->half[k] = get(n * vec_halves_stride(dim));
    s->filter = get((n / 64 + 1) * sizeof *s->filter);
    make_vectors(r, shape, s);
    for (size_t i = 0; i < n; i++) {
        const float *x = isnan(s->norm[i]) ? NULL : s->x + i * dim;
        size_t at = i * vec_halves_stride(dim);
        vec_plane_encode(x, s->norm[i], dim, record);
        vec_halves_split(x, dim, record, s->half[0] + at, s->half[1] + at);
    }
    free(record);
    memset(s->filter, 0, (n / 64 + 1) * sizeof *s->filter);
    for (size_t i = 0; i < n; i++)
        s->filter[i >> 6] |= (uint64_t)1 << (i & 63);
    s->plane = (vec_plane_extent){s->half[0], s->half[1], 0, s->tailed};
    s->exact = (vec_extent){s->x + s->tailed * dim, s->norm + s->tailed, s->tailed, n - s->tailed};
    build(s, kind);
    if (s->index)
        make_tails(s);
    return s;
}

static void free_set(set *s)
{
    for (size_t i = 0; i < 2; i++) {
        vec_tail_close(s->tail[i]);
        vec_free(s->tail_image[i]);
    }
    vec_ivf_close(s->index);
    vec_free(s->image);
    free(s->x);
    free(s->norm);
    free(s->half[0]);
    free(s->half[1]);
    free(s->filter);
    free(s);
}

static vec_probe_args args(set *s, uint64_t want, double recall)
{
    return (vec_probe_args){.index = s->index,
                            .tails = s->tail,
                            .ntail = s->ntail,
                            .exact = &s->exact,
                            .nexact = 1,
                            .query = s->x + s->n * s->dim,
                            .nrow = s->n,
                            .filter = s->filter,
                            .share = 1,
                            .want = want,
                            .recall = recall,
                            .fetch = fetch,
                            .halves = halves,
                            .id = id_of,
                            .rest = rest,
                            .ctx = s};
}

static int by_key_then_id(const void *a, const void *b)
{
    const vec_hit *x = a, *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static vec_hit *brute_force(set *s, size_t *n)
{
    const float *query = s->x + s->n * s->dim;
    vec_hit *h = get(s->n * sizeof *h);

    *n = 0;
    for (size_t i = 0; i < s->n; i++)
        if (!isnan(s->norm[i]) && (s->filter[i >> 6] >> (i & 63) & 1))
            h[(*n)++] = (vec_hit){vec_distance(s->metric, query, s->norm[s->n], s->x + i * s->dim,
                                               s->norm[i], s->dim),
                                  id_of(s, i), i};
    qsort(h, *n, sizeof *h, by_key_then_id);
    return h;
}

/* How many of the first k true neighbours are among the first k that come; the head is in order and
 * every distance right. */
static size_t found(set *s, const vec_probe_args *a, const vec_hit *want, size_t n, size_t k)
{
    vec_probe *p;
    vec_hit h, before = {-INFINITY, 0, 0};
    size_t count = 0;

    k = k < n ? k : n;
    assert_int_equal(vec_probe_new(a, &p), VEC_OK);
    for (size_t i = 0; i < k; i++) {
        double d;

        assert_int_equal(vec_probe_next(p, &h), 1);
        d = vec_distance(s->metric, a->query, s->norm[s->n], s->x + h.row * s->dim, s->norm[h.row],
                         s->dim);
        assert_memory_equal(&d, &h.key, sizeof d);
        assert_true(by_key_then_id(&before, &h) < 0);
        before = h;
        for (size_t j = 0; j < k; j++)
            count += want[j].row == h.row;
    }
    vec_probe_free(p);
    return count;
}

/* Every row of the filter that has a vector comes once, and then there are no more. */
static void all_come(set *s, const vec_probe_args *a, size_t n)
{
    uint8_t *seen = get(s->n);
    vec_probe *p;
    vec_hit h;
    int rc = vec_probe_new(a, &p);

    memset(seen, 0, s->n);
    assert_int_equal(rc, VEC_OK);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(vec_probe_next(p, &h), 1);
        assert_true(h.row < s->n && !isnan(s->norm[h.row]));
        assert_true(s->filter[h.row >> 6] >> (h.row & 63) & 1);
        assert_int_equal(seen[h.row]++, 0);
    }
    assert_int_equal(vec_probe_next(p, &h), 0);
    assert_int_equal(vec_probe_next(p, &h), 0);
    vec_probe_free(p);
    free(seen);
}

static void thin_filter(t_rng *r, set *s, int keep)
{
    for (size_t i = 0; i < s->n; i++)
        if ((int)t_rng_below(r, 100) >= keep)
            s->filter[i >> 6] &= ~((uint64_t)1 << (i & 63));
}

/* ---------------------------------------------------------------------------------------- tests */

static void heads_reach_their_recall(void **state)
{
    (void)state;
    t_rng r = t_rng_start(71);

    for (int kind = VEC_IVF; kind <= VEC_RAIRS; kind++)
        for (int metric = 0; metric < 3; metric++)
            for (int keep = 100; keep > 0; keep -= 80) {
                set *s = make_set(&r, kind, metric, CLUSTERS, 32, 4000);
                size_t hits = 0, wanted = 0;

                thin_filter(&r, s, keep);
                for (int q = 0; q < 40; q++) {
                    float *query = s->x + s->n * s->dim;
                    size_t n, like = t_rng_below(&r, s->n);

                    for (size_t j = 0; j < s->dim; j++)
                        query[j] = s->x[like * s->dim + j] + 0.2f * t_rng_normal(&r);
                    s->norm[s->n] = vec_norm_f32(query, s->dim);
                    vec_hit *want = brute_force(s, &n);
                    vec_probe_args a = args(s, 10, 0.98);
                    a.share = keep / 100.0;
                    hits += found(s, &a, want, n, 10);
                    wanted += 10;
                    free(want);
                }
                // 400 neighbours: 0.98 promised, three deviations of the sample below
                assert_true((double)hits >= 0.96 * (double)wanted);
                free_set(s);
            }
}

/* A row's first list (of its block) and second (whose cell names its place), from the image. */
static void lists_of_rows(const vec_ivf *ix, uint32_t *first, uint32_t *second)
{
    const uint8_t *rows = ix->bytes + ix->at.rows, *cells = ix->bytes + ix->at.cells;

    for (uint32_t l = 0; l < ix->nlist; l++) {
        const vec_ivf_list *list = &ix->list[l];

        for (uint32_t i = list->block * 32; i < (list->block + list->nblock) * 32; i++) {
            uint32_t row;
            memcpy(&row, rows + (size_t)4 * i, 4);
            if (row != VEC_IVF_NO_ROW)
                first[row] = l;
        }
        for (uint32_t c = list->cell; c < list->cell + list->ncell; c++) {
            uint32_t cell[2];
            memcpy(cell, cells + (size_t)8 * c, 8);
            for (uint32_t i = cell[0]; i < cell[0] + cell[1]; i++) {
                uint32_t row;
                memcpy(&row, rows + (size_t)4 * i, 4);
                second[row] = l;
            }
        }
    }
}

/* |v - c|^2 + (v - c1).(v - c) / 2 */
static double air(const float *v, const float *c1, const float *c, size_t dim)
{
    double sum = 0;

    for (size_t j = 0; j < dim; j++) {
        double d = (double)v[j] - (double)c[j];
        sum += d * d + 0.5 * ((double)v[j] - (double)c1[j]) * d;
    }
    return sum;
}

/* The second list has the least value of all, the first one's own counting as none. */
static void second_lists_are_the_papers(void **state)
{
    (void)state;
    t_rng r = t_rng_start(77);

    for (int metric = 0; metric < 2; metric++) {
        set *s = make_set(&r, VEC_RAIRS, metric, CLUSTERS, 16, 4000);
        const vec_ivf *ix = s->index;
        size_t dim = s->dim, good = 0, all = 0, seconds = 0;
        float *centre = get(ix->nlist * dim * sizeof *centre), *y = get(dim * sizeof *y);
        uint32_t *first = get(s->n * sizeof *first), *second = get(s->n * sizeof *second);

        memset(first, 0xff, s->n * sizeof *first);
        memset(second, 0xff, s->n * sizeof *second);
        lists_of_rows(ix, first, second);
        for (size_t l = 0; l < ix->nlist; l++)
            vec_centroid_decode(&ix->centroids, l, centre + l * dim);
        for (size_t i = 0; i < s->n; i++) {
            if (first[i] == VEC_IVF_NO_ROW)
                continue;
            vec_ivf_space(ix, s->x + i * dim, s->norm[i], y);
            const float *c1 = centre + first[i] * dim;
            double least = air(y, c1, c1, dim);
            for (size_t l = 0; l < ix->nlist; l++)
                least = fmin(least, air(y, c1, centre + l * dim, dim));
            size_t took = second[i] == VEC_IVF_NO_ROW ? first[i] : second[i];
            good += air(y, c1, centre + took * dim, dim) <= least + 1e-3 * fabs(least) + 1e-4;
            seconds += second[i] != VEC_IVF_NO_ROW;
            all++;
        }
        assert_true(all > 2000 && seconds > all / 10);
        assert_true(good * 100 >= all * 99); // only the 16 nearest are looked at
        free(centre);
        free(y);
        free(first);
        free(second);
        free_set(s);
    }
}

/* Vectors that look for their own kind within clusters far apart. What is true of all trial queries
 * on average, of which half lie between the clusters, was not true of these: 0.98 for 0.99. */
static void tight_clusters_reach_it_too(void **state)
{
    (void)state;
    t_rng r = t_rng_start(75);
    size_t hits = 0, wanted = 0;

    for (int round = 0; round < 4; round++) {
        set *s = make_set(&r, round % 2 ? VEC_RAIRS : VEC_IVFPQ, VEC_COSINE, TIGHT, 16, 5000);

        for (int q = 0; q < 200; q++) {
            size_t n, like = t_rng_below(&r, s->n);
            uint64_t bit = (uint64_t)1 << (like & 63), had = s->filter[like >> 6];

            memcpy(s->x + s->n * s->dim, s->x + like * s->dim, s->dim * sizeof *s->x);
            s->norm[s->n] = vec_norm_f32(s->x + s->n * s->dim, s->dim);
            s->filter[like >> 6] &= ~bit;
            vec_hit *want = brute_force(s, &n);
            vec_probe_args a = args(s, 10, 0.99);
            hits += found(s, &a, want, n, 10);
            wanted += 10;
            free(want);
            s->filter[like >> 6] = had;
        }
        free_set(s);
    }
    assert_true((double)hits >= 0.987 * (double)wanted);
}

static void every_row_comes_once(void **state)
{
    (void)state;
    t_rng r = t_rng_start(72);

    for (int round = 0; round < 90; round++) {
        int kind = VEC_IVF + round % 3, metric = round / 3 % 3,
            shape = (int)t_rng_below(&r, SHAPES);
        size_t dim = 1 + t_rng_below(&r, t_rng_below(&r, 4) ? 40 : 200);
        set *s = make_set(&r, kind, metric, shape, dim, 30 + t_rng_below(&r, 900)), *t = s;
        size_t n;

        if (t_rng_below(&r, 2))
            thin_filter(&r, s, (int)t_rng_below(&r, 100));
        vec_hit *want = brute_force(t, &n);
        if (s->index) {
            vec_probe_args a = args(s, t_rng_below(&r, 3) ? t_rng_below(&r, 50) : 0, 0.9);

            a.probes = t_rng_below(&r, 3);
            if (t_rng_below(&r, 4) == 0)
                a.halves = NULL;
            all_come(s, &a, n);
            assert_true(s->rests <= 1);
        }
        free(want);
        free_set(s);
    }
}

static void images_repeat_and_renumber(void **state)
{
    (void)state;
    t_rng r = t_rng_start(73);

    for (int kind = VEC_IVF; kind <= VEC_RAIRS; kind++) {
        set *s = make_set(&r, kind, VEC_COSINE, CLUSTERS, 16, 1500);
        uint8_t *first = s->image, *made;
        size_t bytes = s->bytes, n;
        vec_ivf_info info;
        vec_ivf *renumbered;

        vec_ivf_close(s->index);
        build(s, kind);
        assert_int_equal(s->bytes, bytes);
        assert_memory_equal(s->image, first, bytes);
        vec_free(first);
        // rows that stay get the number of live rows before them
        uint64_t live[1500 / 64 + 1];
        uint64_t vectors = 0;
        t_rng_fill(&r, live, sizeof live);
        for (size_t i = 0; i < s->indexed; i++)
            vectors += (live[i >> 6] >> (i & 63) & 1) && !isnan(s->norm[i]);
        assert_int_equal(vec_ivf_renumber(s->index, live, &made, &n), VEC_OK);
        assert_int_equal(vec_ivf_open(made, n, &renumbered), VEC_OK);
        assert_int_equal(vec_ivf_check(renumbered), VEC_OK);
        vec_ivf_get_info(renumbered, &info);
        assert_int_equal(info.vectors, vectors);
        vec_ivf_close(renumbered);
        vec_free(made);
        free_set(s);
    }
}

/* Threads are worth it from so many vectors on; the image has the same bytes for any number. */
static void threads_change_nothing(void **state)
{
    (void)state;
    t_rng r = t_rng_start(81);

    for (int kind = VEC_IVF; kind <= VEC_RAIRS; kind++) {
        set *s = make_set(&r, kind, kind == VEC_RAIRS ? VEC_L2 : VEC_COSINE, CLUSTERS, 10, 9000);
        vec_ivf_args a = {.kind = kind,
                          .metric = s->metric,
                          .dim = s->dim,
                          .nrow = s->indexed,
                          .fetch = fetch,
                          .ctx = s};

        for (a.threads = 2; a.threads < 9; a.threads += 3) {
            uint8_t *bytes;
            size_t n;

            assert_int_equal(vec_ivf_build(&a, &bytes, &n), VEC_OK);
            assert_int_equal(n, s->bytes);
            assert_memory_equal(bytes, s->image, n);
            vec_free(bytes);
        }
        free_set(s);
    }
}

/* Any change to an image is told by opening it or by checking it; and whatever it is, a search over
 * what opens stays within bounds and still gives every row once. */
static void damaged_images(void **state)
{
    (void)state;
    t_rng r = t_rng_start(74);

    for (int round = 0; round < 600; round++) {
        static set *s;
        size_t at, n;
        vec_ivf *good, *bad;

        if (round % 100 == 0)
            s = make_set(&r, VEC_IVF + round / 100 % 3, round / 100 % 3, CLUSTERS, 12, 700);
        uint8_t *copy = get(s->bytes);
        memcpy(copy, s->image, s->bytes);
        do {
            at = t_rng_below(&r, round % 3 ? s->bytes : 300);
            copy[at] ^= (uint8_t)(1 + t_rng_below(&r, 255));
        } while (t_rng_below(&r, 2));
        int rc = vec_ivf_open(copy, s->bytes, &bad);
        if (rc == VEC_OK) {
            vec_hit *want = brute_force(s, &n);
            if (memcmp(copy, s->image, s->bytes) != 0)
                assert_int_equal(vec_ivf_check(bad) == VEC_OK, 0);
            good = s->index;
            s->index = bad;
            vec_probe_args a = args(s, 10, 0.9);
            all_come(s, &a, n);
            s->index = good;
            vec_ivf_close(bad);
            free(want);
        } else {
            assert_int_equal(rc, VEC_FORMAT);
            assert_null(bad);
        }
        for (size_t cut = round % 100 ? s->bytes : 0; cut < s->bytes; cut += 1 + cut / 16)
            assert_int_equal(vec_ivf_open(s->image, cut, &bad), VEC_FORMAT);
        free(copy);
        if (round % 100 == 99)
            free_set(s);
    }
}

static void damaged_tails(void **state)
{
    (void)state;
    t_rng r = t_rng_start(75);
    set *s = make_set(&r, VEC_IVFPQ, VEC_L2, CLUSTERS, 12, 900);
    size_t bytes = 48 + 8 * vec_tail_count(s->tail[0]), n;
    vec_hit *want = brute_force(s, &n);

    for (int round = 0; round < 300; round++) {
        vec_tail *good = s->tail[0], *bad;
        uint8_t *copy = get(bytes);

        memcpy(copy, s->tail_image[0], bytes);
        copy[t_rng_below(&r, round % 2 ? bytes : 48)] ^= (uint8_t)(1 + t_rng_below(&r, 255));
        int rc = vec_tail_open(copy, bytes, &bad);
        if (rc == VEC_OK) {
            assert_int_equal(vec_tail_check(bad, SIZE_MAX), VEC_FORMAT);
            s->tail[0] = bad;
            vec_probe_args a = args(s, 10, 0.9);
            // a pair may name a row that has no record; the store lets none such pass
            a.halves = NULL;
            all_come(s, &a, n);
            s->tail[0] = good;
            vec_tail_close(bad);
        } else {
            assert_int_equal(rc, VEC_FORMAT);
        }
        free(copy);
    }
    free(want);
    free_set(s);
}

static void few_vectors(void **state)
{
    (void)state;
    t_rng r = t_rng_start(76);

    for (size_t n = 1; n < 40; n++)
        for (int kind = VEC_IVF; kind <= VEC_RAIRS; kind++) {
            set *s = make_set(&r, kind, (int)(n % 3), n % 2 ? EQUAL : INDEPENDENT, 5, n);
            size_t nwant;
            vec_hit *want = brute_force(s, &nwant);

            if (s->index) {
                vec_probe_args a = args(s, 3, 0.99);
                all_come(s, &a, nwant);
            }
            free(want);
            free_set(s);
        }
}

static void misuse(void **state)
{
    (void)state;
    t_rng r = t_rng_start(77);
    set *s = make_set(&r, VEC_IVFPQ, VEC_L2, CLUSTERS, 8, 300);
    vec_ivf_args b = {.kind = 0, .metric = 0, .dim = 8, .nrow = 10, .fetch = fetch, .ctx = s};
    uint8_t *bytes;
    size_t n;
    vec_probe *p;

    assert_int_equal(vec_ivf_build(&b, &bytes, &n), VEC_MISUSE);
    b.kind = VEC_IVF, b.metric = 3;
    assert_int_equal(vec_ivf_build(&b, &bytes, &n), VEC_MISUSE);
    b.metric = 0, b.dim = VEC_PLANE_DIM_MAX + 1;
    assert_int_equal(vec_ivf_build(&b, &bytes, &n), VEC_LIMIT);
    assert_null(bytes);
    const vec_probe_args good = args(s, 1, 0.9);
    vec_probe_args a = good;
    a.recall = 0.4;
    assert_int_equal(vec_probe_new(&a, &p), VEC_MISUSE);
    a = good, a.filter = NULL;
    assert_int_equal(vec_probe_new(&a, &p), VEC_MISUSE);
    a = good, a.share = 0;
    assert_int_equal(vec_probe_new(&a, &p), VEC_MISUSE);
    assert_null(p);
    vec_probe_free(NULL);
    vec_ivf_close(NULL);
    vec_tail_close(NULL);
    free_set(s);
}

static int run_through(const vec_probe_args *a)
{
    vec_probe *p;
    vec_hit h;
    int rc = vec_probe_new(a, &p);

    if (rc < 0) {
        assert_null(p);
        return rc;
    }
    for (int i = 0; i < 60 && (rc = vec_probe_next(p, &h)) == 1; i++)
        ;
    if (rc < 0)
        assert_int_equal(vec_probe_next(p, &h), rc);
    vec_probe_free(p);
    return rc < 0 ? rc : VEC_OK;
}

static void failures(void **state)
{
    (void)state;
    t_rng r = t_rng_start(78);
    t_alloc a = {0};
    const vec_allocator hook = {t_alloc_get, t_alloc_resize, t_alloc_release, &a};

    vec_set_allocator(&hook);
    for (int kind = VEC_IVF; kind <= VEC_RAIRS; kind++) {
        set *s = make_set(&r, kind, VEC_L2, CLUSTERS, 6, 400);
        vec_probe_args p = args(s, 5, 0.9);
        vec_ivf_args b = {.kind = kind,
                          .metric = VEC_L2,
                          .dim = 6,
                          .nrow = 320,
                          .fetch = fetch,
                          .stop = stop,
                          .ctx = s};
        long live = a.live;

        for (a.fail_at = 1;; a.fail_at++) {
            a.count = 0;
            int rc = run_through(&p);
            assert_int_equal(a.live, live);
            if (a.count < a.fail_at)
                break;
            assert_int_equal(rc, VEC_NOMEM);
        }
        for (a.fail_at = 1;; a.fail_at += 1 + a.fail_at / 16) {
            uint8_t *bytes;
            size_t n;
            a.count = 0;
            int rc = vec_ivf_build(&b, &bytes, &n);
            if (a.count < a.fail_at) {
                assert_int_equal(rc, VEC_OK);
                vec_free(bytes);
                break;
            }
            assert_int_equal(a.live, live);
            assert_int_equal(rc, VEC_NOMEM);
        }
        a.fail_at = 0;
        for (long k = 1, end = 0; !end; k++) {
            uint8_t *bytes;
            size_t n;
            s->asked = 0, s->stop_at = k;
            int rc = vec_ivf_build(&b, &bytes, &n);
            end = s->asked < k;
            assert_int_equal(rc, end ? VEC_OK : VEC_ABORT);
            vec_free(bytes);
            assert_int_equal(a.live, live);
        }
        free_set(s);
    }
    assert_int_equal(a.live, 0);
    vec_set_allocator(NULL);
}

static int run(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_reach_their_recall),
        cmocka_unit_test(second_lists_are_the_papers),
        cmocka_unit_test(tight_clusters_reach_it_too),
        cmocka_unit_test(every_row_comes_once),
        cmocka_unit_test(images_repeat_and_renumber),
        cmocka_unit_test(threads_change_nothing),
        cmocka_unit_test(damaged_images),
        cmocka_unit_test(damaged_tails),
        cmocka_unit_test(few_vectors),
        cmocka_unit_test(misuse),
        cmocka_unit_test(failures),
    };

    vec_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return t_levels_run(t_levels_all, run);
}
