/*
 * t_st_filter.c - every comparison on every column against a naive one
 *
 * The rows lie in the file (chunks full of borders, and chunks of nothing but defaults, which are
 * not stored), in the file with newer values in the log, in the log, and in the open transaction.
 *
 * SPDX-License-Identifier: MIT
 */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "st_filter.h"
#include "t_model.h"
#include "vec.h"

enum {
    FIRST = 260,
    DEFAULTS = 280,
    LAST = 40,
    ROWS = FIRST + DEFAULTS + LAST,
    LOG = 20,
    MINE = 20
};

static t_dir d;
static t_db db;
static t_host h;
static st_conn *c;
static st_view *v;
static t_table *t;

static const int64_t ints[] = {0,
                               1,
                               -1,
                               2,
                               7,
                               ((int64_t)1 << 53) - 1,
                               (int64_t)1 << 53,
                               ((int64_t)1 << 53) + 1,
                               ((int64_t)1 << 53) + 2,
                               -((int64_t)1 << 53),
                               -((int64_t)1 << 53) - 1,
                               -((int64_t)1 << 53) - 2,
                               INT64_MAX,
                               INT64_MAX - 1,
                               INT64_MAX - 512,
                               INT64_MAX - 1023,
                               INT64_MIN,
                               INT64_MIN + 1,
                               INT64_MIN + 1024};
static const double reals[] = {0.0,
                               -0.0,
                               0.5,
                               -0.5,
                               1.0,
                               2.0,
                               6.999999999999999,
                               7.000000000000001,
                               DBL_MIN,
                               -DBL_MIN,
                               4.9406564584124654e-324,
                               -4.9406564584124654e-324,
                               DBL_MAX,
                               -DBL_MAX,
                               INFINITY,
                               -INFINITY,
                               9007199254740991.0,
                               9007199254740992.0,
                               9007199254740994.0,
                               -9007199254740992.0,
                               -9007199254740994.0,
                               8999999999999998976.0,
                               9000000000000000000.0,
                               9223372036854774784.0,
                               9223372036854775808.0,
                               -9223372036854775808.0,
                               -9223372036854777856.0,
                               1e300,
                               -1e300};
enum { INTS = sizeof ints / sizeof *ints, REALS = sizeof reals / sizeof *reals };

static int is_number(int col)
{
    return col == ST_COL_ID || col == ST_COL_TIMESTAMP ||
           (col >= ST_COL_IMPORTANCE && col <= ST_COL_PINNED) || col == T_COL_PRIORITY ||
           col == T_COL_RATIO;
}

/* A row whose number columns hold borders wherever they may. */
static t_mrow *border_row(t_rng *r, int64_t id)
{
    t_mrow *random = t_mrow_random(r, T_DIM, id), *other = t_mrow_random(r, T_DIM, id), *row;
    uint8_t changed[T_NCOL] = {0};
    static const int any_int[] = {ST_COL_SUPERSEDED_BY, T_COL_PRIORITY};
    static const int any_real[] = {ST_COL_TIMESTAMP, ST_COL_LAST_ACCESS, ST_COL_VALID_FROM,
                                   ST_COL_VALID_TO, T_COL_RATIO};
    for (size_t i = 0; i < 2; i++) {
        int64_t x = ints[t_rng_below(r, INTS)];
        changed[any_int[i]] = x != INT64_MIN && t_rng_below(r, 5) != 0;
        other->given[any_int[i]] = t_int(x);
    }
    for (size_t i = 0; i < 5; i++) {
        double x = reals[t_rng_below(r, REALS)];
        changed[any_real[i]] = (i || isfinite(x)) && t_rng_below(r, 5) != 0;
        other->given[any_real[i]] = t_real(x);
    }
    row = t_mrow_merge(random, other, changed, T_DIM);
    t_mrow_unref(random);
    t_mrow_unref(other);
    return row;
}

static void put(t_mrow *m)
{
    st_row row = t_mrow_row(m);
    st_error err = {0, ""};
    int64_t id;
    t_ok(&err, st_put(c, &row, &id, &err));
    t_table_set(t, m);
}

/* A row of nothing but defaults, with an id and a time. */
static t_mrow *default_row(int64_t id)
{
    t_mrow *some, *all_null;
    t_rng r = {9};
    uint8_t changed[T_NCOL];
    memset(changed, 1, sizeof changed);
    some = t_mrow_random(&r, T_DIM, id);
    for (int col = 1; col < T_NCOL; col++)
        some->given[col] = col == ST_COL_TIMESTAMP ? t_int(0) : t_null();
    all_null = t_mrow_merge(some, some, changed, T_DIM);
    t_mrow_unref(some);
    return all_null;
}

/* New small values for a row of the file. */
static void patch(t_rng *r, int64_t id)
{
    t_mrow *other = border_row(r, id), *merged;
    uint8_t changed[T_NCOL] = {0};
    st_error err = {0, ""};
    for (int col = 0; col < T_NCOL; col++)
        changed[col] = !st_column_heavy(c, col) && t_rng_below(r, 2);
    merged = t_mrow_merge(t_table_find(t, id), other, changed, T_DIM);
    st_row row = {other->given, NULL, 0};
    t_ok(&err, st_update(c, id, &row, changed, &err));
    t_table_set(t, merged);
    t_mrow_unref(other);
}

static int make(void **state)
{
    t_rng r = t_rng_start(1);
    st_error err = {0, ""};
    const t_spec spec = {T_DIM, NULL, "100000000", "off", NULL};
    (void)state;
    d = t_dir_new();
    db = t_db_new(1);
    t_host_init(&h, &db);
    c = t_open_spec(&d, &h, &spec);
    t = t_table_new(T_DIM, 0);
    t_begin(c, &h);
    for (int64_t i = 0; i < ROWS; i++)
        put(i < FIRST || i >= FIRST + DEFAULTS ? border_row(&r, i - 50) : default_row(i - 50));
    t_commit(c, &h);
    t_flush(c);
    t_begin(c, &h);
    for (int64_t i = 0; i < 60; i++)
        patch(&r, (int64_t)t_rng_below(&r, ROWS) - 50);
    for (int64_t i = 0; i < LOG; i++)
        put(border_row(&r, i < INTS ? ints[i] - (ints[i] >= -50 && ints[i] < 1000 ? 10000 : 0)
                                    : 5000 + i));
    t_commit(c, &h);
    t_begin(c, &h);
    for (int64_t i = 0; i < 20; i++)
        patch(&r, (int64_t)t_rng_below(&r, ROWS) - 50);
    for (int64_t i = 0; i < MINE; i++)
        put(border_row(&r, 7000 + i));
    for (int64_t i = 0; i < 10; i++) {
        t_delete(c, i * 3);
        t_table_remove(t, i * 3);
    }
    t_ok(&err, st_view_open(c, &v, &err));
    // Chunks of nothing but defaults are not stored, the others are.
    const st_image *im = v->f->gen->image;
    const st_colimg *col = &im->col[st_phys_small(im->schema, ST_SMALL_USER)];
    assert_int_equal(col->chunk_rows, 128);
    assert_true(col->chunk[0].addr != H5_UNDEF && col->chunk[3].addr == H5_UNDEF);
    return 0;
}

static int drop(void **state)
{
    (void)state;
    st_view_close(v);
    t_rollback(c, &h);
    st_close(c);
    t_table_free(t);
    t_dir_remove(&d);
    return 0;
}

/* The rows that a term leaves, by both. */
static void compare(const st_term *term, const char *what)
{
    st_query q = {.terms = term, .nterm = 1, .order = ST_ORDER_ID, .k = -1};
    st_cursor *cur;
    st_error err = {0, ""};
    size_t i = 0;
    int rc;
    t_ok(&err, st_search(v, &q, &cur, &err));
    while ((rc = st_cursor_next(cur, &err)) > 0) {
        st_value id;
        t_ok(&err, st_view_value(v, st_cursor_row(cur), ST_COL_ID, &id, &err));
        for (; i < t->n && t->row[i]->id < id.i; i++)
            if (t_holds(term, &t->row[i]->v[term->col]))
                fail_msg("%s: row %lld is missing", what, (long long)t->row[i]->id);
        if (i == t->n || t->row[i]->id != id.i || !t_holds(term, &t->row[i]->v[term->col]))
            fail_msg("%s: row %lld is too much", what, (long long)id.i);
        i++;
    }
    t_ok(&err, rc);
    for (; i < t->n; i++)
        if (t_holds(term, &t->row[i]->v[term->col]))
            fail_msg("%s: row %lld is missing", what, (long long)t->row[i]->id);
    st_cursor_close(cur);
}

static const int ops[] = {ST_EQ, ST_NE, ST_LT, ST_LE, ST_GT, ST_GE};

static void each_op(int col, st_value value)
{
    for (size_t i = 0; i < 6; i++) {
        st_term term = {.col = col, .op = ops[i], .value = value};
        char what[128];
        snprintf(what, sizeof what, "column %d, op %d, type %d %lld %.17g", col, ops[i], value.type,
                 (long long)value.i, value.r);
        compare(&term, what);
    }
}

static void numbers(void **state)
{
    (void)state;
    for (int col = 0; col < T_NCOL; col++) {
        if (!is_number(col))
            continue;
        for (size_t i = 0; i < INTS; i++)
            each_op(col, t_int(ints[i]));
        for (size_t i = 0; i < REALS; i++)
            each_op(col, t_real(reals[i]));
        for (int i = 0; i < 4; i++)
            each_op(col, t_real(i * 0.25));
    }
}

static void texts(void **state)
{
    (void)state;
    t_rng r = t_rng_start(2);
    for (int col = 0; col < T_NCOL; col++) {
        int blob = col == ST_COL_EMBEDDING || col == T_COL_RAW;
        if (is_number(col))
            continue;
        for (int i = 0; i < 40; i++) {
            const st_value *some = &t->row[t_rng_below(&r, t->n)]->v[col];
            st_value near = *some;
            if (some->type == ST_NULL)
                continue;
            each_op(col, near);
            if (near.n) {
                near.n--;
                each_op(col, near);
            }
        }
        static const char *const fixed[] = {"",        "w1",       "user", "system",
                                            "working", "semantic", "zzz",  "\xff\xfe"};
        for (size_t i = 0; i < 8; i++)
            each_op(col, t_bytes(blob ? ST_BLOB : ST_TEXT, fixed[i], strlen(fixed[i])));
        each_op(col, t_bytes(blob ? ST_BLOB : ST_TEXT, "\0", 1));
        each_op(col, t_bytes(blob ? ST_BLOB : ST_TEXT, "\0\0", 2));
        // A text is no blob of the same bytes.
        each_op(col, t_bytes(blob ? ST_TEXT : ST_BLOB, "w1", 2));
    }
}

static void null_and_never(void **state)
{
    (void)state;
    for (int col = 0; col < T_NCOL; col++) {
        static const int op[] = {ST_ISNULL, ST_NOTNULL, ST_NEVER};
        for (int i = 0; i < 3; i++) {
            st_term term = {.col = col, .op = op[i]};
            char what[64];
            snprintf(what, sizeof what, "column %d, op %d", col, op[i]);
            compare(&term, what);
        }
        each_op(col, t_null()); // holds for nothing
    }
}

static void lists(void **state)
{
    (void)state;
    t_rng r = t_rng_start(3);
    for (int col = 0; col < T_NCOL; col++) {
        for (int round = 0; round < 60; round++) {
            st_value list[12];
            st_term term = {.col = col, .op = ST_IN, .list = list, .nlist = t_rng_below(&r, 13)};
            char what[64];
            for (size_t i = 0; i < term.nlist; i++) {
                uint64_t kind = t_rng_below(&r, 6);
                list[i] = kind == 0   ? t_null()
                          : kind == 1 ? t_int(ints[t_rng_below(&r, INTS)])
                          : kind == 2 ? t_real(reals[t_rng_below(&r, REALS)])
                          : kind == 3 ? t_text("w1")
                                      : t->row[t_rng_below(&r, t->n)]->v[col];
            }
            snprintf(what, sizeof what, "column %d, list %d of %zu", col, round, term.nlist);
            compare(&term, what);
        }
    }
}

/* Several terms at once, and the rows by number: bits and single rows say the same. */
static void bits_and_rows(void **state)
{
    (void)state;
    t_rng r = t_rng_start(4);
    uint64_t nrow = v->f->nrow, *bits = malloc((st_bit_words(nrow) + 1) * 8);
    assert_non_null(bits);
    for (int round = 0; round < 300; round++) {
        st_value list[3][4];
        st_term term[3];
        st_terms copy;
        st_error err = {0, ""};
        size_t n = 1 + t_rng_below(&r, 3);
        for (size_t i = 0; i < n; i++)
            term[i] = t_term_random(&r, t, list[i]);
        t_ok(&err, st_terms_copy(term, n, &copy, &err));
        memcpy(bits, v->f->live, st_bit_words(nrow) * 8);
        for (size_t i = 0; i < n; i++)
            t_ok(&err, st_filter_term(v, &copy.term[i], bits, &err));
        for (uint64_t row = st_bit_next(v->f->live, nrow, 0); row < nrow;
             row = st_bit_next(v->f->live, nrow, row + 1)) {
            st_value id;
            int want = 1;
            t_ok(&err, st_view_value(v, row, ST_COL_ID, &id, &err));
            for (size_t i = 0; i < n; i++)
                want &= t_holds(&term[i], &t_table_find(t, id.i)->v[term[i].col]);
            assert_int_equal(st_bit_get(bits, row), want);
            assert_int_equal(st_filter_row(v, &copy, row, &err), want);
        }
        st_terms_free(&copy);
    }
    free(bits);
}

/* The reference itself: long double must hold every number of both kinds. */
static void the_reference(void **state)
{
    (void)state;
    assert_true(LDBL_MANT_DIG >= 64);
    st_value a = t_int(((int64_t)1 << 53) + 1), b = t_real(9007199254740992.0);
    assert_int_equal(t_compare(&a, &b), 1);
    a = t_int(INT64_MAX);
    b = t_real(9223372036854775808.0);
    assert_int_equal(t_compare(&a, &b), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reference), cmocka_unit_test(numbers),
        cmocka_unit_test(texts),         cmocka_unit_test(null_and_never),
        cmocka_unit_test(lists),         cmocka_unit_test(bits_and_rows),
    };
    vec_init();
    return cmocka_run_group_tests(tests, make, drop);
}
