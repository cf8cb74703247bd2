/*
 * t_world.h - a host database and a store under random work, and a model of what is in them
 *
 * The host has the ordinary table `notes`, the store's table `memory`, and triggers from one to the
 * other; a transaction writes both. The model lies in memory that processes share, so that it
 * outlives the process that works: `cur` is what is committed; while COMMIT runs, `open` says that
 * the other model may be what is there instead.
 *
 * The model also holds what the life of memories leaves: tiers and accesses, rows that were evicted
 * and can come back, sessions, the last tick, and a digest of all events in their order, so that no
 * event can be there without what it tells of.
 *
 *     t_shared *s = t_shared_new();       then fork
 *     t_world w; t_world_open(&w, s, &spec, "/folder/"); t_world_check(&w); t_world_step(&w);
 *
 * ERRORS   what must not fail ends the process with code 3 and its reason in shared->message. With
 *          may_fail set, a statement that fails is taken back instead and counted.
 * THREADS  one a world.
 * SPDX-License-Identifier: MIT
 */
#ifndef T_WORLD_H
#define T_WORLD_H

#include <sqlite3.h>
#include <stdint.h>

#include "t_rng.h"

enum { T_DIM = 4, T_ROWS = 48, T_NOTES = 24, T_HISTORY = 4096, T_MAYBE = 12 };
enum { T_SESSIONS = 12, T_GONE = 24 };

typedef struct t_row {
    int64_t id;
    int content; /* number of a text; -1 NULL */
    int session, importance, priority, vector, stamp;
    int tier, accesses;
} t_row;

typedef struct t_note {
    int64_t id;
    int text;
} t_note;

/* parent, end: -1 none. A parent has the smaller id. */
typedef struct t_session {
    int id, parent, end, summary;
} t_session;

typedef struct t_model {
    int nrow, nnote, nsession, ngone;
    t_row row[T_ROWS];
    t_note note[T_NOTES];
    t_session session[T_SESSIONS];
    t_row gone[T_GONE]; /* evicted, the last one last */
    int tick;
    long events;
    uint64_t told; /* digest of the events */
} t_model;

enum { T_IDLE, T_ROWS_WRITTEN, T_COMMITTING }; /* t_shared.where */

typedef struct t_shared {
    volatile int cur;   /* the model that is committed */
    volatile int open;  /* 0; 1: COMMIT runs, the other one may be there; 2: the other one is */
    volatile int where; /* T_IDLE .. */
    volatile int phase; /* of the last call, as t_sys.h has it */
    volatile int ready; /* the world is open and was right */
    volatile int said;  /* what h5mem_stats says is behind: 0, 1 the host, 2 the store */
    volatile int took;  /* an open COMMIT was found done */
    t_model model[2];
    /* A COMMIT that failed with an error may come back while nothing has been committed since: its
    ** frames stand in the WAL, and recovery takes them for good. */
    t_model maybe[T_MAYBE];
    int nmaybe;
    long commits, failures;
    long evicted, back, recorded; /* rows, whatever became of the transaction */
    uint64_t rows_was[T_HISTORY], notes_was[T_HISTORY]; /* digests of committed states, a ring */
    long history;
    char message[8000];
} t_shared;

typedef struct t_spec {
    const char *journal;     /* of the host: wal, delete, truncate, persist; NULL: no file */
    const char *synchronous; /* of the host */
    const char *options;     /* of CREATE, ", a=b ..." */
} t_spec;

typedef struct t_world {
    t_shared *shared;
    const t_spec *spec;
    char folder[200];
    sqlite3 *db;
    t_rng rng;
    int may_fail;
    int drop;      /* 1: now and then a transaction drops the table */
    int no_upkeep; /* 1: only statements that change rows */
    t_model work;  /* of the running transaction */
    char error[400];
} t_world;

t_shared *t_shared_new(void);
/* Ends the process: the world is not as it has to be. */
_Noreturn void t_world_fail(t_world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Opens the host, makes the tables when they are not there. SQLITE_OK or, with may_fail,
** the code. */
int t_world_open(t_world *w, t_shared *s, const t_spec *spec, const char *folder);
void t_world_close(t_world *w);
/* Makes the host and an empty model. */
void t_world_make(t_shared *s, const t_spec *spec, const char *folder);
/* Host and store must be as the model says, or, while `open`, as the other one says; takes that. */
void t_world_check(t_world *w);
/* 1 when what is there is the model, or, while `open`, the other one; 0 not; with may_fail -1 when
** it cannot be read. Changes nothing. */
int t_world_is_right(t_world *w);
/* Every row by words, by vector and by id; h5mem_verify. */
void t_world_check_deeply(t_world *w);
/* What is there as text, to compare and to print; sqlite3_free. NULL with may_fail when it
** fails. */
char *t_world_dump(t_world *w, int notes);
char *t_model_dump(const t_model *m, int notes);
uint64_t t_digest(const char *text);

/* A transaction, a single statement, or upkeep: flush, compact, backup, checkpoint, reopen. */
void t_world_step(t_world *w);
void t_world_transaction(t_world *w);
void t_world_upkeep(t_world *w);
int t_world_compact(t_world *w);
/* Runs SQL; SQLITE_OK or, with may_fail, the code. ask: each row goes to take, as sqlite3_exec has
** it. */
int t_world_run(t_world *w, const char *fmt, ...);
int t_world_ask(t_world *w, int (*take)(void *, int, char **, char **), void *ctx, const char *fmt,
                ...);

/* One random call of those that let memories age, or a session's beginning or end; done to
** w->work. */
int t_life_step(t_world *w);
/* A pass of consolidation, done to w->work and not yet run: its time in *now. Then the pass. */
int t_life_plan(t_world *w, int *now, int *moves);
int t_life_pass(t_world *w, int now, int moves);
void t_model_told(t_model *m, const char *event); /* "kind|id", "kind|~" */

/* Rows of the model, in order of their ids. */
int t_model_below(t_world *w, int n);
int t_model_place(const t_model *m, int64_t id);
int t_model_has(const t_model *m, int64_t id);
void t_model_set(t_model *m, const t_row *r);
void t_model_drop(t_model *m, int i);
int t_model_gone(const t_model *m, int64_t id); /* its place among the evicted, or -1 */
void t_model_ungone(t_model *m, int64_t id);

#endif
