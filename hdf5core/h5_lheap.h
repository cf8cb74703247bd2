/*
 * h5_lheap.h - local heaps: the names of old groups and of external files
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef H5_LHEAP_H
#define H5_LHEAP_H

#include "h5_file.h"

typedef struct h5_lheap {
    uint64_t addr;
    const uint8_t *data;
    uint64_t n;
} h5_lheap;

/* Reads a heap into the arena. */
int h5_lheap_load(h5_file *f, uint64_t addr, h5_arena *arena, h5_lheap *out, h5_error *err);
/* The text at an offset, with its NUL. It stays in the arena. */
int h5_lheap_text(const h5_lheap *h, uint64_t at, const char **out, h5_error *err);

#endif
