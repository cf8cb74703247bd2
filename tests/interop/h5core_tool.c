/*
 * h5core_tool.c - hdf5core driven from outside: makes files from a script, prints what it reads
 *
 *   make FILE      reads a script from standard input, one command a line:
 *     attr KIND NAME VALUE      for the next object; KIND i, f or s
 *     dataset NAME TYPE DIMS CHUNK MAXROWS FILTERS FILL DATA
 *                               TYPE i4 u1 f8 s12 (and >i4); DIMS 3,4 or "scalar"; CHUNK 2,4 or -
 *                                 for contiguous; FILTERS as
 *                               shuffle+deflate:6, a trailing ! keeps the last chunk raw, - for
 *                                 none; FILL hex of one
 *                               little-endian element or -; DATA a file of native values, - for no
 *                                 chunks at all
 *     group NAME N              of the last N objects; the last group is the root
 *   info FILE PATH              kind, shape, attributes, members
 *   values FILE PATH            all values, raw, to standard output
 *   slab FILE PATH START COUNT  a hyperslab (3,0 2,4) likewise
 *   chunks FILE PATH            address, size, mask of each chunk
 *   all FILE                    every object that hard links reach, a line each: path, kind, code
 *     of its
 *                               opening or reading, bytes, text of the failure, between tabs; then
 *                                 its
 *                               values, raw
 *
 * It ends with 0, or prints the code's name and the text of the failure and ends with 1.
 *
 * SPDX-License-Identifier: MIT
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "h5core.h"

enum { ITEMS = 4096, ATTRS = 1024 };

static h5_error err;
static h5_link items[ITEMS];
static size_t nitem;
static h5_attr_spec attrs[ATTRS];
static size_t nattr;

/* A copy of s that lives as long as the program. */
static char *keep(const char *s)
{
    static char **kept;
    static size_t n;
    kept = realloc(kept, (n + 1) * sizeof *kept);
    return kept[n++] = strdup(s);
}

static void check(int rc)
{
    if (rc == H5_OK)
        return;
    fflush(stdout);
    fprintf(stderr, "%s: %s\n", h5_code_name(rc), err.text);
    exit(1);
}

static void bad(const char *what)
{
    fprintf(stderr, "bad script: %s\n", what);
    exit(2);
}

/* Numbers with commas; gives their count. */
static int numbers(const char *s, uint64_t *out)
{
    int n = 0;
    for (char *end; *s && n < H5_RANK_MAX; s = *end ? end + 1 : end) {
        out[n++] = strtoull(s, &end, 10);
        if (end == s)
            bad(s);
    }
    return n;
}

static void parse_type(const char *s, h5_type *t)
{
    int big = *s == '>';
    s += big;
    if (*s == 's') {
        *t = (h5_type){.cls = H5_CLASS_STRING, .utf8 = 1, .size = (uint32_t)atoi(s + 1)};
    } else if (h5_type_number(*s, (uint32_t)atoi(s + 1), t) != H5_OK) {
        bad(s);
    }
    t->big_endian = (uint8_t)big;
}

/* Gives 1 when the last chunk stays raw. */
static int parse_filters(char *s, uint32_t size, h5_pipeline *p)
{
    int raw = s[strlen(s) - 1] == '!';
    p->n = 0;
    if (strcmp(s, "-") == 0)
        return 0;
    for (char *f = strtok(s, "+!"); f; f = strtok(NULL, "+!")) {
        h5_filter *one = &p->filter[p->n++];
        char *level = strchr(f, ':');
        *one = (h5_filter){
            .flags = 1, .nvalue = 1, .value = {level ? (uint32_t)atoi(level + 1) : size}};
        one->id = *f == 's' ? H5_FILTER_SHUFFLE : *f == 'd' ? H5_FILTER_DEFLATE : H5_FILTER_ZSTD;
    }
    return raw;
}

static uint8_t *load(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        bad(path);
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    uint8_t *p = malloc(*n + 1);
    if (!p || fread(p, 1, *n, f) != *n)
        bad(path);
    fclose(f);
    return p;
}

static void swap(uint8_t *p, size_t n, size_t size)
{
    for (size_t i = 0; i < n; i += size)
        for (size_t a = 0; a < size / 2; a++) {
            uint8_t t = p[i + a];
            p[i + a] = p[i + size - 1 - a];
            p[i + size - 1 - a] = t;
        }
}

/* Element number e of a chunk at grid position `at`: its place in the dataset, or -1 beyond the
** edge. */
static int64_t place(const h5_dataset_spec *d, const uint64_t *at, uint64_t e)
{
    uint64_t pos[H5_RANK_MAX], lin = 0;
    for (int i = d->rank; i-- > 0; e /= d->chunk[i])
        pos[i] = at[i] * d->chunk[i] + e % d->chunk[i];
    for (int i = 0; i < d->rank; i++) {
        if (pos[i] >= d->dims[i])
            return -1;
        lin = lin * d->dims[i] + pos[i];
    }
    return (int64_t)lin;
}

static void put_chunk(h5_writer *w, const h5_dataset_spec *d, const uint8_t *data,
                      const uint64_t *at, int raw, h5_chunk *out)
{
    uint64_t n = 1, size = d->type.size;
    for (int i = 0; i < d->rank; i++)
        n *= d->chunk[i];
    uint8_t *chunk = malloc(n * size);
    memset(chunk, 0xA5, n * size);
    for (uint64_t e = 0; e < n; e++) {
        int64_t from = place(d, at, e);
        if (from >= 0)
            memcpy(chunk + e * size, data + (uint64_t)from * size, size);
    }
    out->size = n * size;
    out->mask = 0;
    if (d->pipeline->n > 0 && !raw) {
        void *enc;
        size_t enc_n;
        check(h5_pipeline_encode(d->pipeline, chunk, n * size, &enc, &enc_n, &out->mask, &err));
        out->size = enc_n;
        check(h5_writer_append(w, enc, enc_n, 64, &out->addr, &err));
        h5_free(enc);
    } else {
        out->mask = d->pipeline->n > 0 ? (1u << d->pipeline->n) - 1 : 0;
        check(h5_writer_append(w, chunk, n * size, 64, &out->addr, &err));
    }
    free(chunk);
}

static void put_chunks(h5_writer *w, h5_dataset_spec *d, const uint8_t *data, int raw_last)
{
    uint64_t grid[H5_RANK_MAX], used[H5_RANK_MAX], slots = 1, size = d->type.size;
    for (int i = 0; i < d->rank; i++) {
        grid[i] = (d->maxdims[i] + d->chunk[i] - 1) / d->chunk[i];
        used[i] = (d->dims[i] + d->chunk[i] - 1) / d->chunk[i];
        slots *= grid[i];
        size *= d->chunk[i];
    }
    h5_chunk *chunks = calloc(slots, sizeof *chunks);
    for (uint64_t s = 0; s < slots; s++) {
        uint64_t at[H5_RANK_MAX] = {0}, left = s;
        int inside = 1;
        for (int i = d->rank; i-- > 0; left /= grid[i]) {
            at[i] = left % grid[i];
            inside &= at[i] < used[i];
        }
        chunks[s].addr = H5_UNDEF;
        if (inside)
            put_chunk(w, d, data, at, raw_last && at[0] + 1 == used[0], &chunks[s]);
    }
    check(h5_write_fixed_array(w, chunks, slots, d->pipeline->n > 0, size, &d->addr, &err));
    free(chunks);
}

static char *word(void)
{
    char *s = strtok(NULL, " \n");
    if (!s)
        bad("a word is missing");
    return s;
}

static void push(const char *name, uint64_t addr)
{
    if (nitem >= ITEMS)
        bad("too many objects");
    items[nitem].name = keep(name);
    items[nitem++].addr = addr;
    nattr = 0;
}

static void add_attr(void)
{
    h5_attr_spec *a = &attrs[nattr < ATTRS ? nattr++ : 0];
    *a = (h5_attr_spec){.kind = *word()};
    a->name = keep(word());
    const char *v = strtok(NULL, "\n");
    v = v ? v : "";
    a->i = strtoll(v, NULL, 10);
    a->f = strtod(v, NULL);
    a->s = keep(v);
}

static void add_dataset(h5_writer *w)
{
    uint64_t dims[H5_RANK_MAX], max[H5_RANK_MAX], wide[H5_RANK_MAX], at;
    uint32_t chunk[H5_RANK_MAX];
    uint8_t fill[64];
    h5_pipeline pipe;
    size_t n = 0;
    char *name = word();
    h5_dataset_spec d = {
        .dims = dims, .pipeline = &pipe, .addr = H5_UNDEF, .attrs = attrs, .nattr = nattr};
    parse_type(word(), &d.type);
    char *shape = word(), *cut = word(), *rows = word(), *filters = word(), *fillhex = word(),
         *path = word();
    d.rank = strcmp(shape, "scalar") ? numbers(shape, dims) : 0;
    int raw = parse_filters(filters, d.type.size, &pipe);
    if (*fillhex != '-') {
        for (uint32_t i = 0; i < d.type.size && i < sizeof fill; i++) {
            unsigned byte;
            if (sscanf(fillhex + 2 * i, "%2x", &byte) != 1)
                bad(fillhex);
            fill[i] = (uint8_t)byte;
        }
        d.fill = fill;
    }
    uint8_t *data = strcmp(path, "-") ? load(path, &n) : NULL;
    if (data && d.type.big_endian)
        swap(data, n, d.type.size);
    if (*cut != '-') {
        numbers(cut, wide);
        for (int i = 0; i < d.rank; i++)
            chunk[i] = (uint32_t)wide[i];
        memcpy(max, dims, sizeof max);
        max[0] = strtoull(rows, NULL, 10);
        d.chunk = chunk;
        d.maxdims = max;
        if (data)
            put_chunks(w, &d, data, raw);
    } else if (data) {
        check(h5_writer_append(w, data, n, 8, &d.addr, &err));
    }
    check(h5_write_dataset(w, &d, &at, &err));
    free(data);
    push(name, at);
}

static void make(const char *path)
{
    static char line[1 << 17];
    h5_io *io;
    h5_writer *w;
    uint8_t super[H5_SUPERBLOCK_BYTES];
    check(h5_io_file(path, H5_IO_WRITE | H5_IO_CREATE, &io, &err));
    check(h5_writer_new(io, sizeof super, &w, &err));
    while (fgets(line, sizeof line, stdin)) {
        const char *verb = strtok(line, " \n");
        if (!verb)
            continue;
        if (strcmp(verb, "attr") == 0) {
            add_attr();
        } else if (strcmp(verb, "dataset") == 0) {
            add_dataset(w);
        } else if (strcmp(verb, "group") == 0) {
            char *name = word();
            size_t n = strtoull(word(), NULL, 10);
            uint64_t at;
            check(h5_write_group(w, items + nitem - n, n, attrs, nattr, &at, &err));
            nitem -= n;
            push(name, at);
        } else {
            bad(verb);
        }
    }
    check(h5_writer_flush(w, &err));
    h5_superblock_pack(items[nitem - 1].addr, h5_writer_eof(w), super);
    check(io->write(io, 0, super, sizeof super, &err));
    check(io->sync(io, &err));
    h5_writer_free(w);
    io->close(io);
}

static void print_type(const h5_type *t)
{
    static const char *const kinds[] = {"u", "f", "?", "s"};
    if (t->cls > 3)
        printf("class %u", t->cls);
    else
        printf("%s%s%u", t->big_endian ? ">" : "",
               t->cls == 0 && t->is_signed ? "i" : kinds[t->cls], t->size);
}

static void print_attr(const h5_object *o, const h5_attr *a)
{
    int64_t i;
    double f;
    char *s;
    printf("attr %s ", a->name);
    print_type(&a->type);
    int plain = a->type.cls == H5_CLASS_INTEGER || a->type.cls == H5_CLASS_FLOAT ||
                a->type.cls == H5_CLASS_STRING;
    if (!plain || a->bytes != a->type.size) {
        printf(" bytes %zu", a->bytes);
    } else if (a->type.cls == H5_CLASS_INTEGER) {
        check(h5_attr_int(o, a->name, &i, &err));
        printf(" %" PRId64, i);
    } else if (a->type.cls == H5_CLASS_FLOAT) {
        check(h5_attr_real(o, a->name, &f, &err));
        printf(" %.17g", f);
    } else {
        check(h5_attr_text(o, a->name, &s, &err));
        printf(" %s", s);
        h5_free(s);
    }
    printf("\n");
}

static void info(const h5_object *o)
{
    const h5_link *links;
    const h5_attr *list;
    const h5_dataset_info *d = h5_object_dataset(o);
    size_t n = h5_object_links(o, &links);
    printf("kind %s\n", d ? "dataset" : "group");
    for (size_t i = 0; i < n; i++)
        printf("link %s %s\n", links[i].name, links[i].addr == H5_UNDEF ? "other" : "hard");
    if (d) {
        printf("type ");
        print_type(&d->type);
        printf("\nlayout %d\nshape", d->layout);
        for (int i = 0; i < d->rank; i++)
            printf(" %" PRIu64 "/%" PRIu64, d->dims[i], d->maxdims[i]);
        printf("\nchunk");
        for (int i = 0; i < d->rank && d->layout == H5_LAYOUT_CHUNKED; i++)
            printf(" %u", d->chunk[i]);
        printf("\nfilters");
        for (int i = 0; i < d->pipeline.n; i++)
            printf(" %u", d->pipeline.filter[i].id);
        printf("\n");
    }
    n = h5_object_attrs(o, &list);
    for (size_t i = 0; i < n; i++)
        print_attr(o, &list[i]);
}

static void values(h5_file *f, const h5_object *o, const uint64_t *start, const uint64_t *count)
{
    const h5_dataset_info *d = h5_object_dataset(o);
    size_t n = d ? d->type.size : 0;
    for (int i = 0; d && i < d->rank; i++)
        n *= count[i];
    void *buf = malloc(n + 1);
    check(h5_dataset_read(f, o, start, count, buf, n, &err));
    fwrite(buf, 1, n, stdout);
    free(buf);
}

static void chunks(h5_file *f, const h5_object *o)
{
    h5_chunk *list;
    size_t n;
    check(h5_dataset_chunks(f, o, &list, &n, &err));
    for (size_t i = 0; i < n; i++)
        printf("%" PRId64 " %" PRIu64 " %u\n", (int64_t)list[i].addr, list[i].size, list[i].mask);
    h5_free(list);
}

/* One line for an object, and the values of a dataset. Gives the opened object, NULL when it has
** none. */
static h5_object *report(h5_file *f, uint64_t addr, const char *path)
{
    h5_object *o;
    void *buf = NULL;
    size_t n = 0;
    uint64_t start[H5_RANK_MAX] = {0};
    const char *kind = "unknown";
    h5_error_clear(&err);
    int rc = h5_object_open(f, addr, &o, &err);
    const h5_dataset_info *d = rc == H5_OK ? h5_object_dataset(o) : NULL;
    if (rc == H5_OK)
        kind = d ? "dataset" : "group";
    if (d) {
        n = d->type.size;
        for (int i = 0; i < d->rank; i++)
            n *= d->dims[i];
        buf = n < (size_t)1 << 30 ? malloc(n + 1) : NULL;
        rc = buf ? h5_dataset_read(f, o, start, d->dims, buf, n, &err) : H5_LIMIT;
        n = rc == H5_OK ? n : 0;
    }
    printf("%s\t%s\t%s\t%zu\t%s\n", path, kind, h5_code_name(rc), n, err.text);
    if (n > 0)
        fwrite(buf, 1, n, stdout);
    free(buf);
    return o;
}

/* Reports an object and what is under it, down to a depth that a circle of links cannot pass. */
static void all(h5_file *f, uint64_t addr, const char *path, int depth)
{
    const h5_link *links;
    h5_object *o = report(f, addr, *path ? path : "/");
    if (!o)
        return;
    size_t n = h5_object_links(o, &links);
    for (size_t i = 0; i < n && depth < 20; i++) {
        size_t len = strlen(path) + strlen(links[i].name) + 2;
        char *inner = malloc(len);
        snprintf(inner, len, "%s/%s", path, links[i].name);
        if (links[i].addr != H5_UNDEF)
            all(f, links[i].addr, inner, depth + 1);
        free(inner);
    }
    h5_object_close(o);
}

/* The commands that read one object. */
static void one(h5_file *f, int argc, char **argv)
{
    uint64_t start[H5_RANK_MAX] = {0}, count[H5_RANK_MAX] = {0};
    h5_object *o;
    check(h5_object_find(f, argv[3], &o, &err));
    const h5_dataset_info *d = h5_object_dataset(o);
    if (d)
        memcpy(count, d->dims, sizeof count);
    if (strcmp(argv[1], "slab") == 0 && argc == 6) {
        numbers(argv[4], start);
        numbers(argv[5], count);
        values(f, o, start, count);
    } else if (strcmp(argv[1], "values") == 0) {
        values(f, o, start, count);
    } else if (strcmp(argv[1], "chunks") == 0) {
        chunks(f, o);
    } else {
        info(o);
    }
    h5_object_close(o);
}

int main(int argc, char **argv)
{
    h5_file *f;
    if (argc == 3 && strcmp(argv[1], "make") == 0) {
        make(argv[2]);
        return 0;
    }
    if (argc < 3 || (argc < 4 && strcmp(argv[1], "all") != 0))
        bad("usage: h5core_tool make|all FILE | info|values|slab|chunks FILE PATH [START COUNT]");
    check(h5_file_open_path(argv[2], &f, &err));
    if (strcmp(argv[1], "all") == 0)
        all(f, h5_file_root(f), "", 0);
    else
        one(f, argc, argv);
    h5_file_close(f);
    return 0;
}
