/*
 * sql_term.c - a constraint's value becomes a term that the store compares as SQLite would.
 *
 * SQLite applies the column's affinity to the other side of a comparison, but hands xFilter the
 * value as it stood. So:
 *
 *   column of    number             text                                blob
 *   numbers      as it is           a number if it reads as one, else   greater than any number
 *                                   greater than any number
 *   text         see below          as it is                            greater than any text
 *   blobs        less than a blob   less than a blob                    as it is
 *
 * A number beside a text column: a literal or a bound value becomes text; a column of numbers would
 * instead turn the stored text into a number. The value alone tells only of a bound one
 * (sqlite3_value_frombind), so any other is left to SQLite, which rechecks text anyway.
 *
 * LIKE, GLOB and h5mem_has_tag on a text with a text go along as they are, the first two only where
 * they are SQLite's own. SQLite rechecks them.
 *
 * Times against text: `timestamp > '2026-11-01'` would silently compare a number with a text; it is
 * an error that says so.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "sql.h"

int sql_terms_new(size_t n, sql_terms *out)
{
    memset(out, 0, offsetof(sql_terms, few));
    out->term = n <= SQL_TERMS_FEW ? out->few : sqlite3_malloc64(n * sizeof *out->term);
    return out->term ? SQLITE_OK : SQLITE_NOMEM;
}

void sql_terms_free(sql_terms *t)
{
    for (size_t i = 0; i < t->nkept; i++) {
        sqlite3_value_free(t->kept[i]);
    }
    for (size_t i = 0; i < t->nlist; i++) {
        sqlite3_free(t->lists[i]);
    }
    if (t->kept || t->lists) {
        sqlite3_free(t->kept);
        sqlite3_free(t->lists);
    }
    if (t->term != t->few) {
        sqlite3_free(t->term);
    }
    memset(t, 0, offsetof(sql_terms, few));
}

int sql_column_is_time(int col)
{
    return col == ST_COL_TIMESTAMP || col == ST_COL_LAST_ACCESS || col == ST_COL_VALID_FROM ||
           col == ST_COL_VALID_TO;
}

static int fail_time(sql_table *t, int col, sqlite3_value *v)
{
    char show[SQL_SHOW];
    return sql_fail(t, SQLITE_ERROR,
                    "%s is compared with the text %s; use a number or unixepoch(%s)",
                    sql_column_name(t, col), sql_show(v, show), show);
}

// Text that reads as a number becomes one, as beside a column of numbers. Only for values that
// SQLite handed over: a copy has no connection, without which newer versions crash here.
static void affinity(int type, sqlite3_value *v)
{
    if (type == ST_INT || type == ST_REAL) {
        (void)sqlite3_value_numeric_type(v);
    }
}

// How the value stands to all values of the column.
enum { COMPARABLE, ABOVE, BELOW, NO_VALUE, UNKNOWN };

// The value has gone through `affinity` before, if the column is one of numbers.
static int place(int type, sqlite3_value *v, st_value *out)
{
    int vt = sqlite3_value_type(v);
    memset(out, 0, sizeof *out);
    if (vt == SQLITE_NULL) {
        return NO_VALUE;
    }
    if (type == ST_INT || type == ST_REAL) {
        if (vt == SQLITE_INTEGER) {
            out->type = ST_INT;
            out->i = sqlite3_value_int64(v);
        } else if (vt == SQLITE_FLOAT) {
            out->type = ST_REAL;
            out->r = sqlite3_value_double(v);
        }
        return vt == SQLITE_INTEGER || vt == SQLITE_FLOAT ? COMPARABLE : ABOVE;
    }
    if (type == ST_TEXT) {
        if (vt == SQLITE_BLOB) {
            return ABOVE;
        }
        if (vt != SQLITE_TEXT && !sqlite3_value_frombind(v)) {
            return UNKNOWN;
        }
        out->type = ST_TEXT;
        out->p = sqlite3_value_text(v);
    } else {
        if (vt != SQLITE_BLOB) {
            return BELOW;
        }
        out->type = ST_BLOB;
        out->p = sqlite3_value_blob(v);
    }
    out->n = (size_t)sqlite3_value_bytes(v);
    return COMPARABLE;
}

/* ------------------------------------------------------------------------------------------- IN */

// Members live only until the next is asked for, so each is copied.
static int keep(sql_terms *terms, sqlite3_value *v, sqlite3_value **out)
{
    if ((terms->nkept & (terms->nkept - 1)) == 0) {
        size_t room = terms->nkept ? terms->nkept * 2 : 1;
        sqlite3_value **more = sqlite3_realloc64(terms->kept, room * sizeof *more);
        if (!more) {
            return SQLITE_NOMEM;
        }
        terms->kept = more;
    }
    *out = sqlite3_value_dup(v);
    if (!*out) {
        return SQLITE_NOMEM;
    }
    terms->kept[terms->nkept++] = *out;
    return SQLITE_OK;
}

/* Takes the list over, also where there is no memory for it. */
static int add_list(sql_terms *terms, st_value *values)
{
    st_value **more = sqlite3_realloc64(terms->lists, (terms->nlist + 1) * sizeof *more);
    if (!more) {
        sqlite3_free(values);
        return SQLITE_NOMEM;
    }
    terms->lists = more;
    terms->lists[terms->nlist++] = values;
    return SQLITE_OK;
}

static int add_in(sql_table *t, sql_terms *terms, int col, sqlite3_value *list)
{
    sqlite3_value *v, *copy;
    size_t first = terms->nkept, n = 0;
    int rc, type = sql_column_type(t, col);
    for (rc = sqlite3_vtab_in_first(list, &v); rc == SQLITE_OK && v;
         rc = sqlite3_vtab_in_next(list, &v)) {
        if (sql_column_is_time(col) && sqlite3_value_type(v) == SQLITE_TEXT) {
            return fail_time(t, col, v);
        }
        affinity(type, v);
        rc = keep(terms, v, &copy);
        if (rc != SQLITE_OK) {
            return rc;
        }
    }
    if (rc != SQLITE_DONE && rc != SQLITE_OK) {
        return rc;
    }
    st_value *values = sqlite3_malloc64((terms->nkept - first + 1) * sizeof *values);
    if (!values) {
        return SQLITE_NOMEM;
    }
    if (add_list(terms, values) != SQLITE_OK) {
        return SQLITE_NOMEM;
    }
    for (size_t i = first; i < terms->nkept; i++) {
        int where = place(type, terms->kept[i], &values[n]);
        if (where == UNKNOWN) {
            return SQLITE_OK; // one member that SQLite must compare itself: the whole list is its
        }
        n += where == COMPARABLE; // what lies outside the column's values equals none of them
    }
    st_term *term = &terms->term[terms->n++];
    memset(term, 0, sizeof *term);
    term->col = col;
    term->op = n ? ST_IN : ST_NEVER;
    term->list = values;
    term->nlist = n;
    return SQLITE_OK;
}

/* ---------------------------------------------------------------------------------- comparisons */

static int store_op(int op)
{
    switch (op) {
    case SQLITE_INDEX_CONSTRAINT_NE:
        return ST_NE;
    case SQLITE_INDEX_CONSTRAINT_LT:
        return ST_LT;
    case SQLITE_INDEX_CONSTRAINT_LE:
        return ST_LE;
    case SQLITE_INDEX_CONSTRAINT_GT:
        return ST_GT;
    case SQLITE_INDEX_CONSTRAINT_GE:
        return ST_GE;
    case SQLITE_INDEX_CONSTRAINT_ISNULL:
        return ST_ISNULL;
    case SQLITE_INDEX_CONSTRAINT_ISNOTNULL:
        return ST_NOTNULL;
    default:
        return ST_EQ;
    }
}

int sql_terms_add(sql_table *t, sql_terms *terms, const sql_arg *a, sqlite3_value *v)
{
    if (a->op == SQL_OP_IN) {
        return add_in(t, terms, a->col, v);
    }
    if (sql_column_is_time(a->col) && sqlite3_value_type(v) == SQLITE_TEXT) {
        return fail_time(t, a->col, v);
    }
    affinity(sql_column_type(t, a->col), v);
    st_term *term = &terms->term[terms->n];
    memset(term, 0, sizeof *term);
    term->col = a->col;
    term->op = store_op(a->op);
    if (term->op != ST_ISNULL && term->op != ST_NOTNULL) {
        int where = place(sql_column_type(t, a->col), v, &term->value);
        int less = term->op == ST_LT || term->op == ST_LE,
            more = term->op == ST_GT || term->op == ST_GE;
        if (where == UNKNOWN) {
            return SQLITE_OK;
        }
        if (where == NO_VALUE) {
            term->op = a->op == SQLITE_INDEX_CONSTRAINT_IS ? ST_ISNULL : ST_NEVER;
        } else if (where != COMPARABLE) {
            int holds = term->op == ST_NE || (where == ABOVE ? less : more);
            term->op = holds ? ST_NOTNULL : ST_NEVER;
        }
    }
    terms->n++;
    return SQLITE_OK;
}

/* ------------------------------------------------------------------------------------- patterns */

enum { PATTERN_MAX = 1000 }; // a longer one is left to SQLite, which may have a limit

int sql_op_is_pattern(int op)
{
    return op == SQLITE_INDEX_CONSTRAINT_LIKE || op == SQLITE_INDEX_CONSTRAINT_GLOB ||
           op == SQL_OP_TAG;
}

// PRAGMA case_sensitive_like registers functions over the built-in ones, too.
static int ask_patterns(sql_db *d, int *own)
{
    static const char sql[] = "SELECT count(*) FROM pragma_function_list WHERE"
                              " name IN ('like', 'glob') AND NOT builtin";
    int rc = SQLITE_OK;
    if (*own >= 0) {
        return SQLITE_OK;
    }
    if (!d->patterns) {
        rc = sqlite3_prepare_v3(d->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &d->patterns, NULL);
    }
    *own = 1; // also where a host cannot say
    if (rc == SQLITE_OK && sqlite3_step(d->patterns) == SQLITE_ROW) {
        *own = sqlite3_column_int(d->patterns, 0) > 0;
    }
    if (rc == SQLITE_OK) {
        rc = sqlite3_reset(d->patterns);
    }
    return rc == SQLITE_NOMEM ? rc : SQLITE_OK;
}

int sql_terms_add_pattern(sql_table *t, sql_terms *terms, const sql_arg *a, sqlite3_value *v,
                          int *own)
{
    int rc = a->op == SQL_OP_TAG ? SQLITE_OK : ask_patterns(t->db, own);
    if (rc != SQLITE_OK || sqlite3_value_type(v) != SQLITE_TEXT ||
        (a->op != SQL_OP_TAG && (*own || sqlite3_value_bytes(v) > PATTERN_MAX))) {
        return rc;
    }
    st_term *term = &terms->term[terms->n];
    memset(term, 0, sizeof *term);
    term->col = a->col;
    term->op = a->op == SQL_OP_TAG                     ? ST_TAG
               : a->op == SQLITE_INDEX_CONSTRAINT_GLOB ? ST_GLOB
                                                       : ST_LIKE;
    term->value.type = ST_TEXT;
    term->value.p = sqlite3_value_text(v);
    term->value.n = (size_t)sqlite3_value_bytes(v);
    if (!term->value.p) {
        return SQLITE_NOMEM;
    }
    terms->n++;
    return SQLITE_OK;
}
