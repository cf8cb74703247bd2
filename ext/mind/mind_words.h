/*
 * mind_words.h - what small talk is made of, a row a language. For the files of ext/mind only.
 *
 * chatter   words and phrases that say nothing worth keeping, separated by |
 * function  words that say nothing by themselves (articles, pronouns, auxiliaries), by blanks: a
 *           message may have them beside chatter
 *
 * Written as people write; mind_gate.c folds both these and the message. A message is small talk
 * when one language explains all its words: `son` is no word of chatter in English, though it is a
 * verb in Spanish. Row 0 belongs to every language.
 *
 * No numbers, dates, names, commands: what is not here is kept.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MIND_WORDS_H
#define MIND_WORDS_H

typedef struct mind_language {
    const char *name, *chatter, *function;
} mind_language;

enum { MIND_LANGUAGES = 22 };
extern const mind_language mind_languages[MIND_LANGUAGES];

#endif
