/*
 * st_encode.c - frames of a transaction: its net effect in the order of its ops, and a prepare
 * frame.
 *
 * SPDX-License-Identifier: MIT
 */
#include "st_encode.h"

enum { PIECE = 128 << 10 }; /* bytes written at a time */
enum { LEAP = (1 << 20) - 1 };

int st_encode_write(st_conn *c, st_encoder *e, st_error *err)
{
    if (e->buf->n) {
        ST_TRY(st_log_write(c->store, e->at, e->buf->p, e->buf->n, e->keep, err));
    }
    e->at += e->buf->n;
    e->buf->n = 0;
    return ST_OK;
}

int st_encode_frame(st_encoder *e, size_t at, int type, st_error *err)
{
    return st_frame_end(e->buf, at, type, e->generation, ++e->seq, e->transaction, &e->sum, err);
}

/* Notes what the frame of a change is about. */
static int note(st_txn *t, int kind, int64_t id, uint64_t ref, uint64_t seq, st_error *err)
{
    ST_TRY(st_grow(&t->change, &t->cap_change, t->nchange + 1, sizeof *t->change, err));
    t->change[t->nchange++] = (st_logged){.kind = kind, .id = id, .ref = ref, .seq = seq};
    return ST_OK;
}

static int encode_put(st_conn *c, st_encoder *e, uint64_t ref, st_error *err)
{
    const st_slot *slot = c->txn.slot[ST_REF_INDEX(ref)];
    const st_num *small = slot->small;
    uint64_t at;
    size_t frame;
    if (st_map_get(&c->txn.patched, ref, &at)) {
        small = c->txn.patch[at - 1].small;
    }
    ST_TRY(st_frame_begin(e->buf, &frame, err));
    ST_TRY(st_slot_encode(c->store->schema, slot, small, e->buf, err));
    ST_TRY(st_encode_frame(e, frame, ST_FRAME_PUT, err));
    return note(&c->txn, ST_FRAME_PUT, slot->id, ST_REF_INDEX(ref), e->seq, err);
}

static int encode_set(st_conn *c, st_encoder *e, int64_t id, uint64_t ref, st_error *err)
{
    uint64_t at = 0;
    size_t frame;
    if (!st_map_get(&c->txn.patched, ref, &at)) {
        return ST_OK;
    }
    ST_TRY(st_frame_begin(e->buf, &frame, err));
    ST_TRY(st_small_encode(c->store->schema, id, c->txn.patch[at - 1].small, e->buf, err));
    ST_TRY(st_encode_frame(e, frame, ST_FRAME_SET, err));
    c->txn.set_bytes += e->buf->n - frame;
    return note(&c->txn, ST_FRAME_SET, id, at - 1, e->seq, err);
}

/* A delete or evict frame. */
static int encode_end(st_encoder *e, int type, int64_t id, st_error *err)
{
    uint8_t p[8];
    size_t frame;
    st_put64(p, (uint64_t)id);
    ST_TRY(st_frame_begin(e->buf, &frame, err));
    ST_TRY(st_buf_add(e->buf, p, sizeof p, err));
    return st_encode_frame(e, frame, type, err);
}

/* A row that was written in this transaction, and evicted in it when evicted says so. */
static int encode_slot(st_conn *c, st_encoder *e, uint64_t ref, int evicted, st_error *err)
{
    st_txn *t = &c->txn;
    ST_TRY(encode_put(c, e, ref, err));
    if (evicted) {
        ST_TRY(encode_end(e, ST_FRAME_EVICT, t->slot[ST_REF_INDEX(ref)]->id, err));
        t->change[t->nchange - 1].evicted = e->seq;
    }
    return ST_OK;
}

static int encode_noted(st_txn *t, st_encoder *e, int type, int64_t id, uint64_t ref, st_error *err)
{
    ST_TRY(encode_end(e, type, id, err));
    return note(t, type, id, ref, e->seq, err);
}

/* The end of a row that was there before. A put of the same id replaces the row; only a row that
** is gone for good, or was not evicted by this very op, needs a frame. */
static int encode_ended(st_txn *t, st_encoder *e, size_t i, st_error *err)
{
    const st_op *op = &t->op[i];
    uint64_t entry;
    if (st_txn_evicts(t, i)) {
        return encode_noted(t, e, ST_FRAME_EVICT, op->id, op->ref, err);
    }
    // What an op before has to do with the same row has its frame there.
    if (op->kind == ST_OP_BURY && op->had_entry) {
        return ST_OK;
    }
    return st_map_get(&t->by_id, (uint64_t)op->id, &entry) && entry == ST_ENTRY_GONE
               ? encode_noted(t, e, ST_FRAME_DELETE, op->id, 0, err)
               : ST_OK;
}

/* Is the version at ref, which is gone, the evicted one of its id? */
static int version_evicted(const st_txn *t, int64_t id, uint64_t ref)
{
    uint64_t entry;
    return st_map_get(&t->by_id, (uint64_t)id, &entry) && entry != ST_ENTRY_GONE &&
           (entry & ST_ENTRY_EVICTED) && t->op[entry & ~ST_ENTRY_EVICTED].ref == ref;
}

static int encode_config(const st_txn *t, st_encoder *e, st_error *err)
{
    for (size_t i = 0; i < t->nconfig; i++) {
        const st_config_change *c = &t->config[i];
        size_t frame;
        ST_TRY(st_frame_begin(e->buf, &frame, err));
        ST_TRY(st_buf_add(e->buf, c->name, strlen(c->name) + 1, err));
        ST_TRY(st_buf_add(e->buf, c->value, strlen(c->value) + 1, err));
        ST_TRY(st_encode_frame(e, frame, ST_FRAME_CONFIG, err));
    }
    return ST_OK;
}

/* A record beside the rows, unless a later one of its key takes its place. */
static int encode_side(st_conn *c, st_encoder *e, const st_op *op, st_error *err)
{
    const st_side *s = &c->txn.side[op->id];
    st_rec *rec = s->rec[op->ref];
    st_key key = st_rec_key(rec);
    int type = rec->ended ? ST_FRAME_SIDE_DELETE : ST_FRAME_SIDE_PUT, rc = 1;
    uint64_t ref;
    size_t frame;
    if (st_side_version(s, (int)op->id, &key, ST_SEQ_NEVER) != op->ref + 1) {
        return ST_OK;
    }
    if (rec->ended) {
        rc = st_txn_side_outer(c, (int)op->id, &key, &ref, err);
    }
    if (rc <= 0) {
        return rc; // it came and went
    }
    ST_TRY(st_frame_begin(e->buf, &frame, err));
    ST_TRY(st_rec_encode(rec, e->buf, err));
    ST_TRY(st_encode_frame(e, frame, type, err));
    ST_TRY(note(&c->txn, type, op->id, op->ref, e->seq, err));
    c->txn.change[c->txn.nchange - 1].rec = rec;
    return ST_OK;
}

/* The net effect, in the order of the ops: a row that came and went leaves nothing. */
static int encode_ops(st_conn *c, st_encoder *e, st_error *err)
{
    st_txn *t = &c->txn;
    for (size_t i = 0; i < t->nop; i++) {
        const st_op *op = &t->op[i];
        uint64_t entry, at;
        if (e->buf->n >= PIECE) {
            ST_TRY(st_encode_write(c, e, err));
        }
        if (op->kind == ST_OP_PUT) {
            int gone = t->gone[ST_REF_INDEX(op->ref)];
            int evicted = gone && version_evicted(t, op->id, op->ref);
            if (!gone || evicted) {
                ST_TRY(encode_slot(c, e, op->ref, evicted, err));
            }
        } else if (op->kind == ST_OP_KILL || op->kind == ST_OP_EVICT || op->kind == ST_OP_BURY) {
            if (!(op->ref & ST_REF_PRIVATE)) {
                ST_TRY(encode_ended(t, e, i, err));
            }
        } else if (op->kind == ST_OP_SIDE) {
            ST_TRY(encode_side(c, e, op, err));
        } else if (op->kind == ST_OP_PATCH && !(op->ref & ST_REF_PRIVATE) &&
                   (!st_map_get(&t->killed, op->ref, &entry) ||
                    version_evicted(t, op->id, op->ref))) {
            // Once a row: at its newest patch.
            if (st_map_get(&t->patched, op->ref, &at) && at == op->patch) {
                ST_TRY(encode_set(c, e, op->id, op->ref, err));
            }
        }
    }
    return encode_config(t, e, err);
}

/* The id leaps by the sum of the frames before it. With ids in a row an attempt that was taken back
** and the transaction written over it can have the same one; where the power goes before the disk
** has the second's frames, the host's row, which has its id, would make the first count. */
static int encode_prepare(st_conn *c, st_encoder *e, st_error *err)
{
    st_txn *t = &c->txn;
    uint8_t p[ST_PREPARE_BYTES];
    size_t frame;
    memcpy(p, t->who.uuid, 16);
    st_put64(p + 16, t->who.dev);
    st_put64(p + 24, t->who.ino);
    st_put64(p + 32, t->dropped ? ST_PREPARE_DROPPED : 0);
    ST_TRY(st_frame_begin(e->buf, &frame, err));
    ST_TRY(st_buf_add(e->buf, p, sizeof p, err));
    ST_TRY(st_buf_add(e->buf, t->host, strlen(t->host), err));
    e->seq += e->sum & LEAP;
    return st_encode_frame(e, frame, ST_FRAME_PREPARE, err);
}

int st_encode_abort(st_encoder *e, uint64_t first, st_error *err)
{
    uint8_t p[8];
    size_t frame;
    st_put64(p, first);
    ST_TRY(st_frame_begin(e->buf, &frame, err));
    ST_TRY(st_buf_add(e->buf, p, sizeof p, err));
    return st_encode_frame(e, frame, ST_FRAME_ABORT, err);
}

/* What stays in doubt before this transaction is void when this one counts. */
static int encode_held(st_conn *c, const st_log_header *h, st_encoder *e, st_error *err)
{
    st_log_header held = *h;
    st_doubt d;
    int rc;
    held.prepared_len = c->txn.base_len;
    rc = st_doubt_read(c->store, &held, &d, err);
    for (size_t i = 0; !rc && i < d.n; i++) {
        rc = st_encode_abort(e, d.p[i].first, err);
    }
    st_doubt_free(&d);
    return rc;
}

int st_encode_all(st_conn *c, const st_log_header *h, st_encoder *e, st_error *err)
{
    c->txn.nchange = 0;
    c->txn.set_bytes = 0;
    e->generation = h->generation;
    e->seq = c->txn.start_seq;
    e->transaction = e->seq + 1;
    e->sum = c->txn.base_sum;
    if (c->txn.held) {
        ST_TRY(encode_held(c, h, e, err));
    }
    ST_TRY(encode_ops(c, e, err));
    return encode_prepare(c, e, err);
}
