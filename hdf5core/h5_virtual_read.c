/*
 * h5_virtual_read.c - values of virtual datasets
 *
 * Everything is the fill value first. Then each mapping whose part of the dataset meets the
 * hyperslab puts its elements there: stretches of the dataset's selection are looked up in the
 * source's selection by their number, and stretches that lie close together in the source are read
 * as one box.
 *
 * ERRORS   those of the sources; H5_UNSUPPORTED references into another file
 * TESTS    test_h5virtual.py, test_h5show.py
 *
 * SPDX-License-Identifier: MIT
 */
#include <inttypes.h>

#include "h5_chunk.h"
#include "h5_conv.h"
#include "h5_virtual.h"

enum { PIECES = 1024 };

/* n elements from `from` (in C order of the source) to `to` (of the buffer). */
typedef struct piece {
    uint64_t from, to, n;
} piece;

typedef struct reading {
    const h5_object *o;
    const uint64_t *start, *count;
    uint8_t *dst;
    h5_source source;
    h5_deep *deep;
    const h5_mapping *m;
    const h5_selection *from; /* settled in the source */
    int same;                 /* the source has the type of the dataset */
    int points;               /* its values point into another file than this one, */
    h5_heaps *heaps;          /* whose heaps these are; NULL before the first */
    uint64_t serial;          /* and its number in source, 0: another, at the end of a link */
    piece list[PIECES];
    size_t n;
    uint64_t first[H5_RANK_MAX], last[H5_RANK_MAX]; /* box around the pieces, in the source */
} reading;

static void place_of(uint64_t at, int rank, const uint64_t *dims, uint64_t *out)
{
    for (int i = rank; i-- > 0; at /= dims[i])
        out[i] = at % dims[i];
}

/* Elements of the box from first to last; UINT64_MAX when 64 bits do not count its bytes. */
static uint64_t box_size(const reading *r, const uint64_t *first, const uint64_t *last, int rank)
{
    uint64_t n = 1, bytes;
    for (int i = 0; i < rank; i++)
        if (!h5_mul_fits(n, last[i] - first[i] + 1, &n))
            return UINT64_MAX;
    return h5_mul_fits(n, r->source.found->info->type.size, &bytes) ? n : UINT64_MAX;
}

/* Reads the box around the pieces and puts each where it belongs. */
static int flush(reading *r, h5_error *err)
{
    const h5_object *source = r->source.found;
    const h5_dataset_info *d = source->info;
    uint64_t count[H5_RANK_MAX], step[H5_RANK_MAX], at[H5_RANK_MAX], size = r->o->info->type.size;
    if (r->n == 0)
        return H5_OK;
    uint64_t n = box_size(r, r->first, r->last, d->rank);
    for (int i = d->rank; i-- > 0;) {
        count[i] = r->last[i] - r->first[i] + 1;
        step[i] = i == d->rank - 1 ? 1 : step[i + 1] * count[i + 1];
    }
    int direct = r->n == 1 && r->same && !r->points && n == r->list[0].n;
    uint8_t *box = direct ? r->dst + r->list[0].to * size : h5_malloc((size_t)(n * d->type.size));
    if (!box)
        return h5_fail_nomem(err, "a part of a virtual dataset");
    r->deep->depth++;
    int rc = h5_dataset_read_deep(source, r->first, count, box, (size_t)(n * d->type.size), r->deep,
                                  err);
    r->deep->depth--;
    for (size_t i = 0; !direct && rc == H5_OK && i < r->n; i++) {
        const piece *p = &r->list[i];
        uint64_t in = 0;
        place_of(p->from, d->rank, d->dims, at);
        for (int k = 0; k < d->rank; k++)
            in += (at[k] - r->first[k]) * step[k];
        if (r->points)
            rc = h5_virtual_move(r->deep, r->heaps, &d->type, box + in * d->type.size, p->n, err);
        if (rc == H5_OK)
            rc = h5_retype(&d->type, box + in * d->type.size, &r->o->info->type,
                           r->dst + p->to * size, p->n, err);
    }
    if (!direct)
        h5_free(box);
    r->n = 0;
    return rc;
}

/* Adds a piece that lies in one row of the source. */
static int add_piece(reading *r, uint64_t from, uint64_t to, uint64_t n, h5_error *err)
{
    const h5_dataset_info *d = r->source.found->info;
    uint64_t at[H5_RANK_MAX], first[H5_RANK_MAX], last[H5_RANK_MAX];
    if (r->deep->depth > 0)
        H5_TRY(h5_deep_spend(r->deep, 1, err));
    place_of(from, d->rank, d->dims, at);
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < d->rank; i++) {
            uint64_t end = at[i] + (i == d->rank - 1 ? n - 1 : 0);
            first[i] = r->n == 0 || at[i] < r->first[i] ? at[i] : r->first[i];
            last[i] = r->n == 0 || end > r->last[i] ? end : r->last[i];
        }
        if (r->n == 0 || (r->n < PIECES &&
                          box_size(r, first, last, d->rank) <= H5_VIRTUAL_READ_MAX / d->type.size))
            break;
        H5_TRY(flush(r, err));
    }
    memcpy(r->first, first, sizeof first);
    memcpy(r->last, last, sizeof last);
    r->list[r->n++] = (piece){from, to, n};
    return H5_OK;
}

/* n elements of the dataset's selection from number `at` on go to `to` in the buffer. */
static int add_stretch(reading *r, uint64_t at, uint64_t to, uint64_t n, h5_error *err)
{
    uint64_t most = H5_VIRTUAL_READ_MAX / r->source.found->info->type.size, from;
    if (at > r->from->total || n > r->from->total - at)
        return h5_fail(err, H5_FORMAT, r->o->oh.addr,
                       "virtual dataset: element %" PRIu64 " of a source of %" PRIu64, at + n,
                       r->from->total);
    while (n > 0) {
        uint64_t take = h5_selection_at(r->from, at, &from);
        take = take < n ? take : n;
        if (!r->same && take > most && most > 0)
            take = most;
        H5_TRY(add_piece(r, from, to, take, err));
        at += take;
        to += take;
        n -= take;
    }
    return H5_OK;
}

/* The parts of a list of blocks that lie in the hyperslab. */
static int meet_runs(reading *r, const h5_selection *s, h5_error *err)
{
    uint64_t at[H5_RANK_MAX];
    int fast = s->rank - 1;
    for (size_t i = 0; i < s->nrun; i++) {
        const h5_select_run *run = &s->run[i];
        uint64_t to = 0, lo, hi;
        int inside = 1;
        place_of(run->place, s->rank, s->dims, at);
        lo = at[fast] > r->start[fast] ? at[fast] : r->start[fast];
        hi = at[fast] + run->n < r->start[fast] + r->count[fast] ? at[fast] + run->n
                                                                 : r->start[fast] + r->count[fast];
        for (int k = 0; k < fast; k++) {
            inside &= at[k] >= r->start[k] && at[k] - r->start[k] < r->count[k];
            to = to * r->count[k] + (at[k] - r->start[k]);
        }
        to = to * r->count[fast] + (lo - r->start[fast]);
        if (inside && lo < hi)
            H5_TRY(add_stretch(r, run->before + (lo - at[fast]), to, hi - lo, err));
    }
    return H5_OK;
}

/* The part of a regular hyperslab that lies in the one that is read: a range of its elements in
** every dimension. 0 when there is none. */
static int meet_ranges(const reading *r, const h5_selection *s, uint64_t *lo, uint64_t *hi)
{
    for (int i = 0; i < s->rank; i++) {
        const h5_select_dim *d = &s->dim[i];
        lo[i] = h5_select_below(d, r->start[i]);
        hi[i] = h5_select_below(d, r->start[i] + r->count[i]);
        lo[i] = lo[i] < d->n ? lo[i] : d->n;
        hi[i] = hi[i] < d->n ? hi[i] : d->n;
        if (lo[i] >= hi[i])
            return 0;
    }
    return 1;
}

static int meet_regular(reading *r, const h5_selection *s, h5_error *err)
{
    uint64_t lo[H5_RANK_MAX], hi[H5_RANK_MAX], at[H5_RANK_MAX];
    int fast = s->rank - 1, i = 0;
    if (!meet_ranges(r, s, lo, hi))
        return H5_OK;
    memcpy(at, lo, sizeof at);
    while (i >= 0) {
        uint64_t number = 0, to = 0, n = 1, from;
        for (int k = 0; k < s->rank; k++) {
            number = number * s->dim[k].n + at[k];
            to = to * r->count[k] + (h5_select_extent(&s->dim[k], at[k] + 1) - 1 - r->start[k]);
        }
        if (fast >= 0) {
            n = h5_selection_at(s, number, &from);
            n = n < hi[fast] - at[fast] ? n : hi[fast] - at[fast];
        }
        H5_TRY(add_stretch(r, number, to, n, err));
        for (i = fast; i >= 0; i--) {
            at[i] += i == fast ? n : 1;
            if (at[i] < hi[i])
                break;
            at[i] = lo[i];
        }
    }
    return H5_OK;
}

/* Heaps of the file of the source, where its values point into. */
static int use_heaps(reading *r, h5_file *f, h5_error *err)
{
    h5_heaps *to = r->deep->heaps;
    uint64_t serial = f == r->source.other ? r->source.serial : 0;
    if (r->heaps && serial > 0 && r->serial == serial)
        return H5_OK;
    if (!to)
        return h5_fail(err, H5_UNSUPPORTED, r->o->oh.addr,
                       "virtual dataset of values that point into another file, read without "
                       "heaps to keep them in");
    if (r->heaps)
        h5_heaps_adopt(to, r->heaps);
    r->serial = serial;
    return h5_heaps_open_for(to, f, &r->heaps, err);
}

/* What one source gives: `to` is settled in the dataset. */
static int read_source(reading *r, const h5_selection *to, h5_selection *from, h5_error *err)
{
    const h5_object *source = r->source.found;
    const h5_dataset_info *d = source->info;
    if (d->space == H5_SPACE_NULL)
        return H5_OK;
    r->same = h5_type_same(&d->type, &r->o->info->type);
    r->points = source->f != r->o->f && h5_type_points(&d->type);
    if (r->points)
        H5_TRY(use_heaps(r, source->f, err));
    r->from = from;
    H5_TRY(h5_selection_settle(from, d->rank, d->dims, r->o->oh.addr, err));
    H5_TRY(to->run ? meet_runs(r, to, err) : meet_regular(r, to, err));
    return flush(r, err);
}

/* Whether the hyperslab meets a settled selection at all, before its source is opened. */
static int meets(const reading *r, const h5_selection *s)
{
    uint64_t lo[H5_RANK_MAX], hi[H5_RANK_MAX];
    return s->total > 0 && (s->run || meet_ranges(r, s, lo, hi));
}

/* A mapping with a source for each block. */
static int read_numbered(reading *r, h5_mapping *m, h5_error *err)
{
    const h5_dataset_info *d = r->o->info;
    int open = m->to.unlimited;
    const h5_select_dim *u = &m->to.dim[open];
    uint64_t first = r->start[open] > u->start && u->stride
                         ? (r->start[open] - u->start) / u->stride
                         : 0;
    for (uint64_t i = first;; i++) {
        h5_selection block;
        if (!h5_mapping_block(m, i, &block) ||
            block.dim[open].start >= r->start[open] + r->count[open])
            return H5_OK;
        if (h5_select_extent(&block.dim[open], block.dim[open].block) > d->dims[open])
            return H5_OK; // the sources have become more since the dataset was opened
        H5_TRY(h5_selection_settle(&block, d->rank, d->dims, r->o->oh.addr, err));
        if (!meets(r, &block))
            continue;
        H5_TRY(h5_source_find(&r->source, m, i, err));
        if (r->source.found)
            H5_TRY(read_source(r, &block, &m->from, err));
    }
}

static int read_mapping(reading *r, h5_mapping *m, h5_error *err)
{
    const h5_dataset_info *d = r->o->info;
    uint64_t addr = r->o->oh.addr;
    if (m->numbered)
        return read_numbered(r, m, err);
    int open = m->to.unlimited;
    if (open < 0) {
        H5_TRY(h5_selection_settle(&m->to, d->rank, d->dims, addr, err));
        if (!meets(r, &m->to))
            return H5_OK;
    }
    H5_TRY(h5_source_find(&r->source, m, 0, err));
    if (!r->source.found)
        return H5_OK;
    if (open >= 0) {
        h5_mapping_cut(m, r->source.found->info, d->dims[open]);
        H5_TRY(h5_selection_settle(&m->to, d->rank, d->dims, addr, err));
        if (!meets(r, &m->to))
            return H5_OK;
    }
    return read_source(r, &m->to, &m->from, err);
}

int h5_virtual_read(const h5_object *o, const uint64_t *start, const uint64_t *count, uint8_t *dst,
                    h5_deep *deep, h5_error *err)
{
    static const uint64_t zeros[H5_RANK_MAX];
    h5_virtual v;
    h5_runs runs;
    int more = 1;
    reading *r = h5_calloc(1, sizeof *r);
    h5_mapping *m = h5_malloc(sizeof *m);
    if (!r || !m) {
        h5_free(r);
        h5_free(m);
        return h5_fail_nomem(err, "a virtual dataset");
    }
    r->o = o;
    r->start = start;
    r->count = count;
    r->dst = dst;
    r->deep = deep;
    r->source = (h5_source){.o = o, .deep = deep};
    h5_runs_init(&runs, o->info->rank, count, count, zeros, count, zeros);
    h5_read_fill(o, &runs, dst);
    int rc = h5_virtual_open(o, &v, err);
    while (rc == H5_OK && more) {
        rc = h5_deep_spend(deep, H5_VIRTUAL_WORK_MAPPING, err);
        if (rc == H5_OK)
            rc = h5_virtual_next(&v, m, &more, err);
        if (rc == H5_OK && more)
            rc = read_mapping(r, m, err);
        h5_selection_free(&m->to);
        h5_selection_free(&m->from);
    }
    if (r->heaps) // after a failure as well: what was moved points there
        h5_heaps_adopt(deep->heaps, r->heaps);
    h5_source_close(&r->source);
    h5_virtual_close(&v);
    h5_free(r);
    h5_free(m);
    return rc;
}
