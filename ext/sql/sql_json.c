/*
 * sql_json.c - flat JSON objects (RFC 8259), read and written.
 *
 * A \u escape that is half of a surrogate pair is an error: it is no character. Bytes that are no
 * UTF-8 inside a string are taken as they are. Of base64 (RFC 4648) the padding may be missing, and
 * nothing may stand between.
 *
 * ERRORS   a reason in words, with the byte it is at
 * THREADS  pure functions
 * TESTS    tests/unit/t_sql_json.c, tests/sql/test_jsonl.py, tests/fuzz/fuzz_doors.c
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "sql_json.h"
#include "sql_value.h"

/* ---------------------------------------------------------------------------------------- UTF-8 */

size_t sql_utf8_length(const unsigned char *p, size_t n)
{
    unsigned c = p[0], len = c < 0x80   ? 1
                             : c < 0xC2 ? 0
                             : c < 0xE0 ? 2
                             : c < 0xF0 ? 3
                             : c < 0xF5 ? 4
                                        : 0;
    if (len == 0 || len > n) {
        return 0;
    }
    for (unsigned i = 1; i < len; i++) {
        if ((p[i] & 0xC0) != 0x80) {
            return 0;
        }
    }
    if ((c == 0xE0 && p[1] < 0xA0) || (c == 0xED && p[1] > 0x9F) || (c == 0xF0 && p[1] < 0x90) ||
        (c == 0xF4 && p[1] > 0x8F)) {
        return 0;
    }
    return len;
}

int sql_is_utf8(const void *p, size_t n)
{
    const unsigned char *s = p;
    for (size_t i = 0, len; i < n; i += len) {
        len = sql_utf8_length(s + i, n - i);
        if (len == 0) {
            return 0;
        }
    }
    return 1;
}

static size_t put_utf8(uint32_t c, char *out)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; c >>= 6) {
        out[i] = (char)(0x80 | (c & 0x3F));
    }
    out[0] = (char)((0xF00 >> n & 0xFF) | c);
    return n;
}

/* -------------------------------------------------------------------------------------- reading */

void sql_json_begin(sql_json *j, char *s, size_t n)
{
    memset(j, 0, sizeof *j);
    j->s = s;
    j->n = n;
}

static int wrong(sql_json *j, const char *what)
{
    sqlite3_snprintf(sizeof j->why, j->why, "%s at byte %lld", what, (long long)j->i + 1);
    return -1;
}

static void skip_space(sql_json *j)
{
    while (j->i < j->n &&
           (j->s[j->i] == ' ' || j->s[j->i] == '\t' || j->s[j->i] == '\r' || j->s[j->i] == '\n')) {
        j->i++;
    }
}

// c after white space; moves on behind it.
static int next_is(sql_json *j, char c)
{
    skip_space(j);
    if (j->i < j->n && j->s[j->i] == c) {
        j->i++;
        return 1;
    }
    return 0;
}

// Four hexadecimal digits; -1 otherwise.
static int hex4(const sql_json *j, size_t at)
{
    int v = 0;
    for (size_t i = at; i < at + 4; i++) {
        int c = i < j->n ? j->s[i] : 0;
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0) {
            return -1;
        }
        v = v * 16 + digit;
    }
    return v;
}

// At the u of an escape, which becomes its character at out; *used bytes of it were read.
static int unicode(sql_json *j, char *out, size_t *used, size_t *n)
{
    int c = hex4(j, j->i + 1), low;
    *used = 5;
    if (c < 0) {
        return wrong(j, "\\u without four hexadecimal digits");
    }
    if (c >= 0xD800 && c < 0xDC00 && j->n - j->i > 6 && j->s[j->i + 5] == '\\' &&
        j->s[j->i + 6] == 'u' && (low = hex4(j, j->i + 7)) >= 0xDC00 && low < 0xE000) {
        c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
        *used = 11;
    }
    if (c >= 0xD800 && c < 0xE000) {
        return wrong(j, "half of a surrogate pair");
    }
    *n = put_utf8((uint32_t)c, out);
    return 1;
}

// Behind the quote that begins it; decoded in place, which never takes more room.
static int string(sql_json *j, const char **p, size_t *n)
{
    static const char escape[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    char *to = j->s + j->i;
    *p = to;
    while (j->i < j->n && j->s[j->i] != '"') {
        char c = j->s[j->i++];
        if ((unsigned char)c < 0x20) {
            j->i--;
            return wrong(j, "a control character inside a string");
        }
        if (c != '\\') {
            *to++ = c;
            continue;
        }
        c = j->i < j->n ? j->s[j->i] : 0;
        const char *at = c ? strchr(escape, c) : NULL;
        size_t used = 1, made = 1;
        if (at) {
            *to = meant[at - escape];
        } else if (c != 'u') {
            return wrong(j, "an unknown escape");
        } else if (unicode(j, to, &used, &made) < 0) {
            return -1;
        }
        j->i += used;
        to += made;
    }
    if (j->i == j->n) {
        return wrong(j, "a string without its end");
    }
    j->i++;
    *n = (size_t)(to - *p);
    return 1;
}

static int sextet(char c)
{
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+'             ? 62
           : c == '/'             ? 63
                                  : -1;
}

// In place.
static int unbase64(sql_json *j, const char *p, size_t *n)
{
    char *to = (char *)(uintptr_t)p;
    size_t len = *n;
    while (len > 0 && p[len - 1] == '=' && *n - len < 2) {
        len--;
    }
    if (len % 4 == 1 || (*n != len && *n % 4 != 0)) {
        return wrong(j, "base64 that is cut off");
    }
    uint32_t bits = 0;
    for (size_t i = 0; i < len; i++) {
        int v = sextet(p[i]);
        if (v < 0) {
            return wrong(j, "what is no base64");
        }
        bits = bits << 6 | (uint32_t)v;
        if (i % 4 != 0) {
            *to++ = (char)(bits >> (6 - 2 * (i % 4)));
        }
    }
    *n = (size_t)(to - p);
    return 1;
}

// Behind the brace.
static int bytes(sql_json *j, sql_json_value *out)
{
    const char *name;
    size_t n;
    static const char must[] = "an object other than {\"base64\": \"...\"}";
    if (!next_is(j, '"')) {
        return wrong(j, must);
    }
    if (string(j, &name, &n) < 0) {
        return -1;
    }
    if (n != 6 || memcmp(name, "base64", 6) != 0 || !next_is(j, ':') || !next_is(j, '"')) {
        return wrong(j, must);
    }
    if (string(j, &out->p, &out->n) < 0) {
        return -1;
    }
    out->kind = SQL_JSON_BYTES;
    return next_is(j, '}') ? unbase64(j, out->p, &out->n) : wrong(j, must);
}

static int number(sql_json *j, sql_json_value *out)
{
    const char *s = j->s + j->i;
    size_t used = sql_scan_f64(s, j->n - j->i, &out->r), i = *s == '-';
    if (used == 0) {
        return wrong(j, "what is no JSON value");
    }
    out->kind = SQL_JSON_INT;
    int64_t v = 0; // negative, which reaches one further
    for (; i < used && out->kind == SQL_JSON_INT; i++) {
        int digit = s[i] - '0';
        if (digit < 0 || digit > 9 || v < (INT64_MIN + digit) / 10) {
            out->kind = SQL_JSON_REAL;
        } else {
            v = v * 10 - digit;
        }
    }
    if (*s != '-' && v == INT64_MIN) {
        out->kind = SQL_JSON_REAL;
    }
    out->i = out->kind == SQL_JSON_INT ? (*s == '-' ? v : -v) : 0;
    j->i += used;
    return 1;
}

static int word(sql_json *j, const char *w, int kind, int64_t i, sql_json_value *out)
{
    size_t n = strlen(w);
    if (j->n - j->i < n || memcmp(j->s + j->i, w, n) != 0) {
        return wrong(j, "what is no JSON value");
    }
    j->i += n;
    out->kind = kind;
    out->i = i;
    return 1;
}

static int array(sql_json *j, sql_json_value *out)
{
    const char *s = j->s + j->i;
    size_t n = j->n - j->i, k = 1;
    while (k < n && s[k] != ']' && !strchr("[{\"", s[k])) {
        k++;
    }
    if (k == n || s[k] != ']') {
        return wrong(j, "an array of other things than numbers");
    }
    out->kind = SQL_JSON_ARRAY;
    out->p = s;
    out->n = k + 1;
    j->i += k + 1;
    return 1;
}

static int value(sql_json *j, sql_json_value *out)
{
    memset(out, 0, sizeof *out);
    skip_space(j);
    switch (j->i < j->n ? j->s[j->i] : 0) {
    case '"':
        j->i++;
        out->kind = SQL_JSON_TEXT;
        return string(j, &out->p, &out->n);
    case '{':
        j->i++;
        return bytes(j, out);
    case '[':
        return array(j, out);
    case 'n':
        return word(j, "null", SQL_JSON_NULL, 0, out);
    case 't':
        return word(j, "true", SQL_JSON_INT, 1, out);
    case 'f':
        return word(j, "false", SQL_JSON_INT, 0, out);
    case 0:
        return wrong(j, "a value is missing");
    default:
        return number(j, out);
    }
}

int sql_json_member(sql_json *j, const char **name, size_t *nname, sql_json_value *out)
{
    if (!j->some && !next_is(j, '{')) {
        return wrong(j, "what is no JSON object");
    }
    if (next_is(j, '}')) {
        skip_space(j);
        return j->i == j->n ? 0 : wrong(j, "more than one JSON object");
    }
    if (j->some && !next_is(j, ',')) {
        return wrong(j, "neither a comma nor the end of the object");
    }
    j->some = 1;
    if (!next_is(j, '"')) {
        return wrong(j, "no name of a member");
    }
    if (string(j, name, nname) < 0) {
        return -1;
    }
    return next_is(j, ':') ? value(j, out) : wrong(j, "no colon behind a name");
}

/* -------------------------------------------------------------------------------------- writing */

static int put_escape(sql_out *o, unsigned char c)
{
    static const char letters[] = "btn-fr"; // of 8 to 13
    char text[8];
    if (c == '"' || c == '\\') {
        sqlite3_snprintf(sizeof text, text, "\\%c", c);
    } else if (c >= 8 && c <= 13 && c != 11) {
        sqlite3_snprintf(sizeof text, text, "\\%c", letters[c - 8]);
    } else {
        sqlite3_snprintf(sizeof text, text, "\\u%04x", c);
    }
    return sql_out_text(o, text);
}

int sql_json_put_text(sql_out *o, const void *p, size_t n)
{
    const unsigned char *s = p;
    size_t from = 0;
    if (!sql_is_utf8(p, n)) {
        return sql_json_put_bytes(o, p, n);
    }
    int rc = sql_out_text(o, "\"");
    for (size_t i = 0; i < n && rc == SQLITE_OK; i++) {
        int ends = s[i] == '>' && i >= 2 && s[i - 1] == '-' && s[i - 2] == '-'; // a comment
        if (s[i] >= 0x20 && s[i] != '"' && s[i] != '\\' && !ends) {
            continue;
        }
        rc = sql_out_put(o, s + from, i - from);
        rc = rc == SQLITE_OK ? put_escape(o, s[i]) : rc;
        from = i + 1;
    }
    rc = rc == SQLITE_OK ? sql_out_put(o, s + from, n - from) : rc;
    return rc == SQLITE_OK ? sql_out_text(o, "\"") : rc;
}

int sql_json_put_bytes(sql_out *o, const void *p, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *s = p;
    int rc = sql_out_text(o, "{\"base64\":\"");
    for (size_t i = 0; i < n && rc == SQLITE_OK; i += 3) {
        size_t left = n - i;
        uint32_t v = (uint32_t)s[i] << 16 | (left > 1 ? (uint32_t)s[i + 1] << 8 : 0) |
                     (left > 2 ? s[i + 2] : 0);
        char four[4] = {digits[v >> 18], digits[v >> 12 & 63], left > 1 ? digits[v >> 6 & 63] : '=',
                        left > 2 ? digits[v & 63] : '='};
        rc = sql_out_put(o, four, 4);
    }
    return rc == SQLITE_OK ? sql_out_text(o, "\"}") : rc;
}
