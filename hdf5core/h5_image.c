/*
 * h5_image.c - metadata cache images
 *
 * A writer may end by putting all metadata that it has in memory into one block, so that the next
 * one need not look for them. What stands at their own addresses then is old, or nothing: every
 * read of metadata takes the bytes of the block instead.
 *
 * FORMAT   HDF5 spec: VII.B "Metadata Cache Image"
 *   "MDCI" | version 0 | flags 1 | bytes of all 8 | entries 4 | entries | lookup3
 *   entry: type 1 | flags 1 | ring 1 | age 1 | children 2, dirty ones 2 | parents 2 | place in the
 *          order of use 4 | address 8 | bytes 8 | addresses of the parents 8 each | the bytes
 *   Numbers of 8 are as wide as the offsets or lengths of the file.
 *
 * ERRORS   H5_FORMAT
 * TESTS    t_h5_image.c, test_h5show.py
 *
 * SPDX-License-Identifier: MIT
 */
#include <inttypes.h>

#include "h5_file.h"
#include "h5_sum.h"

static int take_entry(h5_cur *c, const h5_file *f, h5_image_entry *out, h5_error *err)
{
    h5_cur_take(c, 8);
    size_t parents = h5_cur_u16(c);
    h5_cur_u32(c);
    out->addr = h5_cur_addr(c, f);
    out->n = h5_cur_length(c, f);
    h5_cur_take(c, parents * f->offsets);
    if (c->bad || out->n > c->left)
        return h5_fail(err, H5_FORMAT, H5_UNDEF, "metadata cache image: cut off");
    out->p = h5_cur_take(c, (size_t)out->n);
    return h5_file_inside(f, out->addr, out->n, "metadata cache image", err);
}

static int by_addr(const void *a, const void *b)
{
    uint64_t x = ((const h5_image_entry *)a)->addr, y = ((const h5_image_entry *)b)->addr;
    return x < y ? -1 : x > y;
}

static int parse(h5_file *f, uint64_t addr, size_t n, h5_image *im, h5_error *err)
{
    h5_cur c = h5_cur_on(im->bytes, n - 4);
    int sig = h5_cur_sig(&c, "MDCI");
    unsigned version = h5_cur_u8(&c);
    h5_cur_u8(&c);
    h5_cur_length(&c, f);
    size_t entries = h5_cur_u32(&c), least = 14 + f->offsets + f->lengths;
    if (!sig || version != 0 || c.bad || entries > c.left / least)
        return h5_fail(err, H5_FORMAT, addr, "metadata cache image: version %u, %zu entries",
                       version, entries);
    H5_TRY(h5_sum_check(im->bytes, n, "metadata cache image", addr, err));
    im->entry = h5_alloc_array(entries, sizeof *im->entry);
    if (!im->entry)
        return h5_fail_nomem(err, "a metadata cache image");
    for (im->n = 0; im->n < entries; im->n++)
        H5_TRY(take_entry(&c, f, &im->entry[im->n], err));
    qsort(im->entry, entries, sizeof *im->entry, by_addr);
    for (size_t i = 1; i < entries; i++)
        if (im->entry[i].addr - im->entry[i - 1].addr < im->entry[i - 1].n)
            return h5_fail(err, H5_FORMAT, addr, "metadata cache image: entries that overlap");
    return H5_OK;
}

int h5_image_load(h5_file *f, uint64_t addr, uint64_t n, h5_image *out, h5_error *err)
{
    memset(out, 0, sizeof *out);
    if (n < 18 || n > SIZE_MAX / 2)
        return h5_fail(err, H5_FORMAT, addr, "metadata cache image: %" PRIu64 " bytes", n);
    H5_TRY(h5_file_load(f, addr, n, "metadata cache image", &out->bytes, err));
    int rc = parse(f, addr, (size_t)n, out, err);
    if (rc != H5_OK)
        h5_image_free(out);
    return rc;
}

void h5_image_apply(const h5_image *im, uint64_t addr, uint8_t *buf, size_t n)
{
    size_t lo = 0, hi = im->n;
    while (lo < hi) { // the first entry that ends behind addr
        size_t mid = (lo + hi) / 2;
        if (im->entry[mid].addr + im->entry[mid].n <= addr)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (; lo < im->n && im->entry[lo].addr < addr + n; lo++) {
        const h5_image_entry *e = &im->entry[lo];
        uint64_t from = e->addr > addr ? e->addr : addr;
        uint64_t to = e->addr + e->n < addr + n ? e->addr + e->n : addr + n;
        if (from < to)
            memcpy(buf + (from - addr), e->p + (from - e->addr), (size_t)(to - from));
    }
}

void h5_image_free(h5_image *im)
{
    h5_free(im->bytes);
    h5_free(im->entry);
    memset(im, 0, sizeof *im);
}
