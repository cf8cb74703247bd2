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
 * A text is tokenised again, with offsets, and a token that is one of the query's is marked. Marks
 * that touch or overlap (trigrams) become one. The window of a snippet is chosen as FTS5 does: most
 * different words first, then most words, a start of a sentence worth 100 words and that of the
 * text 120; found in one pass.
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

#include "sql.h"
#include "vec.h"

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
    sql_db *d = sqlite3_user_data(ctx);
    uintptr_t serial = serial_of(d, v);
    if (sql_cursor_current(d, serial, out)) {
        return 1;
    }
    if (serial || sqlite3_value_type(v) != SQLITE_NULL) {
        sql_fail_fn(ctx, SQLITE_ERROR, NULL, NULL,
                    "%s() takes the table's own column first, as in %s(memory), of the row that a "
                    "query is on; the query's words must be text",
                    name, name);
    }
    return 0;
}

/* ----------------------------------------------------------------------------------------- text */

typedef struct word {
    int start, end; /* bytes of the text */
    int term;       /* the query's, or -1 */
} word;

typedef struct doc {
    const char *text;
    size_t n;
    word *words; /* one a position */
    size_t nword, room;
    vec_token *terms; /* the query's, sorted, each once */
    size_t nterm;
    int outside; /* the tokenizer gave offsets that are not the text's */
} doc;

static int by_bytes(const void *a, const void *b)
{
    const vec_token *x = a, *y = b;
    int order = memcmp(x->s, y->s, x->n < y->n ? x->n : y->n);
    return order ? order : (x->n > y->n) - (x->n < y->n);
}

static int read_terms(doc *d, const sql_tokens *tokens)
{
    size_t pos = 0, n = 0;
    vec_token tok;
    d->terms = sqlite3_malloc64((tokens->count + 1) * sizeof *d->terms);
    if (!d->terms) {
        return SQLITE_NOMEM;
    }
    while (n < tokens->count && vec_token_next(tokens->bytes, tokens->n, &pos, &tok) == 1) {
        d->terms[n++] = tok;
    }
    qsort(d->terms, n, sizeof *d->terms, by_bytes);
    for (size_t i = 0; i < n; i++) {
        if (d->nterm == 0 || by_bytes(&d->terms[d->nterm - 1], &d->terms[i]) != 0) {
            d->terms[d->nterm++] = d->terms[i];
        }
    }
    return SQLITE_OK;
}

static int term_of(const doc *d, const char *s, size_t n)
{
    vec_token key = {s, (uint32_t)n, 0};
    const vec_token *t = d->nterm ? bsearch(&key, d->terms, d->nterm, sizeof key, by_bytes) : NULL;
    return t ? (int)(t - d->terms) : -1;
}

static int on_word(void *ctx, const char *s, size_t n, int colocated, int start, int end)
{
    doc *d = ctx;
    int term = term_of(d, s, n);
    if (start < 0 || end < start || (size_t)end > d->n) {
        d->outside = 1;
        return SQLITE_ERROR;
    }
    if (colocated && d->nword > 0) {
        word *last = &d->words[d->nword - 1];
        last->term = last->term < 0 ? term : last->term;
        return SQLITE_OK;
    }
    if (d->nword == d->room) {
        size_t room = d->room * 2 + 64;
        word *more = sqlite3_realloc64(d->words, room * sizeof *more);
        if (!more) {
            return SQLITE_NOMEM;
        }
        d->words = more;
        d->room = room;
    }
    d->words[d->nword++] = (word){start, end, term};
    return SQLITE_OK;
}

static void doc_free(doc *d)
{
    sqlite3_free(d->words);
    sqlite3_free(d->terms);
}

// Free in any case. 0 after leaving a result in ctx: an error, or NULL for a column without value.
static int doc_read(sqlite3_context *ctx, const sql_current *row, int which, int need_words, doc *d)
{
    static const int columns[] = {ST_COL_CONTENT, ST_COL_TAGS, ST_COL_SESSION};
    sql_tokenizer *tok;
    st_value v;
    st_error err = {0};
    memset(d, 0, sizeof *d);
    if (st_view_value(row->view, row->row, columns[which], &v, &err) != ST_OK) {
        sql_fail_st(row->table, &err);
        sql_fail_fn_table(ctx, row->table, sql_code(err.code));
        return 0;
    }
    if (v.type != ST_TEXT) {
        return 0;
    }
    d->text = v.n > 0 ? v.p : "";
    d->n = v.n;
    // only content is searched, so only there is something to mark
    int marks = which == 0 && row->tokens, rc = SQLITE_OK;
    if (!marks && !need_words) {
        return 1;
    }
    if (d->n > INT32_MAX) {
        sqlite3_result_error_toobig(ctx);
        return 0;
    }
    rc = sql_table_tokenizer(row->table, &tok);
    if (rc != SQLITE_OK) {
        sql_fail_fn_table(ctx, row->table, rc);
        return 0;
    }
    rc = marks ? read_terms(d, row->tokens) : SQLITE_OK;
    if (rc == SQLITE_OK) {
        rc = sql_tokenize_each(tok, 0, d->text, d->n, on_word, d);
    }
    if (d->outside) {
        sql_fail_fn(ctx, rc, row->table->name, NULL,
                    "the tokenizer gives offsets outside the text");
    } else if (rc != SQLITE_OK) {
        sqlite3_result_error_code(ctx, rc);
    }
    return rc == SQLITE_OK;
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

// Text from byte `at` through the words [from, to), with the marks; returns where it stopped.
static int put_words(sqlite3_str *out, const doc *d, int at, size_t from, size_t to, piece open,
                     piece close)
{
    for (size_t i = from; i < to;) {
        int start = d->words[i].start, end = d->words[i].end;
        if (d->words[i++].term < 0) {
            continue;
        }
        for (; i < to && d->words[i].start <= end; i++) {
            if (d->words[i].term >= 0 && d->words[i].end > end) {
                end = d->words[i].end;
            }
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
    sql_fail_fn(ctx, SQLITE_ERROR, row->table->name, NULL,
                "the column of %s() is %s; it takes 0 content, 1 tags, 2 session, -1 the best",
                name, sql_show(v, show));
    return -1;
}

static int right_count(sqlite3_context *ctx, const char *name, int argc, int least, int most)
{
    if (argc < least || argc > most) {
        sql_fail_fn(ctx, SQLITE_ERROR, NULL, NULL, "wrong number of arguments to function %s()",
                    name);
        return 0;
    }
    return 1;
}

static void highlight_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    sql_current row;
    doc d;
    if (!right_count(ctx, "highlight", argc, 4, 4) || !find_row(ctx, argv[0], "highlight", &row)) {
        return;
    }
    int which = column_arg(ctx, &row, "highlight", argv[1]);
    if (which < 0) {
        return;
    }
    if (doc_read(ctx, &row, which, 0, &d)) {
        sqlite3_str *out = sqlite3_str_new(row.table->db->db);
        int at = put_words(out, &d, 0, 0, d.nword, piece_of(argv[2]), piece_of(argv[3]));
        append(out, (piece){d.text + at, (int)(d.n - (size_t)at)});
        finish(ctx, out);
    }
    doc_free(&d);
}

/* -------------------------------------------------------------------------------------- snippet */

/* The words in a window that only moves forward. */
typedef struct window {
    size_t from, to; /* words [from, to) */
    size_t *seen;    /* for each term, how often in the window */
    size_t different, all;
} window;

static void slide(window *w, const doc *d, size_t from, size_t length)
{
    size_t to = length < d->nword - from ? from + length : d->nword;
    for (; w->to < to; w->to++) {
        int term = d->words[w->to].term;
        if (term >= 0) {
            w->different += w->seen[term]++ == 0;
            w->all++;
        }
    }
    for (; w->from < from; w->from++) {
        int term = d->words[w->from].term;
        if (term >= 0) {
            w->different -= --w->seen[term] == 0;
            w->all--;
        }
    }
}

static size_t score(const window *w)
{
    return w->different * 1000 + (w->all - w->different);
}

static int starts_sentence(const doc *d, size_t i)
{
    int at = d->words[i].start;
    while (at > 0 && strchr(" \t\r\n", d->text[at - 1]) && d->text[at - 1]) {
        at--;
    }
    return i == 0 || (at > 0 && at < d->words[i].start && strchr(".:", d->text[at - 1]));
}

// Where the best window begins; 0 without a match.
static int best_start(const doc *d, size_t length, size_t *out)
{
    size_t best = 0, sentence = 0;
    window at_word = {0}, at_sentence = {0};
    *out = 0;
    if (d->nterm == 0 || length >= d->nword) {
        return SQLITE_OK; // all of it
    }
    at_word.seen = sqlite3_malloc64(d->nterm * 2 * sizeof *at_word.seen);
    if (!at_word.seen) {
        return SQLITE_NOMEM;
    }
    memset(at_word.seen, 0, d->nterm * 2 * sizeof *at_word.seen);
    at_sentence.seen = at_word.seen + d->nterm;
    for (size_t i = 0; i < d->nword; i++) {
        sentence = starts_sentence(d, i) ? i : sentence;
        if (d->words[i].term < 0) {
            continue;
        }
        slide(&at_word, d, i, length);
        if (score(&at_word) > best) {
            // the matches in the middle
            size_t last = at_word.to;
            while (d->words[last - 1].term < 0) {
                last--;
            }
            size_t before = (length - (last - i)) / 2;
            best = score(&at_word);
            *out = i > before ? i - before : 0;
            *out = *out + length > d->nword ? d->nword - length : *out;
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
    doc d;
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
        sql_fail_fn(ctx, SQLITE_ERROR, row.table->name, NULL,
                    "the length of snippet() is %s; it takes a number of words, 1 or more",
                    sql_show(argv[5], show));
        return;
    }
    if (doc_read(ctx, &row, which, 1, &d)) {
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
    doc_free(&d);
}

/* ----------------------------------------------------------------------------------------- bm25 */

// The row's rank. FTS5 multiplies a term's count by its column's weight; the ranking has only the
// weights it was made with, 1, and one column to count in.
static void bm25_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    static const char *const columns[] = {"content", "tags", "session"};
    sql_current row;
    char show[SQL_SHOW];
    if (!right_count(ctx, "bm25", argc, 1, 4) || !find_row(ctx, argv[0], "bm25", &row)) {
        return;
    }
    for (int i = 1; i < argc; i++) {
        int type = sqlite3_value_type(argv[i]);
        if ((type != SQLITE_INTEGER && type != SQLITE_FLOAT) ||
            sqlite3_value_double(argv[i]) != 1.0) {
            sql_fail_fn(ctx, SQLITE_ERROR, row.table->name, NULL,
                        "the weight of %s in bm25() is %s; it takes 1: content alone is searched, "
                        "and ranked so",
                        columns[i - 1], sql_show(argv[i], show));
            return;
        }
    }
    if (!isnan(row.rank)) {
        sqlite3_result_double(ctx, row.rank);
    }
}

/* --------------------------------------------------------------------------------- registration */

static const struct {
    const char *name;
    void (*fn)(sqlite3_context *, int, sqlite3_value **);
} functions[] = {{"bm25", bm25_fn}, {"highlight", highlight_fn}, {"snippet", snippet_fn}};

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
