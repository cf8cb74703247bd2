/*
 * t_h5_filter_decode.c - the filters that are only read, over chunks made by hand
 *
 * Whole chunks of other libraries are in test_h5filter.py.
 *
 * SPDX-License-Identifier: MIT
 */
#include "t_alloc.h"
#include "t_guard.h"
#include "t_h5.h"

#include "h5_filter_codec.h"

#define BYTES(s) (const uint8_t *)(s), sizeof(s) - 1
#define VALUES(...)                                                                                \
    (const uint32_t[]){__VA_ARGS__}, sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)

static h5_pipeline one(uint16_t id, const uint32_t *values, size_t n)
{
    h5_pipeline p = {.n = 1, .filter[0] = {.id = id, .nvalue = (uint32_t)n}};
    if (n > H5_FILTER_VALUES_MAX)
        p.filter[0].more = values;
    for (size_t i = 0; i < n && i < H5_FILTER_VALUES_MAX; i++)
        p.filter[0].value[i] = values[i];
    return p;
}

/* A chunk that decodes to `want`; no prefix of it does. Both ends lie at unmapped pages. */
static void gives(const h5_pipeline *p, const uint8_t *in, size_t n, const uint8_t *want, size_t m)
{
    t_h5 t = {0};
    t_guard out = t_guard_new(m);
    for (size_t k = 0; k <= n; k++) {
        t_guard stored = t_guard_copy(in, k);
        memset(out.p, 0xCC, m);
        if (k < n) {
            T_FAILS(&t, H5_FORMAT, "", h5_pipeline_decode(p, 0, stored.p, k, out.p, m, &t.err));
        } else {
            T_OK(&t, h5_pipeline_decode(p, 0, stored.p, k, out.p, m, &t.err));
            assert_memory_equal(out.p, want, m);
            assert_true(h5_pipeline_expansion(p, 0, n) >= m);
        }
        t_guard_free(&stored);
    }
    t_guard_free(&out);
}

static void fails(const h5_pipeline *p, const uint8_t *in, size_t n, size_t m, int code,
                  const char *text)
{
    t_h5 t = {0};
    t_guard stored = t_guard_copy(in, n), out = t_guard_new(m);
    T_FAILS(&t, code, text, h5_pipeline_decode(p, 0, stored.p, n, out.p, m, &t.err));
    t_guard_free(&stored);
    t_guard_free(&out);
}

static void fletcher32(void **state)
{
    (void)state;
    h5_pipeline p = one(3, NULL, 0);
    // Words 0102 and 0300: the sum is 0402, the sum of sums 0504.
    gives(&p, BYTES("\1\2\3\2\4\4\5"), BYTES("\1\2\3"));
    gives(&p, BYTES("\1\2\3\4\2\5\4"), BYTES("\1\2\3"));
    gives(&p, BYTES("\0\0\0\0\0\0"), BYTES("\0\0"));
    gives(&p, BYTES("\377\377\377\377\377\377"), BYTES("\377\377"));
    fails(&p, BYTES("\1\2\3\2\4\4\6"), 3, H5_FORMAT, "checksum 05040402, stored 06040402");
    fails(&p, BYTES("\1\2\3\5\4\4\2"), 3, H5_FORMAT, "stored 02040405");
    fails(&p, BYTES("\1\2\3\2\4\4\5"), 2, H5_FORMAT, "3 bytes for a chunk of 2");
}

static void lz4(void **state)
{
    (void)state;
    h5_pipeline p = one(32004, NULL, 0);
    // Three literals, nine more bytes that repeat them, one literal; then a block as it is.
    gives(&p, BYTES("\0\0\0\0\0\0\0\20\0\0\0\15\0\0\0\10\65abc\3\0\20z\0\0\0\3xyz"),
          BYTES("abcabcabcabczxyz"));
    gives(&p, BYTES("\0\0\0\0\0\0\0\24\0\0\0\24\0\0\0\5\37a\1\0\0"), BYTES("aaaaaaaaaaaaaaaaaaaa"));
    static const struct {
        const uint8_t *p;
        size_t n;
        const char *text;
    } bad[] = {
        {BYTES("\0\0\0\0\0\0\0\11\0\0\0\11\0\0\0\1z"), "header of"},
        {BYTES("\0\0\0\0\0\0\0\10\0\0\0\0\0\0\0\1z"), "header of"},
        {BYTES("\0\0\0\0\0\0\0\10\0\0\0\10\0\0\0\6\40ab\0\0\0"), "distance 0"},
        {BYTES("\0\0\0\0\0\0\0\10\0\0\0\10\0\0\0\6\40ab\3\0\0"), "distance 3"},
        {BYTES("\0\0\0\0\0\0\0\10\0\0\0\10\0\0\0\6\47ab\1\0\0"), "match of 11 bytes"},
        {BYTES("\0\0\0\0\0\0\0\10\0\0\0\10\0\0\0\3\220ab"), "9 literals"},
        {BYTES("\0\0\0\0\0\0\0\10\0\0\0\10\0\0\0\3\40ab"), "block of 8 bytes has 2"},
        {BYTES("\0\0\0\0\0\0\0\10\0\0\0\10\0\0\0\11abcdefgh"), "beyond the end"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        fails(&p, bad[i].p, bad[i].n, 8, H5_FORMAT, bad[i].text);
}

static void lzf(void **state)
{
    (void)state;
    h5_pipeline p = one(32000, NULL, 0);
    gives(&p, BYTES("\2abc\40\2\0z"), BYTES("abcabcz"));
    gives(&p, BYTES("\0a\340\6\0"), BYTES("aaaaaaaaaaaaaaaa"));
    fails(&p, BYTES("\2abc\40\3"), 6, H5_FORMAT, "distance 4");
    fails(&p, BYTES("\2abc\40\2"), 5, H5_FORMAT, "match of 3 bytes");
    fails(&p, BYTES("\2abc"), 2, H5_FORMAT, "3 literals");
    fails(&p, BYTES("\2abc"), 4, H5_FORMAT, "decodes to 3");
}

static void blosclz(void **state)
{
    (void)state;
    enum { RUNS = 270, FAR = 8191 + 0x102 };
    static uint8_t in[RUNS * 33 + 4], out[RUNS * 32 + 3];
    size_t at = 0, made;
    t_h5 t = {0};
    for (int r = 0; r < RUNS; r++) {
        in[at++] = r ? 31 : 0xFF; // the first has the mark
        for (int i = 0; i < 32; i++)
            in[at++] = (uint8_t)(r + i * 7);
    }
    memcpy(in + at, "\77\377\1\2", 4); // length 3, a distance beyond 8191
    T_OK(&t, h5_codec_blosclz(in, sizeof in, out, sizeof out, &made, &t.err));
    assert_int_equal(made, sizeof out);
    assert_memory_equal(out + RUNS * 32, out + RUNS * 32 - FAR - 1, 3);
    T_FAILS(&t, H5_FORMAT, "", h5_codec_blosclz(in, sizeof in - 1, out, sizeof out, &made, &t.err));
    T_FAILS(&t, H5_FORMAT, "", h5_codec_blosclz(in, sizeof in, out, sizeof out - 1, &made, &t.err));
    T_OK(&t, h5_codec_blosclz(BYTES("\40a\340\2\0"), out, sizeof out, &made, &t.err));
    assert_true(made == 12 && memcmp(out, "aaaaaaaaaaaa", 12) == 0);
    T_FAILS(&t, H5_FORMAT, "distance 2",
            h5_codec_blosclz(BYTES("\40a\40\1"), out, sizeof out, &made, &t.err));
}

static void bitshuffle(void **state)
{
    (void)state;
    h5_pipeline p = one(32008, VALUES(0, 4, 1, 0, 0)), other = one(32008, VALUES(0, 4, 1, 0, 1));
    // Element i has the bits 2^i: row j has them too. The ninth stands as it is.
    gives(&p, BYTES("\1\2\4\10\20\40\100\200z"), BYTES("\1\2\4\10\20\40\100\200z"));
    gives(&p, BYTES("\1\1\1\1\3\1\1\1"), BYTES("\377\20\0\0\0\0\0\0"));
    fails(&other, BYTES("\0\0\0\0\0\0\0\10\0\0\0\10\0\0\0\0"), 8, H5_UNSUPPORTED, "codec 1");
    p.filter[0].value[2] = 0;
    fails(&p, BYTES("12345678"), 8, H5_FORMAT, "elements of 0");
    p.filter[0].value[2] = 3;
    fails(&p, BYTES("12345678"), 8, H5_FORMAT, "8 stored bytes");
    p = one(32008, VALUES(0, 4, 1, 0, 2));
    // The rows come as an LZ4 block of eight literals.
    gives(&p, BYTES("\0\0\0\0\0\0\0\11\0\0\0\10\0\0\0\11\200\1\1\1\1\3\1\1\1z"),
          BYTES("\377\20\0\0\0\0\0\0z"));
    fails(&p, BYTES("\0\0\0\0\0\0\0\10\0\0\0\11\0\0\0\1z"), 8, H5_FORMAT, "blocks of 9");
    fails(&p, BYTES("\0\0\0\0\0\0\0\10\0\0\0\10\0\0\0\2\20z"), 8, H5_FORMAT, "too short");
}

static void blosc(void **state)
{
    (void)state;
    h5_pipeline p = one(32001, VALUES(2, 2, 4, 8));
    gives(&p, BYTES("\2\1\2\4\4\0\0\0\4\0\0\0\24\0\0\0abcd"), BYTES("abcd"));
    // One block that is not split, as it is; then shuffled; then LZ4.
    gives(&p, BYTES("\2\1\20\2\4\0\0\0\4\0\0\0\34\0\0\0\24\0\0\0\4\0\0\0abcd"), BYTES("abcd"));
    gives(&p, BYTES("\2\1\21\2\4\0\0\0\4\0\0\0\34\0\0\0\24\0\0\0\4\0\0\0abcd"), BYTES("acbd"));
    gives(&p, BYTES("\2\1\60\2\10\0\0\0\10\0\0\0\35\0\0\0\24\0\0\0\5\0\0\0\23a\1\0\0"),
          BYTES("aaaaaaaa"));
    // The second block, of two bytes, starts before the first.
    gives(&p, BYTES("\2\1\20\2\6\0\0\0\4\0\0\0\46\0\0\0\36\0\0\0\30\0\0\0\2\0\0\0yz\4\0\0\0abcd"),
          BYTES("abcdyz"));
    static const struct {
        const uint8_t *p;
        size_t n;
        int code;
        const char *text;
    } bad[] = {
        {BYTES("\5\1\2\4\4\0\0\0\4\0\0\0\24\0\0\0abcd"), H5_UNSUPPORTED, "format 5"},
        {BYTES("\0\1\2\4\4\0\0\0\4\0\0\0\24\0\0\0abcd"), H5_FORMAT, "format 0"},
        {BYTES("\2\1\2\4\5\0\0\0\4\0\0\0\25\0\0\0abcde"), H5_FORMAT, "5 bytes in"},
        {BYTES("\2\1\2\0\4\0\0\0\4\0\0\0\24\0\0\0abcd"), H5_FORMAT, "elements of 0"},
        {BYTES("\2\1\120\2\4\0\0\0\4\0\0\0\34\0\0\0\24\0\0\0\4\0\0\0abcd"), H5_UNSUPPORTED,
         "codec 2 (snappy)"},
        {BYTES("\2\1\20\2\4\0\0\0\0\0\0\0\34\0\0\0\24\0\0\0\4\0\0\0abcd"), H5_FORMAT,
         "size of a block"},
        {BYTES("\2\1\20\2\4\0\0\0\4\0\0\0\34\0\0\0\35\0\0\0\4\0\0\0abcd"), H5_FORMAT,
         "starts beyond"},
        {BYTES("\2\1\60\2\4\0\0\0\4\0\0\0\32\0\0\0\24\0\0\0\2\0\0\0\20a"), H5_FORMAT, "too short"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        fails(&p, bad[i].p, bad[i].n, 4, bad[i].code, bad[i].text);
}

static void nbit(void **state)
{
    (void)state;
    // Three bits from bit 2 on, of bytes; nine bits from bit 4 on, of two bytes, high byte first.
    h5_pipeline p = one(5, VALUES(8, 0, 3, 1, 1, 0, 3, 2));
    gives(&p, BYTES("\253\200"), BYTES("\24\10\34"));
    p = one(5, VALUES(8, 0, 1, 1, 2, 1, 9, 4));
    gives(&p, BYTES("\252\200"), BYTES("\25\120"));
    // A compound of four bits, a byte of another type at 1, and an array of two bits twice at 2.
    p = one(5, VALUES(21, 0, 1, 3, 5, 3, 0, 1, 1, 0, 4, 0, 1, 4, 1, 2, 2, 2, 1, 1, 0, 2, 0));
    gives(&p, BYTES("\245\347"), BYTES("\12\136\1\3\0"));
    p = one(5, VALUES(5, 1, 3, 4, 1));
    gives(&p, BYTES("abc"), BYTES("abc"));
    const struct {
        const uint32_t *v;
        size_t n;
        const char *text;
    } bad[] = {
        {VALUES(8, 0, 5, 1, 1, 0, 3, 2), "5 elements of 1 bytes"},
        {VALUES(8, 0, 4, 1, 1, 0, 3, 6), "3 bits from bit 6"},
        {VALUES(8, 0, 4, 1, 1, 0, 0, 0), "0 bits from bit 0"},
        {VALUES(8, 0, 4, 1, 1, 2, 3, 2), "order 2"},
        {VALUES(8, 0, 4, 1, 1, 0, 3), "too short"},
        {VALUES(5, 0, 4, 7, 1), "class 7"},
        {VALUES(5, 0, 4, 4, 0), "0 bytes"},
        {VALUES(6, 0, 4, 3, 1, 0), "a compound does not fit"},
        {VALUES(8, 0, 4, 3, 1, 1, 1, 4, 1), "outside its compound"},
        {VALUES(8, 0, 4, 2, 1, 4, 0), "an array does not fit"},
        {VALUES(8, 0, 4, 2, 1, 4, 2), "an array does not fit"},
        {VALUES(8, 0, 4, 1, 1, 0, 8, 0), "fewer bits"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        p = one(5, bad[i].v, bad[i].n);
        fails(&p, BYTES("ab"), 4, H5_FORMAT, bad[i].text);
    }
    uint32_t deep[3 + 2 * 40] = {83, 0, 4};
    for (size_t i = 3; i < sizeof deep / sizeof *deep; i += 2) {
        deep[i] = 2;
        deep[i + 1] = 1;
    }
    p = one(5, deep, sizeof deep / sizeof *deep);
    fails(&p, BYTES("abcd"), 4, H5_LIMIT, "H5_FILTER_NESTING_MAX = 32");
}

static void scaleoffset(void **state)
{
    (void)state;
#define LOW(bits, min) bits "\0\0\0\10" min "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
    // Four bytes of two bits each above 5; then 3 is the fill value 77; then no bits at all.
    h5_pipeline p = one(6, VALUES(2, 0, 4, 0, 1, 0, 0, 0, 77, 0));
    gives(&p, BYTES(LOW("\2", "\5") "\33"), BYTES("\5\6\7\10"));
    p.filter[0].value[7] = 1;
    gives(&p, BYTES(LOW("\2", "\5") "\33"), BYTES("\5\6\7M"));
    p.filter[0].value[7] = 0;
    gives(&p, BYTES(LOW("\0", "\5")), BYTES("\5\5\5\5"));
    gives(&p, BYTES(LOW("\10", "\5") "abcd"), BYTES("abcd"));
    // A float of two digits, high byte first: 1.5 + 25 / 100.
    p = one(6, VALUES(0, 2, 1, 1, 4, 1, 1, 0, 0, 0));
    gives(&p, BYTES("\5\0\0\0\10\0\0\300\77\0\0\0\0\0\0\0\0\0\0\0\0\310"), BYTES("\77\340\0\0"));
    p.filter[0].value[0] = 1;
    fails(&p, BYTES(LOW("\5", "\0") "\310"), 4, H5_UNSUPPORTED, "E-scale");
    p = one(6, VALUES(2, 0, 4, 0, 3, 0, 0, 0, 0, 0));
    fails(&p, BYTES(LOW("\2", "\5") "\33"), 4, H5_FORMAT, "size 3");
    p.filter[0].value[4] = 1;
    fails(&p, BYTES(LOW("\11", "\5") "\33"), 4, H5_FORMAT, "header of 9 bits");
    fails(&p, BYTES(LOW("\2", "\5") "\33"), 3, H5_FORMAT, "4 numbers for a chunk of 3");
#undef LOW
}

static void szip(void **state)
{
    (void)state;
    // Bytes, two a block, four a scanline. 111: as they are; 000 0 1: a block of zeros.
    h5_pipeline p = one(4, VALUES(4, 2, 8, 4));
    gives(&p, BYTES("\4\0\0\0\354\54\101"), BYTES("ab\0\0"));
    fails(&p, BYTES("\5\0\0\0\354\54\101"), 4, H5_FORMAT, "5 bytes");
    // 000 0 00001: zeros up to the end of the scanline; one more is five blocks, too many.
    gives(&p, BYTES("\4\0\0\0\0\200"), BYTES("\0\0\0\0"));
    fails(&p, BYTES("\4\0\0\0\0\100"), 4, H5_FORMAT, "a block that cannot be");
    // Neighbours: 010 and 100, then 0001 0: the difference 3; 000 1 01: a pair of sum 1.
    p.filter[0].value[0] = 36;
    gives(&p, BYTES("\4\0\0\0\114\202\24"), BYTES("dgff"));
    // Twelve bits in two bytes, the high byte first; then low first.
    p = one(4, VALUES(4 + 16, 2, 12, 4));
    gives(&p, BYTES("\10\0\0\0\372\274\22\60\100"), BYTES("\12\274\1\43\0\0\0\0"));
    p.filter[0].value[0] = 4 + 8;
    gives(&p, BYTES("\10\0\0\0\372\274\22\60\100"), BYTES("\274\12\43\1\0\0\0\0"));
    for (uint32_t i = 1; i < 4; i++) {
        h5_pipeline bad = p;
        bad.filter[0].value[i] = i == 2 ? 25 : i == 1 ? 3 : 0;
        fails(&bad, BYTES("\4\0\0\0\0"), 4, H5_FORMAT, "pixels a block");
    }
}

/* No allocation that fails is passed over, and none is kept. */
static void no_memory(void **state)
{
    (void)state;
    static const struct {
        h5_pipeline p;
        const uint8_t *in;
        size_t n;
    } cases[] = {
        {{.n = 1, .filter[0] = {.id = 32008, .nvalue = 5, .value = {0, 4, 1, 0, 2}}},
         BYTES("\0\0\0\0\0\0\0\10\0\0\0\10\0\0\0\11\200\1\1\1\1\3\1\1\1")},
        {{.n = 1, .filter[0] = {.id = 32001}},
         BYTES("\2\1\21\2\10\0\0\0\10\0\0\0\40\0\0\0\24\0\0\0\10\0\0\0abcdefgh")},
        {{.n = 1, .filter[0] = {.id = 4, .nvalue = 4, .value = {4, 2, 64, 8}}},
         BYTES("\10\0\0\0\0\200")},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t out[8];
        t_alloc a = {0};
        h5_allocator hook = {t_alloc_get, t_alloc_resize, t_alloc_release, &a};
        h5_set_allocator(&hook);
        for (a.fail_at = 1;; a.fail_at++) {
            a.count = 0;
            int rc = h5_pipeline_decode(&cases[i].p, 0, cases[i].in, cases[i].n, out, 8, NULL);
            assert_int_equal(a.live, 0);
            assert_int_equal(rc, a.count < a.fail_at ? H5_OK : H5_NOMEM);
            if (rc == H5_OK)
                break;
        }
        assert_true(a.fail_at > 1);
        h5_set_allocator(NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fletcher32), cmocka_unit_test(lz4),         cmocka_unit_test(lzf),
        cmocka_unit_test(blosclz),    cmocka_unit_test(bitshuffle),  cmocka_unit_test(blosc),
        cmocka_unit_test(nbit),       cmocka_unit_test(scaleoffset), cmocka_unit_test(szip),
        cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests_name("h5_filter_decode", tests, NULL, NULL);
}
