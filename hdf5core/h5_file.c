/*
 * h5_file.c - opening a file, and bounded reads from it
 *
 * Every address of a file is checked here against the superblock's end-of-file before a byte is
 * read or a buffer is made, so nothing that a file says can make this library allocate more than
 * the file holds.
 *
 * OWNERSHIP  the io stays the caller's.
 * ERRORS     those of h5_superblock.c; H5_FORMAT for an address outside the file, or a file shorter
 *            than it says
 *
 * SPDX-License-Identifier: MIT
 */
#include <inttypes.h>

#include "h5_file.h"
#include "h5_ohdr.h"

int h5_file_inside(const h5_file *f, uint64_t addr, uint64_t n, const char *what, h5_error *err)
{
    if (addr > f->eof || n > f->eof - addr)
        return h5_fail(err, H5_FORMAT, addr,
                       "%s: %" PRIu64 " bytes at %" PRIu64 " lie beyond the end of file %" PRIu64,
                       what, n, addr, f->eof);
    return H5_OK;
}

int h5_file_read(h5_file *f, uint64_t addr, void *buf, size_t n, const char *what, h5_error *err)
{
    H5_TRY(h5_file_inside(f, addr, n, what, err));
    return f->io->read(f->io, addr, buf, n, err);
}

int h5_file_load(h5_file *f, uint64_t addr, uint64_t n, const char *what, uint8_t **out,
                 h5_error *err)
{
    *out = NULL;
    H5_TRY(h5_file_inside(f, addr, n, what, err));
    uint8_t *p = n <= SIZE_MAX / 2 ? h5_malloc((size_t)n) : NULL;
    if (!p)
        return h5_fail_nomem(err, what);
    int rc = f->io->read(f->io, addr, p, (size_t)n, err);
    if (rc != H5_OK)
        h5_free(p);
    else
        *out = p;
    return rc;
}

/* The extension may say that the file is one member of several, or that its metadata are elsewhere;
** its messages of these kinds are refused by their rows. */
static int check_extension(h5_file *f, uint64_t addr, h5_error *err)
{
    h5_ohdr oh;
    H5_TRY(h5_ohdr_read(f, addr, &oh, err));
    int rc = h5_ohdr_check_extension(&oh, err);
    h5_ohdr_free(&oh);
    return rc;
}

int h5_file_open_at(h5_io *io, const uint8_t superblock[H5_SUPERBLOCK_BYTES], h5_file **out,
                    h5_error *err)
{
    h5_superblock s;
    uint64_t size;
    *out = NULL;
    H5_TRY(h5_superblock_parse(superblock, &s, err));
    H5_TRY(io->size(io, &size, err));
    if (s.eof > size)
        return h5_fail(err, H5_FORMAT, 28,
                       "truncated file: %" PRIu64 " bytes, the superblock says %" PRIu64, size,
                       s.eof);
    h5_file *f = h5_malloc(sizeof *f);
    if (!f)
        return h5_fail_nomem(err, "an open HDF5 file");
    f->io = io;
    f->eof = s.eof;
    f->root = s.root;
    int rc = s.extension == H5_UNDEF ? H5_OK : check_extension(f, s.extension, err);
    if (rc != H5_OK) {
        h5_free(f);
        return rc;
    }
    *out = f;
    return H5_OK;
}

int h5_file_open(h5_io *io, h5_file **out, h5_error *err)
{
    uint8_t head[H5_SUPERBLOCK_BYTES];
    uint64_t size;
    *out = NULL;
    H5_TRY(io->size(io, &size, err));
    if (size < sizeof head)
        return h5_fail(err, H5_FORMAT, 0, "superblock: the file has only %" PRIu64 " bytes", size);
    H5_TRY(io->read(io, 0, head, sizeof head, err));
    return h5_file_open_at(io, head, out, err);
}

void h5_file_close(h5_file *f)
{
    h5_free(f);
}

uint64_t h5_file_root(const h5_file *f)
{
    return f->root;
}

uint64_t h5_file_eof(const h5_file *f)
{
    return f->eof;
}
