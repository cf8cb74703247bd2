/*
 * h5_fheap.c - fractal heaps: links, attributes and shared messages of large numbers
 *
 * The heap is one long space of bytes cut into blocks by a "doubling table": rows of `width`
 * blocks,
 * the first two of the starting size, each further row of twice the bytes of the one before. Blocks
 * up to the largest direct size hold objects, larger ones are tables of the same kind.
 *
 * FORMAT   HDF5 spec: III.G "Fractal Heap"
 *   header:   "FRHP" | version 0 | id bytes 2 | filter bytes 2 | flags 1 (bit 1: direct blocks have
 *             checksums) | largest managed object 4 | next huge id 8 | huge objects' B-tree 8 | 9
 *             numbers of 8 | width 2 | starting bytes 8 | largest direct bytes 8 | bits of the
 *               space 2 |
 *             2 | root block 8 | rows of the root 2 | filtered: root bytes 8, mask 4, pipeline |
 *             lookup3
 *   indirect: "FHIB" | version 0 | header 8 | place in the space | direct blocks: address 8, where
 *             filtered bytes 8 and mask 4 | indirect blocks: address 8 | lookup3
 *   direct:   "FHDB" | version 0 | header 8 | place in the space | lookup3 (flag) | objects; they
 *             are placed from the start of the block. The checksum is made with its bytes as 0.
 *   id:       0  bits 4-5: 0 managed: place | length; 1 huge: direct address 8 | bytes 8 where that
 *             fits into an id, else a number in the B-tree; 2 tiny: length - 1 in the low bits
 *
 *   huge:     a record of the B-tree: address 8 | bytes 8 | filtered: mask 4, bytes decoded 8 |
 *             number 8
 *   Numbers of 8 are as wide as the offsets or lengths of the file.
 *
 * ERRORS   H5_FORMAT; H5_LIMIT H5_DECODE_BYTES_MAX
 * TESTS    t_h5_fheap.c, test_h5show.py
 *
 * SPDX-License-Identifier: MIT
 */
#include <inttypes.h>

#include "h5_btree2.h"
#include "h5_fheap.h"
#include "h5_filter.h"
#include "h5_msg.h"
#include "h5_sum.h"

enum { HEAD_MOST = 146, FLAG_SUMS = 2, HUGE_PLAIN = 1, HUGE_FILTERED = 2 };

static unsigned bits_of(uint64_t v)
{
    unsigned n = 0;
    while (n < 63 && v >> (n + 1))
        n++;
    return n;
}

/* Bytes of the numbers up to v. */
static unsigned width_of(uint64_t v)
{
    return bits_of(v) / 8 + 1;
}

static int power_of_two(uint64_t v)
{
    return v != 0 && (v & (v - 1)) == 0;
}

static int parse_fixed(h5_fheap *h, h5_cur *c, unsigned *filter_bytes, h5_error *err)
{
    h5_cur_take(c, 4);
    unsigned version = h5_cur_u8(c);
    h->id_bytes = h5_cur_u16(c);
    *filter_bytes = h5_cur_u16(c);
    h->flags = h5_cur_u8(c);
    h->max_managed = h5_cur_u32(c);
    h5_cur_length(c, h->f);
    h->huge_index = h5_cur_addr(c, h->f);
    h5_cur_take(c, 9 * (size_t)h->f->lengths + h->f->offsets);
    h->width = h5_cur_u16(c);
    h->start = h5_cur_length(c, h->f);
    h->max_direct = h5_cur_length(c, h->f);
    unsigned space_bits = h5_cur_u16(c);
    h5_cur_u16(c);
    h->root = h5_cur_addr(c, h->f);
    h->rows = h5_cur_u16(c);
    if (version != 0 || h->width == 0 || !power_of_two(h->width) || !power_of_two(h->start) ||
        !power_of_two(h->max_direct) || h->start > h->max_direct || h->max_direct > UINT32_MAX ||
        space_bits == 0 || space_bits > 64 || h->id_bytes == 0)
        return h5_fail(err, H5_FORMAT, h->addr,
                       "fractal heap: version %u, width %u, blocks of %" PRIu64 " to %" PRIu64,
                       version, h->width, h->start, h->max_direct);
    h->start_bits = bits_of(h->start);
    h->direct_rows = bits_of(h->max_direct) - h->start_bits + 2;
    h->offset_bytes = (space_bits + 7) / 8;
    unsigned by_block = width_of(h->max_direct), by_object = width_of(h->max_managed);
    h->length_bytes = by_block < by_object ? by_block : by_object;
    if (h->rows > 64 + 1 - h->start_bits)
        return h5_fail(err, H5_FORMAT, h->addr, "fractal heap: %u rows", h->rows);
    return H5_OK;
}

static int parse_filters(h5_fheap *h, h5_cur *c, unsigned n, h5_error *err)
{
    h5_object *o = h5_calloc(1, sizeof *o); // for the decoder of the message
    if (!o || !(o->info = h5_calloc(1, sizeof *o->info))) {
        h5_free(o);
        return h5_fail_nomem(err, "a fractal heap");
    }
    h->root_bytes = h5_cur_length(c, h->f);
    h->root_mask = h5_cur_u32(c);
    h5_msg m = {.id = H5_MSG_FILTERS, .size = n, .body = c->p, .addr = h->addr};
    int rc = h5_cur_take(c, n) ? h5_msg_filters_decode(o, &m, err)
                               : h5_fail(err, H5_FORMAT, h->addr, "fractal heap: cut off");
    h->pipeline = o->info->pipeline;
    // Client data beyond what a filter holds itself would go with the arena.
    for (int i = 0; rc == H5_OK && i < h->pipeline.n; i++)
        if (h->pipeline.filter[i].more)
            rc = h5_fail(err, H5_UNSUPPORTED, h->addr, "fractal heap: filter %u with %u values",
                         h->pipeline.filter[i].id, (unsigned)h->pipeline.filter[i].nvalue);
    h5_arena_free(&o->arena);
    h5_free(o->info);
    h5_free(o);
    return rc;
}

int h5_fheap_open(h5_fheap *h, h5_file *f, uint64_t addr, h5_error *err)
{
    uint8_t first[HEAD_MOST], *p;
    size_t fixed = 26 + 12 * (size_t)f->lengths + 3 * (size_t)f->offsets;
    unsigned filters;
    memset(h, 0, sizeof *h);
    h->f = f;
    h->addr = addr;
    h->block_head = 5 + f->offsets;
    H5_TRY(h5_file_read(f, addr, first, fixed, "fractal heap", err));
    if (memcmp(first, "FRHP", 4) != 0)
        return h5_fail(err, H5_FORMAT, addr, "fractal heap: no signature at %" PRIu64, addr);
    filters = h5_get16(first + 7);
    size_t n = fixed + (filters ? f->lengths + 4u + filters : 0);
    H5_TRY(h5_file_load(f, addr, n, "fractal heap", &p, err));
    h5_cur c = h5_cur_on(p, n - 4);
    int rc = h5_sum_check(p, n, "fractal heap", addr, err);
    if (rc == H5_OK)
        rc = parse_fixed(h, &c, &filters, err);
    if (rc == H5_OK && filters)
        rc = parse_filters(h, &c, filters, err);
    h5_free(p);
    return rc;
}

void h5_fheap_close(h5_fheap *h)
{
    h5_keep_free(&h->blocks);
    for (int i = 0; i < H5_FHEAP_DEPTH_MAX; i++)
        h5_free(h->indirect[i].p);
    memset(h, 0, sizeof *h);
}

/* Bytes of a block in a row. */
static uint64_t row_bytes(const h5_fheap *h, unsigned row)
{
    return row < 2 ? h->start : h->start << (row - 1);
}

/* Bytes of what an indirect block says of a direct one. */
static unsigned entry_bytes(const h5_fheap *h)
{
    return h->f->offsets + (h->pipeline.n ? h->f->lengths + 4 : 0);
}

static int check_block(const h5_fheap *h, const uint8_t *p, const char *sig, uint64_t addr,
                       uint64_t place, h5_error *err)
{
    h5_cur c = h5_cur_on(p, h->block_head + h->offset_bytes);
    int good = h5_cur_sig(&c, sig) && h5_cur_u8(&c) == 0 && h5_cur_addr(&c, h->f) == h->addr &&
               h5_cur_uint(&c, h->offset_bytes) == place;
    return good ? H5_OK
                : h5_fail(err, H5_FORMAT, addr, "fractal heap: no %s block at %" PRIu64, sig, addr);
}

/* Loads the indirect block of a level, with the given rows. */
static int load_indirect(h5_fheap *h, int level, uint64_t addr, unsigned rows, uint64_t place,
                         h5_error *err)
{
    h5_fheap_block *b = &h->indirect[level];
    uint64_t direct = rows < h->direct_rows ? rows : h->direct_rows;
    uint64_t n = h->block_head + h->offset_bytes + direct * h->width * entry_bytes(h) +
                 (rows - direct) * h->width * h->f->offsets + 4;
    if (b->p && b->addr == addr && b->bytes == n)
        return H5_OK;
    h5_free(b->p);
    b->p = NULL;
    H5_TRY(h5_file_load(h->f, addr, n, "fractal heap block", &b->p, err));
    b->addr = addr;
    b->bytes = n;
    int rc = h5_sum_check(b->p, (size_t)n, "fractal heap block", addr, err);
    if (rc == H5_OK)
        rc = check_block(h, b->p, "FHIB", addr, place, err);
    if (rc != H5_OK) {
        h5_free(b->p);
        b->p = NULL;
    }
    return rc;
}

/* Decodes a filtered direct block. */
static int decode(h5_fheap *h, uint8_t **p, uint64_t stored, uint32_t mask, uint64_t bytes,
                  h5_error *err)
{
    H5_TRY(
        h5_pipeline_allow(&h->pipeline, mask, stored, bytes, "fractal heap block", h->addr, err));
    uint8_t *plain = h5_malloc((size_t)bytes);
    if (!plain)
        return h5_fail_nomem(err, "a fractal heap block");
    int rc = h5_pipeline_decode(&h->pipeline, mask, *p, (size_t)stored, plain, (size_t)bytes, err);
    h5_free(*p);
    *p = plain;
    return rc;
}

/* Reads a direct block and checks it; *out is fresh memory. */
static int read_direct(h5_fheap *h, uint64_t addr, uint64_t bytes, uint64_t stored, uint32_t mask,
                       uint64_t place, uint8_t **out, h5_error *err)
{
    H5_TRY(h5_file_load(h->f, addr, stored, "fractal heap block", out, err));
    int rc = h->pipeline.n ? decode(h, out, stored, mask, bytes, err) : H5_OK;
    if (rc == H5_OK && h->flags & FLAG_SUMS) {
        uint8_t *at = *out + h->block_head + h->offset_bytes;
        uint32_t want = h5_get32(at);
        h5_set32(at, 0);
        uint32_t made = h5_lookup3(*out, (size_t)bytes, 0);
        if (made != want)
            rc = h5_fail(err, H5_FORMAT, addr,
                         "fractal heap block: checksum is %08x, the bytes give %08x",
                         (unsigned)want, (unsigned)made);
    }
    if (rc == H5_OK)
        rc = check_block(h, *out, "FHDB", addr, place, err);
    if (rc != H5_OK) {
        h5_free(*out);
        *out = NULL;
    }
    return rc;
}

/* Makes a direct block the one in h->direct. An index asks for objects in the order of their hash
** values, which is any order of the blocks, so those that were read are kept. */
static int load_direct(h5_fheap *h, uint64_t addr, uint64_t bytes, uint64_t stored, uint32_t mask,
                       uint64_t place, h5_error *err)
{
    uint8_t *p;
    h->direct = h5_keep_find(&h->blocks, addr, bytes);
    if (h->direct)
        return H5_OK;
    if (bytes < h->block_head + h->offset_bytes + 4u)
        return h5_fail(err, H5_FORMAT, addr, "fractal heap: block of %" PRIu64 " bytes", bytes);
    H5_TRY(read_direct(h, addr, bytes, stored, mask, place, &p, err));
    if (h->blocks.bytes + bytes > H5_FHEAP_KEPT_MAX)
        h5_keep_free(&h->blocks);
    H5_TRY(h5_keep_add(&h->blocks, addr, bytes, p, err));
    h->direct = h5_keep_find(&h->blocks, addr, bytes);
    return H5_OK;
}

/* Finds the direct block that holds a place, and where it starts. */
static int find_direct(h5_fheap *h, uint64_t at, uint64_t *start, h5_error *err)
{
    uint64_t addr = h->root, place = 0;
    unsigned rows = h->rows;
    *start = 0;
    if (rows == 0)
        return load_direct(h, addr, h->start, h->pipeline.n ? h->root_bytes : h->start,
                           h->root_mask, 0, err);
    for (int level = 0; level < H5_FHEAP_DEPTH_MAX; level++) {
        H5_TRY(load_indirect(h, level, addr, rows, place, err));
        uint64_t in = at - place, line = h->start * h->width;
        unsigned row = in < line ? 0 : bits_of(in / line) + 1;
        uint64_t before = row == 0 ? 0 : line << (row - 1);
        if (row >= rows)
            break;
        uint64_t col = (in - before) / row_bytes(h, row), size = row_bytes(h, row);
        uint64_t direct = rows < h->direct_rows ? rows : h->direct_rows;
        unsigned entry = entry_bytes(h);
        uint64_t off = row < direct ? (row * h->width + col) * entry
                                    : direct * h->width * entry +
                                          ((row - direct) * h->width + col) * h->f->offsets;
        const uint8_t *p = h->indirect[level].p + h->block_head + h->offset_bytes + off;
        h5_cur c = h5_cur_on(p, entry);
        addr = h5_cur_addr(&c, h->f);
        place += before + col * size;
        if (row < direct) {
            *start = place;
            uint64_t stored = h->pipeline.n ? h5_cur_length(&c, h->f) : size;
            uint32_t mask = h->pipeline.n ? h5_cur_u32(&c) : 0;
            return load_direct(h, addr, size, stored, mask, place, err);
        }
        // The block below covers `size` bytes: as many rows as add up to that.
        rows = bits_of(size / line) + 1;
    }
    return h5_fail(err, H5_FORMAT, h->addr, "fractal heap: no block for %" PRIu64, at);
}

static int copy(h5_arena *arena, const uint8_t *p, uint64_t n, const uint8_t **out, size_t *bytes,
                h5_error *err)
{
    uint8_t *to = h5_arena_alloc(arena, (size_t)n + 1);
    if (!to)
        return h5_fail_nomem(err, "an object of a heap");
    memcpy(to, p, (size_t)n);
    *out = to;
    *bytes = (size_t)n;
    return H5_OK;
}

typedef struct huge {
    h5_fheap *h;
    h5_btree2 info;
    uint64_t id, addr, bytes, plain; /* stored, and what they decode to */
    uint32_t mask;
    int found;
} huge;

/* Where a huge object is, in a record of the B-tree or in an id. */
static void take_place(huge *w, h5_cur *c)
{
    const h5_file *f = w->h->f;
    w->addr = h5_cur_addr(c, f);
    w->bytes = w->plain = h5_cur_length(c, f);
    if (w->h->pipeline.n) {
        w->mask = h5_cur_u32(c);
        w->plain = h5_cur_length(c, f);
    }
}

static int match_huge(void *ctx, const uint8_t *record, h5_error *err)
{
    huge *w = ctx;
    const h5_file *f = w->h->f;
    unsigned filtered = w->h->pipeline.n > 0, lengths = f->lengths;
    if (w->found)
        return H5_OK;
    if (w->info.type != (filtered ? HUGE_FILTERED : HUGE_PLAIN) ||
        w->info.record_bytes != f->offsets + 2 * lengths + (filtered ? 4 + lengths : 0))
        return h5_fail(err, H5_FORMAT, w->info.addr,
                       "huge objects of a heap: records of type %u, %u bytes", w->info.type,
                       w->info.record_bytes);
    h5_cur c = h5_cur_on(record, w->info.record_bytes);
    take_place(w, &c);
    w->found = h5_cur_length(&c, f) == w->id;
    return H5_OK;
}

/* The bytes of a huge object that was found. */
static int load_huge(h5_fheap *h, const huge *w, h5_arena *arena, const uint8_t **out,
                     size_t *bytes, h5_error *err)
{
    uint8_t *stored;
    H5_TRY(h5_file_load(h->f, w->addr, w->bytes, "huge object", &stored, err));
    int rc = h->pipeline.n ? decode(h, &stored, w->bytes, w->mask, w->plain, err) : H5_OK;
    if (rc == H5_OK)
        rc = copy(arena, stored, w->plain, out, bytes, err);
    h5_free(stored);
    return rc;
}

static int get_huge(h5_fheap *h, h5_cur *id, h5_arena *arena, const uint8_t **out, size_t *bytes,
                    h5_error *err)
{
    huge w = {.h = h};
    unsigned offsets = h->f->offsets, lengths = h->f->lengths;
    if (h->id_bytes > offsets + lengths + (h->pipeline.n ? 4 + lengths : 0)) {
        take_place(&w, id);
        w.found = 1;
    } else {
        w.id = h5_cur_uint(id, h->id_bytes - 1 < 8 ? h->id_bytes - 1 : 8);
        H5_TRY(h5_btree2_open(&w.info, h->f, h->huge_index, err));
        H5_TRY(h5_btree2_each(&w.info, match_huge, &w, err));
    }
    if (id->bad || !w.found)
        return h5_fail(err, H5_FORMAT, h->addr, "fractal heap: huge object %" PRIu64, w.id);
    return load_huge(h, &w, arena, out, bytes, err);
}

int h5_fheap_get(h5_fheap *h, const uint8_t *id, size_t n, h5_arena *arena, const uint8_t **out,
                 size_t *bytes, h5_error *err)
{
    h5_cur c = h5_cur_on(id, n < h->id_bytes ? n : h->id_bytes);
    unsigned head = h5_cur_u8(&c), kind = head >> 4 & 3;
    uint64_t start;
    *out = NULL;
    *bytes = 0;
    if (c.bad || head >> 6 != 0 || kind > 2)
        return h5_fail(err, H5_FORMAT, h->addr, "fractal heap: id of kind %02x", head);
    if (kind == 1)
        return get_huge(h, &c, arena, out, bytes, err);
    if (kind == 2) {
        size_t len = (head & 15) + 1;
        if (h->id_bytes > 17)
            len = ((size_t)(head & 15) << 8 | h5_cur_u8(&c)) + 1;
        const uint8_t *p = h5_cur_take(&c, len);
        return p ? copy(arena, p, len, out, bytes, err)
                 : h5_fail(err, H5_FORMAT, h->addr, "fractal heap: tiny object of %zu bytes", len);
    }
    uint64_t at = h5_cur_uint(&c, h->offset_bytes), len = h5_cur_uint(&c, h->length_bytes);
    if (c.bad || h->root == H5_UNDEF)
        return h5_fail(err, H5_FORMAT, h->addr, "fractal heap: id is cut off");
    H5_TRY(find_direct(h, at, &start, err));
    if (at - start > h->direct->bytes || len > h->direct->bytes - (at - start))
        return h5_fail(err, H5_FORMAT, h->addr,
                       "fractal heap: object of %" PRIu64 " bytes at %" PRIu64, len, at);
    return copy(arena, h->direct->p + (at - start), len, out, bytes, err);
}
