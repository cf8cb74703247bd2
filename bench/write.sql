-- Writing: one row a transaction and many, at each durability, host in WAL mode. A row is a text of 131 bytes and 384
-- floats. Beside each: syncs of the store a transaction, as h5mem_stats counts them (the host's own are not in it).
-- Batches leave their rows in the log, the `folded` ones fold it every time.
--! subsystem write

--! repeat off,18~us~(no~sync) normal,18~us~(no~sync) full,18~us~(no~sync)
--! row save_1_$1 per 1 rows
--! answers clawhdf5: Single save, $2
--! setup
PRAGMA journal_mode = wal;
PRAGMA synchronous = $1;
CREATE TEMP TABLE IF NOT EXISTS source AS
  WITH RECURSIVE s(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM s WHERE i < 4999)
  SELECT i, bench_chars(i, 131) AS content, bench_demo(i, 384) AS embedding FROM s;
CREATE UNIQUE INDEX IF NOT EXISTS temp.source_i ON source(i);
CREATE TEMP TABLE IF NOT EXISTS before(name PRIMARY KEY, syncs);
CREATE VIRTUAL TABLE s_$1 USING h5mem('s_$1.h5', dim=384, synchronous=$1);
INSERT INTO before SELECT 's_$1', json_extract(h5mem_stats('s_$1'), '$.syncs');
--! timed 1000
INSERT INTO s_$1(content, embedding, timestamp, session)
  SELECT content, embedding, :run, 's-1' FROM source WHERE i = :run % 5000;
--! check
SELECT count(*) >= :runs AND count(embedding) = count(*) AND min(length(content)) = 131 FROM s_$1;
SELECT count(*) = 0 FROM s_$1 AS o JOIN source AS s ON s.i = o.timestamp % 5000
 WHERE o.content IS NOT s.content OR o.embedding IS NOT s.embedding;
--! facts
SELECT round((json_extract(h5mem_stats('s_$1'), '$.syncs') - syncs) * 1.0 / (SELECT count(*) FROM s_$1), 3)
       AS syncs_each FROM before WHERE name = 's_$1';
--! end

--! row save_1_at_1k per 1 rows
--! answers clawhdf5: WAL save (1K existing), 539 us
--! setup
PRAGMA synchronous = normal;
CREATE VIRTUAL TABLE kept USING h5mem('kept.h5', dim=384);
INSERT INTO kept(content, embedding, timestamp, session) SELECT content, embedding, i, 's-1' FROM source LIMIT 1000;
SELECT h5mem_flush('kept');
--! timed 500
INSERT INTO kept(content, embedding, timestamp, session)
  SELECT content, embedding, :run, 's-1' FROM source WHERE i = :run % 5000;
--! check
SELECT count(*) >= 1000 + :runs FROM kept;
SELECT count(*) = 0 FROM kept AS o JOIN source AS s ON s.i = o.timestamp % 5000
 WHERE o.content IS NOT s.content OR o.embedding IS NOT s.embedding;

--! row save_1_folded per 1 rows
--! answers clawhdf5: Single save (no WAL), 61 us: every row is in the HDF5 file at once, no sync
--! setup
PRAGMA synchronous = off;
CREATE VIRTUAL TABLE n USING h5mem('n.h5', dim=384, synchronous=off);
--! warm 5
--! timed 100
INSERT INTO n(content, embedding, timestamp, session)
  SELECT content, embedding, :run, 's-1' FROM source WHERE i = :run % 5000;
SELECT h5mem_flush('n');
--! check
SELECT count(*) >= :runs FROM n;
SELECT count(*) = 0 FROM n AS o JOIN source AS s ON s.i = o.timestamp % 5000
 WHERE o.content IS NOT s.content OR o.embedding IS NOT s.embedding;
SELECT json_extract(h5mem_stats('n'), '$.log_rows') = 0;
--! facts
SELECT bench_file_bytes('n.h5') / (SELECT count(*) FROM n) AS bytes_a_row;

--! repeat 100,723~us,100 1000,6.17~ms,40
--! row batch_$1 per $1 rows
--! answers clawhdf5: Batch $1, $2, no sync
--! setup
PRAGMA synchronous = off;
CREATE VIRTUAL TABLE b$1 USING h5mem('b$1.h5', dim=384, synchronous=off, autoflush=1000000000);
--! timed $3
INSERT INTO b$1(content, embedding, timestamp, session)
  SELECT content, embedding, i, 's-1' FROM source WHERE i < $1;
--! check
SELECT count(*) % $1 = 0 AND count(*) >= $1 * :runs FROM b$1;
SELECT count(*) = 0 FROM b$1 AS o JOIN source AS s ON s.i = o.timestamp
 WHERE o.content IS NOT s.content OR o.embedding IS NOT s.embedding;

--! row batch_$1_folded per $1 rows
--! answers clawhdf5: Batch $1, $2: what it writes is the HDF5 file
--! setup
CREATE VIRTUAL TABLE bf$1 USING h5mem('bf$1.h5', dim=384, synchronous=off);
--! warm 2
--! timed $3
INSERT INTO bf$1(content, embedding, timestamp, session)
  SELECT content, embedding, i, 's-1' FROM source WHERE i < $1;
SELECT h5mem_flush('bf$1');
--! check
SELECT count(*) % $1 = 0 AND count(*) >= $1 * :runs FROM bf$1;
SELECT count(*) = 0 FROM bf$1 AS o JOIN source AS s ON s.i = o.timestamp
 WHERE o.content IS NOT s.content OR o.embedding IS NOT s.embedding;
SELECT json_extract(h5mem_stats('bf$1'), '$.log_rows') = 0;

--! row batch_$1_full per $1 rows
--! answers clawhdf5: no row: it never syncs
--! setup
PRAGMA synchronous = full;
CREATE VIRTUAL TABLE bs$1 USING h5mem('bs$1.h5', dim=384, synchronous=full, autoflush=1000000000);
INSERT INTO before SELECT 'bs$1', json_extract(h5mem_stats('bs$1'), '$.syncs');
--! timed $3
INSERT INTO bs$1(content, embedding, timestamp, session)
  SELECT content, embedding, i, 's-1' FROM source WHERE i < $1;
--! check
SELECT count(*) % $1 = 0 AND count(*) >= $1 * :runs FROM bs$1;
SELECT count(*) = 0 FROM bs$1 AS o JOIN source AS s ON s.i = o.timestamp
 WHERE o.content IS NOT s.content OR o.embedding IS NOT s.embedding;
--! facts
SELECT round((json_extract(h5mem_stats('bs$1'), '$.syncs') - syncs) * $1.0 / (SELECT count(*) FROM bs$1), 3)
       AS syncs_each FROM before WHERE name = 'bs$1';
--! end
