/*
 * st_txn.c - a connection's change set: rows written and not yet committed, with undo.
 *
 * Every change is an op on a stack; undoing pops. Private slots keep their numbers for the life of
 * the transaction (a popped one is marked gone), because the text index of the transaction knows
 * them by number.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>

#include "st_store.h"

#include "vec.h"

/* ----------------------------------------------------------------------------------------- undo */

static void set_entry(st_txn *t, int64_t id, int had, uint64_t entry)
{
    if (had) {
        st_map_set(&t->by_id, (uint64_t)id, entry,
                   NULL); // the key is there: cannot fail
    } else {
        st_map_remove(&t->by_id, (uint64_t)id);
    }
}

static void undo_one(st_txn *t)
{
    st_op *op = &t->op[--t->nop];
    switch (op->kind) {
    case ST_OP_PUT:
        t->gone[ST_REF_INDEX(op->ref)] = 1;
        set_entry(t, op->id, op->had_entry, op->entry);
        break;
    case ST_OP_KILL:
    case ST_OP_EVICT:
        if (op->ref & ST_REF_PRIVATE) {
            t->gone[ST_REF_INDEX(op->ref)] = 0;
        } else {
            st_map_remove(&t->killed, op->ref);
        }
        set_entry(t, op->id, op->had_entry, op->entry);
        break;
    case ST_OP_SIDE:
        st_side_pop(&t->side[op->id]);
        break;
    case ST_OP_BURY:
        set_entry(t, op->id, op->had_entry, op->entry);
        break;
    case ST_OP_PATCH:
        if (op->entry) {
            st_map_set(&t->patched, op->ref, op->entry, NULL);
        } else {
            st_map_remove(&t->patched, op->ref);
        }
        break;
    default:
        t->nconfig--;
    }
    t->version++;
}

static void undo_to(st_txn *t, size_t nop)
{
    while (t->nop > nop) {
        undo_one(t);
    }
}

void st_txn_undo_to(st_conn *c, size_t nop)
{
    undo_to(&c->txn, nop);
}

/* Room for what one change adds, so that what follows cannot fail half-way, and for moving it to
** the garbage when the transaction ends under open views, which must not fail either. */
static int room(st_conn *c, st_error *err)
{
    st_txn *t = &c->txn;
    ST_TRY(st_grow(&t->op, &t->cap_op, t->nop + 3, sizeof *t->op, err));
    ST_TRY(st_grow(&t->slot, &t->cap_slot, t->nslot + 1, sizeof *t->slot, err));
    ST_TRY(st_grow(&t->gone, &t->cap_gone, t->nslot + 1, sizeof *t->gone, err));
    ST_TRY(st_grow(&t->patch, &t->cap_patch, t->npatch + 1, sizeof *t->patch, err));
    ST_TRY(
        st_grow(&c->garbage, &c->cap_garbage, c->ngarbage + t->nslot + 1, sizeof *c->garbage, err));
    ST_TRY(st_grow(&c->garbage_small, &c->cap_garbage_small, c->ngarbage_small + t->npatch + 1,
                   sizeof *c->garbage_small, err));
    ST_TRY(st_map_reserve(&t->by_id, 2, err));
    ST_TRY(st_map_reserve(&t->killed, 1, err));
    return st_map_reserve(&t->patched, 1, err);
}

/* -------------------------------------------------------------------------------------- finding */

/* The newest version of id that this transaction sees: *state (ST_VERSION_), and *ref unless it is
** NONE. */
static int newest(st_conn *c, int64_t id, uint64_t *ref, int *state, st_error *err)
{
    uint64_t entry;
    int rc;
    if (st_map_get(&c->txn.by_id, (uint64_t)id, &entry)) {
        *state = entry == ST_ENTRY_GONE     ? ST_VERSION_NONE
                 : entry & ST_ENTRY_EVICTED ? ST_VERSION_EVICTED
                                            : ST_VERSION_LIVES;
        *ref = *state == ST_VERSION_EVICTED ? c->txn.op[entry & ~ST_ENTRY_EVICTED].ref
                                            : ST_REF_PRIVATE | entry;
        return ST_OK;
    }
    pthread_mutex_lock(&c->store->lock);
    rc = st_gen_newest(c->gen, &c->gen->reader, id, c->seq, ref, state, err);
    pthread_mutex_unlock(&c->store->lock);
    return rc;
}

/* The version of id that this transaction sees: 1 and *ref, 0, or negative. */
static int find(st_conn *c, int64_t id, uint64_t *ref, st_error *err)
{
    int state, rc = newest(c, id, ref, &state, err);
    return rc ? rc : state == ST_VERSION_LIVES;
}

static int need_txn(const st_conn *c, st_error *err)
{
    return c->txn.active ? ST_OK : st_fail(err, ST_MISUSE, "no transaction is open on the store");
}

int st_exists(st_conn *c, int64_t id, st_error *err)
{
    uint64_t ref;
    int rc;
    ST_TRY(need_txn(c, err));
    rc = find(c, id, &ref, err);
    return rc < 0 ? rc : rc ? ST_OK : ST_NOTFOUND;
}

/* -------------------------------------------------------------------------------------- writing */

static st_op *push_op(st_txn *t, int kind, int64_t id, uint64_t ref)
{
    st_op *op = &t->op[t->nop++];
    memset(op, 0, sizeof *op);
    op->kind = kind;
    op->id = id;
    op->ref = ref;
    op->had_entry = st_map_get(&t->by_id, (uint64_t)id, &op->entry);
    t->version++;
    return op;
}

/* KILL or EVICT. */
static void push_end(st_txn *t, int kind, int64_t id, uint64_t ref)
{
    size_t at = t->nop;
    push_op(t, kind, id, ref);
    if (ref & ST_REF_PRIVATE) {
        t->gone[ST_REF_INDEX(ref)] = 1;
    } else {
        st_map_set(&t->killed, ref, 1, NULL);
    }
    st_map_set(&t->by_id, (uint64_t)id, kind == ST_OP_EVICT ? ST_ENTRY_EVICTED | at : ST_ENTRY_GONE,
               NULL);
}

/* An evicted version is not to be found any more. */
static void push_bury(st_txn *t, int64_t id, uint64_t ref)
{
    push_op(t, ST_OP_BURY, id, ref);
    st_map_set(&t->by_id, (uint64_t)id, ST_ENTRY_GONE, NULL);
}

int st_txn_evicts(const st_txn *t, size_t i)
{
    uint64_t entry;
    return t->op[i].kind == ST_OP_EVICT && st_map_get(&t->by_id, (uint64_t)t->op[i].id, &entry) &&
           entry == (ST_ENTRY_EVICTED | i);
}

/* Takes slot over; there is room. */
static void push_put(st_txn *t, st_slot *slot)
{
    uint64_t n = t->nslot;
    push_op(t, ST_OP_PUT, slot->id, ST_REF_PRIVATE | n);
    t->slot[n] = slot;
    t->gone[n] = 0;
    t->nslot++;
    st_map_set(&t->by_id, (uint64_t)slot->id, n, NULL);
}

int st_txn_index(st_txn *t, st_error *err)
{
    if (!t->text) {
        ST_TRY(st_from_vec(err, vec_text_new(&t->text), "the transaction's text"));
    }
    for (; t->ntext < t->nslot; t->ntext++) {
        const st_slot *s = t->slot[t->ntext];
        if (s->ntokens) {
            ST_TRY(st_from_vec(err, vec_text_add(t->text, t->ntext, s->tokens, s->ntokens),
                               "the transaction's text"));
        }
    }
    return ST_OK;
}

static int next_id(st_conn *c, int64_t *id, st_error *err)
{
    if (c->txn.next_id == INT64_MAX) {
        return st_fail(err, ST_FULL, "the largest id is taken; none can be assigned");
    }
    *id = c->txn.next_id;
    return ST_OK;
}

static void saw_id(st_txn *t, int64_t id)
{
    if (id >= t->next_id) {
        t->next_id = id == INT64_MAX ? INT64_MAX : id + 1;
    }
}

static int take_id(st_conn *c, const st_value *v, int64_t *id, st_error *err)
{
    if (v->type == ST_NULL) {
        return next_id(c, id, err);
    }
    if (v->type != ST_INT) {
        return st_fail(err, ST_MISUSE, "id must be an integer");
    }
    *id = v->i;
    return ST_OK;
}

/* -------------------------------------------------------------------------------------- fading */

static st_fade_rule fade_rule(st_conn *c)
{
    st_life life;
    st_conn_life(c, &life);
    return (st_fade_rule){life.last_tick, life.activation_half_life};
}

/* Has the small values of a row at that time say what reads as seen. */
static void set_activation(st_conn *c, st_num *small, double timestamp, double seen)
{
    st_fade_rule f = fade_rule(c);
    small[ST_SMALL_ACTIVATION].r = f.tick != 0 ? st_unfade(&f, seen, small[ST_SMALL_LAST_ACCESS].r,
                                                           timestamp)
                                               : seen;
}

static double seen_activation(st_conn *c, const st_num *small, double timestamp)
{
    st_fade_rule f = fade_rule(c);
    return f.tick != 0
               ? st_fade(&f, small[ST_SMALL_ACTIVATION].r, small[ST_SMALL_LAST_ACCESS].r, timestamp)
               : small[ST_SMALL_ACTIVATION].r;
}

int st_put(st_conn *c, const st_row *row, int64_t *id, st_error *err)
{
    st_slot *slot;
    uint64_t ref = 0;
    int rc, state = ST_VERSION_NONE;
    ST_TRY(need_txn(c, err));
    ST_TRY(take_id(c, &row->values[ST_COL_ID], id, err));
    // An id of our own choice is above all that ever were.
    if (row->values[ST_COL_ID].type != ST_NULL) {
        ST_TRY(newest(c, *id, &ref, &state, err));
    }
    if (state == ST_VERSION_LIVES) {
        return st_fail(err, ST_EXISTS, "id %lld is taken", (long long)*id);
    }
    ST_TRY(st_slot_make(c->store->schema, row, st_now_unix(), &slot, err));
    slot->id = *id;
    set_activation(c, slot->small, slot->timestamp, slot->small[ST_SMALL_ACTIVATION].r);
    rc = room(c, err);
    if (rc) {
        st_slot_free(slot);
        return rc;
    }
    if (state == ST_VERSION_EVICTED) {
        push_bury(&c->txn, *id, ref);
    }
    push_put(&c->txn, slot);
    saw_id(&c->txn, *id);
    return ST_OK;
}

int st_expect(st_conn *c, size_t sets, size_t evictions, st_error *err)
{
    st_txn *t = &c->txn;
    size_t n = sets + evictions;
    ST_TRY(need_txn(c, err));
    ST_TRY(st_grow(&t->op, &t->cap_op, t->nop + 2 * n + 3, sizeof *t->op, err));
    ST_TRY(st_grow(&t->patch, &t->cap_patch, t->npatch + sets + 1, sizeof *t->patch, err));
    ST_TRY(st_grow(&t->change, &t->cap_change, t->nop + 2 * n, sizeof *t->change, err));
    ST_TRY(st_map_reserve(&t->by_id, evictions + 2, err));
    ST_TRY(st_map_reserve(&t->killed, evictions + 1, err));
    return st_map_reserve(&t->patched, sets + 1, err);
}

int st_txn_find(st_conn *c, int64_t id, uint64_t *ref, st_error *err)
{
    int rc;
    ST_TRY(need_txn(c, err));
    rc = find(c, id, ref, err);
    return rc < 0 ? rc
           : rc   ? ST_OK
                  : st_fail(err, ST_NOTFOUND, "there is no row %lld", (long long)id);
}

int st_txn_end(st_conn *c, int kind, int64_t id, uint64_t ref, st_error *err)
{
    ST_TRY(room(c, err));
    push_end(&c->txn, kind, id, ref);
    return ST_OK;
}

int st_delete(st_conn *c, int64_t id, st_error *err)
{
    uint64_t ref;
    ST_TRY(st_txn_find(c, id, &ref, err));
    return st_txn_end(c, ST_OP_KILL, id, ref, err);
}

int st_evicted_drop(st_conn *c, int64_t id, st_error *err)
{
    uint64_t ref;
    int state;
    ST_TRY(need_txn(c, err));
    ST_TRY(newest(c, id, &ref, &state, err));
    if (state != ST_VERSION_EVICTED) {
        return st_fail(err, ST_NOTFOUND, "row %lld is not evicted", (long long)id);
    }
    ST_TRY(room(c, err));
    push_bury(&c->txn, id, ref);
    return ST_OK;
}

const st_num *st_txn_small(st_conn *c, uint64_t ref)
{
    const st_num *p;
    uint64_t at;
    if (st_map_get(&c->txn.patched, ref, &at)) {
        return c->txn.patch[at - 1].small;
    }
    if (ref & ST_REF_PRIVATE) {
        return c->txn.slot[ST_REF_INDEX(ref)]->small;
    }
    p = st_gen_patch(c->gen, ref, c->seq);
    return p || !(ref & ST_REF_OVERLAY) ? p : c->gen->slot[ST_REF_INDEX(ref)]->small;
}

int st_txn_smalls(st_conn *c, uint64_t ref, st_num *out, st_error *err)
{
    const st_schema *s = c->store->schema;
    const st_num *p;
    int rc = ST_OK;
    pthread_mutex_lock(&c->store->lock);
    p = st_txn_small(c, ref);
    if (p) {
        memcpy(out, p, (size_t)s->nsmall * sizeof *out);
    }
    for (int i = 0; i < s->nsmall && !p && !rc; i++) {
        rc = st_read_small(&c->gen->reader, i, ref, &out[i], err);
    }
    pthread_mutex_unlock(&c->store->lock);
    return rc;
}

/* A heavy column of the version at ref. With the store's lock held: what it gives of a base row
** points into the generation's reader. */
int st_txn_heavy(st_conn *c, uint64_t ref, int col, st_value *out, st_error *err)
{
    const st_slot *slot = NULL;
    if (ref & ST_REF_PRIVATE) {
        slot = c->txn.slot[ST_REF_INDEX(ref)];
    } else if (ref & ST_REF_OVERLAY) {
        slot = c->gen->slot[ST_REF_INDEX(ref)];
    }
    if (slot) {
        st_slot_value(c->store->schema, slot, slot->small, col, out);
        return ST_OK;
    }
    return st_read_value(&c->gen->reader, ref, col, out, err);
}

/* The time of the version at ref. */
static int time_at(st_conn *c, uint64_t ref, double *out, st_error *err)
{
    st_value v;
    int rc;
    pthread_mutex_lock(&c->store->lock);
    rc = st_txn_heavy(c, ref, ST_COL_TIMESTAMP, &v, err);
    pthread_mutex_unlock(&c->store->lock);
    *out = rc ? 0 : v.r;
    return rc;
}

/* Columns and values as st_set has them. */
static int take_smalls(st_conn *c, uint64_t ref, const int *col, const st_value *value, size_t n,
                       st_num *small, st_error *err)
{
    const st_schema *s = c->store->schema;
    double timestamp = 0, seen = 0;
    int faded = 0, given = 0;
    ST_TRY(st_txn_smalls(c, ref, small, err));
    for (size_t i = 0; i < n; i++) {
        given |= col[i] == ST_COL_ACTIVATION;
        faded |= col[i] == ST_COL_ACTIVATION || col[i] == ST_COL_LAST_ACCESS;
    }
    faded = faded && fade_rule(c).tick != 0;
    if (faded) {
        ST_TRY(time_at(c, ref, &timestamp, err));
        seen = seen_activation(c, small, timestamp);
    }
    for (size_t i = 0; i < n; i++) {
        int at = s->small_of[col[i]];
        ST_TRY(st_small_from_value(s, at, &value[i], &small[at], err));
    }
    if (faded) {
        set_activation(c, small, timestamp, given ? small[ST_SMALL_ACTIVATION].r : seen);
    }
    return ST_OK;
}

static int set_smalls(st_conn *c, int64_t id, uint64_t ref, const int *col, const st_value *value,
                      size_t n, st_error *err)
{
    st_txn *t = &c->txn;
    st_num *small = h5_alloc_array((size_t)c->store->schema->nsmall, sizeof *small);
    st_op *op;
    int rc = small ? take_smalls(c, ref, col, value, n, small, err) : st_nomem(err);
    rc = rc ? rc : room(c, err);
    if (rc) {
        h5_free(small);
        return rc;
    }
    op = &t->op[t->nop++];
    memset(op, 0, sizeof *op);
    op->kind = ST_OP_PATCH;
    op->id = id;
    op->ref = ref;
    st_map_get(&t->patched, ref, &op->entry);
    t->patch[t->npatch++] = (st_patch){ref, 0, small};
    op->patch = t->npatch;
    st_map_set(&t->patched, ref, t->npatch, NULL);
    t->version++;
    return ST_OK;
}

static int update_small(st_conn *c, int64_t id, uint64_t ref, const st_row *row,
                        const uint8_t *changed, st_error *err)
{
    const st_schema *s = c->store->schema;
    int col[ST_SMALLS_MAX];
    st_value value[ST_SMALLS_MAX];
    size_t n = 0;
    for (int i = 0; i < s->nsmall; i++) {
        if (changed[s->small_col[i]]) {
            col[n] = s->small_col[i];
            value[n++] = row->values[s->small_col[i]];
        }
    }
    return set_smalls(c, id, ref, col, value, n, err);
}

int st_set(st_conn *c, st_view *v, uint64_t row, const int *col, const st_value *value, size_t n,
           st_error *err)
{
    ST_TRY(need_txn(c, err));
    return set_smalls(c, st_frozen_id(v, row), st_frozen_ref(v->f, row), col, value, n, err);
}

/* The new row: what changed from the caller, the rest from the version at ref. */
static int merged_slot(st_conn *c, uint64_t ref, const st_row *row, const uint8_t *changed,
                       st_slot **out, st_error *err)
{
    const st_schema *s = c->store->schema;
    st_value *v = h5_alloc_array((size_t)s->ncol, sizeof *v);
    st_num *small = h5_alloc_array((size_t)s->nsmall, sizeof *small);
    st_row merged = {v, row->tokens, row->ntokens};
    double timestamp = 0, seen = 1;
    int rc = v && small ? st_txn_smalls(c, ref, small, err) : st_nomem(err);
    rc = rc ? rc : time_at(c, ref, &timestamp, err);
    if (!rc) {
        seen = changed[ST_COL_ACTIVATION] ? -1 : seen_activation(c, small, timestamp);
    }
    pthread_mutex_lock(&c->store->lock);
    for (int i = 0; i < s->ncol && !rc; i++) {
        if (changed[i] || i == ST_COL_ID) {
            v[i] = row->values[i];
        } else if (s->small_of[i] >= 0) {
            st_small_to_value(s, s->small_of[i], small[s->small_of[i]], &v[i]);
        } else {
            rc = st_txn_heavy(c, ref, i, &v[i], err);
        }
    }
    rc = rc ? rc : st_slot_make(s, &merged, st_now_unix(), out, err);
    pthread_mutex_unlock(&c->store->lock);
    if (!rc) {
        st_num *now = (*out)->small;
        set_activation(c, now, (*out)->timestamp, seen < 0 ? now[ST_SMALL_ACTIVATION].r : seen);
    }
    h5_free(v);
    h5_free(small);
    return rc;
}

/* A new row in place of the one at ref; whole or not at all. evicted: a version of the id to that
** it takes the place of, or NULL. */
static int update_heavy(st_conn *c, int64_t id, int64_t to, uint64_t ref, const uint64_t *evicted,
                        const st_row *row, const uint8_t *changed, st_error *err)
{
    st_txn *t = &c->txn;
    st_slot *slot = NULL;
    int rc;
    ST_TRY(merged_slot(c, ref, row, changed, &slot, err));
    slot->id = to;
    rc = room(c, err);
    if (rc) {
        st_slot_free(slot);
        return rc;
    }
    push_end(t, ST_OP_KILL, id, ref);
    if (evicted) {
        push_bury(t, to, *evicted);
    }
    push_put(t, slot);
    saw_id(t, to);
    return ST_OK;
}

int st_update(st_conn *c, int64_t id, const st_row *row, const uint8_t *changed, st_error *err)
{
    uint64_t ref, other = 0;
    int64_t to = id;
    int heavy = 0, any = 0, rc, state = ST_VERSION_NONE;
    ST_TRY(need_txn(c, err));
    for (int i = 0; i < c->store->schema->ncol; i++) {
        any |= changed[i];
        heavy |= changed[i] && st_column_heavy(c, i);
    }
    if (changed[ST_COL_ID]) {
        if (row->values[ST_COL_ID].type != ST_INT) {
            return st_fail(err, ST_MISUSE, "id must be an integer");
        }
        to = row->values[ST_COL_ID].i;
    }
    rc = find(c, id, &ref, err);
    if (rc <= 0) {
        return rc < 0 ? rc : st_fail(err, ST_NOTFOUND, "there is no row %lld", (long long)id);
    }
    if (to != id) {
        ST_TRY(newest(c, to, &other, &state, err));
    }
    if (state == ST_VERSION_LIVES) {
        return st_fail(err, ST_EXISTS, "id %lld is taken", (long long)to);
    }
    if (!any) {
        return ST_OK;
    }
    return heavy ? update_heavy(c, id, to, ref, state == ST_VERSION_EVICTED ? &other : NULL, row,
                                changed, err)
                 : update_small(c, id, ref, row, changed, err);
}

/* ----------------------------------------------------------------------------------- savepoints */

int st_savepoint(st_conn *c, int n, st_error *err)
{
    st_txn *t = &c->txn;
    if (!t->active) {
        return ST_OK;
    }
    for (size_t i = 0; i < t->nmark; i++) {
        if (t->mark[i].n == n) {
            return ST_OK; // a companion table of the same store came first
        }
    }
    ST_TRY(st_grow(&t->mark, &t->cap_mark, t->nmark + 1, sizeof *t->mark, err));
    t->mark[t->nmark++] = (st_mark){n, t->nop};
    return ST_OK;
}

static void drop_marks(st_txn *t, int from)
{
    size_t k = 0;
    for (size_t i = 0; i < t->nmark; i++) {
        if (t->mark[i].n < from) {
            t->mark[k++] = t->mark[i];
        }
    }
    t->nmark = k;
}

void st_release(st_conn *c, int n)
{
    if (c->txn.active) {
        drop_marks(&c->txn, n);
    }
}

void st_rollback_to(st_conn *c, int n)
{
    st_txn *t = &c->txn;
    size_t nop = 0;
    if (!t->active) {
        return;
    }
    for (size_t i = 0; i < t->nmark && n >= 0; i++) {
        if (t->mark[i].n == n) {
            nop = t->mark[i].nop;
        }
    }
    undo_to(t, nop);
    // The savepoint itself stays open: SQLite may roll back to it again.
    drop_marks(t, n + 1);
    for (size_t i = 0; i < t->nmark; i++) {
        t->mark[i].nop = ST_MIN(t->mark[i].nop, t->nop); // n was never set: all is undone
    }
}

/* -------------------------------------------------------------------------------------- options */

void st_conn_options(st_conn *c, st_options *out)
{
    pthread_mutex_lock(&c->store->lock);
    *out = c->gen->options;
    pthread_mutex_unlock(&c->store->lock);
    for (size_t i = 0; i < c->txn.nconfig; i++) {
        st_options_set(out, c->txn.config[i].name, c->txn.config[i].value, 1, NULL);
    }
}

int st_conn_synchronous(st_conn *c)
{
    st_options o;
    int synchronous;
    if (!c->txn.nconfig) {
        pthread_mutex_lock(&c->store->lock);
        synchronous = c->gen->options.synchronous;
        pthread_mutex_unlock(&c->store->lock);
        return synchronous;
    }
    st_conn_options(c, &o);
    return o.synchronous;
}

void st_query_defaults(st_conn *c, st_query *q)
{
    st_options o;
    st_conn_options(c, &o);
    q->vector_weight = o.vector_weight;
    q->text_weight = o.text_weight;
    q->rrf_k = o.rrf_k;
    q->fusion = o.fusion;
    q->context = o.context;
    q->recency = o.recency;
    q->half_life = o.recency_half_life;
    q->importance_weight = o.importance_weight;
    q->activation_weight = o.activation_weight;
    q->min_score = o.min_score;
    q->dedup = o.dedup;
    q->mmr = o.mmr;
    q->expand = (int)o.expand;
    q->recall = o.recall;
    q->graph_weight = o.graph_weight;
    q->nprobe = o.nprobe;
    q->exact = (int)o.exact;
    q->syntax = o.syntax;
    q->has_as_of = !isnan(o.as_of);
    q->as_of = q->has_as_of ? o.as_of : 0;
}

int st_get_option(st_conn *c, const char *name, char *buf, size_t n, st_error *err)
{
    st_options o;
    ST_TRY(st_snapshot_refresh(c, err));
    st_conn_options(c, &o);
    return st_options_get(c->store->schema, &o, name, buf, n, err);
}

int st_set_option(st_conn *c, const char *name, const char *value, st_error *err)
{
    st_txn *t = &c->txn;
    st_options o;
    st_config_change *change;
    ST_TRY(need_txn(c, err));
    st_conn_options(c, &o);
    ST_TRY(st_options_set(&o, name, value, 0, err));
    if (strlen(value) > ST_OPTION_TEXT_MAX) {
        return st_fail(err, ST_LIMIT, "%s has %zu bytes; at most %d", name, strlen(value),
                       ST_OPTION_TEXT_MAX);
    }
    ST_TRY(st_grow(&t->op, &t->cap_op, t->nop + 1, sizeof *t->op, err));
    ST_TRY(st_grow(&t->config, &t->cap_config, t->nconfig + 1, sizeof *t->config, err));
    change = &t->config[t->nconfig++];
    memcpy(change->name, name, strlen(name) + 1);
    memcpy(change->value, value, strlen(value) + 1);
    memset(&t->op[t->nop], 0, sizeof *t->op);
    t->op[t->nop++].kind = ST_OP_CONFIG;
    t->version++;
    return ST_OK;
}

int st_in_transaction(const st_conn *c)
{
    return c->txn.active;
}

int st_has_changes(const st_conn *c)
{
    return c->txn.active && c->txn.nop > 0;
}

int st_holds_doubt(const st_conn *c)
{
    return c->txn.active && c->txn.held;
}
