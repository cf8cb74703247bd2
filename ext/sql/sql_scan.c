/*
 * sql_scan.c - h5mem_scan(text): what in a text gives orders to its reader, as JSON.
 *
 * An array, empty where nothing was found, of {"kind", "severity", "start", "end"}, by start. start
 * and end count characters from 0, so that substr(text, start + 1, end - start) is what was
 * found. NULL for NULL; a BLOB is taken by its bytes. Pure.
 *
 * SPDX-License-Identifier: MIT
 */
#include "sql_scan.h"

/* Characters before byte `at`, counted on from an earlier place. */
typedef struct places {
    const unsigned char *s;
    size_t at, count;
} places;

static size_t place(places *p, size_t at)
{
    if (at < p->at) {
        p->at = p->count = 0;
    }
    for (; p->at < at; p->at++) {
        p->count += (p->s[p->at] & 0xC0) != 0x80;
    }
    return p->count;
}

void sql_scan_json(sqlite3_str *out, const void *text, const mind_finding *f, size_t n)
{
    places p = {text, 0, 0};
    sqlite3_str_appendchar(out, 1, '[');
    for (size_t i = 0; i < n; i++) {
        size_t start = place(&p, f[i].start);
        sqlite3_str_appendf(
            out, "%s{\"kind\":\"%s\",\"severity\":\"%s\",\"start\":%lld,\"end\":%lld}",
            i ? "," : "", mind_scan_name(f[i].kind), mind_severity_name(f[i].severity),
            (long long)start, (long long)place(&p, f[i].end));
    }
    sqlite3_str_appendchar(out, 1, ']');
}

void sql_scan_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    mind_finding found[SQL_SCAN_MAX];
    int blob = sqlite3_value_type(argv[0]) == SQLITE_BLOB;
    (void)argc;
    if (sqlite3_value_type(argv[0]) == SQLITE_NULL) {
        return;
    }
    const void *text = blob ? sqlite3_value_blob(argv[0]) : sqlite3_value_text(argv[0]);
    size_t n = text ? (size_t)sqlite3_value_bytes(argv[0]) : 0;
    if (!text && !blob) {
        sqlite3_result_error_nomem(ctx);
        return;
    }
    sqlite3_str *out = sqlite3_str_new(NULL);
    sql_scan_json(out, text, found, mind_scan(text, n, found, SQL_SCAN_MAX));
    char *json = sqlite3_str_finish(out);
    if (json) {
        sqlite3_result_text(ctx, json, -1, sqlite3_free);
    } else {
        sqlite3_result_error_nomem(ctx);
    }
}
