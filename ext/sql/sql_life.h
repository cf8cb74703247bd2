/*
 * sql_life.h - how rows age, for the files of ext/sql that write it back: sql_life.c (functions),
 * sql_pass.c (a pass of consolidation), sql_rate.c (importance and near duplicates of one row).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SQL_LIFE_H
#define SQL_LIFE_H

#include "mind.h"
#include "sql.h"

/* The row that a vector is nearest to. */
typedef struct sql_nearest {
    int found;
    uint64_t row;
    int64_t id;
    double distance; /* cosine, whatever the store's metric; 1 where one of the two has no length */
} sql_nearest;

/* Among the rows of v with an id below `below` (NULL: all), superseded ones included; of rows at
 * the same distance the one with the least id. */
int sql_nearest_row(sql_table *t, st_view *v, const float *vector, const int64_t *below,
                    sql_nearest *out);
/* 1 - cosine of n values; 1 where one of the two has no length. */
double sql_cosine_distance(const float *a, const float *b, size_t n);
/* The cosine distance of two rows; 1 where one has no vector. */
int sql_rows_distance(sql_table *t, st_view *v, uint64_t a, uint64_t b, double *out);
#define SQL_UNRATED 0.5 /* the default of the column importance: nobody has rated the row */
/* What a row is worth; never SQL_UNRATED. text NULL: none. source: ST_SOURCE_. surprise NaN: not
 * known. */
double sql_rate(const st_life *life, const void *text, size_t n, int source, double surprise);

/* One pass of consolidation at a time, in Unix seconds. */
typedef struct sql_pass {
    double now;
    int dry;           /* changes nothing; list then says what would be done */
    sqlite3_str *list; /* NULL: none */
    size_t promoted, evicted, merged;
    size_t held[MIND_TIERS]; /* rows of a tier afterwards */
} sql_pass;
/* Inside the table's xUpdate (sql_inside), or anywhere where dry is set. ctx is a sql_pass. */
int sql_pass_run(void *ctx, sql_table *t);
void sql_pass_json(const sql_pass *p, sqlite3_str *out);
/* One real option, inside xUpdate. */
int sql_set_real(sql_table *t, const char *name, double value);

#endif
