/*
 * sql_doc.h - where a query's phrases are in one text.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SQL_DOC_H
#define SQL_DOC_H

#include "sql_ask.h"

typedef struct sql_doc_word {
    int start, end; /* bytes of the text */
} sql_doc_word;

typedef struct sql_instance {
    size_t from, to; /* words [from, to) */
    size_t phrase;
    int end; /* where the bytes of its tokens end: a colocated one can be longer than its word */
} sql_instance;

/* All zero but text and n is one that has not been looked at. */
typedef struct sql_doc {
    const char *text;
    size_t n;
    sql_doc_word *words; /* one a position */
    size_t nword;
    sql_instance *instances; /* by from, then to */
    size_t ninstance;
    size_t nphrase; /* of the query */
    int outside;    /* the tokenizer gave offsets that are not the text's */
} sql_doc;

/* Has the query a phrase that counts in this field? */
int sql_doc_wanted(const sql_ask *a, int field);
/* Reads the text's words and, where a is not NULL, finds the phrases that count in this field;
 * every: also those that count for nothing. An SQLite code; free *d in any case. */
int sql_doc_find(sql_doc *d, sql_tokenizer *tok, const sql_ask *a, int field, int every);
void sql_doc_free(sql_doc *d);

/* Can a row that the query finds have a phrase that is no part of why: `a OR (b AND c)`? */
int sql_ask_mixes(const sql_ask *a);
/* part[i] = 1: phrase i is in the row (present[i]) and so is all that it is joined with. Both have
 * nphrase elements. */
int sql_ask_part(const sql_ask *a, const uint8_t *present, uint8_t *part);

#endif
