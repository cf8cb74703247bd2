/*
 * mind_merge.c - whether two near duplicates say the same thing, so that the newer one supersedes.
 *
 * Vectors hardly tell two amounts, dates or people apart, so texts must agree in all of these:
 * their words with a digit, and those with a capital that do not begin a sentence, as sets of
 * hashes. Rather two rows too many than a fact hidden.
 *
 * SPDX-License-Identifier: MIT
 */
#include "mind.h"

enum { MARKS_MAX = 64 };

typedef struct marks {
    uint64_t hash[MARKS_MAX];
    size_t n;
    int full; /* more than fit */
} marks;

static void add_mark(marks *m, uint64_t hash)
{
    for (size_t i = 0; i < m->n; i++) {
        if (m->hash[i] == hash) {
            return;
        }
    }
    if (m->n == MARKS_MAX) {
        m->full = 1;
        return;
    }
    m->hash[m->n++] = hash;
}

static int has(const marks *m, uint64_t hash)
{
    size_t i = 0;
    while (i < m->n && m->hash[i] != hash) {
        i++;
    }
    return i < m->n;
}

/* By bytes: every byte outside ASCII belongs to a word. A capital outside ASCII is not seen as
 * one, but a word that begins with such a letter is a mark all the same: then scripts whose
 * capitals are not known here merge only what is equal word for word. */
static void read_marks(const char *text, size_t n, marks *out)
{
    int start = 1;
    *out = (marks){.n = 0};
    for (size_t i = 0; i < n;) {
        uint64_t hash = 0xcbf29ce484222325u;
        unsigned char first = (unsigned char)text[i];
        size_t from = i;
        int digit = 0;
        for (; i < n; i++) {
            unsigned char c = (unsigned char)text[i];
            unsigned char lower = c >= 'A' && c <= 'Z' ? c | 0x20 : c;
            if (!((lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') || c >= 0x80)) {
                break;
            }
            digit |= c >= '0' && c <= '9';
            hash = (hash ^ lower) * 0x100000001b3u;
        }
        if (i > from) {
            int name = first >= 0x80 ||
                       (first >= 'A' && first <= 'Z' && !start && !(first == 'I' && i - from == 1));
            if (digit || name) {
                add_mark(out, hash);
            }
            start = 0;
        } else {
            char c = text[i++];
            start |= c == '.' || c == '!' || c == '?' || c == '\n';
        }
    }
}

int mind_replaces(const char *older, size_t n, const char *newer, size_t m, int correction)
{
    marks a, b;
    if (correction) {
        return 1;
    }
    read_marks(older, n, &a);
    read_marks(newer, m, &b);
    if (a.full || b.full || a.n != b.n) {
        return 0;
    }
    for (size_t i = 0; i < a.n; i++) {
        if (!has(&b, a.hash[i])) {
            return 0;
        }
    }
    return 1;
}
