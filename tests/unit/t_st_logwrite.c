/*
 * t_st_logwrite.c - frames that are stored into the mapped log: what another reader finds, what a
 * log that is cut or cannot grow does
 *
 * SPDX-License-Identifier: MIT
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "t_store.h"

typedef struct fix {
    t_dir d, copy;
    t_db db;
    t_host h, reader;
    st_conn *c;
} fix;

static void fix_init(fix *f, const char *autoflush)
{
    const t_spec spec = {.dim = T_DIM, .autoflush = autoflush, .synchronous = "off"};
    f->d = t_dir_new();
    f->copy = t_dir_new();
    f->db = t_db_new(1);
    t_host_init(&f->h, &f->db);
    t_host_init(&f->reader, &f->db);
    f->c = t_open_spec(&f->d, &f->h, &spec);
}

static void fix_end(fix *f)
{
    st_close(f->c);
    t_dir_remove(&f->d);
    t_dir_remove(&f->copy);
}

static uint64_t log_size(const fix *f)
{
    struct stat st;
    assert_int_equal(stat(f->d.log, &st), 0);
    return (uint64_t)st.st_size;
}

/* A row whose content and vector follow from its id. */
static void make_row(t_row *r, int64_t id)
{
    static char words[1500]; // the row points to them
    size_t n = (size_t)(id * 37 % 1400) + 1;
    memset(words, 'a' + (int)(id % 26), n);
    words[n] = 0;
    t_row_init(r, id, words);
    t_row_vector(r, T_DIM, (float)id);
}

static int commit_rows(fix *f, int64_t first, int n, st_error *err)
{
    int rc = t_begin_rc(f->c, &f->h, err);
    for (int i = 0; i < n && !rc; i++) {
        t_row r;
        int64_t id;
        make_row(&r, first + i);
        rc = t_put_row(f->c, &r, &id, err);
    }
    return rc ? rc : t_commit_rc(f->c, &f->h, err);
}

/* The rows 1..n, and no others, in a copy of both files that another store is opened on. */
static void assert_rows(fix *f, int64_t n)
{
    st_conn *c;
    st_view *v;
    st_error err = {0, ""};
    t_dir_copy(&f->d, &f->copy);
    c = t_open(&f->copy, &f->reader);
    t_ok(&err, st_view_open(c, &v, &err));
    assert_int_equal(st_view_count(v), n);
    for (int64_t id = 1; id <= n; id++) {
        t_row r;
        st_value got;
        uint64_t row;
        const int cols[] = {ST_COL_CONTENT, ST_COL_EMBEDDING};
        make_row(&r, id);
        t_ok(&err, st_view_find(v, id, &row, &err));
        for (int i = 0; i < 2; i++) {
            t_ok(&err, st_view_value(v, row, cols[i], &got, &err));
            assert_true(t_same(&got, &r.v[cols[i]]));
        }
    }
    st_view_close(v);
    st_close(c);
}

/* Transactions of a row and of many, which pass through a buffer, over several lengths of the log
** and a flush. */
static void others_read_what_was_stored(void **state)
{
    (void)state;
    static const int sizes[] = {1, 1, 2, 150, 1, 400, 1, 30};
    fix f;
    int64_t n = 0;
    fix_init(&f, "1000000");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        st_error err = {0, ""};
        t_ok(&err, commit_rows(&f, n + 1, sizes[i], &err));
        n += sizes[i];
        assert_rows(&f, n);
    }
    t_flush(f.c);
    st_error err = {0, ""};
    t_ok(&err, commit_rows(&f, n + 1, 3, &err)); // over frames of the generation before
    assert_rows(&f, n + 3);
    t_verify(f.c);
    fix_end(&f);
}

static void a_log_does_not_outgrow_what_a_flush_leaves(void **state)
{
    (void)state;
    fix f;
    fix_init(&f, "8192");
    for (int64_t id = 1; id <= 60; id++) {
        st_error err = {0, ""};
        t_ok(&err, commit_rows(&f, id, 1, &err));
        assert_true(log_size(&f) <= ST_LOG_PAGE + ST_LOG_KEPT(8192) + 4096);
    }
    assert_rows(&f, 60);
    fix_end(&f);
}

/* Somebody cuts the log: an error or a row, and no signal. */
static void a_cut_log_is_no_end_of_the_process(void **state)
{
    (void)state;
    for (int within = 0; within < 2; within++) {
        fix f;
        t_row r;
        int64_t id;
        int rc;
        st_error err = {0, ""};
        fix_init(&f, NULL);
        t_ok(&err, commit_rows(&f, 1, 20, &err));
        if (!within)
            assert_int_equal(truncate(f.d.log, ST_LOG_PAGE), 0);
        rc = t_begin_rc(f.c, &f.h, &err);
        make_row(&r, 21);
        rc = rc ? rc : t_put_row(f.c, &r, &id, &err);
        if (within)
            assert_int_equal(truncate(f.d.log, ST_LOG_PAGE), 0);
        rc = rc ? rc : t_commit_rc(f.c, &f.h, &err);
        assert_true(rc == ST_OK || err.text[0]);
        fix_end(&f);
    }
}

/* No room: the row is refused with the reason, and comes through when there is some. */
static void a_log_that_cannot_grow_says_so(void **state)
{
    (void)state;
    fix f;
    struct rlimit old, limit;
    st_error err = {0, ""};
    fix_init(&f, NULL);
    t_ok(&err, commit_rows(&f, 1, 1, &err));
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    limit = old;
    limit.rlim_cur = log_size(&f);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_int_equal(commit_rows(&f, 2, 100, &err), ST_FULL);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_rows(&f, 1);
    err = (st_error){0, ""};
    t_ok(&err, commit_rows(&f, 2, 100, &err));
    assert_rows(&f, 101);
    fix_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(others_read_what_was_stored),
        cmocka_unit_test(a_log_does_not_outgrow_what_a_flush_leaves),
        cmocka_unit_test(a_cut_log_is_no_end_of_the_process),
        cmocka_unit_test(a_log_that_cannot_grow_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
