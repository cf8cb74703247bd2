/*
 * sql_h5_open.c - opening files and objects, and how their failures read.
 *
 * A message is `h5mem: <function or table>: <file>: <object>: <text>`. An error of the format is
 * SQLITE_NOTADB while the file opens and SQLITE_CORRUPT_VTAB later.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "sql_h5.h"

/* A file that another process is just flipping to a new root shows a superblock with a wrong
 * checksum for a moment. */
enum { OPEN_TRIES = 3 };

int sql_h5_fail(sql_h5 *h, int rc, const char *fmt, ...)
{
    if (h->message) {
        return rc;
    }
    va_list ap;
    va_start(ap, fmt);
    char *text = sqlite3_vmprintf(fmt, ap);
    va_end(ap);
    if (text) {
        h->message = sql_message(h->who, h->path, "%s%s%s", h->object ? h->object : "",
                                 h->object ? ": " : "", text);
    }
    sqlite3_free(text);
    if (h->message) {
        sql_h5_clean(h->message); // names of the file are in it
    }
    return h->message ? rc : SQLITE_NOMEM;
}

static int code_of(const h5_error *e)
{
    switch (e->code) {
    case H5_NOMEM:
        return SQLITE_NOMEM;
    case H5_IO:
        return SQLITE_IOERR;
    case H5_FORMAT:
        return SQLITE_CORRUPT_VTAB;
    case H5_LIMIT:
        return SQLITE_TOOBIG;
    default: // UNSUPPORTED, NOTFOUND, MISUSE
        return SQLITE_ERROR;
    }
}

int sql_h5_fail_core(sql_h5 *h, const h5_error *e)
{
    return sql_h5_fail(h, code_of(e), "%s%s", e->code == H5_UNSUPPORTED ? "not supported: " : "",
                       e->text);
}

int sql_h5_to_vtab(sql_h5 *h, int rc, sqlite3_vtab *v)
{
    if (rc != SQLITE_OK && h->message) {
        sqlite3_free(v->zErrMsg);
        v->zErrMsg = h->message;
        h->message = NULL;
    }
    return rc;
}

void sql_h5_to_result(sql_h5 *h, int rc, sqlite3_context *ctx)
{
    if (rc == SQLITE_NOMEM || !h->message) {
        sqlite3_result_error_nomem(ctx);
    } else {
        sqlite3_result_error(ctx, h->message, -1);
        sqlite3_result_error_code(ctx, rc);
    }
    sqlite3_free(h->message);
    h->message = NULL;
}

static void forget_names(sql_h5 *h)
{
    for (size_t i = 0; i < h->nname; i++) {
        sqlite3_free(h->names[i].path);
    }
    sqlite3_free(h->names);
    h->names = NULL;
    h->nname = h->room = 0;
}

void sql_h5_close(sql_h5 *h)
{
    forget_names(h);
    h5_heaps_close(h->heaps);
    h5_file_close(h->file);
    sqlite3_free(h->path);
    sqlite3_free(h->object);
    sqlite3_free(h->message);
    *h = (sql_h5){.who = h->who};
}

int sql_h5_open(sql_h5 *h, const char *path)
{
    h5_error err;
    if (h->file && strcmp(h->path, path) == 0) {
        sqlite3_free(h->object);
        h->object = NULL;
        return SQLITE_OK;
    }
    sql_h5_close(h);
    h->path = sqlite3_mprintf("%s", path);
    if (!h->path) {
        return SQLITE_NOMEM;
    }
    int rc = H5_FORMAT;
    for (int i = 0; i < OPEN_TRIES && rc == H5_FORMAT; i++) {
        h5_error_clear(&err);
        rc = h5_file_open_path(path, &h->file, &err);
    }
    if (rc == H5_FORMAT) {
        return sql_h5_fail(h, SQLITE_NOTADB, "%s", err.text);
    }
    if (rc == H5_IO) {
        return sql_h5_fail(h, SQLITE_CANTOPEN, "%s", err.text);
    }
    if (rc == H5_OK && h5_heaps_open(h->file, &h->heaps, &err) == H5_OK) {
        h->target = h->file;
        return SQLITE_OK;
    }
    h5_file_close(h->file);
    h->file = NULL;
    return sql_h5_fail_core(h, &err);
}

/* Points heaps and names to the file in which an object lies. */
static int aim_at(sql_h5 *h, h5_file *target)
{
    h5_heaps *heaps;
    h5_error err;
    h5_error_clear(&err);
    if (h->target == target) {
        return SQLITE_OK;
    }
    if (h5_heaps_open(target, &heaps, &err) != H5_OK) {
        return sql_h5_fail_core(h, &err);
    }
    h5_heaps_close(h->heaps);
    forget_names(h);
    h->heaps = heaps;
    h->target = target;
    return SQLITE_OK;
}

int sql_h5_find(sql_h5 *h, const char *path, h5_object **out)
{
    h5_error err;
    h5_error_clear(&err);
    sqlite3_free(h->object);
    h->object = sqlite3_mprintf("%s", path);
    *out = NULL;
    if (!h->object) {
        return SQLITE_NOMEM;
    }
    // An earlier target is closed by now, and another file may have got its address.
    int rc = h->target == h->file ? SQLITE_OK : aim_at(h, h->file);
    if (rc == SQLITE_OK && h5_object_find(h->file, path, out, &err) != H5_OK) {
        rc = sql_h5_fail_core(h, &err);
    }
    if (rc == SQLITE_OK) {
        rc = aim_at(h, h5_object_file(*out));
    }
    if (rc != SQLITE_OK) {
        h5_object_close(*out);
        *out = NULL;
    }
    return rc;
}

int sql_h5_text(sql_h5 *h, const char *what, sqlite3_value *v, const char **out)
{
    char show[SQL_SHOW];
    int type = sqlite3_value_type(v);
    *out = NULL;
    if ((type == SQLITE_TEXT || type == SQLITE_BLOB) && sqlite3_value_bytes(v) > 0) {
        *out = (const char *)sqlite3_value_text(v);
        if (!*out) {
            return SQLITE_NOMEM;
        }
    }
    if (!*out || !**out || strlen(*out) != (size_t)sqlite3_value_bytes(v)) {
        return sql_h5_fail(h, SQLITE_ERROR, "the %s is %s", what, sql_show(v, show));
    }
    return SQLITE_OK;
}

/* ----------------------------------------------------------------------------------- references */

static int note_name(void *ctx, const h5_item *item)
{
    sql_h5 *h = ctx;
    if (item->kind == H5_ITEM_ERROR && item->error->code == H5_NOMEM) {
        return SQLITE_NOMEM;
    }
    if (item->addr == H5_UNDEF || item->kind == H5_ITEM_SAME) {
        return 0;
    }
    if (h->nname == h->room) {
        size_t room = h->room ? 2 * h->room : 64;
        sql_h5_name *more = sqlite3_realloc64(h->names, room * sizeof *more);
        if (!more) {
            return SQLITE_NOMEM;
        }
        h->names = more;
        h->room = room;
    }
    char *path = sqlite3_mprintf("%s", item->path);
    if (!path) {
        return SQLITE_NOMEM;
    }
    h->names[h->nname++] = (sql_h5_name){item->addr, path};
    return 0;
}

static int by_addr(const void *a, const void *b)
{
    uint64_t x = ((const sql_h5_name *)a)->addr, y = ((const sql_h5_name *)b)->addr;
    return (x > y) - (x < y);
}

int sql_h5_name_of(sql_h5 *h, uint64_t addr, const char **out)
{
    h5_error err;
    h5_error_clear(&err);
    *out = NULL;
    if (!h->names) {
        int rc = h5_walk(h->target, note_name, h, &err);
        if (rc != 0) {
            forget_names(h);
            return rc < 0 ? sql_h5_fail_core(h, &err) : rc;
        }
        if (h->nname) {
            qsort(h->names, h->nname, sizeof *h->names, by_addr);
        }
    }
    sql_h5_name key = {addr, NULL};
    const sql_h5_name *found = h->nname
                                   ? bsearch(&key, h->names, h->nname, sizeof *h->names, by_addr)
                                   : NULL;
    *out = found ? found->path : NULL;
    return SQLITE_OK;
}
