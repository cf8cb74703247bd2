/*
 * vec_near_parts.h - the inside of an exact search: what vec_near.c and its first pass share
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef VEC_NEAR_PARTS_H
#define VEC_NEAR_PARTS_H

#include <stdatomic.h>

#include "vec_halves.h"
#include "vec_limits.h"
#include "vec_near.h"

#define GROUP_ROWS 64
#define STOP_BYTES 65536 // scanned between two questions whether to stop
#define PART_ROWS  16384 // a thread of its own pays for that many
#define NONE       SIZE_MAX

typedef struct near_group {
    float least;            // no bound of its rows that are left is below; in the heap: the least
    unsigned n;             // rows
    uint64_t row;           // number of the first
    size_t slot;            // its place in low
    size_t answer;          // rows without a record: its place in keys; else NONE
    float fine;             // bounds up to here are those of both halves
    uint64_t sharp;         // rows whose bounds are those of a query of 16 bits
    const uint8_t *half[2]; // records of the first row; NULL without
} near_group;

/* A row whose bound by both halves is small enough for it to be among those that are asked for. */
typedef struct near_row {
    uint64_t row;
    const uint8_t *half[2];
    float bound;
    int sharp; // the bound is that of a query of 16 bits
} near_row;

typedef struct near_heap { // the least first
    vec_hit *h;
    size_t n, cap;
} near_heap;

struct vec_near {
    vec_near_args a;
    float norm;
    vec_halves_query q;
    vec_halves_sharp sharp;
    size_t stride;
    size_t dull; // fetches after which bounds are made sharp before a vector is fetched
    void *scratch, *sharp_scratch;
    float *low;
    double *keys;       // distances of the rows without a record
    near_group *groups; // a heap, least first, once `heaped`
    size_t ngroup;
    size_t nslot, nkey;
    size_t rows;     // selected, roughly: groups without a filter count in full
    near_row *close; // taken out of their groups
    size_t nclose;
    near_heap queue; // of close: key = bound, id = its place there
    near_heap hits;  // rows looked at and not handed out
    float rest;      // until heaped: no bound of a row in a group is below
    int heaped;
    size_t looked;
    size_t cost;    // bytes or fetches since stop was asked
    vec_rank *rank; // once everything has been looked at
    int failed;     // what every further call answers
};

/* A part of a pass: some extents, or groups, and where what it finds out has its place. */
typedef struct near_slice {
    vec_near *s;
    size_t first, last; // extents, or groups to refine
    size_t slot, group; // of its first row, in low and groups
    size_t ngroup, rows;
    int all, asks;   // asks: may call stop
    float up;        // bound of what is to be refined
    near_row *close; // room for `room`
    size_t nclose, room;
    atomic_int *halt; // nonzero: everybody ends
} near_slice;

/* Nonzero: the caller wants to stop. Asked once the costs since the last time reach limit. */
int vec_near_stopped(vec_near *s, size_t cost, size_t limit);
/* Nonzero: end this slice. Only one slice asks, the others look at what it was told. */
int vec_near_halted(near_slice *p, size_t cost, size_t limit);
/* How many threads n things are worth, when each is to have `least` of them. */
size_t vec_near_threads(const vec_near *s, uint64_t n, uint64_t least);
/* Runs the parts and takes care that stop is asked by one of them only. VEC_OK or VEC_ABORT. */
int vec_near_run(void (*fn)(void *), near_slice *parts, size_t n);

/* The first pass: groups and bounds of all rows; all: without bounds. */
int vec_near_scan_planes(vec_near *s, int all);
int vec_near_scan_exact(vec_near *s);

#endif
