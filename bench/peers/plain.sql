-- The same questions to a plain SQLite table with the indexes that one would give it: by id, by time, and a vector
-- search that computes every distance (the peer's function is h5mem_distance, so that only the table differs).
--! subsystem plain

--! row plain_get_by_id
--! setup
CREATE VIRTUAL TABLE m USING h5mem('m.h5', dim=384);
INSERT INTO m(id, content, embedding, timestamp, session)
  WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 10000)
  SELECT i, bench_chars(i, 200), bench_demo(i, 384), 10.0 * (i * 7 % 10000), 's-' || (i / 50) FROM s;
SELECT h5mem_flush('m');
CREATE TABLE p(id INTEGER PRIMARY KEY, content TEXT, embedding BLOB, timestamp REAL, session TEXT);
INSERT INTO p SELECT id, content, embedding, timestamp, session FROM m;
CREATE INDEX p_timestamp ON p(timestamp);
CREATE INDEX p_session ON p(session);
--! bind :id int 1 10000
--! same 0
--! overlap 1
--! ours 2000
SELECT id, timestamp, content FROM m WHERE id = :id;
--! peer
SELECT id, timestamp, content FROM p WHERE id = :id;

--! row plain_range_third
--! same 0
--! overlap 1
--! ours 300
SELECT count(*), sum(id) FROM m WHERE timestamp BETWEEN 33330 AND 66650;
--! peer
SELECT count(*), sum(id) FROM p WHERE timestamp BETWEEN 33330 AND 66650;

--! row plain_page_by_time
--! bind :from int 0 90000
--! same 0
--! overlap 1
--! ours 500
SELECT id, timestamp, content FROM m WHERE timestamp >= :from ORDER BY timestamp LIMIT 10;
--! peer
SELECT id, timestamp, content FROM p WHERE timestamp >= :from ORDER BY timestamp LIMIT 10;

--! row plain_session
--! bind :session int 0 199
--! same 0
--! overlap 1
--! ours 500
SELECT id, timestamp, content FROM m WHERE session = 's-' || :session ORDER BY id;
--! peer
SELECT id, timestamp, content FROM p WHERE session = 's-' || :session ORDER BY id;

--! row plain_top10_of_10k
--! bind :q demo 384
--! same 1e-5
--! overlap 0.999
--! ours 60
SELECT id, distance FROM m WHERE embedding MATCH :q AND k = 10 AND exact = 1;
--! peer
SELECT id, h5mem_distance(embedding, :q) AS distance FROM p ORDER BY distance LIMIT 10;

--! row plain_count
--! ours 500
SELECT count(*) FROM m;
--! peer
SELECT count(*) FROM p;
