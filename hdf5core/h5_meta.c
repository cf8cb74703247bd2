/*
 * h5_meta.c - blocks of a file that are kept in memory
 *
 * Headers, tree nodes and heaps are some hundred bytes each and lie close together where one
 * program wrote them one after the other. A read of one brings the page around it; where the next
 * miss is near the end of the last block, as on a walk through a file, the next block is twice as
 * long. A read far away starts with a page again, so that a look-up in a large index costs pages,
 * not more. A small file is one block. Raw data do not come through here.
 *
 * The blocks show the file as it was when they were read. Who changes what an open file reaches
 * must open it anew, as h5core.h says; appended bytes lie beyond `end`.
 *
 * ERRORS     those of the io: a block that cannot be read is not tried in smaller pieces
 * TESTS      t_h5_meta.c
 *
 * SPDX-License-Identifier: MIT
 */
#include "h5_meta.h"

enum { NEAR = 4 }; /* times the last block's length: how far from its end a miss continues it */

static int holds(const h5_meta_block *b, uint64_t off, size_t n)
{
    return off >= b->at && off - b->at < b->n && b->n - (size_t)(off - b->at) >= n;
}

/* The block that holds the n bytes at off; NULL for none. */
static const h5_meta_block *find(h5_meta *m, uint64_t off, size_t n)
{
    if (holds(&m->block[m->last], off, n))
        return &m->block[m->last];
    for (unsigned i = 0; i < H5_META_BLOCKS; i++)
        if (holds(&m->block[i], off, n)) {
            m->last = i;
            return &m->block[i];
        }
    return NULL;
}

/* Makes block b hold n bytes from at. */
static int fill(h5_meta_block *b, h5_io *io, uint64_t at, size_t n, h5_error *err)
{
    b->n = 0;
    if (b->cap < n) {
        h5_free(b->p);
        b->cap = 0;
        b->p = h5_malloc(n);
        if (!b->p)
            return h5_fail_nomem(err, "a block of metadata");
        b->cap = n;
    }
    H5_TRY(io->read(io, at, b->p, n, err));
    b->at = at;
    b->n = n;
    return H5_OK;
}

static int miss(h5_meta *m, h5_io *io, uint64_t off, size_t n, uint64_t end,
                const h5_meta_block **out, h5_error *err)
{
    int whole = m->end == 0 && end <= H5_META_SMALL;
    uint64_t at = whole ? 0 : off / H5_META_LEAST * H5_META_LEAST;
    int goes_on = m->end > 0 && off + H5_META_LEAST >= m->end &&
                  off < m->end + NEAR * (uint64_t)m->ahead;
    size_t want = goes_on && m->ahead < H5_META_MOST ? 2 * m->ahead : H5_META_LEAST;
    if (goes_on && m->ahead >= H5_META_MOST)
        want = H5_META_MOST;
    if (whole)
        want = H5_META_SMALL;
    while (want < (size_t)(off - at) + n)
        want += H5_META_LEAST;
    h5_meta_block *b = &m->block[m->next];
    H5_TRY(fill(b, io, at, end - at < want ? (size_t)(end - at) : want, err));
    m->last = m->next;
    m->next = (m->next + 1) % H5_META_BLOCKS;
    m->end = b->at + b->n;
    m->ahead = want;
    *out = b;
    return H5_OK;
}

int h5_meta_read(h5_meta *m, h5_io *io, uint64_t off, void *buf, size_t n, uint64_t end,
                 h5_error *err)
{
    if (n > H5_META_MOST / 2 || atomic_flag_test_and_set_explicit(&m->busy, memory_order_acquire))
        return io->read(io, off, buf, n, err);
    const h5_meta_block *b = find(m, off, n);
    int rc = b ? H5_OK : miss(m, io, off, n, end, &b, err);
    if (rc == H5_OK)
        memcpy(buf, b->p + (off - b->at), n);
    atomic_flag_clear_explicit(&m->busy, memory_order_release);
    return rc;
}

void h5_meta_free(h5_meta *m)
{
    if (m->end == 0 && !m->block[0].p)
        return; // nothing was ever read
    for (int i = 0; i < H5_META_BLOCKS; i++)
        h5_free(m->block[i].p);
}
