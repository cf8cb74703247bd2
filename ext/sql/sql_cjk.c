/*
 * sql_cjk.c - Chinese, Japanese and Korean runs of a token as characters and pairs of characters.
 *
 * These scripts write no spaces that a tokenizer could go by, so a run of them comes as one token,
 * which only the same run would find. Here each character of a run becomes a position; a row gets
 * the character and, at the same position, the pair with the next one; a query gets the pairs, or
 * the character where it stands alone. In a phrase the last character follows the pairs, so that
 * what stands behind the run has the position that it has in a row. What is written otherwise in
 * the token stays a token.
 *
 * OFFSETS  those of the pieces, where the token is as long as its text; else the token's.
 *
 * SPDX-License-Identifier: MIT
 */
#include "sql_cjk.h"

#include <stdint.h>

typedef struct range {
    uint32_t from, to;
} range;

/* Ascending. */
static const range ranges[] = {
    {0x1100, 0x11FF}, {0x2E80, 0x2FDF}, {0x3005, 0x3007},   {0x3021, 0x3029},   {0x3031, 0x3035},
    {0x303B, 0x303C}, {0x3041, 0x3096}, {0x3099, 0x30FF},   {0x3105, 0x318E},   {0x31A0, 0x31BF},
    {0x31F0, 0x31FF}, {0x3400, 0x4DBF}, {0x4E00, 0x9FFF},   {0xA960, 0xA97F},   {0xAC00, 0xD7FF},
    {0xF900, 0xFAFF}, {0xFF66, 0xFFDC}, {0x1AFF0, 0x1B16F}, {0x20000, 0x3FFFF},
};

/* The character at s, and its bytes; a byte that begins none stands for itself. */
static size_t read_char(const char *s, size_t n, uint32_t *c)
{
    const uint8_t *b = (const uint8_t *)s;
    size_t need = b[0] < 0xC2 ? 1 : b[0] < 0xE0 ? 2 : b[0] < 0xF0 ? 3 : b[0] < 0xF5 ? 4 : 1;
    *c = b[0];
    if (need == 1 || need > n) {
        return 1;
    }
    uint32_t v = b[0] & (0x7Fu >> need);
    for (size_t i = 1; i < need; i++) {
        if ((b[i] & 0xC0) != 0x80) {
            return 1;
        }
        v = v << 6 | (b[i] & 0x3F);
    }
    *c = v;
    return need;
}

static int is_cjk(uint32_t c)
{
    if (c < ranges[0].from) {
        return 0;
    }
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges && c >= ranges[i].from; i++) {
        if (c <= ranges[i].to) {
            return 1;
        }
    }
    return 0;
}

int sql_cjk_any(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if ((uint8_t)s[i] >= 0xE1) { // where the first of the ranges begins
            return 1;
        }
    }
    return 0;
}

/* A token on its way: what is left of it, and what its pieces have. */
typedef struct walk {
    const char *s;
    size_t n;
    int exact, start, end; /* offsets */
    int colocated;         /* of the first piece */
    sql_token_fn *fn;
    void *ctx;
} walk;

static int give(walk *w, size_t from, size_t to, int colocated)
{
    int start = w->exact ? w->start + (int)from : w->start;
    int end = w->exact ? w->start + (int)to : w->end;
    return w->fn(w->ctx, w->s + from, to - from, colocated, start, end);
}

/* The run from `at` on; *next: behind it. */
static int give_run(walk *w, size_t at, int as, size_t *next)
{
    uint32_t c;
    size_t len = read_char(w->s + at, w->n - at, &c);
    int rc = SQLITE_OK, single = 1;
    while (len > 0 && rc == SQLITE_OK) {
        size_t behind = at + len, more = 0;
        if (behind < w->n) {
            more = read_char(w->s + behind, w->n - behind, &c);
            more = is_cjk(c) ? more : 0;
        }
        // of a query only where it stands alone, of a phrase also the last one
        single = as == SQL_CJK_ROW || ((single || as == SQL_CJK_PHRASE) && !more);
        if (single) {
            rc = give(w, at, behind, w->colocated);
        }
        if (more && rc == SQLITE_OK) {
            rc = give(w, at, behind + more, single || w->colocated);
        }
        w->colocated = 0;
        at = behind;
        len = more;
    }
    *next = at;
    return rc;
}

int sql_cjk_split(const char *s, size_t n, int as, int colocated, int start, int end,
                  sql_token_fn *fn, void *ctx)
{
    walk w = {s, n, end - start == (int)n, start, end, colocated, fn, ctx};
    int rc = SQLITE_OK;
    for (size_t at = 0, from = 0; at < n && rc == SQLITE_OK;) {
        uint32_t c;
        size_t len = read_char(s + at, n - at, &c);
        if (!is_cjk(c)) {
            at += len;
            if (at == n) {
                rc = give(&w, from, at, w.colocated);
            }
            continue;
        }
        if (from < at) {
            rc = give(&w, from, at, w.colocated);
            w.colocated = 0;
        }
        rc = rc == SQLITE_OK ? give_run(&w, at, as, &at) : rc;
        from = at;
    }
    return rc;
}
