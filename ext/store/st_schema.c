/*
 * st_schema.c - the columns of a store: names, types, NULL marks, chunk sizes.
 *
 * Chunk sizes (ARCHITECTURE, 'On disk'): a column starts with small chunks, so that a small store
 * is small, and is rewritten once with large ones when it outgrows them, so that no flush copies
 * much and no index grows long: vectors 16 rows, then 64 KiB from 128 rows on; text bytes 8 KiB,
 * then 64 KiB from 64 KiB on; everything else 1 KiB, then 16 KiB from 16 KiB on.
 *
 * SPDX-License-Identifier: MIT
 */
#include "st_side.h"

#include <math.h>
#include <stdio.h>

#include "vec.h"

typedef struct builtin {
    const char *name;
    int type;
} builtin;

static const builtin builtins[ST_COL_USER] = {
    [ST_COL_ID] = {"id", ST_INT},
    [ST_COL_CONTENT] = {"content", ST_TEXT},
    [ST_COL_EMBEDDING] = {"embedding", ST_BLOB},
    [ST_COL_TIMESTAMP] = {"timestamp", ST_REAL},
    [ST_COL_SESSION] = {"session", ST_TEXT},
    [ST_COL_CHANNEL] = {"channel", ST_TEXT},
    [ST_COL_TAGS] = {"tags", ST_TEXT},
    [ST_COL_SOURCE] = {"source", ST_TEXT},
    [ST_COL_TIER] = {"tier", ST_TEXT},
    [ST_COL_IMPORTANCE] = {"importance", ST_REAL},
    [ST_COL_ACTIVATION] = {"activation", ST_REAL},
    [ST_COL_ACCESS_COUNT] = {"access_count", ST_INT},
    [ST_COL_LAST_ACCESS] = {"last_access", ST_REAL},
    [ST_COL_VALID_FROM] = {"valid_from", ST_REAL},
    [ST_COL_VALID_TO] = {"valid_to", ST_REAL},
    [ST_COL_SUPERSEDED_BY] = {"superseded_by", ST_INT},
    [ST_COL_PINNED] = {"pinned", ST_INT},
};

// Names of datasets that are no columns of the table: of /memory, and among the checksums.
static const char *const inner_names[] = {"norm", "live", "plane_coarse", "plane_fine"};

/* Small built-ins in ST_SMALL_ order. */
static const int small_cols[ST_SMALL_USER] = {
    ST_COL_SOURCE,        ST_COL_TIER,        ST_COL_IMPORTANCE, ST_COL_ACTIVATION,
    ST_COL_ACCESS_COUNT,  ST_COL_LAST_ACCESS, ST_COL_VALID_FROM, ST_COL_VALID_TO,
    ST_COL_SUPERSEDED_BY, ST_COL_PINNED,
};
static const int text_cols[ST_TEXT_USER] = {ST_COL_CONTENT, ST_COL_SESSION, ST_COL_CHANNEL,
                                            ST_COL_TAGS};

static const char *const sources[] = {NULL,   "user",      "assistant", "system",
                                      "tool", "retrieval", "correction"};
static const char *const tiers[] = {"working", "episodic", "semantic"};
enum { NSOURCE = 7, NTIER = 3 };

const char *st_column_name(int col)
{
    return col >= 0 && col < ST_COL_USER ? builtins[col].name : NULL;
}

int st_column_type(int col)
{
    return col >= 0 && col < ST_COL_USER ? builtins[col].type : ST_NULL;
}

const char *st_logical_name(const st_schema *s, int col)
{
    return col < ST_COL_USER ? st_column_name(col) : s->user[col - ST_COL_USER].name;
}

int st_logical_type(const st_schema *s, int col)
{
    return col < ST_COL_USER ? st_column_type(col) : s->user[col - ST_COL_USER].type;
}

/* ----------------------------------------------------------------------------- physical columns */

static uint32_t clamp_rows(size_t bytes, size_t elem, uint32_t least)
{
    size_t n = bytes / elem;
    return (uint32_t)(n < least ? least : n);
}

enum { SIZE_OTHER, SIZE_VECTOR, SIZE_PLANE, SIZE_TEXT };

static void add_phys(st_schema *s, int at, const char *path, char kind, uint32_t size,
                     uint32_t width, int sizing)
{
    st_phys *p = &s->phys[at];
    snprintf(p->path, sizeof p->path, "%s", path);
    h5_type_number(kind, size, &p->type);
    p->side = -1;
    p->width = width;
    p->elem = (size_t)size * width;
    if (sizing == SIZE_VECTOR || sizing == SIZE_PLANE) {
        p->chunk_large = clamp_rows(sizing == SIZE_VECTOR ? 64 << 10 : 32 << 10, p->elem, 1);
        p->chunk_small = ST_MIN(16u, p->chunk_large);
        p->switch_at = p->chunk_small < p->chunk_large ? 128 : UINT64_MAX;
    } else if (sizing == SIZE_TEXT) {
        p->chunk_small = 8 << 10;
        p->chunk_large = 64 << 10;
        p->switch_at = 64 << 10;
    } else {
        p->chunk_small = clamp_rows(1 << 10, p->elem, 1);
        p->chunk_large = clamp_rows(16 << 10, p->elem, 1);
        p->switch_at = (16 << 10) / p->elem;
    }
}

/* Two columns, from number at on. */
static void add_text_at(st_schema *s, int at, const char *name)
{
    char path[ST_NAME_MAX + 16];
    snprintf(path, sizeof path, "%s/data", name);
    add_phys(s, at, path, 'u', 1, 1, SIZE_TEXT);
    s->phys[at].compress = 1;
    snprintf(path, sizeof path, "%s/offsets", name);
    add_phys(s, at + 1, path, 'i', 8, 1, SIZE_OTHER);
    s->phys[at + 1].extra = 1;
}

static void add_small(st_schema *s, int small)
{
    int at = st_phys_small(s, small), byte = small <= ST_SMALL_TIER || small == ST_SMALL_PINNED;
    add_phys(s, at, st_logical_name(s, s->small_col[small]),
             byte                   ? 'u'
             : s->small_real[small] ? 'f'
                                    : 'i',
             byte ? 1 : 8, 1, SIZE_OTHER);
    st_small_pack(s, small, st_small_default(s, small), s->phys[at].fill);
}

/* --------------------------------------------------------------------- tables beside the rows */

int st_phys_side_number(const st_schema *s, int side, int number)
{
    return s->side_first[side] + 1 + number;
}

int st_phys_side_data(const st_schema *s, int side, int text)
{
    return s->side_first[side] + 1 + st_side_defs[side].nnum + 2 * text;
}

int st_phys_side_offsets(const st_schema *s, int side, int text)
{
    return st_phys_side_data(s, side, text) + 1;
}

int st_phys_side_count(int side)
{
    return 1 + st_side_defs[side].nnum + 2 * st_side_defs[side].ntext;
}

const char *st_phys_where(const st_schema *s, int phys, char *buf, size_t n)
{
    const st_phys *p = &s->phys[phys];
    snprintf(buf, n, "%s/%s", p->side >= 0 ? "" : "/memory", p->path);
    return buf;
}

/* Most such tables are small: their texts start with chunks of 1 KiB. */
enum { SIDE_CHUNK = 1 << 10 };

static void add_side(st_schema *s, int side)
{
    const st_side_def *d = &st_side_defs[side];
    char path[ST_NAME_MAX];
    s->side_first[side] = s->nphys;
    s->side_text[side] = s->nside_text;
    s->nside_text += d->ntext;
    s->nphys += st_phys_side_count(side);
    snprintf(path, sizeof path, "%s/live", d->name);
    add_phys(s, st_phys_side(s, side), path, 'u', 1, 1, SIZE_OTHER);
    s->phys[st_phys_side(s, side)].always = 1;
    for (int c = 0; c < d->ncol; c++) {
        int at = d->col[c].at, real = d->col[c].type == ST_REAL;
        st_num null = {.i = ST_INT_NULL};
        snprintf(path, sizeof path, "%s/%s", d->name, d->col[c].name);
        if (d->col[c].type == ST_TEXT) {
            add_text_at(s, st_phys_side_data(s, side, at), path);
            s->phys[st_phys_side_data(s, side, at)].chunk_small = SIDE_CHUNK;
            continue;
        }
        add_phys(s, st_phys_side_number(s, side, at), path, real ? 'f' : 'i', 8, 1, SIZE_OTHER);
        null.r = real ? (double)NAN : null.r;
        memcpy(s->phys[st_phys_side_number(s, side, at)].fill, &null, 8);
    }
    for (int c = s->side_first[side]; c < s->nphys; c++) {
        s->phys[c].side = side;
    }
}

static void number_columns(st_schema *s)
{
    for (int c = 0; c < s->ncol; c++) {
        s->text_of[c] = s->small_of[c] = -1;
    }
    for (s->ntext = 0; s->ntext < ST_TEXT_USER; s->ntext++) {
        s->text_of[text_cols[s->ntext]] = s->ntext;
    }
    for (s->nsmall = 0; s->nsmall < ST_SMALL_USER; s->nsmall++) {
        s->small_of[small_cols[s->nsmall]] = s->nsmall;
        s->small_col[s->nsmall] = small_cols[s->nsmall];
        s->small_real[s->nsmall] = builtins[small_cols[s->nsmall]].type == ST_REAL;
    }
    for (int u = 0; u < s->nuser; u++) {
        int c = ST_COL_USER + u;
        if (s->user[u].type == ST_TEXT || s->user[u].type == ST_BLOB) {
            s->text_of[c] = s->ntext++;
        } else {
            s->small_of[c] = s->nsmall;
            s->small_col[s->nsmall] = c;
            s->small_real[s->nsmall++] = s->user[u].type == ST_REAL;
        }
    }
}

static void lay_out(st_schema *s)
{
    uint8_t one = 1;
    float nan_f = (float)NAN;
    number_columns(s);
    s->nphys = ST_PHYS_TEXTS + 2 * s->ntext + s->nsmall;
    add_phys(s, ST_PHYS_ID, "id", 'i', 8, 1, SIZE_OTHER);
    if (s->storage == VEC_I8) { // codes, then their scale (vec_stored.c)
        add_phys(s, ST_PHYS_EMBEDDING, "embedding", 'i', 1,
                 (uint32_t)vec_stored_bytes(VEC_I8, (size_t)s->dim), SIZE_VECTOR);
    } else {
        add_phys(s, ST_PHYS_EMBEDDING, "embedding", 'f', s->storage == VEC_F16 ? 2 : 4,
                 (uint32_t)s->dim, SIZE_VECTOR);
    }
    s->phys[ST_PHYS_EMBEDDING].compress = 1;
    add_phys(s, ST_PHYS_NORM, "norm", 'f', 4, 1, SIZE_OTHER);
    memcpy(s->phys[ST_PHYS_NORM].fill, &nan_f, 4);
    add_phys(s, ST_PHYS_TIMESTAMP, "timestamp", 'f', 8, 1, SIZE_OTHER);
    add_phys(s, ST_PHYS_LIVE, "live", 'u', 1, 1, SIZE_OTHER);
    s->phys[ST_PHYS_LIVE].fill[0] = one;
    add_phys(s, ST_PHYS_COARSE, "plane_coarse", 'u', 1, (uint32_t)vec_halves_stride((size_t)s->dim),
             SIZE_PLANE);
    add_phys(s, ST_PHYS_FINE, "plane_fine", 'u', 1, (uint32_t)vec_halves_stride((size_t)s->dim),
             SIZE_PLANE);
    for (int c = 0; c < s->ncol; c++) {
        if (s->text_of[c] >= 0) {
            add_text_at(s, st_phys_data(s->text_of[c]), st_logical_name(s, c));
        }
    }
    for (int i = 0; i < s->nsmall; i++) {
        add_small(s, i);
    }
    s->phys[ST_PHYS_ID].always = 1;
    s->nmemory = s->nphys;
    for (int side = 0; side < ST_SIDES; side++) {
        add_side(s, side);
    }
}

/* Letters as HDF5 link names and SQL identifiers both take them; ASCII case folded for comparison,
** as SQL does. */
static int same_name(const char *a, const char *b)
{
    for (; *a && *b; a++, b++) {
        int x = *a >= 'A' && *a <= 'Z' ? *a + 32 : *a, y = *b >= 'A' && *b <= 'Z' ? *b + 32 : *b;
        if (x != y) {
            return 0;
        }
    }
    return *a == *b;
}

static int check_user(const st_column *user, size_t n, st_error *err)
{
    for (size_t i = 0; i < n; i++) {
        const char *name = user[i].name;
        size_t len = strlen(name);
        int bad = !len || len >= ST_NAME_MAX;
        for (size_t k = 0; k < len; k++) {
            // A dot stands for the slash in the names of the checksums (content.data).
            bad |= (unsigned char)name[k] <= ' ' || name[k] == '/' || name[k] == '.' ||
                   name[k] == ',' || name[k] == '"' || name[k] == '\'';
        }
        if (bad) {
            return st_fail(err, ST_MISUSE,
                           "'%.120s' cannot be a column name: no spaces, quotes, commas, "
                           "dots or slashes, 1 to %d bytes",
                           name, ST_NAME_MAX - 1);
        }
        for (int c = 0; c < ST_COL_USER; c++) {
            if (same_name(name, builtins[c].name)) {
                return st_fail(err, ST_MISUSE, "column name '%s' is reserved", name);
            }
        }
        for (size_t k = 0; k < sizeof inner_names / sizeof *inner_names; k++) {
            if (same_name(name, inner_names[k])) {
                return st_fail(err, ST_MISUSE, "column name '%s' is reserved", name);
            }
        }
        for (size_t k = 0; k < i; k++) {
            if (same_name(name, user[k].name)) {
                return st_fail(err, ST_MISUSE, "column name '%s' is there twice", name);
            }
        }
        if (user[i].type < ST_INT || user[i].type > ST_BLOB) {
            return st_fail(err, ST_MISUSE,
                           "column '%s' has no type; TEXT, INTEGER, REAL and BLOB are known", name);
        }
    }
    return ST_OK;
}

static char *dup_text(const char *s)
{
    size_t n = strlen(s) + 1;
    char *p = h5_malloc(n);
    if (p) {
        memcpy(p, s, n);
    }
    return p;
}

int st_schema_make(int64_t dim, int metric, int storage, const st_column *user, size_t nuser,
                   const char *tokenizer, const char *fingerprint, st_schema **out, st_error *err)
{
    st_schema *s;
    *out = NULL;
    if (dim < 1 || dim > ST_DIM_MAX) {
        return st_fail(err, ST_MISUSE, "dim is %lld; 1 to %d is possible", (long long)dim,
                       ST_DIM_MAX);
    }
    if (nuser > ST_USER_COLUMNS_MAX) {
        return st_fail(err, ST_LIMIT, "%zu user columns; at most %d", nuser, ST_USER_COLUMNS_MAX);
    }
    ST_TRY(check_user(user, nuser, err));
    s = h5_calloc(1, sizeof *s);
    if (!s) {
        return st_nomem(err);
    }
    s->dim = dim;
    s->metric = metric;
    s->storage = storage;
    s->nuser = (int)nuser;
    s->ncol = ST_COL_USER + s->nuser;
    if (nuser) {
        memcpy(s->user, user, nuser * sizeof *user);
    }
    s->tokenizer = dup_text(tokenizer);
    s->fingerprint = dup_text(fingerprint);
    if (!s->tokenizer || !s->fingerprint) {
        st_schema_free(s);
        return st_nomem(err);
    }
    lay_out(s);
    *out = s;
    return ST_OK;
}

void st_schema_free(st_schema *s)
{
    if (s) {
        h5_free(s->tokenizer);
        h5_free(s->fingerprint);
        h5_free(s);
    }
}

/* --------------------------------------------------------------------------------- small values */

st_num st_small_null(const st_schema *s, int small)
{
    st_num v;
    if (small == ST_SMALL_SOURCE) {
        v.i = 0;
    } else if (s->small_real[small]) {
        v.r = NAN;
    } else {
        v.i = ST_INT_NULL;
    }
    return v;
}

st_num st_small_default(const st_schema *s, int small)
{
    st_num v;
    switch (small) {
    case ST_SMALL_TIER:
    case ST_SMALL_ACCESS_COUNT:
    case ST_SMALL_PINNED:
        v.i = 0;
        return v;
    case ST_SMALL_IMPORTANCE:
        v.r = 0.5;
        return v;
    case ST_SMALL_ACTIVATION:
        v.r = 1.0;
        return v;
    default:
        return st_small_null(s, small);
    }
}

int st_small_is_null(const st_schema *s, int small, st_num v)
{
    if (small == ST_SMALL_SOURCE) {
        return v.i == 0;
    }
    return s->small_real[small] ? isnan(v.r) : v.i == ST_INT_NULL;
}

static int from_word(const char *column, const st_value *v, const char *const *words, int n,
                     st_num *out, st_error *err)
{
    char known[128] = "";
    size_t len = 0;
    for (int i = 0; i < n; i++) {
        if (!words[i]) {
            continue;
        }
        if (v->type == ST_TEXT && strlen(words[i]) == v->n && memcmp(words[i], v->p, v->n) == 0) {
            out->i = i;
            return ST_OK;
        }
        len += (size_t)snprintf(known + len, sizeof known - len, "%s%s", len ? ", " : "", words[i]);
    }
    if (v->type == ST_TEXT) {
        return st_fail(err, ST_MISUSE, "%s is '%.*s'; known are %s", column,
                       (int)ST_MIN(v->n, (size_t)60), (const char *)v->p, known);
    }
    return st_fail(err, ST_MISUSE, "%s must be text; known are %s", column, known);
}

static int check_small(const st_schema *s, int small, st_num v, st_error *err)
{
    const char *name = st_logical_name(s, s->small_col[small]);
    if (small == ST_SMALL_IMPORTANCE && !(v.r >= 0 && v.r <= 1)) {
        return st_fail(err, ST_MISUSE, "importance is %g; 0 to 1 is possible", v.r);
    }
    if (small == ST_SMALL_ACTIVATION && !(v.r >= 0 && v.r <= 1e300)) {
        return st_fail(err, ST_MISUSE, "activation is %g; it cannot be below 0 or infinite", v.r);
    }
    if (small == ST_SMALL_PINNED && v.i != 0 && v.i != 1) {
        return st_fail(err, ST_MISUSE, "pinned is %lld; 0 or 1 is possible", (long long)v.i);
    }
    if (small == ST_SMALL_ACCESS_COUNT && v.i < 0) {
        return st_fail(err, ST_MISUSE, "access_count is %lld; it cannot be below 0",
                       (long long)v.i);
    }
    if (!s->small_real[small] && small != ST_SMALL_SOURCE && v.i == ST_INT_NULL) {
        return st_fail(
            err, ST_MISUSE,
            "%s is -9223372036854775808, which marks NULL in the file and cannot be stored", name);
    }
    return ST_OK;
}

int st_small_from_value(const st_schema *s, int small, const st_value *v, st_num *out,
                        st_error *err)
{
    const char *name = st_logical_name(s, s->small_col[small]);
    if (v->type == ST_NULL) {
        *out = st_small_default(s, small);
        return ST_OK;
    }
    if (small == ST_SMALL_SOURCE) {
        return from_word(name, v, sources, NSOURCE, out, err);
    }
    if (small == ST_SMALL_TIER) {
        return from_word(name, v, tiers, NTIER, out, err);
    }
    if (s->small_real[small]) {
        if (v->type != ST_REAL && v->type != ST_INT) {
            return st_fail(err, ST_MISUSE, "%s must be a number", name);
        }
        out->r = v->type == ST_REAL ? v->r : (double)v->i;
        if (isnan(out->r)) {
            return st_fail(err, ST_MISUSE, "%s is no number", name);
        }
    } else {
        if (v->type != ST_INT) {
            return st_fail(err, ST_MISUSE, "%s must be an integer", name);
        }
        out->i = v->i;
    }
    return check_small(s, small, *out, err);
}

void st_small_to_value(const st_schema *s, int small, st_num v, st_value *out)
{
    memset(out, 0, sizeof *out);
    if (st_small_is_null(s, small, v)) {
        return;
    }
    if (small <= ST_SMALL_TIER) {
        const char *w = small == ST_SMALL_SOURCE ? sources[v.i > 0 && v.i < NSOURCE ? v.i : 1]
                                                 : tiers[v.i >= 0 && v.i < NTIER ? v.i : 0];
        out->type = ST_TEXT;
        out->p = w;
        out->n = strlen(w);
    } else if (s->small_real[small]) {
        out->type = ST_REAL;
        out->r = v.r;
    } else {
        out->type = ST_INT;
        out->i = v.i;
    }
}

void st_small_pack(const st_schema *s, int small, st_num v, uint8_t *out)
{
    if (small <= ST_SMALL_TIER || small == ST_SMALL_PINNED) {
        out[0] = (uint8_t)v.i;
    } else if (s->small_real[small]) {
        memcpy(out, &v.r, 8);
    } else {
        memcpy(out, &v.i, 8);
    }
}

st_num st_small_unpack(const st_schema *s, int small, const uint8_t *in)
{
    st_num v;
    if (small <= ST_SMALL_TIER || small == ST_SMALL_PINNED) {
        v.i = in[0];
    } else if (s->small_real[small]) {
        memcpy(&v.r, in, 8);
    } else {
        memcpy(&v.i, in, 8);
    }
    return v;
}

/* ------------------------------------------------------------------------- user columns as text */

static const char *const type_names[] = {"NULL", "INTEGER", "REAL", "TEXT", "BLOB"};

int st_columns_print(const st_schema *s, st_buf *out, st_error *err)
{
    for (int i = 0; i < s->nuser; i++) {
        char line[ST_NAME_MAX + 32];
        int n = snprintf(line, sizeof line, "%s%s %s", i ? ", " : "", s->user[i].name,
                         type_names[s->user[i].type]);
        ST_TRY(st_buf_add(out, line, (size_t)n, err));
    }
    return st_buf_add(out, "", 1, err);
}

int st_columns_parse(const char *text, st_column *out, size_t *n, st_error *err)
{
    *n = 0;
    while (*text) {
        const char *space = strchr(text, ' '), *end;
        st_column *c = &out[*n];
        size_t len;
        if (*n == ST_USER_COLUMNS_MAX || !space || space == text || space - text >= ST_NAME_MAX) {
            return st_fail(err, ST_CORRUPT, "the file's list of user columns is wrong");
        }
        memset(c, 0, sizeof *c);
        memcpy(c->name, text, (size_t)(space - text));
        end = strstr(space, ", ");
        len = end ? (size_t)(end - space - 1) : strlen(space + 1);
        for (int t = ST_INT; t <= ST_BLOB; t++) {
            if (strlen(type_names[t]) == len && memcmp(type_names[t], space + 1, len) == 0) {
                c->type = t;
            }
        }
        if (!c->type) {
            return st_fail(err, ST_CORRUPT, "the file's list of user columns has an unknown type");
        }
        (*n)++;
        text = end ? end + 2 : space + 1 + len;
    }
    return ST_OK;
}
