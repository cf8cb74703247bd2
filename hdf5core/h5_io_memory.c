/*
 * h5_io_memory.c - a growing buffer in memory behind h5_io
 *
 * The file is one buffer that doubles. A mapping is a plain pointer into it; when the file outgrows
 * a buffer that is still mapped, the old one lives on until its last unmap and every write goes to
 * all living ones, so that a mapping shows later writes as a mapped file does.
 *
 * OWNERSHIP  buffers belong to the io; close frees all of them.
 * ERRORS     H5_NOMEM on growth, H5_FORMAT for a read beyond the end, H5_MISUSE for a bad mapping
 *            request.
 *
 * SPDX-License-Identifier: MIT
 */
#include <inttypes.h>

#include "h5_file.h"

typedef struct span {
    struct span *older;
    size_t cap;
    size_t maps; /* mappings into this buffer that are not yet undone */
    uint8_t bytes[];
} span;

typedef struct memory_io {
    h5_io io;
    uint64_t size;
    span *newest; /* its cap is at least size */
} memory_io;

static int memory_size(h5_io *io, uint64_t *out, h5_error *err)
{
    (void)err;
    *out = ((memory_io *)io)->size;
    return H5_OK;
}

static int memory_read(h5_io *io, uint64_t off, void *buf, size_t n, h5_error *err)
{
    memory_io *m = (memory_io *)io;
    if (off > m->size || n > m->size - off)
        return h5_fail(err, H5_FORMAT, off,
                       "the file ends at %" PRIu64 ", within %zu bytes at %" PRIu64, m->size, n,
                       off);
    if (n)
        memcpy(buf, m->newest->bytes + off, n);
    return H5_OK;
}

/* Makes the newest buffer hold at least `size` bytes; keeps the old one while it is mapped. */
static int reserve(memory_io *m, uint64_t size, h5_error *err)
{
    span *old = m->newest;
    if (size <= old->cap)
        return H5_OK;
    uint64_t cap = (uint64_t)old->cap * 2 > size ? (uint64_t)old->cap * 2 : size;
    span *s = cap < SIZE_MAX / 2 ? h5_malloc(sizeof *s + (size_t)cap) : NULL;
    if (!s)
        return h5_fail(err, H5_NOMEM, H5_UNDEF, "out of memory for a file of %" PRIu64 " bytes",
                       size);
    s->older = old;
    s->cap = (size_t)cap;
    s->maps = 0;
    memcpy(s->bytes, old->bytes, (size_t)m->size);
    m->newest = s;
    if (old->maps == 0) {
        s->older = old->older;
        h5_free(old);
    }
    return H5_OK;
}

/* Sets the size; bytes that come into being are zero in every living buffer. */
static int memory_truncate(h5_io *io, uint64_t size, h5_error *err)
{
    memory_io *m = (memory_io *)io;
    H5_TRY(reserve(m, size, err));
    for (span *s = m->newest; s; s = s->older)
        if (size > m->size && s->cap > m->size)
            memset(s->bytes + m->size, 0, (size_t)((size < s->cap ? size : s->cap) - m->size));
    m->size = size;
    return H5_OK;
}

static int memory_write(h5_io *io, uint64_t off, const void *buf, size_t n, h5_error *err)
{
    memory_io *m = (memory_io *)io;
    uint64_t end;
    if (!h5_add_fits(off, n, &end))
        return h5_fail(err, H5_MISUSE, off, "write of %zu bytes at %" PRIu64 ": no such offset", n,
                       off);
    if (n == 0)
        return H5_OK;
    if (end > m->size)
        H5_TRY(memory_truncate(io, end, err));
    for (span *s = m->newest; s; s = s->older)
        if (off < s->cap)
            memcpy(s->bytes + off, buf, n < s->cap - off ? n : (size_t)(s->cap - off));
    return H5_OK;
}

static int memory_sync(h5_io *io, h5_error *err)
{
    (void)io;
    (void)err;
    return H5_OK;
}

static int memory_map(h5_io *io, uint64_t off, size_t n, const void **out, h5_error *err)
{
    memory_io *m = (memory_io *)io;
    *out = NULL;
    if (n == 0 || off % H5_MAP_ALIGN != 0 || off > m->size || n > m->size - off)
        return h5_fail(err, H5_MISUSE, off,
                       "mapping of %zu bytes at %" PRIu64 " of a file of %" PRIu64, n, off,
                       m->size);
    m->newest->maps++;
    *out = m->newest->bytes + off;
    return H5_OK;
}

static void memory_unmap(h5_io *io, const void *p, size_t n)
{
    memory_io *m = (memory_io *)io;
    const uint8_t *b = p;
    (void)n;
    for (span **link = &m->newest; *link; link = &(*link)->older) {
        span *s = *link;
        if (b < s->bytes || b >= s->bytes + s->cap)
            continue;
        if (--s->maps == 0 && s != m->newest) {
            *link = s->older;
            h5_free(s);
        }
        return;
    }
}

static void memory_close(h5_io *io)
{
    memory_io *m = (memory_io *)io;
    while (m->newest) {
        span *older = m->newest->older;
        h5_free(m->newest);
        m->newest = older;
    }
    h5_free(m);
}

static const h5_io memory_table = {memory_size,     memory_read, memory_write, memory_sync,
                                   memory_truncate, memory_map,  memory_unmap, memory_close};

int h5_io_memory(const void *bytes, size_t n, h5_io **out, h5_error *err)
{
    *out = NULL;
    size_t cap = n > 4096 ? n : 4096;
    memory_io *m = h5_malloc(sizeof *m);
    span *s = n < SIZE_MAX / 2 ? h5_malloc(sizeof *s + cap) : NULL;
    if (!m || !s) {
        h5_free(m);
        h5_free(s);
        return h5_fail_nomem(err, "a file in memory");
    }
    s->older = NULL;
    s->cap = cap;
    s->maps = 0;
    if (n)
        memcpy(s->bytes, bytes, n);
    m->io = memory_table;
    m->size = n;
    m->newest = s;
    *out = &m->io;
    return H5_OK;
}

int h5_io_is_memory(const h5_io *io)
{
    return io->read == memory_read;
}
