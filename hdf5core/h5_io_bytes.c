/*
 * h5_io_bytes.c - bytes that are in memory already behind h5_io: the caller's, or a mapped file
 *
 * Nothing is copied. Bytes that cannot change (the caller's, by contract) are also parsed where
 * they lie; a mapped file may be changed by others between a check and a use, so of it only raw
 * data are handed out in place (h5_dataset_view).
 *
 * OWNERSHIP  a mapping is undone by close; the caller's bytes stay the caller's.
 * ERRORS     H5_FORMAT for a read beyond the end, H5_MISUSE for writing, H5_IO as h5_io_file
 * THREADS    any number may read at once
 * TESTS      t_h5_io.c, t_h5_dataset.c
 *
 * SPDX-License-Identifier: MIT
 */
#include <inttypes.h>

#include "h5_file.h"

typedef struct bytes_io {
    h5_io io;
    const uint8_t *p;
    uint64_t n;
    h5_io *mapped; /* the file that p maps; NULL: the caller's bytes */
} bytes_io;

static int bytes_size(h5_io *io, uint64_t *out, h5_error *err)
{
    (void)err;
    *out = ((bytes_io *)io)->n;
    return H5_OK;
}

static int bytes_read(h5_io *io, uint64_t off, void *buf, size_t n, h5_error *err)
{
    const bytes_io *b = (bytes_io *)io;
    if (off > b->n || n > b->n - off)
        return h5_fail(err, H5_FORMAT, off,
                       "the file ends at %" PRIu64 ", within %zu bytes at %" PRIu64, b->n, n, off);
    if (n)
        memcpy(buf, b->p + off, n);
    return H5_OK;
}

static int read_only(h5_error *err)
{
    return h5_fail(err, H5_MISUSE, H5_UNDEF, "bytes in memory are only read");
}

static int bytes_write(h5_io *io, uint64_t off, const void *buf, size_t n, h5_error *err)
{
    (void)io;
    (void)off;
    (void)buf;
    (void)n;
    return read_only(err);
}

static int bytes_sync(h5_io *io, h5_error *err)
{
    (void)io;
    return read_only(err);
}

static int bytes_truncate(h5_io *io, uint64_t size, h5_error *err)
{
    (void)io;
    (void)size;
    return read_only(err);
}

static int bytes_map(h5_io *io, uint64_t off, size_t n, const void **out, h5_error *err)
{
    const bytes_io *b = (bytes_io *)io;
    *out = NULL;
    if (n == 0 || off % H5_MAP_ALIGN != 0 || off > b->n || n > b->n - off)
        return h5_fail(err, H5_MISUSE, off,
                       "mapping of %zu bytes at %" PRIu64 " of a file of %" PRIu64, n, off, b->n);
    *out = b->p + off;
    return H5_OK;
}

static void bytes_unmap(h5_io *io, const void *p, size_t n)
{
    (void)io;
    (void)p;
    (void)n;
}

static void bytes_close(h5_io *io)
{
    bytes_io *b = (bytes_io *)io;
    if (b->mapped) {
        if (b->n)
            b->mapped->unmap(b->mapped, b->p, (size_t)b->n);
        b->mapped->close(b->mapped);
    }
    h5_free(b);
}

static const h5_io bytes_table = {bytes_size,     bytes_read, bytes_write, bytes_sync,
                                  bytes_truncate, bytes_map,  bytes_unmap, bytes_close};

int h5_io_bytes(const void *p, size_t n, h5_io **out, h5_error *err)
{
    bytes_io *b = h5_malloc(sizeof *b);
    *out = NULL;
    if (!b)
        return h5_fail_nomem(err, "a file in memory");
    *b = (bytes_io){bytes_table, p, n, NULL};
    *out = &b->io;
    return H5_OK;
}

int h5_io_mapped(const char *path, h5_io **out, h5_error *err)
{
    h5_io *file;
    uint64_t n;
    const void *p = NULL;
    *out = NULL;
    H5_TRY(h5_io_file(path, H5_IO_READ, &file, err));
    int rc = file->size(file, &n, err);
    if (rc == H5_OK && n > SIZE_MAX)
        rc = h5_fail(err, H5_LIMIT, H5_UNDEF, "mapping of %" PRIu64 " bytes", n);
    if (rc == H5_OK && n > 0)
        rc = file->map(file, 0, (size_t)n, &p, err);
    bytes_io *b = rc == H5_OK ? h5_malloc(sizeof *b) : NULL;
    if (!b) {
        if (p)
            file->unmap(file, p, (size_t)n);
        file->close(file);
        return rc == H5_OK ? h5_fail_nomem(err, "a mapped file") : rc;
    }
    *b = (bytes_io){bytes_table, p, n, file};
    *out = &b->io;
    return H5_OK;
}

const uint8_t *h5_io_in_place(const h5_io *io, int *constant)
{
    const bytes_io *b = (const bytes_io *)io;
    int is = io->read == bytes_read;
    *constant = is && !b->mapped;
    return is ? b->p : NULL;
}
