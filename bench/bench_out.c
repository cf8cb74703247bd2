/*
 * bench_out.c - what a row's figures look like: a line of a table in Markdown, a line of JSON.
 *
 * JSON    BENCH_OUT names the file. One object a line: first the machine, then a row each. Times
 *         are nanoseconds. "parts" are the medians of five parts of the runs, from which compare.py
 *         tells a change from noise.
 *
 * SPDX-License-Identifier: MIT
 */
#include "bench.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PARTS = 5 };
static const double UNSTEADY = 0.10; // a spread that a row owns up to

int bench_out_open(bench_out *o)
{
    const char *path = getenv("BENCH_OUT");
    *o = (bench_out){0};
    if (path && *path) {
        o->json = fopen(path, "a");
        if (!o->json) {
            perror(path);
            return -1;
        }
    }
    return 0;
}

void bench_out_close(bench_out *o)
{
    if (o->json) {
        fclose(o->json);
    }
    *o = (bench_out){0};
}

static void json_text(FILE *f, const char *name, const char *text)
{
    fprintf(f, "\"%s\":\"", name);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') {
            fputc('\\', f);
        }
        fputc((unsigned char)*text < ' ' ? ' ' : *text, f);
    }
    fputc('"', f);
}

void bench_out_machine(bench_out *o, const char *what)
{
    char line[256], *model = NULL;
    FILE *f = fopen("/proc/cpuinfo", "r");
    while (f != NULL && model == NULL && fgets(line, sizeof line, f) != NULL) {
        model = strncmp(line, "model name", 10) ? NULL : strchr(line, ':');
    }
    model = model ? strtok(model + 2, "\n") : NULL;
    model = model ? model : "unknown processor";
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    double gib = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) / (1 << 30);
    printf("%s, %ld cores, %.0f GiB, SQLite %s; %s\n", model, cores, gib, sqlite3_libversion(),
           what);
    if (o->json) {
        fputc('{', o->json);
        json_text(o->json, "machine", model);
        fprintf(o->json, ",\"cores\":%ld,\"gib\":%.1f,", cores, gib);
        json_text(o->json, "sqlite", sqlite3_libversion());
        fputc(',', o->json);
        json_text(o->json, "run", what);
        fprintf(o->json, "}\n");
        fflush(o->json);
    }
    if (f != NULL) {
        fclose(f);
    }
}

static void print_time(double ns)
{
    printf(ns < 1e4   ? " %.0f ns |"
           : ns < 1e7 ? " %.1f us |"
                      : " %.2f ms |",
           ns < 1e4   ? ns
           : ns < 1e7 ? ns / 1e3
                      : ns / 1e6);
}

static void print_head(bench_out *o)
{
    if (!o->headed) {
        printf("| row | part | ns/op | rate | p50 | p95 | spread | check | beside it | answers |\n"
               "|---|---|---|---|---|---|---|---|---|---|\n");
        o->headed = 1;
    }
}

static double mean_of(const bench_samples *s)
{
    double sum = 0;
    for (int i = 0; i < s->n; i++) {
        sum += s->at[i];
    }
    return s->n ? sum / s->n : 0;
}

// the members of a JSON object of numbers and plain words, without its marks
static void print_facts(const char *json, const char **comma)
{
    for (const char *p = json; *p;) {
        const char *name = strchr(p, '"'), *end = name ? strchr(name + 1, '"') : NULL;
        if (!end || end[1] != ':') {
            break;
        }
        const char *value = end + 2 + (end[2] == '"');
        size_t n = strcspn(value, end[2] == '"' ? "\"" : ",}");
        printf("%s %.*s %.*s", *comma, (int)(end - name - 1), name + 1, (int)n, value);
        *comma = ",";
        p = value + n + (end[2] == '"');
    }
}

static void print_beside(const bench_result *r, double p50)
{
    const bench_row *row = r->row;
    const char *comma = "";
    if (r->recall >= 0 && row->recall < 1) {
        printf("%s recall %.4f", comma, r->recall);
        comma = ",";
    }
    print_facts(r->facts, &comma);
    if (row->target > 0) {
        printf("%s at most %g ms: %s", comma, row->target,
               p50 / 1e6 <= row->target ? "met" : "MISSED");
        comma = ",";
    }
    if (r->factor >= 0) {
        printf("%s %.2f x %s, at most %g: %s", comma, r->factor, row->versus, row->most,
               r->factor <= row->most ? "met" : "MISSED");
    }
    printf(" |");
}

static void json_row(FILE *f, const bench_result *r, double mean, double p50, double p95)
{
    const bench_row *row = r->row;
    double part[PARTS];
    int n = bench_parts(r->times, PARTS, part);
    fputc('{', f);
    json_text(f, "row", row->name);
    fputc(',', f);
    json_text(f, "part", r->subsystem);
    fprintf(f, ",\"n\":%d,\"mean\":%.1f,\"p50\":%.1f,\"p95\":%.1f,\"parts\":[", r->times->n, mean,
            p50, p95);
    for (int i = 0; i < n; i++) {
        fprintf(f, "%s%.1f", i ? "," : "", part[i]);
    }
    fprintf(f, "],\"rate\":%.6g,", row->per * 1e9 / mean);
    json_text(f, "unit", row->unit);
    fprintf(f, ",\"check\":%s", r->good ? "true" : "false");
    if (r->recall >= 0 && row->recall < 1) {
        fprintf(f, ",\"recall\":%.5f", r->recall);
    }
    if (r->facts[0]) {
        fprintf(f, ",\"facts\":%s", r->facts);
    }
    if (row->answers[0]) {
        fputc(',', f);
        json_text(f, "answers", row->answers);
    }
    fprintf(f, "}\n");
    fflush(f);
}

void bench_out_row(bench_out *o, const bench_result *r)
{
    const bench_row *row = r->row;
    double mean = mean_of(r->times), p50 = bench_quantile(r->times, 0.5);
    double p95 = bench_quantile(r->times, 0.95), spread = bench_spread(r->times);
    print_head(o);
    printf("| %s | %s | %.0f | %.4g %s/s |", row->name, r->subsystem, mean, row->per * 1e9 / mean,
           row->unit);
    print_time(p50);
    print_time(p95);
    if (r->times->n < PARTS) {
        printf(" %d run%s | %s |", r->times->n, r->times->n == 1 ? "" : "s",
               r->good ? "ok" : "FAILED");
    } else {
        printf(" %.0f %%%s | %s |", 100 * spread, spread > UNSTEADY ? ", unsteady" : "",
               r->good ? "ok" : "FAILED");
    }
    print_beside(r, p50);
    printf(" %s |\n", row->answers);
    fflush(stdout);
    if (o->json) {
        json_row(o->json, r, mean, p50, p95);
    }
}

void bench_out_none(bench_out *o, const bench_row *row, const char *subsystem, const char *why)
{
    print_head(o);
    printf("| %s | %s | | | | | | %s | | %s |\n", row->name, subsystem, why, row->answers);
    fflush(stdout);
    if (o->json) {
        fputc('{', o->json);
        json_text(o->json, "row", row->name);
        fputc(',', o->json);
        json_text(o->json, "part", subsystem);
        fputc(',', o->json);
        json_text(o->json, "none", why);
        fprintf(o->json, "}\n");
    }
}

static void ratio_of(const bench_pair *p, double *ratio, double *low, double *high)
{
    double ours[2], theirs[2];
    *ratio = bench_quantile(&p->ratio, 0.5);
    bench_median_interval(&p->ratio, low, high);
    if (p->apart) {
        bench_median_interval(&p->ours, &ours[0], &ours[1]);
        bench_median_interval(&p->theirs, &theirs[0], &theirs[1]);
        *ratio = bench_quantile(&p->theirs, 0.5) / bench_quantile(&p->ours, 0.5);
        *low = theirs[0] / ours[1];
        *high = theirs[1] / ours[0];
    }
}

void bench_out_pair(bench_out *o, const bench_pair *p)
{
    double ours = bench_quantile(&p->ours, 0.5), theirs = bench_quantile(&p->theirs, 0.5);
    double ratio, low, high;
    ratio_of(p, &ratio, &low, &high);
    printf("%-28s %-6s ours", p->name, p->subsystem);
    bench_print_time(ours);
    printf("  %s", p->peer);
    bench_print_time(theirs);
    printf("  %6.2fx [%.2f, %.2f] of %d %s", ratio, low, high, p->ours.n,
           p->apart ? "runs" : "pairs");
    if (p->common >= 0) {
        printf("  ids in common %.1f %%", 100 * p->common);
    }
    if (p->worst >= 0) {
        printf(", values within %.1g", p->worst);
    }
    if (p->facts && p->facts[0]) {
        const char *comma = " ";
        print_facts(p->facts, &comma);
    }
    printf("  check %s", p->good ? "ok" : "FAILED");
    bench_print_target(ratio, p->target, 1);
    printf("\n");
    fflush(stdout);
    if (o->json) {
        fputc('{', o->json);
        json_text(o->json, "row", p->name);
        fputc(',', o->json);
        json_text(o->json, "part", p->subsystem);
        fputc(',', o->json);
        json_text(o->json, "peer", p->peer);
        fprintf(o->json,
                ",\"n\":%d,\"ours\":%.1f,\"theirs\":%.1f,\"ratio\":%.4f,\"low\":%.4f,\"high\":%.4f,"
                "\"check\":%s%s%s}\n",
                p->ours.n, ours, theirs, ratio, low, high, p->good ? "true" : "false",
                p->facts && p->facts[0] ? ",\"facts\":" : "", p->facts ? p->facts : "");
        fflush(o->json);
    }
}
