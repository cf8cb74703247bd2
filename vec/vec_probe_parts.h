/*
 * vec_probe_parts.h - the inside of a search through lists, shared by vec_probe.c and its heaps
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef VEC_PROBE_PARTS_H
#define VEC_PROBE_PARTS_H

#include "vec_halves.h"
#include "vec_ivf.h"
#include "vec_pq.h"

#define GROUP_ROWS VEC_PQ_BLOCK

enum { BY_CODE, BY_RECORD, BY_KEY }; // what a group's bounds are made from

typedef struct vec_probe_group {
    float bound; // of its rows that are left: no distance is below
    float least; // the same as low has it
    uint32_t n;  // rows
    int kind;
    size_t slot; // of its first row in low and row
    size_t key;  // BY_KEY: of its first row in keys
} vec_probe_group;

typedef struct vec_probe_candidate {
    double bound;
    uint64_t row;
} vec_probe_candidate;

struct vec_probe {
    vec_probe_args a;
    const vec_ivf *ix;
    float norm;   // of the query
    float *q;     // the query in the index's space ...
    float length; // ... and its length
    vec_centroid_query s;
    uint32_t *near; // lists as a heap, nearest first; nnear are left
    size_t nnear, probed;
    uint8_t *table; // of codes
    float offset, step, factor, margin, reach[TUNE_H];
    float *last; // heap, largest first: the least keys so far, as many as were promised
    size_t nlast, last_cap;
    vec_plane_query plane;
    void *scratch;
    uint8_t *records; // LOOK_BATCH of them
    uint64_t *todo;
    float *low;
    uint32_t *row;
    size_t nslot, slot_cap;
    double *keys;
    vec_probe_group *groups; // heap
    size_t ngroup, group_cap;
    vec_probe_candidate *mid; // heap: rows whose record was looked at
    size_t nmid, mid_cap;
    vec_hit *hits; // heap: rows whose distance is known
    size_t nhit, hit_cap;
    vec_hit *head; // rows in their order; the first ngiven were handed out
    size_t nhead, ngiven, head_cap;
    uint64_t promise;
    uint64_t scanned; // places of blocks scanned
    uint64_t looked;  // vectors read
    size_t cost;
    vec_near *rest;
    int failed, ended;
};

/* Room in *at, which holds n of *cap, for more of size bytes each. VEC_OK or VEC_NOMEM. */
int vec_probe_room(void **at, size_t n, size_t *cap, size_t more, size_t size);
/* Heaps of groups, least bound first. */
void vec_probe_sink_group(vec_probe_group *g, size_t n, size_t i);
void vec_probe_raise_group(vec_probe_group *g, size_t i);
/* Rows whose record was looked at, least bound first. */
int vec_probe_push_mid(vec_probe *p, double bound, uint64_t row);
uint64_t vec_probe_pop_mid(vec_probe *p);
/* Rows whose distance is known, nearest first. */
int vec_probe_push_hit(vec_probe *p, double key, uint64_t row);
vec_hit vec_probe_pop_hit(vec_probe *p);

#endif
