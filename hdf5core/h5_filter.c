/*
 * h5_filter.c - the table of filters and the pipeline that runs them
 *
 * Encoding applies the filters in order, decoding in reverse. Two buffers are used in turn; the
 * last step of a decode goes straight to the caller's. An id without a row is named from the list
 * of registered filters, since "filter 32001" alone helps nobody.
 *
 * ERRORS   H5_UNSUPPORTED unknown filter; H5_FORMAT stored bytes that do not decode to the size of
 *          the chunk
 * TESTS    t_h5_filter.c
 *
 * SPDX-License-Identifier: MIT
 */
#include <inttypes.h>

#include "h5_filter.h"

static const h5_filter_row *const rows[] = {
    &h5_filter_deflate, &h5_filter_shuffle,     &h5_filter_fletcher32, &h5_filter_szip,
    &h5_filter_nbit,    &h5_filter_scaleoffset, &h5_filter_lzf,        &h5_filter_blosc,
    &h5_filter_lz4,     &h5_filter_bitshuffle,  &h5_filter_zstd,
};

/* Filters that have no row and are met in the wild, by their names in the HDF Group's registry. */
static const struct {
    uint16_t id;
    const char *name;
} known[] = {
    {305, "lzo"},   {307, "bzip2"},    {32002, "mafisc"}, {32003, "snappy"},
    {32013, "zfp"}, {32017, "sz"},     {32018, "fci"},    {32019, "jpeg"},
    {32024, "sz3"}, {32026, "blosc2"}, {32028, "sperr"},
};

const h5_filter_row *h5_filter_find(uint16_t id)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i]->id == id)
            return rows[i];
    return NULL;
}

static int find_row(const h5_filter *f, const h5_filter_row **row, h5_error *err)
{
    *row = h5_filter_find(f->id);
    if (*row)
        return H5_OK;
    const char *name = "not a registered name";
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].id == f->id)
            name = known[i].name;
    return h5_fail(err, H5_UNSUPPORTED, H5_UNDEF, "filter %u (%s)", f->id, name);
}

int h5_pipeline_check(const h5_pipeline *p, h5_error *err)
{
    if (p->n < 0 || p->n > H5_FILTERS_MAX)
        return h5_fail(err, H5_MISUSE, H5_UNDEF, "filter pipeline of %d filters", p->n);
    for (int i = 0; i < p->n; i++) {
        const h5_filter *f = &p->filter[i];
        const h5_filter_row *row;
        H5_TRY(find_row(f, &row, err));
        if (!row->encode)
            return h5_fail(err, H5_UNSUPPORTED, H5_UNDEF, "filter %u (%s) is read, not written",
                           f->id, row->name);
        if (f->nvalue < row->nvalue || f->nvalue > H5_FILTER_VALUES_MAX)
            return h5_fail(err, H5_MISUSE, H5_UNDEF, "filter %s: %u client values", row->name,
                           (unsigned)f->nvalue);
    }
    return H5_OK;
}

int h5_pipeline_encode(const h5_pipeline *p, const void *in, size_t n, void **out, size_t *out_n,
                       uint32_t *mask, h5_error *err)
{
    int rc = H5_OK;
    uint8_t *have = NULL, *next = NULL;
    const uint8_t *src = in;
    *out = NULL;
    *out_n = 0;
    *mask = 0;
    H5_TRY(h5_pipeline_check(p, err));
    for (int i = 0; i < p->n; i++) {
        const h5_filter *f = &p->filter[i];
        const h5_filter_row *row;
        size_t made = 0, cap;
        H5_TRY_DONE(find_row(f, &row, err));
        cap = row->bound(n);
        next = h5_malloc(cap);
        if (!next) {
            rc = h5_fail_nomem(err, "an encoded chunk");
            goto done;
        }
        H5_TRY_DONE(row->encode(f, src, n, next, cap, &made, err));
        if (f->flags & 1 && row->shrinks && made >= n) {
            *mask |= 1u << i;
            h5_free(next);
        } else {
            h5_free(have);
            src = have = next;
            n = made;
        }
        next = NULL;
    }
    if (!have) { // no filter was applied: the result is a copy
        have = h5_malloc(n);
        if (!have) {
            rc = h5_fail_nomem(err, "an encoded chunk");
            goto done;
        }
        if (n)
            memcpy(have, in, n);
    }
    *out = have;
    *out_n = n;
    have = NULL;
done:
    h5_free(have);
    h5_free(next);
    if (rc != H5_OK)
        *mask = 0;
    return rc;
}

int h5_pipeline_is_raw(const h5_pipeline *p, uint32_t mask)
{
    for (int i = 0; i < p->n; i++)
        if (!(mask >> i & 1))
            return 0;
    return 1;
}

/* Index of the next filter below i that mask does not leave out, -1 when there is none. */
static int next_filter(uint32_t mask, int i)
{
    while (--i >= 0 && mask >> i & 1)
        ;
    return i;
}

/* The most bytes that one filter makes of n; UINT64_MAX when that is unknown. */
static uint64_t step_most(const h5_filter *f, uint64_t n)
{
    const h5_filter_row *row = h5_filter_find(f->id);
    if (!row)
        return UINT64_MAX;
    if (row->most)
        n = row->most(f, n);
    else if (!h5_mul_fits(n, row->expansion, &n))
        return UINT64_MAX;
    return h5_add_fits(n, 64, &n) ? n : UINT64_MAX;
}

uint64_t h5_pipeline_expansion(const h5_pipeline *p, uint32_t mask, uint64_t n)
{
    for (int i = p->n; i-- > 0;)
        if (!(mask >> i & 1))
            n = step_most(&p->filter[i], n);
    return n;
}

/* Between two filters the bytes may be somewhat more than at the end: incompressible input grows by
** a few per mille. */
static uint64_t middle_of(uint64_t out_n)
{
    return out_n + out_n / 64 + 4096;
}

/* The most bytes in memory while n stored bytes are decoded into out_n, these included and those
** not. */
static uint64_t memory_of(const h5_pipeline *p, uint32_t mask, uint64_t n, uint64_t out_n)
{
    uint64_t middle = middle_of(out_n), have = 0, most = 0;
    for (int i = next_filter(mask, p->n); i >= 0; i = next_filter(mask, i)) {
        uint64_t next = step_most(&p->filter[i], n);
        n = next = next < middle ? next : middle;
        if (next_filter(mask, i) < 0)
            next = 0; // goes to its place
        most = have + next > most ? have + next : most;
        have = next;
    }
    return most + out_n;
}

int h5_pipeline_allow(const h5_pipeline *p, uint32_t mask, uint64_t n, uint64_t out_n,
                      const char *what, uint64_t addr, h5_error *err)
{
    const h5_filter_row *row;
    for (int i = 0; i < p->n; i++)
        if (!(mask >> i & 1))
            H5_TRY(find_row(&p->filter[i], &row, err));
    if (out_n > h5_pipeline_expansion(p, mask, n))
        return h5_fail(err, H5_FORMAT, addr,
                       "%s of %" PRIu64 " bytes cannot come from %" PRIu64 " stored", what, out_n,
                       n);
    if (out_n > H5_CHUNK_BYTES_MAX ||
        (memory_of(p, mask, n, out_n) > H5_DECODE_BYTES_MAX && out_n / H5_DECODE_RATIO > n))
        return h5_fail(err, H5_LIMIT, addr,
                       "%s of %" PRIu64 " bytes from %" PRIu64
                       " stored: decoding takes more than H5_DECODE_BYTES_MAX = %llu",
                       what, out_n, n, H5_DECODE_BYTES_MAX);
    return H5_OK;
}

int h5_pipeline_decode(const h5_pipeline *p, uint32_t mask, const void *in, size_t n, void *out,
                       size_t out_n, h5_error *err)
{
    int rc = H5_OK;
    uint8_t *have = NULL, *next = NULL;
    const uint8_t *src = in;
    uint64_t middle = middle_of(out_n);
    int i = next_filter(mask, p->n);
    if (i < 0) {
        if (n != out_n)
            return h5_fail(err, H5_FORMAT, H5_UNDEF, "chunk of %zu bytes has %zu stored", out_n, n);
        memcpy(out, in, n);
        return H5_OK;
    }
    for (int below; i >= 0; i = below) {
        const h5_filter_row *row;
        size_t made = 0;
        below = next_filter(mask, i);
        H5_TRY_DONE(find_row(&p->filter[i], &row, err));
        if (p->filter[i].nvalue < row->nvalue) {
            rc = h5_fail(err, H5_FORMAT, H5_UNDEF, "filter %s: no client data", row->name);
            goto done;
        }
        if (below < 0) {
            H5_TRY_DONE(row->decode(&p->filter[i], src, n, out, out_n, &made, err));
        } else {
            uint64_t most = step_most(&p->filter[i], n);
            size_t cap = (size_t)(most < middle ? most : middle);
            next = h5_malloc(cap);
            if (!next) {
                rc = h5_fail_nomem(err, "a decoded chunk");
                goto done;
            }
            H5_TRY_DONE(row->decode(&p->filter[i], src, n, next, cap, &made, err));
            h5_free(have);
            src = have = next;
            next = NULL;
        }
        n = made;
    }
    if (n != out_n)
        rc = h5_fail(err, H5_FORMAT, H5_UNDEF, "chunk of %zu bytes decodes to %zu", out_n, n);
done:
    h5_free(have);
    h5_free(next);
    return rc;
}
