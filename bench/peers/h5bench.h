/*
 * h5bench.h - what the files of the HDF5 benchmark share: the input files, and reading them twice.
 *
 * h5bench.c runs the rows, h5bench_files.c makes the input files with libhdf5, h5bench_ours.c and
 * h5bench_peer.c do the same work with hdf5core and with libhdf5, whose headers no file includes
 * both.
 *
 * ERRORS    0 is success; a failure prints its cause and returns -1.
 * THREADS   one.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef H5BENCH_H
#define H5BENCH_H

#include <stddef.h>
#include <stdint.h>

/* Sizes of what the files hold. */
enum {
    H5BENCH_FEW = 1000,
    H5BENCH_MANY = 100000,
    H5BENCH_SIDE = 512, /* of the image, in chunks of H5BENCH_TILE */
    H5BENCH_TILE = 64,
    H5BENCH_PLATE = 1000, /* side of the deflated plate, in chunks of 100 */
    H5BENCH_GROUPS = 64,
    H5BENCH_CHUNKS = 100000, /* of a wide dataset, each of 16 numbers */
    H5BENCH_CHUNK = 16,
    H5BENCH_RECORDS = 1000000
};

/* One record of the compound dataset. */
typedef struct h5bench_record {
    int64_t id;
    double time;
    float value;
    int32_t code;
} h5bench_record;

#define H5BENCH_ATTRIBUTE 3.25 /* the value of the root's attribute "scale" */

/* Makes all input files in the working folder: old.h5 and new.h5 (attribute, contiguous datasets,
** image, plate; oldest and newest form of the structures), tiny_*.h5 (the attribute alone),
** groups_*.h5, one wide_*.h5 an index, records.h5. */
int h5bench_files(void);

/* A hyperslab; rank 1 or 2. */
typedef struct h5bench_box {
    const char *file, *object;
    int rank;
    uint64_t start[2], count[2];
} h5bench_box;

/* What one side does, from opening the file to closing it. */
typedef struct h5bench_side {
    int (*attribute)(const char *file, double *out);
    int (*box)(const h5bench_box *b, float *out, size_t n);
    int (*walk)(const char *file, int *objects);
} h5bench_side;

extern const h5bench_side h5bench_ours, h5bench_peer;

/* The peer reads the first n records in one call. */
int h5bench_peer_records(const char *file, h5bench_record *out, size_t n);
const char *h5bench_peer_version(void);

/* Ours, from memory: superblock and attribute. The n bytes are those of the file. */
int h5bench_parse(const void *bytes, size_t n, double *out);

/* What the hyperslab costs in reads: calls and bytes, and the bytes of chunks among them. */
typedef struct h5bench_cost {
    long reads;
    uint64_t bytes;  /* all that was read */
    uint64_t needed; /* stored bytes of the chunks that the box touches */
} h5bench_cost;

/* The image without HDF5: where its first tile is, the others behind it; read by pread and copied
** by rows. A reader of files that are not mapped needs that much. */
int h5bench_bare_at(const char *file, uint64_t *at);
int h5bench_bare(const char *file, uint64_t at, float *out);

int h5bench_count(const h5bench_box *b, float *out, size_t n, h5bench_cost *cost);

#endif
