/*
 * t_disk.h - all files that ext/store opens, on a disk that fails, fills up, or loses its power
 *
 * t_disk_on puts a layer under the store (st_test_wrap_io). Operations (read, write, sync,
 * truncate) of all files are counted together, from 1. The mapped pages are not: a store into the
 * log's header is no operation.
 *
 *     t_disk_on();
 *     t_disk.fail_at = k; t_disk.mode = T_DISK_FAIL;   open, work, ...
 *     t_disk_off();                                    when every store is closed
 *
 * `moment` is called before and after every operation that changes a file, and half-way through a
 * write: whatever the files hold then is what a process that dies leaves. t_disk_crash gives what a
 * disk might hold after losing its power at that moment instead.
 *
 * THREADS  one thread at a time.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef T_DISK_H
#define T_DISK_H

#include "t_store.h"

enum {
    T_DISK_FAIL,  /* operation fail_at fails with EIO and does nothing */
    T_DISK_SHORT, /* it does half of its bytes first */
    T_DISK_FULL,  /* writes from fail_at on do half of their bytes and fail with ENOSPC */
    T_DISK_DEAD   /* nothing works from fail_at on */
};

typedef struct t_disk_state {
    long count;
    long fail_at; /* 0: none */
    int mode;
    uint64_t room; /* bytes that a file can have: a write behind them does what fits, and fails with
                      ENOSPC; 0: no limit */
    void (*moment)(void *ctx); /* may be NULL */
    void *ctx;
} t_disk_state;

extern t_disk_state t_disk;

void t_disk_on(void);
void t_disk_off(void);
/* One of the files that the disk could hold for path (open at the moment): the bytes as of the last
** sync, and of what was written since some sectors, by chance; the mapped page likewise. NULL when
** it is not open. The caller frees it with free(). */
unsigned char *t_disk_crash(const char *path, t_rng *r, size_t *n);

#endif
