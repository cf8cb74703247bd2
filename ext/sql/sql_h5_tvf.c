/*
 * sql_h5_tvf.c - what the table-valued functions hdf5_objects, hdf5_attributes and hdf5_values
 * share.
 *
 * They take a path, so they are DIRECTONLY: no view or trigger of a stranger's database opens a
 * file.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "sql_h5.h"

int sql_h5_tvf_connect(sqlite3 *db, const char *schema, sqlite3_vtab **out)
{
    int rc = sqlite3_declare_vtab(db, schema);
    if (rc != SQLITE_OK) {
        return rc;
    }
    sqlite3_vtab *v = sqlite3_malloc(sizeof *v);
    if (!v) {
        return SQLITE_NOMEM;
    }
    memset(v, 0, sizeof *v);
    sqlite3_vtab_config(db, SQLITE_VTAB_DIRECTONLY);
    *out = v;
    return SQLITE_OK;
}

int sql_h5_tvf_disconnect(sqlite3_vtab *v)
{
    sqlite3_free(v);
    return SQLITE_OK;
}

int sql_h5_tvf_args(sqlite3_vtab *v, sqlite3_index_info *info, const char *who, int first, int n,
                    int *next)
{
    int found[8], seen = 0;
    memset(found, -1, sizeof found);
    for (int i = 0; i < info->nConstraint; i++) {
        const struct sqlite3_index_constraint *k = &info->aConstraint[i];
        int arg = k->iColumn - first;
        if (arg < 0 || arg >= n || k->op != SQLITE_INDEX_CONSTRAINT_EQ) {
            continue;
        }
        seen |= arg == 0;
        if (!k->usable) {
            return SQLITE_CONSTRAINT; // this order of a join gives the argument too late
        }
        found[arg] = i;
    }
    if (found[0] < 0 && !seen) {
        sqlite3_free(v->zErrMsg);
        v->zErrMsg = sql_message(who, NULL, "it takes the path of an HDF5 file");
        return v->zErrMsg ? SQLITE_ERROR : SQLITE_NOMEM;
    }
    info->idxNum = 0;
    *next = 1;
    for (int arg = 0; arg < n; arg++) {
        if (found[arg] >= 0) {
            info->aConstraintUsage[found[arg]].argvIndex = (*next)++;
            info->aConstraintUsage[found[arg]].omit = 1;
            info->idxNum |= 1 << arg;
        }
    }
    return SQLITE_OK;
}

int sql_h5_tvf_plan(sqlite3_vtab *v, sqlite3_index_info *info, const char *who, int first, int n)
{
    int next;
    info->estimatedRows = 100;
    info->estimatedCost = 1000;
    return sql_h5_tvf_args(v, info, who, first, n, &next);
}

void sql_h5_result_name(sqlite3_context *ctx, const char *text)
{
    size_t n = strlen(text);
    if (sql_h5_is_utf8(text, n)) {
        sqlite3_result_text64(ctx, text, n, SQLITE_TRANSIENT, SQLITE_UTF8);
    } else {
        sqlite3_result_blob64(ctx, text, n, SQLITE_TRANSIENT);
    }
}
