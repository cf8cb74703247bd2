/*
 * h5_heaps.c - global heaps, and what variable-length elements and references find there
 *
 * A collection is read once and stays until the heaps are closed, so that what they hand out stays
 * too. Collections are distinct parts of the file: together they are no longer than it.
 *
 * FORMAT   HDF5 spec: III.E "Global Heap"
 *   collection: "GCOL" | version 1 | 3 reserved | bytes of all 8 | objects
 *   object:     index 2 | references 2 | 4 reserved | bytes 8 | data, filled up to 8 bytes. Index 0
 *               is the free space at the end.
 *   element:    length 4 | collection 8 | index 4
 *               Both heads fill up to 8 bytes where lengths are shorter.
 *   references: object: header 8. Region: collection 8 | index 4, where stand header 8 | selection.
 *               Revised: kind 1 | flags 1 | object: bytes of a token 1 | token; else: bytes 4 |
 *               collection 8 | index 4, where stand bytes of a token 1 | token | region: bytes 4 |
 *               selection; attribute: bytes 2 | name
 *
 * ERRORS   H5_FORMAT
 * TESTS    t_h5_value.c, test_h5show.py
 *
 * SPDX-License-Identifier: MIT
 */
#include <inttypes.h>

#include "h5_heaps.h"

typedef struct object {
    uint32_t index;
    const uint8_t *p;
    uint64_t n;
} object;

typedef struct collection {
    uint64_t addr;
    uint8_t *bytes;
    object *objects; /* by index */
    size_t nobject;
} collection;

struct h5_heaps {
    h5_file *f;
    collection *list; /* by address */
    size_t n, cap;
    uint64_t left;  /* bytes of collections that may still be read */
    h5_arena texts; /* names of attributes */

    object *kept; /* of other files, by index from 0 */
    size_t nkept, kept_cap;
    h5_arena copies;         /* of those that had to be changed */
    struct h5_heaps *others; /* whose collections the rest point into */
    struct h5_heaps *next;   /* in such a list */
    uint64_t adopted;        /* bytes of their collections */
    struct h5_heaps *owner;  /* NULL, or the heaps that this one counts against */
};

int h5_heaps_open(h5_file *f, h5_heaps **out, h5_error *err)
{
    h5_heaps *h = *out = h5_calloc(1, sizeof *h);
    if (!h)
        return h5_fail_nomem(err, "global heaps");
    h->f = f;
    h->left = f->most;
    return H5_OK;
}

static void drop(collection *c)
{
    h5_free(c->bytes);
    h5_free(c->objects);
}

void h5_heaps_close(h5_heaps *h)
{
    if (!h)
        return;
    h5_heaps_forget(h);
    for (size_t i = 0; i < h->n; i++)
        drop(&h->list[i]);
    h5_free(h->list);
    h5_free(h->kept);
    h5_arena_free(&h->texts);
    h5_free(h);
}

uint64_t h5_heaps_kept_addr(const h5_heaps *h)
{
    return (UINT64_MAX >> (64 - 8 * h->f->offsets)) - 1;
}

void h5_heaps_forget(h5_heaps *h)
{
    h->nkept = 0;
    h->adopted = 0;
    h5_arena_free(&h->copies);
    h->copies.head = NULL;
    while (h->others) {
        h5_heaps *other = h->others;
        h->others = other->next;
        h5_heaps_close(other);
    }
}

int h5_heaps_keep(h5_heaps *h, const uint8_t *p, uint64_t n, uint32_t *index, h5_error *err)
{
    if (h->nkept == UINT32_MAX)
        return h5_fail(err, H5_LIMIT, H5_UNDEF, "virtual dataset: %zu values of other files",
                       h->nkept);
    if (!h5_grow((void **)&h->kept, &h->kept_cap, h->nkept, sizeof *h->kept))
        return h5_fail_nomem(err, "values of other files");
    *index = (uint32_t)h->nkept;
    h->kept[h->nkept++] = (object){.index = *index, .p = p, .n = n};
    return H5_OK;
}

uint8_t *h5_heaps_alloc(h5_heaps *h, size_t n)
{
    return h5_arena_alloc(&h->copies, n);
}

void h5_heaps_adopt(h5_heaps *h, h5_heaps *from)
{
    from->f = NULL;
    from->next = h->others;
    h->others = from;
}

int h5_heaps_open_for(h5_heaps *h, h5_file *f, h5_heaps **out, h5_error *err)
{
    H5_TRY(h5_heaps_open(f, out, err));
    (*out)->owner = h;
    return H5_OK;
}

/* Bytes before the objects of a collection, and before the data of an object. */
static size_t head_bytes(const h5_file *f)
{
    return (8 + (size_t)f->lengths + 7) / 8 * 8;
}

static int by_index(const void *a, const void *b)
{
    const object *x = a, *y = b;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* Makes the table of objects of the n bytes of c. */
static int index_objects(const h5_file *f, collection *c, size_t n, h5_error *err)
{
    size_t begin = head_bytes(f), cap = 0;
    int sorted = 1;
    h5_cur cur = h5_cur_on(c->bytes + begin, n - begin);
    while (cur.left >= begin) {
        object o = {.index = h5_cur_u16(&cur)};
        h5_cur_take(&cur, 6);
        o.n = h5_cur_length(&cur, f);
        h5_cur_take(&cur, begin - 8 - f->lengths);
        if (o.index == 0)
            break;
        o.p = o.n <= cur.left ? h5_cur_take(&cur, (size_t)o.n) : NULL;
        if (!o.p)
            return h5_fail(err, H5_FORMAT, c->addr, "global heap: object %u of %" PRIu64 " bytes",
                           (unsigned)o.index, o.n);
        size_t pad = (size_t)(-o.n & 7);
        h5_cur_take(&cur, pad < cur.left ? pad : cur.left);
        if (!h5_grow((void **)&c->objects, &cap, c->nobject, sizeof *c->objects))
            return h5_fail_nomem(err, "a global heap");
        sorted &= c->nobject == 0 || c->objects[c->nobject - 1].index < o.index;
        c->objects[c->nobject++] = o;
    }
    if (!sorted)
        qsort(c->objects, c->nobject, sizeof *c->objects, by_index);
    return H5_OK;
}

static int load(h5_heaps *h, uint64_t addr, collection *c, h5_error *err)
{
    uint8_t head[16];
    size_t bytes = head_bytes(h->f);
    memset(c, 0, sizeof *c);
    c->addr = addr;
    H5_TRY(h5_file_read(h->f, addr, head, bytes, "global heap", err));
    h5_cur cur = h5_cur_on(head, bytes);
    int sig = h5_cur_sig(&cur, "GCOL");
    unsigned version = h5_cur_u8(&cur);
    h5_cur_take(&cur, 3);
    uint64_t n = h5_cur_length(&cur, h->f);
    if (!sig || version != 1 || n < bytes || n > h->left)
        return h5_fail(err, H5_FORMAT, addr, "global heap: version %u, %" PRIu64 " bytes", version,
                       n);
    if (h->owner && n > H5_VIRTUAL_HEAPS_MAX - h->owner->adopted)
        return h5_fail(err, H5_LIMIT, addr,
                       "virtual dataset: heaps of other files above H5_VIRTUAL_HEAPS_MAX = %u",
                       H5_VIRTUAL_HEAPS_MAX);
    H5_TRY(h5_file_load(h->f, addr, n, "global heap", &c->bytes, err));
    if (h->owner)
        h->owner->adopted += n;
    int rc = index_objects(h->f, c, (size_t)n, err);
    if (rc != H5_OK)
        drop(c);
    else
        h->left -= n;
    return rc;
}

/* The collection at addr, read now if it was not yet. */
static int find(h5_heaps *h, uint64_t addr, const collection **out, h5_error *err)
{
    size_t lo = 0, hi = h->n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (h->list[mid].addr < addr)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo == h->n || h->list[lo].addr != addr) {
        collection c;
        H5_TRY(load(h, addr, &c, err));
        if (!h5_grow((void **)&h->list, &h->cap, h->n, sizeof *h->list)) {
            drop(&c);
            return h5_fail_nomem(err, "global heaps");
        }
        memmove(h->list + lo + 1, h->list + lo, (h->n - lo) * sizeof *h->list);
        h->list[lo] = c;
        h->n++;
    }
    *out = &h->list[lo];
    return H5_OK;
}

int h5_heaps_object(h5_heaps *h, uint64_t addr, uint32_t index, const uint8_t **out, uint64_t *n,
                    h5_error *err)
{
    const collection *c = NULL;
    *out = NULL;
    *n = 0;
    const object key = {.index = index};
    const object *found = NULL;
    if (h->nkept > 0 && addr == h5_heaps_kept_addr(h))
        found = index < h->nkept ? &h->kept[index] : NULL;
    else
        H5_TRY(find(h, addr, &c, err));
    if (c && c->nobject > 0)
        found = bsearch(&key, c->objects, c->nobject, sizeof key, by_index);
    if (!found)
        return h5_fail(err, H5_FORMAT, addr, "global heap: no object %u", (unsigned)index);
    *out = found->p;
    *n = found->n;
    return H5_OK;
}

int h5_vlen(h5_heaps *h, const h5_type *t, const void *p, const uint8_t **data, uint64_t *n,
            h5_error *err)
{
    h5_cur c = h5_cur_on(p, 8 + (size_t)h->f->offsets);
    uint64_t count = h5_cur_u32(&c), addr = h5_cur_addr(&c, h->f), have;
    uint32_t index = h5_cur_u32(&c);
    *data = NULL;
    *n = 0;
    if (t->cls != H5_CLASS_VLEN)
        return h5_fail(err, H5_MISUSE, H5_UNDEF, "not a variable-length type");
    if (count == 0 || addr == 0 || addr == H5_UNDEF)
        return H5_OK;
    H5_TRY(h5_heaps_object(h, addr, index, data, &have, err));
    size_t size = t->is_text ? 1 : t->base->size;
    if (count > have / size) {
        *data = NULL;
        return h5_fail(err, H5_FORMAT, addr,
                       "variable length: %" PRIu64 " elements in %" PRIu64 " bytes", count, have);
    }
    const uint8_t *end = t->is_text ? memchr(*data, 0, (size_t)count) : NULL;
    *n = end ? (uint64_t)(end - *data) : count;
    return H5_OK;
}

static int cut_off(uint64_t addr, h5_error *err)
{
    return h5_fail(err, H5_FORMAT, addr, "reference: cut off");
}

static int old_region(h5_heaps *h, h5_cur *c, h5_ref *out, h5_error *err)
{
    const uint8_t *p;
    uint64_t n, addr = h5_cur_addr(c, h->f);
    uint32_t index = h5_cur_u32(c);
    if (c->bad)
        return cut_off(H5_UNDEF, err);
    if (addr == 0 || addr == H5_UNDEF)
        return H5_OK;
    H5_TRY(h5_heaps_object(h, addr, index, &p, &n, err));
    h5_cur in = h5_cur_on(p, (size_t)n);
    out->addr = h5_cur_addr(&in, h->f);
    out->selection = in.p;
    out->bytes = in.left;
    return in.bad ? cut_off(addr, err) : H5_OK;
}

/* A token: the address of an object header. */
static uint64_t take_token(h5_cur *c)
{
    unsigned n = h5_cur_u8(c);
    return h5_cur_uint(c, n);
}

static int attribute_name(h5_heaps *h, h5_cur *c, h5_ref *out, h5_error *err)
{
    size_t n = h5_cur_u16(c);
    const uint8_t *p = h5_cur_take(c, n);
    char *copy = p ? h5_arena_alloc(&h->texts, n + 1) : NULL;
    if (!p)
        return cut_off(out->addr, err);
    if (!copy)
        return h5_fail_nomem(err, "a reference");
    memcpy(copy, p, n);
    copy[n] = 0;
    out->attr = copy;
    return H5_OK;
}

static int revised(h5_heaps *h, h5_cur *c, h5_ref *out, h5_error *err)
{
    unsigned kind = h5_cur_u8(c), flags = h5_cur_u8(c);
    const uint8_t *p;
    uint64_t n;
    if (flags & 1)
        return h5_fail(err, H5_UNSUPPORTED, H5_UNDEF, "reference into another file");
    if (kind == H5_REF_NEW_OBJECT) {
        out->addr = take_token(c);
        return c->bad ? cut_off(H5_UNDEF, err) : H5_OK;
    }
    h5_cur_u32(c);
    uint64_t addr = h5_cur_addr(c, h->f);
    uint32_t index = h5_cur_u32(c);
    if (c->bad)
        return cut_off(H5_UNDEF, err);
    if (addr == 0 || addr == H5_UNDEF)
        return H5_OK;
    H5_TRY(h5_heaps_object(h, addr, index, &p, &n, err));
    h5_cur in = h5_cur_on(p, (size_t)n);
    out->addr = take_token(&in);
    if (kind == H5_REF_NEW_ATTR)
        return attribute_name(h, &in, out, err);
    h5_cur_u32(&in);
    out->selection = in.p;
    out->bytes = in.left;
    return in.bad ? cut_off(addr, err) : H5_OK;
}

int h5_reference(h5_heaps *h, const h5_type *t, const void *p, h5_ref *out, h5_error *err)
{
    h5_cur c = h5_cur_on(p, t->size);
    memset(out, 0, sizeof *out);
    out->addr = H5_UNDEF;
    if (t->cls != H5_CLASS_REFERENCE)
        return h5_fail(err, H5_MISUSE, H5_UNDEF, "not a reference type");
    if (t->ref == H5_REF_REGION)
        return old_region(h, &c, out, err);
    if (t->ref != H5_REF_OBJECT) {
        int rc = revised(h, &c, out, err);
        if (rc != H5_OK)
            out->addr = H5_UNDEF;
        return rc;
    }
    uint64_t addr = h5_cur_addr(&c, h->f);
    out->addr = addr == 0 ? H5_UNDEF : addr;
    return c.bad ? cut_off(H5_UNDEF, err) : H5_OK;
}
