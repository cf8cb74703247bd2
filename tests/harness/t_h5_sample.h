/*
 * t_h5_sample.h - one HDF5 file of the kind a store writes, and reading all of it back
 *
 * The file has groups, attributes of each kind, and datasets: 1-D and 2-D, plain, filtered with a
 * raw last chunk, paged index, contiguous, never written. t_sample_write makes it, t_sample_read
 * reads every value and counts what is not as written. Both give the code of the first call that
 * failed and leave nothing behind, whatever fails.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef T_H5_SAMPLE_H
#define T_H5_SAMPLE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "h5core.h"

enum {
    T_SAMPLE_IDS = 60,     /* int64, chunks of 16, shuffle and deflate, last chunk raw */
    T_SAMPLE_VECTORS = 10, /* rows of 6 floats, chunks of 4 rows */
    T_SAMPLE_FLAGS = 1100, /* bytes, chunks of 1: two pages of index */
    T_SAMPLE_PLAIN = 25    /* big-endian uint16, contiguous */
};

/* What a reader found: values that are not as written, and objects it could read. */
typedef struct t_sample {
    int wrong;
    int read;
} t_sample;

static inline int64_t t_sample_id(int i)
{
    return i < 40 ? i * 1000003 : 7;
}

static inline float t_sample_float(int i)
{
    return (float)i / 8;
}

static inline h5_pipeline t_sample_filters(void)
{
    h5_pipeline p = {.n = 2};
    p.filter[0] = (h5_filter){.id = H5_FILTER_SHUFFLE, .flags = 1, .nvalue = 1, .value = {8}};
    p.filter[1] = (h5_filter){.id = H5_FILTER_DEFLATE, .flags = 1, .nvalue = 1, .value = {6}};
    return p;
}

static inline int t_sample_write_ids(h5_writer *w, uint64_t *at, h5_error *err)
{
    h5_pipeline p = t_sample_filters();
    uint64_t rows = T_SAMPLE_IDS, max = 64;
    uint32_t chunk = 16;
    int64_t v[64] = {0};
    h5_chunk c[4];
    h5_dataset_spec d = {
        .rank = 1, .dims = &rows, .maxdims = &max, .chunk = &chunk, .pipeline = &p};
    h5_type_number('i', 8, &d.type);
    for (int i = 0; i < T_SAMPLE_IDS; i++)
        v[i] = t_sample_id(i);
    for (int i = 0; i < 4; i++) {
        void *enc;
        size_t n;
        int rc = h5_pipeline_encode(&p, v + i * 16, 128, &enc, &n, &c[i].mask, err);
        if (rc == H5_OK && i < 3)
            rc = h5_writer_append(w, enc, n, 8, &c[i].addr, err);
        c[i].size = n;
        h5_free(enc);
        if (rc != H5_OK)
            return rc;
    }
    c[3].size = 128;
    c[3].mask = 3;
    int rc = h5_writer_append(w, v + 48, 128, 64, &c[3].addr, err);
    if (rc == H5_OK)
        rc = h5_write_fixed_array(w, c, 4, 1, 128, &d.addr, err);
    return rc == H5_OK ? h5_write_dataset(w, &d, at, err) : rc;
}

static inline int t_sample_write_vectors(h5_writer *w, uint64_t *at, h5_error *err)
{
    uint64_t dims[2] = {T_SAMPLE_VECTORS, 6}, max[2] = {16, 6};
    uint32_t chunk[2] = {4, 6};
    float v[16 * 6] = {0};
    h5_chunk c[4] = {{0, 96, 0}, {0, 96, 0}, {0, 96, 0}, {H5_UNDEF, 0, 0}};
    h5_attr_spec a = {.name = "metric", .kind = 's', .s = "cosine"};
    h5_dataset_spec d = {
        .rank = 2, .dims = dims, .maxdims = max, .chunk = chunk, .attrs = &a, .nattr = 1};
    h5_type_number('f', 4, &d.type);
    for (int i = 0; i < T_SAMPLE_VECTORS * 6; i++)
        v[i] = t_sample_float(i);
    for (int i = 0; i < 3; i++) {
        int rc = h5_writer_append(w, v + i * 24, 96, 64, &c[i].addr, err);
        if (rc != H5_OK)
            return rc;
    }
    int rc = h5_write_fixed_array(w, c, 4, 0, 96, &d.addr, err);
    return rc == H5_OK ? h5_write_dataset(w, &d, at, err) : rc;
}

static inline int t_sample_write_flags(h5_writer *w, uint64_t *at, h5_error *err)
{
    uint64_t rows = T_SAMPLE_FLAGS, first;
    uint32_t one = 1;
    uint8_t v[8] = {0, 1, 2, 3, 4, 5, 6, 7}, fill = 9;
    h5_dataset_spec d = {.rank = 1, .dims = &rows, .maxdims = &rows, .chunk = &one, .fill = &fill};
    h5_type_number('u', 1, &d.type);
    h5_chunk *c = h5_malloc(T_SAMPLE_FLAGS * sizeof *c);
    if (!c)
        return h5_fail(err, H5_NOMEM, H5_UNDEF, "sample");
    int rc = h5_writer_append(w, v, 8, 8, &first, err);
    for (int i = 0; i < T_SAMPLE_FLAGS; i++)
        c[i] = i % 9 == 8 ? (h5_chunk){H5_UNDEF, 0, 0}
                          : (h5_chunk){first + (uint64_t)(i % 9), 1, 0};
    if (rc == H5_OK)
        rc = h5_write_fixed_array(w, c, T_SAMPLE_FLAGS, 0, 1, &d.addr, err);
    h5_free(c);
    return rc == H5_OK ? h5_write_dataset(w, &d, at, err) : rc;
}

static inline int t_sample_write_others(h5_writer *w, uint64_t *plain, uint64_t *empty,
                                        h5_error *err)
{
    uint64_t rows = T_SAMPLE_PLAIN, max = 100;
    uint32_t chunk = 50;
    uint8_t v[T_SAMPLE_PLAIN * 2];
    h5_dataset_spec d = {.rank = 1, .dims = &rows};
    h5_type_number('u', 2, &d.type);
    d.type.big_endian = 1;
    for (int i = 0; i < T_SAMPLE_PLAIN; i++) {
        v[2 * i] = 3;
        v[2 * i + 1] = (uint8_t)i;
    }
    int rc = h5_writer_append(w, v, sizeof v, 8, &d.addr, err);
    if (rc == H5_OK)
        rc = h5_write_dataset(w, &d, plain, err);
    if (rc != H5_OK)
        return rc;
    d = (h5_dataset_spec){
        .rank = 1, .dims = &rows, .maxdims = &max, .chunk = &chunk, .addr = H5_UNDEF};
    h5_type_number('f', 8, &d.type);
    return h5_write_dataset(w, &d, empty, err);
}

static inline int t_sample_write_all(h5_writer *w, uint64_t *root, h5_error *err)
{
    static const h5_attr_spec attrs[] = {{.name = "version", .kind = 'i', .i = 3},
                                         {.name = "weight", .kind = 'f', .f = 0.25},
                                         {.name = "name", .kind = 's', .s = "sample"}};
    h5_link in[4] = {{.name = "id"}, {.name = "embedding"}, {.name = "live"}, {.name = "plain"}};
    h5_link top[2] = {{.name = "memory"}, {.name = "empty"}};
    int rc = t_sample_write_ids(w, &in[0].addr, err);
    if (rc == H5_OK)
        rc = t_sample_write_vectors(w, &in[1].addr, err);
    if (rc == H5_OK)
        rc = t_sample_write_flags(w, &in[2].addr, err);
    if (rc == H5_OK)
        rc = t_sample_write_others(w, &in[3].addr, &top[1].addr, err);
    if (rc == H5_OK)
        rc = h5_write_group(w, in, 4, NULL, 0, &top[0].addr, err);
    return rc == H5_OK ? h5_write_group(w, top, 2, attrs, 3, root, err) : rc;
}

/* Writes the file into io. */
static inline int t_sample_write(h5_io *io, h5_error *err)
{
    uint8_t super[H5_SUPERBLOCK_BYTES];
    h5_writer *w;
    uint64_t root;
    int rc = h5_writer_new(io, sizeof super, &w, err);
    if (rc != H5_OK)
        return rc;
    rc = t_sample_write_all(w, &root, err);
    if (rc == H5_OK)
        rc = h5_writer_flush(w, err);
    if (rc == H5_OK)
        rc = io->sync(io, err);
    if (rc == H5_OK) {
        h5_superblock_pack(root, h5_writer_eof(w), super);
        rc = io->write(io, 0, super, sizeof super, err);
    }
    h5_writer_free(w);
    return rc == H5_OK ? io->sync(io, err) : rc;
}

/* Is element i of this dataset, at p, as it was written? */
static inline int t_sample_right(const char *path, int i, const void *p)
{
    int64_t id;
    float f;
    uint16_t u;
    double d;
    memcpy(&id, p, strstr(path, "id") ? 8 : 0);
    memcpy(&f, p, strstr(path, "embedding") ? 4 : 0);
    memcpy(&u, p, strstr(path, "plain") ? 2 : 0);
    memcpy(&d, p, strstr(path, "empty") ? 8 : 0);
    if (strstr(path, "id"))
        return id == t_sample_id(i);
    if (strstr(path, "embedding"))
        return f == t_sample_float(i);
    if (strstr(path, "plain"))
        return u == 3 * 256 + i;
    if (strstr(path, "empty"))
        return d == 0;
    return *(const uint8_t *)p == (i % 9 == 8 ? 9 : i % 9);
}

/* Reads the whole dataset at this path, its chunk table too, when there is one. A file that claims
** more than 1 MiB for it is not as written. */
static inline int t_sample_read_one(h5_file *f, const char *path, uint64_t elements, t_sample *out,
                                    h5_error *err)
{
    uint64_t zero[H5_RANK_MAX] = {0}, n = 1;
    h5_object *o;
    h5_chunk *chunks;
    size_t nchunk;
    int rc = h5_object_find(f, path, &o, err);
    if (rc != H5_OK)
        return rc;
    const h5_dataset_info *d = h5_object_dataset(o);
    for (int i = 0; d && i < d->rank; i++)
        n = d->dims[i] && n > (1 << 20) / d->dims[i] ? 1 << 21 : n * d->dims[i];
    size_t bytes = d && n <= 1 << 20 && d->type.size <= 64 ? (size_t)n * d->type.size : 0;
    void *buf = h5_malloc(bytes + 8);
    if (!buf)
        rc = h5_fail(err, H5_NOMEM, H5_UNDEF, "sample");
    if (rc == H5_OK && d && d->layout == H5_LAYOUT_CHUNKED) {
        rc = h5_dataset_chunks(f, o, &chunks, &nchunk, err);
        h5_free(chunks);
    }
    if (rc == H5_OK && bytes > 0)
        rc = h5_dataset_read(f, o, zero, d->dims, buf, bytes, err);
    if (rc == H5_OK) {
        out->read++;
        out->wrong += n != elements || bytes < n;
        for (uint64_t i = 0; i < n && n == elements && bytes >= 8; i++)
            out->wrong += !t_sample_right(path, (int)i, (uint8_t *)buf + i * d->type.size);
    }
    h5_free(buf);
    h5_object_close(o);
    return rc;
}

static inline int t_sample_read_attrs(h5_file *f, t_sample *out, h5_error *err)
{
    h5_object *o;
    int64_t i = 0;
    double r = 0;
    char *s = NULL;
    int rc = h5_object_find(f, "/", &o, err);
    if (rc != H5_OK)
        return rc;
    rc = h5_attr_int(o, "version", &i, err);
    if (rc == H5_OK)
        rc = h5_attr_real(o, "weight", &r, err);
    if (rc == H5_OK)
        rc = h5_attr_text(o, "name", &s, err);
    if (rc == H5_OK) {
        out->read++;
        out->wrong += i != 3 || r != 0.25 || strcmp(s, "sample") != 0;
    }
    h5_free(s);
    h5_object_close(o);
    return rc;
}

/* Reads all of the file. Goes on after a failure; gives the first one's code. */
static inline int t_sample_read(h5_io *io, t_sample *out, h5_error *err)
{
    static const struct {
        const char *path;
        uint64_t elements;
    } all[] = {{"/memory/id", T_SAMPLE_IDS},
               {"/memory/embedding", T_SAMPLE_VECTORS * 6},
               {"/memory/live", T_SAMPLE_FLAGS},
               {"/memory/plain", T_SAMPLE_PLAIN},
               {"/empty", T_SAMPLE_PLAIN}};
    h5_file *f;
    *out = (t_sample){0, 0};
    int rc = h5_file_open(io, &f, err);
    if (rc != H5_OK)
        return rc;
    rc = t_sample_read_attrs(f, out, err);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        int one = t_sample_read_one(f, all[i].path, all[i].elements, out, rc == H5_OK ? err : NULL);
        rc = rc == H5_OK ? one : rc;
    }
    h5_file_close(f);
    return rc;
}

#endif
