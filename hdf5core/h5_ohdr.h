/*
 * h5_ohdr.h - object headers: their messages in memory, and making new ones
 *
 * OWNERSHIP  message bodies point into blocks, which an h5_ohdr owns until h5_ohdr_free, or into a
 *            file that is in constant memory (h5_file_in_place).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef H5_OHDR_H
#define H5_OHDR_H

#include "h5_file.h"

/* Message flags. */
enum { H5_MSG_CONSTANT = 0x01, H5_MSG_SHARED = 0x02, H5_MSG_FAIL_IF_UNKNOWN = 0x80 };

typedef struct h5_msg {
    uint16_t id;
    uint8_t flags; /* H5_MSG_ */
    uint32_t size;
    const uint8_t *body;
    uint64_t addr;        /* of the body in the file */
    uint64_t shared_from; /* header that a shared message was taken from, else 0 */
} h5_msg;

enum { H5_OHDR_FEW = 8 }; /* messages of most headers */

/* Not to be copied: msg may point into it. */
typedef struct h5_ohdr {
    uint64_t addr;
    uint8_t *first;  /* the first block, where it is owned */
    uint8_t **block; /* the continuation blocks that are owned */
    size_t nblock, block_cap;
    unsigned ncontinued; /* continuation blocks */
    h5_msg *msg; /* in stored order, without padding and continuations; few, or from the heap */
    size_t nmsg, msg_cap;
    h5_msg few[H5_OHDR_FEW];
} h5_ohdr;

/* Reads all blocks of the header at addr, checks their checksums and splits them into messages.
** After a failure *out holds nothing. */
int h5_ohdr_read(h5_file *f, uint64_t addr, h5_ohdr *out, h5_error *err);
void h5_ohdr_free(h5_ohdr *oh);

/* Starts a message in b; its body is whatever is appended until h5_ohdr_msg_end, which gets the
** returned position. A body over 65,535 bytes is H5_LIMIT. */
size_t h5_ohdr_msg(h5_buf *b, uint16_t id, uint8_t flags);
int h5_ohdr_msg_end(h5_buf *b, size_t at, h5_error *err);

/* Appends a header of the messages in b, one block without times, at the next multiple of 8; *at
** its address. */
int h5_ohdr_write(h5_writer *w, const h5_buf *b, uint64_t *at, h5_error *err);

#endif
