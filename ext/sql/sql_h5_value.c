/*
 * sql_h5_value.c - stored elements as SQL values and as JSON.
 *
 *   type                          SQL                             inside JSON
 *   integer, bitfield, time       INTEGER; above 2^63-1 TEXT,     number, all digits
 *                                 all digits
 *   integer wider than 8 bytes    REAL                            number
 *   float of any layout           REAL; NaN is NULL               number; NaN null, infinity 9e999
 *   string                        TEXT; BLOB if no UTF-8          string; other bytes as Latin-1
 *   enum                          TEXT, its name; INTEGER         string; number
 *                                 when the value has none
 *   opaque                        BLOB                            string of hexadecimal digits
 *   reference to an object        TEXT, its path                  string; null
 *   to a region, an attribute     JSON with path, and the rest    object
 *   compound; array, vlen,        JSON                            object; array
 *   complex
 *
 * A double in JSON has 15 digits where these give it back, else 17.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <string.h>

#include "sql_h5.h"
#include "sql_value.h"

typedef struct printer {
    sql_h5 *h;
    sqlite3_str *s;
} printer;

static int put(printer *pr, const h5_type *t, const uint8_t *p);

static void put_real(sqlite3_str *s, const h5_type *t, double x)
{
    char text[SQL_F64_TEXT];
    if (x != x) {
        sqlite3_str_appendall(s, "null");
        return;
    }
    if (!isinf(x) && t->cls == H5_CLASS_FLOAT && t->size == 4) {
        sql_print_f32((float)x, text);
    } else {
        sql_print_f64(x, text);
    }
    sqlite3_str_appendall(s, text);
}

static void put_hex(sqlite3_str *s, const uint8_t *p, size_t n)
{
    sqlite3_str_appendchar(s, 1, '"');
    for (size_t i = 0; i < n; i++) {
        sqlite3_str_appendf(s, "%02x", p[i]);
    }
    sqlite3_str_appendchar(s, 1, '"');
}

static int is_unsigned(const h5_type *t)
{
    return t->cls == H5_CLASS_BITFIELD || (t->cls == H5_CLASS_INTEGER && !t->is_signed);
}

static int put_number(printer *pr, const h5_type *t, const uint8_t *p)
{
    uint64_t bits;
    double x;
    if (h5_value_bits(t, p, &bits)) {
        sqlite3_str_appendf(pr->s, is_unsigned(t) ? "%llu" : "%lld", bits);
    } else if (h5_value_real(t, p, &x)) {
        put_real(pr->s, t, x);
    } else if (t->cls == H5_CLASS_BITFIELD) {
        put_hex(pr->s, p, t->size);
    } else {
        return sql_h5_fail(pr->h, SQLITE_ERROR, "not supported: a number of %u bytes", t->size);
    }
    return SQLITE_OK;
}

/* n elements of one type, side by side, as an array of dims[0] arrays of ... */
static int put_array(printer *pr, const h5_type *t, const uint8_t *p, int rank,
                     const uint64_t *dims)
{
    uint64_t step = t->size;
    if (rank == 0) {
        return put(pr, t, p);
    }
    for (int i = 1; i < rank; i++) {
        step *= dims[i]; // of data that are in memory
    }
    sqlite3_str_appendchar(pr->s, 1, '[');
    for (uint64_t i = 0; i < dims[0]; i++) {
        if (i) {
            sqlite3_str_appendchar(pr->s, 1, ',');
        }
        int rc = put_array(pr, t, p + i * step, rank - 1, dims + 1);
        if (rc != SQLITE_OK) {
            return rc;
        }
    }
    sqlite3_str_appendchar(pr->s, 1, ']');
    return SQLITE_OK;
}

static int put_compound(printer *pr, const h5_type *t, const uint8_t *p)
{
    sqlite3_str_appendchar(pr->s, 1, '{');
    for (uint32_t i = 0; i < t->nmember; i++) {
        const h5_member *m = &t->member[i];
        if (i) {
            sqlite3_str_appendchar(pr->s, 1, ',');
        }
        sql_h5_quote(pr->s, m->name, strlen(m->name));
        sqlite3_str_appendchar(pr->s, 1, ':');
        int rc = put(pr, m->type, p + m->offset);
        if (rc != SQLITE_OK) {
            return rc;
        }
    }
    sqlite3_str_appendchar(pr->s, 1, '}');
    return SQLITE_OK;
}

static int vlen(sql_h5 *h, const h5_type *t, const uint8_t *p, const uint8_t **data, uint64_t *n)
{
    h5_error err;
    h5_error_clear(&err);
    return h5_vlen(h->heaps, t, p, data, n, &err) == H5_OK ? SQLITE_OK : sql_h5_fail_core(h, &err);
}

static int put_vlen(printer *pr, const h5_type *t, const uint8_t *p)
{
    const uint8_t *data;
    uint64_t n;
    int rc = vlen(pr->h, t, p, &data, &n);
    if (rc != SQLITE_OK) {
        return rc;
    }
    if (t->is_text) {
        sql_h5_quote(pr->s, (const char *)data, (size_t)n);
        return SQLITE_OK;
    }
    return put_array(pr, t->base, data, 1, &n);
}

static int reference(sql_h5 *h, const h5_type *t, const uint8_t *p, h5_ref *ref, const char **path)
{
    h5_error err;
    h5_error_clear(&err);
    *path = NULL;
    if (h5_reference(h->heaps, t, p, ref, &err) != H5_OK) {
        return sql_h5_fail_core(h, &err);
    }
    return ref->addr == H5_UNDEF ? SQLITE_OK : sql_h5_name_of(h, ref->addr, path);
}

static int put_reference(printer *pr, const h5_type *t, const uint8_t *p)
{
    h5_ref ref;
    const char *path;
    int rc = reference(pr->h, t, p, &ref, &path);
    if (rc != SQLITE_OK) {
        return rc;
    }
    int plain = !ref.attr && !ref.selection;
    if (ref.addr == H5_UNDEF) {
        sqlite3_str_appendall(pr->s, "null");
        return SQLITE_OK;
    }
    sqlite3_str_appendall(pr->s, plain ? "" : "{\"object\":");
    if (path) {
        sql_h5_quote(pr->s, path, strlen(path));
    } else {
        sqlite3_str_appendall(pr->s, "null");
    }
    if (ref.attr) {
        sqlite3_str_appendall(pr->s, ",\"attribute\":");
        sql_h5_quote(pr->s, ref.attr, strlen(ref.attr));
    }
    if (ref.selection) {
        sqlite3_str_appendall(pr->s, ",\"selection\":");
        put_hex(pr->s, ref.selection, ref.bytes);
    }
    sqlite3_str_appendall(pr->s, plain ? "" : "}");
    return SQLITE_OK;
}

static int put_enum(printer *pr, const h5_type *t, const uint8_t *p)
{
    const char *name = h5_value_enum(t, p);
    if (!name) {
        return put_number(pr, t->base, p);
    }
    sql_h5_quote(pr->s, name, strlen(name));
    return SQLITE_OK;
}

/* One element as JSON. How deep types nest is bounded by hdf5core. */
static int put(printer *pr, const h5_type *t, const uint8_t *p)
{
    uint64_t dims[H5_RANK_MAX];
    if (sqlite3_str_errcode(pr->s) != SQLITE_OK) {
        return sqlite3_str_errcode(pr->s);
    }
    if (sqlite3_str_length(pr->s) > (int)SQL_H5_JSON_MAX) {
        return sql_h5_fail(pr->h, SQLITE_TOOBIG, "a value of more than %u bytes as JSON",
                           SQL_H5_JSON_MAX);
    }
    switch (t->cls) {
    case H5_CLASS_INTEGER:
    case H5_CLASS_FLOAT:
    case H5_CLASS_TIME:
    case H5_CLASS_BITFIELD:
        return put_number(pr, t, p);
    case H5_CLASS_STRING:
        sql_h5_quote(pr->s, (const char *)p, h5_value_text(t, p));
        return SQLITE_OK;
    case H5_CLASS_OPAQUE:
        put_hex(pr->s, p, t->size);
        return SQLITE_OK;
    case H5_CLASS_COMPOUND:
        return put_compound(pr, t, p);
    case H5_CLASS_REFERENCE:
        return put_reference(pr, t, p);
    case H5_CLASS_ENUM:
        return put_enum(pr, t, p);
    case H5_CLASS_VLEN:
        return put_vlen(pr, t, p);
    case H5_CLASS_ARRAY:
        for (uint32_t i = 0; i < t->rank; i++) {
            dims[i] = t->dims[i];
        }
        return put_array(pr, t->base, p, (int)t->rank, dims);
    case H5_CLASS_COMPLEX:
        dims[0] = 2;
        return put_array(pr, t->base, p, 1, dims);
    default:
        return sql_h5_fail(pr->h, SQLITE_ERROR, "not supported: datatype class %u", t->cls);
    }
}

int sql_h5_result_array(sql_h5 *h, const h5_type *t, const uint8_t *p, int rank,
                        const uint64_t *dims, sqlite3_context *ctx)
{
    printer pr = {h, sqlite3_str_new(NULL)};
    int rc = put_array(&pr, t, p, rank, dims);
    if (rc == SQLITE_OK) {
        rc = sqlite3_str_errcode(pr.s);
    }
    if (rc == SQLITE_OK) {
        sqlite3_result_text(ctx, sqlite3_str_finish(pr.s), -1, sqlite3_free);
    } else {
        sqlite3_free(sqlite3_str_finish(pr.s));
    }
    return rc;
}

static void result_text(sqlite3_context *ctx, const uint8_t *p, uint64_t n)
{
    if (n == 0) {
        sqlite3_result_text(ctx, "", 0, SQLITE_STATIC);
    } else if (sql_h5_is_utf8((const char *)p, (size_t)n)) {
        sqlite3_result_text64(ctx, (const char *)p, n, SQLITE_TRANSIENT, SQLITE_UTF8);
    } else {
        sqlite3_result_blob64(ctx, p, n, SQLITE_TRANSIENT);
    }
}

static int result_number(sql_h5 *h, const h5_type *t, const uint8_t *p, sqlite3_context *ctx)
{
    uint64_t bits;
    double x;
    char text[32];
    if (t->cls == H5_CLASS_FLOAT && h5_value_real(t, p, &x)) {
        sqlite3_result_double(ctx, x); // NaN becomes NULL there
    } else if (h5_value_bits(t, p, &bits)) {
        if (bits > INT64_MAX && is_unsigned(t)) {
            sqlite3_snprintf(sizeof text, text, "%llu", (unsigned long long)bits);
            sqlite3_result_text(ctx, text, -1, SQLITE_TRANSIENT);
        } else {
            sqlite3_result_int64(ctx, (sqlite3_int64)bits);
        }
    } else if (h5_value_real(t, p, &x)) {
        sqlite3_result_double(ctx, x);
    } else if (t->cls == H5_CLASS_BITFIELD) {
        sqlite3_result_blob64(ctx, p, t->size, SQLITE_TRANSIENT);
    } else {
        return sql_h5_fail(h, SQLITE_ERROR, "not supported: a number of %u bytes", t->size);
    }
    return SQLITE_OK;
}

static int result_reference(sql_h5 *h, const h5_type *t, const uint8_t *p, sqlite3_context *ctx)
{
    h5_ref ref;
    const char *path;
    int rc = reference(h, t, p, &ref, &path);
    if (rc != SQLITE_OK || ref.addr == H5_UNDEF) {
        return rc;
    }
    if (ref.attr || ref.selection) {
        return sql_h5_result_array(h, t, p, 0, NULL, ctx);
    }
    if (path) {
        sqlite3_result_text(ctx, path, -1, SQLITE_TRANSIENT);
    }
    return SQLITE_OK;
}

int sql_h5_result(sql_h5 *h, const h5_type *t, const uint8_t *p, sqlite3_context *ctx)
{
    const uint8_t *data;
    const char *name;
    uint64_t n;
    int rc = SQLITE_OK;
    switch (t->cls) {
    case H5_CLASS_INTEGER:
    case H5_CLASS_FLOAT:
    case H5_CLASS_TIME:
    case H5_CLASS_BITFIELD:
        return result_number(h, t, p, ctx);
    case H5_CLASS_STRING:
        result_text(ctx, p, h5_value_text(t, p));
        return SQLITE_OK;
    case H5_CLASS_OPAQUE:
        sqlite3_result_blob64(ctx, p, t->size, SQLITE_TRANSIENT);
        return SQLITE_OK;
    case H5_CLASS_ENUM:
        name = h5_value_enum(t, p);
        if (!name) {
            return result_number(h, t->base, p, ctx);
        }
        result_text(ctx, (const uint8_t *)name, strlen(name));
        return SQLITE_OK;
    case H5_CLASS_REFERENCE:
        return result_reference(h, t, p, ctx);
    case H5_CLASS_VLEN:
        if (t->is_text) {
            rc = vlen(h, t, p, &data, &n);
            if (rc == SQLITE_OK) {
                result_text(ctx, data, n);
            }
            return rc;
        }
        return sql_h5_result_array(h, t, p, 0, NULL, ctx);
    default:
        return sql_h5_result_array(h, t, p, 0, NULL, ctx);
    }
}
