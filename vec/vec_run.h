/*
 * vec_run.h - the text image, its reader and writer, and the two views that searching shares: a
 * part (rows and lengths) and a cursor (the postings of one term)
 *
 * An image is written once, by vec_text_image or vec_run_merge, and read in place. Everything is
 * little-endian; nothing needs alignment. Rows are numbered by ordinals 0..nrow-1 in the order of
 * their row numbers, so that postings and lengths stay tight whatever gaps the rows have.
 *
 * FORMAT   version 2. Sections follow each other without a gap; their sizes follow from the header,
 *          and the image must end where the last does.
 *
 *   offset  size  field
 *   0       8     "vec-run\n"
 *   8       4     version, 2
 *   12      4     bytes of one length, 1, 2 or 4: the least that holds the largest
 *   16      8     first row number; 0 when there are no rows
 *   24      4     nrow
 *   28      4     last row number minus first; nrow - 1 means that the rows have no gaps
 *   32      8     sum of the lengths
 *   40      4     largest length
 *   44      4     nterm
 *   48      4     bytes of the terms
 *   52      4     bytes of the postings
 *   56      4     bytes of one extra length, 0 (all are 0), 1, 2 or 4
 *   60      4     largest extra length
 *   64      8     sum of the extra lengths
 *   72      8     0
 *   80            row table: nrow times u32, row number minus first, ascending; only with gaps
 *                 lengths (positions of the first field): nrow times 1, 2 or 4 bytes
 *                 extra lengths (positions of the other fields): nrow times 0, 1, 2 or 4 bytes
 *                 term offsets: nterm + 1 times u32, into the terms; the first is 0
 *                 posting offsets: nterm + 1 times u32, into the postings; the first is 0
 *                 terms: ascending as bytes, each once, 0 to VEC_TERM_MAX bytes, back to back
 *                 postings, one list a term:
 *                   varint   df, number of postings, at least 1
 *                   skips    only when df > 128; for each block u32 its last ordinal, u32 its end,
 *                            counted from the first block, u32 the end of its positions, counted
 *                            from the first, and four maxima: u8 count, u8 length
 *                   blocks   of 128 postings, the last of what is left
 *                   positions, a stretch a block
 *                 8 bytes of 0: unpacking reads eight bytes at a time
 *
 *   A term is a token as it is in the first field, but with a byte 0 in front where it begins with
 *   a byte below VEC_FIELDS; in field f > 0 it has a byte f in front.
 *
 *   A block: u8 width of a delta (0-32 bits), u8 width of a count (0-32), the deltas, the counts;
 *   both packed from the lowest bit up and padded to a byte. A delta is the ordinal minus the one
 *   before (-1 before the first) minus 1; a count is the number of the term's occurrences in the
 *   row minus 1, so that rows that hold it once cost no bits. What shares a position counts once.
 *
 *   Positions of a block: u8 width (0-32 bits), then for each occurrence its position minus that of
 *   the one before in the same row (0 before the first), packed likewise. Ranking never reads them.
 *
 *   Maxima of a block: every posting has a pair with a count at least as large and a length at most
 *   as large as its own, both cut to 255; a count of 255 means any, pairs 0, 0 stand for nothing.
 *   So they bound a score for any k1, b and mean length.
 *
 *   Bit packing rather than a varint a posting: unpacking has no branch that depends on the data.
 *
 * OWNERSHIP  parts and cursors point into the run or text they came from
 * ERRORS     VEC_FORMAT wherever bytes contradict each other; VEC_LIMIT when writing more than the
 *            offsets can address
 * THREADS    runs and parts are read by many threads; a cursor, a writer by one
 * TESTS      t_vec_run.c, t_vec_bm25.c, fuzz/fuzz_vec_run.c
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef VEC_RUN_H
#define VEC_RUN_H

#include "vec_base.h"

#define VEC_TERM_MAX   (VEC_TOKEN_MAX + 1) /* bytes of a term: a token and its field */
#define VEC_SKIP_BYTES 20u                 /* of one block's entry in the skips */
#define VEC_MAXIMA     4u                  /* pairs of a block */

/* ---------------------------------------------------------------------------------------- parts */

/* The rows of a run or a text, by ordinal. */
typedef struct vec_part {
    uint64_t first; /* number of the first row */
    uint32_t nrow;
    uint32_t span;         /* last row number minus first */
    const uint8_t *rowoff; /* nrow times u32: row number minus first, not yet checked against span;
                              NULL: ordinal = row number minus first */
    const uint8_t *len;    /* nrow lengths of len_size bytes */
    unsigned len_size;     /* 1, 2 or 4 */
    uint32_t len_max;      /* claimed, not checked: good for sizing tables, not for indexing them */
    uint64_t len_total;    /* claimed, not checked */
    const uint8_t *ext;    /* nrow extra lengths of ext_size bytes */
    unsigned ext_size;     /* 0: all are 0; 1, 2 or 4 */
    uint64_t ext_total;    /* claimed, not checked */
} vec_part;

static inline uint32_t vec_part_off(const vec_part *p, uint32_t ord)
{
    return p->rowoff ? vec_get32(p->rowoff + 4 * (size_t)ord) : ord;
}

static inline uint32_t vec_get_sized(const uint8_t *p, unsigned size, uint32_t ord)
{
    switch (size) {
    case 0:
        return 0;
    case 1:
        return p[ord];
    case 2:
        return vec_get16(p + 2 * (size_t)ord);
    default:
        return vec_get32(p + 4 * (size_t)ord);
    }
}

static inline uint32_t vec_part_len(const vec_part *p, uint32_t ord)
{
    return vec_get_sized(p->len, p->len_size, ord);
}

static inline uint32_t vec_part_ext(const vec_part *p, uint32_t ord)
{
    return vec_get_sized(p->ext, p->ext_size, ord);
}

/* ------------------------------------------------------------------------------------- postings */

typedef struct vec_post {
    uint32_t ord;
    uint32_t tf;
    uint32_t at; /* the first of its tf positions in an array of all */
} vec_post;

/* A stretch of postings in memory. */
typedef struct vec_chunk {
    struct vec_chunk *next;
    uint32_t n;
    uint32_t cap;
    vec_post post[];
} vec_chunk;

/* Where the postings of one term are; exactly one of bytes and chunk is set, none when df is 0. */
typedef struct vec_ref {
    const uint8_t *bytes; /* skips, blocks, positions; followed by 8 readable bytes */
    uint32_t nbytes;
    uint32_t df;
    const vec_chunk *chunk;
    const uint32_t *pos; /* with chunk: the array that vec_post.at points into, or NULL */
} vec_ref;

/* Walks the postings of one term block by block. */
typedef struct vec_cursor {
    uint32_t n;  /* postings of the block at hand */
    uint32_t at; /* the first of them that is still to be used */
    int ones;    /* every count of the block is 1, and tf is not filled */
    uint32_t nrow;
    uint32_t df;
    uint32_t nblock;
    uint32_t block;       /* the next one */
    const uint8_t *skips; /* NULL: a single block */
    const uint8_t *blocks;
    uint32_t nbytes;          /* of the blocks and the positions */
    uint32_t nblocks;         /* bytes of the blocks alone; with skips */
    const uint8_t *positions; /* of the block at hand */
    uint32_t npositions;
    uint32_t pos_i;       /* the position reader stands before the posting pos_i, ... */
    uint64_t pos_n;       /* ... which so many occurrences precede */
    const vec_post *post; /* in memory: the postings at hand */
    const uint32_t *pos;
    const vec_chunk *chunk;
    uint32_t chunk_at;
    uint32_t ord[VEC_BLOCK_POSTINGS];
    uint32_t tf[VEC_BLOCK_POSTINGS];
} vec_cursor;

/* Before the first posting. nrow bounds the ordinals. */
int vec_cursor_open(vec_cursor *c, const vec_ref *ref, uint32_t nrow);
/* To the next block; 1 = there is one (at = 0), 0 = no more, or VEC_FORMAT. */
int vec_cursor_next(vec_cursor *c);
/* Forward, to the first posting with an ordinal of at least ord; results as above. */
int vec_cursor_seek(vec_cursor *c, uint32_t ord);

/* Appends the tf positions of posting i of the block at hand to out, as uint32_t, ascending.
 * Cheapest in the order of i. */
int vec_cursor_positions(vec_cursor *c, uint32_t i, vec_buf *out);

/* The largest score part that a posting of block b can have (see vec_maxima), without decoding. */
static inline const uint8_t *vec_cursor_maxima(const vec_cursor *c, uint32_t b)
{
    return c->skips + VEC_SKIP_BYTES * (size_t)b + 12;
}

static inline uint32_t vec_cursor_last(const vec_cursor *c, uint32_t b)
{
    return vec_get32(c->skips + VEC_SKIP_BYTES * (size_t)b);
}

static inline uint32_t vec_cursor_tf(const vec_cursor *c, uint32_t i)
{
    return c->ones ? 1 : c->tf[i];
}

/* ----------------------------------------------------------------------------------------- runs */

struct vec_run {
    vec_part part;
    uint32_t nterm;
    uint32_t terms_n;
    uint32_t posts_n;
    uint32_t ext_max; /* claimed */
    const uint8_t *term_off;
    const uint8_t *post_off;
    const uint8_t *terms;
    const uint8_t *posts;
};

/* The i-th term, i < nterm. */
int vec_run_term(const vec_run *r, uint32_t i, const uint8_t **s, uint32_t *n);
/* Its postings. */
int vec_run_ref(const vec_run *r, uint32_t i, vec_ref *out);
/* The postings of a term; df = 0 when it is not there. */
int vec_run_find(const vec_run *r, const uint8_t *s, uint32_t n, vec_ref *out);

const vec_part *vec_text_part(const vec_text *t, vec_part *buf);
void vec_text_find(const vec_text *t, const uint8_t *s, uint32_t n, vec_ref *out);

/* Terms that begin with these bytes; calls back until fn answers something else than VEC_OK, which
 * is then the result. */
typedef int vec_each_ref(void *ctx, const vec_ref *ref);
int vec_run_prefix(const vec_run *r, const uint8_t *s, uint32_t n, vec_each_ref *fn, void *ctx);
int vec_text_prefix(const vec_text *t, const uint8_t *s, uint32_t n, vec_each_ref *fn, void *ctx);

/* The term of a token in a field; key has room for VEC_TERM_MAX. Returns its bytes. */
static inline uint32_t vec_term_key(uint8_t *key, unsigned field, const char *s, uint32_t n)
{
    uint32_t head = field > 0 || (n && (uint8_t)s[0] < VEC_FIELDS);

    key[0] = (uint8_t)field;
    if (n)
        memcpy(key + head, s, n);
    return n + head;
}

/* Order of terms. */
static inline int vec_term_cmp(const uint8_t *a, uint32_t na, const uint8_t *b, uint32_t nb)
{
    uint32_t n = na < nb ? na : nb;
    int d = n ? memcmp(a, b, n) : 0;

    return d ? d : (na > nb) - (na < nb);
}

/* -------------------------------------------------------------------------------------- writing */

/* Collects terms in ascending order; all zero is an empty one. */
typedef struct vec_runw {
    uint32_t nterm;
    vec_buf term_off;
    vec_buf post_off;
    vec_buf terms;
    vec_buf posts;
} vec_runw;

/* Adds a term with its postings, by ascending ordinal; df >= 1. post[i].at is the place in pos of
 * its tf positions, ascending. len: the rows' lengths, as in vec_runw_image. */
int vec_runw_term(vec_runw *w, const uint8_t *s, uint32_t n, const vec_post *post, uint32_t df,
                  const uint32_t *pos, const uint8_t *len);
/* Makes the image. off, len and ext are nrow little-endian u32; off[i] = row number minus first. */
int vec_runw_image(vec_runw *w, uint64_t first, uint32_t nrow, const uint8_t *off,
                   const uint8_t *len, const uint8_t *ext, uint8_t **bytes, size_t *n);
void vec_runw_free(vec_runw *w);

#define VEC_RUN_HEADER  80
#define VEC_RUN_MAGIC   "vec-run\n"
#define VEC_RUN_VERSION 2
#define VEC_RUN_TAIL    8

#endif
