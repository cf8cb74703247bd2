/*
 * t_sql_inside.c - what runs inside xUpdate is whole or not at all
 *
 * A function that changes rows and then fails leaves the transaction as it was before the call, as
 * any failing statement does, and what was written before and after it in the same transaction
 * stands.
 *
 * SPDX-License-Identifier: MIT
 */
#define SQLITE_CORE 1
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "sql.h"

static char folder[] = "/tmp/t_sql_inside.XXXXXX";

static int remember(void *ctx, sql_table *t)
{
    *(sql_table **)ctx = t;
    return SQLITE_OK;
}

/* Deletes two rows and changes an option, and then does what ctx says. */
static int change(void *ctx, sql_table *t)
{
    st_error err = {0};
    int rc = sql_txn_write(t);
    assert_int_equal(rc, SQLITE_OK);
    assert_int_equal(st_delete(t->store->conn, 1, &err), ST_OK);
    assert_int_equal(st_delete(t->store->conn, 2, &err), ST_OK);
    assert_int_equal(st_set_option(t->store->conn, "agent", "changed", &err), ST_OK);
    return *(int *)ctx ? sql_fail(t, *(int *)ctx, "as told") : SQLITE_OK;
}

static void run(sqlite3 *db, const char *sql)
{
    char *message = NULL;
    int rc = sqlite3_exec(db, sql, NULL, NULL, &message);
    if (rc != SQLITE_OK) {
        fail_msg("%s: %s", sql, message);
    }
}

static char *ask(sqlite3 *db, const char *sql)
{
    static char out[200];
    sqlite3_stmt *s;
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    snprintf(out, sizeof out, "%s", (const char *)sqlite3_column_text(s, 0));
    sqlite3_finalize(s);
    return out;
}

#define ROWS                                                                                       \
    "SELECT group_concat(id) || ' ' || h5mem_config('m', 'agent') FROM (SELECT id FROM m ORDER "   \
    "BY id)"

static sqlite3 *open_host(const char *name, sql_table **t)
{
    sqlite3 *db;
    sqlite3_stmt *s;
    char path[100], *sql;
    sql_call call = {remember, t};
    snprintf(path, sizeof path, "%s/%s.db", folder, name);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    sql = sqlite3_mprintf("CREATE VIRTUAL TABLE m USING h5mem('%s.h5', dim=2, agent=first)", name);
    run(db, sql);
    sqlite3_free(sql);
    run(db, "INSERT INTO m(id, content) VALUES (1, 'a'), (2, 'b'), (3, 'c')");
    assert_int_equal(sqlite3_prepare_v2(db, "INSERT INTO m(m) SELECT ?1", -1, &s, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_bind_pointer(s, 1, &call, SQL_INSIDE_TYPE, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(s), SQLITE_DONE);
    assert_int_equal(sqlite3_finalize(s), SQLITE_OK);
    assert_non_null(*t);
    return db;
}

static void a_failure_in_a_transaction(void **state)
{
    (void)state;
    int error = SQLITE_ERROR, none = 0;
    sql_table *t = NULL;
    sqlite3 *db = open_host("inside", &t);
    run(db, "BEGIN; INSERT INTO m(id, content) VALUES (4, 'd')");
    assert_int_equal(sql_inside(t, change, &error), SQLITE_ERROR);
    assert_non_null(strstr(sqlite3_errmsg(db), "as told"));
    assert_false(sqlite3_get_autocommit(db));
    assert_string_equal(ask(db, ROWS), "1,2,3,4 first");
    run(db, "INSERT INTO m(id, content) VALUES (5, 'e'); COMMIT");
    assert_string_equal(ask(db, ROWS), "1,2,3,4,5 first");
    run(db, "BEGIN");
    assert_int_equal(sql_inside(t, change, &none), SQLITE_OK);
    assert_string_equal(ask(db, ROWS), "3,4,5 changed");
    run(db, "ROLLBACK");
    assert_string_equal(ask(db, ROWS), "1,2,3,4,5 first");
    sqlite3_close(db);
}

/* A verb runs its function once more, nested in its own statement. */
static int verb(void *ctx, sql_table *t)
{
    return sql_inside_again(t, change, ctx);
}

static void a_failure_of_a_verb(void **state)
{
    (void)state;
    int error = SQLITE_ERROR;
    sql_call call = {verb, &error};
    sqlite3_stmt *s;
    sql_table *t = NULL;
    sqlite3 *db = open_host("verb", &t);
    run(db, "BEGIN; DELETE FROM m WHERE id = 3");
    assert_int_equal(sqlite3_prepare_v2(db, "INSERT INTO m(m) VALUES (?1)", -1, &s, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_bind_pointer(s, 1, &call, SQL_INSIDE_TYPE, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(s), SQLITE_ERROR);
    assert_int_equal(sqlite3_finalize(s), SQLITE_ERROR);
    assert_non_null(strstr(sqlite3_errmsg(db), "verb.h5: as told"));
    assert_string_equal(ask(db, ROWS), "1,2 first");
    run(db, "COMMIT");
    assert_string_equal(ask(db, ROWS), "1,2 first");
    sqlite3_close(db);
}

static void a_failure_alone(void **state)
{
    (void)state;
    int error = SQLITE_CONSTRAINT, none = 0;
    sql_table *t = NULL;
    sqlite3 *db = open_host("alone", &t);
    assert_int_equal(sql_inside(t, change, &error), SQLITE_CONSTRAINT);
    assert_string_equal(ask(db, ROWS), "1,2,3 first");
    assert_int_equal(sql_inside(t, change, &none), SQLITE_OK);
    assert_string_equal(ask(db, ROWS), "3 changed");
    sqlite3_close(db);
}

static void remove_folder(void)
{
    char command[100];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failure_in_a_transaction),
        cmocka_unit_test(a_failure_of_a_verb),
        cmocka_unit_test(a_failure_alone),
    };
    if (!mkdtemp(folder)) {
        return 1;
    }
    sqlite3_auto_extension((void (*)(void))sqlite3_h5mem_init);
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    remove_folder();
    return rc;
}
