/*
 * t_vec_threads.c - many threads may start the library at once and search the same run and vectors
 *
 * Made for the thread sanitizer; without it the results are compared all the same.
 *
 * SPDX-License-Identifier: MIT
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "t_corpus.h"
#include "vec.h"

enum { THREADS = 4, ROWS = 3000, DIM = 24, ROUNDS = 20 };

typedef struct shared {
    t_corpus corpus;
    vec_text *text;
    vec_run *run;
    float *rows;
    float *norms;
} shared;

typedef struct task {
    const shared *s;
    double sum; // of all scores and distances
    int failed;
} task;

static double search_text(const shared *s, const vec_source *src, int *failed)
{
    int words[] = {0, 1, 4, 9};
    vec_bm25_args a = {
        src,        1,    NULL, 0,   s->corpus.live, NULL, s->corpus.nrow, VEC_BM25_K1,
        VEC_BM25_B, NULL, NULL, NULL};
    uint8_t *query = t_stream(words, NULL, 4, &a.nquery);
    double sum = 0;
    vec_hit *hits;
    size_t n;

    a.query = query;
    *failed += vec_bm25(&a, &hits, &n) != VEC_OK;
    for (size_t i = 0; i < n; i++)
        sum += hits[i].key;
    vec_free(hits);
    free(query);
    return sum;
}

static void *work(void *arg)
{
    task *t = arg;
    const shared *s = t->s;
    vec_source run = {s->run, NULL, 0, 0}, text = {NULL, s->text, 0, 0};
    vec_extent e = {s->rows, s->norms, 0, ROWS};
    double *out;

    vec_init();
    out = malloc(ROWS * sizeof *out);
    for (int i = 0; i < ROUNDS; i++) {
        t->sum += search_text(s, &run, &t->failed) + search_text(s, &text, &t->failed);
        t->failed += vec_scan(VEC_COSINE, s->rows, DIM, &e, 1, s->corpus.live, out, NULL, NULL) !=
                     VEC_OK;
        t->sum += out[s->corpus.doc[0].row];
        t->failed += vec_run_check(s->run) != VEC_OK;
    }
    free(out);
    return NULL;
}

static void threads_search_side_by_side(void **state)
{
    t_rng r = t_rng_start(131);
    shared s = {.corpus = t_corpus_new(&r, ROWS, 200, 1, 0)};
    pthread_t thread[THREADS];
    task task_of[THREADS];
    uint8_t *bytes;
    size_t n;

    (void)state;
    s.rows = malloc(ROWS * DIM * sizeof *s.rows);
    s.norms = malloc(ROWS * sizeof *s.norms);
    for (int i = 0; i < ROWS * DIM; i++)
        s.rows[i] = t_rng_normal(&r);
    for (int i = 0; i < ROWS; i++)
        s.norms[i] = vec_norm_f32(s.rows + i * DIM, DIM);
    assert_int_equal(vec_text_new(&s.text), VEC_OK);
    for (int i = 0; i < ROWS; i++)
        assert_int_equal(t_corpus_add(&s.corpus, i, 0, s.text), VEC_OK);
    assert_int_equal(vec_text_image(s.text, &bytes, &n), VEC_OK);
    assert_int_equal(vec_run_open(bytes, n, &s.run), VEC_OK);
    for (int i = 0; i < THREADS; i++) {
        task_of[i] = (task){.s = &s};
        assert_int_equal(pthread_create(&thread[i], NULL, work, &task_of[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(thread[i], NULL), 0);
        assert_int_equal(task_of[i].failed, 0);
        assert_true(task_of[i].sum == task_of[0].sum);
    }
    assert_true(task_of[0].sum < 0);
    vec_run_close(s.run);
    vec_free(bytes);
    vec_text_free(s.text);
    free(s.rows);
    free(s.norms);
    t_corpus_free(&s.corpus);
}

/* ---- one search in several threads */

enum { NEAR_DIM = 8, NEAR_ROWS = 40000, CHUNKS = 20 };

typedef struct planes {
    float *x;
    uint8_t *half[2];
    vec_plane_extent extent[CHUNKS];
} planes;

static const float *fetch(void *ctx, uint64_t row, float *norm)
{
    const planes *p = ctx;

    *norm = vec_norm_f32(p->x + row * NEAR_DIM, NEAR_DIM);
    return p->x + row * NEAR_DIM;
}

static int64_t id(void *ctx, uint64_t row)
{
    (void)ctx;
    return (int64_t)row;
}

static int stop(void *ctx)
{
    (void)ctx;
    return 0;
}

static void make_planes(t_rng *r, planes *p)
{
    size_t stride = vec_halves_stride(NEAR_DIM), each = NEAR_ROWS / CHUNKS;
    uint8_t record[64];

    assert_true(vec_plane_stride(NEAR_DIM) <= sizeof record);
    p->x = malloc(NEAR_ROWS * NEAR_DIM * sizeof *p->x);
    p->half[0] = malloc(NEAR_ROWS * stride);
    p->half[1] = malloc(NEAR_ROWS * stride);
    for (size_t i = 0; i < NEAR_ROWS; i++) {
        float *x = p->x + i * NEAR_DIM;
        for (size_t d = 0; d < NEAR_DIM; d++)
            x[d] = t_rng_normal(r);
        vec_plane_encode(x, vec_norm_f32(x, NEAR_DIM), NEAR_DIM, record);
        vec_halves_split(x, NEAR_DIM, record, p->half[0] + i * stride, p->half[1] + i * stride);
    }
    for (size_t c = 0; c < CHUNKS; c++)
        p->extent[c] = (vec_plane_extent){p->half[0] + c * each * stride,
                                          p->half[1] + c * each * stride, c * each, each};
}

static void one_search_in_threads(void **state)
{
    (void)state;
    t_rng r = t_rng_start(132);
    planes p;
    vec_hit hits[2][50];

    vec_init();
    make_planes(&r, &p);
    for (int round = 0; round < 10; round++) {
        float query[NEAR_DIM];
        for (size_t d = 0; d < NEAR_DIM; d++)
            query[d] = t_rng_normal(&r);
        for (int many = 0; many < 2; many++) {
            vec_near_args a = {.metric = round % 3,
                               .query = query,
                               .dim = NEAR_DIM,
                               .planes = p.extent,
                               .nplane = CHUNKS,
                               .fetch = fetch,
                               .id = id,
                               .stop = stop,
                               .ctx = &p,
                               .threads = many ? THREADS : 1};
            vec_near *near;
            assert_int_equal(vec_near_new(&a, &near), VEC_OK);
            for (int i = 0; i < 50; i++)
                assert_int_equal(vec_near_next(near, &hits[many][i]), 1);
            vec_near_free(near);
        }
        assert_memory_equal(hits[0], hits[1], sizeof hits[0]);
    }
    free(p.x), free(p.half[0]), free(p.half[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(threads_search_side_by_side),
                                       cmocka_unit_test(one_search_in_threads)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
