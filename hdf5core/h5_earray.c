/*
 * h5_earray.c - extensible array chunk index, read
 *
 * One dimension of the dataset is unlimited. The elements of the array count its chunks with that
 * dimension as the slowest, the others by their maximum sizes. The first elements stand in the
 * index
 * block; then come data blocks in groups ("super blocks") of growing number and size, those of the
 * first groups named by the index block itself.
 *
 * FORMAT   HDF5 spec: "Extensible Array Index"
 *   header:      "EAHD" | version 0 | client 1 | element bytes 1 | bits of the count 1 | elements
 *     in
 *                the index block 1 | least elements of a data block 1 | least data blocks of a
 *                  super
 *                block 1 | bits of a page 1 | 6 numbers of 8, the fifth the largest element in use
 *                  + 1 |
 *                index block 8 | lookup3
 *   index block: "EAIB" | version 0 | client 1 | header 8 | elements | data blocks 8 each | super
 *                blocks 8 each | lookup3
 *   super block: "EASB" | version 0 | client 1 | header 8 | first element | paged: bits of pages in
 *                use, a row of bytes a data block | data blocks 8 each | lookup3
 *   data block:  "EADB" | version 0 | client 1 | header 8 | first element | elements, unless paged
 *     |
 *                lookup3 | paged: pages of elements, each with its lookup3
 *   element:     chunk 8, filtered also: stored bytes, mask 4
 *
 * ERRORS   H5_FORMAT
 * TESTS    test_h5show.py
 *
 * SPDX-License-Identifier: MIT
 */
#include <inttypes.h>

#include "h5_cidx.h"
#include "h5_sum.h"

enum { HEADER_MOST = 72 };

typedef struct earray {
    h5_cidx *ix;
    uint64_t addr;
    int filtered;
    unsigned width; /* of a stored size */
    unsigned element, bits, offset_bytes, page_bits;
    size_t block_head;               /* bytes of a block before what is its own */
    uint64_t first, least, pointers; /* of the header, in this order after the bits */
    uint64_t next;                   /* number of the next element */
    uint64_t end;                    /* elements that the current size needs */
    uint64_t left;                   /* bytes of blocks that may still be read */
    int unlimited;                   /* the dimension */
    uint64_t most[H5_RANK_MAX];      /* chunks a dimension by the maximum size */
} earray;

static unsigned log2_of(uint64_t v)
{
    unsigned n = 0;
    while (n < 63 && v >> (n + 1))
        n++;
    return n;
}

/* How the numbers of elements follow from places. */
static int settle_grid(earray *a, h5_error *err)
{
    const h5_dataset_info *d = &a->ix->o->info;
    uint64_t per = 1;
    a->unlimited = -1;
    for (int i = 0; i < d->rank; i++) {
        if (d->maxdims[i] == UINT64_MAX && a->unlimited < 0) {
            a->unlimited = i;
            continue;
        }
        a->most[i] = h5_div_up(d->maxdims[i], d->chunk[i]);
        if (d->maxdims[i] == UINT64_MAX || !h5_mul_fits(per, a->most[i], &per))
            return h5_fail(err, H5_FORMAT, a->addr, "extensible array: dimensions");
    }
    if (a->unlimited < 0 || !h5_mul_fits(per, a->ix->grid.n[a->unlimited], &a->end))
        return h5_fail(err, H5_FORMAT, a->addr, "extensible array: no unlimited dimension");
    return H5_OK;
}

static int parse_header(earray *a, uint64_t *index, h5_error *err)
{
    const h5_file *f = a->ix->f;
    uint8_t p[HEADER_MOST];
    size_t bytes = 16 + 6 * (size_t)f->lengths + f->offsets;
    H5_TRY(h5_file_read(a->ix->f, a->addr, p, bytes, "extensible array", err));
    h5_cur c = h5_cur_on(p, bytes);
    if (!h5_cur_sig(&c, "EAHD"))
        return h5_fail(err, H5_FORMAT, a->addr, "extensible array: no signature");
    H5_TRY(h5_sum_check(p, bytes, "extensible array", a->addr, err));
    unsigned version = h5_cur_u8(&c), client = h5_cur_u8(&c);
    a->element = h5_cur_u8(&c);
    a->bits = h5_cur_u8(&c);
    a->first = h5_cur_u8(&c);
    a->least = h5_cur_u8(&c);
    a->pointers = h5_cur_u8(&c);
    a->page_bits = h5_cur_u8(&c);
    h5_cur_take(&c, 6 * (size_t)f->lengths);
    *index = h5_cur_addr(&c, f);
    unsigned want = f->offsets + (a->filtered ? a->width + 4 : 0);
    a->block_head = 6 + f->offsets;
    if (version != 0 || client != (unsigned)a->filtered || a->element != want)
        return h5_fail(err, H5_FORMAT, a->addr,
                       "extensible array: version %u, client %u, elements of %u bytes", version,
                       client, a->element);
    if (a->bits == 0 || a->bits > 64 || a->least == 0 || a->least & (a->least - 1) ||
        a->pointers < 2 || a->pointers & (a->pointers - 1) || a->page_bits == 0 ||
        a->page_bits > 63 || log2_of(a->least) > a->bits)
        return h5_fail(err, H5_FORMAT, a->addr, "extensible array: %u bits, blocks of %" PRIu64,
                       a->bits, a->least);
    a->offset_bytes = (a->bits + 7) / 8;
    return H5_OK;
}

/* Takes n elements at p. */
static int add_elements(earray *a, const uint8_t *p, uint64_t n, h5_error *err)
{
    for (uint64_t i = 0; i < n && a->next < a->end; i++, a->next++) {
        uint64_t at[H5_RANK_MAX], rest = a->next;
        h5_cur c = h5_cur_on(p + i * a->element, a->element);
        h5_chunk chunk = {.addr = h5_cur_addr(&c, a->ix->f), .size = a->ix->o->info.size};
        if (chunk.addr == H5_UNDEF)
            continue;
        if (a->filtered) {
            chunk.size = h5_cur_uint(&c, a->width);
            chunk.mask = h5_cur_u32(&c);
        }
        for (int k = a->ix->grid.rank; k-- > 0;) {
            if (k == a->unlimited)
                continue;
            at[k] = rest % a->most[k];
            rest /= a->most[k];
        }
        at[a->unlimited] = rest;
        H5_TRY(h5_cidx_add(a->ix, at, &chunk, err));
    }
    return H5_OK;
}

/* Reads a block of n bytes, of which the last four are the checksum. */
static int load(earray *a, uint64_t addr, uint64_t n, const char *sig, uint8_t **out, h5_error *err)
{
    *out = NULL;
    if (n > a->left)
        return h5_fail(err, H5_FORMAT, addr,
                       "extensible array: its blocks are longer than the file");
    a->left -= n;
    H5_TRY(h5_file_load(a->ix->f, addr, n, "extensible array block", out, err));
    int rc = h5_sum_check(*out, (size_t)n, "extensible array block", addr, err);
    h5_cur c = h5_cur_on(*out, (size_t)n);
    if (rc == H5_OK && sig &&
        (!h5_cur_sig(&c, sig) || h5_cur_u8(&c) != 0 || h5_cur_u8(&c) != (unsigned)a->filtered ||
         h5_cur_addr(&c, a->ix->f) != a->addr))
        rc = h5_fail(err, H5_FORMAT, addr, "extensible array: no %s block at %" PRIu64, sig, addr);
    if (rc != H5_OK) {
        h5_free(*out);
        *out = NULL;
    }
    return rc;
}

/* Elements that are not stored. */
static void skip(earray *a, uint64_t n)
{
    a->next = n < a->end - a->next ? a->next + n : a->end;
}

/* A data block of n elements; pages: which of its pages are in use. */
static int data_block(earray *a, uint64_t addr, uint64_t n, const uint8_t *pages, h5_error *err)
{
    uint8_t *p;
    uint64_t head = a->block_head + a->offset_bytes, page = 1ull << a->page_bits;
    if (a->next >= a->end)
        return H5_OK;
    if (addr == H5_UNDEF) {
        skip(a, n);
        return H5_OK;
    }
    if (!pages) {
        if (n > a->left / a->element)
            return h5_fail(err, H5_FORMAT, addr, "extensible array: %" PRIu64 " elements", n);
        H5_TRY(load(a, addr, head + n * a->element + 4, "EADB", &p, err));
        int rc = add_elements(a, p + head, n, err);
        h5_free(p);
        return rc;
    }
    H5_TRY(load(a, addr, head + 4, "EADB", &p, err));
    h5_free(p);
    for (uint64_t i = 0; i < n / page && a->next < a->end; i++) {
        uint64_t bytes = page * a->element + 4;
        if (!(pages[i / 8] & 0x80 >> i % 8)) {
            skip(a, page);
            continue;
        }
        H5_TRY(load(a, addr + head + 4 + i * bytes, bytes, NULL, &p, err));
        int rc = add_elements(a, p, page, err);
        h5_free(p);
        H5_TRY(rc);
    }
    return H5_OK;
}

/* Super block u has 1 << u/2 data blocks of `least` << (u+1)/2 elements. */
static int super_block(earray *a, uint64_t addr, unsigned u, h5_error *err)
{
    uint64_t blocks = 1ull << u / 2, n = a->least << (u + 1) / 2, page = 1ull << a->page_bits;
    uint64_t row = n > page ? h5_div_up(n / page, 8) : 0;
    uint64_t head = a->block_head + a->offset_bytes;
    uint64_t width = a->ix->f->offsets;
    uint8_t *p;
    if (addr == H5_UNDEF) {
        skip(a, blocks * n);
        return H5_OK;
    }
    if (blocks > a->left / width || row > a->left / blocks)
        return h5_fail(err, H5_FORMAT, addr, "extensible array: %" PRIu64 " data blocks", blocks);
    H5_TRY(load(a, addr, head + blocks * (row + width) + 4, "EASB", &p, err));
    int rc = H5_OK;
    const uint8_t *to = p + head + blocks * row;
    for (uint64_t i = 0; rc == H5_OK && i < blocks && a->next < a->end; i++)
        rc = data_block(a, h5_addr_at(to + width * i, a->ix->f), n, row ? p + head + i * row : NULL,
                        err);
    h5_free(p);
    return rc;
}

int h5_earray_open(h5_cidx *ix, h5_error *err)
{
    earray a = {.ix = ix,
                .addr = ix->o->info.addr,
                .filtered = ix->o->info.pipeline.n > 0,
                .width = h5_cidx_size_width(ix->o),
                .left = ix->f->most};
    uint64_t index = H5_UNDEF, width = ix->f->offsets;
    uint8_t *p;
    H5_TRY(parse_header(&a, &index, err));
    H5_TRY(settle_grid(&a, err));
    if (index == H5_UNDEF)
        return H5_OK;
    unsigned supers = 1 + a.bits - log2_of(a.least), direct = 2 * log2_of(a.pointers);
    uint64_t blocks = 2 * (a.pointers - 1);
    unsigned named = supers > direct ? supers - direct : 0;
    H5_TRY(load(&a, index, a.block_head + a.first * a.element + width * (blocks + named) + 4,
                "EAIB", &p, err));
    const uint8_t *at = p + a.block_head + a.first * a.element;
    int rc = add_elements(&a, p + a.block_head, a.first, err);
    for (unsigned u = 0; rc == H5_OK && u < supers && u < direct && a.next < a.end; u++)
        for (uint64_t i = 0; rc == H5_OK && i < 1ull << u / 2; i++, at += width)
            rc = data_block(&a, h5_addr_at(at, ix->f), a.least << (u + 1) / 2, NULL, err);
    at = p + a.block_head + a.first * a.element + width * blocks;
    for (unsigned u = direct; rc == H5_OK && u < supers && a.next < a.end; u++, at += width)
        rc = super_block(&a, h5_addr_at(at, ix->f), u, err);
    h5_free(p);
    return rc;
}
