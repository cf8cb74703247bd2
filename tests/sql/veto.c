/*
 * veto.c - an extension for tests: SELECT veto(n) has a commit hook refuse the next n commits
 *
 * SPDX-License-Identifier: MIT
 */
#include <stddef.h>

#include <sqlite3ext.h>
SQLITE_EXTENSION_INIT1

static int refuse(void *left)
{
    return *(int *)left > 0 && (*(int *)left)-- > 0;
}

static void veto(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    *(int *)sqlite3_user_data(ctx) = sqlite3_value_int(argv[0]);
}

int sqlite3_veto_init(sqlite3 *db, char **err, const sqlite3_api_routines *api);

int sqlite3_veto_init(sqlite3 *db, char **err, const sqlite3_api_routines *api)
{
    SQLITE_EXTENSION_INIT2(api);
    int *left = sqlite3_malloc(sizeof *left);
    (void)err;
    if (!left) {
        return SQLITE_NOMEM;
    }
    *left = 0;
    sqlite3_commit_hook(db, refuse, left);
    return sqlite3_create_function_v2(db, "veto", 1, SQLITE_UTF8, left, veto, NULL, NULL,
                                      sqlite3_free);
}
