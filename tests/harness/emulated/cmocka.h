/*
 * cmocka.h - the part of cmocka that the unit programs of vec use, for cross builds
 *
 * The programs are built for another machine and run by an emulator, where cmocka itself is seldom
 * to be had. The first assertion that fails is printed and ends the program with 1, which is all
 * that is wanted there; each group of tests says what it passed.
 *
 * THREADS  assertions may be used in any thread
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CMOCKA_H
#define CMOCKA_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CMUnitTest {
    const char *name;
    void (*run)(void **state);
};

#define cmocka_unit_test(f)                                                                        \
    {                                                                                              \
#f, f                                                                                      \
    }

static inline void cmocka_lost(const char *file, int line, const char *what)
{
    printf("not ok: %s:%d: %s\n", file, line, what);
    fflush(NULL);
    _Exit(1);
}

#define cmocka_must(holds, what) ((holds) ? (void)0 : cmocka_lost(__FILE__, __LINE__, what))
#define fail()                   cmocka_lost(__FILE__, __LINE__, "fail")
#define fail_msg(...)            (printf(__VA_ARGS__), printf("\n"), fail())
#define print_error(...)         printf(__VA_ARGS__)

#define assert_true(x)         cmocka_must(x, #x)
#define assert_false(x)        cmocka_must(!(x), "not " #x)
#define assert_null(p)         cmocka_must((p) == NULL, #p " == NULL")
#define assert_non_null(p)     cmocka_must((p) != NULL, #p " != NULL")
/* As in cmocka, integers of any type are compared as the widest unsigned one. */
#define assert_int_equal(a, b) cmocka_must((uintmax_t)(a) == (uintmax_t)(b), #a " == " #b)
#define assert_ptr_equal(a, b) cmocka_must((const void *)(a) == (const void *)(b), #a " == " #b)
#define assert_in_range(x, low, high)                                                              \
    cmocka_must((uintmax_t)(x) >= (uintmax_t)(low) && (uintmax_t)(x) <= (uintmax_t)(high),         \
                #x " in " #low ".." #high)
#define assert_memory_equal(a, b, n) cmocka_must(memcmp(a, b, n) == 0, "bytes of " #a " and " #b)
#define assert_string_equal(a, b)    cmocka_must(strcmp(a, b) == 0, #a " like " #b)

#define cmocka_run_group_tests(tests, setup, teardown)                                             \
    cmocka_run(tests, sizeof(tests) / sizeof *(tests))

static inline int cmocka_run(const struct CMUnitTest *tests, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        void *state = NULL;

        tests[i].run(&state);
        printf("ok %s\n", tests[i].name);
    }
    return 0;
}

#endif
