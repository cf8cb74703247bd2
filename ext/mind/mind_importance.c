/*
 * mind_importance.c - how much a text seems worth keeping, from what can be seen in it.
 *
 * One pass over the text counts words, long words, and what facts are made of: numbers, names
 * (capitals within a sentence), words of time, and a label with a colon in a short note ("Blood
 * type: A"). No language is known but for the words of time; a script without capitals has numbers
 * and labels, and a Han or kana character counts as half a word. The signals are put together as a
 * logistic regression does it; ext/mind/README.md says on what its weights were fitted.
 *
 * SPDX-License-Identifier: MIT
 */
#include "mind.h"

#include <math.h>
#include <string.h>

#include "store.h"

enum { LONG_WORD = 7, SHORT_NOTE = 8, LABEL_WORDS = 3, TIME_WORD_MAX = 9 };
#define FACTS_ENOUGH  3.0
#define LENGTH_ENOUGH 40.0
#define WORDS_ENOUGH  8.0
#define LABEL_FACTS   2.0
#define NOTE_WEIGHT   0.6 /* length and words that a note counts for, as a turn does in the mean */

/* -------------------------------------------------------------------------------------- letters */

/* The code point at s[*at], and *at moved on; a byte that begins none stands for itself. */
static uint32_t next_char(const uint8_t *s, size_t n, size_t *at)
{
    uint32_t c = s[*at];
    size_t more = c < 0xc2 ? 0 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : c < 0xf5 ? 3 : 0;
    if (more && n - *at > more) {
        uint32_t v = c & (0x3fu >> more);
        size_t i = 1;
        for (; i <= more && (s[*at + i] & 0xc0) == 0x80; i++) {
            v = v << 6 | (s[*at + i] & 0x3f);
        }
        if (i > more) {
            *at += more + 1;
            return v;
        }
    }
    (*at)++;
    return c;
}

static int is_ideograph(uint32_t c)
{
    return (c >= 0x3040 && c < 0x3100) || (c >= 0x3400 && c < 0xa000) ||
           (c >= 0xf900 && c < 0xfb00) || (c >= 0x20000 && c < 0x32000);
}

static int is_digit(uint32_t c)
{
    return (c >= '0' && c <= '9') || (c >= 0xff10 && c <= 0xff19) || (c >= 0x660 && c <= 0x669);
}

/* Full-width digits and Latin letters. */
static int is_wide(uint32_t c)
{
    return (c >= 0xff10 && c <= 0xff19) || (c >= 0xff21 && c <= 0xff3a) ||
           (c >= 0xff41 && c <= 0xff5a);
}

/* Letters, digits, and the apostrophes within words; beyond Latin-1 all but punctuation. */
static int in_word(uint32_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '\'' || c == 0x2019 ||
           (c >= 0xc0 && !(c >= 0x2000 && c < 0x2c00) && !(c >= 0x3000 && c < 0x3040) &&
            !(c >= 0xff00 && c < 0xff66 && !is_wide(c)) && c != 0xd7 && c != 0xf7);
}

static int is_upper(uint32_t c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 0xc0 && c <= 0xde && c != 0xd7) ||
           (c >= 0x100 && c < 0x137 && !(c & 1)) || (c >= 0x391 && c <= 0x3a9) ||
           (c >= 0x400 && c <= 0x42f);
}

static int ends_sentence(uint32_t c)
{
    return c == '.' || c == '!' || c == '?' || c == ':' || c == '\n' || c == 0x3002 ||
           c == 0xff01 || c == 0xff1f;
}

static int is_time_word(const char *word, size_t n)
{
    static const char words[] =
        " yesterday today tomorrow tonight last next ago since week weekend month year day days "
        "weeks months years monday tuesday wednesday thursday friday saturday sunday january "
        "february march april may june july august september october november december morning "
        "evening summer winter spring autumn ";
    char key[TIME_WORD_MAX + 3];
    if (n < 3 || n > TIME_WORD_MAX) {
        return 0;
    }
    key[0] = ' ';
    memcpy(key + 1, word, n);
    memcpy(key + 1 + n, " ", 2);
    return strstr(words, key) != NULL;
}

/* ----------------------------------------------------------------------------------------- scan */

typedef struct word {
    size_t chars;
    uint32_t first;
    int digits, apostrophe; /* the latter: as its second character */
    size_t nlower;
    char lower[TIME_WORD_MAX + 1]; /* of a short word of ASCII letters */
} word;

typedef struct scan {
    double words, longs, facts, labels, numbers;
    int start; /* of a sentence */
} scan;

static void end_word(scan *s, const word *w, uint32_t next)
{
    int i = w->first == 'I' && (w->chars == 1 || w->apostrophe);
    if (!w->chars) {
        return;
    }
    s->words++;
    s->longs += w->chars >= LONG_WORD;
    s->labels += next == ':' && s->words <= LABEL_WORDS;
    // A weekday is a name and a time, as is a year of a date and a number: each counts once more.
    s->numbers += w->digits > 0;
    s->facts += w->digits > 0;
    s->facts += is_upper(w->first) && !s->start && !i;
    s->facts += w->nlower == w->chars && is_time_word(w->lower, w->nlower);
    s->start = 0;
}

static void add_char(word *w, uint32_t c)
{
    uint32_t lower = c >= 'A' && c <= 'Z' ? c | 0x20 : c;
    w->first = w->chars ? w->first : c;
    w->apostrophe |= w->chars == 1 && (c == '\'' || c == 0x2019);
    w->digits += is_digit(c);
    if (lower >= 'a' && lower <= 'z' && w->nlower == w->chars && w->nlower < sizeof w->lower) {
        w->lower[w->nlower++] = (char)lower;
    }
    w->chars++;
}

void mind_read(const char *text, size_t n, mind_signals *out)
{
    scan s = {.start = 1};
    word w = {0};
    size_t at = 0;
    int ideograph = 0; // the character before was one
    memset(out, 0, sizeof *out);
    while (at < n) {
        uint32_t c = next_char((const uint8_t *)text, n, &at);
        if (is_ideograph(c)) {
            end_word(&s, &w, c);
            w = (word){0};
            s.words += 0.5;
            s.longs += 0.25;
        } else if (in_word(c)) {
            add_char(&w, c);
        } else {
            // A label is followed by more, and is no scheme of an address.
            int label = (c == 0xff1a && at < n) || (c == ':' && at < n && text[at] == ' ');
            s.labels += label && !w.chars && ideograph && s.words <= LABEL_WORDS;
            end_word(&s, &w, label ? ':' : ' ');
            w = (word){0};
            s.start |= ends_sentence(c);
        }
        ideograph = is_ideograph(c);
    }
    end_word(&s, &w, ' ');
    int brief = s.words <= SHORT_NOTE, labelled = brief && s.labels > 0;
    s.facts += labelled ? LABEL_FACTS : 0;
    // A note is short because it says nothing but the fact.
    double least = brief && s.facts >= LABEL_FACTS && (labelled || s.numbers > 0) ? NOTE_WEIGHT : 0;
    out->facts = fmin(s.facts / FACTS_ENOUGH, 1);
    out->length = fmax(least, fmin(s.words / LENGTH_ENOUGH, 1));
    out->words = fmax(least, fmin(s.longs / WORDS_ENOUGH, 1));
    out->question = st_text_asks(text, n);
}

double mind_importance(const mind_signals *s, const mind_weights *w)
{
    double surprise = isnan(s->surprise) ? MIND_SURPRISE_UNKNOWN : fmin(fmax(s->surprise, 0), 1);
    double x = w->base + w->surprise * surprise + w->facts * s->facts + w->length * s->length +
               w->words * s->words + w->question * s->question + w->correction * s->correction +
               w->source * s->source;
    return 1 / (1 + exp(-x));
}
