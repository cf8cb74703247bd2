/*
 * sql_door_file.c - text files in and out, for the formats of sql_door.h.
 *
 * Writing: into a new file beside the target, synced, then renamed over it, so that a file is there
 * whole or as it was. What may give way is a regular, writable file that is text: one without a NUL
 * in its first 4 KiB. A database or a store has one there, so a slip of the pen destroys none.
 *
 * A relative path is relative to the working folder. A symbolic link stays and its target changes.
 *
 * SPDX-License-Identifier: MIT
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sql_door.h"

enum { BUFFER = 1 << 18, HEAD = 4096 };

/* -------------------------------------------------------------------------------------- writing */

// May the file that is there be replaced? real: what its name leads to.
static int check_old(sql_door *d, const char *path, int replace, char real[PATH_MAX])
{
    struct stat st;
    char head[HEAD];
    h5_io *io;
    h5_error e = {0};
    uint64_t size = 0;
    *real = 0;
    if (stat(path, &st) != 0) {
        return lstat(path, &st) != 0
                   ? SQLITE_OK
                   : sql_door_fail(d, SQLITE_CANTOPEN, "a symbolic link that leads nowhere");
    }
    if (!S_ISREG(st.st_mode)) {
        return sql_door_fail(d, SQLITE_CANTOPEN, "not a regular file");
    }
    if (!replace) {
        return sql_door_fail(d, SQLITE_CANTOPEN, "is there already; this format writes a new file");
    }
    if (access(path, W_OK) != 0) {
        return sql_door_fail(d, SQLITE_CANTOPEN, "%s", strerror(errno));
    }
    if (h5_io_file(path, H5_IO_READ, &io, &e) != H5_OK) {
        return sql_door_fail_h5(d, &e);
    }
    int bad = io->size(io, &size, &e) != H5_OK;
    size_t n = size < HEAD ? (size_t)size : HEAD;
    bad = bad || (n > 0 && io->read(io, 0, head, n, &e) != H5_OK);
    io->close(io);
    if (bad) {
        return sql_door_fail_h5(d, &e);
    }
    if (memchr(head, 0, n)) {
        return sql_door_fail(d, SQLITE_CANTOPEN,
                             "is there already and is no text; a database or "
                             "store is not replaced");
    }
    return realpath(path, real) ? SQLITE_OK
                                : sql_door_fail(d, SQLITE_CANTOPEN, "%s", strerror(errno));
}

int sql_out_open(sql_door *d, const char *path, int replace, sql_out *out)
{
    char real[PATH_MAX];
    unsigned serial;
    h5_error e = {0};
    memset(out, 0, sizeof *out);
    out->d = d;
    int rc = check_old(d, path, replace, real);
    if (rc != SQLITE_OK) {
        return rc;
    }
    sqlite3_randomness(sizeof serial, &serial);
    out->path = sqlite3_mprintf("%s", *real ? real : path);
    out->tmp = sqlite3_mprintf("%s-new-%08x", *real ? real : path, serial);
    out->buf = sqlite3_malloc64(BUFFER);
    if (!out->path || !out->tmp || !out->buf) {
        rc = SQLITE_NOMEM;
    } else if (h5_io_file(out->tmp, H5_IO_WRITE | H5_IO_CREATE | H5_IO_EXCL, &out->io, &e) !=
               H5_OK) {
        out->io = NULL;
        rc = sql_door_fail(d, SQLITE_CANTOPEN, "%s", strerror(e.os_errno));
    }
    return rc == SQLITE_OK ? rc : sql_out_close(out, rc);
}

static int drain(sql_out *o)
{
    h5_error e = {0};
    if (o->n > 0 && o->io->write(o->io, o->at, o->buf, o->n, &e) != H5_OK) {
        return sql_door_fail_h5(o->d, &e);
    }
    o->at += o->n;
    o->n = 0;
    return SQLITE_OK;
}

int sql_out_put(sql_out *o, const void *p, size_t n)
{
    const uint8_t *from = p;
    while (n > 0) {
        size_t k = BUFFER - o->n < n ? BUFFER - o->n : n;
        memcpy(o->buf + o->n, from, k);
        o->n += k;
        from += k;
        n -= k;
        int rc = o->n == BUFFER ? drain(o) : SQLITE_OK;
        if (rc != SQLITE_OK) {
            return rc;
        }
    }
    return SQLITE_OK;
}

int sql_out_text(sql_out *o, const char *s)
{
    return sql_out_put(o, s, strlen(s));
}

// So that the new name survives a power failure; a system that cannot do it says so and is not
// asked again.
static void sync_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? sqlite3_mprintf("%.*s", (int)(slash - path + 1), path)
                         : sqlite3_mprintf(".");
    int fd = folder ? open(folder, O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
    sqlite3_free(folder);
}

int sql_out_close(sql_out *o, int rc)
{
    h5_error e = {0};
    int made = o->io != NULL;
    rc = rc == SQLITE_OK ? drain(o) : rc;
    if (rc == SQLITE_OK && o->io->sync(o->io, &e) != H5_OK) {
        rc = sql_door_fail_h5(o->d, &e);
    }
    if (made) {
        o->io->close(o->io);
    }
    if (rc == SQLITE_OK && rename(o->tmp, o->path) != 0) {
        rc = sql_door_fail(o->d, SQLITE_IOERR, "%s", strerror(errno));
    }
    if (rc == SQLITE_OK) {
        sync_folder(o->path);
    } else if (made) {
        unlink(o->tmp);
    }
    sqlite3_free(o->path);
    sqlite3_free(o->tmp);
    sqlite3_free(o->buf);
    memset(o, 0, sizeof *o);
    return rc;
}

/* -------------------------------------------------------------------------------------- reading */

static int open_in(sql_door *d, const char *path, h5_io **io, uint64_t *size)
{
    h5_error e = {0};
    if (h5_io_file(path, H5_IO_READ, io, &e) != H5_OK) {
        return sql_door_fail_open(d, path, &e);
    }
    if ((*io)->size(*io, size, &e) != H5_OK) {
        (*io)->close(*io);
        return sql_door_fail_h5(d, &e);
    }
    return SQLITE_OK;
}

int sql_in_open(sql_door *d, const char *path, sql_in *in)
{
    memset(in, 0, sizeof *in);
    in->d = d;
    int rc = open_in(d, path, &in->io, &in->size);
    in->io = rc == SQLITE_OK ? in->io : NULL;
    return rc;
}

void sql_in_close(sql_in *in)
{
    if (in->io) {
        in->io->close(in->io);
    }
    sqlite3_free(in->buf);
    memset(in, 0, sizeof *in);
}

// More bytes behind those that are there; the line at pos moves to the front.
static int fill(sql_in *in)
{
    h5_error e = {0};
    if (in->pos > 0) {
        memmove(in->buf, in->buf + in->pos, in->n - in->pos);
        in->n -= in->pos;
        in->pos = 0;
    }
    if (in->n == in->room) {
        size_t room = in->room ? in->room * 2 : BUFFER;
        if (in->n >= SQL_LINE_MAX) {
            return sql_door_fail(in->d, SQLITE_TOOBIG, "longer than %lld bytes",
                                 (long long)SQL_LINE_MAX);
        }
        char *more = sqlite3_realloc64(in->buf, room);
        if (!more) {
            return SQLITE_NOMEM;
        }
        in->buf = more;
        in->room = room;
    }
    size_t k = in->room - in->n;
    k = in->size - in->at < k ? (size_t)(in->size - in->at) : k;
    if (in->io->read(in->io, in->at, in->buf + in->n, k, &e) != H5_OK) {
        return sql_door_fail_h5(in->d, &e);
    }
    in->at += k;
    in->n += k;
    return SQLITE_OK;
}

int sql_in_line(sql_in *in, char **p, size_t *n)
{
    size_t looked = in->pos;
    in->d->line++;
    *p = NULL;
    *n = 0;
    for (;;) {
        char *nl = in->n > looked ? memchr(in->buf + looked, '\n', in->n - looked) : NULL;
        if (nl || (in->at == in->size && in->n > in->pos)) {
            *p = in->buf + in->pos;
            *n = nl ? (size_t)(nl - *p) : in->n - in->pos;
            in->pos += *n + (nl != NULL);
            return SQLITE_OK;
        }
        if (in->at == in->size) {
            return SQLITE_OK;
        }
        looked = in->n - in->pos;
        int rc = fill(in);
        if (rc != SQLITE_OK) {
            return rc;
        }
    }
}

int sql_in_load(sql_door *d, const char *path, size_t most, char **p, size_t *n, double *modified)
{
    h5_io *io;
    uint64_t size;
    h5_error e = {0};
    struct stat st;
    *p = NULL;
    *n = 0;
    int rc = open_in(d, path, &io, &size);
    if (rc != SQLITE_OK) {
        return rc;
    }
    if (size > most) {
        rc = sql_door_fail(d, SQLITE_TOOBIG, "has %lld bytes; at most %lld are read",
                           (long long)size, (long long)most);
    } else if (!(*p = sqlite3_malloc64(size + 1))) {
        rc = SQLITE_NOMEM;
    } else if (size > 0 && io->read(io, 0, *p, (size_t)size, &e) != H5_OK) {
        rc = sql_door_fail_h5(d, &e);
    }
    if (modified) {
        *modified = fstat(h5_io_fd(io), &st) == 0 ? (double)st.st_mtime : sql_now();
    }
    io->close(io);
    if (rc == SQLITE_OK) {
        (*p)[size] = 0;
        *n = (size_t)size;
    } else {
        sqlite3_free(*p);
        *p = NULL;
    }
    return rc;
}
