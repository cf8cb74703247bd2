/*
 * t_st_fault.c - every request for memory and every operation on a file fails in turn
 *
 * Each action runs on a copy of one small store with rows in the file, in the log, changed and
 * deleted. The k-th request fails, k = 1, 2, 3, ... until the action runs through. After a failure:
 * a text says what; rows are as before; the same action without failures works; another opening
 * shows what it should; no memory is left.
 *
 * SPDX-License-Identifier: MIT
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "t_alloc.h"
#include "t_disk.h"
#include "t_model.h"
#include "vec.h"

enum { BASE_ROWS = 24, LOG_ROWS = 8, NEW_ID = 900 };

static t_alloc memory;

/* A store to copy, and what it shows. */
static t_dir template_dir;
static t_table *template_table;
static t_mrow *new_row;

typedef struct run {
    t_dir d;
    t_db db;
    t_host h, h2;
    st_conn *c;
    t_table *now; /* what c shows */
} run;

typedef struct action {
    const char *name;
    int txn;                            /* 1: inside an open transaction */
    int (*go)(run *r, st_error *err);   /* the action */
    void (*effect)(run *r, t_table *t); /* what it does to the rows; NULL: nothing */
    int may_pass;                       /* 1: a failure may stay without consequence */
} action;

/* --------------------------------------------------------------------------------- the template */

static void commit_row(st_conn *c, t_host *h, t_mrow *m)
{
    st_row row = t_mrow_row(m);
    st_error err = {0, ""};
    int64_t id;
    t_begin(c, h);
    t_ok(&err, st_put(c, &row, &id, &err));
    t_commit(c, h);
    t_table_set(template_table, m);
}

static void change_small(t_table *t, int64_t id, double importance)
{
    t_mrow *old = t_table_find(t, id), *other = t_mrow_merge(old, old, (uint8_t[T_NCOL]){0}, T_DIM);
    uint8_t changed[T_NCOL] = {0};
    changed[ST_COL_IMPORTANCE] = 1;
    other->given[ST_COL_IMPORTANCE] = t_real(importance);
    t_table_set(t, t_mrow_merge(old, other, changed, T_DIM));
    t_mrow_unref(other);
}

static void evict(st_conn *c, t_table *t, int64_t id)
{
    st_error err = {0, ""};
    t_ok(&err, st_evict(c, id, "test", 1, &err));
    t_table_evict(t, id, t_last_event(c));
}

/* Takes the record over. */
static void put_record(st_conn *c, t_table *t, t_record *r)
{
    st_error err = {0, ""};
    t_ok(&err, st_side_put(c, r->side, r->v, NULL, &err));
    t_record_set(t, r);
}

static int make_template(void **state)
{
    t_db db = t_db_new(1);
    t_host h;
    t_rng r = {11};
    const t_spec spec = {T_DIM, "zstd:3", "8388608", "off", NULL};
    (void)state;
    template_dir = t_dir_new();
    template_table = t_table_new(T_DIM, VEC_COSINE);
    t_host_init(&h, &db);
    st_conn *c = t_open_spec(&template_dir, &h, &spec);
    for (int i = 0; i < BASE_ROWS; i++)
        commit_row(c, &h, t_mrow_random(&r, T_DIM, i == 3 ? 100 : i));
    t_begin(c, &h);
    for (int i = 0; i < 4; i++)
        for (int side = 0; side < ST_SIDES; side++)
            put_record(c, template_table, t_record_random(&r, side, i + 1));
    evict(c, template_table, 12);
    t_commit(c, &h);
    t_flush(c);
    for (int i = 0; i < LOG_ROWS; i++)
        commit_row(c, &h, t_mrow_random(&r, T_DIM, BASE_ROWS + i));
    t_begin(c, &h);
    for (int64_t id = 4; id < BASE_ROWS + LOG_ROWS; id += 20) {
        t_set_importance(c, id, 0.125);
        change_small(template_table, id, 0.125);
        t_delete(c, id + 1);
        t_table_remove(template_table, id + 1);
    }
    evict(c, template_table, BASE_ROWS + 5);
    for (int side = 0; side < ST_SIDES; side++)
        put_record(c, template_table, t_record_random(&r, side, 9));
    t_commit(c, &h);
    t_dir copy = t_dir_new();
    t_dir_copy(&template_dir, &copy);
    st_close(c); // would fold the log
    t_dir_copy(&copy, &template_dir);
    t_dir_remove(&copy);
    new_row = t_mrow_random(&r, T_DIM, NEW_ID);
    return 0;
}

static int drop_template(void **state)
{
    (void)state;
    t_dir_remove(&template_dir);
    t_table_free(template_table);
    t_mrow_unref(new_row);
    return 0;
}

/* -------------------------------------------------------------------------------------- actions */

static int go_put(run *r, st_error *err)
{
    st_row row = t_mrow_row(new_row);
    int64_t id;
    return st_put(r->c, &row, &id, err);
}

static void effect_put(run *r, t_table *t)
{
    (void)r;
    new_row->refs++;
    t_table_set(t, new_row);
}

/* Updates row id with the new row's values in the columns given, ended by -1. */
static int update(run *r, int64_t id, const int *cols, st_error *err)
{
    uint8_t changed[T_NCOL] = {0};
    const t_mrow *old = t_table_find(r->now, id);
    t_mrow *merged;
    int rc;
    for (; *cols >= 0; cols++)
        changed[*cols] = 1;
    merged = t_mrow_merge(old, new_row, changed, T_DIM);
    st_row row = {new_row->given, merged->tokens, merged->ntokens};
    rc = st_update(r->c, id, &row, changed, err);
    t_mrow_unref(merged);
    return rc;
}

static void effect_update(t_table *t, int64_t id, const int *cols)
{
    uint8_t changed[T_NCOL] = {0};
    t_mrow *merged;
    for (; *cols >= 0; cols++)
        changed[*cols] = 1;
    merged = t_mrow_merge(t_table_find(t, id), new_row, changed, T_DIM);
    if (changed[ST_COL_ID])
        t_table_remove(t, id);
    t_table_set(t, merged);
}

static const int small_cols[] = {ST_COL_IMPORTANCE, T_COL_PRIORITY, ST_COL_TIER, -1};
static const int heavy_cols[] = {ST_COL_CONTENT, ST_COL_EMBEDDING, ST_COL_PINNED, -1};
static const int id_cols[] = {ST_COL_ID, -1};

static int go_small_base(run *r, st_error *err)
{
    return update(r, 2, small_cols, err);
}

static void effect_small_base(run *r, t_table *t)
{
    (void)r;
    effect_update(t, 2, small_cols);
}

static int go_small_log(run *r, st_error *err)
{
    return update(r, BASE_ROWS + 2, small_cols, err);
}

static void effect_small_log(run *r, t_table *t)
{
    (void)r;
    effect_update(t, BASE_ROWS + 2, small_cols);
}

static int go_heavy_base(run *r, st_error *err)
{
    return update(r, 4, heavy_cols, err);
}

static void effect_heavy_base(run *r, t_table *t)
{
    (void)r;
    effect_update(t, 4, heavy_cols);
}

static int go_heavy_log(run *r, st_error *err)
{
    return update(r, BASE_ROWS + 3, heavy_cols, err);
}

static void effect_heavy_log(run *r, t_table *t)
{
    (void)r;
    effect_update(t, BASE_ROWS + 3, heavy_cols);
}

static int go_move(run *r, st_error *err)
{
    return update(r, 6, id_cols, err);
}

static void effect_move(run *r, t_table *t)
{
    (void)r;
    effect_update(t, 6, id_cols);
}

static int go_delete(run *r, st_error *err)
{
    return st_delete(r->c, 7, err);
}

static void effect_delete(run *r, t_table *t)
{
    (void)r;
    t_table_remove(t, 7);
}

/* One of the file, one of the log; and one that was is given up. */
static int go_evict(run *r, st_error *err)
{
    int rc = st_evict(r->c, 8, "test", 1, err);
    rc = rc ? rc : st_evict(r->c, BASE_ROWS + 6, "test", 1, err);
    return rc ? rc : st_evicted_drop(r->c, 12, err);
}

static void effect_evict(run *r, t_table *t)
{
    (void)r;
    t_table_evict(t, 8, 10);
    t_table_evict(t, BASE_ROWS + 6, 11);
    t_table_forget(t, 12);
}

/* Records: a new one, one of the file and one of the log changed, one deleted. */
static void records(t_record *r[3])
{
    t_rng rng = {77};
    r[0] = t_record_random(&rng, ST_SESSIONS, 50);
    r[1] = t_record_random(&rng, ST_SESSIONS, 2);
    r[2] = t_record_random(&rng, ST_EVENTS, 9);
}

static int go_records(run *r, st_error *err)
{
    t_record *new[3];
    st_value three = t_int(3);
    int rc;
    records(new);
    rc = st_side_put(r->c, ST_SESSIONS, new[0]->v, NULL, err);
    rc = rc ? rc : st_side_set(r->c, ST_SESSIONS, &new[1]->v[0], new[1]->v, err);
    rc = rc ? rc : st_side_set(r->c, ST_EVENTS, &new[2]->v[0], new[2]->v, err);
    rc = rc ? rc : st_side_delete(r->c, ST_EVENTS, &three, err);
    for (int i = 0; i < 3; i++)
        t_record_unref(new[i]);
    return rc;
}

static void effect_records(run *r, t_table *t)
{
    t_record *new[3];
    st_value three = t_int(3);
    (void)r;
    records(new);
    for (int i = 0; i < 3; i++)
        t_record_set(t, new[i]);
    t_record_remove(t, ST_EVENTS, &three);
}

static int whole(run *r, int (*go)(run *, st_error *), st_error *err)
{
    int rc = t_begin_rc(r->c, &r->h, err);
    rc = rc ? rc : go(r, err);
    if (rc) {
        t_rollback(r->c, &r->h);
        return rc;
    }
    return t_commit_rc(r->c, &r->h, err);
}

static int go_records_whole(run *r, st_error *err)
{
    return whole(r, go_records, err);
}

static int go_evict_whole(run *r, st_error *err)
{
    return whole(r, go_evict, err);
}

static void effect_compact(run *r, t_table *t)
{
    (void)r;
    t_table_compact(t);
}

static int go_option(run *r, st_error *err)
{
    return st_set_option(r->c, "agent", "somebody", err);
}

static int go_mark(run *r, st_error *err)
{
    return st_savepoint(r->c, 5, err);
}

/* Marks, changes and goes back: the rows stay as they are. */
static int go_undo(run *r, st_error *err)
{
    int rc = st_savepoint(r->c, 0, err);
    if (!rc) {
        rc = go_put(r, err);
        rc = rc ? rc : go_heavy_base(r, err);
        rc = rc ? rc : go_delete(r, err);
        st_rollback_to(r->c, 0);
        st_release(r->c, 0);
    }
    return rc;
}

static int go_prepare(run *r, st_error *err)
{
    int64_t txid;
    uint8_t owner[16];
    int rc = st_prepare(r->c, 0, &txid, owner, err);
    if (!rc)
        r->h.own = txid;
    return rc;
}

/* A whole transaction; on failure it is rolled back. */
static int go_transaction(run *r, st_error *err)
{
    int rc = t_begin_rc(r->c, &r->h, err);
    if (rc)
        return rc;
    rc = go_put(r, err);
    rc = rc ? rc : go_small_base(r, err);
    rc = rc ? rc : go_small_log(r, err);
    rc = rc ? rc : go_delete(r, err);
    if (rc) {
        t_rollback(r->c, &r->h);
        return rc;
    }
    return t_commit_rc(r->c, &r->h, err);
}

static void effect_transaction(run *r, t_table *t)
{
    effect_put(r, t);
    effect_small_base(r, t);
    effect_small_log(r, t);
    effect_delete(r, t);
}

/* The same with so low a limit that the commit flushes (start sets it). */
static int go_flushing(run *r, st_error *err)
{
    return go_transaction(r, err);
}

static int go_flush(run *r, st_error *err)
{
    uint64_t rows;
    return st_flush(r->c, 0, &rows, err);
}

/* Reads everything and asks everything. */
static int go_read(run *r, st_error *err)
{
    static const float vec[T_DIM] = {1, 2, 3};
    uint8_t tokens[64];
    st_value list[2] = {t_text("w1 w2"), t_text("chat")};
    st_term terms[2] = {{.col = ST_COL_CHANNEL, .op = ST_IN, .list = list, .nlist = 2},
                        {.col = ST_COL_IMPORTANCE, .op = ST_GE, .value = t_real(0.125)}};
    st_query q = {.terms = terms,
                  .nterm = 2,
                  .tokens = tokens,
                  .ntokens = t_tokens("w0 w1", 5, tokens),
                  .k = -1,
                  .vector_weight = 1,
                  .text_weight = 1,
                  .rrf_k = 60};
    st_view *v;
    uint64_t row;
    int rc = st_view_open(r->c, &v, err);
    t_table *t = NULL;
    if (rc)
        return rc;
    t = t_table_of(v, T_DIM, VEC_COSINE, err);
    rc = t ? ST_OK : err->code;
    if (!rc && !t_table_same(t, r->now))
        fail_msg("other rows were read");
    for (int kind = 0; kind < 8 && !rc; kind++) {
        st_cursor *cur = NULL;
        q.vector = kind & 1 ? vec : NULL;
        q.has_text = kind >> 1 & 1;
        q.order = kind & 4 ? (kind & 3 ? ST_ORDER_WORST : ST_ORDER_ID_DESC) : ST_ORDER_BEST;
        rc = st_search(v, &q, &cur, err);
        while (!rc && (rc = st_cursor_next(cur, err)) > 0)
            rc = ST_OK;
        st_cursor_close(cur);
    }
    rc = rc ? rc : st_view_find(v, 100, &row, err);
    t_table_free(t);
    st_view_close(v);
    return rc;
}

static int go_stats(run *r, st_error *err)
{
    st_stats stats;
    char buf[64];
    int rc = st_conn_stats(r->c, &stats, err);
    return rc ? rc : st_get_option(r->c, "autoflush", buf, sizeof buf, err);
}

static int go_compact(run *r, st_error *err)
{
    uint64_t saved;
    return st_compact(r->c, 0, &saved, err);
}

static int go_verify(run *r, st_error *err)
{
    return t_verify_rc(r->c, err);
}

/* A copy beside the store; a failure leaves none. */
static int go_backup(run *r, st_error *err)
{
    char path[100], log[110];
    uint64_t bytes;
    size_t n;
    snprintf(path, sizeof path, "%s/copy.h5", r->d.path);
    snprintf(log, sizeof log, "%s-wal", path);
    unlink(path);
    unlink(log);
    int rc = st_backup(r->c, path, &bytes, err);
    unsigned char *file = t_read_file(path, &n);
    assert_true((file != NULL) == (rc == ST_OK));
    free(file);
    return rc;
}

static const action actions[] = {
    {"put", 1, go_put, effect_put, 0},
    {"update in place in the file", 1, go_small_base, effect_small_base, 0},
    {"update in place in the log", 1, go_small_log, effect_small_log, 0},
    {"update of a row of the file", 1, go_heavy_base, effect_heavy_base, 0},
    {"update of a row of the log", 1, go_heavy_log, effect_heavy_log, 0},
    {"update of an id", 1, go_move, effect_move, 0},
    {"delete", 1, go_delete, effect_delete, 0},
    {"option", 1, go_option, NULL, 0},
    {"savepoint", 1, go_mark, NULL, 0},
    {"changes undone", 1, go_undo, NULL, 0},
    {"prepare", 1, go_prepare, NULL, 0},
    {"reading inside a transaction", 1, go_read, NULL, 0},
    {"transaction", 0, go_transaction, effect_transaction, 1},
    {"transaction that evicts", 0, go_evict_whole, effect_evict, 1},
    {"transaction on records", 0, go_records_whole, effect_records, 1},
    {"transaction that flushes", 0, go_flushing, effect_transaction, 1},
    {"flush", 0, go_flush, NULL, 1},
    {"compact", 0, go_compact, effect_compact, 1},
    {"verify", 0, go_verify, NULL, 0},
    {"backup", 0, go_backup, NULL, 0},
    {"reading", 0, go_read, NULL, 0},
    {"statistics", 0, go_stats, NULL, 0},
};

/* ---------------------------------------------------------------------------------------- a run */

/* Changes that an open transaction has before the action. */
static void some_changes(run *r)
{
    t_begin(r->c, &r->h);
    t_set_importance(r->c, 9, 0.75);
    change_small(r->now, 9, 0.75);
    t_delete(r->c, 10);
    t_table_remove(r->now, 10);
}

static void start(run *r, const action *a)
{
    t_dir_copy(&template_dir, &r->d);
    r->db = t_db_new(1);
    r->db.txid = 1000; // what the template's commits are below
    t_host_init(&r->h, &r->db);
    t_host_init(&r->h2, &r->db);
    r->c = t_open(&r->d, &r->h);
    r->now = t_table_copy(template_table);
    if (a->txn)
        some_changes(r);
    if (a->go == go_flushing) {
        st_error err = {0, ""};
        t_begin(r->c, &r->h);
        t_ok(&err, st_set_option(r->c, "autoflush", "4096", &err));
        t_commit(r->c, &r->h);
    }
}

static void check(st_conn *c, const t_table *t)
{
    t_rng rng = {5};
    t_check_conn(c, t, &rng, 4);
}

/* Everything that must hold after a try that gave rc. */
static void finish(run *r, const action *a, int rc)
{
    st_error err = {0, ""};
    t_table *after = t_table_copy(r->now);
    if (a->effect)
        a->effect(r, after);
    if (rc) {
        check(r->c, r->now);
        t_ok(&err, a->go(r, &err));
    }
    check(r->c, after);
    if (a->txn) {
        t_ok(&err, t_commit_rc(r->c, &r->h, &err));
        check(r->c, after);
    }
    st_conn *other = t_open(&r->d, &r->h2);
    check(other, after);
    st_close(r->c);
    check(other, after);
    st_close(other);
    other = t_open(&r->d, &r->h2);
    check(other, after);
    st_close(other);
    t_table_free(after);
    t_table_free(r->now);
}

/* One try with failure k; 1 while k was reached. what: "memory" or "operation". */
static int try_one(const action *a, const t_dir *d, long k, int disk_mode)
{
    run r;
    st_error err = {0, ""};
    int rc, reached;
    long live;
    r.d = *d;
    if (disk_mode >= 0)
        t_disk_on();
    live = memory.live;
    start(&r, a);
    memory.count = 0;
    t_disk.count = 0;
    t_disk.mode = disk_mode;
    *(disk_mode < 0 ? &memory.fail_at : &t_disk.fail_at) = k;
    rc = a->go(&r, &err);
    reached = (disk_mode < 0 ? memory.count : t_disk.count) >= k;
    memory.fail_at = t_disk.fail_at = 0;
    if (rc && (!err.text[0] || err.code != rc))
        fail_msg("%s, failure %ld: code %d, text '%s' of code %d", a->name, k, rc, err.text,
                 err.code);
    if (rc && !reached)
        fail_msg("%s: %s", a->name, err.text);
    if (!rc && reached && !a->may_pass && disk_mode < 0)
        fail_msg("%s: failure %ld stayed without consequence", a->name, k);
    if (disk_mode < 0 && rc && rc != ST_NOMEM)
        fail_msg("%s, failure %ld: code %d (%s)", a->name, k, rc, err.text);
    finish(&r, a, rc);
    if (disk_mode >= 0)
        t_disk_off();
    if (memory.live != live)
        fail_msg("%s, failure %ld: %ld blocks are left", a->name, k, memory.live - live);
    return reached;
}

static void all_actions(int disk_mode)
{
    t_dir d = t_dir_new();
    const char *only = getenv("T_ACTION");
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) {
        long k = 1;
        if (only && strcmp(only, actions[i].name))
            continue;
        for (; try_one(&actions[i], &d, k, disk_mode); k++) {
        }
        print_message("# %s: %ld failures\n", actions[i].name, k - 1);
    }
    t_dir_remove(&d);
}

static void memory_fails(void **state)
{
    (void)state;
    all_actions(-1);
}

static void an_operation_fails(void **state)
{
    (void)state;
    all_actions(T_DISK_FAIL);
}

static void an_operation_stops_half_way(void **state)
{
    (void)state;
    all_actions(T_DISK_SHORT);
}

static void the_disk_is_full(void **state)
{
    (void)state;
    all_actions(T_DISK_FULL);
}

/* ------------------------------------------------------------------------- opening and creating */

/* Opens (from the template) or creates, reads, closes. */
static int open_and_read(const t_dir *d, t_host *h, const t_table *want, st_error *err)
{
    st_conn *c;
    int rc = t_try_open(d, h, NULL, &c, err);
    run r = {.c = c, .now = (t_table *)(uintptr_t)want};
    if (rc)
        return rc;
    rc = go_read(&r, err);
    // An empty store has no row 100.
    rc = rc == ST_NOTFOUND && !want->n ? ST_OK : rc;
    st_close(c);
    return rc;
}

/* A store that could not be made, or not opened once made, leaves either nothing or a whole store.
** */
static void nothing_left(const t_dir *d, long k)
{
    int n = 0;
    DIR *dir = opendir(d->path);
    struct dirent *e;
    while ((e = readdir(dir)))
        n += e->d_name[0] != '.';
    closedir(dir);
    if (n != 0 && n != 2)
        fail_msg("failure %ld leaves %d files", k, n);
}

static void opening(int create, int disk_mode)
{
    t_dir d = t_dir_new();
    t_db db = t_db_new(1);
    t_host h;
    t_table *empty = t_table_new(T_DIM, VEC_COSINE);
    const t_table *want = create ? empty : template_table;
    int reached = 1;
    t_host_init(&h, &db);
    for (long k = 1; reached; k++) {
        st_error err = {0, ""};
        long live = memory.live;
        int rc;
        if (create)
            t_dir_copy(&(t_dir){"", "none", "none"}, &d);
        else
            t_dir_copy(&template_dir, &d);
        if (disk_mode >= 0)
            t_disk_on();
        memory.count = 0;
        t_disk.mode = disk_mode;
        *(disk_mode < 0 ? &memory.fail_at : &t_disk.fail_at) = k;
        rc = open_and_read(&d, &h, want, &err);
        reached = (disk_mode < 0 ? memory.count : t_disk.count) >= k;
        memory.fail_at = t_disk.fail_at = 0;
        if (rc && (err.code != rc || !err.text[0] || !reached))
            fail_msg("failure %ld: code %d '%s' of %d", k, rc, err.text, err.code);
        if (memory.live != live)
            fail_msg("failure %ld: %ld blocks are left", k, memory.live - live);
        if (create && rc)
            nothing_left(&d, k);
        err = (st_error){0, ""};
        rc = open_and_read(&d, &h, want, &err);
        if (rc)
            fail_msg("after failure %ld: %s", k, err.text);
        if (disk_mode >= 0)
            t_disk_off();
    }
    t_table_free(empty);
    t_dir_remove(&d);
}

static void opening_a_store(void **state)
{
    (void)state;
    for (int mode = -1; mode <= T_DISK_FULL; mode++)
        opening(0, mode);
}

static void creating_a_store(void **state)
{
    (void)state;
    for (int mode = -1; mode <= T_DISK_FULL; mode++)
        opening(1, mode);
}

/* The log grows in steps where each commit is synced; with room for the commits and for no step
** they succeed, and the room behind them is not taken. */
static void room_for_a_commit_and_no_more(void **state)
{
    (void)state;
    const t_spec spec = {T_DIM, NULL, "8388608", "full", NULL};
    t_dir d = t_dir_new();
    t_db db = t_db_new(1);
    t_host h;
    size_t n = 0;
    t_host_init(&h, &db);
    t_disk_on();
    st_conn *c = t_open_spec(&d, &h, &spec);
    t_disk.room = 20 << 10;
    for (int64_t id = 1; id <= 3; id++) {
        t_begin(c, &h);
        t_put(c, id, "some words");
        t_commit(c, &h);
        free(t_read_file(d.log, &n));
        assert_true(n < 8 << 10);
    }
    t_disk.room = 0;
    t_begin(c, &h);
    t_put(c, 4, "some words");
    t_commit(c, &h);
    free(t_read_file(d.log, &n));
    assert_int_equal(n, 256 << 10);
    t_assert_ids(c, "1 2 3 4");
    st_close(c);
    t_disk_off();
    t_dir_remove(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_fails),
        cmocka_unit_test(an_operation_fails),
        cmocka_unit_test(an_operation_stops_half_way),
        cmocka_unit_test(the_disk_is_full),
        cmocka_unit_test(opening_a_store),
        cmocka_unit_test(creating_a_store),
        cmocka_unit_test(room_for_a_commit_and_no_more),
    };
    const h5_allocator h5 = {t_alloc_get, t_alloc_resize, t_alloc_release, &memory};
    const vec_allocator vec = {t_alloc_get, t_alloc_resize, t_alloc_release, &memory};
    vec_init();
    h5_set_allocator(&h5);
    vec_set_allocator(&vec);
    return cmocka_run_group_tests(tests, make_template, drop_template);
}
