/*
 * st_image.c - opening a root: meta attributes, columns, indexes. Layout in st_image.h.
 *
 * Nothing in the file is trusted: every number of rows is checked against the id column, which is
 * stored for every row, and that against the file's size.
 *
 * SPDX-License-Identifier: MIT
 */
#include "st_lists.h"
#include "st_root.h"
#include "st_turns.h"

#include <stdio.h>

/* ----------------------------------------------------------------------------------------- meta */

static int meta_int(const h5_object *o, const char *name, int64_t *out, st_error *err)
{
    h5_error h = {0};
    return h5_attr_int(o, name, out, &h) == H5_OK ? ST_OK : st_from_h5(err, &h, "/meta");
}

static int meta_text(const h5_object *o, const char *name, char **out, st_error *err)
{
    h5_error h = {0};
    return h5_attr_text(o, name, out, &h) == H5_OK ? ST_OK : st_from_h5(err, &h, "/meta");
}

static int hex_digit(int c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int meta_uuid(const h5_object *o, uint8_t uuid[16], st_error *err)
{
    char *text;
    int rc = meta_text(o, "uuid", &text, err), bad = 0;
    if (rc != ST_OK) {
        return rc;
    }
    bad = strlen(text) != 32;
    for (int i = 0; i < 16 && !bad; i++) {
        int hi = hex_digit(text[2 * i]), lo = hex_digit(text[2 * i + 1]);
        bad = hi < 0 || lo < 0;
        uuid[i] = (uint8_t)(hi << 4 | lo);
    }
    h5_free(text);
    return bad ? st_fail(err, ST_CORRUPT, "/meta: uuid is no uuid") : ST_OK;
}

/* Is this HDF5 file one of ours? */
static int check_root(h5_file *f, st_error *err)
{
    h5_object *root = NULL;
    h5_error h = {0};
    char *format = NULL;
    int64_t version = 0;
    int rc = ST_OK;
    if (h5_object_open(f, h5_file_root(f), &root, &h) != H5_OK) {
        return h.code == H5_UNSUPPORTED || h.code == H5_NOTFOUND
                   ? st_fail(err, ST_NOT_A_STORE, "an HDF5 file, but no h5mem store (%s)", h.text)
                   : st_from_h5(err, &h, "the root group");
    }
    rc = h5_attr_text(root, "format", &format, &h);
    rc = rc ? rc : h5_attr_int(root, "format_version", &version, &h);
    if (rc == H5_NOMEM || rc == H5_IO) {
        rc = st_from_h5(err, &h, "the root group");
    } else if (!format || strcmp(format, "h5mem") != 0) {
        int claw = h5_object_link(root, "meta") && h5_object_link(root, "memory") &&
                   h5_object_link(root, "knowledge_graph");
        rc = st_fail(
            err, ST_NOT_A_STORE,
            "an HDF5 file, but no h5mem store: its root has no attribute format = 'h5mem'%s",
            claw ? "; it looks like a clawhdf5 store: make a table over a new file and "
                   "read this one with h5mem_import(table, path, 'clawhdf5')"
                 : "");
    } else if (rc != H5_OK || version != ST_FORMAT_VERSION) {
        rc = st_fail(err, ST_UNSUPPORTED, "format version %lld; this library reads version %d",
                     (long long)version, ST_FORMAT_VERSION);
    }
    h5_free(format);
    h5_object_close(root);
    return rc;
}

static int open_at(h5_io *io, const uint8_t *superblock, h5_file **f, st_error *err)
{
    h5_error h = {0};
    if (h5_file_open_at(io, superblock, f, &h) != H5_OK) {
        return st_from_h5(err, &h, "the superblock");
    }
    return ST_OK;
}

static int find_object(h5_file *f, const char *path, h5_object **o, st_error *err)
{
    h5_error h = {0};
    if (h5_object_find(f, path, o, &h) != H5_OK) {
        return h.code == H5_NOTFOUND ? st_fail(err, ST_CORRUPT, "%s is missing", path)
                                     : st_from_h5(err, &h, path);
    }
    return ST_OK;
}

int st_image_group(st_image *im, const char *path, h5_file **f, h5_object **group, st_error *err)
{
    uint8_t sb[H5_SUPERBLOCK_BYTES];
    int rc;
    *group = NULL;
    h5_superblock_pack(im->root, im->eof, sb);
    rc = open_at(im->file->io, sb, f, err);
    if (rc) {
        *f = NULL;
        return rc;
    }
    return find_object(*f, path, group, err);
}

static int schema_from_meta(const h5_object *meta, st_schema **out, st_error *err)
{
    char *metric = NULL, *storage = NULL, *tokenizer = NULL, *fingerprint = NULL, *columns = NULL;
    st_column *user = h5_alloc_array(ST_USER_COLUMNS_MAX, sizeof *user);
    size_t nuser = 0;
    int64_t dim;
    int m, kept = VEC_F32, rc = user ? meta_int(meta, "dim", &dim, err) : st_nomem(err);
    rc = rc ? rc : meta_text(meta, "metric", &metric, err);
    rc = rc ? rc : meta_text(meta, "storage", &storage, err);
    rc = rc ? rc : meta_text(meta, "tokenizer", &tokenizer, err);
    rc = rc ? rc : meta_text(meta, "tokenizer_fingerprint", &fingerprint, err);
    rc = rc ? rc : meta_text(meta, "columns", &columns, err);
    rc = rc ? rc : st_metric_parse(metric, &m, err);
    rc = rc ? rc : st_storage_parse(storage, &kept, err);
    rc = rc ? rc : st_columns_parse(columns, user, &nuser, err);
    rc = rc ? rc : st_schema_make(dim, m, kept, user, nuser, tokenizer, fingerprint, out, err);
    h5_free(metric);
    h5_free(storage);
    h5_free(tokenizer);
    h5_free(fingerprint);
    h5_free(columns);
    h5_free(user);
    return rc;
}

int st_image_schema(h5_io *io, const uint8_t superblock[H5_SUPERBLOCK_BYTES], uint8_t uuid[16],
                    st_schema **out, st_error *err)
{
    h5_file *f = NULL;
    h5_object *meta = NULL;
    int rc;
    *out = NULL;
    ST_TRY(open_at(io, superblock, &f, err));
    rc = check_root(f, err);
    rc = rc ? rc : find_object(f, "/meta", &meta, err);
    rc = rc ? rc : meta_uuid(meta, uuid, err);
    rc = rc ? rc : schema_from_meta(meta, out, err);
    h5_object_close(meta);
    h5_file_close(f);
    return rc;
}

int st_image_uuid(h5_io *io, const uint8_t superblock[H5_SUPERBLOCK_BYTES], uint8_t uuid[16],
                  st_error *err)
{
    h5_file *f = NULL;
    h5_object *meta = NULL;
    int rc;
    ST_TRY(open_at(io, superblock, &f, err));
    rc = check_root(f, err);
    rc = rc ? rc : find_object(f, "/meta", &meta, err);
    rc = rc ? rc : meta_uuid(meta, uuid, err);
    h5_object_close(meta);
    h5_file_close(f);
    return rc;
}

static int read_options(const h5_object *meta, st_options *o, st_error *err)
{
    const char *name;
    st_options_default(o);
    for (int i = 0; (name = st_option_name(i)) != NULL; i++) {
        char *text = NULL;
        h5_error h = {0};
        if (strcmp(name, "dim") == 0 || strcmp(name, "metric") == 0 ||
            strcmp(name, "tokenize") == 0 || strcmp(name, "storage") == 0 ||
            !h5_object_attr(meta, name)) {
            continue;
        }
        if (h5_attr_text(meta, name, &text, &h) != H5_OK) {
            return st_from_h5(err, &h, "/meta");
        }
        int rc = st_options_set(o, name, text, 1, err);
        h5_free(text);
        ST_TRY(rc);
    }
    return ST_OK;
}

static int read_meta(st_image *im, h5_file *f, const uint8_t uuid[16], st_error *err)
{
    h5_object *meta = NULL;
    uint8_t found[16];
    char *created = NULL;
    int64_t generation = 0, seq = 0;
    int rc = find_object(f, "/meta", &meta, err);
    rc = rc ? rc : meta_uuid(meta, found, err);
    if (!rc && memcmp(found, uuid, 16) != 0) {
        rc = st_fail(err, ST_CORRUPT,
                     "the file is another store than the log beside it belongs to");
    }
    rc = rc ? rc : meta_int(meta, "generation", &generation, err);
    rc = rc ? rc : meta_int(meta, "last_sequence", &seq, err);
    rc = rc ? rc : meta_int(meta, "next_id", &im->next_id, err);
    rc = rc ? rc : meta_text(meta, "created", &created, err);
    rc = rc ? rc : read_options(meta, &im->options, err);
    if (!rc) {
        snprintf(im->created, sizeof im->created, "%s", created);
    }
    im->generation = (uint64_t)generation;
    im->last_seq = (uint64_t)seq;
    h5_free(created);
    h5_object_close(meta);
    return rc;
}

/* -------------------------------------------------------------------------------------- columns */

static int wrong_column(const st_image *im, int c, const char *what, st_error *err)
{
    char where[2 * ST_NAME_MAX];
    return st_fail(err, ST_CORRUPT, "%s: %s", st_phys_where(im->schema, c, where, sizeof where),
                   what);
}

static int check_column(const st_image *im, int c, const h5_dataset_info *d, st_error *err)
{
    const st_phys *p = &im->schema->phys[c];
    int rank = p->width > 1 ? 2 : 1;
    uint64_t bytes;
    if (!d || d->layout != H5_LAYOUT_CHUNKED) {
        return wrong_column(im, c, "no chunked dataset", err);
    }
    if (d->type.cls != p->type.cls || d->type.size != p->type.size ||
        d->type.is_signed != p->type.is_signed || d->type.big_endian) {
        return wrong_column(im, c, "another type than the column has", err);
    }
    // A width of 1 is a 1-D dataset but for dim = 1, where /memory/embedding stays [n, 1].
    if (c == ST_PHYS_EMBEDDING || st_phys_is_plane(c)) {
        rank = 2;
    }
    if (d->rank != rank || (rank == 2 && (d->dims[1] != p->width || d->chunk[1] != p->width))) {
        return wrong_column(im, c, "another shape than the column has", err);
    }
    bytes = (uint64_t)d->chunk[0] * p->elem;
    if (!d->chunk[0] || bytes > ST_CHUNK_BYTES_MAX) {
        return wrong_column(im, c, "chunks larger than this library reads", err);
    }
    return ST_OK;
}

static int open_column(st_image *im, h5_file *f, const h5_object *group, const char *name, int c,
                       st_error *err)
{
    st_colimg *col = &im->col[c];
    const st_phys *p = &im->schema->phys[c];
    const h5_link *link = h5_object_link(group, name);
    h5_object *o = NULL;
    const h5_dataset_info *d;
    h5_error h = {0};
    size_t n = 0;
    int rc;
    if (!link) {
        return wrong_column(im, c, "missing", err);
    }
    if (h5_object_open(f, link->addr, &o, &h) != H5_OK) {
        return st_from_h5(err, &h, p->path);
    }
    d = h5_object_dataset(o);
    rc = check_column(im, c, d, err);
    if (!rc) {
        col->header = link->addr;
        col->n = d->dims[0];
        col->chunk_rows = d->chunk[0];
        col->pipeline = d->pipeline;
        if (h5_dataset_chunks(f, o, &col->chunk, &n, &h) != H5_OK) {
            rc = st_from_h5(err, &h, p->path);
        }
        col->nchunk = n;
    }
    if (!rc && (col->n > (uint64_t)col->nchunk * col->chunk_rows)) {
        rc = wrong_column(im, c, "fewer chunks than rows", err);
    }
    for (size_t i = 0; i < n && !rc; i++) {
        const h5_chunk *k = &col->chunk[i];
        if (k->addr != H5_UNDEF && (k->addr > im->map_n || k->size > im->map_n - k->addr)) {
            rc = wrong_column(im, c, "a chunk outside the file", err);
        } else if (k->addr != H5_UNDEF && !col->pipeline.n &&
                   k->size != col->chunk_rows * p->elem) {
            rc = wrong_column(im, c, "a chunk of another size", err);
        }
    }
    h5_object_close(o);
    return rc;
}

int st_image_fill(st_image *im, int c, st_error *err)
{
    st_colimg *col = &im->col[c];
    const st_phys *p = &im->schema->phys[c];
    int missing = 0;
    for (uint64_t i = 0; i < col->nchunk && !missing; i++) {
        missing = col->chunk[i].addr == H5_UNDEF;
    }
    if (missing) {
        size_t bytes = col->chunk_rows * p->elem;
        col->fill = h5_malloc(bytes);
        if (!col->fill) {
            return st_nomem(err);
        }
        for (size_t i = 0; i < bytes; i += p->type.size) {
            memcpy(col->fill + i, p->fill, p->type.size);
        }
    }
    return ST_OK;
}

int st_image_column(st_image *im, h5_file *f, const h5_object *group, const char *name, int c,
                    st_error *err)
{
    ST_TRY(open_column(im, f, group, name, c, err));
    return st_image_fill(im, c, err);
}

/* Offsets have their first entry, a 0, which is also what nothing stored reads as. */
int st_column_empty(const st_schema *s, const st_options *o, int c, st_colimg *out, st_error *err)
{
    memset(out, 0, sizeof *out);
    out->n = (uint64_t)s->phys[c].extra;
    out->chunk_rows = s->phys[c].chunk_small;
    out->header = H5_UNDEF;
    st_root_pipeline(s, o, c, &out->pipeline);
    if (out->n) {
        out->chunk = h5_malloc(sizeof *out->chunk);
        if (!out->chunk) {
            return st_nomem(err);
        }
        out->nchunk = 1;
        *out->chunk = (h5_chunk){H5_UNDEF, 0, 0};
    }
    return ST_OK;
}

/* A column's group and name: "content/data" lies in the group content. */
static int open_one(st_image *im, h5_file *f, const h5_object *memory, const h5_object *vector,
                    int c, st_error *err)
{
    const char *path = im->schema->phys[c].path, *slash = strchr(path, '/');
    char name[ST_NAME_MAX];
    const h5_link *link;
    h5_object *sub = NULL;
    h5_error h = {0};
    int rc;
    if (st_phys_is_plane(c)) {
        return st_image_column(im, f, vector, path, c, err);
    }
    if (!slash) {
        return st_image_column(im, f, memory, path, c, err);
    }
    snprintf(name, sizeof name, "%.*s", (int)(slash - path), path);
    link = h5_object_link(memory, name);
    if (!link) {
        return wrong_column(im, c, "missing", err);
    }
    if (h5_object_open(f, link->addr, &sub, &h) != H5_OK) {
        return st_from_h5(err, &h, path);
    }
    rc = st_image_column(im, f, sub, slash + 1, c, err);
    h5_object_close(sub);
    return rc;
}

static int check_rows(st_image *im, st_error *err)
{
    im->nrow = im->col[ST_PHYS_ID].n;
    if (im->nrow > ST_ROWS_MAX || im->nrow > im->map_n / 8 || im->col[ST_PHYS_ID].fill) {
        return wrong_column(im, ST_PHYS_ID, "more rows than the file can hold", err);
    }
    for (int c = 0; c < im->schema->nmemory; c++) {
        int text = c >= ST_PHYS_TEXTS && c < st_phys_small(im->schema, 0);
        int data = text && ((c - ST_PHYS_TEXTS) & 1) == 0;
        if (!data && im->col[c].n != im->nrow + (uint64_t)im->schema->phys[c].extra) {
            return wrong_column(im, c, "another number of rows than /memory/id", err);
        }
    }
    return ST_OK;
}

static int open_columns(st_image *im, h5_file *f, st_error *err)
{
    h5_object *memory = NULL, *vector = NULL;
    int rc = find_object(f, "/memory", &memory, err);
    rc = rc ? rc : find_object(f, "/index/vector", &vector, err);
    im->col = rc ? NULL : h5_calloc((size_t)im->schema->nphys, sizeof *im->col);
    if (!rc && !im->col) {
        rc = st_nomem(err);
    }
    for (int c = 0; c < im->schema->nmemory && !rc; c++) {
        rc = open_one(im, f, memory, vector, c, err);
    }
    h5_object_close(memory);
    h5_object_close(vector);
    return rc ? rc : check_rows(im, err);
}

/* -------------------------------------------------------------------------------------- id runs */

/* A contiguous dataset's bytes in the mapping. */
int st_image_dataset(st_image *im, h5_file *f, uint64_t addr, char kind, uint32_t size,
                     const uint8_t **p, uint64_t *bytes, st_error *err)
{
    h5_object *o = NULL;
    h5_error h = {0};
    h5_type want;
    const h5_dataset_info *d;
    int rc = ST_OK;
    h5_type_number(kind, size, &want);
    if (h5_object_open(f, addr, &o, &h) != H5_OK) {
        return st_from_h5(err, &h, "an index");
    }
    d = h5_object_dataset(o);
    if (!d || d->layout != H5_LAYOUT_CONTIGUOUS || d->type.cls != want.cls ||
        d->type.size != size || d->addr == H5_UNDEF || d->addr > im->map_n ||
        d->size > im->map_n - d->addr) {
        rc = st_fail(err, ST_CORRUPT, "an index is no plain dataset inside the file");
    } else {
        *p = im->map + d->addr;
        *bytes = d->size;
    }
    h5_object_close(o);
    return rc;
}

const char *st_sort_name(int sort)
{
    return sort == ST_SORT_ID ? "/index/id" : "/index/time";
}

static int open_perm(st_image *im, h5_file *f, const h5_object *group, int sort, st_sortrun *r,
                     st_error *err)
{
    char name[32];
    const h5_link *link;
    uint64_t bytes;
    snprintf(name, sizeof name, "p%012llu", (unsigned long long)r->first);
    link = h5_object_link(group, name);
    if (!link) {
        return st_fail(err, ST_CORRUPT, "%s/%s is missing", st_sort_name(sort), name);
    }
    r->perm_header = link->addr;
    ST_TRY(st_image_dataset(im, f, link->addr, 'u', 4, &r->perm, &bytes, err));
    return bytes == r->count * 4 ? ST_OK
                                 : st_fail(err, ST_CORRUPT, "%s/%s: another length than its run",
                                           st_sort_name(sort), name);
}

static int parse_sortruns(st_image *im, h5_file *f, const h5_object *group, int sort,
                          const uint8_t *p, uint64_t n, st_error *err)
{
    st_sortruns *runs = &im->sorted[sort];
    const char *name = st_sort_name(sort);
    uint64_t next = 0;
    if (n % 24 || n / 24 > ST_RUNS_MAX) {
        return st_fail(err, ST_CORRUPT, "%s/runs: %llu bytes are no list of runs", name,
                       (unsigned long long)n);
    }
    runs->run = h5_calloc((size_t)(n / 24) + 1, sizeof *runs->run);
    if (!runs->run) {
        return st_nomem(err);
    }
    for (uint64_t i = 0; i < n / 24; i++) {
        st_sortrun *r = &runs->run[runs->n++];
        r->first = st_get64(p + 24 * i);
        r->count = st_get64(p + 24 * i + 8);
        r->sorted = st_get64(p + 24 * i + 16) != 0;
        if (r->first != next || r->count > im->nrow - next) {
            return st_fail(err, ST_CORRUPT, "%s/runs: runs do not follow one another", name);
        }
        next += r->count;
        if (r->sorted) {
            ST_TRY(open_perm(im, f, group, sort, r, err));
        }
    }
    return next == im->nrow ? ST_OK
                            : st_fail(err, ST_CORRUPT, "%s/runs: not all rows are covered", name);
}

/* Is there /index/time? Older files have none. */
static int has_time(h5_file *f, int *yes, st_error *err)
{
    h5_object *index = NULL;
    ST_TRY(find_object(f, "/index", &index, err));
    *yes = h5_object_link(index, "time") != NULL;
    h5_object_close(index);
    return ST_OK;
}

static int open_sortruns(st_image *im, h5_file *f, int sort, st_error *err)
{
    h5_object *group = NULL;
    const h5_link *runs;
    const uint8_t *p = NULL;
    uint64_t n = 0;
    int rc, yes = 1;
    if (sort == ST_SORT_TIME) {
        rc = has_time(f, &yes, err);
        if (rc || !yes) {
            return rc;
        }
    }
    ST_TRY(find_object(f, st_sort_name(sort), &group, err));
    runs = h5_object_link(group, "runs");
    rc = ST_OK;
    if (runs) {
        rc = st_image_dataset(im, f, runs->addr, 'i', 8, &p, &n, err);
        rc = rc ? rc : parse_sortruns(im, f, group, sort, p, n, err);
    } else if (im->nrow) {
        im->sorted[sort].run = h5_calloc(1, sizeof(st_sortrun));
        if (im->sorted[sort].run) {
            im->sorted[sort].run->count = im->nrow;
            im->sorted[sort].n = 1;
        } else {
            rc = st_nomem(err);
        }
    }
    h5_object_close(group);
    return rc;
}

/* ------------------------------------------------------------------------------------ text runs */

static int open_run(st_image *im, h5_file *f, const h5_link *link, st_textrun *r, st_error *err)
{
    ST_TRY(st_image_dataset(im, f, link->addr, 'u', 1, &r->bytes, &r->size, err));
    r->header = link->addr;
    ST_TRY(st_from_vec(err, vec_run_open(r->bytes, (size_t)r->size, &r->run), link->name));
    r->first = vec_run_first(r->run);
    r->last = vec_run_last(r->run);
    r->rows = vec_run_rows(r->run);
    if (r->last >= im->nrow) {
        return st_fail(err, ST_CORRUPT, "/index/text/%s names rows that are not there", link->name);
    }
    return ST_OK;
}

static int open_runs(st_image *im, st_error *err)
{
    uint8_t sb[H5_SUPERBLOCK_BYTES];
    h5_file *f = NULL;
    h5_object *group = NULL;
    const h5_link *links;
    size_t n;
    int rc;
    h5_superblock_pack(im->root, im->eof, sb);
    rc = open_at(im->file->io, sb, &f, err);
    rc = rc ? rc : find_object(f, "/index/text", &group, err);
    n = rc ? 0 : h5_object_links(group, &links);
    if (n > ST_RUNS_MAX) {
        rc = st_fail(err, ST_LIMIT, "/index/text: %zu runs; at most %d", n, ST_RUNS_MAX);
    }
    if (!rc && !im->run) {
        im->run = h5_calloc(n + 1, sizeof *im->run);
        rc = im->run ? ST_OK : st_nomem(err);
    }
    for (size_t i = 0; i < n && !rc; i++) {
        st_textrun *r = &im->run[im->nrun];
        rc = open_run(im, f, &links[i], r, err);
        if (!rc && im->nrun && r->first <= im->run[im->nrun - 1].last) {
            rc = st_fail(err, ST_CORRUPT, "/index/text: runs overlap");
        }
        im->nrun += r->run != NULL;
    }
    if (rc) {
        for (size_t i = 0; i < im->nrun; i++) {
            vec_run_close(im->run[i].run);
        }
        h5_free(im->run);
        im->run = NULL;
        im->nrun = 0;
    }
    im->runs_open = rc == ST_OK;
    h5_object_close(group);
    h5_file_close(f);
    return rc;
}

/* "content/data" as one name. */
void st_sum_name(const char *path, char *out, size_t n)
{
    snprintf(out, n, "%s", path);
    for (; *out; out++) {
        *out = *out == '/' ? '.' : *out;
    }
}

uint32_t st_chunk_crc(const st_colimg *c, size_t elem, uint64_t chunk, const uint8_t *bytes)
{
    const h5_chunk *k = &c->chunk[chunk];
    uint64_t rows = ST_MIN((uint64_t)c->chunk_rows, c->n - chunk * c->chunk_rows);
    if (k->addr == H5_UNDEF) {
        return 0;
    }
    return st_crc32c(0, bytes, rows < c->chunk_rows ? (size_t)rows * elem : (size_t)k->size);
}

static int open_sum(st_image *im, h5_file *f, const h5_object *group, int c, st_error *err)
{
    static const uint8_t none[4];
    st_colimg *col = &im->col[c];
    char name[ST_NAME_MAX + 16];
    const h5_link *link;
    uint64_t bytes;
    col->sum_header = H5_UNDEF;
    if (col->header == H5_UNDEF) { // of a table that is not there; at most one chunk, not stored
        col->sum = none;
        return ST_OK;
    }
    if (!col->nchunk) {
        return ST_OK;
    }
    st_sum_name(im->schema->phys[c].path, name, sizeof name);
    link = h5_object_link(group, name);
    if (!link) {
        return st_fail(err, ST_CORRUPT, "/index/checksums/%s is missing", name);
    }
    ST_TRY(st_image_dataset(im, f, link->addr, 'u', 4, &col->sum, &bytes, err));
    col->sum_header = link->addr;
    return bytes == col->nchunk * 4
               ? ST_OK
               : st_fail(err, ST_CORRUPT, "/index/checksums/%s: %llu bytes for %llu chunks", name,
                         (unsigned long long)bytes, (unsigned long long)col->nchunk);
}

static int open_sums(st_image *im, st_error *err)
{
    uint8_t sb[H5_SUPERBLOCK_BYTES];
    h5_file *f = NULL;
    h5_object *group = NULL;
    int rc;
    h5_superblock_pack(im->root, im->eof, sb);
    rc = open_at(im->file->io, sb, &f, err);
    rc = rc ? rc : find_object(f, "/index/checksums", &group, err);
    for (int c = 0; c < im->schema->nphys && !rc; c++) {
        rc = open_sum(im, f, group, c, err);
    }
    h5_object_close(group);
    h5_file_close(f);
    return rc;
}

int st_image_sums(st_image *im, st_error *err)
{
    int rc = ST_OK;
    pthread_mutex_lock(&im->lock);
    if (!im->sums_open) {
        rc = open_sums(im, err);
        im->sums_open = rc == ST_OK;
    }
    pthread_mutex_unlock(&im->lock);
    return rc;
}

int st_image_runs(st_image *im, const st_textrun **runs, size_t *n, st_error *err)
{
    int rc = ST_OK;
    pthread_mutex_lock(&im->lock);
    if (!im->runs_open) {
        rc = open_runs(im, err);
    }
    *runs = im->run;
    *n = im->nrun;
    pthread_mutex_unlock(&im->lock);
    return rc;
}

/* ----------------------------------------------------------------------------------- life, live */

static int map_file(st_image *im, st_error *err)
{
    uint64_t size = 0;
    h5_io *io = im->file->io;
    const void *p = NULL;
    h5_error h = {0};
    if (io->size(io, &size, &h) != H5_OK) {
        return st_from_h5(err, &h, "the file's size");
    }
    if (size < im->eof || im->eof > SIZE_MAX / 2) {
        return st_fail(err, ST_CORRUPT, "the file has %llu bytes, its superblock says %llu",
                       (unsigned long long)size, (unsigned long long)im->eof);
    }
    if (io->map(io, 0, (size_t)im->eof, &p, &h) != H5_OK) {
        return st_from_h5(err, &h, "mapping the file");
    }
    im->map = p;
    im->map_n = (size_t)im->eof;
    return ST_OK;
}

int st_image_open(st_file *file, const uint8_t superblock[H5_SUPERBLOCK_BYTES],
                  const uint8_t uuid[16], const st_schema *schema, st_image **out, st_error *err)
{
    h5_file *f = NULL;
    st_image *im;
    int rc;
    *out = NULL;
    ST_TRY(open_at(file->io, superblock, &f, err));
    im = h5_calloc(1, sizeof *im);
    if (!im) {
        h5_file_close(f);
        return st_nomem(err);
    }
    pthread_mutex_init(&im->lock, NULL);
    pthread_mutex_init(&im->cache_lock, NULL);
    pthread_mutex_init(&im->index_lock, NULL);
    im->refs = 1;
    im->schema = schema;
    im->file = file;
    __atomic_add_fetch(&file->refs, 1, __ATOMIC_RELAXED);
    im->eof = h5_file_eof(f);
    im->root = h5_file_root(f);
    rc = map_file(im, err);
    rc = rc ? rc : read_meta(im, f, uuid, err);
    rc = rc ? rc : open_columns(im, f, err);
    rc = rc ? rc : st_image_sides(im, f, err);
    for (int i = 0; i < ST_SORTS && !rc; i++) {
        rc = open_sortruns(im, f, i, err);
    }
    h5_file_close(f);
    if (rc) {
        st_image_unref(im);
        return rc;
    }
    *out = im;
    return ST_OK;
}

void st_image_ref(st_image *im)
{
    __atomic_add_fetch(&im->refs, 1, __ATOMIC_RELAXED);
}

void st_image_unref(st_image *im)
{
    if (!im || __atomic_sub_fetch(&im->refs, 1, __ATOMIC_ACQ_REL)) {
        return;
    }
    st_cache_free(im);
    st_image_sides_free(im);
    for (size_t i = 0; i < im->nrun; i++) {
        vec_run_close(im->run[i].run);
    }
    h5_free(im->run);
    st_lists_free(im->lists);
    for (int c = 0; im->col && c < im->schema->nphys; c++) {
        h5_free(im->col[c].chunk);
        h5_free(im->col[c].fill);
    }
    h5_free(im->col);
    for (int i = 0; i < ST_SORTS; i++) {
        h5_free(im->sorted[i].run);
    }
    h5_free(im->live);
    h5_free(im->evicted);
    st_turns_free(im->turns);
    if (im->map) {
        im->file->io->unmap(im->file->io, im->map, im->map_n);
    }
    if (!__atomic_sub_fetch(&im->file->refs, 1, __ATOMIC_ACQ_REL)) {
        im->file->io->close(im->file->io);
        h5_free(im->file);
    }
    pthread_mutex_destroy(&im->lock);
    pthread_mutex_destroy(&im->cache_lock);
    pthread_mutex_destroy(&im->index_lock);
    h5_free(im);
}

/* Notes an evicted row. */
static int note_evicted(st_image *im, uint64_t row, st_error *err)
{
    if (!im->evicted) {
        im->evicted = h5_calloc(st_bit_words(im->nrow) + 1, sizeof *im->evicted);
        if (!im->evicted) {
            return st_nomem(err);
        }
    }
    st_bit_set(im->evicted, row);
    return ST_OK;
}

static int make_live(st_image *im, st_error *err)
{
    st_reader r;
    uint64_t row = 0, n = 0;
    uint64_t *bits = h5_calloc(st_bit_words(im->nrow) + 1, sizeof *bits);
    int rc = bits ? st_reader_open(&r, im, err) : st_nomem(err);
    if (rc) {
        h5_free(bits);
        return rc;
    }
    while (row < im->nrow && !rc) {
        const uint8_t *p;
        uint64_t run = 0;
        rc = st_read_at(&r, ST_PHYS_LIVE, row, &p, &run, err);
        for (uint64_t i = 0; i < run && !rc; i++) {
            if (p[i] == ST_LIVE_SHOWS) {
                st_bit_set(bits, row + i);
                n++;
            } else if (p[i] == ST_LIVE_EVICTED) {
                rc = note_evicted(im, row + i, err);
            }
        }
        row += run;
    }
    st_reader_close(&r);
    if (rc) {
        h5_free(bits);
        return rc;
    }
    im->live = bits;
    im->nlive = n;
    return ST_OK;
}

int st_image_live(st_image *im, const uint64_t **bits, uint64_t *n, st_error *err)
{
    int rc = ST_OK;
    pthread_mutex_lock(&im->lock);
    if (!im->live) {
        rc = make_live(im, err);
    }
    *bits = im->live;
    *n = im->nlive;
    pthread_mutex_unlock(&im->lock);
    return rc;
}
