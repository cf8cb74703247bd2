/*
 * h5_object.c - opening groups and datasets, looking members and attributes up
 *
 * A header's messages are decoded one by one; then what must hold between them is checked once,
 * here: the chunk has the rank of the dataspace and the element size of the datatype, the fill
 * value has its size, stored data lie inside the file. Readers of data rely on it.
 *
 * OWNERSHIP  an object owns all that it hands out, until h5_object_close.
 * ERRORS     H5_FORMAT; H5_UNSUPPORTED when links or attributes could not be listed in full, or for
 *            a committed datatype
 * THREADS    an opened object never changes
 * TESTS      t_h5_object.c, t_h5_msg.c
 *
 * SPDX-License-Identifier: MIT
 */
#include <inttypes.h>

#include "h5_msg.h"

/* Chunk sizes against rank, element size and limits; info.size becomes the bytes of a chunk. */
static int check_chunked(h5_object *o, h5_error *err)
{
    h5_dataset_info *d = &o->info;
    uint64_t bytes = d->type.size;
    if (o->layout.dimensions != (unsigned)d->rank + 1)
        return h5_fail(err, H5_FORMAT, o->oh.addr,
                       "dataset: chunks of %u dimensions, dataspace of %d",
                       o->layout.dimensions - 1, d->rank);
    if (o->layout.element != d->type.size)
        return h5_fail(err, H5_FORMAT, o->oh.addr,
                       "dataset: chunk elements of %" PRIu64 " bytes, datatype of %u",
                       o->layout.element, (unsigned)d->type.size);
    for (int i = 0; i < d->rank; i++)
        if (!h5_mul_fits(bytes, d->chunk[i], &bytes) || bytes > H5_CHUNK_BYTES_MAX)
            return h5_fail(err, H5_LIMIT, o->oh.addr,
                           "dataset: chunks above H5_CHUNK_BYTES_MAX = %llu bytes",
                           (unsigned long long)H5_CHUNK_BYTES_MAX);
    d->size = bytes;
    return H5_OK;
}

/* What must hold between the messages of a dataset whose values can be read. */
static int check_dataset(h5_file *f, h5_object *o, h5_error *err)
{
    h5_dataset_info *d = &o->info;
    uint64_t bytes = d->type.size;
    for (int i = 0; i < d->rank; i++) {
        if (d->dims[i] == 0) {
            bytes = 0;
            break;
        }
        if (!h5_mul_fits(bytes, d->dims[i], &bytes))
            return h5_fail(err, H5_LIMIT, o->oh.addr, "dataset: more bytes than 64 bits count");
    }
    if (o->fill && o->fill_bytes != d->type.size)
        return h5_fail(err, H5_FORMAT, o->oh.addr,
                       "dataset: fill value of %zu bytes, datatype of %u", o->fill_bytes,
                       (unsigned)d->type.size);
    if (o->fill && o->fill_bytes <= sizeof d->fill)
        memcpy(d->fill, o->fill, o->fill_bytes);
    if (d->layout == H5_LAYOUT_CHUNKED)
        return check_chunked(o, err);
    if (d->layout == H5_LAYOUT_CONTIGUOUS && d->addr == H5_UNDEF)
        return H5_OK;
    if (d->size < bytes)
        return h5_fail(err, H5_FORMAT, o->oh.addr,
                       "dataset: %" PRIu64 " bytes stored, %" PRIu64 " needed", d->size, bytes);
    if (d->layout == H5_LAYOUT_CONTIGUOUS)
        return h5_file_inside(f, d->addr, d->size, "contiguous data", err);
    return H5_OK;
}

static int seen(const h5_object *o, int id)
{
    return o->seen >> id & 1;
}

static int settle_kind(h5_file *f, h5_object *o, h5_error *err)
{
    if (seen(o, H5_MSG_TYPE) && seen(o, H5_MSG_SPACE)) {
        o->kind = H5_KIND_DATASET;
        if (!seen(o, H5_MSG_LAYOUT))
            return h5_fail(err, H5_FORMAT, o->oh.addr, "dataset: no data layout message");
        return o->refuse.code == H5_OK ? check_dataset(f, o, err) : H5_OK;
    }
    if (seen(o, H5_MSG_LINK_INFO)) {
        o->kind = H5_KIND_GROUP;
        return H5_OK;
    }
    if (seen(o, H5_MSG_TYPE))
        return h5_fail(err, H5_UNSUPPORTED, o->oh.addr, "committed datatype");
    return h5_fail(err, H5_FORMAT, o->oh.addr, "object header: neither a group nor a dataset");
}

int h5_object_open(h5_file *f, uint64_t addr, h5_object **out, h5_error *err)
{
    *out = NULL;
    h5_object *o = h5_calloc(1, sizeof *o);
    if (!o)
        return h5_fail_nomem(err, "an object");
    h5_error_clear(&o->refuse);
    int rc = h5_ohdr_read(f, addr, &o->oh, err);
    for (size_t i = 0; rc == H5_OK && i < o->oh.nmsg; i++)
        rc = h5_msg_decode(o, &o->oh.msg[i], err);
    if (rc == H5_OK)
        rc = settle_kind(f, o, err);
    if (rc != H5_OK) {
        h5_object_close(o);
        return rc;
    }
    *out = o;
    return H5_OK;
}

/* The member whose name is the n bytes at name; H5_NOTFOUND names the path up to it. */
static int find_member(const h5_object *o, const char *path, const char *name, size_t n,
                       uint64_t *addr, h5_error *err)
{
    int upto = (int)(name - path + (ptrdiff_t)n);
    for (size_t i = 0; i < o->nlink; i++) {
        if (strncmp(o->link[i].name, name, n) != 0 || o->link[i].name[n] != 0)
            continue;
        if (o->link[i].addr == H5_UNDEF)
            return h5_fail(err, H5_UNSUPPORTED, H5_UNDEF,
                           "%.*s: soft, external or user-defined link", upto, path);
        *addr = o->link[i].addr;
        return H5_OK;
    }
    return h5_fail(err, H5_NOTFOUND, H5_UNDEF, "%.*s: no such member", upto, path);
}

int h5_object_find(h5_file *f, const char *path, h5_object **out, h5_error *err)
{
    h5_object *o;
    const char *p = path;
    *out = NULL;
    H5_TRY(h5_object_open(f, f->root, &o, err));
    for (;;) {
        p += strspn(p, "/");
        size_t n = strcspn(p, "/");
        uint64_t addr = H5_UNDEF;
        if (n == 0)
            break;
        int rc = find_member(o, path, p, n, &addr, err);
        h5_object_close(o);
        H5_TRY(rc);
        H5_TRY(h5_object_open(f, addr, &o, err));
        p += n;
    }
    *out = o;
    return H5_OK;
}

void h5_object_close(h5_object *o)
{
    if (!o)
        return;
    h5_ohdr_free(&o->oh);
    h5_arena_free(&o->arena);
    h5_free(o->link);
    h5_free(o->attr);
    h5_free(o);
}

int h5_object_kind(const h5_object *o)
{
    return o->kind;
}

size_t h5_object_links(const h5_object *o, const h5_link **out)
{
    *out = o->link;
    return o->nlink;
}

const h5_link *h5_object_link(const h5_object *o, const char *name)
{
    for (size_t i = 0; i < o->nlink; i++)
        if (strcmp(o->link[i].name, name) == 0)
            return &o->link[i];
    return NULL;
}

size_t h5_object_attrs(const h5_object *o, const h5_attr **out)
{
    *out = o->attr;
    return o->nattr;
}

const h5_attr *h5_object_attr(const h5_object *o, const char *name)
{
    for (size_t i = 0; i < o->nattr; i++)
        if (strcmp(o->attr[i].name, name) == 0)
            return &o->attr[i];
    return NULL;
}

const h5_dataset_info *h5_object_dataset(const h5_object *o)
{
    return o->kind == H5_KIND_DATASET ? &o->info : NULL;
}
