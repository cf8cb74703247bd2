/*
 * sql_gate.c - h5mem_gate(text [, 'save' or 'search']) and h5mem_gate_reason(...): is a message
 * worth keeping, or worth a search? What is, mind_gate.c says.
 *
 * NULL gives NULL. A number is its text, a BLOB its bytes. Pure: usable in views, triggers and
 * indexes.
 *
 * SPDX-License-Identifier: MIT
 */
#include "mind.h"
#include "sql.h"

/* The reason for what argv says; negative after an error or NULL, which is then the result. */
static int reason(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    char show[SQL_SHOW];
    int purpose = MIND_TO_SAVE, blob = sqlite3_value_type(argv[0]) == SQLITE_BLOB;
    if (argc == 2) {
        const char *s = (const char *)sqlite3_value_text(argv[1]);
        if (s && sqlite3_stricmp(s, "search") == 0) {
            purpose = MIND_TO_SEARCH;
        } else if (!s || sqlite3_stricmp(s, "save") != 0) {
            sql_fail_fn(ctx, SQLITE_ERROR, NULL, NULL,
                        "h5mem_gate's purpose is %s; it takes 'save' or 'search'",
                        sql_show(argv[1], show));
            return -1;
        }
    }
    if (sqlite3_value_type(argv[0]) == SQLITE_NULL) {
        return -1;
    }
    const void *text = blob ? sqlite3_value_blob(argv[0]) : sqlite3_value_text(argv[0]);
    size_t n = (size_t)sqlite3_value_bytes(argv[0]);
    if (!text && !blob) {
        sqlite3_result_error_nomem(ctx);
        return -1;
    }
    return mind_gate(text, text ? n : 0, purpose);
}

void sql_gate_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    int why = reason(ctx, argc, argv);
    if (why >= 0) {
        sqlite3_result_int(ctx, mind_gate_keeps(why));
    }
}

void sql_gate_reason_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    int why = reason(ctx, argc, argv);
    if (why >= 0) {
        sqlite3_result_text(ctx, mind_gate_name(why), -1, SQLITE_STATIC);
    }
}
