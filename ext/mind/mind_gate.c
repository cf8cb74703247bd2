/*
 * mind_gate.c - is a message worth keeping, or worth a search?
 *
 * A message is cut into words: runs of letters, without case and marks; in scripts without blanks
 * each character. From left to right the longest phrase of the lists is taken off; a word that no
 * list has is content, and the look ends there. What is left over is small talk if one language
 * explains all of it.
 *
 * Phrases are found by hash in one table, in which each beginning of a phrase has a slot, too, so
 * that a phrase that is none is given up at its first word. The table is made at the first call
 * from mind_words.c and never changes. It keeps 46 bits of a hash and no text: that a word which is
 * no small talk is taken for some has a chance of one in billions.
 *
 * Laughter and drawn-out words ("okaaay", "hahahah") are looked up in a short form.
 *
 * ERRORS    none
 * THREADS   the table is made once under pthread_once
 *
 * SPDX-License-Identifier: MIT
 */
#include <pthread.h>
#include <string.h>

#include "mind.h"
#include "mind_text.h"
#include "mind_words.h"

enum {
    SLOT_BITS = 15,
    SLOTS = 1 << SLOT_BITS,
    PHRASE_MAX = 16, /* words */
    LETTERS_MAX = 48 /* of a word that is looked at for laughter */
};
#define LANGUAGES ((1u << MIND_LANGUAGES) - 1)
#define GOES_ON   (1u << 31) /* in function: a longer phrase begins so */

typedef struct slot {
    uint32_t tag; /* 0: free */
    uint32_t chatter, function;
} slot;

static slot slots[SLOTS];
static pthread_once_t once = PTHREAD_ONCE_INIT;

typedef struct word {
    uint64_t hash;
    size_t from, to;
    uint8_t capital; /* Like this */
    uint8_t first;   /* of a sentence */
    uint8_t alone;   /* a character of a script without blanks */
} word;

typedef struct reader {
    const uint8_t *s;
    size_t n, at;
    int first;  /* the next word is the first of a sentence */
    int symbol; /* something that is seen, but no word, has come */
    int proof;  /* a reason to keep that is no word; 0: none */
} reader;

/* --------------------------------------------------------------------------------------- hashes */

#define HASH_START 0xCBF29CE484222325u

static uint64_t hash_letter(uint64_t h, uint32_t c)
{
    return (h ^ c) * 0x100000001B3u;
}

static uint64_t hash_phrase(uint64_t h, uint64_t next)
{
    h = (h ^ (next >> 7)) * 0x9E3779B97F4A7C15u;
    return (h ^ (h >> 32)) + next;
}

static slot *find(uint64_t h)
{
    h *= 0x9E3779B97F4A7C15u;
    uint32_t tag = (uint32_t)h | 1;
    for (size_t i = h >> (64 - SLOT_BITS);; i++) {
        slot *s = &slots[i & (SLOTS - 1)];
        if (s->tag == tag || s->tag == 0) {
            return s;
        }
    }
}

/* ---------------------------------------------------------------------------------------- words */

static int is_apostrophe(uint32_t c)
{
    return c == '\'' || c == 0x2019 || c == 0x2BC || c == 0x60;
}

/* What stands before and after counts as blank. */
static int is_blank_at(const reader *r, size_t at)
{
    return at >= r->n || r->s[at] <= ' ';
}

static int is_letter_at(const reader *r, size_t at)
{
    return at < r->n && (r->s[at] >= 0x80 || (r->s[at] | 32u) - 'a' < 26);
}

/* The rest of a smiley whose eyes are at r->at - 1: moves behind it, or stays. */
static void skip_smiley(reader *r, uint32_t eyes)
{
    size_t at = r->at + (r->at < r->n && (r->s[r->at] == '-' || r->s[r->at] == '\''));
    const char *mouths = eyes == '<' ? "3" : "DdPpOoSsXxCcBb3VvLl";
    if (at < r->n && r->s[at] && strchr(mouths, r->s[at]) && !is_letter_at(r, at + 1) &&
        !(at + 1 < r->n && (mind_is_digit(r->s[at + 1]) || r->s[at + 1] == '\\'))) {
        r->at = at + 1;
    }
}

/* A character that is no letter; from: where it begins. */
static void symbol(reader *r, uint32_t c, size_t from)
{
    r->symbol |= c > ' ' && c != 0x3000 && c != 0xA0 && c != 0xFEFF;
    r->first |= c != ' ' && c != ',' && c != '-' && c != '\'' && c != '"' && c != '(';
    if (c == ':' || c == ';' || c == '=' || c == '<') {
        skip_smiley(r, c);
    } else if (c < 0x80 && strchr("/!$#@\\`", (int)c) && c && is_letter_at(r, r->at) &&
               r->s[r->at] < 0x80 && (from == 0 || is_blank_at(r, from - 1) || c == '\\')) {
        r->proof = MIND_COMMAND;
    } else if (c == '$' && from == 0 && r->at + 1 < r->n && r->s[r->at] == ' ' &&
               is_letter_at(r, r->at + 1)) {
        r->proof = MIND_COMMAND;
    }
}

/* Adds a character to the word. 0: it is no part of one, and the word ends before it. */
static int add_letter(reader *r, word *w, uint32_t c, size_t at, size_t count)
{
    uint32_t more;
    if (c < 0x80 && (c | 32) - 'a' < 26u) {
        w->capital = (uint8_t)(count == 0   ? c < 'a'
                               : count == 1 ? w->capital && c >= 'a'
                                            : w->capital);
        w->hash = hash_letter(w->hash, c | 32);
        return 1;
    }
    if (is_apostrophe(c)) {
        return is_letter_at(r, at);
    }
    if (c == MIND_BROKEN || mind_is_digit(c)) {
        r->proof = c == MIND_BROKEN ? MIND_UNREADABLE : MIND_NUMBER;
        return 0;
    }
    if (mind_is_symbol(c) || mind_is_alone(c)) {
        r->proof = c == '@' && is_letter_at(r, at) ? MIND_COMMAND : r->proof;
        return 0;
    }
    w->capital = (uint8_t)(count == 0   ? mind_is_upper(c)
                           : count == 1 ? w->capital && mind_is_lower(c)
                                        : w->capital);
    c = mind_fold(c, &more);
    w->hash = c ? hash_letter(w->hash, c) : w->hash;
    w->hash = more ? hash_letter(w->hash, more) : w->hash;
    return 1;
}

/* The next word; 0 at the end, or when r->proof says why to keep the message. */
static int next_word(reader *r, word *w)
{
    uint32_t c, more;
    size_t from = r->at, count = 0;
    do {
        if (r->at >= r->n || r->proof) {
            return 0;
        }
        from = r->at;
        c = r->s[from] < 0x80 ? r->s[r->at++] : mind_next(r->s, r->n, &r->at);
        if (c == MIND_BROKEN || mind_is_digit(c)) {
            r->proof = c == MIND_BROKEN ? MIND_UNREADABLE : MIND_NUMBER;
        } else if (!mind_is_symbol(c)) {
            break;
        } else {
            symbol(r, c, from);
        }
    } while (1);
    *w = (word){HASH_START, from, r->at, 0, (uint8_t)r->first, (uint8_t)mind_is_alone(c)};
    r->first = 0;
    if (w->alone) {
        w->hash = hash_letter(w->hash, mind_fold(c, &more));
        return 1;
    }
    size_t at = r->at;
    while (add_letter(r, w, c, at, count)) {
        r->at = w->to = at;
        count++;
        if (at >= r->n) {
            break;
        }
        c = r->s[at] < 0x80 ? r->s[at++] : mind_next(r->s, r->n, &at);
    }
    w->capital = w->capital && count > 1;
    return !r->proof;
}

/* ---------------------------------------------------------------------------------------- lists */

static void insert(uint64_t h, uint32_t chatter, uint32_t function)
{
    slot *s = find(h);
    s->tag = (uint32_t)(h * 0x9E3779B97F4A7C15u) | 1;
    s->chatter |= chatter;
    s->function |= function;
}

/* Phrases between marks; each is of the languages of `bits`. */
static void add_list(const char *list, char mark, uint32_t bits, int chatter)
{
    while (*list) {
        const char *end = strchr(list, mark);
        size_t n = end ? (size_t)(end - list) : strlen(list);
        reader r = {.s = (const uint8_t *)list, .n = n};
        word w;
        uint64_t h = 0;
        for (int k = 0; next_word(&r, &w); k++) {
            if (k) {
                insert(h, 0, GOES_ON);
            }
            h = k ? hash_phrase(h, w.hash) : w.hash;
        }
        insert(h, chatter ? bits : 0, chatter ? 0 : bits);
        list += n + (end != NULL);
    }
}

static void make_table(void)
{
    for (int i = 0; i < MIND_LANGUAGES; i++) {
        uint32_t bits = i ? 1u << i : LANGUAGES;
        add_list(mind_languages[i].chatter, '|', bits, 1);
        add_list(mind_languages[i].function, ' ', bits, 0);
    }
}

/* ------------------------------------------------------------------------------------- laughter */

/* The letters of a word; 0 when it is too long to be any. */
static size_t letters_of(const reader *r, const word *w, uint32_t *out)
{
    size_t n = 0;
    for (size_t at = w->from; at < w->to;) {
        uint32_t more, c = mind_fold(mind_next(r->s, r->n, &at), &more);
        if (n + 2 > LETTERS_MAX) {
            return 0;
        }
        if (c && !is_apostrophe(c)) {
            out[n++] = c;
        }
        if (more) {
            out[n++] = more;
        }
    }
    return n;
}

static const slot *find_letters(const uint32_t *c, size_t n)
{
    uint64_t h = HASH_START;
    for (size_t i = 0; i < n; i++) {
        h = hash_letter(h, c[i]);
    }
    const slot *s = find(h);
    return s->chatter & LANGUAGES ? s : NULL;
}

/* Runs of three and more of a letter become `keep` of it. */
static const slot *find_squeezed(const uint32_t *c, size_t n, size_t keep)
{
    uint32_t out[LETTERS_MAX];
    size_t m = 0;
    for (size_t i = 0; i < n;) {
        size_t run = 1;
        while (i + run < n && c[i + run] == c[i]) {
            run++;
        }
        for (size_t j = 0; j < (run > 2 ? keep : run); j++) {
            out[m++] = c[i];
        }
        i += run;
    }
    return m < n ? find_letters(out, m) : NULL;
}

/* Two letters in turn, more or less: "hahahah", "jajaaja". */
static const slot *find_laughter(const uint32_t *c, size_t n)
{
    uint32_t pair[4] = {c[0], 0, c[0], 0};
    size_t of[2] = {0, 0};
    for (size_t i = 0; i < n; i++) {
        if (c[i] != pair[0] && pair[1] == 0) {
            pair[1] = pair[3] = c[i];
        }
        if (c[i] != pair[0] && c[i] != pair[1]) {
            return NULL;
        }
        of[c[i] == pair[1]]++;
    }
    return n >= 4 && of[0] > 1 && of[1] > 1 ? find_letters(pair, 4) : NULL;
}

/* Compatibility jamo, which Koreans laugh, cry and nod with. */
static int is_jamo(const uint32_t *c, size_t n)
{
    size_t i = 0;
    while (i < n && c[i] >= 0x3131 && c[i] <= 0x318E) {
        i++;
    }
    return i == n;
}

static const slot *find_short_form(const reader *r, const word *w)
{
    static const slot jamo = {1, LANGUAGES, 0};
    uint32_t c[LETTERS_MAX];
    size_t n = w->alone ? 0 : letters_of(r, w, c);
    if (n == 0) {
        return NULL;
    }
    if (is_jamo(c, n)) {
        return &jamo;
    }
    const slot *s = n > 2 ? find_squeezed(c, n, 2) : NULL;
    s = s || n < 3 ? s : find_squeezed(c, n, 1);
    return s ? s : find_laughter(c, n);
}

/* ----------------------------------------------------------------------------------------- gate */

typedef struct state {
    reader r;
    word ahead[PHRASE_MAX];
    int count;         /* words in ahead */
    uint32_t language; /* those that explain all so far */
    uint32_t chatter;  /* those in which some of it is chatter and nothing else */
    size_t words;      /* taken, but for single characters */
    size_t phrases;    /* taken */
    uint32_t alone;    /* of the only one so far: "what" is chatter, "what is it" a question */
    int lower;         /* the last one was a function word in small letters */
} state;

static int have(state *g, int k)
{
    while (g->count < k && next_word(&g->r, &g->ahead[g->count])) {
        g->count++;
    }
    return g->count >= k;
}

/* The longest phrase of the lists at this place. *length: its words. NULL: none. */
static const slot *longest(state *g, int *length)
{
    const slot *best = NULL;
    uint64_t h = g->ahead[0].hash;
    for (int k = 1;; k++) {
        const slot *s = find(h);
        if (s->tag && ((s->chatter | s->function) & g->language)) {
            best = s;
            *length = k;
        }
        if (!(s->function & GOES_ON) || k == PHRASE_MAX || !have(g, k + 1)) {
            return best;
        }
        h = hash_phrase(h, g->ahead[k].hash);
    }
}

/* A word of the lists that is written as a name where none is due: "I am in Nice". */
static int is_name(const state *g, const slot *s, int length)
{
    const word *w = &g->ahead[0];
    return length == 1 && w->capital && !w->first && (g->lower || !(s->chatter & g->language));
}

/* Takes one phrase. 0: go on; else the reason to keep the message. */
static int take(state *g)
{
    int length = 1;
    const slot *s = longest(g, &length);
    if (g->r.proof) {
        return g->r.proof;
    }
    s = s ? s : find_short_form(&g->r, &g->ahead[0]);
    if (!s || !((s->chatter | s->function) & g->language)) {
        return MIND_CONTENT;
    }
    if (is_name(g, s, length)) {
        return MIND_NAME;
    }
    g->lower = !(s->chatter & g->language) && !g->ahead[length - 1].capital;
    g->language &= s->chatter | s->function;
    g->chatter |= s->chatter & ~s->function;
    g->alone = g->phrases++ ? 0 : s->chatter;
    g->words += (size_t)(g->ahead[0].alone ? 0 : length);
    g->count -= length;
    memmove(g->ahead, g->ahead + length, (size_t)g->count * sizeof *g->ahead);
    return 0;
}

int mind_gate(const void *text, size_t n, int purpose)
{
    state g;
    pthread_once(&once, make_table);
    g.r = (reader){.s = text, .n = n, .first = 1};
    g.count = g.lower = 0;
    g.language = LANGUAGES;
    g.chatter = g.alone = 0;
    g.words = g.phrases = 0;
    while (have(&g, 1)) {
        int why = take(&g);
        if (why) {
            return why;
        }
    }
    if (g.r.proof) {
        return g.r.proof;
    }
    if (g.phrases == 0) {
        return g.r.symbol ? MIND_SYMBOLS : MIND_EMPTY;
    }
    if ((g.chatter | g.alone) & g.language) {
        return MIND_CHATTER;
    }
    // One word that is none of small talk may be a name, an answer or a search.
    return g.words < 2                                ? MIND_CONTENT
           : purpose == MIND_TO_SEARCH && g.words > 2 ? MIND_QUESTION
                                                      : MIND_FILLER;
}

int mind_gate_keeps(int reason)
{
    return reason > MIND_FILLER;
}

const char *mind_gate_name(int reason)
{
    static const char *const names[] = {"empty",  "symbols", "chatter", "filler",   "content",
                                        "number", "command", "name",    "question", "unreadable"};
    return reason >= 0 && reason <= MIND_UNREADABLE ? names[reason] : "";
}
