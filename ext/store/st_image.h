/*
 * st_image.h - the base: one root of the HDF5 file, opened for reading.
 *
 * An image is what a root shows: columns with their chunk tables, the id index, the text runs,
 * options. It never changes; a flush makes a new one. Chunks that are stored raw are read straight
 * from the mapped file, compressed ones through a bounded cache.
 *
 * FILE      attributes of / : format "h5mem", format_version 3
 *           /meta: attributes (st_root.c lists them)
 *           /memory: columns
 *           /sessions, /events: tables beside the rows, st_side.h
 *           /index/vector/plane: records of vec_plane_encode; lists and t..., st_lists.h
 *           /index/text: a uint8 dataset a run (image of vec_run), named r and its first row in 12
 *           digits
 *           /index/id: nothing while ids ascend with the rows; else `runs`, int64 [n, 3]: first
 *           row, rows, 1 when sorted; for each sorted one p and its first row in 12 digits: uint32
 *           row offsets in order of id
 *           /index/time: likewise, in order of timestamp and then id. A file without the group has
 *           no such index, until its next flush
 *           /index/checksums: for each column with chunks, by its path with a dot for the slash,
 *           uint32: CRC32C of each chunk (st_chunk_crc)
 * LIVE      a row position shows when its byte in /memory/live is 1. 0: deleted, or replaced by a
 *           later row of the same id. 2: evicted, the last version of its id; it does not show, and
 *           goes with the next compact.
 *
 * THREADS   an image is shared by threads; its cache and lazily opened parts are guarded inside. A
 *           st_reader belongs to one thread.
 * SPDX-License-Identifier: MIT
 */
#ifndef ST_IMAGE_H
#define ST_IMAGE_H

#include <pthread.h>

#include "st_schema.h"
#include "vec.h"

#define ST_FORMAT_VERSION 3
#define ST_ROWS_MAX       ((uint64_t)1 << 32) /* text runs count rows from their first in 32 bits */
#define ST_CHUNK_BYTES_MAX                                                                         \
    ((size_t)4 << 20) /* of a column's chunk; we write 64 KiB, compact may choose 256 KiB */
#define ST_CACHE_BYTES ((size_t)64 << 20) /* decoded chunks kept an image */
#define ST_RUNS_MAX    4096               /* text runs, id runs: merging keeps them to dozens */

typedef struct st_file { /* an open .h5, shared by the images over it */
    h5_io *io;
    int refs;
} st_file;

typedef struct st_colimg {
    uint64_t n; /* rows; for text data bytes, for offsets rows + 1 */
    uint64_t nchunk;
    h5_chunk *chunk;
    uint32_t chunk_rows;
    uint64_t header; /* address of the dataset's header */
    h5_pipeline pipeline;
    uint8_t *fill;       /* one chunk of the fill value, where a chunk is not stored */
    uint32_t *crc;       /* of a column being written: one a chunk, as /index/checksums has them */
    const uint8_t *sum;  /* those of the image, in the mapping, once st_image_sums has run */
    uint64_t sum_header; /* address of that dataset's header, H5_UNDEF without chunks */
} st_colimg;

/* Rows in an order of their own; a run that is not sorted has them in it already. */
enum { ST_SORT_ID, ST_SORT_TIME, ST_SORTS };
typedef struct st_sortrun {
    uint64_t first, count;
    int sorted;
    const uint8_t *perm; /* sorted: count uint32 in the mapping */
    uint64_t perm_header;
} st_sortrun;
/* The runs follow one another and cover all rows, or, where the file has no such index, none. */
typedef struct st_sortruns {
    st_sortrun *run;
    size_t n;
} st_sortruns;
/* What is sorted by; time is 0 where only ids count. */
typedef struct st_sortkey {
    double time;
    int64_t id;
} st_sortkey;
static inline int st_sortkey_compare(const st_sortkey *a, const st_sortkey *b)
{
    return a->time != b->time ? (a->time < b->time ? -1 : 1) : (a->id > b->id) - (a->id < b->id);
}
/* st_foldindex.c. The order of n rows by their keys (ties by place): n little-endian uint32, or
** NULL where they are in it already. The caller frees. */
typedef int st_sortkey_fn(void *ctx, uint64_t i, st_sortkey *out, st_error *err);
int st_sort_rows(st_sortkey_fn *key, void *ctx, uint64_t n, uint8_t **perm, st_error *err);
/* The name of /index/id, /index/time. */
const char *st_sort_name(int sort);

typedef struct st_textrun {
    uint64_t header;      /* address of the dataset's header */
    const uint8_t *bytes; /* in the mapping */
    uint64_t size;
    uint64_t first, last, rows;
    vec_run *run;
} st_textrun;

/* A table beside the rows (st_side.h). */
typedef struct st_sideimg {
    uint64_t group; /* address of its header, or H5_UNDEF: it never had a record */
    uint64_t n;     /* versions */
    int64_t next;   /* INTEGER keys: the next one */
    st_map by_hash; /* made at first use: hash of a live row's key -> 1 + the row */
    uint32_t *prev; /* likewise: 1 + the row of the same hash before it, or 0 */
    int indexed;
    int rises; /* INTEGER keys, at first use: 1 each is above the one before, -1 not so */
} st_sideimg;

typedef struct st_cached st_cached;
typedef struct st_lists st_lists;

typedef struct st_image {
    int refs;
    st_file *file;
    const st_schema *schema;
    const uint8_t *map;
    size_t map_n;
    uint64_t eof, root;
    uint64_t generation, last_seq;
    int64_t next_id;
    st_options options;
    char created[32];
    uint64_t nrow;
    st_colimg *col; /* schema.nphys */
    st_sortruns sorted[ST_SORTS];
    uint64_t text_group; /* address, or H5_UNDEF */
    st_sideimg side[ST_SIDES];

    pthread_mutex_t index_lock; /* guards side[].by_hash, prev, indexed; taken before lock */
    pthread_mutex_t lock;       /* guards what follows */
    uint64_t *live;             /* bitmap, made at first use */
    uint64_t nlive;
    uint64_t *evicted; /* likewise; NULL when there are none */
    int sums_open;
    st_textrun *run;
    size_t nrun;
    int runs_open;
    st_lists *lists;            /* opened at first use */
    struct st_turns *turns;     /* st_turns.c; made at first use */
    pthread_mutex_t cache_lock; /* guards the cache, and may be taken while lock is held */
    st_map cache_map;
    st_cached *newest, *oldest;
    size_t cache_bytes;
} st_image;

/* Reads what /meta says of the schema. For the first image of a store. */
int st_image_schema(h5_io *io, const uint8_t superblock[H5_SUPERBLOCK_BYTES], uint8_t uuid[16],
                    st_schema **out, st_error *err);
/* Whose file is it? */
int st_image_uuid(h5_io *io, const uint8_t superblock[H5_SUPERBLOCK_BYTES], uint8_t uuid[16],
                  st_error *err);
/* Opens the root that superblock names. file's count goes up. schema must outlive the image. */
int st_image_open(st_file *file, const uint8_t superblock[H5_SUPERBLOCK_BYTES],
                  const uint8_t uuid[16], const st_schema *schema, st_image **out, st_error *err);
void st_image_ref(st_image *im);
void st_image_unref(st_image *im);

void st_cache_free(st_image *im); /* st_reader.c: for st_image_unref */
/* One physical column by its name in a group. */
/* Makes the fill of a column that has chunks which are not stored. */
int st_image_fill(st_image *im, int c, st_error *err);
int st_image_column(st_image *im, h5_file *f, const h5_object *group, const char *name, int c,
                    st_error *err);
/* What a column without rows looks like. */
int st_column_empty(const st_schema *s, const st_options *o, int c, st_colimg *out, st_error *err);

/* st_sideimage.c: the tables beside the rows. */
int st_image_sides(st_image *im, h5_file *f, st_error *err);
void st_image_sides_free(st_image *im);

/* Bitmap of live rows, st_bit_words(nrow) words; *n how many. From then on im->evicted is made. */
int st_image_live(st_image *im, const uint64_t **bits, uint64_t *n, st_error *err);
/* The name of a column's checksums. */
void st_sum_name(const char *path, char *out, size_t n);
/* Finds every column's checksums (col[].sum, sum_header). */
int st_image_sums(st_image *im, st_error *err);
/* The CRC32C that belongs to a chunk: over its stored bytes, but for a last, partly filled one
 * (which is stored raw) over the rows that count; 0 for a chunk that is not stored. bytes: as
 * stored. */
uint32_t st_chunk_crc(const st_colimg *c, size_t elem, uint64_t chunk, const uint8_t *bytes);
/* A group of the image's root; the caller closes both. */
int st_image_group(st_image *im, const char *path, h5_file **f, h5_object **group, st_error *err);
/* The bytes of a plain dataset of 'u'nsigned or other numbers, in the mapping. */
int st_image_dataset(st_image *im, h5_file *f, uint64_t addr, char kind, uint32_t size,
                     const uint8_t **p, uint64_t *bytes, st_error *err);
/* Text runs, opened. */
int st_image_runs(st_image *im, const st_textrun **runs, size_t *n, st_error *err);

/* --------------------------------------------------------------------------------------- reader */

/* Holds what was read last of each column, so that pointers stay good until the next call for that
** column. */
typedef struct st_reader {
    st_image *im;
    st_cached **pin; /* nphys */
    int pinned;      /* some are in use */
    st_buf *scratch; /* ntext + nside_text: values that cross a chunk's end */
    float *vector;   /* the last vector read, where they are not stored as floats; else NULL */
} st_reader;

int st_reader_open(st_reader *r, st_image *im, st_error *err);
void st_reader_close(st_reader *r);
/* Holds it nothing of the cache and little memory? Then it may be kept for later. */
int st_reader_rests(const st_reader *r);

/* *p points to the element of row in physical column col, *run elements follow one another from
** there (at least 1). row < the column's n. */
int st_read_at(st_reader *r, int col, uint64_t row, const uint8_t **p, uint64_t *run,
               st_error *err);
/* A text or blob; out->p NULL when it is NULL. */
int st_read_text(st_reader *r, int text, uint64_t row, const uint8_t **p, size_t *n, st_error *err);
/* Its bytes as the file has them (st_schema.h, NULL). */
int st_read_stored(st_reader *r, int text, uint64_t row, const uint8_t **p, size_t *n,
                   st_error *err);
/* A text of a table beside the rows, and its bytes as the file has them. */
int st_read_side_text(st_reader *r, int side, int text, uint64_t row, const uint8_t **p, size_t *n,
                      st_error *err);
int st_read_side_stored(st_reader *r, int side, int text, uint64_t row, const uint8_t **p,
                        size_t *n, st_error *err);
/* A column of one of its rows. */
int st_read_side_value(st_reader *r, int side, uint64_t row, int col, st_value *out, st_error *err);
int st_read_small(st_reader *r, int small, uint64_t row, st_num *out, st_error *err);
int st_read_id(st_reader *r, uint64_t row, int64_t *id, st_error *err);
int st_read_time(st_reader *r, uint64_t row, double *time, st_error *err);
int st_read_sortkey(st_reader *r, int sort, uint64_t row, st_sortkey *out, st_error *err);
/* The row at place i < count of a run. */
int st_sortrun_row(const st_sortrun *run, int sort, uint64_t i, uint64_t *row, st_error *err);
/* A row of the image will be read: its vector, norm and id are asked for where they are mapped. */
void st_reader_soon(const st_reader *r, uint64_t row);
/* The vector, NULL when the row has none. */
int st_read_vector(st_reader *r, uint64_t row, const float **v, float *norm, st_error *err);

/* A logical column of a base row, as the file has it. */
int st_read_value(st_reader *r, uint64_t row, int col, st_value *out, st_error *err);

/* The row with this id that is live or, where there is none (*evicted 1), evicted: 1 and *row, 0
** when there is neither, negative on failure. */
int st_image_newest(st_reader *r, int64_t id, uint64_t *row, int *evicted, st_error *err);
/* Likewise of a table beside the rows. */
struct st_key;
int st_image_side_find(st_reader *r, int side, const struct st_key *key, uint64_t *row,
                       st_error *err);
/* INTEGER keys: a number below which no record has a key above that one. */
int st_image_side_after(st_reader *r, int side, int64_t key, uint64_t *row, st_error *err);
/* The live row with this id: 1 and *row, 0 when there is none, negative on failure. */
int st_image_find(st_reader *r, int64_t id, uint64_t *row, st_error *err);

#endif
