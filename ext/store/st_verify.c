/*
 * st_verify.c - every structure, every checksum, indexes against rows both ways
 *
 * The base is looked at as its image has it, whatever the connection has written; the log frame by
 * frame. A fault is noted and the search goes on, so that one
 * bad chunk does not hide another.
 *
 * CHECKS    log       whole valid frames up to the committed length
 *           chunks    each can be read, and its bytes have the CRC32C of /index/checksums
 *           texts     offsets ascend and end where the data does
 *           values    enumerations and ranges; vectors finite, with the norm and the plane record
 *                     that belong to them
 *           ids       every live row is found by its id, so no two have the same; sorted runs are
 *                     permutations in order
 *           beside    offsets, numbers of keys; every live record is the one that its key finds
 *           words     runs are sound; every live row with tokens is in one run; each run is the
 *                     image that its rows' texts make
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "st_lists.h"
#include "st_store.h"
#include "vec.h"

typedef struct check {
    st_conn *c;
    st_image *im;
    st_reader r;
    const st_verify_host *tok;
    char *buf;
    size_t n, used;
    uint64_t faults;
    const uint64_t *live;
    uint64_t nlive;
} check;

static void note(check *k, const char *fmt, ...) ST_PRINTF(2, 3);
static void note(check *k, const char *fmt, ...)
{
    char line[600];
    va_list ap;
    int n;
    k->faults++;
    va_start(ap, fmt);
    n = vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    n = ST_MIN(n, (int)sizeof line - 1);
    if (n > 0 && k->used + (size_t)n + 2 <= k->n) {
        if (k->used) {
            k->buf[k->used++] = '\n';
        }
        memcpy(k->buf + k->used, line, (size_t)n + 1);
        k->used += (size_t)n;
    }
}

/* A failure to read is a fault of the store, but for want of memory and for a stop. 1: noted, go
 * on. */
static int noted(check *k, int rc, st_error *e, st_error *err)
{
    if (rc == ST_NOMEM || rc == ST_STOPPED) {
        st_fail(err, rc, "%s", e->text);
        return 0;
    }
    note(k, "%s", e->text);
    memset(e, 0, sizeof *e);
    return 1;
}

/* ----------------------------------------------------------------------------------------- log,
 * chunks */

static int check_log(check *k, st_error *err)
{
    st_store *s = k->c->store;
    st_log_header h;
    st_frame f = {0};
    uint64_t seq = 0, noted_before = k->faults;
    int rc;
    if (!s->page) {
        return ST_OK;
    }
    ST_TRY(st_header(s, &h, err));
    if (h.generation != k->c->gen->generation) {
        return ST_OK; // it has moved on since the snapshot was taken
    }
    st_log_reader lr = {
        .log = s->log, .at = ST_LOG_START, .to = h.committed_len, .generation = h.generation};
    while ((rc = st_log_next(&lr, &f, err)) > 0) {
        if (f.sequence <= seq) {
            note(k, "log: frame at %llu has sequence %llu after %llu", (unsigned long long)lr.at,
                 (unsigned long long)f.sequence, (unsigned long long)seq);
        }
        seq = f.sequence;
    }
    // The commit frame is not synced, the header that counts it may be: a power failure can take
    // the frame alone, and the header vouches for the transaction.
    if (rc == 0 && lr.at != h.committed_len &&
        !(f.type == ST_FRAME_PREPARE && lr.at + ST_FRAME_COMMIT_BYTES == h.committed_len &&
          st_frame_commit_sum(h.generation, seq, lr.sum) == h.committed_sum)) {
        note(k, "log: no valid frame at %llu, but %llu bytes are committed",
             (unsigned long long)lr.at, (unsigned long long)h.committed_len);
    }
    st_log_reader_end(&lr);
    if (noted_before != k->faults) {
        // A flush that began meanwhile restarts the log under the reader's hands: then there is
        // nothing to say.
        ST_TRY(st_header(s, &h, err));
        if (h.generation != k->c->gen->generation) {
            k->faults = noted_before;
            k->used = 0;
            k->buf[0] = 0;
        }
    }
    return rc < 0 ? rc : ST_OK;
}

static int check_chunks(check *k, int c, st_error *err)
{
    const st_colimg *col = &k->im->col[c];
    const st_phys *p = &k->im->schema->phys[c];
    for (uint64_t i = 0; i < col->nchunk; i++) {
        st_error e = {0, ""};
        const h5_chunk *ch = &col->chunk[i];
        const uint8_t *at = ch->addr == H5_UNDEF ? NULL : k->im->map + ch->addr;
        uint64_t run;
        uint32_t want = st_get32(col->sum + 4 * i), got = st_chunk_crc(col, p->elem, i, at);
        if (got != want) {
            note(k, "%s: chunk %llu has checksum %08x, noted is %08x", p->path,
                 (unsigned long long)i, got, want);
        }
        if (i * col->chunk_rows < col->n) {
            int rc = st_read_at(&k->r, c, i * col->chunk_rows, &at, &run, &e);
            if (rc && !noted(k, rc, &e, err)) {
                return rc;
            }
        }
    }
    return ST_OK;
}

static int check_columns(check *k, st_error *err)
{
    st_error e = {0, ""};
    int rc = st_image_sums(k->im, &e);
    if (rc) {
        return noted(k, rc, &e, err) ? ST_OK : rc;
    }
    for (int c = 0; c < k->im->schema->nphys; c++) {
        if (k->im->col[c].header != H5_UNDEF) {
            ST_TRY(check_chunks(k, c, err));
        }
    }
    return ST_OK;
}

/* ----------------------------------------------------------------------------------------------
 * values */

/* data: the physical column of the text's bytes. */
static int check_offsets(check *k, int data, uint64_t nrow, st_error *err)
{
    uint64_t before = 0, at = 0;
    const char *path = k->im->schema->phys[data + 1].path;
    for (uint64_t row = 0; row <= nrow; row++) {
        const uint8_t *p;
        uint64_t run;
        ST_TRY(st_read_at(&k->r, data + 1, row, &p, &run, err));
        at = st_get64(p);
        if (at < before || (row == 0 && at)) {
            note(k, "%s: entry %llu is %llu after %llu", path, (unsigned long long)row,
                 (unsigned long long)at, (unsigned long long)before);
            return ST_OK;
        }
        before = at;
    }
    if (at != k->im->col[data].n) {
        note(k, "%s: ends at %llu, the data has %llu bytes", path, (unsigned long long)at,
             (unsigned long long)k->im->col[data].n);
    }
    return ST_OK;
}

static void check_small(check *k, uint64_t row, int small, st_num v)
{
    const st_schema *s = k->im->schema;
    int bad = 0;
    switch (small) {
    case ST_SMALL_SOURCE:
        bad = v.i > 6;
        break;
    case ST_SMALL_TIER:
        bad = v.i > 2;
        break;
    case ST_SMALL_PINNED:
        bad = v.i > 1;
        break;
    case ST_SMALL_IMPORTANCE:
        bad = !(v.r >= 0 && v.r <= 1);
        break;
    case ST_SMALL_ACTIVATION:
        bad = !(v.r >= 0);
        break;
    case ST_SMALL_ACCESS_COUNT:
        bad = v.i < 0;
        break;
    default:
        break;
    }
    if (bad) {
        note(k, "%s: row %llu holds a value that cannot be",
             st_logical_name(s, s->small_col[small]), (unsigned long long)row);
    }
}

static int check_vector(check *k, uint64_t row, uint8_t *record, st_error *err)
{
    size_t dim = (size_t)k->im->schema->dim;
    const float *v;
    const uint8_t *p;
    uint8_t *half[2];
    uint64_t run;
    float norm, want;
    ST_TRY(st_read_vector(&k->r, row, &v, &norm, err));
    if (v) {
        want = vec_norm_f32(v, dim);
        if (!vec_all_finite_f32(v, dim)) {
            note(k, "embedding: row %llu is not finite", (unsigned long long)row);
        } else if (memcmp(&norm, &want, sizeof norm) != 0 && fabsf(norm - want) > 1e-5f * want) {
            note(k, "norm: row %llu has %g, its vector %g", (unsigned long long)row, norm, want);
        }
    }
    half[0] = record + vec_plane_stride(dim);
    half[1] = half[0] + vec_halves_stride(dim);
    vec_plane_encode(v, norm, dim, record);
    vec_halves_split(v, dim, record, half[0], half[1]);
    for (int i = 0; i < 2; i++) {
        const st_phys *phys = &k->im->schema->phys[ST_PHYS_COARSE + i];
        ST_TRY(st_read_at(&k->r, ST_PHYS_COARSE + i, row, &p, &run, err));
        if (memcmp(half[i], p, phys->elem) != 0) {
            note(k, "%s: row %llu does not belong to its vector", phys->path,
                 (unsigned long long)row);
        }
    }
    return ST_OK;
}

static int check_row(check *k, uint64_t row, uint8_t *record, st_error *err)
{
    int64_t id;
    uint64_t found = 0, run;
    const uint8_t *live;
    int rc;
    for (int i = 0; i < k->im->schema->nsmall; i++) {
        st_num v;
        ST_TRY(st_read_small(&k->r, i, row, &v, err));
        check_small(k, row, i, v);
    }
    ST_TRY(check_vector(k, row, record, err));
    ST_TRY(st_read_at(&k->r, ST_PHYS_LIVE, row, &live, &run, err));
    if (*live > ST_LIVE_EVICTED) {
        note(k, "live: row %llu holds %d", (unsigned long long)row, *live);
    }
    ST_TRY(st_read_id(&k->r, row, &id, err));
    if (!st_bit_get(k->live, row)) {
        return ST_OK;
    }
    rc = st_image_find(&k->r, id, &found, err);
    if (rc >= 0 && (!rc || found != row)) {
        note(k, "ids: row %llu has id %lld, which %s", (unsigned long long)row, (long long)id,
             rc ? "another live row has, too" : "the index does not find");
    }
    return rc < 0 ? rc : ST_OK;
}

static int check_rows(check *k, st_error *err)
{
    size_t dim = (size_t)k->im->schema->dim;
    uint8_t *record = h5_malloc(vec_plane_stride(dim) + 2 * vec_halves_stride(dim));
    int rc = record ? ST_OK : st_nomem(err);
    for (int t = 0; t < k->im->schema->ntext && !rc; t++) {
        rc = check_offsets(k, st_phys_data(t), k->im->nrow, err);
    }
    for (uint64_t row = 0; row < k->im->nrow && !rc; row++) {
        st_error e = {0, ""};
        rc = check_row(k, row, record, &e);
        rc = rc && noted(k, rc, &e, err) ? ST_OK : rc;
        if (!rc && (row & 1023) == 0 && k->c->host && k->c->host->stop &&
            k->c->host->stop(k->c->host->ctx)) {
            rc = st_fail(err, ST_STOPPED, "interrupted");
        }
    }
    h5_free(record);
    return rc;
}

/* ----------------------------------------------------------------------------------------------
 * beside the rows */

static int check_record(check *k, int side, uint64_t row, st_error *err)
{
    const st_side_def *d = &st_side_defs[side];
    const uint8_t *live;
    uint64_t run, found = 0;
    st_value v;
    st_key key;
    int rc;
    ST_TRY(st_read_at(&k->r, st_phys_side(k->im->schema, side), row, &live, &run, err));
    if (*live > ST_LIVE_SHOWS) {
        note(k, "%s/live: record %llu holds %d", d->name, (unsigned long long)row, *live);
    }
    for (int c = d->ncol - 1; c >= 0; c--) {
        ST_TRY(st_read_side_value(&k->r, side, row, c, &v, err));
    }
    if (st_key_make(side, &v, &key, NULL) != ST_OK) {
        note(k, "%s: record %llu has no key", d->name, (unsigned long long)row);
        return ST_OK;
    }
    if (v.type == ST_INT && v.i >= k->im->side[side].next) {
        note(k, "%s: record %llu has number %lld, the next is to be %lld", d->name,
             (unsigned long long)row, (long long)v.i, (long long)k->im->side[side].next);
    }
    if (*live != ST_LIVE_SHOWS) {
        return ST_OK;
    }
    rc = st_image_side_find(&k->r, side, &key, &found, err);
    if (rc >= 0 && (!rc || found != row)) {
        note(k, "%s: record %llu has a key that %s", d->name, (unsigned long long)row,
             rc ? "another one has, too" : "is not found");
    }
    return rc < 0 ? rc : ST_OK;
}

static int check_sides(check *k, st_error *err)
{
    for (int side = 0; side < ST_SIDES; side++) {
        const st_sideimg *t = &k->im->side[side];
        st_error e = {0, ""};
        int rc = ST_OK;
        for (int i = 0; i < st_side_defs[side].ntext && t->n && !rc; i++) {
            rc = check_offsets(k, st_phys_side_data(k->im->schema, side, i), t->n, &e);
        }
        for (uint64_t row = 0; row < t->n && !rc; row++) {
            rc = check_record(k, side, row, &e);
            rc = rc && noted(k, rc, &e, err) ? ST_OK : rc;
        }
        if (rc && !noted(k, rc, &e, err)) {
            return rc;
        }
    }
    return ST_OK;
}

static int check_sortrun(check *k, int sort, const st_sortrun *run, st_error *err)
{
    uint64_t *seen = h5_calloc(st_bit_words(run->count) + 1, sizeof *seen);
    const char *name = sort == ST_SORT_ID ? "ids" : "times";
    st_sortkey before = {0, 0}, key;
    if (!seen) {
        return st_nomem(err);
    }
    for (uint64_t i = 0; i < run->count; i++) {
        uint32_t off = run->sorted ? st_get32(run->perm + 4 * i) : (uint32_t)i;
        if (off >= run->count || st_bit_get(seen, off)) {
            note(k, "%s: run %llu is no permutation at %llu", name, (unsigned long long)run->first,
                 (unsigned long long)i);
            break;
        }
        st_bit_set(seen, off);
        int rc = st_read_sortkey(&k->r, sort, run->first + off, &key, err);
        if (rc) {
            h5_free(seen);
            return rc;
        }
        int order = i ? st_sortkey_compare(&before, &key) : -1;
        if (order > 0 || (!run->sorted && order == 0)) {
            note(k, "%s: run %llu is out of order at %llu", name, (unsigned long long)run->first,
                 (unsigned long long)i);
            break;
        }
        before = key;
    }
    h5_free(seen);
    return ST_OK;
}

/* ----------------------------------------------------------------------------------------------
 * - words */

/* Adds the tokens of a row's texts; *any says whether there were some. */
static int add_tokens(check *k, vec_text *t, uint64_t row, int *any, st_error *err)
{
    static const int texts[3] = {ST_TEXT_CONTENT, ST_TEXT_TAGS, ST_TEXT_SESSION};
    st_value text[3] = {{0}};
    const uint8_t *p, *stream = NULL;
    size_t nstream = 0;
    for (int i = 0; i < 3; i++) {
        ST_TRY(st_read_text(&k->r, texts[i], row, &p, &text[i].n, err));
        text[i].type = p ? ST_TEXT : ST_NULL;
        text[i].p = p;
    }
    ST_TRY(k->tok->tokens(k->tok->ctx, text, &stream, &nstream, err));
    *any = nstream > 0;
    return nstream && t ? st_from_vec(err, vec_text_add(t, row, stream, nstream), "tokens") : ST_OK;
}

/* Is the run the image that its rows' texts make? Its rows are marked in covered. */
static int rebuild_run(check *k, const st_textrun *run, uint64_t *covered, st_error *err)
{
    vec_text *t = NULL;
    uint8_t *image = NULL;
    size_t n = 0;
    int any, rc = st_from_vec(err, vec_text_new(&t), "tokens");
    for (uint64_t i = 0; i < run->rows && !rc; i++) {
        uint64_t row;
        rc = st_from_vec(err, vec_run_row(run->run, i, &row), "/index/text");
        if (!rc && row >= k->im->nrow) {
            rc = st_fail(err, ST_CORRUPT, "/index/text: row %llu is not there",
                         (unsigned long long)row);
        }
        if (!rc) {
            st_bit_set(covered, row);
            rc = add_tokens(k, t, row, &any, err);
        }
    }
    rc = rc ? rc : st_from_vec(err, vec_text_image(t, &image, &n), "tokens");
    if (!rc && (n != run->size || memcmp(image, run->bytes, n) != 0)) {
        note(k, "text: run %llu is not what its rows' texts make", (unsigned long long)run->first);
    }
    vec_text_free(t);
    vec_free(image);
    return rc;
}

static int check_covered(check *k, const uint64_t *covered, st_error *err)
{
    for (uint64_t row = st_bit_next(k->live, k->im->nrow, 0); row < k->im->nrow;
         row = st_bit_next(k->live, k->im->nrow, row + 1)) {
        int any = 0;
        if (st_bit_get(covered, row)) {
            continue;
        }
        ST_TRY(add_tokens(k, NULL, row, &any, err));
        if (any) {
            note(k, "text: row %llu has words and is in no run", (unsigned long long)row);
        }
    }
    return ST_OK;
}

static int check_text(check *k, st_error *err)
{
    const st_textrun *runs;
    size_t n;
    uint64_t *covered;
    st_error e = {0, ""};
    int rc = st_image_runs(k->im, &runs, &n, &e);
    if (rc) {
        return noted(k, rc, &e, err) ? ST_OK : rc;
    }
    covered = h5_calloc(st_bit_words(k->im->nrow) + 1, sizeof *covered);
    rc = covered ? ST_OK : st_nomem(err);
    for (size_t i = 0; i < n && !rc; i++) {
        int checked = vec_run_check(runs[i].run);
        if (checked == VEC_NOMEM) {
            rc = st_nomem(err);
        } else if (checked != VEC_OK) {
            note(k, "text: run %llu is damaged", (unsigned long long)runs[i].first);
        } else if (k->tok) {
            rc = rebuild_run(k, &runs[i], covered, &e);
            rc = rc && noted(k, rc, &e, err) ? ST_OK : rc;
        }
    }
    if (!rc && k->tok && !k->faults) {
        rc = check_covered(k, covered, err);
    }
    h5_free(covered);
    return rc;
}

/* ----------------------------------------------------------------------------------------------
 * --- all */

static void mark_row(check *k, uint64_t *seen, uint64_t row, const char *where)
{
    if (row >= k->im->nrow || st_bit_get(seen, row)) {
        note(k, "vectors: row %llu in %s %s", (unsigned long long)row, where,
             row < k->im->nrow ? "is listed twice" : "is not there");
    } else {
        st_bit_set(seen, row);
    }
}

static int check_listed(check *k, const uint64_t *seen, st_error *err)
{
    for (uint64_t row = st_bit_next(k->live, k->im->nrow, 0); row < k->im->nrow;
         row = st_bit_next(k->live, k->im->nrow, row + 1)) {
        const float *v;
        float norm;
        ST_TRY(st_read_vector(&k->r, row, &v, &norm, err));
        if (v && !st_bit_get(seen, row)) {
            note(k, "vectors: row %llu is in no list", (unsigned long long)row);
        }
    }
    return ST_OK;
}

static int check_lists(check *k, st_error *err)
{
    const st_lists *l;
    uint64_t *seen;
    int rc = ST_OK;
    ST_TRY(st_image_lists(k->im, &l, err));
    if (l->state != ST_LISTS_GOOD) {
        if (l->state == ST_LISTS_DAMAGED) {
            note(k, "vectors: %s; searches are exact", l->why);
        }
        return ST_OK;
    }
    if (vec_ivf_check(l->ivf) != VEC_OK) {
        note(k, "vectors: the lists are damaged");
        return ST_OK;
    }
    seen = h5_calloc(st_bit_words(k->im->nrow) + 1, sizeof *seen);
    if (!seen) {
        return st_nomem(err);
    }
    for (uint64_t i = 0; i < vec_ivf_places(l->ivf); i++) {
        uint32_t row = vec_ivf_row(l->ivf, i);
        if (row != UINT32_MAX) {
            mark_row(k, seen, row, "the lists");
        }
    }
    for (size_t t = 0; t < l->ntail; t++) {
        if (vec_tail_check(l->open[t], l->info.lists) != VEC_OK) {
            note(k, "vectors: tail %llu is damaged", (unsigned long long)l->tail[t].first);
        }
        for (uint64_t i = 0; i < vec_tail_count(l->open[t]); i++) {
            mark_row(k, seen, vec_tail_pair(l->open[t], i).row, "a tail");
        }
    }
    rc = check_listed(k, seen, err);
    h5_free(seen);
    return rc;
}

static int check_all(check *k, st_error *err)
{
    st_error e = {0, ""};
    int rc;
    ST_TRY(check_log(k, err));
    ST_TRY(check_columns(k, err));
    rc = st_image_live(k->im, &k->live, &k->nlive, &e);
    if (rc) {
        return noted(k, rc, &e, err) ? ST_OK : rc;
    }
    rc = check_rows(k, &e);
    if (rc && !noted(k, rc, &e, err)) {
        return rc;
    }
    for (int s = 0; s < ST_SORTS; s++) {
        for (size_t i = 0; i < k->im->sorted[s].n; i++) {
            ST_TRY(check_sortrun(k, s, &k->im->sorted[s].run[i], err));
        }
    }
    ST_TRY(check_sides(k, err));
    ST_TRY(check_lists(k, err));
    return check_text(k, err);
}

int st_verify(st_conn *c, const st_verify_host *tok, char *buf, size_t n, uint64_t *faults,
              st_error *err)
{
    check k = {.c = c, .tok = tok, .buf = buf, .n = n};
    st_view *v;
    int rc;
    *faults = 0;
    if (n) {
        buf[0] = 0;
    }
    ST_TRY(st_view_open(c, &v, err));
    k.im = c->gen->image;
    rc = st_reader_open(&k.r, k.im, err);
    if (!rc) {
        rc = check_all(&k, err);
        st_reader_close(&k.r);
    }
    *faults = k.faults;
    st_view_close(v);
    return rc;
}
