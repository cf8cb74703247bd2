-- Near neighbours through lists, at the default recall of 0.99 for ten: building them, asking them, what they find and
-- what they take. `noise`: independent components, on which the followed system's own rows run.
--! subsystem near

--! repeat ivf,1k,1000,short,IVF~1K,(not~published) ivfpq,1k,1000,short,IVF-PQ~1K,(not~published) rairs,1k,1000,short,RAIRS~1K,(not~published) ivf,10k,10000,short,IVF~10K~at~128~dimensions~and~recall~.36,27~us ivfpq,10k,10000,normal,IVF-PQ~10K,(not~published) rairs,10k,10000,short,RAIRS~10K~at~128~dimensions~and~recall~.52,159~us ivf,100k,100000,normal,IVF~100K~at~recall~.22,1.32~ms ivfpq,100k,100000,normal,IVF-PQ~100K~at~recall~.20,1.19~ms rairs,100k,100000,normal,RAIRS~100K,(not~published) auto,1m,1000000,long,(nothing~at~1M),(not~published)
--! row build_$1_$2 per $3 rows
--! from $4
--! answers clawhdf5: its times leave building out
--! setup
CREATE VIRTUAL TABLE $1$2 USING h5mem('$1$2.h5', dim=384, index=$1);
INSERT INTO $1$2(embedding, timestamp)
  WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < $3)
  SELECT bench_demo(i, 384), i FROM s;
--! warm 0
--! timed 1
SELECT h5mem_optimize('$1$2');
--! check
SELECT json_extract(h5mem_stats('$1$2'), '$.vectors') = $3;
SELECT h5mem_verify('$1$2') = 'ok';
--! facts
SELECT json_extract(h5mem_stats('$1$2'), '$.index') AS "index",
       json_extract(h5mem_stats('$1$2'), '$.index_bytes') AS index_bytes;

--! row near_$1_$2 per 1 queries
--! from $4
--! answers clawhdf5: $5, $6
--! bind :q demo 384
--! timed 500
SELECT id, distance FROM $1$2 WHERE embedding MATCH :q AND k = 10;
--! truth 200 0.95
SELECT id, distance FROM $1$2 WHERE embedding MATCH :q AND k = 10 AND exact = 1;
--! end

--! repeat 0.9 0.95 0.999
--! row near_rairs_100k_recall_$1 per 1 queries
--! from normal
--! answers no row: nobody measured a recall there
--! bind :q demo 384
--! timed 300
SELECT id, distance FROM rairs100k WHERE embedding MATCH :q AND k = 10 AND recall = $1;
--! truth 200 0.85
SELECT id, distance FROM rairs100k WHERE embedding MATCH :q AND k = 10 AND exact = 1;
--! end

--! row near_rairs_10k_noise per 1 queries
--! answers clawhdf5: RAIRS 10K on its own kind of data, 159 us at recall .52
--! setup
CREATE VIRTUAL TABLE noisy USING h5mem('noisy.h5', dim=384, index=rairs);
INSERT INTO noisy(embedding, timestamp)
  WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 10000)
  SELECT bench_noise(i, 384), i FROM s;
SELECT h5mem_optimize('noisy');
--! bind :q noise 384
--! timed 200
SELECT id, distance FROM noisy WHERE embedding MATCH :q AND k = 10;
--! truth 200 0.95
SELECT id, distance FROM noisy WHERE embedding MATCH :q AND k = 10 AND exact = 1;
--! facts
SELECT json_extract(h5mem_stats('noisy'), '$.index') AS "index",
       json_extract(h5mem_stats('noisy'), '$.index_bytes') AS index_bytes;
