/*
 * t_st_row.c - row versions: values in and out, their bytes in the log, every prefix and change of
 * those
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "t_guard.h"
#include "t_model.h"
#include "vec.h"

static st_schema *schema(void)
{
    st_schema *s;
    st_error err = {0, ""};
    st_column user[4] = {
        {"user_id", ST_TEXT}, {"priority", ST_INT}, {"ratio", ST_REAL}, {"raw", ST_BLOB}};
    t_ok(&err, st_schema_make(T_DIM, VEC_COSINE, 0, user, 4, "t", "f", &s, &err));
    return s;
}

static st_slot *slot_of(const st_schema *s, const t_mrow *m)
{
    st_slot *t;
    st_error err = {0, ""};
    st_row row = t_mrow_row(m);
    t_ok(&err, st_slot_make(s, &row, 0, &t, &err));
    t->id = m->id;
    return t;
}

static void assert_slot(const st_schema *s, const st_slot *t, const t_mrow *m)
{
    for (int col = 0; col < s->ncol; col++) {
        st_value have;
        st_slot_value(s, t, t->small, col, &have);
        if (!t_same(&have, &m->v[col]))
            fail_msg("column %d", col);
    }
    assert_int_equal(t->ntokens, m->ntokens);
    assert_memory_equal(t->tokens ? (const void *)t->tokens : "", m->tokens, m->ntokens);
    assert_true(isnan(t->norm) ? isnan(m->norm) : t->norm == m->norm);
}

static void values_in_and_out(void **state)
{
    (void)state;
    t_rng r = t_rng_start(1);
    st_schema *s = schema();
    for (int i = 0; i < 500; i++) {
        t_mrow *m = t_mrow_random(&r, T_DIM, (int64_t)t_rng_next(&r));
        st_slot *t = slot_of(s, m);
        assert_slot(s, t, m);
        st_slot_free(t);
        t_mrow_unref(m);
    }
    st_schema_free(s);
}

/* Each wrong value is refused by name. */
static void refused(const st_schema *s, int col, st_value v, int code)
{
    t_rng r = {3};
    t_mrow *m = t_mrow_random(&r, T_DIM, 1);
    st_row row;
    st_slot *t;
    st_error err = {0, ""};
    m->given[col] = v;
    row = t_mrow_row(m);
    assert_int_equal(st_slot_make(s, &row, 0, &t, &err), code);
    assert_null(t);
    if (!strstr(err.text, col == ST_COL_EMBEDDING ? "" : st_logical_name(s, col)))
        fail_msg("column %d: %s", col, err.text);
    t_mrow_unref(m);
}

static void wrong_values(void **state)
{
    (void)state;
    st_schema *s = schema();
    float bad[T_DIM] = {1, NAN, 2}, big[T_DIM] = {1, 2, INFINITY}, some[T_DIM + 1] = {1, 2, 3, 4};
    refused(s, ST_COL_CONTENT, t_bytes(ST_BLOB, "x", 1), ST_MISUSE);
    refused(s, ST_COL_CONTENT, t_int(1), ST_MISUSE);
    refused(s, T_COL_RAW, t_text("x"), ST_MISUSE);
    refused(s, ST_COL_EMBEDDING, t_text("abcdefghijkl"), ST_MISUSE);
    refused(s, ST_COL_EMBEDDING, t_bytes(ST_BLOB, some, 4 * (T_DIM + 1)), ST_MISUSE);
    refused(s, ST_COL_EMBEDDING, t_bytes(ST_BLOB, some, 4 * T_DIM - 1), ST_MISUSE);
    refused(s, ST_COL_EMBEDDING, t_bytes(ST_BLOB, "", 0), ST_MISUSE);
    refused(s, ST_COL_EMBEDDING, t_bytes(ST_BLOB, bad, sizeof bad), ST_MISUSE);
    refused(s, ST_COL_EMBEDDING, t_bytes(ST_BLOB, big, sizeof big), ST_MISUSE);
    refused(s, ST_COL_TIMESTAMP, t_text("now"), ST_MISUSE);
    refused(s, ST_COL_TIMESTAMP, t_real(INFINITY), ST_MISUSE);
    refused(s, ST_COL_TIMESTAMP, t_real(NAN), ST_MISUSE);
    refused(s, ST_COL_IMPORTANCE, t_real(2), ST_MISUSE);
    refused(s, ST_COL_TAGS, t_bytes(ST_TEXT, "", ST_TEXT_BYTES_MAX + 1), ST_LIMIT);
    st_schema_free(s);
}

/* No time given: now. Tokens are those of all texts: also without content. */
static void defaults(void **state)
{
    (void)state;
    st_schema *s = schema();
    st_value none[T_NCOL] = {0}, v;
    st_row row = {none, (const uint8_t *)"\2a", 2};
    st_slot *t;
    assert_int_equal(st_slot_make(s, &row, 1234.5, &t, NULL), ST_OK);
    assert_true(t->timestamp == 1234.5 && isnan(t->norm) && !t->embedding && t->ntokens == 2);
    st_slot_value(s, t, t->small, ST_COL_TIER, &v);
    assert_int_equal(v.n, 7);
    st_slot_free(t);
    st_schema_free(s);
}

static void bytes_and_back(void **state)
{
    (void)state;
    t_rng r = t_rng_start(2);
    st_schema *s = schema();
    for (int i = 0; i < 300; i++) {
        t_mrow *m = t_mrow_random(&r, T_DIM, (int64_t)t_rng_next(&r));
        st_slot *t = slot_of(s, m), *back;
        st_buf b = {0};
        st_error err = {0, ""};
        t_ok(&err, st_slot_encode(s, t, t->small, &b, &err));
        t_guard g = t_guard_copy(b.p, b.n);
        t_ok(&err, st_slot_decode(s, g.p, b.n, &back, &err));
        t_guard_free(&g); // a slot keeps nothing of the frame
        assert_int_equal(back->id, m->id);
        assert_slot(s, back, m);
        st_slot_free(t);
        st_slot_free(back);
        st_buf_free(&b);
        t_mrow_unref(m);
    }
    st_schema_free(s);
}

/* A slot made of any bytes can be looked at and written again. */
static void look_at(const st_schema *s, const st_slot *t)
{
    st_buf b = {0};
    unsigned sum = 0;
    for (int col = 0; col < s->ncol; col++) {
        st_value v;
        st_slot_value(s, t, t->small, col, &v);
        for (size_t i = 0; v.type >= ST_TEXT && i < v.n; i++)
            sum += ((const uint8_t *)v.p)[i];
    }
    for (size_t i = 0; i < t->ntokens; i++)
        sum += t->tokens[i];
    assert_true(sum < UINT32_MAX);
    assert_int_equal(st_slot_encode(s, t, t->small, &b, NULL), ST_OK);
    st_buf_free(&b);
}

static int decode(const st_schema *s, const uint8_t *p, size_t n)
{
    t_guard g = t_guard_copy(p, n);
    st_slot *t;
    st_error err = {0, ""};
    int rc = st_slot_decode(s, g.p, n, &t, &err);
    if (rc) {
        assert_int_equal(rc, ST_CORRUPT);
        assert_null(t);
        assert_true(err.text[0]);
    } else {
        look_at(s, t);
        st_slot_free(t);
    }
    t_guard_free(&g);
    return rc;
}

static void any_bytes(void **state)
{
    (void)state;
    t_rng r = t_rng_start(3);
    st_schema *s = schema();
    for (int i = 0; i < 12; i++) {
        t_mrow *m = t_mrow_random(&r, T_DIM, 5);
        st_slot *t = slot_of(s, m);
        st_buf b = {0};
        size_t fixed, fewest;
        assert_int_equal(st_slot_encode(s, t, t->small, &b, NULL), ST_OK);
        fixed = b.n > 3000 ? 97 : 1;
        // Without its tokens a row is a row; shorter it is none.
        fewest = b.n - t->ntokens;
        for (size_t n = 0; n < b.n; n += fixed)
            assert_int_equal(decode(s, b.p, n), n < fewest ? ST_CORRUPT : ST_OK);
        for (size_t at = 0; at < b.n; at += fixed) {
            for (int bit = 0; bit < 8; bit++) {
                b.p[at] ^= (uint8_t)(1 << bit);
                decode(s, b.p, b.n);
                b.p[at] ^= (uint8_t)(1 << bit);
            }
        }
        st_buf_free(&b);
        st_slot_free(t);
        t_mrow_unref(m);
    }
    st_schema_free(s);
}

static void small_frames(void **state)
{
    (void)state;
    t_rng r = t_rng_start(4);
    st_schema *s = schema();
    st_num small[ST_SMALLS_MAX], back[ST_SMALLS_MAX];
    st_buf b = {0};
    int64_t id = 0;
    t_rng_fill(&r, small, sizeof small);
    assert_int_equal(st_small_encode(s, -77, small, &b, NULL), ST_OK);
    assert_int_equal(st_small_decode(s, b.p, b.n, &id, back, NULL), ST_OK);
    assert_int_equal(id, -77);
    assert_memory_equal(small, back, (size_t)s->nsmall * sizeof *small);
    for (size_t n = 0; n <= b.n + 1; n++) {
        t_guard g = t_guard_new(n);
        memcpy(g.p, b.p, n < b.n ? n : b.n);
        assert_int_equal(st_small_decode(s, g.p, n, &id, back, NULL),
                         n == b.n ? ST_OK : ST_CORRUPT);
        t_guard_free(&g);
    }
    b.p[8] ^= 1;
    assert_int_equal(st_small_decode(s, b.p, b.n, &id, back, NULL), ST_CORRUPT);
    st_buf_free(&b);
    st_schema_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_in_and_out), cmocka_unit_test(wrong_values),
        cmocka_unit_test(defaults),          cmocka_unit_test(bytes_and_back),
        cmocka_unit_test(any_bytes),         cmocka_unit_test(small_frames),
    };
    vec_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
