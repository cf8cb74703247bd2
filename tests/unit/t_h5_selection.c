/*
 * t_h5_selection.c - stored selections against a list of all their elements
 *
 * SPDX-License-Identifier: MIT
 */
#include "t_h5.h"

#include "h5_selection.h"
#include "t_rng.h"

enum { ROUNDS = 3000, MOST = 12 };

/* Every element for which `takes` holds, in C order, must be what h5_selection_at gives. */
static void compare(const h5_selection *s, const uint8_t *takes, uint64_t cells)
{
    uint64_t n = 0, place, run = 0;
    for (uint64_t cell = 0; cell < cells; cell++) {
        if (!takes[cell])
            continue;
        uint64_t have = h5_selection_at(s, n, &place);
        assert_int_equal(place, cell);
        assert_true(have >= 1);
        if (run > 1)
            assert_int_equal(have, run - 1);
        run = have;
        n++;
    }
    assert_int_equal(n, s->total);
}

static void regular(void **state)
{
    (void)state;
    t_rng rng = t_rng_start(11);
    for (int round = 0; round < ROUNDS; round++) {
        int rank = 1 + (int)t_rng_below(&rng, 3);
        uint64_t dims[3], cells = 1;
        h5_buf b = {0};
        uint64_t start[3], stride[3], count[3], block[3];
        h5_buf_u32(&b, H5_SELECT_SLAB);
        h5_buf_u32(&b, 3);
        h5_buf_u8(&b, 1);
        h5_buf_u8(&b, 2);
        h5_buf_u32(&b, (unsigned)rank);
        for (int i = 0; i < rank; i++) {
            dims[i] = 1 + t_rng_below(&rng, MOST);
            cells *= dims[i];
            block[i] = 1 + t_rng_below(&rng, 3);
            stride[i] = block[i] + t_rng_below(&rng, 3);
            count[i] = 1 + t_rng_below(&rng, 4);
            start[i] = t_rng_below(&rng, 4);
            uint64_t each[] = {start[i], stride[i], count[i], block[i]};
            for (int k = 0; k < 4; k++)
                h5_buf_u16(&b, (unsigned)each[k]);
        }
        h5_selection s;
        h5_error err = {0};
        h5_cur c = h5_cur_on(b.p, b.n);
        assert_int_equal(h5_selection_parse(&c, 0, &s, &err), H5_OK);
        assert_int_equal(c.left, 0);
        int fits = 1;
        for (int i = 0; i < rank; i++)
            fits &= start[i] + (count[i] - 1) * stride[i] + block[i] <= dims[i];
        assert_int_equal(h5_selection_settle(&s, rank, dims, 0, &err), fits ? H5_OK : H5_FORMAT);
        uint8_t takes[MOST * MOST * MOST];
        for (uint64_t cell = 0; fits && cell < cells; cell++) {
            uint64_t rest = cell;
            takes[cell] = 1;
            for (int i = rank; i-- > 0; rest /= dims[i]) {
                uint64_t at = rest % dims[i] - start[i];
                takes[cell] &= rest % dims[i] >= start[i] && at / stride[i] < count[i] &&
                               at % stride[i] < block[i];
            }
        }
        if (fits)
            compare(&s, takes, cells);
        h5_selection_free(&s);
        h5_buf_free(&b);
    }
}

/* Blocks in any order; where two overlap, or one sticks out, the selection is refused. */
static void blocks(void **state)
{
    (void)state;
    t_rng rng = t_rng_start(12);
    int good = 0;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t dims[2] = {2 + t_rng_below(&rng, MOST - 2), 2 + t_rng_below(&rng, MOST - 2)};
        unsigned n = 1 + (unsigned)t_rng_below(&rng, 4);
        uint8_t takes[MOST * MOST] = {0};
        int fits = 1;
        h5_buf b = {0};
        h5_buf_u32(&b, H5_SELECT_SLAB);
        h5_buf_u32(&b, 1);
        h5_buf_u64(&b, 0);
        h5_buf_u32(&b, 2);
        h5_buf_u32(&b, n);
        for (unsigned k = 0; k < n; k++) {
            uint64_t lo[2] = {t_rng_below(&rng, dims[0]), t_rng_below(&rng, dims[1])};
            uint64_t hi[2] = {lo[0] + t_rng_below(&rng, 4), lo[1] + t_rng_below(&rng, 4)};
            for (int i = 0; i < 2; i++)
                h5_buf_u32(&b, (unsigned)lo[i]);
            for (int i = 0; i < 2; i++)
                h5_buf_u32(&b, (unsigned)hi[i]);
            fits &= hi[0] < dims[0] && hi[1] < dims[1];
            for (uint64_t x = lo[0]; fits && x <= hi[0]; x++)
                for (uint64_t y = lo[1]; y <= hi[1]; y++)
                    fits &= ++takes[x * dims[1] + y] == 1;
        }
        h5_selection s;
        h5_error err = {0};
        h5_cur c = h5_cur_on(b.p, b.n);
        assert_int_equal(h5_selection_parse(&c, 0, &s, &err), H5_OK);
        assert_int_equal(h5_selection_settle(&s, 2, dims, 0, &err), fits ? H5_OK : H5_FORMAT);
        uint64_t at = 0, place;
        for (uint64_t cell = 0; fits && cell < dims[0] * dims[1]; cell++)
            if (takes[cell]) {
                h5_selection_at(&s, at++, &place);
                assert_int_equal(place, cell);
            }
        assert_true(!fits || at == s.total);
        good += fits;
        h5_selection_free(&s);
        h5_buf_free(&b);
    }
    assert_true(good > ROUNDS / 20 && good < ROUNDS);
}

/* The two functions of one dimension undo each other. */
static void unlimited(void **state)
{
    (void)state;
    for (uint64_t start = 0; start < 4; start++)
        for (uint64_t block = 1; block < 4; block++)
            for (uint64_t stride = block; stride < 6; stride++) {
                h5_select_dim d = {start, stride, UINT64_MAX, block, 0};
                uint64_t n = 0;
                for (uint64_t extent = 0; extent < 40; extent++) {
                    assert_int_equal(h5_select_below(&d, extent), n);
                    if (extent >= start && (extent - start) % stride < block)
                        assert_int_equal(h5_select_extent(&d, ++n), extent + 1);
                }
            }
}

static void refused(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
        int code;
        const char *text;
    } cases[] = {
        {"\2\0\0", 3, H5_FORMAT, "cut off"},
        {"\1\0\0\0\1\0\0\0", 8, H5_UNSUPPORTED, "points"},
        {"\4\0\0\0\1\0\0\0", 8, H5_FORMAT, "kind 4"},
        {"\3\0\0\0\2\0\0\0", 8, H5_FORMAT, "version 2"},
        {"\2\0\0\0\3\0\0\0\1\3\1\0\0\0", 14, H5_FORMAT, "numbers of 3 bytes"},
        {"\2\0\0\0\3\0\0\0\1\2\41\0\0\0", 14, H5_FORMAT, "rank 33"},
        {"\2\0\0\0\3\0\0\0\1\2\1\0\0\0\0\0\1\0\2\0\2\0", 22, H5_FORMAT, "blocks of 2 every 1"},
        {"\2\0\0\0\3\0\0\0\1\2\1\0\0\0\0\0\1\0\377\377\0\0", 22, H5_FORMAT, "unlimited"},
        {"\2\0\0\0\3\0\0\0\0\2\1\0\0\0\377\377\0\0\0\0", 20, H5_FORMAT, "cut off"},
    };
    t_h5 t = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        h5_selection s;
        h5_cur c = h5_cur_on(cases[i].bytes, cases[i].n);
        T_FAILS(&t, cases[i].code, cases[i].text, h5_selection_parse(&c, 0, &s, &t.err));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(regular),
        cmocka_unit_test(blocks),
        cmocka_unit_test(unlimited),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests_name("h5_selection", tests, NULL, NULL);
}
