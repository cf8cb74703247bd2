/*
 * t_st_conn.c - a store through its public face, one behaviour at a time
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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

/* Any change by others makes a view stale: also one that only ends a row of the log. */
static void every_change_makes_a_view_stale(void **state)
{
    (void)state;
    for (int kind = 0; kind < 6; kind++) {
        fix f;
        st_view *v;
        st_error err = {0, ""};
        fix_init(&f);
        add(f.c, &f.h[0], 1);
        t_flush(f.c);
        add(f.c, &f.h[0], 2);
        t_ok(&err, st_view_open(f.c, &v, &err));
        t_begin(f.other, &f.h[1]);
        if (kind < 2)
            t_delete(f.other, 1 + kind);
        else if (kind < 4)
            t_set_importance(f.other, kind - 1, 0.25);
        else
            t_set_content(f.other, kind - 3, "other words");
        t_commit(f.other, &f.h[1]);
        if (t_begin_rc(f.c, &f.h[0], &err) != ST_BUSY_SNAPSHOT)
            fail_msg("change %d was not seen", kind);
        st_view_close(v);
        t_begin(f.c, &f.h[0]);
        fix_end(&f);
    }
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

static size_t size_of(const char *path)
{
    size_t n;
    unsigned char *p = t_read_file(path, &n);
    free(p);
    return p ? n : 0;
}

/* The last one to close folds the log; an open for reading never writes. */
static void closing_folds(void **state)
{
    (void)state;
    fix f;
    st_error err = {0, ""};
    uint64_t rows;
    fix_init(&f);
    add(f.c, &f.h[0], 1);
    st_close(f.c);
    assert_true(size_of(f.d.log) > ST_LOG_PAGE);
    st_close(f.other);
    assert_int_equal(size_of(f.d.log), ST_LOG_PAGE);
    f.other = t_open(&f.d, &f.h[1]);
    add(f.other, &f.h[1], 2);
    t_ok(&err, st_open(f.d.h5, ST_OPEN_READONLY, NULL, &f.h[0].host, &f.c, &err));
    assert_true(st_conn_info(f.c)->readonly);
    t_assert_ids(f.c, "1 2");
    assert_int_equal(t_begin_rc(f.c, &f.h[0], &err), ST_READONLY);
    assert_int_equal(st_flush(f.c, 0, &rows, NULL), ST_READONLY);
    fix_end(&f);
}

/* Opening for reading makes nothing; what is no store is left as it is. */
static void what_is_no_store(void **state)
{
    (void)state;
    t_dir d = t_dir_new();
    t_db db = t_db_new(1);
    t_host h;
    st_conn *c;
    st_error err = {0, ""};
    static const char text[] = "this is no HDF5 file, it is a letter to somebody who keeps bees";
    t_host_init(&h, &db);
    assert_int_equal(st_open(d.h5, 0, NULL, &h.host, &c, &err), ST_NOTFOUND);
    err = (st_error){0, ""};
    assert_int_equal(
        st_open(d.h5, ST_OPEN_READONLY | ST_OPEN_CREATE, &(st_create){.dim = 3}, &h.host, &c, &err),
        ST_NOTFOUND);
    assert_int_equal(size_of(d.h5) + size_of(d.log), 0);
    t_write_file(d.h5, text, sizeof text);
    err = (st_error){0, ""};
    assert_int_equal(t_try_open(&d, &h, NULL, &c, &err), ST_NOT_A_STORE);
    assert_null(c);
    t_write_file(d.h5, "", 0);
    err = (st_error){0, ""};
    assert_int_equal(t_try_open(&d, &h, NULL, &c, &err), ST_NOT_A_STORE);
    assert_int_equal(size_of(d.h5) + size_of(d.log), 0);
    t_dir_remove(&d);
}

/* Without its log a store shows what is in the file; the first writer makes a new one. */
static void a_store_without_its_log(void **state)
{
    (void)state;
    fix f;
    fix_init(&f);
    add(f.c, &f.h[0], 1);
    t_flush(f.c);
    add(f.c, &f.h[0], 2);
    t_dir copy = t_dir_new();
    t_dir_copy(&f.d, &copy);
    assert_int_equal(unlink(copy.log), 0);
    fix_end(&f);
    st_error err = {0, ""};
    t_ok(&err, st_open(copy.h5, ST_OPEN_READONLY, NULL, &f.h[0].host, &f.c, &err));
    t_assert_ids(f.c, "1");
    assert_int_equal(size_of(copy.log), 0);
    t_ok(&err, st_open(copy.h5, 0, NULL, &f.h[1].host, &f.other, &err));
    t_assert_ids(f.other, "1");
    add(f.other, &f.h[1], 3);
    t_assert_ids(f.other, "1 3");
    t_assert_ids(f.c, "1 3");
    st_close(f.c);
    st_close(f.other);
    t_dir_remove(&copy);
}

/* A superblock that the log does not know: somebody else has written. Reading goes on. */
static void a_file_changed_by_others(void **state)
{
    (void)state;
    fix f;
    uint64_t root, eof, rows;
    size_t n;
    st_error err = {0, ""};
    fix_init(&f);
    add(f.c, &f.h[0], 1);
    t_flush(f.c);
    add(f.c, &f.h[0], 2);
    unsigned char *p = t_read_file(f.d.h5, &n), more[64] = {0};
    assert_int_equal(h5_superblock_unpack(p, &root, &eof, NULL), H5_OK);
    FILE *file = fopen(f.d.h5, "r+b");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    fwrite(more, 1, sizeof more, file);
    h5_superblock_pack(root, n + sizeof more, p);
    rewind(file);
    fwrite(p, 1, H5_SUPERBLOCK_BYTES, file);
    fclose(file);
    free(p);
    t_assert_ids(f.c, "1 2");
    assert_int_equal(t_begin_rc(f.c, &f.h[0], &err), ST_READONLY);
    assert_non_null(strstr(err.text, "another program"));
    assert_int_equal(st_flush(f.c, 0, &rows, NULL), ST_READONLY);
    fix_reopen(&f);
    t_assert_ids(f.c, "1 2");
    fix_end(&f);
}

/* The path leads to another file than the one that is open. */
static void a_file_put_in_its_place(void **state)
{
    (void)state;
    fix f;
    char aside[100];
    st_error err = {0, ""};
    fix_init(&f);
    add(f.c, &f.h[0], 1);
    snprintf(aside, sizeof aside, "%s.old", f.d.h5);
    assert_int_equal(rename(f.d.h5, aside), 0);
    assert_int_equal(t_begin_rc(f.c, &f.h[0], &err), ST_IO);
    t_assert_ids(f.c, "1");
    t_write_file(f.d.h5, "something", 9);
    err = (st_error){0, ""};
    assert_true(t_begin_rc(f.c, &f.h[0], &err) < 0);
    t_assert_ids(f.c, "1");
    assert_int_equal(rename(aside, f.d.h5), 0);
    add(f.c, &f.h[0], 2);
    t_assert_ids(f.other, "1 2");
    fix_end(&f);
}

static void assert_option(st_conn *c, const char *name, const char *want)
{
    char buf[300];
    st_error err = {0, ""};
    t_ok(&err, st_get_option(c, name, buf, sizeof buf, &err));
    assert_string_equal(buf, want);
}

static void set_option(st_conn *c, const char *name, const char *value)
{
    st_error err = {0, ""};
    t_ok(&err, st_set_option(c, name, value, &err));
}

/* Options are part of the transaction, and of the file. */
static void options_in_transactions(void **state)
{
    (void)state;
    fix f;
    st_error err = {0, ""};
    fix_init(&f);
    assert_int_equal(st_set_option(f.c, "agent", "x", &err), ST_MISUSE); // no transaction
    t_begin(f.c, &f.h[0]);
    set_option(f.c, "agent", "first");
    t_ok(&err, st_savepoint(f.c, 0, &err));
    set_option(f.c, "agent", "second");
    set_option(f.c, "rrf_k", "30");
    assert_option(f.c, "agent", "second");
    assert_option(f.other, "agent", "");
    st_rollback_to(f.c, 0);
    assert_option(f.c, "agent", "first");
    assert_option(f.c, "rrf_k", "60");
    assert_int_equal(st_set_option(f.c, "rrf_k", "many", NULL), ST_MISUSE);
    assert_int_equal(st_set_option(f.c, "compression", "none", NULL), ST_MISUSE);
    assert_int_equal(st_set_option(f.c, "nothing", "1", NULL), ST_NOTFOUND);
    t_commit(f.c, &f.h[0]);
    assert_option(f.other, "agent", "first");
    fix_reopen(&f);
    assert_option(f.other, "agent", "first");
    t_begin(f.c, &f.h[0]);
    set_option(f.c, "agent", "third");
    t_rollback(f.c, &f.h[0]);
    assert_option(f.c, "agent", "first");
    fix_end(&f);
}

/* What CREATE says of a store that is there must agree with it. */
static void creating_what_is_there(void **state)
{
    (void)state;
    fix f;
    fix_init(&f);
    static const st_column wrong_type[] = {{"priority", ST_TEXT}}, unknown[] = {{"mood", ST_TEXT}};
    static const st_option metric[] = {{"metric", "l2"}}, storage[] = {{"storage", "f16"}};
    static const st_option bad[] = {{"autoflush", "little"}}, nothing[] = {{"nothing", "1"}};
    const struct {
        st_create create;
        int code;
        const char *part;
    } cases[] = {
        {{.dim = 0}, ST_OK, ""},
        {{.dim = 3}, ST_OK, ""},
        {{.dim = 4}, ST_MISUSE, "dim"},
        {{.options = metric, .noption = 1}, ST_MISUSE, "metric"},
        {{.options = storage, .noption = 1}, ST_MISUSE, "storage"},
        {{.options = bad, .noption = 1}, ST_MISUSE, "autoflush"},
        {{.options = nothing, .noption = 1}, ST_NOTFOUND, "nothing"},
        {{.tokenizer = "ascii"}, ST_MISUSE, "tokenize"},
        {{.columns = wrong_type, .ncolumn = 1}, ST_MISUSE, "priority"},
        {{.columns = unknown, .ncolumn = 1}, ST_MISUSE, "mood"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        st_conn *c;
        st_error err = {0, ""};
        int rc = st_open(f.d.h5, ST_OPEN_CREATE, &cases[i].create, NULL, &c, &err);
        assert_int_equal(rc, cases[i].code);
        if (!strstr(err.text, cases[i].part))
            fail_msg("'%s' is not in '%s'", cases[i].part, err.text);
        assert_true((c != NULL) == (rc == ST_OK));
        st_close(c);
    }
    fix_end(&f);
}

/* Two uses of one host are one connection; without a host each is its own. */
static void uses_of_one_connection(void **state)
{
    (void)state;
    fix f;
    st_error err = {0, ""};
    fix_init(&f);
    st_conn *again = t_open(&f.d, &f.h[0]), *none[2];
    assert_ptr_equal(again, f.c);
    assert_ptr_not_equal(f.other, f.c);
    for (int i = 0; i < 2; i++)
        t_ok(&err, st_open(f.d.h5, 0, NULL, NULL, &none[i], &err));
    assert_ptr_not_equal(none[0], none[1]);
    t_begin(f.c, &f.h[0]);
    t_put(f.c, 1, "words");
    st_close(again);
    assert_true(st_in_transaction(f.c));
    t_commit(f.c, &f.h[0]);
    for (int i = 0; i < 2; i++) {
        t_assert_ids(none[i], "1");
        st_close(none[i]);
    }
    fix_end(&f);
}

/* The last use of a connection takes back what it has open. */
static void closing_rolls_back(void **state)
{
    (void)state;
    fix f;
    fix_init(&f);
    add(f.c, &f.h[0], 1);
    t_begin(f.c, &f.h[0]);
    t_put(f.c, 2, "words");
    st_close(f.c);
    f.c = t_open(&f.d, &f.h[0]);
    t_assert_ids(f.c, "1");
    t_begin(f.c, &f.h[0]);
    t_put(f.c, 3, "words");
    t_prepare(f.c, &f.h[0]);
    f.h[0].own = -1;
    st_close(f.c);
    f.c = t_open(&f.d, &f.h[0]);
    t_assert_ids(f.c, "1");
    add(f.other, &f.h[1], 4);
    t_assert_ids(f.c, "1 4");
    fix_end(&f);
}

/* The log of before a compact, as its death between the rename and the note left it, beside a copy
** of the new file: another inode than the one that the header names. */
static void copied_in_mid_compact(void **state)
{
    (void)state;
    fix f;
    st_log_header h;
    st_error err = {0, ""};
    uint64_t saved;
    size_t nlog, nh5;
    fix_init(&f);
    for (int64_t id = 1; id <= 4; id++)
        add(f.c, &f.h[0], id);
    t_begin(f.c, &f.h[0]);
    t_delete(f.c, 2);
    t_commit(f.c, &f.h[0]);
    t_flush(f.c); // as a compact begins
    unsigned char *log = t_read_file(f.d.log, &nlog);
    t_ok(&err, st_compact(f.c, 0, &saved, &err));
    unsigned char *h5 = t_read_file(f.d.h5, &nh5);
    t_ok(&err, st_log_load(log, &h, &err));
    memcpy(h.pending, h5, H5_SUPERBLOCK_BYTES);
    h.next_ino = UINT64_MAX;
    st_log_store(log, &h);
    for (int write = 0; write < 2; write++) {
        t_dir copy = t_dir_new();
        t_write_file(copy.h5, h5, nh5);
        t_write_file(copy.log, log, nlog);
        st_conn *c = t_open(&copy, &f.h[0]);
        if (write)
            add(c, &f.h[0], 5);
        t_assert_ids(c, write ? "1 3 4 5" : "1 3 4");
        st_close(c);
        c = t_open(&copy, &f.h[0]);
        t_assert_ids(c, write ? "1 3 4 5" : "1 3 4");
        t_verify(c);
        st_close(c);
        t_dir_remove(&copy);
    }
    free(log);
    free(h5);
    fix_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_commits_show_beside_an_open_view),
        cmocka_unit_test(a_refused_write_leaves_the_snapshot),
        cmocka_unit_test(every_change_makes_a_view_stale),
        cmocka_unit_test(a_row_zero_survives),
        cmocka_unit_test(a_list_of_ids),
        cmocka_unit_test(column_names_that_the_file_has),
        cmocka_unit_test(closing_folds),
        cmocka_unit_test(what_is_no_store),
        cmocka_unit_test(a_store_without_its_log),
        cmocka_unit_test(a_file_changed_by_others),
        cmocka_unit_test(a_file_put_in_its_place),
        cmocka_unit_test(options_in_transactions),
        cmocka_unit_test(creating_what_is_there),
        cmocka_unit_test(uses_of_one_connection),
        cmocka_unit_test(closing_rolls_back),
        cmocka_unit_test(copied_in_mid_compact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
