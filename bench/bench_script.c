/*
 * bench_script.c - reads a benchmark script: SQL cut into sections by lines that start with `--!`.
 *
 * The language is described in README.md. Every directive is checked: an unknown word, a missing
 * number or a section outside a row is an error that names the line.
 *
 * SPDX-License-Identifier: MIT
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct parser {
    const char *path;
    int line;
    bench_script *script;
    bench_row *row, **tail;
    char **section; /* where SQL lines go; NULL outside a section */
} parser;

static int complain(const parser *p, const char *what)
{
    fprintf(stderr, "%s:%d: %s\n", p->path, p->line, what);
    return -1;
}

static int append(char **text, const char *line)
{
    size_t old = *text ? strlen(*text) : 0, n = strlen(line);
    char *grown = realloc(*text, old + n + 1);
    if (grown == NULL) {
        return -1;
    }
    memcpy(grown + old, line, n + 1);
    *text = grown;
    return 0;
}

static int new_row(parser *p, const char *args)
{
    bench_row *row = calloc(1, sizeof *row);
    if (row == NULL) {
        return -1;
    }
    row->per = 1;
    row->same = row->overlap = row->warm = -1;
    snprintf(row->unit, sizeof row->unit, "%s", "queries");
    int n = sscanf(args, "%63s per %lf %31s", row->name, &row->per, row->unit);
    *p->tail = p->row = row;
    p->tail = &row->next;
    p->section = NULL;
    return n == 1 || n == 3 ? 0 : complain(p, "row NAME [per NUMBER UNIT]");
}

static int new_bind(parser *p, const char *args)
{
    bench_row *row = p->row;
    if (row->nbind == BENCH_BINDS) {
        return complain(p, "too many bindings");
    }
    bench_bind *b = &row->bind[row->nbind++];
    int n = sscanf(args, "%31s %15s %ld %ld", b->name, b->kind, &b->a, &b->b);
    static const char *const ones[] = {"vec", "noise", "real", "words", "fts5"};
    int one = 0;
    for (size_t i = 0; i < sizeof ones / sizeof *ones; i++) {
        one |= !strcmp(b->kind, ones[i]);
    }
    int two = !strcmp(b->kind, "int");
    if (!(one && n == 3 && b->a > 0) && !(two && n == 4 && b->a <= b->b)) {
        return complain(p, "bind :NAME vec|noise|real DIM | words N | fts5 N | int LOW HIGH");
    }
    return 0;
}

static int new_section(parser *p, const char *word, const char *args)
{
    bench_row *row = p->row;
    int takes_runs = 1;
    if (!strcmp(word, "timed")) {
        p->section = &row->timed;
    } else if (!strcmp(word, "open")) {
        p->section = &row->timed;
        row->mode = BENCH_OPEN;
    } else if (!strcmp(word, "ours")) {
        p->section = &row->timed;
        row->mode = BENCH_PEER;
    } else {
        takes_runs = 0;
        if (!strcmp(word, "setup")) {
            p->section = &row->setup;
        } else if (!strcmp(word, "each")) {
            p->section = &row->each;
        } else if (!strcmp(word, "peer")) {
            p->section = &row->peer;
        } else if (!strcmp(word, "after")) {
            p->section = &row->after;
        } else if (!strcmp(word, "check")) {
            p->section = &row->check;
        } else {
            return complain(p, "unknown directive");
        }
    }
    if (takes_runs && (sscanf(args, "%d", &row->runs) != 1 || row->runs < 1)) {
        return complain(p, "timed, open and ours take the number of runs");
    }
    return 0;
}

static int directive(parser *p, const char *text)
{
    char word[32] = "";
    int at = 0;
    if (sscanf(text, "%31s%n", word, &at) != 1) {
        return complain(p, "an empty directive");
    }
    const char *args = text + at;
    if (!strcmp(word, "subsystem")) {
        return sscanf(args, "%31s", p->script->subsystem) == 1 ? 0 : complain(p, "subsystem NAME");
    }
    if (!strcmp(word, "needs")) {
        char(*needs)[32] = p->script->needs;
        return sscanf(args, "%31s %31s", needs[0], needs[1]) >= 1 ? 0 : complain(p, "needs NAMES");
    }
    if (!strcmp(word, "row")) {
        return new_row(p, args);
    }
    if (p->row == NULL) {
        return complain(p, "a section before the first row");
    }
    if (!strcmp(word, "versus")) {
        bench_row *row = p->row;
        int n = sscanf(args, "%63s %lf", row->versus, &row->most);
        return n == 2 ? 0 : complain(p, "versus ROW FACTOR");
    }
    if (!strcmp(word, "warm")) {
        return sscanf(args, "%d", &p->row->warm) == 1 ? 0 : complain(p, "warm RUNS");
    }
    double *number = !strcmp(word, "target")    ? &p->row->target
                     : !strcmp(word, "same")    ? &p->row->same
                     : !strcmp(word, "overlap") ? &p->row->overlap
                                                : NULL;
    if (number != NULL) {
        return sscanf(args, "%lf", number) == 1 ? 0 : complain(p, "a number is missing");
    }
    return !strcmp(word, "bind") ? new_bind(p, args) : new_section(p, word, args);
}

static int parse_line(parser *p, const char *line)
{
    if (!strncmp(line, "--!", 3)) {
        return directive(p, line + 3);
    }
    if (p->section != NULL) {
        return append(p->section, line);
    }
    // between sections: comments and blank lines only
    return line[strspn(line, " \t\r\n")] == 0 || !strncmp(line, "--", 2)
               ? 0
               : complain(p, "SQL outside a section");
}

// what a script must have; the default of `warm`: none where a run changes the store
static int complete(parser *p)
{
    if (p->script->subsystem[0] == 0) {
        return complain(p, "no subsystem");
    }
    for (bench_row *row = p->script->rows; row != NULL; row = row->next) {
        if (row->timed == NULL || (row->mode == BENCH_PEER) != (row->peer != NULL)) {
            fprintf(stderr, "%s: row %s: one timed statement is needed, and a peer's with ours\n",
                    p->path, row->name);
            return -1;
        }
        if (row->warm < 0) {
            row->warm = row->each != NULL ? 0 : 3 + row->runs / 10;
        }
    }
    return 0;
}

int bench_parse(const char *path, bench_script *out)
{
    *out = (bench_script){0};
    parser p = {.path = path, .script = out, .tail = &out->rows};
    FILE *f = fopen(path, "r");
    if (f == NULL) {
        perror(path);
        return -1;
    }
    char line[1024];
    int rc = 0;
    while (rc == 0 && fgets(line, sizeof line, f) != NULL) {
        p.line++;
        rc = strchr(line, '\n') || feof(f) ? parse_line(&p, line) : complain(&p, "a line too long");
    }
    fclose(f);
    return rc ? rc : complete(&p);
}

void bench_script_free(bench_script *s)
{
    for (bench_row *row = s->rows, *next; row != NULL; row = next) {
        next = row->next;
        free(row->setup);
        free(row->each);
        free(row->timed);
        free(row->peer);
        free(row->after);
        free(row->check);
        free(row);
    }
    *s = (bench_script){0};
}
