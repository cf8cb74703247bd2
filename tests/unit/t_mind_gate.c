/*
 * t_mind_gate.c - the gate: every phrase of its lists is small talk, anything else is not, any
 * bytes are fine
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mind.h"
#include "mind_text.h"
#include "mind_words.h"
#include "t_guard.h"
#include "t_rng.h"

static int gate_bytes(const void *s, size_t n, int purpose)
{
    t_guard g = t_guard_copy(s, n);
    int why = mind_gate(g.p, n, purpose);
    t_guard_free(&g);
    return why;
}

static int gate(const char *s)
{
    return gate_bytes(s, strlen(s), MIND_TO_SAVE);
}

static void every_phrase_of_the_lists(void **state)
{
    (void)state;
    for (int i = 0; i < MIND_LANGUAGES; i++) {
        const char *p = mind_languages[i].chatter;
        while (*p) {
            size_t n = strcspn(p, "|");
            int why = gate_bytes(p, n, MIND_TO_SAVE);
            if (why != MIND_CHATTER) {
                print_error("%s: %.*s is %s\n", mind_languages[i].name, (int)n, p,
                            mind_gate_name(why));
            }
            assert_int_equal(why, MIND_CHATTER);
            p += n + (p[n] != 0);
        }
    }
}

static void reasons(void **state)
{
    static const struct {
        const char *text;
        int why;
    } cases[] = {
        {"", MIND_EMPTY},
        {" \t\r\n\xe3\x80\x80", MIND_EMPTY},
        {"...", MIND_SYMBOLS},
        {"<3 :-P ;)", MIND_SYMBOLS},
        {"\xf0\x9f\x91\x8d", MIND_SYMBOLS},
        {"OK!!!", MIND_CHATTER},
        {"okaaaay", MIND_CHATTER},
        {"gooood", MIND_CHATTER},
        {"hahahahahahah", MIND_CHATTER},
        {"\xe2\x80\x9cTHANK YOU\xe2\x80\x9d", MIND_CHATTER},
        {"vou\xcc\x82", MIND_CONTENT},
        {"it is what it is", MIND_FILLER},
        {"is", MIND_CONTENT},
        {"Will", MIND_CONTENT},
        {"thanks Will", MIND_NAME},
        {"I am in Nice", MIND_NAME},
        {"oh nice", MIND_CHATTER},
        {"son", MIND_CONTENT},
        {"my son", MIND_CONTENT},
        {"ok 5", MIND_NUMBER},
        {"gr8", MIND_NUMBER},
        {"\xd9\xa7", MIND_NUMBER},
        {"\xef\xbc\x95", MIND_NUMBER},
        {"/help", MIND_COMMAND},
        {"$ thanks", MIND_COMMAND},
        {"ok @you", MIND_COMMAND},
        {"and/or", MIND_FILLER},
        {"ok \xff", MIND_UNREADABLE},
        {"\xc0\x80", MIND_UNREADABLE},
        {"\xed\xa0\x80", MIND_UNREADABLE},
        {"ok \xe2\x82", MIND_UNREADABLE},
        {"Allergic: penicillin", MIND_CONTENT},
        {"ok\xe4\xb8\x89", MIND_CONTENT},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int why = gate(cases[i].text);
        if (why != cases[i].why) {
            print_error("%s is %s\n", cases[i].text, mind_gate_name(why));
        }
        assert_int_equal(why, cases[i].why);
        assert_int_equal(mind_gate_keeps(why), cases[i].why > MIND_FILLER);
    }
    assert_int_equal(gate_bytes("who am I", 8, MIND_TO_SAVE), MIND_FILLER);
    assert_int_equal(gate_bytes("who am I", 8, MIND_TO_SEARCH), MIND_QUESTION);
    assert_int_equal(gate_bytes("ok\0thanks", 9, MIND_TO_SAVE), MIND_CHATTER);
    assert_int_equal(gate_bytes("ok\0rent", 7, MIND_TO_SAVE), MIND_CONTENT);
    assert_string_equal(mind_gate_name(-1), "");
    assert_string_equal(mind_gate_name(MIND_UNREADABLE + 1), "");
}

/* A message that is kept stays so whatever small talk surrounds it; so does one that is not. */
static void small_talk_around(void **state)
{
    static const char *const kept[] = {"penicillin", "Bob", "noon", "42"};
    static const char *const around[] = {"ok", "thanks a lot", "hahaha", "no worries"};
    char text[200];
    (void)state;
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 4; j++) {
            for (int k = 0; k < 4; k++) {
                snprintf(text, sizeof text, "%s, %s. %s!", around[j], kept[i], around[k]);
                assert_true(mind_gate_keeps(gate(text)));
                snprintf(text, sizeof text, "%s, %s. %s!", around[j], around[i], around[k]);
                assert_int_equal(gate(text), MIND_CHATTER);
            }
        }
    }
}

static void any_bytes(void **state)
{
    t_rng r = t_rng_start(5);
    uint8_t s[64];
    (void)state;
    for (int i = 0; i < 30000; i++) {
        size_t n = t_rng_below(&r, sizeof s), mode = t_rng_below(&r, 3);
        t_rng_fill(&r, s, n);
        for (size_t k = 0; k < n && mode; k++) {
            s[k] = mode == 1 ? (uint8_t)("ok haha<3:-$/@`' \xe2\x80\x99\xf0\x9f"[s[k] % 22])
                             : s[k] & 0x7F;
        }
        int why = gate_bytes(s, n, MIND_TO_SAVE);
        assert_in_range(why, MIND_EMPTY, MIND_UNREADABLE);
    }
}

static void a_megabyte(void **state)
{
    size_t n = 1 << 20;
    char *s = malloc(n);
    (void)state;
    assert_non_null(s);
    memset(s, 'a', n);
    assert_int_equal(mind_gate(s, n, MIND_TO_SAVE), MIND_CONTENT);
    memset(s, '.', n);
    assert_int_equal(mind_gate(s, n, MIND_TO_SAVE), MIND_SYMBOLS);
    memset(s, 0, n);
    assert_int_equal(mind_gate(s, n, MIND_TO_SAVE), MIND_EMPTY);
    for (size_t i = 0; i < n; i++) {
        s[i] = "ok "[i % 3];
    }
    assert_int_equal(mind_gate(s, n - 1, MIND_TO_SAVE), MIND_CHATTER);
    s[n - 1] = '7';
    assert_int_equal(mind_gate(s, n, MIND_TO_SAVE), MIND_NUMBER);
    free(s);
}

static void code_points(void **state)
{
    (void)state;
    for (uint32_t c = 0; c < 0x110000; c++) {
        uint8_t s[4];
        size_t n, at = 0;
        if (c < 0x80) {
            s[0] = (uint8_t)c, n = 1;
        } else if (c < 0x800) {
            s[0] = (uint8_t)(0xC0 | c >> 6), s[1] = 0x80 | (c & 63), n = 2;
        } else if (c < 0x10000) {
            s[0] = (uint8_t)(0xE0 | c >> 12), s[1] = 0x80 | (c >> 6 & 63), s[2] = 0x80 | (c & 63),
            n = 3;
        } else {
            s[0] = (uint8_t)(0xF0 | c >> 18), s[1] = 0x80 | (c >> 12 & 63);
            s[2] = 0x80 | (c >> 6 & 63), s[3] = 0x80 | (c & 63), n = 4;
        }
        uint32_t got = mind_next(s, n, &at), more;
        assert_int_equal(got, c >= 0xD800 && c < 0xE000 ? MIND_BROKEN : c);
        assert_false(mind_is_symbol(c) && mind_is_digit(c) && c >= 0x80);
        uint32_t folded = mind_fold(c, &more);
        assert_true(folded == 0 || !mind_is_upper(folded));
        assert_false(mind_is_upper(c) && mind_is_lower(c));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_phrase_of_the_lists),
        cmocka_unit_test(reasons),
        cmocka_unit_test(small_talk_around),
        cmocka_unit_test(any_bytes),
        cmocka_unit_test(a_megabyte),
        cmocka_unit_test(code_points),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
