/*
 * st_options.c - the options of a store: one table of rows, text in and text out.
 *
 * Options live in the file (/meta) and change by `config` frames. Numbers are parsed and printed
 * without the locale.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include "st_schema.h"
#include "vec.h"

enum { KIND_SCHEMA, KIND_COMPRESSION, KIND_WORD, KIND_INT, KIND_REAL, KIND_OR_NONE, KIND_TEXT };

typedef struct option_row {
    const char *name;
    int kind;
    size_t at;       /* offset in st_options */
    double min, max; /* numbers */
} option_row;

#define AT(field) offsetof(st_options, field)
#define DAY       86400.0
#define FOREVER   1e12 /* seconds */

static const option_row rows[] = {
    {"dim", KIND_SCHEMA, 0, 0, 0},
    {"metric", KIND_SCHEMA, 0, 0, 0},
    {"storage", KIND_SCHEMA, 0, 0, 0},
    {"tokenize", KIND_SCHEMA, 0, 0, 0},
    {"compression", KIND_COMPRESSION, 0, 0, 0},
    {"synchronous", KIND_WORD, AT(synchronous), 0, 0},
    {"autoflush", KIND_INT, AT(autoflush), 4096, 1e15},
    {"autocompact", KIND_REAL, AT(autocompact), 0.05, 1},
    {"agent", KIND_TEXT, AT(agent), 0, 0},
    {"embedder", KIND_TEXT, AT(embedder), 0, 0},
    {"vector_weight", KIND_REAL, AT(vector_weight), 0, 1e6},
    {"text_weight", KIND_REAL, AT(text_weight), 0, 1e6},
    {"rrf_k", KIND_REAL, AT(rrf_k), 0, 1e6},
    {"index", KIND_WORD, AT(index), 0, 0},
    {"recall", KIND_REAL, AT(recall), 0.5, 1},
    {"fusion", KIND_WORD, AT(fusion), 0, 0},
    {"context", KIND_REAL, AT(context), 0, ST_CONTEXT_MAX},
    {"recency", KIND_REAL, AT(recency), 0, 1},
    {"recency_half_life", KIND_REAL, AT(recency_half_life), 1, 1e12},
    {"importance_weight", KIND_REAL, AT(importance_weight), 0, 1},
    {"activation_weight", KIND_REAL, AT(activation_weight), 0, 1},
    {"graph_weight", KIND_REAL, AT(graph_weight), 0, 1},
    {"min_score", KIND_REAL, AT(min_score), -1e12, 1e12},
    {"dedup", KIND_REAL, AT(dedup), 0, 1},
    {"mmr", KIND_REAL, AT(mmr), 0, 1},
    {"expand", KIND_INT, AT(expand), 0, 1},
    {"nprobe", KIND_INT, AT(nprobe), 0, 1e9},
    {"exact", KIND_INT, AT(exact), 0, 1},
    {"as_of", KIND_OR_NONE, AT(as_of), -1e15, 1e15},
    {"syntax", KIND_WORD, AT(syntax), 0, 0},
    {"archive", KIND_WORD, AT(archive), 0, 0},
    {"track_access", KIND_WORD, AT(life.track_access), 0, 0},
    {"auto_importance", KIND_WORD, AT(life.auto_importance), 0, 0},
    {"working_capacity", KIND_INT, AT(life.working_capacity), 0, 1e9},
    {"episodic_capacity", KIND_INT, AT(life.episodic_capacity), 0, 1e9},
    {"semantic_capacity", KIND_INT, AT(life.semantic_capacity), -1, 1e9},
    {"half_life_working", KIND_REAL, AT(life.half_life_working), 0, FOREVER},
    {"half_life_episodic", KIND_REAL, AT(life.half_life_episodic), 0, FOREVER},
    {"half_life_semantic", KIND_REAL, AT(life.half_life_semantic), 0, FOREVER},
    {"promote_importance", KIND_REAL, AT(life.promote_importance), 0, 2},
    {"promote_access", KIND_INT, AT(life.promote_access), 0, 1e9},
    {"semantic_access", KIND_INT, AT(life.semantic_access), 0, 1e9},
    {"access_weight", KIND_REAL, AT(life.access_weight), 0, 1e6},
    {"importance_base", KIND_REAL, AT(life.importance_base), -1e6, 1e6},
    {"importance_surprise", KIND_REAL, AT(life.importance_surprise), -1e6, 1e6},
    {"importance_facts", KIND_REAL, AT(life.importance_facts), -1e6, 1e6},
    {"importance_length", KIND_REAL, AT(life.importance_length), -1e6, 1e6},
    {"importance_words", KIND_REAL, AT(life.importance_words), -1e6, 1e6},
    {"importance_question", KIND_REAL, AT(life.importance_question), -1e6, 1e6},
    {"importance_correction", KIND_REAL, AT(life.importance_correction), -1e6, 1e6},
    {"importance_source", KIND_REAL, AT(life.importance_source), -1e6, 1e6},
    {"importance_access", KIND_REAL, AT(life.importance_access), 0, 1},
    {"merge_distance", KIND_REAL, AT(life.merge_distance), 0, 2},
    {"consolidate_every", KIND_INT, AT(life.consolidate_every), 0, 1e9},
    {"consolidate_after", KIND_REAL, AT(life.consolidate_after), 0, FOREVER},
    {"event_limit", KIND_INT, AT(life.event_limit), -1, 1e9},
    {"activation_half_life", KIND_REAL, AT(life.activation_half_life), 0, FOREVER},
    {"activation_boost", KIND_REAL, AT(life.activation_boost), 0, 1e6},
    {"activation_max", KIND_REAL, AT(life.activation_max), 0, 1e6},
    {"record_strategy", KIND_WORD, AT(policy.record_strategy), 0, 0},
    {"record_mode", KIND_WORD, AT(policy.record_mode), 0, 0},
    {"shift_distance", KIND_REAL, AT(policy.shift_distance), 0, 2},
    {"shift_rows", KIND_INT, AT(policy.shift_rows), 1, 1000},
    {"scan", KIND_WORD, AT(policy.scan), 0, 0},
    {"rate_user", KIND_INT, AT(policy.rate[ST_SOURCE_USER]), 0, 1e9},
    {"rate_assistant", KIND_INT, AT(policy.rate[ST_SOURCE_ASSISTANT]), 0, 1e9},
    {"rate_system", KIND_INT, AT(policy.rate[ST_SOURCE_SYSTEM]), 0, 1e9},
    {"rate_tool", KIND_INT, AT(policy.rate[ST_SOURCE_TOOL]), 0, 1e9},
    {"rate_retrieval", KIND_INT, AT(policy.rate[ST_SOURCE_RETRIEVAL]), 0, 1e9},
    {"rate_correction", KIND_INT, AT(policy.rate[ST_SOURCE_CORRECTION]), 0, 1e9},
    {"rate_refuse", KIND_WORD, AT(policy.rate_refuse), 0, 0},
    {"last_tick", KIND_REAL, AT(life.last_tick), -FOREVER, FOREVER},
    {"last_consolidation", KIND_REAL, AT(life.last_consolidation), -FOREVER, FOREVER},
    {"consolidated_id", KIND_INT, AT(life.consolidated_id), -1e18, 1e18},
};
enum { NROW = sizeof rows / sizeof *rows };

static const char none[] = "none"; // of KIND_OR_NONE: NaN
static const char *const metrics[] = {"cosine", "l2", "ip"};
static const char *const storages[] = {"f32", "f16", "i8"};

/* The values of options that are words, by their number. */
typedef struct word_row {
    const char *name;
    const char *words[6]; /* NULL behind the last */
} word_row;

static const word_row worded[] = {
    // the first is st_index_name's
    {"index", {"auto", "flat", "ivf", "ivfpq", "rairs", NULL}},
    {"synchronous", {"off", "normal", "full", NULL}},
    {"fusion", {"rrf", "weighted", NULL}},
    {"syntax", {"plain", "fts5", NULL}},
    {"archive", {"off", NULL}}, // segments are not kept yet
    {"track_access", {"off", "on", NULL}},
    {"auto_importance", {"off", "on", NULL}},
    {"record_strategy", {"every", "shift", "correction", NULL}},
    {"record_mode", {"both", "user", "assistant", "combined", NULL}},
    {"scan", {"off", "on", NULL}},
    {"rate_refuse", {"off", "on", NULL}},
};

const char *st_option_name(int i)
{
    return i >= 0 && i < NROW ? rows[i].name : NULL;
}

int st_option_index(const char *name)
{
    for (int i = 0; i < NROW; i++) {
        if (strcmp(rows[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

void st_options_default(st_options *o)
{
    memset(o, 0, sizeof *o);
    o->synchronous = ST_SYNC_NORMAL;
    o->autoflush = 4 << 20;
    o->autocompact = 0.5;
    o->vector_weight = o->text_weight = 1.0;
    o->rrf_k = 60;
    o->context = 0.3;
    o->recency_half_life = 30 * DAY;
    o->recall = 0.99;
    o->as_of = NAN;
    o->life = (st_life){.auto_importance = 1, // see ext/mind/README.md for how these were chosen
                        .working_capacity = 100,
                        .episodic_capacity = 10000,
                        .semantic_capacity = -1,
                        .half_life_working = 60 * DAY,
                        .half_life_episodic = 90 * DAY,
                        .half_life_semantic = 365 * DAY,
                        .promote_importance = 0.6,
                        .promote_access = 3,
                        .semantic_access = 11,
                        .access_weight = 0.1,
                        .importance_base = -3.9,
                        .importance_surprise = 4,
                        .importance_facts = 1.9,
                        .importance_length = 1.4,
                        .importance_words = 1,
                        .importance_question = -0.95,
                        .importance_correction = 2,
                        .importance_source = 0.3,
                        .importance_access = 0.02,
                        .merge_distance = 0.05,
                        .consolidate_after = DAY,
                        .event_limit = 100000,
                        .activation_half_life = 30 * DAY,
                        .activation_boost = 0.15,
                        .activation_max = 4};
    o->policy = (st_policy){.shift_distance = 0.25, .shift_rows = 5};
}

int st_option_kept(const st_options *o, const char *name)
{
    int i = st_option_index(name);
    const option_row *r = &rows[i < 0 ? 0 : i];
    size_t n = r->kind == KIND_WORD ? sizeof(int) : sizeof(int64_t);
    st_options other;
    st_options_default(&other);
    return r->at < AT(life) ||
           memcmp((const char *)o + r->at, (const char *)&other + r->at, n) != 0;
}

int st_option_type(const char *name)
{
    int i = st_option_index(name);
    if (i < 0 || strcmp(name, "dim") == 0) {
        return i < 0 ? ST_TEXT : ST_INT;
    }
    int real = rows[i].kind == KIND_REAL || rows[i].kind == KIND_OR_NONE;
    return rows[i].kind == KIND_INT ? ST_INT : real ? ST_REAL : ST_TEXT;
}

static int word_index(const char *value, const char *const *words, int n)
{
    for (int i = 0; i < n; i++) {
        if (strcmp(words[i], value) == 0) {
            return i;
        }
    }
    return -1;
}

const char *st_metric_name(int metric)
{
    return metrics[metric];
}

const char *st_index_name(int index)
{
    return worded[0].words[index];
}

int st_metric_parse(const char *text, int *out, st_error *err)
{
    *out = word_index(text, metrics, 3);
    if (*out < 0) {
        *out = 0;
        return st_fail(err, ST_MISUSE, "metric is '%.60s'; known are cosine, l2, ip", text);
    }
    return ST_OK;
}

const char *st_storage_name(int storage)
{
    return storages[storage];
}

int st_storage_parse(const char *text, int *out, st_error *err)
{
    *out = word_index(text, storages, 3);
    if (*out < 0) {
        *out = 0;
        return st_fail(err, ST_MISUSE, "storage is '%.60s'; known are f32, f16, i8", text);
    }
    return ST_OK;
}

/* -------------------------------------------------------------------------------------- numbers */

int st_parse_int(const char *text, int64_t *out)
{
    uint64_t v = 0;
    int neg = *text == '-';
    text += neg || *text == '+';
    if (!*text) {
        return 0;
    }
    for (; *text; text++) {
        if (*text < '0' || *text > '9' || v > (uint64_t)INT64_MAX / 10) {
            return 0;
        }
        v = v * 10 + (uint64_t)(*text - '0');
        if (v > INT64_MAX) {
            return 0;
        }
    }
    *out = neg ? -(int64_t)v : (int64_t)v;
    return 1;
}

// Exact for up to 15 digits and decimal exponents up to 22, as all option values a person writes
// are.
int st_parse_real(const char *text, double *out)
{
    double m = 0;
    int digits = 0, exp = 0, e = 0, eneg = 0, neg = *text == '-';
    text += neg || *text == '+';
    for (; *text >= '0' && *text <= '9'; text++, digits++) {
        m = m * 10 + (*text - '0');
    }
    if (*text == '.') {
        for (text++; *text >= '0' && *text <= '9'; text++, digits++, exp--) {
            m = m * 10 + (*text - '0');
        }
    }
    if (!digits || digits > 300) {
        return 0;
    }
    if (*text == 'e' || *text == 'E') {
        text++;
        eneg = *text == '-';
        text += eneg || *text == '+';
        if (*text < '0' || *text > '9') {
            return 0;
        }
        for (; *text >= '0' && *text <= '9' && e < 1000; text++) {
            e = e * 10 + (*text - '0');
        }
    }
    exp += eneg ? -e : e;
    m = exp < 0 ? m / pow(10, -exp) : m * pow(10, exp);
    *out = neg ? -m : m;
    return *text == 0 && isfinite(m);
}

void st_print_real(double v, char *buf, size_t n)
{
    snprintf(buf, n, "%.15g", v);
    for (char *p = buf; *p; p++) {
        *p = *p == ',' ? '.' : *p;
    }
}

/* ------------------------------------------------------------------------------------- set, get */

static int set_compression(st_options *o, const char *value, st_error *err)
{
    int64_t level;
    if (strcmp(value, "none") == 0) {
        o->compression = ST_COMPRESS_NONE;
        o->level = 0;
        return ST_OK;
    }
    if (strncmp(value, "deflate", 7) == 0 && (!value[7] || value[7] == ':')) {
        if (!value[7]) {
            level = 6;
        } else if (!st_parse_int(value + 8, &level) || level < 1 || level > 9) {
            return st_fail(err, ST_MISUSE, "compression is '%.60s'; deflate has levels 1 to 9",
                           value);
        }
        o->compression = ST_COMPRESS_DEFLATE;
        o->level = (int)level;
        return ST_OK;
    }
    if (strncmp(value, "zstd", 4) == 0 && (!value[4] || value[4] == ':')) {
        if (!value[4]) {
            level = 3;
        } else if (!st_parse_int(value + 5, &level) || level < 1 || level > 22) {
            return st_fail(err, ST_MISUSE, "compression is '%.60s'; zstd has levels 1 to 22",
                           value);
        }
        o->compression = ST_COMPRESS_ZSTD;
        o->level = (int)level;
        return ST_OK;
    }
    return st_fail(err, ST_MISUSE, "compression is '%.60s'; known are none, deflate:N, zstd:N",
                   value);
}

static int set_number(st_options *o, const option_row *r, const char *value, st_error *err)
{
    char *at = (char *)o + r->at;
    int64_t i = 0;
    double v = 0;
    int ok = r->kind == KIND_INT ? st_parse_int(value, &i) : st_parse_real(value, &v);
    if (r->kind == KIND_OR_NONE && strcmp(value, none) == 0) {
        v = NAN;
        memcpy(at, &v, sizeof v);
        return ST_OK;
    }
    v = r->kind == KIND_INT ? (double)i : v;
    if (!ok || !(v >= r->min && v <= r->max)) {
        return st_fail(err, ST_MISUSE, "%s is '%.60s'; a number from %g to %g%s is possible",
                       r->name, value, r->min, r->max, r->kind == KIND_OR_NONE ? ", or none," : "");
    }
    if (r->kind == KIND_INT) {
        memcpy(at, &i, sizeof i);
    } else {
        // What was printed reads as the same number ever after.
        char text[40];
        st_print_real(v, text, sizeof text);
        st_parse_real(text, &v);
        memcpy(at, &v, sizeof v);
    }
    return ST_OK;
}

static const char *const *words_of(const option_row *r)
{
    size_t i = 0;
    while (strcmp(worded[i].name, r->name) != 0) {
        i++;
    }
    return worded[i].words;
}

static int set_word(st_options *o, const option_row *r, const char *value, st_error *err)
{
    const char *const *words = words_of(r);
    char known[64] = "";
    size_t n = 0;
    for (int i = 0; words[i]; i++) {
        if (strcmp(words[i], value) == 0) {
            memcpy((char *)o + r->at, &i, sizeof i);
            return ST_OK;
        }
        n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", i ? ", " : "", words[i]);
    }
    return st_fail(err, ST_MISUSE, "%s is '%.60s'; known are %s", r->name, value, known);
}

static int unknown(const char *name, st_error *err)
{
    char known[1900] = "";
    size_t n = 0;
    for (int i = 0; i < NROW && n < sizeof known; i++) {
        n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", i ? ", " : "", rows[i].name);
    }
    return st_fail(err, ST_NOTFOUND, "no option '%.60s'; known are %s", name, known);
}

int st_options_set(st_options *o, const char *name, const char *value, int creating, st_error *err)
{
    int i = st_option_index(name);
    const option_row *r = &rows[i < 0 ? 0 : i];
    if (i < 0) {
        return unknown(name, err);
    }
    switch (r->kind) {
    case KIND_SCHEMA:
        return st_fail(err, ST_MISUSE, "%s is fixed when the store is made", name);
    case KIND_COMPRESSION:
        return creating ? set_compression(o, value, err)
                        : st_fail(err, ST_MISUSE, "compression is fixed when the store is made");
    case KIND_WORD:
        return set_word(o, r, value, err);
    case KIND_TEXT:
        if (strlen(value) > ST_OPTION_TEXT_MAX) {
            return st_fail(err, ST_LIMIT, "%s has %zu bytes; at most %d", name, strlen(value),
                           ST_OPTION_TEXT_MAX);
        }
        memcpy((char *)o + r->at, value, strlen(value) + 1);
        return ST_OK;
    default:
        return set_number(o, r, value, err);
    }
}

int st_options_get(const st_schema *s, const st_options *o, const char *name, char *buf, size_t n,
                   st_error *err)
{
    int i = st_option_index(name);
    const option_row *r = &rows[i < 0 ? 0 : i];
    if (i < 0) {
        return unknown(name, err);
    }
    if (strcmp(name, "dim") == 0) {
        snprintf(buf, n, "%lld", (long long)s->dim);
    } else if (strcmp(name, "metric") == 0) {
        snprintf(buf, n, "%s", metrics[s->metric]);
    } else if (strcmp(name, "storage") == 0) {
        snprintf(buf, n, "%s", storages[s->storage]);
    } else if (strcmp(name, "tokenize") == 0) {
        snprintf(buf, n, "%s", s->tokenizer);
    } else if (r->kind == KIND_COMPRESSION) {
        static const char *const kinds[] = {"none", "deflate", "zstd"};
        if (o->compression) {
            snprintf(buf, n, "%s:%d", kinds[o->compression], o->level);
        } else {
            snprintf(buf, n, "none");
        }
    } else if (r->kind == KIND_WORD) {
        int word;
        memcpy(&word, (const char *)o + r->at, sizeof word);
        snprintf(buf, n, "%s", words_of(r)[word]);
    } else if (r->kind == KIND_TEXT) {
        snprintf(buf, n, "%s", (const char *)o + r->at);
    } else if (r->kind == KIND_INT) {
        int64_t v;
        memcpy(&v, (const char *)o + r->at, sizeof v);
        snprintf(buf, n, "%lld", (long long)v);
    } else {
        double v;
        memcpy(&v, (const char *)o + r->at, sizeof v);
        if (isnan(v)) {
            snprintf(buf, n, "%s", none);
        } else {
            st_print_real(v, buf, n);
        }
    }
    return ST_OK;
}
