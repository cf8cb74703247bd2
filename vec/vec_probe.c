/*
 * vec_probe.c - near neighbours on demand through lists
 *
 * LISTS     The lists whose centroids are nearest to the query are scanned, as long as they are in
 *           reach: as one of their vectors could, by what the index found out about itself
 *           (vec_ivf_tune.c), be nearer than the last of the rows wanted so far. So a query far
 *           from all vectors, and one whose filter keeps few, looks at more lists. Scanning gives
 *           each row an estimate of its distance from its 4-bit codes, less the margin by which
 *           estimates were found to be too large: nearly a lower bound.
 * STEPS     From then on it is vec_near.c with one step more. The row with the least bound is
 *           looked at: first its record (8 bits, a bound that holds), then its vector. A row whose
 *           distance is smaller than every bound left is one of the answer. So how many vectors are
 *           read depends on the data and on how far the caller asks. Since a bound may be too high
 *           by a little, the promised rows are found first and then handed out in their order.
 * MORE      When as many rows were handed out as were promised, four times as many are promised and
 *           more lists scanned; when that would be a good part of all lists, an exact search over
 *           the rows not handed out takes over. So nothing that the filter keeps is lost.
 * SEEN      Rows still to be scanned are a bitmap, the filter at first. A row leaves it when its
 *           block is scanned, whichever of its lists led there; a block without such rows is passed
 *           over. A cell shares its blocks with its neighbours: they are scanned along with it.
 *
 * ERRORS    VEC_NOMEM, VEC_MISUSE, VEC_ABORT
 * THREADS   one thread at a time
 * TESTS     t_vec_ivf.c
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>

#include "vec_base.h"
#include "vec_bits.h"
#include "vec_hit.h"
#include "vec_probe.h"
#include "vec_probe_parts.h"

#define WANT_UNKNOWN 32   // rows promised at first when nobody says how many are wanted
#define PROMISE_MORE 4    // so many times as many, when more are asked for
#define REST_SHARE   3    // of the lists, one in so many; beyond, the exact search is cheaper
#define STOP_COST    256  // blocks and vectors between two questions whether to stop
#define LOOK_BATCH   16   // records looked at together
#define LUCK         0.2f // of the margin: the least of many estimates are too low by this
#define LAST_MAX     4096 // rows promised for which the last one's key is known

static int stopped(vec_probe *p)
{
    if (++p->cost < STOP_COST)
        return 0;
    p->cost = 0;
    return p->a.stop && p->a.stop(p->a.ctx);
}

/* ------------------------------------------------------------------------------ lists in order */

static void sink_list(vec_probe *p, size_t i)
{
    const float *score = p->s.score;
    uint32_t x = p->near[i];

    for (size_t child; (child = 2 * i + 1) < p->nnear; i = child) {
        child += child + 1 < p->nnear && score[p->near[child + 1]] < score[p->near[child]];
        if (score[x] <= score[p->near[child]])
            break;
        p->near[i] = p->near[child];
    }
    p->near[i] = x;
}

static void order_lists(vec_probe *p)
{
    for (uint32_t i = 0; i < p->ix->nlist; i++) {
        p->near[i] = i;
        if (p->ix->metric == VEC_IP) // the product counts, not how near the centroid lies
            p->s.score[i] = -p->s.dot[i];
    }
    p->nnear = p->ix->nlist;
    for (size_t i = p->nnear / 2; i-- > 0;)
        sink_list(p, i);
}

static uint32_t next_list(vec_probe *p)
{
    uint32_t list = p->near[0];

    p->near[0] = p->near[--p->nnear];
    sink_list(p, 0);
    p->probed++;
    return list;
}

/* ------------------------------------------------------------------------------------- scanning */

/* The distance that belongs to a key less its margin (vec_ivf.h). */
static float bound_of_key(const vec_probe *p, float t)
{
    t -= p->margin;
    if (p->ix->metric == VEC_IP)
        return t * p->norm * p->ix->scale;
    if (p->ix->metric == VEC_COSINE)
        return 1 + t;
    t += p->length * p->length;
    return t > 0 ? sqrtf(t) * p->ix->scale : 0;
}

static float bound_of(const vec_probe *p, int kind, float least)
{
    return kind == BY_CODE ? bound_of_key(p, least) : least;
}

/* The other way, for distances that came without codes. */
static float key_of_bound(const vec_probe *p, float d)
{
    if (p->ix->metric == VEC_COSINE)
        return d - 1;
    d /= p->ix->metric == VEC_IP ? p->norm * p->ix->scale : p->ix->scale;
    return p->ix->metric == VEC_IP ? d : d * d - p->length * p->length;
}

/* Takes a key among the least ones. */
static void note_key(vec_probe *p, float t)
{
    size_t i = 0, child;

    if (p->nlast < p->last_cap) {
        for (i = p->nlast++; i > 0 && t > p->last[(i - 1) / 2]; i = (i - 1) / 2)
            p->last[i] = p->last[(i - 1) / 2];
        p->last[i] = t;
        return;
    }
    if (!(t < p->last[0]))
        return;
    for (; (child = 2 * i + 1) < p->nlast; i = child) {
        child += child + 1 < p->nlast && p->last[child + 1] > p->last[child];
        if (t >= p->last[child])
            break;
        p->last[i] = p->last[child];
    }
    p->last[i] = t;
}

static void note_group(vec_probe *p, int kind, const float *low, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (low[i] < INFINITY)
            note_key(p, kind == BY_CODE ? low[i] + LUCK * p->margin : key_of_bound(p, low[i]));
}

static int add_group(vec_probe *p, int kind, float least, uint32_t n, size_t key)
{
    void *at = p->groups;
    int rc;

    if (!(least < INFINITY))
        return VEC_OK;
    rc = vec_probe_room(&at, p->ngroup, &p->group_cap, 1, sizeof *p->groups);
    p->groups = at;
    if (rc < 0)
        return rc;
    note_group(p, kind, p->low + p->nslot, n);
    p->groups[p->ngroup] = (vec_probe_group){
        bound_of(p, kind, least), least, n, kind, p->nslot, key};
    vec_probe_raise_group(p->groups, p->ngroup++);
    p->nslot += n;
    return VEC_OK;
}

static int reserve_slots(vec_probe *p)
{
    void *low = p->low, *row = p->row;
    size_t cap = p->slot_cap;
    int rc = vec_probe_room(&low, p->nslot, &cap, GROUP_ROWS, sizeof *p->low);

    p->low = low;
    cap = p->slot_cap;
    rc = rc ? rc : vec_probe_room(&row, p->nslot, &cap, GROUP_ROWS, sizeof *p->row);
    p->row = row;
    p->slot_cap = rc ? p->slot_cap : cap;
    return rc;
}

/* The distance of a row by its vector; NaN: it has none after all. */
static int look(vec_probe *p, uint64_t row, double *key)
{
    float norm = 0;
    const float *x;

    *key = NAN;
    p->looked++;
    if (stopped(p))
        return VEC_ABORT;
    x = p->a.fetch(p->a.ctx, row, &norm);
    if (!x)
        return VEC_ABORT;
    if (!isnan(norm))
        *key = vec_distance(p->ix->metric, p->a.query, p->norm, x, norm, p->ix->dim);
    return VEC_OK;
}

static int look_and_push(vec_probe *p, uint64_t row)
{
    double key;
    int rc = look(p, row, &key);

    return rc < 0 || isnan(key) ? rc : vec_probe_push_hit(p, key, row);
}

/* Bounds of at most LOOK_BATCH rows from their records. These lie anywhere: all that is going to be
 * read of them is asked for before the first is read, since a miss takes longer than a bound. */
static int record_lows(vec_probe *p, const uint32_t *rows, size_t n, float *low)
{
    const vec_plane_kernels *k = vec_plane_kern();
    size_t half = vec_halves_stride(p->ix->dim), stride = vec_plane_stride(p->ix->dim);
    const uint8_t *coarse[LOOK_BATCH], *fine[LOOK_BATCH], *at[LOOK_BATCH];
    int32_t dots[LOOK_BATCH];

    for (size_t i = 0; i < n; i++) {
        if (p->a.halves(p->a.ctx, rows[i], &coarse[i], &fine[i]))
            return VEC_ABORT;
        for (size_t j = 0; j < half; j += 64) {
            vec_prefetch(coarse[i] + j);
            vec_prefetch(fine[i] + j);
        }
    }
    for (size_t i = 0; i < n; i++) {
        at[i] = p->records + i * stride;
        vec_halves_join(coarse[i], fine[i], p->ix->dim, p->records + i * stride);
    }
    k->dots(&p->plane, at, n, dots);
    k->lows(&p->plane, at, dots, n, low);
    return stopped(p) ? VEC_ABORT : VEC_OK;
}

/* At most GROUP_ROWS rows that have no codes. */
static int scan_rows(vec_probe *p, const uint32_t *rows, size_t n)
{
    float least = INFINITY, *low;
    int rc = reserve_slots(p);

    if (rc < 0)
        return rc;
    if (!p->a.halves) {
        for (size_t i = 0; i < n && rc == VEC_OK; i++)
            rc = look_and_push(p, rows[i]);
        return rc;
    }
    low = p->low + p->nslot;
    for (size_t i = 0; i < n && rc == VEC_OK; i += LOOK_BATCH)
        rc = record_lows(p, rows + i, n - i < LOOK_BATCH ? n - i : LOOK_BATCH, low + i);
    for (size_t i = 0; i < n && rc == VEC_OK; i++) {
        p->row[p->nslot + i] = rows[i];
        least = low[i] < least ? low[i] : least;
    }
    return rc ? rc : add_group(p, BY_RECORD, least, (uint32_t)n, 0);
}

static int take(vec_probe *p, uint32_t row)
{
    uint64_t bit = (uint64_t)1 << (row & 63);

    if (row >= p->a.nrow || !(p->todo[row >> 6] & bit))
        return 0;
    p->todo[row >> 6] &= ~bit;
    return 1;
}

/* Keys of a block's rows; those outside mask get infinity. Returns the least. */
static float block_keys(vec_probe *p, uint32_t block, uint32_t owner, uint32_t mask, float *low)
{
    const vec_ivf *ix = p->ix;
    const uint8_t *square = ix->bytes + ix->at.square + (size_t)4 * GROUP_ROWS * block;
    float base = p->offset + p->factor * p->s.dot[owner], least = INFINITY;
    uint32_t sums[GROUP_ROWS];

    vec_pq_kern()->sums(p->table, vec_pq_pairs(ix->dim),
                        ix->bytes + ix->at.codes + block * vec_pq_block_bytes(ix->dim), sums);
    for (int i = 0; i < GROUP_ROWS; i++)
        low[i] = base + p->step * (float)(int32_t)sums[i];
    for (int i = 0; ix->metric == VEC_L2 && i < GROUP_ROWS; i++) {
        uint32_t bits = vec_get32(square + 4 * i);
        float f;

        memcpy(&f, &bits, sizeof f);
        low[i] += f;
    }
    for (int i = 0; i < GROUP_ROWS; i++) {
        low[i] = mask >> i & 1 ? low[i] : INFINITY;
        least = low[i] < least ? low[i] : least;
    }
    return least;
}

static int scan_block(vec_probe *p, uint32_t block)
{
    const vec_ivf *ix = p->ix;
    const uint8_t *rows = ix->bytes + ix->at.rows + (size_t)4 * GROUP_ROWS * block;
    uint32_t owner, mask = 0, picked[GROUP_ROWS];
    size_t n = 0;
    int rc = reserve_slots(p);

    if (rc < 0)
        return rc;
    for (uint32_t i = 0; i < GROUP_ROWS; i++) {
        uint32_t row = vec_get32(rows + 4 * i);

        p->row[p->nslot + i] = row;
        if (row < ix->nrow && take(p, row)) {
            mask |= (uint32_t)1 << i;
            picked[n++] = row;
        }
    }
    if (mask == 0)
        return VEC_OK;
    p->scanned += GROUP_ROWS;
    if (ix->kind == VEC_IVF)
        return scan_rows(p, picked, n);
    owner = vec_get32(ix->bytes + ix->at.owner + (size_t)4 * block);
    if (stopped(p))
        return VEC_ABORT;
    if (owner >= ix->nlist)
        return VEC_OK; // damaged; the rest has these rows
    return add_group(p, BY_CODE, block_keys(p, block, owner, mask, p->low + p->nslot), GROUP_ROWS,
                     0);
}

static int scan_cells(vec_probe *p, const vec_ivf_list *l)
{
    const vec_ivf *ix = p->ix;
    int rc = VEC_OK;

    for (uint32_t c = l->cell; c < l->cell + l->ncell && rc == VEC_OK; c++) {
        const uint8_t *at = ix->bytes + ix->at.cells + (size_t)8 * c;
        uint64_t first = vec_get32(at), n = vec_get32(at + 4);
        uint64_t end = (first + n + GROUP_ROWS - 1) / GROUP_ROWS;

        for (uint64_t b = first / GROUP_ROWS; b < end && b < ix->nblock && rc == VEC_OK; b++)
            rc = scan_block(p, (uint32_t)b);
    }
    return rc;
}

/* All rows of a tail. They came after the lists were made and may be of a kind that no list stands
** for: to look for them where the nearest centroid was would miss them. */
static int scan_tail(vec_probe *p, const vec_tail *t)
{
    uint32_t rows[GROUP_ROWS];
    size_t n = 0;
    int rc = VEC_OK;

    for (uint64_t i = 0; i < t->n && rc == VEC_OK; i++) {
        vec_pair pair = vec_tail_pair(t, i);

        if (pair.row <= t->last && take(p, pair.row))
            rows[n++] = pair.row;
        if (n == GROUP_ROWS) {
            rc = stopped(p) ? VEC_ABORT : scan_rows(p, rows, n);
            n = 0;
        }
    }
    return rc || n == 0 ? rc : scan_rows(p, rows, n);
}

/* Could the nearest list left hold one of the rows that were promised? */
static int in_reach(const vec_probe *p)
{
    uint32_t list = p->near[0];
    float dot = p->s.dot[list];
    float square = p->length * p->length + p->ix->centroids.square[list] - 2 * dot;

    float far;

    if (p->nlast < p->last_cap)
        return 1;
    far = vec_ivf_far(p->ix, p->length, p->last[0]);
    return vec_ivf_needed(p->ix, p->length, square, dot, p->last[0]) <=
           vec_tune_reach_at(&p->ix->tune, p->reach, far);
}

static int scan_list(vec_probe *p, uint32_t list)
{
    const vec_ivf_list *l = &p->ix->list[list];
    int rc = VEC_OK;

    for (uint32_t b = l->block; b < l->block + l->nblock && rc == VEC_OK; b++)
        rc = scan_block(p, b);
    return rc ? rc : scan_cells(p, l);
}

/* The exact search takes over; without one, what is in the heaps is all there is. */
static int start_rest(vec_probe *p)
{
    if (!p->a.rest) {
        p->ended = !p->nhit && !p->nmid && !p->ngroup;
        p->promise = UINT64_MAX;
        return VEC_OK;
    }
    p->ended = 1;
    memcpy(p->todo, p->a.filter, (size_t)((p->a.nrow + 63) / 64) * sizeof *p->todo);
    for (size_t i = 0; i < p->nhead; i++)
        p->todo[p->head[i].row >> 6] &= ~((uint64_t)1 << (p->head[i].row & 63));
    p->ngroup = p->nmid = p->nhit = 0;
    return p->a.rest(p->a.ctx, p->todo, &p->rest);
}

/* Scans so many lists, or as many as are in reach; when those are too many to be worth it, the
 * exact search takes over. */
static int probe_more(vec_probe *p, size_t lists)
{
    size_t most = p->a.rest ? p->ix->nlist / REST_SHARE + 1 : p->ix->nlist;
    int rc = VEC_OK;

    while (p->nnear && rc == VEC_OK) {
        if (lists ? p->probed >= lists : p->probed >= most || !in_reach(p))
            break;
        rc = scan_list(p, next_list(p));
    }
    if (rc == VEC_OK && !lists && p->a.rest && p->nnear && p->probed >= most && in_reach(p))
        return start_rest(p);
    return rc;
}

/* Makes room for as many of the least keys as were promised. */
static int set_promise(vec_probe *p, uint64_t rows)
{
    size_t n = rows < LAST_MAX ? (size_t)rows : LAST_MAX;
    float *last = n > p->last_cap ? vec_resize(p->last, n * sizeof *last) : p->last;

    if (!last)
        return VEC_NOMEM;
    p->promise = rows;
    p->last = last;
    p->last_cap = n > p->last_cap ? n : p->last_cap;
    return VEC_OK;
}

/* The least keys once more, when more are wanted: of the rows found and of those in groups. */
static void note_again(vec_probe *p)
{
    p->nlast = 0;
    for (size_t i = 0; i < p->nhead; i++)
        note_key(p, key_of_bound(p, (float)p->head[i].key));
    for (size_t i = 0; i < p->nhit; i++)
        note_key(p, key_of_bound(p, (float)p->hits[i].key));
    for (size_t i = 0; i < p->nmid; i++)
        note_key(p, key_of_bound(p, (float)p->mid[i].bound));
    for (size_t i = 0; i < p->ngroup; i++)
        note_group(p, p->groups[i].kind, p->low + p->groups[i].slot, p->groups[i].n);
}

/* The largest float that is not above key. */
static float round_down(double key)
{
    float f = (float)key;

    return (double)f > key || f == INFINITY ? nextafterf(f, -INFINITY) : f;
}

static int scan_exact(vec_probe *p)
{
    size_t n = 0, k = 0;
    int rc = VEC_OK;

    for (size_t e = 0; e < p->a.nexact; e++)
        n += (size_t)p->a.exact[e].n;
    p->keys = vec_alloc_array(n + 1, sizeof *p->keys);
    if (!p->keys)
        return VEC_NOMEM;
    for (size_t e = 0; e < p->a.nexact && rc == VEC_OK; e++) {
        vec_extent x = p->a.exact[e];
        uint64_t row = x.first;

        x.first = 0;
        for (uint64_t i = 0; i < p->a.exact[e].n && rc == VEC_OK; i++) {
            vec_extent one = {x.rows ? x.rows + i * p->ix->dim : NULL, x.norms ? x.norms + i : NULL,
                              0, 1};

            if (!take(p, (uint32_t)(row + i)))
                continue;
            rc = stopped(p) ? VEC_ABORT : reserve_slots(p);
            rc = rc ? rc
                    : vec_scan(p->ix->metric, p->a.query, p->ix->dim, &one, 1, NULL, &p->keys[k],
                               NULL, NULL);
            if (rc == VEC_OK && !isnan(p->keys[k])) {
                p->low[p->nslot] = round_down(p->keys[k]);
                p->row[p->nslot] = (uint32_t)(row + i);
                rc = add_group(p, BY_KEY, p->low[p->nslot], 1, k++);
            }
        }
    }
    return rc;
}

/* ------------------------------------------------------------------------------ looking at rows */

/* Takes the row with the least bound of the first group; its place in the group. */
static uint32_t take_least(vec_probe *p, vec_probe_group *at)
{
    vec_probe_group *g = &p->groups[0];
    float *low = p->low + g->slot, least = INFINITY;
    uint32_t i = 0;

    while (low[i] != g->least)
        i++;
    *at = *g;
    low[i] = INFINITY;
    for (uint32_t j = 0; j < g->n; j++)
        least = low[j] < least ? low[j] : least;
    if (least < INFINITY) {
        g->least = least;
        g->bound = bound_of(p, g->kind, least);
    } else {
        *g = p->groups[--p->ngroup];
    }
    if (p->ngroup)
        vec_probe_sink_group(p->groups, p->ngroup, 0);
    return i;
}

static double least_bound(const vec_probe *p)
{
    double least = p->nmid ? p->mid[0].bound : (double)INFINITY;

    if (p->ngroup && (double)p->groups[0].bound < least)
        least = (double)p->groups[0].bound;
    return least;
}

/* Looks at what has the least bound among the groups: codes lead to a record, and while others come
 * next they go along. */
static int look_at_groups(vec_probe *p)
{
    uint32_t rows[LOOK_BATCH], n = 0;
    float low[LOOK_BATCH];
    int rc = VEC_OK;

    do {
        vec_probe_group g;
        uint32_t i = take_least(p, &g);
        uint32_t row = p->row[g.slot + i];

        if (g.kind == BY_KEY)
            rc = vec_probe_push_hit(p, p->keys[g.key + i], row);
        else if (g.kind == BY_RECORD || !p->a.halves)
            rc = look_and_push(p, row);
        else
            rows[n++] = row;
    } while (rc == VEC_OK && n > 0 && n < LOOK_BATCH && p->ngroup && p->groups[0].kind == BY_CODE);
    if (rc < 0 || n == 0)
        return rc;
    rc = record_lows(p, rows, n, low);
    for (uint32_t i = 0; i < n && rc == VEC_OK; i++)
        if (low[i] < INFINITY)
            rc = vec_probe_push_mid(p, (double)low[i], rows[i]);
    return rc;
}

/* ------------------------------------------------------------------------------------ more rows */

static int go_on(vec_probe *p)
{
    uint64_t more = p->promise > UINT64_MAX / PROMISE_MORE ? UINT64_MAX : p->promise * PROMISE_MORE;
    size_t most = p->ix->nlist / REST_SHARE, before = p->probed;
    int rc;

    if (p->nnear == 0 || (p->a.rest && (p->probed >= most || more > LAST_MAX)))
        return start_rest(p);
    rc = set_promise(p, more);
    if (rc < 0)
        return rc;
    note_again(p);
    rc = probe_more(p, 0);
    return rc || p->probed > before ? rc : probe_more(p, before + 1);
}

/* -------------------------------------------------------------------------------- the interface */

static int check(const vec_probe_args *a)
{
    return a->index && a->query && a->filter && a->fetch && a->id && a->nrow <= UINT32_MAX &&
                   a->share > 0 && a->recall >= 0.5 && a->recall <= 1
               ? VEC_OK
               : VEC_MISUSE;
}

static void query_space(vec_probe *p)
{
    const vec_ivf *ix = p->ix;
    float by = ix->metric == VEC_L2 ? ix->scale : p->norm;
    double f = by > 0 ? 1 / (double)by : 0;

    for (size_t i = 0; i < ix->dim; i++)
        p->q[i] = (float)((double)p->a.query[i] * f);
    p->length = vec_norm_f32(p->q, ix->dim);
}

static int reserve(vec_probe *p)
{
    const vec_ivf *ix = p->ix;
    int rc = vec_centroid_query_new(&ix->centroids, &p->s);

    p->q = vec_alloc_array(ix->dim, sizeof *p->q);
    p->near = vec_alloc_array(ix->nlist, sizeof *p->near);
    p->table = vec_alloc(vec_pq_block_bytes(ix->dim));
    p->scratch = vec_alloc(vec_plane_scratch(ix->dim));
    p->records = vec_alloc_array(LOOK_BATCH, vec_plane_stride(ix->dim));
    p->todo = vec_alloc_zero((size_t)(p->a.nrow / 64 + 1), sizeof *p->todo);
    if (rc < 0 || !p->q || !p->near || !p->table || !p->scratch || !p->records || !p->todo)
        return VEC_NOMEM;
    memcpy(p->todo, p->a.filter, (size_t)((p->a.nrow + 63) / 64) * sizeof *p->todo);
    return VEC_OK;
}

static int begin(vec_probe *p)
{
    const vec_ivf *ix = p->ix;
    int rc = reserve(p);

    if (rc < 0)
        return rc;
    p->norm = vec_norm_f32(p->a.query, ix->dim);
    rc = set_promise(p, p->a.want ? p->a.want : WANT_UNKNOWN);
    if (rc < 0)
        return rc;
    query_space(p);
    if (!(p->length < INFINITY) || !(p->norm < INFINITY))
        return start_rest(p);
    vec_plane_prepare(ix->metric, p->a.query, p->norm, ix->dim, p->scratch, &p->plane);
    vec_centroid_scores(&ix->centroids, p->q, p->length, &p->s);
    order_lists(p);
    p->factor = ix->metric == VEC_L2 ? -2 : -1;
    p->margin = vec_tune_margin(&ix->tune, p->a.recall) * p->length;
    if (ix->book)
        vec_pq_table(ix->book, ix->dim, p->q, p->factor, p->table, &p->offset, &p->step);
    vec_tune_reach(&ix->tune, p->a.recall, p->reach);
    rc = scan_exact(p);
    for (size_t i = 0; i < p->a.ntail && rc == VEC_OK; i++)
        rc = scan_tail(p, p->a.tails[i]);
    return rc ? rc : probe_more(p, (size_t)(p->a.probes < ix->nlist ? p->a.probes : ix->nlist));
}

int vec_probe_new(const vec_probe_args *a, vec_probe **out)
{
    vec_probe *p;
    int rc = check(a);

    *out = NULL;
    if (rc < 0)
        return rc;
    p = vec_alloc_zero(1, sizeof *p);
    if (!p)
        return VEC_NOMEM;
    p->a = *a;
    p->ix = a->index;
    rc = begin(p);
    if (rc < 0) {
        vec_probe_free(p);
        return rc;
    }
    *out = p;
    return VEC_OK;
}

/* Puts the nearest hit into its place among the rows not handed out. It is the last one but for
 * rows whose bound was too high. */
static int add_to_head(vec_probe *p)
{
    void *at = p->head;
    size_t i = p->nhead;
    int rc = vec_probe_room(&at, i, &p->head_cap, 1, sizeof *p->head);
    vec_hit h;

    p->head = at;
    if (rc < 0)
        return rc;
    h = vec_probe_pop_hit(p);
    for (; i > p->ngiven && vec_hit_less(&h, &p->head[i - 1]); i--)
        p->head[i] = p->head[i - 1];
    p->head[i] = h;
    p->nhead++;
    return VEC_OK;
}

/* One step towards the rows that were promised. */
static int step(vec_probe *p)
{
    int dry = !p->nmid && !p->ngroup;

    if (p->nhit && (dry || p->hits[0].key < least_bound(p)))
        return add_to_head(p);
    if (p->nmid && (!p->ngroup || p->mid[0].bound <= (double)p->groups[0].bound))
        return look_and_push(p, vec_probe_pop_mid(p));
    return look_at_groups(p);
}

static int next(vec_probe *p, vec_hit *out)
{
    int rc = VEC_OK;

    while (p->ngiven == p->nhead && !p->rest && rc == VEC_OK) {
        if (p->ended)
            return 0;
        while (p->nhead < p->promise && (p->nhit || p->nmid || p->ngroup) && rc == VEC_OK)
            rc = step(p);
        if (rc == VEC_OK && p->ngiven == p->nhead)
            rc = go_on(p);
    }
    if (rc < 0)
        return rc;
    if (p->ngiven < p->nhead) {
        *out = p->head[p->ngiven++];
        return 1;
    }
    return vec_near_next(p->rest, out);
}

int vec_probe_next(vec_probe *p, vec_hit *out)
{
    int rc = p->failed ? p->failed : next(p, out);

    if (rc < 0)
        p->failed = rc;
    return rc;
}

uint64_t vec_probe_scanned(const vec_probe *p)
{
    return p->scanned;
}

uint64_t vec_probe_looked(const vec_probe *p)
{
    return p->looked;
}

size_t vec_probe_cost(const vec_ivf *ix, uint64_t want, double share, double recall, uint64_t *rows)
{
    size_t lists = vec_tune_probes(&ix->tune, recall, (double)(want ? want : WANT_UNKNOWN) / share,
                                   ix->nlist);
    double scanned = (double)ix->nblock * GROUP_ROWS * (double)lists / (double)ix->nlist;

    *rows = (uint64_t)scanned;
    return lists;
}

void vec_probe_free(vec_probe *p)
{
    if (!p)
        return;
    vec_near_free(p->rest);
    vec_centroid_query_free(&p->s);
    vec_free(p->q);
    vec_free(p->near);
    vec_free(p->table);
    vec_free(p->scratch);
    vec_free(p->records);
    vec_free(p->todo);
    vec_free(p->low);
    vec_free(p->row);
    vec_free(p->keys);
    vec_free(p->last);
    vec_free(p->groups);
    vec_free(p->mid);
    vec_free(p->hits);
    vec_free(p->head);
    vec_free(p);
}
