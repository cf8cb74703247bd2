/*
 * t_disk.c - the layer of t_disk.h, over one t_io a file
 *
 * SPDX-License-Identifier: MIT
 */
#include "t_disk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "t_io.h"

typedef struct disk_file {
    h5_io io;
    t_io *t;
    char path[128];
    struct disk_file *next;
} disk_file;

t_disk_state t_disk;
static disk_file *files;

static int refuse(h5_error *err, int code, int os_errno)
{
    if (err && err->code == H5_OK) {
        err->code = code;
        err->os_errno = os_errno;
        err->offset = H5_UNDEF;
        snprintf(err->text, sizeof err->text, "injected failure");
    }
    return code;
}

static void moment(void)
{
    if (t_disk.moment)
        t_disk.moment(t_disk.ctx);
}

/* Counts an operation; 1 when it is to fail. */
static int strikes(int writes)
{
    t_disk.count++;
    if (!t_disk.fail_at || t_disk.count < t_disk.fail_at)
        return 0;
    if (t_disk.mode == T_DISK_FULL)
        return writes;
    return t_disk.count == t_disk.fail_at || t_disk.mode == T_DISK_DEAD;
}

static h5_io *inner(h5_io *io)
{
    return &((disk_file *)io)->t->io;
}

static int disk_size(h5_io *io, uint64_t *out, h5_error *err)
{
    return inner(io)->size(inner(io), out, err);
}

static int disk_read(h5_io *io, uint64_t off, void *buf, size_t n, h5_error *err)
{
    if (strikes(0)) {
        memset(buf, 0x5a, n / 2);
        return refuse(err, H5_IO, EIO);
    }
    return inner(io)->read(inner(io), off, buf, n, err);
}

static int disk_write(h5_io *io, uint64_t off, const void *buf, size_t n, h5_error *err)
{
    int bad = strikes(1), rc = H5_OK;
    moment();
    if (!bad && t_disk.room && off + n > t_disk.room) {
        if (off < t_disk.room)
            inner(io)->write(inner(io), off, buf, (size_t)(t_disk.room - off), err);
        return refuse(err, H5_IO, ENOSPC);
    }
    if (n > 1 && (!bad || t_disk.mode == T_DISK_SHORT || t_disk.mode == T_DISK_FULL)) {
        rc = inner(io)->write(inner(io), off, buf, n / 2, err);
        moment();
    }
    if (bad)
        return refuse(err, H5_IO, t_disk.mode == T_DISK_FULL ? ENOSPC : EIO);
    if (rc == H5_OK)
        rc = inner(io)->write(inner(io), off, buf, n, err);
    moment();
    return rc;
}

static int disk_sync(h5_io *io, h5_error *err)
{
    int rc;
    if (strikes(0))
        return refuse(err, H5_IO, EIO);
    moment();
    rc = inner(io)->sync(inner(io), err);
    moment();
    return rc;
}

static int disk_truncate(h5_io *io, uint64_t size, h5_error *err)
{
    uint64_t now = 0;
    int rc;
    inner(io)->size(inner(io), &now, NULL);
    if (strikes(size > now))
        return refuse(err, H5_IO, t_disk.mode == T_DISK_FULL ? ENOSPC : EIO);
    moment();
    rc = inner(io)->truncate(inner(io), size, err);
    moment();
    return rc;
}

static int disk_map(h5_io *io, uint64_t off, size_t n, const void **out, h5_error *err)
{
    return inner(io)->map(inner(io), off, n, out, err);
}

static void disk_unmap(h5_io *io, const void *p, size_t n)
{
    inner(io)->unmap(inner(io), p, n);
}

static void disk_close(h5_io *io)
{
    disk_file **at = &files;
    inner(io)->close(inner(io));
    while (*at != (disk_file *)io)
        at = &(*at)->next;
    *at = (*at)->next;
    free(io);
}

static h5_io *wrap(h5_io *io, const char *path)
{
    static const h5_io table = {disk_size,     disk_read, disk_write, disk_sync,
                                disk_truncate, disk_map,  disk_unmap, disk_close};
    disk_file *f = calloc(1, sizeof *f);
    if (!f) {
        fprintf(stderr, "t_disk: no memory\n");
        exit(2);
    }
    f->io = table;
    f->t = t_io_new(io);
    snprintf(f->path, sizeof f->path, "%s", path);
    f->next = files;
    files = f;
    return &f->io;
}

void t_disk_on(void)
{
    memset(&t_disk, 0, sizeof t_disk);
    st_test_wrap_io = wrap;
}

void t_disk_off(void)
{
    memset(&t_disk, 0, sizeof t_disk);
    st_test_wrap_io = NULL;
    assert_null(files);
}

/* The log's page as the disk may hold it: sectors up to some point as they are, the rest as of the
** last sync, or the other way round. */
static void tear_page(unsigned char *bytes, const unsigned char *now, t_rng *r)
{
    size_t at = (size_t)t_rng_below(r, ST_LOG_PAGE / 512 + 1) * 512;
    if (t_rng_below(r, 2))
        memcpy(bytes, now, at);
    else
        memcpy(bytes + at, now + at, ST_LOG_PAGE - at);
}

unsigned char *t_disk_crash(const char *path, t_rng *r, size_t *n)
{
    for (disk_file *f = files; f; f = f->next) {
        unsigned char *bytes, page[ST_LOG_PAGE];
        size_t same = strlen(path);
        // A new store is opened under another name and renamed.
        if (strncmp(f->path, path, same) != 0 || (f->path[same] && strcmp(f->path + same, "-new")))
            continue;
        bytes = t_io_crash(f->t, r, n);
        if (strstr(path, "-wal") && *n >= sizeof page &&
            f->t->inner->read(f->t->inner, 0, page, sizeof page, NULL) == H5_OK)
            tear_page(bytes, page, r);
        return bytes;
    }
    *n = 0;
    return NULL;
}
