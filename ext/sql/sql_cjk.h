/*
 * sql_cjk.h - Chinese, Japanese and Korean text as pairs of characters.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SQL_CJK_H
#define SQL_CJK_H

#include "sql.h"

/* 0: certainly no such character in the token. */
int sql_cjk_any(const char *s, size_t n);
enum { SQL_CJK_ROW, SQL_CJK_WORDS, SQL_CJK_PHRASE };
/* Hands the pieces of a token to fn, as a row has them, words of a query or a phrase; what that
** returns but SQLITE_OK ends it. */
int sql_cjk_split(const char *s, size_t n, int as, int colocated, int start, int end,
                  sql_token_fn *fn, void *ctx);

#endif
