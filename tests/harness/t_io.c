/*
 * t_io.c - an h5_io around another that counts, fails or cuts the power at the k-th operation
 *
 * SPDX-License-Identifier: MIT
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "t_io.h"

enum { SECTOR = 512 };

static void *must(void *p)
{
    if (!p) {
        fprintf(stderr, "t_io: no memory\n");
        exit(2);
    }
    return p;
}

static int fail(h5_error *err, int code, uint64_t off)
{
    if (err && err->code == H5_OK) {
        err->code = code;
        err->os_errno = code == H5_IO ? EIO : 0;
        err->offset = off;
        snprintf(err->text, sizeof err->text, "injected failure");
    }
    return code;
}

/* Counts an operation; 1 when it is the one that fails, or comes after a cut. */
static int strikes(t_io *t)
{
    t->count++;
    if (t->dead)
        return 1;
    if (t->count != t->fail_at)
        return 0;
    t->dead = t->mode == T_IO_CUT;
    return 1;
}

static void note(t_io *t, uint64_t off, const void *p, size_t n)
{
    if (t->npending == t->cap) {
        t->cap = t->cap ? t->cap * 2 : 64;
        t->pending = must(realloc(t->pending, t->cap * sizeof *t->pending));
    }
    t_io_write *w = &t->pending[t->npending++];
    w->off = off;
    w->n = n;
    w->data = n ? memcpy(must(malloc(n)), p, n) : NULL;
}

static int io_size(h5_io *io, uint64_t *out, h5_error *err)
{
    t_io *t = (t_io *)io;
    return t->inner->size(t->inner, out, err);
}

static int io_read(h5_io *io, uint64_t off, void *buf, size_t n, h5_error *err)
{
    t_io *t = (t_io *)io;
    t->reads++;
    t->read_bytes += n;
    if (strikes(t)) {
        if (t->mode == T_IO_FAIL || t->count > t->fail_at)
            return fail(err, H5_IO, off);
        memset(buf, 0x5A, n / 2);
        return fail(err, t->mode == T_IO_SHORT ? H5_FORMAT : H5_IO, off);
    }
    return t->inner->read(t->inner, off, buf, n, err);
}

static int io_write(h5_io *io, uint64_t off, const void *buf, size_t n, h5_error *err)
{
    t_io *t = (t_io *)io;
    int was_dead = t->dead;
    t->writes++;
    t->written_bytes += n;
    if (strikes(t)) {
        if (t->mode != T_IO_FAIL && !was_dead && n > 1) {
            note(t, off, buf, n / 2);
            t->inner->write(t->inner, off, buf, n / 2, NULL);
        }
        return fail(err, H5_IO, off);
    }
    note(t, off, buf, n);
    return t->inner->write(t->inner, off, buf, n, err);
}

/* Everything done so far is safe now. */
static void settle(t_io *t)
{
    t->inner->size(t->inner, &t->safe_n, NULL);
    t->safe = must(realloc(t->safe, t->safe_n + 1));
    t->inner->read(t->inner, 0, t->safe, (size_t)t->safe_n, NULL);
    for (size_t i = 0; i < t->npending; i++)
        free(t->pending[i].data);
    t->npending = 0;
}

static int io_sync(h5_io *io, h5_error *err)
{
    t_io *t = (t_io *)io;
    t->syncs++;
    if (strikes(t))
        return fail(err, H5_IO, H5_UNDEF);
    int rc = t->inner->sync(t->inner, err);
    if (rc == H5_OK)
        settle(t);
    return rc;
}

static int io_truncate(h5_io *io, uint64_t size, h5_error *err)
{
    t_io *t = (t_io *)io;
    t->truncates++;
    if (strikes(t))
        return fail(err, H5_IO, size);
    note(t, size, NULL, 0);
    return t->inner->truncate(t->inner, size, err);
}

static int io_map(h5_io *io, uint64_t off, size_t n, const void **out, h5_error *err)
{
    t_io *t = (t_io *)io;
    return t->inner->map(t->inner, off, n, out, err);
}

static void io_unmap(h5_io *io, const void *p, size_t n)
{
    t_io *t = (t_io *)io;
    t->inner->unmap(t->inner, p, n);
}

static void io_close(h5_io *io)
{
    t_io *t = (t_io *)io;
    t->inner->close(t->inner);
    for (size_t i = 0; i < t->npending; i++)
        free(t->pending[i].data);
    free(t->pending);
    free(t->safe);
    free(t);
}

t_io *t_io_new(h5_io *inner)
{
    static const h5_io table = {io_size,     io_read, io_write, io_sync,
                                io_truncate, io_map,  io_unmap, io_close};
    t_io *t = must(calloc(1, sizeof *t));
    t->io = table;
    t->inner = inner;
    settle(t);
    return t;
}

/* Grows with zeros or cuts. */
static void resize(unsigned char **file, size_t *n, size_t to)
{
    *file = must(realloc(*file, to + 1));
    if (to > *n)
        memset(*file + *n, 0, to - *n);
    *n = to;
}

/* One write, of which each sector may be missing. */
static void apply(unsigned char **file, size_t *n, const t_io_write *w, t_rng *r)
{
    uint64_t luck = t_rng_below(r, 3); // 0 all of it, 1 nothing, 2 sector by sector
    if (luck == 1)
        return;
    if (w->n == 0) {
        resize(file, n, (size_t)w->off);
        return;
    }
    if (w->off + w->n > *n)
        resize(file, n, (size_t)w->off + w->n);
    for (size_t i = 0; i < w->n;) {
        size_t end = (size_t)((w->off + i) / SECTOR + 1) * SECTOR - (size_t)w->off;
        end = end < w->n ? end : w->n;
        if (luck == 0 || t_rng_below(r, 2))
            memcpy(*file + w->off + i, w->data + i, end - i);
        i = end;
    }
}

unsigned char *t_io_crash(const t_io *t, t_rng *r, size_t *n)
{
    unsigned char *file = must(malloc((size_t)t->safe_n + 1));
    memcpy(file, t->safe, (size_t)t->safe_n);
    *n = (size_t)t->safe_n;
    for (size_t i = 0; i < t->npending; i++)
        apply(&file, n, &t->pending[i], r);
    return file;
}
