/*
 * mind.h - what makes rows memories: what is worth keeping, how it ages, what it becomes. The only
 * header of ext/mind that ext/sql includes.
 *
 * Works on texts and arrays that the caller hands in and keeps nothing; ext/sql brings the rows and
 * writes the decisions back inside a transaction.
 *
 * MEMORY    the caller's
 * THREADS   every function may be called from any thread.
 * SPDX-License-Identifier: MIT
 */
#ifndef MIND_H
#define MIND_H

#include <stddef.h>
#include <stdint.h>

/* ------------------------------------------------------------------------ what is worth keeping */

/* Why a message is worth keeping, or is not: those up to MIND_FILLER are not. */
enum {
    MIND_EMPTY,     /* nothing but white space and controls */
    MIND_SYMBOLS,   /* punctuation, pictures, smileys */
    MIND_CHATTER,   /* words and phrases of small talk, in one language */
    MIND_FILLER,    /* two or more words, all of which say nothing by themselves */
    MIND_CONTENT,   /* a word that is none of these */
    MIND_NUMBER,    /* a digit, of any script */
    MIND_COMMAND,   /* /do, !do, $ do, #tag, @name, `code` */
    MIND_NAME,      /* a word of small talk that stands there as a name: I am in Nice */
    MIND_QUESTION,  /* to be searched for: a filler of three words or more */
    MIND_UNREADABLE /* bytes that are no UTF-8 */
};
enum { MIND_TO_SAVE, MIND_TO_SEARCH };

/* The reason; n bytes of anything. Small talk is known by lists of 21 languages (mind_words.h); the
 * first word that is on none of them ends the look, so that a long message costs what its beginning
 * does. What is not understood is kept. */
int mind_gate(const void *text, size_t n, int purpose);
int mind_gate_keeps(int reason);
const char *mind_gate_name(int reason); /* one word */
/* Does the message put something right that was said before? "That's wrong", "I meant Tuesday", in
 * 15 languages, by whole words: "I play piano" and "ok no worries" do not. */
int mind_corrects(const void *text, size_t n);
/* 1: every number and every name of text is in known. Time goes with their product at worst. */
int mind_repeats(const void *text, size_t n, const void *known, size_t nknown);

/* --------------------------------------------------------------------- text that gives orders */

enum {
    MIND_SCAN_OVERRIDE,  /* forget what you were told */
    MIND_SCAN_ROLE,      /* a line that passes itself off as another speaker's */
    MIND_SCAN_MARKUP,    /* marks of a chat format: <|im_start|>, [INST] */
    MIND_SCAN_PERSONA,   /* be somebody else */
    MIND_SCAN_LEAK,      /* give away what you were told, or send it somewhere */
    MIND_SCAN_JAILBREAK, /* be without restraint */
    MIND_SCAN_CONCEAL,   /* do it behind the user's back */
    MIND_SCAN_ADDRESS,   /* meant for a program that reads */
    MIND_SCAN_ENCODED, /* base64 that says one of these, or text that has it decoded and followed */
    MIND_SCAN_HIDDEN   /* characters that no one sees: tags, changes of direction */
};
enum { MIND_LOW, MIND_MEDIUM, MIND_HIGH, MIND_CRITICAL };

typedef struct mind_finding {
    int kind, severity;
    size_t start, end; /* bytes of the text */
} mind_finding;

/* Looks for them (mind_patterns.c); blanks, punctuation, line breaks, characters without width,
 * letters that only look alike and digits for letters hide nothing. Of findings of one kind that
 * overlap the first and severest counts. Gives their number, room at most, sorted by start; further
 * ones are not looked for. Time goes with n, memory is a fixed piece of the stack. */
size_t mind_scan(const void *text, size_t n, mind_finding *out, size_t room);
const char *mind_scan_name(int kind);
const char *mind_severity_name(int severity);

/* ------------------------------------------------------------------------------------ ageing */

/* What is left of a value after some seconds: half of it each half_life. A clock that went back
 * (seconds < 0, or NaN) takes nothing away; a half-life that is not above 0 keeps everything. */
double mind_decay(double value, double seconds, double half_life);

/* -------------------------------------------------------------- consolidation: mind_consolidate.c
 */

enum { MIND_WORKING, MIND_EPISODIC, MIND_SEMANTIC, MIND_TIERS };

/* Constants of a pass; ext/store keeps them as options of the same names. */
typedef struct mind_rules {
    int64_t capacity[MIND_TIERS]; /* rows that a tier may hold; below 0: any number */
    double half_life[MIND_TIERS]; /* seconds after which a row counts half; not above 0: never */
    double promote_importance;    /* working rows of at least this importance become episodic */
    int64_t promote_access;       /* and those accessed at least so often; 0: not for that */
    int64_t semantic_access;      /* episodic rows accessed so often become semantic; 0: none do */
    double access_weight;         /* of an access, where a row's importance weighs 1 */
} mind_rules;

/* The rows, a column each, oldest first: of two rows that count the same the first one goes. */
typedef struct mind_rows {
    size_t n;
    const uint8_t *tier;
    const uint8_t *pinned;     /* 1: is never evicted, but takes a place of its tier */
    const uint8_t *superseded; /* 1: is not promoted; NULL: no row is */
    const double *importance;  /* outside 0..1 or NaN: as the nearest bound, 0 */
    const int64_t *access_count;
    const double *last_access; /* not finite: none, then timestamp counts */
    const double *timestamp;
} mind_rows;

enum { MIND_WHY_IMPORTANCE, MIND_WHY_ACCESS, MIND_WHY_CAPACITY };
const char *mind_why_name(int why); /* importance, access, capacity */

/* What becomes of one row. A row that is promoted twice in a pass has two moves. */
typedef struct mind_move {
    uint32_t row;
    uint8_t from, to; /* to: a tier, or MIND_EVICTED */
    uint8_t why;
    double strength; /* of a row evicted: as mind_strength; else 0 */
} mind_move;
enum { MIND_EVICTED = MIND_TIERS };

#define MIND_ROWS_MAX ((size_t)1 << 31)

typedef struct mind_moves {
    mind_move *move; /* promotions first, then evictions tier by tier, each in order of rows */
    size_t n;
    size_t promoted, evicted;
    size_t held[MIND_TIERS]; /* rows a tier has afterwards */
} mind_moves;

/* log2 of importance x (1 + accesses), less a unit for each half-life since last, the last access
 * (or, without one, the time the row happened). A time in the future, or a NaN, is now. accesses:
 * as many as they weigh. */
double mind_strength(double importance, double accesses, double last, double now, double half_life);

/* One pass over the rows: first working rows are promoted, then episodic ones (a row may pass
 * both), then each tier that holds more than it may loses the rows of least strength. The numbers
 * of the result are those of what is in `move`, which lies in room: mind_room(rows->n) bytes,
 * aligned as malloc does. There may be MIND_ROWS_MAX - 1 rows; mind_room is 0 for more. */
size_t mind_room(size_t n);
void mind_consolidate(const mind_rows *rows, const mind_rules *rules, double now, void *room,
                      mind_moves *out);

/* ---------------------------------------------------------------- importance: mind_importance.c
 */

#define MIND_SURPRISE_UNKNOWN 0.35 /* as the turns of a conversation have it in the mean */

/* What speaks for keeping a text, each 0 to 1. */
typedef struct mind_signals {
    double surprise;   /* 1 less the cosine of its vector with the nearest known; NaN: no vector */
    double facts;      /* names, numbers and words of time; three are enough for 1 */
    double length;     /* words; forty are enough */
    double words;      /* of seven letters and more; eight are enough */
    double question;   /* 1: it asks */
    double correction; /* 1: it corrects what was said */
    double source;     /* 1 the user's own, 0 anybody's, -1 retrieved, which is still elsewhere */
} mind_signals;
typedef struct mind_weights {
    double base, surprise, facts, length, words, question, correction, source;
} mind_weights;

/* Reads facts, length, words and question off a text (UTF-8; anything else is read as it is); the
 * others are 0. */
void mind_read(const char *text, size_t n, mind_signals *out);
/* The weighted sum on the scale of log odds: 0 to 1. */
double mind_importance(const mind_signals *s, const mind_weights *w);

/* ------------------------------------------------------------------------ merging: mind_merge.c */

/* May the newer of two texts whose vectors are near duplicates take the older one's place? It may
 * where both have the same numbers and names (capitals within a sentence), in any order; a
 * correction may where it has others. A word like "not" more or less does not keep them apart: then
 * the newer is what holds now. */
int mind_replaces(const char *older, size_t n, const char *newer, size_t m, int correction);

#endif
