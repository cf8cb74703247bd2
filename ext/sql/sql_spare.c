/*
 * sql_spare.c - when the state row need not be written.
 *
 * The row is what host and store agree by: a transaction counts in both or in neither. Where the
 * host has nothing to commit there is nothing to agree on, and a write of the row would be the
 * host's only one: an INSERT of a memory by itself costs then what its frames in the log cost.
 *
 * It has to be certain. SQLite does not tell whether a transaction has written, so all of this must
 * hold, from xBegin, which comes before the statement does anything, to xSync:
 *
 *   - autocommit: one statement, and it writes this table by name, so that no trigger stands
 *     between the two (a trigger of a plain table writes that table, and a table of another module
 *     may write at the end, after we have looked);
 *   - no other store takes part;
 *   - sqlite3_db_cacheflush says OK, and after it no more pages have been written than before: a
 *     function that the statement calls may have run statements of its own;
 *   - total_changes, schema_version and user_version are what they were: a page that a cursor
 *     holds, the first one above all, is not flushed and counts nowhere. The two versions are
 *     compared with what the last look found, here or at an earlier transaction; whoever changed
 *     them costs one commit with the row.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "sql.h"

/* ------------------------------------------------------------------------------- the statement */

static const char *skip_space(const char *s)
{
    while (*s == ' ' || *s == '\t' || *s == '\n' || *s == '\r' || *s == '\f') {
        s++;
    }
    return s;
}

static int is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$' || (c & 0x80);
}

const char *sql_keyword(const char *s, const char *word)
{
    int n = (int)strlen(word);
    s = skip_space(s);
    return sqlite3_strnicmp(s, word, n) == 0 && !is_word(s[n]) ? s + n : NULL;
}

// Behind a name that is `name`, bare or between quotes; NULL when it is another, or has quotes
// within.
static const char *named(const char *s, const char *name)
{
    size_t n = strlen(name);
    s = skip_space(s);
    char quote = *s == '"' || *s == '`' ? *s : *s == '[' ? ']' : 0;
    s += quote != 0;
    if (sqlite3_strnicmp(s, name, (int)n) != 0) {
        return NULL;
    }
    s += n;
    return quote ? (*s == quote ? s + 1 : NULL) : is_word(*s) ? NULL : s;
}

// Is this an INSERT, REPLACE, UPDATE or DELETE on the table, and nothing before it?
static int writes_table(const char *sql, const sql_table *t)
{
    static const char *const conflict[] = {"replace", "ignore", "abort", "fail", "rollback"};
    const char *s = sql_keyword(sql, "insert"), *next;
    int insert = s != NULL;
    if (!s) {
        s = sql_keyword(sql, "update");
    }
    if (s && (next = sql_keyword(s, "or")) != NULL) {
        s = NULL;
        for (size_t i = 0; i < sizeof conflict / sizeof *conflict && !s; i++) {
            s = sql_keyword(next, conflict[i]);
        }
    }
    if (!s && (s = sql_keyword(sql, "replace")) != NULL) {
        insert = 1;
    }
    if (s && insert) {
        s = sql_keyword(s, "into");
    } else if (!s && (s = sql_keyword(sql, "delete")) != NULL) {
        s = sql_keyword(s, "from");
    }
    if (!s) {
        return 0;
    }
    next = named(s, t->schema);
    if (next && *skip_space(next) == '.') {
        return named(skip_space(next) + 1, t->name) != NULL;
    }
    next = named(s, t->name);
    return next && *skip_space(next) != '.' && sqlite3_stricmp(t->schema, "main") == 0;
}

// The one statement that is running and may write is such a one.
static int only_writer(const sql_table *t)
{
    int found = 0;
    for (sqlite3_stmt *p = sqlite3_next_stmt(t->db->db, NULL); p;
         p = sqlite3_next_stmt(t->db->db, p)) {
        if (sqlite3_stmt_busy(p) && !sqlite3_stmt_readonly(p)) {
            const char *sql = sqlite3_sql(p);
            if (found || !sql || !writes_table(sql, t)) {
                return 0;
            }
            found = 1;
        }
    }
    return found;
}

/* ------------------------------------------------------------------------------------ versions */

static int step_version(sql_db *d, const char *schema, int which, int64_t *out)
{
    static const char *const pragma[2] = {"schema_version", "user_version"};
    sqlite3_stmt **stmt = &d->version[which];
    if (!*stmt) {
        char *sql = sqlite3_mprintf("PRAGMA \"%w\".%s", schema, pragma[which]);
        int rc = sql ? sqlite3_prepare_v3(d->db, sql, -1, SQLITE_PREPARE_PERSISTENT, stmt, NULL)
                     : SQLITE_NOMEM;
        sqlite3_free(sql);
        if (rc != SQLITE_OK) {
            return 0;
        }
    }
    int got = sqlite3_step(*stmt) == SQLITE_ROW;
    if (got) {
        *out = sqlite3_column_int64(*stmt, 0);
    }
    return sqlite3_reset(*stmt) == SQLITE_OK && got;
}

// Are the versions of the table's database those of the last look? Notes the new ones.
static int versions_stand(sql_table *t)
{
    sql_db *d = t->db;
    int same = 1;
    if (d->version_schema && strcmp(d->version_schema, t->schema) != 0) {
        sql_spare_drop(d);
    }
    if (!d->version_schema) {
        d->version_schema = sqlite3_mprintf("%s", t->schema);
        same = 0;
        if (!d->version_schema) {
            return 0;
        }
    }
    for (int i = 0; i < 2; i++) {
        int64_t now;
        if (!step_version(d, t->schema, i, &now)) {
            return 0;
        }
        same &= now == d->versions[i];
        d->versions[i] = now;
    }
    return same;
}

void sql_spare_drop(sql_db *d)
{
    for (int i = 0; i < 2; i++) {
        sqlite3_finalize(d->version[i]);
        d->version[i] = NULL;
    }
    sqlite3_finalize(d->patterns);
    d->patterns = NULL;
    sqlite3_free(d->version_schema);
    d->version_schema = NULL;
}

/* ----------------------------------------------------------------------------------- the answer */

static int pages_written(sqlite3 *db, int *n)
{
    int high;
    return sqlite3_db_status(db, SQLITE_DBSTATUS_CACHE_WRITE, n, &high, 0) == SQLITE_OK;
}

void sql_spare_begin(sql_table *t)
{
    sqlite3 *db = t->db->db;
    sql_spared *s = &t->store->spared;
    s->possible = sqlite3_get_autocommit(db) && only_writer(t) && pages_written(db, &s->written);
    s->total_changes = sqlite3_total_changes(db);
}

int sql_spare(sql_table *t)
{
    sqlite3 *db = t->db->db;
    const sql_spared *s = &t->store->spared;
    int written;
    if (!s->possible || !sqlite3_get_autocommit(db) ||
        sqlite3_total_changes(db) != s->total_changes) {
        return 0;
    }
    for (const sql_store *o = t->db->stores; o; o = o->next) {
        if (o != t->store && o->conn && st_in_transaction(o->conn)) {
            return 0;
        }
    }
    return versions_stand(t) && sqlite3_db_cacheflush(db) == SQLITE_OK &&
           pages_written(db, &written) && written == s->written;
}
