/*
 * st_doubt.c - transactions between their two phases: what the log holds of them, and who says
 * which of them counts.
 *
 * Behind the committed length stand the frames of one transaction in doubt, or of several: the
 * first, and behind it those of later writers of the same host who saw that it had not been
 * committed. A "no" of the host is not always final. With a WAL host a writer can die after its
 * commit frame stands in the WAL and before the wal-index knows of it; as long as another
 * connection lives, everybody reads "no", and once all have died, recovery finds the frame and
 * makes it "yes". It becomes final when somebody else commits to that host, which writes over the
 * frame. So a writer that reads "no" leaves the older frames where they are and writes behind them,
 * abort frames for them first; these count when its own transaction does, which is when the host
 * has committed something else. Whichever way it goes, one number in the host decides: the newest
 * transaction whose id the state row has reached is committed, those behind it never were, and
 * those before it are void. The row has reached it when it holds that very id: after a power loss
 * the log may have kept an attempt that was written over since, or taken back, while the row is
 * further on.
 *
 * A transaction in which the table of its row was dropped counts when the row is gone from the host
 * file that its prepare frame names.
 *
 * With a rollback journal "no" is final for whoever holds the host's write lock: the journal of the
 * dead writer has been played back by then.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>

#include "st_store.h"

void st_doubt_free(st_doubt *d)
{
    h5_free(d->p);
    memset(d, 0, sizeof *d);
}

int st_doubt_read(st_store *s, const st_log_header *h, st_doubt *out, st_error *err)
{
    st_log_reader lr = {.log = s->log,
                        .at = h->committed_len,
                        .to = h->prepared_len,
                        .generation = h->generation,
                        .sum = h->committed_sum};
    uint64_t seq = h->last_seq;
    st_frame f;
    int rc;
    memset(out, 0, sizeof *out);
    while ((rc = st_log_next(&lr, &f, err)) > 0 && f.sequence > seq) {
        seq = f.sequence;
        if (f.type == ST_FRAME_PREPARE && f.n >= ST_PREPARE_BYTES) {
            rc = st_grow(&out->p, &out->cap, out->n + 1, sizeof *out->p, err);
            if (rc) {
                break;
            }
            st_prepare_frame *p = &out->p[out->n++];
            p->seq = f.sequence;
            p->first = f.transaction;
            p->end = lr.at;
            p->sum = lr.sum;
            memcpy(p->who.uuid, f.payload, 16);
            p->who.dev = st_get64(f.payload + 16);
            p->who.ino = st_get64(f.payload + 24);
            p->who.host = NULL;
            p->dropped = (st_get64(f.payload + 32) & ST_PREPARE_DROPPED) != 0;
            snprintf(p->host, sizeof p->host, "%.*s", (int)(f.n - ST_PREPARE_BYTES),
                     (const char *)f.payload + ST_PREPARE_BYTES);
        }
    }
    st_log_reader_end(&lr);
    if (rc < 0) {
        st_doubt_free(out);
        return rc;
    }
    return ST_OK;
}

/* -------------------------------------------------------------------------------------- readers */

int st_doubt_reader(st_store *s, const st_log_header *h, const st_host *host,
                    st_prepare_frame *found, st_error *err)
{
    st_doubt d;
    int rc = 0;
    if (!host || !host->verdict) {
        return 0;
    }
    ST_TRY(st_doubt_read(s, h, &d, err));
    for (size_t i = d.n; i-- > 0 && !rc;) {
        int64_t txid = 0;
        st_error e = {0, ""};
        int got = host->verdict(host->ctx, d.p[i].who.uuid, &txid, NULL, &e);
        if (got && got != ST_NOTFOUND) {
            rc = st_fail(err, got, "%s", e.text);
        } else if (d.p[i].dropped ? got && host->is_file &&
                                        host->is_file(host->ctx, d.p[i].who.dev, d.p[i].who.ino)
                                  : !got && txid >= 0 && (uint64_t)txid == d.p[i].seq) {
            *found = d.p[i];
            rc = 1;
        }
    }
    st_doubt_free(&d);
    return rc;
}

/* -------------------------------------------------------------------------------------- writers */

static int same_file(const st_identity *a, const st_identity *b)
{
    return a->dev == b->dev && a->ino == b->ino;
}

/* May the host file that is about to write, and is locked for it, decide about a prepared
** transaction? The very file that the prepare frame names may. So may one that holds the state row
** itself, since files are moved; but not while the named one stands where it was: then this is a
** copy of it, whose row is old, unless the store has been copied with it (it has another inode than
** its log says). */
static int decides(const st_store *s, const st_log_header *h, const st_identity *who,
                   const st_prepare_frame *p)
{
    st_file_id id;
    if (!who || same_file(who, &p->who)) {
        return who != NULL;
    }
    if (memcmp(who->uuid, p->who.uuid, sizeof who->uuid) != 0) {
        return 0;
    }
    return (st_id_of_fd(s->h5_fd, &id) == ST_OK && id.ino != h->ino) ||
           st_id_of_path(p->host, &id) != 1 || id.dev != p->who.dev || id.ino != p->who.ino;
}

/* What the state row says about one prepared transaction. In the very host that it names, a row
** that is not there never came to be, or went with DROP TABLE, which settles what counted; and
** where the transaction itself held the DROP, its being gone is the yes. */
static int ask_host(st_store *s, const st_log_header *h, const st_host *host,
                    const st_identity *who, const st_prepare_frame *p, int *yes, int *firm,
                    st_error *err)
{
    st_error e = {0, ""};
    int64_t txid = 0;
    int rc = host && host->verdict && decides(s, h, who, p)
                 ? host->verdict(host->ctx, p->who.uuid, &txid, firm, &e)
                 : ST_NOTFOUND;
    *yes = p->dropped ? rc == ST_NOTFOUND && who && same_file(who, &p->who)
                      : rc == ST_OK && txid >= 0 && (uint64_t)txid == p->seq;
    if (rc == ST_OK || (rc == ST_NOTFOUND && who && same_file(who, &p->who))) {
        return ST_OK;
    }
    return rc != ST_NOTFOUND
               ? st_fail(err, rc, "%s", e.text)
               : st_fail(err, ST_DOUBT,
                         "its last transaction is between two phases and belongs to the "
                         "database '%s': write through that one first, or decide by "
                         "h5mem_config(table, 'resolve', 'commit' or 'abort')",
                         p->host);
}

/* Commits up to the end of a prepared transaction. */
static void take(st_store *s, st_log_header *h, const st_prepare_frame *p)
{
    h->committed_len = p->end;
    h->last_seq = p->seq;
    h->committed_sum = p->sum;
    if (p->who.dev || p->who.ino) {
        memcpy(h->owner, p->who.uuid, sizeof h->owner);
        h->owner_seq = p->seq;
    }
    h->prepared_len = h->prepared_seq = 0;
    h->flags = 0;
    st_log_store(s->page, h);
}

int st_doubt_settle(st_store *s, st_log_header *h, const st_host *host, const st_identity *who,
                    st_error *err)
{
    st_doubt d;
    int yes = 0, firm = 1, rc = ST_OK;
    if (h->flags & ST_LOG_SELF) {
        const st_prepare_frame self = {
            .seq = h->prepared_seq, .end = h->prepared_len, .sum = h->prepared_sum};
        take(s, h, &self);
        return ST_OK;
    }
    ST_TRY(st_doubt_read(s, h, &d, err));
    for (size_t i = d.n; i-- > 0 && !yes && !rc;) {
        rc = ask_host(s, h, host, who, &d.p[i], &yes, &firm, err);
        if (!rc && yes) {
            take(s, h, &d.p[i]);
        }
    }
    if (!rc && !yes) {
        if (firm || !d.n) {
            h->prepared_len = h->prepared_seq = 0;
            h->flags = 0;
        } else {
            h->prepared_len = d.p[d.n - 1].end;
            h->prepared_seq = d.p[d.n - 1].seq;
            h->prepared_sum = d.p[d.n - 1].sum;
        }
        st_log_store(s->page, h);
    }
    st_doubt_free(&d);
    return rc;
}

int st_doubt_decree(st_store *s, st_log_header *h, int yes, st_error *err)
{
    st_doubt d;
    ST_TRY(st_doubt_read(s, h, &d, err));
    if (yes && d.n) {
        take(s, h, &d.p[d.n - 1]);
    } else {
        h->prepared_len = h->prepared_seq = 0;
        h->flags = 0;
        st_log_store(s->page, h);
    }
    st_doubt_free(&d);
    return ST_OK;
}
