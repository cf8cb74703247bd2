/*
 * t_work.c - what a world does: transactions of random statements, single ones, upkeep
 *
 * Each statement is run, and done to the model, `work`. COMMIT is announced in the shared memory
 * before it runs (`open`): its model is then the other one.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "t_sys.h"
#include "t_text.h"
#include "t_world.h"

/* ---------------------------------------------------------------------------------- the model */

int t_model_below(t_world *w, int n)
{
    return (int)t_rng_below(&w->rng, (uint64_t)n);
}

static int below(t_world *w, int n)
{
    return t_model_below(w, n);
}

/* Where id is or ought to be. */
int t_model_place(const t_model *m, int64_t id)
{
    int i = 0;
    while (i < m->nrow && m->row[i].id < id) {
        i++;
    }
    return i;
}

int t_model_has(const t_model *m, int64_t id)
{
    int i = t_model_place(m, id);
    return i < m->nrow && m->row[i].id == id;
}

void t_model_set(t_model *m, const t_row *r)
{
    int i = t_model_place(m, r->id);
    t_model_ungone(m, r->id); // a row of that id takes the place of an evicted one
    if (!t_model_has(m, r->id)) {
        memmove(m->row + i + 1, m->row + i, (size_t)(m->nrow - i) * sizeof *r);
        m->nrow++;
    }
    m->row[i] = *r;
}

void t_model_drop(t_model *m, int i)
{
    memmove(m->row + i, m->row + i + 1, (size_t)(m->nrow - i - 1) * sizeof *m->row);
    m->nrow--;
}

int t_model_gone(const t_model *m, int64_t id)
{
    int i = m->ngone - 1;
    while (i >= 0 && m->gone[i].id != id) {
        i--;
    }
    return i;
}

void t_model_ungone(t_model *m, int64_t id)
{
    int i = t_model_gone(m, id);
    if (i >= 0) {
        memmove(m->gone + i, m->gone + i + 1, (size_t)(m->ngone - i - 1) * sizeof *m->gone);
        m->ngone--;
    }
}

static void set_note(t_model *m, int64_t id, int text)
{
    int i = 0;
    while (i < m->nnote && m->note[i].id < id) {
        i++;
    }
    if (i == m->nnote || m->note[i].id != id) {
        memmove(m->note + i + 1, m->note + i, (size_t)(m->nnote - i) * sizeof *m->note);
        m->nnote++;
    }
    m->note[i] = (t_note){id, text};
}

static void drop_note(t_model *m, int i)
{
    memmove(m->note + i, m->note + i + 1, (size_t)(m->nnote - i - 1) * sizeof *m->note);
    m->nnote--;
}

static t_row random_row(t_world *w, int64_t id)
{
    t_row r = {.id = id};
    r.content = below(w, 4000) - 1;
    r.session = below(w, 3);
    r.importance = below(w, 1001);
    r.priority = below(w, 100) - 1;
    r.vector = below(w, 60);
    r.stamp = below(w, 1 << 20);
    return r;
}

/* No row's, and of none that may come back. */
static int64_t free_id(t_world *w)
{
    const t_model *m = &w->work;
    int64_t id = (m->nrow ? m->row[m->nrow - 1].id : 0) % 1000000 + 1 + below(w, 3);
    while (t_model_gone(m, id) >= 0) {
        id++;
    }
    return id;
}

/* ------------------------------------------------------------------------------ one statement */

/* INSERT of r; id -1: the store gives one. */
static int put(t_world *w, const char *how, t_row *r)
{
    char text[T_TEXT_MOST], json[T_HEX_MOST], session[8] = "", priority[16] = "NULL",
                                              id[32] = "NULL";
    int rc;
    snprintf(session, sizeof session, "s-%d", r->session);
    if (r->priority >= 0) {
        snprintf(priority, sizeof priority, "%d", r->priority);
    }
    if (r->id >= 0) {
        snprintf(id, sizeof id, "%lld", (long long)r->id);
    }
    rc = t_world_run(w,
                     "%s INTO memory(id, content, session, importance, priority, embedding, "
                     "timestamp) VALUES (%s, %Q, %Q, %d / 1000.0, %s, %Q, %d)",
                     how, id, t_text(r->content, text), r->session ? session : NULL, r->importance,
                     priority, r->vector ? t_vector_json(r->vector, json) : NULL, r->stamp);
    if (rc == SQLITE_OK) {
        if (r->id < 0) {
            r->id = sqlite3_last_insert_rowid(w->db);
            if (t_model_has(&w->work, r->id)) {
                t_world_fail(w, "id %lld was given twice", (long long)r->id);
            }
        }
        t_model_set(&w->work, r);
    }
    return rc;
}

static int insert(t_world *w)
{
    t_row r;
    if (w->work.nrow >= T_ROWS - 4) {
        return SQLITE_OK;
    }
    r = random_row(w, below(w, 2) ? free_id(w) : -1);
    if (r.id >= 0 && t_model_has(&w->work, r.id)) {
        return SQLITE_OK;
    }
    return put(w, "INSERT", &r);
}

static int replace(t_world *w)
{
    t_row r;
    if (!w->work.nrow) {
        return SQLITE_OK;
    }
    r = random_row(w, w->work.row[below(w, w->work.nrow)].id);
    return put(w, "REPLACE", &r);
}

static int change_heavy(t_world *w)
{
    char text[T_TEXT_MOST], json[T_HEX_MOST];
    t_row *r;
    int content = below(w, 4000) - 1, vector = 1 + below(w, 59), rc;
    if (!w->work.nrow) {
        return SQLITE_OK;
    }
    r = &w->work.row[below(w, w->work.nrow)];
    rc = t_world_run(w, "UPDATE memory SET content = %Q, embedding = %Q WHERE id = %lld",
                     t_text(content, text), t_vector_json(vector, json), r->id);
    if (rc == SQLITE_OK) {
        r->content = content;
        r->vector = vector;
    }
    return rc;
}

static int change_small(t_world *w)
{
    int kind = below(w, 3), value = below(w, 1001), most = below(w, T_ROWS), rc;
    int64_t limit = w->work.nrow ? w->work.row[most % w->work.nrow].id : 0;
    rc = t_world_run(
        w, "UPDATE memory SET importance = %d / 1000.0, priority = priority + 1 WHERE id %s %lld",
        value,
        kind == 0   ? "="
        : kind == 1 ? "<="
                    : ">",
        limit);
    for (int i = 0; rc == SQLITE_OK && i < w->work.nrow; i++) {
        t_row *r = &w->work.row[i];
        if (kind == 0 ? r->id == limit : kind == 1 ? r->id <= limit : r->id > limit) {
            r->importance = value;
            r->priority += r->priority >= 0;
        }
    }
    return rc;
}

static int move(t_world *w)
{
    int64_t to = free_id(w);
    int i, rc;
    t_row r;
    if (!w->work.nrow || t_model_has(&w->work, to)) {
        return SQLITE_OK;
    }
    i = below(w, w->work.nrow);
    r = w->work.row[i];
    rc = t_world_run(w, "UPDATE memory SET id = %lld WHERE id = %lld", to, r.id);
    if (rc == SQLITE_OK) {
        t_model_drop(&w->work, i);
        r.id = to;
        t_model_set(&w->work, &r);
    }
    return rc;
}

static int drop_some(t_world *w)
{
    int many = below(w, 4) == 0 || w->work.nrow > T_ROWS - 12, by = 2 + below(w, 3), rc;
    int64_t id = w->work.nrow ? w->work.row[below(w, w->work.nrow)].id : 1;
    rc = many ? t_world_run(w, "DELETE FROM memory WHERE id %% %d = 0", by)
              : t_world_run(w, "DELETE FROM memory WHERE id = %lld", id);
    for (int i = w->work.nrow; rc == SQLITE_OK && i-- > 0;) {
        if (many ? w->work.row[i].id % by == 0 : w->work.row[i].id == id) {
            t_model_drop(&w->work, i);
        }
    }
    return rc;
}

/* An id that is taken: refused, and nothing has happened. */
static int refused(t_world *w)
{
    int64_t id;
    int rc;
    if (!w->work.nrow) {
        return SQLITE_OK;
    }
    id = w->work.row[below(w, w->work.nrow)].id;
    t_sys_statement();
    char *sql = sqlite3_mprintf("INSERT INTO memory(id, content) VALUES (%lld, 'new'), (%lld, 'x')",
                                free_id(w) + 5, id);
    rc = sql ? sqlite3_exec(w->db, sql, NULL, NULL, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    if ((rc & 255) == SQLITE_CONSTRAINT) {
        return SQLITE_OK;
    }
    if (!w->may_fail) {
        t_world_fail(w, "an id was taken twice: %d %s", rc, sqlite3_errmsg(w->db));
    }
    return rc ? rc : SQLITE_ERROR;
}

static int note(t_world *w)
{
    char text[T_TEXT_MOST];
    int64_t id = below(w, T_NOTES - 6);
    int n = below(w, 4000) - 1, rc;
    if (w->work.nnote >= T_NOTES - 1) {
        return SQLITE_OK;
    }
    rc = t_world_run(w, "INSERT OR REPLACE INTO notes VALUES (%lld, %Q)", id, t_text(n, text));
    if (rc == SQLITE_OK) {
        set_note(&w->work, id, n);
    }
    return rc;
}

/* A note whose trigger writes to the store. */
static int note_both(t_world *w)
{
    char text[T_TEXT_MOST];
    int64_t id = 1000000;
    int n = below(w, 4000) - 1, rc;
    t_row r = {.content = n, .session = 1, .importance = 500, .priority = -1, .stamp = 7};
    for (int i = 0; i < w->work.nnote; i++) {
        id = w->work.note[i].id >= id ? w->work.note[i].id + 1 : id;
    }
    while (t_model_has(&w->work, id) || t_model_gone(&w->work, id) >= 0) {
        id++;
    }
    if (w->work.nnote >= T_NOTES - 1 || w->work.nrow >= T_ROWS - 4) {
        return SQLITE_OK;
    }
    rc = t_world_run(w, "INSERT INTO notes VALUES (%lld, %Q)", id, t_text(n, text));
    if (rc == SQLITE_OK) {
        r.id = id;
        t_model_set(&w->work, &r);
        set_note(&w->work, id, n);
    }
    return rc;
}

static int drop_note_of(t_world *w)
{
    int i, rc;
    int64_t id;
    if (!w->work.nnote) {
        return SQLITE_OK;
    }
    i = below(w, w->work.nnote);
    id = w->work.note[i].id;
    rc = t_world_run(w, "DELETE FROM notes WHERE id = %lld", id);
    if (rc == SQLITE_OK) {
        drop_note(&w->work, i);
        for (int k = 0; id >= 1000000 && k < w->work.nrow; k++) {
            w->work.row[k].priority = w->work.row[k].id % 2 ? w->work.row[k].priority : (int)id;
        }
    }
    return rc;
}

static int one(t_world *w)
{
    static int (*const ops[])(t_world *) = {
        insert,       insert,       insert,      replace,     change_heavy, change_heavy,
        change_small, change_small, drop_some,   move,        note,         note,
        note_both,    drop_note_of, refused,     t_life_step, t_life_step,  t_life_step,
        t_life_step,  t_life_step,  t_life_step, t_life_step, t_life_step};
    int rc = ops[below(w, (int)(sizeof ops / sizeof *ops))](w);
    if (rc == SQLITE_OK && w->shared->where == T_IDLE) {
        w->shared->where = T_ROWS_WRITTEN;
    }
    return rc;
}

static int some(t_world *w, int most)
{
    int rc = SQLITE_OK;
    for (int n = 1 + below(w, most); n-- > 0 && rc == SQLITE_OK;) {
        rc = one(w);
    }
    return rc;
}

static int saved(t_world *w, const char *name)
{
    t_model before = w->work;
    int rc = t_world_run(w, "SAVEPOINT %s", name);
    rc = rc ? rc : some(w, 3);
    if (!rc && *name == 'a' && below(w, 3) == 0) {
        rc = saved(w, "b");
    }
    if (!rc && below(w, 2)) {
        rc = t_world_run(w, "ROLLBACK TO %s", name);
        w->work = before;
        rc = rc || below(w, 2) ? rc : some(w, 2);
    }
    return rc ? rc : t_world_run(w, "RELEASE %s", name);
}

/* ---------------------------------------------------------------------------------- committing */

static void remember(t_shared *s)
{
    char *rows = t_model_dump(&s->model[s->cur], 0), *notes = t_model_dump(&s->model[s->cur], 1);
    if (rows && notes) { // not while memory fails on purpose, when nobody asks for the history
        s->rows_was[s->history % T_HISTORY] = t_digest(rows);
        s->notes_was[s->history++ % T_HISTORY] = t_digest(notes);
    }
    sqlite3_free(rows);
    sqlite3_free(notes);
}

static void announce(t_world *w)
{
    t_shared *s = w->shared;
    s->model[!s->cur] = w->work;
    s->where = T_COMMITTING;
    s->open = 1;
}

static void confirm(t_world *w)
{
    t_shared *s = w->shared;
    s->open = 2;
    s->cur = !s->cur;
    s->open = s->nmaybe = 0;
    s->where = T_IDLE;
    s->commits++;
    remember(s);
}

/* After a COMMIT that failed: which of the two is there is asked; then nothing is open. */
static void failed(t_world *w)
{
    t_shared *s = w->shared;
    if (s->open && s->nmaybe < T_MAYBE) {
        s->maybe[s->nmaybe++] = s->model[!s->cur];
    }
    if (!sqlite3_get_autocommit(w->db)) {
        sqlite3_exec(w->db, "ROLLBACK", NULL, NULL, NULL);
    }
    s->where = T_IDLE;
}

/* The end of a transaction; rc: of what was done before. */
static void commit(t_world *w, int rc)
{
    announce(w);
    if (rc || t_world_run(w, "COMMIT")) {
        failed(w);
    } else {
        confirm(w);
    }
}

void t_world_transaction(t_world *w)
{
    t_shared *s = w->shared;
    int rc, drop;
    w->work = s->model[s->cur];
    rc = t_world_run(w, below(w, 2) ? "BEGIN" : "BEGIN IMMEDIATE");
    if (rc) {
        return;
    }
    if (below(w, 8) == 0) {
        rc = saved(w, "old"); // older than the first write, and so undone whole
    }
    for (int n = 1 + below(w, 2); n-- > 0 && !rc;) {
        rc = some(w, 4);
        rc = rc || below(w, 3) ? rc : saved(w, "a");
    }
    if (rc) {
        failed(w);
        return;
    }
    if (below(w, 8) == 0) {
        t_world_run(w, "ROLLBACK");
        failed(w);
        return;
    }
    // The table goes, its rows stay in the store: to be found when it is made anew.
    drop = w->drop && w->spec->journal && below(w, 20) == 0;
    commit(w, drop ? t_world_run(w, "DROP TABLE memory") : rc);
    if (drop) {
        t_world_run(w, "CREATE VIRTUAL TABLE memory USING h5mem('agent.h5')");
    }
}

/* One statement that commits by itself, over two rows or both files. */
static void alone(t_world *w)
{
    t_shared *s = w->shared;
    int kind = below(w, 4), rc, now, moves;
    char text[T_TEXT_MOST];
    w->work = s->model[s->cur];
    if (kind == 3) {
        if (t_life_plan(w, &now, &moves)) {
            return;
        }
        announce(w);
        rc = t_life_pass(w, now, moves);
    } else if (kind == 0 && w->work.nrow < T_ROWS - 4) {
        t_row a = {.id = free_id(w), .content = 3, .importance = 500, .priority = 1, .stamp = 9};
        t_row b = a;
        b.id = a.id + 1;
        if (t_model_has(&w->work, a.id) || t_model_has(&w->work, b.id)) {
            return;
        }
        t_model_set(&w->work, &a);
        t_model_set(&w->work, &b);
        announce(w);
        rc = t_world_run(w,
                         "INSERT INTO memory(id, content, importance, priority, timestamp)"
                         " VALUES (%lld, %Q, 0.5, 1, 9), (%lld, %Q, 0.5, 1, 9)",
                         a.id, t_text(3, text), b.id, text);
    } else if (kind == 1) {
        int limit = below(w, 100);
        for (int i = 0; i < w->work.nrow; i++) {
            w->work.row[i].priority += w->work.row[i].priority > limit;
        }
        announce(w);
        rc = t_world_run(w, "UPDATE memory SET priority = priority + 1 WHERE priority > %d", limit);
    } else {
        for (int i = w->work.nrow; i-- > 0;) {
            if (w->work.row[i].id % 5 == 0) {
                t_model_drop(&w->work, i);
            }
        }
        announce(w);
        rc = t_world_run(w, "DELETE FROM memory WHERE id %% 5 = 0");
    }
    if (rc) {
        failed(w);
    } else {
        confirm(w);
    }
}

/* -------------------------------------------------------------------------------------- upkeep */

/* A copy, which must hold what is committed. */
static void backup(t_world *w)
{
    t_spec copy_spec = {NULL, NULL, ""};
    t_world copy = {.shared = w->shared, .spec = &copy_spec};
    char path[300], *want, *got;
    snprintf(path, sizeof path, "%scopy.h5-wal", w->folder);
    unlink(path);
    path[strlen(path) - 4] = 0;
    unlink(path);
    if (t_world_run(w, "SELECT h5mem_backup('memory', %Q)", path)) {
        return;
    }
    if (sqlite3_open(":memory:", &copy.db) != SQLITE_OK) {
        t_world_fail(w, "no memory");
    }
    t_world_run(&copy,
                "CREATE VIRTUAL TABLE memory USING h5mem(%Q);"
                "CREATE VIRTUAL TABLE memory_sessions USING h5mem_sessions(memory)",
                path);
    got = t_world_dump(&copy, 0);
    want = t_world_dump(w, 0);
    if (strcmp(want, got) != 0) {
        t_world_fail(w, "a backup of\n%.2000s\nholds\n%.2000s", want, got);
    }
    sqlite3_free(want);
    sqlite3_free(got);
    t_world_close(&copy);
}

/* Rows go out, are changed, and come back as they were beside those that are new. */
static void import(t_world *w)
{
    t_shared *s = w->shared;
    t_model was = s->model[s->cur];
    int rc;
    if (was.nrow > T_ROWS - 12 ||
        t_world_run(w, "SELECT h5mem_export('memory', '%srows.jsonl', 'jsonl')", w->folder) ||
        t_world_run(w, "BEGIN")) {
        return;
    }
    w->work = was;
    rc = some(w, 3);
    rc = rc ? rc
            : t_world_run(w, "SELECT h5mem_import('memory', '%srows.jsonl', 'jsonl')", w->folder);
    for (int i = 0; i < was.nrow && !rc; i++) {
        t_model_set(&w->work, &was.row[i]);
    }
    if (rc) {
        failed(w);
    } else {
        commit(w, rc);
    }
}

/* What was evicted is gone for good, be it that this compact is still to come. */
int t_world_compact(t_world *w)
{
    w->shared->model[0].ngone = w->shared->model[1].ngone = 0;
    return t_world_run(w, "SELECT h5mem_compact('memory')");
}

void t_world_upkeep(t_world *w)
{
    static const char *const level[] = {"off", "normal", "full"};
    switch (below(w, 8)) {
    case 0:
    case 1:
    case 2:
        t_world_run(w, "SELECT h5mem_flush('memory')");
        break;
    case 3:
    case 4:
        t_world_compact(w);
        break;
    case 5:
        if (!w->may_fail && below(w, 2)) {
            import(w);
        } else if (!w->may_fail) {
            backup(w);
        }
        break;
    case 6:
        if (w->spec->journal && below(w, 2)) {
            t_world_run(w, "PRAGMA wal_checkpoint(%s)", below(w, 2) ? "PASSIVE" : "TRUNCATE");
        } else if (!strstr(w->spec->options, "synchronous")) {
            t_world_run(w, "SELECT h5mem_config('memory', 'synchronous', '%s')",
                        level[below(w, 3)]);
        }
        break;
    default:
        if (w->spec->journal && !w->may_fail) {
            t_world_close(w);
            t_world_open(w, w->shared, w->spec, w->folder);
        } else {
            t_world_run(w, "SELECT h5mem_flush('memory')");
        }
    }
}

void t_world_step(t_world *w)
{
    int what = below(w, 20);
    if (what < 13) {
        t_world_transaction(w);
    } else if (what < 16) {
        alone(w);
    } else if (!w->no_upkeep) {
        t_world_upkeep(w);
    }
}
