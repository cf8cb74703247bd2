/*
 * t_sql_memo.c - the stream of a row is the same, whether its words are remembered or not.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define SQLITE_CORE 1 // the functions themselves, as the layer was compiled
#include "sql_memo.h"
#include "t_rng.h"
#include "vec.h"

// The same tokenizer under a name that is remembered nothing of.
#define PLAIN "porter  unicode61 remove_diacritics 2"

static const char *const pieces[] = {"a",
                                     "the",
                                     "The",
                                     "RUNNING",
                                     "running",
                                     "flies",
                                     "relational",
                                     "x",
                                     "3",
                                     "2026",
                                     "v2",
                                     "_",
                                     "-",
                                     "'",
                                     ".",
                                     " ",
                                     " ",
                                     "\n",
                                     "\t",
                                     "\x7f",
                                     "\x01",
                                     "\xc3\xa9",
                                     "\xc3\x89",
                                     "\xcc\x81",
                                     "\xe6\x9d\xb1",
                                     "\xe4\xba\xac",
                                     "\xd0\xbc",
                                     "\xc2\xa0",
                                     "\xe2\x80\x99",
                                     "\xe2\x80\x94",
                                     "\xf0\x9f\x99\x82",
                                     "\xff",
                                     "\xc3",
                                     "\xe6\x9d",
                                     "\xed\xa0\x80",
                                     "abcdefghijklmnopqrstuvw",
                                     "abcdefghijklmnopqrstuvwx",
                                     "abcdefghijklmnopqrstuvwxy",
                                     "international",
                                     "happiness",
                                     "s",
                                     "ing",
                                     "ed",
                                     "ational"};

static size_t make_text(t_rng *r, char *out, size_t room)
{
    size_t n = 0, words = t_rng_below(r, 60);
    for (size_t i = 0; i < words; i++) {
        const char *p = pieces[t_rng_below(r, sizeof pieces / sizeof *pieces)];
        size_t len = strlen(p);
        if (n + len + 2 > room) {
            break;
        }
        memcpy(out + n, p, len);
        n += len;
        if (t_rng_below(r, 2)) {
            out[n++] = t_rng_below(r, 40) ? ' ' : 0;
        }
    }
    return n;
}

static void same_stream(void **state)
{
    (void)state;
    sqlite3 *db;
    sql_tokenizer *with, *without;
    sql_tokens a = {0}, b = {0};
    char *err = NULL, text[VEC_FIELDS][512];
    t_rng r = t_rng_start(1);
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    sql_db d = {.db = db};
    assert_int_equal(sql_tokenizer_get(&d, ST_DEFAULT_TOKENIZER, &with, &err), SQLITE_OK);
    assert_int_equal(sql_tokenizer_get(&d, PLAIN, &without, &err), SQLITE_OK);
    // Otherwise nothing is remembered, and this compares nothing.
    assert_string_equal(sql_tokenizer_fingerprint(with), SQL_MEMO_FINGERPRINT);
    for (int i = 0; i < 20000; i++) {
        st_value v[VEC_FIELDS];
        memset(v, 0, sizeof v);
        for (int f = 0; f < VEC_FIELDS; f++) {
            v[f].type = t_rng_below(&r, 4) ? ST_TEXT : ST_NULL;
            v[f].p = text[f];
            v[f].n = make_text(&r, text[f], sizeof text[f]);
        }
        assert_int_equal(sql_tokenize_row(with, v, &a), SQLITE_OK);
        assert_int_equal(sql_tokenize_row(without, v, &b), SQLITE_OK);
        assert_int_equal(a.n, b.n);
        assert_memory_equal(a.bytes, b.bytes, a.n);
    }
    sql_tokens_free(&a);
    sql_tokens_free(&b);
    sql_tokenizers_drop(&d);
    sqlite3_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_stream)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
