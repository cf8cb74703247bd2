/*
 * sql_own.c - our own unicode61: what is a letter, and what it folds to, from tables that
 * make_unicode.py has read off FTS5's.
 *
 * ERRORS   what the callback returns, and SQLITE_NOMEM
 * THREADS  any; there is no state
 *
 * SPDX-License-Identifier: MIT
 */
#include "sql_own.h"

#include <string.h>

#include "sql_unicode.h"

/* ----------------------------------------------------------------------------------- characters */

enum { LETTERS = sizeof sql_unicode_letters / sizeof *sql_unicode_letters };
enum { FOLDS = sizeof sql_unicode_folds / sizeof *sql_unicode_folds };
enum { MARKS = sizeof sql_unicode_marks / sizeof *sql_unicode_marks };

static int in_runs(const uint32_t *run, size_t n, uint32_t c)
{
    size_t lo = 0;
    while (lo < n) { // the first run that begins behind c
        size_t mid = lo + (n - lo) / 2;
        if (run[mid] >> 11 <= c) {
            lo = mid + 1;
        } else {
            n = mid;
        }
    }
    return lo > 0 && c - (run[lo - 1] >> 11) < (run[lo - 1] & 2047);
}

static uint32_t fold(uint32_t c)
{
    size_t lo = 0, hi = FOLDS;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (sql_unicode_folds[mid].run >> 11 <= c) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    if (lo == 0) {
        return c;
    }
    const sql_fold *f = &sql_unicode_folds[lo - 1];
    uint32_t at = c - (f->run >> 11), second = f->run >> 10 & 1;
    if (at & second || at >> second >= (f->run & 1023)) {
        return c;
    }
    return (uint32_t)((int64_t)c + f->add);
}

enum { PARTS, LETTER, MARK };

/* What a character is, and what it becomes. */
static int look(uint32_t c, uint32_t *becomes)
{
    *becomes = c;
    if (c < 128) {
        int upper = c >= 'A' && c <= 'Z';
        *becomes = upper ? c + 32 : c;
        return upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? LETTER : PARTS;
    }
    if (c > 0x10ffff) {
        return LETTER; // of bytes that are no UTF-8; whatever is not known is one
    }
    if (in_runs(sql_unicode_letters, LETTERS, c)) {
        *becomes = fold(c);
        return LETTER;
    }
    return in_runs(sql_unicode_marks, MARKS, c) ? MARK : PARTS;
}

static size_t put(uint32_t c, char *out)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, c >>= 6) {
        out[i] = (char)(0x80 | (c & 0x3f));
    }
    out[0] = (char)(n == 2 ? 0xc0u | c : n == 3 ? 0xe0u | c : 0xf0u | (c & 7));
    return n;
}

/* --------------------------------------------------------------------------------------- tokens */

typedef int token_fn(void *ctx, int flags, const char *token, int n, int start, int end);

typedef struct word {
    char *bytes; /* place, or by sqlite3_malloc */
    size_t n, room;
    char place[256];
} word;

static int add(word *w, uint32_t c)
{
    if (w->room - w->n < 4) {
        char *more = sqlite3_malloc64(2 * w->room);
        if (!more) {
            return SQLITE_NOMEM;
        }
        memcpy(more, w->bytes, w->n);
        if (w->bytes != w->place) {
            sqlite3_free(w->bytes);
        }
        w->bytes = more;
        w->room *= 2;
    }
    w->n += put(c, w->bytes + w->n);
    return SQLITE_OK;
}

static int cut(Fts5Tokenizer *made, void *ctx, int flags, const char *text, int n, token_fn *fn)
{
    const char *at = text, *end = text + n;
    int porter = *(const int *)(const void *)made, rc = SQLITE_OK, start = 0, stop = 0;
    word w;
    (void)flags;
    w.bytes = w.place;
    w.room = sizeof w.place;
    w.n = 0;
    while (rc == SQLITE_OK) {
        int here = (int)(at - text), more = at < end;
        uint32_t c = more ? st_utf8_next(&at, end) : 0, becomes = 0;
        int is = more ? look(c, &becomes) : PARTS;
        if (is == LETTER || (is == MARK && w.n)) {
            start = w.n ? start : here;
            stop = (int)(at - text);
            rc = is == LETTER ? add(&w, becomes) : SQLITE_OK;
        } else if (w.n) {
            w.n = porter ? sql_own_stem(w.bytes, w.n) : w.n;
            rc = fn(ctx, 0, w.bytes, (int)w.n, start, stop);
            w.n = 0;
        }
        if (!more) {
            break;
        }
    }
    if (w.bytes != w.place) {
        sqlite3_free(w.bytes);
    }
    return rc;
}

static void keep(Fts5Tokenizer *made)
{
    (void)made;
}

int sql_own_find(const char *const *spec, int n, fts5_tokenizer *calls, Fts5Tokenizer **made)
{
    static int plain = 0, stemmed = 1;
    int at = n > 0 && sqlite3_stricmp(spec[0], "porter") == 0;
    if (n - at != 3 || sqlite3_stricmp(spec[at], "unicode61") != 0 ||
        sqlite3_stricmp(spec[at + 1], "remove_diacritics") != 0 || strcmp(spec[at + 2], "2") != 0) {
        return 0;
    }
    *calls = (fts5_tokenizer){.xDelete = keep, .xTokenize = cut};
    *made = (Fts5Tokenizer *)(void *)(at ? &stemmed : &plain);
    return 1;
}
