/*
 * sql_ask.c - putting a text query together: words, phrases, operators.
 *
 * Words keep offsets while the bytes grow; finishing turns them into pointers. Loose words are
 * looked up in a hash table, so that each is there once.
 *
 * ERRORS   SQLITE_NOMEM
 *
 * SPDX-License-Identifier: MIT
 */
#include "sql_ask.h"

#include <string.h>

const int sql_field_columns[VEC_FIELDS] = {ST_COL_CONTENT, ST_COL_TAGS, ST_COL_SESSION};
const char *const sql_field_names[VEC_FIELDS] = {"content", "tags", "session"};

typedef struct loose {
    size_t word;
    unsigned fields;
    double weight;
} loose;

static void *grow(sql_list *l, size_t count, size_t size)
{
    if (l->room - l->n < count) {
        size_t room = l->room * 2 + count + 16;
        void *more = sqlite3_realloc64(l->p, room * size);
        if (!more) {
            return NULL;
        }
        l->p = more;
        l->room = room;
    }
    l->n += count;
    return (char *)l->p + (l->n - count) * size;
}

static void list_free(sql_list *l)
{
    sqlite3_free(l->p);
    memset(l, 0, sizeof *l);
}

void sql_ask_free(sql_ask *a)
{
    list_free(&a->bytes);
    list_free(&a->words);
    list_free(&a->offsets);
    list_free(&a->phrases);
    list_free(&a->ops);
    list_free(&a->loose);
    list_free(&a->slots);
    memset(a, 0, sizeof *a);
}

int sql_ask_word(sql_ask *a, const char *s, size_t n, int prefix, int colocated)
{
    size_t at = a->bytes.n;
    if (a->words.n >= SQL_ASK_WORDS_MAX) {
        return SQLITE_OK;
    }
    char *bytes = grow(&a->bytes, n, 1);
    size_t *offset = bytes ? grow(&a->offsets, 1, sizeof *offset) : NULL;
    vec_word *w = offset ? grow(&a->words, 1, sizeof *w) : NULL;
    if (!w) {
        return SQLITE_NOMEM;
    }
    memcpy(bytes, s, n);
    *offset = at;
    *w = (vec_word){NULL, (uint32_t)n, prefix, colocated};
    return SQLITE_OK;
}

int sql_ask_phrase(sql_ask *a, size_t first, unsigned fields, int initial, double weight)
{
    vec_phrase *p = grow(&a->phrases, 1, sizeof *p);
    if (!p) {
        return SQLITE_NOMEM;
    }
    *p = (vec_phrase){.word = (uint32_t)first,
                      .nword = (uint32_t)(a->words.n - first),
                      .fields = fields,
                      .initial = initial,
                      .weight = weight,
                      .group = 1};
    return SQLITE_OK;
}

int sql_ask_op(sql_ask *a, int op, size_t phrase)
{
    vec_op *o = grow(&a->ops, 1, sizeof *o);
    if (!o) {
        return SQLITE_NOMEM;
    }
    *o = (vec_op){op, (uint32_t)phrase};
    return SQLITE_OK;
}

/* ---------------------------------------------------------------------------------- loose words */

static size_t hash(const char *s, size_t n, int prefix)
{
    size_t h = 2166136261u + (size_t)prefix;
    for (size_t i = 0; i < n; i++) {
        h = (h ^ (unsigned char)s[i]) * 16777619u;
    }
    return h ^ h >> 15;
}

static const char *bytes_of(const sql_ask *a, const vec_word *w)
{
    return (const char *)a->bytes.p +
           ((const size_t *)a->offsets.p)[w - (const vec_word *)a->words.p];
}

/* The slot of a loose word, or the free one where it belongs. */
static uint32_t *find_slot(const sql_ask *a, const char *s, size_t n, int prefix)
{
    const loose *l = a->loose.p;
    const vec_word *words = a->words.p;
    uint32_t *slots = a->slots.p;
    for (size_t i = hash(s, n, prefix);; i++) {
        uint32_t *slot = &slots[i & (a->slots.n - 1)];
        const vec_word *w = *slot ? &words[l[*slot - 1].word] : NULL;
        if (!w ||
            (w->n == n && w->prefix == prefix && (n == 0 || memcmp(bytes_of(a, w), s, n) == 0))) {
            return slot;
        }
    }
}

/* Keeps a quarter of the slots free. */
static int grow_slots(sql_ask *a)
{
    const loose *l = a->loose.p;
    const vec_word *words = a->words.p;
    size_t n = a->slots.n ? 2 * a->slots.n : 64;
    if (a->slots.n && a->loose.n < a->slots.n / 4 * 3) {
        return SQLITE_OK;
    }
    uint32_t *slots = sqlite3_malloc64(n * sizeof *slots);
    if (!slots) {
        return SQLITE_NOMEM;
    }
    memset(slots, 0, n * sizeof *slots);
    list_free(&a->slots);
    a->slots = (sql_list){slots, n, n};
    for (size_t i = 0; i < a->loose.n; i++) {
        const vec_word *w = &words[l[i].word];
        *find_slot(a, bytes_of(a, w), w->n, w->prefix) = (uint32_t)(i + 1);
    }
    return SQLITE_OK;
}

int sql_ask_loose(sql_ask *a, const char *s, size_t n, int prefix, unsigned fields, double weight)
{
    size_t word = a->words.n;
    int rc = grow_slots(a);
    if (rc != SQLITE_OK) {
        return rc;
    }
    uint32_t *slot = find_slot(a, s, n, prefix);
    if (*slot) {
        loose *l = (loose *)a->loose.p + (*slot - 1);
        l->weight = weight > l->weight ? weight : l->weight;
        return SQLITE_OK;
    }
    rc = sql_ask_word(a, s, n, prefix, 0);
    if (rc != SQLITE_OK || a->words.n == word) {
        return rc;
    }
    loose *l = grow(&a->loose, 1, sizeof *l);
    if (!l) {
        return SQLITE_NOMEM;
    }
    *l = (loose){word, fields, weight};
    *slot = (uint32_t)a->loose.n;
    return SQLITE_OK;
}

/* ---------------------------------------------------------------------------------------- texts */

typedef struct adding {
    sql_ask *a;
    unsigned fields;
    double weight;
} adding;

static int on_loose(void *ctx, const char *s, size_t n, int colocated, int start, int end)
{
    adding *x = ctx;
    (void)colocated;
    (void)start;
    (void)end;
    return sql_ask_loose(x->a, s, n, 0, x->fields, x->weight);
}

int sql_ask_text(sql_ask *a, sql_tokenizer *tok, const char *s, size_t n, unsigned fields,
                 double weight)
{
    adding x = {a, fields, weight};
    return sql_tokenize_each(tok, SQL_TOKENS_QUERY, s, n, on_loose, &x);
}

/* ------------------------------------------------------------------------------------ finishing */

int sql_ask_finish(sql_ask *a)
{
    vec_word *words = a->words.p;
    const loose *l = a->loose.p;
    for (size_t i = 0; i < a->loose.n; i++) {
        vec_phrase *p = grow(&a->phrases, 1, sizeof *p);
        if (!p) {
            return SQLITE_NOMEM;
        }
        *p = (vec_phrase){.word = (uint32_t)l[i].word,
                          .nword = 1,
                          .fields = l[i].fields,
                          .weight = l[i].weight,
                          .group = 1};
    }
    for (size_t i = 0; i < a->words.n; i++) {
        words[i].s = bytes_of(a, &words[i]);
    }
    a->ask = (vec_ask){words, a->words.n, a->phrases.p, a->phrases.n, a->ops.p, a->ops.n};
    return SQLITE_OK;
}
