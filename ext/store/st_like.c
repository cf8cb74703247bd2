/*
 * st_like.c - LIKE, GLOB and tags.
 *
 * A pattern is matched without recursion: where it fails, the last star takes one more character.
 * Earlier stars need not be tried again, since whatever they could give up lies before the place
 * that the last one begins at.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "store.h"

/* ----------------------------------------------------------------------------------- characters */

typedef struct reader {
    const char *at, *end;
} reader;

static reader read_from(const void *s, size_t n)
{
    const char *p = s, *nul = n ? memchr(s, 0, n) : NULL;
    return (reader){p, nul ? nul : n ? p + n : p};
}

uint32_t st_utf8_next(const char **at, const char *end)
{
    static const uint8_t keeps[64] = {
        0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
        22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
        12, 13, 14, 15, 0,  1,  2,  3,  4,  5,  6,  7,  0,  1,  2,  3,  0,  1,  0,  0,
    };
    const uint8_t *p = (const uint8_t *)*at, *stop = (const uint8_t *)end;
    uint32_t c = *p++;
    if (c >= 0xc0) {
        c = keeps[c - 0xc0];
        while (p < stop && (*p & 0xc0) == 0x80) {
            c = (c << 6) + (*p++ & 0x3f);
        }
        if (c < 0x80 || (c & 0xfffff800) == 0xd800 || (c & 0xfffffffe) == 0xfffe) {
            c = 0xfffd;
        }
    }
    *at = (const char *)p;
    return c;
}

/* One character; 0 at the end. */
static uint32_t next(reader *r)
{
    return r->at == r->end ? 0 : st_utf8_next(&r->at, r->end);
}

static uint32_t fold(uint32_t c)
{
    return c >= 'A' && c <= 'Z' ? c + 32 : c;
}

/* ------------------------------------------------------------------------------------- patterns */

/* The rest of [...] in the pattern; a set without an end matches nothing. */
static int in_set(reader *p, uint32_t c)
{
    uint32_t before = 0, x = next(p);
    int seen = 0, invert = x == '^';
    if (invert) {
        x = next(p);
    }
    if (x == ']') {
        seen = c == ']';
        x = next(p);
    }
    for (; x && x != ']'; x = next(p)) {
        if (x == '-' && before && p->at < p->end && *p->at != ']') {
            x = next(p);
            seen |= c >= before && c <= x;
            before = 0;
        } else {
            seen |= c == x;
            before = x;
        }
    }
    return x == ']' && seen != invert;
}

/* One character of the pattern that is no star, against one of the text. */
static int step(reader *p, reader *t, int glob)
{
    uint32_t x = next(p), c = next(t);
    if (!c) {
        return 0;
    }
    if (glob) {
        return x == '?' || (x == '[' ? in_set(p, c) : x == c);
    }
    return x == '_' || fold(x) == fold(c);
}

int st_like(const void *text, size_t n, const void *pattern, size_t m, int glob)
{
    reader t = read_from(text, n), p = read_from(pattern, m), star = {NULL, NULL}, from = t;
    char many = glob ? '*' : '%';
    for (;;) {
        if (p.at < p.end && *p.at == many) {
            p.at++;
            star = p;
            from = t;
            if (p.at == p.end) {
                return 1;
            }
        } else if (p.at == p.end ? t.at == t.end : step(&p, &t, glob)) {
            if (p.at == p.end && t.at == t.end) {
                return 1;
            }
        } else {
            if (!star.at || from.at == from.end) {
                return 0;
            }
            (void)next(&from);
            t = from;
            p = star;
        }
    }
}

/* ----------------------------------------------------------------------------------------- tags */

static int is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

int st_has_tag(const void *tags, size_t n, const void *tag, size_t m)
{
    const char *s = tags;
    for (size_t lo = 0, hi; m && lo < n; lo = hi + 1) {
        const char *comma = memchr(s + lo, ',', n - lo);
        hi = comma ? (size_t)(comma - s) : n;
        size_t a = lo, b = hi;
        while (a < b && is_space(s[a])) {
            a++;
        }
        while (b > a && is_space(s[b - 1])) {
            b--;
        }
        if (b - a == m && memcmp(s + a, tag, m) == 0) {
            return 1;
        }
    }
    return 0;
}
