/*
 * driver.c - feeds files to a fuzz target without libFuzzer: driver FILE_OR_FOLDER...
 *
 * With -m N each file is also fed N times with random bytes changed, which finds shallow faults on
 * a machine without clang; with -p N, cut off after every N-th byte; with -f N, with one bit of
 * every N-th byte flipped. The name of a file is printed before it is used, so that the last line
 * names the one that crashed. An input that takes more than two seconds, or makes the process grow
 * beyond 256 MiB (where no sanitizer needs more), ends the run as a crash does.
 *
 * SPDX-License-Identifier: MIT
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include "fuzz.h"

#if defined(__APPLE__)
enum { MAXRSS_MIB = 1 << 20 }; // a MiB in the units of ru_maxrss
#else
enum { MAXRSS_MIB = 1 << 10 };
#endif
enum { SECONDS_MOST = 2, MEMORY_MOST = 256 };

static long mutations, prefixes, flips;
static uint64_t rng = 88172645463325252u;
static long files;

static uint64_t next(void)
{
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;
    return rng;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Feeds the n bytes of copy, which is then gone. */
static void give(uint8_t *copy, size_t n)
{
    double before = now();
    LLVMFuzzerTestOneInput(copy, n);
    if (now() - before > SECONDS_MOST) {
        printf("took %.1f seconds\n", now() - before);
        exit(3);
    }
#if !defined(__SANITIZE_ADDRESS__)
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    if (use.ru_maxrss / MAXRSS_MIB > MEMORY_MOST) {
        printf("took %ld MiB\n", use.ru_maxrss / MAXRSS_MIB);
        exit(3);
    }
#endif
    free(copy);
}

/* The target gets a block of exactly its size, so that the sanitizer sees a read one byte beyond
** it. */
static void feed(const uint8_t *bytes, size_t n, int change)
{
    uint8_t *copy = malloc(n ? n : 1);
    if (!copy)
        exit(2);
    memcpy(copy, bytes, n);
    for (uint64_t i = change && n ? 1 + next() % 8 : 0; i > 0; i--)
        copy[next() % n] = (uint8_t)next();
    give(copy, n);
}

/* The first n bytes, with bit `bit` of byte `at` changed (at n: none). */
static void feed_damaged(const uint8_t *bytes, size_t n, size_t at, unsigned bit)
{
    uint8_t *copy = malloc(n ? n : 1);
    if (!copy)
        exit(2);
    memcpy(copy, bytes, n);
    if (at < n)
        copy[at] ^= (uint8_t)(1u << bit);
    give(copy, n);
}

static void one_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0) {
        perror(path);
        exit(2);
    }
    size_t n = (size_t)ftell(f);
    rewind(f);
    uint8_t *bytes = malloc(n + 1);
    if (!bytes || fread(bytes, 1, n, f) != n) {
        perror(path);
        exit(2);
    }
    fclose(f);
    printf("%s\n", path);
    fflush(stdout);
    feed(bytes, n, 0);
    for (long i = 0; i < mutations; i++)
        feed(bytes, n, 1);
    for (size_t i = 0; prefixes && i < n; i += (size_t)prefixes)
        feed_damaged(bytes, i, i, 0);
    for (size_t i = 0; flips && i < n; i += (size_t)flips)
        feed_damaged(bytes, n, i, (unsigned)(next() % 8));
    free(bytes);
    files++;
}

static void visit(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        perror(path);
        exit(2);
    }
    if (!S_ISDIR(st.st_mode)) {
        one_file(path);
        return;
    }
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        char inner[4096];
        if (e->d_name[0] == '.')
            continue;
        snprintf(inner, sizeof inner, "%s/%s", path, e->d_name);
        visit(inner);
    }
    if (d)
        closedir(d);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-m") == 0 && i + 1 < argc)
            mutations = atol(argv[++i]);
        else if (strcmp(argv[i], "-p") == 0 && i + 1 < argc)
            prefixes = atol(argv[++i]);
        else if (strcmp(argv[i], "-f") == 0 && i + 1 < argc)
            flips = atol(argv[++i]);
        else
            visit(argv[i]);
    }
    printf("%ld files\n", files);
    return files ? 0 : 2;
}
