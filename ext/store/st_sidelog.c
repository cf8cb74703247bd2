/*
 * st_sidelog.c - records of the tables beside the rows in a generation and in a transaction.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>

#include "st_store.h"

/* --------------------------------------------------------------------------------- a generation */

int st_gen_side_find(st_gen *g, st_reader *r, int side, const st_key *key, uint64_t seq,
                     uint64_t *ref, st_error *err)
{
    const st_side *s = &g->side[side];
    uint64_t at = st_side_version(s, side, key, seq), when;
    int rc;
    if (at) {
        *ref = ST_REF_OVERLAY | (at - 1);
        return s->dead[at - 1] > seq;
    }
    rc = st_image_side_find(r, side, key, ref, err);
    return rc > 0 && st_map_get(&s->killed, *ref, &when) && when <= seq ? 0 : rc;
}

/* Ends the version at ref; there is room. */
static void end_version(st_side *s, uint64_t ref, uint64_t seq)
{
    if (ref & ST_REF_OVERLAY) {
        s->dead[ST_REF_INDEX(ref)] = seq;
        return;
    }
    st_map_set(&s->killed, ref, seq, NULL);
    s->kill[s->nkill++] = (st_kill){ref, seq};
}

void st_gen_side_take(st_gen *g, st_rec *rec, int put, int found, uint64_t ref, uint64_t seq)
{
    st_side *s = &g->side[rec->side];
    if (found) {
        end_version(s, ref, seq);
    }
    if (put) {
        rec->seq = seq;
        st_side_push(s, rec);
    } else {
        st_rec_unref(rec);
    }
}

int st_gen_side_apply(st_gen *g, const st_frame *f, st_error *err)
{
    int put = f->type == ST_FRAME_SIDE_PUT, found;
    uint64_t ref = 0;
    st_rec *rec;
    st_key key;
    ST_TRY(st_rec_decode(!put, f->payload, f->n, &rec, err));
    key = st_rec_key(rec);
    found = st_side_room(&g->side[rec->side], 1, err);
    if (!found) {
        found = st_gen_side_find(g, &g->reader, rec->side, &key, ST_SEQ_NEVER - 1, &ref, err);
    }
    if (found < 0) {
        st_rec_unref(rec);
        return found;
    }
    st_gen_side_take(g, rec, put, found, ref, f->sequence);
    return ST_OK;
}

int st_gen_sides_changed(const st_gen *g, uint64_t from, uint64_t to)
{
    int found = 0;
    for (int side = 0; side < ST_SIDES; side++) {
        const st_side *s = &g->side[side];
        for (size_t i = 0; i < s->n && !found; i++) {
            found = (s->rec[i]->seq > from && s->rec[i]->seq <= to) ||
                    (s->dead[i] > from && s->dead[i] <= to);
        }
        for (size_t i = s->nkill; i > 0 && s->kill[i - 1].seq > from; i--) {
            found |= s->kill[i - 1].seq <= to;
        }
    }
    return found;
}

/* -------------------------------------------------------------------------------- a transaction */

/* The version that was there when the transaction began: 1 and *ref, 0, or negative. */
int st_txn_side_outer(st_conn *c, int side, const st_key *key, uint64_t *ref, st_error *err)
{
    int rc;
    pthread_mutex_lock(&c->store->lock);
    rc = st_gen_side_find(c->gen, &c->gen->reader, side, key, c->seq, ref, err);
    pthread_mutex_unlock(&c->store->lock);
    return rc;
}

/* Is there a record with this key, as the transaction sees it? 1, 0, negative. */
static int is_there(st_conn *c, int side, const st_key *key, st_error *err)
{
    const st_side *s = &c->txn.side[side];
    uint64_t at = st_side_version(s, side, key, ST_SEQ_NEVER), ref;
    return at ? !s->rec[at - 1]->ended : st_txn_side_outer(c, side, key, &ref, err);
}

static void show_key(int side, const st_key *key, char *buf, size_t n)
{
    if (st_side_text_key(side)) {
        snprintf(buf, n, "'%.*s'", (int)ST_MIN(key->text.n, (size_t)100),
                 (const char *)key->text.p);
    } else {
        snprintf(buf, n, "%lld", (long long)key->i);
    }
}

static int key_failed(int code, int side, const st_key *key, st_error *err)
{
    char show[128];
    show_key(side, key, show, sizeof show);
    return st_fail(err, code, code == ST_EXISTS ? "%s: %s %s is taken" : "%s: there is no %s %s",
                   st_side_defs[side].name, st_side_defs[side].col[0].name, show);
}

static int room(st_txn *t, int side, st_error *err)
{
    ST_TRY(st_grow(&t->op, &t->cap_op, t->nop + 2, sizeof *t->op, err));
    return st_side_room(&t->side[side], 2, err);
}

/* Takes the record over; there is room. */
static void push(st_txn *t, st_rec *rec)
{
    st_op *op = &t->op[t->nop++];
    memset(op, 0, sizeof *op);
    op->kind = ST_OP_SIDE;
    op->id = rec->side;
    op->ref = t->side[rec->side].n;
    st_side_push(&t->side[rec->side], rec);
    t->version++;
}

static int need_txn(const st_conn *c, st_error *err)
{
    return c->txn.active ? ST_OK : st_fail(err, ST_MISUSE, "no transaction is open on the store");
}

/* The values with the next number for a key, where none is given. */
static int with_key(st_conn *c, int side, const st_value *values, st_value *out, st_error *err)
{
    int64_t next;
    memcpy(out, values, (size_t)st_side_defs[side].ncol * sizeof *out);
    if (st_side_text_key(side) || out[0].type != ST_NULL) {
        return ST_OK;
    }
    pthread_mutex_lock(&c->store->lock);
    next = c->gen->side[side].next;
    pthread_mutex_unlock(&c->store->lock);
    out[0] = (st_value){.type = ST_INT, .i = ST_MAX(next, c->txn.side[side].next)};
    return out[0].i == INT64_MAX ? st_fail(err, ST_FULL, "%s: the largest %s is taken",
                                           st_side_defs[side].name, st_side_defs[side].col[0].name)
                                 : ST_OK;
}

int st_side_put(st_conn *c, int side, const st_value *values, int64_t *key, st_error *err)
{
    st_value v[ST_SIDE_COLS_MAX];
    st_rec *rec;
    st_key k;
    int rc;
    ST_TRY(need_txn(c, err));
    ST_TRY(with_key(c, side, values, v, err));
    ST_TRY(st_rec_make(side, v, &rec, err));
    k = st_rec_key(rec);
    // A key that was assigned here is above all that ever were.
    rc = values[0].type == ST_NULL ? 0 : is_there(c, side, &k, err);
    rc = rc > 0 ? key_failed(ST_EXISTS, side, &k, err) : rc;
    rc = rc ? rc : room(&c->txn, side, err);
    if (rc) {
        st_rec_unref(rec);
        return rc;
    }
    if (key) {
        *key = k.i;
    }
    push(&c->txn, rec);
    return ST_OK;
}

/* A key that is there. */
static int find_key(st_conn *c, int side, const st_value *key, st_key *out, st_error *err)
{
    int rc;
    ST_TRY(need_txn(c, err));
    ST_TRY(st_key_make(side, key, out, err));
    rc = is_there(c, side, out, err);
    return rc < 0 ? rc : rc ? ST_OK : key_failed(ST_NOTFOUND, side, out, err);
}

int st_side_delete(st_conn *c, int side, const st_value *key, st_error *err)
{
    st_rec *rec;
    st_key k;
    ST_TRY(find_key(c, side, key, &k, err));
    ST_TRY(room(&c->txn, side, err));
    ST_TRY(st_rec_end(side, &k, &rec, err));
    push(&c->txn, rec);
    return ST_OK;
}

int st_side_set(st_conn *c, int side, const st_value *key, const st_value *values, st_error *err)
{
    st_rec *rec, *old = NULL;
    st_key k, to;
    int rc;
    ST_TRY(find_key(c, side, key, &k, err));
    ST_TRY(room(&c->txn, side, err));
    ST_TRY(st_rec_make(side, values, &rec, err));
    to = st_rec_key(rec);
    if (!st_key_same(side, &k, &to)) {
        rc = is_there(c, side, &to, err);
        rc = rc > 0 ? key_failed(ST_EXISTS, side, &to, err) : rc;
        rc = rc ? rc : st_rec_end(side, &k, &old, err);
        if (rc) {
            st_rec_unref(rec);
            return rc;
        }
        push(&c->txn, old);
    }
    push(&c->txn, rec);
    return ST_OK;
}

/* The same with a text of n bytes. */
static int put_event(st_conn *c, double time, const char *kind, const int64_t *id, const void *json,
                     size_t n, st_error *err)
{
    st_value v[] = {[ST_EVENT_SEQ] = {.type = ST_NULL},
                    [ST_EVENT_TIME] = {.type = ST_REAL, .r = time},
                    [ST_EVENT_KIND] = {.type = ST_TEXT, .p = kind, .n = strlen(kind)},
                    [ST_EVENT_ID] = {.type = id ? ST_INT : ST_NULL, .i = id ? *id : 0},
                    [ST_EVENT_JSON] = {.type = json ? ST_TEXT : ST_NULL, .p = json, .n = n}};
    return st_side_put(c, ST_EVENTS, v, NULL, err);
}

int st_event(st_conn *c, double time, const char *kind, const int64_t *id, const char *json,
             st_error *err)
{
    return put_event(c, time, kind, id, json, json ? strlen(json) : 0, err);
}

int st_json_event(st_conn *c, double time, const char *kind, const int64_t *id, st_json *j,
                  st_error *err)
{
    if (j->n) {
        ST_TRY(st_buf_add(j, "}", 1, err));
    }
    return put_event(c, time, kind, id, j->p, j->n, err);
}
