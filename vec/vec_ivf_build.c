/*
 * vec_ivf_build.c - training lists and laying out an image
 *
 * STEPS     1 the rows that have a vector, and the largest length
 *           2 a sample of them; centroids (vec_kmeans.c) and book (vec_pq.c) from it
 *           3 every vector to its list, for RAIRS to a second one; on the way vectors that were not
 *             in the sample are held against all, so that their nearest are known
 *           4 the order: by list, then by second list, each list from a block's start on
 *           5 the image
 *           6 trial: how many lists and which margin give which recall (vec_ivf_tune.c)
 *
 * SECOND    The list that RAIRS adds is not the one with the second nearest centroid, which tends
 *           to lie on the same side as the first: it is the c that minimises
 *               |v - c|^2 + lambda (v - c1).(v - c),
 *           whose difference from v points the other way, so that a query that comes from there
 *           finds v (arXiv 2601.07183). Taken from the CANDIDATES nearest centroids. A vector for
 *           which c1 itself has the least value gets no second list.
 *
 * ERRORS    VEC_NOMEM, VEC_ABORT, VEC_LIMIT, VEC_MISUSE
 * THREADS   no state. Steps 2, 3 and 5 may use some of their own: the caller's reads a batch of
 *           vectors, then each assigns or codes a part of it, and none allocates. What is added up
 *           is added in the vectors' order, so the image is the same for any number.
 * TESTS     t_vec_ivf.c
 *
 * SPDX-License-Identifier: MIT
 */
#include "vec_ivf_build.h"

#include <math.h>

#include "vec_base.h"
#include "vec_bits.h"
#include "vec_limits.h"
#include "vec_par.h"
#include "vec_pq.h"

#define LISTS_A_ROOT   4  /* lists: so many times the root of the vectors ... */
#define VECTORS_A_LIST 16 /* ... and at least so many vectors in the mean */
#define LISTS_MAX      65536
#define SAMPLE_A_LIST  20
#define SAMPLE_MIN     65536 /* from here on half as many a list */
#define BOOK_SAMPLE    8192
#define LAMBDA         0.5f
#define CANDIDATES     16
#define STOP_VECTORS   256
#define BATCH_FLOATS   ((size_t)1 << 18) /* 1 MiB: stays in the second-level cache */
#define VECTORS_LEAST  1024              /* in all, that a thread is worth */
#define SEEN_TOGETHER  16

int vec_ivf_stopped(const vec_ivf_builder *b)
{
    return b->a->stop && b->a->stop(b->a->ctx);
}

int vec_ivf_load(vec_ivf_builder *b, uint32_t i, float *length)
{
    float norm;
    const float *x = b->a->fetch(b->a->ctx, b->row[i], &norm);

    if (!x)
        return VEC_ABORT;
    *length = vec_ivf_space(&b->ix, x, norm, b->y);
    return VEC_OK;
}

/* -------------------------------------------------------------------------------------- 1: rows */

static int list_rows(vec_ivf_builder *b)
{
    const vec_ivf_args *a = b->a;
    float most = 0;

    b->row = vec_alloc_array((size_t)a->nrow + 1, sizeof *b->row);
    b->y = vec_alloc_array(a->dim, sizeof *b->y);
    if (!b->row || !b->y)
        return VEC_NOMEM;
    for (uint64_t r = 0; r < a->nrow; r++) {
        float norm = 0;

        if (a->live && !(a->live[r >> 6] >> (r & 63) & 1))
            continue;
        if (r % STOP_VECTORS == 0 && vec_ivf_stopped(b))
            return VEC_ABORT;
        if (!a->fetch(a->ctx, r, &norm))
            return VEC_ABORT;
        if (!isnan(norm)) {
            most = norm > most ? norm : most;
            b->row[b->nvec++] = (uint32_t)r;
        }
    }
    b->ix.scale = a->metric != VEC_COSINE && most > 0 && most < INFINITY ? most : 1;
    return VEC_OK;
}

/* ------------------------------------------------------------------------------------ 2: sample */

static uint32_t list_count(uint32_t n)
{
    double want = LISTS_A_ROOT * sqrt(n), most = (double)n / VECTORS_A_LIST;

    want = fmin(fmin(want, most), LISTS_MAX);
    return want < 1 ? 1 : (uint32_t)want;
}

/* Shuffles the vectors' numbers so far that the first n of them are a random sample. */
static uint32_t *shuffle(uint32_t nvec, size_t n, uint64_t *state)
{
    uint32_t *at = vec_alloc_array((size_t)nvec + 1, sizeof *at);

    for (uint32_t i = 0; at && i < nvec; i++)
        at[i] = i;
    for (size_t i = 0; at && i < n; i++) {
        size_t j = i + (size_t)(vec_random(state) % (nvec - i));
        uint32_t t = at[i];

        at[i] = at[j];
        at[j] = t;
    }
    return at;
}

/* Differences of the sample's vectors from their centroids, in place, and the book from them. */
static int train_book(vec_ivf_builder *b, float *sample, size_t n)
{
    size_t dim = b->ix.dim;

    b->ix.book = vec_alloc_array(vec_pq_book_floats(dim), sizeof *b->ix.book);
    if (!b->ix.book)
        return VEC_NOMEM;
    n = n < BOOK_SAMPLE ? n : BOOK_SAMPLE;
    for (size_t i = 0; i < n; i++) {
        float *x = sample + i * dim;

        vec_centroid_scores(&b->ix.centroids, x, vec_norm_f32(x, dim), &b->s);
        vec_centroid_decode(&b->ix.centroids, vec_centroid_best(&b->s, b->ix.nlist), b->y);
        for (size_t j = 0; j < dim; j++)
            x[j] -= b->y[j];
    }
    return vec_ivf_stopped(b) ? VEC_ABORT : vec_pq_train(sample, n, dim, b->a->threads, b->ix.book);
}

static int train_on(vec_ivf_builder *b, float *sample, const uint32_t *at, size_t n)
{
    size_t dim = b->ix.dim;
    float length;
    int rc = VEC_OK;

    for (size_t i = 0; i < n && rc == VEC_OK; i++) {
        rc = vec_ivf_load(b, at[i], &length);
        if (rc == VEC_OK)
            memcpy(sample + i * dim, b->y, dim * sizeof *sample);
    }
    b->records = vec_alloc_array(b->ix.nlist, vec_plane_stride(dim));
    if (rc == VEC_OK && !b->records)
        rc = VEC_NOMEM;
    rc = rc ? rc
            : vec_kmeans(sample, n, dim, b->ix.nlist, b->a->threads, b->a->stop, b->a->ctx,
                         b->records);
    rc = rc ? rc : vec_centroids_open(b->records, b->ix.nlist, dim, &b->ix.centroids);
    rc = rc ? rc : vec_centroid_query_new(&b->ix.centroids, &b->s);
    return rc || b->ix.kind == VEC_IVF ? rc : train_book(b, sample, n);
}

static int train(vec_ivf_builder *b)
{
    uint64_t state = b->nvec;
    size_t n = (size_t)list_count(b->nvec) * SAMPLE_A_LIST;
    uint32_t *at;
    float *sample;
    int rc;

    b->ix.nlist = list_count(b->nvec);
    n = n > SAMPLE_MIN ? (n / 2 > SAMPLE_MIN ? n / 2 : SAMPLE_MIN) : n;
    n = n < b->nvec ? n : b->nvec;
    at = shuffle(b->nvec, n, &state);
    sample = n <= SIZE_MAX / 4 / b->ix.dim ? vec_alloc_array(n * b->ix.dim, sizeof *sample) : NULL;
    rc = at && sample ? train_on(b, sample, at, n) : VEC_NOMEM;
    rc = rc ? rc : vec_ivf_trial_new(b, &state, at, n);
    vec_free(sample);
    vec_free(at);
    return rc;
}

/* ------------------------------------------------------------------------------------ 3: assign */

static float dot(const float *a, const float *b, size_t n)
{
    return vec_kern()->dot_f32(a, b, n);
}

/* The nearest centroids but one, nearest first; returns how many. */
static size_t runners_up(const vec_centroid_query *s, size_t nlist, size_t best, size_t *out)
{
    const float *score = s->score;
    size_t n = 0;

    for (size_t i = 0; i < nlist; i++) {
        size_t j = n;

        if (i == best || (n == CANDIDATES && score[i] >= score[out[n - 1]]))
            continue;
        j = n < CANDIDATES ? n++ : n - 1;
        for (; j > 0 && score[out[j - 1]] > score[i]; j--)
            out[j] = out[j - 1];
        out[j] = i;
    }
    return n;
}

/* With v, c1, c: |v - c|^2 + lambda (v - c1).(v - c), less what does not depend on c. */
static uint32_t second_list(const vec_ivf_builder *b, const vec_centroid_query *s, size_t best)
{
    size_t dim = b->ix.dim, cand[CANDIDATES], n = runners_up(s, b->ix.nlist, best, cand);
    const float *c1 = b->centre + best * dim, *score = s->score, *products = s->dot;
    float least = score[best] + LAMBDA * (dot(c1, c1, dim) - products[best]);
    uint32_t second = VEC_IVF_NO_ROW;

    // (v - c1).(v - c) = |v|^2 - v.c1 - v.c + c1.c: the first two terms are the same for all c.
    for (size_t i = 0; i < n; i++) {
        float c1c = dot(c1, b->centre + cand[i] * dim, dim);
        float air = score[cand[i]] + LAMBDA * (c1c - products[cand[i]]);

        if (air < least) {
            least = air;
            second = (uint32_t)cand[i];
        }
    }
    return second;
}

/* A thread's share of a batch whose first vector is `at`, in the order of the pass. */
typedef struct share {
    vec_ivf_builder *b;
    uint32_t at;
    size_t n;        /* vectors of the batch */
    size_t from, to; /* the share of them; in see_share, of the trial's queries */
    vec_centroid_query s;
    float *centre;
    uint8_t *codes;
    uint32_t list; /* that centre is of */
    int rc;
} share;

/* Vectors from .. to of the batch, up to VEC_PLANE_TOGETHER, with all scores where second lists
 * need them. */
static void assign_some(share *p, size_t i, size_t n)
{
    vec_ivf_builder *b = p->b;
    const float *y = b->some + i * b->ix.dim;
    uint32_t *first = b->first + p->at + i, *second = b->second + p->at + i;

    if (b->ix.kind != VEC_RAIRS)
        vec_centroid_assign(&b->ix.centroids, y, b->norm + i, n, &p->s, first, b->score + i);
    for (size_t k = 0; k < n; k++, y += b->ix.dim) {
        second[k] = VEC_IVF_NO_ROW;
        if (b->ix.kind == VEC_RAIRS) {
            vec_centroid_scores(&b->ix.centroids, y, b->norm[i + k], &p->s);
            first[k] = (uint32_t)vec_centroid_best(&p->s, b->ix.nlist);
            b->score[i + k] = p->s.score[first[k]];
            second[k] = second_list(b, &p->s, first[k]);
        }
    }
}

static void assign_share(void *part)
{
    share *p = part;
    vec_ivf_builder *b = p->b;

    for (size_t i = p->from; i < p->to; i++) {
        float *y = b->some + i * b->ix.dim;

        b->norm[i] = vec_ivf_space(&b->ix, y, b->norm[i], y);
    }
    for (size_t i = p->from, n; i < p->to; i += n) {
        n = p->to - i < VEC_PLANE_TOGETHER ? p->to - i : VEC_PLANE_TOGETHER;
        assign_some(p, i, n);
    }
}

/* Each vector of the batch against the share of the trial's queries: these stay in the cache. */
static void see_share(void *part)
{
    share *p = part;
    vec_ivf_builder *b = p->b;

    for (size_t q = p->from, nq; q < p->to && p->rc == VEC_OK; q += nq) {
        nq = p->to - q < SEEN_TOGETHER ? p->to - q : SEEN_TOGETHER;
        for (size_t i = 0; i < p->n && p->rc == VEC_OK; i++)
            p->rc = vec_ivf_trial_see(b, b->some + i * b->ix.dim, p->at + (uint32_t)i, b->norm[i],
                                      q, q + nq);
    }
}

/* n vectors as they are, from number `at` of an order (NULL: their own) on. */
static int load_some(vec_ivf_builder *b, const uint32_t *order, uint32_t at, size_t n)
{
    if (vec_ivf_stopped(b))
        return VEC_ABORT;
    for (size_t i = 0; i < n; i++) {
        uint32_t v = order ? order[at + i] : at + (uint32_t)i;
        const float *x = b->a->fetch(b->a->ctx, b->row[v], &b->norm[i]);

        if (!x)
            return VEC_ABORT;
        memcpy(b->some + i * b->ix.dim, x, b->ix.dim * sizeof *x);
    }
    return VEC_OK;
}

static int assign_batch(vec_ivf_builder *b, share *part, uint32_t at, size_t n)
{
    int rc = load_some(b, NULL, at, n);

    for (size_t i = 0; i < b->parts; i++) {
        part[i].at = at;
        part[i].n = n;
        part[i].from = vec_par_from(n, VEC_PLANE_TOGETHER, i, b->parts);
        part[i].to = vec_par_from(n, VEC_PLANE_TOGETHER, i + 1, b->parts);
    }
    if (rc == VEC_OK)
        vec_par_run(assign_share, part, sizeof *part, b->parts);
    for (size_t i = 0; i < b->parts; i++) {
        part[i].from = vec_par_from(b->trial.n, 1, i, b->parts);
        part[i].to = vec_par_from(b->trial.n, 1, i + 1, b->parts);
    }
    if (rc == VEC_OK)
        vec_par_run(see_share, part, sizeof *part, b->parts);
    for (size_t i = 0; i < b->parts && rc == VEC_OK; i++)
        rc = part[i].rc;
    for (size_t i = 0; i < n && rc == VEC_OK; i++)
        b->squares += fmax((double)(b->score[i] + b->norm[i] * b->norm[i]), 0);
    return rc;
}

/* Vectors are taken in batches: read by the calling thread, then worked on by all. */
static int make_batch(vec_ivf_builder *b)
{
    size_t dim = b->ix.dim, most = BATCH_FLOATS / dim / VEC_PLANE_TOGETHER * VEC_PLANE_TOGETHER;

    b->batch = most > VEC_PLANE_TOGETHER ? most : VEC_PLANE_TOGETHER;
    b->parts = vec_par_parts(b->a->threads, b->nvec, VECTORS_LEAST);
    b->some = vec_alloc_array(b->batch * dim, sizeof *b->some);
    b->norm = vec_alloc_array(b->batch, sizeof *b->norm);
    b->score = vec_alloc_array(b->batch, sizeof *b->score);
    return b->some && b->norm && b->score ? VEC_OK : VEC_NOMEM;
}

static int assign_rows(vec_ivf_builder *b)
{
    share part[VEC_THREADS_MAX] = {0};
    int rc = VEC_OK;

    for (size_t i = 0; i < b->parts && rc == VEC_OK; i++) {
        part[i].b = b;
        rc = vec_centroid_query_new(&b->ix.centroids, &part[i].s);
    }
    for (uint32_t i = 0, n; i < b->nvec && rc == VEC_OK; i += n) {
        n = b->nvec - i < b->batch ? b->nvec - i : (uint32_t)b->batch;
        rc = assign_batch(b, part, i, n);
    }
    for (size_t i = 0; i < b->parts; i++)
        vec_centroid_query_free(&part[i].s);
    return rc;
}

static int assign(vec_ivf_builder *b)
{
    size_t dim = b->ix.dim;
    int rc = make_batch(b);

    b->first = vec_alloc_array(b->nvec, sizeof *b->first);
    b->second = vec_alloc_array(b->nvec, sizeof *b->second);
    if (rc < 0 || !b->first || !b->second)
        return VEC_NOMEM;
    if (b->ix.kind == VEC_RAIRS) {
        b->centre = vec_alloc_array((size_t)b->ix.nlist * dim, sizeof *b->centre);
        if (!b->centre)
            return VEC_NOMEM;
        for (size_t i = 0; i < b->ix.nlist; i++)
            vec_centroid_decode(&b->ix.centroids, i, b->centre + i * dim);
    }
    return assign_rows(b);
}

/* ------------------------------------------------------------------------------------- 4: order */

typedef struct key {
    uint32_t second, vector;
} key;

static int by_second(const void *a, const void *b)
{
    const key *x = a, *y = b;

    if (x->second != y->second)
        return x->second < y->second ? -1 : 1;
    return x->vector < y->vector ? -1 : x->vector > y->vector;
}

/* Sorts the vectors by list and second list, and gives each its place. */
static int sort_vectors(vec_ivf_builder *b)
{
    uint32_t *fill = vec_alloc_zero((size_t)b->ix.nlist + 1, sizeof *fill), block = 0;
    key *keys = vec_alloc_array(b->nvec, sizeof *keys);

    b->place = vec_alloc_array(b->nvec, sizeof *b->place);
    b->order = vec_alloc_array(b->nvec, sizeof *b->order);
    b->ix.list = vec_alloc_zero(b->ix.nlist, sizeof *b->ix.list);
    if (!fill || !keys || !b->place || !b->order || !b->ix.list) {
        vec_free(fill);
        vec_free(keys);
        return VEC_NOMEM;
    }
    for (uint32_t i = 0; i < b->nvec; i++)
        fill[b->first[i] + 1]++;
    for (uint32_t l = 0; l < b->ix.nlist; l++)
        fill[l + 1] += fill[l];
    for (uint32_t i = 0; i < b->nvec; i++)
        keys[fill[b->first[i]]++] = (key){b->second[i], i};
    for (uint32_t l = 0, from = 0; l < b->ix.nlist; from = fill[l], l++) {
        uint32_t n = fill[l] - from;

        qsort(keys + from, n, sizeof *keys, by_second);
        b->ix.list[l].block = block;
        b->ix.list[l].nblock = (n + VEC_PQ_BLOCK - 1) / VEC_PQ_BLOCK;
        for (uint32_t i = 0; i < n; i++) {
            b->order[from + i] = keys[from + i].vector;
            b->place[keys[from + i].vector] = block * VEC_PQ_BLOCK + i;
        }
        block += b->ix.list[l].nblock;
    }
    b->ix.nblock = block;
    vec_free(fill);
    vec_free(keys);
    return VEC_OK;
}

/* Calls put for every cell; a cell is a run of vectors with the same two lists. */
static void each_cell(vec_ivf_builder *b,
                      void (*put)(vec_ivf_builder *, uint32_t, uint32_t, uint32_t))
{
    for (uint32_t i = 0, j; i < b->nvec; i = j) {
        uint32_t v = b->order[i];

        for (j = i + 1; j < b->nvec; j++)
            if (b->first[b->order[j]] != b->first[v] || b->second[b->order[j]] != b->second[v])
                break;
        if (b->second[v] != VEC_IVF_NO_ROW)
            put(b, b->second[v], b->place[v], j - i);
    }
}

static void count_cell(vec_ivf_builder *b, uint32_t list, uint32_t place, uint32_t n)
{
    (void)place;
    (void)n;
    b->ix.list[list].ncell++;
    b->ix.ncell++;
}

static void write_cell(vec_ivf_builder *b, uint32_t list, uint32_t place, uint32_t n)
{
    vec_ivf_list *l = &b->ix.list[list];
    uint8_t *p = b->image + b->ix.at.cells + (size_t)8 * (l->cell + l->ncell++);

    vec_put32(p, place);
    vec_put32(p + 4, n);
}

static int make_order(vec_ivf_builder *b)
{
    uint32_t cell = 0;
    int rc = sort_vectors(b);

    if (rc < 0)
        return rc;
    each_cell(b, count_cell);
    for (uint32_t l = 0; l < b->ix.nlist; l++) {
        b->ix.list[l].cell = cell;
        cell += b->ix.list[l].ncell;
    }
    return vec_ivf_lay_out(b->ix.kind, b->ix.metric, b->ix.dim, b->ix.nlist, b->ix.nblock,
                           b->ix.ncell, &b->ix.at);
}

/* ------------------------------------------------------------------------------------- 5: image */

static void put_f32(uint8_t *p, float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    vec_put32(p, bits);
}

static void write_tables(vec_ivf_builder *b)
{
    const vec_ivf *ix = &b->ix;
    uint8_t *p = b->image;

    memcpy(p + ix->at.centroids, b->records, (size_t)ix->nlist * vec_plane_stride(ix->dim));
    for (size_t i = 0; ix->book && i < vec_pq_book_floats(ix->dim); i++)
        put_f32(p + ix->at.book + 4 * i, ix->book[i]);
    for (uint32_t l = 0; l < ix->nlist; l++)
        b->ix.list[l].ncell = 0; // write_cell counts anew
    each_cell(b, write_cell);
    memset(p + ix->at.rows, 0xff, (size_t)ix->nblock * VEC_PQ_BLOCK * 4);
    for (uint32_t i = 0; i < b->nvec; i++)
        vec_put32(p + ix->at.rows + (size_t)4 * b->place[i], b->row[i]);
    for (uint32_t l = 0; l < ix->nlist; l++) {
        const vec_ivf_list *t = &ix->list[l];
        uint8_t *q = p + ix->at.lists + (size_t)16 * l;

        vec_put32(q, t->block);
        vec_put32(q + 4, t->nblock);
        vec_put32(q + 8, t->cell);
        vec_put32(q + 12, t->ncell);
        for (uint32_t k = 0; k < t->nblock; k++)
            vec_put32(p + ix->at.owner + (size_t)4 * (t->block + k), l);
    }
}

static void code_share(void *part)
{
    share *p = part;
    vec_ivf_builder *b = p->b;
    const vec_ivf *ix = &b->ix;
    size_t pairs = vec_pq_pairs(ix->dim), block = vec_pq_block_bytes(ix->dim);

    for (size_t k = p->from; k < p->to; k++) {
        uint32_t i = b->order[p->at + k], place = b->place[i];
        float *y = b->some + k * ix->dim, length = vec_ivf_space(ix, y, b->norm[k], y);

        if (b->first[i] != p->list) {
            p->list = b->first[i];
            vec_centroid_decode(&ix->centroids, p->list, p->centre);
        }
        for (size_t j = 0; j < ix->dim; j++)
            y[j] -= p->centre[j];
        vec_pq_encode(ix->book, ix->dim, y, p->codes);
        vec_pq_put(b->image + ix->at.codes + place / VEC_PQ_BLOCK * block, pairs,
                   place % VEC_PQ_BLOCK, p->codes);
        if (ix->metric == VEC_L2)
            put_f32(b->image + ix->at.square + (size_t)4 * place, length * length);
    }
}

/* Vector k of a batch, or the next one that begins a block: no two threads write to one block. */
static size_t at_block(const vec_ivf_builder *b, uint32_t at, size_t k, size_t n)
{
    while (k > 0 && k < n &&
           b->place[b->order[at + k]] / VEC_PQ_BLOCK ==
               b->place[b->order[at + k - 1]] / VEC_PQ_BLOCK)
        k++;
    return k;
}

static int write_codes(vec_ivf_builder *b, share *part)
{
    int rc = VEC_OK;

    for (uint32_t at = 0, n; at < b->nvec && rc == VEC_OK; at += n) {
        n = b->nvec - at < b->batch ? b->nvec - at : (uint32_t)b->batch;
        rc = load_some(b, b->order, at, n);
        for (size_t i = 0; i < b->parts; i++) {
            part[i].at = at;
            part[i].from = at_block(b, at, vec_par_from(n, VEC_PQ_BLOCK, i, b->parts), n);
            part[i].to = at_block(b, at, vec_par_from(n, VEC_PQ_BLOCK, i + 1, b->parts), n);
        }
        if (rc == VEC_OK)
            vec_par_run(code_share, part, sizeof *part, b->parts);
    }
    return rc;
}

static int make_codes(vec_ivf_builder *b)
{
    share part[VEC_THREADS_MAX] = {0};
    int rc = VEC_OK;

    for (size_t i = 0; i < b->parts && rc == VEC_OK; i++) {
        part[i].b = b;
        part[i].list = VEC_IVF_NO_ROW;
        part[i].centre = vec_alloc_array(b->ix.dim, sizeof *part[i].centre);
        part[i].codes = vec_alloc(vec_pq_pairs(b->ix.dim));
        rc = part[i].centre && part[i].codes ? VEC_OK : VEC_NOMEM;
    }
    rc = rc ? rc : write_codes(b, part);
    for (size_t i = 0; i < b->parts; i++) {
        vec_free(part[i].centre);
        vec_free(part[i].codes);
    }
    return rc;
}

static int write_image(vec_ivf_builder *b)
{
    b->image = vec_alloc_zero(1, b->ix.at.end);
    if (!b->image)
        return VEC_NOMEM;
    write_tables(b);
    return b->ix.kind == VEC_IVF ? VEC_OK : make_codes(b);
}

/* -------------------------------------------------------------------------------- the interface */

static int build(vec_ivf_builder *b)
{
    int rc = list_rows(b);

    if (rc < 0 || b->nvec == 0)
        return rc;
    rc = train(b);
    rc = rc ? rc : assign(b);
    rc = rc ? rc : make_order(b);
    rc = rc ? rc : write_image(b);
    b->ix.nin = b->nvec;
    b->ix.radius = (float)sqrt(b->squares / b->nvec);
    if (!(b->ix.radius < INFINITY))
        b->ix.radius = 0;
    return rc ? rc : vec_ivf_tune(b);
}

static void builder_free(vec_ivf_builder *b)
{
    vec_ivf_trial_free(&b->trial);
    vec_centroid_query_free(&b->s);
    vec_centroids_close(&b->ix.centroids);
    vec_free(b->ix.list);
    vec_free(b->ix.book);
    vec_free(b->row);
    vec_free(b->first);
    vec_free(b->second);
    vec_free(b->order);
    vec_free(b->place);
    vec_free(b->y);
    vec_free(b->some);
    vec_free(b->norm);
    vec_free(b->score);
    vec_free(b->records);
    vec_free(b->centre);
    vec_free(b->image);
}

int vec_ivf_build(const vec_ivf_args *a, uint8_t **bytes, size_t *n)
{
    vec_ivf_builder b = {.a = a};
    int rc;

    *bytes = NULL;
    *n = 0;
    if (a->kind < VEC_IVF || a->kind > VEC_RAIRS || a->metric < VEC_COSINE || a->metric > VEC_IP ||
        a->dim == 0 || !a->fetch)
        return VEC_MISUSE;
    if (a->dim > VEC_PLANE_DIM_MAX || a->nrow > UINT32_MAX)
        return VEC_LIMIT;
    b.ix.kind = a->kind;
    b.ix.metric = a->metric;
    b.ix.dim = a->dim;
    b.ix.nrow = a->nrow;
    rc = build(&b);
    if (rc == VEC_OK && b.image) {
        *bytes = b.image;
        *n = b.ix.at.end;
        b.image = NULL;
    }
    builder_free(&b);
    return rc;
}
