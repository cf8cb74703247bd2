/*
 * fuzz_h5_superblock.c - any bytes as the start of a file: superblocks of every version and width,
 * their extension and driver information
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz.h"
#include "h5core.h"
#include "t_mend.h"

static int open_file(void *ctx, const uint8_t *bytes, size_t n, h5_error *err)
{
    h5_io *io;
    h5_file *f;
    (void)ctx;
    int rc = h5_io_bytes(bytes, n, &io, err);
    if (rc != H5_OK)
        return rc;
    rc = h5_file_open(io, &f, err);
    if (rc == H5_OK) {
        h5_object *o;
        rc = h5_object_open(f, h5_file_root(f), &o, err);
        h5_object_close(rc == H5_OK ? o : NULL);
        h5_file_close(f);
    }
    io->close(io);
    return rc;
}

static int unpack(void *ctx, const uint8_t *bytes, size_t n, h5_error *err)
{
    uint64_t root, eof;
    (void)ctx;
    (void)n;
    int rc = h5_superblock_unpack(bytes, &root, &eof, err);
    if (rc == H5_OK && root >= eof)
        __builtin_trap();
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    t_mend_run(data, size, open_file, NULL);
    if (size >= H5_SUPERBLOCK_BYTES)
        t_mend_run(data, H5_SUPERBLOCK_BYTES, unpack, NULL);
    return 0;
}
