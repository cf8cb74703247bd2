/*
 * t_world.c - opening, looking and comparing of t_world.h; the work is in t_work.c
 *
 * SPDX-License-Identifier: MIT
 */
#include "t_world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "t_sys.h"
#include "t_text.h"

t_shared *t_shared_new(void)
{
    t_shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s == MAP_FAILED) {
        fprintf(stderr, "t_world: no memory\n");
        exit(2);
    }
    return s;
}

void t_world_fail(t_world *w, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(w->shared->message, sizeof w->shared->message, fmt, ap);
    va_end(ap);
    _exit(3);
}

static int run(t_world *w, int (*take)(void *, int, char **, char **), void *ctx, const char *fmt,
               va_list ap)
{
    char *sql = sqlite3_vmprintf(fmt, ap);
    int rc;
    if (!sql) {
        return SQLITE_NOMEM;
    }
    t_sys_statement();
    rc = sqlite3_exec(w->db, sql, take, ctx, NULL);
    if (getenv("T_TRACE")) {
        fprintf(stderr, "%d: %.150s: %d %s\n", getpid(), sql, rc, rc ? sqlite3_errmsg(w->db) : "");
    }
    if (rc != SQLITE_OK) {
        snprintf(w->error, sizeof w->error, "%.150s: %.200s", sql, sqlite3_errmsg(w->db));
        w->shared->failures++;
        if (!w->may_fail) {
            t_world_fail(w, "%.300s: %d %s", sql, sqlite3_extended_errcode(w->db),
                         sqlite3_errmsg(w->db));
        }
    }
    sqlite3_free(sql);
    return rc;
}

int t_world_run(t_world *w, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int rc = run(w, NULL, NULL, fmt, ap);
    va_end(ap);
    return rc;
}

int t_world_ask(t_world *w, int (*take)(void *, int, char **, char **), void *ctx, const char *fmt,
                ...)
{
    va_list ap;
    va_start(ap, fmt);
    int rc = run(w, take, ctx, fmt, ap);
    va_end(ap);
    return rc;
}

/* -------------------------------------------------------------------------------------- opening */

/* 1 when the host has lost its table: someone died between DROP and making it anew. */
static int dropped(t_world *w)
{
    sqlite3_stmt *stmt;
    int rc = sqlite3_prepare_v2(w->db,
                                "SELECT 1 FROM sqlite_schema WHERE name = 'notes' AND NOT EXISTS "
                                "(SELECT 1 FROM sqlite_schema WHERE name = 'memory')",
                                -1, &stmt, NULL);
    int found = rc == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW;
    sqlite3_finalize(stmt);
    return found;
}

// So that passes have much to do, and what they do can be told from a dry one.
#define LIFE                                                                                       \
    ", working_capacity=8, episodic_capacity=12, auto_importance=off, importance_access=0, "       \
    "merge_distance=0, consolidate_after=1000000000"

static const char tables[] =
    "CREATE VIRTUAL TABLE IF NOT EXISTS memory_sessions USING h5mem_sessions(memory);"
    "CREATE TABLE IF NOT EXISTS notes(id INTEGER PRIMARY KEY, text TEXT);"
    "CREATE TRIGGER IF NOT EXISTS both AFTER INSERT ON notes WHEN new.id >= 1000000 BEGIN"
    " INSERT INTO memory(id, content, session, importance, priority, embedding, timestamp)"
    " VALUES (new.id, new.text, 's-1', 0.5, NULL, NULL, 7); END;"
    "CREATE TRIGGER IF NOT EXISTS mark AFTER DELETE ON notes WHEN old.id >= 1000000 BEGIN"
    " UPDATE memory SET priority = old.id WHERE id % 2 = 0; END;";

int t_world_open(t_world *w, t_shared *s, const t_spec *spec, const char *folder)
{
    char path[300];
    int rc;
    w->shared = s;
    w->spec = spec;
    if (folder != w->folder) {
        snprintf(w->folder, sizeof w->folder, "%s", folder);
    }
    snprintf(path, sizeof path, "%shost.db", folder);
    rc = sqlite3_open(spec->journal ? path : ":memory:", &w->db);
    if (rc != SQLITE_OK) {
        if (!w->may_fail) {
            t_world_fail(w, "opening: %s", sqlite3_errmsg(w->db));
        }
        snprintf(w->error, sizeof w->error, "opening: %.200s", sqlite3_errmsg(w->db));
        return rc;
    }
    sqlite3_extended_result_codes(w->db, 1);
    sqlite3_busy_timeout(w->db, w->may_fail ? 20 : 5000);
    if (spec->journal) {
        rc = t_world_run(w, "PRAGMA journal_mode = %s; PRAGMA synchronous = %s", spec->journal,
                         spec->synchronous);
        if (rc == SQLITE_OK && dropped(w)) {
            rc = t_world_run(w, "CREATE VIRTUAL TABLE memory USING h5mem('agent.h5')");
        }
    } else {
        rc = t_world_run(w,
                         "CREATE VIRTUAL TABLE memory USING h5mem('%sagent.h5', dim=%d, priority "
                         "INTEGER%s" LIFE "); %s",
                         folder, T_DIM, spec->options, tables);
    }
    return rc;
}

void t_world_close(t_world *w)
{
    t_sys_statement();
    if (sqlite3_close(w->db) != SQLITE_OK) {
        t_world_fail(w, "closing: %s", sqlite3_errmsg(w->db));
    }
    w->db = NULL;
}

void t_world_make(t_shared *s, const t_spec *spec, const char *folder)
{
    t_world w;
    memset(&w, 0, sizeof w);
    s->cur = s->open = s->nmaybe = 0;
    memset(s->model, 0, sizeof s->model);
    t_world_open(&w, s, spec, folder);
    if (spec->journal) {
        t_world_run(&w,
                    "BEGIN; CREATE VIRTUAL TABLE memory USING h5mem('agent.h5', dim=%d, priority "
                    "INTEGER%s" LIFE "); %s COMMIT",
                    T_DIM, spec->options, tables);
    }
    t_world_run(&w, "SELECT h5mem_consolidate('memory', 1)"); // so that no tick finds one due
    t_world_close(&w);
}

/* -------------------------------------------------------------------------------------- looking */

/* One line a row, its values with '|' between. */
static char *dump(t_world *w, const char *sql)
{
    sqlite3_stmt *stmt;
    sqlite3_str *out = sqlite3_str_new(NULL);
    int rc = sqlite3_prepare_v2(w->db, sql, -1, &stmt, NULL);
    t_sys_statement();
    while (rc == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW) {
        for (int i = 0; i < sqlite3_column_count(stmt); i++) {
            const char *text = (const char *)sqlite3_column_text(stmt, i);
            sqlite3_str_appendf(out, "%s%s", i ? "|" : "", text ? text : "~");
        }
        sqlite3_str_appendchar(out, 1, '\n');
    }
    int ended = sqlite3_finalize(stmt);
    rc = rc != SQLITE_OK ? rc : ended;
    if (rc != SQLITE_OK) {
        snprintf(w->error, sizeof w->error, "%.100s: %.200s", sql, sqlite3_errmsg(w->db));
        if (!w->may_fail) {
            t_world_fail(w, "%.300s: %d %s", sql, sqlite3_extended_errcode(w->db),
                         sqlite3_errmsg(w->db));
        }
        sqlite3_free(sqlite3_str_finish(out));
        return NULL;
    }
    sqlite3_str_appendchar(out, 1, '\n'); // never empty, so that NULL is want of memory
    return sqlite3_str_finish(out);
}

/* What lies beside the rows: sessions, the last tick, how many events and their digest. */
static char *dump_beside(t_world *w)
{
    static const char *const sessions =
        "SELECT id, parent, cast(\"end\" AS INTEGER), summary FROM memory_sessions"
        " ORDER BY cast(substr(id, 2) AS INTEGER)";
    static const char *const told =
        "SELECT kind || '|' || coalesce(id, '~') FROM h5mem_events('memory') ORDER BY seq";
    char *a = dump(w, sessions), *b = a ? dump(w, told) : NULL, *p, *end;
    char *c = b ? dump(w, "SELECT cast(h5mem_config('memory', 'last_tick') AS INTEGER)") : NULL;
    t_model m = {.events = 0};
    for (p = b; c && *p && (end = strchr(p, '\n')) != p; p = end + 1) {
        *end = 0;
        t_model_told(&m, p);
    }
    p = c ? sqlite3_mprintf("%stick %s%ld events, %llx\n", a, c, m.events, m.told) : NULL;
    sqlite3_free(a);
    sqlite3_free(b);
    sqlite3_free(c);
    return p;
}

char *t_world_dump(t_world *w, int notes)
{
    if (notes) {
        return dump(w, "SELECT id, text FROM notes ORDER BY id");
    }
    char *rows = dump(w, "SELECT id, content, session, cast(round(importance * 1000) AS INTEGER),"
                         " priority, hex(embedding), cast(timestamp AS INTEGER), tier,"
                         " access_count FROM memory ORDER BY id");
    char *beside = rows ? dump_beside(w) : NULL;
    char *both = beside ? sqlite3_mprintf("%s%s", rows, beside) : NULL;
    sqlite3_free(rows);
    sqlite3_free(beside);
    return both;
}

static const char *session_of(int n)
{
    static const char *const name[] = {"~", "s-1", "s-2"};
    return name[n];
}

static void dump_model_beside(const t_model *m, sqlite3_str *out)
{
    char text[T_TEXT_MOST];
    for (int i = 0; i < m->nsession; i++) {
        const t_session *n = &m->session[i];
        sqlite3_str_appendf(out, "n%d|", n->id);
        sqlite3_str_appendf(out, n->parent < 0 ? "~|" : "n%d|", n->parent);
        sqlite3_str_appendf(out, n->end < 0 ? "~|" : "%d|", n->end);
        sqlite3_str_appendf(out, "%s\n", t_text(n->summary, text) ? text : "~");
    }
    sqlite3_str_appendf(out, "\ntick %d\n\n%ld events, %llx\n", m->tick, m->events, m->told);
}

char *t_model_dump(const t_model *m, int notes)
{
    static const char *const tier[] = {"working", "episodic", "semantic"};
    sqlite3_str *out = sqlite3_str_new(NULL);
    char text[T_TEXT_MOST], hex[T_HEX_MOST];
    for (int i = 0; notes && i < m->nnote; i++) {
        sqlite3_str_appendf(out, "%lld|%s\n", (long long)m->note[i].id,
                            t_text(m->note[i].text, text) ? text : "~");
    }
    for (int i = 0; !notes && i < m->nrow; i++) {
        const t_row *r = &m->row[i];
        sqlite3_str_appendf(out, "%lld|%s|", (long long)r->id,
                            t_text(r->content, text) ? text : "~");
        sqlite3_str_appendf(out, "%s|%d|", session_of(r->session), r->importance);
        if (r->priority < 0) {
            sqlite3_str_appendall(out, "~|");
        } else {
            sqlite3_str_appendf(out, "%d|", r->priority);
        }
        sqlite3_str_appendf(out, "%s|%d|%s|%d\n", t_vector_hex(r->vector, hex), r->stamp,
                            tier[r->tier], r->accesses);
    }
    sqlite3_str_appendchar(out, 1, '\n');
    if (!notes) {
        dump_model_beside(m, out);
    }
    return sqlite3_str_finish(out);
}

uint64_t t_digest(const char *text)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (; *text; text++) {
        h = (h ^ (unsigned char)*text) * 0x100000001b3u;
    }
    return h;
}

/* 1 when model m is what is there; a host without a file has kept no notes. */
static int is(const t_world *w, const t_model *m, const char *rows, const char *notes)
{
    char *a = t_model_dump(m, 0), *b = t_model_dump(m, 1);
    int same = !strcmp(a, rows) && (!w->spec->journal || !strcmp(b, notes));
    sqlite3_free(a);
    sqlite3_free(b);
    return same;
}

/* The lines that one has and the other has not. */
static void differ(char *out, size_t n, const char *name, const char *want, const char *got)
{
    const char *const side[2][2] = {{want, got}, {got, want}};
    for (int i = 0; i < 2; i++) {
        const char *p = side[i][0], *end;
        for (; *p && *p != '\n'; p = end + 1) {
            char line[T_TEXT_MOST + 200];
            size_t used = strlen(out);
            end = strchr(p, '\n');
            snprintf(line, sizeof line, "%.*s\n", (int)(end - p), p);
            if (!strstr(side[i][1], line) && used + 80 < n) {
                snprintf(out + used, n - used, "  %s %s: %.100s%s", name, i ? "has" : "lacks", line,
                         strlen(line) > 100 ? "...\n" : "");
            }
        }
    }
}

/* Says in shared->message how what is there differs from what may be there. */
static void tell(t_world *w, const char *rows, const char *notes)
{
    t_shared *s = w->shared;
    char text[6000] = "";
    for (int k = 0; k <= (s->open != 0); k++) {
        const t_model *m = &s->model[k ? !s->cur : s->cur];
        char *a = t_model_dump(m, 0), *b = t_model_dump(m, 1);
        differ(text, sizeof text, k ? "after: the store" : "before: the store", a, rows);
        differ(text, sizeof text, k ? "after: the host" : "before: the host", b, notes);
        sqlite3_free(a);
        sqlite3_free(b);
    }
    snprintf(s->message, sizeof s->message, "%s\n%s",
             s->open == 2 ? "COMMIT had returned"
             : s->open    ? "COMMIT was running"
                          : "nothing was being committed",
             text);
}

int t_world_is_right(t_world *w)
{
    const t_shared *s = w->shared;
    char *rows, *notes;
    int right = -1;
    if (t_world_run(w, "BEGIN")) {
        return -1;
    }
    rows = t_world_dump(w, 0);
    notes = t_world_dump(w, 1);
    if (rows && notes) {
        right = is(w, &s->model[s->cur], rows, notes) ||
                (s->open && is(w, &s->model[!s->cur], rows, notes));
        if (!right) {
            tell(w, rows, notes);
        }
    }
    sqlite3_free(rows);
    sqlite3_free(notes);
    t_world_run(w, "COMMIT");
    return right;
}

/* 1 when a COMMIT that had failed is there after all; it is then the model. */
static int came_back(t_world *w, const char *rows, const char *notes)
{
    t_shared *s = w->shared;
    for (int i = 0; i < s->nmaybe; i++) {
        if (is(w, &s->maybe[i], rows, notes)) {
            s->model[s->cur] = s->maybe[i];
            s->nmaybe = 0;
            return 1;
        }
    }
    return 0;
}

void t_world_check(t_world *w)
{
    t_shared *s = w->shared;
    char *rows = t_world_dump(w, 0), *notes = t_world_dump(w, 1);
    int cur = s->cur;
    if (s->open && is(w, &s->model[!cur], rows, notes)) {
        s->took = !is(w, &s->model[cur], rows, notes);
        cur = !cur;
        s->nmaybe = 0;
    } else if (s->open == 2 ||
               (!is(w, &s->model[cur], rows, notes) && !came_back(w, rows, notes))) {
        tell(w, rows, notes);
        _exit(3);
    }
    s->cur = cur;
    s->open = 0;
    if (!w->spec->journal) {
        s->model[cur].nnote = 0;
    }
    sqlite3_free(rows);
    sqlite3_free(notes);
}

void t_world_check_deeply(t_world *w)
{
    const t_model *m = &w->shared->model[w->shared->cur];
    int words = 0, vectors = 0;
    char want[100];
    char *got = dump(w, "SELECT h5mem_verify('memory')");
    if (strcmp(got, "ok\n\n") != 0) {
        t_world_fail(w, "h5mem_verify: %s", got);
    }
    sqlite3_free(got);
    for (int i = 0; i < m->nrow; i++) {
        words += t_text_has_words(m->row[i].content);
        vectors += m->row[i].vector != 0;
    }
    snprintf(want, sizeof want, "%d|%d|%d\n\n", words, vectors, m->nrow);
    got = dump(w,
               "SELECT (SELECT count(*) FROM memory WHERE content MATCH 'amber'), (SELECT count(*)"
               " FROM memory WHERE embedding MATCH '[1,0,0,0]'), (SELECT count(*) FROM memory)");
    if (strcmp(got, want) != 0) {
        t_world_fail(w, "rows by words, by vector, in all: %s, not %s", got, want);
    }
    sqlite3_free(got);
}
