/*
 * st_commit.c - the two phases of a commit, rollback.
 *
 * PHASE ONE  the net effect of the change set becomes frames and a prepare frame behind the
 *            committed length; the header then names them as prepared. PHASE TWO is a memory store
 *            into that header. A death in between leaves a transaction in doubt, which
 *            st_snapshot.c settles.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>

#include "st_encode.h"
#include "vec.h"

enum { KEPT = 16 << 10, FRAMES_KEPT = 1 << 20 }; /* bytes that a connection keeps for the next */
enum { STEP = 256 << 10 };                       /* bytes by which a log grows */

/* ---------------------------------------------------------------------------------------- begin */

/* How much of the log is in use. */
static uint64_t keep(const st_log_header *h)
{
    return ST_MAX(h->committed_len, h->prepared_len);
}

/* What a flush leaves of the log, where frames may go into it without a call; else 0. */
static uint64_t mapped_keep(st_conn *c)
{
    uint64_t keep;
    if (c->txn.nconfig) {
        return 0;
    }
    pthread_mutex_lock(&c->store->lock);
    keep = c->gen->options.synchronous == ST_SYNC_OFF ? ST_LOG_KEPT(c->gen->options.autoflush) : 0;
    pthread_mutex_unlock(&c->store->lock);
    return keep;
}

/* A log whose frames end before its committed length (power loss): the frames that are there are
** all there is. What lies behind goes: there may be whole transactions of this generation in it,
** which must not come back when the frames before them are written over. */
static int cut_tail(st_store *s, st_log_header *h, st_error *err)
{
    uint64_t size = 0;
    int cut = !s->tail_cut;
    h5_error e = {0};
    pthread_mutex_lock(&s->lock);
    if (s->gen->generation == h->generation && s->gen->replayed < h->committed_len) {
        h->committed_len = s->gen->replayed;
        h->committed_sum = s->gen->sum;
        h->last_seq = s->gen->last_seq;
        h->prepared_len = h->prepared_seq = 0; // what was in doubt stood behind what is gone
        st_log_store(s->page, h);
        cut = 1;
    }
    pthread_mutex_unlock(&s->lock);
    if (cut && (s->log->size(s->log, &size, &e) != H5_OK ||
                (size > keep(h) && s->log->truncate(s->log, keep(h), &e) != H5_OK))) {
        return st_from_h5(err, &e, "cutting the log");
    }
    if (cut) {
        st_log_look(s);
    }
    s->tail_cut = 1;
    return ST_OK;
}

/* Is there a change among the sequences above from, up to to? Frames that only settle have
** sequences too, and after a death the writer may find one more than a reader counted. */
static int changed_between(const st_gen *g, uint64_t from, uint64_t to)
{
    int found = 0;
    // A slot that came, and one that a delete ended.
    for (size_t i = 0; i < g->nslot && !found; i++) {
        found = (g->slot[i]->seq > from && g->slot[i]->seq <= to) ||
                (g->dead[i] > from && g->dead[i] <= to);
    }
    for (size_t i = g->nkill; i > 0 && g->kill[i - 1].seq > from; i--) {
        found |= g->kill[i - 1].seq <= to;
    }
    for (size_t i = g->npatch; i > 0 && g->patch[i - 1].seq > from; i--) {
        found |= g->patch[i - 1].seq <= to;
    }
    for (size_t i = 0; i < g->buried.cap && !found; i++) {
        const st_map_entry *e = &g->buried.slot[i];
        found = e->used == 1 && e->value > from && e->value <= to;
    }
    return found || st_gen_sides_changed(g, from, to);
}

/* What a connection with open views reads must be the newest state (a flush since does not count);
** when it is not, the connection goes on reading what it read. */
static int refresh_held(st_conn *c, st_error *err)
{
    st_gen *old_gen = c->gen;
    uint64_t old = c->seq;
    int held = c->nviews, behind = c->behind, stale, rc;
    c->nviews = 0;
    st_gen_ref(old_gen);
    rc = st_snapshot_refresh(c, err);
    c->nviews = held;
    stale = c->seq != old &&
            (c->gen->generation != old_gen->generation || changed_between(c->gen, old, c->seq));
    if (rc || stale) {
        st_gen_unref(c->gen);
        c->gen = old_gen;
        c->seq = old;
        c->behind = behind;
        return rc ? rc
                  : st_fail(err, ST_BUSY_SNAPSHOT,
                            "others have written since this connection began to read; end the "
                            "statement and try again");
    }
    st_gen_unref(old_gen);
    return ST_OK;
}

/* The host may know a higher id (a store restored from an older copy): ours must rise above it, or
** an undecided transaction would pass for a committed one. Asked once for each row: from then on
** only transactions of this log raise it. */
static int find_floor(st_conn *c, const st_identity *who, uint64_t *floor, st_error *err)
{
    st_error e = {0, ""};
    int64_t txid = 0;
    int rc;
    *floor = 0;
    if (!c->host || !c->host->verdict || !(who->dev || who->ino)) {
        return ST_OK;
    }
    if (!c->floor_known || memcmp(c->floor_of, who->uuid, sizeof who->uuid) != 0) {
        rc = c->host->verdict(c->host->ctx, who->uuid, &txid, NULL, &e);
        if (rc && rc != ST_NOTFOUND) {
            return st_fail(err, rc, "%s", e.text);
        }
        c->floor = rc || txid < 0 ? 0 : (uint64_t)txid;
        memcpy(c->floor_of, who->uuid, sizeof who->uuid);
        c->floor_known = 1;
    }
    *floor = c->floor;
    return ST_OK;
}

/* With the writer lock held. */
static int begin_locked(st_conn *c, const st_identity *who, st_error *err)
{
    st_store *s = c->store;
    st_txn *t = &c->txn;
    st_log_header *h = &t->head;
    uint64_t floor;
    ST_TRY(st_snapshot_mend(s, c->host, who, h, err));
    ST_TRY(c->nviews ? refresh_held(c, err) : st_snapshot_refresh(c, err));
    ST_TRY(find_floor(c, who, &floor, err));
    ST_TRY(cut_tail(s, h, err));
    t->held = h->prepared_len > h->committed_len;
    t->base_len = t->held ? h->prepared_len : h->committed_len;
    t->base_seq = ST_MAX(t->held ? h->prepared_seq : h->last_seq, floor);
    t->base_sum = t->held ? h->prepared_sum : h->committed_sum;
    t->start_seq = t->base_seq;
    return ST_OK;
}

int st_begin(st_conn *c, int timeout_ms, const st_identity *who, st_error *err)
{
    st_store *s = c->store;
    st_txn *t = &c->txn;
    int rc;
    if (t->active) {
        return ST_OK;
    }
    if (c->readonly) {
        return st_fail(err, ST_READONLY, "the store is open for reading only");
    }
    if (!s->log) {
        // Opened beside nothing; the first writer makes the log.
        pthread_mutex_lock(&s->lock);
        rc = s->log ? ST_OK : st_store_make_log(s, err);
        pthread_mutex_unlock(&s->lock);
        ST_TRY(rc);
    }
    ST_TRY(st_writer_lock(s, c, timeout_ms, err));
    rc = begin_locked(c, who, err);
    if (rc) {
        st_writer_unlock(s, c);
        return rc;
    }
    t->active = 1;
    t->who = *who;
    size_t n = who->host ? strnlen(who->host, sizeof t->host - 1) : 0;
    memcpy(t->host, who->host ? who->host : "", n);
    t->host[n] = 0;
    t->next_id = c->gen->next_id;
    t->version++;
    return ST_OK;
}

/* ------------------------------------------------------------------------------------ phase one */

/* Has the header name as prepared what was so when this transaction began: what it held, or
** nothing. */
static void unprepare(st_conn *c, st_log_header *h)
{
    const st_txn *t = &c->txn;
    h->prepared_len = t->held ? t->base_len : 0;
    h->prepared_seq = t->held ? t->base_seq : 0;
    h->prepared_sum = t->held ? t->base_sum : 0;
    h->flags = 0;
    st_log_store(c->store->page, h);
}

/* Where each commit is synced, the log grows in steps: a sync of bytes written over needs nothing
** of the file system's own books. Where there is no room for a step, the frames that are written
** have it all the same. */
static void grow_ahead(st_store *s, st_encoder *e)
{
    uint64_t to = (e->at + STEP - 1) / STEP * STEP;
    h5_error io = {0};
    if (st_buf_zeros(e->buf, (size_t)(to - e->at), NULL) == ST_OK &&
        s->log->write(s->log, e->at, e->buf->p, e->buf->n, &io) != H5_OK) {
        s->log->truncate(s->log, e->at, NULL); // what was written of it others may need
    }
    e->buf->n = 0;
}

static int write_frames(st_conn *c, int self, st_encoder *e, st_error *err)
{
    st_store *s = c->store;
    st_txn *t = &c->txn;
    st_log_header *h = &t->head;
    uint64_t end = e->at + e->buf->n;
    uint64_t size = 0;
    int full = st_conn_synchronous(c) == ST_SYNC_FULL;
    h5_error io = {0};
    if (full && s->log->size(s->log, &size, &io) != H5_OK) {
        return st_from_h5(err, &io, "the log");
    }
    ST_TRY(st_encode_write(c, e, err));
    if (full && size < end) {
        grow_ahead(s, e);
    }
    // Where a host with a file has nothing to commit, and no power loss is to be outlasted, it is
    // named when it is committed: a death before leaves nothing, on either side.
    if (full || !self || !(t->who.dev || t->who.ino)) {
        h->prepared_len = end;
        h->prepared_seq = e->seq;
        h->prepared_sum = e->sum;
        h->flags = self ? ST_LOG_SELF : 0;
        st_log_store(s->page, h);
    }
    if (full) {
        int rc = st_store_sync_log(s, err);
        if (rc) {
            unprepare(c, h);
            return rc;
        }
    }
    t->prepared = 1;
    t->prepared_self = self;
    t->prepared_version = t->version;
    t->prepared_len = end;
    t->prepared_seq = e->seq;
    t->prepared_sum = e->sum;
    return ST_OK;
}

int st_prepare(st_conn *c, int spare, int64_t *txid, uint8_t owner[16], st_error *err)
{
    st_txn *t = &c->txn;
    st_encoder e = {.buf = &c->frames};
    int self = !(t->who.dev || t->who.ino) || (spare && !t->held), rc = ST_OK;
    *txid = 0;
    if (!t->active || (!t->nop && !t->prepared && !t->held)) {
        return ST_OK;
    }
    memcpy(owner, t->who.uuid, 16);
    if (!t->prepared || t->prepared_version != t->version || t->prepared_self != self) {
        if (t->prepared) {
            // What stands there is about to be written over.
            unprepare(c, &t->head);
            t->prepared = 0;
            t->start_seq = t->prepared_seq;
        }
        c->frames.n = 0;
        e.at = t->base_len;
        e.keep = mapped_keep(c);
        if (e.keep && !spare) {
            st_log_look(c->store); // statements, or others, have taken time since the last look
        }
        rc = st_encode_all(c, &t->head, &e, err);
        rc = rc ? rc : write_frames(c, self, &e, err);
        if (c->frames.cap > FRAMES_KEPT) {
            st_buf_free(&c->frames);
        }
    }
    *txid = rc || self ? 0 : (int64_t)t->prepared_seq;
    return rc;
}

/* ------------------------------------------------------------------------------------ phase two */

/* An array that the next transaction can use; a large one goes. */
static void recycle(void *array, size_t *cap, size_t size)
{
    if (*cap * size > KEPT) {
        void *none = NULL, *p;
        memcpy(&p, array, sizeof p);
        h5_free(p);
        memcpy(array, &none, sizeof none);
        *cap = 0;
    }
}

static void recycle_map(st_map *m)
{
    if (m->cap * sizeof *m->slot > KEPT) {
        st_map_free(m);
    } else if (m->filled) {
        st_map_clear(m);
    }
}

static void recycle_side(st_side *s)
{
    if (s->cap_rec * sizeof *s->rec > KEPT) {
        st_side_free(s);
    } else if (s->n || s->next) {
        st_side_clear(s);
    }
}

/* Moves what open views may still show out of the transaction, frees the rest. */
static void end_txn(st_conn *c)
{
    st_txn *t = &c->txn;
    for (size_t i = 0; i < t->nslot; i++) {
        if (c->nviews && t->slot[i]) {
            c->garbage[c->ngarbage++] = t->slot[i];
        } else {
            st_slot_free(t->slot[i]);
        }
    }
    for (size_t i = 0; i < t->npatch; i++) {
        if (c->nviews && t->patch[i].small) {
            c->garbage_small[c->ngarbage_small++] = t->patch[i].small;
        } else {
            h5_free(t->patch[i].small);
        }
    }
    t->nslot = t->npatch = t->nconfig = t->nop = t->nmark = t->nchange = t->ntext = 0;
    recycle(&t->slot, &t->cap_slot, sizeof *t->slot);
    recycle(&t->gone, &t->cap_gone, sizeof *t->gone);
    recycle(&t->patch, &t->cap_patch, sizeof *t->patch);
    recycle(&t->config, &t->cap_config, sizeof *t->config);
    recycle(&t->op, &t->cap_op, sizeof *t->op);
    recycle(&t->mark, &t->cap_mark, sizeof *t->mark);
    recycle(&t->change, &t->cap_change, sizeof *t->change);
    for (int side = 0; side < ST_SIDES; side++) {
        recycle_side(&t->side[side]);
    }
    recycle_map(&t->by_id);
    recycle_map(&t->killed);
    recycle_map(&t->patched);
    vec_text_free(t->text);
    t->text = NULL;
    t->active = t->held = t->prepared = t->prepared_self = t->dropped = 0;
    t->version++;
    if (c->frozen && !c->nviews) {
        st_conn_drop_frozen(c);
    }
}

void st_txn_free(st_conn *c)
{
    st_txn *t = &c->txn;
    h5_free(t->slot);
    h5_free(t->gone);
    h5_free(t->patch);
    h5_free(t->config);
    h5_free(t->op);
    h5_free(t->mark);
    h5_free(t->change);
    for (int side = 0; side < ST_SIDES; side++) {
        st_side_free(&t->side[side]);
    }
    st_map_free(&t->by_id);
    st_map_free(&t->killed);
    st_map_free(&t->patched);
    st_buf_free(&c->frames);
    memset(t, 0, sizeof *t);
}

void st_conn_sweep(st_conn *c)
{
    if (c->nviews) {
        return;
    }
    for (size_t i = 0; i < c->ngarbage; i++) {
        st_slot_free(c->garbage[i]);
    }
    for (size_t i = 0; i < c->ngarbage_small; i++) {
        h5_free(c->garbage_small[i]);
    }
    c->ngarbage = c->ngarbage_small = 0;
}

static void note_flush_error(st_store *s, const st_error *e)
{
    pthread_mutex_lock(&s->lock);
    snprintf(s->flush_error, sizeof s->flush_error, "%.*s", (int)sizeof s->flush_error - 1,
             e ? e->text : "");
    pthread_mutex_unlock(&s->lock);
}

/* Has a connection that holds views see what it has just committed: its snapshot moves on to that
** commit, which nobody else's can have come before. */
static void advance_snapshot(st_conn *c, const st_log_header *h)
{
    st_store *s = c->store;
    st_error e = {0, ""};
    pthread_mutex_lock(&s->lock);
    c->behind = st_gen_replay(c->gen, s->log, h->committed_len, h->committed_sum, &e) != ST_OK ||
                c->gen->replayed < h->committed_len;
    if (!c->behind) {
        c->seq = h->last_seq;
    }
    pthread_mutex_unlock(&s->lock);
}

enum {
    COMPACT_LEAST = 1 << 20
}; /* bytes of a file below which dead space is not worth a rewrite */

static int compact_if_due(st_store *s, double most, st_error *err)
{
    double share = 0;
    uint64_t saved, size = 0;
    h5_error h = {0};
    if (most >= 1 || s->file->io->size(s->file->io, &size, &h) != H5_OK || size < COMPACT_LEAST) {
        return ST_OK;
    }
    ST_TRY(st_dead_share(s, &share, err));
    return share > most ? st_compact_locked(s, &saved, err) : ST_OK;
}

static void flush_if_due(st_conn *c)
{
    st_options o;
    st_error e = {0, ""};
    uint64_t rows;
    int rc;
    pthread_mutex_lock(&c->store->lock);
    rc = c->txn.head.committed_len - ST_LOG_START > (uint64_t)c->gen->options.autoflush;
    pthread_mutex_unlock(&c->store->lock);
    if (rc) {
        st_conn_options(c, &o);
        rc = st_flush_locked(c->store, &rows, &e);
        rc = rc ? rc : compact_if_due(c->store, o.autocompact, &e);
        note_flush_error(c->store, rc ? &e : NULL);
    }
}

/* Hands what was committed to the generation that all connections of this process read, so that
** nobody has to read it back from the log. Where that cannot be done the log is read. */
static void hand_over(st_conn *c)
{
    st_txn *t = &c->txn;
    st_store *s = c->store;
    const st_log_header *h = &t->head;
    size_t bytes = (size_t)s->schema->nsmall * sizeof(st_num);
    uint64_t at;
    if (c->nviews || t->held) {
        return;
    }
    pthread_mutex_lock(&s->lock);
    st_gen *g = s->gen;
    if (g != c->gen || g->generation != h->generation || g->replayed != t->base_len ||
        g->sum != t->base_sum) {
        pthread_mutex_unlock(&s->lock);
        return;
    }
    for (size_t i = 0; i < t->nchange; i++) {
        st_logged *k = &t->change[i];
        if (k->kind == ST_FRAME_PUT) {
            k->slot = t->slot[k->ref];
            if (t->patched.n && st_map_get(&t->patched, ST_REF_PRIVATE | k->ref, &at)) {
                memcpy(k->slot->small, t->patch[at - 1].small, bytes);
            }
            t->slot[k->ref] = NULL;
        } else if (k->kind == ST_FRAME_SET) {
            at = k->ref;
            k->small = t->patch[at].small;
            k->ref = t->patch[at].ref;
            k->known = 1;
            t->patch[at].small = NULL;
        } else if (k->kind == ST_FRAME_EVICT) {
            k->known = 1;
        } else if (k->rec) {
            st_rec_ref(k->rec);
        }
    }
    if (st_gen_adopt(g, t->change, t->nchange, NULL) == ST_OK) {
        for (size_t i = 0; i < t->nconfig; i++) {
            // Checked when it was set: cannot fail.
            st_options_set(&g->options, t->config[i].name, t->config[i].value, 1, NULL);
            g->config_changed = 1;
        }
        g->replayed = h->committed_len;
        g->sum = h->committed_sum;
        g->last_seq = h->last_seq;
        s->seq = h->last_seq;
        s->counter = h->counter;
        s->doubt = 0;
        c->seq = h->last_seq;
    } else {
        for (size_t i = 0; i < t->nchange; i++) {
            st_slot_free(t->change[i].slot);
            h5_free(t->change[i].small);
            st_rec_unref(t->change[i].rec);
        }
    }
    pthread_mutex_unlock(&s->lock);
}

/* The commit frame saves a look-up after a power loss; without it the transaction counts all the
** same. One that counts by itself needs none, nor does a store that promises nothing then. */
static void append_commit_frame(st_conn *c)
{
    st_store *s = c->store;
    st_log_header *h = &c->txn.head;
    st_error e = {0, ""};
    h5_error io = {0};
    st_encoder commit = {.buf = &c->frames,
                         .generation = h->generation,
                         .seq = h->last_seq,
                         .transaction = h->last_seq,
                         .sum = h->committed_sum};
    size_t frame;
    c->frames.n = 0;
    if (st_frame_begin(commit.buf, &frame, &e) == ST_OK &&
        st_encode_frame(&commit, frame, ST_FRAME_COMMIT, &e) == ST_OK &&
        s->log->write(s->log, h->committed_len, commit.buf->p, commit.buf->n, &io) == H5_OK) {
        h->committed_len += commit.buf->n;
        h->committed_sum = commit.sum;
        h->last_seq = commit.seq;
    }
}

void st_commit(st_conn *c)
{
    st_txn *t = &c->txn;
    st_store *s = c->store;
    st_log_header *h = &t->head;
    if (!t->active) {
        return;
    }
    if (t->prepared) {
        h->committed_len = t->prepared_len;
        h->last_seq = t->prepared_seq;
        h->committed_sum = t->prepared_sum;
        if (!t->prepared_self) {
            memcpy(h->owner, t->who.uuid, sizeof h->owner);
            h->owner_seq = t->prepared_seq;
            if (st_conn_synchronous(c) != ST_SYNC_OFF) {
                append_commit_frame(c);
            }
        }
        h->prepared_len = h->prepared_seq = 0;
        h->flags = 0;
        __atomic_fetch_add(&s->set_bytes, t->set_bytes, __ATOMIC_RELAXED);
        st_log_store(s->page, h);
        if (c->nviews) {
            advance_snapshot(c, h);
        }
        hand_over(c);
        end_txn(c);
        flush_if_due(c);
    } else {
        end_txn(c);
    }
    st_writer_unlock(s, c);
}

/* Takes back what phase one has written. */
static void void_prepared(st_conn *c)
{
    st_store *s = c->store;
    st_txn *t = &c->txn;
    st_error e = {0, ""};
    h5_error io = {0};
    st_encoder abort = {.buf = &c->frames,
                        .generation = t->head.generation,
                        .seq = t->base_seq,
                        .transaction = t->prepared_seq,
                        .sum = t->base_sum};
    // Written over the first frame, so that nothing that scans the log can take the transaction for
    // one.
    c->frames.n = 0;
    if (st_encode_abort(&abort, t->start_seq + 1, &e) == ST_OK) {
        s->log->write(s->log, t->base_len, abort.buf->p, abort.buf->n, &io);
    }
    unprepare(c, &t->head);
    if (t->prepared_self && st_conn_synchronous(c) == ST_SYNC_FULL) {
        st_store_sync_log(s, &e); // it would count after a power loss
    }
}

void st_rollback(st_conn *c)
{
    if (!c->txn.active) {
        return;
    }
    if (c->txn.prepared && !st_inherited(c->store)) {
        void_prepared(c);
    }
    end_txn(c);
    st_writer_unlock(c->store, c);
}

void st_abandon(st_conn *c)
{
    if (c->txn.prepared && !c->txn.prepared_self) {
        end_txn(c);
        st_writer_unlock(c->store, c);
    } else {
        st_rollback(c);
    }
}

void st_dropped(st_conn *c, int dropped)
{
    if (c->txn.active && c->txn.dropped != dropped) {
        c->txn.dropped = dropped;
        c->txn.version++; // what was prepared says otherwise
    }
}

/* That the last transaction counts is said by the header and by its commit frame, which are not
** synced, and by the state row, which is about to go away. */
static int keep_verdict(st_conn *c, st_error *err)
{
    if (!c->nviews) {
        ST_TRY(st_snapshot_refresh(c, err)); // the options as they are now
    }
    return st_conn_synchronous(c) == ST_SYNC_FULL ? st_store_sync_log(c->store, err) : ST_OK;
}

int st_settle(st_conn *c, int timeout_ms, const uint8_t uuid[16], int *holds, st_error *err)
{
    st_store *s = c->store;
    st_log_header h;
    st_doubt d;
    st_identity who = {.dev = 0};
    int rc, found = 0;
    *holds = 0;
    if (!s->page || c->readonly || c->txn.active) {
        *holds = c->txn.active && c->txn.held;
        return ST_OK;
    }
    ST_TRY(st_header(s, &h, err));
    if (h.prepared_len <= h.committed_len) {
        return keep_verdict(c, err);
    }
    ST_TRY(st_doubt_read(s, &h, &d, err));
    for (size_t i = 0; i < d.n; i++) {
        if (memcmp(d.p[i].who.uuid, uuid, 16) == 0) {
            who = d.p[i].who;
            found = 1;
        }
    }
    st_doubt_free(&d);
    if (!found) {
        return keep_verdict(c, err);
    }
    ST_TRY(st_writer_lock(s, c, timeout_ms, err));
    rc = st_snapshot_mend(s, c->host, &who, &h, err);
    *holds = !rc && h.prepared_len > h.committed_len;
    st_writer_unlock(s, c);
    return rc ? rc : keep_verdict(c, err);
}
