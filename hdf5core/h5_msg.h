/*
 * h5_msg.h - object header messages: the row of a message, ids, and the codecs that more than one
 * file uses
 *
 * Reading is driven by a table of rows (h5_msg.c): generic code walks a header and hands each
 * message to its row. Unknown ids follow the specification's flags in that one place. Encoders
 * append the body of a message and cannot fail but for memory, which the buffer remembers.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef H5_MSG_H
#define H5_MSG_H

#include "h5_object.h"

enum {
    H5_MSG_NIL = 0x00,
    H5_MSG_SPACE = 0x01,
    H5_MSG_LINK_INFO = 0x02,
    H5_MSG_TYPE = 0x03,
    H5_MSG_FILL_OLD = 0x04,
    H5_MSG_FILL = 0x05,
    H5_MSG_LINK = 0x06,
    H5_MSG_EXTERNAL = 0x07,
    H5_MSG_LAYOUT = 0x08,
    H5_MSG_GROUP_INFO = 0x0A,
    H5_MSG_FILTERS = 0x0B,
    H5_MSG_ATTR = 0x0C,
    H5_MSG_SHARED_TABLE = 0x0F,
    H5_MSG_CONTINUATION = 0x10,
    H5_MSG_SYMBOL_TABLE = 0x11,
    H5_MSG_DRIVER = 0x14,
    H5_MSG_ATTR_INFO = 0x15,
    H5_MSG_CACHE_IMAGE = 0x18
};

/* What a row lets happen more than once, and to shared messages. */
enum { H5_ROW_MANY = 1 };

typedef struct h5_msg_row {
    uint16_t id;
    const char *name;
    int flags; /* H5_ROW_ */
    /* Decodes a message into o. NULL: known, and nothing in it concerns a reader. */
    int (*decode)(h5_object *o, const h5_msg *m, h5_error *err);
    /* Not NULL: a header with this message needs a feature of this name, which is not there:
    ** H5_UNSUPPORTED. */
    const char *refuse;
} h5_msg_row;

/* Gives one message to its row. */
int h5_msg_decode(h5_object *o, const h5_msg *m, h5_error *err);
/* Fetches the message of kind id that the n bytes at body refer to; what it points to belongs to
** the object. at is where the bytes stand, for texts. */
int h5_shared_find(h5_object *o, uint16_t id, const uint8_t *body, size_t n, uint64_t at,
                   h5_msg *out, h5_error *err);
/* The same for an object in the heap of shared messages. */
int h5_shared_in_heap(h5_object *o, uint16_t id, const uint8_t heap_id[8], h5_msg *out,
                      h5_error *err);
/* H5_UNSUPPORTED when the message must be understood and is not, else H5_OK. */
int h5_msg_refused(const h5_msg *m, h5_error *err);

/* Fails with H5_FORMAT: the bytes of a message end before its fields do. */
int h5_msg_short(const h5_msg *m, const char *what, h5_error *err);

int h5_msg_space_decode(h5_object *o, const h5_msg *m, h5_error *err);
int h5_msg_type_decode(h5_object *o, const h5_msg *m, h5_error *err);
int h5_msg_fill_decode(h5_object *o, const h5_msg *m, h5_error *err);
int h5_msg_fill_old_decode(h5_object *o, const h5_msg *m, h5_error *err);
int h5_msg_layout_decode(h5_object *o, const h5_msg *m, h5_error *err);
int h5_msg_filters_decode(h5_object *o, const h5_msg *m, h5_error *err);
int h5_msg_external_decode(h5_object *o, const h5_msg *m, h5_error *err);
int h5_msg_symbols_decode(h5_object *o, const h5_msg *m, h5_error *err);
int h5_msg_link_info_decode(h5_object *o, const h5_msg *m, h5_error *err);
int h5_msg_link_decode(h5_object *o, const h5_msg *m, h5_error *err);
int h5_msg_attr_info_decode(h5_object *o, const h5_msg *m, h5_error *err);
int h5_msg_attr_decode(h5_object *o, const h5_msg *m, h5_error *err);

/* f NULL: addresses and lengths of 8 bytes. */
/* A dataspace: kind, rank, dims and, where asked for, maxdims (both with room for H5_RANK_MAX).
** *nelem their product, 0 for a null dataspace. */
int h5_space_parse(const h5_file *f, h5_cur *c, uint64_t addr, int *kind, int *rank, uint64_t *dims,
                   uint64_t *maxdims, uint64_t *nelem, h5_error *err);
void h5_space_encode(h5_buf *b, int rank, const uint64_t *dims, const uint64_t *maxdims);

/* A datatype. What it points to goes to the arena or stays in the bytes. */
int h5_type_parse(const h5_file *f, h5_cur *c, uint64_t addr, h5_arena *arena, h5_type *out,
                  h5_error *err);
/* H5_MISUSE when the type cannot be written. */
int h5_type_check(const h5_type *t, h5_error *err);
/* The number of bytes that h5_type_encode appends. */
size_t h5_type_bytes(const h5_type *t);
void h5_type_encode(h5_buf *b, const h5_type *t);

/* fill NULL: zeros. */
void h5_fill_encode(h5_buf *b, const h5_type *t, int chunked, const void *fill);
void h5_layout_encode_chunked(h5_buf *b, const h5_dataset_spec *d);
void h5_layout_encode_contiguous(h5_buf *b, uint64_t addr, uint64_t bytes);
void h5_filters_encode(h5_buf *b, const h5_pipeline *p);
void h5_link_encode(h5_buf *b, const h5_link *l);
void h5_link_info_encode(h5_buf *b);
void h5_attr_info_encode(h5_buf *b);
void h5_attr_encode(h5_buf *b, const h5_attr_spec *a);

#endif
