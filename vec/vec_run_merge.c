/*
 * vec_run_merge.c - several runs into one, leaving dead rows out
 *
 * First the rows: live ones get consecutive ordinals, in the order of the runs, which is that of
 * their row numbers. Then the terms, streamed: a heap holds each run at its current term, the
 * smallest on top; the runs that share it give their postings in order, renumbered. So memory is
 * the result, four bytes a row, and the postings of one term.
 *
 * Runs are other people's bytes: that their terms and rows ascend is checked on the way.
 *
 * ERRORS   VEC_NOMEM, VEC_FORMAT, VEC_LIMIT, VEC_MISUSE (the runs' rows do not ascend)
 * THREADS  one thread at a time; the runs are only read
 *
 * SPDX-License-Identifier: MIT
 */
#include "vec_bits.h"
#include "vec_run.h"

#define DEAD UINT32_MAX

typedef struct input {
    const vec_run *run;
    uint32_t *map; // old ordinal to new, or DEAD
    uint32_t i;    // current term
    const uint8_t *s;
    uint32_t n;
} input;

typedef struct merge {
    input *in;
    size_t nin;
    input **heap;
    size_t nheap;
    const uint64_t *live;
    int renumber;    // rows get the number of live rows before them
    uint64_t seen;   // rows below this are counted in
    uint64_t before; // live ones
    uint64_t first;  // row number of the first live row
    uint32_t nrow;
    vec_buf off;
    vec_buf len;
    vec_buf ext;
    vec_post *post; // of one term; room for every row
    vec_buf pos;    // of one term
    vec_runw out;
} merge;

/* ----------------------------------------------------------------------------------------- rows */

static int add_row(merge *m, uint64_t row, uint32_t len, uint32_t ext)
{
    uint8_t b[4];
    int rc;

    if (m->nrow == 0)
        m->first = row;
    if (row - m->first > VEC_RUN_SPAN_MAX || m->nrow == VEC_RUN_ROWS_MAX)
        return VEC_LIMIT;
    vec_put32(b, (uint32_t)(row - m->first));
    rc = vec_buf_add(&m->off, b, sizeof b);
    if (rc)
        return rc;
    vec_put32(b, len);
    rc = vec_buf_add(&m->len, b, sizeof b);
    if (rc)
        return rc;
    vec_put32(b, ext);
    rc = vec_buf_add(&m->ext, b, sizeof b);
    if (rc)
        return rc;
    m->nrow++;
    return VEC_OK;
}

/* The new number of a live row; rows come in ascending order. */
static uint64_t renumbered(merge *m, uint64_t row)
{
    while (m->seen < row) {
        unsigned n = row - m->seen < 64 ? (unsigned)(row - m->seen) : 64;

        m->before += vec_bits_popcount(vec_bits_group(m->live, m->seen, n));
        m->seen += n;
    }
    return m->before;
}

static int add_rows(merge *m, input *in)
{
    const vec_part *p = &in->run->part;
    uint64_t prev = 0;

    in->map = vec_alloc_array(p->nrow, sizeof *in->map);
    if (!in->map)
        return VEC_NOMEM;
    for (uint32_t i = 0; i < p->nrow; i++) {
        uint64_t row = p->first + vec_part_off(p, i);
        int rc;

        if ((i > 0 && row <= prev) || row > p->first + p->span)
            return VEC_FORMAT;
        prev = row;
        in->map[i] = DEAD;
        if (m->live && !vec_bits_get(m->live, row))
            continue;
        in->map[i] = m->nrow;
        rc = add_row(m, m->renumber ? renumbered(m, row) : row, vec_part_len(p, i),
                     vec_part_ext(p, i));
        if (rc)
            return rc;
    }
    return VEC_OK;
}

/* ---------------------------------------------------------------------------------------- terms */

static int before(const input *a, const input *b)
{
    int d = vec_term_cmp(a->s, a->n, b->s, b->n);

    return d ? d < 0 : a < b;
}

static void sink(merge *m, size_t i)
{
    input *x = m->heap[i];

    for (;;) {
        size_t c = 2 * i + 1;

        if (c >= m->nheap)
            break;
        if (c + 1 < m->nheap && before(m->heap[c + 1], m->heap[c]))
            c++;
        if (!before(m->heap[c], x))
            break;
        m->heap[i] = m->heap[c];
        i = c;
    }
    m->heap[i] = x;
}

/* Moves the run on top of the heap to its next term, or out. */
static int advance(merge *m)
{
    input *in = m->heap[0];
    const uint8_t *prev = in->s;
    uint32_t prev_n = in->n;

    in->i++;
    if (in->i == in->run->nterm) {
        m->heap[0] = m->heap[--m->nheap];
    } else {
        int rc = vec_run_term(in->run, in->i, &in->s, &in->n);

        if (rc)
            return rc;
        if (vec_term_cmp(prev, prev_n, in->s, in->n) >= 0)
            return VEC_FORMAT;
    }
    if (m->nheap)
        sink(m, 0);
    return VEC_OK;
}

/* The positions of posting i of the block at hand go behind those that are there. */
static int take_positions(merge *m, vec_cursor *c, uint32_t i, vec_post *post)
{
    *post = (vec_post){0, vec_cursor_tf(c, i), (uint32_t)(m->pos.n / 4)};
    return m->pos.n / 4 > UINT32_MAX - post->tf ? VEC_LIMIT : vec_cursor_positions(c, i, &m->pos);
}

/* Appends the live postings of the run's current term to m->post. */
static int add_postings(merge *m, const input *in, uint32_t *df)
{
    vec_cursor c;
    vec_ref ref;
    int rc = vec_run_ref(in->run, in->i, &ref);

    if (rc || (rc = vec_cursor_open(&c, &ref, in->run->part.nrow)))
        return rc;
    while ((rc = vec_cursor_next(&c)) == 1) {
        for (uint32_t i = 0; i < c.n; i++) {
            uint32_t ord = in->map[c.ord[i]];

            if (ord == DEAD)
                continue;
            if (*df && ord <= m->post[*df - 1].ord)
                return VEC_FORMAT;
            if ((rc = take_positions(m, &c, i, &m->post[*df])))
                return rc;
            m->post[(*df)++].ord = ord;
        }
    }
    return rc;
}

static int merge_terms(merge *m)
{
    int rc = VEC_OK;

    for (size_t i = 0; i < m->nin && !rc; i++) {
        if (m->in[i].run->nterm == 0)
            continue;
        rc = vec_run_term(m->in[i].run, 0, &m->in[i].s, &m->in[i].n);
        m->heap[m->nheap++] = &m->in[i];
    }
    for (size_t i = m->nheap / 2; i-- > 0 && !rc;)
        sink(m, i);
    while (m->nheap && !rc) {
        const uint8_t *s = m->heap[0]->s;
        uint32_t n = m->heap[0]->n, df = 0;

        m->pos.n = 0;

        do {
            rc = add_postings(m, m->heap[0], &df);
            if (!rc)
                rc = advance(m);
        } while (!rc && m->nheap && vec_term_cmp(s, n, m->heap[0]->s, m->heap[0]->n) == 0);
        if (!rc && df)
            rc = vec_runw_term(&m->out, s, n, m->post, df, (const uint32_t *)(const void *)m->pos.p,
                               m->len.p);
    }
    return rc;
}

static int check_order(vec_run *const *runs, size_t nrun)
{
    const vec_run *prev = NULL;

    for (size_t i = 0; i < nrun; i++) {
        if (runs[i]->part.nrow == 0)
            continue;
        if (prev && vec_run_first(runs[i]) <= vec_run_last(prev))
            return VEC_MISUSE;
        prev = runs[i];
    }
    return VEC_OK;
}

static int merge_all(vec_run *const *runs, size_t nrun, const uint64_t *live, int renumber,
                     uint8_t **bytes, size_t *n)
{
    merge m = {.nin = nrun, .live = live, .renumber = renumber};
    int rc = check_order(runs, nrun);

    *bytes = NULL;
    *n = 0;
    if (rc)
        return rc;
    rc = VEC_NOMEM;
    m.in = vec_alloc_zero(nrun, sizeof *m.in);
    m.heap = vec_alloc_array(nrun, sizeof *m.heap);
    if (!m.in || !m.heap)
        goto done;
    rc = VEC_OK;
    for (size_t i = 0; i < nrun && !rc; i++) {
        m.in[i].run = runs[i];
        rc = add_rows(&m, &m.in[i]);
    }
    if (rc)
        goto done;
    m.post = vec_alloc_array(m.nrow, sizeof *m.post);
    rc = m.post ? merge_terms(&m) : VEC_NOMEM;
    if (!rc)
        rc = vec_runw_image(&m.out, m.first, m.nrow, m.off.p, m.len.p, m.ext.p, bytes, n);
done:
    for (size_t i = 0; m.in && i < nrun; i++)
        vec_free(m.in[i].map);
    vec_free(m.in);
    vec_free(m.heap);
    vec_free(m.post);
    vec_buf_free(&m.off);
    vec_buf_free(&m.len);
    vec_buf_free(&m.ext);
    vec_buf_free(&m.pos);
    vec_runw_free(&m.out);
    return rc;
}

int vec_run_merge(vec_run *const *runs, size_t nrun, const uint64_t *live, uint8_t **bytes,
                  size_t *n)
{
    return merge_all(runs, nrun, live, 0, bytes, n);
}

int vec_run_compact(vec_run *const *runs, size_t nrun, const uint64_t *live, uint8_t **bytes,
                    size_t *n)
{
    return merge_all(runs, nrun, live, 1, bytes, n);
}
