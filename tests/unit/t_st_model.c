/*
 * t_st_model.c - random operations on a store by several connections and processes, against a plain
 * table
 *
 * Five connections of four hosts (two share one; one has no file) and workers in processes of their
 * own put, change, move and delete rows, set and roll back to marks, commit in both phases, roll
 * back, flush, die between the phases, close and open again; views stay open meanwhile. Every view
 * must go on showing the table it was opened on, to the last value and search result.
 *
 * T_STEPS (default 1500 a configuration) and T_SEED say how long and from where; with T_TRACE each
 * step is shown.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "t_model.h"
#include "vec.h"

enum { CONNS = 5, VIEWS = 3, MARKS = 6, WORKER_DB = 2, MEMORY_DB = 3, DBS = 4, ROWS_MAX = 250 };
#define NO_ROW (INT64_MAX - 1) /* an id that no row has */
static const int db_of[CONNS] = {0, 0, 1, WORKER_DB, MEMORY_DB};

#define TRACE(...)                                                                                 \
    do {                                                                                           \
        if (trace)                                                                                 \
            printf("# " __VA_ARGS__), puts("");                                                    \
    } while (0)
static int trace;

typedef struct conn {
    t_host h;
    st_conn *c;
    int txn, prepared;
    t_table *work; /* what it sees of itself inside a transaction */
    struct {
        int n;
        t_table *t;
    } mark[MARKS];
    int nmark;
    struct {
        st_view *v;
        t_table *t;
    } view[VIEWS];
    int nview;
    t_table *pin; /* what further views show while views are open */
    long pin_version;
} conn;

typedef struct world {
    t_dir d;
    t_spec spec;
    int metric;
    t_rng r;
    t_db db[DBS];
    conn conn[CONNS];
    t_table *committed;
    long version;   /* commits so far */
    int64_t max_id; /* that any commit has used */
    int64_t max_event;
    t_table *doubt;   /* a worker of WORKER_DB died between the phases: this, */
    int doubt_counts; /* if its host committed */
    int to_server[2], from_server[2];
    pid_t server;
} world;

/* -------------------------------------------------------------------------------------- workers */

enum { FLUSH, COMMIT, ROLLBACK, DIE_BEFORE, DIE_PREPARED, DIE_DECIDED, DIE_AFTER, FINISHES };

typedef struct command {
    int finish;
    int memory; /* the worker's host has no file */
    uint64_t seed;
    int64_t txid; /* of its host */
    int64_t id0, del;
    int evict; /* del is evicted */
    int n;
} command;

typedef struct reply {
    int rc;
    int64_t txid;
} reply;

/* In the worker: opens, works, and ends as told. */
static int work(world *w, const command *k, reply *out)
{
    t_db db = k->memory ? t_db_memory(90) : w->db[WORKER_DB];
    t_rng r = {k->seed};
    t_host h;
    st_conn *c;
    st_error err = {0, ""};
    uint64_t rows;
    uint8_t owner[16];
    db.txid = k->txid;
    t_host_init(&h, &db);
    int rc = t_try_open(&w->d, &h, &w->spec, &c, &err);
    if (rc)
        return rc;
    rc = k->finish == FLUSH ? st_flush(c, 0, &rows, &err) : t_begin_rc(c, &h, &err);
    for (int i = 0; i < k->n && !rc && k->finish != FLUSH; i++) {
        t_mrow *m = t_mrow_random(&r, (size_t)w->spec.dim, k->id0 + i);
        st_row row = t_mrow_row(m);
        int64_t id;
        rc = st_put(c, &row, &id, &err);
    }
    if (!rc && k->finish != FLUSH && k->del != NO_ROW)
        rc = k->evict ? st_evict(c, k->del, "test", 1, &err) : st_delete(c, k->del, &err);
    if (!rc && k->finish > DIE_BEFORE)
        rc = st_prepare(c, 0, &out->txid, owner, &err);
    if (!rc && k->finish == DIE_AFTER) {
        st_commit(c);
    } else if (!rc && k->finish == COMMIT) {
        rc = t_commit_rc(c, &h, &err);
        out->txid = db.txid;
    } else if (!rc && k->finish == ROLLBACK) {
        st_rollback(c);
    }
    if (rc && rc != ST_BUSY && rc != ST_DOUBT)
        fprintf(stderr, "worker: %s\n", err.text);
    if (k->finish <= ROLLBACK || rc)
        st_close(c);
    return rc;
}

/* Forks a worker a command, and answers when it has ended. It never opens the store itself, so that
** a worker starts with nothing. */
static void serve(world *w)
{
    command k;
    reply *out = mmap(NULL, sizeof *out, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    while (out != MAP_FAILED && read(w->to_server[0], &k, sizeof k) == (ssize_t)sizeof k) {
        pid_t pid;
        int status;
        *out = (reply){0, 0};
        pid = fork();
        if (pid == 0) {
            out->rc = work(w, &k, out);
            _exit(0);
        }
        if (waitpid(pid, &status, 0) != pid || status != 0) {
            fprintf(stderr, "a worker ended with status %d\n", status);
            out->rc = -1000;
        }
        if (write(w->from_server[1], out, sizeof *out) != (ssize_t)sizeof *out)
            break;
    }
    _exit(0);
}

static void start_server(world *w)
{
    assert_int_equal(pipe(w->to_server), 0);
    assert_int_equal(pipe(w->from_server), 0);
    fflush(stdout);
    w->server = fork();
    assert_true(w->server >= 0);
    if (w->server == 0) {
        close(w->to_server[1]);
        serve(w);
    }
    close(w->to_server[0]);
    close(w->from_server[1]);
}

static void stop_server(world *w)
{
    int status;
    close(w->to_server[1]);
    close(w->from_server[0]);
    assert_int_equal(waitpid(w->server, &status, 0), w->server);
    assert_int_equal(status, 0);
}

/* -------------------------------------------------------------------------------- what is to be */

static int writer(const world *w)
{
    for (int i = 0; i < CONNS; i++)
        if (w->conn[i].txn)
            return i;
    return -1;
}

/* What a fresh snapshot of a connection shows, and its version. */
static const t_table *newest(const world *w, int i, long *version)
{
    int counts = w->doubt && w->doubt_counts && db_of[i] == WORKER_DB;
    *version = w->version + counts;
    return counts ? w->doubt : w->committed;
}

/* What the next view of a connection shows. */
static const t_table *now(const world *w, int i)
{
    long version;
    const conn *c = &w->conn[i];
    return c->txn ? c->work : c->nview ? c->pin : newest(w, i, &version);
}

static void set_committed(world *w, t_table *t)
{
    t_table_free(w->committed);
    w->committed = t;
    w->version++;
    if (t->n && t->row[t->n - 1]->id > w->max_id)
        w->max_id = t->row[t->n - 1]->id;
    for (size_t i = 0; i < t->nrecord[ST_EVENTS]; i++)
        if (t->record[ST_EVENTS][i]->v[0].i > w->max_event)
            w->max_event = t->record[ST_EVENTS][i]->v[0].i;
}

static void set_pin(conn *c, const t_table *t, long version)
{
    t_table_free(c->pin);
    c->pin = t_table_copy(t);
    c->pin_version = version;
}

/* A writer of the host in question settles what is in doubt. */
static void settle(world *w)
{
    if (w->doubt && w->doubt_counts)
        set_committed(w, w->doubt);
    else
        t_table_free(w->doubt);
    w->doubt = NULL;
}

static void end_txn(conn *c)
{
    t_table_free(c->work);
    c->work = NULL;
    for (int k = 0; k < c->nmark; k++)
        t_table_free(c->mark[k].t);
    c->nmark = c->txn = c->prepared = 0;
}

/* ---------------------------------------------------------------------------------------- steps */

static void open_view(world *w, int i)
{
    conn *c = &w->conn[i];
    st_error err = {0, ""};
    const t_table *t = now(w, i), *pin = w->committed;
    long version = w->version;
    if (c->nview == VIEWS)
        return;
    t_ok(&err, st_view_open(c->c, &c->view[c->nview].v, &err));
    c->view[c->nview].t = t_table_copy(t);
    if (!c->nview) {
        pin = c->txn ? pin : newest(w, i, &version);
        set_pin(c, pin, version);
    }
    c->nview++;
}

static void close_view(conn *c, int k)
{
    st_view_close(c->view[k].v);
    t_table_free(c->view[k].t);
    c->nview--;
    c->view[k] = c->view[c->nview];
    if (!c->nview) {
        t_table_free(c->pin);
        c->pin = NULL;
    }
}

static void check(world *w, int i, int searches)
{
    conn *c = &w->conn[i];
    if (c->nview && t_rng_below(&w->r, 2)) {
        uint64_t k = t_rng_below(&w->r, (uint64_t)c->nview);
        t_check_view(c->view[k].v, c->view[k].t, &w->r, searches);
    } else {
        t_check_conn(c->c, now(w, i), &w->r, searches);
    }
}

static void begin(world *w, int i)
{
    conn *c = &w->conn[i];
    st_error err = {0, ""};
    int rc = t_begin_rc(c->c, &c->h, &err), want = ST_OK;
    if (writer(w) >= 0) {
        want = ST_BUSY;
    } else if (w->doubt && db_of[i] != WORKER_DB) {
        want = ST_DOUBT;
    } else {
        settle(w);
        // Commits whose changes cancel out may count or not.
        if (c->nview && c->pin_version != w->version && (rc || !t_table_same(c->pin, w->committed)))
            want = ST_BUSY_SNAPSHOT;
    }
    if (rc != want)
        fail_msg("begin: %d, expected %d: %s", rc, want, err.text);
    if (!rc) {
        c->txn = 1;
        c->work = t_table_copy(w->committed);
        if (c->nview)
            set_pin(c, w->committed, w->version); // the same rows, perhaps after a compact
    }
}

static void expect_code(int rc, int want, const st_error *err)
{
    if (rc != want)
        fail_msg("%d, expected %d: %s", rc, want, err->text);
}

static void put(world *w, conn *c)
{
    st_error err = {0, ""};
    int automatic = t_rng_below(&w->r, 2) == 0, rc;
    int64_t id = (int64_t)t_rng_below(&w->r, 400) - 5, got = 0;
    if (t_rng_below(&w->r, 100) == 0)
        id = t_rng_below(&w->r, 2) ? INT64_MIN : -(int64_t)t_rng_below(&w->r, 1 << 30);
    t_mrow *m = t_mrow_random(&w->r, (size_t)w->spec.dim, id);
    st_row row = t_mrow_row(m);
    if (automatic)
        m->given[ST_COL_ID] = t_null();
    rc = st_put(c->c, &row, &got, &err);
    m->given[ST_COL_ID] = t_int(got);
    if (!automatic && t_table_find(c->work, id)) {
        expect_code(rc, ST_EXISTS, &err);
        t_mrow_unref(m);
        return;
    }
    t_ok(&err, rc);
    if (automatic) {
        assert_true(got > w->max_id);
        assert_null(t_table_find(c->work, got));
        m->id = got;
        m->v[ST_COL_ID] = t_int(got);
    } else {
        assert_int_equal(got, id);
    }
    t_table_set(c->work, m);
}

/* A row of the table, mostly. */
static int64_t some_id(world *w, const t_table *t)
{
    return t->n && t_rng_below(&w->r, 10) ? t->row[t_rng_below(&w->r, t->n)]->id
                                          : (int64_t)t_rng_below(&w->r, 400) - 5;
}

static void update(world *w, conn *c)
{
    st_error err = {0, ""};
    uint8_t changed[T_NCOL] = {0};
    int64_t id = some_id(w, c->work), to = id;
    int small = t_rng_below(&w->r, 2) == 0;
    const t_mrow *old = t_table_find(c->work, id);
    for (int col = 1; col < T_NCOL; col++)
        changed[col] = st_column_heavy(c->c, col) != small && t_rng_below(&w->r, 4) == 0;
    if (t_rng_below(&w->r, 8) == 0) {
        changed[ST_COL_ID] = 1;
        to = some_id(w, c->work);
    }
    t_mrow *other = t_mrow_random(&w->r, (size_t)w->spec.dim, to);
    t_mrow *merged = old ? t_mrow_merge(old, other, changed, (size_t)w->spec.dim) : NULL;
    TRACE("update %lld to %lld, %s", (long long)id, (long long)to, small ? "small" : "heavy");
    // Tokens are those of the content that the row will have.
    st_row row = {other->given, merged ? merged->tokens : NULL, merged ? merged->ntokens : 0};
    int rc = st_update(c->c, id, &row, changed, &err);
    if (!old) {
        expect_code(rc, ST_NOTFOUND, &err);
    } else if (to != id && t_table_find(c->work, to)) {
        expect_code(rc, ST_EXISTS, &err);
        t_mrow_unref(merged);
    } else {
        t_ok(&err, rc);
        if (to != id)
            t_table_remove(c->work, id);
        t_table_set(c->work, merged);
    }
    t_mrow_unref(other);
}

static void delete (world *w, conn *c)
{
    st_error err = {0, ""};
    int64_t id = some_id(w, c->work);
    TRACE("delete %lld", (long long)id);
    int there = t_table_find(c->work, id) != NULL;
    assert_int_equal(st_exists(c->c, id, &err), there ? ST_OK : ST_NOTFOUND);
    err.code = ST_OK;
    expect_code(st_delete(c->c, id, &err), there ? ST_OK : ST_NOTFOUND, &err);
    assert_int_equal(st_exists(c->c, id, &err), ST_NOTFOUND);
    t_table_remove(c->work, id);
}

static void evict(world *w, conn *c)
{
    st_error err = {0, ""};
    int64_t id = some_id(w, c->work);
    int there = t_table_find(c->work, id) != NULL;
    TRACE("evict %lld", (long long)id);
    expect_code(st_evict(c->c, id, "test", 1, &err), there ? ST_OK : ST_NOTFOUND, &err);
    assert_int_equal(st_exists(c->c, id, &err), ST_NOTFOUND);
    if (there) {
        int64_t seq = t_last_event(c->c);
        assert_true(seq > w->max_event);
        t_table_evict(c->work, id, seq);
    }
}

static int64_t some_evicted(world *w, const t_table *t)
{
    return t->nevicted ? t->evicted[t_rng_below(&w->r, t->nevicted)]->id : some_id(w, t);
}

static void drop_evicted(world *w, conn *c)
{
    st_error err = {0, ""};
    int64_t id = some_evicted(w, c->work);
    int there = t_table_evicted(c->work, id) != NULL;
    TRACE("drop evicted %lld", (long long)id);
    expect_code(st_evicted_drop(c->c, id, &err), there ? ST_OK : ST_NOTFOUND, &err);
    t_table_forget(c->work, id);
}

/* Puts an evicted row back with the values that a view gives. */
static void restore(world *w, conn *c)
{
    st_error err = {0, ""};
    int64_t id = some_evicted(w, c->work), got;
    t_mrow *old = t_table_evicted(c->work, id);
    st_value v[T_NCOL];
    st_view *view;
    uint64_t row;
    TRACE("restore %lld", (long long)id);
    t_ok(&err, st_view_open(c->c, &view, &err));
    expect_code(st_evicted_find(view, id, &row, &err), old ? ST_OK : ST_NOTFOUND, &err);
    if (old) {
        st_row put = {v, old->tokens, old->ntokens};
        for (int col = 0; col < T_NCOL; col++)
            t_ok(&err, st_view_value(view, row, col, &v[col], &err));
        t_ok(&err, st_put(c->c, &put, &got, &err));
        old->refs++;
        t_table_set(c->work, old);
    }
    st_view_close(view);
}

static void drop_marks(conn *c, int from)
{
    int k = 0;
    for (int m = 0; m < c->nmark; m++) {
        if (c->mark[m].n < from)
            c->mark[k++] = c->mark[m];
        else
            t_table_free(c->mark[m].t);
    }
    c->nmark = k;
}

static void marks(world *w, conn *c)
{
    st_error err = {0, ""};
    int n = (int)t_rng_below(&w->r, MARKS), at = -1;
    for (int k = 0; k < c->nmark; k++)
        at = c->mark[k].n == n ? k : at;
    TRACE("mark %d is %sset", n, at < 0 ? "not " : "");
    switch (t_rng_below(&w->r, 4)) {
    case 0:
    case 1:
        if (at < 0 && c->nmark && c->mark[c->nmark - 1].n > n)
            break; // the host numbers them in the order of their nesting
        t_ok(&err, st_savepoint(c->c, n, &err));
        if (at < 0) {
            c->mark[c->nmark].n = n;
            c->mark[c->nmark++].t = t_table_copy(c->work);
        }
        break;
    case 2:
        TRACE("release");
        st_release(c->c, n);
        drop_marks(c, n);
        break;
    default:
        n = t_rng_below(&w->r, 20) ? n : -1;
        if (n >= 0 && at < 0 && t_rng_below(&w->r, 10))
            break; // a mark never set undoes everything: seldom
        TRACE("roll back to %d", n);
        st_rollback_to(c->c, n);
        t_table_free(c->work);
        c->work = t_table_copy(n >= 0 && at >= 0 ? c->mark[at].t : w->committed);
        drop_marks(c, n + 1);
        for (int m = 0; m < c->nmark && at < 0; m++) {
            t_table_free(c->mark[m].t); // all is undone, what the marks stood for too
            c->mark[m].t = t_table_copy(w->committed);
        }
    }
}

static void change(world *w, conn *c)
{
    uint64_t kind = t_rng_below(&w->r, 32);
    TRACE("change %d, %zu rows", (int)kind, c->work->n);
    if (kind < 8 && c->work->n < ROWS_MAX)
        put(w, c);
    else if (kind < 13)
        update(w, c);
    else if (kind < 16)
        delete (w, c);
    else if (kind < 18)
        evict(w, c);
    else if (kind < 20 && c->work->n < ROWS_MAX)
        restore(w, c);
    else if (kind == 20)
        drop_evicted(w, c);
    else if (kind < 28)
        t_change_records(c->c, c->work, &w->r, w->max_event);
    else
        marks(w, c);
}

static void rollback(world *w, int i)
{
    conn *c = &w->conn[i];
    t_rollback(c->c, &c->h);
    end_txn(c);
    (void)w;
}

static void prepare(world *w, conn *c)
{
    int wrote = st_has_changes(c->c) || c->prepared;
    int64_t before = c->h.db->txid, txid = t_prepare(c->c, &c->h);
    c->prepared = wrote;
    if (wrote && c->h.db->dev)
        assert_true(txid > before);
    else
        assert_int_equal(txid, 0);
    (void)w;
}

static void commit(world *w, int i)
{
    conn *c = &w->conn[i];
    int other = (int)t_rng_below(&w->r, CONNS), wrote;
    prepare(w, c);
    if (t_rng_below(&w->r, 3) == 0)
        check(w, other, 1); // nobody else sees it yet
    if (t_rng_below(&w->r, 6) == 0) {
        // The host could not commit: more changes come, or it gives up.
        for (uint64_t k = t_rng_below(&w->r, 4); k-- > 0;)
            change(w, c);
        if (t_rng_below(&w->r, 3) == 0) {
            rollback(w, i);
            return;
        }
        prepare(w, c);
    }
    wrote = c->prepared;
    if (c->h.own >= 0)
        c->h.db->txid = c->h.own;
    c->h.own = -1;
    if (wrote && c->h.db->dev && other != i && t_rng_below(&w->r, 3) == 0) {
        // Decided, and not yet published: the same host's connections see it, others do not.
        const t_table *t = w->conn[other].nview       ? w->conn[other].pin
                           : db_of[other] == db_of[i] ? c->work
                                                      : w->committed;
        t_check_conn(w->conn[other].c, t, &w->r, 1);
    }
    st_commit(c->c);
    if (wrote)
        set_committed(w, t_table_copy(c->work));
    end_txn(c);
    if (c->nview)
        set_pin(c, w->committed, w->version);
}

/* What flush and compact answer a connection. */
static int folding_code(const world *w, int i)
{
    const conn *c = &w->conn[i];
    int changes = c->txn && (st_has_changes(c->c) || c->prepared), other = writer(w);
    return changes ? ST_LOCKED : other >= 0 && other != i ? ST_BUSY : w->doubt ? ST_DOUBT : ST_OK;
}

static void flush(world *w, int i)
{
    conn *c = &w->conn[i];
    st_error err = {0, ""};
    uint64_t rows;
    int want = folding_code(w, i), compact = t_rng_below(&w->r, 4) == 0;
    int rc = compact ? st_compact(c->c, 0, &rows, &err) : st_flush(c->c, 0, &rows, &err);
    TRACE("%s: %d", compact ? "compact" : "flush", rc);
    expect_code(rc, want, &err);
    if (c->txn && want != ST_LOCKED)
        end_txn(c);
    if (compact && !rc)
        t_table_compact(w->committed);
}

/* Everything that verify knows must hold at any moment. */
static void verify(world *w, int i)
{
    TRACE("verify");
    t_verify(w->conn[i].c);
}

/* A copy shows the newest commit, whatever the connection still reads. */
static void backup(world *w, int i)
{
    conn *c = &w->conn[i];
    t_dir d = t_dir_new();
    t_host h;
    st_conn *copy;
    st_view *v;
    st_error err = {0, ""};
    uint64_t bytes;
    int rc = st_backup(c->c, d.h5, &bytes, &err);
    TRACE("backup: %d", rc);
    expect_code(rc, c->txn && (st_has_changes(c->c) || c->prepared) ? ST_LOCKED : ST_OK, &err);
    if (rc) {
        t_dir_remove(&d);
        return;
    }
    t_host_init(&h, c->h.db);
    copy = t_open_spec(&d, &h, &w->spec);
    t_verify(copy);
    t_ok(&err, st_view_open(copy, &v, &err));
    t_table *t = t_table_of(v, (size_t)w->spec.dim, w->metric, &err);
    assert_non_null(t);
    // What is decided and not published may be in it or not.
    if (!t_table_same(t, w->committed) &&
        !(w->doubt && w->doubt_counts && t_table_same(t, w->doubt)))
        fail_msg("a copy of %zu rows shows another state than one of %zu", t->n, w->committed->n);
    t_table_free(t);
    st_view_close(v);
    st_close(copy);
    t_dir_remove(&d);
}

static void close_conn(world *w, int i)
{
    conn *c = &w->conn[i];
    while (c->nview)
        close_view(c, 0);
    if (c->txn)
        rollback(w, i);
    st_close(c->c);
    c->c = NULL;
}

static void open_conn(world *w, int i)
{
    w->conn[i].c = t_open_spec(&w->d, &w->conn[i].h, &w->spec);
}

/* ---------------------------------------------------------------------- work by another process */

/* The table after a worker's changes. */
static t_table *after(const world *w, const command *k, const t_table *from)
{
    t_table *t = t_table_copy(from);
    t_rng r = {k->seed};
    for (int i = 0; i < k->n; i++)
        t_table_set(t, t_mrow_random(&r, (size_t)w->spec.dim, k->id0 + i));
    if (k->evict)
        t_table_evict(t, k->del, w->max_event + 1);
    else
        t_table_remove(t, k->del);
    return t;
}

static reply ask(world *w, const command *k)
{
    reply out;
    assert_int_equal(write(w->to_server[1], k, sizeof *k), sizeof *k);
    assert_int_equal(read(w->from_server[0], &out, sizeof out), sizeof out);
    return out;
}

static void worker(world *w)
{
    command k = {.finish = (int)t_rng_below(&w->r, FINISHES),
                 .memory = t_rng_below(&w->r, 4) == 0,
                 .seed = t_rng_next(&w->r),
                 .id0 = w->max_id + 1 + (int64_t)t_rng_below(&w->r, 3),
                 .del = NO_ROW,
                 .n = (int)t_rng_below(&w->r, 6)};
    int decides = k.finish != FLUSH && !k.memory, want = ST_OK;
    t_table *t;
    k.txid = k.memory ? 0 : w->db[WORKER_DB].txid;
    if (writer(w) >= 0)
        want = ST_BUSY;
    else if (w->doubt && !decides)
        want = ST_DOUBT;
    else if (decides)
        settle(w);
    k.id0 = k.id0 <= w->max_id ? w->max_id + 1 : k.id0;
    k.n = w->committed->n + (size_t)k.n < ROWS_MAX ? k.n : 0;
    if (w->committed->n > 20 && t_rng_below(&w->r, 2))
        k.del = w->committed->row[t_rng_below(&w->r, w->committed->n)]->id;
    k.evict = (int)t_rng_below(&w->r, 2);
    TRACE("worker %d, memory %d, rows %lld and %d more, without %lld", k.finish, k.memory,
          (long long)k.id0, k.n, (long long)k.del);
    reply got = ask(w, &k);
    assert_int_equal(got.rc, want);
    if (want || k.finish == FLUSH || k.finish == ROLLBACK || k.finish == DIE_BEFORE ||
        (!k.n && k.del == NO_ROW))
        return;
    t = after(w, &k, w->committed);
    if (k.finish == DIE_PREPARED && !k.memory) {
        w->doubt = t;
        w->doubt_counts = 0;
    } else if (k.finish == DIE_DECIDED && !k.memory) {
        w->doubt = t;
        w->doubt_counts = 1;
        w->db[WORKER_DB].txid = got.txid;
    } else {
        set_committed(w, t);
        if (!k.memory)
            w->db[WORKER_DB].txid = got.txid;
    }
}

static void reopen_all(world *w)
{
    for (int i = 0; i < CONNS; i++)
        close_conn(w, i);
    if (t_rng_below(&w->r, 2))
        worker(w);
    for (int i = 0; i < CONNS; i++)
        open_conn(w, i);
}

/* ----------------------------------------------------------------------------------- a long run */

static void step(world *w)
{
    int i = writer(w) >= 0 && t_rng_below(&w->r, 2) ? writer(w) : (int)t_rng_below(&w->r, CONNS);
    conn *c = &w->conn[i];
    uint64_t kind = t_rng_below(&w->r, 100);
    TRACE("conn %d kind %d: txn %d, views %d, %zu rows, writer %d, doubt %d", i, (int)kind, c->txn,
          c->nview, w->committed->n, writer(w), w->doubt ? 1 + w->doubt_counts : 0);
    if (kind < 8)
        open_view(w, i);
    else if (kind < 16 && c->nview)
        close_view(c, (int)t_rng_below(&w->r, (uint64_t)c->nview));
    else if (kind < 26)
        check(w, i, 3);
    else if (kind < 30)
        flush(w, i);
    else if (kind == 98)
        verify(w, i);
    else if (kind == 99)
        backup(w, i);
    else if (kind < 33)
        worker(w);
    else if (kind == 33)
        reopen_all(w);
    else if (kind == 34) {
        close_conn(w, i);
        open_conn(w, i);
    } else if (!c->txn)
        begin(w, i);
    else if (kind < 44)
        commit(w, i);
    else if (kind < 48)
        rollback(w, i);
    else
        for (uint64_t k = t_rng_below(&w->r, 10) + 1; k-- > 0;)
            change(w, c);
}

/* A commit that compacts would drop evicted rows at a moment that is not known here. */
static void never_compact(world *w)
{
    st_error err = {0, ""};
    conn *c = &w->conn[0];
    t_begin(c->c, &c->h);
    t_ok(&err, st_set_option(c->c, "autocompact", "1", &err));
    t_commit(c->c, &c->h);
}

static void run(uint64_t seed, int64_t dim, const char *compression, const char *metric,
                int metric_code)
{
    world *w = calloc(1, sizeof *w);
    const char *given = getenv("T_STEPS");
    long steps = given ? atol(given) : 1500;
    assert_non_null(w);
    w->r = t_rng_start(seed);
    w->d = t_dir_new();
    w->spec = (t_spec){dim, compression, "16384", NULL, metric};
    w->metric = metric_code;
    for (int k = 0; k < DBS; k++)
        w->db[k] = k == MEMORY_DB ? t_db_memory(k + 1) : t_db_new(k + 1);
    start_server(w);
    w->committed = t_table_new((size_t)dim, metric_code);
    for (int i = 0; i < CONNS; i++) {
        t_host_init(&w->conn[i].h, &w->db[db_of[i]]);
        open_conn(w, i);
    }
    never_compact(w);
    for (long s = 0; s < steps; s++)
        step(w);
    for (int i = 0; i < CONNS; i++) {
        check(w, i, 5);
        verify(w, i);
    }
    for (int i = 0; i < CONNS; i++)
        close_conn(w, i);
    stop_server(w);
    t_table_free(w->committed);
    t_table_free(w->doubt);
    t_dir_remove(&w->d);
    free(w);
}

static void three_values(void **state)
{
    (void)state;
    run(1, 3, "none", "cosine", VEC_COSINE);
}

static void three_values_compressed(void **state)
{
    (void)state;
    run(2, 3, "zstd:3", "l2", VEC_L2);
}

static void many_values(void **state)
{
    (void)state;
    run(3, 384, "none", "ip", VEC_IP);
}

static void many_values_compressed(void **state)
{
    (void)state;
    run(4, 384, "deflate:1", "cosine", VEC_COSINE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_values),
        cmocka_unit_test(three_values_compressed),
        cmocka_unit_test(many_values),
        cmocka_unit_test(many_values_compressed),
    };
    vec_init();
    trace = getenv("T_TRACE") != NULL;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
