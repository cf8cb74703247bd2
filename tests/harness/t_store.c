/*
 * t_store.c - folders, hosts, rows and commits for the tests of ext/store
 *
 * SPDX-License-Identifier: MIT
 */
#include "t_store.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "vec.h"

/* ---------------------------------------------------------------------------------------- files */

t_dir t_dir_new(void)
{
    t_dir d;
    const char *tmp = getenv("TMPDIR");
    // In memory where that can be had: the tests cut, fail and kill, and no disk's speed matters.
    if (!tmp || strlen(tmp) > 40)
        tmp = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(d.path, sizeof d.path, "%s/h5mem-XXXXXX", tmp);
    assert_non_null(mkdtemp(d.path));
    snprintf(d.h5, sizeof d.h5, "%s/s.h5", d.path);
    snprintf(d.log, sizeof d.log, "%s/s.h5-wal", d.path);
    return d;
}

void t_dir_remove(const t_dir *d)
{
    DIR *dir = opendir(d->path);
    struct dirent *e;
    char name[512];
    while (dir && (e = readdir(dir))) {
        snprintf(name, sizeof name, "%s/%s", d->path, e->d_name);
        unlink(name);
    }
    closedir(dir);
    rmdir(d->path);
}

unsigned char *t_read_file(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    unsigned char *p;
    long size;
    *n = 0;
    if (!f)
        return NULL;
    fseek(f, 0, SEEK_END);
    size = ftell(f);
    rewind(f);
    p = malloc((size_t)size + 1);
    assert_non_null(p);
    *n = fread(p, 1, (size_t)size, f);
    assert_int_equal(*n, size);
    fclose(f);
    return p;
}

void t_write_file(const char *path, const void *p, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(p, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

void t_dir_copy(const t_dir *from, const t_dir *to)
{
    const char *const pair[2][2] = {{from->h5, to->h5}, {from->log, to->log}};
    for (int i = 0; i < 2; i++) {
        size_t n;
        unsigned char *p = t_read_file(pair[i][0], &n);
        unlink(pair[i][1]);
        if (p)
            t_write_file(pair[i][1], p, n);
        free(p);
    }
}

/* ---------------------------------------------------------------------------------------- hosts */

t_db t_db_memory(int number)
{
    t_db db;
    memset(&db, 0, sizeof db);
    for (int i = 0; i < 16; i++)
        db.uuid[i] = (uint8_t)(number * 31 + i);
    return db;
}

t_db t_db_new(int number)
{
    t_db db = t_db_memory(number);
    db.dev = 1;
    db.ino = (uint64_t)number;
    return db;
}

static int verdict(void *ctx, const uint8_t uuid[16], int64_t *txid, int *firm, st_error *err)
{
    t_host *h = ctx;
    if (firm && h->db->wal)
        *firm = 0;
    if (h->db->answer == ST_NOTFOUND || memcmp(uuid, h->db->uuid, 16) != 0)
        return ST_NOTFOUND;
    if (h->db->answer)
        return st_fail(err, h->db->answer, "the host cannot be read");
    *txid = h->own >= 0 ? h->own : h->db->txid;
    return ST_OK;
}

static int stop(void *ctx)
{
    return ((t_host *)ctx)->stop;
}

void t_host_init(t_host *h, t_db *db)
{
    memset(h, 0, sizeof *h);
    h->host = (st_host){.ctx = h, .verdict = verdict, .stop = stop};
    h->db = db;
    h->own = -1;
}

st_identity t_identity(const t_db *db)
{
    st_identity who = {{0}, db->dev, db->ino, "host.db"};
    memcpy(who.uuid, db->uuid, 16);
    return who;
}

/* ------------------------------------------------------------------------------------ the store */

int t_try_open(const t_dir *d, t_host *h, const t_spec *spec, st_conn **out, st_error *err)
{
    static const st_column columns[] = {
        {"user_id", ST_TEXT}, {"priority", ST_INT}, {"ratio", ST_REAL}, {"raw", ST_BLOB}};
    st_option o[4];
    st_create create = {.dim = spec ? spec->dim : T_DIM,
                        .options = o,
                        .columns = columns,
                        .ncolumn = 4,
                        .fingerprint = "words"};
    if (spec && spec->compression)
        o[create.noption++] = (st_option){"compression", spec->compression};
    if (spec && spec->autoflush)
        o[create.noption++] = (st_option){"autoflush", spec->autoflush};
    if (spec && spec->synchronous)
        o[create.noption++] = (st_option){"synchronous", spec->synchronous};
    if (spec && spec->metric)
        o[create.noption++] = (st_option){"metric", spec->metric};
    return st_open(d->h5, ST_OPEN_CREATE, &create, h ? &h->host : NULL, out, err);
}

st_conn *t_open_spec(const t_dir *d, t_host *h, const t_spec *spec)
{
    st_conn *c;
    st_error err = {0, ""};
    t_ok(&err, t_try_open(d, h, spec, &c, &err));
    return c;
}

st_conn *t_open(const t_dir *d, t_host *h)
{
    return t_open_spec(d, h, NULL);
}

size_t t_tokens(const void *text, size_t n, uint8_t *out)
{
    const char *p = text, *end = p + n;
    size_t used = 0;
    while (p < end) {
        const char *space = memchr(p, ' ', (size_t)(end - p));
        const char *stop_at = space ? space : end;
        if (stop_at > p)
            used += vec_token_put(out + used, p, (uint32_t)(stop_at - p), 0);
        p = stop_at + 1;
    }
    return used;
}

st_value t_null(void)
{
    return (st_value){.type = ST_NULL};
}

st_value t_int(int64_t i)
{
    return (st_value){.type = ST_INT, .i = i};
}

st_value t_real(double r)
{
    return (st_value){.type = ST_REAL, .r = r};
}

st_value t_bytes(int type, const void *p, size_t n)
{
    return (st_value){.type = type, .p = p, .n = n};
}

st_value t_text(const char *s)
{
    return t_bytes(ST_TEXT, s, strlen(s));
}

void t_row_init(t_row *r, int64_t id, const char *content)
{
    memset(r->v, 0, sizeof r->v);
    r->ntokens = 0;
    r->v[ST_COL_ID] = t_int(id);
    r->v[ST_COL_TIMESTAMP] = t_real((double)id);
    if (content) {
        r->v[ST_COL_CONTENT] = t_text(content);
        r->ntokens = t_tokens(content, strlen(content), r->tokens);
    }
}

void t_row_vector(t_row *r, size_t dim, float x)
{
    for (size_t i = 0; i < dim; i++)
        r->vec[i] = x + (i == 0);
    r->v[ST_COL_EMBEDDING] = t_bytes(ST_BLOB, r->vec, dim * sizeof(float));
}

st_row t_row_of(const t_row *r)
{
    return (st_row){r->v, r->tokens, r->ntokens};
}

int t_begin_rc(st_conn *c, t_host *h, st_error *err)
{
    st_identity who = t_identity(h->db);
    return st_begin(c, 0, &who, err);
}

int t_put_row(st_conn *c, const t_row *r, int64_t *id, st_error *err)
{
    st_row row = t_row_of(r);
    int64_t mine;
    return st_put(c, &row, id ? id : &mine, err);
}

int t_commit_rc(st_conn *c, t_host *h, st_error *err)
{
    int64_t txid = 0;
    uint8_t owner[16];
    int rc = st_prepare(c, 0, &txid, owner, err);
    if (rc) {
        st_rollback(c);
        h->own = -1;
        return rc;
    }
    if (txid)
        h->db->txid = txid;
    h->own = -1;
    st_commit(c);
    return ST_OK;
}

void t_begin(st_conn *c, t_host *h)
{
    st_error err = {0, ""};
    t_ok(&err, t_begin_rc(c, h, &err));
}

void t_put(st_conn *c, int64_t id, const char *content)
{
    t_row *r = malloc(sizeof *r);
    st_error err = {0, ""};
    assert_non_null(r);
    t_row_init(r, id, content);
    t_row_vector(r, (size_t)st_conn_info(c)->dim, (float)id);
    int rc = t_put_row(c, r, NULL, &err);
    free(r);
    t_ok(&err, rc);
}

static void update_one(st_conn *c, int64_t id, int col, const st_value *v, const uint8_t *tokens,
                       size_t ntokens)
{
    st_value values[T_NCOL] = {0};
    uint8_t changed[T_NCOL] = {0};
    st_row row = {values, tokens, ntokens};
    st_error err = {0, ""};
    values[col] = *v;
    changed[col] = 1;
    t_ok(&err, st_update(c, id, &row, changed, &err));
}

void t_set_importance(st_conn *c, int64_t id, double x)
{
    st_value v = t_real(x);
    update_one(c, id, ST_COL_IMPORTANCE, &v, NULL, 0);
}

void t_set_content(st_conn *c, int64_t id, const char *content)
{
    uint8_t tokens[4096];
    st_value v = content ? t_text(content) : t_null();
    update_one(c, id, ST_COL_CONTENT, &v, tokens,
               content ? t_tokens(content, strlen(content), tokens) : 0);
}

void t_delete(st_conn *c, int64_t id)
{
    st_error err = {0, ""};
    t_ok(&err, st_delete(c, id, &err));
}

void t_commit(st_conn *c, t_host *h)
{
    st_error err = {0, ""};
    t_ok(&err, t_commit_rc(c, h, &err));
}

void t_rollback(st_conn *c, t_host *h)
{
    h->own = -1;
    st_rollback(c);
}

int64_t t_prepare(st_conn *c, t_host *h)
{
    int64_t txid;
    uint8_t owner[16];
    st_error err = {0, ""};
    t_ok(&err, st_prepare(c, 0, &txid, owner, &err));
    if (txid) {
        assert_memory_equal(owner, h->db->uuid, 16);
        h->own = txid;
    }
    return txid;
}

uint64_t t_flush(st_conn *c)
{
    uint64_t rows;
    st_error err = {0, ""};
    t_ok(&err, st_flush(c, 0, &rows, &err));
    return rows;
}

static int tokens_again(void *ctx, const st_value text[3], const uint8_t **stream, size_t *nstream,
                        st_error *err)
{
    uint8_t **buf = ctx;
    (void)err;
    free(*buf);
    *buf = malloc(3 * text[0].n + 16);
    assert_non_null(*buf);
    *nstream = text[0].type == ST_NULL ? 0 : t_tokens(text[0].p, text[0].n, *buf);
    *stream = *nstream ? *buf : NULL;
    return ST_OK;
}

int t_verify_rc(st_conn *c, st_error *err)
{
    uint8_t *buf = NULL;
    const st_verify_host host = {&buf, tokens_again};
    char text[400] = "";
    uint64_t faults = 0;
    int rc = st_verify(c, &host, text, sizeof text, &faults, err);
    free(buf);
    return rc || !faults ? rc : st_fail(err, ST_CORRUPT, "%s", text);
}

void t_verify(st_conn *c)
{
    st_error err = {0, ""};
    t_ok(&err, t_verify_rc(c, &err));
}

static int view_ids(st_view *v, char *buf, size_t n, st_error *err)
{
    st_query q = {.order = ST_ORDER_ID, .k = -1};
    st_cursor *cur;
    size_t at = 0;
    int rc = st_search(v, &q, &cur, err);
    buf[0] = 0;
    if (rc)
        return rc;
    while ((rc = st_cursor_next(cur, err)) > 0) {
        st_value id;
        rc = st_view_value(v, st_cursor_row(cur), ST_COL_ID, &id, err);
        if (rc)
            break;
        at += (size_t)snprintf(buf + at, n - at, "%s%lld", at ? " " : "", (long long)id.i);
        assert_true(at < n);
    }
    st_cursor_close(cur);
    return rc;
}

void t_view_ids(st_view *v, char *buf, size_t n)
{
    st_error err = {0, ""};
    t_ok(&err, view_ids(v, buf, n, &err));
}

int t_ids_rc(st_conn *c, char *buf, size_t n, st_error *err)
{
    st_view *v;
    int rc = st_view_open(c, &v, err);
    if (rc)
        return rc;
    rc = view_ids(v, buf, n, err);
    st_view_close(v);
    return rc;
}

/* ------------------------------------------------------------------------------------ the truth */

int t_compare(const st_value *a, const st_value *b)
{
    int numbers = (a->type <= ST_REAL) + (b->type <= ST_REAL);
    if (numbers == 2) {
        // A long double holds every int64 and every double here: the test of t_st_filter says so.
        long double x = a->type == ST_INT ? (long double)a->i : (long double)a->r;
        long double y = b->type == ST_INT ? (long double)b->i : (long double)b->r;
        return (x > y) - (x < y);
    }
    if (numbers == 1)
        return a->type <= ST_REAL ? -1 : 1;
    if (a->type != b->type)
        return a->type < b->type ? -1 : 1;
    for (size_t i = 0; i < a->n && i < b->n; i++) {
        int x = ((const uint8_t *)a->p)[i], y = ((const uint8_t *)b->p)[i];
        if (x != y)
            return x < y ? -1 : 1;
    }
    return (a->n > b->n) - (a->n < b->n);
}

int t_holds(const st_term *t, const st_value *v)
{
    int c;
    if (t->op == ST_ISNULL)
        return v->type == ST_NULL;
    if (t->op == ST_NOTNULL)
        return v->type != ST_NULL;
    if (t->op == ST_NEVER || v->type == ST_NULL)
        return 0;
    if (t->op == ST_IN) {
        for (size_t i = 0; i < t->nlist; i++)
            if (t->list[i].type != ST_NULL && t_compare(&t->list[i], v) == 0)
                return 1;
        return 0;
    }
    if (t->value.type == ST_NULL)
        return 0;
    c = t_compare(v, &t->value);
    return (t->op == ST_EQ && c == 0) || (t->op == ST_NE && c != 0) || (t->op == ST_LT && c < 0) ||
           (t->op == ST_LE && c <= 0) || (t->op == ST_GT && c > 0) || (t->op == ST_GE && c >= 0);
}

int t_same(const st_value *a, const st_value *b)
{
    if (a->type != b->type)
        return 0;
    switch (a->type) {
    case ST_NULL:
        return 1;
    case ST_INT:
        return a->i == b->i;
    case ST_REAL:
        return memcmp(&a->r, &b->r, sizeof a->r) == 0;
    default:
        return a->n == b->n && (!a->n || memcmp(a->p, b->p, a->n) == 0);
    }
}
