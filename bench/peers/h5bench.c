/*
 * h5bench.c - plain HDF5 files: hdf5core and libhdf5 in alternation, in one process.
 *
 *     h5bench --module h5mem.so [--filter word]
 *
 * The input files are made by libhdf5 in a temp folder (h5bench_files.c). Each run of either side
 * opens the file, does its work and closes it; the files are in the page cache after the first
 * runs. Values of both sides are compared after each pair, outside the clock. Rows of the `hdf5`
 * table run one statement on an open connection, which opens and closes the file as well.
 *
 * ERRORS    a failed or wrong read is printed and the exit code is 1; the other rows still run.
 *
 * SPDX-License-Identifier: MIT
 */
#define _XOPEN_SOURCE 700 // nftw, mkdtemp, realpath
#include <ftw.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "h5bench.h"

enum { WARM = 3 };

typedef enum kind { ATTRIBUTE, BOX, BARE, WALK, SCAN } kind; /* BARE: h5bench_bare, not ours */

typedef struct job {
    const char *name;
    kind kind;
    int runs;
    double target; /* least ratio, 0 = none */
    h5bench_box box;
    const char *sql; /* SCAN: one number; its peer sums the values of box.count[0] records */
    int cost;        /* BOX, chunked: print the reads as well */
} job;

#define FEW(in)  BOX, 1000, 10, {in, "/few", 1, {0}, {H5BENCH_FEW}}, NULL, 0
#define MANY(in) BOX, 1000, 2.5, {in, "/many", 1, {0}, {H5BENCH_MANY}}, NULL, 0
#define IMAGE_OF(in)                                                                               \
    in, "/image", 2, {0},                                                                          \
    {                                                                                              \
        H5BENCH_SIDE, H5BENCH_SIDE                                                                 \
    }
#define IMAGE(in)  BOX, 300, 3, {IMAGE_OF(in)}, NULL, 0
#define PLATE(in)  BOX, 100, 0, {in, "/plate", 2, {430, 0}, {100, H5BENCH_PLATE}}, NULL, 1
#define WIDE(in)   BOX, 300, 0, {in, "/wide", 1, {H5BENCH_CHUNKS * 11}, {1}}, NULL, 1
#define GROUPS(in) WALK, 300, 10, {.file = in}, NULL, 0

static const job jobs[] = {
    {"attribute_old", ATTRIBUTE, 2000, 10, {.file = "old.h5"}, NULL, 0},
    {"attribute_new", ATTRIBUTE, 2000, 10, {.file = "new.h5"}, NULL, 0},
    {"floats_1000_old", FEW("old.h5")},
    {"floats_1000_new", FEW("new.h5")},
    {"floats_100000_old", MANY("old.h5")},
    {"floats_100000_new", MANY("new.h5")},
    {"chunked_512x512_old", IMAGE("old.h5")},
    {"chunked_512x512_new", IMAGE("new.h5")},
    {"chunked_bare_copies_old", BARE, 300, 0, {IMAGE_OF("old.h5")}, NULL, 0},
    {"chunked_bare_copies_new", BARE, 300, 0, {IMAGE_OF("new.h5")}, NULL, 0},
    {"walk_64_groups_old", GROUPS("groups_old.h5")},
    {"walk_64_groups_new", GROUPS("groups_new.h5")},
    {"slab_deflate_old", PLATE("old.h5")},
    {"slab_deflate_new", PLATE("new.h5")},
    {"one_of_100000_btree1", WIDE("wide_btree1.h5")},
    {"one_of_100000_farray", WIDE("wide_farray.h5")},
    {"one_of_100000_earray", WIDE("wide_earray.h5")},
    {"one_of_100000_btree2",
     BOX,
     300,
     0,
     {"wide_btree2.h5", "/wide", 2, {70, 333}, {1, 1}},
     NULL,
     1},
    {"sql_scan_1000000",
     SCAN,
     10,
     0,
     {.file = "records.h5", .count = {H5BENCH_RECORDS}},
     "SELECT sum(value) FROM records",
     0},
    {"sql_scan_10000",
     SCAN,
     100,
     0,
     {.file = "records.h5", .count = {10000}},
     "SELECT sum(value) FROM records WHERE rowid < 10000",
     0},
};

typedef struct runner {
    sqlite3 *db;
    sqlite3_stmt *stmt; /* of the job, SCAN */
    uint64_t tile;      /* BARE: where the first is */
    float *a, *b;       /* H5BENCH_MANY or H5BENCH_SIDE squared numbers */
    h5bench_record *records;
    double ours, peer; /* results of the last run, where they are single numbers */
    bench_out out;
} runner;

static size_t elements(const job *j)
{
    return (size_t)(j->box.count[0] * (j->box.rank == 2 ? j->box.count[1] : 1));
}

/* ---- one run of a side: nanoseconds, or -1 */

static int scan_ours(runner *r)
{
    int rc = sqlite3_step(r->stmt);
    r->ours = rc == SQLITE_ROW ? sqlite3_column_double(r->stmt, 0) : 0;
    if (rc != SQLITE_ROW) {
        fprintf(stderr, "%s: %s\n", sqlite3_sql(r->stmt), sqlite3_errmsg(r->db));
    }
    sqlite3_reset(r->stmt);
    return rc == SQLITE_ROW ? 0 : -1;
}

static int scan_peer(runner *r, const job *j)
{
    size_t n = (size_t)j->box.count[0];
    int rc = h5bench_peer_records(j->box.file, r->records, n);
    r->peer = 0;
    for (size_t i = 0; i < n; i++) {
        r->peer += r->records[i].value;
    }
    return rc;
}

static double run_side(runner *r, const job *j, int is_ours)
{
    const h5bench_side *side = is_ours ? &h5bench_ours : &h5bench_peer;
    double *number = is_ours ? &r->ours : &r->peer;
    int objects = 0, rc;
    uint64_t start = bench_now();
    switch (j->kind) {
    case ATTRIBUTE:
        rc = side->attribute(j->box.file, number);
        break;
    case BOX:
        rc = side->box(&j->box, is_ours ? r->a : r->b, elements(j));
        break;
    case BARE:
        rc = is_ours ? h5bench_bare(j->box.file, r->tile, r->a)
                     : side->box(&j->box, r->b, elements(j));
        break;
    case WALK:
        rc = side->walk(j->box.file, &objects);
        *number = objects;
        break;
    default:
        rc = is_ours ? scan_ours(r) : scan_peer(r, j);
    }
    uint64_t end = bench_now();
    return rc == 0 ? (double)(end - start) : -1;
}

static int same(runner *r, const job *j)
{
    int ok = j->kind == BOX || j->kind == BARE ? memcmp(r->a, r->b, elements(j) * sizeof *r->a) == 0
                                               : r->ours == r->peer && isfinite(r->ours);
    ok = ok && (j->kind != ATTRIBUTE || r->ours == H5BENCH_ATTRIBUTE);
    ok = ok && (j->kind != WALK || r->ours == H5BENCH_GROUPS + 1);
    if (!ok) {
        fprintf(stderr, "%s: the two sides differ\n", j->name);
    }
    return ok ? 0 : -1;
}

/* ---- rows */

static int run_pairs(runner *r, const job *j, bench_samples *ours, bench_samples *peer,
                     bench_samples *ratio)
{
    int rc = 0;
    for (int i = -WARM; i < j->runs && rc == 0; i++) {
        double t[2];
        int first = i % 2 != 0;
        t[first] = run_side(r, j, first);
        t[!first] = run_side(r, j, !first);
        rc = t[0] < 0 || t[1] < 0 ? -1 : same(r, j);
        if (rc == 0 && i >= 0) {
            rc = bench_add(ours, t[1]) | bench_add(peer, t[0]) | bench_add(ratio, t[0] / t[1]);
        }
    }
    return rc;
}

static int run_job(runner *r, const job *j)
{
    bench_pair p = {.name = j->name,
                    .subsystem = "hdf5",
                    .peer = "libhdf5",
                    .worst = -1,
                    .common = -1,
                    .good = 1,
                    .target = j->target};
    if (j->sql && sqlite3_prepare_v2(r->db, j->sql, -1, &r->stmt, NULL) != SQLITE_OK) {
        fprintf(stderr, "%s: %s\n", j->sql, sqlite3_errmsg(r->db));
        return -1;
    }
    if (j->kind == BARE && h5bench_bare_at(j->box.file, &r->tile) != 0) {
        return -1;
    }
    int rc = run_pairs(r, j, &p.ours, &p.theirs, &p.ratio);
    if (rc == 0) {
        bench_out_pair(&r->out, &p);
    }
    sqlite3_finalize(r->stmt);
    r->stmt = NULL;
    bench_samples_free(&p.ours);
    bench_samples_free(&p.theirs);
    bench_samples_free(&p.ratio);
    return rc;
}

/* What a box costs in reads; its target: of data no more than its own chunks. */
static int run_cost(runner *r, const job *j)
{
    h5bench_cost c;
    if (h5bench_count(&j->box, r->a, elements(j), &c) != 0 ||
        h5bench_peer.box(&j->box, r->b, elements(j)) != 0 || same(r, j) != 0) {
        return -1;
    }
    printf("%-28s hdf5   %ld reads of %llu bytes; the chunks that it touches have %llu\n", j->name,
           c.reads, (unsigned long long)c.bytes, (unsigned long long)c.needed);
    return 0;
}

/* Superblock and one attribute out of memory. */
static int run_parse(const char *file, const char *name)
{
    enum { RUNS = 200, TIMES = 1000 };
    static unsigned char bytes[1 << 14];
    bench_samples times = {0};
    FILE *in = fopen(file, "rb");
    double value = 0;
    int rc = in != NULL ? 0 : -1;
    size_t n = rc == 0 ? fread(bytes, 1, sizeof bytes, in) : 0;
    for (int i = -WARM; i < RUNS && rc == 0; i++) {
        uint64_t start = bench_now();
        for (int k = 0; k < TIMES && rc == 0; k++) {
            rc = h5bench_parse(bytes, n, &value);
        }
        double ns = (double)(bench_now() - start) / TIMES;
        rc = rc == 0 && value == H5BENCH_ATTRIBUTE ? 0 : -1;
        rc = rc == 0 && i >= 0 ? bench_add(&times, ns) : rc;
    }
    if (in != NULL) {
        fclose(in);
    }
    if (rc == 0) {
        double p50 = bench_quantile(&times, 0.5);
        printf("%-28s hdf5   ours", name);
        bench_print_time(p50);
        printf("  p95");
        bench_print_time(bench_quantile(&times, 0.95));
        printf("  %zu bytes  check ok", n);
        bench_print_target(p50 / 1e6, 400e-6, 0);
        printf("\n");
    }
    bench_samples_free(&times);
    return rc;
}

static int wanted(const char *filter, const char *name)
{
    return filter == NULL || strstr(name, filter) != NULL || strstr("hdf5", filter) != NULL;
}

static int run_all(runner *r, const char *filter)
{
    int failures = 0;
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        if (!wanted(filter, jobs[i].name)) {
            continue;
        }
        int rc = run_job(r, &jobs[i]);
        if (rc == 0 && jobs[i].cost) {
            rc = run_cost(r, &jobs[i]);
        }
        if (rc != 0) {
            printf("%-28s hdf5   FAILED\n", jobs[i].name);
        }
        failures += rc != 0;
    }
    if (wanted(filter, "parse_attribute_old")) {
        failures += run_parse("tiny_old.h5", "parse_attribute_old") != 0;
    }
    if (wanted(filter, "parse_attribute_new")) {
        failures += run_parse("tiny_new.h5", "parse_attribute_new") != 0;
    }
    return failures;
}

/* ---- the program */

static int open_sql(runner *r, const char *module)
{
    char *error = NULL;
    int rc = sqlite3_open(":memory:", &r->db);
    sqlite3_enable_load_extension(r->db, 1);
    rc = rc == SQLITE_OK ? sqlite3_load_extension(r->db, module, NULL, &error) : rc;
    rc = rc == SQLITE_OK ? sqlite3_exec(r->db,
                                        "CREATE VIRTUAL TABLE records USING "
                                        "hdf5('records.h5', '/records')",
                                        NULL, NULL, &error)
                         : rc;
    if (rc != SQLITE_OK) {
        fprintf(stderr, "%s: %s\n", module, error ? error : sqlite3_errmsg(r->db));
    }
    sqlite3_free(error);
    return rc == SQLITE_OK ? 0 : -1;
}

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *where)
{
    (void)st;
    (void)flag;
    (void)where;
    return remove(path);
}

static int run_in(const char *folder, const char *module, const char *filter)
{
    const size_t most = (size_t)H5BENCH_SIDE * H5BENCH_SIDE;
    runner r = {.a = calloc(most, sizeof *r.a),
                .b = calloc(most, sizeof *r.b),
                .records = calloc(H5BENCH_RECORDS, sizeof *r.records)};
    int failures = 1;
    if (bench_out_open(&r.out) != 0) { // before chdir: its name may be relative
        return 1;
    }
    if (!r.a || !r.b || !r.records) {
        fprintf(stderr, "out of memory\n");
    } else if (chdir(folder) != 0) {
        perror(folder);
    } else if (h5bench_files() == 0 && open_sql(&r, module) == 0) {
        printf("libhdf5 %s, files made by it\n", h5bench_peer_version());
        failures = run_all(&r, filter);
    }
    bench_out_close(&r.out);
    sqlite3_close(r.db);
    free(r.a);
    free(r.b);
    free(r.records);
    return failures;
}

int main(int argc, char **argv)
{
    char module[PATH_MAX] = "", folder[PATH_MAX];
    const char *filter = NULL, *tmp = getenv("TMPDIR");
    for (int at = 1; at + 1 < argc; at += 2) {
        if (!strcmp(argv[at], "--module") && realpath(argv[at + 1], module)) {
            continue;
        }
        if (!strcmp(argv[at], "--filter")) {
            filter = argv[at + 1];
            continue;
        }
        fprintf(stderr, "%s %s: unknown, or no such file\n", argv[at], argv[at + 1]);
        return 2;
    }
    snprintf(folder, sizeof folder, "%s/h5mem-hdf5-XXXXXX", tmp ? tmp : "/tmp");
    if (!module[0] || mkdtemp(folder) == NULL) {
        fprintf(stderr, "h5bench --module PATH [--filter WORD]\n");
        return 2;
    }
    int failures = run_in(folder, module, filter);
    if (nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS) != 0) {
        perror(folder);
    }
    if (failures) {
        printf("%d failed\n", failures);
    }
    return failures ? 1 : 0;
}
