/*
 * sql_err.c - every failure becomes a SQLite code and one line of text here.
 *
 * The line is `h5mem: <table>: <file>: <text>`; the file by its base name, table and file left out
 * where they are unknown.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdarg.h>
#include <string.h>

#include "sql.h"

int sql_code(int st)
{
    switch (st) {
    case ST_OK:
        return SQLITE_OK;
    case ST_NOMEM:
        return SQLITE_NOMEM;
    case ST_IO:
        return SQLITE_IOERR;
    case ST_FULL:
        return SQLITE_FULL;
    case ST_CORRUPT:
        return SQLITE_CORRUPT_VTAB;
    case ST_LIMIT:
        return SQLITE_TOOBIG;
    case ST_BUSY:
        return SQLITE_BUSY;
    case ST_BUSY_SNAPSHOT:
        return SQLITE_BUSY_SNAPSHOT;
    case ST_STOPPED:
        return SQLITE_INTERRUPT;
    case ST_EXISTS:
        return SQLITE_CONSTRAINT_PRIMARYKEY;
    case ST_READONLY:
        return SQLITE_READONLY;
    case ST_NOT_A_STORE:
        return SQLITE_NOTADB;
    case ST_LOCKED:
        return SQLITE_LOCKED;
    default:
        // UNSUPPORTED, NOTFOUND, MISUSE, DOUBT: nothing that trying again would change
        return SQLITE_ERROR;
    }
}

const char *sql_base_name(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path;
}

static char *message(const char *table, const char *path, const char *fmt, va_list ap)
{
    sqlite3_str *s = sqlite3_str_new(NULL);
    sqlite3_str_appendall(s, "h5mem: ");
    if (table) {
        sqlite3_str_appendf(s, "%s: ", table);
    }
    if (path) {
        sqlite3_str_appendf(s, "%s: ", sql_base_name(path));
    }
    sqlite3_str_vappendf(s, fmt, ap);
    return sqlite3_str_finish(s);
}

char *sql_message(const char *table, const char *path, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *text = message(table, path, fmt, ap);
    va_end(ap);
    return text;
}

static void leave(sql_table *t, char *text)
{
    sqlite3_free(t->base.zErrMsg);
    t->base.zErrMsg = text;
}

int sql_fail(sql_table *t, int rc, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    leave(t, message(t->name, t->store ? t->store->path : NULL, fmt, ap));
    va_end(ap);
    return rc;
}

int sql_fail_st(sql_table *t, const st_error *e)
{
    return sql_fail(t, sql_code(e->code), "%s", e->text);
}

void sql_fail_fn(sqlite3_context *ctx, int rc, const char *table, const char *path, const char *fmt,
                 ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *text = message(table, path, fmt, ap);
    va_end(ap);
    if (text) {
        sqlite3_result_error(ctx, text, -1);
        sqlite3_result_error_code(ctx, rc);
    } else {
        sqlite3_result_error_nomem(ctx);
    }
    sqlite3_free(text);
}

void sql_fail_fn_table(sqlite3_context *ctx, sql_table *t, int rc)
{
    if (t->base.zErrMsg) {
        sqlite3_result_error(ctx, t->base.zErrMsg, -1);
        leave(t, NULL);
    }
    sqlite3_result_error_code(ctx, rc);
}

void sql_fail_fn_db(sqlite3_context *ctx, sqlite3 *db, int rc)
{
    // copied first: setting a result can itself change the connection's message
    char *text = sqlite3_mprintf("%s", sqlite3_errmsg(db));
    if (text) {
        sqlite3_result_error(ctx, text, -1);
    }
    sqlite3_free(text);
    sqlite3_result_error_code(ctx, rc);
}

const char *sql_show(sqlite3_value *v, char buf[SQL_SHOW])
{
    switch (sqlite3_value_type(v)) {
    case SQLITE_NULL:
        sqlite3_snprintf(SQL_SHOW, buf, "NULL");
        break;
    case SQLITE_INTEGER:
        sqlite3_snprintf(SQL_SHOW, buf, "%lld", sqlite3_value_int64(v));
        break;
    case SQLITE_FLOAT:
        sqlite3_snprintf(SQL_SHOW, buf, "%!.15g", sqlite3_value_double(v));
        break;
    case SQLITE_BLOB:
        sqlite3_snprintf(SQL_SHOW, buf, "a blob of %d bytes", sqlite3_value_bytes(v));
        break;
    default: {
        const char *s = (const char *)sqlite3_value_text(v);
        int n = 0;
        while (s && s[n] && n < 60) {
            n++;
        }
        while (s && n > 0 && ((unsigned char)s[n] & 0xC0) == 0x80) {
            n--; // never half a character
        }
        sqlite3_snprintf(SQL_SHOW, buf, "'%.*s%s'", n, s ? s : "", s && s[n] ? "..." : "");
    }
    }
    return buf;
}
