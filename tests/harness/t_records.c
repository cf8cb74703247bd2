/*
 * t_records.c - the naive tables beside the rows of t_model.h
 *
 * SPDX-License-Identifier: MIT
 */
#include "t_model.h"

#include <stdio.h>
#include <stdlib.h>

static void *must(void *p)
{
    if (!p) {
        fprintf(stderr, "t_records: no memory\n");
        exit(2);
    }
    return p;
}

static t_record *record_of(int side, const st_value *v)
{
    int ncol = st_side_columns(side);
    size_t bytes = 0;
    for (int c = 0; c < ncol; c++)
        bytes += v[c].type == ST_TEXT ? v[c].n + 1 : 0;
    t_record *r = must(calloc(1, sizeof *r + bytes));
    char *tail = (char *)(r + 1);
    r->refs = 1;
    r->side = side;
    for (int c = 0; c < ncol; c++) {
        r->v[c] = v[c];
        if (v[c].type == ST_TEXT) {
            memcpy(tail, v[c].p, v[c].n);
            r->v[c].p = tail;
            tail += v[c].n + 1;
        }
    }
    return r;
}

t_record *t_record_random(t_rng *r, int side, int64_t key)
{
    char *texts = must(malloc((size_t)ST_SIDE_COLS_MAX * (T_LONG_TEXT + 8)));
    st_value v[ST_SIDE_COLS_MAX] = {{0}};
    for (int c = 0; c < st_side_columns(side); c++) {
        char *at = texts + (size_t)c * (T_LONG_TEXT + 8);
        int type = st_side_column_type(side, c);
        v[c] = type == ST_TEXT ? t_text_random(r, ST_TEXT, at) : t_number_random(r, type);
        if (type == ST_INT && v[c].type == ST_REAL)
            v[c] = t_int(7);
        if (type == ST_REAL && v[c].type == ST_INT)
            v[c] = t_real((double)v[c].i);
    }
    v[0] = t_int(key);
    if (st_side_column_type(side, 0) == ST_TEXT)
        v[0] = t_bytes(ST_TEXT, texts, key ? (size_t)sprintf(texts, "s%lld", (long long)key) : 0);
    t_record *out = record_of(side, v);
    free(texts);
    return out;
}

t_record *t_record_copy(const t_record *r)
{
    return record_of(r->side, r->v);
}

void t_record_unref(t_record *r)
{
    if (r && !--r->refs)
        free(r);
}

static size_t record_at(const t_table *t, int side, const st_value *key)
{
    size_t i = 0;
    while (i < t->nrecord[side] && !t_same(&t->record[side][i]->v[0], key))
        i++;
    return i;
}

t_record *t_record_find(const t_table *t, int side, const st_value *key)
{
    size_t i = record_at(t, side, key);
    return i < t->nrecord[side] ? t->record[side][i] : NULL;
}

void t_record_set(t_table *t, t_record *r)
{
    size_t i = record_at(t, r->side, &r->v[0]);
    if (i == t->nrecord[r->side]) {
        t->record[r->side] = must(realloc(t->record[r->side], (i + 1) * sizeof(t_record *)));
        t->record[r->side][i] = NULL;
        t->nrecord[r->side]++;
    }
    t_record_unref(t->record[r->side][i]);
    t->record[r->side][i] = r;
}

void t_record_remove(t_table *t, int side, const st_value *key)
{
    size_t i = record_at(t, side, key);
    if (i < t->nrecord[side]) {
        t_record_unref(t->record[side][i]);
        t->record[side][i] = t->record[side][--t->nrecord[side]];
    }
}

static int same_record(const t_record *a, const t_record *b)
{
    int same = a && b;
    for (int c = 0; same && c < st_side_columns(a->side); c++)
        same = t_same(&a->v[c], &b->v[c]);
    return same;
}

int t_records_same(const t_table *a, const t_table *b)
{
    for (int side = 0; side < ST_SIDES; side++) {
        if (a->nrecord[side] != b->nrecord[side])
            return 0;
        for (size_t i = 0; i < a->nrecord[side]; i++) {
            const t_record *r = a->record[side][i];
            if (!same_record(r, t_record_find(b, side, &r->v[0])))
                return 0;
        }
    }
    return 1;
}

static size_t json(char *out, const char *name, const st_value *v)
{
    size_t n = (size_t)sprintf(out, "\"%s\":", name);
    if (v->type == ST_REAL) {
        st_print_real(v->r, out + n, 40);
        return n + strlen(out + n);
    }
    if (v->type != ST_TEXT)
        return n + (size_t)sprintf(out + n, "null");
    out[n++] = '"';
    for (size_t i = 0; i < v->n; i++) {
        unsigned char ch = ((const unsigned char *)v->p)[i];
        n += (size_t)sprintf(out + n,
                             ch < 32                   ? "\\u%04x"
                             : ch == '"' || ch == '\\' ? "\\%c"
                                                       : "%c",
                             ch);
    }
    out[n++] = '"';
    return n;
}

/* The event of an eviction. */
t_record *t_record_eviction(const t_mrow *r, int64_t seq)
{
    static const int cols[] = {ST_COL_TIER,    ST_COL_IMPORTANCE, ST_COL_TIMESTAMP,
                               ST_COL_SESSION, ST_COL_SOURCE,     ST_COL_CONTENT};
    char *out = must(malloc(8 * (r->v[ST_COL_CONTENT].n + r->v[ST_COL_SESSION].n) + 400));
    size_t n = (size_t)sprintf(out, "{\"reason\":\"test\"");
    for (int i = 0; i < 6; i++) {
        out[n++] = ',';
        n += json(out + n, st_column_name(cols[i]), &r->v[cols[i]]);
    }
    out[n++] = '}';
    st_value v[] = {t_int(seq), t_real(1), t_text("evict"), t_int(r->id), t_bytes(ST_TEXT, out, n)};
    if (r->id == INT64_MIN)
        v[ST_EVENT_ID] = t_null();
    t_record *made = record_of(ST_EVENTS, v);
    free(out);
    return made;
}

int64_t t_last_event(st_conn *c)
{
    st_error err = {0, ""};
    st_view *v;
    uint64_t at = 0;
    st_value seq = {0};
    t_ok(&err, st_view_open(c, &v, &err));
    for (; st_side_next(v, ST_EVENTS, at, &at, &err) == ST_OK; at++)
        t_ok(&err, st_side_value(v, ST_EVENTS, at, ST_EVENT_SEQ, &seq, &err));
    st_view_close(v);
    return seq.i;
}

/* A record as a view shows it; texts are copied as each is read. */
static t_record *record_from(st_view *v, int side, uint64_t row, st_error *err)
{
    st_value g[ST_SIDE_COLS_MAX];
    int rc = ST_OK;
    for (int c = 0; c < st_side_columns(side) && !rc; c++)
        rc = st_side_value(v, side, row, c, &g[c], err);
    return rc ? NULL : record_of(side, g);
}

int t_records_of(st_view *v, t_table *t, st_error *err)
{
    int rc = ST_OK;
    for (int side = 0; side < ST_SIDES && !rc; side++) {
        uint64_t at = 0;
        for (; (rc = st_side_next(v, side, at, &at, err)) == ST_OK; at++) {
            t_record *r = record_from(v, side, at, err);
            if (!r)
                return ST_CORRUPT;
            t_record_set(t, r);
        }
        rc = rc == ST_NOTFOUND ? ST_OK : rc;
    }
    return rc;
}

void t_check_records(st_view *v, const t_table *t, int side)
{
    st_error err = {0, ""};
    uint64_t at = 0, n = 0, count, found;
    int rc;
    t_ok(&err, st_side_count(v, side, &count, &err));
    for (; (rc = st_side_next(v, side, at, &at, &err)) == ST_OK; at++, n++) {
        t_record *have = record_from(v, side, at, &err);
        if (!have)
            fail_msg("%s", err.text);
        if (!same_record(have, t_record_find(t, side, &have->v[0])))
            fail_msg("%s: record %llu is not as expected", st_side_name(side),
                     (unsigned long long)at);
        t_ok(&err, st_side_find(v, side, &have->v[0], &found, &err));
        assert_true(found == at);
        t_record_unref(have);
    }
    assert_int_equal(rc, ST_NOTFOUND);
    if (n != count || n != t->nrecord[side])
        fail_msg("%s: %llu records of %llu, expected %zu", st_side_name(side),
                 (unsigned long long)n, (unsigned long long)count, t->nrecord[side]);
}

/* -------------------------------------------------------------------------------------- changes */

static void expect_code(int rc, int want, const st_error *err)
{
    if (rc != want)
        fail_msg("%d, expected %d: %s", rc, want, err->text);
}

/* A key of a record that is there, mostly. */
static st_value some_key(t_rng *rng, const t_table *t, int side, const t_record *other)
{
    return t->nrecord[side] && t_rng_below(rng, 6)
               ? t->record[side][t_rng_below(rng, t->nrecord[side])]->v[0]
               : other->v[0];
}

static void put_record(st_conn *c, t_table *t, t_rng *rng, int64_t last, t_record *r)
{
    st_error err = {0, ""};
    st_value v[ST_SIDE_COLS_MAX];
    int automatic = st_side_column_type(r->side, 0) == ST_INT && t_rng_below(rng, 3), rc;
    int64_t key = 0;
    memcpy(v, r->v, sizeof v);
    if (automatic)
        v[0] = t_null();
    rc = st_side_put(c, r->side, v, &key, &err);
    if (automatic) {
        assert_true(key > last);
        r->v[0] = t_int(key);
    }
    if (t_record_find(t, r->side, &r->v[0])) {
        expect_code(rc, ST_EXISTS, &err);
        t_record_unref(r);
        return;
    }
    t_ok(&err, rc);
    t_record_set(t, r);
}

static void set_record(st_conn *c, t_table *t, t_rng *rng, t_record *r)
{
    st_error err = {0, ""};
    st_value key = some_key(rng, t, r->side, r);
    t_record *old = t_record_find(t, r->side, &key);
    int taken;
    if (t_rng_below(rng, 3))
        r->v[0] = key; // else another key
    // The key's bytes may be those of the record that goes.
    if (old)
        old->refs++;
    taken = !t_same(&key, &r->v[0]) && t_record_find(t, r->side, &r->v[0]);
    expect_code(st_side_set(c, r->side, &key, r->v, &err),
                !old    ? ST_NOTFOUND
                : taken ? ST_EXISTS
                        : ST_OK,
                &err);
    if (old && !taken) {
        t_record *kept = t_record_copy(r);
        t_record_remove(t, r->side, &key);
        t_record_set(t, kept);
    }
    t_record_unref(r);
    t_record_unref(old);
}

static void delete_record(st_conn *c, t_table *t, t_rng *rng, t_record *r)
{
    st_error err = {0, ""};
    st_value key = some_key(rng, t, r->side, r);
    int there = t_record_find(t, r->side, &key) != NULL;
    expect_code(st_side_delete(c, r->side, &key, &err), there ? ST_OK : ST_NOTFOUND, &err);
    t_record_remove(t, r->side, &key);
    t_record_unref(r);
}

void t_change_records(st_conn *c, t_table *t, t_rng *rng, int64_t last)
{
    int side = (int)t_rng_below(rng, ST_SIDES);
    t_record *r = t_record_random(rng, side, (int64_t)t_rng_below(rng, 60));
    uint64_t kind = t_rng_below(rng, 6);
    if (kind < 3)
        put_record(c, t, rng, last, r);
    else if (kind < 5)
        set_record(c, t, rng, r);
    else
        delete_record(c, t, rng, r);
}
