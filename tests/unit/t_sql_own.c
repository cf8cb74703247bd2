/*
 * t_sql_own.c - our own tokenizer against FTS5's: the same tokens at the same places, for every
 * code point, for words with all kinds of endings, and for random bytes.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SQLITE_CORE 1 // the host's functions by their own names
#include "sql_own.h"
#include "t_rng.h"

static fts5_tokenizer theirs[2], ours[2]; /* without porter, with it */
static Fts5Tokenizer *their[2], *our[2];

/* Tokens, one behind the other: n, start, end, bytes. */
typedef struct list {
    char at[1 << 16];
    size_t n;
} list;

static int note(void *ctx, int flags, const char *token, int n, int start, int end)
{
    list *l = ctx;
    (void)flags;
    assert_true(l->n + 64 + (size_t)n < sizeof l->at);
    l->n += (size_t)sprintf(l->at + l->n, "%d %d %d ", n, start, end);
    memcpy(l->at + l->n, token, (size_t)n);
    l->n += (size_t)n;
    l->at[l->n++] = '\n';
    return SQLITE_OK;
}

static void same(const char *text, size_t n)
{
    static list a, b;
    for (int i = 0; i < 2; i++) {
        a.n = b.n = 0;
        theirs[i].xTokenize(their[i], &a, FTS5_TOKENIZE_DOCUMENT, text, (int)n, note);
        ours[i].xTokenize(our[i], &b, FTS5_TOKENIZE_DOCUMENT, text, (int)n, note);
        if (a.n != b.n || memcmp(a.at, b.at, a.n) != 0) {
            size_t k = 0;
            while (k < a.n && k < b.n && a.at[k] == b.at[k]) {
                k++;
            }
            k = k > 20 ? k - 20 : 0;
            print_message("of %zu bytes: '%.*s' and not '%.*s'\n", n,
                          b.n - k < 60 ? (int)(b.n - k) : 60, b.at + k,
                          a.n - k < 60 ? (int)(a.n - k) : 60, a.at + k);
            fail();
        }
    }
}

static size_t put(uint32_t c, char *out)
{
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    out[0] = (char)(n == 1 ? c : (0xf00u >> n & 0xf0) | c >> (6 * (n - 1)));
    for (size_t i = 1; i < n; i++) {
        out[i] = (char)(0x80 | (c >> (6 * (n - 1 - i)) & 0x3f));
    }
    return n;
}

static void test_every_code_point(void **state)
{
    char text[32];
    (void)state;
    for (uint32_t c = 0; c < 0x110000; c++) {
        size_t n = put(c, text);
        memcpy(text + n, "run ", 4);
        n += 4 + put(c, text + n + 4);
        text[n++] = 'q';
        n += put(c, text + n);
        same(text, n);
    }
}

static const char *const endings[] = {
    "s",      "es",      "ies",   "sses",  "eed",   "ed",      "ing",     "y",       "ational",
    "tional", "enci",    "anci",  "izer",  "logi",  "bli",     "alli",    "entli",   "eli",
    "ousli",  "ization", "ation", "ator",  "alism", "iveness", "fulness", "ousness", "aliti",
    "iviti",  "biliti",  "icate", "ative", "alize", "iciti",   "ical",    "ful",     "ness",
    "al",     "ance",    "ence",  "er",    "ic",    "able",    "ible",    "ant",     "ement",
    "ment",   "ent",     "ion",   "sion",  "tion",  "ou",      "ism",     "ate",     "iti",
    "ous",    "ive",     "ize",   "e",     "l",     "ll",      "le",      "at",      "bl",
    "iz",     ""};

static void test_words(void **state)
{
    t_rng r = t_rng_start(3);
    char text[600];
    (void)state;
    for (int i = 0; i < 300000; i++) {
        size_t n = 0;
        for (uint64_t k = t_rng_below(&r, i % 100 ? 6 : 70); k > 0; k--) {
            text[n++] = "aeiouybcdfghlmnprstvwxz"[t_rng_below(&r, 23)];
        }
        for (int k = 0; k < 2; k++) {
            const char *e = endings[t_rng_below(&r, sizeof endings / sizeof *endings)];
            memcpy(text + n, e, strlen(e));
            n += strlen(e);
        }
        same(text, n);
    }
}

static void test_random_texts(void **state)
{
    t_rng r = t_rng_start(4);
    char text[600];
    (void)state;
    for (int i = 0; i < 60000; i++) {
        size_t n = 0, most = 1 + (size_t)t_rng_below(&r, 400);
        while (n < most) {
            uint64_t kind = t_rng_below(&r, 10);
            if (kind < 5) {
                text[n++] = (char)('A' + t_rng_below(&r, 58));
            } else if (kind < 6) {
                text[n++] = ' ';
            } else if (kind < 7) {
                text[n++] = (char)t_rng_next(&r); // no UTF-8, or a NUL
            } else {
                static const uint32_t spans[] = {0x80, 0x800, 0x3000, 0x11000, 0x110000};
                n += put((uint32_t)t_rng_below(&r, spans[t_rng_below(&r, 5)]), text + n);
            }
        }
        same(text, n);
    }
}

static void test_only_what_is_the_same(void **state)
{
    static const char *const others[][5] = {{"unicode61"},
                                            {"porter"},
                                            {"porter", "ascii"},
                                            {"unicode61", "remove_diacritics", "1"},
                                            {"porter", "unicode61", "tokenchars", "-"},
                                            {"trigram"}};
    static const int n[] = {1, 1, 2, 3, 4, 1};
    fts5_tokenizer calls;
    Fts5Tokenizer *made;
    (void)state;
    for (size_t i = 0; i < sizeof n / sizeof *n; i++) {
        assert_false(sql_own_find(others[i], n[i], &calls, &made));
    }
}

static int open_both(sqlite3 *db)
{
    const char *spec[] = {"porter", "unicode61", "remove_diacritics", "2"};
    fts5_api *api = NULL;
    sqlite3_stmt *stmt;
    void *user;
    if (sqlite3_prepare_v2(db, "SELECT fts5(?1)", -1, &stmt, NULL) != SQLITE_OK) {
        return 0;
    }
    sqlite3_bind_pointer(stmt, 1, &api, "fts5_api_ptr", NULL);
    sqlite3_step(stmt);
    sqlite3_finalize(stmt);
    for (int i = 0; i < 2 && api; i++) {
        const char **words = spec + (i == 0);
        int n = 3 + i;
        if (api->xFindTokenizer(api, words[0], &user, &theirs[i]) != SQLITE_OK ||
            theirs[i].xCreate(user, words + 1, n - 1, &their[i]) != SQLITE_OK ||
            !sql_own_find(words, n, &ours[i], &our[i])) {
            return 0;
        }
    }
    return api != NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_code_point),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_random_texts),
        cmocka_unit_test(test_only_what_is_the_same),
    };
    sqlite3 *db;
    if (sqlite3_open(":memory:", &db) != SQLITE_OK || !open_both(db)) {
        return 1;
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    for (int i = 0; i < 2; i++) {
        theirs[i].xDelete(their[i]);
    }
    sqlite3_close(db);
    return failed;
}
