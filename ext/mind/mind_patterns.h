/*
 * mind_patterns.h - what text that wants to command its reader looks like. For the files of
 * ext/mind only.
 *
 * A pattern is elements with blanks between. An element is words with | between, any of which may
 * stand there; a _ in a word is a place where a blank may be. `~20` is any text of at most 20
 * letters; an element that ends in ? may be missing. Letters without marks, in lower case.
 *
 * A pattern begins where a word begins and ends where one ends; what blanks, line breaks or
 * punctuation there are inside does not matter, nor between the letters of a word that is spaced
 * out.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MIND_PATTERNS_H
#define MIND_PATTERNS_H

enum { MIND_ANYWHERE, MIND_CLAUSE /* only where a clause begins */ };

typedef struct mind_pattern {
    int kind, severity, where;
    const char *text;
    const char *unless; /* words, with | between, that must not follow; NULL: any may */
} mind_pattern;

extern const mind_pattern mind_patterns[];
extern const int mind_npatterns;
/* What a message begins or says when it puts something right. kind and severity are 0. */
extern const mind_pattern mind_corrections[];
extern const int mind_ncorrections;

#endif
