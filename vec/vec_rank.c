/*
 * vec_rank.c - lazy ranking by incremental quicksort
 *
 * Paredes and Navarro 2006, "Optimal Incremental Sorting": a stack holds the places of pivots that
 * are already final, the nearest on top. To get the next hit, the part before the top pivot is
 * partitioned until it is a handful, which is sorted. What lies behind a pivot is not touched
 * before it is asked for, and every partition is used again later.
 *
 * Two differences. A pivot is chosen by position alone (median of three, of nine in a long part),
 * so that the same input always takes the same way; and since such a pivot can be unlucky on
 * purpose, every part carries a budget of partitions, twice the logarithm of n at first, which both
 * its parts inherit less one. A part whose budget is spent is heapsorted: n log n at worst, and a
 * stack of fixed depth. And the first cut of a long input is not made in the middle but near the
 * front, by a sample, since most searches read one page: about n comparisons instead of 2 n to 3 n,
 * with branches that are easy to predict.
 *
 * ERRORS   VEC_NOMEM
 * THREADS  one thread at a time
 *
 * SPDX-License-Identifier: MIT
 */
#include "vec_base.h"
#include "vec_hit.h"

#define DEPTH_MAX    132 // budget at most 2 * 64, one more pivot each, and the bottom
#define HANDFUL      16
#define NINTHER_FROM 128
#define FRONT_FROM   2048 // from here on, the first cut is near the front
#define FRONT_SAMPLE 64

/* The part that ends before `end`; hits[end] is final, or end is n. */
typedef struct part {
    size_t end;
    unsigned budget;
} part;

struct vec_rank {
    vec_hit *h;
    size_t next;   // first not yet handed out
    size_t sorted; // h[next..sorted-1] are final
    size_t depth;
    part stack[DEPTH_MAX];
};

vec_hit *vec_hits_alloc(size_t n)
{
    return vec_alloc_array(n, sizeof(vec_hit));
}

int vec_rank_new(vec_hit *hits, size_t n, vec_rank **out)
{
    vec_rank *r = vec_alloc_zero(1, sizeof *r);
    unsigned log2 = 0;

    *out = r;
    if (!r) {
        vec_free(hits);
        return VEC_NOMEM;
    }
    for (size_t m = n; m > 1; m >>= 1)
        log2++;
    r->h = hits;
    r->stack[0] = (part){n, 2 * log2};
    r->depth = 1;
    return VEC_OK;
}

void vec_rank_free(vec_rank *r)
{
    if (!r)
        return;
    vec_free(r->h);
    vec_free(r);
}

static size_t median3(const vec_hit *h, size_t a, size_t b, size_t c)
{
    if (vec_hit_less(&h[b], &h[a])) {
        size_t t = a;

        a = b;
        b = t;
    }
    if (!vec_hit_less(&h[c], &h[b]))
        return b;
    return vec_hit_less(&h[c], &h[a]) ? a : c;
}

static size_t middle(const vec_hit *h, size_t lo, size_t hi)
{
    size_t n = hi - lo, s = n / 8, mid = lo + n / 2;

    if (n < NINTHER_FROM)
        return median3(h, lo, mid, hi - 1);
    return median3(h, median3(h, lo, lo + s, lo + 2 * s), median3(h, mid - s, mid, mid + s),
                   median3(h, hi - 1 - 2 * s, hi - 1 - s, hi - 1));
}

/* The second smallest of a sample: about one in 32 is smaller. */
static size_t front(const vec_hit *h, size_t n)
{
    size_t step = n / FRONT_SAMPLE, first = 0, second = step;

    if (vec_hit_less(&h[second], &h[first])) {
        first = step;
        second = 0;
    }
    for (size_t i = 2; i < FRONT_SAMPLE; i++) {
        if (!vec_hit_less(&h[i * step], &h[second]))
            continue;
        second = i * step;
        if (vec_hit_less(&h[second], &h[first])) {
            second = first;
            first = i * step;
        }
    }
    return second;
}

/* Puts h[pivot] to its final place in h[lo..hi-1] and returns that: not larger before, not smaller
 * behind. Both scans stop at equal hits, so that many equal ones still split evenly. */
static size_t partition(vec_hit *h, size_t lo, size_t hi, size_t pivot)
{
    size_t i = lo, j = hi;
    vec_hit x;

    vec_hit_swap(&h[lo], &h[pivot]);
    x = h[lo];
    for (;;) {
        do
            i++;
        while (i < hi && vec_hit_less(&h[i], &x));
        do
            j--;
        while (vec_hit_less(&x, &h[j]));
        if (i >= j)
            break;
        vec_hit_swap(&h[i], &h[j]);
    }
    h[lo] = h[j];
    h[j] = x;
    return j;
}

const vec_hit *vec_rank_next(vec_rank *r)
{
    while (r->next == r->sorted && r->depth > 0) {
        part *top = &r->stack[r->depth - 1];
        size_t lo = r->next, n = top->end - lo, p;

        if (n <= HANDFUL || top->budget == 0) {
            if (n <= HANDFUL)
                vec_hit_insertsort(r->h + lo, n);
            else
                vec_hit_heapsort(r->h + lo, n);
            r->depth--;
            // The pivot behind the part is in its place, too; behind the last part there is none.
            r->sorted = top->end + (r->depth > 0);
            continue;
        }
        p = lo == 0 && r->depth == 1 && n >= FRONT_FROM ? front(r->h, n)
                                                        : middle(r->h, lo, top->end);
        p = partition(r->h, lo, top->end, p);
        top->budget--;
        r->stack[r->depth++] = (part){p, top->budget};
    }
    return r->next < r->sorted ? &r->h[r->next++] : NULL;
}
