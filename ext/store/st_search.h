/*
 * st_search.h - the inside of a running query.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ST_SEARCH_H
#define ST_SEARCH_H

#include "st_blend.h"
#include "st_filter.h"
#include "st_pick.h"
#include "st_window.h"
#include "vec.h"

enum {
    ST_MODE_BITS,
    ST_MODE_LIST,
    ST_MODE_NEAR,
    ST_MODE_PROBE,
    ST_MODE_FUSED,
    ST_MODE_RANKED,
    ST_MODE_WINDOW,
    ST_MODE_NONE
};

struct st_cursor {
    st_view *v;
    int mode, order, metric, has_text, hybrid;
    int threads;
    int64_t k;      /* -1: no cap */
    uint64_t given; /* rows handed out */
    st_terms terms;
    uint64_t hint; /* rows that will likely be read, 0: unknown */
    float *query;  /* own copy, or NULL */
    float query_norm;
    uint8_t *tokens; /* own copy */
    size_t ntokens;
    const vec_ask *ask; /* the caller's, or NULL: the tokens */
    int (*within)(void *ctx, double timestamp);
    void *within_ctx;
    uint64_t *bits;
    uint64_t *list; /* LIST: rows */
    uint64_t nlist, pos;
    size_t nwindow;  /* terms that it answers: behind the others */
    uint64_t looked; /* rows that the other terms were asked about */
    vec_plane_extent *plane;
    uint8_t *unpacked; /* planes that another program has compressed */
    size_t nplane;
    vec_extent *exact;
    size_t nexact;
    vec_near *near;
    vec_probe *probe;
    vec_rank *rank;
    size_t first; /* rank holds so many of the best hits; 0: all there are */
    vec_rrf *rrf;
    float *wide;       /* vectors on the way to dist, where they are not stored as floats */
    double *dist;      /* by row, NaN without; where all distances were needed */
    double *text_rank; /* by row, NaN without; hybrid */
    double *weights;   /* of the text part's phrases */
    size_t nweight;
    double k1, k_base, k_len; /* see vec_words_formula */
    st_error failed;          /* what a callback ran into */
    uint64_t row;
    double distance, rank_value, score;
    int by;
    int blends;  /* the score is a blend's */
    int picks;   /* rows are given by st_pick_next, */
    int drained; /* or were, and lie in rank */
    st_blend blend;
    st_pick pick;
    st_window window; /* WINDOW; the last, since it is large */
};

/* st_scan.c: rows by id or in order of time, where that is what is asked for; else *done is 0, */
int st_scan_start(st_cursor *c, int *done, st_error *err);
/* and those of c->bits are given in the order asked for. */
int st_scan_filtered(st_cursor *c, st_error *err);
int st_scan_step(st_cursor *c, st_error *err); /* WINDOW: as st_search_step */
/* Do the rows' ids ascend with their positions? Then no order has to be made. */
int st_ids_ascend(const st_cursor *c);

/* The text part, with all that it is made of. The store's lock is held while it is open: nothing
 * that takes it may be called, and another text part cannot be opened. */
typedef struct st_words {
    vec_words *words;
    vec_source *src;
    vec_text *mine, *overlay;
    pthread_mutex_t *held;
} st_words;

/* Over the rows of c->bits. w is closed after a failure. */
int st_words_open(st_cursor *c, st_words *w, st_error *err);
void st_words_close(st_words *w);
/* vec_words_all, with ids; by_row: ids ascend with rows, which then stand for them. */
int st_words_hits(st_cursor *c, st_words *w, int by_row, vec_hit **out, size_t *n, st_error *err);
/* Opens, gives the k best hits, or, where k is more than a page or the worst come first, all, and
 * closes. c->first = k where there may be more. */
enum { ST_WORDS_PAGE = 24, ST_WORDS_PAGES = 256 };
int st_words_page(st_cursor *c, uint64_t k, int by_row, vec_hit **out, size_t *n, st_error *err);
/* All hits. Where the query's operators are meant for both parts, they join the filter.
 * c->blend.ideal becomes what a full match is worth. */
int st_words_all(st_cursor *c, const st_query *q, int by_row, vec_hit **out, size_t *n,
                 st_error *err);
/* The next row of the cursor's own ranking, before terms on results and k: 1, 0, or negative. */
int st_search_step(st_cursor *c, st_error *err);
/* All bits set is one of the numbers that are none, and memset is quicker than a loop. */
static inline void st_fill_nan(double *x, uint64_t n)
{
    memset(x, 0xff, (size_t)n * sizeof *x);
}
int st_search_stop(void *cursor); /* the host says stop */
/* st_near.c: the vector part alone, best first; c->exact from the rows that are not in the base; a
 * row's id, as vec asks for it. */
int st_search_near(st_cursor *c, const st_query *q, st_error *err);
int st_search_slots(st_cursor *c, st_error *err);
int st_search_planes(st_cursor *c, st_error *err); /* c->plane of the base, once */
/* st_search.c: c->dist, exactly, of the rows of bits, NaN elsewhere */
int st_search_distances(st_cursor *c, const uint64_t *bits, st_error *err);
int64_t st_search_id(void *cursor, uint64_t row);
double st_vector_score(int metric, double distance); /* of a vector alone */

#endif
