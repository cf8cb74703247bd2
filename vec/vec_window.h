/*
 * vec_window.h - a window of rows whose sums fit the first-level cache, and how postings add to it
 *
 * THREADS  one at a time
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef VEC_WINDOW_H
#define VEC_WINDOW_H

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "vec_kern.h"
#include "vec_words.h"

#define VEC_WINDOW 4096u /* ordinals: 64 groups of 64, one bit of `touched` each */

VEC_INLINE uint64_t vec_window_sized(const vec_words *q, const vec_part *p, unsigned size,
                                     const vec_cursor *c, uint32_t to, uint32_t w, double weight,
                                     double *sum)
{
    uint64_t touched = 0;

    for (uint32_t i = c->at; i < to; i++) {
        uint32_t ord = c->ord[i], dl;

        dl = size == 1   ? p->len[ord]
             : size == 2 ? vec_get16(p->len + 2 * (size_t)ord)
                         : vec_get32(p->len + 4 * (size_t)ord);
        sum[ord - w] += c->ones && dl < q->lengths_n
                            ? vec_words_part1(q, weight, dl)
                            : vec_words_part(q, weight, vec_cursor_tf(c, i), dl);
        touched |= (uint64_t)1 << ((ord - w) >> 6);
    }
    return touched;
}

/* Adds postings at..to-1 of the cursor's block to the sums of the window that starts at ordinal w;
 * a bit for each group that has some. */
static inline uint64_t vec_window_add(const vec_words *q, const vec_part *p, const vec_cursor *c,
                                      uint32_t to, uint32_t w, double weight, double *sum)
{
    switch (p->len_size) {
    case 1:
        return vec_window_sized(q, p, 1, c, to, w, weight, sum);
    case 2:
        return vec_window_sized(q, p, 2, c, to, w, weight, sum);
    default:
        return vec_window_sized(q, p, 4, c, to, w, weight, sum);
    }
}

/* All of a leaf in the window w..end-1; *next becomes the least ordinal it has from end on, if that
 * is less. 1; 0: the leaf is through; or a code. */
static inline int vec_window_leaf(const vec_words *q, const vec_part *p, vec_cursor *c,
                                  double weight, uint32_t w, uint32_t end, double *sum,
                                  uint64_t *touched, uint32_t *next)
{
    int rc = vec_cursor_seek(c, w);

    while (rc == 1 && c->ord[c->at] < end) {
        uint32_t to = c->n;

        if (c->ord[to - 1] >= end)
            for (to = c->at; c->ord[to] < end;)
                to++;
        *touched |= vec_window_add(q, p, c, to, w, weight, sum);
        c->at = to;
        if (c->at == c->n)
            rc = vec_cursor_next(c);
    }
    if (rc == 1 && c->ord[c->at] < *next)
        *next = c->ord[c->at];
    return rc;
}

/* Whether any row of the window is wanted; with gaps always "maybe". */
static inline int vec_window_wanted(const vec_words *q, const vec_part *p, uint32_t w, uint32_t end)
{
    const uint64_t *bits = q->filter ? q->filter : q->a.live;

    if (p->rowoff)
        return 1;
    for (uint32_t i = w; i < end;) {
        unsigned n = end - i < 64 ? end - i : 64;

        if (vec_bits_group(bits, p->first + i, n))
            return 1;
        i += n;
    }
    return 0;
}

/* Which of n <= 64 sums are at least so large. */
static inline uint64_t vec_window_have(const double *sum, unsigned n, double least)
{
    uint64_t have = 0;
    unsigned i = 0;

#ifdef __SSE2__ // every x86-64 has it
    __m128d x = _mm_set1_pd(least);

    for (; i + 8 <= n; i += 8) {
        unsigned a = (unsigned)_mm_movemask_pd(_mm_cmpge_pd(_mm_loadu_pd(sum + i), x)),
                 b = (unsigned)_mm_movemask_pd(_mm_cmpge_pd(_mm_loadu_pd(sum + i + 2), x)),
                 c = (unsigned)_mm_movemask_pd(_mm_cmpge_pd(_mm_loadu_pd(sum + i + 4), x)),
                 d = (unsigned)_mm_movemask_pd(_mm_cmpge_pd(_mm_loadu_pd(sum + i + 6), x));

        have |= (uint64_t)(a | b << 2 | c << 4 | d << 6) << i;
    }
#endif
    for (; i < n; i++)
        have |= (uint64_t)(sum[i] >= least) << i;
    return have;
}

/* Which of the n <= 64 rows from ordinal ord on are wanted, for a part without gaps. */
static inline uint64_t vec_window_want(const vec_words *q, const vec_part *p, uint32_t ord,
                                       unsigned n)
{
    uint64_t want = vec_bits_group(q->a.live, p->first + ord, n);

    return q->filter ? want & vec_bits_group(q->filter, p->first + ord, n) : want;
}

/* The row of an ordinal; 0: it is not wanted; or a code. */
static inline int vec_window_row(const vec_words *q, const vec_part *p, uint32_t ord, uint64_t *row)
{
    uint32_t off = vec_part_off(p, ord);

    *row = p->first + off;
    if (off > p->span)
        return VEC_FORMAT;
    return vec_bits_get(q->a.live, *row) && (!q->filter || vec_bits_get(q->filter, *row));
}

#endif
