-- What is to be kept of an exchange: h5mem_record, which stores two rows. Vectors of 384 floats are given; nothing is
-- synced. What is not saved, trivial or told before, is in gate.sql. The followed system's rows format a string and
-- average two constant vectors: they store and embed nothing.
--! subsystem record

--! row record_every per 1 exchanges
--! answers clawhdf5: SaveEvery (substantive), 923 ns: nothing is stored
--! setup
PRAGMA journal_mode = wal;
PRAGMA synchronous = off;
CREATE TEMP TABLE source AS
  WITH RECURSIVE s(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM s WHERE i < 4999)
  SELECT i, bench_words(i, 9) AS said, bench_words(i + 5000, 20) AS answered, bench_demo(i, 384) AS a,
         bench_demo(i + 5000, 384) AS b FROM s;
CREATE UNIQUE INDEX temp.source_i ON source(i);
CREATE VIRTUAL TABLE e USING h5mem('e.h5', dim=384, synchronous=off);
--! timed 500
SELECT h5mem_record('e', said, answered, 's-1', 1.7e9 + :run, a, b, 'every') FROM source WHERE i = :run % 5000;
--! check
SELECT count(*) >= 2 * :runs AND count(embedding) = count(*) FROM e;
SELECT content = (SELECT said FROM source WHERE i = 3) FROM e WHERE timestamp = 1.7e9 + 3 LIMIT 1;

--! row record_shift_saved_10k per 1 exchanges
--! answers clawhdf5: SemanticShift (empty), 941 ns: its store is a stub that finds nothing
--! setup
CREATE VIRTUAL TABLE h USING h5mem('h.h5', dim=384, synchronous=off);
INSERT INTO h(content, embedding, timestamp, session)
  SELECT said, a, 1.6e9 + i, 's-0' FROM source UNION ALL SELECT answered, b, 1.65e9 + i, 's-0' FROM source;
SELECT h5mem_flush('h');
--! timed 300
SELECT h5mem_record('h', bench_words(:run + 20000, 9), bench_words(:run + 30000, 20), 's-1', 1.7e9 + :run,
                    bench_noise(:run + 20000, 384), bench_noise(:run + 30000, 384), 'shift');
--! check
SELECT count(*) > 10000 FROM h;
-- what is there already is no shift
SELECT json_extract(h5mem_record('h', said, answered, 's-0', 1.8e9, a, b, 'shift'), '$.saved') = '[]' FROM source WHERE i = 7;
