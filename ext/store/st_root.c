/*
 * st_root.c - writes chunk indexes, dataset headers, groups and /meta of a new root.
 *
 * META      uuid (32 hex digits), generation, dim, metric, storage, tokenizer,
 *           tokenizer_fingerprint, columns ("name TYPE, ..."), created (ISO 8601), last_sequence,
 *           next_id, and each option by its name, as text.
 *
 * SPDX-License-Identifier: MIT
 */
#include "st_root.h"

#include "st_side.h"

#include <stdio.h>

static int done(int code, const h5_error *h, st_error *err)
{
    return code == H5_OK ? ST_OK : st_from_h5(err, h, "writing the file");
}

void st_root_pipeline(const st_schema *s, const st_options *o, int col, h5_pipeline *out)
{
    const st_phys *p = &s->phys[col];
    memset(out, 0, sizeof *out);
    if (!p->compress || o->compression == ST_COMPRESS_NONE) {
        return;
    }
    // Shuffle brings the bytes of like weight together; text has one byte an element and gains
    // nothing.
    if (p->type.size > 1) {
        out->filter[out->n].id = H5_FILTER_SHUFFLE;
        out->filter[out->n].nvalue = 1;
        out->filter[out->n++].value[0] = p->type.size;
    }
    out->filter[out->n].id = o->compression == ST_COMPRESS_DEFLATE ? H5_FILTER_DEFLATE
                                                                   : H5_FILTER_ZSTD;
    out->filter[out->n].nvalue = 1;
    out->filter[out->n++].value[0] = (uint32_t)o->level;
}

/* 0: of a table that the root does not have. */
static int is_there(const st_root *r, int c)
{
    int side = r->schema->phys[c].side;
    return side < 0 || r->side[side].there;
}

static int write_column(const st_root *r, h5_writer *w, int c, st_error *err)
{
    st_colimg *col = &r->col[c];
    const st_phys *p = &r->schema->phys[c];
    int rank = c == ST_PHYS_EMBEDDING || st_phys_is_plane(c) ? 2 : 1, stored = 0;
    uint64_t dims[2] = {col->n, p->width},
             maxdims[2] = {ST_MAX(col->nchunk, (uint64_t)1) * col->chunk_rows, p->width};
    uint32_t chunk[2] = {col->chunk_rows, p->width};
    h5_dataset_spec d = {.type = p->type,
                         .rank = rank,
                         .dims = dims,
                         .maxdims = maxdims,
                         .chunk = chunk,
                         .addr = H5_UNDEF,
                         .pipeline = &col->pipeline,
                         .fill = p->fill};
    h5_error h = {0};
    for (uint64_t i = 0; i < col->nchunk && !stored; i++) {
        stored = col->chunk[i].addr != H5_UNDEF;
    }
    if (stored) {
        int rc = h5_write_fixed_array(w, col->chunk, col->nchunk, col->pipeline.n > 0,
                                      (uint64_t)col->chunk_rows * p->elem, &d.addr, &h);
        ST_TRY(done(rc, &h, err));
    }
    return done(h5_write_dataset(w, &d, &col->header, &h), &h, err);
}

int st_root_blob(h5_writer *w, const void *p, uint64_t n, uint32_t size, uint64_t *header,
                 st_error *err)
{
    uint64_t dims[1] = {n / size};
    h5_dataset_spec d = {.rank = 1, .dims = dims};
    h5_error h = {0};
    h5_type_number('u', size, &d.type);
    ST_TRY(done(h5_writer_append(w, p, (size_t)n, 64, &d.addr, &h), &h, err));
    return done(h5_write_dataset(w, &d, header, &h), &h, err);
}

static int write_group(h5_writer *w, const h5_link *links, size_t n, const h5_attr_spec *attrs,
                       size_t nattr, uint64_t *at, st_error *err)
{
    h5_error h = {0};
    return done(h5_write_group(w, links, n, attrs, nattr, at, &h), &h, err);
}

/* -------------------------------------------------------------------------------------- /memory */

static int write_memory(const st_root *r, h5_writer *w, uint64_t *at, st_error *err)
{
    const st_schema *s = r->schema;
    h5_link links[ST_PHYS_TEXTS + ST_TEXTS_MAX + ST_SMALLS_MAX];
    size_t n = 0;
    for (int c = 0; c < ST_PHYS_TEXTS; c++) {
        if (!st_phys_is_plane(c)) {
            links[n++] = (h5_link){s->phys[c].path, r->col[c].header};
        }
    }
    for (int c = 0; c < s->ncol; c++) {
        int t = s->text_of[c];
        if (t >= 0) {
            h5_link pair[2] = {{"data", r->col[st_phys_data(t)].header},
                               {"offsets", r->col[st_phys_offsets(t)].header}};
            links[n].name = st_logical_name(s, c);
            ST_TRY(write_group(w, pair, 2, NULL, 0, &links[n].addr, err));
            n++;
        }
    }
    for (int i = 0; i < s->nsmall; i++) {
        links[n++] = (h5_link){s->phys[st_phys_small(s, i)].path,
                               r->col[st_phys_small(s, i)].header};
    }
    return write_group(w, links, n, NULL, 0, at, err);
}

/* --------------------------------------------------------------------------------------- /index */

/* A group whose members are named by a letter and a first row. */
typedef struct named {
    h5_link *links;
    char (*names)[16];
    size_t n;
} named;

static int named_new(named *g, size_t n, st_error *err)
{
    g->n = 0;
    g->links = h5_alloc_array(n + 1, sizeof *g->links);
    g->names = h5_alloc_array(n + 1, sizeof *g->names);
    return g->links && g->names ? ST_OK : st_nomem(err);
}

static void named_add(named *g, char letter, uint64_t first, uint64_t addr)
{
    snprintf(g->names[g->n], sizeof g->names[g->n], "%c%012llu", letter, (unsigned long long)first);
    g->links[g->n].name = g->names[g->n];
    g->links[g->n++].addr = addr;
}

static void named_free(named *g)
{
    h5_free(g->links);
    h5_free(g->names);
}

static int write_text_index(const st_root *r, h5_writer *w, uint64_t *at, st_error *err)
{
    named g;
    int rc = named_new(&g, r->nrun, err);
    for (size_t i = 0; i < r->nrun && !rc; i++) {
        named_add(&g, 'r', r->run[i].first, r->run[i].header);
    }
    rc = rc ? rc : write_group(w, g.links, g.n, NULL, 0, at, err);
    named_free(&g);
    return rc;
}

static int write_vector_index(const st_root *r, h5_writer *w, uint64_t *at, st_error *err)
{
    named g;
    int rc = named_new(&g, r->ntail + 3, err);
    for (int c = ST_PHYS_COARSE; c <= ST_PHYS_FINE && !rc; c++) {
        g.links[g.n++] = (h5_link){r->schema->phys[c].path, r->col[c].header};
    }
    if (!rc && r->lists) {
        g.links[g.n++] = (h5_link){"lists", r->lists};
        for (size_t i = 0; i < r->ntail; i++) {
            named_add(&g, 't', r->tail[i].first, r->tail[i].header);
        }
    }
    rc = rc ? rc : write_group(w, g.links, g.n, NULL, 0, at, err);
    named_free(&g);
    return rc;
}

static int write_runs_table(const st_root_sortrun *run, size_t n, h5_writer *w, uint64_t *header,
                            st_error *err)
{
    uint64_t dims[2] = {n, 3};
    h5_dataset_spec d = {.rank = 2, .dims = dims};
    h5_error h = {0};
    int rc;
    uint8_t *table = h5_alloc_array(n, 24);
    if (!table) {
        return st_nomem(err);
    }
    for (size_t i = 0; i < n; i++) {
        st_put64(table + 24 * i, run[i].first);
        st_put64(table + 24 * i + 8, run[i].count);
        st_put64(table + 24 * i + 16, (uint64_t)run[i].sorted);
    }
    h5_type_number('i', 8, &d.type);
    rc = done(h5_writer_append(w, table, n * 24, 8, &d.addr, &h), &h, err);
    rc = rc ? rc : done(h5_write_dataset(w, &d, header, &h), &h, err);
    h5_free(table);
    return rc;
}

static int write_sorted(const st_root_sortrun *run, size_t n, h5_writer *w, uint64_t *at,
                        st_error *err)
{
    named g;
    int rc, plain = n == 0 || (n == 1 && !run[0].sorted);
    if (plain) {
        return write_group(w, NULL, 0, NULL, 0, at, err);
    }
    rc = named_new(&g, n + 1, err);
    if (!rc) {
        g.links[0].name = "runs";
        rc = write_runs_table(run, n, w, &g.links[0].addr, err);
        g.n = 1;
    }
    for (size_t i = 0; i < n && !rc; i++) {
        if (run[i].sorted) {
            named_add(&g, 'p', run[i].first, run[i].perm_header);
        }
    }
    rc = rc ? rc : write_group(w, g.links, g.n, NULL, 0, at, err);
    named_free(&g);
    return rc;
}

/* Checksums of the touched columns, and the group of all. */
static int write_sums(const st_root *r, h5_writer *w, uint64_t *at, st_error *err)
{
    typedef char sum_name[ST_NAME_MAX + 16];
    int nphys = r->schema->nphys, rc = ST_OK;
    h5_link *links = h5_alloc_array((size_t)nphys, sizeof *links);
    sum_name *names = h5_alloc_array((size_t)nphys, sizeof *names);
    size_t n = 0;
    if (!links || !names) {
        rc = st_nomem(err);
    }
    for (int c = 0; c < nphys && !rc; c++) {
        st_colimg *col = &r->col[c];
        if (!col->nchunk || !is_there(r, c)) {
            continue;
        }
        if (!r->touched || r->touched[c]) {
            rc = st_root_blob(w, col->crc, col->nchunk * 4, 4, &col->sum_header, err);
        }
        st_sum_name(r->schema->phys[c].path, names[n], sizeof names[n]);
        links[n] = (h5_link){names[n], col->sum_header};
        n++;
    }
    rc = rc ? rc : write_group(w, links, n, NULL, 0, at, err);
    h5_free(links);
    h5_free(names);
    return rc;
}

static int write_index(const st_root *r, h5_writer *w, uint64_t *at, st_error *err)
{
    h5_link links[] = {{"vector", 0}, {"text", 0}, {"id", 0}, {"time", 0}, {"checksums", 0}};
    ST_TRY(write_vector_index(r, w, &links[0].addr, err));
    ST_TRY(write_text_index(r, w, &links[1].addr, err));
    for (int i = 0; i < ST_SORTS; i++) {
        ST_TRY(write_sorted(r->sorted[i], r->nsorted[i], w, &links[2 + i].addr, err));
    }
    ST_TRY(write_sums(r, w, &links[4].addr, err));
    return write_group(w, links, sizeof links / sizeof *links, NULL, 0, at, err);
}

/* ---------------------------------------------------------------------------------------- /meta */

enum { META_MAX = 96, OPTION_BUF = 512 };

static h5_attr_spec attr_int(const char *name, int64_t v)
{
    return (h5_attr_spec){.name = name, .kind = 'i', .i = v};
}

static h5_attr_spec attr_text(const char *name, const char *v)
{
    return (h5_attr_spec){.name = name, .kind = 's', .s = v};
}

static int write_meta_attrs(const st_root *r, h5_writer *w, const char *columns,
                            char (*values)[OPTION_BUF], uint64_t *at, st_error *err)
{
    char uuid[33];
    h5_attr_spec a[META_MAX];
    size_t n = 0;
    const char *name;
    for (int i = 0; i < 16; i++) {
        snprintf(uuid + 2 * i, 3, "%02x", r->uuid[i]);
    }
    a[n++] = attr_text("uuid", uuid);
    a[n++] = attr_int("generation", (int64_t)r->generation);
    a[n++] = attr_int("dim", r->schema->dim);
    a[n++] = attr_text("metric", st_metric_name(r->schema->metric));
    a[n++] = attr_text("storage", st_storage_name(r->schema->storage));
    a[n++] = attr_text("tokenizer", r->schema->tokenizer);
    a[n++] = attr_text("tokenizer_fingerprint", r->schema->fingerprint);
    a[n++] = attr_text("columns", columns);
    a[n++] = attr_text("created", r->created);
    a[n++] = attr_int("last_sequence", (int64_t)r->last_seq);
    a[n++] = attr_int("next_id", r->next_id);
    for (int i = 0; (name = st_option_name(i)) != NULL && n < META_MAX; i++) {
        if (strcmp(name, "dim") == 0 || strcmp(name, "metric") == 0 ||
            strcmp(name, "storage") == 0 || strcmp(name, "tokenize") == 0 ||
            !st_option_kept(r->options, name)) {
            continue;
        }
        ST_TRY(st_options_get(r->schema, r->options, name, values[i], OPTION_BUF, err));
        a[n++] = attr_text(name, values[i]);
    }
    return write_group(w, NULL, 0, a, n, at, err);
}

static int write_meta(const st_root *r, h5_writer *w, uint64_t *at, st_error *err)
{
    st_buf columns = {0};
    char(*values)[OPTION_BUF] = h5_alloc_array(META_MAX, sizeof *values);
    int rc = values ? st_columns_print(r->schema, &columns, err) : st_nomem(err);
    rc = rc ? rc : write_meta_attrs(r, w, (const char *)columns.p, values, at, err);
    st_buf_free(&columns);
    h5_free(values);
    return rc;
}

/* -------------------------------------------------------------------- tables beside the rows */

static int write_side(const st_root *r, h5_writer *w, int side, uint64_t *at, st_error *err)
{
    const st_side_def *d = &st_side_defs[side];
    const st_schema *s = r->schema;
    h5_link links[ST_SIDE_COLS_MAX + 1];
    h5_attr_spec next = attr_int("next", r->side[side].next);
    size_t n = 0;
    links[n++] = (h5_link){"live", r->col[st_phys_side(s, side)].header};
    for (int c = 0; c < d->ncol; c++) {
        int i = d->col[c].at;
        links[n].name = d->col[c].name;
        if (d->col[c].type == ST_TEXT) {
            h5_link pair[2] = {{"data", r->col[st_phys_side_data(s, side, i)].header},
                               {"offsets", r->col[st_phys_side_offsets(s, side, i)].header}};
            ST_TRY(write_group(w, pair, 2, NULL, 0, &links[n].addr, err));
        } else {
            links[n].addr = r->col[st_phys_side_number(s, side, i)].header;
        }
        n++;
    }
    return write_group(w, links, n, &next, st_side_text_key(side) ? 0 : 1, at, err);
}

int st_root_write(const st_root *r, h5_writer *w, uint64_t *root, st_error *err)
{
    h5_link links[3 + ST_SIDES] = {{"memory", 0}, {"meta", 0}, {"index", 0}};
    size_t n = 3;
    h5_attr_spec attrs[2] = {attr_text("format", "h5mem"),
                             attr_int("format_version", ST_FORMAT_VERSION)};
    for (int c = 0; c < r->schema->nphys; c++) {
        if ((!r->touched || r->touched[c]) && is_there(r, c)) {
            ST_TRY(write_column(r, w, c, err));
        }
    }
    ST_TRY(write_memory(r, w, &links[0].addr, err));
    ST_TRY(write_meta(r, w, &links[1].addr, err));
    ST_TRY(write_index(r, w, &links[2].addr, err));
    for (int side = 0; side < ST_SIDES; side++) {
        if (r->side[side].there) {
            links[n] = (h5_link){st_side_defs[side].name, r->side[side].group};
            ST_TRY(r->side[side].touched ? write_side(r, w, side, &links[n].addr, err) : ST_OK);
            n++;
        }
    }
    return write_group(w, links, n, attrs, 2, root, err);
}
