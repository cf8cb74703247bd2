/*
 * t_sql_static.c - the SQL layer linked in with SQLITE_CORE, driven through SQLite's C API.
 *
 * What Python's module cannot reach: auto-extensions, commit hooks, sqlite3_close's own check for
 * statements left behind, zombies, pointer values, defensive mode.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

int sqlite3_h5mem_init(sqlite3 *db, char **err, const void *api);

static char folder[] = "/tmp/t_sql_static.XXXXXX";

static sqlite3 *open_host(const char *name)
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open(name, &db), SQLITE_OK);
    sqlite3_extended_result_codes(db, 1);
    return db;
}

static void run(sqlite3 *db, const char *sql)
{
    char *err = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &err) != SQLITE_OK) {
        fail_msg("%s: %s", sql, err);
    }
}

static void refuse(sqlite3 *db, const char *sql, int code, const char *text)
{
    int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
    if (rc != code || !strstr(sqlite3_errmsg(db), text)) {
        fail_msg("%s: %d %s, not %d %s", sql, rc, sqlite3_errmsg(db), code, text);
    }
}

static int64_t number(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *stmt;
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    int64_t v = sqlite3_column_int64(stmt, 0);
    assert_int_equal(sqlite3_finalize(stmt), SQLITE_OK);
    return v;
}

static int enter(void **state)
{
    (void)state;
    if (!mkdtemp(folder) || chdir(folder) != 0) {
        return -1;
    }
    return sqlite3_auto_extension((void (*)(void))sqlite3_h5mem_init);
}

static int leave(void **state)
{
    (void)state;
    sqlite3_reset_auto_extension();
    char command[200];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return chdir("/") != 0 || system(command) != 0;
}

static const char create[] = "CREATE VIRTUAL TABLE memory USING h5mem('m.h5', dim=2)";

static int fresh(void **state)
{
    (void)state;
    unlink("host.db");
    unlink("m.h5");
    unlink("m.h5-wal");
    return 0;
}

/* sqlite3_close says BUSY while a statement lives: none of ours may. */
static void test_close(void **state)
{
    (void)state;
    sqlite3 *db = open_host("host.db");
    run(db, create);
    run(db, "INSERT INTO memory(content, embedding) VALUES ('some words', '[1, 0]'), ('more', '[0, "
            "1]')");
    run(db,
        "SELECT * FROM memory('words'); SELECT h5mem_flush('memory'), h5mem_stats('main.memory')");
    run(db, "SELECT * FROM h5mem_info; SELECT h5mem_config('memory', 'agent', 'x')");
    run(db, "BEGIN; INSERT INTO memory(content) VALUES ('left open')");
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    db = open_host("host.db");
    assert_int_equal(number(db, "SELECT count(*) FROM memory"), 2);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* A close that is refused disconnects all tables; the connection lives on. */
static void test_close_refused(void **state)
{
    (void)state;
    sqlite3 *db = open_host("host.db");
    sqlite3_stmt *plain, *ours;
    run(db, create);
    run(db, "INSERT INTO memory(content) VALUES ('a'), ('b')");
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT 1 UNION SELECT 2", -1, &plain, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(plain), SQLITE_ROW);
    assert_int_equal(sqlite3_close(db), SQLITE_BUSY);
    assert_int_equal(number(db, "SELECT count(*) FROM memory('b')"), 1);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT id FROM memory", -1, &ours, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(ours), SQLITE_ROW);
    assert_int_equal(sqlite3_close(db), SQLITE_BUSY);
    assert_int_equal(sqlite3_step(ours), SQLITE_ROW);
    // a zombie: gone when the last statement goes
    assert_int_equal(sqlite3_close_v2(db), SQLITE_OK);
    assert_int_equal(sqlite3_finalize(plain), SQLITE_OK);
    assert_int_equal(sqlite3_column_int(ours, 0), 2);
    assert_int_equal(sqlite3_finalize(ours), SQLITE_OK);
}

static int veto(void *ctx)
{
    return *(int *)ctx;
}

/* The hook says no after phase one: the store's rows go with the host's. */
static void test_commit_hook(void **state)
{
    (void)state;
    sqlite3 *db = open_host("host.db");
    int no = 1;
    run(db, create);
    run(db, "CREATE TABLE plain(x)");
    sqlite3_commit_hook(db, veto, &no);
    refuse(db, "INSERT INTO memory(content) VALUES ('autocommit')", SQLITE_CONSTRAINT_COMMITHOOK,
           "");
    run(db, "BEGIN; INSERT INTO memory(content) VALUES ('a'); INSERT INTO plain VALUES (1)");
    refuse(db, "COMMIT", SQLITE_CONSTRAINT_COMMITHOOK, "");
    assert_int_equal(sqlite3_get_autocommit(db), 1);
    assert_int_equal(number(db, "SELECT count(*) FROM memory"), 0);
    no = 0;
    run(db, "INSERT INTO memory(content) VALUES ('b')");
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    db = open_host("host.db");
    assert_int_equal(number(db, "SELECT count(*) FROM memory WHERE content = 'b'"), 1);
    assert_int_equal(number(db, "SELECT count(*) FROM memory"), 1);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* The state table may be written by the table alone, CREATE to DROP. */
static void test_defensive(void **state)
{
    (void)state;
    sqlite3 *db = open_host("host.db");
    assert_int_equal(sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL), SQLITE_OK);
    run(db, create);
    run(db, "INSERT INTO memory(content) VALUES ('a')");
    run(db, "BEGIN; INSERT INTO memory(content) VALUES ('b'); SAVEPOINT s; DELETE FROM memory; "
            "ROLLBACK TO s; COMMIT");
    refuse(db, "UPDATE memory_state SET txid = zeroblob(8)", SQLITE_ERROR, "may not be modified");
    refuse(db, "DROP TABLE memory_state", SQLITE_ERROR, "may not be dropped");
    run(db, "ALTER TABLE memory RENAME TO m2");
    assert_int_equal(number(db, "SELECT count(*) FROM m2"), 2);
    assert_int_equal(number(db, "SELECT txid > zeroblob(8) FROM m2_state"), 1);
    run(db, "DROP TABLE m2");
    assert_int_equal(number(db, "SELECT count(*) FROM sqlite_schema"), 0);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* Codes as C programs test them. */
static void test_codes(void **state)
{
    (void)state;
    sqlite3 *db = open_host("host.db"), *other = open_host("other.db");
    run(db, create);
    run(db, "INSERT INTO memory(id, content) VALUES (5, 'a')");
    run(other, "CREATE VIRTUAL TABLE IF NOT EXISTS memory USING h5mem('m.h5')");
    refuse(db, "INSERT INTO memory(id) VALUES (5)", SQLITE_CONSTRAINT_PRIMARYKEY,
           "h5mem: memory: m.h5: id 5");
    run(db, "INSERT OR IGNORE INTO memory(id) VALUES (5)");
    assert_string_equal(sqlite3_errmsg(db), "not an error");
    run(db, "BEGIN; INSERT INTO memory(content) VALUES ('b')");
    refuse(db, "SELECT h5mem_flush('memory')", SQLITE_LOCKED, "h5mem: memory: m.h5: ");
    refuse(db, "INSERT INTO memory(memory) VALUES ('flush')", SQLITE_LOCKED,
           "h5mem: memory: m.h5: ");
    refuse(other, "INSERT INTO memory(content) VALUES ('c')", SQLITE_BUSY, "h5mem: memory: m.h5: ");
    run(db, "COMMIT");
    // a view of the state before that: writing from it would lose a row
    sqlite3_stmt *stmt;
    run(other, "BEGIN");
    assert_int_equal(sqlite3_prepare_v2(other, "SELECT id FROM memory", -1, &stmt, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    run(db, "INSERT INTO memory(content) VALUES ('d')");
    refuse(other, "INSERT INTO memory(content) VALUES ('e')", SQLITE_BUSY_SNAPSHOT,
           "h5mem: memory: m.h5: ");
    sqlite3_finalize(stmt);
    run(other, "ROLLBACK; INSERT INTO memory(content) VALUES ('e')");
    refuse(db, "SELECT * FROM memory WHERE embedding MATCH '[1]'", SQLITE_ERROR,
           "h5mem: memory: m.h5: dim is 2");
    refuse(db, "SELECT h5mem_flush('nosuch')", SQLITE_ERROR,
           "h5mem: no h5mem table named 'nosuch'");
    assert_int_equal(sqlite3_close(other), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    unlink("other.db");
}

/* A pointer of another kind on the command column is no command. */
static void test_pointer(void **state)
{
    (void)state;
    sqlite3 *db = open_host("host.db");
    sqlite3_stmt *stmt;
    run(db, create);
    assert_int_equal(
        sqlite3_prepare_v2(db, "INSERT INTO memory(memory) VALUES (?1)", -1, &stmt, NULL),
        SQLITE_OK);
    sqlite3_bind_pointer(stmt, 1, db, "another-type", NULL);
    assert_int_equal(sqlite3_step(stmt), SQLITE_DONE); // a NULL, then: an empty row
    assert_int_equal(sqlite3_finalize(stmt), SQLITE_OK);
    assert_int_equal(number(db, "SELECT count(*) FROM memory"), 1);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* ---- a tokenizer of the host's own: words at spaces; what else it does hangs on its context */

typedef struct own_tokenizer {
    int fold;   /* lower case */
    int broken; /* fails */
} own_tokenizer;

static int own_create(void *ctx, const char **arg, int n, Fts5Tokenizer **out)
{
    (void)arg;
    *out = ctx;
    return n > 0 ? SQLITE_ERROR : SQLITE_OK;
}

static void own_delete(Fts5Tokenizer *t)
{
    (void)t;
}

static int own_tokenize(Fts5Tokenizer *t, void *ctx, int flags, const char *s, int n,
                        int (*emit)(void *, int, const char *, int, int, int))
{
    const own_tokenizer *own = (const own_tokenizer *)t;
    char word[4000];
    int rc = own->broken ? SQLITE_ERROR : SQLITE_OK;
    for (int i = 0; i < n && rc == SQLITE_OK;) {
        int k = 0, start = i;
        for (; i < n && s[i] != ' ' && k < (int)sizeof word; i++) {
            word[k++] = own->fold && s[i] >= 'A' && s[i] <= 'Z' ? (char)(s[i] + 32) : s[i];
        }
        i += i < n && s[i] == ' ';
        rc = k > 0 ? emit(ctx, 0, word, k, start, start + k) : SQLITE_OK;
        if (rc == SQLITE_OK && k == 3 && memcmp(word, "car", 3) == 0 &&
            (flags & FTS5_TOKENIZE_DOCUMENT)) {
            rc = emit(ctx, FTS5_TOKEN_COLOCATED, "automobile", 10, start, start + k);
        }
    }
    return rc;
}

static void add_tokenizer(sqlite3 *db, own_tokenizer *own)
{
    fts5_api *api = NULL;
    fts5_tokenizer calls = {own_create, own_delete, own_tokenize};
    sqlite3_stmt *stmt;
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT fts5(?1)", -1, &stmt, NULL), SQLITE_OK);
    sqlite3_bind_pointer(stmt, 1, &api, "fts5_api_ptr", NULL);
    sqlite3_step(stmt);
    sqlite3_finalize(stmt);
    assert_non_null(api);
    assert_int_equal(api->xCreateTokenizer(api, "own", own, &calls, NULL), SQLITE_OK);
}

static void test_own_tokenizer(void **state)
{
    (void)state;
    own_tokenizer own = {1, 0}, other = {0, 0};
    sqlite3 *db = open_host("host.db");
    add_tokenizer(db, &own);
    refuse(db, "CREATE VIRTUAL TABLE m USING h5mem('m.h5', dim=2, tokenize='own x')", SQLITE_ERROR,
           "'own' refuses");
    run(db, "CREATE VIRTUAL TABLE memory USING h5mem('m.h5', dim=2, tokenize=own)");
    run(db, "INSERT INTO memory(content, embedding) VALUES ('My Car, my-house', '[1, 0]'), ('a "
            "car', '[0, 1]')");
    assert_int_equal(number(db, "SELECT count(*) FROM memory('my')"), 1);
    assert_int_equal(number(db, "SELECT count(*) FROM memory('house')"), 0);
    assert_int_equal(number(db, "SELECT count(*) FROM memory('CAR')"), 1);
    assert_int_equal(number(db, "SELECT id FROM memory('automobile')"), 2);
    // tokens longer than an index holds are cut, the same way in rows and queries
    run(db, "INSERT INTO memory(content) VALUES (printf('%.3000c', 'x'))");
    assert_int_equal(number(db, "SELECT id FROM memory(printf('%.3000c', 'x'))"), 3);
    assert_int_equal(number(db, "SELECT count(*) FROM memory(printf('%.1000c', 'x'))"), 0);
    own.broken = 1;
    refuse(db, "INSERT INTO memory(content) VALUES ('b')", SQLITE_ERROR,
           "the tokenizer failed on content");
    own.broken = 0;
    assert_int_equal(sqlite3_close(db), SQLITE_OK);

    // without it, and with another of the same name: words are refused, the rest works
    db = open_host("host.db");
    refuse(db, "SELECT * FROM memory('car')", SQLITE_ERROR, "this SQLite has no tokenizer 'own'");
    refuse(db, "INSERT INTO memory(content) VALUES ('b')", SQLITE_ERROR,
           "this SQLite has no tokenizer 'own'");
    add_tokenizer(db, &other);
    refuse(db, "SELECT * FROM memory('car')", SQLITE_ERROR, "tokenizer 'own' gives fingerprint ");
    refuse(db, "UPDATE memory SET content = 'b'", SQLITE_ERROR, "the store was written with ");
    refuse(db, "UPDATE memory SET embedding = NULL WHERE id = 1", SQLITE_ERROR,
           "the store was written with ");
    run(db, "INSERT INTO memory(embedding) VALUES ('[1, 1]'); UPDATE memory SET tier = 'semantic'; "
            "DELETE FROM memory WHERE id = 2");
    assert_int_equal(
        number(db, "SELECT id FROM memory WHERE embedding MATCH '[1, 0]' AND timestamp > 0"), 1);
    run(db, "SELECT h5mem_flush('memory')");
    assert_int_equal(sqlite3_close(db), SQLITE_OK);

    db = open_host("host.db");
    add_tokenizer(db, &own);
    assert_int_equal(number(db, "SELECT id FROM memory('my')"), 1);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void other_connection(const char *sql)
{
    sqlite3 *db = open_host("host.db");
    sqlite3_busy_timeout(db, 2000);
    run(db, sql);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* DDL by another connection reloads the schema here, in mid-statement and in mid-transaction. */
static void test_schema_change_outside(void **state)
{
    (void)state;
    sqlite3 *db = open_host("host.db");
    run(db, "PRAGMA journal_mode = WAL");
    run(db, create);
    run(db, "INSERT INTO memory(content) VALUES ('a'), ('b')");
    sqlite3_stmt *stmt;
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT id FROM memory ORDER BY id", -1, &stmt, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    other_connection("CREATE TABLE x1(y); INSERT INTO memory(content) VALUES ('c')");
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    assert_int_equal(sqlite3_step(stmt), SQLITE_DONE);
    assert_int_equal(sqlite3_reset(stmt), SQLITE_OK);
    assert_int_equal(number(db, "SELECT count(*) FROM memory"), 3);
    other_connection("CREATE TABLE x2(y)");
    run(db, "BEGIN; INSERT INTO memory(content) VALUES ('d'); SAVEPOINT s; INSERT INTO "
            "memory(content) VALUES ('e');"
            "ROLLBACK TO s; COMMIT");
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    assert_int_equal(sqlite3_finalize(stmt), SQLITE_OK);
    assert_int_equal(number(db, "SELECT count(*) FROM memory"), 4);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    unlink("host.db-wal");
    unlink("host.db-shm");
}

/* ---- death between the two phases: the files as they stand then, put back in place */

static int copy_files(void *ctx)
{
    (void)ctx;
    return system("cp host.db host.at && cp m.h5 h5.at && cp m.h5-wal wal.at") != 0;
}

/* Leaves a transaction that inserted row 2 prepared in the log, its host committed or not. */
static void die_between(int host_committed)
{
    sqlite3 *db = open_host("host.db");
    run(db, create);
    run(db, "INSERT INTO memory(content) VALUES ('first')");
    sqlite3_commit_hook(db, copy_files, NULL);
    // a statement alone needs no verdict
    run(db, "BEGIN; INSERT INTO memory(content) VALUES ('second'); COMMIT");
    sqlite3_commit_hook(db, NULL, NULL);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    // the same inodes, so that the host is still the one that the log names
    assert_int_equal(system("cp h5.at m.h5 && cp wal.at m.h5-wal"), 0);
    assert_int_equal(host_committed ? 0 : system("cp host.at host.db"), 0);
    assert_int_equal(system("rm -f *.at host.db-journal"), 0);
}

static void test_doubt(void **state)
{
    static const char stats[] = "SELECT json_extract(h5mem_stats('memory'), '$.in_doubt')";
    for (int committed = 0; committed < 2; committed++) {
        for (int first = 0; first < 4; first++) {
            fresh(state);
            unlink("other.db");
            die_between(committed);
            sqlite3 *db = open_host("host.db"), *other = open_host("other.db");
            run(other, "CREATE VIRTUAL TABLE memory USING h5mem('m.h5')");
            // another host cannot know, and says whom to ask
            refuse(other, "INSERT INTO memory(content) VALUES ('third')", SQLITE_ERROR, "host.db");
            assert_int_equal(number(other, "SELECT count(*) FROM memory"), 1);
            assert_int_equal(number(db, "SELECT count(*) FROM memory"), 1 + committed);
            assert_int_equal(number(db, stats), 1);
            switch (first) {
            case 0: // what the host does first decides
                run(db, "INSERT INTO memory(content) VALUES ('third'); DELETE FROM memory WHERE "
                        "content = 'third'");
                break;
            case 1:
                assert_int_equal(number(db, "SELECT h5mem_flush('memory')"), 1 + committed);
                break;
            case 2:
                run(db, "INSERT INTO memory(memory) VALUES ('flush')");
                break;
            default:
                run(db, "DROP TABLE memory");
            }
            assert_int_equal(number(other, "SELECT count(*) FROM memory"), 1 + committed);
            assert_int_equal(number(other, stats), 0);
            run(other, "INSERT INTO memory(content) VALUES ('fourth')");
            assert_int_equal(number(other, "SELECT count(*) FROM memory"), 2 + committed);
            assert_int_equal(sqlite3_close(other), SQLITE_OK);
            assert_int_equal(sqlite3_close(db), SQLITE_OK);
            unlink("other.db");
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_close, fresh),
        cmocka_unit_test_setup(test_close_refused, fresh),
        cmocka_unit_test_setup(test_commit_hook, fresh),
        cmocka_unit_test_setup(test_defensive, fresh),
        cmocka_unit_test_setup(test_codes, fresh),
        cmocka_unit_test_setup(test_pointer, fresh),
        cmocka_unit_test_setup(test_schema_change_outside, fresh),
        cmocka_unit_test_setup(test_own_tokenizer, fresh),
        cmocka_unit_test_setup(test_doubt, fresh),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
