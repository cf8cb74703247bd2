/*
 * st_logwrite.c - frames into the log: by a system call, or into memory that is the file's.
 *
 * At synchronous=off, where nothing waits for the disk, a call that copies two kilobytes costs more
 * than the copy. So the start of the log is mapped, and frames are stored there. Readers find them
 * as if they had been written: the pages are the same.
 *
 * SPACE     a store into a page that the file system has no room for ends the process. So pages are
 *           only stored into when the file has them: a longer log is made so by writing zeros,
 *           which can fail, in steps that double up to STEP and end at what a flush leaves of the
 *           log. And only on file systems that write a page where it lies (st_maps_in_place). LARGE
 *           pieces that make the log longer are written by a call: zeros first would cost twice.
 * CUTTING   with the writer lock held nobody else cuts the log; its size is asked for when a
 *           transaction begins, and once more when it ends if there were statements in between.
 * FAILURE   what cannot be mapped or made longer is written by a call, and that says what is wrong.
 * THREADS   under the writer lock.
 *
 * SPDX-License-Identifier: MIT
 */
#include "st_store.h"

enum { WINDOW = 16 << 20, STEP = 256 << 10, PIECE = 64 << 10, LARGE = 32 << 10, PAGE = 4096 };

static int write_call(st_store *s, uint64_t at, const uint8_t *p, size_t n, st_error *err)
{
    h5_error io = {0};
    return s->log->write(s->log, at, p, n, &io) == H5_OK ? ST_OK
                                                         : st_from_h5(err, &io, "writing the log");
}

static int has_window(st_store *s)
{
    if (!s->window_asked) {
        s->window_asked = 1;
        if (!st_test_wrap_io && s->page_writable && st_maps_in_place(s->log_fd)) {
            st_map_page(s->log_fd, WINDOW, 1, &s->window, NULL);
        }
    }
    return s->window != NULL;
}

/* Makes the log at least `end` bytes long: 1 when it is. What a failure leaves others may need. */
static int lengthen(st_store *s, uint64_t end, uint64_t most)
{
    static const uint8_t zeros[PIECE];
    uint64_t from = s->log_bytes, to = from + ST_MIN(from, (uint64_t)STEP), at = from;
    h5_error io = {0};
    to = ST_MAX(ST_MIN(to, most), end);
    to = ST_MIN((to + PAGE - 1) / PAGE * PAGE, (uint64_t)WINDOW);
    while (at < to) {
        size_t n = (size_t)ST_MIN(to - at, (uint64_t)PIECE);
        if (s->log->write(s->log, at, zeros, n, &io) != H5_OK) {
            s->log->truncate(s->log, from, NULL);
            return 0;
        }
        at += n;
    }
    st_map_fill(s->window + from / PAGE * PAGE, (size_t)(to - from / PAGE * PAGE));
    s->log_bytes = to;
    return 1;
}

int st_log_write(st_store *s, uint64_t at, const uint8_t *p, size_t n, uint64_t keep, st_error *err)
{
    uint64_t end = at + n;
    int longer = end > s->log_bytes;
    if (!keep || end > WINDOW || s->log_bytes < ST_LOG_PAGE || !has_window(s) ||
        (longer && (n >= LARGE || !lengthen(s, end, keep + ST_LOG_PAGE)))) {
        ST_TRY(write_call(s, at, p, n, err));
        s->log_bytes = ST_MAX(s->log_bytes, end);
        return ST_OK;
    }
    memcpy(s->window + at, p, n);
    return ST_OK;
}

void st_log_look(st_store *s)
{
    st_file_id id;
    s->log_bytes = st_id_of_fd(s->log_fd, &id) == ST_OK ? id.size : 0;
}

void st_log_unmap(st_store *s)
{
    st_unmap_page(s->window, WINDOW);
}
