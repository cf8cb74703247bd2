/*
 * st_filter.h - comparisons of a query as a bitmap of rows.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ST_FILTER_H
#define ST_FILTER_H

#include "st_store.h"

/* An owned copy of a query's terms: values and lists point into mem. IN lists of text and numbers
** are sorted. */
enum { ST_TERMS_FEW = 3 };
typedef struct st_terms {
    st_term *term;
    size_t n;
    uint8_t *mem;
    st_term few[ST_TERMS_FEW]; /* term, where they fit: so it cannot be moved */
} st_terms;

int st_terms_copy(const st_term *terms, size_t n, st_terms *out, st_error *err);
void st_terms_free(st_terms *t);

/* Does a value satisfy a term? NULL satisfies only ISNULL. */
int st_term_holds(const st_term *t, const st_value *v);

/* Clears the bits of rows that do not satisfy the term (a real column). */
int st_filter_term(st_view *v, const st_term *t, uint64_t *bits, st_error *err);
/* The same for rows given one by one. 1, 0, or negative. */
int st_filter_row(st_view *v, const st_terms *t, uint64_t row, st_error *err);

/* A term on a REAL column as a range of its values, lo > hi where none holds; 0: it is none. */
int st_time_range(const st_term *t, double *lo, double *hi);
/* Keeps rows that are valid: at a time, or, without one, not superseded. */
int st_filter_valid(st_view *v, int has_as_of, double as_of, uint64_t *bits, st_error *err);

static inline int st_is_result_col(int col)
{
    return col >= ST_COL_DISTANCE;
}

#endif
