/*
 * bench_stat.c - samples, quantiles, the clock, how figures are printed.
 *
 * SPDX-License-Identifier: MIT
 */
#include "bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

uint64_t bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int bench_add(bench_samples *s, double value)
{
    if (s->n == s->cap) {
        int cap = s->cap ? 2 * s->cap : 64;
        double *at = realloc(s->at, (size_t)cap * sizeof *at);
        if (at == NULL) {
            return -1;
        }
        s->at = at;
        s->cap = cap;
    }
    s->at[s->n++] = value;
    return 0;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_quantile(const bench_samples *s, double q)
{
    if (s->n == 0) {
        return 0;
    }
    double *sorted = malloc((size_t)s->n * sizeof *sorted);
    if (sorted == NULL) {
        return 0;
    }
    memcpy(sorted, s->at, (size_t)s->n * sizeof *sorted);
    qsort(sorted, (size_t)s->n, sizeof *sorted, by_value);
    int at = (int)(q * (s->n - 1) + 0.5);
    double value = sorted[at];
    free(sorted);
    return value;
}

void bench_samples_free(bench_samples *s)
{
    free(s->at);
    *s = (bench_samples){0};
}

int bench_parts(const bench_samples *s, int n, double *out)
{
    n = n > s->n ? s->n : n;
    for (int i = 0; i < n; i++) {
        int from = (int)((long long)s->n * i / n), to = (int)((long long)s->n * (i + 1) / n);
        bench_samples part = {.at = s->at + from, .n = to - from};
        out[i] = bench_quantile(&part, 0.5);
    }
    return n;
}

double bench_spread(const bench_samples *s)
{
    double part[5], low, high, whole = bench_quantile(s, 0.5);
    int n = bench_parts(s, 5, part);
    if (n == 0 || whole <= 0) {
        return 0;
    }
    low = high = part[0];
    for (int i = 1; i < n; i++) {
        low = part[i] < low ? part[i] : low;
        high = part[i] > high ? part[i] : high;
    }
    return (high - low) / whole;
}

void bench_median_interval(const bench_samples *s, double *low, double *high)
{
    // ranks n/2 -+ 1.96 sqrt(n)/2, by the normal form of the binomial
    double n = s->n, half = 0.98 * sqrt(n), last = n > 1 ? n - 1 : 1;
    double a = (n / 2 - half) / last, b = (n / 2 + half) / last;
    *low = bench_quantile(s, a < 0 ? 0 : a);
    *high = bench_quantile(s, b > 1 ? 1 : b);
}

void bench_print_time(double ns)
{
    printf(ns < 1e4   ? "%9.0f ns"
           : ns < 1e7 ? "%9.1f us"
                      : "%9.2f ms",
           ns < 1e4   ? ns
           : ns < 1e7 ? ns / 1e3
                      : ns / 1e6);
}

void bench_print_target(double value, double target, int at_least)
{
    if (target > 0) {
        int met = at_least ? value >= target : value <= target;
        printf("  target %s %g%s: %s", at_least ? ">=" : "<=", target, at_least ? "x" : " ms",
               met ? "met" : "MISSED");
    }
}
