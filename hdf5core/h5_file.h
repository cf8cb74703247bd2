/*
 * h5_file.h - an open file, for the files of hdf5core: bounded reads, superblock fields
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef H5_FILE_H
#define H5_FILE_H

#include "h5_cur.h"
#include "h5_image.h"
#include "h5_meta.h"

struct h5_file {
    h5_io *io;     /* the caller's */
    uint64_t eof;  /* of the superblock; never beyond the end of the io when the file was opened */
    uint64_t root; /* address of the root group's header */
    uint64_t
        most; /* bytes that are stored: what may be read into memory at once. eof, but in sets */
    uint64_t base;             /* of address 0 in the io; all other addresses count from there */
    unsigned offsets, lengths; /* bytes of an address and of a length: 2, 4 or 8 */
    uint64_t sohm;             /* table of shared messages, H5_UNDEF = none */
    unsigned nsohm;
    const uint8_t *bytes; /* all of the io in memory, never to change; else NULL */
    int in_memory;        /* reading the io costs a copy: keep no blocks of it */
    h5_meta meta;
    h5_image image; /* metadata that stand elsewhere; mostly empty */
    int version;    /* of the superblock */
    h5_io *owned;   /* closed with the file; NULL where io is the caller's */
    char *
        folder; /* where files that this one names are looked for, with its slash; NULL = nowhere */
    int depth;  /* files opened on behalf of others: how many are above this one */
};

/* What a superblock says. */
typedef struct h5_superblock {
    uint8_t version, flags, offsets, lengths;
    uint64_t base;
    uint64_t extension; /* address of its object header, or H5_UNDEF */
    uint64_t driver;    /* versions 0 and 1: driver information block, or H5_UNDEF */
    uint64_t eof, root; /* from the base address */
} h5_superblock;

#define H5_SUPERBLOCK_OLD_BYTES 100u /* versions 0 (96 of them) and 1 */

/* 1 when the first 8 bytes are HDF5's signature. */
int h5_superblock_is(const uint8_t *in);
/* Versions 0 and 1, after h5_superblock_is. */
int h5_superblock_parse_old(const uint8_t in[H5_SUPERBLOCK_OLD_BYTES], h5_superblock *out,
                            h5_error *err);

int h5_superblock_parse(const uint8_t in[H5_SUPERBLOCK_BYTES], h5_superblock *out, h5_error *err);

/* The bytes of an io that are in memory, else NULL; *constant: nobody changes them. */
const uint8_t *h5_io_in_place(const h5_io *io, int *constant);

/* Whether the io is h5_io_memory. */
int h5_io_is_memory(const h5_io *io);

/* h5_io_file; *size: of the file when it was opened. */
int h5_io_file_sized(const char *path, int flags, h5_io **out, uint64_t *size, h5_error *err);

/* h5_file_open of size bytes; set is 0, or the bytes of all files of the set that io is, which may
** be longer than the superblock knows, and shorter. */
int h5_file_open_io(h5_io *io, uint64_t size, uint64_t set, h5_file **out, h5_error *err);

/* Opens a file that f names, from the folder of f; the caller closes it. H5_NOTFOUND when there is
** none; H5_UNSUPPORTED when it is there, but out of the folder of f. */
int h5_io_beside(const h5_file *f, const char *name, h5_io **out, h5_error *err);
/* The same as an HDF5 file, one level below f. H5_LIMIT H5_FILE_DEPTH_MAX. */
int h5_file_beside(const h5_file *f, const char *name, h5_file **out, h5_error *err);

/* Bytes of an address and of a length in a file; without one, of a message on its own, 8. */
static inline unsigned h5_offsets(const h5_file *f)
{
    return f ? f->offsets : 8;
}

static inline unsigned h5_lengths(const h5_file *f)
{
    return f ? f->lengths : 8;
}

/* A number of n bytes, of which all ones mean "undefined" (H5_UNDEF). */
static inline uint64_t h5_cur_wide(h5_cur *c, unsigned n)
{
    uint64_t v = h5_cur_uint(c, n);
    return n < 8 && v == (1ull << 8 * n) - 1 ? H5_UNDEF : v;
}

/* The next address; the next length; an address at p. */
static inline uint64_t h5_cur_addr(h5_cur *c, const h5_file *f)
{
    return h5_cur_wide(c, h5_offsets(f));
}

static inline uint64_t h5_cur_length(h5_cur *c, const h5_file *f)
{
    return h5_cur_wide(c, h5_lengths(f));
}

static inline uint64_t h5_addr_at(const uint8_t *p, const h5_file *f)
{
    h5_cur c = h5_cur_on(p, h5_offsets(f));
    return h5_cur_addr(&c, f);
}

/* H5_OK when the n bytes at addr lie inside the file; else H5_FORMAT naming `what`. */
int h5_file_inside(const h5_file *f, uint64_t addr, uint64_t n, const char *what, h5_error *err);

/* Reads n bytes of metadata at addr, which must lie inside the file. */
int h5_file_read(h5_file *f, uint64_t addr, void *buf, size_t n, const char *what, h5_error *err);

/* Reads n bytes of raw data, past the blocks that are kept of metadata. */
int h5_file_read_data(h5_file *f, uint64_t addr, void *buf, size_t n, const char *what,
                      h5_error *err);

/* Metadata in place, valid as long as the io; NULL where the file is not in constant memory. The
** caller has checked that the bytes at addr lie inside the file. */
static inline const uint8_t *h5_file_in_place(const h5_file *f, uint64_t addr)
{
    return f->bytes ? f->bytes + f->base + addr : NULL;
}

/* Metadata into fresh memory, which the caller frees. n is checked against the file before anything
** is allocated. */
int h5_file_load(h5_file *f, uint64_t addr, uint64_t n, const char *what, uint8_t **out,
                 h5_error *err);

#endif
