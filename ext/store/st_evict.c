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

enum { DECIMALS = 5 };

/* As st_print_real does. Many rows are described at once, and the C library's way of printing takes
 * longer than all the rest: numbers of few digits go without it. */
static void print_real(double v, char *out, size_t n)
{
    char digits[32];
    size_t k = sizeof digits;
    int decimals = DECIMALS;
    uint64_t x = fabs(v) < 9e9 ? (uint64_t)(fabs(v) * 1e5 + 0.5) : 0;
    if ((double)x / 1e5 != fabs(v) || (v != 0 && fabs(v) < 1e-4)) {
        st_print_real(v, out, n);
        return;
    }
    int negative = signbit(v) != 0;
    for (; decimals > 0 && x % 10 == 0; x /= 10) {
        decimals--;
    }
    for (int i = 0; i <= decimals || x; i++, x /= 10) {
        if (i == decimals && decimals > 0) {
            digits[--k] = '.';
        }
        digits[--k] = (char)('0' + x % 10);
    }
    if (negative) {
        digits[--k] = '-';
    }
    memcpy(out, digits + k, sizeof digits - k);
    out[sizeof digits - k] = 0;
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
    print_real(v->r, number, sizeof number);
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

enum { DESCRIBED = 384 }; /* bytes that most descriptions stay below */

/* {"reason":...,"tier":...}; the store's lock is taken here. */
static int describe(st_conn *c, uint64_t ref, const char *reason, st_buf *b, st_error *err)
{
    static const int cols[] = {ST_COL_TIER, ST_COL_IMPORTANCE, ST_COL_TIMESTAMP, ST_COL_SESSION,
                               ST_COL_CONTENT};
    st_num small[ST_SMALLS_MAX];
    st_value why = {.type = ST_TEXT, .p = reason, .n = strlen(reason)};
    int rc = st_buf_room(b, DESCRIBED, err);
    rc = rc ? rc : st_txn_smalls(c, ref, small, err);
    rc = rc ? rc : st_json_value(b, "reason", &why, err);
    pthread_mutex_lock(&c->store->lock);
    for (size_t i = 0; i < sizeof cols / sizeof *cols && !rc; i++) {
        rc = add_column(c, ref, small, cols[i], b, err);
    }
    pthread_mutex_unlock(&c->store->lock);
    return rc ? rc : st_buf_add(b, "}", 2, err); // with its NUL
}

static int evict_at(st_conn *c, int64_t id, uint64_t ref, const char *reason, double now,
                    st_error *err)
{
    st_buf b = {0};
    size_t nop = c->txn.nop;
    int rc;
    if (!reason || !isfinite(now)) {
        return st_fail(err, ST_MISUSE, "an eviction needs a reason and a time");
    }
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

int st_evict(st_conn *c, int64_t id, const char *reason, double now, st_error *err)
{
    uint64_t ref;
    ST_TRY(st_txn_find(c, id, &ref, err));
    return evict_at(c, id, ref, reason, now, err);
}

int st_evict_row(st_conn *c, st_view *v, uint64_t row, const char *reason, double now,
                 st_error *err)
{
    return evict_at(c, st_frozen_id(v, row), st_frozen_ref(v->f, row), reason, now, err);
}
