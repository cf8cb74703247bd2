/*
 * st_flush.c - folds the overlay into the HDF5 file: append, then flip.
 *
 * ORDER     1 new chunks, indexes, headers and a new root behind the end of file, and rows into the
 *             tails of last chunks
 *           2 sync the file
 *           3 the coming superblock into the log's header
 *           4 sync the log
 *           5 the 48 bytes
 *           6 sync the file
 *           7 the log anew: generation + 1, then cut
 *           Up to 5 nothing that a reader can reach has changed; from 3 on a torn 5 is mended from
 *           the log's header. A failure before 5 leaves the store as it was; after it, the next
 *           writer finishes.
 *
 * SYNC      `off` leaves out 2, 4 and 6.
 *
 * SPDX-License-Identifier: MIT
 */
#include "st_flush.h"

/* ----------------------------------------------------------------------------------------- fold */

/* The new root starts as a copy of the old one's column tables. */
static int copy_columns(st_fold *f, st_error *err)
{
    const st_image *im = f->gen->image;
    int n = im->schema->nphys;
    f->col = h5_calloc((size_t)n, sizeof *f->col);
    f->touched = h5_calloc((size_t)n, 1);
    if (!f->col || !f->touched) {
        return st_nomem(err);
    }
    for (int c = 0; c < n; c++) {
        f->col[c] = im->col[c];
        f->col[c].fill = NULL;
        f->col[c].chunk = NULL;
        f->col[c].crc = NULL;
    }
    return ST_OK;
}

static void fold_free(st_fold *f)
{
    h5_writer_free(f->w);
    for (int c = 0; f->col && c < f->gen->schema->nphys; c++) {
        h5_free(f->col[c].chunk);
        h5_free(f->col[c].crc);
    }
    h5_free(f->col);
    h5_free(f->touched);
    h5_free(f->row);
    h5_free(f->patched);
    h5_free(f->dead);
    for (int i = 0; i < ST_SORTS; i++) {
        h5_free(f->sorted[i]);
    }
    h5_free(f->run);
    h5_free(f->tail);
    st_reader_close(&f->reader);
}

/* Touched columns get a new table from st_col_write; a config change alone touches none. headers of
** the rest stay. */
static int write_root(st_fold *f, uint64_t last_seq, uint64_t *root, st_error *err)
{
    const st_image *im = f->gen->image;
    st_root r = {.schema = f->gen->schema,
                 .options = &f->gen->options,
                 .uuid = f->store->uuid,
                 .created = im->created,
                 .generation = f->gen->generation + 1,
                 .last_seq = last_seq,
                 .next_id = f->gen->next_id,
                 .col = f->col,
                 .touched = f->touched,
                 .sorted = {f->sorted[ST_SORT_ID], f->sorted[ST_SORT_TIME]},
                 .nsorted = {f->nsorted[ST_SORT_ID], f->nsorted[ST_SORT_TIME]},
                 .run = f->run,
                 .nrun = f->nrun,
                 .lists = f->lists,
                 .tail = f->tail,
                 .ntail = f->ntail};
    memcpy(r.side, f->side, sizeof r.side);
    return st_root_write(&r, f->w, root, err);
}

static int write_all(st_fold *f, uint64_t last_seq, uint64_t *root, st_error *err)
{
    h5_error h = {0};
    ST_TRY(st_reader_open(&f->reader, f->gen->image, err));
    ST_TRY(st_image_sums(f->gen->image, err));
    ST_TRY(copy_columns(f, err));
    ST_TRY(st_fold_collect(f, err));
    if (f->gen->image->nrow + f->nrow > ST_ROWS_MAX) {
        return st_fail(err, ST_LIMIT, "%llu row positions; at most %llu: compact the store",
                       (unsigned long long)(f->gen->image->nrow + f->nrow),
                       (unsigned long long)ST_ROWS_MAX);
    }
    if (h5_writer_new(f->store->file->io, f->gen->image->eof, &f->w, &h) != H5_OK) {
        return st_from_h5(err, &h, "writing the file");
    }
    ST_TRY(st_fold_columns(f, err));
    ST_TRY(st_fold_sides(f, err));
    ST_TRY(st_fold_sorted(f, err));
    ST_TRY(st_fold_text(f, err));
    ST_TRY(st_fold_lists(f, err));
    ST_TRY(write_root(f, last_seq, root, err));
    return h5_writer_flush(f->w, &h) == H5_OK ? ST_OK : st_from_h5(err, &h, "writing the file");
}

/* ----------------------------------------------------------------------------------------- flip */

static int sync_unless_off(st_store *s, int file, int synchronous, st_error *err)
{
    if (synchronous == ST_SYNC_OFF) {
        return ST_OK;
    }
    return file ? st_store_sync_file(s, err) : st_store_sync_log(s, err);
}

static int flip(st_store *s, st_log_header *h, const uint8_t sb[H5_SUPERBLOCK_BYTES],
                int synchronous, uint64_t keep, st_error *err)
{
    h5_error e = {0};
    h5_io *io = s->file->io;
    ST_TRY(sync_unless_off(s, 1, synchronous, err));
    memcpy(h->pending, sb, H5_SUPERBLOCK_BYTES);
    st_log_store(s->page, h);
    if (sync_unless_off(s, 0, synchronous, err)) {
        memset(h->pending, 0, sizeof h->pending);
        st_log_store(s->page, h);
        return err ? err->code : ST_IO;
    }
    // From here on the header's pending superblock lets the next writer finish or take back what
    // fails.
    if (io->write(io, 0, sb, H5_SUPERBLOCK_BYTES, &e) != H5_OK) {
        return st_from_h5(err, &e, "writing the superblock");
    }
    ST_TRY(sync_unless_off(s, 1, synchronous, err));
    memcpy(h->in_force, sb, H5_SUPERBLOCK_BYTES);
    memset(h->pending, 0, sizeof h->pending);
    h->generation++;
    h->committed_len = ST_LOG_START;
    h->committed_sum = 0;
    st_log_store(s->page, h);
    // Old frames do not fit the new generation and do no harm. Writing over them is half of what it
    // costs to make a file longer, so they stay, up to what the next ones will take.
    uint64_t size = 0;
    if (s->log->size(s->log, &size, &e) == H5_OK && size > keep + ST_LOG_PAGE) {
        s->log->truncate(s->log, ST_LOG_PAGE, &e);
    }
    return ST_OK;
}

static int nothing_to_do(const st_gen *g, const st_log_header *h)
{
    for (int side = 0; side < ST_SIDES; side++) {
        if (g->side[side].n || g->side[side].nkill) {
            return 0;
        }
    }
    return !g->nslot && !g->nkill && !g->npatch && !g->config_changed &&
           h->committed_len == ST_LOG_START;
}

static int fold_locked(st_store *s, int optimize, uint64_t *rows, st_error *err)
{
    st_fold f = {.store = s, .optimize = optimize};
    st_log_header h;
    uint8_t sb[H5_SUPERBLOCK_BYTES];
    uint64_t root = 0, eof;
    st_error local = {0, ""};
    int rc;
    *rows = 0;
    err = err ? err : &local;
    ST_TRY(st_header(s, &h, err));
    ST_TRY(st_snapshot_latest(s, &f.gen, err));
    if (!optimize && nothing_to_do(f.gen, &h)) {
        st_gen_unref(f.gen);
        return ST_OK;
    }
    rc = write_all(&f, h.last_seq, &root, err);
    if (!rc) {
        eof = h5_writer_eof(f.w);
        h5_superblock_pack(root, eof, sb);
        rc = flip(s, &h, sb, f.gen->options.synchronous, ST_LOG_KEPT(f.gen->options.autoflush),
                  err);
        if (!rc) {
            *rows = f.nrow + f.npatched + f.ndead;
            pthread_mutex_lock(&s->lock);
            s->flushes++;
            s->flush_error[0] = 0;
            s->last_flush_bytes = eof - f.gen->image->eof;
            pthread_mutex_unlock(&s->lock);
        }
    }
    fold_free(&f);
    st_gen_unref(f.gen);
    return rc;
}

int st_flush_locked(st_store *s, uint64_t *rows, st_error *err)
{
    return fold_locked(s, 0, rows, err);
}

static int fold(st_conn *c, int timeout_ms, int optimize, uint64_t *rows, st_error *err)
{
    st_store *s = c->store;
    st_log_header h = {.counter = 0};
    int rc;
    *rows = 0;
    if (st_has_changes(c) || c->txn.prepared) {
        return st_fail(
            err, ST_LOCKED,
            "this connection has uncommitted rows in the store; commit or roll back first");
    }
    if (c->readonly) {
        return st_fail(err, ST_READONLY, "the store is open for reading only");
    }
    if (!s->page) {
        return ST_OK; // no log, nothing to fold
    }
    st_rollback(c); // an open transaction without changes only holds the lock
    ST_TRY(st_writer_lock(s, c, timeout_ms, err));
    // Without the host: whether its write lock is held is not known here, so nothing in doubt can
    // be decided.
    rc = st_snapshot_mend(s, NULL, NULL, &h, err);
    rc = rc ? rc : fold_locked(s, optimize, rows, err);
    st_writer_unlock(s, c);
    return rc;
}

int st_flush(st_conn *c, int timeout_ms, uint64_t *rows, st_error *err)
{
    return fold(c, timeout_ms, 0, rows, err);
}

void st_set_threads(st_conn *c, int threads)
{
    __atomic_store_n(&c->store->threads, threads, __ATOMIC_RELAXED);
}

int st_optimize(st_conn *c, int timeout_ms, uint64_t *rows, st_error *err)
{
    return fold(c, timeout_ms, 1, rows, err);
}
