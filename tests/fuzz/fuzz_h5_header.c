/*
 * fuzz_h5_header.c - any bytes as an object header, of a group, a dataset or a type
 *
 * The input stands at address 48 behind a superblock, so that addresses in it can lead to itself.
 * What an object says of itself is taken; values are left to the other targets.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "h5core.h"
#include "t_mend.h"

static void attributes(const h5_object *o)
{
    const h5_attr *a;
    size_t n = h5_object_attrs(o, &a);
    for (size_t i = 0; i < n; i++) {
        int64_t v;
        double r;
        char *s;
        h5_error err;
        h5_error_clear(&err);
        t_known(h5_attr_int(o, a[i].name, &v, &err));
        t_known(h5_attr_real(o, a[i].name, &r, &err));
        t_known(h5_attr_text(o, a[i].name, &s, &err));
        h5_free(s);
    }
}

static int open_header(void *ctx, const uint8_t *bytes, size_t n, h5_error *err)
{
    h5_io *io;
    h5_file *f;
    h5_object *o;
    const h5_link *links;
    (void)ctx;
    int rc = h5_io_bytes(bytes, n, &io, err);
    if (rc != H5_OK)
        return rc;
    rc = h5_file_open(io, &f, err);
    if (rc == H5_OK) {
        rc = h5_object_open(f, H5_SUPERBLOCK_BYTES, &o, err);
        if (rc == H5_OK) {
            attributes(o);
            size_t links_n = h5_object_links(o, &links);
            for (size_t i = 0; i < links_n; i++)
                if (!h5_object_link(o, links[i].name) || !h5_object_link_info(o, i))
                    abort();
            if (strlen(h5_layout_name(o)) + strlen(h5_index_name(o)) > 99)
                abort();
            h5_object_close(o);
        }
        h5_file_close(f);
    }
    io->close(io);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *bytes = malloc(size + H5_SUPERBLOCK_BYTES);
    if (!bytes || size == 0) {
        free(bytes);
        return 0;
    }
    h5_superblock_pack(H5_SUPERBLOCK_BYTES, size + H5_SUPERBLOCK_BYTES, bytes);
    memcpy(bytes + H5_SUPERBLOCK_BYTES, data, size);
    t_mend_run(bytes, size + H5_SUPERBLOCK_BYTES, open_header, NULL);
    free(bytes);
    return 0;
}
