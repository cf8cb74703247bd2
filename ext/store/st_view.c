/*
 * st_view.c - what one statement reads: base, overlay and the connection's own changes as one
 * numbered set of rows.
 *
 * Rows are numbered base first (0 .. nbase-1, the positions in the file), then the transaction's
 * slots, then the overlay's. The overlay comes last because its text index may meanwhile hold slots
 * of later commits: their numbers lie behind the last row and are left alone. What a view needs of
 * shared, growing arrays is copied when it is made, and kept for further views until something
 * changes.
 *
 * SPDX-License-Identifier: MIT
 */
#include "st_lists.h"
#include "st_turns.h"

void st_frozen_unref(st_frozen *f)
{
    if (f && !--f->refs) {
        st_gen_unref(f->gen);
        h5_free(f->slot);
        h5_free(f->live);
        h5_free(f->evicted);
        h5_free(f->by_time);
        for (int side = 0; side < ST_SIDES; side++) {
            st_sideview_free(f->side[side]);
        }
        st_map_free(&f->patched);
        st_turns_free(f->turns);
        h5_free(f);
    }
}

uint64_t st_frozen_ref(const st_frozen *f, uint64_t row)
{
    return row < f->nbase                 ? row
           : row < f->nbase + f->nprivate ? ST_REF_PRIVATE | (row - f->nbase)
                                          : ST_REF_OVERLAY | (row - f->nbase - f->nprivate);
}

static uint64_t row_of_ref(const st_frozen *f, uint64_t ref)
{
    uint64_t i = ST_REF_INDEX(ref);
    return ref & ST_REF_PRIVATE   ? f->nbase + i
           : ref & ST_REF_OVERLAY ? f->nbase + f->nprivate + i
                                  : i;
}

/* Slots that the snapshot holds: they lie in order of sequence. */
static uint64_t slots_up_to(const st_gen *g, uint64_t seq)
{
    size_t lo = 0, hi = g->nslot;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (g->slot[mid]->seq <= seq) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

static void mark_live(st_frozen *f, const st_gen *g, const st_txn *t)
{
    for (size_t i = 0; i < g->nkill; i++) {
        if (g->kill[i].seq <= f->seq) {
            st_bit_clear(f->live, g->kill[i].row);
        }
    }
    for (uint64_t i = 0; i < f->nprivate; i++) {
        f->slot[i] = t->slot[i];
        if (!t->gone[i]) {
            st_bit_set(f->live, f->nbase + i);
        }
    }
    for (uint64_t i = 0; i < f->noverlay; i++) {
        f->slot[f->nprivate + i] = g->slot[i];
        if (g->dead[i] > f->seq) {
            st_bit_set(f->live, f->nbase + f->nprivate + i);
        }
    }
    for (size_t i = 0; t->active && i < t->killed.cap; i++) {
        if (t->killed.slot[i].used == 1) {
            st_bit_clear(f->live, row_of_ref(f, t->killed.slot[i].key));
        }
    }
}

static int mark_patched(st_frozen *f, const st_gen *g, const st_txn *t, st_error *err)
{
    for (size_t i = 0; i < g->npatch && g->patch[i].seq <= f->seq; i++) {
        ST_TRY(st_map_set(&f->patched, row_of_ref(f, g->patch[i].ref),
                          (uint64_t)(uintptr_t)g->patch[i].small, err));
    }
    for (size_t i = 0; t->active && i < t->patched.cap; i++) {
        const st_map_entry *e = &t->patched.slot[i];
        if (e->used == 1) {
            ST_TRY(st_map_set(&f->patched, row_of_ref(f, e->key),
                              (uint64_t)(uintptr_t)t->patch[e->value - 1].small, err));
        }
    }
    return ST_OK;
}

/* With the store's lock held. */
static int freeze(st_conn *c, st_frozen **out, st_error *err)
{
    const uint64_t *base;
    uint64_t nlive;
    st_gen *g = c->gen;
    st_frozen *f;
    int rc;
    *out = NULL;
    ST_TRY(st_image_live(g->image, &base, &nlive, err));
    f = h5_calloc(1, sizeof *f);
    if (!f) {
        return st_nomem(err);
    }
    f->refs = 1;
    f->gen = g;
    st_gen_ref(g);
    f->seq = c->seq;
    f->version = c->txn.version;
    f->nbase = g->image->nrow;
    f->nprivate = c->txn.active ? c->txn.nslot : 0;
    f->noverlay = slots_up_to(g, c->seq);
    f->nrow = f->nbase + f->nprivate + f->noverlay;
    f->slot = h5_alloc_array((size_t)(f->nprivate + f->noverlay) + 1, sizeof(st_slot *));
    f->live = h5_calloc(st_bit_words(f->nrow) + 1, sizeof *f->live);
    rc = f->slot && f->live ? ST_OK : st_nomem(err);
    if (!rc) {
        memcpy(f->live, base, st_bit_words(f->nbase) * sizeof *base);
        mark_live(f, g, &c->txn);
        f->nlive = 0;
        for (size_t i = 0; i < st_bit_words(f->nrow); i++) {
            f->nlive += (uint64_t)__builtin_popcountll(f->live[i]);
        }
        rc = mark_patched(f, g, &c->txn, err);
    }
    if (rc) {
        st_frozen_unref(f);
        return rc;
    }
    *out = f;
    return ST_OK;
}

static int is_current(const st_conn *c)
{
    const st_frozen *f = c->frozen;
    return f && f->gen == c->gen && f->seq == c->seq && f->version == c->txn.version;
}

static int frozen_for(st_conn *c, st_frozen **out, st_error *err)
{
    int rc = ST_OK;
    if (!is_current(c)) {
        st_frozen *f;
        pthread_mutex_lock(&c->store->lock);
        rc = freeze(c, &f, err);
        pthread_mutex_unlock(&c->store->lock);
        if (rc) {
            return rc;
        }
        st_life life;
        st_conn_life(c, &life);
        f->fade = (st_fade_rule){life.last_tick, life.activation_half_life};
        st_conn_drop_frozen(c);
        c->frozen = f;
    }
    *out = c->frozen;
    c->frozen->refs++;
    return ST_OK;
}

void st_conn_drop_frozen(st_conn *c)
{
    st_view *v = c->idle;
    h5_free(c->rested);
    c->rested = NULL;
    if (v) {
        st_reader_close(&v->reader);
        st_frozen_unref(v->f);
        h5_free(v);
        c->idle = NULL;
    }
    st_frozen_unref(c->frozen);
    c->frozen = NULL;
}

int st_view_open(st_conn *c, st_view **out, st_error *err)
{
    st_view *v;
    int rc;
    *out = NULL;
    ST_TRY(st_snapshot_refresh(c, err));
    if (c->idle && is_current(c)) {
        *out = c->idle;
        c->idle = NULL;
        c->nviews++;
        return ST_OK;
    }
    v = h5_calloc(1, sizeof *v);
    if (!v) {
        return st_nomem(err);
    }
    v->conn = c;
    rc = frozen_for(c, &v->f, err);
    rc = rc ? rc : st_reader_open(&v->reader, v->f->gen->image, err);
    if (rc) {
        st_frozen_unref(v->f);
        h5_free(v);
        return rc;
    }
    c->nviews++;
    *out = v;
    return ST_OK;
}

void st_view_close(st_view *v)
{
    if (v) {
        st_conn *c = v->conn;
        if (!c->idle && v->f == c->frozen && st_reader_rests(&v->reader)) {
            c->idle = v;
            c->nviews--;
            st_conn_sweep(c);
            return;
        }
        st_reader_close(&v->reader);
        st_frozen_unref(v->f);
        h5_free(v);
        c->nviews--;
        st_conn_sweep(c);
    }
}

const char *st_conn_index(st_conn *c)
{
    const st_lists *l;
    if (st_snapshot_refresh(c, NULL) || !c->gen) {
        return NULL;
    }
    if (c->gen->options.index == ST_INDEX_FLAT || c->gen->options.exact ||
        st_image_lists(c->gen->image, &l, NULL) || l->state != ST_LISTS_GOOD) {
        return st_index_name(ST_INDEX_FLAT);
    }
    return st_index_name(l->info.kind - VEC_IVF + ST_INDEX_IVF);
}

uint64_t st_view_count(const st_view *v)
{
    return v->f->nlive;
}

const st_num *st_frozen_small(const st_frozen *f, uint64_t row)
{
    uint64_t p;
    if (f->patched.n && st_map_get(&f->patched, row, &p)) {
        return (const st_num *)(uintptr_t)p;
    }
    return row < f->nbase ? NULL : f->slot[row - f->nbase]->small;
}

int st_view_value(st_view *v, uint64_t row, int col, st_value *out, st_error *err)
{
    const st_schema *s = v->f->gen->schema;
    const st_num *small = s->small_of[col] >= 0 ? st_frozen_small(v->f, row) : NULL;
    if (col == ST_COL_ACTIVATION && v->f->fade.tick != 0) {
        memset(out, 0, sizeof *out);
        out->type = ST_REAL;
        return st_view_activation(v, row, &out->r, err);
    }
    if (small) {
        st_small_to_value(s, s->small_of[col], small[s->small_of[col]], out);
        return ST_OK;
    }
    if (row < v->f->nbase) {
        return st_read_value(&v->reader, row, col, out, err);
    }
    st_slot_value(s, v->f->slot[row - v->f->nbase], NULL, col, out);
    return ST_OK;
}

int64_t st_frozen_id(st_view *v, uint64_t row)
{
    int64_t id = 0;
    if (row >= v->f->nbase) {
        return v->f->slot[row - v->f->nbase]->id;
    }
    st_read_id(&v->reader, row, &id, NULL); // the id column is stored raw: reading it cannot fail
    return id;
}

int64_t st_view_id(st_view *v, uint64_t row)
{
    return st_frozen_id(v, row);
}

int st_view_find(st_view *v, int64_t id, uint64_t *row, st_error *err)
{
    st_conn *c = v->conn;
    st_frozen *f = v->f;
    uint64_t ref;
    int rc;
    uint64_t entry;
    // The connection's own changes, as far as this view has them.
    if (f->nprivate && f->version == c->txn.version) {
        if (st_map_get(&c->txn.by_id, (uint64_t)id, &entry)) {
            *row = f->nbase + entry;
            return entry & ST_ENTRY_EVICTED ? ST_NOTFOUND : ST_OK; // that bit GONE has, too
        }
    } else if (f->nprivate) {
        for (uint64_t i = f->nprivate; i-- > 0;) {
            if (f->slot[i]->id == id && st_bit_get(f->live, f->nbase + i)) {
                *row = f->nbase + i;
                return ST_OK;
            }
        }
    }
    pthread_mutex_lock(&c->store->lock);
    rc = st_gen_find(f->gen, &v->reader, id, f->seq, &ref, err);
    pthread_mutex_unlock(&c->store->lock);
    if (rc < 0) {
        return rc;
    }
    if (rc && st_bit_get(f->live, row_of_ref(f, ref))) {
        *row = row_of_ref(f, ref);
        return ST_OK;
    }
    return ST_NOTFOUND;
}

/* -------------------------------------------------------------------------------------- evicted */

/* The bits of what this connection's transaction has evicted, or taken away of what was. */
static void mark_own(st_frozen *f, const st_txn *t)
{
    for (size_t i = 0; t->active && i < t->nop; i++) {
        uint64_t row = row_of_ref(f, t->op[i].ref);
        if (t->op[i].kind == ST_OP_BURY) {
            st_bit_clear(f->evicted, row);
        } else if (st_txn_evicts(t, i)) {
            st_bit_set(f->evicted, row);
        }
    }
}

/* With the store's lock held. */
static int mark_evicted(st_frozen *f, st_error *err)
{
    const st_gen *g = f->gen;
    uint64_t when;
    f->evicted = h5_calloc(st_bit_words(f->nrow) + 1, sizeof *f->evicted);
    if (!f->evicted) {
        return st_nomem(err);
    }
    if (g->image->evicted) {
        memcpy(f->evicted, g->image->evicted, st_bit_words(f->nbase) * sizeof *f->evicted);
    }
    for (size_t i = 0; i < g->nkill; i++) {
        if (g->kill[i].seq <= f->seq) {
            st_bit_clear(f->evicted, g->kill[i].row);
        }
    }
    for (size_t i = 0; i < g->evicted.cap; i++) {
        const st_map_entry *e = &g->evicted.slot[i];
        int overlay = (e->key & ST_REF_OVERLAY) != 0;
        if (e->used != 1 || (overlay && ST_REF_INDEX(e->key) >= f->noverlay)) {
            continue;
        }
        when = overlay ? g->dead[ST_REF_INDEX(e->key)] : ST_SEQ_NEVER;
        if (!overlay) {
            st_map_get(&g->killed, e->key, &when);
        }
        if (when <= f->seq && st_gen_evicted(g, e->key, f->seq)) {
            st_bit_set(f->evicted, row_of_ref(f, e->key));
        }
    }
    return ST_OK;
}

static int current(const st_view *v, st_error *err)
{
    return v->f->version == v->conn->txn.version
               ? ST_OK
               : st_fail(err, ST_MISUSE, "the connection has written since the view was opened");
}

int st_frozen_evicted(st_view *v, const uint64_t **bits, st_error *err)
{
    st_frozen *f = v->f;
    int rc = current(v, err);
    if (!rc && !f->evicted) {
        pthread_mutex_lock(&v->conn->store->lock);
        rc = mark_evicted(f, err);
        pthread_mutex_unlock(&v->conn->store->lock);
        if (!rc) {
            mark_own(f, &v->conn->txn);
        }
    }
    *bits = f->evicted;
    return rc;
}

int st_evicted_find(st_view *v, int64_t id, uint64_t *row, st_error *err)
{
    st_conn *c = v->conn;
    uint64_t entry, ref = 0;
    int state = ST_VERSION_NONE, rc;
    ST_TRY(current(v, err));
    if (c->txn.active && st_map_get(&c->txn.by_id, (uint64_t)id, &entry)) {
        if (entry == ST_ENTRY_GONE || !(entry & ST_ENTRY_EVICTED)) {
            return ST_NOTFOUND;
        }
        *row = row_of_ref(v->f, c->txn.op[entry & ~ST_ENTRY_EVICTED].ref);
        return ST_OK;
    }
    pthread_mutex_lock(&c->store->lock);
    rc = st_gen_newest(v->f->gen, &v->reader, id, v->f->seq, &ref, &state, err);
    pthread_mutex_unlock(&c->store->lock);
    *row = row_of_ref(v->f, ref);
    return rc ? rc : state == ST_VERSION_EVICTED ? ST_OK : ST_NOTFOUND;
}

int st_evicted_next(st_view *v, uint64_t from, uint64_t *row, st_error *err)
{
    const uint64_t *bits;
    ST_TRY(st_frozen_evicted(v, &bits, err));
    *row = from < v->f->nrow ? st_bit_next(bits, v->f->nrow, from) : v->f->nrow;
    return *row < v->f->nrow ? ST_OK : ST_NOTFOUND;
}
