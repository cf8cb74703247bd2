/*
 * t_st_threads.c - one writer, several readers, one that flushes: threads over one store
 *
 * Every transaction writes, changes or deletes rows in pairs (ids 2k and 2k + 1 with one
 * importance, one word and one vector). Whatever a reader asks, it must see whole pairs; a view
 * goes on showing what it showed. Run under the thread sanitizer by `make test-tsan`.
 *
 * T_STEPS: transactions of the writer (default 2000).
 *
 * SPDX-License-Identifier: MIT
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "t_store.h"
#include "vec.h"

enum { READERS = 3, PAIRS = 60 };

static t_dir d;
static int64_t host_txid; /* of the one host that all share; atomic */
static int running;       /* atomic */
static int faults;        /* atomic */
static char fault_text[READERS + 2][512];

static int verdict(void *ctx, const uint8_t uuid[16], int64_t *txid, int *firm, st_error *err)
{
    (void)ctx;
    (void)uuid;
    (void)firm;
    (void)err;
    *txid = __atomic_load_n(&host_txid, __ATOMIC_SEQ_CST);
    return ST_OK;
}

/* cmocka's own failures are for its thread only. */
static void fault(int who, const char *what, long long a, long long b)
{
    if (!fault_text[who][0])
        snprintf(fault_text[who], sizeof fault_text[who], "thread %d: %s (%lld, %lld)", who, what,
                 a, b);
    __atomic_add_fetch(&faults, 1, __ATOMIC_SEQ_CST);
}

static st_conn *open_one(const st_host *host, int who)
{
    st_create create = {.dim = T_DIM, .fingerprint = "words"};
    st_option o[] = {{"autoflush", "20000"}, {"compression", "zstd:1"}, {"synchronous", "full"}};
    st_error err = {0, ""};
    st_conn *c = NULL;
    create.options = o;
    create.noption = 3;
    if (st_open(d.h5, ST_OPEN_CREATE, &create, host, &c, &err))
        fault(who, err.text, 0, 0);
    return c;
}

/* -------------------------------------------------------------------------------------- writing */

static int put_pair(st_conn *c, int64_t k, double x, st_error *err)
{
    int rc = ST_OK;
    for (int i = 0; i < 2 && !rc; i++) {
        st_value v[ST_COL_USER] = {0};
        float vec[T_DIM] = {(float)k, 1, (float)x};
        uint8_t tokens[64];
        char word[32];
        int n = snprintf(word, sizeof word, "p%lld all", (long long)k);
        st_row row = {v, tokens, t_tokens(word, (size_t)n, tokens)};
        int64_t id;
        v[ST_COL_ID] = t_int(2 * k + i);
        v[ST_COL_CONTENT] = t_bytes(ST_TEXT, word, (size_t)n);
        v[ST_COL_IMPORTANCE] = t_real(x);
        v[ST_COL_EMBEDDING] = t_bytes(ST_BLOB, vec, sizeof vec);
        rc = st_put(c, &row, &id, err);
    }
    return rc;
}

static int change_pair(st_conn *c, int64_t k, double x, st_error *err)
{
    st_value v[ST_COL_USER] = {0};
    uint8_t changed[ST_COL_USER] = {0};
    st_row row = {v, NULL, 0};
    int rc = ST_OK;
    v[ST_COL_IMPORTANCE] = t_real(x);
    changed[ST_COL_IMPORTANCE] = 1;
    for (int i = 0; i < 2 && !rc; i++)
        rc = st_update(c, 2 * k + i, &row, changed, err);
    return rc;
}

static int drop_pair(st_conn *c, int64_t k, st_error *err)
{
    int rc = st_delete(c, 2 * k, err);
    return rc ? rc : st_delete(c, 2 * k + 1, err);
}

static int transaction(st_conn *c, t_rng *r, int *there, st_error *err)
{
    const st_identity who = {{7}, 1, 1, "host.db"};
    int64_t txid = 0;
    uint8_t owner[16];
    int after[PAIRS], rc = st_begin(c, 2000, &who, err);
    memcpy(after, there, sizeof after);
    for (uint64_t n = 1 + t_rng_below(r, 4); n-- > 0 && !rc;) {
        int64_t k = (int64_t)t_rng_below(r, PAIRS);
        double x = (double)t_rng_below(r, 1000) / 1000;
        uint64_t what = t_rng_below(r, 4);
        rc = !after[k] ? put_pair(c, k, x, err)
             : what    ? change_pair(c, k, x, err)
                       : drop_pair(c, k, err);
        after[k] = !after[k] || what;
    }
    rc = rc ? rc : st_prepare(c, 0, &txid, owner, err);
    if (rc || t_rng_below(r, 8) == 0) {
        st_rollback(c);
        return rc;
    }
    if (txid)
        __atomic_store_n(&host_txid, txid, __ATOMIC_SEQ_CST);
    st_commit(c);
    memcpy(there, after, sizeof after);
    return ST_OK;
}

static void *write_all(void *arg)
{
    const st_host host = {.verdict = verdict};
    const char *given = getenv("T_STEPS");
    long steps = given ? atol(given) : 2000;
    int there[PAIRS] = {0};
    t_rng r = {1};
    st_conn *c = open_one(&host, READERS);
    (void)arg;
    for (long i = 0; c && i < steps; i++) {
        st_error err = {0, ""};
        if (transaction(c, &r, there, &err))
            fault(READERS, err.text, i, 0);
    }
    __atomic_store_n(&running, 0, __ATOMIC_SEQ_CST);
    st_close(c);
    return NULL;
}

/* -------------------------------------------------------------------------------------- reading */

/* Every row of a search has its other half, with the same importance. Returns the rows. */
static long check_pairs(st_view *v, const st_query *q, int who)
{
    st_cursor *cur = NULL;
    st_error err = {0, ""};
    double half[PAIRS];
    int seen[PAIRS] = {0}, rc = st_search(v, q, &cur, &err);
    long n = 0;
    while (!rc && (rc = st_cursor_next(cur, &err)) > 0) {
        st_value id, x;
        uint64_t row = st_cursor_row(cur);
        rc = st_view_value(v, row, ST_COL_ID, &id, &err);
        rc = rc ? rc : st_view_value(v, row, ST_COL_IMPORTANCE, &x, &err);
        if (rc)
            break;
        if (id.i < 0 || id.i >= 2 * PAIRS) {
            fault(who, "a row that nobody wrote", id.i, 0);
            break;
        }
        if (seen[id.i / 2] && half[id.i / 2] != x.r)
            fault(who, "halves of two transactions", id.i, 0);
        half[id.i / 2] = x.r;
        seen[id.i / 2] += 1 + (int)(id.i & 1);
        n++;
    }
    if (rc)
        fault(who, err.text, rc, 0);
    for (int k = 0; k < PAIRS && !rc; k++)
        if (seen[k] != 0 && seen[k] != 3)
            fault(who, "half a pair", k, seen[k]);
    st_cursor_close(cur);
    return n;
}

static void check_view(st_view *v, int who)
{
    static const float vec[T_DIM] = {5, 1, 0.5f};
    uint8_t tokens[16];
    st_term term = {.col = ST_COL_IMPORTANCE, .op = ST_GE, .value = t_real(0.5)};
    st_query q = {.k = -1, .vector_weight = 1, .text_weight = 1, .rrf_k = 60, .tokens = tokens};
    long n = check_pairs(v, &q, who), m;
    if ((uint64_t)n != st_view_count(v))
        fault(who, "a scan and the count differ", n, (long long)st_view_count(v));
    q.vector = vec;
    if ((m = check_pairs(v, &q, who)) != n)
        fault(who, "a vector search gives another number of rows", m, n);
    q.vector = NULL;
    q.has_text = 1;
    q.ntokens = t_tokens("all", 3, tokens);
    if ((m = check_pairs(v, &q, who)) != n)
        fault(who, "a text search gives another number of rows", m, n);
    q.vector = vec;
    q.terms = &term;
    q.nterm = 1;
    check_pairs(v, &q, who);
}

static void *read_all(void *arg)
{
    const st_host host = {.verdict = verdict};
    int who = (int)(intptr_t)arg;
    st_conn *c = open_one(&host, who);
    st_view *kept = NULL;
    st_error err = {0, ""};
    uint64_t count = 0;
    for (int i = 0; c && __atomic_load_n(&running, __ATOMIC_SEQ_CST); i++) {
        st_view *v = NULL;
        if (st_view_open(c, &v, &err)) {
            fault(who, err.text, 0, 0);
            break;
        }
        check_view(v, who);
        if (kept && st_view_count(kept) != count)
            fault(who, "a view changed", (long long)st_view_count(kept), (long long)count);
        if (i % 7 == 6) {
            check_view(kept, who);
            st_view_close(kept);
            kept = NULL;
        }
        if (!kept) {
            kept = v;
            count = st_view_count(v);
        } else {
            st_view_close(v);
        }
    }
    st_view_close(kept);
    st_close(c);
    return NULL;
}

/* Opens, folds or compacts or looks, and closes, again and again. */
static void *fold_all(void *arg)
{
    const st_host host = {.verdict = verdict};
    int who = READERS + 1;
    (void)arg;
    for (int i = 0; __atomic_load_n(&running, __ATOMIC_SEQ_CST); i++) {
        st_conn *c = open_one(&host, who);
        st_error err = {0, ""};
        uint64_t n;
        st_stats stats;
        int rc = !c           ? ST_OK
                 : i % 4 == 3 ? st_compact(c, 2000, &n, &err)
                 : i % 4 == 2 ? st_conn_stats(c, &stats, &err)
                              : st_flush(c, 2000, &n, &err);
        if (rc && rc != ST_BUSY)
            fault(who, err.text, rc, i % 4);
        st_close(c);
    }
    return NULL;
}

static void pairs_stay_whole(void **state)
{
    (void)state;
    pthread_t t[READERS + 2];
    d = t_dir_new();
    running = 1;
    for (int i = 0; i < READERS + 2; i++) {
        void *(*body)(void *) = i < READERS ? read_all : i == READERS ? write_all : fold_all;
        assert_int_equal(pthread_create(&t[i], NULL, body, (void *)(intptr_t)i), 0);
    }
    for (int i = 0; i < READERS + 2; i++)
        assert_int_equal(pthread_join(t[i], NULL), 0);
    for (int i = 0; i < READERS + 2; i++)
        if (fault_text[i][0])
            fail_msg("%s; %d faults in all", fault_text[i], faults);
    t_dir_remove(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_stay_whole),
    };
    vec_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
