/*
 * h5bench_ours.c - the benchmark's work done with hdf5core, what it costs in reads, and how fast
 * bare copies of the same bytes are.
 *
 * SPDX-License-Identifier: MIT
 */
#include <fcntl.h>
#include <unistd.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "h5core.h"
#include "h5bench.h"

static int complain(const char *file, const h5_error *err)
{
    fprintf(stderr, "hdf5core: %s: %s\n", file, err->text);
    return -1;
}

static int read_attribute(h5_file *f, double *out, h5_error *err)
{
    h5_object *o;
    int rc = h5_object_find(f, "/", &o, err);
    if (rc == H5_OK) {
        rc = h5_attr_real(o, "scale", out, err);
        h5_object_close(o);
    }
    return rc;
}

static int attribute(const char *file, double *out)
{
    h5_error err;
    h5_file *f;
    h5_error_clear(&err);
    int rc = h5_file_open_path(file, &f, &err);
    if (rc == H5_OK) {
        rc = read_attribute(f, out, &err);
        h5_file_close(f);
    }
    return rc == H5_OK ? 0 : complain(file, &err);
}

static int read_box(h5_file *f, const h5bench_box *b, float *out, size_t n, h5_error *err)
{
    h5_object *o;
    int rc = h5_object_find(f, b->object, &o, err);
    if (rc == H5_OK) {
        rc = h5_dataset_read(f, o, b->start, b->count, out, n * sizeof *out, err);
        h5_object_close(o);
    }
    return rc;
}

static int box(const h5bench_box *b, float *out, size_t n)
{
    h5_error err;
    h5_file *f;
    h5_error_clear(&err);
    int rc = h5_file_open_path(b->file, &f, &err);
    if (rc == H5_OK) {
        rc = read_box(f, b, out, n, &err);
        h5_file_close(f);
    }
    return rc == H5_OK ? 0 : complain(b->file, &err);
}

static int visit(void *ctx, const h5_item *item)
{
    *(int *)ctx += item->kind == H5_KIND_GROUP;
    return 0;
}

static int walk(const char *file, int *objects)
{
    h5_error err;
    h5_file *f;
    h5_error_clear(&err);
    *objects = 0;
    int rc = h5_file_open_path(file, &f, &err);
    if (rc == H5_OK) {
        rc = h5_walk(f, visit, objects, &err);
        h5_file_close(f);
    }
    return rc == H5_OK ? 0 : complain(file, &err);
}

const h5bench_side h5bench_ours = {attribute, box, walk};

int h5bench_parse(const void *bytes, size_t n, double *out)
{
    h5_error err;
    h5_io *io;
    h5_file *f = NULL;
    h5_error_clear(&err);
    int rc = h5_io_bytes(bytes, n, &io, &err);
    if (rc == H5_OK) {
        rc = h5_file_open(io, &f, &err);
        rc = rc == H5_OK ? read_attribute(f, out, &err) : rc;
        h5_file_close(f);
        io->close(io);
    }
    return rc == H5_OK ? 0 : complain("(memory)", &err);
}

/* ---- an io that counts */

typedef struct counting {
    h5_io io;
    h5_io *inner;
    h5bench_cost *cost;
} counting;

static int count_size(h5_io *io, uint64_t *out, h5_error *err)
{
    h5_io *inner = ((counting *)io)->inner;
    return inner->size(inner, out, err);
}

static int count_read(h5_io *io, uint64_t off, void *buf, size_t n, h5_error *err)
{
    counting *c = (counting *)io;
    c->cost->reads++;
    c->cost->bytes += n;
    return c->inner->read(c->inner, off, buf, n, err);
}

/* Stored bytes of the chunks that the box touches. */
static int needed(h5_file *f, const h5bench_box *b, uint64_t *out, h5_error *err)
{
    h5_object *o;
    h5_chunk *chunk = NULL;
    size_t n = 0;
    *out = 0;
    int rc = h5_object_find(f, b->object, &o, err);
    if (rc == H5_OK) {
        const h5_dataset_info *d = h5_object_dataset(o);
        uint64_t across = b->rank == 2 ? (d->dims[1] + d->chunk[1] - 1) / d->chunk[1] : 1;
        rc = h5_dataset_chunks(f, o, &chunk, &n, err);
        for (size_t i = 0; rc == H5_OK && i < n; i++) {
            uint64_t at[2] = {i / across, i % across};
            int in = 1;
            for (int k = 0; k < b->rank; k++) {
                uint64_t from = at[k] * d->chunk[k];
                in &= from < b->start[k] + b->count[k] && from + d->chunk[k] > b->start[k];
            }
            *out += in ? chunk[i].size : 0;
        }
    }
    h5_free(chunk);
    h5_object_close(o);
    return rc;
}

int h5bench_count(const h5bench_box *b, float *out, size_t n, h5bench_cost *cost)
{
    counting c = {.cost = cost};
    h5_error err;
    h5_file *f = NULL;
    uint64_t bytes = 0;
    h5_error_clear(&err);
    *cost = (h5bench_cost){0};
    int rc = h5_io_file(b->file, H5_IO_READ, &c.inner, &err);
    if (rc != H5_OK) {
        return complain(b->file, &err);
    }
    c.io = *c.inner;
    c.io.size = count_size;
    c.io.read = count_read;
    rc = h5_file_open(&c.io, &f, &err);
    rc = rc == H5_OK ? read_box(f, b, out, n, &err) : rc;
    h5bench_cost seen = *cost;
    rc = rc == H5_OK ? needed(f, b, &bytes, &err) : rc;
    *cost = seen;
    cost->needed = bytes;
    h5_file_close(f);
    c.inner->close(c.inner);
    return rc == H5_OK ? 0 : complain(b->file, &err);
}

/* ---- the image without HDF5 */

enum { TILES = H5BENCH_SIDE / H5BENCH_TILE, TILE = H5BENCH_TILE * H5BENCH_TILE };

int h5bench_bare_at(const char *file, uint64_t *at)
{
    h5_error err;
    h5_file *f;
    h5_object *o = NULL;
    h5_chunk *chunk = NULL;
    size_t n = 0;
    h5_error_clear(&err);
    int rc = h5_file_open_path(file, &f, &err);
    rc = rc == H5_OK ? h5_object_find(f, "/image", &o, &err) : rc;
    rc = rc == H5_OK ? h5_dataset_chunks(f, o, &chunk, &n, &err) : rc;
    *at = n > 0 ? chunk[0].addr : 0;
    for (size_t i = 0; i < n; i++) {
        if (chunk[i].addr != *at + i * TILE * sizeof(float)) {
            rc = h5_fail(&err, H5_MISUSE, chunk[i].addr, "tile %zu is not behind the others", i);
        }
    }
    h5_free(chunk);
    h5_object_close(o);
    h5_file_close(f);
    return rc == H5_OK ? 0 : complain(file, &err);
}

static void copy_tile(const float *tile, size_t no, float *out)
{
    float *to = out + no / TILES * H5BENCH_TILE * H5BENCH_SIDE + no % TILES * H5BENCH_TILE;
    for (size_t row = 0; row < H5BENCH_TILE; row++) {
        memcpy(to + row * H5BENCH_SIDE, tile + row * H5BENCH_TILE, H5BENCH_TILE * sizeof *to);
    }
}

int h5bench_bare(const char *file, uint64_t at, float *out)
{
    enum { ONCE = 4, READS = TILES * TILES / ONCE };
    static _Alignas(64) float tiles[ONCE * TILE + 16];
    int fd = open(file, O_RDONLY | O_CLOEXEC), rc = fd >= 0 ? 0 : -1;
    float *p = tiles + at % 64 / sizeof *tiles; // in cache lines as in the page cache
    for (size_t i = 0; i < READS && rc == 0; i++) {
        const size_t bytes = ONCE * TILE * sizeof *tiles;
        rc = pread(fd, p, bytes, (off_t)(at + i * bytes)) == (ssize_t)bytes ? 0 : -1;
        for (size_t k = 0; k < ONCE && rc == 0; k++) {
            copy_tile(p + k * TILE, i * ONCE + k, out);
        }
    }
    if (rc != 0) {
        perror(file);
    }
    if (fd >= 0) {
        close(fd);
    }
    return rc;
}
