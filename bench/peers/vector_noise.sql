-- Exact top-10 beside the quantised scan of sqlite-vector, independent components; `ids in common` is its recall.
--! subsystem vec
--! needs vector

--! row exact_top10_vector_noise_10k
--! setup
CREATE VIRTUAL TABLE noise_10k USING h5mem('noise_10k.h5', dim=384);
INSERT INTO noise_10k(id, embedding, timestamp)
  WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 10000)
  SELECT i, bench_noise(i, 384), i FROM s;
SELECT h5mem_flush('noise_10k');
CREATE TABLE peer_noise_10k(id INTEGER PRIMARY KEY, emb BLOB);
INSERT INTO peer_noise_10k SELECT id, embedding FROM noise_10k;
SELECT vector_init('peer_noise_10k', 'emb', 'type=FLOAT32,dimension=384,distance=COSINE');
SELECT vector_quantize('peer_noise_10k', 'emb');
SELECT vector_quantize_preload('peer_noise_10k', 'emb');
--! bind :q noise 384
--! overlap 0.9
--! target 4
--! ours 1000
SELECT id, distance FROM noise_10k WHERE embedding MATCH :q AND k = 10 AND exact = 1;
--! peer
SELECT rowid, distance FROM vector_quantize_scan('peer_noise_10k', 'emb', :q, 10);

--! row exact_top10_vector_noise_100k
--! setup
CREATE VIRTUAL TABLE noise_100k USING h5mem('noise_100k.h5', dim=384);
INSERT INTO noise_100k(id, embedding, timestamp)
  WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 100000)
  SELECT i, bench_noise(i, 384), i FROM s;
SELECT h5mem_flush('noise_100k');
CREATE TABLE peer_noise_100k(id INTEGER PRIMARY KEY, emb BLOB);
INSERT INTO peer_noise_100k SELECT id, embedding FROM noise_100k;
SELECT vector_init('peer_noise_100k', 'emb', 'type=FLOAT32,dimension=384,distance=COSINE');
SELECT vector_quantize('peer_noise_100k', 'emb');
SELECT vector_quantize_preload('peer_noise_100k', 'emb');
--! bind :q noise 384
--! overlap 0.9
--! target 4
--! ours 200
SELECT id, distance FROM noise_100k WHERE embedding MATCH :q AND k = 10 AND exact = 1;
--! peer
SELECT rowid, distance FROM vector_quantize_scan('peer_noise_100k', 'emb', :q, 10);
