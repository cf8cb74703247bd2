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

#include "h5_msg.h"

enum { LOAD_LEAST = 65536 }; /* a set's files may be shorter than what zeros fill up */

int h5_file_inside(const h5_file *f, uint64_t addr, uint64_t n, const char *what, h5_error *err)
{
    if (addr > f->eof || n > f->eof - addr)
        return h5_fail(err, H5_FORMAT, addr,
                       "%s: %" PRIu64 " bytes at %" PRIu64 " lie beyond the end of file %" PRIu64,
                       what, n, addr, f->eof);
    return H5_OK;
}

static int read_stored(h5_file *f, uint64_t addr, void *buf, size_t n, h5_error *err)
{
    if (f->in_memory)
        return f->io->read(f->io, f->base + addr, buf, n, err);
    if (!f->bytes)
        return h5_meta_read(&f->meta, f->io, f->base + addr, buf, n, f->base + f->eof, err);
    if (n)
        memcpy(buf, f->bytes + f->base + addr, n);
    return H5_OK;
}

static int read_meta(h5_file *f, uint64_t addr, void *buf, size_t n, h5_error *err)
{
    int rc = read_stored(f, addr, buf, n, err);
    if (rc == H5_OK && f->image.n)
        h5_image_apply(&f->image, addr, buf, n);
    return rc;
}

int h5_file_read(h5_file *f, uint64_t addr, void *buf, size_t n, const char *what, h5_error *err)
{
    H5_TRY(h5_file_inside(f, addr, n, what, err));
    return read_meta(f, addr, buf, n, err);
}

int h5_file_read_data(h5_file *f, uint64_t addr, void *buf, size_t n, const char *what,
                      h5_error *err)
{
    H5_TRY(h5_file_inside(f, addr, n, what, err));
    return f->io->read(f->io, f->base + addr, buf, n, err);
}

int h5_file_load(h5_file *f, uint64_t addr, uint64_t n, const char *what, uint8_t **out,
                 h5_error *err)
{
    *out = NULL;
    H5_TRY(h5_file_inside(f, addr, n, what, err));
    if (n > f->most && n > LOAD_LEAST)
        return h5_fail(err, H5_FORMAT, addr, "%s: %" PRIu64 " bytes, more than are stored", what,
                       n);
    uint8_t *p = n <= SIZE_MAX / 2 ? h5_malloc((size_t)n) : NULL;
    if (!p)
        return h5_fail_nomem(err, what);
    int rc = read_meta(f, addr, p, (size_t)n, err);
    if (rc != H5_OK)
        h5_free(p);
    else
        *out = p;
    return rc;
}

static int take_shared_table(h5_file *f, const h5_msg *m, h5_error *err)
{
    h5_cur c = h5_cur_on(m->body, m->size);
    h5_cur_u8(&c);
    f->sohm = h5_cur_addr(&c, f);
    f->nsohm = h5_cur_u8(&c);
    return c.bad ? h5_msg_short(m, "shared message table", err) : H5_OK;
}

static int take_image(h5_file *f, const h5_msg *m, h5_error *err)
{
    h5_cur c = h5_cur_on(m->body, m->size);
    h5_cur_u8(&c);
    uint64_t addr = h5_cur_addr(&c, f), n = h5_cur_length(&c, f);
    if (c.bad)
        return h5_msg_short(m, "metadata cache image", err);
    if (addr == H5_UNDEF || f->image.bytes)
        return H5_OK;
    int rc = h5_image_load(f, addr, n, &f->image, err);
    f->bytes = NULL; // what lies in memory is not what counts
    return rc;
}

/* The extension may say that the file is one member of several, or that its metadata are
** elsewhere. */
static int check_extension(h5_file *f, uint64_t addr, int in_set, h5_error *err)
{
    h5_ohdr oh;
    H5_TRY(h5_ohdr_read(f, addr, &oh, err));
    int rc = H5_OK;
    for (size_t i = 0; rc == H5_OK && i < oh.nmsg; i++) {
        const h5_msg *m = &oh.msg[i];
        if (m->id == H5_MSG_SHARED_TABLE)
            rc = take_shared_table(f, m, err);
        else if (m->id == H5_MSG_CACHE_IMAGE)
            rc = take_image(f, m, err);
        else if (m->id != H5_MSG_DRIVER || !in_set)
            rc = h5_msg_refused(m, err);
    }
    h5_ohdr_free(&oh);
    return rc;
}

/* A driver information block says that the file is one of a set. */
static int check_driver(h5_file *f, uint64_t addr, h5_error *err)
{
    uint8_t head[16];
    if (addr == H5_UNDEF)
        return H5_OK;
    H5_TRY(h5_file_read(f, addr, head, sizeof head, "driver information block", err));
    return h5_fail(err, H5_UNSUPPORTED, addr, "one file of a set (driver %.8s)", (char *)head + 8);
}

/* Takes over what the superblock at offset `at` of a file of `size` bytes says. set: bytes of all
** files of a set, 0 for a file of its own. */
static int settle(h5_file *f, uint64_t size, uint64_t set, uint64_t at, const h5_superblock *s,
                  h5_error *err)
{
    if (s->eof > size - at && set == 0)
        return h5_fail(err, H5_FORMAT, at,
                       "truncated file: %" PRIu64 " bytes, the superblock says %" PRIu64, size,
                       s->eof);
    f->base = at;
    f->eof = set && size - at > s->eof ? size - at : s->eof;
    f->most = set ? set : f->eof;
    f->root = s->root;
    f->version = s->version;
    f->sohm = H5_UNDEF;
    f->offsets = s->offsets;
    f->lengths = s->lengths;
    if (!set)
        H5_TRY(check_driver(f, s->driver, err));
    return s->extension == H5_UNDEF ? H5_OK : check_extension(f, s->extension, set != 0, err);
}

static h5_file *new_file(h5_io *io)
{
    int constant;
    h5_file *f = h5_calloc(1, sizeof *f);
    if (f) {
        f->io = io;
        f->bytes = h5_io_in_place(io, &constant);
        f->bytes = constant ? f->bytes : NULL;
        f->in_memory = h5_io_is_memory(io);
        atomic_flag_clear(&f->meta.busy);
    }
    return f;
}

int h5_file_open_at(h5_io *io, const uint8_t superblock[H5_SUPERBLOCK_BYTES], h5_file **out,
                    h5_error *err)
{
    h5_superblock s;
    uint64_t size;
    *out = NULL;
    H5_TRY(h5_superblock_parse(superblock, &s, err));
    H5_TRY(io->size(io, &size, err));
    h5_file *f = new_file(io);
    int rc = f ? settle(f, size, 0, 0, &s, err) : h5_fail_nomem(err, "an open HDF5 file");
    if (rc != H5_OK)
        h5_file_close(f);
    else
        *out = f;
    return rc;
}

/* Looks for the signature at 0, 512, 1024, 2048, ...; head gets the bytes from there, zeros beyond
** the end of the file. */
static int find_superblock(h5_file *f, uint64_t size, uint8_t head[H5_SUPERBLOCK_OLD_BYTES],
                           uint64_t *at, h5_error *err)
{
    if (size < H5_SUPERBLOCK_BYTES)
        return h5_fail(err, H5_FORMAT, 0, "superblock: the file has only %" PRIu64 " bytes", size);
    f->eof = size; // until the superblock says more
    for (uint64_t p = 0; p <= size - H5_SUPERBLOCK_BYTES; p = p ? p * 2 : 512) {
        size_t n = size - p < H5_SUPERBLOCK_OLD_BYTES ? (size_t)(size - p)
                                                      : H5_SUPERBLOCK_OLD_BYTES;
        memset(head, 0, H5_SUPERBLOCK_OLD_BYTES);
        H5_TRY(h5_file_read(f, p, head, n, "superblock", err));
        *at = p;
        if (h5_superblock_is(head))
            return H5_OK;
    }
    return h5_fail(err, H5_FORMAT, 0, "superblock: no HDF5 signature");
}

static int start(h5_file *f, uint64_t size, uint64_t set, h5_error *err)
{
    uint8_t head[H5_SUPERBLOCK_OLD_BYTES];
    h5_superblock s;
    uint64_t at = 0;
    H5_TRY(find_superblock(f, size, head, &at, err));
    H5_TRY(head[8] < 2 ? h5_superblock_parse_old(head, &s, err)
                       : h5_superblock_parse(head, &s, err));
    return settle(f, size, set, at, &s, err);
}

int h5_file_open_io(h5_io *io, uint64_t size, uint64_t set, h5_file **out, h5_error *err)
{
    *out = NULL;
    h5_file *f = new_file(io);
    int rc = f ? start(f, size, set, err) : h5_fail_nomem(err, "an open HDF5 file");
    if (rc != H5_OK)
        h5_file_close(f);
    else
        *out = f;
    return rc;
}

int h5_file_open(h5_io *io, h5_file **out, h5_error *err)
{
    uint64_t size;
    *out = NULL;
    H5_TRY(io->size(io, &size, err));
    return h5_file_open_io(io, size, 0, out, err);
}

void h5_file_close(h5_file *f)
{
    if (!f)
        return;
    if (f->owned)
        f->owned->close(f->owned);
    h5_meta_free(&f->meta);
    h5_image_free(&f->image);
    h5_free(f->folder);
    h5_free(f);
}

uint64_t h5_file_base(const h5_file *f)
{
    return f->base;
}

int h5_file_version(const h5_file *f)
{
    return f->version;
}

uint64_t h5_file_root(const h5_file *f)
{
    return f->root;
}

uint64_t h5_file_eof(const h5_file *f)
{
    return f->eof;
}
