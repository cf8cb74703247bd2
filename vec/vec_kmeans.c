/*
 * vec_kmeans.c - training centroids and finding the nearest
 *
 * SEEDS     k-means++ (Arthur and Vassilvitskii 2007): each next seed is drawn with probability in
 *           proportion to the squared distance from the seeds so far. Drawn from a part of the
 *           sample, eight vectors a centroid; the whole would cost as much as all rounds together.
 * ROUNDS    Each vector to its nearest centroid, each centroid to the mean of its vectors. Four
 *           rounds: two more, over a sample half as large again, changed neither the recall nor
 *           the rows that are read for it, and cost a fifth of the whole build.
 * EMPTY     A centroid without vectors takes the place of the vector with the largest distance to
 *           its own centroid, each of them a different one.
 *
 * ERRORS    VEC_NOMEM, VEC_ABORT
 * THREADS   no state; rounds may use some of their own: each vector is assigned by one of them,
 *           each centroid's vectors are added up by one, in order
 * TESTS     t_vec_kmeans.c
 *
 * SPDX-License-Identifier: MIT
 */
#include "vec_kmeans.h"

#include <math.h>

#include "vec_base.h"
#include "vec_least.h"
#include "vec_limits.h"
#include "vec_par.h"

#define ROUNDS       4
#define SEEDS_A_MEAN 8
#define STOP_VECTORS 64
#define SLAB         1024      /* vectors between two askings whether to stop, in rounds */
#define WORK_LEAST   (1 << 19) /* pairs of vector and centroid that a thread is worth */
#define RANDOM_SEED  0x6b6d65616e73u

static float get_f32(const uint8_t *p)
{
    uint32_t bits = vec_get32(p);
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

int vec_centroids_open(const uint8_t *records, size_t n, size_t dim, vec_centroids *c)
{
    size_t stride = vec_plane_stride(dim);

    *c = (vec_centroids){.n = n, .dim = dim, .records = records};
    c->rows = vec_alloc_array(n + 1, sizeof *c->rows);
    c->scale = vec_alloc_array(n + 1, sizeof *c->scale);
    c->square = vec_alloc_array(n + 1, sizeof *c->square);
    if (!c->rows || !c->scale || !c->square) {
        vec_centroids_close(c);
        return VEC_NOMEM;
    }
    for (size_t i = 0; i < n; i++) {
        const uint8_t *r = records + i * stride;
        float norm = get_f32(r + VEC_PLANE_NORM);

        c->rows[i] = r;
        c->scale[i] = norm * get_f32(r + VEC_PLANE_INVERSE);
        c->square[i] = norm * norm;
    }
    return VEC_OK;
}

void vec_centroids_close(vec_centroids *c)
{
    vec_free((void *)(uintptr_t)c->rows);
    vec_free(c->scale);
    vec_free(c->square);
    memset(c, 0, sizeof *c);
}

void vec_centroid_decode(const vec_centroids *c, size_t i, float *out)
{
    const uint8_t *code = c->rows[i] + VEC_PLANE_CODES;

    for (size_t j = 0; j < c->dim; j++)
        out[j] = c->scale[i] * (float)((int)code[j] - 128);
}

static size_t byte_stride(size_t dim)
{
    return (dim + VEC_PLANE_QUERY_PAD - 1) / VEC_PLANE_QUERY_PAD * VEC_PLANE_QUERY_PAD;
}

int vec_centroid_query_new(const vec_centroids *c, vec_centroid_query *s)
{
    memset(s, 0, sizeof *s);
    s->scratch = vec_alloc(vec_plane_scratch(c->dim));
    s->dots = vec_alloc_array(c->n + 1, VEC_PLANE_TOGETHER * sizeof *s->dots);
    s->bytes = vec_alloc_array(VEC_PLANE_TOGETHER, byte_stride(c->dim));
    s->dot = vec_alloc_array(c->n + 1, sizeof *s->dot);
    s->score = vec_alloc_array(c->n + 1, sizeof *s->score);
    if (s->scratch && s->dots && s->bytes && s->dot && s->score)
        return VEC_OK;
    vec_centroid_query_free(s);
    return VEC_NOMEM;
}

void vec_centroid_query_free(vec_centroid_query *s)
{
    vec_free(s->scratch);
    vec_free(s->dots);
    vec_free(s->bytes);
    vec_free(s->dot);
    vec_free(s->score);
    memset(s, 0, sizeof *s);
}

void vec_centroid_scores(const vec_centroids *c, const float *x, float norm, vec_centroid_query *s)
{
    float scale;

    vec_plane_prepare(VEC_COSINE, x, norm, c->dim, s->scratch, &s->q);
    scale = norm * s->q.inverse;
    vec_plane_kern()->dots(&s->q, c->rows, c->n, s->dots);
    for (size_t i = 0; i < c->n; i++) {
        s->dot[i] = (float)s->dots[i] * (c->scale[i] * scale);
        s->score[i] = c->square[i] - 2 * s->dot[i];
    }
}

size_t vec_centroid_best(const vec_centroid_query *s, size_t n)
{
    size_t best = 0;

    for (size_t i = 1; i < n; i++)
        best = s->score[i] < s->score[best] ? i : best;
    return best;
}

/* ----------------------------------------------------------------------------- several at once */

/* Four components; 0 behind the last. */
static vec_f4 four(const float *x, size_t dim, size_t j)
{
    float rest[4] = {0};

    if (dim - j >= 4)
        return vec_f4_load(x + j);
    memcpy(rest, x + j, (dim - j) * sizeof *rest);
    return vec_f4_load(rest);
}

/* x as bytes; returns what one of them is worth. */
static float to_bytes(const float *x, size_t dim, int8_t *out)
{
    const vec_i4 sign = {INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN};
    vec_f4 size = vec_f4_all(0), half = vec_f4_all(0.5f);
    float most = 0, by;

    for (size_t j = 0; j < dim; j += 4) {
        vec_f4 v = (vec_f4)((vec_i4)four(x, dim, j) & ~sign);
        vec_i4 more = v > size;

        size = (vec_f4)((more & (vec_i4)v) | (~more & (vec_i4)size));
    }
    for (int k = 0; k < 4; k++)
        most = size[k] > most ? size[k] : most;
    by = most > 0 ? 127 / most : 0;
    memset(out, 0, byte_stride(dim));
    for (size_t j = 0; j < dim; j += 4) {
        vec_f4 v = four(x, dim, j) * vec_f4_all(by);
        vec_f4 h = (vec_f4)(((vec_i4)v & sign) | (vec_i4)half); // rounds away from zero
        vec_i4 code = __builtin_convertvector(v + h, vec_i4);

        for (size_t k = 0; k < 4; k++)
            out[j + k] = (int8_t)code[k];
    }
    return most / 127;
}

/* The least score; the first of equals. */
static uint32_t least_score(const vec_centroids *c, const int32_t *dots, float by, float *score)
{
    vec_least l = vec_least_start();
    float rest[4] = {INFINITY, INFINITY, INFINITY, INFINITY};
    size_t i = 0;

    for (; c->n - i >= 4; i += 4) {
        vec_i4 d;

        memcpy(&d, dots + i, sizeof d);
        vec_least_take(&l, vec_f4_load(c->square + i) -
                               __builtin_convertvector(d, vec_f4) *
                                   (vec_f4_load(c->scale + i) * vec_f4_all(by)));
    }
    for (size_t k = 0; i < c->n; i++, k++)
        rest[k] = c->square[i] - (float)dots[i] * (c->scale[i] * by);
    vec_least_take(&l, vec_f4_load(rest));
    return vec_least_end(&l, score);
}

void vec_centroid_assign(const vec_centroids *c, const float *x, const float *norm, size_t n,
                         vec_centroid_query *s, uint32_t *best, float *score)
{
    const vec_plane_kernels *k = vec_plane_kern();
    size_t stride = byte_stride(c->dim);
    float by[VEC_PLANE_TOGETHER];

    if (!k->products || n < VEC_PLANE_TOGETHER) {
        for (size_t i = 0; i < n; i++) {
            vec_centroid_scores(c, x + i * c->dim, norm[i], s);
            best[i] = (uint32_t)vec_centroid_best(s, c->n);
            score[i] = s->score[best[i]];
        }
        return;
    }
    for (size_t i = 0; i < n; i++)
        by[i] = 2 * to_bytes(x + i * c->dim, c->dim, s->bytes + i * stride);
    k->products(s->bytes, stride, vec_plane_stride(c->dim) - VEC_PLANE_CODES, c->rows, c->n,
                s->dots);
    for (size_t i = 0; i < n; i++)
        best[i] = least_score(c, s->dots + i * c->n, by[i], &score[i]);
}

/* -------------------------------------------------------------------------------------- seeding */

typedef struct trainer {
    const float *x;
    size_t n, dim, k, stride;
    int threads;
    int (*stop)(void *);
    void *ctx;
    uint8_t *records; /* of the centroids */
    double *sum;      /* k * dim */
    uint32_t *count;
    uint32_t *best; /* n: the centroid of each vector */
    float *far;     /* n: squared distance of each vector to its centroid */
} trainer;

static int stopped(const trainer *t)
{
    return t->stop && t->stop(t->ctx);
}

static void set_centroid(trainer *t, size_t i, const float *x)
{
    vec_plane_encode(x, vec_norm_f32(x, t->dim), t->dim, t->records + i * t->stride);
}

/* The place where a random number of 0..1 falls into weights; their last one that is above 0 when
 * rounding runs past it. */
static size_t draw(const float *weight, size_t n, uint64_t *state)
{
    double sum = 0, at;
    size_t last = (size_t)(vec_random(state) % n);

    for (size_t i = 0; i < n; i++)
        sum += (double)weight[i];
    at = (double)(vec_random(state) >> 11) * 0x1p-53 * sum;
    for (size_t i = 0; i < n && sum > 0; i++) {
        last = weight[i] > 0 ? i : last;
        at -= (double)weight[i];
        if (at < 0)
            break;
    }
    return last;
}

/* Seeds from the first m vectors, whose records are in part. */
static int seed(trainer *t, size_t m, const vec_centroids *part, vec_centroid_query *s,
                float *weight)
{
    uint64_t state = RANDOM_SEED;
    size_t at = (size_t)(vec_random(&state) % m);

    for (size_t i = 0; i < m; i++)
        weight[i] = INFINITY;
    for (size_t k = 0; k < t->k; k++) {
        const float *x = t->x + at * t->dim;
        float norm = vec_norm_f32(x, t->dim), square = norm * norm;

        if (k % STOP_VECTORS == 0 && stopped(t))
            return VEC_ABORT;
        set_centroid(t, k, x);
        vec_centroid_scores(part, x, norm, s);
        for (size_t i = 0; i < m; i++) {
            float d = s->score[i] + square;

            d = d > 1e-6f * square ? d : 0; // rounding of the codes is no distance
            weight[i] = d < weight[i] ? d : weight[i];
        }
        at = draw(weight, m, &state);
    }
    return VEC_OK;
}

static int seed_all(trainer *t)
{
    size_t m = t->n / SEEDS_A_MEAN < t->k ? t->n : t->k * SEEDS_A_MEAN;
    uint8_t *records = vec_alloc_array(m, t->stride);
    float *weight = vec_alloc_array(m, sizeof *weight);
    vec_centroids part = {0};
    vec_centroid_query s = {0};
    int rc = records && weight ? VEC_OK : VEC_NOMEM;

    for (size_t i = 0; rc == VEC_OK && i < m; i++)
        vec_plane_encode(t->x + i * t->dim, vec_norm_f32(t->x + i * t->dim, t->dim), t->dim,
                         records + i * t->stride);
    rc = rc ? rc : vec_centroids_open(records, m, t->dim, &part);
    rc = rc ? rc : vec_centroid_query_new(&part, &s);
    rc = rc ? rc : seed(t, m, &part, &s, weight);
    vec_centroid_query_free(&s);
    vec_centroids_close(&part);
    vec_free(records);
    vec_free(weight);
    return rc;
}

/* --------------------------------------------------------------------------------------- rounds */

/* A thread's share: the vectors from .. to to their centroids; then the centroids from .. to. */
typedef struct share {
    trainer *t;
    const vec_centroids *c;
    vec_centroid_query s;
    size_t from, to;
} share;

static void assign_share(void *part)
{
    share *p = part;
    const trainer *t = p->t;

    for (size_t i = p->from, n; i < p->to; i += n) {
        const float *x = t->x + i * t->dim;
        float norm[VEC_PLANE_TOGETHER], score[VEC_PLANE_TOGETHER];

        n = p->to - i < VEC_PLANE_TOGETHER ? p->to - i : VEC_PLANE_TOGETHER;
        for (size_t k = 0; k < n; k++)
            norm[k] = vec_norm_f32(x + k * t->dim, t->dim);
        vec_centroid_assign(p->c, x, norm, n, &p->s, t->best + i, score);
        for (size_t k = 0; k < n; k++)
            t->far[i + k] = score[k] + norm[k] * norm[k];
    }
}

/* In the order of the vectors, whatever the share: so sums have the same bits. */
static void sum_share(void *part)
{
    share *p = part;
    trainer *t = p->t;

    memset(t->sum + p->from * t->dim, 0, (p->to - p->from) * t->dim * sizeof *t->sum);
    memset(t->count + p->from, 0, (p->to - p->from) * sizeof *t->count);
    for (size_t i = 0; i < t->n; i++) {
        const float *x = t->x + i * t->dim;
        double *sum = t->sum + t->best[i] * t->dim;

        if (t->best[i] < p->from || t->best[i] >= p->to)
            continue;
        t->count[t->best[i]]++;
        for (size_t j = 0; j < t->dim; j++)
            sum[j] += (double)x[j];
    }
}

static int assign_all(trainer *t, share *part, size_t m)
{
    for (size_t at = 0, n; at < t->n; at += n) {
        n = t->n - at < SLAB ? t->n - at : SLAB;
        if (stopped(t))
            return VEC_ABORT;
        for (size_t i = 0; i < m; i++) {
            part[i].from = at + vec_par_from(n, VEC_PLANE_TOGETHER, i, m);
            part[i].to = at + vec_par_from(n, VEC_PLANE_TOGETHER, i + 1, m);
        }
        vec_par_run(assign_share, part, sizeof *part, m);
    }
    for (size_t i = 0; i < m; i++) {
        part[i].from = vec_par_from(t->k, 1, i, m);
        part[i].to = vec_par_from(t->k, 1, i + 1, m);
    }
    vec_par_run(sum_share, part, sizeof *part, m);
    return VEC_OK;
}

static size_t farthest(const trainer *t)
{
    size_t at = 0;

    for (size_t i = 1; i < t->n; i++)
        at = t->far[i] > t->far[at] ? i : at;
    return at;
}

static void move_all(trainer *t, float *mean)
{
    for (size_t k = 0; k < t->k; k++) {
        if (t->count[k]) {
            for (size_t j = 0; j < t->dim; j++)
                mean[j] = (float)(t->sum[k * t->dim + j] / t->count[k]);
            set_centroid(t, k, mean);
        } else {
            size_t at = farthest(t);

            set_centroid(t, k, t->x + at * t->dim);
            t->far[at] = 0;
        }
    }
}

static int one_round(trainer *t, float *mean)
{
    share part[VEC_THREADS_MAX] = {0};
    size_t m = vec_par_parts(t->threads, t->n * t->k, WORK_LEAST);
    vec_centroids c = {0};
    int rc = vec_centroids_open(t->records, t->k, t->dim, &c);

    for (size_t i = 0; i < m && rc == VEC_OK; i++) {
        part[i] = (share){.t = t, .c = &c};
        rc = vec_centroid_query_new(&c, &part[i].s);
    }
    rc = rc ? rc : assign_all(t, part, m);
    if (rc == VEC_OK)
        move_all(t, mean);
    for (size_t i = 0; i < m; i++)
        vec_centroid_query_free(&part[i].s);
    vec_centroids_close(&c);
    return rc;
}

static int rounds(trainer *t)
{
    float *mean = vec_alloc_array(t->dim, sizeof *mean);
    int rc = mean ? VEC_OK : VEC_NOMEM;

    for (int i = 0; rc == VEC_OK && i < ROUNDS; i++)
        rc = one_round(t, mean);
    vec_free(mean);
    return rc;
}

int vec_kmeans(const float *x, size_t n, size_t dim, size_t k, int threads, int (*stop)(void *),
               void *ctx, uint8_t *records)
{
    trainer t = {.x = x,
                 .n = n,
                 .dim = dim,
                 .k = k,
                 .stride = vec_plane_stride(dim),
                 .threads = threads,
                 .stop = stop,
                 .ctx = ctx,
                 .records = records};
    int rc = k <= SIZE_MAX / dim ? VEC_OK : VEC_NOMEM;

    if (rc == VEC_OK) {
        t.sum = vec_alloc_array(k * dim, sizeof *t.sum);
        t.count = vec_alloc_array(k, sizeof *t.count);
        t.best = vec_alloc_array(n, sizeof *t.best);
        t.far = vec_alloc_array(n, sizeof *t.far);
        rc = t.sum && t.count && t.best && t.far ? VEC_OK : VEC_NOMEM;
    }
    rc = rc ? rc : seed_all(&t);
    rc = rc ? rc : rounds(&t);
    vec_free(t.sum);
    vec_free(t.count);
    vec_free(t.best);
    vec_free(t.far);
    return rc;
}
