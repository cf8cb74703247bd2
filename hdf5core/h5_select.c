/*
 * h5_select.c - hyperslab arithmetic: the contiguous runs that two boxes have in common
 *
 * TESTS    t_h5_select.c
 *
 * SPDX-License-Identifier: MIT
 */
#include "h5_select.h"

enum { AHEAD = 4 }; /* runs from one that is copied to one that is asked for */

void h5_runs_init(h5_runs *r, int rank, const uint64_t *count, const uint64_t *src_dims,
                  const uint64_t *src_start, const uint64_t *dst_dims, const uint64_t *dst_start)
{
    uint64_t src_step = 1, dst_step = 1;
    int whole =
        1; // all faster dimensions are taken entirely on both sides: this one still extends the run
    r->run = 1;
    r->n = 1;
    r->src = r->dst = 0;
    r->rank = 0;
    for (int i = rank; i-- > 0;) {
        if (whole) {
            r->run *= count[i];
        } else {
            r->n *= count[i];
            r->count[i] = count[i];
            r->pos[i] = 0;
            r->src_step[i] = src_step;
            r->dst_step[i] = dst_step;
            r->rank = r->rank ? r->rank : i + 1;
        }
        whole = whole && count[i] == src_dims[i] && count[i] == dst_dims[i];
        r->src += src_start[i] * src_step;
        r->dst += dst_start[i] * dst_step;
        src_step *= src_dims[i];
        dst_step *= dst_dims[i];
    }
    if (r->run == 0)
        r->n = 0;
}

int h5_runs_next(h5_runs *r, uint64_t *src, uint64_t *dst)
{
    if (r->n == 0)
        return 0;
    *src = r->src;
    *dst = r->dst;
    r->n--;
    for (int i = r->rank; i-- > 0;) {
        r->src += r->src_step[i];
        r->dst += r->dst_step[i];
        if (++r->pos[i] < r->count[i])
            break;
        r->src -= r->src_step[i] * r->count[i];
        r->dst -= r->dst_step[i] * r->count[i];
        r->pos[i] = 0;
    }
    return 1;
}

/* Steps over one line of the fastest stepped dimension, which is at its start. */
static void skip_line(h5_runs *r, uint64_t line)
{
    uint64_t s, d;
    if (r->rank > 0) {
        int last = r->rank - 1;
        r->src += r->src_step[last] * (line - 1);
        r->dst += r->dst_step[last] * (line - 1);
        r->pos[last] = line - 1;
        r->n -= line - 1;
    }
    h5_runs_next(r, &s, &d);
}

/* memcpy, short runs in pieces whose length the compiler knows: a call a run, with the unaligned
** 64-byte stores that it ends in, cost a tenth of a read of 256-byte rows. */
static inline void copy_run(uint8_t *d, const uint8_t *s, size_t n)
{
    enum { PIECE = 256, SMALL = 64, SHORT = 1024 };
    if (n <= SHORT) {
        for (; n >= PIECE; n -= PIECE, s += PIECE, d += PIECE)
            memcpy(d, s, PIECE);
        for (; n >= SMALL; n -= SMALL, s += SMALL, d += SMALL)
            memcpy(d, s, SMALL);
    }
    if (n > 0)
        memcpy(d, s, n);
}

/* Asks for the first cache lines of a run that is to be written soon. */
static inline void touch(uint8_t *d, size_t n)
{
    enum { LINE = 64, MOST = 512 };
    for (size_t i = 0; i < n && i < MOST; i += LINE)
        __builtin_prefetch(d + i, 1, 3);
}

void h5_runs_copy(h5_runs *r, size_t size, const uint8_t *src, uint64_t src_first, uint8_t *dst)
{
    const size_t bytes = (size_t)r->run * size;
    int last = r->rank - 1;
    // The fastest stepped dimension as one loop; h5_runs_next takes the others.
    uint64_t line = r->rank > 0 ? r->count[last] : 1;
    size_t from = r->rank > 0 ? (size_t)r->src_step[last] * size : 0;
    size_t to = r->rank > 0 ? (size_t)r->dst_step[last] * size : 0;
    while (r->n > 0) {
        const uint8_t *s = src + (r->src - src_first) * size;
        uint8_t *d = dst + r->dst * size;
        for (uint64_t i = 0; i < line; i++, s += from, d += to) {
            if (i + AHEAD < line)
                touch(d + AHEAD * to, bytes);
            copy_run(d, s, bytes);
        }
        skip_line(r, line);
    }
}
