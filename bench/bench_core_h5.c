/*
 * bench_core_h5.c - plain HDF5 files without SQL, and the file that these rows read
 *
 * FILE   bench_h5(path), an SQL function, makes it with hdf5core's own writer:
 *          f32_N, f64_N   contiguous ramps 0, 0.5, 1, ... of N = 1000, 10000, 100000 numbers
 *          c64, c256, c512   squares of f32 in chunks of 32 rows; z512 the same, shuffled and
 *                            deflated
 *          a4, a16, a64, a128   groups with so many whole-number attributes; s4, s16, s64 with
 *                               texts of 12 bytes
 *          g4 .. g64   groups of so many groups; d64 a group of 64 datasets of 100 numbers
 *
 * CALLS  h5:HOW/OBJECT, each run from opening to closing. HOW: disk (the file), ram (its bytes),
 *        map (values where they lie, all of them read), tenth (the first tenth, from disk).
 *        Datasets answer how many numbers and their sum; groups how many attributes and their sum
 *        or length; groups without attributes how many members, and opens each.
 *
 * OWNERSHIP  load makes a state, done frees it. THREADS one.
 * SPDX-License-Identifier: MIT
 */
#include "bench.h"
#include "h5core.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 100000, SIDE = 512, STRIP = 32, TEXT = 12, SMALL = 100 };
static const char FILE_NAME[] = "bench.h5";

/* ---- the file */

typedef struct maker {
    h5_writer *w;
    h5_link link[64];
    char name[64][16];
    size_t nlink;
    h5_error err;
    int rc;
} maker;

static void linked(maker *m, uint64_t at, const char *stem, int n)
{
    snprintf(m->name[m->nlink], sizeof m->name[0], "%s%d", stem, n);
    m->link[m->nlink] = (h5_link){m->name[m->nlink], at};
    m->nlink++;
}

// numbers 0, 0.5, 1, ... as f32 or f64
static void *ramp(size_t n, size_t size)
{
    char *p = malloc(n * size);
    for (size_t i = 0; p && i < n; i++) {
        float f = (float)i * 0.5f;
        double d = (double)i * 0.5;
        memcpy(p + i * size, size == sizeof f ? (void *)&f : (void *)&d, size);
    }
    return p;
}

static uint64_t contiguous(maker *m, uint64_t n, uint32_t size)
{
    uint64_t at = 0, object = 0;
    void *values = ramp((size_t)n, size);
    h5_dataset_spec d = {.rank = 1, .dims = &n};
    m->rc = m->rc ? m->rc : values ? h5_type_number('f', size, &d.type) : H5_NOMEM;
    m->rc = m->rc ? m->rc : h5_writer_append(m->w, values, (size_t)n * size, 8, &at, &m->err);
    d.addr = at;
    m->rc = m->rc ? m->rc : h5_write_dataset(m->w, &d, &object, &m->err);
    free(values);
    return object;
}

static const h5_pipeline DEFLATED = {
    .n = 2,
    .filter = {{.id = H5_FILTER_SHUFFLE, .nvalue = 1, .value = {4}},
               {.id = H5_FILTER_DEFLATE, .nvalue = 1, .value = {6}}}};

static uint64_t square(maker *m, uint64_t side, const h5_pipeline *pipeline)
{
    uint64_t dims[2] = {side, side}, n = side / STRIP, index = 0, object = 0;
    uint32_t chunk[2] = {STRIP, (uint32_t)side};
    size_t bytes = STRIP * (size_t)side * sizeof(float);
    h5_chunk chunks[SIDE / STRIP] = {{0}};
    char *values = ramp((size_t)(side * side), sizeof(float));
    m->rc = m->rc ? m->rc : values ? H5_OK : H5_NOMEM;
    for (uint64_t i = 0; i < n && m->rc == H5_OK; i++) {
        void *packed = values + i * bytes;
        size_t size = bytes;
        if (pipeline) {
            m->rc = h5_pipeline_encode(pipeline, values + i * bytes, bytes, &packed, &size,
                                       &chunks[i].mask, &m->err);
        }
        chunks[i].size = size;
        m->rc = m->rc ? m->rc : h5_writer_append(m->w, packed, size, 8, &chunks[i].addr, &m->err);
        if (pipeline) {
            h5_free(packed);
        }
    }
    h5_dataset_spec d = {
        .rank = 2, .dims = dims, .maxdims = dims, .chunk = chunk, .pipeline = pipeline};
    m->rc = m->rc ? m->rc
                  : h5_write_fixed_array(m->w, chunks, n, pipeline != NULL, bytes, &index, &m->err);
    d.addr = index;
    m->rc = m->rc ? m->rc : h5_type_number('f', 4, &d.type);
    m->rc = m->rc ? m->rc : h5_write_dataset(m->w, &d, &object, &m->err);
    free(values);
    return object;
}

static uint64_t attributes(maker *m, int n, char kind)
{
    h5_attr_spec spec[128];
    char name[128][8];
    uint64_t at = 0;
    for (int i = 0; i < n; i++) {
        snprintf(name[i], sizeof name[i], "a%d", i);
        spec[i] = (h5_attr_spec){.name = name[i], .kind = kind, .i = i, .s = "twelve bytes"};
    }
    m->rc = m->rc ? m->rc : h5_write_group(m->w, NULL, 0, spec, (size_t)n, &at, &m->err);
    return at;
}

// a group of n empty groups, or of n small datasets
static uint64_t members(maker *m, int n, int datasets)
{
    h5_link link[64];
    char name[64][8];
    uint64_t at = 0;
    for (int i = 0; i < n; i++) {
        snprintf(name[i], sizeof name[i], "m%d", i);
        link[i].name = name[i];
        link[i].addr = 0;
        if (datasets) {
            link[i].addr = contiguous(m, SMALL, 4);
        } else if (m->rc == H5_OK) {
            m->rc = h5_write_group(m->w, NULL, 0, NULL, 0, &link[i].addr, &m->err);
        }
    }
    m->rc = m->rc ? m->rc : h5_write_group(m->w, link, (size_t)n, NULL, 0, &at, &m->err);
    return at;
}

static int make_objects(maker *m)
{
    static const int counts[] = {4, 16, 64, 128};
    for (int n = 1000; n <= MOST; n *= 10) {
        linked(m, contiguous(m, (uint64_t)n, 4), "f32_", n);
        linked(m, contiguous(m, (uint64_t)n, 8), "f64_", n);
    }
    for (int side = 64; side <= SIDE; side *= side == 64 ? 4 : 2) {
        linked(m, square(m, (uint64_t)side, NULL), "c", side);
    }
    linked(m, square(m, SIDE, &DEFLATED), "z", SIDE);
    for (int i = 0; i < 4; i++) {
        linked(m, attributes(m, counts[i], 'i'), "a", counts[i]);
        linked(m, attributes(m, counts[i], 's'), "s", counts[i]);
        if (counts[i] <= 64) {
            linked(m, members(m, counts[i], 0), "g", counts[i]);
            linked(m, members(m, counts[i], 1), "d", counts[i]);
        }
    }
    return m->rc;
}

static int make_file(const char *path, h5_error *err)
{
    maker m = {0};
    h5_io *io;
    uint64_t root = 0;
    uint8_t head[H5_SUPERBLOCK_BYTES];
    int rc = h5_io_file(path, H5_IO_WRITE | H5_IO_CREATE, &io, err);
    if (rc != H5_OK) {
        return rc;
    }
    h5_error_clear(&m.err);
    rc = h5_writer_new(io, H5_SUPERBLOCK_BYTES, &m.w, &m.err);
    rc = rc ? rc : make_objects(&m);
    rc = rc ? rc : h5_write_group(m.w, m.link, m.nlink, NULL, 0, &root, &m.err);
    rc = rc ? rc : h5_writer_flush(m.w, &m.err);
    h5_superblock_pack(root, rc ? 0 : h5_writer_eof(m.w), head);
    rc = rc ? rc : io->write(io, 0, head, sizeof head, &m.err);
    h5_writer_free(m.w);
    io->close(io);
    *err = m.err;
    return rc;
}

static void fn_h5(sqlite3_context *ctx, int n, sqlite3_value **v)
{
    h5_error err;
    const char *path = (const char *)sqlite3_value_text(v[0]);
    (void)n;
    h5_error_clear(&err);
    int rc = path ? make_file(path, &err) : H5_MISUSE;
    if (rc == H5_OK) {
        sqlite3_result_int(ctx, 1);
    } else {
        sqlite3_result_error(ctx, err.text, -1);
    }
}

// the sum of a blob of floats
static void fn_sum(sqlite3_context *ctx, int n, sqlite3_value **v)
{
    const char *p = sqlite3_value_blob(v[0]);
    size_t size = sqlite3_value_int(v[1]) == 8 ? sizeof(double) : sizeof(float);
    double sum = 0;
    (void)n;
    for (size_t at = 0; at + size <= (size_t)sqlite3_value_bytes(v[0]); at += size) {
        float f;
        double d;
        memcpy(size == sizeof f ? (void *)&f : (void *)&d, p + at, size);
        sum += size == sizeof f ? f : d;
    }
    sqlite3_result_double(ctx, sum);
}

int bench_register_h5(sqlite3 *db)
{
    return sqlite3_create_function_v2(db, "bench_h5", 1, SQLITE_UTF8, NULL, fn_h5, NULL, NULL,
                                      NULL) == SQLITE_OK &&
                   sqlite3_create_function_v2(db, "bench_sum", 2, SQLITE_UTF8, NULL, fn_sum, NULL,
                                              NULL, NULL) == SQLITE_OK
               ? 0
               : -1;
}

/* ---- reading */

typedef struct reader {
    char how;         /* d, r, m or t */
    const char *path; /* of the object */
    char *bytes;      /* ram: the whole file */
    size_t nbytes;
    char *values; /* where they are read to */
} reader;

static void reader_done(void *state)
{
    reader *r = state;
    free(r->bytes);
    free(r->values);
    free(r);
}

static int reader_load(sqlite3_stmt *rows, const char *arg, void **out)
{
    reader *r = *out = calloc(1, sizeof *r);
    const char *slash = strchr(arg, '/');
    (void)rows;
    FILE *f = fopen(FILE_NAME, "rb");
    int rc = r && slash && f && fseek(f, 0, SEEK_END) == 0 ? 0 : -1;
    if (rc == 0) {
        r->how = *arg;
        r->path = slash;
        r->nbytes = (size_t)ftell(f);
        r->bytes = malloc(r->nbytes);
        r->values = malloc((size_t)SIDE * SIDE * sizeof(double));
        rewind(f);
        rc = r->bytes && r->values && fread(r->bytes, 1, r->nbytes, f) == r->nbytes ? 0 : -1;
    }
    if (f) {
        fclose(f);
    }
    return rc;
}

static double sum_of(const char *p, size_t n, size_t size)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        float f;
        double d;
        memcpy(size == sizeof f ? (void *)&f : (void *)&d, p + i * size, size);
        sum += size == sizeof f ? f : d;
    }
    return sum;
}

/* Values are looked at where reading does not copy them; else the last one vouches for them. */
static int read_values(const reader *r, h5_file *f, h5_object *o, bench_answer *out, h5_error *err)
{
    const h5_dataset_info *d = h5_object_dataset(o);
    uint64_t start[2] = {0}, count[2] = {d->dims[0], d->rank == 2 ? d->dims[1] : 1};
    size_t size = d->type.size, bytes;
    const void *p = r->values;
    count[0] = r->how == 't' ? count[0] / 10 : count[0];
    bytes = (size_t)(count[0] * count[1]) * size;
    int rc = r->how == 'm' ? h5_dataset_view(f, o, &p, &bytes, err)
                           : h5_dataset_read(f, o, start, count, r->values, bytes, err);
    if (rc == H5_OK) {
        size_t n = bytes / size;
        out->id[0] = (int64_t)n;
        out->value[0] = r->how == 'm' ? sum_of(p, n, size)
                                      : sum_of((const char *)p + (n - 1) * size, 1, size);
    }
    return rc;
}

static int read_group(h5_file *f, h5_object *o, bench_answer *out, h5_error *err)
{
    const h5_attr *attr;
    const h5_link *link;
    size_t nattr = h5_object_attrs(o, &attr), nlink = h5_object_links(o, &link);
    int rc = H5_OK;
    for (size_t i = 0; i < nattr; i++) {
        uint64_t number = 0;
        if (!h5_value_bits(&attr[i].type, attr[i].data, &number)) {
            number = h5_value_text(&attr[i].type, attr[i].data);
        }
        out->value[0] += (double)number;
    }
    for (size_t i = 0; i < nlink && rc == H5_OK; i++) {
        h5_object *member;
        rc = h5_object_open(f, link[i].addr, &member, err);
        if (rc == H5_OK) {
            out->value[0] += h5_object_kind(member) == H5_KIND_DATASET ? SMALL : 1;
            h5_object_close(member);
        }
    }
    out->id[0] = (int64_t)(nattr + nlink);
    return rc;
}

static int reader_run(void *state, const bench_value *values, bench_answer *out)
{
    reader *r = state;
    h5_error err;
    h5_io *io = NULL;
    h5_file *f = NULL;
    h5_object *o = NULL;
    (void)values;
    h5_error_clear(&err);
    *out = (bench_answer){.n = 1};
    int rc = r->how == 'r'   ? h5_io_bytes(r->bytes, r->nbytes, &io, &err)
             : r->how == 'm' ? h5_io_mapped(FILE_NAME, &io, &err)
                             : h5_io_file(FILE_NAME, H5_IO_READ, &io, &err);
    rc = rc ? rc : h5_file_open(io, &f, &err);
    rc = rc ? rc : h5_object_find(f, r->path, &o, &err);
    if (rc == H5_OK) {
        rc = h5_object_dataset(o) ? read_values(r, f, o, out, &err) : read_group(f, o, out, &err);
    }
    h5_object_close(o);
    h5_file_close(f);
    if (io) {
        io->close(io);
    }
    if (rc != H5_OK) {
        fprintf(stderr, "%s%s: %s\n", FILE_NAME, r->path, err.text);
    }
    return rc == H5_OK ? 0 : -1;
}

const bench_core bench_cores_h5[] = {
    {"h5", reader_load, reader_run, reader_done},
    {NULL, NULL, NULL, NULL},
};
