/*
 * t_h5_filter.c - filters one by one and in pipelines
 *
 * SPDX-License-Identifier: MIT
 */
#include "t_h5.h"
#include "t_rng.h"

#include "h5_filter.h"

static h5_pipeline pipe_of(int n, const uint16_t *ids, uint32_t value, uint16_t flags)
{
    h5_pipeline p = {.n = n};
    for (int i = 0; i < n; i++)
        p.filter[i] = (h5_filter){.id = ids[i], .flags = flags, .nvalue = 1, .value = {value}};
    return p;
}

static void shuffle_by_hand(void **state)
{
    (void)state;
    t_h5 t = {0};
    const uint16_t ids[] = {H5_FILTER_SHUFFLE};
    h5_pipeline p = pipe_of(1, ids, 3, 1);
    void *out;
    size_t n;
    uint32_t mask;
    char back[11];
    // Two whole elements and one that is cut off, which stays where it is.
    T_OK(&t, h5_pipeline_encode(&p, "abcABCxy", 8, &out, &n, &mask, &t.err));
    assert_int_equal(n, 8);
    assert_int_equal(mask, 0);
    assert_memory_equal(out, "aAbBcCxy", 8);
    T_OK(&t, h5_pipeline_decode(&p, 0, out, n, back, 8, &t.err));
    assert_memory_equal(back, "abcABCxy", 8);
    h5_free(out);
}

/* Every filter and two pipelines, over sizes around the element, random and repetitive. */
static void round_trips(void **state)
{
    (void)state;
    static const uint16_t lists[][3] = {
        {H5_FILTER_SHUFFLE, 0, 0},
        {H5_FILTER_DEFLATE, 0, 0},
        {H5_FILTER_ZSTD, 0, 0},
        {H5_FILTER_SHUFFLE, H5_FILTER_DEFLATE, 0},
        {H5_FILTER_SHUFFLE, H5_FILTER_ZSTD, 0},
        {H5_FILTER_ZSTD, H5_FILTER_DEFLATE, H5_FILTER_SHUFFLE},
    };
    static const size_t sizes[] = {1, 2, 7, 8, 9, 63, 64, 1000, 4096, 65536};
    t_h5 t = {0};
    t_rng r = t_rng_start(11);
    uint8_t *in = h5_malloc(65536), *back = h5_malloc(65536);
    for (size_t l = 0; l < sizeof lists / sizeof *lists; l++) {
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            for (int kind = 0; kind < 3; kind++) {
                int count = lists[l][2] ? 3 : lists[l][1] ? 2 : 1;
                h5_pipeline p = pipe_of(count, lists[l], (uint32_t)(1 + t_rng_below(&r, 9)),
                                        kind == 0);
                size_t n = sizes[s], m;
                void *out;
                uint32_t mask;
                t_rng_fill(&r, in, n);
                for (size_t i = 0; kind == 2 && i < n; i++)
                    in[i] = (uint8_t)(i % 4);
                T_OK(&t, h5_pipeline_encode(&p, in, n, &out, &m, &mask, &t.err));
                if (kind != 0)
                    assert_int_equal(mask, 0);
                memset(back, 0xCC, n);
                T_OK(&t, h5_pipeline_decode(&p, mask, out, m, back, n, &t.err));
                assert_memory_equal(in, back, n);
                assert_true(n <= h5_pipeline_expansion(&p, mask, m));
                h5_free(out);
            }
        }
    }
    h5_free(in);
    h5_free(back);
}

/* Optional compression that does not shrink is left out and says so; mandatory compression is not.
** */
static void left_out(void **state)
{
    (void)state;
    t_h5 t = {0};
    t_rng r = t_rng_start(3);
    uint8_t in[256], back[256];
    const uint16_t ids[] = {H5_FILTER_SHUFFLE, H5_FILTER_DEFLATE};
    t_rng_fill(&r, in, sizeof in);
    for (int optional = 0; optional < 2; optional++) {
        h5_pipeline p = pipe_of(2, ids, 4, (uint16_t)optional);
        void *out;
        size_t n;
        uint32_t mask;
        T_OK(&t, h5_pipeline_encode(&p, in, sizeof in, &out, &n, &mask, &t.err));
        assert_int_equal(mask, optional ? 2 : 0);
        assert_true(optional ? n == sizeof in : n > sizeof in);
        T_OK(&t, h5_pipeline_decode(&p, mask, out, n, back, sizeof back, &t.err));
        assert_memory_equal(in, back, sizeof in);
        h5_free(out);
    }
}

/* No filter, or all left out: the bytes as they are, and only of the right size. */
static void raw(void **state)
{
    (void)state;
    t_h5 t = {0};
    const uint16_t ids[] = {H5_FILTER_DEFLATE};
    h5_pipeline none = {0}, p = pipe_of(1, ids, 6, 1);
    char back[4];
    void *out;
    size_t n;
    uint32_t mask;
    T_OK(&t, h5_pipeline_encode(&none, "abcd", 4, &out, &n, &mask, &t.err));
    assert_int_equal(n, 4);
    assert_memory_equal(out, "abcd", 4);
    h5_free(out);
    T_OK(&t, h5_pipeline_decode(&p, 1, "wxyz", 4, back, 4, &t.err));
    assert_memory_equal(back, "wxyz", 4);
    T_FAILS(&t, H5_FORMAT, "has 3 stored", h5_pipeline_decode(&p, 1, "wxy", 3, back, 4, &t.err));
}

static void wrong_size(void **state)
{
    (void)state;
    static const uint16_t lists[][2] = {{H5_FILTER_DEFLATE, 0},
                                        {H5_FILTER_ZSTD, 0},
                                        {H5_FILTER_SHUFFLE, 0},
                                        {H5_FILTER_SHUFFLE, H5_FILTER_DEFLATE}};
    t_h5 t = {0};
    uint8_t in[1000] = {1, 2, 3}, back[1001];
    for (size_t l = 0; l < 4; l++) {
        h5_pipeline p = pipe_of(lists[l][1] ? 2 : 1, lists[l], 4, 0);
        void *out;
        size_t n;
        uint32_t mask;
        T_OK(&t, h5_pipeline_encode(&p, in, sizeof in, &out, &n, &mask, &t.err));
        T_FAILS(&t, H5_FORMAT, "", h5_pipeline_decode(&p, 0, out, n, back, 999, &t.err));
        T_FAILS(&t, H5_FORMAT, "", h5_pipeline_decode(&p, 0, out, n, back, 1001, &t.err));
        T_FAILS(&t, H5_FORMAT, "", h5_pipeline_decode(&p, 0, out, n / 2, back, 1000, &t.err));
        T_FAILS(&t, H5_FORMAT, "", h5_pipeline_decode(&p, 0, out, 0, back, 1000, &t.err));
        h5_free(out);
    }
}

/* Damaged streams are an error or the wrong bytes, never more than the buffer. */
static void damaged(void **state)
{
    (void)state;
    static const uint16_t ids[] = {H5_FILTER_DEFLATE, H5_FILTER_ZSTD};
    t_rng r = t_rng_start(17);
    uint8_t in[3000], *back = h5_malloc(3000);
    for (size_t i = 0; i < sizeof in; i++)
        in[i] = (uint8_t)t_rng_below(&r, 7);
    for (int f = 0; f < 2; f++) {
        h5_pipeline p = pipe_of(1, ids + f, 3, 0);
        uint8_t *out;
        size_t n;
        uint32_t mask;
        int failed = 0;
        assert_int_equal(h5_pipeline_encode(&p, in, sizeof in, (void **)&out, &n, &mask, NULL),
                         H5_OK);
        for (size_t i = 0; i < n; i++) {
            out[i] ^= 0x55;
            int rc = h5_pipeline_decode(&p, 0, out, n, back, 3000, NULL);
            assert_true(rc == H5_OK || rc == H5_FORMAT);
            failed += rc != H5_OK;
            out[i] ^= 0x55;
        }
        assert_true(failed > 0);
        h5_free(out);
    }
    h5_free(back);
}

static void unknown(void **state)
{
    (void)state;
    t_h5 t = {0};
    uint16_t ids[] = {32013};
    h5_pipeline p = pipe_of(1, ids, 4, 1), bad = p;
    char back[4];
    void *out;
    size_t n;
    uint32_t mask;
    T_FAILS(&t, H5_UNSUPPORTED, "filter 32013 (zfp)",
            h5_pipeline_encode(&p, "abcd", 4, &out, &n, &mask, &t.err));
    assert_null(out);
    T_FAILS(&t, H5_UNSUPPORTED, "filter 32013 (zfp)",
            h5_pipeline_decode(&p, 0, "abcd", 4, back, 4, &t.err));
    bad.filter[0].id = 400;
    T_FAILS(&t, H5_UNSUPPORTED, "filter 400",
            h5_pipeline_decode(&bad, 0, "abcd", 4, back, 4, &t.err));
    T_OK(&t, h5_pipeline_decode(&p, 1, "abcd", 4, back, 4, &t.err));
    assert_true(h5_pipeline_expansion(&p, 0, 1) == UINT64_MAX);
    p.filter[0].id = 32000;
    T_FAILS(&t, H5_UNSUPPORTED, "filter 32000 (lzf) is read, not written",
            h5_pipeline_encode(&p, "abcd", 4, &out, &n, &mask, &t.err));
}

static void bad_arguments(void **state)
{
    (void)state;
    t_h5 t = {0};
    uint16_t ids[] = {H5_FILTER_DEFLATE};
    h5_pipeline p = pipe_of(1, ids, 10, 0);
    uint8_t back[4];
    void *out;
    size_t n;
    uint32_t mask;
    T_FAILS(&t, H5_MISUSE, "level 10", h5_pipeline_encode(&p, "abcd", 4, &out, &n, &mask, &t.err));
    p.filter[0].id = H5_FILTER_ZSTD;
    p.filter[0].value[0] = 1000;
    T_FAILS(&t, H5_MISUSE, "level 1000",
            h5_pipeline_encode(&p, "abcd", 4, &out, &n, &mask, &t.err));
    p.filter[0] = (h5_filter){.id = H5_FILTER_SHUFFLE};
    T_FAILS(&t, H5_MISUSE, "0 client values",
            h5_pipeline_encode(&p, "abcd", 4, &out, &n, &mask, &t.err));
    T_FAILS(&t, H5_FORMAT, "no client data", h5_pipeline_decode(&p, 0, "abcd", 4, back, 4, &t.err));
    p.filter[0].nvalue = 1;
    T_FAILS(&t, H5_MISUSE, "elements of 0",
            h5_pipeline_encode(&p, "abcd", 4, &out, &n, &mask, &t.err));
    T_FAILS(&t, H5_FORMAT, "elements of 0", h5_pipeline_decode(&p, 0, "abcd", 4, back, 4, &t.err));
    p.n = H5_FILTERS_MAX + 1;
    T_FAILS(&t, H5_MISUSE, "9 filters", h5_pipeline_encode(&p, "abcd", 4, &out, &n, &mask, &t.err));
    assert_true(strlen(h5_zlib_version()) > 0 && strlen(h5_zstd_version()) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shuffle_by_hand), cmocka_unit_test(round_trips),
        cmocka_unit_test(left_out),        cmocka_unit_test(raw),
        cmocka_unit_test(wrong_size),      cmocka_unit_test(damaged),
        cmocka_unit_test(unknown),         cmocka_unit_test(bad_arguments),
    };
    return cmocka_run_group_tests_name("h5_filter", tests, NULL, NULL);
}
