/*
 * st_gen.h - one generation of a store in this process: an image and the overlay of committed
 * frames that continue it.
 *
 * The overlay grows as frames are replayed and never shrinks; every version carries the sequence of
 * the frame that made it and of the frame that ended it, so that one overlay serves snapshots of
 * any age. A flush, here or in another process, begins a new generation; whoever reads an old one
 * keeps it.
 *
 * REFS      a row version is named by a 64-bit ref: base row, overlay slot, or slot of a
 *           transaction.
 * THREADS   everything here is called under the store's mutex.
 * SPDX-License-Identifier: MIT
 */
#ifndef ST_GEN_H
#define ST_GEN_H

#include "st_image.h"
#include "st_row.h"
#include "st_side.h"

#define ST_REF_OVERLAY    ((uint64_t)1 << 62)
#define ST_REF_PRIVATE    ((uint64_t)2 << 62)
#define ST_REF_TAG        ((uint64_t)3 << 62)
#define ST_REF_INDEX(ref) ((ref) & ~ST_REF_TAG)

#define ST_SEQ_NEVER UINT64_MAX

typedef struct st_kill {
    uint64_t row, seq;
} st_kill;

typedef struct st_patch {
    uint64_t ref, seq;
    st_num *small; /* schema.nsmall */
} st_patch;

typedef struct st_gen {
    int refs;
    st_image *image;
    const st_schema *schema;
    uint64_t generation;
    st_reader reader;
    uint64_t replayed; /* offset in the log up to which frames are in */
    uint32_t sum;      /* of the frames up to there */
    uint64_t last_seq; /* of the last frame that is in */
    int64_t next_id;
    st_options options;
    /* frames changed an option: the next flush has something to write even without rows */
    int config_changed;

    st_slot **slot;
    uint64_t *dead; /* sequence of the frame that ended slot i, or ST_SEQ_NEVER */
    uint64_t *prev; /* 1 + the slot with the same id before slot i, or 0 */
    size_t nslot, cap_slot, cap_dead, cap_prev;
    st_map by_id; /* id -> 1 + newest slot */

    st_kill *kill; /* base rows that ended */
    size_t nkill, cap_kill;
    st_map killed; /* base row -> sequence */

    st_map evicted; /* ref of a version that an evict frame ended -> 1 */
    st_map buried;  /* ref of one of those that is not to be found any more -> sequence */

    st_side side[ST_SIDES]; /* records beside the rows */

    st_patch *patch;
    size_t npatch, cap_patch;
    st_map patched; /* ref -> 1 + newest patch */

    vec_text *text; /* tokens of the first ntext slots, by slot number: st_gen_index */
    size_t ntext;
} st_gen;

int st_gen_new(st_image *image, st_gen **out, st_error *err); /* takes a reference on image */
void st_gen_ref(st_gen *g);
void st_gen_unref(st_gen *g);

/* A change as a frame of the log tells it, for st_gen_adopt. */
typedef struct st_logged {
    int kind; /* ST_FRAME_PUT, _DELETE, _SET, _EVICT, _SIDE_PUT or _SIDE_DELETE */
    int64_t id;
    uint64_t seq;
    uint64_t evicted; /* PUT: sequence of the evict frame behind it, or 0 */
    st_slot *slot;    /* PUT */
    st_num *small;    /* SET */
    st_rec *rec;      /* SIDE_: the record, counted */
    int known;        /* SET, EVICT: ref is the version that lives, as the transaction found it */
    uint64_t ref;     /* scratch: the version that was there */
    int state;        /* and what it is; SIDE_: is there one */
} st_logged;

/* Takes a transaction that this process has just written at g->replayed from memory: the n frames
** of its changes, no id twice, as st_gen_replay would read them. On success slots, smalls and
** records belong to g; the caller moves replayed, sum and last_seq. Whole or not at all. */
int st_gen_adopt(st_gen *g, st_logged *change, size_t n, st_error *err);
/* Has g->text hold the tokens of all slots. */
int st_gen_index(st_gen *g, st_error *err);

/* Takes the whole transactions that lie in the log between g->replayed and the offset to, up to
** which the frames have that sum; stops before the first frame that is not valid. g->replayed says
** how far it came. */
int st_gen_replay(st_gen *g, h5_io *log, uint64_t to, uint32_t sum, st_error *err);

/* What the newest version of an id is in a snapshot. */
enum { ST_VERSION_NONE, ST_VERSION_LIVES, ST_VERSION_EVICTED };
/* *state, and *ref unless it is NONE. */
int st_gen_newest(st_gen *g, st_reader *r, int64_t id, uint64_t seq, uint64_t *ref, int *state,
                  st_error *err);
/* Was this version evicted in the snapshot seq, and can still be found? */
int st_gen_evicted(const st_gen *g, uint64_t ref, uint64_t seq);
/* The row version with this id in the snapshot seq: 1 and *ref, 0, or negative. */
int st_gen_find(st_gen *g, st_reader *r, int64_t id, uint64_t seq, uint64_t *ref, st_error *err);
/* The small values of a base row or slot as its newest patch up to seq has them; NULL when no patch
** touches it. */
const st_num *st_gen_patch(const st_gen *g, uint64_t ref, uint64_t seq);

/* st_sidelog.c: the record with this key in the snapshot seq: 1 and *ref, 0, or negative. */
int st_gen_side_find(st_gen *g, st_reader *r, int side, const st_key *key, uint64_t seq,
                     uint64_t *ref, st_error *err);
int st_gen_side_apply(st_gen *g, const st_frame *f, st_error *err);
/* Puts (or deletes) what is in its frame seq, with ref the version that was there if found; there
** is room. Takes the reference. */
void st_gen_side_take(st_gen *g, st_rec *rec, int put, int found, uint64_t ref, uint64_t seq);
/* Is there a change among the sequences above from, up to to? */
int st_gen_sides_changed(const st_gen *g, uint64_t from, uint64_t to);

/* Reads frames one by one. */
typedef struct st_log_reader {
    h5_io *log;
    uint64_t at, to; /* next frame's offset; end, which the log's own end may bring forward */
    uint64_t generation;
    uint32_t sum; /* of the frames before at */
    int sized;    /* to has been held against the log's size */
    st_buf buf;
    uint64_t buf_at; /* offset of buf.p[0] */
} st_log_reader;
/* 1 and the frame (valid until the next call), 0 at the end or at the first bad frame, negative on
** I/O or memory failure. */
int st_log_next(st_log_reader *lr, st_frame *f, st_error *err);
void st_log_reader_end(st_log_reader *lr);

#endif
