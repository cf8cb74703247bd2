/*
 * t_st_colwrite.c - every column of a store written by many flushes, against plain arrays
 *
 * Columns of all kinds (numbers of one to eight bytes, vectors, plane records, text bytes,
 * offsets), each compression, small and large chunks. After each write the new table shows the new
 * array, and the old table still shows the old one: nothing that an old root shows may change.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <stdlib.h>

#include "st_colwrite.h"
#include "st_root.h"
#include "t_store.h"
#include "vec.h"

typedef struct bytes {
    uint8_t *p;
    size_t n;
} bytes;

typedef struct world {
    st_schema *s;
    st_options o;
    st_file file;
    st_image im;
    st_reader reader;
    uint64_t eof;
    t_rng r;
    bytes *plain; /* of each column */
    uint8_t **sum;
} world;

static void map_again(world *w)
{
    h5_error e = {0};
    const void *p;
    if (w->im.map)
        w->file.io->unmap(w->file.io, w->im.map, w->im.map_n);
    assert_int_equal(w->file.io->map(w->file.io, 0, (size_t)w->eof, &p, &e), H5_OK);
    w->im.map = p;
    w->im.map_n = (size_t)w->eof;
}

static void begin(world *w, const char *compression, const t_dir *d)
{
    st_error err = {0, ""};
    h5_error e = {0};
    st_column user[4] = {
        {"user_id", ST_TEXT}, {"priority", ST_INT}, {"ratio", ST_REAL}, {"raw", ST_BLOB}};
    static const uint8_t start[H5_SUPERBLOCK_BYTES];
    t_ok(&err, st_schema_make(20, VEC_COSINE, 0, user, 4, "t", "f", &w->s, &err));
    st_options_default(&w->o);
    t_ok(&err, st_options_set(&w->o, "compression", compression, 1, &err));
    assert_int_equal(h5_io_file(d->h5, H5_IO_WRITE | H5_IO_CREATE, &w->file.io, &e), H5_OK);
    assert_int_equal(w->file.io->write(w->file.io, 0, start, sizeof start, &e), H5_OK);
    w->eof = H5_SUPERBLOCK_BYTES;
    w->im.schema = w->s;
    w->im.file = &w->file;
    pthread_mutex_init(&w->im.lock, NULL);
    w->im.col = calloc((size_t)w->s->nphys, sizeof *w->im.col);
    w->plain = calloc((size_t)w->s->nphys, sizeof *w->plain);
    w->sum = calloc((size_t)w->s->nphys, sizeof *w->sum);
    for (int c = 0; c < w->s->nphys; c++) {
        w->im.col[c].chunk_rows = w->s->phys[c].chunk_small;
        st_root_pipeline(w->s, &w->o, c, &w->im.col[c].pipeline);
    }
    map_again(w);
    t_ok(&err, st_reader_open(&w->reader, &w->im, &err));
}

static void end(world *w)
{
    st_reader_close(&w->reader);
    st_cache_free(&w->im);
    w->file.io->unmap(w->file.io, w->im.map, w->im.map_n);
    w->file.io->close(w->file.io);
    for (int c = 0; c < w->s->nphys; c++) {
        h5_free(w->im.col[c].chunk);
        free(w->im.col[c].fill);
        free(w->plain[c].p);
        free(w->sum[c]);
    }
    free(w->im.col);
    free(w->plain);
    free(w->sum);
    pthread_mutex_destroy(&w->im.lock);
    st_schema_free(w->s);
}

/* -------------------------------------------------------------------------------------- a write */

typedef struct pieces {
    const uint8_t *p;
    size_t elem;
    const uint64_t *n;
} pieces;

static int piece(void *ctx, uint64_t i, const uint8_t **p, uint64_t *n, st_error *err)
{
    pieces *k = ctx;
    (void)err;
    *p = k->p;
    *n = k->n[i];
    k->p += k->n[i] * k->elem;
    return ST_OK;
}

/* n elements: runs of the default, of one value, and of anything. */
static void fill(world *w, const st_phys *p, uint8_t *out, uint64_t n)
{
    while (n) {
        uint64_t run = 1 + t_rng_below(&w->r, n), kind = t_rng_below(&w->r, 3);
        for (uint64_t i = 0; i < run; i++, out += p->elem) {
            if (kind == 0)
                for (size_t b = 0; b < p->elem; b += p->type.size)
                    memcpy(out + b, p->fill, p->type.size);
            else if (kind == 1)
                memset(out, (int)(i / 50), p->elem);
            else
                t_rng_fill(&w->r, out, p->elem);
        }
        n -= run;
    }
}

static int by_row(const void *a, const void *b)
{
    const st_change *x = a, *y = b;
    return x->row < y->row ? -1 : x->row > y->row;
}

/* Changes of rows that are there, ascending, each row once. */
static size_t changes(world *w, int c, st_change *out, size_t max)
{
    const st_phys *p = &w->s->phys[c];
    uint64_t n = w->im.col[c].n;
    size_t k = 0, m = 0;
    if (p->elem > 8 || !n)
        return 0;
    for (size_t i = t_rng_below(&w->r, max); i-- > 0; k++) {
        memset(&out[k], 0, sizeof out[k]);
        out[k].row = t_rng_below(&w->r, 3) ? t_rng_below(&w->r, n) : n - 1 - k % n;
        fill(w, p, out[k].bytes, 1);
    }
    qsort(out, k, sizeof *out, by_row);
    for (size_t i = 0; i < k; i++)
        if (!m || out[m - 1].row != out[i].row)
            out[m++] = out[i];
    return m;
}

static void read_all(world *w, int c, uint8_t *out)
{
    st_error err = {0, ""};
    size_t elem = w->s->phys[c].elem;
    for (uint64_t row = 0, run = 0; row < w->im.col[c].n; row += run) {
        const uint8_t *p;
        t_ok(&err, st_read_at(&w->reader, c, row, &p, &run, &err));
        assert_true(run > 0);
        memcpy(out + row * elem, p, run * elem);
    }
}

/* A reader caches decoded chunks by number: a table that has changed needs a new cache. */
static void forget_cache(world *w)
{
    st_error err = {0, ""};
    st_reader_close(&w->reader);
    st_cache_free(&w->im);
    memset(&w->im.cache_map, 0, sizeof w->im.cache_map);
    w->im.newest = w->im.oldest = NULL;
    w->im.cache_bytes = 0;
    t_ok(&err, st_reader_open(&w->reader, &w->im, &err));
}

static void check(world *w, int c, const bytes *want, const char *what)
{
    uint8_t *have = malloc(want->n + 1);
    assert_non_null(have);
    forget_cache(w);
    assert_int_equal(w->im.col[c].n * w->s->phys[c].elem, want->n);
    read_all(w, c, have);
    for (size_t i = 0; i < want->n; i++)
        if (have[i] != want->p[i])
            fail_msg("%s, %s: byte %zu of %zu", w->s->phys[c].path, what, i, want->n);
    free(have);
}

/* What must hold of a chunk table beside its values. */
static void check_table(world *w, int c, const st_colimg *t)
{
    const st_phys *p = &w->s->phys[c];
    uint32_t raw = (1u << t->pipeline.n) - 1;
    assert_int_equal(t->nchunk, (t->n + t->chunk_rows - 1) / t->chunk_rows);
    assert_int_equal(t->chunk_rows, t->n > p->switch_at ? p->chunk_large : p->chunk_small);
    for (uint64_t i = 0; i < t->nchunk; i++) {
        uint64_t rows = ST_MIN((uint64_t)t->chunk_rows, t->n - i * t->chunk_rows);
        const h5_chunk *k = &t->chunk[i];
        const uint8_t *want = w->plain[c].p + i * t->chunk_rows * p->elem;
        int plain = 1;
        for (size_t b = 0; b < rows * p->elem; b += p->type.size)
            plain &= memcmp(want + b, p->fill, p->type.size) == 0;
        if (!w->s->phys[c].always)
            assert_int_equal(k->addr == H5_UNDEF, plain);
        else
            assert_true(k->addr != H5_UNDEF);
        if (k->addr == H5_UNDEF)
            continue;
        assert_int_equal(k->addr % 64, 0);
        assert_true(k->addr + k->size <= w->eof);
        if (rows < t->chunk_rows)
            assert_int_equal(k->mask, t->pipeline.n ? raw : 0);
        assert_true(k->size <= t->chunk_rows * p->elem);
        assert_int_equal(t->crc[i], st_chunk_crc(t, p->elem, i, w->im.map + k->addr));
    }
}

static void make_fill(world *w, int c)
{
    const st_phys *p = &w->s->phys[c];
    st_colimg *col = &w->im.col[c];
    free(col->fill);
    col->fill = malloc(col->chunk_rows * p->elem);
    assert_non_null(col->fill);
    for (size_t b = 0; b < col->chunk_rows * p->elem; b += p->type.size)
        memcpy(col->fill + b, p->fill, p->type.size);
}

/* New elements and changes of old ones into column c; the old table is looked at once more. */
static void write_once(world *w, int c, uint64_t nnew)
{
    const st_phys *p = &w->s->phys[c];
    st_colimg old = w->im.col[c], out;
    bytes before = w->plain[c], now;
    uint64_t cut[8], npiece = nnew ? 1 + t_rng_below(&w->r, 7) : 0, left = nnew;
    st_change change[64];
    h5_error e = {0};
    st_error err = {0, ""};
    size_t nchange = changes(w, c, change, 64);
    now.n = before.n + nnew * p->elem;
    now.p = malloc(now.n + 1);
    assert_non_null(now.p);
    if (before.n)
        memcpy(now.p, before.p, before.n);
    for (size_t i = 0; i < nchange; i++)
        memcpy(now.p + change[i].row * p->elem, change[i].bytes, p->elem);
    fill(w, p, now.p + before.n, nnew);
    for (uint64_t i = 0; i < npiece; i++) {
        cut[i] = i + 1 == npiece ? left : t_rng_below(&w->r, left + 1); // some are empty
        left -= cut[i];
    }
    pieces ctx = {now.p + before.n, p->elem, cut};
    st_colwrite a = {.schema = w->s,
                     .reader = &w->reader,
                     .old = &w->im.col[c],
                     .io = w->file.io,
                     .col = c,
                     .change = change,
                     .nchange = nchange,
                     .nnew = nnew,
                     .npiece = npiece,
                     .piece = piece,
                     .ctx = &ctx};
    assert_int_equal(h5_writer_new(w->file.io, w->eof, &a.w, &e), H5_OK);
    t_ok(&err, st_col_write(&a, &out, &err));
    assert_int_equal(h5_writer_flush(a.w, &e), H5_OK);
    w->eof = h5_writer_eof(a.w);
    h5_writer_free(a.w);
    map_again(w);
    check(w, c, &before, "as the old root shows it");
    w->plain[c] = now;
    w->im.col[c] = out;
    w->im.col[c].fill = old.fill;
    make_fill(w, c);
    check(w, c, &now, "as the new root shows it");
    check_table(w, c, &out);
    h5_free(old.chunk);
    free(before.p);
    free(w->sum[c]);
    w->sum[c] = malloc(4 * (size_t)out.nchunk + 4);
    assert_non_null(w->sum[c]);
    for (uint64_t i = 0; i < out.nchunk; i++)
        st_put32(w->sum[c] + 4 * i, out.crc[i]);
    h5_free(out.crc);
    w->im.col[c].crc = NULL;
    w->im.col[c].sum = w->sum[c];
}

static void run(const char *compression, uint64_t seed)
{
    world *w = calloc(1, sizeof *w);
    t_dir d = t_dir_new();
    assert_non_null(w);
    w->r = t_rng_start(seed);
    begin(w, compression, &d);
    for (int round = 0; round < 14; round++) {
        for (int c = 0; c < w->s->nphys; c++) {
            int text = strstr(w->s->phys[c].path, "/data") != NULL;
            // Text counts bytes; every column passes the size where its chunks grow.
            uint64_t most = text ? 20000 : w->s->phys[c].elem > 8 ? 60 : 8000 / w->s->phys[c].elem;
            uint64_t n = t_rng_below(&w->r, 4) ? t_rng_below(&w->r, most) : t_rng_below(&w->r, 3);
            if (n || w->im.col[c].n)
                write_once(w, c, n);
        }
    }
    for (int c = 0; c < w->s->nphys; c++)
        if (w->s->phys[c].switch_at != UINT64_MAX && w->im.col[c].n <= w->s->phys[c].switch_at)
            print_message("# %s did not grow large\n", w->s->phys[c].path);
    end(w);
    free(w);
    t_dir_remove(&d);
}

static void not_compressed(void **state)
{
    (void)state;
    run("none", 1);
}

static void deflate(void **state)
{
    (void)state;
    run("deflate:2", 2);
}

static void zstd(void **state)
{
    (void)state;
    run("zstd:1", 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(not_compressed),
        cmocka_unit_test(deflate),
        cmocka_unit_test(zstd),
    };
    vec_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
