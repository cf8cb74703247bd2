/*
 * vec_rrf.c - reciprocal-rank fusion of two lists, as far as it is asked for
 *
 * A row's score needs its position in both lists, and sorting a list of all rows to learn the
 * positions of ten costs more than all the rest of a hybrid query. So both lists are read best
 * first, and a row that one list brings up early while the other is far from it has its position
 * there counted: one pass over the keys. A row goes out when its score beats what any row can reach
 * whose positions are not known yet; the next positions of the two lists bound that.
 *
 * INVARIANTS  pos[l][row] is the position in list l once known, 0 before. Rows with every position
 *             known lie in the ready heap or are out; rows known in one list only wait in that
 *             list's queue, in order of position.
 * ERRORS      VEC_NOMEM, VEC_LIMIT (more than 2^32 - 2 rows), VEC_MISUSE
 * THREADS     one thread at a time
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>

#include "vec_base.h"
#include "vec_hit.h"

// A list is read this far before positions in it are counted: reading on costs little once a list
// is
// partly ordered, and the further both are read, the fewer rows are worth a count.
#define READ_LEAST 128
#define READ_SHARE 16 // of all rows, one in so many
#define READ_MOST  4096
#define BLOCK      64

typedef struct side {
    const double *key;
    double weight;
    vec_rank *rank;
    uint32_t read;   // positions known by reading
    int end;         // the list is read out
    uint32_t *pos;   // by row
    uint64_t *queue; // rows read here whose other position was not known then
    size_t head, tail, cap;
} side;

struct vec_rrf {
    vec_rrf_args a;
    side s[2];
    uint32_t read_first;
    vec_heap ready;
    int failed;
};

/* ------------------------------------------------------------------------------------ positions */

static double share(const vec_rrf *f, int l, uint32_t pos)
{
    return f->s[l].weight / (f->a.k + (double)pos);
}

/* The same sum, in the same order, as vec_fuse_rrf makes. */
static double score(const vec_rrf *f, uint32_t p0, uint32_t p1)
{
    double key = 0;

    if (p0)
        key -= share(f, 0, p0);
    if (p1)
        key -= share(f, 1, p1);
    return -key;
}

static int in_list(const vec_rrf *f, int l, uint64_t row)
{
    return !isnan(f->s[l].key[row]);
}

static int make_ready(vec_rrf *f, uint64_t row)
{
    vec_hit h = {-score(f, f->s[0].pos[row], f->s[1].pos[row]), f->a.id(f->a.ctx, row), row};

    return vec_heap_push(&f->ready, h);
}

/* How many rows of list l come before row, by one pass over the keys. */
static uint32_t count_before(const vec_rrf *f, int l, uint64_t row)
{
    const double *key = f->s[l].key;
    double mine = key[row];
    uint64_t less = 0, same = 0, at = 0;

    // Blocks of a fixed length: what compilers turn into wide compares without being asked.
    for (; at + BLOCK <= f->a.nrow; at += BLOCK) {
        int64_t below = 0, level = 0;

        for (int i = 0; i < BLOCK; i++) {
            below += key[at + i] < mine;
            level += key[at + i] == mine;
        }
        less += (uint64_t)below;
        same += (uint64_t)level;
    }
    for (; at < f->a.nrow; at++) {
        less += key[at] < mine;
        same += key[at] == mine;
    }
    if (same > 1) {
        int64_t id = f->a.id(f->a.ctx, row);

        for (uint64_t i = 0; i < f->a.nrow; i++)
            less += key[i] == mine && i != row && f->a.id(f->a.ctx, i) < id;
    }
    return (uint32_t)less;
}

/* Reads one more position of list l. */
static int advance(vec_rrf *f, int l)
{
    side *s = &f->s[l];
    const vec_hit *h = vec_rank_next(s->rank);

    if (!h) {
        s->end = 1;
        return VEC_OK;
    }
    s->read++;
    if (s->pos[h->row])
        return VEC_OK; // it was counted, and is ready since
    s->pos[h->row] = s->read;
    if (!in_list(f, !l, h->row) || f->s[!l].pos[h->row])
        return make_ready(f, h->row);
    if (s->tail == s->cap) {
        size_t cap = s->cap ? 2 * s->cap : 64;
        uint64_t *more = cap <= SIZE_MAX / sizeof *more ? vec_resize(s->queue, cap * sizeof *more)
                                                        : NULL;

        if (!more)
            return VEC_NOMEM;
        s->queue = more;
        s->cap = cap;
    }
    s->queue[s->tail++] = h->row;
    return VEC_OK;
}

/* The first row of list l's queue that still waits for its other position; UINT64_MAX: none. */
static uint64_t waiting(vec_rrf *f, int l)
{
    side *s = &f->s[l];

    while (s->head < s->tail && f->s[!l].pos[s->queue[s->head]])
        s->head++;
    return s->head < s->tail ? s->queue[s->head] : UINT64_MAX;
}

/* --------------------------------------------------------------------------------------- bounds */

/* What the next unread row of list l can get there. */
static double next_share(const vec_rrf *f, int l)
{
    return f->s[l].end ? 0 : share(f, l, f->s[l].read + 1);
}

/* The most that a row can reach which waits in list l's queue; -infinity: none waits. */
static double waiting_bound(vec_rrf *f, int l)
{
    uint64_t row = waiting(f, l);

    return row == UINT64_MAX ? -INFINITY : share(f, l, f->s[l].pos[row]) + next_share(f, !l);
}

/* One step towards knowing more, where the bound is highest. Both lists read out and none
 * waiting: 0. */
static int step(vec_rrf *f, double unseen, double w0, double w1)
{
    int rc, l;

    if (unseen >= w0 && unseen >= w1) {
        l = f->s[0].end || (!f->s[1].end && next_share(f, 1) > next_share(f, 0));
        rc = advance(f, l);
    } else {
        int from = w1 > w0; // the queue whose first row is the best
        uint64_t row = waiting(f, from);

        l = !from;
        if (f->s[l].read < f->read_first && !f->s[l].end) {
            rc = advance(f, l);
        } else {
            f->s[l].pos[row] = count_before(f, l, row) + 1;
            rc = make_ready(f, row);
        }
    }
    return rc;
}

int vec_rrf_next(vec_rrf *f, vec_hit *out)
{
    while (!f->failed) {
        int more = !f->s[0].end || !f->s[1].end;
        double unseen = more ? next_share(f, 0) + next_share(f, 1) : -INFINITY;
        double w0 = waiting_bound(f, 0), w1 = waiting_bound(f, 1), most;

        most = unseen > w0 ? unseen : w0;
        most = most > w1 ? most : w1;
        // Ties go by id, so a row that could still come level has to be known first.
        if (f->ready.n && -f->ready.h[0].key > most) {
            *out = vec_heap_pop(&f->ready);
            return 1;
        }
        if (most == -INFINITY)
            return 0;
        f->failed = step(f, unseen, w0, w1);
    }
    return f->failed;
}

/* -------------------------------------------------------------------------------------- opening */

static int open_side(vec_rrf *f, int l)
{
    side *s = &f->s[l];
    uint64_t n = 0, i = 0;
    vec_hit *hits;

    s->key = f->a.key[l];
    s->weight = f->a.weight[l];
    s->pos = vec_alloc_zero((size_t)f->a.nrow, sizeof *s->pos);
    for (uint64_t r = 0; r < f->a.nrow; r++)
        n += !isnan(s->key[r]);
    hits = vec_hits_alloc((size_t)n);
    if (!s->pos || !hits) {
        vec_free(hits);
        return VEC_NOMEM;
    }
    for (uint64_t r = 0; r < f->a.nrow; r++)
        if (!isnan(s->key[r]))
            hits[i++] = (vec_hit){s->key[r], f->a.id(f->a.ctx, r), r};
    return vec_rank_new(hits, (size_t)n, &s->rank);
}

int vec_rrf_new(const vec_rrf_args *a, vec_rrf **out)
{
    vec_rrf *f;
    int rc = VEC_OK;

    *out = NULL;
    if (!a->id || !(a->k >= 0) || !isfinite(a->k))
        return VEC_MISUSE;
    for (int l = 0; l < 2; l++)
        if ((a->nrow && !a->key[l]) || !(a->weight[l] >= 0) || !isfinite(a->weight[l]))
            return VEC_MISUSE;
    if (a->nrow >= UINT32_MAX - 1)
        return VEC_LIMIT;
    f = vec_alloc_zero(1, sizeof *f);
    if (!f)
        return VEC_NOMEM;
    f->a = *a;
    f->read_first = a->nrow / READ_SHARE < READ_LEAST  ? READ_LEAST
                    : a->nrow / READ_SHARE > READ_MOST ? READ_MOST
                                                       : (uint32_t)(a->nrow / READ_SHARE);
    for (int l = 0; l < 2 && rc == VEC_OK; l++)
        rc = open_side(f, l);
    if (rc < 0) {
        vec_rrf_free(f);
        return rc;
    }
    *out = f;
    return VEC_OK;
}

void vec_rrf_free(vec_rrf *f)
{
    if (!f)
        return;
    for (int l = 0; l < 2; l++) {
        vec_rank_free(f->s[l].rank);
        vec_free(f->s[l].pos);
        vec_free(f->s[l].queue);
    }
    vec_heap_free(&f->ready);
    vec_free(f);
}
