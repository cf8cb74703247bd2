/*
 * mind_consolidate.c - one pass of consolidation over columns: what is promoted, what goes.
 *
 * Promotion comes first, so that a row which matters never goes because its tier was full. What
 * goes is found by selection and not by sorting: strengths become numbers of 64 bits in the same
 * order, and the greatest one that must go is found from its leading bits downwards, eleven at a
 * time. So a pass costs the same whatever the values are.
 *
 * Strength is a logarithm, since a row untouched for a thousand half-lives must still compare with
 * another; a product would be 0 for both.
 *
 * SPDX-License-Identifier: MIT
 */
#include "mind.h"

#include <math.h>
#include <string.h>

#define LEAST_IMPORTANCE 0x1p-20 /* what 0 counts as: the logarithm needs more than nothing */

enum { RADIX_BITS = 11, RADIX = 1 << RADIX_BITS };

const char *mind_why_name(int why)
{
    static const char *const names[] = {"importance", "access", "capacity"};
    return names[why];
}

double mind_strength(double importance, double accesses, double last, double now, double half_life)
{
    double seconds = now - last, count = accesses > 0 ? accesses : 0;
    double i = importance > LEAST_IMPORTANCE ? importance < 1 ? importance : 1 : LEAST_IMPORTANCE;
    double strength = log2(i * (count + 1));
    return seconds > 0 && half_life > 0 ? strength - seconds / half_life : strength;
}

/* ------------------------------------------------------------------------------------ selection */

/* The same order as a number without sign; both zeros are one. */
static uint64_t sortable(double v)
{
    uint64_t u;
    v += 0.0;
    memcpy(&u, &v, sizeof u);
    return u >> 63 ? ~u : u | (uint64_t)1 << 63;
}

/* The k-th least of n keys, k from 1 to n, and how many keys below it there are. */
static uint64_t kth_least(const uint64_t *key, size_t n, size_t k, size_t *below)
{
    uint64_t prefix = 0;
    int bits = 64; // not yet settled
    *below = 0;
    while (bits > 0) {
        size_t count[RADIX] = {0};
        int step = bits < RADIX_BITS ? bits : RADIX_BITS;
        uint64_t settled = bits == 64 ? 0 : ~(uint64_t)0 << bits, digit = 0;
        bits -= step;
        for (size_t i = 0; i < n; i++) {
            if ((key[i] & settled) == prefix) {
                count[key[i] >> bits & (RADIX - 1)]++;
            }
        }
        while (*below + count[digit] < k) {
            *below += count[digit++];
        }
        prefix |= digit << bits;
    }
    return prefix;
}

/* ----------------------------------------------------------------------------------------- pass */

typedef struct pass {
    const mind_rows *rows;
    const mind_rules *rules;
    double now;
    mind_moves *out;
    uint8_t *tier; /* as it becomes */
    uint64_t *key; /* of the rows that may go */
    uint32_t *of;  /* which those are */
} pass;

static void move(pass *p, size_t row, int from, int to, int why, double strength)
{
    p->out->move[p->out->n++] = (mind_move){(uint32_t)row, (uint8_t)from, (uint8_t)to, (uint8_t)why,
                                            strength};
}

static void promote(pass *p)
{
    const mind_rows *r = p->rows;
    const mind_rules *k = p->rules;
    for (size_t i = 0; i < r->n; i++) {
        int tier = r->tier[i] < MIND_TIERS ? r->tier[i] : MIND_WORKING;
        int important = r->importance[i] >= k->promote_importance;
        if (!(r->superseded && r->superseded[i])) {
            if (tier == MIND_WORKING &&
                (important || (k->promote_access > 0 && r->access_count[i] >= k->promote_access))) {
                move(p, i, tier, MIND_EPISODIC, important ? MIND_WHY_IMPORTANCE : MIND_WHY_ACCESS,
                     0);
                tier = MIND_EPISODIC;
            }
            if (tier == MIND_EPISODIC && k->semantic_access > 0 &&
                r->access_count[i] >= k->semantic_access) {
                move(p, i, tier, MIND_SEMANTIC, MIND_WHY_ACCESS, 0);
                tier = MIND_SEMANTIC;
            }
        }
        p->tier[i] = (uint8_t)tier;
        p->out->held[tier]++;
    }
    p->out->promoted = p->out->n;
}

static double strength_of(const pass *p, size_t i)
{
    const mind_rows *r = p->rows;
    double last = isfinite(r->last_access[i]) ? r->last_access[i] : r->timestamp[i];
    return mind_strength(r->importance[i], (double)r->access_count[i] * p->rules->access_weight,
                         last, p->now, p->rules->half_life[p->tier[i]]);
}

static void shrink(pass *p, int tier)
{
    const mind_rows *r = p->rows;
    size_t n = 0, below, gone, ties;
    uint64_t limit;
    size_t capacity = (size_t)(p->rules->capacity[tier] < 0 ? INT64_MAX : p->rules->capacity[tier]);
    if (p->out->held[tier] <= capacity) {
        return;
    }
    for (size_t i = 0; i < r->n; i++) {
        if (p->tier[i] == tier && !r->pinned[i]) {
            p->of[n] = (uint32_t)i;
            p->key[n++] = sortable(strength_of(p, i));
        }
    }
    gone = p->out->held[tier] - capacity;
    gone = gone < n ? gone : n;
    if (!gone) {
        return; // all that is too much is pinned
    }
    limit = kth_least(p->key, n, gone, &below);
    ties = gone - below;
    for (size_t i = 0; i < n; i++) {
        int tied = p->key[i] == limit && ties > 0;
        ties -= (size_t)tied;
        if (p->key[i] < limit || tied) {
            move(p, p->of[i], tier, MIND_EVICTED, MIND_WHY_CAPACITY, strength_of(p, p->of[i]));
        }
    }
    p->out->held[tier] -= gone;
    p->out->evicted += gone;
}

size_t mind_room(size_t n)
{
    // At most two promotions and one eviction a row.
    return n < MIND_ROWS_MAX
               ? (3 * n + 1) * sizeof(mind_move) + n * (sizeof(uint64_t) + sizeof(uint32_t) + 1)
               : 0;
}

void mind_consolidate(const mind_rows *rows, const mind_rules *rules, double now, void *room,
                      mind_moves *out)
{
    size_t n = rows->n;
    pass p = {.rows = rows, .rules = rules, .now = now, .out = out};
    memset(out, 0, sizeof *out);
    out->move = room;
    p.key = (uint64_t *)(void *)(out->move + 3 * n + 1);
    p.of = (uint32_t *)(p.key + n);
    p.tier = (uint8_t *)(p.of + n);
    promote(&p);
    for (int tier = MIND_WORKING; tier < MIND_TIERS; tier++) {
        shrink(&p, tier);
    }
}
