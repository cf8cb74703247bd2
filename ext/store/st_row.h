/*
 * st_row.h - a row version outside the base: in the log's overlay or in a transaction.
 *
 * OWNERSHIP  an st_slot is one allocation; its pointers point into itself. It never changes once
 *            made, so that views may point into it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ST_ROW_H
#define ST_ROW_H

#include "st_log.h"
#include "st_schema.h"

typedef struct st_span {
    const uint8_t *p; /* NULL: the value is NULL */
    size_t n;
} st_span;

typedef struct st_slot {
    int64_t id;
    uint64_t seq; /* of the frame; 0 in a transaction */
    double timestamp;
    float norm;             /* NaN: no vector */
    const float *embedding; /* dim values or NULL */
    const uint8_t *tokens;
    size_t ntokens;
    st_span *text; /* schema.ntext */
    st_num *small; /* schema.nsmall */
} st_slot;

/* Checks values against the schema and makes a slot. values as st_row has them; id is set by the
** caller. */
int st_slot_make(const st_schema *s, const st_row *row, double now, st_slot **out, st_error *err);
void st_slot_free(st_slot *t);

/* The value of a logical column of a slot, with small values from small. */
void st_slot_value(const st_schema *s, const st_slot *t, const st_num *small, int col,
                   st_value *out);

/* Frame payloads. */
int st_slot_encode(const st_schema *s, const st_slot *t, const st_num *small, st_buf *out,
                   st_error *err);
/* ST_CORRUPT when the payload does not fit the schema. */
int st_slot_decode(const st_schema *s, const uint8_t *p, size_t n, st_slot **out, st_error *err);
int st_small_encode(const st_schema *s, int64_t id, const st_num *small, st_buf *out,
                    st_error *err);
/* small: room for schema.nsmall. */
int st_small_decode(const st_schema *s, const uint8_t *p, size_t n, int64_t *id, st_num *small,
                    st_error *err);

#endif
