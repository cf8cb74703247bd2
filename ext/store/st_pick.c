/*
 * st_pick.c - leaving out rows that score too little or say the same, and spreading what is given.
 *
 * Rows come best first. mmr takes as many of them into a pool as may still have the largest value:
 * a row that has not come yet scores at most what the last one did, and can be unlike all that was
 * given.
 *
 * ERRORS   ST_NOMEM, and what reading a row gives
 *
 * SPDX-License-Identifier: MIT
 */
#include "st_search.h"

#include <math.h>
#include <stdlib.h>

/* ------------------------------------------------------------------------------------- likeness */

static void free_likeness(st_likeness *l)
{
    h5_free(l->vector);
    h5_free(l->words);
    *l = (st_likeness){0};
}

static int is_word_byte(uint8_t b)
{
    return (b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z') || (b >= '0' && b <= '9') || b >= 0x80;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static int read_words(const uint8_t *p, size_t n, st_likeness *out, st_error *err)
{
    size_t count = 0, kept = 0;
    for (size_t i = 0; i < n; i++) {
        count += is_word_byte(p[i]) && !(i && is_word_byte(p[i - 1]));
    }
    out->words = h5_alloc_array(count + 1, sizeof *out->words);
    if (!out->words) {
        return st_nomem(err);
    }
    for (size_t i = 0, w = 0; i < n; i++) {
        uint64_t h = 0xcbf29ce484222325u;
        if (!is_word_byte(p[i])) {
            continue;
        }
        for (; i < n && is_word_byte(p[i]); i++) {
            h = (h ^ (p[i] >= 'A' && p[i] <= 'Z' ? p[i] + 32u : p[i])) * 0x100000001b3u;
        }
        out->words[w++] = h;
    }
    qsort(out->words, count, sizeof *out->words, by_value);
    for (size_t i = 0; i < count; i++) {
        if (!kept || out->words[kept - 1] != out->words[i]) {
            out->words[kept++] = out->words[i];
        }
    }
    out->nword = kept;
    return ST_OK;
}

static int read_likeness(st_cursor *c, uint64_t row, st_likeness *out, st_error *err)
{
    const st_frozen *f = c->v->f;
    size_t dim = (size_t)f->gen->schema->dim;
    const float *x = NULL;
    st_value text;
    int rc = ST_OK;
    *out = (st_likeness){0};
    if (row >= f->nbase) {
        x = f->slot[row - f->nbase]->embedding;
        out->norm = f->slot[row - f->nbase]->norm;
    } else {
        ST_TRY(st_read_vector(&c->v->reader, row, &x, &out->norm, err));
    }
    if (x && out->norm > 0) {
        out->vector = h5_alloc_array(dim, sizeof *x);
        if (!out->vector) {
            return st_nomem(err);
        }
        memcpy(out->vector, x, dim * sizeof *x);
    }
    rc = st_view_value(c->v, row, ST_COL_CONTENT, &text, err);
    if (!rc && text.type == ST_TEXT) {
        rc = read_words(text.p, text.n, out, err);
    }
    if (rc) {
        free_likeness(out);
    }
    return rc;
}

static double likeness(const st_likeness *a, const st_likeness *b, size_t dim)
{
    double words = 0, vectors = 0;
    size_t i = 0, j = 0, both = 0;
    while (i < a->nword && j < b->nword) {
        both += a->words[i] == b->words[j];
        if (a->words[i] <= b->words[j]) {
            j += a->words[i] == b->words[j];
            i++;
        } else {
            j++;
        }
    }
    if (a->nword && b->nword) {
        words = (double)both / (double)(a->nword + b->nword - both);
    }
    if (a->vector && b->vector) {
        vectors = 1 - vec_distance(VEC_COSINE, a->vector, a->norm, b->vector, b->norm, dim);
        vectors = vectors > 0 ? vectors * vectors * vectors * vectors : 0;
    }
    return vectors > words ? vectors : words;
}

static int keep_given(st_cursor *c, st_likeness *l, st_error *err)
{
    st_pick *p = &c->pick;
    int rc = st_grow(&p->given, &p->cap_given, p->ngiven + 1, sizeof *p->given, err);
    if (rc) {
        free_likeness(l);
        return rc;
    }
    p->given[p->ngiven++] = *l;
    return ST_OK;
}

static size_t dim_of(const st_cursor *c)
{
    return (size_t)c->v->f->gen->schema->dim;
}

int st_pick_fresh(st_cursor *c, uint64_t row, st_error *err)
{
    st_pick *p = &c->pick;
    st_likeness l;
    ST_TRY(read_likeness(c, row, &l, err));
    for (size_t i = 0; i < p->ngiven; i++) {
        if (likeness(&p->given[i], &l, dim_of(c)) >= p->dedup) {
            free_likeness(&l);
            return 0;
        }
    }
    int rc = keep_given(c, &l, err);
    return rc ? rc : 1;
}

/* ------------------------------------------------------------------------------------ what comes
** */

/* The next row by score that scores enough. */
static int pull(st_cursor *c, vec_hit *out, st_error *err)
{
    st_pick *p = &c->pick;
    int rc = p->end ? 0 : st_blend_next(c, out, err);
    if (rc > 0 && p->has_min && -out->key < p->min_score) {
        rc = 0; // and nor will any later one
    }
    p->end |= rc == 0;
    return rc;
}

/* ------------------------------------------------------------------------------------------ mmr */

static double value_of(const st_pick *p, double score, double like)
{
    double relevance = p->best > 0 ? score / p->best : 0;
    return (1 - p->mmr) * relevance - p->mmr * like;
}

/* One more row into the pool; 0 when there is none. */
static int fill(st_cursor *c, st_error *err)
{
    st_pick *p = &c->pick;
    st_waiting w = {.like = 0};
    int rc = pull(c, &w.hit, err);
    if (rc <= 0) {
        return rc;
    }
    p->last = -w.hit.key;
    if (!p->started) {
        p->best = p->last;
        p->started = 1;
    }
    ST_TRY(st_grow(&p->pool, &p->cap_pool, p->npool + 1, sizeof *p->pool, err));
    ST_TRY(read_likeness(c, w.hit.row, &w.of, err));
    for (size_t i = 0; i < p->ngiven; i++) {
        double like = likeness(&p->given[i], &w.of, dim_of(c));
        w.like = like > w.like ? like : w.like;
    }
    p->pool[p->npool++] = w;
    return 1;
}

/* The row of the pool with the largest value; of equal ones the least id. */
static size_t choose(const st_pick *p, double *value)
{
    size_t at = 0;
    for (size_t i = 0; i < p->npool; i++) {
        double v = value_of(p, -p->pool[i].hit.key, p->pool[i].like);
        if (i == 0 || v > *value || (v == *value && p->pool[i].hit.id < p->pool[at].hit.id)) {
            at = i;
            *value = v;
        }
    }
    return at;
}

static void hand_out(st_cursor *c, size_t at)
{
    st_pick *p = &c->pick;
    const st_likeness *new = &p->given[p->ngiven - 1];
    p->pool[at] = p->pool[--p->npool];
    for (size_t i = 0; i < p->npool; i++) {
        double like = likeness(new, &p->pool[i].of, dim_of(c));
        p->pool[i].like = like > p->pool[i].like ? like : p->pool[i].like;
    }
}

static int next_spread(st_cursor *c, vec_hit *out, st_error *err)
{
    st_pick *p = &c->pick;
    double value = 0;
    size_t at;
    for (;;) {
        int more = 1;
        at = choose(p, &value);
        while (!p->end && more > 0 && !(p->npool && value > value_of(p, p->last, 0))) {
            more = fill(c, err);
            at = choose(p, &value);
        }
        if (more < 0 || !p->npool) {
            return more < 0 ? more : 0;
        }
        if (p->dedup > 0 && p->pool[at].like >= p->dedup) {
            free_likeness(&p->pool[at].of);
            p->pool[at] = p->pool[--p->npool];
            continue;
        }
        break;
    }
    *out = p->pool[at].hit;
    p->value = value;
    p->like = p->pool[at].like;
    out->key = -value;
    ST_TRY(keep_given(c, &p->pool[at].of, err));
    hand_out(c, at);
    return 1;
}

int st_pick_next(st_cursor *c, vec_hit *out, st_error *err)
{
    st_pick *p = &c->pick;
    if (p->mmr > 0) {
        return next_spread(c, out, err);
    }
    for (;;) {
        int rc = pull(c, out, err), fresh;
        if (rc <= 0 || !(p->dedup > 0)) {
            return rc;
        }
        fresh = st_pick_fresh(c, out->row, err);
        if (fresh) {
            return fresh;
        }
    }
}

void st_pick_close(st_cursor *c)
{
    st_pick *p = &c->pick;
    for (size_t i = 0; i < p->ngiven; i++) {
        free_likeness(&p->given[i]);
    }
    for (size_t i = 0; i < p->npool; i++) {
        free_likeness(&p->pool[i].of);
    }
    h5_free(p->given);
    h5_free(p->pool);
}
