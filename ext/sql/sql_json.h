/*
 * sql_json.h - one flat JSON object read from, and its members written to, bytes in memory. No
 * state, no SQLite handle.
 *
 * Flat: a member is null, true, false, a number, a string, an array of numbers, or the object
 * {"base64": "..."}, which stands for bytes. So nothing nests, and nothing is allocated: strings
 * and base64 are decoded where they stand.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SQL_JSON_H
#define SQL_JSON_H

#include "sql_door.h"

enum { SQL_JSON_NULL, SQL_JSON_INT, SQL_JSON_REAL, SQL_JSON_TEXT, SQL_JSON_BYTES, SQL_JSON_ARRAY };

typedef struct sql_json_value {
    int kind;      /* true and false are the integers 1 and 0 */
    int64_t i;     /* INT */
    double r;      /* REAL, also whole numbers beyond 64 bits; infinite where it is too large */
    const char *p; /* TEXT, BYTES; ARRAY: as it stands, brackets and all */
    size_t n;
} sql_json_value;

typedef struct sql_json {
    char *s;
    size_t n, i;
    int some; /* a member was read */
    char why[100];
} sql_json;

/* Begins with n bytes that may be changed. */
void sql_json_begin(sql_json *j, char *s, size_t n);
/* The next member: 1; 0 at the end of the object, behind which only white space stands; -1: why
 * says what is wrong, and where. The name and the value stay until the bytes go away. */
int sql_json_member(sql_json *j, const char **name, size_t *nname, sql_json_value *out);

/* Bytes of the UTF-8 character at p (n > 0 left), 0 when it is none; a NUL is one. */
size_t sql_utf8_length(const unsigned char *p, size_t n);
int sql_is_utf8(const void *p, size_t n);

/* Writes a string, with quotes; of bytes that are no UTF-8, {"base64": "..."}. */
int sql_json_put_text(sql_out *o, const void *p, size_t n);
int sql_json_put_bytes(sql_out *o, const void *p, size_t n);

/* In sql_door_jsonl.c. "name":value of a column; an object's members as the columns of d->value and
 * d->given, which point into it. */
int sql_json_put_column(sql_out *o, sql_door *d, int col, const st_value *v);
int sql_json_row(sql_door *d, char *s, size_t n);

#endif
