/*
 * t_mind_consolidate.c - a pass of consolidation against one that sorts, on random rows full of
 * ties, odd times and odd numbers; and the cases that its header names
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mind.h"
#include "t_rng.h"

enum { MOST = 400 };
#define DAY 86400.0

typedef struct rows {
    uint8_t tier[MOST], pinned[MOST], superseded[MOST];
    double importance[MOST], last[MOST], timestamp[MOST];
    int64_t count[MOST];
    mind_rows r;
} rows;

static mind_rules rules_of(int64_t working, int64_t episodic, int64_t semantic)
{
    return (mind_rules){.capacity = {working, episodic, semantic},
                        .half_life = {7 * DAY, 7 * DAY, 30 * DAY},
                        .promote_importance = 0.6,
                        .semantic_access = 11,
                        .access_weight = 1};
}

/* In exactly the room that it asks for. */
static void pass(const mind_rows *r, const mind_rules *k, double now, mind_moves *out)
{
    static void *room;
    free(room);
    room = malloc(mind_room(r->n));
    assert_non_null(room);
    mind_consolidate(r, k, now, room, out);
}

static void point(rows *x, size_t n)
{
    x->r = (mind_rows){.n = n,
                       .tier = x->tier,
                       .pinned = x->pinned,
                       .superseded = x->superseded,
                       .importance = x->importance,
                       .access_count = x->count,
                       .last_access = x->last,
                       .timestamp = x->timestamp};
}

static void plain(rows *x, size_t n)
{
    memset(x, 0, sizeof *x);
    for (size_t i = 0; i < n; i++) {
        x->importance[i] = 0.5;
        x->last[i] = NAN;
        x->timestamp[i] = 1000.0 + (double)i;
    }
    point(x, n);
}

/* ---------------------------------------------------------------------------------- naive model */

typedef struct candidate {
    double strength;
    size_t row;
} candidate;

static int weaker(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->strength != y->strength) {
        return x->strength < y->strength ? -1 : 1;
    }
    return x->row < y->row ? -1 : x->row > y->row;
}

typedef struct fate {
    int tier[MOST]; /* MIND_EVICTED: gone */
    size_t promoted, evicted, held[MIND_TIERS];
} fate;

static void naive(const rows *x, const mind_rules *k, double now, fate *f)
{
    static candidate c[MOST];
    memset(f, 0, sizeof *f);
    for (size_t i = 0; i < x->r.n; i++) {
        int t = x->tier[i];
        if (!x->superseded[i] && t == MIND_WORKING &&
            (x->importance[i] >= k->promote_importance ||
             (k->promote_access > 0 && x->count[i] >= k->promote_access))) {
            t = MIND_EPISODIC;
            f->promoted++;
        }
        if (!x->superseded[i] && t == MIND_EPISODIC && k->semantic_access > 0 &&
            x->count[i] >= k->semantic_access) {
            t = MIND_SEMANTIC;
            f->promoted++;
        }
        f->tier[i] = t;
        f->held[t]++;
    }
    for (int t = 0; t < MIND_TIERS; t++) {
        size_t n = 0;
        for (size_t i = 0; i < x->r.n; i++) {
            if (f->tier[i] == t && !x->pinned[i]) {
                double last = isfinite(x->last[i]) ? x->last[i] : x->timestamp[i];
                c[n++] = (candidate){mind_strength(x->importance[i],
                                                   (double)x->count[i] * k->access_weight, last,
                                                   now, k->half_life[t]),
                                     i};
            }
        }
        qsort(c, n, sizeof *c, weaker);
        for (size_t i = 0; i < n && k->capacity[t] >= 0 && f->held[t] > (uint64_t)k->capacity[t];
             i++) {
            f->tier[c[i].row] = MIND_EVICTED;
            f->held[t]--;
            f->evicted++;
        }
    }
}

static void same_as_naive(const rows *x, const mind_rules *k, double now)
{
    static fate f;
    int tier[MOST];
    size_t promoted = 0, evicted = 0;
    mind_moves m;
    naive(x, k, now, &f);
    pass(&x->r, k, now, &m);
    for (size_t i = 0; i < x->r.n; i++) {
        tier[i] = x->tier[i];
    }
    for (size_t i = 0; i < m.n; i++) {
        const mind_move *v = &m.move[i];
        assert_int_equal(tier[v->row], v->from);
        tier[v->row] = v->to;
        promoted += v->to != MIND_EVICTED;
        evicted += v->to == MIND_EVICTED;
        assert_true(v->to == MIND_EVICTED || v->to == v->from + 1);
        assert_true(v->to != MIND_EVICTED || !x->pinned[v->row]);
        assert_true(promoted == m.promoted || v->to != MIND_EVICTED); // promotions come first
    }
    for (size_t i = 0; i < x->r.n; i++) {
        assert_int_equal(tier[i], f.tier[i]);
    }
    assert_int_equal(promoted, f.promoted);
    assert_int_equal(m.promoted, f.promoted);
    assert_int_equal(evicted, f.evicted);
    assert_int_equal(m.evicted, f.evicted);
    for (int t = 0; t < MIND_TIERS; t++) {
        assert_int_equal(m.held[t], f.held[t]);
    }
}

static double odd_time(t_rng *r)
{
    static const double odd[] = {0, -1e9, 1e18, -1e300, 5e9};
    uint64_t k = t_rng_next(r) % 20;
    return k < 5 ? odd[k] : 1.7e9 + (double)(t_rng_next(r) % 400) * DAY / 4;
}

static void random_rows_fare_as_in_the_model(void **state)
{
    static rows x;
    static const double odd[] = {NAN, -1, 2, 0, 1, 0.6, 0.5999999999999999, INFINITY};
    t_rng r = t_rng_start(1);
    (void)state;
    for (int round = 0; round < 3000; round++) {
        size_t n = t_rng_next(&r) % (round % 10 ? 60 : MOST);
        int coarse = round % 3 == 0; // many rows of the same strength
        plain(&x, n);
        for (size_t i = 0; i < n; i++) {
            uint64_t k = t_rng_next(&r) % 40;
            x.tier[i] = (uint8_t)(t_rng_next(&r) % 3);
            x.pinned[i] = t_rng_next(&r) % 8 == 0;
            x.superseded[i] = t_rng_next(&r) % 8 == 0;
            x.importance[i] = k < 8 ? odd[k]
                                    : (double)(t_rng_next(&r) % (coarse ? 4 : 1000)) /
                                          (coarse ? 4 : 1000);
            x.count[i] = (int64_t)(t_rng_next(&r) % 14) - 1;
            x.timestamp[i] = coarse ? 1.7e9 : odd_time(&r);
            x.last[i] = k % 2 ? NAN : k == 10 ? INFINITY : odd_time(&r);
        }
        mind_rules rules = rules_of((int64_t)(t_rng_next(&r) % 40) - 1,
                                    (int64_t)(t_rng_next(&r) % 40) - 1,
                                    (int64_t)(t_rng_next(&r) % 40) - 1);
        rules.access_weight = round % 5 ? 0.3 : 0;
        rules.promote_access = (int64_t)(t_rng_next(&r) % 5);
        rules.half_life[t_rng_next(&r) % 3] = t_rng_next(&r) % 2 ? 0 : NAN;
        same_as_naive(&x, &rules, round % 7 ? 1.7e9 + 50 * DAY : round % 2 ? NAN : -1e12);
    }
}

/* ---------------------------------------------------------------------------------------- cases */

static void what_matters_is_promoted_before_anything_goes(void **state)
{
    static rows x;
    mind_rules rules = rules_of(1, 10, -1);
    mind_moves m;
    (void)state;
    // One place, an important row, and chatter that was accessed since.
    plain(&x, 3);
    x.importance[1] = 0.9;
    x.count[0] = x.count[2] = 5;
    pass(&x.r, &rules, 2000, &m);
    assert_int_equal(m.n, 2);
    assert_int_equal(m.move[0].row, 1);
    assert_int_equal(m.move[0].to, MIND_EPISODIC);
    assert_int_equal(m.move[0].why, MIND_WHY_IMPORTANCE);
    assert_int_equal(m.move[1].row, 0); // of two alike the older
    assert_int_equal(m.move[1].to, MIND_EVICTED);
    assert_string_equal(mind_why_name(m.move[1].why), "capacity");
}

static void capacity_0_and_none_at_all(void **state)
{
    static rows x;
    mind_rules none = rules_of(0, 0, 0), any = rules_of(-1, -1, -1);
    mind_moves m;
    (void)state;
    plain(&x, 50);
    x.pinned[7] = 1;
    pass(&x.r, &none, 2000, &m);
    assert_int_equal(m.evicted, 49);
    assert_int_equal(m.held[MIND_WORKING], 1);
    pass(&x.r, &any, 2000, &m);
    assert_int_equal(m.n, 0);
    plain(&x, 0);
    pass(&x.r, &none, 2000, &m);
    assert_int_equal(m.n, 0);
}

static void an_access_brings_a_row_back(void **state)
{
    (void)state;
    double old = mind_strength(0.5, 0, 0, 14 * DAY, 7 * DAY);
    assert_true(fabs(old - (log2(0.5) - 2)) < 1e-12);
    assert_true(fabs(mind_strength(0.5, 1, 14 * DAY, 14 * DAY, 7 * DAY)) < 1e-12);
    // Long ago is still an order.
    assert_true(mind_strength(0.5, 0, 1, 1e12, DAY) > mind_strength(0.5, 0, 0, 1e12, DAY));
    // A clock that went back, the future, and no number at all: now.
    assert_true(mind_strength(0.5, 0, 9e9, 1, DAY) == mind_strength(0.5, 0, 1, 1, DAY));
    assert_true(mind_strength(0.5, 0, 5, NAN, DAY) == mind_strength(0.5, 0, 1, 1, DAY));
    assert_true(isfinite(mind_strength(NAN, -5, NAN, 1, NAN)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_rows_fare_as_in_the_model),
        cmocka_unit_test(what_matters_is_promoted_before_anything_goes),
        cmocka_unit_test(capacity_0_and_none_at_all),
        cmocka_unit_test(an_access_brings_a_row_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
