-- Both parts at once: words and a vector, fused by ranks or by weight, over turns of 8 to 40 words. Checked: the page is
-- what ranking every row gives; for ranks also the formula, from the two rankings. `few`: texts of 50 words out of 36,
-- as the followed system's, where nearly every row has nearly every word.
--! subsystem hybrid

--! repeat 1k,1000,short,222~us 10k,10000,short,2.04~ms 100k,100000,normal,(not~published~at~100K)
--! row rrf_$1 per 1 queries
--! from $3
--! answers clawhdf5: RRF $1, $4, its text index made before the clock starts
--! setup
CREATE VIRTUAL TABLE h$1 USING h5mem('h$1.h5', dim=384);
INSERT INTO h$1(content, embedding, timestamp)
  WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < $2)
  SELECT bench_text(i), bench_demo(i, 384), i FROM s;
SELECT h5mem_flush('h$1');
--! bind :q demo 384
--! bind :words words 3
--! timed 200
SELECT id, score FROM h$1 WHERE embedding MATCH :q AND content MATCH :words ORDER BY score DESC LIMIT 10;
--! check
WITH
  v AS MATERIALIZED (SELECT id, row_number() OVER (ORDER BY distance, id) AS place
                       FROM h$1 WHERE embedding MATCH :q AND exact = 1),
  t AS MATERIALIZED (SELECT id, row_number() OVER (ORDER BY rank, id) AS place FROM h$1 WHERE content MATCH :words),
  share AS (SELECT id, h5mem_config('h$1', 'vector_weight') / (60.0 + place) AS part FROM v
            UNION ALL SELECT id, h5mem_config('h$1', 'text_weight') / (60.0 + place) FROM t),
  fused AS (SELECT id, sum(part) AS score FROM share GROUP BY id),
  best AS (SELECT row_number() OVER (ORDER BY score DESC, id) AS n, id, score FROM fused ORDER BY n LIMIT 10),
  ours AS (SELECT row_number() OVER (ORDER BY score DESC, id) AS n, id, score FROM
            (SELECT id, score FROM h$1 WHERE embedding MATCH :q AND content MATCH :words ORDER BY score DESC LIMIT 10))
SELECT count(*) = 10 AND max(abs(best.score - ours.score)) < 1e-9 FROM best JOIN ours USING (n);

--! row weighted_$1 per 1 queries
--! from $3
--! answers clawhdf5: weighted fusion $1
--! bind :q demo 384
--! bind :words words 3
--! timed 200
SELECT id, score FROM h$1 WHERE embedding MATCH :q AND content MATCH :words AND fusion = 'weighted'
 ORDER BY score DESC LIMIT 10;
--! same 1e-9
--! truth 5 1
SELECT id, score FROM h$1 WHERE embedding MATCH :q AND content MATCH :words AND fusion = 'weighted'
 ORDER BY score * 1.0 DESC, id LIMIT 10;
--! end

--! repeat 1k,1000,198~us,weighted 10k,10000,2.04~ms,rrf
--! row $4_$1_few per 1 queries
--! answers clawhdf5: hybrid search $1 on such texts, $3
--! setup
CREATE VIRTUAL TABLE f$1 USING h5mem('f$1.h5', dim=384);
INSERT INTO f$1(content, embedding, timestamp)
  WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < $2)
  SELECT bench_few(i, 50, 36), bench_noise(i, 384), i FROM s;
SELECT h5mem_flush('f$1');
--! bind :q noise 384
--! timed 200
SELECT id, score FROM f$1
 WHERE embedding MATCH :q AND content MATCH bench_few(1000000 + :run, 3, 36) AND fusion = '$4'
 ORDER BY score DESC LIMIT 10;
--! same 1e-9
--! truth 5 1
SELECT id, score FROM f$1
 WHERE embedding MATCH :q AND content MATCH bench_few(1000000 + :run, 3, 36) AND fusion = '$4'
 ORDER BY score * 1.0 DESC, id LIMIT 10;
--! end
