/*
 * fuzz_sql.c - any bytes as statements: every function, xUpdate, searches, with values of all kinds
 *
 * The bytes are read as a program: each statement picks a form, a function or column, and values
 * (integers, reals, texts with NULs or no UTF-8 at all, blobs, vectors, JSON, names, large ones).
 * It runs on a fresh :memory: host with a store of a few rows. Whatever is said, SQLite must come
 * back with a code, the connection must close, and the store must verify; a sanitizer watches the
 * rest.
 *
 * Texts that could be paths are names of the work folder, which the program makes and removes: no
 * '/' comes from the bytes.
 *
 *     make SAN=address,undefined units; .build/gcc-address-undefined/tests/fuzz/fuzz_sql -m 100000
 *         \ tests/fuzz/corpus/fuzz_sql
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
#include "vec.h"

int sqlite3_h5mem_init(sqlite3 *db, char **err, const void *api);

enum { NAMES = 96, STATEMENTS = 24, TEXT_MOST = 300, DIM = 4 };

typedef struct input {
    const uint8_t *p;
    size_t n, at;
} input;

static char folder[200];
static char functions[NAMES][48], tables[NAMES][48], columns[NAMES][48];
static int nfunction, ntable, ncolumn;

static uint8_t take(input *in)
{
    return in->at < in->n ? in->p[in->at++] : 0;
}

static int below(input *in, int n)
{
    return take(in) % n;
}

/* ------------------------------------------------------------------------------------- the host */

/* Backups and stores may have any name. */
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
        fprintf(stderr, "fuzz_sql: something is left in %s\n", folder);
    }
}

static void must(sqlite3 *db, const char *sql)
{
    char *err = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &err) != SQLITE_OK) {
        fprintf(stderr, "%s: %s\n", sql, err);
        abort();
    }
}

static int list(sqlite3 *db, const char *sql, char names[NAMES][48])
{
    sqlite3_stmt *stmt;
    int n = 0;
    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK) {
        abort();
    }
    while (n < NAMES && sqlite3_step(stmt) == SQLITE_ROW) {
        snprintf(names[n++], 48, "%s", (const char *)sqlite3_column_text(stmt, 0));
    }
    sqlite3_finalize(stmt);
    return n;
}

static int stop(void *ctx)
{
    long *left = ctx;
    return --*left < 0;
}

static sqlite3 *host(void)
{
    sqlite3 *db;
    if (!nfunction) {
        const char *dir = getenv("TMPDIR");
        snprintf(folder, sizeof folder, "%.150s/fuzz_sql.XXXXXX", dir ? dir : "/tmp");
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
    if (!nfunction) {
        nfunction = list(db,
                         "SELECT DISTINCT name FROM pragma_function_list WHERE name LIKE "
                         "'h5mem%' OR name LIKE 'hdf5%' ORDER BY 1",
                         functions);
        ntable = list(db,
                      "SELECT name FROM pragma_module_list WHERE name LIKE 'h5mem\\__%' ESCAPE "
                      "'\\' OR name LIKE 'hdf5\\__%' ESCAPE '\\' ORDER BY 1",
                      tables);
    }
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 1 << 22);
    must(db,
         "CREATE VIRTUAL TABLE memory USING h5mem('m.h5', dim=4, synchronous=off, autoflush=6000,"
         " priority INTEGER, label TEXT, weight REAL, raw BLOB);"
         "INSERT INTO memory(id, content, embedding, session, tags, label) VALUES"
         " (1, 'amber words', '[1,0,0,0]', 's', 'a,b', 'x'), (2, 'more amber', '[0,1,0,0]', 's', "
         "NULL, NULL), (3, NULL, NULL, NULL, '', '');"
         "SELECT h5mem_flush('memory');"
         "INSERT INTO memory(id, content, embedding) VALUES (9, 'in the log', '[0,0,1,1]')");
    if (!ncolumn) {
        ncolumn = list(db, "SELECT name FROM pragma_table_xinfo('memory')", columns);
    }
    return db;
}

/* ------------------------------------------------------------------------------------- values */

static const char *const words[] = {"memory",
                                    "main.memory",
                                    "m.h5",
                                    "x.h5",
                                    "c.h5",
                                    "p.h5",
                                    "host",
                                    "memory/id",
                                    "/",
                                    "content",
                                    "embedding",
                                    "session",
                                    "id",
                                    "source",
                                    "match",
                                    "flush",
                                    "compact",
                                    "dim",
                                    "metric",
                                    "cosine",
                                    "autoflush",
                                    "1",
                                    "-1",
                                    "zstd:3",
                                    "h5mem",
                                    "amber",
                                    "\"a b\"",
                                    "+a -b",
                                    "ambe*",
                                    "[1,2,3,4]",
                                    "[]",
                                    "[1e999]",
                                    "{}",
                                    "user",
                                    "working",
                                    "last week",
                                    "2026-11-01",
                                    "off",
                                    "full",
                                    "fts5",
                                    "l2",
                                    "rrf",
                                    "f4",
                                    "[2,2]",
                                    "{\"chunks\":[1]}",
                                    "synchronous",
                                    "",
                                    "*"};

static void bind_bytes(sqlite3_stmt *stmt, int i, input *in, int text)
{
    char buf[TEXT_MOST];
    int n = take(in);
    n = n > 200 ? TEXT_MOST : n % 24;
    for (int k = 0; k < n; k++) {
        buf[k] = (char)take(in);
        buf[k] = buf[k] == '/' ? '_' : buf[k];
    }
    if (text) {
        sqlite3_bind_text(stmt, i, buf, n, SQLITE_TRANSIENT);
    } else {
        sqlite3_bind_blob(stmt, i, buf, n, SQLITE_TRANSIENT);
    }
}

static int64_t some_integer(input *in)
{
    static const int64_t edge[] = {0, 1, -1, 2, 3, INT64_MAX, INT64_MIN, 1 << 30, 255, -2};
    int64_t v = 0;
    int kind = below(in, 16);
    if (kind < 10) {
        return edge[kind];
    }
    for (int i = 0; i < kind - 8; i++) {
        v = (int64_t)((uint64_t)v << 8 | take(in));
    }
    return v;
}

static double some_real(input *in)
{
    static const double edge[] = {0.0, -0.0, 0.5, 1.0, -1.5, 1e308, -1e308, 1e-320, 9e18, 3e9};
    return below(in, 4) ? edge[below(in, 10)] : (double)some_integer(in) / 7;
}

static void bind_vector(sqlite3_stmt *stmt, int i, input *in)
{
    float v[DIM + 1];
    for (int k = 0; k <= DIM; k++) {
        v[k] = (float)some_real(in);
    }
    sqlite3_bind_blob(stmt, i, v, 4 * (DIM - below(in, 3) / 2), SQLITE_TRANSIENT);
}

static void bind_large(sqlite3_stmt *stmt, int i, input *in)
{
    size_t n = (size_t)1 << (10 + below(in, 8));
    char *p = malloc(n);
    if (!p) {
        abort();
    }
    memset(p, "a [,\"\xc3*"[below(in, 7)], n);
    sqlite3_bind_text(stmt, i, p, (int)n, free);
}

static void bind(sqlite3_stmt *stmt, int i, input *in)
{
    switch (below(in, 16)) {
    case 0:
        break; // NULL
    case 1:
    case 2:
        sqlite3_bind_int64(stmt, i, some_integer(in));
        break;
    case 3:
        sqlite3_bind_double(stmt, i, some_real(in));
        break;
    case 4:
        bind_bytes(stmt, i, in, 1);
        break;
    case 5:
        bind_bytes(stmt, i, in, 0);
        break;
    case 6:
        bind_vector(stmt, i, in);
        break;
    case 7:
        sqlite3_bind_zeroblob(stmt, i, below(in, 8) ? below(in, 64) : 1 << 18);
        break;
    case 8:
        bind_large(stmt, i, in);
        break;
    case 9:
        sqlite3_bind_pointer(stmt, i, folder, "fuzz", NULL);
        break;
    default:
        sqlite3_bind_text(stmt, i, words[below(in, (int)(sizeof words / sizeof *words))], -1,
                          SQLITE_STATIC);
    }
}

/* ---------------------------------------------------------------------------------- statements */

enum { STORED = 21 }; /* of the columns, which the host lists in their order */

static const char *column(input *in, int n)
{
    return columns[below(in, n < ncolumn ? n : ncolumn)];
}

static void add_call(sqlite3_str *s, input *in)
{
    int n = below(in, 6);
    sqlite3_str_appendf(s, "%s(", functions[below(in, nfunction)]);
    for (int i = 0; i < n; i++) {
        sqlite3_str_appendall(s, i ? ", ?" : "?");
    }
    sqlite3_str_appendall(s, ")");
}

static void add_where(sqlite3_str *s, input *in)
{
    static const char *const ops[] = {"=",  "MATCH", "MATCH", "<",      ">=",     "IS",     "<>",
                                      "IN", "LIKE",  "GLOB",  "IS NOT", "NOT IN", "BETWEEN"};
    int n = 1 + below(in, 4);
    for (int i = 0; i < n; i++) {
        const char *op = ops[below(in, (int)(sizeof ops / sizeof *ops))];
        sqlite3_str_appendf(s, "%s%s %s ", i ? below(in, 5) ? " AND " : " OR " : " WHERE ",
                            column(in, NAMES), op);
        sqlite3_str_appendall(s, strstr(op, "IN")         ? "(?, ?, ?)"
                                 : !strcmp(op, "BETWEEN") ? "? AND ?"
                                                          : "?");
    }
}

static void add_select(sqlite3_str *s, input *in)
{
    static const char *const what[] = {"*",
                                       "id, score, distance, rank",
                                       "bm25(memory, ?, ?, ?)",
                                       "snippet(memory, ?, ?, ?, ?, ?)",
                                       "highlight(memory, ?, ?, ?)",
                                       "h5mem_has_tag(tags, ?), h5mem_distance(embedding, ?, ?)",
                                       "count(*), max(score)"};
    sqlite3_str_appendf(s, "SELECT %s FROM memory", what[below(in, 7)]);
    if (below(in, 4) == 0) {
        sqlite3_str_appendall(s, "(?)");
    }
    add_where(s, in);
    if (below(in, 2)) {
        sqlite3_str_appendf(s, " ORDER BY %s %s", column(in, NAMES), below(in, 2) ? "DESC" : "");
    }
    if (below(in, 2)) {
        sqlite3_str_appendall(s, " LIMIT ? OFFSET ?");
    }
}

static void add_insert(sqlite3_str *s, input *in)
{
    static const char *const clause[] = {"", "OR REPLACE", "OR IGNORE", "OR FAIL", "OR ROLLBACK"};
    int n = 1 + below(in, 8), rows = 1 + below(in, 2);
    sqlite3_str_appendf(s, "INSERT %s INTO memory(", clause[below(in, 5)]);
    for (int i = 0; i < n; i++) {
        sqlite3_str_appendf(s, "%s%s", i ? ", " : "", column(in, below(in, 5) ? STORED : NAMES));
    }
    for (int r = 0; r < rows; r++) {
        sqlite3_str_appendall(s, r ? ", (" : ") VALUES (");
        for (int i = 0; i < n; i++) {
            sqlite3_str_appendall(s, i ? ", ?" : "?");
        }
        sqlite3_str_appendall(s, ")");
    }
}

static void add_create(sqlite3_str *s, input *in)
{
    static const char *const parts[] = {
        "dim=4",       "dim=0",     "metric=l2",  "a TEXT",     "b INTEGER", "tokenize=''",
        "autoflush=0", "agent='x'", "dim=999999", "id TEXT",    "c",         "compression='zstd:1'",
        "=",           "'",         "\"q\" BLOB", "storage=f16"};
    int n = below(in, 5);
    sqlite3_str_appendf(s, "CREATE VIRTUAL TABLE x USING %s(%Q", below(in, 4) ? "h5mem" : "hdf5",
                        words[2 + below(in, 6)]);
    for (int i = 0; i < n; i++) {
        sqlite3_str_appendf(s, ", %s", parts[below(in, 16)]);
    }
    sqlite3_str_appendall(s, ")");
}

static char *statement(input *in)
{
    static const char *const plain[] = {"BEGIN",
                                        "COMMIT",
                                        "ROLLBACK",
                                        "SAVEPOINT a",
                                        "ROLLBACK TO a",
                                        "RELEASE a",
                                        "DROP TABLE IF EXISTS x",
                                        "ALTER TABLE x RENAME TO memory2",
                                        "PRAGMA integrity_check",
                                        "INSERT INTO x(content) SELECT content FROM memory",
                                        "SELECT * FROM x",
                                        "UPDATE memory SET content = content || ?, embedding = ?"};
    sqlite3_str *s = sqlite3_str_new(NULL);
    switch (below(in, 12)) {
    case 0:
    case 1:
    case 2:
        sqlite3_str_appendall(s, "SELECT ");
        add_call(s, in);
        break;
    case 3:
        sqlite3_str_appendf(s, "SELECT * FROM %s(%s)", tables[below(in, ntable)],
                            (const char *const[]){"", "?", "?, ?", "?, ?, ?"}[below(in, 4)]);
        break;
    case 4:
    case 5:
        add_insert(s, in);
        break;
    case 6:
        sqlite3_str_appendf(s, "UPDATE memory SET %s = ?, %s = ?", column(in, STORED),
                            column(in, STORED));
        add_where(s, in);
        break;
    case 7:
        sqlite3_str_appendall(s, "DELETE FROM memory");
        add_where(s, in);
        break;
    case 8:
    case 9:
        add_select(s, in);
        break;
    case 10:
        add_create(s, in);
        break;
    default:
        sqlite3_str_appendall(s, plain[below(in, (int)(sizeof plain / sizeof *plain))]);
    }
    return sqlite3_str_finish(s);
}

static void run(sqlite3 *db, input *in)
{
    char *sql = statement(in);
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK && stmt) {
        for (int i = 1; i <= sqlite3_bind_parameter_count(stmt); i++) {
            bind(stmt, i, in);
        }
        for (int rows = 0; rows < 50 && sqlite3_step(stmt) == SQLITE_ROW; rows++) {
            for (int i = 0; i < sqlite3_column_count(stmt); i++) {
                sqlite3_column_text(stmt, i);
            }
        }
    }
    if (getenv("T_TRACE")) {
        fprintf(stderr, "%s: %s\n", sql, sqlite3_errmsg(db));
    }
    sqlite3_finalize(stmt);
    sqlite3_free(sql);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input in = {data, size, 0};
    sqlite3 *db = host();
    long left = 2000000;
    sqlite3_stmt *stmt;
    sqlite3_progress_handler(db, 1, stop, &left);
    for (int i = 0; i < STATEMENTS && in.at < in.n; i++) {
        run(db, &in);
    }
    sqlite3_progress_handler(db, 0, NULL, NULL);
    if (!sqlite3_get_autocommit(db)) {
        must(db, below(&in, 2) ? "ROLLBACK" : "COMMIT");
    }
    if (sqlite3_prepare_v2(db, "SELECT h5mem_verify('memory')", -1, &stmt, NULL) != SQLITE_OK ||
        sqlite3_step(stmt) != SQLITE_ROW ||
        strcmp((const char *)sqlite3_column_text(stmt, 0), "ok") != 0) {
        fprintf(stderr, "h5mem_verify: %s\n", sqlite3_errmsg(db));
        abort();
    }
    sqlite3_finalize(stmt);
    if (sqlite3_close(db) != SQLITE_OK) {
        abort();
    }
    return 0;
}
