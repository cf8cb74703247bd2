/*
 * t_life.c - what a world does to let its memories age: touches, ticks, passes of consolidation
 * that evict, rows that come back or are forgotten, exchanges that are recorded, sessions
 *
 * A pass is told beforehand by a dry one, which must not differ from it. How rows are chosen is
 * asked elsewhere (tests/sql/test_life.py); here only whether all of what was chosen is there.
 *
 * What was evicted must come back unless a compact was asked for; with an automatic compact (no
 * autocompact=1 among the options) it may be gone.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "t_text.h"
#include "t_world.h"

enum { MOVES = 2 * T_ROWS, LATER = 2000000, JSON = 32768 };

typedef struct move {
    int64_t id;
    int to; /* a tier, or -1: evicted */
} move;

typedef struct moves {
    int n;
    move move[MOVES];
} moves;

static int below(t_world *w, int n)
{
    return t_model_below(w, n);
}

void t_model_told(t_model *m, const char *event)
{
    m->events++;
    m->told = (m->told ^ t_digest(event)) * 0x100000001b3u;
}

static void tell(t_model *m, const char *kind, int64_t id)
{
    char event[60];
    snprintf(event, sizeof event, "%s|%lld", kind, (long long)id);
    t_model_told(m, event);
}

/* A single number. */
static int take_number(void *ctx, int n, char **value, char **name)
{
    (void)n;
    (void)name;
    *(long *)ctx = value[0] ? strtol(value[0], NULL, 10) : -1;
    return 0;
}

/* A single text. What is in it is read here: SQLite's own JSON gives NULL where memory is short. */
static int take_text(void *ctx, int n, char **value, char **name)
{
    (void)n;
    (void)name;
    snprintf(ctx, JSON, "%s", value[0] ? value[0] : "");
    return 0;
}

/* The number behind the first of these. */
static long number_of(const char *json, const char *name)
{
    const char *p = strstr(json, name);
    return p ? strtol(p + strlen(name), NULL, 10) : -1;
}

static t_row *some_row(t_world *w)
{
    return w->work.nrow ? &w->work.row[below(w, w->work.nrow)] : NULL;
}

/* --------------------------------------------------------------------------------------- passes */

/* The moves that a dry pass lists: {"id":7,"do":"promote","from":"working","to":"episodic",...}. */
static void read_moves(const char *json, moves *m)
{
    const char *p = json;
    m->n = 0;
    while (m->n < MOVES && (p = strstr(p, "{\"id\":")) != NULL) {
        const char *end = strchr(p, '}');
        const char *to = strstr(p, "\"to\":\"");
        move *one = &m->move[m->n++];
        one->id = strtoll(p + 6, NULL, 10);
        one->to = !to || to > end ? -1 : to[6] == 'e' ? 1 : 2;
        p = end;
    }
}

static void apply(t_model *m, const move *one)
{
    int i = t_model_place(m, one->id);
    if (one->to >= 0) {
        m->row[i].tier = one->to;
        tell(m, "promote", one->id);
        return;
    }
    if (m->ngone == T_GONE) {
        t_model_ungone(m, m->gone[0].id);
    }
    m->gone[m->ngone++] = m->row[i];
    t_model_drop(m, i);
    tell(m, "evict", one->id);
}

int t_life_plan(t_world *w, int *now, int *count)
{
    moves all = {.n = 0};
    char json[JSON] = "";
    int rc;
    *now = LATER + below(w, 1000000);
    rc = t_world_ask(w, take_text, json, "SELECT h5mem_consolidate('memory', %d, 'dry')", *now);
    read_moves(json, &all);
    for (int i = 0; i < all.n && rc == SQLITE_OK; i++) {
        w->shared->evicted += all.move[i].to < 0;
        if (!t_model_has(&w->work, all.move[i].id)) {
            t_world_fail(w, "a pass is about row %lld", (long long)all.move[i].id);
        }
        apply(&w->work, &all.move[i]);
    }
    *count = all.n;
    return rc;
}

int t_life_pass(t_world *w, int now, int count)
{
    char json[JSON] = "";
    int rc = t_world_ask(w, take_text, json, "SELECT h5mem_consolidate('memory', %d)", now);
    long done = number_of(json, "\"promoted\":") + number_of(json, "\"evicted\":");
    if (rc == SQLITE_OK && done != count) {
        t_world_fail(w, "a pass did %ld things, a dry one %d", done, count);
    }
    return rc;
}

static int consolidate(t_world *w)
{
    int now, count, rc = t_life_plan(w, &now, &count);
    return rc ? rc : t_life_pass(w, now, count);
}

static int touch(t_world *w)
{
    t_row *r = some_row(w);
    int rc = r ? t_world_run(w, "SELECT h5mem_touch('memory', %lld, %d)", r->id, LATER) : SQLITE_OK;
    if (r && rc == SQLITE_OK) {
        r->accesses++;
    }
    return rc;
}

static int tick(t_world *w)
{
    int now = w->work.tick + 1 + below(w, 9);
    int rc = t_world_run(w, "SELECT h5mem_tick('memory', %d)", now);
    w->work.tick = rc ? w->work.tick : now;
    return rc;
}

/* --------------------------------------------------------------------------- going, coming back */

static int may_be_compacted(const t_world *w)
{
    return !strstr(w->spec->options, "autocompact=1");
}

static int restore(t_world *w)
{
    t_model *m = &w->work;
    t_row r;
    long done = -1;
    int rc;
    if (!m->ngone || m->nrow >= T_ROWS - 4) {
        return SQLITE_OK;
    }
    r = m->gone[below(w, m->ngone)];
    rc = t_world_ask(w, take_number, &done, "SELECT h5mem_restore('memory', %lld)", r.id);
    if (rc) {
        return rc;
    }
    if (done != 1 && !(done == 0 && may_be_compacted(w))) {
        t_world_fail(w, "row %lld, evicted, does not come back: %ld", (long long)r.id, done);
    }
    t_model_ungone(m, r.id);
    if (done) {
        w->shared->back++;
        t_model_set(m, &r);
        tell(m, "restore", r.id);
    }
    return rc;
}

static int forget(t_world *w)
{
    t_model *m = &w->work;
    t_row *r = some_row(w);
    int old = m->ngone && below(w, 2), rc;
    long done = -1;
    int64_t id;
    if (!old && !r) {
        return SQLITE_OK;
    }
    id = old ? m->gone[below(w, m->ngone)].id : r->id;
    rc = t_world_ask(w, take_number, &done, "SELECT h5mem_forget('memory', 'id', %lld)", id);
    if (rc) {
        return rc;
    }
    if (done != 1 && !(done == 0 && old && may_be_compacted(w))) {
        t_world_fail(w, "row %lld was forgotten %ld times", (long long)id, done);
    }
    t_model_ungone(m, id);
    if (!old) {
        t_model_drop(m, t_model_place(m, id));
    }
    return rc;
}

static int record(t_world *w)
{
    char text[2][T_TEXT_MOST], json[JSON] = "";
    int both = below(w, 2), rc;
    int64_t id[2] = {-1, -1};
    t_row r = {
        .session = 1 + below(w, 2), .importance = 500, .priority = -1, .stamp = below(w, 1 << 20)};
    int content[2] = {1 + below(w, 4000), 1 + below(w, 4000)};
    if (w->work.nrow >= T_ROWS - 6) {
        return SQLITE_OK;
    }
    t_text(content[0], text[0]);
    t_text(content[1], text[1]);
    rc = t_world_ask(w, take_text, json,
                     "SELECT h5mem_record('memory', %Q, %Q, 's-%d', %d, NULL, NULL)", text[0],
                     both ? text[1] : NULL, r.session, r.stamp);
    if (rc) {
        return rc;
    }
    id[0] = number_of(json, "\"saved\":[");
    id[1] = both ? number_of(json, ",") : -1;
    for (int i = 0; i <= both; i++) {
        if (id[i] < 0 || t_model_has(&w->work, id[i])) {
            t_world_fail(w, "an exchange was given the ids %lld, %lld", (long long)id[0],
                         (long long)id[1]);
        }
        r.id = id[i];
        r.content = content[i];
        t_model_set(&w->work, &r);
    }
    w->shared->recorded += 1 + both;
    tell(&w->work, "record", id[0]);
    return rc;
}

/* ------------------------------------------------------------------------------------- sessions */

static int session_start(t_world *w)
{
    t_model *m = &w->work;
    t_session n = {1 + below(w, 40), -1, -1, -1};
    char parent[20] = "";
    int i = 0, rc;
    while (i < m->nsession && m->session[i].id < n.id) {
        i++;
    }
    if (m->nsession == T_SESSIONS || (i < m->nsession && m->session[i].id == n.id)) {
        return SQLITE_OK;
    }
    if (i && below(w, 2)) {
        n.parent = m->session[below(w, i)].id;
        snprintf(parent, sizeof parent, "n%d", n.parent);
    }
    rc = t_world_run(w, "INSERT INTO memory_sessions(id, parent, start) VALUES ('n%d', %Q, 5)",
                     n.id, *parent ? parent : NULL);
    if (rc == SQLITE_OK) {
        memmove(m->session + i + 1, m->session + i, (size_t)(m->nsession - i) * sizeof n);
        m->session[i] = n;
        m->nsession++;
        t_model_told(m, "session_start|~");
    }
    return rc;
}

static int session_end(t_world *w)
{
    t_model *m = &w->work;
    char text[T_TEXT_MOST];
    t_session *n;
    int end = 10 + below(w, 90), summary = below(w, 4000) - 1, rc;
    if (!m->nsession) {
        return SQLITE_OK;
    }
    n = &m->session[below(w, m->nsession)];
    rc = t_world_run(w, "UPDATE memory_sessions SET \"end\" = %d, summary = %Q WHERE id = 'n%d'",
                     end, t_text(summary, text), n->id);
    if (rc == SQLITE_OK) {
        if (n->end < 0) {
            t_model_told(m, "session_end|~");
        }
        n->end = end;
        n->summary = summary;
    }
    return rc;
}

static int session_drop(t_world *w)
{
    t_model *m = &w->work;
    int i, rc;
    if (m->nsession < T_SESSIONS / 2) {
        return SQLITE_OK;
    }
    i = below(w, m->nsession);
    rc = t_world_run(w, "DELETE FROM memory_sessions WHERE id = 'n%d'", m->session[i].id);
    if (rc == SQLITE_OK) {
        memmove(m->session + i, m->session + i + 1,
                (size_t)(m->nsession - i - 1) * sizeof *m->session);
        m->nsession--;
    }
    return rc;
}

int t_life_step(t_world *w)
{
    static int (*const ops[])(t_world *) = {consolidate, touch,         touch,       tick,
                                            restore,     restore,       forget,      record,
                                            record,      session_start, session_end, session_drop};
    return ops[below(w, (int)(sizeof ops / sizeof *ops))](w);
}
