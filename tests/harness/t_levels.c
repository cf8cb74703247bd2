/*
 * t_levels.c - child processes, each with another VEC_DISABLE
 *
 * SPDX-License-Identifier: MIT
 */
#include "t_levels.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)
const char *const t_levels_all[] = {"", "avx512vnni", "avx512", "avx512,avx2", NULL};
#elif defined(__aarch64__)
const char *const t_levels_all[] = {"", "dotprod", "neon", NULL};
#else
const char *const t_levels_all[] = {"", NULL};
#endif

int t_levels_run(const char *const *lists, int (*run)(void))
{
    int failed = 0;

    for (size_t i = 0; lists[i] != NULL; i++) {
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            setenv("VEC_DISABLE", lists[i], 1);
            printf("# without: %s\n", lists[i][0] != '\0' ? lists[i] : "nothing");
            exit(run());
        }
        int status = 0;
        failed += child < 0 || waitpid(child, &status, 0) != child || status != 0;
    }
    return failed;
}
