/*
 * h5_chunk.h - parts of stored data into memory: raw bytes, decoded chunks, fill values
 *
 * OWNERSHIP  an h5_reader borrows file and object and owns its scratch memory until h5_reader_free.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef H5_CHUNK_H
#define H5_CHUNK_H

#include "h5_cidx.h"
#include "h5_select.h"

typedef struct h5_reader {
    h5_file *f;
    const h5_object *o;
    uint8_t *stored; /* bytes of a chunk as stored, or a raw span */
    size_t stored_cap;
    uint8_t *plain; /* one decoded chunk */
} h5_reader;

/* The n bytes of raw data at addr, in r until its next read, or where they lie in memory. */
int h5_read_span(h5_reader *r, uint64_t addr, uint64_t n, const char *what, const uint8_t **out,
                 h5_error *err);
/* Copies the runs from raw data at addr into dst. what is for error texts. */
int h5_read_raw(h5_reader *r, uint64_t addr, h5_runs *runs, uint8_t *dst, const char *what,
                h5_error *err);
/* Copies the runs from one chunk, decoding it where filters were applied, into dst. */
int h5_read_chunk(h5_reader *r, const h5_chunk *c, h5_runs *runs, uint8_t *dst, h5_error *err);
/* Puts the fill value where the runs go in dst. */
void h5_read_fill(const h5_object *o, h5_runs *runs, uint8_t *dst);
/* Copies a hyperslab of a dataset whose data are in other files. */
int h5_read_external(h5_reader *r, const uint64_t *start, const uint64_t *count, uint8_t *dst,
                     h5_error *err);
void h5_reader_free(h5_reader *r);

#endif
