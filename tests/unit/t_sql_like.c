/*
 * t_sql_like.c - LIKE and GLOB against SQLite's own over random bytes; tags.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "store.h"
#include "t_rng.h"

static sqlite3_stmt *stmt[2];

static int theirs(int glob, const char *text, int n, const char *pattern, int m)
{
    sqlite3_bind_text(stmt[glob], 1, text, n, SQLITE_STATIC);
    sqlite3_bind_text(stmt[glob], 2, pattern, m, SQLITE_STATIC);
    assert_int_equal(sqlite3_step(stmt[glob]), SQLITE_ROW);
    int holds = sqlite3_column_int(stmt[glob], 0);
    sqlite3_reset(stmt[glob]);
    return holds;
}

/* Pieces of characters that mean something, and of what is no UTF-8. */
static const char *const pieces[] = {"a",
                                     "B",
                                     "b",
                                     "A",
                                     "%",
                                     "_",
                                     "*",
                                     "?",
                                     "[",
                                     "]",
                                     "^",
                                     "-",
                                     "[a-c",
                                     "[^b]",
                                     "[]x]",
                                     "z",
                                     "\xc3\xa9",
                                     "\xc3",
                                     "\xa9",
                                     "\xc1\x81",
                                     "\xff",
                                     "\xe2\x82",
                                     "\xe2\x82\xac",
                                     "\xf0\x9f\x98\x80",
                                     "\xed\xa0\x80",
                                     "\xef\xbf\xbe",
                                     "k",
                                     "K",
                                     "\xe2\x84\xaa",
                                     "%%",
                                     "**",
                                     "\x7f",
                                     "\x80",
                                     "\xc2\x80"};

static int make(t_rng *r, char *out, int most)
{
    int n = 0;
    for (int i = (int)t_rng_below(r, (uint64_t)most); i > 0; i--) {
        const char *s = pieces[t_rng_below(r, sizeof pieces / sizeof *pieces)];
        memcpy(out + n, s, strlen(s));
        n += (int)strlen(s);
    }
    return n;
}

static void test_as_sqlite(void **state)
{
    t_rng r = t_rng_start(5);
    char text[200], pattern[200];
    int held = 0;
    (void)state;
    for (int i = 0; i < 400000; i++) {
        int n = make(&r, text, 9), m = make(&r, pattern, 7);
        if (i % 50 == 0 && n) {
            text[t_rng_below(&r, (uint64_t)n)] = 0;
        }
        if (i % 3 == 0 && n) { // a pattern made of the text, so that many hold
            m = n;
            memcpy(pattern, text, (size_t)n);
            pattern[t_rng_below(&r, (uint64_t)m)] = "%_*?Aa"[t_rng_below(&r, 6)];
        }
        for (int glob = 0; glob < 2; glob++) {
            int got = st_like(text, (size_t)n, pattern, (size_t)m, glob);
            held += got;
            if (got != theirs(glob, text, n, pattern, m)) {
                print_message("%s '%.*s' of '%.*s': %d\n", glob ? "GLOB" : "LIKE", m, pattern, n,
                              text, got);
                fail();
            }
        }
    }
    assert_true(held > 50000);
}

/* A star for each character would take a matcher that goes back to all of them for ever. */
static void test_many_stars_take_no_longer(void **state)
{
    char text[4000], pattern[1000];
    (void)state;
    memset(text, 'a', sizeof text);
    for (size_t i = 0; i < sizeof pattern; i += 2) {
        memcpy(pattern + i, "%a", 2);
    }
    pattern[sizeof pattern - 1] = 'b';
    assert_false(st_like(text, sizeof text, pattern, sizeof pattern, 0));
    pattern[sizeof pattern - 1] = 'a';
    assert_true(st_like(text, sizeof text, pattern, sizeof pattern, 0));
}

static void test_tags(void **state)
{
    (void)state;
    const char *tags = " a , b,c d,,\te\n, b";
    size_t n = strlen(tags);
    assert_true(st_has_tag(tags, n, "a", 1) && st_has_tag(tags, n, "b", 1));
    assert_true(st_has_tag(tags, n, "c d", 3) && st_has_tag(tags, n, "e", 1));
    assert_false(st_has_tag(tags, n, "c", 1) || st_has_tag(tags, n, "", 0));
    assert_false(st_has_tag(tags, n, " a", 2) || st_has_tag("", 0, "a", 1));
    assert_false(st_has_tag("ab", 2, "a", 1) || st_has_tag(NULL, 0, "a", 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_sqlite),
        cmocka_unit_test(test_many_stars_take_no_longer),
        cmocka_unit_test(test_tags),
    };
    sqlite3 *db;
    if (sqlite3_open(":memory:", &db) != SQLITE_OK ||
        sqlite3_prepare_v2(db, "SELECT ?1 LIKE ?2", -1, &stmt[0], NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(db, "SELECT ?1 GLOB ?2", -1, &stmt[1], NULL) != SQLITE_OK) {
        return 1;
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    sqlite3_finalize(stmt[0]);
    sqlite3_finalize(stmt[1]);
    sqlite3_close(db);
    return failed;
}
