/*
 * vec_tok.c - the token stream: reading and writing it
 *
 * FORMAT   in vec.h. Only the shortest form of a length is accepted, so that equal tokens have
 *          equal bytes.
 * ERRORS   VEC_FORMAT
 * THREADS  no state
 *
 * SPDX-License-Identifier: MIT
 */
#include "vec_base.h"

int vec_token_next(const uint8_t *stream, size_t n, size_t *pos, vec_token *out)
{
    uint32_t head;
    size_t used;

    *out = (vec_token){NULL, 0, 0};
    if (*pos >= n)
        return 0;
    used = vec_get_varint(stream + *pos, stream + n, &head);
    if (!used || head >> 1 > VEC_TOKEN_MAX || head >> 1 > n - *pos - used)
        return VEC_FORMAT;
    *out = (vec_token){(const char *)stream + *pos + used, head >> 1, (int)(head & 1)};
    *pos += used + out->n;
    return 1;
}

size_t vec_token_put(uint8_t *out, const char *s, uint32_t n, int colocated)
{
    size_t used;

    if (n > VEC_TOKEN_MAX)
        n = VEC_TOKEN_MAX;
    used = vec_put_varint(out, n << 1 | (colocated != 0));
    if (n)
        memcpy(out + used, s, n);
    return used + n;
}
