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

enum { PARTS, LETTER, BEYOND }; /* what parts words; an ASCII letter or digit; not ASCII */

struct sql_memo {
    uint8_t is[256];
    place at[PLACES];
};

sql_memo *sql_memo_new(void)
{
    sql_memo *m = sqlite3_malloc(sizeof *m);
    if (!m) {
        return NULL;
    }
    memset(m, 0, sizeof *m);
    memset(m->is + 'a', LETTER, 26);
    memset(m->is + 'A', LETTER, 26);
    memset(m->is + '0', LETTER, 10);
    memset(m->is + 128, BEYOND, 128);
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

// A word of n bytes in small letters: of letters and digits only capitals lack that bit.
static void small_letters(const uint8_t *b, size_t n, size_t room, uint64_t w[WORD / 8])
{
    static const uint64_t bit = 0x2020202020202020u;
    uint64_t first = n < 8 ? UINT64_MAX >> (64 - 8 * n) : UINT64_MAX;
    uint64_t second = n <= 8 ? 0 : UINT64_MAX >> (128 - 8 * n);
    if (room >= WORD) {
        memcpy(w, b, WORD);
    } else {
        w[0] = w[1] = 0;
        memcpy(w, b, n);
    }
    w[0] = (w[0] | bit) & first;
    w[1] = (w[1] | bit) & second;
}

int sql_memo_text(sql_memo *m, const char *s, size_t n, sql_memo_fn *fn, void *ctx, sql_tokens *out)
{
    const uint8_t *b = (const uint8_t *)s, *is = m->is;
    int rc = SQLITE_OK;
    for (size_t i = 0; i < n && rc == SQLITE_OK;) {
        size_t from = i;
        unsigned all = 0;
        for (unsigned c; i < n && (c = is[b[i]]) != PARTS; i++) {
            all |= c;
        }
        if (all == LETTER && i - from <= WORD) {
            uint64_t w[WORD / 8];
            small_letters(b + from, i - from, n - from, w);
            rc = put_word(find(m, w), w, s + from, i - from, fn, ctx, out);
        } else if (all) {
            rc = fn(ctx, s + from, i - from, out);
        }
        i += i < n; // what ended it parts words
    }
    return rc;
}
