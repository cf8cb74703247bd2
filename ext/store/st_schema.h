/*
 * st_schema.h - which columns a store has, how each lies in the file, and which options it keeps.
 *
 * A logical column is what store.h shows. A physical column is one dataset: 1-D, or 2-D with a
 * fixed width. Text is two of them, `data` and `offsets`. Every physical column is handled by the
 * same code (st_image.c reads, st_colwrite.c writes).
 *
 * A row's values fall into three kinds: HEAVY ones, fixed for the life of a row position (id,
 * embedding, timestamp, texts, blobs: changing one writes a new row under the same id), SMALL ones,
 * changed in place (st_num, eight bytes each), and what is derived (norm, live, the two records of
 * planes).
 *
 * NULL      text: zero bytes. A text of k >= 0 bytes that are all NUL is stored with one NUL more,
 *           so that '' is one NUL and every other text is stored as it is. INTEGER: the least
 *           int64. REAL: NaN. source: 0. embedding: norm NaN.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ST_SCHEMA_H
#define ST_SCHEMA_H

#include "st_base.h"

typedef union st_num {
    int64_t i;
    double r;
} st_num;

#define ST_INT_NULL INT64_MIN

/* Heavy texts by index; user TEXT and BLOB columns follow. */
enum { ST_TEXT_CONTENT, ST_TEXT_SESSION, ST_TEXT_CHANNEL, ST_TEXT_TAGS, ST_TEXT_USER };
/* Small values by index; user INTEGER and REAL columns follow. */
enum {
    ST_SMALL_SOURCE,
    ST_SMALL_TIER,
    ST_SMALL_IMPORTANCE,
    ST_SMALL_ACTIVATION,
    ST_SMALL_ACCESS_COUNT,
    ST_SMALL_LAST_ACCESS,
    ST_SMALL_VALID_FROM,
    ST_SMALL_VALID_TO,
    ST_SMALL_SUPERSEDED_BY,
    ST_SMALL_PINNED,
    ST_SMALL_USER
};
#define ST_TEXTS_MAX  (ST_TEXT_USER + ST_USER_COLUMNS_MAX)
#define ST_SMALLS_MAX (ST_SMALL_USER + ST_USER_COLUMNS_MAX)

/* pgvector's limit for a stored vector; a row is then 64 KiB, one chunk */
#define ST_DIM_MAX        16384
#define ST_TEXT_BYTES_MAX ((size_t)1 << 30) /* of one value; SQLite's own default limit is 10^9 */

/* One dataset. */
typedef struct st_phys {
    char path[ST_NAME_MAX + 16]; /* below /memory, or below /index/vector for the planes */
    h5_type type;
    uint32_t width;       /* elements a row: 1, dim or the plane's stride */
    size_t elem;          /* bytes a row */
    uint8_t fill[8];      /* one element; what a row reads as where no chunk is stored */
    uint32_t chunk_small; /* rows a chunk at first */
    uint32_t chunk_large; /* and once the column has outgrown switch_at rows */
    uint64_t switch_at;
    int compress; /* 1: takes the store's compression */
    int always;   /* 1: stored for every row, also where it holds nothing but the fill value */
    int side;     /* the table beside the rows that it belongs to, or -1; path then begins with its
                     name */
    /* rows beyond those of the store: 1 for offsets (N + 1) ; data columns count bytes */
    int extra;
} st_phys;

/* Physical columns every store has, by index; texts (two each) and smalls (one each) follow. */
enum {
    ST_PHYS_ID,
    ST_PHYS_EMBEDDING,
    ST_PHYS_NORM,
    ST_PHYS_TIMESTAMP,
    ST_PHYS_LIVE,
    ST_PHYS_COARSE, /* the two halves of the plane */
    ST_PHYS_FINE,
    ST_PHYS_TEXTS
};
#define ST_SIDE_TEXTS_MAX 32
#define ST_SIDE_PHYS_MAX  128
#define ST_PHYS_MAX       (ST_PHYS_TEXTS + 2 * ST_TEXTS_MAX + ST_SMALLS_MAX + ST_SIDE_PHYS_MAX)

static inline int st_phys_is_plane(int phys)
{
    return phys == ST_PHYS_COARSE || phys == ST_PHYS_FINE;
}

/* What a byte of /memory/live says. */
enum { ST_LIVE_DEAD = 0, ST_LIVE_SHOWS = 1, ST_LIVE_EVICTED = 2 };

enum { ST_SYNC_OFF = 0, ST_SYNC_NORMAL = 1, ST_SYNC_FULL = 2 };
/* How near vectors are found: by what suits the number of rows, by planes alone, or by lists of a
 * kind (vec.h; ST_INDEX_IVF and on are VEC_IVF and on). */
enum { ST_INDEX_AUTO, ST_INDEX_FLAT, ST_INDEX_IVF, ST_INDEX_IVFPQ, ST_INDEX_RAIRS };
enum { ST_COMPRESS_NONE = 0, ST_COMPRESS_DEFLATE = 1, ST_COMPRESS_ZSTD = 2 };

#define ST_OPTION_TEXT_MAX 255 /* bytes of a text option */

/* Options that the file keeps. */
typedef struct st_options {
    int compression, level; /* fixed at creation */
    int synchronous;
    int64_t autoflush;  /* log bytes after which a commit flushes */
    double autocompact; /* dead share of the file above which such a flush compacts; 1: never */
    double vector_weight, text_weight, rrf_k;
    int fusion; /* ST_FUSE_ */
    double context, recency, recency_half_life, importance_weight, activation_weight;
    double graph_weight;
    double min_score, dedup, mmr;
    int64_t expand, nprobe, exact;
    double as_of;  /* NaN: none */
    int syntax;    /* ST_SYNTAX_ */
    int index;     /* ST_INDEX_ */
    int archive;   /* 0: off, all there is */
    double recall; /* that a vector search is to reach; 1: exact */
    char agent[ST_OPTION_TEXT_MAX + 1];
    char embedder[ST_OPTION_TEXT_MAX + 1];
    st_life life; /* store.h; from here on the file has those that are not as they were at first */
    st_policy policy;
} st_options;

typedef struct st_schema {
    int64_t dim;
    int metric;
    int storage;       /* VEC_F32, VEC_F16, VEC_I8 */
    char *tokenizer;   /* specification */
    char *fingerprint; /* of the tokens it makes */
    st_column user[ST_USER_COLUMNS_MAX];
    int nuser;
    int ncol;                                        /* logical columns */
    int text_of[ST_COL_USER + ST_USER_COLUMNS_MAX];  /* index among texts, or -1 */
    int small_of[ST_COL_USER + ST_USER_COLUMNS_MAX]; /* index among smalls, or -1 */
    int ntext, nsmall;
    int small_real[ST_SMALLS_MAX]; /* 1 REAL, 0 INTEGER */
    int small_col[ST_SMALLS_MAX];  /* logical column */
    int nphys;
    int nmemory;              /* those of the rows and their planes; tables beside them follow */
    int side_first[ST_SIDES]; /* physical column live of a table beside the rows (st_side.h) */
    int side_text[ST_SIDES];  /* its first text among all texts of such tables */
    int nside_text;
    st_phys phys[ST_PHYS_MAX];
} st_schema;

/* Physical columns of a text and of a small value. */
static inline int st_phys_data(int text)
{
    return ST_PHYS_TEXTS + 2 * text;
}
static inline int st_phys_offsets(int text)
{
    return ST_PHYS_TEXTS + 2 * text + 1;
}
static inline int st_phys_small(const st_schema *s, int small)
{
    return ST_PHYS_TEXTS + 2 * s->ntext + small;
}
/* Of a table beside the rows: its live bytes, a number, a text, and how many all are. */
static inline int st_phys_side(const st_schema *s, int side)
{
    return s->side_first[side];
}
int st_phys_side_number(const st_schema *s, int side, int number);
int st_phys_side_data(const st_schema *s, int side, int text);
int st_phys_side_offsets(const st_schema *s, int side, int text);
int st_phys_side_count(int side);
/* Where a column is, for messages: /memory/id, /sessions/live. */
const char *st_phys_where(const st_schema *s, int phys, char *buf, size_t n);

/* Fills *out from dim, metric, storage, user columns and the tokenizer's two texts (copied). The
** caller frees with st_schema_free. */
int st_schema_make(int64_t dim, int metric, int storage, const st_column *user, size_t nuser,
                   const char *tokenizer, const char *fingerprint, st_schema **out, st_error *err);
void st_schema_free(st_schema *s);

const char *st_logical_name(const st_schema *s, int col);
int st_logical_type(const st_schema *s, int col);

/* The NULL mark and the default of a small value. */
st_num st_small_null(const st_schema *s, int small);
st_num st_small_default(const st_schema *s, int small);
int st_small_is_null(const st_schema *s, int small, st_num v);
/* Checks a value for a small column and turns it into what is stored; NULL becomes the default
** where the column is never NULL. */
int st_small_from_value(const st_schema *s, int small, const st_value *v, st_num *out,
                        st_error *err);
/* The other way; text (source, tier) points to constants. */
void st_small_to_value(const st_schema *s, int small, st_num v, st_value *out);
/* The stored bytes of a small value, as its physical column has them; and back. */
void st_small_pack(const st_schema *s, int small, st_num v, uint8_t *out);
st_num st_small_unpack(const st_schema *s, int small, const uint8_t *in);

/* "user_id TEXT, priority INTEGER" and back. */
int st_columns_print(const st_schema *s, st_buf *out, st_error *err);
int st_columns_parse(const char *text, st_column *out, size_t *n, st_error *err);

/* -------------------------------------------------------------------------------------- options */

void st_options_default(st_options *o);
enum { ST_OPT_FIXED = 1 }; /* cannot change after creation */
/* Sets one option from text; ST_MISUSE names the value and what is allowed, ST_NOTFOUND an unknown
** name with the known ones. Options that are part of the schema (dim, metric, tokenize, storage)
** are not set here: ST_MISUSE. */
int st_options_set(st_options *o, const char *name, const char *value, int creating, st_error *err);
int st_options_get(const st_schema *s, const st_options *o, const char *name, char *buf, size_t n,
                   st_error *err);
int st_metric_parse(const char *text, int *out, st_error *err);
const char *st_metric_name(int metric);
const char *st_index_name(int index);
int st_storage_parse(const char *text, int *out, st_error *err);
const char *st_storage_name(int storage);
int st_option_index(const char *name); /* -1 when there is none */
/* 0: it has its default, and need not be written into the file */
int st_option_kept(const st_options *o, const char *name);

/* How activation fades: st_life.c. */
typedef struct st_fade_rule {
    double tick, half_life;
} st_fade_rule;
/* What a stored activation reads as, and the other way; last is NaN where there is none. */
double st_fade(const st_fade_rule *f, double raw, double last, double timestamp);
double st_unfade(const st_fade_rule *f, double seen, double last, double timestamp);

/* Decimal text to double without the locale; 1 when all of it was a number. */
int st_parse_real(const char *text, double *out);
int st_parse_int(const char *text, int64_t *out);
void st_print_real(double v, char *buf, size_t n); /* 15 significant digits */

#endif
