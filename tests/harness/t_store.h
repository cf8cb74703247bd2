/*
 * t_store.h - what the C tests of ext/store share: folders, a host database that is a number, rows
 * from a few words, commits in both phases.
 *
 * The host database of a test is one state row (t_db): its uuid and the transaction id it holds.
 * Each connection to it is a t_host: it sees the row as committed, or as it has itself written it.
 *
 *     t_dir d = t_dir_new();
 *     t_db db = t_db_new(1);              a host with a file; t_db_memory: one without
 *     t_host h = t_host_of(&db);
 *     st_conn *c = t_open(&d, &h);        makes the store on first use: dim 3 and four user columns
 *     t_begin(c, &h); t_put(c, 7, "some words"); t_commit(c, &h);
 *
 * ERRORS   helpers without a result fail the test with the store's text.
 * THREADS  one thread at a time, a t_db included.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef T_STORE_H
#define T_STORE_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "st_store.h"
#include "t_rng.h"

/* ---------------------------------------------------------------------------------------- files */

typedef struct t_dir {
    char path[64]; /* the folder */
    char h5[80], log[80];
} t_dir;

t_dir t_dir_new(void);
void t_dir_remove(const t_dir *d); /* with all that is in it */
/* The bytes of a file; NULL and 0 when there is none. The caller frees them with free(). */
unsigned char *t_read_file(const char *path, size_t *n);
void t_write_file(const char *path, const void *p, size_t n);
/* The .h5 and the log as they stand now, under the same names in another folder. */
void t_dir_copy(const t_dir *from, const t_dir *to);

/* ---------------------------------------------------------------------------------------- hosts */

typedef struct t_db {
    uint8_t uuid[16];
    uint64_t dev, ino; /* 0, 0: no file */
    int64_t txid;      /* as committed */
    int wal;           /* 1: a "no" of its row is not firm */
    int answer;        /* what verdict says instead: ST_NOTFOUND, ST_IO; ST_OK = the row */
} t_db;

typedef struct t_host {
    st_host host;
    t_db *db;
    int64_t own; /* written and not committed, or -1 */
    int stop;    /* 1: stop is asked for */
} t_host;

t_db t_db_new(int number);
t_db t_db_memory(int number);
/* The host's address must not change while a connection uses it. */
void t_host_init(t_host *h, t_db *db);
st_identity t_identity(const t_db *db);

/* ------------------------------------------------------------------------------------ the store */

enum { T_DIM = 3 };
/* User columns of the stores that t_open makes. */
enum { T_COL_USER_ID = ST_COL_USER, T_COL_PRIORITY, T_COL_RATIO, T_COL_RAW, T_NCOL };

typedef struct t_spec {
    int64_t dim;
    const char *compression, *autoflush, *synchronous, *metric; /* NULL: the default */
} t_spec;

/* st_open with ST_OPEN_CREATE and the four user columns. */
int t_try_open(const t_dir *d, t_host *h, const t_spec *spec, st_conn **out, st_error *err);
st_conn *t_open(const t_dir *d, t_host *h);
st_conn *t_open_spec(const t_dir *d, t_host *h, const t_spec *spec);

/* Words separated by single blanks as a token stream; returns its bytes. out has room for 8 bytes
** more than twice the text. */
size_t t_tokens(const void *text, size_t n, uint8_t *out);

st_value t_null(void);
st_value t_int(int64_t i);
st_value t_real(double r);
st_value t_text(const char *s);
st_value t_bytes(int type, const void *p, size_t n);

/* A row: id and content given, the other values NULL. content may be NULL. */
typedef struct t_row {
    st_value v[T_NCOL];
    float vec[4096];
    uint8_t tokens[4096];
    size_t ntokens;
} t_row;
void t_row_init(t_row *r, int64_t id, const char *content);
/* A vector with all values x, one more in the first. */
void t_row_vector(t_row *r, size_t dim, float x);
st_row t_row_of(const t_row *r);

/* Each gives the store's code. */
int t_begin_rc(st_conn *c, t_host *h, st_error *err);
int t_put_row(st_conn *c, const t_row *r, int64_t *id, st_error *err);
/* Prepares, has the host commit, commits; when preparing fails everything is rolled back. */
int t_commit_rc(st_conn *c, t_host *h, st_error *err);

void t_begin(st_conn *c, t_host *h);
void t_put(st_conn *c, int64_t id, const char *content);
void t_set_importance(st_conn *c, int64_t id, double x);
void t_set_content(st_conn *c, int64_t id, const char *content);
void t_delete(st_conn *c, int64_t id);
void t_commit(st_conn *c, t_host *h);
/* The host takes its transaction back, and so does the store. */
void t_rollback(st_conn *c, t_host *h);
/* Prepares and has the host commit, and no more: what a death between the phases leaves. */
int64_t t_prepare(st_conn *c, t_host *h);
uint64_t t_flush(st_conn *c);

/* Every check of st_verify with the tokens of t_tokens; fails the test at the first fault. */
void t_verify(st_conn *c);
int t_verify_rc(st_conn *c, st_error *err); /* ST_CORRUPT with the first faults as text */

/* Ids of all rows in order of id, "1 2 3"; buf of n bytes. */
int t_ids_rc(st_conn *c, char *buf, size_t n, st_error *err);
void t_view_ids(st_view *v, char *buf, size_t n);
#define t_assert_ids(c, want)                                                                      \
    do {                                                                                           \
        char t_buf[4096];                                                                          \
        st_error t_err = {0, ""};                                                                  \
        if (t_ids_rc(c, t_buf, sizeof t_buf, &t_err))                                              \
            fail_msg("%s", t_err.text);                                                            \
        assert_string_equal(t_buf, want);                                                          \
    } while (0)
#define t_assert_view_ids(v, want)                                                                 \
    do {                                                                                           \
        char t_buf[4096];                                                                          \
        t_view_ids(v, t_buf, sizeof t_buf);                                                        \
        assert_string_equal(t_buf, want);                                                          \
    } while (0)
#define t_ok(err, rc)                                                                              \
    do {                                                                                           \
        if ((rc) != ST_OK)                                                                         \
            fail_msg("%s", (err)->text);                                                           \
    } while (0)

/* ------------------------------------------------------------------------------------ the truth */

/* Compares as SQL does, by another way than the store: -1, 0, 1. Neither is NULL. */
int t_compare(const st_value *a, const st_value *b);
/* Does a value satisfy a comparison? */
int t_holds(const st_term *t, const st_value *v);
/* The same value: type and bits. */
int t_same(const st_value *a, const st_value *b);

#endif
