/*
 * t_model.c - the naive table of t_model.h
 *
 * SPDX-License-Identifier: MIT
 */
#include "t_model.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "vec.h"

enum { WORDS = 40, TOKEN_ROOM = 1 << 16 };

static void *must(void *p)
{
    if (!p) {
        fprintf(stderr, "t_model: no memory\n");
        exit(2);
    }
    return p;
}

/* ----------------------------------------------------------------------------------------- rows */

static size_t word(t_rng *r, char *out)
{
    // Low numbers come often, as words do.
    uint64_t k = t_rng_below(r, 1 + t_rng_below(r, WORDS));
    return (size_t)sprintf(out, "w%d", (int)k);
}

/* Words, at most max of them. */
static size_t words(t_rng *r, char *out, uint64_t max)
{
    size_t n = 0;
    for (uint64_t i = t_rng_below(r, max + 1); i-- > 0;) {
        n += word(r, out + n);
        out[n++] = ' ';
    }
    return n ? n - 1 : 0;
}

st_value t_text_random(t_rng *r, int type, char *out)
{
    size_t n = 0;
    switch (t_rng_below(r, 12)) {
    case 0:
    case 1:
        return t_null();
    case 2:
        break; // empty
    case 3:
        n = t_rng_below(r, 4); // nothing but NULs
        memset(out, 0, n);
        break;
    case 4:
        n = 1 + t_rng_below(r, 20);
        t_rng_fill(r, out, n);
        if (type == ST_TEXT)
            for (size_t i = 0; i < n; i++)
                out[i] = (char)(i ? out[i] & 0x7f : 0);
        break;
    case 5:
        n = words(r, out, t_rng_below(r, 40) ? 60 : 6000);
        break;
    default:
        n = words(r, out, 8);
    }
    return t_bytes(type, out, n);
}

static int64_t whole(t_rng *r)
{
    static const int64_t border[] = {0,
                                     1,
                                     -1,
                                     ((int64_t)1 << 53) - 1,
                                     (int64_t)1 << 53,
                                     ((int64_t)1 << 53) + 1,
                                     -((int64_t)1 << 53) - 1,
                                     INT64_MAX,
                                     INT64_MAX - 1,
                                     INT64_MIN + 1};
    return t_rng_below(r, 3) ? (int64_t)t_rng_below(r, 20) - 5
                             : border[t_rng_below(r, sizeof border / sizeof *border)];
}

static double real(t_rng *r)
{
    static const double border[] = {0.0,
                                    -0.0,
                                    0.5,
                                    1e300,
                                    -1e300,
                                    9007199254740992.0,
                                    9007199254740994.0,
                                    9223372036854775808.0,
                                    -9223372036854775808.0,
                                    DBL_MIN,
                                    DBL_MAX};
    return t_rng_below(r, 3) ? (double)t_rng_below(r, 40) / 4 - 3
                             : border[t_rng_below(r, sizeof border / sizeof *border)];
}

st_value t_number_random(t_rng *r, int type)
{
    if (t_rng_below(r, 4) == 0)
        return t_null();
    return type == ST_INT || t_rng_below(r, 3) == 0 ? t_int(whole(r)) : t_real(real(r));
}

static st_value source_value(t_rng *r)
{
    static const char *const known[] = {"user",      "assistant",  "system", "tool",
                                        "retrieval", "correction", NULL};
    const char *s = known[t_rng_below(r, 7)];
    return s ? t_text(s) : t_null();
}

static st_value tier_value(t_rng *r)
{
    static const char *const known[] = {"working", "episodic", "semantic", NULL};
    const char *s = known[t_rng_below(r, 4)];
    return s ? t_text(s) : t_null();
}

/* What the store makes of a value that was given. */
static st_value canonical(int col, st_value v)
{
    int is_real = (col >= ST_COL_IMPORTANCE && col <= ST_COL_ACTIVATION) ||
                  (col >= ST_COL_LAST_ACCESS && col <= ST_COL_VALID_TO) ||
                  col == ST_COL_TIMESTAMP || col == T_COL_RATIO;
    if (v.type == ST_NULL) {
        switch (col) {
        case ST_COL_TIER:
            return t_text("working");
        case ST_COL_IMPORTANCE:
            return t_real(0.5);
        case ST_COL_ACTIVATION:
            return t_real(1.0);
        case ST_COL_ACCESS_COUNT:
        case ST_COL_PINNED:
            return t_int(0);
        default:
            return v;
        }
    }
    return is_real && v.type == ST_INT ? t_real((double)v.i) : v;
}

/* One allocation for a row with these values. */
static t_mrow *make(const st_value *given, int64_t id, size_t dim)
{
    size_t bytes = TOKEN_ROOM;
    uint8_t *tokens = must(malloc(TOKEN_ROOM)), *at;
    size_t ntokens = 0;
    t_mrow *row;
    const st_value *content = &given[ST_COL_CONTENT];
    if (content->type == ST_TEXT)
        ntokens = t_tokens(content->p, content->n, tokens);
    bytes = ntokens;
    for (int c = 0; c < T_NCOL; c++)
        if (given[c].type >= ST_TEXT)
            bytes += given[c].n + 8;
    row = must(calloc(1, sizeof *row + bytes + 8));
    at = (uint8_t *)(row + 1);
    row->refs = 1;
    row->id = id;
    row->norm = NAN;
    for (int c = 0; c < T_NCOL; c++) {
        st_value *v = &row->given[c];
        *v = given[c];
        if (v->type >= ST_TEXT) {
            memcpy(at, given[c].p, v->n);
            v->p = at;
            at += (v->n + 7) & ~(size_t)7;
        }
        row->v[c] = canonical(c, *v);
    }
    row->given[ST_COL_ID] = row->v[ST_COL_ID] = t_int(id);
    if (given[ST_COL_EMBEDDING].type == ST_BLOB)
        row->norm = vec_norm_f32(row->v[ST_COL_EMBEDDING].p, dim);
    memcpy(at, tokens, ntokens);
    row->tokens = at;
    row->ntokens = ntokens;
    free(tokens);
    return row;
}

static st_value vector(t_rng *r, size_t dim, float *out)
{
    uint64_t kind = t_rng_below(r, 10);
    if (kind == 0)
        return t_null();
    for (size_t i = 0; i < dim; i++)
        out[i] = kind == 1 ? 0 : kind == 2 ? (float)t_rng_below(r, 3) : t_rng_normal(r);
    return t_bytes(ST_BLOB, out, dim * sizeof *out);
}

t_mrow *t_mrow_random(t_rng *r, size_t dim, int64_t id)
{
    st_value g[T_NCOL];
    char *room = must(malloc((size_t)6 * T_LONG_TEXT));
    float *vec = must(malloc(dim * sizeof *vec));
    t_mrow *row;
    g[ST_COL_ID] = t_int(id);
    g[ST_COL_CONTENT] = t_text_random(r, ST_TEXT, room);
    g[ST_COL_EMBEDDING] = vector(r, dim, vec);
    g[ST_COL_TIMESTAMP] = t_rng_below(r, 3) ? t_real(real(r)) : t_int(whole(r));
    g[ST_COL_SESSION] = t_text_random(r, ST_TEXT, room + T_LONG_TEXT);
    g[ST_COL_CHANNEL] = t_rng_below(r, 2) ? t_text("chat") : t_null();
    g[ST_COL_TAGS] = t_text_random(r, ST_TEXT, room + 2 * T_LONG_TEXT);
    g[ST_COL_SOURCE] = source_value(r);
    g[ST_COL_TIER] = tier_value(r);
    g[ST_COL_IMPORTANCE] = t_rng_below(r, 2) ? t_real((double)t_rng_below(r, 5) / 4) : t_null();
    g[ST_COL_ACTIVATION] = t_rng_below(r, 3) ? t_null() : t_real((double)t_rng_below(r, 5));
    g[ST_COL_ACCESS_COUNT] = t_rng_below(r, 3) ? t_null() : t_int((int64_t)t_rng_below(r, 5));
    g[ST_COL_LAST_ACCESS] = t_number_random(r, ST_REAL);
    g[ST_COL_VALID_FROM] = t_rng_below(r, 3) ? t_null() : t_int((int64_t)t_rng_below(r, 10));
    g[ST_COL_VALID_TO] = t_rng_below(r, 4) ? t_null() : t_int((int64_t)t_rng_below(r, 10));
    g[ST_COL_SUPERSEDED_BY] = t_number_random(r, ST_INT);
    g[ST_COL_PINNED] = t_rng_below(r, 3) ? t_null() : t_int((int64_t)t_rng_below(r, 2));
    g[T_COL_USER_ID] = t_text_random(r, ST_TEXT, room + 3 * T_LONG_TEXT);
    g[T_COL_PRIORITY] = t_number_random(r, ST_INT);
    g[T_COL_RATIO] = t_number_random(r, ST_REAL);
    g[T_COL_RAW] = t_text_random(r, ST_BLOB, room + 4 * T_LONG_TEXT);
    row = make(g, id, dim);
    free(room);
    free(vec);
    return row;
}

t_mrow *t_mrow_merge(const t_mrow *old, const t_mrow *other, const uint8_t *changed, size_t dim)
{
    st_value g[T_NCOL];
    for (int c = 0; c < T_NCOL; c++)
        g[c] = changed[c] ? other->given[c] : old->v[c];
    return make(g, changed[ST_COL_ID] ? other->id : old->id, dim);
}

void t_mrow_unref(t_mrow *r)
{
    if (r && !--r->refs)
        free(r);
}

st_row t_mrow_row(const t_mrow *r)
{
    return (st_row){r->given, r->tokens, r->ntokens};
}

/* --------------------------------------------------------------------------------------- tables */

t_table *t_table_new(size_t dim, int metric)
{
    t_table *t = must(calloc(1, sizeof *t));
    t->dim = dim;
    t->metric = metric;
    return t;
}

t_table *t_table_copy(const t_table *t)
{
    t_table *c = t_table_new(t->dim, t->metric);
    c->n = c->cap = t->n;
    c->row = must(malloc((t->n + 1) * sizeof *c->row));
    for (size_t i = 0; i < t->n; i++) {
        c->row[i] = t->row[i];
        c->row[i]->refs++;
    }
    c->evicted = must(malloc((t->nevicted + 1) * sizeof *c->evicted));
    for (; c->nevicted < t->nevicted; c->nevicted++) {
        c->evicted[c->nevicted] = t->evicted[c->nevicted];
        c->evicted[c->nevicted]->refs++;
    }
    for (int side = 0; side < ST_SIDES; side++) {
        c->record[side] = must(malloc((t->nrecord[side] + 1) * sizeof(t_record *)));
        for (size_t i = 0; i < t->nrecord[side]; i++) {
            c->record[side][i] = t->record[side][i];
            c->record[side][i]->refs++;
        }
        c->nrecord[side] = t->nrecord[side];
    }
    return c;
}

void t_table_free(t_table *t)
{
    for (size_t i = 0; t && i < t->n; i++)
        t_mrow_unref(t->row[i]);
    if (t) {
        for (int side = 0; side < ST_SIDES; side++) {
            for (size_t i = 0; i < t->nrecord[side]; i++)
                t_record_unref(t->record[side][i]);
            free(t->record[side]);
        }
        t_table_compact(t);
        free(t->evicted);
        free(t->row);
    }
    free(t);
}

/* First position whose id is not below id. */
static size_t position(const t_table *t, int64_t id)
{
    size_t lo = 0, hi = t->n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (t->row[mid]->id < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

t_mrow *t_table_find(const t_table *t, int64_t id)
{
    size_t i = position(t, id);
    return i < t->n && t->row[i]->id == id ? t->row[i] : NULL;
}

t_mrow *t_table_evicted(const t_table *t, int64_t id)
{
    for (size_t i = 0; i < t->nevicted; i++)
        if (t->evicted[i]->id == id)
            return t->evicted[i];
    return NULL;
}

void t_table_forget(t_table *t, int64_t id)
{
    size_t k = 0;
    for (size_t i = 0; i < t->nevicted; i++) {
        if (t->evicted[i]->id == id)
            t_mrow_unref(t->evicted[i]);
        else
            t->evicted[k++] = t->evicted[i];
    }
    t->nevicted = k;
}

void t_table_compact(t_table *t)
{
    while (t->nevicted)
        t_mrow_unref(t->evicted[--t->nevicted]);
}

static void hide(t_table *t, int64_t id)
{
    t_mrow *r = t_table_find(t, id);
    if (!r)
        return;
    t->evicted = must(realloc(t->evicted, (t->nevicted + 1) * sizeof *t->evicted));
    t->evicted[t->nevicted++] = r;
    r->refs++;
    t_table_remove(t, id);
}

void t_table_set(t_table *t, t_mrow *r)
{
    size_t i = position(t, r->id);
    t_table_forget(t, r->id);
    if (i < t->n && t->row[i]->id == r->id) {
        t_mrow_unref(t->row[i]);
        t->row[i] = r;
        return;
    }
    if (t->n == t->cap) {
        t->cap = t->cap * 2 + 8;
        t->row = must(realloc(t->row, (t->cap + 1) * sizeof *t->row));
    }
    memmove(t->row + i + 1, t->row + i, (t->n - i) * sizeof *t->row);
    t->row[i] = r;
    t->n++;
}

void t_table_remove(t_table *t, int64_t id)
{
    size_t i = position(t, id);
    if (i < t->n && t->row[i]->id == id) {
        t_mrow_unref(t->row[i]);
        t->n--;
        memmove(t->row + i, t->row + i + 1, (t->n - i) * sizeof *t->row);
    }
}

static int same_row(const t_mrow *a, const t_mrow *b)
{
    int same = a && b;
    for (int c = 0; c < T_NCOL && same; c++)
        same = t_same(&a->v[c], &b->v[c]);
    return same;
}

int t_table_same(const t_table *a, const t_table *b)
{
    if (a->n != b->n || a->nevicted != b->nevicted)
        return 0;
    for (size_t i = 0; i < a->n; i++)
        if (!same_row(a->row[i], b->row[i]))
            return 0;
    for (size_t i = 0; i < a->nevicted; i++)
        if (!same_row(a->evicted[i], t_table_evicted(b, a->evicted[i]->id)))
            return 0;
    return t_records_same(a, b);
}

void t_table_evict(t_table *t, int64_t id, int64_t seq)
{
    const t_mrow *r = t_table_find(t, id);
    if (r)
        t_record_set(t, t_record_eviction(r, seq));
    hide(t, id);
}

/* A row as a view shows it; texts are copied as each is read. */
static t_mrow *row_of(st_view *v, uint64_t row, size_t dim, st_error *err)
{
    st_value g[T_NCOL];
    uint8_t *copy[T_NCOL] = {NULL};
    t_mrow *out = NULL;
    int rc = ST_OK;
    for (int c = 0; c < T_NCOL && !rc; c++) {
        rc = st_view_value(v, row, c, &g[c], err);
        if (!rc && g[c].type >= ST_TEXT) {
            copy[c] = must(malloc(g[c].n + 8));
            memcpy(copy[c], g[c].p, g[c].n);
            g[c].p = copy[c];
        }
    }
    if (!rc)
        out = make(g, g[ST_COL_ID].i, dim);
    for (int c = 0; c < T_NCOL; c++)
        free(copy[c]);
    return out;
}

t_table *t_table_of(st_view *v, size_t dim, int metric, st_error *err)
{
    st_query q = {.order = ST_ORDER_BEST, .k = -1};
    st_cursor *cur;
    t_table *t = t_table_new(dim, metric);
    int rc = st_search(v, &q, &cur, err);
    size_t rows = 0;
    while (!rc && (rc = st_cursor_next(cur, err)) > 0) {
        t_mrow *r = row_of(v, st_cursor_row(cur), dim, err);
        rc = r ? ST_OK : ST_CORRUPT;
        if (r)
            t_table_set(t, r);
        rows++;
    }
    if (!err->code)
        st_cursor_close(cur);
    else if (cur)
        st_cursor_close(cur);
    if (!rc && rows != t->n)
        rc = st_fail(err, ST_CORRUPT, "an id came twice");
    for (uint64_t at = 0; !rc && (rc = st_evicted_next(v, at, &at, err)) == ST_OK; at++) {
        t_mrow *r = row_of(v, at, dim, err);
        rc = r ? ST_OK : ST_CORRUPT;
        if (r) {
            t_table_set(t, r);
            hide(t, r->id);
        }
    }
    rc = rc == ST_NOTFOUND ? ST_OK : rc;
    rc = rc ? rc : t_records_of(v, t, err);
    if (rc) {
        t_table_free(t);
        return NULL;
    }
    return t;
}

/* ------------------------------------------------------------------------------------ questions */

st_term t_term_random(t_rng *r, const t_table *t, st_value *list)
{
    static const int ops[] = {ST_EQ, ST_NE, ST_LT,     ST_LE,     ST_GT,
                              ST_GE, ST_IN, ST_ISNULL, ST_NOTNULL};
    st_term term = {.col = (int)t_rng_below(r, T_NCOL), .op = ops[t_rng_below(r, 9)]};
    st_value some[4];
    for (int i = 0; i < 4; i++) {
        some[i] = t->n && t_rng_below(r, 6) ? t->row[t_rng_below(r, t->n)]->v[term.col]
                                            : t_int(whole(r));
        // A number column is never compared with a text, nor the other way round.
        int numeric = term.col == ST_COL_ID || term.col == ST_COL_TIMESTAMP ||
                      (term.col >= ST_COL_IMPORTANCE && term.col <= ST_COL_PINNED) ||
                      term.col == T_COL_PRIORITY || term.col == T_COL_RATIO;
        if (some[i].type == ST_NULL)
            some[i] = t_int(whole(r));
        if (!numeric && some[i].type == ST_INT)
            some[i] = term.col == ST_COL_EMBEDDING || term.col == T_COL_RAW
                          ? t_bytes(ST_BLOB, "w1", 2)
                          : t_text("w1");
        if (numeric && some[i].type == ST_INT && t_rng_below(r, 3) == 0)
            some[i] = t_real(t_rng_below(r, 2) ? (double)some[i].i : real(r));
        list[i] = some[i];
    }
    term.value = some[0];
    term.list = list;
    term.nlist = term.op == ST_IN ? t_rng_below(r, 5) : 0;
    return term;
}

size_t t_query_random(t_rng *r, uint8_t *tokens, size_t room)
{
    char buf[64];
    size_t n = words(r, buf, 3);
    assert_true(room >= 2 * n + 8);
    return t_tokens(buf, n, tokens);
}

/* -------------------------------------------------------------------------------------- answers */

typedef struct hit {
    const t_mrow *row;
    double key, distance, rank, score;
} hit;

static int order_of(double a, double b, const t_mrow *x, const t_mrow *y)
{
    return a != b ? (a < b ? -1 : 1) : x->id < y->id ? -1 : x->id > y->id;
}

static int by_key(const void *a, const void *b)
{
    const hit *x = a, *y = b;
    return order_of(x->key, y->key, x->row, y->row);
}

/* Rows that the terms and the time admit. */
static int admitted(const st_query *q, const t_mrow *row)
{
    const st_value *from = &row->v[ST_COL_VALID_FROM], *to = &row->v[ST_COL_VALID_TO];
    for (size_t i = 0; i < q->nterm; i++)
        if (q->terms[i].col < T_NCOL && !t_holds(&q->terms[i], &row->v[q->terms[i].col]))
            return 0;
    if (q->has_as_of)
        return !(from->type && from->r > q->as_of) && !(to->type && to->r <= q->as_of);
    return (!q->vector && !q->has_text) || to->type == ST_NULL;
}

/* BM25 of every row, 0 where it has none. */
static double *bm25(const t_table *t, const st_query *q)
{
    vec_text *index;
    vec_source src = {0};
    vec_hit *hits;
    size_t n;
    uint64_t *live = must(calloc(t->n / 64 + 1, 8));
    double *out = must(calloc(t->n + 1, sizeof *out));
    assert_int_equal(vec_text_new(&index), VEC_OK);
    for (size_t i = 0; i < t->n; i++) {
        st_bit_set(live, i);
        if (t->row[i]->ntokens)
            assert_int_equal(vec_text_add(index, i, t->row[i]->tokens, t->row[i]->ntokens), VEC_OK);
    }
    src.text = index;
    vec_bm25_args a = {.sources = &src,
                       .nsource = 1,
                       .query = q->tokens,
                       .nquery = q->ntokens,
                       .live = live,
                       .nrow = t->n,
                       .k1 = VEC_BM25_K1,
                       .b = VEC_BM25_B};
    assert_int_equal(vec_bm25(&a, &hits, &n), VEC_OK);
    for (size_t i = 0; i < n; i++)
        out[hits[i].row] = hits[i].key;
    vec_free(hits);
    vec_text_free(index);
    free(live);
    return out;
}

/* Positions of a ranking, from 1, by row of the table; 0 where it is not in it. */
static void positions(hit *h, size_t n, const t_table *t, size_t *out)
{
    qsort(h, n, sizeof *h, by_key);
    for (size_t i = 0; i < n; i++)
        out[position(t, h[i].row->id)] = i + 1;
}

/* Fuses two rankings. */
static size_t fuse(const t_table *t, const st_query *q, hit *vec, size_t nv, hit *txt, size_t nt,
                   hit *out)
{
    size_t n = 0, *pv = must(calloc(t->n + 1, sizeof *pv)),
           *pt = must(calloc(t->n + 1, sizeof *pt));
    double *dist = must(calloc(t->n + 1, sizeof *dist)),
           *rank = must(calloc(t->n + 1, sizeof *rank));
    positions(vec, nv, t, pv);
    positions(txt, nt, t, pt);
    for (size_t i = 0; i < nv; i++)
        dist[position(t, vec[i].row->id)] = vec[i].key;
    for (size_t i = 0; i < nt; i++)
        rank[position(t, txt[i].row->id)] = txt[i].key;
    for (size_t i = 0; i < t->n; i++) {
        double score = 0;
        if (!pv[i] && !pt[i])
            continue;
        score += pv[i] ? q->vector_weight / (q->rrf_k + (double)pv[i]) : 0;
        score += pt[i] ? q->text_weight / (q->rrf_k + (double)pt[i]) : 0;
        out[n++] = (hit){t->row[i], -score, pv[i] ? dist[i] : NAN, pt[i] ? rank[i] : NAN, score};
    }
    free(pv);
    free(pt);
    free(dist);
    free(rank);
    return n;
}

/* What a search is to give, in order. */
static size_t expect(const t_table *t, const st_query *q, hit *out)
{
    hit *vec = must(calloc(t->n + 1, sizeof *vec)), *txt = must(calloc(t->n + 1, sizeof *txt));
    size_t nv = 0, nt = 0, n;
    float qnorm = q->vector ? vec_norm_f32(q->vector, t->dim) : 0;
    double *score = q->has_text ? bm25(t, q) : NULL;
    for (size_t i = 0; i < t->n; i++) {
        t_mrow *row = t->row[i];
        if (!admitted(q, row))
            continue;
        if (q->vector && row->v[ST_COL_EMBEDDING].type) {
            double d = vec_distance(t->metric, q->vector, qnorm, row->v[ST_COL_EMBEDDING].p,
                                    row->norm, t->dim);
            double s = t->metric == VEC_IP ? -d : 1 / (1 + d);
            vec[nv++] = (hit){row, d, d, NAN, s};
        }
        if (q->has_text && score[i] != 0)
            txt[nt++] = (hit){row, score[i], NAN, score[i], -score[i]};
        if (!q->vector && !q->has_text)
            txt[nt++] = (hit){row, 0, NAN, NAN, NAN};
    }
    if (q->vector && q->has_text) {
        n = fuse(t, q, vec, nv, txt, nt, out);
    } else {
        n = q->vector ? nv : nt;
        memcpy(out, q->vector ? vec : txt, n * sizeof *out);
    }
    for (size_t i = 0; i < n && q->order == ST_ORDER_WORST; i++)
        out[i].key = -out[i].key;
    qsort(out, n, sizeof *out, by_key);
    free(vec);
    free(txt);
    free(score);
    return n;
}

/* ----------------------------------------------------------------------------------- comparison */

static void check_value(st_view *v, uint64_t row, const t_mrow *want, int col)
{
    st_value have;
    st_error err = {0, ""};
    t_ok(&err, st_view_value(v, row, col, &have, &err));
    if (!t_same(&have, &want->v[col]))
        fail_msg("row %lld, column %d: type %d %lld %.17g %zu bytes; expected %d %lld %.17g %zu",
                 (long long)want->id, col, have.type, (long long)have.i, have.r, have.n,
                 want->v[col].type, (long long)want->v[col].i, want->v[col].r, want->v[col].n);
}

static void same_number(const char *what, double have, double want, double slack, int64_t id)
{
    if (isnan(have) && isnan(want))
        return;
    if (!(fabs(have - want) <= slack * fabs(want)))
        fail_msg("row %lld: %s is %.17g, expected %.17g", (long long)id, what, have, want);
}

/* A search against what is expected; fused scores may differ in the last bits, and then order. */
static void check_search(st_view *v, const t_table *t, const st_query *q)
{
    hit *want = must(calloc(t->n + 1, sizeof *want));
    size_t n = expect(t, q, want), i = 0;
    double slack = q->vector && q->has_text ? 1e-12 : 0;
    st_cursor *cur;
    st_error err = {0, ""};
    int rc;
    n = q->k >= 0 && (size_t)q->k < n ? (size_t)q->k : n;
    t_ok(&err, st_search(v, q, &cur, &err));
    for (; (rc = st_cursor_next(cur, &err)) > 0; i++) {
        st_value id;
        t_ok(&err, st_view_value(v, st_cursor_row(cur), ST_COL_ID, &id, &err));
        if (i >= n)
            fail_msg("row %lld comes after the %zu rows expected", (long long)id.i, n);
        if (id.i != want[i].row->id)
            fail_msg("place %zu of %zu: row %lld, expected %lld (keys %.17g, %.17g)", i, n,
                     (long long)id.i, (long long)want[i].row->id, st_cursor_score(cur),
                     want[i].score);
        same_number("distance", st_cursor_distance(cur), want[i].distance, 0, id.i);
        same_number("rank", st_cursor_rank(cur), want[i].rank, 0, id.i);
        same_number("score", st_cursor_score(cur), want[i].score, slack, id.i);
    }
    t_ok(&err, rc);
    if (i != n)
        fail_msg("%zu rows, expected %zu", i, n);
    st_cursor_close(cur);
    free(want);
}

/* A scan: the rows, each once, in the order asked for. */
static void check_scan(st_view *v, const t_table *t, const st_query *q, int values)
{
    st_cursor *cur;
    st_error err = {0, ""};
    size_t n = 0, seen = 0;
    int64_t last = 0;
    int rc;
    for (size_t i = 0; i < t->n; i++)
        n += (size_t)admitted(q, t->row[i]);
    t_ok(&err, st_search(v, q, &cur, &err));
    while ((rc = st_cursor_next(cur, &err)) > 0) {
        st_value id;
        const t_mrow *row;
        t_ok(&err, st_view_value(v, st_cursor_row(cur), ST_COL_ID, &id, &err));
        row = t_table_find(t, id.i);
        if (!row || !admitted(q, row))
            fail_msg("row %lld is not expected", (long long)id.i);
        if (seen && ((q->order == ST_ORDER_ID && id.i <= last) ||
                     (q->order == ST_ORDER_ID_DESC && id.i >= last)))
            fail_msg("row %lld comes after %lld", (long long)id.i, (long long)last);
        for (int c = 0; c < T_NCOL && values; c++)
            check_value(v, st_cursor_row(cur), row, c);
        last = id.i;
        seen++;
    }
    t_ok(&err, rc);
    if (seen != n)
        fail_msg("%zu rows of a scan, expected %zu (first term: column %d, op %d)", seen, n,
                 q->nterm ? q->terms[0].col : -1, q->nterm ? q->terms[0].op : 0);
    st_cursor_close(cur);
}

static void check_find(st_view *v, const t_table *t, t_rng *r)
{
    st_error err = {0, ""};
    uint64_t row;
    for (int i = 0; i < 8; i++) {
        int64_t id = t->n && i < 6 ? t->row[t_rng_below(r, t->n)]->id + (i == 5)
                                   : (int64_t)t_rng_below(r, 500) - 10;
        const t_mrow *want = t_table_find(t, id);
        int rc = st_view_find(v, id, &row, &err);
        if (rc != (want ? ST_OK : ST_NOTFOUND))
            fail_msg("finding row %lld: %d %s", (long long)id, rc, err.text);
        if (want)
            check_value(v, row, want, (int)t_rng_below(r, T_NCOL));
        err.code = ST_OK;
    }
}

/* Evicted rows: each by its id, and all of them in a row. */
static void check_evicted(st_view *v, const t_table *t)
{
    st_error err = {0, ""};
    uint64_t at = 0, row;
    size_t n = 0;
    int rc = st_evicted_next(v, at, &at, &err);
    if (rc == ST_MISUSE)
        return;
    for (; rc == ST_OK; n++, rc = st_evicted_next(v, at + 1, &at, &err)) {
        st_value id;
        const t_mrow *want;
        t_ok(&err, st_view_value(v, at, ST_COL_ID, &id, &err));
        want = t_table_evicted(t, id.i);
        if (!want)
            fail_msg("row %lld is not among the evicted", (long long)id.i);
        t_ok(&err, st_evicted_find(v, id.i, &row, &err));
        if (row != at)
            fail_msg("evicted row %lld is at %llu and %llu", (long long)id.i,
                     (unsigned long long)at, (unsigned long long)row);
        for (int c = 0; c < T_NCOL; c++)
            check_value(v, at, want, c);
    }
    assert_int_equal(rc, ST_NOTFOUND);
    if (n != t->nevicted)
        fail_msg("%zu evicted rows, expected %zu", n, t->nevicted);
    for (size_t i = 0; i < t->n && i < 4; i++)
        assert_int_equal(st_evicted_find(v, t->row[i]->id, &row, &err), ST_NOTFOUND);
}

static void random_search(st_view *v, const t_table *t, t_rng *r)
{
    st_value list[2][4];
    st_term terms[2];
    uint8_t tokens[256];
    float *vec = must(malloc(t->dim * sizeof *vec));
    st_query q = {.terms = terms,
                  .nterm = t_rng_below(r, 3),
                  .tokens = tokens,
                  .k = t_rng_below(r, 3) ? -1 : (int64_t)t_rng_below(r, 12),
                  .hint = t_rng_below(r, 2) ? 0 : t_rng_below(r, 50),
                  .has_as_of = t_rng_below(r, 4) == 0,
                  .as_of = (double)t_rng_below(r, 10),
                  .vector_weight = 1,
                  .text_weight = 0.7,
                  .rrf_k = 60};
    for (int i = 0; i < 2; i++)
        terms[i] = t_term_random(r, t, list[i]);
    q.ntokens = t_query_random(r, tokens, sizeof tokens);
    for (size_t i = 0; i < t->dim; i++)
        vec[i] = t_rng_normal(r);
    if (t_rng_below(r, 3) == 0) {
        q.order = (int[]){ST_ORDER_BEST, ST_ORDER_ID, ST_ORDER_ID_DESC}[t_rng_below(r, 3)];
        q.k = -1;
        check_scan(v, t, &q, 0);
    } else {
        uint64_t kind = t_rng_below(r, 3);
        q.vector = kind != 1 ? vec : NULL;
        q.has_text = kind != 0;
        q.order = t_rng_below(r, 4) ? ST_ORDER_BEST : ST_ORDER_WORST;
        check_search(v, t, &q);
    }
    free(vec);
}

void t_check_view(st_view *v, const t_table *t, t_rng *r, int searches)
{
    st_query q = {.k = -1};
    if (st_view_count(v) != t->n)
        fail_msg("%llu rows, expected %zu", (unsigned long long)st_view_count(v), t->n);
    check_scan(v, t, &q, 1);
    q.order = t_rng_below(r, 2) ? ST_ORDER_ID : ST_ORDER_ID_DESC;
    check_scan(v, t, &q, 0);
    check_find(v, t, r);
    check_evicted(v, t);
    for (int side = 0; side < ST_SIDES; side++)
        if (v->f->side[side] || v->f->version == v->conn->txn.version)
            t_check_records(v, t, side);
    for (int i = 0; i < searches; i++)
        random_search(v, t, r);
}

void t_check_conn(st_conn *c, const t_table *t, t_rng *r, int searches)
{
    st_view *v;
    st_error err = {0, ""};
    t_ok(&err, st_view_open(c, &v, &err));
    t_check_view(v, t, r, searches);
    st_view_close(v);
}
