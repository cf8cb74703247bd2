/*
 * sql_claw.h - private header of sql_door_claw*.c: the HDF5 layout of clawhdf5, schema "1.0".
 *
 *     /meta             attributes schema_version "1.0", created_at, agent_id, embedder (strings),
 *                       embedding_dim, chunk_size, overlap (int64); dataset _marker
 *     /memory           chunks, source_channel, session_ids, tags: strings of fixed length, UTF-8
 *                       with NULs behind; embeddings f4 [rows, dim]; timestamps f8; tombstones
 *                       u1; norms and activation_weights f4
 *     /sessions         ids, channels, summaries: strings; start_idxs, end_idxs i8; timestamps f8
 *     /knowledge_graph  entity_ids, entity_emb_idxs, relation_srcs, relation_tgts i8; entity_names,
 *                       entity_types, relation_types: strings; relation_weights f4; relation_ts f8
 *     /h5mem            ours; other readers pass over it: columns that the layout has no place for
 *
 * It has no NULL: a text is then empty, an embedding all zeros.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SQL_CLAW_H
#define SQL_CLAW_H

#include "sql_door.h"

/* Where a column of the table is: kind 's' string, 'f' or 'i' and the bytes of a number. */
typedef struct sql_claw_column {
    const char *name;
    int col;
    char kind;
    int size;
} sql_claw_column;

/* Of /memory but embeddings, tombstones and norms, and of /h5mem. No name at the end. */
extern const sql_claw_column sql_claw_memory[], sql_claw_ours[];

/* What a number in /h5mem is where the row has NULL: NaN, or this. */
#define SQL_CLAW_NULL INT64_MIN

#endif
