/*
 * st_gen.c - replaying frames over an image, and finding row versions in a snapshot.
 *
 * Each frame is applied whole or not at all, and replayed/last_seq move frame by frame: a failure
 * in the middle (memory, I/O) is resumed at the next call.
 *
 * SPDX-License-Identifier: MIT
 */
#include "st_gen.h"
#include "st_log.h"

int st_gen_new(st_image *image, st_gen **out, st_error *err)
{
    st_gen *g = h5_calloc(1, sizeof *g);
    int rc = g ? st_reader_open(&g->reader, image, err) : st_nomem(err);
    *out = NULL;
    if (!rc && vec_text_new(&g->text) != VEC_OK) {
        st_reader_close(&g->reader);
        rc = st_nomem(err);
    }
    if (rc) {
        h5_free(g);
        return rc;
    }
    g->refs = 1;
    g->image = image;
    g->schema = image->schema;
    g->generation = image->generation;
    st_image_ref(image);
    g->replayed = ST_LOG_START;
    g->last_seq = image->last_seq;
    g->next_id = image->next_id;
    g->options = image->options;
    for (int side = 0; side < ST_SIDES; side++) {
        g->side[side].next = image->side[side].next;
    }
    *out = g;
    return ST_OK;
}

void st_gen_ref(st_gen *g)
{
    __atomic_add_fetch(&g->refs, 1, __ATOMIC_RELAXED);
}

void st_gen_unref(st_gen *g)
{
    if (!g || __atomic_sub_fetch(&g->refs, 1, __ATOMIC_ACQ_REL)) {
        return;
    }
    st_reader_close(&g->reader);
    st_image_unref(g->image);
    for (size_t i = 0; i < g->nslot; i++) {
        st_slot_free(g->slot[i]);
    }
    for (size_t i = 0; i < g->npatch; i++) {
        h5_free(g->patch[i].small);
    }
    h5_free(g->slot);
    h5_free(g->dead);
    h5_free(g->prev);
    h5_free(g->kill);
    h5_free(g->patch);
    st_map_free(&g->by_id);
    st_map_free(&g->killed);
    st_map_free(&g->evicted);
    st_map_free(&g->buried);
    for (int side = 0; side < ST_SIDES; side++) {
        st_side_free(&g->side[side]);
    }
    st_map_free(&g->patched);
    vec_text_free(g->text);
    h5_free(g);
}

/* -------------------------------------------------------------------------------------- finding */

int st_gen_evicted(const st_gen *g, uint64_t ref, uint64_t seq)
{
    uint64_t when;
    return st_map_get(&g->evicted, ref, &when) &&
           !(st_map_get(&g->buried, ref, &when) && when <= seq);
}

static int ended_state(const st_gen *g, uint64_t ref, uint64_t seq)
{
    return st_gen_evicted(g, ref, seq) ? ST_VERSION_EVICTED : ST_VERSION_NONE;
}

int st_gen_newest(st_gen *g, st_reader *r, int64_t id, uint64_t seq, uint64_t *ref, int *state,
                  st_error *err)
{
    uint64_t at = 0, when;
    int rc, evicted;
    st_map_get(&g->by_id, (uint64_t)id, &at);
    for (; at; at = g->prev[at - 1]) {
        if (g->slot[at - 1]->seq <= seq) {
            *ref = ST_REF_OVERLAY | (at - 1);
            *state = g->dead[at - 1] > seq ? ST_VERSION_LIVES : ended_state(g, *ref, seq);
            return ST_OK;
        }
    }
    rc = st_image_newest(r, id, ref, &evicted, err);
    if (rc <= 0) {
        *state = ST_VERSION_NONE;
    } else if (st_map_get(&g->killed, *ref, &when) && when <= seq) {
        *state = ended_state(g, *ref, seq);
    } else {
        *state = evicted ? ST_VERSION_EVICTED : ST_VERSION_LIVES;
    }
    return rc < 0 ? rc : ST_OK;
}

int st_gen_find(st_gen *g, st_reader *r, int64_t id, uint64_t seq, uint64_t *ref, st_error *err)
{
    int state, rc = st_gen_newest(g, r, id, seq, ref, &state, err);
    return rc ? rc : state == ST_VERSION_LIVES;
}

const st_num *st_gen_patch(const st_gen *g, uint64_t ref, uint64_t seq)
{
    uint64_t at;
    if (!st_map_get(&g->patched, ref, &at)) {
        return NULL;
    }
    if (g->patch[at - 1].seq <= seq) {
        return g->patch[at - 1].small;
    }
    // Rare: a snapshot older than the newest patch.
    for (size_t i = (size_t)at - 1; i-- > 0;) {
        if (g->patch[i].ref == ref && g->patch[i].seq <= seq) {
            return g->patch[i].small;
        }
    }
    return NULL;
}

/* ------------------------------------------------------------------------------------- applying */

/* Makes room first, so that what follows cannot fail. */
static int room(st_gen *g, size_t n, st_error *err)
{
    ST_TRY(st_grow(&g->slot, &g->cap_slot, g->nslot + n, sizeof *g->slot, err));
    ST_TRY(st_grow(&g->dead, &g->cap_dead, g->nslot + n, sizeof *g->dead, err));
    ST_TRY(st_grow(&g->prev, &g->cap_prev, g->nslot + n, sizeof *g->prev, err));
    ST_TRY(st_grow(&g->kill, &g->cap_kill, g->nkill + n, sizeof *g->kill, err));
    return st_grow(&g->patch, &g->cap_patch, g->npatch + n, sizeof *g->patch, err);
}

/* Ends the version at ref. */
static int end_version(st_gen *g, uint64_t ref, uint64_t seq, st_error *err)
{
    if (ref & ST_REF_OVERLAY) {
        g->dead[ST_REF_INDEX(ref)] = seq;
        return ST_OK;
    }
    ST_TRY(st_map_set(&g->killed, ref, seq, err));
    g->kill[g->nkill].row = ref;
    g->kill[g->nkill++].seq = seq;
    return ST_OK;
}

/* The version at ref, evicted, is found no more. */
static int bury(st_gen *g, uint64_t ref, uint64_t seq, st_error *err)
{
    uint64_t when;
    if (!(ref & ST_REF_OVERLAY) && !st_map_get(&g->killed, ref, &when)) {
        return end_version(g, ref, seq, err); // the file has it as evicted
    }
    return st_map_set(&g->buried, ref, seq, err);
}

/* A put or a delete ends what is there. */
static int end_any(st_gen *g, uint64_t ref, int state, uint64_t seq, st_error *err)
{
    return state == ST_VERSION_LIVES     ? end_version(g, ref, seq, err)
           : state == ST_VERSION_EVICTED ? bury(g, ref, seq, err)
                                         : ST_OK;
}

static int evict_version(st_gen *g, uint64_t ref, uint64_t seq, st_error *err)
{
    ST_TRY(st_map_set(&g->evicted, ref, 1, err));
    return end_version(g, ref, seq, err);
}

/* Appends a slot for which there is room; old: 1 + the slot before with its id, or 0. Cannot fail
** when by_id has the key or room for it. */
static void push_slot(st_gen *g, st_slot *t, uint64_t old)
{
    g->slot[g->nslot] = t;
    g->dead[g->nslot] = ST_SEQ_NEVER;
    g->prev[g->nslot] = old;
    st_map_set(&g->by_id, (uint64_t)t->id, ++g->nslot, NULL);
    if (t->id >= g->next_id) {
        g->next_id = t->id == INT64_MAX ? INT64_MAX : t->id + 1;
    }
}

static int apply_put(st_gen *g, const st_frame *f, st_error *err)
{
    st_slot *t;
    uint64_t ref = 0, old = 0;
    int state, rc;
    ST_TRY(st_slot_decode(g->schema, f->payload, f->n, &t, err));
    t->seq = f->sequence;
    rc = st_gen_newest(g, &g->reader, t->id, ST_SEQ_NEVER - 1, &ref, &state, err);
    rc = rc ? rc : st_map_reserve(&g->by_id, 1, err);
    rc = rc ? rc : end_any(g, ref, state, f->sequence, err);
    if (rc) {
        st_slot_free(t);
        return rc;
    }
    st_map_get(&g->by_id, (uint64_t)t->id, &old);
    push_slot(g, t, old);
    return ST_OK;
}

/* Delete and evict. */
static int apply_end(st_gen *g, const st_frame *f, st_error *err)
{
    uint64_t ref = 0;
    int state;
    if (f->n != 8) {
        return st_fail(err, ST_CORRUPT, "%s frame of %zu bytes",
                       f->type == ST_FRAME_EVICT ? "an evict" : "a delete", f->n);
    }
    ST_TRY(st_gen_newest(g, &g->reader, (int64_t)st_get64(f->payload), ST_SEQ_NEVER - 1, &ref,
                         &state, err));
    if (f->type == ST_FRAME_EVICT) {
        return state == ST_VERSION_LIVES ? evict_version(g, ref, f->sequence, err) : ST_OK;
    }
    return end_any(g, ref, state, f->sequence, err);
}

static int apply_set(st_gen *g, const st_frame *f, st_error *err)
{
    st_patch *p = &g->patch[g->npatch];
    int64_t id;
    uint64_t ref = 0;
    int rc, found;
    st_num *small = h5_alloc_array((size_t)g->schema->nsmall, sizeof *small);
    if (!small) {
        return st_nomem(err);
    }
    rc = st_small_decode(g->schema, f->payload, f->n, &id, small, err);
    found = rc ? 0 : st_gen_find(g, &g->reader, id, ST_SEQ_NEVER - 1, &ref, err);
    rc = found < 0 ? found : rc;
    if (!rc && found) {
        rc = st_map_set(&g->patched, ref, g->npatch + 1, err);
    }
    if (rc || !found) {
        h5_free(small);
        return rc;
    }
    p->ref = ref;
    p->seq = f->sequence;
    p->small = small;
    g->npatch++;
    return ST_OK;
}

static int apply_config(st_gen *g, const st_frame *f, st_error *err)
{
    const char *name = (const char *)f->payload, *value;
    size_t n = f->n ? strnlen(name, f->n) : 0;
    if (n + 1 >= f->n || f->payload[f->n - 1]) {
        return st_fail(err, ST_CORRUPT, "a config frame without its two texts");
    }
    value = name + n + 1;
    g->config_changed = 1;
    return st_options_set(&g->options, name, value, 1, err);
}

static int apply(st_gen *g, const st_frame *f, st_error *err)
{
    ST_TRY(room(g, 1, err));
    switch (f->type) {
    case ST_FRAME_PUT:
        return apply_put(g, f, err);
    case ST_FRAME_DELETE:
    case ST_FRAME_EVICT:
        return apply_end(g, f, err);
    case ST_FRAME_SET:
        return apply_set(g, f, err);
    case ST_FRAME_CONFIG:
        return apply_config(g, f, err);
    case ST_FRAME_SIDE_PUT:
    case ST_FRAME_SIDE_DELETE:
        return st_gen_side_apply(g, f, err);
    case ST_FRAME_PREPARE:
    case ST_FRAME_COMMIT:
    case ST_FRAME_ABORT:
        return ST_OK;
    default:
        return st_fail(err, ST_UNSUPPORTED,
                       "the log has a frame of type %d, which this version does not know", f->type);
    }
}

/* Takes one change, for which there is room: cannot fail. */
static void adopt_one(st_gen *g, st_logged *c)
{
    int lives = c->state == ST_VERSION_LIVES;
    uint64_t old = 0;
    switch (c->kind) {
    case ST_FRAME_SET:
        if (lives) {
            st_map_set(&g->patched, c->ref, g->npatch + 1, NULL);
            g->patch[g->npatch++] = (st_patch){c->ref, c->seq, c->small};
        } else {
            h5_free(c->small);
        }
        break;
    case ST_FRAME_EVICT:
        if (lives) {
            evict_version(g, c->ref, c->seq, NULL);
        }
        break;
    case ST_FRAME_PUT:
        end_any(g, c->ref, c->state, c->seq, NULL);
        c->slot->seq = c->seq;
        st_map_get(&g->by_id, (uint64_t)c->id, &old);
        push_slot(g, c->slot, old);
        if (c->evicted) {
            evict_version(g, ST_REF_OVERLAY | (g->nslot - 1), c->evicted, NULL);
        }
        break;
    case ST_FRAME_SIDE_PUT:
    case ST_FRAME_SIDE_DELETE:
        st_gen_side_take(g, c->rec, c->kind == ST_FRAME_SIDE_PUT, c->state, c->ref, c->seq);
        break;
    default:
        end_any(g, c->ref, c->state, c->seq, NULL);
    }
}

/* Which version a change is about. */
static int adopt_find(st_gen *g, st_logged *c, st_error *err)
{
    c->state = ST_VERSION_NONE;
    if (c->known) {
        c->state = ST_VERSION_LIVES;
        return ST_OK;
    }
    if (c->rec) {
        st_key key = st_rec_key(c->rec);
        if (!st_side_text_key(c->rec->side) && key.i >= g->side[c->rec->side].next) {
            return ST_OK; // a key that never was
        }
        int rc = st_gen_side_find(g, &g->reader, c->rec->side, &key, ST_SEQ_NEVER - 1, &c->ref,
                                  err);
        c->state = rc > 0;
        return rc < 0 ? rc : ST_OK;
    }
    if (c->kind == ST_FRAME_PUT && c->id >= g->next_id) {
        return ST_OK; // an id that never was
    }
    return st_gen_newest(g, &g->reader, c->id, ST_SEQ_NEVER - 1, &c->ref, &c->state, err);
}

int st_gen_adopt(st_gen *g, st_logged *change, size_t n, st_error *err)
{
    size_t evicts = 0, puts = 0, sets = 0, rows = n, records[ST_SIDES] = {0};
    for (size_t i = 0; i < n; i++) {
        evicts += change[i].kind == ST_FRAME_EVICT || change[i].evicted;
        puts += change[i].kind == ST_FRAME_PUT;
        sets += change[i].kind == ST_FRAME_SET;
        if (change[i].rec) {
            records[change[i].rec->side]++;
            rows--;
        }
    }
    for (int side = 0; side < ST_SIDES; side++) {
        ST_TRY(records[side] ? st_side_room(&g->side[side], records[side], err) : ST_OK);
    }
    ST_TRY(room(g, rows, err));
    ST_TRY(st_map_reserve(&g->by_id, puts, err));
    ST_TRY(st_map_reserve(&g->killed, rows - sets, err));
    ST_TRY(st_map_reserve(&g->patched, sets, err));
    ST_TRY(evicts ? st_map_reserve(&g->evicted, evicts, err) : ST_OK);
    ST_TRY(g->evicted.n ? st_map_reserve(&g->buried, rows - sets, err) : ST_OK);
    for (size_t i = 0; i < n; i++) {
        ST_TRY(adopt_find(g, &change[i], err));
    }
    for (size_t i = 0; i < n; i++) {
        adopt_one(g, &change[i]);
    }
    return ST_OK;
}

int st_gen_index(st_gen *g, st_error *err)
{
    for (; g->ntext < g->nslot; g->ntext++) {
        const st_slot *t = g->slot[g->ntext];
        if (t->ntokens) {
            ST_TRY(st_from_vec(err, vec_text_add(g->text, g->ntext, t->tokens, t->ntokens),
                               "the text of the log"));
        }
    }
    return ST_OK;
}

/* ----------------------------------------------------------------------------------- log reader */

enum { READ_AHEAD = 256 << 10 };

/* Has the buffer hold need bytes from lr->at on: 1, or 0 when the log ends before. */
static int fill(st_log_reader *lr, size_t need, st_error *err)
{
    uint64_t have = lr->buf.n && lr->at >= lr->buf_at ? lr->buf_at + lr->buf.n - lr->at : 0;
    size_t want;
    h5_error h = {0};
    if (lr->at >= lr->buf_at && have >= need && lr->at - lr->buf_at <= lr->buf.n) {
        return 1;
    }
    if (need > lr->to - lr->at) {
        return 0;
    }
    want = (size_t)ST_MIN(lr->to - lr->at, (uint64_t)ST_MAX(need, (size_t)READ_AHEAD));
    lr->buf.n = 0;
    ST_TRY(st_buf_room(&lr->buf, want, err));
    if (lr->log->read(lr->log, lr->at, lr->buf.p, want, &h) != H5_OK) {
        // Cut short by a flush of another process, or by a crash: the frames end here.
        return h.code == H5_FORMAT ? 0 : st_from_h5(err, &h, "the log");
    }
    lr->buf.n = want;
    lr->buf_at = lr->at;
    return 1;
}

/* A log may end before the length that its header tells (a power loss): what is there counts. */
static int clamp_to_size(st_log_reader *lr, st_error *err)
{
    uint64_t size = 0;
    h5_error h = {0};
    if (!lr->sized && lr->log->size(lr->log, &size, &h) != H5_OK) {
        return st_from_h5(err, &h, "the log");
    }
    lr->to = lr->sized ? lr->to : ST_MAX(lr->at, ST_MIN(lr->to, size));
    lr->sized = 1;
    return ST_OK;
}

int st_log_next(st_log_reader *lr, st_frame *f, st_error *err)
{
    size_t length, used;
    int rc;
    ST_TRY(clamp_to_size(lr, err));
    rc = fill(lr, ST_FRAME_HEAD + 4, err);
    if (rc <= 0) {
        return rc;
    }
    length = (st_get32(lr->buf.p + (lr->at - lr->buf_at)) + (size_t)7) & ~(size_t)7;
    if (length < ST_FRAME_HEAD + 4 || length > ST_FRAME_MAX) {
        return 0;
    }
    rc = fill(lr, length, err);
    if (rc <= 0) {
        return rc;
    }
    if (!st_frame_read(lr->buf.p + (lr->at - lr->buf_at), length, lr->generation, &lr->sum, f,
                       &used)) {
        return 0;
    }
    lr->at += used;
    return 1;
}

void st_log_reader_end(st_log_reader *lr)
{
    st_buf_free(&lr->buf);
}

/* Does the transaction that ends in this prepare frame at offset at reach to, as the header means
** it? Its commit frame may be missing. */
static int reaches(const st_log_reader *lr, const st_frame *f, uint64_t to, uint32_t sum)
{
    return (lr->at == to && lr->sum == sum) ||
           (lr->at + ST_FRAME_COMMIT_BYTES == to &&
            st_frame_commit_sum(lr->generation, f->sequence, lr->sum) == sum);
}

/* Transactions that abort frames void, by the sequences of their first frames. */
typedef struct voided {
    uint64_t *first;
    size_t n, cap;
} voided;

static int is_void(const voided *v, uint64_t first)
{
    size_t i = 0;
    while (i < v->n && v->first[i] != first) {
        i++;
    }
    return i < v->n;
}

static int note_void(voided *v, const st_frame *f, st_error *err)
{
    if (f->n != 8) {
        return st_fail(err, ST_CORRUPT, "an abort frame of %zu bytes", f->n);
    }
    ST_TRY(st_grow(&v->first, &v->cap, v->n + 1, sizeof *v->first, err));
    v->first[v->n++] = st_get64(f->payload);
    return ST_OK;
}

/* Where the last whole transaction before to ends, and which before it are void. A prepare frame
** ends one that counts when the header vouches for it, or when a frame other than an abort follows:
** whoever wrote that knew. Else, where the log breaks off behind it, it may be one that its host
** took back. */
static int whole_end(const st_gen *g, h5_io *log, uint64_t to, uint32_t sum, uint64_t *end,
                     voided *v, st_error *err)
{
    st_log_reader lr = {.log = log,
                        .at = g->replayed,
                        .to = ST_MAX(to, g->replayed),
                        .generation = g->generation,
                        .sum = g->sum};
    uint64_t seq = g->last_seq, prepared = 0;
    st_frame f;
    int rc;
    *end = g->replayed;
    while ((rc = st_log_next(&lr, &f, err)) > 0 && f.sequence > seq) {
        seq = f.sequence;
        if (f.type == ST_FRAME_ABORT) {
            prepared = 0;
            rc = note_void(v, &f, err);
            if (rc) {
                break;
            }
            continue;
        }
        *end = prepared ? prepared : *end;
        prepared = f.type == ST_FRAME_PREPARE ? lr.at : 0;
        if (f.type == ST_FRAME_COMMIT || (prepared && reaches(&lr, &f, to, sum))) {
            *end = lr.at;
        }
    }
    st_log_reader_end(&lr);
    return rc < 0 ? rc : ST_OK;
}

int st_gen_replay(st_gen *g, h5_io *log, uint64_t to, uint32_t sum, st_error *err)
{
    st_log_reader lr = {.log = log, .at = g->replayed, .generation = g->generation, .sum = g->sum};
    st_frame f;
    voided v = {0};
    int rc = whole_end(g, log, to, sum, &lr.to, &v, err);
    while (!rc && g->replayed < lr.to) {
        rc = st_log_next(&lr, &f, err);
        if (rc <= 0) {
            break; // restarted by a flush of another process: the caller looks at the header again
        }
        rc = v.n && is_void(&v, f.transaction) ? ST_OK : apply(g, &f, err);
        if (!rc) {
            g->last_seq = f.sequence;
            g->replayed = lr.at;
            g->sum = lr.sum;
        }
    }
    h5_free(v.first);
    st_log_reader_end(&lr);
    return rc < 0 ? rc : ST_OK;
}
