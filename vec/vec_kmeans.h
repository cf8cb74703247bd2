/*
 * vec_kmeans.h - centroids, finding the nearest of them, and training them
 *
 * A centroid is kept as its record of vec_plane.h: 8-bit codes and the length. What the record
 * decodes to *is* the centroid, so that nothing is lost between training and searching. Distances
 * to centroids are integer products over records, on the kernels that planes have.
 *
 * THREADS   const objects may be shared; a vec_lists_query is one thread's
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef VEC_KMEANS_H
#define VEC_KMEANS_H

#include <stddef.h>
#include <stdint.h>

#include "vec_plane.h"

/* n centroids. records may be mapped; the rest is allocated by vec_centroids_open. */
typedef struct vec_centroids {
    size_t n, dim;
    const uint8_t *records;
    const uint8_t **rows; /* n pointers */
    float *scale;         /* a code times this is a component */
    float *square;        /* squared length */
} vec_centroids;

/* Zeroes *c on failure. */
int vec_centroids_open(const uint8_t *records, size_t n, size_t dim, vec_centroids *c);
void vec_centroids_close(vec_centroids *c);
void vec_centroid_decode(const vec_centroids *c, size_t i, float *out);

/* Scratch for one vector against n centroids. */
typedef struct vec_centroid_query {
    vec_plane_query q;
    void *scratch;
    int32_t *dots; /* VEC_PLANE_TOGETHER * n */
    int8_t *bytes; /* VEC_PLANE_TOGETHER vectors, padded */
    float *dot;    /* n: products of vector and centroid */
    float *score;  /* n: squared distance less the vector's squared length */
} vec_centroid_query;

int vec_centroid_query_new(const vec_centroids *c, vec_centroid_query *s);
void vec_centroid_query_free(vec_centroid_query *s);
/* Fills s->dot and s->score for x, whose length is norm. */
void vec_centroid_scores(const vec_centroids *c, const float *x, float norm, vec_centroid_query *s);
size_t vec_centroid_best(const vec_centroid_query *s, size_t n); /* least score; first of equals */

/* The nearest centroids of up to VEC_PLANE_TOGETHER vectors, one behind the other at x: their
 * numbers, and the squared distances less the vector's squared length. For many vectors: where a
 * kernel takes several at once they are rounded to bytes, which moves a distance by less than the
 * vectors of a list differ among each other. norm: their lengths. Leaves s->dot and s->score
 * undefined. */
void vec_centroid_assign(const vec_centroids *c, const float *x, const float *norm, size_t n,
                         vec_centroid_query *s, uint32_t *best, float *score);

/*
 * k centroids of the n vectors at x, as records (k * vec_plane_stride(dim) bytes): k-means++ on a
 * part of the sample, then a fixed number of rounds; a centroid that nothing belongs to moves to
 * the vector that is farthest from its own. n >= 1, k >= 1; with fewer different vectors than k
 * some centroids are equal. VEC_OK, VEC_NOMEM or VEC_ABORT. Only
 * the calling thread asks stop; the answer is the same for any number of threads.
 */
int vec_kmeans(const float *x, size_t n, size_t dim, size_t k, int threads, int (*stop)(void *),
               void *ctx, uint8_t *records);

/* A small generator for sampling; the same numbers on every machine. */
static inline uint64_t vec_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

#endif
