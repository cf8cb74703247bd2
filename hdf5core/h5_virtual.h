/*
 * h5_virtual.h - virtual datasets: their mappings, extents and values
 *
 * Mappings are decoded one at a time from the bytes of the global heap, since a decoded one is a
 * hundred times as long.
 *
 * OWNERSHIP  an h5_virtual owns the heap that its mappings point into, an h5_mapping its
 * selections.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef H5_VIRTUAL_H
#define H5_VIRTUAL_H

#include "h5_heaps.h"
#include "h5_object.h"
#include "h5_selection.h"

typedef struct h5_virtual {
    const h5_object *o;
    h5_heaps *heaps;
    uint64_t addr; /* for texts */
    unsigned version;
    uint64_t n;        /* mappings */
    h5_cur next;       /* the one that comes next, */
    uint64_t at;       /* and its number */
    const char **file; /* names met so far, by number; later mappings may refer to them */
    const char **path;
} h5_virtual;

typedef struct h5_mapping {
    const char *file, *path; /* "." is the same file; both may hold %b */
    h5_selection to, from;   /* in the virtual dataset, in the source */
    int numbered;            /* a source for each block of `to`, whose number stands for %b */
} h5_mapping;

/* Right to close after a failure, too. */
int h5_virtual_open(const h5_object *o, h5_virtual *out, h5_error *err);
/* The next mapping, whose selections the caller frees; *more 0 behind the last. */
int h5_virtual_next(h5_virtual *v, h5_mapping *out, int *more, h5_error *err);
void h5_virtual_close(h5_virtual *v);

/* The source that was used last, with what is above it. */
typedef struct h5_source {
    const h5_object *o; /* the virtual dataset */
    h5_deep *deep;
    h5_file *other;   /* another file that is open, NULL = none */
    char *name;       /* its name, */
    uint64_t serial;  /* and number, from 1 */
    h5_object *found; /* the source, NULL when there is none */
} h5_source;

/* Finds the source of a mapping; for a numbered one, that of a block. s->found is NULL when file or
** dataset are not there. */
int h5_source_find(h5_source *s, const h5_mapping *m, uint64_t block, h5_error *err);
void h5_source_close(h5_source *s);

/* Takes work off what is left. */
int h5_deep_spend(h5_deep *d, uint64_t work, h5_error *err);

/* Cuts the unlimited dimensions of a mapping off where its source ends, and at `extent` of the
** virtual dataset. */
void h5_mapping_cut(h5_mapping *m, const h5_dataset_info *source, uint64_t extent);
/* Block `i` of a numbered mapping in the virtual dataset; 0 when 64 bits do not hold it. */
int h5_mapping_block(const h5_mapping *m, uint64_t i, h5_selection *out);

/* Sets the sizes of unlimited dimensions by what the sources have. */
int h5_virtual_extents(h5_object *o, h5_deep *deep, h5_error *err);
/* Makes n elements of type t at p, which come from the file of `from`, elements of the file of
** deep->heaps: what their values of variable length name is kept there. H5_UNSUPPORTED when there
** is no such, and for references. */
int h5_virtual_move(h5_deep *deep, h5_heaps *from, const h5_type *t, uint8_t *p, uint64_t n,
                    h5_error *err);
/* Copies a hyperslab. */
int h5_virtual_read(const h5_object *o, const uint64_t *start, const uint64_t *count, uint8_t *dst,
                    h5_deep *deep, h5_error *err);

#endif
