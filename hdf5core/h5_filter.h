/*
 * h5_filter.h - the row of a filter, and the table of rows
 *
 * A filter turns the bytes of a chunk into the bytes that are stored (encode) and back (decode).
 * Each is a row of the table in h5_filter.c; the pipeline there knows nothing of any of them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef H5_FILTER_H
#define H5_FILTER_H

#include "h5_base.h"

typedef struct h5_filter_row {
    uint16_t id;
    const char *name;
    uint32_t nvalue; /* client data that a file must hold for it, at least */
    /* No n stored bytes decode into more than n * expansion + 64: what bounds an allocation for a
    ** hostile file. */
    uint32_t expansion;
    /* The same where it follows from the client data; NULL otherwise. */
    uint64_t (*most)(const h5_filter *f, uint64_t n);
    int shrinks; /* 1: an optional filter that does not shrink its input is left out */
    /* The most bytes that n bytes encode into. */
    size_t (*bound)(size_t n);
    /* Encodes n bytes into at most cap >= bound(n) at out. NULL: the filter is only read. */
    int (*encode)(const h5_filter *f, const uint8_t *in, size_t n, uint8_t *out, size_t cap,
                  size_t *out_n, h5_error *err);
    /* Decodes n bytes into at most cap at out; more is H5_FORMAT. */
    int (*decode)(const h5_filter *f, const uint8_t *in, size_t n, uint8_t *out, size_t cap,
                  size_t *out_n, h5_error *err);
} h5_filter_row;

extern const h5_filter_row h5_filter_shuffle, h5_filter_deflate, h5_filter_zstd,
    h5_filter_fletcher32, h5_filter_szip, h5_filter_nbit, h5_filter_scaleoffset, h5_filter_lzf,
    h5_filter_lz4, h5_filter_bitshuffle, h5_filter_blosc;

/* The client data of a filter, f->nvalue of them. */
static inline const uint32_t *h5_filter_values(const h5_filter *f)
{
    return f->more ? f->more : f->value;
}

/* The row of an id, NULL when this library has none. */
const h5_filter_row *h5_filter_find(uint16_t id);

/* H5_OK when every filter of p can be encoded here with the client data given; else H5_UNSUPPORTED
** or H5_MISUSE. */
int h5_pipeline_check(const h5_pipeline *p, h5_error *err);

/* 1 when every filter of p is left out by mask. */
int h5_pipeline_is_raw(const h5_pipeline *p, uint32_t mask);

/* The most bytes that n stored bytes can decode into under mask; UINT64_MAX when that is unknown.
** */
uint64_t h5_pipeline_expansion(const h5_pipeline *p, uint32_t mask, uint64_t n);

/* H5_OK when n stored bytes may be decoded into out_n; else H5_FORMAT, since they cannot become
** that many, or H5_LIMIT H5_DECODE_BYTES_MAX. what and addr are for texts. */
int h5_pipeline_allow(const h5_pipeline *p, uint32_t mask, uint64_t n, uint64_t out_n,
                      const char *what, uint64_t addr, h5_error *err);

#endif
