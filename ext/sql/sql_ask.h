/*
 * sql_ask.h - a text query as the search takes it, put together word by word.
 *
 * OWNERSHIP  a sql_ask owns all it points to; free it in any case. ask is filled by sql_ask_finish
 *            and valid until sql_ask_free.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SQL_ASK_H
#define SQL_ASK_H

#include "sql.h"
#include "vec.h"

enum { SQL_FIELD_CONTENT = 1, SQL_FIELD_TAGS = 2, SQL_FIELD_SESSION = 4, SQL_FIELDS_ALL = 7 };
/* The columns in the order of their fields, and their names. */
extern const int sql_field_columns[VEC_FIELDS];
extern const char *const sql_field_names[VEC_FIELDS];

enum { SQL_ASK_WORDS_MAX = 65536 }; /* words of one query that count; further ones do not */

/* A growing array. */
typedef struct sql_list {
    void *p;
    size_t n, room; /* elements */
} sql_list;

struct sql_ask {
    vec_ask ask;
    int filters; /* the operators are + and -, which hold for a vector part, too */
    /* while it is put together */
    sql_list bytes;   /* of the words */
    sql_list words;   /* vec_word, without s */
    sql_list offsets; /* size_t: where each begins in bytes */
    sql_list phrases; /* vec_phrase */
    sql_list ops;     /* vec_op */
    sql_list loose;   /* single words that are OR-ed */
    sql_list slots;   /* uint32_t: hash table of them */
};

/* Adds a word; it belongs to the phrase that is added next, or to the last one if that is still
 * open. SQLITE_OK or SQLITE_NOMEM. Words beyond SQL_ASK_WORDS_MAX are left out. */
int sql_ask_word(sql_ask *a, const char *s, size_t n, int prefix, int colocated);
/* Makes a phrase of the words from `first` on. */
int sql_ask_phrase(sql_ask *a, size_t first, unsigned fields, int initial, double weight);
int sql_ask_op(sql_ask *a, int op, size_t phrase);
/* Adds one word to those that are OR-ed; one that comes twice counts once, with the larger
 * weight. */
int sql_ask_loose(sql_ask *a, const char *s, size_t n, int prefix, unsigned fields, double weight);
/* Adds the words of a text likewise. */
int sql_ask_text(sql_ask *a, sql_tokenizer *tok, const char *s, size_t n, unsigned fields,
                 double weight);
/* sql_forget.c: a word, or words in a row, that must be there beside those that are. */
int sql_ask_must(sql_ask *a, sql_tokenizer *tok, const char *s, size_t n);
/* Makes a->ask. */
int sql_ask_finish(sql_ask *a);

/* sql_plain.c: plain words. An SQLite code. */
int sql_ask_plain(sql_ask *a, sql_tokenizer *tok, const char *s, size_t n, unsigned fields);
/* sql_fts5.c: FTS5's language. *err, by sqlite3_malloc, without prefix, says what is wrong with the
 * query. */
int sql_ask_fts5(sql_ask *a, sql_tokenizer *tok, const char *s, size_t n, unsigned fields,
                 char **err);
/* sql_stop.c: a word of a question that says nothing about what is asked. */
int sql_is_stop_word(const char *s, size_t n);

#endif
