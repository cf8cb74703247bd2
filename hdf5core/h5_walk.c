/*
 * h5_walk.c - everything under the root, once an object
 *
 * Objects are told apart by the address of their header; the table of addresses that were met is a
 * hash table with the path of each. A group is entered when it is met first, so a circle of hard
 * links ends by itself.
 *
 * ERRORS   H5_LIMIT H5_WALK_DEPTH_MAX, H5_WALK_PATHS_MAX; an object that does not open is an item,
 * not a failure TESTS    test_h5show.py
 *
 * SPDX-License-Identifier: MIT
 */
#include "h5_object.h"

typedef struct met {
    uint64_t addr;
    const char *path; /* NULL: a free place */
} met;

typedef struct walk {
    h5_file *f;
    int (*visit)(void *ctx, const h5_item *item);
    void *ctx;
    met *table; /* cap a power of two, at most half full */
    size_t n, cap;
    h5_arena paths;
    char *path; /* of what is visited; longer ones behind it are members' */
    size_t path_cap;
    uint64_t left; /* bytes of paths that may still be kept */
    int depth;
} walk;

/* Where an address is or belongs. */
static met *place(const walk *w, uint64_t addr)
{
    size_t i = (size_t)(addr * 0x9E3779B97F4A7C15u >> 20);
    for (;; i++) {
        met *m = &w->table[i & (w->cap - 1)];
        if (!m->path || m->addr == addr)
            return m;
    }
}

static int grow(walk *w)
{
    walk wider = *w;
    wider.cap = w->cap ? w->cap * 2 : 64;
    wider.table = h5_calloc(wider.cap, sizeof *wider.table);
    if (!wider.table)
        return 0;
    for (size_t i = 0; i < w->cap; i++)
        if (w->table[i].path)
            *place(&wider, w->table[i].addr) = w->table[i];
    h5_free(w->table);
    *w = wider;
    return 1;
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const h5_link *const *)a)->name, (*(const h5_link *const *)b)->name);
}

static int walk_object(walk *w, uint64_t addr, const h5_link_info *link, h5_error *err);

/* Room for the path of a member: the n bytes of the group's, a slash and the name. */
static int make_path(walk *w, size_t n, const char *name, h5_error *err)
{
    size_t b = strlen(name);
    if (n + b + 2 > w->path_cap) {
        size_t cap = 2 * (n + b + 2);
        char *p = h5_realloc(w->path, cap);
        if (!p)
            return h5_fail_nomem(err, "a path");
        w->path = p;
        w->path_cap = cap;
    }
    w->path[n] = '/';
    memcpy(w->path + n + 1, name, b + 1);
    return H5_OK;
}

/* One member: a link that leads nowhere in this file, or an object. */
static int walk_link(walk *w, const h5_link *l, const h5_link_info *info, size_t n, h5_error *err)
{
    H5_TRY(make_path(w, n, l->name, err));
    if (l->addr != H5_UNDEF)
        return walk_object(w, l->addr, info, err);
    h5_item item = {.path = w->path, .addr = H5_UNDEF, .link = info};
    item.kind = info->kind == H5_LINK_SOFT       ? H5_ITEM_SOFT
                : info->kind == H5_LINK_EXTERNAL ? H5_ITEM_EXTERNAL
                                                 : H5_ITEM_USER;
    return w->visit(w->ctx, &item);
}

/* The members of the group whose path stands in w->path. */
static int walk_members(walk *w, const h5_object *o, h5_error *err)
{
    const h5_link *links;
    size_t n = h5_object_links(o, &links), at = strlen(w->path);
    at -= at == 1; // the root's path is its slash
    if (n == 0)
        return H5_OK;
    const h5_link **order = h5_alloc_array(n, sizeof(const h5_link *));
    if (!order)
        return h5_fail_nomem(err, "the members of a group");
    for (size_t i = 0; i < n; i++)
        order[i] = &links[i];
    if (n > 1)
        qsort(order, n, sizeof(const h5_link *), by_name);
    int rc = H5_OK;
    for (size_t i = 0; rc == H5_OK && i < n; i++)
        rc = walk_link(w, order[i], &o->link_info[order[i] - links], at, err);
    h5_free((void *)order);
    return rc;
}

/* Notes the address; *path the one that is kept, *same the one under which it was met before, or
** NULL. */
static int note(walk *w, uint64_t addr, const char **path, const char **same, h5_error *err)
{
    *same = NULL;
    *path = w->path;
    if (w->n * 2 >= w->cap && !grow(w))
        return h5_fail_nomem(err, "a walk");
    met *m = place(w, addr);
    if (m->path) {
        *same = m->path;
        return H5_OK;
    }
    size_t n = strlen(w->path) + 1;
    if (n > w->left)
        return h5_fail(err, H5_LIMIT, addr,
                       "a walk: longer paths than H5_WALK_PATHS_MAX = %u allows",
                       H5_WALK_PATHS_MAX);
    w->left -= n;
    char *copy = h5_arena_alloc(&w->paths, n);
    if (!copy)
        return h5_fail_nomem(err, "a walk");
    memcpy(copy, w->path, n);
    m->addr = addr;
    *path = m->path = copy;
    w->n++;
    return H5_OK;
}

/* The object whose path stands in w->path, and what is below it. */
static int walk_object(walk *w, uint64_t addr, const h5_link_info *link, h5_error *err)
{
    h5_item item = {.addr = addr, .link = link};
    h5_error local;
    h5_error_clear(&local);
    H5_TRY(note(w, addr, &item.path, &item.same_as, err));
    if (item.same_as) {
        item.kind = H5_ITEM_SAME;
        return w->visit(w->ctx, &item);
    }
    int rc = w->depth >= H5_WALK_DEPTH_MAX
                 ? h5_fail(&local, H5_LIMIT, addr, "groups deeper than H5_WALK_DEPTH_MAX = %d",
                           H5_WALK_DEPTH_MAX)
                 : h5_object_open(w->f, addr, &item.object, &local);
    if (rc == H5_NOMEM)
        return h5_fail_as(err, &local);
    if (rc != H5_OK) {
        item.kind = H5_ITEM_ERROR;
        item.error = &local;
        return w->visit(w->ctx, &item);
    }
    item.kind = item.object->kind;
    w->depth++;
    rc = w->visit(w->ctx, &item);
    if (rc == H5_OK && item.kind == H5_KIND_GROUP)
        rc = walk_members(w, item.object, err);
    w->depth--;
    h5_object_close(item.object);
    return rc;
}

int h5_walk(h5_file *f, int (*visit)(void *ctx, const h5_item *item), void *ctx, h5_error *err)
{
    walk w = {.f = f, .visit = visit, .ctx = ctx};
    w.left = f->most > UINT64_MAX / 32 ? UINT64_MAX : 16 * f->most + H5_WALK_PATHS_MAX;
    int rc = make_path(&w, 0, "", err);
    if (rc == H5_OK)
        rc = walk_object(&w, f->root, NULL, err);
    h5_free(w.path);
    h5_free(w.table);
    h5_arena_free(&w.paths);
    return rc;
}
