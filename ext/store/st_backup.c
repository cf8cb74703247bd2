/*
 * st_backup.c - a consistent copy of a store while others write.
 *
 * What a root shows never changes, so the file's bytes up to its end are copied from the mapping
 * without a lock, under the superblock of the snapshot. The frames that the snapshot has beyond
 * the file become the copy's log. When a flush restarts the log meanwhile, its bytes no longer fit
 * the snapshot: then all begins anew with the newer one.
 *
 * SPDX-License-Identifier: MIT
 */
#include "st_store.h"

enum { COPY_BYTES = 1 << 20, ATTEMPTS = 20 };

typedef struct backup {
    st_store *s;
    st_gen *gen;
    char *tmp, *log_path;
    h5_io *file, *log;
    uint64_t bytes;
    uint64_t replayed, seq; /* of the generation, when the copy began */
    uint32_t sum;
} backup;

static int wrote(int rc, const h5_error *h, st_error *err)
{
    return rc == H5_OK ? ST_OK : st_from_h5(err, h, "writing the copy");
}

static int copy_file(backup *b, uint8_t sb[H5_SUPERBLOCK_BYTES], st_error *err)
{
    const st_image *im = b->gen->image;
    h5_error h = {0};
    for (uint64_t at = H5_SUPERBLOCK_BYTES, n; at < im->map_n; at += n) {
        n = ST_MIN(im->map_n - at, (uint64_t)COPY_BYTES);
        ST_TRY(wrote(b->file->write(b->file, at, im->map + at, (size_t)n, &h), &h, err));
    }
    h5_superblock_pack(im->root, im->eof, sb);
    ST_TRY(wrote(b->file->write(b->file, 0, sb, H5_SUPERBLOCK_BYTES, &h), &h, err));
    return wrote(b->file->sync(b->file, &h), &h, err);
}

/* The frames of the snapshot. 1: the log has been restarted under them. */
static int copy_frames(backup *b, st_error *err)
{
    st_log_header h;
    h5_error e = {0};
    uint8_t *buf;
    int rc;
    // Without frames the copy needs nothing of the log. A flush that died after its flip leaves a
    // header of the generation before until the next writer comes.
    if (b->replayed == ST_LOG_START) {
        return ST_OK;
    }
    buf = h5_malloc(COPY_BYTES);
    rc = buf ? ST_OK : st_nomem(err);
    for (uint64_t at = ST_LOG_START, n; at < b->replayed && !rc; at += n) {
        n = ST_MIN(b->replayed - at, (uint64_t)COPY_BYTES);
        if (b->s->log->read(b->s->log, at, buf, (size_t)n, &e) != H5_OK) {
            rc = e.code == H5_FORMAT ? 1 : st_from_h5(err, &e, "the log");
            break;
        }
        rc = wrote(b->log->write(b->log, at, buf, (size_t)n, &e), &e, err);
    }
    h5_free(buf);
    if (rc < 0) {
        return rc;
    }
    ST_TRY(st_header(b->s, &h, err));
    return h.generation != b->gen->generation ? 1 : rc;
}

static int write_header(backup *b, const uint8_t *sb, uint64_t ino, st_error *err)
{
    uint8_t page[ST_LOG_PAGE];
    st_log_header h = {0};
    h5_error e = {0};
    memcpy(h.uuid, b->s->uuid, 16);
    h.generation = b->gen->image->generation;
    h.ino = ino;
    h.committed_len = b->replayed;
    h.committed_sum = b->sum;
    h.last_seq = b->seq;
    memcpy(h.in_force, sb, H5_SUPERBLOCK_BYTES);
    st_log_format(page, &h);
    ST_TRY(wrote(b->log->write(b->log, 0, page, sizeof page, &e), &e, err));
    return wrote(b->log->sync(b->log, &e), &e, err);
}

static int open_targets(backup *b, const char *path, st_error *err)
{
    st_file_id id;
    int fd;
    b->tmp = st_store_suffix(path, "-new");
    b->log_path = st_store_suffix(path, "-wal");
    if (!b->tmp || !b->log_path) {
        return st_nomem(err);
    }
    int there = st_id_of_path(path, &id) != 0;
    if (there || st_id_of_path(b->log_path, &id) != 0) {
        return st_fail(err, ST_EXISTS, "'%.200s' is there already; a backup writes a new file",
                       there ? path : b->log_path);
    }
    ST_TRY(
        st_store_open_io(b->log_path, H5_IO_WRITE | H5_IO_CREATE | H5_IO_EXCL, &b->log, &fd, err));
    st_unlink(b->tmp);
    return st_store_open_io(b->tmp, H5_IO_WRITE | H5_IO_CREATE | H5_IO_EXCL, &b->file, &fd, err);
}

/* The newest state that this connection may see, also where it still reads an older one, whose
** frames may be gone; the caller gives the reference back. */
static int newest(st_conn *c, st_gen **out, st_error *err)
{
    st_gen *gen = c->gen;
    uint64_t seq = c->seq;
    int held = c->nviews, behind = c->behind, rc;
    if (!held) {
        ST_TRY(st_snapshot_refresh(c, err));
        *out = c->gen;
        st_gen_ref(*out);
        return ST_OK;
    }
    st_gen_ref(gen);
    c->nviews = 0;
    rc = st_snapshot_refresh(c, err);
    *out = c->gen; // its reference goes to the caller
    c->gen = gen;
    c->seq = seq;
    c->behind = behind;
    c->nviews = held;
    if (rc) {
        st_gen_unref(*out);
        *out = NULL;
    }
    return rc;
}

static int copy_once(backup *b, st_conn *c, st_error *err)
{
    uint8_t sb[H5_SUPERBLOCK_BYTES];
    st_file_id id = {.ino = 0};
    h5_error e = {0};
    int rc;
    ST_TRY(newest(c, &b->gen, err));
    // The overlay grows when another connection of this process reads on; the copy does not.
    pthread_mutex_lock(&b->s->lock);
    b->replayed = b->gen->replayed;
    b->seq = b->gen->last_seq;
    b->sum = b->gen->sum;
    pthread_mutex_unlock(&b->s->lock);
    if (b->gen->image->generation != b->gen->generation) {
        // A compact died after its rename: the file holds what the log still has.
        b->replayed = ST_LOG_START;
        b->sum = 0;
    }
    ST_TRY(wrote(b->log->truncate(b->log, 0, &e), &e, err));
    ST_TRY(wrote(b->file->truncate(b->file, 0, &e), &e, err));
    rc = b->s->page ? copy_frames(b, err) : ST_OK;
    rc = rc ? rc : copy_file(b, sb, err);
    st_id_of_path(b->tmp, &id);
    rc = rc ? rc : write_header(b, sb, id.ino, err);
    b->bytes = b->gen->image->map_n + b->replayed;
    return rc;
}

static void close_all(backup *b)
{
    if (b->file) {
        b->file->close(b->file);
    }
    if (b->log) {
        b->log->close(b->log);
    }
    b->file = b->log = NULL;
}

int st_backup(st_conn *c, const char *path, uint64_t *bytes, st_error *err)
{
    backup b = {.s = c->store};
    char *real = NULL;
    int rc;
    *bytes = 0;
    if (st_has_changes(c) || c->txn.prepared) {
        return st_fail(
            err, ST_LOCKED,
            "this connection has uncommitted rows in the store; commit or roll back first");
    }
    ST_TRY(st_real_path(path, &real, err));
    rc = open_targets(&b, real, err);
    for (int i = 0; !rc && i < ATTEMPTS; i++) {
        rc = copy_once(&b, c, err);
        st_gen_unref(b.gen);
        b.gen = NULL;
        if (rc <= 0) {
            break;
        }
        rc = i + 1 < ATTEMPTS
                 ? ST_OK
                 : st_fail(err, ST_BUSY, "the store is flushed faster than it can be copied");
    }
    int made = b.log != NULL, renamed = 0;
    close_all(&b);
    rc = rc ? rc : st_rename(b.tmp, real, err);
    renamed = !rc;
    rc = rc ? rc : st_sync_dir(real, err);
    if (rc && made) {
        st_unlink(renamed ? real : b.tmp);
        st_unlink(b.log_path);
    }
    *bytes = rc ? 0 : b.bytes;
    h5_free(b.tmp);
    h5_free(b.log_path);
    h5_free(real);
    return rc;
}
