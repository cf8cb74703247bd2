/*
 * st_store.h - the open store of a process and a host connection's use of it, for the files of
 * ext/store only.
 *
 * LOCKS     st_store.lock guards the current generation and the writer's place; it is held for
 *           memory work, never while waiting for another process. The writer lock (st_store.writer
 *           in this process, ST_LOCK_WRITER among processes) is held from st_begin to the end of
 *           the transaction, and by a flush. Order: writer lock, then st_store.lock, then
 *           st_image.lock.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ST_STORE_H
#define ST_STORE_H

#include <pthread.h>

#include "st_gen.h"
#include "st_os.h"

typedef struct st_store {
    struct st_store *next; /* registry */
    int refs;              /* connections */
    char *path, *log_path;
    int key_log; /* 1: key is the log's identity, 0: that of the .h5 (no log) */
    st_file_id key;
    uint8_t uuid[16];
    st_schema *schema;
    int forks;        /* that this process had come through when it opened the store */
    int writable;     /* file and log can be written */
    int write_wanted; /* some connection was not opened read-only: the last close may flush */

    st_file *file;
    h5_io *log; /* NULL: no log beside the file */
    int log_fd, h5_fd;
    uint8_t *page; /* its mapped header */
    int page_writable;
    uint8_t *window; /* st_logwrite.c: its first bytes, mapped; NULL: written by calls */
    int window_asked;
    uint64_t log_bytes; /* its length, as this writer knows it; 0: not known */

    pthread_mutex_t lock;
    pthread_cond_t writer_free;
    st_conn *writer;
    st_conn *conns;
    st_gen *gen;      /* newest known */
    uint64_t counter; /* of the header that gen, seq and doubt were made from */
    uint64_t seq;     /* newest committed sequence in gen */
    int doubt;        /* that header names a prepared transaction */
    int64_t looked;   /* st_now_ms of the last look at the sizes of file and log */
    /* for the writer: the file as it was last found in order at its path; firm: a later write would
    ** show in its time; st_now_ms of the last look at that path and at the log's */
    st_file_id seen;
    int seen_firm;
    int64_t looked_path, looked_log;
    int foreign;  /* the file's superblock is none the log knows: somebody else changed the file */
    int gone;     /* while it was opened somebody removed it */
    int checked;  /* a writer has looked behind the committed length since the store was opened */
    int tail_cut; /* and has cut off what was there */

    uint64_t flushes, last_flush_bytes, syncs;
    int threads;        /* that training may use; atomic */
    uint64_t set_bytes; /* of frames that set small values; atomic */
    char flush_error[256];
} st_store;

/* ---------------------------------------------------------------------------------- transaction */

enum { ST_OP_PUT, ST_OP_KILL, ST_OP_EVICT, ST_OP_BURY, ST_OP_PATCH, ST_OP_CONFIG, ST_OP_SIDE };

/* One undoable step of a transaction. */
typedef struct st_op {
    int kind;
    int64_t id;
    /* PUT: the private slot; KILL, EVICT, BURY, PATCH: the version touched; SIDE: the record, of
    ** the table that id says */
    uint64_t ref;
    int had_entry;  /* PUT, KILL, EVICT, BURY: txn.by_id had an entry for id: */
    uint64_t entry; /* this one */
    uint64_t patch; /* PATCH: 1 + its patch; entry: 1 + the patch of ref before, or 0 */
} st_op;

/* txn.by_id: the row was deleted; or evicted by that op, which lies below this bit */
#define ST_ENTRY_GONE    UINT64_MAX
#define ST_ENTRY_EVICTED ((uint64_t)1 << 63)

typedef struct st_mark {
    int n;
    size_t nop;
} st_mark;

typedef struct st_config_change {
    char name[ST_NAME_MAX];
    char value[ST_OPTION_TEXT_MAX + 1];
} st_config_change;

typedef struct st_txn {
    int active;
    st_log_header head; /* the log's, which is this writer's while it holds the lock */
    st_identity who;
    char host[256];
    uint64_t version; /* changes with every op and undo: the view's cache compares it */
    int64_t next_id;

    st_slot **slot; /* private slots, in the order they were written */
    uint8_t *gone;  /* slot i was replaced, deleted or undone */
    size_t nslot, cap_slot, cap_gone;
    st_patch *patch;
    size_t npatch, cap_patch;
    st_config_change *config;
    size_t nconfig, cap_config;
    st_op *op;
    size_t nop, cap_op;
    st_mark *mark;
    size_t nmark, cap_mark;
    st_map by_id;           /* id -> private slot, ST_ENTRY_GONE or ST_ENTRY_EVICTED | op */
    st_map killed;          /* base and overlay refs that ended here -> 1 */
    st_map patched;         /* ref -> 1 + newest patch */
    st_side side[ST_SIDES]; /* records beside the rows; next: above what it has given */
    vec_text *text;         /* tokens of the first ntext private slots; NULL before st_txn_index */
    size_t ntext;

    /* where the frames go: behind what is committed, or behind what was prepared before and stays
    ** in doubt until this transaction is committed (held) */
    uint64_t base_len, base_seq;
    uint64_t start_seq; /* its own sequences are above: no attempt to commit has another's id */
    uint32_t base_sum;
    int held;

    st_logged *change; /* the frames of the last st_prepare: ref is the private slot or patch */
    size_t nchange, cap_change;
    uint64_t set_bytes;        /* of those that set small values */
    int dropped;               /* its state row goes with it */
    int prepared_self;         /* and the transaction counts without a verdict */
    int prepared;              /* frames and prepare are in the log; the header says so */
    uint64_t prepared_version; /* txn.version they were written at */
    uint64_t prepared_len, prepared_seq;
    uint32_t prepared_sum;
} st_txn;

/* st_sideview.c: a table beside the rows. */
typedef struct st_sideview st_sideview;
void st_sideview_free(st_sideview *s);
/* st_sidelog.c: the record that was there when the transaction began: 1 and *ref, 0, negative. */
int st_txn_side_outer(st_conn *c, int side, const st_key *key, uint64_t *ref, st_error *err);

/* What views of one snapshot share. */
typedef struct st_frozen {
    int refs;
    st_fade_rule fade; /* of activations */
    st_gen *gen;
    uint64_t seq, version;
    uint64_t nbase, nprivate, noverlay, nrow; /* rows: base, then private, then overlay */
    st_slot **slot;                           /* nprivate + noverlay */
    uint64_t *live;                           /* bitmap of nrow */
    uint64_t nlive;
    /* row -> pointer to its small values, where they are not those it was written with */
    st_map patched;
    struct st_turns *turns; /* st_turns.c: of the rows behind the base; made at first use */
    uint64_t *evicted;      /* bitmap of nrow; made at first use */
    uint8_t *by_time;       /* st_window.c: the rows behind the base in order of time, uint32 */
    int timed;              /* it is made; NULL: they are in that order */
    st_sideview *side[ST_SIDES]; /* made at first use */
} st_frozen;

struct st_conn {
    st_conn *next; /* of the store */
    /* what the host's state row with that uuid held when it was last asked: sequences start above
    */
    uint8_t floor_of[16];
    uint64_t floor;
    int floor_known;
    st_store *store;
    const st_host *host;
    int refs;
    int readonly;
    st_info info;
    st_gen *gen; /* snapshot; NULL before the first */
    uint64_t seq;
    int behind; /* the snapshot lacks what this connection has committed: no memory to take it in */
    int nviews;
    st_txn txn;
    st_slot *
        *garbage; /* private slots and patches of ended transactions that views may still show */
    size_t ngarbage, cap_garbage;
    st_num **garbage_small;
    size_t ngarbage_small, cap_garbage_small;
    st_frozen *frozen; /* of the last view */
    st_view *idle;     /* a closed view of it, to be opened again; NULL: none */
    void *rested;      /* the memory of a closed cursor; NULL: none */
    st_buf frames;     /* the last transaction's, for their memory */
};

struct st_view {
    st_conn *conn;
    st_frozen *f;
    st_reader reader;
};

/* st_store.c ----------------------------------------------------------------------------------- */

int st_store_make_log(
    st_store *s,
    st_error
        *err); /* a store opened without a log: makes one, or takes the one that has appeared */
int st_inherited(const st_store *s); /* 1: opened by the process that this one was forked from */
int st_store_sync_log(st_store *s, st_error *err);
int st_store_sync_file(st_store *s, st_error *err);

/* st_create.c: writes an empty store's bytes at io. */
int st_create_empty(h5_io *io, const st_schema *s, const st_options *o, const uint8_t uuid[16],
                    uint8_t superblock[H5_SUPERBLOCK_BYTES], st_error *err);
/* Checks what CREATE says against an existing store. */
int st_create_check(const st_store *s, const st_create *c, st_error *err);
/* Schema and options of a new store. */
int st_create_schema(const st_create *c, st_schema **schema, st_options *o, st_error *err);

/* st_snapshot.c -------------------------------------------------------------------------------- */

/* Brings conn's snapshot up to date, unless a view or a transaction holds it. */
int st_snapshot_refresh(st_conn *c, st_error *err);
/* The newest generation with all that is committed in it, for a flush; the caller gives the
** reference back. Needs a log. */
int st_snapshot_latest(st_store *s, st_gen **out, st_error *err);
/* The writer's look at the files, with the writer lock held: mends a torn flip, settles a
** transaction in doubt, cuts a bad tail. who: the host file that is about to write and is locked
** for it; NULL when none is. *h becomes the header; before, it is one that was loaded or stored
** once, or zeros. */
int st_snapshot_mend(st_store *s, const st_host *host, const st_identity *who, st_log_header *h,
                     st_error *err);
int st_header(st_store *s, st_log_header *h, st_error *err);

/* st_doubt.c ----------------------------------------------------------------------------------- */

/* A transaction between its two phases, as its prepare frame tells. */
typedef struct st_prepare_frame {
    uint64_t first, seq; /* sequences of its first frame and of the prepare frame, its id */
    uint64_t end;        /* offset behind it */
    uint32_t sum;        /* of the frames up to there */
    int dropped;         /* the state row was to go with it */
    st_identity who;     /* .host is NULL: */
    char host[256];
} st_prepare_frame;

typedef struct st_doubt {
    st_prepare_frame *p; /* in the order of the log */
    size_t n, cap;
} st_doubt;

/* All between the committed and the prepared length of h, up to the first frame that is not whole.
*/
int st_doubt_read(st_store *s, const st_log_header *h, st_doubt *out, st_error *err);
void st_doubt_free(st_doubt *d);
/* The transaction in doubt that counts for a reader with this host: 1 and which, 0, negative. */
int st_doubt_reader(st_store *s, const st_log_header *h, const st_host *host,
                    st_prepare_frame *found, st_error *err);
/* With the writer lock held: writes the verdict into the header. What the host says no to and may
** yet say yes to stays: h then still has a prepared length, and the writer writes behind it. */
int st_doubt_settle(st_store *s, st_log_header *h, const st_host *host, const st_identity *who,
                    st_error *err);

/* With the writer lock held: the last transaction in doubt counts, or none does, by decree. */
int st_doubt_decree(st_store *s, st_log_header *h, int yes, st_error *err);

/* st_logwrite.c, under the writer lock: bytes into the log. keep: what a flush leaves of it, where
** they may be stored into the mapped file; 0: by a call that tells what fails. */
int st_log_write(st_store *s, uint64_t at, const uint8_t *p, size_t n, uint64_t keep,
                 st_error *err);
void st_log_look(st_store *s); /* asks for the log's length */
void st_log_unmap(st_store *s);

/* st_writer.c: both are for one connection; ST_BUSY after timeout_ms */
int st_writer_lock(st_store *s, st_conn *c, int timeout_ms, st_error *err);
void st_writer_unlock(st_store *s, st_conn *c);

/* st_txn.c */
int st_txn_index(st_txn *t, st_error *err); /* has t->text hold the tokens of all private slots */
/* 1: op number i evicts the version that is still the newest of its id. */
int st_txn_evicts(const st_txn *t, size_t i);
/* The row with this id as the transaction sees it; ST_NOTFOUND, ST_MISUSE without a transaction. */
int st_txn_find(st_conn *c, int64_t id, uint64_t *ref, st_error *err);
/* Ends it: ST_OP_KILL or ST_OP_EVICT. */
int st_txn_end(st_conn *c, int kind, int64_t id, uint64_t ref, st_error *err);
/* Takes back all but the first nop ops. */
void st_txn_undo_to(st_conn *c, size_t nop);
/* The small values that this transaction sees at ref. */
int st_txn_smalls(st_conn *c, uint64_t ref, st_num *out, st_error *err);
/* The same, not copied and with the store's lock held; NULL for a row of the file that nobody
** changed. */
const st_num *st_txn_small(st_conn *c, uint64_t ref);
/* A heavy column of the version at ref. With the store's lock held: what it gives of a base row
** points into the generation's reader. */
int st_txn_heavy(st_conn *c, uint64_t ref, int col, st_value *out, st_error *err);
void st_txn_free(st_conn *c);        /* what a connection keeps for its next transaction */
void st_conn_sweep(st_conn *c);      /* frees garbage no view shows */
int st_conn_synchronous(st_conn *c); /* ST_SYNC_ */
void st_conn_options(st_conn *c,
                     st_options *out); /* committed, and what this transaction changed */

/* st_life.c */
void st_conn_life(st_conn *c, st_life *out); /* of a snapshot that is there */
int st_view_activation(st_view *v, uint64_t row, double *out, st_error *err);

/* st_view.c */
uint64_t st_frozen_ref(const st_frozen *f, uint64_t row);
/* The rows of the last view, and that view if it lies idle. */
void st_conn_drop_frozen(st_conn *c);
void st_frozen_unref(st_frozen *f);
int64_t st_frozen_id(st_view *v, uint64_t row);
/* Bitmap of the rows that were evicted and can be found. ST_MISUSE where the connection has written
** since the view was opened. */
int st_frozen_evicted(st_view *v, const uint64_t **bits, st_error *err);
/* Small values of a row that is no base row, or that has a patch; NULL: read the base. */
const st_num *st_frozen_small(const st_frozen *f, uint64_t row);

/* Has s->file be the file at the store's path, where a compact has put another. h names it by its
 * superblock; ST_IO when a stranger has replaced or removed it. With s->lock held. */
int st_store_follow_path(st_store *s, const st_log_header *h, st_error *err);
/* The path with something behind it; h5_free. NULL without memory. */
char *st_store_suffix(const char *path, const char *suffix);
int st_store_open_io(const char *path, int flags, h5_io **io, int *fd, st_error *err);

/* st_compact.c, with the writer lock held: the folded store into a new file, renamed into place. */
int st_compact_locked(st_store *s, uint64_t *saved, st_error *err);
/* What a compact that died left behind: finishes it, or takes it away. */
int st_compact_mend(st_store *s, st_error *err);
/* st_stats.c: share of the file that no root reaches. */
int st_dead_share(st_store *s, double *share, st_error *err);

/* st_flush.c: with the writer lock held and nothing in doubt. */
int st_flush_locked(st_store *s, uint64_t *rows, st_error *err);

/* Test hook: wraps every io that the store opens. NULL normally. */
extern h5_io *(*st_test_wrap_io)(h5_io *inner, const char *path);

#endif
