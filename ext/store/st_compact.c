/*
 * st_compact.c - rewrites the live data into a new file, without what no root reaches.
 *
 * ORDER     1 the log is folded, so that the file holds all that is committed
 *           2 the new file is written beside the old one (NAME.h5-new) and synced
 *           3 the log's header names its inode and superblock; sync
 *           4 rename, sync the folder
 *           5 the header: the new superblock in force, generation + 1
 *           A death before 4 leaves the old file and a stray, one after it a header that the next
 *           writer completes (st_compact_mend). Readers have the old file open and read on; a
 *           statement that finds a new generation opens the path again.
 *
 * ROWS      live rows keep their order and get new positions; ids stay. Row positions are nobody's
 *           business outside this process's views, which hold the old image.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdlib.h>

#include "st_colwrite.h"
#include "st_lists.h"
#include "st_root.h"
#include "st_store.h"

typedef struct compactor {
    st_store *store;
    st_gen *gen;
    st_image *im;
    st_reader r;
    h5_io *io;
    int fd;
    h5_writer *w;
    const uint64_t *live;
    uint64_t nlive;
    uint32_t *row; /* old position of each new one */
    st_colimg *col;
    int side;        /* the table at hand, -1 for the rows; row and nlive are its */
    int text, at;    /* and its column */
    uint64_t offset; /* of the text at hand */
    uint8_t scratch[8];
    st_root_sortrun sorted[ST_SORTS];
    st_root_run run;
    size_t nrun;
    uint64_t lists;
    st_root_run tail;
    size_t ntail;
    st_root_side sides[ST_SIDES];
    char *tmp;
} compactor;

/* -------------------------------------------------------------------------------------- columns */

static int piece_fixed(void *ctx, uint64_t i, const uint8_t **p, uint64_t *n, st_error *err)
{
    compactor *k = ctx;
    uint64_t run;
    *n = 1;
    return st_read_at(&k->r, k->at, k->row[i], p, &run, err);
}

static int read_stored(compactor *k, uint64_t i, const uint8_t **p, size_t *n, st_error *err)
{
    return k->side < 0 ? st_read_stored(&k->r, k->text, k->row[i], p, n, err)
                       : st_read_side_stored(&k->r, k->side, k->text, k->row[i], p, n, err);
}

static int piece_data(void *ctx, uint64_t i, const uint8_t **p, uint64_t *n, st_error *err)
{
    compactor *k = ctx;
    size_t bytes;
    ST_TRY(read_stored(k, i, p, &bytes, err));
    *n = bytes;
    return ST_OK;
}

static int piece_offset(void *ctx, uint64_t i, const uint8_t **p, uint64_t *n, st_error *err)
{
    compactor *k = ctx;
    const uint8_t *data;
    size_t bytes;
    if (i) {
        ST_TRY(read_stored(k, i - 1, &data, &bytes, err));
        k->offset += bytes;
    }
    st_put64(k->scratch, k->offset);
    *p = k->scratch;
    *n = 1;
    return ST_OK;
}

static int write_column(compactor *k, int c, st_colwrite *a, st_error *err)
{
    const st_phys *p = &k->im->schema->phys[c];
    st_colimg empty = {.chunk_rows = a->nnew > p->switch_at ? p->chunk_large : p->chunk_small,
                       .pipeline = k->im->col[c].pipeline};
    a->schema = k->im->schema;
    a->reader = &k->r;
    a->old = &empty;
    a->w = k->w;
    a->io = k->io;
    a->col = c;
    a->ctx = k;
    k->at = c;
    return st_col_write(a, &k->col[c], err);
}

/* data: the physical column of its bytes. */
static int write_text(compactor *k, int text, int col, st_error *err)
{
    st_colwrite data = {.npiece = k->nlive, .piece = piece_data};
    st_colwrite offsets = {.nnew = k->nlive + 1, .npiece = k->nlive + 1, .piece = piece_offset};
    k->text = text;
    k->offset = 0;
    for (uint64_t i = 0; i < k->nlive; i++) {
        const uint8_t *p;
        size_t n;
        ST_TRY(read_stored(k, i, &p, &n, err));
        data.nnew += n;
    }
    ST_TRY(write_column(k, col, &data, err));
    return write_column(k, col + 1, &offsets, err);
}

static int write_columns(compactor *k, st_error *err)
{
    const st_schema *s = k->im->schema;
    for (int c = 0; c < s->nmemory; c++) {
        st_colwrite a = {.nnew = k->nlive, .npiece = k->nlive, .piece = piece_fixed};
        if (c < ST_PHYS_TEXTS || c >= st_phys_small(s, 0)) {
            ST_TRY(write_column(k, c, &a, err));
        }
    }
    for (int t = 0; t < s->ntext; t++) {
        ST_TRY(write_text(k, t, st_phys_data(t), err));
    }
    return ST_OK;
}

/* The live records of a table beside the rows. */
typedef struct numbered {
    int64_t key;
    uint32_t row;
} numbered;

static int by_key(const void *a, const void *b)
{
    const numbered *x = a, *y = b;
    return x->key < y->key ? -1 : x->key > y->key;
}

/* Records whose keys are numbers lie in their order again, so that a search by them halves. */
static int sort_records(compactor *k, int side, st_error *err)
{
    numbered *list = h5_alloc_array((size_t)k->nlive + 1, sizeof *list);
    int rc = list ? ST_OK : st_nomem(err);
    for (uint64_t i = 0; i < k->nlive && !rc; i++) {
        st_value v;
        rc = st_read_side_value(&k->r, side, k->row[i], 0, &v, err);
        list[i] = (numbered){v.i, k->row[i]};
    }
    if (!rc) {
        qsort(list, (size_t)k->nlive, sizeof *list, by_key);
    }
    for (uint64_t i = 0; i < k->nlive && !rc; i++) {
        k->row[i] = list[i].row;
    }
    h5_free(list);
    return rc;
}

static int list_records(compactor *k, int side, st_error *err)
{
    uint64_t n = k->im->side[side].n, run;
    k->row = h5_alloc_array((size_t)n + 1, sizeof *k->row);
    k->nlive = 0;
    if (!k->row) {
        return st_nomem(err);
    }
    for (uint64_t row = 0; row < n; row++) {
        const uint8_t *p;
        ST_TRY(st_read_at(&k->r, st_phys_side(k->im->schema, side), row, &p, &run, err));
        if (*p == ST_LIVE_SHOWS) {
            k->row[k->nlive++] = (uint32_t)row;
        }
    }
    return st_side_text_key(side) ? ST_OK : sort_records(k, side, err);
}

static int side_columns(compactor *k, int side, st_error *err)
{
    const st_schema *s = k->im->schema;
    k->side = side;
    ST_TRY(list_records(k, side, err));
    for (int c = st_phys_side(s, side); c < st_phys_side_data(s, side, 0); c++) {
        st_colwrite a = {.nnew = k->nlive, .npiece = k->nlive, .piece = piece_fixed};
        ST_TRY(write_column(k, c, &a, err));
    }
    for (int t = 0; t < st_side_defs[side].ntext; t++) {
        ST_TRY(write_text(k, t, st_phys_side_data(s, side, t), err));
    }
    return ST_OK;
}

static int write_sides(compactor *k, st_error *err)
{
    uint32_t *row = k->row;
    uint64_t nlive = k->nlive;
    int rc = ST_OK;
    for (int side = 0; side < ST_SIDES && !rc; side++) {
        k->sides[side] = (st_root_side){.there = k->im->side[side].group != H5_UNDEF,
                                        .touched = 1,
                                        .next = k->gen->side[side].next};
        if (k->sides[side].there) {
            rc = side_columns(k, side, err);
            h5_free(k->row);
        }
    }
    k->side = -1;
    k->row = row;
    k->nlive = nlive;
    return rc;
}

/* -------------------------------------------------------------------------------------- indexes */

typedef struct sorting {
    compactor *k;
    int sort;
} sorting;

static int sorting_key(void *ctx, uint64_t i, st_sortkey *out, st_error *err)
{
    const sorting *x = ctx;
    return st_read_sortkey(&x->k->r, x->sort, x->k->row[i], out, err);
}

static int write_sorted(compactor *k, int sort, st_error *err)
{
    st_root_sortrun *run = &k->sorted[sort];
    sorting x = {k, sort};
    uint8_t *perm;
    ST_TRY(st_sort_rows(sorting_key, &x, k->nlive, &perm, err));
    *run = (st_root_sortrun){.count = k->nlive, .sorted = perm != NULL};
    int rc = perm ? st_root_blob(k->w, perm, k->nlive * 4, 4, &run->perm_header, err) : ST_OK;
    h5_free(perm);
    return rc;
}

static int write_words(compactor *k, st_error *err)
{
    const st_textrun *runs;
    size_t n, bytes = 0;
    uint8_t *image = NULL;
    vec_run **open, *made = NULL;
    int rc;
    ST_TRY(st_image_runs(k->im, &runs, &n, err));
    open = h5_alloc_array(n + 1, sizeof *open);
    if (!open) {
        return st_nomem(err);
    }
    for (size_t i = 0; i < n; i++) {
        open[i] = runs[i].run;
    }
    rc = n ? st_from_vec(err, vec_run_compact(open, n, k->live, &image, &bytes), "the text index")
           : ST_OK;
    h5_free(open);
    rc = rc || !n ? rc : st_from_vec(err, vec_run_open(image, bytes, &made), "the text index");
    if (made && vec_run_rows(made)) {
        k->run.first = vec_run_first(made);
        k->nrun = 1;
        rc = st_root_blob(k->w, image, bytes, 1, &k->run.header, err);
    }
    vec_run_close(made);
    vec_free(image);
    return rc;
}

/* ---------------------------------------------------------------------------------------- lists */

typedef struct source {
    compactor *k;
    st_error *err;
} source;

static const float *fetch(void *ctx, uint64_t row, float *norm)
{
    static const float none[1];
    source *s = ctx;
    const float *v = NULL;
    if (st_read_vector(&s->k->r, s->k->row[row], &v, norm, s->err)) {
        return NULL;
    }
    return v ? v : none; // a row without vector has a norm of NaN
}

static int train_lists(compactor *k, int kind, st_error *err)
{
    st_error e = {0, ""};
    source s = {k, &e};
    uint8_t *bytes = NULL;
    size_t n = 0;
    vec_ivf_args a = {.kind = kind,
                      .metric = k->im->schema->metric,
                      .dim = (size_t)k->im->schema->dim,
                      .nrow = k->nlive,
                      .fetch = fetch,
                      .ctx = &s,
                      .threads = __atomic_load_n(&k->store->threads, __ATOMIC_RELAXED)};
    int rc = vec_ivf_build(&a, &bytes, &n);
    if (rc) {
        return e.code ? st_fail(err, e.code, "%s", e.text)
                      : st_from_vec(err, rc, "training the vector index");
    }
    rc = n ? st_root_blob(k->w, bytes, n, 1, &k->lists, err) : ST_OK;
    vec_free(bytes);
    return rc;
}

/* The new position of an old one that is live; UINT64_MAX: it is not. */
static uint64_t new_row(const compactor *k, uint64_t row)
{
    uint64_t lo = 0, hi = k->nlive;
    while (lo < hi) {
        uint64_t mid = lo + (hi - lo) / 2;
        if (k->row[mid] < row) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo < k->nlive && k->row[lo] == row ? lo : UINT64_MAX;
}

static int move_tails(compactor *k, const st_lists *l, st_error *err)
{
    vec_pair *pairs = h5_alloc_array((size_t)l->tail_rows + 1, sizeof *pairs);
    uint8_t *bytes = NULL;
    size_t n = 0, size = 0;
    int rc;
    if (!pairs) {
        return st_nomem(err);
    }
    for (size_t t = 0; t < l->ntail; t++) {
        for (uint64_t i = 0; i < vec_tail_count(l->open[t]); i++) {
            vec_pair p = vec_tail_pair(l->open[t], i);
            uint64_t row = new_row(k, p.row);
            if (row != UINT64_MAX) {
                pairs[n++] = (vec_pair){p.list, (uint32_t)row};
            }
        }
    }
    rc = n ? st_from_vec(err, vec_tail_image(pairs, n, &bytes, &size), "the vector index") : ST_OK;
    if (!rc && n) {
        k->ntail = 1;
        rc = st_root_blob(k->w, bytes, size, 1, &k->tail.header, err);
    }
    vec_free(bytes);
    h5_free(pairs);
    return rc;
}

static int move_lists(compactor *k, const st_lists *l, st_error *err)
{
    uint8_t *bytes = NULL;
    size_t n = 0;
    int rc = st_from_vec(err, vec_ivf_renumber(l->ivf, k->live, &bytes, &n), "the vector index");
    rc = rc ? rc : st_root_blob(k->w, bytes, n, 1, &k->lists, err);
    vec_free(bytes);
    return rc ? rc : move_tails(k, l, err);
}

/* Lists that serve move with their rows; what is damaged, or has too many rows beside it or behind
 * it, is trained anew. */
static int write_lists(compactor *k, st_error *err)
{
    const st_lists *l;
    uint64_t vectors;
    int kind;
    if (k->im->options.index == ST_INDEX_FLAT) {
        return ST_OK;
    }
    ST_TRY(st_image_lists(k->im, &l, err));
    ST_TRY(st_lists_vectors(&k->r, k->live, &vectors, err));
    kind = st_lists_kind(k->im->options.index, vectors);
    if (!kind) {
        return ST_OK;
    }
    if (st_lists_stale(l, l->tail_rows, kind) || vectors < l->info.vectors / 2 ||
        vec_ivf_check(l->ivf) != VEC_OK) {
        return train_lists(k, kind, err);
    }
    return move_lists(k, l, err);
}

/* ----------------------------------------------------------------------------------------- file */

static int list_rows(compactor *k, st_error *err)
{
    uint64_t n = 0;
    ST_TRY(st_image_live(k->im, &k->live, &k->nlive, err));
    k->row = h5_alloc_array((size_t)k->nlive + 1, sizeof *k->row);
    k->col = h5_calloc((size_t)k->im->schema->nphys, sizeof *k->col);
    if (!k->row || !k->col) {
        return st_nomem(err);
    }
    for (uint64_t row = st_bit_next(k->live, k->im->nrow, 0); row < k->im->nrow;
         row = st_bit_next(k->live, k->im->nrow, row + 1)) {
        k->row[n++] = (uint32_t)row;
    }
    return ST_OK;
}

static int write_root(compactor *k, uint8_t sb[H5_SUPERBLOCK_BYTES], st_error *err)
{
    h5_error h = {0};
    uint64_t at = 0;
    st_root r = {.schema = k->im->schema,
                 .options = &k->im->options,
                 .uuid = k->store->uuid,
                 .created = k->im->created,
                 .generation = k->gen->generation + 1,
                 .last_seq = k->gen->last_seq,
                 .next_id = k->gen->next_id,
                 .col = k->col,
                 .sorted = {&k->sorted[ST_SORT_ID], &k->sorted[ST_SORT_TIME]},
                 .nsorted = {k->nlive ? 1 : 0, k->nlive ? 1 : 0},
                 .run = &k->run,
                 .nrun = k->nrun,
                 .lists = k->lists,
                 .tail = &k->tail,
                 .ntail = k->ntail};
    memcpy(r.side, k->sides, sizeof r.side);
    ST_TRY(st_root_write(&r, k->w, &at, err));
    if (h5_writer_flush(k->w, &h) != H5_OK) {
        return st_from_h5(err, &h, "writing the new file");
    }
    h5_superblock_pack(at, h5_writer_eof(k->w), sb);
    if (k->io->write(k->io, 0, sb, H5_SUPERBLOCK_BYTES, &h) != H5_OK ||
        (k->im->options.synchronous != ST_SYNC_OFF && k->io->sync(k->io, &h) != H5_OK)) {
        return st_from_h5(err, &h, "writing the new file");
    }
    return ST_OK;
}

static int write_file(compactor *k, uint8_t sb[H5_SUPERBLOCK_BYTES], st_error *err)
{
    h5_error h = {0};
    ST_TRY(st_reader_open(&k->r, k->im, err));
    ST_TRY(list_rows(k, err));
    k->tmp = st_store_suffix(k->store->path, "-new");
    if (!k->tmp) {
        return st_nomem(err);
    }
    st_unlink(k->tmp); // left by a process that died; the writer lock is ours
    ST_TRY(st_store_open_io(k->tmp, H5_IO_WRITE | H5_IO_CREATE | H5_IO_EXCL, &k->io, &k->fd, err));
    if (h5_writer_new(k->io, H5_SUPERBLOCK_BYTES, &k->w, &h) != H5_OK) {
        return st_from_h5(err, &h, "writing the new file");
    }
    ST_TRY(write_columns(k, err));
    ST_TRY(write_sides(k, err));
    for (int i = 0; i < ST_SORTS; i++) {
        ST_TRY(write_sorted(k, i, err));
    }
    ST_TRY(write_words(k, err));
    ST_TRY(write_lists(k, err));
    return write_root(k, sb, err);
}

static void compactor_free(compactor *k)
{
    h5_writer_free(k->w);
    for (int c = 0; k->col && c < k->im->schema->nphys; c++) {
        h5_free(k->col[c].chunk);
        h5_free(k->col[c].crc);
    }
    h5_free(k->col);
    h5_free(k->row);
    st_reader_close(&k->r);
    if (k->io) {
        k->io->close(k->io);
    }
    h5_free(k->tmp);
    st_gen_unref(k->gen);
}

/* ------------------------------------------------------------------------------- into its place */

/* Says in the header that the renamed file is the store now. */
static int announce(st_store *s, st_log_header *h, st_error *err)
{
    int rc;
    pthread_mutex_lock(&s->lock);
    rc = st_store_follow_path(s, h, err);
    pthread_mutex_unlock(&s->lock);
    ST_TRY(rc);
    memcpy(h->in_force, h->pending, H5_SUPERBLOCK_BYTES);
    memset(h->pending, 0, sizeof h->pending);
    h->ino = h->next_ino;
    h->next_ino = 0;
    h->generation++;
    h->committed_len = ST_LOG_START;
    h->committed_sum = 0;
    h->prepared_len = h->prepared_seq = 0;
    st_log_store(s->page, h);
    s->log->truncate(s->log, ST_LOG_PAGE, NULL);
    return ST_OK;
}

static void call_off(st_store *s, st_log_header *h)
{
    memset(h->pending, 0, sizeof h->pending);
    h->next_ino = 0;
    st_log_store(s->page, h);
}

static int put_in_place(compactor *k, const uint8_t *sb, st_error *err)
{
    st_store *s = k->store;
    int sync = k->im->options.synchronous != ST_SYNC_OFF, rc;
    st_log_header h;
    st_file_id id;
    ST_TRY(st_header(s, &h, err));
    if (st_id_of_fd(k->fd, &id) != ST_OK) {
        return st_fail(err, ST_IO, "the new file has no identity");
    }
    memcpy(h.pending, sb, H5_SUPERBLOCK_BYTES);
    h.next_ino = id.ino;
    st_log_store(s->page, &h);
    rc = sync ? st_store_sync_log(s, err) : ST_OK;
    rc = rc ? rc : st_rename(k->tmp, s->path, err);
    if (rc) {
        call_off(s, &h);
        return rc;
    }
    rc = sync ? st_sync_dir(s->path, err) : ST_OK;
    // The rename has happened, whether or not it is on the disk yet: the header has to follow.
    int announced = announce(s, &h, rc ? NULL : err);
    return rc ? rc : announced;
}

/* The file is the new one by what it begins with: a copy of it has another inode. */
static int begins_pending(st_store *s, const st_log_header *h)
{
    uint8_t sb[H5_SUPERBLOCK_BYTES];
    h5_error e = {0};
    return s->file->io->read(s->file->io, 0, sb, sizeof sb, &e) == H5_OK &&
           memcmp(sb, h->pending, sizeof sb) == 0 && memcmp(sb, h->in_force, sizeof sb) != 0;
}

int st_compact_mend(st_store *s, st_error *err)
{
    st_log_header h;
    st_file_id id;
    char *tmp;
    ST_TRY(st_header(s, &h, err));
    int there = st_id_of_path(s->path, &id) == 1;
    if (there && (id.ino == h.next_ino || begins_pending(s, &h))) {
        h.next_ino = id.ino;
        return announce(s, &h, err);
    }
    tmp = st_store_suffix(s->path, "-new");
    if (!tmp) {
        return st_nomem(err);
    }
    st_unlink(tmp);
    h5_free(tmp);
    call_off(s, &h);
    return ST_OK;
}

int st_compact_locked(st_store *s, uint64_t *saved, st_error *err)
{
    compactor k = {.store = s, .fd = -1, .side = -1};
    uint8_t sb[H5_SUPERBLOCK_BYTES];
    uint64_t rows, before = 0, after = 0;
    h5_error h = {0};
    int rc;
    *saved = 0;
    ST_TRY(st_flush_locked(s, &rows, err));
    ST_TRY(st_snapshot_latest(s, &k.gen, err));
    k.im = k.gen->image;
    s->file->io->size(s->file->io, &before, &h);
    rc = write_file(&k, sb, err);
    if (!rc) {
        after = h5_writer_eof(k.w);
        rc = put_in_place(&k, sb, err);
    }
    if (rc && k.tmp && k.io) {
        st_unlink(k.tmp);
    }
    *saved = rc || after > before ? 0 : before - after;
    compactor_free(&k);
    return rc;
}

int st_compact(st_conn *c, int timeout_ms, uint64_t *saved, st_error *err)
{
    st_store *s = c->store;
    st_log_header h = {.counter = 0};
    int rc;
    *saved = 0;
    if (st_has_changes(c) || c->txn.prepared) {
        return st_fail(
            err, ST_LOCKED,
            "this connection has uncommitted rows in the store; commit or roll back first");
    }
    if (c->readonly) {
        return st_fail(err, ST_READONLY, "the store is open for reading only");
    }
    st_rollback(c);
    if (!s->log) {
        pthread_mutex_lock(&s->lock);
        rc = s->log ? ST_OK : st_store_make_log(s, err);
        pthread_mutex_unlock(&s->lock);
        ST_TRY(rc);
    }
    ST_TRY(st_writer_lock(s, c, timeout_ms, err));
    rc = st_snapshot_mend(s, NULL, NULL, &h, err);
    rc = rc ? rc : st_compact_locked(s, saved, err);
    st_writer_unlock(s, c);
    return rc;
}
