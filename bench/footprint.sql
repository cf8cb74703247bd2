-- Bytes: filling a store (one transaction) and folding it into its file, and how many bytes the file then has, indexes
-- of words and vectors included. A row is a text of 200 bytes, 384 floats, a session of 50 rows, a channel of 15 bytes.
-- Vectors are real ones, stretched (bench_demo); `ramp` is the followed system's generator, whose rows repeat each
-- other, `words40` its 40 different texts.
--! subsystem footprint

--! repeat 100,100,9,short 1k,1000,7,short 10k,10000,5,normal 100k,100000,1,normal
--! row bytes_$1 per $2 rows
--! from $4
--! answers clawhdf5: 1.7-1.8 KB a row without any index; it makes them anew when it opens
--! warm 0
--! each
DROP TABLE IF EXISTS f;
SELECT bench_remove('f.h5'), bench_remove('f.h5-wal');
CREATE VIRTUAL TABLE f USING h5mem('f.h5', dim=384);
--! timed $3
INSERT INTO f(content, embedding, timestamp, session, channel)
  WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < $2)
  SELECT bench_chars(i, 200), bench_demo(i, 384), 1000000, 'sess_' || (i / 50), 'channel-of-agent' FROM s;
SELECT h5mem_flush('f');
--! check
SELECT count(*) = $2 AND sum(length(content)) = 200 * $2 AND count(embedding) = $2 FROM f;
SELECT h5mem_verify('f') = 'ok';
SELECT sum(content IS NOT bench_chars(id, 200) OR embedding IS NOT bench_demo(id, 384)) = 0
  FROM (SELECT * FROM f LIMIT 100);
--! facts
SELECT bench_file_bytes('f.h5') AS file_bytes, bench_file_bytes('f.h5') / $2 AS bytes_a_row,
       json_extract(h5mem_stats('f'), '$.text_index_bytes') / $2 AS of_it_words,
       json_extract(h5mem_stats('f'), '$.vector_bytes') / $2 AS of_it_vectors;
--! end

--! repeat deflate,compression=deflate:6,281~B,demo,chars zstd,compression=zstd:3,281~B,demo,chars f16,storage=f16,no~row,demo,chars i8,storage=i8,no~row,demo,chars ramp,compression=deflate:6,281~B~on~such~rows,ramp,few ramp_zstd,compression=zstd:3,281~B~on~such~rows,ramp,few
--! row bytes_10k_$1 per 10000 rows
--! from normal
--! answers clawhdf5: $3 a row, compressed
--! warm 0
--! each
DROP TABLE IF EXISTS f;
SELECT bench_remove('f.h5'), bench_remove('f.h5-wal');
CREATE VIRTUAL TABLE f USING h5mem('f.h5', dim=384, $2);
--! timed 5
INSERT INTO f(content, embedding, timestamp, session, channel)
  WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 10000)
  SELECT iif('$5' = 'few', substr(bench_few(i % 40, 64, 40), 1, 200), bench_chars(i, 200)), bench_$4(i, 384), 1000000,
         'sess_' || (i / 50), 'channel-of-agent' FROM s;
SELECT h5mem_flush('f');
--! check
SELECT count(*) = 10000 AND count(embedding) = 10000 FROM f;
SELECT h5mem_verify('f') = 'ok';
SELECT max(h5mem_distance(embedding, bench_$4(id, 384))) < 0.002 FROM (SELECT id, embedding FROM f LIMIT 100);
--! facts
SELECT bench_file_bytes('f.h5') AS file_bytes, bench_file_bytes('f.h5') / 10000 AS bytes_a_row,
       json_extract(h5mem_stats('f'), '$.text_index_bytes') / 10000 AS of_it_words,
       json_extract(h5mem_stats('f'), '$.vector_bytes') / 10000 AS of_it_vectors;
--! end

--! repeat 50,15.6~MB 200,17.0~MB 1000,24.6~MB
--! row bytes_10k_text_$1 per 10000 rows
--! from normal
--! answers clawhdf5: $2 for 10,000 rows with texts of $1 bytes
--! warm 0
--! each
DROP TABLE IF EXISTS f;
SELECT bench_remove('f.h5'), bench_remove('f.h5-wal');
CREATE VIRTUAL TABLE f USING h5mem('f.h5', dim=384);
--! timed 5
INSERT INTO f(content, embedding, timestamp, session, channel)
  WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 10000)
  SELECT bench_chars(i, $1), bench_demo(i, 384), 1000000, 'sess_' || (i / 50), 'channel-of-agent' FROM s;
SELECT h5mem_flush('f');
--! check
SELECT count(*) = 10000 AND sum(length(content)) = 10000 * $1 FROM f;
SELECT sum(content IS NOT bench_chars(id, $1) OR embedding IS NOT bench_demo(id, 384)) = 0
  FROM (SELECT * FROM f LIMIT 100);
--! facts
SELECT bench_file_bytes('f.h5') AS file_bytes, bench_file_bytes('f.h5') / 10000 AS bytes_a_row;
--! end

--! row log_of_1k per 1000 rows
--! answers clawhdf5: WAL overhead +-8 %, both rows of which run without the log
--! warm 0
--! each
DROP TABLE IF EXISTS f;
SELECT bench_remove('f.h5'), bench_remove('f.h5-wal');
CREATE VIRTUAL TABLE f USING h5mem('f.h5', dim=384);
--! timed 7
INSERT INTO f(content, embedding, timestamp, session, channel)
  WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 1000)
  SELECT bench_chars(i, 200), bench_demo(i, 384), 1000000, 'sess_' || (i / 50), 'channel-of-agent' FROM s;
--! check
SELECT count(*) = 1000 FROM f;
SELECT json_extract(h5mem_stats('f'), '$.log_rows') = 1000;
--! facts
SELECT bench_file_bytes('f.h5-wal') AS log_bytes, bench_file_bytes('f.h5-wal') / 1000 AS bytes_a_row;
