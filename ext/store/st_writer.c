/*
 * st_writer.c - the writer lock: one connection of this process, and of all processes.
 *
 * SPDX-License-Identifier: MIT
 */
#include <time.h>

#include "st_store.h"

enum { POLL_MS = 2, POLL_MAX_MS = 20 };

static int wait_in_process(st_store *s, st_conn *c, int64_t until, st_error *err)
{
    int rc = ST_OK;
    pthread_mutex_lock(&s->lock);
    while (s->writer && s->writer != c && !rc) {
        int64_t left = until ? until - st_now_ms() : 0;
        struct timespec t;
        if (left <= 0) {
            rc = st_fail(err, ST_BUSY, "another connection of this process is writing");
            break;
        }
        clock_gettime(CLOCK_MONOTONIC, &t);
        t.tv_sec += left / 1000;
        t.tv_nsec += left % 1000 * 1000000;
        if (t.tv_nsec >= 1000000000) {
            t.tv_sec++;
            t.tv_nsec -= 1000000000;
        }
        pthread_cond_timedwait(&s->writer_free, &s->lock, &t);
    }
    if (!rc) {
        s->writer = c;
    }
    pthread_mutex_unlock(&s->lock);
    return rc;
}

int st_writer_lock(st_store *s, st_conn *c, int timeout_ms, st_error *err)
{
    int64_t until = timeout_ms > 0 ? st_now_ms() + timeout_ms : 0; // 0: no waiting
    int got, pause = POLL_MS;
    if (st_inherited(s)) {
        return st_fail(err, ST_MISUSE,
                       "it was opened before this process was forked; open the database anew here");
    }
    ST_TRY(wait_in_process(s, c, until, err));
    while ((got = st_lock(s->log_fd, ST_LOCK_WRITER, ST_LOCK_EXCLUSIVE, err)) == 0) {
        int64_t left = until ? until - st_now_ms() : 0;
        if (left <= 0) {
            st_fail(err, ST_BUSY, "another process is writing");
            break;
        }
        st_sleep_ms((int)ST_MIN((int64_t)pause, left));
        pause = ST_MIN(pause * 2, POLL_MAX_MS);
    }
    if (got <= 0) {
        pthread_mutex_lock(&s->lock);
        s->writer = NULL;
        pthread_cond_broadcast(&s->writer_free);
        pthread_mutex_unlock(&s->lock);
        return got < 0 ? ST_IO : ST_BUSY;
    }
    return ST_OK;
}

void st_writer_unlock(st_store *s, st_conn *c)
{
    if (st_inherited(s)) {
        return; // the lock is the parent's
    }
    pthread_mutex_lock(&s->lock);
    if (s->writer == c) {
        st_lock(s->log_fd, ST_LOCK_WRITER, ST_LOCK_FREE, NULL);
        s->writer = NULL;
        pthread_cond_broadcast(&s->writer_free);
    }
    pthread_mutex_unlock(&s->lock);
}
