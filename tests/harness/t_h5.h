/*
 * t_h5.h - small HDF5 files in memory for the tests of hdf5core
 *
 *     t_h5 t;
 *     t_h5_begin(&t);
 *     uint64_t d = t_h5_chunked(&t, ...), g = ...;
 *     t_h5_open(&t, root);         flushes, writes the superblock, opens t.f
 *     t_h5_end(&t);
 *
 * Everything is checked on the way; a failure fails the test. Functions are inline, since programs
 * that know nothing of hdf5core link the other files of this folder.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef T_H5_H
#define T_H5_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "h5core.h"

typedef struct t_h5 {
    h5_io *io;
    h5_writer *w;
    h5_file *f;
    h5_error err;
} t_h5;

/* A call that must succeed; shows the text when it does not. */
#define T_OK(t, expr)                                                                              \
    do {                                                                                           \
        h5_error_clear(&(t)->err);                                                                 \
        int t_rc = (expr);                                                                         \
        if (t_rc != H5_OK)                                                                         \
            fail_msg("%s: %s", h5_code_name(t_rc), (t)->err.text);                                 \
        assert_int_equal((t)->err.code, H5_OK);                                                    \
    } while (0)

/* A call that must fail with this code and leave a record with the same code and a text that holds
** `part`. */
#define T_FAILS(t, want, part, expr)                                                               \
    do {                                                                                           \
        h5_error_clear(&(t)->err);                                                                 \
        int t_rc = (expr);                                                                         \
        assert_int_equal(t_rc, want);                                                              \
        assert_int_equal((t)->err.code, want);                                                     \
        if (!strstr((t)->err.text, part))                                                          \
            fail_msg("'%s' is not in '%s'", part, (t)->err.text);                                  \
    } while (0)

static inline void t_h5_begin(t_h5 *t)
{
    memset(t, 0, sizeof *t);
    T_OK(t, h5_io_memory(NULL, 0, &t->io, &t->err));
    T_OK(t, h5_writer_new(t->io, H5_SUPERBLOCK_BYTES, &t->w, &t->err));
}

static inline void t_h5_open(t_h5 *t, uint64_t root)
{
    uint8_t super[H5_SUPERBLOCK_BYTES];
    T_OK(t, h5_writer_flush(t->w, &t->err));
    h5_superblock_pack(root, h5_writer_eof(t->w), super);
    T_OK(t, t->io->write(t->io, 0, super, sizeof super, &t->err));
    T_OK(t, h5_file_open(t->io, &t->f, &t->err));
}

static inline void t_h5_end(t_h5 *t)
{
    h5_file_close(t->f);
    h5_writer_free(t->w);
    t->io->close(t->io);
}

/* Appends bytes as they are; gives their address. */
static inline uint64_t t_h5_bytes(t_h5 *t, const void *p, size_t n)
{
    uint64_t at;
    T_OK(t, h5_writer_append(t->w, p, n, 8, &at, &t->err));
    return at;
}

static inline h5_type t_h5_type(char kind, uint32_t size)
{
    h5_type type;
    assert_int_equal(h5_type_number(kind, size, &type), H5_OK);
    return type;
}

/* Element e of the chunk at grid position `at`: its number in the dataset, -1 beyond its edge. */
static inline int64_t t_h5_place(const h5_dataset_spec *d, const uint64_t *at, uint64_t e)
{
    uint64_t pos[H5_RANK_MAX], number = 0;
    for (int i = d->rank; i-- > 0; e /= d->chunk[i])
        pos[i] = at[i] * d->chunk[i] + e % d->chunk[i];
    for (int i = 0; i < d->rank; i++) {
        if (pos[i] >= d->dims[i])
            return -1;
        number = number * d->dims[i] + pos[i];
    }
    return (int64_t)number;
}

/* The chunk at grid position `at`, cut from data; rows beyond the edge are 0xEE. Chunks of some
** sizes stand one behind the other, of the others apart. */
static inline h5_chunk t_h5_cut(t_h5 *t, const h5_dataset_spec *d, const uint8_t *data,
                                const uint64_t *at)
{
    uint64_t n = 1, size = d->type.size;
    h5_chunk c = {0};
    for (int i = 0; i < d->rank; i++)
        n *= d->chunk[i];
    uint32_t align = n * size % 3 ? 1 : 64;
    uint8_t *bytes = malloc((size_t)(n * size));
    assert_non_null(bytes);
    memset(bytes, 0xEE, (size_t)(n * size));
    for (uint64_t e = 0; e < n; e++) {
        int64_t from = t_h5_place(d, at, e);
        if (from >= 0)
            memcpy(bytes + e * size, data + (uint64_t)from * size, (size_t)size);
    }
    c.size = n * size;
    if (d->pipeline && d->pipeline->n > 0) {
        void *enc;
        size_t enc_n;
        T_OK(t, h5_pipeline_encode(d->pipeline, bytes, (size_t)c.size, &enc, &enc_n, &c.mask,
                                   &t->err));
        c.size = enc_n;
        T_OK(t, h5_writer_append(t->w, enc, enc_n, align, &c.addr, &t->err));
        h5_free(enc);
    } else {
        T_OK(t, h5_writer_append(t->w, bytes, (size_t)c.size, align, &c.addr, &t->err));
    }
    free(bytes);
    return c;
}

/* Cuts data (file byte order) into chunks, writes them, their fixed array and the dataset; gives
** its address. Every leave_out-th chunk is left unwritten when leave_out > 0. */
static inline uint64_t t_h5_chunked(t_h5 *t, h5_dataset_spec *d, const void *data,
                                    uint64_t leave_out)
{
    uint64_t grid[H5_RANK_MAX], slots = 1, size = d->type.size, at;
    for (int i = 0; i < d->rank; i++) {
        grid[i] = (d->maxdims[i] + d->chunk[i] - 1) / d->chunk[i];
        slots *= grid[i];
        size *= d->chunk[i];
    }
    h5_chunk *chunks = calloc((size_t)slots, sizeof *chunks);
    assert_non_null(chunks);
    for (uint64_t s = 0; s < slots; s++) {
        uint64_t pos[H5_RANK_MAX], left = s;
        int inside = 1;
        for (int i = d->rank; i-- > 0; left /= grid[i]) {
            pos[i] = left % grid[i];
            inside &= pos[i] * d->chunk[i] < d->dims[i];
        }
        chunks[s].addr = H5_UNDEF;
        if (inside && (leave_out == 0 || s % leave_out != leave_out - 1))
            chunks[s] = t_h5_cut(t, d, data, pos);
    }
    int filtered = d->pipeline && d->pipeline->n > 0;
    T_OK(t, h5_write_fixed_array(t->w, chunks, slots, filtered, size, &d->addr, &t->err));
    T_OK(t, h5_write_dataset(t->w, d, &at, &t->err));
    free(chunks);
    return at;
}

/* The group over one member. */
static inline uint64_t t_h5_root(t_h5 *t, const char *name, uint64_t addr)
{
    h5_link link = {name, addr};
    uint64_t at;
    T_OK(t, h5_write_group(t->w, &link, 1, NULL, 0, &at, &t->err));
    return at;
}

#endif
