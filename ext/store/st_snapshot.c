/*
 * st_snapshot.c - which commit a connection reads, and the writer's look at the files before it
 * writes.
 *
 * A statement compares one number in the mapped header page with the one its snapshot was made
 * from. When it differs: read the header, open the root it names if the generation is new, replay
 * the frames up to the committed length, and read the header again: if the generation has moved
 * meanwhile, start over. Readers take no lock, write nothing and settle nothing.
 *
 * IN DOUBT  a header with a prepared length names a transaction between its two phases. A reader
 *           counts it when its own host's state row, as it now reads it, holds the transaction's
 *           id; for a host without a file when the writer is gone. It looks again at every
 *           statement until the header moves. A writer of the same host (holding the host's write
 *           lock, so that the row cannot change) writes the verdict.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>

#include "st_store.h"

enum { REREADS = 100 }; /* generations that may pass while one snapshot is taken */

int st_header(st_store *s, st_log_header *h, st_error *err)
{
    ST_TRY(st_log_load(s->page, h, err));
    if (memcmp(h->uuid, s->uuid, 16) != 0) {
        return st_fail(err, ST_CORRUPT, "the log beside it now belongs to another store");
    }
    return ST_OK;
}

/* ------------------------------------------------------------------------------- the superblock */

enum { SB_KNOWN, SB_PENDING, SB_TORN, SB_FOREIGN };

static int read_sb(st_store *s, const st_log_header *h, uint8_t sb[H5_SUPERBLOCK_BYTES], int *state,
                   st_error *err)
{
    h5_error e = {0};
    uint64_t root, eof;
    static const uint8_t none[H5_SUPERBLOCK_BYTES];
    if (s->file->io->read(s->file->io, 0, sb, H5_SUPERBLOCK_BYTES, &e) != H5_OK) {
        return st_from_h5(err, &e, "the superblock");
    }
    if (memcmp(sb, h->in_force, H5_SUPERBLOCK_BYTES) == 0) {
        *state = SB_KNOWN;
    } else if (memcmp(h->pending, none, sizeof none) != 0 &&
               memcmp(sb, h->pending, H5_SUPERBLOCK_BYTES) == 0) {
        *state = SB_PENDING;
    } else {
        *state = h5_superblock_unpack(sb, &root, &eof, NULL) == H5_OK ? SB_FOREIGN : SB_TORN;
    }
    return ST_OK;
}

/* Only the header: any generation of the file can be read beside such a log. */
static int nothing_in(const st_log_header *h)
{
    return h->committed_len == ST_LOG_START && h->prepared_len <= h->committed_len;
}

static void complete_flip(st_log_header *h)
{
    memcpy(h->in_force, h->pending, H5_SUPERBLOCK_BYTES);
    memset(h->pending, 0, sizeof h->pending);
    h->generation++;
    h->committed_len = ST_LOG_START;
    h->committed_sum = 0;
    h->prepared_len = h->prepared_seq = 0;
}

/* A generation's image: by the superblock in force, or by the file's own when a stranger has
** changed it, or put another copy in its place. */
static int open_gen(st_store *s, const st_log_header *h, st_gen **out, st_error *err)
{
    uint8_t sb[H5_SUPERBLOCK_BYTES];
    int state, next;
    st_image *im;
    st_file_id id;
    st_error first = {0, ""};
    *out = NULL;
    ST_TRY(read_sb(s, h, sb, &state, err));
    // A compact has renamed its file into place and not yet said so: that file is whole, and holds
    // all that was committed. A copy of it has another inode, and begins with the same superblock.
    next = h->next_ino &&
           ((st_id_of_fd(s->h5_fd, &id) == ST_OK && id.ino == h->next_ino) || state == SB_PENDING);
    // A flip that is under way looks foreign until the header names it: the header is read again by
    // the caller.
    int rc = st_image_open(s->file, state == SB_FOREIGN || next ? sb : h->in_force, s->uuid,
                           s->schema, &im, &first);
    if (rc) {
        return st_fail(err, rc, "%s", first.text);
    }
    s->foreign = state == SB_FOREIGN;
    if (im->generation != h->generation + (uint64_t)next && !(s->foreign && nothing_in(h))) {
        rc = st_fail(err, ST_CORRUPT,
                     "the file is of generation %llu, the rows in its log continue generation "
                     "%llu: restore the file that belongs to them, or give them up by removing the "
                     "log",
                     (unsigned long long)im->generation, (unsigned long long)h->generation);
    } else {
        rc = st_gen_new(im, out, err);
        if (!rc) {
            (*out)->generation = h->generation;
        }
    }
    st_image_unref(im);
    return rc;
}

/* ------------------------------------------------------------------------------------- in doubt */

/* Does a prepared transaction count for a reader with this host? 1 and which, 0, or negative. */
static int counts(st_store *s, const st_log_header *h, const st_host *host, st_prepare_frame *found,
                  st_error *err)
{
    int rc;
    if (!(h->flags & ST_LOG_SELF)) {
        return st_doubt_reader(s, h, host, found, err);
    }
    pthread_mutex_lock(&s->lock);
    rc = !s->writer && !st_lock_held(s->log_fd, ST_LOCK_WRITER);
    pthread_mutex_unlock(&s->lock);
    found->end = h->prepared_len;
    found->seq = h->prepared_seq;
    found->sum = h->prepared_sum;
    return rc;
}

/* -------------------------------------------------------------------------------------- readers */

/* A store without a log: the file as it stands. */
static int refresh_file(st_store *s, st_error *err)
{
    uint8_t sb[H5_SUPERBLOCK_BYTES];
    h5_error e = {0};
    st_image *im;
    int rc;
    if (s->gen) {
        return ST_OK;
    }
    if (s->file->io->read(s->file->io, 0, sb, sizeof sb, &e) != H5_OK) {
        return st_from_h5(err, &e, "the superblock");
    }
    ST_TRY(st_image_open(s->file, sb, s->uuid, s->schema, &im, err));
    rc = st_gen_new(im, &s->gen, err);
    s->seq = im->last_seq;
    st_image_unref(im);
    return rc;
}

/* A superblock that is already the pending one: the flush is over but for the header, and after a
** power loss the log may lack what the file has. */
static int see_flip(st_store *s, st_log_header *h, st_error *err)
{
    static const uint8_t none[H5_SUPERBLOCK_BYTES];
    uint8_t sb[H5_SUPERBLOCK_BYTES];
    int state;
    if (h->next_ino || memcmp(h->pending, none, sizeof none) == 0) {
        return ST_OK;
    }
    ST_TRY(read_sb(s, h, sb, &state, err));
    if (state == SB_PENDING) {
        complete_flip(h);
    }
    return ST_OK;
}

/* Makes s->gen hold all that h says is committed. *moved: the generation changed under us, start
** over. */
static int follow(st_store *s, st_log_header *h, int *moved, st_error *err)
{
    st_log_header again;
    uint64_t named = h->generation, counter = h->counter;
    int rc = ST_OK;
    st_error first = {0, ""};
    *moved = 0;
    if (!s->gen || s->gen->generation != h->generation) {
        // Before the flip is looked at: the header speaks of the file at the path. Without one, the
        // one that is open goes on showing what it holds.
        st_store_follow_path(s, h, NULL);
    }
    ST_TRY(see_flip(s, h, err));
    if (!s->gen || s->gen->generation != h->generation) {
        st_gen *g = NULL;
        rc = open_gen(s, h, &g, &first);
        if (!rc) {
            st_gen_unref(s->gen);
            s->gen = g;
        }
    }
    if (!rc && s->gen->replayed < h->committed_len) {
        rc = st_gen_replay(s->gen, s->log, h->committed_len, h->committed_sum, &first);
    }
    ST_TRY(st_header(s, &again, err));
    // What failed beside a header that has been written since was met in mid-change: the file that
    // a compact has put at the path, say, before the header that we read knew of it.
    if ((again.generation != named && again.generation != h->generation) ||
        (rc && again.counter != counter)) {
        *moved = 1;
        return ST_OK;
    }
    return rc ? st_fail(err, rc, "%s", first.text) : ST_OK;
}

/* With s->lock held: newest committed state. *h is the header when a transaction is in doubt. */
static int refresh_log(st_store *s, st_log_header *h, st_error *err)
{
    for (int i = 0; i < REREADS; i++) {
        uint64_t counter = st_log_counter(s->page);
        int moved;
        if (s->gen && counter == s->counter && !s->doubt) {
            return ST_OK;
        }
        ST_TRY(st_header(s, h, err));
        ST_TRY(follow(s, h, &moved, err));
        if (!moved) {
            // Frames that a power loss took away end the log before the committed length: then the
            // last whole transaction is what there is.
            s->seq = s->gen->replayed >= h->committed_len ? h->last_seq : s->gen->last_seq;
            s->counter = h->counter;
            s->doubt = h->prepared_len > h->committed_len;
            return ST_OK;
        }
    }
    return st_fail(err, ST_BUSY, "the store changes faster than it can be read");
}

int st_snapshot_latest(st_store *s, st_gen **out, st_error *err)
{
    st_log_header h;
    int rc;
    pthread_mutex_lock(&s->lock);
    rc = refresh_log(s, &h, err);
    *out = rc ? NULL : s->gen;
    if (*out) {
        st_gen_ref(*out);
    }
    pthread_mutex_unlock(&s->lock);
    return rc;
}

static void adopt(st_conn *c, uint64_t seq)
{
    if (c->gen != c->store->gen) {
        st_gen_unref(c->gen);
        c->gen = c->store->gen;
        st_gen_ref(c->gen);
    }
    c->seq = seq;
    c->behind = 0;
}

/* With s->lock held on entry and return; it is let go while the host is asked, which may wait for
** the host's own locks. *again: the header has moved meanwhile, and what was asked about it. */
static int refresh_doubt(st_conn *c, const st_log_header *h, int *again, st_error *err)
{
    st_store *s = c->store;
    st_log_header now;
    st_prepare_frame p;
    int yes;
    pthread_mutex_unlock(&s->lock);
    yes = counts(s, h, c->host, &p, err);
    pthread_mutex_lock(&s->lock);
    *again = 0;
    if (yes < 0) {
        return yes;
    }
    ST_TRY(st_header(s, &now, err));
    *again = now.counter != h->counter;
    if (!yes || *again) {
        return ST_OK;
    }
    if (s->gen == c->gen && s->gen->generation == h->generation) {
        ST_TRY(st_gen_replay(s->gen, s->log, p.end, p.sum, err));
        if (s->gen->replayed >= p.end && c->seq < p.seq) {
            c->seq = p.seq;
        }
    }
    return ST_OK;
}

enum { LOOK_MS = 1 };

/* What fstat says of the open log and of the open file; the latter of no other than the one that
** the newest image is of. links is 0 where nothing is known. */
typedef struct looks {
    st_file_id log, file;
} looks;

/* Are file and log still as long as what is mapped of them? A read behind the end of a file that
** somebody has cut would end the process. Looked at before a statement reads, once a millisecond
** and at every write: what is cut in the middle of a statement is not met, as with SQLite's own
** mapped memory. With s->lock held. */
static int look_at_sizes(st_store *s, looks *l, st_error *err)
{
    uint64_t size = 0;
    h5_error e = {0};
    h5_io *io;
    int known;
    memset(l, 0, sizeof *l);
    if (s->page && st_id_of_fd(s->log_fd, &l->log) == ST_OK && l->log.size < ST_LOG_PAGE) {
        return st_fail(err, ST_CORRUPT, "the log was cut to %llu bytes while it was open",
                       (unsigned long long)l->log.size);
    }
    if (s->gen) {
        io = s->gen->image->file->io; // which need not be the file that is at the path by now
        if (s->h5_fd >= 0 && s->gen->image->file == s->file) {
            known = st_id_of_fd(s->h5_fd, &l->file) == ST_OK;
            size = l->file.size;
        } else {
            known = io->size(io, &size, &e) == H5_OK;
        }
        if (known && size < s->gen->image->map_n) {
            return st_fail(err, ST_CORRUPT, "the file was cut to %llu bytes while it was open",
                           (unsigned long long)size);
        }
    }
    return ST_OK;
}

static int look_now_and_then(st_store *s, st_error *err)
{
    looks l;
    int64_t ms = st_now_ms();
    if (ms - s->looked < LOOK_MS) {
        return ST_OK;
    }
    ST_TRY(look_at_sizes(s, &l, err));
    s->looked = ms;
    return ST_OK;
}

int st_snapshot_refresh(st_conn *c, st_error *err)
{
    st_store *s = c->store;
    st_log_header h;
    int rc = ST_OK, again = 1;
    if (c->gen && !c->behind && (c->nviews || c->txn.active)) {
        return ST_OK;
    }
    pthread_mutex_lock(&s->lock);
    rc = look_now_and_then(s, err);
    for (int i = 0; i < REREADS && again && !rc; i++) {
        again = 0;
        rc = s->page ? refresh_log(s, &h, err) : refresh_file(s, err);
        if (!rc) {
            adopt(c, s->seq);
            rc = s->doubt ? refresh_doubt(c, &h, &again, err) : ST_OK;
        }
    }
    pthread_mutex_unlock(&s->lock);
    return rc;
}

/* --------------------------------------------------------------------------------------- writer */

static int write_sb(st_store *s, const uint8_t *sb, st_error *err)
{
    h5_error e = {0};
    if (s->file->io->write(s->file->io, 0, sb, H5_SUPERBLOCK_BYTES, &e) != H5_OK) {
        return st_from_h5(err, &e, "mending the superblock");
    }
    return st_store_sync_file(s, err);
}

/* What a flush that died left: before the flip nothing, in it a torn superblock, after it a header
** that does not know yet. */
static int mend_flip(st_store *s, st_log_header *h, st_error *err)
{
    static const uint8_t none[H5_SUPERBLOCK_BYTES];
    uint8_t sb[H5_SUPERBLOCK_BYTES];
    int state, pending = memcmp(h->pending, none, sizeof none) != 0;
    ST_TRY(read_sb(s, h, sb, &state, err));
    if (state == SB_FOREIGN) {
        return st_fail(err, ST_READONLY,
                       "the file was changed by another program since the store last wrote it (its "
                       "superblock is none of ours); it can be read, not written, until "
                       "h5mem_config(table, 'resolve', 'adopt') takes the store's part of it as it "
                       "is (what others have added goes with the next flush)");
    }
    if (state == SB_TORN) {
        // All that the pending root needs was synced before the flip began.
        ST_TRY(write_sb(s, pending ? h->pending : h->in_force, err));
        state = pending ? SB_PENDING : SB_KNOWN;
    }
    if (state == SB_PENDING) {
        complete_flip(h);
    }
    if (pending) {
        memset(h->pending, 0, sizeof h->pending);
        st_log_store(s->page, h);
    }
    return ST_OK;
}

/* Behind the committed length there may be whole transactions, where a power loss took the newer
** header: those with a commit frame, and those that a further one followed. Once an opening, and
** for a transaction in doubt. */
static int take_committed_tail(st_store *s, st_log_header *h, st_error *err)
{
    uint64_t size = 0, seq = h->last_seq, good_len = h->committed_len, good_seq = h->last_seq;
    uint64_t len = 0, prepare = 0;
    uint32_t good_sum = h->committed_sum, sum = 0;
    int rc;
    st_frame f;
    h5_error e = {0};
    if (s->log->size(s->log, &size, &e) != H5_OK) {
        return st_from_h5(err, &e, "the log");
    }
    st_log_reader lr = {.log = s->log,
                        .at = h->committed_len,
                        .to = ST_MAX(size, h->committed_len),
                        .generation = h->generation,
                        .sum = h->committed_sum};
    while ((rc = st_log_next(&lr, &f, err)) > 0 && f.sequence > seq) {
        seq = f.sequence;
        if (len && f.type != ST_FRAME_ABORT) {
            good_len = f.type == ST_FRAME_COMMIT ? lr.at : len;
            good_seq = f.type == ST_FRAME_COMMIT ? seq : prepare;
            good_sum = f.type == ST_FRAME_COMMIT ? lr.sum : sum;
        }
        len = f.type == ST_FRAME_PREPARE ? lr.at : 0;
        prepare = seq;
        sum = lr.sum;
    }
    st_log_reader_end(&lr);
    if (rc < 0) {
        return rc;
    }
    if (good_len > h->committed_len) {
        h->committed_len = good_len;
        h->last_seq = good_seq;
        h->committed_sum = good_sum;
        if (h->prepared_len <= good_len) {
            h->prepared_len = h->prepared_seq = 0;
        }
        st_log_store(s->page, h);
    }
    return ST_OK;
}

enum { LOOK_PATH_MS = 1000 };
static const int64_t settled_ns = 3000000000; /* coarser than any file system's clock */

/* Does the file begin with the superblock in force? By the mapping of it, where there is one.
** With s->lock held. */
static int begins_in_force(const st_store *s, const st_log_header *h)
{
    const st_image *im = s->gen ? s->gen->image : NULL;
    return im && im->map && im->map_n >= H5_SUPERBLOCK_BYTES && im->file == s->file &&
           memcmp(im->map, h->in_force, H5_SUPERBLOCK_BYTES) == 0;
}

/* The open file is the one that was last found in order at its path, and nobody has written to it,
** moved or removed it since. A change within the same tick of the file system's clock as that look
** does not show in a time; in the superblock it does. With s->lock held. */
static int file_stands(const st_store *s, const st_log_header *h, const st_file_id *now)
{
    static const uint8_t none[H5_SUPERBLOCK_BYTES];
    const st_file_id *seen = &s->seen;
    return s->checked && now->links && now->links == seen->links && now->ino == seen->ino &&
           now->dev == seen->dev && now->size == seen->size && now->changed == seen->changed &&
           now->touched == seen->touched && !h->next_ino &&
           memcmp(h->pending, none, sizeof none) == 0 && (s->seen_firm || begins_in_force(s, h)) &&
           st_now_ms() - s->looked_path < LOOK_PATH_MS;
}

/* The log that is open must still be the one at its path: what is written to another would be lost.
** Removed or replaced is seen at once, moved away within a second. */
static int check_log(st_store *s, const st_file_id *open, st_error *err)
{
    st_file_id path;
    int64_t now = st_now_ms();
    if (open->links && now - s->looked_log < LOOK_PATH_MS) {
        return ST_OK;
    }
    if (!open->links || st_id_of_path(s->log_path, &path) != 1 || path.dev != open->dev ||
        path.ino != open->ino) {
        return st_fail(err, ST_IO,
                       "the log was replaced or removed while it was open; close the "
                       "store and open it anew");
    }
    s->looked_log = now;
    return ST_OK;
}

/* Looks at the file at its path and mends what a death left in it. */
static int mend_file(st_store *s, st_log_header *h, st_error *err)
{
    st_file_id now;
    int rc, there;
    int64_t ms = st_now_ms();
    pthread_mutex_lock(&s->lock);
    rc = st_store_follow_path(s, h, err);
    pthread_mutex_unlock(&s->lock);
    ST_TRY(rc);
    if (h->next_ino) {
        ST_TRY(st_compact_mend(s, err));
        ST_TRY(st_header(s, h, err));
    }
    there = st_id_of_path(s->path, &now);
    ST_TRY(mend_flip(s, h, err));
    s->seen = now;
    s->seen_firm = there == 1 && st_now_unix_ns() - now.changed > settled_ns;
    s->looked_path = ms;
    return ST_OK;
}

int st_snapshot_mend(st_store *s, const st_host *host, const st_identity *who, st_log_header *h,
                     st_error *err)
{
    looks l;
    int rc, stands = 0;
    pthread_mutex_lock(&s->lock);
    rc = look_at_sizes(s, &l, err);
    if (!rc && (!h->counter || h->counter != st_log_counter(s->page))) {
        rc = st_header(s, h, err);
    }
    if (!rc) {
        stands = file_stands(s, h, &l.file);
    }
    pthread_mutex_unlock(&s->lock);
    ST_TRY(rc);
    s->log_bytes = l.log.size;
    ST_TRY(check_log(s, &l.log, err));
    ST_TRY(stands ? ST_OK : mend_file(s, h, err));
    // A writer that died with its transaction prepared may have got as far as the commit frame.
    if (!s->checked || h->prepared_len > h->committed_len) {
        ST_TRY(take_committed_tail(s, h, err));
    }
    if (h->prepared_len > h->committed_len) {
        ST_TRY(st_doubt_settle(s, h, host, who, err));
    }
    s->checked = 1;
    return ST_OK;
}

/* ------------------------------------------------------------------------------------ resolving */

static int foreign_file(st_store *s, const st_log_header *h, uint8_t sb[H5_SUPERBLOCK_BYTES],
                        int *foreign, st_error *err)
{
    int state;
    ST_TRY(read_sb(s, h, sb, &state, err));
    *foreign = state == SB_FOREIGN;
    return ST_OK;
}

int st_unresolved(st_conn *c, const char **what, st_error *err)
{
    st_store *s = c->store;
    st_log_header h;
    uint8_t sb[H5_SUPERBLOCK_BYTES];
    int foreign;
    *what = "";
    if (!s->page) {
        return ST_OK;
    }
    ST_TRY(st_header(s, &h, err));
    ST_TRY(foreign_file(s, &h, sb, &foreign, err));
    *what = foreign ? "foreign" : h.prepared_len > h.committed_len ? "doubt" : "";
    return ST_OK;
}

/* The file as it stands is the store's from now on: it must hold a store, of the generation that
** the rows in the log continue, or of any when there are none. */
static int adopt_file(st_store *s, st_log_header *h, st_error *err)
{
    uint8_t sb[H5_SUPERBLOCK_BYTES];
    st_image *im;
    st_file_id id;
    int foreign;
    ST_TRY(foreign_file(s, h, sb, &foreign, err));
    if (!foreign) {
        return st_fail(err, ST_MISUSE, "no other program has changed the file");
    }
    ST_TRY(st_image_open(s->file, sb, s->uuid, s->schema, &im, err));
    if (im->generation != h->generation && !nothing_in(h)) {
        st_fail(err, ST_CORRUPT,
                "the file is of generation %llu, the rows in its log continue generation %llu",
                (unsigned long long)im->generation, (unsigned long long)h->generation);
        st_image_unref(im);
        return ST_CORRUPT;
    }
    h->generation = im->generation;
    h->last_seq = ST_MAX(h->last_seq, im->last_seq);
    st_image_unref(im);
    memcpy(h->in_force, sb, sizeof h->in_force);
    memset(h->pending, 0, sizeof h->pending);
    if (st_id_of_fd(s->h5_fd, &id) == ST_OK) {
        h->ino = id.ino;
    }
    st_log_store(s->page, h);
    pthread_mutex_lock(&s->lock);
    st_gen_unref(s->gen); // it is of the file as it was
    s->gen = NULL;
    s->foreign = 0;
    pthread_mutex_unlock(&s->lock);
    return ST_OK;
}

static int resolve_locked(st_store *s, const char *how, st_error *err)
{
    st_log_header h;
    int yes = strcmp(how, "commit") == 0;
    ST_TRY(st_header(s, &h, err));
    if (strcmp(how, "adopt") == 0) {
        return adopt_file(s, &h, err);
    }
    if (!yes && strcmp(how, "abort") != 0) {
        return st_fail(err, ST_MISUSE, "resolve cannot be '%.40s'; it takes adopt, commit or abort",
                       how);
    }
    return h.prepared_len > h.committed_len ? st_doubt_decree(s, &h, yes, err)
                                            : st_fail(err, ST_MISUSE, "no transaction is in doubt");
}

int st_resolve(st_conn *c, int timeout_ms, const char *how, st_error *err)
{
    st_store *s = c->store;
    int rc;
    if (st_has_changes(c) || c->txn.prepared) {
        return st_fail(
            err, ST_LOCKED,
            "this connection has uncommitted rows in the store; commit or roll back first");
    }
    if (c->readonly || !s->page) {
        return st_fail(err, ST_READONLY, "the store is open for reading only");
    }
    st_rollback(c);
    ST_TRY(st_writer_lock(s, c, timeout_ms, err));
    rc = resolve_locked(s, how, err);
    st_writer_unlock(s, c);
    return rc;
}
