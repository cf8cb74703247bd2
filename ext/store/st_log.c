/*
 * st_log.c - header slots and frames of the log as bytes. Layout in st_log.h.
 *
 * A slot is written into the mapped page body first, its counter last and atomically. A reader
 * takes the slot with the higher counter, copies it, and looks whether the counter is still the
 * same; the writer meanwhile works on the other slot, so that a reader starts over only after two
 * writes in a row. A writer that dies in mid-slot leaves that slot with its old counter and a wrong
 * checksum: the other one stays in force.
 *
 * SPDX-License-Identifier: MIT
 */
#include "st_log.h"

enum { SLOT = ST_LOG_PAGE / 2, USED = 512, COUNTER = 16, CRC = USED - 4 };

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the log's counter and the file's numbers are used in place: little-endian machines only"
#endif

static const char magic[8] = {'h', '5', 'm', 'e', 'm', 'l', 'o', 'g'};

static uint64_t load_counter(const uint8_t *slot)
{
    return __atomic_load_n((const uint64_t *)(const void *)(slot + COUNTER), __ATOMIC_ACQUIRE);
}

uint64_t st_log_counter(const uint8_t *page)
{
    uint64_t a = load_counter(page), b = load_counter(page + SLOT);
    return ST_MAX(a, b);
}

static void pack(const st_log_header *h, uint8_t *p)
{
    memset(p, 0, USED);
    memcpy(p, magic, 8);
    st_put32(p + 8, 1);
    st_put32(p + 12, h->flags);
    st_put64(p + COUNTER, h->counter);
    memcpy(p + 24, h->uuid, 16);
    st_put64(p + 40, h->generation);
    st_put64(p + 48, h->ino);
    st_put64(p + 56, h->committed_len);
    st_put64(p + 64, h->last_seq);
    st_put64(p + 72, h->prepared_len);
    st_put64(p + 80, h->prepared_seq);
    memcpy(p + 88, h->in_force, H5_SUPERBLOCK_BYTES);
    memcpy(p + 136, h->pending, H5_SUPERBLOCK_BYTES);
    st_put64(p + 184, h->next_ino);
    st_put32(p + 192, h->committed_sum);
    st_put32(p + 196, h->prepared_sum);
    memcpy(p + 200, h->owner, sizeof h->owner);
    st_put64(p + 216, h->owner_seq);
    st_put32(p + CRC, st_crc32c(0, p, CRC));
}

static int unpack(const uint8_t *p, st_log_header *h)
{
    if (memcmp(p, magic, 8) != 0 || st_get32(p + 8) != 1 ||
        st_get32(p + CRC) != st_crc32c(0, p, CRC)) {
        return 0;
    }
    h->flags = st_get32(p + 12);
    h->counter = st_get64(p + COUNTER);
    memcpy(h->uuid, p + 24, 16);
    h->generation = st_get64(p + 40);
    h->ino = st_get64(p + 48);
    h->committed_len = st_get64(p + 56);
    h->last_seq = st_get64(p + 64);
    h->prepared_len = st_get64(p + 72);
    h->prepared_seq = st_get64(p + 80);
    memcpy(h->in_force, p + 88, H5_SUPERBLOCK_BYTES);
    memcpy(h->pending, p + 136, H5_SUPERBLOCK_BYTES);
    h->next_ino = st_get64(p + 184);
    h->committed_sum = st_get32(p + 192);
    h->prepared_sum = st_get32(p + 196);
    memcpy(h->owner, p + 200, sizeof h->owner);
    h->owner_seq = st_get64(p + 216);
    return h->committed_len >= ST_LOG_START && h->committed_len % 8 == 0 &&
           h->prepared_len % 8 == 0;
}

// The page is shared with other processes that write it: plain memcpy of words that may change
// under us is what the counter guards, and ThreadSanitizer has to be told so.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNDER_TSAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__) || defined(UNDER_TSAN)
#define MAY_RACE __attribute__((no_sanitize("thread")))
#else
#define MAY_RACE
#endif

MAY_RACE static void copy_slot(const uint8_t *slot, uint8_t *out)
{
    const volatile uint64_t *w = (const volatile uint64_t *)(const volatile void *)slot;
    for (size_t i = 0; i < USED / 8; i++) {
        uint64_t v = w[i];
        memcpy(out + i * 8, &v, 8);
    }
}

/* Slot i, 0 or 1, when it is valid. */
static int read_slot(const uint8_t *page, int i, st_log_header *out)
{
    uint8_t copy[USED];
    copy_slot(page + i * SLOT, copy);
    return unpack(copy, out) && (out->counter & 1) == (uint64_t)i;
}

int st_log_load(const uint8_t *page, st_log_header *out, st_error *err)
{
    for (int tries = 0; tries < 1000; tries++) {
        uint64_t a = load_counter(page), b = load_counter(page + SLOT);
        int newest = a > b ? 0 : 1, good = read_slot(page, newest, out);
        if (st_log_counter(page) != ST_MAX(a, b)) {
            continue;
        }
        if (good) {
            return ST_OK;
        }
        // The newest slot is damaged. The older one stands for the state before.
        good = read_slot(page, !newest, out);
        if (good && st_log_counter(page) == ST_MAX(a, b)) {
            return ST_OK;
        }
    }
    memset(out, 0, sizeof *out);
    return st_fail(err, ST_CORRUPT, "the log's header is damaged in both copies");
}

MAY_RACE void st_log_store(uint8_t *page, st_log_header *h)
{
    uint8_t bytes[USED];
    uint8_t *slot;
    volatile uint64_t *w;
    st_log_header have;
    // h as it was loaded or stored last, which is how a writer has it: that slot is the newest.
    uint64_t newest = h->counter && h->counter == st_log_counter(page) ? h->counter : 0;
    if (!newest) {
        for (int i = 0; i < 2; i++) {
            if (read_slot(page, i, &have) && have.counter > newest) {
                newest = have.counter;
            }
        }
    }
    // The newest valid slot stays. What the other one has for a counter, damaged or not, must not
    // be what it gets: readers look for a change of that number.
    slot = page + (~newest & 1) * SLOT;
    h->counter = newest + (load_counter(slot) == newest + 1 ? 3 : 1);
    pack(h, bytes);
    w = (volatile uint64_t *)(volatile void *)slot;
    for (size_t i = 0; i < USED / 8; i++) {
        if (i != COUNTER / 8) {
            uint64_t v;
            memcpy(&v, bytes + i * 8, 8);
            w[i] = v;
        }
    }
    __atomic_store_n((uint64_t *)(void *)(slot + COUNTER), h->counter, __ATOMIC_RELEASE);
}

void st_log_format(uint8_t page[ST_LOG_PAGE], st_log_header *h)
{
    h->counter = 1;
    pack(h, page + SLOT);
    h->counter = 2;
    pack(h, page);
}

/* --------------------------------------------------------------------------------------- frames */

int st_frame_begin(st_buf *b, size_t *at, st_error *err)
{
    *at = b->n;
    return st_buf_zeros(b, ST_FRAME_HEAD, err);
}

static uint32_t frame_sum(const uint8_t *p, size_t n, uint64_t generation, uint32_t before)
{
    uint8_t start[12];
    st_put32(start, before);
    st_put64(start + 4, generation);
    return st_crc32c(st_crc32c(0, start, sizeof start), p, n);
}

static void put_head(uint8_t *p, size_t length, int type, uint64_t generation, uint64_t sequence,
                     uint64_t transaction)
{
    st_put32(p, (uint32_t)length);
    st_put16(p + 4, (uint16_t)type);
    st_put16(p + 6, 0);
    st_put64(p + 8, generation);
    st_put64(p + 16, sequence);
    st_put64(p + 24, transaction);
}

uint32_t st_frame_commit_sum(uint64_t generation, uint64_t prepare, uint32_t sum)
{
    uint8_t p[ST_FRAME_HEAD];
    put_head(p, ST_FRAME_HEAD + 4, ST_FRAME_COMMIT, generation, prepare + 1, prepare);
    return frame_sum(p, sizeof p, generation, sum);
}

int st_frame_end(st_buf *b, size_t at, int type, uint64_t generation, uint64_t sequence,
                 uint64_t transaction, uint32_t *sum, st_error *err)
{
    size_t length = b->n - at + 4, pad = (8 - (length & 7)) & 7;
    uint8_t *p;
    if (length > ST_FRAME_MAX) {
        return st_fail(err, ST_LIMIT, "a row of %zu bytes; at most %llu", length,
                       (unsigned long long)ST_FRAME_MAX);
    }
    ST_TRY(st_buf_zeros(b, 4 + pad, err));
    p = b->p + at;
    put_head(p, length, type, generation, sequence, transaction);
    *sum = frame_sum(p, length - 4, generation, *sum);
    st_put32(p + length - 4, *sum);
    return ST_OK;
}

int st_frame_read(const uint8_t *p, size_t n, uint64_t generation, uint32_t *sum, st_frame *out,
                  size_t *used)
{
    size_t length, whole;
    uint32_t mine;
    if (n < ST_FRAME_HEAD + 4) {
        return 0;
    }
    length = st_get32(p);
    whole = (length + 7) & ~(size_t)7;
    if (length < ST_FRAME_HEAD + 4 || length > ST_FRAME_MAX || whole > n ||
        st_get64(p + 8) != generation) {
        return 0;
    }
    mine = frame_sum(p, length - 4, generation, *sum);
    if (st_get32(p + length - 4) != mine) {
        return 0;
    }
    *sum = mine;
    out->type = st_get16(p + 4);
    out->flags = st_get16(p + 6);
    out->generation = generation;
    out->sequence = st_get64(p + 16);
    out->transaction = st_get64(p + 24);
    out->payload = p + ST_FRAME_HEAD;
    out->n = length - ST_FRAME_HEAD - 4;
    *used = whole;
    return 1;
}

size_t st_varint_put(uint8_t *p, uint64_t v)
{
    size_t n = 0;
    for (; v >= 0x80; v >>= 7) {
        p[n++] = (uint8_t)(v | 0x80);
    }
    p[n++] = (uint8_t)v;
    return n;
}

int st_varint_get(const uint8_t *p, size_t n, size_t *pos, uint64_t *v)
{
    uint64_t x = 0;
    for (int shift = 0; shift < 70 && *pos < n; shift += 7) {
        uint8_t b = p[(*pos)++];
        x |= (uint64_t)(b & 0x7f) << ST_MIN(shift, 63);
        if (!(b & 0x80)) {
            *v = x;
            return shift < 63 || b <= 1;
        }
    }
    return 0;
}
