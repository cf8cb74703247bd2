/*
 * h5_earray.c - extensible array chunk index, read
 *
 * A look-up reads the index block, at most a super block, and the data block or page that holds the
 * element. All of them are kept until the index is closed: the order of the grid is not that of the
 * elements where the unlimited dimension is not the slowest, and a block must not be read again for
 * each row.
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
 *                use, one behind the other, in room for whole bytes a data block | data blocks 8
 *                each | lookup3
 *   data block:  "EADB" | version 0 | client 1 | header 8 | first element | elements, unless paged
 *     |
 *                lookup3 | paged: pages of elements, each with its lookup3
 *   element:     chunk 8, filtered also: stored bytes, mask 4
 *
 * ERRORS   H5_FORMAT
 * TESTS    t_h5_earray.c, t_h5_index.c, test_h5show.py
 *
 * SPDX-License-Identifier: MIT
 */
#include <inttypes.h>

#include "h5_cidx.h"
#include "h5_keep.h"
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
    uint64_t left;                   /* bytes of blocks that may still be read */
    int unlimited;                   /* the dimension */
    uint64_t step[H5_RANK_MAX];      /* elements from one chunk to the next in a dimension */
    uint64_t index;                  /* address of the index block, H5_UNDEF = none */
    uint64_t index_bytes;
    unsigned supers, direct; /* super blocks; the first of them are named by the index block */
    h5_keep blocks;
} earray;

static unsigned log2_of(uint64_t v)
{
    unsigned n = 0;
    while (n < 63 && v >> (n + 1))
        n++;
    return n;
}

/* How the numbers of elements follow from places: the unlimited dimension is the slowest. */
static int settle_grid(earray *a, h5_error *err)
{
    const h5_dataset_info *d = a->ix->o->info;
    uint64_t per = 1, end;
    a->unlimited = -1;
    for (int i = d->rank; i-- > 0;)
        if (d->maxdims[i] == UINT64_MAX)
            a->unlimited = i;
    for (int i = d->rank; i-- > 0;) {
        a->step[i] = per;
        if (i != a->unlimited && (d->maxdims[i] == UINT64_MAX ||
                                  !h5_mul_fits(per, h5_div_up(d->maxdims[i], d->chunk[i]), &per)))
            return h5_fail(err, H5_FORMAT, a->addr, "extensible array: dimensions");
    }
    if (a->unlimited < 0 || !h5_mul_fits(per, a->ix->grid.n[a->unlimited], &end))
        return h5_fail(err, H5_FORMAT, a->addr, "extensible array: no unlimited dimension");
    a->step[a->unlimited] = per;
    return H5_OK;
}

static int parse_header(earray *a, h5_error *err)
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
    a->index = h5_cur_addr(&c, f);
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

/* A block of n bytes, of which the last four are the checksum; read once, then kept. */
static int load(earray *a, uint64_t addr, uint64_t n, const char *sig, const uint8_t **out,
                h5_error *err)
{
    const h5_kept *kept = h5_keep_find(&a->blocks, addr, n);
    uint8_t *p;
    *out = kept ? kept->p : NULL;
    if (kept)
        return H5_OK;
    if (n > a->left)
        return h5_fail(err, H5_FORMAT, addr,
                       "extensible array: its blocks are longer than the file");
    a->left -= n;
    H5_TRY(h5_file_load(a->ix->f, addr, n, "extensible array block", &p, err));
    int rc = h5_sum_check(p, (size_t)n, "extensible array block", addr, err);
    h5_cur c = h5_cur_on(p, (size_t)n);
    if (rc == H5_OK && sig &&
        (!h5_cur_sig(&c, sig) || h5_cur_u8(&c) != 0 || h5_cur_u8(&c) != (unsigned)a->filtered ||
         h5_cur_addr(&c, a->ix->f) != a->addr))
        rc = h5_fail(err, H5_FORMAT, addr, "extensible array: no %s block at %" PRIu64, sig, addr);
    if (rc != H5_OK) {
        h5_free(p);
        return rc;
    }
    *out = p;
    return h5_keep_add(&a->blocks, addr, n, p, err);
}

static void take_element(const earray *a, const uint8_t *p, h5_chunk *out)
{
    h5_cur c = h5_cur_on(p, a->element);
    out->addr = h5_cur_addr(&c, a->ix->f);
    out->size = a->ix->o->info->size;
    if (a->filtered) {
        out->size = h5_cur_uint(&c, a->width);
        out->mask = h5_cur_u32(&c);
    }
}

/* Element e of the data block of n elements at addr; pages: which pages of the super block are in
** use, the block's own from bit `bit` on; NULL where it has none. */
static int in_data_block(earray *a, uint64_t addr, uint64_t n, uint64_t e, const uint8_t *pages,
                         uint64_t bit, h5_chunk *out, h5_error *err)
{
    const uint8_t *p;
    uint64_t head = a->block_head + a->offset_bytes, page = 1ull << a->page_bits;
    if (addr == H5_UNDEF)
        return H5_OK;
    if (n > a->ix->f->most / a->element)
        return h5_fail(err, H5_FORMAT, addr, "extensible array: %" PRIu64 " elements", n);
    if (!pages) {
        H5_TRY(load(a, addr, head + n * a->element + 4, "EADB", &p, err));
        take_element(a, p + head + e * a->element, out);
        return H5_OK;
    }
    uint64_t no = e / page, bytes = page * a->element + 4;
    bit += no;
    if (!(pages[bit / 8] & 0x80 >> bit % 8))
        return H5_OK;
    H5_TRY(load(a, addr, head + 4, "EADB", &p, err));
    H5_TRY(load(a, addr + head + 4 + no * bytes, bytes, NULL, &p, err));
    take_element(a, p + e % page * a->element, out);
    return H5_OK;
}

/* Element e of super block u, which stands at addr. */
static int in_super_block(earray *a, uint64_t addr, unsigned u, uint64_t e, h5_chunk *out,
                          h5_error *err)
{
    uint64_t blocks = 1ull << u / 2, n = a->least << (u + 1) / 2, page = 1ull << a->page_bits;
    uint64_t row = n > page ? h5_div_up(n / page, 8) : 0, offsets = a->ix->f->offsets;
    uint64_t head = a->block_head + a->offset_bytes, most = a->ix->f->most;
    const uint8_t *p;
    if (addr == H5_UNDEF)
        return H5_OK;
    if (blocks > most / 8 || row > most / blocks)
        return h5_fail(err, H5_FORMAT, addr, "extensible array: %" PRIu64 " data blocks", blocks);
    H5_TRY(load(a, addr, head + blocks * (row + offsets) + 4, "EASB", &p, err));
    uint64_t i = e / n;
    return in_data_block(a, h5_addr_at(p + head + blocks * row + offsets * i, a->ix->f), n, e % n,
                         row ? p + head : NULL, i * (n / page), out, err);
}

/* Super block u has 1 << u/2 data blocks of `least` << (u+1)/2 elements. */
int h5_earray_get(h5_cidx *ix, const uint64_t *at, uint64_t slot, h5_chunk *out, h5_error *err)
{
    earray *a = ix->state;
    const h5_file *f = ix->f;
    const uint8_t *p;
    uint64_t e = 0, before = 0; // data blocks of the super blocks before
    (void)slot;
    for (int i = 0; i < ix->grid.rank; i++)
        e += at[i] * a->step[i];
    if (a->index == H5_UNDEF)
        return H5_OK;
    H5_TRY(load(a, a->index, a->index_bytes, "EAIB", &p, err));
    if (e < a->first) {
        take_element(a, p + a->block_head + e * a->element, out);
        return H5_OK;
    }
    e -= a->first;
    p += a->block_head + a->first * a->element;
    for (unsigned u = 0; u < a->supers; u++) {
        uint64_t blocks = 1ull << u / 2, n = a->least << (u + 1) / 2;
        if (e >> (u + 1) / 2 >= blocks * a->least) {
            e -= blocks * n;
            before += blocks;
            continue;
        }
        if (u < a->direct)
            return in_data_block(a, h5_addr_at(p + f->offsets * (before + e / n), f), n, e % n,
                                 NULL, 0, out, err);
        uint64_t named = 2 * (a->pointers - 1) + (u - a->direct);
        return in_super_block(a, h5_addr_at(p + f->offsets * named, f), u, e, out, err);
    }
    return H5_OK;
}

int h5_earray_open(h5_cidx *ix, h5_error *err)
{
    earray *a = ix->state = h5_calloc(1, sizeof *a);
    if (!a)
        return h5_fail_nomem(err, "a chunk index");
    a->ix = ix;
    a->addr = ix->o->info->addr;
    a->filtered = ix->o->info->pipeline.n > 0;
    a->width = h5_cidx_size_width(ix->o);
    a->left = ix->f->most;
    H5_TRY(parse_header(a, err));
    H5_TRY(settle_grid(a, err));
    a->supers = 1 + a->bits - log2_of(a->least);
    a->direct = 2 * log2_of(a->pointers);
    uint64_t named = a->supers > a->direct ? a->supers - a->direct : 0;
    a->index_bytes = a->block_head + a->first * a->element +
                     ix->f->offsets * (2 * (a->pointers - 1) + named) + 4;
    return H5_OK;
}

void h5_earray_close(h5_cidx *ix)
{
    earray *a = ix->state;
    if (a)
        h5_keep_free(&a->blocks);
    h5_free(a);
}
