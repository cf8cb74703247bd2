/*
 * t_st_base.c - failures, buffers, the id map against a naive one, CRC32C, bits
 *
 * SPDX-License-Identifier: MIT
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "t_alloc.h"
#include "t_store.h"

/* The first failure wins; every code has its cause. */
static void failures(void **state)
{
    (void)state;
    st_error e = {0, ""};
    static const int cause[][2] = {
        {ENOSPC, ST_FULL},     {EDQUOT, ST_FULL},     {EFBIG, ST_FULL},
        {EROFS, ST_READONLY},  {EACCES, ST_READONLY}, {EPERM, ST_READONLY},
        {ENOENT, ST_NOTFOUND}, {ENOMEM, ST_NOMEM},    {EIO, ST_IO}};
    static const int core[][2] = {{H5_NOMEM, ST_NOMEM},    {H5_UNSUPPORTED, ST_UNSUPPORTED},
                                  {H5_LIMIT, ST_LIMIT},    {H5_MISUSE, ST_MISUSE},
                                  {H5_FORMAT, ST_CORRUPT}, {H5_NOTFOUND, ST_CORRUPT}};
    assert_int_equal(st_fail(&e, ST_LIMIT, "%d of %s", 3, "them"), ST_LIMIT);
    assert_int_equal(st_fail(&e, ST_IO, "later"), ST_IO);
    assert_int_equal(e.code, ST_LIMIT);
    assert_string_equal(e.text, "3 of them");
    assert_int_equal(st_fail(NULL, ST_IO, "nobody listens"), ST_IO);
    for (size_t i = 0; i < sizeof cause / sizeof *cause; i++) {
        h5_error h = {H5_IO, cause[i][0], 0, "reason"};
        assert_int_equal(st_from_errno(NULL, cause[i][0], "x"), cause[i][1]);
        assert_int_equal(st_from_h5(NULL, &h, "x"), cause[i][1]);
    }
    for (size_t i = 0; i < sizeof core / sizeof *core; i++) {
        h5_error h = {core[i][0], 0, 0, "reason"};
        e = (st_error){0, ""};
        assert_int_equal(st_from_h5(&e, &h, "what"), core[i][1]);
        assert_int_equal(e.code, core[i][1]);
        assert_true(e.text[0]);
    }
    e = (st_error){0, ""};
    char long_text[2000];
    memset(long_text, 'x', sizeof long_text);
    long_text[sizeof long_text - 1] = 0;
    st_fail(&e, ST_IO, "%s", long_text);
    assert_int_equal(strlen(e.text), sizeof e.text - 1);
}

/* The definition: one bit at a time. */
static uint32_t slow_crc(uint32_t crc, const uint8_t *p, size_t n)
{
    crc = ~crc;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int k = 0; k < 8; k++)
            crc = crc & 1 ? crc >> 1 ^ 0x82f63b78 : crc >> 1;
    }
    return ~crc;
}

static void crc32c(void **state)
{
    (void)state;
    t_rng r = t_rng_start(1);
    uint8_t buf[300];
    // The check value, and three of RFC 3720 B.4.
    assert_int_equal(st_crc32c(0, "123456789", 9), 0xE3069283);
    memset(buf, 0, 32);
    assert_int_equal(st_crc32c(0, buf, 32), 0x8A9136AA);
    memset(buf, 0xff, 32);
    assert_int_equal(st_crc32c(0, buf, 32), 0x62A8AB43);
    for (int i = 0; i < 32; i++)
        buf[i] = (uint8_t)i;
    assert_int_equal(st_crc32c(0, buf, 32), 0x46DD794E);
    assert_int_equal(st_crc32c(0, NULL, 0), 0);
    for (int round = 0; round < 2000; round++) {
        size_t n = (size_t)t_rng_below(&r, sizeof buf - 8), at = (size_t)t_rng_below(&r, 8);
        size_t cut = (size_t)t_rng_below(&r, n + 1);
        t_rng_fill(&r, buf, sizeof buf);
        uint32_t want = slow_crc(0, buf + at, n);
        assert_int_equal(st_crc32c(0, buf + at, n), want);
        assert_int_equal(st_crc32c_tables(0, buf + at, n), want);
        assert_int_equal(st_crc32c(st_crc32c(0, buf + at, cut), buf + at + cut, n - cut), want);
    }
}

static void byte_order(void **state)
{
    (void)state;
    uint8_t p[8];
    st_put64(p, 0x0102030405060708);
    assert_memory_equal(p, "\x08\x07\x06\x05\x04\x03\x02\x01", 8);
    assert_true(st_get64(p) == 0x0102030405060708);
    assert_int_equal(st_get32(p), 0x05060708);
    assert_int_equal(st_get16(p), 0x0708);
    st_put32(p, 0xfffefdfc);
    assert_int_equal(st_get32(p), 0xfffefdfc);
}

static void buffers(void **state)
{
    (void)state;
    t_rng r = t_rng_start(2);
    st_buf b = {0};
    uint8_t *want = calloc(1, 1 << 20);
    size_t n = 0;
    assert_non_null(want);
    while (n < 900000) {
        size_t more = (size_t)t_rng_below(&r, 3000);
        if (t_rng_below(&r, 4) == 0) {
            assert_int_equal(st_buf_zeros(&b, more, NULL), ST_OK);
        } else {
            t_rng_fill(&r, want + n, more);
            assert_int_equal(st_buf_add(&b, want + n, more, NULL), ST_OK);
        }
        n += more;
        assert_int_equal(b.n, n);
    }
    assert_memory_equal(b.p, want, n);
    assert_int_equal(st_buf_add(&b, NULL, 0, NULL), ST_OK);
    // Sizes that no machine has are refused, and nothing changes.
    assert_int_equal(st_buf_room(&b, SIZE_MAX, NULL), ST_NOMEM);
    assert_int_equal(st_buf_room(&b, SIZE_MAX - n, NULL), ST_NOMEM);
    assert_int_equal(b.n, n);
    st_buf_free(&b);
    assert_null(b.p);
    free(want);
    uint64_t *array = NULL;
    size_t cap = 0;
    assert_int_equal(st_grow(&array, &cap, 5, 8, NULL), ST_OK);
    assert_true(cap >= 5);
    array[4] = 7;
    assert_int_equal(st_grow(&array, &cap, SIZE_MAX / 4, 8, NULL), ST_NOMEM);
    assert_true(array[4] == 7);
    h5_free(array);
}

enum { KEYS = 600 };

/* Random sets, removals and clears against an array. Keys collide in their low and high bits. */
static void map(void **state)
{
    (void)state;
    t_rng r = t_rng_start(3);
    st_map m = {0};
    uint64_t key[KEYS], value[KEYS];
    int there[KEYS] = {0};
    size_t n = 0;
    for (int i = 0; i < KEYS; i++)
        key[i] = i % 3 == 0 ? (uint64_t)i << 40 : i % 3 == 1 ? (uint64_t)i : ~(uint64_t)i;
    for (int round = 0; round < 200000; round++) {
        int i = (int)t_rng_below(&r, KEYS);
        uint64_t v = 1, kind = t_rng_below(&r, 100);
        if (kind < 50 && !(round / 20000 & 1 && kind > 20)) {
            value[i] = t_rng_next(&r);
            assert_int_equal(st_map_set(&m, key[i], value[i], NULL), ST_OK);
            n += !there[i];
            there[i] = 1;
        } else if (kind < 90) {
            st_map_remove(&m, key[i]);
            n -= (size_t)there[i];
            there[i] = 0;
        } else if (round % 9973 == 0) {
            st_map_clear(&m);
            memset(there, 0, sizeof there);
            n = 0;
        }
        assert_int_equal(st_map_get(&m, key[i], &v), there[i]);
        assert_true(!there[i] || v == value[i]);
        assert_int_equal(m.n, n);
    }
    for (int i = 0; i < KEYS; i++) {
        uint64_t v = 0;
        assert_int_equal(st_map_get(&m, key[i], &v), there[i]);
        assert_true(!there[i] || v == value[i]);
    }
    assert_true(m.cap < 8 * KEYS);
    st_map_free(&m);
    assert_int_equal(st_map_get(&m, 0, value), 0);
    st_map_remove(&m, 0);
}

/* Places that were reserved can be filled without memory, whatever was removed between. */
static void a_reserved_place_needs_no_memory(void **state)
{
    (void)state;
    t_rng r = t_rng_start(4);
    t_alloc a = {0};
    const h5_allocator hook = {t_alloc_get, t_alloc_resize, t_alloc_release, &a};
    h5_set_allocator(&hook);
    for (int round = 0; round < 300; round++) {
        st_map m = {0};
        for (int i = 0; i < 400; i++) {
            uint64_t k[2] = {t_rng_below(&r, 200), t_rng_below(&r, 200)}, v;
            assert_int_equal(st_map_reserve(&m, 2, NULL), ST_OK);
            a.fail_at = a.count + 1;
            assert_int_equal(st_map_set(&m, k[0], 1, NULL), ST_OK);
            assert_int_equal(st_map_set(&m, k[1], 2, NULL), ST_OK);
            assert_int_equal(st_map_set(&m, k[0], 3, NULL), ST_OK); // there already
            assert_int_equal(st_map_get(&m, k[0], &v), 1);
            if (t_rng_below(&r, 2))
                st_map_remove(&m, k[0]);
            a.fail_at = 0;
        }
        st_map_free(&m);
    }
    assert_int_equal(a.live, 0);
    h5_set_allocator(NULL);
}

static void bits(void **state)
{
    (void)state;
    t_rng r = t_rng_start(5);
    for (int round = 0; round < 500; round++) {
        uint64_t w[6] = {0}, nrow = t_rng_below(&r, 6 * 64 + 1);
        uint8_t naive[6 * 64] = {0};
        for (uint64_t i = t_rng_below(&r, 40); i-- > 0 && nrow;) {
            uint64_t b = t_rng_below(&r, nrow);
            if (t_rng_below(&r, 4)) {
                st_bit_set(w, b);
                naive[b] = 1;
            } else {
                st_bit_clear(w, b);
                naive[b] = 0;
            }
        }
        for (uint64_t from = 0; from <= nrow + 1; from++) {
            uint64_t want = from;
            while (want < nrow && !naive[want])
                want++;
            assert_int_equal(st_bit_next(w, nrow, from), want < nrow ? want : nrow);
            if (from < nrow)
                assert_int_equal(st_bit_get(w, from), naive[from]);
        }
    }
    assert_int_equal(st_bit_words(0), 0);
    assert_int_equal(st_bit_words(64), 1);
    assert_int_equal(st_bit_words(65), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failures),   cmocka_unit_test(crc32c),
        cmocka_unit_test(byte_order), cmocka_unit_test(buffers),
        cmocka_unit_test(map),        cmocka_unit_test(a_reserved_place_needs_no_memory),
        cmocka_unit_test(bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
