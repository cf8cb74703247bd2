/*
 * sql_h5_scan.c - boxes of a dataset, and walking through them with bounded memory.
 *
 * Idea: of the box, as many of the last dimensions as fit are read whole, one dimension is cut into
 * blocks, and those before it go index by index. The first block is small, so that a LIMIT costs
 * little; later ones grow, end where chunks end, and are made large enough for a row of chunks
 * where that fits, so that no chunk is decoded more often than need be.
 *
 * SPDX-License-Identifier: MIT
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "sql_h5.h"

enum { AHEAD_MIN = 64 << 10, AHEAD_MAX = 4 << 20 }; /* bytes of a block, as it grows */

/* ---------------------------------------------------------------------------------------- boxes */

void sql_h5_box_all(const h5_dataset_info *d, sql_h5_box *out)
{
    memset(out, 0, sizeof *out);
    for (int i = 0; i < d->rank; i++) {
        out->count[i] = d->dims[i];
        out->stride[i] = 1;
    }
}

/* The members of a JSON array of whole numbers and nulls; -1 where it is none, or the number of
 * members. */
static int scan_list(const char *p, uint64_t *out, uint8_t *given)
{
    int n = 0;
    p += strspn(p, " \t\r\n");
    if (*p++ != '[') {
        return -1;
    }
    for (;;) {
        p += strspn(p, " \t\r\n");
        if (*p == ']' && n == 0) {
            break;
        }
        if (n == H5_RANK_MAX) {
            return -1;
        }
        given[n] = *p >= '0' && *p <= '9';
        out[n] = 0;
        if (!given[n] && strncmp(p, "null", 4) == 0) {
            p += 4;
        } else if (!given[n]) {
            return -1;
        }
        for (; *p >= '0' && *p <= '9'; p++) {
            if (out[n] > (uint64_t)INT64_MAX / 10 - 1) {
                return -1;
            }
            out[n] = out[n] * 10 + (uint64_t)(*p - '0');
        }
        n++;
        p += strspn(p, " \t\r\n");
        if (*p != ',') {
            break;
        }
        p++;
    }
    if (*p++ != ']') {
        return -1;
    }
    return p[strspn(p, " \t\r\n")] == 0 ? n : -1;
}

int sql_h5_box_list(sql_h5 *h, const char *what, sqlite3_value *v, int rank, uint64_t *out)
{
    char show[SQL_SHOW];
    uint64_t list[H5_RANK_MAX] = {0};
    uint8_t given[H5_RANK_MAX] = {1};
    int n = -1;
    int type = v ? sqlite3_value_type(v) : SQLITE_NULL;
    if (type == SQLITE_NULL) {
        return SQLITE_OK;
    }
    if (type == SQLITE_INTEGER && sqlite3_value_int64(v) >= 0) {
        list[0] = (uint64_t)sqlite3_value_int64(v);
        n = 1;
    } else if (type == SQLITE_TEXT) {
        const char *text = (const char *)sqlite3_value_text(v);
        n = text ? scan_list(text, list, given) : -1;
    }
    if (n != rank) {
        return sql_h5_fail(
            h, SQLITE_ERROR, "%s is %s; it takes a JSON array of %d whole number%s%s", what,
            sql_show(v, show), rank, rank == 1 ? "" : "s", rank == 1 ? ", or the number" : "");
    }
    for (int i = 0; i < n; i++) {
        out[i] = given[i] ? list[i] : out[i];
    }
    return SQLITE_OK;
}

int sql_h5_box_parse(sql_h5 *h, const h5_dataset_info *d, sqlite3_value *start,
                     sqlite3_value *count, sqlite3_value *stride, sql_h5_box *out)
{
    sql_h5_box_all(d, out);
    int rc = sql_h5_box_list(h, "start", start, d->rank, out->start);
    if (rc == SQLITE_OK) {
        rc = sql_h5_box_list(h, "stride", stride, d->rank, out->stride);
    }
    for (int i = 0; i < d->rank && rc == SQLITE_OK; i++) {
        if (out->stride[i] == 0) {
            rc = sql_h5_fail(h, SQLITE_ERROR, "stride is 0 in dimension %d", i);
        } else if (out->start[i] > d->dims[i]) {
            rc = sql_h5_fail(h, SQLITE_ERROR, "start is %llu in dimension %d of size %llu",
                             (unsigned long long)out->start[i], i, (unsigned long long)d->dims[i]);
        } else { // as many as there are
            uint64_t left = d->dims[i] - out->start[i];
            out->count[i] = left ? (left - 1) / out->stride[i] + 1 : 0;
        }
    }
    sql_h5_box most = *out;
    if (rc == SQLITE_OK) {
        rc = sql_h5_box_list(h, "count", count, d->rank, out->count);
    }
    for (int i = 0; i < d->rank && rc == SQLITE_OK; i++) {
        if (out->count[i] > most.count[i]) {
            rc = sql_h5_fail(h, SQLITE_ERROR,
                             "count is %llu in dimension %d, where %llu are left of %llu",
                             (unsigned long long)out->count[i], i,
                             (unsigned long long)most.count[i], (unsigned long long)d->dims[i]);
        }
    }
    return rc;
}

/* ---------------------------------------------------------------------------------------- walks */

uint64_t sql_h5_scan_index(const sql_h5_scan *s, int i)
{
    return s->box.start[i] + s->at[i] * s->box.stride[i];
}

/* Elements from the first to the last of n indices along dimension i. */
static uint64_t span(const sql_h5_scan *s, int i, uint64_t n)
{
    return n ? (n - 1) * s->box.stride[i] + 1 : 0;
}

// Saturates: what is too large for a block is all the same.
static uint64_t times(uint64_t a, uint64_t b)
{
    return b && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

static int is_chunked(const sql_h5_scan *s)
{
    return s->info->layout == H5_LAYOUT_CHUNKED;
}

/* The dimension that is cut, and in *inner the bytes under one of its indices. */
static int choose_cut(const sql_h5_scan *s, uint64_t *inner)
{
    int cut = s->lead - 1, top = 0;
    for (int i = 0; i < s->lead; i++) {
        top = s->at[i] ? i : top; // a block begins where all after its cut is at the start
    }
    *inner = s->item_bytes;
    while (cut > top) {
        uint64_t whole = times(*inner, span(s, cut, s->box.count[cut]));
        uint64_t chunks = is_chunked(s) && s->ahead > AHEAD_MIN && s->info->chunk[cut - 1] > 1
                              ? times(whole, s->info->chunk[cut - 1])
                              : UINT64_MAX;
        if (whole > s->ahead && chunks > SQL_H5_ROW_MAX) {
            break;
        }
        *inner = whole;
        cut--;
    }
    return cut;
}

/* How many of the indices from at[cut] on one block takes. */
static uint64_t choose_n(const sql_h5_scan *s, int cut, uint64_t inner)
{
    uint64_t left = s->box.count[cut] - s->at[cut];
    uint64_t places = inner < s->ahead ? s->ahead / inner : 1;
    if (is_chunked(s)) {
        uint64_t chunk = s->info->chunk[cut];
        uint64_t to_end = chunk - sql_h5_scan_index(s, cut) % chunk;
        if (places >= to_end) {
            places = to_end + (places - to_end) / chunk * chunk;
        } else if (s->ahead > AHEAD_MIN && times(to_end, inner) <= SQL_H5_ROW_MAX) {
            places = to_end;
        }
    }
    uint64_t n = (places - 1) / s->box.stride[cut] + 1;
    return n < left ? n : left;
}

/* Reads the block that begins at s->at. */
static int load(sql_h5 *h, sql_h5_scan *s)
{
    uint64_t start[H5_RANK_MAX], count[H5_RANK_MAX], inner = 0, bytes = s->item_bytes;
    h5_error err;
    int cut = s->lead ? choose_cut(s, &inner) : -1;
    for (int i = s->info->rank - 1; i >= s->lead; i--) {
        start[i] = s->box.start[i];
        count[i] = s->box.count[i];
    }
    for (int i = s->lead - 1; i >= 0; i--) {
        s->lo[i] = s->at[i];
        s->hi[i] = i < cut ? s->at[i] + 1 : i > cut ? s->box.count[i] : 0;
        if (i == cut) {
            s->hi[i] = s->at[i] + choose_n(s, cut, inner);
        }
        s->step[i] = bytes;
        start[i] = sql_h5_scan_index(s, i);
        count[i] = span(s, i, s->hi[i] - s->lo[i]);
        bytes *= count[i]; // choose_cut and choose_n keep it small
    }
    if (bytes > s->room) {
        h5_free(s->buf);
        s->buf = h5_malloc((size_t)bytes);
        s->room = s->buf ? bytes : 0;
        if (!s->buf) {
            return SQLITE_NOMEM;
        }
    }
    s->ahead = s->ahead < AHEAD_MAX ? 4 * s->ahead : s->ahead;
    h5_error_clear(&err);
    if (h5_dataset_read_values(h->heaps, s->object, start, count, s->buf, (size_t)bytes, &err) !=
        H5_OK) {
        return sql_h5_fail_core(h, &err);
    }
    return SQLITE_OK;
}

static int settle(sql_h5 *h, sql_h5_scan *s)
{
    int inside = s->buf != NULL;
    uint64_t offset = 0;
    for (int i = 0; i < s->lead; i++) {
        inside &= s->at[i] >= s->lo[i] && s->at[i] < s->hi[i];
    }
    if (!inside) {
        int rc = load(h, s);
        if (rc != SQLITE_OK) {
            s->done = 1;
            return rc;
        }
    }
    for (int i = 0; i < s->lead; i++) {
        offset += (s->at[i] - s->lo[i]) * s->box.stride[i] * s->step[i];
    }
    s->item = s->buf + offset;
    return SQLITE_OK;
}

int sql_h5_scan_open(sql_h5 *h, const h5_object *o, const sql_h5_box *box, int lead,
                     sql_h5_scan *out)
{
    const h5_dataset_info *d = h5_object_dataset(o);
    *out = (sql_h5_scan){.done = 1};
    if (!d) {
        return sql_h5_fail(h, SQLITE_ERROR, "it is no dataset");
    }
    assert(lead >= 0 && lead <= d->rank);
    *out = (sql_h5_scan){.object = o, .info = d, .box = *box, .lead = lead, .ahead = AHEAD_MIN};
    out->item_bytes = d->type.size;
    out->done = d->space == H5_SPACE_NULL;
    for (int i = 0; i < d->rank; i++) {
        out->done |= out->box.count[i] == 0;
    }
    for (int i = lead; i < d->rank; i++) {
        assert(box->stride[i] == 1);
        out->item_bytes = times(out->item_bytes, box->count[i]);
    }
    if (out->done) {
        return SQLITE_OK;
    }
    if (out->item_bytes == 0 || out->item_bytes > SQL_H5_ROW_MAX) {
        out->done = 1;
        return sql_h5_fail(h, SQLITE_TOOBIG, "a row of %llu bytes, the limit is %u",
                           (unsigned long long)out->item_bytes, SQL_H5_ROW_MAX);
    }
    return settle(h, out);
}

int sql_h5_scan_next(sql_h5 *h, sql_h5_scan *s)
{
    for (int i = s->lead - 1; i >= 0; i--) {
        if (++s->at[i] < s->box.count[i]) {
            return settle(h, s);
        }
        s->at[i] = 0;
    }
    s->done = 1;
    return SQLITE_OK;
}

void sql_h5_scan_close(sql_h5_scan *s)
{
    h5_free(s->buf);
    *s = (sql_h5_scan){.done = 1};
}
