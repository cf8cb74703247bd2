/*
 * commit.c - what a COMMIT costs: an h5mem table, a plain table and a table that keeps nothing, in
 * alternation, through SQL.
 *
 *     commit --module h5mem.so [--filter word]
 *
 * Rows of 384 floats and 200 characters; each table in a host database of its own, in WAL mode,
 * with the same durability. The table that keeps nothing is a virtual table whose methods return at
 * once: what remains is SQLite's own part, the floor of what any extension can reach. Where the
 * disk is waited for, the peer is the bare minimum instead: a write of the row's bytes at the end
 * of a file and fdatasync, once or twice.
 *
 * Printed: medians, the ratio of the peer's median to ours with its interval, in how
 * many of the runs the host had anything to commit (its state row moved), and the ratio for the
 * table that keeps nothing.
 *
 * ERRORS    a failed statement or a table that does not hold what was put into it: exit code 1.
 *
 * SPDX-License-Identifier: MIT
 */
#define _XOPEN_SOURCE 700 // nftw, mkdtemp
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

enum { DIM = 384, TEXT = 200 };

typedef enum shape { ALONE, IN_BEGIN } shape;

typedef struct job {
    const char *name;
    shape shape;
    int rows, runs, warm; /* rows a transaction */
    const char *synchronous;
    int syncs; /* 0: beside a plain table; else beside so many writes with fdatasync */
    double target;
} job;

static const job jobs[] = {
    {"insert_alone_off", ALONE, 1, 2000, 100, "off", 0, 1.8},
    {"insert_in_begin_off", IN_BEGIN, 1, 2000, 100, "off", 0, 1},
    {"insert_1000_in_begin_off", IN_BEGIN, 1000, 20, 2, "off", 0, 4},
    {"insert_alone_full", ALONE, 1, 200, 20, "full", 1, 1 / 1.3},
    {"insert_in_begin_full", IN_BEGIN, 1, 200, 20, "full", 2, 1 / 1.2},
};

/* One database with a table m. */
typedef struct side {
    sqlite3 *db;
    sqlite3_stmt *insert, *begin, *commit;
    bench_samples at;
} side;

static const char columns[] =
    "(id INTEGER PRIMARY KEY, content TEXT, embedding BLOB, timestamp REAL, session TEXT, channel "
    "TEXT, tags TEXT, source TEXT, tier TEXT, importance REAL, activation REAL, access_count "
    "INTEGER, last_access REAL, valid_from REAL, valid_to REAL, superseded_by INTEGER, pinned "
    "INTEGER)";
static float vector[DIM];
static char text[TEXT + 1];

/* -------------------------------------------------------------- the table that keeps nothing */

static int no_connect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out,
                      char **err)
{
    char sql[640];
    (void)aux;
    (void)argc;
    (void)argv;
    (void)err;
    snprintf(sql, sizeof sql, "CREATE TABLE x%s", columns);
    int rc = sqlite3_declare_vtab(db, sql);
    *out = rc == SQLITE_OK ? sqlite3_malloc(sizeof **out) : NULL;
    if (*out) {
        memset(*out, 0, sizeof **out);
    }
    return *out ? SQLITE_OK : rc == SQLITE_OK ? SQLITE_NOMEM : rc;
}

static int no_disconnect(sqlite3_vtab *v)
{
    sqlite3_free(v);
    return SQLITE_OK;
}

static int no_index(sqlite3_vtab *v, sqlite3_index_info *info)
{
    (void)v;
    (void)info;
    return SQLITE_OK;
}

static int no_update(sqlite3_vtab *v, int argc, sqlite3_value **argv, sqlite3_int64 *rowid)
{
    static sqlite3_int64 next;
    (void)v;
    (void)argc;
    (void)argv;
    *rowid = ++next;
    return SQLITE_OK;
}

static int no_step(sqlite3_vtab *v)
{
    (void)v;
    return SQLITE_OK;
}

static int no_mark(sqlite3_vtab *v, int n)
{
    (void)v;
    (void)n;
    return SQLITE_OK;
}

static const sqlite3_module keeps_nothing = {
    .iVersion = 2,
    .xCreate = no_connect,
    .xConnect = no_connect,
    .xBestIndex = no_index,
    .xDisconnect = no_disconnect,
    .xDestroy = no_disconnect,
    .xUpdate = no_update,
    .xBegin = no_step,
    .xSync = no_step,
    .xCommit = no_step,
    .xRollback = no_step,
    .xSavepoint = no_mark,
    .xRelease = no_mark,
    .xRollbackTo = no_mark,
};

/* ------------------------------------------------------------------------------------- tables */

static int fail(sqlite3 *db, const char *what)
{
    fprintf(stderr, "%s: %s\n", what, sqlite3_errmsg(db));
    return -1;
}

static int run(sqlite3 *db, const char *sql)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : fail(db, sql);
}

static int load(sqlite3 *db, const char *module)
{
    char *err = NULL;
    sqlite3_enable_load_extension(db, 1);
    if (sqlite3_load_extension(db, module, NULL, &err) != SQLITE_OK) {
        fprintf(stderr, "%s: %s\n", module, err ? err : "cannot be loaded");
        sqlite3_free(err);
        return -1;
    }
    return 0;
}

/* A database in the working folder; create makes the table m. */
static int side_open(side *s, const char *path, const job *j, const char *module,
                     const char *create)
{
    char sql[128];
    memset(s, 0, sizeof *s);
    if (sqlite3_open(path, &s->db) != SQLITE_OK) {
        return fail(s->db, path);
    }
    snprintf(sql, sizeof sql, "PRAGMA journal_mode = wal; PRAGMA synchronous = %s", j->synchronous);
    if (run(s->db, sql) || (module && load(s->db, module)) ||
        sqlite3_create_module(s->db, "keeps_nothing", &keeps_nothing, NULL) != SQLITE_OK ||
        run(s->db, create)) {
        return -1;
    }
    if (sqlite3_prepare_v2(s->db,
                           "INSERT INTO m(content, embedding, timestamp, session) "
                           "VALUES(?1, ?2, 1.0, 's')",
                           -1, &s->insert, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(s->db, "BEGIN", -1, &s->begin, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(s->db, "COMMIT", -1, &s->commit, NULL) != SQLITE_OK) {
        return fail(s->db, "preparing");
    }
    return 0;
}

static void side_close(side *s)
{
    sqlite3_finalize(s->insert);
    sqlite3_finalize(s->begin);
    sqlite3_finalize(s->commit);
    sqlite3_close(s->db);
    bench_samples_free(&s->at);
}

static int step(side *s, sqlite3_stmt *stmt)
{
    int rc = sqlite3_step(stmt);
    sqlite3_reset(stmt);
    return rc == SQLITE_DONE ? 0 : fail(s->db, sqlite3_sql(stmt));
}

static void make_row(uint64_t i)
{
    char *words = bench_sentence(i, 64, 0, 0);
    bench_vector(i, DIM, vector);
    snprintf(text, sizeof text, "%-*s", TEXT, words ? words : "");
    sqlite3_free(words);
}

/* One transaction; the time that making the rows takes is left out. */
static int transact(side *s, const job *j, uint64_t first)
{
    uint64_t spent = 0, t = bench_now();
    int rc = j->shape == IN_BEGIN ? step(s, s->begin) : 0;
    for (int i = 0; i < j->rows && !rc; i++) {
        if (j->rows > 1) {
            spent += bench_now() - t;
            make_row(first + (uint64_t)i);
            t = bench_now();
        }
        sqlite3_bind_text(s->insert, 1, text, TEXT, SQLITE_STATIC);
        sqlite3_bind_blob(s->insert, 2, vector, sizeof vector, SQLITE_STATIC);
        rc = step(s, s->insert);
    }
    rc = rc || j->shape == ALONE ? rc : step(s, s->commit);
    spent += bench_now() - t;
    return rc ? rc : bench_add(&s->at, (double)spent / j->rows);
}

static int64_t number(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *stmt;
    int64_t n = -1;
    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK) {
        if (sqlite3_step(stmt) == SQLITE_ROW) {
            n = sqlite3_column_int64(stmt, 0);
        }
        sqlite3_finalize(stmt);
    }
    return n;
}

/* The bare minimum of durability: the bytes and a sync, n times. */
static int bare(int fd, const job *j, bench_samples *at)
{
    static char bytes[DIM * sizeof(float) + TEXT];
    static off_t end;
    uint64_t t = bench_now();
    for (int i = 0; i < j->syncs; i++) {
        if (pwrite(fd, bytes, sizeof bytes, end) != (ssize_t)sizeof bytes || fdatasync(fd) != 0) {
            perror("the bare file");
            return -1;
        }
        end += (off_t)sizeof bytes;
    }
    return bench_add(at, (double)(bench_now() - t));
}

/* --------------------------------------------------------------------------------------- a row */

static void print_job(bench_out *out, const job *j, const side *ours, const bench_samples *peer,
                      const side *floor, int moved)
{
    char facts[160];
    bench_pair p = {.name = j->name,
                    .subsystem = "commit",
                    .worst = -1,
                    .common = -1,
                    .good = 1,
                    .peer = j->syncs ? "a bare write" : "a plain table",
                    .target = j->target,
                    .facts = facts,
                    .apart = 1};
    for (int i = j->warm; i < ours->at.n; i++) {
        bench_add(&p.ours, ours->at.at[i]);
        bench_add(&p.theirs, peer->at[i]);
    }
    int n = snprintf(facts, sizeof facts, "{\"host_commits\":%d,\"of\":%d", moved, ours->at.n);
    if (!j->syncs) {
        n += snprintf(facts + n, sizeof facts - (size_t)n, ",\"nothing_kept\":%.1f",
                      bench_quantile(peer, 0.5) / bench_quantile(&floor->at, 0.5));
    }
    snprintf(facts + n, sizeof facts - (size_t)n, "}");
    bench_out_pair(out, &p);
    bench_samples_free(&p.ours);
    bench_samples_free(&p.theirs);
}

static int run_job(bench_out *out, const job *j, const char *module)
{
    side ours, plain, none;
    bench_samples bare_at = {0};
    char create[256], plain_sql[700];
    int fd = open("bare", O_RDWR | O_CREAT | O_TRUNC, 0600), moved = 0, rc;
    int64_t want = (int64_t)j->rows * (j->runs + j->warm);
    snprintf(create, sizeof create,
             "CREATE VIRTUAL TABLE m USING h5mem('%s.h5', dim=%d, synchronous=%s)", j->name, DIM,
             j->synchronous);
    snprintf(plain_sql, sizeof plain_sql, "CREATE TABLE m%s", columns);
    char path[3][80];
    for (int i = 0; i < 3; i++) {
        snprintf(path[i], sizeof path[i], "%s-%d.db", j->name, i);
    }
    rc = side_open(&ours, path[0], j, module, create) |
         side_open(&plain, path[1], j, NULL, plain_sql) |
         side_open(&none, path[2], j, NULL, "CREATE VIRTUAL TABLE m USING keeps_nothing");
    char seen[64] = "", now[64];
    for (int i = 0; i < j->runs + j->warm && !rc; i++) {
        uint64_t first = (uint64_t)i * (uint64_t)j->rows;
        make_row(first);
        rc = transact(&ours, j, first);
        sqlite3_stmt *stmt;
        if (!rc && sqlite3_prepare_v2(ours.db, "SELECT hex(txid) FROM m_state", -1, &stmt, NULL) ==
                       SQLITE_OK) {
            sqlite3_step(stmt);
            snprintf(now, sizeof now, "%s", (const char *)sqlite3_column_text(stmt, 0));
            sqlite3_finalize(stmt);
            moved += strcmp(seen, now) != 0;
            memcpy(seen, now, sizeof seen);
        }
        rc = rc ? rc : j->syncs ? bare(fd, j, &bare_at) : transact(&plain, j, first);
        rc = rc || j->syncs ? rc : transact(&none, j, first);
    }
    if (!rc) {
        print_job(out, j, &ours, j->syncs ? &bare_at : &plain.at, &none, moved);
        int64_t bytes = number(ours.db, "SELECT sum(length(content) + length(embedding)) FROM m");
        if (number(ours.db, "SELECT count(*) FROM m") != want ||
            bytes != want * (int64_t)(TEXT + sizeof vector)) {
            fprintf(stderr, "%s: the table does not hold what was put into it\n", j->name);
            rc = -1;
        }
    }
    side_close(&ours);
    side_close(&plain);
    side_close(&none);
    bench_samples_free(&bare_at);
    close(fd);
    return rc;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    (void)st;
    (void)kind;
    (void)where;
    return remove(path);
}

int main(int argc, char **argv)
{
    const char *module = NULL, *filter = "";
    char real[PATH_MAX], folder[] = "/tmp/h5mem-commit-XXXXXX";
    int rc = 0;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--module") == 0) {
            module = argv[i + 1];
        } else if (strcmp(argv[i], "--filter") == 0) {
            filter = argv[i + 1];
        }
    }
    bench_out out;
    if (bench_out_open(&out) != 0) { // its name may be relative
        return 1;
    }
    if (!module || !realpath(module, real) || !mkdtemp(folder) || chdir(folder) != 0) {
        fprintf(stderr, "usage: commit --module h5mem.so [--filter word]\n");
        return 2;
    }
    printf("a row of a transaction, through SQL\n");
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        if (strstr(jobs[i].name, filter)) {
            rc |= run_job(&out, &jobs[i], real);
        }
    }
    bench_out_close(&out);
    if (chdir("/") == 0) {
        nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    }
    return rc ? 1 : 0;
}
