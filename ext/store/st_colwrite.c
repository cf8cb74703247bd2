/*
 * st_colwrite.c - chunks of one column, in ascending order, one at a time in memory.
 *
 * A chunk in which only rows behind the old end were filled is completed where it lies: no root
 * that anybody reads shows those rows. A chunk with changed old rows is written anew at the end of
 * the file. In a compressed column the last, partly filled chunk stays raw under its filter mask
 * and is compressed when it is full. A chunk that holds nothing but the default is not stored. When
 * the column outgrows its small chunks, all of it is written anew in large ones, once.
 *
 * SPDX-License-Identifier: MIT
 */
#include "st_colwrite.h"

typedef struct chunker {
    const st_colwrite *a;
    const st_phys *p;
    const st_colimg *old;
    st_colimg *out;
    int anew;        /* the chunk size changes: nothing of the old chunks stays */
    uint8_t *buf;    /* the chunk at hand */
    uint64_t at;     /* its number, or UINT64_MAX */
    int changed_old; /* an old row of it was changed */
    uint64_t lo, hi; /* rows in it that were filled */
    size_t change;   /* changes taken so far */
} chunker;

static void fill_chunk(chunker *k)
{
    size_t bytes = k->out->chunk_rows * k->p->elem, done = k->p->type.size;
    memcpy(k->buf, k->p->fill, done);
    for (size_t n; done < bytes; done += n) { // twice as much each time
        n = ST_MIN(done, bytes - done);
        memcpy(k->buf + done, k->buf, n);
    }
}

static int is_default(const chunker *k, uint64_t rows)
{
    size_t bytes = (size_t)rows * k->p->elem, size = k->p->type.size;
    // The first is, and each is like the one before it.
    return !bytes || (memcmp(k->buf, k->p->fill, size) == 0 &&
                      memcmp(k->buf + size, k->buf, bytes - size) == 0);
}

static uint32_t raw_mask(const h5_pipeline *p)
{
    return (1u << p->n) - 1;
}

static int from_h5(int code, const h5_error *h, st_error *err)
{
    return code == H5_OK ? ST_OK : st_from_h5(err, h, "writing the file");
}

/* Completes the chunk where it lies. */
static int write_tail(chunker *k, const h5_chunk *c, st_error *err)
{
    h5_error h = {0};
    size_t from = (size_t)k->lo * k->p->elem, n = (size_t)(k->hi - k->lo) * k->p->elem;
    return from_h5(k->a->io->write(k->a->io, c->addr + from, k->buf + from, n, &h), &h, err);
}

static int write_whole(chunker *k, h5_chunk *c, int full, st_error *err)
{
    size_t bytes = k->out->chunk_rows * k->p->elem, n = bytes;
    const h5_pipeline *pl = &k->out->pipeline;
    uint32_t mask = raw_mask(pl);
    void *packed = NULL;
    h5_error h = {0};
    int rc = H5_OK;
    if (pl->n && full) {
        rc = h5_pipeline_encode(pl, k->buf, bytes, &packed, &n, &mask, &h);
        if (rc == H5_OK && n >= bytes) {
            // It did not get smaller: raw, so that it can be read in place.
            h5_free(packed);
            packed = NULL;
            n = bytes;
            mask = raw_mask(pl);
        }
    }
    if (rc == H5_OK) {
        rc = h5_writer_append(k->a->w, packed ? packed : k->buf, n, 64, &c->addr, &h);
    }
    c->size = n;
    c->mask = pl->n ? mask : 0;
    if (rc == H5_OK) {
        k->out->crc[k->at] = st_chunk_crc(k->out, k->p->elem, k->at, packed ? packed : k->buf);
    }
    h5_free(packed);
    return from_h5(rc, &h, err);
}

/* Puts the chunk at hand away. */
static int finish(chunker *k, st_error *err)
{
    h5_chunk *c;
    uint64_t first, rows;
    int full;
    if (k->at == UINT64_MAX || (k->lo >= k->hi && !k->changed_old)) {
        return ST_OK;
    }
    c = &k->out->chunk[k->at];
    first = k->at * k->out->chunk_rows;
    rows = ST_MIN((uint64_t)k->out->chunk_rows, k->out->n - first);
    full = rows == k->out->chunk_rows;
    if (c->addr != H5_UNDEF && !k->changed_old && c->mask == raw_mask(&k->out->pipeline) &&
        !(k->out->pipeline.n && full)) {
        ST_TRY(write_tail(k, c, err));
        k->out->crc[k->at] = st_chunk_crc(k->out, k->p->elem, k->at, k->buf);
        return ST_OK;
    }
    // What is always stored is what the number of rows is checked against.
    if (!k->p->always && is_default(k, rows)) {
        *c = (h5_chunk){H5_UNDEF, 0, 0};
        k->out->crc[k->at] = 0;
        return ST_OK;
    }
    return write_whole(k, c, full, err);
}

/* Has the buffer hold chunk number at. */
static int seek(chunker *k, uint64_t at, st_error *err)
{
    if (k->at == at) {
        return ST_OK;
    }
    ST_TRY(finish(k, err));
    k->at = at;
    k->changed_old = 0;
    k->lo = k->out->chunk_rows;
    k->hi = 0;
    fill_chunk(k);
    if (!k->anew && at < k->old->nchunk && k->old->chunk[at].addr != H5_UNDEF &&
        at * k->old->chunk_rows < k->old->n) {
        const uint8_t *p;
        uint64_t run;
        ST_TRY(st_read_at(k->a->reader, k->a->col, at * k->old->chunk_rows, &p, &run, err));
        memcpy(k->buf, p, (size_t)run * k->p->elem);
    }
    return ST_OK;
}

/* Fills n elements from row on. */
static int put(chunker *k, uint64_t row, const uint8_t *p, uint64_t n, st_error *err)
{
    uint32_t rows = k->out->chunk_rows;
    while (n) {
        uint64_t in = row % rows, m = ST_MIN(n, rows - in);
        ST_TRY(seek(k, row / rows, err));
        memcpy(k->buf + in * k->p->elem, p, (size_t)m * k->p->elem);
        k->lo = ST_MIN(k->lo, in);
        k->hi = ST_MAX(k->hi, in + m);
        row += m;
        p += m * k->p->elem;
        n -= m;
    }
    return ST_OK;
}

static int put_changes(chunker *k, uint64_t below, st_error *err)
{
    for (; k->change < k->a->nchange && k->a->change[k->change].row < below; k->change++) {
        const st_change *c = &k->a->change[k->change];
        uint64_t in = c->row % k->out->chunk_rows;
        ST_TRY(seek(k, c->row / k->out->chunk_rows, err));
        memcpy(k->buf + in * k->p->elem, c->bytes, k->p->elem);
        k->changed_old = 1;
    }
    return ST_OK;
}

/* The old rows into chunks of the new size, with their changes. */
static int copy_old(chunker *k, st_error *err)
{
    uint32_t rows = k->out->chunk_rows;
    for (uint64_t row = 0, run = 0; row < k->old->n; row += run) {
        const uint8_t *p;
        ST_TRY(st_read_at(k->a->reader, k->a->col, row, &p, &run, err));
        run = ST_MIN(run, rows - row % rows); // changes go into the chunk while it is at hand
        ST_TRY(put(k, row, p, run, err));
        ST_TRY(put_changes(k, row + run, err));
    }
    return ST_OK;
}

static int append_new(chunker *k, st_error *err)
{
    uint64_t row = k->old->n;
    for (uint64_t i = 0; i < k->a->npiece; i++) {
        const uint8_t *p = NULL;
        uint64_t n = 0;
        ST_TRY(k->a->piece(k->a->ctx, i, &p, &n, err));
        ST_TRY(put(k, row, p, n, err));
        row += n;
    }
    return row == k->out->n ? ST_OK
                            : st_fail(err, ST_CORRUPT,
                                      "%s: another number of new rows than announced", k->p->path);
}

static int new_table(chunker *k, st_error *err)
{
    st_colimg *out = k->out;
    out->nchunk = (out->n + out->chunk_rows - 1) / out->chunk_rows;
    out->chunk = h5_alloc_array((size_t)out->nchunk + 1, sizeof *out->chunk);
    out->crc = h5_calloc((size_t)out->nchunk + 1, sizeof *out->crc);
    if (!out->chunk || !out->crc) {
        return st_nomem(err);
    }
    for (uint64_t i = 0; i < ST_MIN(out->nchunk, k->old->nchunk) && !k->anew; i++) {
        out->crc[i] = st_get32(k->old->sum + 4 * i);
    }
    for (uint64_t i = 0; i < out->nchunk; i++) {
        out->chunk[i] = !k->anew && i < k->old->nchunk ? k->old->chunk[i]
                                                       : (h5_chunk){H5_UNDEF, 0, 0};
    }
    k->buf = h5_malloc(out->chunk_rows * k->p->elem);
    return k->buf ? ST_OK : st_nomem(err);
}

int st_col_write(const st_colwrite *a, st_colimg *out, st_error *err)
{
    chunker k = {
        .a = a, .p = &a->schema->phys[a->col], .old = a->old, .out = out, .at = UINT64_MAX};
    int rc;
    memset(out, 0, sizeof *out);
    out->n = k.old->n + a->nnew;
    out->pipeline = k.old->pipeline;
    out->chunk_rows = k.old->chunk_rows;
    if (out->n > k.p->switch_at && out->chunk_rows < k.p->chunk_large) {
        out->chunk_rows = k.p->chunk_large;
        k.anew = 1;
    }
    rc = new_table(&k, err);
    if (!rc) {
        rc = k.anew ? copy_old(&k, err) : put_changes(&k, UINT64_MAX, err);
    }
    rc = rc ? rc : append_new(&k, err);
    rc = rc ? rc : finish(&k, err);
    h5_free(k.buf);
    if (rc) {
        h5_free(out->chunk);
        h5_free(out->crc);
        memset(out, 0, sizeof *out);
    }
    return rc;
}
