/*
 * fuzz_doors.c - any bytes as what h5mem_import reads
 *
 * The first byte says what the others are: JSON lines, Markdown, a clawhdf5 file, the statement
 * that sqlite_master has of an FTS5 table. Whatever they are, the import must come back with a row
 * count or an error, leave nothing behind after an error, and the store must verify. What came in
 * as Markdown must go out as the same bytes; what came in as JSON lines must, written and read
 * again, be written the same.
 *
 *     .build/gcc-address-undefined/tests/fuzz/fuzz_doors -m 100000 tests/fuzz/corpus/fuzz_doors
 *
 * SPDX-License-Identifier: MIT
 */
#include <dirent.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"
#include "sql_md.h"
#include "vec.h"

int sqlite3_h5mem_init(sqlite3 *db, char **err, const void *api);

static char folder[200];

static void empty(void)
{
    DIR *d = opendir(".");
    struct dirent *e;
    while (d && (e = readdir(d)) != NULL) {
        unlink(e->d_name);
    }
    closedir(d);
}

static void leave(void)
{
    empty();
    if (chdir("/") != 0 || rmdir(folder) != 0) {
        fprintf(stderr, "fuzz_doors: something is left in %s\n", folder);
    }
}

static void stop(sqlite3 *db, const char *what)
{
    fprintf(stderr, "%s: %s\n", what, sqlite3_errmsg(db));
    abort();
}

/* The number that a statement gives; -1 where it fails. */
static sqlite3_int64 number(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *stmt;
    sqlite3_int64 n = -1;
    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK) {
        stop(db, sql);
    }
    if (sqlite3_step(stmt) == SQLITE_ROW) {
        n = sqlite3_column_int64(stmt, 0);
    }
    sqlite3_finalize(stmt);
    return n;
}

static void must(sqlite3 *db, const char *sql)
{
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) {
        stop(db, sql);
    }
}

static sqlite3 *host(void)
{
    sqlite3 *db;
    if (!*folder) {
        const char *dir = getenv("TMPDIR");
        snprintf(folder, sizeof folder, "%.150s/fuzz_doors.XXXXXX", dir ? dir : "/tmp");
        if (!mkdtemp(folder) || chdir(folder) != 0) {
            abort();
        }
        atexit(leave);
        vec_init();
        sqlite3_auto_extension((void (*)(void))sqlite3_h5mem_init);
    }
    empty();
    if (sqlite3_open(":memory:", &db) != SQLITE_OK) {
        abort();
    }
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 1 << 22);
    must(db, "CREATE VIRTUAL TABLE memory USING h5mem('m.h5', dim=2, synchronous=off, n INTEGER,"
             " x REAL, label TEXT, raw BLOB)");
    return db;
}

static void write_file(const uint8_t *data, size_t size)
{
    FILE *f = fopen("in", "wb");
    if (!f || fwrite(data, 1, size, f) != size || fclose(f) != 0) {
        abort();
    }
}

static int file_is(const char *name, const uint8_t *data, size_t size)
{
    FILE *f = fopen(name, "rb");
    uint8_t *got = malloc(size + 1);
    if (!f || !got) {
        abort();
    }
    int same = fread(got, 1, size + 1, f) == size && memcmp(got, data, size) == 0;
    fclose(f);
    free(got);
    return same;
}

static sqlite3_int64 import(sqlite3 *db, const char *sql)
{
    sqlite3_int64 rows = number(db, sql), there = number(db, "SELECT count(*) FROM memory");
    if (rows < 0 && there != 0) {
        stop(db, "rows are left behind");
    }
    return rows;
}

/* What a function makes of a table and a file in a format: its rows. */
static sqlite3_int64 pass(sqlite3 *db, const char *way, const char *table, const char *file,
                          const char *format)
{
    char sql[200];
    snprintf(sql, sizeof sql, "SELECT h5mem_%s('%s', '%s', '%s')", way, table, file, format);
    return number(db, sql);
}

/* The rows of a table that was read from a file of any bytes go out, in and out again the same. */
static void comes_back(sqlite3 *db, const char *format)
{
    sqlite3_int64 n = number(db, "SELECT count(*) FROM memory");
    must(db, "CREATE VIRTUAL TABLE again USING h5mem('a.h5', dim=2, synchronous=off, n INTEGER,"
             " x REAL, label TEXT, raw BLOB)");
    if (pass(db, "export", "memory", "one", format) != n ||
        pass(db, "import", "again", "one", format) != n ||
        pass(db, "export", "again", "two", format) != n) {
        stop(db, format);
    }
    FILE *f = fopen("one", "rb");
    uint8_t *one = malloc(1 << 24);
    size_t size = f && one ? fread(one, 1, 1 << 24, f) : 0;
    if (!f || !file_is("two", one, size)) {
        stop(db, "it comes back as something else");
    }
    fclose(f);
    free(one);
}

static void json_lines(sqlite3 *db)
{
    if (import(db, "SELECT h5mem_import('memory', 'in', 'jsonl')") >= 0) {
        comes_back(db, "jsonl");
    }
}

/* Rows as a daily log: no file comes back as its bytes, but what was read of it does, and reading
 * it again adds nothing. */
static void daily_log(sqlite3 *db)
{
    if (import(db, "SELECT h5mem_import('memory', 'in', 'markdown')") < 0) {
        return;
    }
    sqlite3_int64 n = number(db, "SELECT count(*) FROM memory");
    comes_back(db, "markdown");
    if (pass(db, "import", "memory", "one", "markdown") != n ||
        number(db, "SELECT count(*) FROM memory") != n) {
        stop(db, "a daily log, again");
    }
}

static void markdown(sqlite3 *db, const uint8_t *data, size_t size)
{
    if (sql_md_has_rows((const char *)data, size)) {
        daily_log(db);
        return;
    }
    sqlite3_int64 n = import(db, "SELECT h5mem_import('memory', 'in', 'markdown')");
    if (n < 0 || number(db, "SELECT count(*) FROM memory") != n ||
        number(db, "SELECT h5mem_export('memory', 'out', 'markdown')") != n ||
        !file_is("out", data, size)) {
        stop(db, "markdown");
    }
    if (import(db, "SELECT h5mem_import('memory', 'in', 'markdown')") != n ||
        number(db, "SELECT count(*) FROM memory") != n) {
        stop(db, "markdown, again");
    }
}

/* As the statement of a table that is there, for both kinds of table. */
static void statement(sqlite3 *db, const uint8_t *data, size_t size)
{
    sqlite3_stmt *stmt;
    must(db, "CREATE VIRTUAL TABLE f USING fts5(content, embedding, tags);"
             "INSERT INTO f VALUES ('words', x'0000803f00000040', 'a'), (NULL, '[1,2]', NULL);"
             "PRAGMA writable_schema = on");
    if (sqlite3_prepare_v2(db, "UPDATE sqlite_master SET sql = ?1 WHERE name = 'f'", -1, &stmt,
                           NULL) != SQLITE_OK) {
        stop(db, "sqlite_master");
    }
    sqlite3_bind_text(stmt, 1, (const char *)data, (int)size, SQLITE_TRANSIENT);
    sqlite3_step(stmt);
    sqlite3_finalize(stmt);
    import(db, "SELECT h5mem_import('memory', NULL, 'sqlite-vec:f')");
    must(db, "DELETE FROM memory");
    import(db, "SELECT h5mem_import('memory', NULL, 'fts5:f')");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || size > 1 << 20) {
        return 0;
    }
    sqlite3 *db = host();
    int kind = *data++ % 4;
    write_file(data, --size);
    if (kind == 0) {
        json_lines(db);
    } else if (kind == 1) {
        markdown(db, data, size);
    } else if (kind == 2) {
        import(db, "SELECT h5mem_import('memory', 'in', 'clawhdf5')");
    } else {
        statement(db, data, size);
    }
    if (number(db, "SELECT h5mem_verify('memory') = 'ok'") != 1) {
        stop(db, "h5mem_verify");
    }
    if (sqlite3_close(db) != SQLITE_OK) {
        abort();
    }
    return 0;
}
