/*
 * st_foldindex.c - a flush's share of the id, time and text index: one run for its rows, and
 * merges.
 *
 * Runs of like size are merged eight at a time, so that their number grows with the logarithm of
 * the rows. A merge that would write more than 2 MiB waits: no flush is to cost much more than its
 * rows.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdlib.h>

#include "st_flush.h"
#include "vec.h"

enum { MERGE_RUNS = 8, MERGE_BYTES_MAX = 2 << 20 };

/* Sizes within a factor of eight are alike. */
static int size_class(uint64_t n)
{
    int c = 0;
    for (; n >= MERGE_RUNS; n /= MERGE_RUNS) {
        c++;
    }
    return c;
}

size_t st_merge_count(const uint64_t *size, size_t n, uint64_t bytes_each)
{
    uint64_t total = 0;
    size_t k = 0;
    while (k < n && size_class(size[n - 1 - k]) <= size_class(size[n - 1])) {
        total += size[n - 1 - k];
        k++;
        if (total * bytes_each > MERGE_BYTES_MAX) {
            k--;
            break;
        }
    }
    return k >= MERGE_RUNS ? k : 0;
}

/* --------------------------------------------------------------------------------- sorted runs */

typedef struct sort_row {
    st_sortkey key;
    uint32_t row; /* from the run's first */
} sort_row;

static int by_key(const void *a, const void *b)
{
    const sort_row *x = a, *y = b;
    int c = st_sortkey_compare(&x->key, &y->key);
    return c ? c : (x->row > y->row) - (x->row < y->row);
}

static int key_at(st_fold *f, int sort, uint64_t row, st_sortkey *out, st_error *err)
{
    uint64_t nbase = f->gen->image->nrow;
    if (row >= nbase) {
        const st_slot *s = f->row[row - nbase].slot;
        *out = (st_sortkey){sort == ST_SORT_TIME ? s->timestamp : 0, s->id};
        return ST_OK;
    }
    return st_read_sortkey(&f->reader, sort, row, out, err);
}

int st_sort_rows(st_sortkey_fn *key, void *ctx, uint64_t n, uint8_t **perm, st_error *err)
{
    sort_row *rows = h5_alloc_array((size_t)n + 1, sizeof *rows);
    int rc = rows ? ST_OK : st_nomem(err), ascending = 1;
    *perm = NULL;
    for (uint64_t i = 0; i < n && !rc; i++) {
        rows[i].row = (uint32_t)i;
        rc = key(ctx, i, &rows[i].key, err);
        ascending &= rc || !i || st_sortkey_compare(&rows[i - 1].key, &rows[i].key) < 0;
    }
    if (!rc && !ascending) {
        *perm = h5_alloc_array((size_t)n, 4);
        rc = *perm ? ST_OK : st_nomem(err);
        qsort(rows, (size_t)n, sizeof *rows, by_key);
        for (uint64_t i = 0; i < n && !rc; i++) {
            st_put32(*perm + 4 * i, rows[i].row);
        }
    }
    h5_free(rows);
    return rc;
}

typedef struct folding {
    st_fold *f;
    int sort;
    uint64_t first;
} folding;

static int folding_key(void *ctx, uint64_t i, st_sortkey *out, st_error *err)
{
    const folding *x = ctx;
    return key_at(x->f, x->sort, x->first + i, out, err);
}

/* Sorts a run's rows and appends the permutation, if they need one. */
static int write_perm(st_fold *f, int sort, st_root_sortrun *r, st_error *err)
{
    folding x = {f, sort, r->first};
    uint8_t *perm;
    ST_TRY(st_sort_rows(folding_key, &x, r->count, &perm, err));
    r->sorted = perm != NULL;
    int rc = perm ? st_root_blob(f->w, perm, r->count * 4, 4, &r->perm_header, err) : ST_OK;
    h5_free(perm);
    return rc;
}

/* The new rows' run: a continuation of the last one when keys go on ascending. */
static int add_run(st_fold *f, int sort, st_error *err)
{
    uint64_t nbase = f->gen->image->nrow;
    size_t n = f->nsorted[sort];
    st_root_sortrun *last = n ? &f->sorted[sort][n - 1] : NULL;
    st_sortkey before, after;
    int ascending = 1;
    for (size_t i = 1; i < f->nrow && ascending; i++) {
        ST_TRY(key_at(f, sort, nbase + i - 1, &before, err));
        ST_TRY(key_at(f, sort, nbase + i, &after, err));
        ascending = st_sortkey_compare(&before, &after) < 0;
    }
    if (ascending && last && !last->sorted) {
        ST_TRY(key_at(f, sort, nbase - 1, &before, err));
        ST_TRY(key_at(f, sort, nbase, &after, err));
        if (st_sortkey_compare(&before, &after) < 0) {
            last->count += f->nrow;
            return ST_OK;
        }
    }
    last = &f->sorted[sort][f->nsorted[sort]++];
    *last = (st_root_sortrun){.first = nbase, .count = f->nrow};
    return ascending ? ST_OK : write_perm(f, sort, last, err);
}

static int merge_sorted(st_fold *f, int sort, st_error *err)
{
    for (;;) {
        size_t n = f->nsorted[sort], k;
        uint64_t *size = h5_alloc_array(n + 1, sizeof *size);
        if (!size) {
            return st_nomem(err);
        }
        for (size_t i = 0; i < n; i++) {
            size[i] = f->sorted[sort][i].count;
        }
        k = f->optimize ? n * (n > 1) : st_merge_count(size, n, 4);
        h5_free(size);
        if (!k) {
            return ST_OK;
        }
        st_root_sortrun *to = &f->sorted[sort][n - k];
        for (size_t i = 1; i < k; i++) {
            to->count += to[i].count;
        }
        f->nsorted[sort] -= k - 1;
        ST_TRY(write_perm(f, sort, to, err));
    }
}

static int fold_runs(st_fold *f, int sort, st_error *err)
{
    const st_image *im = f->gen->image;
    const st_sortruns *old = &im->sorted[sort];
    f->sorted[sort] = h5_alloc_array(old->n + 2, sizeof(st_root_sortrun));
    if (!f->sorted[sort]) {
        return st_nomem(err);
    }
    for (size_t i = 0; i < old->n; i++) {
        const st_sortrun *r = &old->run[i];
        f->sorted[sort][i] = (st_root_sortrun){r->first, r->count, r->sorted, r->perm_header};
    }
    f->nsorted[sort] = old->n;
    if (!old->n && im->nrow) { // a file that had no such index
        f->sorted[sort][0] = (st_root_sortrun){.count = im->nrow};
        f->nsorted[sort] = 1;
        ST_TRY(write_perm(f, sort, f->sorted[sort], err));
    }
    if (f->nrow) {
        ST_TRY(add_run(f, sort, err));
    }
    if (f->nrow || f->optimize) {
        ST_TRY(merge_sorted(f, sort, err));
    }
    return f->nsorted[sort] <= ST_RUNS_MAX
               ? ST_OK
               : st_fail(err, ST_LIMIT, "%zu runs of %s; at most %d", f->nsorted[sort],
                         st_sort_name(sort), ST_RUNS_MAX);
}

int st_fold_sorted(st_fold *f, st_error *err)
{
    for (int i = 0; i < ST_SORTS; i++) {
        ST_TRY(fold_runs(f, i, err));
    }
    return ST_OK;
}

/* ----------------------------------------------------------------------------------------- text */

typedef struct text_run {
    uint64_t first, size, header;
    const uint8_t *bytes;
    int fresh; /* made in this flush, not yet written */
} text_run;

/* The new rows' tokens as a run. */
static int new_run(st_fold *f, text_run *r, int *any, st_error *err)
{
    uint64_t nbase = f->gen->image->nrow;
    vec_bulk *t = NULL;
    uint8_t *image = NULL;
    size_t n = 0;
    int rc = vec_bulk_new(&t);
    *any = 0;
    for (size_t i = 0; i < f->nrow && !rc; i++) {
        const st_slot *s = f->row[i].slot;
        if (s->ntokens && !f->row[i].evicted) {
            rc = vec_bulk_add(t, nbase + i, s->tokens, s->ntokens);
            *any = 1;
        }
    }
    rc = rc || !*any ? rc : vec_bulk_image(t, &image, &n);
    vec_bulk_free(t);
    if (rc || !*any) {
        return st_from_vec(err, rc, "the text index");
    }
    *r = (text_run){.first = nbase, .size = n, .bytes = image, .fresh = 1};
    return ST_OK;
}

int st_fold_live(st_fold *f, uint64_t **out, st_error *err)
{
    const uint64_t *live;
    uint64_t n, nrow = f->gen->image->nrow + f->nrow;
    ST_TRY(st_image_live(f->gen->image, &live, &n, err));
    *out = h5_calloc(st_bit_words(nrow) + 1, sizeof **out);
    if (!*out) {
        return st_nomem(err);
    }
    memcpy(*out, live, st_bit_words(f->gen->image->nrow) * sizeof *live);
    for (size_t i = 0; i < f->ndead; i++) {
        st_bit_clear(*out, f->dead[i].row);
    }
    for (uint64_t r = f->gen->image->nrow; r < nrow; r++) {
        if (!f->row[r - f->gen->image->nrow].evicted) {
            st_bit_set(*out, r);
        }
    }
    return ST_OK;
}

static int merge_some(text_run *runs, size_t k, const uint64_t *live, st_error *err)
{
    vec_run **open = h5_calloc(k, sizeof *open);
    uint8_t *bytes = NULL;
    size_t n = 0;
    int rc = open ? VEC_OK : VEC_NOMEM;
    for (size_t i = 0; i < k && !rc; i++) {
        rc = vec_run_open(runs[i].bytes, (size_t)runs[i].size, &open[i]);
    }
    rc = rc ? rc : vec_run_merge(open, k, live, &bytes, &n);
    for (size_t i = 0; open && i < k; i++) {
        vec_run_close(open[i]);
    }
    h5_free(open);
    if (rc) {
        return st_from_vec(err, rc, "merging the text index");
    }
    for (size_t i = 0; i < k; i++) {
        if (runs[i].fresh) {
            vec_free((void *)(uintptr_t)runs[i].bytes);
        }
    }
    runs[0] = (text_run){.first = runs[0].first, .size = n, .bytes = bytes, .fresh = 1};
    return ST_OK;
}

static int merge_runs(st_fold *f, text_run *runs, size_t *n, st_error *err)
{
    uint64_t *live = NULL, *size = h5_alloc_array(*n + 1, sizeof *size);
    int rc = size ? ST_OK : st_nomem(err);
    while (!rc) {
        size_t k;
        for (size_t i = 0; i < *n; i++) {
            size[i] = runs[i].size;
        }
        k = f->optimize ? *n * (*n > 1) : st_merge_count(size, *n, 1);
        if (!k) {
            break;
        }
        rc = live ? ST_OK : st_fold_live(f, &live, err);
        rc = rc ? rc : merge_some(&runs[*n - k], k, live, err);
        if (!rc) {
            *n -= k - 1;
        }
    }
    h5_free(size);
    h5_free(live);
    return rc;
}

static int write_runs(st_fold *f, text_run *runs, size_t n, st_error *err)
{
    f->run = h5_alloc_array(n + 1, sizeof *f->run);
    if (!f->run) {
        return st_nomem(err);
    }
    for (size_t i = 0; i < n; i++) {
        if (runs[i].fresh) {
            ST_TRY(st_root_blob(f->w, runs[i].bytes, runs[i].size, 1, &runs[i].header, err));
        }
        f->run[f->nrun++] = (st_root_run){runs[i].first, runs[i].header};
    }
    return n <= ST_RUNS_MAX ? ST_OK
                            : st_fail(err, ST_LIMIT, "%zu text runs; at most %d", n, ST_RUNS_MAX);
}

int st_fold_text(st_fold *f, st_error *err)
{
    const st_textrun *old;
    size_t nold, n;
    text_run *runs;
    int rc, any = 0;
    ST_TRY(st_image_runs(f->gen->image, &old, &nold, err));
    runs = h5_calloc(nold + 1, sizeof *runs);
    if (!runs) {
        return st_nomem(err);
    }
    for (n = 0; n < nold; n++) {
        runs[n] = (text_run){old[n].first, old[n].size, old[n].header, old[n].bytes, 0};
    }
    rc = new_run(f, &runs[n], &any, err);
    n += rc == ST_OK && any;
    rc = rc || !(any || f->optimize) ? rc : merge_runs(f, runs, &n, err);
    rc = rc ? rc : write_runs(f, runs, n, err);
    for (size_t i = 0; i < n; i++) {
        if (runs[i].fresh) {
            vec_free((void *)(uintptr_t)runs[i].bytes);
        }
    }
    h5_free(runs);
    return rc;
}
