/*
 * t_sql_static.c - the module linked into its host and registered for every new connection.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

int sqlite3_h5mem_init(sqlite3 *db, char **error, const struct sqlite3_api_routines *api);

static sqlite3_int64 number(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
    if (rc != SQLITE_OK) {
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    }
    sqlite3_int64 value = -1;
    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        value = sqlite3_column_int64(stmt, 0);
    }
    if (rc != SQLITE_DONE) {
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    }
    sqlite3_finalize(stmt);
    return value;
}

static void linked_statically(void **state)
{
    (void)state;
    char folder[] = "/tmp/h5mem-static-XXXXXX";
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(sqlite3_auto_extension((void (*)(void))sqlite3_h5mem_init), SQLITE_OK);

    sqlite3 *db = NULL;
    if (sqlite3_open(":memory:", &db) != SQLITE_OK) {
        fail_msg("%s", sqlite3_errmsg(db));
    }
    assert_int_equal(number(db, "SELECT length(h5mem_version()) > 0"), 1);
    number(db, "CREATE VIRTUAL TABLE m USING h5mem('m.h5', dim=2)");
    number(db, "INSERT INTO m(content, embedding) VALUES ('one', '[1,0]'), ('two', '[0,1]')");
    assert_int_equal(number(db, "SELECT id FROM m WHERE embedding MATCH '[0,2]' AND k = 1"), 2);
    assert_int_equal(number(db, "SELECT id FROM m WHERE content MATCH 'one?'"), 1);
    assert_int_equal(number(db, "SELECT h5mem_flush('m')"), 2);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    sqlite3_reset_auto_extension();

    assert_int_equal(unlink("m.h5"), 0);
    assert_int_equal(unlink("m.h5-wal"), 0);
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(linked_statically)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
