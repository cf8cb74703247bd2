/*
 * h5_writer.c - appends to a file through a buffer
 *
 * A flush of a store makes hundreds of small structures; they are gathered into one buffer and
 * leave in large writes. What is as large as the buffer goes to the file at once, behind what was
 * gathered. After a failed write nothing has changed: the same append or flush may be tried again.
 *
 * INVARIANTS   the buffer holds the bytes from `start` to `start + used`; eof is their end
 * ERRORS       those of the io; H5_MISUSE for an alignment that is not a power of two
 * TESTS        t_h5_writer.c
 *
 * SPDX-License-Identifier: MIT
 */
#include <assert.h>
#include <inttypes.h>

#include "h5_base.h"

struct h5_writer {
    h5_io *io;
    uint64_t start; /* file offset of the buffer's first byte */
    size_t used;
    uint8_t buf[H5_WRITER_BUFFER];
};

int h5_writer_new(h5_io *io, uint64_t eof, h5_writer **out, h5_error *err)
{
    *out = NULL;
    h5_writer *w = h5_malloc(sizeof *w);
    if (!w)
        return h5_fail_nomem(err, "a writer");
    w->io = io;
    w->start = eof;
    w->used = 0;
    *out = w;
    return H5_OK;
}

void h5_writer_free(h5_writer *w)
{
    h5_free(w);
}

uint64_t h5_writer_eof(const h5_writer *w)
{
    return w->start + w->used;
}

/* Empties the buffer into the file. */
static int spill(h5_writer *w, h5_error *err)
{
    if (w->used == 0)
        return H5_OK;
    H5_TRY(w->io->write(w->io, w->start, w->buf, w->used, err));
    w->start += w->used;
    w->used = 0;
    return H5_OK;
}

/* Puts n bytes, or n zeros when p is NULL, into the buffer, which has room for them. */
static void gather(h5_writer *w, const uint8_t *p, size_t n)
{
    assert(n <= sizeof w->buf - w->used);
    if (p && n)
        memcpy(w->buf + w->used, p, n);
    else
        memset(w->buf + w->used, 0, n);
    w->used += n;
}

int h5_writer_append(h5_writer *w, const void *p, size_t n, uint32_t align, uint64_t *at,
                     h5_error *err)
{
    uint64_t eof = h5_writer_eof(w), here, end;
    *at = 0;
    if (align == 0 || align & (align - 1) || align > sizeof w->buf / 2 ||
        !h5_add_fits(eof, align - 1, &here))
        return h5_fail(err, H5_MISUSE, eof, "appending with alignment %u", (unsigned)align);
    here &= ~(uint64_t)(align - 1);
    if (!h5_add_fits(here, n, &end) || end > INT64_MAX)
        return h5_fail(err, H5_MISUSE, eof, "appending %zu bytes at %" PRIu64, n, here);
    size_t gap = (size_t)(here - eof);
    if (gap + n <= sizeof w->buf - w->used) {
        gather(w, NULL, gap);
        gather(w, p, n);
    } else if (n < sizeof w->buf / 2) {
        H5_TRY(spill(w, err));
        gather(w, NULL, gap);
        gather(w, p, n);
    } else {
        // The gap is written together with what was gathered, so that eof does not move before the
        // large write is done.
        H5_TRY(gap <= sizeof w->buf - w->used ? H5_OK : spill(w, err));
        memset(w->buf + w->used, 0, gap);
        if (w->used + gap > 0)
            H5_TRY(w->io->write(w->io, w->start, w->buf, w->used + gap, err));
        H5_TRY(w->io->write(w->io, here, p, n, err));
        w->start = end;
        w->used = 0;
    }
    *at = here;
    return H5_OK;
}

int h5_writer_flush(h5_writer *w, h5_error *err)
{
    uint64_t size;
    H5_TRY(spill(w, err));
    H5_TRY(w->io->size(w->io, &size, err));
    if (size < w->start)
        H5_TRY(w->io->truncate(w->io, w->start, err));
    return H5_OK;
}
