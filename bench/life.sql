-- How rows age: a pass of consolidation with real promotions and evictions (half of the rows may stay; one in five is
-- promoted), in C and through SQL with its commit, out of the file, which a statement has read since it was flushed,
-- nothing synced; merging, importance, a touch, a tick.
--! subsystem life

--! row consolidate_100 per 100 rows
--! answers clawhdf5: Consolidation 100, 21 us: in memory, nothing promoted
--! setup
PRAGMA synchronous = off;
CREATE TABLE aged(tier TEXT, importance REAL, access_count INT, last_access REAL, timestamp REAL);
INSERT INTO aged WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 10000)
  SELECT 'working', round((i * 7919 % 1000) / 1334.0, 4), i * 31 % 3, NULL, 1.7e9 + i FROM s;
CREATE VIRTUAL TABLE a USING h5mem('a.h5', dim=8, synchronous=off, autoflush=1000000000, merge_distance=0, auto_importance=off,
  working_capacity=50, episodic_capacity=25);
--! each
DELETE FROM a;
INSERT INTO a(tier, importance, access_count, last_access, timestamp) SELECT * FROM aged LIMIT 100;
SELECT h5mem_flush('a');
SELECT count(*) FROM a WHERE importance > 2;
--! timed 50
SELECT h5mem_consolidate('a', 1.8e9);
--! check
SELECT count(*) = 70 AND sum(tier = 'episodic') = 20 FROM a;

--! row consolidate_1k_c per 1000 rows
--! answers clawhdf5: Consolidation 1000, 345 us, nothing promoted
--! target 0.15
--! core consolidate:500:250 200
--! load
SELECT tier, importance, access_count, last_access, timestamp FROM aged LIMIT 1000;
--! same 0
--! truth 1 1
SELECT sum(importance >= 0.6), sum(importance < 0.6) - 500 FROM (SELECT importance FROM aged LIMIT 1000);

--! row consolidate_1k per 1000 rows
--! answers the same through SQL, committed
--! target 0.45
--! setup
SELECT h5mem_config('a', 'working_capacity', 500), h5mem_config('a', 'episodic_capacity', 250);
--! each
DELETE FROM a;
INSERT INTO a(tier, importance, access_count, last_access, timestamp) SELECT * FROM aged LIMIT 1000;
SELECT h5mem_flush('a');
SELECT count(*) FROM a WHERE importance > 2;
--! timed 50
SELECT h5mem_consolidate('a', 1.8e9);
--! check
SELECT count(*) = 500 + sum(importance >= 0.6) AND sum(tier = 'episodic') = sum(importance >= 0.6) FROM a;

--! row consolidate_10k_c per 10000 rows
--! answers clawhdf5: Consolidation 10000, 17.3 ms, nothing promoted
--! target 2
--! core consolidate:5000:2500 200
--! load
SELECT tier, importance, access_count, last_access, timestamp FROM aged;
--! same 0
--! truth 1 1
SELECT sum(importance >= 0.6), sum(importance < 0.6) - 5000 FROM aged;

--! row consolidate_10k per 10000 rows
--! answers the same through SQL, committed
--! target 6
--! setup
SELECT h5mem_config('a', 'working_capacity', 5000), h5mem_config('a', 'episodic_capacity', 2500);
--! each
DELETE FROM a;
INSERT INTO a(tier, importance, access_count, last_access, timestamp) SELECT * FROM aged;
SELECT h5mem_flush('a');
SELECT count(*) FROM a WHERE importance > 2;
--! timed 20
SELECT h5mem_consolidate('a', 1.8e9);
--! check
SELECT count(*) = 5000 + sum(importance >= 0.6) AND sum(tier = 'episodic') = sum(importance >= 0.6) FROM a;

--! row tick_1k per 1000 rows
--! answers clawhdf5: Session tick 1K, 5.76 ms
--! setup
CREATE VIRTUAL TABLE t USING h5mem('t.h5', dim=384, synchronous=off, consolidate_after=1000000000000, working_capacity=1000000);
INSERT INTO t(content, embedding, timestamp) WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 1000)
  SELECT substr(bench_words(i, 64), 1, 200), bench_vec(i, 384), 1.7e9 + i FROM s;
SELECT h5mem_flush('t'), h5mem_tick('t', 1.7e9);
--! timed 100
SELECT h5mem_tick('t', 1.8e9 + :run);
--! bind :run int 0 1000000
--! check
SELECT max(activation) < 0.1 AND min(activation) > 0 FROM t;

--! row rewrite_10k per 10000 rows
--! answers what the tick below is held against: the file written anew
--! setup
INSERT INTO t(content, embedding, timestamp) WITH RECURSIVE s(i) AS (SELECT 1001 UNION ALL SELECT i + 1 FROM s WHERE i < 10000)
  SELECT substr(bench_words(i, 64), 1, 200), bench_vec(i, 384), 1.7e9 + i FROM s;
SELECT h5mem_flush('t');
--! warm 1
--! timed 5
SELECT h5mem_compact('t');
--! check
SELECT count(*) = 10000 FROM t;

--! row tick_10k per 10000 rows
--! answers clawhdf5: Session tick 10K, 89.8 ms
--! versus rewrite_10k 0.01
--! timed 100
SELECT h5mem_tick('t', 1.9e9 + :run);
--! bind :run int 0 1000000
--! check
SELECT max(activation) < 0.1 AND min(activation) > 0 FROM t;

--! row touch_at_10k per 1 rows
--! answers one access, committed
--! bind :id int 1 10000
--! timed 300
SELECT h5mem_touch('t', :id, 2e9);
--! check
SELECT access_count > 0 FROM t WHERE id = :id;

--! row importance_at_10k per 1 rows
--! answers clawhdf5: Importance scoring, 25 us, against 50 rows of one tier
--! target 0.06
--! setup
CREATE VIRTUAL TABLE lone USING h5mem('lone.h5', dim=384, synchronous=off);
--! bind :v vec 384
--! timed 300
SELECT h5mem_importance('t', 'The train to Oslo leaves on Friday at 7:30', :v, 'user');
--! check
DELETE FROM lone;
INSERT INTO lone(embedding) SELECT embedding FROM t ORDER BY bench_distance(embedding, :v, 'cosine') LIMIT 1;
SELECT abs(h5mem_importance('t', 'x', :v, NULL) - h5mem_importance('lone', 'x', :v, NULL)) < 1e-6;
SELECT h5mem_importance('t', 'x', embedding, NULL) < h5mem_importance('t', 'x', :v, NULL) + 1e-9 FROM t WHERE id = 77;

--! row top_1_at_10k per 100 queries
--! answers what merging is held against: the exact nearest row of a hundred
--! setup
CREATE TABLE asked AS WITH RECURSIVE s(i) AS (SELECT 20001 UNION ALL SELECT i + 1 FROM s WHERE i < 20100)
  SELECT bench_vec(i, 384) AS v FROM s;
--! timed 20
SELECT count((SELECT id FROM t WHERE embedding MATCH v AND k = 1 AND exact = 1)) FROM asked;
--! check
SELECT abs(h5mem_distance(v, (SELECT embedding FROM t WHERE embedding MATCH v AND k = 1 AND exact = 1)) -
           (SELECT min(bench_distance(embedding, v, 'cosine')) FROM t)) < 1e-6
  FROM asked WHERE rowid = 1 + :run * 7 % 100;

--! row merge_100_at_10k per 100 rows
--! answers a pass that rates and merges a hundred new rows among ten thousand; all else of the pass is in it
--! versus top_1_at_10k 1.5
--! setup
SELECT h5mem_consolidate('t', 2e9);
--! each
DELETE FROM t WHERE id > 10000;
INSERT INTO t(content, embedding, timestamp) SELECT 'new', v, 2e9 FROM asked;
--! timed 20
SELECT h5mem_consolidate('t', 2e9);
--! check
SELECT count(*) >= 9000 AND sum(importance = 0.5) = 0 FROM t;

--! row importance_at_10k_rairs per 1 rows
--! answers the same as importance_at_10k through lists, at the default recall
--! target 0.03
--! setup
SELECT h5mem_config('t', 'index', 'rairs');
SELECT h5mem_optimize('t');
--! bind :v vec 384
--! timed 300
SELECT h5mem_importance('t', 'The train to Oslo leaves on Friday at 7:30', :v, 'user');
--! check
SELECT h5mem_importance('t', 'x', embedding, NULL) < h5mem_importance('t', 'x', :v, NULL) + 1e-9 FROM t WHERE id = 77;
--! facts
SELECT json_extract(h5mem_stats('t'), '$.index_recall') AS recall, json_extract(h5mem_stats('t'), '$.index') AS "index";
