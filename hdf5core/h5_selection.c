/*
 * h5_selection.c - dataspace selections as they are stored
 *
 * FORMAT   HDF5 spec: VIII.E "Dataspace selections"
 *   kind 4 | version 4 | ...
 *   none and all: 4 reserved | bytes 4
 *   hyperslab, version 1: 4 reserved | bytes 4 | rank 4 | blocks 4 | a block: first places 4 each,
 *                         last places 4 each
 *              version 2: flags 1 | bytes 4 | rank 4 | a dimension: start 8, stride 8, count 8,
 *                         block 8
 *              version 3: flags 1 (bit 0: regular) | width 1 | rank 4 | regular: as version 2, else
 *                         blocks and their places as version 1, all of that width
 *   All ones as a count or block: unlimited.
 *
 * ERRORS   H5_FORMAT; H5_UNSUPPORTED points; H5_LIMIT H5_SELECT_RUNS_MAX
 * TESTS    t_h5_selection.c, test_h5virtual.py
 *
 * SPDX-License-Identifier: MIT
 */
#include <inttypes.h>

#include "h5_selection.h"

enum { FLAG_REGULAR = 1 };

static int cut_off(uint64_t addr, h5_error *err)
{
    return h5_fail(err, H5_FORMAT, addr, "selection: cut off");
}

/* Start, stride, count and block of every dimension, of `width` bytes each. */
static int parse_regular(h5_cur *c, unsigned width, uint64_t addr, h5_selection *s, h5_error *err)
{
    uint64_t ones = width == 8 ? UINT64_MAX : (1ull << 8 * width) - 1;
    for (int i = 0; i < s->rank; i++) {
        h5_select_dim *d = &s->dim[i];
        d->start = h5_cur_uint(c, width);
        d->stride = h5_cur_uint(c, width);
        d->count = h5_cur_uint(c, width);
        d->block = h5_cur_uint(c, width);
        if (c->bad)
            return cut_off(addr, err);
        d->count = d->count == ones ? UINT64_MAX : d->count;
        d->block = d->block == ones ? UINT64_MAX : d->block;
        int open = d->count == UINT64_MAX || d->block == UINT64_MAX;
        if (open &&
            (s->unlimited >= 0 || d->block == 0 || (d->block == UINT64_MAX && d->count != 1)))
            return h5_fail(err, H5_FORMAT, addr,
                           "selection: an unlimited dimension of such blocks");
        if (open)
            s->unlimited = i;
        if (d->count > 1 && (d->stride < d->block || d->stride == 0))
            return h5_fail(err, H5_FORMAT, addr,
                           "selection: blocks of %" PRIu64 " every %" PRIu64 " elements", d->block,
                           d->stride);
    }
    return H5_OK;
}

static int parse_blocks(h5_cur *c, unsigned width, uint64_t addr, h5_selection *s, h5_error *err)
{
    uint64_t n = h5_cur_uint(c, width), each = 2 * (uint64_t)s->rank * width;
    if (c->bad || s->rank == 0 || n > c->left / each)
        return cut_off(addr, err);
    s->nblock = n;
    s->width = width;
    s->blocks = h5_cur_take(c, (size_t)(n * each));
    if (n == 0)
        s->kind = H5_SELECT_NONE;
    return H5_OK;
}

static int parse_slab(h5_cur *c, unsigned version, uint64_t addr, h5_selection *s, h5_error *err)
{
    unsigned width = version == 1 ? 4 : 8, flags = version == 1 ? 0 : h5_cur_u8(c);
    if (version == 1)
        h5_cur_take(c, 8);
    else if (version == 2)
        h5_cur_take(c, 4);
    else
        width = h5_cur_u8(c);
    uint32_t rank = h5_cur_u32(c);
    if (c->bad)
        return cut_off(addr, err);
    if (version < 1 || version > 3 || rank > H5_RANK_MAX ||
        (width != 2 && width != 4 && width != 8))
        return h5_fail(err, H5_FORMAT, addr, "selection: version %u, rank %u, numbers of %u bytes",
                       version, (unsigned)rank, width);
    s->rank = (int)rank;
    return flags & FLAG_REGULAR || version == 2 ? parse_regular(c, width, addr, s, err)
                                                : parse_blocks(c, width, addr, s, err);
}

int h5_selection_parse(h5_cur *c, uint64_t addr, h5_selection *out, h5_error *err)
{
    memset(out, 0, sizeof *out);
    out->unlimited = -1;
    uint32_t kind = h5_cur_u32(c), version = h5_cur_u32(c);
    if (c->bad)
        return cut_off(addr, err);
    out->kind = kind <= H5_SELECT_ALL ? (int)kind : -1;
    if (kind == H5_SELECT_SLAB)
        return parse_slab(c, version, addr, out, err);
    if (kind == H5_SELECT_POINTS)
        return h5_fail(err, H5_UNSUPPORTED, addr, "selection of points");
    if (kind > H5_SELECT_ALL || version != 1)
        return h5_fail(err, H5_FORMAT, addr, "selection: kind %u version %u", (unsigned)kind,
                       (unsigned)version);
    return h5_cur_take(c, 8) ? H5_OK : cut_off(addr, err);
}

/* One stretch without gaps. */
static int is_dense(const h5_select_dim *d)
{
    return d->count == 1 || d->stride == d->block;
}

uint64_t h5_select_below(const h5_select_dim *d, uint64_t extent)
{
    if (extent <= d->start)
        return 0;
    uint64_t span = extent - d->start;
    if (is_dense(d))
        return span;
    uint64_t last = span % d->stride;
    return span / d->stride * d->block + (last < d->block ? last : d->block);
}

uint64_t h5_select_extent(const h5_select_dim *d, uint64_t n)
{
    uint64_t at = n, whole;
    if (n == 0)
        return 0;
    if (!is_dense(d)) {
        whole = (n - 1) / d->block; // blocks before the one that holds the last
        if (!h5_mul_fits(whole, d->stride, &at) || !h5_add_fits(at, (n - 1) % d->block + 1, &at))
            return UINT64_MAX;
    }
    return h5_add_fits(d->start, at, &at) ? at : UINT64_MAX;
}

void h5_selection_cut(h5_selection *s, uint64_t n)
{
    s->dim[s->unlimited].n = n;
    s->unlimited = -1;
}

static int by_place(const void *a, const void *b)
{
    uint64_t x = ((const h5_select_run *)a)->place, y = ((const h5_select_run *)b)->place;
    return x < y ? -1 : x > y;
}

/* First and last places of block b, which must lie inside the array. Gives its rows, 0 where it
** does not. */
static uint64_t block_bounds(const h5_selection *s, uint64_t b, uint64_t *first, uint64_t *last)
{
    size_t each = 2 * (size_t)s->rank * s->width;
    h5_cur c = h5_cur_on(s->blocks + b * each, each);
    uint64_t rows = 1;
    for (int i = 0; i < s->rank; i++)
        first[i] = h5_cur_uint(&c, s->width);
    for (int i = 0; i < s->rank; i++)
        last[i] = h5_cur_uint(&c, s->width);
    for (int i = 0; i < s->rank; i++)
        if (first[i] > last[i] || last[i] >= s->dims[i] ||
            (i + 1 < s->rank && !h5_mul_fits(rows, last[i] - first[i] + 1, &rows)))
            return 0;
    return rows;
}

/* Appends the rows of block b to the runs. */
static void add_rows(h5_selection *s, uint64_t b)
{
    uint64_t first[H5_RANK_MAX], last[H5_RANK_MAX], at[H5_RANK_MAX];
    uint64_t rows = block_bounds(s, b, first, last);
    int fast = s->rank - 1;
    memcpy(at, first, sizeof at);
    for (; rows > 0; rows--) {
        h5_select_run *r = &s->run[s->nrun++];
        r->place = 0;
        r->n = last[fast] - first[fast] + 1;
        for (int i = 0; i < s->rank; i++)
            r->place = r->place * s->dims[i] + at[i];
        for (int i = fast - 1; i >= 0; i--) {
            if (at[i]++ < last[i])
                break;
            at[i] = first[i];
        }
    }
}

/* Makes the sorted runs of a list of blocks. */
static int settle_blocks(h5_selection *s, uint64_t addr, h5_error *err)
{
    uint64_t first[H5_RANK_MAX], last[H5_RANK_MAX], rows = 0;
    for (uint64_t b = 0; b < s->nblock; b++) {
        uint64_t n = block_bounds(s, b, first, last);
        if (n == 0)
            return h5_fail(err, H5_FORMAT, addr, "selection: a block outside the array");
        if (n > H5_SELECT_RUNS_MAX || (rows += n) > H5_SELECT_RUNS_MAX)
            return h5_fail(err, H5_LIMIT, addr, "selection: more than H5_SELECT_RUNS_MAX = %u rows",
                           H5_SELECT_RUNS_MAX);
    }
    s->run = h5_alloc_array((size_t)rows, sizeof *s->run);
    s->nrun = 0;
    if (!s->run)
        return h5_fail_nomem(err, "a selection");
    for (uint64_t b = 0; b < s->nblock; b++)
        add_rows(s, b);
    qsort(s->run, s->nrun, sizeof *s->run, by_place);
    for (size_t i = 0; i < s->nrun; i++) {
        s->run[i].before = s->total;
        if (i > 0 && s->run[i].place - s->run[i - 1].place < s->run[i - 1].n)
            return h5_fail(err, H5_FORMAT, addr, "selection: blocks that overlap");
        if (!h5_add_fits(s->total, s->run[i].n, &s->total))
            return h5_fail(err, H5_FORMAT, addr, "selection: blocks that overlap");
    }
    return H5_OK;
}

int h5_selection_settle(h5_selection *s, int rank, const uint64_t *dims, uint64_t addr,
                        h5_error *err)
{
    h5_free(s->run);
    s->run = NULL;
    s->total = 0;
    memcpy(s->dims, dims, (size_t)rank * sizeof *dims);
    if (s->kind == H5_SELECT_NONE)
        return H5_OK;
    if (s->kind == H5_SELECT_ALL) {
        s->rank = rank;
        for (int i = 0; i < rank; i++)
            s->dim[i] = (h5_select_dim){0, 1, 1, dims[i], 0};
    }
    if (s->rank != rank)
        return h5_fail(err, H5_FORMAT, addr, "selection: rank %d in an array of rank %d", s->rank,
                       rank);
    if (s->nblock > 0)
        return settle_blocks(s, addr, err);
    uint64_t total = 1;
    for (int i = 0; i < rank; i++) {
        h5_select_dim *d = &s->dim[i];
        // One that was cut off knows its elements already.
        int cut = d->count == UINT64_MAX || d->block == UINT64_MAX;
        int fits = cut || h5_mul_fits(d->count, d->block, &d->n);
        if (!fits || h5_select_extent(d, d->n) > dims[i])
            return h5_fail(err, H5_FORMAT, addr,
                           "selection: %" PRIu64 " elements from %" PRIu64
                           " in dimension %d of size %" PRIu64,
                           d->n, d->start, i, dims[i]);
        if (!h5_mul_fits(total, d->n, &total))
            return h5_fail(err, H5_FORMAT, addr, "selection: more elements than 64 bits count");
    }
    s->total = total;
    return H5_OK;
}

static uint64_t at_run(const h5_selection *s, uint64_t n, uint64_t *place)
{
    size_t lo = 0, hi = s->nrun;
    while (hi - lo > 1) {
        size_t mid = (lo + hi) / 2;
        if (s->run[mid].before <= n)
            lo = mid;
        else
            hi = mid;
    }
    const h5_select_run *r = &s->run[lo];
    *place = r->place + (n - r->before);
    return r->n - (n - r->before);
}

uint64_t h5_selection_at(const h5_selection *s, uint64_t n, uint64_t *place)
{
    uint64_t step = 1, left = 1;
    *place = 0;
    if (s->run)
        return at_run(s, n, place);
    for (int i = s->rank; i-- > 0;) {
        const h5_select_dim *d = &s->dim[i];
        uint64_t in = n % d->n, gap = d->block - in % d->block;
        n /= d->n;
        *place += (h5_select_extent(d, in + 1) - 1) * step;
        if (i == s->rank - 1)
            left = is_dense(d) || d->n - in < gap ? d->n - in : gap;
        step *= s->dims[i];
    }
    return left;
}

void h5_selection_free(h5_selection *s)
{
    h5_free(s->run);
    s->run = NULL;
    s->nrun = 0;
}
