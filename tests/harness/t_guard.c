/*
 * t_guard.c - guarded buffers by mmap and mprotect.
 *
 * SPDX-License-Identifier: MIT
 */
#include "t_guard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

t_guard t_guard_new(size_t n)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t body = (n + page - 1) / page * page;
    t_guard g = {.n = n, .map_n = body + page};
    g.map = mmap(NULL, g.map_n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (g.map == MAP_FAILED || mprotect((char *)g.map + body, page, PROT_NONE) != 0) {
        perror("t_guard_new");
        exit(99);
    }
    g.p = (unsigned char *)g.map + body - n;
    return g;
}

t_guard t_guard_copy(const void *src, size_t n)
{
    t_guard g = t_guard_new(n);
    if (n > 0) {
        memcpy(g.p, src, n);
    }
    return g;
}

void t_guard_free(t_guard *g)
{
    munmap(g->map, g->map_n);
    *g = (t_guard){0};
}
