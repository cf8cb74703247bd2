/*
 * t_mind_importance.c - what is read off a text, which near duplicates may merge, and any bytes at
 * all before an unmapped page
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "mind.h"
#include "t_guard.h"
#include "t_rng.h"

static mind_signals read_text(const char *text)
{
    mind_signals s;
    t_guard g = t_guard_copy(text, strlen(text));
    mind_read((const char *)g.p, g.n, &s);
    t_guard_free(&g);
    return s;
}

static int near(double a, double b)
{
    return fabs(a - b) < 1e-9;
}

static void signals(void **state)
{
    static const struct {
        const char *text;
        double facts, words; /* counted, before they are shared out */
    } cases[] = {
        {"", 0, 0},
        {"we went home", 0, 3},
        {"We went Home", 1, 3},                 // the first word's capital says nothing
        {"Yes. We went. I'm home: I do", 0, 7}, // nor do sentences' first words, nor I
        {"we met Anna in Oslo", 2, 5},
        {"we met on Friday", 2, 4}, // a name and a time
        {"we met last week", 2, 4},
        {"room 12 at 7:30", 3, 5},
        {"\xc3\x9c"
         "ber \xc3\x84pfel",
         1, 2},
        {"\xd0\xbc\xd1\x8b \xd0\x9c\xd0\xb8\xd1\x80", 1, 2},        // Cyrillic
        {"\xe6\x88\x91\xe5\x96\x9c\xe6\xac\xa2\xe8\x8c\xb6", 0, 2}, // four Han characters
        {"see https://a.b", 0, 4},                                  // no label
        {"\xff\xfe\xc3", 0, 1},                                     // no UTF-8
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mind_signals s = read_text(cases[i].text);
        if (!near(s.facts * 3, fmin(cases[i].facts, 3)) ||
            (!near(s.length * 40, cases[i].words) && !near(s.length, 0.6)))
            fail_msg("'%s': facts %g, words %g", cases[i].text, s.facts * 3, s.length * 40);
        assert_int_equal(s.question, 0);
    }
    assert_true(read_text("is it?").question == 1);
    assert_true(near(read_text("Allergic: penicillin").facts * 3, 2));
    assert_true(near(read_text("Allergic: penicillin").length, 0.6));
    assert_true(near(read_text("Allergic:").facts, 0)); // a label of nothing
    assert_true(near(read_text("wonderful thing indeed").words * 8, 1));
}

static void importance(void **state)
{
    mind_weights w = {.base = -1, .surprise = 4, .facts = 2, .correction = 1, .source = 0.5};
    mind_signals s = {.surprise = 0};
    (void)state;
    assert_true(near(mind_importance(&s, &w), 1 / (1 + exp(1))));
    s.surprise = 7; // as 1
    assert_true(near(mind_importance(&s, &w), 1 / (1 + exp(-3))));
    s.surprise = NAN;
    assert_true(near(mind_importance(&s, &w), 1 / (1 + exp(1 - 4 * MIND_SURPRISE_UNKNOWN))));
    s.surprise = -1;
    s.correction = 1;
    assert_true(near(mind_importance(&s, &w), 0.5));
}

static int replaces(const char *older, const char *newer)
{
    t_guard a = t_guard_copy(older, strlen(older)), b = t_guard_copy(newer, strlen(newer));
    int yes = mind_replaces((const char *)a.p, a.n, (const char *)b.p, b.n, 0);
    t_guard_free(&a);
    t_guard_free(&b);
    return yes;
}

static void merging(void **state)
{
    (void)state;
    assert_int_equal(replaces("", ""), 1);
    assert_int_equal(replaces("likes tea", "does not like tea"), 1);
    assert_int_equal(replaces("the rent is 900", "the rent is 950"), 0);
    assert_int_equal(replaces("the rent is 900", "the rent"), 0);
    assert_int_equal(replaces("900 is the rent", "the rent is 900, 900"), 1);
    assert_int_equal(replaces("she met Anna", "she met Berta"), 0);
    assert_int_equal(replaces("she met anna", "she met Anna"), 0);
    assert_int_equal(replaces("Anna came. She left", "Berta came. She left"),
                     1); // begins a sentence
    assert_int_equal(mind_replaces("a 1", 3, "a 2", 3, 1), 1);
    char many[2 * 100 + 1];
    for (int i = 0; i < 100; i++) {
        memcpy(many + 2 * i, (char[]){(char)(i < 50 ? '0' + i % 10 : 'a' + i % 26), ' '}, 2);
    }
    many[200] = 0;
    assert_int_equal(replaces(many, many), 1);
}

static void any_bytes(void **state)
{
    (void)state;
    t_rng r = t_rng_start(1);
    for (int round = 0; round < 20000; round++) {
        t_guard a = t_guard_new(t_rng_below(&r, 40)), b = t_guard_new(t_rng_below(&r, 40));
        mind_signals s;
        t_rng_fill(&r, a.p, a.n);
        t_rng_fill(&r, b.p, b.n);
        for (size_t i = 0; i < a.n && round % 2; i++) {
            a.p[i] = (unsigned char)"aB1 .:?\xc3\x84\xe6\x88\x91\xef\xbc\x9a"[a.p[i] % 15];
        }
        mind_read((const char *)a.p, a.n, &s);
        assert_true(s.facts >= 0 && s.facts <= 1 && s.length >= 0 && s.length <= 1 &&
                    s.words >= 0 && s.words <= 1);
        int one = mind_replaces((char *)a.p, a.n, (char *)b.p, b.n, 0);
        assert_int_equal(one, mind_replaces((char *)b.p, b.n, (char *)a.p, a.n, 0));
        assert_int_equal(mind_replaces((char *)a.p, a.n, (char *)a.p, a.n, 0), 1);
        t_guard_free(&a);
        t_guard_free(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signals),
        cmocka_unit_test(importance),
        cmocka_unit_test(merging),
        cmocka_unit_test(any_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
