/*
 * bench_core_mind.c - calls of ext/mind without SQL
 *
 *     gate   a row (text): is it worth a row; answers 1 or 0, twice
 *
 * OWNERSHIP  load makes a state, done frees it. THREADS one.
 * SPDX-License-Identifier: MIT
 */
#include "bench.h"
#include "mind.h"

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

const bench_core bench_cores_mind[] = {
    {"gate", gate_load, gate_run, free},
    {NULL, NULL, NULL, NULL},
};
