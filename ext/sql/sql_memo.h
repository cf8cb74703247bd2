/*
 * sql_memo.h - the tokens of words met before.
 *
 * OWNERSHIP  a tokenizer's, freed with it
 * SPDX-License-Identifier: MIT
 */
#ifndef SQL_MEMO_H
#define SQL_MEMO_H

#include "sql.h"

typedef struct sql_memo sql_memo;

/* That of ST_DEFAULT_TOKENIZER in FTS5, for which it is meant. */
#define SQL_MEMO_FINGERPRINT "e7cc08b6349ba290"

sql_memo *sql_memo_new(void); /* NULL without memory */
void sql_memo_free(sql_memo *m);

/* Appends the tokens of a piece of text to out, an SQLite code. */
typedef int sql_memo_fn(void *ctx, const char *s, size_t n, sql_tokens *out);
/* Appends those of a text: word by word, each by fn unless it is known. fn must give for a text
 * what it gives for its words one by one, parted by whatever ASCII is neither letter nor digit, and
 * the same for capital and small ASCII letters. */
int sql_memo_text(sql_memo *m, const char *s, size_t n, sql_memo_fn *fn, void *ctx,
                  sql_tokens *out);
/* Makes room for more bytes. */
int sql_tokens_room(sql_tokens *t, size_t more);

#endif
