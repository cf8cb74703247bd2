/*
 * sql_doc.c - finding a query's phrases in one text, for marks and weights.
 *
 * The same as the index does for many rows (vec_match.c), for one: each token of the text is looked
 * up among the query's words, which are sorted; what is found is a pair of a place in a phrase and
 * a position. A phrase is where its places are found at successive positions.
 *
 * ERRORS   SQLITE_NOMEM; SQLITE_ERROR with `outside` set
 *
 * SPDX-License-Identifier: MIT
 */
#include "sql_doc.h"

#include <stdlib.h>
#include <string.h>

typedef struct place {
    const vec_word *word;
    uint32_t at; /* number of the place: all phrases' positions, one behind the other */
} place;

typedef struct pair {
    uint32_t at, pos;
    int end; /* of the token's bytes */
} pair;

typedef struct finder {
    sql_doc *d;
    const vec_ask *q;
    unsigned field;
    int every;    /* phrases that count for nothing, too */
    place *exact; /* sorted */
    size_t nexact;
    place *prefix;
    size_t nprefix;
    uint32_t nplace;
    uint32_t *first; /* of each phrase, its first place; nphrase + 1 */
    pair *pairs;
    size_t npair, pair_room;
    size_t *range; /* of each place, where its pairs begin; nplace + 1 */
    size_t word_room, instance_room;
} finder;

static int counts(const vec_phrase *p, unsigned field, int every)
{
    return (every || p->weight > 0) && (p->fields >> field & 1);
}

int sql_doc_wanted(const sql_ask *a, int field)
{
    for (size_t i = 0; i < a->ask.nphrase; i++) {
        if (counts(&a->ask.phrases[i], (unsigned)field, 0)) {
            return 1;
        }
    }
    return 0;
}

void sql_doc_free(sql_doc *d)
{
    sqlite3_free(d->words);
    sqlite3_free(d->instances);
    memset(d, 0, sizeof *d);
}

/* Room for one more. */
static int room(void **p, size_t n, size_t *have, size_t size)
{
    if (n < *have) {
        return 1;
    }
    size_t want = *have * 2 + 32;
    void *more = sqlite3_realloc64(*p, want * size);
    if (more) {
        *p = more;
        *have = want;
    }
    return more != NULL;
}

/* ---------------------------------------------------------------------------------- the query */

static int compare(const char *a, size_t na, const char *b, size_t nb)
{
    size_t n = na < nb ? na : nb;
    int order = n ? memcmp(a, b, n) : 0;
    return order ? order : (na > nb) - (na < nb);
}

static int by_bytes(const void *a, const void *b)
{
    const place *x = a, *y = b;
    return compare(x->word->s, x->word->n, y->word->s, y->word->n);
}

static int read_ask(finder *f)
{
    const vec_ask *q = f->q;
    f->exact = sqlite3_malloc64((q->nword + 1) * sizeof *f->exact);
    f->prefix = sqlite3_malloc64((q->nword + 1) * sizeof *f->prefix);
    f->first = sqlite3_malloc64((q->nphrase + 1) * sizeof *f->first);
    if (!f->exact || !f->prefix || !f->first) {
        return SQLITE_NOMEM;
    }
    for (size_t i = 0; i < q->nphrase; i++) {
        const vec_phrase *p = &q->phrases[i];
        f->first[i] = f->nplace;
        for (uint32_t k = 0; k < p->nword && counts(p, f->field, f->every); k++) {
            const vec_word *w = &q->words[p->word + k];
            f->nplace += k == 0 || !w->colocated;
            if (w->prefix) {
                f->prefix[f->nprefix++] = (place){w, f->nplace - 1};
            } else {
                f->exact[f->nexact++] = (place){w, f->nplace - 1};
            }
        }
    }
    f->first[q->nphrase] = f->nplace;
    qsort(f->exact, f->nexact, sizeof *f->exact, by_bytes);
    return SQLITE_OK;
}

/* ----------------------------------------------------------------------------------- the text */

static int add_pair(finder *f, uint32_t at, int end)
{
    if (!room((void **)&f->pairs, f->npair, &f->pair_room, sizeof *f->pairs)) {
        return SQLITE_NOMEM;
    }
    f->pairs[f->npair++] = (pair){at, (uint32_t)(f->d->nword - 1), end};
    return SQLITE_OK;
}

/* Pairs of the token at the last position. */
static int look_up(finder *f, const char *s, size_t n, int end)
{
    size_t lo = 0, hi = f->nexact;
    int rc = SQLITE_OK;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (compare(f->exact[mid].word->s, f->exact[mid].word->n, s, n) < 0) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    for (; lo < f->nexact && rc == SQLITE_OK &&
           compare(f->exact[lo].word->s, f->exact[lo].word->n, s, n) == 0;
         lo++) {
        rc = add_pair(f, f->exact[lo].at, end);
    }
    for (size_t i = 0; i < f->nprefix && rc == SQLITE_OK; i++) {
        const vec_word *w = f->prefix[i].word;
        if (w->n <= n && memcmp(w->s, s, w->n) == 0) {
            rc = add_pair(f, f->prefix[i].at, end);
        }
    }
    return rc;
}

static int on_word(void *ctx, const char *s, size_t n, int colocated, int start, int end)
{
    finder *f = ctx;
    sql_doc *d = f->d;
    if (start < 0 || end < start || (size_t)end > d->n) {
        d->outside = 1;
        return SQLITE_ERROR;
    }
    if (!colocated || d->nword == 0) {
        if (!room((void **)&d->words, d->nword, &f->word_room, sizeof *d->words)) {
            return SQLITE_NOMEM;
        }
        d->words[d->nword++] = (sql_doc_word){start, end};
    }
    return f->q ? look_up(f, s, n, end) : SQLITE_OK;
}

/* ------------------------------------------------------------------------------------ phrases */

static int by_place(const void *a, const void *b)
{
    const pair *x = a, *y = b;
    return x->at != y->at ? (x->at > y->at) - (x->at < y->at)
                          : (x->pos > y->pos) - (x->pos < y->pos);
}

/* Sorts the pairs, each once, and notes where those of each place begin. */
static int sort_pairs(finder *f)
{
    size_t kept = 0, i = 0;
    f->range = sqlite3_malloc64((f->nplace + 1) * sizeof *f->range);
    if (!f->range) {
        return SQLITE_NOMEM;
    }
    if (f->npair) {
        qsort(f->pairs, f->npair, sizeof *f->pairs, by_place);
    }
    for (size_t k = 0; k < f->npair; k++) {
        if (kept == 0 || by_place(&f->pairs[kept - 1], &f->pairs[k]) != 0) {
            f->pairs[kept++] = f->pairs[k];
        }
    }
    f->npair = kept;
    for (uint32_t at = 0; at <= f->nplace; at++) {
        f->range[at] = i;
        while (i < kept && f->pairs[i].at == at) {
            i++;
        }
    }
    return SQLITE_OK;
}

static const pair *find_pair(const finder *f, uint32_t at, uint32_t pos)
{
    pair key = {at, pos, 0};
    size_t n = f->range[at + 1] - f->range[at];
    return n ? bsearch(&key, f->pairs + f->range[at], n, sizeof key, by_place) : NULL;
}

/* Where phrase i begins; *out by sqlite3_malloc. */
static int starts(const finder *f, size_t i, uint32_t **out, size_t *n)
{
    uint32_t at = f->first[i], places = f->first[i + 1] - at;
    size_t from = places ? f->range[at] : 0, to = places ? f->range[at + 1] : 0;
    *n = 0;
    *out = sqlite3_malloc64((to - from + 1) * sizeof **out);
    if (!*out) {
        return SQLITE_NOMEM;
    }
    for (; from < to; from++) {
        uint32_t pos = f->pairs[from].pos, k = 1;
        if (f->q->phrases[i].initial && pos > 0) {
            break;
        }
        while (k < places && find_pair(f, at + k, pos + k)) {
            k++;
        }
        if (k == places) {
            (*out)[(*n)++] = pos;
        }
    }
    return SQLITE_OK;
}

static int add_instances(finder *f, size_t phrase, const uint32_t *pos, size_t n)
{
    sql_doc *d = f->d;
    uint32_t places = f->first[phrase + 1] - f->first[phrase];
    for (size_t i = 0; i < n; i++) {
        if (!room((void **)&d->instances, d->ninstance, &f->instance_room, sizeof *d->instances)) {
            return SQLITE_NOMEM;
        }
        sql_instance x = {pos[i], pos[i] + places, phrase, 0};
        for (uint32_t k = 0; k < places; k++) {
            const pair *p = find_pair(f, f->first[phrase] + k, pos[i] + k);
            x.end = p && p->end > x.end ? p->end : x.end;
        }
        d->instances[d->ninstance++] = x;
    }
    return SQLITE_OK;
}

/* The phrase, or the group of phrases, that begins with number i. */
static int find_group(finder *f, size_t i)
{
    const vec_phrase *p = &f->q->phrases[i];
    size_t n = p->group;
    uint32_t **pos = sqlite3_malloc64(n * sizeof *pos);
    size_t *count = sqlite3_malloc64(3 * n * sizeof *count);
    uint32_t *places = sqlite3_malloc64(n * sizeof *places);
    int rc = pos && count && places ? SQLITE_OK : SQLITE_NOMEM;
    for (size_t k = 0; k < n && pos; k++) {
        pos[k] = NULL;
    }
    for (size_t k = 0; k < n && rc == SQLITE_OK; k++) {
        places[k] = f->first[i + k + 1] - f->first[i + k];
        rc = starts(f, i + k, &pos[k], &count[k]);
    }
    if (n > 1 && rc == SQLITE_OK) {
        vec_near_trim(pos, count, places, n, p->near, count + n);
    }
    for (size_t k = 0; k < n && rc == SQLITE_OK; k++) {
        rc = add_instances(f, i + k, pos[k], count[k]);
    }
    for (size_t k = 0; k < n && pos; k++) {
        sqlite3_free(pos[k]);
    }
    sqlite3_free(pos);
    sqlite3_free(count);
    sqlite3_free(places);
    return rc;
}

static int by_from(const void *a, const void *b)
{
    const sql_instance *x = a, *y = b;
    return x->from != y->from ? (x->from > y->from) - (x->from < y->from)
           : x->to != y->to   ? (x->to > y->to) - (x->to < y->to)
                              : (x->phrase > y->phrase) - (x->phrase < y->phrase);
}

int sql_doc_find(sql_doc *d, sql_tokenizer *tok, const sql_ask *a, int field, int every)
{
    finder f = {.d = d, .q = a ? &a->ask : NULL, .field = (unsigned)field, .every = every};
    int rc = a ? read_ask(&f) : SQLITE_OK;
    if (rc == SQLITE_OK) {
        rc = sql_tokenize_each(tok, SQL_TOKENS_ROW, d->text, d->n, on_word, &f);
    }
    if (rc == SQLITE_OK && a) {
        d->nphrase = a->ask.nphrase;
        rc = sort_pairs(&f);
        for (size_t i = 0; i < d->nphrase && rc == SQLITE_OK; i++) {
            const vec_phrase *p = &a->ask.phrases[i];
            rc = p->group && counts(p, f.field, every) ? find_group(&f, i) : SQLITE_OK;
        }
        if (d->ninstance) {
            qsort(d->instances, d->ninstance, sizeof *d->instances, by_from);
        }
    }
    sqlite3_free(f.exact);
    sqlite3_free(f.prefix);
    sqlite3_free(f.first);
    sqlite3_free(f.pairs);
    sqlite3_free(f.range);
    return rc;
}

/* ------------------------------------------------------------------------------------ operators */

/* One operator of a query with what it has below it. */
typedef struct branch {
    int holds, marks;
    size_t left, right;
} branch;

int sql_ask_mixes(const sql_ask *a)
{
    int or_ = 0, other = 0;
    for (size_t i = 0; i < a->ask.nop; i++) {
        or_ |= a->ask.ops[i].op == VEC_OP_OR;
        other |= a->ask.ops[i].op == VEC_OP_AND || a->ask.ops[i].op == VEC_OP_NOT;
    }
    return or_ && other;
}

/* What holds, from the leaves up; the last operator is the root. */
static void hold(const vec_ask *q, const uint8_t *present, branch *b, size_t *stack)
{
    size_t depth = 0;
    for (size_t i = 0; i < q->nop; i++) {
        int op = q->ops[i].op;
        if (op == VEC_OP_PHRASE || op == VEC_OP_ALL || depth < 2) {
            b[i].holds = op == VEC_OP_ALL || present[q->ops[i].phrase];
        } else {
            b[i].right = stack[--depth];
            b[i].left = stack[--depth];
            int l = b[b[i].left].holds, r = b[b[i].right].holds;
            b[i].holds = op == VEC_OP_AND ? l && r : op == VEC_OP_OR ? l || r : l && !r;
        }
        stack[depth++] = i;
    }
}

int sql_ask_part(const sql_ask *a, const uint8_t *present, uint8_t *part)
{
    const vec_ask *q = &a->ask;
    branch *b = sqlite3_malloc64((q->nop + 1) * sizeof *b);
    size_t *stack = sqlite3_malloc64((q->nop + 1) * sizeof *stack);
    if (!b || !stack) {
        sqlite3_free(b);
        sqlite3_free(stack);
        return SQLITE_NOMEM;
    }
    memset(b, 0, (q->nop + 1) * sizeof *b);
    memset(part, 0, q->nphrase);
    hold(q, present, b, stack);
    if (q->nop) {
        b[q->nop - 1].marks = b[q->nop - 1].holds;
    }
    for (size_t i = q->nop; i-- > 0;) {
        int op = q->ops[i].op;
        if (op == VEC_OP_PHRASE) {
            const vec_phrase *p = &q->phrases[q->ops[i].phrase];
            memset(part + q->ops[i].phrase, b[i].marks, p->group);
        } else if (op != VEC_OP_ALL) {
            b[b[i].left].marks = b[i].marks && b[b[i].left].holds;
            b[b[i].right].marks = op != VEC_OP_NOT && b[i].marks && b[b[i].right].holds;
        }
    }
    sqlite3_free(b);
    sqlite3_free(stack);
    return SQLITE_OK;
}
