/*
 * t_vec_words.c - phrases, prefixes, NEAR, fields and operators against counting; the k best and
 * the scores of given rows against all hits; all of it over random sources with dead rows and
 * filters
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
#include "t_rng.h"
#include "vec_run.h"

enum { FIELDS = VEC_FIELDS, LEN = 14, WORDS = 14, SOURCES = 5, PHRASES = 5, SLOTS = 3 };

/* One letter or two, so that prefixes have something to find. */
static const char *const words[WORDS] = {"a",  "b",  "c", "ab", "ac", "ba", "bc",
                                         "ca", "cb", "d", "da", "e",  "f",  "\1z"};

typedef struct doc {
    uint64_t row;
    int live, n[FIELDS];
    int word[FIELDS][LEN];
} doc;

typedef struct world {
    int n;
    uint64_t nrow;
    doc *docs;
    uint64_t *live, *filter;
    vec_source src[SOURCES];
    vec_text *text[SOURCES];
    vec_run *run[SOURCES];
    uint8_t *bytes[SOURCES];
    size_t nsrc;
} world;

static int bit(const uint64_t *bits, uint64_t i)
{
    return (int)(bits[i / 64] >> i % 64 & 1);
}

static void add_doc(vec_text *t, const doc *d)
{
    uint8_t stream[FIELDS * LEN * 8];
    size_t n = 0;
    int breaks = 0;

    for (int f = 0; f < FIELDS; f++, breaks++) {
        for (int i = 0; i < d->n[f]; i++) {
            for (; breaks > 0; breaks--)
                n += vec_token_put(stream + n, "", 0, 1);
            n += vec_token_put(stream + n, words[d->word[f][i]],
                               (uint32_t)strlen(words[d->word[f][i]]), 0);
        }
    }
    assert_int_equal(vec_text_add(t, d->row, stream, n), VEC_OK);
}

static void add_sources(world *w, t_rng *r)
{
    size_t n;

    w->nsrc = 1 + t_rng_below(r, SOURCES);
    for (size_t s = 0, at = 0; s < w->nsrc; s++) {
        size_t to = s + 1 == w->nsrc ? (size_t)w->n : at + t_rng_below(r, (size_t)w->n - at + 1);
        vec_text *t;

        w->src[s].dense = 1;
        assert_int_equal(vec_text_new(&t), VEC_OK);
        for (; at < to; at++) {
            add_doc(t, &w->docs[at]);
            w->src[s].dense &= w->docs[at].live;
        }
        w->text[s] = t;
        if (t_rng_below(r, 2)) {
            w->src[s].text = t;
            continue;
        }
        assert_int_equal(vec_text_image(t, &w->bytes[s], &n), VEC_OK);
        assert_int_equal(vec_run_open(w->bytes[s], n, &w->run[s]), VEC_OK);
        assert_int_equal(vec_run_check(w->run[s]), VEC_OK);
        w->src[s].run = w->run[s];
    }
}

static world world_new(t_rng *r, int n, double dead)
{
    world w = {.n = n, .docs = calloc((size_t)n + 1, sizeof *w.docs)};
    int gap = 1 + (int)t_rng_below(r, 2), most = 2 + (int)t_rng_below(r, LEN - 1);

    for (int i = 0; i < n; i++) {
        doc *d = &w.docs[i];

        d->row = w.nrow;
        w.nrow += 1 + t_rng_below(r, (uint64_t)gap);
        d->live = t_rng_unit(r) >= dead;
        for (int f = 0; f < FIELDS; f++) {
            d->n[f] = (int)t_rng_below(r, (uint64_t)(f ? 3 : most));
            for (int k = 0; k < d->n[f]; k++) {
                double u = t_rng_unit(r);

                d->word[f][k] = (int)(u * u * WORDS);
            }
        }
    }
    w.live = calloc(w.nrow / 64 + 1, sizeof *w.live);
    w.filter = calloc(w.nrow / 64 + 1, sizeof *w.filter);
    for (int i = 0; i < n; i++) {
        uint64_t b = (uint64_t)1 << w.docs[i].row % 64;

        w.live[w.docs[i].row / 64] |= w.docs[i].live ? b : 0;
        w.filter[w.docs[i].row / 64] |= t_rng_below(r, 3) ? b : 0;
    }
    add_sources(&w, r);
    return w;
}

static void world_free(world *w)
{
    for (size_t i = 0; i < w->nsrc; i++) {
        vec_run_close(w->run[i]);
        vec_free(w->bytes[i]);
        vec_text_free(w->text[i]);
    }
    free(w->docs);
    free(w->live);
    free(w->filter);
}

/* ---------------------------------------------------------------------------------- questions */

typedef struct question {
    vec_word word[PHRASES * SLOTS];
    vec_phrase phrase[PHRASES];
    vec_op op[2 * PHRASES];
    vec_ask ask;
} question;

static question question_new(t_rng *r, int simple)
{
    question q = {.ask = {0}};
    size_t nphrase = 1 + t_rng_below(r, PHRASES);

    for (size_t i = 0; i < nphrase; i++) {
        vec_phrase *p = &q.phrase[i];

        p->word = (uint32_t)q.ask.nword;
        p->nword = simple || t_rng_below(r, 2) ? 1 : (uint32_t)t_rng_below(r, SLOTS + 1);
        p->fields = simple ? 1 : (unsigned)t_rng_below(r, 8);
        p->initial = !simple && t_rng_below(r, 8) == 0;
        p->weight = simple || t_rng_below(r, 5) ? 1 : t_rng_unit(r);
        p->group = 1;
        for (uint32_t k = 0; k < p->nword; k++) {
            const char *s = words[t_rng_below(r, WORDS)];

            q.word[q.ask.nword++] = (vec_word){s, (uint32_t)strlen(s),
                                               !simple && t_rng_below(r, 5) == 0,
                                               k > 0 && t_rng_below(r, 6) == 0};
        }
    }
    if (!simple && nphrase > 2 && t_rng_below(r, 3) == 0) { // the last ones near each other
        size_t n = 2 + t_rng_below(r, nphrase - 1), at = nphrase - n;

        for (size_t i = at; i < nphrase; i++) {
            q.phrase[i].group = i == at ? (uint32_t)n : 0;
            q.phrase[i].near = (uint32_t)t_rng_below(r, 4);
            q.phrase[i].fields = q.phrase[at].fields;
        }
    }
    for (size_t i = 0; !simple && t_rng_below(r, 2) && i < nphrase; i++) {
        int op = (int)t_rng_below(r, 5);

        q.op[q.ask.nop++] = (vec_op){op == 4 ? VEC_OP_ALL : VEC_OP_PHRASE, (uint32_t)i};
        if (i > 0)
            q.op[q.ask.nop++] = (vec_op){VEC_OP_AND + op % 3, 0};
    }
    q.ask.nphrase = nphrase;
    return q;
}

static void point(question *q)
{
    q->ask.words = q->word;
    q->ask.phrases = q->phrase;
    q->ask.ops = q->op;
}

/* ---------------------------------------------------------------------------------- the model */

static int word_is(const vec_word *w, int word)
{
    size_t n = strlen(words[word]);

    return w->prefix ? n >= w->n && memcmp(words[word], w->s, w->n) == 0
                     : n == w->n && memcmp(words[word], w->s, n) == 0;
}

/* Places of the phrase: its words, alternatives joined. */
static int places(const question *q, const vec_phrase *p)
{
    int n = 0;

    for (uint32_t k = 0; k < p->nword; k++)
        n += k == 0 || !q->word[p->word + k].colocated;
    return n;
}

static int phrase_at(const question *q, const vec_phrase *p, const doc *d, int f, int pos)
{
    uint32_t k = 0;

    if (p->nword == 0 || (p->initial && pos > 0))
        return 0;
    for (; k < p->nword; pos++) {
        int any = 0;

        do
            any |= pos < d->n[f] && word_is(&q->word[p->word + k], d->word[f][pos]);
        while (++k < p->nword && q->word[p->word + k].colocated);
        if (!any)
            return 0;
    }
    return 1;
}

/* Sets at[i] to a place of each phrase of a group, which stands around `end`, the last beginning:
 * all of them must be found, and begin no further before it than their length and near allow. */
static int near_at(const question *q, const vec_phrase *p, const doc *d, int f, int which, int pos)
{
    for (int end = 0; end < d->n[f]; end++) {
        int ok = 1, last = 0;

        for (uint32_t i = 0; i < p->group && ok; i++) {
            int any = 0;

            for (int at = 0; at <= end; at++) {
                if (at + places(q, &p[i]) + (int)p->near < end || !phrase_at(q, &p[i], d, f, at) ||
                    ((int)i == which && at != pos))
                    continue;
                any = 1;
                last |= at == end;
            }
            ok = any;
        }
        if (ok && last)
            return 1;
    }
    return 0;
}

static int count(const question *q, size_t i, const doc *d)
{
    size_t head = i;
    int n = 0;

    while (q->phrase[head].group == 0)
        head--;
    for (int f = 0; f < FIELDS; f++) {
        for (int pos = 0; (q->phrase[i].fields >> f & 1) && pos < d->n[f]; pos++) {
            if (!phrase_at(q, &q->phrase[i], d, f, pos))
                continue;
            n += q->phrase[head].group == 1 ||
                 near_at(q, &q->phrase[head], d, f, (int)(i - head), pos);
        }
    }
    return n;
}

static int allowed(const question *q, const doc *d)
{
    int stack[2 * PHRASES], depth = 0;

    for (size_t i = 0; i < q->ask.nop; i++) {
        const vec_op *o = &q->op[i];

        if (o->op == VEC_OP_PHRASE || o->op == VEC_OP_ALL) {
            stack[depth++] = o->op == VEC_OP_ALL || count(q, o->phrase, d) > 0;
            continue;
        }
        depth--;
        stack[depth - 1] = o->op == VEC_OP_AND  ? stack[depth - 1] && stack[depth]
                           : o->op == VEC_OP_OR ? stack[depth - 1] || stack[depth]
                                                : stack[depth - 1] && !stack[depth];
    }
    return depth == 0 || stack[0];
}

static double length_of(const question *q, const doc *d)
{
    int all = 0, n = d->n[0];

    for (size_t i = 0; i < q->ask.nphrase; i++)
        all |= q->phrase[i].fields > 1;
    for (int f = 1; f < FIELDS; f++)
        n += all ? d->n[f] : 0;
    return n;
}

/* score[i] of document i, 0: none. */
static void model(const world *w, const question *q, double *score)
{
    double n = 0, total = 0;

    for (int i = 0; i < w->n; i++) {
        score[i] = 0;
        n += w->docs[i].live;
        total += w->docs[i].live ? length_of(q, &w->docs[i]) : 0;
    }
    for (size_t p = 0; p < q->ask.nphrase; p++) {
        double df = 0;

        for (int i = 0; i < w->n; i++)
            df += w->docs[i].live && count(q, p, &w->docs[i]) > 0;
        for (int i = 0; i < w->n; i++) {
            double tf = count(q, p, &w->docs[i]), dl = length_of(q, &w->docs[i]);

            if (tf > 0 && w->docs[i].live)
                score[i] += q->phrase[p].weight * log(1 + (n - df + 0.5) / (df + 0.5)) * tf * 2.2 /
                            (tf + 1.2 * (0.25 + 0.75 * dl / (total / n)));
        }
    }
}

/* -------------------------------------------------------------------------------------- checks */

static int64_t backwards(void *ctx, uint64_t row)
{
    return -(int64_t)row + *(int64_t *)ctx;
}

static int by_key_and_id(const void *a, const void *b)
{
    const vec_hit *x = a, *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

/* The k best are the first k of all, for several k and both orders of ids. */
static void check_top(vec_words *w, vec_hit *all, size_t n)
{
    static const size_t ks[] = {0, 1, 2, 10, 40, 1000000};
    int64_t base = 5;

    for (size_t i = 0; i < 2 * sizeof ks / sizeof *ks; i++) {
        size_t k = ks[i / 2], got_n;
        vec_hit *got;

        for (size_t j = 0; j < n; j++)
            all[j].id = i % 2 ? backwards(&base, all[j].row) : (int64_t)all[j].row;
        qsort(all, n, sizeof *all, by_key_and_id);
        assert_int_equal(vec_words_top(w, k, i % 2 ? backwards : NULL, &base, &got, &got_n),
                         VEC_OK);
        assert_int_equal(got_n, k < n ? k : n);
        for (size_t j = 0; j < got_n; j++) {
            assert_true(got[j].key == all[j].key);
            assert_int_equal(got[j].row, all[j].row);
            assert_int_equal(got[j].id, all[j].id);
        }
        vec_free(got);
    }
}

static void check(const world *w, const question *q, int filtered, int with_model)
{
    vec_bm25_args a = {.sources = w->src,
                       .nsource = w->nsrc,
                       .ask = &q->ask,
                       .live = w->live,
                       .filter = filtered ? w->filter : NULL,
                       .nrow = w->nrow,
                       .k1 = VEC_BM25_K1,
                       .b = VEC_BM25_B};
    double *score = malloc(((size_t)w->n + 1) * sizeof *score);
    double *given = malloc(((size_t)w->n + 1) * sizeof *given);
    uint64_t *rows = malloc(((size_t)w->n + 1) * sizeof *rows);
    vec_words *words_;
    vec_hit *hits;
    size_t n, seen = 0;

    assert_int_equal(vec_words_new(&a, &words_), VEC_OK);
    assert_int_equal(vec_words_all(words_, &hits, &n), VEC_OK);
    check_top(words_, hits, n);
    for (int i = 0; i < w->n; i++)
        rows[i] = w->docs[i].row;
    assert_int_equal(vec_words_score(words_, rows, (size_t)w->n, given), VEC_OK);
    if (with_model)
        model(w, q, score);
    for (size_t j = 0; j < n; j++)
        hits[j].id = (int64_t)hits[j].row;
    for (int i = 0; i < w->n && with_model; i++) {
        const doc *d = &w->docs[i];
        int want = score[i] > 0 && allowed(q, d) && (!filtered || bit(w->filter, d->row));

        assert_true(fabs(given[i] - score[i]) <= 1e-11 * (1 + score[i]));
        for (size_t j = 0; j < n; j++) {
            if (hits[j].row != d->row)
                continue;
            assert_true(want);
            assert_true(-hits[j].key == given[i]); // the same bits
            seen++;
            want = 0;
        }
        assert_false(want);
        if (vec_words_allow(words_))
            assert_int_equal(bit(vec_words_allow(words_), d->row), allowed(q, d));
    }
    assert_int_equal(seen, with_model ? n : 0);
    vec_words_free(words_);
    vec_free(hits);
    free(score);
    free(given);
    free(rows);
}

static void as_counted(void **state)
{
    t_rng r = t_rng_start(301);

    (void)state;
    for (int round = 0; round < 150; round++) {
        world w = world_new(&r, 1 + (int)t_rng_below(&r, 60), round % 3 ? t_rng_unit(&r) / 2 : 0);

        for (int k = 0; k < 12; k++) {
            question q = question_new(&r, k % 4 == 0);

            point(&q);
            check(&w, &q, k & 1, 1);
        }
        world_free(&w);
    }
}

/* Lists of many blocks, windows that can be passed over. */
static void the_best_of_many(void **state)
{
    t_rng r = t_rng_start(302);

    (void)state;
    for (int round = 0; round < 12; round++) {
        world w = world_new(&r, 12000, round % 2 ? 0.1 : 0);

        for (int k = 0; k < 12; k++) {
            question q = question_new(&r, k % 4 != 0);

            point(&q);
            check(&w, &q, k & 1, 0);
        }
        world_free(&w);
    }
}

static void want_of_memory(void **state)
{
    t_rng r = t_rng_start(303);

    (void)state;
    for (int round = 0; round < 40; round++) {
        world w = world_new(&r, 40, 0.2);
        question q = question_new(&r, 0);
        vec_bm25_args a = {.sources = w.src,
                           .nsource = w.nsrc,
                           .live = w.live,
                           .nrow = w.nrow,
                           .k1 = VEC_BM25_K1,
                           .b = VEC_BM25_B};
        int rc = VEC_NOMEM;

        point(&q);
        a.ask = &q.ask;
        for (long fail = 1; rc == VEC_NOMEM; fail++) {
            t_alloc al = {.fail_at = fail};
            vec_allocator hook = {t_alloc_get, t_alloc_resize, t_alloc_release, &al};
            vec_words *words_;
            vec_hit *hits = NULL;
            size_t n;

            vec_set_allocator(&hook);
            rc = vec_words_new(&a, &words_);
            if (rc == VEC_OK)
                rc = vec_words_top(words_, 5, NULL, NULL, &hits, &n);
            assert_true(rc == VEC_OK || rc == VEC_NOMEM);
            vec_free(hits);
            vec_words_free(words_);
            assert_int_equal(al.live, 0);
            vec_set_allocator(NULL);
        }
        world_free(&w);
    }
}

static void a_wrong_query_is_refused(void **state)
{
    static const vec_word word = {"a", 1, 0, 0}, long_word = {"a", VEC_TOKEN_MAX + 1, 0, 0};
    static const vec_phrase good = {0, 1, 1, 0, 1, 1, 0};
    const vec_phrase bad[] = {{1, 1, 1, 0, 1, 1, 0},  {0, 2, 1, 0, 1, 1, 0},
                              {0, 1, 8, 0, 1, 1, 0},  {0, 1, 1, 0, NAN, 1, 0},
                              {0, 1, 1, 0, -1, 1, 0}, {0, 1, 1, 0, 1, 0, 0},
                              {0, 1, 1, 0, 1, 2, 0}};
    static const vec_op ops[][2] = {{{VEC_OP_AND, 0}, {VEC_OP_ALL, 0}},
                                    {{VEC_OP_ALL, 0}, {VEC_OP_ALL, 0}},
                                    {{VEC_OP_PHRASE, 1}, {VEC_OP_ALL, 0}},
                                    {{9, 0}, {VEC_OP_ALL, 0}}};
    vec_ask ask = {&word, 1, &good, 1, NULL, 0};
    vec_bm25_args a = {.ask = &ask, .k1 = 1.2, .b = 0.75};
    vec_words *w;

    (void)state;
    assert_int_equal(vec_words_new(&a, &w), VEC_OK);
    vec_words_free(w);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ask.phrases = &bad[i];
        assert_int_equal(vec_words_new(&a, &w), VEC_MISUSE);
        assert_null(w);
    }
    ask.phrases = &good;
    ask.words = &long_word;
    assert_int_equal(vec_words_new(&a, &w), VEC_MISUSE);
    ask.words = &word;
    ask.nop = 2;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        ask.ops = ops[i];
        assert_int_equal(vec_words_new(&a, &w), VEC_MISUSE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_counted),
        cmocka_unit_test(the_best_of_many),
        cmocka_unit_test(want_of_memory),
        cmocka_unit_test(a_wrong_query_is_refused),
    };

    vec_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
