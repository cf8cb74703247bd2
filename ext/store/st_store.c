/*
 * st_store.c - the registry of open stores, opening and closing, making a new store.
 *
 * A process opens a store once, however many connections use it: locks on open files would
 * otherwise not keep its own connections apart. The registry is keyed by device and inode of the
 * log (of the .h5 where there is none).
 *
 * REMOVING  st_destroy holds the log's locks while the names go. Whoever opened a file before that
 *           gets its lock after it, sees that the file has no name any more, and starts over.
 * MAKING    log first, under its writer lock: two processes that make the same store at once meet
 *           there. Then the .h5 under another name, synced, renamed, the folder synced, then the
 *           log's header. What fails on the way takes away what it made.
 *
 * SPDX-License-Identifier: MIT
 */
#include "st_store.h"

#include <stdio.h>

#include "vec.h"

enum { OPEN_WAIT_MS = 10000 }; /* for another process that makes, folds or removes the store */

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static st_store *registry;
static int forks;

/* A child shares the parent's open files, and with them its locks, which belong to the open file:
** it must open stores of its own. What it has inherited stays where it is, unused. */
static void in_child(void)
{
    forks++;
    registry = NULL;
    pthread_mutex_init(&registry_lock, NULL); // another thread of the parent may have held it
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

int st_inherited(const st_store *s)
{
    return s->forks != forks;
}

h5_io *(*st_test_wrap_io)(h5_io *inner, const char *path);

/* -------------------------------------------------------------------------------- small helpers */

int st_store_open_io(const char *path, int flags, h5_io **io, int *fd, st_error *err)
{
    h5_error h = {0};
    if (h5_io_file(path, flags, io, &h) != H5_OK) {
        return st_from_h5(err, &h, "opening");
    }
    *fd = h5_io_fd(*io);
    if (st_test_wrap_io) {
        *io = st_test_wrap_io(*io, path);
    }
    return ST_OK;
}

int st_store_sync_log(st_store *s, st_error *err)
{
    h5_error h = {0};
    __atomic_add_fetch(&s->syncs, 1, __ATOMIC_RELAXED);
    return s->log->sync(s->log, &h) == H5_OK ? ST_OK : st_from_h5(err, &h, "syncing the log");
}

int st_store_sync_file(st_store *s, st_error *err)
{
    h5_error h = {0};
    __atomic_add_fetch(&s->syncs, 1, __ATOMIC_RELAXED);
    return s->file->io->sync(s->file->io, &h) == H5_OK ? ST_OK
                                                       : st_from_h5(err, &h, "syncing the file");
}

char *st_store_suffix(const char *path, const char *suffix)
{
    size_t a = strlen(path), b = strlen(suffix) + 1;
    char *p = h5_malloc(a + b);
    if (p) {
        memcpy(p, path, a);
        memcpy(p + a, suffix, b);
    }
    return p;
}

static int read_superblock(h5_io *io, uint8_t sb[H5_SUPERBLOCK_BYTES], st_error *err)
{
    uint64_t size = 0;
    h5_error h = {0};
    if (io->size(io, &size, &h) != H5_OK) {
        return st_from_h5(err, &h, "the file");
    }
    if (size < H5_SUPERBLOCK_BYTES) {
        return st_fail(err, ST_NOT_A_STORE, "no HDF5 file: it has %llu bytes",
                       (unsigned long long)size);
    }
    return io->read(io, 0, sb, H5_SUPERBLOCK_BYTES, &h) == H5_OK
               ? ST_OK
               : st_from_h5(err, &h, "the superblock");
}

/* -------------------------------------------------------------------------------------- closing */

static void store_free(st_store *s)
{
    st_gen_unref(s->gen);
    if (s->page) {
        st_unmap_page(s->page, ST_LOG_PAGE);
    }
    st_log_unmap(s);
    if (s->log) {
        s->log->close(s->log);
    }
    if (s->file && !__atomic_sub_fetch(&s->file->refs, 1, __ATOMIC_ACQ_REL)) {
        s->file->io->close(s->file->io);
        h5_free(s->file);
    }
    st_schema_free(s->schema);
    h5_free(s->path);
    h5_free(s->log_path);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->writer_free);
    h5_free(s);
}

static st_store *store_alloc(const char *path)
{
    st_store *s = h5_calloc(1, sizeof *s);
    pthread_condattr_t attr;
    if (!s) {
        return NULL;
    }
    s->log_fd = s->h5_fd = -1;
    s->forks = forks;
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&attr);
#if !defined(__APPLE__)
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
#endif
    pthread_cond_init(&s->writer_free, &attr);
    pthread_condattr_destroy(&attr);
    s->path = st_store_suffix(path, "");
    s->log_path = st_store_suffix(path, "-wal");
    if (!s->path || !s->log_path) {
        store_free(s);
        return NULL;
    }
    return s;
}

/* --------------------------------------------------------------------------------- opening, log */

static int lock_waiting(int fd, int which, int mode, int ms, st_error *err)
{
    int64_t until = st_now_ms() + ms;
    int got;
    while ((got = st_lock(fd, which, mode, err)) == 0 && st_now_ms() < until) {
        st_sleep_ms(2);
    }
    return got;
}

/* What was opened has no name any more: st_destroy came between. */
static int was_removed(st_store *s, int fd, st_error *err)
{
    st_file_id id;
    s->gone = st_id_of_fd(fd, &id) == ST_OK && id.links == 0;
    return s->gone ? st_fail(err, ST_NOTFOUND, "the store was removed while it was opened") : ST_OK;
}

/* From here on the store is in use. Who keeps users out folds the log (last_flush) or removes the
** store. */
static int attach_log(st_store *s, st_error *err)
{
    int got = lock_waiting(s->log_fd, ST_LOCK_USERS, ST_LOCK_SHARED, OPEN_WAIT_MS, err);
    if (got <= 0) {
        return got ? err->code : st_fail(err, ST_BUSY, "another process keeps users out");
    }
    ST_TRY(was_removed(s, s->log_fd, err));
    return st_map_page(s->log_fd, ST_LOG_PAGE, s->page_writable, &s->page, err);
}

/* Opens an existing log: for writing if that is possible, else for reading. */
static int open_log_file(st_store *s, int flags, st_error *err)
{
    st_error first = {0, ""};
    int rc = st_store_open_io(s->log_path, flags, &s->log, &s->log_fd, &first);
    s->page_writable = rc == ST_OK;
    if (rc == ST_READONLY && !(flags & H5_IO_CREATE)) {
        rc = st_store_open_io(s->log_path, H5_IO_READ, &s->log, &s->log_fd, err);
    } else if (rc) {
        *err = first;
    }
    return rc;
}

static int write_log_header(st_store *s, uint64_t generation, uint64_t last_seq, const uint8_t *sb,
                            st_error *err)
{
    uint8_t page[ST_LOG_PAGE] = {0};
    st_log_header h;
    st_file_id id;
    h5_error e = {0};
    memset(&h, 0, sizeof h);
    memcpy(h.uuid, s->uuid, 16);
    h.generation = generation;
    st_id_of_path(s->path, &id);
    h.ino = id.ino;
    h.committed_len = ST_LOG_START;
    h.last_seq = last_seq;
    memcpy(h.in_force, sb, H5_SUPERBLOCK_BYTES);
    st_log_format(page, &h);
    if (s->log->write(s->log, 0, page, sizeof page, &e) != H5_OK) {
        return st_from_h5(err, &e, "making the log");
    }
    return st_store_sync_log(s, err);
}

static int log_size(st_store *s, uint64_t *size, st_error *err)
{
    h5_error e = {0};
    return s->log->size(s->log, size, &e) == H5_OK ? ST_OK : st_from_h5(err, &e, "the log");
}

/* Generation and sequence of the file as it stands. */
static int file_state(st_store *s, const uint8_t *sb, uint64_t *generation, uint64_t *seq,
                      st_error *err)
{
    st_image *im;
    ST_TRY(st_image_open(s->file, sb, s->uuid, s->schema, &im, err));
    *generation = im->generation;
    *seq = im->last_seq;
    st_image_unref(im);
    return ST_OK;
}

/* Where nothing can be locked a log that was just made goes again, while nobody has written it. */
static void drop_new_log(st_store *s, int had_log)
{
    st_file_id id;
    if (!had_log && st_id_of_fd(s->log_fd, &id) == ST_OK && id.size == 0) {
        st_unlink(s->log_path);
    }
}

int st_store_make_log(st_store *s, st_error *err)
{
    uint8_t sb[H5_SUPERBLOCK_BYTES];
    uint64_t size = 0, generation = 0, seq = 0;
    st_file_id id;
    int had_log = st_id_of_path(s->log_path, &id) == 1;
    int rc = open_log_file(s, H5_IO_WRITE | H5_IO_CREATE, err), got;
    if (rc) {
        return rc;
    }
    got = lock_waiting(s->log_fd, ST_LOCK_WRITER, ST_LOCK_EXCLUSIVE, OPEN_WAIT_MS, err);
    rc = got > 0   ? log_size(s, &size, err)
         : got < 0 ? err->code
                   : st_fail(err, ST_BUSY, "another process is making the log");
    if (!rc && size < ST_LOG_PAGE) {
        rc = read_superblock(s->file->io, sb, err);
        rc = rc ? rc : file_state(s, sb, &generation, &seq, err);
        rc = rc ? rc : write_log_header(s, generation, seq, sb, err);
    }
    rc = rc ? rc : attach_log(s, err);
    if (got > 0) {
        st_lock(s->log_fd, ST_LOCK_WRITER, ST_LOCK_FREE, NULL);
    } else if (got < 0) {
        drop_new_log(s, had_log);
    }
    if (rc) {
        s->log->close(s->log);
        s->log = NULL;
        s->log_fd = -1;
    }
    return rc;
}

/* ------------------------------------------------------------------------------- opening, store */

static int take_file(st_store *s, h5_io *io, int fd, st_error *err)
{
    st_file *f = h5_calloc(1, sizeof *f);
    if (!f) {
        io->close(io);
        return st_nomem(err);
    }
    f->io = io;
    f->refs = 1;
    s->file = f;
    s->h5_fd = fd;
    st_lock_h5(fd);
    return ST_OK;
}

static int open_h5(st_store *s, st_error *err)
{
    h5_io *io;
    int fd, rc;
    st_error first = {0, ""};
    rc = st_store_open_io(s->path, H5_IO_WRITE, &io, &fd, &first);
    s->writable = rc == ST_OK;
    if (rc == ST_READONLY) {
        rc = st_store_open_io(s->path, H5_IO_READ, &io, &fd, err);
    } else if (rc) {
        *err = first;
    }
    return rc ? rc : take_file(s, io, fd, err);
}

/* 1 when there is a file at the path. Not every file system renames over a file in one step for
** those who look: what seems gone gets a second look. */
static int look_at_path(const char *path, st_file_id *id)
{
    int there = st_id_of_path(path, id);
    for (int i = 0; i < 5 && there == 0; i++) {
        st_sleep_ms(1);
        there = st_id_of_path(path, id);
    }
    return there;
}

int st_store_follow_path(st_store *s, const st_log_header *h, st_error *err)
{
    st_file_id now, open;
    uint8_t sb[H5_SUPERBLOCK_BYTES], uuid[16];
    st_file *old = s->file;
    h5_io *io;
    int fd, rc, there = look_at_path(s->path, &now);
    if (s->h5_fd < 0 || st_id_of_fd(s->h5_fd, &open) != ST_OK) {
        return ST_OK;
    }
    if (there == 1 && now.dev == open.dev && now.ino == open.ino) {
        return ST_OK;
    }
    if (there != 1) {
        return st_fail(err, ST_IO, "the file was removed while it was open");
    }
    ST_TRY(st_store_open_io(s->path, s->writable ? H5_IO_WRITE : H5_IO_READ, &io, &fd, err));
    rc = read_superblock(io, sb, err);
    st_id_of_fd(fd, &now); // a compact may have come between the look at the path and the opening
    if (!rc && memcmp(sb, h->in_force, sizeof sb) != 0 &&
        !((!h->next_ino || h->next_ino == now.ino) && memcmp(sb, h->pending, sizeof sb) == 0)) {
        rc = st_fail(err, ST_IO, "the file was replaced while it was open");
    }
    // Two young stores can have the same superblock: only the uuid tells them apart.
    rc = rc ? rc : st_image_uuid(io, sb, uuid, err);
    if (!rc && memcmp(uuid, s->uuid, sizeof uuid) != 0) {
        rc = st_fail(err, ST_IO, "the file was replaced by another store while it was open");
    }
    if (rc) {
        io->close(io);
        return rc;
    }
    ST_TRY(take_file(s, io, fd, err));
    if (!__atomic_sub_fetch(&old->refs, 1, __ATOMIC_ACQ_REL)) {
        old->io->close(old->io);
        h5_free(old);
    }
    return ST_OK;
}

/* The superblock to read the schema by: the file's, or when that is torn the one the log has. */
static int schema_superblock(st_store *s, uint8_t sb[H5_SUPERBLOCK_BYTES], st_error *err)
{
    uint64_t root, eof;
    st_log_header h;
    h5_error e = {0};
    ST_TRY(read_superblock(s->file->io, sb, err));
    if (h5_superblock_unpack(sb, &root, &eof, &e) == H5_OK) {
        return ST_OK;
    }
    if (s->page && st_log_load(s->page, &h, NULL) == ST_OK) {
        memcpy(sb, h.in_force, H5_SUPERBLOCK_BYTES);
        return ST_OK;
    }
    return st_fail(err, ST_NOT_A_STORE, "no HDF5 file that this library reads: %s", e.text);
}

/* An existing .h5, with or without a log beside it. */
static int open_existing(st_store *s, st_error *err)
{
    st_file_id id;
    st_log_header h;
    uint8_t sb[H5_SUPERBLOCK_BYTES];
    uint64_t size = 0;
    ST_TRY(open_h5(s, err));
    if (st_id_of_path(s->log_path, &id) == 1) {
        ST_TRY(open_log_file(s, H5_IO_WRITE, err));
        ST_TRY(log_size(s, &size, err));
        if (size >= ST_LOG_PAGE) {
            ST_TRY(attach_log(s, err));
            ST_TRY(st_log_load(s->page, &h, err));
        } else {
            // Made and not filled by a process that died, or is at it: as if there were none.
            s->log->close(s->log);
            s->log = NULL;
            s->log_fd = -1;
        }
    } else {
        ST_TRY(was_removed(s, s->h5_fd, err));
    }
    ST_TRY(schema_superblock(s, sb, err));
    ST_TRY(st_image_schema(s->file->io, sb, s->uuid, &s->schema, err));
    if (s->page && memcmp(h.uuid, s->uuid, 16) != 0) {
        return st_fail(err, ST_CORRUPT, "the log beside it belongs to another store");
    }
    s->writable = s->writable && (!s->page || s->page_writable);
    return ST_OK;
}

static int write_new_h5(st_store *s, const st_options *o, uint8_t sb[H5_SUPERBLOCK_BYTES],
                        st_error *err)
{
    char *tmp = st_store_suffix(s->path, "-new");
    h5_io *io = NULL;
    h5_error e = {0};
    int fd, rc;
    if (!tmp) {
        return st_nomem(err);
    }
    st_unlink(tmp); // left by a process that died; we hold the writer lock
    rc = st_store_open_io(tmp, H5_IO_WRITE | H5_IO_CREATE | H5_IO_EXCL, &io, &fd, err);
    rc = rc ? rc : st_create_empty(io, s->schema, o, s->uuid, sb, err);
    if (!rc && io->sync(io, &e) != H5_OK) {
        rc = st_from_h5(err, &e, "syncing the new file");
    }
    rc = rc ? rc : st_rename(tmp, s->path, err);
    rc = rc ? rc : st_sync_dir(s->path, err);
    if (!rc) {
        rc = take_file(s, io, fd, err);
        s->writable = rc == ST_OK;
    } else {
        if (io) {
            io->close(io);
        }
        st_unlink(tmp);
    }
    h5_free(tmp);
    return rc;
}

/* With the writer lock of a fresh or stale log held and no .h5 there. */
static int fill_new(st_store *s, const st_create *create, st_error *err)
{
    st_options o;
    st_log_header h;
    uint8_t sb[H5_SUPERBLOCK_BYTES], page[ST_LOG_PAGE];
    uint64_t size = 0;
    h5_error e = {0};
    int rc = log_size(s, &size, err);
    if (!rc && size > ST_LOG_PAGE && s->log->read(s->log, 0, page, sizeof page, &e) == H5_OK &&
        st_log_load(page, &h, NULL) == ST_OK &&
        ST_MAX(h.committed_len, h.prepared_len) > ST_LOG_START) {
        return st_fail(err, ST_CORRUPT,
                       "the .h5 is gone, but the log beside it holds rows; restore the file, or "
                       "remove the log to start anew");
    }
    rc = rc ? rc : st_create_schema(create, &s->schema, &o, err);
    if (!rc && st_random(s->uuid, sizeof s->uuid)) {
        rc = st_fail(err, ST_IO, "no random numbers to be had from the system");
    }
    rc = rc ? rc : write_new_h5(s, &o, sb, err);
    return rc ? rc : write_log_header(s, 1, 0, sb, err);
}

static int make_store(st_store *s, const st_create *create, st_error *err)
{
    st_file_id id;
    int had_log = st_id_of_path(s->log_path, &id) == 1, rc, got, there;
    // What cannot succeed must leave nothing: arguments first.
    st_schema *probe = NULL;
    st_options o;
    ST_TRY(st_create_schema(create, &probe, &o, err));
    st_schema_free(probe);
    ST_TRY(open_log_file(s, H5_IO_WRITE | H5_IO_CREATE, err));
    got = lock_waiting(s->log_fd, ST_LOCK_WRITER, ST_LOCK_EXCLUSIVE, OPEN_WAIT_MS, err);
    if (got < 0) {
        drop_new_log(s, had_log);
        return err->code;
    }
    if (got == 0) {
        return st_fail(err, ST_BUSY, "another process is making this store");
    }
    there = st_id_of_path(s->path, &id) == 1;
    rc = was_removed(s, s->log_fd, err);
    if (!rc && !there) {
        rc = fill_new(s, create, err);
        if (rc) {
            st_unlink(s->path); // there was none: it is ours, renamed before the failure
        }
        if (rc && !had_log) {
            st_unlink(s->log_path);
        }
    }
    st_lock(s->log_fd, ST_LOCK_WRITER, ST_LOCK_FREE, NULL);
    if (there && !rc) {
        // Somebody made it while we waited.
        s->log->close(s->log);
        s->log = NULL;
        s->log_fd = -1;
        return open_existing(s, err);
    }
    return rc ? rc : attach_log(s, err);
}

/* ------------------------------------------------------------------------------------- registry */

/* Is path a file that we already have open? */
static st_store *find_open(const char *path, const char *log_path)
{
    st_file_id h5, log;
    int have_h5 = st_id_of_path(path, &h5) == 1, have_log = st_id_of_path(log_path, &log) == 1;
    for (st_store *s = registry; s; s = s->next) {
        const st_file_id *id = s->key_log ? &log : &h5;
        if ((s->key_log ? have_log : have_h5) && have_h5 && id->dev == s->key.dev &&
            id->ino == s->key.ino) {
            return s;
        }
    }
    return NULL;
}

static void set_key(st_store *s)
{
    s->key_log = s->log != NULL;
    st_id_of_fd(s->key_log ? s->log_fd : s->h5_fd, &s->key);
}

static int open_or_make(st_store *s, int flags, const st_create *create, st_error *err)
{
    st_file_id id;
    int may_make = (flags & (ST_OPEN_CREATE | ST_OPEN_READONLY)) == ST_OPEN_CREATE;
    if (st_id_of_path(s->path, &id) == 1) {
        ST_TRY(open_existing(s, err));
        return !s->log && s->writable && may_make ? st_store_make_log(s, err) : ST_OK;
    }
    return may_make ? make_store(s, create, err)
                    : st_fail(err, ST_NOTFOUND, "there is no such file");
}

static int open_store(const char *path, int flags, const st_create *create, st_store **out,
                      st_error *err)
{
    st_store *s;
    int rc, again;
    do {
        s = store_alloc(path);
        if (!s) {
            return st_nomem(err);
        }
        *out = find_open(s->path, s->log_path);
        if (*out) {
            store_free(s);
            return ST_OK;
        }
        rc = open_or_make(s, flags, create, err);
        again = rc && s->gone; // the path now is another file's, or nobody's
        if (rc) {
            store_free(s);
        }
    } while (again);
    if (rc) {
        return rc;
    }
    set_key(s);
    s->next = registry;
    registry = s;
    *out = s;
    return ST_OK;
}

static void fill_info(st_conn *c)
{
    const st_store *s = c->store;
    c->info.path = s->path;
    memcpy(c->info.uuid, s->uuid, 16);
    c->info.dim = s->schema->dim;
    c->info.metric = s->schema->metric;
    c->info.tokenizer = s->schema->tokenizer;
    c->info.fingerprint = s->schema->fingerprint;
    c->info.columns = s->schema->user;
    c->info.ncolumn = (size_t)s->schema->nuser;
    c->info.readonly = c->readonly;
}

static void drop_if_unused(st_store *s)
{
    if (!s->conns) {
        for (st_store **p = &registry; *p; p = &(*p)->next) {
            if (*p == s) {
                *p = s->next;
                break;
            }
        }
        store_free(s);
    }
}

static int new_conn(st_store *s, int flags, const st_host *host, st_conn **out, st_error *err)
{
    st_conn *c;
    int readonly = (flags & ST_OPEN_READONLY) || !s->writable;
    s->write_wanted |= !readonly;
    for (c = s->conns; c && host; c = c->next) {
        if (c->host == host) {
            c->refs++;
            c->readonly &= readonly;
            c->info.readonly = c->readonly;
            *out = c;
            return ST_OK;
        }
    }
    c = h5_calloc(1, sizeof *c);
    if (!c) {
        return st_nomem(err);
    }
    c->refs = 1;
    c->store = s;
    c->host = host;
    c->readonly = readonly;
    fill_info(c);
    pthread_mutex_lock(&s->lock);
    c->next = s->conns;
    s->conns = c;
    pthread_mutex_unlock(&s->lock);
    *out = c;
    return ST_OK;
}

int st_open(const char *path, int flags, const st_create *create, const st_host *host,
            st_conn **out, st_error *err)
{
    st_error local = {0, ""};
    st_store *s = NULL;
    char *real = NULL;
    int rc;
    *out = NULL;
    err = err ? err : &local;
    vec_init();
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    ST_TRY(st_real_path(path, &real, err));
    pthread_mutex_lock(&registry_lock);
    rc = open_store(real, flags, create, &s, err);
    if (!rc && (flags & ST_OPEN_CREATE)) {
        rc = st_create_check(s, create, err);
    }
    rc = rc ? rc : new_conn(s, flags, host, out, err);
    if (rc && s) {
        drop_if_unused(s);
    }
    pthread_mutex_unlock(&registry_lock);
    h5_free(real);
    return rc;
}

/* The last user of all processes folds the log, if nothing is in the way. */
static void last_flush(st_store *s)
{
    st_log_header h;
    st_error e = {0, ""};
    if (!s->write_wanted || !s->page ||
        st_lock(s->log_fd, ST_LOCK_USERS, ST_LOCK_EXCLUSIVE, NULL) != 1) {
        return;
    }
    if (st_lock(s->log_fd, ST_LOCK_WRITER, ST_LOCK_EXCLUSIVE, NULL) == 1) {
        // Without a host nothing can be decided: a transaction in doubt makes mend fail, and the
        // log simply stays.
        if (st_log_load(s->page, &h, &e) == ST_OK &&
            st_snapshot_mend(s, NULL, NULL, &h, &e) == ST_OK) {
            uint64_t rows;
            if (st_flush_locked(s, &rows, &e) == ST_OK) {
                s->log->truncate(s->log, ST_LOG_PAGE, NULL); // idle, it is its header
            }
        }
        st_lock(s->log_fd, ST_LOCK_WRITER, ST_LOCK_FREE, NULL);
    }
    st_lock(s->log_fd, ST_LOCK_USERS, ST_LOCK_SHARED, NULL);
}

void st_close(st_conn *c)
{
    st_store *s;
    if (!c || st_inherited(c->store)) {
        return;
    }
    pthread_mutex_lock(&registry_lock);
    if (--c->refs) {
        pthread_mutex_unlock(&registry_lock);
        return;
    }
    s = c->store;
    st_rollback(c);
    st_conn_drop_frozen(c);
    st_conn_sweep(c);
    st_gen_unref(c->gen);
    pthread_mutex_lock(&s->lock);
    for (st_conn **p = &s->conns; *p; p = &(*p)->next) {
        if (*p == c) {
            *p = c->next;
            break;
        }
    }
    pthread_mutex_unlock(&s->lock);
    h5_free(c->garbage);
    h5_free(c->garbage_small);
    st_txn_free(c);
    h5_free(c);
    if (!s->conns) {
        last_flush(s);
    }
    drop_if_unused(s);
    pthread_mutex_unlock(&registry_lock);
}

const st_info *st_conn_info(const st_conn *c)
{
    return &c->info;
}

int st_conn_columns(const st_conn *c)
{
    return c->store->schema->ncol;
}

int st_column_heavy(const st_conn *c, int col)
{
    return c->store->schema->small_of[col] < 0;
}

/* ----------------------------------------------------------------------------------- destroying */

/* Everybody else is kept out from here until the store is freed: users by the log's locks, readers
** without a log and other programs by the lock on the .h5. */
static int keep_out(st_store *s, st_error *err)
{
    int got;
    if (!s->writable) {
        return st_fail(err, ST_READONLY, "the file or its folder is read-only");
    }
    if (!s->log) {
        ST_TRY(st_store_make_log(s, err));
    }
    got = st_lock(s->log_fd, ST_LOCK_USERS, ST_LOCK_EXCLUSIVE, err);
    got = got == 1 ? st_lock(s->log_fd, ST_LOCK_WRITER, ST_LOCK_EXCLUSIVE, err) : got;
    if (got <= 0) {
        return got ? err->code : st_fail(err, ST_BUSY, "another process has it open");
    }
    if (s->h5_fd >= 0 && !st_lock_h5_alone(s->h5_fd)) {
        return st_fail(err, ST_BUSY, "another program has it open");
    }
    return ST_OK;
}

/* The .h5 is gone and the log is there: a destroy that died, whose work is done here. */
static int take_lone_log(st_store *s, st_error *err)
{
    st_file_id id;
    st_log_header h;
    uint64_t size = 0;
    if (st_id_of_path(s->log_path, &id) != 1) {
        return st_fail(err, ST_NOTFOUND, "there is no such file");
    }
    ST_TRY(open_log_file(s, H5_IO_WRITE, err));
    s->writable = s->page_writable;
    ST_TRY(log_size(s, &size, err));
    if (size < ST_LOG_PAGE) {
        return st_fail(err, ST_NOT_A_STORE, "there is no such file, and no log of it");
    }
    ST_TRY(attach_log(s, err));
    return st_log_load(s->page, &h, err);
}

/* The .h5 first: without it nobody takes the log for a store, and a second call takes the log. */
static int remove_files(st_store *s, st_error *err)
{
    static const char *const suffixes[] = {"", "-new", "-wal"};
    st_file_id id;
    for (int i = 0; i < 3; i++) {
        char *path = st_store_suffix(s->path, suffixes[i]);
        if (!path) {
            return st_nomem(err);
        }
        st_unlink(path);
        int there = st_id_of_path(path, &id);
        h5_free(path);
        if (there) {
            return st_fail(err, ST_IO, "the file%s cannot be removed from its folder", suffixes[i]);
        }
    }
    return st_sync_dir(s->path, err);
}

static int destroy(const char *real, st_error *err)
{
    st_file_id id;
    st_store *s = store_alloc(real);
    int rc;
    if (!s) {
        return st_nomem(err);
    }
    if (find_open(s->path, s->log_path)) {
        rc = st_fail(err, ST_BUSY, "this process has it open");
    } else {
        rc = st_id_of_path(s->path, &id) == 1 ? open_existing(s, err) : take_lone_log(s, err);
        rc = rc ? rc : keep_out(s, err);
        rc = rc ? rc : remove_files(s, err);
    }
    store_free(s);
    return rc;
}

int st_destroy(const char *path, st_error *err)
{
    st_error local = {0, ""};
    char *real = NULL;
    int rc;
    err = err ? err : &local;
    vec_init();
    ST_TRY(st_real_path(path, &real, err));
    pthread_mutex_lock(&registry_lock);
    rc = destroy(real, err);
    pthread_mutex_unlock(&registry_lock);
    h5_free(real);
    return rc;
}
