/*
 * driver.c - feeds files to a fuzz target without libFuzzer: driver FILE_OR_FOLDER...
 *
 * With -m N each file is also fed N times with random bytes changed, which finds shallow faults on
 * a machine without clang. The name of a file is printed before it is used, so that the last line
 * names the one that crashed.
 *
 * SPDX-License-Identifier: MIT
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz.h"

static long mutations;
static uint64_t rng = 88172645463325252u;
static long files;

static uint64_t next(void)
{
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;
    return rng;
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
    LLVMFuzzerTestOneInput(copy, n);
    free(copy);
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
        else
            visit(argv[i]);
    }
    printf("%ld files\n", files);
    return files ? 0 : 2;
}
