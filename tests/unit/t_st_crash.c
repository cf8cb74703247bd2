/*
 * t_st_crash.c - a process dies, or the power goes, at every operation on a file
 *
 * A fixed sequence of transactions runs once while the files are noted before, in the middle of and
 * after every write, sync and truncate. Each note is then opened elsewhere.
 *
 * DEATH     The note as it is. It must show exactly what the host has decided at that moment, to a
 *           reader, to a writer, and after more work. The .h5 alone, without its log, must show
 *           what was last flushed, but in the middle of the 48 bytes.
 * POWER     What a disk may hold of it: of each write since the last sync all, nothing or some
 *           sectors, the mapped page torn anywhere. With synchronous `full` and a host that is as
 *           careful it must show what the host has decided; with `normal` any state from the last
 *           flush on.
 *
 * T_ALL takes every note and more disks; else some notes, by chance, are left out. T_SEED is added
 * to the seeds.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "t_disk.h"
#include "t_model.h"
#include "vec.h"

enum { STATES = 64, TRANSACTIONS = 16 };

typedef struct note {
    unsigned char *h5, *log;
    size_t h5_n, log_n;
    int64_t txid;  /* of the host */
    int low, high; /* states that it may show */
    int flushed;   /* state that the .h5 shows at least */
} note;

typedef struct story {
    t_dir d;
    t_spec spec;
    t_db db;
    t_host h;
    st_conn *c;
    t_rng r;
    t_table *state[STATES];
    int taken_back[STATES]; /* 1: shown only while it was being made */
    int last;
    int decided; /* the state that the host stands for */
    int coming;  /* the state of a transaction that the store counts by itself, or 0 */
    int flushed; /* the last state that a flush has surely put into the file */
    int power;   /* disks to note at each moment, instead of the files */
    int made;    /* the store is there */
    note *note;
    size_t nnote, cap;
} story;

/* ---------------------------------------------------------------------------------------- notes */

static void add_note(story *s, note n)
{
    note *last = s->nnote ? &s->note[s->nnote - 1] : NULL;
    if (last && !s->power && last->h5_n == n.h5_n && last->log_n == n.log_n &&
        last->txid == n.txid && last->low == n.low && last->high == n.high &&
        last->flushed == n.flushed && (!n.h5_n || !memcmp(last->h5, n.h5, n.h5_n)) &&
        (!n.log_n || !memcmp(last->log, n.log, n.log_n))) {
        free(n.h5);
        free(n.log);
        return;
    }
    if (s->nnote == s->cap) {
        s->cap = s->cap * 2 + 64;
        s->note = realloc(s->note, s->cap * sizeof *s->note);
        assert_non_null(s->note);
    }
    s->note[s->nnote++] = n;
}

static void moment(void *ctx)
{
    story *s = ctx;
    int careful = s->spec.synchronous && !strcmp(s->spec.synchronous, "full");
    note n = {
        .txid = s->db.txid, .high = s->coming ? s->coming : s->decided, .flushed = s->flushed};
    n.low = s->power && !careful ? s->flushed : s->decided;
    if (!s->power) {
        n.h5 = t_read_file(s->d.h5, &n.h5_n);
        n.log = t_read_file(s->d.log, &n.log_n);
        add_note(s, n);
    }
    for (int i = 0; i < s->power && s->made; i++) {
        n.h5 = t_disk_crash(s->d.h5, &s->r, &n.h5_n);
        n.log = t_disk_crash(s->d.log, &s->r, &n.log_n);
        assert_non_null(n.h5);
        assert_non_null(n.log);
        add_note(s, n);
    }
}

/* ------------------------------------------------------------------------------------ the story */

static void change_some(story *s, t_table *t)
{
    st_error err = {0, ""};
    for (uint64_t k = 1 + t_rng_below(&s->r, 3); k-- > 0;) {
        int64_t id = (int64_t)t_rng_below(&s->r, 1000), got;
        t_mrow *m = t_mrow_random(&s->r, T_DIM, id);
        st_row row = t_mrow_row(m);
        if (t_table_find(t, id)) {
            t_mrow_unref(m);
            continue;
        }
        t_ok(&err, st_put(s->c, &row, &got, &err));
        t_table_set(t, m);
    }
    if (t->n > 3 && t_rng_below(&s->r, 2)) {
        int64_t id = t->row[t_rng_below(&s->r, t->n)]->id;
        t_delete(s->c, id);
        t_table_remove(t, id);
    }
    if (t->n > 3 && t_rng_below(&s->r, 2)) {
        int64_t id = t->row[t_rng_below(&s->r, t->n)]->id;
        t_ok(&err, st_evict(s->c, id, "test", 1, &err));
        t_table_evict(t, id, t_last_event(s->c));
    }
    for (int side = 0; side < ST_SIDES; side++) {
        t_record *r = t_record_random(&s->r, side, (int64_t)t_rng_below(&s->r, 30) + 1);
        if (t_record_find(t, side, &r->v[0])) {
            t_ok(&err, t_rng_below(&s->r, 2) ? st_side_set(s->c, side, &r->v[0], r->v, &err)
                                             : st_side_delete(s->c, side, &r->v[0], &err));
        } else {
            t_ok(&err, st_side_put(s->c, side, r->v, NULL, &err));
            t_record_set(t, r);
            continue;
        }
        st_view *v;
        uint64_t at;
        t_ok(&err, st_view_open(s->c, &v, &err));
        t_record_remove(t, side, &r->v[0]);
        if (st_side_find(v, side, &r->v[0], &at, &err) == ST_OK)
            t_record_set(t, t_record_copy(r));
        st_view_close(v);
        t_record_unref(r);
    }
    if (t->n > 3) {
        t_mrow *old = t->row[t_rng_below(&s->r, t->n)], *next;
        uint8_t changed[T_NCOL] = {0};
        changed[ST_COL_IMPORTANCE] = 1;
        changed[T_COL_USER_ID] = (uint8_t)t_rng_below(&s->r, 2);
        t_mrow *other = t_mrow_random(&s->r, T_DIM, old->id);
        next = t_mrow_merge(old, other, changed, T_DIM);
        st_row row = {other->given, next->tokens, next->ntokens};
        t_ok(&err, st_update(s->c, old->id, &row, changed, &err));
        t_table_set(t, next);
        t_mrow_unref(other);
    }
}

static void transaction(story *s)
{
    t_table *t = t_table_copy(s->state[s->decided]);
    uint64_t how = t_rng_below(&s->r, 8);
    int attempt = ++s->last;
    t_begin(s->c, &s->h);
    change_some(s, t);
    t_table_free(s->state[attempt]);
    s->state[attempt] = t_table_copy(t);
    s->coming = s->db.dev ? 0 : attempt;
    t_prepare(s->c, &s->h);
    if (how < 2 && s->db.dev) {
        // The host could not commit. (One without a file is its own judge: either may count.)
        change_some(s, t);
        t_table_free(s->state[attempt]);
        s->state[attempt] = t_table_copy(t);
        t_prepare(s->c, &s->h);
    }
    t_table_free(t);
    if (how == 2) {
        s->taken_back[attempt] = 1;
        t_rollback(s->c, &s->h);
        s->coming = 0;
        return;
    }
    if (s->h.own >= 0)
        s->db.txid = s->h.own;
    s->h.own = -1;
    s->decided = attempt;
    s->coming = 0;
    st_commit(s->c);
}

static void tell(story *s, uint64_t seed)
{
    const uint64_t flush_at = TRANSACTIONS / 2;
    s->r = (t_rng){seed};
    s->d = t_dir_new();
    t_host_init(&s->h, &s->db);
    s->state[0] = t_table_new(T_DIM, VEC_COSINE);
    t_disk_on();
    t_disk.moment = moment;
    t_disk.ctx = s;
    s->c = t_open_spec(&s->d, &s->h, &s->spec);
    s->made = 1;
    for (uint64_t i = 0; i < TRANSACTIONS; i++) {
        transaction(s);
        if (i == flush_at || i == 1) {
            t_flush(s->c);
            s->flushed = s->decided;
        }
    }
    st_close(s->c); // folds the log
    t_disk_off();
}

static void forget(story *s)
{
    for (size_t i = 0; i < s->nnote; i++) {
        free(s->note[i].h5);
        free(s->note[i].log);
    }
    for (int i = 0; i < STATES; i++)
        t_table_free(s->state[i]);
    free(s->note);
    t_dir_remove(&s->d);
}

/* ---------------------------------------------------------------------------------- the verdict */

static int which_state(const story *s, st_conn *c, const note *n, const char *who)
{
    st_view *v;
    st_error err = {0, ""};
    t_table *t;
    int k = n->high;
    t_ok(&err, st_view_open(c, &v, &err));
    t = t_table_of(v, T_DIM, VEC_COSINE, &err);
    if (!t)
        fail_msg("%s: %s", who, err.text);
    while (k >= n->low && ((s->taken_back[k] && k != n->high) || !t_table_same(t, s->state[k])))
        k--;
    if (k < n->low)
        fail_msg("%s: %zu rows are not those of the states %d to %d (%zu to %zu)", who, t->n,
                 n->low, n->high, s->state[n->low]->n, s->state[n->high]->n);
    t_table_free(t);
    st_view_close(v);
    return k;
}

/* The .h5 without its log; a superblock that is half written is the only excuse. */
static void check_file_alone(const story *s, const note *n, const t_dir *d, t_host *h)
{
    st_conn *c;
    st_error err = {0, ""};
    note alone = *n;
    uint64_t root, eof;
    unlink(d->log);
    alone.low = n->flushed;
    if (h5_superblock_unpack(n->h5, &root, &eof, NULL) != H5_OK)
        return;
    t_ok(&err, st_open(d->h5, ST_OPEN_READONLY, NULL, &h->host, &c, &err));
    which_state(s, c, &alone, "the file alone");
    st_close(c);
}

static void check_note(const story *s, const note *n, const t_dir *d)
{
    t_db db = s->db;
    t_host h;
    st_conn *c;
    st_error err = {0, ""};
    int k, again;
    if (n->h5)
        t_write_file(d->h5, n->h5, n->h5_n);
    else
        unlink(d->h5);
    if (n->log)
        t_write_file(d->log, n->log, n->log_n);
    else
        unlink(d->log);
    db.txid = n->txid;
    t_host_init(&h, &db);
    t_ok(&err, t_try_open(d, &h, &s->spec, &c, &err));
    k = which_state(s, c, n, "a reader");
    t_begin(c, &h);
    again = which_state(s, c, n, "a writer");
    // A writer also looks behind what the header counts.
    if (again < k || (again > k && !s->power))
        fail_msg("a writer sees state %d, a reader state %d", again, k);
    k = again;
    t_put(c, 5000, "more");
    t_commit(c, &h);
    t_begin(c, &h);
    t_delete(c, 5000);
    t_commit(c, &h);
    assert_int_equal(which_state(s, c, n, "after a commit"), k);
    t_flush(c);
    st_close(c);
    t_ok(&err, t_try_open(d, &h, &s->spec, &c, &err));
    assert_int_equal(which_state(s, c, n, "after a flush"), k);
    st_close(c);
    if (n->h5 && !s->power) {
        t_write_file(d->h5, n->h5, n->h5_n);
        check_file_alone(s, n, d, &h);
    }
}

static void run(const char *compression, const char *synchronous, int memory, int power,
                uint64_t seed)
{
    story *s = calloc(1, sizeof *s);
    t_dir d = t_dir_new();
    int all = getenv("T_ALL") != NULL;
    const char *only = getenv("T_NOTE");
    const char *given = getenv("T_SEED");
    seed += given ? strtoull(given, NULL, 10) : 0;
    t_rng luck = {seed};
    assert_non_null(s);
    s->spec = (t_spec){T_DIM, compression, "6000", synchronous, NULL};
    s->db = memory ? t_db_memory(1) : t_db_new(1);
    s->power = power * (all ? 8 : 1);
    tell(s, seed);
    print_message("# %zu notes of %d transactions\n", s->nnote, s->decided);
    for (size_t i = 0; i < s->nnote; i++) {
        if (only ? (long)i != atol(only) : !all && t_rng_below(&luck, 4) != 0)
            continue;
        if (getenv("T_TRACE"))
            print_message("# note %zu: states %d to %d, flushed %d\n", i, s->note[i].low,
                          s->note[i].high, s->note[i].flushed);
        check_note(s, &s->note[i], &d);
    }
    forget(s);
    free(s);
    t_dir_remove(&d);
}

static void death(void **state)
{
    (void)state;
    run("none", "normal", 0, 0, 1);
    run("zstd:1", "full", 0, 0, 2);
    run("none", "off", 0, 0, 3);
}

static void death_of_a_host_without_a_file(void **state)
{
    (void)state;
    run("zstd:1", "normal", 1, 0, 4);
}

static void power_goes_when_all_is_synced(void **state)
{
    (void)state;
    run("none", "full", 0, 1, 5);
    run("zstd:1", "full", 0, 1, 6);
}

static void power_goes_when_flushes_are_synced(void **state)
{
    (void)state;
    run("none", "normal", 0, 1, 7);
    run("zstd:1", "normal", 0, 1, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(death),
        cmocka_unit_test(death_of_a_host_without_a_file),
        cmocka_unit_test(power_goes_when_all_is_synced),
        cmocka_unit_test(power_goes_when_flushes_are_synced),
    };
    vec_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
