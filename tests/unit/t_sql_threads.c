/*
 * t_sql_threads.c - sixteen threads on connections of their own, over one host and one store
 *
 * Transaction n of a writer gives every row of the store the number n, by deleting and inserting,
 * by UPDATE of small columns or of texts, and the host the same number. A reader must find all rows
 * with one number that never goes back, by every way to the rows, and the host's number in between.
 * Others flush, compact, copy and open and close. With a WAL host readers have no busy timeout. Run
 * under the thread sanitizer this also shows what races.
 *
 * T_SECONDS says how long (default 1).
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <pthread.h>
#include <sqlite3.h>

#include "vec.h"

int sqlite3_h5mem_init(sqlite3 *db, char **err, const void *api);

enum { THREADS = 16, WRITERS = 3, KEEPERS = 2, ROWS = 12 };

typedef struct worker {
    pthread_t thread;
    int number;
    long done, busy;
    char wrong[400];
} worker;

static char folder[] = "/tmp/t_sql_threads.XXXXXX";
static const char *journal;
static int stop;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int stopped(const worker *w)
{
    return w->wrong[0] || __atomic_load_n(&stop, __ATOMIC_RELAXED);
}

static int fault(worker *w, const char *what, sqlite3 *db)
{
    if (!w->wrong[0]) {
        snprintf(w->wrong, sizeof w->wrong, "thread %d: %.200s: %d %.150s", w->number, what,
                 db ? sqlite3_extended_errcode(db) : 0, db ? sqlite3_errmsg(db) : "");
    }
    return SQLITE_ERROR;
}

static sqlite3 *connection(worker *w, int timeout)
{
    sqlite3 *db;
    char path[80], *sql;
    snprintf(path, sizeof path, "%s/host.db", folder);
    if (sqlite3_open(path, &db) != SQLITE_OK) {
        fault(w, "opening", db);
    }
    // SQLite itself may be busy while it opens a WAL that others use; not any more behind it.
    sqlite3_busy_timeout(db, 10000);
    sql = "PRAGMA synchronous = OFF; SELECT count(*) FROM sqlite_schema";
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) {
        fault(w, sql, db);
    }
    sqlite3_busy_timeout(db, timeout);
    return db;
}

/* SQLITE_OK, SQLITE_BUSY, or a fault. */
static int run(worker *w, sqlite3 *db, const char *sql)
{
    int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK || (rc & 255) == SQLITE_BUSY ? rc & 255 : fault(w, sql, db);
}

/* ---------------------------------------------------------------------------------- the threads */

static int change(worker *w, sqlite3 *db, int64_t n)
{
    char sql[600];
    static const char *const forms[] = {
        "UPDATE memory SET priority = %lld",
        "UPDATE memory SET priority = %lld, content = 'amber ' || id",
        "DELETE FROM memory; INSERT INTO memory(id, content, embedding, priority) WITH s(i) AS "
        "(SELECT "
        "1 UNION ALL SELECT i + 1 FROM s WHERE i < 12) SELECT i, 'amber cedar', '[1,0,0,1]', %lld "
        "FROM s"};
    snprintf(sql, sizeof sql, forms[n % 3], (long long)n);
    return run(w, db, sql);
}

static int64_t number(worker *w, sqlite3 *db, const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    int64_t v = -1;
    int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
    if (rc == SQLITE_OK) {
        rc = sqlite3_step(stmt);
        v = rc == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : -1;
    }
    if (rc != SQLITE_ROW && (rc & 255) != SQLITE_BUSY) {
        fault(w, sql, db);
    }
    sqlite3_finalize(stmt);
    return v;
}

static void *write_on(void *arg)
{
    worker *w = arg;
    sqlite3 *db = connection(w, 10000);
    while (!stopped(w)) {
        int rc = run(w, db, "BEGIN IMMEDIATE");
        int64_t n = rc ? -1 : number(w, db, "SELECT n FROM state") + 1;
        char sql[80];
        snprintf(sql, sizeof sql, "UPDATE state SET n = %lld", (long long)n);
        rc = rc ? rc : change(w, db, n);
        rc = rc ? rc : run(w, db, sql);
        rc = rc ? rc : run(w, db, "COMMIT");
        if (rc) {
            w->busy += rc == SQLITE_BUSY;
            if (!sqlite3_get_autocommit(db)) {
                run(w, db, "ROLLBACK");
            }
        }
        w->done += !rc;
    }
    sqlite3_close(db);
    return NULL;
}

/* One statement, several ways to the rows: all twelve, all of one number. -1: busy. */
static int64_t look(worker *w, sqlite3 *db, long round)
{
    static const char *const ways[] = {"SELECT CASE WHEN count(*) = 12 AND min(priority) = "
                                       "max(priority) THEN max(priority) ELSE -2 END"
                                       " FROM memory",
                                       "SELECT CASE WHEN count(*) = 12 AND min(priority) = "
                                       "max(priority) THEN max(priority) ELSE -2 END"
                                       " FROM memory WHERE content MATCH 'amber'",
                                       "SELECT CASE WHEN count(*) = 12 AND min(priority) = "
                                       "max(priority) THEN max(priority) ELSE -2 END"
                                       " FROM memory WHERE embedding MATCH '[1,0,0,0]'",
                                       "SELECT (SELECT priority FROM memory WHERE id = 5)",
                                       "SELECT CASE WHEN count(DISTINCT priority) = 1 THEN "
                                       "max(priority) ELSE -2 END FROM memory WHERE id "
                                       "BETWEEN 3 AND 9"};
    int64_t n = number(w, db, ways[round % 5]);
    if (n == -2) {
        fault(w, "rows of two transactions", NULL);
    }
    return n;
}

static void *read_on(void *arg)
{
    worker *w = arg;
    int wal = !strcmp(journal, "wal");
    sqlite3 *db = connection(w, wal ? 0 : 10000);
    int64_t last = -1;
    for (long round = 0; !stopped(w); round++) {
        int64_t before = number(w, db, "SELECT n FROM state");
        int64_t n = look(w, db, round), after = number(w, db, "SELECT n FROM state");
        if (n < 0 || before < 0 || after < 0) {
            w->busy++;
            if (wal) {
                fault(w, "a reader of a WAL host had to wait", db);
            }
            continue;
        }
        // The store may be a transaction ahead of what the host showed before, never behind it.
        if (n < last || n < before || n > after + 1) {
            snprintf(w->wrong, sizeof w->wrong, "thread %d: %lld after %lld; host %lld to %lld",
                     w->number, (long long)n, (long long)last, (long long)before, (long long)after);
        }
        last = n;
        w->done++;
        if (round % 40 == 39) {
            sqlite3_close(db);
            db = connection(w, wal ? 0 : 10000);
        }
    }
    sqlite3_close(db);
    return NULL;
}

static void *keep(void *arg)
{
    worker *w = arg;
    sqlite3 *db = connection(w, 10000);
    for (long round = 0; !stopped(w); round++) {
        char sql[200], path[100];
        int copy = w->number % 2 && round % 3 == 0;
        snprintf(path, sizeof path, "%s/copy%d.h5", folder, w->number);
        snprintf(sql, sizeof sql,
                 copy ? "SELECT h5mem_backup('memory', '%s')" : "SELECT h5mem_%s('memory')",
                 copy             ? path
                 : round % 3 == 1 ? "compact"
                 : round % 7 == 0 ? "verify"
                                  : "flush");
        w->busy += run(w, db, sql) == SQLITE_BUSY;
        w->done++;
        if (copy) {
            unlink(path);
            strcat(path, "-wal");
            unlink(path);
        }
        usleep(3000);
    }
    sqlite3_close(db);
    return NULL;
}

/* -------------------------------------------------------------------------------------- a run */

static void work(const char *mode)
{
    static worker all[THREADS];
    const char *given = getenv("T_SECONDS");
    double until = now() + (given ? strtod(given, NULL) : 1);
    long done[3] = {0}, busy[3] = {0};
    worker first = {.number = -1};
    char sql[800];
    memset(all, 0, sizeof all);
    journal = mode;
    stop = 0;
    assert_non_null(mkdtemp(folder));
    sqlite3 *db = connection(&first, 0);
    snprintf(
        sql, sizeof sql,
        "PRAGMA journal_mode = %s; CREATE TABLE state(n INTEGER); INSERT INTO state VALUES (2);"
        "CREATE VIRTUAL TABLE memory USING h5mem('agent.h5', dim=4, autoflush=20000, "
        "synchronous=off, priority INTEGER)",
        mode);
    assert_int_equal(run(&first, db, sql), SQLITE_OK);
    assert_int_equal(change(&first, db, 2), SQLITE_OK);
    for (int i = 0; i < THREADS; i++) {
        all[i].number = i;
        assert_int_equal(pthread_create(&all[i].thread, NULL,
                                        i < WRITERS             ? write_on
                                        : i < WRITERS + KEEPERS ? keep
                                                                : read_on,
                                        &all[i]),
                         0);
    }
    while (now() < until) {
        usleep(10000);
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < THREADS; i++) {
        int kind = i < WRITERS ? 0 : i < WRITERS + KEEPERS ? 1 : 2;
        pthread_join(all[i].thread, NULL);
        done[kind] += all[i].done;
        busy[kind] += all[i].busy;
    }
    for (int i = 0; i < THREADS; i++) {
        if (all[i].wrong[0]) {
            fail_msg("%s", all[i].wrong);
        }
    }
    assert_int_equal(number(&first, db, "SELECT n FROM state"), look(&first, db, 0));
    assert_int_equal(number(&first, db, "SELECT h5mem_verify('memory') = 'ok'"), 1);
    sqlite3_close(db);
    snprintf(sql, sizeof sql, "rm -rf '%s'", folder);
    assert_int_equal(system(sql), 0);
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    printf("# report: %s host: %ld transactions (%ld busy), %ld reads (%ld busy), upkeep %ld (%ld "
           "busy)\n",
           mode, done[0], busy[0], done[2], busy[2], done[1], busy[1]);
    assert_true(done[0] > 2 && done[2] > 10);
}

static void test_wal(void **ctx)
{
    (void)ctx;
    work("wal");
}

static void test_delete(void **ctx)
{
    (void)ctx;
    work("delete");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_wal), cmocka_unit_test(test_delete)};
    vec_init();
    sqlite3_auto_extension((void (*)(void))sqlite3_h5mem_init);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
