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
#include "vec_window.h"

typedef struct search {
    vec_words *w;
    vec_cursor *cursors; // one a leaf
    uint32_t *active;    // leaves that have a cursor in the source at hand
    uint32_t nactive;
    vec_hit *hits;
    size_t nhit;
    size_t cap;
    double sum[VEC_WINDOW];
} search;

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
    uint64_t want = p->rowoff ? vec_bits_low(n) : vec_window_want(s->w, p, ord, n);
    uint64_t have = vec_window_have(sum, n, s->w->step); // no part is less
    int rc = VEC_OK;

    for (have &= want; have && rc >= 0; have &= have - 1) {
        unsigned i = vec_bits_lowest(have);
        uint64_t row = p->first + ord + i;

        rc = p->rowoff ? vec_window_row(s->w, p, ord + i, &row) : 1;
        if (rc == 1)
            rc = emit(s, row, sum[i]);
    }
    memset(sum, 0, n * sizeof *sum);
    return rc < 0 ? rc : VEC_OK;
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
        uint32_t end = p->nrow - w > VEC_WINDOW ? w + VEC_WINDOW : p->nrow, next = UINT32_MAX,
                 kept = 0;
        uint64_t touched = 0;

        if (vec_words_stop(s->w))
            return VEC_ABORT;
        if (!vec_window_wanted(s->w, p, w, end)) {
            w = end;
            continue;
        }
        for (uint32_t j = 0; j < s->nactive; j++) {
            uint32_t t = s->active[j];

            rc = vec_window_leaf(s->w, p, &s->cursors[t], s->w->weight[t], w, end, s->sum, &touched,
                                 &next);
            if (rc < 0)
                return rc;
            if (rc)
                s->active[kept++] = t;
        }
        s->nactive = kept;
        if ((rc = collect(s, p, w, touched)))
            return rc;
        w = next / VEC_WINDOW * VEC_WINDOW;
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
