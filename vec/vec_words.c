/*
 * vec_words.c - preparing a text query: which rows count, what each word weighs
 *
 * Three passes. Rows: N and the sum of lengths, by counting the dead and taking them off the stored
 * sums. Leaves: their postings in each source. Counts: df, which is stored where a source has no
 * dead rows, and counted posting by posting where it has.
 *
 * ERRORS   VEC_NOMEM, VEC_FORMAT (an image or the query's stream), VEC_LIMIT, VEC_MISUSE, VEC_ABORT
 * THREADS  one call, one thread; sources are only read
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>

#include "vec_words.h"

/* ---------------------------------------------------------------------------------------- query */

static int by_bytes(const void *a, const void *b)
{
    const vec_word *x = a, *y = b;

    return vec_term_cmp((const uint8_t *)x->s, x->n, (const uint8_t *)y->s, y->n);
}

/* The distinct tokens of a stream, each a phrase by itself. */
static int ask_stream(vec_words *w, const uint8_t *stream, size_t size)
{
    vec_token tok;
    size_t pos = 0, n = 0, kept = 0;
    int rc;

    while ((rc = vec_token_next(stream, size, &pos, &tok)) == 1)
        n++;
    if (rc)
        return rc;
    w->own_words = vec_alloc_array(n, sizeof *w->own_words);
    w->own_phrases = vec_alloc_array(n, sizeof *w->own_phrases);
    if (!w->own_words || !w->own_phrases)
        return VEC_NOMEM;
    pos = 0;
    for (size_t i = 0; i < n; i++) {
        (void)vec_token_next(stream, size, &pos, &tok);
        w->own_words[i] = (vec_word){tok.s, tok.n, 0, 0};
    }
    qsort(w->own_words, n, sizeof *w->own_words, by_bytes);
    for (size_t i = 0; i < n; i++) {
        if (kept && by_bytes(&w->own_words[kept - 1], &w->own_words[i]) == 0)
            continue;
        w->own_words[kept] = w->own_words[i];
        w->own_phrases[kept] = (vec_phrase){
            .word = (uint32_t)kept, .nword = 1, .fields = 1, .weight = 1, .group = 1};
        kept++;
    }
    w->ask = (vec_ask){w->own_words, kept, w->own_phrases, kept, NULL, 0};
    return VEC_OK;
}

static int check_ask(const vec_ask *q)
{
    size_t group = 0;

    if (q->nphrase > VEC_QUERY_TERMS_MAX || q->nword > VEC_QUERY_TERMS_MAX)
        return VEC_LIMIT;
    for (size_t i = 0; i < q->nphrase; i++) {
        const vec_phrase *p = &q->phrases[i];

        if (p->nword > q->nword || p->word > q->nword - p->nword || !(p->weight >= 0) ||
            p->weight > 1e9 || p->fields >= 1u << VEC_FIELDS || (p->group == 0) != (group > 1) ||
            p->group > q->nphrase - i)
            return VEC_MISUSE;
        group = p->group ? p->group : group - 1;
    }
    for (size_t i = 0; i < q->nword; i++)
        if (q->words[i].n > VEC_TOKEN_MAX)
            return VEC_MISUSE;
    return VEC_OK;
}

static int read_query(vec_words *w)
{
    int rc = VEC_OK;

    if (w->a.ask)
        w->ask = *w->a.ask;
    else
        rc = ask_stream(w, w->a.query, w->a.nquery);
    for (size_t i = 0; !rc && i < w->ask.nphrase; i++)
        w->all_fields |= (w->ask.phrases[i].fields & ~1u) != 0;
    return rc ? rc : check_ask(&w->ask);
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

/* Lets the lengths be those of all fields. */
static int add_lengths(vec_words *w, size_t i)
{
    vec_part *p = &w->parts[i];
    uint8_t *sum;

    if (!p->ext_size)
        return VEC_OK;
    sum = w->lengths[i] = vec_alloc_array(p->nrow, 4);
    if (!sum)
        return VEC_NOMEM;
    for (uint32_t k = 0; k < p->nrow; k++) {
        uint64_t len = (uint64_t)vec_part_len(p, k) + vec_part_ext(p, k);

        vec_put32(sum + 4 * (size_t)k, len < UINT32_MAX ? (uint32_t)len : UINT32_MAX);
    }
    p->len = sum;
    p->len_size = 4;
    p->len_total += p->ext_total;
    return VEC_OK;
}

/* Makes the parts, with row numbers of the whole, and adds up the lengths of live rows. */
static int read_rows(vec_words *w, uint64_t *total)
{
    const vec_bm25_args *a = &w->a;

    for (size_t i = 0; i < a->nsource; i++) {
        const vec_source *src = &a->sources[i];
        vec_part *p = &w->parts[i];
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
        rc = w->all_fields ? add_lengths(w, i) : VEC_OK;
        if (rc || src->dense)
            ;
        else if (p->rowoff)
            rc = count_dead_gaps(p, a->live, p->first, &w->dead[i], &gone);
        else
            count_dead(p, a->live, p->first, &w->dead[i], &gone);
        if (rc)
            return rc;
        *total += p->len_total - gone;
    }
    return VEC_OK;
}

/* --------------------------------------------------------------------------------------- counts */

/* Live postings of a leaf in a source that has dead rows. */
static int count_live(const vec_words *w, const vec_part *p, const vec_ref *ref, uint64_t *df)
{
    vec_cursor c;
    int rc = vec_cursor_open(&c, ref, p->nrow);

    if (rc)
        return rc;
    while ((rc = vec_cursor_next(&c)) == 1) {
        for (uint32_t i = 0; i < c.n; i++) {
            uint32_t off = vec_part_off(p, c.ord[i]); // in range: count_dead_gaps saw all

            *df += (uint64_t)vec_bits_get(w->a.live, p->first + off);
        }
    }
    return rc;
}

static int read_leaves(vec_words *w)
{
    for (size_t i = 0; i < w->a.nsource; i++) {
        int rc = w->parts[i].nrow ? vec_match_source(w, i) : VEC_OK;

        for (size_t t = 0; t < w->ask.nphrase && !rc; t++) {
            const vec_ref *ref = vec_words_ref(w, i, t);

            if (ref->df && w->dead[i] && w->ask.phrases[t].weight > 0)
                rc = count_live(w, &w->parts[i], ref, &w->df[t]);
            else
                w->df[t] += ref->df;
        }
        if (rc || vec_words_stop(w))
            return rc ? rc : VEC_ABORT;
    }
    return VEC_OK;
}

static void weigh(vec_words *w, uint64_t total)
{
    double n = (double)w->nlive, avgdl = w->nlive ? (double)total / n : 0, most = 0;
    uint32_t lengths = 0;
    int e;

    w->k1 = w->a.k1;
    w->k_base = w->k1 * (1 - w->a.b);
    w->k_len = avgdl > 0 ? w->k1 * w->a.b / avgdl : 0;
    for (size_t i = 0; i < w->a.nsource; i++) // longer rows than there are need no factors
        lengths = lengths > w->parts[i].len_max ? lengths : w->parts[i].len_max;
    w->lengths_n = lengths < VEC_LENGTHS ? lengths + 1 : VEC_LENGTHS;
    for (uint32_t i = 0; i < w->lengths_n; i++) {
        w->k[i] = w->k_base + w->k_len * i;
        w->once[i] = (w->k1 + 1) / (1 + w->k[i]);
    }
    for (size_t t = 0; t < w->ask.nphrase; t++) {
        // Neither an image that lies nor a source wrongly called dense shall make a NaN.
        double df = (double)(w->df[t] < w->nlive ? w->df[t] : w->nlive);

        w->weight[t] = w->ask.phrases[t].weight * log(1 + (n - df + 0.5) / (df + 0.5));
        most += w->weight[t] * (w->k1 + 1);
    }
    (void)frexp(most, &e); // most < 2^e
    w->step = ldexp(1, e - 50);
    w->magic = ldexp(1.5, e + 2);
}

/* --------------------------------------------------------------------------------------- object */

/* The operators and the filter together. */
static int combine_filter(vec_words *w)
{
    const uint64_t *with = w->a.filter ? w->a.filter : w->a.live;
    size_t words = (size_t)((w->a.nrow + 63) / 64);

    w->filter = w->a.filter;
    if (!w->allow || !words)
        return VEC_OK;
    w->own_filter = vec_alloc_array(words, sizeof *w->own_filter);
    if (!w->own_filter)
        return VEC_NOMEM;
    for (size_t i = 0; i < words; i++)
        w->own_filter[i] = w->allow[i] & with[i];
    w->filter = w->own_filter;
    return VEC_OK;
}

static int prepare(vec_words *w)
{
    uint64_t total = 0;
    int rc = read_query(w);

    if (rc || (rc = read_rows(w, &total)))
        return rc;
    if (w->ask.nphrase && w->a.nsource > SIZE_MAX / w->ask.nphrase)
        return VEC_NOMEM;
    w->refs = vec_alloc_zero(w->a.nsource * w->ask.nphrase, sizeof *w->refs);
    w->made = vec_alloc_zero(w->a.nsource * w->ask.nphrase, sizeof *w->made);
    w->df = vec_alloc_zero(w->ask.nphrase, sizeof *w->df);
    w->weight = vec_alloc_zero(w->ask.nphrase, sizeof *w->weight);
    if (!w->refs || !w->made || !w->df || !w->weight)
        return VEC_NOMEM;
    if ((rc = read_leaves(w)) || (rc = vec_match_ops(w)) || (rc = combine_filter(w)))
        return rc;
    w->nlive = vec_bits_count(w->a.live, w->a.nrow);
    weigh(w, total);
    return VEC_OK;
}

int vec_words_new(const vec_bm25_args *a, vec_words **out)
{
    vec_words *w;
    int rc;

    *out = NULL;
    if (!(a->k1 >= 0 && a->k1 <= 1e9 && a->b >= 0 && a->b <= 1) || (a->nrow && !a->live))
        return VEC_MISUSE;
    w = vec_alloc_zero(1, sizeof *w);
    if (!w)
        return VEC_NOMEM;
    w->a = *a;
    w->parts = vec_alloc_zero(a->nsource, sizeof *w->parts);
    w->dead = vec_alloc_zero(a->nsource, sizeof *w->dead);
    w->lengths = vec_alloc_zero(a->nsource, sizeof *w->lengths);
    rc = w->parts && w->dead && w->lengths ? prepare(w) : VEC_NOMEM;
    if (rc)
        vec_words_free(w);
    else
        *out = w;
    return rc;
}

void vec_words_free(vec_words *w)
{
    if (!w)
        return;
    for (size_t i = 0; w->made && i < w->a.nsource * w->ask.nphrase; i++)
        vec_free(w->made[i]);
    for (size_t i = 0; w->lengths && i < w->a.nsource; i++)
        vec_free(w->lengths[i]);
    vec_free(w->own_words);
    vec_free(w->own_phrases);
    vec_free(w->df);
    vec_free(w->weight);
    vec_free(w->parts);
    vec_free(w->dead);
    vec_free(w->refs);
    vec_free(w->made);
    vec_free(w->lengths);
    vec_free(w->allow);
    vec_free(w->own_filter);
    vec_free(w);
}

size_t vec_words_formula(const vec_words *w, const double **weights, double *k1, double *k_base,
                         double *k_len)
{
    *weights = w->weight;
    *k1 = w->k1;
    *k_base = w->k_base;
    *k_len = w->k_len;
    return w->ask.nphrase;
}

const uint64_t *vec_words_allow(const vec_words *w)
{
    return w->allow;
}

/* ------------------------------------------------------------------------------------ given
 * rows */

/* The ordinal of a row; 0 when the part does not have it. */
static int ordinal(const vec_part *p, uint64_t row, uint32_t *ord)
{
    uint64_t off = row - p->first;
    uint32_t lo = 0, hi = p->nrow;

    if (row < p->first || off > p->span || p->nrow == 0)
        return 0;
    if (!p->rowoff) {
        *ord = (uint32_t)off;
        return 1;
    }
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;

        if (vec_part_off(p, mid) < off)
            lo = mid + 1;
        else
            hi = mid;
    }
    *ord = lo;
    return lo < p->nrow && vec_part_off(p, lo) == off;
}

/* Adds one leaf's parts in one source. */
static int score_leaf(const vec_words *w, size_t source, size_t leaf, const uint64_t *rows,
                      size_t n, double *out)
{
    const vec_part *p = &w->parts[source];
    uint32_t ord, done = 0;
    vec_cursor c;
    int rc = vec_cursor_open(&c, vec_words_ref(w, source, leaf), p->nrow);

    for (size_t i = 0; i < n && rc >= 0; i++) {
        if (!ordinal(p, rows[i], &ord) || !vec_bits_get(w->a.live, rows[i]))
            continue;
        if (ord < done) // rows that do not ascend start over
            rc = vec_cursor_open(&c, vec_words_ref(w, source, leaf), p->nrow);
        done = ord;
        rc = rc < 0 ? rc : vec_cursor_seek(&c, ord);
        if (rc != 1 || c.ord[c.at] != ord)
            continue;
        out[i] += vec_words_part(w, w->weight[leaf], vec_cursor_tf(&c, c.at), vec_part_len(p, ord));
    }
    return rc < 0 ? rc : VEC_OK;
}

int vec_words_score(const vec_words *w, const uint64_t *rows, size_t n, double *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = 0;
    for (size_t s = 0; s < w->a.nsource; s++) {
        for (size_t t = 0; t < w->ask.nphrase; t++) {
            int rc = VEC_OK;

            if (w->weight[t] > 0 && vec_words_ref(w, s, t)->df)
                rc = score_leaf(w, s, t, rows, n, out);
            if (rc)
                return rc;
        }
    }
    return VEC_OK;
}
