/*
 * sql_args.c - the arguments of CREATE VIRTUAL TABLE ... USING h5mem(...), and the list of user
 * columns in the state row.
 *
 *     'path'          the first argument, in quotes
 *     name=value      an option; the value bare or in quotes
 *     name TYPE       a user column; the name bare or in quotes, the type by SQLite's affinity
 *                     rules: INTEGER, TEXT, REAL, BLOB
 *
 * ERRORS   SQLITE_ERROR with a text that names the argument; SQLITE_NOMEM.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdarg.h>
#include <string.h>

#include "sql.h"
#include "sql_value.h"

/* Names no user column may have: those below, the built-in columns, the hidden ones and the
 * table's own. The settings of later versions are among them, so that a store made now can be
 * queried by all of them. */
static const char *const reserved[] = {
    "rowid",
    "oid",
    "_rowid_",
};

static int is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f';
}

static int is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           (unsigned char)c >= 0x80;
}

static const char *skip(const char *s)
{
    while (is_space(*s)) {
        s++;
    }
    return s;
}

static int fail(char **err, const char *fmt, ...) SQL_PRINTF(2, 3);
static int fail(char **err, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    sqlite3_free(*err);
    *err = sqlite3_vmprintf(fmt, ap);
    va_end(ap);
    return *err ? SQLITE_ERROR : SQLITE_NOMEM;
}

// Text between the quotes that s starts with, doubled quotes undone; *end behind the closing one.
// NULL: no memory, or never closed.
static char *dequote(const char *s, const char **end)
{
    char open = *s, close = open == '[' ? ']' : open;
    char *out = sqlite3_malloc64(strlen(s) + 1);
    size_t n = 0;
    for (s++; out && *s; s++) {
        if (*s == close) {
            if (s[1] != close || open == '[') {
                out[n] = 0;
                *end = s + 1;
                return out;
            }
            s++;
        }
        out[n++] = *s;
    }
    sqlite3_free(out);
    return NULL;
}

static int is_quote(char c)
{
    return c == '\'' || c == '"' || c == '`' || c == '[';
}

// A bare word or a quoted name.
static char *read_name(const char *s, const char **end)
{
    if (is_quote(*s)) {
        return dequote(s, end);
    }
    size_t n = 0;
    while (is_word(s[n])) {
        n++;
    }
    *end = s + n;
    return sqlite3_mprintf("%.*s", (int)n, s);
}

/* --------------------------------------------------------------------------------- user columns */

const char *sql_type_name(int st_type)
{
    switch (st_type) {
    case ST_INT:
        return "INTEGER";
    case ST_REAL:
        return "REAL";
    case ST_TEXT:
        return "TEXT";
    default:
        return "BLOB";
    }
}

static int has(const char *type, const char *part)
{
    size_t n = strlen(part);
    for (; *type; type++) {
        if (sqlite3_strnicmp(type, part, (int)n) == 0) {
            return 1;
        }
    }
    return 0;
}

// SQLite's affinity rules; -1 for NUMERIC, whose values have no one type.
static int type_of(const char *type)
{
    if (has(type, "INT")) {
        return ST_INT;
    }
    if (has(type, "CHAR") || has(type, "CLOB") || has(type, "TEXT")) {
        return ST_TEXT;
    }
    if (has(type, "BLOB")) {
        return ST_BLOB;
    }
    if (has(type, "REAL") || has(type, "FLOA") || has(type, "DOUB")) {
        return ST_REAL;
    }
    return -1;
}

// The word of a column constraint in a type, or NULL.
static const char *constraint_word(const char *type)
{
    static const char *const words[] = {"not",       "null",      "primary", "unique",
                                        "check",     "default",   "collate", "references",
                                        "generated", "constraint"};
    while (*type) {
        size_t n = 0;
        while (is_word(type[n])) {
            n++;
        }
        for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
            if (strlen(words[i]) == n && sqlite3_strnicmp(type, words[i], (int)n) == 0) {
                return words[i];
            }
        }
        type += n ? n : 1;
    }
    return NULL;
}

static int is_taken(const char *table, const char *name, const st_column *columns, size_t n,
                    char **err)
{
    for (int i = 0; i < ST_COL_USER; i++) {
        if (sqlite3_stricmp(name, st_column_name(i)) == 0) {
            return fail(err, "column \"%s\" is built in", name);
        }
    }
    for (int i = SQL_HID_TABLE + 1; i < SQL_HID_N; i++) {
        if (sqlite3_stricmp(name, sql_hidden_names[i]) == 0) {
            return fail(err, "\"%s\" is reserved and cannot name a column", name);
        }
    }
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++) {
        if (sqlite3_stricmp(name, reserved[i]) == 0) {
            return fail(err, "\"%s\" is reserved and cannot name a column", name);
        }
    }
    if (sqlite3_stricmp(name, table) == 0) {
        return fail(err, "column \"%s\" has the table's own name, which is reserved", name);
    }
    for (size_t i = 0; i < n; i++) {
        if (sqlite3_stricmp(name, columns[i].name) == 0) {
            return fail(err, "column \"%s\" is declared twice", name);
        }
    }
    return SQLITE_OK;
}

static int add_column(const char *table, const char *name, const char *type, st_column **columns,
                      size_t *n, char **err)
{
    const char *word = constraint_word(type);
    int rc = is_taken(table, name, *columns, *n, err);
    if (rc != SQLITE_OK) {
        return rc;
    }
    if (!*name || strlen(name) >= ST_NAME_MAX) {
        return fail(err, "column name \"%.20s\": 1 to %d bytes are allowed", name, ST_NAME_MAX - 1);
    }
    if (word) {
        return fail(
            err, "column \"%s\" has %s: constraints and defaults on user columns are not supported",
            name, word);
    }
    if (type_of(type) < 0) {
        return fail(err, "column \"%s\" has type \"%.40s\"; use INTEGER, REAL, TEXT or BLOB", name,
                    type);
    }
    if (*n == ST_USER_COLUMNS_MAX) {
        return fail(err, "more than %d user columns", ST_USER_COLUMNS_MAX);
    }
    st_column *more = sqlite3_realloc64(*columns, (*n + 1) * sizeof *more);
    if (!more) {
        return SQLITE_NOMEM;
    }
    *columns = more;
    memset(&more[*n], 0, sizeof *more);
    memcpy(more[*n].name, name, strlen(name));
    more[*n].type = type_of(type);
    ++*n;
    return SQLITE_OK;
}

char *sql_columns_text(const st_column *columns, size_t n)
{
    char *out = sqlite3_mprintf("%s", "");
    for (size_t i = 0; i < n && out; i++) {
        out = sqlite3_mprintf("%z%s\"%w\" %s", out, i ? ", " : "", columns[i].name,
                              sql_type_name(columns[i].type));
    }
    return out;
}

int sql_columns_parse(const char *table, const char *text, st_column **out, size_t *n, char **err)
{
    int rc = SQLITE_OK;
    *out = NULL;
    *n = 0;
    for (text = skip(text); *text && rc == SQLITE_OK; text = skip(text)) {
        char *name = read_name(text, &text);
        text = skip(text);
        size_t len = strcspn(text, ",");
        char *type = sqlite3_mprintf("%.*s", (int)len, text);
        text += len + (text[len] == ',');
        rc = name && type ? add_column(table, name, type, out, n, err) : SQLITE_NOMEM;
        sqlite3_free(name);
        sqlite3_free(type);
    }
    if (rc != SQLITE_OK) {
        sqlite3_free(*out);
        *out = NULL;
        *n = 0;
    }
    return rc;
}

/* -------------------------------------------------------------------------------------- options */

int sql_option_known(const char *name, char **err)
{
    for (int i = 0; st_option_name(i); i++) {
        if (strcmp(st_option_name(i), name) == 0) {
            return SQLITE_OK;
        }
    }
    sqlite3_str *s = sqlite3_str_new(NULL);
    sqlite3_str_appendf(s, "unknown option \"%.40s\"; known are ", name);
    for (int i = 0; st_option_name(i); i++) {
        sqlite3_str_appendf(s, "%s, ", st_option_name(i));
    }
    sqlite3_str_appendall(s, "readonly, threads");
    sqlite3_free(*err);
    *err = sqlite3_str_finish(s);
    return *err ? SQLITE_ERROR : SQLITE_NOMEM;
}

int sql_read_flag(const char *name, const char *value, int *out, char **err)
{
    static const char *const yes[] = {"1", "on", "true", "yes"}, *const no[] = {"0", "off", "false",
                                                                                "no"};
    for (int i = 0; i < 4; i++) {
        if (sqlite3_stricmp(value, yes[i]) == 0) {
            *out = 1;
            return SQLITE_OK;
        }
        if (sqlite3_stricmp(value, no[i]) == 0) {
            *out = 0;
            return SQLITE_OK;
        }
    }
    return fail(err, "%s is '%.40s'; known are on and off", name, value);
}

int sql_read_threads(const char *value, int *out, char **err)
{
    double x;
    int64_t whole;
    size_t n = strlen(value);
    if (sql_scan_f64(value, n, &x) != n || n == 0 || !sql_whole(x, &whole) || whole < 1 ||
        whole > SQL_THREADS_MAX) {
        return fail(err, "threads is '%.40s'; it takes 1 to %d", value, SQL_THREADS_MAX);
    }
    *out = (int)whole;
    return SQLITE_OK;
}

static int read_dim(const char *value, int64_t *out, char **err)
{
    double x;
    size_t n = strlen(value);
    if (sql_scan_f64(value, n, &x) != n || n == 0 || !sql_whole(x, out) || *out < 1) {
        return fail(err, "dim is '%.40s'; it takes a whole number above 0", value);
    }
    return SQLITE_OK;
}

// Takes over name and value where it keeps them, and sets them to NULL.
static int add_option(sql_args *a, char **name, char **value, char **err)
{
    const char *known;
    int at = 0;
    if (sqlite3_stricmp(*name, "readonly") == 0) {
        return sql_read_flag("readonly", *value, &a->readonly, err);
    }
    if (sqlite3_stricmp(*name, "threads") == 0) {
        return sql_read_threads(*value, &a->threads, err);
    }
    while ((known = st_option_name(at)) != NULL && sqlite3_stricmp(known, *name) != 0) {
        at++;
    }
    if (!known) {
        return sql_option_known(*name, err);
    }
    if (strcmp(known, "dim") == 0) {
        return a->dim ? fail(err, "dim is given twice") : read_dim(*value, &a->dim, err);
    }
    if (strcmp(known, "tokenize") == 0) {
        if (a->tokenizer) {
            return fail(err, "tokenize is given twice");
        }
        a->tokenizer = *value;
        *value = NULL;
        return SQLITE_OK;
    }
    for (size_t i = 0; i < a->noption; i++) {
        if (strcmp(a->options[i].name, known) == 0) {
            return fail(err, "%s is given twice", known);
        }
    }
    st_option *more = sqlite3_realloc64(a->options, (a->noption + 1) * sizeof *more);
    if (!more) {
        return SQLITE_NOMEM;
    }
    a->options = more;
    more[a->noption].name = known;
    more[a->noption++].value = *value;
    *value = NULL;
    return SQLITE_OK;
}

// The value of `name = value`: quoted, or bare up to the end without the white space around it.
static char *read_value(const char *s)
{
    s = skip(s);
    if (*s == '\'' || *s == '"') {
        const char *end;
        char *out = dequote(s, &end);
        if (out && *skip(end)) {
            sqlite3_free(out);
            return NULL;
        }
        return out;
    }
    size_t n = strlen(s);
    while (n > 0 && is_space(s[n - 1])) {
        n--;
    }
    return n ? sqlite3_mprintf("%.*s", (int)n, s) : NULL;
}

static int parse_one(const char *table, const char *arg, sql_args *a, char **err)
{
    const char *rest;
    int rc;
    arg = skip(arg);
    char *name = read_name(arg, &rest), *value = NULL;
    rest = skip(rest);
    if (!name || !*name) {
        rc = fail(err, "argument \"%.60s\" is neither name=value nor a column's name and type",
                  arg);
    } else if (*rest == '=') {
        value = read_value(rest + 1);
        rc = value ? add_option(a, &name, &value, err) : fail(err, "option %s has no value", name);
    } else {
        size_t n = strlen(rest);
        while (n > 0 && is_space(rest[n - 1])) {
            n--;
        }
        value = sqlite3_mprintf("%.*s", (int)n, rest);
        rc = value ? add_column(table, name, value, &a->columns, &a->ncolumn, err) : SQLITE_NOMEM;
    }
    sqlite3_free(name);
    sqlite3_free(value);
    return rc;
}

int sql_args_parse(int argc, const char *const *argv, sql_args *out, char **err)
{
    memset(out, 0, sizeof *out);
    const char *first = argc > 3 ? skip(argv[3]) : "", *end = first;
    if (*first == '\'' || *first == '"') {
        out->path = dequote(first, &end);
    }
    if (!out->path || !*out->path || *skip(end)) {
        return fail(err,
                    "the first argument is the file's path in quotes: h5mem('agent.h5', dim=384)");
    }
    int rc = SQLITE_OK;
    for (int i = 4; i < argc && rc == SQLITE_OK; i++) {
        rc = parse_one(argv[2], argv[i], out, err);
    }
    return rc;
}

void sql_args_free(sql_args *a)
{
    for (size_t i = 0; i < a->noption; i++) {
        sqlite3_free((void *)a->options[i].value);
    }
    sqlite3_free(a->options);
    sqlite3_free(a->path);
    sqlite3_free(a->tokenizer);
    sqlite3_free(a->columns);
    memset(a, 0, sizeof *a);
}
