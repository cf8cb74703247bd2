/*
 * h5filter_tool.c - decodes stored chunks for the pytest files of this folder
 *
 *     h5filter_tool decode|damage < records
 *
 * A record is a line of numbers and the stored bytes behind it:
 *     stored bytes, decoded bytes, mask, number of filters, and per filter: id, values, each value
 * decode: per record a line "code TAB bytes TAB text" and the decoded bytes.
 * damage: per record every prefix, and every byte changed in three ways; a line "decoded TAB
 *     refused".
 * Input and output end at unmapped pages, so that one byte too far ends the program.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "h5core.h"
#include "t_guard.h"

typedef struct record {
    h5_pipeline p;
    uint32_t *more[H5_FILTERS_MAX];
    uint32_t mask;
    t_guard in, out;
} record;

static unsigned long long number(void)
{
    unsigned long long v;
    if (scanf("%llu", &v) != 1) {
        fprintf(stderr, "not a record\n");
        exit(2);
    }
    return v;
}

static void read_filter(record *r, int i)
{
    h5_filter *f = &r->p.filter[i];
    f->id = (uint16_t)number();
    f->nvalue = (uint32_t)number();
    r->more[i] = calloc(f->nvalue + 1, sizeof(uint32_t));
    if (!r->more[i])
        exit(2);
    for (uint32_t k = 0; k < f->nvalue; k++) {
        r->more[i][k] = (uint32_t)number();
        if (k < H5_FILTER_VALUES_MAX)
            f->value[k] = r->more[i][k];
    }
    if (f->nvalue > H5_FILTER_VALUES_MAX)
        f->more = r->more[i];
}

/* 0 at the end of the input. */
static int read_record(record *r)
{
    unsigned long long n;
    memset(r, 0, sizeof *r);
    if (scanf("%llu", &n) != 1)
        return 0;
    r->out = t_guard_new((size_t)number());
    r->mask = (uint32_t)number();
    r->p.n = (int)number();
    if (r->p.n > H5_FILTERS_MAX)
        exit(2);
    for (int i = 0; i < r->p.n; i++)
        read_filter(r, i);
    if (getchar() != '\n')
        exit(2);
    r->in = t_guard_new((size_t)n);
    if (fread(r->in.p, 1, r->in.n, stdin) != r->in.n)
        exit(2);
    return 1;
}

static void free_record(record *r)
{
    for (int i = 0; i < r->p.n; i++)
        free(r->more[i]);
    t_guard_free(&r->in);
    t_guard_free(&r->out);
}

static void decode(record *r)
{
    h5_error err;
    h5_error_clear(&err);
    int rc = h5_pipeline_decode(&r->p, r->mask, r->in.p, r->in.n, r->out.p, r->out.n, &err);
    size_t n = rc == H5_OK ? r->out.n : 0;
    printf("%s\t%zu\t%s\n", h5_code_name(rc), n, err.text);
    fwrite(r->out.p, 1, n, stdout);
}

/* 1 when the bytes decode; a code that does not belong here ends the program. */
static int tried(record *r, const void *p, size_t n)
{
    int rc = h5_pipeline_decode(&r->p, r->mask, p, n, r->out.p, r->out.n, NULL);
    if (rc != H5_OK && rc != H5_FORMAT && rc != H5_UNSUPPORTED) {
        fprintf(stderr, "code %s\n", h5_code_name(rc));
        exit(3);
    }
    return rc == H5_OK;
}

static void damage(record *r)
{
    static const uint8_t changes[] = {0x01, 0x80, 0xFF};
    long good = 0, all = 0;
    for (size_t n = 0; n < r->in.n; n++, all++) {
        // The end of the prefix must be the end of what may be read.
        t_guard part = t_guard_copy(r->in.p, n);
        good += tried(r, part.p, n);
        t_guard_free(&part);
    }
    for (size_t i = 0; i < r->in.n; i++) {
        for (size_t k = 0; k < sizeof changes; k++, all++) {
            r->in.p[i] ^= changes[k];
            good += tried(r, r->in.p, r->in.n);
            r->in.p[i] ^= changes[k];
        }
    }
    printf("%ld\t%ld\n", good, all - good);
}

int main(int argc, char **argv)
{
    record r;
    if (argc != 2)
        return 2;
    while (read_record(&r)) {
        if (strcmp(argv[1], "damage") == 0)
            damage(&r);
        else
            decode(&r);
        free_record(&r);
    }
    return 0;
}
