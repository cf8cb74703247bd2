/*
 * t_st_doubt.c - what a death between the phases of a commit leaves, and a damaged log
 *
 * A death is a copy of the two files taken at that moment and opened elsewhere.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "t_disk.h"

typedef struct fix {
    t_dir d, copy;
    t_db mine, strange, memory;
    t_host h, h2, other, self;
    st_conn *c;
} fix;

/* A store with rows 1 and 2 committed, one in the file and one in the log. */
static void fix_init(fix *f)
{
    f->d = t_dir_new();
    f->copy = t_dir_new();
    f->mine = t_db_new(1);
    f->strange = t_db_new(2);
    f->memory = t_db_memory(3);
    t_host_init(&f->h, &f->mine);
    t_host_init(&f->h2, &f->mine);
    t_host_init(&f->other, &f->strange);
    t_host_init(&f->self, &f->memory);
    f->c = t_open(&f->d, &f->h);
    t_begin(f->c, &f->h);
    t_put(f->c, 1, "one");
    t_commit(f->c, &f->h);
    t_flush(f->c);
    t_begin(f->c, &f->h);
    t_put(f->c, 2, "two");
    t_commit(f->c, &f->h);
}

static void fix_end(fix *f)
{
    st_close(f->c);
    t_dir_remove(&f->d);
    t_dir_remove(&f->copy);
}

/* The files as a process that dies now leaves them. */
static void die(fix *f)
{
    t_dir_copy(&f->d, &f->copy);
}

static void assert_no_begin(st_conn *c, t_host *h, int code, const char *part)
{
    st_error err = {0, ""};
    assert_int_equal(t_begin_rc(c, h, &err), code);
    assert_int_equal(err.code, code);
    if (!strstr(err.text, part))
        fail_msg("'%s' is not in '%s'", part, err.text);
}

static void add(st_conn *c, t_host *h, int64_t id)
{
    t_begin(c, h);
    t_put(c, id, "more words");
    t_commit(c, h);
}

/* Row 3 is prepared with host h; decided: the host has committed. */
static void prepare_and_die(fix *f, int decided)
{
    t_begin(f->c, &f->h);
    t_put(f->c, 3, "three");
    t_set_importance(f->c, 1, 0.25);
    int64_t txid = t_prepare(f->c, &f->h);
    die(f);
    t_rollback(f->c, &f->h);
    assert_true(txid > 0);
    if (decided)
        f->mine.txid = txid;
}

static void a_host_that_did_not_commit(void **state)
{
    (void)state;
    fix f;
    fix_init(&f);
    prepare_and_die(&f, 0);
    st_conn *c = t_open(&f.copy, &f.h2), *other = t_open(&f.copy, &f.other);
    t_assert_ids(c, "1 2");
    t_assert_ids(other, "1 2");
    assert_no_begin(other, &f.other, ST_DOUBT, "host.db");
    t_assert_ids(other, "1 2");
    add(c, &f.h2, 4);
    t_assert_ids(other, "1 2 4");
    add(other, &f.other, 5);
    t_assert_ids(c, "1 2 4 5");
    st_close(c);
    st_close(other);
    fix_end(&f);
}

static void a_host_that_did_commit(void **state)
{
    (void)state;
    fix f;
    st_error err = {0, ""};
    uint64_t rows;
    st_stats stats;
    fix_init(&f);
    prepare_and_die(&f, 1);
    st_conn *other = t_open(&f.copy, &f.other), *c = t_open(&f.copy, &f.h2);
    t_assert_ids(other, "1 2");
    t_assert_ids(c, "1 2 3");
    t_assert_ids(other, "1 2");
    assert_no_begin(other, &f.other, ST_DOUBT, "host.db");
    assert_int_equal(st_flush(other, 0, &rows, &err), ST_DOUBT);
    err.code = 0;
    t_ok(&err, st_conn_stats(c, &stats, &err));
    assert_int_equal(stats.in_doubt, 1);
    // Closing everything must not decide either.
    st_close(c);
    st_close(other);
    other = t_open(&f.copy, &f.other);
    t_assert_ids(other, "1 2");
    assert_no_begin(other, &f.other, ST_DOUBT, "host.db");
    c = t_open(&f.copy, &f.h2);
    t_begin(c, &f.h2);
    t_assert_ids(other, "1 2 3");
    t_rollback(c, &f.h2);
    add(other, &f.other, 4);
    t_assert_ids(c, "1 2 3 4");
    st_close(c);
    st_close(other);
    fix_end(&f);
}

/* A host whose row cannot be read decides nothing. */
static void a_host_that_cannot_be_read(void **state)
{
    (void)state;
    fix f;
    st_error err = {0, ""};
    char buf[64];
    fix_init(&f);
    prepare_and_die(&f, 1);
    st_conn *c = t_open(&f.copy, &f.h2);
    f.mine.answer = ST_IO;
    assert_int_equal(t_ids_rc(c, buf, sizeof buf, &err), ST_IO);
    assert_string_equal(err.text, "the host cannot be read");
    assert_no_begin(c, &f.h2, ST_IO, "the host cannot be read");
    f.mine.answer = ST_OK;
    t_assert_ids(c, "1 2 3");
    t_begin(c, &f.h2);
    t_rollback(c, &f.h2);
    st_close(c);
    c = t_open(&f.copy, &f.other);
    t_assert_ids(c, "1 2 3");
    st_close(c);
    fix_end(&f);
}

/* The very host file has no such row: its part was undone. In another file, a copy say, the row may
** still come. */
static void a_host_without_the_row(void **state)
{
    (void)state;
    fix f;
    fix_init(&f);
    prepare_and_die(&f, 1);
    st_conn *c = t_open(&f.copy, &f.h2);
    f.mine.answer = ST_NOTFOUND;
    t_assert_ids(c, "1 2");
    f.mine.ino++;
    assert_no_begin(c, &f.h2, ST_DOUBT, "host.db");
    f.mine.ino--;
    add(c, &f.h2, 4);
    t_assert_ids(c, "1 2 4");
    st_close(c);
    fix_end(&f);
}

/* The verdict can be had written before the row that holds it goes away. */
static void settling_by_uuid(void **state)
{
    (void)state;
    fix f;
    st_error err = {0, ""};
    fix_init(&f);
    prepare_and_die(&f, 1);
    st_conn *c = t_open(&f.copy, &f.h2), *other = t_open(&f.copy, &f.other);
    int holds;
    t_ok(&err, st_settle(c, 0, f.strange.uuid, &holds, &err));
    t_assert_ids(other, "1 2");
    t_ok(&err, st_settle(c, 0, f.mine.uuid, &holds, &err));
    t_assert_ids(other, "1 2 3");
    t_ok(&err, st_settle(c, 0, f.mine.uuid, &holds, &err));
    add(other, &f.other, 4);
    st_close(c);
    st_close(other);
    fix_end(&f);
}

/* A host without a file: what it prepared counts when it is gone, unless it took it back. */
static void a_host_without_a_file(void **state)
{
    (void)state;
    fix f;
    fix_init(&f);
    st_conn *self = t_open(&f.d, &f.self);
    t_begin(self, &f.self);
    t_put(self, 3, "three");
    assert_int_equal(t_prepare(self, &f.self), 0);
    t_assert_ids(f.c, "1 2"); // its writer lives and may still take it back
    die(&f);
    t_rollback(self, &f.self);
    st_conn *c = t_open(&f.copy, &f.other);
    t_assert_ids(c, "1 2 3");
    add(c, &f.other, 4);
    t_assert_ids(c, "1 2 3 4");
    st_close(c);
    die(&f); // after the rollback
    c = t_open(&f.copy, &f.other);
    t_assert_ids(c, "1 2");
    add(c, &f.other, 4);
    t_assert_ids(c, "1 2 4");
    st_close(c);
    st_close(self);
    fix_end(&f);
}

/* A second prepare voids the first, whatever the host's row says of that. */
static void the_last_prepare_counts(void **state)
{
    (void)state;
    fix f;
    fix_init(&f);
    t_begin(f.c, &f.h);
    t_put(f.c, 3, "three");
    int64_t first = t_prepare(f.c, &f.h);
    t_put(f.c, 4, "four");
    int64_t second = t_prepare(f.c, &f.h);
    assert_true(second > first);
    die(&f);
    t_rollback(f.c, &f.h);
    f.mine.txid = first;
    st_conn *c = t_open(&f.copy, &f.h2);
    t_assert_ids(c, "1 2");
    f.mine.txid = second;
    t_assert_ids(c, "1 2 3 4");
    st_close(c);
    fix_end(&f);
}

/* An attempt that was taken back, and what its host commits in its place: where the power goes
** before the disk has the latter, the former must not count for it. */
static void what_was_taken_back_has_an_id_of_its_own(void **state)
{
    (void)state;
    fix f;
    fix_init(&f);
    for (int64_t id = 3; id < 40; id++) {
        t_begin(f.c, &f.h);
        t_put(f.c, id, "three");
        int64_t first = t_prepare(f.c, &f.h);
        die(&f);
        t_rollback(f.c, &f.h);
        t_begin(f.c, &f.h);
        t_put(f.c, 100, "other"); // as many frames
        int64_t second = t_prepare(f.c, &f.h);
        t_rollback(f.c, &f.h);
        assert_true(first != second);
        f.mine.txid = second;
        st_conn *c = t_open(&f.copy, &f.h2);
        t_assert_ids(c, "1 2");
        st_close(c);
        f.mine.txid = 0;
    }
    fix_end(&f);
}

/* When the row is gone that said so, the disk must say that a transaction counts. */
static void settling_is_synced(void **state)
{
    (void)state;
    t_dir d = t_dir_new(), copy = t_dir_new();
    t_db db = t_db_new(1);
    t_host h, h2;
    t_spec spec = {.dim = T_DIM, .synchronous = "full"};
    t_rng r = t_rng_start(11);
    st_error err = {0, ""};
    int holds;
    size_t n;
    t_host_init(&h, &db);
    t_disk_on();
    st_conn *c = t_open_spec(&d, &h, &spec);
    t_begin(c, &h);
    t_put(c, 1, "one");
    t_commit(c, &h);
    t_ok(&err, st_settle(c, 0, db.uuid, &holds, &err));
    assert_int_equal(holds, 0);
    t_db gone = db;
    gone.answer = ST_NOTFOUND;
    t_host_init(&h2, &gone);
    for (int i = 0; i < 40; i++) {
        unsigned char *log = t_disk_crash(d.log, &r, &n);
        assert_non_null(log);
        t_dir_copy(&d, &copy);
        t_write_file(copy.log, log, n);
        free(log);
        st_conn *other;
        t_ok(&err, t_try_open(&copy, &h2, &spec, &other, &err));
        t_assert_ids(other, "1");
        st_close(other);
    }
    st_close(c);
    t_disk_off();
    t_dir_remove(&d);
    t_dir_remove(&copy);
}

/* The bytes of another moment into the copy's log, as its writer would: in place. */
static void write_into_copy(const fix *f, const unsigned char *p, size_t n)
{
    FILE *file = fopen(f->copy.log, "r+b");
    assert_non_null(file);
    assert_int_equal(fwrite(p, 1, n, file), n);
    fclose(file);
}

/* A process dies between its commit frame and the header. Another one, long at work on the store,
** finds the frame: nobody needs to be asked. */
static void a_commit_frame_without_its_header(void **state)
{
    (void)state;
    fix f;
    size_t n, page_n;
    fix_init(&f);
    die(&f);
    st_conn *c = t_open(&f.copy, &f.other);
    t_begin(c, &f.other);
    t_rollback(c, &f.other); // it has looked at the log's end, and will not look again for that
    t_begin(f.c, &f.h);
    t_put(f.c, 3, "three");
    t_prepare(f.c, &f.h);
    unsigned char *page = t_read_file(f.d.log, &page_n);
    t_commit(f.c, &f.h);
    unsigned char *log = t_read_file(f.d.log, &n);
    memcpy(log, page, ST_LOG_PAGE);
    write_into_copy(&f, log, n);
    t_assert_ids(c, "1 2");
    t_begin(c, &f.other);
    t_assert_ids(c, "1 2 3");
    t_rollback(c, &f.other);
    add(c, &f.other, 4);
    t_assert_ids(c, "1 2 3 4");
    st_close(c);
    free(page);
    free(log);
    fix_end(&f);
}

/* -------------------------------------------------------------------------------- a damaged log */

static uint64_t counter(const unsigned char *page, int slot)
{
    uint64_t v;
    memcpy(&v, page + slot * (ST_LOG_PAGE / 2) + 16, 8);
    return v;
}

/* Damages the copy's newest header slot, or both. */
static void damage_header(fix *f, int both)
{
    size_t n;
    unsigned char *p = t_read_file(f->copy.log, &n);
    int newest = counter(p, 1) > counter(p, 0);
    p[newest * (ST_LOG_PAGE / 2) + 60] ^= 4;
    if (both)
        p[!newest * (ST_LOG_PAGE / 2) + 60] ^= 4;
    t_write_file(f->copy.log, p, n);
    free(p);
}

/* The slot before the last commit's names it as prepared; its commit frame, too, says that it
** counts. */
static void the_newest_header_slot_is_damaged(void **state)
{
    (void)state;
    fix f;
    fix_init(&f);
    die(&f);
    damage_header(&f, 0);
    st_conn *c = t_open(&f.copy, &f.h2);
    t_assert_ids(c, "1 2");
    st_close(c);
    die(&f);
    damage_header(&f, 0);
    c = t_open(&f.copy, &f.other);
    t_begin(c, &f.other);
    t_assert_ids(c, "1 2");
    t_rollback(c, &f.other);
    add(c, &f.other, 7);
    st_close(c);
    c = t_open(&f.copy, &f.h2);
    t_assert_ids(c, "1 2 7");
    st_close(c);
    fix_end(&f);
}

static void both_header_slots_are_damaged(void **state)
{
    (void)state;
    fix f;
    st_conn *c;
    st_error err = {0, ""};
    fix_init(&f);
    die(&f);
    damage_header(&f, 1);
    assert_int_equal(t_try_open(&f.copy, &f.h2, NULL, &c, &err), ST_CORRUPT);
    assert_non_null(strstr(err.text, "header is damaged"));
    assert_null(c);
    // The file alone is whole: what was folded is there.
    assert_int_equal(unlink(f.copy.log), 0);
    c = t_open(&f.copy, &f.h2);
    t_assert_ids(c, "1");
    add(c, &f.h2, 9);
    t_assert_ids(c, "1 9");
    st_close(c);
    fix_end(&f);
}

/* Where each transaction of a log is safe: behind its commit frame, or, for the last one, which the
** header vouches for, behind its prepare frame. Returns how many there are. */
static size_t safe_ends(const unsigned char *log, size_t n, size_t *end)
{
    size_t count = 0, prepare = 0;
    for (size_t at = ST_LOG_PAGE; at < n; at += (st_get32(log + at) + 7) & ~(size_t)7) {
        size_t next = at + ((st_get32(log + at) + 7) & ~(size_t)7);
        if (st_get16(log + at + 4) == ST_FRAME_PREPARE)
            prepare = next;
        if (st_get16(log + at + 4) == ST_FRAME_COMMIT)
            end[count++] = next;
    }
    end[count - 1] = prepare;
    return count;
}

/* A log cut off anywhere shows the transactions that are whole before the cut, no more and no less,
** and takes more. */
static void a_log_cut_off_anywhere(void **state)
{
    (void)state;
    static const char *const states[] = {"1", "1 2", "1 2 3", "2 3"};
    fix f;
    size_t n, end[8], step = getenv("T_ALL") ? 1 : 61;
    unsigned char *log;
    fix_init(&f);
    add(f.c, &f.h, 3);
    t_begin(f.c, &f.h);
    t_delete(f.c, 1);
    t_set_content(f.c, 2, "changed");
    t_commit(f.c, &f.h);
    log = t_read_file(f.d.log, &n);
    assert_int_equal(safe_ends(log, n, end), 3);
    for (size_t cut = ST_LOG_PAGE; cut <= n; cut += step) {
        char want[80];
        size_t k = 0;
        die(&f);
        assert_int_equal(truncate(f.copy.log, (off_t)cut), 0);
        st_conn *c = t_open(&f.copy, &f.h2);
        while (k < 3 && end[k] <= cut)
            k++;
        t_assert_ids(c, states[k]);
        add(c, &f.h2, 50);
        snprintf(want, sizeof want, "%s 50", states[k]);
        t_assert_ids(c, want);
        st_close(c);
        c = t_open(&f.copy, &f.other);
        t_assert_ids(c, want);
        st_close(c);
    }
    free(log);
    fix_end(&f);
}

/* Whole transactions behind a damaged one are lost with it, and stay lost: the next writer writes
** over the first of them, and none of the others may come back after it. */
static void what_lies_behind_damage_stays_lost(void **state)
{
    (void)state;
    fix f;
    size_t n, at;
    fix_init(&f);
    unsigned char *log = t_read_file(f.d.log, &at);
    free(log);
    for (int64_t id = 3; id < 9; id++)
        add(f.c, &f.h, id); // all of one size
    die(&f);
    log = t_read_file(f.copy.log, &n);
    log[at + 50] ^= 1; // in the put of row 3
    t_write_file(f.copy.log, log, n);
    free(log);
    st_conn *c = t_open(&f.copy, &f.other);
    t_assert_ids(c, "1 2");
    add(c, &f.other, 30);
    t_assert_ids(c, "1 2 30");
    t_dir again = t_dir_new();
    t_dir_copy(&f.copy, &again);
    st_close(c);
    c = t_open(&again, &f.other);
    t_assert_ids(c, "1 2 30");
    add(c, &f.other, 31);
    t_assert_ids(c, "1 2 30 31");
    st_close(c);
    t_dir_remove(&again);
    fix_end(&f);
}

/* A host in WAL mode that says no: a recovery may yet say yes, so that nothing is thrown away until
** the host has committed something else. ids: what is there when the host's row holds txid. */
static void assert_after_recovery(const t_dir *from, fix *f, int64_t txid, const char *ids)
{
    t_dir d = t_dir_new();
    t_host h;
    t_host_init(&h, &f->mine);
    int64_t before = f->mine.txid;
    f->mine.txid = txid;
    t_dir_copy(from, &d);
    st_conn *c = t_open(&d, &h);
    t_assert_ids(c, ids);
    f->mine.wal = 0; // whoever is alone with the host reads what is final
    add(c, &h, 90);
    f->mine.wal = 1;
    char want[64];
    snprintf(want, sizeof want, "%s 90", ids);
    t_assert_ids(c, want);
    t_flush(c);
    t_verify(c);
    st_close(c);
    c = t_open(&d, &h);
    t_assert_ids(c, want);
    st_close(c);
    t_dir_remove(&d);
    f->mine.txid = before;
}

static void a_no_that_becomes_a_yes(void **state)
{
    (void)state;
    fix f;
    fix_init(&f);
    f.mine.wal = 1;
    t_begin(f.c, &f.h);
    t_put(f.c, 3, "three");
    int64_t first = t_prepare(f.c, &f.h);
    die(&f);
    t_rollback(f.c, &f.h);
    f.mine.txid = 0;
    st_conn *c = t_open(&f.copy, &f.h2);
    t_dir later = t_dir_new();
    st_error err = {0, ""};
    uint64_t rows;
    t_assert_ids(c, "1 2");
    for (int i = 0; i < 3; i++) { // whatever is begun and rolled back, changed and prepared or not
        t_begin(c, &f.h2);
        assert_int_equal(st_holds_doubt(c), 1);
        if (i)
            t_put(c, 4, "four");
        if (i == 2)
            t_prepare(c, &f.h2);
        t_rollback(c, &f.h2);
        f.mine.txid = 0;
        t_dir_copy(&f.copy, &later);
        assert_after_recovery(&later, &f, first, "1 2 3");
        assert_after_recovery(&later, &f, 0, "1 2");
    }
    assert_int_equal(st_flush(c, 0, &rows, &err), ST_DOUBT);
    // Prepared behind it: the host's row says which of the two it was, or neither.
    t_begin(c, &f.h2);
    t_put(c, 4, "four");
    t_set_importance(c, 1, 0.5);
    int64_t second = t_prepare(c, &f.h2);
    t_dir_copy(&f.copy, &later);
    assert_after_recovery(&later, &f, first, "1 2 3");
    assert_after_recovery(&later, &f, 0, "1 2");
    assert_after_recovery(&later, &f, second, "1 2 4");
    // A third behind both of them.
    t_host h3;
    t_host_init(&h3, &f.mine);
    f.mine.txid = 0;
    st_conn *c3 = t_open(&later, &h3);
    t_begin(c3, &h3);
    t_put(c3, 5, "five");
    int64_t third = t_prepare(c3, &h3);
    t_dir last = t_dir_new();
    t_dir_copy(&later, &last);
    assert_after_recovery(&last, &f, first, "1 2 3");
    assert_after_recovery(&last, &f, second, "1 2 4");
    assert_after_recovery(&last, &f, third, "1 2 5");
    assert_after_recovery(&last, &f, 0, "1 2");
    t_rollback(c3, &h3);
    st_close(c3);
    // And committed: it is over.
    f.mine.txid = second;
    st_commit(c);
    t_assert_ids(c, "1 2 4");
    t_begin(c, &f.h2);
    assert_int_equal(st_holds_doubt(c), 0);
    t_rollback(c, &f.h2);
    t_dir_copy(&f.copy, &last);
    assert_after_recovery(&last, &f, second, "1 2 4");
    t_flush(c);
    t_verify(c);
    st_close(c);
    t_dir_remove(&later);
    t_dir_remove(&last);
    fix_end(&f);
}

/* An empty transaction is enough to make it final. */
static void a_commit_of_nothing_settles(void **state)
{
    (void)state;
    fix f;
    fix_init(&f);
    f.mine.wal = 1;
    prepare_and_die(&f, 0);
    f.mine.txid = 0;
    st_conn *c = t_open(&f.copy, &f.h2);
    t_begin(c, &f.h2);
    assert_true(t_prepare(c, &f.h2) > 0);
    st_commit(c);
    t_assert_ids(c, "1 2");
    t_flush(c);
    t_assert_ids(c, "1 2");
    st_close(c);
    fix_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_host_that_did_not_commit),
        cmocka_unit_test(a_host_that_did_commit),
        cmocka_unit_test(a_host_that_cannot_be_read),
        cmocka_unit_test(a_host_without_the_row),
        cmocka_unit_test(settling_by_uuid),
        cmocka_unit_test(a_host_without_a_file),
        cmocka_unit_test(the_last_prepare_counts),
        cmocka_unit_test(what_was_taken_back_has_an_id_of_its_own),
        cmocka_unit_test(settling_is_synced),
        cmocka_unit_test(a_no_that_becomes_a_yes),
        cmocka_unit_test(a_commit_of_nothing_settles),
        cmocka_unit_test(a_commit_frame_without_its_header),
        cmocka_unit_test(the_newest_header_slot_is_damaged),
        cmocka_unit_test(both_header_slots_are_damaged),
        cmocka_unit_test(a_log_cut_off_anywhere),
        cmocka_unit_test(what_lies_behind_damage_stays_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
