/*
 * sql_guard.h - what is watched when a row is written: the rate of its source and what its text
 * says.
 *
 * A source writes rate_<source> rows a minute at most: of the rows with that source that are there,
 * those in the minute that ends at the new row's own timestamp count. So it is a matter of the
 * store, not of a process, rows that come out of order count in their own minute, and an import of
 * old rows is no flood. A row beyond the limit is refused (rate_refuse), or written with an alert.
 *
 * Alerts are events of the kinds `rate` and `injection`. What a refused INSERT would have noted is
 * undone with it; its connection notes it with its next row.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SQL_GUARD_H
#define SQL_GUARD_H

#include "sql.h"

typedef struct sql_guard {
    st_policy policy;
    int on;     /* there is something to watch */
    int source; /* ST_SOURCE_ of the row */
    int64_t
        there; /* rows of its source in its minute before it; counted up to four times the limit */
} sql_guard;

extern const char *const sql_source_names[7]; /* by ST_SOURCE_; [0] is NULL */
int sql_source_of(const st_value *v);         /* ST_SOURCE_ */

/* Before the row is made. */
int sql_guard_look(sql_table *t, sql_guard *g);
/* The row's values, before it is put: an error where it is refused. */
int sql_guard_admit(sql_table *t, sql_guard *g, const st_value *values);
/* It was put, or its content was changed (updated): notes what there is to note. */
int sql_guard_note(sql_table *t, sql_guard *g, int64_t id, const st_value *content, int updated);
/* Has this source written its share in the minute that ends at a time? */
int sql_guard_is_full(sql_table *t, const st_policy *p, int source, double time, int *full);
int sql_guard_note_refused(sql_table *t, const st_policy *p, int source, int64_t n);

#endif
