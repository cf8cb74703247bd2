/*
 * sql_door_claw_out.c - 'clawhdf5' out: a new file in the layout of sql_claw.h.
 *
 * A column at a time, in blocks, so that memory stays small whatever the store holds. A column of
 * strings is as wide as its longest; from 4 KiB on it is chunked, shuffled and deflated.
 *
 * Rows that are superseded have their tombstone set: hidden there as they are here. What the layout
 * cannot hold: user columns, the NULs that a text ends with, texts beyond 16 MiB.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <string.h>
#include <time.h>

#include "sql_claw.h"
#include "vec.h"

enum { BLOCK = 1 << 16, VECTOR_BLOCK = 1 << 18, TEXT_MAX = 1 << 24, MEMBERS = 16 };

const sql_claw_column sql_claw_memory[] = {{"chunks", ST_COL_CONTENT, 's', 0},
                                           {"source_channel", ST_COL_CHANNEL, 's', 0},
                                           {"session_ids", ST_COL_SESSION, 's', 0},
                                           {"tags", ST_COL_TAGS, 's', 0},
                                           {"timestamps", ST_COL_TIMESTAMP, 'f', 8},
                                           {"activation_weights", ST_COL_ACTIVATION, 'f', 4},
                                           {NULL, 0, 0, 0}};
const sql_claw_column sql_claw_ours[] = {{"id", ST_COL_ID, 'i', 8},
                                         {"source", ST_COL_SOURCE, 's', 0},
                                         {"tier", ST_COL_TIER, 's', 0},
                                         {"importance", ST_COL_IMPORTANCE, 'f', 8},
                                         {"activation", ST_COL_ACTIVATION, 'f', 8},
                                         {"access_count", ST_COL_ACCESS_COUNT, 'i', 8},
                                         {"last_access", ST_COL_LAST_ACCESS, 'f', 8},
                                         {"valid_from", ST_COL_VALID_FROM, 'f', 8},
                                         {"valid_to", ST_COL_VALID_TO, 'f', 8},
                                         {"superseded_by", ST_COL_SUPERSEDED_BY, 'i', 8},
                                         {"pinned", ST_COL_PINNED, 'i', 8},
                                         {NULL, 0, 0, 0}};

typedef struct writer {
    sql_door *d;
    h5_writer *w;
    uint64_t *row; /* positions in the view, by id */
    size_t n, room;
    h5_link link[MEMBERS]; /* of the group that is being written */
    size_t nlink;
    uint8_t *block;
    size_t room_block;
} writer;

static int core(writer *w, int rc, const h5_error *e)
{
    return rc == H5_OK ? SQLITE_OK : sql_door_fail_h5(w->d, e);
}

static int note(void *ctx, uint64_t row, int64_t id)
{
    writer *w = ctx;
    (void)id;
    if (w->n == w->room) {
        size_t room = w->room * 2 + 256;
        uint64_t *more = sqlite3_realloc64(w->row, room * sizeof *more);
        if (!more) {
            return SQLITE_NOMEM;
        }
        w->row = more;
        w->room = room;
    }
    w->row[w->n++] = row;
    return SQLITE_OK;
}

static int block(writer *w, size_t bytes)
{
    if (bytes > w->room_block) {
        uint8_t *more = sqlite3_realloc64(w->block, bytes);
        if (!more) {
            return SQLITE_NOMEM;
        }
        w->block = more;
        w->room_block = bytes;
    }
    memset(w->block, 0, bytes);
    return SQLITE_OK;
}

/* ------------------------------------------------------------------------------------- datasets */

static int member(writer *w, const char *name, uint64_t at)
{
    w->link[w->nlink++] = (h5_link){name, at};
    return SQLITE_OK;
}

static int put_dataset(writer *w, const char *name, const h5_dataset_spec *d)
{
    uint64_t at;
    h5_error e = {0};
    int rc = core(w, h5_write_dataset(w->w, d, &at, &e), &e);
    return rc == SQLITE_OK ? member(w, name, at) : rc;
}

static int group(writer *w, const h5_attr_spec *attrs, size_t nattr, uint64_t *at)
{
    h5_error e = {0};
    int rc = core(w, h5_write_group(w->w, w->link, w->nlink, attrs, nattr, at, &e), &e);
    w->nlink = 0;
    return rc;
}

/* Elements [a, a + k) of a column into the block, which is zeros. */
typedef int fill_fn(writer *w, const sql_claw_column *c, const h5_type *t, size_t a, size_t k);

// Contiguous, written block by block.
static int put_plain(writer *w, const sql_claw_column *c, const h5_type *t, fill_fn *fill)
{
    uint64_t dims = w->n, at = H5_UNDEF, next;
    h5_error e = {0};
    size_t rows = BLOCK / t->size ? BLOCK / t->size : 1;
    int rc = SQLITE_OK;
    for (size_t a = 0; a < w->n && rc == SQLITE_OK; a += rows) {
        size_t k = w->n - a < rows ? w->n - a : rows;
        rc = block(w, k * t->size);
        rc = rc == SQLITE_OK ? fill(w, c, t, a, k) : rc;
        if (rc == SQLITE_OK) {
            // blocks but the first follow without a gap
            rc = core(w, h5_writer_append(w->w, w->block, k * t->size, a ? 1 : 8, &next, &e), &e);
            at = a ? at : next;
        }
    }
    h5_dataset_spec d = {.type = *t, .rank = 1, .dims = &dims, .addr = at};
    return rc == SQLITE_OK ? put_dataset(w, c->name, &d) : rc;
}

// Chunks of `rows` rows of the second dimension's elements, through the filters.
static int put_chunked(writer *w, const sql_claw_column *c, const h5_type *t, uint64_t second,
                       size_t rows, const h5_pipeline *filters, fill_fn *fill)
{
    size_t n = (w->n + rows - 1) / rows, bytes = rows * (size_t)second * t->size;
    uint64_t dims[2] = {w->n, second}, most[2] = {n * rows, second}, at = 0;
    uint32_t shape[2] = {(uint32_t)rows, (uint32_t)second};
    h5_chunk *chunk = sqlite3_malloc64(n * sizeof *chunk);
    h5_error e = {0};
    int rc = chunk ? SQLITE_OK : SQLITE_NOMEM;
    for (size_t i = 0; i < n && rc == SQLITE_OK; i++) {
        void *stored = NULL;
        size_t k = w->n - i * rows < rows ? w->n - i * rows : rows;
        chunk[i] = (h5_chunk){0, bytes, 0};
        rc = block(w, bytes);
        rc = rc == SQLITE_OK ? fill(w, c, t, i * rows, k) : rc;
        if (rc == SQLITE_OK && filters) {
            size_t size;
            rc = core(
                w, h5_pipeline_encode(filters, w->block, bytes, &stored, &size, &chunk[i].mask, &e),
                &e);
            chunk[i].size = rc == SQLITE_OK ? size : 0;
        }
        if (rc == SQLITE_OK) {
            rc = core(w,
                      h5_writer_append(w->w, stored ? stored : w->block, (size_t)chunk[i].size, 8,
                                       &chunk[i].addr, &e),
                      &e);
        }
        h5_free(stored);
    }
    if (rc == SQLITE_OK) {
        rc = core(w, h5_write_fixed_array(w->w, chunk, n, filters != NULL, bytes, &at, &e), &e);
    }
    sqlite3_free(chunk);
    h5_dataset_spec d = {.type = *t,
                         .rank = second > 1 || c->col == ST_COL_EMBEDDING ? 2 : 1,
                         .dims = dims,
                         .maxdims = most,
                         .chunk = shape,
                         .addr = at,
                         .pipeline = filters};
    return rc == SQLITE_OK ? put_dataset(w, c->name, &d) : rc;
}

/* -------------------------------------------------------------------------------------- columns */

static int fill_text(writer *w, const sql_claw_column *c, const h5_type *t, size_t a, size_t k)
{
    int rc = SQLITE_OK;
    for (size_t i = 0; i < k && rc == SQLITE_OK; i++) {
        st_value v;
        rc = sql_door_value(w->d, w->row[a + i], c->col, &v);
        if (rc == SQLITE_OK && v.type == ST_TEXT && v.n > 0) {
            memcpy(w->block + i * t->size, v.p, v.n);
        }
    }
    return rc;
}

static int fill_number(writer *w, const sql_claw_column *c, const h5_type *t, size_t a, size_t k)
{
    int rc = SQLITE_OK;
    for (size_t i = 0; i < k && rc == SQLITE_OK; i++) {
        st_value v;
        uint8_t *to = w->block + i * t->size;
        rc = sql_door_value(w->d, w->row[a + i], c->col, &v);
        double r = v.type == ST_REAL ? v.r : (double)NAN;
        float f = (float)r;
        int64_t n = v.type == ST_INT ? v.i : SQL_CLAW_NULL;
        if (c->kind == 'f') {
            memcpy(to, c->size == 8 ? (void *)&r : (void *)&f, t->size);
        } else {
            memcpy(to, &n, t->size);
        }
    }
    return rc;
}

static int put_texts(writer *w, const sql_claw_column *c)
{
    h5_type t = {.cls = H5_CLASS_STRING, .str_pad = 1, .utf8 = 1, .size = 1};
    uint64_t total = 0;
    int rc = SQLITE_OK;
    for (size_t i = 0; i < w->n && rc == SQLITE_OK; i++) {
        st_value v;
        rc = sql_door_value(w->d, w->row[i], c->col, &v);
        if (rc == SQLITE_OK && v.type == ST_TEXT) {
            total += v.n;
            if (v.n > TEXT_MAX) {
                return sql_door_fail(w->d, SQLITE_TOOBIG,
                                     "a %s of %lld bytes; this layout takes %d, since all are "
                                     "stored as wide as the longest",
                                     st_column_name(c->col), (long long)v.n, TEXT_MAX);
            }
            t.size = v.n > t.size ? (uint32_t)v.n : t.size;
        }
    }
    if (rc != SQLITE_OK || total < 4096 || w->n < 2) {
        return rc == SQLITE_OK ? put_plain(w, c, &t, fill_text) : rc;
    }
    h5_pipeline filters = {.n = 2};
    filters.filter[0] = (h5_filter){.id = H5_FILTER_SHUFFLE, .nvalue = 1, .value = {t.size}};
    filters.filter[1] = (h5_filter){.id = H5_FILTER_DEFLATE, .nvalue = 1, .value = {6}};
    size_t rows = BLOCK / t.size ? BLOCK / t.size : 1;
    return put_chunked(w, c, &t, 1, rows < w->n ? rows : w->n, &filters, fill_text);
}

static int put_columns(writer *w, const sql_claw_column *c)
{
    int rc = SQLITE_OK;
    for (; c->name && rc == SQLITE_OK; c++) {
        h5_type t;
        if (c->kind == 's') {
            rc = put_texts(w, c);
        } else {
            h5_type_number(c->kind, (uint32_t)c->size, &t);
            rc = put_plain(w, c, &t, fill_number);
        }
    }
    return rc;
}

static int fill_vector(writer *w, const sql_claw_column *c, const h5_type *t, size_t a, size_t k)
{
    size_t bytes = (size_t)st_conn_info(w->d->t->store->conn)->dim * t->size;
    int rc = SQLITE_OK;
    for (size_t i = 0; i < k && rc == SQLITE_OK; i++) {
        st_value v;
        rc = sql_door_value(w->d, w->row[a + i], c->col, &v);
        if (rc == SQLITE_OK && v.type == ST_BLOB) {
            memcpy(w->block + i * bytes, v.p, bytes);
        }
    }
    return rc;
}

static int fill_norm(writer *w, const sql_claw_column *c, const h5_type *t, size_t a, size_t k)
{
    size_t dim = (size_t)st_conn_info(w->d->t->store->conn)->dim;
    int rc = SQLITE_OK;
    for (size_t i = 0; i < k && rc == SQLITE_OK; i++) {
        st_value v;
        rc = sql_door_value(w->d, w->row[a + i], c->col, &v);
        float norm = rc == SQLITE_OK && v.type == ST_BLOB ? vec_norm_f32(v.p, dim) : 0;
        memcpy(w->block + i * t->size, &norm, t->size);
    }
    return rc;
}

static int fill_tombstone(writer *w, const sql_claw_column *c, const h5_type *t, size_t a, size_t k)
{
    int rc = SQLITE_OK;
    (void)t;
    for (size_t i = 0; i < k && rc == SQLITE_OK; i++) {
        st_value v;
        rc = sql_door_value(w->d, w->row[a + i], c->col, &v);
        w->block[i] = v.type != ST_NULL;
    }
    return rc;
}

static int put_vectors(writer *w)
{
    static const sql_claw_column embeddings = {"embeddings", ST_COL_EMBEDDING, 'f', 4},
                                 norms = {"norms", ST_COL_EMBEDDING, 'f', 4},
                                 tombstones = {"tombstones", ST_COL_VALID_TO, 'u', 1};
    h5_type f4, u1;
    uint64_t dim = (uint64_t)st_conn_info(w->d->t->store->conn)->dim, none[2] = {0, dim};
    h5_type_number('f', 4, &f4);
    h5_type_number('u', 1, &u1);
    size_t rows = (size_t)(VECTOR_BLOCK / (4 * dim));
    rows = rows < 1 ? 1 : rows < w->n ? rows : w->n;
    h5_dataset_spec empty = {.type = f4, .rank = 2, .dims = none, .addr = H5_UNDEF};
    int rc = w->n ? put_chunked(w, &embeddings, &f4, dim, rows, NULL, fill_vector)
                  : put_dataset(w, "embeddings", &empty);
    rc = rc == SQLITE_OK ? put_plain(w, &norms, &f4, fill_norm) : rc;
    return rc == SQLITE_OK ? put_plain(w, &tombstones, &u1, fill_tombstone) : rc;
}

/* ----------------------------------------------------------------------------------- the file */

// Members that are there and empty.
static int put_empty(writer *w, const char *const *names, const char *kinds)
{
    int rc = SQLITE_OK;
    uint64_t none = 0;
    for (; *names && rc == SQLITE_OK; names++, kinds++) {
        h5_dataset_spec d = {.rank = 1, .dims = &none, .addr = H5_UNDEF};
        if (*kinds == 's') {
            d.type = (h5_type){.cls = H5_CLASS_STRING, .str_pad = 1, .utf8 = 1, .size = 1};
        } else {
            h5_type_number(*kinds == 'i' ? 'i' : 'f', *kinds == 'w' ? 4 : 8, &d.type);
        }
        rc = put_dataset(w, *names, &d);
    }
    return rc;
}

static int option(writer *w, const char *name, const char *otherwise, char *buf, size_t n)
{
    st_error err = {0};
    if (st_get_option(w->d->t->store->conn, name, buf, n, &err) != ST_OK) {
        return sql_door_fail_st(w->d, &err);
    }
    if (!*buf) {
        sqlite3_snprintf((int)n, buf, "%s", otherwise);
    }
    return SQLITE_OK;
}

static int put_meta(writer *w, uint64_t *at)
{
    char agent[1024], embedder[1024], created[32] = "1970-01-01T00:00:00Z";
    static const uint8_t one = 1;
    uint64_t n = 1, data;
    struct tm tm;
    time_t now = (time_t)sql_now();
    h5_error e = {0};
    h5_dataset_spec marker = {.rank = 1, .dims = &n};
    h5_type_number('u', 1, &marker.type);
    if (gmtime_r(&now, &tm)) {
        strftime(created, sizeof created, "%Y-%m-%dT%H:%M:%SZ", &tm);
    }
    int rc = option(w, "agent", "h5mem", agent, sizeof agent);
    rc = rc == SQLITE_OK ? option(w, "embedder", "unknown", embedder, sizeof embedder) : rc;
    rc = rc == SQLITE_OK ? core(w, h5_writer_append(w->w, &one, 1, 1, &data, &e), &e) : rc;
    if (rc != SQLITE_OK) {
        return rc;
    }
    marker.addr = data;
    const h5_attr_spec attrs[] = {
        {"schema_version", 's', 0, 0, "1.0"},
        {"created_at", 's', 0, 0, created},
        {"agent_id", 's', 0, 0, agent},
        {"embedder", 's', 0, 0, embedder},
        {"embedding_dim", 'i', st_conn_info(w->d->t->store->conn)->dim, 0, NULL},
        {"chunk_size", 'i', 512, 0, NULL},
        {"overlap", 'i', 50, 0, NULL}};
    rc = put_dataset(w, "_marker", &marker);
    return rc == SQLITE_OK ? group(w, attrs, sizeof attrs / sizeof *attrs, at) : rc;
}

static int put_groups(writer *w, uint64_t *root)
{
    static const char *const sessions[] = {"ids",        "start_idxs", "end_idxs", "channels",
                                           "timestamps", "summaries",  NULL};
    static const char *const graph[] = {
        "entity_ids",    "entity_names",   "entity_types",     "entity_emb_idxs", "relation_srcs",
        "relation_tgts", "relation_types", "relation_weights", "relation_ts",     NULL};
    static const char *const names[] = {"meta", "memory", "sessions", "knowledge_graph", "h5mem"};
    uint64_t at[5];
    int rc = put_meta(w, &at[0]);
    rc = rc == SQLITE_OK ? put_columns(w, sql_claw_memory) : rc;
    rc = rc == SQLITE_OK ? put_vectors(w) : rc;
    rc = rc == SQLITE_OK ? group(w, NULL, 0, &at[1]) : rc;
    rc = rc == SQLITE_OK ? put_empty(w, sessions, "siisfs") : rc;
    rc = rc == SQLITE_OK ? group(w, NULL, 0, &at[2]) : rc;
    rc = rc == SQLITE_OK ? put_empty(w, graph, "issiiiswf") : rc;
    rc = rc == SQLITE_OK ? group(w, NULL, 0, &at[3]) : rc;
    rc = rc == SQLITE_OK ? put_columns(w, sql_claw_ours) : rc;
    rc = rc == SQLITE_OK ? group(w, NULL, 0, &at[4]) : rc;
    for (int i = 0; i < 5 && rc == SQLITE_OK; i++) {
        rc = member(w, names[i], at[i]);
    }
    return rc == SQLITE_OK ? group(w, NULL, 0, root) : rc;
}

static int put_all(writer *w, h5_io *io)
{
    uint64_t root = 0;
    uint8_t superblock[H5_SUPERBLOCK_BYTES];
    h5_error e = {0};
    int rc = core(w, h5_writer_new(io, H5_SUPERBLOCK_BYTES, &w->w, &e), &e);
    rc = rc == SQLITE_OK ? put_groups(w, &root) : rc;
    rc = rc == SQLITE_OK ? core(w, h5_writer_flush(w->w, &e), &e) : rc;
    if (rc == SQLITE_OK) {
        h5_superblock_pack(root, h5_writer_eof(w->w), superblock);
        rc = core(w, io->write(io, 0, superblock, sizeof superblock, &e), &e);
    }
    h5_writer_free(w->w);
    return rc;
}

int sql_claw_export(sql_door *d, const char *path)
{
    sql_out out;
    writer w;
    memset(&w, 0, sizeof w);
    w.d = d;
    int rc = sql_door_scan(d, note, &w);
    rc = rc == SQLITE_OK ? sql_out_open(d, path, 0, &out) : rc;
    if (rc == SQLITE_OK) {
        rc = sql_out_close(&out, put_all(&w, out.io));
    }
    sqlite3_free(w.row);
    sqlite3_free(w.block);
    d->rows = (sqlite3_int64)w.n;
    return rc;
}
