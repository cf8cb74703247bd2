/*
 * sql_stats.c - h5mem_stats(t): what a store holds, as a JSON object.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "sql.h"

static void add(sqlite3_str *s, const char *name, uint64_t value)
{
    sqlite3_str_appendf(s, ",\"%s\":%llu", name, (unsigned long long)value);
}

// A JSON string; control characters as escapes.
static void add_text(sqlite3_str *s, const char *name, const char *text)
{
    sqlite3_str_appendf(s, ",\"%s\":\"", name);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') {
            sqlite3_str_appendf(s, "\\%c", *text);
        } else if ((unsigned char)*text < 0x20) {
            sqlite3_str_appendf(s, "\\u%04x", (unsigned char)*text);
        } else {
            sqlite3_str_appendchar(s, 1, *text);
        }
    }
    sqlite3_str_appendchar(s, 1, '"');
}

// Which of the two files lacks transactions that the other has, after a power loss at weak settings
// or a restore of one of them. host is the id in the table's state row.
static const char *behind(const st_stats *st, const uint8_t uuid[16], int64_t host)
{
    if (st->in_doubt || host < 0) {
        return NULL;
    }
    if ((uint64_t)host > st->sequence) {
        return "store";
    }
    return memcmp(st->log_owner, uuid, 16) == 0 && st->log_owner_seq > (uint64_t)host ? "host"
                                                                                      : NULL;
}

static void add_index(sqlite3_str *s, const st_stats *st)
{
    sqlite3_str_appendf(s, ",\"index\":\"%s\"", st->index);
    add(s, "index_bytes", st->index_bytes);
    if (st->index_fault[0]) {
        add_text(s, "index_fault", st->index_fault);
    }
    if (st->lists) {
        add(s, "index_lists", st->lists);
        add(s, "index_listed", st->listed);
        add(s, "index_tailed", st->tailed);
        sqlite3_str_appendf(s, ",\"index_stale\":%s", st->index_stale ? "true" : "false");
        add(s, "index_probes", st->probes);
        add(s, "index_queries", st->index_queries);
        sqlite3_str_appendf(s, ",\"index_recall\":%!.4f,\"index_looked\":%!.4f", st->index_recall,
                            st->index_looked);
    }
}

static char *stats_json(const st_stats *st, const uint8_t uuid[16], int64_t host)
{
    sqlite3_str *s = sqlite3_str_new(NULL);
    uint64_t dead = st->file_bytes > st->live_bytes ? st->file_bytes - st->live_bytes : 0;
    sqlite3_str_appendf(s, "{\"rows\":%llu", (unsigned long long)st->rows);
    add(s, "vectors", st->vectors);
    sqlite3_str_appendf(s, ",\"tiers\":{\"working\":%llu,\"episodic\":%llu,\"semantic\":%llu}",
                        (unsigned long long)st->tier[0], (unsigned long long)st->tier[1],
                        (unsigned long long)st->tier[2]);
    add(s, "evicted", st->evicted);
    add(s, "sessions", st->side[ST_SESSIONS]);
    add(s, "events", st->side[ST_EVENTS]);
    add(s, "base_rows", st->base_rows);
    add(s, "dead_rows", st->dead_rows);
    add(s, "log_rows", st->log_rows);
    add(s, "file_bytes", st->file_bytes);
    add(s, "log_bytes", st->log_bytes);
    add(s, "live_bytes", st->live_bytes);
    sqlite3_str_appendf(s, ",\"dead_share\":%!.4f",
                        st->file_bytes ? (double)dead / (double)st->file_bytes : 0.0);
    add(s, "column_bytes", st->column_bytes);
    add(s, "vector_bytes", st->vector_bytes);
    add(s, "side_bytes", st->side_bytes);
    add(s, "text_index_bytes", st->text_index_bytes);
    add(s, "id_index_bytes", st->id_index_bytes);
    add(s, "time_index_bytes", st->time_index_bytes);
    add(s, "text_runs", st->text_runs);
    add(s, "generation", st->generation);
    add(s, "sequence", st->sequence);
    add(s, "flushes", st->flushes);
    add(s, "last_flush_bytes", st->last_flush_bytes);
    add(s, "syncs", st->syncs);
    add(s, "touch_bytes", st->touch_bytes);
    add_index(s, st);
    sqlite3_str_appendf(s, ",\"in_doubt\":%s", st->in_doubt ? "true" : "false");
    const char *late = behind(st, uuid, host);
    sqlite3_str_appendf(s, ",\"host_transaction\":%lld", (long long)host);
    if (late) {
        add_text(s, "behind", late);
    } else {
        sqlite3_str_appendall(s, ",\"behind\":null");
    }
    if (st->flush_error[0]) {
        add_text(s, "flush_error", st->flush_error);
    } else {
        sqlite3_str_appendall(s, ",\"flush_error\":null");
    }
    sqlite3_str_appendchar(s, 1, '}');
    return sqlite3_str_finish(s);
}

void sql_stats_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    st_stats st;
    st_error err = {0};
    (void)argc;
    sql_table *t = sql_fn_table(ctx, argv[0]);
    if (!t) {
        return;
    }
    memset(&st, 0, sizeof st);
    if (st_conn_stats(t->store->conn, &st, &err) != ST_OK) {
        sql_fail_fn(ctx, sql_code(err.code), t->name, t->store->path, "%s", err.text);
        return;
    }
    int64_t host;
    if (sql_state_find(t->db->db, t->uuid, NULL, NULL, &host) != SQLITE_OK) {
        host = -1;
    }
    char *json = stats_json(&st, t->uuid, host);
    if (json) {
        sqlite3_result_text(ctx, json, -1, sqlite3_free);
    } else {
        sqlite3_result_error_nomem(ctx);
    }
}

void sql_optimize_fn(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    st_stats st;
    st_error err = {0};
    uint64_t rows = 0;
    (void)argc;
    sql_table *t = sql_fn_table(ctx, argv[0]);
    if (!t) {
        return;
    }
    int rc = sql_maintain(t, 0, st_optimize, &rows);
    if (rc != SQLITE_OK) {
        sql_fail_fn_table(ctx, t, rc);
        return;
    }
    memset(&st, 0, sizeof st);
    if (st_conn_stats(t->store->conn, &st, &err) != ST_OK) {
        sql_fail_fn(ctx, sql_code(err.code), t->name, t->store->path, "%s", err.text);
        return;
    }
    sqlite3_str *s = sqlite3_str_new(NULL);
    sqlite3_str_appendf(s, "{\"flushed\":%llu", (unsigned long long)rows);
    add(s, "text_runs", st.text_runs);
    add_index(s, &st);
    sqlite3_str_appendchar(s, 1, '}');
    char *json = sqlite3_str_finish(s);
    if (json) {
        sqlite3_result_text(ctx, json, -1, sqlite3_free);
    } else {
        sqlite3_result_error_nomem(ctx);
    }
}
