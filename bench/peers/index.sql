-- Indexing beside FTS5: rows of text put in, folded into the file, and found again; turns of LoCoMo, beyond them halves
-- of two turns (as in locomo.sql). Both keep the text as well, neither waits for the disk. All there is to pay is in the
-- time: here the flush, there the merges that FTS5 makes while rows come in.
--! subsystem text
--! needs data

--! row index_100k
--! setup
PRAGMA synchronous = off;
CREATE TEMP TABLE turn(n INTEGER PRIMARY KEY, text);
INSERT INTO turn(text)
  WITH raw AS (SELECT bench_data('locomo/conv-' || value || '.json') AS j FROM json_each('[26, 41, 43, 47, 49]'))
  SELECT json_extract(t.value, '$.speaker') || ': ' || json_extract(t.value, '$.text')
    FROM raw, json_each(j, '$.conversation') s, json_each(s.value) t WHERE s.type = 'array';
CREATE TEMP TABLE source(id INTEGER PRIMARY KEY, content);
INSERT INTO source
  WITH RECURSIVE counts AS (SELECT count(*) AS turns FROM turn),
                 s(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM s WHERE i < 99999)
  SELECT i + 1, iif(i < turns, a.text,
         substr(a.text, 1, length(a.text) / 2) || ' ' || substr(b.text, length(b.text) / 2))
    FROM s, counts JOIN turn a ON a.n = 1 + i % turns JOIN turn b ON b.n = 1 + (i * 7919 + i / turns) % turns;
--! warm 0
--! each
DROP TABLE IF EXISTS m;
DROP TABLE IF EXISTS f;
SELECT bench_remove('m.h5'), bench_remove('m.h5-wal');
CREATE VIRTUAL TABLE m USING h5mem('m.h5', dim=2, synchronous=off);
CREATE VIRTUAL TABLE f USING fts5(content, tokenize='porter unicode61 remove_diacritics 2');
--! target 1
--! ours 5
INSERT INTO m(id, content) SELECT id, content FROM source;
SELECT h5mem_flush('m');
SELECT count(*) FROM m;
--! peer
INSERT INTO f(rowid, content) SELECT id, content FROM source;
SELECT count(*) FROM f;
--! check
SELECT json_extract(h5mem_stats('m'), '$.log_rows') = 0;
SELECT (SELECT count(*) FROM m WHERE content MATCH 'painting') = (SELECT count(*) FROM f WHERE f MATCH 'painting');

--! row index_1000_more
--! setup
CREATE VIRTUAL TABLE mm USING h5mem('mm.h5', dim=2, synchronous=off, autoflush=4096);
CREATE VIRTUAL TABLE ff USING fts5(content, tokenize='porter unicode61 remove_diacritics 2');
--! warm 2
--! target 1
--! ours 97
INSERT INTO mm(content) SELECT content FROM source WHERE id > :run % 100 * 1000 AND id <= :run % 100 * 1000 + 1000;
SELECT 1;
--! peer
INSERT INTO ff(content) SELECT content FROM source WHERE id > :run % 100 * 1000 AND id <= :run % 100 * 1000 + 1000;
SELECT 1;
--! check
SELECT json_extract(h5mem_stats('mm'), '$.log_rows') = 0;
SELECT (SELECT count(*) FROM mm WHERE content MATCH 'painting') = (SELECT count(*) FROM ff WHERE ff MATCH 'painting');
