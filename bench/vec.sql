-- Exact nearest neighbours through SQL: 10,000 memories of 384 floats in a flushed store, distinct queries.
--! subsystem vec

--! row exact_top10_10k_cosine per 10000 rows
--! setup
CREATE VIRTUAL TABLE c USING h5mem('c.h5', dim=384);
INSERT INTO c(embedding, timestamp)
  WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 10000)
  SELECT bench_vec(i, 384), i FROM s;
SELECT h5mem_flush('c');
--! bind :q vec 384
--! timed 300
SELECT id, distance FROM c WHERE embedding MATCH :q AND k = 10;
--! check
SELECT count(*) = 10 AND max(abs(o.distance - t.d)) < 1e-5
  FROM (SELECT row_number() OVER (ORDER BY distance, id) AS n, distance
          FROM c WHERE embedding MATCH :q AND k = 10) AS o
  JOIN (SELECT row_number() OVER (ORDER BY d) AS n, d
          FROM (SELECT bench_distance(embedding, :q, 'cosine') AS d FROM c ORDER BY d LIMIT 10)) AS t USING (n);

--! row exact_top10_10k_l2 per 10000 rows
--! setup
CREATE VIRTUAL TABLE l USING h5mem('l.h5', dim=384, metric=l2);
INSERT INTO l(embedding, timestamp)
  WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 10000)
  SELECT bench_vec(i, 384), i FROM s;
SELECT h5mem_flush('l');
--! bind :q vec 384
--! timed 300
SELECT id, distance FROM l WHERE embedding MATCH :q AND k = 10;
--! check
SELECT count(*) = 10 AND max(abs(o.distance - t.d)) < 1e-5
  FROM (SELECT row_number() OVER (ORDER BY distance, id) AS n, distance
          FROM l WHERE embedding MATCH :q AND k = 10) AS o
  JOIN (SELECT row_number() OVER (ORDER BY d) AS n, d
          FROM (SELECT bench_distance(embedding, :q, 'l2') AS d FROM l ORDER BY d LIMIT 10)) AS t USING (n);
