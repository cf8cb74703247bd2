/*
 * t_st_log.c - header slots and frames: round trips, every byte changed, every prefix
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <stdlib.h>

#include "t_guard.h"
#include "t_store.h"

enum { SLOT = ST_LOG_PAGE / 2, SLOT_USED = 512 };

static st_log_header random_header(t_rng *r)
{
    st_log_header h = {0};
    t_rng_fill(r, h.uuid, sizeof h.uuid);
    t_rng_fill(r, h.in_force, sizeof h.in_force);
    t_rng_fill(r, h.pending, sizeof h.pending);
    h.flags = (uint32_t)t_rng_next(r);
    h.generation = t_rng_next(r);
    h.ino = t_rng_next(r);
    h.committed_len = ST_LOG_START + t_rng_below(r, 1 << 20) * 8;
    h.last_seq = t_rng_next(r);
    h.prepared_len = t_rng_below(r, 1 << 20) * 8;
    h.prepared_seq = t_rng_next(r);
    h.next_ino = t_rng_next(r);
    h.committed_sum = (uint32_t)t_rng_next(r);
    h.prepared_sum = (uint32_t)t_rng_next(r);
    return h;
}

static void assert_header(const uint8_t *page, const st_log_header *want)
{
    st_log_header have;
    st_error err = {0, ""};
    t_ok(&err, st_log_load(page, &have, &err));
    assert_true(have.counter == want->counter);
    assert_memory_equal(have.uuid, want->uuid, 16);
    assert_memory_equal(have.in_force, want->in_force, H5_SUPERBLOCK_BYTES);
    assert_memory_equal(have.pending, want->pending, H5_SUPERBLOCK_BYTES);
    assert_true(have.flags == want->flags && have.generation == want->generation);
    assert_true(have.ino == want->ino && have.next_ino == want->next_ino);
    assert_true(have.committed_len == want->committed_len && have.last_seq == want->last_seq);
    assert_true(have.prepared_len == want->prepared_len);
    assert_true(have.prepared_seq == want->prepared_seq);
    assert_true(have.committed_sum == want->committed_sum);
    assert_true(have.prepared_sum == want->prepared_sum);
}

/* A page by itself, aligned as a mapping is. */
static uint64_t page_words[ST_LOG_PAGE / 8];
#define PAGE ((uint8_t *)page_words)

/* What is stored is loaded; the counter rises by one; the slot of the state before is left alone.
** */
static void storing(void **state)
{
    (void)state;
    t_rng r = t_rng_start(1);
    st_log_header h = random_header(&r);
    st_log_format(PAGE, &h);
    assert_header(PAGE, &h);
    for (int i = 0; i < 100; i++) {
        uint8_t before[ST_LOG_PAGE];
        uint64_t counter = st_log_counter(PAGE);
        size_t other = (counter & 1) * SLOT;
        memcpy(before, PAGE, sizeof before);
        h = random_header(&r);
        st_log_store(PAGE, &h);
        assert_true(h.counter == counter + 1);
        assert_true(st_log_counter(PAGE) == counter + 1);
        assert_memory_equal(before + other, PAGE + other, SLOT);
        assert_header(PAGE, &h);
    }
}

/* Any change of a byte of the newest slot gives the older state, never another one; and a store
** after it is seen, and leaves the good slot alone. */
static void a_damaged_slot(void **state)
{
    (void)state;
    t_rng r = t_rng_start(2);
    st_log_header h[3];
    uint8_t good[ST_LOG_PAGE];
    h[0] = random_header(&r);
    h[1] = random_header(&r);
    st_log_format(PAGE, &h[0]);
    st_log_store(PAGE, &h[0]);
    st_log_store(PAGE, &h[1]);
    memcpy(good, PAGE, sizeof good);
    size_t newest = (h[1].counter & 1) * SLOT;
    for (size_t i = 0; i < SLOT_USED; i++) {
        uint64_t counter;
        memcpy(PAGE, good, sizeof good);
        PAGE[newest + i] ^= (uint8_t)(1 << t_rng_below(&r, 8));
        assert_header(PAGE, &h[0]);
        counter = st_log_counter(PAGE);
        h[2] = random_header(&r);
        st_log_store(PAGE, &h[2]);
        assert_header(PAGE, &h[2]);
        assert_true(st_log_counter(PAGE) != counter);
        assert_memory_equal(PAGE + SLOT - newest, good + SLOT - newest, SLOT);
        st_log_store(PAGE, &h[1]);
        assert_header(PAGE, &h[1]);
    }
    // Both damaged, at any place: refused.
    for (size_t i = 0; i < SLOT_USED; i += 7) {
        st_log_header have;
        st_error err = {0, ""};
        memcpy(PAGE, good, sizeof good);
        PAGE[i] ^= 1;
        PAGE[SLOT + (i * 31) % SLOT_USED] ^= 128;
        assert_int_equal(st_log_load(PAGE, &have, &err), ST_CORRUPT);
        assert_non_null(strstr(err.text, "damaged in both"));
    }
}

/* All of a slot lies in one sector: a page of which some sectors are old and some new is the old
** state or the new one. */
static void a_torn_page(void **state)
{
    (void)state;
    t_rng r = t_rng_start(3);
    for (int round = 0; round < 200; round++) {
        uint8_t old[ST_LOG_PAGE];
        st_log_header before = random_header(&r), h[3], have;
        int stores = 1 + (int)t_rng_below(&r, 3), fits = 0;
        st_error err = {0, ""};
        st_log_format(PAGE, &before);
        st_log_store(PAGE, &before);
        memcpy(old, PAGE, sizeof old);
        for (int i = 0; i < stores; i++) {
            h[i] = random_header(&r);
            st_log_store(PAGE, &h[i]);
        }
        for (size_t s = 0; s < ST_LOG_PAGE; s += 512)
            if (t_rng_below(&r, 2))
                memcpy(PAGE + s, old + s, 512);
        t_ok(&err, st_log_load(PAGE, &have, &err));
        fits = have.counter == before.counter && have.last_seq == before.last_seq;
        for (int i = 0; i < stores; i++)
            fits |= have.counter == h[i].counter && have.last_seq == h[i].last_seq;
        assert_true(fits);
    }
}

/* Lengths that cannot be are refused though the checksum is right. */
static void impossible_lengths(void **state)
{
    (void)state;
    t_rng r = t_rng_start(4);
    for (int kind = 0; kind < 3; kind++) {
        st_log_header h = random_header(&r), have;
        h.committed_len = kind == 0   ? ST_LOG_START - 8
                          : kind == 1 ? ST_LOG_START + 4
                                      : h.committed_len;
        h.prepared_len = kind == 2 ? 12 : h.prepared_len;
        st_log_format(PAGE, &h);
        assert_int_equal(st_log_load(PAGE, &have, NULL), ST_CORRUPT);
    }
}

/* --------------------------------------------------------------------------------------- frames */

typedef struct written {
    int type;
    uint64_t sequence, transaction;
    size_t at, n; /* payload in `payload` */
} written;

enum { FRAMES = 40, GENERATION = 7 };

static st_buf make_frames(t_rng *r, written *w, uint8_t *payload)
{
    st_buf b = {0};
    uint32_t sum = 0;
    size_t used = 0;
    for (int i = 0; i < FRAMES; i++) {
        size_t at;
        w[i] = (written){(int)t_rng_below(r, 20), t_rng_next(r), t_rng_next(r), used,
                         t_rng_below(r, 4) ? t_rng_below(r, 60) : 0};
        t_rng_fill(r, payload + used, w[i].n);
        assert_int_equal(st_frame_begin(&b, &at, NULL), ST_OK);
        assert_int_equal(st_buf_add(&b, payload + used, w[i].n, NULL), ST_OK);
        assert_int_equal(st_frame_end(&b, at, w[i].type, GENERATION, w[i].sequence,
                                      w[i].transaction, &sum, NULL),
                         ST_OK);
        used += w[i].n;
    }
    return b;
}

/* How many frames a reader takes from bytes, each as it was written. */
static int count_frames(const uint8_t *p, size_t n, uint64_t generation, const written *w,
                        const uint8_t *payload)
{
    size_t at = 0, used;
    uint32_t sum = 0;
    st_frame f;
    int k = 0;
    while (st_frame_read(p + at, n - at, generation, &sum, &f, &used)) {
        assert_true(k < FRAMES);
        assert_true(f.type == w[k].type && f.sequence == w[k].sequence);
        assert_true(f.transaction == w[k].transaction && f.generation == generation);
        assert_int_equal(f.n, w[k].n);
        assert_memory_equal(f.payload, payload + w[k].at, f.n);
        assert_int_equal(used % 8, 0);
        at += used;
        k++;
    }
    return k;
}

static int frame_of_byte(const st_buf *b, size_t byte)
{
    size_t at = 0;
    int k = 0;
    for (;; k++) {
        size_t length = st_get32(b->p + at);
        if (byte < at + length)
            return k;
        if (byte < at + ((length + 7) & ~(size_t)7))
            return -1; // padding: nobody's
        at += (length + 7) & ~(size_t)7;
    }
}

/* The bytes before a change are read, the frame with it and all behind it are not. */
static void every_byte_of_frames(void **state)
{
    (void)state;
    t_rng r = t_rng_start(5);
    written w[FRAMES];
    uint8_t payload[FRAMES * 64];
    st_buf b = make_frames(&r, w, payload);
    assert_int_equal(count_frames(b.p, b.n, GENERATION, w, payload), FRAMES);
    assert_int_equal(count_frames(b.p, b.n, GENERATION + 1, w, payload), 0);
    for (size_t i = 0; i < b.n; i++) {
        int k = frame_of_byte(&b, i);
        uint8_t bit = (uint8_t)(1 << t_rng_below(&r, 8));
        b.p[i] ^= bit;
        assert_int_equal(count_frames(b.p, b.n, GENERATION, w, payload), k < 0 ? FRAMES : k);
        b.p[i] ^= bit;
    }
    for (size_t n = 0; n <= b.n; n++) {
        t_guard g = t_guard_copy(b.p, n);
        int want = 0;
        for (size_t at = 0; at < n; want++) {
            size_t whole = (st_get32(b.p + at) + 7) & ~(size_t)7;
            if (at + whole > n)
                break;
            at += whole;
        }
        assert_int_equal(count_frames(g.p, n, GENERATION, w, payload), want);
        t_guard_free(&g);
    }
    st_buf_free(&b);
}

/* A frame is valid behind the frames that it was written behind and nowhere else. */
static void a_frame_out_of_its_place(void **state)
{
    (void)state;
    t_rng r = t_rng_start(6);
    written w[FRAMES];
    uint8_t payload[FRAMES * 64];
    st_buf b = make_frames(&r, w, payload);
    size_t at = 0, used;
    st_frame f;
    for (int k = 0; k < FRAMES; k++) {
        uint32_t sum = 0, wrong = (uint32_t)t_rng_next(&r);
        int first = st_frame_read(b.p + at, b.n - at, GENERATION, &sum, &f, &used);
        assert_int_equal(first, k == 0);
        assert_int_equal(st_frame_read(b.p + at, b.n - at, GENERATION, &wrong, &f, &used), 0);
        at += (st_get32(b.p + at) + 7) & ~(size_t)7;
    }
    st_buf_free(&b);
}

/* The sum of a commit frame is told without writing it. */
static void the_sum_of_a_commit_frame(void **state)
{
    (void)state;
    t_rng r = t_rng_start(7);
    for (int i = 0; i < 100; i++) {
        st_buf b = {0};
        uint64_t generation = t_rng_next(&r), prepare = t_rng_next(&r);
        uint32_t before = (uint32_t)t_rng_next(&r), sum = before;
        size_t at;
        assert_int_equal(st_frame_begin(&b, &at, NULL), ST_OK);
        assert_int_equal(
            st_frame_end(&b, at, ST_FRAME_COMMIT, generation, prepare + 1, prepare, &sum, NULL),
            ST_OK);
        assert_int_equal(b.n, ST_FRAME_COMMIT_BYTES);
        assert_int_equal(st_frame_commit_sum(generation, prepare, before), sum);
        st_buf_free(&b);
    }
}

static void varints(void **state)
{
    (void)state;
    t_rng r = t_rng_start(8);
    for (int i = 0; i < 5000; i++) {
        uint8_t p[16];
        uint64_t v = t_rng_next(&r) >> t_rng_below(&r, 64), back = 0;
        size_t n = st_varint_put(p, v), pos = 0;
        assert_true(n <= 10);
        assert_int_equal(st_varint_get(p, n, &pos, &back), 1);
        assert_true(back == v && pos == n);
        for (size_t cut = 0; cut < n; cut++) {
            pos = 0;
            assert_int_equal(st_varint_get(p, cut, &pos, &back), 0);
        }
    }
    // Longer than any number: refused, and not read past.
    static const uint8_t endless[16] = {255, 255, 255, 255, 255, 255, 255, 255,
                                        255, 255, 255, 255, 255, 255, 255, 255};
    uint8_t top[10] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 2};
    uint64_t v;
    size_t pos = 0;
    assert_int_equal(st_varint_get(endless, sizeof endless, &pos, &v), 0);
    pos = 0;
    assert_int_equal(st_varint_get(top, sizeof top, &pos, &v), 0);
    top[9] = 1;
    pos = 0;
    assert_int_equal(st_varint_get(top, sizeof top, &pos, &v), 1);
    assert_true(v == UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(storing),
        cmocka_unit_test(a_damaged_slot),
        cmocka_unit_test(a_torn_page),
        cmocka_unit_test(impossible_lengths),
        cmocka_unit_test(every_byte_of_frames),
        cmocka_unit_test(a_frame_out_of_its_place),
        cmocka_unit_test(the_sum_of_a_commit_frame),
        cmocka_unit_test(varints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
