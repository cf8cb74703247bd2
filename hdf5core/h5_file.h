/*
 * h5_file.h - an open file, for the files of hdf5core: bounded reads, superblock fields
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef H5_FILE_H
#define H5_FILE_H

#include "h5_cur.h"

struct h5_file {
    h5_io *io;     /* the caller's */
    uint64_t eof;  /* of the superblock; never beyond the end of the io when the file was opened */
    uint64_t root; /* address of the root group's header */
};

/* What a version 2 or 3 superblock says. */
typedef struct h5_superblock {
    uint8_t version, flags;
    uint64_t extension; /* address of its object header, or H5_UNDEF */
    uint64_t eof, root;
} h5_superblock;

int h5_superblock_parse(const uint8_t in[H5_SUPERBLOCK_BYTES], h5_superblock *out, h5_error *err);

/* H5_OK when the n bytes at addr lie inside the file; else H5_FORMAT naming `what`. */
int h5_file_inside(const h5_file *f, uint64_t addr, uint64_t n, const char *what, h5_error *err);

/* Reads n bytes at addr, which must lie inside the file. */
int h5_file_read(h5_file *f, uint64_t addr, void *buf, size_t n, const char *what, h5_error *err);

/* The same into fresh memory, which the caller frees. n is checked against the file before anything
** is allocated. */
int h5_file_load(h5_file *f, uint64_t addr, uint64_t n, const char *what, uint8_t **out,
                 h5_error *err);

#endif
