/*
 * vec_bm25.c - exhaustive BM25 over runs and texts as one collection
 *
 * Each source is searched in windows of 4096 ordinals, leaf by leaf; the window's sums (32 KiB)
 * stay in the first-level cache, however large the source is. A word with a bit for every 64 rows
 * says where there is something to collect, so that rare words do not pay for the whole window; and
 * windows without postings or without wanted rows are jumped over.
 *
 * The factor of a term that occurs once, (k1 + 1) / (1 + K), depends on the row's length only and
 * is looked up; most postings are such, and save a division.
 *
 * ERRORS   VEC_NOMEM, VEC_FORMAT (an image or the query's stream), VEC_LIMIT, VEC_MISUSE, VEC_ABORT
 * THREADS  one call, one thread; sources are only read
 *
 * SPDX-License-Identifier: MIT
 */
#include "vec_kern.h"
#include "vec_words.h"

#define WINDOW 4096u // 64 groups of 64 rows, one bit of `touched` each

typedef struct search {
    vec_words *w;
    vec_cursor *cursors; // one a leaf
    uint32_t *active;    // leaves that have a cursor in the source at hand
    uint32_t nactive;
    vec_hit *hits;
    size_t nhit;
    size_t cap;
    double sum[WINDOW];
} search;

/* --------------------------------------------------------------------------------------- scores */

VEC_INLINE uint32_t length(const uint8_t *len, unsigned size, uint32_t ord)
{
    return size == 1   ? len[ord]
           : size == 2 ? vec_get16(len + 2 * (size_t)ord)
                       : vec_get32(len + 4 * (size_t)ord);
}

/* Adds postings from..to-1 of the cursor's block to the window that starts at ordinal w. */
VEC_INLINE uint64_t add_sized(search *s, const vec_part *p, unsigned size, const vec_cursor *c,
                              uint32_t to, uint32_t w, double weight)
{
    uint64_t touched = 0;

    for (uint32_t i = c->at; i < to; i++) {
        uint32_t ord = c->ord[i], dl = length(p->len, size, ord);

        s->sum[ord - w] += c->ones && dl < VEC_LENGTHS
                               ? vec_words_part1(s->w, weight, dl)
                               : vec_words_part(s->w, weight, vec_cursor_tf(c, i), dl);
        touched |= (uint64_t)1 << ((ord - w) >> 6);
    }
    return touched;
}

static uint64_t add_postings(search *s, const vec_part *p, const vec_cursor *c, uint32_t to,
                             uint32_t w, double weight)
{
    switch (p->len_size) {
    case 1:
        return add_sized(s, p, 1, c, to, w, weight);
    case 2:
        return add_sized(s, p, 2, c, to, w, weight);
    default:
        return add_sized(s, p, 4, c, to, w, weight);
    }
}

static int emit(search *s, uint64_t row, double score)
{
    if (s->nhit == s->cap)
        return VEC_MISUSE; // a row in two sources, or a source wrongly called dense
    s->hits[s->nhit++] = (vec_hit){-score, 0, row};
    return VEC_OK;
}

/* Hands out the n <= 64 rows from ordinal ord on, and clears their sums. */
static int collect_group(search *s, const vec_part *p, uint32_t ord, unsigned n, double *sum)
{
    const vec_words *q = s->w;
    uint64_t want = vec_bits_low(n), have = 0;
    int rc = VEC_OK;

    if (!p->rowoff) {
        want = vec_bits_group(q->a.live, p->first + ord, n);
        if (q->filter)
            want &= vec_bits_group(q->filter, p->first + ord, n);
    }
    for (unsigned i = 0; i < n; i++)
        have |= (uint64_t)(sum[i] > 0) << i;
    for (have &= want; have && !rc; have &= have - 1) {
        unsigned i = vec_bits_lowest(have);
        uint64_t row = p->first + vec_part_off(p, ord + i);

        if (p->rowoff) {
            if (row - p->first > p->span)
                return VEC_FORMAT;
            if (!vec_bits_get(q->a.live, row) || (q->filter && !vec_bits_get(q->filter, row)))
                continue;
        }
        rc = emit(s, row, sum[i]);
    }
    memset(sum, 0, n * sizeof *sum);
    return rc;
}

static int collect(search *s, const vec_part *p, uint32_t w, uint64_t touched)
{
    int rc = VEC_OK;

    for (; touched && !rc; touched &= touched - 1) {
        uint32_t at = 64 * vec_bits_lowest(touched);
        uint32_t n = p->nrow - w - at;

        rc = collect_group(s, p, w + at, n < 64 ? n : 64, s->sum + at);
    }
    return rc;
}

/* Whether any row of the window is wanted; with gaps always "maybe". */
static int wanted(const search *s, const vec_part *p, uint32_t w, uint32_t end)
{
    const uint64_t *bits = s->w->filter ? s->w->filter : s->w->a.live;

    if (p->rowoff)
        return 1;
    for (uint32_t i = w; i < end;) {
        unsigned n = end - i < 64 ? end - i : 64;

        if (vec_bits_group(bits, p->first + i, n))
            return 1;
        i += n;
    }
    return 0;
}

/* One term in the window w..end-1; *next = least ordinal it has from end on. A term that is through
 * leaves with a result of 0. */
static int add_term(search *s, const vec_part *p, uint32_t t, uint32_t w, uint32_t end,
                    uint64_t *touched, uint32_t *next)
{
    vec_cursor *c = &s->cursors[t];
    int rc = vec_cursor_seek(c, w);

    while (rc == 1 && c->ord[c->at] < end) {
        uint32_t to = c->n;

        if (c->ord[to - 1] >= end)
            for (to = c->at; c->ord[to] < end;)
                to++;
        *touched |= add_postings(s, p, c, to, w, s->w->weight[t]);
        c->at = to;
        if (c->at == c->n)
            rc = vec_cursor_next(c);
    }
    if (rc == 1 && c->ord[c->at] < *next)
        *next = c->ord[c->at];
    return rc;
}

static int search_source(search *s, size_t i)
{
    const vec_part *p = &s->w->parts[i];
    uint32_t w = 0;
    int rc;

    s->nactive = 0;
    for (uint32_t t = 0; t < s->w->ask.nphrase; t++) {
        const vec_ref *ref = vec_words_ref(s->w, i, t);

        if (!ref->df || !(s->w->weight[t] > 0))
            continue;
        if ((rc = vec_cursor_open(&s->cursors[t], ref, p->nrow)))
            return rc;
        s->active[s->nactive++] = t;
    }
    while (s->nactive && w < p->nrow) {
        uint32_t end = p->nrow - w > WINDOW ? w + WINDOW : p->nrow, next = UINT32_MAX, kept = 0;
        uint64_t touched = 0;

        if (vec_words_stop(s->w))
            return VEC_ABORT;
        if (!wanted(s, p, w, end)) {
            w = end;
            continue;
        }
        for (uint32_t j = 0; j < s->nactive; j++) {
            rc = add_term(s, p, s->active[j], w, end, &touched, &next);
            if (rc < 0)
                return rc;
            if (rc)
                s->active[kept++] = s->active[j];
        }
        s->nactive = kept;
        if ((rc = collect(s, p, w, touched)))
            return rc;
        w = next / WINDOW * WINDOW;
    }
    return VEC_OK;
}

/* Most rows that can come out. */
static size_t most(const vec_words *w)
{
    uint64_t rows = w->filter ? vec_bits_count(w->filter, w->a.nrow) : w->nlive, left = 0;

    for (size_t t = 0; t < w->ask.nphrase; t++)
        left += w->df[t];
    return (size_t)(rows < left ? rows : left);
}

int vec_words_all(vec_words *w, vec_hit **out, size_t *n)
{
    search *s = vec_alloc_zero(1, sizeof *s);
    int rc = VEC_OK;

    *out = NULL;
    *n = 0;
    if (!s)
        return VEC_NOMEM;
    s->w = w;
    s->cap = most(w);
    s->hits = vec_hits_alloc(s->cap);
    s->cursors = vec_alloc_array(w->ask.nphrase, sizeof *s->cursors);
    s->active = vec_alloc_array(w->ask.nphrase, sizeof *s->active);
    if (!s->hits || !s->cursors || !s->active)
        rc = VEC_NOMEM;
    for (size_t i = 0; i < w->a.nsource && !rc; i++)
        rc = search_source(s, i);
    if (!rc) {
        *out = s->hits;
        *n = s->nhit;
        s->hits = NULL;
    }
    vec_free(s->hits);
    vec_free(s->cursors);
    vec_free(s->active);
    vec_free(s);
    return rc;
}

int vec_bm25(const vec_bm25_args *a, vec_hit **out, size_t *n)
{
    vec_words *w;
    int rc = vec_words_new(a, &w);

    *out = NULL;
    *n = 0;
    if (rc)
        return rc;
    rc = vec_words_all(w, out, n);
    vec_words_free(w);
    return rc;
}
