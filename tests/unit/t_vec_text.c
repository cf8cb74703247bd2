/*
 * t_vec_text.c - the index in memory holds what was added, also after failures, and its image holds
 * the same
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

#define VEC_ALLOW_MALLOC
#include "t_alloc.h"
#include "t_corpus.h"
#include "vec_run.h"

enum { WORDS = 400 };

/* The positions of the posting that the cursor is at are those of the model. */
static void check_positions(const t_doc *d, int word, vec_cursor *c)
{
    int pos = -1;
    size_t at = 0;
    vec_buf got = {0};

    assert_int_equal(vec_cursor_positions(c, c->at, &got), VEC_OK);
    for (int i = 0; i < d->n; i++) {
        uint32_t p;

        pos += !d->colocated[i] || i == 0;
        if (d->word[i] != word)
            continue;
        if (at > 0) {
            memcpy(&p, got.p + at - 4, 4);
            if (p == (uint32_t)pos)
                continue;
        }
        assert_true(at + 4 <= got.n);
        memcpy(&p, got.p + at, 4);
        assert_int_equal(p, pos);
        at += 4;
    }
    assert_int_equal(at, got.n);
    vec_buf_free(&got);
}

/* The postings of a word are those of the model, walked block by block and by seeking. */
static void check_postings(const t_corpus *c, int word, const vec_ref *ref)
{
    vec_cursor *cur = vec_alloc(sizeof *cur), *jump = vec_alloc(sizeof *jump);
    uint32_t df = 0;
    int rc;

    assert_int_equal(vec_cursor_open(cur, ref, (uint32_t)c->n), VEC_OK);
    cur->n = cur->at = 0;
    for (int i = 0; i < c->n; i++) {
        int tf = t_doc_count(&c->doc[i], word);

        assert_int_equal(vec_cursor_open(jump, ref, (uint32_t)c->n), VEC_OK);
        rc = vec_cursor_seek(jump, (uint32_t)i);
        if (tf == 0) {
            assert_true(rc == 0 || (rc == 1 && jump->ord[jump->at] > (uint32_t)i));
            continue;
        }
        assert_int_equal(rc, 1);
        assert_int_equal(jump->ord[jump->at], i);
        check_positions(&c->doc[i], word, jump);
        assert_int_equal(vec_cursor_tf(jump, jump->at), tf);
        if (cur->at == cur->n)
            assert_int_equal(vec_cursor_next(cur), 1);
        assert_int_equal(cur->ord[cur->at], i);
        assert_int_equal(vec_cursor_tf(cur, cur->at), tf);
        cur->at++;
        df++;
    }
    assert_int_equal(cur->at, cur->n);
    assert_int_equal(vec_cursor_next(cur), 0);
    assert_int_equal(vec_cursor_next(cur), 0);
    assert_int_equal(ref->df, df);
    vec_free(cur);
    vec_free(jump);
}

static void check_rows(const t_corpus *c, const vec_part *p)
{
    uint64_t total = 0;

    assert_int_equal(p->nrow, c->n);
    for (int i = 0; i < c->n; i++) {
        assert_int_equal(p->first + vec_part_off(p, (uint32_t)i), c->doc[i].row);
        assert_int_equal(vec_part_len(p, (uint32_t)i), t_doc_length(&c->doc[i]));
        total += (uint64_t)t_doc_length(&c->doc[i]);
    }
    assert_int_equal(p->len_total, total);
}

static vec_text *text_of(const t_corpus *c)
{
    vec_text *t;

    assert_int_equal(vec_text_new(&t), VEC_OK);
    for (int i = 0; i < c->n; i++)
        assert_int_equal(t_corpus_add(c, i, 0, t), VEC_OK);
    assert_int_equal(vec_text_rows(t), c->n);
    return t;
}

/* Both forms of the index against the model. */
static void check_text(const t_corpus *c, const vec_text *t)
{
    char s[VEC_TOKEN_MAX];
    uint8_t *bytes, key[VEC_TERM_MAX];
    vec_part part;
    vec_run *run;
    vec_ref ref;
    size_t n;

    assert_int_equal(vec_text_image(t, &bytes, &n), VEC_OK);
    assert_int_equal(vec_run_open(bytes, n, &run), VEC_OK);
    assert_int_equal(vec_run_check(run), VEC_OK);
    assert_int_equal(vec_run_rows(run), c->n);
    assert_int_equal(vec_run_first(run), c->n ? c->doc[0].row : 0);
    assert_int_equal(vec_run_last(run), c->n ? c->doc[c->n - 1].row : 0);
    check_rows(c, &run->part);
    check_rows(c, vec_text_part(t, &part));
    for (int w = 0; w < WORDS + 20; w += w < 20 ? 1 : 13) {
        uint32_t len = vec_term_key(key, 0, s, t_word(w, s));

        vec_text_find(t, key, len, &ref);
        check_postings(c, w, &ref);
        assert_int_equal(vec_run_find(run, key, len, &ref), VEC_OK);
        check_postings(c, w, &ref);
    }
    vec_run_close(run);
    vec_free(bytes);
}

static void holds_what_was_added(void **state)
{
    static const int sizes[] = {0, 1, 2, 3, 17, 300, 1000};
    t_rng r = t_rng_start(91);

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int gaps = 1; gaps <= 5; gaps += 4) {
            t_corpus c = t_corpus_new(&r, sizes[i], WORDS, gaps, 0);
            vec_text *t = text_of(&c);

            check_text(&c, t);
            assert_true(vec_text_bytes(t) >= (uint64_t)c.n * 8);
            vec_text_free(t);
            t_corpus_free(&c);
        }
    }
}

/* Rows are any 64-bit numbers, as long as they ascend and lie close enough to each other. */
static void rows_ascend_within_the_limit(void **state)
{
    const uint64_t base = UINT64_MAX - UINT32_MAX, last = base + VEC_RUN_SPAN_MAX;
    uint8_t stream[8];
    size_t n = vec_token_put(stream, "w", 1, 0), size;
    uint8_t *bytes;
    vec_text *t;
    vec_run *run;

    (void)state;
    assert_int_equal(vec_text_new(&t), VEC_OK);
    assert_int_equal(vec_text_add(t, base, stream, n), VEC_OK);
    assert_int_equal(vec_text_add(t, base, stream, n), VEC_MISUSE);
    assert_int_equal(vec_text_add(t, base - 1, stream, n), VEC_MISUSE);
    assert_int_equal(vec_text_add(t, last + 1, stream, n), VEC_LIMIT);
    assert_int_equal(vec_text_add(t, last, stream, n), VEC_OK);
    assert_int_equal(vec_text_add(t, last, stream, n), VEC_MISUSE);
    assert_int_equal(vec_text_rows(t), 2);
    assert_int_equal(vec_text_image(t, &bytes, &size), VEC_OK);
    assert_int_equal(vec_run_open(bytes, size, &run), VEC_OK);
    assert_int_equal(vec_run_check(run), VEC_OK);
    assert_int_equal(vec_run_first(run), base);
    assert_int_equal(vec_run_last(run), last);
    vec_run_close(run);
    vec_free(bytes);
    vec_text_free(t);
    vec_text_free(NULL);
}

/* Broken streams between good rows leave no trace. */
static void a_bad_stream_leaves_the_row_out(void **state)
{
    t_rng r = t_rng_start(92);
    t_corpus c = t_corpus_new(&r, 60, WORDS, 3, 0);
    vec_text *t;

    (void)state;
    assert_int_equal(vec_text_new(&t), VEC_OK);
    for (int i = 0; i < c.n; i++) {
        int words[3] = {(int)t_rng_below(&r, WORDS), (int)t_rng_below(&r, WORDS), 4};
        size_t n;
        uint8_t *s = t_stream(words, NULL, 3, &n);

        assert_int_equal(vec_text_add(t, c.doc[i].row, s, n - 1), VEC_FORMAT);
        assert_int_equal(vec_text_rows(t), i);
        assert_int_equal(t_corpus_add(&c, i, 0, t), VEC_OK);
        free(s);
    }
    check_text(&c, t);
    vec_text_free(t);
    t_corpus_free(&c);
}

/* Every allocation fails at least once, and the row is tried again: what was had is kept, so that
 * each second try gets one allocation further. */
static void want_of_memory_leaves_the_row_out(void **state)
{
    t_rng r = t_rng_start(93);
    t_corpus c = t_corpus_new(&r, 2500, WORDS, 3, 0);
    t_alloc a = {0};
    vec_allocator hook = {t_alloc_get, t_alloc_resize, t_alloc_release, &a};
    long failed = 0;
    vec_text *t;

    (void)state;
    vec_set_allocator(&hook);
    a.fail_at = 1;
    assert_int_equal(vec_text_new(&t), VEC_NOMEM);
    assert_null(t);
    assert_int_equal(vec_text_new(&t), VEC_OK);
    for (int i = 0; i < c.n; i++) {
        long tries = 0;
        int rc;

        do {
            a.count = 0;
            a.fail_at = 1 + tries++ % 2;
            rc = t_corpus_add(&c, i, 0, t);
            assert_int_equal(vec_text_rows(t), i + (rc == VEC_OK));
            failed += rc == VEC_NOMEM;
        } while (rc == VEC_NOMEM);
        assert_int_equal(rc, VEC_OK);
    }
    assert_true(failed > 20);
    a.fail_at = 0;
    check_text(&c, t);
    vec_text_free(t);
    vec_set_allocator(NULL);
    assert_int_equal(a.live, 0);
    t_corpus_free(&c);
}

static void want_of_memory_makes_no_image(void **state)
{
    t_rng r = t_rng_start(94);
    t_corpus c = t_corpus_new(&r, 300, WORDS, 3, 0);
    vec_text *t = text_of(&c);

    (void)state;
    for (long fail = 1;; fail++) {
        t_alloc a = {.fail_at = fail};
        vec_allocator hook = {t_alloc_get, t_alloc_resize, t_alloc_release, &a};
        uint8_t *bytes;
        size_t n;
        int rc;

        vec_set_allocator(&hook);
        rc = vec_text_image(t, &bytes, &n);
        assert_int_equal(bytes != NULL, rc == VEC_OK);
        assert_int_equal(n != 0, rc == VEC_OK);
        vec_free(bytes);
        vec_set_allocator(NULL);
        assert_int_equal(a.live, 0);
        if (a.count < fail) {
            assert_int_equal(rc, VEC_OK);
            break;
        }
        assert_int_equal(rc, VEC_NOMEM);
    }
    vec_text_free(t);
    t_corpus_free(&c);
}

/* More words than the first hash table holds, several times over. */
static void many_words(void **state)
{
    enum { N = 30000 };
    uint8_t stream[32];
    char s[16];
    vec_text *t;

    (void)state;
    assert_int_equal(vec_text_new(&t), VEC_OK);
    for (int i = 0; i < N; i++) {
        uint32_t len = (uint32_t)snprintf(s, sizeof s, "word%d", i);
        size_t n = vec_token_put(stream, s, len, 0);

        assert_int_equal(vec_text_add(t, (uint64_t)i, stream, n), VEC_OK);
    }
    for (int i = 0; i < N + 50; i++) {
        uint32_t len = (uint32_t)snprintf(s, sizeof s, "word%d", i);
        vec_ref ref;

        vec_text_find(t, (const uint8_t *)s, len, &ref);
        assert_int_equal(ref.df, i < N);
        if (i < N)
            assert_int_equal(ref.chunk->post[0].ord, i);
    }
    vec_text_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holds_what_was_added),
        cmocka_unit_test(rows_ascend_within_the_limit),
        cmocka_unit_test(a_bad_stream_leaves_the_row_out),
        cmocka_unit_test(want_of_memory_leaves_the_row_out),
        cmocka_unit_test(want_of_memory_makes_no_image),
        cmocka_unit_test(many_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
