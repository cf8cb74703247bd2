/*
 * sql_door_md.c - 'markdown' in: a file, or all *.md files under a folder; a row a section.
 *
 * content is the section as it stands, heading and white space and all, so that the rows of a file
 * one after the other are the file. channel is path::heading::heading (sql_md.h), tags begin with
 * "markdown,section-N", where N is its place in the file. The path is as it was given, so that a
 * file and its folder, imported from the same working folder, name the same rows.
 *
 * A file with a date (`date:` in its front matter, else YYYY-MM-DD in its name) is a daily log: it
 * is cut at headings of level 2 and below, and timestamp is that date, at the time of day that a
 * heading begins with ("## 14:30 Stand-up"). Elsewhere it is when the file was last changed.
 *
 * Again: a section whose text is unchanged keeps its row, wherever it has moved to; then one with
 * the same channel takes the new text, and its embedding, which was the old text's, becomes NULL;
 * other sections are new rows, other rows of the file are deleted. A folder stands for all files
 * under it: rows of a file that is gone are deleted. Files that h5mem_export made of rows of no
 * Markdown are read as those rows (sql_door_md_rows.c).
 *
 * SPDX-License-Identifier: MIT
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sql_door.h"
#include "sql_md.h"

#define FILE_MAX ((size_t)1 << 30)
enum { DEPTH_MAX = 64 };

/* A row that is a section of a file already. */
typedef struct old_row {
    char *channel; /* by sqlite3_malloc */
    size_t path;   /* bytes of it that are the path */
    uint64_t row;
    int64_t id, number;
} old_row;

typedef struct reader {
    sql_door *d;
    old_row *old; /* by path, number, id */
    size_t nold, room;
    sqlite3_int64 sections;
    char **paths; /* of files in a folder */
    size_t npath, path_room;
    /* of one file */
    const char *path, *text;
    size_t n;
    const old_row *rows; /* of this file */
    size_t nrow;
    sql_md_section *section;
    size_t nsection;
    size_t *match;    /* a section: its row, or NONE */
    uint8_t *matched; /* a row: has a section */
    char **channel;   /* a section: its channel */
    int dated;
    double day;
} reader;

#define NONE SIZE_MAX

/* ------------------------------------------------------------------------------------- old rows */

static size_t path_length(const char *channel)
{
    const char *end = strstr(channel, "::");
    return end ? (size_t)(end - channel) : strlen(channel);
}

static int note_row(void *ctx, uint64_t row, int64_t id)
{
    reader *r = ctx;
    st_value tags, channel;
    int rc = sql_door_value(r->d, row, ST_COL_TAGS, &tags);
    int64_t number = rc == SQLITE_OK && tags.type == ST_TEXT ? sql_md_section_of(tags.p, tags.n)
                                                             : -1;
    if (rc != SQLITE_OK || number < 0) {
        return rc;
    }
    rc = sql_door_value(r->d, row, ST_COL_CHANNEL, &channel);
    if (rc != SQLITE_OK || channel.type != ST_TEXT || memchr(channel.p, 0, channel.n)) {
        return rc;
    }
    if (r->nold == r->room) {
        size_t room = r->room * 2 + 64;
        old_row *more = sqlite3_realloc64(r->old, room * sizeof *more);
        if (!more) {
            return SQLITE_NOMEM;
        }
        r->old = more;
        r->room = room;
    }
    old_row *o = &r->old[r->nold];
    o->channel = sqlite3_mprintf("%.*s", (int)channel.n, (const char *)channel.p);
    if (!o->channel) {
        return SQLITE_NOMEM;
    }
    o->path = path_length(o->channel);
    o->row = row;
    o->id = id;
    o->number = number;
    r->nold++;
    return SQLITE_OK;
}

static int compare_bytes(const void *a, size_t na, const void *b, size_t nb)
{
    int c = memcmp(a, b, na < nb ? na : nb);
    return c ? c : (na > nb) - (na < nb);
}

static int by_path(const void *a, const void *b)
{
    const old_row *x = a, *y = b;
    int c = compare_bytes(x->channel, x->path, y->channel, y->path);
    if (c == 0) {
        c = (x->number > y->number) - (x->number < y->number);
    }
    return c ? c : (x->id > y->id) - (x->id < y->id);
}

static void find_rows(reader *r)
{
    size_t n = strlen(r->path), lo = 0, hi = r->nold;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (compare_bytes(r->old[mid].channel, r->old[mid].path, r->path, n) < 0) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    r->rows = r->old ? r->old + lo : NULL;
    r->nrow = 0;
    while (lo + r->nrow < r->nold &&
           compare_bytes(r->rows[r->nrow].channel, r->rows[r->nrow].path, r->path, n) == 0) {
        r->nrow++;
    }
}

/* ------------------------------------------------------------------------------------- matching */

/* What a section or row is matched by, and which one it is. */
typedef struct key {
    const char *p;
    size_t n, i;
    char *own; /* p, where it is this key's; by sqlite3_malloc */
} key;

static int by_key(const void *a, const void *b)
{
    const key *x = a, *y = b;
    int c = compare_bytes(x->p, x->n, y->p, y->n);
    return c ? c : (x->i > y->i) - (x->i < y->i);
}

// The k-th of those with one key to the k-th of the others.
static void pair_up(reader *r, key *a, size_t na, key *b, size_t nb)
{
    if (na > 1) {
        qsort(a, na, sizeof *a, by_key);
    }
    if (nb > 1) {
        qsort(b, nb, sizeof *b, by_key);
    }
    for (size_t i = 0, j = 0; i < na && j < nb;) {
        int c = compare_bytes(a[i].p, a[i].n, b[j].p, b[j].n);
        if (c == 0) {
            r->match[a[i].i] = b[j].i;
            r->matched[b[j].i] = 1;
        }
        i += c <= 0;
        j += c >= 0;
    }
}

// The text of a row, copied, since the view gives one at a time.
static int row_text(reader *r, size_t i, key *k)
{
    st_value v;
    int rc = sql_door_value(r->d, r->rows[i].row, ST_COL_CONTENT, &v);
    size_t n = rc == SQLITE_OK && v.type == ST_TEXT ? v.n : 0;
    k->own = rc == SQLITE_OK ? sqlite3_malloc64(n + 1) : NULL;
    if (!k->own) {
        return rc == SQLITE_OK ? SQLITE_NOMEM : rc;
    }
    memcpy(k->own, n ? v.p : "", n);
    *k = (key){k->own, n, i, k->own};
    return SQLITE_OK;
}

static int match(reader *r, int by_text)
{
    size_t na = 0, nb = 0;
    int rc = SQLITE_OK;
    key *a = sqlite3_malloc64((r->nsection + 1) * sizeof *a);
    key *b = sqlite3_malloc64((r->nrow + 1) * sizeof *b);
    if (!a || !b) {
        rc = SQLITE_NOMEM;
    }
    for (size_t i = 0; i < r->nsection && rc == SQLITE_OK; i++) {
        const sql_md_section *s = &r->section[i];
        if (r->match[i] == NONE) {
            a[na++] = by_text ? (key){r->text + s->at, s->n, i, NULL}
                              : (key){r->channel[i], strlen(r->channel[i]), i, NULL};
        }
    }
    for (size_t i = 0; i < r->nrow && rc == SQLITE_OK; i++) {
        if (!r->matched[i]) {
            b[nb] = (key){r->rows[i].channel, strlen(r->rows[i].channel), i, NULL};
            rc = by_text ? row_text(r, i, &b[nb]) : SQLITE_OK;
            nb += rc == SQLITE_OK;
        }
    }
    if (rc == SQLITE_OK) {
        pair_up(r, a, na, b, nb);
    }
    for (size_t i = 0; i < nb; i++) {
        sqlite3_free(b[i].own);
    }
    sqlite3_free(a);
    sqlite3_free(b);
    return rc;
}

/* ------------------------------------------------------------------------------------- one file */

static int make_channels(reader *r)
{
    const sql_md_section *chain[7] = {NULL};
    for (size_t i = 0; i < r->nsection; i++) {
        const sql_md_section *s = &r->section[i];
        for (int level = s->level; level <= 6; level++) {
            chain[level] = NULL;
        }
        if (s->level > 0) {
            chain[s->level] = s;
        }
        r->channel[i] = sql_md_channel(r->path, r->text, chain);
        if (!r->channel[i]) {
            return SQLITE_NOMEM;
        }
    }
    return SQLITE_OK;
}

// Its time of day; *clock that of the section before, which holds where this one names none.
static double section_time(const reader *r, const sql_md_section *s, double *clock)
{
    if (r->dated) {
        double midnight = r->day - (double)((int64_t)r->day % 86400);
        midnight -= r->day < midnight ? 86400 : 0;
        *clock = sql_md_clock(r->text + s->title, s->ntitle, clock) ? midnight + *clock : *clock;
    }
    return *clock;
}

// What differs from its row, or all of a new one.
static int put_section(reader *r, size_t i, double time)
{
    sql_door *d = r->d;
    const sql_md_section *s = &r->section[i];
    const old_row *o = r->match[i] == NONE ? NULL : &r->rows[r->match[i]];
    st_value content = {0}, tags = {0}, when = {0};
    int rc = SQLITE_OK;
    sql_door_clear(d);
    if (o) {
        rc = sql_door_value(d, o->row, ST_COL_CONTENT, &content);
        rc = rc == SQLITE_OK ? sql_door_value(d, o->row, ST_COL_TAGS, &tags) : rc;
        rc = rc == SQLITE_OK ? sql_door_value(d, o->row, ST_COL_TIMESTAMP, &when) : rc;
        d->value[ST_COL_ID] = (st_value){.type = ST_INT, .i = o->id};
        d->given[ST_COL_ID] = 1;
    }
    if (rc != SQLITE_OK) {
        return rc;
    }
    int changed = !o || content.type != ST_TEXT || content.n != s->n ||
                  memcmp(content.p, r->text + s->at, s->n) != 0;
    if (changed) {
        sql_door_set_text(d, ST_COL_CONTENT, r->text + s->at, s->n);
        sql_door_set_null(d, ST_COL_EMBEDDING);
    }
    if (changed || (r->dated && when.r != time)) {
        d->value[ST_COL_TIMESTAMP] = (st_value){.type = ST_REAL, .r = time};
        d->given[ST_COL_TIMESTAMP] = 1;
    }
    if (!o || strcmp(o->channel, r->channel[i]) != 0) {
        sql_door_set_text(d, ST_COL_CHANNEL, r->channel[i], strlen(r->channel[i]));
    }
    char *tag = NULL;
    if (!o || o->number != (int64_t)i) {
        tag = sql_md_tags(tags.p ? tags.p : "", tags.n, (int64_t)i);
        if (!tag) {
            return SQLITE_NOMEM;
        }
        sql_door_set_text(d, ST_COL_TAGS, tag, strlen(tag));
    }
    rc = memchr(d->given + 1, 1, (size_t)d->ncolumn - 1) ? sql_door_put(d, NULL) : SQLITE_OK;
    sqlite3_free(tag);
    return rc;
}

static int put_all(reader *r)
{
    double clock = r->day;
    int rc = SQLITE_OK;
    for (size_t i = 0; i < r->nrow && rc == SQLITE_OK; i++) {
        rc = r->matched[i] ? SQLITE_OK : sql_door_remove(r->d, r->rows[i].id);
    }
    for (size_t i = 0; i < r->nsection && rc == SQLITE_OK; i++) {
        double time = section_time(r, &r->section[i], &clock);
        rc = put_section(r, i, time);
    }
    r->sections += (sqlite3_int64)r->nsection;
    return rc;
}

static void free_file(reader *r)
{
    for (size_t i = 0; r->channel && i < r->nsection; i++) {
        sqlite3_free(r->channel[i]);
    }
    sqlite3_free(r->channel);
    sqlite3_free(r->match);
    sqlite3_free(r->matched);
    sqlite3_free(r->section);
    r->channel = NULL;
    r->match = NULL;
    r->matched = NULL;
    r->section = NULL;
    r->nsection = 0;
}

static int read_text(reader *r)
{
    find_rows(r);
    r->dated = sql_md_front_date(r->text, r->n, &r->day) || sql_md_path_date(r->path, &r->day);
    int rc = sql_md_split(r->text, r->n, r->dated ? 2 : 1, &r->section, &r->nsection);
    if (rc != SQLITE_OK) {
        return rc;
    }
    r->channel = sqlite3_malloc64((r->nsection + 1) * sizeof *r->channel);
    r->match = sqlite3_malloc64((r->nsection + 1) * sizeof *r->match);
    r->matched = sqlite3_malloc64(r->nrow + 1);
    if (!r->channel || !r->match || !r->matched) {
        sqlite3_free(r->channel);
        r->channel = NULL;
        return SQLITE_NOMEM;
    }
    memset(r->channel, 0, (r->nsection + 1) * sizeof *r->channel);
    memset(r->matched, 0, r->nrow + 1);
    for (size_t i = 0; i < r->nsection; i++) {
        r->match[i] = NONE;
    }
    rc = make_channels(r);
    rc = rc == SQLITE_OK ? match(r, 1) : rc;
    rc = rc == SQLITE_OK ? match(r, 0) : rc;
    return rc == SQLITE_OK ? put_all(r) : rc;
}

static int read_file(reader *r, const char *path)
{
    char *text;
    double modified;
    r->d->file = path;
    r->path = path;
    if (strstr(path, "::")) {
        return sql_door_fail(r->d, SQLITE_ERROR,
                             "'::' in a path cannot be told from what parts it from headings");
    }
    int rc = sql_in_load(r->d, path, FILE_MAX, &text, &r->n, &modified);
    if (rc != SQLITE_OK) {
        return rc;
    }
    r->text = text;
    r->day = modified;
    if (sql_md_has_rows(text, r->n)) {
        rc = sql_md_rows(r->d, text, r->n, &r->sections);
    } else {
        rc = read_text(r);
    }
    free_file(r);
    sqlite3_free(text);
    return rc;
}

/* -------------------------------------------------------------------------------------- folders */

static int is_markdown(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && (sqlite3_stricmp(dot, ".md") == 0 || sqlite3_stricmp(dot, ".markdown") == 0);
}

static int add_path(reader *r, char *path)
{
    if (r->npath == r->path_room) {
        size_t room = r->path_room * 2 + 64;
        char **more = sqlite3_realloc64(r->paths, room * sizeof *more);
        if (!more) {
            sqlite3_free(path);
            return SQLITE_NOMEM;
        }
        r->paths = more;
        r->path_room = room;
    }
    r->paths[r->npath++] = path;
    return SQLITE_OK;
}

static int list_folder(reader *r, const char *folder, int depth);

// Hidden names and links to folders, which could go round in a circle, are passed over.
static int list_one(reader *r, const char *folder, const char *name, int depth)
{
    struct stat st;
    char *path = strcmp(folder, ".") == 0
                     ? sqlite3_mprintf("%s", name)
                     : sqlite3_mprintf("%s%s%s", folder, strcmp(folder, "/") ? "/" : "", name);
    if (!path) {
        return SQLITE_NOMEM;
    }
    int rc = SQLITE_OK;
    if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        rc = list_folder(r, path, depth + 1);
    } else if (is_markdown(name) && stat(path, &st) == 0 && S_ISREG(st.st_mode)) {
        return add_path(r, path);
    }
    sqlite3_free(path);
    return rc;
}

static int list_folder(reader *r, const char *folder, int depth)
{
    struct dirent *e;
    if (depth > DEPTH_MAX) {
        r->d->file = folder;
        return sql_door_fail(r->d, SQLITE_ERROR, "folders nest deeper than %d", DEPTH_MAX);
    }
    DIR *dir = opendir(folder);
    if (!dir) {
        return sql_door_fail(r->d, SQLITE_CANTOPEN, "%s: %s", folder, strerror(errno));
    }
    int rc = SQLITE_OK;
    while (rc == SQLITE_OK && (e = readdir(dir)) != NULL) {
        rc = e->d_name[0] == '.' ? SQLITE_OK : list_one(r, folder, e->d_name, depth);
    }
    closedir(dir);
    return rc;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int is_listed(const reader *r, const char *path, size_t n)
{
    size_t lo = 0, hi = r->npath;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = compare_bytes(r->paths[mid], strlen(r->paths[mid]), path, n);
        if (c == 0) {
            return 1;
        }
        lo = c < 0 ? mid + 1 : lo;
        hi = c < 0 ? hi : mid;
    }
    return 0;
}

// Rows of files that were in the folder.
static int remove_gone(reader *r, const char *folder)
{
    size_t n = strlen(folder);
    int here = strcmp(folder, ".") == 0, root = strcmp(folder, "/") == 0, rc = SQLITE_OK;
    for (size_t i = 0; i < r->nold && rc == SQLITE_OK; i++) {
        const old_row *o = &r->old[i];
        int under = here ? o->channel[0] != '/' && strncmp(o->channel, "../", 3) != 0
                    : root
                        ? o->channel[0] == '/'
                        : o->path > n && o->channel[n] == '/' && memcmp(o->channel, folder, n) == 0;
        if (under && !is_listed(r, o->channel, o->path)) {
            rc = sql_door_remove(r->d, o->id);
        }
    }
    return rc;
}

static int read_folder(reader *r, const char *folder)
{
    int rc = list_folder(r, folder, 0);
    if (rc == SQLITE_OK && r->npath > 1) {
        qsort(r->paths, r->npath, sizeof *r->paths, by_name);
    }
    rc = rc == SQLITE_OK ? remove_gone(r, folder) : rc;
    for (size_t i = 0; i < r->npath && rc == SQLITE_OK; i++) {
        rc = read_file(r, r->paths[i]);
    }
    return rc;
}

int sql_md_import(sql_door *d, const char *path)
{
    reader r;
    struct stat st;
    memset(&r, 0, sizeof r);
    r.d = d;
    char *clean = sql_md_path(path);
    if (!clean) {
        return SQLITE_NOMEM;
    }
    int rc = sql_door_look(d);
    rc = rc == SQLITE_OK ? sql_door_scan(d, note_row, &r) : rc;
    if (rc == SQLITE_OK && r.nold > 1) {
        qsort(r.old, r.nold, sizeof *r.old, by_path);
    }
    if (rc == SQLITE_OK) {
        int folder = stat(clean, &st) == 0 && S_ISDIR(st.st_mode);
        rc = folder ? read_folder(&r, clean) : read_file(&r, clean);
        rc = rc == SQLITE_OK ? sql_door_link(d) : rc;
    }
    for (size_t i = 0; i < r.nold; i++) {
        sqlite3_free(r.old[i].channel);
    }
    for (size_t i = 0; i < r.npath; i++) {
        sqlite3_free(r.paths[i]);
    }
    sqlite3_free(r.old);
    sqlite3_free(r.paths);
    sqlite3_free(clean);
    d->rows = r.sections;
    return rc;
}
