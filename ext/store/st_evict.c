/*
 * st_evict.c - evicting a row, with the event that tells what went and why.
 *
 * SPDX-License-Identifier: MIT
 */
#include "st_store.h"

#include <math.h>

#include "vec.h"

/* ----------------------------------------------------------------------------------------- json */

/* Length of the run that JSON takes as it is. */
static size_t plain_run(const uint8_t *p, size_t n)
{
    size_t i = 0;
    while (i < n && p[i] >= ' ' && p[i] != '"' && p[i] != '\\') {
        i++;
    }
    return i;
}

int st_json_text(st_buf *b, const void *text, size_t n, st_error *err)
{
    static const char hex[] = "0123456789abcdef";
    const uint8_t *p = text;
    ST_TRY(st_buf_room(b, n + 2, err));
    ST_TRY(st_buf_add(b, "\"", 1, err));
    while (n) {
        size_t run = plain_run(p, n);
        ST_TRY(st_buf_add(b, p, run, err));
        p += run;
        n -= run;
        if (n) {
            char esc[6] = {'\\', 'u', '0', '0', hex[*p >> 4], hex[*p & 15]};
            if (*p >= ' ') {
                esc[1] = (char)*p;
            }
            ST_TRY(st_buf_add(b, esc, *p < ' ' ? sizeof esc : 2, err));
            p++;
            n--;
        }
    }
    return st_buf_add(b, "\"", 1, err);
}

static int add(st_buf *b, const char *s, st_error *err)
{
    return st_buf_add(b, s, strlen(s), err);
}

int st_json_value(st_buf *b, const char *name, const st_value *v, st_error *err)
{
    char number[40];
    ST_TRY(add(b, b->n ? ",\"" : "{\"", err));
    ST_TRY(add(b, name, err));
    ST_TRY(add(b, "\":", err));
    if (v->type == ST_TEXT) {
        return st_json_text(b, v->p, v->n, err);
    }
    if (v->type != ST_REAL) {
        return add(b, "null", err);
    }
    st_print_real(v->r, number, sizeof number);
    return add(b, number, err);
}

/* ------------------------------------------------------------------------------------- evicting */

static int add_column(st_conn *c, uint64_t ref, const st_num *small, int col, st_buf *b,
                      st_error *err)
{
    const st_schema *s = c->store->schema;
    st_value v;
    if (s->small_of[col] >= 0) {
        st_small_to_value(s, s->small_of[col], small[s->small_of[col]], &v);
    } else {
        ST_TRY(st_txn_heavy(c, ref, col, &v, err));
    }
    return st_json_value(b, st_logical_name(s, col), &v, err);
}

/* {"reason":...,"tier":...}; the store's lock is taken here. */
static int describe(st_conn *c, uint64_t ref, const char *reason, st_buf *b, st_error *err)
{
    static const int cols[] = {ST_COL_TIER, ST_COL_IMPORTANCE, ST_COL_TIMESTAMP, ST_COL_SESSION,
                               ST_COL_CONTENT};
    st_num small[ST_SMALLS_MAX];
    st_value why = {.type = ST_TEXT, .p = reason, .n = strlen(reason)};
    int rc = st_txn_smalls(c, ref, small, err);
    rc = rc ? rc : st_json_value(b, "reason", &why, err);
    pthread_mutex_lock(&c->store->lock);
    for (size_t i = 0; i < sizeof cols / sizeof *cols && !rc; i++) {
        rc = add_column(c, ref, small, cols[i], b, err);
    }
    pthread_mutex_unlock(&c->store->lock);
    return rc ? rc : st_buf_add(b, "}", 2, err); // with its NUL
}

int st_evict(st_conn *c, int64_t id, const char *reason, double now, st_error *err)
{
    st_buf b = {0};
    uint64_t ref;
    size_t nop = c->txn.nop;
    int rc;
    if (!reason || !isfinite(now)) {
        return st_fail(err, ST_MISUSE, "an eviction needs a reason and a time");
    }
    ST_TRY(st_txn_find(c, id, &ref, err));
    rc = describe(c, ref, reason, &b, err);
    rc = rc ? rc : st_event(c, now, "evict", &id, (const char *)b.p, err);
    st_buf_free(&b);
    ST_TRY(rc);
    rc = st_txn_end(c, ST_OP_EVICT, id, ref, err);
    if (rc) {
        st_txn_undo_to(c, nop);
    }
    return rc;
}
