/*
 * sql_own.h - words as FTS5's `porter unicode61 remove_diacritics 2` cuts them, for hosts without
 * FTS5.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SQL_OWN_H
#define SQL_OWN_H

#include "sql.h"

/* The tokenizer of a specification in words, with FTS5's calls; 0: it is none that we have. */
int sql_own_find(const char *const *word, int n, fts5_tokenizer *calls, Fts5Tokenizer **made);

/* Porter's stem of a word of n bytes, in place; returns its length. */
size_t sql_own_stem(char *word, size_t n);

#endif
