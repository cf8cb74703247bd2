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
    char **section;    /* where SQL lines go; NULL outside a section */
    char repeat[1024]; /* the groups of an open repeat, "" outside one ... */
    char *repeated;    /* ... and its lines so far */
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
    row->per = row->times = 1;
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
    static const char *const ones[] = {"vec", "noise", "real", "demo", "words", "fts5"};
    int one = 0;
    for (size_t i = 0; i < sizeof ones / sizeof *ones; i++) {
        one |= !strcmp(b->kind, ones[i]);
    }
    int two = !strcmp(b->kind, "int");
    if (!(one && n == 3 && b->a > 0) && !(two && n == 4 && b->a <= b->b)) {
        return complain(p, "bind :NAME vec|noise|real|demo DIM | words N | fts5 N | int LOW HIGH");
    }
    return 0;
}

static char **plain_section(bench_row *row, const char *word)
{
    return !strcmp(word, "setup")   ? &row->setup
           : !strcmp(word, "each")  ? &row->each
           : !strcmp(word, "peer")  ? &row->peer
           : !strcmp(word, "after") ? &row->after
           : !strcmp(word, "check") ? &row->check
           : !strcmp(word, "facts") ? &row->facts
           : !strcmp(word, "load")  ? &row->load
                                    : NULL;
}

static int new_section(parser *p, const char *word, const char *args)
{
    bench_row *row = p->row;
    if (!strcmp(word, "core")) {
        row->mode = BENCH_CORE;
        p->section = NULL;
        return sscanf(args, "%63s %d", row->core, &row->runs) == 2 && row->runs > 0
                   ? 0
                   : complain(p, "core NAME RUNS");
    }
    if (!strcmp(word, "truth")) {
        p->section = &row->truth;
        return sscanf(args, "%d %lf", &row->truths, &row->recall) == 2 && row->truths > 0
                   ? 0
                   : complain(p, "truth RUNS RECALL");
    }
    p->section = plain_section(row, word);
    if (p->section) {
        return 0;
    }
    if (strcmp(word, "timed") != 0 && strcmp(word, "open") != 0 && strcmp(word, "ours") != 0) {
        return complain(p, "unknown directive");
    }
    p->section = &row->timed;
    row->mode = *word == 't' ? BENCH_TIMED : word[1] == 'p' ? BENCH_OPEN : BENCH_PEER;
    return sscanf(args, "%d", &row->runs) == 1 && row->runs > 0
               ? 0
               : complain(p, "timed, open and ours take the number of runs");
}

// what a row says of itself in one line
static int row_word(parser *p, const char *word, const char *args, int *known)
{
    bench_row *row = p->row;
    *known = 1;
    if (!strcmp(word, "versus")) {
        int n = sscanf(args, "%63s %lf", row->versus, &row->most);
        return n == 2 ? 0 : complain(p, "versus ROW FACTOR");
    }
    if (!strcmp(word, "warm")) {
        return sscanf(args, "%d", &row->warm) == 1 ? 0 : complain(p, "warm RUNS");
    }
    if (!strcmp(word, "times")) {
        return sscanf(args, "%d", &row->times) == 1 && row->times > 0 ? 0
                                                                      : complain(p, "times CALLS");
    }
    if (!strcmp(word, "answers")) {
        args += strspn(args, " ");
        snprintf(row->answers, sizeof row->answers, "%.*s", (int)strcspn(args, "\r\n"), args);
        return row->answers[0] ? 0 : complain(p, "answers TEXT");
    }
    if (!strcmp(word, "from")) {
        static const char *const forms[] = {"short", "normal", "long"};
        char form[16] = "";
        sscanf(args, "%15s", form);
        for (int i = 0; i < 3; i++) {
            if (!strcmp(form, forms[i])) {
                row->from = (bench_form)i;
                return 0;
            }
        }
        return complain(p, "from short|normal|long");
    }
    double *number = !strcmp(word, "target")    ? &row->target
                     : !strcmp(word, "same")    ? &row->same
                     : !strcmp(word, "overlap") ? &row->overlap
                                                : NULL;
    *known = number != NULL;
    return number == NULL || sscanf(args, "%lf", number) == 1 ? 0
                                                              : complain(p, "a number is missing");
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
    int known;
    int rc = row_word(p, word, args, &known);
    if (known) {
        return rc;
    }
    return !strcmp(word, "bind") ? new_bind(p, args) : new_section(p, word, args);
}

static int take_line(parser *p, const char *line)
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

/* ---- repeated lines: $1 to $9 stand for the parts of a group, in which ~ is a space */

// a line with its $N replaced by the parts of a group; -1 when it gets too long
static int fill_in(const char *line, size_t n, const char *group, char *out, size_t size)
{
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        const char *from = line + i;
        size_t len = 1;
        if (*from == '$' && i + 1 < n && from[1] >= '1' && from[1] <= '9') {
            from = group;
            for (int part = line[++i] - '1'; part > 0; part--) {
                from += strcspn(from, ", \t\r\n");
                from += *from == ',';
            }
            len = strcspn(from, ", \t\r\n");
        }
        if (at + len + 1 > size) {
            return -1;
        }
        for (size_t k = 0; k < len; k++) {
            out[at++] = from == line + i ? from[k] : from[k] == '~' ? ' ' : from[k];
        }
    }
    out[at] = 0;
    return 0;
}

static int play_repeat(parser *p)
{
    int rc = 0;
    for (const char *group = p->repeat; rc == 0 && *group; group += strcspn(group, " \t\r\n")) {
        group += strspn(group, " \t\r\n");
        for (const char *line = p->repeated; *group && rc == 0 && line && *line;) {
            char filled[1024];
            size_t n = strcspn(line, "\n") + 1;
            rc = fill_in(line, n, group, filled, sizeof filled) == 0
                     ? take_line(p, filled)
                     : complain(p, "a line too long");
            line += n;
        }
    }
    free(p->repeated);
    p->repeated = NULL;
    p->repeat[0] = 0;
    return rc;
}

static int parse_line(parser *p, const char *line)
{
    if (!strncmp(line, "--! repeat ", 11)) {
        snprintf(p->repeat, sizeof p->repeat, "%s", line + 11);
        return p->repeated ? complain(p, "a repeat in a repeat") : 0;
    }
    if (!p->repeat[0]) {
        return take_line(p, line);
    }
    return strncmp(line, "--! end", 7) ? append(&p->repeated, line) : play_repeat(p);
}

// what a script must have; the default of `warm`: none where a run changes the store
static int complete(parser *p)
{
    if (p->script->subsystem[0] == 0) {
        return complain(p, "no subsystem");
    }
    if (p->repeat[0]) {
        return complain(p, "a repeat without end");
    }
    for (bench_row *row = p->script->rows; row != NULL; row = row->next) {
        int needs_sql = row->mode != BENCH_CORE;
        if ((row->timed != NULL) != needs_sql || (row->mode == BENCH_PEER) != (row->peer != NULL)) {
            fprintf(stderr, "%s: row %s: one timed statement is needed, and a peer's with ours\n",
                    p->path, row->name);
            return -1;
        }
        if (row->mode != BENCH_PEER && !row->check && !row->truth) {
            fprintf(stderr, "%s: row %s: neither check nor truth\n", p->path, row->name);
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
    rc = rc ? rc : complete(&p);
    free(p.repeated);
    return rc;
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
        free(row->truth);
        free(row->load);
        free(row->facts);
        free(row);
    }
    *s = (bench_script){0};
}
