/*
 * sql_pass.c - one pass of consolidation over a table: h5mem_consolidate's work.
 *
 * IN ORDER  1. Of rows that nobody has rated (importance 0.5, the column's default), and of those
 *              new since the last pass (an id above the option consolidated_id), the nearest row of
 *              a lower id is found, once. The unrated get an importance, with its distance as their
 *              surprise (auto_importance).
 *           2. Promotion, then eviction: mind_consolidate.
 *           3. Of these rows, where they stay, near duplicates of an older one (merge_distance)
 *              take its place: the older gets valid_to and superseded_by, so that searches pass it
 *              by and as_of still finds it; the newer one gets valid_from, and keeps the better
 *              tier, the greater importance and the accesses of both. What is pinned is not
 *              superseded, nor what another has said: rows merge where all user columns are equal
 *              (a user's name may be among them) and both are of one source, user and correction
 *              being one, or the newer one is a correction. So a query for one user or one source
 *              loses no row to another's.
 *           4. The marks: last_consolidation and consolidated_id.
 * Each promotion, eviction and merge is an event of the store (h5mem_events).
 * All of it is part of the caller's transaction. The columns are read once, as arrays; what is
 * written are small columns of the rows that change, and nothing of the others.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <string.h>

#include "sql_life.h"

enum { FOLLOW_MOST = 1000 };

typedef struct pair {
    size_t newer, older; /* in ages */
    double distance;
} pair;

typedef struct work {
    sql_pass *pass;
    sql_table *t;
    st_view *view;
    st_life life;
    st_ages a;
    mind_moves moves;
    void *room;
    uint8_t *rated, *gone;
    int64_t *by; /* 1 + the row that has superseded it in this pass, or 0 */
    pair *pairs;
    size_t npair, cap_pair;
} work;

static int fail(work *w, const st_error *err)
{
    return sql_fail_st(w->t, err);
}

/* ----------------------------------------------------------------------------------------- list */

static void begin_item(work *w, size_t i, const char *what)
{
    sqlite3_str *s = w->pass->list;
    sqlite3_str_appendf(s, "%s{\"id\":%lld,\"do\":\"%s\"", sqlite3_str_length(s) ? "," : "",
                        (long long)w->a.id[i], what);
}

static void list_move(work *w, const mind_move *m)
{
    static const char *const tiers[] = {"working", "episodic", "semantic"};
    sqlite3_str *s = w->pass->list;
    if (!s) {
        return;
    }
    begin_item(w, m->row, m->to == MIND_EVICTED ? "evict" : "promote");
    sqlite3_str_appendf(s, ",\"from\":\"%s\"", tiers[m->from]);
    if (m->to != MIND_EVICTED) {
        sqlite3_str_appendf(s, ",\"to\":\"%s\"", tiers[m->to]);
    }
    sqlite3_str_appendf(s, ",\"why\":\"%s\",\"importance\":%.3f,\"access_count\":%lld",
                        mind_why_name(m->why), w->a.importance[m->row],
                        (long long)w->a.access_count[m->row]);
    if (m->to == MIND_EVICTED) {
        sqlite3_str_appendf(s, ",\"strength\":%.3f", m->strength);
    }
    sqlite3_str_appendchar(s, 1, '}');
}

/* What h5mem_events tells of it; st_evict writes its own. */
static int event(work *w, const char *kind, size_t i, const char *json)
{
    st_error err;
    st_error_none(&err);
    return w->pass->dry ||
                   st_event(w->t->store->conn, w->pass->now, kind, &w->a.id[i], json, &err) == ST_OK
               ? SQLITE_OK
               : fail(w, &err);
}

/* ------------------------------------------------------------------------------------- new rows */

/* Where a view's row is among the columns: they lie in its order. */
static size_t index_of(const st_ages *a, uint64_t row)
{
    size_t lo = 0, hi = a->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (a->row[mid] < row) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

static int keep_pair(work *w, size_t newer, size_t older, double distance)
{
    if (w->npair == w->cap_pair) {
        size_t cap = w->cap_pair * 2 + 32;
        pair *more = sqlite3_realloc64(w->pairs, cap * sizeof *more);
        if (!more) {
            return SQLITE_NOMEM;
        }
        w->pairs = more;
        w->cap_pair = cap;
    }
    w->pairs[w->npair++] = (pair){newer, older, distance};
    return SQLITE_OK;
}

/* The distance to the nearest row before this one: 1 when it is the first, NaN without a vector. */
static int look_around(work *w, size_t i, double *surprise)
{
    st_error err = {0};
    st_value v;
    sql_nearest near;
    int rc;
    *surprise = NAN;
    if (st_view_value(w->view, w->a.row[i], ST_COL_EMBEDDING, &v, &err) != ST_OK) {
        return fail(w, &err);
    }
    if (!v.p) {
        return SQLITE_OK;
    }
    float *vector = sqlite3_malloc64(v.n + 1);
    if (!vector) {
        return SQLITE_NOMEM;
    }
    memcpy(vector, v.p, v.n); // the search looks at other rows' vectors
    rc = sql_nearest_row(w->t, w->view, vector, &w->a.id[i], &near);
    sqlite3_free(vector);
    *surprise = rc == SQLITE_OK && near.found ? near.distance : 1;
    if (rc == SQLITE_OK && near.found && w->life.merge_distance > 0 &&
        near.distance <= w->life.merge_distance) {
        rc = keep_pair(w, i, index_of(&w->a, near.row), near.distance);
    }
    return rc;
}

static int rate_one(work *w, size_t i, double surprise)
{
    st_error err = {0};
    st_value text;
    if (st_view_value(w->view, w->a.row[i], ST_COL_CONTENT, &text, &err) != ST_OK) {
        return fail(w, &err);
    }
    w->a.importance[i] = sql_rate(&w->life, text.p, text.n, w->a.source[i], surprise);
    w->rated[i] = 1;
    return SQLITE_OK;
}

/* Is a column's value the same in both rows? */
static int same_value(work *w, size_t older, size_t newer, int col, int *same)
{
    st_error err = {0};
    st_value a, b;
    *same = 0;
    if (st_view_value(w->view, w->a.row[older], col, &a, &err) != ST_OK) {
        return fail(w, &err);
    }
    void *copy = sqlite3_malloc64(a.n + 1);
    if (!copy) {
        return SQLITE_NOMEM;
    }
    if (a.n) {
        memcpy(copy, a.p, a.n); // the next look at the column takes its place
    }
    int st = st_view_value(w->view, w->a.row[newer], col, &b, &err);
    if (st == ST_OK && a.type == b.type) {
        *same = a.type == ST_INT    ? a.i == b.i
                : a.type == ST_REAL ? a.r == b.r
                                    : a.n == b.n && (!a.n || memcmp(copy, b.p, a.n) == 0);
    }
    sqlite3_free(copy);
    return st == ST_OK ? SQLITE_OK : fail(w, &err);
}

/* 1 in *yes when the newer may stand for the older in every query for one user or source. */
static int same_owner(work *w, size_t older, size_t newer, int *yes)
{
    int columns = st_conn_columns(w->t->store->conn), rc = SQLITE_OK;
    int from = w->a.source[older] == ST_SOURCE_CORRECTION ? ST_SOURCE_USER : w->a.source[older];
    *yes = w->a.source[newer] == ST_SOURCE_CORRECTION || w->a.source[newer] == from;
    for (int col = ST_COL_USER; col < columns && *yes && rc == SQLITE_OK; col++) {
        rc = same_value(w, older, newer, col, yes);
    }
    return rc;
}

/* 1 in *yes when the newer says what the older said. */
static int replaces(work *w, size_t older, size_t newer, int *yes)
{
    st_error err = {0};
    st_value a, b;
    double distance;
    *yes = 0;
    int owner = 0, rc = same_owner(w, older, newer, &owner);
    if (rc != SQLITE_OK || !owner) {
        return rc;
    }
    rc = sql_rows_distance(w->t, w->view, w->a.row[older], w->a.row[newer], &distance);
    if (rc != SQLITE_OK || distance > w->life.merge_distance) {
        return rc;
    }
    if (st_view_value(w->view, w->a.row[older], ST_COL_CONTENT, &a, &err) != ST_OK) {
        return fail(w, &err);
    }
    char *copy = sqlite3_malloc64(a.n + 1);
    if (!copy) {
        return SQLITE_NOMEM;
    }
    if (a.n) {
        memcpy(copy, a.p, a.n);
    }
    if (st_view_value(w->view, w->a.row[newer], ST_COL_CONTENT, &b, &err) != ST_OK) {
        rc = fail(w, &err);
    } else if (a.p && b.p) {
        *yes = mind_replaces(copy, a.n, b.p, b.n, w->a.source[newer] == ST_SOURCE_CORRECTION);
    }
    sqlite3_free(copy);
    return rc;
}

/* What says a thing anew is no surprise, and yet worth what it is about to take the place of. */
static int rate_repeat(work *w, size_t i)
{
    size_t older = w->npair ? w->pairs[w->npair - 1].older : 0;
    int yes = 0, rc = SQLITE_OK;
    if (w->npair && w->pairs[w->npair - 1].newer == i) {
        rc = replaces(w, older, i, &yes);
    }
    if (yes) {
        w->a.importance[i] = fmax(w->a.importance[i], w->a.importance[older]);
    }
    return rc;
}

static int look_at_new(work *w)
{
    const st_ages *a = &w->a;
    for (size_t i = 0; i < a->n; i++) {
        int rate = w->life.auto_importance && a->importance[i] == SQL_UNRATED;
        int fresh = a->id[i] > w->life.consolidated_id && w->life.merge_distance > 0;
        double surprise;
        if (a->superseded[i] || !(rate || fresh)) {
            continue;
        }
        int rc = look_around(w, i, &surprise);
        rc = rc == SQLITE_OK && rate ? rate_one(w, i, surprise) : rc;
        rc = rc == SQLITE_OK && rate ? rate_repeat(w, i) : rc;
        if (rc != SQLITE_OK) {
            return rc;
        }
    }
    return SQLITE_OK;
}

/* ---------------------------------------------------------------------------------------- moves */

static int set(work *w, size_t i, const int *col, const st_value *value, size_t n)
{
    st_error err;
    st_error_none(&err);
    return w->pass->dry ||
                   st_set(w->t->store->conn, w->view, w->a.row[i], col, value, n, &err) == ST_OK
               ? SQLITE_OK
               : fail(w, &err);
}

static st_value real(double r)
{
    return (st_value){.type = ST_REAL, .r = r};
}

static st_value integer(int64_t i)
{
    return (st_value){.type = ST_INT, .i = i};
}

static st_value tier(int which)
{
    static const char *const names[] = {"working", "episodic", "semantic"};
    return (st_value){.type = ST_TEXT, .p = names[which], .n = strlen(names[which])};
}

static int write_importance(work *w)
{
    static const int col[] = {ST_COL_IMPORTANCE};
    for (size_t i = 0; i < w->a.n; i++) {
        // A row that is promoted gets both at once.
        if (w->rated[i] == 1 && !w->gone[i]) {
            st_value v = real(w->a.importance[i]);
            int rc = set(w, i, col, &v, 1);
            if (rc != SQLITE_OK) {
                return rc;
            }
        }
    }
    return SQLITE_OK;
}

static int evict(work *w, const mind_move *m)
{
    st_error err;
    static const char *const reasons[] = {"capacity of working", "capacity of episodic",
                                          "capacity of semantic"};
    st_error_none(&err);
    w->gone[m->row] = 1;
    return w->pass->dry || st_evict_row(w->t->store->conn, w->view, w->a.row[m->row],
                                        reasons[m->from], w->pass->now, &err) == ST_OK
               ? SQLITE_OK
               : fail(w, &err);
}

static char *put_text(char *at, const char *text)
{
    size_t n = strlen(text);
    memcpy(at, text, n + 1);
    return at + n;
}

static char *put_number(char *at, uint64_t n, int least)
{
    char digits[24];
    int k = 0;
    for (; n || k < least; n /= 10) {
        digits[k++] = (char)('0' + n % 10);
    }
    while (k > 0) {
        *at++ = digits[--k];
    }
    *at = 0;
    return at;
}

// {"from":"working","to":"episodic","why":"importance","importance":0.712,"access_count":3}. Put
// together by hand: half of a pass's rows may be promoted, and a format string takes longer than
// all else that is done for one.
static int promoted(work *w, const mind_move *m)
{
    char json[192], *at = json;
    uint64_t thousandths = (uint64_t)(fmin(fmax(w->a.importance[m->row], 0), 1) * 1000 + 0.5);
    int64_t count = w->a.access_count[m->row];
    at = put_text(at, "{\"from\":\"");
    at = put_text(at, tier(m->from).p);
    at = put_text(at, "\",\"to\":\"");
    at = put_text(at, tier(m->to).p);
    at = put_text(at, "\",\"why\":\"");
    at = put_text(at, mind_why_name(m->why));
    at = put_text(at, "\",\"importance\":");
    at = put_number(at, thousandths / 1000, 1);
    at = put_text(at, ".");
    at = put_number(at, thousandths % 1000, 3);
    at = put_text(at, ",\"access_count\":");
    at = put_number(at, count > 0 ? (uint64_t)count : 0, 1);
    put_text(at, "}");
    return event(w, "promote", m->row, json);
}

static int write_moves(work *w)
{
    static const int col[] = {ST_COL_TIER, ST_COL_IMPORTANCE};
    st_error err = {0};
    if (!w->pass->dry &&
        st_expect(w->t->store->conn, w->moves.promoted, w->moves.evicted, &err) != ST_OK) {
        return fail(w, &err);
    }
    for (size_t i = 0; i < w->moves.n; i++) {
        const mind_move *m = &w->moves.move[i];
        st_value v[2];
        int rc;
        list_move(w, m);
        if (m->to == MIND_EVICTED) {
            rc = evict(w, m);
        } else {
            v[0] = tier(m->to);
            v[1] = real(w->a.importance[m->row]);
            rc = set(w, m->row, col, v, w->rated[m->row] ? 2 : 1);
            w->rated[m->row] *= 2;
            w->a.tier[m->row] = m->to;
            rc = rc == SQLITE_OK ? promoted(w, m) : rc;
        }
        if (rc != SQLITE_OK) {
            return rc;
        }
    }
    return SQLITE_OK;
}

static int move(work *w)
{
    const st_ages *a = &w->a;
    const st_life *l = &w->life;
    mind_rules rules = {
        .capacity = {l->working_capacity, l->episodic_capacity, l->semantic_capacity},
        .half_life = {l->half_life_working, l->half_life_episodic, l->half_life_semantic},
        .promote_importance = l->promote_importance,
        .promote_access = l->promote_access,
        .semantic_access = l->semantic_access,
        .access_weight = l->access_weight};
    mind_rows rows = {.n = a->n,
                      .tier = a->tier,
                      .pinned = a->pinned,
                      .superseded = a->superseded,
                      .importance = a->importance,
                      .access_count = a->access_count,
                      .last_access = a->last_access,
                      .timestamp = a->timestamp};
    mind_consolidate(&rows, &rules, w->pass->now, w->room, &w->moves);
    w->pass->promoted = w->moves.promoted;
    w->pass->evicted = w->moves.evicted;
    memcpy(w->pass->held, w->moves.held, sizeof w->pass->held);
    return write_moves(w);
}

/* -------------------------------------------------------------------------------------- merging */

/* The row that stands for this one now: it follows superseded_by. a->n when none does. */
static int follow(work *w, size_t *i)
{
    st_error err = {0};
    for (int step = 0; step < FOLLOW_MOST; step++) {
        st_value id;
        uint64_t row;
        if (w->by[*i]) {
            *i = (size_t)w->by[*i] - 1;
            continue;
        }
        if (!w->a.superseded[*i]) {
            return SQLITE_OK;
        }
        int st = st_view_value(w->view, w->a.row[*i], ST_COL_SUPERSEDED_BY, &id, &err);
        st = st == ST_OK && id.type == ST_INT ? st_view_find(w->view, id.i, &row, &err) : st;
        if (st != ST_OK && st != ST_NOTFOUND) {
            return fail(w, &err);
        }
        if (st == ST_NOTFOUND || id.type != ST_INT) {
            break;
        }
        *i = index_of(&w->a, row);
    }
    *i = w->a.n;
    return SQLITE_OK;
}

static int supersede(work *w, size_t older, size_t newer, double distance)
{
    static const int old_col[] = {ST_COL_VALID_TO, ST_COL_SUPERSEDED_BY};
    static const int new_col[] = {ST_COL_TIER, ST_COL_IMPORTANCE, ST_COL_ACCESS_COUNT,
                                  ST_COL_VALID_FROM};
    st_ages *a = &w->a;
    st_error err = {0};
    char json[96];
    st_value from, old_v[] = {real(a->timestamp[newer]), integer(a->id[newer])};
    if (st_view_value(w->view, a->row[newer], ST_COL_VALID_FROM, &from, &err) != ST_OK) {
        return fail(w, &err);
    }
    if (w->pass->list) {
        begin_item(w, older, "supersede");
        sqlite3_str_appendf(w->pass->list, ",\"by\":%lld,\"distance\":%.4f}",
                            (long long)a->id[newer], distance);
    }
    w->pass->held[a->tier[newer]]--;
    a->tier[newer] = a->tier[older] > a->tier[newer] ? a->tier[older] : a->tier[newer];
    w->pass->held[a->tier[newer]]++;
    a->importance[newer] = fmax(a->importance[older], a->importance[newer]);
    if (a->access_count[older] <= INT64_MAX - a->access_count[newer]) {
        a->access_count[newer] += a->access_count[older];
    }
    st_value new_v[] = {tier(a->tier[newer]), real(a->importance[newer]),
                        integer(a->access_count[newer]),
                        from.type == ST_REAL ? from : real(a->timestamp[newer])};
    w->by[older] = (int64_t)newer + 1;
    w->pass->merged++;
    int rc = set(w, older, old_col, old_v, 2);
    rc = rc == SQLITE_OK ? set(w, newer, new_col, new_v, 4) : rc;
    sqlite3_snprintf(sizeof json, json, "{\"by\":%lld,\"distance\":%.4f}", (long long)a->id[newer],
                     distance);
    return rc == SQLITE_OK ? event(w, "supersede", older, json) : rc;
}

static int merge(work *w)
{
    for (size_t i = 0; i < w->npair; i++) {
        size_t newer = w->pairs[i].newer, older = w->pairs[i].older;
        int yes = 0, rc = follow(w, &older);
        rc = rc == SQLITE_OK ? follow(w, &newer) : rc;
        if (rc == SQLITE_OK && older < w->a.n && newer < w->a.n &&
            w->a.timestamp[older] > w->a.timestamp[newer]) {
            size_t swap = older;
            older = newer;
            newer = swap;
        }
        if (rc == SQLITE_OK && older < w->a.n && newer < w->a.n && older != newer &&
            !w->gone[older] && !w->gone[newer] && !w->a.pinned[older]) {
            rc = replaces(w, older, newer, &yes);
            rc = rc == SQLITE_OK && yes ? supersede(w, older, newer, w->pairs[i].distance) : rc;
        }
        if (rc != SQLITE_OK) {
            return rc;
        }
    }
    return SQLITE_OK;
}

/* ----------------------------------------------------------------------------------------- pass */

int sql_set_real(sql_table *t, const char *name, double value)
{
    char text[64];
    st_error err = {0};
    sqlite3_snprintf(sizeof text, text, "%.6f", value);
    return st_set_option(t->store->conn, name, text, &err) == ST_OK ? SQLITE_OK
                                                                    : sql_fail_st(t, &err);
}

static int leave_marks(work *w)
{
    int64_t most = w->life.consolidated_id;
    char text[32];
    st_error err = {0};
    for (size_t i = 0; i < w->a.n; i++) {
        most = w->a.id[i] > most ? w->a.id[i] : most;
    }
    if (w->pass->dry) {
        return SQLITE_OK;
    }
    if (most != w->life.consolidated_id) {
        sqlite3_snprintf(sizeof text, text, "%lld", (long long)most);
        if (st_set_option(w->t->store->conn, "consolidated_id", text, &err) != ST_OK) {
            return fail(w, &err);
        }
    }
    return w->pass->now > w->life.last_consolidation
               ? sql_set_real(w->t, "last_consolidation", w->pass->now)
               : SQLITE_OK;
}

static int run(work *w)
{
    st_error err = {0};
    if (st_get_life(w->t->store->conn, &w->life, &err) != ST_OK ||
        st_ages_read(w->view, &w->a, &err) != ST_OK) {
        return fail(w, &err);
    }
    size_t n = w->a.n, bytes = mind_room(n);
    if (!bytes) {
        return sql_fail(w->t, SQLITE_TOOBIG, "%lld rows are too many for one pass", (long long)n);
    }
    w->room = sqlite3_malloc64(bytes);
    w->by = sqlite3_malloc64(n * (sizeof *w->by + 2) + 1);
    if (!w->room || !w->by) {
        return SQLITE_NOMEM;
    }
    memset(w->by, 0, n * (sizeof *w->by + 2));
    w->rated = (uint8_t *)(w->by + n);
    w->gone = w->rated + n;
    int rc = look_at_new(w);
    rc = rc == SQLITE_OK ? move(w) : rc;
    rc = rc == SQLITE_OK ? write_importance(w) : rc;
    rc = rc == SQLITE_OK ? merge(w) : rc;
    return rc == SQLITE_OK ? leave_marks(w) : rc;
}

int sql_pass_run(void *ctx, sql_table *t)
{
    work w = {.pass = ctx, .t = t};
    st_error err = {0};
    int rc = w.pass->dry ? SQLITE_OK : sql_txn_write(t);
    rc = rc == SQLITE_OK && !w.pass->dry ? sql_track_write(t) : rc;
    if (rc == SQLITE_OK && st_view_open(t->store->conn, &w.view, &err) != ST_OK) {
        rc = fail(&w, &err);
    }
    if (rc == SQLITE_OK) {
        rc = run(&w);
        rc = rc == SQLITE_OK && w.pass->list ? sqlite3_str_errcode(w.pass->list) : rc;
        st_ages_free(&w.a);
        sqlite3_free(w.room);
        sqlite3_free(w.by);
        sqlite3_free(w.pairs);
        st_view_close(w.view);
    }
    return rc;
}

void sql_pass_json(const sql_pass *p, sqlite3_str *out)
{
    sqlite3_str_appendf(out,
                        "{\"promoted\":%lld,\"evicted\":%lld,\"merged\":%lld,\"working\":%lld,"
                        "\"episodic\":%lld,\"semantic\":%lld",
                        (long long)p->promoted, (long long)p->evicted, (long long)p->merged,
                        (long long)p->held[MIND_WORKING], (long long)p->held[MIND_EPISODIC],
                        (long long)p->held[MIND_SEMANTIC]);
    if (p->list) {
        const char *list = sqlite3_str_value(p->list);
        sqlite3_str_appendf(out, ",\"moves\":[%s]", list ? list : "");
    }
    sqlite3_str_appendchar(out, 1, '}');
}
