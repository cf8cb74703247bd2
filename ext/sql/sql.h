/*
 * sql.h - private header of ext/sql: what its files share. The only folder that includes SQLite.
 *
 * WHO IS WHO
 *   sql_db      one a host connection: the tables and stores in use on it, the tokenizers, what the
 *               store may ask the host
 *   sql_store   one store file in use on a connection: the st_conn and the host transaction's state
 *               on it. It lives as long as any sql_table is attached, so that a schema reload (new
 *               xConnect, then old xDisconnect) loses nothing
 *   sql_table   one sqlite3_vtab of module h5mem. Knows its columns from CREATE and the state row,
 *               not from the store
 *   sql_cursor  one running query
 *
 * CODES    functions return SQLite codes; an st_error becomes one, and a message, in sql_err.c
 * MEMORY   sqlite3_malloc throughout
 * THREADS  all of a connection is used by one thread at a time (SQLite's mutex); nothing is shared
 *          between connections
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SQL_H
#define SQL_H

#include <stddef.h>
#include <stdint.h>

#include "sqlite3ext.h"

#include "store.h"

SQLITE_EXTENSION_INIT3

#define H5MEM_VERSION "0.1.0"

#ifndef SQLITE_SUBTYPE
#define SQLITE_SUBTYPE 0x000100000
#endif

#if defined(__GNUC__)
#define SQL_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define SQL_PUBLIC       __attribute__((visibility("default")))
#else
#define SQL_PRINTF(f, a)
#define SQL_PUBLIC
#endif

typedef struct sql_db sql_db;
typedef struct sql_store sql_store;
typedef struct sql_table sql_table;
typedef struct sql_cursor sql_cursor;
typedef struct sql_tokenizer sql_tokenizer;
typedef struct sql_mark sql_mark;
typedef struct sql_access sql_access;
typedef void sql_function(sqlite3_context *ctx, int argc, sqlite3_value **argv);

/* --------------------------------------------------------------------------- sql_ext.c: loading */

/* Entry points; SQLite 3.40 drops the digit when it derives the name from the file's. */
SQL_PUBLIC int sqlite3_h5mem_init(sqlite3 *db, char **err, const sqlite3_api_routines *api);
SQL_PUBLIC int sqlite3_hmem_init(sqlite3 *db, char **err, const sqlite3_api_routines *api);

/* A module with xIntegrity (SQLite 3.44), also where the header does not know it: an older
 * SQLite never looks so far. */
typedef struct sql_module {
    sqlite3_module base;
#if SQLITE_VERSION_NUMBER < 3044000
    int (*xIntegrity)(sqlite3_vtab *, const char *, const char *, int, char **);
#endif
} sql_module;
extern const sql_module sql_table_module;             /* sql_table.c */
extern const sqlite3_module sql_side_module;          /* sql_side.c: h5mem_sessions */
extern const sqlite3_module sql_events_module;        /* sql_events.c: h5mem_events, _timeline */
extern const sqlite3_module sql_info_module;          /* sql_info.c */
extern const sqlite3_module sql_alerts_module;        /* sql_alerts.c: h5mem_alerts */
extern const sqlite3_module sql_dropped_module;       /* sql_drop.c: h5mem_dropped */
extern const sqlite3_module sql_h5_objects_module;    /* sql_h5_objects.c: hdf5_objects */
extern const sqlite3_module sql_h5_attributes_module; /* sql_h5_attributes.c: hdf5_attributes */
extern const sqlite3_module sql_h5_values_module;     /* sql_h5_values.c: hdf5_values */
extern const sqlite3_module sql_h5_table_module;      /* sql_h5_table.c: USING hdf5 */
int sql_functions_register(sql_db *d);                /* sql_func.c */

/* --------------------------------------------------------------------------- sql_db.c: registry */

struct sql_db {
    sqlite3 *db;
    int refs; /* one a registered module or function */
    int live; /* sql_tables that exist */
    st_host host;
    sql_table *tables; /* newest first */
    /* sql_drop.c: dropped in the open transaction; h5mem_dropped takes part in it for them */
    sql_table *dropped;
    int joined;
    sql_store *stores;
    sql_tokenizer *tokenizers;
    struct fts5_api *fts5; /* NULL: not asked yet, or none */
    sql_cursor *cursors;   /* open ones */
    sql_cursor *rested;    /* the memory of a closed one, or NULL */
    uintptr_t serial;      /* of the last row that a value stood for; sql_aux.c */
    sql_mark *marks;       /* texts given out that stand for a row */
    /* sql_spare.c: schema_version and user_version of a database, as last seen, and their
     * statements */
    char *version_schema;
    sqlite3_stmt *version[2];
    int64_t versions[2];
    sqlite3_stmt *patterns; /* sql_term.c: whether LIKE and GLOB are SQLite's */
    int64_t asked;          /* the millisecond in which it was last asked whether to stop */
};

/* What a transaction looked like when it began: sql_spare.c. */
typedef struct sql_spared {
    int possible;
    int total_changes, written;
} sql_spared;

struct sql_store {
    sql_db *db;
    sql_store *next;
    int refs;      /* attached tables */
    char *path;    /* absolute */
    st_conn *conn; /* NULL: not opened yet */
    int opens;     /* st_open calls to give back */
    int64_t
        refused; /* rows since the last one that was written (sql_guard.h), and of which source */
    int refused_source;
    int readonly;  /* opened so */
    uint64_t rows; /* visible at the last look, for plans; 0 = not known */
    /* the host's transaction */
    int marks;       /* savepoints 0..marks-1 were announced before the store's transaction began */
    int prepared;    /* phase one is done and nothing has changed since */
    int dropped;     /* the table whose row it goes by was dropped in it: the row may be gone */
    int unannounced; /* begun by a table that SQLite never announced: it was created in this
                        transaction */
    uint8_t row[16]; /* uuid of the state row that the transaction goes by */
    sql_spared spared;
};

int sql_db_new(sqlite3 *db, sql_db **out);
/* A search begins: whether to stop is asked a millisecond after it first wants to know. */
void sql_db_begin(sql_db *d);
void sql_db_unref(void *d);  /* as a destructor of modules and functions */
void sql_db_idle(sql_db *d); /* frees what must not outlive the last table: SQLite may close now */

/* Finds or makes the entry of a path and counts one more user. NULL: out of memory. */
sql_store *sql_store_attach(sql_db *d, const char *path);
void sql_store_detach(sql_store *s); /* the last one closes the store */

/* The first column of the first row of one statement, as a 64-bit integer; fallback without a row.
 */
int sql_query_int(sqlite3 *db, const char *sql, int64_t fallback, int64_t *out);
int sql_busy_timeout(sqlite3 *db); /* milliseconds; 0 where it cannot be read */

/* The path of a store as CREATE gave it, made absolute: relative to the folder of the schema's
 * database file, or to the working folder where it has none (*host_file is then 0). *out by
 * sqlite3_malloc. */
int sql_path_resolve(sqlite3 *db, const char *schema, const char *path, char **out, int *host_file);

/* -------------------------------------------------------------------------- sql_err.c: failures */

int sql_code(int st); /* the SQLite code of an ST_ code */
const char *sql_base_name(const char *path);

/* "h5mem: table: file: text"; table or file NULL where unknown. By sqlite3_malloc, NULL without
 * memory. */
char *sql_message(const char *table, const char *path, const char *fmt, ...) SQL_PRINTF(3, 4);

/* Leave the message in the table and return rc. */
int sql_fail(sql_table *t, int rc, const char *fmt, ...) SQL_PRINTF(3, 4);
int sql_fail_st(sql_table *t, const st_error *e);

/* The same as the result of a function. */
void sql_fail_fn(sqlite3_context *ctx, int rc, const char *table, const char *path, const char *fmt,
                 ...) SQL_PRINTF(5, 6);
/* Hands a failed call's message and code on: the one a table left behind, or the connection's. */
void sql_fail_fn_table(sqlite3_context *ctx, sql_table *t, int rc);
void sql_fail_fn_db(sqlite3_context *ctx, sqlite3 *db, int rc);

/* A value as a message shows it: NULL, 5, 'some text...', a blob of 12 bytes. */
#define SQL_SHOW 96
const char *sql_show(sqlite3_value *v, char buf[SQL_SHOW]);

/* --------------------------------------------------------------------------- sql_args.c: CREATE */

/* What CREATE VIRTUAL TABLE said. */
typedef struct sql_args {
    char *path;
    st_option *options; /* those the store keeps, without dim and tokenize */
    size_t noption;
    int64_t dim;
    char *tokenizer;
    int readonly;
    int threads; /* 0: not given */
    st_column *columns;
    size_t ncolumn;
} sql_args;

#define SQL_THREADS_MAX 64
/* The values of the options threads and readonly. */
int sql_read_threads(const char *value, int *out, char **err);
int sql_read_flag(const char *name, const char *value, int *out, char **err);
/* An error that lists what there is where an option has not this name. */
int sql_option_known(const char *name, char **err);

/* argv as xCreate gets it. *err by sqlite3_malloc, without prefix. Free in any case. */
int sql_args_parse(int argc, const char *const *argv, sql_args *out, char **err);
void sql_args_free(sql_args *a);

/* The user columns as the state row keeps them: "name" TYPE, "name" TYPE. */
char *sql_columns_text(const st_column *columns, size_t n);
int sql_columns_parse(const char *table, const char *text, st_column **out, size_t *n, char **err);
const char *sql_type_name(int st_type);

/* --------------------------------------------------------------------------- sql_state.c: state */

typedef struct sql_state {
    uint8_t uuid[16];  /* of the row */
    uint8_t store[16]; /* of the store */
    char *path, *columns, *options;
} sql_state;

int sql_state_create(sqlite3 *db, const char *schema, const char *table);
int sql_state_insert(sqlite3 *db, const char *schema, const char *table, const sql_state *s);
/* SQLITE_NOTFOUND when the table or its row is not there or is not ours. */
int sql_state_read(sqlite3 *db, const char *schema, const char *table, sql_state *out);
void sql_state_free(sql_state *s);
int sql_state_rename(sqlite3 *db, const char *schema, const char *from, const char *to);
int sql_state_drop(sqlite3 *db, const char *schema, const char *table);

/* Looks for the row with this uuid among the `*_state` tables of all attached databases; a
 * stranger's table is passed over. SQLITE_NOTFOUND; else *schema and *table (the whole name; by
 * sqlite3_malloc; NULL allowed) and txid. */
int sql_state_find(sqlite3 *db, const uint8_t uuid[16], char **schema, char **table, int64_t *txid);
/* Writes the transaction id into the row, which is in state table `name` if it has that uuid;
 * SQLITE_NOTFOUND otherwise. *last: what was last written there, 0 when that is not known; a row
 * that still holds it is the same one. Leaves changes(), total_changes() and last_insert_rowid()
 * alone. */
int sql_state_write(sqlite3 *db, const char *schema, const char *name, const uint8_t uuid[16],
                    int64_t *last, int64_t txid);

/* --------------------------------------------------------------------------- sql_table.c: table */

/* Hidden columns follow the user columns, in this order. */
enum {
    SQL_HID_TABLE, /* the table's own name: text queries, commands */
    SQL_HID_DISTANCE,
    SQL_HID_RANK,
    SQL_HID_SCORE,
    SQL_HID_K,
    SQL_HID_FUSION, /* the settings of one query */
    SQL_HID_VECTOR_WEIGHT,
    SQL_HID_TEXT_WEIGHT,
    SQL_HID_RRF_K,
    SQL_HID_RECALL,
    SQL_HID_NPROBE,
    SQL_HID_EXACT,
    SQL_HID_CONTEXT,
    SQL_HID_RECENCY,
    SQL_HID_IMPORTANCE_WEIGHT,
    SQL_HID_ACTIVATION_WEIGHT,
    SQL_HID_GRAPH_WEIGHT,
    SQL_HID_MIN_SCORE,
    SQL_HID_DEDUP,
    SQL_HID_MMR,
    SQL_HID_EXPAND,
    SQL_HID_AS_OF,
    SQL_HID_SYNTAX,
    SQL_HID_N
};
extern const char *const sql_hidden_names[SQL_HID_N]; /* [SQL_HID_TABLE] is NULL */

struct sql_table {
    sqlite3_vtab base;
    sql_db *db;
    sql_table *next;
    char *schema, *name;
    sql_store *store;
    st_column *columns; /* user columns as declared */
    size_t ncolumn;
    int readonly;
    int threads;   /* that one search may use */
    int beside;    /* sql_side.c: 1 + the number of the table beside the rows; 0: the rows */
    int has_state; /* the state row was there and is below */
    uint8_t uuid[16], store_uuid[16];
    int checked;      /* the open store is the one CREATE bound, with the same columns */
    int announced;    /* in a transaction that xBegin announced */
    int64_t row_txid; /* what its state row was last given; 0: not known */
    int host_known;   /* the host's file, looked at once: 0, 0 when it has none */
    uint64_t host_dev, host_ino;
    sql_access *access; /* sql_life.c: rows read and not yet counted */
    size_t naccess;
    /* scratch of xUpdate, made at the first write */
    st_value *values;
    uint8_t *changed;
    float *vector;
};

int sql_table_columns(const sql_table *t);                /* all but the hidden ones */
const char *sql_column_name(const sql_table *t, int col); /* also ST_COL_DISTANCE.. */
int sql_column_type(const sql_table *t, int col);
int sql_column_is_time(int col); /* sql_term.c; Unix seconds */
/* Declared column number (xBestIndex, xColumn) to a store's column or, from there on, hidden: 0
 * real, 1 hidden. -1 is the rowid. */
int sql_column_split(const sql_table *t, int declared, int *col);

/* Opens the store if it is not open and checks that it is the one that CREATE bound. */
int sql_table_open(sql_table *t);
/* Parts that the tables beside the rows share. A failure of xCreate or xConnect goes to *err, with
 * the table's prefix; takes text. */
sql_table *sql_table_new(sql_db *d, const char *schema, const char *name);
int sql_table_fail_new(sql_table *t, const char *path, int rc, char *text, char **err);
int sql_table_destroy(sqlite3_vtab *v);
int sql_table_disconnect(sqlite3_vtab *v);
int sql_table_rename(sqlite3_vtab *v, const char *name);
int sql_table_shadow_name(const char *suffix);
void sql_side_result(sqlite3_context *ctx, const st_value *v); /* sql_side.c; a copy */
/* The live table called `name` ('t' or 'schema.t'), connected if need be. *err by
 * sqlite3_malloc, with prefix. */
int sql_table_find(sql_db *d, const char *name, sql_table **out, char **err);

/* ---------------------------------------------------------------------- sql_txn.c: transactions */

int sql_txn_begin(sqlite3_vtab *v);
int sql_txn_sync(sqlite3_vtab *v);
int sql_txn_commit(sqlite3_vtab *v);
int sql_txn_rollback(sqlite3_vtab *v);
int sql_txn_savepoint(sqlite3_vtab *v, int n);
int sql_txn_release(sqlite3_vtab *v, int n);
int sql_txn_rollback_to(sqlite3_vtab *v, int n);

/* Before a change: the store is open and writable, its transaction begun, with the marks that
 * are due. */
int sql_txn_write(sql_table *t);
/* Has what is in doubt between the store and this host decided, with a transaction of its own.
 * inside: within xUpdate, where the host's write lock is held and nothing can be committed. */
int sql_txn_decide(sql_table *t, int inside);
/* Drops changes whose table was undone together with its CREATE (ROLLBACK TO), of which SQLite
 * tells nobody. */
int sql_txn_forget_lost(sql_store *s);
/* CREATE has attached the table to its store. */
void sql_txn_created(sql_table *t);

/* ---------------------------------------------------------------------- sql_drop.c: DROP TABLE */

/* In xDestroy: the table stays until the transaction ends and takes its part in it. */
int sql_drop_join(sql_table *t);
void sql_table_free(sql_table *t); /* sql_table.c */

/* ------------------------------------------------------------- sql_spare.c: sparing the state row
 */

/* In xBegin. */
void sql_spare_begin(sql_table *t);
/* In xSync: 1 when it is certain that the host has nothing to commit, so that there is nothing
 * that the two files could disagree about. */
int sql_spare(sql_table *t);
void sql_spare_drop(sql_db *d); /* the statements that it keeps */
/* Behind the keyword that SQL text begins with (white space apart), or NULL. */
const char *sql_keyword(const char *sql, const char *word);

/* ------------------------------------------------------------------------ sql_tok.c: tokenizers */

typedef struct sql_tokens {
    uint8_t *bytes; /* a token stream, vec.h; by sqlite3_malloc */
    size_t n, room;
    size_t count;  /* tokens of the field at hand */
    size_t breaks; /* ends of fields that are due before the next token */
} sql_tokens;

/* The connection's tokenizer for a specification, made once. *err by sqlite3_malloc, without
 * prefix. */
int sql_tokenizer_get(sql_db *d, const char *spec, sql_tokenizer **out, char **err);
const char *sql_tokenizer_fingerprint(const sql_tokenizer *tok);
/* Replaces *out by the stream of a row's content, tags and session (ST_NULL: none). */
int sql_tokenize_row(sql_tokenizer *tok, const st_value text[3], sql_tokens *out);
/* The same by the table's tokenizer, with the table's error; without texts nothing is made. */
int sql_field_tokens(sql_table *t, const st_value text[3], sql_tokens *out);
/* Of a row with a value a column. */
int sql_row_tokens(sql_table *t, const st_value *values, sql_tokens *out);
void sql_tokens_free(sql_tokens *t);
/* What a text is: a row's, words of a query, the same ending with the beginning of a word, a
 * query's phrase, and that. */
enum {
    SQL_TOKENS_ROW,
    SQL_TOKENS_QUERY,
    SQL_TOKENS_PREFIX,
    SQL_TOKENS_PHRASE,
    SQL_TOKENS_PHRASE_PREFIX
};
/* Calls fn for each token, cut to VEC_TOKEN_MAX, with the bytes of the text it comes from: as the
 * tokenizer says, unchecked. What fn returns but SQLITE_OK ends it. */
typedef int sql_token_fn(void *ctx, const char *s, size_t n, int colocated, int start, int end);
int sql_tokenize_each(sql_tokenizer *tok, int what, const char *text, size_t n, sql_token_fn *fn,
                      void *ctx);
/* The tokenizer of the table's store, if it gives the tokens that the store was written with;
 * otherwise an error. */
int sql_table_tokenizer(sql_table *t, sql_tokenizer **out);
int sql_have_fts5(sql_db *d);
void sql_tokenizers_drop(sql_db *d);

/* ---------------------------------------------------------------- sql_term.c, sql_query.c, plan */

/* What xFilter gets, in the order of its arguments; written behind '~' in idxStr. */
enum {
    SQL_ARG_TERM,   /* a comparison on a column */
    SQL_ARG_VECTOR, /* embedding MATCH */
    SQL_ARG_TEXT,   /* content MATCH, or on the table's own column */
    SQL_ARG_SETTING,
    SQL_ARG_LIMIT,
    SQL_ARG_OFFSET
};
typedef struct sql_arg {
    int kind;
    int op;  /* SQLITE_INDEX_CONSTRAINT_..., SQL_OP_IN */
    int col; /* column, or SQL_HID_ for SQL_ARG_SETTING and SQL_ARG_TEXT (SQL_HID_TABLE or -1) */
} sql_arg;
enum { SQL_OP_IN = 1, SQL_OP_TAG = 150 }; /* beside SQLITE_INDEX_CONSTRAINT_ */

/* idxNum */
enum {
    SQL_PLAN_VECTOR = 1,
    SQL_PLAN_TEXT = 2,
    SQL_PLAN_ID = 4,    /* one row by its id */
    SQL_PLAN_ORDER = 4, /* bit where ST_ORDER_ begins: order << SQL_PLAN_ORDER */
    SQL_PLAN_BY = 7     /* and ST_BY_ */
};

int sql_plan_best_index(sqlite3_vtab *v, sqlite3_index_info *info);
/* Reads one argument's code at *at and moves on; 0 at the end. */
int sql_plan_next_arg(const char **at, sql_arg *out);
const char *sql_plan_args(const char *idx_str); /* where the codes begin */

enum { SQL_TERMS_FEW = 4 };
/* The terms of one query, with the values they point to. Freed by sql_terms_free. */
typedef struct sql_terms {
    st_term *term;
    size_t n;
    sqlite3_value **kept; /* copies of the members of IN lists */
    size_t nkept;
    st_value **lists;
    size_t nlist;
    st_term few[SQL_TERMS_FEW]; /* term, where they fit: so it cannot be moved */
} sql_terms;
int sql_terms_new(size_t n, sql_terms *out);
/* Adds the constraint as SQLite's own comparison would decide it, or nothing where that cannot
 * be told from the value alone (SQLite then checks it). A time against text is an error. */
int sql_terms_add(sql_table *t, sql_terms *terms, const sql_arg *a, sqlite3_value *v);
/* The same for LIKE, GLOB and h5mem_has_tag, unless the host has functions of its own in place of
 * SQLite's: *own, 1 or 0 once it is known for the cursor (-1 before). */
int sql_terms_add_pattern(sql_table *t, sql_terms *terms, const sql_arg *a, sqlite3_value *v,
                          int *own);
int sql_op_is_pattern(int op);
void sql_terms_free(sql_terms *t);

/* The query vector of `embedding MATCH v`: dim floats, by sqlite3_malloc. */
int sql_query_vector(sql_table *t, sqlite3_value *v, float **out);
/* A text query (sql_ask.h), as plain words or in FTS5's language; for the fields of the mask. It
 * asks for nothing where v is NULL or has no words. expand: plain words bring along what
 * h5mem_expand puts in their place, with less weight. Free *out in any case. */
typedef struct sql_ask sql_ask;
int sql_query_text(sql_table *t, sqlite3_value *v, unsigned fields, int fts5, int expand,
                   sql_ask *out);
void sql_ask_free(sql_ask *a);
/* The value of `syntax`: ST_SYNTAX_. */
int sql_setting_syntax(sql_table *t, sqlite3_value *v, int *syntax);
/* sql_settings.c: takes the value of one of the settings into q. */
int sql_setting_bind(sql_table *t, int hid, sqlite3_value *v, st_query *q);
/* The value of a setting that the query does not give: the store's option, nothing for none. */
void sql_setting_result(sqlite3_context *ctx, sql_table *t, int hid);
double sql_now(void); /* Unix seconds */
/* sql_dates.c: the dates that a question names ("in May 2023", "on a Monday"). */
enum { SQL_DATES_MAX = 16, SQL_DATES_DAYS = 64 };
typedef struct sql_dates {
    int n;
    struct {
        int unit, value;
    } of[SQL_DATES_MAX];
    struct {
        int64_t day; /* since 1970 */
        double weight;
    } known[SQL_DATES_DAYS]; /* by day modulo their number */
} sql_dates;
void sql_dates_read(const char *s, size_t n, sql_dates *out);
/* The weight of the dates that a time fulfils; ctx is a sql_dates, which remembers days. And of all
 * of them. */
double sql_dates_weight(void *ctx, double timestamp);
double sql_dates_most(const sql_dates *d);
/* sql_when.c: a question that names a time and nothing else. dates: what sql_dates_read gave, which
 * outlives out. 1: it is one; then ctx of sql_when_within is out, which says if a time is meant. */
typedef struct sql_when {
    sql_dates *dates;
    int ranged;
    int64_t start, end;
} sql_when;
int sql_when_read(const char *s, size_t n, sql_dates *dates, sql_when *out);
int sql_when_within(void *ctx, double timestamp);

/* --------------------------------------------------------------------------------- sql_cursor.c */

/* Subtype of a column's value whose MATCH the table itself has answered. */
#define SQL_MATCHED 109

int sql_cursor_open(sqlite3_vtab *v, sqlite3_vtab_cursor **out);
int sql_cursor_close(sqlite3_vtab_cursor *c);
int sql_cursor_filter(sqlite3_vtab_cursor *c, int idx_num, const char *idx_str, int argc,
                      sqlite3_value **argv);
int sql_cursor_next(sqlite3_vtab_cursor *c);
int sql_cursor_eof(sqlite3_vtab_cursor *c);
int sql_cursor_column(sqlite3_vtab_cursor *c, sqlite3_context *ctx, int i);
int sql_cursor_rowid(sqlite3_vtab_cursor *c, sqlite3_int64 *out);
void sql_match(sqlite3_context *ctx, int argc, sqlite3_value **argv);

/* The row that a cursor is on. Valid during one call of a function. */
typedef struct sql_current {
    sql_table *table;
    st_view *view;
    uint64_t row;
    const sql_ask *ask; /* the text part; NULL without one */
    double rank;        /* NaN where the row has none */
    st_cursor *rows;    /* NULL: the row was found by its id */
} sql_current;
/* Looks for the open cursor that drew this serial number for the row it is still on; 0: none. */
int sql_cursor_current(sql_db *d, uintptr_t serial, sql_current *out);
/* sql_explain.c: how its score came about, as JSON. */
void sql_explain_row(sqlite3_context *ctx, const sql_current *row);

/* ------------------------------------------------- sql_aux.c: bm25(), highlight(), snippet() */

/* The value of the table's own column: the query's text if it was given one (NULL: not), which
 * stands for the row all the same. */
void sql_aux_result(sqlite3_context *ctx, sql_db *d, uintptr_t serial, sqlite3_value *query);
int sql_aux_is_row(sqlite3_value *v);         /* such a value, without a text */
sql_function *sql_aux_find(const char *name); /* NULL: none of these; user data is the table */
int sql_aux_register(sql_db *d);

/* ------------------------------------------------------------- sql_row.c, sql_update.c: writing */

/* One column's value as the store takes it. Points into v, or into the table's scratch vector
 * for the embedding. */
int sql_row_value(sql_table *t, int col, sqlite3_value *v, st_value *out);
int sql_update(sqlite3_vtab *v, int argc, sqlite3_value **argv, sqlite3_int64 *rowid);

/* Runs fn(ctx, t) inside the table's xUpdate, nested on the caller's connection: what
 * it changes through t->store->conn, after sql_txn_write(t), joins the caller's transaction, and an
 * error undoes all of it. fn leaves its error by sql_fail or sql_fail_st, and it comes back as that
 * of the connection. Reaches fn as a pointer bound to the command column, which no SQL text can
 * write. */
typedef int (*sql_inside_fn)(void *ctx, sql_table *t);
int sql_inside(sql_table *t, sql_inside_fn fn, void *ctx);
/* The same from within xUpdate, whose own statement may have no mark to go back to: INSERT of one
 * row has none. The error comes back as that of t. */
int sql_inside_again(sql_table *t, sql_inside_fn fn, void *ctx);
#define SQL_INSIDE_TYPE "h5mem-inside"
typedef struct sql_call {
    sql_inside_fn fn;
    void *ctx;
} sql_call;

/* Folds the log into the file. inside: within xUpdate, where the host's write lock is held. */
typedef int (*sql_maintain_fn)(st_conn *c, int timeout_ms, uint64_t *n, st_error *err);
int sql_maintain(sql_table *t, int inside, sql_maintain_fn fn, uint64_t *n);

/* ------------------------------------------------------------------------------------ functions */

void sql_verify_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv); /* sql_verify.c */
int sql_verify_command(sql_table *t);                                     /* faults are an error */
int sql_integrity(sqlite3_vtab *vtab, const char *schema, const char *name, int flags, char **out);
void sql_stats_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv); /* sql_stats.c */
void sql_optimize_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv);
void sql_export_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv); /* sql_door.c */
void sql_import_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv);
void sql_gate_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv); /* sql_gate.c */
void sql_gate_reason_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv);
void sql_scan_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv);   /* sql_scan.c */
void sql_record_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv); /* sql_record.c */
void sql_forget_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv); /* sql_forget.c */
void sql_destroy_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv);
void sql_h5_read_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv); /* sql_h5_read.c */
int sql_rows_register(sql_db *d); /* sql_rows.c: h5mem_time, h5mem_expand */
/* xBestIndex of a table whose hidden columns are arguments: bit i of idxNum for argument i, handed
 * over in their order. */
#define SQL_ROWS_ARGS_MAX 4
int sql_rows_best_index(sqlite3_index_info *info, int columns, int args, int rows);
void sql_restore_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv); /* sql_restore.c */
/* sql_life.c, sql_rate.c */
void sql_consolidate_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv);
void sql_tick_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv);
void sql_touch_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv);
void sql_importance_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv);
int sql_consolidate_command(sql_table *t);
int sql_tick_command(sql_table *t);
/* track_access. A search begins: how many of its rows count as accessed (0: off). One of them is
 * handed out. Inside xUpdate: what has gathered is written. */
#define SQL_TRACK_ROWS 20
int sql_track_begin(sql_table *t, int *rows);
int sql_track(sql_table *t, int64_t id);
int sql_track_write(sql_table *t);
/* Around an INSERT: consolidates when consolidate_every rows have come since the last pass, as
 * their ids tell. */
typedef struct sql_watch {
    int64_t every; /* 0: never */
    int64_t seen;  /* the greatest id that the last pass saw */
} sql_watch;
int sql_life_watch(sql_table *t, sql_watch *out);
int sql_life_due(const sql_watch *w, int64_t id); /* does this row bring a pass? */
int sql_life_inserted(sql_table *t, const sql_watch *w, int64_t id);
void sql_has_tag_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv);
/* sql_vector.c */
void sql_vector_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv);
void sql_vector_json_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv);
void sql_distance_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv);
/* The table that a function's argument names, open; NULL after leaving an error in ctx. */
sql_table *sql_fn_table(sqlite3_context *ctx, sqlite3_value *name);

#endif
