-- Bytes and filling: a store, both of its indexes with it, beside the same rows in a plain table with sqlite-vec for the
-- vectors and FTS5 for the words (which keeps no copy of the text). The peer's bytes are its database's pages.
--! subsystem footprint
--! needs vec0

--! repeat 1k,1000,5 10k,10000,3
--! row bytes_vec0_fts5_$1
--! warm 0
--! setup
CREATE TEMP TABLE IF NOT EXISTS source(i INTEGER PRIMARY KEY, content, embedding);
INSERT INTO source
  WITH RECURSIVE s(i) AS (SELECT 1 + (SELECT count(*) FROM source) UNION ALL SELECT i + 1 FROM s WHERE i < $2)
  SELECT i, bench_chars(i, 200), bench_demo(i, 384) FROM s WHERE (SELECT count(*) FROM source) < $2;
--! each
DROP TABLE IF EXISTS f;
DROP TABLE IF EXISTS p;
DROP TABLE IF EXISTS p_vec;
DROP TABLE IF EXISTS p_words;
SELECT bench_remove('f.h5'), bench_remove('f.h5-wal');
VACUUM;
CREATE VIRTUAL TABLE f USING h5mem('f.h5', dim=384);
CREATE TEMP TABLE IF NOT EXISTS pages(n);
DELETE FROM pages;
INSERT INTO pages SELECT page_count * page_size FROM pragma_page_count, pragma_page_size;
CREATE TABLE p(id INTEGER PRIMARY KEY, content TEXT, timestamp REAL, session TEXT, channel TEXT);
CREATE VIRTUAL TABLE p_vec USING vec0(embedding float[384] distance_metric=cosine);
CREATE VIRTUAL TABLE p_words USING fts5(content, content='', tokenize='porter unicode61 remove_diacritics 2');
--! ours $3
INSERT INTO f(id, content, embedding, timestamp, session, channel)
  SELECT i, content, embedding, 1000000, 'sess_' || (i / 50), 'channel-of-agent' FROM source;
SELECT h5mem_flush('f');
SELECT count(*) FROM f;
--! peer
INSERT INTO p SELECT i, content, 1000000, 'sess_' || (i / 50), 'channel-of-agent' FROM source;
INSERT INTO p_vec(rowid, embedding) SELECT i, embedding FROM source;
INSERT INTO p_words(rowid, content) SELECT i, content FROM source;
SELECT count(*) FROM p;
--! check
SELECT count(*) = $2 FROM p_vec;
SELECT count(*) = $2 FROM p_words;
--! facts
SELECT bench_file_bytes('f.h5') AS our_bytes,
       (SELECT page_count * page_size FROM pragma_page_count, pragma_page_size) - (SELECT n FROM pages) AS peer_bytes;
--! end
