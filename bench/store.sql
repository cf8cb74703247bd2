-- The store's own costs: an empty one, flushes of 100 rows (384 floats, 200 characters) on top of 1,000 and of
-- 100,000 stored rows, filling by 2,000 rows a transaction, and opening 100,000 rows.
--! subsystem store

--! row flush_100_at_1k per 100 rows
--! from normal
--! answers clawhdf5: WAL flush 100, 787 us: it writes the whole file anew, 100 rows
--! setup
CREATE TEMP TABLE flushed(at TEXT, before INTEGER, after INTEGER);
CREATE TEMP TABLE sizes(what TEXT, bytes INTEGER);
CREATE VIRTUAL TABLE e USING h5mem('empty.h5', dim=384);
INSERT INTO sizes SELECT 'empty', bench_file_bytes('empty.h5') + bench_file_bytes('empty.h5-wal');
INSERT INTO e(content, embedding, session, timestamp)
  WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 100)
  SELECT substr(bench_words(i, 64), 1, 200), bench_vec(i, 384), 's-' || (i / 50), i FROM s;
SELECT h5mem_flush('e');
INSERT INTO sizes SELECT '100 rows', bench_file_bytes('empty.h5');
CREATE VIRTUAL TABLE m USING h5mem('m.h5', dim=384);
INSERT INTO m(content, embedding, session, timestamp)
  WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 1000)
  SELECT substr(bench_words(i, 64), 1, 200), bench_vec(i, 384), 's-' || (i / 50), i FROM s;
SELECT h5mem_flush('m');
--! each
INSERT INTO m(content, embedding, session, timestamp)
  WITH RECURSIVE s(i) AS (SELECT 1001 + 100 * :run UNION ALL SELECT i + 1 FROM s WHERE i < 1100 + 100 * :run)
  SELECT substr(bench_words(i, 64), 1, 200), bench_vec(i, 384), 's-' || (i / 50), i FROM s;
INSERT INTO flushed SELECT '1k', bench_file_bytes('m.h5'), NULL;
--! timed 10
SELECT h5mem_flush('m');
--! after
UPDATE flushed SET after = bench_file_bytes('m.h5') WHERE after IS NULL;
--! check
SELECT bytes < 65536 FROM sizes WHERE what = 'empty';
SELECT bytes < 320 * 1024 FROM sizes WHERE what = '100 rows';
SELECT count(*) = 2000 FROM m;
SELECT count(*) = 10 AND min(after - before) > 0 AND avg(after - before) <= 4 * 173600 + 65536
   AND max(after - before) <= 4 * 1048576 FROM flushed WHERE at = '1k';

--! row fill_2000_a_transaction per 2000 rows
--! from normal
--! answers clawhdf5: 110,000 rows/s without any index
--! warm 0
--! timed 49
INSERT INTO m(content, embedding, session, timestamp)
  WITH RECURSIVE s(i) AS (SELECT 2001 + 2000 * :run UNION ALL SELECT i + 1 FROM s WHERE i < 4000 + 2000 * :run)
  SELECT substr(bench_words(i, 64), 1, 200), bench_vec(i, 384), 's-' || (i / 50), i FROM s;
--! check
SELECT count(*) = 100000 FROM m;

--! row flush_100_at_100k per 100 rows
--! from normal
--! answers clawhdf5: no row; a save rewrites all (session tick 10K, 89.8 ms)
--! setup
SELECT h5mem_flush('m');
--! each
INSERT INTO m(content, embedding, session, timestamp)
  WITH RECURSIVE s(i) AS (SELECT 100001 + 100 * :run UNION ALL SELECT i + 1 FROM s WHERE i < 100100 + 100 * :run)
  SELECT substr(bench_words(i, 64), 1, 200), bench_vec(i, 384), 's-' || (i / 50), i FROM s;
INSERT INTO flushed SELECT '100k', bench_file_bytes('m.h5'), NULL;
--! timed 10
SELECT h5mem_flush('m');
--! after
UPDATE flushed SET after = bench_file_bytes('m.h5') WHERE after IS NULL;
--! versus flush_100_at_1k 2
--! check
SELECT count(*) = 101000 FROM m;
SELECT count(*) = 10 AND min(after - before) > 0 AND avg(after - before) <= 4 * 173600 + 65536
   AND max(after - before) <= 4 * 1048576 FROM flushed WHERE at = '100k';
SELECT (SELECT avg(after - before) FROM flushed WHERE at = '100k') <=
       2 * (SELECT avg(after - before) FROM flushed WHERE at = '1k');

--! row open_100k per 1 opens
--! from normal
--! answers clawhdf5: no row: all is read into memory first
--! target 20
--! open 50
SELECT id, content FROM m LIMIT 1;
--! check
SELECT count(*) = 1 FROM (SELECT id FROM m LIMIT 1);
