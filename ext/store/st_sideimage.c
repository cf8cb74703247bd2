/*
 * st_sideimage.c - the tables beside the rows in an image: opening, reading, finding by key.
 *
 * KEYS      The first search by key of an image reads the keys of all live records once, into a map
 *           by their hash; 100,000 of them take some milliseconds. Scans need no map. The first
 *           search for what lies behind an INTEGER key looks whether all keys rise, as they do
 *           until one is written anew: then such a search halves.
 *
 * SPDX-License-Identifier: MIT
 */
#include "st_gen.h"

/* -------------------------------------------------------------------------------------- opening */

static int missing(st_error *err, int side, const char *name)
{
    return st_fail(err, ST_CORRUPT, "/%s/%s is missing", st_side_defs[side].name, name);
}

/* The two columns of a text lie in a group of their own. */
static int open_text(st_image *im, h5_file *f, const h5_object *group, int side, int col,
                     st_error *err)
{
    const char *name = st_side_defs[side].col[col].name;
    int data = st_phys_side_data(im->schema, side, st_side_defs[side].col[col].at), rc;
    const h5_link *link = h5_object_link(group, name);
    h5_object *sub = NULL;
    h5_error h = {0};
    if (!link) {
        return missing(err, side, name);
    }
    if (h5_object_open(f, link->addr, &sub, &h) != H5_OK) {
        return st_from_h5(err, &h, name);
    }
    rc = st_image_column(im, f, sub, "data", data, err);
    rc = rc ? rc : st_image_column(im, f, sub, "offsets", data + 1, err);
    h5_object_close(sub);
    return rc;
}

/* All columns have as many rows as live, which is stored for every one of them. */
static int check_rows(st_image *im, int side, st_error *err)
{
    int first = st_phys_side(im->schema, side);
    uint64_t n = im->col[first].n;
    char where[2 * ST_NAME_MAX];
    im->side[side].n = n;
    if (n > UINT32_MAX || n > im->map_n || im->col[first].fill) {
        return st_fail(err, ST_CORRUPT, "/%s: more records than the file can hold",
                       st_side_defs[side].name);
    }
    for (int c = first; c < first + st_phys_side_count(side); c++) {
        int text = c - st_phys_side_data(im->schema, side, 0);
        int data = text >= 0 && text % 2 == 0;
        if (!data && im->col[c].n != n + (uint64_t)im->schema->phys[c].extra) {
            return st_fail(err, ST_CORRUPT, "%s: another number of rows than its table",
                           st_phys_where(im->schema, c, where, sizeof where));
        }
    }
    return ST_OK;
}

static int open_side(st_image *im, h5_file *f, int side, uint64_t addr, st_error *err)
{
    const st_side_def *d = &st_side_defs[side];
    st_sideimg *t = &im->side[side];
    h5_object *group = NULL;
    h5_error h = {0};
    int rc;
    if (h5_object_open(f, addr, &group, &h) != H5_OK) {
        return st_from_h5(err, &h, d->name);
    }
    rc = st_image_column(im, f, group, "live", st_phys_side(im->schema, side), err);
    for (int c = 0; c < d->ncol && !rc; c++) {
        rc = d->col[c].type == ST_TEXT
                 ? open_text(im, f, group, side, c, err)
                 : st_image_column(im, f, group, d->col[c].name,
                                   st_phys_side_number(im->schema, side, d->col[c].at), err);
    }
    if (!rc && !st_side_text_key(side) && h5_attr_int(group, "next", &t->next, &h) != H5_OK) {
        rc = st_from_h5(err, &h, d->name);
    }
    t->group = addr;
    h5_object_close(group);
    return rc ? rc : check_rows(im, side, err);
}

static int no_side(st_image *im, int side, st_error *err)
{
    int first = st_phys_side(im->schema, side);
    im->side[side].group = H5_UNDEF;
    im->side[side].next = 1;
    for (int c = first; c < first + st_phys_side_count(side); c++) {
        ST_TRY(st_column_empty(im->schema, &im->options, c, &im->col[c], err));
        ST_TRY(st_image_fill(im, c, err)); // a first flush of many records reads what is there
    }
    return ST_OK;
}

int st_image_sides(st_image *im, h5_file *f, st_error *err)
{
    h5_object *root = NULL;
    h5_error h = {0};
    int rc = ST_OK;
    if (h5_object_open(f, im->root, &root, &h) != H5_OK) {
        return st_from_h5(err, &h, "the root group");
    }
    for (int side = 0; side < ST_SIDES && !rc; side++) {
        const h5_link *link = h5_object_link(root, st_side_defs[side].name);
        rc = link ? open_side(im, f, side, link->addr, err) : no_side(im, side, err);
    }
    h5_object_close(root);
    return rc;
}

void st_image_sides_free(st_image *im)
{
    for (int side = 0; side < ST_SIDES; side++) {
        st_map_free(&im->side[side].by_hash);
        h5_free(im->side[side].prev);
    }
}

/* -------------------------------------------------------------------------------------- reading */

int st_read_side_value(st_reader *r, int side, uint64_t row, int col, st_value *out, st_error *err)
{
    const st_side_def *d = &st_side_defs[side];
    const uint8_t *p;
    uint64_t run;
    st_num num;
    if (d->col[col].type == ST_TEXT) {
        memset(out, 0, sizeof *out);
        ST_TRY(st_read_side_text(r, side, d->col[col].at, row, &p, &out->n, err));
        out->p = p;
        out->type = p ? ST_TEXT : ST_NULL;
        return ST_OK;
    }
    ST_TRY(st_read_at(r, st_phys_side_number(r->im->schema, side, d->col[col].at), row, &p, &run,
                      err));
    memcpy(&num, p, sizeof num);
    st_side_number(d->col[col].type, num, out);
    return ST_OK;
}

static int read_key(st_reader *r, int side, uint64_t row, st_key *key, st_error *err)
{
    st_value v;
    ST_TRY(st_read_side_value(r, side, row, 0, &v, err));
    if (st_key_make(side, &v, key, NULL) != ST_OK) {
        return st_fail(err, ST_CORRUPT, "/%s: record %llu has no key", st_side_defs[side].name,
                       (unsigned long long)row);
    }
    return ST_OK;
}

static int index_keys(st_reader *r, int side, st_sideimg *t, st_error *err)
{
    t->prev = t->prev ? t->prev : h5_calloc((size_t)t->n + 1, sizeof *t->prev);
    if (!t->prev) {
        return st_nomem(err);
    }
    st_map_clear(&t->by_hash);
    for (uint64_t row = 0; row < t->n; row++) {
        const uint8_t *live;
        uint64_t run, before = 0;
        st_key key;
        ST_TRY(st_read_at(r, st_phys_side(r->im->schema, side), row, &live, &run, err));
        if (*live != ST_LIVE_SHOWS) {
            continue;
        }
        ST_TRY(read_key(r, side, row, &key, err));
        st_map_get(&t->by_hash, key.hash, &before);
        t->prev[row] = (uint32_t)before;
        ST_TRY(st_map_set(&t->by_hash, key.hash, row + 1, err));
    }
    t->indexed = 1;
    return ST_OK;
}

/* A key by its number; of a table whose keys are INTEGER. */
static int key_at(st_reader *r, int side, uint64_t row, int64_t *key, uint64_t *run, st_error *err)
{
    const uint8_t *p;
    ST_TRY(st_read_at(r, st_phys_side_number(r->im->schema, side, 0), row, &p, run, err));
    memcpy(key, p, sizeof *key);
    return ST_OK;
}

/* Does each record have a key above that of the one before? Not those that were written anew. */
static int look_at_order(st_reader *r, int side, st_sideimg *t, st_error *err)
{
    int64_t before = INT64_MIN;
    t->rises = 0;
    for (uint64_t row = 0, run; row < t->n; row += run) {
        const uint8_t *p;
        ST_TRY(st_read_at(r, st_phys_side_number(r->im->schema, side, 0), row, &p, &run, err));
        for (uint64_t i = 0; i < run; i++) {
            int64_t key = (int64_t)st_get64(p + 8 * i);
            if (key <= before) {
                t->rises = -1;
                return ST_OK;
            }
            before = key;
        }
    }
    t->rises = 1;
    return ST_OK;
}

int st_image_side_after(st_reader *r, int side, int64_t key, uint64_t *row, st_error *err)
{
    st_sideimg *t = &r->im->side[side];
    st_reader own;
    uint64_t lo = 0, hi = t->n, run;
    int rc = ST_OK, rises;
    pthread_mutex_lock(&r->im->index_lock);
    if (!t->rises) {
        rc = st_reader_open(&own, r->im, err);
        rc = rc ? rc : look_at_order(&own, side, t, err);
        st_reader_close(&own);
    }
    rises = t->rises;
    pthread_mutex_unlock(&r->im->index_lock);
    while (!rc && rises > 0 && lo < hi) {
        uint64_t mid = lo + (hi - lo) / 2;
        int64_t at;
        rc = key_at(r, side, mid, &at, &run, err);
        if (rc || at > key) {
            hi = mid;
        } else {
            lo = mid + 1;
        }
    }
    *row = lo;
    return rc;
}

int st_image_side_find(st_reader *r, int side, const st_key *key, uint64_t *row, st_error *err)
{
    st_image *im = r->im;
    st_sideimg *t = &im->side[side];
    st_reader own;
    uint64_t at = 0;
    int rc = ST_OK;
    if (!t->n) {
        return 0;
    }
    pthread_mutex_lock(&im->index_lock);
    if (!t->indexed) {
        rc = st_reader_open(&own, im, err);
        rc = rc ? rc : index_keys(&own, side, t, err);
        st_reader_close(&own);
    }
    pthread_mutex_unlock(&im->index_lock);
    ST_TRY(rc);
    st_map_get(&t->by_hash, key->hash, &at);
    for (; at; at = t->prev[at - 1]) {
        st_key have;
        ST_TRY(read_key(r, side, at - 1, &have, err));
        if (st_key_same(side, &have, key)) {
            *row = at - 1;
            return 1;
        }
    }
    return 0;
}
