/*
 * sql_verify.c - h5mem_verify(t), and the same check for PRAGMA integrity_check.
 *
 * The store is checked as it is committed. The text index is held against the rows' texts through
 * the connection's tokenizer, if that is the one the store was written with.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <string.h>

#include "sql.h"

enum { FAULT_TEXT = 4096 }; /* bytes of faults that are told */

typedef struct verify_ctx {
    sql_tokenizer *tok;
    sql_tokens tokens;
} verify_ctx;

static int tokens_of(void *ctx, const st_value text[3], const uint8_t **stream, size_t *nstream,
                     st_error *err)
{
    verify_ctx *v = ctx;
    int rc = sql_tokenize_row(v->tok, text, &v->tokens);
    *stream = v->tokens.bytes;
    *nstream = v->tokens.n;
    if (rc != SQLITE_OK) {
        err->code = rc == SQLITE_NOMEM ? ST_NOMEM : ST_UNSUPPORTED;
        snprintf(err->text, sizeof err->text, "the tokenizer failed on a row's text");
        return err->code;
    }
    return ST_OK;
}

/* SQLITE_OK and the faults in text (empty: none), or an error set on the table. */
static int verify(sql_table *t, char *text, size_t n)
{
    verify_ctx v = {0};
    st_verify_host host = {&v, tokens_of};
    st_error err = {0};
    uint64_t faults = 0;
    int rc = sql_table_tokenizer(t, &v.tok);
    if (rc == SQLITE_NOMEM) {
        return rc;
    }
    // without its tokenizer the texts go unchecked, which is no failure: its message goes, too
    sqlite3_free(t->base.zErrMsg);
    t->base.zErrMsg = NULL;
    int st = st_verify(t->store->conn, rc == SQLITE_OK ? &host : NULL, text, n, &faults, &err);
    sql_tokens_free(&v.tokens);
    return st == ST_OK ? SQLITE_OK : sql_fail_st(t, &err);
}

void sql_verify_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    char text[FAULT_TEXT];
    (void)argc;
    sql_table *t = sql_fn_table(ctx, argv[0]);
    if (!t) {
        return;
    }
    if (st_has_changes(t->store->conn)) {
        sql_fail_fn(ctx, SQLITE_LOCKED, t->name, t->store->path,
                    "this connection has uncommitted rows in the store; commit or roll back first");
        return;
    }
    int rc = verify(t, text, sizeof text);
    if (rc != SQLITE_OK) {
        sql_fail_fn_table(ctx, t, rc);
    } else {
        sqlite3_result_text(ctx, text[0] ? text : "ok", -1, SQLITE_TRANSIENT);
    }
}

int sql_verify_command(sql_table *t)
{
    char text[FAULT_TEXT];
    int rc = sql_table_open(t);
    if (rc == SQLITE_OK) {
        rc = verify(t, text, sizeof text);
    }
    if (rc == SQLITE_OK && text[0]) {
        rc = sql_fail(t, SQLITE_CORRUPT_VTAB, "%s", text);
    }
    return rc;
}

int sql_integrity(sqlite3_vtab *vtab, const char *schema, const char *name, int flags, char **out)
{
    sql_table *t = (sql_table *)vtab;
    char text[FAULT_TEXT];
    (void)schema;
    (void)flags;
    int rc = sql_table_open(t);
    if (rc == SQLITE_OK) {
        rc = verify(t, text, sizeof text);
    }
    if (rc == SQLITE_NOMEM) {
        return rc;
    }
    if (rc != SQLITE_OK) {
        // A store that cannot be opened is a finding, too.
        *out = sqlite3_mprintf("%s", vtab->zErrMsg ? vtab->zErrMsg : "the store cannot be read");
    } else if (text[0]) {
        *out = sqlite3_mprintf("h5mem: %s: %s", name, text);
    }
    return SQLITE_OK;
}
