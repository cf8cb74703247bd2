/*
 * fuzz_h5_heap.c - any bytes as a heap: local, global, fractal
 *
 * 16 bytes say what is looked for, the rest is the file:
 *   kind 1 | width of addresses 1 | heap 4 | id 10
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "h5_fheap.h"
#include "h5_file.h"
#include "h5_heaps.h"
#include "h5_lheap.h"
#include "t_mend.h"

enum { HEAD = 16, LOCAL = 0, GLOBAL = 1, FRACTAL = 2, KINDS = 3 };

static volatile uint8_t seen;

/* Looks at every byte, so that the sanitizer sees each. */
static void see(const uint8_t *p, uint64_t n)
{
    uint8_t sum = 0;
    for (uint64_t i = 0; i < n; i++)
        sum ^= p[i];
    seen = sum;
}

static int local(h5_file *f, uint64_t addr, const uint8_t *id, h5_error *err)
{
    h5_arena arena = {0};
    h5_lheap heap;
    const char *text;
    int rc = h5_lheap_load(f, addr, &arena, &heap, err);
    if (rc == H5_OK)
        rc = h5_lheap_text(&heap, h5_get32(id), &text, err);
    if (rc == H5_OK)
        see((const uint8_t *)text, strlen(text) + 1);
    h5_arena_free(&arena);
    return rc;
}

static int global(h5_file *f, uint64_t addr, const uint8_t *id, h5_error *err)
{
    h5_heaps *heaps;
    const uint8_t *p;
    uint64_t n;
    int rc = h5_heaps_open(f, &heaps, err);
    if (rc == H5_OK)
        rc = h5_heaps_object(heaps, addr, h5_get16(id), &p, &n, err);
    if (rc == H5_OK)
        see(p, n);
    h5_heaps_close(heaps);
    return rc;
}

static int fractal(h5_file *f, uint64_t addr, const uint8_t *id, h5_error *err)
{
    h5_arena arena = {0};
    h5_fheap heap;
    const uint8_t *p;
    size_t n;
    int rc = h5_fheap_open(&heap, f, addr, err);
    for (int i = 0; rc == H5_OK && i < 2; i++) { // the second time from what is kept
        rc = h5_fheap_get(&heap, id, 10, &arena, &p, &n, err);
        if (rc == H5_OK)
            see(p, n);
    }
    h5_fheap_close(&heap);
    h5_arena_free(&arena);
    return rc;
}

static int look(void *ctx, const uint8_t *bytes, size_t n, h5_error *err)
{
    uint8_t superblock[H5_SUPERBLOCK_BYTES];
    const uint8_t *head = ctx;
    h5_io *io;
    h5_file *f;
    int rc = h5_io_bytes(bytes, n, &io, err);
    if (rc != H5_OK)
        return rc;
    h5_superblock_pack(0, n, superblock);
    rc = h5_file_open_at(io, superblock, &f, err);
    if (rc == H5_OK) {
        int kind = head[0] % KINDS;
        uint64_t addr = h5_get32(head + 2);
        f->offsets = (const unsigned[]){8, 4, 2, 8}[head[1] & 3];
        f->lengths = (const unsigned[]){8, 4, 2, 4}[head[1] & 3];
        rc = kind == LOCAL    ? local(f, addr, head + 6, err)
             : kind == GLOBAL ? global(f, addr, head + 6, err)
                              : fractal(f, addr, head + 6, err);
        h5_file_close(f);
    }
    io->close(io);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t head[HEAD];
    if (size < HEAD + H5_SUPERBLOCK_BYTES)
        return 0;
    memcpy(head, data, HEAD);
    t_mend_run(data + HEAD, size - HEAD, look, head);
    return 0;
}
