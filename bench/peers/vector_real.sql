-- Exact top-10 beside the quantised scan of sqlite-vector, real embeddings; `ids in common` is its recall.
--! subsystem vec
--! needs vector real

--! row exact_top10_vector_real_10k
--! setup
CREATE VIRTUAL TABLE real_10k USING h5mem('real_10k.h5', dim=384);
INSERT INTO real_10k(id, embedding, timestamp)
  WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 10000)
  SELECT i, bench_real(i, 384), i FROM s;
SELECT h5mem_flush('real_10k');
CREATE TABLE peer_real_10k(id INTEGER PRIMARY KEY, emb BLOB);
INSERT INTO peer_real_10k SELECT id, embedding FROM real_10k;
SELECT vector_init('peer_real_10k', 'emb', 'type=FLOAT32,dimension=384,distance=COSINE');
SELECT vector_quantize('peer_real_10k', 'emb');
SELECT vector_quantize_preload('peer_real_10k', 'emb');
--! bind :q real 384
--! overlap 0.9
--! target 4
--! ours 1000
SELECT id, distance FROM real_10k WHERE embedding MATCH :q AND k = 10 AND exact = 1;
--! peer
SELECT rowid, distance FROM vector_quantize_scan('peer_real_10k', 'emb', :q, 10);

--! row exact_top10_vector_real_100k
--! setup
CREATE VIRTUAL TABLE real_100k USING h5mem('real_100k.h5', dim=384);
INSERT INTO real_100k(id, embedding, timestamp)
  WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 100000)
  SELECT i, bench_real(i, 384), i FROM s;
SELECT h5mem_flush('real_100k');
CREATE TABLE peer_real_100k(id INTEGER PRIMARY KEY, emb BLOB);
INSERT INTO peer_real_100k SELECT id, embedding FROM real_100k;
SELECT vector_init('peer_real_100k', 'emb', 'type=FLOAT32,dimension=384,distance=COSINE');
SELECT vector_quantize('peer_real_100k', 'emb');
SELECT vector_quantize_preload('peer_real_100k', 'emb');
--! bind :q real 384
--! overlap 0.9
--! target 4
--! ours 200
SELECT id, distance FROM real_100k WHERE embedding MATCH :q AND k = 10 AND exact = 1;
--! peer
SELECT rowid, distance FROM vector_quantize_scan('peer_real_100k', 'emb', :q, 10);
