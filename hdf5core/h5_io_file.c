/*
 * h5_io_file.c - a file of the operating system behind h5_io; the only system calls of hdf5core
 *
 * Whole reads and writes are made of as many pread and pwrite calls as it takes: interrupted calls
 * are repeated, short counts continued. Only regular files are opened, so that a path to a FIFO or
 * a device can neither block nor do anything.
 *
 * OWNERSHIP  the descriptor belongs to the io and is closed with it.
 * ERRORS     H5_IO with errno; H5_FORMAT when a read meets the end of the file; H5_MISUSE for a bad
 *            mapping request.
 * THREADS    read, map and size may be called by several threads at once; the rest by one.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef _GNU_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#ifndef _FILE_OFFSET_BITS
#define _FILE_OFFSET_BITS 64
#endif
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "h5_file.h"

typedef struct file_io {
    h5_io io;
    int fd;
} file_io;

/* Linux moves at most 2 GiB minus a page in one call; less keeps every count inside ssize_t
** everywhere. */
enum { CALL_MAX = 1 << 30 };

/* File offsets are signed in the system's interface. */
static const uint64_t offset_max = INT64_MAX;

static int file_size(h5_io *io, uint64_t *out, h5_error *err)
{
    struct stat st;
    *out = 0;
    if (fstat(((file_io *)io)->fd, &st) != 0)
        return h5_fail(err, H5_IO, H5_UNDEF, "size of the file: %s", strerror(errno));
    *out = (uint64_t)st.st_size;
    return H5_OK;
}

static int file_read(h5_io *io, uint64_t off, void *buf, size_t n, h5_error *err)
{
    uint8_t *p = buf;
    if (off > offset_max || n > offset_max - off)
        return h5_fail(err, H5_FORMAT, off, "read of %zu bytes at %" PRIu64 ": no such offset", n,
                       off);
    while (n > 0) {
        ssize_t got = pread(((file_io *)io)->fd, p, n < CALL_MAX ? n : CALL_MAX, (off_t)off);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return h5_fail(err, H5_IO, off, "read of %zu bytes at %" PRIu64 ": %s", n, off,
                           strerror(errno));
        if (got == 0)
            return h5_fail(err, H5_FORMAT, off, "the file ends at %" PRIu64 ", %zu bytes early",
                           off, n);
        p += got;
        off += (uint64_t)got;
        n -= (size_t)got;
    }
    return H5_OK;
}

static int file_write(h5_io *io, uint64_t off, const void *buf, size_t n, h5_error *err)
{
    const uint8_t *p = buf;
    if (off > offset_max || n > offset_max - off)
        return h5_fail(err, H5_MISUSE, off, "write of %zu bytes at %" PRIu64 ": no such offset", n,
                       off);
    while (n > 0) {
        ssize_t put = pwrite(((file_io *)io)->fd, p, n < CALL_MAX ? n : CALL_MAX, (off_t)off);
        if (put < 0 && errno == EINTR)
            continue;
        if (put == 0)
            errno = ENOSPC; // not a result that POSIX allows here; without this it would loop
        if (put <= 0)
            return h5_fail(err, H5_IO, off, "write of %zu bytes at %" PRIu64 ": %s", n, off,
                           strerror(errno));
        p += put;
        off += (uint64_t)put;
        n -= (size_t)put;
    }
    return H5_OK;
}

static int sync_fd(int fd)
{
#if defined(__APPLE__)
    // fsync there leaves the bytes in the drive's cache.
    if (fcntl(fd, F_FULLFSYNC) == 0)
        return 0;
    return fsync(fd);
#else
    return fdatasync(fd);
#endif
}

static int file_sync(h5_io *io, h5_error *err)
{
    int rc;
    do
        rc = sync_fd(((file_io *)io)->fd);
    while (rc != 0 && errno == EINTR);
    if (rc != 0)
        return h5_fail(err, H5_IO, H5_UNDEF, "sync: %s", strerror(errno));
    return H5_OK;
}

static int file_truncate(h5_io *io, uint64_t size, h5_error *err)
{
    int rc;
    if (size > offset_max)
        return h5_fail(err, H5_MISUSE, size, "file size %" PRIu64 ": no such offset", size);
    do
        rc = ftruncate(((file_io *)io)->fd, (off_t)size);
    while (rc != 0 && errno == EINTR);
    if (rc != 0)
        return h5_fail(err, H5_IO, size, "setting the size to %" PRIu64 ": %s", size,
                       strerror(errno));
    return H5_OK;
}

static int file_map(h5_io *io, uint64_t off, size_t n, const void **out, h5_error *err)
{
    uint64_t size;
    *out = NULL;
    H5_TRY(file_size(io, &size, err));
    if (n == 0 || off % H5_MAP_ALIGN != 0 || off > size || n > size - off)
        return h5_fail(err, H5_MISUSE, off,
                       "mapping of %zu bytes at %" PRIu64 " of a file of %" PRIu64, n, off, size);
    void *p = mmap(NULL, n, PROT_READ, MAP_SHARED, ((file_io *)io)->fd, (off_t)off);
    if (p == MAP_FAILED)
        return h5_fail(err, H5_IO, off, "mapping of %zu bytes at %" PRIu64 ": %s", n, off,
                       strerror(errno));
    *out = p;
    return H5_OK;
}

static void file_unmap(h5_io *io, const void *p, size_t n)
{
    (void)io;
    munmap((void *)(uintptr_t)p, n);
}

static void file_close(h5_io *io)
{
    // A failing close has nothing left to lose: what must be safe was synced.
    close(((file_io *)io)->fd);
    h5_free(io);
}

static const h5_io file_table = {file_size,     file_read, file_write, file_sync,
                                 file_truncate, file_map,  file_unmap, file_close};

/* Opens without blocking and without becoming anybody's terminal, and keeps only a regular file. */
static int open_regular(const char *path, int flags, int *fd, uint64_t *size, h5_error *err)
{
    int how = O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (flags & H5_IO_WRITE ? O_RDWR : O_RDONLY);
    if (flags & H5_IO_CREATE)
        how |= O_CREAT;
    if (flags & H5_IO_EXCL)
        how |= O_EXCL;
    do
        *fd = open(path, how, 0666);
    while (*fd < 0 && errno == EINTR);
    if (*fd < 0)
        return h5_fail(err, H5_IO, H5_UNDEF, "%s: %s", path, strerror(errno));
    struct stat st;
    if (fstat(*fd, &st) != 0) {
        h5_fail(err, H5_IO, H5_UNDEF, "%s: %s", path, strerror(errno));
    } else if (!S_ISREG(st.st_mode)) {
        errno = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
        h5_fail(err, H5_IO, H5_UNDEF, "%s: not a regular file", path);
    } else {
        *size = (uint64_t)st.st_size;
        return H5_OK; // O_NONBLOCK stays; it means nothing for a regular file
    }
    close(*fd);
    *fd = -1;
    return H5_IO;
}

int h5_io_file(const char *path, int flags, h5_io **out, h5_error *err)
{
    uint64_t size;
    return h5_io_file_sized(path, flags, out, &size, err);
}

int h5_io_file_sized(const char *path, int flags, h5_io **out, uint64_t *size, h5_error *err)
{
    *out = NULL;
    *size = 0;
    if (!path || (flags & H5_IO_CREATE && !(flags & H5_IO_WRITE)) ||
        (flags & H5_IO_EXCL && !(flags & H5_IO_CREATE)))
        return h5_fail(err, H5_MISUSE, H5_UNDEF, "opening a file: flags %d", flags);
    file_io *f = h5_malloc(sizeof *f);
    if (!f)
        return h5_fail_nomem(err, "an open file");
    f->io = file_table;
    int rc = open_regular(path, flags, &f->fd, size, err);
    if (rc != H5_OK) {
        h5_free(f);
        return rc;
    }
    *out = &f->io;
    return H5_OK;
}

int h5_io_fd(const h5_io *io)
{
    return io->read == file_read ? ((const file_io *)io)->fd : -1;
}
