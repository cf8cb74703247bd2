-- BM25 over turns of 8 to 40 words by Zipf's law: six words a query by the same law as the text, no stop list.
--! subsystem text

--! row bm25_10k per 1 queries
--! target 1
--! answers clawhdf5: BM25 10K, 583 us, in memory, 32 words in all
--! setup
CREATE VIRTUAL TABLE m USING h5mem('m.h5', dim=384);
INSERT INTO m(content, timestamp)
  WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 10000)
  SELECT bench_text(i), i FROM s;
SELECT h5mem_flush('m');
-- the definition: the same tokens as fts5vocab shows them, k1 1.2, b 0.75, idf ln(1 + (N - df + .5) / (df + .5))
CREATE VIRTUAL TABLE temp.f USING fts5(content, content='', tokenize='porter unicode61 remove_diacritics 2');
INSERT INTO f(rowid, content) SELECT id, content FROM m;
CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab(temp, f, 'instance');
CREATE TEMP TABLE token AS SELECT term, doc, count(*) AS tf FROM vocabulary GROUP BY term, doc;
CREATE INDEX temp.token_term ON token(term);
CREATE TEMP TABLE length AS SELECT doc, sum(tf) AS n FROM token GROUP BY doc;
CREATE UNIQUE INDEX temp.length_doc ON length(doc);
CREATE VIRTUAL TABLE temp.asked USING fts5(content, tokenize='porter unicode61 remove_diacritics 2');
CREATE VIRTUAL TABLE temp.asked_vocabulary USING fts5vocab(temp, asked, 'row');
--! bind :words words 6
--! timed 500
SELECT id, score FROM m WHERE content MATCH :words ORDER BY score DESC LIMIT 10;
--! check
DELETE FROM asked;
INSERT INTO asked VALUES (:words);
WITH
  corpus AS (SELECT count(*) AS docs, avg(n) AS mean FROM length),
  df AS (SELECT term, count(*) AS df FROM token WHERE term IN (SELECT term FROM asked_vocabulary) GROUP BY term),
  scored AS (SELECT doc, sum(bench_ln(1 + (docs - df + 0.5) / (df + 0.5)) *
                             tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * length.n / mean))) AS score
               FROM token JOIN df USING (term) JOIN length USING (doc), corpus GROUP BY doc),
  best AS (SELECT row_number() OVER (ORDER BY score DESC, doc) AS place, score FROM scored LIMIT 10),
  ours AS (SELECT row_number() OVER (ORDER BY score DESC, id) AS place, score
             FROM (SELECT id, score FROM m WHERE content MATCH :words ORDER BY score DESC LIMIT 10))
SELECT count(*) = 10 AND max(abs(ours.score - best.score)) < 1e-4 FROM ours JOIN best USING (place);
--! facts
SELECT json_extract(h5mem_stats('m'), '$.text_index_bytes') AS index_bytes;

--! row bm25_10k_plain per 1 queries
--! answers the row below through SQL: words as they are, without a stemmer
--! setup
CREATE VIRTUAL TABLE p USING h5mem('p.h5', dim=384, tokenize=unicode61);
INSERT INTO p(id, content, timestamp) SELECT id, content, timestamp FROM m ORDER BY id;
SELECT h5mem_flush('p');
--! bind :words words 6
--! timed 500
SELECT id, score FROM p WHERE content MATCH :words ORDER BY score DESC LIMIT 10;
--! same 1e-9
--! truth 20 1
SELECT id, score FROM p WHERE content MATCH :words ORDER BY score * 1.0 DESC, id LIMIT 10;

--! row bm25_10k_c per 1 queries
--! answers the same search called from C: the rest of bm25_10k_plain is SQL's
--! bind :words words 6
--! core words 500
--! load
SELECT id, content FROM p ORDER BY id;
--! same 1e-6
--! truth 50 1
SELECT id, score FROM p WHERE content MATCH :words ORDER BY score DESC LIMIT 10;

--! repeat 1k,1000,67~us 10k,10000,583~us
--! row bm25_$1_few per 1 queries
--! answers clawhdf5: BM25 $1 on such texts, $3, in memory
--! setup
CREATE VIRTUAL TABLE w$1 USING h5mem('w$1.h5', dim=384);
INSERT INTO w$1(content, timestamp)
  WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < $2)
  SELECT bench_few(i, 50, 32), i FROM s;
SELECT h5mem_flush('w$1');
--! timed 300
SELECT id, score FROM w$1 WHERE content MATCH bench_few(1000000 + :run, 3, 32) ORDER BY score DESC LIMIT 10;
--! same 1e-9
--! truth 20 1
SELECT id, score FROM w$1 WHERE content MATCH bench_few(1000000 + :run, 3, 32) ORDER BY score * 1.0 DESC, id LIMIT 10;
--! end

--! row bm25_100k per 1 queries
--! from normal
--! answers clawhdf5: BM25 at 100K is not published
--! setup
CREATE VIRTUAL TABLE x USING h5mem('x.h5', dim=384);
INSERT INTO x(content, timestamp)
  WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 100000)
  SELECT bench_text(i), i FROM s;
SELECT h5mem_flush('x');
--! bind :words words 6
--! timed 300
SELECT id, score FROM x WHERE content MATCH :words ORDER BY score DESC LIMIT 10;
--! same 1e-9
--! truth 20 1
SELECT id, score FROM x WHERE content MATCH :words ORDER BY score * 1.0 DESC, id LIMIT 10;
--! facts
SELECT json_extract(h5mem_stats('x'), '$.text_index_bytes') AS index_bytes;
