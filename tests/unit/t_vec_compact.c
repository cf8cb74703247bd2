/*
 * t_vec_compact.c - merging runs with renumbered rows gives the image that was built from the rows
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "vec.h"

enum { ROWS = 900, RUNS = 5, TOKENS = 8 };

static uint64_t state = 0x9E3779B97F4A7C15u;

static uint64_t next(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

typedef struct row {
    uint8_t stream[TOKENS * 16];
    size_t n; /* 0: a row without text */
} row;

static void fill(row *r)
{
    int count = next() % 4 ? (int)(next() % TOKENS) + 1 : 0;

    r->n = 0;
    for (int i = 0; i < count; i++) {
        char word[8];
        int n = snprintf(word, sizeof word, "w%u", (unsigned)(next() % 40));

        r->n += vec_token_put(r->stream + r->n, word, (uint32_t)n, 0);
    }
}

static void same_image(const row *rows, const uint64_t *live, const uint64_t *from, int renumber)
{
    vec_run *run[RUNS];
    uint8_t *image[RUNS], *merged, *built;
    size_t n[RUNS], nmerged, nbuilt;
    uint64_t number = 0;
    vec_text *t;

    for (int k = 0; k < RUNS; k++) {
        assert_int_equal(vec_text_new(&t), VEC_OK);
        for (uint64_t r = from[k]; r < from[k + 1]; r++)
            if (rows[r].n)
                assert_int_equal(vec_text_add(t, r, rows[r].stream, rows[r].n), VEC_OK);
        assert_int_equal(vec_text_image(t, &image[k], &n[k]), VEC_OK);
        vec_text_free(t);
        assert_int_equal(vec_run_open(image[k], n[k], &run[k]), VEC_OK);
        for (uint64_t i = 0, last = 0; i < vec_run_rows(run[k]); i++) {
            uint64_t at;

            assert_int_equal(vec_run_row(run[k], i, &at), VEC_OK);
            assert_true(at >= from[k] && at < from[k + 1] && rows[at].n && (i == 0 || at > last));
            last = at;
        }
    }
    assert_int_equal(vec_text_new(&t), VEC_OK);
    for (uint64_t r = 0; r < ROWS; r++) {
        if (!(live[r >> 6] >> (r & 63) & 1))
            continue;
        if (rows[r].n)
            assert_int_equal(vec_text_add(t, renumber ? number : r, rows[r].stream, rows[r].n),
                             VEC_OK);
        number++;
    }
    assert_int_equal(vec_text_image(t, &built, &nbuilt), VEC_OK);
    vec_text_free(t);
    assert_int_equal(
        (renumber ? vec_run_compact : vec_run_merge)(run, RUNS, live, &merged, &nmerged), VEC_OK);
    assert_int_equal(nmerged, nbuilt);
    assert_memory_equal(merged, built, nbuilt);
    vec_free(merged);
    vec_free(built);
    for (int k = 0; k < RUNS; k++) {
        vec_run_close(run[k]);
        vec_free(image[k]);
    }
}

static void compacted(void **ctx)
{
    static row rows[ROWS];
    uint64_t live[ROWS / 64 + 1], from[RUNS + 1] = {0, 100, 101, 400, 777, ROWS};

    (void)ctx;
    for (int round = 0; round < 60; round++) {
        memset(live, 0, sizeof live);
        for (uint64_t r = 0; r < ROWS; r++) {
            fill(&rows[r]);
            if ((int)(next() % 60) >= round)
                live[r >> 6] |= (uint64_t)1 << (r & 63);
        }
        same_image(rows, live, from, 0);
        same_image(rows, live, from, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(compacted)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
