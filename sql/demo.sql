-- demo.sql - what h5mem does for an agent, in plain SQL
--
-- demo.sh runs the parts below one after the other, each in a shell of its own, with h5mem loaded,
-- in a fresh folder that holds a copy of sql/demo.h5. To play with it, from the project's root:
--
--     sqlite3
--     .load ./h5mem
--     CREATE VIRTUAL TABLE memory USING h5mem('agent.h5', dim=384);
--     SELECT h5mem_import('memory', 'sql/demo.h5', 'h5mem');
--
-- SPDX-License-Identifier: MIT

-- part: tour
.bail on
.mode box --wordwrap on --wrap 76
.once /dev/null
PRAGMA journal_mode = wal;
.echo on

-- == One HDF5 file becomes a table ================================================

CREATE VIRTUAL TABLE memory USING h5mem('agent.h5', dim=384);
SELECT h5mem_import('memory', 'demo.h5', 'h5mem') AS "rows imported";

-- There is no embedding model here, so the vectors of the questions below came along in
-- the same file. They are no memories: move them into a table of their own.

CREATE TEMP TABLE question AS
    SELECT tags AS name, content AS text, embedding AS vector FROM memory WHERE channel = 'query';
DELETE FROM memory WHERE channel = 'query';

SELECT count(*) AS memories, count(DISTINCT session) AS sessions,
       date(min(timestamp), 'unixepoch') AS first, date(max(timestamp), 'unixepoch') AS last
  FROM memory;

-- == By meaning: no answer shares a word with its question ========================

SELECT count(*) AS "found by words" FROM memory
 WHERE content MATCH 'glare, feline illness, postponed vacation';

-- glare
SELECT id, round(distance, 3) AS distance, content FROM memory
 WHERE embedding MATCH (SELECT vector FROM question WHERE name = 'glare')
 ORDER BY distance LIMIT 3;

-- feline illness
SELECT id, round(distance, 3) AS distance, content FROM memory
 WHERE embedding MATCH (SELECT vector FROM question WHERE name = 'cat') AND k = 3;

-- postponed vacation
SELECT id, round(distance, 3) AS distance, content FROM memory
 WHERE embedding MATCH (SELECT vector FROM question WHERE name = 'holiday') AND k = 1;

-- == By words: any sentence is a valid query ======================================

SELECT id, round(score, 2) AS score, content FROM memory
 WHERE content MATCH 'did the roofer''s quote say 2,150? or was it 2,400?'
 ORDER BY score DESC LIMIT 3;

-- == By both: one ranking out of two ==============================================

-- What will the insurer pay for claim 44-1907?
SELECT round(score, 4) AS score, round(distance, 3) AS distance, round(rank, 2) AS rank,
       content FROM memory
 WHERE embedding MATCH (SELECT vector FROM question WHERE name = 'claim')
   AND content MATCH (SELECT text FROM question WHERE name = 'claim')
 ORDER BY score DESC LIMIT 8;

-- == By time: what held when? =====================================================

-- Which colour do I want for the study? In October:
SELECT datetime(timestamp, 'unixepoch') AS "when", content FROM memory
 WHERE embedding MATCH (SELECT vector FROM question WHERE name = 'colour')
   AND timestamp BETWEEN unixepoch('2026-10-01') AND unixepoch('2026-10-31')
 ORDER BY distance LIMIT 1;

-- And from November on:
SELECT datetime(timestamp, 'unixepoch') AS "when", content FROM memory
 WHERE embedding MATCH (SELECT vector FROM question WHERE name = 'colour')
   AND timestamp >= unixepoch('2026-11-01')
 ORDER BY distance LIMIT 1;

-- == A memory changes, another goes ===============================================

UPDATE memory
   SET content = (SELECT text FROM question WHERE name = 'changed'),
       embedding = (SELECT vector FROM question WHERE name = 'changed')
 WHERE source = 'correction' AND content LIKE 'I changed my mind about the study%';
DELETE FROM memory WHERE content LIKE 'Changed: the study gets warm white%';

-- The same question again:
SELECT datetime(timestamp, 'unixepoch') AS "when", content FROM memory
 WHERE embedding MATCH (SELECT vector FROM question WHERE name = 'colour')
   AND timestamp >= unixepoch('2026-11-01')
 ORDER BY distance LIMIT 1;
SELECT count(*) AS "left of warm white" FROM memory WHERE content LIKE '%warm white%';

-- == A savepoint, rolled back =====================================================

BEGIN;
SAVEPOINT guess;
DELETE FROM memory WHERE session = 's-01';
SELECT count(*) AS "s-01 inside the savepoint" FROM memory WHERE session = 's-01';
ROLLBACK TO guess;
SELECT count(*) AS "s-01 after the rollback" FROM memory WHERE session = 's-01';
COMMIT;

-- == A flush: everything into the HDF5 file =======================================

SELECT h5mem_flush('memory') AS "rows flushed";
SELECT key, value FROM json_each(h5mem_stats('memory'));

-- part: writer
.bail on
.mode box --wordwrap on --wrap 76
.echo on
.output writer.txt

-- == A second program writes, and is killed in the middle of it ===================

-- This is committed. It is in the log only: nothing flushes it.
INSERT INTO memory(content, session, source)
VALUES ('The allergy test is booked for Thursday 3 December at ten.', 's-40', 'user');

.echo off
.mode quote
.output committed.txt
SELECT id, content, hex(embedding), timestamp, session, source FROM memory ORDER BY id;
.mode box --wordwrap on --wrap 76
.output more.txt
.echo on
-- This is not committed when the kill comes.
BEGIN;
INSERT INTO memory(content, session, source)
VALUES ('Let''s paint the study bright orange.', 's-41', 'user'),
       ('And the ceiling too.', 's-41', 'user');
DELETE FROM memory WHERE session = 's-01';
SELECT sum(session = 's-01') AS "s-01", sum(session = 's-40') AS "s-40",
       sum(session = 's-41') AS "s-41", count(*) AS "rows as the writer sees them" FROM memory;
.output
.system kill -9 $PPID
COMMIT;

-- part: after
.bail on
.mode box --wordwrap on --wrap 76
.echo on

-- == Opened again =================================================================

SELECT sum(session = 's-01') AS "s-01", sum(session = 's-40') AS "s-40",
       sum(session = 's-41') AS "s-41", count(*) AS "rows after the kill" FROM memory;
SELECT content FROM memory WHERE content MATCH 'when''s the allergy test?' LIMIT 1;

.echo off
.mode quote
.output found.txt
SELECT id, content, hex(embedding), timestamp, session, source FROM memory ORDER BY id;
