/*
 * fuzz_h5_open.c - any bytes as an HDF5 file: everything that can be read of it is read
 *
 * One input is one file. Whatever it says, every call must come back with a documented code,
 * without a crash, a leak or an allocation out of proportion. The walk is bounded in objects, bytes
 * and chunks, so that a group that contains itself ends and each input is quick.
 *
 *     clang -fsanitize=fuzzer,address,undefined -Ihdf5core tests/fuzz/fuzz_h5_open.c \
 *         hdf5core/h5_*.c -lz -lzstd -o fuzz && ./fuzz tests/fuzz/corpus/fuzz_h5_open
 *
 * Without libFuzzer it is linked with driver.c, which feeds it files.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "h5core.h"

enum {
    OBJECTS_MAX = 500,
    DEPTH_MAX = 12,
    READ_MAX = 4 << 20,
    CHUNKS_MAX = 1 << 18,
    ELEMENTS_MAX = 1000
};

typedef struct walk {
    h5_file *f;
    int objects;
    size_t budget;   /* bytes that may still be read */
    uint64_t chunks; /* that may still be looked up */
} walk;

/* A result that is none of the documented codes is a fault. */
static int known(int rc)
{
    if (rc > H5_OK || rc < H5_LIMIT)
        abort();
    return rc;
}

/* What elements of variable length and references lead to. */
static void follow_values(h5_heaps *heaps, const h5_type *t, const uint8_t *p, size_t n)
{
    h5_error err;
    if (t->cls != H5_CLASS_VLEN && t->cls != H5_CLASS_REFERENCE)
        return;
    for (size_t i = 0; i + t->size <= n && i / t->size < ELEMENTS_MAX; i += t->size) {
        const uint8_t *data;
        uint64_t count;
        h5_ref ref;
        h5_error_clear(&err);
        if (t->cls == H5_CLASS_VLEN)
            known(h5_vlen(heaps, t, p + i, &data, &count, &err));
        else
            known(h5_reference(heaps, t, p + i, &ref, &err));
    }
}

/* Whether the budget allows to look up the chunks of a box of count elements. */
static int allows_chunks(walk *w, const h5_dataset_info *d, const uint64_t *count)
{
    uint64_t n = 1;
    if (d->layout != H5_LAYOUT_CHUNKED)
        return 1;
    for (int i = 0; i < d->rank; i++) {
        uint64_t side = d->chunk[i] ? d->chunk[i] : 1; // 0 in one that cannot be read
        uint64_t across = count[i] / side + 2;         // the box may begin and end inside of one
        if (n > w->chunks / across)
            return 0;
        n *= across;
    }
    w->chunks -= n;
    return 1;
}

/* Reads count elements in each dimension from start, when the budget allows. */
static void read_box(walk *w, const h5_object *o, const uint64_t *start, const uint64_t *count)
{
    const h5_dataset_info *d = h5_object_dataset(o);
    uint64_t n = d->type.size;
    if (!allows_chunks(w, d, count))
        return;
    for (int i = 0; i < d->rank; i++) {
        if (count[i] && n > w->budget / count[i])
            return;
        n *= count[i];
    }
    if (n > w->budget)
        return;
    w->budget -= (size_t)n;
    void *buf = malloc(n ? n : 1);
    if (!buf)
        return;
    h5_error err;
    h5_error_clear(&err);
    h5_heaps *heaps;
    if (known(h5_heaps_open(w->f, &heaps, &err)) == H5_OK &&
        known(h5_dataset_read_values(heaps, o, start, count, buf, (size_t)n, &err)) == H5_OK)
        follow_values(heaps, &d->type, buf, (size_t)n);
    h5_heaps_close(heaps);
    h5_error_clear(&err);
    known(h5_dataset_read(w->f, o, start, count, buf, (size_t)n, &err));
    free(buf);
}

static void read_dataset(walk *w, const h5_object *o)
{
    const h5_dataset_info *d = h5_object_dataset(o);
    uint64_t zero[H5_RANK_MAX] = {0}, start[H5_RANK_MAX], count[H5_RANK_MAX];
    h5_chunk *chunks;
    size_t n;
    h5_error err;
    h5_error_clear(&err);
    if (allows_chunks(w, d, d->dims)) {
        known(h5_dataset_chunks(w->f, o, &chunks, &n, &err));
        h5_free(chunks);
    }
    read_box(w, o, zero, d->dims);
    for (int i = 0; i < d->rank; i++) {
        start[i] = d->dims[i] / 2;
        count[i] = d->dims[i] - start[i] < 3 ? d->dims[i] - start[i] : 3;
    }
    read_box(w, o, start, count);
}

static void read_attrs(const h5_object *o)
{
    const h5_attr *attrs;
    size_t n = h5_object_attrs(o, &attrs);
    for (size_t i = 0; i < n; i++) {
        int64_t v;
        double r;
        char *s;
        h5_error err;
        h5_error_clear(&err);
        known(h5_attr_int(o, attrs[i].name, &v, &err));
        known(h5_attr_real(o, attrs[i].name, &r, &err));
        known(h5_attr_text(o, attrs[i].name, &s, &err));
        h5_free(s);
    }
}

static void visit(walk *w, uint64_t addr, int depth)
{
    h5_object *o;
    h5_error err;
    const h5_link *links;
    h5_error_clear(&err);
    if (depth > DEPTH_MAX || w->objects++ > OBJECTS_MAX)
        return;
    if (known(h5_object_open(w->f, addr, &o, &err)) != H5_OK)
        return;
    read_attrs(o);
    if (h5_object_kind(o) == H5_KIND_DATASET)
        read_dataset(w, o);
    size_t n = h5_object_links(o, &links);
    for (size_t i = 0; i < n; i++)
        visit(w, links[i].addr, depth + 1);
    h5_object_close(o);
}

static uint64_t number(const uint8_t *p, int width)
{
    uint64_t v = 0;
    while (width-- > 0)
        v = v << 8 | p[width];
    return v;
}

/* Bytes of the structure at p, of which `left` remain, checksum included; 0 when that cannot be
** told. */
static uint64_t structure_size(const uint8_t *p, size_t left)
{
    uint64_t n = 0;
    if (left < 36)
        return 0;
    if (memcmp(p, "FAHD", 4) == 0)
        return 28;
    if (memcmp(p, "OHDR", 4) == 0) {
        int head = 6 + (p[5] & 0x20 ? 16 : 0) + (p[5] & 0x10 ? 4 : 0), width = 1 << (p[5] & 3);
        n = number(p + head, width) + (uint64_t)(head + width) + 4;
    }
    return n <= left ? n : 0;
}

static void sign(uint8_t *p, uint64_t n)
{
    uint32_t sum = h5_lookup3(p, (size_t)n - 4, 0);
    for (int i = 0; i < 4; i++)
        p[n - 4 + (uint64_t)i] = (uint8_t)(sum >> 8 * i);
}

/* Makes the checksums right that an input got wrong by being changed, so that the decoders behind
** them see it. */
static void mend(uint8_t *p, size_t n)
{
    for (size_t i = 0; i + 4 < n; i++) {
        uint64_t size = structure_size(p + i, n - i);
        if (size < 8)
            continue;
        sign(p + i, size);
        // The block of a small array stands behind its header in files of hdf5core.
        uint64_t entries = p[i] == 'F' ? number(p + i + 8, 8) : 0;
        uint64_t block = 14 + 4 + (entries <= 1024 ? entries * p[i + 6] : 0);
        if (entries > 0 && entries <= 1024 && block <= n - i - 28)
            sign(p + i + 28, block);
    }
    if (n >= H5_SUPERBLOCK_BYTES)
        sign(p, H5_SUPERBLOCK_BYTES);
}

static int open_bytes(const uint8_t *data, size_t size)
{
    h5_io *io;
    h5_error err;
    walk w = {.budget = READ_MAX, .chunks = CHUNKS_MAX};
    h5_error_clear(&err);
    if (h5_io_memory(data, size, &io, &err) != H5_OK)
        return 0;
    if (known(h5_file_open(io, &w.f, &err)) == H5_OK) {
        h5_object *o;
        visit(&w, h5_file_root(w.f), 0);
        if (known(h5_object_find(w.f, "/memory/embedding", &o, &err)) == H5_OK)
            h5_object_close(o);
        h5_file_close(w.f);
    }
    io->close(io);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    open_bytes(data, size);
    uint8_t *copy = malloc(size ? size : 1);
    if (copy) {
        memcpy(copy, data, size);
        mend(copy, size);
        open_bytes(copy, size);
    }
    free(copy);
    return 0;
}
