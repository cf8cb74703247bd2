/*
 * t_corpus.h - random texts, and BM25 over them computed the plain way
 *
 * A corpus is a list of rows with ascending numbers, some of them dead, each a list of words. Words
 * are numbers; t_word gives their bytes, among them the empty word, the longest and binary ones.
 * The model knows no index: it counts.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef T_CORPUS_H
#define T_CORPUS_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "t_rng.h"
#include "vec.h"

enum { T_DOC_WORDS = 48, T_QUERY_WORDS = 12 };

typedef struct t_doc {
    uint64_t row;
    int live;
    int n;
    int word[T_DOC_WORDS];
    int colocated[T_DOC_WORDS];
} t_doc;

typedef struct t_corpus {
    int n;
    uint64_t nrow; /* rows are below it */
    t_doc *doc;
    uint64_t *live; /* bitmap of nrow */
} t_corpus;

/* The bytes of a word; at most VEC_TOKEN_MAX. */
static inline uint32_t t_word(int i, char *out)
{
    switch (i) {
    case 3:
        return 0;
    case 5:
        memset(out, 'x', VEC_TOKEN_MAX);
        return VEC_TOKEN_MAX;
    case 7:
        memcpy(out, "\0\xff\0", 3);
        return 3;
    default:
        return (uint32_t)sprintf(out, "w%d", i);
    }
}

/* The token stream of n words; colocated NULL: none is. The caller frees it. */
static inline uint8_t *t_stream(const int *word, const int *colocated, int n, size_t *bytes)
{
    uint8_t *out = malloc((size_t)n * (VEC_TOKEN_MAX + 5) + 1);
    char s[VEC_TOKEN_MAX];

    *bytes = 0;
    for (int i = 0; out && i < n; i++)
        *bytes += vec_token_put(out + *bytes, s, t_word(word[i], s), colocated ? colocated[i] : 0);
    return out;
}

/* Mostly small numbers: about half of the words are among the first ten. */
static inline int t_any_word(t_rng *r, int nword)
{
    double u = t_rng_unit(r);

    return (int)(u * u * u * nword);
}

static inline t_corpus t_corpus_new(t_rng *r, int n, int nword, int gap_max, double dead)
{
    t_corpus c = {.n = n, .doc = calloc((size_t)n + 1, sizeof *c.doc)};
    uint64_t row = t_rng_below(r, (uint64_t)gap_max);

    for (int i = 0; i < n; i++) {
        t_doc *d = &c.doc[i];

        d->row = row;
        row += 1 + t_rng_below(r, (uint64_t)gap_max);
        d->live = t_rng_unit(r) >= dead;
        d->n = (int)t_rng_below(r, t_rng_below(r, 8) ? 12 : T_DOC_WORDS + 1);
        for (int k = 0; k < d->n; k++) {
            d->word[k] = t_any_word(r, nword);
            d->colocated[k] = t_rng_below(r, 10) == 0 &&
                              d->word[k] != 3; // that would end the field
        }
    }
    c.nrow = row;
    c.live = calloc((size_t)row / 64 + 1, sizeof *c.live);
    for (int i = 0; i < n; i++)
        if (c.doc[i].live)
            c.live[c.doc[i].row >> 6] |= (uint64_t)1 << (c.doc[i].row & 63);
    return c;
}

static inline void t_corpus_free(t_corpus *c)
{
    free(c->doc);
    free(c->live);
}

/* Positions of a row. */
static inline int t_doc_length(const t_doc *d)
{
    int len = 0;

    for (int i = 0; i < d->n; i++)
        len += !d->colocated[i] || i == 0;
    return len;
}

/* Positions that hold the word. */
static inline int t_doc_count(const t_doc *d, int word)
{
    int tf = 0, pos = -1, last = -1;

    for (int i = 0; i < d->n; i++) {
        pos += !d->colocated[i] || i == 0;
        if (d->word[i] != word || last == pos)
            continue;
        tf++;
        last = pos;
    }
    return tf;
}

/* Adds row i of the corpus to an index under its number less offset. */
static inline int t_corpus_add(const t_corpus *c, int i, uint64_t offset, vec_text *t)
{
    size_t n;
    uint8_t *s = t_stream(c->doc[i].word, c->doc[i].colocated, c->doc[i].n, &n);
    int rc = vec_text_add(t, c->doc[i].row - offset, s, n);

    free(s);
    return rc;
}

/* score[i] = that of row i for a query, by the formula in vec.h; dead rows get one, too. */
static inline void t_bm25(const t_corpus *c, const int *query, int nquery, double k1, double b,
                          double *score)
{
    double n = 0, total = 0;

    for (int i = 0; i < c->n; i++) {
        score[i] = 0;
        n += c->doc[i].live;
        total += c->doc[i].live ? t_doc_length(&c->doc[i]) : 0;
    }
    for (int q = 0; q < nquery; q++) {
        double df = 0;
        int again = 0;

        for (int p = 0; p < q; p++)
            again |= query[p] == query[q];
        for (int i = 0; i < c->n && !again; i++)
            df += c->doc[i].live && t_doc_count(&c->doc[i], query[q]) > 0;
        for (int i = 0; i < c->n && !again; i++) {
            double tf = t_doc_count(&c->doc[i], query[q]), dl = t_doc_length(&c->doc[i]);

            if (tf > 0)
                score[i] += log(1 + (n - df + 0.5) / (df + 0.5)) * tf * (k1 + 1) /
                            (tf + k1 * (1 - b + b * dl / (total / n)));
        }
    }
}

#endif
