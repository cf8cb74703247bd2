/*
 * sql_h5_read.c - hdf5_read(file, object [, start [, count]]): values as one BLOB.
 *
 * FORMAT   the elements in C order, little-endian, of the same size as in the file, fields of
 *          compounds too; integers that use some of their bits extended to all; a dataset of floats
 *          that are not IEEE 754 of 2, 4 or 8 bytes as floats of 8; strings with their padding
 *
 * Variable-length values and references have no bytes of their own and are refused.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "sql_h5.h"

static void reverse(uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n / 2; i++) {
        uint8_t t = p[i];
        p[i] = p[n - 1 - i];
        p[n - 1 - i] = t;
    }
}

/* 1 when an element is all in its own bytes. */
static int is_flat(const h5_type *t)
{
    switch (t->cls) {
    case H5_CLASS_VLEN:
    case H5_CLASS_REFERENCE:
    case H5_CLASS_OTHER:
        return 0;
    case H5_CLASS_COMPOUND:
        for (uint32_t i = 0; i < t->nmember; i++) {
            if (!is_flat(t->member[i].type)) {
                return 0;
            }
        }
        return 1;
    case H5_CLASS_ARRAY:
        return is_flat(t->base);
    default:
        return 1;
    }
}

static void put_bits(uint8_t *p, uint64_t bits, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        p[i] = (uint8_t)(bits >> 8 * i);
    }
}

/* The same for n of any size, with more of the sign where there is one. */
static void put_wide(uint8_t *p, uint64_t bits, size_t n, int is_signed)
{
    put_bits(p, bits, n < 8 ? n : 8);
    if (n > 8) {
        memset(p + 8, is_signed && bits >> 63 ? 0xFF : 0, n - 8);
    }
}

static void to_little(const h5_type *t, uint8_t *p)
{
    uint64_t bits;
    switch (t->cls) {
    case H5_CLASS_INTEGER:
    case H5_CLASS_FLOAT:
    case H5_CLASS_TIME:
    case H5_CLASS_BITFIELD:
        if (t->cls != H5_CLASS_FLOAT && !sql_h5_is_usual(t) && h5_value_bits(t, p, &bits)) {
            put_wide(p, bits, t->size, t->is_signed);
        } else if (t->big_endian) {
            reverse(p, t->size);
        }
        break;
    case H5_CLASS_ENUM:
        to_little(t->base, p);
        break;
    case H5_CLASS_COMPOUND:
        for (uint32_t i = 0; i < t->nmember; i++) {
            to_little(t->member[i].type, p + t->member[i].offset);
        }
        break;
    case H5_CLASS_ARRAY:
    case H5_CLASS_COMPLEX:
        for (uint32_t at = 0; at + t->base->size <= t->size; at += t->base->size) {
            to_little(t->base, p + at);
        }
        break;
    default:
        break;
    }
}

/* n floats of another layout as doubles. */
static int to_doubles(sql_h5 *h, const h5_type *t, const uint8_t *p, uint64_t n, uint8_t *out)
{
    for (uint64_t i = 0; i < n; i++) {
        double x;
        uint64_t bits;
        if (!h5_value_real(t, p + i * t->size, &x)) {
            return sql_h5_fail(h, SQLITE_ERROR, "not supported: a float of %u bytes", t->size);
        }
        memcpy(&bits, &x, sizeof bits);
        put_bits(out + 8 * i, bits, 8);
    }
    return SQLITE_OK;
}

static int result_doubles(sql_h5 *h, const h5_type *t, uint8_t *buf, uint64_t n, uint64_t most,
                          sqlite3_context *ctx)
{
    uint8_t *out = n <= most / 8 ? sqlite3_malloc64(8 * n) : NULL;
    int rc = n > most / 8
                 ? sql_h5_fail(h, SQLITE_TOOBIG, "%llu floats of 8 bytes; read it in parts",
                               (unsigned long long)n)
             : out ? to_doubles(h, t, buf, n, out)
                   : SQLITE_NOMEM;
    sqlite3_free(buf);
    if (rc == SQLITE_OK) {
        sqlite3_result_blob64(ctx, out, 8 * n, sqlite3_free);
    } else {
        sqlite3_free(out);
    }
    return rc;
}

static int read_box(sql_h5 *h, const h5_object *o, const sql_h5_box *box, sqlite3_context *ctx)
{
    const h5_dataset_info *d = h5_object_dataset(o);
    uint64_t most = (uint64_t)sqlite3_limit(sqlite3_context_db_handle(ctx), SQLITE_LIMIT_LENGTH,
                                            -1);
    uint64_t bytes = d->space == H5_SPACE_NULL ? 0 : d->type.size;
    h5_error err;
    for (int i = 0; i < d->rank; i++) {
        bytes = box->count[i] && bytes > UINT64_MAX / box->count[i] ? UINT64_MAX
                                                                    : bytes * box->count[i];
    }
    if (bytes > most) {
        return sql_h5_fail(h, SQLITE_TOOBIG, "%llu bytes, a BLOB may have %llu; read it in parts",
                           (unsigned long long)bytes, (unsigned long long)most);
    }
    if (bytes == 0) {
        sqlite3_result_zeroblob(ctx, 0);
        return SQLITE_OK;
    }
    uint8_t *buf = sqlite3_malloc64(bytes);
    if (!buf) {
        return SQLITE_NOMEM;
    }
    h5_error_clear(&err);
    if (h5_dataset_read_stored(h->file, o, box->start, box->count, buf, (size_t)bytes, &err) !=
        H5_OK) {
        sqlite3_free(buf);
        return sql_h5_fail_core(h, &err);
    }
    if (d->type.cls == H5_CLASS_FLOAT && !sql_h5_is_usual(&d->type)) {
        return result_doubles(h, &d->type, buf, bytes / d->type.size, most, ctx);
    }
    for (uint64_t at = 0; at < bytes; at += d->type.size) {
        to_little(&d->type, buf + at);
    }
    sqlite3_result_blob64(ctx, buf, bytes, sqlite3_free);
    return SQLITE_OK;
}

static int read_object(sql_h5 *h, int argc, sqlite3_value **argv, h5_object **o,
                       sqlite3_context *ctx)
{
    const char *path, *object;
    sql_h5_box box;
    int rc = sql_h5_text(h, "file", argv[0], &path);
    if (rc == SQLITE_OK) {
        rc = sql_h5_text(h, "object", argv[1], &object);
    }
    if (rc == SQLITE_OK) {
        rc = sql_h5_open(h, path);
    }
    if (rc == SQLITE_OK) {
        rc = sql_h5_find(h, object, o);
    }
    if (rc != SQLITE_OK) {
        return rc;
    }
    const h5_dataset_info *d = h5_object_dataset(*o);
    if (!d) {
        return sql_h5_fail(h, SQLITE_ERROR, "it is no dataset");
    }
    if (!is_flat(&d->type)) {
        return sql_h5_fail(h, SQLITE_ERROR,
                           "its values have no bytes of their own; use hdf5_values");
    }
    rc = sql_h5_box_parse(h, d, argc > 2 ? argv[2] : NULL, argc > 3 ? argv[3] : NULL, NULL, &box);
    return rc == SQLITE_OK ? read_box(h, *o, &box, ctx) : rc;
}

void sql_h5_read_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    sql_h5 h = {.who = "hdf5_read"};
    h5_object *o = NULL;
    int rc = read_object(&h, argc, argv, &o, ctx);
    if (rc != SQLITE_OK) {
        sql_h5_to_result(&h, rc, ctx);
    }
    h5_object_close(o);
    sql_h5_close(&h);
}
