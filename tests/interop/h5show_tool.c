/*
 * h5show_tool.c - everything that hdf5core finds in a file, for comparison and for bug reports
 *
 *   h5show_tool FILE [BYTES]   a line of JSON for each object and link, followed by the values that
 *                              its "data" names, as raw bytes one behind the other; of datasets of
 *                              up to BYTES, 2 GiB else
 *
 * A value of any type is cut into leaves: the fields of compounds, under the names that lead to
 * them, and everything else. Numbers are given in little-endian order and their own width (floats
 * of odd layout as doubles), strings with a NUL between them, each variable-length sequence with
 * its number of elements in 8 bytes before it, references as pairs of kind and address, 8 bytes
 * each.
 *
 * SPDX-License-Identifier: MIT
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "h5core.h"

enum { NAMES = 64 };

typedef struct bytes {
    uint8_t *p;
    size_t n, cap;
} bytes;

static h5_file *file;
static h5_heaps *heaps;
static bytes data; /* what follows the line */
static h5_error err;
static size_t most = (size_t)1 << 31; /* bytes of a dataset that are read */

static void put(const void *p, size_t n)
{
    if (data.n + n > data.cap) {
        data.cap = (data.n + n) * 2;
        data.p = realloc(data.p, data.cap);
        if (!data.p)
            exit(3);
    }
    if (n)
        memcpy(data.p + data.n, p, n);
    data.n += n;
}

static void put_number(uint64_t v, uint32_t size)
{
    uint8_t out[8];
    for (uint32_t i = 0; i < 8; i++)
        out[i] = (uint8_t)(v >> 8 * i);
    put(out, size);
}

static void text(const char *s)
{
    putchar('"');
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            printf("\\%c", *s);
        else if ((unsigned char)*s < 0x20)
            printf("\\u%04x", *s);
        else
            putchar(*s);
    }
    putchar('"');
}

/* --------------------------------------------------------------------------------------- types */

static void show_type(const h5_type *t);

static void show_bits(const h5_type *t)
{
    printf(",\"order\":\"%s\",\"precision\":%u",
           t->vax          ? "VAX"
           : t->big_endian ? "BE"
                           : "LE",
           t->precision);
    if (t->cls != H5_CLASS_TIME)
        printf(",\"offset\":%u", t->bit_offset);
}

static void show_strings(const h5_type *t)
{
    static const char *const pads[] = {"nullterm", "nullpad", "spacepad"};
    printf(",\"vlen\":%s,\"cset\":\"%s\",\"strpad\":\"%s\"", t->is_text ? "true" : "false",
           t->utf8 ? "utf8" : "ascii", pads[t->str_pad]);
}

static void show_members(const h5_type *t)
{
    printf(",\"members\":[");
    for (uint32_t i = 0; i < t->nmember; i++) {
        const h5_member *m = &t->member[i];
        fputs(i ? "," : "", stdout);
        if (t->cls == H5_CLASS_COMPOUND) {
            printf("{\"name\":");
            text(m->name);
            printf(",\"offset\":%u,\"type\":", (unsigned)m->offset);
            show_type(m->type);
            printf("}");
        } else {
            uint64_t v;
            h5_value_bits(t->base, m->value, &v);
            printf("[");
            text(m->name);
            if (t->is_signed)
                printf(",%" PRId64 "]", (int64_t)v);
            else
                printf(",%" PRIu64 "]", v);
        }
    }
    printf("]");
}

static void show_base(const h5_type *t)
{
    if (t->cls == H5_CLASS_ARRAY) {
        printf(",\"dims\":[");
        for (uint32_t i = 0; i < t->rank; i++)
            printf("%s%u", i ? "," : "", (unsigned)t->dims[i]);
        printf("]");
    }
    printf(",\"base\":");
    show_type(t->base);
}

static void show_type(const h5_type *t)
{
    static const char *const names[] = {"integer",  "float",  "time",     "string",
                                        "bitfield", "opaque", "compound", "reference",
                                        "enum",     "vlen",   "array",    "complex"};
    static const char *const norms[] = {"none", "msbset", "implied"};
    static const char *const refs[] = {"object", "region", "std", "std", "std"};
    int string = t->cls == H5_CLASS_VLEN && t->is_text;
    if (t->cls > H5_CLASS_COMPLEX) {
        printf("null");
        return;
    }
    printf("{\"class\":\"%s\",\"size\":%u", string ? "string" : names[t->cls],
           string ? 8 : (unsigned)t->size);
    if (t->committed)
        printf(",\"committed\":true");
    if (t->cls <= H5_CLASS_TIME || t->cls == H5_CLASS_BITFIELD)
        show_bits(t);
    if (t->cls == H5_CLASS_INTEGER)
        printf(",\"sign\":\"%s\"", t->is_signed ? "signed" : "unsigned");
    if (t->cls == H5_CLASS_FLOAT)
        printf(",\"fields\":[%u,%u,%u,%u,%u],\"ebias\":%u,\"norm\":\"%s\"", t->sign_at,
               t->exponent_at, t->exponent_bits, t->mantissa_at, t->mantissa_bits,
               (unsigned)t->exponent_bias, norms[t->norm]);
    if (t->cls == H5_CLASS_STRING || string)
        show_strings(t);
    if (t->cls == H5_CLASS_OPAQUE) {
        printf(",\"tag\":");
        text(t->tag);
    }
    if (t->cls == H5_CLASS_REFERENCE)
        printf(",\"ref\":\"%s\"", refs[t->ref]);
    if (t->base && !string)
        show_base(t);
    if (t->member)
        show_members(t);
    printf("}");
}

/* -------------------------------------------------------------------------------------- values */

static int is_ieee(const h5_type *t)
{
    return !t->vax && t->norm == 2 && t->precision == 8 * t->size &&
           ((t->size == 2 && t->exponent_bits == 5) || (t->size == 4 && t->exponent_bits == 8) ||
            (t->size == 8 && t->exponent_bits == 11));
}

/* The width in which an integer is given: that of the machine's next. */
static uint32_t width_of(const h5_type *t)
{
    return t->size == 1 ? 1 : t->size == 2 ? 2 : t->size <= 4 ? 4 : 8;
}

static void type_code(const h5_type *t, char out[24])
{
    switch (t->cls) {
    case H5_CLASS_FLOAT:
        snprintf(out, 24, "<f%u", is_ieee(t) ? (unsigned)t->size : 8);
        break;
    case H5_CLASS_INTEGER:
    case H5_CLASS_ENUM:
    case H5_CLASS_BITFIELD:
        snprintf(out, 24, "<%c%u", t->is_signed ? 'i' : 'u', (unsigned)width_of(t));
        break;
    case H5_CLASS_VLEN:
        strcpy(out, t->is_text ? "strings" : "vlen");
        break;
    case H5_CLASS_STRING:
        strcpy(out, "strings");
        break;
    case H5_CLASS_REFERENCE:
        strcpy(out, "ref");
        break;
    case H5_CLASS_COMPLEX:
    case H5_CLASS_ARRAY:
        type_code(t->base, out);
        break;
    default:
        snprintf(out, 24, "opaque%u", (unsigned)t->size);
    }
}

/* Appends one element of a leaf; gives a code of hdf5core. */
static int put_value(const h5_type *t, const uint8_t *p)
{
    const uint8_t *in;
    uint64_t n, bits;
    double real;
    h5_ref ref;
    int rc = H5_OK;
    switch (t->cls) {
    case H5_CLASS_FLOAT:
        if (is_ieee(t)) {
            for (uint32_t i = 0; i < t->size; i++)
                put(&p[t->big_endian ? t->size - 1 - i : i], 1);
            break;
        }
        h5_value_real(t, p, &real);
        memcpy(&bits, &real, 8);
        put_number(bits, 8);
        break;
    case H5_CLASS_INTEGER:
    case H5_CLASS_ENUM:
    case H5_CLASS_BITFIELD:
        h5_value_bits(t, p, &bits);
        put_number(bits, width_of(t));
        break;
    case H5_CLASS_VLEN:
        rc = h5_vlen(heaps, t, p, &in, &n, &err);
        if (rc != H5_OK)
            break;
        if (t->is_text) {
            put(in, (size_t)n);
            put("", 1);
            break;
        }
        put_number(n, 8);
        for (uint64_t i = 0; rc == H5_OK && i < n; i++)
            rc = put_value(t->base, in + i * t->base->size);
        break;
    case H5_CLASS_STRING:
        put(p, h5_value_text(t, p));
        put("", 1);
        break;
    case H5_CLASS_REFERENCE:
        rc = h5_reference(heaps, t, p, &ref, &err);
        put_number(t->ref, 8);
        put_number(ref.addr, 8);
        break;
    case H5_CLASS_ARRAY:
    case H5_CLASS_COMPLEX:
        n = t->size / t->base->size;
        for (uint64_t i = 0; rc == H5_OK && i < n; i++)
            rc = put_value(t->base, p + i * t->base->size);
        break;
    case H5_CLASS_COMPOUND:
        for (uint32_t i = 0; rc == H5_OK && i < t->nmember; i++)
            rc = put_value(t->member[i].type, p + t->member[i].offset);
        break;
    default:
        put(p, t->size);
    }
    return rc;
}

/* A leaf on its way: element `count` of them, each `step` bytes after the one before, and inside
** arrays of compounds `inner` of `inner_step` bytes each. */
typedef struct leaf {
    const uint8_t *p;
    uint64_t count;
    size_t step;
    const char *names[NAMES];
    int n;
    int first;
} leaf;

/* Shows what is at p of every element; in arrays of compounds each of theirs. */
static int show_leaves(leaf *l, const h5_type *t, const uint32_t *inner, const size_t *steps,
                       int depth, size_t offset)
{
    char code[24];
    if (t->cls == H5_CLASS_COMPOUND && l->n < NAMES) {
        for (uint32_t i = 0; i < t->nmember; i++) {
            l->names[l->n++] = t->member[i].name;
            int rc = show_leaves(l, t->member[i].type, inner, steps, depth,
                                 offset + t->member[i].offset);
            l->n--;
            if (rc != H5_OK)
                return rc;
        }
        return H5_OK;
    }
    const h5_type *in = t;
    while (in->cls == H5_CLASS_ARRAY)
        in = in->base;
    if (t->cls == H5_CLASS_ARRAY && in->cls == H5_CLASS_COMPOUND && depth < 8) {
        uint32_t more[9];
        size_t wide[9];
        if (depth > 0) {
            memcpy(more, inner, sizeof *inner * (size_t)depth);
            memcpy(wide, steps, sizeof *steps * (size_t)depth);
        }
        more[depth] = t->size / in->size;
        wide[depth] = in->size;
        return show_leaves(l, in, more, wide, depth + 1, offset);
    }
    type_code(t, code);
    size_t from = data.n;
    uint64_t per = 1;
    for (int k = 0; k < depth; k++)
        per *= inner[k];
    for (uint64_t i = 0; i < l->count * per; i++) {
        size_t at = offset;
        uint64_t rest = i;
        for (int k = depth; k-- > 0; rest /= inner[k])
            at += (size_t)(rest % inner[k]) * steps[k];
        int rc = put_value(t, l->p + rest * l->step + at);
        if (rc != H5_OK)
            return rc;
    }
    // A NUL between strings, not behind the last.
    if (strcmp(code, "strings") == 0 && data.n > from)
        data.n--;
    printf("%s{\"name\":[", l->first ? "" : ",");
    l->first = 0;
    for (int k = 0; k < l->n; k++) {
        fputs(k ? "," : "", stdout);
        text(l->names[k]);
    }
    printf("],\"type\":\"%s\",\"bytes\":%zu}", code, data.n - from);
    return H5_OK;
}

static void show_data(const h5_type *t, const uint8_t *p, uint64_t count)
{
    leaf l = {.p = p, .count = count, .step = t->size, .first = 1};
    printf(",\"data\":[");
    h5_error_clear(&err);
    int rc = show_leaves(&l, t, NULL, NULL, 0, 0);
    printf("]");
    if (rc != H5_OK) {
        printf(",\"error\":");
        text(err.text);
    }
}

/* ------------------------------------------------------------------------------------- objects */

static uint64_t show_shape(const char *name, int space, int rank, const uint64_t *dims)
{
    uint64_t n = space != H5_SPACE_NULL;
    printf(",\"%s\":", name);
    if (space == H5_SPACE_NULL) {
        printf("null");
        return n;
    }
    printf("[");
    for (int i = 0; i < rank; i++) {
        n *= dims[i];
        fputs(i ? "," : "", stdout);
        if (dims[i] == UINT64_MAX)
            printf("null");
        else
            printf("%" PRIu64, dims[i]);
    }
    printf("]");
    return n;
}

static const char *space_name(int space)
{
    return space == H5_SPACE_NULL ? "null" : space == H5_SPACE_SCALAR ? "scalar" : "simple";
}

static void show_attrs(const h5_object *o)
{
    const h5_attr *a;
    size_t n = h5_object_attrs(o, &a);
    printf(",\"attrs\":[");
    for (size_t i = 0; i < n; i++, a++) {
        printf("%s{\"name\":", i ? "," : "");
        text(a->name);
        printf(",\"space\":\"%s\"", space_name(a->space));
        uint64_t count = show_shape("shape", a->space, a->rank, a->dims);
        printf(",\"dtype\":");
        show_type(&a->type);
        if (a->type.cls != H5_CLASS_OTHER)
            show_data(&a->type, a->data, count);
        printf("}");
    }
    printf("]");
}

static void show_values(const h5_object *o, const h5_dataset_info *d, uint64_t count)
{
    uint64_t start[H5_RANK_MAX] = {0};
    size_t n = (size_t)count * d->type.size;
    uint8_t *buf = n <= most ? malloc(n + 1) : NULL;
    h5_error_clear(&err);
    int rc = buf ? h5_dataset_read_values(heaps, o, start, d->dims, buf, n, &err)
                 : h5_fail(&err, H5_LIMIT, H5_UNDEF, "more bytes than this tool takes");
    if (rc == H5_OK) {
        show_data(&d->type, buf, count);
    } else {
        printf(",\"code\":\"%s\",\"error\":", h5_code_name(rc));
        text(err.text);
    }
    free(buf);
}

static void show_dataset(const h5_object *o, const h5_dataset_info *d)
{
    static const char *const fills[] = {"default", "user", "undefined"};
    printf(",\"space\":\"%s\"", space_name(d->space));
    uint64_t n = show_shape("shape", d->space, d->rank, d->dims);
    show_shape("maxshape", d->space, d->rank, d->maxdims);
    printf(",\"layout\":\"%s\",\"index\":\"%s\",\"fill\":\"%s\"", h5_layout_name(o),
           h5_index_name(o), fills[d->fill_kind]);
    if (d->layout == H5_LAYOUT_CHUNKED) {
        printf(",\"chunk\":[");
        for (int i = 0; i < d->rank; i++)
            printf("%s%u", i ? "," : "", (unsigned)d->chunk[i]);
        printf("],\"filters\":[");
        for (int i = 0; i < d->pipeline.n; i++)
            printf("%s%u", i ? "," : "", d->pipeline.filter[i].id);
        printf("]");
    }
    show_values(o, d, n);
}

static void show_link(const h5_item *item)
{
    if (item->link->path) {
        printf(",\"target\":");
        text(item->link->path);
    }
    if (item->link->file) {
        printf(",\"file\":");
        text(item->link->file);
    }
    if (item->kind == H5_ITEM_USER)
        printf(",\"link_type\":%u", item->link->kind);
}

static int show(void *ctx, const h5_item *item)
{
    static const char *const kinds[] = {
        "", "group", "dataset",   "named-type",    "",          "",          "",     "",
        "", "",      "soft-link", "external-link", "user-link", "hard-link", "error"};
    (void)ctx;
    data.n = 0;
    printf("{\"path\":");
    text(item->path);
    printf(",\"kind\":\"%s\",\"addr\":%" PRId64, kinds[item->kind], (int64_t)item->addr);
    if (item->link && item->link->has_order)
        printf(",\"corder\":%" PRId64, item->link->order);
    if (item->addr == H5_UNDEF)
        show_link(item);
    if (item->same_as) {
        printf(",\"same_as\":");
        text(item->same_as);
    }
    if (item->error) {
        printf(",\"code\":\"%s\",\"error\":", h5_code_name(item->error->code));
        text(item->error->text);
    }
    if (item->object) {
        const h5_link *links;
        const h5_type *t = h5_object_type(item->object);
        const h5_dataset_info *d = h5_object_dataset(item->object);
        if (t) {
            printf(",\"dtype\":");
            show_type(t);
        } else {
            printf(",\"nlinks\":%zu", h5_object_links(item->object, &links));
        }
        if (d)
            show_dataset(item->object, d);
        show_attrs(item->object);
    }
    printf(",\"bytes\":%zu}\n", data.n);
    if (data.n > 0)
        fwrite(data.p, 1, data.n, stdout);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 2 && argc != 3) {
        fprintf(stderr, "usage: h5show_tool FILE [BYTES]\n");
        return 2;
    }
    if (argc == 3)
        most = strtoul(argv[2], NULL, 10);
    int rc = h5_file_open_path(argv[1], &file, &err);
    if (rc == H5_OK)
        rc = h5_heaps_open(file, &heaps, &err);
    if (rc == H5_OK)
        rc = h5_walk(file, show, NULL, &err);
    if (rc != H5_OK)
        fprintf(stderr, "%s: %s\n", h5_code_name(rc), err.text);
    h5_heaps_close(heaps);
    h5_file_close(file);
    free(data.p);
    return rc != H5_OK;
}
