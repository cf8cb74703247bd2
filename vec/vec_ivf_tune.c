/*
 * vec_ivf_tune.c - what an index finds out about itself
 *
 * TRIAL     Vectors of the index's own serve as queries: as far as there are enough, such as the
 *           training has not seen; one in four as it is, one with noise, two drawn towards another
 *           vector. While all vectors are assigned they are held against each of these, so that
 *           the true nearest of each are known, itself left out.
 * REACH     For each neighbour of each query: the cosine (vec_ivf_needed) of the first list that
 *           leads to its block, for the distance of the last of 10, and of 100, neighbours.
 *           Scanning the lists up to a cosine gives the share of neighbours below it; the table
 *           says which cosine gives which recall. PROBE_SHARE of what a recall lets one miss may
 *           be missed here. A number of lists would do for queries like the vectors; questions are
 *           not like their answers, and a number found with vectors gave them a recall of 0.81 to
 *           0.92 for a promised 0.99 (stretched sentences, real questions). How many lists it took
 *           on average is kept as an estimate of cost.
 * MARGIN    For each neighbour: by how much the estimate from its codes is above its key. The table
 *           gives quantiles: the rest of what may be missed.
 * RECALL    With both, the queries are searched as a user would, ten neighbours at recall 0.99. As
 *           long as those about as far from their neighbours as one of the five distances find
 *           less, the reach at that distance grows: on average over all it would be enough that
 *           the far ones find more (tight clusters: 0.98 within them for 0.99 on average). The
 *           share that was found in the end is what the index says of itself.
 *
 * ERRORS    VEC_NOMEM, VEC_ABORT
 * THREADS   no state
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>

#include "vec_base.h"
#include "vec_hit.h"
#include "vec_ivf_build.h"
#include "vec_pq.h"
#include "vec_probe.h"

#define QUERIES      256
#define QUERY_SHARE  8    // at most one vector in so many is a query
#define PROBE_SHARE  0.6  // of what may be missed
#define NOISE        0.3f // of the distance between two vectors
#define NEAREST      10   // of the margin and the recall
#define TRIAL_RECALL 0.99
#define TRIALS       16 // at most, each reaching farther by ...
#define REACH_STEP   0.02f

static const unsigned tune_k[TUNE_K] = {10, TUNE_NEAREST};

void vec_ivf_trial_free(vec_ivf_trial *t)
{
    for (size_t i = 0; t->best && i < t->n; i++)
        vec_topk_free(t->best[i]);
    vec_free(t->best);
    vec_free(t->y);
    vec_free(t->self);
    vec_free(t->products);
    memset(t, 0, sizeof *t);
}

/* A number of mean 0 and variance 1, near enough to normal. */
static float noise(uint64_t *state)
{
    uint64_t r = vec_random(state);
    int32_t sum = (int32_t)(r & 0xffff) + (int32_t)(r >> 16 & 0xffff) +
                  (int32_t)(r >> 32 & 0xffff) + (int32_t)(r >> 48);

    return (float)(sum - 131070) * (1.7320508f / 65536);
}

/* How far the sample lies from its centroids, roughly: half of the way between two vectors. */
static float spread(const vec_ivf_builder *b, const float *q, size_t dim)
{
    float d = vec_kern()->l2sq_f32(q, b->y, dim);

    return NOISE * sqrtf(d / (float)dim);
}

/* Query number n: the vector as it is, with noise, or drawn away towards another one, as questions
 * are from what answers them. Cosine and inner product search with a length of 1. */
static int blend(vec_ivf_builder *b, float *q, size_t n, uint32_t other, uint64_t *state)
{
    static const float share[4] = {0, 0, 0.4f, 0.5f};
    size_t dim = b->ix.dim;
    float length, by;
    int rc = vec_ivf_load(b, other, &length);

    by = rc == VEC_OK && n % 4 == 1 ? spread(b, q, dim) : 0;
    for (size_t j = 0; rc == VEC_OK && j < dim; j++)
        q[j] += share[n % 4] * (b->y[j] - q[j]) + (by > 0 ? by * noise(state) : 0);
    length = vec_norm_f32(q, dim);
    for (size_t j = 0; rc == VEC_OK && b->ix.metric != VEC_L2 && length > 0 && j < dim; j++)
        q[j] /= length;
    return rc;
}

int vec_ivf_trial_new(vec_ivf_builder *b, uint64_t *state, const uint32_t *shuffled, size_t trained)
{
    vec_ivf_trial *t = &b->trial;
    size_t dim = b->ix.dim, n = b->nvec / QUERY_SHARE + 1, from;
    int rc = VEC_OK;

    (void)trained;
    n = n < QUERIES ? n : QUERIES;
    from = b->nvec - trained >= n ? trained : 0;
    t->y = vec_alloc_array(n * dim, sizeof *t->y);
    t->self = vec_alloc_array(n, sizeof *t->self);
    t->best = vec_alloc_zero(n, sizeof *t->best);
    t->products = vec_alloc_array(n, sizeof *t->products);
    if (!t->y || !t->self || !t->best || !t->products)
        return VEC_NOMEM;
    for (; t->n < n && rc == VEC_OK; t->n++) {
        float length;

        t->self[t->n] = shuffled[from + (size_t)(vec_random(state) % (b->nvec - from))];
        rc = vec_ivf_load(b, t->self[t->n], &length);
        for (size_t j = 0; rc == VEC_OK && j < dim; j++)
            t->y[t->n * dim + j] = b->y[j];
        if (rc == VEC_OK)
            rc = blend(b, t->y + t->n * dim, t->n,
                       shuffled[from + (size_t)(vec_random(state) % (b->nvec - from))], state);
        if (rc == VEC_OK)
            rc = vec_topk_new(TUNE_NEAREST + 1, &t->best[t->n]);
        rc = rc ? rc : vec_topk_reserve(t->best[t->n]);
    }
    return rc;
}

int vec_ivf_trial_see(const vec_ivf_builder *b, const float *y, uint32_t i, float length,
                      size_t from, size_t to)
{
    const vec_ivf_trial *t = &b->trial;
    float square = b->ix.metric == VEC_L2 ? length * length : 0;
    float factor = b->ix.metric == VEC_L2 ? -2 : -1;
    int rc = VEC_OK;

    vec_kern()->dot_rows_f32(y, t->y + from * b->ix.dim, b->ix.dim, to - from, t->products + from);
    for (size_t q = from; q < to && rc == VEC_OK; q++) {
        vec_hit h = {(double)(square + factor * t->products[q]), i, i};

        if (h.key < vec_topk_bound(t->best[q]) && i != t->self[q])
            rc = vec_topk_push(t->best[q], &h);
    }
    return rc;
}

/* --------------------------------------------------------------------------------------- probes */

/* What neighbours take, and the errors of estimates. */
typedef struct counts {
    struct sample {
        float far, needed; /* of one neighbour: how far the last one is; cosine of reach */
    } * sample;
    size_t nsample;
    float *error;
    size_t nerror;
    uint32_t *rank;  /* of each list in the query's order, from 1 */
    uint32_t *block; /* rank of the list that first leads to each block */
    uint64_t *sorted;
    uint8_t *table;
} counts;

static int by_number(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

static int by_size(const void *a, const void *b)
{
    const float *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

static int by_far(const void *a, const void *b)
{
    const struct sample *x = a, *y = b;

    return x->far < y->far ? -1 : x->far > y->far;
}

/* The bits of a float, turned so that they sort as it does. */
static uint32_t sortable(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

static void rank_lists(vec_ivf_builder *b, const float *q, counts *c)
{
    vec_centroid_scores(&b->ix.centroids, q, vec_norm_f32(q, b->ix.dim), &b->s);
    for (uint32_t l = 0; l < b->ix.nlist; l++) {
        float score = b->ix.metric == VEC_IP ? -b->s.dot[l] : b->s.score[l];

        c->sorted[l] = (uint64_t)sortable(score) << 32 | l;
    }
    qsort(c->sorted, b->ix.nlist, sizeof *c->sorted, by_number);
    for (uint32_t i = 0; i < b->ix.nlist; i++)
        c->rank[(uint32_t)c->sorted[i]] = i + 1;
}

/* When a block is scanned: by its own list, or along with a cell of another. */
static void rank_blocks(vec_ivf_builder *b, counts *c)
{
    const vec_ivf *ix = &b->ix;

    memset(c->block, 0xff, ix->nblock * sizeof *c->block);
    for (uint32_t l = 0; l < ix->nlist; l++) {
        const vec_ivf_list *list = &ix->list[l];
        uint32_t rank = c->rank[l];

        for (uint32_t k = list->block; k < list->block + list->nblock; k++)
            c->block[k] = rank < c->block[k] ? rank : c->block[k];
        for (uint32_t k = list->cell; k < list->cell + list->ncell; k++) {
            const uint8_t *cell = b->image + ix->at.cells + (size_t)8 * k;
            uint32_t first = vec_get32(cell), last = first + vec_get32(cell + 4) - 1;

            for (uint32_t j = first / VEC_PQ_BLOCK; j <= last / VEC_PQ_BLOCK; j++)
                c->block[j] = rank < c->block[j] ? rank : c->block[j];
        }
    }
}

/* The estimate of a vector's key, as vec_probe.c makes it. */
static float estimate(const vec_ivf_builder *b, const counts *c, uint32_t v, float offset,
                      float step)
{
    const vec_ivf *ix = &b->ix;
    uint32_t place = b->place[v], j = place % VEC_PQ_BLOCK, sum = 0, bits;
    const uint8_t *block = b->image + ix->at.codes +
                           place / VEC_PQ_BLOCK * vec_pq_block_bytes(ix->dim);
    float square = 0, factor = ix->metric == VEC_L2 ? -2 : -1;

    for (size_t p = 0; p < vec_pq_pairs(ix->dim); p++)
        sum += c->table[16 * p + (block[16 * p + (j & 15)] >> (j >= 16 ? 4 : 0) & 15)];
    if (ix->metric == VEC_L2) {
        bits = vec_get32(b->image + ix->at.square + (size_t)4 * place);
        memcpy(&square, &bits, sizeof square);
    }
    return offset + factor * b->s.dot[b->first[v]] + step * (float)(int32_t)sum + square;
}

/* The key of the last of the neighbours that count. */
static float last_key(const vec_hit *hits, size_t n, int k)
{
    return (float)hits[(n < tune_k[k] ? n : tune_k[k]) - 1].key;
}

static float needed(const vec_ivf_builder *b, uint32_t list, float length, float t)
{
    float dot = b->s.dot[list], square = length * length + b->ix.centroids.square[list] - 2 * dot;

    return vec_ivf_needed(&b->ix, length, square, dot, t);
}

static void count_query(vec_ivf_builder *b, size_t i, counts *c)
{
    const vec_ivf *ix = &b->ix;
    const float *q = b->trial.y + i * ix->dim;
    const vec_hit *hits;
    size_t n = vec_topk_take(b->trial.best[i], &hits);
    float offset = 0, step = 0, length = vec_norm_f32(q, ix->dim);

    rank_lists(b, q, c);
    rank_blocks(b, c);
    if (ix->book)
        vec_pq_table(ix->book, ix->dim, q, ix->metric == VEC_L2 ? -2 : -1, c->table, &offset,
                     &step);
    for (size_t h = 0; h < n && h < TUNE_NEAREST; h++) {
        uint32_t v = (uint32_t)hits[h].row, first = c->block[b->place[v] / VEC_PQ_BLOCK];
        uint32_t list = (uint32_t)c->sorted[first - 1];

        for (int k = 0; k < TUNE_K; k++)
            if (h < tune_k[k] && h % (tune_k[k] / NEAREST) == 0) {
                float t = last_key(hits, n, k);

                c->sample[c->nsample++] = (struct sample){vec_ivf_far(ix, length, t),
                                                          needed(b, list, length, t)};
            }
        if (ix->book && h < NEAREST && length > 0)
            c->error[c->nerror++] = (estimate(b, c, v, offset, step) - (float)hits[h].key) / length;
    }
}

/* The least value that is not below this share of them. */
static float quantile(const float *x, size_t n, double share)
{
    return x[(size_t)ceil(share * (double)(n - 1))];
}

/* The reach of each recall for samples that are about as far as each other. */
static void fill_reach(vec_tune *t, int h, const struct sample *s, size_t n, float *scratch)
{
    double far = 0;

    for (size_t i = 0; i < n; i++) {
        far += (double)s[i].far / (double)n;
        scratch[i] = s[i].needed;
    }
    qsort(scratch, n, sizeof *scratch, by_size);
    t->far[h] = (float)far;
    for (int r = 0; r < TUNE_R; r++)
        t->reach[r][h] = quantile(scratch, n, 1 - PROBE_SHARE * (1 - vec_tune_recall[r]));
}

static void fill_tune(vec_ivf_builder *b, counts *c, float *scratch)
{
    vec_tune *t = &b->ix.tune;

    qsort(c->error, c->nerror, sizeof *c->error, by_size);
    qsort(c->sample, c->nsample, sizeof *c->sample, by_far);
    for (size_t h = 0; h < TUNE_H && c->nsample; h++) {
        size_t from = c->nsample * h / TUNE_H, to = c->nsample * (h + 1) / TUNE_H;

        from = from < to ? from : c->nsample - 1;
        to = from < to ? to : c->nsample;
        fill_reach(t, (int)h, c->sample + from, to - from, scratch);
    }
    for (int r = 0; r < TUNE_R && c->nerror; r++)
        t->margin[r] = fmaxf(
            quantile(c->error, c->nerror, 1 - (1 - PROBE_SHARE) * (1 - vec_tune_recall[r])), 0);
    t->queries = (uint32_t)b->trial.n;
}

/* How many lists are within reach of the queries, on average. */
static void count_probes(vec_ivf_builder *b)
{
    vec_tune *t = &b->ix.tune;

    memset(t->probes, 0, sizeof t->probes);
    for (size_t i = 0; i < b->trial.n; i++) {
        const float *q = b->trial.y + i * b->ix.dim;
        const vec_hit *hits;
        size_t n = vec_topk_take(b->trial.best[i], &hits);
        float length = vec_norm_f32(q, b->ix.dim);

        vec_centroid_scores(&b->ix.centroids, q, length, &b->s);
        for (uint32_t l = 0; n && l < b->ix.nlist; l++)
            for (int k = 0; k < TUNE_K; k++) {
                float key = last_key(hits, n, k), far = vec_ivf_far(&b->ix, length, key);
                float a = needed(b, l, length, key);

                for (int r = 0; r < TUNE_R; r++)
                    if (a <= vec_tune_reach_at(t, t->reach[r], far))
                        t->probes[k][r] += 1 / (float)b->trial.n;
            }
    }
}

static int measure(vec_ivf_builder *b)
{
    size_t lists = b->ix.nlist;
    counts c = {0};
    int rc = VEC_OK;

    float *scratch = vec_alloc_array(b->trial.n * TUNE_K * NEAREST + 1, sizeof *scratch);

    c.sample = vec_alloc_array(b->trial.n * TUNE_K * NEAREST + 1, sizeof *c.sample);
    c.error = vec_alloc_array(b->trial.n * NEAREST + 1, sizeof *c.error);
    c.rank = vec_alloc_array(lists, sizeof *c.rank);
    c.block = vec_alloc_array((size_t)b->ix.nblock + 1, sizeof *c.block);
    c.sorted = vec_alloc_array(lists, sizeof *c.sorted);
    c.table = vec_alloc(vec_pq_block_bytes(b->ix.dim));
    if (!scratch || !c.sample || !c.error || !c.rank || !c.block || !c.sorted || !c.table)
        rc = VEC_NOMEM;
    for (size_t i = 0; i < b->trial.n && rc == VEC_OK; i++) {
        count_query(b, i, &c);
        rc = vec_ivf_stopped(b) ? VEC_ABORT : VEC_OK;
    }
    if (rc == VEC_OK)
        fill_tune(b, &c, scratch);
    vec_free(scratch);
    vec_free(c.sample);
    vec_free(c.error);
    vec_free(c.rank);
    vec_free(c.block);
    vec_free(c.sorted);
    vec_free(c.table);
    return rc;
}

/* --------------------------------------------------------------------------------------- recall */

static const float *fetch(void *ctx, uint64_t row, float *norm)
{
    const vec_ivf_builder *b = ctx;

    return b->a->fetch(b->a->ctx, row, norm);
}

static int64_t row_as_id(void *ctx, uint64_t row)
{
    (void)ctx;
    return (int64_t)row;
}

static int stop(void *ctx)
{
    return vec_ivf_stopped(ctx);
}

/* What the trial found, by the distance (vec_tune.far) that its queries are nearest to. */
typedef struct tried {
    uint64_t found[TUNE_H], wanted[TUNE_H], scanned;
} tried;

static int node(const vec_ivf *ix, const float *q, float key)
{
    float far = vec_ivf_far(ix, vec_norm_f32(q, ix->dim), key);
    int best = 0;

    for (int h = 1; h < TUNE_H; h++)
        if (fabsf(ix->tune.far[h] - far) < fabsf(ix->tune.far[best] - far))
            best = h;
    return best;
}

/* Searches query i and counts how many of its nearest come. */
static int try_query(vec_ivf_builder *b, vec_probe_args *a, uint64_t *filter, size_t i, tried *t)
{
    uint64_t self = b->row[b->trial.self[i]], found = 0;
    const vec_hit *hits;
    size_t n = vec_topk_take(b->trial.best[i], &hits);
    vec_probe *p = NULL;
    vec_hit h;
    int rc;

    n = n < NEAREST ? n : NEAREST;
    for (size_t j = 0; j < b->ix.dim; j++) // as a user would give it
        b->y[j] = b->trial.y[i * b->ix.dim + j] * b->ix.scale;
    a->query = b->y;
    a->want = n;
    filter[self >> 6] &= ~((uint64_t)1 << (self & 63));
    rc = n ? vec_probe_new(a, &p) : VEC_OK;
    for (size_t k = 0; k < n && rc >= 0 && (rc = vec_probe_next(p, &h)) == 1; k++)
        for (size_t j = 0; j < n; j++)
            found += b->row[hits[j].row] == h.row;
    if (rc >= 0 && n)
        t->scanned += vec_probe_scanned(p);
    if (rc >= 0 && n) {
        int near = node(&b->ix, b->trial.y + i * b->ix.dim, last_key(hits, n, 0));

        t->found[near] += found;
        t->wanted[near] += n;
    }
    vec_probe_free(p);
    filter[self >> 6] |= (uint64_t)1 << (self & 63);
    return rc < 0 ? rc : VEC_OK;
}

static int try_all(vec_ivf_builder *b, const vec_ivf *open, tried *t)
{
    uint64_t *filter = vec_alloc_zero((size_t)(b->ix.nrow / 64 + 1), sizeof *filter);
    uint64_t found = 0, wanted = 0;
    vec_probe_args a = {.index = open,
                        .nrow = b->ix.nrow,
                        .filter = filter,
                        .share = 1,
                        .recall = TRIAL_RECALL,
                        .fetch = fetch,
                        .id = row_as_id,
                        .stop = stop,
                        .ctx = b};
    int rc = filter ? VEC_OK : VEC_NOMEM;

    for (uint32_t v = 0; v < b->nvec && rc == VEC_OK; v++)
        filter[b->row[v] >> 6] |= (uint64_t)1 << (b->row[v] & 63);
    memset(t, 0, sizeof *t);
    for (size_t i = 0; i < b->trial.n && rc == VEC_OK; i++)
        rc = try_query(b, &a, filter, i, t);
    vec_free(filter);
    for (int h = 0; h < TUNE_H; h++) {
        found += t->found[h];
        wanted += t->wanted[h];
    }
    b->ix.tune.recall = wanted ? (float)((double)found / (double)wanted) : 1;
    b->ix.tune.looked = (float)((double)t->scanned / ((double)b->nvec * (double)b->trial.n));
    return rc;
}

/* Reaches farther where too little was found; 0 when it is enough everywhere. */
static int reach_farther(vec_tune *t, const tried *found)
{
    int some = 0;

    for (int h = 0; h < TUNE_H; h++)
        if ((double)found->found[h] < TRIAL_RECALL * (double)found->wanted[h]) {
            some = 1;
            for (int r = 0; r < TUNE_R; r++)
                t->reach[r][h] += REACH_STEP;
        }
    return some;
}

/* Searches with what was found, and reaches farther as long as that is not enough. */
int vec_ivf_tune(vec_ivf_builder *b)
{
    int rc = measure(b), more = 1;

    for (int i = 0; rc == VEC_OK && more; i++) {
        vec_ivf *open = NULL;
        tried found;

        count_probes(b);
        vec_ivf_seal(b->image, &b->ix);
        rc = vec_ivf_open(b->image, b->ix.at.end, &open);
        rc = rc ? rc : try_all(b, open, &found);
        vec_ivf_close(open);
        more = rc == VEC_OK && i < TRIALS - 1 && reach_farther(&b->ix.tune, &found);
    }
    if (rc == VEC_OK)
        vec_ivf_seal(b->image, &b->ix);
    return rc;
}
