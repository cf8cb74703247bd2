/*
 * t_text.h - the texts and vectors of the model: each is a number, and made from it
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef T_TEXT_H
#define T_TEXT_H

enum { T_TEXT_MOST = 9000, T_HEX_MOST = 40 };

/* Text number n into buf; NULL for -1. Number 0 is empty; a multiple of 41 has some
** thousand bytes. */
const char *t_text(int n, char *buf);
/* 1 when it has the word that all but -1 and 0 have, "amber". */
int t_text_has_words(int n);
/* Vector n as hexadecimal bytes, and as JSON; 0 is none. */
const char *t_vector_hex(int n, char *buf);
const char *t_vector_json(int n, char *buf);

#endif
