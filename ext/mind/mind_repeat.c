/*
 * mind_repeat.c - does a message say anything that is not known yet? By its numbers and names,
 * which vectors hardly tell apart: "5 mg" and "10 mg" are near neighbours.
 *
 * THREADS   no state.
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "mind.h"
#include "mind_text.h"

typedef struct token {
    uint64_t hash;
    int fact; /* has a digit, or is written as a name inside a sentence */
} token;

/* The next run of letters and digits; 0 at the end. *first: the next one begins a sentence. */
static int next_token(const uint8_t *s, size_t n, size_t *at, int *first, token *out)
{
    size_t count = 0;
    int upper = 0, ended = 0;
    *out = (token){0xCBF29CE484222325u, 0};
    while (*at < n) {
        uint32_t more, c = mind_next(s, n, at);
        if (c != MIND_BROKEN && mind_is_symbol(c)) {
            ended = c == '.' || c == '!' || c == '?' || c == '\n';
            // a number goes on behind its point: 2.5, 10:30
            if (count > 0 &&
                !(out->fact && c != '\n' && c != ' ' && *at < n && mind_is_digit(s[*at]))) {
                break;
            }
            *first |= count == 0 && ended;
            ended = 0;
        } else {
            upper |= count == 0 && c != MIND_BROKEN && mind_is_upper(c);
            out->fact |= c != MIND_BROKEN && mind_is_digit(c);
            c = c == MIND_BROKEN ? c : mind_fold(c, &more);
            count++;
        }
        out->hash = count ? (out->hash ^ c) * 0x100000001B3u : out->hash;
    }
    out->fact |= upper && !*first && count > 1;
    *first = ended;
    return count > 0;
}

static int has(const uint8_t *s, size_t n, uint64_t hash)
{
    token t;
    int first = 1;
    for (size_t at = 0; next_token(s, n, &at, &first, &t);) {
        if (t.hash == hash) {
            return 1;
        }
    }
    return 0;
}

int mind_repeats(const void *text, size_t n, const void *known, size_t nknown)
{
    token t;
    int first = 1;
    for (size_t at = 0; next_token(text, n, &at, &first, &t);) {
        if (t.fact && !has(known, nknown, t.hash)) {
            return 0;
        }
    }
    return 1;
}
