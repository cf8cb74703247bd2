/*
 * store.h - one memory store: an HDF5 file and its log. The only header of ext/store that ext/sql
 * includes.
 *
 * A store holds rows. A row has a stable 64-bit id and one value a column; the built-in columns are
 * fixed (ST_COL_...), user columns follow. What is committed is in the HDF5 file (the base) or in
 * frames of the log beside it (the overlay); both are read as one.
 *
 * WHO IS WHO
 *   st_conn   one host connection's use of one store: its snapshot, its open transaction with undo
 *             marks. Several tables of one host connection over the same store share one st_conn
 *             (st_open counts).
 *   st_view   what one statement reads: a consistent set of rows. While a connection holds a view,
 *             its further views show the same commit; each also sees what the connection itself had
 *             written when the view was opened.
 *   st_cursor a running query over a view: rows in order, made on demand.
 *
 * TRANSACTIONS
 *   st_begin (writer lock) .. st_put/st_update/st_delete/st_set_option .. st_prepare (phase one:
 *   frames and a prepare frame are in the log) .. the host writes the returned txid into its own
 *   database and commits .. st_commit (phase two: cannot fail) or st_rollback. After a death
 *   between the two, st_host.verdict decides: the transaction counts iff the host's row holds a
 *   txid at least as high.
 *
 * CODES     ST_OK or a negative code; *err then holds one line of text that names the value at
 *           fault. The caller adds table and file. After a failure the store is as it was before
 *           the call.
 * MEMORY    through h5_malloc (h5core.h). Values handed out point into the view or conn, as said at
 *           each call.
 * THREADS   an st_conn, its views and cursors are used by one thread at a time; different st_conns,
 *           also of one store, by any threads.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef STORE_H
#define STORE_H

#include <stddef.h>
#include <stdint.h>

/* --------------------------------------------------------------------------------------- errors */

enum {
    ST_OK = 0,
    ST_NOMEM = -1,
    ST_IO = -2,          /* the system refused; text has the reason */
    ST_FULL = -3,        /* no space left, or a size limit of the system */
    ST_CORRUPT = -4,     /* the store's bytes are wrong */
    ST_UNSUPPORTED = -5, /* right, but not for this version */
    ST_NOTFOUND = -6,    /* no such file, row or option */
    ST_MISUSE = -7,      /* a value the caller gave is wrong; text names it */
    ST_LIMIT = -8,       /* a named limit */
    ST_BUSY = -9,        /* another writer holds the store; the wait is over */
    /* this connection reads from a snapshot that is no longer the newest: a write on it would lose
    ** one */
    ST_BUSY_SNAPSHOT = -10,
    ST_STOPPED = -11,  /* the stop callback said so */
    ST_EXISTS = -12,   /* a row with this id is there */
    ST_READONLY = -13, /* file, folder or connection is read-only */
    ST_NOT_A_STORE =
        -14, /* a file that is no HDF5 file, or an HDF5 file that is no store; untouched */
    /* the last transaction belongs to another host database, which must be opened first; text names
    ** it */
    ST_DOUBT = -15,
    ST_LOCKED = -16 /* this connection has uncommitted rows: not now */
};

typedef struct st_error {
    int code;
    char text[2000];
} st_error;
/* Makes it empty: quicker than zeros all over, where a call is made for each row. */
static inline void st_error_none(st_error *e)
{
    e->code = 0;
    e->text[0] = 0;
}
/* memset to 0, as a call: what compilers put in its place starts slowly. */
void st_zero(void *p, size_t n);

/* --------------------------------------------------------------------------------------- values */

enum { ST_NULL = 0, ST_INT = 1, ST_REAL = 2, ST_TEXT = 3, ST_BLOB = 4 };

typedef struct st_value {
    int type; /* ST_NULL .. ST_BLOB */
    int64_t i;
    double r;
    const void *p; /* ST_TEXT: UTF-8, not NUL-terminated; ST_BLOB */
    size_t n;      /* bytes */
} st_value;

/* Built-in columns, in the order of the table. */
enum {
    ST_COL_ID,            /* INT */
    ST_COL_CONTENT,       /* TEXT or NULL */
    ST_COL_EMBEDDING,     /* BLOB of 4 * dim bytes (f32, native order) or NULL */
    ST_COL_TIMESTAMP,     /* REAL, Unix seconds UTC; never NULL */
    ST_COL_SESSION,       /* TEXT or NULL */
    ST_COL_CHANNEL,       /* TEXT or NULL */
    ST_COL_TAGS,          /* TEXT or NULL */
    ST_COL_SOURCE,        /* TEXT: user assistant system tool retrieval correction, or NULL */
    ST_COL_TIER,          /* TEXT: working episodic semantic */
    ST_COL_IMPORTANCE,    /* REAL 0..1 */
    ST_COL_ACTIVATION,    /* REAL >= 0 */
    ST_COL_ACCESS_COUNT,  /* INT >= 0 */
    ST_COL_LAST_ACCESS,   /* REAL or NULL */
    ST_COL_VALID_FROM,    /* REAL or NULL */
    ST_COL_VALID_TO,      /* REAL or NULL */
    ST_COL_SUPERSEDED_BY, /* INT or NULL */
    ST_COL_PINNED,        /* INT 0 or 1 */
    ST_COL_USER           /* the first user column */
};

/* What a search gives a row; usable in st_term.col beside real columns. */
enum { ST_COL_DISTANCE = 1000, ST_COL_RANK = 1001, ST_COL_SCORE = 1002 };

#define ST_USER_COLUMNS_MAX 64
#define ST_NAME_MAX         128 /* bytes of a user column's or option's name */

typedef struct st_column {
    char name[ST_NAME_MAX];
    int type; /* ST_INT, ST_REAL, ST_TEXT or ST_BLOB */
} st_column;

/* Name and type of a built-in column (col < ST_COL_USER). */
const char *st_column_name(int col);
int st_column_type(int col);

/* A growing buffer of bytes; all zeros is empty. As st_json an object that is being written. */
typedef struct st_buf {
    uint8_t *p;
    size_t n, cap;
} st_json;
/* The next member: INTEGER, REAL or TEXT, else null. */
int st_json_add(st_json *j, const char *name, const st_value *v, st_error *err);
void st_json_free(st_json *j);

/* Tables beside the rows. Column 0 is the key: TEXT, or an INTEGER that the store gives. */
enum { ST_SESSIONS, ST_EVENTS, ST_SIDES };
#define ST_SIDE_COLS_MAX 12
enum {
    ST_SESSION_ID, /* TEXT */
    ST_SESSION_PARENT,
    ST_SESSION_START, /* REAL, Unix seconds */
    ST_SESSION_END,
    ST_SESSION_CHANNEL, /* TEXT */
    ST_SESSION_SUMMARY
};
enum {
    ST_EVENT_SEQ,  /* INTEGER, never given twice */
    ST_EVENT_TIME, /* REAL */
    ST_EVENT_KIND, /* TEXT */
    ST_EVENT_ID,   /* INTEGER: of the row it is about, or NULL */
    ST_EVENT_JSON  /* TEXT */
};
/* The kind of an event that is a warning, of those that are kept longest; NULL: it is none. */
const char *st_alert_kind(const st_value *kind);
const char *st_side_name(int side);
int st_side_columns(int side);
const char *st_side_column_name(int side, int col);
int st_side_column_type(int side, int col);

/* ------------------------------------------------------------------------------ opening a store */

/* What the host database offers; one per host connection and kept alive by it as long as a st_conn
** lives. Two st_open calls with the same st_host pointer on one store give the same st_conn. */
typedef struct st_host {
    void *ctx;
    /* The transaction id in the host's state row with this uuid, as this connection now reads it.
    ** ST_NOTFOUND when the host has no such row. firm, when not NULL: set to 0 when what a holder
    ** of the host's write lock reads there may still turn out to be more after a recovery (a host
    ** in WAL mode), else left alone. */
    int (*verdict)(void *ctx, const uint8_t uuid[16], int64_t *txid, int *firm, st_error *err);
    /* 1: a database of this connection is the file with that identity. NULL: none is. */
    int (*is_file)(void *ctx, uint64_t dev, uint64_t ino);
    /* Nonzero: stop what you are doing (asked about every millisecond in long scans). NULL:
    ** never. */
    int (*stop)(void *ctx);
} st_host;

typedef struct st_option {
    const char *name;
    const char *value;
} st_option;

/* What CREATE says. On an existing store dim, metric, tokenizer and columns may be absent and must
** else agree. */
typedef struct st_create {
    int64_t dim; /* 0 = not given */
    /* every other option given, by the names of st_option_name; set once, at creation; on an
    ** existing store: as said at each name */
    const st_option *options;
    size_t noption;
    const st_column *columns; /* user columns */
    size_t ncolumn;
    const char
        *tokenizer; /* specification; NULL = not given (a new store gets the default below) */
    /* of the tokenizer that the creating connection has for that specification; required for a new
    ** store */
    const char *fingerprint;
} st_create;

#define ST_DEFAULT_TOKENIZER "porter unicode61 remove_diacritics 2"

enum {
    ST_OPEN_CREATE = 1, /* make the store when there is none */
    /* never write, take no writer lock; with CREATE: check what create says, make nothing */
    ST_OPEN_READONLY = 2
};

typedef struct st_conn st_conn;
typedef struct st_view st_view;

/* Opens the store at path (absolute, or relative to the working folder), replaying and mending as
** needed. create is read with ST_OPEN_CREATE only. */
int st_open(const char *path, int flags, const st_create *create, const st_host *host,
            st_conn **out, st_error *err);
/* Ends one use. The last one of a connection rolls back what is open. The last connection of all
** processes flushes, if nothing stands in the way. */
void st_close(st_conn *c);

/* Removes the store at path, its log and what a compact that died left beside them. ST_BUSY while
** anybody, this process or another program too, has it open; ST_NOTFOUND; ST_NOT_A_STORE for any
** other file, untouched. After a death in the middle either the store is whole, or a second call
** finishes it. */
int st_destroy(const char *path, st_error *err);

typedef struct st_info {
    const char *path;
    uint8_t uuid[16];
    int64_t dim;
    int metric; /* VEC_COSINE, VEC_L2, VEC_IP */
    const char *tokenizer;
    const char *fingerprint;
    const st_column *columns; /* user columns */
    size_t ncolumn;
    int readonly;
} st_info;
/* Facts that do not change while the store is open. Valid until st_close. */
const st_info *st_conn_info(const st_conn *c);

/* Total number of columns: ST_COL_USER + user columns. */
int st_conn_columns(const st_conn *c);

/* --------------------------------------------------------------------------------- transactions */

/* Who decides about a transaction: the state row of the host table that wrote first. */
typedef struct st_identity {
    uint8_t uuid[16];  /* of the row */
    uint64_t dev, ino; /* of the host file; 0, 0 when the host has none (:memory:, TEMP) */
    const char *host;  /* the host file's name, for messages; may be NULL */
} st_identity;

/* Takes the writer lock, waiting up to timeout_ms, and fixes the snapshot. Decides what is in doubt
** first (the caller holds the host's write lock). In a transaction already: ST_OK and nothing
** changes (the first identity stays). */
int st_begin(st_conn *c, int timeout_ms, const st_identity *who, st_error *err);
int st_in_transaction(const st_conn *c); /* 1 from st_begin to st_commit/st_rollback */
int st_has_changes(const st_conn *c);    /* 1 when the open transaction has changed something */
/* 1 when a transaction of this host is in doubt, its state row says no, and only a commit of this
** transaction (an empty one will do) makes that final. */
int st_holds_doubt(const st_conn *c);

/* Undo marks, numbered as SQLite numbers savepoints. Mark n is set by the first st_savepoint(n)
** since n was released or passed. Rolling back to a mark never set, or to -1, undoes everything.
** Without a transaction these do nothing. */
int st_savepoint(st_conn *c, int n, st_error *err);
void st_release(st_conn *c, int n);
void st_rollback_to(st_conn *c, int n);

/* A row to write. values: one per column, canonical types as listed at ST_COL_ (INT is accepted for
** REAL; tier and source as text; NULL takes the default where a column is never NULL); checked:
** types, dim, finite vectors, ranges. tokens: the row's token stream (vec.h), with the fields
** content, tags, session. */
typedef struct st_row {
    const st_value *values;
    const uint8_t *tokens;
    size_t ntokens;
} st_row;

/* Adds a row. values[ST_COL_ID] NULL: the next id is assigned. *id the row's id. ST_EXISTS, with
** nothing changed, when the id is taken. */
int st_put(st_conn *c, const st_row *row, int64_t *id, st_error *err);
/* Changes row id to the given values; all columns are given, changed[col] says which differ (values
** of others are not read). tokens are needed when any changed column is heavy (st_column_heavy) and
** the row's content, old or new, is not NULL. A changed ST_COL_ID moves the row: ST_EXISTS when the
** new id is taken. */
int st_update(st_conn *c, int64_t id, const st_row *row, const uint8_t *changed, st_error *err);
/* The same for n columns that are not heavy, of the row that v, a view opened in this transaction,
** shows at row: many rows at a time. Not for a row that has been deleted, evicted or written anew
** since v was opened. */
int st_set(st_conn *c, st_view *v, uint64_t row, const int *col, const st_value *value, size_t n,
           st_error *err);
int st_column_heavy(const st_conn *c,
                    int col); /* 1: changing it writes a new row; 0: it is changed in place */
int st_delete(st_conn *c, int64_t id, st_error *err); /* ST_NOTFOUND when there is no such row */
/* The row goes out of every read as by st_delete, but its last version stays to be found
** (st_evicted_find) until a compact, a row of the same id, or st_evicted_drop. ST_NOTFOUND when
** there is no such row. Appends the event 'evict', with reason, tier, importance, timestamp,
** session and content; now: Unix seconds. */
int st_evict(st_conn *c, int64_t id, const char *reason, double now, st_error *err);
/* The same of a row as st_set names it. */
int st_evict_row(st_conn *c, st_view *v, uint64_t row, const char *reason, double now,
                 st_error *err);
/* Says that about as many rows are going to be changed so, each with its event: room is made once.
** No promise. */
int st_expect(st_conn *c, size_t sets, size_t evictions, st_error *err);
/* An evicted row is to be found no more (its bytes go with the next compact). ST_NOTFOUND when the
** newest version of id is not an evicted one. */
int st_evicted_drop(st_conn *c, int64_t id, st_error *err);
/* Is this id there, as this connection sees it inside its transaction? ST_OK or ST_NOTFOUND. */
int st_exists(st_conn *c, int64_t id, st_error *err);

/* Records of a table beside the rows. values: one a column; INTEGER keys NULL: the next number is
** given, *key (or NULL) it. ST_EXISTS, with nothing changed, when the key is taken. */
int st_side_put(st_conn *c, int side, const st_value *values, int64_t *key, st_error *err);
/* The record with that key becomes values, whose key may be another. ST_NOTFOUND, ST_EXISTS. */
int st_side_set(st_conn *c, int side, const st_value *key, const st_value *values, st_error *err);
int st_side_delete(st_conn *c, int side, const st_value *key, st_error *err); /* ST_NOTFOUND */
/* Appends an event. id: of the row it is about, or NULL; json: a text, or NULL. */
int st_event(st_conn *c, double time, const char *kind, const int64_t *id, const char *json,
             st_error *err);
/* The same with the object that has been written, which is closed here; the caller frees it. */
int st_json_event(st_conn *c, double time, const char *kind, const int64_t *id, st_json *j,
                  st_error *err);

/* Phase one. Writes the frames and a prepare frame and syncs as the option synchronous says. spare:
** the host is certain to have nothing to commit, so that the transaction needs no row of its; it
** counts from now on unless st_rollback follows. *txid: what the host must write into the state row
** of *owner (uuid of the row, from st_begin) within the transaction that it is about to commit; 0
** when there is nothing to write (no changes, no transaction, spared, a host without a file). May
** be called again, with more changes, when the host could not commit. */
int st_prepare(st_conn *c, int spare, int64_t *txid, uint8_t owner[16], st_error *err);
/* Phase two; cannot fail. Folds the log into the file when it has passed autoflush (a failure of
** that is only kept for st_stats). */
void st_commit(st_conn *c);
void st_rollback(st_conn *c);
/* As st_rollback, where the host may have committed all the same (its COMMIT failed at the very
** end): what st_prepare has written stays in doubt, and the state row decides at the next look. */
void st_abandon(st_conn *c);

/* The row that the open transaction goes by was dropped in it, or is there after all: then its
** being gone from the host is what says that the host has committed. Before st_prepare. */
void st_dropped(st_conn *c, int dropped);
/* Before the state row uuid goes away: writes the verdict on a transaction in doubt that goes by
** it, if there is one; where synchronous is full it syncs the log, so that what the row has said
** until now is on the disk. *holds: it says no, and only a commit of a transaction of this host
** makes that final. */
int st_settle(st_conn *c, int timeout_ms, const uint8_t uuid[16], int *holds, st_error *err);

/* What keeps writers out until somebody decides: "doubt", its last transaction is between two
** phases and this host is not the one that knows; "foreign", another program has changed the file;
** "" nothing. */
int st_unresolved(st_conn *c, const char **what, st_error *err);
/* Decides: "commit" or "abort" the transaction in doubt, "adopt" the file as it is. ST_MISUSE when
** there is nothing of the kind. */
int st_resolve(st_conn *c, int timeout_ms, const char *how, st_error *err);

/* -------------------------------------------------------------------------------------- options */

/* How memories age: the options of these names. Times in seconds, half-lives of 0 are for ever. */
typedef struct st_life {
    int track_access, auto_importance;                              /* 1: on */
    int64_t working_capacity, episodic_capacity, semantic_capacity; /* below 0: any number */
    double half_life_working, half_life_episodic, half_life_semantic;
    double promote_importance;
    int64_t promote_access, semantic_access;
    double access_weight; /* of an access in what a row is worth; its importance is worth 1 */
    double importance_base, importance_surprise, importance_facts, importance_length,
        importance_words, importance_question, importance_correction,
        importance_source;    /* mind.h */
    double importance_access; /* share of what is missing to 1 that an access adds */
    double merge_distance;
    int64_t consolidate_every; /* rows written after which a pass follows; 0: none does */
    double consolidate_after;  /* seconds after which a tick brings one */
    int64_t event_limit;       /* events kept, and alerts; below 0: any number */
    double activation_half_life, activation_boost, activation_max;
    /* what the last tick and the last pass left behind */
    double last_tick, last_consolidation;
    int64_t consolidated_id; /* the greatest id that the last pass saw */
} st_life;
/* For this connection, as st_get_option. */
int st_get_life(st_conn *c, st_life *out, st_error *err);

/* What is written and how: the options of these names (rate[i] is rate_<source i>). */
typedef struct st_policy {
    int record_strategy, record_mode; /* ST_RECORD_ */
    double shift_distance;            /* cosine, below which a message may repeat a row */
    int64_t shift_rows;               /* that are looked at for that */
    int scan;                         /* 1: what a new text says is scanned (mind.h) */
    int64_t rate[7]; /* rows a minute of each source, by ST_SOURCE_; 0: any number */
    int rate_refuse; /* 1: further ones are refused */
} st_policy;
enum { ST_RECORD_EVERY = 0, ST_RECORD_SHIFT = 1, ST_RECORD_CORRECTION = 2 };
enum { ST_RECORD_BOTH = 0, ST_RECORD_USER = 1, ST_RECORD_ASSISTANT = 2, ST_RECORD_COMBINED = 3 };
int st_get_policy(st_conn *c, st_policy *out, st_error *err);

/* The name of option i, from 0 on; NULL behind the last. */
const char *st_option_name(int i);
/* What an option's value is: ST_INT, ST_REAL or ST_TEXT (also for a name that is none). */
int st_option_type(const char *name);
/* The value an option has for this connection (uncommitted changes included), as text into buf. */
int st_get_option(st_conn *c, const char *name, char *buf, size_t n, st_error *err);
/* Checks value (ST_MISUSE names it and what is allowed; dim, metric, tokenize, storage cannot
** change) and changes the option inside the open transaction. */
int st_set_option(st_conn *c, const char *name, const char *value, st_error *err);

/* -------------------------------------------------------------------------------------- reading */

/* Opens a view; may read the log or reopen the file when others have written. */
int st_view_open(st_conn *c, st_view **out, st_error *err);
void st_view_close(st_view *v); /* after its cursors; also fine after rollback of what it shows */
/* One column of a row. row comes from a cursor or st_view_find. *out points into the view until the
** next call for the same column or st_view_close. */
int st_view_value(st_view *v, uint64_t row, int col, st_value *out, st_error *err);
/* The row with this id; ST_NOTFOUND. */
int64_t st_view_id(st_view *v, uint64_t row);
int st_view_find(st_view *v, int64_t id, uint64_t *row, st_error *err);
uint64_t st_view_count(const st_view *v); /* visible rows */
/* The version of this id that was evicted last, for st_view_value; ST_NOTFOUND when the id lives or
** was not evicted, ST_MISUSE when the connection has written since the view was opened. Bringing a
** row back is a st_put of its values, with tokens made anew. */
int st_evicted_find(st_view *v, int64_t id, uint64_t *row, st_error *err);
/* The first evicted row at or after from, in the order they were written; ST_NOTFOUND at the end,
** ST_MISUSE as above. */
int st_evicted_next(st_view *v, uint64_t from, uint64_t *row, st_error *err);

/* All visible rows, a column each, in the order of their rows. One allocation. */
typedef struct st_ages {
    size_t n;
    uint64_t *row;
    int64_t *id;
    double *timestamp, *importance;
    int64_t *access_count;
    double *last_access, *valid_to; /* NaN: NULL */
    uint8_t *tier, *pinned;
    uint8_t *source;     /* ST_SOURCE_ */
    uint8_t *superseded; /* 1: valid_to is set */
} st_ages;
enum {
    ST_SOURCE_NONE,
    ST_SOURCE_USER,
    ST_SOURCE_ASSISTANT,
    ST_SOURCE_SYSTEM,
    ST_SOURCE_TOOL,
    ST_SOURCE_RETRIEVAL,
    ST_SOURCE_CORRECTION
};
int st_ages_read(st_view *v, st_ages *out, st_error *err); /* st_ages_free in any case */
void st_ages_free(st_ages *a);
/* A table beside the rows. Its records have numbers below some end; those that show come in the
** order they were written. A view has what the connection had written when the table was first
** asked for. */
int st_side_count(st_view *v, int side, uint64_t *n, st_error *err);
/* The first record at or after from; ST_NOTFOUND at the end. */
int st_side_next(st_view *v, int side, uint64_t from, uint64_t *row, st_error *err);
/* INTEGER keys: a number below which no record has a key above that one; for st_side_next. */
int st_side_after(st_view *v, int side, int64_t key, uint64_t *row, st_error *err);
/* The record with this key; ST_NOTFOUND. */
int st_side_find(st_view *v, int side, const st_value *key, uint64_t *row, st_error *err);
/* As st_view_value. */
int st_side_value(st_view *v, int side, uint64_t row, int col, st_value *out, st_error *err);

/* Comparisons, with SQLite's rules between numbers (int against real exactly), memcmp order for
** text and blobs. Comparing a number column with text, or text with a number, is settled by the
** caller (never handed down). NULL values never satisfy any but ISNULL. */
enum {
    ST_EQ = 1,
    ST_NE,
    ST_LT,
    ST_LE,
    ST_GT,
    ST_GE,
    ST_IN,
    ST_ISNULL,
    ST_NOTNULL,
    ST_NEVER,
    ST_LIKE, /* texts only: st_like, st_has_tag */
    ST_GLOB,
    ST_TAG
};
typedef struct st_term {
    int col;
    int op;
    st_value value; /* all but IN, ISNULL, NOTNULL, NEVER */
    const st_value
        *list; /* IN: nlist values, any order; NULLs and values of other kinds match nothing */
    size_t nlist;
} st_term;

enum {
    ST_ORDER_BEST = 0,  /* searches: best first by score, ties by id; scans: by position */
    ST_ORDER_WORST = 1, /* searches only: the exact reverse by key, ties by id still ascending */
    ST_ORDER_ID = 2,
    ST_ORDER_ID_DESC = 3,
    ST_ORDER_TIME = 4, /* by timestamp, ties by id */
    ST_ORDER_TIME_DESC = 5
}; /* scans only */

typedef struct st_query {
    /* AND-ed; also on ST_COL_DISTANCE, _RANK, _SCORE of a search (a part not asked for is NULL) */
    const st_term *terms;
    size_t nterm;
    const float *vector;   /* dim values, finite (checked), or NULL: no vector part */
    const uint8_t *tokens; /* token stream of the text part; see has_text */
    size_t ntokens;
    const struct vec_ask *ask; /* a whole query (vec.h) instead of the tokens; must outlive the
                                  cursor. NULL: the tokens, OR-ed */
    int ask_filters;           /* 1: its operators also say which rows the vector part may give */
    int has_text;              /* 1: a text part, even one without tokens (which matches nothing) */
    int order;                 /* ST_ORDER_ */
    int64_t k;                 /* at most so many rows, the best ones, after terms; -1 = all */
    uint64_t hint; /* how many rows will likely be read; 0 = unknown; never changes the result */
    /* 1: rows valid at as_of; 0: searches skip rows whose valid_to is set, scans see all */
    int has_as_of;
    double as_of;
    int every;                                /* 1: searches skip nothing of that, either */
    double vector_weight, text_weight, rrf_k; /* fusion; from the query or the options */
    int fusion;                               /* ST_FUSE_ */
    int by; /* ST_BY_: what BEST and WORST mean; k rows are the best by it, too */
    /* What moves the score, 0 for nothing; 0..1 but for context. st_blend.h has the formulas. */
    double context;
    int neighbours_too;     /* 1: rows that only a neighbour recommends are returned, too */
    int asks;               /* the query is a question */
    const uint32_t *labels; /* st_text_label of its words; turns that begin with one go ahead */
    size_t nlabel;          /* at most ST_LABELS_MAX */
    /* The weight of the query's dates that a time fulfils, at most dated_most; NULL: it has none.
    ** dated_ctx must outlive the cursor. */
    double (*dated)(void *ctx, double timestamp);
    void *dated_ctx;
    double dated_most;
    /* The query names a time and little else: rows for which it says yes match by that, too, and go
    ** ahead of those that only have its words. NULL: it does not. within_ctx as dated_ctx. */
    int (*within)(void *ctx, double timestamp);
    void *within_ctx;
    double recency, half_life, now; /* seconds, Unix seconds */
    double importance_weight, activation_weight;
    double graph_weight; /* moves nothing yet: there is no graph to count rows in */
    int has_min_score;
    double min_score; /* no row that scores less */
    double dedup;     /* no row so like (0..1) one given before; 0: off */
    double mmr; /* 0..1: how much likeness to rows given before counts against a row; 0: off */
    int expand, syntax; /* not the store's: whoever makes the words reads them; ST_SYNTAX_ */
    /* Vector part, best first: the share of the rows read that are to be the right ones, 0.5 to 1.
     * 1 is exact. */
    double recall;
    int64_t nprobe; /* lists to look at first; 0: as recall takes */
    int exact;      /* 1: as recall = 1 */
    int threads;    /* that the vector part may scan with; 0 and 1: the caller's; see vec_near */
} st_query;

#define ST_CONTEXT_MAX 10.0
enum { ST_LABELS_MAX = 32 };
/* Sets what options of the store give: all settings but those that a text or a clock gives. */
void st_query_defaults(st_conn *c, st_query *q);
/* The character at *at < end, which moves on, as SQLite and FTS5 read it: a lead byte takes all
** continuation bytes that follow, whatever it announces; what that makes of too small a number, a
** surrogate or FFFE is the replacement. */
uint32_t st_utf8_next(const char **at, const char *end);
/* SQLite's own LIKE (ASCII letters in either case, % and _) or, with glob, GLOB (* ? [a-z] [^x]).
** Both texts end at their first NUL, and bytes that are no UTF-8 count as SQLite reads them. Takes
** time n * m at most. */
int st_like(const void *text, size_t n, const void *pattern, size_t m, int glob);

/* Is the tag one of those between the commas, white space around each aside? An empty one never is.
*/
int st_has_tag(const void *tags, size_t n, const void *tag, size_t m);
/* Does a text end in a question mark (ASCII, Arabic, full width)? White space behind is ignored. */
int st_text_asks(const void *text, size_t n);
/* What stands for the word that a text begins with, whatever the case of its ASCII letters: "Ann"
 * of "Ann: hello", of "[ann]" and of "ann". 0: it begins with none of 2 to 64 bytes. */
uint32_t st_text_label(const void *text, size_t n);

enum { ST_FUSE_RRF = 0, ST_FUSE_WEIGHTED = 1 };
enum { ST_SYNTAX_PLAIN = 0, ST_SYNTAX_FTS5 = 1 };
enum { ST_BY_SCORE = 0, ST_BY_RANK = 1, ST_BY_DISTANCE = 2 };

/* score, with no factor: text -rank; vector 1 / (1 + distance) for cosine and l2, -distance for ip;
** both: sum of weight / (rrf_k + position) over the full rankings. */
typedef struct st_cursor st_cursor;

/* How a row's score came about; NaN where something had no part in it. Shares add up to `sum`,
** which times the factors is the score. */
typedef struct st_why {
    double distance, rank;
    double text, vector;  /* the row's own parts, weighted */
    double date;          /* how much of text is due to the date */
    double before, after; /* neighbours' shares */
    double sum;
    double asks, speaker, fusion, recency, importance, activation, graph; /* factors */
    double like; /* mmr: taken off for likeness */
    double score;
} st_why;
int st_search(st_view *v, const st_query *q, st_cursor **out,
              st_error *err); /* q and what it points to may go away afterwards */
/* 1: at a row; 0: at the end; negative: failed. The first call gives the first row. */
int st_cursor_next(st_cursor *c, st_error *err);
uint64_t st_cursor_row(const st_cursor *c);
double st_cursor_distance(const st_cursor *c); /* NaN where the row has none */
double st_cursor_rank(const st_cursor *c);     /* NaN likewise */
double st_cursor_score(const st_cursor *c);    /* NaN without a search part */
/* The score that a row of this length would have with so many occurrences of each of the n phrases
 * of the text part (not whole numbers, where columns weigh differently). */
double st_cursor_bm25(const st_cursor *c, const double *count, size_t n, double length);
int st_cursor_why(st_cursor *c, st_why *out, st_error *err); /* of the row it is on */
void st_cursor_close(st_cursor *c);

/* ---------------------------------------------------------------------------------- maintenance */

/* Folds the log into the HDF5 file. *rows: row versions folded. ST_LOCKED with uncommitted changes
** here. */
int st_flush(st_conn *c, int timeout_ms, uint64_t *rows, st_error *err);

/* The same, and makes the indexes anew: vectors' lists, runs of words and of ids merged. */
int st_optimize(st_conn *c, int timeout_ms, uint64_t *rows, st_error *err);
/* How many threads training vectors' lists may use from now on, in whatever connection of this
** process to the store flushes; 1 until then. The lists are the same. */
void st_set_threads(st_conn *c, int threads);
/* What vectors are searched with now: flat, ivf, ivfpq, rairs; NULL when that cannot be told. */
const char *st_conn_index(st_conn *c);

/* What st_verify needs of the host: the token stream of a row's content, tags and session, as it
 * was made when the row was written. NULL stream and 0 for a row without tokens; valid until the
 * next call. A text is ST_TEXT or ST_NULL. */
typedef struct st_verify_host {
    void *ctx;
    int (*tokens)(void *ctx, const st_value text[3], const uint8_t **stream, size_t *nstream,
                  st_error *err);
} st_verify_host;

/* Checks every structure of the committed store, every checksum, and the indexes against the
 * rows both ways. Writes the first faults, one a line, into buf (NUL-terminated); *faults counts
 * all. ST_OK also when there are faults; an error when it could not look. tok NULL: the text
 * index is checked for its structure only. */
int st_verify(st_conn *c, const st_verify_host *tok, char *buf, size_t n, uint64_t *faults,
              st_error *err);

/* Rewrites the file without dead space, while others read; they go on with what they have open.
 * *saved: bytes the file became shorter. ST_LOCKED with uncommitted changes here. */
int st_compact(st_conn *c, int timeout_ms, uint64_t *saved, st_error *err);
/* A consistent copy of the newest commit at path (a new file, with its log beside it), while others
 * write. *bytes written. Takes no lock. The copy is the same store to a host: same uuid. */
int st_backup(st_conn *c, const char *path, uint64_t *bytes, st_error *err);

typedef struct st_stats {
    uint64_t rows;                  /* visible */
    uint64_t vectors;               /* rows with a vector */
    uint64_t tier[3];               /* working, episodic, semantic */
    uint64_t dead_rows;             /* positions in the file that no longer show */
    uint64_t evicted;               /* rows that st_evicted_find can find */
    uint64_t side[ST_SIDES];        /* records of the tables beside the rows */
    uint64_t base_rows;             /* positions in the file */
    uint64_t log_rows;              /* row versions in the log */
    uint64_t file_bytes, log_bytes; /* of the log: what is in use */
    uint64_t live_bytes; /* of the file, reachable from its root, without the share of dead rows */
    uint64_t column_bytes, vector_bytes, text_index_bytes, id_index_bytes, time_index_bytes;
    uint64_t side_bytes; /* of the tables beside the rows */
    uint64_t text_runs;
    const char *index;       /* flat, ivf, ivfpq, rairs; damaged: exact search takes its place */
    char index_fault[160];   /* what is damaged */
    uint64_t index_bytes;    /* of lists and tails */
    uint64_t lists, probes;  /* probes: lists looked at for recall 0.99 of ten rows */
    uint64_t listed, tailed; /* rows in lists, and rows that came after they were trained */
    int index_stale;         /* 1: h5mem_optimize would train them anew for a reason */
    uint64_t index_queries;  /* vectors of its own that recall was measured with */
    double index_recall;     /* share of their ten nearest found at recall 0.99 */
    double index_looked;     /* share of the rows read for that */
    uint64_t generation;
    uint64_t sequence;         /* of the last committed frame */
    uint64_t flushes;          /* by this process on this store */
    uint64_t last_flush_bytes; /* appended by the last of them */
    uint64_t syncs;            /* fsync calls by this process on this store */
    uint64_t touch_bytes;   /* appended to the log by this process for changes of small columns */
    uint64_t log_owner_seq; /* id of the last transaction that a state row decided; 0: none */
    uint8_t log_owner[16];  /* uuid of that row */
    int in_doubt;           /* 1: a prepared transaction waits for its host's verdict */
    char flush_error[256];  /* of an automatic flush that failed; empty once one succeeds */
} st_stats;
int st_conn_stats(st_conn *c, st_stats *out, st_error *err);

#endif
