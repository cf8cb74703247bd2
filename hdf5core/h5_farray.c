/*
 * h5_farray.c - fixed array chunk index, read and written
 *
 * An array with one entry for each chunk that the maximum size of the dataset can have. Small
 * arrays are one block; beyond 2^page bits entries the block holds a bitmap of the pages in use,
 * and the pages follow it. A look-up reads the page it needs.
 *
 * FORMAT   HDF5 spec: III.G "Fixed Array Index"
 *   header, 28 bytes:  "FAHD" | 0 | client 1 (0 plain, 1 filtered) | entry bytes 1 |
 *                      page bits 1 | number of entries 8 | address of the block 8 | lookup3
 *   block, not paged:  "FADB" | 0 | client 1 | address of the header 8 | entries | lookup3
 *   block, paged:      "FADB" | 0 | client 1 | address of the header 8 | bitmap, most significant
 *                      bit first | lookup3, and behind it the pages
 *   page:              entries | lookup3; the last page is short
 *   plain entry:       address 8
 *   filtered entry:    address 8 | stored size, width below | filter mask 4
 *   The page bits of the header count, not those of the layout message. The width of a stored
 *   size is 1 + (floor(log2(chunk bytes)) + 8) / 8, at most 8; under layout version 5 it is 8.
 *
 * ERRORS   H5_FORMAT; H5_MISUSE for chunks that cannot be written; H5_NOMEM
 * TESTS    t_h5_farray.c
 *
 * SPDX-License-Identifier: MIT
 */
#include <assert.h>
#include <inttypes.h>

#include "h5_farray.h"
#include "h5_sum.h"

enum { HEADER_BYTES = 28, SUM_BYTES = 4 };

/* Bytes of a stored chunk size in a filtered entry. */
static unsigned size_width(uint64_t chunk_bytes)
{
    unsigned log2 = 0;
    while (chunk_bytes >> log2 > 1)
        log2++;
    unsigned width = 1 + (log2 + 8) / 8;
    return width > 8 ? 8 : width;
}

static unsigned entry_width(int filtered, unsigned size_bytes)
{
    return filtered ? 8 + size_bytes + 4 : 8;
}

/* ------------------------------------------------------------------------------------- reading */

static size_t header_bytes(const h5_file *f)
{
    return 12 + f->lengths + f->offsets;
}

static size_t prefix_bytes(const h5_file *f)
{
    return 6 + f->offsets;
}

static int parse_header(h5_cidx *ix, const uint8_t *p, h5_error *err)
{
    uint64_t addr = ix->o->info->addr;
    const h5_file *f = ix->f;
    size_t bytes = header_bytes(f);
    h5_cur c = h5_cur_on(p, bytes);
    if (!h5_cur_sig(&c, "FAHD"))
        return h5_fail(err, H5_FORMAT, addr, "fixed array: no signature at %" PRIu64, addr);
    H5_TRY(h5_sum_check(p, bytes, "fixed array", addr, err));
    unsigned version = h5_cur_u8(&c), client = h5_cur_u8(&c);
    ix->entry_bytes = h5_cur_u8(&c);
    ix->page_bits = h5_cur_u8(&c);
    uint64_t entries = h5_cur_length(&c, f);
    ix->block = h5_cur_addr(&c, f);
    ix->filtered = ix->o->info->pipeline.n > 0;
    if (version != 0 || client != (unsigned)ix->filtered)
        return h5_fail(err, H5_FORMAT, addr, "fixed array: version %u, client %u", version, client);
    unsigned width = ix->o->layout.wide_sizes ? f->lengths : size_width(ix->o->info->size);
    if (ix->entry_bytes != f->offsets + (ix->filtered ? width + 4 : 0))
        return h5_fail(err, H5_FORMAT, addr, "fixed array: entries of %u bytes", ix->entry_bytes);
    if (ix->page_bits == 0 || ix->page_bits > H5_FARRAY_PAGE_BITS_MAX)
        return h5_fail(err, H5_FORMAT, addr, "fixed array: %u page bits", ix->page_bits);
    if (ix->grid.slots == 0 || entries != ix->grid.slots)
        return h5_fail(err, H5_FORMAT, addr,
                       "fixed array: %" PRIu64 " entries for %" PRIu64 " chunks", entries,
                       ix->grid.slots);
    return H5_OK;
}

/* Signature, version, client and header address of the block. */
static int check_prefix(h5_cidx *ix, const uint8_t *p, h5_error *err)
{
    h5_cur c = h5_cur_on(p, prefix_bytes(ix->f));
    if (!h5_cur_sig(&c, "FADB"))
        return h5_fail(err, H5_FORMAT, ix->block, "fixed array block: no signature at %" PRIu64,
                       ix->block);
    unsigned version = h5_cur_u8(&c), client = h5_cur_u8(&c);
    uint64_t header = h5_cur_addr(&c, ix->f);
    if (version != 0 || client != (unsigned)ix->filtered || header != ix->o->info->addr)
        return h5_fail(err, H5_FORMAT, ix->block,
                       "fixed array block: version %u, client %u, header at %" PRIu64, version,
                       client, header);
    return H5_OK;
}

/* Not paged: the whole block. Its entries become the one page. */
static int load_block(h5_cidx *ix, h5_error *err)
{
    uint64_t n = ix->grid.slots * ix->entry_bytes, head = prefix_bytes(ix->f),
             whole = head + n + SUM_BYTES;
    uint8_t *p;
    H5_TRY(h5_file_load(ix->f, ix->block, whole, "fixed array block", &p, err));
    int rc = check_prefix(ix, p, err);
    if (rc == H5_OK)
        rc = h5_sum_check(p, (size_t)whole, "fixed array block", ix->block, err);
    if (rc != H5_OK) {
        h5_free(p);
        return rc;
    }
    memmove(p, p + head, (size_t)n);
    ix->page = p;
    ix->page_no = 0;
    return H5_OK;
}

/* Paged: prefix and bitmap. The pages themselves are read when they are needed. */
static int load_bitmap(h5_cidx *ix, uint64_t pages, h5_error *err)
{
    uint64_t n = h5_div_up(pages, 8), head = prefix_bytes(ix->f), whole = head + n + SUM_BYTES;
    uint8_t *p;
    H5_TRY(h5_file_load(ix->f, ix->block, whole, "fixed array block", &p, err));
    int rc = check_prefix(ix, p, err);
    if (rc == H5_OK)
        rc = h5_sum_check(p, (size_t)whole, "fixed array block", ix->block, err);
    if (rc != H5_OK) {
        h5_free(p);
        return rc;
    }
    memmove(p, p + head, (size_t)n);
    ix->bitmap = p;
    ix->block_bytes = whole;
    return H5_OK;
}

int h5_farray_open(h5_cidx *ix, h5_error *err)
{
    uint8_t head[HEADER_BYTES];
    uint64_t bytes, pages;
    H5_TRY(h5_file_read(ix->f, ix->o->info->addr, head, header_bytes(ix->f), "fixed array", err));
    H5_TRY(parse_header(ix, head, err));
    if (ix->block == H5_UNDEF)
        return H5_OK;
    // All entries lie in the file, used or not; this bounds what follows.
    if (!h5_mul_fits(ix->grid.slots, ix->entry_bytes, &bytes))
        return h5_fail(err, H5_FORMAT, ix->block, "fixed array: %" PRIu64 " entries",
                       ix->grid.slots);
    H5_TRY(h5_file_inside(ix->f, ix->block, bytes, "fixed array block", err));
    if (ix->grid.slots <= 1ull << ix->page_bits)
        return load_block(ix, err);
    pages = ((ix->grid.slots - 1) >> ix->page_bits) + 1;
    return load_bitmap(ix, pages, err);
}

/* Makes page `no` the one in memory. */
static int load_page(h5_cidx *ix, uint64_t no, h5_error *err)
{
    uint64_t full = 1ull << ix->page_bits, first = no << ix->page_bits;
    uint64_t left = ix->grid.slots - first, n = left < full ? left : full;
    // Pages before this one are full; inside the file no product here can overflow
    // (h5_farray_open).
    uint64_t addr = ix->block + ix->block_bytes + no * (full * ix->entry_bytes + SUM_BYTES);
    uint64_t bytes = n * ix->entry_bytes + SUM_BYTES;
    h5_free(ix->page);
    ix->page = NULL;
    H5_TRY(h5_file_load(ix->f, addr, bytes, "fixed array page", &ix->page, err));
    int rc = h5_sum_check(ix->page, (size_t)bytes, "fixed array page", addr, err);
    if (rc != H5_OK) {
        h5_free(ix->page);
        ix->page = NULL;
        return rc;
    }
    ix->page_no = no;
    return H5_OK;
}

int h5_farray_get(h5_cidx *ix, const uint64_t *at, uint64_t slot, h5_chunk *out, h5_error *err)
{
    (void)at;
    assert(slot < ix->grid.slots);
    uint64_t no = 0;
    if (ix->block == H5_UNDEF)
        return H5_OK;
    if (ix->bitmap) {
        no = slot >> ix->page_bits;
        if (!(ix->bitmap[no / 8] & 0x80 >> no % 8))
            return H5_OK;
        if (!ix->page || ix->page_no != no)
            H5_TRY(load_page(ix, no, err));
        slot &= (1ull << ix->page_bits) - 1;
    }
    const uint8_t *p = ix->page + slot * ix->entry_bytes;
    h5_cur c = h5_cur_on(p, ix->entry_bytes);
    out->addr = h5_cur_addr(&c, ix->f);
    out->size = ix->o->info->size;
    if (ix->filtered) {
        out->size = h5_cur_uint(&c, ix->entry_bytes - ix->f->offsets - 4);
        out->mask = h5_cur_u32(&c);
    }
    return H5_OK;
}

/* ------------------------------------------------------------------------------------- writing */

static void put_entries(h5_buf *b, const h5_chunk *chunks, uint64_t n, unsigned entry_bytes)
{
    for (uint64_t i = 0; i < n; i++) {
        h5_buf_u64(b, chunks[i].addr);
        if (entry_bytes == 8)
            continue;
        int stored = chunks[i].addr != H5_UNDEF;
        h5_buf_uint(b, stored ? chunks[i].size : 0, entry_bytes - 12);
        h5_buf_u32(b, stored ? chunks[i].mask : 0);
    }
}

static int check_chunks(const h5_chunk *chunks, uint64_t n, int filtered, uint64_t chunk_bytes,
                        h5_error *err)
{
    unsigned width = filtered ? size_width(chunk_bytes) : 8;
    for (uint64_t i = 0; i < n; i++) {
        const h5_chunk *c = &chunks[i];
        if (c->addr == H5_UNDEF)
            continue;
        if (filtered ? c->size == 0 || (width < 8 && c->size >> 8 * width)
                     : c->size != chunk_bytes || c->mask)
            return h5_fail(err, H5_MISUSE, c->addr,
                           "fixed array: chunk %" PRIu64 " of %" PRIu64 " bytes, mask %x", i,
                           c->size, (unsigned)c->mask);
    }
    return H5_OK;
}

/* Header and block for an array at address `at`. */
static void build(h5_buf *b, const h5_chunk *chunks, uint64_t n, int filtered, unsigned entry_bytes,
                  unsigned page_bits, uint64_t at)
{
    uint64_t page = 1ull << page_bits, pages = h5_div_up(n, page);
    h5_buf_put(b, "FAHD", 4);
    h5_buf_u8(b, 0);
    h5_buf_u8(b, filtered);
    h5_buf_u8(b, entry_bytes);
    h5_buf_u8(b, page_bits);
    h5_buf_u64(b, n);
    h5_buf_u64(b, at + HEADER_BYTES);
    h5_sum_put(b, 0);
    size_t block = b->n;
    h5_buf_put(b, "FADB", 4);
    h5_buf_u8(b, 0);
    h5_buf_u8(b, filtered);
    h5_buf_u64(b, at);
    if (n <= page) {
        put_entries(b, chunks, n, entry_bytes);
        h5_sum_put(b, block);
        return;
    }
    uint8_t *bits = h5_buf_room(b, (size_t)h5_div_up(pages, 8));
    if (bits)
        memset(bits, 0, (size_t)h5_div_up(pages, 8));
    for (uint64_t i = 0; bits && i < pages; i++)
        bits[i / 8] |= (uint8_t)(0x80 >> i % 8);
    h5_sum_put(b, block);
    for (uint64_t i = 0; i < pages; i++) {
        size_t from = b->n;
        put_entries(b, chunks + i * page, i + 1 < pages ? page : n - i * page, entry_bytes);
        h5_sum_put(b, from);
    }
}

int h5_farray_write(h5_writer *w, const h5_chunk *chunks, uint64_t n, int filtered,
                    uint64_t chunk_bytes, unsigned page_bits, uint64_t *at, h5_error *err)
{
    *at = 0;
    if (n == 0 || chunk_bytes == 0 || chunk_bytes > H5_CHUNK_BYTES_MAX || n > SIZE_MAX / 64)
        return h5_fail(err, H5_MISUSE, H5_UNDEF,
                       "fixed array: %" PRIu64 " chunks of %" PRIu64 " bytes", n, chunk_bytes);
    assert(page_bits >= 1 && page_bits <= H5_FARRAY_PAGE_BITS_MAX);
    filtered = filtered != 0;
    H5_TRY(check_chunks(chunks, n, filtered, chunk_bytes, err));
    // The block holds the header's address, so it must be known before the bytes are made.
    uint64_t here = h5_writer_eof(w), to;
    h5_buf b = {0};
    here = (here + 7) / 8 * 8;
    build(&b, chunks, n, filtered, entry_width(filtered, size_width(chunk_bytes)), page_bits, here);
    int rc = b.bad ? h5_fail_nomem(err, "a fixed array")
                   : h5_writer_append(w, b.p, b.n, 8, &to, err);
    h5_buf_free(&b);
    if (rc != H5_OK)
        return rc;
    assert(to == here);
    *at = here;
    return H5_OK;
}
