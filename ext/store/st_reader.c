/*
 * st_reader.c - values out of an image: chunks from the mapping or the cache, texts, vectors, and
 * rows by id.
 *
 * A chunk that is stored raw is read in place; a compressed one is decoded into the cache.
 * Decoded chunks are shared by all readers of an image and stay while one of them holds them;
 * beyond ST_CACHE_BYTES the ones used longest ago go.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>

#include "st_image.h"

enum {
    CACHE_LINE = 64,
    SOON_BYTES = 4096 /* the rest of a long vector the processor sees coming */
};

struct st_cached {
    uint64_t key; /* column << 40 | chunk */
    int pins;
    size_t bytes;
    st_cached *newer, *older;
    /* bytes follow */
};

static uint8_t *cached_bytes(st_cached *e)
{
    return (uint8_t *)(e + 1);
}

void st_cache_free(st_image *im)
{
    for (st_cached *e = im->newest, *next; e; e = next) {
        next = e->older;
        h5_free(e);
    }
    st_map_free(&im->cache_map);
}

static void list_remove(st_image *im, st_cached *e)
{
    *(e->newer ? &e->newer->older : &im->newest) = e->older;
    *(e->older ? &e->older->newer : &im->oldest) = e->newer;
    e->newer = e->older = NULL;
}

static void list_front(st_image *im, st_cached *e)
{
    e->older = im->newest;
    e->newer = NULL;
    *(im->newest ? &im->newest->newer : &im->oldest) = e;
    im->newest = e;
}

static void evict(st_image *im)
{
    for (st_cached *e = im->oldest, *newer; e && im->cache_bytes > ST_CACHE_BYTES; e = newer) {
        newer = e->newer;
        if (!e->pins) {
            list_remove(im, e);
            st_map_remove(&im->cache_map, e->key);
            im->cache_bytes -= e->bytes;
            h5_free(e);
        }
    }
}

static int decode(st_image *im, int col, const h5_chunk *k, st_cached **out, st_error *err)
{
    const st_colimg *c = &im->col[col];
    size_t bytes = c->chunk_rows * im->schema->phys[col].elem;
    st_cached *e = h5_malloc(sizeof *e + bytes);
    h5_error h = {0};
    if (!e) {
        return st_nomem(err);
    }
    memset(e, 0, sizeof *e);
    e->bytes = bytes;
    if (!c->pipeline.n) {
        memcpy(cached_bytes(e), im->map + k->addr, bytes);
        *out = e;
        return ST_OK;
    }
    if (h5_pipeline_decode(&c->pipeline, k->mask, im->map + k->addr, (size_t)k->size,
                           cached_bytes(e), bytes, &h) != H5_OK) {
        h5_free(e);
        return st_from_h5(err, &h, im->schema->phys[col].path);
    }
    *out = e;
    return ST_OK;
}

/* Pins the decoded chunk. Decoding is done without the lock: two threads may do it at once, one
** result stays. */
static int cache_get(st_image *im, int col, uint64_t chunk, st_cached **out, st_error *err)
{
    uint64_t key = (uint64_t)col << 40 | chunk, found;
    st_cached *e = NULL;
    int rc;
    pthread_mutex_lock(&im->cache_lock);
    if (st_map_get(&im->cache_map, key, &found)) {
        e = (st_cached *)(uintptr_t)found;
        e->pins++;
        list_remove(im, e);
        list_front(im, e);
    }
    pthread_mutex_unlock(&im->cache_lock);
    if (e) {
        *out = e;
        return ST_OK;
    }
    ST_TRY(decode(im, col, &im->col[col].chunk[chunk], &e, err));
    pthread_mutex_lock(&im->cache_lock);
    if (st_map_get(&im->cache_map, key, &found)) {
        h5_free(e);
        e = (st_cached *)(uintptr_t)found;
        list_remove(im, e);
        rc = ST_OK;
    } else {
        rc = st_map_set(&im->cache_map, key, (uint64_t)(uintptr_t)e, err);
        e->key = key;
        im->cache_bytes += rc ? 0 : e->bytes;
    }
    if (!rc) {
        e->pins++;
        list_front(im, e);
        evict(im);
    }
    pthread_mutex_unlock(&im->cache_lock);
    if (rc) {
        h5_free(e);
        return rc;
    }
    *out = e;
    return ST_OK;
}

static void unpin(st_reader *r, int col)
{
    if (r->pin[col]) {
        pthread_mutex_lock(&r->im->cache_lock);
        r->pin[col]->pins--;
        pthread_mutex_unlock(&r->im->cache_lock);
        r->pin[col] = NULL;
    }
}

int st_reader_open(st_reader *r, st_image *im, st_error *err)
{
    memset(r, 0, sizeof *r);
    r->pin = h5_calloc((size_t)im->schema->nphys, sizeof *r->pin);
    r->scratch = h5_calloc((size_t)(im->schema->ntext + im->schema->nside_text),
                           sizeof *r->scratch);
    if (im->schema->storage != VEC_F32) {
        r->vector = h5_alloc_array((size_t)im->schema->dim, sizeof *r->vector);
    }
    if (!r->pin || !r->scratch || (im->schema->storage != VEC_F32 && !r->vector)) {
        h5_free(r->vector);
        h5_free(r->pin);
        h5_free(r->scratch);
        memset(r, 0, sizeof *r);
        return st_nomem(err);
    }
    r->im = im;
    return ST_OK;
}

int st_reader_rests(const st_reader *r)
{
    enum { KEPT = 1 << 16 };
    for (int t = 0; t < r->im->schema->ntext; t++) {
        if (r->scratch[t].cap > KEPT) {
            return 0;
        }
    }
    return !r->pinned;
}

void st_reader_close(st_reader *r)
{
    if (r->im) {
        for (int c = 0; c < r->im->schema->nphys; c++) {
            unpin(r, c);
        }
        for (int t = 0; t < r->im->schema->ntext + r->im->schema->nside_text; t++) {
            st_buf_free(&r->scratch[t]);
        }
    }
    h5_free(r->vector);
    h5_free(r->pin);
    h5_free(r->scratch);
    memset(r, 0, sizeof *r);
}

int st_read_at(st_reader *r, int col, uint64_t row, const uint8_t **p, uint64_t *run, st_error *err)
{
    const st_colimg *c = &r->im->col[col];
    // division of 32 bits takes half the time
    uint64_t chunk = row >> 32 ? row / c->chunk_rows : (uint32_t)row / c->chunk_rows;
    uint64_t in = row - chunk * c->chunk_rows;
    size_t elem = r->im->schema->phys[col].elem;
    const h5_chunk *k = &c->chunk[chunk];
    const uint8_t *base;
    if (k->addr == H5_UNDEF) {
        base = c->fill;
    } else if ((k->addr % 8 == 0 || st_phys_is_plane(col)) &&
               (!c->pipeline.n ||
                (k->mask == (1u << c->pipeline.n) - 1 && k->size == c->chunk_rows * elem))) {
        // Stored raw and aligned, as all that we write is. (A stranger's h5repack may align less:
        // then a copy is made; planes are bytes and need none.)
        base = r->im->map + k->addr;
    } else {
        st_cached *e = NULL;
        if (r->pin[col] && r->pin[col]->key == ((uint64_t)col << 40 | chunk)) {
            e = r->pin[col];
        } else {
            ST_TRY(cache_get(r->im, col, chunk, &e, err));
            unpin(r, col);
            r->pin[col] = e;
            r->pinned = 1;
        }
        base = cached_bytes(e);
    }
    *p = base + in * elem;
    *run = ST_MIN(c->chunk_rows - in, c->n - row);
    return ST_OK;
}

/* Offsets follow the data's column. */
static int read_offset(st_reader *r, int data, uint64_t at, uint64_t *out, st_error *err)
{
    const uint8_t *p;
    uint64_t run;
    ST_TRY(st_read_at(r, data + 1, at, &p, &run, err));
    *out = st_get64(p);
    return ST_OK;
}

/* Gathers bytes that cross chunks. */
static int gather(st_reader *r, int data, st_buf *b, uint64_t from, uint64_t to, st_error *err)
{
    b->n = 0;
    ST_TRY(st_buf_room(b, (size_t)(to - from), err));
    while (from < to) {
        const uint8_t *p;
        uint64_t run;
        ST_TRY(st_read_at(r, data, from, &p, &run, err));
        run = ST_MIN(run, to - from);
        ST_TRY(st_buf_add(b, p, (size_t)run, err));
        from += run;
    }
    return ST_OK;
}

/* A value of the text whose bytes are physical column data. */
static int stored_at(st_reader *r, int data, st_buf *scratch, uint64_t row, const uint8_t **out,
                     size_t *n, st_error *err)
{
    uint64_t a, b, run;
    const uint8_t *p;
    size_t len;
    *out = NULL;
    *n = 0;
    ST_TRY(read_offset(r, data, row, &a, err));
    ST_TRY(read_offset(r, data, row + 1, &b, err));
    if (a > b || b > r->im->col[data].n || b - a > ST_TEXT_BYTES_MAX + 1) {
        char where[2 * ST_NAME_MAX];
        return st_fail(err, ST_CORRUPT, "%s: row %llu has offsets %llu to %llu",
                       st_phys_where(r->im->schema, data + 1, where, sizeof where),
                       (unsigned long long)row, (unsigned long long)a, (unsigned long long)b);
    }
    len = (size_t)(b - a);
    if (!len) {
        return ST_OK;
    }
    ST_TRY(st_read_at(r, data, a, &p, &run, err));
    if (run < len) {
        ST_TRY(gather(r, data, scratch, a, b, err));
        p = scratch->p;
    }
    *out = p;
    *n = len;
    return ST_OK;
}

/* A value of nothing but NUL bytes was stored with one more (st_schema.h). */
static size_t value_bytes(const uint8_t *p, size_t n)
{
    size_t i = 0;
    if (p && !p[0]) {
        while (i < n && !p[i]) {
            i++;
        }
        n -= i == n;
    }
    return n;
}

int st_read_stored(st_reader *r, int text, uint64_t row, const uint8_t **out, size_t *n,
                   st_error *err)
{
    return stored_at(r, st_phys_data(text), &r->scratch[text], row, out, n, err);
}

int st_read_text(st_reader *r, int text, uint64_t row, const uint8_t **out, size_t *n,
                 st_error *err)
{
    ST_TRY(st_read_stored(r, text, row, out, n, err));
    *n = value_bytes(*out, *n);
    return ST_OK;
}

int st_read_side_stored(st_reader *r, int side, int text, uint64_t row, const uint8_t **out,
                        size_t *n, st_error *err)
{
    const st_schema *s = r->im->schema;
    return stored_at(r, st_phys_side_data(s, side, text),
                     &r->scratch[s->ntext + s->side_text[side] + text], row, out, n, err);
}

int st_read_side_text(st_reader *r, int side, int text, uint64_t row, const uint8_t **out,
                      size_t *n, st_error *err)
{
    ST_TRY(st_read_side_stored(r, side, text, row, out, n, err));
    *n = value_bytes(*out, *n);
    return ST_OK;
}

int st_read_small(st_reader *r, int small, uint64_t row, st_num *out, st_error *err)
{
    const uint8_t *p;
    uint64_t run;
    ST_TRY(st_read_at(r, st_phys_small(r->im->schema, small), row, &p, &run, err));
    *out = st_small_unpack(r->im->schema, small, p);
    return ST_OK;
}

int st_read_id(st_reader *r, uint64_t row, int64_t *id, st_error *err)
{
    const uint8_t *p;
    uint64_t run;
    ST_TRY(st_read_at(r, ST_PHYS_ID, row, &p, &run, err));
    *id = (int64_t)st_get64(p);
    return ST_OK;
}

int st_read_vector(st_reader *r, uint64_t row, const float **v, float *norm, st_error *err)
{
    const uint8_t *p;
    uint64_t run;
    *v = NULL;
    ST_TRY(st_read_at(r, ST_PHYS_NORM, row, &p, &run, err));
    memcpy(norm, p, sizeof *norm);
    if (!isnan(*norm)) {
        ST_TRY(st_read_at(r, ST_PHYS_EMBEDDING, row, &p, &run, err));
        *v = (const float *)(const void *)p;
        if (r->vector) {
            vec_stored_decode(r->im->schema->storage, p, (size_t)r->im->schema->dim, r->vector);
            *v = r->vector;
        }
    }
    return ST_OK;
}

/* Asks for the first bytes of a value that lies in the mapping. */
static void soon(const st_reader *r, int col, uint64_t row, size_t bytes)
{
    const st_colimg *c = &r->im->col[col];
    uint64_t chunk = (uint32_t)row / c->chunk_rows;
    const h5_chunk *k = &c->chunk[chunk];
    if (k->addr != H5_UNDEF && !c->pipeline.n) {
        const uint8_t *p = r->im->map + k->addr +
                           ((uint32_t)row - chunk * c->chunk_rows) * r->im->schema->phys[col].elem;
        for (size_t i = 0; i < bytes; i += CACHE_LINE) {
            __builtin_prefetch(p + i);
        }
    }
}

void st_reader_soon(const st_reader *r, uint64_t row)
{
    if (row < r->im->nrow && row <= UINT32_MAX) { // a division of 32 bits takes half the time
        size_t bytes = r->im->schema->phys[ST_PHYS_EMBEDDING].elem;
        soon(r, ST_PHYS_NORM, row, 1);
        soon(r, ST_PHYS_ID, row, 1);
        soon(r, ST_PHYS_EMBEDDING, row, ST_MIN(bytes, (size_t)SOON_BYTES));
    }
}

int st_read_value(st_reader *r, uint64_t row, int col, st_value *out, st_error *err)
{
    const st_schema *s = r->im->schema;
    const uint8_t *p;
    uint64_t run;
    st_num num;
    memset(out, 0, sizeof *out);
    if (s->small_of[col] >= 0) {
        ST_TRY(st_read_small(r, s->small_of[col], row, &num, err));
        st_small_to_value(s, s->small_of[col], num, out);
    } else if (s->text_of[col] >= 0) {
        ST_TRY(st_read_text(r, s->text_of[col], row, &p, &out->n, err));
        out->p = p;
        out->type = p ? st_logical_type(s, col) : ST_NULL;
    } else if (col == ST_COL_ID) {
        out->type = ST_INT;
        return st_read_id(r, row, &out->i, err);
    } else if (col == ST_COL_TIMESTAMP) {
        ST_TRY(st_read_at(r, ST_PHYS_TIMESTAMP, row, &p, &run, err));
        out->type = ST_REAL;
        memcpy(&out->r, p, sizeof out->r);
    } else {
        const float *vec;
        float norm;
        ST_TRY(st_read_vector(r, row, &vec, &norm, err));
        out->type = vec ? ST_BLOB : ST_NULL;
        out->p = vec;
        out->n = vec ? (size_t)s->dim * sizeof *vec : 0;
    }
    return ST_OK;
}

/* ----------------------------------------------------------------------------------- rows by id */

int st_sortrun_row(const st_sortrun *run, int sort, uint64_t i, uint64_t *row, st_error *err)
{
    uint32_t off;
    if (!run->sorted) {
        *row = run->first + i;
        return ST_OK;
    }
    off = st_get32(run->perm + 4 * i);
    *row = run->first + off;
    return off < run->count
               ? ST_OK
               : st_fail(err, ST_CORRUPT, "%s: run %llu names row %u of %llu", st_sort_name(sort),
                         (unsigned long long)run->first, off, (unsigned long long)run->count);
}

int st_read_time(st_reader *r, uint64_t row, double *time, st_error *err)
{
    const uint8_t *p;
    uint64_t run;
    ST_TRY(st_read_at(r, ST_PHYS_TIMESTAMP, row, &p, &run, err));
    memcpy(time, p, sizeof *time);
    return ST_OK;
}

int st_read_sortkey(st_reader *r, int sort, uint64_t row, st_sortkey *out, st_error *err)
{
    out->time = 0;
    if (sort == ST_SORT_TIME) {
        ST_TRY(st_read_time(r, row, &out->time, err));
    }
    return st_read_id(r, row, &out->id, err);
}

/* First position of a run whose id is not below id. */
static int lower_bound(st_reader *r, const st_sortrun *run, int64_t id, uint64_t *pos,
                       st_error *err)
{
    uint64_t lo = 0, hi = run->count;
    while (lo < hi) {
        uint64_t mid = lo + (hi - lo) / 2, row;
        int64_t at;
        ST_TRY(st_sortrun_row(run, ST_SORT_ID, mid, &row, err));
        ST_TRY(st_read_id(r, row, &at, err));
        if (at < id) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    *pos = lo;
    return ST_OK;
}

int st_image_newest(st_reader *r, int64_t id, uint64_t *out, int *evicted, st_error *err)
{
    st_image *im = r->im;
    const uint64_t *live;
    uint64_t n;
    *evicted = 0;
    ST_TRY(st_image_live(im, &live, &n, err));
    for (size_t k = im->sorted[ST_SORT_ID].n; k-- > 0;) {
        const st_sortrun *run = &im->sorted[ST_SORT_ID].run[k];
        uint64_t pos = 0;
        ST_TRY(lower_bound(r, run, id, &pos, err));
        for (; pos < run->count; pos++) {
            uint64_t row;
            int64_t at;
            ST_TRY(st_sortrun_row(run, ST_SORT_ID, pos, &row, err));
            ST_TRY(st_read_id(r, row, &at, err));
            if (at != id) {
                break;
            }
            if (st_bit_get(live, row)) {
                *out = row;
                *evicted = 0;
                return 1;
            }
            if (im->evicted && st_bit_get(im->evicted, row)) {
                *out = row;
                *evicted = 1;
            }
        }
    }
    return *evicted;
}

int st_image_find(st_reader *r, int64_t id, uint64_t *out, st_error *err)
{
    int evicted, rc = st_image_newest(r, id, out, &evicted, err);
    return rc > 0 && evicted ? 0 : rc;
}
