/*
 * t_io.h - an h5_io around another that counts, fails or cuts the power at the k-th operation, and
 * can tell what a disk might hold after a power failure.
 *
 * Operations are read, write, sync and truncate, counted from 1; size, map and unmap are not. A
 * test repeats a call with fail_at 1, 2, 3, ... until it succeeds without reaching the failure.
 *
 *     t_io *t = t_io_new(memory);           t->io is what the code under test gets
 *     t->fail_at = k; t->mode = T_IO_FAIL;
 *
 * After a T_IO_CUT (or at any other moment) t_io_crash gives one of the files that a disk could
 * hold: the file as of the last sync, and of each write since then all, nothing or some sectors, by
 * chance.
 *
 * It calls nothing of the library under test.
 *
 * THREADS     one thread at a time.
 * OWNERSHIP   t_io_new takes the inner io over; t->io.close closes both. Without memory the program
 *             ends.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef T_IO_H
#define T_IO_H

#include <stddef.h>

#include "h5core.h"
#include "t_rng.h"

enum {
    T_IO_FAIL,  /* the operation fails with H5_IO and EIO, and does nothing */
    T_IO_SHORT, /* it does half of its bytes and fails; a read as at the end of a file, H5_FORMAT */
    T_IO_CUT    /* as SHORT, and nothing later works either */
};

typedef struct t_io_write {
    uint64_t off; /* for a truncate: the new size */
    size_t n;     /* bytes; 0 and no data for a truncate */
    unsigned char *data;
} t_io_write;

typedef struct t_io {
    h5_io io;
    h5_io *inner;
    long fail_at; /* operation that fails; 0 = none */
    int mode;     /* T_IO_ */
    long count;   /* operations so far */
    long reads, writes, syncs, truncates;
    uint64_t read_bytes, written_bytes;
    int dead; /* a cut has happened */
    /* What a disk surely holds, and what was done since. */
    unsigned char *safe;
    uint64_t safe_n;
    t_io_write *pending;
    size_t npending, cap;
} t_io;

t_io *t_io_new(h5_io *inner);

/* A file that a disk could hold after power failure; the caller frees it with free(). */
unsigned char *t_io_crash(const t_io *t, t_rng *r, size_t *n);

#endif
