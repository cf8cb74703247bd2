/*
 * t_st_conn.c - a store through its public face, one behaviour at a time
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>

#include "t_store.h"

/* A store and two connections of two hosts to it. */
typedef struct fix {
    t_dir d;
    t_db db[2];
    t_host h[2];
    st_conn *c, *other;
} fix;

static void fix_init(fix *f)
{
    f->d = t_dir_new();
    for (int i = 0; i < 2; i++) {
        f->db[i] = t_db_new(i + 1);
        t_host_init(&f->h[i], &f->db[i]);
    }
    f->c = t_open(&f->d, &f->h[0]);
    f->other = t_open(&f->d, &f->h[1]);
}

static void fix_reopen(fix *f)
{
    st_close(f->c);
    st_close(f->other);
    f->c = t_open(&f->d, &f->h[0]);
    f->other = t_open(&f->d, &f->h[1]);
}

static void fix_end(fix *f)
{
    st_close(f->c);
    st_close(f->other);
    t_dir_remove(&f->d);
}

static void add(st_conn *c, t_host *h, int64_t id)
{
    t_begin(c, h);
    t_put(c, id, "some words");
    t_commit(c, h);
}

/* What a connection has committed shows in its further views, whatever older view it still holds:
** an SQL loop over a SELECT that updates row by row. */
static void own_commits_show_beside_an_open_view(void **state)
{
    (void)state;
    fix f;
    st_view *v, *w;
    st_error err = {0, ""};
    fix_init(&f);
    add(f.c, &f.h[0], 1);
    t_ok(&err, st_view_open(f.c, &v, &err));
    for (int64_t id = 2; id < 6; id++)
        add(f.c, &f.h[0], id);
    t_assert_view_ids(v, "1");
    t_ok(&err, st_view_open(f.c, &w, &err));
    t_assert_view_ids(w, "1 2 3 4 5");
    st_view_close(w);
    t_flush(f.c);
    add(f.c, &f.h[0], 6);
    t_ok(&err, st_view_open(f.c, &w, &err));
    t_assert_view_ids(w, "1 2 3 4 5 6");
    t_assert_view_ids(v, "1");
    st_view_close(v);
    t_assert_view_ids(w, "1 2 3 4 5 6");
    st_view_close(w);
    t_assert_ids(f.other, "1 2 3 4 5 6");
    fix_end(&f);
}

/* Others' commits do not show while a view is held, not even after a write that they made
** impossible. */
static void a_refused_write_leaves_the_snapshot(void **state)
{
    (void)state;
    fix f;
    st_view *v, *w;
    st_error err = {0, ""};
    fix_init(&f);
    add(f.c, &f.h[0], 1);
    t_ok(&err, st_view_open(f.c, &v, &err));
    add(f.other, &f.h[1], 2);
    assert_int_equal(t_begin_rc(f.c, &f.h[0], &err), ST_BUSY_SNAPSHOT);
    err = (st_error){0, ""};
    t_ok(&err, st_view_open(f.c, &w, &err));
    t_assert_view_ids(w, "1");
    assert_int_equal(t_begin_rc(f.c, &f.h[0], &err), ST_BUSY_SNAPSHOT);
    st_view_close(w);
    st_view_close(v);
    t_assert_ids(f.c, "1 2");
    add(f.c, &f.h[0], 3);
    t_assert_ids(f.other, "1 2 3");
    fix_end(&f);
}

/* Every value of an id is a row, also 0, which is what a chunk never stored reads as. */
static void a_row_zero_survives(void **state)
{
    (void)state;
    fix f;
    fix_init(&f);
    add(f.c, &f.h[0], 0);
    fix_reopen(&f);
    t_assert_ids(f.c, "0");
    add(f.c, &f.h[0], INT64_MIN);
    add(f.c, &f.h[0], INT64_MAX);
    fix_reopen(&f);
    t_assert_ids(f.c, "-9223372036854775808 0 9223372036854775807");
    fix_end(&f);
}

static void ids_in_a_list(st_view *v, const st_value *list, size_t n, char *buf, size_t room)
{
    st_term t = {.col = ST_COL_ID, .op = ST_IN, .list = list, .nlist = n};
    st_query q = {.terms = &t, .nterm = 1, .order = ST_ORDER_ID, .k = -1};
    st_cursor *cur;
    st_error err = {0, ""};
    size_t at = 0;
    buf[0] = 0;
    t_ok(&err, st_search(v, &q, &cur, &err));
    while (st_cursor_next(cur, &err) > 0) {
        st_value id;
        t_ok(&err, st_view_value(v, st_cursor_row(cur), ST_COL_ID, &id, &err));
        at += (size_t)snprintf(buf + at, room - at, "%lld ", (long long)id.i);
    }
    st_cursor_close(cur);
}

/* An IN list gives each row once, whatever stands beside its id. */
static void a_list_of_ids(void **state)
{
    (void)state;
    fix f;
    st_view *v;
    st_error err = {0, ""};
    char buf[256];
    fix_init(&f);
    for (int64_t id = -1; id < 4; id++)
        add(f.c, &f.h[0], id);
    t_ok(&err, st_view_open(f.c, &v, &err));
    const st_value zero[] = {t_real(-0.5), t_int(0)};
    ids_in_a_list(v, zero, 2, buf, sizeof buf);
    assert_string_equal(buf, "0 ");
    const st_value mixed[] = {t_int(3),       t_real(3.0), t_text("1"), t_real(2.5), t_null(),
                              t_real(-1e300), t_int(-1),   t_int(3),    t_int(99),   t_real(1e300)};
    ids_in_a_list(v, mixed, 10, buf, sizeof buf);
    assert_string_equal(buf, "-1 3 ");
    st_view_close(v);
    fix_end(&f);
}

/* Names that the file has, too, in other places. */
static void column_names_that_the_file_has(void **state)
{
    (void)state;
    static const st_column columns[] = {
        {"data", ST_TEXT}, {"offsets", ST_REAL}, {"x", ST_TEXT},      {"planes", ST_INT},
        {"runs", ST_TEXT}, {"meta", ST_BLOB},    {"memory", ST_REAL}, {"created", ST_INT}};
    st_create create = {.dim = T_DIM, .columns = columns, .ncolumn = 8, .fingerprint = "words"};
    static const char text[] = "abcdefgh";
    t_dir d = t_dir_new();
    t_db db = t_db_new(1);
    t_host h;
    st_conn *c;
    st_error err = {0, ""};
    t_host_init(&h, &db);
    for (int round = 0; round < 3; round++) {
        st_value v[ST_COL_USER + 8] = {0};
        uint8_t tokens[32];
        st_row row = {v, tokens, t_tokens("content", 7, tokens)};
        int64_t id;
        st_view *view;
        uint64_t at;
        t_ok(&err, st_open(d.h5, ST_OPEN_CREATE, &create, &h.host, &c, &err));
        for (int k = 0; k < 8; k++)
            v[ST_COL_USER + k] = columns[k].type == ST_INT ? t_int(100 + k)
                                 : columns[k].type == ST_REAL
                                     ? t_real(k)
                                     : t_bytes(columns[k].type, text, (size_t)k);
        v[ST_COL_CONTENT] = t_text("content");
        t_begin(c, &h);
        t_ok(&err, st_put(c, &row, &id, &err));
        t_commit(c, &h);
        t_flush(c);
        t_ok(&err, st_view_open(c, &view, &err));
        for (int64_t i = 1; i <= id; i++) {
            t_ok(&err, st_view_find(view, i, &at, &err));
            for (int k = 0; k < 8; k++) {
                st_value have;
                t_ok(&err, st_view_value(view, at, ST_COL_USER + k, &have, &err));
                assert_true(t_same(&have, &v[ST_COL_USER + k]));
            }
        }
        st_view_close(view);
        t_verify(c);
        st_close(c);
    }
    t_dir_remove(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_commits_show_beside_an_open_view),
        cmocka_unit_test(a_refused_write_leaves_the_snapshot),
        cmocka_unit_test(a_row_zero_survives),
        cmocka_unit_test(a_list_of_ids),
        cmocka_unit_test(column_names_that_the_file_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
