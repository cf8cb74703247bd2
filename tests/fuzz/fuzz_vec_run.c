/*
 * fuzz_vec_run.c - any bytes as a text image: it is opened, checked, searched and merged
 *
 * One input is one image. Whatever it says, every call must come back with a documented code,
 * without a crash, a leak or an allocation out of proportion; hits must be live rows. The first
 * term of the image is among the words that are searched, so that postings are reached whatever
 * the terms became.
 *
 *     clang -fsanitize=fuzzer,address,undefined -Ivec tests/fuzz/fuzz_vec_run.c vec/vec_*.c -lm
 *
 * Without libFuzzer it is linked with driver.c, which feeds it files.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdint.h>
#include <stdlib.h>

#define VEC_ALLOW_MALLOC
#include "fuzz.h"
#include "vec_run.h"

enum { NROW = 1 << 16 };

/* A result that is none of the documented codes is a fault. */
static int known(int rc)
{
    if (rc != VEC_OK && rc != VEC_NOMEM && rc != VEC_FORMAT && rc != VEC_LIMIT && rc != VEC_MISUSE)
        abort();
    return rc;
}

static size_t words(const vec_run *run, uint8_t *out)
{
    static const char *const common[] = {"a", "the", "w1", ""};
    const uint8_t *s;
    uint32_t len;
    size_t n = 0;

    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        n += vec_token_put(out + n, common[i], (uint32_t)strlen(common[i]), 0);
    for (uint32_t i = 0; i < run->nterm && i < 8; i++)
        if (vec_run_term(run, i, &s, &len) == VEC_OK)
            n += vec_token_put(out + n, (const char *)s, len, 0);
    return n;
}

static void search(const vec_run *run, int dense)
{
    static uint64_t live[NROW / 64];
    uint8_t query[12 * (VEC_TOKEN_MAX + 5)];
    vec_source src = {run, NULL, 0, dense};
    vec_bm25_args a = {&src,       1,    query, words(run, query),
                       live,       NULL, NROW,  VEC_BM25_K1,
                       VEC_BM25_B, NULL, NULL,  NULL};
    vec_hit *hits;
    size_t n;

    memset(live, 0xdb, sizeof live);
    // A run far up is brought down, so that it lies within the bitmap more often.
    src.offset = 0 - (vec_run_first(run) & ~(uint64_t)0xff);
    if (vec_run_first(run) < 256)
        src.offset = 0;
    known(vec_bm25(&a, &hits, &n));
    for (size_t i = 0; hits && i < n; i++)
        if (!(hits[i].key <= 0) || hits[i].row >= NROW ||
            !(live[hits[i].row / 64] >> hits[i].row % 64 & 1))
            abort();
    vec_free(hits);
}

/* Phrases, prefixes and a group, in all fields: the k best are the first of all, with their
 * scores. */
static void ask(const vec_run *run)
{
    static const vec_word word[] = {{"w", 1, 1, 0},  {"the", 3, 0, 0}, {"a", 1, 0, 0},
                                    {"w1", 2, 0, 0}, {"w", 1, 1, 1},   {"", 0, 1, 0}};
    static const vec_phrase phrase[] = {{0, 1, 7, 0, 1, 1, 0}, {1, 2, 7, 0, 1, 1, 0},
                                        {3, 2, 3, 1, 1, 1, 0}, {0, 1, 1, 0, 1, 2, 3},
                                        {3, 1, 1, 0, 1, 0, 3}, {1, 1, 1, 0, 1, 1, 0}};
    static const vec_op op[] = {{VEC_OP_ALL, 0}, {VEC_OP_PHRASE, 1}, {VEC_OP_NOT, 0}};
    static uint64_t live[NROW / 64];
    vec_ask q = {word, 6, phrase, 6, op, 3};
    vec_source src = {run, NULL, 0, 0};
    vec_bm25_args a = {.sources = &src, .nsource = 1, .ask = &q, .live = live, .nrow = NROW};
    vec_words *w;
    vec_hit *best;
    size_t n;
    double score;

    a.k1 = VEC_BM25_K1;
    a.b = VEC_BM25_B;
    memset(live, 0xdb, sizeof live);
    if (known(vec_words_new(&a, &w)) != VEC_OK)
        return;
    known(vec_words_top(w, 5, NULL, NULL, &best, &n));
    for (size_t i = 0; best && i < n; i++)
        if (best[i].row >= NROW || known(vec_words_score(w, &best[i].row, 1, &score)) == VEC_MISUSE)
            abort();
    vec_free(best);
    vec_words_free(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    vec_run *run;
    uint8_t *merged;
    size_t n;
    int good;

    vec_init();
    if (known(vec_run_open(data, size, &run)) != VEC_OK)
        return 0;
    good = known(vec_run_check(run)) == VEC_OK;
    search(run, 0);
    search(run, 1);
    ask(run);
    if (known(vec_run_merge(&run, 1, NULL, &merged, &n)) == VEC_OK) {
        vec_run *again;

        if (vec_run_open(merged, n, &again) != VEC_OK)
            abort();
        if (good && vec_run_check(again) != VEC_OK)
            abort();
        vec_run_close(again);
    } else if (good) {
        abort();
    }
    vec_free(merged);
    vec_run_close(run);
    return 0;
}
