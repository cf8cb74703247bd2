/*
 * st_lists.h - the index of lists in a store: approximate nearest neighbours.
 *
 * FILE      /index/vector/lists: uint8, an image of vec_ivf; absent until there are vectors enough
 *           /index/vector/t and a first row in 12 digits: uint8, a vec_tail: rows that came after
 *           the lists were trained, each with its list
 * COMPLETE  every row of the file that has a vector is in the lists or in a tail; rows of the log
 *           are searched beside them. Deleted rows stay until the lists are trained anew.
 * TRAINED   when there are vectors enough: by a flush that may append that much, by optimize, and
 *           by compact. Anew, when more rows are in tails than in the lists, or the option asks for
 *           another kind.
 * DAMAGED   an image or a tail that is not what it should be is left alone: searches are exact, and
 *           the next flush that may, optimize or compact trains anew.
 *
 * THREADS   opened under the image's lock, then constant
 * SPDX-License-Identifier: MIT
 */
#ifndef ST_LISTS_H
#define ST_LISTS_H

#include "st_image.h"

/* With index=auto lists are for so many vectors: below, the exact search takes less time than
 * looking at centroids does. A kind that is asked for takes only as many as make a few lists. */
#define ST_LISTS_AUTO_MIN 20000
#define ST_LISTS_MIN      256
#define ST_LISTS_AUTO     ST_INDEX_IVFPQ

enum { ST_LISTS_NONE, ST_LISTS_GOOD, ST_LISTS_DAMAGED };

typedef struct st_tail {
    uint64_t first, header;
    const uint8_t *bytes;
    uint64_t size;
} st_tail;

struct st_lists {
    int state;
    char why[160]; /* DAMAGED */
    uint64_t header;
    const uint8_t *bytes;
    uint64_t size;
    vec_ivf *ivf;
    vec_ivf_info info;
    st_tail *tail;
    vec_tail **open; /* the same, opened */
    size_t ntail;
    uint64_t tail_rows;
};

/* Never fails for damage: then state says so. */
int st_image_lists(st_image *im, const st_lists **out, st_error *err);
void st_lists_free(st_lists *l);

/* Vectors among the image's live rows (live: bitmap). */
int st_lists_vectors(st_reader *r, const uint64_t *live, uint64_t *n, st_error *err);
/* The kind that an option stands for, by the number of vectors; 0: none. */
int st_lists_kind(int option, uint64_t vectors);
/* Do they have to be trained anew, with so many rows in tails, for a kind? */
int st_lists_stale(const st_lists *l, uint64_t tail_rows, int kind);
/* Bytes that lists over so many vectors will take, roughly. */
uint64_t st_lists_bytes(int kind, size_t dim, uint64_t vectors);

#endif
