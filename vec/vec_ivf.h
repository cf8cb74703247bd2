/*
 * vec_ivf.h - the bytes of an index of lists, and its parts in memory
 *
 * Vectors are cut into lists by their nearest centroid; a search looks at the lists whose centroids
 * are nearest to the query. Kinds: VEC_IVF has lists of row numbers; VEC_IVFPQ adds 4-bit codes of
 * each vector's difference from its centroid; VEC_RAIRS adds a second list a vector.
 *
 * SPACE     Vectors are indexed as y: for cosine x / |x|, else x / S with one scale S, so that the
 *           numbers stay small. A query becomes q likewise (for inner products, of length 1). The
 *           key of a row is t = -q.y (cosine, inner product) or |y|^2 - 2 q.y (L2), which grows
 *           with the distance.
 *
 * IMAGE     little-endian, sections start at multiples of 64
 *   header, 512 bytes:
 *     0   "vecI", u32 version 1, u64 bytes in all
 *     16  u32 kind, u32 metric, u32 dim, u32 lists
 *     32  u64 rows (row numbers are below), u64 rows in lists
 *     48  u32 blocks, u32 cells
 *     56  f32 S, f32 radius: root mean square of the distance between y and its centroid
 *     64  u64 sum of the sections lists, centroids, book; u64 sum of all the others
 *     80  tuning: f32[TUNE_H] far, f32[TUNE_R][TUNE_H] reach, f32[TUNE_K][TUNE_R] probes,
 *         f32[TUNE_R] margin, u32 queries, f32 recall found at recall 0.99 and k = 10, f32 share of
 *         the rows looked at
 *     504 u64 sum of the bytes before
 *   lists       lists * 16: u32 first block, u32 blocks, u32 first cell, u32 cells
 *   centroids   records of vec_plane.h
 *   book        of vec_pq.h; not for VEC_IVF
 *   owner       blocks * u32: the list that a block belongs to
 *   rows        blocks * 32 * u32: row numbers; NO_ROW: an empty place
 *   square      blocks * 32 * f32: |y|^2; L2 with codes only
 *   cells       cells * 8: u32 first place, u32 places; VEC_RAIRS only
 *   codes       blocks of vec_pq.h; not for VEC_IVF
 *
 * A list owns a run of blocks: the vectors whose nearest centroid is its own, those that share the
 * same second list next to each other. Such a neighbourhood is a cell: the second list names it by
 * its places instead of holding it again (the shared cells of RAIRS, arXiv 2601.07183), so no code
 * is stored twice and, since a search marks what it has seen, none is scanned twice.
 *
 * TAIL      rows that came after the training, in runs
 *   0   "vecT", u32 version 1, u64 number of pairs, u64 first row, u64 last row, u64 sum of the
 *       pairs, u64 sum of the 40 bytes before; then the pairs' lists (u32, ascending), then their
 *       rows (u32, ascending within a list)
 *
 * THREADS   an open index is constant
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef VEC_IVF_H
#define VEC_IVF_H

#include "vec.h"
#include "vec_kmeans.h"

#define VEC_IVF_HEADER  512
#define VEC_IVF_NO_ROW  UINT32_MAX
#define VEC_TAIL_HEADER 48

/* Tuning: what was measured on vectors of the index's own that it was not trained on. */
#define TUNE_K 2 /* for 10 and 100 neighbours */
#define TUNE_H 5 /* for queries whose neighbours are so far */
#define TUNE_R 8 /* at these recalls: */
extern const double vec_tune_recall[TUNE_R];

typedef struct vec_tune {
    /* How far to go: the cosine, between a list's vectors' differences from the centroid and the
     * query's, from which on one of them would be an answer; beyond this none is expected. It
     * depends on how far (vec_ivf_far) the last of the answers is. */
    float far[TUNE_H];
    float reach[TUNE_R][TUNE_H];
    float probes[TUNE_K][TUNE_R]; /* lists that it took */
    float margin[TUNE_R];         /* by how much a key may be below its estimate */
    uint32_t queries;
    float recall; /* found with all that, at 0.99 and 10 neighbours */
    float looked; /* share of the rows whose codes were read in doing so */
} vec_tune;

typedef struct vec_ivf_list {
    uint32_t block, nblock, cell, ncell;
} vec_ivf_list;

/* Where the sections are; computed from the header's numbers alone. */
typedef struct vec_ivf_layout {
    size_t lists, centroids, book, owner, rows, square, cells, codes, end;
} vec_ivf_layout;

struct vec_ivf {
    const uint8_t *bytes;
    int kind, metric;
    size_t dim;
    uint32_t nlist, nblock, ncell;
    uint64_t nrow, nin;
    float scale, radius;
    vec_tune tune;
    vec_ivf_layout at;
    vec_ivf_list *list;
    vec_centroids centroids;
    float *book; /* NULL without codes */
};

struct vec_tail {
    const uint8_t *bytes;
    uint64_t n, first, last;
};

/* VEC_LIMIT when the image would pass SIZE_MAX or 2^40 bytes. */
int vec_ivf_lay_out(int kind, int metric, size_t dim, uint32_t nlist, uint32_t nblock,
                    uint32_t ncell, vec_ivf_layout *out);
/* Writes the header with all its sums over the finished sections. */
void vec_ivf_seal(uint8_t *bytes, const vec_ivf *ix);

/* The vector as it is indexed; returns its length. */
float vec_ivf_space(const vec_ivf *ix, const float *x, float norm, float *y);

/* 64-bit sum of bytes that tells damage, not intent. */
uint64_t vec_ivf_sum(const uint8_t *p, size_t n);

/* The cosine of reach that a list takes: with the query at q, squared distance `square` from the
 * centroid, product `dot` with it, and the key t of the last row that is wanted. */
float vec_ivf_needed(const vec_ivf *ix, float length, float square, float dot, float t);
/* How far a key is, in radii. */
float vec_ivf_far(const vec_ivf *ix, float length, float t);
/* The reach for a recall, TUNE_H values; and the one of them for something so far. */
void vec_tune_reach(const vec_tune *t, double recall, float *reach);
float vec_tune_reach_at(const vec_tune *t, const float *reach, float far);
/* How many lists promise this recall for k neighbours out of a share of the rows; at least 1. */
size_t vec_tune_probes(const vec_tune *t, double recall, double k, size_t nlist);
float vec_tune_margin(const vec_tune *t, double recall);
/* vec_ivf_tune.c: measures, and fills ix->tune. The image is sealed afterwards. */
typedef struct vec_ivf_sample vec_ivf_sample;

#endif
