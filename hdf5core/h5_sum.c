/*
 * h5_sum.c - Jenkins' lookup3, the checksum of HDF5 metadata
 *
 * The 32-bit result of Bob Jenkins' "hashlittle" (lookup3.c, May 2006, public domain): three words
 * of state, mixed after every 12 bytes, a final mix over the last 1 to 12. HDF5 stores it after
 * every version 2 structure, start value 0.
 *
 * TESTS    t_h5_sum.c
 *
 * SPDX-License-Identifier: MIT
 */
#include "h5_sum.h"

static inline uint32_t rotl(uint32_t x, int k)
{
    return x << k | x >> (32 - k);
}

uint32_t h5_lookup3(const void *bytes, size_t n, uint32_t init)
{
    const uint8_t *p = bytes;
    uint32_t a = 0xdeadbeefu + (uint32_t)n + init, b = a, c = a;
    for (; n > 12; n -= 12, p += 12) {
        a += h5_get32(p);
        b += h5_get32(p + 4);
        c += h5_get32(p + 8);
        a = (a - c) ^ rotl(c, 4), c += b;
        b = (b - a) ^ rotl(a, 6), a += c;
        c = (c - b) ^ rotl(b, 8), b += a;
        a = (a - c) ^ rotl(c, 16), c += b;
        b = (b - a) ^ rotl(a, 19), a += c;
        c = (c - b) ^ rotl(b, 4), b += a;
    }
    if (n == 0)
        return c;
    uint8_t tail[12] = {0};
    memcpy(tail, p, n);
    a += h5_get32(tail);
    b += h5_get32(tail + 4);
    c += h5_get32(tail + 8);
    c = (c ^ b) - rotl(b, 14);
    a = (a ^ c) - rotl(c, 11);
    b = (b ^ a) - rotl(a, 25);
    c = (c ^ b) - rotl(b, 16);
    a = (a ^ c) - rotl(c, 4);
    b = (b ^ a) - rotl(a, 14);
    c = (c ^ b) - rotl(b, 24);
    return c;
}

int h5_sum_check(const uint8_t *p, size_t n, const char *what, uint64_t addr, h5_error *err)
{
    if (n < 4)
        return h5_fail(err, H5_FORMAT, addr, "%s: too short for its checksum", what);
    uint32_t stored = h5_get32(p + n - 4), made = h5_lookup3(p, n - 4, 0);
    if (stored != made)
        return h5_fail(err, H5_FORMAT, addr, "%s: checksum is %08x, the bytes give %08x", what,
                       (unsigned)stored, (unsigned)made);
    return H5_OK;
}

void h5_sum_put(h5_buf *b, size_t from)
{
    h5_buf_u32(b, b->bad ? 0 : h5_lookup3(b->p + from, b->n - from, 0));
}
