/*
 * st_lists.c - opens the index of lists, and says when it has to be made.
 *
 * ERRORS    ST_NOMEM, ST_IO; damage is a state
 * SPDX-License-Identifier: MIT
 */
#include "st_lists.h"

#include <math.h>
#include <stdio.h>

void st_lists_free(st_lists *l)
{
    if (l) {
        for (size_t i = 0; i < l->ntail; i++) {
            vec_tail_close(l->open[i]);
        }
        vec_ivf_close(l->ivf);
        h5_free(l->open);
        h5_free(l->tail);
        h5_free(l);
    }
}

static int damaged(st_lists *l, const char *what)
{
    l->state = ST_LISTS_DAMAGED;
    snprintf(l->why, sizeof l->why, "/index/vector/%s is damaged", what);
    return ST_OK;
}

/* What is no want of memory or of the disk is damage. */
static int hard(int rc)
{
    return rc == ST_NOMEM || rc == ST_IO;
}

static int open_image(st_image *im, h5_file *f, const h5_link *link, st_lists *l, st_error *err)
{
    st_error e = {0, ""};
    int rc = st_image_dataset(im, f, link->addr, 'u', 1, &l->bytes, &l->size, &e);
    if (rc) {
        return hard(rc) ? st_fail(err, rc, "%s", e.text) : damaged(l, link->name);
    }
    l->header = link->addr;
    rc = vec_ivf_open(l->bytes, (size_t)l->size, &l->ivf);
    if (rc == VEC_NOMEM) {
        return st_nomem(err);
    }
    if (rc) {
        return damaged(l, link->name);
    }
    vec_ivf_get_info(l->ivf, &l->info);
    if (l->info.dim != (size_t)im->schema->dim || l->info.metric != im->schema->metric ||
        l->info.nrow > im->nrow) {
        return damaged(l, link->name);
    }
    l->state = ST_LISTS_GOOD;
    return ST_OK;
}

static int open_tail(st_image *im, h5_file *f, const h5_link *link, st_lists *l, st_error *err)
{
    st_tail *t = &l->tail[l->ntail];
    st_error e = {0, ""};
    int rc = st_image_dataset(im, f, link->addr, 'u', 1, &t->bytes, &t->size, &e);
    if (rc) {
        return hard(rc) ? st_fail(err, rc, "%s", e.text) : damaged(l, link->name);
    }
    rc = vec_tail_open(t->bytes, (size_t)t->size, &l->open[l->ntail]);
    if (rc == VEC_NOMEM) {
        return st_nomem(err);
    }
    if (rc || vec_tail_last(l->open[l->ntail]) >= im->nrow) {
        vec_tail_close(l->open[l->ntail]);
        return damaged(l, link->name);
    }
    t->header = link->addr;
    t->first = 0;
    for (const char *p = link->name + 1; *p >= '0' && *p <= '9'; p++) {
        t->first = t->first * 10 + (uint64_t)(*p - '0');
    }
    l->tail_rows += vec_tail_count(l->open[l->ntail++]);
    return ST_OK;
}

static int open_all(st_image *im, h5_file *f, const h5_object *group, st_lists *l, st_error *err)
{
    const h5_link *links, *lists = h5_object_link(group, "lists");
    size_t n = h5_object_links(group, &links);
    if (!lists) {
        return ST_OK;
    }
    ST_TRY(open_image(im, f, lists, l, err));
    l->tail = h5_calloc(n + 1, sizeof *l->tail);
    l->open = h5_calloc(n + 1, sizeof *l->open);
    if (!l->tail || !l->open) {
        return st_nomem(err);
    }
    for (size_t i = 0; i < n && l->state == ST_LISTS_GOOD; i++) {
        if (links[i].name[0] == 't') {
            ST_TRY(open_tail(im, f, &links[i], l, err));
        }
    }
    return ST_OK;
}

static int open_lists(st_image *im, st_error *err)
{
    h5_file *f = NULL;
    h5_object *group = NULL;
    st_lists *l = h5_calloc(1, sizeof *l);
    int rc = l ? st_image_group(im, "/index/vector", &f, &group, err) : st_nomem(err);
    rc = rc ? rc : open_all(im, f, group, l, err);
    h5_object_close(group);
    h5_file_close(f);
    if (rc) {
        st_lists_free(l);
        return rc;
    }
    im->lists = l;
    return ST_OK;
}

int st_image_lists(st_image *im, const st_lists **out, st_error *err)
{
    int rc = ST_OK;
    pthread_mutex_lock(&im->lock);
    if (!im->lists) {
        rc = open_lists(im, err);
    }
    *out = im->lists;
    pthread_mutex_unlock(&im->lock);
    return rc;
}

/* -------------------------------------------------------------------------------- when to train */

int st_lists_vectors(st_reader *r, const uint64_t *live, uint64_t *n, st_error *err)
{
    uint64_t run;
    *n = 0;
    for (uint64_t row = 0; row < r->im->nrow; row += run) {
        const uint8_t *p;
        ST_TRY(st_read_at(r, ST_PHYS_NORM, row, &p, &run, err));
        for (uint64_t i = 0; i < run; i++) {
            float norm;
            memcpy(&norm, p + 4 * i, sizeof norm);
            *n += !isnan(norm) && st_bit_get(live, row + i);
        }
    }
    return ST_OK;
}

int st_lists_kind(int option, uint64_t vectors)
{
    switch (option) {
    case ST_INDEX_FLAT:
        return 0;
    case ST_INDEX_AUTO:
        return vectors >= ST_LISTS_AUTO_MIN ? ST_LISTS_AUTO - ST_INDEX_IVF + VEC_IVF : 0;
    default:
        return vectors >= ST_LISTS_MIN ? option - ST_INDEX_IVF + VEC_IVF : 0;
    }
}

int st_lists_stale(const st_lists *l, uint64_t tail_rows, int kind)
{
    return l->state != ST_LISTS_GOOD || tail_rows > l->info.vectors || kind != l->info.kind;
}

uint64_t st_lists_bytes(int kind, size_t dim, uint64_t vectors)
{
    uint64_t row = 8 + (kind == VEC_IVF ? 0 : (dim + 3) / 4 + 8);
    uint64_t lists = 1 + (uint64_t)(4 * sqrt((double)vectors));
    return vectors * row + lists * (vec_plane_stride(dim) + 16 * row) + 64 * dim;
}
