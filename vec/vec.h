/*
 * vec.h - the search core: numbers and text in, rows and scores out
 *
 * The only header of vec that others include. Works on arrays that the caller hands over; knows
 * nothing of files, tables or SQLite.
 *
 * WORDS    A "row" is a position 0..n-1 in whatever the caller searches; an "id" is the caller's
 *          64-bit name of a row and breaks ties. A "bitmap" is an array of 64-bit words: bit r & 63
 *          of word r >> 6 belongs to row r; bits past the last row are 0.
 * CODES    VEC_OK (0) or a negative code; out-parameters hold NULL or 0 after a failure. Kernels
 *          cannot fail.
 * MEMORY   Through the allocator hook; what a function hands over says who frees it. Every _free
 *          and _close takes NULL.
 * THREADS  Call vec_init once before anything else (calling it again is harmless, also at the same
 *          time from another thread). After that everything const may be shared by many threads; a
 *          non-const object is used by one thread at a time.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef VEC_H
#define VEC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    VEC_OK = 0,
    VEC_NOMEM = -1,
    VEC_FORMAT = -2, /* a byte image or a token stream is wrong */
    VEC_LIMIT = -3,  /* a named limit of vec_limits.h is exceeded */
    VEC_MISUSE = -4, /* the caller's arguments are wrong; nothing was changed */
    VEC_ABORT = -5   /* the caller's callback asked to stop */
};

typedef struct vec_allocator {
    void *(*alloc)(void *ctx, size_t n);
    void *(*resize)(void *ctx, void *p, size_t n);
    void (*release)(void *ctx, void *p);
    void *ctx;
} vec_allocator;

/* Sets the process-wide allocator; NULL restores the C library's. Before anything else of this
 * library, and while nothing of the one before is in use. */
void vec_set_allocator(const vec_allocator *a);
void vec_free(void *p); /* frees what this library handed over */

/* -------------------------------------------------------------------------------------- kernels */

/*
 * Kernel contract: cannot fail, does not allocate, any alignment a float may have, any n >= 0,
 * reads nothing but its arguments, writes nothing but its result. The scalar version is the
 * definition; the others give the sum of the same products in another order: results of two levels
 * differ by at most n * 2^-23 times the sum of the absolute products. Every level accumulates in
 * f32 lanes. NaN and infinity propagate.
 */
typedef float (*vec_pair_fn)(const float *a, const float *b, size_t n);
/* out[i] = kernel(q, rows + i * dim) for i < n, bit-equal to the pair kernel of the same level. */
typedef void (*vec_rows_fn)(const float *q, const float *rows, size_t dim, size_t n, float *out);

/* out = the n little-endian half floats at in, exactly; or in times scale, rounded once. The same
 * bits at every level. */
typedef void (*vec_widen_f16_fn)(const uint8_t *in, size_t n, float *out);
typedef void (*vec_widen_i8_fn)(const int8_t *in, float scale, size_t n, float *out);

typedef struct vec_kernels {
    const char *level;    /* "scalar", "avx2", "avx512", "neon" */
    vec_pair_fn dot_f32;  /* sum of a[i] * b[i] */
    vec_pair_fn l2sq_f32; /* sum of (a[i] - b[i])^2 */
    vec_rows_fn dot_rows_f32;
    vec_rows_fn l2sq_rows_f32;
    vec_widen_f16_fn widen_f16;
    vec_widen_i8_fn widen_i8;
} vec_kernels;

/* Detects the processor (CPUID and the registers the system saves) and fills the tables. Levels
 * named in the environment variable VEC_DISABLE, separated by commas ("avx512,avx2"), are treated
 * as if the processor did not have them. */
void vec_init(void);
/* The table in use; NULL before vec_init, never after. */
const vec_kernels *vec_kern(void);
/* The table of a level that this build and processor have, else NULL. */
const vec_kernels *vec_kern_level(const char *name);

/* 1 when all n values are finite. */
int vec_all_finite_f32(const float *x, size_t n);
/* Euclidean length. Computed in double: no overflow unless the length itself is no float, no
 * underflow, and the same bits at every level and on every machine. */
float vec_norm_f32(const float *x, size_t n);

/* -------------------------------------------------------------------------------------- metrics */

enum { VEC_COSINE = 0, VEC_L2 = 1, VEC_IP = 2 };

/*
 * The distance that belongs to a metric, smaller is nearer. Uses the table in use; dim >= 1.
 *
 *   VEC_COSINE  1 - a.b / (|a| |b|), within 0..2; 1 when either is a zero vector
 *   VEC_L2      Euclidean, not squared
 *   VEC_IP      minus the inner product
 *
 * norm_a and norm_b are vec_norm_f32 of the two; they are read for cosine only, and a NaN there
 * gives NaN. Where the f32 kernel could overflow or lose its digits to underflow, the sum is taken
 * in double instead: finite vectors of any size have a finite distance. An unknown metric gives
 * NaN.
 */
double vec_distance(int metric, const float *a, float norm_a, const float *b, float norm_b,
                    size_t dim);

/* A run of rows that lie one behind the other. */
typedef struct vec_extent {
    const float *rows;  /* n * dim values; NULL: these rows have no vector */
    const float *norms; /* n values, vec_norm_f32 of each row, NaN: that row has no vector; may be
                           NULL (every row has one) unless the metric is cosine */
    uint64_t first;     /* row number of the first */
    uint64_t n;
} vec_extent;

/*
 * Exact scan. For every row r of the extents whose bit is set in filter (NULL = all), out[r] =
 * vec_distance(metric, query, |query|, row, its norm), the same bits; rows without a vector get
 * NaN; all other entries of out are left alone. stop (NULL allowed) is asked every some 64 KiB of
 * vectors; when it answers nonzero the result is VEC_ABORT.
 */
int vec_scan(int metric, const float *query, size_t dim, const vec_extent *ext, size_t next,
             const uint64_t *filter, double *out, int (*stop)(void *), void *stop_ctx);

/* -------------------------------------------------------------------------------------- storage */

/* How a vector is kept: as floats, half floats, or bytes with a scale (layout in vec_stored.c). */
enum { VEC_F32 = 0, VEC_F16 = 1, VEC_I8 = 2 };
size_t vec_stored_bytes(int storage, size_t dim);
/* Makes of finite x what it is once stored; encoding and decoding that gives the same bits.
 * VEC_LIMIT: a value is too large for the storage (65504 for VEC_F16). */
int vec_stored_round(int storage, float *x, size_t dim);
void vec_stored_encode(int storage, const float *x, size_t dim, uint8_t *out);
void vec_stored_decode(int storage, const uint8_t *in, size_t dim, float *out);

/* -------------------------------------------------------------------------------------- ranking */

/* One candidate. Order: smaller key first, then smaller id. Keys are not NaN. */
typedef struct vec_hit {
    double key;
    int64_t id;
    uint64_t row;
} vec_hit;

/* Bounded top-k: keeps the k smallest hits of all that were pushed. */
typedef struct vec_topk vec_topk;
/* Memory grows with what is pushed, never beyond k. */
int vec_topk_new(size_t k, vec_topk **out);
void vec_topk_free(vec_topk *t);
int vec_topk_push(vec_topk *t, const vec_hit *h);
/* Key of the k-th best: +infinity while fewer than k are held, -infinity for k = 0. A hit with a
 * larger key need not be pushed. */
double vec_topk_bound(const vec_topk *t);
/* Sorts, best first, and returns how many; *out lives as long as t. Nothing may be pushed
 * afterwards (VEC_MISUSE). */
size_t vec_topk_take(vec_topk *t, const vec_hit **out);

/* A heap of hits, the best on top. Zero-initialised is empty. h[0] is the best while n > 0. */
typedef struct vec_heap {
    vec_hit *h;
    size_t n, cap;
} vec_heap;
int vec_heap_push(vec_heap *p, vec_hit h);
vec_hit vec_heap_pop(vec_heap *p); /* n > 0 */
void vec_heap_free(vec_heap *p);

/* Lazy ranking of n hits: hands them out best first and pays for order only as far as it is asked
 * (incremental quicksort; worst case n log n). */
typedef struct vec_rank vec_rank;
/* NULL on failure or overflow; n may be 0; vec_free releases it. */
vec_hit *vec_hits_alloc(size_t n);
/* Takes over hits (from vec_hits_alloc), also on failure. */
int vec_rank_new(vec_hit *hits, size_t n, vec_rank **out);
/* NULL at the end; valid until r is freed. */
const vec_hit *vec_rank_next(vec_rank *r);
void vec_rank_free(vec_rank *r);

/* One complete ranking, best first. */
typedef struct vec_list {
    const vec_hit *hits;
    size_t n;
    double weight;
} vec_list;

/*
 * Reciprocal-rank fusion (Cormack, Clarke, Buettcher 2009): score of a row = sum over the lists it
 * is in of weight / (k + its 1-based position). nrow bounds the row numbers; a row beyond it is
 * VEC_MISUSE. The result holds every row of any list once, with key = minus the score, in no order;
 * *out is the caller's (vec_free), fit for vec_rank_new.
 */
int vec_fuse_rrf(const vec_list *lists, size_t nlist, double k, uint64_t nrow, vec_hit **out,
                 size_t *n);

/* The same fusion of two lists on demand: hands the rows out best first and finds out about
 * positions only as far as it is asked. The sequence (score, then id) is that of ranking what
 * vec_fuse_rrf gives. A list is given by a key a row, smaller is better, NaN for a row that is not
 * in it. */
typedef struct vec_rrf_args {
    const double *key[2]; /* nrow keys each; must outlive the object */
    double weight[2];     /* finite, not negative */
    uint64_t nrow;
    double k;
    int64_t (*id)(void *ctx, uint64_t row); /* the row's id, for ties */
    void *ctx;
} vec_rrf_args;
typedef struct vec_rrf vec_rrf;
int vec_rrf_new(const vec_rrf_args *a, vec_rrf **out);
/* 1: a row, key = minus the score; 0: no more; or a code. */
int vec_rrf_next(vec_rrf *f, vec_hit *out);
void vec_rrf_free(vec_rrf *f);

/* --------------------------------------------------------------------------------------- planes */

/*
 * A plane is a small copy of the vectors that is scanned instead of them. One record a row: norm,
 * dim 8-bit codes, and the angle by which they miss the vector (layout and proof in vec_plane.c).
 * From a record and the query follows a lower bound on the distance that vec_distance computes,
 * rounding of both included; only rows whose bound is small enough are looked at. A record of wrong
 * bytes makes the answer wrong, and nothing worse.
 */
size_t vec_plane_stride(size_t dim); /* bytes of one record, a multiple of 16 */
/* Makes the record of x (NULL: a row without a vector). The same input gives the same bytes at
 * every level. */
void vec_plane_encode(const float *x, float norm, size_t dim, uint8_t *record);

/* The same in two parts: the coarse one, half as large, is scanned, and the fine one read where the
 * coarse one leaves a row in doubt (layout in vec_halves.c). vec_halves_split makes them of the
 * record of x (NULL: a row without a vector), vec_halves_join gives the record back. */
size_t vec_halves_stride(size_t dim); /* bytes of either, a multiple of 16 */
void vec_halves_split(const float *x, size_t dim, const uint8_t *record, uint8_t *coarse,
                      uint8_t *fine);
void vec_halves_join(const uint8_t *coarse, const uint8_t *fine, size_t dim, uint8_t *record);

/* Records of n rows that lie one behind the other. */
typedef struct vec_plane_extent {
    const uint8_t *coarse;
    const uint8_t *fine;
    uint64_t first;
    uint64_t n;
} vec_plane_extent;

/* For every row of the planes whose bit is set in filter (NULL = all): two numbers, by row, between
 * which vec_distance(metric, query, |query|, row, its norm) lies. low is +infinity for a row
 * without a vector, high where nothing is known; other entries are left alone. stop as for
 * vec_scan. VEC_LIMIT: more than VEC_PLANE_DIM_MAX dimensions. */
int vec_bounds(int metric, const float *query, size_t dim, const vec_plane_extent *planes,
               size_t nplane, const uint64_t *filter, float *low, float *high, int (*stop)(void *),
               void *stop_ctx);

typedef struct vec_near_args {
    int metric;
    const float *query; /* finite */
    size_t dim;
    const vec_plane_extent *planes; /* rows that have records */
    size_t nplane;
    const vec_extent *exact; /* rows that have none; disjoint from planes */
    size_t nexact;
    const uint64_t *filter; /* bitmap of the rows to search; NULL = all */
    /* The stored vector of a row whose record says that it has one, and its vec_norm_f32 (NaN: it
     * has none after all); valid until the next call. NULL: failed, the search ends with
     * VEC_ABORT. */
    const float *(*fetch)(void *ctx, uint64_t row, float *norm);
    /* fetch and id will soon be called for this row: what they read may be asked for. NULL: not. */
    void (*soon)(void *ctx, uint64_t row);
    int64_t (*id)(void *ctx, uint64_t row); /* the row's id, for ties */
    /* Nonzero: end with VEC_ABORT; NULL: never. Asked about every 64 KiB scanned and every some
     * hundred fetches. */
    int (*stop)(void *ctx);
    void *ctx;
    uint64_t hint; /* rows that will likely be read; 0 = unknown; changes the cost only */
    int threads;   /* to scan with at most, where there are rows enough; 0 and 1: the caller's. Only
                      that one calls fetch, id and stop. The answer is the same. */
} vec_near_args;

/* Exact nearest neighbours, nearest first, on demand: the sequence (distance, then id) is that of
 * sorting vec_distance over all filtered rows that have a vector. args' arrays must outlive the
 * object. VEC_LIMIT: there are planes, and more than VEC_PLANE_DIM_MAX dimensions. */
typedef struct vec_near vec_near;
int vec_near_new(const vec_near_args *a, vec_near **out);
/* 1: a hit, key = distance; 0: no more; negative: failed, and every further call says the same. */
int vec_near_next(vec_near *s, vec_hit *out);
void vec_near_free(vec_near *s);

/* --------------------------------------------------------------------------------------- lists */

/*
 * An index of lists finds near neighbours by looking at a part of the rows. It is built once over
 * the rows there are, as one immutable byte image that is searched in place; rows that come later
 * are noted with the list they belong to (a tail), and a search looks at all of them. Layout in
 * vec_ivf.h.
 */
enum { VEC_IVF = 1, VEC_IVFPQ = 2, VEC_RAIRS = 3 };

typedef struct vec_ivf_args {
    int kind, metric;
    size_t dim;
    uint64_t nrow;        /* row numbers are below; at most 2^32 - 1 */
    const uint64_t *live; /* bitmap of the rows to index; NULL = all */
    /* As for vec_near. A norm of NaN: this row has no vector; then the answer may be anything but
     * NULL. */
    const float *(*fetch)(void *ctx, uint64_t row, float *norm);
    int (*stop)(void *ctx); /* asked every some hundred rows; NULL: never */
    void *ctx;
    int threads; /* to train with at most; 0 and 1: the caller's. Only that one calls fetch and
                    stop. The image is the same. */
} vec_ivf_args;

/* Trains, assigns and measures. *bytes is the caller's (vec_free); NULL and 0 when no row has a
 * vector. The same input gives the same image. */
int vec_ivf_build(const vec_ivf_args *a, uint8_t **bytes, size_t *n);

/* Opens an image in place: checks the header, the lists and the centroids, but no row or code.
 * Those are bounded when used: wrong ones make answers worse, and nothing else. bytes must outlive
 * it. */
typedef struct vec_ivf vec_ivf;
int vec_ivf_open(const uint8_t *bytes, size_t n, vec_ivf **out);
void vec_ivf_close(vec_ivf *ix);
int vec_ivf_check(const vec_ivf *ix); /* every byte; VEC_OK or VEC_FORMAT */

typedef struct vec_ivf_info {
    int kind, metric;
    size_t dim;
    uint64_t nrow;    /* rows below this number were considered */
    uint64_t vectors; /* and so many are in lists */
    size_t lists;
    size_t bytes;
    size_t probes;    /* lists looked at for recall 0.99 of ten neighbours */
    uint32_t queries; /* vectors of its own that it was measured with */
    double recall;    /* share of their ten nearest that it found so */
    double looked;    /* share of the rows it read for that */
} vec_ivf_info;
void vec_ivf_get_info(const vec_ivf *ix, vec_ivf_info *out);

/* Places of rows, in lists' order, and the row at one; UINT32_MAX: an empty place. */
uint64_t vec_ivf_places(const vec_ivf *ix);
uint32_t vec_ivf_row(const vec_ivf *ix, uint64_t place);

/* The list of a vector that comes later. */
int vec_ivf_assign(const vec_ivf *ix, const float *x, float norm, uint32_t *list);
/* The same image for a store that drops its dead rows: each live row gets the number of live rows
 * before it. *out is the caller's. live covers the image's rows. */
int vec_ivf_renumber(const vec_ivf *ix, const uint64_t *live, uint8_t **out, size_t *n);

/* Pairs of list and row, as an image. They are sorted here. *bytes is the caller's. */
typedef struct vec_pair {
    uint32_t list, row;
} vec_pair;
int vec_tail_image(vec_pair *pairs, size_t n, uint8_t **bytes, size_t *size);
typedef struct vec_tail vec_tail;
/* bytes must outlive it. VEC_FORMAT unless the lists ascend and are below nlist, and the rows are
 * between first and last. */
int vec_tail_open(const uint8_t *bytes, size_t n, vec_tail **out);
void vec_tail_close(vec_tail *t);
uint64_t vec_tail_count(const vec_tail *t);
uint64_t vec_tail_first(const vec_tail *t);
uint64_t vec_tail_last(const vec_tail *t);
vec_pair vec_tail_pair(const vec_tail *t, uint64_t i); /* i < count */
int vec_tail_check(const vec_tail *t, size_t nlist);   /* every pair; VEC_OK or VEC_FORMAT */

typedef struct vec_probe_args {
    const vec_ivf *index;
    vec_tail *const *tails;
    size_t ntail;
    const vec_extent *exact; /* rows that are in neither; scanned whole */
    size_t nexact;
    const float *query;     /* finite */
    uint64_t nrow;          /* row numbers are below; bits of filter */
    const uint64_t *filter; /* the rows to search */
    double share;           /* of the rows, how many the filter keeps, roughly; above 0 */
    uint64_t want;          /* rows that will likely be read; 0 = unknown */
    double recall;          /* 0.5 to 1: to reach for those */
    uint64_t probes;        /* lists to look at first; 0: as many as recall takes */
    const float *(*fetch)(void *ctx, uint64_t row, float *norm); /* as for vec_near */
    /* The row's record in halves (vec_halves_split), both valid until the search ends; nonzero:
     * failed. The function itself may be NULL: then vectors are read in its place. */
    int (*halves)(void *ctx, uint64_t row, const uint8_t **coarse, const uint8_t **fine);
    int64_t (*id)(void *ctx, uint64_t row);
    int (*stop)(void *ctx);
    /* An exact search over the rows of filter; asked for at most once. */
    int (*rest)(void *ctx, const uint64_t *filter, vec_near **out);
    void *ctx;
} vec_probe_args;

/*
 * Near neighbours on demand. Rows come by distance, then id, with their exact distances. The first
 * `want` are those that the lists looked at can give; when more are asked for, more lists are
 * looked at, and in the end the rest is searched exactly: every row of the filter that has a vector
 * comes once. A row that an earlier step has missed comes as soon as it is found, so beyond `want`
 * a few may come late.
 */
typedef struct vec_probe vec_probe;
int vec_probe_new(const vec_probe_args *a, vec_probe **out);
int vec_probe_next(vec_probe *p, vec_hit *out); /* as vec_near_next */
void vec_probe_free(vec_probe *p);
/* Lists that a search would look at first, and the rows it would read for that, roughly. */
size_t vec_probe_cost(const vec_ivf *ix, uint64_t want, double share, double recall,
                      uint64_t *rows);

/* -------------------------------------------------------------------------------------- filters */

/* Clears the bits of rows first..first+n-1 whose value is outside lo..hi (both inclusive; NaN is
 * outside). first is any row number; other bits are left alone. */
/* How many of n ascending values lie before v: those below it, or, with past, not above it. */
size_t vec_bound_f64(const double *x, size_t n, double v, int past);
void vec_keep_range_f64(uint64_t *bits, uint64_t first, const double *x, size_t n, double lo,
                        double hi);
void vec_keep_range_i64(uint64_t *bits, uint64_t first, const int64_t *x, size_t n, int64_t lo,
                        int64_t hi);
uint64_t vec_bits_count(const uint64_t *bits, uint64_t nrow); /* bits set below nrow */

/* ----------------------------------------------------------------------------------------- text */

/*
 * Token stream: how a text's tokens travel (log frames, index building). For each token a varint
 * (LEB128, shortest form) of length * 2 + colocated, then the bytes. A colocated token shares the
 * position of the one before; a first token has its own, whatever it says. At most VEC_TOKEN_MAX
 * bytes a token; longer ones are cut by the producer.
 */
#define VEC_TOKEN_MAX 1024
/* A row has up to so many fields, each with positions of its own; an empty colocated token ends
 * one. What is said of a row's length means the first. */
#define VEC_FIELDS    3

typedef struct vec_token {
    const char *s;
    uint32_t n;
    int colocated;
} vec_token;

static inline int vec_token_is_break(const vec_token *t)
{
    return t->n == 0 && t->colocated;
}

/* Walks a stream: *pos starts at 0. 1 = a token, which points into the stream, 0 = end,
 * VEC_FORMAT = the bytes are no token stream. */
int vec_token_next(const uint8_t *stream, size_t n, size_t *pos, vec_token *out);
/* Appends one token at out (room for n + 5 bytes) and returns the bytes written. Cuts at
 * VEC_TOKEN_MAX. */
size_t vec_token_put(uint8_t *out, const char *s, uint32_t n, int colocated);

/* An inverted index in memory that grows row by row. */
typedef struct vec_text vec_text;
int vec_text_new(vec_text **out);
void vec_text_free(vec_text *t);
/* Adds a row's tokens; row must be larger than every row added before, and at most 2^32 - 2 larger
 * than the first (VEC_LIMIT). After a failure the row is not in. */
int vec_text_add(vec_text *t, uint64_t row, const uint8_t *stream, size_t n);
uint64_t vec_text_rows(const vec_text *t);  /* rows added */
uint64_t vec_text_bytes(const vec_text *t); /* memory in use, roughly */

/*
 * A run: the same as one immutable byte image (layout in vec_run.h): sorted terms, for each its
 * rows with counts, and the rows' lengths (number of positions). *bytes is the caller's (vec_free).
 */
int vec_text_image(const vec_text *t, uint8_t **bytes, size_t *n);

/* Makes a run of many rows, in a fraction of the time that an index takes which can be searched as
 * it grows. Rows and streams as vec_text_add takes them, and the image is byte for byte that of
 * vec_text_image. After a failure of vec_bulk_add there is no image (VEC_MISUSE). */
typedef struct vec_bulk vec_bulk;
int vec_bulk_new(vec_bulk **out);
void vec_bulk_free(vec_bulk *b);
int vec_bulk_add(vec_bulk *b, uint64_t row, const uint8_t *stream, size_t n);
int vec_bulk_image(const vec_bulk *b, uint8_t **bytes, size_t *n);

/* Opens an image in place, in constant time: checks the header, and every offset, term and posting
 * when it is used. bytes must outlive the run and may be mapped; any alignment. */
typedef struct vec_run vec_run;
int vec_run_open(const uint8_t *bytes, size_t n, vec_run **out);
void vec_run_close(vec_run *r);
/* Smallest and largest row in it; an empty run has none: 0 and 0. */
uint64_t vec_run_first(const vec_run *r);
uint64_t vec_run_last(const vec_run *r);
uint64_t vec_run_rows(const vec_run *r);
/* Walks everything; VEC_OK or VEC_FORMAT. */
int vec_run_check(const vec_run *r);

/* One image of several runs with ascending, disjoint row ranges, without the rows whose bit is
 * clear in live (NULL = keep all). *bytes is the caller's (vec_free). */
int vec_run_merge(vec_run *const *runs, size_t nrun, const uint64_t *live, uint8_t **bytes,
                  size_t *n);
/* The same for a store that drops its dead rows: each live row gets the number of live rows before
** it. live must not be NULL. */
int vec_run_compact(vec_run *const *runs, size_t nrun, const uint64_t *live, uint8_t **bytes,
                    size_t *n);
/* The row number at position i < vec_run_rows, ascending with i; VEC_FORMAT when it is out of the
** run's range. */
int vec_run_row(const vec_run *r, uint64_t i, uint64_t *row);

/* A part of the searched rows: exactly one of run and text is set. A row is in one part at most. */
typedef struct vec_source {
    const vec_run *run;
    const vec_text *text;
    uint64_t offset; /* added to the source's row numbers */
    int dense;       /* 1: every row of it is live, so that stored counts are exact */
} vec_source;

/*
 * A text query: phrases, and which rows they allow. A phrase is one or more words at successive
 * positions of one field. What belongs to a query is only read, and must outlive what is made of
 * it.
 */
typedef struct vec_word {
    const char *s; /* a token */
    uint32_t n;    /* at most VEC_TOKEN_MAX */
    int prefix;    /* 1: any token that begins so */
    int colocated; /* 1: another choice for the position of the word before */
} vec_word;

typedef struct vec_phrase {
    uint32_t word; /* its words: nword, from here on; none: it matches nothing */
    uint32_t nword;
    unsigned fields; /* bit f: may be in field f */
    int initial;     /* 1: only at the beginning of a field */
    double weight;   /* 1; less for one that counts less; 0: it has no part in the score */
    /* Phrases that must be near each other in one field: the first has their number, the others 0;
     * at most `near` positions may lie between each and the next. 1: a phrase by itself. */
    uint32_t group;
    uint32_t near;
} vec_phrase;

enum {
    VEC_OP_PHRASE, /* push the rows that have the phrase, or its group */
    VEC_OP_ALL,    /* push all rows */
    VEC_OP_AND,    /* pop two and push the rows of both */
    VEC_OP_OR,
    VEC_OP_NOT /* push the rows of the lower without those of the upper */
};
typedef struct vec_op {
    int op;
    uint32_t phrase;
} vec_op;

typedef struct vec_ask {
    const vec_word *words;
    size_t nword;
    const vec_phrase *phrases;
    size_t nphrase;
    const vec_op *ops; /* which rows are allowed, in postfix order; none: all */
    size_t nop;
} vec_ask;

/* Moves within a field: cuts the lists of positions (ascending) of n phrases of nword[i] words down
 * to those that stand near each other; *count[i] becomes 0 for all where there are none. */
void vec_near_trim(uint32_t *const *pos, size_t *count, const uint32_t *nword, size_t n,
                   uint32_t near, size_t *at);

/*
 * BM25 over the live rows of all sources, as one collection: for each phrase t of the query, with N
 * live rows, df of them holding t, tf its occurrences in the row, dl a row's length and avgdl the
 * mean over live rows,
 *
 *     idf = ln(1 + (N - df + 0.5) / (df + 0.5))
 *     score += weight * idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * dl / avgdl))
 *
 * A row's length is that of its first field, or of all where a phrase asks for another than the
 * first. N, df and avgdl are those of the live rows, whatever dead rows the sources still hold, so
 * that the scores do not depend on how rows are spread over sources. Robertson and Zaragoza 2009;
 * idf as in Lucene, never negative.
 *
 *   query   token stream: its distinct tokens are looked for in the first field. A token that a
 *           question repeats counts once: what people repeat are its common words (483 instead of
 *           480 of LoCoMo's 782 questions are answered within ten rows)
 *   ask     a query in place of the stream; NULL: the stream
 *   live    bitmap of nrow rows: who counts for N, df and avgdl
 *   filter  bitmap: who is returned (NULL = live); only live rows are
 *   k1, b   k1 >= 0, 0 <= b <= 1, finite
 *   stop    asked every some thousand rows; nonzero ends with VEC_ABORT; NULL = never
 */
typedef struct vec_bm25_args {
    const vec_source *sources;
    size_t nsource;
    const uint8_t *query; /* token stream */
    size_t nquery;
    const uint64_t *live;
    const uint64_t *filter;
    uint64_t nrow;
    double k1, b;
    int (*stop)(void *);
    void *stop_ctx;
    const vec_ask *ask;
} vec_bm25_args;

/* A query with its words looked up and weighed. Sources, bitmaps and the query must outlive it. */
typedef struct vec_words vec_words;
int vec_words_new(const vec_bm25_args *a, vec_words **out);
void vec_words_free(vec_words *w);
/* Every allowed row with a positive score, key = minus the score, in no order; *out is the caller's
 * (vec_free), fit for vec_rank_new; id is left 0. */
int vec_words_all(vec_words *w, vec_hit **out, size_t *n);
/* The k best of them, best first, ids filled in: what ranking all of them by score, then id, gives
 * first, for less, since rows that cannot be among them are skipped. id NULL: rows are their own
 * ids. *out is the caller's (vec_free). */
int vec_words_top(vec_words *w, size_t k, int64_t (*id)(void *ctx, uint64_t row), void *ctx,
                  vec_hit **out, size_t *n);
/* out[i] = the score of rows[i], 0 for none, whether or not filter and operators let it through; a
 * dead row has none. Costs a look into one block of each word's postings; cheapest when rows
 * ascend.
 */
int vec_words_score(const vec_words *w, const uint64_t *rows, size_t n, double *out);
/* What a score is made of: phrase i adds weights[i] * tf * (k1 + 1) / (tf + k_base + k_len * dl).
 * Returns the number of phrases. */
size_t vec_words_formula(const vec_words *w, const double **weights, double *k1, double *k_base,
                         double *k_len);
/* Rows that the operators allow (bitmap of nrow, dead rows included); NULL: there are none. */
const uint64_t *vec_words_allow(const vec_words *w);

/* vec_words_new, _all and _free in one. */
int vec_bm25(const vec_bm25_args *a, vec_hit **out, size_t *n);

#define VEC_BM25_K1 1.2
#define VEC_BM25_B  0.75

#ifdef __cplusplus
}
#endif
#endif
