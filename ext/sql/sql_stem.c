/*
 * sql_stem.c - Porter's stemmer (1980), as FTS5 has it: with `bli` and `logi`, words of 3 to 64
 * bytes, whatever they are made of.
 *
 * A word is [C](VC)^m[V]; y is a vowel behind a consonant. Each step looks for the longest ending
 * of its list and, where the condition holds for what stands before it, puts another in its place.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "sql_own.h"

enum { SHORTEST = 3, LONGEST = 64 };

typedef struct text {
    char *s;
    size_t n;
} text;

static int is_vowel(char c, int y)
{
    return c == 'a' || c == 'e' || c == 'i' || c == 'o' || c == 'u' || (y && c == 'y');
}

/* How many times a vowel is followed by a consonant among the first n bytes; up to 2. */
static int measure(const char *s, size_t n)
{
    int consonant = 0, m = 0, seen = 0;
    for (size_t i = 0; i < n && m < 2; i++) {
        consonant = !is_vowel(s[i], consonant);
        m += seen && consonant;
        seen = !consonant;
    }
    return m;
}

static int has_vowel(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (is_vowel(s[i], i > 0)) {
            return 1;
        }
    }
    return 0;
}

/* Ends in consonant, vowel, consonant, the last none of w, x, y. */
static int ends_cvc(const char *s, size_t n)
{
    unsigned mask = 0;
    int consonant = 0;
    if (!n || s[n - 1] == 'w' || s[n - 1] == 'x' || s[n - 1] == 'y') {
        return 0;
    }
    for (size_t i = 0; i < n; i++) {
        consonant = !is_vowel(s[i], consonant);
        mask = mask << 1 | (unsigned)consonant;
    }
    return (mask & 7) == 5;
}

/* Does it end so, with something before? */
static int ends(const text *w, const char *ending, size_t n)
{
    return w->n > n && memcmp(w->s + w->n - n, ending, n) == 0;
}

typedef struct rule {
    const char *ending, *becomes;
} rule;

/* The first rule whose ending is there, if the measure of what stands before is above `least`. */
static int apply(text *w, const rule *rules, size_t n, int least)
{
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(rules[i].ending), put = strlen(rules[i].becomes);
        if (!ends(w, rules[i].ending, len)) {
            continue;
        }
        if (least >= 0 && measure(w->s, w->n - len) <= least) {
            return 0;
        }
        if (strcmp(rules[i].ending, "ion") == 0) {
            char before = w->s[w->n - len - 1];
            if (before != 's' && before != 't') {
                return 0;
            }
        }
        memcpy(w->s + w->n - len, rules[i].becomes, put);
        w->n = w->n - len + put;
        return 1;
    }
    return 0;
}

#define RULES(list) list, sizeof(list) / sizeof *(list)

static const rule step1b2[] = {{"at", "ate"}, {"bl", "ble"}, {"iz", "ize"}};
static const rule step2[] = {
    {"ational", "ate"}, {"tional", "tion"}, {"enci", "ence"},   {"anci", "ance"}, {"izer", "ize"},
    {"logi", "log"},    {"bli", "ble"},     {"alli", "al"},     {"entli", "ent"}, {"eli", "e"},
    {"ousli", "ous"},   {"ization", "ize"}, {"ation", "ate"},   {"ator", "ate"},  {"alism", "al"},
    {"iveness", "ive"}, {"fulness", "ful"}, {"ousness", "ous"}, {"aliti", "al"},  {"iviti", "ive"},
    {"biliti", "ble"}};
static const rule step3[] = {{"icate", "ic"}, {"ative", ""}, {"alize", "al"}, {"iciti", "ic"},
                             {"ical", "ic"},  {"ful", ""},   {"ness", ""}};
static const rule step4[] = {{"al", ""},   {"ance", ""}, {"ence", ""}, {"er", ""},    {"ic", ""},
                             {"able", ""}, {"ible", ""}, {"ant", ""},  {"ement", ""}, {"ment", ""},
                             {"ent", ""},  {"ion", ""},  {"ou", ""},   {"ism", ""},   {"ate", ""},
                             {"iti", ""},  {"ous", ""},  {"ive", ""},  {"ize", ""}};

static void step1a(text *w)
{
    const char *s = w->s;
    size_t n = w->n;
    if (s[n - 1] != 's') {
        return;
    }
    if (s[n - 2] == 'e') {
        int two = (n > 4 && s[n - 4] == 's' && s[n - 3] == 's') || (n > 3 && s[n - 3] == 'i');
        w->n -= two ? 2 : 1;
    } else if (s[n - 2] != 's') {
        w->n--;
    }
}

static void step1b(text *w)
{
    if (ends(w, "eed", 3)) {
        w->n -= measure(w->s, w->n - 3) > 0;
        return;
    }
    size_t len = ends(w, "ed", 2) ? 2 : ends(w, "ing", 3) ? 3 : 0;
    if (!len || !has_vowel(w->s, w->n - len)) {
        return;
    }
    w->n -= len;
    if (apply(w, RULES(step1b2), -1)) {
        return;
    }
    char last = w->s[w->n - 1];
    if (w->n > 1 && !is_vowel(last, 0) && last != 'l' && last != 's' && last != 'z' &&
        last == w->s[w->n - 2]) {
        w->n--;
    } else if (measure(w->s, w->n) == 1 && ends_cvc(w->s, w->n)) {
        w->s[w->n++] = 'e';
    }
}

size_t sql_own_stem(char *word, size_t n)
{
    text w = {word, n};
    if (n < SHORTEST || n > LONGEST) {
        return n;
    }
    step1a(&w);
    step1b(&w);
    if (w.s[w.n - 1] == 'y' && has_vowel(w.s, w.n - 1)) {
        w.s[w.n - 1] = 'i';
    }
    apply(&w, RULES(step2), 0);
    apply(&w, RULES(step3), 0);
    apply(&w, RULES(step4), 1);
    if (w.s[w.n - 1] == 'e') {
        int m = measure(w.s, w.n - 1);
        w.n -= m > 1 || (m == 1 && !ends_cvc(w.s, w.n - 1));
    }
    if (w.n > 1 && w.s[w.n - 1] == 'l' && w.s[w.n - 2] == 'l' && measure(w.s, w.n - 1) > 1) {
        w.n--;
    }
    return w.n;
}
