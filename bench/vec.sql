-- Nearest neighbours through SQL: memories of 384 floats in a flushed store, distinct queries. The vectors are the
-- embeddings of sql/demo.h5, stretched (bench_demo); those named noise are independent components, the hard case and
-- the followed system's own. What an answer is worth stands beside its time: recall against the exact search.
--! subsystem vec

--! repeat 1k,1000,short,54~us 10k,10000,short,753~us 100k,100000,normal,11.4~ms 1m,1000000,long,
--! row exact_$1 per $2 rows
--! from $3
--! answers clawhdf5: Flat $1, $4
--! setup
CREATE VIRTUAL TABLE c$1 USING h5mem('c$1.h5', dim=384);
INSERT INTO c$1(embedding, timestamp)
  WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < $2)
  SELECT bench_demo(i, 384), i FROM s;
SELECT h5mem_flush('c$1');
--! bind :q demo 384
--! timed 200
SELECT id, distance FROM c$1 WHERE embedding MATCH :q AND k = 10 AND exact = 1;
--! check
SELECT count(*) = 10 AND max(abs(o.distance - t.d)) < 1e-5
  FROM (SELECT row_number() OVER (ORDER BY distance, id) AS n, distance
          FROM c$1 WHERE embedding MATCH :q AND k = 10 AND exact = 1) AS o
  JOIN (SELECT row_number() OVER (ORDER BY d) AS n, d
          FROM (SELECT bench_distance(embedding, :q, 'cosine') AS d FROM c$1 ORDER BY d LIMIT 10)) AS t USING (n);
--! end

--! repeat 1k,62~us 10k,706~us
--! row exact_$1_c per 1 queries
--! answers the same search called from C: the rest of exact_$1 is SQL's
--! bind :q demo 384
--! core near 300
--! load
SELECT id, embedding FROM c$1 ORDER BY id;
--! same 1e-5
--! truth 20 1
SELECT id, distance FROM c$1 WHERE embedding MATCH :q AND k = 10 AND exact = 1;

--! row prenorm_$1_c per 1 queries
--! answers clawhdf5: Pre-norm $1, $2
--! bind :q demo 384
--! core scan:best 300
--! load
SELECT id, embedding FROM c$1 ORDER BY id;
--! same 1e-5
--! truth 20 1
SELECT id, distance FROM c$1 WHERE embedding MATCH :q AND k = 10 AND exact = 1;
--! end

--! repeat scalar,Sequential,1.07~ms avx2,SIMD,545~us avx512,Adaptive,564~us neon,SIMD,
--! row scan_$1_10k_c per 10000 rows
--! answers clawhdf5: $2 10K, $3
--! bind :q demo 384
--! core scan:$1 200
--! load
SELECT id, embedding FROM c10k ORDER BY id;
--! same 1e-5
--! truth 20 1
SELECT id, distance FROM c10k WHERE embedding MATCH :q AND k = 10 AND exact = 1;
--! end

--! row exact_10k_l2 per 10000 rows
--! answers no row: the nearest ten of 10,000 in less than one pass over their floats
--! versus scan_avx512_10k_c 1
--! setup
CREATE VIRTUAL TABLE l USING h5mem('l.h5', dim=384, metric=l2);
INSERT INTO l(embedding, timestamp) SELECT embedding, timestamp FROM c10k ORDER BY id;
SELECT h5mem_flush('l');
--! bind :q demo 384
--! timed 200
SELECT id, distance FROM l WHERE embedding MATCH :q AND k = 10;
--! check
SELECT count(*) = 10 AND max(abs(o.distance - t.d)) < 1e-5
  FROM (SELECT row_number() OVER (ORDER BY distance, id) AS n, distance
          FROM l WHERE embedding MATCH :q AND k = 10) AS o
  JOIN (SELECT row_number() OVER (ORDER BY d) AS n, d
          FROM (SELECT bench_distance(embedding, :q, 'l2') AS d FROM l ORDER BY d LIMIT 10)) AS t USING (n);

--! row exact_10k_noise per 10000 rows
--! answers clawhdf5: Flat 10K on its own kind of data, 753 us
--! setup
CREATE VIRTUAL TABLE n10k USING h5mem('n.h5', dim=384);
INSERT INTO n10k(embedding, timestamp)
  WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 10000)
  SELECT bench_noise(i, 384), i FROM s;
SELECT h5mem_flush('n10k');
--! bind :q noise 384
--! timed 200
SELECT id, distance FROM n10k WHERE embedding MATCH :q AND k = 10;
--! check
SELECT count(*) = 10 AND max(abs(o.distance - t.d)) < 1e-5
  FROM (SELECT row_number() OVER (ORDER BY distance, id) AS n, distance
          FROM n10k WHERE embedding MATCH :q AND k = 10) AS o
  JOIN (SELECT row_number() OVER (ORDER BY d) AS n, d
          FROM (SELECT bench_distance(embedding, :q, 'cosine') AS d FROM n10k ORDER BY d LIMIT 10)) AS t USING (n);

--! repeat 1 2
--! row exact_100k_threads_$1 per 100000 rows
--! from normal
--! answers clawhdf5: Rayon 100K on 16 threads, 8.3 ms
--! setup
SELECT h5mem_config('c100k', 'threads', $1);
--! bind :q demo 384
--! timed 200
SELECT id, distance FROM c100k WHERE embedding MATCH :q AND k = 10 AND exact = 1;
--! same 1e-6
--! truth 50 1
SELECT id, distance FROM c100k WHERE embedding MATCH :q AND k = 10 AND exact = 1;
--! check
SELECT count(*) = 10 AND max(abs(o.distance - t.d)) < 1e-5
  FROM (SELECT row_number() OVER (ORDER BY distance, id) AS n, distance
          FROM c100k WHERE embedding MATCH :q AND k = 10 AND exact = 1) AS o
  JOIN (SELECT row_number() OVER (ORDER BY d) AS n, d
          FROM (SELECT bench_distance(embedding, :q, 'cosine') AS d FROM c100k ORDER BY d LIMIT 10)) AS t USING (n);
--! end

-- filters: a part of the rows, by a column of numbers and by a session
--! repeat half,50000 tenth,10000 hundredth,1000
--! row exact_100k_$1 per $2 rows
--! from normal
--! answers no row: the followed system filters after its search
--! setup
SELECT h5mem_config('c100k', 'threads', 1);
--! bind :q demo 384
--! timed 100
SELECT id, distance FROM c100k WHERE embedding MATCH :q AND k = 10 AND exact = 1 AND timestamp <= $2;
--! check
SELECT count(*) = 10 AND max(abs(o.distance - t.d)) < 1e-5
  FROM (SELECT row_number() OVER (ORDER BY distance, id) AS n, distance
          FROM c100k WHERE embedding MATCH :q AND k = 10 AND exact = 1 AND timestamp <= $2) AS o
  JOIN (SELECT row_number() OVER (ORDER BY d) AS n, d
          FROM (SELECT bench_distance(embedding, :q, 'cosine') AS d FROM c100k WHERE id <= $2
                 ORDER BY d LIMIT 10)) AS t USING (n);
--! end
