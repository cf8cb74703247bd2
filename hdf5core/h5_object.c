/*
 * h5_object.c - opening groups, datasets and committed types, looking members and attributes up
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
#include "h5_virtual.h"

/* Chunk sizes against rank, element size and limits; info.size becomes the bytes of a chunk. */
static int check_chunked(h5_object *o, h5_error *err)
{
    h5_dataset_info *d = o->info;
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
    h5_dataset_info *d = o->info;
    uint64_t bytes = d->space == H5_SPACE_NULL ? 0 : d->type.size;
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
    if (d->layout == H5_LAYOUT_VIRTUAL || d->nexternal > 0 || bytes == 0 ||
        (d->layout == H5_LAYOUT_CONTIGUOUS && d->addr == H5_UNDEF))
        return H5_OK;
    if (o->layout.version < 3 && d->layout == H5_LAYOUT_CONTIGUOUS)
        d->size = bytes;
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
        H5_TRY(h5_dense_load(o, err));
        return o->refuse.code == H5_OK ? check_dataset(f, o, err) : H5_OK;
    }
    if (seen(o, H5_MSG_LINK_INFO) || seen(o, H5_MSG_SYMBOL_TABLE)) {
        o->kind = H5_KIND_GROUP;
        if (seen(o, H5_MSG_SYMBOL_TABLE))
            H5_TRY(h5_symtab_load(o, err));
        return h5_dense_load(o, err);
    }
    if (seen(o, H5_MSG_TYPE)) {
        o->kind = H5_KIND_TYPE;
        o->info->type.committed = 1;
        o->info->type.committed_addr = o->oh.addr;
        return h5_dense_load(o, err);
    }
    return h5_fail(err, H5_FORMAT, o->oh.addr, "object header: neither a group nor a dataset");
}

/* Sizes that follow from other datasets. What cannot be found out keeps the values from being read,
** not the object from being listed. */
static int settle_virtual(h5_object *o, h5_deep *deep, h5_error *err)
{
    h5_error local = {0};
    int open = 0, rc = H5_OK;
    for (int i = 0; i < o->info->rank; i++)
        open |= o->info->maxdims[i] == UINT64_MAX;
    if (!open || o->refuse.code != H5_OK)
        return H5_OK;
    if (deep->depth > H5_FILE_DEPTH_MAX)
        rc = h5_fail(&local, H5_LIMIT, o->oh.addr,
                     "virtual datasets nested deeper than H5_FILE_DEPTH_MAX = %d",
                     H5_FILE_DEPTH_MAX);
    else
        rc = h5_virtual_extents(o, deep, &local);
    if (rc == H5_NOMEM)
        return h5_fail(err, rc, local.offset, "%s", local.text);
    if (rc != H5_OK)
        o->refuse = local;
    return H5_OK;
}

int h5_object_open(h5_file *f, uint64_t addr, h5_object **out, h5_error *err)
{
    h5_deep deep = {.left = H5_VIRTUAL_WORK_MAX};
    return h5_object_open_deep(f, addr, &deep, out, err);
}

/* Makes o->info where a message will fill it. It is two thirds of an object, and groups, which are
** many, do without. */
static int make_info(h5_object *o, h5_error *err)
{
    const uint32_t fill = 1u << H5_MSG_SPACE | 1u << H5_MSG_TYPE | 1u << H5_MSG_FILL_OLD |
                          1u << H5_MSG_FILL | 1u << H5_MSG_EXTERNAL | 1u << H5_MSG_LAYOUT |
                          1u << H5_MSG_FILTERS;
    int any = 0;
    for (size_t i = 0; i < o->oh.nmsg; i++)
        any |= o->oh.msg[i].id < 32 && fill >> o->oh.msg[i].id & 1;
    if (!any)
        return H5_OK;
    o->info = h5_calloc(1, sizeof *o->info);
    if (!o->info)
        return h5_fail_nomem(err, "an object");
    o->info->fill_kind = H5_FILL_UNDEFINED; // until a message says more
    o->info->alloc_time = 2;
    o->info->fill_time = 2;
    return H5_OK;
}

int h5_object_open_deep(h5_file *f, uint64_t addr, h5_deep *deep, h5_object **out, h5_error *err)
{
    *out = NULL;
    h5_object *o = h5_calloc(1, sizeof *o);
    if (!o)
        return h5_fail_nomem(err, "an object");
    h5_error_clear(&o->refuse);
    o->f = f;
    o->links.heap = o->attrs.heap = H5_UNDEF;
    int rc = h5_ohdr_read(f, addr, &o->oh, err);
    if (rc == H5_OK)
        rc = make_info(o, err);
    for (size_t i = 0; rc == H5_OK && i < o->oh.nmsg; i++)
        rc = h5_msg_decode(o, &o->oh.msg[i], err);
    if (rc == H5_OK && o->info && o->info->layout == H5_LAYOUT_VIRTUAL)
        rc = settle_virtual(o, deep, err);
    if (rc == H5_OK)
        rc = settle_kind(f, o, err);
    if (rc != H5_OK) {
        h5_object_close(o);
        return rc;
    }
    *out = o;
    return H5_OK;
}

/* A path on its way through the groups: `at` is where the next name starts, before it stands what
** leads to the group that is open. */
typedef struct route {
    h5_file *f;   /* that the path counts from, */
    h5_file *own; /* where an external link led into it; else NULL */
    char *path;
    size_t at;
    int soft; /* links followed */
    h5_deep *deep;
} route;

/* Puts the target of a soft link in place of the name of n bytes. A relative one counts from the
** group that holds the link. */
static int follow(route *r, const char *target, size_t n, h5_error *err)
{
    size_t keep = *target == '/' ? 0 : r->at, len = strlen(target),
           rest = strlen(r->path + r->at + n);
    if (++r->soft > H5_SOFT_LINKS_MAX)
        return h5_fail(err, H5_LIMIT, H5_UNDEF,
                       "%.80s: more than H5_SOFT_LINKS_MAX = %d soft and external links", r->path,
                       H5_SOFT_LINKS_MAX);
    char *to = h5_malloc(keep + len + rest + 1);
    if (!to)
        return h5_fail_nomem(err, "a path");
    memcpy(to, r->path, keep);
    memcpy(to + keep, target, len);
    memcpy(to + keep + len, r->path + r->at + n, rest + 1);
    h5_free(r->path);
    r->path = to;
    r->at = 0; // from the root again: what is kept may be in front of the target
    return H5_OK;
}

/* Goes on in another file, at a path from its root. */
static int follow_out(route *r, const h5_link_info *link, size_t n, h5_error *err)
{
    h5_file *f;
    H5_TRY(h5_file_beside(r->f, link->file, &f, err));
    h5_file_close(r->own);
    r->f = r->own = f;
    memmove(r->path, r->path + r->at, strlen(r->path + r->at) + 1);
    r->at = 0;
    return follow(r, link->path, n, err);
}

/* The member of o whose name is the n bytes at r->at. *addr H5_UNDEF: the route has changed. */
static int find_member(const h5_object *o, route *r, size_t n, uint64_t *addr, h5_error *err)
{
    const char *name = r->path + r->at;
    int upto = (int)(r->at + n > 200 ? 200 : r->at + n);
    *addr = H5_UNDEF;
    for (size_t i = 0; i < o->nlink; i++) {
        if (strncmp(o->link[i].name, name, n) != 0 || o->link[i].name[n] != 0)
            continue;
        *addr = o->link[i].addr;
        if (*addr != H5_UNDEF)
            return H5_OK;
        if (o->link_info[i].kind == H5_LINK_SOFT)
            return follow(r, o->link_info[i].path, n, err);
        if (o->link_info[i].kind == H5_LINK_EXTERNAL)
            return follow_out(r, &o->link_info[i], n, err);
        return h5_fail(err, H5_UNSUPPORTED, H5_UNDEF, "%.*s: user-defined link", upto, r->path);
    }
    return h5_fail(err, H5_NOTFOUND, H5_UNDEF, "%.*s: no such member", upto, r->path);
}

/* Walks the route from the root; *out the object at its end. */
static int walk_route(route *r, h5_object **out, h5_error *err)
{
    h5_object *o;
    *out = NULL;
    H5_TRY(h5_object_open_deep(r->f, r->f->root, r->deep, &o, err));
    for (;;) {
        r->at += strspn(r->path + r->at, "/");
        size_t n = strcspn(r->path + r->at, "/");
        uint64_t addr = H5_UNDEF;
        if (n == 0)
            break;
        if (n == 1 && r->path[r->at] == '.') {
            r->at++;
            continue;
        }
        int rc = find_member(o, r, n, &addr, err);
        h5_object_close(o);
        H5_TRY(rc);
        r->at += addr == H5_UNDEF ? 0 : n;
        addr = addr == H5_UNDEF ? r->f->root : addr;
        H5_TRY(h5_object_open_deep(r->f, addr, r->deep, &o, err));
    }
    o->own = r->own;
    r->own = NULL;
    *out = o;
    return H5_OK;
}

int h5_object_find(h5_file *f, const char *path, h5_object **out, h5_error *err)
{
    if (path[strspn(path, "/")] == 0)
        return h5_object_open(f, f->root, out, err);
    h5_deep deep = {.left = H5_VIRTUAL_WORK_MAX};
    return h5_object_find_deep(f, path, &deep, out, err);
}

int h5_object_find_deep(h5_file *f, const char *path, h5_deep *deep, h5_object **out, h5_error *err)
{
    route r = {.f = f, .path = h5_malloc(strlen(path) + 1), .deep = deep};
    *out = NULL;
    if (!r.path)
        return h5_fail_nomem(err, "a path");
    memcpy(r.path, path, strlen(path) + 1);
    int rc = walk_route(&r, out, err);
    h5_file_close(r.own);
    h5_free(r.path);
    return rc;
}

void h5_object_close(h5_object *o)
{
    if (!o)
        return;
    h5_ohdr_free(&o->oh);
    h5_arena_free(&o->arena);
    h5_free(o->link);
    h5_free(o->link_info);
    h5_free(o->attr);
    h5_free(o->info);
    h5_file_close(o->own);
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

const h5_link_info *h5_object_link_info(const h5_object *o, size_t i)
{
    return i < o->nlink ? &o->link_info[i] : NULL;
}

h5_file *h5_object_file(const h5_object *o)
{
    return o->f;
}

uint64_t h5_object_addr(const h5_object *o)
{
    return o->oh.addr;
}

const h5_type *h5_object_type(const h5_object *o)
{
    return o->kind == H5_KIND_GROUP ? NULL : &o->info->type;
}

const char *h5_layout_name(const h5_object *o)
{
    static const char *const names[] = {"compact", "contiguous", "chunked", "virtual"};
    if (o->kind != H5_KIND_DATASET)
        return "";
    return o->info->nexternal ? "external" : names[o->info->layout];
}

const char *h5_index_name(const h5_object *o)
{
    static const char *const names[] = {
        "", "single chunk", "implicit", "fixed array", "extensible array", "version 2 B-tree"};
    if (o->kind != H5_KIND_DATASET || o->info->layout != H5_LAYOUT_CHUNKED)
        return "";
    return o->layout.index == H5_INDEX_BTREE1 ? "version 1 B-tree" : names[o->layout.index];
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
    return o->kind == H5_KIND_DATASET ? o->info : NULL;
}
