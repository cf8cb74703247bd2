/*
 * mind_text.h - code points and letters of a message, for the files of ext/mind only.
 *
 * Any bytes are a text. A byte that begins no code point is one of its own, MIND_BROKEN.
 *
 * THREADS   no state.
 * SPDX-License-Identifier: MIT
 */
#ifndef MIND_TEXT_H
#define MIND_TEXT_H

#include <stddef.h>
#include <stdint.h>

#define MIND_BROKEN 0xFFFFFFFFu

/* Reads the code point at s[*at], *at < n, and moves on; surrogates and overlong forms are
 * broken. */
uint32_t mind_next(const uint8_t *s, size_t n, size_t *at);

/* A letter without case and marks: `É` is e, `Ё` is Cyrillic e, an Arabic alef any alef; *more gets
 * a second letter (of `ß`, `æ`) or 0. A mark that changes nothing (an Arabic vowel) is 0. */
uint32_t mind_fold(uint32_t c, uint32_t *more);
int mind_is_upper(uint32_t c); /* Latin, Greek, Cyrillic */
int mind_is_lower(uint32_t c);
/* No letter and no digit: punctuation, white space, controls, symbols, pictures. What no table here
 * knows counts as a letter. */
int mind_is_symbol(uint32_t c);
int mind_is_digit(uint32_t c); /* of any script; also circled ones and fractions */
/* Of a script that leaves no blanks between words: each such character is a word here. */
int mind_is_alone(uint32_t c);

#endif
