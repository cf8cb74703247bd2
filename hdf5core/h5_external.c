/*
 * h5_external.c - contiguous data in other files
 *
 * The named parts, one behind the other, are the bytes of the dataset. What a file is too short for
 * reads as zeros, as in libhdf5; a file that is not there is an error. Where names may lead is said
 * in h5_path.c.
 *
 * ERRORS   H5_UNSUPPORTED a file without a folder, or a name that leads out of it; H5_IO
 * TESTS    test_h5show.py
 *
 * SPDX-License-Identifier: MIT
 */
#include <inttypes.h>

#include "h5_chunk.h"

/* n bytes from `at` of the data, all from the part x. */
static int read_part(h5_reader *r, const h5_external *x, uint64_t at, uint8_t *dst, uint64_t n,
                     h5_error *err)
{
    h5_io *io;
    uint64_t size, have = 0, from;
    H5_TRY(h5_io_beside(r->f, x->name, &io, err));
    int rc = io->size(io, &size, err);
    if (rc == H5_OK && h5_add_fits(x->offset, at, &from) && from < size)
        have = n < size - from ? n : size - from;
    if (rc == H5_OK && have > 0)
        rc = io->read(io, from, dst, (size_t)have, err);
    if (rc == H5_OK)
        memset(dst + have, 0, (size_t)(n - have));
    io->close(io);
    return rc;
}

static int read_bytes(h5_reader *r, uint64_t at, uint8_t *dst, uint64_t n, h5_error *err)
{
    const h5_dataset_info *d = r->o->info;
    for (uint32_t i = 0; i < d->nexternal && n > 0; i++) {
        const h5_external *x = &d->external[i];
        if (at >= x->size) {
            at -= x->size;
            continue;
        }
        uint64_t take = n < x->size - at ? n : x->size - at;
        H5_TRY(read_part(r, x, at, dst, take, err));
        dst += take;
        n -= take;
        at = 0;
    }
    if (n > 0)
        return h5_fail(err, H5_FORMAT, r->o->oh.addr,
                       "external data files: %" PRIu64 " bytes too few", n);
    return H5_OK;
}

int h5_read_external(h5_reader *r, const uint64_t *start, const uint64_t *count, uint8_t *dst,
                     h5_error *err)
{
    static const uint64_t zeros[H5_RANK_MAX];
    const h5_dataset_info *d = r->o->info;
    uint64_t size = d->type.size, s, t;
    h5_runs runs;
    h5_runs_init(&runs, d->rank, count, d->dims, start, count, zeros);
    while (h5_runs_next(&runs, &s, &t))
        H5_TRY(read_bytes(r, s * size, dst + t * size, runs.run * size, err));
    return H5_OK;
}
