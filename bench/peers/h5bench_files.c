/*
 * h5bench_files.c - the input files of the HDF5 benchmark, all made by libhdf5.
 *
 * Numbers are i % 1009 / 8, so that every read can be checked and deflate has something to do.
 *
 * SPDX-License-Identifier: MIT
 */
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>

#include "h5bench.h"

static int complain(const char *what)
{
    fprintf(stderr, "libhdf5: cannot make %s\n", what);
    return -1;
}

static hid_t new_file(const char *name, int latest)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    if (latest) {
        H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    }
    hid_t f = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    H5Pclose(access);
    return f;
}

typedef struct shape {
    int rank;
    hsize_t dims[2], most[2];
    hsize_t chunk[2]; /* 0: contiguous */
    unsigned deflate; /* level, 0 = none */
} shape;

static int put_floats(hid_t f, const char *name, const shape *s)
{
    size_t n = (size_t)(s->dims[0] * (s->rank == 2 ? s->dims[1] : 1));
    float *v = malloc(n * sizeof *v);
    if (v == NULL) {
        return complain(name);
    }
    for (size_t i = 0; i < n; i++) {
        v[i] = (float)(i % 1009) / 8;
    }
    hid_t space = H5Screate_simple(s->rank, s->dims, s->most);
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
    if (s->chunk[0] != 0) {
        H5Pset_chunk(plist, s->rank, s->chunk);
    }
    if (s->deflate != 0) {
        H5Pset_deflate(plist, s->deflate);
    }
    hid_t d = H5Dcreate2(f, name, H5T_IEEE_F32LE, space, H5P_DEFAULT, plist, H5P_DEFAULT);
    int rc = H5Dwrite(d, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, v) < 0 ? complain(name)
                                                                                 : 0;
    H5Dclose(d);
    H5Pclose(plist);
    H5Sclose(space);
    free(v);
    return rc;
}

static int put_attribute(hid_t f)
{
    double value = H5BENCH_ATTRIBUTE;
    hid_t space = H5Screate(H5S_SCALAR);
    hid_t a = H5Acreate2(f, "scale", H5T_IEEE_F64LE, space, H5P_DEFAULT, H5P_DEFAULT);
    int rc = H5Awrite(a, H5T_NATIVE_DOUBLE, &value) < 0 ? complain("an attribute") : 0;
    H5Aclose(a);
    H5Sclose(space);
    return rc;
}

static int small_file(const char *name, int latest)
{
    const shape few = {1, {H5BENCH_FEW, 0}, {H5BENCH_FEW, 0}, {0, 0}, 0};
    const shape many = {1, {H5BENCH_MANY, 0}, {H5BENCH_MANY, 0}, {0, 0}, 0};
    const shape image = {2,
                         {H5BENCH_SIDE, H5BENCH_SIDE},
                         {H5BENCH_SIDE, H5BENCH_SIDE},
                         {H5BENCH_TILE, H5BENCH_TILE},
                         0};
    const shape plate = {
        2, {H5BENCH_PLATE, H5BENCH_PLATE}, {H5BENCH_PLATE, H5BENCH_PLATE}, {100, 100}, 1};
    hid_t f = new_file(name, latest);
    int rc = f < 0 ? complain(name) : put_attribute(f);
    rc = rc ? rc : put_floats(f, "few", &few);
    rc = rc ? rc : put_floats(f, "many", &many);
    rc = rc ? rc : put_floats(f, "image", &image);
    rc = rc ? rc : put_floats(f, "plate", &plate);
    return H5Fclose(f) < 0 ? complain(name) : rc;
}

static int tiny_file(const char *name, int latest)
{
    hid_t f = new_file(name, latest);
    int rc = f < 0 ? complain(name) : put_attribute(f);
    return H5Fclose(f) < 0 ? complain(name) : rc;
}

static int group_file(const char *name, int latest)
{
    hid_t f = new_file(name, latest);
    int rc = f < 0 ? complain(name) : 0;
    for (int i = 0; i < H5BENCH_GROUPS && rc == 0; i++) {
        char path[32];
        snprintf(path, sizeof path, "group_%02d", i);
        hid_t g = H5Gcreate2(f, path, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        rc = g < 0 ? complain(path) : 0;
        H5Gclose(g);
    }
    return H5Fclose(f) < 0 ? complain(name) : rc;
}

static int wide_file(const char *name, int latest, hsize_t most0, hsize_t rows, hsize_t most1)
{
    const hsize_t n = (hsize_t)H5BENCH_CHUNKS * H5BENCH_CHUNK;
    shape s = {1, {n, 0}, {most0 ? most0 : n, 0}, {H5BENCH_CHUNK, 0}, 0};
    if (rows != 0) {
        s = (shape){2, {rows, n / rows}, {most0, most1}, {1, H5BENCH_CHUNK}, 0};
    }
    hid_t f = new_file(name, latest);
    int rc = f < 0 ? complain(name) : put_floats(f, "wide", &s);
    return H5Fclose(f) < 0 ? complain(name) : rc;
}

static int record_file(const char *name)
{
    const hsize_t n = H5BENCH_RECORDS, chunk = 4096;
    h5bench_record *r = calloc(H5BENCH_RECORDS, sizeof *r);
    if (r == NULL) {
        return complain(name);
    }
    for (int i = 0; i < H5BENCH_RECORDS; i++) {
        r[i] = (h5bench_record){i, 1.7e9 + i, (float)(i % 1009) / 8, i % 7};
    }
    hid_t type = H5Tcreate(H5T_COMPOUND, sizeof *r);
    H5Tinsert(type, "id", HOFFSET(h5bench_record, id), H5T_NATIVE_INT64);
    H5Tinsert(type, "time", HOFFSET(h5bench_record, time), H5T_NATIVE_DOUBLE);
    H5Tinsert(type, "value", HOFFSET(h5bench_record, value), H5T_NATIVE_FLOAT);
    H5Tinsert(type, "code", HOFFSET(h5bench_record, code), H5T_NATIVE_INT32);
    hid_t f = new_file(name, 0), space = H5Screate_simple(1, &n, NULL);
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(plist, 1, &chunk);
    hid_t d = H5Dcreate2(f, "records", type, space, H5P_DEFAULT, plist, H5P_DEFAULT);
    int rc = H5Dwrite(d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, r) < 0 ? complain(name) : 0;
    H5Dclose(d);
    H5Pclose(plist);
    H5Sclose(space);
    H5Tclose(type);
    free(r);
    return H5Fclose(f) < 0 ? complain(name) : rc;
}

int h5bench_files(void)
{
    const hsize_t all = H5S_UNLIMITED;
    int rc = small_file("old.h5", 0);
    rc = rc ? rc : small_file("new.h5", 1);
    rc = rc ? rc : tiny_file("tiny_old.h5", 0);
    rc = rc ? rc : tiny_file("tiny_new.h5", 1);
    rc = rc ? rc : group_file("groups_old.h5", 0);
    rc = rc ? rc : group_file("groups_new.h5", 1);
    rc = rc ? rc : wide_file("wide_btree1.h5", 0, 0, 0, 0);
    rc = rc ? rc : wide_file("wide_farray.h5", 1, 0, 0, 0);
    rc = rc ? rc : wide_file("wide_earray.h5", 1, all, 0, 0);
    rc = rc ? rc : wide_file("wide_btree2.h5", 1, all, 100, all);
    return rc ? rc : record_file("records.h5");
}
