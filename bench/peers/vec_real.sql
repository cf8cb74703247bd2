-- Exact top-10 of 1,000, 10,000 and 100,000 x 384 beside sqlite-vec, real embeddings, distinct queries.
--! subsystem vec
--! needs vec0 real

--! row exact_top10_vec0_real_1k
--! setup
CREATE VIRTUAL TABLE real_1k USING h5mem('real_1k.h5', dim=384);
INSERT INTO real_1k(id, embedding, timestamp)
  WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 1000)
  SELECT i, bench_real(i, 384), i FROM s;
SELECT h5mem_flush('real_1k');
CREATE VIRTUAL TABLE peer_real_1k USING vec0(emb float[384] distance_metric=cosine);
INSERT INTO peer_real_1k(rowid, emb) SELECT id, embedding FROM real_1k;
--! bind :q real 384
--! same 1e-5
--! overlap 0.999
--! target 30
--! ours 1000
SELECT id, distance FROM real_1k WHERE embedding MATCH :q AND k = 10 AND exact = 1;
--! peer
SELECT rowid, distance FROM peer_real_1k WHERE emb MATCH :q AND k = 10;

--! row exact_top10_vec0_real_10k
--! setup
CREATE VIRTUAL TABLE real_10k USING h5mem('real_10k.h5', dim=384);
INSERT INTO real_10k(id, embedding, timestamp)
  WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 10000)
  SELECT i, bench_real(i, 384), i FROM s;
SELECT h5mem_flush('real_10k');
CREATE VIRTUAL TABLE peer_real_10k USING vec0(emb float[384] distance_metric=cosine);
INSERT INTO peer_real_10k(rowid, emb) SELECT id, embedding FROM real_10k;
--! bind :q real 384
--! same 1e-5
--! overlap 0.999
--! target 50
--! ours 1000
SELECT id, distance FROM real_10k WHERE embedding MATCH :q AND k = 10 AND exact = 1;
--! peer
SELECT rowid, distance FROM peer_real_10k WHERE emb MATCH :q AND k = 10;

--! row exact_top10_vec0_real_100k
--! setup
CREATE VIRTUAL TABLE real_100k USING h5mem('real_100k.h5', dim=384);
INSERT INTO real_100k(id, embedding, timestamp)
  WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 100000)
  SELECT i, bench_real(i, 384), i FROM s;
SELECT h5mem_flush('real_100k');
CREATE VIRTUAL TABLE peer_real_100k USING vec0(emb float[384] distance_metric=cosine);
INSERT INTO peer_real_100k(rowid, emb) SELECT id, embedding FROM real_100k;
--! bind :q real 384
--! same 1e-5
--! overlap 0.999
--! target 25
--! ours 200
SELECT id, distance FROM real_100k WHERE embedding MATCH :q AND k = 10 AND exact = 1;
--! peer
SELECT rowid, distance FROM peer_real_100k WHERE emb MATCH :q AND k = 10;
