/*
 * sql_door_claw.c - 'clawhdf5' in: the live rows of a file in the layout of sql_claw.h.
 *
 * Rows get fresh ids: there a row is a place in the file. One that h5mem wrote has ids, which are
 * kept where they are free, as in an import of 'h5mem', and the columns of /h5mem. Deleted rows are
 * passed over. An empty session, channel or tags becomes NULL, as does an embedding of zeros.
 *
 * The file is read in blocks; columns may be of any length of string up to 16 MiB and any width of
 * number. Rows that stand only in the log beside it (NAME.h5.wal) are an error: its own program
 * merges them at the next open.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sql_claw.h"

enum { BLOCK = 1 << 20, ELEMENT_MAX = 1 << 24, COLUMNS_MAX = 20, LOG_HEAD = 9 };

/* A dataset with an element a row. */
typedef struct column {
    const sql_claw_column *c;
    h5_object *o;
    const h5_dataset_info *info;
    uint64_t at, n; /* rows in the block */
    size_t rows;    /* that fit in */
    size_t bytes;   /* a row */
    uint8_t *block;
} column;

typedef struct reader {
    sql_door *d;
    h5_io *io;
    h5_file *f;
    uint64_t n;
    column column[COLUMNS_MAX];
    int ncolumn;
    column vector, tombstone; /* o NULL: not there */
} reader;

static int core(reader *r, int rc, const h5_error *e)
{
    return rc == H5_OK ? SQLITE_OK : sql_door_fail_h5(r->d, e);
}

/* ----------------------------------------------------------------------------------- opening */

// NAME.h5.wal, whatever the ending of the file's own name is.
static int check_log(reader *r, const char *path)
{
    struct stat st;
    const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
    size_t n = dot && dot > (slash ? slash + 1 : path) ? (size_t)(dot - path) : strlen(path);
    char *log = sqlite3_mprintf("%.*s.h5.wal", (int)n, path);
    if (!log) {
        return SQLITE_NOMEM;
    }
    int rc = SQLITE_OK;
    if (stat(log, &st) == 0 && st.st_size > LOG_HEAD) {
        rc = sql_door_fail(r->d, SQLITE_ERROR,
                           "%s holds rows that are not in the file yet; open and flush the store "
                           "with its own program first",
                           sql_base_name(log));
    }
    sqlite3_free(log);
    return rc;
}

static int check_meta(reader *r)
{
    h5_object *o;
    h5_error e = {0};
    char *version = NULL;
    int64_t dim = 0, ours = st_conn_info(r->d->t->store->conn)->dim;
    int st = h5_object_find(r->f, "/meta", &o, &e);
    if (st == H5_NOTFOUND) {
        return sql_door_fail(r->d, SQLITE_ERROR, "is no clawhdf5 store: it has no /meta");
    }
    if (st != H5_OK) {
        return core(r, st, &e);
    }
    int rc = SQLITE_OK;
    if (h5_attr_text(o, "schema_version", &version, &e) != H5_OK) {
        version = NULL;
        rc = sql_door_fail(r->d, SQLITE_ERROR, "is no clawhdf5 store: schema_version of /meta: %s",
                           e.text);
    } else if (strcmp(version, "1.0") != 0) {
        rc = sql_door_fail(r->d, SQLITE_ERROR, "schema_version is '%.60s'; '1.0' is read", version);
    } else if ((st = h5_attr_int(o, "embedding_dim", &dim, &e)) != H5_OK) {
        rc = core(r, st, &e);
    } else if (dim != ours) {
        rc = sql_door_fail(r->d, SQLITE_ERROR, "embedding_dim is %lld, dim of the table is %lld",
                           (long long)dim, (long long)ours);
    }
    h5_free(version);
    h5_object_close(o);
    return rc;
}

// The dataset must have n rows; *there: it may be missing, and is.
static int open_column(reader *r, const char *group, const char *name, int rank, column *out,
                       int *there)
{
    char path[64];
    h5_error e = {0};
    sqlite3_snprintf(sizeof path, path, "/%s/%s", group, name);
    memset(out, 0, sizeof *out);
    int st = h5_object_find(r->f, path, &out->o, &e);
    if (there) {
        *there = st == H5_OK;
        if (st == H5_NOTFOUND) {
            out->o = NULL;
            return SQLITE_OK;
        }
    }
    if (st != H5_OK) {
        out->o = NULL;
        return core(r, st, &e);
    }
    out->info = h5_object_dataset(out->o);
    if (!out->info || out->info->rank != rank) {
        return sql_door_fail(r->d, SQLITE_ERROR, "%s is no dataset of %d dimension%s", path, rank,
                             rank > 1 ? "s" : "");
    }
    out->bytes = out->info->type.size;
    if (rank == 2) {
        uint64_t dim = (uint64_t)st_conn_info(r->d->t->store->conn)->dim;
        if (out->info->dims[0] > 0 && out->info->dims[1] != dim) {
            return sql_door_fail(r->d, SQLITE_ERROR, "%s has %lld values a row, dim is %lld", path,
                                 (long long)out->info->dims[1], (long long)dim);
        }
        out->bytes *= (size_t)dim;
    }
    if (out->bytes == 0 || out->bytes > ELEMENT_MAX) {
        return sql_door_fail(r->d, SQLITE_TOOBIG, "%s has elements of %lld bytes; at most %d", path,
                             (long long)out->bytes, ELEMENT_MAX);
    }
    out->rows = BLOCK / out->bytes ? BLOCK / out->bytes : 1;
    return SQLITE_OK;
}

static int check_rows(reader *r, const char *name, const column *c)
{
    if (c->info->dims[0] != r->n) {
        return sql_door_fail(r->d, SQLITE_CORRUPT, "%s has %lld rows, chunks has %lld", name,
                             (long long)c->info->dims[0], (long long)r->n);
    }
    return SQLITE_OK;
}

static int check_kind(reader *r, const sql_claw_column *want, const h5_type *t)
{
    uint64_t bits;
    double x;
    uint8_t zero[16] = {0};
    int ok = want->kind == 's'   ? t->cls == H5_CLASS_STRING
             : t->size > 16      ? 0
             : want->kind == 'f' ? h5_value_real(t, zero, &x)
                                 : h5_value_bits(t, zero, &bits);
    return ok ? SQLITE_OK
              : sql_door_fail(r->d, SQLITE_ERROR, "%s has elements of another type than %s",
                              want->name,
                              want->kind == 's' ? "strings of fixed length" : "numbers");
}

static int open_columns(reader *r, const char *group, const sql_claw_column *c, int must)
{
    int rc = SQLITE_OK;
    for (; c->name && rc == SQLITE_OK; c++) {
        column *to = &r->column[r->ncolumn];
        int there = 1;
        rc = open_column(r, group, c->name, 1, to, must ? NULL : &there);
        to->c = c;
        r->ncolumn += to->o != NULL; // to be closed
        if (rc == SQLITE_OK && there && r->ncolumn == 1) {
            r->n = to->info->dims[0];
        }
        if (rc == SQLITE_OK && there) {
            rc = check_rows(r, c->name, to);
            rc = rc == SQLITE_OK && r->n > 0 ? check_kind(r, c, &to->info->type) : rc;
        }
    }
    return rc;
}

// How many rows there are is said by `chunks`, the first.
static int open_all(reader *r)
{
    uint64_t size;
    h5_error e = {0};
    int there;
    static const sql_claw_column dead = {"tombstones", ST_COL_VALID_TO, 'u', 1};
    int rc = open_columns(r, "memory", sql_claw_memory, 1);
    if (rc != SQLITE_OK || r->n == 0) {
        return rc;
    }
    rc = core(r, r->io->size(r->io, &size, &e), &e);
    if (rc == SQLITE_OK && r->n > size) {
        rc = sql_door_fail(r->d, SQLITE_CORRUPT, "%lld rows in a file of %lld bytes",
                           (long long)r->n, (long long)size);
    }
    rc = rc == SQLITE_OK ? open_column(r, "memory", "embeddings", 2, &r->vector, NULL) : rc;
    rc = rc == SQLITE_OK ? check_rows(r, "embeddings", &r->vector) : rc;
    if (rc == SQLITE_OK &&
        (r->vector.info->type.cls != H5_CLASS_FLOAT || r->vector.info->type.size != 4)) {
        rc = sql_door_fail(r->d, SQLITE_ERROR, "embeddings are no 32-bit floats");
    }
    rc = rc == SQLITE_OK ? open_column(r, "memory", "tombstones", 1, &r->tombstone, &there) : rc;
    if (rc == SQLITE_OK && there) {
        rc = check_rows(r, "tombstones", &r->tombstone);
        rc = rc == SQLITE_OK ? check_kind(r, &dead, &r->tombstone.info->type) : rc;
    }
    return rc == SQLITE_OK ? open_columns(r, "h5mem", sql_claw_ours, 0) : rc;
}

/* ------------------------------------------------------------------------------------- rows */

// Where row i of a column is; valid until the next block is read.
static int element(reader *r, column *c, uint64_t i, int native, const uint8_t **p)
{
    h5_error e = {0};
    if (!c->block && !(c->block = sqlite3_malloc64(c->rows * c->bytes))) {
        return SQLITE_NOMEM;
    }
    if (i < c->at || i >= c->at + c->n) {
        uint64_t start[2] = {i, 0}, count[2] = {c->rows, c->info->rank > 1 ? c->info->dims[1] : 0};
        count[0] = r->n - i < count[0] ? r->n - i : count[0];
        c->n = 0;
        int st = (native ? h5_dataset_read : h5_dataset_read_stored)(
            h5_object_file(c->o), c->o, start, count, c->block, (size_t)count[0] * c->bytes, &e);
        if (st != H5_OK) {
            return core(r, st, &e);
        }
        c->at = i;
        c->n = count[0];
    }
    *p = c->block + (size_t)(i - c->at) * c->bytes;
    return SQLITE_OK;
}

static void take(reader *r, const column *c, const uint8_t *p)
{
    const h5_type *t = &c->info->type;
    st_value *v = &r->d->value[c->c->col];
    uint64_t bits = 0;
    memset(v, 0, sizeof *v);
    r->d->given[c->c->col] = 1;
    if (c->c->kind == 's') {
        v->n = h5_value_text(t, p);
        v->p = p;
        v->type = v->n > 0 || c->c->col == ST_COL_CONTENT ? ST_TEXT : ST_NULL;
    } else if (c->c->kind == 'f') {
        h5_value_real(t, p, &v->r);
        v->type = isnan(v->r) ? ST_NULL : ST_REAL;
    } else {
        h5_value_bits(t, p, &bits);
        v->i = (int64_t)bits;
        v->type = v->i == SQL_CLAW_NULL ? ST_NULL : ST_INT;
    }
}

static int take_vector(reader *r, uint64_t i)
{
    const uint8_t *p;
    int rc = element(r, &r->vector, i, 1, &p);
    int some = 0;
    for (size_t k = 0; rc == SQLITE_OK && k < r->vector.bytes && !some; k += sizeof(float)) {
        float x;
        memcpy(&x, p + k, sizeof x);
        some = !(x == 0);
    }
    if (rc == SQLITE_OK && some) {
        r->d->value[ST_COL_EMBEDDING] = (st_value){.type = ST_BLOB, .p = p, .n = r->vector.bytes};
        r->d->given[ST_COL_EMBEDDING] = 1;
    }
    return rc;
}

static int is_dead(reader *r, uint64_t i, int *dead)
{
    const uint8_t *p;
    uint64_t bits = 0;
    *dead = 0;
    int rc = r->tombstone.o ? element(r, &r->tombstone, i, 0, &p) : SQLITE_DONE;
    if (rc == SQLITE_OK) {
        h5_value_bits(&r->tombstone.info->type, p, &bits);
        *dead = bits != 0;
    }
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int read_row(reader *r, uint64_t i)
{
    sql_door *d = r->d;
    int dead;
    int rc = is_dead(r, i, &dead);
    sql_door_clear(d);
    for (int k = 0; k < r->ncolumn && rc == SQLITE_OK; k++) {
        const uint8_t *p;
        rc = element(r, &r->column[k], i, 0, &p);
        if (rc == SQLITE_OK) {
            take(r, &r->column[k], p);
        }
    }
    // superseded rows are hidden there as well
    if (rc != SQLITE_OK || (dead && d->value[ST_COL_VALID_TO].type == ST_NULL)) {
        return rc;
    }
    rc = take_vector(r, i);
    return rc == SQLITE_OK ? sql_door_add(d, 0) : rc;
}

static void close_column(column *c)
{
    if (c->o) {
        h5_object_close(c->o);
    }
    sqlite3_free(c->block);
}

int sql_claw_import(sql_door *d, const char *path)
{
    reader r;
    h5_error e = {0};
    memset(&r, 0, sizeof r);
    r.d = d;
    d->unit = "row";
    int st = h5_io_file(path, H5_IO_READ, &r.io, &e);
    if (st != H5_OK) {
        return sql_door_fail_open(d, path, &e);
    }
    st = h5_file_open(r.io, &r.f, &e);
    int rc = core(&r, st, &e);
    r.f = st == H5_OK ? r.f : NULL;
    rc = rc == SQLITE_OK ? check_meta(&r) : rc;
    rc = rc == SQLITE_OK ? check_log(&r, path) : rc;
    rc = rc == SQLITE_OK ? open_all(&r) : rc;
    for (uint64_t i = 0; i < r.n && rc == SQLITE_OK; i++) {
        d->line = (int64_t)i + 1;
        rc = read_row(&r, i);
    }
    d->line = 0;
    rc = rc == SQLITE_OK ? sql_door_link(d) : rc;
    for (int i = 0; i < r.ncolumn; i++) {
        close_column(&r.column[i]);
    }
    close_column(&r.vector);
    close_column(&r.tombstone);
    if (r.f) {
        h5_file_close(r.f);
    }
    r.io->close(r.io);
    return rc;
}
