/*
 * st_side.h - tables beside the rows: records with a fixed schema and a key each.
 *
 * A table is a group of the file with a column a field, like /memory (st_schema.h): the same
 * chunks, checksums, appends. A record is one version of a key; a change writes a new version and
 * ends the old one. Records of the log and of a transaction lie in an st_side: versions of a key
 * are chained, newest first.
 *
 * FILE      /NAME: live (uint8: 1, or 0 for a version that has ended), int64 and float64 columns,
 *           text columns as /memory has them; NULL as there. For INTEGER keys the attribute next:
 *           one more than the largest key that ever was. A table that never had a record has no
 *           group
 * LOG       put: u16 table | u16 numbers | u16 texts | numbers x 8 | texts (varint, 0 NULL, else
 *           n + 1; n bytes). A record with that key that was there is replaced.
 *           delete: u16 table | the key, i64 or the bytes of a text to the end
 * OWNERSHIP an st_rec is one allocation and never changes but for its sequence. It is counted: a
 *           transaction, a generation and views may hold it
 * THREADS   what takes an st_gen is called under the store's mutex; what takes an st_txn or a view
 *           by the connection's thread
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ST_SIDE_H
#define ST_SIDE_H

#include "st_log.h"
#include "st_row.h"

typedef struct st_rec {
    int refs;
    int side;
    int ended;    /* in a transaction: the key is deleted, there are no values but it */
    uint64_t seq; /* of the frame; 0 in a transaction */
    uint64_t hash;
    st_num *num;
    st_span *text;
} st_rec;

/* A key: column 0. */
typedef struct st_key {
    int64_t i;
    st_span text; /* where keys are TEXT */
    uint64_t hash;
} st_key;

/* Versions by number, in the order they were written. */
typedef struct st_side {
    st_rec **rec;
    uint64_t *dead; /* sequence of the frame that ended it, or ST_SEQ_NEVER; of a generation */
    uint64_t *prev; /* 1 + the version of the same hash before it, or 0 */
    /* INTEGER keys come in ascending order, but for what is changed later: the versions above all
    ** before them, which are found by halving and are not in by_hash */
    size_t *rising;
    size_t n, nrising, cap_rec, cap_dead, cap_prev, cap_rising;
    st_map by_hash;       /* hash -> 1 + newest version, of the others */
    struct st_kill *kill; /* base rows that ended; of a generation */
    size_t nkill, cap_kill;
    st_map killed; /* base row -> sequence */
    int64_t next;  /* INTEGER keys: the next one */
} st_side;

/* ---------------------------------------------------------------------------------- the schemas */

typedef struct st_side_def {
    const char *name;
    int ncol, nnum, ntext;
    struct {
        const char *name;
        int type;
        int at; /* among the numbers, or among the texts */
    } col[ST_SIDE_COLS_MAX];
} st_side_def;
extern const st_side_def st_side_defs[ST_SIDES];

static inline int st_side_text_key(int side)
{
    return st_side_defs[side].col[0].type == ST_TEXT;
}

/* -------------------------------------------------------------------------------------- records */

/* Checks the values against the table and makes a record. */
int st_rec_make(int side, const st_value *values, st_rec **out, st_error *err);
/* A record that says that a key has ended. */
int st_rec_end(int side, const st_key *key, st_rec **out, st_error *err);
void st_rec_ref(st_rec *r);
void st_rec_unref(st_rec *r);
void st_rec_value(const st_rec *r, int col, st_value *out);
void st_side_number(int type, st_num num, st_value *out); /* NULL marks and all */
/* ST_MISUSE when it is no key of the table. The text is not copied. */
int st_key_make(int side, const st_value *v, st_key *out, st_error *err);
st_key st_rec_key(const st_rec *r);
int st_key_same(int side, const st_key *a, const st_key *b);
/* Payloads of frames (st_log.h). */
int st_rec_encode(const st_rec *r, st_buf *out, st_error *err);
int st_rec_decode(int deletes, const uint8_t *p, size_t n, st_rec **out, st_error *err);

/* ------------------------------------------------------------------------------------- versions */

void st_side_clear(st_side *s); /* without versions; memory stays */
void st_side_free(st_side *s);
int st_side_room(st_side *s, size_t n, st_error *err); /* n more: pushing then cannot fail */
void st_side_push(st_side *s, st_rec *r);              /* takes the reference */
void st_side_pop(st_side *s);                          /* the last one, and gives it back */
/* INTEGER keys: the first version from which on a key may be above that one. */
size_t st_side_above(const st_side *s, int64_t key);
/* 1 + the newest version of a key of those up to the sequence, 0 when there is none. */
uint64_t st_side_version(const st_side *s, int side, const st_key *key, uint64_t seq);

#endif
