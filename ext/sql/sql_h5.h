/*
 * sql_h5.h - private header of the sql_h5_*.c files: other people's HDF5 files as SQL.
 *
 * Idea: a cursor, a table or a call of a function owns one sql_h5, the file that it reads. Each
 * function returns a SQLite code and leaves its message in the sql_h5; whoever talks to SQLite
 * hands the message on. Nothing here writes a file or keeps one open beyond its statement.
 *
 * THREADS  a sql_h5 belongs to one connection, hence to one thread at a time.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SQL_H5_H
#define SQL_H5_H

#include "h5core.h"
#include "sql.h"

/* ------------------------------------------------------------------------- sql_h5_open.c: files */

typedef struct sql_h5_name {
    uint64_t addr;
    char *path;
} sql_h5_name;

/* An open file, or none yet. Zeroed but for who to begin with. */
typedef struct sql_h5 {
    const char *who; /* the function or table, for messages */
    char *path;
    h5_file *file;
    h5_file *target; /* where the object last found lies: file, unless an external link led out */
    h5_heaps *heaps; /* of the target */
    char *object;    /* path of the object last looked for */
    char *message;   /* of the first failure that nobody took yet */
    sql_h5_name *names; /* for references: every object's path, by address; NULL: not asked yet */
    size_t nname, room;
} sql_h5;

/* Opens path for reading unless it is the file already open. */
int sql_h5_open(sql_h5 *h, const char *path);
void sql_h5_close(sql_h5 *h); /* all of it; who stays */
/* The object at a path, the caller's to close before the next sql_h5_open or sql_h5_close. */
int sql_h5_find(sql_h5 *h, const char *path, h5_object **out);
/* The text of an argument called what; it must not be empty or hold a NUL. A BLOB will do: names
 * that are no UTF-8 are listed as such. Valid as long as v. */
int sql_h5_text(sql_h5 *h, const char *what, sqlite3_value *v, const char **out);
/* The path of the object whose header is at addr, NULL when nothing in the file has it. */
int sql_h5_name_of(sql_h5 *h, uint64_t addr, const char **out);

/* Leave a message (the first one stays) and return rc. */
int sql_h5_fail(sql_h5 *h, int rc, const char *fmt, ...) SQL_PRINTF(3, 4);
int sql_h5_fail_core(sql_h5 *h, const h5_error *e);
/* Hand the message on: to a table's zErrMsg (returns rc), to a result. */
int sql_h5_to_vtab(sql_h5 *h, int rc, sqlite3_vtab *v);
void sql_h5_to_result(sql_h5 *h, int rc, sqlite3_context *ctx);

/* Bytes of one value as JSON. One value is meant to be looked at; a variable-length element that
 * each of a million others repeats could else fill any memory. */
#define SQL_H5_JSON_MAX (64u << 20)

/* Bytes of one row (hdf5 table, one element of hdf5_values) and of one block read ahead. */
#define SQL_H5_ROW_MAX (64u << 20)

/* -------------------------------------------------------------------- sql_h5_type.c: describing */

/* "i4", ">f8", "S10", "string", "enum(i1)", "f4[3,4]", "vlen(i4)", {"x":"f8","y":"f8"}, ... */
int sql_h5_dtype(sqlite3_str *s, const h5_type *t);
/* Of a number: all of its bits are in use; a float is IEEE 754 of 2, 4 or 8 bytes. */
int sql_h5_is_usual(const h5_type *t);
/* [3,4]; a size of UINT64_MAX as null. */
void sql_h5_sizes(sqlite3_str *s, int rank, const uint64_t *sizes);
/* A name quoted as JSON; bytes that are no UTF-8 are taken as Latin-1. */
void sql_h5_quote(sqlite3_str *s, const char *text, size_t n);
/* Puts ? for every byte that is no UTF-8. */
void sql_h5_clean(char *text);
/* 1 when the n bytes are UTF-8 without a NUL. */
int sql_h5_is_utf8(const char *text, size_t n);

/* ---------------------------------------------------------------------- sql_h5_value.c: values */

/* One stored element as a result. */
int sql_h5_result(sql_h5 *h, const h5_type *t, const uint8_t *p, sqlite3_context *ctx);
/* An array of them as nested JSON. */
int sql_h5_result_array(sql_h5 *h, const h5_type *t, const uint8_t *p, int rank,
                        const uint64_t *dims, sqlite3_context *ctx);

/* ---------------------------------------------------------------------- sql_h5_scan.c: reading */

/* A strided box of a dataset: dims counted in elements of the dataset. */
typedef struct sql_h5_box {
    uint64_t start[H5_RANK_MAX], count[H5_RANK_MAX], stride[H5_RANK_MAX];
} sql_h5_box;

/* All of a dataset. */
void sql_h5_box_all(const h5_dataset_info *d, sql_h5_box *out);
/* Sets start, count or stride of a box to what a list says: a JSON array with a member (null: as it
 * was) for each dimension, or one integer for a dataset of one dimension. NULL leaves all. */
int sql_h5_box_list(sql_h5 *h, const char *what, sqlite3_value *v, int rank, uint64_t *out);
/* Reads start, count and stride (each NULL: not given), fills in what was left out and checks that
 * the box lies inside the dataset. */
int sql_h5_box_parse(sql_h5 *h, const h5_dataset_info *d, sqlite3_value *start,
                     sqlite3_value *count, sqlite3_value *stride, sql_h5_box *out);

/* Walks a box in C order, one item a step: the part of the dataset under one index of the first
 * `lead` dimensions; the box holds all of the others. */
typedef struct sql_h5_scan {
    const h5_object *object;
    const h5_dataset_info *info;
    sql_h5_box box;
    int lead;
    uint64_t at[H5_RANK_MAX]; /* which of the box's indices, in each of the lead dimensions */
    int done;
    const uint8_t *item;
    /* the block in memory */
    uint64_t lo[H5_RANK_MAX], hi[H5_RANK_MAX], step[H5_RANK_MAX];
    uint64_t item_bytes, ahead;
    uint8_t *buf;
    uint64_t room;
} sql_h5_scan;

/* o stays the caller's and must outlive the scan. */
int sql_h5_scan_open(sql_h5 *h, const h5_object *o, const sql_h5_box *box, int lead,
                     sql_h5_scan *out);
int sql_h5_scan_next(sql_h5 *h, sql_h5_scan *s);
/* The place in the dataset, along dimension i < lead. */
uint64_t sql_h5_scan_index(const sql_h5_scan *s, int i);
void sql_h5_scan_close(sql_h5_scan *s);

/* ---------------------------------------------------------------- sql_h5_index.c: comparisons */

/* For xBestIndex: takes the comparisons of columns that are the index of a dimension (-1: is none),
 * as arguments from next on, scales the cost, and the order if it is that of the rows. */
int sql_h5_plan_indices(sqlite3_index_info *info, int (*dimension)(int col), int next);
/* For xFilter: cuts the box to what they allow; 0 when no row can meet them. argv begins with their
 * values. A dimension past rank reads as NULL. */
int sql_h5_box_narrow(sql_h5_box *box, int rank, const char *idx_str, sqlite3_value **argv);

/* ------------------------------------------------------------ sql_h5_tvf.c: shared by functions */

int sql_h5_tvf_connect(sqlite3 *db, const char *schema, sqlite3_vtab **out);
int sql_h5_tvf_disconnect(sqlite3_vtab *v);
/* Takes n arguments, the hidden columns from first on, of which the first is needed: argv gets
 * those that are given, in order, and bit i of idxNum says that i is. *next is the next
 * argvIndex. */
int sql_h5_tvf_args(sqlite3_vtab *v, sqlite3_index_info *info, const char *who, int first, int n,
                    int *next);
/* The same and a cost, for those that push nothing else down. */
int sql_h5_tvf_plan(sqlite3_vtab *v, sqlite3_index_info *info, const char *who, int first, int n);
/* A name of the file: TEXT, or a BLOB when it is no UTF-8. */
void sql_h5_result_name(sqlite3_context *ctx, const char *text);

#endif
