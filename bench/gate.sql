-- The decision gate through SQL: a thousand calls a run, over a plain table, and the same table with a function of
-- SQLite's own in its place, which is what the scan alone costs.

--! subsystem gate

--! row gate_scan_alone_1000 per 1000 calls
--! setup
CREATE TABLE one(t TEXT); CREATE TABLE two(t TEXT); CREATE TABLE ten(t TEXT); CREATE TABLE six(t TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) INSERT INTO one SELECT 'ok' FROM n;
INSERT INTO two SELECT 'got it' FROM one;
INSERT INTO ten SELECT 'I would like to keep the backups for at least thirty days' FROM one;
INSERT INTO six SELECT 'yes yes definitely sure absolutely right' FROM one;
--! answers what the scan alone costs: SQLite's own function in the gate's place
--! timed 200
SELECT sum(length(t)) FROM ten;
--! check
SELECT sum(length(t)) = 57000 FROM ten;

--! row gate_trivial_c per 1 calls
--! answers clawhdf5: Trivial skip, 61 ns
--! times 1000
--! core gate 100
--! load
SELECT 'ok';
--! same 0
--! truth 1 1
SELECT 0, 0;

--! row gate_trivial_1000 per 1000 calls
--! answers clawhdf5: Trivial skip, 61 ns, times 1,000
--! timed 200
SELECT sum(h5mem_gate(t)) FROM one;
--! check
SELECT sum(h5mem_gate(t)) = 0 FROM one;

--! row gate_short_phrase_c per 1 calls
--! answers clawhdf5: Short phrase, 86 ns
--! times 1000
--! core gate 100
--! load
SELECT 'got it';
--! same 0
--! truth 1 1
SELECT 0, 0;

--! row gate_short_phrase_1000 per 1000 calls
--! answers clawhdf5: Short phrase, 86 ns, times 1,000
--! timed 200
SELECT sum(h5mem_gate(t)) FROM two;
--! check
SELECT sum(h5mem_gate(t)) = 0 FROM two;

--! row gate_ten_words_c per 1 calls
--! answers clawhdf5: Non-trivial, 705 ns
--! times 1000
--! core gate 100
--! load
SELECT 'I would like to keep the backups for at least thirty days';
--! same 0
--! truth 1 1
SELECT 1, 1;

--! row gate_ten_words_1000 per 1000 calls
--! answers clawhdf5: Non-trivial, 705 ns, times 1,000
--! timed 200
SELECT sum(h5mem_gate(t)) FROM ten;
--! check
SELECT sum(h5mem_gate(t)) = 1000 FROM ten;

--! row gate_small_talk_c per 1 calls
--! answers clawhdf5: Ratio check, 488 ns; there it is kept
--! times 1000
--! core gate 100
--! load
SELECT 'yes yes definitely sure absolutely right';
--! same 0
--! truth 1 1
SELECT 0, 0;

--! row gate_small_talk_1000 per 1000 calls
--! answers clawhdf5: Ratio check, 488 ns; there it is kept, times 1,000
--! timed 200
SELECT sum(h5mem_gate(t)) FROM six;
--! check
SELECT sum(h5mem_gate(t)) = 0 FROM six;

-- h5mem_record: the exchange is decided, rated, stored and logged, nothing synced; there nothing is stored and nothing
-- is searched.

--! row record_trivial per 1 exchanges
--! setup
PRAGMA synchronous = off;
CREATE TEMP TABLE vectors AS
  WITH RECURSIVE s(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM s WHERE i < 1999) SELECT i, bench_demo(i, 384) AS v FROM s;
CREATE UNIQUE INDEX temp.vectors_i ON vectors(i);
CREATE VIRTUAL TABLE trivial USING h5mem('trivial.h5', dim=384, synchronous=off);
--! answers clawhdf5: SaveEvery (trivial), 67 ns; here the decision is logged
--! timed 200
SELECT h5mem_record('trivial', 'ok', 'Great!', 's-1', NULL, NULL, NULL, 'every');
--! check
SELECT count(*) = 0 FROM trivial;

--! row record_shift_10k per 1 exchanges
--! setup
CREATE VIRTUAL TABLE shift USING h5mem('shift.h5', dim=384, synchronous=off);
INSERT INTO shift(content, embedding, session)
  WITH RECURSIVE s(i) AS (SELECT 10000 UNION ALL SELECT i + 1 FROM s WHERE i < 19999)
  SELECT bench_chars(i, 131), bench_demo(i, 384), 's-1' FROM s;
SELECT h5mem_flush('shift');
--! answers clawhdf5: SemanticShift (empty), 941 ns: its store is a stub whose search finds nothing
--! timed 200
SELECT h5mem_record('shift', 'I would like to keep the backups for at least thirty days', NULL, 's-1', NULL, v, NULL,
                    'shift')
  FROM vectors WHERE i = :run % 2000;
--! check
SELECT json_extract(h5mem_record('shift', 'I would like to keep the backups', NULL, 's-1', NULL, v, NULL, 'shift'),
                    '$.skipped') LIKE 'repeats %' FROM vectors WHERE i = :run % 2000;
