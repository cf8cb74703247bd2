/*
 * h5_image.h - metadata cache images: metadata that stand elsewhere than their addresses say
 *
 * OWNERSHIP  an h5_image owns its bytes until h5_image_free; a zeroed one is empty and valid.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef H5_IMAGE_H
#define H5_IMAGE_H

#include "h5_base.h"

struct h5_file;

typedef struct h5_image_entry {
    uint64_t addr, n;
    const uint8_t *p;
} h5_image_entry;

typedef struct h5_image {
    uint8_t *bytes;
    h5_image_entry *entry; /* by address, one behind another */
    size_t n;
} h5_image;

/* Loads the image of n bytes at addr. */
int h5_image_load(struct h5_file *f, uint64_t addr, uint64_t n, h5_image *out, h5_error *err);
/* Puts what the image has of the n bytes at addr into buf. */
void h5_image_apply(const h5_image *im, uint64_t addr, uint8_t *buf, size_t n);
void h5_image_free(h5_image *im);

#endif
