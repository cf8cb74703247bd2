/*
 * bench_core_mind.c - calls of ext/mind without SQL
 *
 *     gate   a row (text): is it worth a row; answers 1 or 0, twice
 *     consolidate:WORKING:EPISODIC   rows (tier, importance, access_count, last_access, timestamp):
 *            a pass with these capacities and the defaults of a store; answers how many were
 *            promoted, and how many evicted
 *
 * OWNERSHIP  load makes a state, done frees it. THREADS one.
 * SPDX-License-Identifier: MIT
 */
#include "bench.h"
#include "mind.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int gate_load(sqlite3_stmt *rows, const char *arg, void **out)
{
    (void)arg;
    const char *text = sqlite3_step(rows) == SQLITE_ROW ? (const char *)sqlite3_column_text(rows, 0)
                                                        : NULL;
    *out = text ? strdup(text) : NULL;
    return *out ? 0 : -1;
}

static int gate_run(void *state, const bench_value *values, bench_answer *out)
{
    const char *text = state;
    (void)values;
    int kept = mind_gate_keeps(mind_gate(text, strlen(text), MIND_TO_SAVE));
    *out = (bench_answer){.n = 1, .id = {kept}, .value = {kept}};
    return 0;
}

/* ---- consolidation */

typedef struct aged {
    mind_rows rows;
    mind_rules rules;
    uint8_t *tier, *pinned;
    double *importance, *last_access, *timestamp;
    int64_t *access_count;
    void *room;
} aged;

static void aged_done(void *state)
{
    aged *a = state;
    free(a->tier);
    free(a->pinned);
    free(a->importance);
    free(a->last_access);
    free(a->timestamp);
    free(a->access_count);
    free(a->room);
    free(a);
}

enum { AGED_MOST = 10000 };

static aged *aged_new(const char *arg)
{
    aged *a = calloc(1, sizeof *a);
    if (!a) {
        return NULL;
    }
    a->tier = calloc(AGED_MOST, 1);
    a->pinned = calloc(AGED_MOST, 1);
    a->importance = calloc(AGED_MOST, sizeof *a->importance);
    a->last_access = calloc(AGED_MOST, sizeof *a->last_access);
    a->timestamp = calloc(AGED_MOST, sizeof *a->timestamp);
    a->access_count = calloc(AGED_MOST, sizeof *a->access_count);
    a->room = malloc(mind_room(AGED_MOST));
    if (!a->tier || !a->pinned || !a->importance || !a->last_access || !a->timestamp ||
        !a->access_count || !a->room) {
        aged_done(a);
        return NULL;
    }
    const char *second = strchr(arg, ':');
    a->rules = (mind_rules){
        .capacity = {strtol(arg, NULL, 10), second ? strtol(second + 1, NULL, 10) : -1, -1},
        .half_life = {60 * 86400.0, 90 * 86400.0, 365 * 86400.0},
        .promote_importance = 0.6,
        .semantic_access = 11,
        .access_weight = 0.1};
    return a;
}

static int aged_load(sqlite3_stmt *rows, const char *arg, void **out)
{
    static const char *const tiers[] = {"working", "episodic", "semantic"};
    aged *a = *out = aged_new(arg);
    size_t n = 0;
    if (!a) {
        return -1;
    }
    for (; n < AGED_MOST && sqlite3_step(rows) == SQLITE_ROW; n++) {
        const char *tier = (const char *)sqlite3_column_text(rows, 0);
        for (uint8_t t = 0; t < 3; t++) {
            a->tier[n] = tier && strcmp(tier, tiers[t]) == 0 ? t : a->tier[n];
        }
        a->importance[n] = sqlite3_column_double(rows, 1);
        a->access_count[n] = sqlite3_column_int64(rows, 2);
        a->last_access[n] = sqlite3_column_type(rows, 3) == SQLITE_NULL
                                ? (double)NAN
                                : sqlite3_column_double(rows, 3);
        a->timestamp[n] = sqlite3_column_double(rows, 4);
    }
    a->rows = (mind_rows){.n = n,
                          .tier = a->tier,
                          .pinned = a->pinned,
                          .importance = a->importance,
                          .access_count = a->access_count,
                          .last_access = a->last_access,
                          .timestamp = a->timestamp};
    return n ? 0 : -1;
}

static int aged_run(void *state, const bench_value *values, bench_answer *out)
{
    aged *a = state;
    mind_moves m;
    (void)values;
    mind_consolidate(&a->rows, &a->rules, 1.8e9, a->room, &m);
    *out = (bench_answer){.n = 1, .id = {(int64_t)m.promoted}, .value = {(double)m.evicted}};
    return 0;
}

const bench_core bench_cores_mind[] = {
    {"consolidate", aged_load, aged_run, aged_done},
    {"gate", gate_load, gate_run, free},
    {NULL, NULL, NULL, NULL},
};
