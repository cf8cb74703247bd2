/*
 * vec_ivf_tune.c - what an index finds out about itself
 *
 * TRIAL     Vectors of the index's own serve as queries: as far as there are enough, such as the
 *           training has not seen. While all vectors are assigned they are held against each of
 *           these, so that the true nearest of each are known, itself left out.
 * PROBES    For each neighbour of each query: how many lists, in the query's order, must be looked
 *           at until its block is scanned. The share of neighbours within so many lists is the
 *           recall of scanning; the table says how many lists give which recall, for 10 and for 100
 *           neighbours. PROBE_SHARE of what a recall lets one miss may be missed here.
 * MARGIN    For each neighbour: by how much the estimate from its codes is above its key. The table
 *           gives quantiles: the rest of what may be missed.
 * RECALL    With both, the queries are searched as a user would, ten neighbours at recall 0.99, and
 *           the share that was found is what the index says of itself.
 *
 * ERRORS    VEC_NOMEM, VEC_ABORT
 * THREADS   no state
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>

#include "vec_base.h"
#include "vec_ivf_build.h"
#include "vec_pq.h"
#include "vec_probe.h"

#define QUERIES     256
#define QUERY_SHARE 8   // at most one vector in so many is a query
#define PROBE_SHARE 0.7 // of what may be missed
#define NEAREST     10  // of the margin and the recall

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
        if (rc == VEC_OK) {
            float f = b->ix.metric == VEC_IP && length > 0 ? 1 / length : 1;

            for (size_t j = 0; j < dim; j++)
                t->y[t->n * dim + j] = f * b->y[j];
            rc = vec_topk_new(TUNE_NEAREST + 1, &t->best[t->n]);
        }
    }
    return rc;
}

int vec_ivf_trial_see(vec_ivf_builder *b, uint32_t i, float length)
{
    vec_ivf_trial *t = &b->trial;
    float square = b->ix.metric == VEC_L2 ? length * length : 0;
    float factor = b->ix.metric == VEC_L2 ? -2 : -1;
    int rc = VEC_OK;

    vec_kern()->dot_rows_f32(b->y, t->y, b->ix.dim, t->n, t->products);
    for (size_t q = 0; q < t->n && rc == VEC_OK; q++) {
        vec_hit h = {(double)(square + factor * t->products[q]), i, i};

        if (h.key < vec_topk_bound(t->best[q]) && i != t->self[q])
            rc = vec_topk_push(t->best[q], &h);
    }
    return rc;
}

/* --------------------------------------------------------------------------------------- probes */

/* How often a neighbour takes so many lists, and the errors of estimates. */
typedef struct counts {
    uint32_t *need[TUNE_K]; /* nlist + 1 each */
    uint32_t seen[TUNE_K];
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
        uint32_t v = (uint32_t)hits[h].row, need = c->block[b->place[v] / VEC_PQ_BLOCK];

        for (int k = 0; k < TUNE_K; k++)
            if (h < tune_k[k]) {
                c->need[k][need]++;
                c->seen[k]++;
            }
        if (ix->book && h < NEAREST && length > 0)
            c->error[c->nerror++] = (estimate(b, c, v, offset, step) - (float)hits[h].key) / length;
    }
}

/* The least number of lists that hold this share of the neighbours. */
static float lists_for(const vec_ivf_builder *b, const counts *c, int k, double share)
{
    double want = share * c->seen[k], have = 0;
    uint32_t l = 0;

    while (l < b->ix.nlist && have < want)
        have += c->need[k][++l];
    return (float)(l ? l : 1);
}

static void fill_tune(vec_ivf_builder *b, counts *c)
{
    vec_tune *t = &b->ix.tune;

    qsort(c->error, c->nerror, sizeof *c->error, by_size);
    for (int r = 0; r < TUNE_R; r++) {
        double miss = 1 - vec_tune_recall[r];

        for (int k = 0; k < TUNE_K; k++)
            t->probes[k][r] = lists_for(b, c, k, 1 - PROBE_SHARE * miss);
        if (c->nerror) {
            double at = (1 - (1 - PROBE_SHARE) * miss) * (double)(c->nerror - 1);

            t->margin[r] = fmaxf(c->error[(size_t)ceil(at)], 0);
        }
    }
    t->queries = (uint32_t)b->trial.n;
}

static int measure(vec_ivf_builder *b)
{
    size_t lists = b->ix.nlist;
    counts c = {0};
    int rc = VEC_OK;

    for (int k = 0; k < TUNE_K; k++) {
        c.need[k] = vec_alloc_zero(lists + 1, sizeof *c.need[k]);
        rc = c.need[k] ? rc : VEC_NOMEM;
    }
    c.error = vec_alloc_array(b->trial.n * NEAREST + 1, sizeof *c.error);
    c.rank = vec_alloc_array(lists, sizeof *c.rank);
    c.block = vec_alloc_array((size_t)b->ix.nblock + 1, sizeof *c.block);
    c.sorted = vec_alloc_array(lists, sizeof *c.sorted);
    c.table = vec_alloc(vec_pq_block_bytes(b->ix.dim));
    if (!c.error || !c.rank || !c.block || !c.sorted || !c.table)
        rc = VEC_NOMEM;
    for (size_t i = 0; i < b->trial.n && rc == VEC_OK; i++) {
        count_query(b, i, &c);
        rc = vec_ivf_stopped(b) ? VEC_ABORT : VEC_OK;
    }
    if (rc == VEC_OK)
        fill_tune(b, &c);
    for (int k = 0; k < TUNE_K; k++)
        vec_free(c.need[k]);
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

/* Searches query i and counts how many of its nearest come. */
static int try_query(vec_ivf_builder *b, vec_probe_args *a, uint64_t *filter, size_t i,
                     uint64_t *found, uint64_t *scanned)
{
    uint64_t self = b->row[b->trial.self[i]];
    const vec_hit *hits;
    size_t n = vec_topk_take(b->trial.best[i], &hits);
    vec_probe *p = NULL;
    const float *x;
    float norm;
    vec_hit h;
    int rc;

    n = n < NEAREST ? n : NEAREST;
    x = b->a->fetch(b->a->ctx, self, &norm);
    if (!x)
        return VEC_ABORT;
    memcpy(b->y, x, b->ix.dim * sizeof *x); // the search fetches others
    a->query = b->y;
    a->want = n;
    filter[self >> 6] &= ~((uint64_t)1 << (self & 63));
    rc = n ? vec_probe_new(a, &p) : VEC_OK;
    for (size_t k = 0; k < n && rc >= 0 && (rc = vec_probe_next(p, &h)) == 1; k++)
        for (size_t j = 0; j < n; j++)
            *found += b->row[hits[j].row] == h.row;
    if (rc >= 0 && n)
        *scanned += vec_probe_scanned(p);
    vec_probe_free(p);
    filter[self >> 6] |= (uint64_t)1 << (self & 63);
    return rc < 0 ? rc : VEC_OK;
}

static int try_all(vec_ivf_builder *b, const vec_ivf *open)
{
    uint64_t *filter = vec_alloc_zero((size_t)(b->ix.nrow / 64 + 1), sizeof *filter);
    uint64_t found = 0, wanted = 0, scanned = 0;
    vec_probe_args a = {.index = open,
                        .nrow = b->ix.nrow,
                        .filter = filter,
                        .share = 1,
                        .recall = 0.99,
                        .fetch = fetch,
                        .id = row_as_id,
                        .stop = stop,
                        .ctx = b};
    int rc = filter ? VEC_OK : VEC_NOMEM;

    for (uint32_t v = 0; v < b->nvec && rc == VEC_OK; v++)
        filter[b->row[v] >> 6] |= (uint64_t)1 << (b->row[v] & 63);
    for (size_t i = 0; i < b->trial.n && rc == VEC_OK; i++) {
        const vec_hit *hits;
        size_t n = vec_topk_take(b->trial.best[i], &hits);

        wanted += n < NEAREST ? n : NEAREST;
        rc = try_query(b, &a, filter, i, &found, &scanned);
    }
    vec_free(filter);
    b->ix.tune.recall = wanted ? (float)((double)found / (double)wanted) : 1;
    b->ix.tune.looked = (float)((double)scanned / ((double)b->nvec * (double)b->trial.n));
    return rc;
}

int vec_ivf_tune(vec_ivf_builder *b)
{
    vec_ivf *open = NULL;
    int rc = measure(b);

    if (rc < 0)
        return rc;
    vec_ivf_seal(b->image, &b->ix);
    rc = vec_ivf_open(b->image, b->ix.at.end, &open);
    rc = rc ? rc : try_all(b, open);
    vec_ivf_close(open);
    if (rc == VEC_OK)
        vec_ivf_seal(b->image, &b->ix);
    return rc;
}
