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

/* A record of a table beside the rows. One allocation. */
typedef struct t_record {
    int refs, side;
    st_value v[ST_SIDE_COLS_MAX];
} t_record;

typedef struct t_table {
    size_t dim;
    int metric;
    t_mrow **row; /* by id */
    size_t n, cap;
    t_mrow **evicted; /* that can be found, in any order */
    size_t nevicted;
    t_record **record[ST_SIDES]; /* in any order */
    size_t nrecord[ST_SIDES];
} t_table;

/* Values by chance. key: of an INTEGER key, or what a TEXT key is made of. */
t_record *t_record_random(t_rng *r, int side, int64_t key);
t_record *t_record_find(const t_table *t, int side, const st_value *key);
void t_record_set(t_table *t, t_record *r); /* replaces the record of that key; takes r over */
void t_record_remove(t_table *t, int side, const st_value *key);
t_record *t_record_copy(const t_record *r);
void t_record_unref(t_record *r);

t_table *t_table_new(size_t dim, int metric);
t_table *t_table_copy(const t_table *t);
void t_table_free(t_table *t);
t_mrow *t_table_find(const t_table *t, int64_t id); /* NULL when it is not there */
void t_table_set(t_table *t, t_mrow *r);            /* replaces the row of that id */
void t_table_remove(t_table *t, int64_t id);
/* With the event of that number that tells of it, for the reason "test" at the time 1. */
void t_table_evict(t_table *t, int64_t id, int64_t seq);
/* What t_table_evict adds. */
t_record *t_record_eviction(const t_mrow *r, int64_t seq);
/* The number of the last event that a connection sees. */
int64_t t_last_event(st_conn *c);
t_mrow *t_table_evicted(const t_table *t, int64_t id); /* NULL when it is none of them */
void t_table_forget(t_table *t, int64_t id);           /* an evicted row is found no more */
void t_table_compact(t_table *t);                      /* none is */
/* A change of some record by chance, in the transaction of c, whose view of itself t is. last: no
** event that is given a number gets one up to that. */
void t_change_records(st_conn *c, t_table *t, t_rng *r, int64_t last);
/* Parts of t_table_same, t_table_of and t_check_view. */
int t_records_same(const t_table *a, const t_table *b);
int t_records_of(st_view *v, t_table *t, st_error *err);
void t_check_records(st_view *v, const t_table *t, int side);
/* Values by chance; out has room for T_LONG_TEXT bytes. */
enum { T_LONG_TEXT = 30000 };
st_value t_text_random(t_rng *r, int type, char *out);
st_value t_number_random(t_rng *r, int type);

/* The same rows, evicted rows and records, by their values. */
int t_table_same(const t_table *a, const t_table *b);
/* All rows of a view; NULL, with err filled, when it cannot be read. */
t_table *t_table_of(st_view *v, size_t dim, int metric, st_error *err);

/* A comparison on a column by chance, with a constant that some row has, or is near, or none has.
** list has room for 4. */
st_term t_term_random(t_rng *r, const t_table *t, st_value *list);
/* A few words of the vocabulary of t_mrow_random. */
size_t t_query_random(t_rng *r, uint8_t *tokens, size_t room);

/* Compares count, scans, rows by id and values, evicted rows and records (unless the connection has
** written since); then `searches` times a filter, a vector, a text
** and a fused search. */
void t_check_view(st_view *v, const t_table *t, t_rng *r, int searches);
/* The same of a fresh view. */
void t_check_conn(st_conn *c, const t_table *t, t_rng *r, int searches);

#endif
