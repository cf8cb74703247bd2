/*
 * h5_object.h - an opened object, for the message decoders and the readers of data
 *
 * Decoders fill the parts of a fresh h5_object; h5_object.c checks what must hold between them. A
 * dataset that cannot be read still opens: `refuse` holds the reason, which every read of its
 * values gives.
 *
 * OWNERSHIP  everything inside belongs to the object; names of links are in the arena, all other
 *            bytes in the header's blocks.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef H5_OBJECT_H
#define H5_OBJECT_H

#include "h5_ohdr.h"

/* A group or attribute list that is kept in a heap with an index; H5_UNDEF = none. */
typedef struct h5_dense {
    uint64_t heap, index;
} h5_dense;

/* Chunk indexes, the specification's numbers for layout version 4. */
enum {
    H5_INDEX_SINGLE = 1,
    H5_INDEX_IMPLICIT = 2,
    H5_INDEX_FARRAY = 3,
    H5_INDEX_EARRAY = 4,
    H5_INDEX_BTREE2 = 5,
    H5_INDEX_BTREE1 = 255 /* layout version 3, which has no number for it */
};

/* What the layout message says beyond h5_dataset_info. */
typedef struct h5_layout {
    unsigned dimensions; /* chunked: rank + 1 in the message */
    uint64_t element;    /* chunked: last chunk dimension, the element size */
    uint8_t index;       /* chunked: H5_INDEX_ */
    uint8_t wide_sizes;  /* chunked: indexes hold stored sizes as lengths (layout version 5) */
    uint8_t page_bits;   /* fixed array */
    uint8_t version;
    uint64_t heap; /* virtual: global heap collection of the mappings, and the object in it */
    uint32_t heap_index;
    h5_chunk single; /* single chunk, filtered: size and mask */
    int single_filtered;
    int raw_edges;          /* filters skip partly filled chunks at the edges */
    const uint8_t *compact; /* compact: the data */
    size_t compact_bytes;
} h5_layout;

/* One call that leads from object to object: how deep it is, and what it may still do. */
typedef struct h5_deep {
    int depth;
    uint64_t left;   /* of H5_VIRTUAL_WORK_MAX */
    h5_heaps *heaps; /* where values of other files go; NULL = nowhere */
} h5_deep;

struct h5_object {
    int kind;
    h5_file *f;
    h5_file *own; /* f, where an external link led into it; closed with the object */
    h5_ohdr oh;
    h5_arena arena;
    uint32_t seen; /* bit per message id below 32 that was decoded */

    h5_link *link;
    h5_link_info *link_info; /* as many */
    size_t nlink, link_cap, info_cap;
    h5_dense links, attrs;
    uint64_t symbols, symbol_heap; /* symbol-table group: B-tree and local heap */
    h5_attr *attr;
    size_t nattr, attr_cap;

    h5_dataset_info *info; /* NULL where the header has no message that fills it: most groups */
    h5_layout layout;
    const uint8_t *fill; /* one element in the file's byte order; NULL = zeros */
    size_t fill_bytes;
    int no_fill;     /* there is none, by a message: what was never written has no values */
    h5_error refuse; /* code H5_OK, or why the values of this dataset cannot be read */
};

/* h5_object_open, h5_object_find and h5_dataset_read_stored on behalf of another call. */
int h5_object_open_deep(h5_file *f, uint64_t addr, h5_deep *deep, h5_object **out, h5_error *err);
int h5_object_find_deep(h5_file *f, const char *path, h5_deep *deep, h5_object **out,
                        h5_error *err);
int h5_dataset_read_deep(const h5_object *o, const uint64_t *start, const uint64_t *count,
                         void *buf, size_t bytes, h5_deep *deep, h5_error *err);

/* Notes the first reason why the values cannot be read; the object itself stays good. */
int h5_object_refuse(h5_object *o, uint64_t addr, const char *fmt, const char *feature);

/* Adds a link; name and what info points to must live as long as the object. */
int h5_object_add_link(h5_object *o, const char *name, uint64_t addr, const h5_link_info *info,
                       h5_error *err);

/* Adds the members of a symbol-table group. */
int h5_symtab_load(h5_object *o, h5_error *err);
/* Adds what the heaps of o->links and o->attrs hold. */
int h5_dense_load(h5_object *o, h5_error *err);

#endif
