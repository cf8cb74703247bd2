/*
 * t_vec_bm25.c - scores are those of the formula, however rows are spread over memory and runs, and
 * whoever of them is dead
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
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

enum { SOURCES_MAX = 9, WORDS = 120 };

typedef struct spread {
    vec_source src[SOURCES_MAX];
    vec_text *text[SOURCES_MAX];
    vec_run *run[SOURCES_MAX];
    uint8_t *bytes[SOURCES_MAX];
    size_t n;
} spread;

/* Rows from..to-1 of the corpus as one source, in memory or as a run. */
static void add_source(spread *s, const t_corpus *c, int from, int to, int as_run, uint64_t offset)
{
    size_t k = s->n++, n;
    vec_text *t;

    s->src[k] = (vec_source){.offset = offset, .dense = 1};
    assert_int_equal(vec_text_new(&t), VEC_OK);
    for (int i = from; i < to; i++) {
        assert_int_equal(t_corpus_add(c, i, offset, t), VEC_OK);
        s->src[k].dense &= c->doc[i].live;
    }
    if (!as_run) {
        s->text[k] = t;
        s->src[k].text = t;
        return;
    }
    assert_int_equal(vec_text_image(t, &s->bytes[k], &n), VEC_OK);
    assert_int_equal(vec_run_open(s->bytes[k], n, &s->run[k]), VEC_OK);
    s->src[k].run = s->run[k];
    vec_text_free(t);
}

/* Random cuts, forms and offsets; dead rows that a flush would leave out stay in. */
static spread spread_new(const t_corpus *c, t_rng *r)
{
    size_t parts = 1 + t_rng_below(r, SOURCES_MAX);
    spread s = {.n = 0};
    int at = 0;

    for (size_t i = 0; i < parts; i++) {
        int to = i + 1 == parts ? c->n : at + (int)t_rng_below(r, (uint64_t)(c->n - at) / 2 + 1);
        uint64_t offset = c->n > at ? t_rng_below(r, c->doc[at].row + 1) : 0;

        add_source(&s, c, at, to, (int)t_rng_below(r, 2), offset);
        if (t_rng_below(r, 4) == 0)
            s.src[s.n - 1].dense = 0; // also where it could be 1
        at = to;
    }
    return s;
}

static void spread_free(spread *s)
{
    for (size_t i = 0; i < s->n; i++) {
        vec_text_free(s->text[i]);
        vec_run_close(s->run[i]);
        vec_free(s->bytes[i]);
    }
}

typedef struct question {
    int word[T_QUERY_WORDS];
    int n;
    double k1, b;
    uint64_t *filter;
} question;

static question question_new(const t_corpus *c, t_rng *r)
{
    question q = {.n = (int)t_rng_below(r, T_QUERY_WORDS), .k1 = VEC_BM25_K1, .b = VEC_BM25_B};

    for (int i = 0; i < q.n; i++) // some words are in no row, some are repeated
        q.word[i] = i && t_rng_below(r, 6) == 0 ? q.word[0] : t_any_word(r, WORDS + 10);
    if (t_rng_below(r, 3) == 0) {
        q.k1 = t_rng_below(r, 3) ? t_rng_unit(r) * 3 : 0;
        q.b = t_rng_below(r, 3) ? t_rng_unit(r) : 1;
    }
    if (t_rng_below(r, 2)) {
        double share = t_rng_unit(r);

        q.filter = calloc(c->nrow / 64 + 1, sizeof *q.filter);
        for (uint64_t row = 0; row < c->nrow; row++)
            if (t_rng_unit(r) < share)
                q.filter[row / 64] |= (uint64_t)1 << row % 64;
    }
    return q;
}

static int ask(const t_corpus *c, const spread *s, const question *q, vec_hit **hits, size_t *n)
{
    vec_bm25_args a = {s->src,  s->n,  NULL, 0,    c->live, q->filter,
                       c->nrow, q->k1, q->b, NULL, NULL,    NULL};
    uint8_t *query = t_stream(q->word, NULL, q->n, &a.nquery);
    int rc;

    a.query = query;
    rc = vec_bm25(&a, hits, n);
    free(query);
    return rc;
}

static int by_row(const void *a, const void *b)
{
    const vec_hit *x = a, *y = b;

    return (x->row > y->row) - (x->row < y->row);
}

/* Asks, and compares with the model; the hits, by row, are the caller's. */
static vec_hit *check(const t_corpus *c, const spread *s, const question *q, size_t *n)
{
    double *score = malloc(((size_t)c->n + 1) * sizeof *score);
    vec_hit *hits;
    size_t at = 0;

    t_bm25(c, q->word, q->n, q->k1, q->b, score);
    assert_int_equal(ask(c, s, q, &hits, n), VEC_OK);
    qsort(hits, *n, sizeof *hits, by_row);
    for (int i = 0; i < c->n; i++) {
        const t_doc *d = &c->doc[i];
        double want = d->live ? score[i] : 0;

        if (q->filter && !(q->filter[d->row / 64] >> d->row % 64 & 1))
            want = 0;
        if (want == 0)
            continue;
        assert_true(at < *n);
        assert_int_equal(hits[at].row, d->row);
        assert_int_equal(hits[at].id, 0);
        assert_true(fabs(hits[at].key + want) <= 1e-12 * (1 + want));
        at++;
    }
    assert_int_equal(at, *n);
    free(score);
    return hits;
}

static void scores_do_not_depend_on_the_spread(void **state)
{
    t_rng r = t_rng_start(121);

    (void)state;
    for (int round = 0; round < 60; round++) {
        double dead = round % 3 == 0 ? 0 : t_rng_unit(&r);
        t_corpus c = t_corpus_new(&r, (int)t_rng_below(&r, 250), WORDS, 1 + round % 4, dead);

        for (int k = 0; k < 4; k++) {
            question q = question_new(&c, &r);
            spread one = {.n = 0};
            size_t n, other_n;
            vec_hit *hits, *other;

            add_source(&one, &c, 0, c.n, k & 1, 0);
            hits = check(&c, &one, &q, &n);
            for (int cuts = 0; cuts < 3; cuts++) {
                spread s = spread_new(&c, &r);

                other = check(&c, &s, &q, &other_n);
                assert_int_equal(other_n, n);
                for (size_t i = 0; i < n; i++) // not only close: the same
                    assert_true(other[i].key == hits[i].key);
                vec_free(other);
                spread_free(&s);
            }
            vec_free(hits);
            free(q.filter);
            spread_free(&one);
        }
        t_corpus_free(&c);
    }
}

/* More rows than a window has, with words that leave windows empty. */
static void windows_join(void **state)
{
    enum { N = 20000 };
    t_corpus c = {.n = N, .doc = calloc(N, sizeof *c.doc)};
    question q = {.word = {1, 2, 4, 4}, .n = 4, .k1 = VEC_BM25_K1, .b = VEC_BM25_B};

    (void)state;
    c.nrow = N + N / 2 + 1;
    c.live = calloc(c.nrow / 64 + 1, sizeof *c.live);
    for (int i = 0; i < N; i++) {
        t_doc *d = &c.doc[i];

        d->row = (uint64_t)i + (uint64_t)i / 2;
        d->live = i % 5 != 0;
        if (d->live)
            c.live[d->row / 64] |= (uint64_t)1 << d->row % 64;
        d->word[d->n++] = 9;
        if (i % 9000 == 8001)
            d->word[d->n++] = 1;
        if (i > 4090 && i < 4100)
            d->word[d->n++] = 2;
        if (i == N - 1 || i == 8191 || i == 8192 || i == 4096)
            d->word[d->n++] = 4;
    }
    for (int form = 0; form < 2; form++) {
        spread s = {.n = 0};
        size_t n;

        add_source(&s, &c, 0, N, form, 0);
        vec_free(check(&c, &s, &q, &n));
        assert_in_range(n, 9, 15);
        q.filter = calloc(c.nrow / 64 + 1, sizeof *q.filter);
        q.filter[c.doc[8192].row / 64] = UINT64_MAX;
        vec_free(check(&c, &s, &q, &n));
        assert_in_range(n, 1, 2);
        free(q.filter);
        q.filter = NULL;
        spread_free(&s);
    }
    t_corpus_free(&c);
}

/* n rows of given lengths, "w" at the front and every 500 words from then on. */
static vec_text *long_text(const int *lengths, int n, double *total)
{
    uint8_t *stream = malloc(2 * 70001);
    vec_text *t;

    *total = 0;
    assert_int_equal(vec_text_new(&t), VEC_OK);
    for (int i = 0; i < n; i++) {
        size_t bytes = vec_token_put(stream, "w", 1, 0);

        for (int k = 1; k < lengths[i]; k++)
            bytes += vec_token_put(stream + bytes, k % 500 == 1 ? "w" : "v", 1, 0);
        assert_int_equal(vec_text_add(t, (uint64_t)i, stream, bytes), VEC_OK);
        *total += lengths[i];
    }
    free(stream);
    return t;
}

/* Lengths past the table of factors, kept in one, two and four bytes. */
static void long_rows(void **state)
{
    static const int lengths[] = {1, 30, 255, 1022, 1023, 1024, 1025, 70000};
    static const int counts[] = {3, 7, 8};
    static const unsigned sizes[] = {1, 2, 4};

    (void)state;
    for (int round = 0; round < 6; round++) {
        int rows = counts[round / 2];
        uint64_t live = ((uint64_t)1 << rows) - 1;
        double total, idf = log(1 + 0.5 / (rows + 0.5));
        vec_source src = {.dense = 1};
        const uint8_t *query = (const uint8_t *)"\x02w";
        vec_bm25_args a = {&src,           1,   query, 2,    &live, NULL,
                           (uint64_t)rows, 1.2, 0.75,  NULL, NULL,  NULL};
        vec_text *t = long_text(lengths, rows, &total);
        uint8_t *bytes;
        vec_run *run;
        vec_hit *hits;
        size_t n;

        assert_int_equal(vec_text_image(t, &bytes, &n), VEC_OK);
        assert_int_equal(vec_run_open(bytes, n, &run), VEC_OK);
        assert_int_equal(run->part.len_size, sizes[round / 2]);
        src.run = round % 2 ? run : NULL;
        src.text = round % 2 ? NULL : t;
        assert_int_equal(vec_bm25(&a, &hits, &n), VEC_OK);
        assert_int_equal(n, rows);
        for (size_t i = 0; i < n; i++) {
            double dl = lengths[hits[i].row], tf = 1 + floor((dl + 498) / 500);
            double k = 1.2 * (1 - 0.75 + 0.75 * dl / (total / rows));

            assert_true(fabs(-hits[i].key - idf * tf * 2.2 / (tf + k)) < 1e-12);
        }
        vec_free(hits);
        vec_run_close(run);
        vec_free(bytes);
        vec_text_free(t);
    }
}

static void refused(const vec_bm25_args *a, int want)
{
    vec_hit *hits = (vec_hit *)&want;
    size_t n = 1;

    assert_int_equal(vec_bm25(a, &hits, &n), want);
    assert_null(hits);
    assert_int_equal(n, 0);
}

static void misuse_is_refused(void **state)
{
    static const double bad[][2] = {{-1, 0.5}, {NAN, 0.5}, {INFINITY, 0.5},
                                    {1, -0.1}, {1, 1.1},   {1, NAN}};
    t_rng r = t_rng_start(122);
    t_corpus c = t_corpus_new(&r, 100, WORDS, 1, 0);
    const uint8_t *query = (const uint8_t *)"\x04w0\x04w1";
    spread s = {.n = 0};
    vec_source src[2];
    uint64_t second[3] = {UINT64_MAX << 50, UINT64_MAX, 0};
    vec_bm25_args a = {src, 2, query, 6, c.live, NULL, c.nrow, 1.2, 0.75, NULL, NULL, NULL};

    (void)state;
    add_source(&s, &c, 0, 50, 0, 0);
    add_source(&s, &c, 50, 100, 1, 0);
    memcpy(src, s.src, sizeof src);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        a.k1 = bad[i][0];
        a.b = bad[i][1];
        refused(&a, VEC_MISUSE);
    }
    a.k1 = 1.2;
    a.b = 0.75;
    a.nrow = c.doc[99].row; // the last row does not fit
    refused(&a, VEC_MISUSE);
    a.nrow = c.nrow;
    src[1].offset = UINT64_MAX - 3;
    refused(&a, VEC_MISUSE);
    src[1].offset = 0;
    src[0].run = src[1].run; // both
    refused(&a, VEC_MISUSE);
    src[0].run = NULL;
    src[0].text = NULL; // neither
    refused(&a, VEC_MISUSE);
    src[0].text = s.text[0];
    src[0] = src[1]; // the same rows twice
    a.query = (const uint8_t *)"\x04w0\x04w1\x04w2\x04w4\x04w6\x04w8\x04w9";
    a.nquery = 21;
    a.live = second;
    refused(&a, VEC_MISUSE);
    src[0] = s.src[0];
    a.query = query;
    a.nquery = 6;
    a.live = NULL;
    refused(&a, VEC_MISUSE);
    a.live = c.live;
    a.nquery = 4;
    refused(&a, VEC_FORMAT);
    spread_free(&s);
    t_corpus_free(&c);
}

static int stop_at(void *ctx)
{
    return --*(int *)ctx == 0;
}

/* It may stop at every question it asks, and asks several times. */
static void search_stops_when_asked(void **state)
{
    t_rng r = t_rng_start(124);
    t_corpus c = t_corpus_new(&r, 12000, WORDS, 1, 0);
    int left = 0, asked;
    spread s = {.n = 0};
    vec_bm25_args a = {
        s.src, 1,   (const uint8_t *)"\x04w0", 3, c.live, NULL, c.nrow, 1.2, 0.75, stop_at,
        &left, NULL};
    vec_hit *hits;
    size_t n;

    (void)state;
    add_source(&s, &c, 0, c.n, 1, 0);
    assert_int_equal(vec_bm25(&a, &hits, &n), VEC_OK);
    vec_free(hits);
    asked = -left;
    assert_in_range(asked, 4, 10);
    for (int i = 1; i <= asked; i++) {
        left = i;
        refused(&a, VEC_ABORT);
    }
    spread_free(&s);
    t_corpus_free(&c);
}

static void nothing_to_search(void **state)
{
    vec_bm25_args a = {NULL, 0,   (const uint8_t *)"\x02w", 2, NULL, NULL, 0, 1.2, 0.75, NULL,
                       NULL, NULL};
    vec_hit *hits;
    size_t n;

    (void)state;
    assert_int_equal(vec_bm25(&a, &hits, &n), VEC_OK);
    assert_int_equal(n, 0);
    vec_free(hits);
    a.nquery = 0;
    assert_int_equal(vec_bm25(&a, &hits, &n), VEC_OK);
    vec_free(hits);
}

/* A query with more distinct words than the limit, and one with as many. */
static void the_query_is_limited(void **state)
{
    size_t most = VEC_QUERY_TERMS_MAX, n = 0, count;
    uint8_t *query = malloc((most + 2) * 5);
    vec_bm25_args a = {NULL, 0, query, 0, NULL, NULL, 0, 1.2, 0.75, NULL, NULL, NULL};
    vec_hit *hits;

    (void)state;
    for (size_t i = 0; i <= most; i++) {
        char word[3] = {(char)(i & 0xff), (char)(i >> 8 & 0xff), (char)(i >> 16)};

        n += vec_token_put(query + n, word, 3, 0);
    }
    a.nquery = n;
    assert_int_equal(vec_bm25(&a, &hits, &count), VEC_LIMIT);
    a.nquery = n - 4;
    assert_int_equal(vec_bm25(&a, &hits, &count), VEC_OK);
    vec_free(hits);
    free(query);
}

static void want_of_memory(void **state)
{
    t_rng r = t_rng_start(123);
    t_corpus c = t_corpus_new(&r, 150, WORDS, 2, 0.2);
    spread s = spread_new(&c, &r);
    question q = {.word = {0, 1, 2, 3}, .n = 4, .k1 = 1.2, .b = 0.75};

    (void)state;
    for (long fail = 1;; fail++) {
        t_alloc a = {.fail_at = fail};
        vec_allocator hook = {t_alloc_get, t_alloc_resize, t_alloc_release, &a};
        vec_hit *hits;
        size_t n;
        int rc;

        vec_set_allocator(&hook);
        rc = ask(&c, &s, &q, &hits, &n);
        assert_int_equal(hits != NULL, rc == VEC_OK);
        vec_free(hits);
        vec_set_allocator(NULL);
        assert_int_equal(a.live, 0);
        if (a.count < fail) {
            assert_int_equal(rc, VEC_OK);
            break;
        }
        assert_int_equal(rc, VEC_NOMEM);
    }
    spread_free(&s);
    t_corpus_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_do_not_depend_on_the_spread),
        cmocka_unit_test(windows_join),
        cmocka_unit_test(long_rows),
        cmocka_unit_test(misuse_is_refused),
        cmocka_unit_test(search_stops_when_asked),
        cmocka_unit_test(nothing_to_search),
        cmocka_unit_test(the_query_is_limited),
        cmocka_unit_test(want_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
