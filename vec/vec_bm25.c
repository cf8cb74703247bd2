/*
 * vec_bm25.c - exhaustive BM25 over runs and texts as one collection
 *
 * Three passes. Rows: N and the sum of lengths, by counting the dead and taking them off the stored
 * sums. Terms: df, which is stored where a source has no dead rows, and counted posting by posting
 * where it has. Scores: each source is searched in windows of 4096 ordinals, term by term; the
 * window's sums (32 KiB) stay in the first-level cache, however large the source is. A word with a
 * bit for every 64 rows says where there is something to collect, so that rare words do not pay for
 * the whole window; and windows without postings or without wanted rows are jumped over.
 *
 * The factor of a term that occurs once, (k1 + 1) / (1 + K), depends on the row's length only and
 * is looked up; most postings are such, and save a division.
 *
 * A score is the sum over the query's distinct terms in ascending order, each computed from N, df,
 * avgdl, tf and dl alone: the same bits, whatever sources the rows lie in.
 *
 * ERRORS   VEC_NOMEM, VEC_FORMAT (an image or the query's stream), VEC_LIMIT, VEC_MISUSE, VEC_ABORT
 * THREADS  one call, one thread; sources are only read
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>

#include "vec_bits.h"
#include "vec_kern.h"
#include "vec_run.h"

#define WINDOW  4096u // 64 groups of 64 rows, one bit of `touched` each
#define LENGTHS 1024u // lengths below this have their factors in a table

typedef struct qterm {
    const uint8_t *s;
    uint32_t n;
    uint64_t df;
    double weight;
} qterm;

typedef struct search {
    const vec_bm25_args *a;
    qterm *terms;
    uint32_t nterm;
    vec_part *parts; // one a source
    uint64_t *dead;  // dead rows of each source; 0 = stored counts are exact
    vec_ref *refs;   // nterm a source
    double k1;
    double k_base; // K = k_base + k_len * dl
    double k_len;
    double once[LENGTHS]; // (k1 + 1) / (1 + K), by length
    double k[LENGTHS];    // K, by length
    vec_cursor *cursors;
    uint32_t *active; // terms that have a cursor in the source at hand
    uint32_t nactive;
    uint64_t left; // postings that may still come, for the size of the result
    vec_hit *hits;
    size_t nhit;
    size_t cap;
    double sum[WINDOW];
} search;

/* ---------------------------------------------------------------------------------------- query */

static int by_bytes(const void *a, const void *b)
{
    const qterm *x = a, *y = b;

    return vec_term_cmp(x->s, x->n, y->s, y->n);
}

/* The query's distinct tokens, ascending. */
static int read_query(search *s)
{
    vec_token tok;
    size_t pos = 0, n = 0;
    uint32_t kept = 0;
    int rc;

    while ((rc = vec_token_next(s->a->query, s->a->nquery, &pos, &tok)) == 1)
        n++;
    if (rc)
        return rc;
    s->terms = vec_alloc_array(n, sizeof *s->terms);
    if (!s->terms)
        return VEC_NOMEM;
    pos = 0;
    for (size_t i = 0; i < n; i++) {
        (void)vec_token_next(s->a->query, s->a->nquery, &pos, &tok);
        s->terms[i] = (qterm){(const uint8_t *)tok.s, tok.n, 0, 0};
    }
    qsort(s->terms, n, sizeof *s->terms, by_bytes);
    for (size_t i = 0; i < n; i++) {
        if (kept && by_bytes(&s->terms[kept - 1], &s->terms[i]) == 0)
            continue;
        if (kept == VEC_QUERY_TERMS_MAX)
            return VEC_LIMIT;
        s->terms[kept++] = s->terms[i];
    }
    s->nterm = kept;
    return VEC_OK;
}

/* ----------------------------------------------------------------------------------------- rows */

/* Dead rows of a part without gaps and the sum of their lengths. */
static void count_dead(const vec_part *p, const uint64_t *live, uint64_t base, uint64_t *dead,
                       uint64_t *len)
{
    for (uint32_t i = 0; i < p->nrow;) {
        unsigned n = p->nrow - i < 64 ? p->nrow - i : 64;
        uint64_t gone = ~vec_bits_group(live, base + i, n) & vec_bits_low(n);

        *dead += vec_bits_popcount(gone);
        for (; gone; gone &= gone - 1)
            *len += vec_part_len(p, i + vec_bits_lowest(gone));
        i += n;
    }
}

/* The same with gaps. */
static int count_dead_gaps(const vec_part *p, const uint64_t *live, uint64_t base, uint64_t *dead,
                           uint64_t *len)
{
    for (uint32_t i = 0; i < p->nrow; i++) {
        uint32_t off = vec_part_off(p, i);

        if (off > p->span)
            return VEC_FORMAT;
        if (vec_bits_get(live, base + off))
            continue;
        (*dead)++;
        *len += vec_part_len(p, i);
    }
    return VEC_OK;
}

/* Makes the parts, with row numbers of the whole, and adds up the lengths of live rows. */
static int read_rows(search *s, uint64_t *total)
{
    const vec_bm25_args *a = s->a;

    for (size_t i = 0; i < a->nsource; i++) {
        const vec_source *src = &a->sources[i];
        vec_part *p = &s->parts[i];
        uint64_t gone = 0;
        int rc = VEC_OK;

        if (!src->run == !src->text)
            return VEC_MISUSE;
        if (src->run)
            *p = src->run->part;
        else
            vec_text_part(src->text, p);
        if (p->nrow == 0)
            continue;
        if (p->first > UINT64_MAX - src->offset || p->first + src->offset >= a->nrow ||
            p->span >= a->nrow - p->first - src->offset)
            return VEC_MISUSE;
        p->first += src->offset;
        if (src->dense)
            ;
        else if (p->rowoff)
            rc = count_dead_gaps(p, a->live, p->first, &s->dead[i], &gone);
        else
            count_dead(p, a->live, p->first, &s->dead[i], &gone);
        if (rc)
            return rc;
        *total += p->len_total - gone;
    }
    return VEC_OK;
}

/* ---------------------------------------------------------------------------------------- terms */

/* Live postings of a term in a source that has dead rows. */
static int count_live(const search *s, const vec_part *p, const vec_ref *ref, uint64_t *df)
{
    vec_cursor *c = &s->cursors[0];
    int rc = vec_cursor_open(c, ref, p->nrow);

    if (rc)
        return rc;
    while ((rc = vec_cursor_next(c)) == 1) {
        for (uint32_t i = 0; i < c->n; i++) {
            uint32_t off = vec_part_off(p, c->ord[i]); // in range: count_dead_gaps saw all

            *df += (uint64_t)vec_bits_get(s->a->live, p->first + off);
        }
    }
    return rc;
}

static int read_terms(search *s)
{
    for (size_t i = 0; i < s->a->nsource; i++) {
        const vec_source *src = &s->a->sources[i];

        for (uint32_t t = 0; t < s->nterm && s->parts[i].nrow; t++) {
            vec_ref *ref = &s->refs[i * s->nterm + t];
            int rc = VEC_OK;

            if (src->run)
                rc = vec_run_find(src->run, s->terms[t].s, s->terms[t].n, ref);
            else
                vec_text_find(src->text, s->terms[t].s, s->terms[t].n, ref);
            if (!rc && ref->df && s->dead[i])
                rc = count_live(s, &s->parts[i], ref, &s->terms[t].df);
            else
                s->terms[t].df += ref->df;
            if (rc)
                return rc;
        }
        if (s->a->stop && s->a->stop(s->a->stop_ctx))
            return VEC_ABORT;
    }
    return VEC_OK;
}

static void weigh(search *s, uint64_t nlive, uint64_t total)
{
    double avgdl = nlive ? (double)total / (double)nlive : 0;

    s->k1 = s->a->k1;
    s->k_base = s->k1 * (1 - s->a->b);
    s->k_len = avgdl > 0 ? s->k1 * s->a->b / avgdl : 0;
    for (uint32_t i = 0; i < LENGTHS; i++) {
        s->k[i] = s->k_base + s->k_len * i;
        s->once[i] = (s->k1 + 1) / (1 + s->k[i]);
    }
    for (uint32_t t = 0; t < s->nterm; t++) {
        // Neither an image that lies nor a source wrongly called dense shall make a NaN.
        double df = (double)(s->terms[t].df < nlive ? s->terms[t].df : nlive);

        s->terms[t].weight = log(1 + ((double)nlive - df + 0.5) / (df + 0.5));
        s->left += s->terms[t].df;
    }
}

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
        double part;

        if (c->ones && dl < LENGTHS) {
            part = s->once[dl];
        } else {
            double tf = vec_cursor_tf(c, i);
            double k = dl < LENGTHS ? s->k[dl] : s->k_base + s->k_len * dl;

            part = tf * (s->k1 + 1) / (tf + k);
        }
        s->sum[ord - w] += weight * part;
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
    const vec_bm25_args *a = s->a;
    uint64_t want = vec_bits_low(n), have = 0;
    int rc = VEC_OK;

    if (!p->rowoff) {
        want = vec_bits_group(a->live, p->first + ord, n);
        if (a->filter)
            want &= vec_bits_group(a->filter, p->first + ord, n);
    }
    for (unsigned i = 0; i < n; i++)
        have |= (uint64_t)(sum[i] > 0) << i;
    for (have &= want; have && !rc; have &= have - 1) {
        unsigned i = vec_bits_lowest(have);
        uint64_t row = p->first + vec_part_off(p, ord + i);

        if (p->rowoff) {
            if (row - p->first > p->span)
                return VEC_FORMAT;
            if (!vec_bits_get(a->live, row) || (a->filter && !vec_bits_get(a->filter, row)))
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
    const uint64_t *bits = s->a->filter ? s->a->filter : s->a->live;

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
        *touched |= add_postings(s, p, c, to, w, s->terms[t].weight);
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
    const vec_part *p = &s->parts[i];
    uint32_t w = 0;
    int rc;

    s->nactive = 0;
    for (uint32_t t = 0; t < s->nterm; t++) {
        const vec_ref *ref = &s->refs[i * s->nterm + t];

        if (!ref->df)
            continue;
        if ((rc = vec_cursor_open(&s->cursors[t], ref, p->nrow)))
            return rc;
        s->active[s->nactive++] = t;
    }
    while (s->nactive && w < p->nrow) {
        uint32_t end = p->nrow - w > WINDOW ? w + WINDOW : p->nrow, next = UINT32_MAX, kept = 0;
        uint64_t touched = 0;

        if (s->a->stop && s->a->stop(s->a->stop_ctx))
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

static int run(search *s)
{
    const vec_bm25_args *a = s->a;
    uint64_t nlive, total = 0, most;
    int rc = read_rows(s, &total);

    if (rc || (rc = read_query(s)))
        return rc;
    if (s->nterm && a->nsource > SIZE_MAX / s->nterm)
        return VEC_NOMEM;
    s->refs = vec_alloc_zero(a->nsource * s->nterm, sizeof *s->refs);
    s->cursors = vec_alloc_array(s->nterm ? s->nterm : 1, sizeof *s->cursors);
    s->active = vec_alloc_array(s->nterm, sizeof *s->active);
    if (!s->refs || !s->cursors || !s->active)
        return VEC_NOMEM;
    if ((rc = read_terms(s)))
        return rc;
    nlive = vec_bits_count(a->live, a->nrow);
    weigh(s, nlive, total);
    most = a->filter ? vec_bits_count(a->filter, a->nrow) : nlive;
    s->cap = (size_t)(most < s->left ? most : s->left);
    s->hits = vec_hits_alloc(s->cap);
    if (!s->hits)
        return VEC_NOMEM;
    for (size_t i = 0; i < a->nsource && !rc; i++)
        rc = search_source(s, i);
    return rc;
}

int vec_bm25(const vec_bm25_args *a, vec_hit **out, size_t *n)
{
    search *s;
    int rc;

    *out = NULL;
    *n = 0;
    if (!(a->k1 >= 0 && a->k1 <= 1e9 && a->b >= 0 && a->b <= 1) || (a->nrow && !a->live))
        return VEC_MISUSE;
    s = vec_alloc_zero(1, sizeof *s);
    if (!s)
        return VEC_NOMEM;
    s->a = a;
    s->parts = vec_alloc_zero(a->nsource, sizeof *s->parts);
    s->dead = vec_alloc_zero(a->nsource, sizeof *s->dead);
    rc = s->parts && s->dead ? run(s) : VEC_NOMEM;
    if (!rc) {
        *out = s->hits;
        *n = s->nhit;
        s->hits = NULL;
    }
    vec_free(s->hits);
    vec_free(s->terms);
    vec_free(s->parts);
    vec_free(s->dead);
    vec_free(s->refs);
    vec_free(s->cursors);
    vec_free(s->active);
    vec_free(s);
    return rc;
}
