/*
 * t_model.h - a store's rows as a plain sorted array, and the comparison of a view with it
 *
 * A t_table is what a commit ought to show. Rows are shared between tables and never change. The
 * answers it expects of searches come from vec_distance and from vec_bm25 over one freshly built
 * index, in exact order and to the last bit (fused scores: to 1e-12).
 *
 *     t_table *t = t_table_new(dim, metric);
 *     t_mrow *r = t_mrow_random(rng, dim, id);
 *     t_table_set(t, r);                       takes r over
 *     t_check_view(view, t, rng, 1);           fails the test at the first difference
 *
 * THREADS  one thread at a time.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef T_MODEL_H
#define T_MODEL_H

#include "t_store.h"

/* A row: what was given, and what the store is to show of it. One allocation. */
typedef struct t_mrow {
    int refs;
    int64_t id;
    st_value given[T_NCOL];
    st_value v[T_NCOL];
    uint8_t *tokens;
    size_t ntokens;
    float norm; /* NaN: no vector */
} t_mrow;

/* Values of all columns by chance: NULLs, empty texts, NULs, long texts, borders of numbers. */
t_mrow *t_mrow_random(t_rng *r, size_t dim, int64_t id);
/* old with the values of other in the columns that changed says. */
t_mrow *t_mrow_merge(const t_mrow *old, const t_mrow *other, const uint8_t *changed, size_t dim);
void t_mrow_unref(t_mrow *r);
st_row t_mrow_row(const t_mrow *r);

typedef struct t_table {
    size_t dim;
    int metric;
    t_mrow **row; /* by id */
    size_t n, cap;
    t_mrow **evicted; /* that can be found, in any order */
    size_t nevicted;
} t_table;

t_table *t_table_new(size_t dim, int metric);
t_table *t_table_copy(const t_table *t);
void t_table_free(t_table *t);
t_mrow *t_table_find(const t_table *t, int64_t id); /* NULL when it is not there */
void t_table_set(t_table *t, t_mrow *r);            /* replaces the row of that id */
void t_table_remove(t_table *t, int64_t id);
void t_table_evict(t_table *t, int64_t id);
t_mrow *t_table_evicted(const t_table *t, int64_t id); /* NULL when it is none of them */
void t_table_forget(t_table *t, int64_t id);           /* an evicted row is found no more */
void t_table_compact(t_table *t);                      /* none is */
/* The same rows and evicted rows, by their values. */
int t_table_same(const t_table *a, const t_table *b);
/* All rows of a view; NULL, with err filled, when it cannot be read. */
t_table *t_table_of(st_view *v, size_t dim, int metric, st_error *err);

/* A comparison on a column by chance, with a constant that some row has, or is near, or none has.
** list has room for 4. */
st_term t_term_random(t_rng *r, const t_table *t, st_value *list);
/* A few words of the vocabulary of t_mrow_random. */
size_t t_query_random(t_rng *r, uint8_t *tokens, size_t room);

/* Compares count, scans, rows by id and values, evicted rows (unless the connection has written
** since); then `searches` times a filter, a vector, a text
** and a fused search. */
void t_check_view(st_view *v, const t_table *t, t_rng *r, int searches);
/* The same of a fresh view. */
void t_check_conn(st_conn *c, const t_table *t, t_rng *r, int searches);

#endif
