/*
 * st_filter.c - comparisons over columns.
 *
 * Numbers in the base are compared column-wise, a chunk at a time, as inclusive ranges; a chunk
 * that is not stored is all default and is settled by one comparison. Texts are compared for
 * equality by length first. Everything else, and every row outside the base or with patched values,
 * goes value by value.
 *
 * COMPARISON  as SQLite compares: integers with reals exactly (a real bound on an integer column is
 *             rounded towards the rows it admits, an integer beyond 2^53 against a real column goes
 *             value by value), texts and blobs byte by byte, shorter first.
 *
 * SPDX-License-Identifier: MIT
 */
#include "st_filter.h"

#include <math.h>
#include <stdlib.h>

#include "vec.h"

/* ------------------------------------------------------------------------------------ comparing */

static int compare_int_real(int64_t i, double r)
{
    int64_t t;
    double d;
    if (r < -9223372036854775808.0) {
        return 1;
    }
    if (r >= 9223372036854775808.0) {
        return -1;
    }
    t = (int64_t)r;
    if (i != t) {
        return i < t ? -1 : 1;
    }
    d = (double)t; // exact: t came from r by dropping its fraction
    return d < r ? -1 : d > r;
}

static int compare(const st_value *a, const st_value *b)
{
    if (a->type == ST_INT && b->type == ST_INT) {
        return a->i < b->i ? -1 : a->i > b->i;
    }
    if (a->type == ST_REAL && b->type == ST_REAL) {
        return a->r < b->r ? -1 : a->r > b->r;
    }
    if (a->type == ST_INT && b->type == ST_REAL) {
        return compare_int_real(a->i, b->r);
    }
    if (a->type == ST_REAL && b->type == ST_INT) {
        return -compare_int_real(b->i, a->r);
    }
    if (a->type != b->type) {
        // Numbers before text before blobs.
        int ka = a->type <= ST_REAL ? 0 : a->type, kb = b->type <= ST_REAL ? 0 : b->type;
        return ka < kb ? -1 : 1;
    }
    size_t n = ST_MIN(a->n, b->n);
    int c = n ? memcmp(a->p, b->p, n) : 0;
    return c ? c : a->n < b->n ? -1 : a->n > b->n;
}

static int compare_for_sort(const void *a, const void *b)
{
    return compare(a, b);
}

static int in_list(const st_term *t, const st_value *v)
{
    size_t lo = 0, hi = t->nlist;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = compare(&t->list[mid], v);
        if (!c) {
            return 1;
        }
        if (c < 0) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return 0;
}

/* Patterns and tags are texts, and hold for texts only. */
static int matches(const st_term *t, const st_value *v)
{
    const st_value *x = &t->value;
    return v->type == ST_TEXT && x->type == ST_TEXT &&
           (t->op == ST_TAG ? st_has_tag(v->p, v->n, x->p, x->n)
                            : st_like(v->p, v->n, x->p, x->n, t->op == ST_GLOB));
}

int st_term_holds(const st_term *t, const st_value *v)
{
    int c;
    if (t->op == ST_ISNULL || t->op == ST_NOTNULL) {
        return (v->type == ST_NULL) == (t->op == ST_ISNULL);
    }
    if (t->op == ST_NEVER || v->type == ST_NULL) {
        return 0;
    }
    if (t->op == ST_IN) {
        return in_list(t, v);
    }
    if (t->value.type == ST_NULL) {
        return 0;
    }
    if (t->op == ST_LIKE || t->op == ST_GLOB || t->op == ST_TAG) {
        return matches(t, v);
    }
    c = compare(v, &t->value);
    switch (t->op) {
    case ST_EQ:
        return c == 0;
    case ST_NE:
        return c != 0;
    case ST_LT:
        return c < 0;
    case ST_LE:
        return c <= 0;
    case ST_GT:
        return c > 0;
    default:
        return c >= 0;
    }
}

/* -------------------------------------------------------------------------------------- copying */

static size_t value_bytes(const st_value *v)
{
    return v->type == ST_TEXT || v->type == ST_BLOB ? v->n + 1 : 0;
}

static void copy_value(st_value *v, uint8_t **tail)
{
    if (v->type == ST_TEXT || v->type == ST_BLOB) {
        if (v->n) {
            memcpy(*tail, v->p, v->n);
        }
        v->p = *tail;
        *tail += v->n + 1;
    }
}

int st_terms_copy(const st_term *terms, size_t n, st_terms *out, st_error *err)
{
    size_t bytes = 0, nlist = 0;
    st_value *lists;
    uint8_t *tail;
    out->mem = NULL;
    for (size_t i = 0; i < n; i++) {
        bytes += value_bytes(&terms[i].value);
        nlist += terms[i].nlist;
        for (size_t k = 0; k < terms[i].nlist; k++) {
            bytes += value_bytes(&terms[i].list[k]);
        }
    }
    out->term = n <= ST_TERMS_FEW ? out->few : h5_alloc_array(n, sizeof *out->term);
    if (nlist || bytes) {
        out->mem = h5_malloc(nlist * sizeof(st_value) + bytes);
    }
    if (!out->term || ((nlist || bytes) && !out->mem)) {
        st_terms_free(out);
        return st_nomem(err);
    }
    out->n = n;
    lists = (st_value *)(void *)out->mem;
    tail = nlist ? out->mem + nlist * sizeof(st_value) : out->mem;
    for (size_t i = 0; i < n; i++) {
        st_term *t = &out->term[i];
        *t = terms[i];
        copy_value(&t->value, &tail);
        t->list = lists;
        t->nlist = 0;
        for (size_t k = 0; k < terms[i].nlist; k++) {
            if (terms[i].list[k].type != ST_NULL) {
                lists[t->nlist] = terms[i].list[k];
                copy_value(&lists[t->nlist++], &tail);
            }
        }
        if (t->nlist) {
            qsort(lists, t->nlist, sizeof *lists, compare_for_sort);
            lists += t->nlist;
        }
    }
    return ST_OK;
}

void st_terms_free(st_terms *t)
{
    if (t->term != t->few) {
        h5_free(t->term);
    }
    if (t->mem) {
        h5_free(t->mem);
    }
    t->term = NULL;
    t->mem = NULL;
    t->n = 0;
}

/* --------------------------------------------------------------------------------- whole chunks */

static void clear_range(uint64_t *bits, uint64_t from, uint64_t n)
{
    while (n && (from & 63)) {
        st_bit_clear(bits, from++);
        n--;
    }
    if (n >= 64) {
        memset(&bits[from >> 6], 0, (size_t)(n >> 6) * 8);
        from += n & ~(uint64_t)63;
        n &= 63;
    }
    while (n--) {
        st_bit_clear(bits, from++);
    }
}

static st_value int_value(int64_t i)
{
    st_value v = {.type = ST_INT, .i = i};
    return v;
}

/* A term as an inclusive range of the column's own numbers; 0 when it is none. */
typedef struct range {
    double lo, hi;
    int64_t ilo, ihi;
    int empty;
} range;

static int real_range(const st_term *t, range *r)
{
    double c = t->value.type == ST_REAL ? t->value.r : (double)t->value.i;
    r->lo = -INFINITY;
    r->hi = INFINITY;
    if (t->op == ST_NOTNULL) {
        return 1;
    }
    if (t->value.type != ST_REAL && (t->value.type != ST_INT || t->value.i > (int64_t)1 << 53 ||
                                     t->value.i < -((int64_t)1 << 53))) {
        return 0;
    }
    switch (t->op) {
    case ST_EQ:
        r->lo = r->hi = c;
        return 1;
    case ST_LT:
        r->hi = nextafter(c, -INFINITY);
        r->empty = c == -INFINITY;
        return 1;
    case ST_LE:
        r->hi = c;
        return 1;
    case ST_GT:
        r->lo = nextafter(c, INFINITY);
        r->empty = c == INFINITY;
        return 1;
    case ST_GE:
        r->lo = c;
        return 1;
    default:
        return 0;
    }
}

static int int_range(const st_term *t, int nullable, range *r)
{
    const st_value *c = &t->value;
    int64_t least = nullable ? ST_INT_NULL + 1 : INT64_MIN;
    r->ilo = least;
    r->ihi = INT64_MAX;
    if (t->op == ST_NOTNULL) {
        return 1;
    }
    if (c->type == ST_REAL) {
        // Towards the rows that the bound admits; whole numbers of a real this small are exact.
        double f = floor(c->r);
        if (!(fabs(c->r) < 9e18)) {
            return 0;
        }
        if (t->op == ST_EQ) {
            r->ilo = r->ihi = (int64_t)f;
            r->empty = f != c->r;
        } else if (t->op == ST_LT || t->op == ST_LE) {
            r->ihi = (int64_t)f - (t->op == ST_LT && f == c->r);
        } else if (t->op == ST_GT || t->op == ST_GE) {
            r->ilo = ST_MAX(least, (int64_t)f + !(t->op == ST_GE && f == c->r));
        } else {
            return 0;
        }
        return 1;
    }
    if (c->type != ST_INT) {
        return 0;
    }
    switch (t->op) {
    case ST_EQ:
        r->ilo = r->ihi = c->i;
        r->empty = c->i < least;
        return 1;
    case ST_LT:
        r->empty = c->i <= least;
        r->ihi = r->empty ? least : c->i - 1;
        return 1;
    case ST_LE:
        r->ihi = c->i;
        return 1;
    case ST_GT:
        r->empty = c->i == INT64_MAX;
        r->ilo = r->empty ? c->i : ST_MAX(least, c->i + 1);
        return 1;
    case ST_GE:
        r->ilo = ST_MAX(least, c->i);
        return 1;
    default:
        return 0;
    }
}

int st_time_range(const st_term *t, double *lo, double *hi)
{
    range r = {0};
    if (!real_range(t, &r)) {
        return 0;
    }
    *lo = r.empty ? INFINITY : r.lo;
    *hi = r.empty ? -INFINITY : r.hi;
    return 1;
}

/* One chunk's worth of a numeric column, stored as bytes, integers or reals. */
static void filter_bytes(const st_schema *s, int small, const st_term *t, uint64_t *bits,
                         uint64_t row, const uint8_t *p, uint64_t n)
{
    uint8_t holds[256];
    for (int i = 0; i < 256; i++) {
        st_value v;
        st_small_to_value(s, small, (st_num){.i = i}, &v);
        holds[i] = (uint8_t)st_term_holds(t, &v);
    }
    for (uint64_t i = 0; i < n; i++) {
        if (!holds[p[i]]) {
            st_bit_clear(bits, row + i);
        }
    }
}

static void filter_values(const st_schema *s, int small, int real, const st_term *t, uint64_t *bits,
                          uint64_t row, const uint8_t *p, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        st_value v = int_value(0);
        if (!st_bit_get(bits, row + i)) {
            continue;
        }
        if (small >= 0) {
            st_small_to_value(s, small, st_small_unpack(s, small, p + 8 * i), &v);
        } else if (real) {
            v.type = ST_REAL;
            memcpy(&v.r, p + 8 * i, 8);
        } else {
            v.i = (int64_t)st_get64(p + 8 * i);
        }
        if (!st_term_holds(t, &v)) {
            st_bit_clear(bits, row + i);
        }
    }
}

/* Do the base's ids ascend with its rows? */
static int ids_ascend(const st_image *im)
{
    const st_sortruns *r = &im->sorted[ST_SORT_ID];
    return !r->n || (r->n == 1 && !r->run[0].sorted);
}

/* A run of ascending ids needs a look at its ends alone, unless the range ends within it. */
static int settled_by_ends(const uint8_t *p, uint64_t run, const range *r, uint64_t *bits,
                           uint64_t row)
{
    int64_t first = (int64_t)st_get64(p), last = (int64_t)st_get64(p + 8 * (run - 1));
    if (last < r->ilo || first > r->ihi) {
        clear_range(bits, row, run);
        return 1;
    }
    return first >= r->ilo && last <= r->ihi;
}

/* Numbers of the base: small >= 0, or the id or timestamp column. */
static int filter_numbers(st_view *v, int phys, int small, int real, const st_term *t,
                          uint64_t *bits, st_error *err)
{
    const st_schema *s = v->f->gen->schema;
    const st_colimg *col = &v->f->gen->image->col[phys];
    int ascend = phys == ST_PHYS_ID && ids_ascend(v->f->gen->image);
    int byte = s->phys[phys].elem == 1, ranged;
    range r = {0};
    ranged = !byte && (real ? real_range(t, &r) : int_range(t, small >= 0, &r));
    for (uint64_t row = 0, run = 0; row < v->f->nbase; row += run) {
        const uint8_t *p;
        ST_TRY(st_read_at(&v->reader, phys, row, &p, &run, err));
        if (col->chunk[row / col->chunk_rows].addr == H5_UNDEF) {
            // All default: one comparison settles the chunk.
            uint64_t one = 1;
            byte ? filter_bytes(s, small, t, &one, 0, p, 1)
                 : filter_values(s, small, real, t, &one, 0, p, 1);
            if (!one) {
                clear_range(bits, row, run);
            }
        } else if (r.empty) {
            clear_range(bits, row, run);
        } else if (byte) {
            filter_bytes(s, small, t, bits, row, p, run);
        } else if (ranged && real) {
            vec_keep_range_f64(bits, row, (const double *)(const void *)p, (size_t)run, r.lo, r.hi);
        } else if (ranged && ascend && settled_by_ends(p, run, &r, bits, row)) {
            continue;
        } else if (ranged) {
            vec_keep_range_i64(bits, row, (const int64_t *)(const void *)p, (size_t)run, r.ilo,
                               r.ihi);
        } else {
            filter_values(s, small, real, t, bits, row, p, run);
        }
    }
    return ST_OK;
}

/* Equality of a text: most rows are settled by their length. The stored form of a text of k NUL
** bytes has one more (st_schema.h), so those go value by value. */
static int filter_text(st_view *v, int text, const st_term *t, uint64_t *bits, st_error *err)
{
    int quick = t->op == ST_EQ && t->value.n && ((const uint8_t *)t->value.p)[0];
    uint64_t nbase = v->f->nbase;
    int phys = st_phys_offsets(text), col = -1;
    const st_schema *s = v->f->gen->schema;
    for (int c = 0; c < s->ncol; c++) {
        col = s->text_of[c] == text ? c : col;
    }
    for (uint64_t row = st_bit_next(bits, nbase, 0); row < nbase;
         row = st_bit_next(bits, nbase, row + 1)) {
        st_value val = {0};
        const uint8_t *p;
        if (quick) {
            uint64_t run, a, b;
            ST_TRY(st_read_at(&v->reader, phys, row, &p, &run, err));
            a = st_get64(p);
            if (run > 1) {
                b = st_get64(p + 8);
            } else {
                ST_TRY(st_read_at(&v->reader, phys, row + 1, &p, &run, err));
                b = st_get64(p);
            }
            if (b - a != t->value.n) {
                st_bit_clear(bits, row);
                continue;
            }
        }
        ST_TRY(st_read_text(&v->reader, text, row, &p, &val.n, err));
        val.p = p;
        val.type = p ? st_logical_type(s, col) : ST_NULL;
        if (!st_term_holds(t, &val)) {
            st_bit_clear(bits, row);
        }
    }
    return ST_OK;
}

static int filter_one(st_view *v, const st_term *t, uint64_t row, uint64_t *bits, st_error *err)
{
    st_value val;
    ST_TRY(st_view_value(v, row, t->col, &val, err));
    if (!st_term_holds(t, &val)) {
        st_bit_clear(bits, row);
    }
    return ST_OK;
}

static int filter_one_by_one(st_view *v, const st_term *t, uint64_t *bits, st_error *err)
{
    uint64_t nbase = v->f->nbase;
    for (uint64_t row = st_bit_next(bits, nbase, 0); row < nbase;
         row = st_bit_next(bits, nbase, row + 1)) {
        ST_TRY(filter_one(v, t, row, bits, err));
    }
    return ST_OK;
}

/* Base rows whose small values were changed since: what the column says of them is void. */
static int filter_patched(st_view *v, const st_term *t, const uint64_t *before, uint64_t *bits,
                          st_error *err)
{
    const st_map *m = &v->f->patched;
    for (size_t i = 0; i < m->cap; i++) {
        uint64_t row = m->slot[i].key;
        if (m->slot[i].used == 1 && row < v->f->nbase && st_bit_get(before, row)) {
            st_bit_set(bits, row);
            ST_TRY(filter_one(v, t, row, bits, err));
        }
    }
    return ST_OK;
}

static int filter_base(st_view *v, const st_term *t, uint64_t *bits, st_error *err)
{
    const st_schema *s = v->f->gen->schema;
    int small = s->small_of[t->col];
    uint64_t *before = NULL;
    int rc;
    if (small < 0) {
        if (s->text_of[t->col] >= 0) {
            return filter_text(v, s->text_of[t->col], t, bits, err);
        }
        if (t->col == ST_COL_EMBEDDING) {
            return filter_one_by_one(v, t, bits, err);
        }
        return filter_numbers(v, t->col == ST_COL_ID ? ST_PHYS_ID : ST_PHYS_TIMESTAMP, -1,
                              t->col == ST_COL_TIMESTAMP, t, bits, err);
    }
    if (t->col == ST_COL_ACTIVATION && v->f->fade.tick != 0) {
        return filter_one_by_one(v, t, bits, err); // what is stored is not what is read
    }
    if (v->f->patched.n) {
        size_t bytes = st_bit_words(v->f->nbase) * sizeof *before;
        before = h5_malloc(bytes);
        if (!before) {
            return st_nomem(err);
        }
        memcpy(before, bits, bytes);
    }
    rc = filter_numbers(v, st_phys_small(s, small), small, s->small_real[small], t, bits, err);
    if (!rc && before) {
        rc = filter_patched(v, t, before, bits, err);
    }
    h5_free(before);
    return rc;
}

int st_filter_term(st_view *v, const st_term *t, uint64_t *bits, st_error *err)
{
    const st_frozen *f = v->f;
    if (t->op == ST_NEVER) {
        memset(bits, 0, st_bit_words(f->nrow) * sizeof *bits);
        return ST_OK;
    }
    ST_TRY(filter_base(v, t, bits, err));
    for (uint64_t row = st_bit_next(bits, f->nrow, f->nbase); row < f->nrow;
         row = st_bit_next(bits, f->nrow, row + 1)) {
        ST_TRY(filter_one(v, t, row, bits, err));
    }
    return ST_OK;
}

int st_filter_row(st_view *v, const st_terms *t, uint64_t row, st_error *err)
{
    for (size_t i = 0; i < t->n; i++) {
        st_value val;
        if (st_is_result_col(t->term[i].col)) {
            continue;
        }
        if (t->term[i].op == ST_NEVER) {
            return 0;
        }
        ST_TRY(st_view_value(v, row, t->term[i].col, &val, err));
        if (!st_term_holds(&t->term[i], &val)) {
            return 0;
        }
    }
    return 1;
}

int st_filter_valid(st_view *v, int has_as_of, double as_of, uint64_t *bits, st_error *err)
{
    st_term open_end = {.col = ST_COL_VALID_TO, .op = ST_ISNULL};
    if (!has_as_of) {
        return st_filter_term(v, &open_end, bits, err);
    }
    for (uint64_t row = st_bit_next(bits, v->f->nrow, 0); row < v->f->nrow;
         row = st_bit_next(bits, v->f->nrow, row + 1)) {
        st_value from, to;
        ST_TRY(st_view_value(v, row, ST_COL_VALID_FROM, &from, err));
        ST_TRY(st_view_value(v, row, ST_COL_VALID_TO, &to, err));
        if ((from.type == ST_REAL && from.r > as_of) || (to.type == ST_REAL && to.r <= as_of)) {
            st_bit_clear(bits, row);
        }
    }
    return ST_OK;
}
