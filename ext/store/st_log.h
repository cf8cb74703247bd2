/*
 * st_log.h - the log beside the HDF5 file: a header page that all processes map, then frames.
 *
 * HEADER   4096 bytes, two slots of 2048 written in turn (slot = counter & 1), never truncated
 *          away. Little-endian.
 *   offset  size  field
 *   0       8     "h5memlog"
 *   8       4     version 1
 *   12      4     flags: bit 0, the prepared transaction needs no verdict (its host has no file)
 *   16      8     counter, one higher at each write; written last
 *   24      16    uuid of the store
 *   40      8     generation: of the root that the frames continue
 *   48      8     inode of the .h5 file
 *   56      8     committed length: frames before this offset of the log count
 *   64      8     sequence of the last committed frame
 *   72      8     prepared length: frames up to here belong to transactions between their two
 *                 phases; 0 when there are none
 *   80      8     sequence of the last one's prepare frame, which is its transaction id
 *   88      48    superblock in force
 *   136     48    superblock about to be written by a flush; zeros when there is none
 *   184     8     inode of the file that a compact is about to rename into place; 0 when there is
 *                 none. pending is then that file's superblock
 *   192     4     sum of the frames up to the committed length
 *   196     4     sum of the frames up to the prepared length
 *   200     16    uuid of the host's state row by which the last transaction with a verdict went
 *   216     8     and its transaction id; 0 when there was none
 *   508     4     CRC32C of the bytes before. All lies in one sector of the smallest size, so that
 *                 a power loss leaves a slot as it was or as it was to be
 *
 * FRAME    8-byte aligned
 *   0       4     length in bytes, from here to the end of the checksum
 *   4       2     type
 *   6       2     flags
 *   8       8     generation
 *   16      8     sequence
 *   24      8     transaction: sequence of its first frame; for commit and abort that of the
 *                 prepare frame they settle
 *   32      ..    payload
 *   length-4  4   sum: CRC32C of the sum of the frame before (0 for the first), the generation
 *                 and the bytes before. A frame is valid behind the very frames that it was written
 *                 behind, and nowhere else
 *
 * PAYLOADS  (u8 present flags and lengths are LEB128 varints; numbers little-endian; a store's
 *           numbers of texts and smalls must agree)
 *   put      i64 id | f64 timestamp | f32 norm (NaN: no vector) | u16 texts | u16 smalls |
 *            smalls x 8 | texts x (varint, 0 NULL, else n + 1; n bytes) | dim x 4 vector when norm
 *            is no NaN | token stream to the end. A row with that id that was there is replaced.
 *   delete   i64 id
 *   set      i64 id | u16 smalls | smalls x 8.  All small values of the row.
 *   config   name, NUL, value, NUL
 *   evict    i64 id. As delete, but the last version can be found until a compact, or until a put
 *            or delete of that id
 *   put and delete of a record beside the rows: st_side.h
 *   prepare  16 uuid of the host's state row | u64 device | u64 inode of the host's file | u64
 *            flags: bit 0, the row goes with this transaction | host's file name to the end
 *   commit   empty
 *   abort    u64 sequence of the first frame of the transaction that it voids
 *
 * A transaction is its frames and one prepare. It counts when the header says so (committed
 * length), when a commit frame or a later transaction follows, or, for what is in doubt after a
 * death, when its host's state row holds its id (st_doubt.c); and never when the transaction that
 * follows it begins with an abort frame that names it, and counts itself.
 *
 * THREADS  st_log_load may be called by any thread; the writing calls only under the writer lock.
 * SPDX-License-Identifier: MIT
 */
#ifndef ST_LOG_H
#define ST_LOG_H

#include "st_base.h"

#define ST_LOG_PAGE            4096
#define ST_LOG_START           ((uint64_t)ST_LOG_PAGE)
#define ST_FRAME_HEAD          32
/* Bytes of frames that a flush leaves in the log, to be written over. */
#define ST_LOG_KEPT(autoflush) (2 * (uint64_t)(autoflush))
#define ST_FRAME_MAX                                                                               \
    ((uint64_t)0x7ffffff0) /* a put holds one row, every value of which is far below */

typedef struct st_log_header {
    uint32_t flags;
    uint64_t counter;
    uint8_t uuid[16];
    uint64_t generation;
    uint64_t ino;
    uint64_t committed_len, last_seq;
    uint64_t prepared_len, prepared_seq;
    uint8_t in_force[H5_SUPERBLOCK_BYTES];
    uint8_t pending[H5_SUPERBLOCK_BYTES];
    uint64_t next_ino;
    uint32_t committed_sum, prepared_sum;
    uint8_t owner[16];
    uint64_t owner_seq;
} st_log_header;

enum { ST_LOG_SELF = 1 }; /* st_log_header.flags */

/* The newest valid slot of a mapped page. ST_CORRUPT when neither is valid. */
int st_log_load(const uint8_t *page, st_log_header *out, st_error *err);
/* A number that changes whenever a slot is written: what a statement compares. */
uint64_t st_log_counter(const uint8_t *page);
/* Writes the slot that is not the newest valid one, with a higher counter. A memory store: cannot
** fail. */
void st_log_store(uint8_t *page, st_log_header *h);
/* The same slots as plain bytes, for a log that is being made. */
void st_log_format(uint8_t page[ST_LOG_PAGE], st_log_header *h);

#define ST_PREPARE_BYTES      40 /* of a prepare frame's payload, without the name */
#define ST_PREPARE_DROPPED    1
#define ST_FRAME_COMMIT_BYTES 40 /* of a commit frame, aligned */

enum {
    ST_FRAME_PUT = 1,
    ST_FRAME_DELETE = 2,
    ST_FRAME_SET = 3,
    ST_FRAME_CONFIG = 4,
    ST_FRAME_EVICT = 5,
    ST_FRAME_SIDE_PUT = 6,
    ST_FRAME_SIDE_DELETE = 7,
    ST_FRAME_PREPARE = 16,
    ST_FRAME_COMMIT = 17,
    ST_FRAME_ABORT = 18
};

typedef struct st_frame {
    int type;
    uint16_t flags;
    uint64_t generation, sequence, transaction;
    const uint8_t *payload;
    size_t n;
} st_frame;

/* Appends a frame to b: begin, add the payload to b, end. *sum: of the frame before, then of this
** one. */
int st_frame_begin(st_buf *b, size_t *at, st_error *err);
int st_frame_end(st_buf *b, size_t at, int type, uint64_t generation, uint64_t sequence,
                 uint64_t transaction, uint32_t *sum, st_error *err);
/* Reads the frame at p of n bytes: 1, *used its aligned length and *sum moved on; 0 when what
** stands there is no whole valid frame of this generation behind the one with that sum. */
int st_frame_read(const uint8_t *p, size_t n, uint64_t generation, uint32_t *sum, st_frame *out,
                  size_t *used);

/* The sum of the commit frame that follows a prepare frame with this sequence and sum. */
uint32_t st_frame_commit_sum(uint64_t generation, uint64_t prepare, uint32_t sum);

size_t st_varint_put(uint8_t *p, uint64_t v); /* at most 10 bytes */
/* 1, or 0 when the bytes end or the number is longer than 10 bytes. */
int st_varint_get(const uint8_t *p, size_t n, size_t *pos, uint64_t *v);

#endif
