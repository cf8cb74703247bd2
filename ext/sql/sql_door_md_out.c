/*
 * sql_door_md_out.c - 'markdown' out.
 *
 * To a folder (one that is there, or a path that ends with /): each file that rows came from, under
 * its name below the folder that all of them have in common; and the other rows as daily logs,
 * YYYY-MM-DD.md.
 *
 * To a file: where it is one that rows came from, that one alone. Else everything: the files, then
 * the other rows; a single file without other rows is that file's bytes, and of several each is
 * named in a comment above it.
 *
 * A daily log has a heading of level 1 for the day and one of level 2 for each row, with its time
 * (UTC), its session and source; a comment with its content's length and hash and, in JSON, the
 * columns that are not NULL and not the default, but for the vector; then its content as it is. So
 * it comes back (sql_door_md_rows.c), also when somebody has changed a text in between. In one file
 * together with sections, rows have no comment and do not.
 *
 * SPDX-License-Identifier: MIT
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "sql_json.h"
#include "sql_md.h"
#include "sql_time.h"

/* A row to write. */
typedef struct item {
    char *channel; /* a section's; NULL: no section */
    size_t path;
    uint64_t row;
    int64_t id, number;
    double time;
} item;

typedef struct writer {
    sql_door *d;
    item *item; /* sections by path and number, then the others by time */
    size_t n, room, sections;
    size_t common; /* bytes of the folder that all paths begin with */
    sql_out out;
    int newlines; /* that what was written ends with; 2 at the beginning */
    int marked;   /* rows have their comment */
} writer;

/* ---------------------------------------------------------------------------------- collecting */

static int note(void *ctx, uint64_t row, int64_t id)
{
    writer *w = ctx;
    st_value tags, channel, time;
    int rc = sql_door_value(w->d, row, ST_COL_TAGS, &tags);
    rc = rc == SQLITE_OK ? sql_door_value(w->d, row, ST_COL_CHANNEL, &channel) : rc;
    rc = rc == SQLITE_OK ? sql_door_value(w->d, row, ST_COL_TIMESTAMP, &time) : rc;
    if (rc != SQLITE_OK) {
        return rc;
    }
    if (w->n == w->room) {
        size_t room = w->room * 2 + 64;
        item *more = sqlite3_realloc64(w->item, room * sizeof *more);
        if (!more) {
            return SQLITE_NOMEM;
        }
        w->item = more;
        w->room = room;
    }
    item *it = &w->item[w->n];
    memset(it, 0, sizeof *it);
    it->row = row;
    it->id = id;
    it->time = time.r;
    it->number = tags.type == ST_TEXT ? sql_md_section_of(tags.p, tags.n) : -1;
    if (it->number >= 0 && channel.type == ST_TEXT && !memchr(channel.p, 0, channel.n)) {
        it->channel = sqlite3_mprintf("%.*s", (int)channel.n, (const char *)channel.p);
        if (!it->channel) {
            return SQLITE_NOMEM;
        }
        const char *end = strstr(it->channel, "::");
        it->path = end ? (size_t)(end - it->channel) : channel.n;
        w->sections++;
    }
    w->n++;
    return SQLITE_OK;
}

static int same_path(const item *a, const item *b)
{
    return a->path == b->path && memcmp(a->channel, b->channel, a->path) == 0;
}

static int in_order(const void *a, const void *b)
{
    const item *x = a, *y = b;
    int c = !x->channel - !y->channel;
    if (c == 0 && x->channel) {
        c = memcmp(x->channel, y->channel, x->path < y->path ? x->path : y->path);
        c = c ? c : (x->path > y->path) - (x->path < y->path);
        c = c ? c : (x->number > y->number) - (x->number < y->number);
    } else if (c == 0) {
        c = (x->time > y->time) - (x->time < y->time);
    }
    return c ? c : (x->id > y->id) - (x->id < y->id);
}

// The bytes of the folder that the paths of all sections begin with.
static size_t common_folder(const writer *w)
{
    size_t n = w->sections ? w->item[0].path : 0;
    for (size_t i = 1; i < w->sections; i++) {
        size_t k = 0;
        while (k < n && k < w->item[i].path && w->item[i].channel[k] == w->item[0].channel[k]) {
            k++;
        }
        n = same_path(&w->item[i], &w->item[0]) ? n : k;
    }
    while (n > 0 && w->item[0].channel[n - 1] != '/') {
        n--;
    }
    return n;
}

/* -------------------------------------------------------------------------------------- writing */

static int put(writer *w, const void *p, size_t n)
{
    const char *s = p;
    size_t end = n;
    while (end > 0 && n - end < 2 && s[end - 1] == '\n') {
        end--;
    }
    w->newlines = end > 0 || n >= 2 ? (int)(n - end) : w->newlines + (int)n;
    return sql_out_put(&w->out, p, n);
}

static int put_text(writer *w, const char *s)
{
    return put(w, s, strlen(s));
}

// What comes next begins on a line of its own, after a blank one.
static int part(writer *w)
{
    int rc = SQLITE_OK;
    while (w->newlines < 2 && rc == SQLITE_OK) {
        rc = put(w, "\n", 1);
    }
    return rc;
}

static int ends_line(const st_value *v)
{
    const char *s = v->p;
    return v->n == 0 || s[v->n - 1] == '\n' || s[v->n - 1] == '\r';
}

// Sections from a to b, which are one file's. Only one that was written anew can lack its newline.
static int put_sections(writer *w, size_t a, size_t b)
{
    int rc = SQLITE_OK;
    for (size_t i = a; i < b && rc == SQLITE_OK; i++) {
        st_value v;
        rc = sql_door_value(w->d, w->item[i].row, ST_COL_CONTENT, &v);
        if (rc == SQLITE_OK && v.type == ST_TEXT && v.n > 0) {
            rc = put(w, v.p, v.n);
            if (rc == SQLITE_OK && i + 1 < b && !ends_line(&v)) {
                rc = put_text(w, "\n\n");
            }
        }
        w->d->rows++;
    }
    return rc;
}

static size_t file_end(const writer *w, size_t a)
{
    size_t b = a + 1;
    while (b < w->sections && same_path(&w->item[a], &w->item[b])) {
        b++;
    }
    return b;
}

static int is_known(double time)
{
    return time >= (double)SQL_TIME_MIN && time < (double)SQL_TIME_MAX;
}

static int64_t day_of(double time)
{
    return is_known(time) ? sql_floor_div((int64_t)(time < 0 ? time - 1 : time), SQL_DAY)
                          : INT64_MAX;
}

static void print_time(double time, const char *format, char *out, size_t n)
{
    struct tm tm;
    time_t t = (time_t)sql_floor_div((int64_t)(time * 1000), 1000);
    if (!is_known(time) || !gmtime_r(&t, &tm) || strftime(out, n, format, &tm) == 0) {
        sqlite3_snprintf((int)n, out, "No date");
    }
}

// A value in a heading: one line.
static int put_word(writer *w, const char *before, const st_value *v, const char *after)
{
    int rc = v->type == ST_TEXT && v->n > 0 ? put_text(w, before) : SQLITE_DONE;
    const char *s = v->p;
    for (size_t i = 0; rc == SQLITE_OK && i < v->n; i++) {
        char c = (unsigned char)s[i] < 0x20 ? ' ' : s[i];
        rc = put(w, &c, 1);
    }
    rc = rc == SQLITE_OK ? put_text(w, after) : rc;
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

// Is it what an INSERT gives a row that does not name the column?
static int is_default(int col, const st_value *v)
{
    return v->type == ST_NULL ||
           (col == ST_COL_TIER && v->n == 7 && memcmp(v->p, "working", 7) == 0) ||
           (col == ST_COL_IMPORTANCE && v->r == 0.5) || (col == ST_COL_ACTIVATION && v->r == 1) ||
           ((col == ST_COL_ACCESS_COUNT || col == ST_COL_PINNED) && v->i == 0);
}

static int put_mark(writer *w, const item *it)
{
    st_value v;
    char bytes[40] = "-";
    int some = 0;
    int rc = sql_door_value(w->d, it->row, ST_COL_CONTENT, &v);
    if (rc == SQLITE_OK && v.type == ST_TEXT) {
        sqlite3_snprintf(sizeof bytes, bytes, "%llu %08x", (unsigned long long)v.n,
                         h5_lookup3(v.n ? v.p : "", v.n, 0));
    }
    rc = rc == SQLITE_OK ? put_text(w, SQL_MD_ROW) : rc;
    rc = rc == SQLITE_OK ? put_text(w, bytes) : rc;
    for (int i = 0; i < w->d->ncolumn && rc == SQLITE_OK; i++) {
        if (i == ST_COL_CONTENT || i == ST_COL_EMBEDDING) {
            continue;
        }
        rc = sql_door_value(w->d, it->row, i, &v);
        if (rc == SQLITE_OK && !is_default(i, &v)) {
            rc = put_text(w, some++ ? "," : " {");
            rc = rc == SQLITE_OK ? sql_json_put_column(&w->out, w->d, i, &v) : rc;
        }
    }
    return rc == SQLITE_OK ? put_text(w, "} -->\n") : rc;
}

static int put_row(writer *w, const item *it)
{
    char text[64];
    st_value v;
    print_time(it->time, "%H:%M:%S", text, sizeof text);
    int rc = part(w);
    rc = rc == SQLITE_OK ? put_text(w, "## ") : rc;
    rc = rc == SQLITE_OK ? put_text(w, text) : rc;
    rc = rc == SQLITE_OK ? sql_door_value(w->d, it->row, ST_COL_SESSION, &v) : rc;
    rc = rc == SQLITE_OK ? put_word(w, " ", &v, "") : rc;
    rc = rc == SQLITE_OK ? sql_door_value(w->d, it->row, ST_COL_SOURCE, &v) : rc;
    rc = rc == SQLITE_OK ? put_word(w, " (", &v, ")") : rc;
    rc = rc == SQLITE_OK ? put_text(w, "\n") : rc;
    rc = rc == SQLITE_OK && w->marked ? put_mark(w, it) : rc;
    rc = rc == SQLITE_OK ? put_text(w, "\n") : rc;
    rc = rc == SQLITE_OK ? sql_door_value(w->d, it->row, ST_COL_CONTENT, &v) : rc;
    if (rc == SQLITE_OK && v.type == ST_TEXT && v.n > 0) {
        rc = put(w, v.p, v.n);
        rc = rc == SQLITE_OK && w->newlines == 0 ? put(w, "\n", 1) : rc;
    }
    w->d->rows++;
    return rc;
}

// Rows from a to b, which are of one day.
static int put_day(writer *w, size_t a, size_t b)
{
    char text[64];
    print_time(w->item[a].time, "%Y-%m-%d", text, sizeof text);
    int rc = part(w);
    rc = rc == SQLITE_OK ? put_text(w, "# ") : rc;
    rc = rc == SQLITE_OK ? put_text(w, text) : rc;
    rc = rc == SQLITE_OK ? put_text(w, "\n") : rc;
    for (size_t i = a; i < b && rc == SQLITE_OK; i++) {
        rc = put_row(w, &w->item[i]);
    }
    return rc;
}

static size_t day_end(const writer *w, size_t a)
{
    size_t b = a + 1;
    while (b < w->n && day_of(w->item[a].time) == day_of(w->item[b].time)) {
        b++;
    }
    return b;
}

/* ------------------------------------------------------------------------------------ to a file */

static int put_everything(writer *w)
{
    int rc = SQLITE_OK;
    int several = w->sections > 0 && (file_end(w, 0) < w->n);
    if (w->sections == 0 && w->n > 0) {
        w->marked = 1;
        rc = put_text(w, SQL_MD_MARK " -->\n");
    }
    for (size_t a = 0, b; a < w->sections && rc == SQLITE_OK; a = b) {
        b = file_end(w, a);
        if (several) {
            st_value name = {.type = ST_TEXT, .p = w->item[a].channel, .n = w->item[a].path};
            rc = part(w);
            rc = rc == SQLITE_OK ? put_word(w, "<!-- h5mem file ", &name, " -->\n\n") : rc;
        }
        rc = rc == SQLITE_OK ? put_sections(w, a, b) : rc;
    }
    for (size_t a = w->sections, b; a < w->n && rc == SQLITE_OK; a = b) {
        b = day_end(w, a);
        rc = put_day(w, a, b);
    }
    return rc;
}

static int to_file(writer *w, const char *path)
{
    size_t a = 0, b = 0, n;
    char *clean = sql_md_path(path);
    if (!clean) {
        return SQLITE_NOMEM;
    }
    n = strlen(clean);
    while (a < w->sections && (w->item[a].path != n || memcmp(w->item[a].channel, clean, n))) {
        a = b = file_end(w, a);
    }
    b = a < w->sections ? file_end(w, a) : a;
    sqlite3_free(clean);
    int rc = sql_out_open(w->d, path, 1, &w->out);
    w->newlines = 2;
    if (rc == SQLITE_OK) {
        rc = sql_out_close(&w->out, a < b ? put_sections(w, a, b) : put_everything(w));
    }
    return rc;
}

/* ---------------------------------------------------------------------------------- to a folder */

// Makes the folders of a path below the first n bytes, which are there.
static int make_folders(writer *w, char *path, size_t n)
{
    for (char *p = path + n; (p = strchr(p, '/')) != NULL; p++) {
        *p = 0;
        int failed = mkdir(path, 0777) != 0 && errno != EEXIST;
        *p = '/';
        if (failed) {
            return sql_door_fail(w->d, SQLITE_CANTOPEN, "%s: %s", path, strerror(errno));
        }
    }
    return SQLITE_OK;
}

// No part of it may lead out of the folder.
static int is_inside(const char *path)
{
    for (const char *p = path; p; p = strchr(p, '/') ? strchr(p, '/') + 1 : NULL) {
        if (strncmp(p, "..", 2) == 0 && (p[2] == '/' || !p[2])) {
            return 0;
        }
    }
    return *path && *path != '/';
}

static int put_file(writer *w, const char *folder, size_t a, size_t b)
{
    const item *it = &w->item[a];
    size_t from = w->common;
    while (from < it->path && it->channel[from] == '/') {
        from++; // an absolute path among others
    }
    char *path = sqlite3_mprintf("%s/%.*s", folder, (int)(it->path - from), it->channel + from);
    if (!path) {
        return SQLITE_NOMEM;
    }
    int rc = SQLITE_OK;
    if (!is_inside(path + strlen(folder) + 1)) {
        rc = sql_door_fail(w->d, SQLITE_ERROR, "%.*s leads out of the folder", (int)it->path,
                           it->channel);
    }
    rc = rc == SQLITE_OK ? make_folders(w, path, strlen(folder) + 1) : rc;
    w->d->file = path;
    rc = rc == SQLITE_OK ? sql_out_open(w->d, path, 1, &w->out) : rc;
    if (rc == SQLITE_OK) {
        rc = sql_out_close(&w->out, put_sections(w, a, b));
    }
    w->d->file = folder;
    sqlite3_free(path);
    return rc;
}

// May rows of no Markdown go here? Nothing is there, or an earlier such file.
static int is_free(writer *w, const char *path)
{
    struct stat st;
    char head[sizeof SQL_MD_MARK - 1];
    h5_io *io;
    h5_error e = {0};
    uint64_t size;
    (void)w;
    if (lstat(path, &st) != 0) {
        return 1;
    }
    if (h5_io_file(path, H5_IO_READ, &io, &e) != H5_OK) {
        return 0;
    }
    int ours = io->size(io, &size, &e) == H5_OK && size >= sizeof head &&
               io->read(io, 0, head, sizeof head, &e) == H5_OK &&
               memcmp(head, SQL_MD_MARK, sizeof head) == 0;
    io->close(io);
    return ours;
}

static int put_day_file(writer *w, const char *folder, size_t a, size_t b)
{
    char day[64], *path = NULL;
    print_time(w->item[a].time, "%Y-%m-%d", day, sizeof day);
    for (int i = 0; i < 100; i++) {
        sqlite3_free(path);
        path = i == 0 ? sqlite3_mprintf("%s/%s.md", folder, day)
                      : sqlite3_mprintf("%s/%s-memory-%d.md", folder, day, i);
        if (!path) {
            return SQLITE_NOMEM;
        }
        if (is_free(w, path)) {
            break;
        }
    }
    w->d->file = path;
    int rc = is_free(w, path) ? sql_out_open(w->d, path, 1, &w->out)
                              : sql_door_fail(w->d, SQLITE_CANTOPEN, "is there already");
    w->newlines = 2;
    w->marked = 1;
    if (rc == SQLITE_OK) {
        rc = put_text(w, SQL_MD_MARK " -->\n");
        rc = sql_out_close(&w->out, rc == SQLITE_OK ? put_day(w, a, b) : rc);
    }
    w->d->file = folder;
    sqlite3_free(path);
    return rc;
}

static int to_folder(writer *w, const char *path)
{
    int rc = SQLITE_OK;
    char *folder = sql_md_path(path);
    if (!folder) {
        return SQLITE_NOMEM;
    }
    w->d->file = folder;
    w->common = common_folder(w);
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
        rc = sql_door_fail(w->d, SQLITE_CANTOPEN, "%s", strerror(errno));
    }
    for (size_t a = 0, b; a < w->sections && rc == SQLITE_OK; a = b) {
        b = file_end(w, a);
        rc = put_file(w, folder, a, b);
    }
    for (size_t a = w->sections, b; a < w->n && rc == SQLITE_OK; a = b) {
        b = day_end(w, a);
        rc = put_day_file(w, folder, a, b);
    }
    w->d->file = path;
    sqlite3_free(folder);
    return rc;
}

int sql_md_export(sql_door *d, const char *path)
{
    writer w;
    struct stat st;
    memset(&w, 0, sizeof w);
    w.d = d;
    int rc = sql_door_scan(d, note, &w);
    if (rc == SQLITE_OK) {
        if (w.n > 1) {
            qsort(w.item, w.n, sizeof *w.item, in_order);
        }
        int folder = path[strlen(path) - 1] == '/' || (stat(path, &st) == 0 && S_ISDIR(st.st_mode));
        rc = folder ? to_folder(&w, path) : to_file(&w, path);
    }
    for (size_t i = 0; i < w.n; i++) {
        sqlite3_free(w.item[i].channel);
    }
    sqlite3_free(w.item);
    return rc;
}
