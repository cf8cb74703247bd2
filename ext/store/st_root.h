/*
 * st_root.h - everything of a new root that is no row data: chunk indexes, dataset headers, groups,
 * /meta.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ST_ROOT_H
#define ST_ROOT_H

#include "st_image.h"

/* A text run of the new root. */
typedef struct st_root_run {
    uint64_t first;  /* its first row, for the name */
    uint64_t header; /* address of the dataset header */
} st_root_run;

/* A run of an index of sorted runs of the new root. */
typedef struct st_root_sortrun {
    uint64_t first, count;
    int sorted;
    uint64_t perm_header; /* sorted: address of the dataset header */
} st_root_sortrun;

/* A table beside the rows of the new root. */
typedef struct st_root_side {
    int there;      /* 0: it never had a record */
    int touched;    /* 1: its group is written; 0: it stays where it is */
    uint64_t group; /* address of its header */
    int64_t next;
} st_root_side;

/* What the new root shows. Columns: n, chunk table, chunk_rows, pipeline; header is filled in for
** touched ones and kept for the others. */
typedef struct st_root {
    const st_schema *schema;
    const st_options *options;
    const uint8_t *uuid;
    const char *created;
    uint64_t generation, last_seq;
    int64_t next_id;
    st_colimg *col;
    const uint8_t *touched; /* nphys; NULL: all */
    const st_root_sortrun *sorted[ST_SORTS];
    size_t nsorted[ST_SORTS];
    const st_root_run *run;
    size_t nrun;
    uint64_t lists; /* address of the lists' dataset header; 0: none */
    const st_root_run *tail;
    size_t ntail;
    st_root_side side[ST_SIDES];
} st_root;

/* Appends it through w. *root is the address of the root group's header. */
int st_root_write(const st_root *r, h5_writer *w, uint64_t *root, st_error *err);
/* Appends bytes as a contiguous 1-D dataset of little-endian unsigned numbers of size bytes.
** *header its address. */
int st_root_blob(h5_writer *w, const void *p, uint64_t n, uint32_t size, uint64_t *header,
                 st_error *err);
/* The filter pipeline of a physical column under these options. */
void st_root_pipeline(const st_schema *s, const st_options *o, int col, h5_pipeline *out);

#endif
