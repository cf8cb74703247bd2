/*
 * mind_scan.c - text that gives orders to whoever reads it.
 *
 * LETTERS   the text becomes a row of letters: without case, marks, blanks and punctuation, and
 *           without what has no width; each knows which others it may stand for (a digit or a sign
 *           for a letter, a Cyrillic or Greek letter for the Latin one that looks alike), whether a
 *           word, a clause or a line begins or ends there, and where it was. They are made in
 *           pieces of WINDOW letters, of which the next keeps the last OVERLAP.
 * PATTERNS  are tried where a word begins, by their first letter. They must begin and end with a
 *           word; inside, it does not matter where blanks are. So "i g n o r e", "ignore-all" and
 *           "ig\nnore" are found, and "fact assembly" is no "act as".
 * MARKS     role labels at the beginning of a line, chat marks in brackets, base64, and characters
 *           that no one sees are looked for by code of their own.
 *
 * ERRORS    none
 * THREADS   the patterns' first letters are collected once under pthread_once
 *
 * SPDX-License-Identifier: MIT
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "mind.h"
#include "mind_patterns.h"
#include "mind_text.h"

enum { WINDOW = 1536, OVERLAP = 384, PATTERNS_MAX = 128, MARK_MAX = 24, PLAIN_MAX = 768 };

enum { START = 1, END = 2, LINE = 4, CLAUSE = 8, COLON = 16, OPTIONAL = 32, FREE = 64 };

typedef struct letter {
    uint32_t c;
    char alt[2];
    uint8_t flags;
    size_t from, to;
} letter;

typedef struct scan {
    const uint8_t *s;
    size_t n, at;
    letter l[WINDOW];
    int count;
    uint8_t due; /* flags of the next letter */
    int wait;    /* the last letter's place while a colon may follow; -1: none */
    mind_finding *out;
    size_t found, room;
    int depth;
    const mind_pattern *patterns;
    int npatterns;
    const uint32_t *firsts; /* bit of each letter that a pattern may begin with */
} scan;

static uint32_t firsts[PATTERNS_MAX], correction_firsts[PATTERNS_MAX];
static pthread_once_t once = PTHREAD_ONCE_INIT;
#define OTHER_LETTER (1u << 26)

/* ------------------------------------------------------------------------------------- findings */

static void add(scan *w, int kind, int severity, size_t from, size_t to)
{
    for (size_t i = 0; i < w->found; i++) {
        mind_finding *f = &w->out[i];
        if (f->kind == kind && from < f->end && f->start < to) {
            if (severity > f->severity) {
                *f = (mind_finding){kind, severity, from, to};
            }
            return;
        }
    }
    if (w->found < w->room) {
        w->out[w->found++] = (mind_finding){kind, severity, from, to};
    }
}

/* -------------------------------------------------------------------------------------- letters */

static int has_no_width(uint32_t c)
{
    return c == 0xAD || c == 0x34F || c == 0x180E || (c >= 0x200B && c <= 0x200F) ||
           (c >= 0x202A && c <= 0x202E) || (c >= 0x2060 && c <= 0x2069) || c == 0xFEFF ||
           (c >= 0xFE00 && c <= 0xFE0F) || (c >= 0xE0100 && c <= 0xE01EF);
}

static int is_tag(uint32_t c)
{
    return c >= 0xE0020 && c <= 0xE007E;
}

typedef struct twin {
    uint16_t c;
    char like;
} twin;

/* Ascending. */
static const twin twins[] = {
    {0x251, 'a'},  {0x261, 'g'},  {0x262, 'g'},  {0x26A, 'i'},  {0x274, 'n'},  {0x280, 'r'},
    {0x28F, 'y'},  {0x29C, 'h'},  {0x29F, 'l'},  {0x3B1, 'a'},  {0x3B2, 'b'},  {0x3B3, 'y'},
    {0x3B5, 'e'},  {0x3B7, 'n'},  {0x3B9, 'i'},  {0x3BA, 'k'},  {0x3BC, 'u'},  {0x3BD, 'v'},
    {0x3BF, 'o'},  {0x3C1, 'p'},  {0x3C3, 'o'},  {0x3C4, 't'},  {0x3C5, 'u'},  {0x3C7, 'x'},
    {0x3C9, 'w'},  {0x3F2, 'c'},  {0x3F3, 'j'},  {0x430, 'a'},  {0x432, 'b'},  {0x433, 'r'},
    {0x435, 'e'},  {0x438, 'u'},  {0x43A, 'k'},  {0x43C, 'm'},  {0x43D, 'h'},  {0x43E, 'o'},
    {0x43F, 'n'},  {0x440, 'p'},  {0x441, 'c'},  {0x442, 't'},  {0x443, 'y'},  {0x445, 'x'},
    {0x44C, 'b'},  {0x454, 'e'},  {0x455, 's'},  {0x456, 'i'},  {0x457, 'i'},  {0x458, 'j'},
    {0x475, 'v'},  {0x4BB, 'h'},  {0x4CF, 'l'},  {0x501, 'd'},  {0x51B, 'q'},  {0x51D, 'w'},
    {0x570, 'h'},  {0x578, 'n'},  {0x57D, 'u'},  {0x585, 'o'},  {0x1D00, 'a'}, {0x1D04, 'c'},
    {0x1D05, 'd'}, {0x1D07, 'e'}, {0x1D0A, 'j'}, {0x1D0B, 'k'}, {0x1D0D, 'm'}, {0x1D0F, 'o'},
    {0x1D18, 'p'}, {0x1D1B, 't'}, {0x1D1C, 'u'}, {0x1D20, 'v'}, {0x1D21, 'w'}, {0x1D22, 'z'},
    {0xA731, 's'},
};

/* The Latin letter that a folded character looks like; 0: none. */
static char look_alike(uint32_t c)
{
    size_t low = 0, high = sizeof twins / sizeof *twins;
    if (c >= 0x1D400 && c <= 0x1D6A3) { // mathematical alphabets
        return (char)('a' + (c - 0x1D400) % 26);
    }
    if (c >= 0x249C && c <= 0x24E9) { // in brackets and circles
        return (char)('a' + (c - (c < 0x24B6 ? 0x249C : 0x24B6)) % 26);
    }
    if (c >= 0x1F130 && c <= 0x1F189) { // in squares
        return (char)('a' + (c - 0x1F130) % 32 % 26);
    }
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (twins[mid].c < c) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low < sizeof twins / sizeof *twins && twins[low].c == c ? twins[low].like : 0;
}

/* What a digit or sign may stand for: two letters, or none. */
static const char *stands_for(uint32_t c)
{
    static const char *const digits[] = {"o", "il", "z", "e", "a", "s", "g", "t", "b", "g"};
    return c >= '0' && c <= '9'   ? digits[c - '0']
           : c == '@'             ? "a"
           : c == '$'             ? "s"
           : c == '!' || c == '|' ? "il"
                                  : "";
}

static void push(scan *w, uint32_t c, const char *alt, size_t from, uint8_t flags)
{
    letter *l = &w->l[w->count++];
    *l = (letter){c, {alt[0], alt[0] ? alt[1] : 0}, (uint8_t)(w->due | flags), from, w->at};
    w->due = 0;
    w->wait = w->count - 1;
}

static void separate(scan *w, uint32_t c)
{
    if (w->count) {
        w->l[w->count - 1].flags |= END;
    }
    w->due |= START;
    if (c == '\n' || c == '\r' || c == 0x2028 || c == 0x2029) {
        w->due |= LINE | CLAUSE;
        w->wait = -1;
    } else if (c < 0x80 ? c && strchr(".!?;:\"([{>", (int)c) != NULL
                        : c == 0x3002 || c == 0xFF01 || c == 0xFF1A || c == 0x201C || c == 0xFF1F) {
        w->due |= CLAUSE;
    }
    if (w->wait >= 0 && (c == ':' || c == 0xFF1A)) {
        w->l[w->wait].flags |= COLON;
        w->wait = -1;
    } else if (c >= 0x80 || !c || !strchr(" \t*_\"')]>`", (int)c)) {
        w->wait = -1;
    }
}

static int ascii_letter_at(const scan *w, size_t at)
{
    return at < w->n && (w->s[at] | 32u) - 'a' < 26;
}

/* One character more. */
static void take(scan *w)
{
    size_t from = w->at;
    uint32_t more, c = mind_next(w->s, w->n, &w->at);
    char alt[2] = {0, 0};
    if (has_no_width(c) || c == '\'' || c == 0x2019 || c == 0x2BC) {
        return;
    }
    c = is_tag(c) ? c - 0xE0000 : c;
    if (c >= 0xFF01 && c <= 0xFF5E) {
        c -= 0xFEE0;
    }
    const char *sign = stands_for(c);
    if (*sign && (mind_is_digit(c) || ascii_letter_at(w, w->at))) {
        push(w, c, sign, from, c == '!' || c == '|' ? OPTIONAL : 0);
        return;
    }
    if (c != MIND_BROKEN && mind_is_symbol(c) && !(alt[0] = look_alike(c))) {
        separate(w, c);
        return;
    }
    c = c == MIND_BROKEN ? 0xFFFD : mind_fold(c, &more);
    if (c == 0) {
        return;
    }
    more = c == 0xFFFD ? 0 : more;
    alt[0] = c < 0x80 ? 0 : look_alike(c);
    uint8_t alone = mind_is_alone(c) || (c >= 0xAC00 && c <= 0xD7A3) || (c >= 0x900 && c <= 0x97F)
                        ? FREE
                        : 0;
    alone |= mind_is_alone(c) ? START : 0;
    push(w, c, alt, from, alone);
    if (more && w->count < WINDOW) {
        push(w, more, "", from, 0);
    }
}

static void fill(scan *w)
{
    while (w->at < w->n && w->count < WINDOW - 1) {
        take(w);
    }
    if (w->at >= w->n && w->count) {
        w->l[w->count - 1].flags |= END;
    }
}

/* ------------------------------------------------------------------------------------- matching */

static int same_letter(const letter *l, uint32_t p)
{
    return l->c == p || (p < 0x80 && (l->alt[0] == (char)p || l->alt[1] == (char)p));
}

/* Behind the word [p, end) at place i; -1: it is not there. Drawn-out letters count once. */
static int match_word(const scan *w, const char *p, const char *end, int i)
{
    const letter *last = NULL;
    size_t at = 0, n = (size_t)(end - p);
    while (at < n) {
        uint32_t more, c = mind_next((const uint8_t *)p, n, &at);
        if (c == '_') {
            continue;
        }
        c = c < 0x80 ? c : mind_fold(c, &more);
        if (c == 0) {
            continue;
        }
        while (i < w->count && !same_letter(&w->l[i], c) &&
               ((w->l[i].flags & OPTIONAL) ||
                (last && w->l[i].c == last->c && !(w->l[i].flags & START)))) {
            i++;
        }
        if (i >= w->count || !same_letter(&w->l[i], c)) {
            return -1;
        }
        last = &w->l[i++];
    }
    return i;
}

/* Letters [i, j) are whole words, or all is written as one. */
static int may_skip(const scan *w, int i, int j)
{
    int ends = 0;
    if ((w->l[i - 1].flags & (END | FREE)) && (w->l[j - 1].flags & (END | FREE))) {
        return 1;
    }
    for (int k = i - 1; k < j; k++) {
        ends += (w->l[k].flags & END) != 0;
    }
    return ends == 0;
}

/* Behind the rest of a pattern at place i; -1. */
static int match_rest(const scan *w, const char *p, int i)
{
    while (*p == ' ') {
        p++;
    }
    if (!*p) {
        return w->l[i - 1].flags & (END | FREE) ? i : -1;
    }
    const char *end = p + strcspn(p, " ");
    int may_miss = end[-1] == '?', got;
    if (*p == '~') {
        int most = 0;
        for (const char *d = p + 1; *d >= '0' && *d <= '9'; d++) {
            most = most * 10 + (*d - '0');
        }
        for (int g = 0; g <= most && i + g < w->count; g++) {
            if ((g == 0 || may_skip(w, i, i + g)) && (got = match_rest(w, end, i + g)) >= 0) {
                return got;
            }
        }
        return -1;
    }
    for (const char *a = p, *stop = end - may_miss; a < stop;) {
        const char *b = memchr(a, '|', (size_t)(stop - a));
        b = b ? b : stop;
        int next = match_word(w, a, b, i);
        if (next >= 0 && (got = match_rest(w, end, next)) >= 0) {
            return got;
        }
        a = b + 1;
    }
    return may_miss ? match_rest(w, end, i) : -1;
}

static uint32_t letter_bit(uint32_t c)
{
    return c - 'a' < 26u ? 1u << (c - 'a') : OTHER_LETTER;
}

static void collect(const mind_pattern *patterns, int n, uint32_t *bits)
{
    for (int i = 0; i < n && i < PATTERNS_MAX; i++) {
        const char *p = patterns[i].text;
        for (int more = 1; more; p++) {
            const char *end = p + strcspn(p, " ");
            for (const char *a = p; a < end; a += strcspn(a, "| ") + 1) {
                bits[i] |= letter_bit((uint8_t)*a);
            }
            more = end[-1] == '?';
            p = end;
        }
    }
}

static void collect_firsts(void)
{
    collect(mind_patterns, mind_npatterns, firsts);
    collect(mind_corrections, mind_ncorrections, correction_firsts);
}

/* -------------------------------------------------------------------------------- what is found */

static int is_there(const scan *w, const char *words, int i)
{
    for (const char *a = words; *a; a += a[strcspn(a, "|")] ? strcspn(a, "|") + 1 : strlen(a)) {
        if (match_word(w, a, a + strcspn(a, "|"), i) >= 0) {
            return 1;
        }
    }
    return 0;
}

/* A device or a prison, and not a model, that is broken out of. */
static int is_harmless_jailbreak(const scan *w, int i, int j)
{
    for (int k = i > 60 ? i - 60 : 0; k < j + 60 && k < w->count; k++) {
        if ((w->l[k].flags & START) &&
            is_there(w,
                     "iphone|ipad|ios|phone|android|playstation|switch|kindle|prison|inmate|movie|"
                     "cydia|console",
                     k)) {
            return 1;
        }
    }
    return 0;
}

static void try_patterns(scan *w, int i)
{
    const letter *l = &w->l[i];
    uint32_t bits = letter_bit(l->c) | (l->alt[0] ? letter_bit((uint8_t)l->alt[0]) : 0) |
                    (l->alt[1] ? letter_bit((uint8_t)l->alt[1]) : 0);
    // behind a sign that may be none: "!ignore"
    bits |= l->flags & OPTIONAL && i + 1 < w->count ? letter_bit(w->l[i + 1].c) : 0;
    for (int k = 0; k < w->npatterns; k++) {
        const mind_pattern *p = &w->patterns[k];
        if (!(w->firsts[k] & bits) || (p->where == MIND_CLAUSE && !(l->flags & CLAUSE))) {
            continue;
        }
        int end = match_rest(w, p->text, i);
        if (end > i && !(p->unless && end < w->count && is_there(w, p->unless, end)) &&
            !(p->kind == MIND_SCAN_JAILBREAK && p->severity == MIND_MEDIUM &&
              is_harmless_jailbreak(w, i, end))) {
            add(w, p->kind, p->severity, l->from, w->l[end - 1].to);
        }
    }
}

/* Does the word before place i, on the line above, belong to it? "operating\nsystem" */
static int is_second_half(const scan *w, int i)
{
    int from = i - 1;
    while (from > 0 && !(w->l[from].flags & START)) {
        from--;
    }
    return from >= 0 && i > 0 &&
           is_there(w,
                    "operating|alarm|immune|nervous|solar|filing|file|contact|personal|sales|shop",
                    from);
}

/* "system: you ..." at the beginning of a line; but "System: Windows 11". */
static void try_role(scan *w, int i)
{
    static const struct {
        const char *name;
        int severity;
    } roles[] = {{"system", MIND_MEDIUM},
                 {"systemmessage", MIND_HIGH},
                 {"systemprompt", MIND_HIGH},
                 {"newinstructions", MIND_MEDIUM},
                 {"updatedinstructions", MIND_MEDIUM},
                 {"assistant", MIND_LOW}};
    for (size_t k = 0; k < sizeof roles / sizeof *roles; k++) {
        int end = match_word(w, roles[k].name, roles[k].name + strlen(roles[k].name), i);
        if (end > 0 && (w->l[end - 1].flags & COLON) && end < w->count && !is_second_half(w, i) &&
            !(k == 0 && (mind_is_digit(w->l[end].c) ||
                         is_there(w,
                                  "windows|linux|mac|ubuntu|debian|fedora|android|ios|unix|metric|"
                                  "ok|nominal|imperial|decimal|intel|amd|ram",
                                  end)))) {
            add(w, MIND_SCAN_ROLE, roles[k].severity, w->l[i].from, w->l[end - 1].to);
        }
    }
}

static void scan_letters(scan *w)
{
    w->due = START | LINE | CLAUSE;
    w->wait = -1;
    for (;;) {
        fill(w);
        int last = w->at >= w->n, stop = last ? w->count : w->count - OVERLAP;
        for (int i = 0; i < stop; i++) {
            if (w->l[i].flags & START) {
                try_patterns(w, i);
            }
            if ((w->l[i].flags & LINE) && w->patterns == mind_patterns) {
                try_role(w, i);
            }
        }
        if (last) {
            return;
        }
        memmove(w->l, w->l + stop, (size_t)(w->count - stop) * sizeof *w->l);
        w->count -= stop;
        w->wait = w->wait >= stop ? w->wait - stop : -1;
    }
}

/* ------------------------------------------------------------------------------ marks and codes */

/* A chat mark whose bracket is at `from`. */
static void try_mark(scan *w, size_t from)
{
    static const char *const angle[] = {
        "system",    "imstart",       "imend",        "sys",       "endoftext",
        "assistant", "instructions",  "systemprompt", "developer", "functioncalls",
        "toolcall",  "startheaderid", "eotid"};
    static const char *const square[] = {"inst", "systemmessage", "systemprompt", "system"};
    char name[MARK_MAX + 1];
    size_t n = 0, at = from;
    uint32_t open = mind_next(w->s, w->n, &at), c = 0, more;
    open = open == 0xFF1C ? '<' : open;
    while (at < w->n && at - from < 3 * MARK_MAX) {
        c = mind_next(w->s, w->n, &at);
        c = c >= 0xFF01 && c <= 0xFF5E ? c - 0xFEE0 : c;
        if (c == (open == '<' ? '>' : ']') || c == MIND_BROKEN || n == MARK_MAX) {
            break;
        }
        char like = c < 0x80 ? 0 : look_alike(mind_fold(c, &more));
        c = like ? (uint8_t)like : c < 0x80 ? mind_fold(c, &more) : c;
        if (c - 'a' < 26u) {
            name[n++] = (char)c;
        } else if (!has_no_width(c) && (c >= 0x80 || !c || !strchr(" _-/|<[#", (int)c))) {
            return;
        }
    }
    name[n] = 0;
    if (c != (open == '<' ? '>' : ']')) {
        return;
    }
    const char *const *names = open == '<' ? angle : square;
    size_t count = open == '<' ? sizeof angle / sizeof *angle : sizeof square / sizeof *square;
    for (size_t k = 0; k < count; k++) {
        if (strcmp(name, names[k]) == 0) {
            add(w, MIND_SCAN_MARKUP, open == '[' && k == 3 ? MIND_LOW : MIND_HIGH, from, at);
        }
    }
}

static int base64_of(uint8_t c)
{
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+' || c == '-' ? 62
           : c == '/' || c == '_' ? 63
                                  : -1;
}

static size_t scan_text(const void *text, size_t n, mind_finding *out, size_t room, int depth);

/* Text that base64 hides at [from, to): what it says, if it is text. */
static void try_base64(scan *w, size_t from, size_t to)
{
    uint8_t plain[PLAIN_MAX];
    mind_finding inner[4];
    size_t n = 0, words = 0, blanks = 0;
    uint32_t bits = 0;
    int have = 0;
    for (size_t i = from; i < to && n < PLAIN_MAX; i++) {
        bits = bits << 6 | (uint32_t)base64_of(w->s[i]);
        have += 6;
        if (have >= 8) {
            have -= 8;
            plain[n++] = (uint8_t)(bits >> have);
        }
    }
    for (size_t i = 0; i < n; i++) {
        if (plain[i] < ' ' && plain[i] != '\n' && plain[i] != '\t' && plain[i] != '\r') {
            return;
        }
        words += (plain[i] | 32u) - 'a' < 26;
        blanks += plain[i] == ' ';
    }
    if (words + blanks < n - n / 5) {
        return;
    }
    if (w->depth == 0 && scan_text(plain, n, inner, 4, 1) > 0) {
        add(w, MIND_SCAN_ENCODED, MIND_CRITICAL, from, to);
    } else if (blanks > 1) {
        add(w, MIND_SCAN_ENCODED, MIND_LOW, from, to);
    }
}

/* Characters that no one sees. The end of what begins at `from`. */
static size_t try_hidden(scan *w, size_t from)
{
    size_t at = from, next, tags = 0;
    while (at < w->n) {
        next = at;
        if (!is_tag(mind_next(w->s, w->n, &next))) {
            break;
        }
        tags++;
        at = next;
    }
    if (tags > 0) {
        // the flags of some countries are a black flag and tags
        if (tags > 6 || from < 4 || memcmp(w->s + from - 4, "\xf0\x9f\x8f\xb4", 4) != 0) {
            add(w, MIND_SCAN_HIDDEN, MIND_HIGH, from, at);
        }
        return at;
    }
    next = from;
    uint32_t c = mind_next(w->s, w->n, &next);
    if (c == 0x202D || c == 0x202E) {
        add(w, MIND_SCAN_HIDDEN, MIND_MEDIUM, from, next);
    } else if ((c == 0x200B || c == 0x2060 || c == 0xFEFF || c == 0x200C || c == 0x200D) &&
               from > 0 && ascii_letter_at(w, from - 1) && ascii_letter_at(w, next)) {
        add(w, MIND_SCAN_HIDDEN, MIND_LOW, from, next);
    }
    return next;
}

static void scan_bytes(scan *w)
{
    size_t at = 0;
    while (at < w->n && w->found < w->room) {
        uint8_t c = w->s[at];
        if (base64_of(c) >= 0) {
            size_t from = at;
            while (at < w->n && base64_of(w->s[at]) >= 0) {
                at++;
            }
            if (at - from >= 24) {
                try_base64(w, from, at);
            }
        } else if (c == '<' || c == '[' ||
                   (c == 0xEF && w->n - at > 2 && w->s[at + 1] == 0xBC && w->s[at + 2] == 0x9C)) {
            try_mark(w, at);
            at++;
        } else if (c == 0xE2 || c == 0xF3 || c == 0xEF) {
            at = try_hidden(w, at);
        } else {
            at++;
        }
    }
}

static int by_start(const void *a, const void *b)
{
    const mind_finding *x = a, *y = b;
    return x->start != y->start ? (x->start < y->start ? -1 : 1) : x->kind - y->kind;
}

static size_t scan_text(const void *text, size_t n, mind_finding *out, size_t room, int depth)
{
    scan w;
    w.patterns = mind_patterns;
    w.npatterns = mind_npatterns;
    w.firsts = firsts;
    w.s = text;
    w.n = n;
    w.at = w.found = 0;
    w.count = 0;
    w.out = out;
    w.room = room;
    w.depth = depth;
    scan_letters(&w);
    scan_bytes(&w);
    return w.found;
}

size_t mind_scan(const void *text, size_t n, mind_finding *out, size_t room)
{
    pthread_once(&once, collect_firsts);
    size_t found = scan_text(text, n, out, room, 0);
    if (found > 1) {
        qsort(out, found, sizeof *out, by_start);
    }
    return found;
}

int mind_corrects(const void *text, size_t n)
{
    mind_finding one;
    scan w;
    pthread_once(&once, collect_firsts);
    w.patterns = mind_corrections;
    w.npatterns = mind_ncorrections;
    w.firsts = correction_firsts;
    w.s = text;
    w.n = n;
    w.at = w.found = 0;
    w.count = 0;
    w.out = &one;
    w.room = 1;
    w.depth = 0;
    scan_letters(&w);
    return w.found > 0;
}

const char *mind_scan_name(int kind)
{
    static const char *const names[] = {"override",  "role",    "markup",  "persona", "leak",
                                        "jailbreak", "conceal", "address", "encoded", "hidden"};
    return kind >= 0 && kind <= MIND_SCAN_HIDDEN ? names[kind] : "";
}

const char *mind_severity_name(int severity)
{
    static const char *const names[] = {"low", "medium", "high", "critical"};
    return severity >= 0 && severity <= MIND_CRITICAL ? names[severity] : "";
}
