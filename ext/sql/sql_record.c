/*
 * sql_record.c - h5mem_record(t, user_text, assistant_text, session, ts, user_embedding,
 * assistant_embedding [, strategy]): one exchange, saved or not, and why.
 *
 * WHAT IS DECIDED, in this order
 *   empty        there is no text to save
 *   correction   the user puts something right (mind_corrects): it is saved, whatever follows
 *   no correction  strategy 'correction' saves nothing else
 *   trivial      the gate finds small talk: in the user's text or, without one, the assistant's
 *   repeats N    strategy 'shift': of the shift_rows nearest rows some are nearer to the user's
 *                vector than shift_distance (N the nearest), and between them they have each number
 *                and name of the user's text. Without a vector nothing is taken for a repetition
 *   rate: user   rate_refuse is on and rate_<source> rows of a source are there already
 *
 * WHAT IS SAVED  by option record_mode: both texts, a row each (an answer that is small talk is
 *   left out), one of them, or both in one row with a line "---" between and the mean of the two
 *   vectors at unit length. Sources are user or correction, and assistant; channel is conversation;
 *   importance is that of h5mem_importance where auto_importance is on.
 *
 * All of it is one statement of the caller's connection (sql_inside), which writes the rows as an
 * INSERT does: with the alerts of sql_guard.h, what track_access remembers, and the pass that
 * consolidate_every brings. The exchange joins the caller's transaction and is there whole or not
 * at all, also when memory is short. So does the event `record` about it, which has the decision
 * and what led to it, but nothing that was said.
 *
 * ERRORS   each names the table, the file and the value.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <string.h>

#include "sql_guard.h"
#include "sql_life.h"
#include "sql_value.h"

typedef struct speech {
    const char *text; /* NULL: none */
    size_t n;
    sqlite3_value *embedding; /* as given */
    float *vector;            /* of it; NULL: none */
} speech;

typedef struct record {
    sql_table *t;
    speech user, assistant;
    sqlite3_value *session, *time;
    int strategy, correction;
    st_policy policy;
    st_life life;
    sqlite3_int64 saved[2];
    int nsaved;
    int refused;      /* ST_SOURCE_ that has written its share; 0: none */
    char skipped[64]; /* "" nothing was */
    int near;         /* a row was looked at: */
    int64_t near_id;
    double near_distance;
} record;

/* ------------------------------------------------------------------------------------ arguments */

static int is_blank(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)s[i] > ' ') {
            return 0;
        }
    }
    return 1;
}

static int read_speech(sql_table *t, const char *who, sqlite3_value *text, sqlite3_value *embedding,
                       speech *out)
{
    char show[SQL_SHOW];
    if (sqlite3_value_type(text) == SQLITE_BLOB) {
        return sql_fail(t, SQLITE_ERROR, "the %s's text is %s; it takes text", who,
                        sql_show(text, show));
    }
    if (sqlite3_value_type(text) != SQLITE_NULL) {
        out->text = (const char *)sqlite3_value_text(text);
        if (!out->text) {
            return SQLITE_NOMEM;
        }
        out->n = (size_t)sqlite3_value_bytes(text);
        out->text = is_blank(out->text, out->n) ? NULL : out->text;
    }
    out->embedding = embedding;
    return sqlite3_value_type(embedding) == SQLITE_NULL
               ? SQLITE_OK
               : sql_query_vector(t, embedding, &out->vector);
}

static int read_strategy(sql_table *t, sqlite3_value *v, int *out)
{
    static const char *const names[] = {"every", "shift", "correction"};
    char show[SQL_SHOW];
    const char *s = v ? (const char *)sqlite3_value_text(v) : NULL;
    if (!v || sqlite3_value_type(v) == SQLITE_NULL) {
        return SQLITE_OK;
    }
    for (int i = 0; s && i < 3; i++) {
        if (sqlite3_stricmp(s, names[i]) == 0) {
            *out = i;
            return SQLITE_OK;
        }
    }
    return sql_fail(t, SQLITE_ERROR, "strategy is %s; known are every, shift, correction",
                    sql_show(v, show));
}

static int read_args(record *r, int argc, sqlite3_value **argv)
{
    sql_table *t = r->t;
    st_error err = {0};
    if (st_get_policy(t->store->conn, &r->policy, &err) != ST_OK ||
        st_get_life(t->store->conn, &r->life, &err) != ST_OK) {
        return sql_fail_st(t, &err);
    }
    r->session = argv[3];
    r->time = argv[4];
    r->strategy = r->policy.record_strategy;
    int rc = read_strategy(t, argc == 8 ? argv[7] : NULL, &r->strategy);
    rc = rc == SQLITE_OK ? read_speech(t, "user", argv[1], argv[5], &r->user) : rc;
    return rc == SQLITE_OK ? read_speech(t, "assistant", argv[2], argv[6], &r->assistant) : rc;
}

/* ------------------------------------------------------------------------------------- deciding */

static void skip(record *r, const char *why, const char *more)
{
    sqlite3_snprintf(sizeof r->skipped, r->skipped, "%s%s", why, more);
}

/* Looks at one near row. *text gets its content. */
static int look_at(record *r, st_view *v, uint64_t row, sqlite3_str *text, st_error *err)
{
    const st_info *info = st_conn_info(r->t->store->conn);
    st_value id, x;
    int st = st_view_value(v, row, ST_COL_EMBEDDING, &x, err);
    if (st != ST_OK || x.type != ST_BLOB) {
        return st;
    }
    double d = sql_cosine_distance(r->user.vector, x.p, (size_t)info->dim);
    st = st_view_value(v, row, ST_COL_ID, &id, err);
    if (st == ST_OK && (!r->near || d < r->near_distance)) {
        r->near = 1;
        r->near_id = id.i;
        r->near_distance = d;
    }
    if (st == ST_OK && d < r->policy.shift_distance) {
        st = st_view_value(v, row, ST_COL_CONTENT, &x, err);
        if (st == ST_OK && x.type == ST_TEXT) {
            sqlite3_str_append(text, x.p, (int)x.n);
            sqlite3_str_appendchar(text, 1, '\n');
        }
    }
    return st;
}

static int look_around(record *r, st_view *v, sqlite3_str *text)
{
    st_error err = {0};
    st_query q = {0};
    st_cursor *c;
    st_query_defaults(r->t->store->conn, &q);
    q.vector = r->user.vector;
    q.k = r->policy.shift_rows;
    q.hint = (uint64_t)q.k;
    q.context = q.recency = q.importance_weight = q.activation_weight = q.graph_weight = 0;
    q.has_min_score = 0;
    q.dedup = q.mmr = 0;
    int st = st_search(v, &q, &c, &err), more = 0;
    if (st == ST_OK) {
        while (st == ST_OK && (more = st_cursor_next(c, &err)) > 0) {
            st = look_at(r, v, st_cursor_row(c), text, &err);
        }
        st_cursor_close(c);
    }
    return st == ST_OK && more >= 0 ? SQLITE_OK : sql_fail_st(r->t, &err);
}

static int find_repeated(record *r)
{
    st_error err = {0};
    st_view *v;
    if (st_view_open(r->t->store->conn, &v, &err) != ST_OK) {
        return sql_fail_st(r->t, &err);
    }
    sqlite3_str *text = sqlite3_str_new(NULL);
    int rc = look_around(r, v, text);
    st_view_close(v);
    if (rc == SQLITE_OK && r->near && r->near_distance < r->policy.shift_distance &&
        mind_repeats(r->user.text, r->user.n, sqlite3_str_value(text),
                     (size_t)sqlite3_str_length(text))) {
        char id[24];
        sqlite3_snprintf(sizeof id, id, "%lld", (long long)r->near_id);
        skip(r, "repeats ", id);
    }
    rc = rc == SQLITE_OK ? sqlite3_str_errcode(text) : rc;
    sqlite3_free(sqlite3_str_finish(text));
    return rc;
}

static int has_text(const record *r)
{
    switch (r->policy.record_mode) {
    case ST_RECORD_USER:
        return r->user.text != NULL;
    case ST_RECORD_ASSISTANT:
        return r->assistant.text != NULL;
    default:
        return r->user.text || r->assistant.text;
    }
}

static int decide(record *r)
{
    const speech *judged = r->user.text ? &r->user : &r->assistant;
    if (!has_text(r)) {
        skip(r, "empty", "");
        return SQLITE_OK;
    }
    r->correction = r->user.text && mind_corrects(r->user.text, r->user.n);
    if (r->correction) {
        return SQLITE_OK;
    }
    if (r->strategy == ST_RECORD_CORRECTION) {
        skip(r, "no correction", "");
        return SQLITE_OK;
    }
    int why = mind_gate(judged->text, judged->n, MIND_TO_SAVE);
    if (!mind_gate_keeps(why)) {
        skip(r, "trivial: ", mind_gate_name(why));
        return SQLITE_OK;
    }
    return r->strategy == ST_RECORD_SHIFT && r->user.text && r->user.vector ? find_repeated(r)
                                                                            : SQLITE_OK;
}

/* --------------------------------------------------------------------------------------- saving */

static int importance(record *r, const char *text, size_t n, const float *vector, int source,
                      double *out)
{
    st_error err = {0};
    st_view *v;
    sql_nearest near;
    double surprise = NAN;
    *out = 0;
    if (!r->life.auto_importance) {
        return SQLITE_OK;
    }
    if (vector) {
        if (st_view_open(r->t->store->conn, &v, &err) != ST_OK) {
            return sql_fail_st(r->t, &err);
        }
        int rc = sql_nearest_row(r->t, v, vector, NULL, &near);
        st_view_close(v);
        if (rc != SQLITE_OK) {
            return rc;
        }
        surprise = near.found ? near.distance : 1;
    }
    *out = sql_rate(&r->life, text, n, source, surprise);
    return SQLITE_OK;
}

static st_value text_value(const char *text, size_t n)
{
    return (st_value){.type = ST_TEXT, .p = text, .n = n};
}

/* Puts the row, and notes what a guard has to note of it. */
static int put(record *r, st_value *values, sql_tokens *tokens)
{
    sql_table *t = r->t;
    sql_guard guard = {.on = 0};
    st_error err = {0};
    int64_t id = 0;
    int rc = sql_guard_look(t, &guard);
    rc = rc == SQLITE_OK ? sql_row_tokens(t, values, tokens) : rc;
    rc = rc == SQLITE_OK && guard.on ? sql_guard_admit(t, &guard, values) : rc;
    if (rc != SQLITE_OK) {
        return rc;
    }
    st_row row = {values, tokens->bytes, tokens->n};
    if (st_put(t->store->conn, &row, &id, &err) != ST_OK) {
        return sql_fail_st(t, &err);
    }
    r->saved[r->nsaved++] = id;
    return guard.on ? sql_guard_note(t, &guard, id, &values[ST_COL_CONTENT], 0) : SQLITE_OK;
}

/* One row. worth: its importance. */
static int save(record *r, const char *text, size_t n, const float *vector, int source,
                double worth)
{
    const char *name = sql_source_names[source];
    size_t columns = (size_t)sql_table_columns(r->t);
    sql_tokens tokens = {0};
    st_value *v = sqlite3_malloc64(columns * sizeof *v);
    if (!v) {
        return SQLITE_NOMEM;
    }
    memset(v, 0, columns * sizeof *v);
    v[ST_COL_CONTENT] = text_value(text, n);
    if (vector) {
        v[ST_COL_EMBEDDING].type = ST_BLOB;
        v[ST_COL_EMBEDDING].p = vector;
        v[ST_COL_EMBEDDING].n = (size_t)st_conn_info(r->t->store->conn)->dim * sizeof *vector;
    }
    v[ST_COL_CHANNEL] = text_value("conversation", strlen("conversation"));
    v[ST_COL_SOURCE] = text_value(name, strlen(name));
    if (r->life.auto_importance) {
        v[ST_COL_IMPORTANCE] = (st_value){.type = ST_REAL, .r = worth};
    }
    int rc = sql_row_value(r->t, ST_COL_TIMESTAMP, r->time, &v[ST_COL_TIMESTAMP]);
    rc = rc == SQLITE_OK ? sql_row_value(r->t, ST_COL_SESSION, r->session, &v[ST_COL_SESSION]) : rc;
    rc = rc == SQLITE_OK ? put(r, v, &tokens) : rc;
    sql_tokens_free(&tokens);
    sqlite3_free(v);
    return rc;
}

/* The mean direction of the two vectors, or the one that is there. By sqlite3_malloc. */
static int mean_vector(const record *r, float **out)
{
    size_t dim = (size_t)st_conn_info(r->t->store->conn)->dim;
    const float *a = r->user.vector ? r->user.vector : r->assistant.vector;
    const float *b = r->assistant.vector ? r->assistant.vector : a;
    double aa = 0, bb = 0, cc = 0;
    *out = NULL;
    if (!a) {
        return SQLITE_OK;
    }
    float *x = sqlite3_malloc64(dim * sizeof *x + 1);
    if (!x) {
        return SQLITE_NOMEM;
    }
    for (size_t i = 0; i < dim; i++) {
        aa += (double)a[i] * a[i];
        bb += (double)b[i] * b[i];
    }
    aa = aa > 0 ? sqrt(aa) : 1;
    bb = bb > 0 ? sqrt(bb) : 1;
    for (size_t i = 0; i < dim; i++) {
        double m = a[i] / aa + b[i] / bb;
        cc += m * m;
    }
    cc = cc > 0 ? sqrt(cc) : 1;
    for (size_t i = 0; i < dim; i++) {
        x[i] = a == b ? a[i] : (float)((a[i] / aa + b[i] / bb) / cc);
    }
    *out = x;
    return SQLITE_OK;
}

static int save_combined(record *r, int source)
{
    const speech *u = &r->user, *a = &r->assistant;
    float *vector;
    double worth = 0;
    int rc = mean_vector(r, &vector);
    if (rc == SQLITE_OK) {
        sqlite3_str *s = sqlite3_str_new(NULL);
        sqlite3_str_append(s, u->text ? u->text : "", (int)u->n * (u->text != NULL));
        sqlite3_str_appendall(s, u->text && a->text ? "\n---\n" : "");
        sqlite3_str_append(s, a->text ? a->text : "", (int)a->n * (a->text != NULL));
        size_t n = (size_t)sqlite3_str_length(s);
        char *text = sqlite3_str_finish(s);
        rc = text ? importance(r, text, n, vector, source, &worth) : SQLITE_NOMEM;
        rc = rc == SQLITE_OK ? save(r, text, n, vector, source, worth) : rc;
        sqlite3_free(text);
    }
    sqlite3_free(vector);
    return rc;
}

/* Which sources mode and texts make: bits by ST_SOURCE_. */
static int sources_of(const record *r)
{
    int mode = r->policy.record_mode, bits = 0;
    int user = 1 << (r->correction ? ST_SOURCE_CORRECTION : ST_SOURCE_USER);
    if (mode == ST_RECORD_COMBINED) {
        return r->user.text ? user : 1 << ST_SOURCE_ASSISTANT;
    }
    bits |= r->user.text && mode != ST_RECORD_ASSISTANT ? user : 0;
    return bits | (r->assistant.text && mode != ST_RECORD_USER ? 1 << ST_SOURCE_ASSISTANT : 0);
}

/* Before anything is written: does a source have its share already? */
static int look_at_rates(record *r)
{
    st_value when;
    int bits = sources_of(r), rc, full = 0;
    if (!r->policy.rate_refuse) {
        return SQLITE_OK;
    }
    rc = sql_row_value(r->t, ST_COL_TIMESTAMP, r->time, &when);
    double time = when.type == ST_REAL ? when.r : when.type == ST_INT ? (double)when.i : sql_now();
    for (int i = 1; i < 7 && rc == SQLITE_OK && !full; i++) {
        if (bits & 1 << i) {
            rc = sql_guard_is_full(r->t, &r->policy, i, time, &full);
            r->refused = full ? i : 0;
        }
    }
    if (full) {
        skip(r, "rate: ", sql_source_names[r->refused]);
    }
    return rc;
}

static int save_all(record *r)
{
    const speech *u = &r->user, *a = &r->assistant;
    int mode = r->policy.record_mode, rc = SQLITE_OK;
    int source = r->correction ? ST_SOURCE_CORRECTION : ST_SOURCE_USER;
    if (mode == ST_RECORD_COMBINED) {
        return save_combined(r, u->text ? source : ST_SOURCE_ASSISTANT);
    }
    int user = u->text && mode != ST_RECORD_ASSISTANT;
    int assistant = a->text && mode != ST_RECORD_USER &&
                    (mode == ST_RECORD_ASSISTANT ||
                     mind_gate_keeps(mind_gate(a->text, a->n, MIND_TO_SAVE)));
    double worth[2] = {0, 0};
    // both before a row is there: a look at the store after a write costs more
    if (user) {
        rc = importance(r, u->text, u->n, u->vector, source, &worth[0]);
    }
    if (rc == SQLITE_OK && assistant) {
        rc = importance(r, a->text, a->n, a->vector, ST_SOURCE_ASSISTANT, &worth[1]);
    }
    if (rc == SQLITE_OK && user) {
        rc = save(r, u->text, u->n, u->vector, source, worth[0]);
    }
    if (rc == SQLITE_OK && assistant) {
        rc = save(r, a->text, a->n, a->vector, ST_SOURCE_ASSISTANT, worth[1]);
    }
    return rc;
}

/* ------------------------------------------------------------------------------------- together */

static char *result_json(const record *r, int detailed)
{
    static const char *const strategies[] = {"every", "shift", "correction"};
    static const char *const modes[] = {"both", "user", "assistant", "combined"};
    sqlite3_str *s = sqlite3_str_new(NULL);
    sqlite3_str_appendall(s, "{\"saved\":[");
    for (int i = 0; i < r->nsaved; i++) {
        sqlite3_str_appendf(s, "%s%lld", i ? "," : "", (long long)r->saved[i]);
    }
    sqlite3_str_appendf(s, "],\"skipped\":%s%s%s", r->skipped[0] ? "\"" : "",
                        r->skipped[0] ? r->skipped : "null", r->skipped[0] ? "\"" : "");
    if (detailed) {
        sqlite3_str_appendf(s, ",\"strategy\":\"%s\",\"mode\":\"%s\",\"correction\":%s",
                            strategies[r->strategy], modes[r->policy.record_mode],
                            r->correction ? "true" : "false");
    }
    if (detailed && r->near) {
        sqlite3_str_appendf(s, ",\"nearest\":%lld,\"distance\":%.4f", (long long)r->near_id,
                            r->near_distance);
    }
    sqlite3_str_appendchar(s, 1, '}');
    return sqlite3_str_finish(s);
}

static int note_decision(const record *r)
{
    sql_table *t = r->t;
    st_error err = {0};
    int64_t id = r->nsaved ? r->saved[0] : 0;
    int rc = r->refused ? sql_guard_note_refused(t, &r->policy, r->refused, 1) : SQLITE_OK;
    char *json = rc == SQLITE_OK ? result_json(r, 1) : NULL;
    if (rc == SQLITE_OK && !json) {
        rc = SQLITE_NOMEM;
    }
    if (rc == SQLITE_OK && st_event(t->store->conn, sql_now(), "record", r->nsaved ? &id : NULL,
                                    json, &err) != ST_OK) {
        rc = sql_fail_st(t, &err);
    }
    sqlite3_free(json);
    return rc;
}

/* The pass that the last row may bring. */
static int age(sql_table *t, const sql_watch *w, int64_t id)
{
    sql_pass p = {.now = sql_now()};
    return sql_life_due(w, id) ? sql_pass_run(&p, t) : SQLITE_OK;
}

/* Inside xUpdate: what was decided, and the events about it. */
static int write_down(void *ctx, sql_table *t)
{
    record *r = ctx;
    sql_watch watch = {0};
    int rc = sql_txn_write(t);
    if (rc == SQLITE_OK && !r->skipped[0]) {
        rc = sql_track_write(t);
        rc = rc == SQLITE_OK ? sql_life_watch(t, &watch) : rc;
        rc = rc == SQLITE_OK ? save_all(r) : rc;
    }
    rc = rc == SQLITE_OK ? note_decision(r) : rc;
    return rc == SQLITE_OK && r->nsaved ? age(t, &watch, r->saved[r->nsaved - 1]) : rc;
}

void sql_record_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    record r = {.t = sql_fn_table(ctx, argv[0])};
    if (!r.t) {
        return;
    }
    int rc = read_args(&r, argc, argv);
    rc = rc == SQLITE_OK ? decide(&r) : rc;
    rc = rc == SQLITE_OK && !r.skipped[0] ? look_at_rates(&r) : rc;
    if (rc != SQLITE_OK) {
        sql_fail_fn_table(ctx, r.t, rc);
    } else {
        rc = sql_inside(r.t, write_down, &r);
        char *json = rc == SQLITE_OK ? result_json(&r, 0) : NULL;
        if (json) {
            sqlite3_result_text(ctx, json, -1, sqlite3_free);
        } else if (rc == SQLITE_OK) {
            sqlite3_result_error_nomem(ctx);
        } else {
            sql_fail_fn_db(ctx, r.t->db->db, rc);
        }
    }
    sqlite3_free(r.user.vector);
    sqlite3_free(r.assistant.vector);
}
