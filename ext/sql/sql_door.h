/*
 * sql_door.h - private header of the sql_door_*.c files: h5mem_export and h5mem_import, the ways in
 * and out of a table.
 *
 * Idea: a format is two functions over a sql_door. An export walks the committed rows and writes a
 * file under another name, which takes its place when it is whole. An import writes rows by nested
 * INSERT, UPDATE and DELETE, so that they are tokenised and checked as any other row and join the
 * caller's transaction, all inside one savepoint: a failure leaves nothing behind.
 *
 * ERRORS   functions return an SQLite code; the first failure leaves its message as the result of
 *          the SQL function (sql_door_fail) with table, file and line. SQLITE_NOMEM leaves none.
 * MEMORY   sqlite3_malloc; HDF5's by h5_malloc.
 * THREADS  a sql_door lives in one call of a SQL function.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SQL_DOOR_H
#define SQL_DOOR_H

#include "h5core.h"
#include "sql.h"

/* ------------------------------------------------------------------------- sql_door.c: the rows */

/* A statement that writes rows, for one set of columns. */
typedef struct sql_door_stmt {
    sqlite3_stmt *stmt;
    uint8_t *given; /* that it was prepared for */
} sql_door_stmt;

typedef struct sql_door {
    sql_table *t;
    sqlite3_context *ctx;
    const char *source; /* behind the colon of a format: a table of this connection */
    const char *file;   /* in messages: the file that is read or written; NULL: the store */
    int64_t line;       /* in messages, where it is above 0 */
    const char *unit;   /* of line: NULL is "line" */
    int ncolumn;        /* of the table, without hidden ones */
    sqlite3_int64 rows;
    /* the row that sql_door_put writes */
    st_value *value;
    uint8_t *given; /* which of them are there; others keep what they are, or take the default */
    sqlite3_stmt *find, *known, *remove;
    sqlite3_stmt *back, *release; /* of the savepoint; made before it, for an end without memory */
    sql_door_stmt insert, update;
    struct sql_door_place *place; /* of sql_door_add */
    size_t nplace, place_room;
    /* a walk over the committed rows */
    st_view *view;
    unsigned looks; /* values read from it */
} sql_door;

int sql_door_fail(sql_door *d, int rc, const char *fmt, ...) SQL_PRINTF(3, 4);
int sql_door_fail_st(sql_door *d, const st_error *e);
int sql_door_fail_h5(sql_door *d, const h5_error *e);
/* The file at path did not open. */
int sql_door_fail_open(sql_door *d, const char *path, const h5_error *e);
/* The connection's own message. */
int sql_door_fail_db(sql_door *d, int rc);

/* No column is given. */
void sql_door_clear(sql_door *d);
void sql_door_set_text(sql_door *d, int col, const void *p, size_t n);
void sql_door_set_null(sql_door *d, int col);
/* Changes the row whose id is given and there; else adds one. *id, NULL allowed: its id. */
int sql_door_put(sql_door *d, int64_t *id);
int sql_door_remove(sql_door *d, int64_t id);
int sql_door_there(sql_door *d, int64_t id, int *there);
/* Is the row v, one value a built-in column, the one that has this id already? 2: time, session,
 * channel, source and text are equal, so that an import again adds nothing; 1: all but the text. */
int sql_door_known(sql_door *d, int64_t id, const st_value *v, int *known);
/* Adds the row of a file that has been here, maybe: one that is known is left alone, its id is kept
 * where it is free, and it is another's row that keeps it where it is not. changes: a row that is
 * known but for its text takes that, and loses its embedding, which was the old text's. */
int sql_door_add(sql_door *d, int changes);
/* Behind the last sql_door_add: superseded_by, where it names a row of the file. */
int sql_door_link(sql_door *d);
/* The table's column of this name, as SQLite compares names; -1: none. */
int sql_door_column(const sql_door *d, const char *name, size_t n);

/* Calls each(ctx, row, id) for every row of the view, by id. */
typedef int sql_door_each(void *ctx, uint64_t row, int64_t id);
int sql_door_scan(sql_door *d, sql_door_each *each, void *ctx);
/* A value of a row of the view; SQLITE_INTERRUPT where the connection was interrupted. */
int sql_door_value(sql_door *d, uint64_t row, int col, st_value *out);
/* Opens the view: of what is committed in an export, of all rows in an import. */
int sql_door_look(sql_door *d);

/* Binds a value, which must stay until the statement is reset. */
int sql_bind_value(sqlite3_stmt *stmt, int at, const st_value *v);

/* -------------------------------------------------------------------- sql_door_file.c: files */

/* A file in the making: written under a name of its own beside path. */
typedef struct sql_out {
    sql_door *d;
    h5_io *io;
    char *path, *tmp;
    uint64_t at; /* written so far */
    uint8_t *buf;
    size_t n;
} sql_out;

/* replace: a regular file that is there, and is text, gives way when all is written; else it is an
 * error. */
int sql_out_open(sql_door *d, const char *path, int replace, sql_out *out);
int sql_out_put(sql_out *o, const void *p, size_t n);
int sql_out_text(sql_out *o, const char *s);
/* Synced and renamed when rc is SQLITE_OK, else removed. */
int sql_out_close(sql_out *o, int rc);

/* A text file read line by line. */
#define SQL_LINE_MAX ((size_t)1 << 30)
typedef struct sql_in {
    sql_door *d;
    h5_io *io;
    uint64_t at, size; /* read so far, of */
    char *buf;
    size_t n, room, pos;
} sql_in;

int sql_in_open(sql_door *d, const char *path, sql_in *in);
/* *p: the next line without its newline, which may be changed in place, up to the next call; NULL
 * at the end. Counts in d->line. */
int sql_in_line(sql_in *in, char **p, size_t *n);
void sql_in_close(sql_in *in);
/* All of a file; *p by sqlite3_malloc. modified: when it last was, NULL allowed. */
int sql_in_load(sql_door *d, const char *path, size_t most, char **p, size_t *n, double *modified);

/* ---------------------------------------------------------------------------------- the formats */

typedef int sql_door_fn(sql_door *d, const char *path);
sql_door_fn sql_export_store, sql_import_store; /* sql_import.c: 'h5mem' */
sql_door_fn sql_md_export, sql_md_import;       /* sql_door_md_out.c, sql_door_md.c: 'markdown' */
/* The rows of a daily log (sql_md_has_rows), counted in *rows, up to sql_door_link; changes s. */
int sql_md_rows(sql_door *d, char *s, size_t n, sqlite3_int64 *rows);
sql_door_fn sql_claw_export, sql_claw_import; /* sql_door_claw_out.c, sql_door_claw.c: 'clawhdf5' */
sql_door_fn sql_vec0_import, sql_fts5_import; /* sql_door_peers.c: of the table d->source */
sql_door_fn sql_jsonl_export, sql_jsonl_import; /* sql_door_jsonl.c */

#endif
