/*
 * t_power.c - the recorder of t_power.h
 *
 * SPDX-License-Identifier: MIT
 */
#include "t_power.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "st_base.h"
#include "t_sys.h"

enum { SECTOR = 512, PAGE = 4096, FILES = 256, NAMES = 64 };

typedef struct change {
    off_t at;
    size_t n;
    unsigned char *p; /* NULL: a truncate */
} change;

typedef struct file {
    ino_t ino;
    int log;
    unsigned char *safe;
    size_t nsafe;
    change *change;
    size_t nchange, cap;
    unsigned char *page; /* the states of its first page, PAGE bytes each */
    size_t npage, cap_page;
} file;

typedef struct name {
    char name[64];
    ino_t ino;
} name;

typedef struct naming {
    char from[64], to[64]; /* from empty: made; to empty: removed */
    ino_t ino;
} naming;

static int on;
static char root[200];
static file files[FILES];
static size_t nfile;
static name names[NAMES]; /* as of the last sync of the folder */
static size_t nname;
static naming *namings;
static size_t nnaming, cap_naming;

static void *must(void *p)
{
    if (!p) {
        fprintf(stderr, "t_power: no memory\n");
        _exit(2);
    }
    return p;
}

static unsigned char *read_all(int fd, size_t *n)
{
    struct stat s;
    unsigned char *p;
    size_t got = 0;
    ssize_t more;
    fstat(fd, &s);
    p = must(malloc((size_t)s.st_size + 1));
    while (got < (size_t)s.st_size &&
           (more = t_real_pread(fd, p + got, (size_t)s.st_size - got, (off_t)got)) > 0) {
        got += (size_t)more;
    }
    *n = got;
    return p;
}

static file *find(ino_t ino)
{
    for (size_t i = 0; i < nfile; i++) {
        if (files[i].ino == ino) {
            return &files[i];
        }
    }
    return NULL;
}

static file *of_fd(int fd)
{
    struct stat s;
    return fstat(fd, &s) == 0 ? find(s.st_ino) : NULL;
}

static file *add(ino_t ino, const char *base)
{
    file *f = find(ino);
    if (f) {
        // A file that is gone has left its number to a new one.
        for (size_t i = 0; i < f->nchange; i++) {
            free(f->change[i].p);
        }
    } else if (nfile == FILES) {
        fprintf(stderr, "t_power: more than %d files\n", FILES);
        _exit(2);
    } else {
        f = &files[nfile++];
    }
    f->ino = ino;
    f->nchange = f->npage = f->nsafe = 0;
    f->log = strstr(base, ".h5-wal") != NULL;
    return f;
}

static const char *base_of(const char *path)
{
    return path + strlen(root);
}

static int is_shared_memory(const char *base)
{
    return strstr(base, "-shm") != NULL;
}

/* --------------------------------------------------------------------------------- recording */

/* The page of a log as it is now, when it is not as it was. */
static void note_page(file *f, int fd)
{
    unsigned char page[PAGE];
    if (!f->log || t_real_pread(fd, page, PAGE, 0) != PAGE ||
        (f->npage && !memcmp(f->page + (f->npage - 1) * PAGE, page, PAGE))) {
        return;
    }
    if (f->npage == f->cap_page) {
        f->cap_page = f->cap_page * 2 + 8;
        f->page = must(realloc(f->page, f->cap_page * PAGE));
    }
    memcpy(f->page + f->npage++ * PAGE, page, PAGE);
}

/* The pages of all logs: their owners store into them between any two calls. */
static void note_pages(void)
{
    for (size_t i = 0; i < nname; i++) {
        file *f = find(names[i].ino);
        char path[300];
        int fd;
        if (!f || !f->log) {
            continue;
        }
        snprintf(path, sizeof path, "%.200s%.63s", root, names[i].name);
        fd = t_real_open(path, O_RDONLY, 0);
        if (fd >= 0) {
            note_page(f, fd);
            t_real_close(fd);
        }
    }
}

static void safe_now(file *f, int fd)
{
    free(f->safe);
    f->safe = read_all(fd, &f->nsafe);
    for (size_t i = 0; i < f->nchange; i++) {
        free(f->change[i].p);
    }
    f->nchange = f->npage = 0;
    note_page(f, fd);
}

void t_power_on(const char *folder)
{
    DIR *d = opendir(folder);
    struct dirent *e;
    snprintf(root, sizeof root, "%s", folder);
    nfile = nname = nnaming = 0;
    while (d && (e = readdir(d)) != NULL) {
        char path[512];
        struct stat s;
        int fd;
        snprintf(path, sizeof path, "%s%s", folder, e->d_name);
        if (stat(path, &s) != 0 || !S_ISREG(s.st_mode) || is_shared_memory(e->d_name)) {
            continue;
        }
        fd = t_real_open(path, O_RDONLY, 0);
        safe_now(add(s.st_ino, e->d_name), fd);
        t_real_close(fd);
        snprintf(names[nname].name, sizeof names[nname].name, "%.63s", e->d_name);
        names[nname++].ino = s.st_ino;
    }
    closedir(d);
    on = 1;
}

void t_power_write(int fd, off_t at, const void *p, size_t n)
{
    file *f = on ? of_fd(fd) : NULL;
    if (!f) {
        return;
    }
    note_pages();
    note_page(f, fd);
    if (f->nchange == f->cap) {
        f->cap = f->cap * 2 + 32;
        f->change = must(realloc(f->change, f->cap * sizeof *f->change));
    }
    f->change[f->nchange].at = at;
    f->change[f->nchange].n = n;
    f->change[f->nchange++].p = p ? memcpy(must(malloc(n + 1)), p, n) : NULL;
}

static void add_naming(const char *from, const char *to, ino_t ino)
{
    if (nnaming == cap_naming) {
        cap_naming = cap_naming * 2 + 32;
        namings = must(realloc(namings, cap_naming * sizeof *namings));
    }
    memset(&namings[nnaming], 0, sizeof *namings);
    snprintf(namings[nnaming].from, sizeof namings->from, "%s", from);
    snprintf(namings[nnaming].to, sizeof namings->to, "%s", to);
    namings[nnaming++].ino = ino;
}

void t_power_open(int fd, const char *path, int made)
{
    struct stat s;
    const char *base = base_of(path);
    if (on && made && !is_shared_memory(base) && fstat(fd, &s) == 0) {
        add(s.st_ino, base);
        add_naming("", base, s.st_ino);
    }
}

void t_power_name(const char *from, const char *to)
{
    if (on && !is_shared_memory(from)) {
        add_naming(base_of(from), to ? base_of(to) : "", 0);
    }
}

static void forget(name *list, size_t *n, const char *which)
{
    for (size_t i = 0; i < *n; i++) {
        if (!strcmp(list[i].name, which)) {
            list[i] = list[--*n];
            return;
        }
    }
}

static void apply_naming(name *list, size_t *n, const naming *what)
{
    ino_t ino = what->ino;
    for (size_t i = 0; i < *n && what->from[0]; i++) {
        if (!strcmp(list[i].name, what->from)) {
            ino = list[i].ino;
        }
    }
    forget(list, n, what->from);
    forget(list, n, what->to);
    if (what->to[0] && ino && *n < NAMES) {
        snprintf(list[*n].name, sizeof list->name, "%s", what->to);
        list[(*n)++].ino = ino;
    }
}

void t_power_sync(int fd, int folder)
{
    file *f = on && !folder ? of_fd(fd) : NULL;
    if (f) {
        note_pages();
        safe_now(f, fd);
    }
    if (on && folder) {
        for (size_t i = 0; i < nnaming; i++) {
            apply_naming(names, &nname, &namings[i]);
        }
        nnaming = 0;
    }
}

/* ----------------------------------------------------------------------------------- the cut */

static void resize(unsigned char **p, size_t *n, size_t to)
{
    *p = must(realloc(*p, to + 1));
    if (to > *n) {
        memset(*p + *n, 0, to - *n);
    }
    *n = to;
}

static void apply(unsigned char **p, size_t *n, const change *c, t_rng *r)
{
    uint64_t luck = t_rng_below(r, 3); // 0 all of it, 1 nothing, 2 sector by sector
    size_t end, at = (size_t)c->at;
    if (luck == 1) {
        return;
    }
    if (!c->p) {
        resize(p, n, at);
        return;
    }
    if (at + c->n > *n) {
        resize(p, n, at + c->n);
    }
    for (size_t i = 0; i < c->n; i = end) {
        end = ((at + i) / SECTOR + 1) * SECTOR - at;
        end = end < c->n ? end : c->n;
        if (luck == 0 || t_rng_below(r, 2)) {
            memcpy(*p + at + i, c->p + i, end - i);
        }
    }
}

/* The file keeps its number, which the log and the frames name, if it still has a name. */
static void bring(const file *f, const char *path)
{
    DIR *d = opendir(root);
    struct dirent *e;
    while (d && (e = readdir(d)) != NULL) {
        char from[512];
        struct stat s;
        snprintf(from, sizeof from, "%.200s%.255s", root, e->d_name);
        if (stat(from, &s) == 0 && s.st_ino == f->ino && S_ISREG(s.st_mode)) {
            link(from, path);
        }
    }
    closedir(d);
}

static void write_out(const file *f, const char *path, t_rng *r)
{
    unsigned char *p = must(malloc(f->nsafe + 1));
    size_t n = f->nsafe;
    FILE *out;
    memcpy(p, f->safe ? f->safe : (const unsigned char *)"", n);
    for (size_t i = 0; i < f->nchange; i++) {
        apply(&p, &n, &f->change[i], r);
    }
    for (size_t i = 0; f->npage && n >= PAGE && i < PAGE; i += SECTOR) {
        memcpy(p + i, f->page + t_rng_below(r, f->npage) * PAGE + i, SECTOR);
    }
    bring(f, path);
    out = fopen(path, "wb");
    if (!out || fwrite(p, 1, n, out) != n || fclose(out) != 0) {
        fprintf(stderr, "t_power: cannot write %s\n", path);
        _exit(2);
    }
    free(p);
}

/* Where a file could not keep its number, the slots that are whole get the new one. */
static void renumber_slot(unsigned char *slot, const ino_t *now)
{
    static const size_t fields[] = {48, 184};
    if (st_get32(slot + 508) != st_crc32c(0, slot, 508)) {
        return;
    }
    for (size_t k = 0; k < 2; k++) {
        const file *f = find((ino_t)st_get64(slot + fields[k]));
        if (f) {
            st_put64(slot + fields[k], now[f - files]);
        }
    }
    st_put32(slot + 508, st_crc32c(0, slot, 508));
}

static void renumber(const char *path, const ino_t *now)
{
    unsigned char page[PAGE];
    FILE *f = fopen(path, "r+b");
    if (f && fread(page, 1, PAGE, f) == PAGE) {
        renumber_slot(page, now);
        renumber_slot(page + PAGE / 2, now);
        rewind(f);
        fwrite(page, 1, PAGE, f);
    }
    if (f) {
        fclose(f);
    }
}

void t_power_cut(const char *folder, t_rng *r)
{
    size_t kept = (size_t)t_rng_below(r, nnaming + 1);
    ino_t now[FILES] = {0};
    note_pages();
    on = 0;
    for (size_t i = 0; i < kept; i++) {
        apply_naming(names, &nname, &namings[i]);
    }
    for (size_t i = 0; i < nname; i++) {
        const file *f = find(names[i].ino);
        char path[300];
        snprintf(path, sizeof path, "%.200s%.63s", folder, names[i].name);
        struct stat st;
        if (f) {
            write_out(f, path, r);
            now[f - files] = stat(path, &st) == 0 ? st.st_ino : 0;
        }
    }
    for (size_t i = 0; i < nname; i++) {
        char path[300];
        if (strstr(names[i].name, ".h5-wal")) {
            snprintf(path, sizeof path, "%.200s%.63s", folder, names[i].name);
            renumber(path, now);
        }
    }
}
