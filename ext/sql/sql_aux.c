/*
 * sql_aux.c - bm25(memory), highlight(memory, ...), snippet(memory, ...): what FTS5 offers beside a
 * search, with its arguments.
 *
 * The first argument is the table's own column, whose value stands for the row that its cursor is
 * on. Mostly that is NULL with a pointer inside, and the pointer is a serial number: one is drawn
 * for each row whose column is read, and only a cursor that is on that very row answers to it, so
 * nothing is ever followed that may be gone. Where the query gave the column a text (`memory MATCH
 * 'words'`, `memory('words')`), SQLite may check that constraint itself, so the value must be that
 * text. It is then a copy whose address stands for the serial number as long as SQLite holds it: a
 * `sql_mark` in a list of the connection's.
 *
 * A text is tokenised again, with offsets, and what the query's phrases match in it is marked
 * (sql_doc.c). Marks that touch or overlap (trigrams) become one. The window of a snippet is chosen
 * as FTS5 does: most different phrases first, then most instances, a start of a sentence worth 100
 * and that of the text 120; found in one pass.
 *
 * A value that lost its row (an aggregate's, say) is an error. A plain NULL, which is what an outer
 * join gives where there is no row, gives NULL.
 *
 * OWNERSHIP  a mark lives until SQLite drops the value and keeps the sql_db alive
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "sql_doc.h"

#define ROW_TYPE "h5mem-row"

struct sql_mark {
    sql_db *d;
    sql_mark *next, **at; /* *at is this one */
    uintptr_t serial;
    char text[];
};

/* --------------------------------------------------------------------------- the row as a value */

static void mark_free(void *text)
{
    void *start = (char *)text - offsetof(sql_mark, text);
    sql_mark *m = start;
    sql_db *d = m->d;
    *m->at = m->next;
    if (m->next) {
        m->next->at = m->at;
    }
    sqlite3_free(m);
    sql_db_unref(d);
}

void sql_aux_result(sqlite3_context *ctx, sql_db *d, uintptr_t serial, sqlite3_value *query)
{
    if (!query) {
        sqlite3_result_pointer(ctx, (void *)serial, ROW_TYPE, NULL);
        return;
    }
    if (sqlite3_value_type(query) != SQLITE_TEXT) {
        sqlite3_result_value(ctx, query);
        return;
    }
    // in the encoding that the host's values have, or SQLite would make another copy
    int utf8 = sqlite3_value_encoding(query) == SQLITE_UTF8;
    const void *s = utf8 ? (const void *)sqlite3_value_text(query) : sqlite3_value_text16(query);
    size_t n = (size_t)(utf8 ? sqlite3_value_bytes(query) : sqlite3_value_bytes16(query));
    sql_mark *m = s ? sqlite3_malloc64(sizeof *m + n + 2) : NULL;
    if (!m) {
        sqlite3_result_error_nomem(ctx);
        return;
    }
    memcpy(m->text, s, n);
    memset(m->text + n, 0, 2);
    m->d = d;
    d->refs++;
    m->serial = serial;
    m->next = d->marks;
    m->at = &d->marks;
    if (m->next) {
        m->next->at = &m->next;
    }
    d->marks = m;
    sqlite3_result_text64(ctx, m->text, n, mark_free, utf8 ? SQLITE_UTF8 : SQLITE_UTF16);
}

int sql_aux_is_row(sqlite3_value *v)
{
    return sqlite3_value_pointer(v, ROW_TYPE) != NULL;
}

// 0: the value stands for no row.
static uintptr_t serial_of(sql_db *d, sqlite3_value *v)
{
    uintptr_t serial = (uintptr_t)sqlite3_value_pointer(v, ROW_TYPE);
    if (!serial && sqlite3_value_type(v) == SQLITE_TEXT) {
        const void *address = sqlite3_value_blob(v); // as it is; other calls may copy
        for (const sql_mark *m = d->marks; m && !serial; m = m->next) {
            serial = m->text == address ? m->serial : 0;
        }
    }
    return serial;
}

// The row of argv[0]; 0 after leaving a result in ctx.
static int find_row(sqlite3_context *ctx, sqlite3_value *v, const char *name, sql_current *out)
{
    const sql_table *t = sqlite3_user_data(ctx);
    uintptr_t serial = serial_of(t->db, v);
    if (sql_cursor_current(t->db, serial, out)) {
        return 1;
    }
    if (serial || sqlite3_value_type(v) != SQLITE_NULL) {
        sql_fail_fn(ctx, SQLITE_ERROR, t->name, t->store->path,
                    "%s() takes the table's own column first, as in %s(memory), of the row that a "
                    "query is on; the query's words must be text",
                    name, name);
    }
    return 0;
}

/* ----------------------------------------------------------------------------------------- text */

// Free in any case. 1; 0: the column has no value; -1 after leaving an error in ctx.
static int doc_read(sqlite3_context *ctx, const sql_current *row, int field, int need_words,
                    int every, sql_doc *d)
{
    sql_tokenizer *tok;
    st_value v;
    st_error err = {0};
    memset(d, 0, sizeof *d);
    if (st_view_value(row->view, row->row, sql_field_columns[field], &v, &err) != ST_OK) {
        sql_fail_st(row->table, &err);
        sql_fail_fn_table(ctx, row->table, sql_code(err.code));
        return -1;
    }
    if (v.type != ST_TEXT) {
        return 0;
    }
    d->text = v.n > 0 ? v.p : "";
    d->n = v.n;
    int marks = row->ask && (every || sql_doc_wanted(row->ask, field)), rc = SQLITE_OK;
    if (!marks && !need_words) {
        return 1;
    }
    if (d->n > INT32_MAX) {
        sqlite3_result_error_toobig(ctx);
        return -1;
    }
    rc = sql_table_tokenizer(row->table, &tok);
    if (rc != SQLITE_OK) {
        sql_fail_fn_table(ctx, row->table, rc);
        return -1;
    }
    rc = sql_doc_find(d, tok, marks ? row->ask : NULL, field, every);
    if (d->outside) {
        sql_fail_fn(ctx, rc, row->table->name, row->table->store->path,
                    "the tokenizer gives offsets outside the text");
    } else if (rc != SQLITE_OK) {
        sqlite3_result_error_code(ctx, rc);
    }
    return rc == SQLITE_OK ? 1 : -1;
}

// Which phrases the row has, in whatever column. 0 after leaving an error in ctx.
static int present_in(sqlite3_context *ctx, const sql_current *row, uint8_t *present)
{
    memset(present, 0, row->ask->ask.nphrase);
    for (int f = 0; f < VEC_FIELDS; f++) {
        sql_doc d;
        int rc = doc_read(ctx, row, f, 0, 1, &d);
        for (size_t i = 0; i < d.ninstance; i++) {
            present[d.instances[i].phrase] = 1;
        }
        sql_doc_free(&d);
        if (rc < 0) {
            return 0;
        }
    }
    return 1;
}

// As doc_read, without the phrases that are no part of why the query finds the row.
static int marks_read(sqlite3_context *ctx, const sql_current *row, int field, int need_words,
                      sql_doc *d)
{
    size_t kept = 0;
    int rc = doc_read(ctx, row, field, need_words, 0, d);
    if (rc <= 0 || !d->ninstance || !sql_ask_mixes(row->ask)) {
        return rc;
    }
    size_t n = d->nphrase;
    uint8_t *present = sqlite3_malloc64(2 * n + 1);
    int part = !present                        ? SQLITE_NOMEM
               : present_in(ctx, row, present) ? sql_ask_part(row->ask, present, present + n)
                                               : SQLITE_ABORT; // with an error left
    if (part == SQLITE_NOMEM) {
        sqlite3_result_error_nomem(ctx);
    }
    rc = part == SQLITE_OK ? rc : -1;
    for (size_t i = 0; i < d->ninstance && rc > 0; i++) {
        if (present[n + d->instances[i].phrase]) {
            d->instances[kept++] = d->instances[i];
        }
    }
    d->ninstance = kept;
    sqlite3_free(present);
    return rc;
}

/* --------------------------------------------------------------------------------------- output */

typedef struct piece {
    const char *s;
    int n;
} piece;

static piece piece_of(sqlite3_value *v)
{
    const char *s = (const char *)sqlite3_value_text(v);
    return (piece){s ? s : "", s ? sqlite3_value_bytes(v) : 0};
}

static void append(sqlite3_str *out, piece p)
{
    sqlite3_str_append(out, p.s, p.n);
}

// Bytes of the instance's words among [from, to).
static void mark_range(const sql_doc *d, const sql_instance *x, size_t from, size_t to, int *start,
                       int *end)
{
    size_t i = x->from > from ? x->from : from;
    *start = d->words[i].start;
    *end = x->to <= to ? x->end : d->words[to - 1].end;
}

// Text from byte `at` through the words [from, to), with the marks; returns where it stopped.
static int put_words(sqlite3_str *out, const sql_doc *d, int at, size_t from, size_t to, piece open,
                     piece close)
{
    for (size_t i = 0; i < d->ninstance && d->instances[i].from < to;) {
        int start, end, s, e;
        if (d->instances[i].to <= from) {
            i++;
            continue;
        }
        mark_range(d, &d->instances[i++], from, to, &start, &end);
        for (; i < d->ninstance && d->instances[i].from < to; i++) {
            mark_range(d, &d->instances[i], from, to, &s, &e);
            if (s > end) {
                break;
            }
            end = e > end ? e : end;
        }
        if (start >= at) { // not: a tokenizer that goes backwards
            append(out, (piece){d->text + at, start - at});
            append(out, open);
            append(out, (piece){d->text + start, end - start});
            append(out, close);
            at = end;
        }
    }
    return at;
}

static void finish(sqlite3_context *ctx, sqlite3_str *out)
{
    int rc = sqlite3_str_errcode(out), n = sqlite3_str_length(out);
    char *text = sqlite3_str_finish(out);
    if (rc != SQLITE_OK) {
        sqlite3_result_error_code(ctx, rc);
        sqlite3_free(text);
    } else if (text) {
        sqlite3_result_text64(ctx, text, (sqlite3_uint64)n, sqlite3_free, SQLITE_UTF8);
    } else {
        sqlite3_result_text(ctx, "", 0, SQLITE_STATIC);
    }
}

// 0: content, also for -1; 1: tags; 2: session. -1 after leaving an error in ctx.
static int column_arg(sqlite3_context *ctx, const sql_current *row, const char *name,
                      sqlite3_value *v)
{
    char show[SQL_SHOW];
    if (sqlite3_value_type(v) == SQLITE_INTEGER) {
        sqlite3_int64 i = sqlite3_value_int64(v);
        if (i >= -1 && i <= 2) {
            return i < 0 ? 0 : (int)i;
        }
    }
    sql_fail_fn(ctx, SQLITE_ERROR, row->table->name, row->table->store->path,
                "the column of %s() is %s; it takes 0 content, 1 tags, 2 session, -1 the best",
                name, sql_show(v, show));
    return -1;
}

static int right_count(sqlite3_context *ctx, const char *name, int argc, int least, int most)
{
    if (argc < least || argc > most) {
        const sql_table *t = sqlite3_user_data(ctx);
        sql_fail_fn(ctx, SQLITE_ERROR, t->name, t->store->path,
                    "wrong number of arguments to function %s()", name);
        return 0;
    }
    return 1;
}

static void highlight_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    sql_current row;
    sql_doc d;
    if (!right_count(ctx, "highlight", argc, 4, 4) || !find_row(ctx, argv[0], "highlight", &row)) {
        return;
    }
    int which = column_arg(ctx, &row, "highlight", argv[1]);
    if (which < 0) {
        return;
    }
    if (marks_read(ctx, &row, which, 0, &d) > 0) {
        sqlite3_str *out = sqlite3_str_new(row.table->db->db);
        int at = put_words(out, &d, 0, 0, d.nword, piece_of(argv[2]), piece_of(argv[3]));
        append(out, (piece){d.text + at, (int)(d.n - (size_t)at)});
        finish(ctx, out);
    }
    sql_doc_free(&d);
}

/* -------------------------------------------------------------------------------------- snippet */

/* The instances in a window of words that only moves forward. */
typedef struct window {
    size_t from, to; /* instances [from, to) */
    size_t *seen;    /* for each phrase, how often in the window */
    size_t different, all;
} window;

static void slide(window *w, const sql_doc *d, size_t from, size_t length)
{
    for (; w->to < d->ninstance && d->instances[w->to].from < from + length; w->to++) {
        w->different += w->seen[d->instances[w->to].phrase]++ == 0;
        w->all++;
    }
    for (; w->from < w->to && d->instances[w->from].from < from; w->from++) {
        w->different -= --w->seen[d->instances[w->from].phrase] == 0;
        w->all--;
    }
}

static size_t score(const window *w)
{
    return w->different * 1000 + (w->all - w->different);
}

static int starts_sentence(const sql_doc *d, size_t i)
{
    int at = d->words[i].start;
    while (at > 0 && strchr(" \t\r\n", d->text[at - 1]) && d->text[at - 1]) {
        at--;
    }
    return i == 0 || (at > 0 && at < d->words[i].start && strchr(".:", d->text[at - 1]));
}

// The window with the matches in the middle.
static size_t centred(const sql_doc *d, const window *w, size_t first, size_t length)
{
    long long last = (long long)d->instances[w->to - 1].to;
    long long at = (long long)first - ((long long)length - (last - (long long)first)) / 2;
    long long most = (long long)(d->nword - length);
    return (size_t)(at < 0 ? 0 : at > most ? most : at);
}

// Where the best window begins; 0 without a match.
static int best_start(const sql_doc *d, size_t length, size_t *out)
{
    size_t best = 0, sentence = 0, word = 0;
    window at_word = {0}, at_sentence = {0};
    *out = 0;
    if (d->ninstance == 0 || length >= d->nword) {
        return SQLITE_OK; // all of it
    }
    at_word.seen = sqlite3_malloc64(d->nphrase * 2 * sizeof *at_word.seen);
    if (!at_word.seen) {
        return SQLITE_NOMEM;
    }
    memset(at_word.seen, 0, d->nphrase * 2 * sizeof *at_word.seen);
    at_sentence.seen = at_word.seen + d->nphrase;
    for (size_t k = 0; k < d->ninstance; k++) {
        size_t i = d->instances[k].from;
        for (; word <= i; word++) {
            sentence = starts_sentence(d, word) ? word : sentence;
        }
        slide(&at_word, d, i, length);
        if (score(&at_word) > best) {
            best = score(&at_word);
            *out = centred(d, &at_word, i, length);
        }
        if (sentence < i) {
            slide(&at_sentence, d, sentence, length);
            size_t s = score(&at_sentence) + (sentence == 0 ? 120 : 100);
            if (s > best) {
                best = s;
                *out = sentence;
            }
        }
    }
    sqlite3_free(at_word.seen);
    return SQLITE_OK;
}

static void snippet_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    sql_current row;
    sql_doc d;
    char show[SQL_SHOW];
    if (!right_count(ctx, "snippet", argc, 6, 6) || !find_row(ctx, argv[0], "snippet", &row)) {
        return;
    }
    int which = column_arg(ctx, &row, "snippet", argv[1]);
    if (which < 0) {
        return;
    }
    sqlite3_int64 length = sqlite3_value_type(argv[5]) == SQLITE_INTEGER
                               ? sqlite3_value_int64(argv[5])
                               : 0;
    if (length < 1) {
        sql_fail_fn(ctx, SQLITE_ERROR, row.table->name, row.table->store->path,
                    "the length of snippet() is %s; it takes a number of words, 1 or more",
                    sql_show(argv[5], show));
        return;
    }
    if (marks_read(ctx, &row, which, 1, &d) > 0) {
        size_t from, n = (sqlite3_uint64)length < d.nword ? (size_t)length : d.nword;
        piece ellipsis = piece_of(argv[4]);
        if (best_start(&d, n, &from) != SQLITE_OK) {
            sqlite3_result_error_nomem(ctx);
        } else {
            sqlite3_str *out = sqlite3_str_new(row.table->db->db);
            int whole = n >= d.nword - from; // to the end
            size_t to = whole ? d.nword : from + n;
            if (from > 0) {
                append(out, ellipsis);
            }
            int at = put_words(out, &d, from > 0 ? d.words[from].start : 0, from, to,
                               piece_of(argv[2]), piece_of(argv[3]));
            int end = whole ? (int)d.n : d.words[to - 1].end;
            if (end > at) {
                append(out, (piece){d.text + at, end - at});
            }
            if (!whole) {
                append(out, ellipsis);
            }
            finish(ctx, out);
        }
    }
    sql_doc_free(&d);
}

/* ----------------------------------------------------------------------------------------- bm25 */

// The rank of the row with a column's occurrences counted so many times, from its texts.
static int weighted(sqlite3_context *ctx, const sql_current *row, const double *weight, double *out)
{
    size_t n = row->ask->ask.nphrase;
    double *count = sqlite3_malloc64((n + 1) * sizeof *count), length = 0;
    int all = 0, ok = count != NULL;
    if (!ok) {
        sqlite3_result_error_nomem(ctx);
        return 0;
    }
    memset(count, 0, n * sizeof *count);
    for (int f = 1; f < VEC_FIELDS; f++) {
        all |= sql_doc_wanted(row->ask, f);
    }
    for (int f = 0; f < (all ? VEC_FIELDS : 1) && ok; f++) {
        sql_doc d;
        ok = doc_read(ctx, row, f, 1, 0, &d) >= 0;
        for (size_t i = 0; i < d.ninstance; i++) {
            count[d.instances[i].phrase] += weight[f];
        }
        length += (double)d.nword;
        sql_doc_free(&d);
    }
    *out = ok ? -st_cursor_bm25(row->rows, count, n, length) : NAN;
    sqlite3_free(count);
    return ok;
}

// The row's rank. FTS5 multiplies a phrase's count by its column's weight.
static void bm25_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    double weight[VEC_FIELDS] = {1, 1, 1};
    sql_current row;
    char show[SQL_SHOW];
    if (!right_count(ctx, "bm25", argc, 1, 4) || !find_row(ctx, argv[0], "bm25", &row)) {
        return;
    }
    int plain = 1;
    for (int i = 1; i < argc; i++) {
        int type = sqlite3_value_type(argv[i]);
        weight[i - 1] = sqlite3_value_double(argv[i]);
        if ((type != SQLITE_INTEGER && type != SQLITE_FLOAT) || !isfinite(weight[i - 1]) ||
            weight[i - 1] < 0) {
            sql_fail_fn(ctx, SQLITE_ERROR, row.table->name, row.table->store->path,
                        "the weight of %s in bm25() is %s; it takes a number, 0 or more",
                        sql_field_names[i - 1], sql_show(argv[i], show));
            return;
        }
        plain &= weight[i - 1] == 1.0;
    }
    double rank = row.rank;
    if (!isnan(rank) && (plain || weighted(ctx, &row, weight, &rank))) {
        sqlite3_result_double(ctx, rank);
    }
}

static void explain_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    sql_current row;
    if (right_count(ctx, "h5mem_explain", argc, 1, 1) &&
        find_row(ctx, argv[0], "h5mem_explain", &row)) {
        sql_explain_row(ctx, &row);
    }
}

/* --------------------------------------------------------------------------------- registration */

static const struct {
    const char *name;
    void (*fn)(sqlite3_context *, int, sqlite3_value **);
} functions[] = {{"bm25", bm25_fn},
                 {"highlight", highlight_fn},
                 {"snippet", snippet_fn},
                 {"h5mem_explain", explain_fn}};

sql_function *sql_aux_find(const char *name)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (sqlite3_stricmp(name, functions[i].name) == 0) {
            return functions[i].fn;
        }
    }
    return NULL;
}

// SQLite asks a table for its own version only of a function that exists; FTS5 does the same.
int sql_aux_register(sql_db *d)
{
    int rc = SQLITE_OK;
    for (size_t i = 0; i < sizeof functions / sizeof *functions && rc == SQLITE_OK; i++) {
        rc = sqlite3_overload_function(d->db, functions[i].name, -1);
    }
    return rc;
}
