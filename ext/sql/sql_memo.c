/*
 * sql_memo.c - the tokens of words met before.
 *
 * To fold and stem a word costs a hundred times what it costs to find it again, and most words of
 * a text have been met. A table of fixed size keeps for a word, in small letters, its token as it
 * stands in the stream; two words that fall on one place take turns. Only short words of ASCII
 * letters and digits that have exactly one token are kept; all else goes to the tokenizer, a run of
 * other characters as a whole.
 *
 * ERRORS   SQLite codes; after one the stream holds some of the text's tokens
 * THREADS  as the connection
 *
 * SPDX-License-Identifier: MIT
 */
#include "sql_memo.h"

#include <string.h>

#include "vec.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "words are read as little-endian numbers"
#endif

enum { WORD = 16, PLACES = 8192 }; /* bytes of a word; a power of two */

/* A word and its token with the head, which says how long it is; bytes behind their ends are 0. */
typedef struct place {
    uint64_t word[WORD / 8]; /* 0: nothing here */
    uint8_t token[WORD];
} place;

struct sql_memo {
    uint8_t parts[256]; /* words, that is: ASCII, and neither letter nor digit */
    place at[PLACES];
};

sql_memo *sql_memo_new(void)
{
    sql_memo *m = sqlite3_malloc(sizeof *m);
    if (!m) {
        return NULL;
    }
    memset(m, 0, sizeof *m);
    memset(m->parts, 1, 128);
    memset(&m->parts['a'], 0, 26);
    memset(&m->parts['A'], 0, 26);
    memset(&m->parts['0'], 0, 10);
    return m;
}

void sql_memo_free(sql_memo *m)
{
    sqlite3_free(m);
}

static place *find(sql_memo *m, const uint64_t w[WORD / 8])
{
    uint64_t h = (w[0] ^ (w[1] << 7 | w[1] >> 57)) * 0x9E3779B97F4A7C15u;
    return &m->at[h >> 32 & (PLACES - 1)];
}

// The ends of fields that are due; there is room.
static void put_breaks(sql_tokens *out)
{
    for (; out->breaks > 0; out->breaks--) {
        out->n += vec_token_put(out->bytes + out->n, "", 0, 1);
    }
}

// One word, w in small letters.
static int put_word(place *p, const uint64_t w[WORD / 8], const char *s, size_t n, sql_memo_fn *fn,
                    void *ctx, sql_tokens *out)
{
    if (p->word[0] == w[0] && p->word[1] == w[1]) {
        int rc = sql_tokens_room(out, out->breaks + WORD);
        if (rc != SQLITE_OK) {
            return rc;
        }
        put_breaks(out);
        memcpy(out->bytes + out->n, p->token, WORD);
        out->n += 1 + (p->token[0] >> 1);
        out->count++;
        return SQLITE_OK;
    }
    size_t breaks = out->breaks, count = out->count, from = out->n, pos = 0;
    vec_token token;
    int rc = fn(ctx, s, n, out);
    if (rc != SQLITE_OK || out->count != count + 1) {
        return rc;
    }
    from += breaks; // a byte each
    if (out->n - from > WORD ||
        vec_token_next(out->bytes + from, out->n - from, &pos, &token) < 1 ||
        pos != out->n - from || token.colocated) {
        return SQLITE_OK;
    }
    p->word[0] = w[0];
    p->word[1] = w[1];
    memset(p->token, 0, WORD);
    memcpy(p->token, out->bytes + from, pos);
    return SQLITE_OK;
}

#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

// The highest bit of each byte that parts words. Sums of seven bits do not reach the next byte.
static uint64_t parting(uint64_t w)
{
    uint64_t low = w & EACH(0x7f), small = low | EACH(0x20);
    uint64_t letter = (small + EACH(0x80 - 'a')) & ~(small + EACH(0x80 - 'z' - 1));
    uint64_t digit = (low + EACH(0x80 - '0')) & ~(low + EACH(0x80 - '9' - 1));
    return ~(letter | digit | w) & EACH(0x80);
}

// The length of the run that begins at b, and the run in small letters; 0 when it is not one of at
// most WORD bytes that are all ASCII. Of letters and digits only capitals lack a bit of 0x20.
static size_t read_word(const uint8_t *b, size_t room, uint64_t w[WORD / 8])
{
    uint64_t first, second;
    size_t n;
    if (room >= WORD) {
        memcpy(w, b, WORD); // two loads
    } else {
        w[0] = w[1] = 0;
        memcpy(w, b, room);
    }
    first = parting(w[0]);
    if (first) {
        n = (size_t)__builtin_ctzll(first) / 8;
        w[0] &= ~(UINT64_MAX << 8 * n);
        w[1] = 0;
    } else {
        second = parting(w[1]);
        n = 8 + (second ? (size_t)__builtin_ctzll(second) / 8 : 8);
        w[1] &= second ? ~(UINT64_MAX << 8 * (n - 8)) : UINT64_MAX;
    }
    if ((w[0] | w[1]) & EACH(0x80)) {
        return 0;
    }
    w[0] |= EACH(0x20) & (n < 8 ? ~(UINT64_MAX << 8 * n) : UINT64_MAX);
    w[1] |= n <= 8 ? 0 : n < WORD ? EACH(0x20) & ~(UINT64_MAX << 8 * (n - 8)) : EACH(0x20);
    return n;
}

int sql_memo_text(sql_memo *m, const char *s, size_t n, sql_memo_fn *fn, void *ctx, sql_tokens *out)
{
    const uint8_t *b = (const uint8_t *)s;
    int rc = SQLITE_OK;
    for (size_t i = 0; i < n && rc == SQLITE_OK;) {
        uint64_t w[WORD / 8];
        size_t len;
        if (m->parts[b[i]]) {
            i++;
            continue;
        }
        len = read_word(b + i, n - i, w);
        if (len && (len < WORD || len == n - i || m->parts[b[i + len]])) {
            rc = put_word(find(m, w), w, s + i, len, fn, ctx, out);
        } else {
            for (len = 1; len < n - i && !m->parts[b[i + len]]; len++) {
            }
            rc = fn(ctx, s + i, len, out);
        }
        i += len;
    }
    return rc;
}
