/*
 * t_vec_bulk.c - an image of many rows at once is byte for byte the one that an index in memory
 * makes, for words of all lengths, bytes and beginnings
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "t_alloc.h"
#include "t_corpus.h"
#include "vec_limits.h"

enum { WORDS = 300, ROW_BYTES = 1 << 16 };

typedef struct pair {
    vec_text *text;
    vec_bulk *bulk;
} pair;

static pair pair_new(void)
{
    pair p;

    assert_int_equal(vec_text_new(&p.text), VEC_OK);
    assert_int_equal(vec_bulk_new(&p.bulk), VEC_OK);
    return p;
}

static void pair_add(pair *p, uint64_t row, const uint8_t *stream, size_t n)
{
    uint8_t *copy = malloc(n ? n : 1); // of its very size, so that reading past it is seen

    assert_non_null(copy);
    memcpy(copy, stream, n);
    assert_int_equal(vec_text_add(p->text, row, copy, n), VEC_OK);
    assert_int_equal(vec_bulk_add(p->bulk, row, copy, n), VEC_OK);
    free(copy);
}

/* Compares the images and frees both. */
static void pair_end(pair *p)
{
    uint8_t *want, *got;
    size_t nwant, ngot;
    vec_run *run;

    assert_int_equal(vec_text_image(p->text, &want, &nwant), VEC_OK);
    assert_int_equal(vec_bulk_image(p->bulk, &got, &ngot), VEC_OK);
    assert_int_equal(ngot, nwant);
    assert_memory_equal(got, want, nwant);
    assert_int_equal(vec_run_open(got, ngot, &run), VEC_OK);
    assert_int_equal(vec_run_check(run), VEC_OK);
    vec_run_close(run);
    vec_free(want);
    vec_free(got);
    vec_text_free(p->text);
    vec_bulk_free(p->bulk);
}

static void images_are_the_same(void **state)
{
    static const int sizes[] = {0, 1, 2, 3, 17, 300, 1000};
    t_rng r = t_rng_start(191);

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int gaps = 1; gaps <= 5; gaps += 4) {
            t_corpus c = t_corpus_new(&r, sizes[i], WORDS, gaps, 0);
            pair p = pair_new();

            for (int k = 0; k < c.n; k++) {
                size_t n;
                uint8_t *s = t_stream(c.doc[k].word, c.doc[k].colocated, c.doc[k].n, &n);

                pair_add(&p, c.doc[k].row, s, n);
                free(s);
            }
            pair_end(&p);
            t_corpus_free(&c);
        }
    }
}

/* A token of up to 40 bytes out of few different ones, now and then of up to the most. */
static uint32_t any_token(t_rng *r, char *out)
{
    static const char bytes[] = {0, 1, 2, 3, 'a', '\xff'};
    int many = t_rng_below(r, 50) == 0;
    uint32_t n = (uint32_t)t_rng_below(r, many ? VEC_TOKEN_MAX + 1 : t_rng_below(r, 3) ? 4 : 41);
    int same = t_rng_below(r, 4) == 0; // beginnings that only the end tells apart

    for (uint32_t i = 0; i < n; i++)
        out[i] = same && i + 2 < n ? 'q' : bytes[t_rng_below(r, sizeof bytes)];
    return n;
}

static void any_bytes_in_any_field(void **state)
{
    uint8_t *stream = malloc(ROW_BYTES);
    char token[VEC_TOKEN_MAX];
    t_rng r = t_rng_start(192);

    (void)state;
    for (int round = 0; round < 12; round++) {
        uint64_t row = t_rng_below(&r, 1000);
        pair p = pair_new();

        for (int i = 0; i < 30 * round; i++) {
            size_t n = 0;

            for (uint64_t k = t_rng_below(&r, 50), fields = 0; k > 0; k--) {
                uint32_t len = any_token(&r, token);
                int colocated = t_rng_below(&r, 3) == 0;

                if (len == 0 && colocated && ++fields == VEC_FIELDS)
                    break;
                n += vec_token_put(stream + n, token, len, colocated);
            }
            pair_add(&p, row, stream, n);
            row += 1 + t_rng_below(&r, 3);
        }
        pair_end(&p);
    }
    free(stream);
}

/* More words than the first hash table holds, short ones and ones of 20 bytes that begin alike. */
static void many_words(void **state)
{
    pair p = pair_new();
    uint8_t stream[64];
    char s[32];

    (void)state;
    for (int i = 0; i < 20000; i++) {
        size_t n = vec_token_put(stream, s, (uint32_t)sprintf(s, "%d", i * 7919 % 20000), 0);

        n += vec_token_put(stream + n, s, (uint32_t)sprintf(s, "the same start %05d", i / 2), 0);
        pair_add(&p, (uint64_t)i, stream, n);
    }
    pair_end(&p);
}

/* After a row that failed there is no image. */
static void a_failed_row_ends_it(void **state)
{
    const uint64_t base = UINT64_MAX - UINT32_MAX;
    uint8_t stream[16], *bytes;
    size_t n = vec_token_put(stream, "word", 4, 0), size;
    struct {
        uint64_t row;
        size_t n;
        int code;
    } bad[] = {{base + 1, n - 1, VEC_FORMAT},
               {base, n, VEC_MISUSE},
               {base - 1, n, VEC_MISUSE},
               {base + VEC_RUN_SPAN_MAX + 1, n, VEC_LIMIT}};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        vec_bulk *b;

        assert_int_equal(vec_bulk_new(&b), VEC_OK);
        assert_int_equal(vec_bulk_add(b, base, stream, n), VEC_OK);
        assert_int_equal(vec_bulk_add(b, bad[i].row, stream, bad[i].n), bad[i].code);
        assert_int_equal(vec_bulk_add(b, base + 9, stream, n), VEC_MISUSE);
        assert_int_equal(vec_bulk_image(b, &bytes, &size), VEC_MISUSE);
        assert_null(bytes);
        vec_bulk_free(b);
    }
    vec_bulk_free(NULL);
}

/* Each allocation fails in turn. */
static void want_of_memory(void **state)
{
    t_rng r = t_rng_start(193);
    t_corpus c = t_corpus_new(&r, 300, WORDS, 3, 0);

    (void)state;
    for (long fail = 1;; fail++) {
        t_alloc a = {.fail_at = fail};
        vec_allocator hook = {t_alloc_get, t_alloc_resize, t_alloc_release, &a};
        uint8_t *bytes = NULL;
        vec_bulk *b;
        size_t n = 0;
        int rc;

        vec_set_allocator(&hook);
        rc = vec_bulk_new(&b);
        for (int i = 0; i < c.n && !rc; i++) {
            uint8_t *s = t_stream(c.doc[i].word, c.doc[i].colocated, c.doc[i].n, &n);

            rc = vec_bulk_add(b, c.doc[i].row, s, n);
            free(s);
        }
        rc = rc ? rc : vec_bulk_image(b, &bytes, &n);
        assert_int_equal(bytes != NULL, rc == VEC_OK);
        vec_free(bytes);
        vec_bulk_free(b);
        vec_set_allocator(NULL);
        assert_int_equal(a.live, 0);
        assert_int_equal(rc, a.count < fail ? VEC_OK : VEC_NOMEM);
        if (!rc)
            break;
    }
    t_corpus_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_are_the_same), cmocka_unit_test(any_bytes_in_any_field),
        cmocka_unit_test(many_words),          cmocka_unit_test(a_failed_row_ends_it),
        cmocka_unit_test(want_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
