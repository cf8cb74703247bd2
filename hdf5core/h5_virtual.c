/*
 * h5_virtual.c - virtual datasets: mappings, their sources, and how large they make the dataset
 *
 * An unlimited dimension is as large as the sources make it ("last available"): each mapping is cut
 * off where its source ends, numbered sources are tried one after the other until one is missing.
 * What libhdf5 takes for missing reads as the fill value here too: a file or a dataset that is not
 * there. A source that is there and cannot be read is an error.
 *
 * FORMAT   HDF5 spec: VII.C "Virtual dataset layout: the global heap block"
 *   version 1, 0 or 1 | mappings 8 | mappings | lookup3
 *   version 0: file name | path | selection in the source | selection in the dataset
 *   version 1: flags 1 | file name, unless bit 2: the same file | path | selections as before.
 *              Bit 0: instead of the file name the number 8 of a mapping that has it; bit 1
 *              likewise the path.
 *   Names end with a NUL. Where the dataset is unlimited and the source is not, %b in a name stands
 *   for the number of the block; %% is a percent sign.
 *
 * ERRORS   H5_FORMAT; H5_UNSUPPORTED selections of points; H5_LIMIT H5_VIRTUAL_WORK_MAX
 * TESTS    test_h5virtual.py, test_h5show.py
 *
 * SPDX-License-Identifier: MIT
 */
#include <inttypes.h>
#include <stdio.h>

#include "h5_sum.h"
#include "h5_virtual.h"

enum { FILE_SHARED = 1, PATH_SHARED = 2, SAME_FILE = 4, DIGITS = 20 };

int h5_deep_spend(h5_deep *d, uint64_t work, h5_error *err)
{
    if (work > d->left) {
        d->left = 0;
        return h5_fail(err, H5_LIMIT, H5_UNDEF,
                       "virtual dataset: more work than H5_VIRTUAL_WORK_MAX = %u",
                       H5_VIRTUAL_WORK_MAX);
    }
    d->left -= work;
    return H5_OK;
}

int h5_virtual_open(const h5_object *o, h5_virtual *out, h5_error *err)
{
    const uint8_t *p;
    uint64_t n;
    memset(out, 0, sizeof *out);
    out->o = o;
    out->addr = o->layout.heap;
    if (out->addr == H5_UNDEF) // no mappings
        return H5_OK;
    H5_TRY(h5_heaps_open(o->f, &out->heaps, err));
    H5_TRY(h5_heaps_object(out->heaps, out->addr, o->layout.heap_index, &p, &n, err));
    if (n < 4 || n > SIZE_MAX)
        return h5_fail(err, H5_FORMAT, out->addr, "virtual dataset: %" PRIu64 " bytes", n);
    H5_TRY(h5_sum_check(p, (size_t)n, "virtual dataset", out->addr, err));
    out->next = h5_cur_on(p, (size_t)n - 4);
    out->version = h5_cur_u8(&out->next);
    out->n = h5_cur_uint(&out->next, o->f->lengths);
    // The shortest mapping is two names of a byte and two selections of 16.
    if (out->next.bad || out->version > 1 || out->n > out->next.left / 33)
        return h5_fail(err, H5_FORMAT, out->addr,
                       "virtual dataset: version %u, %" PRIu64 " mappings", out->version, out->n);
    out->file = h5_calloc((size_t)out->n, sizeof(const char *));
    out->path = h5_calloc((size_t)out->n, sizeof(const char *));
    return out->file && out->path ? H5_OK : h5_fail_nomem(err, "a virtual dataset");
}

void h5_virtual_close(h5_virtual *v)
{
    h5_heaps_close(v->heaps);
    h5_free((void *)v->file);
    h5_free((void *)v->path);
    memset(v, 0, sizeof *v);
}

/* A name with its NUL, or, where it is shared, that of a mapping before. NULL and bad otherwise. */
static const char *take_name(h5_virtual *v, const char **names, int shared)
{
    h5_cur *c = &v->next;
    if (shared) {
        uint64_t i = h5_cur_uint(c, v->o->f->lengths);
        if (i < v->at && names[i])
            return names[i];
        c->bad = 1;
        return NULL;
    }
    const uint8_t *end = c->left ? memchr(c->p, 0, c->left) : NULL;
    const uint8_t *p = end ? h5_cur_take(c, (size_t)(end - c->p) + 1) : NULL;
    c->bad |= !p;
    return (const char *)p;
}

int h5_virtual_next(h5_virtual *v, h5_mapping *out, int *more, h5_error *err)
{
    memset(out, 0, sizeof *out);
    *more = v->at < v->n;
    if (!*more)
        return H5_OK;
    unsigned flags = v->version ? h5_cur_u8(&v->next) : 0;
    if (flags > 7)
        v->next.bad = 1;
    out->file = flags & SAME_FILE ? "." : take_name(v, v->file, flags & FILE_SHARED);
    out->path = take_name(v, v->path, flags & PATH_SHARED);
    if (v->next.bad)
        return h5_fail(err, H5_FORMAT, v->addr, "virtual dataset: mapping %" PRIu64 " is cut off",
                       v->at);
    v->file[v->at] = out->file;
    v->path[v->at++] = out->path;
    H5_TRY(h5_selection_parse(&v->next, v->addr, &out->from, err));
    H5_TRY(h5_selection_parse(&v->next, v->addr, &out->to, err));
    int open = out->to.unlimited >= 0, source_open = out->from.unlimited >= 0;
    out->numbered = open && !source_open;
    if ((source_open && !open) || (open && out->to.rank != v->o->info->rank) ||
        (out->numbered && (out->to.dim[out->to.unlimited].block == UINT64_MAX ||
                           (!strstr(out->file, "%b") && !strstr(out->path, "%b")))))
        return h5_fail(err, H5_FORMAT, v->addr,
                       "virtual dataset: unlimited selections of mapping %" PRIu64, v->at - 1);
    return H5_OK;
}

/* A name with the number of a block for each %b. */
static char *numbered_name(const char *name, uint64_t block)
{
    size_t n = 1;
    for (const char *p = name; *p; p++)
        n += p[0] == '%' && p[1] == 'b' ? DIGITS : 1;
    char *out = h5_malloc(n), *to = out;
    for (const char *p = name; out && *p; p++) {
        if (p[0] == '%' && p[1] == 'b')
            to += snprintf(to, DIGITS + 1, "%" PRIu64, block);
        else
            *to++ = *p;
        p += p[0] == '%' && (p[1] == 'b' || p[1] == '%');
    }
    if (out)
        *to = 0;
    return out;
}

void h5_source_close(h5_source *s)
{
    h5_object_close(s->found);
    h5_file_close(s->other);
    h5_free(s->name);
    s->found = NULL;
    s->other = NULL;
    s->name = NULL;
}

/* What became of looking for a source: one that is not there reads as the fill value, one that is
** there and damaged must not. */
static int out_of(int rc, const char *what, const char *name, const h5_error *from, h5_error *err)
{
    if (rc == H5_OK || rc == H5_NOTFOUND)
        return H5_OK;
    return h5_fail(err, rc, from->offset, "source %s %.80s: %s", what, name, from->text);
}

/* Opens the file of a name, unless it is the one that is open; *f NULL: not there. */
static int source_file(h5_source *s, const char *name, h5_file **f, h5_error *err)
{
    h5_error local = {0};
    *f = s->o->f;
    if (strcmp(name, ".") == 0)
        return H5_OK;
    if (s->name && strcmp(s->name, name) == 0) {
        *f = s->other;
        return H5_OK;
    }
    h5_source_close(s);
    s->serial++;
    s->name = h5_malloc(strlen(name) + 1);
    if (!s->name)
        return h5_fail_nomem(err, "a name");
    memcpy(s->name, name, strlen(name) + 1);
    int rc = h5_file_beside(s->o->f, name, &s->other, &local);
    *f = s->other;
    return out_of(rc, "file", name, &local, err);
}

static int find_in(h5_source *s, const char *file, const char *path, h5_error *err)
{
    h5_file *f;
    h5_error local = {0};
    h5_object_close(s->found);
    s->found = NULL;
    H5_TRY(h5_deep_spend(s->deep, H5_VIRTUAL_WORK_OPEN, err));
    H5_TRY(source_file(s, file, &f, err));
    if (!f)
        return H5_OK;
    s->deep->depth++;
    int rc = h5_object_find_deep(f, path, s->deep, &s->found, &local);
    s->deep->depth--;
    if (rc == H5_OK && s->found->kind != H5_KIND_DATASET) {
        h5_object_close(s->found);
        s->found = NULL;
    }
    return out_of(rc, "dataset", path, &local, err);
}

int h5_source_find(h5_source *s, const h5_mapping *m, uint64_t block, h5_error *err)
{
    char *file = numbered_name(m->file, block), *path = numbered_name(m->path, block);
    int rc = file && path ? find_in(s, file, path, err) : h5_fail_nomem(err, "a name");
    h5_free(file);
    h5_free(path);
    return rc;
}

void h5_mapping_cut(h5_mapping *m, const h5_dataset_info *source, uint64_t extent)
{
    int from = m->from.unlimited, to = m->to.unlimited;
    uint64_t have = from < source->rank ? h5_select_below(&m->from.dim[from], source->dims[from])
                                        : 0;
    uint64_t room = h5_select_below(&m->to.dim[to], extent), n = have < room ? have : room;
    h5_selection_cut(&m->from, n);
    h5_selection_cut(&m->to, n);
}

int h5_mapping_block(const h5_mapping *m, uint64_t i, h5_selection *out)
{
    *out = m->to;
    h5_select_dim *d = &out->dim[out->unlimited];
    uint64_t at;
    if (!h5_mul_fits(i, d->stride, &at) || !h5_add_fits(at, d->start, &d->start))
        return 0;
    d->count = 1;
    out->unlimited = -1;
    return 1;
}

/* How far the sources of a mapping reach in the unlimited dimension of the dataset. */
static int reach(h5_source *s, h5_mapping *m, uint64_t *out, h5_error *err)
{
    int to = m->to.unlimited;
    *out = 0;
    if (!m->numbered) {
        H5_TRY(h5_source_find(s, m, 0, err));
        if (!s->found)
            return H5_OK;
        h5_mapping_cut(m, s->found->info, UINT64_MAX);
        *out = h5_select_extent(&m->to.dim[to], m->to.dim[to].n);
        return H5_OK;
    }
    for (uint64_t i = 0;; i++) {
        h5_selection block;
        H5_TRY(h5_source_find(s, m, i, err));
        if (!s->found || !h5_mapping_block(m, i, &block))
            return H5_OK;
        *out = h5_select_extent(&block.dim[to], block.dim[to].block);
    }
}

/* The end of a limited selection in dimension i. */
static uint64_t end_of(const h5_selection *s, int i)
{
    const h5_select_dim *d = &s->dim[i];
    uint64_t n, end = 0;
    if (s->kind == H5_SELECT_SLAB && s->nblock == 0)
        return h5_mul_fits(d->count, d->block, &n) ? h5_select_extent(d, n) : UINT64_MAX;
    for (uint64_t b = 0; s->kind == H5_SELECT_SLAB && b < s->nblock; b++) {
        const uint8_t *p = s->blocks + ((2 * b + 1) * (size_t)s->rank + (size_t)i) * s->width;
        h5_cur c = h5_cur_on(p, s->width);
        uint64_t last = h5_cur_uint(&c, s->width);
        end = last >= end && last < UINT64_MAX ? last + 1 : end;
    }
    return end;
}

int h5_virtual_extents(h5_object *o, h5_deep *deep, h5_error *err)
{
    h5_virtual v;
    h5_mapping m;
    h5_source s = {.o = o, .deep = deep};
    uint64_t dims[H5_RANK_MAX] = {0}, reached;
    unsigned open[H5_RANK_MAX] = {0};
    int more = 1, rc = h5_virtual_open(o, &v, err);
    while (rc == H5_OK && more) {
        rc = h5_virtual_next(&v, &m, &more, err);
        if (rc != H5_OK || !more)
            break;
        rc = h5_deep_spend(deep, H5_VIRTUAL_WORK_MAPPING, err);
        int to = m.to.unlimited;
        for (int i = 0; i < m.to.rank && i < o->info->rank; i++)
            if (i != to && end_of(&m.to, i) > dims[i])
                dims[i] = end_of(&m.to, i);
        if (rc != H5_OK || to < 0)
            continue;
        open[to] = 1;
        rc = reach(&s, &m, &reached, err);
        if (reached > dims[to])
            dims[to] = reached;
    }
    for (int i = 0; rc == H5_OK && i < o->info->rank; i++)
        if (open[i])
            o->info->dims[i] = dims[i];
    h5_source_close(&s);
    h5_virtual_close(&v);
    return rc;
}
