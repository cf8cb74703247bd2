-- Rows by when they happened: ranges, pages in order of time, and filling with times out of order.
--! subsystem time

--! row range_10k per 3333 rows
--! answers clawhdf5: Range 10K, 716 ns: 3,333 ids copied, no SQL
--! setup
CREATE VIRTUAL TABLE t USING h5mem('t.h5', dim=2);
INSERT INTO t(content, timestamp)
  WITH RECURSIVE s(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM s WHERE i < 9999)
  SELECT 'a turn', 10.0 * (i * 7 % 10000) FROM s;
SELECT h5mem_flush('t');
CREATE TEMP TABLE plain AS SELECT id, timestamp FROM t;
--! bind :from int 33330 33330
--! bind :to int 66650 66650
--! timed 500
SELECT count(*), sum(id) FROM t WHERE timestamp BETWEEN :from AND :to;
--! same 0
--! truth 1 1
SELECT count(*), sum(id) FROM plain WHERE timestamp BETWEEN :from AND :to;

--! row range_10k_c per 3333 rows
--! answers clawhdf5: Range 10K, 716 ns; from C, by looking at every time
--! bind :from int 33330 33330
--! bind :to int 66650 66650
--! times 10
--! core range 200
--! load
SELECT id, timestamp FROM t ORDER BY id;
--! same 0
--! truth 1 1
SELECT count(*), sum(id) FROM plain WHERE timestamp BETWEEN :from AND :to;

--! row window_10k_c per 1 windows
--! answers clawhdf5: Range 10K without the copy of ids: where a window begins and ends
--! setup
CREATE VIRTUAL TABLE w USING h5mem('w.h5', dim=2);
INSERT INTO w(id, content, timestamp)
  WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 10000) SELECT i, 'a turn', i FROM s;
SELECT h5mem_flush('w');
CREATE TEMP TABLE plain_w AS SELECT id, timestamp FROM w;
CREATE VIRTUAL TABLE least USING bench_floor;
--! bind :from int 1 9000
--! bind :to int 1 9999
--! times 1000
--! target 0.0001
--! core window 300
--! load
SELECT id, timestamp FROM w ORDER BY timestamp;
--! same 0
--! truth 20 1
SELECT count(*), coalesce(sum(id), 0) FROM plain_w WHERE timestamp BETWEEN :from AND :to;

--! row window_10k_nothing per 1 windows
--! answers the row below of a table that does nothing: SQLite's own part
--! bind :from int 1 9990
--! times 100
--! timed 300
SELECT id FROM least WHERE timestamp BETWEEN :from AND :from;
--! same 0
--! truth 20 1
SELECT id FROM plain_w WHERE timestamp BETWEEN :from AND :from;

--! row window_10k per 1 windows
--! answers no row: a window of one, through SQL
--! bind :from int 1 9990
--! times 100
--! timed 300
SELECT id FROM w WHERE timestamp BETWEEN :from AND :from;
--! same 0
--! truth 20 1
SELECT id FROM plain_w WHERE timestamp BETWEEN :from AND :from;

--! row latest_10_at_10k per 1 queries
--! answers no row: the last ten
--! times 100
--! timed 300
SELECT id FROM w ORDER BY timestamp DESC LIMIT 10;
--! check
SELECT group_concat(id) = '10000,9999,9998,9997,9996,9995,9994,9993,9992,9991'
  FROM (SELECT id FROM w ORDER BY timestamp DESC LIMIT 10);

--! row latest_10_at_100k per 1 queries
--! answers no row: the last ten of ten times as many
--! setup
INSERT INTO w(id, content, timestamp)
  WITH RECURSIVE s(i) AS (SELECT 10001 UNION ALL SELECT i + 1 FROM s WHERE i < 100000) SELECT i, 'a turn', i FROM s;
SELECT h5mem_flush('w');
--! times 100
--! versus latest_10_at_10k 1.3
--! timed 300
SELECT id FROM w ORDER BY timestamp DESC LIMIT 10;
--! check
SELECT group_concat(id) = '100000,99999,99998,99997,99996,99995,99994,99993,99992,99991'
  FROM (SELECT id FROM w ORDER BY timestamp DESC LIMIT 10);

--! row page_of_10_at_100k per 1 queries
--! answers no row: ten from a time on
--! from normal
--! setup
CREATE VIRTUAL TABLE big USING h5mem('big.h5', dim=2);
INSERT INTO big(content, timestamp)
  WITH RECURSIVE s(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM s WHERE i < 99999)
  SELECT 'a turn', 10.0 * (i * 7 % 100000) FROM s;
SELECT h5mem_flush('big');
CREATE TEMP TABLE plain_big AS SELECT id, timestamp FROM big;
--! bind :from int 0 900000
--! timed 300
SELECT id, timestamp FROM big WHERE timestamp >= :from ORDER BY timestamp LIMIT 10;
--! same 0
--! truth 20 1
SELECT id, timestamp FROM plain_big WHERE timestamp >= :from ORDER BY timestamp LIMIT 10;

--! row range_100k per 33330 rows
--! answers clawhdf5: Range at 100K is not published
--! from normal
--! bind :from int 333300 333300
--! bind :to int 666590 666590
--! timed 100
SELECT count(*), sum(id) FROM big WHERE timestamp BETWEEN :from AND :to;
--! same 0
--! truth 1 1
SELECT count(*), sum(id) FROM plain_big WHERE timestamp BETWEEN :from AND :to;

--! row insert_10k_times per 10000 rows
--! answers clawhdf5: Batch insert 10K, 4.69 ms: pairs into a list in memory
--! setup
CREATE TEMP TABLE source AS
  WITH RECURSIVE s(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM s WHERE i < 9999)
  SELECT i, 10.0 * (i * 7 % 10000) AS at FROM s;
--! each
DROP TABLE IF EXISTS b;
SELECT bench_remove('b.h5'), bench_remove('b.h5-wal');
CREATE VIRTUAL TABLE b USING h5mem('b.h5', dim=2);
--! timed 15
INSERT INTO b(timestamp) SELECT at FROM source;
--! check
SELECT count(*) = 10000 AND sum(timestamp) = (SELECT sum(at) FROM source) FROM b;
SELECT count(*) = 3333 FROM b WHERE timestamp BETWEEN 33330 AND 66650;
