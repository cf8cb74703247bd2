/*
 * st_create.c - what CREATE says: a new store from it, or its agreement with one that is there.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <time.h>

#include "st_root.h"
#include "st_store.h"
#include "vec.h"

static const char *given(const st_create *c, const char *name)
{
    for (size_t i = 0; i < c->noption; i++) {
        if (strcmp(c->options[i].name, name) == 0) {
            return c->options[i].value;
        }
    }
    return NULL;
}

int st_create_schema(const st_create *c, st_schema **schema, st_options *o, st_error *err)
{
    const char *metric = given(c, "metric"), *storage = given(c, "storage");
    int m = VEC_COSINE, kept = VEC_F32;
    *schema = NULL;
    if (!c->dim) {
        return st_fail(err, ST_MISUSE, "a new store needs dim=N, the number of values in a vector");
    }
    if (metric) {
        ST_TRY(st_metric_parse(metric, &m, err));
    }
    if (storage) {
        ST_TRY(st_storage_parse(storage, &kept, err));
    }
    st_options_default(o);
    for (size_t i = 0; i < c->noption; i++) {
        const char *name = c->options[i].name;
        if (strcmp(name, "metric") && strcmp(name, "storage")) {
            ST_TRY(st_options_set(o, name, c->options[i].value, 1, err));
        }
    }
    if (!c->fingerprint) {
        return st_fail(err, ST_MISUSE, "a new store needs a tokenizer");
    }
    return st_schema_make(c->dim, m, kept, c->columns, c->ncolumn,
                          c->tokenizer ? c->tokenizer : ST_DEFAULT_TOKENIZER, c->fingerprint,
                          schema, err);
}

static int check_columns(const st_schema *s, const st_create *c, st_error *err)
{
    for (size_t i = 0; i < c->ncolumn; i++) {
        const st_column *want = &c->columns[i];
        int found = 0;
        for (int u = 0; u < s->nuser; u++) {
            if (strcmp(s->user[u].name, want->name) == 0) {
                found = 1;
                if (s->user[u].type != want->type) {
                    static const char *const names[] = {"", "INTEGER", "REAL", "TEXT", "BLOB"};
                    return st_fail(err, ST_MISUSE, "column %s is %s in the store and %s here",
                                   want->name, names[s->user[u].type], names[want->type]);
                }
            }
        }
        if (!found) {
            return st_fail(
                err, ST_MISUSE,
                "column %s is not in the store, whose columns were fixed when it was made",
                want->name);
        }
    }
    return ST_OK;
}

int st_create_check(const st_store *st, const st_create *c, st_error *err)
{
    const st_schema *s = st->schema;
    const char *metric = given(c, "metric"), *storage = given(c, "storage");
    int m;
    if (c->dim && c->dim != s->dim) {
        return st_fail(err, ST_MISUSE, "dim is %lld in the store and %lld here", (long long)s->dim,
                       (long long)c->dim);
    }
    if (metric) {
        ST_TRY(st_metric_parse(metric, &m, err));
        if (m != s->metric) {
            return st_fail(err, ST_MISUSE, "metric is %s in the store and %s here",
                           st_metric_name(s->metric), metric);
        }
    }
    if (storage) {
        ST_TRY(st_storage_parse(storage, &m, err));
        if (m != s->storage) {
            return st_fail(err, ST_MISUSE, "storage is %s in the store and %s here",
                           st_storage_name(s->storage), storage);
        }
    }
    if (c->tokenizer && strcmp(c->tokenizer, s->tokenizer) != 0) {
        return st_fail(err, ST_MISUSE, "tokenize is '%.150s' in the store and '%.150s' here",
                       s->tokenizer, c->tokenizer);
    }
    // Other options are looked at, so that a wrong one is refused, and set only when the store is
    // made.
    for (size_t i = 0; i < c->noption; i++) {
        st_options o;
        const char *name = c->options[i].name;
        st_options_default(&o);
        if (strcmp(name, "metric") && strcmp(name, "storage")) {
            ST_TRY(st_options_set(&o, name, c->options[i].value, 1, err));
        }
    }
    return check_columns(s, c, err);
}

static void now_iso(char *out, size_t n)
{
    time_t t = (time_t)st_now_unix();
    struct tm tm;
    gmtime_r(&t, &tm);
    strftime(out, n, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

/* Columns without rows. Tables beside them are made when they get their first record. */
static int empty_columns(const st_schema *s, const st_options *o, st_colimg **out, st_error *err)
{
    st_colimg *col = h5_calloc((size_t)s->nphys, sizeof *col);
    *out = col; // the caller frees what there is
    if (!col) {
        return st_nomem(err);
    }
    for (int c = 0; c < s->nmemory; c++) {
        ST_TRY(st_column_empty(s, o, c, &col[c], err));
        col[c].crc = h5_calloc(1, sizeof *col[c].crc);
        if (!col[c].crc) {
            return st_nomem(err);
        }
    }
    return ST_OK;
}

int st_create_empty(h5_io *io, const st_schema *s, const st_options *o, const uint8_t uuid[16],
                    uint8_t superblock[H5_SUPERBLOCK_BYTES], st_error *err)
{
    char created[32];
    uint64_t root = 0;
    h5_writer *w = NULL;
    h5_error h = {0};
    st_root r = {
        .schema = s, .options = o, .uuid = uuid, .created = created, .generation = 1, .next_id = 1};
    int rc = empty_columns(s, o, &r.col, err);
    now_iso(created, sizeof created);
    if (!rc && h5_writer_new(io, H5_SUPERBLOCK_BYTES, &w, &h) != H5_OK) {
        rc = st_from_h5(err, &h, "the new file");
    }
    rc = rc ? rc : st_root_write(&r, w, &root, err);
    if (!rc && h5_writer_flush(w, &h) != H5_OK) {
        rc = st_from_h5(err, &h, "the new file");
    }
    if (!rc) {
        h5_superblock_pack(root, h5_writer_eof(w), superblock);
        if (io->write(io, 0, superblock, H5_SUPERBLOCK_BYTES, &h) != H5_OK) {
            rc = st_from_h5(err, &h, "the new file");
        }
    }
    h5_writer_free(w);
    for (int c = 0; r.col && c < s->nphys; c++) {
        h5_free(r.col[c].chunk);
        h5_free(r.col[c].crc);
    }
    h5_free(r.col);
    return rc;
}
