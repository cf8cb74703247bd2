/*
 * sql_h5_type.c - datatypes, shapes and names as text.
 *
 * A number is i, u or f and its bytes, `>` before it when its bytes are stored big-endian; `:` and
 * the bits in use, or exponent and mantissa of a float, when these are not the usual ones. Then:
 * b1 bitfield, t4 time, S10 fixed string, string, opaque(16), ref(object), ref(region),
 * ref(attribute), enum(i1), vlen(f4), complex(f8), an array as base[3,4], a compound as a JSON
 * object of its fields.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "sql_h5.h"
#include "sql_json.h"

int sql_h5_is_utf8(const char *text, size_t n)
{
    return !memchr(text, 0, n) && sql_is_utf8(text, n);
}

void sql_h5_clean(char *text)
{
    unsigned char *p = (unsigned char *)text;
    for (size_t n = strlen(text), len; n > 0; p += len, n -= len) {
        len = sql_utf8_length(p, n);
        if (len == 0) {
            *p = '?';
            len = 1;
        }
    }
}

void sql_h5_quote(sqlite3_str *s, const char *text, size_t n)
{
    const unsigned char *p = (const unsigned char *)text;
    sqlite3_str_appendchar(s, 1, '"');
    for (size_t i = 0; i < n;) {
        size_t len = sql_utf8_length(p + i, n - i);
        if (len == 0 || p[i] < 0x20) {
            sqlite3_str_appendf(s, "\\u%04x", p[i]);
        } else if (p[i] == '"' || p[i] == '\\') {
            sqlite3_str_appendf(s, "\\%c", p[i]);
        } else {
            sqlite3_str_append(s, text + i, (int)len);
        }
        i += len ? len : 1;
    }
    sqlite3_str_appendchar(s, 1, '"');
}

void sql_h5_sizes(sqlite3_str *s, int rank, const uint64_t *sizes)
{
    sqlite3_str_appendchar(s, 1, '[');
    for (int i = 0; i < rank; i++) {
        sqlite3_str_appendall(s, i ? "," : "");
        if (sizes[i] == UINT64_MAX) {
            sqlite3_str_appendall(s, "null");
        } else {
            sqlite3_str_appendf(s, "%llu", (unsigned long long)sizes[i]);
        }
    }
    sqlite3_str_appendchar(s, 1, ']');
}

int sql_h5_is_usual(const h5_type *t)
{
    static const struct {
        uint32_t size;
        uint8_t exponent, mantissa;
    } floats[] = {{2, 5, 10}, {4, 8, 23}, {8, 11, 52}};
    if (t->cls != H5_CLASS_FLOAT) {
        return t->precision == 0 || t->precision == 8 * t->size;
    }
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
        if (t->size == floats[i].size && t->exponent_bits == floats[i].exponent &&
            t->mantissa_bits == floats[i].mantissa && !t->vax) {
            return 1;
        }
    }
    return t->mantissa_bits == 0; // made, not read
}

static void number(sqlite3_str *s, const h5_type *t)
{
    static const char letters[] = "ift-b"; // by class
    char letter = t->cls == H5_CLASS_INTEGER && !t->is_signed ? 'u' : letters[t->cls];
    sqlite3_str_appendf(s, "%s%c%u", t->big_endian && t->size > 1 ? ">" : "", letter, t->size);
    if (!sql_h5_is_usual(t) && t->cls == H5_CLASS_FLOAT) {
        sqlite3_str_appendf(s, ":e%um%u", t->exponent_bits, t->mantissa_bits);
    } else if (!sql_h5_is_usual(t)) {
        sqlite3_str_appendf(s, ":%u", t->precision);
    }
}

/* A field's type as a JSON string. The inner text is made apart: it may have quotes of its own. */
static int quoted_type(sqlite3_str *s, const h5_type *t)
{
    sqlite3_str *inner = sqlite3_str_new(NULL);
    int rc = sql_h5_dtype(inner, t);
    size_t n = (size_t)sqlite3_str_length(inner);
    char *text = sqlite3_str_finish(inner);
    if (rc == SQLITE_OK && text) {
        sql_h5_quote(s, text, n);
    }
    rc = rc == SQLITE_OK && !text ? SQLITE_NOMEM : rc;
    sqlite3_free(text);
    return rc;
}

static int compound(sqlite3_str *s, const h5_type *t)
{
    sqlite3_str_appendchar(s, 1, '{');
    for (uint32_t i = 0; i < t->nmember; i++) {
        const h5_type *field = t->member[i].type;
        sqlite3_str_appendall(s, i ? "," : "");
        sql_h5_quote(s, t->member[i].name, strlen(t->member[i].name));
        sqlite3_str_appendchar(s, 1, ':');
        int rc = field->cls == H5_CLASS_COMPOUND ? sql_h5_dtype(s, field) : quoted_type(s, field);
        if (rc != SQLITE_OK) {
            return rc;
        }
    }
    sqlite3_str_appendchar(s, 1, '}');
    return SQLITE_OK;
}

static int wrapped(sqlite3_str *s, const char *what, const h5_type *base)
{
    sqlite3_str_appendf(s, "%s(", what);
    int rc = sql_h5_dtype(s, base);
    sqlite3_str_appendchar(s, 1, ')');
    return rc;
}

static const char *reference(const h5_type *t)
{
    switch (t->ref) {
    case H5_REF_REGION:
    case H5_REF_NEW_REGION:
        return "ref(region)";
    case H5_REF_NEW_ATTR:
        return "ref(attribute)";
    default:
        return "ref(object)";
    }
}

int sql_h5_dtype(sqlite3_str *s, const h5_type *t)
{
    int rc = SQLITE_OK;
    switch (t->cls) {
    case H5_CLASS_INTEGER:
    case H5_CLASS_FLOAT:
    case H5_CLASS_TIME:
    case H5_CLASS_BITFIELD:
        number(s, t);
        break;
    case H5_CLASS_STRING:
        sqlite3_str_appendf(s, "S%u", t->size);
        break;
    case H5_CLASS_OPAQUE:
        sqlite3_str_appendf(s, "opaque(%u)", t->size);
        break;
    case H5_CLASS_COMPOUND:
        rc = compound(s, t);
        break;
    case H5_CLASS_REFERENCE:
        sqlite3_str_appendall(s, reference(t));
        break;
    case H5_CLASS_ENUM:
        rc = wrapped(s, "enum", t->base);
        break;
    case H5_CLASS_VLEN:
        if (t->is_text) {
            sqlite3_str_appendall(s, "string");
        } else {
            rc = wrapped(s, "vlen", t->base);
        }
        break;
    case H5_CLASS_ARRAY:
        rc = sql_h5_dtype(s, t->base);
        for (uint32_t i = 0; i < t->rank; i++) {
            sqlite3_str_appendf(s, "%c%u", i ? ',' : '[', t->dims[i]);
        }
        sqlite3_str_appendchar(s, 1, ']');
        break;
    case H5_CLASS_COMPLEX:
        rc = wrapped(s, "complex", t->base);
        break;
    default:
        sqlite3_str_appendall(s, "unknown");
    }
    return rc == SQLITE_OK ? sqlite3_str_errcode(s) : rc;
}
