/*
 * vec_ivf_build.h - what the files that build an index of lists share
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef VEC_IVF_BUILD_H
#define VEC_IVF_BUILD_H

#include "vec_ivf.h"

/* Vectors of the index's own that it is measured with, and their nearest. */
#define TUNE_NEAREST 100

typedef struct vec_ivf_trial {
    float *y;       /* in the index's space, n * dim */
    uint32_t *self; /* number of each among the vectors */
    size_t n;
    vec_topk **best; /* of each: TUNE_NEAREST + 1, itself among them; hits' rows are numbers among
                        the vectors, keys as in vec_ivf.h */
    float *products; /* n: scratch, each thread its part */
} vec_ivf_trial;

typedef struct vec_ivf_builder {
    const vec_ivf_args *a;
    vec_ivf ix;    /* what is being made */
    uint32_t *row; /* row number of each vector */
    uint32_t nvec;
    uint32_t *first;  /* its list */
    uint32_t *second; /* RAIRS: its second list, or VEC_IVF_NO_ROW */
    uint32_t *order;  /* vectors in the order of the lists */
    uint32_t *place;  /* of each vector */
    float *y;         /* one vector in the index's space */
    float *some;      /* `batch` of them, as they come and then in the index's space */
    float *norm;      /* of each of these; then its length */
    float *score;     /* of each, at its centroid */
    size_t batch, parts;
    uint8_t *records; /* of the centroids */
    float *centre;    /* RAIRS: decoded, nlist * dim */
    double squares;   /* sum of the squared distances to centroids */
    vec_centroid_query s;
    vec_ivf_trial trial;
    uint8_t *image;
} vec_ivf_builder;

/* Vector i as it is indexed, in b->y; *length its length. VEC_ABORT when it cannot be read. */
int vec_ivf_load(vec_ivf_builder *b, uint32_t i, float *length);
int vec_ivf_stopped(const vec_ivf_builder *b);

/* vec_ivf_tune.c */
/* shuffled: all vectors' numbers, first the trained ones. */
int vec_ivf_trial_new(vec_ivf_builder *b, uint64_t *state, const uint32_t *shuffled,
                      size_t trained);
void vec_ivf_trial_free(vec_ivf_trial *t);
/* Holds vector i, which is y, against those from .. to - 1; allocates nothing. */
int vec_ivf_trial_see(const vec_ivf_builder *b, const float *y, uint32_t i, float length,
                      size_t from, size_t to);
/* Measures the finished image, fills ix.tune and seals it again. */
int vec_ivf_tune(vec_ivf_builder *b);

#endif
