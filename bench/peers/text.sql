-- BM25 top-10 over 10,000 turns beside FTS5: the same tokenizer, the same words, OR-ed, no stop list. The two idf
-- formulas differ (FTS5 cuts off at half of the turns), so answers overlap and are not equal; that ours are right is
-- checked in ../text.sql against the definition.
--! subsystem text

--! row bm25_top10_words_6
--! setup
CREATE VIRTUAL TABLE m USING h5mem('m.h5', dim=384);
INSERT INTO m(id, content, timestamp)
  WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 10000)
  SELECT i, bench_text(i), i FROM s;
SELECT h5mem_flush('m');
CREATE VIRTUAL TABLE f USING fts5(content, tokenize='porter unicode61 remove_diacritics 2');
INSERT INTO f(rowid, content) SELECT id, content FROM m;
INSERT INTO f(f) VALUES ('optimize');
--! bind :words words 6
--! bind :ors fts5 6
--! overlap 0.7
--! target 5
--! ours 500
SELECT id, score FROM m WHERE content MATCH :words ORDER BY score DESC LIMIT 10;
--! peer
SELECT rowid, -rank FROM f WHERE f MATCH :ors ORDER BY rank LIMIT 10;

--! row bm25_top10_words_3
--! bind :words words 3
--! bind :ors fts5 3
--! overlap 0.7
--! target 5
--! ours 500
SELECT id, score FROM m WHERE content MATCH :words ORDER BY score DESC LIMIT 10;
--! peer
SELECT rowid, -rank FROM f WHERE f MATCH :ors ORDER BY rank LIMIT 10;
