-- Exact top-10 over 10,000 x 384 through SQL, beside sqlite-vec: the same vectors, the same queries, both metrics;
-- the peer once in the host's file (default page cache) and once in memory, where it is faster.
--! subsystem vec
--! needs vec0

--! row top10_cosine_peer_in_file
--! setup
CREATE VIRTUAL TABLE c USING h5mem('c.h5', dim=384);
INSERT INTO c(id, embedding, timestamp)
  WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 10000)
  SELECT i, bench_vec(i, 384), i FROM s;
SELECT h5mem_flush('c');
CREATE VIRTUAL TABLE l USING h5mem('l.h5', dim=384, metric=l2);
INSERT INTO l(id, embedding, timestamp) SELECT id, embedding, timestamp FROM c;
SELECT h5mem_flush('l');
ATTACH ':memory:' AS ram;
CREATE VIRTUAL TABLE main.peer_c USING vec0(emb float[384] distance_metric=cosine);
CREATE VIRTUAL TABLE main.peer_l USING vec0(emb float[384] distance_metric=l2);
CREATE VIRTUAL TABLE ram.ram_c USING vec0(emb float[384] distance_metric=cosine);
CREATE VIRTUAL TABLE ram.ram_l USING vec0(emb float[384] distance_metric=l2);
BEGIN;
INSERT INTO peer_c(rowid, emb) SELECT id, embedding FROM c;
INSERT INTO peer_l(rowid, emb) SELECT id, embedding FROM c;
INSERT INTO ram_c(rowid, emb) SELECT id, embedding FROM c;
INSERT INTO ram_l(rowid, emb) SELECT id, embedding FROM c;
COMMIT;
--! bind :q vec 384
--! same 1e-5
--! overlap 0.999
--! target 10
--! ours 300
SELECT id, distance FROM c WHERE embedding MATCH :q AND k = 10;
--! peer
SELECT rowid, distance FROM peer_c WHERE emb MATCH :q AND k = 10;

--! row top10_cosine_peer_in_ram
--! bind :q vec 384
--! same 1e-5
--! overlap 0.999
--! target 10
--! ours 300
SELECT id, distance FROM c WHERE embedding MATCH :q AND k = 10;
--! peer
SELECT rowid, distance FROM ram_c WHERE emb MATCH :q AND k = 10;

--! row top10_l2_peer_in_file
--! bind :q vec 384
--! same 1e-5
--! overlap 0.999
--! target 10
--! ours 300
SELECT id, distance FROM l WHERE embedding MATCH :q AND k = 10;
--! peer
SELECT rowid, distance FROM peer_l WHERE emb MATCH :q AND k = 10;

--! row top10_l2_peer_in_ram
--! bind :q vec 384
--! same 1e-5
--! overlap 0.999
--! target 10
--! ours 300
SELECT id, distance FROM l WHERE embedding MATCH :q AND k = 10;
--! peer
SELECT rowid, distance FROM ram_l WHERE emb MATCH :q AND k = 10;
