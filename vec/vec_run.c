/*
 * vec_run.c - reading a text image: opening, finding a term, walking postings, checking it whole
 *
 * Opening looks at the header only: sizes of all sections follow from it and must add up to the
 * bytes there are. Offsets, terms and blocks are checked each time they are used, which costs a
 * few comparisons and means that a store of any size opens without reading its index.
 *
 * FORMAT   in vec_run.h
 * ERRORS   VEC_FORMAT; VEC_NOMEM from vec_run_open
 * THREADS  a run is read by many threads
 *
 * SPDX-License-Identifier: MIT
 */
#include "vec_run.h"

static int parse(const uint8_t *bytes, size_t n, vec_run *r)
{
    vec_part *p = &r->part;
    uint64_t at = VEC_RUN_HEADER;
    uint32_t gaps;

    if (n < VEC_RUN_HEADER || n > VEC_RUN_BYTES_MAX || memcmp(bytes, VEC_RUN_MAGIC, 8) != 0)
        return VEC_FORMAT;
    p->first = vec_get64(bytes + 16);
    p->nrow = vec_get32(bytes + 24);
    p->span = vec_get32(bytes + 28);
    p->len_size = vec_get32(bytes + 12);
    p->len_max = vec_get32(bytes + 40);
    p->len_total = vec_get64(bytes + 32);
    p->ext_size = vec_get32(bytes + 56);
    p->ext_total = vec_get64(bytes + 64);
    r->ext_max = vec_get32(bytes + 60);
    r->nterm = vec_get32(bytes + 44);
    r->terms_n = vec_get32(bytes + 48);
    r->posts_n = vec_get32(bytes + 52);
    gaps = p->nrow && p->span != p->nrow - 1;
    if (vec_get32(bytes + 8) != VEC_RUN_VERSION || vec_get64(bytes + 72) != 0 ||
        (p->len_size != 1 && p->len_size != 2 && p->len_size != 4) ||
        (p->ext_size != 0 && p->ext_size != 1 && p->ext_size != 2 && p->ext_size != 4) ||
        (p->nrow ? p->span < p->nrow - 1 : p->span || p->first) || p->span > VEC_RUN_SPAN_MAX ||
        p->first > UINT64_MAX - p->span)
        return VEC_FORMAT;
    // Products of 32-bit numbers with at most 8 bytes each: no sum of these overflows 64 bits.
    if (at + (gaps ? 4 * (uint64_t)p->nrow : 0) + (p->len_size + p->ext_size) * (uint64_t)p->nrow +
            8 * ((uint64_t)r->nterm + 1) + r->terms_n + r->posts_n + VEC_RUN_TAIL !=
        n)
        return VEC_FORMAT;
    p->rowoff = gaps ? bytes + at : NULL;
    at += gaps ? 4 * (uint64_t)p->nrow : 0;
    p->len = bytes + at;
    at += p->len_size * (uint64_t)p->nrow;
    p->ext = bytes + at;
    at += p->ext_size * (uint64_t)p->nrow;
    r->term_off = bytes + at;
    at += 4 * ((uint64_t)r->nterm + 1);
    r->post_off = bytes + at;
    at += 4 * ((uint64_t)r->nterm + 1);
    r->terms = bytes + at;
    r->posts = r->terms + r->terms_n;
    return VEC_OK;
}

int vec_run_open(const uint8_t *bytes, size_t n, vec_run **out)
{
    vec_run r = {0};
    int rc = parse(bytes, n, &r);

    *out = NULL;
    if (rc)
        return rc;
    *out = vec_alloc(sizeof r);
    if (!*out)
        return VEC_NOMEM;
    **out = r;
    return VEC_OK;
}

void vec_run_close(vec_run *r)
{
    vec_free(r);
}

uint64_t vec_run_first(const vec_run *r)
{
    return r->part.first;
}

uint64_t vec_run_last(const vec_run *r)
{
    return r->part.first + r->part.span;
}

int vec_run_row(const vec_run *r, uint64_t i, uint64_t *row)
{
    uint32_t off;

    *row = 0;
    if (i >= r->part.nrow)
        return VEC_MISUSE;
    off = vec_part_off(&r->part, (uint32_t)i);
    if (off > r->part.span)
        return VEC_FORMAT;
    *row = r->part.first + off;
    return VEC_OK;
}

uint64_t vec_run_rows(const vec_run *r)
{
    return r->part.nrow;
}

int vec_run_term(const vec_run *r, uint32_t i, const uint8_t **s, uint32_t *n)
{
    uint32_t from = vec_get32(r->term_off + 4 * (size_t)i);
    uint32_t to = vec_get32(r->term_off + 4 * ((size_t)i + 1));

    if (from > to || to > r->terms_n || to - from > VEC_TERM_MAX)
        return VEC_FORMAT;
    *s = r->terms + from;
    *n = to - from;
    return VEC_OK;
}

int vec_run_ref(const vec_run *r, uint32_t i, vec_ref *out)
{
    uint32_t from = vec_get32(r->post_off + 4 * (size_t)i);
    uint32_t to = vec_get32(r->post_off + 4 * ((size_t)i + 1));
    size_t used;

    *out = (vec_ref){NULL, 0, 0, NULL, NULL};
    if (from > to || to > r->posts_n)
        return VEC_FORMAT;
    used = vec_get_varint(r->posts + from, r->posts + to, &out->df);
    if (!used || out->df == 0 || out->df > r->part.nrow) {
        out->df = 0;
        return VEC_FORMAT;
    }
    out->bytes = r->posts + from + used;
    out->nbytes = (uint32_t)(to - from - used);
    return VEC_OK;
}

/* The first term that is not below s; *same: it is s. */
static int lower_bound(const vec_run *r, const uint8_t *s, uint32_t n, uint32_t *at, int *same)
{
    uint32_t lo = 0, hi = r->nterm;

    *same = 0;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2, len;
        const uint8_t *term;
        int rc = vec_run_term(r, mid, &term, &len), d;

        if (rc)
            return rc;
        d = vec_term_cmp(s, n, term, len);
        if (d == 0) {
            *same = 1;
            lo = mid;
            break;
        }
        if (d < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    *at = lo;
    return VEC_OK;
}

int vec_run_find(const vec_run *r, const uint8_t *s, uint32_t n, vec_ref *out)
{
    uint32_t at;
    int same, rc = lower_bound(r, s, n, &at, &same);

    *out = (vec_ref){NULL, 0, 0, NULL, NULL};
    return rc ? rc : same ? vec_run_ref(r, at, out) : VEC_OK;
}

int vec_run_prefix(const vec_run *r, const uint8_t *s, uint32_t n, vec_each_ref *fn, void *ctx)
{
    uint32_t at;
    int same, rc = lower_bound(r, s, n, &at, &same);

    for (; !rc && at < r->nterm; at++) {
        const uint8_t *term;
        uint32_t len;
        vec_ref ref;

        rc = vec_run_term(r, at, &term, &len);
        if (rc || len < n || memcmp(term, s, n) != 0)
            break;
        rc = vec_run_ref(r, at, &ref);
        rc = rc ? rc : fn(ctx, &ref);
    }
    return rc;
}

/* -------------------------------------------------------------------------------------- cursors */

int vec_cursor_open(vec_cursor *c, const vec_ref *ref, uint32_t nrow)
{
    uint32_t skips;

    c->n = c->at = 0;
    c->nrow = nrow;
    c->df = ref->df;
    c->chunk = ref->chunk;
    c->chunk_at = 0;
    c->pos = ref->pos;
    c->post = NULL;
    c->block = 0;
    c->nblock = ref->bytes ? (ref->df - 1) / VEC_BLOCK_POSTINGS + 1 : 0;
    c->skips = NULL;
    c->blocks = ref->bytes;
    c->nbytes = ref->nbytes;
    c->nblocks = 0;
    c->positions = NULL;
    c->npositions = 0;
    if (c->nblock < 2)
        return VEC_OK;
    if (ref->nbytes / VEC_SKIP_BYTES < c->nblock)
        return VEC_FORMAT;
    skips = VEC_SKIP_BYTES * c->nblock;
    c->skips = ref->bytes;
    c->blocks += skips;
    c->nbytes -= skips;
    c->nblocks = vec_get32(c->skips + skips - VEC_SKIP_BYTES + 4);
    return c->nblocks <= c->nbytes ? VEC_OK : VEC_FORMAT;
}

static inline uint32_t unpack1(const uint8_t *p, uint64_t i, uint32_t bits)
{
    uint64_t at = i * bits;

    return (uint32_t)(vec_get64(p + (at >> 3)) >> (at & 7) & (((uint64_t)1 << bits) - 1));
}

/* Decodes the n postings of the block at p, which follow ordinal prev (-1: none). It ends at end,
 * or, alone in its list, where its positions begin. */
static int decode(vec_cursor *c, const uint8_t *p, const uint8_t *end, uint32_t n, int64_t prev)
{
    uint32_t delta_bits, tf_bits;
    size_t deltas, counts;
    int64_t ord = prev;

    if (end - p < 2)
        return VEC_FORMAT;
    delta_bits = p[0];
    tf_bits = p[1];
    deltas = ((size_t)n * delta_bits + 7) / 8;
    counts = ((size_t)n * tf_bits + 7) / 8;
    if (delta_bits > 32 || tf_bits > 32 ||
        (c->skips ? (size_t)(end - p) != 2 + deltas + counts
                  : (size_t)(end - p) < 2 + deltas + counts))
        return VEC_FORMAT;
    if (!c->skips) {
        c->positions = p + 2 + deltas + counts;
        c->npositions = (uint32_t)(end - c->positions);
    }
    p += 2;
    for (uint32_t i = 0; i < n; i++) {
        ord += (int64_t)unpack1(p, i, delta_bits) + 1;
        c->ord[i] = (uint32_t)ord;
    }
    // The sum has 64 bits and only grows: if the last ordinal is in range, all are.
    if (ord >= (int64_t)c->nrow)
        return VEC_FORMAT;
    p += deltas;
    c->ones = tf_bits == 0;
    if (!c->ones)
        for (uint32_t i = 0; i < n; i++)
            c->tf[i] = unpack1(p, i, tf_bits) + 1;
    c->n = n;
    c->at = 0;
    return 1;
}

/* Field 4: the block's end, 8: that of its positions. */
static uint32_t skip_get(const vec_cursor *c, uint32_t block, unsigned field)
{
    return vec_get32(c->skips + VEC_SKIP_BYTES * (size_t)block + field);
}

/* Bytes [from, to) of a block, or of its positions. */
static int skip_range(const vec_cursor *c, uint32_t b, unsigned field, uint32_t size,
                      uint32_t *from, uint32_t *to)
{
    *from = b ? skip_get(c, b - 1, field) : 0;
    *to = skip_get(c, b, field);
    return *from > *to || *to > size ? VEC_FORMAT : VEC_OK;
}

static int next_block(vec_cursor *c)
{
    uint32_t b = c->block, n = VEC_BLOCK_POSTINGS, from = 0, to = c->nbytes;
    int64_t prev = -1;
    int rc;

    if (b + 1 == c->nblock)
        n = c->df - b * VEC_BLOCK_POSTINGS;
    if (c->skips) {
        uint32_t pos_from, pos_to;

        rc = skip_range(c, b, 4, c->nblocks, &from, &to);
        rc = rc ? rc : skip_range(c, b, 8, c->nbytes - c->nblocks, &pos_from, &pos_to);
        if (rc)
            return rc;
        prev = b ? (int64_t)vec_cursor_last(c, b - 1) : -1;
        c->positions = c->blocks + c->nblocks + pos_from;
        c->npositions = pos_to - pos_from;
    }
    rc = decode(c, c->blocks + from, c->blocks + to, n, prev);
    if (rc == 1 && c->skips && c->ord[n - 1] != vec_cursor_last(c, b))
        rc = VEC_FORMAT;
    if (rc != 1)
        c->n = c->at = 0;
    c->pos_i = 0;
    c->pos_n = 0;
    c->block++;
    return rc;
}

static int next_chunk(vec_cursor *c)
{
    const vec_post *p;
    uint32_t n;

    while (c->chunk && c->chunk_at == c->chunk->n) {
        c->chunk = c->chunk->next;
        c->chunk_at = 0;
    }
    if (!c->chunk)
        return 0;
    p = c->post = c->chunk->post + c->chunk_at;
    n = c->chunk->n - c->chunk_at;
    n = n < VEC_BLOCK_POSTINGS ? n : VEC_BLOCK_POSTINGS;
    for (uint32_t i = 0; i < n; i++) {
        c->ord[i] = p[i].ord;
        c->tf[i] = p[i].tf;
    }
    c->ones = 0;
    c->n = n;
    c->at = 0;
    c->chunk_at += n;
    return 1;
}

int vec_cursor_next(vec_cursor *c)
{
    c->n = c->at = 0;
    if (c->block < c->nblock)
        return next_block(c);
    return c->chunk ? next_chunk(c) : 0;
}

int vec_cursor_seek(vec_cursor *c, uint32_t ord)
{
    for (;;) {
        int rc;

        if (c->at < c->n && c->ord[c->n - 1] >= ord) {
            while (c->ord[c->at] < ord)
                c->at++;
            return 1;
        }
        while (c->skips && c->block < c->nblock && vec_cursor_last(c, c->block) < ord)
            c->block++;
        rc = vec_cursor_next(c);
        if (rc != 1)
            return rc;
    }
}

/* ------------------------------------------------------------------------------------ positions */

/* Moves the reader to posting i; every occurrence up to its last must have its bits. */
static int to_posting(vec_cursor *c, uint32_t i, uint32_t *bits)
{
    if (c->npositions < 1 || c->positions[0] > 32)
        return VEC_FORMAT;
    *bits = c->positions[0];
    if (i < c->pos_i) {
        c->pos_i = 0;
        c->pos_n = 0;
    }
    for (; c->pos_i < i; c->pos_i++)
        c->pos_n += vec_cursor_tf(c, c->pos_i);
    return *bits * (c->pos_n + vec_cursor_tf(c, i)) > 8 * (uint64_t)(c->npositions - 1) ? VEC_FORMAT
                                                                                        : VEC_OK;
}

int vec_cursor_positions(vec_cursor *c, uint32_t i, vec_buf *out)
{
    uint32_t bits, tf = vec_cursor_tf(c, i);
    uint64_t pos = 0;
    int rc;

    if (c->post)
        return c->pos ? vec_buf_add(out, c->pos + c->post[i].at, 4 * (size_t)tf) : VEC_OK;
    if ((rc = to_posting(c, i, &bits)))
        return rc;
    if (bits == 0 && tf > 1) // to_posting cannot bound these
        return VEC_FORMAT;
    if ((rc = vec_buf_reserve(out, 4 * (size_t)tf)))
        return rc;
    for (uint32_t k = 0; k < tf; k++) {
        uint32_t step = bits ? unpack1(c->positions + 1, c->pos_n + k, bits) : 0, p;

        pos += step;
        if (pos > UINT32_MAX || (k > 0 && step == 0))
            return VEC_FORMAT;
        p = (uint32_t)pos;
        memcpy(out->p + out->n, &p, 4);
        out->n += 4;
    }
    return VEC_OK;
}

/* ---------------------------------------------------------------------------------------- check */

static unsigned least_size(uint32_t max)
{
    return max < 256 ? 1 : max < 65536 ? 2 : 4;
}

static int check_rows(const vec_run *r)
{
    const vec_part *p = &r->part;
    uint64_t total = 0, ext_total = 0;
    uint32_t max = 0, ext_max = 0;

    for (uint32_t i = 0; i < p->nrow; i++) {
        uint32_t len = vec_part_len(p, i), ext = vec_part_ext(p, i);

        total += len;
        ext_total += ext;
        max = max > len ? max : len;
        ext_max = ext_max > ext ? ext_max : ext;
        if (p->rowoff && i > 0 && vec_part_off(p, i) <= vec_part_off(p, i - 1))
            return VEC_FORMAT;
    }
    if (p->rowoff && (vec_part_off(p, 0) != 0 || vec_part_off(p, p->nrow - 1) != p->span))
        return VEC_FORMAT;
    if (total != p->len_total || max != p->len_max || p->len_size != least_size(max) ||
        ext_total != p->ext_total || ext_max != r->ext_max ||
        p->ext_size != (ext_max ? least_size(ext_max) : 0))
        return VEC_FORMAT;
    return VEC_OK;
}

/* Is there a pair that bounds the posting? */
static int bounded(const uint8_t *maxima, uint32_t tf, uint32_t len)
{
    for (uint32_t k = 0; k < VEC_MAXIMA; k++)
        if (maxima[2 * k] >= (tf < 255 ? tf : 255) && maxima[2 * k + 1] <= len)
            return 1;
    return 0;
}

/* The block at hand: bounds and positions; adds its occurrences to *sum. */
static int check_block(const vec_run *r, vec_cursor *c, int first_field, vec_buf *pos,
                       uint64_t *sum)
{
    for (uint32_t k = 0; k < c->n; k++) {
        uint32_t len = vec_part_len(&r->part, c->ord[k]), tf = vec_cursor_tf(c, k), last;
        int rc;

        *sum += first_field ? tf : 0;
        pos->n = 0;
        if ((rc = vec_cursor_positions(c, k, pos)))
            return rc;
        memcpy(&last, pos->p + pos->n - sizeof last, sizeof last);
        if (last >= (first_field ? len : vec_part_ext(&r->part, c->ord[k])) ||
            (c->skips && !bounded(vec_cursor_maxima(c, c->block - 1), tf, len)))
            return VEC_FORMAT;
    }
    // Nothing is left over, but for the padding of the last byte.
    return (c->positions[0] * (c->pos_n + vec_cursor_tf(c, c->n - 1)) + 7) / 8 + 1 == c->npositions
               ? VEC_OK
               : VEC_FORMAT;
}

/* All postings of one term; adds its occurrences in the first field to *sum. */
static int check_postings(const vec_run *r, uint32_t i, int first_field, vec_buf *pos,
                          uint64_t *sum)
{
    vec_cursor c;
    vec_ref ref;
    uint32_t seen = 0;
    int rc = vec_run_ref(r, i, &ref);

    if (rc || (rc = vec_cursor_open(&c, &ref, r->part.nrow)))
        return rc;
    if (c.skips && skip_get(&c, c.nblock - 1, 8) != c.nbytes - c.nblocks)
        return VEC_FORMAT;
    while ((rc = vec_cursor_next(&c)) == 1) {
        // Ordinals ascend by construction, over the edge of a block, too: see next_block.
        seen += c.n;
        if ((rc = check_block(r, &c, first_field, pos, sum)))
            return rc;
    }
    return rc ? rc : seen == ref.df ? VEC_OK : VEC_FORMAT;
}

static int check_terms(const vec_run *r, vec_buf *pos)
{
    const uint8_t *prev = NULL, *s = NULL;
    uint32_t prev_n = 0, n = 0;
    uint64_t sum = 0;

    for (uint32_t i = 0; i < r->nterm; i++) {
        int rc = vec_run_term(r, i, &s, &n);

        if (rc)
            return rc;
        if (i > 0 && vec_term_cmp(prev, prev_n, s, n) >= 0)
            return VEC_FORMAT;
        rc = check_postings(r, i, !(n && s[0] > 0 && s[0] < VEC_FIELDS), pos, &sum);
        if (rc)
            return rc;
        prev = s;
        prev_n = n;
    }
    // Every position holds a token at least.
    return sum >= r->part.len_total ? VEC_OK : VEC_FORMAT;
}

int vec_run_check(const vec_run *r)
{
    vec_buf pos = {0};
    int rc = check_rows(r);

    if (rc)
        return rc;
    if (vec_get32(r->term_off) != 0 || vec_get32(r->post_off) != 0 ||
        vec_get32(r->term_off + 4 * (size_t)r->nterm) != r->terms_n ||
        vec_get32(r->post_off + 4 * (size_t)r->nterm) != r->posts_n ||
        vec_get64(r->posts + r->posts_n) != 0)
        return VEC_FORMAT;
    rc = check_terms(r, &pos);
    vec_buf_free(&pos);
    return rc;
}
