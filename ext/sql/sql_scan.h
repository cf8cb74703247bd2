/*
 * sql_scan.h - findings of mind_scan as JSON, for the files of ext/sql that write them down.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SQL_SCAN_H
#define SQL_SCAN_H

#include "mind.h"
#include "sql.h"

enum { SQL_SCAN_MAX = 64 }; /* findings of one text; further ones are not looked for */

void sql_scan_json(sqlite3_str *out, const void *text, const mind_finding *f, size_t n);

#endif
