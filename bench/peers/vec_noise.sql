-- Exact top-10 of 1,000, 10,000 and 100,000 x 384 beside sqlite-vec, independent components, distinct queries.
--! subsystem vec
--! needs vec0

--! row exact_top10_vec0_noise_1k
--! setup
CREATE VIRTUAL TABLE noise_1k USING h5mem('noise_1k.h5', dim=384);
INSERT INTO noise_1k(id, embedding, timestamp)
  WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 1000)
  SELECT i, bench_noise(i, 384), i FROM s;
SELECT h5mem_flush('noise_1k');
CREATE VIRTUAL TABLE peer_noise_1k USING vec0(emb float[384] distance_metric=cosine);
INSERT INTO peer_noise_1k(rowid, emb) SELECT id, embedding FROM noise_1k;
--! bind :q noise 384
--! same 1e-5
--! overlap 0.999
--! target 30
--! ours 1000
SELECT id, distance FROM noise_1k WHERE embedding MATCH :q AND k = 10 AND exact = 1;
--! peer
SELECT rowid, distance FROM peer_noise_1k WHERE emb MATCH :q AND k = 10;

--! row exact_top10_vec0_noise_10k
--! setup
CREATE VIRTUAL TABLE noise_10k USING h5mem('noise_10k.h5', dim=384);
INSERT INTO noise_10k(id, embedding, timestamp)
  WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 10000)
  SELECT i, bench_noise(i, 384), i FROM s;
SELECT h5mem_flush('noise_10k');
CREATE VIRTUAL TABLE peer_noise_10k USING vec0(emb float[384] distance_metric=cosine);
INSERT INTO peer_noise_10k(rowid, emb) SELECT id, embedding FROM noise_10k;
--! bind :q noise 384
--! same 1e-5
--! overlap 0.999
--! target 50
--! ours 1000
SELECT id, distance FROM noise_10k WHERE embedding MATCH :q AND k = 10 AND exact = 1;
--! peer
SELECT rowid, distance FROM peer_noise_10k WHERE emb MATCH :q AND k = 10;

--! row exact_top10_vec0_noise_100k
--! setup
CREATE VIRTUAL TABLE noise_100k USING h5mem('noise_100k.h5', dim=384);
INSERT INTO noise_100k(id, embedding, timestamp)
  WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 100000)
  SELECT i, bench_noise(i, 384), i FROM s;
SELECT h5mem_flush('noise_100k');
CREATE VIRTUAL TABLE peer_noise_100k USING vec0(emb float[384] distance_metric=cosine);
INSERT INTO peer_noise_100k(rowid, emb) SELECT id, embedding FROM noise_100k;
--! bind :q noise 384
--! same 1e-5
--! overlap 0.999
--! target 25
--! ours 200
SELECT id, distance FROM noise_100k WHERE embedding MATCH :q AND k = 10 AND exact = 1;
--! peer
SELECT rowid, distance FROM peer_noise_100k WHERE emb MATCH :q AND k = 10;
