/*
 * store_tool.c - a store with damaged bytes: an error or right rows, never a crash, a hang or a
 * large allocation
 *
 * The store has rows in the file (several flushes, so several runs of ids and words, deleted and
 * changed rows, all kinds of columns) and in its log. Each case damages a copy, opens it, reads and
 * asks everything, verifies, writes and flushes. Wrong rows out of a damaged file are allowed only
 * if verify finds fault with it (values have no checksum of their own when they are read); a
 * damaged log may only show the rows of some commit.
 *
 * T_ALL takes every byte; else some, by chance.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "t_model.h"
#include "vec.h"

enum { COMMITS_MAX = 64, SECONDS = 60, REQUEST_MAX = 16 << 20 };

typedef struct sample {
    t_dir d;
    unsigned char *h5, *log;
    size_t h5_n, log_n;
    t_table *commit[COMMITS_MAX]; /* rows after each commit; the last ones are in the log */
    int ncommit, nbase;           /* commits that the file holds */
    t_db db;
} sample;

static sample samples[2];
static t_dir work;
static size_t largest; /* request for memory in a case */
static int broken;     /* a case is running, or has failed */

/* ------------------------------------------------------------------------------- watched memory */

static void *get(void *ctx, size_t n)
{
    (void)ctx;
    largest = n > largest ? n : largest;
    return n > REQUEST_MAX ? NULL : malloc(n ? n : 1);
}

static void *resize(void *ctx, void *p, size_t n)
{
    (void)ctx;
    largest = n > largest ? n : largest;
    return n > REQUEST_MAX ? NULL : realloc(p, n ? n : 1);
}

static void release(void *ctx, void *p)
{
    (void)ctx;
    free(p);
}

/* ----------------------------------------------------------------------------------- the sample */

static void note_commit(sample *s, const t_table *t)
{
    assert_true(s->ncommit < COMMITS_MAX);
    s->commit[s->ncommit++] = t_table_copy(t);
}

/* One transaction of every kind of change. */
static void change(sample *s, st_conn *c, t_host *h, t_rng *r, t_table *t)
{
    st_error err = {0, ""};
    t_begin(c, h);
    for (uint64_t k = 1 + t_rng_below(r, 6); k-- > 0;) {
        int64_t id = (int64_t)t_rng_below(r, 4000), got;
        t_mrow *m = t_mrow_random(r, T_DIM, id);
        st_row row = t_mrow_row(m);
        if (t_table_find(t, id)) {
            t_mrow_unref(m);
            continue;
        }
        t_ok(&err, st_put(c, &row, &got, &err));
        t_table_set(t, m);
    }
    for (uint64_t k = t_rng_below(r, 3); k-- > 0 && t->n;) {
        t_mrow *old = t->row[t_rng_below(r, t->n)], *other, *next;
        uint8_t changed[T_NCOL] = {0};
        for (int col = 1; col < T_NCOL; col++)
            changed[col] = t_rng_below(r, 5) == 0;
        other = t_mrow_random(r, T_DIM, old->id);
        next = t_mrow_merge(old, other, changed, T_DIM);
        st_row row = {other->given, next->tokens, next->ntokens};
        t_ok(&err, st_update(c, old->id, &row, changed, &err));
        t_table_set(t, next);
        t_mrow_unref(other);
    }
    if (t->n > 5 && t_rng_below(r, 2)) {
        int64_t id = t->row[t_rng_below(r, t->n)]->id;
        t_delete(c, id);
        t_table_remove(t, id);
    }
    if (t->n > 5 && t_rng_below(r, 2)) {
        int64_t id = t->row[t_rng_below(r, t->n)]->id;
        t_ok(&err, st_evict(c, id, "test", 1, &err));
        t_table_evict(t, id, t_last_event(c));
    }
    for (uint64_t k = t_rng_below(r, 5); k-- > 0;)
        t_change_records(c, t, r, 0);
    if (t_rng_below(r, 6) == 0)
        t_ok(&err, st_set_option(c, "agent", "somebody", &err));
    t_commit(c, h);
    note_commit(s, t);
}

static void make_sample(sample *s, const char *compression, uint64_t seed)
{
    t_rng r = {seed};
    t_host h;
    const t_spec spec = {T_DIM, compression, "100000000", "off", NULL};
    t_table *t = t_table_new(T_DIM, VEC_COSINE);
    s->d = t_dir_new();
    s->db = t_db_new(1);
    t_host_init(&h, &s->db);
    st_conn *c = t_open_spec(&s->d, &h, &spec);
    note_commit(s, t);
    for (int i = 0; i < 30; i++) {
        change(s, c, &h, &r, t);
        if (i % 3 == 2) {
            t_flush(c);
            s->nbase = s->ncommit;
        }
    }
    for (int i = 0; i < 5; i++)
        change(s, c, &h, &r, t);
    t_verify(c);
    s->h5 = t_read_file(s->d.h5, &s->h5_n);
    s->log = t_read_file(s->d.log, &s->log_n);
    st_close(c);
    t_table_free(t);
    print_message("# %s: a file of %zu bytes, a log of %zu\n", compression, s->h5_n, s->log_n);
}

static int make(void **state)
{
    const h5_allocator h5 = {get, resize, release, NULL};
    const vec_allocator vec = {get, resize, release, NULL};
    (void)state;
    h5_set_allocator(&h5);
    vec_set_allocator(&vec);
    make_sample(&samples[0], "none", 1);
    make_sample(&samples[1], "zstd:1", 2);
    work = t_dir_new();
    return 0;
}

static int drop(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < samples[i].ncommit; k++)
            t_table_free(samples[i].commit[k]);
        free(samples[i].h5);
        free(samples[i].log);
        t_dir_remove(&samples[i].d);
    }
    t_dir_remove(&work);
    return 0;
}

/* --------------------------------------------------------------------------------------- a case */

/* Every failure has its text, and is none of the caller's making. */
static void look_at_failure(int rc, const st_error *err, const char *what)
{
    if (rc != err->code || !err->text[0] || rc == ST_MISUSE || rc == ST_NOMEM || rc == ST_STOPPED)
        fail_msg("%s: code %d, text '%s' of %d", what, rc, err->text, err->code);
}

/* Asks everything; answers may be wrong, failures are looked at. */
static void ask(st_view *v)
{
    static const float vec[T_DIM] = {1, 2, 3};
    uint8_t tokens[64];
    st_value list[3] = {t_int(5), t_int(2000), t_int(3999)};
    st_term terms[3] = {{.col = ST_COL_ID, .op = ST_IN, .list = list, .nlist = 3},
                        {.col = ST_COL_SESSION, .op = ST_EQ, .value = t_text("w1 w2")},
                        {.col = ST_COL_IMPORTANCE, .op = ST_GE, .value = t_real(0.25)}};
    st_query q = {.terms = terms,
                  .tokens = tokens,
                  .ntokens = t_tokens("w0 w1 w2", 8, tokens),
                  .k = -1,
                  .vector_weight = 1,
                  .text_weight = 1,
                  .rrf_k = 60};
    for (int kind = 0; kind < 16; kind++) {
        st_cursor *cur = NULL;
        st_error err = {0, ""};
        q.nterm = kind >= 12 ? 3 : 0;
        q.terms = terms + (kind & 1);
        q.nterm = q.nterm ? q.nterm - (size_t)(kind & 1) : 0;
        q.vector = kind & 1 ? vec : NULL;
        q.has_text = kind >> 1 & 1;
        q.order = kind & 4 ? (kind & 3 ? ST_ORDER_WORST : ST_ORDER_ID_DESC) : ST_ORDER_BEST;
        q.has_as_of = kind == 8;
        int rc = st_search(v, &q, &cur, &err);
        for (int n = 0; !rc && (rc = st_cursor_next(cur, &err)) > 0; n++) {
            if (n > 100000)
                fail_msg("a search without end");
            rc = ST_OK;
        }
        st_cursor_close(cur);
        if (rc)
            look_at_failure(rc, &err, "a search");
    }
}

/* Evicted rows and records, counted and by their keys. */
static void ask_records(st_view *v)
{
    uint64_t n, row;
    for (int side = 0; side < ST_SIDES; side++) {
        st_value key = st_side_column_type(side, 0) == ST_TEXT ? t_text("s7") : t_int(7);
        st_error err = {0, ""};
        int rc = st_side_count(v, side, &n, &err);
        if (rc)
            look_at_failure(rc, &err, "counting records");
        err = (st_error){0, ""};
        rc = st_side_find(v, side, &key, &row, &err);
        if (rc && rc != ST_NOTFOUND)
            look_at_failure(rc, &err, "a record by its key");
    }
    for (int i = 0; i < 8; i++) {
        st_error err = {0, ""};
        int rc = st_evicted_find(v, i * 500, &row, &err);
        if (rc && rc != ST_NOTFOUND)
            look_at_failure(rc, &err, "an evicted row");
    }
}

typedef struct outcome {
    int opened, readable;
    int state; /* the commit that the rows are those of, or -1 */
    int faults;
} outcome;

static void read_rows(const sample *s, st_conn *c, outcome *o)
{
    st_error err = {0, ""};
    st_view *v;
    t_table *t;
    int rc = st_view_open(c, &v, &err);
    if (rc) {
        look_at_failure(rc, &err, "a view");
        return;
    }
    t = t_table_of(v, T_DIM, VEC_COSINE, &err);
    if (!t)
        look_at_failure(err.code, &err, "a scan");
    o->readable = t != NULL;
    for (int k = 0; t && k < s->ncommit; k++)
        if (t_table_same(t, s->commit[k]))
            o->state = k;
    t_table_free(t);
    for (int i = 0; i < 4; i++) {
        uint64_t row;
        err = (st_error){0, ""};
        rc = st_view_find(v, i * 1111, &row, &err);
        if (rc && rc != ST_NOTFOUND)
            look_at_failure(rc, &err, "a row by id");
    }
    ask_records(v);
    ask(v);
    st_view_close(v);
}

static int write_records(st_conn *c, st_error *err)
{
    st_value v[ST_SIDE_COLS_MAX] = {t_text("a key of its own")};
    st_value key = t_text("s7");
    int rc = st_side_put(c, ST_SESSIONS, v, NULL, err);
    if (!rc) {
        rc = st_side_delete(c, ST_SESSIONS, &key, err);
        if (rc == ST_NOTFOUND)
            *err = (st_error){rc = ST_OK, ""};
    }
    return rc;
}

/* Writes and folds what can be written. */
static void write_rows(st_conn *c, t_host *h)
{
    st_error err = {0, ""};
    uint64_t n;
    int rc = t_begin_rc(c, h, &err);
    if (!rc) {
        t_row *r = malloc(sizeof *r);
        assert_non_null(r);
        t_row_init(r, 123456, "new words");
        t_row_vector(r, T_DIM, 1);
        rc = t_put_row(c, r, NULL, &err);
        rc = rc ? rc : st_evict(c, 123456, "test", 1, &err);
        rc = rc ? rc : write_records(c, &err);
        free(r);
        if (rc)
            t_rollback(c, h);
        else
            rc = t_commit_rc(c, h, &err);
    }
    if (rc)
        look_at_failure(rc, &err, "a commit");
    err = (st_error){0, ""};
    rc = st_flush(c, 0, &n, &err);
    if (rc)
        look_at_failure(rc, &err, "a flush");
    err = (st_error){0, ""};
    rc = st_compact(c, 0, &n, &err);
    if (rc)
        look_at_failure(rc, &err, "a compact");
}

static outcome try_case(const sample *s)
{
    outcome o = {0, 0, -1, 0};
    t_db db = s->db;
    t_host h;
    st_conn *c;
    st_error err = {0, ""};
    int rc;
    largest = 0;
    alarm(SECONDS); // a hang ends the program
    if (broken)     // a test that failed has left the store open: the files would not be read again
        fail_msg("an earlier test has failed");
    broken = 1;
    t_host_init(&h, &db);
    rc = t_try_open(&work, &h, NULL, &c, &err);
    if (rc) {
        look_at_failure(rc, &err, "opening");
    } else {
        o.opened = 1;
        read_rows(s, c, &o);
        err = (st_error){0, ""};
        rc = t_verify_rc(c, &err);
        o.faults = rc != ST_OK;
        if (rc)
            look_at_failure(rc, &err, "verify");
        write_rows(c, &h);
        st_close(c);
    }
    alarm(0);
    broken = 0;
    if (largest > REQUEST_MAX)
        fail_msg("%zu bytes were asked for", largest);
    return o;
}

static void put_files(const sample *s, const unsigned char *h5, size_t h5_n,
                      const unsigned char *log, size_t log_n)
{
    (void)s;
    t_write_file(work.h5, h5, h5_n);
    if (log)
        t_write_file(work.log, log, log_n);
    else
        unlink(work.log);
}

/* Damage to the file: rows that are those of no commit must be known to verify. */
static void check_file_case(const sample *s, const char *what, size_t at)
{
    outcome o = try_case(s);
    if (o.readable && o.state < 0 && !o.faults)
        fail_msg("%s at %zu: wrong rows, and verify finds nothing", what, at);
}

/* Steps over bytes: all of them with T_ALL. */
static size_t step(t_rng *r, size_t about)
{
    return getenv("T_ALL") ? 1 : 1 + t_rng_below(r, 2 * about);
}

/* --------------------------------------------------------------------------------------- damage */

static void flipped_bits_of_the_file(void **state)
{
    (void)state;
    t_rng r = t_rng_start(1);
    for (int i = 0; i < 2; i++) {
        sample *s = &samples[i];
        for (size_t at = 0; at < s->h5_n; at += step(&r, s->h5_n / 500)) {
            unsigned char bit = (unsigned char)(1 << t_rng_below(&r, 8));
            s->h5[at] ^= bit;
            put_files(s, s->h5, s->h5_n, s->log, s->log_n);
            s->h5[at] ^= bit;
            check_file_case(s, "a bit", at);
        }
    }
}

/* Numbers at the ends of their range where lengths, offsets and counts lie. */
static void extreme_numbers_in_the_file(void **state)
{
    (void)state;
    static const uint64_t extreme[] = {
        0,          1,          0x7fffffff, 0x80000000,          0xffffffff,
        1ull << 40, 1ull << 62, INT64_MAX,  (uint64_t)INT64_MIN, UINT64_MAX};
    t_rng r = t_rng_start(2);
    for (int i = 0; i < 2; i++) {
        sample *s = &samples[i];
        for (size_t at = 0; at + 8 <= s->h5_n; at += 8 * step(&r, s->h5_n / 8 / 500)) {
            unsigned char keep[8];
            size_t n = t_rng_below(&r, 2) ? 8 : 4;
            memcpy(keep, s->h5 + at, 8);
            memcpy(s->h5 + at, &extreme[t_rng_below(&r, 10)], n);
            put_files(s, s->h5, s->h5_n, s->log, s->log_n);
            memcpy(s->h5 + at, keep, 8);
            check_file_case(s, "a number", at);
        }
    }
}

/* A file that ends early is refused, or is of a state that ended before; never a fault of memory,
** though it is mapped. */
static void a_file_cut_off(void **state)
{
    (void)state;
    t_rng r = t_rng_start(3);
    for (int i = 0; i < 2; i++) {
        const sample *s = &samples[i];
        for (size_t n = 0; n < s->h5_n; n += step(&r, s->h5_n / 200)) {
            put_files(s, s->h5, n, s->log, s->log_n);
            outcome o = try_case(s);
            if (o.readable)
                fail_msg("a file of %zu bytes instead of %zu was read", n, s->h5_n);
        }
    }
}

/* A damaged log: the rows of some commit that the file has or that came after. */
static void flipped_bits_of_the_log(void **state)
{
    (void)state;
    t_rng r = t_rng_start(4);
    for (int i = 0; i < 2; i++) {
        sample *s = &samples[i];
        for (size_t at = 0; at < s->log_n; at += step(&r, s->log_n / 500)) {
            unsigned char bit = (unsigned char)(1 << t_rng_below(&r, 8));
            s->log[at] ^= bit;
            put_files(s, s->h5, s->h5_n, s->log, s->log_n);
            s->log[at] ^= bit;
            outcome o = try_case(s);
            if (o.readable && o.state < s->nbase - 1)
                fail_msg("bit at %zu of the log: rows of state %d, the file has %d", at, o.state,
                         s->nbase - 1);
        }
    }
}

static void no_log_and_foreign_logs(void **state)
{
    (void)state;
    sample *s = &samples[0];
    put_files(s, s->h5, s->h5_n, NULL, 0);
    outcome o = try_case(s);
    assert_int_equal(o.state, s->nbase - 1);
    put_files(s, s->h5, s->h5_n, samples[1].log, samples[1].log_n);
    o = try_case(s);
    assert_int_equal(o.opened, 0);
    for (size_t n = 0; n < 3; n++) {
        put_files(s, s->h5, s->h5_n, s->h5, n * 3000); // another kind of file in its place
        try_case(s);
    }
}

/* ------------------------------------------------------------------------------- hostile frames */

/* Frames of the log with payloads changed, cut and made up, all with right checksums. */
static size_t hostile_log(const sample *s, t_rng *r, unsigned char *out)
{
    st_log_header h;
    st_buf b = {0};
    size_t at = ST_LOG_PAGE, used;
    uint32_t read = 0, sum = 0;
    st_frame f;
    assert_int_equal(st_log_load(s->log, &h, NULL), ST_OK);
    while (st_frame_read(s->log + at, s->log_n - at, h.generation, &read, &f, &used)) {
        size_t start, n = t_rng_below(r, 6) ? f.n : t_rng_below(r, f.n + 1);
        int type = t_rng_below(r, 12) ? f.type : (int)t_rng_below(r, 20);
        uint64_t seq = t_rng_below(r, 60) ? f.sequence : t_rng_next(r);
        assert_int_equal(st_frame_begin(&b, &start, NULL), ST_OK);
        assert_int_equal(st_buf_add(&b, f.payload, n, NULL), ST_OK);
        for (uint64_t k = n && t_rng_below(r, 3) == 0 ? 1 + t_rng_below(r, 4) : 0; k-- > 0;)
            b.p[start + ST_FRAME_HEAD + t_rng_below(r, n)] = (uint8_t)t_rng_next(r);
        assert_int_equal(
            st_frame_end(&b, start, type, h.generation, seq, f.transaction, &sum, NULL), ST_OK);
        at += used;
    }
    h.committed_len = t_rng_below(r, 20) ? ST_LOG_PAGE + b.n
                                         : ST_LOG_PAGE + t_rng_below(r, 1 << 20) * 8;
    h.committed_sum = sum;
    h.prepared_len = t_rng_below(r, 10) ? 0 : h.committed_len + t_rng_below(r, 1 << 20) * 8;
    h.last_seq = t_rng_below(r, 10) ? h.last_seq : t_rng_next(r);
    st_log_format(out, &h);
    memcpy(out + ST_LOG_PAGE, b.p, b.n);
    at = ST_LOG_PAGE + b.n;
    st_buf_free(&b);
    return at;
}

static void frames_of_an_enemy(void **state)
{
    (void)state;
    t_rng r = t_rng_start(5);
    for (int i = 0; i < (getenv("T_ALL") ? 20000 : 800); i++) {
        const sample *s = &samples[i & 1];
        unsigned char *log = calloc(1, s->log_n + 4096);
        assert_non_null(log);
        size_t n = hostile_log(s, &r, log);
        put_files(s, s->h5, s->h5_n, log, n);
        try_case(s);
        free(log);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flipped_bits_of_the_file), cmocka_unit_test(extreme_numbers_in_the_file),
        cmocka_unit_test(a_file_cut_off),           cmocka_unit_test(flipped_bits_of_the_log),
        cmocka_unit_test(no_log_and_foreign_logs),  cmocka_unit_test(frames_of_an_enemy),
    };
    vec_init();
    return cmocka_run_group_tests(tests, make, drop);
}
