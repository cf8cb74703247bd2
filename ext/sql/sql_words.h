/*
 * sql_words.h - the other forms of common English words.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SQL_WORDS_H
#define SQL_WORDS_H

#include <stddef.h>

enum {
    SQL_WORD_MAX = 24, /* bytes of a form, with its NUL */
    SQL_WORD_FORMS = 8
};

typedef struct sql_word {
    char s[SQL_WORD_MAX];
} sql_word;

/* The other forms of a word, which is in small ASCII letters; 0 for one that is not known. */
size_t sql_word_forms(const char *word, sql_word out[SQL_WORD_FORMS]);

#endif
