/*
 * t_st_schema.c - names and types of columns, NULL marks, columns as text, options
 *
 * SPDX-License-Identifier: MIT
 */
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "t_guard.h"
#include "t_store.h"
#include "vec.h"

static st_column column(const char *name, int type)
{
    st_column c;
    memset(&c, 0, sizeof c);
    snprintf(c.name, sizeof c.name, "%s", name);
    c.type = type;
    return c;
}

static st_schema *make(const st_column *user, size_t n)
{
    st_schema *s;
    st_error err = {0, ""};
    t_ok(&err, st_schema_make(5, VEC_L2, 0, user, n, "spec", "print", &s, &err));
    return s;
}

static st_schema *standard(void)
{
    const st_column user[] = {column("user_id", ST_TEXT), column("priority", ST_INT),
                              column("ratio", ST_REAL), column("raw", ST_BLOB)};
    return make(user, 4);
}

/* Every logical column is exactly one of the kinds, and every dataset has a path of its own. */
static void the_layout(void **state)
{
    (void)state;
    st_schema *s = standard();
    int texts = 0, smalls = 0;
    assert_int_equal(s->ncol, T_NCOL);
    assert_string_equal(s->tokenizer, "spec");
    assert_string_equal(s->fingerprint, "print");
    for (int c = 0; c < s->ncol; c++) {
        int type = st_logical_type(s, c);
        assert_non_null(st_logical_name(s, c));
        assert_false(s->text_of[c] >= 0 && s->small_of[c] >= 0);
        texts += s->text_of[c] >= 0;
        smalls += s->small_of[c] >= 0;
        if (s->small_of[c] >= 0) {
            assert_int_equal(s->small_col[s->small_of[c]], c);
            assert_int_equal(s->small_real[s->small_of[c]], type == ST_REAL);
        }
        if (c < ST_COL_USER) {
            assert_string_equal(st_logical_name(s, c), st_column_name(c));
            assert_int_equal(type, st_column_type(c));
        }
    }
    assert_int_equal(texts, s->ntext);
    assert_int_equal(smalls, s->nsmall);
    assert_int_equal(s->nmemory, ST_PHYS_TEXTS + 2 * texts + smalls);
    for (int p = 0; p < s->nphys; p++) {
        const st_phys *a = &s->phys[p];
        assert_true(a->elem == (size_t)a->type.size * a->width && a->chunk_small > 0);
        assert_true(a->chunk_small <= a->chunk_large);
        assert_true(a->chunk_large * a->elem <= 64 << 10);
        for (int q = 0; q < p; q++)
            assert_string_not_equal(a->path, s->phys[q].path);
    }
    assert_null(st_column_name(-1));
    assert_null(st_column_name(ST_COL_USER));
    st_schema_free(s);
    st_schema_free(NULL);
}

static int name_code(const char *name, int type)
{
    st_column c = column(name, type);
    st_schema *s;
    st_error err = {0, ""};
    int rc = st_schema_make(3, 0, 0, &c, 1, "t", "f", &s, &err);
    assert_int_equal(err.code, rc);
    assert_true((s != NULL) == (rc == ST_OK));
    st_schema_free(s);
    return rc;
}

static void names(void **state)
{
    (void)state;
    static const char *const good[] = {"a",      "user_id", "Ünïcode", "data", "offsets",
                                       "plane_", "norms",   "a:b",     "NULL", "0"};
    static const char *const bad[] = {
        "",    ".",  "..", "a b",  "a/b",  "a.b",           "a,b",        "a\"b",    "a'b",   "\tx",
        "x\n", "id", "ID", "norm", "LIVE", "superseded_BY", "Plane_Fine", "Content", "pinned"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (name_code(good[i], ST_TEXT))
            fail_msg("'%s' was refused", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (name_code(bad[i], ST_TEXT) != ST_MISUSE)
            fail_msg("'%s' was taken", bad[i]);
    for (int type = -1; type < 7; type++)
        assert_int_equal(name_code("x", type),
                         type >= ST_INT && type <= ST_BLOB ? ST_OK : ST_MISUSE);
    // As long as the struct has room for, and one without an end.
    st_column c = column("", ST_INT);
    st_schema *s;
    memset(c.name, 'n', sizeof c.name - 1);
    st_schema_free(make(&c, 1));
    const st_column twice[] = {column("ab", ST_INT), column("AB", ST_TEXT)};
    assert_int_equal(st_schema_make(3, 0, 0, twice, 2, "t", "f", &s, NULL), ST_MISUSE);
    assert_int_equal(st_schema_make(0, 0, 0, NULL, 0, "t", "f", &s, NULL), ST_MISUSE);
    assert_int_equal(st_schema_make(-1, 0, 0, NULL, 0, "t", "f", &s, NULL), ST_MISUSE);
    assert_int_equal(st_schema_make(ST_DIM_MAX + 1, 0, 0, NULL, 0, "t", "f", &s, NULL), ST_MISUSE);
    assert_int_equal(st_schema_make(ST_DIM_MAX, 0, 0, NULL, 0, "t", "f", &s, NULL), ST_OK);
    st_schema_free(s);
}

static void many_columns(void **state)
{
    (void)state;
    st_column user[ST_USER_COLUMNS_MAX + 1];
    st_schema *s;
    for (int i = 0; i <= ST_USER_COLUMNS_MAX; i++) {
        char name[16];
        snprintf(name, sizeof name, "c%d", i);
        user[i] = column(name, ST_INT + i % 4);
    }
    s = make(user, ST_USER_COLUMNS_MAX);
    assert_true(s->nphys <= ST_PHYS_MAX);
    st_schema_free(s);
    assert_int_equal(st_schema_make(3, 0, 0, user, ST_USER_COLUMNS_MAX + 1, "t", "f", &s, NULL),
                     ST_LIMIT);
}

/* ------------------------------------------------------------------------------ columns as text */

static void columns_as_text(void **state)
{
    (void)state;
    t_rng r = t_rng_start(1);
    for (int round = 0; round < 200; round++) {
        st_column user[ST_USER_COLUMNS_MAX], back[ST_USER_COLUMNS_MAX];
        size_t n = t_rng_below(&r, 9), got;
        st_buf b = {0};
        st_error err = {0, ""};
        for (size_t i = 0; i < n; i++) {
            char name[ST_NAME_MAX] = "";
            int used = snprintf(name, sizeof name, "c%zu_", i);
            for (uint64_t k = t_rng_below(&r, ST_NAME_MAX - 10); k-- > 0;)
                name[used++] = (char)('a' + t_rng_below(&r, 26));
            user[i] = column(name, ST_INT + (int)t_rng_below(&r, 4));
        }
        st_schema *s = make(user, n);
        t_ok(&err, st_columns_print(s, &b, &err));
        t_ok(&err, st_columns_parse((const char *)b.p, back, &got, &err));
        assert_int_equal(got, n);
        assert_memory_equal(back, user, n * sizeof *user);
        // A text cut off or changed is refused or is some list, and is never read past its end.
        for (size_t cut = 0; cut < b.n; cut += 1 + t_rng_below(&r, 5)) {
            t_guard g = t_guard_new(cut + 1);
            memcpy(g.p, b.p, cut);
            if (cut && t_rng_below(&r, 2))
                g.p[t_rng_below(&r, cut)] = (uint8_t)(1 + t_rng_below(&r, 255));
            int rc = st_columns_parse((const char *)g.p, back, &got, NULL);
            assert_true(rc == ST_OK || rc == ST_CORRUPT);
            assert_true(got <= ST_USER_COLUMNS_MAX);
            t_guard_free(&g);
        }
        st_buf_free(&b);
        st_schema_free(s);
    }
}

static void too_many_columns_as_text(void **state)
{
    (void)state;
    char text[4096] = "";
    st_column back[ST_USER_COLUMNS_MAX];
    size_t n = 0, got;
    for (int i = 0; i <= ST_USER_COLUMNS_MAX; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%sc%d TEXT", i ? ", " : "", i);
    assert_int_equal(st_columns_parse(text, back, &got, NULL), ST_CORRUPT);
    *strrchr(text, ',') = 0;
    assert_int_equal(st_columns_parse(text, back, &got, NULL), ST_OK);
    assert_int_equal(got, ST_USER_COLUMNS_MAX);
}

/* --------------------------------------------------------------------------------- small values */

static int small_of(const st_schema *s, int col)
{
    assert_true(s->small_of[col] >= 0);
    return s->small_of[col];
}

/* What a small column makes of a value, through its stored bytes and back. */
static int through(const st_schema *s, int col, st_value in, st_value *out)
{
    int small = small_of(s, col);
    st_num v = {.i = 0x5a5a5a5a};
    uint8_t bytes[8] = {0};
    st_error err = {0, ""};
    int rc = st_small_from_value(s, small, &in, &v, &err);
    assert_int_equal(err.code, rc);
    if (rc) {
        assert_non_null(strstr(err.text, st_logical_name(s, col)));
        return rc;
    }
    st_small_pack(s, small, v, bytes);
    st_small_to_value(s, small, st_small_unpack(s, small, bytes), out);
    assert_int_equal(out->type == ST_NULL, st_small_is_null(s, small, v));
    return ST_OK;
}

static void takes(const st_schema *s, int col, st_value in, st_value want)
{
    st_value out;
    if (through(s, col, in, &out) || !t_same(&out, &want))
        fail_msg("column %d, type %d %lld %.17g", col, in.type, (long long)in.i, in.r);
}

static void refuses(const st_schema *s, int col, st_value in)
{
    st_value out;
    if (through(s, col, in, &out) != ST_MISUSE)
        fail_msg("column %d took type %d %lld %.17g", col, in.type, (long long)in.i, in.r);
}

static void small_values(void **state)
{
    (void)state;
    st_schema *s = standard();
    static const char *const source[] = {"user", "assistant", "system",
                                         "tool", "retrieval", "correction"};
    static const char *const tier[] = {"working", "episodic", "semantic"};
    for (size_t i = 0; i < 6; i++)
        takes(s, ST_COL_SOURCE, t_text(source[i]), t_text(source[i]));
    for (size_t i = 0; i < 3; i++)
        takes(s, ST_COL_TIER, t_text(tier[i]), t_text(tier[i]));
    takes(s, ST_COL_SOURCE, t_null(), t_null());
    takes(s, ST_COL_TIER, t_null(), t_text("working"));
    for (int col = ST_COL_SOURCE; col <= ST_COL_TIER; col++) {
        refuses(s, col, t_text(""));
        refuses(s, col, t_text("User"));
        refuses(s, col, t_text("use"));
        refuses(s, col, t_int(1));
        refuses(s, col, t_bytes(ST_BLOB, "user", 4));
    }
    takes(s, ST_COL_IMPORTANCE, t_null(), t_real(0.5));
    takes(s, ST_COL_IMPORTANCE, t_int(1), t_real(1));
    takes(s, ST_COL_IMPORTANCE, t_real(0), t_real(0));
    refuses(s, ST_COL_IMPORTANCE, t_real(1.0000001));
    refuses(s, ST_COL_IMPORTANCE, t_real(-0.1));
    refuses(s, ST_COL_IMPORTANCE, t_real(NAN));
    refuses(s, ST_COL_IMPORTANCE, t_text("0.5"));
    takes(s, ST_COL_ACTIVATION, t_null(), t_real(1));
    takes(s, ST_COL_ACTIVATION, t_real(1e300), t_real(1e300));
    refuses(s, ST_COL_ACTIVATION, t_real(INFINITY));
    refuses(s, ST_COL_ACTIVATION, t_real(-1));
    takes(s, ST_COL_ACCESS_COUNT, t_null(), t_int(0));
    takes(s, ST_COL_ACCESS_COUNT, t_int(INT64_MAX), t_int(INT64_MAX));
    refuses(s, ST_COL_ACCESS_COUNT, t_int(-1));
    refuses(s, ST_COL_ACCESS_COUNT, t_real(1));
    takes(s, ST_COL_PINNED, t_null(), t_int(0));
    takes(s, ST_COL_PINNED, t_int(1), t_int(1));
    refuses(s, ST_COL_PINNED, t_int(2));
    refuses(s, ST_COL_PINNED, t_int(256));
    static const int reals[] = {ST_COL_LAST_ACCESS, ST_COL_VALID_FROM, ST_COL_VALID_TO,
                                T_COL_RATIO};
    for (size_t i = 0; i < 4; i++) {
        takes(s, reals[i], t_null(), t_null());
        takes(s, reals[i], t_real(-0.0), t_real(-0.0));
        takes(s, reals[i], t_real(DBL_MAX), t_real(DBL_MAX));
        takes(s, reals[i], t_real(-INFINITY), t_real(-INFINITY));
        takes(s, reals[i], t_int(3), t_real(3));
        refuses(s, reals[i], t_real(NAN));
        refuses(s, reals[i], t_text("x"));
    }
    static const int whole[] = {ST_COL_SUPERSEDED_BY, T_COL_PRIORITY};
    for (size_t i = 0; i < 2; i++) {
        takes(s, whole[i], t_null(), t_null());
        takes(s, whole[i], t_int(INT64_MIN + 1), t_int(INT64_MIN + 1));
        takes(s, whole[i], t_int(INT64_MAX), t_int(INT64_MAX));
        refuses(s, whole[i], t_int(INT64_MIN));
        refuses(s, whole[i], t_real(2));
    }
    st_schema_free(s);
}

/* Bytes that no write makes still show as something. */
static void small_values_of_any_bytes(void **state)
{
    (void)state;
    st_schema *s = standard();
    t_rng r = t_rng_start(2);
    for (int round = 0; round < 3000; round++) {
        int small = (int)t_rng_below(&r, (uint64_t)s->nsmall);
        st_value out;
        uint8_t bytes[8];
        t_rng_fill(&r, bytes, 8);
        st_small_to_value(s, small, st_small_unpack(s, small, bytes), &out);
        assert_true(out.type >= ST_NULL && out.type <= ST_TEXT);
        st_small_to_value(s, small, (st_num){.i = (int64_t)t_rng_next(&r)}, &out);
        assert_true(out.type != ST_TEXT || (out.n > 0 && out.n < 20));
    }
    st_schema_free(s);
}

/* -------------------------------------------------------------------------------------- options */

static const char *get(const st_schema *s, const st_options *o, const char *name)
{
    static char buf[300];
    st_error err = {0, ""};
    t_ok(&err, st_options_get(s, o, name, buf, sizeof buf, &err));
    return buf;
}

typedef struct option_case {
    const char *name, *value, *shown; /* shown NULL: refused */
} option_case;

static const option_case cases[] = {
    {"compression", "none", "none"},
    {"compression", "deflate", "deflate:6"},
    {"compression", "deflate:1", "deflate:1"},
    {"compression", "deflate:9", "deflate:9"},
    {"compression", "deflate:0", NULL},
    {"compression", "deflate:10", NULL},
    {"compression", "deflate:", NULL},
    {"compression", "deflater", NULL},
    {"compression", "zstd", "zstd:3"},
    {"compression", "zstd:22", "zstd:22"},
    {"compression", "zstd:23", NULL},
    {"compression", "zstd:-1", NULL},
    {"compression", "", NULL},
    {"compression", "NONE", NULL},
    {"synchronous", "off", "off"},
    {"synchronous", "normal", "normal"},
    {"synchronous", "full", "full"},
    {"synchronous", "FULL", NULL},
    {"synchronous", "", NULL},
    {"autoflush", "4096", "4096"},
    {"autoflush", "4095", NULL},
    {"autoflush", "1000000000000000", "1000000000000000"},
    {"autoflush", "1000000000000001", NULL},
    {"autoflush", "-5", NULL},
    {"autoflush", "1e6", NULL},
    {"autoflush", "9223372036854775808", NULL},
    {"autoflush", "", NULL},
    {"vector_weight", "0", "0"},
    {"vector_weight", "0.1", "0.1"},
    {"vector_weight", "1e6", "1000000"},
    {"vector_weight", "1000001", NULL},
    {"vector_weight", "-0.1", NULL},
    {"vector_weight", "nan", NULL},
    {"vector_weight", "inf", NULL},
    {"vector_weight", "0x10", NULL},
    {"vector_weight", "1,5", NULL},
    {"vector_weight", " 1", NULL},
    {"vector_weight", "1 ", NULL},
    {"vector_weight", "1e", NULL},
    {"vector_weight", ".", NULL},
    {"text_weight", "2.5e-3", "0.0025"},
    {"rrf_k", "60", "60"},
    {"rrf_k", "+60.50", "60.5"},
    {"rrf_k", "0.333333333333333333", "0.333333333333333"},
    {"autocompact", "0.05", "0.05"},
    {"autocompact", "1", "1"},
    {"autocompact", "1.01", NULL},
    {"agent", "", ""},
    {"agent", "somebody, else", "somebody, else"},
    {"embedder", "model \xc3\xa9", "model \xc3\xa9"},
    {"dim", "3", NULL},
    {"metric", "l2", NULL},
    {"storage", "f32", NULL},
    {"tokenize", "porter", NULL},
};

static void options(void **state)
{
    (void)state;
    st_schema *s = standard();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const option_case *k = &cases[i];
        st_options o, before;
        st_error err = {0, ""};
        st_options_default(&o);
        before = o;
        int rc = st_options_set(&o, k->name, k->value, 1, &err);
        if (k->shown) {
            t_ok(&err, rc);
            assert_string_equal(get(s, &o, k->name), k->shown);
        } else {
            if (rc != ST_MISUSE || !strstr(err.text, k->name))
                fail_msg("%s = '%s': %d %s", k->name, k->value, rc, err.text);
            assert_memory_equal(&o, &before, sizeof o);
        }
    }
    assert_string_equal(get(s, &(st_options){0}, "dim"), "5");
    assert_string_equal(get(s, &(st_options){0}, "metric"), "l2");
    assert_string_equal(get(s, &(st_options){0}, "storage"), "f32");
    assert_string_equal(get(s, &(st_options){0}, "tokenize"), "spec");
    st_schema_free(s);
}

/* Each name is known and has a value; what cannot change later does not. */
static void all_options(void **state)
{
    (void)state;
    st_schema *s = standard();
    st_options o;
    st_error err = {0, ""};
    char buf[8], long_text[ST_OPTION_TEXT_MAX + 2];
    int n = 0;
    st_options_default(&o);
    for (; st_option_name(n); n++) {
        assert_int_equal(st_option_index(st_option_name(n)), n);
        assert_non_null(get(s, &o, st_option_name(n)));
    }
    assert_null(st_option_name(-1));
    assert_int_equal(st_option_index("nothing"), -1);
    assert_int_equal(st_options_set(&o, "nothing", "1", 1, &err), ST_NOTFOUND);
    assert_non_null(strstr(err.text, "autoflush"));
    assert_int_equal(st_options_get(s, &o, "nothing", buf, sizeof buf, NULL), ST_NOTFOUND);
    assert_int_equal(st_options_set(&o, "compression", "zstd", 0, NULL), ST_MISUSE);
    memset(long_text, 'a', sizeof long_text);
    long_text[sizeof long_text - 1] = 0;
    assert_int_equal(st_options_set(&o, "agent", long_text, 1, NULL), ST_LIMIT);
    long_text[ST_OPTION_TEXT_MAX] = 0;
    assert_int_equal(st_options_set(&o, "agent", long_text, 1, NULL), ST_OK);
    assert_string_equal(get(s, &o, "agent"), long_text);
    st_schema_free(s);
    for (int m = 0; m < 3; m++) {
        int back = -1;
        assert_int_equal(st_metric_parse(st_metric_name(m), &back, NULL), ST_OK);
        assert_int_equal(back, m);
    }
    assert_int_equal(st_metric_parse("L2", &n, NULL), ST_MISUSE);
}

/* A number option has 15 significant digits, and what is shown of it reads as the same number: it
** does not drift from flush to flush. */
static void numbers_do_not_drift(void **state)
{
    (void)state;
    t_rng r = t_rng_start(3);
    st_schema *schema = standard();
    for (int i = 0; i < 100000; i++) {
        uint64_t kind = t_rng_below(&r, 4);
        double v = kind == 0   ? t_rng_unit(&r)
                   : kind == 1 ? t_rng_unit(&r) * 1e6
                   : kind == 2 ? (double)t_rng_below(&r, 100000) / 1000
                               : ldexp(t_rng_unit(&r), -(int)t_rng_below(&r, 200));
        char given[64], shown[64];
        st_options o = {0}, again = {0};
        snprintf(given, sizeof given, "%.17g", v);
        assert_int_equal(st_options_set(&o, "rrf_k", given, 1, NULL), ST_OK);
        assert_true(fabs(o.rrf_k - v) <= 1e-14 * v);
        snprintf(shown, sizeof shown, "%s", get(schema, &o, "rrf_k"));
        assert_int_equal(st_options_set(&again, "rrf_k", shown, 1, NULL), ST_OK);
        if (again.rrf_k != o.rrf_k)
            fail_msg("%s becomes %.17g, shown as %s, read as %.17g", given, o.rrf_k, shown,
                     again.rrf_k);
    }
    st_schema_free(schema);
    for (int i = 0; i < 20000; i++) {
        int64_t v = (int64_t)(t_rng_next(&r) >> t_rng_below(&r, 64)), back;
        char buf[32];
        v = t_rng_below(&r, 2) ? v : -v;
        snprintf(buf, sizeof buf, "%lld", (long long)v);
        int ok = st_parse_int(buf, &back);
        assert_true(v == INT64_MIN ? !ok : ok && back == v);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_layout),
        cmocka_unit_test(names),
        cmocka_unit_test(many_columns),
        cmocka_unit_test(columns_as_text),
        cmocka_unit_test(too_many_columns_as_text),
        cmocka_unit_test(small_values),
        cmocka_unit_test(small_values_of_any_bytes),
        cmocka_unit_test(options),
        cmocka_unit_test(all_options),
        cmocka_unit_test(numbers_do_not_drift),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
