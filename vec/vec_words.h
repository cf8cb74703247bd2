/*
 * vec_words.h - the inside of a prepared text query: what the files that score share
 *
 * A leaf is a phrase of the query. In each source it has a list of postings: the stored one where
 * the phrase is a single word of a single field, else one that matching makes (vec_match.c). From
 * there on nobody needs to know which.
 *
 * A score is a sum of one part a leaf, and each part is rounded to a multiple of a step so small
 * that no sum of them needs more than the 53 bits of a double. So sums are exact, and the same in
 * whatever order they are made: skipping rows that cannot reach a result and adding their words in
 * any order gives the bits of the exhaustive search.
 *
 * OWNERSHIP  a vec_words owns all it points to but the arguments and what they point to
 * THREADS    one at a time
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef VEC_WORDS_H
#define VEC_WORDS_H

#include "vec_bits.h"
#include "vec_run.h"

#define VEC_LENGTHS 1024u /* lengths below this have their factors in a table */

struct vec_words {
    vec_bm25_args a;
    vec_ask ask;         /* a copy of the arguments', or what the token stream says */
    vec_word *own_words; /* behind ask, where it was made here */
    vec_phrase *own_phrases;
    uint64_t *df;           /* live rows that have it, one a phrase */
    double *weight;         /* one a phrase; 0: not scored */
    vec_part *parts;        /* one a source; row numbers of the whole */
    uint64_t *dead;         /* dead rows of each source; 0 = stored counts are exact */
    vec_ref *refs;          /* one a phrase, for each source */
    vec_chunk **made;       /* postings that matching made, likewise; NULL: none */
    uint8_t **lengths;      /* of a source whose fields count together; NULL: as stored */
    uint64_t *allow;        /* rows that the operators allow; NULL: all */
    const uint64_t *filter; /* rows that may be returned; NULL: all live ones */
    uint64_t *own_filter;
    uint64_t nlive;
    int all_fields; /* lengths are those of all fields */
    double k1;
    double k_base; /* K = k_base + k_len * dl */
    double k_len;
    double magic;             /* adding and taking it off rounds to the step */
    double step;              /* the smallest part */
    double once[VEC_LENGTHS]; /* (k1 + 1) / (1 + K), by length */
    double k[VEC_LENGTHS];    /* K, by length */
    uint32_t lengths_n;       /* lengths below this are in the two tables */
};

static inline vec_ref *vec_words_ref(const vec_words *w, size_t source, size_t leaf)
{
    return &w->refs[source * w->ask.nphrase + leaf];
}

/* The part of a leaf with this weight in a row that holds it tf times and has length dl. */
static inline double vec_words_part(const vec_words *w, double weight, uint32_t tf, uint32_t dl)
{
    double k = dl < w->lengths_n ? w->k[dl] : w->k_base + w->k_len * dl;
    double x = weight * (tf * (w->k1 + 1) / (tf + k));

    x = (x + w->magic) - w->magic;
    return x > w->step ? x : w->step;
}

/* The same for tf = 1, dl < w->lengths_n. */
static inline double vec_words_part1(const vec_words *w, double weight, uint32_t dl)
{
    double x = weight * w->once[dl];

    x = (x + w->magic) - w->magic;
    return x > w->step ? x : w->step;
}

static inline int vec_words_stop(const vec_words *w)
{
    return w->a.stop && w->a.stop(w->a.stop_ctx);
}

/* vec_match.c: postings of every phrase in source i; w->refs and w->made. */
int vec_match_source(vec_words *w, size_t i);
/* Evaluates the operators into w->allow, when there are any. */
int vec_match_ops(vec_words *w);

#endif
