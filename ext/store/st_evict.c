/*
 * st_evict.c - evicting a row, with the event that tells what went and why.
 *
 * SPDX-License-Identifier: MIT
 */
#include "st_store.h"

#include <math.h>

/* A column of the version at ref; with the store's lock held. small: its small values, or NULL for
** a row of the file that nobody changed. */
static int add_column(st_conn *c, uint64_t ref, const st_num *small, int col, st_buf *b,
                      st_error *err)
{
    const st_schema *s = c->store->schema;
    int at = s->small_of[col];
    st_value v;
    if (at < 0) {
        ST_TRY(st_txn_heavy(c, ref, col, &v, err));
    } else if (small) {
        st_small_to_value(s, at, small[at], &v);
    } else {
        ST_TRY(st_read_value(&c->gen->reader, ref, col, &v, err));
    }
    return st_json_add(b, st_logical_name(s, col), &v, err);
}

enum { DESCRIBED = 384 }; /* bytes that most descriptions stay below */

/* {"reason":...,"tier":...}; the store's lock is taken here. */
static int describe(st_conn *c, uint64_t ref, const char *reason, st_buf *b, st_error *err)
{
    static const int cols[] = {ST_COL_TIER,    ST_COL_IMPORTANCE, ST_COL_TIMESTAMP,
                               ST_COL_SESSION, ST_COL_SOURCE,     ST_COL_CONTENT};
    st_value why = {.type = ST_TEXT, .p = reason, .n = strlen(reason)};
    const st_num *small;
    int rc = st_buf_room(b, DESCRIBED, err);
    rc = rc ? rc : st_json_add(b, "reason", &why, err);
    pthread_mutex_lock(&c->store->lock);
    small = st_txn_small(c, ref);
    for (size_t i = 0; i < sizeof cols / sizeof *cols && !rc; i++) {
        rc = add_column(c, ref, small, cols[i], b, err);
    }
    pthread_mutex_unlock(&c->store->lock);
    return rc;
}

static int evict_at(st_conn *c, int64_t id, uint64_t ref, const char *reason, double now,
                    st_error *err)
{
    st_buf *b = &c->frames; // free until the transaction is written down
    size_t nop = c->txn.nop;
    int rc;
    if (!reason || !isfinite(now)) {
        return st_fail(err, ST_MISUSE, "an eviction needs a reason and a time");
    }
    b->n = 0;
    ST_TRY(describe(c, ref, reason, b, err));
    ST_TRY(st_json_event(c, now, "evict", &id, b, err));
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
