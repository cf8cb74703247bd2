/*
 * st_encode.h - a transaction's net effect as frames of the log.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ST_ENCODE_H
#define ST_ENCODE_H

#include "st_store.h"

typedef struct st_encoder {
    st_buf *buf;
    uint64_t at; /* offset in the log of what buf holds */
    uint64_t generation, seq, transaction;
    uint32_t sum;  /* of the frame before */
    uint64_t keep; /* as st_log_write has it */
} st_encoder;

/* Writes what has gathered: the frames of a large transaction pass through a small buffer. */
int st_encode_write(st_conn *c, st_encoder *e, st_error *err);
/* Ends the frame that began at offset at of the buffer. */
int st_encode_frame(st_encoder *e, size_t at, int type, st_error *err);
/* An abort frame for the transaction whose first frame has that sequence. */
int st_encode_abort(st_encoder *e, uint64_t first, st_error *err);
/* All of the transaction with its prepare frame; notes what the changes are about. */
int st_encode_all(st_conn *c, const st_log_header *h, st_encoder *e, st_error *err);

#endif
