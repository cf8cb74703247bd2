/*
 * h5_ohdr.c - object headers, read in versions 1 and 2 and written in version 2
 *
 * A header is a chain of blocks full of messages. Reading collects all blocks first and gives the
 * messages as one array; what they mean is the business of their rows (h5_msg.c). Writing makes one
 * block: a header is never edited here, always written anew.
 *
 * FORMAT   HDF5 spec: IV.A.1.b "Version 2 Data Object Header Prefix", IV.A.2 messages
 *   first block                             continuation block (found by message 0x10:
 *                                           address 8, length 8)
 *   4   "OHDR"                              4   "OCHK"
 *   1   version 2                           ..  messages, gap
 *   1   flags: bits 0-1 width of size 1<<n  4   lookup3
 *       2 creation order in messages
 *       4 phase change stored, 5 times      message
 *   16  times (flag 5)                      1   id
 *   4   phase change (flag 4)               2   size of the body
 *   1-8 size of messages and gap            1   flags
 *   ..  messages, gap                       2   creation order (flag 2)
 *   4   lookup3                             ..  body
 *   A gap is shorter than the start of a message and is ignored.
 *          IV.A.1.a "Version 1 Data Object Header Prefix"
 *   first block                             continuation block: messages only
 *   1   version 1, 1 reserved               message
 *   2   number of messages                  2   id
 *   4   reference count                     2   size of the body, a multiple of 8
 *   4   size of messages, 4 of padding      1   flags, 3 reserved
 *   ..  messages                            ..  body
 *
 * ERRORS   H5_FORMAT; H5_LIMIT H5_OHDR_BLOCKS_MAX
 * TESTS    t_h5_ohdr.c
 *
 * SPDX-License-Identifier: MIT
 */
#include <inttypes.h>

#include "h5_msg.h"
#include "h5_ohdr.h"
#include "h5_sum.h"

enum {
    FLAG_WIDTH = 0x03,
    FLAG_ORDER = 0x04,
    FLAG_PHASE = 0x10,
    FLAG_TIMES = 0x20,
    FLAGS_KNOWN = 0x3F, /* bit 3 (order indexed) changes nothing for us */
    PREFIX_MAX = 34,
    GUESS = 256, /* most headers of groups and datasets are no longer */
};

/* The fixed start of a header, and what follows from its flags. */
typedef struct prefix {
    int version;
    unsigned msg_head; /* bytes before the body of a message */
    unsigned sum;      /* bytes of a checksum at the end of a block */
    size_t bytes;      /* of the prefix itself */
    uint64_t size;     /* messages and gap */
} prefix;

static int parse_prefix(const uint8_t *p, size_t n, uint64_t addr, prefix *out, h5_error *err)
{
    h5_cur c = h5_cur_on(p, n);
    out->version = 2;
    out->sum = 4;
    if (!h5_cur_sig(&c, "OHDR")) {
        c = h5_cur_on(p, n);
        out->version = h5_cur_u8(&c);
        h5_cur_take(&c, 7);
        out->size = h5_cur_u32(&c);
        h5_cur_take(&c, 4);
        out->msg_head = 8;
        out->bytes = 16;
        out->sum = 0;
        if (!c.bad && out->version == 1)
            return H5_OK;
        return h5_fail(err, H5_FORMAT, addr, "object header: no signature at %" PRIu64, addr);
    }
    unsigned version = h5_cur_u8(&c), flags = h5_cur_u8(&c);
    if (!c.bad && version != 2)
        return h5_fail(err, H5_FORMAT, addr, "object header: version %u", version);
    if (!c.bad && flags & ~(unsigned)FLAGS_KNOWN)
        return h5_fail(err, H5_FORMAT, addr, "object header: flags %02x", flags);
    if (flags & FLAG_TIMES)
        h5_cur_take(&c, 16);
    if (flags & FLAG_PHASE)
        h5_cur_take(&c, 4);
    out->size = h5_cur_uint(&c, 1u << (flags & FLAG_WIDTH));
    out->msg_head = flags & FLAG_ORDER ? 6 : 4;
    out->bytes = n - c.left;
    if (c.bad)
        return h5_fail(err, H5_FORMAT, addr, "object header: cut off at %" PRIu64, addr + n);
    return H5_OK;
}

/* Takes over a block. */
static int keep_block(h5_ohdr *oh, uint8_t *block, h5_error *err)
{
    if (!oh->first) {
        oh->first = block;
        return H5_OK;
    }
    if (!h5_grow((void **)&oh->block, &oh->block_cap, oh->nblock, sizeof *oh->block)) {
        h5_free(block);
        return h5_fail_nomem(err, "an object header");
    }
    oh->block[oh->nblock++] = block;
    return H5_OK;
}

/* The n bytes of a block: in place, or read and then kept by oh. */
static int get_block(h5_file *f, h5_ohdr *oh, uint64_t addr, uint64_t n, const char *what,
                     const uint8_t **out, h5_error *err)
{
    uint8_t *block;
    H5_TRY(h5_file_inside(f, addr, n, what, err));
    *out = h5_file_in_place(f, addr);
    if (*out)
        return H5_OK;
    H5_TRY(h5_file_load(f, addr, n, what, &block, err));
    H5_TRY(keep_block(oh, block, err));
    *out = block;
    return H5_OK;
}

/* The first block, whose prefix says how long it is. What most headers need is read at once. */
static int first_block(h5_file *f, h5_ohdr *oh, prefix *pre, const uint8_t **block, h5_error *err)
{
    uint64_t whole = 0, addr = oh->addr;
    uint8_t *guess = NULL;
    H5_TRY(h5_file_inside(f, addr, 4, "object header", err));
    size_t n = f->eof - addr < GUESS ? (size_t)(f->eof - addr) : GUESS;
    *block = h5_file_in_place(f, addr);
    if (!*block) {
        H5_TRY(h5_file_load(f, addr, n, "object header", &guess, err));
        *block = oh->first = guess;
    }
    H5_TRY(parse_prefix(*block, n < PREFIX_MAX ? n : PREFIX_MAX, addr, pre, err));
    if (!h5_add_fits(pre->size, pre->bytes + pre->sum, &whole))
        return h5_fail(err, H5_FORMAT, addr, "object header: size %" PRIu64, pre->size);
    if (!guess || whole > n) {
        h5_free(guess);
        oh->first = NULL;
        H5_TRY(get_block(f, oh, addr, whole, "object header", block, err));
    }
    return pre->sum ? h5_sum_check(*block, (size_t)whole, "object header", addr, err) : H5_OK;
}

static int add_message(h5_ohdr *oh, const h5_msg *m, h5_error *err)
{
    if (oh->msg == oh->few && oh->nmsg < H5_OHDR_FEW) {
        oh->few[oh->nmsg++] = *m;
        return H5_OK;
    }
    h5_msg *heap = oh->msg == oh->few ? NULL : oh->msg;
    if (!h5_grow((void **)&heap, &oh->msg_cap, oh->nmsg, sizeof *oh->msg))
        return h5_fail_nomem(err, "the messages of an object header");
    if (oh->msg == oh->few)
        memcpy(heap, oh->few, sizeof oh->few);
    oh->msg = heap;
    oh->msg[oh->nmsg++] = *m;
    return H5_OK;
}

/* Splits the n bytes at p (in the file at addr) into messages. */
static int split(h5_ohdr *oh, const uint8_t *p, size_t n, uint64_t addr, const prefix *pre,
                 h5_error *err)
{
    h5_cur c = h5_cur_on(p, n);
    while (c.left >= pre->msg_head) {
        h5_msg m = {0};
        m.id = pre->version == 1 ? h5_cur_u16(&c) : h5_cur_u8(&c);
        m.size = h5_cur_u16(&c);
        m.flags = h5_cur_u8(&c);
        h5_cur_take(&c, pre->version == 1 ? 3 : pre->msg_head - 4);
        m.addr = addr + (n - c.left);
        m.body = h5_cur_take(&c, m.size);
        if (c.bad)
            return h5_fail(err, H5_FORMAT, m.addr,
                           "object header message %02x: %u bytes run over the block", m.id, m.size);
        if (m.id != H5_MSG_NIL)
            H5_TRY(add_message(oh, &m, err));
    }
    return H5_OK;
}

/* Reads the block that the continuation message m names. *left is what the blocks of one header may
** still hold: they are distinct parts of the file, so together they are no longer than it; a chain
** that runs in a circle uses that up. */
static int continue_at(h5_file *f, h5_ohdr *oh, h5_msg m, const prefix *pre, uint64_t *left,
                       h5_error *err)
{
    h5_cur c = h5_cur_on(m.body, m.size);
    uint64_t addr = h5_cur_addr(&c, f), n = h5_cur_length(&c, f);
    const uint8_t *block;
    if (c.bad || n < 2 * pre->sum)
        return h5_fail(err, H5_FORMAT, m.addr, "continuation message: %u bytes, block of %" PRIu64,
                       m.size, n);
    if (oh->ncontinued >= H5_OHDR_BLOCKS_MAX - 1)
        return h5_fail(err, H5_LIMIT, m.addr,
                       "object header: more than H5_OHDR_BLOCKS_MAX = %u blocks",
                       H5_OHDR_BLOCKS_MAX);
    if (n > *left)
        return h5_fail(err, H5_FORMAT, m.addr,
                       "continuation blocks: longer together than the file");
    *left -= n;
    oh->ncontinued++;
    H5_TRY(get_block(f, oh, addr, n, "continuation block", &block, err));
    if (pre->version == 1)
        return split(oh, block, (size_t)n, addr, pre, err);
    if (memcmp(block, "OCHK", 4) != 0)
        return h5_fail(err, H5_FORMAT, addr, "continuation block: no signature at %" PRIu64, addr);
    H5_TRY(h5_sum_check(block, (size_t)n, "continuation block", addr, err));
    return split(oh, block + 4, (size_t)n - 8, addr + 4, pre, err);
}

static int read_blocks(h5_file *f, h5_ohdr *oh, h5_error *err)
{
    prefix pre = {0};
    const uint8_t *block;
    uint64_t left = f->eof;
    size_t kept = 0;
    H5_TRY(first_block(f, oh, &pre, &block, err));
    H5_TRY(split(oh, block + pre.bytes, (size_t)pre.size, oh->addr + pre.bytes, &pre, err));
    // Continuations add to the end of the array while it is walked; they themselves are dropped
    // from it.
    for (size_t i = 0; i < oh->nmsg; i++) {
        if (oh->msg[i].id == H5_MSG_CONTINUATION)
            H5_TRY(continue_at(f, oh, oh->msg[i], &pre, &left, err));
        else
            oh->msg[kept++] = oh->msg[i];
    }
    oh->nmsg = kept;
    return H5_OK;
}

int h5_ohdr_read(h5_file *f, uint64_t addr, h5_ohdr *out, h5_error *err)
{
    memset(out, 0, offsetof(h5_ohdr, few));
    out->msg = out->few;
    out->addr = addr;
    int rc = read_blocks(f, out, err);
    if (rc != H5_OK)
        h5_ohdr_free(out);
    return rc;
}

void h5_ohdr_free(h5_ohdr *oh)
{
    for (size_t i = 0; i < oh->nblock; i++)
        h5_free(oh->block[i]);
    h5_free(oh->first);
    h5_free(oh->block);
    if (oh->msg != oh->few)
        h5_free(oh->msg);
    memset(oh, 0, offsetof(h5_ohdr, few));
}

size_t h5_ohdr_msg(h5_buf *b, uint16_t id, uint8_t flags)
{
    size_t at = b->n;
    h5_buf_u8(b, id);
    h5_buf_u16(b, 0);
    h5_buf_u8(b, flags);
    return at;
}

int h5_ohdr_msg_end(h5_buf *b, size_t at, h5_error *err)
{
    if (b->bad)
        return h5_fail_nomem(err, "a new object header");
    size_t size = b->n - at - 4;
    if (size > H5_MESSAGE_BYTES_MAX)
        return h5_fail(err, H5_LIMIT, H5_UNDEF,
                       "object header message %02x: %zu bytes, H5_MESSAGE_BYTES_MAX = %u", b->p[at],
                       size, H5_MESSAGE_BYTES_MAX);
    h5_set16(b->p + at + 1, (uint16_t)size);
    return H5_OK;
}

int h5_ohdr_write(h5_writer *w, const h5_buf *b, uint64_t *at, h5_error *err)
{
    h5_buf out = {0};
    unsigned width = b->n < 1u << 8 ? 0 : b->n < 1u << 16 ? 1 : 2;
    *at = 0;
    if (b->bad)
        return h5_fail_nomem(err, "a new object header");
    if (b->n > UINT32_MAX)
        return h5_fail(err, H5_LIMIT, H5_UNDEF, "object header: %zu bytes of messages", b->n);
    h5_buf_put(&out, "OHDR", 4);
    h5_buf_u8(&out, 2);
    h5_buf_u8(&out, width);
    h5_buf_uint(&out, b->n, 1u << width);
    h5_buf_put(&out, b->p, b->n);
    h5_sum_put(&out, 0);
    int rc = out.bad ? h5_fail_nomem(err, "a new object header")
                     : h5_writer_append(w, out.p, out.n, 8, at, err);
    h5_buf_free(&out);
    return rc;
}
