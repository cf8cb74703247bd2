/*
 * sql_ext.c - loading: `.load ./h5mem`, or sqlite3_h5mem_init linked in with -DSQLITE_CORE.
 *
 * SPDX-License-Identifier: MIT
 */
#include "sqlite3ext.h"
SQLITE_EXTENSION_INIT1

#include "sql.h"
#include "vec.h"

/* The modules that need nothing of a connection. */
static const struct {
    const char *name;
    const sqlite3_module *module;
} hdf5_modules[] = {
    {"hdf5_objects", &sql_h5_objects_module},
    {"hdf5_attributes", &sql_h5_attributes_module},
    {"hdf5_values", &sql_h5_values_module},
    {"hdf5", &sql_h5_table_module},
};

static int register_all(sqlite3 *db)
{
    sql_db *d;
    int rc = sql_db_new(db, &d);
    if (rc != SQLITE_OK) {
        return rc;
    }
    d->refs = 2; // ours until the end of this function, and the first module's
    rc = sqlite3_create_module_v2(db, "h5mem", &sql_table_module.base, d, sql_db_unref);
    if (rc == SQLITE_OK) {
        d->refs++;
        rc = sqlite3_create_module_v2(db, "h5mem_info", &sql_info_module, d, sql_db_unref);
    }
    if (rc == SQLITE_OK) {
        d->refs++;
        rc = sqlite3_create_module_v2(db, "h5mem_alerts", &sql_alerts_module, d, sql_db_unref);
    }
    if (rc == SQLITE_OK) {
        d->refs++;
        rc = sqlite3_create_module_v2(db, "h5mem_dropped", &sql_dropped_module, d, sql_db_unref);
    }
    if (rc == SQLITE_OK) {
        d->refs++;
        rc = sqlite3_create_module_v2(db, "h5mem_sessions", &sql_side_module, d, sql_db_unref);
    }
    if (rc == SQLITE_OK) {
        d->refs++;
        rc = sqlite3_create_module_v2(db, "h5mem_events", &sql_events_module, d, sql_db_unref);
    }
    if (rc == SQLITE_OK) {
        d->refs++;
        rc = sqlite3_create_module_v2(db, "h5mem_timeline", &sql_events_module, d, sql_db_unref);
    }
    for (size_t i = 0; i < sizeof hdf5_modules / sizeof *hdf5_modules && rc == SQLITE_OK; i++) {
        rc = sqlite3_create_module_v2(db, hdf5_modules[i].name, hdf5_modules[i].module, NULL, NULL);
    }
    if (rc == SQLITE_OK) {
        rc = sql_rows_register(d);
    }
    if (rc == SQLITE_OK) {
        rc = sql_functions_register(d);
    }
    if (rc == SQLITE_OK) {
        rc = sql_aux_register(d);
    }
    sql_db_unref(d);
    return rc;
}

// A second load on a connection keeps the first one's tables and does nothing.
static int is_loaded(sqlite3 *db)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(db, "SELECT h5mem_version()", -1, &stmt, NULL);
    sqlite3_finalize(stmt);
    if (rc != SQLITE_OK) {
        // sqlite3_open would hand this failure out when h5mem is an auto-extension
        sqlite3_prepare_v2(db, "SELECT 1", -1, &stmt, NULL);
        sqlite3_finalize(stmt);
    }
    return rc == SQLITE_OK;
}

int sqlite3_h5mem_init(sqlite3 *db, char **err, const sqlite3_api_routines *api)
{
    SQLITE_EXTENSION_INIT2(api);
    (void)api;
    if (sqlite3_libversion_number() < 3040000) {
        *err = sqlite3_mprintf("h5mem needs SQLite 3.40 or later, this is %s",
                               sqlite3_libversion());
        return SQLITE_ERROR;
    }
    vec_init();
    int rc = is_loaded(db) ? SQLITE_OK : register_all(db);
#ifndef SQLITE_CORE
    // The code stays mapped when the connection closes: stores of other connections and, later,
    // threads run in it.
    rc = rc == SQLITE_OK ? SQLITE_OK_LOAD_PERMANENTLY : rc;
#endif
    return rc;
}

int sqlite3_hmem_init(sqlite3 *db, char **err, const sqlite3_api_routines *api)
{
    return sqlite3_h5mem_init(db, err, api);
}
