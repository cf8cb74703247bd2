/*
 * h5bench_peer.c - the benchmark's work done with libhdf5, through the calls that its manual gives
 * for it and with its default settings.
 *
 * SPDX-License-Identifier: MIT
 */
#include <hdf5.h>
#include <stdio.h>

#include "h5bench.h"

static int complain(const char *file)
{
    fprintf(stderr, "libhdf5: cannot read %s\n", file);
    return -1;
}

static int attribute(const char *file, double *out)
{
    hid_t f = H5Fopen(file, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t a = H5Aopen_by_name(f, "/", "scale", H5P_DEFAULT, H5P_DEFAULT);
    int bad = H5Aread(a, H5T_NATIVE_DOUBLE, out) < 0;
    H5Aclose(a);
    bad |= H5Fclose(f) < 0;
    return bad ? complain(file) : 0;
}

static int box(const h5bench_box *b, float *out, size_t n)
{
    hsize_t start[2] = {b->start[0], b->start[1]}, count[2] = {b->count[0], b->count[1]}, all = n;
    hid_t f = H5Fopen(b->file, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t d = H5Dopen2(f, b->object, H5P_DEFAULT);
    hid_t space = H5Dget_space(d), memory = H5S_ALL, part = H5S_ALL;
    if ((size_t)H5Sget_simple_extent_npoints(space) != n) {
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
        memory = H5Screate_simple(1, &all, NULL);
        part = space;
    }
    int bad = H5Dread(d, H5T_NATIVE_FLOAT, memory, part, H5P_DEFAULT, out) < 0;
    if (memory != H5S_ALL) {
        H5Sclose(memory);
    }
    H5Sclose(space);
    H5Dclose(d);
    bad |= H5Fclose(f) < 0;
    return bad ? complain(b->file) : 0;
}

static herr_t visit(hid_t id, const char *name, const H5O_info_t *info, void *ctx)
{
    (void)id;
    (void)name;
    *(int *)ctx += info->type == H5O_TYPE_GROUP;
    return 0;
}

static int walk(const char *file, int *objects)
{
    *objects = 0;
    hid_t f = H5Fopen(file, H5F_ACC_RDONLY, H5P_DEFAULT);
    int bad = H5Ovisit2(f, H5_INDEX_NAME, H5_ITER_INC, visit, objects, H5O_INFO_BASIC) < 0;
    bad |= H5Fclose(f) < 0;
    return bad ? complain(file) : 0;
}

const h5bench_side h5bench_peer = {attribute, box, walk};

int h5bench_peer_records(const char *file, h5bench_record *out, size_t n)
{
    hsize_t start = 0, count = n;
    hid_t f = H5Fopen(file, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t d = H5Dopen2(f, "records", H5P_DEFAULT), type = H5Dget_type(d);
    hid_t native = H5Tget_native_type(type, H5T_DIR_ASCEND), space = H5Dget_space(d);
    hid_t memory = H5Screate_simple(1, &count, NULL);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &count, NULL);
    int bad = H5Dread(d, native, memory, space, H5P_DEFAULT, out) < 0;
    H5Sclose(memory);
    H5Sclose(space);
    H5Tclose(native);
    H5Tclose(type);
    H5Dclose(d);
    bad |= H5Fclose(f) < 0;
    return bad ? complain(file) : 0;
}

const char *h5bench_peer_version(void)
{
    static char text[32];
    unsigned major = 0, minor = 0, release = 0;
    H5get_libversion(&major, &minor, &release);
    snprintf(text, sizeof text, "%u.%u.%u", major, minor, release);
    return text;
}
