/*
 * st_row.c - making row versions from values, and their bytes in the log. Layout of the payloads in
 * st_log.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "st_row.h"

#include <math.h>

#include "vec.h"

/* One block: slot, spans, smalls, vector, texts, tokens. */
static st_slot *slot_alloc(const st_schema *s, int with_vector, size_t bytes, uint8_t **tail)
{
    size_t spans = (size_t)s->ntext * sizeof(st_span), smalls = (size_t)s->nsmall * sizeof(st_num);
    size_t vector = with_vector ? (size_t)s->dim * sizeof(float) : 0;
    size_t zeroed = sizeof(st_slot) + spans + smalls; // the rest is filled whole
    st_slot *t = h5_malloc(zeroed + vector + bytes);
    if (!t) {
        return NULL;
    }
    memset(t, 0, zeroed);
    t->text = (st_span *)(t + 1);
    t->small = (st_num *)(void *)((uint8_t *)t->text + spans);
    t->norm = (float)NAN;
    *tail = (uint8_t *)t->small + smalls;
    if (with_vector) {
        t->embedding = (const float *)(void *)*tail;
        *tail += vector;
    }
    return t;
}

void st_slot_free(st_slot *t)
{
    h5_free(t);
}

static int check_texts(const st_schema *s, const st_value *values, size_t *total, st_error *err)
{
    *total = 0;
    for (int c = 0; c < s->ncol; c++) {
        const st_value *v = &values[c];
        int want = st_logical_type(s, c);
        if (s->text_of[c] < 0 || v->type == ST_NULL) {
            continue;
        }
        if (v->type != want) {
            return st_fail(err, ST_MISUSE, "%s must be %s", st_logical_name(s, c),
                           want == ST_TEXT ? "text" : "a blob");
        }
        if (v->n > ST_TEXT_BYTES_MAX) {
            return st_fail(err, ST_LIMIT, "%s has %zu bytes; at most %zu", st_logical_name(s, c),
                           v->n, ST_TEXT_BYTES_MAX);
        }
        *total += v->n + 1;
    }
    return ST_OK;
}

static int check_vector(const st_schema *s, const st_value *v, st_error *err)
{
    size_t want = (size_t)s->dim * sizeof(float);
    if (v->type == ST_NULL) {
        return ST_OK;
    }
    if (v->type != ST_BLOB) {
        return st_fail(err, ST_MISUSE, "embedding must be a blob of %zu bytes", want);
    }
    if (v->n != want) {
        if (v->n % sizeof(float) == 0) {
            return st_fail(err, ST_MISUSE, "dim is %lld, got a vector of %zu", (long long)s->dim,
                           v->n / sizeof(float));
        }
        return st_fail(err, ST_MISUSE, "dim is %lld, so embedding has %zu bytes; got %zu",
                       (long long)s->dim, want, v->n);
    }
    return ST_OK;
}

/* A finite norm says that all values are; another can come of large ones. */
static int check_finite(const st_schema *s, const st_slot *t, st_error *err)
{
    for (size_t i = 0; i < (size_t)s->dim && !isfinite(t->norm); i++) {
        if (!isfinite(t->embedding[i])) {
            return st_fail(err, ST_MISUSE, "embedding[%zu] is %s; every value must be finite", i,
                           isnan(t->embedding[i]) ? "NaN" : "infinite");
        }
    }
    return ST_OK;
}

/* The vector becomes what the store keeps of it. */
static int take_vector(const st_schema *s, st_slot *t, st_error *err)
{
    float *x = (float *)(uintptr_t)t->embedding;
    t->norm = vec_norm_f32(x, (size_t)s->dim);
    ST_TRY(check_finite(s, t, err));
    if (s->storage != VEC_F32) {
        if (vec_stored_round(s->storage, x, (size_t)s->dim) != VEC_OK) {
            return st_fail(err, ST_MISUSE, "embedding has a value too large for storage=%s%s",
                           st_storage_name(s->storage),
                           s->storage == VEC_F16 ? ", which ends at 65504" : "");
        }
        t->norm = vec_norm_f32(x, (size_t)s->dim);
    }
    return ST_OK;
}

static int take_timestamp(const st_value *v, double now, double *out, st_error *err)
{
    *out = v->type == ST_NULL ? now : v->type == ST_INT ? (double)v->i : v->r;
    if (v->type != ST_NULL && v->type != ST_INT && v->type != ST_REAL) {
        return st_fail(err, ST_MISUSE, "timestamp must be a number of Unix seconds");
    }
    return isfinite(*out) ? ST_OK
                          : st_fail(err, ST_MISUSE, "timestamp is %g; it must be finite", *out);
}

int st_slot_make(const st_schema *s, const st_row *row, double now, st_slot **out, st_error *err)
{
    const st_value *v = row->values, *vec = &v[ST_COL_EMBEDDING];
    size_t total;
    uint8_t *tail;
    double timestamp;
    st_slot *t;
    *out = NULL;
    ST_TRY(check_texts(s, v, &total, err));
    ST_TRY(check_vector(s, vec, err));
    ST_TRY(take_timestamp(&v[ST_COL_TIMESTAMP], now, &timestamp, err));
    t = slot_alloc(s, vec->type == ST_BLOB, total + row->ntokens, &tail);
    if (!t) {
        return st_nomem(err);
    }
    t->timestamp = timestamp;
    if (t->embedding) {
        memcpy((void *)(uintptr_t)t->embedding, vec->p, vec->n);
        int rc = take_vector(s, t, err);
        if (rc != ST_OK) {
            st_slot_free(t);
            return rc;
        }
    }
    for (int c = 0; c < s->ncol; c++) {
        if (s->small_of[c] >= 0) {
            int rc = st_small_from_value(s, s->small_of[c], &v[c], &t->small[s->small_of[c]], err);
            if (rc != ST_OK) {
                st_slot_free(t);
                return rc;
            }
        } else if (s->text_of[c] >= 0 && v[c].type != ST_NULL) {
            st_span *span = &t->text[s->text_of[c]];
            span->p = tail;
            span->n = v[c].n;
            if (v[c].n) {
                memcpy(tail, v[c].p, v[c].n);
            }
            tail[v[c].n] = 0;
            tail += v[c].n + 1;
        }
    }
    if (row->ntokens) {
        t->tokens = tail;
        t->ntokens = row->ntokens;
        memcpy(tail, row->tokens, row->ntokens);
    }
    *out = t;
    return ST_OK;
}

void st_slot_value(const st_schema *s, const st_slot *t, const st_num *small, int col,
                   st_value *out)
{
    memset(out, 0, sizeof *out);
    if (s->small_of[col] >= 0) {
        st_small_to_value(s, s->small_of[col], small[s->small_of[col]], out);
    } else if (s->text_of[col] >= 0) {
        const st_span *span = &t->text[s->text_of[col]];
        out->type = span->p ? st_logical_type(s, col) : ST_NULL;
        out->p = span->p;
        out->n = span->n;
    } else if (col == ST_COL_ID) {
        out->type = ST_INT;
        out->i = t->id;
    } else if (col == ST_COL_TIMESTAMP) {
        out->type = ST_REAL;
        out->r = t->timestamp;
    } else if (t->embedding) {
        out->type = ST_BLOB;
        out->p = t->embedding;
        out->n = (size_t)s->dim * sizeof(float);
    }
}

/* ------------------------------------------------------------------------------------- payloads */

static void put_f64(uint8_t *p, double v)
{
    memcpy(p, &v, 8);
}

int st_slot_encode(const st_schema *s, const st_slot *t, const st_num *small, st_buf *out,
                   st_error *err)
{
    uint8_t head[24];
    st_put64(head, (uint64_t)t->id);
    put_f64(head + 8, t->timestamp);
    memcpy(head + 16, &t->norm, 4);
    st_put16(head + 20, (uint16_t)s->ntext);
    st_put16(head + 22, (uint16_t)s->nsmall);
    ST_TRY(st_buf_add(out, head, sizeof head, err));
    ST_TRY(st_buf_add(out, small, (size_t)s->nsmall * sizeof *small, err));
    for (int i = 0; i < s->ntext; i++) {
        uint8_t v[10];
        size_t n = st_varint_put(v, t->text[i].p ? (uint64_t)t->text[i].n + 1 : 0);
        ST_TRY(st_buf_add(out, v, n, err));
        ST_TRY(st_buf_add(out, t->text[i].p, t->text[i].n, err));
    }
    if (t->embedding) {
        ST_TRY(st_buf_add(out, t->embedding, (size_t)s->dim * sizeof(float), err));
    }
    return st_buf_add(out, t->tokens, t->ntokens, err);
}

static int wrong_frame(st_error *err)
{
    return st_fail(err, ST_CORRUPT, "a frame of the log does not fit the store's columns");
}

/* Walks the texts; with t also notes them, from tail on. */
static int walk_texts(const st_schema *s, const uint8_t *p, size_t n, size_t *pos, st_slot *t,
                      uint8_t **tail, size_t *total)
{
    for (int i = 0; i < s->ntext; i++) {
        uint64_t len;
        if (!st_varint_get(p, n, pos, &len) || (len && len - 1 > n - *pos)) {
            return 0;
        }
        if (!len) {
            continue;
        }
        len--;
        *total += (size_t)len + 1;
        if (t) {
            t->text[i].p = *tail;
            t->text[i].n = (size_t)len;
            memcpy(*tail, p + *pos, (size_t)len);
            (*tail)[len] = 0;
            *tail += len + 1;
        }
        *pos += (size_t)len;
    }
    return 1;
}

int st_slot_decode(const st_schema *s, const uint8_t *p, size_t n, st_slot **out, st_error *err)
{
    size_t smalls = (size_t)s->nsmall * sizeof(st_num), pos = 24 + smalls, texts_at = pos,
           total = 0, vector, unused = 0;
    uint8_t *tail;
    float norm;
    st_slot *t;
    *out = NULL;
    if (n < pos || st_get16(p + 20) != s->ntext || st_get16(p + 22) != s->nsmall ||
        !walk_texts(s, p, n, &pos, NULL, NULL, &total)) {
        return wrong_frame(err);
    }
    memcpy(&norm, p + 16, 4);
    vector = isnan(norm) ? 0 : (size_t)s->dim * sizeof(float);
    if (vector > n - pos) {
        return wrong_frame(err);
    }
    t = slot_alloc(s, vector > 0, total + (n - pos - vector), &tail);
    if (!t) {
        return st_nomem(err);
    }
    t->id = (int64_t)st_get64(p);
    memcpy(&t->timestamp, p + 8, 8);
    t->norm = norm;
    memcpy(t->small, p + 24, smalls);
    walk_texts(s, p, n, &texts_at, t, &tail, &unused);
    if (vector) {
        memcpy((void *)(uintptr_t)t->embedding, p + pos, vector);
        pos += vector;
    }
    t->ntokens = n - pos;
    t->tokens = tail;
    memcpy(tail, p + pos, t->ntokens);
    *out = t;
    return ST_OK;
}

int st_small_encode(const st_schema *s, int64_t id, const st_num *small, st_buf *out, st_error *err)
{
    uint8_t head[10];
    st_put64(head, (uint64_t)id);
    st_put16(head + 8, (uint16_t)s->nsmall);
    ST_TRY(st_buf_add(out, head, sizeof head, err));
    return st_buf_add(out, small, (size_t)s->nsmall * sizeof *small, err);
}

int st_small_decode(const st_schema *s, const uint8_t *p, size_t n, int64_t *id, st_num *small,
                    st_error *err)
{
    size_t smalls = (size_t)s->nsmall * sizeof *small;
    if (n != 10 + smalls || st_get16(p + 8) != s->nsmall) {
        return wrong_frame(err);
    }
    *id = (int64_t)st_get64(p);
    memcpy(small, p + 10, smalls);
    return ST_OK;
}
