/*
 * sql_door_peers.c - 'sqlite-vec:TABLE' and 'fts5:TABLE' in: the rows of another extension's table
 * on the same connection. TABLE may be schema.table; without a schema it is looked for in temp,
 * main and the attached databases, in this order.
 *
 * A rowid, or an INTEGER primary key of vec0, becomes the id where that is free, else the row gets
 * a fresh one. Columns go to the column of the same name. vec0: of its metadata, auxiliary and
 * partition columns one that has values and no column here is an error, so that nothing gets lost;
 * the vector is float[dim] or int8[dim] (its numbers as floats), and of several the one called
 * embedding. fts5: columns without one here are joined with `content`, in their order, a blank line
 * between.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "sql_door.h"
#include "sql_value.h"

enum { COLUMNS_MAX = 200 };

/* Where a column of the source goes. */
enum { TO_NOTHING = -1, TO_TEXT = -2 }; /* must be NULL; joined into content */
enum { ROWID = -1, NO_KEY = -2 };

typedef struct reader {
    sql_door *d;
    char *schema, *table, *sql; /* its CREATE statement */
    const char *args;           /* in sql: behind the parenthesis */
    int is_fts;
    char *name[COLUMNS_MAX]; /* columns that are read, from the second of the SELECT on */
    int to[COLUMNS_MAX];
    int n;
    int vector; /* the one that is the vector, -1 */
    int int8;
    int key; /* the column that has a rowid's place, ROWID, NO_KEY */
    float *floats;
    sqlite3_str *text; /* being joined */
} reader;

/* ---------------------------------------------------------------------------- CREATE statements */

static int is_word(char c)
{
    return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_' ||
           (unsigned char)c >= 0x80;
}

static const char *skip_space(const char *s)
{
    while (*s == ' ' || *s == '\t' || *s == '\n' || *s == '\r' || *s == '\f') {
        s++;
    }
    return s;
}

// Behind the quoted name or word that s begins with, or the one character.
static const char *skip_token(const char *s)
{
    char end = *s == '[' ? ']' : *s;
    if (*s == '"' || *s == '\'' || *s == '`' || *s == '[') {
        for (s++; *s; s++) {
            if (*s == end && (end == ']' || s[1] != end)) {
                return s + 1;
            }
            s += *s == end;
        }
        return s;
    }
    if (!is_word(*s)) {
        return *s ? s + 1 : s;
    }
    while (is_word(*s)) {
        s++;
    }
    return s;
}

static int word_is(const char *s, const char *word)
{
    size_t n = strlen(word);
    return sqlite3_strnicmp(s, word, (int)n) == 0 && !is_word(s[n]);
}

// The arguments of a CREATE VIRTUAL TABLE with this module; NULL: it has another.
static const char *arguments(const char *sql, const char *module)
{
    const char *s = skip_space(sql);
    for (; *s && !word_is(s, "USING"); s = skip_space(skip_token(s))) {
    }
    s = *s ? skip_space(s + 5) : s;
    if (*s == '"' || *s == '`' || *s == '[' || *s == '\'') {
        size_t n = strlen(module);
        if (sqlite3_strnicmp(s + 1, module, (int)n) != 0 || skip_token(s) != s + n + 2) {
            return NULL;
        }
    } else if (!word_is(s, module)) {
        return NULL;
    }
    s = skip_space(skip_token(s));
    return *s == '(' ? s + 1 : NULL;
}

// The next argument at *s, without white space around; *n 0 at the end.
static const char *next_argument(const char **s, size_t *n)
{
    const char *p = skip_space(*s), *start = p;
    int depth = 0;
    while (*p && (depth > 0 || (*p != ',' && *p != ')'))) {
        depth += (*p == '(') - (*p == ')');
        // a [ behind a word is the size of a vector
        p = *p == '[' && p > start && is_word(p[-1]) ? p + 1 : skip_token(p);
    }
    *n = (size_t)(p - start);
    *s = *p == ',' ? p + 1 : p;
    while (*n > 0 && skip_space(start + *n - 1) != start + *n - 1) {
        --*n;
    }
    return start;
}

// The name that an argument begins with, without quotes; *behind: what follows.
static char *argument_name(const char *s, const char **behind)
{
    const char *end = skip_token(s);
    *behind = skip_space(end);
    if (is_word(*s)) {
        return sqlite3_mprintf("%.*s", (int)(end - s), s);
    }
    char quote = *s == '[' ? ']' : *s;
    char *name = sqlite3_malloc64((size_t)(end - s) + 1), *to = name;
    for (const char *p = s + 1; name && p + 1 < end; p++) {
        *to++ = *p;
        p += *p == quote && p[1] == quote;
    }
    if (name) {
        *to = 0;
    }
    return name;
}

/* ------------------------------------------------------------------------------------ the table */

static int fail_source(reader *r, int rc)
{
    return sql_door_fail(r->d, rc, "%s", sqlite3_errmsg(r->d->t->db->db));
}

// Its CREATE statement, where schema has it.
static int look_in(reader *r, const char *schema, const char *table)
{
    sqlite3 *db = r->d->t->db->db;
    sqlite3_stmt *stmt = NULL;
    char *sql = sqlite3_mprintf(
        "SELECT name, sql FROM \"%w\".%s WHERE type = 'table' AND "
        "name = ?1 COLLATE NOCASE",
        schema, sqlite3_stricmp(schema, "temp") ? "sqlite_master" : "sqlite_temp_master");
    int rc = sql ? sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    if (rc == SQLITE_OK) {
        sqlite3_bind_text(stmt, 1, table, -1, SQLITE_STATIC);
        if (sqlite3_step(stmt) == SQLITE_ROW) {
            r->schema = sqlite3_mprintf("%s", schema);
            r->table = sqlite3_mprintf("%s", sqlite3_column_text(stmt, 0));
            r->sql = sqlite3_mprintf("%s", sqlite3_column_text(stmt, 1));
            rc = r->schema && r->table && r->sql ? SQLITE_OK : SQLITE_NOMEM;
        }
    }
    int end = sqlite3_finalize(stmt);
    rc = rc == SQLITE_OK ? end : rc;
    return rc == SQLITE_OK || rc == SQLITE_NOMEM ? rc : fail_source(r, rc);
}

static int find_table(reader *r, const char *name)
{
    sqlite3 *db = r->d->t->db->db;
    const char *schema, *dot = strchr(name, '.');
    int rc = look_in(r, "temp", name);
    for (int i = 0; rc == SQLITE_OK && !r->sql && (schema = sqlite3_db_name(db, i)); i++) {
        rc = i == 1 ? SQLITE_OK : look_in(r, schema, name);
    }
    if (rc == SQLITE_OK && !r->sql && dot) {
        char *first = sqlite3_mprintf("%.*s", (int)(dot - name), name);
        if (!first) {
            return SQLITE_NOMEM;
        }
        for (int i = 0; rc == SQLITE_OK && !r->sql && (schema = sqlite3_db_name(db, i)); i++) {
            rc = sqlite3_stricmp(first, schema) == 0 ? look_in(r, schema, dot + 1) : SQLITE_OK;
        }
        sqlite3_free(first);
    }
    const char *module = r->is_fts ? "fts5" : "vec0";
    if (rc == SQLITE_OK && r->sql) {
        r->args = arguments(r->sql, module);
    }
    if (rc == SQLITE_OK && !r->args) {
        rc = sql_door_fail(r->d, SQLITE_ERROR, r->sql ? "no table of %s" : "no such table of %s",
                           module);
    }
    return rc;
}

static int add_column(reader *r, const char *name)
{
    if (r->n == COLUMNS_MAX) {
        return sql_door_fail(r->d, SQLITE_ERROR, "more than %d columns", COLUMNS_MAX);
    }
    r->name[r->n] = sqlite3_mprintf("%s", name);
    if (!r->name[r->n]) {
        return SQLITE_NOMEM;
    }
    int to = sql_door_column(r->d, name, strlen(name));
    if (r->is_fts && (to < 0 || to == ST_COL_CONTENT || to == ST_COL_ID)) {
        to = TO_TEXT;
    }
    r->to[r->n++] = to < 0 && to != TO_TEXT ? TO_NOTHING : to;
    return SQLITE_OK;
}

// All columns that are not hidden.
static int list_columns(reader *r)
{
    sqlite3_stmt *stmt = NULL;
    char *sql = sqlite3_mprintf("PRAGMA \"%w\".table_xinfo(\"%w\")", r->schema, r->table);
    int rc = sql ? sqlite3_prepare_v2(r->d->t->db->db, sql, -1, &stmt, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    if (rc != SQLITE_OK) {
        return rc == SQLITE_NOMEM ? rc : fail_source(r, rc);
    }
    while (rc == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(stmt, 1);
        // vec0 lists the rowid as one
        int is_column = name && sqlite3_column_int(stmt, 6) == 0 &&
                        (r->is_fts || sqlite3_stricmp(name, "rowid") != 0);
        rc = is_column ? add_column(r, name) : SQLITE_OK;
    }
    int end = sqlite3_finalize(stmt);
    if (rc == SQLITE_OK && end != SQLITE_OK) {
        rc = fail_source(r, end);
    }
    return rc;
}

/* ----------------------------------------------------------------------------------------- vec0 */

static int column_of(const reader *r, const char *name)
{
    for (int i = 0; i < r->n; i++) {
        if (sqlite3_stricmp(r->name[i], name) == 0) {
            return i;
        }
    }
    return -1;
}

static int is_embedding(const reader *r, int col)
{
    return sqlite3_stricmp(r->name[col], "embedding") == 0;
}

// The vector column that was chosen, of that type and size.
static int check_vector(reader *r, const char *type, const char *size)
{
    long long dim = 0, ours = (long long)st_conn_info(r->d->t->store->conn)->dim;
    const char *name = r->name[r->vector];
    r->int8 = word_is(type, "int8") || word_is(type, "i8");
    if (word_is(type, "bit")) {
        return sql_door_fail(r->d, SQLITE_ERROR,
                             "\"%s\" holds bits; float[%lld] and int8[%lld] can be read", name,
                             ours, ours);
    }
    for (; *size >= '0' && *size <= '9' && dim < 1000000000; size++) {
        dim = dim * 10 + (*size - '0');
    }
    return dim == ours ? SQLITE_OK
                       : sql_door_fail(r->d, SQLITE_ERROR,
                                       "\"%s\" has %lld dimensions, dim is %lld", name, dim, ours);
}

// Which column is the vector, and which one takes the place of the rowid.
static int read_arguments(reader *r)
{
    const char *s = r->args, *arg, *type, *vtype = "", *vsize = "";
    size_t n;
    int other = -1;
    while (arg = next_argument(&s, &n), n > 0) {
        char *name = argument_name(skip_space(arg + (*arg == '+')), &type);
        if (!name) {
            return SQLITE_NOMEM;
        }
        int col = column_of(r, name);
        const char *size = skip_space(skip_token(type));
        sqlite3_free(name);
        if (col < 0) {
            continue;
        }
        if (*size == '[' &&
            (word_is(type, "float") || word_is(type, "f32") || word_is(type, "int8") ||
             word_is(type, "i8") || word_is(type, "bit"))) {
            r->to[col] = ST_COL_EMBEDDING;
            int better = r->vector < 0 || is_embedding(r, col);
            other = better ? r->vector : col;
            vtype = better ? type : vtype;
            vsize = better ? skip_space(size + 1) : vsize;
            r->vector = better ? col : r->vector;
        } else if (word_is(size, "primary")) {
            r->key = word_is(type, "integer") || word_is(type, "int") ? col : NO_KEY;
            r->to[col] = r->key == col ? ST_COL_ID : r->to[col];
        }
    }
    if (r->vector < 0) {
        return sql_door_fail(r->d, SQLITE_ERROR, "has no vector");
    }
    if (other >= 0 && !is_embedding(r, r->vector)) {
        return sql_door_fail(r->d, SQLITE_ERROR,
                             "has several vectors, \"%s\" and \"%s\", and none called embedding",
                             r->name[r->vector], r->name[other]);
    }
    return check_vector(r, vtype, vsize);
}

static int check_fts(reader *r)
{
    const char *s = r->args, *arg, *behind;
    size_t n;
    while (arg = next_argument(&s, &n), n > 0) {
        char *name = argument_name(arg, &behind);
        if (!name) {
            return SQLITE_NOMEM;
        }
        int bare = sqlite3_stricmp(name, "content") == 0 && *behind == '=';
        sqlite3_free(name);
        behind = skip_space(behind + (*behind == '='));
        if (bare && (strncmp(behind, "''", 2) == 0 || strncmp(behind, "\"\"", 2) == 0)) {
            return sql_door_fail(r->d, SQLITE_ERROR,
                                 "is contentless: it knows the words' places, not the texts");
        }
    }
    return SQLITE_OK;
}

/* ----------------------------------------------------------------------------------------- rows */

static st_value value_of(sqlite3_stmt *stmt, int i)
{
    switch (sqlite3_column_type(stmt, i)) {
    case SQLITE_INTEGER:
        return (st_value){.type = ST_INT, .i = sqlite3_column_int64(stmt, i)};
    case SQLITE_FLOAT:
        return (st_value){.type = ST_REAL, .r = sqlite3_column_double(stmt, i)};
    case SQLITE_TEXT: {
        const void *p = sqlite3_column_text(stmt, i);
        return (st_value){.type = ST_TEXT, .p = p, .n = (size_t)sqlite3_column_bytes(stmt, i)};
    }
    case SQLITE_BLOB: {
        const void *p = sqlite3_column_blob(stmt, i);
        return (st_value){.type = ST_BLOB, .p = p, .n = (size_t)sqlite3_column_bytes(stmt, i)};
    }
    default:
        return (st_value){.type = ST_NULL};
    }
}

static int take_vector(reader *r, st_value v)
{
    size_t dim = (size_t)st_conn_info(r->d->t->store->conn)->dim;
    if (r->int8 && v.type == ST_BLOB) {
        const int8_t *p = v.p;
        if (v.n != dim) {
            return sql_door_fail(r->d, SQLITE_ERROR, "a vector of %lld bytes, expected %lld",
                                 (long long)v.n, (long long)dim);
        }
        for (size_t i = 0; i < dim; i++) {
            r->floats[i] = p[i];
        }
        sql_floats_store(r->floats, dim, r->floats);
        v.p = r->floats;
        v.n = dim * sizeof(float);
    }
    r->d->value[ST_COL_EMBEDDING] = v;
    r->d->given[ST_COL_EMBEDDING] = 1;
    return SQLITE_OK;
}

static int take(reader *r, int i, sqlite3_stmt *stmt)
{
    sql_door *d = r->d;
    st_value v = value_of(stmt, i + 1);
    if (r->to[i] == TO_NOTHING && v.type != ST_NULL) {
        return sql_door_fail(d, SQLITE_ERROR,
                             "has a column \"%s\" with values, the table has none of that name",
                             r->name[i]);
    }
    if (r->to[i] == TO_TEXT && v.type != ST_NULL) {
        const char *text = (const char *)sqlite3_column_text(stmt, i + 1);
        int n = sqlite3_column_bytes(stmt, i + 1);
        if (n > 0 && sqlite3_str_length(r->text) > 0) {
            sqlite3_str_appendall(r->text, "\n\n");
        }
        sqlite3_str_append(r->text, text ? text : "", n);
        d->given[ST_COL_CONTENT] = 1;
    } else if (r->to[i] == ST_COL_EMBEDDING && !r->is_fts) {
        return i == r->vector ? take_vector(r, v) : SQLITE_OK;
    } else if (r->to[i] > ST_COL_ID) {
        d->value[r->to[i]] = v;
        d->given[r->to[i]] = 1;
    }
    return SQLITE_OK;
}

static int read_row(reader *r, sqlite3_stmt *stmt)
{
    sql_door *d = r->d;
    int taken = 0, rc;
    st_value id = value_of(stmt, 0);
    d->line = id.type == ST_INT ? id.i : 0;
    sql_door_clear(d);
    sqlite3_str_reset(r->text);
    rc = id.type == ST_INT ? sql_door_there(d, id.i, &taken) : SQLITE_OK;
    if (id.type == ST_INT && !taken) {
        d->value[ST_COL_ID] = id;
    }
    d->given[ST_COL_ID] = 1;
    for (int i = 0; i < r->n && rc == SQLITE_OK; i++) {
        rc = take(r, i, stmt);
    }
    if (rc == SQLITE_OK && d->given[ST_COL_CONTENT] && r->is_fts) {
        const char *text = sqlite3_str_value(r->text);
        rc = sqlite3_str_errcode(r->text);
        sql_door_set_text(d, ST_COL_CONTENT, text ? text : "", (size_t)sqlite3_str_length(r->text));
    }
    return rc == SQLITE_OK ? sql_door_put(d, NULL) : rc;
}

static int read_rows(reader *r)
{
    sqlite3 *db = r->d->t->db->db;
    sqlite3_stmt *stmt = NULL;
    sqlite3_str *s = sqlite3_str_new(db);
    if (r->key >= 0) {
        sqlite3_str_appendf(s, "SELECT \"%w\"", r->name[r->key]);
    } else {
        sqlite3_str_appendall(s, r->key == NO_KEY ? "SELECT NULL" : "SELECT rowid");
    }
    for (int i = 0; i < r->n; i++) {
        sqlite3_str_appendf(s, ", \"%w\"", r->name[i]);
    }
    sqlite3_str_appendf(s, " FROM \"%w\".\"%w\"", r->schema, r->table);
    char *sql = sqlite3_str_finish(s);
    int rc = sql ? sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    if (rc != SQLITE_OK) {
        return rc == SQLITE_NOMEM ? rc : fail_source(r, rc);
    }
    int step = SQLITE_OK;
    while (rc == SQLITE_OK && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
        rc = read_row(r, stmt);
    }
    r->d->line = 0;
    if (rc == SQLITE_OK && step != SQLITE_DONE) {
        rc = fail_source(r, sqlite3_errcode(db));
    }
    sqlite3_finalize(stmt);
    return rc;
}

static int import(sql_door *d, int is_fts)
{
    reader r;
    memset(&r, 0, sizeof r);
    r.d = d;
    r.is_fts = is_fts;
    r.vector = -1;
    r.key = ROWID;
    d->file = d->source;
    d->unit = "rowid";
    r.floats = sqlite3_malloc64((size_t)st_conn_info(d->t->store->conn)->dim * sizeof(float));
    r.text = sqlite3_str_new(d->t->db->db);
    int rc = r.floats ? find_table(&r, d->source) : SQLITE_NOMEM;
    rc = rc == SQLITE_OK ? list_columns(&r) : rc;
    rc = rc == SQLITE_OK ? (is_fts ? check_fts(&r) : read_arguments(&r)) : rc;
    rc = rc == SQLITE_OK ? read_rows(&r) : rc;
    for (int i = 0; i < r.n; i++) {
        sqlite3_free(r.name[i]);
    }
    sqlite3_free(sqlite3_str_finish(r.text));
    sqlite3_free(r.floats);
    sqlite3_free(r.schema);
    sqlite3_free(r.table);
    sqlite3_free(r.sql);
    return rc;
}

int sql_vec0_import(sql_door *d, const char *path)
{
    (void)path;
    return import(d, 0);
}

int sql_fts5_import(sql_door *d, const char *path)
{
    (void)path;
    return import(d, 1);
}
